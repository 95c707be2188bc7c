"""From lark's parse tree to Seraph's syntax tree: clauses, queries and statements.

Invariant: no names are resolved and no types are checked here; where the grammar is wider than the language (brackets
that are nodes, lists that are comprehensions, calls that are quantifiers) the tree is narrowed, and literals are read.
"""

from __future__ import annotations

from typing import Any

from lark import Token

from anabranch.errors import Span
from anabranch.syntax.building import alternating, always, group, listed, marked, node, same
from anabranch.syntax.seraph import literals
from anabranch.syntax.seraph import tree as t
from anabranch.syntax.seraph.build_expressions import bare
from anabranch.syntax.seraph.build_patterns import PatternBuilder


class Builder(PatternBuilder):
    """Builds the whole tree; `problems` collects the errors in literals and shapes."""

    where = skip = limit = star = plain = same
    items = order = listed
    within = node(t.WithinTree)
    on_stream = marked("stream")
    on_graph = marked("graph")
    with_ = node(t.WithClause)
    return_ = node(t.ReturnClause)
    emit = node(t.EmitClause)
    unwind = node(t.UnwindClause)
    create = node(t.CreateClause)
    set = group(t.SetClause)
    set_value = node(t.SetItem, "replace")
    set_merge = node(t.SetItem, "merge")
    set_labels = node(t.SetItem, "labels")
    on_create = marked("create")
    on_match = marked("match")
    single_query = group(t.SingleQuery)
    union_all = always(True)
    union_distinct = always(False)
    query = alternating(t.QueryTree)
    exists = node(t.ExistsSubquery)
    on_entering = node(t.EmitOption, "entering")
    on_exit = node(t.EmitOption, "exiting")
    on_snapshot = node(t.EmitOption, "snapshot")
    every = node(t.EmitOption, "every")
    load_name = marked("into")
    script = group(t.ScriptTree)

    def match(self, span: Span, patterns: tuple[t.PatternTree, ...], *options: Any, optional: bool = False) -> t.Clause:
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
        return t.MatchClause(patterns, optional=optional, span=span, **found)

    def optional_match(self, span: Span, patterns: Any, *options: Any) -> t.Clause:
        return self.match(span, patterns, *options, optional=True)

    def item(self, span: Span, expression: t.Expr, alias: t.Name | None) -> t.ProjectionItem:
        span = expression.span
        return t.ProjectionItem(
            bare(expression), alias, "" if alias else self.text[span.start : span.end].strip(), span=span
        )

    def sort(self, span: Span, expression: t.Expr, order: Token | None) -> t.SortItem:
        descending = order is not None and order.type == "DESCENDING"
        return t.SortItem(bare(expression), descending, span=span)

    def projection(self, span: Span, distinct: Token | None, items: Any, order: Any, skip: Any, limit: Any) -> Any:
        stars = [item for item in items if isinstance(item, Token)]
        plain = tuple(item for item in items if isinstance(item, t.ProjectionItem))
        if len(stars) > 1 or (stars and not isinstance(items[0], Token)):
            self._problem("SER-001", "`*` stands once, as the first item", self._token_span(stars[-1]))
        return t.Projection(plain, bool(stars), distinct is not None, order or (), skip, limit, span=span)

    def merge(self, span: Span, pattern: t.PatternTree, *actions: tuple[str, t.SetClause]) -> t.Clause:
        on_create = tuple(item for kind, clause in actions if kind == "create" for item in clause.items)
        on_match = tuple(item for kind, clause in actions if kind == "match" for item in clause.items)
        return t.MergeClause(pattern, on_create, on_match, span=span)

    # --- queries ---

    def exists_pattern(self, span: Span, patterns: tuple[t.PatternTree, ...], where: t.Expr | None) -> t.QueryTree:
        match = t.MatchClause(patterns, where, span=span)
        return t.QueryTree((t.SingleQuery((match,), span=span),), span=span)

    def into(self, span: Span, name: t.Name) -> t.EmitOption:
        return t.EmitOption("into", stream=name, span=span)

    def register(
        self, span: Span, name: t.Name, time: tuple[int | None] | None, query: t.QueryTree, *options: t.EmitOption
    ) -> t.RegisterTree:
        return t.RegisterTree(name, None if time is None else time[0], query, options, span=span)

    def load_stream(self, span: Span, uri: Token, variable: Token, at: t.Expr | None, *rest: Any) -> t.LoadStreamTree:
        stream: t.Name | None = None
        if rest and isinstance(rest[0], tuple):
            stream, rest = rest[0][1], rest[1:]
        source = self._read(literals.read_string, uri, "")
        return t.LoadStreamTree(source, self.name(span, variable), bare(at), stream, tuple(rest), span=span)
