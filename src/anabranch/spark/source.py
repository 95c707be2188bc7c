"""All streams of a job as one Spark source: the planner on the driver, decoding and packing in the workers.

One source for all streams keeps the plan the same for all sets of streams, and lets a finite input mark its last batch
as the end. A worker reads a piece, decodes it and sends chunks, not events, into the shuffle.

Invariant: read(partition) depends on the partition alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from anabranch.runner.batch_planner import BatchPlanner
from anabranch.runner.rows import CELL, PACKED_SCHEMA, PackedRow
from anabranch.runner.source_settings import OPTION, SourceSettings
from anabranch.sources.base import Offset, Piece

FORMAT = "anabranch"

_PACKED_ARROW = pa.schema(
    [
        ("cell", pa.string()),
        ("kind", pa.string()),
        ("stream", pa.string()),
        ("split", pa.string()),
        ("place", pa.int64()),
        ("number", pa.int64()),
        ("count", pa.int64()),
        ("data", pa.binary()),
    ]
)


class AnabranchSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return PACKED_SCHEMA

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return StreamsReader(SourceSettings.from_option(self.options[OPTION]))


class StreamsReader(DataSourceStreamReader):
    def __init__(self, settings: SourceSettings) -> None:
        self._settings = settings
        self._planner: BatchPlanner | None = None

    @property
    def planner(self) -> BatchPlanner:
        if self._planner is None:
            self._planner = BatchPlanner.of(self._settings)
        return self._planner

    def initialOffset(self) -> Offset:
        return BatchPlanner.initial()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        return self.planner.ahead(start)

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        if start == end:
            return []
        control = json.dumps(BatchPlanner.control(end)).encode()
        pieces = grouped(self.planner.pieces(start, end), self._settings.tasks)
        return [InputPartition(control), *map(InputPartition, pieces)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition.value, bytes):
            yield packed_batch([PackedRow(CELL, "control", partition.value)])
            return
        from anabranch.runner.packing import pack_piece

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
    """Return the pieces in their order, in at most so many groups of about the same number."""
    count = min(len(pieces), most)
    bounds = [len(pieces) * number // count for number in range(count + 1)] if count else []
    return [list(pieces[first:stop]) for first, stop in pairwise(bounds)]


def packed_batch(rows: Sequence[PackedRow]) -> pa.RecordBatch:
    """Return rows for a cell as Spark carries them."""
    columns = {name: [getattr(row, name) for row in rows] for name in _PACKED_ARROW.names}
    return pa.RecordBatch.from_pydict(columns, schema=_PACKED_ARROW)
