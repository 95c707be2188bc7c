"""Followed files: one file as it grows, a directory or a pattern as files come to it and grow.

An offset holds, for every present file, how far it was read and how it is recognised; and it lists the files of the
batch that led to it, so that the batch can be read again whatever has happened to the files meanwhile:

    {"followed": 1, "single": false, "batch": 2, "next": 1, "bytes": 5000,
     "known": {"a.ndjson": [0, "lines", 5000, 41, true, "51c9...", 1311768, [5000, 1714557600000, 1714557600000]]},
     "files": [{"name": "a.ndjson", "number": 0, "kind": "lines", "prefix": "a.ndjson", "cuts": [[0, 0], [5000, 41]],
                "inode": 1311768, "size": 5000, "mark": "51c9..."}]}

A file is recognised by its inode and by a fingerprint of the part that was read. So a renamed file is read on under its
new name, even when that name is not followed (a rotated log); a file whose content was replaced is read from its
beginning. A file that cannot be read is set aside: a note in `files` becomes its dead letter.

Invariant: every byte of a file is read once, or a dead letter says that it was not.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import astuple, dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from anabranch.errors import StreamError
from anabranch.formats.deadletter import MalformedRecord
from anabranch.model.event import Event
from anabranch.sources.base import ONLY_SPLIT, Backlog, Decode, Limit, Offset, PackedRecord, Piece
from anabranch.sources.files import CUT_BY_LINES, FIRST_BATCH, FileKind, Files, Room, naming, share_of
from anabranch.sources.filesystems import (
    FileEntry,
    FileGoneError,
    FileSystemError,
    FoundPath,
    entries,
    entry_at,
    files_beside,
    locate,
    opened,
)
from anabranch.sources.fingerprints import FEWEST, begin_alike, fingerprint, fingerprint_at
from anabranch.sources.lines import Cut, exactly, explained, read_whole, unpacked
from anabranch.sources.reach import Reach
from anabranch.sources.rowgroups import check_columns

if TYPE_CHECKING:
    from anabranch.planner.link_streams import LinkStream

Read = TypeVar("Read")

SETTLED = 2 * 10**9
"""A file that was not written to for so long (in nanoseconds) is taken for complete: what cannot be read will not
become readable."""

_GIVEN_UP = 3600 * 10**9
"""Half a line is waited for as long as that: who writes by blocks leaves half lines until the next block."""

_FORMAT = 1
_REFUSED, _NOTE = "refused", "note"
_MEMORY = 3600
"""How long, in seconds, a file that has gone is remembered: one that comes back meanwhile is not read again."""

_MOST_RETIRED = 4
_BLOCK = 1 << 20


@dataclass(slots=True)
class KnownFile:
    """How far a file was read.

    `mark` is the fingerprint of the part that was read, `stamp` its entry's at the last look; a `retired` file is read
    on under a name that is not followed; `gone` is the second since when it is missing.
    """

    number: int
    kind: str
    at: int
    line: int
    done: bool
    mark: str
    inode: int
    stamp: list[int]
    retired: bool = False
    gone: int = 0

    @property
    def marked(self) -> int:
        """How many bytes the fingerprint covers."""
        return self.at if self.kind in CUT_BY_LINES else self.stamp[0]

    def packed(self) -> list[Any]:
        packed = list(astuple(self))
        return packed if self.retired or self.gone else packed[:-2]


class FollowedFiles(Files):
    """The records of files and of all files that come later: new files in the order of their times."""

    __slots__ = ()

    @property
    def finite(self) -> bool:
        return False

    def begin(self) -> Offset:
        single = locate(self.path, self.reach).kind == "file"
        return {"followed": _FORMAT, "single": single, "batch": 0, "next": 0, "bytes": 0, "known": {}, "files": []}

    def ahead(self, start: Offset, limit: Limit) -> Offset:
        self._refuse_other(start)
        place = locate(self.path, self.reach, gone=start["single"])
        batch = _FollowedBatch(start, limit)
        found = {entry.name: entry for entry in entries(place, self.suffixes, identified=True)}
        if place.is_local:
            _trace_moves(place, found, batch)
        for name in sorted(batch.known, key=lambda name: batch.known[name].number):
            if batch.room.full:
                break
            if name in batch.known:  # and was not given up meanwhile
                entry = _entry_of(place, found, name, batch.known[name])
                if entry is None:
                    self._miss(name, batch)
                else:
                    self._look_again(place, entry, batch)
        new = [entry for name, entry in found.items() if name not in batch.known]
        for entry in sorted(new, key=lambda entry: (entry.modified, entry.name)):
            if batch.room.full:
                break
            self._begin_file(place, entry, batch)
        return batch.offset() if batch.moved else start

    def pieces(self, start: Offset, end: Offset) -> list[Piece]:
        place = locate(self.path, self.reach, gone=end["single"])
        files = end["files"] if end["batch"] == start["batch"] + 1 else _between(start, end)
        found: list[Piece] = []
        for file in files:
            where = {
                **file,
                "base": place.base,
                "path": place.path(file["name"]),
                "shown": place.shown(file["name"]),
                "single": end["single"],
            }
            for cut, following in pairwise(where.pop("cuts")):
                found.append(Piece(self.stream, ONLY_SPLIT, len(found), {**where, "from": cut, "to": following}))
        return found

    def read(self, piece: Piece, decode: Decode) -> Iterator[Event | MalformedRecord]:
        return _set_aside(piece, self.reach, lambda one: Files.read(self, one, decode))

    def read_packed(self, piece: Piece, decode: Decode, links: LinkStream | None = None) -> Iterator[PackedRecord]:
        return _set_aside(piece, self.reach, lambda one: Files.read_packed(self, one, decode, links))

    def backlog(self, offset: Offset) -> Backlog:
        return Backlog(offset["bytes"], None)

    def _refuse_other(self, start: Offset) -> None:
        if start.get("followed") != _FORMAT:
            raise StreamError(
                f"{self.path} was read in another way by the runs before, not followed or by another version\n"
                "hint: begin with a new checkpoint"
            )

    # --- what has become of files that were read ----------------------------------------------------------------------

    def _miss(self, name: str, batch: _FollowedBatch) -> None:
        """Note that a file is missing. It is no error; the file is remembered for a while, in case it comes back."""
        known, now = batch.known[name], int(time.time())
        if not known.gone:
            if known.kind != _REFUSED and not known.retired and (batch.single or not known.done):
                batch.note(name, f"has gone: {known.at} of its bytes were read", known.stamp[0])
            batch.known[name] = replace(known, gone=now)
            batch.moved = True
        elif now - known.gone >= _MEMORY:
            batch.forget(name)

    def _look_again(self, place: FoundPath, entry: FileEntry, batch: _FollowedBatch) -> None:
        known = batch.known[entry.name]
        if known.stamp == entry.stamp and known.inode == entry.inode and (known.done or known.kind == _REFUSED):
            if known.gone:
                batch.know(entry.name, replace(known, gone=0))
            return
        if known.kind == _REFUSED:
            batch.forget(entry.name)  # it is treated as a new file
            return
        mark = fingerprint_at(place, entry, known.marked)
        if known.kind in CUT_BY_LINES:
            if mark == known.mark:
                self._read_on(place, entry, known, batch)
            elif not self._was_cut_off(place, entry, known, batch):
                self._is_another(place, entry, known, batch)
        elif mark == known.mark and entry.size == known.marked:
            if not known.done:
                self._read_on(place, entry, known, batch)
            elif known.gone:
                batch.know(entry.name, replace(known, gone=0, stamp=entry.stamp, inode=entry.inode))
        elif known.done and mark is not None and begin_alike(mark, known.mark):
            reason = f"has changed since all of its {known.marked} bytes were read; the change is not read"
            batch.note(entry.name, reason, entry.size)
            mark = fingerprint_at(place, entry, entry.size) or ""
            batch.know(entry.name, replace(known, mark=mark, stamp=entry.stamp, inode=entry.inode, gone=0))
        else:
            self._is_another(place, entry, known, batch)

    def _was_cut_off(self, place: FoundPath, entry: FileEntry, known: KnownFile, batch: _FollowedBatch) -> bool:
        """Return whether a file has only lost its end: then it is read on from its last whole line."""
        if not FEWEST <= entry.size < known.at or entry.inode != known.inode:
            return False
        mark = fingerprint_at(place, entry, entry.size)
        if mark is None or not begin_alike(mark, known.mark):
            return False
        with opened(*_opening(place, entry.name)) as content:
            at, line = _whole_lines(content, entry.size)
            mark = fingerprint(content, at)
        reason = f"was cut off: {known.at} of its bytes were read, and now there are {entry.size}; read on from there"
        batch.note(entry.name, reason, entry.size)
        batch.know(entry.name, replace(known, at=at, line=line, mark=mark, stamp=entry.stamp, done=at == entry.size))
        return True

    def _is_another(self, place: FoundPath, entry: FileEntry, known: KnownFile, batch: _FollowedBatch) -> None:
        """Handle a name that is now another file's: that file is new. A copy may have the rest of the old one."""
        copy = _copy_beside(place, entry.name, known, batch) if place.is_local else None
        batch.forget(entry.name)
        if copy is not None:
            batch.retire(copy.name, replace(known, inode=copy.inode, stamp=[], done=False))
            self._read_on(place, copy, batch.known[copy.name], batch)
        elif not known.gone:
            reason = f"was replaced or rewritten after {known.marked} of its bytes were read; read from its beginning"
            batch.note(entry.name, reason, entry.size)

    # --- what is taken ------------------------------------------------------------------------------------------------

    def _read_on(self, place: FoundPath, entry: FileEntry, known: KnownFile, batch: _FollowedBatch) -> None:
        with self._setting_aside(place, entry, batch), opened(*_opening(place, entry.name)) as content:
            self._take(place, entry, known, content, batch)

    def _begin_file(self, place: FoundPath, entry: FileEntry, batch: _FollowedBatch) -> None:
        """Begin a new file. An empty file may just have been opened by its writer."""
        shown = place.shown(entry.name)
        if not entry.is_file:
            batch.set_aside(entry, "is a pipe or a device, which cannot be read twice")
            return
        if not entry.size:
            return
        with self._setting_aside(place, entry, batch), opened(*_opening(place, entry.name)) as content:
            kind = self.kind_of(content, entry.name, shown)
            if batch.single and kind not in CUT_BY_LINES:
                hint = "plain NDJSON grows line by line, as timed triples do; of other files, follow their directory"
                raise StreamError(f"{shown} cannot be followed\nhint: {hint}")
            if _is_complete(content, kind, entry, events=self.records_are_events):
                new = KnownFile(batch.number, kind, 0, 0, False, "", entry.inode, [])
                self._take(place, entry, new, content, batch)

    def _take(
        self, place: FoundPath, entry: FileEntry, known: KnownFile, content: BinaryIO, batch: _FollowedBatch
    ) -> None:
        """Add the part of a file that fits to the batch."""
        kind: Any = known.kind
        growing = kind in CUT_BY_LINES and not self._ends(content, entry, known, batch)
        with naming(place.shown(entry.name)):
            share = share_of(content, kind, entry.size, Cut(known.at, known.line), batch.room, growing=growing)
        if len(share.cuts) == 1 and not share.done:
            return
        stop = share.cuts[-1]
        new = replace(known, at=stop.at, line=stop.line, done=share.done, inode=entry.inode, stamp=entry.stamp, gone=0)
        if new == replace(known, stamp=new.stamp):
            return
        new.mark = fingerprint(content, new.marked)
        batch.room.take(share)
        batch.size += share.size
        batch.know(entry.name, new)
        if len(share.cuts) > 1:
            prefix = "" if batch.single else entry.name
            cuts = [[cut.at, cut.line] for cut in share.cuts]
            batch.files.append(_file(entry.name, new, prefix, cuts))

    def _ends(self, content: BinaryIO, entry: FileEntry, known: KnownFile, batch: _FollowedBatch) -> bool:
        """Whether the last line of a file is complete without its newline."""
        if batch.single and not known.retired:
            return False
        if _is_settled(entry, _GIVEN_UP):
            return True
        last = _last_line(content, entry.size)
        return _is_json(last) if known.kind == "lines" else last.endswith(b".") and _is_settled(entry)

    @contextmanager
    def _setting_aside(self, place: FoundPath, entry: FileEntry, batch: _FollowedBatch) -> Iterator[None]:
        """Set a file that cannot be read aside once it is settled; until then it may be half written."""
        try:
            yield
        except FileGoneError:
            return  # the next look will miss it
        except FileSystemError:
            raise
        except StreamError as error:
            if batch.single:
                raise
            if _is_settled(entry):
                batch.set_aside(entry, _reason(error, place.shown(entry.name)))


