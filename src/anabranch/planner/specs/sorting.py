"""Specs of ORDER BY, SKIP and LIMIT, and rows that carry their order in hidden columns.

Law: rows stand in the order of the keys; rows that tie stand in the order of their values. So the rows that a LIMIT
leaves, and the listing of a snapshot, depend only on the content of the windows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from anabranch.algebra import expressions as ex
from anabranch.algebra import operators as op
from anabranch.algebra.walk import keeps_order
from anabranch.delta.operators.grouping import GroupOrder
from anabranch.delta.operators.ordering import OrderedSlice
from anabranch.model.compare import Descending, canonical_key, order_key, row_order
from anabranch.planner.flow.runtime import RowValues, Runtime
from anabranch.planner.flow.spec import FlowPart, NotIncremental, Spec
from anabranch.snapshot.expressions import compile_expression
from anabranch.snapshot.operators import or_null, row_count
from anabranch.snapshot.rdf.ordering import order_key as term_order_key


def placing(
    keys: Sequence[op.OrderKey], columns: tuple[str, ...], runtime: Runtime
) -> Callable[[tuple[int, ...]], Any]:
    """Return the function from a row of ids to its sort key."""
    compiled = [
        (compile_expression(key.expression, columns), term_order_key if key.of_terms else order_key, key.descending)
        for key in keys
    ]
    dictionary = runtime.dictionary
    tie = row_order(columns)

    def place(row: tuple[int, ...]) -> Any:
        values = tuple([dictionary.decode(one) for one in row])
        parts = []
        for evaluate, key_of, descending in compiled:
            key = key_of(or_null(evaluate, values, runtime.context))
            parts.append(Descending(key) if descending else key)
        return (*parts, tie(values))

    return place


def slice_spec(operator: op.Slice | None, order: op.Order | None, source: Spec) -> Spec:
    """Return the spec of the rows that SKIP and LIMIT leave, in the given order or in that of values; without a slice,
    all rows."""
    below = order.input if order is not None else operator.input if operator is not None else None
    if below is not None and keeps_order(below):
        raise NotIncremental("rows that tie stand in the order of a list")
    keys = order.keys if order is not None else ()

    def make(runtime: Runtime) -> FlowPart:
        skip, limit = 0, None
        if operator is not None:
            skip = _count(operator.skip, "SKIP", runtime) or 0
            limit = _count(operator.limit, "LIMIT", runtime)
        return OrderedSlice(source.width, placing(keys, source.columns, runtime), skip, limit)

    return Spec("OrderedSlice", make, source.columns, (source,), operator or order)


@dataclass(frozen=True, slots=True)
class OrderColumn:
    """A hidden column by which rows are placed: by the key of an ORDER BY or, without one, by its values in the
    canonical order."""

    name: str
    key: op.OrderKey | None = None


@dataclass(frozen=True, slots=True)
class OrderedRows:
    """Rows of a bag whose hidden columns, from the first on, tell in which order the query reads them. Rows that agree
    in all of them are equal."""

    spec: Spec
    order: tuple[OrderColumn, ...]

    @property
    def hidden(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.order)


def placed_by(order: Sequence[OrderColumn], runtime: Runtime) -> Callable[[Sequence[int]], Any]:
    """Return the function from the ids in the columns of an order to a sort key. More ids may follow."""
    decode = runtime.dictionary.decode
    keys: list[tuple[Callable[[Any], Any], bool]] = []
    for one in order:
        key_of = canonical_key if one.key is None else term_order_key if one.key.of_terms else order_key
        keys.append((key_of, one.key is not None and one.key.descending))

    def place(ids: Sequence[int]) -> Any:
        parts = []
        for (key_of, descending), one in zip(keys, ids, strict=False):
            key = key_of(decode(one))
            parts.append(Descending(key) if descending else key)
        return tuple(parts)

    return place


def slice_in_order(operator: op.Slice, rows: OrderedRows) -> OrderedRows:
    """Return the rows that SKIP and LIMIT leave of rows that carry their order."""
    source = rows.spec
    picks = [source.index(name) for name in rows.hidden]

    def make(runtime: Runtime) -> FlowPart:
        skip = _count(operator.skip, "SKIP", runtime) or 0
        limit = _count(operator.limit, "LIMIT", runtime)
        place = placed_by(rows.order, runtime)
        return OrderedSlice(source.width, lambda row: place([row[pick] for pick in picks]), skip, limit)

    return OrderedRows(Spec("OrderedSlice", make, source.columns, (source,), operator), rows.order)


def group_order(rows: OrderedRows, runtime: Runtime) -> GroupOrder:
    """Return the order in which aggregates see rows that carry it."""
    columns = [RowValues(ex.Variable(name), rows.spec.columns, runtime) for name in rows.hidden]
    return GroupOrder(columns, placed_by(rows.order, runtime))


def _count(expression: ex.Expression | None, what: str, runtime: Runtime) -> int | None:
    if expression is None:
        return None
    value = compile_expression(expression, ())((), runtime.context)
    return row_count(value, what, expression)
