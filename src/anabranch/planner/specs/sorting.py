"""Specs of ORDER BY, SKIP and LIMIT, and rows that carry their order in hidden columns.

Law: rows stand in the order of the keys; rows that tie stand in the order of their values. So the rows that a LIMIT
leaves, and the listing of a snapshot, depend only on the content of the windows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from anabranch.algebra import expressions as ex
from anabranch.algebra import operators as op
from anabranch.algebra.walk import keeps_order
from anabranch.delta.operators.group_calls import GroupOrder
from anabranch.delta.operators.ordering import OrderedSlice
from anabranch.delta.sort_words import ColumnOrder, JoinedOrder, KeyOrder, RowWords
from anabranch.model.compare import Descending, canonical_key, order_key
from anabranch.planner.flow.runtime import RowValues, Runtime
from anabranch.planner.flow.spec import FlowPart, NotIncremental, Spec
from anabranch.planner.specs.values import canonical_order, shared_words
from anabranch.snapshot.expressions import compile_expression
from anabranch.snapshot.operators import or_null, row_count
from anabranch.snapshot.rdf.ordering import order_key as term_order_key

IdRows: TypeAlias = Sequence[tuple[int, ...]]


def placing(keys: Sequence[op.OrderKey], columns: tuple[str, ...], runtime: Runtime) -> RowWords:
    """Return the order of rows of ids by keys and, where these are equal, by their values."""
    ties = sorted(range(len(columns)), key=columns.__getitem__)
    return JoinedOrder([*(_part(key, columns, runtime) for key in keys), canonical_order(ties, runtime)])


def _part(key: op.OrderKey, columns: tuple[str, ...], runtime: Runtime) -> RowWords:
    """Return the order of rows of ids by one key."""
    key_of = term_order_key if key.of_terms else order_key
    if isinstance(key.expression, ex.Variable) and key.expression.name in columns:
        words = shared_words(runtime, key_of, has_numbers=not key.of_terms)
        return ColumnOrder([columns.index(key.expression.name)], words, key.descending)
    evaluate = compile_expression(key.expression, columns)
    decode_all = runtime.dictionary.decode_all

    def keys_of(rows: IdRows) -> list[Any]:
        found = [key_of(or_null(evaluate, tuple(decode_all(row)), runtime.context)) for row in rows]
        return [Descending(one) for one in found] if key.descending else found

    return KeyOrder(keys_of)


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

        order = KeyOrder(lambda ids: [place([row[pick] for pick in picks]) for row in ids])
        return OrderedSlice(source.width, order, skip, limit)

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
