"""Tables of timed triples: CSV and Parquet with the columns s, p, o and at, in any order.

Also read: subject, predicate, object; time or timestamp. A cell is an N-Triples term (`<http://a>`, `"x"@en`, `_:b`) or
bare: an absolute IRI is an IRI, and in the object's column any other text is a plain literal, a number an xsd:integer
or xsd:double. Each row is an event.

Law: `unpack(pack_rows(batch))` are the events that `read_rows` reads from the batch; a malformed row comes out in its
place. The same holds of `pack_csv` and `read_csv`. Packed by columns, a row costs Python nothing; a distinct term does.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from itertools import islice, zip_longest
from typing import Any, BinaryIO, NamedTuple, TextIO

import numpy as np
import pyarrow as pa

from anabranch.errors import InternalError, MalformedEventError, StreamError
from anabranch.formats.arrow_arrays import numbers
from anabranch.formats.chunks import ReducedChunk, pack_columns
from anabranch.formats.deadletter import MalformedRecord
from anabranch.formats.events import FARTHEST_MILLIS, instant_from_json
from anabranch.formats.rdf.lines import time_of_text
from anabranch.formats.rdf.records import triple_of
from anabranch.formats.rdf.terms import parse_cell, term_text
from anabranch.formats.term_columns import TermColumns, TermKind
from anabranch.model.block import Codes, Times, TripleBlock
from anabranch.model.event import Event
from anabranch.model.instants import format_instant
from anabranch.model.literals import literal_of
from anabranch.model.terms import XSD_DATE, XSD_DATE_TIME, XSD_DECIMAL, Literal, Term

_ALIASES = {
    "subject": ("s", "subject"),
    "predicate": ("p", "predicate"),
    "object": ("o", "object"),
    "at": ("at", "time", "timestamp"),
}
_ROWS_PER_BATCH = 262_144
_MOST_BYTES = 4 << 20  # of a chunk
_MOST_DICTIONARY = 1 << 20  # bytes, as most writers have it
_FEWEST_BY_COLUMNS = 16  # rows that cost less by columns than one by one
_FEW_ROWS = 256  # that may be read one by one when one of them is malformed


class TableHeader(NamedTuple):
    """The names of the four columns as a table has them."""

    subject: str
    predicate: str
    object: str
    at: str


_FIELDS = TableHeader(*TableHeader._fields)


class TripleColumns(NamedTuple):
    """Rows by columns: their times, and their terms as places in columns of terms."""

    times: Times
    subjects: Codes
    predicates: Codes
    objects: Codes
    terms: TermColumns

    def block(self) -> TripleBlock:
        return TripleBlock(self.times, self.terms.terms(), self.subjects, self.predicates, self.objects)


@dataclass(frozen=True, slots=True)
class Shaping:
    """Faster ways to pack rows, given by a caller that knows more than formats do.

    `code` returns columns of texts, some of them with dictionaries of their own, as places in terms, None where it
    cannot; `reduce` returns the rows that are needed, None where all are.
    """

    code: Callable[[Sequence[Any]], tuple[TermColumns, list[Codes]] | None]
    reduce: Callable[[TripleColumns], TripleColumns | None] | None = None


def header_of(names: Sequence[str]) -> TableHeader | None:
    """Return the columns that hold the triples and their times; None when the table does not have all four."""
    folded = {name.strip().lower(): name for name in reversed(names)}
    found = [next((folded[one] for one in aliases if one in folded), None) for aliases in _ALIASES.values()]
    return None if None in found else TableHeader(*(name for name in found if name is not None))


# --- CSV --------------------------------------------------------------------------------------------------------------


def csv_header(file: TextIO) -> TableHeader | None:
    """The header of a CSV file of triples; None when it is a file of something else."""
    return header_of(next(csv.reader(file), []))


def read_csv(file: TextIO, document: str) -> Iterator[Event | MalformedRecord]:
    """The events of a CSV file whose header `csv_header` knows."""
    table = _Csv(file, document)
    return table.read(table.rows, 0)


def pack_csv(file: TextIO, document: str) -> Iterator[bytes | ReducedChunk | Event | MalformedRecord]:
    """The same, as chunks; only rows near malformed ones come one by one."""
    table = _Csv(file, document)
    number = 0
    while rows := list(islice(table.rows, _ROWS_PER_BATCH)):
        yield from _in_parts(
            len(rows),
            lambda first, stop, rows=rows: table.pack(rows[first:stop]),  # type: ignore[misc]
            lambda first, stop, rows=rows, before=number: table.read(rows[first:stop], before + first),  # type: ignore[misc]
        )
        number += len(rows)


class _Csv:
    """The rows of a CSV file; empty ones are passed over, and numbers count the others."""

    def __init__(self, file: TextIO, document: str) -> None:
        rows = csv.reader(file)
        self._names = next(rows, [])
        self.rows: Iterator[list[str]] = filter(None, rows)
        self._document = document
        header = header_of(self._names)
        assert header is not None
        self._header = header
        self._places = [len(self._names) - 1 - self._names[::-1].index(name) for name in header]

    def pack(self, rows: Sequence[Sequence[str]]) -> bytes | ReducedChunk | None:
        """The chunk of rows; None when one of them is malformed."""
        try:
            columns = [pa.array([row[place] for row in rows], pa.large_string()) for place in self._places]
        except IndexError:
            return None
        return pack_rows(pa.RecordBatch.from_arrays(columns, list(TableHeader._fields)), _FIELDS, self._document)

    def read(self, rows: Iterable[Sequence[str]], rows_before: int) -> Iterator[Event | MalformedRecord]:
        for number, row in enumerate(rows, rows_before + 1):
            try:
                if len(row) <= max(self._places):
                    raise MalformedEventError("the row is shorter than the header")
                *values, at = (row[place] for place in self._places)
                if not at:
                    raise MalformedEventError("at: missing")
                yield _event(time_of_text(at), values, self._document)
            except MalformedEventError as error:
                yield MalformedRecord(error.reason, number, self._raw(row))

    def _raw(self, row: Sequence[str]) -> str:
        """Return the row as it is set aside: by the names of its columns, with surplus values behind them."""
        named: dict[str | None, Any] = dict(zip_longest(self._names, row[: len(self._names)]))
        if len(row) > len(self._names):
            named[None] = list(row[len(self._names) :])
        return json.dumps(named, ensure_ascii=False, default=str)


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
    """The interface that csv.writer needs of a file, over a binary file that the caller closes."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, text: str) -> int:
        return self._file.write(text.encode())


