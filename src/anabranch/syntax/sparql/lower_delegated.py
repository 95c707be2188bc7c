"""A statement as one plain SPARQL query for the plug-in, where its text is one once the stream clauses are taken out.

What a dialect adds inside of a query (AGGREGATE, WINDOW, timestamp(), LUPOS's clauses) is nothing that a SPARQL engine
knows: such a statement cannot be delegated.

Invariant: the text that is handed on is the user's own, with blanks where the dataset stood.
"""

from __future__ import annotations

import re

from anabranch.algebra.operators import Operator, Static, Window
from anabranch.algebra.triples import Delegated
from anabranch.model.terms import Iri
from anabranch.syntax.sparql import tree as t
from anabranch.syntax.sparql.lower_dataset import Dataset
from anabranch.syntax.sparql.walk import parts


def lower_delegated(statement: t.StatementTree, plan: Operator, dataset: Dataset, text: str) -> Delegated | None:
    """The plug-in's part for a statement; None where it is no plain SPARQL."""
    query = statement.query
    if query.span is None or query.annotations or query.intermediate is not None:
        return None
    asks_graphs = False
    for part in parts(query):
        match part:
            case t.LuposWindowTree() | t.NamedWindowTree() | t.CallTree(function="TIMESTAMP"):
                return None
            case t.GraphTree():
                asks_graphs = True
    named: list[tuple[Iri, Window | Static]] = []
    for iri in dataset.named if asks_graphs else ():
        source = dataset.graphs[iri]
        if not isinstance(source, Window | Static):
            return None
        named.append((iri, source))
    start, end = query.span.start, query.span.end
    body = text[start:end]
    for clause in query.dataset:
        if clause.span is None:
            return None
        first, last = clause.span.start - start, clause.span.end - start
        body = body[:first] + re.sub(r"[^\n]", " ", body[first:last]) + body[last:]
    prologue = [f"PREFIX {name}: <{iri}>" for name, iri in statement.prefixes]
    if statement.base:
        prologue.insert(0, f"BASE <{statement.base}>")
    whole = "\n".join([*prologue, body])
    return Delegated(whole, plan.columns, dataset.default, tuple(named), span=query.span)
