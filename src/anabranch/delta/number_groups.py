"""Groups of rows on arrays, with counts, sums and averages of numbers.

Law: that of `GroupedAggregates`, as long as each argument of a sum is null, an integer or a finite float, and the rows
of a group have the same key at the end of each batch. `take` refuses anything else and changes nothing: then `states`
has all that another representation of the groups needs.

State: per group its key, the number of rows, a number per count, the exact sum of the numbers per sum, and the row that
was emitted for it. Arrays double when full, are rebuilt smaller when fewer than an eighth of their places are taken,
and the limbs of sums reach over the range of the floats that came since the last rebuilding.
Work per batch: O(rows), and O(limbs) for each group that changes, in kernels; Python only for integers above 2 ** 53
whose sum is not the result itself, for sums that fail, and for each distinct count of RDF terms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from anabranch.delta.batch import NULL, REFUSED, Batch, Ids, Mask, Weights
from anabranch.delta.dictionary import Dictionary
from anabranch.delta.kernels import number_groups as kernels
from anabranch.delta.kernels import rows as row_kernels
from anabranch.delta.kernels import sums as sum_kernels
from anabranch.delta.kernels.number_groups import (
    BY_VALUE,
    COUNTS,
    MARK,
    ROWS,
    GroupTable,
    NumberChange,
    SlideGroups,
    SlideResults,
    SumResults,
    SumTable,
)
from anabranch.delta.number_sums import FLOAT, INTEGER, MOST_WEIGHT, Kinds, NumberSum, number_sum
from anabranch.delta.operators.base import SameAs, Size
from anabranch.delta.operators.group_calls import AggregateFunction, GroupCall, IdRow, Refuse
from anabranch.delta.patterns import Changes
from anabranch.delta.trace import longer, replanted, usable
from anabranch.errors import EvaluationError

_SMALLEST = 16


class GroupState(NamedTuple):
    """All that is known of a group: the class of its key, its key, its number of rows, its counts, the sums of numbers
    (both in the order of the calls), the results that were emitted, and whether it changed since."""

    key: IdRow
    look: IdRow
    rows: int
    counts: list[int]
    sums: list[NumberSum]
    emitted: IdRow | None
    changed: bool


class _GroupChange(NamedTuple):
    """Changed rows: their groups and weights; per count the ids that it counts, None where it counts rows; per sum the
    kinds and words of numbers."""

    groups: Ids
    weights: Weights
    counted: list[Ids | None]
    kinds: list[Kinds]
    words: list[Ids]

    def change(self, at: int) -> NumberChange:
        """Return the change of a sum."""
        return NumberChange(self.groups, self.kinds[at], self.words[at], self.weights)


class NumberGroups:
    """The groups of an operator whose `calls` are counts and sums. `keeps_empty`: without keys, the one group stays."""

    def __init__(
        self,
        width: int,
        calls: Sequence[GroupCall],
        same: SameAs | None,
        dictionary: Dictionary,
        refuse: Refuse,
        keeps_empty: bool,
    ) -> None:
        self._width = width
        self._calls = calls
        self._same = same
        self._dictionary = dictionary
        self._refuse = refuse
        self._keeps_empty = keeps_empty
        self._counting = [(at, call) for at, call in enumerate(calls) if call.function.counts]
        self._summing = [(at, call) for at, call in enumerate(calls) if not call.function.counts]
        # A count of rows is the number of rows.
        self._columns = [
            ROWS if call.function.counts_rows else column for column, (_, call) in enumerate(self._counting, COUNTS)
        ]
        self._count_ids: list[dict[int, int]] = [{} for _ in self._counting]
        self._work = np.zeros(kernels.MOST_LIMBS, np.int64)
        self._build(_SMALLEST)

    def _build(self, capacity: int) -> None:
        """Create an empty state with this many places, a power of two."""
        states = np.zeros(1, kernels.STATE)
        states["free"] = -1
        keys = (capacity, self._width)
        self._held = GroupTable(
            np.zeros(2 * capacity, np.int64),
            np.arange(self._width),
            np.zeros(keys, np.int64),
            np.zeros(keys, np.int64),
            np.zeros((capacity, COUNTS + len(self._counting)), np.int64),
            np.zeros(capacity, np.int64),
            states,
        )
        empty = np.empty(0, np.int64)
        self._sums = [SumTable(np.zeros((capacity, 4), np.int64), empty, 0, 0) for _ in self._summing]
        self._emitted = np.zeros((capacity, self._width + len(self._calls)), np.int64)
        self._has_emitted = np.zeros(capacity, np.bool_)

    def __len__(self) -> int:
        return int(self._held.states["live"][0])

    # --- taking in ---

    def take(self, keys: Ids, rows: Ids, weights: Weights) -> bool:
        """Add changed rows with these keys; return whether that is possible: if not, nothing has changed."""
        if not len(rows):
            return True
        found = self._found(keys, rows, weights)
        if found is None:
            return False
        self._add(found)
        return True

    def take_slides(self, keys: Ids, rows: Ids, weights: Weights, ends: Ids) -> Changes | None:
        """Add the changed rows of several slides; return the rows of groups that change at each, as `changes` does.
        None where they must be taken slide by slide: then nothing has changed."""
        found = self._found(keys, rows, weights, is_one_batch=False)
        if found is None:
            return None
        size = len(rows)
        slides = SlideGroups(
            np.empty(size, np.int64),
            np.empty(size, np.int64),
            np.empty(len(ends), np.int64),
            usable(ends),
            np.full(len(self._held.cells), -1, np.int64),
        )
        count = kernels.touch_slides(self._held, found.groups, found.weights, slides)
        slides = slides._replace(groups=slides.groups[:count], rows=slides.rows[:count])
        counts: list[Ids] = []
        for column, values in zip(self._columns, found.counted, strict=True):
            if values is None:
                counts.append(slides.rows)
                continue
            counts.append(np.empty(count, np.int64))
            changed = (found.groups, values, found.weights)
            kernels.count_slides(self._held, column, changed, slides, counts[-1])
        sums = [self._room_of_sums(count) for _ in self._summing]
        for at, (_, call) in enumerate(self._summing):
            kernels.sum_slides(self._sums[at], found.change(at), slides, call.function.averages, sums[at])
        if any((one.kinds == BY_VALUE).any() for one in sums):
            self._add(found._replace(weights=-found.weights))  # sums are exact: all is as it was
            kernels.end_groups(self._held, self._keeps_empty)
            return None
        return self._told(slides, *self._rows_of(slides, counts, sums))

    def _found(self, keys: Ids, rows: Ids, weights: Weights, is_one_batch: bool = True) -> _GroupChange | None:
        """Return the groups and the numbers of changed rows; None where these cannot be taken. Rows of several batches
        must have the keys of their groups."""
        if int(np.abs(weights).sum()) >= MOST_WEIGHT:
            raise OverflowError("a batch has too many rows to be added up")
        kinds: list[Kinds] = []
        words: list[Ids] = []
        for _, call in self._summing:
            ids = call.arguments[0](rows)
            kind, word = self._dictionary.number_words(ids)
            if not kind.all() and bool(((kind == 0) & (ids != NULL) & (ids != REFUSED)).any()):
                return None
            kinds.append(kind)
            words.append(usable(word))
        keys, weights = usable(keys), usable(weights)
        groups = self._find(keys)
        if self._held.states["differs"][0] and not (is_one_batch and self._turn(groups, keys, weights)):
            return None
        counted = [None if call.function.counts_rows else usable(call.arguments[0](rows)) for _, call in self._counting]
        found = _GroupChange(groups, weights, counted, kinds, words)
        for at in range(len(self._summing)):
            self._reach(at, found.change(at))
        return found

    def _add(self, found: _GroupChange) -> None:
        kernels.add_rows(self._held, found.groups, found.weights)
        for column, values in zip(self._columns, found.counted, strict=True):
            if values is not None:
                kernels.add_count(self._held, column, found.groups, values, found.weights)
        touched = self._touched()
        for at in range(len(self._summing)):
            kernels.add_numbers(self._sums[at], found.change(at), touched)

    def open(self) -> None:
        """Open the only group of an operator without keys, as one that changed."""
        groups = self._find(np.empty((1, 0), np.int64))
        kernels.add_rows(self._held, groups, np.zeros(1, np.int64))

    def _touched(self) -> Ids:
        return self._held.touched[: self._held.states["touched"][0]]

    def _find(self, keys: Ids) -> Ids:
        """Return the groups of keys, made where there are none."""
        classes = keys
        if self._same is not None and keys.shape[1]:
            classes = np.column_stack([self._same(column) for column in keys.T])
        groups = np.empty(len(keys), np.int64)
        self._held.states["differs"] = 0
        done = 0
        while True:
            done = kernels.find_groups(self._held, done, classes, keys, groups)
            if done == len(keys):
                return groups
            self._grow()

    def _grow(self) -> None:
        """Make more places; all groups keep theirs."""
        held, capacity = self._held, 2 * len(self._held.cells)
        self._held = held._replace(
            table=replanted(held.table, 2 * capacity),
            classes=longer(held.classes, capacity),
            looks=longer(held.looks, capacity),
            cells=longer(held.cells, capacity),
            touched=longer(held.touched, capacity),
        )
        self._sums = [
            one._replace(totals=longer(one.totals, capacity), limbs=longer(one.limbs, capacity * one.size))
            for one in self._sums
        ]
        self._emitted = longer(self._emitted, capacity)
        self._has_emitted = longer(self._has_emitted, capacity)

    def _turn(self, groups: Ids, keys: Ids, weights: Weights) -> bool:
        """Give new keys to the groups all of whose rows are replaced by rows with another, equivalent key; return False
        where a group would have rows of several keys."""
        firsts, sums = row_kernels.sums(np.column_stack((groups, keys)), weights)
        groups, keys = groups[firsts], keys[firsts]
        own = (self._held.looks[groups] == keys).all(axis=1)
        turning, kept = groups[~own], groups[own]
        if (sums[~own] < 0).any() or len(np.unique(turning)) < len(turning):
            return False
        left = self._held.cells[turning, ROWS]
        order = np.argsort(kept)
        if len(order):
            places = order[np.minimum(np.searchsorted(kept, turning, sorter=order), len(order) - 1)]
            left = left + np.where(kept[places] == turning, sums[own][places], 0)
        if left.any():
            return False
        self._held.looks[turning] = keys[~own]
        return True

    def _reach(self, at: int, change: NumberChange) -> None:
        """Make the limbs of a sum reach over the floats of a change."""
        if not (change.kinds == FLOAT).any():
            return
        bounds = np.array([0, len(change.words)], np.int64)
        numbers = sum_kernels.WeightedNumbers(change.kinds, change.words, change.weights, bounds)
        firsts, sizes = np.empty(1, np.int64), np.empty(1, np.int64)
        sum_kernels.limb_ranges(numbers, firsts, sizes)
        first, stop = int(firsts[0]), int(firsts[0] + sizes[0]) + 1  # one more, for carries and the sign
        sums = self._sums[at]
        if sums.size:
            first, stop = min(first, sums.first), max(stop, sums.first + sums.size)
        if stop - first > sums.size:
            limbs = np.zeros((len(sums.totals), stop - first), np.int64)
            start = sums.first - first
            if sums.size:
                limbs[:, start : start + sums.size] = sums.limbs.reshape(-1, sums.size)
            self._sums[at] = SumTable(sums.totals, limbs.reshape(-1), first, stop - first)

    # --- giving out ---

    def changes(self) -> Batch:
        """Return the rows of groups that have changed since the last call: those that were emitted leave, and those
        that are true now enter. Groups without rows end."""
        touched = self._touched()
        if not len(touched):
            return Batch.empty(self._emitted.shape[1])
        cells, ends = self._held.cells[touched], np.array([len(touched)])
        slides = SlideGroups(touched, cells[:, ROWS], ends, ends, touched)
        sums = [self._room_of_sums(len(touched)) for _ in self._summing]
        for at, (_, call) in enumerate(self._summing):
            kernels.results(self._sums[at], touched, call.function.averages, sums[at])
        return self._told(slides, *self._rows_of(slides, [cells[:, column] for column in self._columns], sums)).batch

    def _room_of_sums(self, count: int) -> SumResults:
        words = np.zeros(count, np.int64)
        return SumResults(np.zeros(count, np.uint8), words, words.view(np.float64), self._work)

    def _rows_of(self, slides: SlideGroups, counts: Sequence[Ids], sums: Sequence[SumResults]) -> tuple[Ids, Mask]:
        """Return the rows of changed groups, and which groups have one: those that have rows, or are kept without, and
        whose results do not fail."""
        groups = slides.groups
        are_there: Mask = np.ones(len(groups), np.bool_) if self._keeps_empty else slides.rows != 0
        rows = np.empty((len(groups), self._emitted.shape[1]), np.int64)
        rows[:, : self._width] = self._held.looks[groups]
        for found, (place, call), known in zip(counts, self._counting, self._count_ids, strict=True):
            rows[:, self._width + place] = self._counted(call.function, found, known)
        for at, ((place, call), one) in enumerate(zip(self._summing, sums, strict=True)):
            column = rows[:, self._width + place]
            if (one.kinds == FLOAT).all():
                column[:] = self._dictionary.encode_floats(one.floats)
                continue
            column[:] = NULL
            for kind in np.unique(one.kinds).tolist():
                chosen = np.flatnonzero((one.kinds == kind) & are_there)
                if kind == INTEGER:
                    column[chosen] = self._dictionary.encode_integers(one.words[chosen])
                elif kind == FLOAT:
                    column[chosen] = self._dictionary.encode_floats(one.floats[chosen])
                elif kind == BY_VALUE:
                    for place in chosen.tolist():
                        result = self._by_value(call.function, at, int(groups[place]))
                        are_there[place] = result is not None
                        column[place] = NULL if result is None else result
        rows[~are_there] = NULL
        return rows, are_there

    def _told(self, slides: SlideGroups, rows: Ids, are_there: Mask) -> Changes:
        """Return what changes in the rows of groups, and end those without rows."""
        told = np.empty((2 * len(rows), rows.shape[1]), np.int64)
        found = SlideResults(rows, are_there, told, np.empty(len(told), np.int64), np.empty_like(slides.ends))
        kernels.tell_slides(slides, found, self._emitted, self._has_emitted)
        kernels.end_groups(self._held, self._keeps_empty)
        if 8 * len(self) < len(self._held.cells) > _SMALLEST:
            self._shrink()
        count = int(found.ends[-1])
        return Changes(Batch(told[:count], found.weights[:count]), found.ends)

    def _counted(self, function: AggregateFunction, counts: Weights, known: dict[int, int]) -> Ids:
        """Return the ids of counts."""
        if function.counted(0).__class__ is int:
            return self._dictionary.encode_integers(counts)
        different, places = np.unique(counts, return_inverse=True)
        for count in different.tolist():
            if count not in known:
                known[count] = self._dictionary.encode(function.counted(count))
        return np.array([known[count] for count in different.tolist()], np.int64)[places]

    def _by_value(self, function: AggregateFunction, at: int, group: int) -> int | None:
        """Return the id of a result that the function itself computes; None where it fails."""
        state = function.begin()
        function.shift(state, *self._sum(at, group))
        try:
            return self._dictionary.encode(function.result(state))
        except EvaluationError as error:
            self._refuse(error)
            return None

    def _sum(self, at: int, group: int) -> NumberSum:
        sums = self._sums[at]
        limbs = sums.limbs[group * sums.size : (group + 1) * sums.size].tolist()
        return number_sum(sums.totals[group].tolist(), sums.first, limbs)

    def states(self) -> Iterator[GroupState]:
        """Yield all groups that have rows, or had some when they last changed."""
        cells, calls = self._held.cells, range(len(self._summing))
        for group in self._alive()[1].tolist():
            found = cells[group].tolist()
            rows, mark, counts = found[ROWS], found[MARK], [found[column] for column in self._columns]
            if rows or mark or self._has_emitted[group]:
                look, key = tuple(self._held.looks[group].tolist()), tuple(self._held.classes[group].tolist())
                emitted = tuple(self._emitted[group].tolist()) if self._has_emitted[group] else None
                yield GroupState(key, look, rows, counts, [self._sum(at, group) for at in calls], emitted, mark > 0)

    def clear(self) -> None:
        """Forget all groups."""
        self._build(_SMALLEST)

    def _alive(self) -> tuple[Ids, Ids]:
        """Return the taken slots of the table, and the groups in them."""
        slots = self._held.table[self._held.table != 0]
        return slots, (slots & row_kernels.NUMBER) - 1

    def _shrink(self) -> None:
        """Rebuild the state with fewer places. Groups get other numbers: none may be touched."""
        slots, groups = self._alive()
        held, sums, emitted, has_emitted = self._held, self._sums, self._emitted, self._has_emitted
        capacity, count = _SMALLEST, len(groups)
        while capacity < 2 * count:
            capacity *= 2
        self._build(capacity)
        if not count:
            return
        row_kernels.replant((slots & ~row_kernels.NUMBER) | np.arange(1, count + 1), self._held.table)
        self._held.states["live"] = self._held.states["used"] = count
        self._held.classes[:count] = held.classes[groups]
        self._held.looks[:count] = held.looks[groups]
        self._held.cells[:count] = held.cells[groups]
        self._emitted[:count], self._has_emitted[:count] = emitted[groups], has_emitted[groups]
        for at, old in enumerate(sums):
            self._sums[at].totals[:count] = old.totals[groups]
            limbs = np.zeros((capacity, old.size), np.int64)
            limbs[:count] = old.limbs.reshape(-1, old.size)[groups] if old.size else limbs[:count]
            self._sums[at] = self._sums[at]._replace(limbs=limbs.reshape(-1), first=old.first, size=old.size)

    def size(self) -> Size:
        if not len(self):
            return Size(0, 0)
        arrays = [*self._held, self._emitted, self._has_emitted]
        arrays += [array for one in self._sums for array in (one.totals, one.limbs)]
        return Size(len(self), sum(int(array.nbytes) for array in arrays))