# --- Parquet ----------------------------------------------------------------------------------------------------------


def repeating(parquet: Any, header: TableHeader, row_groups: Sequence[int]) -> list[str]:
    """Return the columns of texts that a file holds as codes: only their dictionaries need to be parsed."""
    metadata = parquet.metadata
    there = [metadata.row_group(group) for group in row_groups if group < metadata.num_row_groups]
    texts = [name for name in header[:_AT] if is_text(parquet.schema_arrow.field(name).type)]
    return [name for name in texts if there and all(_is_codes(_chunk_of(group, name)) for group in there)]


def _chunk_of(row_group: Any, name: str) -> Any:
    columns = map(row_group.column, range(row_group.num_columns))
    return next(column for column in columns if column.path_in_schema == name)


def _is_codes(column: Any) -> bool:
    """Return whether a column is probably held as codes: a writer gives up a dictionary that grows too long."""
    size: int = column.total_uncompressed_size
    return bool(column.has_dictionary_page) and size <= _MOST_DICTIONARY + 3 * column.num_values


def triple_batches(parquet: Any, header: TableHeader, row_groups: Iterable[int] | None = None) -> Iterator[Any]:
    """The four columns, in batches."""
    groups = None if row_groups is None else list(row_groups)
    yield from parquet.iter_batches(_ROWS_PER_BATCH, row_groups=groups, columns=list(header))


def read_rows(batch: Any, header: TableHeader, rows_before: int, document: str) -> Iterator[Event | MalformedRecord]:
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


def pack_rows(
    batch: Any, header: TableHeader, document: str, shaping: Shaping | None = None
) -> bytes | ReducedChunk | None:
    """The chunk of a batch; None when a row of it is malformed, so that it must be read row by row."""
    try:
        columns = _columns(batch, header, document, shaping)
    except MalformedEventError:
        return None
    fewer = None if shaping is None or shaping.reduce is None else shaping.reduce(columns)
    return pack_columns(*columns) if fewer is None else ReducedChunk(pack_columns(*fewer), len(columns.times))


