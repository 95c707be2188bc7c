"""The log matcher against the plain meaning of its conjunction, over random streams with many repetitions."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.delta.matching import (
    Fact,
    Row,
    matrix,
    naive_matches,
    random_conjunction,
    random_facts,
    random_numbers,
    summed,
)

from anabranch.delta import log_matcher
from anabranch.delta.batch import Batch
from anabranch.delta.kernels.log_records import NO_RANK, UNRANKED
from anabranch.delta.log_matcher import Deletion, LogMatcher
from anabranch.delta.patterns import (
    BudgetExceeded,
    Changes,
    Conjunction,
    FactPattern,
    Fixed,
    Free,
    MatchTelling,
    Place,
    Range,
    RankTest,
)
from anabranch.errors import InternalError

EDGE, MARK = 1, 2
PATH = Conjunction(3, (FactPattern((Free(0), Fixed(EDGE), Free(1))), FactPattern((Free(1), Fixed(EDGE), Free(2)))), 3)
EITHER_WAY: tuple[Deletion, ...] = ("kept", "joined")
ALL_WAYS: tuple[Deletion, ...] = ("kept", "joined", "auto")
seeds = st.integers(0, 10**9)


def conjunction(*patterns: Sequence[Place], different: tuple[tuple[int, int], ...] = ()) -> Conjunction:
    variables = {place.variable for places in patterns for place in places if isinstance(place, Free)}
    return Conjunction(3, tuple(FactPattern(tuple(places)) for places in patterns), len(variables), different)


def edges(*pairs: tuple[int, int]) -> list[Fact]:
    return [(left, EDGE, right) for left, right in pairs]


def told(changes: Changes) -> list[list[tuple[int, Row]]]:
    """Per slide the weights and rows, sorted."""
    rows = [tuple(row) for row in changes.batch.rows.tolist()]
    both = list(zip(changes.batch.weights.tolist(), rows, strict=True))
    starts = [0, *changes.ends.tolist()]
    return [sorted(both[start:end]) for start, end in pairwise(starts)]


def slid(matcher: LogMatcher, facts: Sequence[Fact], ends: Sequence[int], tails: Sequence[int]) -> list:
    width = matcher.conjunction.width
    return told(matcher.slide(matrix(facts, width), np.array(ends, np.int64), np.array(tails, np.int64)))


def is_empty_house(matcher: LogMatcher) -> bool:
    held = matcher.statistics()
    return not (held.facts or held.entries or held.rows or held.matches or held.kept or matcher.size().rows)


# --- random streams ---


@dataclass(frozen=True)
class Stream:
    conjunction: Conjunction
    facts: list[Fact]
    numbers: np.ndarray
    ends: list[int]
    tails: list[int]

    def expected(self) -> list[set[Row]]:
        windows = [self.facts[tail:end] for tail, end in zip(self.tails, self.ends, strict=True)]
        return [naive_matches(self.conjunction, window, self.numbers) for window in windows]


def random_stream(chance: random.Random) -> Stream:
    """Few ids, so that facts come again while they live; windows slide, tumble, jump, or are shorter than a slide."""
    asked = random_conjunction(chance, width=chance.choice((3, 3, 3, 4, 5)))
    domain = chance.choice((2, 3, 4, 6))
    facts = random_facts(chance, asked, chance.randrange(1, 60), domain)
    manner = chance.choice(("slides", "jumps", "tumbles", "is short"))
    width = chance.randrange(1, 30)
    ends, tails = [0], [0]
    while ends[-1] < len(facts):
        end = min(len(facts), ends[-1] + chance.choice((0, 1, 1, 2, 3, 5, 10, 20)))
        match manner:
            case "slides":
                tail = end - width
            case "jumps":
                tail = chance.randrange(end + 3)
            case "tumbles":
                tail = ends[-1]
            case _:
                tail = end - chance.randrange(1, 4)
        ends.append(end)
        tails.append(max(tail, tails[-1]))
    return Stream(asked, facts, random_numbers(chance, domain), ends, tails)


def driven(stream: Stream, matcher: LogMatcher, chance: random.Random) -> list[set[Row]]:
    """The sum of all changes after each slide, whatever the number of slides per call."""
    answers: list[set[Row]] = []
    answer: set[Row] = set()
    at = first = 0
    while first < len(stream.ends):
        last = min(len(stream.ends), first + chance.choice((1, 1, 2, 5, 100)))
        ends, tails = np.array(stream.ends[first:last]), np.array(stream.tails[first:last])
        changes = matcher.slide(matrix(stream.facts[at : ends[-1]], stream.conjunction.width), ends, tails)
        start = 0
        for end in changes.ends.tolist():
            batch = Batch(changes.batch.rows[start:end], changes.batch.weights[start:end])
            assert len({tuple(row) for row in batch.rows.tolist()}) == len(batch), "a match twice in one slide"
            answer = summed(answer, batch)
            answers.append(answer)
            start = end
        assert start == len(changes.batch)
        assert sorted(map(tuple, matcher.matches().tolist())) == sorted(answer)
        at, first = int(ends[-1]), last
    return answers


@settings(max_examples=150)
@given(seed=seeds, deletion=st.sampled_from(ALL_WAYS))
def test_after_each_slide_the_sum_of_changes_is_the_plain_answer(seed: int, deletion: Deletion) -> None:
    chance = random.Random(seed)
    stream = random_stream(chance)
    matcher = LogMatcher(stream.conjunction, stream.numbers, deletion=deletion)
    assert driven(stream, matcher, chance) == stream.expected()


@settings(max_examples=50)
@given(seed=seeds, deletion=st.sampled_from(ALL_WAYS))
def test_once_all_arrivals_have_left_nothing_is_held(seed: int, deletion: Deletion) -> None:
    chance = random.Random(seed)
    stream = random_stream(chance)
    matcher = LogMatcher(stream.conjunction, stream.numbers, deletion=deletion)
    driven(stream, matcher, chance)
    end = len(stream.facts)
    slid(matcher, [], [end], [max(end, stream.tails[-1])])
    assert is_empty_house(matcher)


@settings(max_examples=50)
@given(seed=seeds, deletion=st.sampled_from(ALL_WAYS))
def test_many_slides_in_one_call_tell_the_same_as_one_slide_per_call(seed: int, deletion: Deletion) -> None:
    stream = random_stream(random.Random(seed))
    at_once = LogMatcher(stream.conjunction, stream.numbers, deletion=deletion)
    one_by_one = LogMatcher(stream.conjunction, stream.numbers, deletion=deletion)
    apart: list = []
    for end, tail, start in zip(stream.ends, stream.tails, [0, *stream.ends], strict=False):
        apart += slid(one_by_one, stream.facts[start:end], [end], [tail])
    assert slid(at_once, stream.facts, stream.ends, stream.tails) == apart


@settings(max_examples=100)
@given(seed=seeds)
def test_after_each_change_the_sum_of_changes_is_the_plain_answer(seed: int) -> None:
    chance = random.Random(seed)
    asked = random_conjunction(chance, width=chance.choice((3, 3, 4, 5)))
    domain = chance.choice((2, 3, 4, 6))
    numbers = random_numbers(chance, domain)
    matcher = LogMatcher(asked, numbers)
    content: set[Fact] = set()
    answer: set[Row] = set()
    for _ in range(chance.randrange(1, 12)):
        share = chance.choice((0.1, 0.5, 1.0))
        removed = [fact for fact in sorted(content) if chance.random() < share]
        content.difference_update(removed)
        added = sorted(set(random_facts(chance, asked, chance.randrange(12), domain)) - content)
        content.update(added)
        answer = summed(answer, matcher.change(matrix(removed, asked.width), matrix(added, asked.width)))
        assert answer == naive_matches(asked, content, numbers)
        assert sorted(map(tuple, matcher.matches().tolist())) == sorted(answer)
    matcher.change(matrix(sorted(content), asked.width), matrix([], asked.width))
    assert is_empty_house(matcher)


def random_telling(chance: random.Random, variables: int) -> MatchTelling:
    names = range(variables)
    told = tuple(chance.sample(names, chance.randint(0, variables)))
    pairs = [tuple(chance.sample(names, 2)) for _ in range(chance.choice((0, 1, 2)))] if variables > 1 else []
    tests = tuple(RankTest(low, high, chance.random() < 0.5) for low, high in pairs)
    return MatchTelling(told, tests, frozenset(chance.sample(told, len(told) // 2)) if tests else frozenset())


def shown_as(telling: MatchTelling, row: Row) -> Row | None:
    """What is told of a match; None: nothing."""
    pairs = [(row[one.low], row[one.high], one.or_equal) for one in telling.tests]
    decided = [pair for pair in pairs if UNRANKED not in pair[:2]]
    if any(NO_RANK in pair[:2] or not (pair[0] < pair[1] or (pair[2] and pair[0] == pair[1])) for pair in decided):
        return None
    spared = telling.spared if len(decided) == len(pairs) else frozenset()
    return tuple(0 if one in spared else row[one] for one in telling.told)


@settings(max_examples=150)
@given(seed=seeds)
def test_what_is_told_of_matches_over_several_changes_adds_up_to_the_plain_answer(seed: int) -> None:
    chance = random.Random(seed)
    asked = random_conjunction(chance, width=chance.choice((3, 3, 4, 5)))
    domain = chance.choice((2, 3, 4, 6))
    numbers = random_numbers(chance, domain)
    telling = random_telling(chance, asked.variables)
    matcher = LogMatcher(asked, numbers, telling=telling)
    content: set[Fact] = set()
    answer: Counter[Row] = Counter()
    for _ in range(chance.randrange(1, 6)):
        removed: list[Fact] = []
        added: list[Fact] = []
        ends: list[tuple[int, int]] = []
        expected: list[Counter[Row]] = []
        for _ in range(chance.randrange(4)):
            gone = [fact for fact in sorted(content) if chance.random() < 0.4]
            content.difference_update(gone)
            new = sorted(set(random_facts(chance, asked, chance.randrange(12), domain)) - content)
            content.update(new)
            removed, added = removed + gone, added + new
            ends.append((len(removed), len(added)))
            rows = [shown_as(telling, row) for row in naive_matches(asked, content, numbers)]
            expected.append(Counter(row for row in rows if row is not None))
        both = np.array(ends, np.int64).reshape(len(ends), 2)
        changes = matcher.change_slides(
            matrix(removed, asked.width), matrix(added, asked.width), both[:, 0], both[:, 1]
        )
        for part, rows_then in zip(changes.slides(), expected, strict=True):
            for row, weight in zip(map(tuple, part.rows.tolist()), part.weights.tolist(), strict=True):
                answer[row] += weight
            assert +answer == rows_then
        assert Counter(map(tuple, matcher.matches().tolist())) == +answer
    matcher.change(matrix(sorted(content), asked.width), matrix([], asked.width))
    assert is_empty_house(matcher)


def test_matches_that_look_the_same_are_told_once_with_their_number() -> None:
    matcher = LogMatcher(PATH, telling=MatchTelling((1,)))
    many = edges((1, 5), (2, 5), (3, 5), (5, 6))
    batch = matcher.change(matrix([], 3), matrix(many, 3))
    assert (batch.rows.tolist(), batch.weights.tolist()) == ([[5]], [3])
    assert matcher.statistics().matches == 3
    batch = matcher.change(matrix(many[-1:], 3), matrix([], 3))
    assert (batch.rows.tolist(), batch.weights.tolist()) == ([[5]], [-3])


def test_a_match_with_a_null_rank_is_not_told_and_one_without_a_rank_is_told_whole() -> None:
    telling = MatchTelling((0, 1, 2), (RankTest(0, 2, False),), frozenset({0, 2}))
    matcher = LogMatcher(PATH, telling=telling)
    facts = edges((1, 5), (NO_RANK, 5), (UNRANKED, 5), (9, 5), (5, 8))
    batch = matcher.change(matrix([], 3), matrix(facts, 3))
    assert sorted(map(tuple, batch.rows.tolist())) == [(0, 5, 0), (UNRANKED, 5, 8)]
    with pytest.raises(InternalError):
        slid(LogMatcher(PATH, telling=telling), facts, [5], [0])


def test_a_single_fact_is_bound_before_those_that_multiply() -> None:
    node, edge = Fixed(MARK), Fixed(EDGE)
    patterns = (
        FactPattern((Free(0), edge, Free(1))),
        FactPattern((Free(2), edge, Free(1))),
        FactPattern((Free(1), node, Free(3)), is_single=True),
        FactPattern((Free(2), node, Free(4)), is_single=True),
    )
    asked = Conjunction(3, patterns, 5)
    matcher = LogMatcher(asked)
    nodes: list[Fact] = [(one, MARK, 10 + one) for one in (1, 2, 3, 9)]
    content = {*nodes, *edges((1, 9), (2, 9), (3, 9))}
    answer = summed(set(), matcher.change(matrix([], 3), matrix(sorted(content), 3)))
    assert answer == naive_matches(asked, content)
    for old, new in (((2, MARK, 12), (2, MARK, 22)), ((9, MARK, 19), (9, MARK, 29)), ((2, EDGE, 9), (4, EDGE, 9))):
        content = content - {old} | {new}
        answer = summed(answer, matcher.change(matrix([old], 3), matrix([new], 3)))
        assert answer == naive_matches(asked, content)


@pytest.mark.parametrize(
    ("removed", "added", "ends"),
    [(1, 0, [[1], []]), (0, 2, [[0, 0], [2, 1]]), (0, 1, [[0], [2]]), (1, 0, [[-1, 1], [0, 0]])],
)
def test_slides_of_changes_that_do_not_fit_their_facts_are_refused(
    removed: int, added: int, ends: list[list[int]]
) -> None:
    facts = matrix(edges((1, 2), (2, 3)), 3)
    bounds = np.array(ends[0], np.int64), np.array(ends[1], np.int64)
    with pytest.raises(InternalError):
        LogMatcher(PATH).change_slides(facts[:removed], facts[:added], *bounds)


# --- sliding, by hand ---


@pytest.mark.parametrize("deletion", EITHER_WAY)
def test_a_match_enters_with_its_last_fact_and_leaves_with_its_first(deletion: Deletion) -> None:
    matcher = LogMatcher(PATH, deletion=deletion)
    changes = slid(matcher, edges((1, 2), (2, 3), (8, 9)), [1, 2, 3], [0, 0, 1])
    assert changes == [[], [(1, (1, 2, 3))], [(-1, (1, 2, 3))]]


@pytest.mark.parametrize("deletion", EITHER_WAY)
def test_a_fact_that_comes_again_keeps_its_matches(deletion: Deletion) -> None:
    matcher = LogMatcher(PATH, deletion=deletion)
    changes = slid(matcher, edges((1, 2), (2, 3), (1, 2), (8, 9)), [2, 3, 4, 4], [0, 0, 1, 2])
    assert changes == [[(1, (1, 2, 3))], [], [], [(-1, (1, 2, 3))]]


@pytest.mark.parametrize("deletion", EITHER_WAY)
def test_a_fact_that_leaves_in_the_slide_in_which_it_comes_again_stays(deletion: Deletion) -> None:
    matcher = LogMatcher(PATH, deletion=deletion)
    assert slid(matcher, edges((1, 2), (2, 3), (1, 2)), [2, 3], [0, 1]) == [[(1, (1, 2, 3))], []]


@pytest.mark.parametrize("deletion", EITHER_WAY)
def test_arrivals_that_a_short_window_does_not_reach_never_match(deletion: Deletion) -> None:
    matcher = LogMatcher(PATH, deletion=deletion)
    assert slid(matcher, edges((1, 2), (2, 3), (3, 4), (4, 5)), [4], [2]) == [[(1, (3, 4, 5))]]


@pytest.mark.parametrize("deletion", EITHER_WAY)
def test_an_unreached_arrival_does_not_refresh_a_fact(deletion: Deletion) -> None:
    matcher = LogMatcher(PATH, deletion=deletion)
    facts = edges((1, 2), (2, 3), (1, 2), (8, 9))
    assert slid(matcher, facts, [2, 4], [0, 3]) == [[(1, (1, 2, 3))], [(-1, (1, 2, 3))]]


def test_a_tail_beyond_all_arrivals_keeps_later_ones_out_until_it_is_reached() -> None:
    matcher = LogMatcher(PATH)
    assert slid(matcher, edges((1, 2), (2, 3)), [2], [4]) == [[]]
    assert slid(matcher, edges((3, 4), (4, 5), (5, 6), (6, 7)), [4, 6], [4, 4]) == [[], [(1, (5, 6, 7))]]


@pytest.mark.parametrize("deletion", EITHER_WAY)
def test_a_fact_whose_number_came_between_its_arrivals_enters_the_pattern_that_asks_for_it(deletion: Deletion) -> None:
    asked = Conjunction(
        3,
        (
            FactPattern((Free(0), Fixed(EDGE), Free(1))),
            FactPattern((Free(0), Fixed(EDGE), Free(2)), (Range(2, 1.0, 2.0),)),
        ),
        3,
    )
    matcher = LogMatcher(asked, deletion=deletion)
    fact = matrix(edges((7, 1)), 3)
    assert told(matcher.slide(fact, np.array([1]), np.array([0]))) == [[]]
    assert told(matcher.slide(fact, np.array([2]), np.array([0]), np.array([5.0, 1.5]))) == [[(1, (7, 1, 1))]]


def test_a_fact_that_fits_two_patterns_is_in_both() -> None:
    matcher = LogMatcher(PATH)
    assert slid(matcher, edges((1, 1)), [1], [0]) == [[(1, (1, 1, 1))]]


def test_a_pattern_without_variables_says_whether_its_fact_is_there() -> None:
    matcher = LogMatcher(conjunction((Fixed(5), Fixed(EDGE), Fixed(6))))
    changes = slid(matcher, edges((5, 6), (6, 5), (5, 6)), [1, 2, 3, 3], [0, 0, 2, 3])
    assert changes == [[(1, ())], [], [], [(-1, ())]]


def test_parts_that_share_no_variable_are_combined() -> None:
    matcher = LogMatcher(conjunction((Free(0), Fixed(EDGE), Fixed(5)), (Free(1), Fixed(MARK), Fixed(5))))
    changes = slid(matcher, [(1, EDGE, 5), (2, EDGE, 5), (3, MARK, 5)], [3], [0])
    assert changes == [[(1, (1, 3)), (1, (2, 3))]]


def test_a_variable_kind_joins_like_any_other() -> None:
    matcher = LogMatcher(conjunction((Free(0), Free(1), Fixed(5)), (Free(1), Fixed(MARK), Free(2))))
    assert slid(matcher, [(1, 9, 5), (9, MARK, 7), (2, 8, 5)], [3], [0]) == [[(1, (1, 9, 7))]]


def test_pairs_that_must_differ_do() -> None:
    asked = conjunction((Free(0), Fixed(EDGE), Free(1)), (Free(1), Fixed(EDGE), Free(2)), different=((0, 2),))
    assert slid(LogMatcher(asked), edges((1, 2), (2, 1), (2, 3)), [3], [0]) == [[(1, (1, 2, 3))]]


def test_ranges_see_numbers_that_came_later() -> None:
    asked = Conjunction(3, (FactPattern((Free(0), Fixed(EDGE), Free(1)), (Range(2, 1.0, 2.0),)),), 2)
    matcher = LogMatcher(asked, np.array([np.nan, 5.0]))
    assert slid(matcher, edges((7, 0), (7, 1), (7, 2)), [3], [0]) == [[]]
    later = matcher.slide(matrix(edges((8, 2)), 3), np.array([4]), np.array([0]), np.array([np.nan, 5.0, 2.0]))
    assert told(later) == [[(1, (8, 2))]]


# --- ways of deletion, hubs, room ---


def star(arms: int, points: int) -> list[Fact]:
    return [(hub, MARK + arm, 1000 + point) for hub in (1, 2) for arm in range(arms) for point in range(points)]


def test_where_matches_abound_keeping_gives_way_to_joining_and_comes_back() -> None:
    asked = conjunction((Free(0), Fixed(MARK), Free(1)), (Free(0), Fixed(MARK + 1), Free(2)))
    matcher = LogMatcher(asked)
    assert matcher.statistics().deletion == "kept"
    many = star(2, 600)
    answer: set[Row] = set()
    for start in range(0, len(many), 100):
        end = start + 100
        answer = summed(answer, matcher.slide(matrix(many[start:end], 3), np.array([end]), np.array([0])).batch)
    assert matcher.statistics().deletion == "joined"
    assert answer == naive_star(many)
    few = [(5000 + number, MARK, number) for number in range(9000)]
    facts = many + few
    ends = np.arange(len(many) + 100, len(facts) + 1, 100)
    answer = summed(answer, matcher.slide(matrix(few, 3), ends, np.maximum(0, ends - 2000)).batch.consolidated())
    assert matcher.statistics().deletion == "kept"
    assert answer == set()
    pair = [(1, MARK, 5), (1, MARK + 1, 6), (9, EDGE, 9)]
    total = len(facts)
    assert slid(matcher, pair, [total + 2, total + 3], [total, total + 1]) == [[(1, (1, 5, 6))], [(-1, (1, 5, 6))]]


def naive_star(facts: Sequence[Fact]) -> set[Row]:
    return {
        (hub, left, right)
        for hub, arm, left in facts
        if arm == MARK
        for other, arm_too, right in facts
        if other == hub and arm_too == MARK + 1
    }


DENSE = conjunction((Free(0), Fixed(EDGE), Free(1)), (Free(1), Fixed(EDGE), Free(2)), (Free(2), Fixed(MARK), Free(0)))


def dense_stream(seed: int) -> list[Fact]:
    """Some thousand facts between sixty ends: every chain is long and every fact comes again."""
    chance = random.Random(seed)
    return [(chance.randrange(60), MARK if number % 10 == 0 else EDGE, chance.randrange(60)) for number in range(6000)]


def closed(window: Sequence[Fact]) -> set[Row]:
    """What DENSE means."""
    onward: dict[int, set[int]] = {}
    for left, kind, right in window:
        if kind == EDGE:
            onward.setdefault(left, set()).add(right)
    return {
        (back, middle, left)
        for left, kind, back in window
        if kind == MARK
        for middle in onward.get(back, ())
        if left in onward.get(middle, ())
    }


@pytest.mark.parametrize("deletion", ALL_WAYS)
def test_dense_hubs_are_hashed_and_still_right(deletion: Deletion) -> None:
    facts = dense_stream(3)
    ends = list(range(500, 6001, 500))
    tails = [max(0, end - 2000) for end in ends]
    matcher = LogMatcher(DENSE, deletion=deletion)
    changes = matcher.slide(matrix(facts, 3), np.array(ends), np.array(tails))
    assert matcher.statistics().hashed
    answer, start = set[Row](), 0
    for end, window_end, tail in zip(changes.ends.tolist(), ends, tails, strict=True):
        answer = summed(answer, Batch(changes.batch.rows[start:end], changes.batch.weights[start:end]))
        start = end
        assert answer == closed(facts[tail:window_end])


def test_what_is_hashed_is_found_again_after_the_node_table_has_shrunk() -> None:
    far = [(10_000 + number, MARK, 20_000 + number) for number in range(6000)]
    dense = edges(*((left, right) for left in range(40) for right in range(40)))
    matcher = LogMatcher(DENSE)
    slid(matcher, far + dense, [7600], [0])
    assert matcher.statistics().hashed == 1  # the first pattern that a fact fits tells whether it lives
    before = matcher.size().bytes
    slid(matcher, [], [7600], [6000])
    assert matcher.size().bytes < 0.6 * before
    slid(matcher, dense, [9200], [6000])
    assert matcher.statistics().facts == 2 * len(dense)


def test_a_changing_set_with_hubs_is_hashed_and_shrinks_again() -> None:
    chance = random.Random(4)
    matcher = LogMatcher(conjunction((Free(0), Fixed(EDGE), Free(1)), (Free(0), Fixed(MARK), Fixed(5))))
    content = sorted({(chance.randrange(3), EDGE, chance.randrange(20_000)) for _ in range(20_000)})
    matcher.change(matrix([], 3), matrix(content, 3))
    largest = matcher.size().bytes
    kept = content[::100]
    removed = sorted(set(content) - set(kept))
    half = len(removed) // 2
    matcher.change(matrix(removed[:half], 3), matrix([], 3))
    matcher.change(matrix(removed[half:], 3), matrix([], 3))
    assert matcher.statistics().hashed == 1
    assert matcher.size().rows == len(kept)
    assert matcher.size().bytes < largest / 10
    entered = matcher.change(matrix([], 3), matrix([(0, MARK, 5), (1, MARK, 5), (2, MARK, 5)], 3))
    assert sorted(map(tuple, entered.rows.tolist())) == [(left, right) for left, _, right in kept]


def test_a_window_that_grew_and_emptied_gives_its_memory_back() -> None:
    matcher = LogMatcher(PATH, deletion="kept")
    at_first = matcher.size().bytes
    path = edges(*((number, number + 1) for number in range(50_000)))
    slid(matcher, path, [50_000], [0])
    assert matcher.size().bytes > 50 * at_first
    slid(matcher, [], [50_000, 50_000], [49_000, 49_000])
    slid(matcher, [], [50_000], [49_000])  # what was told is given back by the next call
    assert matcher.size().bytes < 20 * at_first
    leaving = matcher.slide(matrix([], 3), np.array([50_000]), np.array([49_997])).batch
    assert len(leaving) == 997
    assert sorted(map(tuple, matcher.matches().tolist())) == [(49_997, 49_998, 49_999), (49_998, 49_999, 50_000)]


def test_removing_what_is_not_there_and_adding_what_is_changes_nothing() -> None:
    matcher = LogMatcher(PATH)
    facts = matrix(edges((1, 2), (2, 3)), 3)
    assert len(matcher.change(matrix([], 3), facts)) == 1
    assert len(matcher.change(matrix(edges((7, 8)), 3), facts)) == 0
    assert matcher.statistics().facts == 4


def test_a_kernel_that_comes_back_after_each_step_tells_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_matcher, "_FUEL", 0)
    for seed in range(20):
        chance = random.Random(seed)
        stream = random_stream(chance)
        matcher = LogMatcher(stream.conjunction, stream.numbers, deletion="joined")
        assert driven(stream, matcher, chance) == stream.expected()


@settings(max_examples=50)
@given(seed=seeds, deletion=st.sampled_from(ALL_WAYS))
def test_looking_ahead_changes_nothing(seed: int, deletion: Deletion) -> None:
    chance = random.Random(seed)
    stream = random_stream(chance)
    matcher = LogMatcher(stream.conjunction, stream.numbers, deletion=deletion)
    matcher._state.is_scattered[0] = 1  # as if the tables were large
    assert driven(stream, matcher, chance) == stream.expected()


@pytest.mark.parametrize("deletion", EITHER_WAY)
def test_arrivals_scattered_over_large_tables_are_looked_ahead_at_and_still_right(deletion: Deletion) -> None:
    generator = np.random.default_rng(5)
    ends = generator.integers(10, 100_010, (140_000, 2))
    facts = np.column_stack((ends[:, 0], np.full(len(ends), EDGE), ends[:, 1]))
    stops = np.arange(10_000, len(facts) + 1, 10_000)
    tails = np.maximum(0, stops - 100_000)
    matcher = LogMatcher(PATH, deletion=deletion)
    changes = matcher.slide(facts, stops, tails).batch.consolidated()
    onward: dict[int, set[int]] = {}
    for left, right in ends[tails[-1] :].tolist():
        onward.setdefault(left, set()).add(right)
    expected = {
        (left, middle, right)
        for left, reached in onward.items()
        for middle in reached
        for right in onward.get(middle, ())
    }
    assert matcher.statistics().rows > 65_536
    assert (changes.weights == 1).all()
    assert set(map(tuple, changes.rows.tolist())) == expected


# --- refusals ---


def test_more_matches_in_one_slide_than_allowed_are_an_error_and_end_the_matcher() -> None:
    matcher = LogMatcher(PATH, max_matches=10)
    hub = edges(*((number, 100) for number in range(4)), *((100, 200 + number) for number in range(3)))
    with pytest.raises(BudgetExceeded, match="10 matches"):
        slid(matcher, hub, [7], [0])
    with pytest.raises(InternalError):
        matcher.matches()


def test_more_kept_matches_than_allowed_are_an_error_only_when_they_must_be_kept() -> None:
    path = edges(*((number, number + 1) for number in range(20)))
    ends, tails = list(range(1, 21)), [0] * 20
    assert len(slid(LogMatcher(PATH, max_matches=10), path, ends, tails)) == 20
    with pytest.raises(BudgetExceeded):
        slid(LogMatcher(PATH, deletion="kept", max_matches=10), path, ends, tails)


def test_more_bytes_than_allowed_are_an_error_either_way() -> None:
    path = matrix(edges(*((number, number + 1) for number in range(10_000))), 3)
    with pytest.raises(BudgetExceeded, match="100,000 bytes"):
        LogMatcher(PATH, max_bytes=100_000).slide(path, np.array([10_000]), np.array([0]))
    with pytest.raises(BudgetExceeded, match="100,000 bytes"):
        LogMatcher(PATH, max_bytes=100_000).change(matrix([], 3), path)


def test_a_matcher_is_driven_in_one_way_only() -> None:
    matcher = LogMatcher(PATH)
    slid(matcher, [], [], [])
    with pytest.raises(InternalError, match="driven by slide"):
        matcher.change(matrix([], 3), matrix([], 3))


@pytest.mark.parametrize(
    ("ends", "tails"),
    [([1], [0]), ([3], [0]), ([2, 1, 2], [0, 0, 0]), ([2, 2], [1, 0]), ([2], [0, 0]), ([-1, 2], [0, 0])],
)
def test_slides_that_do_not_fit_the_arrivals_are_refused(ends: list[int], tails: list[int]) -> None:
    with pytest.raises(InternalError):
        slid(LogMatcher(PATH), edges((1, 2), (2, 3)), ends, tails)


def test_facts_of_another_width_are_refused() -> None:
    with pytest.raises(InternalError, match="3 columns"):
        LogMatcher(PATH).slide(np.zeros((1, 4), np.int64), np.array([1]), np.array([0]))


def test_more_patterns_than_there_is_room_for_are_refused() -> None:
    with pytest.raises(InternalError, match="64 patterns"):
        LogMatcher(conjunction(*[(Free(0), Fixed(EDGE), Free(1))] * 65))


def test_sixty_four_patterns_are_matched() -> None:
    asked = conjunction(*[(Free(0), Fixed(kind), Free(kind + 1)) for kind in range(64)])
    facts = [(7, kind, 100 + kind) for kind in range(64)]
    assert slid(LogMatcher(asked), facts, [64], [0]) == [[(1, (7, *range(100, 164)))]]


# --- pieces ---


def hub(spokes: int) -> tuple[Conjunction, list[Fact]]:
    """`spokes` that come in and as many that go out: their square are the matches."""
    ways = conjunction((Free(0), Fixed(7), Free(1)), (Free(1), Fixed(8), Free(2)))
    return ways, [(10 + n, 7, 1) for n in range(spokes)] + [(1, 8, 10 + n) for n in range(spokes)]


@pytest.mark.parametrize("deletion", ["auto", "kept", "joined"])
def test_many_changes_of_a_slide_come_in_pieces_and_what_leaves_comes_first(
    deletion: Deletion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LogMatcher, "piece", 100)
    ways, facts = hub(30)
    matcher = LogMatcher(ways, deletion=deletion)
    first = list(matcher.slide_once(matrix(facts, 3), 0))
    assert len(first) > 5
    assert max(map(len, first)) < 200
    following = list(matcher.slide_once(matrix([(n, 7, 1) for n in range(100, 130)], 3), 15))
    signs = [weight for piece in following for weight in piece.weights.tolist()]
    assert signs == sorted(signs)
    assert {-1, 1} == set(signs)
    there: set[Row] = set()
    for piece in (*first, *following):
        there = summed(there, piece)
    assert there == naive_matches(ways, [*facts[15:], *[(n, 7, 1) for n in range(100, 130)]])
    assert len(list(matcher.slide_once(matrix([], 3), 15))) == 1


def test_changes_of_a_set_come_in_pieces_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LogMatcher, "piece", 100)
    ways, facts = hub(30)
    matcher = LogMatcher(ways)
    there: set[Row] = set()
    for removed, added in (([], facts), (facts[:20], [(500, 7, 1)]), (facts[20:], [])):
        pieces = list(matcher.change_in_pieces(matrix(removed, 3), matrix(added, 3)))
        assert len(pieces) > 1
        for piece in pieces:
            there = summed(there, piece)
    assert there == set()


def test_a_limit_of_matches_holds_over_all_pieces_of_a_slide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LogMatcher, "piece", 100)
    ways, facts = hub(30)
    assert sum(map(len, LogMatcher(ways, max_matches=900).slide_once(matrix(facts, 3), 0))) == 900
    with pytest.raises(BudgetExceeded):
        list(LogMatcher(ways, max_matches=899).slide_once(matrix(facts, 3), 0))


def test_a_batch_of_one_match_stays_as_it_is() -> None:
    """A single row of the output is contiguous: without care it would be the output itself, which is written again."""
    single = Conjunction(3, (FactPattern((Free(0), Fixed(7), Free(1))),), 2)
    for give in (
        lambda matcher, fact: matcher.change(matrix([], 3), matrix([fact], 3)),
        lambda matcher, fact: matcher.slide(matrix([fact], 3), np.array([fact[0]]), np.array([0])).batch,
    ):
        matcher = LogMatcher(single)
        first = give(matcher, (1, 7, 5))
        give(matcher, (2, 7, 6))
        assert first.rows.tolist() == [[1, 5]]
