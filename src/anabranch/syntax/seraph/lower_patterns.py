"""Seraph's patterns to the algebra's: variables are bound, property maps become predicates.

Invariant: a variable is bound to one kind of thing; every node and relationship of the result has a variable, the
user's or one that begins with a space.
"""

from __future__ import annotations

from dataclasses import replace

from anabranch.algebra import expressions as x
from anabranch.algebra.operators import NodePattern, PathPattern, Pattern, RelationshipPattern, Source
from anabranch.algebra.types import NODE, PATH, RELATIONSHIP, Type, list_of
from anabranch.algebra.walk import walk
from anabranch.errors import Span
from anabranch.syntax.seraph import tree as t
from anabranch.syntax.seraph.lower_expressions import ExpressionLowering
from anabranch.syntax.seraph.scope import Binding, Problems, Scope

_KINDS = {"node": "a node", "relationship": "a relationship", "path": "a path", "list": "a list of relationships"}


class PatternBinder:
    """Binds the variables of the patterns of one clause; relationships of one clause are all different."""

    def __init__(self, problems: Problems, scope: Scope, *, may_bind: bool = True) -> None:
        self.problems = problems
        self.outer = scope
        self.scope = scope
        self.may_bind = may_bind
        self.bound_here: dict[str, Span] = {}

    def _bind(self, name: t.Name, kind: Type) -> None:
        if not self.problems.unusable(name.text, name.span, self.scope) and not self.may_bind:
            self.problems.undefined(name.text, name.span, self.scope)
        self.scope = self.scope.bind_inside(name.text, Binding(name.text, kind))
        self.bound_here[name.text] = name.span

    def _conflict(self, name: t.Name, kind: str, known: Type) -> None:
        self.problems.add(
            "SER-019",
            f"`{name.text}` is {_KINDS.get(known.kind, known)}, not {_KINDS[kind]}",
            name.span,
            f"used as {_KINDS[kind]} here",
            "use another name",
        )

    def node(self, name: t.Name | None) -> str:
        if name is None:
            return self.problems.fresh("node")
        known = self.scope.get(name.text)
        if known is None:
            self._bind(name, NODE)
            return name.text
        if not known.type.may_be(("node",)):
            self._conflict(name, "node", known.type)
        return known.column

    def relationship(self, name: t.Name | None, many: bool) -> str:
        if name is None:
            return self.problems.fresh("relationship")
        kind = list_of(RELATIONSHIP) if many else RELATIONSHIP
        known = self.scope.get(name.text)
        if known is None:
            self._bind(name, kind)
            return name.text
        same_kind = known.type.may_be((kind.kind,)) and (
            not many or known.type.element is None or known.type.element.may_be(("relationship",))
        )
        if not same_kind:
            self._conflict(name, kind.kind, known.type)
        elif name.text in self.bound_here:
            self.problems.add(
                "SER-027",
                f"relationship `{name.text}` stands twice in one pattern",
                name.span,
                "a pattern passes a relationship at most once",
                "give the second one another name",
            )
        return known.column

    def path(self, name: t.Name | None) -> str | None:
        if name is None:
            return None
        known = self.scope.get(name.text)
        if known is not None:
            self.problems.add(
                "SER-018", f"`{name.text}` is bound already", name.span, "a path needs a new name", "use another name"
            )
            return known.column
        self.scope = self.scope.bind_inside(name.text, Binding(name.text, PATH))
        self.bound_here[name.text] = name.span
        return name.text


