"""ORDER BY, SKIP and LIMIT: the rows at places `skip` to `skip + limit` of a bag that is kept in order.

Law: sorted(A)[skip : skip + limit], by the given order and, among rows that it leaves equal, by their ids.

State: every row of A with its key, sorted.
Work per batch: O(log n) comparisons for each row that changes, and at most two output rows for it: a row that enters
before the slice's end pushes one row out at the end and, when it enters before the beginning, one row in there. A batch
that changes a large part of A is merged instead: O(n).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from anabranch.delta.batch import Batch
from anabranch.delta.operators.base import DeltaOperator, Size
from anabranch.model.sorted_bag import SortedBag

OrderedIdRow = tuple[int, ...]

_SHARE_OF_MERGE = 8  # from an eighth of the rows on, sorting all is cheaper than placing each
_FEW = 64
_BYTES_OF_ROW = 450  # a guess: keys are tuples of tuples


class _Entry(NamedTuple):
    """The sort entry of a row. Ids order rows with equal keys, so entries are equal only for equal rows."""

    key: Any
    row: OrderedIdRow


class OrderedSlice(DeltaOperator):
    """The slice of an ordered bag. `order` gives the sort key of a row of ids; it is called once for each present row,
    and keys have `<`, `==` and a hash. `limit` None: no bound."""

    def __init__(
        self, width: int, order: Callable[[OrderedIdRow], Any], skip: int = 0, limit: int | None = None
    ) -> None:
        self.width = width
        self._order = order
        self._skip = skip
        self._end = None if limit is None else skip + limit
        self._empty = limit == 0
        self._bag: SortedBag[_Entry] = SortedBag()
        self._known: dict[OrderedIdRow, _Entry] = {}
        self._counts: dict[OrderedIdRow, int] = {}
        self.revision = 0
        """How many batches changed the bag: as long as it stays, `ordered` gives the same rows."""

    def apply(self, *inputs: Batch) -> Batch:
        batch = inputs[0].consolidated()
        if not len(batch):
            return Batch.empty(self.width)
        self.revision += 1
        leaving: list[_Entry] = []
        entering: list[_Entry] = []
        for values, weight in zip(batch.rows.tolist(), batch.weights.tolist(), strict=True):
            row = tuple(values)
            (entering if weight > 0 else leaving).extend([self._entry(row)] * abs(weight))
            self._count(row, weight)
        if not self._skip and self._end is None:
            self._place(entering, leaving)
            return batch
        changes: Counter[OrderedIdRow] = Counter()
        if self._is_large(len(entering) + len(leaving)):
            changes.subtract(self.ordered())
            self._bag.update(entering, leaving)
            changes.update(self.ordered())
        else:
            for entry in leaving:
                self._leave(entry, changes)
            for entry in entering:
                self._enter(entry, changes)
        told = [(row, weight) for row, weight in changes.items() if weight]
        return Batch.of([row for row, _ in told], [weight for _, weight in told], self.width)

    def _entry(self, row: OrderedIdRow) -> _Entry:
        known = self._known.get(row)
        if known is None:
            known = self._known[row] = _Entry(self._order(row), row)
        return known

    def _count(self, row: OrderedIdRow, weight: int) -> None:
        count = self._counts.get(row, 0) + weight
        if count:
            self._counts[row] = count
        else:
            del self._counts[row], self._known[row]
            if not self._counts:  # a dictionary keeps the room that it once needed
                self._counts, self._known = {}, {}

    def _is_large(self, changes: int) -> bool:
        return changes > max(_FEW, len(self._bag) // _SHARE_OF_MERGE)

    def _place(self, entering: list[_Entry], leaving: list[_Entry]) -> None:
        if self._is_large(len(entering) + len(leaving)):
            self._bag.update(entering, leaving)
            return
        for entry in leaving:
            self._bag.remove(entry)
        for entry in entering:
            self._bag.add(entry)

    # --- one row at a time ---

    def _at(self, place: int | None) -> _Entry | None:
        return self._bag[place] if place is not None and place < len(self._bag) else None

    def _enter(self, entry: _Entry, changes: Counter[OrderedIdRow]) -> None:
        self._bag.add(entry)
        pushed_out = self._at(self._end)
        if self._empty or (pushed_out is not None and not entry < pushed_out):
            return
        first = self._at(self._skip)
        if pushed_out is not None:
            changes[pushed_out.row] -= 1
        if first is not None:
            changes[max(entry, first).row] += 1

    def _leave(self, entry: _Entry, changes: Counter[OrderedIdRow]) -> None:
        pulled_in, first = self._at(self._end), self._at(self._skip)
        self._bag.remove(entry)
        if self._empty or (pulled_in is not None and not entry < pulled_in):
            return
        if pulled_in is not None:
            changes[pulled_in.row] += 1
        if first is not None:
            changes[max(entry, first).row] -= 1

    # --- what is there ---

    def ordered(self) -> Iterator[OrderedIdRow]:
        """Return the present rows of the slice, in order."""
        if not self._skip and self._end is None:
            return (entry.row for entry in self._bag)
        return (entry.row for entry in self._bag.between(self._skip, self._end))

    def size(self) -> Size:
        rows = len(self._bag)
        return Size(rows, len(self._known) * (_BYTES_OF_ROW + 8 * self.width) + 8 * rows)
