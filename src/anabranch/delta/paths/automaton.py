"""Compiles a regular expression over steps to an automaton, as plain numbers.

A step goes along a fact (start, kind, end), forward or backward. Positions of the expression become states (Glushkov,
1961); sets of positions become the states of a deterministic automaton where that stays small, and equivalent states
are merged. Kinds that no state distinguishes become one symbol, so that most automata have as many symbols as the
expression has kinds of steps that matter.

Invariant: a sequence of facts fits the expression exactly when its symbols lead from state 0 to an accepting state, or
when it has no facts and `nullable` is true. State 0 itself accepts nothing: paths of no step are decided by `nullable`.
From every state an accepting one can be reached.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

MOST_STATES = 64
"""States of a deterministic automaton; where it would have more, it stays as it is."""
MOST_STEPS = 256
"""Steps of an expression, those of repeated parts as often as they are spelled out."""


@dataclass(frozen=True, slots=True)
class PathStep:
    """Along one fact, of one of these kinds, or, with `others`, of any kind but these."""

    kinds: frozenset[int]
    others: bool = False
    backward: bool = False


@dataclass(frozen=True, slots=True)
class Chain:
    parts: tuple[PathExpression, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    parts: tuple[PathExpression, ...]


@dataclass(frozen=True, slots=True)
class PathRepetition:
    part: PathExpression
    least: int
    most: int | None = None


PathExpression: TypeAlias = PathStep | Chain | Choice | PathRepetition

Letter: TypeAlias = tuple[int | None, bool]
"""A kind (None: all that the expression does not name), and whether it is walked backward."""
Transition: TypeAlias = tuple[int, int, int]
"""From a state by a symbol to a state."""


class TooManySteps(Exception):
    """Raised when the expression is too long for an automaton."""

    def __init__(self) -> None:
        super().__init__(f"a path of more than {MOST_STEPS} steps")


@dataclass(frozen=True, slots=True)
class Automaton:
    """An automaton. `symbols` gives the symbols of a fact by its kind, and `others` those of all other kinds: one
    walked forward, one backward; -1: none. `standing` is the symbol of standing still at a vertex, -1 if not
    requested."""

    states: int
    symbol_count: int
    moves: tuple[Transition, ...]
    accepting: frozenset[int]
    nullable: bool
    symbols: Mapping[int, tuple[int, int]]
    others: tuple[int, int]
    standing: int = -1


def automaton(expression: PathExpression, standing: bool = False) -> Automaton:
    """Compile an expression. With `standing`, a path of no step is a step along a symbol of its own, from a vertex to
    itself."""
    built = _Positions()
    whole = built.lay(expression)
    standing = standing and whole.nullable
    kinds = sorted({kind for step in built.steps for kind in step.kinds})
    letters: list[Letter] = [(kind, backward) for kind in (*kinds, None) for backward in (False, True)]
    masks = {letter: _mask(at for at, step in enumerate(built.steps, 1) if _takes(step, letter)) for letter in letters}
    follow = [whole.first, *built.follow]
    last = whole.last
    if standing:
        still = 1 << len(follow)
        follow[0] |= still
        follow.append(0)
        last |= still
        masks[_STILL] = still
    table, accepting = _least(*_useful(*_determined(follow, list(masks.values()), last)))
    named, count = _named(table, list(masks))
    moves = sorted(
        {(state, named[letter], to) for state, row in enumerate(table) for letter, tos in zip(masks, row, strict=True)
         for to in tos}
    )  # fmt: skip
    return Automaton(
        len(table),
        count,
        tuple(moves),
        accepting,
        whole.nullable,
        {kind: (named[kind, False], named[kind, True]) for kind in kinds},
        (named[None, False], named[None, True]),
        named[_STILL] if standing else -1,
    )


_STILL: Letter = (-1, False)  # no kind is -1
_Table: TypeAlias = list[list[frozenset[int]]]
"""Per state and letter, where it leads."""


# --- positions ---


@dataclass(frozen=True, slots=True)
class _Part:
    """Sets of positions, as bits: by which a part can begin and end; `nullable`: whether it may be left out."""

    first: int
    last: int
    nullable: bool


class _Positions:
    """Numbers the steps from 1 on; `follow[n - 1]` are the positions that may come after position n."""

    def __init__(self) -> None:
        self.steps: list[PathStep] = []
        self.follow: list[int] = []

    def lay(self, expression: PathExpression) -> _Part:
        match expression:
            case PathStep():
                if len(self.steps) == MOST_STEPS:
                    raise TooManySteps
                self.steps.append(expression)
                self.follow.append(0)
                bit = 1 << len(self.steps)
                return _Part(bit, bit, False)
            case Chain(parts):
                return self._chained([self.lay(part) for part in parts])
            case Choice(parts):
                laid = [self.lay(part) for part in parts]
                first, last = _union(part.first for part in laid), _union(part.last for part in laid)
                return _Part(first, last, any(part.nullable for part in laid))
            case PathRepetition(part, least, most):
                return self._repeated(part, least, most)

    def _chained(self, parts: Sequence[_Part]) -> _Part:
        first, last, nullable = 0, 0, True
        for part in parts:
            self._lead(last, part.first)
            first |= part.first if nullable else 0
            last = part.last | (last if part.nullable else 0)
            nullable = nullable and part.nullable
        return _Part(first, last, nullable)

    def _repeated(self, part: PathExpression, least: int, most: int | None) -> _Part:
        """`least` copies and then a loop, or further ones that may be left out, each only with those behind it."""
        copies = [self.lay(part) for _ in range(least - 1 if most is None else least)]
        if most is None:
            loop = self.lay(part)
            self._lead(loop.last, loop.first)
            copies.append(_Part(loop.first, loop.last, loop.nullable or least == 0))
        else:
            copies += [_Part(one.first, one.last, True) for one in (self.lay(part) for _ in range(most - least))]
        return self._chained(copies)

    def _lead(self, before: int, after: int) -> None:
        for position in _bits(before):
            self.follow[position - 1] |= after


def _takes(step: PathStep, letter: Letter) -> bool:
    kind, backward = letter
    named = kind is not None and kind in step.kinds
    return step.backward == backward and named != step.others


def _mask(positions: Iterable[int]) -> int:
    return _union(1 << position for position in positions)


def _union(sets: Iterable[int]) -> int:
    union = 0
    for one in sets:
        union |= one
    return union


def _bits(mask: int) -> list[int]:
    return [position for position in range(mask.bit_length()) if mask >> position & 1]


# --- states ---


def _determined(follow: Sequence[int], masks: Sequence[int], last: int) -> tuple[_Table, frozenset[int]]:
    """States that are sets of positions, or positions where there would be too many sets. Position 0 is the start."""
    sets: dict[int, int] = {1: 0}
    table: _Table = []
    while len(table) < len(sets):
        if len(sets) > MOST_STATES:
            plain = [[frozenset(_bits(after & mask)) for mask in masks] for after in follow]
            return plain, frozenset(_bits(last))
        reached = _union(follow[position] for position in _bits(list(sets)[len(table)]))
        tos = [reached & mask for mask in masks]
        table.append([frozenset({sets.setdefault(to, len(sets))}) if to else frozenset() for to in tos])
    return table, frozenset(number for one, number in sets.items() if one & last)


def _useful(table: _Table, accepting: frozenset[int]) -> tuple[_Table, frozenset[int]]:
    """Without the states that lead nowhere, and state 0 always."""
    useful, grown = set(accepting), True
    while grown:
        more = {state for state, row in enumerate(table) if any(tos & useful for tos in row)} - useful
        useful |= more
        grown = bool(more)
    kept = [state for state in range(len(table)) if state == 0 or state in useful]
    number = {state: at for at, state in enumerate(kept)}
    small = [[frozenset(number[to] for to in tos if to in useful) for tos in table[state]] for state in kept]
    return small, frozenset(number[state] for state in accepting)


def _least(table: _Table, accepting: frozenset[int]) -> tuple[_Table, frozenset[int]]:
    """Merge equivalent states (Moore's partitions)."""
    classes = [int(state in accepting) for state in range(len(table))]
    while True:
        looks = [
            (classes[state], tuple(frozenset(classes[to] for to in tos) for tos in row))
            for state, row in enumerate(table)
        ]
        numbers: dict[object, int] = {}
        finer = [numbers.setdefault(look, len(numbers)) for look in looks]
        if len(numbers) == len(set(classes)):
            break
        classes = finer
    first = {number: state for state, number in reversed(list(enumerate(finer)))}
    small = [[frozenset(finer[to] for to in tos) for tos in table[first[number]]] for number in range(len(first))]
    return small, frozenset(finer[state] for state in accepting)


def _named(table: _Table, letters: Sequence[Letter]) -> tuple[dict[Letter, int], int]:
    """Return one symbol for all letters that lead from the same states to the same states; -1 for letters that lead
    nowhere."""
    columns: dict[tuple[frozenset[int], ...], int] = {}
    named: dict[Letter, int] = {}
    for at, letter in enumerate(letters):
        column = tuple(row[at] for row in table)
        named[letter] = columns.setdefault(column, len(columns)) if any(column) else -1
    return named, len(columns)
