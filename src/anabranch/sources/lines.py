"""Lines of files: where a file may be cut, and how its lines are decoded. Shared by every source that keeps NDJSON.

Plain NDJSON is cut at line ends without parsing the lines, and so is CSV up to its first quote; files that cannot be
cut (gzip, a JSON list) are read whole.

Invariant: a cut depends on the bytes before it and on the limits alone, and a record's number is its line (or its place
in the list or table), wherever the file was cut.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from anabranch.errors import MalformedEventError, StreamError
from anabranch.formats.deadletter import MalformedRecord
from anabranch.formats.ndjson import read_line_as, read_ndjson_as
from anabranch.formats.records import read_csv, read_json_list
from anabranch.model.event import Event
from anabranch.model.graph_block import GraphBlock
from anabranch.sources.base import AsEvent, Decode, MappingDecoder, PackedRecord

PIECE = 16 << 20
"""How many bytes of lines one task reads at most, unless one line is longer."""

LineRecords: TypeAlias = Iterator[Event | MalformedRecord]
SequenceOf: TypeAlias = Callable[[int], str]
"""The sequence of the record with a number: the number behind a text that is the same for all records of a piece."""

ExactReader: TypeAlias = Callable[[int], Iterator[PackedRecord]]
"""Reads the record at a place by itself."""

PackingDecoder: TypeAlias = AsEvent | MappingDecoder
"""A decoder with which runs of lines become blocks."""

WholeFormat: TypeAlias = Literal["gzip", "list", "csv"]

_BOM = b"\xef\xbb\xbf"
_GZIP_MAGIC = b"\x1f\x8b"
_HEAD = 64
_FEWEST_BYTES, _BYTES_PER_LINE = 64 << 10, 1 << 10
_NEWLINE, _RETURN = ord("\n"), ord("\r")
_LOOK = 1 << 20  # bytes that are read at once for the end of a long line
_WORTH_A_SCAN = 4 << 10  # bytes: fewer are read one by one


@dataclass(frozen=True, slots=True)
class Cut:
    """A place between two lines: the byte where the next line begins and the number of lines before it."""

    at: int = 0
    line: int = 0


def cut_lines(
    file: BinaryIO,
    start: Cut,
    stop: int,
    size: int,
    records: int | None = None,
    *,
    growing: bool = False,
    at_least_one: bool = True,
) -> list[Cut]:
    """Cuts from `start` on, which comes first; neighbours hold one piece each.

    All pieces together have at most `size` bytes and `records` lines, except that a first line which is longer is taken
    whole (unless `at_least_one` is False: then nothing is). The file is read up to `stop`; a last line without its
    newline is complete unless the file is still `growing`.
    """
    cuts = [start]
    at, line, left = start.at, start.line, records
    budget_end = min(stop, at + max(size, 0))
    while at < stop and (left is None or left > 0):
        must = at_least_one and len(cuts) == 1
        if at >= budget_end and not must:
            break
        # A small number of lines needs no large look ahead.
        window = PIECE if left is None else min(PIECE, max(_FEWEST_BYTES, left * _BYTES_PER_LINE))
        data = exactly(file, at, min(window, budget_end - at))
        end = data.rfind(b"\n") + 1
        if at + len(data) == stop and not growing:
            end = len(data)
        if end == 0:
            if at + len(data) >= budget_end and not must:
                break  # the line ends behind the budget, wherever that is
            line_end = _line_end(file, at + len(data), stop, growing)
            if line_end is None or (line_end > budget_end and not must):
                break
            at, count = line_end, 1
        else:
            count = data.count(b"\n", 0, end) + (data[end - 1] != _NEWLINE)
            if left is not None and count > left:
                count, end = left, _end_of_line(data, left)
            at += end
        line += count
        left = None if left is None else left - count
        cuts.append(Cut(at, line))
    return cuts


def cut_rows(file: BinaryIO, start: Cut, stop: int, size: int, records: int | None = None) -> list[Cut]:
    """Cuts between the rows of a CSV file, of which `line` counts those before a cut, without the header.

    The limits are those of `cut_lines`. Where a row may go on behind a line end, and where a line is very long, the
    rest of the file is one piece.
    """
    cuts, at, row, left = [start], start.at, start.line, records
    budget_end = min(stop, at + max(size, 0))
    while at < stop and (left is None or left > 0) and (at < budget_end or len(cuts) == 1):
        data = exactly(file, at, min(stop - at, max(min(PIECE, budget_end - at), _FEWEST_BYTES)))
        end = len(data) if at + len(data) == stop else data.rfind(b"\n") + 1
        ends = _row_ends(data[:end])
        if not end or not is_plain_table(data[:end]) or (at == 0 and not _has_header(data)):
            return [*cuts, Cut(stop, row + (left or 0))]  # it has as many as there may be
        rows = len(ends) - (at == 0)
        if left is not None and rows > left:
            rows, end = left, int(ends[left + (at == 0) - 1]) + 1
        at, row = at + end, row + rows
        left = None if left is None else left - rows
        cuts.append(Cut(at, row))
    return cuts


def is_plain_table(data: bytes) -> bool:
    """Whether lines of CSV are rows, and the texts between commas are values."""
    return b'"' not in data and b"\0" not in data and data.count(b"\r") == data.count(b"\r\n")


def _has_header(data: bytes) -> bool:
    return bool(data.removeprefix(_BOM).partition(b"\n")[0].strip(b"\r"))


def _row_ends(data: bytes) -> npt.NDArray[np.int64]:
    """Return where the rows of plain CSV end; blank lines are none."""
    letters = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(letters == _NEWLINE)
    if data and letters[-1] != _NEWLINE:
        ends = np.append(ends, len(data))
    starts = np.concatenate(([0], ends + 1))[:-1]
    lengths = ends - starts
    are_rows = (lengths > 1) | ((lengths == 1) & (letters[np.minimum(starts, len(data) - 1)] != _RETURN))
    found: npt.NDArray[np.int64] = ends[are_rows]
    return found


class FileSpan(io.RawIOBase):
    """The bytes of a file between two places, as a file."""

    def __init__(self, file: BinaryIO, start: int, stop: int) -> None:
        file.seek(start)
        self._file = file
        self._left = stop - start

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._file.read(min(len(buffer), self._left))
        if not data and self._left and len(buffer):
            raise StreamError(f"the file has become shorter: {self._left} bytes are missing")
        buffer[: len(data)] = data
        self._left -= len(data)
        return len(data)


def header_names(file: BinaryIO) -> list[str]:
    """The names in the first line of a CSV file."""
    file.seek(0)
    data = b""
    while b"\n" not in data and (more := file.read(_FEWEST_BYTES)):
        data += more
    line, _, _ = data.removeprefix(_BOM).partition(b"\n")
    return next(csv.reader([line.decode()]), [])


def read_rows(file: BinaryIO, start: Cut, stop: int, decode: Decode, sequence_of: SequenceOf = str) -> LineRecords:
    """The records of the rows of a CSV file between two cuts."""
    with explained():
        names = header_names(file) if start.at else None
        span = io.BufferedReader(FileSpan(file, start.at, stop))
        with io.TextIOWrapper(span, encoding="utf-8" if start.at else "utf-8-sig", newline="") as text:
            yield from decoded(read_csv(text, names, start.line), decode, sequence_of)


def exactly(file: BinaryIO, at: int, size: int) -> bytes:
    """Bytes that are known to be there."""
    file.seek(at)
    data = file.read(size)
    while len(data) < size:
        more = file.read(size - len(data))
        if not more:
            raise StreamError(
                f"the file has become shorter: it ends at byte {at + len(data)}, and was read to {at + size}"
            )
        data += more
    return data


def _line_end(file: BinaryIO, at: int, stop: int, growing: bool) -> int | None:
    """Behind the first newline from `at` on: the end of a line longer than one look."""
    while at < stop:
        data = exactly(file, at, min(_LOOK, stop - at))
        found = data.find(b"\n")
        if found >= 0:
            return at + found + 1
        at += len(data)
    return None if growing else stop


def _end_of_line(data: bytes, number: int) -> int:
    newlines = np.flatnonzero(np.frombuffer(data, np.uint8) == _NEWLINE)
    return int(newlines[number - 1]) + 1


def read_range(
    file: BinaryIO, start: int, stop: int, first_line: int, decode: Decode, sequence_of: SequenceOf = str
) -> LineRecords:
    """The records of the lines between two cuts; `first_line` is the number of the first line, from one."""
    return _read_lines(_between(file, start, stop), first_line, decode, sequence_of)


def pack_range(
    file: BinaryIO, start: int, stop: int, first_line: int, decode: PackingDecoder, sequence_of: SequenceOf = str
) -> Iterator[PackedRecord]:
    """The same, where runs of plain events come as blocks."""
    return pack_lines(_between(file, start, stop), first_line, decode, sequence_of)


def _between(file: BinaryIO, start: int, stop: int) -> bytes:
    data = exactly(file, start, stop - start)
    return data.removeprefix(_BOM) if start == 0 else data


def _read_lines(data: bytes, first_line: int, decode: Decode, sequence_of: SequenceOf) -> LineRecords:
    for number, line in enumerate(data.split(b"\n"), first_line):
        if line and not line.isspace():
            event = read_line_as(line, number, lambda record, number: decode(record, sequence_of(number)))
            if event is not None:
                yield event


def pack_lines(
    data: bytes, first_line: int, decode: PackingDecoder, sequence_of: SequenceOf = str
) -> Iterator[PackedRecord]:
    """The events of lines: runs of plain ones as blocks, the others by the exact reader, in their places."""
    if len(data) < _WORTH_A_SCAN:
        yield from _read_lines(data, first_line, decode, sequence_of)
        return
    if isinstance(decode, MappingDecoder):
        yield from _pack_mapped(data, first_line, decode, sequence_of)
        return
    # A stream of few lines needs no kernels.
    from anabranch.formats.graph_lines import read_runs

    for found in read_runs(data, first_line, decode.keys):
        if isinstance(found, GraphBlock):
            yield found
        else:
            number, line = found
            yield from _read_lines(line, number, decode, sequence_of)


def _pack_mapped(
    data: bytes, first_line: int, decode: MappingDecoder, sequence_of: SequenceOf
) -> Iterator[PackedRecord]:
    if decode.columns is None:
        yield from _read_lines(data, first_line, decode, sequence_of)
        return
    # A stream of events needs no mapping.
    from anabranch.sources.mapped import pack_texts

    lines = [(number, line) for number, line in enumerate(data.split(b"\n"), first_line) if line and not line.isspace()]
    numbers, texts = [number for number, _ in lines], [line for _, line in lines]

    def exact(place: int) -> LineRecords:
        return _read_lines(texts[place], numbers[place], decode, sequence_of)

    yield from pack_texts(numbers, texts, decode, sequence_of, exact)


def pack_gzip(file: BinaryIO, decode: PackingDecoder, sequence_of: SequenceOf = str) -> Iterator[PackedRecord]:
    """The same for a file of lines that is packed by gzip."""
    with explained():
        lines, number, rest = unpacked(file), 1, b""
        while block := lines.read(PIECE):
            data = rest + block
            if number == 1:
                data = data.removeprefix(_BOM)
            end = data.rfind(b"\n") + 1
            data, rest = data[:end], data[end:]
            yield from pack_lines(data, number, decode, sequence_of)
            number += data.count(b"\n")
        yield from pack_lines(rest, number, decode, sequence_of)


def whole_kind(file: BinaryIO, name: str) -> WholeFormat | None:
    """Return how a file that cannot be cut is read, by its first bytes and its name; None for plain lines."""
    if name.endswith((".csv", ".csv.gz")):
        return "csv"
    file.seek(0)
    head = file.read(_HEAD)
    zipped = head.startswith(_GZIP_MAGIC)
    if name.endswith((".json", ".json.gz")):
        if zipped:
            with explained():
                head = unpacked(file).read(_HEAD)
        if head.removeprefix(_BOM).lstrip().startswith(b"["):
            return "list"
    return "gzip" if zipped else None


def read_whole(file: BinaryIO, kind: WholeFormat, decode: Decode, sequence_of: SequenceOf = str) -> LineRecords:
    """The records of a file that cannot be cut."""
    file.seek(0)
    with explained():
        match kind:
            case "gzip":
                for _, record in read_ndjson_as(file, lambda data, number: decode(data, sequence_of(number))):
                    yield record
            case "list":
                yield from decoded(read_json_list(unpacked(file).read()), decode, sequence_of)
            case "csv":
                with io.TextIOWrapper(cast(Any, unpacked(file)), encoding="utf-8-sig", newline="") as text:
                    yield from decoded(read_csv(text), decode, sequence_of)


def decoded(records: Iterable[tuple[int, Any]], decode: Decode, sequence_of: SequenceOf = str) -> LineRecords:
    """Yield the decoded values of numbered records; a refused record comes in its place."""
    for number, record in records:
        try:
            event = decode(record, sequence_of(number))
        except MalformedEventError as error:
            yield MalformedRecord(error.reason, number, json.dumps(record, ensure_ascii=False, default=str))
        else:
            if event is not None:
                yield event


def unpacked(file: BinaryIO) -> BinaryIO:
    """The file from its beginning, seen through gzip when it is that."""
    zipped = is_zipped(file)
    file.seek(0)
    return cast(BinaryIO, gzip.GzipFile(fileobj=file)) if zipped else file


def is_zipped(file: BinaryIO) -> bool:
    file.seek(0)
    return file.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC


def unpacked_pipe(file: BinaryIO) -> BinaryIO:
    """A pipe from where it stands, seen through gzip when it goes on with that."""
    zipped = isinstance(file, io.BufferedReader) and file.peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC)
    return cast(BinaryIO, gzip.GzipFile(fileobj=file)) if zipped else file


@contextmanager
def explained() -> Iterator[None]:
    """Turns what the unpacking libraries raise into one error."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise StreamError(
            f"not a whole gzip file: {error}\nhint: it was cut off, or is still being written; put the whole file there"
        ) from None
    except UnicodeDecodeError as error:
        raise StreamError(f"not UTF-8 text: {error.reason}") from None
    except csv.Error as error:
        raise StreamError(f"not CSV: {error}") from None
