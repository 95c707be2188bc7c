"""Queries of the SPARQL family to the algebra: SELECT, ASK, CONSTRUCT and DESCRIBE over the rows of WHERE.

Invariant: every problem of a query is collected before any is raised; the plan of a query with problems is never used.
"""

from __future__ import annotations

from anabranch.algebra.expressions import Constant, Expression, Variable
from anabranch.algebra.operators import Operator, ResultForm, TripleSource
from anabranch.algebra.triples import Ask, Construct, Describe, TriplePattern, Var
from anabranch.syntax.sparql import tree as t
from anabranch.syntax.sparql.lower_expressions import ExpressionLowering
from anabranch.syntax.sparql.lower_groups import GroupLowering, place
from anabranch.syntax.sparql.lower_solutions import SolutionLowering
from anabranch.syntax.sparql.scope import Scope, StatementSettings, is_visible
from anabranch.syntax.sparql.tables import Seed, VariableTable, projected


class QueryLowering:
    """Lowers the query of one statement."""

    def __init__(self, settings: StatementSettings) -> None:
        self._settings = settings
        self._expressions = ExpressionLowering(settings, self._exists)
        self._groups = GroupLowering(settings, self._expressions, self._sub_select)
        self._solutions = SolutionLowering(settings, self._expressions, self._groups)

    def query(self, query: t.QueryTree) -> tuple[Operator, ResultForm]:
        source = self._settings.dataset.default
        match query.form:
            case t.SelectTree() as form:
                return self._solutions.select(query, form, source).plan, "bindings"
            case t.AskTree() as form:
                table = self._solutions.sliced(query, self._solutions.rows(query, source))
                return Ask(table.plan, span=form.span or query.span), "boolean"
            case t.ConstructTree() as form:
                return self._construct(query, form, source), "graph"
            case t.DescribeTree() as form:
                return self._describe(query, form, source), "graph"

    def _exists(self, group: t.GroupTree, scope: Scope) -> Operator:
        return self._groups.exists(group, scope)

    def _sub_select(self, query: t.QueryTree, source: TripleSource, seed: Seed | None) -> VariableTable:
        match query.form:
            case t.SelectTree() as form:
                return self._solutions.select(query, form, source, seed)
            case _:
                return self._solutions.rows(query, source, seed)

    def _construct(self, query: t.QueryTree, form: t.ConstructTree, source: TripleSource) -> Operator:
        table = self._solutions.sliced(query, self._solutions.rows(query, source))
        triples = _written(query) if form.template is None else form.template
        patterns = tuple(pattern for pattern in map(_template, triples) if _can_be(pattern, table.columns))
        if any(_is_blank(name) for pattern in patterns for name in pattern.variables):
            # new blank nodes are named by their row: nothing may be in it but the solution itself
            visible = tuple(name for name in table.columns if is_visible(name))
            table = projected(table, visible, form.span)
        return Construct(table.plan, patterns, span=form.span)

    def _describe(self, query: t.QueryTree, form: t.DescribeTree, source: TripleSource) -> Operator:
        rows = self._solutions.rows(query, source)
        table = self._solutions.sliced(query, rows)
        resources: list[Expression] = []
        if form.resources is None:
            resources.extend(Variable(name) for name in self._solutions.star(query, rows))
        for one in form.resources or ():
            match one:
                case t.TermTree(term):
                    resources.append(Constant(term, span=one.span))
                case t.VarTree(name) if name in table.columns:
                    resources.append(Variable(name, span=one.span))
        return Describe(table.plan, source, tuple(resources), span=form.span)


def _written(query: t.QueryTree) -> tuple[t.TripleTree, ...]:
    """Return the triples of CONSTRUCT WHERE, whose pattern is its own template."""
    elements = () if query.where is None else query.where.elements
    return tuple(triple for element in elements if isinstance(element, t.TriplesTree) for triple in element.triples)


def _template(triple: t.TripleTree) -> TriplePattern:
    match triple.predicate:
        case t.VarTree() | t.TermTree():
            return TriplePattern(place(triple.subject), place(triple.predicate), place(triple.object))
        case _:
            return TriplePattern(place(triple.subject), Var("  no predicate"), place(triple.object))


def _can_be(pattern: TriplePattern, columns: tuple[str, ...]) -> bool:
    """Return whether the triple can ever be made: a variable that no row binds prevents it."""
    return all(_is_blank(name) or name in columns for name in pattern.variables)


def _is_blank(name: str) -> bool:
    return name.startswith(" _:")
