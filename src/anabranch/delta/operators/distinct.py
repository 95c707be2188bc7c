"""DISTINCT: each row once, however often it is present.

Law: {the first of c : c a class of equivalent rows of A}. Rows are equivalent when all their columns are of the same
classes; of the present rows of a class, the one that `first` orders first is shown.
Work per batch: O(changes); by classes, O(changes + rows of the classes that changed).
State: all distinct rows with their counts (a row with two derivations survives the loss of one); by classes, indexed by
class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from anabranch.delta.batch import Batch, Ids, Mask, concatenated
from anabranch.delta.operators.base import DeltaOperator, SameAs, Size
from anabranch.delta.trace import Trace, TraceRows, WeightChange, distinct_rows

First = Callable[[tuple[int, ...]], Any]
"""From a row of ids to its sort key."""


class DistinctRows(DeltaOperator):
    """The distinct rows. Without `same`, rows are compared by exact ids. Without `first`, a class shows its row with
    the lowest ids."""

    def __init__(self, width: int, same: SameAs | None = None, first: First | None = None) -> None:
        self.width = width
        self._same = same if width else None
        self._first = first
        # By classes, a stored row is the classes of its columns, then the row.
        stored = width if self._same is None else 2 * width
        self._trace = Trace(stored, tuple(range(width)))

    def apply(self, *inputs: Batch) -> Batch:
        batch = inputs[0]
        if not len(batch):
            return batch
        if self._same is None:
            return _entered_or_left(self._trace.add(batch))
        classes = np.column_stack([self._same(column) for column in batch.rows.T])
        keys = distinct_rows(classes)
        old = self._shown(self._trace.probe(keys), len(keys))
        self._trace.add(Batch(np.concatenate((classes, batch.rows), axis=1), batch.weights))
        new = self._shown(self._trace.probe(keys), len(keys))
        return _replaced(old, new)

    def apply_pieces(self, pieces: Iterator[Batch]) -> Batch:
        # A row may enter with one piece and leave with another.
        return concatenated([self.apply(piece) for piece in pieces], self.width).consolidated()

    def _shown(self, found: TraceRows, classes: int) -> tuple[Mask, Ids]:
        """Return which of the classes are present, and the row that each shows."""
        there = np.zeros(classes, np.bool_)
        there[found.asked] = True
        shown = np.zeros((classes, self.width), np.int64)
        exact = found.rows[:, self.width :]
        shown[found.asked] = exact
        several = np.flatnonzero(np.bincount(found.asked, minlength=classes) > 1)
        if len(several):
            # The rows of a class come one after the other, in the order in which classes were asked for.
            starts = np.searchsorted(found.asked, several, side="left").tolist()
            ends = np.searchsorted(found.asked, several, side="right").tolist()
            for one, start, end in zip(several.tolist(), starts, ends, strict=True):
                shown[one] = self._pick(list(map(tuple, exact[start:end].tolist())))
        return there, shown

    def _pick(self, rows: list[tuple[int, ...]]) -> tuple[int, ...]:
        first = self._first
        # Ids break ties, so that the shown row does not depend on the order of arrival.
        return min(rows) if first is None else min(rows, key=lambda row: (first(row), row))

    def size(self) -> Size:
        return self._trace.size()


def _entered_or_left(touched: WeightChange) -> Batch:
    turn = (touched.after > 0).astype(np.int64) - (touched.before > 0).astype(np.int64)
    turned = np.flatnonzero(turn)
    return Batch(touched.rows.take(turned, axis=0), turn.take(turned))


def _replaced(old: tuple[Mask, Ids], new: tuple[Mask, Ids]) -> Batch:
    """Replace the shown row of each class, where it differs."""
    was, before = old
    there, after = new
    same = was & there & (before == after).all(axis=1)
    leaving, entering = before[was & ~same], after[there & ~same]
    weights = np.ones(len(leaving) + len(entering), np.int64)
    weights[: len(leaving)] = -1
    return Batch(np.concatenate((leaving, entering)), weights)
