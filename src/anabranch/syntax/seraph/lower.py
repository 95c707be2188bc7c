"""Seraph's clauses to the algebra: a query is a pipeline of tables, each clause one step.

Invariant: every problem of a query is collected before any is raised, and a plan is only returned when there was none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import Literal

from anabranch.algebra import expressions as x
from anabranch.algebra.operators import (
    Argument,
    Distinct,
    Filter,
    Join,
    LeftJoin,
    Operator,
    Output,
    Project,
    Registration,
    Source,
    Static,
    Stream,
    Union,
    Unit,
    Unwind,
    Window,
)
from anabranch.algebra.types import ANY
from anabranch.errors import Span
from anabranch.model.temporal import Duration
from anabranch.syntax.common import RESERVED
from anabranch.syntax.seraph import tree as t
from anabranch.syntax.seraph.lower_expressions import ExpressionLowering
from anabranch.syntax.seraph.lower_patterns import PatternBinder, PatternLowering, conjunction
from anabranch.syntax.seraph.lower_projection import ProjectionLowering, column_name
from anabranch.syntax.seraph.lower_shortest import ShortestConditions
from anabranch.syntax.seraph.scope import Binding, Problems, Scope
from anabranch.syntax.seraph.walk import names_in

PLAIN = Window()


@dataclass(frozen=True, slots=True)
class _Table:
    """A plan with the names of its columns, the source for patterns in expressions and, inside of a subquery, the outer
    variables that the rest of it reads."""

    plan: Operator
    scope: Scope
    source: Source | None
    outer: Scope | None = None
    window: Window | None = None


class Lowering:
    """Lowers one query. `continuous` queries need windows; plain ones have none."""

    def __init__(self, problems: Problems, *, continuous: bool) -> None:
        self.problems = problems
        self.continuous = continuous
        self.expressions = ExpressionLowering(
            problems, self._pattern_in_expression, self._subquery, lambda: self._source, self._window_bound
        )
        self.projections = ProjectionLowering(problems, self.expressions)
        self._source: Source | None = None if continuous else PLAIN
        self._window: Window | None = None  # the window of the preceding MATCH, whose bounds can be read
        self._in_answer = False  # whether bounds are those of the answer
        self.holds_elements = False  # whether rows of an answer may hold nodes or relationships

    # --- queries ---

    def query(self, query: t.QueryTree) -> Operator:
        self._check_united(query)
        plan = self._single(query.parts[0], Unit(), Scope())
        for part, keeps_duplicates in zip(query.parts[1:], query.keeps_duplicates, strict=True):
            self._source, self._window = (None if self.continuous else PLAIN), None
            right = self._single(part, Unit(), Scope())
            if set(plan.columns) != set(right.columns):
                self.problems.add(
                    "SER-011",
                    "the parts of a UNION have different columns",
                    part.span,
                    f"here: {', '.join(right.columns)}; before: {', '.join(plan.columns)}",
                    "name the columns alike with AS",
                )
                continue
            plan = Union(plan, right, span=query.span)
            if not keeps_duplicates:
                plan = Distinct(plan, span=query.span)
        return plan

    def _check_united(self, query: t.QueryTree) -> None:
        if len(set(query.keeps_duplicates)) > 1:
            self.problems.add(
                "SER-011", "UNION and UNION ALL cannot be mixed", query.span, "", "use one of the two throughout"
            )

    def _single(self, query: t.SingleQuery, plan: Operator, scope: Scope, outer: Scope | None = None) -> Operator:
        table = _Table(plan, scope, self._source, outer, self._window)
        subquery = outer is not None
        for index, clause in enumerate(query.clauses):
            last = index == len(query.clauses) - 1
            if outer is not None:
                self._check_names(clause, outer)
                table = replace(table, outer=outer.only(names_in(*query.clauses[index:])))
            table = self._clause(clause, table, last=last)
        if not subquery and query.clauses and not isinstance(query.clauses[-1], t.ReturnClause | t.EmitClause):
            wanted = "EMIT or RETURN" if self.continuous else "RETURN"
            span = query.clauses[-1].span
            self.problems.add(
                "SER-010",
                f"a query ends with {wanted}",
                Span(max(span.end - 1, span.start), span.end),
                "the query stops here",
            )
        return table.plan

    def _check_names(self, clause: t.Clause, outer: Scope) -> None:
        """Refuse a WITH that gives the name of a variable outside of a subquery to something else."""
        for item in clause.projection.items if isinstance(clause, t.WithClause) else ():
            name = column_name(item)
            if name in outer.bindings and item.expression != t.VariableRef(name):
                place = item.alias.span if item.alias is not None else item.span
                label = "a variable outside of this subquery has this name, and stays visible inside"
                self.problems.add("SER-018", f"`{name}` is bound already", place, label, "use another name")

    def _clause(self, clause: t.Clause, table: _Table, *, last: bool) -> _Table:
        self._source, self._window = table.source, table.window
        subquery = table.outer is not None
        self._in_answer = not subquery and isinstance(clause, t.ReturnClause | t.EmitClause)
        match clause:
            case t.MatchClause():
                return self._match(clause, table)
            case t.UnwindClause(expression, variable):
                lowered, kind = self.expressions.lower(expression, table.scope)
                self._check_new(variable, table.scope)
                element = (kind.element or ANY) if kind.kind == "list" else kind
                unwound = Unwind(table.plan, variable.text, lowered, span=clause.span)
                scope = table.scope.bind(variable.text, Binding(variable.text, element))
                return replace(table, plan=unwound, scope=scope)
            case t.WithClause(projection, where):
                plan, scope = self.projections.lower(
                    table.plan,
                    table.scope,
                    projection,
                    where,
                    clause="WITH",
                    reserved=self.continuous,
                    outer=table.outer,
                )
                return replace(table, plan=plan, scope=scope)
            case t.ReturnClause(projection) | t.EmitClause(projection):
                name = "EMIT" if isinstance(clause, t.EmitClause) else "RETURN"
                if not last:
                    self.problems.add(
                        "SER-010",
                        f"{name} is the last clause of a query",
                        clause.span,
                        "more follows",
                        "use WITH to go on",
                    )
                if name == "EMIT" and (not self.continuous or subquery):
                    self.problems.add(
                        "SER-010", "EMIT stands in a registered query", clause.span, "", "use RETURN here"
                    )
                plan, scope = self.projections.lower(
                    table.plan,
                    table.scope,
                    projection,
                    None,
                    clause=name,
                    reserved=self.continuous and not subquery,
                    outer=table.outer,
                )
                if not subquery:
                    shown = (one.type for one in scope.bindings.values())
                    self.holds_elements = self.holds_elements or any(one.may_hold_elements() for one in shown)
                return replace(table, plan=plan, scope=scope)
            case _:
                verb = type(clause).__name__.removesuffix("Clause").upper()
                self.problems.add(
                    "SER-012",
                    f"{verb} writes, and a query only reads",
                    clause.span,
                    "",
                    "CREATE, MERGE and SET build events after LOAD STREAM FROM ... AS ...",
                )
                return table

    def _check_new(self, name: t.Name, scope: Scope) -> None:
        if scope.get(name.text) is not None:
            self.problems.add("SER-018", f"`{name.text}` is bound already", name.span, "", "use another name")
        if self.continuous:
            self.problems.reserved(name.text, name.span)

    # --- MATCH ---

    def _match(self, clause: t.MatchClause, table: _Table) -> _Table:
        source = self._match_source(clause, table.source, subquery=table.outer is not None)
        self._source = source
        if self.continuous and isinstance(source, Window):
            self._window = source
        binder = PatternBinder(self.problems, table.scope)
        lowering = PatternLowering(self.problems, self.expressions, binder)
        paths = lowering.lower(clause.patterns)
        if self.continuous:
            for name, place in binder.bound_here.items():
                self.problems.reserved(name, place)
        left: list[x.Expression] = []
        if clause.where is not None:
            asked = self.expressions.condition(clause.where, binder.scope)
            conditions = ShortestConditions(self.expressions, clause.patterns, paths, binder.scope)
            paths, left = conditions.split(clause.where, asked)
        pattern, predicates = lowering.pattern(source or PLAIN, paths, clause.span)
        condition = conjunction([*predicates, *left], clause.span)
        plan: Operator
        if clause.optional:
            plan = LeftJoin(table.plan, pattern, condition, span=clause.span)
        elif isinstance(table.plan, Unit):
            plan = pattern if condition is None else Filter(pattern, condition, span=clause.span)
        else:
            plan = Join(table.plan, pattern, condition, span=clause.span)
        return replace(table, plan=plan, scope=binder.scope, source=source, window=self._window)

    def _match_source(self, clause: t.MatchClause, inherited: Source | None, *, subquery: bool) -> Source | None:
        if not self.continuous:
            for part, name in ((clause.within, "WITHIN"), (clause.stream, "ON STREAM"), (clause.graph, "ON GRAPH")):
                if part is not None:
                    self.problems.add(
                        "SER-043", f"{name} stands in a registered query", part.span, "a plain query sees one graph",
                        "wrap the query: REGISTER QUERY name STARTING AT ... { ... }",
                    )  # fmt: skip
            return PLAIN
        if clause.graph is not None:
            for extra in (clause.within, clause.stream):
                if extra is not None:
                    self.problems.add("SER-010", "a static graph has neither window nor stream", extra.span)
            return Static(clause.graph.text)
        if clause.within is None:
            if subquery and clause.stream is None:
                return inherited
            self.problems.add(
                "SER-040", "MATCH needs WITHIN", clause.span, "how much of the stream should it see?",
                "add a window: MATCH ... WITHIN PT1H",
            )  # fmt: skip
            return Window()
        self._check_positive(clause.within.width, "WITHIN", clause.within.span)
        return Window(Stream(None if clause.stream is None else clause.stream.text), clause.within.width)

    def _check_positive(self, duration: Duration, clause: str, span: Span) -> None:
        parts = (duration.months, duration.days, duration.seconds, duration.nanoseconds // 1000)
        if any(part < 0 for part in parts) or not any(part > 0 for part in parts):
            self.problems.add("SER-042", f"{clause} needs a duration of at least a microsecond", span)

    def _window_bound(self, name: str, span: Span) -> x.Expression | None:
        """The meaning of `win_start` and `win_end`: bounds of the window of the MATCH before, in EMIT of the answer."""
        if not self.continuous or name not in RESERVED:
            return None
        if self._window is None and not self._in_answer:
            self.problems.add(
                "SER-040", f"`{name}` has no window", span, "", "a MATCH ... WITHIN must come before it"
            )  # fmt: skip
        side: Literal["start", "end"] = "start" if name == "win_start" else "end"
        return x.WindowBound(None if self._in_answer else self._window, side, span=span)

    # --- patterns and subqueries inside expressions ---

    def _pattern_in_expression(
        self,
        pattern: t.PatternTree,
        where: t.Expr | None,
        scope: Scope,
        *,
        may_bind: bool,
        path_column: str | None = None,
    ) -> tuple[Operator, Scope]:
        if self._source is None:
            self.problems.add(
                "SER-040", "this pattern has no window", pattern.span, "", "a MATCH ... WITHIN must come before it"
            )
        binder = PatternBinder(self.problems, scope, may_bind=may_bind)
        lowering = PatternLowering(self.problems, self.expressions, binder)
        paths = lowering.lower((pattern,), path_column)
        found, predicates = lowering.pattern(self._source or PLAIN, paths, pattern.span)
        if where is not None:
            predicates.append(self.expressions.condition(where, binder.scope))
        plan = Join(Argument(scope.columns), found, conjunction(predicates, pattern.span), span=pattern.span)
        return plan, binder.scope

    def _subquery(self, query: t.QueryTree, scope: Scope) -> Operator:
        """Return the plan of EXISTS { ... }: only the existence of its rows matters, not their columns."""
        around = self._source, self._window, self._in_answer
        bindings = {name: replace(binding, local=False) for name, binding in scope.bindings.items()}
        visible = Scope(bindings, unusable=scope.unusable)
        plans: list[Operator] = []
        for part in query.parts:
            plans.append(self._single(part, Argument(scope.columns), visible, visible))
            self._source, self._window, self._in_answer = around
        if len(plans) == 1:
            return plans[0]
        self._check_united(query)
        shown: list[Operator] = [Project(plan, (), span=query.span) for plan in plans]
        return reduce(lambda left, right: Union(left, right, span=query.span), shown[1:], shown[0])


def lower_query(query: t.QueryTree, problems: Problems) -> Operator:
    """A plain query."""
    return Lowering(problems, continuous=False).query(query)


def lower_registration(register: t.RegisterTree, problems: Problems) -> Registration:
    """A REGISTER QUERY statement."""
    problems.next_statement()
    lowering = Lowering(problems, continuous=True)
    plan = lowering.query(register.query)
    outputs = [option for option in register.options if option.kind not in ("every", "into")]
    rhythms = [option for option in register.options if option.kind == "every"]
    streams = [option for option in register.options if option.kind == "into"]
    for extra in (*outputs[1:], *rhythms[1:], *streams[1:]):
        problems.add("SER-010", "this was said already", extra.span, "the second one", "keep one of the two")
    finals = {type(part.clauses[-1]) for part in register.query.parts if part.clauses}
    once = finals == {t.ReturnClause}
    if len(finals & {t.ReturnClause, t.EmitClause}) > 1:
        problems.add("SER-010", "EMIT and RETURN cannot be united", register.query.span)
    every: Duration | None = None
    if rhythms:
        every = rhythms[0].duration
        if every is not None:
            lowering._check_positive(every, "EVERY", rhythms[0].span)
    elif not once:
        last = register.query.parts[-1].clauses[-1].span
        problems.add(
            "SER-041", "EMIT needs EVERY", last, "how often should it be evaluated?", "add a rhythm: EVERY PT5M"
        )
    if once and outputs and outputs[0].kind != "snapshot":
        problems.add(
            "SER-010",
            "RETURN answers once, so that nothing enters or leaves",
            outputs[0].span,
            "what changes from answer to answer",
            "use EMIT and EVERY, or leave this out",
        )
    if streams and not lowering.holds_elements:
        problems.add(
            "SER-045",
            "a stream of these answers carries nothing",
            streams[0].span,
            "no column can be a node, a relationship or a path",
            "an event holds the elements of the rows: emit some, EMIT a, count(*) AS n INTO ...",
        )
    output: Output = outputs[0].kind if outputs else "snapshot"  # type: ignore[assignment]
    into = streams[0].stream.text if streams and streams[0].stream is not None else None
    return Registration(
        register.name.text,
        plan,
        register.starting_at,
        None if once else every,
        "snapshot" if once else output,
        into=into,
    )
