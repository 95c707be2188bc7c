"""A trace is a bag that can be asked by key."""

from __future__ import annotations

import random
from collections import Counter
from itertools import product

import numpy as np
import pytest
from tests.unit.delta.bags import Bag, ChangingBag, Row, summed

from anabranch.delta.batch import Batch
from anabranch.delta.kernels import rows as kernels
from anabranch.delta.trace import Trace, distinct_rows, halves, net
from anabranch.errors import InternalError

SHAPES = [
    (0, ()),
    (1, ()),
    (1, (0,)),
    (2, ()),
    (2, (0,)),
    (2, (1,)),
    (2, (0, 1)),
    (2, (1, 0)),
    (3, (2, 0)),
    (3, (2, 0, 1)),
    (4, (1, 2, 3)),
]


def changing(seed: int, width: int, values: int) -> ChangingBag:
    return ChangingBag(seed, width, lambda rng: tuple(rng.randrange(values) for _ in range(width)))


def key_of(row: Row, keys: tuple[int, ...]) -> Row:
    return tuple(row[key] for key in keys)


def assert_answers_as(bag: Bag, trace: Trace, values: int) -> None:
    assert len(trace) == len(bag)
    held = trace.rows()
    assert len(held) == len(bag)
    assert summed([held]) == bag
    asked = list(product(range(values + 1), repeat=len(trace.keys)))
    random.Random(len(bag)).shuffle(asked)
    keys = np.array(asked, np.int64).reshape(len(asked), len(trace.keys))
    found = trace.probe(keys)
    answers = zip(found.asked.tolist(), map(tuple, found.rows.tolist()), found.weights.tolist(), strict=True)
    expected = [
        (index, row, weight)
        for index, key in enumerate(asked)
        for row, weight in bag.items()
        if key_of(row, trace.keys) == key
    ]
    assert sorted(answers) == sorted(expected)
    sums = [sum(weight for row, weight in bag.items() if key_of(row, trace.keys) == key) for key in asked]
    assert trace.totals(keys).tolist() == sums


@pytest.mark.parametrize(("width", "keys"), SHAPES)
@pytest.mark.parametrize(("values", "most"), [(2, 3), (4, 40), (9, 400)])
def test_it_answers_as_a_plain_bag_after_every_batch(width: int, keys: tuple[int, ...], values: int, most: int) -> None:
    for seed in range({3: 30, 40: 8, 400: 2}[most]):
        source = changing(seed, width, values)
        trace = Trace(width, keys)
        smallest = trace.size().bytes
        for step in range(8):
            before = Counter(source.bag)
            batch = source.change(most, leaving=0.2 if step < 4 else 0.7)
            touched = trace.add(batch)
            rows = list(map(tuple, touched.rows.tolist()))
            assert len(set(rows)) == len(rows)
            assert set(rows) == set(map(tuple, batch.rows.tolist()))
            assert touched.before.tolist() == [before[row] for row in rows]
            assert touched.after.tolist() == [source.bag[row] for row in rows]
            if values < 9 or len(keys) < 3:
                assert_answers_as(source.bag, trace, values)
        trace.add(source.emptied())
        assert_answers_as(Counter(), trace, 1)
        assert trace.size() == (0, smallest)


def test_memory_follows_what_is_alive_through_a_long_window() -> None:
    trace = Trace(3, (0,))
    rows = np.random.default_rng(7).integers(0, 5000, (40_000, 3))
    window, slide = 8000, 500
    most = 0
    for start in range(0, len(rows), slide):
        trace.add(Batch.entering(rows[start : start + slide]))
        if start >= window:
            trace.add(-Batch.entering(rows[start - window : start - window + slide]))
        most = max(most, trace.size().bytes)
    assert len(trace) == len(set(map(tuple, rows[-window:].tolist())))
    assert most < 8500 * 2 * (3 * 8 + 80)
    for start in range(len(rows) - window, len(rows) - 100, 100):
        trace.add(-Batch.entering(rows[start : start + 100]))
    assert len(trace) == 100
    assert trace.size().bytes < 900 * (3 * 8 + 80)
    assert summed([trace.rows()]) == Counter(map(tuple, rows[-100:].tolist()))


