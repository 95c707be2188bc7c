"""All streams of a job as one Spark source: the planner on the driver, decoding and packing in the workers.

One source for all streams keeps the plan the same whatever the streams are, and lets a finite input say in its last
batch that it has ended. A worker reads a piece, decodes it and sends chunks, not events, into the shuffle.

Invariant: read(partition) depends on the partition alone.
"""

from __future__ import annotations

import base64
import json
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from anabranch.formats import deadletter
from anabranch.formats.chunks import ChunkWriter
from anabranch.model.event import Event
from anabranch.sources.base import Limit, Offset, OpenedStream, Piece
from anabranch.spark.planner import Planner
from anabranch.spark.refreshing import Refresher, RefreshSettings
from anabranch.spark.rows import CELL, PACKED_SCHEMA, Packed, packed_batch

FORMAT = "anabranch"
_LETTERS_PER_ROW = 1000


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """What the source must know of a job."""

    streams: tuple[OpenedStream, ...]
    queries: str
    limit: Limit
    idle_timeout: int | None
    refresh: RefreshSettings | None = None
    tasks: int = 8
    """How many tasks a batch is read by at most: each costs a tenth of a second, whatever it reads."""

    def to_option(self) -> str:
        return base64.b64encode(pickle.dumps(self)).decode()

    @staticmethod
    def from_option(text: str) -> SourceSettings:
        settings = pickle.loads(base64.b64decode(text))
        assert isinstance(settings, SourceSettings)
        return settings


class AnabranchSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return PACKED_SCHEMA

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return StreamsReader(SourceSettings.from_option(self.options["job"]))


class StreamsReader(DataSourceStreamReader):
    def __init__(self, settings: SourceSettings) -> None:
        self._settings = settings
        self._planner: Planner | None = None

    @property
    def planner(self) -> Planner:
        if self._planner is None:
            said = self._settings
            refresher = None if said.refresh is None else Refresher(said.refresh)
            self._planner = Planner(said.streams, said.queries, said.limit, said.idle_timeout, refresher=refresher)
        return self._planner

    def initialOffset(self) -> Offset:
        return Planner.initial()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        return self.planner.ahead(start)

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        if start == end:
            return []
        control = json.dumps(Planner.control(end)).encode()
        pieces = grouped(self.planner.pieces(start, end), self._settings.tasks)
        return [InputPartition(control), *map(InputPartition, pieces)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition.value, bytes):
            yield packed_batch([Packed(CELL, "control", partition.value)])
            return
        for piece in partition.value:
            for row in pack_piece(self._settings, piece):
                yield packed_batch([row])

    def commit(self, end: Offset) -> None:
        self.planner.commit(end)

    def stop(self) -> None:
        if self._planner is not None:
            self._planner.close()

    def __getstate__(self) -> dict[str, Any]:
        return {"_settings": self._settings, "_planner": None}


def grouped(pieces: Sequence[Piece], most: int) -> list[list[Piece]]:
    """The pieces in their order, side by side in at most so many groups of about the same number."""
    count = min(len(pieces), most)
    bounds = [len(pieces) * number // count for number in range(count + 1)] if count else []
    return [list(pieces[first:stop]) for first, stop in pairwise(bounds)]


def pack_piece(settings: SourceSettings, piece: Piece) -> Iterator[Packed]:
    """A piece's events as chunks, and its malformed records as dead letters, in their order."""
    stream = next(one for one in settings.streams if one.name == piece.stream)
    decode = stream.decoding.decoder()
    writer = ChunkWriter()
    letters: list[bytes] = []
    number = 0

    def chunk(data: bytes) -> Packed:
        return Packed(CELL, "chunk", data, piece.stream, piece.split, piece.order, number)

    def malformed() -> Packed:
        data = b"".join(letters)
        return Packed(CELL, "malformed", data, piece.stream, piece.split, piece.order, number, len(letters))

    for record in stream.source.read_packed(piece, decode):
        if isinstance(record, Event):
            writer.add(record)
        elif isinstance(record, bytes):
            if len(writer):
                yield chunk(writer.pack())
                number += 1
                writer = ChunkWriter()
            yield chunk(record)
            number += 1
        else:
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