class _FollowedBatch:
    """A batch while it is being filled."""

    def __init__(self, start: Offset, limit: Limit) -> None:
        self.single: bool = start["single"]
        self.known = {name: KnownFile(*packed) for name, packed in start["known"].items()}
        self.room = Room(limit.size if start["batch"] else min(limit.size, FIRST_BATCH), limit.records)
        self.files: list[dict[str, Any]] = []
        self.size: int = start["bytes"]
        self.moved = False
        self.number: int = start["next"]
        self._batch: int = start["batch"]

    def know(self, name: str, known: KnownFile) -> None:
        self.known[name] = known
        self.number = max(self.number, known.number + 1)
        self.moved = True

    def forget(self, name: str) -> None:
        del self.known[name]
        self.moved = True

    def retire(self, name: str, known: KnownFile) -> None:
        """Know a file under a name that is not followed. Of several such files, the newest may still grow."""
        self.know(name, replace(known, retired=True, gone=0))
        retired = [one for one, said in self.known.items() if said.retired]
        for one in sorted(retired, key=lambda one: self.known[one].number)[:-_MOST_RETIRED]:
            if self.known[one].done:
                self.forget(one)

    def note(self, name: str, reason: str, size: int) -> None:
        """Add a dead letter about a file."""
        reason = f"{name}: {reason}"
        self.files.append({"name": name, "kind": _NOTE, "reason": reason, "size": size, "cuts": [[0, 0], [1, 0]]})
        self.moved = True

    def set_aside(self, entry: FileEntry, reason: str) -> None:
        self.note(entry.name, f"{reason}; the file is set aside", entry.size)
        self.know(entry.name, KnownFile(-1, _REFUSED, 0, 0, False, "", entry.inode, entry.stamp))

    def offset(self) -> Offset:
        return {
            "followed": _FORMAT,
            "single": self.single,
            "batch": self._batch + 1,
            "next": self.number,
            "bytes": self.size,
            "known": {name: known.packed() for name, known in self.known.items()},
            "files": self.files,
        }


