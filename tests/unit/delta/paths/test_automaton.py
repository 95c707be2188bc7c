"""Automata accept what their expressions say."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from anabranch.delta.paths.automaton import (
    MOST_STATES,
    MOST_STEPS,
    Automaton,
    Chain,
    Choice,
    PathExpression,
    PathRepetition,
    PathStep,
    TooManySteps,
    automaton,
)

from .drawn import KINDS, drawn_expression, ends

P, Q = PathStep(frozenset({101})), PathStep(frozenset({102}))
Letter = tuple[int, bool]
LETTERS = list(product(KINDS, (False, True)))


def accepts(machine: Automaton, word: tuple[Letter, ...]) -> bool:
    states = {0}
    for kind, backward in word:
        symbol = machine.symbols.get(kind, machine.others)[backward]
        states = {to for state, by, to in machine.moves if state in states and by == symbol}
    return bool(states & machine.accepting)


def fits(expression: PathExpression, word: tuple[Letter, ...]) -> bool:
    """Whether a path through a line of facts that spell the word leads from its one end to the other."""
    line = {(at + 1, kind, at) if back else (at, kind, at + 1) for at, (kind, back) in enumerate(word)}
    return len(word) in one_way(expression, line, 0)


def one_way(expression: PathExpression, line: set[tuple[int, int, int]], vertex: int) -> set[int]:
    """As `ends`, but never toward the beginning of the line."""
    match expression:
        case PathStep():
            return {end for end in ends(expression, line, vertex) if end > vertex}
        case Chain(parts):
            reached = {vertex}
            for part in parts:
                reached = {end for one in reached for end in one_way(part, line, one)}
            return reached
        case Choice(parts):
            return {end for part in parts for end in one_way(part, line, vertex)}
        case PathRepetition(part, least, most):
            longest = least + len(line) + 1 if most is None else most
            found: set[int] = set()
            reached = {vertex}
            for times in range(longest + 1):
                found |= reached if times >= least else set()
                reached = {end for one in reached for end in one_way(part, line, one)}
            return found


@pytest.mark.parametrize("seed", range(150))
def test_a_word_is_accepted_exactly_when_it_fits_the_expression(seed: int) -> None:
    random = Random(seed)
    expression = drawn_expression(random)
    machine = automaton(expression)
    assert machine.nullable == fits(expression, ())
    for letter in LETTERS:
        assert accepts(machine, (letter,)) == fits(expression, (letter,))
    for _ in range(150):
        word = tuple(random.choice(LETTERS) for _ in range(random.randint(2, 6)))
        assert accepts(machine, word) == fits(expression, word)


@pytest.mark.parametrize("seed", range(60))
def test_every_state_leads_to_one_that_accepts_and_the_first_accepts_nothing(seed: int) -> None:
    machine = automaton(drawn_expression(Random(seed)))
    useful = set(machine.accepting)
    for _ in range(machine.states):
        useful |= {state for state, _, to in machine.moves if to in useful}
    assert useful | {0} == set(range(machine.states))
    assert 0 not in machine.accepting
    assert {symbol for _, symbol, _ in machine.moves} == set(range(machine.symbol_count))


def test_kinds_that_no_state_tells_apart_are_one_symbol() -> None:
    machine = automaton(PathRepetition(Choice((P, Q)), 1))
    assert machine.symbols == {101: (0, -1), 102: (0, -1)}
    assert (machine.states, machine.others) == (2, (-1, -1))


def test_p_plus_needs_two_states_however_it_is_written() -> None:
    for expression in (
        PathRepetition(P, 1),
        Chain((P, PathRepetition(P, 0))),
        PathRepetition(PathRepetition(P, 1), 1),
        Choice((P, PathRepetition(P, 1))),
    ):
        assert automaton(expression).states == 2


def test_standing_still_is_a_symbol_of_its_own_only_where_it_fits() -> None:
    assert automaton(PathRepetition(P, 0), standing=True).standing >= 0
    assert automaton(PathRepetition(P, 1), standing=True).standing == -1
    assert automaton(PathRepetition(P, 0)).standing == -1


def test_sets_of_positions_that_would_be_too_many_stay_positions() -> None:
    """The n-th step from the end is p: as many sets as there are subsets of n positions."""
    anything = PathStep(frozenset(), others=True)
    expression = Chain((PathRepetition(anything, 0), P, *[anything] * 9))
    machine = automaton(expression)
    assert 10 < machine.states < MOST_STATES
    random = Random(1)
    for _ in range(300):
        word = tuple((random.choice((101, 102)), False) for _ in range(random.randint(8, 14)))
        assert accepts(machine, word) == (len(word) >= 10 and word[-10][0] == 101)


def test_expressions_of_too_many_steps_are_refused() -> None:
    automaton(PathRepetition(P, MOST_STEPS))
    with pytest.raises(TooManySteps, match="a path of more than 256 steps"):
        automaton(PathRepetition(P, MOST_STEPS + 1))
