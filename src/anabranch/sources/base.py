"""A source: the origin of one stream's records, in pieces that a worker can read independently.

The planner (on the driver) calls `ahead` to learn how far a batch may go from an offset; `pieces` cuts the range
between two offsets into parts that tasks read in parallel. Offsets are JSON and are all that a restart needs.

Invariant: the pieces between two offsets give the same records whenever and wherever they are read; records of one
split come in the split's order, and every record belongs to exactly one pair of neighbouring offsets.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from anabranch.formats.deadletter import MalformedRecord
from anabranch.formats.events import event_from_dict
from anabranch.model.event import Event
from anabranch.model.graph_block import GraphBlock, PropertyKeys

if TYPE_CHECKING:
    from anabranch.algebra.ingestion import Ingestion
    from anabranch.engine.column_mapping import ColumnMapping
    from anabranch.engine.ingestion import RecordMapping
    from anabranch.formats.chunks import ReducedChunk
    from anabranch.planner.link_streams import LinkStream

Offset: TypeAlias = dict[str, Any]
Decode: TypeAlias = Callable[[Any, str], Event | None]
"""What a JSON-like record and its sequence (its place in the stream, such as `17` or `2-17`) are read as; None is a
record that writes nothing. Raises MalformedEventError."""

ONLY_SPLIT = ""

PackedRecord: TypeAlias = "bytes | GraphBlock | ReducedChunk | Event | MalformedRecord"
"""A record of a piece, or a run of its events: a chunk, a block, or what links need of them."""


@dataclass(frozen=True, slots=True)
class Limit:
    """The limits of one batch for one stream."""

    records: int | None = None
    size: int = 64 << 20  # bytes


@dataclass(frozen=True, slots=True)
class Piece:
    """The part of a stream that one task reads.

    Pieces of a split are sorted by `order`; only the source reads `where`.
    """

    stream: str
    split: str
    order: int
    where: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Backlog:
    """How much of a source was read at an offset, in bytes or records; a total of None is unknown."""

    done: int = 0
    total: int | None = None


class Source(ABC):
    """One stream's origin. A source is pickled to the workers: it holds settings, never open files or connections."""

    stream: str
    is_received: ClassVar[bool] = False  # somebody sends the records, whenever they like
    has_own_clock: ClassVar[bool] = False  # event times are independent of the wall clock

    @property
    @abstractmethod
    def finite(self) -> bool:
        """Whether the input ends by itself."""

    @abstractmethod
    def begin(self) -> Offset:
        """Return the offset at which a first run begins."""

    @abstractmethod
    def ahead(self, start: Offset, limit: Limit) -> Offset:
        """Return how far one batch may go from `start`; `start` itself when nothing has come. Called by the planner
        only.
        """

    @abstractmethod
    def pieces(self, start: Offset, end: Offset) -> list[Piece]:
        """Return the pieces between two offsets, whose `end` came from `ahead`."""

    @abstractmethod
    def read(self, piece: Piece, decode: Decode) -> Iterator[Event | MalformedRecord]:
        """Yield the events of a piece, in order; an unreadable record becomes a MalformedRecord in its place."""

    def read_packed(self, piece: Piece, decode: Decode, links: LinkStream | None = None) -> Iterator[PackedRecord]:
        """Yield the same, where runs of events may come as chunks (formats.chunks) or blocks, without being decoded to
        events.

        For a stream of which queries need only `links`, the chunks hold only the needed rows.
        """
        return self.read(piece, decode)

    def read_all(
        self, decode: Decode, on_progress: Callable[[Backlog], None] = lambda backlog: None
    ) -> Iterator[Event | MalformedRecord]:
        """Yield all events of a finite source, in order, read in this process; then close the source."""
        offset = self.begin()
        try:
            while not self.ended(offset):
                end = self.ahead(offset, Limit())
                for piece in self.pieces(offset, end):
                    yield from self.read(piece, decode)
                offset = end
                on_progress(self.backlog(offset))
        finally:
            self.close()

    def ended(self, offset: Offset) -> bool:
        """Return whether nothing lies behind the offset and nothing will."""
        return False

    def splits(self, offset: Offset) -> list[str]:
        """Return the splits that exist at an offset. Each has its own order and its own watermark."""
        return [ONLY_SPLIT]

    def commit(self, offset: Offset) -> None:  # noqa: B027  most sources need not know
        """Note that everything before the offset has been answered and will not be read again."""

    def backlog(self, offset: Offset) -> Backlog:
        return Backlog()

    def waiting(self, offset: Offset) -> Backlog | None:
        """Return how much of all that has come so far was read from a live source; None if unknown. Any thread may call
        it.
        """
        return None

    def close(self) -> None:  # noqa: B027  most sources hold nothing open
        """Close what `ahead` opened."""


@dataclass(frozen=True, slots=True)
class AsEvent:
    """The decoder of a stream whose records are events already.

    Its name keeps blank nodes of two streams apart, and `prefix` those of two inputs of one stream. `keys` are the
    properties that will be asked for, as far as they are known: blocks have them ready.
    """

    stream: str = ""
    prefix: str = ""
    keys: PropertyKeys = ()

    def __call__(self, data: Any, sequence: str) -> Event:
        return event_from_dict(data, self.prefix + sequence if self.prefix else sequence, self.stream)


as_event = AsEvent()


@dataclass(frozen=True, slots=True)
class MappingDecoder:
    """The decoder of a stream whose records a LOAD STREAM maps to events.

    `columns` maps many records at once, where the mapping allows it. `prefix` and `keys` are those of `AsEvent`.
    """

    mapping: RecordMapping
    columns: ColumnMapping | None
    prefix: str = ""
    keys: PropertyKeys = ()

    def __call__(self, data: Any, sequence: str) -> Event | None:
        return self.mapping.event(data, self.prefix + sequence if self.prefix else sequence)


@dataclass(frozen=True, slots=True)
class Decoding:
    """The way a stream's records are decoded, as data that can be sent: its LOAD STREAM, or none for events."""

    stream: str
    ingestion: Ingestion | None = None

    def decoder(self) -> Decode:
        if self.ingestion is None:
            return AsEvent(self.stream)
        # A planner, and a stream of events, need no evaluator.
        from anabranch.algebra.record_shape import record_shape
        from anabranch.engine.column_mapping import ColumnMapping
        from anabranch.engine.ingestion import RecordMapping

        shape = record_shape(self.ingestion)
        columns = None if isinstance(shape, str) else ColumnMapping(shape)
        return MappingDecoder(RecordMapping(self.ingestion), columns)


@dataclass(frozen=True, slots=True)
class OpenedStream:
    """A stream as a run reads it: its source, its decoding, and the address that the user gave."""

    source: Source
    decoding: Decoding
    address: str

    @property
    def name(self) -> str:
        return self.source.stream
