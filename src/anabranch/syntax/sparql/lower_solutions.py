"""From the rows of WHERE to a query's solutions (SPARQL 1.1, sections 18.2.4 and 18.2.5).

The order is the standard's: annotations (C-SPARQL's AGGREGATE), grouping, HAVING, trailing VALUES, SELECT expressions,
ORDER BY, and then the projection, DISTINCT and the slice. Sorting comes before the projection, so it sees every
variable.

Invariant: expressions are lowered before the operators are built, because grouping needs to know all aggregates that
any of them asks for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from anabranch.algebra.expressions import AggregateCall, Constant, Expression, Variable
from anabranch.algebra.operators import Aggregate, Annotate, Distinct, Order, OrderKey, Slice, TripleSource
from anabranch.errors import Span, closest
from anabranch.model.terms import Iri
from anabranch.syntax.sparql import tree as t
from anabranch.syntax.sparql.lower_expressions import ExpressionLowering
from anabranch.syntax.sparql.lower_functions import lupos_aggregate
from anabranch.syntax.sparql.lower_groups import GroupLowering
from anabranch.syntax.sparql.scope import Calls, Grouping, Scope, StatementSettings, is_visible
from anabranch.syntax.sparql.tables import (
    UNIT,
    Seed,
    VariableTable,
    extend,
    filtered,
    join,
    projected,
    telling_apart,
    told_apart,
)
from anabranch.syntax.sparql.walk import aggregates, variables


@dataclass(frozen=True, slots=True)
class _Computed:
    """A SELECT expression: the column, its value, its place."""

    name: str
    value: Expression
    span: Span | None


class SolutionLowering:
    def __init__(self, settings: StatementSettings, expressions: ExpressionLowering, groups: GroupLowering) -> None:
        self._settings = settings
        self._problems = settings.problems
        self._expressions = expressions
        self._groups = groups

    # --- the whole ---

    def select(
        self, query: t.QueryTree, form: t.SelectTree, source: TripleSource, seed: Seed | None = None
    ) -> VariableTable:
        """The rows of a SELECT: its columns, in its order."""
        table = self._respelled(query, form, self.rows(query, source, seed))
        table = projected(table, self._projection(query, form, table), form.span)
        if form.distinct:
            table = replace(table, plan=Distinct(table.plan, span=form.span))
        return self.sliced(query, table)

    def rows(self, query: t.QueryTree, source: TripleSource, seed: Seed | None = None) -> VariableTable:
        """The solutions in their order, with every variable; neither projected nor sliced."""
        table = UNIT if query.where is None else self._groups.group(query.where, source, seed)
        table = self._annotated(query, table, source)
        if _is_grouped(query):
            return self._grouped_rows(query, table, source)
        having = [self._expressions.truth(one, table.scope(source)) for one in query.having]
        table = self._with_values(query, filtered(table, having, _span_of(query.having)))
        table = told_apart(table, telling_apart(_computing(query), table.columns, self._problems))
        calls = Calls(self._problems, "annotated")
        scope = replace(table.scope(source), annotations=calls)
        computed, scope = self._computed(query, table.own, scope)
        keys = self._order(query, scope)
        if calls.aggregates:
            named = frozenset(name for name, _ in calls.aggregates if is_visible(name))
            plan = Annotate(table.plan, (), calls.aggregates, span=query.form.span)
            table = VariableTable(plan, table.certain, table.own | named)
        return self._finished(table, computed, keys, query)

    def _with_values(self, query: t.QueryTree, table: VariableTable) -> VariableTable:
        return table if query.values is None else join(table, self._groups.values(query.values), query.values.span)

    def sliced(self, query: t.QueryTree, table: VariableTable) -> VariableTable:
        if query.limit is None and query.offset is None:
            return table
        skip = None if query.offset is None else Constant(query.offset)
        limit = None if query.limit is None else Constant(query.limit)
        return replace(table, plan=Slice(table.plan, skip, limit, span=query.span))

    def _finished(
        self, table: VariableTable, computed: list[_Computed], keys: tuple[OrderKey, ...], query: t.QueryTree
    ) -> VariableTable:
        for one in computed:
            table = extend(table, one.name, one.value, self._problems, one.span)
        if keys:
            table = replace(table, plan=Order(table.plan, keys, span=_span_of(query.order_by)))
        return table

    # --- SELECT and ORDER BY ---

    def _computed(self, query: t.QueryTree, bound: frozenset[str], scope: Scope) -> tuple[list[_Computed], Scope]:
        """The values of `(expression AS ?v)`, each of which sees those before it; and what ORDER BY sees."""
        found: list[_Computed] = []
        projected_so_far: set[str] = set()
        for item in _items(query):
            if item.variable is None:
                continue
            name = item.variable.name
            if item.expression is None:
                if scope.grouping is not None and name not in scope.columns:
                    self._expressions.ungrouped(name, item.variable.span, scope)
            elif name in bound or name in projected_so_far or name in scope.columns:
                self._problems.add(
                    "SPQ-101",
                    f"`?{name}` is bound already",
                    item.variable.span,
                    "AS gives a new variable",
                    "use another name",
                )
            else:
                value = self._value(name, item.expression, scope)
                if value != Variable(name):
                    found.append(_Computed(name, value, item.span))
                scope = scope.with_column(name)
            projected_so_far.add(name)
        return found, scope

    def _value(self, name: str, tree: t.ExpressionTree, scope: Scope) -> Expression:
        """The value of a SELECT item. An annotation of LUPOS that is an item by itself gets the item's column."""
        match tree:
            case t.CallTree(Iri() as iri) if scope.annotations is not None:
                if lupos_aggregate(iri, self._settings.dialect) is not None:
                    scope.annotations.next_name = name
        return self._expressions.term(tree, scope)

    def _order(self, query: t.QueryTree, scope: Scope) -> tuple[OrderKey, ...]:
        sampled = replace(scope, ungrouped="sample")
        return tuple(
            OrderKey(self._expressions.term(key.expression, sampled), key.descending, of_terms=True)
            for key in query.order_by
        )

    def _projection(self, query: t.QueryTree, form: t.SelectTree, table: VariableTable) -> tuple[str, ...]:
        if form.items is not None:
            return tuple(dict.fromkeys(item.variable.name for item in form.items if item.variable is not None))
        return self.star(query, table)

    def star(self, query: t.QueryTree, table: VariableTable) -> tuple[str, ...]:
        """The variables that `*` stands for, in the order of the text."""
        mentioned = variables((query.where, query.annotations, query.values))
        return tuple(name for name in mentioned if name in table.own and name in table.columns)

    def _respelled(self, query: t.QueryTree, form: t.SelectTree, table: VariableTable) -> VariableTable:
        """Names in AGGREGATE and SELECT may differ in case, as they do in the C-SPARQL paper (?tot and ?Tot)."""
        annotated = {clause.variable.name.lower(): clause.variable.name for clause in query.annotations}
        for item in form.items or ():
            if item.variable is None or item.variable.name in table.columns:
                continue
            meant = annotated.get(item.variable.name.lower())
            if meant in table.columns:
                value = Variable(meant, span=item.variable.span)
                table = extend(table, item.variable.name, value, self._problems, item.span)
        return table

    # --- groups ---

    def _grouped_rows(self, query: t.QueryTree, table: VariableTable, source: TripleSource) -> VariableTable:
        if isinstance(query.form, t.SelectTree) and query.form.items is None:
            self._problems.add(
                "SPQ-102",
                "SELECT * does not go with groups",
                query.form.span,
                "a group has no single value of every variable",
                "name the variables of GROUP BY and aggregates of the others",
            )
        inner = table.scope(source)
        trailing = UNIT if query.values is None else self._groups.values(query.values)
        keys, certain = self._keys(query, table, inner)
        calls = Calls(self._problems, "aggregate")
        names = tuple(name for name, _ in keys)
        scope = Scope(names, certain, source, Grouping(inner, calls))
        over = scope.with_columns(trailing.columns, trailing.certain)
        apart = telling_apart(_computing(query), (), self._problems)
        if apart is not None:
            over = over.with_column(apart)
        computed, ordered = self._computed(query, table.own | trailing.own | frozenset(names), over)
        aliases = {one.name: one.value for one in computed}
        asked = replace(scope, aliases=aliases, ungrouped="sample")
        having = [self._expressions.truth(one, asked) for one in query.having]
        order = self._order(query, ordered)

        plan = Aggregate(table.plan, keys, calls.aggregates, span=_span_of(query.group_by) or query.form.span)
        grouped = VariableTable(plan, certain, frozenset(filter(is_visible, names)))
        grouped = filtered(grouped, having, _span_of(query.having))
        grouped = self._with_values(query, grouped)
        return self._finished(told_apart(grouped, apart), computed, order, query)

    def _keys(
        self, query: t.QueryTree, table: VariableTable, inner: Scope
    ) -> tuple[tuple[tuple[str, Expression], ...], frozenset[str]]:
        keys: dict[str, Expression] = {}
        certain: set[str] = set()
        for item in query.group_by:
            expression = item.expression if item.expression is not None else item.variable
            if expression is None:
                continue
            value = self._expressions.term(expression, inner)
            if item.variable is None and isinstance(expression, t.VarTree):
                name = expression.name
            else:
                name = self._problems.fresh("key") if item.variable is None else item.variable.name
            if item.expression is not None and item.variable is not None and (name in table.own or name in keys):
                self._problems.add(
                    "SPQ-101",
                    f"`?{name}` is bound already",
                    item.variable.span,
                    "AS gives a new variable",
                    "use another name",
                )
            keys.setdefault(name, value)
            if isinstance(value, Variable) and value.name in table.certain:
                certain.add(name)
        return tuple(keys.items()), frozenset(certain)

    # --- C-SPARQL's AGGREGATE ---

    def _annotated(self, query: t.QueryTree, table: VariableTable, source: TripleSource) -> VariableTable:
        """Each clause counts over the rows of WHERE; then all filters of all clauses hold."""
        bound = table.own
        own = bound
        plan = table.plan
        for clause in query.annotations:
            name = clause.variable.name
            if name in own:
                self._problems.add(
                    "SPQ-108",
                    f"`?{name}` is bound already",
                    clause.variable.span,
                    "AGGREGATE gives a new variable",
                    "use another name",
                )
                continue
            own |= {name}
            used = (*clause.group, *(() if clause.argument is None else (clause.argument,)))
            for variable in used:
                self._check_in_where(variable, bound)
            if any(variable.name not in bound for variable in used):
                continue
            arguments = () if clause.argument is None else (Variable(clause.argument.name, span=clause.argument.span),)
            call = AggregateCall(f"sparql:{clause.function.lower()}", arguments, span=clause.span)
            keys = tuple(dict.fromkeys(variable.name for variable in clause.group))
            plan = Annotate(plan, keys, ((name, call),), span=clause.span)
        table = VariableTable(plan, table.certain, own)
        scope = table.scope(source)
        filters = [one for clause in query.annotations for one in clause.filters]
        return filtered(table, [self._expressions.truth(one, scope) for one in filters], _span_of(tuple(filters)))

    def _check_in_where(self, variable: t.VarTree, bound: frozenset[str]) -> None:
        if variable.name in bound:
            return
        near = closest(variable.name, sorted(bound), 1)
        listed = ", ".join(f"?{name}" for name in sorted(bound)) or "none"
        self._problems.add(
            "SPQ-108",
            f"no variable `?{variable.name}` in WHERE",
            variable.span,
            "AGGREGATE counts over the variables of WHERE",
            (f"did you mean `?{near[0]}`?  " if near else "") + f"In WHERE: {listed}.",
        )


def _items(query: t.QueryTree) -> tuple[t.ItemTree, ...]:
    return query.form.items or () if isinstance(query.form, t.SelectTree) else ()


def _computing(query: t.QueryTree) -> tuple[object, ...]:
    """The expressions that SELECT and ORDER BY compute for each solution."""
    return (tuple(item.expression for item in _items(query)), query.order_by)


def _is_grouped(query: t.QueryTree) -> bool:
    return bool(query.group_by) or next(aggregates((_computing(query), query.having)), None) is not None


def _span_of(parts: tuple[t.TreePart, ...]) -> Span | None:
    spans = [part.span for part in parts if part.span is not None]
    return spans[0].join(spans[-1]) if spans else None
