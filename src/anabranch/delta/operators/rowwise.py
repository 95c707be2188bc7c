"""Operators without state that work on one batch at a time: filter, extend, project, unwind, net.

Law: each is linear: its output for a sum of batches is the sum of its outputs.

Work per batch: O(rows). Where a function fails on a row that the same batch takes back, the row was never there: the
batch is consolidated and tried once more. A row for which a function gives REFUSED is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from anabranch.delta.batch import REFUSED, Batch, Ids
from anabranch.delta.dictionary import Dictionary
from anabranch.delta.operators.base import DeltaOperator, RowFunction, RowTest
from anabranch.errors import EvaluationError, LimitExceeded

Items = Callable[[Ids], tuple[Ids, Ids]]
"""From rows to items: the row that each belongs to, and its id."""

Found = TypeVar("Found")


def _applied(batch: Batch, function: Callable[[Ids], Found]) -> tuple[Batch, Found]:
    """Apply a function to a batch's rows; return the batch that it saw, and its result."""
    try:
        return batch, function(batch.rows)
    except LimitExceeded:
        raise
    except EvaluationError:
        smaller = batch.consolidated()
        if len(smaller) == len(batch):
            raise
        return smaller, function(smaller.rows)


def accepted(batch: Batch, columns: Sequence[Ids]) -> Batch:
    """Return a batch without the rows that have REFUSED in one of these columns of it."""
    refused = [column for column in columns if (column == REFUSED).any()]
    return batch.kept(np.all([column != REFUSED for column in refused], axis=0)) if refused else batch


class RowFilter(DeltaOperator):
    linear = True

    def __init__(self, width: int, test: RowTest) -> None:
        self.width = width
        self._test = test

    def apply(self, *inputs: Batch) -> Batch:
        (batch,) = inputs
        if not len(batch):
            return batch
        seen, mask = _applied(batch, self._test)
        return seen.kept(mask)


class RowExtension(DeltaOperator):
    """Adds columns to every row."""

    linear = True

    def __init__(self, width: int, functions: Sequence[RowFunction]) -> None:
        self.width = width + len(functions)
        self._functions = functions

    def apply(self, *inputs: Batch) -> Batch:
        (batch,) = inputs
        if not len(batch):
            return Batch.empty(self.width)
        seen, columns = _applied(batch, lambda rows: [function(rows) for function in self._functions])
        return accepted(Batch(np.column_stack((seen.rows, *columns)), seen.weights), columns)


class RowProjection(DeltaOperator):
    """Makes new rows from old ones."""

    linear = True

    def __init__(self, functions: Sequence[RowFunction]) -> None:
        self.width = len(functions)
        self._functions = functions

    def apply(self, *inputs: Batch) -> Batch:
        (batch,) = inputs
        if not len(batch):
            return Batch.empty(self.width)
        if not self._functions:
            return Batch(np.empty((len(batch), 0), np.int64), batch.weights)
        seen, columns = _applied(batch, lambda rows: [function(rows) for function in self._functions])
        return accepted(Batch(np.column_stack(columns), seen.weights), columns)


class ColumnChoice(DeltaOperator):
    """Picks columns, in a given order."""

    linear = True

    def __init__(self, columns: Sequence[int]) -> None:
        self.width = len(columns)
        self._columns = list(columns)

    def apply(self, *inputs: Batch) -> Batch:
        (batch,) = inputs
        return batch.picked(self._columns)


class NetChanges(DeltaOperator):
    """The same changes, each row once, without changes that cancel each other."""

    def __init__(self, width: int) -> None:
        self.width = width

    def apply(self, *inputs: Batch) -> Batch:
        (batch,) = inputs
        return batch.consolidated()


class Unwound(DeltaOperator):
    """One row per item of each row's list. With a dictionary, a last column has the item's place in the list."""

    linear = True

    def __init__(self, width: int, items: Items, places: Dictionary | None = None) -> None:
        self.width = width + (1 if places is None else 2)
        self._items = items
        self._places = places

    def apply(self, *inputs: Batch) -> Batch:
        (batch,) = inputs
        if not len(batch):
            return Batch.empty(self.width)
        seen, (owners, items) = _applied(batch, self._items)
        columns = [seen.rows[owners], items]
        if self._places is not None:
            columns.append(self._placed(owners))
        return Batch(np.column_stack(columns), seen.weights[owners])

    def _placed(self, owners: Ids) -> Ids:
        """Return the ids of the numbers 0, 1, ... of each owner's items, which stand one after the other."""
        assert self._places is not None
        first = np.searchsorted(owners, owners)
        places = np.arange(len(owners)) - first
        most = int(places.max()) + 1 if len(places) else 0
        numbers: Ids = self._places.encode_all(range(most))
        return numbers.take(places)