def test_keys_with_many_rows_and_keys_with_one_are_both_found_whole() -> None:
    rows = np.array([(1, index) for index in range(5000)] + [(index, 0) for index in range(2, 3000)], np.int64)
    trace = Trace(2, (0,))
    trace.add(Batch.entering(rows))
    trace.add(-Batch.entering(rows[1000:4000]))
    found = trace.probe(np.array([[1], [0], [2999], [1]]))
    assert Counter(found.asked.tolist()) == {0: 2000, 2: 1, 3: 2000}
    assert sorted(found.rows[found.asked == 0, 1].tolist()) == [*range(1000), *range(4000, 5000)]
    assert trace.totals(np.array([[1], [0], [2]])).tolist() == [2000, 0, 1]


def test_weights_of_rows_that_are_and_are_not_there() -> None:
    trace = Trace(2, (0,))
    trace.add(Batch.of([(1, 2), (1, 2), (3, 4)], [2, 3, 1], 2))
    assert trace.weights_of(np.array([(3, 4), (1, 2), (2, 1)])).tolist() == [1, 5, 0]


def test_large_and_negative_ids_are_told_apart() -> None:
    far = [(1 << 62, -1), (-1, 1 << 62), (1 << 32, 0), (0, 1 << 32), (-(1 << 63), (1 << 63) - 1)]
    trace = Trace(2, (1,))
    trace.add(Batch.of(far, [1, 2, 3, 4, 5], 2))
    assert trace.weights_of(np.array(far)).tolist() == [1, 2, 3, 4, 5]
    assert trace.totals(np.array([[-1], [1 << 32], [7]])).tolist() == [1, 4, 0]


def test_a_row_that_leaves_more_often_than_it_entered_is_a_defect() -> None:
    trace = Trace(1, (0,))
    trace.add(Batch.of([(1,)], [1], 1))
    with pytest.raises(InternalError, match="more often than it had entered"):
        trace.add(Batch.of([(1,)], [-2], 1))


def test_key_columns_outside_the_row_are_refused() -> None:
    with pytest.raises(InternalError, match="no key columns"):
        Trace(2, (2,))


def test_the_order_within_a_batch_does_not_matter() -> None:
    trace = Trace(1, (0,))
    touched = trace.add(Batch.of([(1,), (2,), (1,)], [-1, 1, 1], 1))
    assert touched.rows.tolist() == [[1], [2]]
    assert touched.after.tolist() == [0, 1]
    assert len(trace) == 1


def test_batches_in_any_memory_layout_are_taken() -> None:
    rows = np.asfortranarray(np.array([(1, 2), (3, 4), (5, 6)], np.int64))
    weights = np.broadcast_to(np.int64(1), 3)
    trace = Trace(2, (1,))
    trace.add(Batch(rows, weights))
    keys = np.array([[4], [6]], np.int64)
    keys.flags.writeable = False
    assert trace.probe(keys).rows.tolist() == [[3, 4], [5, 6]]
    compiled = (kernels.take_in, kernels.find, kernels.spread, kernels.sums)
    assert {len(kernel.signatures) for kernel in compiled} <= {0, 1}  # a second layout would be compiled anew


def test_net_sums_each_row_and_drops_what_cancels() -> None:
    for seed in range(300):
        width = seed % 4
        source = changing(seed, width, 3)
        source.change(20, leaving=0)
        batch = source.change(20, leaving=0.5)
        once = net(batch)
        assert summed([once]) == summed([batch])
        assert len(once) == len(summed([batch]))
        leaving, entering = halves(once)
        assert (leaving.weights < 0).all()
        assert (entering.weights > 0).all()
        assert len(leaving) + len(entering) == len(once)


def test_distinct_rows_keep_the_order_of_first_appearance() -> None:
    rows = np.array([(2, 1), (1, 1), (2, 1), (0, 5), (1, 1)], np.int64)
    assert distinct_rows(rows).tolist() == [[2, 1], [1, 1], [0, 5]]
