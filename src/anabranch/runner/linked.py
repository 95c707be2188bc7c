"""Chunks of links in transit and in the state: the rows that were needed, and where all of them can be read again.

The rows that links need (`planner.link_streams`) depend on the queries of a job, and are chosen before it is known
which rows are late. So a chunk of links names the rows of the piece that it stands for. The piece is read again when
all of its rows are needed: one is late, or the queries have changed since.

    length of the label (uint32), the label (JSON), the chunk

Law: `whole` gives the events that the chunk was reduced from, wherever it is called.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from anabranch.errors import StreamError
from anabranch.formats import chunks
from anabranch.formats.deadletter import MalformedRecord
from anabranch.model.event import Event
from anabranch.model.graph_block import EventBlock, GraphBlock, joined
from anabranch.sources.base import OpenedStream, Piece


@dataclass(frozen=True, slots=True)
class LinkedRows:
    """`rows` records of a piece from the record `first` on, reduced to those that links of a form need."""

    piece: Piece
    first: int
    rows: int
    form: str

    def to_json(self) -> list[Any]:
        piece = self.piece
        return [piece.stream, piece.split, piece.order, dict(piece.where), self.first, self.rows, self.form]

    @classmethod
    def from_json(cls, data: Sequence[Any]) -> LinkedRows:
        stream, split, order, where, first, rows, form = data
        return cls(Piece(stream, split, order, where), first, rows, form)

    def wrapped(self, data: bytes) -> bytes:
        """Return a chunk of these rows with its label."""
        label = json.dumps(self.to_json()).encode()
        return len(label).to_bytes(4, "little") + label + data

    def whole(self, streams: Sequence[OpenedStream]) -> EventBlock | list[Event]:
        """Return all events of these records, read again."""
        stream = next(one for one in streams if one.name == self.piece.stream)
        try:
            found = self._read(stream)
        except (pa.ArrowException, OSError) as error:
            raise StreamError(f"{stream.address} cannot be read again: {error}") from None
        if sum(map(len, found)) != self.rows:
            raise StreamError(f"{stream.address} has changed: rows that were read before are not there any more")
        blocks = [part for part in found if isinstance(part, EventBlock)]
        whole = joined(blocks) if len(blocks) == len(found) else None
        return [event for part in found for event in part] if whole is None else whole

    def _read(self, stream: OpenedStream) -> list[EventBlock | list[Event]]:
        found: list[EventBlock | list[Event]] = []
        at, stop = 0, self.first + self.rows
        for record in stream.source.read_packed(self.piece, stream.decoding.decoder()):
            events: EventBlock | list[Event] = []
            size = 1
            if isinstance(record, bytes):
                size = chunks.head(record).events
                if at + size > self.first:
                    events = chunks.opened(record)
            elif isinstance(record, GraphBlock):
                events, size = record, len(record)
            elif isinstance(record, Event):
                events = [record]
            elif not isinstance(record, MalformedRecord):
                raise StreamError("links cannot be read again as links")
            wanted = events[max(0, self.first - at) : max(0, stop - at)]
            if len(wanted):
                found.append(wanted)
            at += size
            if at >= stop:
                break
        return found


def unwrapped(data: bytes) -> tuple[LinkedRows, bytes]:
    """Return the rows that a chunk of links stands for, and the chunk."""
    length = int.from_bytes(data[:4], "little")
    return LinkedRows.from_json(json.loads(data[4 : 4 + length])), data[4 + length :]
