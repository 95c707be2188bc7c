"""A batch of changes: rows of ids, each with a weight; +1 for a row that enters, -1 for one that leaves.

Batches are LUPOS's trigger and delete messages, many at a time; their algebra is that of Z-sets. Rows may repeat and
may cancel each other: the meaning of a batch is the sum of the weights of each row. Id 0 is null.

Invariant: `rows` is a C-contiguous int64 matrix with one column per column of the operator, `weights` an int64 vector
of the same length; a batch is never written to after it was handed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]
"""A vector of ids, or a matrix of ids with one line per row."""
Weights = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

NULL = 0
REFUSED = -1
"""Stands in place of an id where the computation for this row failed; the row is to be skipped."""
ABSENT = -2
"""Stands in place of an id where there is no value, not even null. Ids are never negative."""

PIECE = 1 << 18
"""The number of rows of a piece: large changes are handed on in pieces of this size."""


@dataclass(frozen=True, slots=True)
class Batch:
    rows: Ids
    weights: Weights

    def __len__(self) -> int:
        return len(self.weights)

    @classmethod
    @cache  # most changes of a small slide are empty
    def empty(cls, width: int) -> Batch:
        return cls(np.empty((0, width), np.int64), np.empty(0, np.int64))

    @classmethod
    def entering(cls, rows: Ids) -> Batch:
        return cls(rows, np.ones(len(rows), np.int64))

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]], weights: Sequence[int], width: int) -> Batch:
        """Make a batch from plain lists."""
        return cls(np.array(rows, np.int64).reshape(len(rows), width), np.array(weights, np.int64))

    def __neg__(self) -> Batch:
        return Batch(self.rows, -self.weights)

    def kept(self, mask: Mask) -> Batch:
        """Return the rows where the mask is true."""
        return self if mask.all() else Batch(self.rows[mask], self.weights[mask])

    def part(self, first: int, stop: int) -> Batch:
        """Return the rows from one place up to another."""
        return Batch(self.rows[first:stop], self.weights[first:stop])

    def picked(self, columns: Sequence[int]) -> Batch:
        """Return the same rows with these columns only."""
        if list(columns) == list(range(self.rows.shape[1])):
            return self
        return Batch(np.ascontiguousarray(self.rows[:, list(columns)]), self.weights)

    def widened(self, column: Ids) -> Batch:
        """Return the same rows with one more column."""
        return Batch(np.column_stack((self.rows, column)), self.weights)

    def consolidated(self) -> Batch:
        """Return each row once, with the sum of its weights if it is not 0; sorted by ids."""
        if not len(self):
            return self
        if not self.rows.shape[1]:
            total = self.weights.sum(keepdims=True)
            return Batch(np.empty((1, 0), np.int64), total) if total[0] else Batch.empty(0)
        order = np.lexsort(self.rows.T[::-1])
        rows, weights = self.rows[order], self.weights[order]
        first = np.ones(len(rows), np.bool_)
        first[1:] = (rows[1:] != rows[:-1]).any(axis=1)
        starts = np.flatnonzero(first)
        sums = np.add.reduceat(weights, starts)
        kept = sums != 0
        return Batch(np.ascontiguousarray(rows[starts[kept]]), sums[kept])


def concatenated(batches: Sequence[Batch], width: int) -> Batch:
    """Concatenate batches."""
    some = [batch for batch in batches if len(batch)]
    if len(some) < 2:
        return some[0] if some else Batch.empty(width)
    return Batch(np.concatenate([one.rows for one in some]), np.concatenate([one.weights for one in some]))
