"""Groups: rows with equal keys come together, and aggregates are computed over each group.

Invariant: groups come out in the order in which their first rows came in; an annotation loses no row, makes none, and
keeps their order.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from anabranch.algebra import expressions as ex
from anabranch.errors import EvaluationError
from anabranch.model.compare import identity_key
from anabranch.model.values import Value
from anabranch.snapshot.aggregates import AGGREGATES, Accumulator, Distinct
from anabranch.snapshot.compiled import RowSource
from anabranch.snapshot.context import Context
from anabranch.snapshot.expressions import Columns, compile_expression, position
from anabranch.snapshot.rdf.aggregates import AGGREGATES as TERM_AGGREGATES

Rows = Iterator[tuple[Value, ...]]


def compile_aggregate(
    source: RowSource,
    columns: Columns,
    keys: tuple[tuple[str, ex.Expression], ...],
    aggregates: tuple[tuple[str, ex.AggregateCall], ...],
) -> RowSource:
    groupings = [compile_expression(expression, columns) for _, expression in keys]
    calls = [_Call(call, columns) for _, call in aggregates]

    def rows(context: Context, row: tuple[Value, ...]) -> Rows:
        groups: dict[Hashable, tuple[tuple[Value, ...], list[Accumulator]]] = {}
        if not groupings:
            groups[()] = ((), [call.fresh() for call in calls])
        for one in source(context, row):
            values = tuple([evaluate(one, context) for evaluate in groupings])
            key = tuple(map(identity_key, values))
            group = groups.get(key)
            if group is None:
                group = groups[key] = (values, [call.fresh() for call in calls])
            for call, accumulator in zip(calls, group[1], strict=True):
                call.feed(accumulator, one, context)
        for values, accumulators in groups.values():
            yield (*values, *_results(calls, accumulators))

    return rows


def compile_annotate(
    source: RowSource,
    columns: Columns,
    keys: tuple[str, ...],
    aggregates: tuple[tuple[str, ex.AggregateCall], ...],
) -> RowSource:
    picks = [position(name, columns) for name in keys]
    calls = [_Call(call, columns) for _, call in aggregates]

    def rows(context: Context, row: tuple[Value, ...]) -> Rows:
        groups: dict[Hashable, list[Accumulator]] = {}
        found: list[tuple[tuple[Value, ...], Hashable]] = []
        for one in source(context, row):
            key: Hashable = tuple([identity_key(one[pick]) for pick in picks])
            found.append((one, key))
            group = groups.get(key)
            if group is None:
                group = groups[key] = [call.fresh() for call in calls]
            for call, accumulator in zip(calls, group, strict=True):
                call.feed(accumulator, one, context)
        results = {each: _results(calls, group) for each, group in groups.items()}
        for one, own in found:
            yield one + results[own]

    return rows


def _results(calls: Sequence[_Call], accumulators: Sequence[Accumulator]) -> tuple[Value, ...]:
    return tuple([call.result(one) for call, one in zip(calls, accumulators, strict=True)])


class _Call:
    """An aggregate's call, compiled: how to begin, feed and finish its accumulators.

    With several arguments, `sparql:count` counts rows: the arguments are all columns, and null is as good as a value.
    """

    def __init__(self, call: ex.AggregateCall, columns: Columns) -> None:
        name = call.function.lower()
        self._begin = TERM_AGGREGATES[name] if name in TERM_AGGREGATES else AGGREGATES[name]
        self._takes_null = getattr(self._begin(), "takes_null", False)
        self._counts_rows = not call.arguments or (name == "sparql:count" and len(call.arguments) > 1)
        self._distinct = call.distinct
        self._span = call.span
        self._arguments = [compile_expression(argument, columns) for argument in call.arguments]

    def fresh(self) -> Accumulator:
        return Distinct(self._begin()) if self._distinct else self._begin()

    def feed(self, accumulator: Accumulator, row: tuple[Value, ...], context: Context) -> None:
        if self._counts_rows:
            accumulator.add([argument(row, context) for argument in self._arguments] if self._distinct else True, ())
            return
        value = self._arguments[0](row, context)
        if value is None and not self._takes_null:
            return
        extra = [argument(row, context) for argument in self._arguments[1:]]
        try:
            accumulator.add(value, extra)
        except EvaluationError as error:
            raise error.located(self._span) from None

    def result(self, accumulator: Accumulator) -> Value:
        try:
            return accumulator.result()
        except EvaluationError as error:
            raise error.located(self._span) from None
