"""Blocks of property-graph events that a buffer holds for long: folded up as compressed chunks.

A source of events takes several times the room of its chunk, and once its elements are encoded it is rarely read again:
by a query that is registered late, by an explanation, or when a recomputed part looks at events.

Law: a folded block has the events of the block. It is opened at most once, and then stays open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from anabranch.formats import chunks
from anabranch.model.event import Event
from anabranch.model.graph_block import (
    EventBlock,
    GraphBlock,
    GraphColumns,
    GraphSource,
    Places,
    PropertyKeys,
)


class FoldedEvents(GraphSource):
    """The events of a source as a chunk, until they are read."""

    __slots__ = ("_chunk", "_opened", "times")

    def __init__(self, source: GraphSource) -> None:
        self.times = source.times
        self._chunk = source.packed(np.arange(len(source)))
        self._opened: GraphSource | None = None

    def columns(self, keys: PropertyKeys) -> GraphColumns:
        return self._source().columns(keys)

    def events(self, rows: Sequence[int]) -> list[Event]:
        return self._source().events(rows)

    def packed(self, rows: Places) -> bytes:
        return self._source().packed(rows)

    def _source(self) -> GraphSource:
        if self._opened is None:
            found = chunks.opened(self._chunk)
            assert isinstance(found, GraphBlock), "columns stay columns in a chunk"
            self._opened, self._chunk = found.parts[0].source, b""
        return self._opened


def folded(block: EventBlock) -> EventBlock:
    """Return the block folded up: one that is all of a source; any other block as it is."""
    if not isinstance(block, GraphBlock) or len(block.parts) != 1:
        return block
    (part,) = block.parts
    if len(block) != len(part.source) or isinstance(part.source, FoldedEvents):
        return block
    return replace(block, parts=(replace(part, source=FoldedEvents(part.source)),))
