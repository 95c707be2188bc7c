"""Joins on changes say at every step what the plain join of the bags says."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from tests.unit.delta.bags import Bag, ChangingBag, Row, accumulate, follows, summed

from anabranch.delta.batch import NULL, Batch, Ids, Mask
from anabranch.delta.operators import join as join_module
from anabranch.delta.operators import pairs as pairs_module
from anabranch.delta.operators.anti_join import AntiJoin
from anabranch.delta.operators.base import DeltaOperator
from anabranch.delta.operators.join import SymmetricHashJoin
from anabranch.delta.operators.left_join import SymmetricHashLeftJoin
from anabranch.delta.operators.mark import Arguments, MarkJoin
from anabranch.delta.operators.shelves import Shelves
from anabranch.delta.operators.union import BagUnion
from anabranch.delta.trace import TraceRows

SharedColumns = Sequence[tuple[int, int, bool]]
Join = type[SymmetricHashJoin] | type[SymmetricHashLeftJoin]
STEPS = [(1, 12), (7, 5), (60, 3)]
"""Most changes per batch, and batches: small steps and big ones."""


def same(ids: Ids) -> Ids:
    """2 and 3 are one class, 4 and 5, and so on; null is its own."""
    return ids & ~1


def combine(left: Ids, right: Ids) -> Ids:
    assert (left != right).all()
    return left * 100 + right


def condition(rows: Ids) -> Mask:
    return rows.sum(axis=1) % 3 != 0


def source(seed: int, width: int, nullable: Sequence[int], values: int = 4) -> ChangingBag:
    """Ids 2 up to 2 + values, and nulls in some columns."""

    def draw(rng: random.Random) -> Row:
        return tuple(
            NULL if column in nullable and rng.random() < 0.3 else rng.randrange(2, 2 + values)
            for column in range(width)
        )

    return ChangingBag(seed, width, draw)


# --- the plain joins ---


def passes(row: Row) -> bool:
    return sum(row) % 3 != 0


def added(right: Row, shared: SharedColumns) -> Row:
    taken = {one for _, one, _ in shared}
    return tuple(value for column, value in enumerate(right) if column not in taken)


def strictly(left: Row, right: Row, shared: SharedColumns, classes: bool, combines: bool) -> Row | None:
    joined = list(left)
    for here, there, _ in shared:
        mine, other = left[here], right[there]
        if NULL in (mine, other) or (mine & ~1 != other & ~1 if classes else mine != other):
            return None
        if mine != other and combines:
            joined[here] = mine * 100 + other
    return (*joined, *added(right, shared))


def leniently(left: Row, right: Row, shared: SharedColumns) -> Row | None:
    joined = list(left)
    for here, there, _ in shared:
        mine, other = left[here], right[there]
        if NULL not in (mine, other) and mine != other:
            return None
        joined[here] = mine or other
    return (*joined, *added(right, shared))


def plain_join(left: Bag, right: Bag, meet: Callable[[Row, Row], Row | None], outer: int | None, tests: bool) -> Bag:
    """`outer` is the number of nulls behind a left row that stays alone; None for the inner join."""
    result: Bag = Counter()
    for mine, times in left.items():
        alone = True
        for other, others in right.items():
            joined = meet(mine, other)
            if joined is not None and (not tests or passes(joined)):
                alone = False
                result[joined] += times * others
        if alone and outer is not None:
            result[(*mine, *(NULL,) * outer)] += times
    return result


def plain_minus(left: Bag, right: Bag, shared: SharedColumns) -> Bag:
    def takes_away(mine: Row, other: Row) -> bool:
        both = [(mine[here], other[there]) for here, there, _ in shared if mine[here] and other[there]]
        return bool(both) and all(one == two for one, two in both)

    return Counter({mine: times for mine, times in left.items() if not any(takes_away(mine, one) for one in right)})


# --- inner and left join ---

STRICT = [
    (2, 2, [(0, 0, True)]),
    (2, 3, [(1, 0, True), (0, 2, True)]),
    (1, 1, [(0, 0, True)]),
    (2, 1, []),
    (0, 2, []),
    (3, 0, []),
    (3, 3, [(2, 1, True), (0, 0, True), (1, 2, True)]),
]
LENIENT = [
    (2, 2, [(0, 0, True)]),
    (2, 2, [(0, 1, False)]),
    (3, 3, [(0, 0, True), (2, 1, False)]),
    (3, 3, [(0, 2, False), (1, 1, False)]),
    (2, 2, []),
]


@pytest.mark.parametrize("join", [SymmetricHashJoin, SymmetricHashLeftJoin])
@pytest.mark.parametrize(("left_width", "right_width", "shared"), STRICT)
@pytest.mark.parametrize("tests", [False, True])
def test_a_strict_join_follows_the_plain_one(
    join: Join, left_width: int, right_width: int, shared: SharedColumns, tests: bool
) -> None:
    for classes, combines in ((False, False), (True, False), (True, True)):
        for seed in range(4):
            for most, steps in STEPS:
                nulls = range(3) if seed % 2 else ()
                operator = join(
                    left_width,
                    right_width,
                    shared,
                    lenient=False,
                    same=same if classes else None,
                    combine=combine if combines else None,
                    condition=condition if tests else None,
                )
                outer = operator.width - left_width if join is SymmetricHashLeftJoin else None
                follows(
                    operator,
                    (source(seed, left_width, nulls), source(seed + 1000, right_width, nulls)),
                    lambda left, right, classes=classes, combines=combines, outer=outer: plain_join(
                        left, right, lambda mine, other: strictly(mine, other, shared, classes, combines), outer, tests
                    ),
                    steps,
                    most,
                )


@pytest.mark.parametrize("join", [SymmetricHashJoin, SymmetricHashLeftJoin])
@pytest.mark.parametrize(("left_width", "right_width", "shared"), LENIENT)
@pytest.mark.parametrize("tests", [False, True])
def test_a_lenient_join_follows_the_plain_one(
    join: Join, left_width: int, right_width: int, shared: SharedColumns, tests: bool
) -> None:
    for seed in range(12):
        for most, steps in STEPS:
            operator = join(
                left_width, right_width, shared, lenient=True, same=same, condition=condition if tests else None
            )
            outer = operator.width - left_width if join is SymmetricHashLeftJoin else None
            certain_left = {left for left, _, certain in shared if certain}
            certain_right = {right for _, right, certain in shared if certain}
            follows(
                operator,
                (
                    source(seed, left_width, [one for one in range(left_width) if one not in certain_left]),
                    source(seed + 1000, right_width, [one for one in range(right_width) if one not in certain_right]),
                ),
                lambda left, right, outer=outer: plain_join(
                    left, right, lambda mine, other: leniently(mine, other, shared), outer, tests
                ),
                steps,
                most,
            )


def test_pairs_without_a_key_are_made_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs_module, "_MOST_PAIRS", 5)
    shared = [(0, 0, False)]
    for seed in range(10):
        follows(
            SymmetricHashLeftJoin(2, 2, shared, lenient=True, condition=condition),
            (source(seed, 2, (0, 1)), source(seed + 50, 2, (0, 1))),
            lambda left, right: plain_join(left, right, lambda one, two: leniently(one, two, shared), 1, True),
            most=30,
        )


def test_rows_that_may_be_unbound_are_asked_for_by_what_both_sides_have() -> None:
    shelves = Shelves(3, (0, 2))
    rows = Batch.of([(4, 7, 5), (4, 8, NULL), (6, 9, 5)], [1, 1, 1], 3)
    shelves.add(rows)
    asked = np.array([(5, 4), (NULL, 4), (NULL, NULL)], np.int64)

    def partners(overlap: bool) -> Bag:
        return Counter(
            (int(chosen[one]), *row, *index.keys)
            for chosen, keys, index in shelves.routes(asked, (1, 0), overlap)
            for one, row in zip(*_listed(index.probe(asked.take(chosen, axis=0).take(keys, axis=1))), strict=True)
        )

    bound = Counter([(0, 4, 7, 5, 0, 2), (0, 4, 8, NULL, 0), (1, 4, 7, 5, 0), (1, 4, 8, NULL, 0)])
    assert partners(overlap=True) == bound
    assert partners(overlap=False) == bound + Counter([(2, 4, 7, 5), (2, 4, 8, NULL), (2, 6, 9, 5)])
    assert shelves.size().bytes > 0
    shelves.add(-rows)
    assert shelves.size() == (0, 0)


def _listed(found: TraceRows) -> tuple[list[int], list[list[int]]]:
    return found.asked.tolist(), found.rows.tolist()


def entering(*rows: Row) -> Batch:
    return Batch.of(rows, [1] * len(rows), len(rows[0]))


NOTHING = Batch.empty(2)


def test_a_pair_whose_rows_come_and_go_at_one_instant_is_never_seen() -> None:
    join = SymmetricHashJoin(2, 2, [(0, 0, True)])
    join.apply(NOTHING, entering((2, 7)))
    assert len(join.apply(entering((2, 5)), -entering((2, 7)))) == 0


def test_a_left_row_that_comes_and_goes_with_its_partner_is_never_seen_alone() -> None:
    join = SymmetricHashLeftJoin(2, 2, [(0, 0, True)])
    assert summed([join.apply(entering((2, 5)), entering((2, 7)))]) == {(2, 5, 7): 1}
    change = join.apply(-entering((2, 5)), -entering((2, 7)))
    assert change.rows.tolist() == [[2, 5, 7]]
    assert change.weights.tolist() == [-1]


def test_a_partner_that_is_replaced_leaves_no_gap() -> None:
    for tests in (None, lambda rows: np.ones(len(rows), np.bool_)):
        join = SymmetricHashLeftJoin(2, 2, [(0, 0, True)], condition=tests)
        join.apply(entering((2, 5)), entering((2, 7)))
        change = join.apply(NOTHING, Batch.of([(2, 7), (2, 8)], [-1, 1], 2))
        assert len(change) == 2
        assert summed([change]) == {(2, 5, 7): -1, (2, 5, 8): 1}


def test_a_left_row_with_null_in_its_key_stays_alone_without_being_kept() -> None:
    join = SymmetricHashLeftJoin(2, 2, [(0, 0, True)])
    assert summed([join.apply(entering((NULL, 5)), entering((NULL, 7)))]) == {(NULL, 5, NULL): 1}
    assert join.size().rows == 0


def test_an_element_met_with_two_contents_is_combined_and_alone_keeps_its_own() -> None:
    join = SymmetricHashLeftJoin(1, 2, [(0, 0, True)], same=same, combine=combine)
    given = summed([join.apply(entering((2,)), entering((3, 9)))])
    assert given == {(203, 9): 1}
    accumulate(given, join.apply(Batch.empty(1), -entering((3, 9))))
    assert given == {(2, NULL): 1}


# --- anti join ---

MINUS = [
    (2, 2, []),
    (2, 2, [(0, 1, True)]),
    (2, 2, [(1, 1, True), (0, 0, True)]),
    (2, 2, [(0, 0, False)]),
    (3, 3, [(0, 0, True), (2, 1, False)]),
    (3, 2, [(0, 1, False), (1, 0, False)]),
    (1, 3, [(0, 2, False)]),
]


@pytest.mark.parametrize(("left_width", "right_width", "shared"), MINUS)
def test_an_anti_join_follows_the_plain_minus(left_width: int, right_width: int, shared: SharedColumns) -> None:
    certain_left = {left for left, _, certain in shared if certain}
    certain_right = {right for _, right, certain in shared if certain}
    for seed in range(20):
        for most, steps in STEPS:
            follows(
                AntiJoin(left_width, right_width, shared),
                (
                    source(seed, left_width, [one for one in range(left_width) if one not in certain_left], 6),
                    source(seed + 99, right_width, [one for one in range(right_width) if one not in certain_right], 6),
                ),
                lambda left, right: plain_minus(left, right, shared),
                steps,
                most,
                leaving=0.5,
            )


def test_a_row_that_shares_no_bound_column_takes_nothing_away() -> None:
    minus = AntiJoin(2, 2, [(0, 0, False), (1, 1, False)])
    left = entering((NULL, NULL), (2, NULL), (NULL, 3))
    assert summed([minus.apply(left, entering((NULL, NULL), (NULL, 4)))]) == {
        (NULL, NULL): 1,
        (2, NULL): 1,
        (NULL, 3): 1,
    }
    assert summed([minus.apply(NOTHING, entering((2, 4)))]) == {(2, NULL): -1}


def test_without_shared_columns_an_anti_join_keeps_nothing() -> None:
    minus = AntiJoin(2, 1, [])
    assert summed([minus.apply(entering((2, 3)), entering((2,)))]) == {(2, 3): 1}
    assert minus.size() == (0, 0)


# --- marks ---

TRUE, FALSE = 1001, 1002


@pytest.mark.parametrize(("width", "argument"), [(2, (0,)), (3, (2, 0)), (1, (0,)), (2, ())])
def test_a_mark_join_says_whether_there_is_an_answer_for_the_argument(width: int, argument: tuple[int, ...]) -> None:
    def plain(outer: Bag, answers: Bag) -> Bag:
        keys = {row[: len(argument)] for row in answers}
        return Counter(
            {
                (*row, TRUE if tuple(row[one] for one in argument) in keys else FALSE): times
                for row, times in outer.items()
            }
        )

    for seed in range(20):
        for most, steps in STEPS:
            follows(
                MarkJoin(width, argument, TRUE, FALSE),
                (source(seed, width, range(width)), source(seed + 99, len(argument) + 1, (0, 1), 3)),
                plain,
                steps,
                most,
                leaving=0.5,
            )


def test_a_row_that_enters_or_leaves_together_with_its_answer_has_one_mark_only() -> None:
    mark = MarkJoin(2, (0,), TRUE, FALSE)
    there = mark.apply(entering((2, 5)), entering((2, 9)))
    gone = mark.apply(-entering((2, 5)), -entering((2, 9)))
    assert (there.rows.tolist(), there.weights.tolist()) == ([[2, 5, TRUE]], [1])
    assert (gone.rows.tolist(), gone.weights.tolist()) == ([[2, 5, TRUE]], [-1])


@pytest.mark.parametrize(("width", "columns"), [(3, (2, 0)), (2, (1,)), (2, ()), (2, (0, 1))])
def test_arguments_are_the_distinct_rows_of_their_columns(width: int, columns: tuple[int, ...]) -> None:
    for seed in range(15):
        for most, steps in STEPS:
            follows(
                Arguments(columns),
                (source(seed, width, range(width)),),
                lambda rows: Counter({tuple(row[one] for one in columns) for row in rows}),
                steps,
                most,
            )


# --- union ---


def test_a_union_gives_both_bags_with_the_right_columns_in_the_left_order() -> None:
    union: DeltaOperator = BagUnion((2, 0))
    given = union.apply(entering((2, 3)), entering((4, 5, 6), (6, 7, 4)))
    assert given.rows.tolist() == [[2, 3], [6, 4], [4, 6]]
    assert union.width == 2
    assert len(union.apply(NOTHING, Batch.empty(3))) == 0


@pytest.mark.parametrize("seed", range(10))
def test_many_pairs_come_in_pieces_that_add_up(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join_module, "PIECE", 50)
    whole, parted = (SymmetricHashJoin(2, 2, [(0, 0, True)], same=same) for _ in range(2))
    most = 0
    came: list[Batch] = []
    for step in range(4):
        rng = random.Random(seed * 10 + step)
        left, right = (
            Batch.entering(np.array([(rng.randrange(2, 5), rng.randrange(2, 9)) for _ in range(60)], np.int64))
            for _ in range(2)
        )
        came.append(left)
        if step == 3:  # what leaves goes the plain way
            left = -came[0]
        expected: Bag = Counter()
        accumulate(expected, whole.apply(left, right))
        found: Bag = Counter()
        pieces = list(parted.given_in_pieces(left, right))
        for piece in pieces:
            accumulate(found, piece)
        assert found == expected
        most = max(most, len(pieces))
    assert most > 10
