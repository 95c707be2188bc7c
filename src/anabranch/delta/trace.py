"""Trace: a bag of rows of ids with an index by key; the state of operators.

Law: after any sequence of `add`, the weight of a row is the sum of the weights that were added for it.
Invariant: a row is held exactly while its weight is above 0; a sum below 0 is a defect of the sender of the batch.

State: each distinct row once, with its weight; a hash table on whole rows; a hash table on the key columns with one
chain of rows per key (neither table nor chains where the key is the whole row, or has no columns). Arrays double when
full and are rebuilt smaller when fewer than an eighth of their places are taken: memory follows the living rows.
Work: O(batch) to add, O(keys + found rows) to probe, O(keys) for totals, amortised; independent of the number of rows
held.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from anabranch.delta.batch import Batch, Ids, Weights
from anabranch.delta.kernels import rows as kernels
from anabranch.delta.kernels.rows import TraceTables
from anabranch.delta.operators.base import Size
from anabranch.errors import InternalError

_SMALLEST = 16
_MOST = 1 << 30


class WeightChange(NamedTuple):
    """The distinct rows of a batch, with their weights before and after."""

    rows: Ids
    before: Weights
    after: Weights


class TraceRows(NamedTuple):
    """Found rows: the position of the key in the question, the row, its weight."""

    asked: Ids
    rows: Ids
    weights: Weights


class Trace:
    """A bag of rows; `keys` are the columns of its index."""

    __slots__ = (
        "_all",
        "_columns",
        "_grouped",
        "_held",
        "_live",
        "_order",
        "keys",
        "width",
    )

    def __init__(self, width: int, keys: tuple[int, ...]) -> None:
        if not all(0 <= key < width for key in keys):
            raise InternalError(f"a trace of {width} columns has no key columns {keys}")
        self.width = width
        self.keys = keys
        self._all = np.arange(width)
        self._columns = np.array(keys, np.int64)
        whole = bool(keys) and sorted(keys) == list(range(width))
        self._grouped = bool(keys) and not whole
        # Where the key is the whole row in another order, keys are reordered to the order of the columns.
        self._order = [keys.index(column) for column in range(width)] if whole and keys != tuple(range(width)) else None
        self._build(_SMALLEST)

    def _build(self, capacity: int) -> None:
        """Create an empty state with this many places, a power of two."""
        groups = capacity if self._grouped else 0
        cells = np.zeros((capacity, self.width + kernels.EXTRA), np.int64)
        states = np.zeros(1, kernels.STATE)
        states["free_row"] = states["free_group"] = -1
        self._live = states["live"]
        self._held = TraceTables(
            cells,
            cells.view(np.int32),
            np.zeros(2 * capacity, np.int64),
            self._columns,
            np.zeros(2 * groups, np.int64),
            np.zeros(groups, kernels.GROUP),
            states,
        )

    # --- changes ---

    def add(self, batch: Batch) -> WeightChange:
        """Add the weights of a batch. The order of its rows does not matter: only sums must not fall below 0. The rows
        are returned in the order of their first place in the batch."""
        if not len(batch):
            return WeightChange(np.empty((0, self.width), np.int64), batch.weights, batch.weights)
        touched = self._take_in(usable(batch.rows), usable(batch.weights))
        if touched.after.min() < 0:
            raise InternalError("a row left a trace more often than it had entered")
        if 8 * self._live[0] < len(self._held.cells) > _SMALLEST:
            self._shrink()
        return touched

    def _take_in(self, rows: Ids, weights: Weights) -> WeightChange:
        touched = np.empty(len(weights), np.int32)
        before = np.empty(len(weights), np.int64)
        done = 0
        while True:
            done, given, after = kernels.take_in(self._held, done, rows, weights, touched, before)
            if done == len(rows):
                return WeightChange(given, before[: len(after)], after)
            self._grow(len(rows) - done)

    def _grow(self, waiting: int) -> None:
        """Make more places; all rows keep theirs."""
        held = self._held
        old = len(held.cells)
        capacity = (8 if waiting > 8 * old else 2) * old
        if capacity > _MOST:
            raise InternalError(f"a trace holds at most {_MOST:,} rows")
        cells = longer(held.cells, capacity)
        held = held._replace(cells=cells, links=cells.view(np.int32), table=replanted(held.table, 2 * capacity))
        if self._grouped:
            held = held._replace(groups=longer(held.groups, capacity), keys=replanted(held.keys, 2 * capacity))
        self._held = held

    def _shrink(self) -> None:
        """Rebuild the state with fewer places."""
        kept = self.rows()
        smaller = _SMALLEST
        while smaller < 2 * len(kept):
            smaller *= 2
        self._build(smaller)
        self._take_in(kept.rows, kept.weights)

    # --- questions ---

    def probe(self, keys: Ids) -> TraceRows:
        """Return all rows with these values in the key columns; without key columns, all rows for each question."""
        if not len(keys):
            return TraceRows(np.empty(0, np.int64), np.empty((0, self.width), np.int64), np.empty(0, np.int64))
        if not self.keys:
            every = self.rows()
            asked = np.repeat(np.arange(len(keys)), len(every))
            return TraceRows(asked, np.tile(every.rows, (len(keys), 1)), np.tile(every.weights, len(keys)))
        found = self._find(keys)
        if self._grouped:
            return TraceRows(*kernels.spread(found, self._held.cells, self._held.links, self._held.groups))
        asked = np.flatnonzero(found >= 0)
        cells = self._held.cells.take(found[asked], axis=0)
        return TraceRows(
            asked, np.ascontiguousarray(cells[:, : self.width]), np.ascontiguousarray(cells[:, self.width])
        )

    def totals(self, keys: Ids) -> Weights:
        """Return for each key the sum of the weights of its rows."""
        if not self.keys:
            return np.full(len(keys), self._held.states["sum"][0])
        found = self._find(keys)
        return _at(self._held.groups["total"] if self._grouped else self._held.cells[:, self.width], found)

    def weights_of(self, rows: Ids) -> Weights:
        """Return the weight of each row."""
        found = kernels.find(usable(rows), self._held.table, self._held.cells, self._all, _NO_GROUPS)
        return _at(self._held.cells[:, self.width], found)

    def _find(self, keys: Ids) -> kernels.Numbers:
        """Return the groups of the keys, or their rows where there are no groups."""
        if self._grouped:
            return kernels.find(usable(keys), self._held.keys, self._held.cells, self._columns, self._held.groups)
        if self._order is not None:
            keys = keys.take(self._order, axis=1)
        return kernels.find(usable(keys), self._held.table, self._held.cells, self._all, _NO_GROUPS)

    def rows(self) -> Batch:
        """Return all rows that are held."""
        cells = self._held.cells[: self._held.states["used"][0]]
        alive = cells[cells[:, self.width] != 0]
        return Batch(np.ascontiguousarray(alive[:, : self.width]), np.ascontiguousarray(alive[:, self.width]))

    def __len__(self) -> int:
        """Return how many distinct rows are held."""
        return int(self._live[0])

    def size(self) -> Size:
        held = self._held
        arrays = (held.cells, held.groups, held.table, held.keys)
        return Size(len(self), sum(array.nbytes for array in arrays))


_NO_GROUPS = np.empty(0, kernels.GROUP)


def net(batch: Batch) -> Batch:
    """Return each row once, with the sum of its weights if it is not 0; leaving rows come first."""
    if not len(batch):
        return batch
    firsts, weights = kernels.sums(usable(batch.rows), usable(batch.weights))
    return Batch(batch.rows.take(firsts, axis=0), weights)


def distinct_rows(rows: Ids) -> Ids:
    """Return each row once, in the order of first appearance."""
    firsts, _ = kernels.sums(usable(rows), np.ones(len(rows), np.int64))
    return rows if len(firsts) == len(rows) else rows.take(firsts, axis=0)


def halves(batch: Batch) -> tuple[Batch, Batch]:
    """Split a net batch into the leaving and the entering rows."""
    rows, weights = batch.rows, batch.weights
    leaving = int(np.count_nonzero(weights < 0))
    return Batch(rows[:leaving], weights[:leaving]), Batch(rows[leaving:], weights[leaving:])


def total_size(traces: Sequence[Trace]) -> Size:
    """Return the size of several traces together."""
    sizes = [trace.size() for trace in traces]
    return Size(sum(size.rows for size in sizes), sum(size.bytes for size in sizes))


def usable(array: Ids) -> Ids:
    """Return the array in the layout for which the kernels are compiled: C-contiguous and writable."""
    flags = array.flags
    return array if flags.c_contiguous and flags.writeable else array.copy(order="C")


def _at(values: Weights, found: kernels.Numbers) -> Weights:
    """Return the values at the found places, and 0 where nothing was found."""
    # Not `take`, which would copy all of a column first; -1 picks the last one, which is not used.
    return np.where(found >= 0, values[found], 0)


def longer(array: np.ndarray[tuple[int, ...], np.dtype[np.generic]], length: int) -> np.ndarray:
    """Return the array with zeros behind it."""
    longer = np.zeros((length, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer


def replanted(table: kernels.Slots, length: int) -> kernels.Slots:
    """Return a table of this length, a power of two, with the entries of another."""
    larger = np.zeros(length, np.int64)
    kernels.replant(table, larger)
    return larger
