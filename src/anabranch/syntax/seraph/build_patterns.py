"""Patterns from lark's parse tree: nodes, relationships, paths, and brackets that turn out to be nodes.

Invariant: `(a:L {k: v})` gives the same node whether the grammar read it as a node or as a bracketed expression.
"""

from __future__ import annotations

from typing import Any

from lark import Token

from anabranch.errors import Span
from anabranch.syntax.building import GrammarRule, alternating, listed, node
from anabranch.syntax.seraph import literals
from anabranch.syntax.seraph import tree as t
from anabranch.syntax.seraph.build_expressions import Bracket, ExpressionBuilder

_SHORTEST = {"shortestpath": "shortest", "allshortestpaths": "all-shortest"}


def _relationship(direction: Any) -> GrammarRule:
    def build(
        self: ExpressionBuilder, span: Span, detail: tuple[Any, ...] = (None, (), None, None)
    ) -> t.RelationshipTree:
        return t.RelationshipTree(direction, *detail, span=span)

    return build


class PatternBuilder(ExpressionBuilder):
    """Adds patterns to expressions, which may hold them."""

    labels = types = patterns = listed
    arrow_in = short_in = _relationship("in")
    arrow_out = short_out = _relationship("out")
    both_arrows = arrow_none = short_both = short_none = _relationship("both")
    path = alternating(t.PathTree)
    node_labels = node(t.NodeTree, None)
    node_empty = node(t.NodeTree)

    def bracket(self, span: Span, inner: t.Expr) -> t.Expr:
        return Bracket(inner, span)

    def length_to(self, span: Span, upper: Token | None) -> tuple[int | None]:
        return (None if upper is None else literals.read_integer(str(upper)),)

    def length(self, span: Span, lower: Token | None, upper: tuple[int | None] | None) -> tuple[int | None, int | None]:
        low = None if lower is None else literals.read_integer(str(lower))
        return (low, low) if upper is None else (low, upper[0])

    def relationship_detail(self, span: Span, name: Any, types: Any, length: Any, properties: Any) -> tuple[Any, ...]:
        return name, types or (), length, properties

    def node(self, span: Span, name: Any, labels: Any, properties: Any) -> t.NodeTree:
        return t.NodeTree(name, labels or (), properties, span=span)

    def shortest(self, span: Span, name: Token, path: t.PathTree) -> t.PatternTree:
        kind = _SHORTEST.get(str(name).lower())
        if kind is None:
            self._problem(
                "SER-001",
                f"`{name}` is no pattern function",
                self._token_span(name),
                "",
                "patterns know shortestPath(...) and allShortestPaths(...)",
            )
        return t.PatternTree(path, None, kind or "trail", span=span)  # type: ignore[arg-type]

    def pattern(self, span: Span, name: t.Name | None, body: t.PathTree | t.PatternTree) -> t.PatternTree:
        if isinstance(body, t.PatternTree):
            return t.PatternTree(body.path, name, body.kind, span=span)
        return t.PatternTree(body, name, span=span)

    def _as_node(self, inner: t.Expr, properties: t.Expr | None, span: Span) -> t.NodeTree:
        """A bracketed expression before or after a relationship, read as a node."""
        match inner:
            case t.VariableRef(name):
                return t.NodeTree(t.Name(name, span=inner.span), (), properties, span=span)
            case t.LabelTest(t.VariableRef(name) as variable, labels):
                return t.NodeTree(t.Name(name, span=variable.span), labels, properties, span=span)
            case t.MapLiteral() if properties is None:
                return t.NodeTree(None, (), inner, span=span)
            case t.MapProjection(subject, entries) if properties is None:
                pairs = []
                for entry in entries:
                    if entry.kind != "entry" or entry.name is None or entry.value is None:
                        self._problem("SER-001", "a node's properties are `key: value` pairs", entry.span)
                    else:
                        pairs.append((entry.name, entry.value))
                named = t.Name(subject.name, span=subject.span)
                return t.NodeTree(named, (), t.MapLiteral(tuple(pairs), span=inner.span), span=span)
            case _:
                self._problem(
                    "SER-001", "a node of a pattern is expected here", span, "", "(n), (n:Label) or (n {key: value})"
                )
                return t.NodeTree(span=span)

    def node_with_map(self, span: Span, inner: t.Expr, properties: t.Expr) -> t.NodeTree:
        return self._as_node(inner, properties, span)

    def chain(self, span: Span, *parts: Any) -> t.Expr:
        nodes = tuple(
            self._as_node(part.inner, None, part.span) if isinstance(part, Bracket) else part  # type: ignore[attr-defined]
            for part in parts[0::2]
        )
        return t.PatternExpr(t.PathTree(nodes, tuple(parts[1::2]), span=span), span=span)
