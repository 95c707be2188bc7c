"""Lines of NDJSON as a source of property-graph events: scanned in columns, without an object for each event.

The scan knows the plain form of the format (see `formats.events`). Any other line goes to the exact reader, in its
place; so does a stretch in which such lines are frequent, since small blocks cost more than they save.

Law: a block of lines has the events that the exact reader gives for these lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from anabranch.delta.json_lines import BLANK, EXACT, REGULAR, LineScan, lines_end, padded
from anabranch.errors import StreamError
from anabranch.formats.chunks import EVENTS_PER_CHUNK, pack_lines
from anabranch.formats.ndjson import read_line
from anabranch.model.block import Times
from anabranch.model.event import Event
from anabranch.model.graph_block import (
    Bytes,
    Counts,
    GraphBlock,
    GraphColumns,
    GraphSource,
    Places,
    PropertyKeys,
)

ExactLine: TypeAlias = tuple[int, bytes]
"""The number of a line and its bytes, for the exact reader."""

SmallCounts: TypeAlias = npt.NDArray[np.int32]

_FEWEST_LINES = 16  # of a block beside lines for the exact reader
_NEWLINE = b"\n"
# Keys that are no texts in Python become texts in JSON; these may have been some.
_MAYBE_NO_TEXT = re.compile(rb'"(?:[-0-9IN][^"]*|true|false|null)":')
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), check_circular=False)


class GraphLines(GraphSource):
    """Events that stand in `data`, one a line: each row has its first byte, the place behind its last, and its time.
    Between two rows there is nothing but blank lines and comments. `data` has PADDING bytes more."""

    __slots__ = ("_columns", "_data", "_per_event", "_starts", "_stops", "times")

    def __init__(
        self, data: Bytes, starts: Places, stops: Places, times: Times, columns: GraphColumns | None = None
    ) -> None:
        self.times = times
        self._data, self._starts, self._stops = data, starts, stops
        self._columns = columns
        self._per_event = None if columns is None else _per_event(columns)

    @classmethod
    def of_dicts(cls, events: Iterable[Mapping[str, Any]], keys: PropertyKeys = ()) -> GraphBlock | None:
        """Return a block of the JSON objects of events; None when one of them is not plain."""
        try:
            text = _NEWLINE.join([_ENCODER.encode(event).encode() for event in events])
        except (TypeError, ValueError, RecursionError):
            return None
        if _MAYBE_NO_TEXT.search(text) is not None:
            return None
        found = LineScan(padded(text), 0, len(text), _distinct(keys))
        if (found.statuses != REGULAR).any():
            return None
        return GraphBlock.of(_lines(found, 0, len(found.statuses)))

    @classmethod
    def of_regular(cls, data: bytes | memoryview, lengths: Counts, times: Times) -> GraphLines:
        """Return the source of lines that were scanned before, each with a line end behind it."""
        ends = np.cumsum(lengths + 1)
        if len(lengths) != len(times) or (int(ends[-1]) if len(ends) else 0) != len(data):
            raise ValueError("lines of other lengths")
        return cls(padded(data), ends - lengths - 1, ends - 1, times)

    def columns(self, keys: PropertyKeys) -> GraphColumns:
        found, self._columns = self._columns, None
        if found is None or not set(keys) <= set(found.keys):
            found = self._scanned(_distinct(keys))
        return found.with_keys(keys)

    def _scanned(self, keys: PropertyKeys) -> GraphColumns:
        start, end = (int(self._starts[0]), int(self._stops[-1])) if len(self) else (0, 0)
        found = LineScan(self._data, start, end, keys)
        count = len(found.statuses)
        regular = found.regular(0, count)
        alike = np.array_equal(found.times[regular], self.times) and np.array_equal(found.starts[regular], self._starts)
        if not alike or (found.statuses == EXACT).any():
            raise StreamError("the chunk is damaged: its lines are not those that were packed")
        return found.columns(0, count)

    def events(self, rows: Sequence[int]) -> list[Event]:
        found = []
        for row in rows:
            event = read_line(self._line(row))
            if not isinstance(event, Event):
                raise StreamError(f"the chunk is damaged: {event.reason}")
            found.append(event)
        return found

    def packed(self, rows: Places) -> bytes:
        return packed_lines([(self, rows)])

    def lines(self, rows: Places) -> bytes:
        """Return the bytes of these rows, each with a line end behind it."""
        if not len(rows):
            return b""
        starts, stops = self._starts[rows], self._stops[rows]
        if (starts[1:] == stops[:-1] + 1).all():
            return self._data[starts[0] : stops[-1]].tobytes() + _NEWLINE
        whole = self._data.data
        parts: list[bytes | memoryview] = [
            whole[start:stop] for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)
        ]
        return _NEWLINE.join([*parts, b""])

    def lengths(self, rows: Places) -> Counts:
        """Return the numbers of bytes of these rows."""
        return self._stops[rows] - self._starts[rows]

    def counts(self, rows: Places) -> tuple[int, int]:
        """Return how many nodes and relationships the events at these rows have."""
        if self._per_event is None:
            self._per_event = _per_event(self._scanned(()))
        nodes, relationships = self._per_event
        return int(nodes[rows].sum()), int(relationships[rows].sum())

    def _line(self, row: int) -> bytes:
        return self._data[self._starts[row] : self._stops[row]].tobytes()


def _per_event(columns: GraphColumns) -> tuple[SmallCounts, SmallCounts]:
    """Return how many nodes and relationships each event has."""
    return columns.nodes.per_event.astype(np.int32), columns.relationships.per_event.astype(np.int32)


def packed_lines(parts: Sequence[tuple[GraphLines, Places]]) -> bytes:
    """Return one chunk with rows of one or several sources."""
    counts = [source.counts(rows) for source, rows in parts]
    return pack_lines(
        np.concatenate([source.times[rows] for source, rows in parts]),
        (sum(nodes for nodes, _ in counts), sum(relationships for _, relationships in counts)),
        np.concatenate([source.lengths(rows) for source, rows in parts]),
        b"".join([source.lines(rows) for source, rows in parts]),
    )


def read_runs(data: bytes, first_line: int, keys: PropertyKeys = ()) -> Iterator[GraphBlock | ExactLine]:
    """Yield the events of lines as blocks, and between them, in their places, the lines for the exact reader.

    `first_line` is the number of the first line. Blank lines and comments are passed over, and are counted. `keys` are
    the properties that will be asked for.
    """
    at, number, keys = 0, first_line, _distinct(keys)
    is_ascii, whole = data.isascii(), memoryview(data)
    while at < len(data):
        end = lines_end(data, at, EVENTS_PER_CHUNK)
        broken = [] if is_ascii else broken_lines(data[at:end])
        found = LineScan(padded(whole[at:end]), 0, end - at, keys, broken, EVENTS_PER_CHUNK)
        yield from _runs(found, number)
        at, number = end, number + len(found.statuses)


def _runs(found: LineScan, number: int) -> Iterator[GraphBlock | ExactLine]:
    """Yield runs of regular lines, and the other lines with their numbers, from `number` on."""
    count = len(found.statuses)
    exact = np.flatnonzero(found.statuses == EXACT).tolist()
    if not exact:
        yield from _blocks(found, 0, count)
        return
    first = 0
    for stop in (*exact, count):
        if stop - first < _FEWEST_LINES:
            yield from _exact_lines(found, number, first, stop)
        else:
            yield from _blocks(found, first, stop)
        yield from _exact_lines(found, number, stop, min(stop + 1, count))
        first = stop + 1


def _blocks(found: LineScan, first: int, stop: int) -> Iterator[GraphBlock]:
    lines = _lines(found, first, stop)
    if len(lines):
        yield GraphBlock.of(lines)


def _exact_lines(found: LineScan, number: int, first: int, stop: int) -> Iterator[ExactLine]:
    for line in range(first, stop):
        if found.statuses[line] != BLANK:
            yield number + line, found.data[found.starts[line] : found.stops[line]].tobytes()


def _lines(found: LineScan, first: int, stop: int) -> GraphLines:
    """Return the source of lines of which none is for the exact reader."""
    regular = found.regular(first, stop)
    starts, stops, times = found.starts[regular], found.stops[regular], found.times[regular]
    return GraphLines(found.data, starts, stops, times, found.columns(first, stop))


def _distinct(keys: PropertyKeys) -> PropertyKeys:
    return tuple(dict.fromkeys(keys))


def broken_lines(piece: bytes) -> list[int]:
    """Return the numbers of the lines that are no UTF-8, from 0 on."""
    if piece.isascii():
        return []
    try:
        piece.decode()
    except UnicodeDecodeError:
        return [number for number, line in enumerate(piece.split(_NEWLINE)) if not _is_text(line)]
    return []


def _is_text(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
