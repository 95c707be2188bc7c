"""DISTINCT on changes shows one row of each class, and always the one that the plain rule shows."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest
from tests.unit.delta.bags import Bag, ChangingBag, Row, accumulate, follows, summed

from anabranch.delta.batch import NULL, Batch, Ids
from anabranch.delta.operators.distinct import DistinctRows

STEPS = [(1, 12), (7, 6), (80, 3)]


def same(ids: Ids) -> Ids:
    """Ids with the same tens are one class; null is its own."""
    return ids - ids % 10


def class_of(row: Row) -> Row:
    return tuple(one - one % 10 for one in row)


def source(seed: int, width: int) -> ChangingBag:
    def draw(rng: random.Random) -> Row:
        return tuple(rng.choice((NULL, 10, 11, 12, 20, 21, 30)) for _ in range(width))

    return ChangingBag(seed, width, draw)


def last_digits_down(row: Row) -> list[int]:
    return [-(one % 10) for one in row]


def plain(order: Callable[[Row], object]) -> Callable[[Bag], Bag]:
    def shown(rows: Bag) -> Bag:
        classes: dict[Row, list[Row]] = {}
        for row in rows:
            classes.setdefault(class_of(row), []).append(row)
        return Counter(min(some, key=lambda row: (order(row), row)) for some in classes.values())  # type: ignore[type-var]

    return shown


@pytest.mark.parametrize("width", [0, 1, 2, 3])
def test_exact_rows_are_shown_once(width: int) -> None:
    for seed in range(25):
        for most, steps in STEPS:
            follows(
                DistinctRows(width), (source(seed, width),), lambda rows: Counter(set(rows)), steps, most, leaving=0.5
            )


@pytest.mark.parametrize("width", [0, 1, 2, 3])
@pytest.mark.parametrize("order", [None, last_digits_down])
def test_of_each_class_the_row_that_is_ordered_first_is_shown(
    width: int, order: Callable[[Row], object] | None
) -> None:
    for seed in range(25):
        for most, steps in STEPS:
            expected = plain(order or (lambda row: ()))
            follows(DistinctRows(width, same, order), (source(seed, width),), expected, steps, most, leaving=0.5)


def test_the_shown_row_is_replaced_when_an_earlier_one_comes_and_when_it_goes() -> None:
    distinct = DistinctRows(1, same, last_digits_down)
    shown = summed([distinct.apply(Batch.of([(10,)], [2], 1))])
    assert shown == {(10,): 1}
    change = distinct.apply(Batch.of([(12,)], [1], 1))
    assert change.rows.tolist() == [[10], [12]]
    assert change.weights.tolist() == [-1, 1]
    assert len(distinct.apply(Batch.of([(11,)], [1], 1))) == 0
    assert len(distinct.apply(Batch.of([(10,)], [-2], 1))) == 0
    accumulate(shown, change)
    accumulate(shown, distinct.apply(Batch.of([(12,)], [-1], 1)))
    assert shown == {(11,): 1}


def test_a_row_with_two_derivations_survives_the_loss_of_one() -> None:
    for distinct in (DistinctRows(1), DistinctRows(1, same)):
        distinct.apply(Batch.of([(10,), (10,)], [1, 1], 1))
        assert len(distinct.apply(Batch.of([(10,)], [-1], 1))) == 0
        assert summed([distinct.apply(Batch.of([(10,)], [-1], 1))]) == {(10,): -1}