# --- files under other names ------------------------------------------------------------------------------------------


def _entry_of(place: FoundPath, found: Mapping[str, FileEntry], name: str, known: KnownFile) -> FileEntry | None:
    """Return the present entry of a file that was read."""
    return found.get(name) or (entry_at(place.path(name), name) if known.retired else None)


def _trace_moves(place: FoundPath, found: Mapping[str, FileEntry], batch: _FollowedBatch) -> None:
    """Find the present names of files that were read."""
    by_inode = {entry.inode: entry for entry in found.values()}
    moves: dict[str, FileEntry] = {}
    for name, known in batch.known.items():
        here = _entry_of(place, found, name, known)
        if known.kind == _REFUSED or (here is not None and here.inode == known.inode) or (known.gone and here is None):
            continue
        for entry in [by_inode[known.inode]] if known.inode in by_inode else _beside(place, name, known.inode):
            there = batch.known.get(entry.name)
            is_new = there is None or there.inode != entry.inode
            if is_new and fingerprint_at(place, entry, known.marked) == known.mark:
                moves[name] = entry
    moved = {name: batch.known.pop(name) for name in moves}
    for name, entry in moves.items():
        if entry.name in found:
            batch.know(entry.name, replace(moved[name], retired=False, gone=0))
        else:
            batch.retire(entry.name, moved[name])
            if not moved[name].retired:
                _find_between(place, name, entry, batch)


