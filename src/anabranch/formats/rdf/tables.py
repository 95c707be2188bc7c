"""Tables of timed triples: CSV and Parquet with the columns s, p, o and at, in any order.

Also read: subject, predicate, object; time or timestamp. A cell is an N-Triples term (`<http://a>`, `"x"@en`, `_:b`) or
bare: an absolute IRI is an IRI, and in the object's column any other text is a plain literal, a number an xsd:integer
or xsd:double. Each row is an event.

Law: `unpack(pack_rows(batch))` are the events that `read_rows` reads from the batch; a malformed row comes out in its
place.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, BinaryIO, NamedTuple, TextIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from anabranch.errors import MalformedEventError
from anabranch.formats.chunks import Terms
from anabranch.formats.deadletter import MalformedRecord
from anabranch.formats.events import instant_from_json
from anabranch.formats.rdf.lines import pack_triples, time_of_text
from anabranch.formats.rdf.records import triple_of
from anabranch.formats.rdf.terms import parse_cell, term_text
from anabranch.model.event import Event
from anabranch.model.instants import format_instant
from anabranch.model.literals import literal_of
from anabranch.model.terms import XSD_DATE, XSD_DATE_TIME, XSD_DECIMAL, Iri, Literal, Term

_ALIASES = {
    "subject": ("s", "subject"),
    "predicate": ("p", "predicate"),
    "object": ("o", "object"),
    "at": ("at", "time", "timestamp"),
}
_ROWS_PER_BATCH = 16_384


class Header(NamedTuple):
    """The names of the four columns as a table has them."""

    subject: str
    predicate: str
    object: str
    at: str


def header_of(names: Sequence[str]) -> Header | None:
    """Which columns hold the triples and their times; None when the table does not have all four."""
    folded = {name.strip().lower(): name for name in reversed(names)}
    found = [next((folded[one] for one in aliases if one in folded), None) for aliases in _ALIASES.values()]
    return None if None in found else Header(*(name for name in found if name is not None))


# --- CSV --------------------------------------------------------------------------------------------------------------


def csv_header(file: TextIO) -> Header | None:
    """The header of a CSV file of triples; None when it is a file of something else."""
    return header_of(next(csv.reader(file), []))


def read_csv(file: TextIO, document: str) -> Iterator[Event | MalformedRecord]:
    """The events of a CSV file whose header `csv_header` knows."""
    rows = csv.DictReader(file)
    header = header_of(rows.fieldnames or [])
    assert header is not None
    for number, row in enumerate(rows, 1):
        try:
            values = [row[name] for name in header]
            if None in values:
                raise MalformedEventError("the row is shorter than the header")
            at = values.pop()
            if not at:
                raise MalformedEventError("at: missing")
            yield _event(time_of_text(at), values, document)
        except MalformedEventError as error:
            yield MalformedRecord(error.reason, number, json.dumps(row, ensure_ascii=False, default=str))


def write_csv(events: Iterable[Event], file: BinaryIO) -> int:
    """Write events, one row a triple; gives the number of events."""
    text = _Utf8(file)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("at", "s", "p", "o"))
    count = 0
    for event in events:
        at = format_instant(event.event_time)
        writer.writerows((at, *map(term_text, triple)) for triple in event.triples)
        count += 1
    return count


class _Utf8:
    """What csv.writer wants of a file, over a binary one that is not ours to close."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, text: str) -> int:
        return self._file.write(text.encode())


# --- Parquet ----------------------------------------------------------------------------------------------------------


def triple_batches(parquet: Any, header: Header, row_groups: Iterable[int] | None = None) -> Iterator[Any]:
    """The four columns, in batches."""
    groups = None if row_groups is None else list(row_groups)
    yield from parquet.iter_batches(_ROWS_PER_BATCH, row_groups=groups, columns=list(header))


