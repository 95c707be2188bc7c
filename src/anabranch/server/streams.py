"""The streams of a session: their sources, pushed records, records that were set aside, and rates.

A stream has an address, or is pushed through REST into a spool of the session's folder. Sources that push by themselves
(sockets, brokers, web services) have receivers that live until the session is stopped, also while the run restarts.

Invariant: records that `push` has accepted are on disk; a stopped stream stays stopped and ends, for queries, at its
last position.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

from anabranch.engine.session import as_lateness
from anabranch.engine.timing import AheadBound, IdlePolicy, StreamTiming, fixed_micros
from anabranch.errors import StreamError
from anabranch.formats.deadletter import MalformedRecord
from anabranch.model.event import Event
from anabranch.runner.folder import RunFolder
from anabranch.runner.letters import LetterFiles
from anabranch.runner.rows import CellRow
from anabranch.server.catalogue import StoredStream, StoredTiming
from anabranch.server.gate import Gate, PushReceipt
from anabranch.server.problems import NOT_FOUND, REFUSED, ServerError
from anabranch.sinks.base import Ledger
from anabranch.sinks.files import LinesFile
from anabranch.sources.address import STDIN, Address, parse_address, refuse_beyond
from anabranch.sources.base import Backlog, Decode, Limit, Offset, Piece, Source
from anabranch.sources.open import open_source
from anabranch.sources.private import private_folder
from anabranch.sources.reach import ANYWHERE, Reach
from anabranch.sources.receivers.base import Receiver
from anabranch.sources.receivers.open import open_receiver
from anabranch.sources.spool import Spool, SpoolSource

PUSH = "push:"
_RATE_OVER = 5.0  # seconds
_LETTERS = ("late", "ahead", "malformed")
_BLOCK = 1 << 20
_LONGEST_NAME = 150  # of a file system's 255 bytes


@dataclass(frozen=True, slots=True)
class StreamInfo:
    """The status of a stream. Times are UTC microseconds, `rate` is events per second over the last seconds. `idle` is
    the policy for a silent stream, and `answered` the instant up to which answers exist when silence has moved them
    past the watermark."""

    name: str
    address: str | None
    kind: str
    rate: float
    watermark: int | None
    newest: int | None
    events: int
    late: int
    malformed: int
    closed: bool
    held: int = 0
    meant: str = ""
    lateness: str | None = None
    state: str = ""
    idle_timeout: str | None = None
    idle: str = ""
    is_idle: bool = False
    answered: int | None = None
    ahead: int = 0
    in_doubt: int = 0
    ahead_bound: str = ""
    jumps: int = 0
    last_jump: tuple[int, int] | None = None
    behind: float = 0.0
    """Seconds since the first event came that is not answered yet; 0 where all are, or it is not known."""
    growing: bool = False
    """Whether it was less some seconds ago."""


def timing_of(own: StoredTiming, default: StreamTiming) -> StreamTiming:
    """Return the timing of a stream: its own settings, and the server's for the rest."""
    timeout = default.idle_timeout
    if own.idle_timeout is not None:
        length = as_lateness(own.idle_timeout)
        timeout = None if length is None else fixed_micros(length)
    idle = default.idle if own.idle is None else IdlePolicy.parse(own.idle)
    return StreamTiming(timeout, idle, default.ahead if own.ahead is None else AheadBound.parse(own.ahead))


class StoppedSource(Source):
    """A source that ends at its present position and ignores all later records."""

    def __init__(self, source: Source) -> None:
        self.stream = source.stream
        self._source = source

    @property
    def finite(self) -> bool:
        return True

    def begin(self) -> Offset:
        return self._source.begin()

    def ahead(self, start: Offset, limit: Limit) -> Offset:
        return start

    def pieces(self, start: Offset, end: Offset) -> list[Piece]:
        return self._source.pieces(start, end)

    def read(self, piece: Piece, decode: Decode) -> Iterator[Event | MalformedRecord]:
        return self._source.read(piece, decode)

    def ended(self, offset: Offset) -> bool:
        return True

    def splits(self, offset: Offset) -> list[str]:
        return self._source.splits(offset)

    def backlog(self, offset: Offset) -> Backlog:
        return self._source.backlog(offset)

    def close(self) -> None:
        self._source.close()


@dataclass(slots=True)
class _Fed:
    """A receiver and the spool that it fills."""

    address: str
    receiver: Receiver
    spool: Spool


@dataclass(frozen=True, slots=True)
class ReadRecords:
    """Pushed records and their events; None where only the run can decode them."""

    records: Sequence[bytes]
    events: Sequence[Event] | None
    malformed: int = 0


@dataclass(frozen=True, slots=True)
class RunMarks:
    """The run's progress on a stream, as last reported."""

    newest: int | None = None
    watermark: int | None = None


