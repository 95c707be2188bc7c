"""Rows under construction: a plan together with what lowering knows about its columns.

Joins of SPARQL are lenient, because a variable may be unbound; the strict join is quicker. Both give the same rows
when every shared column is bound on both sides, so each table knows which of its columns certainly are.

Invariant: `certain` names only columns that are bound in every row. `own` are the names that are in scope in the sense
of SPARQL 1.1, 18.2.1: a row that was handed in from outside (EXISTS, GRAPH ?g) adds columns, but no names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from anabranch.algebra.expressions import And, Call, Constant, Expression, IsNull, Or, Variable
from anabranch.algebra.operators import Extend, Filter, Join, LeftJoin, Operator, Project, TripleSource, Union, Unit
from anabranch.algebra.triples import GraphPattern, Minus, Path, TriplePattern, Values
from anabranch.errors import Span
from anabranch.syntax.common import LoweringProblems
from anabranch.syntax.sparql import tree as t
from anabranch.syntax.sparql.scope import SOLUTION_STEM, Scope, is_visible, leaves_group
from anabranch.syntax.sparql.walk import parts

_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class VariableTable:
    plan: Operator
    certain: frozenset[str] = _NONE
    own: frozenset[str] = _NONE

    @property
    def columns(self) -> tuple[str, ...]:
        return self.plan.columns

    def scope(self, source: TripleSource) -> Scope:
        return Scope(self.columns, self.certain, source)


UNIT = VariableTable(Unit())


@dataclass(frozen=True, slots=True)
class Seed:
    """A row from outside with which every group begins, so that expressions in it see the row's values."""

    plan: Operator
    certain: frozenset[str] = _NONE

    @property
    def names(self) -> tuple[str, ...]:
        return self.plan.columns


def bound(plan: GraphPattern | Path) -> VariableTable:
    """Return the table of a pattern: it binds all of its variables, and times of triples may be null."""
    names = (
        (name for pattern in plan.patterns for name in pattern.variables)
        if isinstance(plan, GraphPattern)
        else plan.columns
    )
    certain = frozenset(names)
    return VariableTable(plan, certain, frozenset(filter(is_visible, certain)))


def basic(source: TripleSource, patterns: Sequence[TriplePattern], span: Span | None) -> VariableTable:
    return bound(GraphPattern(source, tuple(patterns), span=span))


def brought(values: Values) -> VariableTable:
    """The table of VALUES: a column is certain when no row leaves it out."""
    certain = {name for at, name in enumerate(values.names) if all(row[at] is not None for row in values.rows)}
    return VariableTable(values, frozenset(certain), frozenset(values.names))


def nothing(like: VariableTable, *more: str) -> VariableTable:
    """No rows, with the columns of another table."""
    names = tuple(dict.fromkeys((*like.columns, *more)))
    own = like.own | frozenset(filter(is_visible, more))
    return VariableTable(Values(names, (), span=like.plan.span), frozenset(names), own)


def _lenient(left: VariableTable, right: VariableTable) -> bool:
    shared = set(left.columns) & set(right.columns)
    return not (shared <= left.certain and shared <= right.certain)


def join(left: VariableTable, right: VariableTable, span: Span | None) -> VariableTable:
    own = left.own | right.own
    if isinstance(left.plan, Unit):
        return VariableTable(right.plan, right.certain, own)
    if isinstance(right.plan, Unit):
        return VariableTable(left.plan, left.certain, own)
    plan = Join(left.plan, right.plan, lenient=_lenient(left, right), span=span)
    return VariableTable(plan, left.certain | right.certain, own)


def left_join(
    left: VariableTable, right: VariableTable, condition: Expression | None, span: Span | None
) -> VariableTable:
    own = left.own | right.own
    if isinstance(right.plan, Unit):
        return VariableTable(left.plan, left.certain, own)
    plan = LeftJoin(left.plan, right.plan, condition, lenient=_lenient(left, right), span=span)
    return VariableTable(plan, left.certain, own)


def unite(tables: Sequence[VariableTable], span: Span | None, ends: Iterable[str] = ()) -> VariableTable:
    """The bag union; columns that a side lacks are null there. `ends` are hidden columns that are still wanted."""
    wanted = frozenset(ends)
    names = tuple(dict.fromkeys(name for one in tables for name in one.columns if leaves_group(name) or name in wanted))
    plans = [_padded(one, names) for one in tables]
    while len(plans) > 1:  # in pairs, so that a long chain of UNIONs makes no deep plan
        paired = zip(plans[::2], plans[1::2], strict=False)
        rest = plans[-1:] if len(plans) % 2 else []
        plans = [Union(left, right, span=span) for left, right in paired] + rest
    certain = frozenset(names).intersection(*(one.certain for one in tables))
    return VariableTable(plans[0], certain, frozenset().union(*(one.own for one in tables)))


