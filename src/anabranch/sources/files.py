"""Files as a stream: one file, the files of a directory, those of a pattern; once, or for as long as they grow.

An offset says which file is being read and how far, and lists the files of the batch that led to it with their cuts, so
that the batch can be read again, byte for byte, whatever has come meanwhile:

    {"number": 1, "name": "b.ndjson", "at": 4096, "line": 30, "done": false, "bytes": 9096,
     "files": [{"name": "a.ndjson", "kind": "lines", "prefix": "a.ndjson", "cuts": [[0, 0], [5000, 41]]},
               {"name": "b.ndjson", "kind": "lines", "prefix": "b.ndjson", "cuts": [[0, 0], [4096, 30]]}]}

Invariant: a file that was begun is finished before the next one is begun, and none is read twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, TypeAlias, TypeVar

from anabranch.errors import StreamError
from anabranch.formats.deadletter import MalformedRecord
from anabranch.model.event import Event
from anabranch.sources.base import ONLY_SPLIT, Backlog, Decode, Limit, Offset, Piece, Source
from anabranch.sources.documents import SUFFIXES as RDF_SUFFIXES
from anabranch.sources.documents import RdfKind, document_name, pack_csv_triples, pack_timed, rdf_kind, read_rdf
from anabranch.sources.filesystems import FileEntry, Place, entries, locate, opened
from anabranch.sources.lines import Cut, Records, Whole, cut_lines, read_range, read_whole, whole_kind
from anabranch.sources.rowgroups import cut_row_groups, pack_row_groups, read_row_groups

if TYPE_CHECKING:
    from anabranch.formats.rdf.tables import Reduced
    from anabranch.model.link_stream import LinkStream

FIRST_BATCH = 1 << 20
"""The first batch is small, so that the first answer comes fast."""

Read = TypeVar("Read")
Kind: TypeAlias = Whole | RdfKind | Literal["lines", "parquet"]

_CUT_BY_LINES = ("lines", "timed")
_SUFFIXES = (".ndjson", ".jsonl", ".json", ".parquet")
_COST_OF_A_FILE = 16 << 10  # keeps the number of files in a batch, and so an offset, within bounds
_COLUMNS = 4  # so many bytes of columns, as they are unpacked, cost what one byte of lines does
_LOOK_BACK = 3600 * 10**9
"""How much older than the newest file (in nanoseconds) a file of a watched directory may be when it appears: files that
are moved in keep the time at which they were written. Names are remembered for as long."""


@dataclass(frozen=True, slots=True)
class FileSource(Source):
    """The records of files, in the order of their names; when followed, a directory in the order of their times."""

    stream: str
    path: str
    follow: bool = False
    records_are_events: bool = True

    @property
    def finite(self) -> bool:
        return not self.follow

    def begin(self) -> Offset:
        place = locate(self.path)
        if not self.follow:
            self._require_files(place, self._entries(place))
        return {"number": -1, "name": "", "at": 0, "line": 0, "done": True, "bytes": 0, "files": [], "seen": {}}

    def ahead(self, start: Offset, limit: Limit) -> Offset:
        place = locate(self.path)
        found = self._entries(place)
        if not self.follow and start["number"] < 0:
            self._require_files(place, found)
        size = min(limit.size, FIRST_BATCH) if start["number"] < 0 else limit.size
        batch = _Batch(start, size, limit.records)
        for file in self._waiting(place, found, start):
            several = self._watches(place) or len(found) > 1
            if batch.full or not self._take(place, file, batch, several=several):
                break
        if not batch.files:
            return start
        return {**batch.offset(), "seen": self._seen(place, found, start, batch)}

    def pieces(self, start: Offset, end: Offset) -> list[Piece]:
        place = locate(self.path)
        found: list[Piece] = []
        first = end["number"] - len(end["files"]) + 1
        for number, file in enumerate(end["files"], first):
            for cut, following in pairwise(file["cuts"]):
                if (number, cut[0]) < (start["number"], start["at"]):
                    continue
                where = {
                    "number": number,
                    "base": place.base,
                    "path": place.path(file["name"]),
                    "shown": place.shown(file["name"]),
                    "kind": file["kind"],
                    "prefix": file["prefix"],
                    "from": cut,
                    "to": following,
                }
                found.append(Piece(self.stream, ONLY_SPLIT, len(found), where))
        return found

    def read(self, piece: Piece, decode: Decode) -> Iterator[Event | MalformedRecord]:
        return _from_file(piece.where, lambda file: self._records(file, piece.where, decode))

    def read_packed(
        self, piece: Piece, decode: Decode, links: LinkStream | None = None
    ) -> Iterator[bytes | Reduced | Event | MalformedRecord]:
        where = piece.where
        if not self.records_are_events:
            return self.read(piece, decode)
        document = document_name(self.stream, where)
        match where["kind"]:
            case "timed":
                return _from_file(where, lambda file: pack_timed(file, where, document))
            case "triples-csv":
                return _from_file(where, lambda file: pack_csv_triples(file, document))
            case "parquet":
                start, stop = Cut(*where["from"]), Cut(*where["to"])
                return _from_file(where, lambda file: pack_row_groups(file, start, stop.at, document, links))
        return self.read(piece, decode)

    def ended(self, offset: Offset) -> bool:
        if self.follow or not offset["done"] or offset["number"] < 0:
            return False
        place = locate(self.path)
        return not any(file.name > offset["name"] for file in self._entries(place))

    def backlog(self, offset: Offset) -> Backlog:
        if self.follow:
            return Backlog(offset["bytes"], None)
        total = sum(file.size for file in self._entries(locate(self.path)))
        return Backlog(offset["bytes"], max(total, offset["bytes"]))

    # --- what waits ---------------------------------------------------------------------------------------------------

    @property
    def _suffixes(self) -> tuple[str, ...]:
        return (*_SUFFIXES, *RDF_SUFFIXES) if self.records_are_events else (*_SUFFIXES, ".csv")

    def _entries(self, place: Place) -> list[FileEntry]:
        return entries(place, self._suffixes)

    def _require_files(self, place: Place, found: list[FileEntry]) -> None:
        if found:
            return
        if place.kind == "pattern":
            raise StreamError(f"no file matches {self.path}\nhint: * and ? do not match a slash, nor a leading . or _")
        hint = f"files of events end with {', '.join(self._suffixes)}, perhaps followed by .gz"
        raise StreamError(f"{self.path} holds no events\nhint: {hint}")

    def _waiting(self, place: Place, found: list[FileEntry], start: Offset) -> Iterator[FileEntry]:
        """The files that come next: the one that was begun, then those that were not."""
        if not start["done"]:
            begun = next((file for file in found if file.name == start["name"]), None)
            if begun is None:
                raise StreamError(f"{place.shown(start['name'])} was being read and has gone")
            yield begun
        if self._watches(place):
            oldest = _horizon(start["seen"])
            # A file without a byte is one that somebody has just opened.
            new = (file for file in found if file.size and file.name not in start["seen"] and file.modified >= oldest)
            yield from sorted(new, key=lambda file: (file.modified, file.name))
        else:
            yield from (file for file in found if file.name > start["name"])

    def _watches(self, place: Place) -> bool:
        """Whether files come; a single file that is followed grows instead."""
        return self.follow and place.kind != "file"

    def _seen(self, place: Place, found: list[FileEntry], start: Offset, batch: _Batch) -> dict[str, int]:
        """The names that a watched directory remembers, with their times: all that could be taken for new."""
        if not self._watches(place):
            return {}
        now = time.time_ns()  # a file dated in the future must not make all others old
        known = {**start["seen"], **{file["name"]: 0 for file in batch.files}}
        known |= {file.name: min(file.modified, now) for file in found if file.name in known}
        oldest = _horizon(known)
        return {name: modified for name, modified in known.items() if modified >= oldest}

    # --- what is taken ------------------------------------------------------------------------------------------------

    def _take(self, place: Place, file: FileEntry, batch: _Batch, *, several: bool) -> bool:
        """Add what fits of a file to the batch; False when nothing more fits, and no other file before its rest."""
        shown = place.shown(file.name)
        grows = self.follow and place.kind == "file"
        begun = batch.begun(file.name)
        with opened(place.base, place.path(file.name), shown) as content:
            kind = begun or self._kind(content, file.name, shown)
            if grows and kind not in _CUT_BY_LINES:
                hint = "plain NDJSON grows line by line, as timed triples do; of other files, follow their directory"
                raise StreamError(f"{shown} cannot be followed\nhint: {hint}")
            with _naming(shown):
                share = _share(content, kind, file.size, batch, grows)
        if not share.done and len(share.cuts) == 1:
            return False
        batch.add(file.name, kind, file.name if several and place.kind != "file" else "", share)
        return share.done

    def _kind(self, content: BinaryIO, name: str, shown: str) -> Kind:
        if name.endswith(".parquet"):
            return "parquet"
        with _naming(shown):
            if self.records_are_events and (rdf := rdf_kind(content, name)) is not None:
                return rdf
            kind = whole_kind(content, name)
        if kind == "csv" and self.records_are_events:
            raise StreamError(
                f"{shown} holds records, not events\n"
                "hint: say what they mean with LOAD STREAM FROM ...; a table of triples has the columns s, p, o and at"
            )
        return kind or "lines"

    def _records(self, content: BinaryIO, where: Mapping[str, Any], decode: Decode) -> Records:
        number = where["number"]
        start, stop = Cut(*where["from"]), Cut(*where["to"])

        def sequence_of(record: int) -> str:
            return f"{number}-{record}" if number else str(record)

        match where["kind"]:
            case "lines":
                return read_range(content, start.at, stop.at, start.line + 1, decode, sequence_of)
            case "parquet":
                document = document_name(self.stream, where)
                events = self.records_are_events
                return read_row_groups(content, start, stop.at, decode, sequence_of, events=events, document=document)
            case "timed" | "timed-gzip" | "triples-csv" | "nquads" | "trig" | "jsonld" as kind:
                return read_rdf(content, kind, where, document_name(self.stream, where))
            case kind:
                return read_whole(content, kind, decode, sequence_of)


def _from_file(
    where: Mapping[str, Any], read: Callable[[BinaryIO], Iterator[Read]]
) -> Iterator[Read | MalformedRecord]:
    """What is read from the file of a piece; malformed records of one of several files say which."""
    with opened(where["base"], where["path"], where["shown"]) as file, _naming(where["shown"]):
        for record in read(file):
            if isinstance(record, MalformedRecord) and where["prefix"]:
                yield MalformedRecord(f"{where['prefix']}: {record.reason}", record.line, record.raw)
            else:
                yield record


@dataclass(frozen=True, slots=True)
class _Share:
    """What of a file goes into a batch: the cuts, what they count against the limits, and the file's bytes."""

    cuts: list[Cut]
    done: bool
    cost: int
    lines: int
    size: int


