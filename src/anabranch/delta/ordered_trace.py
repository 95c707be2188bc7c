"""Ordered trace: a bag of rows of ids, each placed by a number, in which ranges of numbers are looked up.

The rows stand in sorted runs. A batch becomes a run of its own; two runs become one when the younger has at least half
the size of the older. A row that leaves is a row with a negative weight until both are in one run, where they cancel.

Invariant: each run is sorted by number; the sizes of runs fall by more than half from each to the next. The number of a
row depends on the row alone.

Work: O(log n) amortised for each row that comes or goes; a look-up costs O(log n) for each of the O(log n) runs, plus
the rows found.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from anabranch.delta.batch import Batch, concatenated
from anabranch.delta.operators.base import Size

RowFloats = npt.NDArray[np.float64]


class _Run(NamedTuple):
    numbers: RowFloats
    batch: Batch


class OrderedTrace:
    """A bag of rows of `width` columns, placed by numbers; no number is NaN."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._runs: list[_Run] = []
        self._count = 0

    def add(self, numbers: RowFloats, batch: Batch) -> None:
        """Add the weights of a batch, whose rows have these numbers."""
        if not len(batch):
            return
        self._count += int(batch.weights.sum())
        if not self._count:
            self._runs = []
            return
        self._runs.append(_sorted(numbers, batch))
        while len(self._runs) > 1 and 2 * len(self._runs[-1].batch) >= len(self._runs[-2].batch):
            younger, older = self._runs.pop(), self._runs.pop()
            merged = _merged(older, younger, self._width)
            if len(merged.batch):
                self._runs.append(merged)

    def between(self, low: float, high: float) -> Batch:
        """Return the rows with numbers from `low` to `high`, both included."""
        found = []
        for numbers, batch in self._runs:
            first, stop = np.searchsorted(numbers, low, "left"), np.searchsorted(numbers, high, "right")
            if first < stop:
                found.append(batch.part(int(first), int(stop)))
        whole = concatenated(found, self._width)
        return whole.consolidated() if len(found) > 1 else whole

    def __len__(self) -> int:
        """Return how many rows are held, counted by their weights."""
        return self._count

    def size(self) -> Size:
        places = sum(len(run.batch) for run in self._runs)
        return Size(self._count, places * 8 * (self._width + 2))


def _sorted(numbers: RowFloats, batch: Batch) -> _Run:
    order = np.argsort(numbers, kind="stable")
    return _Run(numbers[order], Batch(np.ascontiguousarray(batch.rows[order]), batch.weights[order]))


def _merged(older: _Run, younger: _Run, width: int) -> _Run:
    """Merge two runs; rows that came and went cancel."""
    both = concatenated([older.batch, younger.batch], width)
    numbers = np.concatenate((older.numbers, younger.numbers))
    order = np.lexsort((*both.rows.T[::-1], numbers))
    rows, weights, numbers = both.rows[order], both.weights[order], numbers[order]
    first = np.ones(len(rows), np.bool_)
    first[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    starts = np.flatnonzero(first)
    sums = np.add.reduceat(weights, starts)
    kept = starts[sums != 0]
    return _Run(numbers[kept], Batch(np.ascontiguousarray(rows[kept]), sums[sums != 0]))
