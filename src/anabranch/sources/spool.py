"""The spool: records of push sources are on disk before they are acknowledged, and are read from there like a file.

A directory of segments `00000000.ndjson`, `00000001.ndjson`, ... of at most 16 MiB, one record a line; next to them
`durable` (how far readers may go), `sizes.json` (of the segments before the last one), `cursor.json` (what a receiver
needs to go on after a restart), `end` (nothing more will come), `short` (what was found missing) and `lock` (one writer
at a time).

Appending is: write the lines, sync them, replace the cursor, move the durable mark, return. A crash before the mark
moved leaves lines that no reader has seen: a torn one is cut off on reopening, and so are lines without their cursor,
because the cursor will bring them again. Fewer lines than the mark promises are damage from outside: it is reported
until the user accepts it; records that come then begin a new segment, behind all that readers have seen.

Invariant: lines that a reader may see are synced, end with a whole line and are never taken back.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from anabranch.errors import StreamError
from anabranch.formats.deadletter import MalformedRecord
from anabranch.model.event import Event
from anabranch.sources.base import (
    ONLY_SPLIT,
    AsEvent,
    Backlog,
    Decode,
    Limit,
    MappingDecoder,
    Offset,
    PackedRecord,
    Piece,
    Source,
)
from anabranch.sources.lines import Cut, cut_lines, exactly, pack_range, read_range
from anabranch.sources.private import FILE, private_file, private_folder
from anabranch.sources.segments import (
    Position,
    count_lines,
    durable_position,
    is_finished,
    last_position,
    mark_bytes,
    mark_path,
    promise,
    segment_path,
    segments,
    whole_lines,
)

if TYPE_CHECKING:
    from anabranch.planner.link_streams import LinkStream

Read = TypeVar("Read")

SEGMENT_SIZE = 16 << 20
_BOM = b"\xef\xbb\xbf"


def one_line(record: bytes) -> bytes:
    """A record as it stands in a segment. Line ends between the tokens of a JSON text mean what a space means."""
    return record.removeprefix(_BOM).strip().replace(b"\n", b" ")


class Spool:
    """The writer's side. Any thread may append; a second writer, in this process or another, is refused."""

    def __init__(self, directory: str | Path, segment_size: int = SEGMENT_SIZE) -> None:
        self.directory = Path(directory)
        self._segment_size = segment_size
        self._writing = threading.Lock()
        self._torn = False  # whether a write has failed, and what it left is still there
        self._cursor: Any = None
        self._pinned = False  # whether the cursor and the end of the records count together
        self._closed = False
        self._files: dict[str, int] = {}
        self.shortage = ""
        """What was found missing of what had been acknowledged, until it is accepted."""
        try:
            with self._failing():
                private_folder(self.directory, "lock")
                self._lock()
                self._cursor, pinned = self._read_cursor()
                self._pinned = pinned is not None
                shortage = self._shortage(pinned)
                self._position = self._recovered(pinned) if shortage is None else self._behind(*shortage)
                self._lines = count_lines(segment_path(self.directory, self._position.segment))
                with suppress(FileNotFoundError):
                    self.shortage = (self.directory / "short").read_text()
                self._files["mark"] = os.open(mark_path(self.directory), os.O_WRONLY | os.O_CREAT, FILE)
                self._move_mark(self._position, self._lines)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Spool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def position(self) -> Position:
        """The end of the durable records."""
        return self._position

    @property
    def finished(self) -> bool:
        return is_finished(self.directory)

    def accept_shortage(self) -> None:
        """Go on without the missing records."""
        self.shortage = ""
        (self.directory / "short").unlink(missing_ok=True)

    @property
    def cursor(self) -> Any:
        """The receiver's cursor (JSON), or None."""
        return self._cursor

    @cursor.setter
    def cursor(self, cursor: Any) -> None:
        """Set a cursor that does not depend on which records came."""
        with self._writing, self._failing():
            self._write_cursor(cursor, None)

    def append(self, records: Iterable[bytes], cursor: Any = None) -> int:
        """Add records: when it returns they are on disk, and readers see them. Gives their number; blank ones are none.

        With a `cursor` the two count together: should the process die before both are written, neither is.
        """
        lines = [line + b"\n" for record in records if (line := one_line(record))]
        with self._writing, self._failing():
            if lines and self.finished:
                raise StreamError(
                    f"the spool {self.directory} is finished: nothing can be added\n"
                    "hint: a new input needs a directory of its own"
                )
            if cursor is not None and lines and not self._pinned:  # the first time: where a crash would lead back to
                self._write_cursor(self._cursor, self._position)
            position, held = self._write(lines)
            if cursor is not None or (self._pinned and lines):
                self._write_cursor(self._cursor if cursor is None else cursor, position)
            if lines:
                self._move_mark(position, held)
            self._position, self._lines = position, held
        return len(lines)

    def finish(self) -> None:
        """Declare that nothing more will come."""
        with self._writing, self._failing():
            self._replace("end", b"")

    def close(self) -> None:
        """Release the lock for another writer. Appended records stay."""
        with self._writing:
            self._closed = True
            while self._files:
                os.close(self._files.popitem()[1])

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Note a failed write, whose bytes on disk are unknown: the next write cuts them off first."""
        if self._closed:
            raise StreamError(f"the spool {self.directory} is closed")
        acknowledged = self._cursor, self._pinned
        try:
            if self._torn:
                self._mend()
            yield
        except OSError as error:
            self._torn = True
            self._cursor, self._pinned = acknowledged
            raise StreamError(
                f"cannot write the spool {self.directory}: {error.strerror or error}\n"
                "hint: the directory must be writable and have room for what comes in until it is answered"
            ) from None

    def _mend(self) -> None:
        """Go back to what was acknowledged: what was refused is gone, so that it can be sent again."""
        if "segment" in self._files:
            os.close(self._files.pop("segment"))
        sizes = {segment: size for segment, size in self._sizes().items() if segment < self._position.segment}
        self._replace("sizes.json", json.dumps(sizes).encode())
        if (self.directory / "cursor.json").exists():
            self._write_cursor(self._cursor, self._position if self._pinned else None)
        self._recovered(self._position)
        self._move_mark(self._position, self._lines)
        self._torn = False

    def _lock(self) -> None:
        self._files["lock"] = os.open(self.directory / "lock", os.O_RDWR | os.O_CREAT, FILE)
        try:
            fcntl.flock(self._files["lock"], fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StreamError(
                f"the spool {self.directory} is being written by another run\n"
                "hint: end that run, or give this one a directory of its own"
            ) from None

    def _read_cursor(self) -> tuple[Any, Position | None]:
        path = self.directory / "cursor.json"
        try:
            data = json.loads(path.read_bytes())
            return data["cursor"], None if data["position"] is None else Position(*data["position"])
        except FileNotFoundError:
            return None, None
        except (ValueError, KeyError, TypeError):
            raise StreamError(
                f"{path} is damaged\nhint: without it the source is asked from its beginning: remove the file for that"
            ) from None

    def _shortage(self, pinned: Position | None) -> tuple[Position, str] | None:
        """Return how far records were acknowledged, and a description of missing ones, if any are."""
        (promised, lines), last = promise(self.directory), last_position(self.directory)
        if pinned is not None and pinned > promised:
            promised, lines = pinned, 0
        there = 0 if last.segment < promised.segment else last.at
        missing = lines - count_lines(segment_path(self.directory, promised.segment))
        if promised > last:
            return promised, _short(self.directory, there, promised.at, missing)
        for segment, size in self._sizes().items():
            path = segment_path(self.directory, segment)
            if path.exists() and path.stat().st_size < size:
                return last, _short(self.directory, path.stat().st_size, size, 0)
        return None

    def _behind(self, promised: Position, shortage: str) -> Position:
        """Begin a segment behind all acknowledged records, with a note of what is missing."""
        self._replace("short", shortage.encode())
        self._replace("sizes.json", b"{}")
        for segment in (promised.segment, promised.segment + 1):
            with segment_path(self.directory, segment).open("ab") as file:
                os.fsync(file.fileno())
        position = Position(promised.segment + 1)
        if self._pinned:
            self._write_cursor(self._cursor, position)
        self._sync_directory()
        return position

    def _sizes(self) -> dict[int, int]:
        """The sizes of segments that nothing is added to any more."""
        try:
            said = json.loads((self.directory / "sizes.json").read_bytes())
            return {int(segment): int(size) for segment, size in said.items()}
        except (FileNotFoundError, ValueError, AttributeError):
            return {}

    def _recovered(self, pinned: Position | None) -> Position:
        """Cut off the lines that no reader can have seen and that will come again; sync the rest."""
        last = last_position(self.directory)
        if pinned is not None and pinned < last:
            for segment in segments(self.directory):
                if segment > pinned.segment:
                    segment_path(self.directory, segment).unlink()
            last = pinned
        path = segment_path(self.directory, last.segment)
        if path.exists():
            with path.open("r+b") as file:
                file.truncate(last.at)
                last = Position(last.segment, whole_lines(file, last.at))
                file.truncate(last.at)
                os.fsync(file.fileno())
        self._sync_directory()
        return last

    def _write(self, lines: list[bytes]) -> tuple[Position, int]:
        """Where the lines end, and how many their last segment has."""
        segment, at, held = self._position.segment, self._position.at, self._lines
        group: list[bytes] = []
        size = at
        for line in lines:
            if size and size + len(line) > self._segment_size:
                self._write_group(segment, at, group)
                self._close_segment(segment, size)
                segment, at, size, held, group = segment + 1, 0, 0, 0, []
            group.append(line)
            size += len(line)
            held += 1
        self._write_group(segment, at, group)
        return Position(segment, size), held

    def _write_group(self, segment: int, at: int, lines: list[bytes]) -> None:
        if not lines:
            return
        if "segment" not in self._files:
            path = segment_path(self.directory, segment)
            new = not path.exists()
            self._files["segment"] = os.open(path, os.O_WRONLY | os.O_CREAT, FILE)
            if new:
                self._sync_directory()
        data = memoryview(b"".join(lines))
        while data:
            written = os.pwrite(self._files["segment"], data, at)
            data, at = data[written:], at + written
        os.fsync(self._files["segment"])

    def _close_segment(self, segment: int, size: int) -> None:
        if "segment" in self._files:
            os.close(self._files.pop("segment"))
        there = set(segments(self.directory))
        sizes = {one: known for one, known in self._sizes().items() if one in there and one < segment}
        self._replace("sizes.json", json.dumps({**sizes, segment: size}).encode())

    def _move_mark(self, position: Position, lines: int) -> None:
        # Not synced: after a crash of the machine the mark is older than the truth until the spool is opened again.
        os.pwrite(self._files["mark"], mark_bytes(position, lines), 0)

    def _write_cursor(self, cursor: Any, position: Position | None) -> None:
        place = None if position is None else [position.segment, position.at]
        self._replace("cursor.json", json.dumps({"position": place, "cursor": cursor}).encode())
        self._cursor, self._pinned = cursor, position is not None

    def _replace(self, name: str, data: bytes) -> None:
        temporary = self.directory / f"{name}.new"
        private_file(temporary)
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self.directory / name)
        self._sync_directory()

    def _sync_directory(self) -> None:
        directory = os.open(self.directory, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


class SpoolSource(Source):
    """The reader's side. An offset is {"segment", "at": byte, "line": lines before it, through all segments}."""

    is_received = True

    def __init__(self, stream: str, directory: str | Path, finite: bool = False) -> None:
        self.stream = stream
        self.directory = Path(directory)
        self._finite = finite

    @property
    def finite(self) -> bool:
        return self._finite

    def begin(self) -> Offset:
        return _offset(Position(next(iter(segments(self.directory)), 0)), 0)

    def ahead(self, start: Offset, limit: Limit) -> Offset:
        end = durable_position(self.directory)
        at, line = _position(start), int(start["line"])
        if at > end and promise(self.directory)[0] != Position():
            raise StreamError(
                f"the spool {self.directory} ends before what was read of it\n"
                "hint: a spool belongs to its checkpoint: bring back both, or begin again with both removed"
            )
        room, records = limit.size, limit.records
        while at < end:
            size = end.at if at.segment == end.segment else self._size(at.segment)
            if at.at < size:
                with self._open(at.segment) as file:
                    first = line == start["line"]
                    cut = cut_lines(file, Cut(at.at, line), size, room, records, growing=True, at_least_one=first)[-1]
                room -= cut.at - at.at
                records = None if records is None else records - (cut.line - line)
                at, line = Position(at.segment, cut.at), cut.line
            if at.at < size or at.segment == end.segment or room <= 0 or records == 0:
                break
            at = Position(at.segment + 1)
        return _offset(at, line) if line > start["line"] else start

    def pieces(self, start: Offset, end: Offset) -> list[Piece]:
        at, stop, line = _position(start), _position(end), int(start["line"])
        pieces: list[Piece] = []
        while at < stop:
            size = stop.at if at.segment == stop.segment else self._size(at.segment)
            if at.at < size:
                where = {"segment": at.segment, "start": at.at, "stop": size, "line": line}
                pieces.append(Piece(self.stream, ONLY_SPLIT, len(pieces), where))
                if at.segment < stop.segment:
                    with self._open(at.segment) as file:
                        line += exactly(file, at.at, size - at.at).count(b"\n")
            at = Position(at.segment + 1)
        return pieces

    def read(self, piece: Piece, decode: Decode) -> Iterator[Event | MalformedRecord]:
        return self._from_segment(piece, lambda file, start, stop, line: read_range(file, start, stop, line, decode))

    def read_packed(self, piece: Piece, decode: Decode, links: LinkStream | None = None) -> Iterator[PackedRecord]:
        if not isinstance(decode, AsEvent | MappingDecoder):
            return self.read(piece, decode)
        return self._from_segment(piece, lambda file, start, stop, line: pack_range(file, start, stop, line, decode))

    def _from_segment(
        self, piece: Piece, read: Callable[[BinaryIO, int, int, int], Iterator[Read]]
    ) -> Iterator[Read | MalformedRecord]:
        """Yield the content of a piece: `read` is given its file, its bounds, and the number of its first line."""
        where = piece.where
        start, stop = where["start"], where["stop"]
        with self._open(where["segment"]) as file:
            there = max(start, min(stop, os.fstat(file.fileno()).st_size))
            yield from read(file, start, there, where["line"] + 1)
        if there < stop:
            reason = f"the spool has lost {stop - there} bytes of what was acknowledged"
            yield MalformedRecord(reason, None, json.dumps({"file": str(file.name), "size": there}))

    def ended(self, offset: Offset) -> bool:
        if not is_finished(self.directory):
            return False
        backlog = self.backlog(offset)
        return backlog.done == backlog.total

    def commit(self, offset: Offset) -> None:
        for segment in segments(self.directory):
            if segment < offset["segment"]:
                segment_path(self.directory, segment).unlink(missing_ok=True)

    def backlog(self, offset: Offset) -> Backlog:
        """In bytes of the segments that are on disk: those that were committed are gone from both numbers."""
        at, end = _position(offset), durable_position(self.directory)
        sizes = {segment: self._size(segment) for segment in segments(self.directory) if segment < end.segment}
        done = sum(size for segment, size in sizes.items() if segment < at.segment) + at.at
        return Backlog(done, sum(sizes.values()) + end.at)

    def waiting(self, offset: Offset) -> Backlog | None:
        return SpoolSource.backlog(self, offset)  # a spool that is being filled has no end, but it has a length

    def _size(self, segment: int) -> int:
        with self._open(segment) as file:
            return os.fstat(file.fileno()).st_size

    def _open(self, segment: int) -> BinaryIO:
        path = segment_path(self.directory, segment)
        try:
            return path.open("rb")
        except FileNotFoundError:
            raise StreamError(
                f"{path} is gone, but not all of it was answered\n"
                "hint: a spool belongs to its checkpoint: bring back both, or begin anew with both removed"
            ) from None


def _short(directory: Path, there: int, promised: int, missing: int) -> str:
    events = f"{missing:,} acknowledged events" if missing > 0 else "acknowledged events"
    said = f"the spool {directory} is shorter than promised: {there:,} of {promised:,} bytes; {events} are missing"
    return f"{said}\nhint: bring the folder back from a copy, or start again to go on without them"


def _offset(position: Position, line: int) -> Offset:
    return {"segment": position.segment, "at": position.at, "line": line}


def _position(offset: Offset) -> Position:
    return Position(int(offset["segment"]), int(offset["at"]))
