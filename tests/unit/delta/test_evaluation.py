"""Whole windows at once: semi-joins find what the plain definition finds."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from anabranch.delta import evaluation
from anabranch.delta.batch import Ids
from anabranch.delta.evaluation import WindowEvaluation, evaluate
from anabranch.delta.log_matcher import LogMatcher
from anabranch.delta.patterns import BudgetExceeded, Conjunction, FactPattern, Fixed, Free, Place, Range
from anabranch.errors import InternalError

from .matching import Row, matrix, naive_matches, random_conjunction, random_facts, random_numbers


def found(matches: Ids) -> set[Row]:
    """The matches as a set; each must be there once."""
    rows = [tuple(row) for row in matches.tolist()]
    assert len(set(rows)) == len(rows), "a match is there twice"
    return set(rows)


def by_log(conjunction: Conjunction, facts: Ids) -> Ids:
    """The matches that the log matcher finds in the same window."""
    whole = np.array([len(facts)], np.int64)
    return LogMatcher(conjunction).slide(facts, whole, np.zeros(1, np.int64)).batch.rows


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
        matches = window.evaluate(matrix(facts, conjunction.width), numbers)
        assert matches.shape[1] == conjunction.variables
        assert matches.dtype == np.int64
        assert found(matches) == expected


@pytest.mark.parametrize("conjunction", [PATH, TRIANGLE, STAR], ids=["path", "triangle", "star"])
@pytest.mark.parametrize(("count", "domain"), [(300, 12), (20_000, 8_000), (20_000, 100_000)])
def test_both_matchers_agree_on_windows_too_large_for_the_definition(
    conjunction: Conjunction, count: int, domain: int
) -> None:
    chance = np.random.default_rng(count + domain)
    facts = chance.integers(1, domain, (count, 3))
    facts[:, 1] = chance.integers(7, 11, count)
    facts[facts[:, 1] == 9, 2] = 1
    facts = np.concatenate((facts, facts[: count // 3]))  # and some of them come again
    assert found(evaluate(conjunction, facts)) == found(by_log(conjunction, facts))


def test_a_fact_that_is_there_many_times_counts_once() -> None:
    facts = np.array([[1, 7, 2], [2, 7, 3], [2, 7, 4]] * 40, np.int64)
    assert found(evaluate(PATH, facts)) == {(1, 2, 3), (1, 2, 4)}


def test_copies_among_the_many_facts_of_a_hub_are_found() -> None:
    spokes = np.array([[1, 7, 100 + one % 50] for one in range(500)] + [[0, 7, 1]], np.int64)
    assert found(evaluate(PATH, spokes)) == {(0, 1, 100 + one) for one in range(50)}


def test_facts_without_variables_only_have_to_be_there() -> None:
    there = triples((Fixed(1), KNOWS, Fixed(2)), (Fixed(2), KNOWS, Fixed(3)))
    facts = np.array([[1, 7, 2], [2, 7, 3], [2, 7, 3]], np.int64)
    assert evaluate(there, facts).shape == (1, 0)
    assert evaluate(there, facts[:1]).shape == (0, 0)
    also = triples((Fixed(1), KNOWS, Fixed(2)), (A, KNOWS, Fixed(3)))
    assert found(evaluate(also, facts)) == {(2,)}
    assert found(evaluate(also, facts[1:])) == set()


def test_patterns_of_one_variable_alone_meet_in_it() -> None:
    both = triples((A, KNOWS, Fixed(1)), (A, LIKES, Fixed(2)), (Fixed(3), LIKES, A))
    facts = np.array([[5, 7, 1], [5, 8, 2], [3, 8, 5], [6, 7, 1], [6, 8, 2], [5, 7, 1]], np.int64)
    assert found(evaluate(both, facts)) == {(5,)}


def test_a_kind_may_be_a_variable_that_joins() -> None:
    same_kind = triples((A, B, C), (C, B, D))
    facts = np.array([[1, 7, 2], [2, 7, 3], [2, 8, 4]], np.int64)
    assert found(evaluate(same_kind, facts)) == {(1, 7, 2, 3)}


def test_parts_that_share_no_variable_multiply() -> None:
    apart = triples((A, KNOWS, B), (C, LIKES, D), different=((1, 3),))
    facts = np.array([[1, 7, 2], [3, 7, 4], [5, 8, 2], [5, 8, 6]], np.int64)
    expected = {(1, 2, 5, 6), (3, 4, 5, 2), (3, 4, 5, 6)}
    assert found(evaluate(apart, facts)) == expected


def test_only_numbers_lie_in_a_range() -> None:
    bounded = Conjunction(3, (FactPattern((A, KNOWS, B), (Range(2, 1.0, 2.0),)),), 2)
    facts = np.array([[9, 7, identifier] for identifier in range(6)], np.int64)
    numbers = np.array([np.nan, 1.0, 2.5, 2.0])
    assert found(evaluate(bounded, facts, numbers)) == {(9, 1), (9, 3)}
    assert found(evaluate(bounded, facts)) == set()


def test_more_matches_than_allowed_are_refused_and_as_many_are_not() -> None:
    facts = np.array([[1, 7, 2]] + [[2, 7, 10 + one] for one in range(20)], np.int64)
    assert len(evaluate(PATH, facts, max_matches=20)) == 20
    with pytest.raises(BudgetExceeded) as refusal:
        evaluate(PATH, facts, max_matches=19)
    assert (refusal.value.what, refusal.value.limit) == ("matches", 19)


def test_what_is_large_only_on_the_way_is_not_refused() -> None:
    ways = [[1, 7, one] for one in range(10, 40)] + [[one, 7, 2] for one in range(10, 40)] + [[2, 7, 3]]
    facts = np.array([*ways, [3, 7, 50], [50, 7, 3]], np.int64)
    there_and_back = triples((A, KNOWS, B), (B, KNOWS, A))
    assert found(evaluate(there_and_back, facts, max_matches=2)) == {(3, 50), (50, 3)}
    assert found(evaluate(TRIANGLE, facts, max_matches=2)) == set()


def test_matches_come_with_the_memory_of_their_own() -> None:
    window = WindowEvaluation(PATH)
    first = window.evaluate(np.array([[1, 7, 2], [2, 7, 3]], np.int64))
    window.evaluate(np.array([[5, 7, 6], [6, 7, 8]], np.int64))
    assert first.tolist() == [[1, 2, 3]]
    assert first.flags.c_contiguous


def test_facts_that_may_not_be_written_or_lie_apart_need_no_second_compilation() -> None:
    facts = np.array([[1, 7, 2], [2, 7, 3]], np.int64)
    evaluate(PATH, facts)
    compiled = len(evaluation.window_matches.signatures)  # type: ignore[attr-defined]
    apart = np.zeros((4, 3), np.int64)
    apart[::2] = facts
    facts.flags.writeable = False
    assert found(evaluate(PATH, facts)) == found(evaluate(PATH, apart[::2])) == {(1, 2, 3)}
    assert len(evaluation.window_matches.signatures) == compiled  # type: ignore[attr-defined]


# --- stars: rows that hold the only fact of a pattern, and rows that have several ---


def star(*kinds: int, width: int = 3, first: int = 0, different: tuple[tuple[int, int], ...] = ()) -> Conjunction:
    """One variable with a leaf for each kind; beyond three columns, further leaves."""
    leaves = iter(range(first + 1, 100))
    places: list[tuple[Place, ...]] = [
        (Free(first), Fixed(kind), *(Free(next(leaves)) for _ in range(width - 2))) for kind in kinds
    ]
    return Conjunction(width, tuple(map(FactPattern, places)), 1 + len(kinds) * (width - 2), different)


@pytest.mark.parametrize("seed", range(150))
def test_stars_on_a_chain_match_as_defined_however_many_facts_a_row_has(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = Random(seed)
    monkeypatch.setattr(evaluation, "_CHUNK", chance.choice((1, 3, 8192)))
    width, links = chance.choice((3, 4)), chance.randint(0, 2)
    names = iter(range(links + 1, 100))
    patterns = [
        FactPattern((Free(link), Fixed(7), Free(link + 1), *(Free(next(names)) for _ in range(width - 3))))
        for link in range(links)
    ]
    for number in range(chance.randint(2, 4)):
        leaves = (Free(next(names)) for _ in range(width - 2))
        patterns.append(FactPattern((Free(chance.randint(0, links)), Fixed(8 + number), *leaves)))
    used = list(dict.fromkeys(variable for pattern in patterns for variable in pattern.variables))
    chance.shuffle(patterns)
    number_of = {variable: number for number, variable in enumerate(used)}
    patterns = [
        FactPattern(tuple(Free(number_of[at.variable]) if isinstance(at, Free) else at for at in pattern.places))
        for pattern in patterns
    ]
    pairs = [(left, right) for left in range(len(used)) for right in range(left) if chance.random() < 0.1]
    conjunction = Conjunction(width, tuple(patterns), len(used), tuple(pairs))
    window = WindowEvaluation(conjunction)
    for _ in range(3):
        facts = [
            (subject, kind, *(chance.randrange(6) for _ in range(width - 2)))
            for kind in range(7, 13)
            for subject in range(6)
            for _ in range(chance.choice((0, 1, 1, 1, 1, 2)))
        ]
        chance.shuffle(facts)
        facts += facts[: chance.choice((0, 0, 10))]
        expected = naive_matches(conjunction, facts)
        assert found(window.evaluate(matrix(facts, width))) == expected


def test_a_star_with_one_fact_per_measure_is_read_off_its_rows() -> None:
    facts = np.array([[one, kind, 100 * kind + one] for one in range(50) for kind in (3, 1, 2)], np.int64)
    assert found(evaluate(star(1, 2, 3), facts)) == {(one, 100 + one, 200 + one, 300 + one) for one in range(50)}


def test_a_row_with_several_facts_of_one_measure_has_a_match_for_each() -> None:
    facts = np.array([[5, 1, 10], [5, 2, 20], [5, 2, 21], [5, 2, 20], [6, 1, 11], [6, 2, 22], [7, 1, 12]], np.int64)
    assert found(evaluate(star(1, 2), facts)) == {(5, 10, 20), (5, 10, 21), (6, 11, 22)}


def test_values_that_rows_hold_are_compared_where_they_must_differ() -> None:
    differing = star(1, 2, 3, different=((1, 2), (0, 3)))
    facts = np.array(
        [[5, 1, 9], [5, 2, 9], [5, 3, 8], [6, 1, 9], [6, 2, 7], [6, 3, 8], [4, 1, 1], [4, 2, 2], [4, 3, 4]]
    )
    assert found(evaluate(differing, facts)) == {(6, 9, 7, 8)}
    more = np.concatenate((facts, [[5, 2, 3], [4, 3, 4], [4, 3, 3]]))  # not all rows have one fact of each any more
    assert found(evaluate(differing, more)) == {(6, 9, 7, 8), (5, 9, 3, 8), (4, 1, 2, 3)}


def test_stars_that_share_no_variable_multiply() -> None:
    one, other = star(1, 2), star(3, 4, first=3)
    apart = Conjunction(3, one.patterns + other.patterns, 6, ((2, 5),))
    facts = [(10, 1, 50), (10, 2, 60), (11, 1, 51), (11, 2, 61), (20, 3, 70), (20, 4, 60), (21, 3, 71), (21, 4, 62)]
    expected = naive_matches(apart, facts)
    assert len(expected) == 3
    assert found(evaluate(apart, matrix(facts, 3))) == expected


@pytest.mark.parametrize("spread", [1, 16, 17, 1 << 20])
def test_values_far_from_each_other_or_alike_in_their_last_bits_are_told_apart(spread: int) -> None:
    chance = np.random.default_rng(spread)
    facts = np.column_stack((
        chance.integers(0, 3_000, 20_000) * spread, chance.integers(7, 9, 20_000), chance.integers(0, 9, 20_000)
    ))  # fmt: skip
    there = {kind: {row[0] for row in facts[facts[:, 1] == kind].tolist()} for kind in (7, 8)}
    pairs = found(evaluate(triples((A, KNOWS, B), (A, LIKES, C)), facts))
    assert {row[0] for row in pairs} == there[7] & there[8]
    assert pairs == found(by_log(triples((A, KNOWS, B), (A, LIKES, C)), facts))


# --- memory ---


def test_a_window_evaluation_takes_windows_of_any_size_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "_CHUNK", 16)
    monkeypatch.setattr(evaluation, "_KEPT_CELLS", 300)
    window = WindowEvaluation(star(1, 2))
    chance = np.random.default_rng(4)
    for size in (3, 700, 40, 0, 90, 2_000, 10):
        # facts that nobody asks for come first: room that was made for as many as so far does not suffice
        kinds = np.concatenate((np.full(size, 9), chance.integers(1, 3, size)))
        facts = np.column_stack((chance.integers(0, size + 1, 2 * size), kinds, chance.integers(0, 9, 2 * size)))
        assert found(window.evaluate(facts)) == naive_star(facts)
        assert window._arena.size <= 300


def naive_star(facts: Ids) -> set[Row]:
    leaves: dict[tuple[int, int], set[int]] = {}
    for subject, kind, value in facts.tolist():
        leaves.setdefault((subject, kind), set()).add(value)
    return {
        (subject, one, other)
        for (subject, kind), ones in leaves.items()
        if kind == 1
        for one in ones
        for other in leaves.get((subject, 2), ())
    }


@pytest.mark.parametrize("spokes", [7, 8, 9, 100])
def test_far_more_matches_than_the_sizes_let_expect_are_all_found(spokes: int) -> None:
    hub = [[0, kind, value] for kind in (1, 2) for value in range(spokes)]
    facts = np.array(hub + [[one, kind, 1] for one in range(1, 200) for kind in (1, 2)], np.int64)
    total = spokes * spokes + 199
    assert found(evaluate(star(1, 2), facts)) == naive_star(facts)
    assert len(evaluate(star(1, 2), facts, max_matches=total)) == total
    with pytest.raises(BudgetExceeded):
        evaluate(star(1, 2), facts, max_matches=total - 1)


def test_few_matches_do_not_hold_the_memory_that_many_would_have_taken() -> None:
    facts = np.array([[one, kind, 5] for one in range(5_000) for kind in (1, 2)] + [[5_000, 1, 5], [5_000, 2, 6]])
    matches = evaluate(star(1, 2, different=((1, 2),)), facts)
    assert found(matches) == {(5_000, 5, 6)}
    assert memoryview(matches.base).nbytes < 1_000  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(40))
def test_matches_in_pieces_are_the_matches(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "PIECE", 5)
    chance = Random(seed)
    conjunction = random_conjunction(chance)
    facts = matrix(random_facts(chance, conjunction, 40, 6), conjunction.width)
    whole = evaluate(conjunction, facts)
    pieces = list(WindowEvaluation(conjunction).pieces(facts))
    assert found(np.concatenate(pieces)) == found(whole)
    if len(whole) > 1:
        with pytest.raises(BudgetExceeded, match=f"more than {len(whole) - 1:,} match"):
            list(WindowEvaluation(conjunction).pieces(facts, max_matches=len(whole) - 1))


def test_the_matches_of_a_hub_come_in_many_small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "PIECE", 500)
    hub = triples((Free(0), Fixed(7), Free(1)), (Free(1), Fixed(8), Free(2)))
    facts = np.array([(10 + n, 7, 1) for n in range(40)] + [(1, 8, 10 + n) for n in range(200)], np.int64)
    pieces = list(WindowEvaluation(hub).pieces(facts))
    assert sum(map(len, pieces)) == 40 * 200
    assert max(map(len, pieces)) <= 500


@pytest.mark.parametrize("seed", range(40))
def test_several_windows_at_once_have_the_matches_of_each(seed: int) -> None:
    chance = Random(seed)
    conjunction = random_conjunction(chance)
    facts = matrix(random_facts(chance, conjunction, 60, 5), conjunction.width)
    cuts = [sorted(chance.choices(range(len(facts) + 1), k=2)) for _ in range(chance.randint(1, 6))]
    matches, ends = WindowEvaluation(conjunction).windows(facts, np.array(cuts, np.int64))
    each = np.split(matches, ends[:-1])
    assert [found(rows) for rows in each] == [found(evaluate(conjunction, facts[a:b])) for a, b in cuts]
    assert int(ends[-1]) == len(matches) == sum(len(evaluate(conjunction, facts[a:b])) for a, b in cuts)


def test_a_window_beyond_the_facts_is_refused() -> None:
    evaluated = WindowEvaluation(star(1, 2))
    for span in ([0, 3], [-1, 2]):
        with pytest.raises(InternalError, match="not there"):
            evaluated.windows(np.zeros((2, 3), np.int64), np.array([span], np.int64))
