"""Rows of a data frame as a source: somebody else reads them and hands them over in Arrow batches.

A row is an event (columns `at`, `nodes`, `relationships`), a triple with its time, a record that a LOAD STREAM maps, or
a JSON text of an event or a record in the column `value`.

Invariant: a row is read as the same row of a Parquet file, or the same text of a Kafka topic, would be.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from anabranch.errors import InternalError, StreamError
from anabranch.formats.deadletter import MalformedRecord
from anabranch.formats.ndjson import read_line_as
from anabranch.formats.rdf.terms import document_of
from anabranch.model.event import Event
from anabranch.model.graph_block import GraphBlock
from anabranch.sources.base import AsEvent, Decode, Limit, MappingDecoder, Offset, PackedRecord, Piece, Source
from anabranch.sources.lines import decoded
from anabranch.sources.messages import pack_messages

if TYPE_CHECKING:
    from anabranch.planner.link_streams import LinkStream

RowForm: TypeAlias = Literal["events", "triples", "records", "texts"]
TEXT = "value"
"""The column of a row that is one text, as those of Spark's Kafka source are."""
_ELEMENTS = ("nodes", "relationships", "edges")


@dataclass(frozen=True, slots=True)
class FrameRows:
    """The form of a frame's rows, and the columns that are read."""

    form: RowForm
    columns: tuple[str, ...]


def rows_of(stream: str, names: Sequence[str], has_texts: bool, is_mapped: bool) -> FrameRows:
    """Return the form of the rows of a frame with these columns.

    `has_texts` says that `value` is binary, or the only column; `is_mapped` that a LOAD STREAM reads the stream.
    """
    # Whoever has no triples needs no parser of RDF.
    from anabranch.formats.rdf.tables import header_of

    if has_texts and TEXT in names:
        return FrameRows("texts", (TEXT,))
    if is_mapped:
        return FrameRows("records", tuple(names))
    elements = [name for name in _ELEMENTS if name in names]
    if elements and "at" in names:
        return FrameRows("events", ("at", *elements))
    header = None if elements else header_of(names)
    if header is not None:
        return FrameRows("triples", tuple(header))
    raise StreamError(
        f"stream `{stream}`: the rows of the frame are no events; its columns are {', '.join(names) or 'none'}\n"
        "hint: give at, nodes and relationships; or s, p, o and at; or JSON texts in `value`; or map the columns by a "
        f"LOAD STREAM FROM '{stream}' AS row ..."
    )


class FrameSource(Source):
    """A source whose pieces are Arrow batches: a piece has the `batch`, the number of `rows` before it, and a `name`
    for the part of the stream that those rows are counted in.
    """

    has_own_clock: ClassVar[bool] = True

    def __init__(self, stream: str, rows: FrameRows) -> None:
        self.stream = stream
        self.rows = rows

    @property
    def finite(self) -> bool:
        return False

    def begin(self) -> Offset:
        raise InternalError("a frame has no offsets")

    def ahead(self, start: Offset, limit: Limit) -> Offset:
        raise InternalError("a frame has no offsets")

    def pieces(self, start: Offset, end: Offset) -> list[Piece]:
        raise InternalError("a frame has no offsets")

    def read(self, piece: Piece, decode: Decode) -> Iterator[Event | MalformedRecord]:
        raise InternalError("the rows of a frame are read in batches")

    def read_packed(self, piece: Piece, decode: Decode, links: LinkStream | None = None) -> Iterator[PackedRecord]:
        name = piece.where["name"]
        for record in self._found(piece.where["batch"], piece.where["rows"], name, decode, links):
            if isinstance(record, MalformedRecord):
                yield MalformedRecord(f"part {name}: {record.reason}", record.line, record.raw)
            else:
                yield record

    def _found(
        self, batch: Any, rows: int, name: str, decode: Decode, links: LinkStream | None
    ) -> Iterator[PackedRecord]:
        match self.rows.form:
            case "events":
                return _pack_events(batch, rows, decode)
            case "triples":
                return self._pack_triples(batch, rows, links)
            case "records":
                return _pack_records(batch, rows, decode, name)
            case "texts":
                return _pack_texts(batch, rows, decode, name)

    def _pack_triples(self, batch: Any, rows: int, links: LinkStream | None) -> Iterator[PackedRecord]:
        from anabranch.formats.rdf.tables import TableHeader, pack_batch
        from anabranch.sources.linking import shaping

        # One document: a blank node's name means the same in all rows of a frame.
        document = document_of(self.stream, "frame")
        return pack_batch(batch, TableHeader(*self.rows.columns), rows, document, shaping(links))


def _pack_events(batch: Any, rows: int, decode: Decode) -> Iterator[PackedRecord]:
    from anabranch.formats.graph_batches import read_blocks
    from anabranch.formats.parquet import read_batch

    for found in read_blocks(batch, decode.keys if isinstance(decode, AsEvent) else ()):
        if isinstance(found, GraphBlock):
            yield found
        else:
            yield from read_batch(found, rows)
        rows += len(found)


def _pack_records(batch: Any, rows: int, decode: Decode, name: str) -> Iterator[PackedRecord]:
    from anabranch.formats.records import read_batch_rows
    from anabranch.sources.mapped import pack_records

    records = read_batch_rows(batch, rows)
    if isinstance(decode, MappingDecoder) and decode.columns is not None:
        yield from pack_records(records, decode, lambda number: f"{name}-{number}")
    else:
        yield from decoded(records, decode, lambda number: f"{name}-{number}")


def _pack_texts(batch: Any, rows: int, decode: Decode, name: str) -> Iterator[PackedRecord]:
    # A null is a tombstone, as in Kafka.
    values = batch.column(0).to_pylist()
    found = [(number, value) for number, value in enumerate(values, rows + 1) if value is not None]
    numbers = [number for number, _ in found]
    texts = [value.encode() if isinstance(value, str) else value for _, value in found]

    def exact(place: int) -> Iterator[Event | MalformedRecord]:
        read = read_line_as(texts[place], numbers[place], lambda data, number: decode(data, f"{name}-{number}"))
        if read is not None:
            yield read

    yield from pack_messages(numbers, texts, decode, lambda number: f"{name}-{number}", exact)
