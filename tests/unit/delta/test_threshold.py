"""Rows against thresholds, numbered copies, and the ordered trace, while the bags below change."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest

from anabranch.delta.batch import Batch, Ids
from anabranch.delta.dictionary import Dictionary
from anabranch.delta.operators.copies import NumberedCopies
from anabranch.delta.operators.threshold import NumberedRows, ThresholdJoin
from anabranch.delta.ordered_trace import OrderedTrace

from .bags import Bag, ChangingBag, Row, follows

NOT_A_NUMBER, NULL = 7, 8


def numbers_of(rows: Ids) -> NumberedRows:
    """The first column is the number, but for one value that is another kind of value and one that is null."""
    firsts = rows[:, 0]
    none = (firsts == NOT_A_NUMBER) | (firsts == NULL)
    return NumberedRows(np.where(none, np.nan, firsts.astype(np.float64)), firsts == NULL)


def may_pass(row: int, threshold: int, above: bool) -> bool:
    if NULL in (row, threshold):
        return NOT_A_NUMBER in (row, threshold)
    if NOT_A_NUMBER in (row, threshold):
        return True
    return row >= threshold if above else row <= threshold


def pairs(rows: Bag, thresholds: Bag, above: bool) -> Bag:
    found: Bag = Counter()
    for row, weight in rows.items():
        for threshold, other in thresholds.items():
            if may_pass(row[0], threshold[0], above):
                found[row + threshold] += weight * other
    return found


def draw_row(random: Random) -> Row:
    return random.randrange(9), random.randrange(3)


def draw_threshold(random: Random) -> Row:
    return (random.randrange(9),)


@pytest.mark.parametrize("above", [True, False])
@pytest.mark.parametrize("most", [2, 40], ids=["small steps", "big steps"])
def test_the_pairs_are_those_that_a_comparison_can_accept(above: bool, most: int) -> None:
    for seed in range(15):
        operator = ThresholdJoin(2, 1, numbers_of, numbers_of, above)
        inputs = [ChangingBag(seed, 2, draw_row), ChangingBag(seed + 100, 1, draw_threshold)]
        follows(operator, inputs, lambda rows, limits: pairs(rows, limits, above), steps=12, most=most)


def test_a_threshold_that_moves_makes_no_pair_with_rows_outside_of_its_range() -> None:
    operator = ThresholdJoin(1, 1, numbers_of, numbers_of, above=True)
    rows = np.arange(10, 1000).reshape(-1, 1)
    operator.apply(Batch.entering(rows), Batch.entering(np.array([[990]])))
    change = operator.apply(Batch.empty(1), Batch.of([[990], [998]], [-1, 1], 1))
    assert len(change) == 10 + 2


@pytest.mark.parametrize("most", [2, 40], ids=["small steps", "big steps"])
def test_copies_of_a_row_are_numbered(most: int) -> None:
    dictionary = Dictionary()
    ids = dictionary.encode_all(range(200)).tolist()

    def numbered(bag: Bag) -> Bag:
        return Counter({(*row, ids[copy]): 1 for row, weight in bag.items() for copy in range(weight)})

    for seed in range(10):
        operator = NumberedCopies(2, dictionary)
        follows(operator, [ChangingBag(seed, 2, draw_row)], numbered, steps=10, most=most)


@pytest.mark.parametrize("most", [1, 8, 60])
def test_a_range_of_an_ordered_trace_has_the_rows_of_the_bag_in_that_range(most: int) -> None:
    for seed in range(10):
        source, trace, random = ChangingBag(seed, 2, draw_row), OrderedTrace(2), Random(seed)
        for _ in range(40):
            batch = source.change(most, 0.45)
            trace.add(batch.rows[:, 0] / 2, batch)
            low, high = sorted(random.randrange(-1, 10) / 2 for _ in range(2))
            found = trace.between(low, high).consolidated()
            expected = {row: weight for row, weight in source.bag.items() if low <= row[0] / 2 <= high}
            assert dict(zip(map(tuple, found.rows.tolist()), found.weights.tolist(), strict=True)) == expected
            assert len(trace) == trace.size().rows == source.bag.total()
        batch = source.emptied()
        trace.add(batch.rows[:, 0] / 2, batch)
        assert trace.size() == (0, 0)


def test_runs_of_an_ordered_trace_stay_few_and_short_while_rows_come_and_go() -> None:
    trace = OrderedTrace(1)
    for at in range(2000):
        came = Batch.entering(np.arange(at * 10, at * 10 + 10).reshape(-1, 1))
        trace.add(came.rows[:, 0].astype(np.float64), came)
        if at >= 50:
            gone = -Batch.entering(np.arange((at - 50) * 10, (at - 50) * 10 + 10).reshape(-1, 1))
            trace.add(gone.rows[:, 0].astype(np.float64), gone)
    assert len(trace) == 500
    assert len(trace._runs) < 12
    assert trace.size().bytes < 8 * 3 * 500 * 4