class Feeds:
    """Spools and receivers of a session, kept while runs restart. `reach` limits the addresses that they may use."""

    def __init__(self, folder: RunFolder, reach: Reach = ANYWHERE) -> None:
        self._folder = folder
        self.reach = reach
        self._lock = threading.RLock()
        self._pushed: dict[str, Spool] = {}
        self._pushing: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._fed: dict[str, _Fed] = {}
        self._is_closed = False
        self.receiving = False

    def spool(self, name: str) -> Spool:
        """Return the spool of a stream that is pushed through REST."""
        with self._lock:
            if self._is_closed:
                raise ServerError(NOT_FOUND, "the session has ended")
            if name not in self._pushed:
                self._pushed[name] = Spool(self._folder.spool(name))
            return self._pushed[name]

    @property
    def shortages(self) -> list[str]:
        """Report acknowledged records that spools have lost, until `accept_shortages`."""
        spools = [*self._pushed.items(), *((name, fed.spool) for name, fed in list(self._fed.items()))]
        return [f"stream {name}: {spool.shortage}" for name, spool in spools if spool.shortage]

    def accept_shortages(self) -> None:
        """Accept the losses and continue with the remaining records."""
        with self._lock:
            for spool in (*self._pushed.values(), *(fed.spool for fed in self._fed.values())):
                spool.accept_shortage()

    def push(self, stored: StoredStream, ahead: AheadBound | None, read: ReadRecords, run: RunMarks) -> PushReceipt:
        """Add records to a pushed stream, and return their outcome. They are on disk when it returns."""
        with self._pushing[stored.name]:
            spool = self.spool(stored.name)
            if read.events is None:
                return PushReceipt(0, received=spool.append(read.records))
            gate = Gate(as_lateness(stored.lateness), ahead, spool.cursor)
            gate.follow(run.newest, run.watermark)
            said = gate.passing(read.events, int(time.time() * 1_000_000))
            spool.append(read.records, gate.cursor())
            return replace(said, malformed=read.malformed)

    def set_clock(self, name: str, instant: int) -> None:
        """Set the clock of a pushed stream to an instant."""
        with self._pushing[name]:
            spool = self.spool(name)
            gate = Gate(None, None, spool.cursor)
            gate.set_clock(instant)
            spool.cursor = gate.cursor()

    def opener(self, streams: Sequence[StoredStream]) -> Callable[[str, str, bool], Source]:
        """Return the function by which a run opens its sources, by the names that queries use."""
        by_name = {one.meant or one.name: one for one in streams}

        def opened(name: str, address: str, records_are_events: bool) -> Source:
            stored = by_name.get(name)
            source = self._open(name, address, records_are_events, stored is not None and stored.follow)
            return StoppedSource(source) if stored is not None and stored.stopped else source

        return opened

    def _open(self, name: str, address: str, records_are_events: bool, follow: bool) -> Source:
        if address.startswith(PUSH):
            own = address.removeprefix(PUSH)
            self.spool(own)
            return SpoolSource(name, self._folder.spool(own))
        parsed = self._reachable(address)
        if not parsed.is_pushed:
            return open_source(name, address, follow=follow, records_are_events=records_are_events, reach=self.reach)
        with self._lock:
            fed = self._fed.get(name)
            if fed is None:
                fed = self._fed[name] = _Fed(
                    address, open_receiver(parsed, reach=self.reach), Spool(self._folder.spool(name))
                )
                if self.receiving:
                    fed.receiver.start(fed.spool)
            return SpoolSource(name, self._folder.spool(name), fed.receiver.finite)

    def check(self, name: str, address: str, follow: bool = False, records_are_events: bool = True) -> None:
        """Refuse an address that cannot be opened; nothing is read from it yet."""
        parsed = self._reachable(address)
        if parsed.is_pushed:
            open_receiver(parsed, reach=self.reach)
        else:
            source = open_source(name, address, follow=follow, records_are_events=records_are_events, reach=self.reach)
            try:
                source.begin()
            finally:
                source.close()

    def _reachable(self, address: str) -> Address:
        parsed = parse_address(address)
        if parsed.scheme == STDIN:
            raise ServerError(REFUSED, "a server has no stdin to read", "leave the address out and push the events")
        refuse_beyond(parsed, self.reach)
        return parsed

    # --- receivers ------------------------------------------------------------------------------------------------

    def receive(self, wanted: bool) -> None:
        """Start or stop the receivers; a stopped receiver is created again when a run opens it."""
        with self._lock:
            self.receiving = wanted
            if wanted:
                for fed in self._fed.values():
                    if not fed.receiver.running and fed.receiver.state == "not started":
                        fed.receiver.start(fed.spool)
                return
            for name in list(self._fed):
                self._drop(name)

    def raise_error(self) -> None:
        if self.shortages:
            raise StreamError(self.shortages[0])
        for name, fed in list(self._fed.items()):
            if fed.receiver.error is not None:
                raise StreamError(f"stream {name}: {fed.receiver.error}")

    def state(self, name: str) -> str:
        fed = self._fed.get(name)
        return "" if fed is None else fed.receiver.state

    def _drop(self, name: str) -> None:
        fed = self._fed.pop(name)
        fed.receiver.stop()
        fed.spool.close()

    def forget(self, stored: StoredStream) -> None:
        """Delete the spool of a removed stream."""
        import shutil

        with self._lock:
            name = stored.meant or stored.name
            if name in self._fed:
                self._drop(name)
            if stored.name in self._pushed:
                self._pushed.pop(stored.name).close()
            for one in {stored.name, name}:
                shutil.rmtree(self._folder.spool(one), ignore_errors=True)

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            self.receive(False)
            while self._pushed:
                self._pushed.popitem()[1].close()


