"""Where events come from: files, directories and stdin, and several streams merged into one order of time.

Invariant: every record of every file comes out once, as an event or as a malformed record, in the order of its file.
"""

from __future__ import annotations

import gzip
import heapq
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast
from urllib.parse import urlsplit

import typer

from anabranch.cli.failures import InputError
from anabranch.cli.options import STDIN, existing
from anabranch.engine.ingestion import RecordMapping, mappings
from anabranch.errors import EngineError, MalformedEventError, StreamError
from anabranch.formats.deadletter import MalformedRecord
from anabranch.formats.events import event_from_dict
from anabranch.formats.ndjson import read_ndjson_as
from anabranch.formats.records import read_csv, read_json_list, read_parquet_rows
from anabranch.model.event import Event

_SUFFIXES = (".ndjson", ".jsonl", ".json", ".parquet")

Record = tuple[str, Event | MalformedEventError]
"""A stream's name and what came on it."""


@dataclass(slots=True)
class Meter:
    """How much of the input has been read, in bytes; a total of None means that nobody knows."""

    total: int | None = 0
    done: int = 0


@dataclass(slots=True)
class StreamInput:
    """One stream's records, in their order of arrival. `live` input is passed on record by record."""

    name: str
    records: Iterable[Event | MalformedEventError]
    live: bool = False


@dataclass(slots=True)
class Inputs:
    streams: list[StreamInput]
    meter: Meter = field(default_factory=Meter)

    @property
    def names(self) -> list[str]:
        return [stream.name for stream in self.streams]

    @property
    def live(self) -> bool:
        return any(stream.live for stream in self.streams)

    def merged(self) -> Iterator[Record]:
        """All records by time; each stream keeps its own order, and a malformed record comes where it stands."""
        timed = [_timed(index, stream) for index, stream in enumerate(self.streams)]
        for _, index, record in heapq.merge(*timed, key=lambda item: item[:2]):
            yield self.streams[index].name, record


Decode = Callable[[Any, int], Event | None]
"""What a JSON record and its number are read as; None is a record that writes nothing."""


def open_inputs(streams: Sequence[tuple[str, str]], text: str, file_name: str) -> Inputs:
    """What the queries of a text read: the streams of the command line, and those that LOAD STREAM makes of records.

    A LOAD STREAM reads the `--stream` that has its name or its address, else the file that its address names.
    """
    meter = Meter()
    by_name: dict[str, list[str]] = {}
    for name, path in streams:
        by_name.setdefault(name, []).append(path)
    if sum(path == STDIN for _, path in streams) > 1:
        raise typer.BadParameter("only one stream can come from stdin", param_hint="--stream")
    decoders: dict[str, Decode] = {}
    for mapping in mappings(text, file_name):
        if mapping.stream in decoders:
            raise EngineError(f"two LOAD STREAM statements make the stream `{mapping.stream}`; name one with INTO")
        given = by_name.pop(mapping.uri, None) or by_name.get(mapping.stream)
        by_name[mapping.stream] = given or [_address(mapping.uri, mapping.stream, file_name)]
        decoders[mapping.stream] = _in_sequence(mapping)
    opened = []
    for name, paths in by_name.items():
        decode = decoders.get(name, _as_event)
        files = [file for path in paths for file in _files(path, decode)]
        for file in files:
            if file is None:
                meter.total = None
            elif meter.total is not None:
                meter.total += file.stat().st_size
        opened.append(StreamInput(name, _read_files(files, meter, decode), live=None in files))
    return Inputs(opened, meter)


def _in_sequence(mapping: RecordMapping) -> Decode:
    """Records are numbered through all files of a stream: what CREATE makes of two records is never the same."""
    sequence = count(1)
    return lambda record, _number: mapping.event(record, next(sequence))


def _as_event(data: Any, number: int) -> Event:
    return event_from_dict(data)


def _address(uri: str, stream: str, file_name: str) -> str:
    """The file behind the address of a LOAD STREAM: relative to the query's own file."""
    parts = urlsplit(uri)
    if parts.scheme not in ("", "file"):
        raise InputError(
            f"LOAD STREAM FROM '{uri}': this version reads files, not {parts.scheme}://\n"
            f"hint: give the records as a file: --stream {stream}=records.ndjson"
        )
    path = Path(parts.path)
    return str(path if path.is_absolute() or file_name == STDIN else Path(file_name).parent / path)


