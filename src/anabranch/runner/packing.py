"""Packing: turns a piece of a source into chunks and dead letters, wherever it is read.

Invariant: the chunks of a piece depend only on the settings and the piece.
"""

from __future__ import annotations

from collections.abc import Iterator

from anabranch.formats import deadletter
from anabranch.formats.chunks import ChunkWriter
from anabranch.formats.chunks import head as head_of
from anabranch.formats.rdf.tables import ReducedChunk
from anabranch.model.event import Event
from anabranch.runner.linked import LinkedRows
from anabranch.runner.rows import CELL, PackedRow
from anabranch.runner.source_settings import SourceSettings
from anabranch.sources.base import Piece

_LETTERS_PER_ROW = 1000


def pack_piece(settings: SourceSettings, piece: Piece) -> Iterator[PackedRow]:
    """Yield a piece's events as chunks, and its malformed records as dead letters, in their order."""
    stream = next(one for one in settings.streams if one.name == piece.stream)
    decode = stream.decoding.decoder()
    writer = ChunkWriter()
    letters: list[bytes] = []
    number = 0
    records = 0  # of the piece, so far
    links = settings.links.get(piece.stream)

    def chunk(data: bytes) -> PackedRow:
        return PackedRow(CELL, "chunk", data, piece.stream, piece.split, piece.order, number)

    def linked(kept: ReducedChunk) -> PackedRow:
        assert links is not None
        data = LinkedRows(piece, records, kept.rows, links.name).wrapped(kept.data)
        return PackedRow(CELL, "links", data, piece.stream, piece.split, piece.order, number)

    def malformed() -> PackedRow:
        data = b"".join(letters)
        return PackedRow(CELL, "malformed", data, piece.stream, piece.split, piece.order, number, len(letters))

    for record in stream.source.read_packed(piece, decode, links):
        if isinstance(record, Event):
            writer.add(record)
            records += 1
        elif isinstance(record, bytes | ReducedChunk):
            if len(writer):
                yield chunk(writer.pack())
                number += 1
                writer = ChunkWriter()
            yield linked(record) if isinstance(record, ReducedChunk) else chunk(record)
            number += 1
            records += record.rows if isinstance(record, ReducedChunk) else head_of(record).events
        else:
            records += 1
            letters.append(deadletter.letter(record))
            if len(letters) >= _LETTERS_PER_ROW:
                yield malformed()
                number += 1
                letters = []
        if writer.is_full:
            yield chunk(writer.pack())
            number += 1
            writer = ChunkWriter()
    if len(writer):
        yield chunk(writer.pack())
        number += 1
    if letters:
        yield malformed()