# --- records set aside ------------------------------------------------------------------------------------------------


class _FileLedger:
    """The ledger of one letter file; drops the entry if the file is gone, as it was removed with its stream."""

    def __init__(self, ledger: Ledger, file: Path) -> None:
        self._ledger = ledger
        self._file = file

    def get(self, key: str) -> Any:
        if not self._file.exists():
            self._ledger.put(key, None)
        return self._ledger.get(key)

    def put(self, key: str, value: object) -> None:
        self._ledger.put(key, value)


class SessionLetters(LetterFiles):
    """Late and malformed records, one file per stream and kind. A stream that was removed and added again begins with
    an empty file."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def write_rows(self, batch: int, rows: Sequence[CellRow]) -> None:
        for kind in _LETTERS:
            for stream in dict.fromkeys(row.query for row in rows if row.kind == kind):
                private_folder(self._folder)
                file = self._of(str(letter_file(self._folder, stream, kind)))
                file.write(batch, [told_letters(row) for row in rows if row.kind == kind and row.query == stream])

    def _of(self, path: str) -> LinesFile:
        file = self._files.get(path)
        if file is None:
            assert self._ledger is not None, "opened before it is written to"
            file = LinesFile(path, overwrite=True)
            file.open(_FileLedger(self._ledger, Path(path)))
            self._files[path] = file
        return file


def told_letters(row: CellRow) -> Any:
    from anabranch.sinks.base import RenderedAnswer

    return RenderedAnswer(row.query, 0, 0, row.rows, json=row.data)


def letter_file(folder: Path, stream: str, kind: str) -> Path:
    name = quote(stream, safe="")
    if len(name) > _LONGEST_NAME:
        name = f"{name[:80]}~{sha256(name.encode()).hexdigest()}"
    return folder / f"{kind}-{name}.ndjson"


class LineCounts:
    """Counts the lines of growing files; reads only the bytes since the last count."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[int, int, int]] = {}  # inode, bytes read, lines

    def of(self, path: Path) -> int:
        try:
            with path.open("rb") as file:
                said = os.fstat(file.fileno())
                inode, at, lines = self._known.get(path, (0, 0, 0))
                if said.st_ino != inode or said.st_size < at:  # the file was replaced or truncated
                    at, lines = 0, 0
                file.seek(at)
                while at < said.st_size and (block := file.read(min(_BLOCK, said.st_size - at))):
                    at += len(block)
                    lines += block.count(b"\n")
        except OSError:
            return 0
        self._known[path] = (said.st_ino, at, lines)
        return lines


# --- rates ------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Rates:
    """Events per second, from totals at several times."""

    clock: Callable[[], float] = time.monotonic
    _seen: deque[tuple[float, dict[str, int]]] = field(default_factory=deque)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, events: Mapping[str, int]) -> None:
        now = self.clock()
        with self._lock:
            if self._seen and now - self._seen[-1][0] < 0.1 and len(self._seen) > 1:
                self._seen[-1] = (self._seen[-1][0], dict(events))
            else:
                self._seen.append((now, dict(events)))
            while len(self._seen) > 2 and self._seen[1][0] < now - _RATE_OVER:
                self._seen.popleft()

    def of(self, stream: str) -> float:
        now = self.clock()
        with self._lock:
            seen = [(at, events[stream]) for at, events in self._seen if stream in events]
        if len(seen) < 2:
            return 0.0
        before = [one for one in seen if one[0] <= now - _RATE_OVER]
        first = before[-1] if before else seen[0]
        return max(0.0, (seen[-1][1] - first[1]) / max(now - first[0], 0.1))


def as_records(events: Sequence[Any]) -> list[bytes]:
    """Encode events (JSON objects) as records."""
    return [json.dumps(one, ensure_ascii=True).encode() for one in events]
