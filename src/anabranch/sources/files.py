"""Files as a stream: one file, the files of a directory or of a pattern, each read once (`following` watches them).

An offset names the file that is being read and its position, and lists the files of its batch with their cuts, so that
the batch can be read again, byte for byte, even if files have come meanwhile:

    {"number": 1, "name": "b.ndjson", "at": 4096, "line": 30, "done": false, "bytes": 9096,
     "files": [{"name": "a.ndjson", "kind": "lines", "prefix": "a.ndjson", "cuts": [[0, 0], [5000, 41]]},
               {"name": "b.ndjson", "kind": "lines", "prefix": "b.ndjson", "cuts": [[0, 0], [4096, 30]]}]}

Invariant: a file that was begun is finished before the next one is begun, and none is read twice. A file that cannot be
read ends the run with its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, TypeAlias, TypeVar

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
from anabranch.sources.documents import SUFFIXES as RDF_SUFFIXES
from anabranch.sources.documents import RdfKind, document_name, pack_csv_triples, pack_timed, rdf_kind, read_rdf
from anabranch.sources.filesystems import FileEntry, FileSystemError, FoundPath, entries, locate, opened
from anabranch.sources.lines import (
    Cut,
    LineRecords,
    PackingDecoder,
    SequenceOf,
    WholeFormat,
    cut_lines,
    cut_rows,
    is_zipped,
    pack_gzip,
    pack_range,
    read_range,
    read_rows,
    read_whole,
    whole_kind,
)
from anabranch.sources.reach import ANYWHERE, Reach
from anabranch.sources.rowgroups import cut_row_groups, pack_record_groups, pack_row_groups, read_row_groups

if TYPE_CHECKING:
    from anabranch.planner.link_streams import LinkStream

FIRST_BATCH = 1 << 20
"""The first batch is small, so that the first answer comes fast."""

Read = TypeVar("Read")
FileKind: TypeAlias = WholeFormat | RdfKind | Literal["lines", "parquet", "rows"]

CUT_BY_LINES = ("lines", "timed")
_COST_OF_A_FILE = 16 << 10  # keeps the number of files in a batch, and so an offset, within bounds
_COLUMNS = 4  # so many bytes of columns, as they are unpacked, cost what one byte of lines does

_SUFFIXES = (".ndjson", ".jsonl", ".json", ".parquet")


@dataclass(frozen=True, slots=True)
class Files(Source):
    """The common part of file sources: which files hold events, and how a piece of one is read."""

    stream: str
    path: str
    records_are_events: bool = True
    reach: Reach = ANYWHERE

    def read(self, piece: Piece, decode: Decode) -> Iterator[Event | MalformedRecord]:
        return self._from_file(piece.where, lambda file: self._records(file, piece.where, decode))

    def read_packed(self, piece: Piece, decode: Decode, links: LinkStream | None = None) -> Iterator[PackedRecord]:
        where = piece.where
        if not self.records_are_events:
            if isinstance(decode, MappingDecoder) and decode.columns is not None:
                return self._from_file(where, lambda file: self._mapped(file, where, decode))
            return Files.read(self, piece, decode)
        document = document_name(self.stream, where)
        match where["kind"]:
            case "lines" | "gzip" as kind if isinstance(decode, AsEvent):
                return self._from_file(where, lambda file: self._packed_lines(file, where, kind, decode))
            case "timed":
                return self._from_file(where, lambda file: pack_timed(file, where, document))
            case "triples-csv":
                return self._from_file(where, lambda file: pack_csv_triples(file, document))
            case "parquet":
                start, stop = Cut(*where["from"]), Cut(*where["to"])
                keys = decode.keys if isinstance(decode, AsEvent) else ()
                return self._from_file(where, lambda file: pack_row_groups(file, start, stop.at, document, links, keys))
        return Files.read(self, piece, decode)

    def _packed_lines(
        self, content: BinaryIO, where: Mapping[str, Any], kind: FileKind, decode: PackingDecoder
    ) -> Iterator[PackedRecord]:
        sequence_of = _sequences(where)
        if kind == "gzip":
            return pack_gzip(content, decode, sequence_of)
        start, stop = Cut(*where["from"]), Cut(*where["to"])
        return pack_range(content, start.at, stop.at, start.line + 1, decode, sequence_of)

    def _mapped(self, content: BinaryIO, where: Mapping[str, Any], decode: MappingDecoder) -> Iterator[PackedRecord]:
        from anabranch.sources.mapped import pack_csv, pack_list, pack_rows  # loads what computes with columns of texts

        sequence_of = _sequences(where)
        match where["kind"]:
            case "rows":
                return pack_rows(content, Cut(*where["from"]), where["to"][0], decode, sequence_of)
            case "csv":
                return pack_csv(content, decode, sequence_of)
            case "list":
                return pack_list(content, decode, sequence_of)
            case "parquet":
                start, stop = Cut(*where["from"]), Cut(*where["to"])
                return pack_record_groups(content, start, stop.at, decode, sequence_of)
            case kind:
                return self._packed_lines(content, where, kind, decode)

    @property
    def suffixes(self) -> tuple[str, ...]:
        return (*_SUFFIXES, *RDF_SUFFIXES) if self.records_are_events else (*_SUFFIXES, ".csv")

    def kind_of(self, content: BinaryIO, name: str, shown: str) -> FileKind:
        """Return how a file is read, by its name and its first bytes; a file without events is refused."""
        if name.endswith(".parquet"):
            return "parquet"
        with naming(shown):
            if self.records_are_events and (rdf := rdf_kind(content, name)) is not None:
                return rdf
            kind = whole_kind(content, name)
        if kind == "csv" and self.records_are_events:
            raise StreamError(
                f"{shown} holds records, not events\n"
                "hint: say what they mean with LOAD STREAM FROM ...; a table of triples has the columns s, p, o and at"
            )
        return kind or "lines"

    def _records(self, content: BinaryIO, where: Mapping[str, Any], decode: Decode) -> LineRecords:
        start, stop = Cut(*where["from"]), Cut(*where["to"])
        sequence_of = _sequences(where)
        match where["kind"]:
            case "lines":
                return read_range(content, start.at, stop.at, start.line + 1, decode, sequence_of)
            case "parquet":
                document = document_name(self.stream, where)
                events = self.records_are_events
                return read_row_groups(content, start, stop.at, decode, sequence_of, events=events, document=document)
            case "rows":
                return read_rows(content, start, stop.at, decode, sequence_of)
            case "timed" | "timed-gzip" | "triples-csv" | "nquads" | "trig" | "jsonld" as kind:
                return read_rdf(content, kind, where, document_name(self.stream, where))
            case kind:
                return read_whole(content, kind, decode, sequence_of)

    def _from_file(
        self, where: Mapping[str, Any], read: Callable[[BinaryIO], Iterator[Read]]
    ) -> Iterator[Read | MalformedRecord]:
        """Yield the content of a piece's file; malformed records of one of several files name the file."""
        shown = where["shown"]
        with opened(where["base"], where["path"], shown, self.reach) as file, naming(shown):
            for record in read(file):
                if isinstance(record, MalformedRecord) and where["prefix"]:
                    yield MalformedRecord(f"{where['prefix']}: {record.reason}", record.line, record.raw)
                else:
                    yield record


