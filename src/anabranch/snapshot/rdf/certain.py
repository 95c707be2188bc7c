"""The columns of an operator that are never null.

Invariant: a returned column has a value in every row; other columns may have one as well.
"""

from __future__ import annotations

from anabranch.algebra import expressions as ex
from anabranch.algebra import operators as op
from anabranch.algebra import triples as tr


def certain_columns(operator: op.Operator) -> frozenset[str]:
    match operator:
        case tr.GraphPattern(_, patterns):
            return frozenset(name for pattern in patterns for name in pattern.variables)
        case tr.Path() | op.RuleTable():
            return frozenset(operator.columns)
        case tr.Values(names, rows):
            return frozenset(name for at, name in enumerate(names) if all(row[at] is not None for row in rows))
        case op.Join(left, right):
            return certain_columns(left) | certain_columns(right)
        case op.LeftJoin(left) | tr.Minus(left):
            return certain_columns(left)
        case op.Union(left, right):
            return certain_columns(left) & certain_columns(right)
        case op.Project(source, items):
            known = certain_columns(source)
            return frozenset(name for name, expression in items if _is_certain(expression, known))
        case op.Aggregate(source, keys):
            known = certain_columns(source)
            return frozenset(name for name, expression in keys if _is_certain(expression, known))
        case op.Extend(source, column, expression):
            known = certain_columns(source)
            return known | {column} if _is_certain(expression, known) else known
        case op.Filter(source) | op.Distinct(source) | op.Order(source) | op.Slice(source) | op.Annotate(source):
            return certain_columns(source)
        case tr.StaticPart(plan, otherwise):
            certain = certain_columns(plan)
            return certain if otherwise is None else certain & certain_columns(otherwise)
        case _:
            return frozenset()


def _is_certain(expression: ex.Expression, known: frozenset[str]) -> bool:
    match expression:
        case ex.Variable(name):
            return name in known
        case ex.Constant(value):
            return value is not None
        case _:
            return False
