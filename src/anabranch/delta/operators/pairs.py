"""Pairs of rows of two traces that meet: the common part of the joins.

A left and a right row meet when they agree on the shared columns. Strict: null agrees with nothing, other ids agree
when they are of one class. Lenient: ids agree when they are the same, and null, the unbound variable, agrees with
everything; both traces are searched by the columns that are certainly bound, the others are compared pair by pair.
Where no column is certain, rows are also kept on shelves by their bound columns.

Invariant: `left` and `right` hold stored rows: the row as it came, in strict mode behind the classes of its shared
columns, so that a key is found by class and the exact ids are still known.
Work: O(rows + pairs that agree on the key), and all pairs where no column is shared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from anabranch.delta.batch import NULL, Batch, Ids, Mask, Weights
from anabranch.delta.operators.base import RowTest, SameAs, Size
from anabranch.delta.operators.shelves import Shelves
from anabranch.delta.patterns import BudgetExceeded
from anabranch.delta.trace import Trace, WeightChange, net, total_size

Combine: TypeAlias = Callable[[Ids, Ids], Ids]
"""From the ids of two equivalent values, on the left and on the right, to the ids that the joined rows show."""

_MOST_BYTES = 1 << 30  # limit of the pairs of one batch while they are made
_MOST_PAIRS = 1 << 19
"""How many pairs are made at once where there is no key: most of them will fail the tests."""


class Shared(NamedTuple):
    """A column that both sides have, and whether it is never null on either."""

    left: int
    right: int
    certain: bool


class JoinedRows(NamedTuple):
    """Pairs of given rows with stored ones: the place of the given row, the stored row and its weight, and the joined
    row (without columns where joined rows are not needed)."""

    given: Ids
    others: Ids
    weights: Weights
    joined: Ids

    def change(self, batch: Batch) -> Batch:
        """Return the joined rows as the change that follows from the given batch."""
        return Batch(self.joined, batch.weights.take(self.given) * self.weights)


class Side(NamedTuple):
    """Columns of one side: in rows as they come, the shared ones of the key and those that may be null; in stored rows,
    the columns of the key and the start of the row."""

    shared: list[int]
    unsure: list[int]
    keys: list[int]
    start: int


class Pairs:
    """Finds the pairs of rows of two sides. `minus` requires a shared column that is bound on both sides, and makes no
    joined rows."""

    def __init__(
        self,
        left_width: int,
        right_width: int,
        shared: Sequence[tuple[int, int, bool]],
        *,
        lenient: bool,
        same: SameAs | None = None,
        combine: Combine | None = None,
        condition: RowTest | None = None,
        minus: bool = False,
    ) -> None:
        columns = [Shared(*one) for one in shared]
        keys = [one for one in columns if one.certain or not lenient]
        self._same = None if lenient or not keys else same
        self._combine = combine
        self._condition = condition
        self._unsure = [one for one in columns if lenient and not one.certain]
        self._overlap = minus and not keys
        self._strict = not lenient
        self._joins = not minus
        self._keys = keys
        taken = {one.right for one in columns}
        self._added = [column for column in range(right_width) if column not in taken]
        self.left_width = left_width
        self.width = left_width + len(self._added)
        self.left_side = self._side([one.left for one in keys], [one.left for one in self._unsure])
        self.right_side = self._side([one.right for one in keys], [one.right for one in self._unsure])
        self.left = Trace(self.left_side.start + left_width, tuple(self.left_side.keys))
        self.right = Trace(self.right_side.start + right_width, tuple(self.right_side.keys))
        shelved = bool(self._unsure) and not keys
        self._left_shelves = Shelves(left_width, self.left_side.unsure) if shelved else None
        self._right_shelves = Shelves(right_width, self.right_side.unsure) if shelved else None

    def _side(self, shared: list[int], unsure: list[int]) -> Side:
        if self._same is None:
            return Side(shared, unsure, shared, 0)
        return Side(shared, unsure, list(range(len(shared))), len(shared))

    @property
    def by_key_alone(self) -> bool:
        """Whether all rows with the same key meet: then the sum per key is the number of a row's partners."""
        return not self._unsure and self._condition is None

    # --- rows as they come, and as they are stored ---

    def taken_left(self, batch: Batch) -> tuple[Batch, Batch]:
        """Return the left rows to store, each once; and the rows, as they came, that can never meet any."""
        return self._taken(batch, self.left_side)

    def taken_right(self, batch: Batch) -> Batch:
        """Return the right rows to store, each once."""
        return self._taken(batch, self.right_side)[0]

    def _taken(self, batch: Batch, side: Side) -> tuple[Batch, Batch]:
        never = Batch(batch.rows[:0], batch.weights[:0])
        if self._strict:
            bound = batch.rows.take(side.shared, axis=1) != NULL
            can_meet: Mask | None = None if bound.all() else bound.all(axis=1)
        else:
            can_meet = (batch.rows.take(side.unsure, axis=1) != NULL).any(axis=1) if self._overlap else None
        if can_meet is not None:
            batch, never = batch.kept(can_meet), batch.kept(~can_meet)
        batch = net(batch)
        if self._same is not None and len(batch):
            classes = np.column_stack([self._same(batch.rows[:, column]) for column in side.shared])
            batch = Batch(np.concatenate((classes, batch.rows), axis=1), batch.weights)
        elif self._same is not None:
            batch = Batch.empty(side.start + batch.rows.shape[1])
        return batch, never

    def add_left(self, batch: Batch) -> WeightChange:
        """Store a change of left rows."""
        if self._left_shelves is not None:
            self._left_shelves.add(batch)
        return self.left.add(batch)

    def add_right(self, batch: Batch) -> WeightChange:
        """Store a change of right rows."""
        if self._right_shelves is not None:
            self._right_shelves.add(batch)
        return self.right.add(batch)

    def size(self) -> Size:
        rows, held = total_size((self.left, self.right))
        shelves = (self._left_shelves, self._right_shelves)
        return Size(rows, held + sum(one.size().bytes for one in shelves if one is not None))

    def exact_left(self, stored: Ids) -> Ids:
        """Return stored left rows as they came."""
        return stored[:, self.left_side.start :]

    # --- pairs ---

    def with_right(self, batch: Batch) -> JoinedRows:
        """Return the pairs of stored left rows with the rows of the right trace."""
        return self._meet(batch.rows, self.left_side, self.right, self._right_shelves)

    def with_left(self, batch: Batch) -> JoinedRows:
        """Return the pairs of stored right rows with the rows of the left trace."""
        return self._meet(batch.rows, self.right_side, self.left, self._left_shelves)

    def _meet(self, rows: Ids, side: Side, trace: Trace, shelves: Shelves | None) -> JoinedRows:
        if shelves is None:
            return self._meet_all(rows, side, side.keys, trace)
        parts = [self._meet_all(rows[:0], side, side.keys, trace)]
        for chosen, keys, index in shelves.routes(rows, side.unsure, self._overlap):
            met = self._meet_all(rows.take(chosen, axis=0), side, keys, index)
            parts.append(met._replace(given=chosen.take(met.given)))
        return _together(parts)

    def _refuse_many(self, rows: Ids, keys: list[int], trace: Trace) -> None:
        """Raise an error if more pairs would be made at once than fit the limit, as far as keys determine their
        number."""
        most = _MOST_BYTES // (8 * (self.width + trace.width + 3))
        if len(rows) * len(trace) <= most or self._condition is not None or self._unsure:
            return
        pairs = int(np.maximum(trace.totals(rows.take(keys, axis=1)), 0).sum()) if keys else len(rows) * len(trace)
        if pairs > most:
            raise BudgetExceeded("bytes", _MOST_BYTES)

    def _meet_all(self, rows: Ids, side: Side, keys: list[int], trace: Trace) -> JoinedRows:
        self._refuse_many(rows, keys, trace)
        step = len(rows) if keys else max(1, _MOST_PAIRS // (len(trace) + 1))
        if len(rows) <= step:
            return self._meet_some(rows, side, keys, trace)
        parts = []
        for start in range(0, len(rows), step):
            met = self._meet_some(rows[start : start + step], side, keys, trace)
            parts.append(met._replace(given=met.given + start))
        return _together(parts)

    def _meet_some(self, rows: Ids, side: Side, keys: list[int], trace: Trace) -> JoinedRows:
        given, others, weights = trace.probe(rows.take(keys, axis=1))
        mine = rows.take(given, axis=0)
        left, right = (mine, others) if side is self.left_side else (others, mine)
        left, right = left[:, self.left_side.start :], right[:, self.right_side.start :]
        passed = self._agreeing(left, right)
        if passed is not None:
            given, others, weights, left, right = (one[passed] for one in (given, others, weights, left, right))
        joined = self._joined(left, right) if self._joins else np.empty((len(given), 0), np.int64)
        if self._condition is not None and len(given):
            passed = self._condition(joined)
            given, others, weights, joined = (one[passed] for one in (given, others, weights, joined))
        return JoinedRows(given, others, weights, joined)

    def _agreeing(self, left: Ids, right: Ids) -> Mask | None:
        """Return which pairs with the same key agree on the other shared columns; None if all do."""
        if not self._unsure or not len(left):
            return None
        agree = np.ones(len(left), np.bool_)
        both = np.zeros(len(left), np.bool_)
        for one in self._unsure:
            mine, other = left[:, one.left], right[:, one.right]
            bound = (mine != NULL) & (other != NULL)
            agree &= ~bound | (mine == other)
            both |= bound
        return agree & both if self._overlap else agree

    def _joined(self, left: Ids, right: Ids) -> Ids:
        joined = np.empty((len(left), self.width), np.int64)
        joined[:, : self.left_width] = left
        joined[:, self.left_width :] = right[:, self._added]
        for one in self._unsure:
            column = joined[:, one.left]
            np.copyto(column, right[:, one.right], where=column == NULL)
        if self._same is not None and self._combine is not None:
            for one in self._keys:
                column, other = joined[:, one.left], right[:, one.right]
                differ = np.flatnonzero(column != other)
                if len(differ):
                    column[differ] = self._combine(column[differ], other[differ])
        return joined


def _together(parts: list[JoinedRows]) -> JoinedRows:
    return JoinedRows(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
