"""Whole documents of timed graphs: N-Quads, TriG and JSON-LD, where each named graph is an event.

    @prefix prov: <http://www.w3.org/ns/prov#> .
    :g1 prov:generatedAtTime "2022-10-14T14:45:00Z"^^xsd:dateTime .
    :g1 { :bike5 :rentedAt :station1 }

Invariant: an event is a named graph with its time, in the order of the document; a graph without a time comes out as a
MalformedRecord in its place. A document that does not parse is refused whole, but for N-Quads, where a bad line is
set aside and reading goes on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import BinaryIO, Literal, TypeAlias

import pyoxigraph as ox

from anabranch.errors import MalformedEventError, StreamError
from anabranch.formats.deadletter import MalformedRecord
from anabranch.formats.events import event_from_dict
from anabranch.formats.ndjson import refuse_halves
from anabranch.formats.rdf.quads import TriplesByGraph, document_error, graph_time, named, parse_quads
from anabranch.formats.rdf.terms import from_oxigraph, syntax_reason, term_text, to_oxigraph, triples_text
from anabranch.model.event import Event
from anabranch.model.instants import format_instant
from anabranch.model.terms import PROV_TIME, XSD_DATE_TIME, Triple
from anabranch.model.terms import Iri as IriTerm
from anabranch.model.terms import Literal as LiteralTerm

DocumentForm: TypeAlias = Literal["nquads", "trig", "jsonld"]

_FORMATS = {"nquads": ox.RdfFormat.N_QUADS, "trig": ox.RdfFormat.TRIG, "jsonld": ox.RdfFormat.JSON_LD}
_NAMES = {"nquads": "N-Quads", "trig": "TriG", "jsonld": "JSON-LD"}
_TIME_KEYS = ("at", "time", "timestamp")
_BOM = b"\xef\xbb\xbf"


def read_document(
    data: bytes, form: DocumentForm, document: str, base: str | None = None
) -> Iterator[Event | MalformedRecord]:
    """The events of a document; `base` is what its relative IRIs begin with."""
    data = data.removeprefix(_BOM)
    if form == "nquads":
        graphs, refused = _quads(data, document)
        yield from refused
    else:
        if form == "jsonld" and (records := _records(data)) is not None:
            yield from _timed_records(records, document)
            return
        graphs, refused = _parsed(data, form, document, base), []
    if len(graphs) == 1:
        if graphs[None]:
            raise StreamError(
                "no named graph: each event is a named graph, and the default graph says when it was\n"
                "hint: a graph without time is given with --graph; lines of time, tab and triple end with .nt.tsv"
            )
        return
    about = tuple(graphs[None])
    for number, (name, triples) in enumerate(named(graphs), 1):
        try:
            yield Event(graph_time(name, about, triples), triples=triples)
        except MalformedEventError as error:
            yield MalformedRecord(error.reason, number, "".join(triples_text(triples)))


def _parsed(data: bytes, form: DocumentForm, document: str, base: str | None) -> TriplesByGraph:
    try:
        return parse_quads(data, _FORMATS[form], document, base)
    except SyntaxError as error:
        raise document_error(error, _NAMES[form]) from None
    except MalformedEventError as error:
        raise StreamError(error.reason) from None


def _quads(data: bytes, document: str) -> tuple[TriplesByGraph, list[MalformedRecord]]:
    """N-Quads keep the labels of their blank nodes, which need no other names: no label is made up in them."""
    graphs: TriplesByGraph = {None: {}}
    refused: list[MalformedRecord] = []
    try:
        for quad in ox.parse(data, ox.RdfFormat.N_QUADS):
            _put(quad, graphs, document)
    except (SyntaxError, MalformedEventError):
        graphs = {None: {}}
        for number, line in enumerate(data.split(b"\n"), 1):
            try:
                for quad in ox.parse(line, ox.RdfFormat.N_QUADS):
                    _put(quad, graphs, document)
            except SyntaxError as error:
                reason, _, column = syntax_reason(error)
                place = "" if column is None else f"column {column}: "
                refused.append(MalformedRecord(f"{place}{reason}", number, line.decode(errors="replace").rstrip("\r")))
            except MalformedEventError as error:
                refused.append(MalformedRecord(error.reason, number, line.decode(errors="replace").rstrip("\r")))
    return graphs, refused


def _put(quad: ox.Quad, graphs: TriplesByGraph, document: str) -> None:
    subject, predicate, object_, graph = quad
    triple = Triple(*(from_oxigraph(term, document) for term in (subject, predicate, object_)))
    name = None if isinstance(graph, ox.DefaultGraph) else from_oxigraph(graph, document)
    graphs.setdefault(name, {})[triple] = None


def _records(data: bytes) -> list[object] | None:
    """The objects of a JSON-LD file that is a list of records with times of their own, outside of JSON-LD."""
    try:
        whole = json.loads(data)
    except (ValueError, RecursionError):
        return None  # pyoxigraph says why, and where
    if not isinstance(whole, list):
        return None
    timed = [isinstance(item, dict) and any(key in item for key in _TIME_KEYS) for item in whole]
    return whole if timed and all(timed) else None


def _timed_records(records: Iterable[object], document: str) -> Iterator[Event | MalformedRecord]:
    for number, record in enumerate(records, 1):
        try:
            refuse_halves(record)
            yield event_from_dict(record, f"{document}-{number}")
        except MalformedEventError as error:
            shown = json.dumps(record, ensure_ascii=False).encode("utf-8", "replace").decode()
            yield MalformedRecord(error.reason, number, shown)


# --- out --------------------------------------------------------------------------------------------------------------


def write_document(events: Iterable[Event], file: BinaryIO, form: DocumentForm, name: str = "event") -> int:
    """Write events as named graphs `urn:anabranch:NAME:NUMBER` with their times; gives their number."""
    count = 0
    if form == "nquads":
        for count, event in enumerate(events, 1):
            file.write(graph_quads(f"urn:anabranch:{name}:{count}", event.event_time, event.triples))
        return count
    quads: list[ox.Quad] = []
    for count, event in enumerate(events, 1):
        quads += _oxigraph_quads(f"urn:anabranch:{name}:{count}", event)
    prefixes = {"prov": "http://www.w3.org/ns/prov#", "xsd": "http://www.w3.org/2001/XMLSchema#"}
    ox.serialize(quads, file, _FORMATS[form], prefixes=prefixes)
    return count


def graph_quads(name: str, at: int, triples: Iterable[Triple]) -> bytes:
    """A named graph in N-Quads, after the line of the default graph that says its time."""
    graph = term_text(IriTerm(name))
    lines = [f"{graph} {term_text(IriTerm(PROV_TIME))} {term_text(_time_term(at))} ."]
    for triple in triples:
        lines.append(f"{term_text(triple.subject)} {term_text(triple.predicate)} {term_text(triple.object)} {graph} .")
    return "".join(f"{line}\n" for line in lines).encode()


def _oxigraph_quads(name: str, event: Event) -> Iterator[ox.Quad]:
    graph = ox.NamedNode(name)
    yield ox.Quad(graph, ox.NamedNode(PROV_TIME), to_oxigraph(_time_term(event.event_time)))
    for triple in event.triples:
        subject, predicate, object_ = map(to_oxigraph, triple)
        yield ox.Quad(subject, predicate, object_, graph)


def _time_term(at: int) -> LiteralTerm:
    return LiteralTerm(format_instant(at), XSD_DATE_TIME)
