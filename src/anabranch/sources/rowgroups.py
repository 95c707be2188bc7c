"""Parquet files in parts: row groups are to them what lines are to NDJSON.

Invariant: a row is read as the formats read it, and its number counts from the file's first row, wherever reading
began.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO

from anabranch.formats.deadletter import MalformedRecord
from anabranch.formats.records import read_parquet_rows
from anabranch.model.event import Event
from anabranch.model.graph_block import GraphBlock, PropertyKeys
from anabranch.sources.base import Decode, MappingDecoder, PackedRecord
from anabranch.sources.lines import PIECE, Cut, LineRecords, SequenceOf, decoded

if TYPE_CHECKING:
    from anabranch.formats.chunks import ReducedChunk
    from anabranch.formats.rdf.tables import TableHeader
    from anabranch.planner.link_streams import LinkStream


def cut_row_groups(file: BinaryIO, start: Cut, size: int, records: int | None) -> tuple[list[Cut], int, int]:
    """Cuts between row groups from `start` on, until a limit is passed; the number of all groups, and the bytes taken.

    A cut's `at` counts row groups and its `line` rows. The first row group is taken whatever its size.
    """
    with _parquet(file) as parquet:
        metadata = parquet.metadata
        cuts, group, rows = [start], start.at, start.line
        taken = in_piece = 0
        while group < metadata.num_row_groups:
            enough = taken >= size or (records is not None and rows - start.line >= records)
            if enough and group > start.at:
                break
            about = metadata.row_group(group)
            if in_piece and in_piece + about.total_byte_size > PIECE:
                cuts.append(Cut(group, rows))
                in_piece = 0
            group, rows = group + 1, rows + about.num_rows
            in_piece += about.total_byte_size
            taken += about.total_byte_size
        if group > start.at:
            cuts.append(Cut(group, rows))
        return cuts, metadata.num_row_groups, taken


def check_columns(file: BinaryIO, *, events: bool) -> None:
    """Refuse what is no Parquet file, and one whose rows are to be `events` and have no time."""
    from anabranch.formats.parquet import event_batches

    with _parquet(file) as parquet:
        if events and _triples(parquet) is None:
            next(event_batches(parquet, ()), None)


def read_row_groups(
    file: BinaryIO,
    start: Cut,
    stop: int,
    decode: Decode,
    sequence_of: SequenceOf,
    *,
    events: bool,
    document: str = "",
) -> LineRecords:
    """The records of the row groups from `start` to `stop`. Rows that are `events` need no decoder; rows of triples
    have their blank nodes in the `document`."""
    from anabranch.formats.parquet import event_batches, read_batch

    groups = range(start.at, stop)
    with _parquet(file) as parquet:
        header = _triples(parquet) if events else None
        if header is not None:
            from anabranch.formats.rdf.tables import read_rows, triple_batches

            rows = start.line
            for batch in triple_batches(parquet, header, groups):
                yield from read_rows(batch, header, rows, document)
                rows += len(batch)
        elif events:
            rows = start.line
            for batch in event_batches(parquet, groups):
                yield from read_batch(batch, rows)
                rows += len(batch)
        else:
            yield from decoded(read_parquet_rows(parquet, groups, start.line), decode, sequence_of)


def pack_row_groups(
    file: BinaryIO,
    start: Cut,
    stop: int,
    document: str = "",
    links: LinkStream | None = None,
    keys: PropertyKeys = (),
) -> Iterator[PackedRecord]:
    """The events of row groups: of triples as chunks, of graphs as blocks, where those that are not regular come one by
    one. Of a stream that is asked for `links` alone, rows of triples become chunks of those that are needed. `keys` are
    the properties that will be asked for."""
    from anabranch.formats.graph_batches import read_blocks
    from anabranch.formats.parquet import event_batches, read_batch

    rows = start.line
    with _parquet(file) as parquet:
        header = _triples(parquet)
        if header is not None:
            yield from _pack_triples(parquet, file, header, start, stop, document, links)
            return
        for batch in event_batches(parquet, range(start.at, stop)):
            for found in read_blocks(batch, keys):
                if isinstance(found, GraphBlock):
                    yield found
                else:
                    yield from read_batch(found, rows)
                rows += len(found)


def pack_record_groups(
    file: BinaryIO, start: Cut, stop: int, decode: MappingDecoder, sequence_of: SequenceOf
) -> Iterator[PackedRecord]:
    """The events of row groups whose rows are records that a LOAD STREAM maps."""
    from anabranch.sources.mapped import pack_records

    with _parquet(file) as parquet:
        yield from pack_records(read_parquet_rows(parquet, range(start.at, stop), start.line), decode, sequence_of)


def _pack_triples(
    parquet: Any, file: BinaryIO, header: TableHeader, start: Cut, stop: int, document: str, links: LinkStream | None
) -> Iterator[bytes | ReducedChunk | Event | MalformedRecord]:
    from anabranch.formats.parquet import opened_parquet
    from anabranch.formats.rdf.tables import pack_batch, repeating, triple_batches
    from anabranch.sources.linking import shaping

    how, rows, groups = shaping(links), start.line, range(start.at, stop)
    file.seek(0)
    with opened_parquet(file, repeating(parquet, header, groups), parquet.metadata) as found:
        for batch in triple_batches(found, header, groups):
            yield from pack_batch(batch, header, rows, document, how)
            rows += len(batch)


def _triples(parquet: Any) -> TableHeader | None:
    """The columns of a table of triples; None for a table of events."""
    names = parquet.schema_arrow.names
    if {"nodes", "relationships", "edges"}.intersection(names):
        return None
    from anabranch.formats.rdf.tables import header_of

    return header_of(names)


@contextmanager
def _parquet(file: BinaryIO) -> Iterator[Any]:
    from anabranch.formats.parquet import opened_parquet

    file.seek(0)
    with opened_parquet(file) as parquet:
        yield parquet
