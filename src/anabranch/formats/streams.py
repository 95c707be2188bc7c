"""The formats of streams, by name: those that `anabranch convert` reads and writes.

    tsv, csv, parquet-triples      tables and lines of timed triples (.tsv .nt, .csv)
    nquads, trig, jsonld           documents whose named graphs are events (.nq, .trig, .jsonld)
    ndjson-triples                 JSON lines of triples
    ndjson-elements, parquet-elements     nodes and relationships
    ndjson, parquet                whichever of the two the events are (.ndjson .jsonl .json, .parquet)

Invariant: a stream written in a format is read back as the same triples (or elements) at the same times, in order.
Lines and tables have an event for each triple; documents and JSON lines keep events whole.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, BinaryIO, cast

from anabranch.errors import EngineError, MalformedEventError, StreamError, closest
from anabranch.formats.deadletter import MalformedRecord
from anabranch.formats.events import event_from_dict
from anabranch.formats.ndjson import read_ndjson_as, write_ndjson
from anabranch.model.event import Event
from anabranch.model.mapping import Mapping

FORMATS = (
    "tsv",
    "csv",
    "nquads",
    "trig",
    "jsonld",
    "ndjson",
    "ndjson-triples",
    "ndjson-elements",
    "parquet",
    "parquet-triples",
    "parquet-elements",
)
_BY_EXTENSION = {
    ".tsv": "tsv",
    ".nt": "tsv",
    ".csv": "csv",
    ".nq": "nquads",
    ".trig": "trig",
    ".jsonld": "jsonld",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".json": "ndjson",
    ".parquet": "parquet",
}
_OF_ELEMENTS = ("ndjson-elements", "parquet-elements")
_AS_THEY_ARE = ("ndjson", "parquet")
_BOM = b"\xef\xbb\xbf"


def format_of(name: str) -> str | None:
    """Return the format that a file's name tells, perhaps before .gz; None when it does not."""
    bare = name.lower().removesuffix(".gz")
    return next((form for extension, form in _BY_EXTENSION.items() if bare.endswith(extension)), None)


def checked(form: str) -> str:
    """The format, if there is one of that name."""
    if form in FORMATS:
        return form
    near = closest(form, FORMATS)
    guess = f"did you mean {near[0]}?  " if near else ""
    raise EngineError(f"there is no format `{form}`\nhint: {guess}There are {', '.join(FORMATS)}.")


# --- reading ----------------------------------------------------------------------------------------------------------


def read_events(file: BinaryIO, form: str, document: str = "") -> Iterator[Event | MalformedRecord]:
    """The events of a file that is not packed; blank nodes of files that are one document belong to `document`."""
    match form:
        case "ndjson" | "ndjson-triples" | "ndjson-elements":
            decode = _decoder(form)
            return (record for _, record in read_ndjson_as(file, decode))
        case "parquet" | "parquet-triples" | "parquet-elements":
            return _read_parquet(file, document)
        case "tsv":
            from anabranch.formats.rdf.lines import read_lines

            return read_lines(file.read().removeprefix(_BOM), document)
        case "csv":
            return _read_csv(file, document)
        case "nquads" | "trig" | "jsonld":
            from anabranch.formats.rdf.documents import read_document

            return read_document(file.read(), form, document)
    raise EngineError(f"there is no format `{form}`")


def _decoder(form: str) -> Any:
    def decode(data: Any, number: int) -> Event:
        event = event_from_dict(data, str(number))
        if form == "ndjson-triples" and (event.nodes or event.relationships):
            raise MalformedEventError("nodes and relationships, where triples were said to come")
        if form == "ndjson-elements" and event.triples:
            raise MalformedEventError("triples, where nodes and relationships were said to come")
        return event

    return decode


def _read_csv(file: BinaryIO, document: str) -> Iterator[Event | MalformedRecord]:
    from anabranch.formats.rdf.tables import csv_header, read_csv

    text = io.StringIO(file.read().decode("utf-8-sig", "replace"), newline="")
    if csv_header(text) is None:
        raise StreamError(
            "a table of triples has the columns s, p, o and at\n"
            "hint: tables of something else become events by LOAD STREAM, in `anabranch run`"
        )
    text.seek(0)
    return read_csv(text, document)


def _read_parquet(file: BinaryIO, document: str) -> Iterator[Event | MalformedRecord]:
    from anabranch.formats.parquet import event_batches, opened_parquet, read_batch
    from anabranch.formats.rdf.tables import header_of, read_rows, triple_batches

    with opened_parquet(cast(BinaryIO, io.BytesIO(file.read()))) as parquet:
        names = parquet.schema_arrow.names
        header = None if {"nodes", "relationships", "edges"}.intersection(names) else header_of(names)
        rows = 0
        for batch in event_batches(parquet) if header is None else triple_batches(parquet, header):
            yield from read_batch(batch, rows) if header is None else read_rows(batch, header, rows, document)
            rows += len(batch)


# --- writing ----------------------------------------------------------------------------------------------------------


def write_events(events: Iterable[Event], file: BinaryIO, form: str, mapping: Mapping | None = None) -> int:
    """Write events in a format; gives their number. `mapping` says how the two models become each other."""
    using = mapping or Mapping()
    if form in _AS_THEY_ARE:
        first, events = _looked_at(events)
        form += "-triples" if first is not None and first.triples else "-elements"
        if form.startswith("ndjson"):
            return write_ndjson(events, file)
    if form in _OF_ELEMENTS:
        elements = (_with_elements(event, using) for event in events)
        if form == "ndjson-elements":
            return write_ndjson(elements, file)
        from anabranch.formats.parquet import write_parquet

        return write_parquet(elements, file)
    return _write_triples((_with_triples(event, using) for event in events), file, form)


def _write_triples(events: Iterable[Event], file: BinaryIO, form: str) -> int:
    match form:
        case "tsv":
            from anabranch.formats.rdf.lines import write_lines

            return write_lines(events, file)
        case "csv":
            from anabranch.formats.rdf.tables import write_csv

            return write_csv(events, file)
        case "parquet-triples":
            from anabranch.formats.rdf.tables import write_parquet_triples

            return write_parquet_triples(events, file)
        case "ndjson-triples":
            return write_ndjson(events, file)
        case "nquads" | "trig" | "jsonld":
            from anabranch.formats.rdf.documents import write_document

            return write_document(events, file, form)
    raise EngineError(f"there is no format `{form}`")


def _looked_at(events: Iterable[Event]) -> tuple[Event | None, Iterable[Event]]:
    """Return the first event that is not empty, and an iterator over all events."""
    before: list[Event] = []
    rest = iter(events)
    for event in rest:
        before.append(event)
        if event.triples or event.nodes or event.relationships:
            return event, chain(before, rest)
    return None, before


def _with_triples(event: Event, mapping: Mapping) -> Event:
    if event.triples and not event.nodes and not event.relationships:
        return event
    return Event(event.event_time, triples=mapping.triples_of(event))


def _with_elements(event: Event, mapping: Mapping) -> Event:
    if not event.triples:
        return event
    return Event(event.event_time, *mapping.elements_of(event))