def read_rows(batch: Any, header: Header, rows_before: int, document: str) -> Iterator[Event | MalformedRecord]:
    """The events of a batch, one by one."""
    columns = [batch.column(name) for name in header]
    micros = _micros(columns[3])
    values = [column.to_pylist() for column in columns[:3]]
    times = micros.tolist() if micros is not None else columns[3].to_pylist()
    for index, (subject, predicate, object_, at) in enumerate(zip(*values, times, strict=True)):
        try:
            if at is None:
                raise MalformedEventError("at: missing")
            event_time = at if micros is not None else _instant(at)
            yield _event(event_time, (subject, predicate, object_), document)
        except MalformedEventError as error:
            row = {name: column[index].as_py() for name, column in zip(header, columns, strict=True)}
            raw = json.dumps(row, ensure_ascii=False, default=str)
            yield MalformedRecord(error.reason, rows_before + index + 1, raw)


def pack_rows(batch: Any, header: Header, document: str) -> bytes | None:
    """The chunk of a batch; None when a row of it is malformed, so that it must be read row by row."""
    terms = Terms()
    try:
        times = _all_times(batch.column(header.at))
        codes = [
            _codes(batch.column(name), terms, document, place) for place, name in enumerate(header) if place != _AT
        ]
    except MalformedEventError:
        return None
    return pack_triples(times, np.stack(codes, axis=1), terms)


def write_parquet_triples(events: Iterable[Event], file: BinaryIO | str) -> int:
    """Write events, one row a triple; gives the number of events."""
    times: list[int] = []
    texts: tuple[list[str], list[str], list[str]] = ([], [], [])
    count = 0
    for event in events:
        count += 1
        for triple in event.triples:
            times.append(event.event_time)
            for column, term in zip(texts, triple, strict=True):
                column.append(term_text(term))
    columns = {name: pa.array(column, pa.string()) for name, column in zip("spo", texts, strict=True)}
    pq.write_table(pa.table({"at": pa.array(times, pa.timestamp("us", tz="UTC")), **columns}), file)
    return count


_AT = 3


def _event(event_time: int, values: Sequence[Any], document: str) -> Event:
    return Event(event_time, triples=(triple_of(*(_term(value, document, i) for i, value in enumerate(values))),))


def _term(value: Any, document: str, place: int) -> Term:
    """The term of a cell in the column of subjects (0), predicates (1) or objects (2)."""
    match value:
        case str() if value or place == 2:
            return parse_cell(value, document, is_object=place == 2)
        case None | "":
            raise MalformedEventError(f"{_names()[place]}: missing")
        case bool() | int() | float() if place == 2:
            return literal_of(value)
        case Decimal() if place == 2:
            return Literal(format(value, "f"), XSD_DECIMAL)
        case datetime() if place == 2:
            return Literal(value.isoformat(), XSD_DATE_TIME)
        case date() if place == 2:
            return Literal(value.isoformat(), XSD_DATE)
    raise MalformedEventError(f"{_names()[place]}: {value!r} is no term")


def _names() -> list[str]:
    return list(_ALIASES)


def _instant(at: Any) -> int:
    return time_of_text(at) if isinstance(at, str) else instant_from_json(at)


def _micros(column: Any) -> Any:
    """The instants of a timestamp column, finer ones cut to the microsecond; None when it has another type."""
    if not pa.types.is_timestamp(column.type) or column.null_count:
        return None
    return np.asarray(column.cast(pa.timestamp("us", tz=column.type.tz), safe=False).cast(pa.int64()))


def _all_times(column: Any) -> Any:
    micros = _micros(column)
    if micros is not None:
        return micros
    if column.null_count:
        raise MalformedEventError("at: missing")
    codes, distinct = _encoded(column)
    return np.array([_instant(at) for at in distinct], dtype=np.int64)[codes]


def _codes(column: Any, terms: Terms, document: str, place: int) -> Any:
    """The codes of a column of terms; each distinct cell is looked at once."""
    codes, distinct = _encoded(column)
    found = [_term(value, document, place) for value in distinct]
    for term in found:
        if place < 2 and not isinstance(term, Iri) and (place == 1 or isinstance(term, Literal)):
            raise MalformedEventError(f"{term_text(term)} cannot stand there")
    return np.fromiter((terms.code(term) for term in found), dtype=np.uint32, count=len(found))[codes]


def _encoded(column: Any) -> tuple[Any, list[Any]]:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_null(column.type):
        raise MalformedEventError("missing")
    encoded = pc.dictionary_encode(column, null_encoding="encode")
    return np.asarray(encoded.indices), encoded.dictionary.to_pylist()
