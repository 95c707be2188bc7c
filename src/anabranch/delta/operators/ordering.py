"""ORDER BY, SKIP and LIMIT: the rows at places `skip` to `skip + limit` of a bag that is kept in order.

Law: sorted(A)[skip : skip + limit], by the given order and, among rows that it leaves equal, by their ids.

State: every row of A with its key, sorted.
Work per batch: O(log n) comparisons for each row that changes, and at most two output rows for it: a row that enters
before the slice's end pushes one row out at the end and, when it enters before the beginning, one row in there. A batch
that changes a large part of A is merged instead: O(n).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from anabranch.delta.batch import Batch
from anabranch.delta.operators.base import DeltaOperator, Size
from anabranch.model.sorted_bag import SortedBag

OrderedIdRow = tuple[int, ...]
SortKeysOf: TypeAlias = Callable[[Sequence[OrderedIdRow]], Sequence[tuple[Any, ...]]]

_SHARE_OF_MERGE = 8  # from an eighth of the rows on, sorting all is cheaper than placing each
_FEW = 64
_BYTES_OF_ROW = 450  # a guess: keys are tuples of tuples


Entry: TypeAlias = tuple[Any, ...]
"""The sort entry of a row: the parts of its key, and the row itself, which orders rows with equal keys. So entries are
equal only for equal rows. One flat tuple compares twice as fast as a key and a row in two."""


class OrderedSlice(DeltaOperator):
    """The slice of an ordered bag. `order` gives the sort keys of rows of ids, which are tuples; it is asked once for
    each present row, and the parts of keys have `<`, `==` and a hash. `limit` None: no bound."""

    def __init__(self, width: int, order: SortKeysOf, skip: int = 0, limit: int | None = None) -> None:
        self.width = width
        self._order = order
        self._skip = skip
        self._end = None if limit is None else skip + limit
        self._empty = limit == 0
        self._bag: SortedBag[Entry] = SortedBag()
        self._known: dict[OrderedIdRow, Entry] = {}
        self._copies: dict[OrderedIdRow, int] = {}  # of rows that are there more than once: beyond the first
        self.revision = 0
        """How many batches changed the bag: as long as it stays, `ordered` gives the same rows."""

    def apply(self, *inputs: Batch) -> Batch:
        return self.take(inputs[0].consolidated())

    def take(self, batch: Batch) -> Batch:
        """Take a consolidated batch; return the resulting change."""
        if not len(batch):
            return Batch.empty(self.width)
        self.revision += 1
        leaving: list[Entry] = []
        entering: list[Entry] = []
        known = self._known
        rows = list(map(tuple, batch.rows.tolist()))
        new = [row for row in rows if row not in known]
        made = dict(zip(new, self._order(new), strict=True)) if new else {}
        for row, weight in zip(rows, batch.weights.tolist(), strict=True):
            entry = known.get(row)
            if entry is None:
                entry = known[row] = (*made[row], row)
                entering.append(entry)
                if weight > 1:
                    entering += [entry] * (weight - 1)
                    self._copies[row] = weight - 1
            elif weight == -1 and row not in self._copies:
                del known[row]
                leaving.append(entry)
            else:
                (entering if weight > 0 else leaving).extend([entry] * abs(weight))
                self._count(row, weight)
        if not known:  # a dictionary keeps the room that it once needed
            self._known = {}
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

    def _count(self, row: OrderedIdRow, weight: int) -> None:
        copies = self._copies.pop(row, 0) + weight
        if copies > 0:
            self._copies[row] = copies
        elif copies < 0:
            del self._known[row]

    def _is_large(self, changes: int) -> bool:
        return changes > max(_FEW, len(self._bag) // _SHARE_OF_MERGE)

    def _place(self, entering: list[Entry], leaving: list[Entry]) -> None:
        if self._is_large(len(entering) + len(leaving)):
            self._bag.update(entering, leaving)
            return
        for entry in leaving:
            self._bag.remove(entry)
        for entry in entering:
            self._bag.add(entry)

    # --- one row at a time ---

    def _at(self, place: int | None) -> Entry | None:
        return self._bag[place] if place is not None and place < len(self._bag) else None

    def _enter(self, entry: Entry, changes: Counter[OrderedIdRow]) -> None:
        self._bag.add(entry)
        pushed_out = self._at(self._end)
        if self._empty or (pushed_out is not None and not entry < pushed_out):
            return
        first = self._at(self._skip)
        if pushed_out is not None:
            changes[pushed_out[-1]] -= 1
        if first is not None:
            changes[max(entry, first)[-1]] += 1

    def _leave(self, entry: Entry, changes: Counter[OrderedIdRow]) -> None:
        pulled_in, first = self._at(self._end), self._at(self._skip)
        self._bag.remove(entry)
        if self._empty or (pulled_in is not None and not entry < pulled_in):
            return
        if pulled_in is not None:
            changes[pulled_in[-1]] += 1
        if first is not None:
            changes[max(entry, first)[-1]] -= 1

    # --- what is there ---

    def ordered(self) -> Iterator[OrderedIdRow]:
        """Return the present rows of the slice, in order."""
        if not self._skip and self._end is None:
            return (entry[-1] for entry in self._bag)
        return (entry[-1] for entry in self._bag.between(self._skip, self._end))

    def size(self) -> Size:
        rows = len(self._bag)
        return Size(rows, len(self._known) * (_BYTES_OF_ROW + 8 * self.width) + 8 * rows)