def pack_batch(
    batch: Any, header: TableHeader, rows_before: int, document: str, shaping: Shaping | None = None
) -> Iterator[bytes | ReducedChunk | Event | MalformedRecord]:
    """The events of a batch as chunks; only rows near malformed ones come one by one."""
    return _in_parts(
        len(batch),
        lambda first, stop: pack_rows(batch.slice(first, stop - first), header, document, shaping),
        lambda first, stop: read_rows(batch.slice(first, stop - first), header, rows_before + first, document),
    )


def _in_parts(
    count: int,
    pack: Callable[[int, int], bytes | ReducedChunk | None],
    read: Callable[[int, int], Iterator[Event | MalformedRecord]],
) -> Iterator[bytes | ReducedChunk | Event | MalformedRecord]:
    """Chunks of so many rows, halved until they are short enough and, of malformed rows, until few are read singly."""
    spans = [(0, count)]
    while spans:
        first, stop = spans.pop()
        packed = pack(first, stop)
        size = stop - first
        length = len(packed.data if isinstance(packed, ReducedChunk) else packed or b"")
        if packed is not None and (length <= _MOST_BYTES or size == 1):
            yield packed
        elif size > (_FEW_ROWS if packed is None else 1):
            middle = first + size // 2
            spans += ((middle, stop), (first, middle))
        else:
            yield from read(first, stop)


def as_table(given: Any) -> Any:
    """The table that pyarrow, polars or pandas has; anything else is refused with a StreamError."""
    if isinstance(given, pa.Table | pa.RecordBatch):
        return given
    try:
        return pa.table(given)
    except (TypeError, ValueError) as error:
        hint = "give a pyarrow Table or RecordBatch, or a data frame of polars or pandas"
        raise StreamError(f"{type(given).__name__} is no table: {error}\nhint: {hint}") from None


def events_of_table(table: Any, header: TableHeader, document: str) -> list[TripleColumns] | list[Event]:
    """The events of a table in memory: by columns, in parts of a handy size, or one by one where they are few. A
    malformed row raises its MalformedEventError."""
    names = table.schema.names
    missing = [name for name in header if names.count(name) != 1]
    if missing:
        raise StreamError(f"the table has no column `{missing[0]}`; it has {', '.join(names) or 'none'}")
    if len(table) < _FEWEST_BY_COLUMNS:
        return _listed(table, header, 0, document)
    parts: list[TripleColumns] = []
    for start in range(0, len(table), _ROWS_PER_BATCH):
        part = table.slice(start, _ROWS_PER_BATCH)
        try:
            parts.append(_columns(part, header, document))
        except MalformedEventError as error:
            _listed(part, header, start, document)
            raise InternalError(f"a table was refused and none of its rows: {error.reason}") from None
    return parts


def _listed(table: Any, header: TableHeader, rows_before: int, document: str) -> list[Event]:
    """The events of rows, one by one; the first malformed row raises its MalformedEventError."""
    events: list[Event] = []
    for record in read_rows(table, header, rows_before, document):
        if isinstance(record, MalformedRecord):
            raise MalformedEventError(f"row {record.line}: {record.reason}")
        events.append(record)
    return events


def write_parquet_triples(events: Iterable[Event], file: BinaryIO | str) -> int:
    """Write events, one row a triple; gives the number of events."""
    import pyarrow.parquet as pq

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
    return numbers(column.cast(pa.timestamp("us", tz=column.type.tz), safe=False).cast(pa.int64()))


def _columns(batch: Any, header: TableHeader, document: str, shaping: Shaping | None = None) -> TripleColumns:
    """Return the rows by columns. Each distinct cell is parsed once. Raises MalformedEventError for a malformed row."""
    times = _all_times(batch.column(header.at))
    given = [batch.column(name) for name in header[:_AT]]
    columns = [column if shaping is not None and _has_codes(column) else _decoded(column) for column in given]
    texts = [column for column in columns if is_text(_kind_of(column))]
    if len(texts) < 2 or not (is_text(_kind_of(columns[0])) and is_text(_kind_of(columns[1]))):
        raise MalformedEventError("subjects and predicates are texts")
    coded = None if shaping is None else shaping.code(texts)
    terms, codes = coded or _coded([_decoded(column) for column in texts], document)
    if len(texts) == 2:
        if pa.types.is_nested(columns[2].type):
            raise MalformedEventError("objects are terms, and no lists or structs")
        distinct, values = _encoded(columns[2])
        more, places = TermColumns.of([_term(value, document, 2) for value in values])
        codes.append((places + np.int32(len(terms)))[distinct])
        terms = TermColumns.joined([terms, more])
    kinds = terms.kinds()
    subjects, predicates = kinds[codes[0]], kinds[codes[1]]
    if (predicates != TermKind.IRI).any() or ((subjects != TermKind.IRI) & (subjects != TermKind.BLANK)).any():
        raise MalformedEventError("a term cannot stand where it stands")
    return TripleColumns(times, codes[0], codes[1], codes[2], terms)