class FileSource(Files):
    """The records of files, in the order of their names, to the end of the last one."""

    __slots__ = ()

    @property
    def finite(self) -> bool:
        return True

    def begin(self) -> Offset:
        place = locate(self.path, self.reach)
        self._require_files(place, entries(place, self.suffixes))
        return {"number": -1, "name": "", "at": 0, "line": 0, "done": True, "bytes": 0, "files": []}

    def ahead(self, start: Offset, limit: Limit) -> Offset:
        if "number" not in start:
            raise StreamError(
                f"{self.path} was followed by the runs before\n"
                "hint: follow it again, or begin with a checkpoint of its own"
            )
        place = locate(self.path, self.reach)
        found = entries(place, self.suffixes)
        if start["number"] < 0:
            self._require_files(place, found)
        batch = _Batch(start, Room(min(limit.size, FIRST_BATCH) if start["number"] < 0 else limit.size, limit.records))
        prefixed = len(found) > 1 and place.kind != "file"
        for file in self._waiting(place, found, start):
            if batch.room.full or not self._take(place, file, batch, prefixed=prefixed):
                break
        return batch.offset() if batch.files else start

    def pieces(self, start: Offset, end: Offset) -> list[Piece]:
        place = locate(self.path, self.reach)
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

    def ended(self, offset: Offset) -> bool:
        if not offset["done"] or offset["number"] < 0:
            return False
        place = locate(self.path, self.reach)
        return not any(file.name > offset["name"] for file in entries(place, self.suffixes))

    def backlog(self, offset: Offset) -> Backlog:
        total = sum(file.size for file in entries(locate(self.path, self.reach), self.suffixes))
        return Backlog(offset["bytes"], max(total, offset["bytes"]))

    def _require_files(self, place: FoundPath, found: list[FileEntry]) -> None:
        if found:
            return
        if place.kind == "pattern":
            raise StreamError(f"no file matches {self.path}\nhint: * and ? do not match a slash, nor a leading . or _")
        hint = f"files of events end with {', '.join(self.suffixes)}, perhaps followed by .gz"
        raise StreamError(f"{self.path} holds no events\nhint: {hint}")

    def _waiting(self, place: FoundPath, found: list[FileEntry], start: Offset) -> Iterator[FileEntry]:
        """Yield the files that come next: the one that was begun, then the new ones."""
        if not start["done"]:
            begun = next((file for file in found if file.name == start["name"]), None)
            if begun is None:
                raise StreamError(f"{place.shown(start['name'])} was being read and has gone")
            yield begun
        yield from (file for file in found if file.name > start["name"])

    def _take(self, place: FoundPath, file: FileEntry, batch: _Batch, *, prefixed: bool) -> bool:
        """Add the part of a file that fits to the batch; return False when the batch is full."""
        shown = place.shown(file.name)
        with opened(place.base, place.path(file.name), shown, self.reach) as content:
            kind = batch.begun(file.name) or self.kind_of(content, file.name, shown)
            if kind == "csv" and not is_zipped(content):
                kind = "rows"
            with naming(shown):
                share = share_of(content, kind, file.size, batch.cut, batch.room)
        if not share.done and len(share.cuts) == 1:
            return False
        batch.add(file.name, kind, file.name if prefixed else "", share)
        return share.done


