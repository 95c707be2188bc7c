"""Incremental aggregates: one row per group, or every row with the aggregates of its group.

Law (`GroupedAggregates`): {(key of g, results over g) : g a group of rows of A with equivalent keys}; the shown key is
the first, in the canonical order of values, of those that are present. Without keys, one group can always be present.

Law (`AnnotatedRows`): {row + results over the row's group : row in A}.

State: per group the number of rows, a number per count, an accumulator per other aggregate; for aggregates that depend
on the order of rows, their arguments in the given order, else in canonical order. A group is dropped with its last row.
Work per batch: counts are summed up by numpy; O(1) in Python for each distinct change of arguments that accumulators
see; results only of groups that changed. Ordered aggregates read their whole group again, and so does an annotation
whose results change: all its rows leave and enter again.

An error is passed to `refuse`, which raises it, or records it: then a row whose key fails is in no group, an aggregate
skips a row whose argument fails or whose value it refuses, and a group whose results fail has no row.

Removals go first. After a raised error the state is invalid: the caller must build a new operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from anabranch.delta.batch import NULL, REFUSED, Batch, Ids, Weights
from anabranch.delta.dictionary import Dictionary
from anabranch.delta.operators.base import DeltaOperator, RowFunction, SameAs, Size
from anabranch.errors import EvaluationError
from anabranch.model.compare import SortKey, canonical_key
from anabranch.model.sorted_bag import SortedBag
from anabranch.model.values import Value

IdRow = tuple[int, ...]

_REFUSED: Any = object()  # stands for the value of REFUSED

_MOST_REMEMBERED = 1 << 16  # sort keys of values
_BYTES_OF_GROUP = 600  # guesses: what Python objects take
_BYTES_OF_ARGUMENT = 200
_BYTES_OF_MEMBER = 100


class AggregateFunction(Protocol):
    """An aggregate function over the values of its arguments. `counts`: it only counts the rows (`counts_rows`), or the
    values of its first argument that are not null, and `counted` is its result. `ordered`: its result depends on the
    order of the rows."""

    ordered: bool
    counts: bool
    counts_rows: bool

    def begin(self) -> Any: ...
    def add(self, state: Any, values: Sequence[Value]) -> None: ...
    def refuses(self, values: Sequence[Value]) -> bool: ...
    def remove(self, state: Any, values: Sequence[Value]) -> None: ...
    def result(self, state: Any) -> Value: ...
    def counted(self, count: int) -> Value: ...


Refuse: TypeAlias = Callable[[EvaluationError], None]


def _raise(error: EvaluationError) -> None:
    raise error


@dataclass(frozen=True, slots=True)
class GroupCall:
    function: AggregateFunction
    arguments: Sequence[RowFunction]


@dataclass(frozen=True, slots=True)
class GroupOrder:
    """The order in which aggregates see the rows of a group: `key` makes the sort key of the ids in these columns. Rows
    with equal keys are equal to the aggregates."""

    columns: Sequence[RowFunction]
    key: Callable[[IdRow], SortKey]


class _Group:
    """The state of one group. `looks`: the exact keys that are present, each with its number of rows."""

    __slots__ = ("arguments", "counts", "looks", "results", "rows", "states")

    def __init__(self, counts: int, states: list[Any], is_ordered: bool) -> None:
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
        if not self._ordered:
            self._sorted_from = len(self._arguments)

    def open(self, key: IdRow) -> _Group:
        group = self.found.get(key)
        if group is None:
            states = [call.function.begin() for call in self._plain]
            group = self.found[key] = _Group(len(self._counting), states, bool(self._ordered))
        return group

    def close(self, key: IdRow) -> None:
        del self.found[key]
        if not self.found:  # a dictionary keeps the room that it once needed
            self.found = {}

    # --- taking in ---

    def take(self, rows: Ids, weights: Weights) -> dict[IdRow, _Group]:
        """Add changes; return the groups that changed, by the classes of their keys, empty groups included."""
        touched: dict[IdRow, _Group] = {}
        if not len(rows):
            return touched
        keys, rows, weights = self._with_keys(rows, weights)
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
        classes = self._classes(exact)
        for look, key, count, *counts in zip(looks, classes, *sums, strict=True):
            touched[key] = group = self.open(key)
            group.rows += count
            for at, change in enumerate(counts):
                group.counts[at] += change
            left = group.looks.get(look, 0) + count
            if left:
                group.looks[look] = left
            else:
                group.looks.pop(look, None)
        if self._plain or self._ordered:
            self._feed(keys, rows, weights, dict(zip(looks, classes, strict=True)))
        return touched

    def _with_keys(self, rows: Ids, weights: Weights) -> tuple[Ids, Ids, Weights]:
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

    def _feed(self, keys: Ids, rows: Ids, weights: Weights, classes: dict[IdRow, IdRow]) -> None:
        arguments = _columns([function(rows) for function in self._arguments], len(rows))
        changed = Batch(np.concatenate((keys, arguments), axis=1), weights).consolidated()
        width = keys.shape[1]
        for entering in (False, True):
            chosen = changed.kept((changed.weights > 0) == entering)
            looks = map(tuple, chosen.rows[:, :width].tolist())
            ids = map(tuple, chosen.rows[:, width:].tolist())
            for look, row, weight in zip(looks, ids, chosen.weights.tolist(), strict=True):
                self._change(self.found[classes[look]], row, weight)

    def _change(self, group: _Group, row: IdRow, weight: int) -> None:
        if self._plain:
            decode = self._dictionary.decode
            values = [None if one == REFUSED else decode(one) for one in row[: self._sorted_from]]
            for call, state in zip(self._plain, group.states, strict=True):
                if REFUSED not in row[call.start : call.end]:
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

    def results(self, group: _Group) -> IdRow | None:
        """Return the ids of a group's aggregates; None where one of them fails and the group is skipped."""
        try:
            return self._results(group)
        except EvaluationError as error:
            self._refuse(error)
            return None

    def _results(self, group: _Group) -> IdRow:
        results = [NULL] * self._width
        encode = self._dictionary.encode
        for (at, call), count, known in zip(self._counting, group.counts, self._count_ids, strict=True):
            found = known.get(count)
            if found is None:
                found = known[count] = encode(call.function.counted(count))
            results[at] = found
        for fed, state in zip(self._plain, group.states, strict=True):
            results[fed.place] = encode(fed.function.result(state))
        if group.arguments is not None:
            decode = self._dictionary.decode
            values = [[_REFUSED if one == REFUSED else decode(one) for one in ids] for _, ids in group.arguments]
            for fed in self._ordered:
                state = fed.function.begin()
                start, end = fed.start - self._sorted_from, fed.end - self._sorted_from
                for row in values:
                    if not any(value is _REFUSED for value in row[start:end]):
                        fed.function.add(state, row[start:end])
                results[fed.place] = encode(fed.function.result(state))
        return tuple(results)

    def shown(self, group: _Group) -> IdRow:
        """Return the key that is shown for a group."""
        if len(group.looks) < 2:
            return next(iter(group.looks), ())
        return min(group.looks, key=lambda look: (tuple([self._sort_key(one) for one in look]), look))

    def size(self) -> Size:
        arguments = sum(len(group.arguments) for group in self.found.values() if group.arguments is not None)
        return Size(len(self.found) + arguments, len(self.found) * _BYTES_OF_GROUP + arguments * _BYTES_OF_ARGUMENT)


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
        refuse: Refuse = _raise,
        order: GroupOrder | None = None,
    ) -> None:
        self.width = len(keys) + len(calls)
        self._groups = _Groups(keys, calls, same, dictionary, refuse, order)
        self._always_one = always_one and not keys

    def apply(self, *inputs: Batch) -> Batch:
        return self.apply_pieces(iter(inputs))

    def apply_pieces(self, pieces: Iterator[Batch]) -> Batch:
        touched: dict[IdRow, _Group] = {}
        for piece in pieces:
            touched.update(self._groups.take(piece.rows, piece.weights))
        if self._always_one and not self._groups.found:
            touched = {(): self._groups.open(())}
        rows: list[IdRow] = []
        weights: list[int] = []
        for key, group in touched.items():
            old, new = group.results, None
            if group.rows or self._always_one:
                results = self._groups.results(group)
                new = None if results is None else self._groups.shown(group) + results
            else:
                self._groups.close(key)
            if old == new:
                continue
            group.results = new
            for row, weight in ((old, -1), (new, 1)):
                if row is not None:
                    rows.append(row)
                    weights.append(weight)
        return Batch.of(rows, weights, self.width)

    def size(self) -> Size:
        return self._groups.size()


class AnnotatedRows(DeltaOperator):
    """Rows of `width` columns with the aggregates of their group behind them: C-SPARQL's AGGREGATE."""

    def __init__(
        self,
        width: int,
        keys: Sequence[RowFunction],
        calls: Sequence[GroupCall],
        dictionary: Dictionary,
        same: SameAs | None = None,
        refuse: Refuse = _raise,
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

        for key, group in touched.items():
            members = self._members.setdefault(key, {})
            old = group.results
            new = self._groups.results(group) if group.rows else None
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