def _share(content: BinaryIO, kind: Kind, size: int, batch: _Batch, grows: bool) -> _Share:
    start = batch.cut
    match kind:
        case "lines" | "timed":
            if size < start.at:
                raise StreamError(
                    f"{start.at} bytes were read, and now there are {size}: it was cut off or replaced\n"
                    "hint: a file that is being read may only grow"
                )
            first = not batch.files
            cuts = cut_lines(content, start, size, batch.size, batch.records, growing=grows, at_least_one=first)
            read = cuts[-1].at - start.at
            return _Share(cuts, cuts[-1].at == size and not grows, read, cuts[-1].line - start.line, read)
        case "parquet":
            cuts, groups, cost = cut_row_groups(content, start, batch.size * _COLUMNS, batch.records)
            stop = cuts[-1].at
            read = size * stop // groups - size * start.at // groups if groups else size
            return _Share(cuts, stop == groups, cost // _COLUMNS, cuts[-1].line - start.line, read)
        case _:
            # How many records it has is known when it has been read: it is the last one of a batch that counts them.
            return _Share([start, Cut(1, 0)], True, size, batch.records or 0, size)


class _Batch:
    """A batch while it is being filled, from the offset where it starts to the one where it ends."""

    def __init__(self, start: Offset, size: int, records: int | None) -> None:
        self.size = size
        self.records = records
        self.files: list[dict[str, Any]] = []
        self.cut = Cut() if start["done"] else Cut(start["at"], start["line"])
        self._number: int = start["number"]
        self._done: bool = start["done"]
        self._last = start["files"][-1] if start["files"] else {}
        self._bytes: int = start["bytes"]

    @property
    def full(self) -> bool:
        return self.size <= 0 or self.records == 0

    def begun(self, name: str) -> Kind | None:
        """The kind of a file that the batch before has begun; None for one that is new."""
        return self._last["kind"] if not self._done and self._last["name"] == name else None

    def add(self, name: str, kind: Kind, prefix: str, share: _Share) -> None:
        if self._done:
            self._number += 1
        self._last = {"name": name, "kind": kind, "prefix": prefix, "cuts": [[cut.at, cut.line] for cut in share.cuts]}
        self.files.append(self._last)
        self._done = share.done
        self._bytes += share.size
        self.size -= max(share.cost, _COST_OF_A_FILE)
        self.records = None if self.records is None else max(0, self.records - share.lines)
        self.cut = Cut() if share.done else share.cuts[-1]

    def offset(self) -> Offset:
        at, line = self._last["cuts"][-1]
        place = {"number": self._number, "name": self._last["name"], "at": at, "line": line, "done": self._done}
        return {**place, "bytes": self._bytes, "files": self.files}


def _horizon(seen: Mapping[str, int]) -> int:
    return max(seen.values(), default=_LOOK_BACK) - _LOOK_BACK


@contextmanager
def _naming(shown: str) -> Iterator[None]:
    try:
        yield
    except StreamError as error:
        raise StreamError(f"{shown}: {error}") from None