def _timed(index: int, stream: StreamInput) -> Iterator[tuple[int, int, Event | MalformedEventError]]:
    last = -(2**63)
    for record in stream.records:
        last = record.event_time if isinstance(record, Event) else last
        yield last, index, record


def _files(path: str, decode: Decode) -> list[Path | None]:
    """The files behind a path, sorted by name; None is stdin."""
    if path == STDIN:
        return [None]
    found = existing(path)
    if not found.is_dir():
        return [found]
    suffixes = _SUFFIXES if decode is _as_event else (*_SUFFIXES, ".csv")
    files = sorted(file for file in found.iterdir() if file.name.removesuffix(".gz").endswith(suffixes))
    if not files:
        hint = f"files of events end with {', '.join(suffixes)}, perhaps followed by .gz"
        raise InputError(f"{path} holds no events\nhint: {hint}")
    return list(files)


def _read_files(files: Sequence[Path | None], meter: Meter, decode: Decode) -> Iterator[Event | MalformedEventError]:
    for file in files:
        try:
            for _, record in _read_stdin(decode) if file is None else _read_file(file, meter, decode):
                if isinstance(record, MalformedRecord) and len(files) > 1 and file is not None:
                    record = MalformedRecord(f"{file.name}: {record.reason}", record.line, record.raw)
                yield record
        except (StreamError, EOFError, OSError) as error:
            raise InputError(f"{file or 'stdin'}: {error}") from None


Numbered = Iterator[tuple[int, Event | MalformedRecord]]


def _read_stdin(decode: Decode) -> Numbered:
    # The raw file gives what is there; the buffered one would wait for a full block.
    buffer = sys.stdin.buffer
    return read_ndjson_as(cast(BinaryIO, getattr(buffer, "raw", buffer)), decode)


def _read_file(path: Path, meter: Meter, decode: Decode) -> Numbered:
    if path.name.endswith(".parquet"):
        from anabranch.formats.parquet import read_parquet

        if decode is _as_event:
            yield from read_parquet(str(path))
        else:
            yield from _decoded(read_parquet_rows(str(path)), decode)
        meter.done += path.stat().st_size
    elif path.name.endswith((".csv", ".csv.gz")):
        if decode is _as_event:
            raise InputError(f"{path} holds records, not events\nhint: say what they mean with LOAD STREAM FROM ...")
        opener = gzip.open if path.name.endswith(".gz") else open
        with opener(path, "rt", encoding="utf-8-sig", newline="") as text:
            yield from _decoded(read_csv(cast(TextIO, text)), decode)
        meter.done += path.stat().st_size
    else:
        with path.open("rb") as file:
            if path.name.endswith((".json", ".json.gz")) and (items := _json_list(file)) is not None:
                yield from _decoded(read_json_list(items), decode)
                meter.done += path.stat().st_size
            else:
                yield from read_ndjson_as(cast(BinaryIO, _Metered(file, meter)), decode)


def _decoded(records: Iterable[tuple[int, Any]], decode: Decode) -> Numbered:
    for number, record in records:
        try:
            event = decode(record, number)
        except MalformedEventError as error:
            yield number, MalformedRecord(error.reason, number, json.dumps(record, ensure_ascii=False, default=str))
        else:
            if event is not None:
                yield number, event


def _json_list(file: BinaryIO) -> bytes | None:
    """The whole file when it is one JSON list, perhaps gzipped; None when it is lines."""
    data = gzip.GzipFile(fileobj=file) if file.read(2) == b"\x1f\x8b" else file
    file.seek(0)
    head = data.read(64)
    if head.lstrip().startswith(b"["):
        return head + data.read()
    file.seek(0)
    return None


class _Metered:
    """A file that counts what is read from it."""

    def __init__(self, file: BinaryIO, meter: Meter) -> None:
        self._file = file
        self._meter = meter

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self._meter.done += len(data)
        return data
