"""Decoding of request bodies into records of a stream, by content type.

    application/json, application/x-ndjson (and none)     an event, a list of them, or lines
    text/tab-separated-values, text/csv                   lines of time and triple; a table of triples
    application/n-quads, application/trig, application/ld+json     documents whose named graphs are events
    text/turtle, application/n-triples, application/rdf+xml        triples of one instant

Invariant: a body is accepted or refused as a whole; only single malformed records are set aside, by the run.
"""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Iterable
from typing import Any, BinaryIO, cast

from anabranch.errors import AnabranchError, MalformedEventError
from anabranch.formats.deadletter import MalformedRecord
from anabranch.formats.events import any_graph_from, event_to_dict
from anabranch.formats.parquet import unfolds_beyond
from anabranch.formats.rdf.graphs import read_triples
from anabranch.formats.streams import format_of, read_events
from anabranch.model.event import Event
from anabranch.model.triples import TripleGraph
from anabranch.server.problems import BAD_DATA, BAD_REQUEST, BODY_TOO_LARGE, UNKNOWN_TYPE, ServerError
from anabranch.sources.receivers.bodies import body_records
from anabranch.sources.static import AnyGraph

LINES = ("", "application/json", "application/x-ndjson", "application/ndjson", "application/jsonl", "text/plain")
TABLES = {"text/tab-separated-values": "tsv", "text/csv": "csv"}
DOCUMENTS = {"application/n-quads": "nquads", "application/trig": "trig", "application/ld+json": "jsonld"}
TRIPLES = ("text/turtle", "application/n-triples", "application/rdf+xml", "text/n3")
TYPES = (*(one for one in LINES if one), *TABLES, *DOCUMENTS, *TRIPLES)
_VAGUE = ("", "application/octet-stream", "text/plain", "multipart/form-data")
_BY_FORM = {
    **dict.fromkeys(("ndjson", "ndjson-triples", "ndjson-elements"), "application/x-ndjson"),
    **{form: media for media, form in (TABLES | DOCUMENTS).items()},
    "parquet": "application/vnd.apache.parquet",
}
_FREE, _GROWTH = 16 << 20, 32  # bytes of records that come of a packed body: some, and so many times its own


def media_type(content_type: str | None) -> str:
    return (content_type or "").partition(";")[0].strip().lower()


def type_of_file(name: str, content_type: str | None) -> str:
    """Return the media type of an uploaded file: the declared one, else one by its name."""
    said = media_type(content_type)
    if said not in _VAGUE:
        return said
    if name.lower().removesuffix(".gz").endswith((".ttl", ".turtle")):
        return "text/turtle"
    return _BY_FORM.get(format_of(name) or "", "application/x-ndjson")


def unpacked(body: bytes, most: int) -> bytes:
    """Return the body, decompressed if it is gzip."""
    if not body.startswith(b"\x1f\x8b"):
        return body
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(body)) as file:
            plain = file.read(most + 1)
    except (OSError, EOFError, zlib.error):
        raise ServerError(BAD_DATA, "the body begins like gzip and is none") from None
    if len(plain) > most:
        raise ServerError(BODY_TOO_LARGE, f"unpacked the body has more than {most:,} bytes", "send it in parts")
    return plain


def records(body: bytes, content_type: str | None, at: int | None, name: str) -> list[bytes]:
    """Return the records of a body, one JSON text each. `at` is the instant of triples that have none."""
    said = media_type(content_type)
    if said in LINES:
        return body_records(body, None, name)
    if said in TRIPLES:
        if at is None:
            raise ServerError(BAD_REQUEST, f"{said} says no time", "add at=2022-10-14T14:45:00Z to the address")
        triples = _refusing(lambda: read_triples(body, name, content_type=said, document=f"p{zlib.crc32(body):08x}"))
        return [_record(Event(at, triples=tuple(triples)))]
    form = "parquet" if said == _BY_FORM["parquet"] else (TABLES | DOCUMENTS).get(said)
    if form is None:
        raise ServerError(UNKNOWN_TYPE, f"events cannot be {said[:80]}", f"there are {', '.join(TYPES)}")
    file = cast(BinaryIO, io.BytesIO(body))
    most = _FREE + _GROWTH * len(body)
    if form == "parquet" and _refusing(lambda: unfolds_beyond(cast(BinaryIO, io.BytesIO(body)), most)):
        raise _bomb()
    found = _refusing(lambda: _bounded(read_events(file, form, f"p{zlib.crc32(body):08x}"), most))
    return cast(list[bytes], found)


def _bomb() -> ServerError:
    message = "the events of the body are far larger than the body itself"
    return ServerError(BODY_TOO_LARGE, message, "send it in parts")


def _bounded(found: Iterable[Event | MalformedRecord], most: int) -> list[bytes]:
    """Collect the records of a compressed table or document, with a limit against decompression bombs."""
    records = []
    for one in found:
        records.append(_raw(one) if isinstance(one, MalformedRecord) else _record(one))
        most -= len(records[-1])
        if most < 0:
            raise _bomb()
    return records


def _refusing(read: Any) -> Any:
    try:
        return read()
    except ServerError:
        raise
    except (AnabranchError, ValueError, RecursionError) as error:
        message, _, hint = str(error).partition("\nhint: ")
        raise ServerError(BAD_DATA, message or type(error).__name__, hint) from None


def _record(event: Event) -> bytes:
    return json.dumps(event_to_dict(event)).encode()


def _raw(record: MalformedRecord) -> bytes:
    """Return a malformed record unchanged: the run sets it aside."""
    return json.dumps({"malformed": record.reason, "raw": record.raw}).encode()


def graph(body: bytes, content_type: str | None, name: str) -> AnyGraph:
    """Parse a static graph: RDF, or JSON with nodes and relationships."""
    said = media_type(content_type)
    if said in ("", "application/json"):
        try:
            data = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise ServerError(BAD_DATA, f"not JSON: {error}") from None
        if not isinstance(data, dict | list):
            raise ServerError(BAD_DATA, "a graph is an object with nodes and relationships, or a list of events")
        try:
            return any_graph_from(data)
        except MalformedEventError as error:
            raise ServerError(BAD_DATA, error.reason) from None
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
            raise ServerError(BAD_DATA, f"no graph: {error}") from None
    if said not in (*TRIPLES, *DOCUMENTS):
        known = ", ".join(("application/json", *TRIPLES, *DOCUMENTS))
        raise ServerError(UNKNOWN_TYPE, f"a graph cannot be {said[:80]}", f"there are {known}")
    document = f"g{zlib.crc32(name.encode('utf-8', 'replace')):08x}"
    return TripleGraph(_refusing(lambda: read_triples(body, name, content_type=said, document=document)))
