"""The rows of a slice while the bag below changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from anabranch.delta.batch import Batch
from anabranch.delta.operators import ordering
from anabranch.delta.operators.ordering import OrderedSlice, SortKeysOf
from anabranch.model.compare import Descending

from .bags import Bag, ChangingBag, Row, accumulate, follows


def by_first(row: Row) -> Any:
    """Ties abound: only the first column counts."""
    return (row[0] % 4,)


def mixed(row: Row) -> Any:
    return Descending(row[0] % 3), row[1]


def each(order: Callable[[Row], Any]) -> SortKeysOf:
    return lambda rows: [order(row) for row in rows]


def sliced(bag: Bag, order: Callable[[Row], Any], skip: int, limit: int | None) -> list[Row]:
    ordered = sorted(bag.elements(), key=lambda row: (order(row), row))
    return ordered[skip : None if limit is None else skip + limit]


def draw(random: Random) -> Row:
    return random.randrange(9), random.randrange(3)


@pytest.mark.parametrize("order", [by_first, mixed])
@pytest.mark.parametrize(
    ("skip", "limit"), [(0, None), (0, 3), (2, 3), (5, None), (0, 0), (4, 0), (0, 10_000), (50, 2)]
)
@pytest.mark.parametrize("few", [0, 1_000_000], ids=["merged", "one by one"])
def test_the_slice_is_that_of_the_sorted_bag(
    order: Callable[[Row], Any], skip: int, limit: int | None, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ordering, "_FEW", few)
    for seed in range(12):
        operator = OrderedSlice(2, each(order), skip, limit)
        follows(
            operator,
            [ChangingBag(seed, 2, draw)],
            lambda bag: Counter(sliced(bag, order, skip, limit)),
            steps=10,
            most=12,
        )


def test_the_rows_are_listed_in_order() -> None:
    operator, source = OrderedSlice(2, each(mixed), 1, 6), ChangingBag(5, 2, draw)
    for _ in range(40):
        operator.apply(source.change(8, 0.45))
        assert list(operator.ordered()) == sliced(source.bag, mixed, 1, 6)
    everything = OrderedSlice(2, each(mixed))
    everything.apply(Batch.of([[3, 1], [1, 0]], [2, 1], 2))
    assert list(everything.ordered()) == [(1, 0), (3, 1), (3, 1)]


def test_a_slice_without_bounds_gives_what_it_gets() -> None:
    operator, given, source = OrderedSlice(2, each(by_first)), Counter[Row](), ChangingBag(1, 2, draw)
    for _ in range(20):
        accumulate(given, operator.apply(source.change(5, 0.5)))
        assert given == source.bag


def test_one_row_in_moves_at_most_one_row_out() -> None:
    """However long the slice is: what is told is what changes, not what is there."""
    operator = OrderedSlice(1, each(lambda row: (row[0],)), 100, 500)
    operator.apply(Batch.of([[at] for at in range(0, 4000, 2)], [1] * 2000, 1))
    told = operator.apply(Batch.of([[7]], [1], 1))
    assert {row: weight for (row,), weight in zip(told.rows.tolist(), told.weights.tolist(), strict=True)} == {
        198: 1,
        1198: -1,
    }
    assert len(operator.apply(Batch.of([[3001]], [1], 1))) == 0


def test_the_order_is_asked_once_for_each_row_that_is_there() -> None:
    asked: list[Row] = []

    def order(row: Row) -> Any:
        asked.append(row)
        return row

    operator = OrderedSlice(1, each(order), 0, 2)
    operator.apply(Batch.of([[1], [2], [1]], [1, 1, 1], 1))
    operator.apply(Batch.of([[1], [2]], [-1, 1], 1))
    assert sorted(asked) == [(1,), (2,)]
