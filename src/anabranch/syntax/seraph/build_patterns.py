"""Patterns from lark's parse tree: nodes, relationships, paths, and brackets that turn out to be nodes.

Invariant: `(a:L {k: v})` gives the same node whether the grammar read it as a node or as a bracketed expression.
"""

from __future__ import annotations

from typing import Any

from lark import Token, v_args
from lark.tree import Meta

from anabranch.errors import Span
from anabranch.syntax.seraph import literals
from anabranch.syntax.seraph import tree as t
from anabranch.syntax.seraph.build_expressions import Bracket, ExpressionBuilder, span_of, token_span

_SHORTEST = {"shortestpath": "shortest", "allshortestpaths": "all-shortest"}


@v_args(meta=True, inline=True)
class PatternBuilder(ExpressionBuilder):
    """Adds patterns to expressions, which may hold them."""

    def bracket(self, meta: Meta, inner: t.Expr) -> t.Expr:
        return Bracket(inner, span_of(meta))

    def labels(self, meta: Meta, *names: t.Name) -> tuple[t.Name, ...]:
        return names

    def types(self, meta: Meta, *names: t.Name) -> tuple[t.Name, ...]:
        return names

    def length_to(self, meta: Meta, upper: Token | None) -> tuple[int | None]:
        return (None if upper is None else literals.read_integer(str(upper)),)

    def length(self, meta: Meta, lower: Token | None, upper: tuple[int | None] | None) -> tuple[int | None, int | None]:
        low = None if lower is None else literals.read_integer(str(lower))
        return (low, low) if upper is None else (low, upper[0])

    def relationship_detail(self, meta: Meta, name: Any, types: Any, length: Any, properties: Any) -> tuple[Any, ...]:
        return name, types or (), length, properties

    def _relationship(self, direction: Any, meta: Meta, detail: tuple[Any, ...] = (None, (), None, None)) -> Any:
        return t.RelationshipTree(direction, *detail, span=span_of(meta))

    def both_arrows(self, meta: Meta, detail: tuple[Any, ...]) -> Any:
        return self._relationship("both", meta, detail)

    def arrow_in(self, meta: Meta, detail: tuple[Any, ...]) -> Any:
        return self._relationship("in", meta, detail)

    def arrow_out(self, meta: Meta, detail: tuple[Any, ...]) -> Any:
        return self._relationship("out", meta, detail)

    def arrow_none(self, meta: Meta, detail: tuple[Any, ...]) -> Any:
        return self._relationship("both", meta, detail)

    def short_both(self, meta: Meta) -> Any:
        return self._relationship("both", meta)

    def short_in(self, meta: Meta) -> Any:
        return self._relationship("in", meta)

    def short_out(self, meta: Meta) -> Any:
        return self._relationship("out", meta)

    def short_none(self, meta: Meta) -> Any:
        return self._relationship("both", meta)

    def node(self, meta: Meta, name: Any, labels: Any, properties: Any) -> t.NodeTree:
        return t.NodeTree(name, labels or (), properties, span=span_of(meta))

    def path(self, meta: Meta, *parts: Any) -> t.PathTree:
        return t.PathTree(tuple(parts[0::2]), tuple(parts[1::2]), span=span_of(meta))

    def shortest(self, meta: Meta, name: Token, path: t.PathTree) -> t.PatternTree:
        kind = _SHORTEST.get(str(name).lower())
        if kind is None:
            self._problem(
                "SER-001",
                f"`{name}` is no pattern function",
                token_span(name),
                "",
                "patterns know shortestPath(...) and allShortestPaths(...)",
            )
        return t.PatternTree(path, None, kind or "trail", span=span_of(meta))  # type: ignore[arg-type]

    def pattern(self, meta: Meta, name: t.Name | None, body: t.PathTree | t.PatternTree) -> t.PatternTree:
        if isinstance(body, t.PatternTree):
            return t.PatternTree(body.path, name, body.kind, span=span_of(meta))
        return t.PatternTree(body, name, span=span_of(meta))

    def patterns(self, meta: Meta, *patterns: t.PatternTree) -> tuple[t.PatternTree, ...]:
        return patterns

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

    def node_with_map(self, meta: Meta, inner: t.Expr, properties: t.Expr) -> t.NodeTree:
        return self._as_node(inner, properties, span_of(meta))

    def node_labels(self, meta: Meta, labels: tuple[t.Name, ...], properties: t.Expr | None) -> t.NodeTree:
        return t.NodeTree(None, labels, properties, span=span_of(meta))

    def node_empty(self, meta: Meta) -> t.NodeTree:
        return t.NodeTree(span=span_of(meta))

    def chain(self, meta: Meta, *parts: Any) -> t.Expr:
        nodes = tuple(
            self._as_node(part.inner, None, part.span) if isinstance(part, Bracket) else part  # type: ignore[attr-defined]
            for part in parts[0::2]
        )
        span = span_of(meta)
        return t.PatternExpr(t.PathTree(nodes, tuple(parts[1::2]), span=span), span=span)
