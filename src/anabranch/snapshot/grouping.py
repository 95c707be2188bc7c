"""Groups: rows with equal keys form a group, and aggregates are computed over each group.

Aggregates that depend on the order of rows (collect, group_concat) get the rows in their order if the query defines
one. Otherwise they get them in the canonical order of the arguments of all such aggregates, left to right: so two lists
that are collected side by side correspond, and neither depends on the order of arrival.

If failing rows are skipped: a row whose key fails is in no group; an aggregate ignores a row whose argument fails, or
whose value it refuses, like a null; a group with a failing result gives no row.

Invariant: groups are in the order of their first rows; an annotation adds no row, drops only the rows of groups whose
results fail, and keeps their order. A group's key is the first, in the canonical order, of the equivalent ones. Whether
an aggregate refuses a value depends on the value only.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

from anabranch.algebra import expressions as ex
from anabranch.errors import EvaluationError
from anabranch.model.compare import SortKey, first_of, identity_key, row_order_key
from anabranch.model.values import Value
from anabranch.snapshot.aggregates import AGGREGATES, Accumulator, Average, DistinctValues, Extreme, Sum
from anabranch.snapshot.compiled import ExpressionEvaluator, RowSource
from anabranch.snapshot.context import Context
from anabranch.snapshot.expressions import ColumnNames, compile_expression, position
from anabranch.snapshot.rdf.aggregates import AGGREGATES as TERM_AGGREGATES
from anabranch.snapshot.rdf.values import integer

GroupedRows = Iterator[tuple[Value, ...]]

_TAKES_ALL = frozenset({"count", "collect", "min", "max", "sparql:count"})


class _Failed:
    """Stands for the value of an argument that failed."""


_FAILED: Any = _Failed()


class Aggregation:
    """The operations of an aggregate call on the values of its arguments: begin, add, remove, result.

    With several arguments, `sparql:count` counts rows: the arguments are all columns, and null counts like a value.
    """

    __slots__ = (
        "_begin",
        "_distinct",
        "_of_terms",
        "_span",
        "_takes_null",
        "averages",
        "counts",
        "counts_rows",
        "extreme",
        "may_refuse",
        "ordered",
        "sums",
    )

    def __init__(self, call: ex.AggregateCall) -> None:
        name = call.function.lower()
        self._of_terms = name in TERM_AGGREGATES
        self._begin = TERM_AGGREGATES[name] if self._of_terms else AGGREGATES[name]
        example = self._begin()
        self._takes_null = example.takes_null
        self._distinct = call.distinct
        self._span = call.span
        self.ordered = example.ordered
        self.counts_rows = not call.arguments or (name == "sparql:count" and len(call.arguments) > 1)
        """Whether every row counts, whatever the arguments are; with DISTINCT, every different list of them."""
        self.counts = name in ("count", "sparql:count") and not call.distinct
        """Whether `counted` says all: of the number of rows, or of values of the first argument that are not null."""
        self.may_refuse = not self.counts_rows and name not in _TAKES_ALL
        """Whether there are values that it does not take in."""

        self.sums = isinstance(example, Sum) and not call.distinct
        """Whether many integers and finite floats can be added at once, by `shift`."""

        self.averages = isinstance(example, Average)
        """Whether the result is the sum, divided by the number of values."""

        self.extreme = example.sign if isinstance(example, Extreme) and not call.distinct else 0
        """1 and -1 where the result is the smallest or the largest value."""

    def begin(self) -> Accumulator:
        return DistinctValues(self._begin()) if self._distinct else self._begin()

    def counted(self, count: int) -> Value:
        return integer(count) if self._of_terms else count

    def takes(self, value: Value) -> bool:
        return value is not None or self._takes_null or self.counts_rows

    def add(self, state: Accumulator, values: Sequence[Value]) -> None:
        if self.counts_rows:
            state.add(list(values) if self._distinct else True, ())
        elif self.takes(values[0]):
            try:
                if self._distinct and self.may_refuse:  # a refusal must not depend on earlier values
                    self._begin().add(values[0], values[1:])
                state.add(values[0], values[1:])
            except EvaluationError as error:
                raise error.located(self._span) from None

    def refuses(self, values: Sequence[Value]) -> bool:
        """Return whether `add` raises an error for these values, in any state."""
        if not self.may_refuse or not self.takes(values[0]):
            return False
        try:
            self._begin().add(values[0], values[1:])
        except EvaluationError:
            return True
        return False

    def remove(self, state: Accumulator, values: Sequence[Value]) -> None:
        if self.counts_rows:
            state.remove(list(values) if self._distinct else True, ())
        elif self.takes(values[0]):
            state.remove(values[0], values[1:])

    def shift(self, state: Sum, count: int, floats: int, integers: int, units: int, exponent: int) -> None:
        """Add integers and finite floats that have these sums: see `Sum.shift`."""
        state.shift(count, floats, integers, units, exponent)

    def result(self, state: Accumulator) -> Value:
        try:
            return state.result()
        except EvaluationError as error:
            raise error.located(self._span) from None


def compile_aggregate(
    source: RowSource,
    columns: ColumnNames,
    keys: tuple[tuple[str, ex.Expression], ...],
    aggregates: tuple[tuple[str, ex.AggregateCall], ...],
    in_order: bool,
) -> RowSource:
    """Compile an aggregation. `in_order`: whether the query defines the order of the rows."""
    groupings = [compile_expression(expression, columns) for _, expression in keys]
    calls = _Calls([call for _, call in aggregates], columns, in_order)

    def rows(context: Context, row: tuple[Value, ...]) -> GroupedRows:
        groups: dict[Hashable, _Group] = {}
        if not groupings:
            groups[()] = _Group(calls, ())
        for one in source(context, row):
            try:
                values = tuple([evaluate(one, context) for evaluate in groupings])
            except EvaluationError as error:
                context.skip(error)
                continue
            key = tuple(map(identity_key, values))
            group = groups.get(key)
            if group is None:
                group = groups[key] = _Group(calls, values)
            else:
                group.values = first_of(group.values, values)
            group.feed(one, context)
        for group in groups.values():
            results = group.results(context)
            if results is not None:
                yield group.values + results

    return rows


def compile_annotate(
    source: RowSource,
    columns: ColumnNames,
    keys: tuple[str, ...],
    aggregates: tuple[tuple[str, ex.AggregateCall], ...],
    in_order: bool,
) -> RowSource:
    picks = [position(name, columns) for name in keys]
    calls = _Calls([call for _, call in aggregates], columns, in_order)

    def rows(context: Context, row: tuple[Value, ...]) -> GroupedRows:
        groups: dict[Hashable, _Group] = {}
        found: list[tuple[tuple[Value, ...], Hashable]] = []
        for one in source(context, row):
            key: Hashable = tuple([identity_key(one[pick]) for pick in picks])
            found.append((one, key))
            group = groups.get(key)
            if group is None:
                group = groups[key] = _Group(calls, ())
            group.feed(one, context)
        results = {each: group.results(context) for each, group in groups.items()}
        for one, own in found:
            result = results[own]
            if result is not None:
                yield one + result

    return rows


class _Call:
    """An aggregate's call with its compiled arguments."""

    __slots__ = ("aggregation", "arguments")

    def __init__(self, call: ex.AggregateCall, columns: ColumnNames) -> None:
        self.aggregation = Aggregation(call)
        arguments = () if self.aggregation.counts and self.aggregation.counts_rows else call.arguments
        self.arguments = [compile_expression(argument, columns) for argument in arguments]

    def feed(self, state: Accumulator, row: tuple[Value, ...], context: Context) -> None:
        try:
            values = [argument(row, context) for argument in self.arguments[:1]]
            if len(self.arguments) > 1 and self.aggregation.takes(values[0]):
                values += [argument(row, context) for argument in self.arguments[1:]]
            self.aggregation.add(state, values)
        except EvaluationError as error:
            context.skip(error)