def _coded(columns: Sequence[Any], document: str) -> tuple[TermColumns, list[Any]]:
    """Columns of texts by one dictionary."""
    import pyarrow.compute as pc

    from anabranch.formats.rdf.term_arrays import terms_of_cells

    kind = columns[0].type if len({column.type for column in columns}) == 1 else pa.large_string()
    same = [column.cast(kind) for column in columns]
    chunks = [chunk for column in same for chunk in (column.chunks if _is_chunked(column) else [column])]
    encoded = pc.dictionary_encode(pa.chunked_array(chunks, kind)) if chunks else None
    if encoded is None or not len(encoded):
        return TermColumns.of([])[0], [np.zeros(0, np.int32) for _ in columns]
    terms, places = terms_of_cells(encoded.chunk(0).dictionary, document)
    codes = places[np.concatenate([numbers(chunk.indices) for chunk in encoded.chunks])]
    return terms, np.split(codes, np.cumsum([len(column) for column in columns])[:-1])


def _has_codes(column: Any) -> bool:
    """Whether a column has a dictionary of texts, and none is missing."""
    if not pa.types.is_dictionary(column.type) or not is_text(column.type.value_type) or column.null_count:
        return False
    return not any(chunk.dictionary.null_count for chunk in (column.chunks if _is_chunked(column) else [column]))


def _decoded(column: Any) -> Any:
    """The column without a dictionary of its own; refuses one with missing values."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if column.null_count or pa.types.is_null(column.type):
        raise MalformedEventError("missing")
    return column.cast(pa.large_string()) if pa.types.is_string_view(column.type) else column


def _encoded(column: Any) -> tuple[Any, list[Any]]:
    """The codes of values, and the distinct values."""
    import pyarrow.compute as pc

    encoded = pc.dictionary_encode(column)
    if not _is_chunked(encoded):
        return numbers(encoded.indices), encoded.dictionary.to_pylist()
    if not encoded.num_chunks:
        return np.zeros(0, np.int32), []
    indices = np.concatenate([numbers(chunk.indices) for chunk in encoded.chunks])
    return indices, encoded.chunk(0).dictionary.to_pylist()


def _is_chunked(column: Any) -> bool:
    return isinstance(column, pa.ChunkedArray)


def _kind_of(column: Any) -> Any:
    """The type of a column's values."""
    return column.type.value_type if pa.types.is_dictionary(column.type) else column.type


def is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


# --- times ------------------------------------------------------------------------------------------------------------

_ISO = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z$"
_MILLIS = r"^-?\d{1,15}$"


def _all_times(column: Any) -> Any:
    """The instants of a column, in microseconds."""
    micros = _micros(column)
    if micros is not None:
        return micros
    column = _decoded(column)
    if pa.types.is_integer(column.type):
        return _of_millis(column)
    codes, distinct = _encoded(column)
    if is_text(column.type) and distinct:
        found = _of_texts(pa.array(distinct, pa.large_string()))
        if found is not None:
            return found[codes]
    return np.array([_instant(at) for at in distinct], dtype=np.int64)[codes]


def _of_millis(column: Any) -> Any:
    try:
        millis = numbers(column.cast(pa.int64()))
    except pa.ArrowInvalid:
        raise MalformedEventError("at: out of range") from None
    if len(millis) and max(abs(int(millis.min())), abs(int(millis.max()))) > FARTHEST_MILLIS:
        raise MalformedEventError("at: out of range")
    return millis * 1000


def _of_texts(distinct: Any) -> Any:
    """The instants of texts that are all written in the common way; None when they are not."""
    import pyarrow.compute as pc

    try:
        if pc.all(pc.match_substring_regex(distinct, _ISO)).as_py():
            return numbers(distinct.cast(pa.timestamp("us", "UTC")).cast(pa.int64()))
        if pc.all(pc.match_substring_regex(distinct, _MILLIS)).as_py():
            return _of_millis(distinct.cast(pa.int64()))
    except pa.ArrowInvalid:  # such as 30 February: the reader of single texts reports what is wrong
        return None
    return None
