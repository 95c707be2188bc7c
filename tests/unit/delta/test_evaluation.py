"""Whole windows at once: both joiners find what the plain definition finds."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from anabranch.delta import evaluation
from anabranch.delta.batch import Ids
from anabranch.delta.evaluation import Joiner, WindowEvaluation, evaluate
from anabranch.delta.patterns import BudgetExceeded, Conjunction, FactPattern, Fixed, Free, Place, Range

from .matching import Row, matrix, naive_matches, random_conjunction, random_facts, random_numbers

JOINERS: tuple[Joiner, ...] = ("semijoin", "library")


def found(matches: Ids) -> set[Row]:
    """The matches as a set; each must be there once."""
    rows = [tuple(row) for row in matches.tolist()]
    assert len(set(rows)) == len(rows), "a match is there twice"
    return set(rows)


def triples(*patterns: tuple[Place, Place, Place], different: tuple[tuple[int, int], ...] = ()) -> Conjunction:
    variables = {place.variable for pattern in patterns for place in pattern if isinstance(place, Free)}
    return Conjunction(3, tuple(map(FactPattern, patterns)), len(variables), different)


A, B, C, D = map(Free, range(4))
KNOWS, LIKES = Fixed(7), Fixed(8)
PATH = triples((A, KNOWS, B), (B, KNOWS, C))
TRIANGLE = triples((A, KNOWS, B), (B, KNOWS, C), (C, KNOWS, A))
STAR = triples((A, KNOWS, B), (A, LIKES, C), (A, Fixed(9), Fixed(1)))


@pytest.mark.parametrize("seed", range(400))
def test_random_conjunctions_over_random_facts_match_as_defined(seed: int) -> None:
    chance = Random(seed)
    conjunction = random_conjunction(chance, width=chance.choice((3, 3, 5)))
    domain = chance.choice((2, 4, 6))
    numbers = random_numbers(chance, domain) if chance.random() < 0.8 else None
    window = WindowEvaluation(conjunction)
    for count in chance.sample((0, 1, 5, 12, 25), 3):
        facts = random_facts(chance, conjunction, count, domain)
        expected = naive_matches(conjunction, facts, numbers)
        for joiner in JOINERS:
            matches = window.evaluate(matrix(facts, conjunction.width), numbers, joiner=joiner)
            assert matches.shape[1] == conjunction.variables
            assert matches.dtype == np.int64
            assert found(matches) == expected


@pytest.mark.parametrize("conjunction", [PATH, TRIANGLE, STAR], ids=["path", "triangle", "star"])
@pytest.mark.parametrize(("count", "domain"), [(300, 12), (20_000, 8_000), (20_000, 100_000)])
def test_both_joiners_agree_on_windows_too_large_for_the_definition(
    conjunction: Conjunction, count: int, domain: int
) -> None:
    chance = np.random.default_rng(count + domain)
    facts = chance.integers(1, domain, (count, 3))
    facts[:, 1] = chance.integers(7, 11, count)
    facts[facts[:, 1] == 9, 2] = 1
    facts = np.concatenate((facts, facts[: count // 3]))  # and some of them come again
    ours, theirs = (found(evaluate(conjunction, facts, joiner=joiner)) for joiner in JOINERS)
    assert ours == theirs


@pytest.mark.parametrize("joiner", JOINERS)
def test_a_fact_that_is_there_many_times_counts_once(joiner: Joiner) -> None:
    facts = np.array([[1, 7, 2], [2, 7, 3], [2, 7, 4]] * 40, np.int64)
    assert found(evaluate(PATH, facts, joiner=joiner)) == {(1, 2, 3), (1, 2, 4)}


@pytest.mark.parametrize("joiner", JOINERS)
def test_copies_among_the_many_facts_of_a_hub_are_found(joiner: Joiner) -> None:
    spokes = np.array([[1, 7, 100 + one % 50] for one in range(500)] + [[0, 7, 1]], np.int64)
    assert found(evaluate(PATH, spokes, joiner=joiner)) == {(0, 1, 100 + one) for one in range(50)}


@pytest.mark.parametrize("joiner", JOINERS)
def test_facts_without_variables_only_have_to_be_there(joiner: Joiner) -> None:
    there = triples((Fixed(1), KNOWS, Fixed(2)), (Fixed(2), KNOWS, Fixed(3)))
    facts = np.array([[1, 7, 2], [2, 7, 3], [2, 7, 3]], np.int64)
    assert evaluate(there, facts, joiner=joiner).shape == (1, 0)
    assert evaluate(there, facts[:1], joiner=joiner).shape == (0, 0)
    also = triples((Fixed(1), KNOWS, Fixed(2)), (A, KNOWS, Fixed(3)))
    assert found(evaluate(also, facts, joiner=joiner)) == {(2,)}
    assert found(evaluate(also, facts[1:], joiner=joiner)) == set()


@pytest.mark.parametrize("joiner", JOINERS)
def test_patterns_of_one_variable_alone_meet_in_it(joiner: Joiner) -> None:
    both = triples((A, KNOWS, Fixed(1)), (A, LIKES, Fixed(2)), (Fixed(3), LIKES, A))
    facts = np.array([[5, 7, 1], [5, 8, 2], [3, 8, 5], [6, 7, 1], [6, 8, 2], [5, 7, 1]], np.int64)
    assert found(evaluate(both, facts, joiner=joiner)) == {(5,)}


@pytest.mark.parametrize("joiner", JOINERS)
def test_a_kind_may_be_a_variable_that_joins(joiner: Joiner) -> None:
    same_kind = triples((A, B, C), (C, B, D))
    facts = np.array([[1, 7, 2], [2, 7, 3], [2, 8, 4]], np.int64)
    assert found(evaluate(same_kind, facts, joiner=joiner)) == {(1, 7, 2, 3)}


@pytest.mark.parametrize("joiner", JOINERS)
def test_parts_that_share_no_variable_multiply(joiner: Joiner) -> None:
    apart = triples((A, KNOWS, B), (C, LIKES, D), different=((1, 3),))
    facts = np.array([[1, 7, 2], [3, 7, 4], [5, 8, 2], [5, 8, 6]], np.int64)
    expected = {(1, 2, 5, 6), (3, 4, 5, 2), (3, 4, 5, 6)}
    assert found(evaluate(apart, facts, joiner=joiner)) == expected


@pytest.mark.parametrize("joiner", JOINERS)
def test_only_numbers_lie_in_a_range(joiner: Joiner) -> None:
    bounded = Conjunction(3, (FactPattern((A, KNOWS, B), (Range(2, 1.0, 2.0),)),), 2)
    facts = np.array([[9, 7, identifier] for identifier in range(6)], np.int64)
    numbers = np.array([np.nan, 1.0, 2.5, 2.0])
    assert found(evaluate(bounded, facts, numbers, joiner=joiner)) == {(9, 1), (9, 3)}
    assert found(evaluate(bounded, facts, joiner=joiner)) == set()


@pytest.mark.parametrize("joiner", JOINERS)
def test_more_matches_than_allowed_are_refused_and_as_many_are_not(joiner: Joiner) -> None:
    facts = np.array([[1, 7, 2]] + [[2, 7, 10 + one] for one in range(20)], np.int64)
    assert len(evaluate(PATH, facts, joiner=joiner, max_matches=20)) == 20
    with pytest.raises(BudgetExceeded) as refusal:
        evaluate(PATH, facts, joiner=joiner, max_matches=19)
    assert (refusal.value.what, refusal.value.limit) == ("matches", 19)


@pytest.mark.parametrize("joiner", JOINERS)
def test_what_is_large_only_on_the_way_is_not_refused(joiner: Joiner) -> None:
    ways = [[1, 7, one] for one in range(10, 40)] + [[one, 7, 2] for one in range(10, 40)] + [[2, 7, 3]]
    facts = np.array([*ways, [3, 7, 50], [50, 7, 3]], np.int64)
    there_and_back = triples((A, KNOWS, B), (B, KNOWS, A))
    assert found(evaluate(there_and_back, facts, joiner=joiner, max_matches=2)) == {(3, 50), (50, 3)}
    assert found(evaluate(TRIANGLE, facts, joiner=joiner, max_matches=2)) == set()


def test_matches_come_with_the_memory_of_their_own() -> None:
    window = WindowEvaluation(PATH)
    first = window.evaluate(np.array([[1, 7, 2], [2, 7, 3]], np.int64))
    window.evaluate(np.array([[5, 7, 6], [6, 7, 8]], np.int64))
    assert first.tolist() == [[1, 2, 3]]
    assert first.flags.c_contiguous


def test_facts_that_may_not_be_written_or_lie_apart_need_no_second_compilation() -> None:
    facts = np.array([[1, 7, 2], [2, 7, 3]], np.int64)
    evaluate(PATH, facts)
    compiled = len(evaluation.all_matches.signatures)  # type: ignore[attr-defined]
    apart = np.zeros((4, 3), np.int64)
    apart[::2] = facts
    facts.flags.writeable = False
    assert found(evaluate(PATH, facts)) == found(evaluate(PATH, apart[::2])) == {(1, 2, 3)}
    assert len(evaluation.all_matches.signatures) == compiled  # type: ignore[attr-defined]


def test_auto_takes_the_library_for_windows_that_are_large_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = np.array([[1, 7, 2], [2, 7, 3]], np.int64)
    asked: list[int] = []
    library = evaluation._joined

    def listening(conjunction: Conjunction, facts: Ids, *rest: object) -> Ids | None:
        asked.append(len(facts))
        return library(conjunction, facts, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(evaluation, "_joined", listening)
    assert found(evaluate(PATH, facts)) == {(1, 2, 3)}
    assert asked == []
    monkeypatch.setattr(evaluation, "LIBRARY_FROM", 2)
    assert found(evaluate(PATH, facts)) == {(1, 2, 3)}
    assert asked == [2]