class _Calls:
    """The calls of one operator: those that are fed at once, and those that wait until all rows can be sorted."""

    __slots__ = ("all", "at_once", "late", "late_arguments")

    def __init__(self, calls: Sequence[ex.AggregateCall], columns: ColumnNames, in_order: bool) -> None:
        self.all = [_Call(call, columns) for call in calls]
        waits = [not in_order and call.aggregation.ordered for call in self.all]
        self.at_once = [(at, call) for at, call in enumerate(self.all) if not waits[at]]
        self.late = [(at, call) for at, call in enumerate(self.all) if waits[at]]
        self.late_arguments = [argument for _, call in self.late for argument in call.arguments]


class _Group:
    """One group: its key's values, the state of every call, and the arguments of calls that wait."""

    __slots__ = ("_calls", "_has_failed", "_states", "_waiting", "values")

    def __init__(self, calls: _Calls, values: tuple[Value, ...]) -> None:
        self.values = values
        self._calls = calls
        self._states = [call.aggregation.begin() for call in calls.all]
        self._waiting: list[tuple[Value, ...]] = []
        self._has_failed = False  # an argument of those that wait

    def feed(self, row: tuple[Value, ...], context: Context) -> None:
        for at, call in self._calls.at_once:
            call.feed(self._states[at], row, context)
        if self._calls.late:
            try:
                waiting = tuple([argument(row, context) for argument in self._calls.late_arguments])
            except EvaluationError:
                self._has_failed = True
                waiting = tuple([_or_failed(argument, row, context) for argument in self._calls.late_arguments])
            self._waiting.append(waiting)

    def results(self, context: Context) -> tuple[Value, ...] | None:
        """Return the results of the aggregates; None if one of them fails and the group is skipped."""
        self._waiting.sort(key=_order_with_failed if self._has_failed else row_order_key)
        for values in self._waiting:
            start = 0
            for at, call in self._calls.late:
                end = start + len(call.arguments)
                if not self._has_failed or not any(value is _FAILED for value in values[start:end]):
                    call.aggregation.add(self._states[at], values[start:end])
                start = end
        self._waiting.clear()
        try:
            return tuple([call.aggregation.result(self._states[at]) for at, call in enumerate(self._calls.all)])
        except EvaluationError as error:
            context.skip(error)
            return None


def _or_failed(argument: ExpressionEvaluator, row: tuple[Value, ...], context: Context) -> Value:
    try:
        return argument(row, context)
    except EvaluationError as error:
        context.skip(error)
        failed: Value = _FAILED
        return failed


def _order_with_failed(values: tuple[Value, ...]) -> SortKey:
    """Return the sort key of arguments; a failed one sorts like null."""
    return row_order_key([None if value is _FAILED else value for value in values])
