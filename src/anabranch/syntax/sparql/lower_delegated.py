"""Delegation: a statement as one plain SPARQL query for the plug-in, if its text without the stream clauses is one.

A SPARQL engine does not know the additions of a dialect inside of a query (AGGREGATE, WINDOW, timestamp(), LUPOS's
clauses, the liberties of the papers' listings): such a statement cannot be delegated. Nor can one that reads the clock
or chance (NOW, RAND, fresh blank nodes): an engine that knows no instants would give another answer in a rerun.

Invariant: the delegated text is the user's own, with blanks in place of the dataset, and plain SPARQL 1.1; the plug-in
reads no window or graph that the plan does not read.
"""

from __future__ import annotations

import re

from anabranch.algebra.operators import Operator, Source, Static, Window
from anabranch.algebra.sparql_functions import CASTS, SPARQL_FUNCTIONS
from anabranch.algebra.triples import PluginQuery
from anabranch.algebra.walk import parts_of, sources
from anabranch.errors import QueryError
from anabranch.model.terms import Iri
from anabranch.syntax.sparql import tree as t
from anabranch.syntax.sparql.lower_dataset import Dataset, merged
from anabranch.syntax.sparql.parser import parse_query
from anabranch.syntax.sparql.walk import parts, variables


def lower_delegated(statement: t.StatementTree, plan: Operator, dataset: Dataset, text: str) -> PluginQuery | None:
    """The plug-in's part for a statement; None where it is no plain SPARQL."""
    query = statement.query
    if query.span is None or query.annotations or query.intermediate is not None:
        return None
    for part in parts(query):
        match part:
            case t.LuposWindowTree() | t.NamedWindowTree():
                return None
            case t.CallTree(function=function) if not _is_plain(function):
                return None
    read = sources(plan)
    named = _named_graphs(query, dataset, read)
    if named is None:
        return None
    if any(isinstance(part, t.BlankTree) for part in parts(query.form)):
        return None
    start, end = query.span.start, query.span.end
    body = text[start:end]
    for clause in query.dataset:
        if clause.span is None:
            return None
        first, last = clause.span.start - start, clause.span.end - start
        if first >= 0:  # one that stands before SELECT is no part of the body
            body = body[:first] + re.sub(r"[^\n]", " ", body[first:last]) + body[last:]
    prologue = [f"PREFIX {name}: <{iri}>" for name, iri in statement.prefixes]
    if statement.base:
        prologue.insert(0, f"BASE <{statement.base}>")
    whole = "\n".join([*prologue, body])
    try:
        parse_query(whole)
    except QueryError:
        return None
    default = merged(source for source in parts_of(dataset.default) if source in read)
    return PluginQuery(whole, plan.columns, default, named, span=query.span)


def _named_graphs(
    query: t.QueryTree, dataset: Dataset, read: tuple[Source, ...]
) -> tuple[tuple[Iri, Window | Static], ...] | None:
    """The graphs that GRAPH asks; None where they are not graphs of their own, or GRAPH ?g would find others too."""
    names: dict[Iri, None] = {}
    ranges = False
    for part in parts(query):
        match part:
            case t.GraphTree(name=t.TermTree(Iri() as name)):
                names[name] = None
            case t.GraphTree(t.VarTree(variable), group):
                if variable in variables(group):
                    return None  # engines differ in whether expressions inside see the graph's name
                ranges = True
    if ranges:
        if not names.keys() <= set(dataset.named):
            return None
        names = dict.fromkeys(dataset.named)
    found: list[tuple[Iri, Window | Static]] = []
    for name in names:
        source = dataset.graph(name)
        if not isinstance(source, Window | Static) or source not in read:
            return None
        found.append((name, source))
    return tuple(found)


def _is_plain(function: str | Iri) -> bool:
    """Return whether any SPARQL engine knows the function, and its result does not depend on time."""
    if isinstance(function, Iri):
        return function.value in CASTS
    known = SPARQL_FUNCTIONS.get(f"sparql:{function.lower()}")
    return function != "TIMESTAMP" and (known is None or not known.volatile)
