"""The two tables of the pipeline: rows from the packers to a cell, and rows from a cell.

Invariant: the schemas are the same for every job, so that a restart with other queries finds the same plan.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from anabranch.model.event import Event

if TYPE_CHECKING:
    import pyarrow as pa

PACKED_SCHEMA = (
    "cell string, kind string, stream string, split string, place long, number long, count long, data binary"
)
TOLD_SCHEMA = (
    "kind string, place long, query string, number long, at long, rows long, "
    "json binary, csv binary, typed binary, data binary"
)

CELL = "0"
"""The one cell that holds all streams and queries."""

PackedKind = Literal["chunk", "links", "malformed", "control"]
ToldKind = Literal["answer", "malformed", "late", "ahead", "warning", "failure", "status"]


@dataclass(frozen=True, slots=True)
class PackedRow:
    """A row sent to a cell: a chunk of events or of links (see `linked`), dead letters of malformed records, or control
    data.

    `place` is the piece's order within its split, `number` the row's within the piece; `count` is the number of dead
    letters. A chunk that does not leave the process holds its `events`, with or instead of data.
    """

    cell: str
    kind: PackedKind
    data: bytes
    stream: str = ""
    split: str = ""
    place: int = 0
    number: int = 0
    count: int = 0
    events: Sequence[Event] | None = None


@dataclass(frozen=True, slots=True)
class CellRow:
    """A row that a cell emits. For records set aside, `query` is the stream and `rows` their number."""

    kind: ToldKind
    query: str = ""
    number: int = 0
    at: int = 0
    rows: int = 0
    json: bytes = b""
    csv: bytes = b""
    typed: bytes = b""
    data: bytes = b""

    def detail(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.data)
        return found


TOLD_COLUMNS = ("kind", "place", "query", "number", "at", "rows", "json", "csv", "typed", "data")


def told_values(row: CellRow, place: int) -> list[Any]:
    """Return a row's values in the order of the columns; `place` is its place in the batch."""
    return [place if name == "place" else getattr(row, name) for name in TOLD_COLUMNS]


def told_rows(table: pa.Table) -> list[CellRow]:
    """Return the rows of a batch in their order."""
    columns = [table.column(name).to_pylist() for name in TOLD_COLUMNS]
    rows = sorted(zip(*columns, strict=True), key=lambda row: row[1])
    return [CellRow(kind, *rest) for kind, _place, *rest in rows]
