"""WITH, RETURN and EMIT: projection, grouping, DISTINCT, ORDER BY, SKIP, LIMIT and the WHERE of WITH.

Invariant: ORDER BY and the WHERE of a WITH see what was projected and, where rows are neither grouped nor made
distinct, the variables from before, which are carried along under hidden columns and dropped at the end. The variables
of the row that a subquery is asked for stay visible throughout it: no projection inside can drop or replace them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from anabranch.algebra import expressions as x
from anabranch.algebra.operators import (
    Aggregate,
    Argument,
    Distinct,
    Filter,
    Join,
    Operator,
    Order,
    OrderKey,
    Project,
    Slice,
)
from anabranch.algebra.types import Type
from anabranch.errors import Span
from anabranch.syntax.common import walk_tree
from anabranch.syntax.seraph import tree as t
from anabranch.syntax.seraph.lower_expressions import AggregateSink, ExpressionLowering, has_aggregate, is_aggregate
from anabranch.syntax.seraph.scope import Binding, Problems, Replacement, Scope
from anabranch.syntax.seraph.walk import free_variable, names_in

_ASKING = (t.ExistsSubquery, t.PatternExpr, t.PatternComprehension)


@dataclass(frozen=True, slots=True)
class _Column:
    """One column of the result: its name, the tree it came from (None for `*`), its expression and type."""

    name: str
    tree: t.Expr
    expression: x.Expression
    type: Type


class ProjectionLowering:
    def __init__(self, problems: Problems, expressions: ExpressionLowering) -> None:
        self.problems = problems
        self.expressions = expressions

    def lower(
        self,
        plan: Operator,
        scope: Scope,
        projection: t.Projection,
        where: t.Expr | None,
        *,
        clause: str,
        reserved: bool,
        outer: Scope | None = None,
    ) -> tuple[Operator, Scope]:
        """The plan of a clause and what it leaves visible; `outer` is what this clause of a subquery and those after
        it read of what is bound around it."""
        items = self._items(projection, scope, clause, reserved)
        columns, outputs, plan = self._projected(items, plan, scope, outer, projection.span)
        grouped = any(has_aggregate(item.expression) for item in items)
        after = Scope(
            {c.name: Binding(c.name, c.type) for c in columns},
            self._replacements(items, columns),
            {} if outer is None else outer.unusable,
        )
        stays: dict[str, Binding] = {}
        for name in outer.bindings if outer is not None and clause == "WITH" else ():
            if name not in after.bindings:
                stays[name] = scope.bindings[name]
                after = after.bind(name, stays[name])
        outputs += tuple((binding.column, x.Variable(binding.column)) for binding in stays.values())
        carried: tuple[tuple[str, x.Expression], ...] = ()
        if not grouped and not projection.distinct and (projection.order or where is not None):
            needed = names_in(*(sort.expression for sort in projection.order), *((where,) if where else ()))
            for name, binding in scope.bindings.items():
                if name not in after.bindings and name in needed:
                    hidden = self.problems.fresh(name)
                    carried += ((hidden, x.Variable(binding.column)),)
                    after = after.bind(name, Binding(hidden, binding.type))
        plan = Project(plan, outputs + carried, span=projection.span)
        if projection.distinct:
            plan = Distinct(plan, span=projection.span)
        if projection.order:
            plan = Order(plan, self._order(projection.order, after), span=projection.span)
        if projection.skip is not None or projection.limit is not None:
            skip, limit = (
                self._count(part, name, {*scope.names, *after.names})
                for part, name in ((projection.skip, "SKIP"), (projection.limit, "LIMIT"))
            )
            plan = Slice(plan, skip, limit, span=projection.span)
        if where is not None:
            plan = Filter(plan, self.expressions.condition(where, after), span=where.span)
        if carried:
            plan = Project(plan, tuple((name, x.Variable(name)) for name, _ in outputs), span=projection.span)
        visible = {c.name: Binding(c.name, c.type) for c in columns}
        return plan, Scope({**visible, **stays}, unusable=after.unusable)

    def _projected(
        self, items: tuple[t.ProjectionItem, ...], plan: Operator, scope: Scope, outer: Scope | None, span: Span
    ) -> tuple[list[_Column], tuple[tuple[str, x.Expression], ...], Operator]:
        """The columns, what each is computed from, and the rows that it is computed of: groups where one aggregates."""
        aggregates = [has_aggregate(item.expression) for item in items]
        if not any(aggregates):
            columns = self._plain(items, scope)
            return columns, tuple((c.name, c.expression) for c in columns), plan
        sink = AggregateSink(scope)
        constant = {} if outer is None else {name: scope.bindings[name] for name in outer.bindings}
        columns, named = self._grouped(items, scope, sink, constant)
        keys = tuple((named[at], c.expression) for at, c in enumerate(columns) if not aggregates[at])
        plan = Aggregate(plan, keys, tuple(sink.calls), span=span)
        if constant:
            missing = tuple(one.column for one in constant.values() if one.column not in plan.columns)
            plan = Join(Argument(missing), plan, span=span)
        outputs = tuple(
            (c.name, c.expression if aggregates[at] else x.Variable(named[at])) for at, c in enumerate(columns)
        )
        return columns, outputs, plan

    # --- items ---

    def _items(
        self, projection: t.Projection, scope: Scope, clause: str, reserved: bool
    ) -> tuple[t.ProjectionItem, ...]:
        items = projection.items
        if projection.star:
            if not scope.bindings and clause != "WITH":
                self.problems.add(
                    "SER-030", f"{clause} * has nothing to give", projection.span, "no variable is in scope"
                )
            stars = tuple(
                t.ProjectionItem(t.VariableRef(name, span=projection.span), t.Name(name), "", span=projection.span)
                for name in sorted(scope.bindings)
            )
            items = stars + items
        seen: set[str] = set()
        for item in items:
            name = column_name(item)
            place = item.alias.span if item.alias is not None else item.span
            if clause == "WITH" and item.alias is None and not isinstance(item.expression, t.VariableRef):
                self.problems.add(
                    "SER-032", "this needs a name after WITH", item.span, "", f"write {item.text} AS name"
                )
            if name in seen:
                self.problems.add(
                    "SER-025", f"two columns are called `{name}`", place, "the second one", "rename with AS"
                )
            if reserved:
                bare = item.alias is None and isinstance(item.expression, t.VariableRef)
                self.problems.reserved(name, place, f"give it a name of its own: {name} AS until" if bare else "")
            seen.add(name)
        return items

    def _plain(self, items: tuple[t.ProjectionItem, ...], scope: Scope) -> list[_Column]:
        columns = []
        for item in items:
            lowered, kind = self.expressions.lower(item.expression, scope)
            columns.append(_Column(column_name(item), item.expression, lowered, kind))
        return columns

    def _grouped(
        self, items: tuple[t.ProjectionItem, ...], scope: Scope, sink: AggregateSink, constant: Mapping[str, Binding]
    ) -> tuple[list[_Column], dict[int, str]]:
        """Keys first, for what stands beside an aggregate must be made of them, or of what is `constant`; and what the
        keys' columns are called before they are projected."""
        keys: list[Replacement] = []
        usable = dict(constant)
        lowered: dict[int, _Column] = {}
        named: dict[int, str] = {}
        asks = any(isinstance(part, _ASKING) for item in items for part in walk_tree(item.expression))
        for index, item in enumerate(items):
            if not has_aggregate(item.expression):
                expression, kind = self.expressions.lower(item.expression, scope)
                name = column_name(item)
                lowered[index] = _Column(name, item.expression, expression, kind)
                variable = item.expression.name if isinstance(item.expression, t.VariableRef) else None
                # The variables of a pattern beside an aggregate may have any name that a user can write.
                named[index] = name if not asks or name == variable else self.problems.fresh(name)
                if isinstance(item.expression, t.VariableRef | t.PropertyLookup):
                    keys.append(Replacement(item.expression, named[index], kind))
                if variable is not None:
                    usable[variable] = Binding(named[index], kind)
        beside = Scope(
            usable,
            tuple(keys),
            {
                name: f"`{name}` stands beside an aggregate but is not grouped"
                for name in scope.bindings
                if name not in usable
            },
        )
        for index, item in enumerate(items):
            if has_aggregate(item.expression):
                expression, kind = self.expressions.lower(item.expression, beside, sink)
                lowered[index] = _Column(column_name(item), item.expression, expression, kind)
        return [lowered[index] for index in range(len(items))], named

    # --- after the projection ---

    def _replacements(self, items: tuple[t.ProjectionItem, ...], columns: list[_Column]) -> tuple[Replacement, ...]:
        """Projected expressions that may stand again in ORDER BY, unless an alias hides what they are made of."""
        renamed = {
            column.name
            for item, column in zip(items, columns, strict=True)
            if item.expression != t.VariableRef(column.name)
        }
        return tuple(
            Replacement(item.expression, column.name, column.type)
            for item, column in zip(items, columns, strict=True)
            if not isinstance(item.expression, t.LiteralExpr) and not (names_in(item.expression) & renamed)
        )

    def _order(self, sorts: tuple[t.SortItem, ...], after: Scope) -> tuple[OrderKey, ...]:
        parts = Scope(
            after.bindings,
            tuple(
                r
                for r in after.replacements
                if isinstance(r.expression, t.VariableRef | t.PropertyLookup) or is_aggregate(r.expression)
            ),
        )
        keys = []
        for sort in sorts:
            whole = next((r for r in after.replacements if r.expression == sort.expression), None)
            if whole is not None:
                expression: x.Expression = x.Variable(whole.column, span=sort.span)
            else:
                expression, _ = self.expressions.lower(sort.expression, parts)
            keys.append(OrderKey(expression, sort.descending))
        return tuple(keys)

    def _count(self, expression: t.Expr | None, clause: str, visible: Collection[str]) -> x.Expression | None:
        if expression is None:
            return None
        row = free_variable(expression, visible)
        if row is not None:
            self.problems.add("SER-026", f"{clause} cannot depend on a row", row.span, f"`{row.text}` is a variable")
            return None
        match expression:
            case t.LiteralExpr(int(value)) if type(value) is int and value >= 0:
                pass
            case t.LiteralExpr():
                self.problems.add("SER-026", f"{clause} needs a non-negative integer", expression.span)
        return self.expressions.lower(expression, Scope())[0]


def column_name(item: t.ProjectionItem) -> str:
    """The alias, else the variable's own name, else the text as it stands."""
    if item.alias is not None:
        return item.alias.text
    if isinstance(item.expression, t.VariableRef):
        return item.expression.name
    return item.text
