"""JSON objects that hold RDF: the records of NDJSON files, Kafka topics, web services and sockets.

    {"at": "2022-10-14T14:45:00Z", "triples": [["<http://ex/a>", "<http://ex/p>", "\\"x\\"@en"]]}
    {"at": 1665758700000, "turtle": "@prefix : <http://ex/> . :a :p 1 ."}
    {"at": "2022-10-14T14:45:00Z", "graph": {"@id": "http://ex/a", "http://ex/p": 1}}
    {"@context": {...}, "@id": "http://ex/a", "at": "2022-10-14T14:45:00Z", ...}

In the last form the time is the key `at`, `time` or `timestamp` where the @context does not give it a meaning of its
own, else prov:generatedAtTime of the graph or node that the object is.

Invariant: what is read is a valid event or a MalformedEventError whose reason names the place. Blank nodes belong to
their record: to the place of the record in its stream, or to its content where it has no place.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyoxigraph as ox

from anabranch.errors import MalformedEventError
from anabranch.formats.events import instant_from_json
from anabranch.formats.rdf.quads import TriplesByGraph, graph_time, named, parse_quads, time_of_term
from anabranch.formats.rdf.terms import document_of, parse_cell, syntax_reason, term_text
from anabranch.model.event import Event
from anabranch.model.literals import literal_of
from anabranch.model.terms import PROV_TIME, Iri, Literal, Term, Triple

TIME_KEYS = ("at", "time", "timestamp")
_RELATIVE = "relative:/"
_KEYWORDS = frozenset(("@context", "@graph", "@id", "@type"))
_BODIES = {"graph": "JSON-LD", "turtle": "Turtle", "triples": "triples"}


def holds_rdf(data: Mapping[str, Any]) -> bool:
    """Return whether an object is meant as RDF and not as nodes and relationships."""
    if "nodes" in data or "relationships" in data or "edges" in data:
        return False
    if "triples" in data or not _KEYWORDS.isdisjoint(data):
        return True
    return isinstance(data.get("turtle"), str) or isinstance(data.get("graph"), Mapping | list)


def rdf_event(data: Mapping[str, Any], place: str, stream: str) -> Event:
    """The event of an object that holds RDF; `place` is that of the record in its stream."""

    def document() -> str:
        return document_of(stream, place) if place else _document_of_content(data)

    if not _KEYWORDS.isdisjoint(data):
        return _json_ld(data, document())
    bodies = [key for key in _BODIES if key in data]
    if len(bodies) > 1:
        raise MalformedEventError(f"{bodies[1]}: given besides `{bodies[0]}`; use one of the two")
    key = next((one for one in TIME_KEYS if one in data), None)
    if key is None:
        raise MalformedEventError("at: missing")
    event_time = instant_from_json(data[key], key)
    match bodies[0]:
        case "triples":
            return Event(event_time, triples=_triples(data["triples"], document))
        case "turtle":
            return Event(
                event_time, triples=_united(_parsed(data["turtle"], ox.RdfFormat.TURTLE, document(), "turtle"))
            )
    graphs = _parsed(_dumped(data["graph"]), ox.RdfFormat.JSON_LD, document(), "graph")
    _refuse_silence(graphs, "graph")
    return Event(event_time, triples=_united(graphs))


def _triples(items: Any, document: Callable[[], str]) -> tuple[Triple, ...]:
    """The triples of a list; only blank nodes need the name of their document."""
    if not isinstance(items, list | tuple):
        raise MalformedEventError('triples: expected a list of ["subject", "predicate", "object"]')
    found: dict[Triple, None] = {}
    for index, item in enumerate(items):
        if not isinstance(item, list | tuple) or len(item) != 3:
            raise MalformedEventError(f'triples[{index}]: a triple is a list ["subject", "predicate", "object"]')
        try:
            subject, predicate, object_ = item
            triple = triple_of(
                _cell(subject, document), _cell(predicate, document), _cell(object_, document, is_object=True)
            )
            found[triple] = None
        except MalformedEventError as error:
            raise MalformedEventError(f"triples[{index}]: {error.reason}") from None
    return tuple(found)


def _cell(item: Any, document: Callable[[], str], is_object: bool = False) -> Term:
    if isinstance(item, str):
        return parse_cell(item, document() if item.startswith("_:") else "", is_object=is_object)
    if is_object and isinstance(item, bool | int | float):
        return literal_of(item)
    raise MalformedEventError(f"{json.dumps(item, default=str)} is no term; write N-Triples as a text")


def triple_of(subject: Term, predicate: Term, object_: Term) -> Triple:
    """Return the triple, if each term may stand in its place."""
    if isinstance(subject, Literal):
        raise MalformedEventError(f"the subject {term_text(subject)} is a literal; it is an IRI or a blank node")
    if not isinstance(predicate, Iri):
        raise MalformedEventError(f"the predicate {term_text(predicate)} is no IRI")
    return Triple(subject, predicate, object_)


# --- JSON-LD ----------------------------------------------------------------------------------------------------------


def _json_ld(data: Mapping[str, Any], document: str) -> Event:
    meant = _terms_of(data.get("@context"))
    outside = next((key for key in TIME_KEYS if key in data and key not in meant), None)
    body = {key: value for key, value in data.items() if key != outside}
    event_time = None if outside is None else instant_from_json(data[outside], outside)
    graphs = _parsed(_dumped(body), ox.RdfFormat.JSON_LD, document, "")
    _refuse_silence(graphs, "")
    return Event(_time(data, graphs) if event_time is None else event_time, triples=_united(graphs))


def _terms_of(context: Any) -> frozenset[str]:
    """Return the names to which a context gives a meaning."""
    match context:
        case Mapping():
            return frozenset(key for key, value in context.items() if value is not None)
        case list():
            return frozenset[str]().union(*map(_terms_of, context))
    return frozenset()


def _time(data: Mapping[str, Any], graphs: TriplesByGraph) -> int:
    """Return the time that the object states inside of its JSON-LD."""
    about = tuple(graphs[None])
    names = [name for name in graphs if name is not None]
    if len(names) == 1:
        try:
            return graph_time(names[0], about, graphs[names[0]])
        except MalformedEventError:
            if not any(key in data for key in TIME_KEYS):
                raise
    said = [triple for triple in about if triple.predicate == Iri(PROV_TIME)]
    top = data.get("@id")
    own = [triple for triple in said if top is None or triple.subject == Iri(str(top))] or said
    if len({triple.object for triple in own}) == 1:
        return time_of_term(own[0].object)
    if own:
        raise MalformedEventError("several nodes have a prov:generatedAtTime; say `at` beside the JSON-LD")
    for key in TIME_KEYS:
        if key in data:
            value = data[key]
            return instant_from_json(value.get("@value") if isinstance(value, Mapping) else value, key)
    raise MalformedEventError("no time: give `at`, `time` or `timestamp` beside the JSON-LD, or prov:generatedAtTime")


def _parsed(text: str, form: ox.RdfFormat, document: str, place: str) -> TriplesByGraph:
    what = "JSON-LD" if form == ox.RdfFormat.JSON_LD else "Turtle"
    before = f"{place}: " if place else ""
    try:
        graphs = parse_quads(text, form, document, _RELATIVE)
    except SyntaxError as error:
        reason, line, column = syntax_reason(error)
        where = f" (line {line}, column {column})" if line is not None and what == "Turtle" else ""
        raise MalformedEventError(f"{before}not {what}: {reason}{where}") from None
    except ValueError as error:
        raise MalformedEventError(f"{before}not {what}: {error}") from None
    for triples in graphs.values():
        for triple in triples:
            for term in triple:
                if isinstance(term, Iri) and term.value.startswith(_RELATIVE):
                    shown = term.value.removeprefix(_RELATIVE)
                    raise MalformedEventError(f"{before}the IRI `{shown}` is relative, and there is no base")
    return graphs


def _united(graphs: TriplesByGraph) -> tuple[Triple, ...]:
    """Return the triples of the named graphs; without any, those of the default graph, which otherwise describes the
    graphs.
    """
    if len(graphs) == 1:
        return tuple(graphs[None])
    return tuple(dict.fromkeys(triple for _, triples in named(graphs) for triple in triples))


def _refuse_silence(graphs: TriplesByGraph, place: str) -> None:
    if len(graphs) == 1 and not graphs[None]:
        before = f"{place}: " if place else ""
        raise MalformedEventError(
            f"{before}the JSON-LD says nothing: names that its @context gives no IRI are no properties"
        )


def _dumped(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, default=str)


def _document_of_content(data: Mapping[str, Any]) -> str:
    text = _dumped(data).encode("utf-8", "surrogatepass")
    return f"r{zlib.crc32(text):08x}{zlib.adler32(text):08x}"


def triples_to_json(triples: Sequence[Triple]) -> list[list[str]]:
    """The triples as `triples` holds them."""
    return [[term_text(term) for term in triple] for triple in triples]
