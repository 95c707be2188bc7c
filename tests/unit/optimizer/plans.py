"""Plans in few words, the data they run over, and their rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from anabranch.algebra import expressions as ex
from anabranch.algebra import operators as op
from anabranch.algebra import triples as tr
from anabranch.model.graph import EMPTY_GRAPH
from anabranch.model.temporal import parse_duration
from anabranch.model.terms import XSD_INTEGER, Iri, Literal, Term, Triple
from anabranch.model.triples import TripleGraph
from anabranch.optimizer import Knowledge
from anabranch.snapshot import Context, evaluate_plan

EX = "http://ex/"
PREFIXES = (("", EX),)

MARKET = op.Window(op.Stream("market"), parse_duration("PT1H"))
OTHER = op.Window(op.Stream("other"), parse_duration("PT2H"))
KNOWN = op.Static("known")
BOTH = op.MergedSource((KNOWN, MARKET))

Data = Mapping[str, Sequence[Triple]]
"""Triples by the name of their stream or graph."""


def term(word: str) -> Term:
    return Literal(word, XSD_INTEGER) if word.lstrip("-").isdigit() else Iri(EX + word)


def place(word: str) -> tr.TermPlace:
    return tr.Var(word[1:]) if word.startswith("?") else term(word)


def bgp(text: str, source: op.TripleSource = MARKET) -> tr.GraphPattern:
    """`?a p ?b; ?b q 3` as a basic graph pattern."""
    parts = [one.split() for one in text.split(";") if one.strip()]
    return tr.GraphPattern(source, tuple(tr.TriplePattern(*(place(word) for word in part)) for part in parts))


def triples(text: str) -> tuple[Triple, ...]:
    parts = [one.split() for one in text.split(";") if one.strip()]
    return tuple(Triple(*(term(word) for word in part)) for part in parts)  # type: ignore[misc]


def var(name: str) -> ex.Variable:
    return ex.Variable(name)


def equal(name: str, word: str) -> ex.Expression:
    return ex.Call("sparql:equal", (var(name), var(word[1:]) if word.startswith("?") else ex.Constant(term(word))))


def bound(name: str) -> ex.Expression:
    return ex.Not(ex.IsNull(var(name)))


def call(function: str, name: str | None = None, distinct: bool = False) -> ex.AggregateCall:
    return ex.AggregateCall(f"sparql:{function}", () if name is None else (var(name),), distinct)


def project(plan: op.Operator, *names: str) -> op.Project:
    return op.Project(plan, tuple((name, var(name)) for name in names))


def knowing(data: Data) -> Knowledge:
    """What is known when the static graph holds these triples."""
    return Knowledge.of({"known": TripleGraph(data.get("known", ()))}, PREFIXES)


def rows(plan: op.Operator, data: Data) -> Counter[tuple[Any, ...]]:
    """The bag of rows; windows hold what they keep."""

    def held(source: op.Source) -> TripleGraph:
        if isinstance(source, op.Static):
            return TripleGraph(data.get(source.name, ()))
        given = data.get(source.stream.name or "", ())
        return TripleGraph([one for one in given if source.keep is None or any(_fits(one, k) for k in source.keep)])

    context = Context(graph=lambda source: EMPTY_GRAPH, triple_graph=held)
    return Counter(evaluate_plan(plan, context)[1])


def _fits(triple: Triple, kept: op.TripleFilter) -> bool:
    return all(wanted is None or wanted == term for wanted, term in zip(kept, triple, strict=True))
