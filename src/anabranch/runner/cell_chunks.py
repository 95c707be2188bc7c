"""The chunks of a cell: as they come with a batch, and as they lie in the cell's state with a label.

A stored chunk is the length of its label (4 bytes, little-endian), the label (JSON: stream, split, sequence of its
first event and, for a chunk of links, the records that it stands for), and the chunk.

Invariant: a small chunk may be added to as long as it is the newest of its stream and split, so that chunks are few.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from anabranch.formats import chunks
from anabranch.model.event import Event
from anabranch.model.graph_block import EventBlock, joined
from anabranch.runner.linked import LinkedRows, unwrapped
from anabranch.runner.rows import PackedRow

_SMALL = 64 << 10  # bytes: smaller chunks are joined with the next ones
_SMALL_EVENTS = 4096
_WORTH_A_THREAD = 1 << 20  # bytes
_AHEAD = 2  # chunks


class CellState(Protocol):
    """The store of a cell's state. Values are bytes of any size.

    A state that is not `durable` is never read without the cell's cache, so that only its head is written.
    """

    @property
    def durable(self) -> bool: ...

    def head(self) -> bytes | None: ...

    def put_head(self, data: bytes) -> None: ...

    def chunk(self, number: int) -> bytes | None: ...

    def chunks(self) -> Iterable[tuple[int, bytes]]: ...

    def put_chunk(self, number: int, data: bytes) -> None: ...

    def remove_chunk(self, number: int) -> None: ...

    def parts(self) -> Iterable[tuple[str, bytes]]: ...

    def put_part(self, name: str, data: bytes) -> None: ...

    def remove_part(self, name: str) -> None: ...


@dataclass(slots=True)
class StoredChunk:
    """A stored chunk, without its events."""

    number: int
    stream: str
    split: str
    first_sequence: int
    events: int
    last: int
    size: int
    linked: LinkedRows | None = None  # the records that a chunk of links stands for

    @property
    def is_small(self) -> bool:
        """Whether the chunk may be added to."""
        return self.size < _SMALL and self.linked is None


class CellChunk(NamedTuple):
    """A received chunk: its events, its bytes if it was packed, and the records that a chunk of links stands for."""

    events: Sequence[Event]
    data: bytes | None = None
    linked: LinkedRows | None = None

    def is_small(self, size: int = 0, events: int = 0) -> bool:
        """Return whether the chunk may still be added to, or be added to one of this size."""
        packed = 0 if self.data is None else len(self.data)
        return self.linked is None and size + packed < _SMALL and events + len(self.events) <= _SMALL_EVENTS


def opened_ahead(rows: Sequence[PackedRow]) -> Iterator[tuple[PackedRow, CellChunk | None]]:
    """Yield the rows with their chunks; None for rows of malformed records.

    While one chunk is processed, a thread opens the next: most of that is decompression, which releases Python's lock.
    """
    if sum(len(row.data) for row in rows) < _WORTH_A_THREAD:
        yield from ((row, _opened(row)) for row in rows)
        return
    with ThreadPoolExecutor(1, "opening") as thread:
        coming: deque[tuple[PackedRow, Future[CellChunk | None]]] = deque()
        for row in rows:
            coming.append((row, thread.submit(_opened, row)))
            if len(coming) > _AHEAD:
                first, chunk = coming.popleft()
                yield first, chunk.result()
        for row, chunk in coming:
            yield row, chunk.result()


def _opened(row: PackedRow) -> CellChunk | None:
    if row.kind == "malformed":
        return None
    if row.events is not None:
        return CellChunk(row.events, row.data or None)
    linked, data = unwrapped(row.data) if row.kind == "links" else (None, row.data)
    return CellChunk(chunks.opened(data), data, linked)


def joined_events(before: Sequence[Event], events: Sequence[Event]) -> Sequence[Event]:
    if isinstance(before, EventBlock) and isinstance(events, EventBlock):
        return joined([before, events]) or [*before, *events]
    return [*before, *events]


def labelled(entry: StoredChunk, data: bytes) -> bytes:
    """Return a chunk with its catalogue entry, as it lies in the state."""
    linked = [] if entry.linked is None else [entry.linked.to_json()]
    label = json.dumps([entry.stream, entry.split, entry.first_sequence, *linked]).encode()
    return len(label).to_bytes(4, "little") + label + data


def unlabelled(number: int, stored: bytes) -> tuple[StoredChunk, bytes]:
    length = int.from_bytes(stored[:4], "little")
    stream, split, first_sequence, *more = json.loads(stored[4 : 4 + length])
    data = stored[4 + length :]
    found = chunks.head(data)
    linked = LinkedRows.from_json(more[0]) if more else None
    return StoredChunk(number, stream, split, first_sequence, found.events, found.last, len(data), linked), data
