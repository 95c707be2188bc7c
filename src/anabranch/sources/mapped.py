"""Records that a LOAD STREAM maps by columns: batches of records become blocks of events.

Law: the events and malformed records are those of `lines.decoded`, in the same order.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, BinaryIO, TypeAlias, cast

from anabranch.formats.chunks import EVENTS_PER_CHUNK
from anabranch.formats.ndjson import read_line_as
from anabranch.formats.record_columns import MapRows, RecordColumns, TableRows
from anabranch.formats.records import read_json_list
from anabranch.model.graph_block import GraphBlock
from anabranch.sources.base import MappingDecoder, PackedRecord
from anabranch.sources.lines import SequenceOf, decoded, explained, unpacked

ExactReader: TypeAlias = Callable[[int], Iterator[PackedRecord]]
"""The reader of the record at a place, by itself."""

_FEWEST = 64  # records: fewer are mapped one by one


def pack_csv(file: BinaryIO, decode: MappingDecoder, sequence_of: SequenceOf = str) -> Iterator[PackedRecord]:
    """The events of the rows of a CSV file."""
    with explained(), io.TextIOWrapper(cast(Any, unpacked(file)), encoding="utf-8-sig", newline="") as text:
        for rows in _csv_rows(text):
            yield from pack_columns(rows, decode, sequence_of)


def _csv_rows(text: Iterable[str]) -> Iterator[TableRows]:
    reader = csv.reader(text)
    names = next(reader, None)
    number = 1
    while names is not None:
        rows: list[list[str]] = []
        try:
            rows.extend(islice(reader, EVENTS_PER_CHUNK))
        except (csv.Error, UnicodeDecodeError):
            # The records before the broken one are answered first.
            yield TableRows(names, [row for row in rows if row], number)
            raise
        if not rows:
            return
        table = TableRows(names, [row for row in rows if row], number)
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
        rows = MapRows(numbers[own], values)
        yield from pack_columns(rows, decode, sequence_of, lambda place, first=first: exact(first + place))


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
    # A stream of few records needs no kernels.
    from anabranch.formats.graph_lines import read_runs

    lines = columns.lines(records, lambda: [decode.prefix + sequence_of(number) for number in records.numbers])
    for found in read_runs(lines, 0, decode.keys):
        if isinstance(found, GraphBlock):
            yield found
        else:
            place, _ = found
            yield from one_by_one((place,))
