"""ORDER BY, SKIP and LIMIT: the rows at places `skip` to `skip + limit` of a bag that is kept in order.

Law: sorted(A)[skip : skip + limit], by the given order and, among rows that it leaves equal, by their ids.

State: every row of A with its sort words, and the order of rows, on arrays.
Work per batch: O(log n) comparisons for each row that changes, and at most two output rows for it: a row that enters
before the slice's end pushes one row out at the end and, when it enters before the beginning, one row in there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from anabranch.delta.batch import Batch, Ids
from anabranch.delta.kernels import ordered_rows as kernels
from anabranch.delta.kernels.ordered_rows import CHUNK, OrderChanges, OrderTable, SliceChanges
from anabranch.delta.operators.base import DeltaOperator, Size
from anabranch.delta.patterns import Changes
from anabranch.delta.sort_words import RowWords
from anabranch.delta.trace import longer, usable

_SMALLEST = 64
_NOTHING = np.empty(0, np.int64)


class SlideListings(NamedTuple):
    """The rows of a slice after each slide that changed the bag, by their numbers: at `slides[i]` they are
    `rows[starts[i] : stops[i]]`."""

    slides: Ids
    rows: Ids
    starts: Ids
    stops: Ids


class OrderedSlice(DeltaOperator):
    """The slice of an ordered bag. `order` gives the sort words of rows. `limit` None: no bound. With `lists` set, it
    tells the rows of the slice after each of several slides."""

    def __init__(self, width: int, order: RowWords, skip: int = 0, limit: int | None = None) -> None:
        self.width = width
        self.lists = False
        self.listings: SlideListings | None = None
        self.kept: list[Any] = []
        """What the reader of the rows keeps of each, by its number; None where it has kept nothing."""
        self.revision = 0
        """How many batches changed the bag: as long as it stays, the slice has the same rows."""
        self._order = order
        self._known_at = order.revision
        self._skip = skip
        self._stop = -1 if limit is None else skip + limit
        self._used = 0  # numbers of rows
        self._table = OrderTable(
            np.zeros((_SMALLEST, self.width), np.int64),
            np.zeros((_SMALLEST, self._order.width), np.int64),
            np.zeros(_SMALLEST, np.int64),
            np.zeros((1, CHUNK), np.int64),
            np.zeros(1, np.int64),
            np.zeros(1, np.int64),
            np.zeros(_SMALLEST, np.int64),
            np.zeros(1, kernels.STATE),
        )

    def apply(self, *inputs: Batch) -> Batch:
        return self._place(Changes(inputs[0], np.array([len(inputs[0])])), False).batch

    def apply_slides(self, changes: Changes) -> Changes:
        return self._place(changes, self.lists)

    def _place(self, changes: Changes, lists: bool) -> Changes:
        batch, ends = changes
        self.listings = None
        if not len(batch):
            return Changes(Batch.empty(self.width), ends)
        self.revision += 1
        weights = usable(batch.weights)
        units = int(np.abs(weights).sum())
        is_bounded = self._skip > 0 or self._stop >= 0
        lengths = stops = _NOTHING
        if lists:
            lengths = self._lengths(changes)
            stops = np.cumsum(lengths)
        room = 2 * units if is_bounded else 0
        told = SliceChanges(
            np.empty(room, np.int64) if room else _NOTHING,
            np.empty(room, np.int64) if room else _NOTHING,
            np.empty(len(ends), np.int64),
            np.empty(int(stops[-1]), np.int64) if lists else _NOTHING,
            stops,
        )
        first = self._take(batch)
        self._make_chunks(units)
        kernels.place_rows(self._table, OrderChanges(first, weights, usable(ends), self._skip, self._stop), told)
        if lists:
            slides = np.flatnonzero(np.diff(ends, prepend=0))
            self.listings = SlideListings(slides, told.listed, (stops - lengths)[slides], stops[slides])
        if not is_bounded:
            return changes
        count = int(told.ends[-1])
        return Changes(Batch(self._table.rows[told.rows[:count]], told.weights[:count]), told.ends)

    def _lengths(self, changes: Changes) -> Ids:
        """Return the number of rows of the slice after each slide; 0 where the slide changes nothing."""
        sums = np.concatenate(([0], np.cumsum(changes.batch.weights)))
        lengths = np.maximum(len(self) + sums[changes.ends] - self._skip, 0)
        if self._stop >= 0:
            lengths = np.minimum(lengths, max(0, self._stop - self._skip))
        return np.where(np.diff(changes.ends, prepend=0) > 0, lengths, 0)

    def _take(self, batch: Batch) -> int:
        """Give numbers to changed rows; return the first. Rows that are there have another."""
        if self._used + len(batch) > len(self._table.copies):
            self._make_room(len(batch))
        table = self._table
        first, self._used = self._used, self._used + len(batch)
        words = self._order.words(batch.rows)
        table.rows[first : self._used] = batch.rows
        table.words[first : self._used] = words
        self.kept += [None] * len(batch)
        while self._known_at != self._order.revision:  # words have changed their meaning
            self._known_at = self._order.revision
            table.words[: self._used] = self._order.words(table.rows[: self._used])
        return first

    def _make_room(self, rows: int) -> None:
        """Forget the rows that are not there, and make room for more."""
        table = self._table
        there = np.flatnonzero(table.copies[: self._used])
        numbers = np.zeros(len(table.copies), np.int64)
        numbers[there] = np.arange(len(there))
        self.kept = [self.kept[row] for row in there.tolist()]
        self._used = len(there)
        room = _SMALLEST
        while room < 2 * (self._used + rows):
            room *= 2
        chunks = table.directory[: table.states["chunks"][0]]
        self._table = OrderTable(
            longer(table.rows[there], room),
            longer(table.words[there], room),
            longer(table.copies[there], room),
            numbers[table.chunks[chunks]],
            table.sizes[chunks],
            np.arange(len(chunks)),
            np.zeros(room, np.int64),
            table.states,
        )

    def _make_chunks(self, units: int) -> None:
        """Make sure that there are chunks for so many more entries."""
        table, used = self._table, int(self._table.states["chunks"][0])
        # A chunk is split when it is full: since before, or because half of its entries came since it was made.
        needed = used + 1 + min(units, used + 2 * units // CHUNK + 1)
        if needed > len(table.chunks):
            self._table = table._replace(
                chunks=longer(table.chunks, 2 * needed),
                sizes=longer(table.sizes, 2 * needed),
                directory=np.concatenate((table.directory, np.arange(len(table.chunks), 2 * needed))),
            )

    # --- what is there ---

    def __len__(self) -> int:
        """Return the number of rows of the bag."""
        return int(self._table.states["entries"][0])

    def listed(self) -> Ids:
        """Return the rows of the slice, in order, by their numbers."""
        stop = len(self) if self._stop < 0 else min(self._stop, len(self))
        found = np.empty(max(0, stop - self._skip), np.int64)
        kernels.list_rows(self._table, self._skip, found)
        return found

    def ids(self, rows: Ids) -> Ids:
        """Return the ids of rows, which are given by their numbers."""
        return self._table.rows[rows]

    def size(self) -> Size:
        rows = len(self)
        return Size(rows, sum(int(array.nbytes) for array in self._table) if rows else 0)
