"""Files of RDF: recognised by their name and first bytes, and read as events.

    .nt  .tsv          time, tab, triple: lines that can be cut, and packed without one event in between
    .csv               columns s, p, o, at: read whole, and packed by columns
    .nq .trig .jsonld  documents whose named graphs are events; read whole, as is everything behind .gz

Invariant: the blank nodes of a file belong to the file: its number in the stream is their document's name, in every
run.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, TypeAlias, cast
from urllib.parse import quote

from anabranch.errors import StreamError
from anabranch.formats.deadletter import MalformedRecord
from anabranch.model.event import Event
from anabranch.sources.lines import LineRecords, exactly, explained, unpacked

if TYPE_CHECKING:
    from anabranch.formats.chunks import ReducedChunk

RdfKind: TypeAlias = Literal["timed", "timed-gzip", "triples-csv", "nquads", "trig", "jsonld"]

SUFFIXES = (".tsv", ".nt", ".nq", ".trig", ".jsonld")
_TIMELESS = (".ttl", ".turtle", ".n3", ".rdf", ".owl", ".rdfs", ".ntriples")
_DOCUMENTS: Mapping[str, RdfKind] = {".nq": "nquads", ".trig": "trig", ".jsonld": "jsonld"}
_BOM = b"\xef\xbb\xbf"


def rdf_kind(file: BinaryIO, name: str) -> RdfKind | None:
    """Return the RDF format of a file of events, if it has one; refuse graphs that have no times."""
    bare = name.removesuffix(".gz")
    if bare.endswith((".tsv", ".nt")):
        return "timed-gzip" if unpacked(file) is not file else "timed"
    for suffix, kind in _DOCUMENTS.items():
        if bare.endswith(suffix):
            return kind
    if bare.endswith(".csv"):
        return "triples-csv" if _has_triples(file) else None
    if bare.endswith(_TIMELESS):
        raise StreamError(
            "a graph without times is no stream\n"
            "hint: give it with --graph name=FILE; a stream of triples is lines of time, tab and triple (.nt.tsv)"
        )
    return None


def _has_triples(file: BinaryIO) -> bool:
    from anabranch.formats.rdf.tables import csv_header

    with explained():
        text = io.TextIOWrapper(cast(Any, unpacked(file)), encoding="utf-8-sig", newline="")
        try:
            return csv_header(text) is not None
        except csv.Error:
            return False
        finally:
            if text.buffer is cast(Any, file):
                text.detach()


def document_name(stream: str, where: Mapping[str, Any]) -> str:
    """The name of the document that a file is, from its number in the stream."""
    from anabranch.formats.rdf.terms import document_of

    link = f"{where['link']}/" if "link" in where else ""
    return document_of(stream, f"{link}f{where['number']}")


def read_rdf(file: BinaryIO, kind: RdfKind, where: Mapping[str, Any], document: str) -> LineRecords:
    """The events of a file or, of timed lines, of a part of it."""
    from anabranch.formats.rdf.lines import read_lines

    if kind == "timed":
        yield from read_lines(_part(file, where), document, where["from"][1] + 1)
        return
    with explained():
        if kind == "triples-csv":
            from anabranch.formats.rdf.tables import read_csv

            with io.TextIOWrapper(cast(Any, unpacked(file)), encoding="utf-8-sig", newline="") as text:
                yield from read_csv(text, document)
        elif kind == "timed-gzip":
            yield from read_lines(unpacked(file).read().removeprefix(_BOM), document)
        else:
            from anabranch.formats.rdf.documents import read_document

            yield from read_document(unpacked(file).read(), kind, document, _base(where))


def pack_timed(file: BinaryIO, where: Mapping[str, Any], document: str) -> Iterator[bytes | MalformedRecord]:
    """The events of a part of timed lines, as chunks."""
    from anabranch.formats.rdf.lines import pack_lines

    return pack_lines(_part(file, where), document, where["from"][1] + 1)


def pack_csv_triples(file: BinaryIO, document: str) -> Iterator[bytes | ReducedChunk | Event | MalformedRecord]:
    """The events of a table of triples in CSV, as chunks."""
    from anabranch.formats.rdf.tables import pack_csv

    with explained(), io.TextIOWrapper(cast(Any, unpacked(file)), encoding="utf-8-sig", newline="") as text:
        yield from pack_csv(text, document)


def _part(file: BinaryIO, where: Mapping[str, Any]) -> bytes:
    start, stop = where["from"][0], where["to"][0]
    data = exactly(file, start, stop - start)
    return data.removeprefix(_BOM) if start == 0 else data


def _base(where: Mapping[str, Any]) -> str:
    """Return the base of a document's relative IRIs: its own address."""
    if "://" in where["base"]:
        return quote(str(where["shown"]), safe=":/")
    return f"file://{quote(where['path'])}"