def _find_between(place: FoundPath, name: str, old: FileEntry, batch: _FollowedBatch) -> None:
    """Find the files of a log that was rotated more than once since the last look.

    They lie between the file that was read and the file that has its name now: their names are its name with an ending,
    and they are newer.
    """
    known = {one.inode for one in batch.known.values()}
    _, slash, short = name.rpartition("/")
    folder = name.removesuffix(short) if slash else ""
    for near in reversed(files_beside(place.path(name))):
        if near.inode in known or near.modified < old.modified or not near.name.startswith((f"{short}.", f"{short}-")):
            continue
        entry = replace(near, name=folder + near.name)
        if entry.name.endswith((".gz", ".bz2", ".xz", ".zst")):
            reason = f"was packed before it was read; it is newer than what was read of {short}"
            batch.note(entry.name, reason, near.size)
        else:
            begun = fingerprint_at(place, entry, 0) or ""
            kind = batch.known[old.name].kind
            batch.retire(entry.name, KnownFile(batch.number, kind, 0, 0, False, begun, entry.inode, []))


def _beside(place: FoundPath, name: str, inode: int) -> list[FileEntry]:
    """The file with an inode, in the directory of another one."""
    folder, slash, _ = name.rpartition("/")
    near = files_beside(place.path(name))
    return [replace(entry, name=folder + slash + entry.name) for entry in near if entry.inode == inode][:1]