def _sequences(where: Mapping[str, Any]) -> SequenceOf:
    """Return the sequences of the records of a piece: the number of its file, except for the first, and their own."""
    number = where["number"]
    return (lambda record: f"{number}-{record}") if number else str


@dataclass(frozen=True, slots=True)
class Share:
    """The part of a file that goes into a batch: its cuts, its costs against the limits, and the file's bytes."""

    cuts: list[Cut]
    done: bool
    cost: int
    lines: int
    size: int


class Room:
    """How much a batch may still take, in bytes and records."""

    def __init__(self, size: int, records: int | None) -> None:
        self.size = size
        self.records = records
        self.is_untouched = True

    @property
    def full(self) -> bool:
        return self.size <= 0 or self.records == 0

    def take(self, share: Share) -> None:
        self.is_untouched = False
        self.size -= max(share.cost, _COST_OF_A_FILE)
        self.records = None if self.records is None else max(0, self.records - share.lines)


def share_of(content: BinaryIO, kind: FileKind, size: int, start: Cut, room: Room, *, growing: bool = False) -> Share:
    """Return the part of a file that fits into a batch, from a cut on.

    The last line of a `growing` file may still be incomplete.
    """
    match kind:
        case "lines" | "timed":
            if size < start.at:
                raise StreamError(
                    f"{start.at} bytes were read, and now there are {size}: it was cut off or replaced\n"
                    "hint: a file that is being read may only grow"
                )
            one = room.is_untouched
            cuts = cut_lines(content, start, size, room.size, room.records, growing=growing, at_least_one=one)
            read = cuts[-1].at - start.at
            return Share(cuts, cuts[-1].at == size, read, cuts[-1].line - start.line, read)
        case "rows":
            cuts = cut_rows(content, start, size, room.size, room.records)
            read = cuts[-1].at - start.at
            return Share(cuts, cuts[-1].at == size, read, cuts[-1].line - start.line, read)
        case "parquet":
            cuts, groups, cost = cut_row_groups(content, start, room.size * _COLUMNS, room.records)
            stop = cuts[-1].at
            read = size * stop // groups - size * start.at // groups if groups else size
            return Share(cuts, stop == groups, cost // _COLUMNS, cuts[-1].line - start.line, read)
        case _:
            # The number of its records is known only when it has been read: it ends a batch with a limit of records.
            return Share([start, Cut(1, 0)], True, size, room.records or 0, size)


class _Batch:
    """A batch while it is being filled, from the offset where it starts to the one where it ends."""

    def __init__(self, start: Offset, room: Room) -> None:
        self.room = room
        self.files: list[dict[str, Any]] = []
        self.cut = Cut() if start["done"] else Cut(start["at"], start["line"])
        self._number: int = start["number"]
        self._done: bool = start["done"]
        self._last = start["files"][-1] if start["files"] else {}
        self._bytes: int = start["bytes"]

    def begun(self, name: str) -> FileKind | None:
        """The kind of a file that the batch before has begun; None for one that is new."""
        return self._last["kind"] if not self._done and self._last["name"] == name else None

    def add(self, name: str, kind: FileKind, prefix: str, share: Share) -> None:
        if self._done:
            self._number += 1
        self._last = {"name": name, "kind": kind, "prefix": prefix, "cuts": [[cut.at, cut.line] for cut in share.cuts]}
        self.files.append(self._last)
        self._done = share.done
        self._bytes += share.size
        self.room.take(share)
        self.cut = Cut() if share.done else share.cuts[-1]

    def offset(self) -> Offset:
        at, line = self._last["cuts"][-1]
        place = {"number": self._number, "name": self._last["name"], "at": at, "line": line, "done": self._done}
        return {**place, "bytes": self._bytes, "files": self.files}


@contextmanager
def naming(shown: str) -> Iterator[None]:
    """Prefix errors while a file is read with the file's name."""
    try:
        yield
    except FileSystemError:
        raise  # it has the name
    except StreamError as error:
        raise StreamError(f"{shown}: {error}") from None
