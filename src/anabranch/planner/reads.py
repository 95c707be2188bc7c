"""Finds what plans and expressions read of elements: whole elements, or only parts of them: properties, ids, types,
labels.

Columns hold versions of elements (`delta/element_versions.py`), whose parts are looked up for many rows at once.

Invariant: a read that is not found here as a part is a read of the whole element.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple, TypeAlias

from anabranch.algebra import expressions as ex
from anabranch.algebra import operators as op
from anabranch.algebra.walk import sources, walk
from anabranch.delta.element_versions import KEY, LABELS, PARTS, TYPE
from anabranch.model.graph_block import PROPERTIES
from anabranch.optimizer.support.rebuild import everywhere
from anabranch.snapshot.variables import children


class PropertyRead(NamedTuple):
    """The property of a column, or another part of it (`element_versions.PARTS`)."""

    name: str
    key: str


Read: TypeAlias = str | PropertyRead
"""A whole column, by its name, or a property of it."""
Reads: TypeAlias = frozenset[Read]

_PART_OF = {"id": KEY, "type": TYPE, "labels": LABELS, "properties": PROPERTIES}
"""Functions of an element that are looked up."""


def reads_of(expressions: Iterable[ex.Expression]) -> Reads:
    """Return what expressions read of the row."""
    return frozenset(read for expression in expressions for read in _reads(expression))


def _reads(expression: ex.Expression) -> Iterator[Read]:
    read = property_read(expression)
    if read is not None:
        yield read
        return
    match expression:
        case ex.Variable(name):
            yield name
        case ex.Comprehension() | ex.Quantifier() | ex.Reduce() | ex.Exists() | ex.CollectRows():
            yield from _bound_reads(expression)
        case _:
            for child in children(expression):
                yield from _reads(child)


def _bound_reads(expression: ex.Expression) -> Iterator[Read]:
    """Yield the reads of an expression that binds names of its own."""
    match expression:
        case ex.Exists(plan):
            yield from _need(plan, frozenset(), {})
        case ex.CollectRows(plan, result):
            yield from _need(plan, reads_of((result,)), {})
        case ex.Comprehension(variable, source, where, result):
            inner = [part for part in (where, result) if part is not None]
            yield from _reads(source)
            yield from without(reads_of(inner), (variable,))
        case ex.Quantifier(_, variable, source, where):
            yield from _reads(source)
            yield from without(reads_of((where,)), (variable,))
        case ex.Reduce(accumulator, initial, variable, source, step):
            yield from reads_of((initial, source))
            yield from without(reads_of((step,)), (accumulator, variable))


def property_read(expression: ex.Expression) -> PropertyRead | None:
    """Return the part of a column that an expression is; None for all others."""
    match expression:
        case ex.Property(ex.Variable(name), key) if key not in PARTS:
            return PropertyRead(name, key)
        case ex.Call(function, (ex.Variable(name),)) if function in _PART_OF:
            return PropertyRead(name, _PART_OF[function])
    return None


def name_of(read: Read) -> str:
    return read if isinstance(read, str) else read.name


def names_of(reads: Reads) -> frozenset[str]:
    """Return the columns of which something is read."""
    return frozenset(map(name_of, reads))


def within(reads: Reads, columns: Iterable[str]) -> Reads:
    """Return the reads of these columns."""
    known = frozenset(columns)
    return frozenset(read for read in reads if name_of(read) in known)


def without(reads: Reads, columns: Iterable[str]) -> Reads:
    """Return the reads of other columns."""
    known = frozenset(columns)
    return frozenset(read for read in reads if name_of(read) not in known)


def keys_of(reads: Reads, name: str) -> tuple[str, ...]:
    """Return the parts that are read of a column, sorted; of one that is read whole, all."""
    found = {read.key for read in reads if isinstance(read, PropertyRead) and read.name == name}
    return tuple(sorted(found | {LABELS, PROPERTIES} if name in reads else found))


def properties_of(condition: ex.Expression, variable: str) -> tuple[str, ...] | None:
    """Return the properties, and KEY for the id, that a condition on one element reads; None where it reads more."""
    over = over_fields(condition, (variable,))
    keys = () if over is None else tuple(key for _, key in over.fields if key == KEY or key not in (None, *PARTS))
    return None if over is None or len(keys) < len(over.fields) else tuple(map(str, keys))


@dataclass(frozen=True, slots=True)
class FieldExpression:
    """An expression over properties. Each of its columns is a field of the row: a column of the row or, with a key, a
    property of that column."""

    expression: ex.Expression
    columns: tuple[str, ...]
    fields: tuple[tuple[int, str | None], ...]


def over_fields(expression: ex.Expression, columns: Sequence[str]) -> FieldExpression | None:
    """Return an expression with the properties of columns as columns of their own; None where it reads none, or reads
    the same column as a whole too."""
    reads = reads_of((expression,))
    keyed = [read for read in reads if isinstance(read, PropertyRead)]
    wholes = frozenset(read for read in reads if isinstance(read, str))
    if not keyed or any(read.name in wholes for read in keyed) or _binds(expression):
        return None
    names = {read: f" {read.key} of {read.name}" for read in sorted(keyed)}

    def changed(item: object) -> object:
        read = property_read(item) if isinstance(item, ex.Expression) else None
        # A property of a property reads a column that was put in here.
        name = None if read is None else names.get(read)
        return item if name is None else ex.Variable(name, span=item.span)  # type: ignore[attr-defined]

    places = {name: at for at, name in enumerate(columns)}
    fields: list[tuple[int, str | None]] = [(places[read.name], read.key) for read in names]
    others = [name for name in columns if name in wholes]
    fields += [(places[name], None) for name in others]
    return FieldExpression(everywhere(expression, changed), (*names.values(), *others), tuple(fields))


def _binds(expression: ex.Expression) -> bool:
    """Return whether an expression binds names, which may hide columns, or holds a plan."""
    if isinstance(expression, ex.Comprehension | ex.Quantifier | ex.Reduce | ex.Exists | ex.CollectRows):
        return True
    return any(map(_binds, children(expression)))


# --- plans ---


def needed_reads(plan: op.Operator) -> dict[int, Reads]:
    """Return, by the id of each property-graph pattern and of each filter, what the plan reads of its columns; all
    columns of the plan are read."""
    found: dict[int, Reads] = {}
    _need(plan, frozenset(plan.columns), found)
    return found


def expressions_of(operator: op.Operator) -> Iterator[ex.Expression]:
    """Yield the expressions of an operator itself, not of its inputs."""
    pending: list[object] = [getattr(operator, one.name) for one in fields(operator)]
    while pending:
        item = pending.pop()
        match item:
            case ex.Expression():
                yield item
            case op.OrderKey(expression):
                yield expression
            case tuple():
                pending.extend(item)


def ids_of(names: Iterable[str]) -> Reads:
    """Return reads of the ids of columns: all that a join compares of elements."""
    return frozenset(PropertyRead(name, KEY) for name in names)


def _need(plan: op.Operator, wanted: Reads, found: dict[int, Reads]) -> Reads:
    """Note what is read of patterns; return what a subquery reads of the row outside."""
    inputs: list[tuple[op.Operator, Reads]]
    match plan:
        case op.Argument():
            return wanted
        case op.Pattern():
            found[id(plan)] = found.get(id(plan), frozenset()) | wanted
            return frozenset()
        case op.Project(below, items):
            inputs = [(below, frozenset(read for item in items for read in _read_by_item(*item, wanted)))]
        case op.Filter(below, condition):
            found[id(plan)] = found.get(id(plan), frozenset()) | wanted
            inputs = [(below, wanted | reads_of((condition,)))]
        case op.Extend(below, column, expression) | op.Unwind(below, column, expression):
            inputs = [(below, without(wanted, (column,)) | reads_of((expression,)))]
        case op.Aggregate(below, keys, aggregates):
            inputs = [(below, _read_by_groups(below, keys, [call for _, call in aggregates], wanted))]
        case op.Order(below, keys):
            inputs = [(below, wanted | reads_of(key.expression for key in keys))]
        case op.Join(left, right, condition) | op.LeftJoin(left, right, condition):
            shared = frozenset(left.columns) & frozenset(right.columns)
            read: Reads = wanted | ids_of(shared) | reads_of(() if condition is None else (condition,))
            if isinstance(right, op.Pattern):  # its conditions may read columns of the left
                inner = [one.where for path in right.paths for one in path.relationships]
                conditions = (right.where, *(path.where for path in right.paths), *inner)
                read |= reads_of(one for one in conditions if one is not None)
            inputs = [(left, read), (right, read)]
        case _:
            inputs = [(below, frozenset(below.columns)) for below in plan.inputs]
    outside: Reads = frozenset()
    for below, reads in inputs:
        outside |= _need(below, within(reads, below.columns), found)
    for expression in expressions_of(plan):
        for node in walk(expression):
            match node:
                case ex.Exists(inner_plan):
                    _need(inner_plan, frozenset(), found)
                case ex.CollectRows(inner_plan, result):
                    _need(inner_plan, reads_of((result,)), found)
    return outside


def _read_by_item(name: str, expression: ex.Expression, wanted: Reads) -> Reads:
    """Return what a column of a projection reads: of a column that is only renamed, what is read of it above."""
    if not isinstance(expression, ex.Variable):
        return reads_of((expression,))
    above = within(wanted, (name,))
    keys = [KEY, *(read.key for read in above if isinstance(read, PropertyRead))]
    found: Reads = frozenset(PropertyRead(expression.name, key) for key in keys)
    return found | {expression.name} if name in above else found


def _read_by_groups(
    below: op.Operator,
    keys: Sequence[tuple[str, ex.Expression]],
    calls: Sequence[ex.AggregateCall],
    wanted: Reads,
) -> Reads:
    """Return what groups read. Where elements come from several windows, an element may look different in two rows of
    its group, and the order of whole elements decides which of them is shown."""
    found: Reads = frozenset()
    for name, expression in keys:
        several = len(sources(below)) > 1 or any(True for one in walk(below) if isinstance(one, op.Argument))
        found |= reads_of((expression,)) if several else _read_by_item(name, expression, wanted)
    for call in calls:
        if call.function == "count" and len(call.arguments) == 1 and isinstance(call.arguments[0], ex.Variable):
            found |= ids_of((call.arguments[0].name,))
        else:
            found |= reads_of(call.arguments)
    return found
