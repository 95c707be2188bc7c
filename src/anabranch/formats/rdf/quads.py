"""Quads from RDF parsers, split into events: named graphs, each with the time of its name.

The time of a graph is stated by the default graph about the graph's name: prov:generatedAtTime, else the one property
whose value is a time (xsd:dateTime, xsd:dateTimeStamp, xsd:long). A time inside the graph itself is accepted too.

Invariant: graphs come in the order of the document; other statements of the default graph are no event.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyoxigraph as ox

from anabranch.errors import MalformedEventError, StreamError
from anabranch.formats.events import instant_from_json
from anabranch.formats.rdf.bounds import TextBudget, refuse_growth
from anabranch.formats.rdf.terms import BlankNames, syntax_reason, term_text
from anabranch.model.terms import PROV_TIME, XSD, Iri, Literal, Term, Triple

_TIME_TYPES = frozenset(f"{XSD}{name}" for name in ("dateTime", "dateTimeStamp", "long"))
_GENERATED_AT = Iri(PROV_TIME)

TriplesByGraph = dict[Term | None, dict[Triple, None]]
"""The triples of a document by the name of their graph, each once and in order; the default graph's name is None."""


def parse_quads(data: bytes | str, form: ox.RdfFormat, document: str, base: str | None = None) -> TriplesByGraph:
    """The graphs of a document, the default graph first. Raises SyntaxError as pyoxigraph does, and MalformedEventError
    for a document that would grow beyond its bounds."""
    refuse_growth(data, form)
    names, budget = BlankNames(document), TextBudget(len(data))
    graphs: TriplesByGraph = {None: {}}
    for quad in ox.parse(data, form, base_iri=base):
        graph = None if isinstance(quad.graph_name, ox.DefaultGraph) else names.term(quad.graph_name)
        triple = names.triple(quad)
        budget.take(triple, graph)
        graphs.setdefault(graph, {})[triple] = None
    return graphs


def graph_time(name: Term, about: Iterable[Triple], within: Iterable[Triple] = ()) -> int:
    """Return the time of a named graph, from the default graph's statements `about` it or from the graph itself."""
    own = [triple for triple in about if triple.subject == name]
    for said in (own, [triple for triple in within if triple.subject == name]):
        for triple in said:
            if triple.predicate == _GENERATED_AT:
                return time_of_term(triple.object)
    timed = [one for one in own if isinstance(one.object, Literal) and one.object.datatype in _TIME_TYPES]
    if len(timed) == 1:
        return time_of_term(timed[0].object)
    if timed:
        which = ", ".join(term_text(triple.predicate) for triple in timed)
        raise MalformedEventError(f"graph {term_text(name)}: which of {which} is its time? give prov:generatedAtTime")
    raise MalformedEventError(
        f"graph {term_text(name)} has no time: say {term_text(name)} prov:generatedAtTime ... in the default graph"
    )


def time_of_term(term: Term) -> int:
    """UTC microseconds of a literal: ISO 8601 text, or epoch milliseconds."""
    if not isinstance(term, Literal):
        raise MalformedEventError(f"{term_text(term)} is no time")
    text = term.lexical.strip()
    whole = text.lstrip("+-").isdecimal() and len(text) < 20
    return instant_from_json(int(text) if whole else text, "time")


def document_error(error: SyntaxError, what: str) -> StreamError:
    """Why a whole document cannot be read, with its place."""
    reason, line, column = syntax_reason(error)
    place = "" if line is None else f"line {line}, column {column}: "
    return StreamError(f"{place}not {what}: {reason}")


def named(graphs: TriplesByGraph) -> Iterator[tuple[Term, tuple[Triple, ...]]]:
    """The named graphs, in order."""
    for name, triples in graphs.items():
        if name is not None:
            yield name, tuple(triples)
