"""The rows of a slice while the bag below changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

from anabranch.delta.batch import Batch, concatenated
from anabranch.delta.operators.ordering import OrderedSlice
from anabranch.delta.patterns import Changes
from anabranch.delta.sort_words import KeyOrder
from anabranch.model.compare import Descending

from .bags import Bag, ChangingBag, Row, accumulate, follows


def by_first(row: Row) -> Any:
    """Ties abound: only the first column counts."""
    return (row[0] % 4,)


def mixed(row: Row) -> Any:
    return Descending(row[0] % 3), row[1]


def each(order: Callable[[Row], Any]) -> KeyOrder:
    return KeyOrder(lambda rows: [order(row) for row in rows])


def listed(operator: OrderedSlice) -> list[Row]:
    return list(map(tuple, operator.ids(operator.listed()).tolist()))


def sliced(bag: Bag, order: Callable[[Row], Any], skip: int, limit: int | None) -> list[Row]:
    ordered = sorted(bag.elements(), key=lambda row: (order(row), row))
    return ordered[skip : None if limit is None else skip + limit]


def draw(random: Random) -> Row:
    return random.randrange(9), random.randrange(3)


@pytest.mark.parametrize("order", [by_first, mixed])
@pytest.mark.parametrize(
    ("skip", "limit"), [(0, None), (0, 3), (2, 3), (5, None), (0, 0), (4, 0), (0, 10_000), (50, 2)]
)
def test_the_slice_is_that_of_the_sorted_bag(order: Callable[[Row], Any], skip: int, limit: int | None) -> None:
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
        assert listed(operator) == sliced(source.bag, mixed, 1, 6)
    everything = OrderedSlice(2, each(mixed))
    everything.apply(Batch.of([[3, 1], [1, 0]], [2, 1], 2))
    assert listed(everything) == [(1, 0), (3, 1), (3, 1)]


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


@pytest.mark.parametrize(("skip", "limit"), [(0, None), (0, 3), (2, 3), (5, None), (0, 0), (0, 10_000)])
def test_several_slides_at_once_are_as_one_after_the_other(skip: int, limit: int | None) -> None:
    for seed in range(8):
        source, single = ChangingBag(seed, 2, draw), OrderedSlice(2, each(mixed), skip, limit)
        several = OrderedSlice(2, each(mixed), skip, limit)
        several.lists = True
        for count in (1, 7, 3, 12):
            batches = [source.change(9, 0.45) if seed % 3 or place % 2 else Batch.empty(2) for place in range(count)]
            ends = np.cumsum([len(batch) for batch in batches])
            told = several.apply_slides(Changes(concatenated(batches, 2), ends))
            at_slides: dict[int, list[Row]] = {}
            if several.listings is not None:
                found = several.listings
                for slide, start, stop in zip(found.slides, found.starts, found.stops, strict=True):
                    at_slides[int(slide)] = list(map(tuple, several.ids(found.rows[start:stop]).tolist()))
            assert set(at_slides) == {slide for slide, batch in enumerate(batches) if len(batch)}
            for slide, (batch, change) in enumerate(zip(batches, told.slides(), strict=True)):
                one, other = Counter[Row](), Counter[Row]()
                accumulate(one, single.apply(batch))
                accumulate(other, change)
                assert one == other
                assert at_slides.get(slide, listed(single)) == listed(single)


def test_rows_come_and_go_by_the_thousand() -> None:
    """Chunks are split and joined, rows get other numbers, and what was kept of them goes with them."""
    random, operator = Random(3), OrderedSlice(1, each(lambda row: (row[0] % 977,)))
    there = Counter[Row]()
    for size in (3000, 10, 2500, 4000, 1, 5000):
        entering = [(random.randrange(20_000),) for _ in range(size)]
        leaving = random.sample(sorted(there.elements()), min(there.total(), 3 * size // 4))
        batch = Batch.of([*entering, *leaving], [1] * size + [-1] * len(leaving), 1)
        operator.apply(batch)
        accumulate(there, batch)
        rows = operator.listed()
        assert listed(operator) == sorted(there.elements(), key=lambda row: (row[0] % 977, row))
        for row, (one,) in zip(rows.tolist(), operator.ids(rows).tolist(), strict=True):
            assert operator.kept[row] in (None, one)
            operator.kept[row] = one