def _copy_beside(place: FoundPath, name: str, known: KnownFile, batch: _FollowedBatch) -> FileEntry | None:
    """The newest file beside another one that begins with all that was read of it: a log is copied, then emptied."""
    if known.kind not in CUT_BY_LINES or not known.at:
        return None
    folder, slash, _ = name.rpartition("/")
    for near in files_beside(place.path(name)):
        entry = replace(near, name=folder + slash + near.name)
        if entry.name not in batch.known and fingerprint_at(place, entry, known.at) == known.mark:
            return entry
    return None


def _between(start: Offset, end: Offset) -> list[dict[str, Any]]:
    """Return the parts of still known files that were read between two offsets with others in between."""
    before = {packed[0]: KnownFile(*packed) for packed in start["known"].values()}
    files = []
    for name, packed in end["known"].items():
        known = KnownFile(*packed)
        if known.kind == _REFUSED:
            continue
        old = before.get(known.number)
        begun = [0, 0] if old is None else [old.at, old.line]
        if begun[0] < known.at:
            cuts = [begun, [known.at, known.line]]
            files.append(_file(name, known, "" if end["single"] else name, cuts))
    return sorted(files, key=lambda file: int(file["number"]))


def _file(name: str, known: KnownFile, prefix: str, cuts: list[list[int]]) -> dict[str, Any]:
    """A file of a batch, in an offset."""
    return {
        "name": name,
        "number": known.number,
        "kind": known.kind,
        "prefix": prefix,
        "cuts": cuts,
        "inode": known.inode,
        "size": known.marked,
        "mark": known.mark,
    }


# --- reading ----------------------------------------------------------------------------------------------------------


