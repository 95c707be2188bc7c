"""LOAD STREAM to the algebra: clauses that reshape rows and clauses that write elements (Listing 4 of the paper).

Invariant: an ingestion never reads a graph: MATCH and patterns in expressions are refused, so a record's event
depends on nothing but the record.
"""

from __future__ import annotations

from anabranch.algebra import expressions as x
from anabranch.algebra.ingestion import (
    ROWS,
    Assign,
    Assignment,
    ElementTemplate,
    Ingestion,
    Reshape,
    Step,
    Write,
    last_part,
)
from anabranch.algebra.operators import Argument, Operator, Project, Unwind
from anabranch.algebra.types import ANY, NODE, RELATIONSHIP
from anabranch.errors import Span
from anabranch.syntax.common import walk_tree
from anabranch.syntax.seraph import tree as t
from anabranch.syntax.seraph.lower_expressions import ExpressionLowering
from anabranch.syntax.seraph.lower_projection import ProjectionLowering
from anabranch.syntax.seraph.scope import Binding, Problems, Scope

_ENDINGS = (".gz", ".ndjson", ".jsonl", ".json", ".csv", ".parquet", ".stream")


def stream_name(uri: str) -> str:
    """The name of the stream that a source gives: the last part of its address, without an ending that says what it
    holds."""
    name = last_part(uri)
    for ending in _ENDINGS:
        name = name.removesuffix(ending)
    return name


