"""Tables of edges, read in chunks: two ids and a time per record, from CSV, NDJSON or Parquet.

A CSV record is a line; values may be quoted, but hold no line breaks. Lines before the first record that are empty or
begin with # or % are left out. Commas, tabs, semicolons, bars or single spaces stand between values: what the first
line has.

Invariant: every record comes out once, as an edge or as a malformed record with its line. Memory: a block of the file,
however long it is. Work: by arrays; line by line only in blocks that Arrow refuses.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.errors import StreamError
from anabranch.formats.arrow_arrays import numbers, taken, texts, truths
from anabranch.formats.deadletter import MalformedRecord
from anabranch.formats.edges.columns import (
    EdgeColumns,
    EdgeLayout,
    delimiter_of,
    is_pair_header,
    layout_of,
    named_columns,
)
from anabranch.formats.edges.times import Micros, TimeReader, TimeUnit

EdgeFormat = Literal["csv", "ndjson", "parquet"]

_BLOCK = 4 << 20
_ROWS = 1 << 16
_BOM = b"\xef\xbb\xbf"
_ENDINGS: dict[str, EdgeFormat] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".json": "ndjson",
}
_JSON_KINDS = {str: pa.string(), int: pa.int64(), float: pa.float64()}


@dataclass(frozen=True, slots=True)
class EdgeChunk:
    """Some edges: ids as they are, microseconds where there is a time, and the numbers of their lines."""

    sources: pa.Array
    targets: pa.Array
    times: Micros | None
    lines: npt.NDArray[np.int64]
    malformed: Sequence[MalformedRecord]


def edge_format(name: str) -> EdgeFormat:
    bare = name.lower().removesuffix(".gz")
    return next((form for ending, form in _ENDINGS.items() if bare.endswith(ending)), "csv")


class EdgeReader:
    """`asked` names the columns of source, target and time, or numbers them from 1."""

    def __init__(self, asked: Sequence[str] = (), unit: TimeUnit | None = None, needs_time: bool = True) -> None:
        self._asked = asked
        self._times = TimeReader(unit)
        self._needs_time = needs_time

    def read(self, file: BinaryIO, form: EdgeFormat, live: bool = False) -> Iterator[EdgeChunk]:
        """The edges of a file; of a live one as they come."""
        match form:
            case "csv":
                return self._read_csv(_blocks(file, live))
            case "ndjson":
                return self._read_ndjson(_blocks(file, live))
            case "parquet":
                return self._read_parquet(file)

    # --- CSV ---

    def _read_csv(self, blocks: Iterator[tuple[int, bytes]]) -> Iterator[EdgeChunk]:
        layout: EdgeLayout | None = None
        for line, block in blocks:
            if layout is None:
                line, block = _without_comments(line, block)
                if not block:
                    continue
                first = block.split(b"\n", 1)[0].decode("utf-8", "replace").rstrip("\r")
                layout = layout_of(first, self._asked, self._times, self._needs_time)
                if layout.has_header:
                    line, block = line + 1, block.partition(b"\n")[2]
                    if not block:
                        continue
            yield self._csv_chunk(line, block, layout)

    def _csv_chunk(self, line: int, block: bytes, layout: EdgeLayout) -> EdgeChunk:
        from pyarrow import csv as arrow_csv

        def line_by_line() -> EdgeChunk:
            return self._slow_chunk(line, block, lambda text: _csv_cells(text, layout))

        if not _is_utf8(block):
            return line_by_line()
        wrong: list[Any] = []

        def set_aside(row: Any) -> str:
            wrong.append(row)
            return "skip"

        names = [str(place) for place in range(layout.width)]
        places = _places(layout.columns)
        try:
            table = arrow_csv.read_csv(
                pa.py_buffer(block),
                arrow_csv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=names),
                arrow_csv.ParseOptions(
                    delimiter=layout.delimiter, ignore_empty_lines=False, invalid_row_handler=set_aside
                ),
                arrow_csv.ConvertOptions(
                    include_columns=list(dict.fromkeys(str(place) for place in places)),
                    column_types=dict.fromkeys(names, pa.string()),
                    strings_can_be_null=False,
                ),
            )
        except pa.ArrowInvalid:
            return line_by_line()
        records = _line_ends(block) + (not block.endswith(b"\n"))
        if table.num_rows + len(wrong) != records:
            return line_by_line()
        lines = np.arange(line, line + records)
        malformed: list[MalformedRecord] = []
        if wrong:
            lines = np.delete(lines, [row.number - 1 for row in wrong])
            for row in wrong:
                said = _csv_cells(row.text, layout)
                reason = said if isinstance(said, str) else _columns_differ(row.expected_columns, row.actual_columns)
                if row.text.strip():
                    malformed.append(MalformedRecord(reason, line + row.number - 1, row.text))
        found = [pc.utf8_trim_whitespace(table.column(str(place)).combine_chunks()) for place in places]
        return self._chunk(found, lines, malformed, _Lines(line, block))

    # --- NDJSON ---

    def _read_ndjson(self, blocks: Iterator[tuple[int, bytes]]) -> Iterator[EdgeChunk]:
        names: list[str] = []
        schema: pa.Schema | None = None
        for line, block in blocks:
            if not names:
                line, block = _without_comments(line, block)
                first = _json_object(block.split(b"\n", 1)[0])
                if first:
                    columns = named_columns(list(first), self._asked, self._needs_time)
                    names = [list(first)[place] for place in _places(columns)]
                    kinds = [_JSON_KINDS.get(type(first[name])) for name in names]
                    schema = pa.schema(list(zip(names, kinds, strict=True))) if all(kinds) else None
                elif block:
                    raise StreamError(f"line {line} is no JSON object\nhint: an edge is a line of its own, an object")
            if block:
                yield self._ndjson_chunk(line, block, names, schema)

    def _ndjson_chunk(self, line: int, block: bytes, names: Sequence[str], schema: pa.Schema | None) -> EdgeChunk:
        from pyarrow import json as arrow_json

        records = _line_ends(block) + (not block.endswith(b"\n"))
        table = None
        if schema is not None:
            try:
                table = arrow_json.read_json(
                    pa.BufferReader(block),
                    arrow_json.ReadOptions(use_threads=False, block_size=len(block) + 1),
                    arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
                )
            except pa.ArrowInvalid:
                table = None
        if table is None or table.num_rows != records:
            return self._slow_chunk(line, block, lambda text: _json_cells(text, names))
        found = [table.column(name).combine_chunks() for name in names]
        lines = np.arange(line, line + records)
        return self._chunk(found, lines, [], _Lines(line, block))

    # --- Parquet ---

    def _read_parquet(self, file: BinaryIO) -> Iterator[EdgeChunk]:
        from pyarrow import parquet

        try:
            table = parquet.ParquetFile(file)
        except pa.ArrowInvalid as error:
            raise StreamError(f"not a Parquet file: {error}") from None
        all_names = table.schema_arrow.names
        asked = [all_names[int(one) - 1] if one.isdecimal() and one not in all_names and 0 < int(one) <= len(all_names)
                 else one for one in self._asked]  # fmt: skip
        columns = named_columns(all_names, asked, self._needs_time)
        names = [all_names[place] for place in _places(columns)]
        row = 1
        for batch in table.iter_batches(_ROWS, columns=list(dict.fromkeys(names))):
            found = [batch.column(name) for name in names]
            lines = np.arange(row, row + len(batch))
            found[:2] = [_as_ids(column, name) for column, name in zip(found[:2], names[:2], strict=True)]
            yield self._chunk(found, lines, [], _Rows(row, batch))
            row += len(batch)

    # --- all of them ---

    def _slow_chunk(self, line: int, block: bytes, cells_of: Callable[[str], list[str] | str]) -> EdgeChunk:
        """Line by line: `cells_of` a text are the ids and the time, or what is wrong with it."""
        lines, rows, malformed = [], [], []
        for number, raw in enumerate(block.removesuffix(b"\n").split(b"\n"), line):
            if not raw.strip():
                continue
            try:
                text = raw.decode("utf-8")
                found = cells_of(text)
            except UnicodeDecodeError as error:
                text, found = raw.decode("utf-8", "replace"), f"not UTF-8 text: {error.reason}"
            if isinstance(found, str):
                malformed.append(MalformedRecord(found, number, text.rstrip("\r")))
            else:
                lines.append(number)
                rows.append(found)
        width = len(rows[0]) if rows else 2 + self._needs_time
        columns = [texts([row[place] for row in rows]) for place in range(width)]
        return self._chunk(columns, np.array(lines, np.int64), malformed, _Lines(line, block))

    def _chunk(
        self,
        found: Sequence[pa.Array],
        lines: npt.NDArray[np.int64],
        malformed: list[MalformedRecord],
        raw: _Lines | _Rows,
    ) -> EdgeChunk:
        """The edges that have all parts, of the columns of sources, targets and times; the others are set aside."""
        sources, targets = found[:2]
        time = found[2] if len(found) > 2 else None
        times, timed = (None, None) if time is None or not self._needs_time else self._times.read(time)
        reasons = {"no source": _is_there(sources), "no target": _is_there(targets)}
        if timed is not None:
            reasons["no time"] = timed
        good = np.logical_and.reduce(list(reasons.values()))
        if good.all():
            return EdgeChunk(sources, targets, times, lines, malformed)
        for place in np.flatnonzero(~good).tolist():
            text = raw.text(int(lines[place]))
            if not text.strip():
                continue
            reason = next(reason for reason, there in reasons.items() if not there[place])
            if reason == "no time" and time is not None and (said := time[place].as_py()) not in (None, ""):
                reason = f"`{said}` is no time"
            malformed.append(MalformedRecord(reason, int(lines[place]), text))
        kept = np.flatnonzero(good)
        chunk = EdgeChunk(taken(sources, kept), taken(targets, kept), None, lines[kept], _by_line(malformed))
        return chunk if times is None else replace(chunk, times=times[kept])


def read_pairs(file: BinaryIO) -> list[tuple[str, str]]:
    """Two columns of ids; a header is known by its names."""
    try:
        text = file.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise StreamError(f"not UTF-8 text: {error.reason}") from None
    lines = text.splitlines()
    first = next((line for line in lines if line.strip()), "")
    found: list[tuple[str, str]] = []
    is_first = True
    for number, line in enumerate(lines, 1):
        cells = [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter_of(first)), [])]
        if not any(cells):
            continue
        if is_first and is_pair_header(cells):
            is_first = False
            continue
        is_first = False
        if len(cells) != 2 or not all(cells):
            raise StreamError(f"line {number}: a pair is two ids; got `{line}`\nhint: write one pair a line: a,b")
        found.append((cells[0], cells[1]))
    return found


class _Lines:
    """The lines of a block, by their numbers."""

    def __init__(self, first: int, block: bytes) -> None:
        self._first, self._block = first, block
        self._lines: list[bytes] | None = None

    def text(self, number: int) -> str:
        if self._lines is None:
            self._lines = self._block.split(b"\n")
        return self._lines[number - self._first].decode("utf-8", "replace").rstrip("\r")


class _Rows:
    """The rows of a batch, by their numbers."""

    def __init__(self, first: int, batch: pa.RecordBatch) -> None:
        self._first, self._batch = first, batch

    def text(self, number: int) -> str:
        (row,) = self._batch.slice(number - self._first, 1).to_pylist()
        return json.dumps(row, ensure_ascii=False, default=str)


def _blocks(file: BinaryIO, live: bool) -> Iterator[tuple[int, bytes]]:
    """Whole lines, many at a time, with the number of the first. Of a live file, the available lines."""
    read = getattr(file, "read1", file.read) if live else file.read
    line, begun = 1, []
    while data := read(_BLOCK):
        end = data.rfind(b"\n") + 1
        if not end:
            begun.append(data)
            continue
        block = b"".join([*begun, data[:end]])
        begun = [data[end:]] if end < len(data) else []
        yield line, block.removeprefix(_BOM) if line == 1 else block
        line += _line_ends(block)
    if rest := b"".join(begun):
        yield line, rest.removeprefix(_BOM) if line == 1 else rest


def _line_ends(block: bytes) -> int:
    """Return how many line ends a block has; numpy counts them in a third of the time of `bytes.count`."""
    return int(np.count_nonzero(np.frombuffer(block, np.uint8) == 10))


def _without_comments(line: int, block: bytes) -> tuple[int, bytes]:
    while block:
        first, _, rest = block.partition(b"\n")
        if first.strip() and not first.lstrip().startswith((b"#", b"%")):
            break
        line, block = line + 1, rest
    return line, block


def _is_utf8(block: bytes) -> bool:
    try:
        return block.isascii() or bool(block.decode("utf-8"))
    except UnicodeDecodeError:
        return False


def _csv_cells(text: str, layout: EdgeLayout) -> list[str] | str:
    try:
        cells = next(csv.reader([text.rstrip("\r")], delimiter=layout.delimiter, strict=True), [])
    except csv.Error as error:
        return f"not CSV: {error}"
    if len(cells) != layout.width:
        return _columns_differ(layout.width, len(cells))
    return [cells[place].strip() for place in _places(layout.columns)]


def _json_cells(text: str, names: Sequence[str]) -> list[str] | str:
    record = _json_object(text.encode())
    if record is None:
        return "no JSON object"
    values = [record.get(name) for name in names]
    strange = [name for name, value in zip(names, values, strict=True) if isinstance(value, bool | dict | list)]
    if strange:
        return f"`{strange[0]}` is neither a text nor a number"
    return ["" if value is None else str(value) for value in values]


def _json_object(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _columns_differ(expected: int, found: int) -> str:
    return f"{expected} columns expected, {found} found"


def _places(columns: EdgeColumns) -> list[int]:
    return [columns.source, columns.target, *(() if columns.time is None else (columns.time,))]


def _as_ids(column: pa.Array, name: str) -> pa.Array:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return column
    try:
        return column.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise StreamError(f"the column `{name}` holds {column.type}: ids are texts or integers") from None


def _is_there(ids: pa.Array) -> npt.NDArray[np.bool_]:
    """Which ids are neither null nor empty."""
    there = truths(ids.is_valid()) if ids.null_count else np.ones(len(ids), np.bool_)
    if pa.types.is_string(ids.type) or pa.types.is_large_string(ids.type):
        there = there & (_lengths(ids) > 0)
    return there


def _lengths(ids: pa.Array) -> npt.NDArray[Any]:
    lengths = pc.binary_length(ids)
    return numbers(pc.fill_null(lengths, 0) if lengths.null_count else lengths)


def _by_line(malformed: list[MalformedRecord]) -> list[MalformedRecord]:
    return sorted(malformed, key=lambda record: record.line or 0)
