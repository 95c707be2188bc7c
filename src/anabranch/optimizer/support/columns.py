"""Questions about columns: which an expression reads, which are certainly bound, which hold one constant.

Invariant: `reads` misses no column; the columns of `certain` are null in no row; the columns of `constants` have that
one value in every row. Where the answer is not known, `reads` names too many columns and the others too few.
"""

from __future__ import annotations

from collections.abc import Iterable

from anabranch.algebra.expressions import CollectRows, Component, Connected, Constant, Exists, Expression, Variable
from anabranch.algebra.operators import (
    Aggregate,
    Annotate,
    Argument,
    Distinct,
    Extend,
    Filter,
    Join,
    LeftJoin,
    Operator,
    Order,
    Project,
    RuleTable,
    Slice,
    Union,
)
from anabranch.algebra.triples import GraphPattern, Minus, Path, StaticPart, Values
from anabranch.algebra.walk import is_volatile, walk

_COUNTS = frozenset({"sparql:count"})
_NOTHING: frozenset[str] = frozenset()


def reads(*expressions: Expression | None) -> frozenset[str]:
    """Return the columns that the expressions read; nested plans read the columns of their `Argument`."""
    names: set[str] = set()
    for expression in expressions:
        for node in walk(expression) if expression is not None else ():
            match node:
                case Variable(name):
                    names.add(name)
                case Argument(given):
                    names.update(given)
    return frozenset(names)


def is_movable(expression: Expression) -> bool:
    """Return whether the expression gives the same value for the same row at every place in the plan and at every
    evaluation."""
    asks = (Exists, CollectRows, Connected, Component)
    return not is_volatile(expression) and not any(isinstance(node, asks) for node in walk(expression))


def certain(plan: Operator) -> frozenset[str]:
    """Return the columns that are bound in every row."""
    match plan:
        case GraphPattern(patterns=patterns):
            return frozenset(name for pattern in patterns for name in pattern.variables)
        case Path() | RuleTable():
            return frozenset(plan.columns)
        case Values(names, rows):
            return frozenset(name for index, name in enumerate(names) if all(row[index] is not None for row in rows))
        case Join(left, right, _, lenient):
            shared = _NOTHING if lenient else frozenset(left.columns) & frozenset(right.columns)
            return certain(left) | certain(right) | shared
        case LeftJoin(left=left) | Minus(left=left):
            return certain(left)
        case Union(left, right):
            return certain(left) & certain(right)
        case StaticPart(inner, otherwise):
            return certain(inner) if otherwise is None else certain(inner) & certain(otherwise)
        case Filter(below) | Distinct(below) | Order(below) | Slice(below):
            return certain(below)
        case Extend(below, column, expression):
            bound = certain(below)
            return bound | {column} if _is_bound(expression, bound) else bound
        case Project(below, items):
            return _bound_items(items, certain(below))
        case Annotate(below, _, aggregates):
            return certain(below) | {name for name, call in aggregates if call.function in _COUNTS}
        case Aggregate(below, keys, aggregates):
            counts = {name for name, call in aggregates if call.function in _COUNTS}
            return _bound_items(keys, certain(below)) | counts
        case _:
            return _NOTHING


def _bound_items(items: Iterable[tuple[str, Expression]], bound: frozenset[str]) -> frozenset[str]:
    return frozenset(name for name, expression in items if _is_bound(expression, bound))


def _is_bound(expression: Expression, bound: frozenset[str]) -> bool:
    match expression:
        case Constant(value):
            return value is not None
        case Variable(name):
            return name in bound
        case _:
            return False


def is_lenient(left: Operator, right: Operator) -> bool:
    """Return whether a join of the two must take unbound columns into account."""
    shared = frozenset(left.columns) & frozenset(right.columns)
    return not shared <= certain(left) & certain(right)


def constants(plan: Operator) -> dict[str, object]:
    """Return the columns that have the same value in every row, with this value."""
    match plan:
        case Values(names, rows) if rows:
            columns = {name: {row[index] for row in rows} for index, name in enumerate(names)}
            return {name: next(iter(held)) for name, held in columns.items() if len(held) == 1 and None not in held}
        case Extend(below, column, expression):
            return constants(below) | _constant_items(((column, expression),), constants(below))
        case Project(below, items):
            return _constant_items(items, constants(below))
        case Aggregate(below, keys, _):
            return _constant_items(keys, constants(below)) if keys else {}
        case Join(left, right):
            return constants(left) | constants(right)
        case LeftJoin(left=left) | Minus(left=left):
            return constants(left)
        case Union(left, right):
            other = constants(right)
            return {name: value for name, value in constants(left).items() if other.get(name) == value}
        case Filter(below) | Distinct(below) | Order(below) | Slice(below) | Annotate(below):
            return constants(below)
        case _:
            return {}


def _constant_items(items: Iterable[tuple[str, Expression]], held: dict[str, object]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, expression in items:
        match expression:
            case Constant(value) if value is not None:
                found[name] = value
            case Variable(of) if of in held:
                found[name] = held[of]
    return found
