"""Incremental aggregates: one row per group, or every row with the aggregates of its group.

Law (`GroupedAggregates`): {(key of g, results over g) : g a group of rows of A with equivalent keys}; the shown key is
the first, in the canonical order of values, of those that are present. Without keys, one group can always be present.

Law (`AnnotatedRows`): {row + results over the row's group : row in A}.

Groups that have counts and sums of numbers only are on arrays (`NumberGroups`). When a value comes that is no integer
and no finite float, or a group gets rows of several equivalent keys, all groups become objects, until none is left.

State: per group the number of rows, a number per count, an accumulator per other aggregate; for aggregates that depend
on the order of rows, their arguments in the given order, else in canonical order; for smallest and largest numbers, an
index of all groups. A group is dropped with its last row.
Work per batch: counts, sums and extremes of numbers by arrays; O(1) in Python for each group that changes, and for each
distinct change of arguments that accumulators see; results only of groups that changed. Ordered aggregates read their
whole group again, and so does an annotation whose results change: all its rows leave and enter again.

An error is passed to `refuse`, which raises it, or records it: then a row whose key fails is in no group, an aggregate
skips a row whose argument fails or whose value it refuses, and a group whose results fail has no row.

Removals go first. After a raised error the state is invalid: the caller must build a new operator.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from anabranch.delta.batch import NULL, REFUSED, Batch, Ids, Mask, Weights
from anabranch.delta.dictionary import Dictionary
from anabranch.delta.extremes import GroupExtremes, NumberChanges
from anabranch.delta.number_groups import GroupState, NumberGroups
from anabranch.delta.number_sums import FLOAT, INTEGER, number_sums
from anabranch.delta.operators.base import DeltaOperator, RowFunction, SameAs, Size
from anabranch.delta.operators.group_calls import (
    AggregateFunction,
    GroupCall,
    GroupOrder,
    IdRow,
    Refuse,
    raise_error,
)
from anabranch.delta.patterns import Changes
from anabranch.delta.value_texts import can_be_text
from anabranch.errors import EvaluationError
from anabranch.model.compare import SortKey, canonical_key
from anabranch.model.sorted_bag import SortedBag
from anabranch.model.values import Value

_REFUSED: Any = object()  # stands for the value of REFUSED

_INEXACT = 1 << 53  # from here on, floats do not have all integers
_MINUS_ZERO = -(1 << 63)  # its bits
_MOST_REMEMBERED = 1 << 16  # sort keys of values
_BYTES_OF_GROUP = 600  # guesses: what Python objects take
_BYTES_OF_ARGUMENT = 200
_BYTES_OF_MEMBER = 100


class _Group:
    """The state of one group. `looks`: the exact keys that are present, each with its number of rows."""

    __slots__ = ("arguments", "counts", "looks", "number", "results", "rows", "states")

    def __init__(self, number: int, counts: int, states: list[Any], is_ordered: bool) -> None:
        self.number = number
        self.rows = 0
        self.counts = [0] * counts
        self.states = states
        self.arguments: SortedBag[tuple[SortKey, IdRow]] | None = SortedBag() if is_ordered else None
        self.looks: dict[IdRow, int] = {}
        self.results: IdRow | None = None


@dataclass(frozen=True, slots=True)
class _Fed:
    """A call that sees values: the range of its arguments in a changed row, and its place among the calls."""

    function: AggregateFunction
    place: int
    start: int
    end: int


class _Runs(NamedTuple):
    """Changed rows with equal keys: an order that brings them together, where each run begins, and its group."""

    order: Ids
    starts: Ids
    groups: list[_Group]


class _Groups:
    """All groups of an operator, by the classes of their keys."""

    def __init__(
        self,
        keys: Sequence[RowFunction],
        calls: Sequence[GroupCall],
        same: SameAs | None,
        dictionary: Dictionary,
        refuse: Refuse,
        order: GroupOrder | None,
    ) -> None:
        self.keys = keys
        self._order = order
        self._refuse = refuse
        self._has_refused = False  # a value, at any time
        self.found: dict[IdRow, _Group] = {}
        self._same = same
        self._dictionary = dictionary
        self._width = len(calls)
        self._sort_keys: dict[int, SortKey] = {}
        self._counting = [(at, call) for at, call in enumerate(calls) if call.function.counts]
        self._count_ids: list[dict[int, int]] = [{} for _ in self._counting]
        self._arguments: list[RowFunction] = []
        self._plain: list[_Fed] = []
        self._ordered: list[_Fed] = []
        # Ordered calls come last, after the columns of the order: both are the end of a row.
        others = [(at, call) for at, call in enumerate(calls) if not call.function.counts]
        for place, call in sorted(others, key=lambda pair: pair[1].function.ordered):
            if call.function.ordered and not self._ordered:
                self._sorted_from = len(self._arguments)
                self._arguments += order.columns if order is not None else ()
            start = len(self._arguments)
            self._arguments += call.arguments
            fed = _Fed(call.function, place, start, len(self._arguments))
            (self._ordered if call.function.ordered else self._plain).append(fed)
        self._extremes = {at: GroupExtremes() for at, fed in enumerate(self._plain) if fed.function.extreme}
        self._free: list[int] = []  # numbers of groups below the largest
        self._feeds_all = bool(self._ordered) or not all(
            fed.function.sums or fed.function.extreme for fed in self._plain
        )
        if not self._ordered:
            self._sorted_from = len(self._arguments)

    def open(self, key: IdRow) -> _Group:
        group = self.found.get(key)
        if group is None:
            states = [call.function.begin() for call in self._plain]
            number = self._free.pop() if self._free else len(self.found)
            group = self.found[key] = _Group(number, len(self._counting), states, bool(self._ordered))
        return group

    def adopt(self, state: GroupState) -> _Group:
        """Open a group with the state that it has on arrays."""
        group = self.open(state.key)
        group.rows, group.counts, group.results = state.rows, state.counts, state.emitted
        if state.rows:
            group.looks[state.look] = state.rows
        for fed, found, total in zip(self._plain, group.states, state.sums, strict=True):
            fed.function.shift(found, *total)
        return group

    def close(self, key: IdRow) -> None:
        self._free.append(self.found.pop(key).number)
        if not self.found:  # a dictionary keeps the room that it once needed
            self.found = {}
            self._free = []

    # --- taking in ---

    def take(self, rows: Ids, weights: Weights) -> dict[IdRow, _Group]:
        """Add changes; return the groups that changed, by the classes of their keys, empty groups included."""
        touched: dict[IdRow, _Group] = {}
        if not len(rows):
            return touched
        keys, rows, weights = self.with_keys(rows, weights)
        if not len(rows):
            return touched
        order, starts = _runs(keys)
        sums = [np.add.reduceat(weights[order], starts).tolist()]
        for _, call in self._counting:
            counted = weights
            if not call.function.counts_rows:
                values = call.arguments[0](rows)
                counted = np.where((values != NULL) & (values != REFUSED), weights, 0)
            sums.append(np.add.reduceat(counted[order], starts).tolist())
        exact = keys[order[starts]]
        looks = list(map(tuple, exact.tolist()))
        groups: list[_Group] = []
        for look, key, count, *counts in zip(looks, self._classes(exact), *sums, strict=True):
            touched[key] = group = self.open(key)
            groups.append(group)
            group.rows += count
            for at, change in enumerate(counts):
                group.counts[at] += change
            left = group.looks.get(look, 0) + count
            if left:
                group.looks[look] = left
            else:
                group.looks.pop(look, None)
        if self._plain or self._ordered:
            columns = [function(rows) for function in self._arguments]
            left = np.full(len(rows), self._feeds_all)
            runs = _Runs(order, starts, groups)
            for at, fed in enumerate(self._plain):
                if fed.function.sums:
                    left |= self._add_up(at, columns[fed.start], weights, runs)
                elif fed.function.extreme:
                    left |= self._rank(at, columns[fed.start], weights, runs)
            if self._feeds_all:
                self._feed(keys, columns, weights, dict(zip(looks, groups, strict=True)))
            elif left.any():
                columns = [column[left] for column in columns]
                self._feed(keys[left], columns, weights[left], dict(zip(looks, groups, strict=True)))
        return touched

    def with_keys(self, rows: Ids, weights: Weights) -> tuple[Ids, Ids, Weights]:
        """Return the keys of the changed rows, with the rows and weights; rows whose key fails are left out."""
        found = [function(rows) for function in self.keys]
        keys = _columns(found, len(rows))
        if any((column == REFUSED).any() for column in found):
            kept = (keys != REFUSED).all(axis=1)
            return keys[kept], rows[kept], weights[kept]
        return keys, rows, weights

    def classes_of(self, rows: Ids) -> list[IdRow]:
        """Return the classes of the keys of rows."""
        return self._classes(_columns([function(rows) for function in self.keys], len(rows)))

    def _classes(self, keys: Ids) -> list[IdRow]:
        if self._same is not None and keys.shape[1]:
            keys = np.column_stack([self._same(column) for column in keys.T])
        return list(map(tuple, keys.tolist()))

    def _add_up(self, at: int, ids: Ids, weights: Weights, runs: _Runs) -> Mask:
        """Add the numbers of an argument to the sums of groups; return which rows have something else there."""
        function = self._plain[at].function
        kinds, words = self._dictionary.number_words(ids)
        order = runs.order
        for group, found in zip(
            runs.groups, number_sums(kinds[order], words[order], weights[order], runs.starts), strict=True
        ):
            function.shift(group.states[at], *found)
        others: Mask = (kinds == 0) & (ids != NULL) & (ids != REFUSED)
        return others

    def _rank(self, at: int, ids: Ids, weights: Weights, runs: _Runs) -> Mask:
        """Take the numbers of an argument into the extremes of groups; return which rows have something else there."""
        kinds, words = self._dictionary.number_words(ids)
        floats = kinds == FLOAT
        numbers = np.where(floats, words.view(np.float64), words)
        ranked = floats | ((kinds == INTEGER) & (np.abs(numbers) < _INEXACT))
        looks = np.where(floats, np.where(words == _MINUS_ZERO, 2, 1), 0)
        touched = np.array([group.number for group in runs.groups], np.int64)
        groups = np.empty(len(ids), np.int64)
        groups[runs.order] = np.repeat(touched, np.diff(runs.starts, append=len(ids)))
        changes = (groups, numbers * self._plain[at].function.extreme, looks, ids, weights)
        self._extremes[at].change(NumberChanges(*[column[ranked] for column in changes]), touched)
        others: Mask = ~ranked & (ids != NULL) & (ids != REFUSED)
        return others

    def _feed(self, keys: Ids, columns: Sequence[Ids], weights: Weights, groups: dict[IdRow, _Group]) -> None:
        """Give values one by one to the functions that need them so."""
        changed = Batch(np.column_stack((keys, *columns)), weights).consolidated()
        width = keys.shape[1]
        read = np.unique(changed.rows[:, width:])
        self._dictionary.decode_all(read[read != REFUSED].tolist())
        for entering in (False, True):
            chosen = changed.kept((changed.weights > 0) == entering)
            looks = map(tuple, chosen.rows[:, :width].tolist())
            ids = map(tuple, chosen.rows[:, width:].tolist())
            for look, row, weight in zip(looks, ids, chosen.weights.tolist(), strict=True):
                self._change(groups[look], row, weight)

    def _change(self, group: _Group, row: IdRow, weight: int) -> None:
        if self._plain:
            decode = self._dictionary.decode
            values = [None if one == REFUSED else decode(one) for one in row[: self._sorted_from]]
            for call, state in zip(self._plain, group.states, strict=True):
                if REFUSED in row[call.start : call.end]:
                    continue
                if not _is_done(call.function, values[call.start : call.end]):
                    self._act(call.function, state, values[call.start : call.end], weight)
        if group.arguments is not None:
            ids = row[self._sorted_from :]
            key = tuple([self._sort_key(one) for one in ids]) if self._order is None else self._order.key(ids)
            entry = (key, ids)
            place = group.arguments.add if weight > 0 else group.arguments.remove
            for _ in range(abs(weight)):
                place(entry)

    def _act(self, function: AggregateFunction, state: Any, values: Sequence[Value], weight: int) -> None:
        if weight < 0:
            if not self._has_refused or not function.refuses(values):
                for _ in range(-weight):
                    function.remove(state, values)
            return
        for _ in range(weight):
            try:
                function.add(state, values)
            except EvaluationError as error:
                self._has_refused = True
                self._refuse(error)

    def _sort_key(self, one: int) -> SortKey:
        known = self._sort_keys.get(one)
        if known is None:
            if len(self._sort_keys) >= _MOST_REMEMBERED:
                self._sort_keys.clear()
            value = None if one == REFUSED else self._dictionary.decode(one)
            known = self._sort_keys[one] = canonical_key(value)
        return known

    # --- giving out ---

    def results(self, groups: Sequence[_Group]) -> list[IdRow | None]:
        """Return the ids of the aggregates of groups; None where one of them fails and the group is skipped."""
        found = [self._computed(group) for group in groups]
        self._add_extremes(groups, found)
        there = [group for group, values in zip(groups, found, strict=True) if values is not None]
        seen = [values for values in found if values is not None]
        columns: list[list[int]] = [[]] * self._width
        for at, fed in enumerate((*self._plain, *self._ordered)):
            columns[fed.place] = self._dictionary.encode_all([values[at] for values in seen]).tolist()
        for at, ((place, call), known) in enumerate(zip(self._counting, self._count_ids, strict=True)):
            counts = [group.counts[at] for group in there]
            for count in set(counts).difference(known):
                known[count] = self._dictionary.encode(call.function.counted(count))
            columns[place] = [known[count] for count in counts]
        rows = zip(*columns, strict=True) if columns else iter([()] * len(there))
        return [None if values is None else next(rows) for values in found]

    def _computed(self, group: _Group) -> list[Value] | None:
        """Return the results of the functions that see values."""
        try:
            return [
                *[fed.function.result(state) for fed, state in zip(self._plain, group.states, strict=True)],
                *self._ordered_results(group),
            ]
        except EvaluationError as error:
            self._refuse(error)
            return None

    def _add_extremes(self, groups: Sequence[_Group], found: Sequence[list[Value] | None]) -> None:
        """Put the extremes of numbers where they come before those of other values."""
        numbers = np.array([group.number for group in groups], np.int64)
        for at, extremes in self._extremes.items():
            function = self._plain[at].function
            for values, one in zip(found, self._dictionary.decode_all(extremes.firsts(numbers).tolist()), strict=True):
                if values is not None and one is not None:
                    values[at] = one if values[at] is None else _of_both(function, one, values[at])

    def _ordered_results(self, group: _Group) -> Iterator[Value]:
        if group.arguments is None:
            return
        decode = self._dictionary.decode
        values = [[_REFUSED if one == REFUSED else decode(one) for one in ids] for _, ids in group.arguments]
        for fed in self._ordered:
            state = fed.function.begin()
            start, end = fed.start - self._sorted_from, fed.end - self._sorted_from
            for row in values:
                if not any(value is _REFUSED for value in row[start:end]):
                    fed.function.add(state, row[start:end])
            yield fed.function.result(state)

    def shown(self, group: _Group) -> IdRow:
        """Return the key that is shown for a group."""
        if len(group.looks) < 2:
            return next(iter(group.looks), ())
        return min(group.looks, key=lambda look: (tuple([self._sort_key(one) for one in look]), look))

    def size(self) -> Size:
        arguments = sum(len(group.arguments) for group in self.found.values() if group.arguments is not None)
        held = len(self.found) * _BYTES_OF_GROUP + arguments * _BYTES_OF_ARGUMENT
        for extremes in self._extremes.values():
            arguments += len(extremes)
            held += extremes.nbytes if len(extremes) else 0
        return Size(len(self.found) + arguments, held)


class GroupedAggregates(DeltaOperator):
    """One row per group. `same` gives the classes by which keys are grouped; None, where no two ids are equivalent.
    `always_one`: without keys there is one row even for no input. `order`: in which aggregates that depend on the order
    of rows see them; None: in the canonical order of their arguments."""

    def __init__(
        self,
        keys: Sequence[RowFunction],
        calls: Sequence[GroupCall],
        dictionary: Dictionary,
        same: SameAs | None = None,
        always_one: bool = False,
        refuse: Refuse = raise_error,
        order: GroupOrder | None = None,
    ) -> None:
        self.width = len(keys) + len(calls)
        self._groups = _Groups(keys, calls, same, dictionary, refuse, order)
        self._always_one = always_one and not keys
        self._numbers: NumberGroups | None = None
        if all(call.function.counts or call.function.sums for call in calls):
            self._numbers = NumberGroups(len(keys), calls, same, dictionary, refuse, self._always_one)
        self._is_on_arrays = self._numbers is not None

    def apply(self, *inputs: Batch) -> Batch:
        return self.apply_pieces(iter(inputs))

    def apply_pieces(self, pieces: Iterator[Batch]) -> Batch:
        touched: dict[IdRow, _Group] = {}
        for piece in pieces:
            if not self._is_on_arrays or not self._take_on_arrays(piece):
                touched.update(self._hand_over())
                touched.update(self._groups.take(piece.rows, piece.weights))
        if self._numbers is not None and self._is_on_arrays:
            if self._always_one and not len(self._numbers):
                self._numbers.open()
            return self._numbers.changes()
        changes = self._changes(touched)
        self._is_on_arrays = self._numbers is not None and not self._groups.found
        return changes

    def apply_slides(self, changes: Changes) -> Changes:
        if self._numbers is not None and self._is_on_arrays:
            whole, numbers = changes.batch, np.arange(len(changes.batch), dtype=np.int64)
            keys, rows, numbers = self._groups.with_keys(whole.rows, numbers)
            ends = np.searchsorted(numbers, changes.ends)
            told = self._numbers.take_slides(keys, rows, whole.weights[numbers], ends)
            if told is not None:
                return told
        return super().apply_slides(changes)

    def _take_on_arrays(self, piece: Batch) -> bool:
        assert self._numbers is not None
        return self._numbers.take(*self._groups.with_keys(piece.rows, piece.weights))

    def _hand_over(self) -> dict[IdRow, _Group]:
        """Take the groups from the arrays, if they are there; return those that changed at this instant."""
        touched: dict[IdRow, _Group] = {}
        if self._is_on_arrays and self._numbers is not None:
            for state in self._numbers.states():
                group = self._groups.adopt(state)
                if state.changed:
                    touched[state.key] = group
            self._numbers.clear()
            self._is_on_arrays = False
        return touched

    def _changes(self, touched: dict[IdRow, _Group]) -> Batch:
        if self._always_one and not self._groups.found:
            touched = {(): self._groups.open(())}
        rows: list[IdRow] = []
        weights: list[int] = []
        for key in [key for key, group in touched.items() if not (group.rows or self._always_one)]:
            self._groups.close(key)
        there = [group for group in touched.values() if group.rows or self._always_one]
        changed = dict(zip(map(id, there), self._groups.results(there), strict=True))
        for group in touched.values():
            old, results = group.results, changed.get(id(group))
            new = None if results is None else self._groups.shown(group) + results
            if old == new:
                continue
            group.results = new
            for row, weight in ((old, -1), (new, 1)):
                if row is not None:
                    rows.append(row)
                    weights.append(weight)
        return Batch.of(rows, weights, self.width)

    def size(self) -> Size:
        return self._numbers.size() if self._numbers is not None and self._is_on_arrays else self._groups.size()


class AnnotatedRows(DeltaOperator):
    """Rows of `width` columns with the aggregates of their group behind them: C-SPARQL's AGGREGATE."""

    def __init__(
        self,
        width: int,
        keys: Sequence[RowFunction],
        calls: Sequence[GroupCall],
        dictionary: Dictionary,
        same: SameAs | None = None,
        refuse: Refuse = raise_error,
    ) -> None:
        self.width = width + len(calls)
        self._groups = _Groups(keys, calls, same, dictionary, refuse, None)
        self._members: dict[IdRow, dict[IdRow, int]] = {}

    def apply(self, *inputs: Batch) -> Batch:
        batch = inputs[0].consolidated()
        touched = self._groups.take(batch.rows, batch.weights)
        changes = self._changes(batch)
        rows: list[IdRow] = []
        weights: list[int] = []

        def tell(members: Iterable[tuple[IdRow, int]], results: IdRow, sign: int) -> None:
            for row, weight in members:
                rows.append(row + results)
                weights.append(sign * weight)

        there = [key for key, group in touched.items() if group.rows]
        results = dict(zip(there, self._groups.results([touched[key] for key in there]), strict=True))
        for key, group in touched.items():
            members = self._members.setdefault(key, {})
            old, new = group.results, results.get(key)
            if old is not None and old != new:
                tell(members.items(), old, -1)
            for row, weight in changes[key]:
                left = members.get(row, 0) + weight
                if left:
                    members[row] = left
                else:
                    del members[row]
            if not group.rows:
                del self._members[key]
                self._groups.close(key)
            elif new is not None and new == old:
                tell(changes[key], new, 1)
            elif new is not None:
                tell(members.items(), new, 1)
            group.results = new
        return Batch.of(rows, weights, self.width)

    def _changes(self, batch: Batch) -> dict[IdRow, list[tuple[IdRow, int]]]:
        """Group the changed rows by the classes of their keys."""
        found: dict[IdRow, list[tuple[IdRow, int]]] = {}
        keys = self._groups.classes_of(batch.rows)
        rows = map(tuple, batch.rows.tolist())
        for key, row, weight in zip(keys, rows, batch.weights.tolist(), strict=True):
            found.setdefault(key, []).append((row, weight))
        return found

    def size(self) -> Size:
        rows, held = self._groups.size()
        members = sum(map(len, self._members.values()))
        return Size(rows + members, held + members * (_BYTES_OF_MEMBER + 8 * self.width))


def _is_done(function: AggregateFunction, values: Sequence[Any]) -> bool:
    """Return whether the argument is one of the numbers that are taken in by arrays."""
    if not function.sums and not function.extreme:
        return False
    (value,) = values
    if value.__class__ is float:
        return math.isfinite(value)
    return value.__class__ is int and (can_be_text(value) if function.sums else abs(value) < _INEXACT)


def _of_both(function: AggregateFunction, one: Value, other: Value) -> Value:
    """Return the extreme of two values."""
    state = function.begin()
    for value in (one, other):
        function.add(state, [value])
    return function.result(state)


def _columns(columns: Sequence[Ids], rows: int) -> Ids:
    return np.column_stack(columns) if columns else np.empty((rows, 0), np.int64)


def _runs(keys: Ids) -> tuple[Ids, Ids]:
    """Return an order that brings equal keys together, and the start of each run."""
    if not keys.shape[1]:
        return np.arange(len(keys)), np.zeros(1, np.int64)
    order = np.lexsort(keys.T[::-1])
    ordered = keys[order]
    first = np.ones(len(keys), np.bool_)
    first[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return order, np.flatnonzero(first)
