"""Specs of GROUP BY and of annotating aggregates.

Law: as the plain evaluator, whose accumulators are used: rows that enter are added, rows that leave are removed.
"""

from __future__ import annotations

from collections.abc import Sequence

from anabranch.algebra import expressions as ex
from anabranch.algebra import operators as op
from anabranch.algebra.walk import depends_on_order, keeps_lists, reads_order
from anabranch.delta.operators.group_calls import GroupCall
from anabranch.delta.operators.grouping import AnnotatedRows, GroupedAggregates
from anabranch.planner.flow.runtime import RowValues, Runtime
from anabranch.planner.flow.spec import FlowPart, NotIncremental, Spec
from anabranch.planner.specs.conditions import require_pure
from anabranch.planner.specs.sorting import OrderColumn, OrderedRows, group_order
from anabranch.snapshot.grouping import Aggregation


def aggregate_spec(
    operator: op.Aggregate,
    source: Spec,
    keys: Sequence[ex.Expression],
    aggregates: Sequence[ex.AggregateCall],
    terms: bool,
    order: Sequence[OrderColumn] | None = None,
) -> Spec:
    """Return the spec of one row per group; `keys` and `aggregates` are the operator's, as expressions over the source.
    `order` are the columns of the source that tell the order of its rows, where the query defines one."""
    _require_usable(operator, aggregates, order is not None)
    for expression in keys:
        require_pure(expression)

    def make(runtime: Runtime) -> FlowPart:
        values = [RowValues(expression, source.columns, runtime) for expression in keys]
        calls = [_call(call, source, runtime) for call in aggregates]
        same = None if terms else runtime.dictionary.identities
        placed = None if order is None else group_order(OrderedRows(source, tuple(order)), runtime)
        return GroupedAggregates(values, calls, runtime.dictionary, same, not values, runtime.refuse, placed)

    return Spec("GroupedAggregates", make, operator.columns, (source,), operator)


def annotate_spec(operator: op.Annotate, source: Spec, terms: bool) -> Spec:
    """Return the spec that adds to every row the aggregates of its group."""
    _require_usable(operator, [call for _, call in operator.aggregates])

    def make(runtime: Runtime) -> FlowPart:
        keys = [RowValues(ex.Variable(name), source.columns, runtime) for name in operator.keys]
        calls = [_call(call, source, runtime) for _, call in operator.aggregates]
        same = None if terms else runtime.dictionary.identities
        return AnnotatedRows(source.width, keys, calls, runtime.dictionary, same, runtime.refuse)

    return Spec(
        "AnnotatedRows", make, (*source.columns, *(name for name, _ in operator.aggregates)), (source,), operator
    )


def needs_order(operator: op.Aggregate) -> bool:
    """Return whether an aggregate reads its rows in an order that the query defines."""
    return keeps_lists(operator.input) and reads_order(operator)


def _require_usable(
    operator: op.Aggregate | op.Annotate, calls: Sequence[ex.AggregateCall], in_order: bool = False
) -> None:
    for call in calls:
        for argument in call.arguments:
            require_pure(argument)
        if not in_order and depends_on_order(call) and keeps_lists(operator.input):
            raise NotIncremental(f"{call.function}() keeps an order that was asked for below")


def _call(call: ex.AggregateCall, source: Spec, runtime: Runtime) -> GroupCall:
    function = Aggregation(call)
    arguments = () if function.counts and function.counts_rows else call.arguments
    return GroupCall(function, [RowValues(argument, source.columns, runtime) for argument in arguments])