def _padded(table: VariableTable, names: tuple[str, ...]) -> Operator:
    if set(table.columns) == set(names):
        return table.plan
    return Project(table.plan, tuple((name, reference(name, table.columns)) for name in names), span=table.plan.span)


def reference(name: str, columns: Iterable[str], span: Span | None = None) -> Expression:
    """Return a column's value; a name without a column is unbound."""
    return Variable(name, span=span) if name in columns else Constant(None, span=span)


def minus(left: VariableTable, right: VariableTable, span: Span | None) -> VariableTable:
    """Build MINUS; if the two sides share no column, nothing is removed."""
    if not set(left.columns) & set(right.columns):
        return left
    return VariableTable(Minus(left.plan, right.plan, span=span), left.certain, left.own)


def extend(
    table: VariableTable, name: str, expression: Expression, problems: LoweringProblems, span: Span | None
) -> VariableTable:
    """Add a column. If the outer row has it already, the two values must agree."""
    own = table.own | frozenset(filter(is_visible, (name,)))
    certain = table.certain
    if isinstance(expression, Constant) and expression.value is not None:
        certain |= {name}
    if name not in table.columns:
        return VariableTable(Extend(table.plan, name, expression, span=span), certain, own)
    hidden = problems.fresh("bound")
    old, new = Variable(name), Variable(hidden)
    agrees = Or((IsNull(old), IsNull(new), Call("sparql:sameterm", (old, new))))
    rows = Filter(Extend(table.plan, hidden, expression, span=span), agrees, span=span)
    items = tuple(
        (column, Call("coalesce", (old, new)) if column == name else Variable(column)) for column in table.columns
    )
    return VariableTable(Project(rows, items, span=span), certain, own)


def telling_apart(expressions: object, columns: Iterable[str], problems: LoweringProblems) -> str | None:
    """Return the name of a hidden column that distinguishes solutions, as BNODE("label") needs: it gives one node per
    label and solution. None if no expression calls it or the column exists."""
    asked = any(isinstance(one, t.CallTree) and one.function == "BNODE" and one.arguments for one in parts(expressions))
    if not asked or any(name.startswith(f" {SOLUTION_STEM}") for name in columns):
        return None
    return problems.fresh(SOLUTION_STEM)


def told_apart(table: VariableTable, column: str | None) -> VariableTable:
    if column is None:
        return table
    return VariableTable(Extend(table.plan, column, Call("sparql:struuid", ())), table.certain, table.own)


def conjunction(conditions: Sequence[Expression], span: Span | None) -> Expression | None:
    """The condition that all hold; None when there are none."""
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    return And(tuple(conditions), span=span)


def filtered(table: VariableTable, conditions: Sequence[Expression], span: Span | None) -> VariableTable:
    condition = conjunction(conditions, span)
    if condition is None:
        return table
    return VariableTable(Filter(table.plan, condition, span=span), table.certain, table.own)


def projected(table: VariableTable, names: Sequence[str], span: Span | None) -> VariableTable:
    """Only these columns, in this order."""
    if tuple(names) == table.columns:
        return VariableTable(table.plan, table.certain, frozenset(names))
    items = tuple((name, reference(name, table.columns)) for name in names)
    return VariableTable(Project(table.plan, items, span=span), table.certain & frozenset(names), frozenset(names))


def narrowed(seed: Seed | None, names: Iterable[str]) -> Seed | None:
    """The part of a row from outside that has these names; None when nothing is left of it."""
    if seed is None:
        return None
    wanted = frozenset(names)
    kept = tuple(name for name in seed.names if name in wanted)
    if not kept:
        return None
    if kept == seed.names:
        return seed
    return Seed(Project(seed.plan, tuple((name, Variable(name)) for name in kept)), seed.certain & wanted)


def own_columns(table: VariableTable, span: Span | None) -> VariableTable:
    """Without the columns that a row from outside brought and the table's own patterns do not bind."""
    foreign = [name for name in table.columns if is_visible(name) and name not in table.own]
    if not foreign:
        return table
    return projected(table, [name for name in table.columns if name in table.own], span)