class PatternLowering:
    """The lowered patterns of one clause: `paths`, the predicates from their property maps, and the resulting scope."""

    def __init__(self, problems: Problems, expressions: ExpressionLowering, binder: PatternBinder) -> None:
        self.problems = problems
        self.expressions = expressions
        self.binder = binder
        self.predicates: list[x.Expression] = []

    def lower(self, patterns: tuple[t.PatternTree, ...], path_column: str | None = None) -> tuple[PathPattern, ...]:
        shapes = [self._bind_pattern(pattern, path_column) for pattern in patterns]
        return tuple(
            self._finish(pattern, shape) for pattern, shape in zip(patterns, shapes, strict=True) if shape is not None
        )

    def pattern(self, source: Source, paths: tuple[PathPattern, ...], span: Span) -> tuple[Pattern, list[x.Expression]]:
        """The pattern with the predicates that speak of it alone, and those that need the rows it is joined with."""
        columns = set(Pattern(source, paths).columns)
        own: list[x.Expression] = []
        others: list[x.Expression] = []
        for predicate in self.predicates:
            names = {part.name for part in walk(predicate) if isinstance(part, x.Variable)}
            bound_inside = {part.variable for part in walk(predicate) if isinstance(part, x.Quantifier)}
            simple = not any(isinstance(part, x.Exists | x.CollectRows) for part in walk(predicate))
            (own if simple and names <= columns | bound_inside else others).append(predicate)
        return Pattern(source, paths, conjunction(own, span), span=span), others

    def _bind_pattern(self, pattern: t.PatternTree, path_column: str | None) -> PathPattern:
        nodes: list[NodePattern] = []
        relationships: list[RelationshipPattern] = []
        for index, node in enumerate(pattern.path.nodes):
            labels = tuple(label.text for label in node.labels)
            nodes.append(NodePattern(self.binder.node(node.variable), labels, node.span))
            if index < len(pattern.path.relationships):
                relationship = pattern.path.relationships[index]
                relationships.append(
                    RelationshipPattern(
                        self.binder.relationship(relationship.variable, relationship.length is not None),
                        tuple(dict.fromkeys(name.text for name in relationship.types)),
                        relationship.direction,
                        _length(relationship.length),
                        span=relationship.span,
                    )
                )
        kind = pattern.kind
        if kind != "trail" and len(relationships) != 1:
            self.problems.add(
                "SER-033",
                "a shortest path has one relationship between two nodes",
                pattern.path.span,
                "",
                "shortestPath((a)-[:TYPE*]-(b))",
            )
            kind = "trail"
        variable = path_column if path_column is not None else self.binder.path(pattern.variable)
        return PathPattern(tuple(nodes), tuple(relationships), variable, kind)

    def _finish(self, pattern: t.PatternTree, shape: PathPattern) -> PathPattern:
        for node, node_shape in zip(pattern.path.nodes, shape.nodes, strict=True):
            self.predicates += self._properties(node.properties, x.Variable(node_shape.variable, span=node.span))
        relationships: list[RelationshipPattern] = []
        for relationship, found in zip(pattern.path.relationships, shape.relationships, strict=True):
            where: x.Expression | None = None
            span = relationship.span
            if relationship.properties is not None:
                if found.length is None and shape.kind == "trail":
                    self.predicates += self._properties(relationship.properties, x.Variable(found.variable, span=span))
                elif shape.kind == "trail":
                    each = self.problems.fresh("each")
                    tests = self._properties(relationship.properties, x.Variable(each, span=span))
                    if tests:
                        test = conjunction(tests, span)
                        assert test is not None
                        self.predicates.append(
                            x.Quantifier("all", each, x.Variable(found.variable, span=span), test, span=span)
                        )
                else:
                    tests = self._properties(relationship.properties, x.Variable(found.variable, span=span))
                    where = conjunction(tests, span)
            relationships.append(replace(found, where=where))
        return PathPattern(shape.nodes, tuple(relationships), shape.variable, shape.kind)

    def _properties(self, properties: t.Expr | None, subject: x.Variable) -> list[x.Expression]:
        match properties:
            case None:
                return []
            case t.MapLiteral(entries):
                return [
                    x.Compare(
                        "=",
                        x.Property(subject, key.text, span=key.span),
                        self.expressions.lower(value, self.binder.scope)[0],
                        span=key.span.join(value.span),
                    )
                    for key, value in entries
                ]
            case _:
                self.problems.add(
                    "SER-029",
                    "a whole parameter cannot be the properties of a pattern",
                    properties.span,
                    "",
                    "name the keys: {key: $parameter}",
                )
                return []


def _length(length: tuple[int | None, int | None] | None) -> tuple[int, int | None] | None:
    if length is None:
        return None
    lower, upper = length
    return (1 if lower is None else lower, upper)


def conjunction(parts: list[x.Expression], span: Span | None = None) -> x.Expression | None:
    if not parts:
        return None
    if len(parts) == 1:
        return parts[0]
    flat = [one for part in parts for one in (part.operands if isinstance(part, x.And) else (part,))]
    return x.And(tuple(flat), span=span)
