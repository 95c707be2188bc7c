"""From lark's parse tree to Seraph's syntax tree: clauses, queries and statements.

Invariant: no names are resolved and no types are checked here; where the grammar is wider than the language (brackets
that are nodes, lists that are comprehensions, calls that are quantifiers) the tree is narrowed, and literals are read.
"""

from __future__ import annotations

from typing import Any

from lark import Token, v_args
from lark.tree import Meta

from anabranch.model.temporal import Duration
from anabranch.syntax.seraph import literals
from anabranch.syntax.seraph import tree as t
from anabranch.syntax.seraph.build_expressions import bare, span_of, token_span
from anabranch.syntax.seraph.build_patterns import PatternBuilder


@v_args(meta=True, inline=True)
class Builder(PatternBuilder):
    """Builds the whole tree; `problems` collects the errors in literals and shapes."""

    def where(self, meta: Meta, condition: t.Expr) -> t.Expr:
        return bare(condition)  # type: ignore[no-any-return]

    def within(self, meta: Meta, width: Duration) -> t.WithinTree:
        return t.WithinTree(width, span=span_of(meta))

    def on_stream(self, meta: Meta, name: t.Name) -> tuple[str, t.Name]:
        return "stream", name

    def on_graph(self, meta: Meta, name: t.Name) -> tuple[str, t.Name]:
        return "graph", name

    def _match(self, meta: Meta, patterns: tuple[t.PatternTree, ...], options: Any, optional: bool) -> t.MatchClause:
        found: dict[str, Any] = {}
        for option in options:
            match option:
                case t.WithinTree():
                    kind, value, place = "within", option, option.span
                case ("stream" | "graph" as kind, value):
                    place = value.span
                case _:
                    kind, value, place = "where", option, option.span
            if kind in found:
                self._problem("SER-010", f"{kind.upper()} stands twice in one MATCH", place, "the second one")
            found[kind] = value
        return t.MatchClause(patterns, optional=optional, span=span_of(meta), **found)

    def match(self, meta: Meta, patterns: Any, *options: Any) -> t.Clause:
        return self._match(meta, patterns, options, False)

    def optional_match(self, meta: Meta, patterns: Any, *options: Any) -> t.Clause:
        return self._match(meta, patterns, options, True)

    def item(self, meta: Meta, expression: t.Expr, alias: t.Name | None) -> t.ProjectionItem:
        span = expression.span
        return t.ProjectionItem(
            bare(expression), alias, "" if alias else self.text[span.start : span.end].strip(), span=span_of(meta)
        )

    def star(self, meta: Meta, token: Token) -> Token:
        return token

    def items(self, meta: Meta, *items: Any) -> tuple[Any, ...]:
        return items

    def sort(self, meta: Meta, expression: t.Expr, order: Token | None) -> t.SortItem:
        descending = order is not None and order.type == "DESCENDING"
        return t.SortItem(bare(expression), descending, span=span_of(meta))

    def order(self, meta: Meta, *items: t.SortItem) -> tuple[t.SortItem, ...]:
        return items

    def skip(self, meta: Meta, expression: t.Expr) -> t.Expr:
        return bare(expression)  # type: ignore[no-any-return]

    limit = skip

    def projection(self, meta: Meta, distinct: Token | None, items: Any, order: Any, skip: Any, limit: Any) -> Any:
        stars = [item for item in items if isinstance(item, Token)]
        plain = tuple(item for item in items if isinstance(item, t.ProjectionItem))
        if len(stars) > 1 or (stars and not isinstance(items[0], Token)):
            self._problem("SER-001", "`*` stands once, as the first item", token_span(stars[-1]))
        return t.Projection(plain, bool(stars), distinct is not None, order or (), skip, limit, span=span_of(meta))

    def with_(self, meta: Meta, projection: t.Projection, where: t.Expr | None) -> t.Clause:
        return t.WithClause(projection, where, span=span_of(meta))

    def return_(self, meta: Meta, projection: t.Projection) -> t.Clause:
        return t.ReturnClause(projection, span=span_of(meta))

    def emit(self, meta: Meta, projection: t.Projection) -> t.Clause:
        return t.EmitClause(projection, span=span_of(meta))

    def unwind(self, meta: Meta, expression: t.Expr, name: t.Name) -> t.Clause:
        return t.UnwindClause(bare(expression), name, span=span_of(meta))

    def create(self, meta: Meta, patterns: tuple[t.PatternTree, ...]) -> t.Clause:
        return t.CreateClause(patterns, span=span_of(meta))

    def set_value(self, meta: Meta, target: t.Expr, value: t.Expr) -> t.SetItem:
        return t.SetItem("replace", bare(target), bare(value), span=span_of(meta))

    def set_merge(self, meta: Meta, target: t.Expr, value: t.Expr) -> t.SetItem:
        return t.SetItem("merge", bare(target), bare(value), span=span_of(meta))

    def set_labels(self, meta: Meta, target: t.Expr) -> t.SetItem:
        return t.SetItem("labels", bare(target), span=span_of(meta))

    def set(self, meta: Meta, *items: t.SetItem) -> t.SetClause:
        return t.SetClause(items, span=span_of(meta))

    def on_create(self, meta: Meta, clause: t.SetClause) -> tuple[str, t.SetClause]:
        return "create", clause

    def on_match(self, meta: Meta, clause: t.SetClause) -> tuple[str, t.SetClause]:
        return "match", clause

    def merge(self, meta: Meta, pattern: t.PatternTree, *actions: tuple[str, t.SetClause]) -> t.Clause:
        on_create = tuple(item for kind, clause in actions if kind == "create" for item in clause.items)
        on_match = tuple(item for kind, clause in actions if kind == "match" for item in clause.items)
        return t.MergeClause(pattern, on_create, on_match, span=span_of(meta))

    # --- queries ---

    def single_query(self, meta: Meta, *clauses: t.Clause) -> t.SingleQuery:
        return t.SingleQuery(clauses, span=span_of(meta))

    def union_all(self, meta: Meta) -> bool:
        return True

    def union_distinct(self, meta: Meta) -> bool:
        return False

    def query(self, meta: Meta, *parts: Any) -> t.QueryTree:
        return t.QueryTree(tuple(parts[0::2]), tuple(parts[1::2]), span=span_of(meta))

    def exists_pattern(self, meta: Meta, patterns: tuple[t.PatternTree, ...], where: t.Expr | None) -> t.QueryTree:
        span = span_of(meta)
        match = t.MatchClause(patterns, where, span=span)
        return t.QueryTree((t.SingleQuery((match,), span=span),), span=span)

    def exists(self, meta: Meta, query: t.QueryTree) -> t.Expr:
        return t.ExistsSubquery(query, span=span_of(meta))

    def plain(self, meta: Meta, query: t.QueryTree) -> t.QueryTree:
        return query

    def on_entering(self, meta: Meta) -> t.EmitOption:
        return t.EmitOption("entering", span=span_of(meta))

    def on_exit(self, meta: Meta) -> t.EmitOption:
        return t.EmitOption("exiting", span=span_of(meta))

    def on_snapshot(self, meta: Meta) -> t.EmitOption:
        return t.EmitOption("snapshot", span=span_of(meta))

    def every(self, meta: Meta, duration: Duration) -> t.EmitOption:
        return t.EmitOption("every", duration, span=span_of(meta))

    def into(self, meta: Meta, name: t.Name) -> t.EmitOption:
        return t.EmitOption("into", stream=name, span=span_of(meta))

    def register(
        self, meta: Meta, name: t.Name, time: tuple[int | None] | None, query: t.QueryTree, *options: t.EmitOption
    ) -> t.RegisterTree:
        return t.RegisterTree(name, None if time is None else time[0], query, options, span=span_of(meta))

    def load_name(self, meta: Meta, name: t.Name) -> tuple[str, t.Name]:
        return "into", name

    def load_stream(self, meta: Meta, uri: Token, variable: Token, at: t.Expr | None, *rest: Any) -> t.LoadStreamTree:
        stream: t.Name | None = None
        if rest and isinstance(rest[0], tuple):
            stream, rest = rest[0][1], rest[1:]
        source = self._read(literals.read_string, uri, "")
        return t.LoadStreamTree(source, self._name(variable), bare(at), stream, tuple(rest), span=span_of(meta))

    def script(self, meta: Meta, *statements: t.Statement) -> t.ScriptTree:
        return t.ScriptTree(statements, span=span_of(meta))
