"""Property-graph events in lines of NDJSON as columns, without an object for each event.

Work: O(bytes). State: none; the arrays of a scan have room for as many elements as there are opening braces, of which
the system gives what is written.

Law: see `delta.kernels.json_lines`: a regular line is one that the exact reader accepts, and has the same event.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from anabranch.delta.batch import Ids, Mask
from anabranch.delta.kernels import json_lines as kernels
from anabranch.delta.texts import PADDING
from anabranch.model.graph_block import (
    PROPERTIES,
    Bytes,
    GraphColumns,
    NodeColumns,
    PropertyKeys,
    RelationshipColumns,
    ValueColumn,
)

REGULAR, EXACT, BLANK = kernels.REGULAR, kernels.EXACT, kernels.BLANK
_NEWLINE, _BRACE = ord("\n"), ord("{")
_NO_KEY = b'\xff"'  # no text of UTF-8


class LineScan:
    """The lines between two places of `data`, which has PADDING bytes more: where they start and stop, the status of
    each (REGULAR, EXACT: for the exact reader, BLANK: also a comment), and the event times of regular lines.

    The bytes are UTF-8, apart from the `broken` lines, counted from 0. There are `most_lines` at most.
    """

    __slots__ = ("_keys", "_nodes", "_relationships", "_rows", "data", "starts", "statuses", "stops", "times")

    def __init__(
        self,
        data: Bytes,
        start: int,
        end: int,
        keys: PropertyKeys,
        broken: Sequence[int] = (),
        most_lines: int | None = None,
    ) -> None:
        text = data[start:end]
        if most_lines is None:
            most_lines = int(np.count_nonzero(text == _NEWLINE)) + 1
        most_elements = int(np.count_nonzero(text == _BRACE))
        rows = kernels.LineRows(
            np.empty(most_lines, np.int64),
            np.empty(most_lines, np.int64),
            np.zeros(most_lines, np.uint8),
            *(np.zeros(most_lines, np.int64) for _ in range(3)),
        )
        rows.statuses[list(broken)] = EXACT
        nodes = _element_rows(kernels.NODE_FIELDS + len(keys), most_elements)
        relationships = _element_rows(kernels.RELATIONSHIP_FIELDS + len(keys), most_elements)
        totals = np.zeros(3, np.int64)
        kernels.scan(data, start, end, _asked_keys(keys), rows, nodes, relationships, totals)
        lines, node_count, relationship_count = totals.tolist()
        self.data = data
        self.starts: Ids = rows.starts[:lines]
        self.stops: Ids = rows.stops[:lines]
        self.statuses: Bytes = rows.statuses[:lines]
        self.times: Ids = rows.times[:lines]
        self._keys = keys
        self._rows = rows
        self._nodes = _value_columns(nodes, node_count)
        self._relationships = _value_columns(relationships, relationship_count)

    def regular(self, first: int, stop: int) -> slice | npt.NDArray[np.intp]:
        """Return which of these lines are regular."""
        mask = self.statuses[first:stop] == REGULAR
        return slice(first, stop) if mask.all() else np.flatnonzero(mask) + first

    def columns(self, first: int, stop: int) -> GraphColumns:
        """Return the columns of the regular ones of these lines."""
        regular = self.regular(first, stop)
        per_event, relationships_per_event = self._rows.nodes, self._rows.relationships
        node_ids, labels, *properties = _picked(self._nodes, per_event, first, stop)
        nodes = NodeColumns(per_event[regular], node_ids, labels, tuple(properties))
        ids, types, sources, targets, *properties = _picked(self._relationships, relationships_per_event, first, stop)
        relationships = RelationshipColumns(
            relationships_per_event[regular], ids, types, sources, targets, tuple(properties)
        )
        return GraphColumns(self._keys, self.data, (), nodes, relationships)


def scan_maps(data: Bytes, starts: Ids, stops: Ids, keys: PropertyKeys) -> tuple[Mask, tuple[ValueColumn, ...]]:
    """Return which maps of properties are for the exact reader, and the columns of these properties of the others.

    Each map is a text of JSON between two places of `data`, which can be written to and has PADDING bytes more; one
    that starts at -1 is absent.
    """
    rows = _element_rows(len(keys), len(starts))
    statuses = np.empty(len(starts), np.uint8)
    kernels.scan_maps(data, starts, stops, _asked_keys(keys), rows, statuses)
    return statuses == EXACT, _value_columns(rows, len(starts))


def scan_instants(data: Bytes, starts: Ids, stops: Ids) -> tuple[Mask, Ids]:
    """Return which texts are no times of the common form, and the times of the others."""
    times = np.empty(len(starts), np.int64)
    statuses = np.empty(len(starts), np.uint8)
    kernels.scan_instants(data, starts, stops, times, statuses)
    return statuses == EXACT, times


def padded(text: bytes | memoryview) -> Bytes:
    """Return bytes as a scan takes them, with zeros behind them."""
    data = np.empty(len(text) + PADDING, np.uint8)
    data[: len(text)] = np.frombuffer(text, np.uint8)
    data[len(text) :] = 0
    return data


def lines_end(data: bytes, place: int, count: int) -> int:
    """Return the place behind this many lines, or the end."""
    return int(kernels.lines_end(np.frombuffer(data, np.uint8), place, len(data), count))


def _asked_keys(keys: PropertyKeys) -> kernels.AskedKeys:
    texts = [_NO_KEY if key == PROPERTIES else _key_text(key) for key in keys]
    whole = keys.index(PROPERTIES) if PROPERTIES in keys else -1
    words = np.array([int.from_bytes(text[:-1][:8], "little") for text in texts], np.uint64)
    ends = np.cumsum([0, *map(len, texts)])
    return kernels.AskedKeys(words, ends[:-1], ends[1:] - 1, padded(b"".join(texts)), whole)


def _key_text(key: str) -> bytes:
    """Return a key as JSON has it, without the quote before it."""
    return json.dumps(key, ensure_ascii=False)[1:].encode("utf-8", "surrogatepass")


def _element_rows(columns: int, rows: int) -> kernels.ElementRows:
    shape = (columns, rows)
    return kernels.ElementRows(np.empty(shape, np.uint8), np.empty(shape, np.int64), np.empty(shape, np.int64))


def _value_columns(rows: kernels.ElementRows, count: int) -> tuple[ValueColumn, ...]:
    return tuple(
        ValueColumn(kinds[:count], firsts[:count], stops[:count])
        for kinds, firsts, stops in zip(rows.kinds, rows.firsts, rows.stops, strict=True)
    )


def _picked(columns: tuple[ValueColumn, ...], per_line: Ids, first: int, stop: int) -> tuple[ValueColumn, ...]:
    own = slice(int(per_line[:first].sum()), int(per_line[:stop].sum()))
    return tuple(column.picked(own) for column in columns)
