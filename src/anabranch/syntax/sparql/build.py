"""Queries and statements from lark's parse tree.

Invariant: no variable is resolved here; where the grammar is wider than the language the tree is narrowed, and the
additions of a dialect are stored in the fields that `tree.py` has for them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from lark import Token

from anabranch.errors import Span
from anabranch.model.temporal import Duration
from anabranch.model.terms import Iri
from anabranch.syntax.building import group, listed, node, same
from anabranch.syntax.sparql import literals
from anabranch.syntax.sparql import tree as t
from anabranch.syntax.sparql.build_expressions import EVERYTHING
from anabranch.syntax.sparql.build_groups import GroupBuilder
from anabranch.syntax.sparql.labels import check_labels

_NO_TIME = Duration(seconds=1)


class QueryBuilder(GroupBuilder):
    """The four forms of queries, and their clauses."""

    item_variable = node(t.ItemTree)
    group_expression = node(t.ItemTree, None)
    select_items = described = dataset = early_dataset = group_by = having = order_by = listed

    def item_expression(self, span: Span, expression: t.ExpressionTree, variable: t.VarTree) -> t.ItemTree:
        return t.ItemTree(variable, expression, span=span)

    def select_clause(self, span: Span, modifier: Token | None, items: Any) -> t.SelectTree:
        kind = "" if modifier is None else modifier.type
        return t.SelectTree(None if items == EVERYTHING else items, kind == "DISTINCT", kind == "REDUCED", span=span)

    def template(self, span: Span, triples: t.TriplesTree | None = None) -> t.ConstructTree:
        self._refuse_paths(triples, "a template")
        return t.ConstructTree(() if triples is None else triples.triples, span=span)

    def short_where(self, span: Span, triples: t.TriplesTree | None = None) -> tuple[Span, t.GroupTree]:
        self._refuse_paths(triples, "CONSTRUCT WHERE")
        return span, t.GroupTree(() if triples is None else (triples,), span=span)

    def _refuse_paths(self, triples: t.TriplesTree | None, where: str) -> None:
        for triple in () if triples is None else triples.triples:
            if isinstance(triple.predicate, t.PathTree):
                self._problem(
                    "SPQ-009",
                    f"{where} holds plain triples, no property paths",
                    triple.predicate.span,
                    "",
                    "match the path in WHERE, and name its ends here",
                )

    def from_default(self, span: Span, iri: t.TermTree) -> t.FromTree:
        return t.FromTree(cast(Iri, iri.term), False, span=span)

    def from_named(self, span: Span, iri: t.TermTree) -> t.FromTree:
        return t.FromTree(cast(Iri, iri.term), True, span=span)

    def where_clause(self, span: Span, group: t.GroupTree) -> tuple[Span, t.GroupTree]:
        return span, group

    def limit(self, span: Span, number: Token) -> tuple[str, int]:
        return "limit", self._read(literals.read_whole, number, 0)

    def offset(self, span: Span, number: Token) -> tuple[str, int]:
        return "offset", self._read(literals.read_whole, number, 0)

    def slice(self, span: Span, *parts: tuple[str, int]) -> dict[str, int]:
        return dict(parts)

    def order_condition(self, span: Span, *parts: Any) -> t.OrderTree:
        descending = isinstance(parts[0], Token) and parts[0].type == "DESC"
        return t.OrderTree(parts[-1], descending, span=span)

    def modifiers(self, span: Span, group_by: Any, having: Any, order_by: Any, slice: Any) -> dict[str, Any]:
        return {"group_by": group_by or (), "having": having or (), "order_by": order_by or (), **(slice or {})}

    def tail(self, span: Span, *parts: Any) -> dict[str, Any]:
        *clauses, values = parts
        fields: dict[str, Any] = {"values": values, "annotations": ()}
        for clause in clauses:
            if isinstance(clause, dict):
                fields |= clause
            else:
                fields["annotations"] += clause
        return fields

    # --- forms ---

    def _query(self, span: Span, form: Any, dataset: tuple[Any, ...], where: Any, tail: dict[str, Any]) -> t.QueryTree:
        intermediate = [clause for clause in dataset if isinstance(clause, t.IntermediateTree)]
        for again in intermediate[1:]:
            self._problem("SPQ-008", "STREAM INTERMEDIATERESULT stands twice", again.span, "the second one")
        if dataset:
            at = dataset[0].span.start
        elif where is not None:
            at = where[0].start
        else:
            at = span.end
        return t.QueryTree(
            form,
            None if where is None else where[1],
            tuple(clause for clause in dataset if not isinstance(clause, t.IntermediateTree)),
            intermediate=intermediate[0] if intermediate else None,
            dataset_at=at,
            span=span,
            **tail,
        )

    select_query = construct_query = _query

    def sub_select(self, span: Span, form: t.SelectTree, where: Any, modifiers: Any, values: Any) -> t.QueryTree:
        return self._query(span, form, (), where, modifiers | {"values": values})

    def construct_short(self, span: Span, dataset: Any, where: Any, tail: Any) -> t.QueryTree:
        return self._query(span, t.ConstructTree(None, span=span), dataset, where, tail)

    def describe_query(self, span: Span, resources: Any, dataset: Any, where: Any, tail: Any) -> t.QueryTree:
        form = t.DescribeTree(None if resources == EVERYTHING else resources, span=span)
        return self._query(span, form, dataset, where, tail)

    def ask_query(self, span: Span, dataset: Any, where: Any, tail: Any) -> t.QueryTree:
        return self._query(span, t.AskTree(span=span), dataset, where, tail)


class StreamBuilder(QueryBuilder):
    """Builds the additions of the dialects to a query."""

    time_range = node(t.TimeRangeTree)
    dataset_clause = same
    annotation_group = listed

    def duration(self, span: Span, token: Token) -> Duration:
        return self._read(literals.read_duration, token, _NO_TIME)

    def time_tumbling(self, span: Span, width: Duration) -> t.TimeRangeTree:
        return t.TimeRangeTree(width, width, span=span)

    def count(self, span: Span, number: Token) -> int:
        return self._positive(number)

    def count_range(self, span: Span, count: int, step: Token | None = None) -> t.CountRangeTree:
        return t.CountRangeTree(count, None if step is None else self._positive(step), span=span)

    def count_tumbling(self, span: Span, count: int) -> t.CountRangeTree:
        return t.CountRangeTree(count, count, span=span)

    def from_stream(self, span: Span, stream: t.TermTree, window: Any) -> t.FromStreamTree:
        return t.FromStreamTree(cast(Iri, stream.term), window, False, span=span)

    def from_named_stream(self, span: Span, stream: t.TermTree, window: Any) -> t.FromStreamTree:
        return t.FromStreamTree(cast(Iri, stream.term), window, True, span=span)

    def from_window(self, span: Span, name: t.TermTree, stream: t.TermTree, window: Any) -> t.FromStreamTree:
        return t.FromStreamTree(cast(Iri, stream.term), window, True, cast(Iri, name.term), span=span)

    def intermediate(self, span: Span, kind: Token, size: Token) -> t.IntermediateTree:
        return t.IntermediateTree(cast(Any, str(kind).lower()), self._positive(size), span=span)

    # --- AGGREGATE ---

    def annotation_argument(self, span: Span, argument: t.VarTree | str) -> list[t.VarTree | None]:
        return [argument if isinstance(argument, t.VarTree) else None]

    def annotation(self, span: Span, variable: t.VarTree, function: Token, *rest: Any) -> t.AnnotateTree:
        name = str(function).upper()
        argument = rest[0][0] if len(rest) == 2 else None
        if name not in ("COUNT", "SUM", "AVG", "MIN", "MAX"):
            self._problem(
                "SPQ-009", f"AGGREGATE knows no {name}", self._token_span(function), "", "COUNT, SUM, AVG, MIN, MAX"
            )
        elif argument is None and name != "COUNT":
            self._problem("SPQ-007", f"{name} needs a variable", self._token_span(function), "", f"write {name}(?x)")
        return t.AnnotateTree(variable, name, argument, rest[-1], span=span)

    def annotate(self, span: Span, *parts: Any) -> tuple[t.AnnotateTree, ...]:
        """The tuples of one AGGREGATE; its filters see all of them, so they go with the last."""
        annotations = [part for part in parts if isinstance(part, t.AnnotateTree)]
        filters = tuple(part.condition for part in parts if isinstance(part, t.FilterTree))
        if not annotations:
            self._problem("SPQ-001", "AGGREGATE without an aggregate", span, "", "AGGREGATE { (?n, COUNT, {?x}) }")
            return ()
        annotations[-1] = replace(annotations[-1], filters=filters)
        return tuple(annotations)


class Builder(StreamBuilder):
    """Statements and files."""

    query_name = single = same
    script = group(t.ScriptTree)

    # --- REGISTER ---

    def instant(self, span: Span, token: Token, datatype: Any = None) -> int:
        if token.type == "STRING":
            return self._read(lambda text: literals.read_instant(literals.read_string(text)), token, 0)
        return self._read(literals.read_instant, token, 0)

    def computed_every(self, span: Span, every: Duration) -> tuple[str, Duration, Span]:
        return "computed_every", every, span

    def starting_at(self, span: Span, instant: int) -> tuple[str, int, Span]:
        return "starting_at", instant, span

    def register(self, span: Span, kind: Token, name: Token, *options: tuple[str, Any, Span]) -> dict[str, Any]:
        fields: dict[str, Any] = {"kind": str(kind).lower(), "name": name}
        for option, value, place in options:
            if option in fields:
                said = option.replace("_", " ").upper()
                self._problem("SPQ-008", f"{said} stands twice in one REGISTER", place, "the second one")
            fields[option] = value
        self._shared = self.declared
        self.declared = self.declared.copy()
        return fields

    def _name(self, name: Token, kind: str) -> t.NameTree:
        """Return the name of a statement: a query has its name as written; a name that is read as a stream is resolved
        to its IRI."""
        span = self._token_span(name)
        if name.type == "QUERY_NAME":
            return t.NameTree(str(name), span=span)
        if name.type == "PNAME" and (kind == "query" or (kind == "stream" and self._is_undeclared(name))):
            return t.NameTree(str(name), span=span)
        return t.NameTree(self._iri_of(name), span=span)

    def _is_undeclared(self, name: Token) -> bool:
        return self.declared.namespace(str(name).partition(":")[0]) is None

    # --- statements ---

    def statement(self, span: Span, *parts: Any) -> t.StatementTree:
        registration: dict[str, Any] = {}
        early: tuple[Any, ...] = ()
        for part in parts:
            match part:
                case dict():
                    registration = part
                case tuple():
                    early = part
        query: t.QueryTree = parts[-1]
        if early:
            query = replace(query, dataset=early + query.dataset, dataset_at=early[0].span.start)
        if registration:
            registration["name"] = self._name(registration["name"], registration["kind"])
        built = t.StatementTree(
            query, span=span, **registration, prefixes=tuple(self.declared.prefixes.items()), base=self.declared.base
        )
        if registration:
            self._elsewhere |= self.declared.prefixes.keys()
            self.declared = self._shared
        self.problems += check_labels(query)
        self._anonymous = 0
        return built
