"""The one stateful operator: Spark's state handles around a cell.

Values of Spark's state stay at or under a mebibyte: longer ones are kept in parts.

Invariant: the operator's state variables never change their names and types, whatever the job; else a restart would be
refused by Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pyspark import SparkFiles
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from anabranch.runner.rows import TOLD_COLUMNS, PackedRow, told_values

if TYPE_CHECKING:
    from anabranch.runner.job import Job

_PART = 1 << 20
_TOLD = Row(*TOLD_COLUMNS)
_PACKED = ("cell", "kind", "data", "stream", "split", "place", "number", "count")


class SparkCellState:
    """A cell's state in Spark's state store."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self.durable = True
        self._head = handle.getValueState("head", "data binary")
        self._chunks = _Bytes(handle.getMapState("chunks", "number long, part int", "parts int, data binary"))
        self._parts = _Bytes(handle.getMapState("parts", "name string, part int", "parts int, data binary"))

    def head(self) -> bytes | None:
        found = self._head.get()
        return None if found is None else bytes(found[0])

    def put_head(self, data: bytes) -> None:
        self._head.update((data,))

    def chunk(self, number: int) -> bytes | None:
        return self._chunks.get(number)

    def chunks(self) -> Iterable[tuple[int, bytes]]:
        return self._chunks.items()

    def put_chunk(self, number: int, data: bytes) -> None:
        self._chunks.put(number, data)

    def remove_chunk(self, number: int) -> None:
        self._chunks.remove(number)

    def parts(self) -> Iterable[tuple[str, bytes]]:
        return self._parts.items()

    def put_part(self, name: str, data: bytes) -> None:
        self._parts.put(name, data)

    def remove_part(self, name: str) -> None:
        self._parts.remove(name)


class _Bytes:
    """Bytes of any length by key, on a map state of limited values. The first part holds the number of parts."""

    def __init__(self, state: Any) -> None:
        self._state = state

    def get(self, key: Any) -> bytes | None:
        first = self._state.getValue((key, 0))
        if first is None:
            return None
        rest = (self._state.getValue((key, part)) for part in range(1, first[0]))
        return bytes(first[1]) + b"".join(bytes(one[1]) for one in rest)

    def items(self) -> Iterable[tuple[Any, bytes]]:
        found: dict[Any, dict[int, bytes]] = {}
        counts: dict[Any, int] = {}
        for (key, part), (count, data) in self._state.iterator():
            found.setdefault(key, {})[part] = bytes(data)
            if part == 0:
                counts[key] = count
        return [(key, b"".join(found[key][part] for part in range(count))) for key, count in counts.items()]

    def put(self, key: Any, data: bytes) -> None:
        count = max(1, -(-len(data) // _PART))
        old = self._state.getValue((key, 0)) if count > 1 else None
        for part in range(count):
            self._state.updateValue((key, part), (count, data[part * _PART : (part + 1) * _PART]))
        for part in range(count, 0 if old is None else old[0]):
            self._state.removeKey((key, part))

    def remove(self, key: Any) -> None:
        part = 0
        while part == 0 or self._state.containsKey((key, part)):  # cheaper than fetching the first part
            self._state.removeKey((key, part))
            part += 1


class CellProcessor(StatefulProcessor):
    """Runs a cell on each batch of packed rows.

    `job_file` was sent to the workers and has this `digest`; `run` names the cells' caches.
    """

    def __init__(self, job_file: str, digest: str, run: str) -> None:
        self._job_file = job_file
        self._digest = digest
        self._run = run

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = SparkCellState(handle)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        # Spark makes a processor on the driver too, to read its state variables: only a worker needs the engine.
        from anabranch.runner.cell import Cell
        from anabranch.runner.garbage import settle

        packed = self._batch([PackedRow(*(row[name] for name in _PACKED)) for row in rows])
        cell = Cell(self._job(), f"{self._run}/{key[0]}", self._state)
        for place, row in enumerate(cell.process(packed)):
            yield _TOLD(*told_values(row, place))
        # Spark's daemon collects garbage after every task, which would look at the whole window each time. An engine
        # that was put aside for a new one must be found first.
        settle(whole=cell.rebuilt)

    def _job(self) -> Job:
        from anabranch.runner.job import load_job

        return load_job(SparkFiles.get(self._job_file), self._digest)

    def _batch(self, rows: list[PackedRow]) -> list[PackedRow]:
        """Return the rows as the cell takes them."""
        return rows

    def close(self) -> None:
        pass
