"""Index of rows by columns that may be null: one index per set of bound columns.

Null agrees with everything, so no single index finds all partners of a row. But rows with the same bound columns can be
found by the columns bound on both sides. A shelf holds the rows of one such set; it gets one index for each set of
columns by which it is searched.

Invariant: a shelf exists exactly while it holds a row; all its indexes hold the same rows.
Work: O(changes) per index of the shelf to add; to search, O(rows) per shelf plus the found rows. A new index costs
O(shelf) once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from anabranch.delta.batch import NULL, Batch, Ids
from anabranch.delta.operators.base import Size
from anabranch.delta.trace import Trace, total_size


class Shelves:
    """Rows by their bound columns. `columns` are those of the stored rows that may be null. A set of columns is a
    number, one bit per place."""

    def __init__(self, width: int, columns: Sequence[int]) -> None:
        self._width = width
        self._columns = list(columns)
        self._shelves: dict[int, dict[int, Trace]] = {}

    def add(self, batch: Batch) -> None:
        for bound, chosen in _by_bound(batch.rows, self._columns):
            part = Batch(batch.rows.take(chosen, axis=0), batch.weights.take(chosen))
            shelf = self._shelves.setdefault(bound, {})
            if not shelf:
                shelf[bound] = self._index(bound)
            for trace in shelf.values():
                trace.add(part)
            if not len(shelf[bound]):
                del self._shelves[bound]

    def routes(self, rows: Ids, columns: Sequence[int], overlap: bool) -> Iterator[tuple[Ids, list[int], Trace]]:
        """Yield, for rows of the other side: the places of some of them, their columns to search by, and the trace to
        search. With `overlap`, only where some column is bound on both sides."""
        for bound, chosen in _by_bound(rows, columns):
            for other, shelf in self._shelves.items():
                both = bound & other
                if both or not overlap:
                    if both not in shelf:
                        shelf[both] = self._index(both)
                        shelf[both].add(shelf[other].rows())
                    yield chosen, _picked(columns, both), shelf[both]

    def _index(self, bound: int) -> Trace:
        return Trace(self._width, tuple(_picked(self._columns, bound)))

    def size(self) -> Size:
        """Return the bytes of all indexes; the rows are copies of rows in traces elsewhere, and are not counted."""
        return Size(0, total_size([trace for shelf in self._shelves.values() for trace in shelf.values()]).bytes)


def _picked(columns: Sequence[int], bound: int) -> list[int]:
    return [column for place, column in enumerate(columns) if bound >> place & 1]


def _by_bound(rows: Ids, columns: Sequence[int]) -> Iterator[tuple[int, Ids]]:
    """Yield each set of bound columns with the places of its rows."""
    if not len(rows):
        return
    bound = (rows.take(columns, axis=1) != NULL) @ (1 << np.arange(len(columns)))
    for one in np.unique(bound).tolist():
        yield one, np.flatnonzero(bound == one)
