"""Packing: turns a piece of a source into rows for a cell, wherever it is read.

A row holds events as the source gives them: a chunk, a block, or a list. What leaves this process is packed into
chunks; a cell in this process takes the events as they are.

Invariant: the rows of a piece depend only on the settings and the piece. Packed or not, they hold the same events.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from anabranch.formats import chunks, deadletter
from anabranch.model.block import TripleBlock
from anabranch.model.event import Event
from anabranch.model.graph_block import GraphBlock, PropertyKeys
from anabranch.runner.linked import LinkedRows
from anabranch.runner.rows import CELL, PackedRow
from anabranch.runner.source_settings import SourceSettings
from anabranch.sources.base import AsEvent, MappingDecoder, Piece

_LETTERS_PER_ROW = 1000
_FEW = 64  # events: shorter blocks between single events are not worth a row of their own


def pack_piece(settings: SourceSettings, piece: Piece) -> Iterator[PackedRow]:
    """Yield a piece's events as chunks, and its malformed records as dead letters, in their order."""
    for row in read_piece(settings, piece):
        yield row if row.events is None else replace(row, data=chunks.pack(row.events), events=None)


def read_piece(settings: SourceSettings, piece: Piece, keys: PropertyKeys = ()) -> Iterator[PackedRow]:
    """Yield the same without packing events that the source gives as events or blocks.

    `keys` are the properties that queries have asked for so far.
    """
    stream = next(one for one in settings.streams if one.name == piece.stream)
    decode = stream.decoding.decoder()
    if isinstance(decode, AsEvent | MappingDecoder):
        decode = replace(decode, keys=keys)
    single = _SingleEvents()
    letters: list[bytes] = []
    number = -1
    records = 0  # of the piece, so far
    links = settings.links.get(piece.stream)

    def row(data: bytes = b"", events: Sequence[Event] | None = None) -> PackedRow:
        nonlocal number
        number += 1
        return PackedRow(CELL, "chunk", data, piece.stream, piece.split, piece.order, number, events=events)

    def linked(kept: chunks.ReducedChunk) -> PackedRow:
        assert links is not None
        return replace(row(LinkedRows(piece, records, kept.rows, links.name).wrapped(kept.data)), kind="links")

    def malformed() -> PackedRow:
        return replace(row(b"".join(letters)), kind="malformed", count=len(letters))

    for record in stream.source.read_packed(piece, decode, links):
        if isinstance(record, Event):
            single.add(record)
            records += 1
        elif isinstance(record, GraphBlock) and len(record) < _FEW and single.events:
            for event in record.events():
                single.add(event)
            records += len(record)
        elif isinstance(record, bytes | chunks.ReducedChunk | GraphBlock):
            if single.events:
                yield row(events=single.taken())
            if isinstance(record, GraphBlock):
                yield row(events=record)
                records += len(record)
            elif isinstance(record, chunks.ReducedChunk):
                yield linked(record)
                records += record.rows
            else:
                yield row(record)
                records += chunks.head(record).events
        else:
            records += 1
            letters.append(deadletter.letter(record))
            if len(letters) >= _LETTERS_PER_ROW:
                yield malformed()
                letters = []
        if single.is_full:
            yield row(events=single.taken())
    if single.events:
        yield row(events=single.taken())
    if letters:
        yield malformed()


class _SingleEvents:
    """Events that came one by one, and how many elements they have."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._elements = 0

    @property
    def is_full(self) -> bool:
        return len(self.events) >= chunks.EVENTS_PER_CHUNK or self._elements >= chunks.ELEMENTS_PER_CHUNK

    def add(self, event: Event) -> None:
        self.events.append(event)
        self._elements += len(event.nodes) + len(event.relationships) + len(event.triples)

    def taken(self) -> Sequence[Event]:
        """Return the events, as a block where each is one triple, and begin again."""
        events, self.events, self._elements = self.events, [], 0
        block = TripleBlock.of(events)
        return events if block is None else block
