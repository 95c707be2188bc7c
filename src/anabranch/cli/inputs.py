"""Where events come from: files, directories and stdin, and several streams merged into one order of time.

Invariant: every record of every file comes out once, as an event or as a malformed record, in the order of its file.
"""

from __future__ import annotations

import heapq
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast

from anabranch.cli.failures import InputError
from anabranch.cli.options import STDIN, existing
from anabranch.errors import EngineError, MalformedEventError, StreamError
from anabranch.formats.deadletter import MalformedRecord
from anabranch.formats.events import event_from_dict
from anabranch.formats.ndjson import read_ndjson
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


def open_inputs(streams: Sequence[tuple[str, str]], text: str, file_name: str) -> Inputs:
    """What the queries of a text read: the streams of the command line.

    The seam for LOAD STREAM: statements of `text` that name their own source add their `StreamInput` here.
    """
    meter = Meter()
    by_name: dict[str, list[str]] = {}
    for name, path in streams:
        by_name.setdefault(name, []).append(path)
    if sum(path == STDIN for _, path in streams) > 1:
        raise EngineError("only one stream can come from stdin")
    opened = []
    for name, paths in by_name.items():
        files = [file for path in paths for file in _files(path)]
        for file in files:
            if file is None:
                meter.total = None
            elif meter.total is not None:
                meter.total += file.stat().st_size
        opened.append(StreamInput(name, _read_files(files, meter), live=None in files))
    return Inputs(opened, meter)


def _timed(index: int, stream: StreamInput) -> Iterator[tuple[int, int, Event | MalformedEventError]]:
    last = -(2**63)
    for record in stream.records:
        last = record.event_time if isinstance(record, Event) else last
        yield last, index, record


def _files(path: str) -> list[Path | None]:
    """The files behind a path, sorted by name; None is stdin."""
    if path == STDIN:
        return [None]
    found = existing(path)
    if not found.is_dir():
        return [found]
    files = sorted(file for file in found.iterdir() if file.name.removesuffix(".gz").endswith(_SUFFIXES))
    if not files:
        raise InputError(f"{path} holds no events\nhint: files end with {', '.join(_SUFFIXES)}, perhaps followed by .gz")
    return list(files)


def _read_files(files: Sequence[Path | None], meter: Meter) -> Iterator[Event | MalformedEventError]:
    for file in files:
        try:
            for _, record in _read_stdin() if file is None else _read_file(file, meter):
                if isinstance(record, MalformedRecord) and len(files) > 1 and file is not None:
                    record = MalformedRecord(f"{file.name}: {record.reason}", record.line, record.raw)
                yield record
        except (StreamError, EOFError, OSError) as error:
            raise InputError(f"{file or 'stdin'}: {error}") from None


Numbered = Iterator[tuple[int, Event | MalformedRecord]]


def _read_stdin() -> Numbered:
    # The raw file gives what is there; the buffered one would wait for a full block.
    buffer = sys.stdin.buffer
    return read_ndjson(cast(BinaryIO, getattr(buffer, "raw", buffer)))


def _read_file(path: Path, meter: Meter) -> Numbered:
    if path.name.endswith(".parquet"):
        from anabranch.formats.parquet import read_parquet

        yield from read_parquet(str(path))
        meter.done += path.stat().st_size
        return
    with path.open("rb") as file:
        if path.name.endswith(".json") and _begins_with_bracket(file):
            yield from _read_array(file.read())
            meter.done += path.stat().st_size
        else:
            yield from read_ndjson(cast(BinaryIO, _Metered(file, meter)))


def _begins_with_bracket(file: BinaryIO) -> bool:
    head = file.read(64).lstrip()
    file.seek(0)
    return head.startswith(b"[")


def _read_array(data: bytes) -> Numbered:
    """A JSON list of events: not NDJSON, but what many tools write."""
    try:
        items = json.loads(data)
    except ValueError as error:
        raise StreamError(f"not JSON: {error}") from None
    for number, item in enumerate(items, 1):
        try:
            yield number, event_from_dict(item)
        except MalformedEventError as error:
            yield number, MalformedRecord(error.reason, number, json.dumps(item, ensure_ascii=False))


class _Metered:
    """A file that counts what is read from it."""

    def __init__(self, file: BinaryIO, meter: Meter) -> None:
        self._file = file
        self._meter = meter

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self._meter.done += len(data)
        return data