def _set_aside(piece: Piece, reach: Reach, read: Callable[[Piece], Iterator[Read]]) -> Iterator[Read | MalformedRecord]:
    """Yield the content of a piece; a file that cannot be read yields, from there on, one malformed record."""
    where = piece.where
    if where["kind"] == _NOTE:
        yield _letter(where, where["reason"])
        return
    part = "" if where["kind"] not in CUT_BY_LINES else f" of the bytes {where['from'][0]} to {where['to'][0]}"
    lost = f"{where['name']}: it has gone or changed before it was read; nothing{part} is read"
    path = _path_now(where, reach)
    if path is None:
        yield _letter(where, lost)
        return
    try:
        yield from read(replace(piece, where={**where, "path": path}))
    except FileGoneError:
        yield _letter(where, lost)
    except FileSystemError:
        raise
    except StreamError as error:
        yield _letter(where, f"{where['name']}: {_reason(error, where['shown'])}; the rest of the file is set aside")


def _path_now(where: Mapping[str, Any], reach: Reach) -> str | None:
    """Return the path of a piece's file: its own, or the one beside it to which it was renamed since it was planned."""
    path, base = where["path"], where["base"]

    def is_it(path: str) -> bool:
        try:
            with opened(base, path, where["shown"], reach) as content:
                return bool(fingerprint(content, where["size"]) == where["mark"])
        except FileGoneError:
            return False
        except FileSystemError:
            raise
        except StreamError:  # it is shorter
            return False

    if is_it(path):
        return str(path)
    if not where["inode"]:
        return None
    folder = path.rpartition("/")[0]
    near = [f"{folder}/{entry.name}" for entry in files_beside(path) if entry.inode == where["inode"]]
    return next((one for one in near if is_it(one)), None)


def _letter(where: Mapping[str, Any], reason: str) -> MalformedRecord:
    return MalformedRecord(
        reason, None, json.dumps({"file": where["shown"], "size": where["size"]}, ensure_ascii=False)
    )


def _reason(error: StreamError, shown: str) -> str:
    """The first line of an error, without the file's name."""
    first = str(error).split("\n", 1)[0]
    return first.removeprefix(shown).removeprefix(":").strip()


# --- what a file looks like -------------------------------------------------------------------------------------------


def _opening(place: FoundPath, name: str) -> tuple[str, str, str, Reach]:
    return place.base, place.path(name), place.shown(name), place.reach


def _is_settled(entry: FileEntry, since: int = SETTLED) -> bool:
    """Return whether a file is no longer written to; a time in the future proves nothing."""
    return not 0 <= time.time_ns() - entry.modified < since


def _is_complete(content: BinaryIO, kind: FileKind, entry: FileEntry, *, events: bool) -> bool:
    """Return whether a new file can be read.

    A file whose format marks its end is refused when the end is missing; other files must be watched for a while.
    """
    match kind:
        case "lines" | "timed":
            return True
        case "parquet":
            check_columns(content, events=events)
            return True
        case "gzip" | "timed-gzip":
            _unpack(content)
            return True
        case "list":
            with explained():
                next(read_whole(content, "list", lambda record, sequence: None), None)
            return True
        case _:
            _unpack(content)
            return _is_settled(entry)


def _unpack(content: BinaryIO) -> None:
    """Read through compressed content, which is refused when it has no end."""
    with explained():
        file = unpacked(content)
        while file is not content and file.read(_BLOCK):
            pass


def _last_line(content: BinaryIO, size: int) -> bytes:
    """Return the text behind the last newline, if it is not too long."""
    tail = exactly(content, max(0, size - _BLOCK), min(size, _BLOCK))
    return tail[tail.rfind(b"\n") + 1 :].strip()


def _is_json(line: bytes) -> bool:
    """Return whether a line is a complete JSON object."""
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _whole_lines(content: BinaryIO, size: int) -> tuple[int, int]:
    """Return how many of a file's first bytes are whole lines, and the number of these lines."""
    at = end = lines = 0
    while at < size:
        block = exactly(content, at, min(_BLOCK, size - at))
        lines += block.count(b"\n")
        newline = block.rfind(b"\n")
        end = at + newline + 1 if newline >= 0 else end
        at += len(block)
    return end, lines