class IngestionLowering:
    def __init__(self, problems: Problems) -> None:
        self.problems = problems
        self.expressions = ExpressionLowering(problems, self._no_pattern, self._no_subquery, lambda: None)
        self.projections = ProjectionLowering(problems, self.expressions)

    def lower(self, load: t.LoadStreamTree) -> Ingestion:
        variable = load.variable.text
        scope = Scope().bind(variable, Binding(variable, ANY))
        at = None if load.at is None else self.expressions.lower(load.at, scope)[0]
        steps: list[Step] = []
        writes = False
        for clause in load.clauses:
            lowered, scope = self._clause(clause, scope)
            steps += lowered
            writes = writes or any(isinstance(step, Write) for step in lowered)
        for part in walk_tree(load):
            if isinstance(part, t.ParameterRef):
                self.problems.add(
                    "SER-013",
                    "LOAD STREAM knows no parameters",
                    part.span,
                    "",
                    "what differs between runs belongs in the query",
                )
        if not writes:
            self.problems.add(
                "SER-013", "this LOAD STREAM writes nothing", load.span, "", "add MERGE (n:Label {key: event.field})"
            )
        name = stream_name(load.uri) if load.stream is None else load.stream.text
        return Ingestion(load.uri, name, variable, at, tuple(steps))

    def _clause(self, clause: t.Clause, scope: Scope) -> tuple[list[Step], Scope]:
        match clause:
            case t.UnwindClause(expression, variable):
                lowered, kind = self.expressions.lower(expression, scope)
                element = (kind.element or ANY) if kind.kind == "list" else kind
                if scope.get(variable.text) is not None:
                    self.problems.add("SER-018", f"`{variable.text}` is bound already", variable.span)
                plan: Operator = Unwind(_table(scope), variable.text, lowered, span=clause.span)
                return [Reshape(plan)], scope.bind(variable.text, Binding(variable.text, element))
            case t.WithClause(projection, where):
                plan, after = self.projections.lower(
                    _table(scope), scope, projection, where, clause="WITH", reserved=False
                )
                return [Reshape(plan)], after
            case t.CreateClause(patterns):
                steps: list[Step] = []
                for pattern in patterns:
                    step, scope = self._write(pattern, scope, merges=False)
                    steps.append(step)
                return steps, scope
            case t.MergeClause(pattern, on_create, on_match):
                step, after = self._write(pattern, scope, merges=True)
                created, matched = (self._assignments(items, after) for items in (on_create, on_match))
                whole = Write(step.nodes, step.relationships, step.columns, True, created, matched)
                return [whole], after
            case t.SetClause(items):
                return [Assign(self._assignments(items, scope))], scope
            case _:
                verb = type(clause).__name__.removesuffix("Clause").upper()
                self.problems.add(
                    "SER-013",
                    f"{verb} cannot stand in LOAD STREAM",
                    clause.span,
                    "an event is made of its record alone",
                    "use MERGE, CREATE, SET, UNWIND and WITH ... WHERE",
                )
                return [], scope

    def _write(self, pattern: t.PatternTree, scope: Scope, *, merges: bool) -> tuple[Write, Scope]:
        if pattern.kind != "trail" or pattern.variable is not None:
            self.problems.add("SER-013", "what is written is a plain pattern", pattern.span, "", "(a)-[:TYPE]->(b)")
        after = scope
        nodes: list[ElementTemplate] = []
        relationships: list[ElementTemplate] = []
        for node in pattern.path.nodes:
            variable = self.problems.fresh("node") if node.variable is None else node.variable.text
            bound = after.get(variable) is not None
            if bound and (node.labels or node.properties is not None):
                self.problems.add("SER-018", f"`{variable}` is bound already", node.span, "", "use SET to add to it")
            labels = tuple(label.text for label in node.labels)
            nodes.append(ElementTemplate(variable, labels, self._properties(node.properties, scope), bound))
            if not bound:
                after = after.bind(variable, Binding(variable, NODE))
        for relationship in pattern.path.relationships:
            relationships.append(self._relationship(relationship, scope))
            if relationship.variable is not None:
                name = relationship.variable.text
                if after.get(name) is not None:
                    self.problems.add("SER-018", f"`{name}` is bound already", relationship.variable.span)
                after = after.bind(name, Binding(name, RELATIONSHIP))
        return Write(tuple(nodes), tuple(relationships), scope.columns, merges), after

    def _relationship(self, relationship: t.RelationshipTree, scope: Scope) -> ElementTemplate:
        if len(relationship.types) != 1 or relationship.length is not None:
            self.problems.add("SER-013", "a written relationship has exactly one type", relationship.span)
        if relationship.direction == "both":
            self.problems.add("SER-013", "a written relationship has a direction", relationship.span, "", "-[:TYPE]->")
        variable = self.problems.fresh("relationship") if relationship.variable is None else relationship.variable.text
        types = tuple(name.text for name in relationship.types) or ("",)
        properties = self._properties(relationship.properties, scope)
        return ElementTemplate(variable, types, properties, reverse=relationship.direction == "in")

    def _properties(self, properties: t.Expr | None, scope: Scope) -> tuple[tuple[str, x.Expression], ...]:
        match properties:
            case None:
                return ()
            case t.MapLiteral(entries):
                return tuple((key.text, self.expressions.lower(value, scope)[0]) for key, value in entries)
            case _:
                self.problems.add(
                    "SER-029", "properties are written key by key", properties.span, "", "{key: event.field}"
                )
                return ()

    def _assignments(self, items: tuple[t.SetItem, ...], scope: Scope) -> tuple[Assignment, ...]:
        found: list[Assignment] = []
        for item in items:
            value = None if item.value is None else self.expressions.lower(item.value, scope)[0]
            match item.target:
                case t.PropertyLookup(t.VariableRef(name), key) if item.kind == "replace":
                    found.append(Assignment(name, key.text, value, span=item.span))
                case t.VariableRef(name) if item.kind != "labels":
                    found.append(Assignment(name, None, value, merges=item.kind == "merge", span=item.span))
                case t.LabelTest(t.VariableRef(name), labels) if item.kind == "labels":
                    found.append(Assignment(name, labels=tuple(label.text for label in labels), span=item.span))
                case _:
                    self.problems.add("SER-013", "SET takes `a.key = value`, `a += map` or `a:Label`", item.span)
                    continue
            self._check_element(name, item.target.span, scope)
        return tuple(found)

    def _check_element(self, name: str, span: Span, scope: Scope) -> None:
        known = scope.get(name)
        if known is None:
            self.problems.undefined(name, span, scope)
        elif not known.type.may_be(("node", "relationship")):
            self.problems.add("SER-019", f"`{name}` is {known.type}, not a node or a relationship", span)

    def _no_pattern(self, pattern: t.PatternTree, where: object, scope: Scope, **_: object) -> tuple[Operator, Scope]:
        self.problems.add("SER-013", "LOAD STREAM reads no graph", pattern.span, "a pattern has nothing to match here")
        return Argument(scope.columns), scope

    def _no_subquery(self, query: t.QueryTree, scope: Scope) -> Operator:
        self.problems.add("SER-013", "LOAD STREAM reads no graph", query.span, "a subquery has nothing to match here")
        return Argument(scope.columns)


def _table(scope: Scope) -> Operator:
    """The rows so far as a plan: the argument's list of rows, unwound and taken apart by position."""
    columns = scope.columns
    rows = Unwind(Argument((ROWS,)), " row", x.Variable(ROWS))
    return Project(
        rows, tuple((name, x.Subscript(x.Variable(" row"), x.Constant(index))) for index, name in enumerate(columns))
    )


def lower_ingestion(load: t.LoadStreamTree, problems: Problems) -> Ingestion:
    return IngestionLowering(problems).lower(load)
