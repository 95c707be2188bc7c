"""Rows against thresholds: every pair of a row and a threshold in which the row's number may be on the right side.

Law: {(r, t) : r in R, t in T, number(r) >= number(t)}, or <= where rows lie below; and all pairs of which one side has
a value that is neither a number nor null, unless the other is null. The pairs are those that a comparison can accept,
and perhaps more: numbers are rounded, so a comparison of the values must follow.

Work per batch: O(changes * thresholds) for rows; for a threshold that comes or goes, O(log rows) and the pairs in its
range, and never the rows outside. State: both inputs; the rows ordered by their numbers.

Meant for few thresholds, such as one average of all rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from anabranch.delta.batch import Batch, Ids, Mask, concatenated
from anabranch.delta.operators.base import DeltaOperator, Size
from anabranch.delta.ordered_trace import OrderedTrace, RowFloats
from anabranch.delta.trace import Trace, halves, net


class NumberedRows(NamedTuple):
    """The numbers of rows, NaN where a row has none, and which rows have null instead."""

    numbers: RowFloats
    nulls: Mask


RowNumbering = Callable[[Ids], NumberedRows]


class ThresholdJoin(DeltaOperator):
    """Pairs of rows (input 0) and thresholds (input 1). `above`: the rows' numbers are at least the thresholds'
    numbers, else at most."""

    def __init__(
        self, width: int, threshold_width: int, number: RowNumbering, threshold_number: RowNumbering, above: bool
    ) -> None:
        self.width = width + threshold_width
        self._row_width = width
        self._number = number
        self._threshold_number = threshold_number
        self._above = above
        self._placed = OrderedTrace(width)
        self._others = Trace(width, ())  # rows whose value is no number
        self._nulls = Trace(width, ())
        self._thresholds = Trace(threshold_width, tuple(range(threshold_width)))

    def apply(self, *inputs: Batch) -> Batch:
        leaving, entering = halves(net(inputs[0]))
        thresholds = net(inputs[1])
        changes: list[Batch] = []
        # In this order no pair enters and leaves again when its row and its threshold come and go at one instant.
        self._take(leaving, changes)
        changes += self._ranges(thresholds)
        self._thresholds.add(thresholds)
        self._take(entering, changes)
        return concatenated(changes, self.width)

    def _take(self, rows: Batch, changes: list[Batch]) -> None:
        """Pair changed rows with the present thresholds, and keep them."""
        if not len(rows):
            return
        numbers, nulls = self._number(rows.rows)
        others = np.isnan(numbers) & ~nulls
        thresholds = self._thresholds.rows()
        limits, unset = self._threshold_number(thresholds.rows)
        for at in range(len(thresholds)):
            if unset[at]:
                passes = others
            elif np.isnan(limits[at]):
                passes = np.ones(len(rows), np.bool_)
            else:
                passes = others | (numbers >= limits[at] if self._above else numbers <= limits[at])
            changes.append(_paired(rows.kept(passes), thresholds.rows[at], int(thresholds.weights[at])))
        placed = ~np.isnan(numbers)
        self._placed.add(numbers[placed], rows.kept(placed))
        self._others.add(rows.kept(others))
        self._nulls.add(rows.kept(nulls))

    def _ranges(self, thresholds: Batch) -> list[Batch]:
        """Pair changed thresholds with the kept rows."""
        found: list[Batch] = []
        limits, unset = self._threshold_number(thresholds.rows)
        for at in range(len(thresholds)):
            parts = [self._others.rows()]
            if not unset[at]:
                limit = float(limits[at])
                if np.isnan(limit):
                    parts += [self._placed.between(-np.inf, np.inf), self._nulls.rows()]
                else:
                    parts.append(self._placed.between(*((limit, np.inf) if self._above else (-np.inf, limit))))
            for part in parts:
                found.append(_paired(part, thresholds.rows[at], int(thresholds.weights[at])))
        return found

    def size(self) -> Size:
        kept = (self._placed.size(), self._others.size(), self._nulls.size(), self._thresholds.size())
        return Size(sum(one.rows for one in kept), sum(one.bytes for one in kept))


def _paired(rows: Batch, threshold: Ids, weight: int) -> Batch:
    shown = np.repeat(threshold[np.newaxis], len(rows), axis=0)
    return Batch(np.concatenate((rows.rows, shown), axis=1), rows.weights * weight)
