"""One plan for queries that differ in constants: constants become columns, which are joined with a table of them.

    ?u :p <a> . ?u :q ?v     for many a     =     (?u :p ?a . ?u :q ?v) join table(number, a)

Constants of subjects and objects in triple patterns, and constants that a condition compares a property or a variable
with, may become columns; those of predicates, labels and results stay. Each row of the plan has the number of its query
in the first column.

Law: the rows of the table's plan with a number are, without it, the rows of the query with that row's constants. Where
a condition fails on a row that the query alone would not have tested, the plan fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isnan
from typing import Any

from anabranch.algebra import expressions as ex
from anabranch.algebra import operators as op
from anabranch.algebra import triples as tr
from anabranch.algebra.walk import conjuncts, is_volatile, reads_triples, walk
from anabranch.model.terms import XSD_STRING, Iri, Literal
from anabranch.model.values import Value
from anabranch.snapshot.rdf.certain import certain_columns
from anabranch.snapshot.variables import free_variables

NUMBER = " rule"
_COLUMN = " constant "
_AGGREGATES = frozenset({"count", "sum", "avg", "min", "max"})  # none of them depends on the order of rows
_RANGES = frozenset({"sparql:less", "sparql:less_or_equal"})


class NoCommonPlan(Exception):
    """A shape that has no table: its constants are no keys of a join."""


@dataclass(slots=True)
class PlanShape:
    """A plan whose constants are columns, with the constants in their order. `keys` are the columns that a join with
    the table looks up, the others are only compared."""

    plan: op.Operator
    constants: list[Any] = field(default_factory=list)
    keys: list[int] = field(default_factory=list)


def shape_of(
    plan: op.Operator, parameters: Mapping[str, Value], wanted: Callable[[int], bool] = lambda _: True
) -> PlanShape:
    """Return the shape of a plan; only the constants of `wanted` numbers become columns, the others stay."""
    shape = PlanShape(plan)
    if not is_volatile(plan):
        shape.plan = _Lifting(shape, parameters, wanted).lift(plan)
    return shape


@dataclass(slots=True)
class _Lifting:
    shape: PlanShape
    parameters: Mapping[str, Value]
    wanted: Callable[[int], bool]

    def _column(self, value: Any, is_key: bool) -> str | None:
        """Number a constant; return the column that it becomes, or None if it stays."""
        number = len(self.shape.constants)
        self.shape.constants.append(value)
        if is_key:
            self.shape.keys.append(number)
        return f"{_COLUMN}{number}" if self.wanted(number) else None

    def lift(self, plan: op.Operator) -> op.Operator:
        match plan:
            case tr.GraphPattern(patterns=patterns):
                return replace(plan, patterns=tuple(map(self._triple, patterns)))
            case op.Pattern(where=where) if where is not None:
                return replace(plan, where=self._conditions(where, frozenset()))
            case op.Filter(below, condition):
                inner = self.lift(below)
                return replace(plan, input=inner, condition=self._conditions(condition, certain_columns(below)))
            case op.Project() | op.Extend() | op.Distinct():
                return replace(plan, input=self.lift(plan.input))
            case op.Aggregate(keys=keys, aggregates=aggregates) if keys:
                names = {call.function.lower().removeprefix("sparql:") for _, call in aggregates}
                return replace(plan, input=self.lift(plan.input)) if names <= _AGGREGATES else plan
            case op.Join() | op.LeftJoin():
                return replace(plan, left=self.lift(plan.left), right=self.lift(plan.right))
            case tr.Minus(left):
                return replace(plan, left=self.lift(left))
            case _:
                return plan

    def _triple(self, pattern: tr.TriplePattern) -> tr.TriplePattern:
        return replace(pattern, subject=self._place(pattern.subject), object=self._place(pattern.object))

    def _place(self, place: tr.TermPlace) -> tr.TermPlace:
        if not isinstance(place, Iri | Literal):
            return place
        column = self._column(place, is_key=True)
        return place if column is None else tr.Var(column)

    def _conditions(self, condition: ex.Expression, certain: frozenset[str]) -> ex.Expression:
        parts = tuple(self._condition(one, certain) for one in conjuncts(condition))
        return parts[0] if len(parts) == 1 else ex.And(parts, span=condition.span)

    def _condition(self, condition: ex.Expression, certain: frozenset[str]) -> ex.Expression:
        match condition:
            case ex.Compare(sign, left, right) if sign != "<>":
                if _is_read(left) and (value := self._scalar(right)) is not None:
                    column = self._column(value, sign == "=")
                    return condition if column is None else replace(condition, right=ex.Variable(column))
                if _is_read(right) and (value := self._scalar(left)) is not None:
                    column = self._column(value, sign == "=")
                    return condition if column is None else replace(condition, left=ex.Variable(column))
            case ex.Call("sparql:equal", (ex.Variable(name) as read, ex.Constant(value))) if name in certain:
                # Other terms may be equal to terms that they are not.
                if isinstance(value, Iri) or (isinstance(value, Literal) and value.datatype == XSD_STRING):
                    column = self._column(value, is_key=True)
                    return condition if column is None else replace(condition, arguments=(read, ex.Variable(column)))
            case ex.Call(name, (left, right)) if name in _RANGES:
                if isinstance(left, ex.Variable) and isinstance(right, ex.Constant):
                    column = self._column(right.value, is_key=False)
                    return condition if column is None else replace(condition, arguments=(left, ex.Variable(column)))
                if isinstance(right, ex.Variable) and isinstance(left, ex.Constant):
                    column = self._column(left.value, is_key=False)
                    return condition if column is None else replace(condition, arguments=(ex.Variable(column), right))
        return condition

    def _scalar(self, expression: ex.Expression) -> Any:
        """Return a constant that may become a column; None where it may not."""
        match expression:
            case ex.Constant(value):
                pass
            case ex.Parameter(name):
                value = self.parameters.get(name)
            case _:
                return None
        is_scalar = isinstance(value, str | bool | int) or (isinstance(value, float) and not isnan(value))
        return value if is_scalar else None


def _is_read(expression: ex.Expression) -> bool:
    """Return whether an expression is a variable or a property of one: comparing it never fails."""
    return isinstance(expression, ex.Variable) or (
        isinstance(expression, ex.Property) and isinstance(expression.subject, ex.Variable)
    )


def table_plan(
    plan: op.Operator, parameters: Mapping[str, Value], varying: Sequence[int], rows: op.RuleRows
) -> op.Operator:
    """Return the plan of all queries of a shape, given one of them. Only the `varying` constants are columns."""
    shape = shape_of(plan, parameters, frozenset(varying).__contains__)
    names = (NUMBER, *(f"{_COLUMN}{number}" for number in varying))
    joined, has_table = _Joining(op.RuleTable(names, rows), reads_triples(plan)).join(shape.plan)
    if not has_table:
        raise NoCommonPlan
    items = tuple((name, ex.Variable(name)) for name in (NUMBER, *plan.columns))
    return op.Project(joined, items, span=plan.span)


@dataclass(slots=True)
class _Joining:
    """Joins a plan with its table, below as many operators as there are."""

    table: op.RuleTable
    terms: bool

    def join(self, plan: op.Operator) -> tuple[op.Operator, bool]:
        """Return a plan with the table's columns where it reads one of them, and whether it has them."""
        carried = tuple((name, ex.Variable(name)) for name in self.table.names)
        match plan:
            case tr.GraphPattern():
                return self._keyed(plan) if self._reads(plan.columns) else (plan, False)
            case op.Filter() | op.Pattern():
                return self._filtered(plan)
            case op.Project(below, items):
                inner, has_table = self.join(below)
                return replace(plan, input=inner, items=(*carried, *items) if has_table else items), has_table
            case op.Aggregate(below, keys) if keys:
                inner, has_table = self.join(below)
                return replace(plan, input=inner, keys=(*carried, *keys) if has_table else keys), has_table
            case op.Extend() | op.Distinct():
                inner, has_table = self.join(plan.input)
                return replace(plan, input=inner), has_table
            case op.Join() | op.LeftJoin():
                (left, has_left), (right, has_right) = self.join(plan.left), self.join(plan.right)
                if has_right and not has_left and isinstance(plan, op.LeftJoin):
                    raise NoCommonPlan
                return replace(plan, left=left, right=right), has_left or has_right
            case tr.Minus():
                left, has_left = self.join(plan.left)
                return replace(plan, left=left), has_left
            case _:
                return plan, False

    def _reads(self, names: Sequence[str] | frozenset[str]) -> bool:
        return any(name in self.table.names for name in names)

    def _keyed(self, plan: op.Operator) -> tuple[op.Operator, bool]:
        return op.Join(plan, self.table, lenient=self.terms), True

    def _filtered(self, plan: op.Operator) -> tuple[op.Operator, bool]:
        """Join the table above the conditions that do not read it, and below those that do."""
        conditions: list[ex.Expression] = []
        while isinstance(plan, op.Filter):
            conditions[:0] = conjuncts(plan.condition)
            plan = plan.input
        if isinstance(plan, op.Pattern) and plan.where is not None:
            own = conjuncts(plan.where)
            conditions[:0] = [one for one in own if self._reads(free_variables(one))]
            plan = replace(plan, where=_all([one for one in own if not self._reads(free_variables(one))]))
        below, has_table = (plan, False) if isinstance(plan, op.Pattern) else self.join(plan)
        reading = [one for one in conditions if self._reads(free_variables(one))]
        if has_table or not reading:
            return _tested(below, conditions), has_table
        below = _tested(below, [one for one in conditions if one not in reading])
        is_keyed = False
        for one in list(reading):
            match one:
                case ex.Call("sparql:equal", (ex.Variable() as read, ex.Variable(column))):
                    below = op.Extend(below, column, read)
                    reading.remove(one)
                    is_keyed = True
                case ex.Compare("="):
                    is_keyed = True
        if not is_keyed:
            raise NoCommonPlan
        return _tested(self._keyed(below)[0], reading), True


def _all(conditions: Sequence[ex.Expression]) -> ex.Expression | None:
    if not conditions:
        return None
    return conditions[0] if len(conditions) == 1 else ex.And(tuple(conditions))


def _tested(plan: op.Operator, conditions: Sequence[ex.Expression]) -> op.Operator:
    condition = _all(conditions)
    return plan if condition is None else op.Filter(plan, condition)


def has_parameters(plan: op.Operator) -> bool:
    return any(isinstance(node, ex.Parameter) for node in walk(plan))
