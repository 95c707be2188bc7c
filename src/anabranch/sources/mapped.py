"""Records that a LOAD STREAM maps by columns: batches of records become blocks of events.

Law: the events and malformed records are those of `lines.decoded`, in the same order.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from anabranch.formats.chunks import EVENTS_PER_CHUNK
from anabranch.formats.ndjson import PrefixedFile, read_line_as
from anabranch.formats.record_columns import MapRows, RecordColumns, TextColumns, TextRows
from anabranch.formats.records import read_json_list
from anabranch.model.graph_block import GraphBlock, Places, PropertyKeys
from anabranch.sources.base import MappingDecoder, PackedRecord
from anabranch.sources.lines import (
    Cut,
    ExactReader,
    FileSpan,
    SequenceOf,
    decoded,
    explained,
    header_names,
    is_plain_table,
    unpacked,
)

if TYPE_CHECKING:
    from anabranch.engine.column_mapping import MappedRecords

_BOM = b"\xef\xbb\xbf"
_BLOCK = 1 << 20  # bytes of a table that are looked at together
_FEWEST = 64  # records: fewer are mapped one by one
_FEWEST_ORDINARY = 16  # of a block between records that are odd


def pack_csv(file: BinaryIO, decode: MappingDecoder, sequence_of: SequenceOf = str) -> Iterator[PackedRecord]:
    """The events of the rows of a CSV file."""
    with explained():
        for rows in _csv_rows(unpacked(file)):
            yield from pack_columns(rows, decode, sequence_of)


def pack_rows(
    file: BinaryIO, start: Cut, stop: int, decode: MappingDecoder, sequence_of: SequenceOf = str
) -> Iterator[PackedRecord]:
    """The events of the rows of a CSV file between two cuts."""
    with explained():
        names = header_names(file) if start.at else None
        for rows in _csv_rows(FileSpan(file, start.at, stop), names, start.line + 1):
            yield from pack_columns(rows, decode, sequence_of)


def _csv_rows(file: Any, names: list[str] | None = None, number: int = 1) -> Iterator[RecordColumns]:
    """The rows of a CSV file: by Arrow as long as nothing is quoted, then by the reader that knows the whole format.
    Without `names`, they are in the first line."""
    rest = b""
    while True:
        block = file.read(_BLOCK)
        data = rest + block
        end = data.rfind(b"\n") + 1 if block else len(data)
        plain, rest = data[:end], data[end:]
        if len(rest) > _BLOCK or not is_plain_table(plain):
            yield from _quoted_rows(PrefixedFile(data, file), names, number)
            return
        if names is None and plain:
            line, _, plain = plain.removeprefix(_BOM).partition(b"\n")
            names = next(csv.reader([line.decode()]), [])
        if plain:
            columns = _split(plain, len(names)) if names else None
            if columns is None or names is None:
                yield from _quoted_rows(PrefixedFile(plain + rest, file), names, number)
                return
            for first in range(0, len(columns[0]), EVENTS_PER_CHUNK):
                table = TextColumns(names, [column.slice(first, EVENTS_PER_CHUNK) for column in columns], number)
                yield table
                number += len(table)
        if not block:
            return


def _split(data: bytes, width: int) -> list[Any] | None:
    """Return the columns of plain lines; None where lines have other numbers of values, or are no text."""
    if data.startswith(_BOM):
        return None  # Arrow would take it for the mark at the beginning of a file
    names = [str(place) for place in range(width)]
    try:
        table = arrow_csv.read_csv(
            pa.py_buffer(data),
            arrow_csv.ReadOptions(use_threads=False, block_size=max(len(data), 1), column_names=names),
            arrow_csv.ParseOptions(quote_char=False),
            arrow_csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False),
        )
    except pa.ArrowInvalid:
        return None
    columns = [column.combine_chunks() for column in table.columns]
    longest = [pc.max(pc.binary_length(column)).as_py() or 0 for column in columns]
    return None if max(longest) > csv.field_size_limit() else columns


def _quoted_rows(file: PrefixedFile, names: list[str] | None, number: int) -> Iterator[TextRows]:
    """The rows of a file from a row on; without `names`, the row is the header."""
    encoding = "utf-8-sig" if names is None else "utf-8"
    reader = csv.reader(io.TextIOWrapper(io.BufferedReader(file), encoding=encoding, newline=""))
    names = next(reader, None) if names is None else names
    while names is not None:
        rows: list[list[str]] = []
        try:
            rows.extend(islice(reader, EVENTS_PER_CHUNK))
        except (csv.Error, UnicodeDecodeError):
            # The records before the broken one are answered first.
            yield TextRows(names, [row for row in rows if row], number)
            raise
        if not rows:
            return
        table = TextRows(names, [row for row in rows if row], number)
        yield table
        number += len(table)


def pack_list(file: BinaryIO, decode: MappingDecoder, sequence_of: SequenceOf = str) -> Iterator[PackedRecord]:
    """The events of the items of a JSON list."""
    with explained():
        records = read_json_list(unpacked(file).read())
        yield from pack_records(records, decode, sequence_of)


def pack_records(
    records: Iterable[tuple[int, Any]], decode: MappingDecoder, sequence_of: SequenceOf = str
) -> Iterator[PackedRecord]:
    """The events of numbered records."""
    records = iter(records)
    while some := list(islice(records, EVENTS_PER_CHUNK)):
        numbers, values = zip(*some, strict=True)
        yield from pack_columns(MapRows(numbers, values), decode, sequence_of)


def pack_texts(
    numbers: Sequence[int], texts: Sequence[bytes], decode: MappingDecoder, sequence_of: SequenceOf, exact: ExactReader
) -> Iterator[PackedRecord]:
    """The events of numbered records that are JSON texts; `exact` reads the one at a place by itself."""
    if len(texts) < _FEWEST:
        for place in range(len(texts)):
            yield from exact(place)
        return
    for first in range(0, len(texts), EVENTS_PER_CHUNK):
        own = slice(first, first + EVENTS_PER_CHUNK)
        # What is no JSON, and so no map, is left to the exact reader as any other odd record.
        values = [read_line_as(text, 0, _itself) for text in texts[own]]
        yield from pack_columns(MapRows(numbers[own], values), decode, sequence_of, _behind(exact, first))


def _behind(exact: ExactReader, first: int) -> ExactReader:
    return lambda place: exact(first + place)


def _itself(data: Any, _number: int) -> Any:
    return data


def pack_columns(
    records: RecordColumns, decode: MappingDecoder, sequence_of: SequenceOf, exact: ExactReader | None = None
) -> Iterator[PackedRecord]:
    """The events of records that stand in columns: runs of ordinary ones as blocks, the others one by one."""

    def one_by_one(places: Iterable[int]) -> Iterator[PackedRecord]:
        if exact is not None:
            for place in places:
                yield from exact(place)
            return
        numbered = ((records.numbers[place], records.record(place)) for place in places)
        yield from decoded(numbered, decode, sequence_of)

    columns = decode.columns
    if columns is None or len(records) < _FEWEST:
        yield from one_by_one(range(len(records)))
        return
    found = columns.mapped(records, decode.prefix + sequence_of(0).removesuffix("0"))
    odd = np.flatnonzero(found.odd).tolist()
    first = 0
    for stop in (*odd, len(records)):
        ordinary = np.flatnonzero(~found.void[first:stop]) + first
        block = _block(found, ordinary, decode.keys) if len(ordinary) >= _FEWEST_ORDINARY else None
        if block is not None:
            yield block
        else:
            yield from one_by_one(ordinary.tolist())
        yield from one_by_one(range(stop, min(stop + 1, len(records))))
        first = stop + 1


def _block(found: MappedRecords, rows: Places, keys: PropertyKeys) -> GraphBlock | None:
    """The events of mapped records; None where the exact reader must look at them."""
    # A stream of few records needs no kernels.
    from anabranch.formats.graph_batches import GraphBatch

    is_run = rows[-1] - rows[0] + 1 == len(rows)
    batch = found.batch(slice(int(rows[0]), int(rows[-1]) + 1) if is_run else rows)
    source = GraphBatch.of_regular(batch) if found.is_typed else GraphBatch.of(batch, keys)
    return None if source is None else GraphBlock.of(source)
