"""A block of property-graph events as columns: no object for each event, element or property.

A source of events (lines of JSON, an Arrow batch) gives the columns that queries read, and single events on request. A
block is a run of events of one or several sources, in any order.

Law: the events of a block are those that its sources read one by one; columns hold the same values as these events, but
for the properties that were not asked for. A slice of a block is the block of the slice.

Invariant: arrays are never written to after they were handed over. An event names an element at most once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from anabranch.model.block import Times, TripleBlock
from anabranch.model.event import Event
from anabranch.model.values import Node, Relationship, Value

Bytes: TypeAlias = npt.NDArray[np.uint8]
Counts: TypeAlias = npt.NDArray[np.int64]
Places: TypeAlias = npt.NDArray[np.int64]
PropertyKeys: TypeAlias = tuple[str, ...]


class ValueKind(IntEnum):
    """How a value stands in a column: what its two numbers mean."""

    ABSENT = 0
    TEXT = 1  # the start and the end of the UTF-8 text in `data`
    INTEGER = 2  # the number
    FLOAT = 3  # the bits of the number
    BOOLEAN = 4  # 0 or 1
    JSON = 5  # the start and the end of JSON text in `data`
    OBJECT = 6  # the place in `objects`
    PROPERTIES = 7  # the start and the end of the JSON text of an element's properties in `data`


PROPERTIES = "\0properties"
"""The key under which all properties of an element are asked for, as one map; absent where it has none."""


class ValueColumn(NamedTuple):
    """Values of a column: the kind of each, and one or two numbers. Equal kinds and numbers are equal values; the
    reverse does not hold, since texts stand wherever they were read."""

    kinds: npt.NDArray[np.uint8]
    firsts: npt.NDArray[np.int64]
    stops: npt.NDArray[np.int64]

    def picked(self, rows: slice | Places) -> ValueColumn:
        return ValueColumn(self.kinds[rows], self.firsts[rows], self.stops[rows])


class NodeColumns(NamedTuple):
    """The nodes of events, in their order. Labels are a JSON list of texts, an object that is a tuple of texts, or
    absent; `properties` has one column for each asked key."""

    per_event: Counts
    ids: ValueColumn
    labels: ValueColumn
    properties: tuple[ValueColumn, ...]


class RelationshipColumns(NamedTuple):
    """The relationships of events, in their order. An id is absent where the stream makes one."""

    per_event: Counts
    ids: ValueColumn
    types: ValueColumn
    sources: ValueColumn
    targets: ValueColumn
    properties: tuple[ValueColumn, ...]


@dataclass(frozen=True, slots=True)
class GraphColumns:
    """The elements of events as columns. `data` are the bytes in which texts stand, with eight bytes more behind them;
    `objects` are the values that fit no other kind."""

    keys: PropertyKeys
    data: Bytes
    objects: Sequence[Value]
    nodes: NodeColumns
    relationships: RelationshipColumns

    def with_keys(self, keys: PropertyKeys) -> GraphColumns:
        """Return the columns with some of the properties, in this order."""
        if self.keys == keys:
            return self
        places = [self.keys.index(key) for key in keys]
        nodes, relationships = self.nodes, self.relationships
        return replace(
            self,
            keys=keys,
            nodes=nodes._replace(properties=tuple(nodes.properties[place] for place in places)),
            relationships=relationships._replace(properties=tuple(relationships.properties[place] for place in places)),
        )

    def with_properties(self, keys: PropertyKeys, events: Sequence[Event]) -> GraphColumns:
        """Return the columns of these events with PROPERTIES too, where `keys` names it."""
        objects = list(self.objects)

        def maps(elements: Iterable[Node | Relationship]) -> ValueColumn:
            first = len(objects)
            objects.extend(dict(one.properties) for one in elements)
            places = np.arange(first, len(objects))
            return ValueColumn(np.full(len(places), ValueKind.OBJECT, np.uint8), places, places)

        of_nodes = maps(node for event in events for node in event.nodes)
        of_links = maps(one for event in events for one in event.relationships)
        nodes, links = self.nodes, self.relationships
        return replace(
            self,
            keys=(*self.keys, PROPERTIES),
            objects=objects,
            nodes=nodes._replace(properties=(*nodes.properties, of_nodes)),
            relationships=links._replace(properties=(*links.properties, of_links)),
        ).with_keys(keys)


class GraphSource(ABC):
    """Events of one origin. A relationship without an id has none in the columns, and None in the events."""

    times: Times

    def __len__(self) -> int:
        return len(self.times)

    @abstractmethod
    def columns(self, keys: PropertyKeys) -> GraphColumns:
        """Return the columns of all events, with these properties. They are not kept: they take more room than the
        events, and a second request reads them again."""

    @abstractmethod
    def events(self, rows: Sequence[int]) -> list[Event]:
        """Return the events at these rows, with all properties."""

    @abstractmethod
    def packed(self, rows: Places) -> bytes:
        """Return a chunk with the events at these rows."""


@dataclass(frozen=True, slots=True)
class GraphPart:
    """A source in a block. Row r of the source has the sequence number `shift` + r in its split, once a stream has
    accepted it; before that, relationships without an id have none."""

    source: GraphSource
    split: str = ""
    shift: int = 0
    is_accepted: bool = False

    def events(self, rows: Sequence[int]) -> list[Event]:
        if not self.is_accepted:
            return self.source.events(rows)
        return [
            with_ids(event, self.split, self.shift + row)
            for row, event in zip(rows, self.source.events(rows), strict=True)
        ]


@dataclass(frozen=True, slots=True, eq=False)
class GraphBlock(Sequence[Event]):
    """A run of events: event i is row `rows[i]` of the part number `parts_of[i]`."""

    times: Times
    parts: tuple[GraphPart, ...]
    parts_of: npt.NDArray[np.int32]
    rows: Places

    @classmethod
    def of(cls, source: GraphSource) -> GraphBlock:
        return cls(source.times, (GraphPart(source),), *_whole_run(len(source)))

    @classmethod
    def joined(cls, blocks: Sequence[GraphBlock]) -> GraphBlock:
        """Concatenate blocks."""
        if len(blocks) == 1:
            return blocks[0]
        parts: dict[GraphPart, int] = {}
        numbers = [
            [parts.setdefault(part, len(parts)) if used else -1 for part, used in block._used()] for block in blocks
        ]
        return cls(
            np.concatenate([block.times for block in blocks]),
            tuple(parts),
            np.concatenate(
                [np.array(own, np.int32)[block.parts_of] for own, block in zip(numbers, blocks, strict=True)]
            ),
            np.concatenate([block.rows for block in blocks]),
        )

    def named(self, split: str, first_sequence: int) -> GraphBlock:
        """Return the block as a stream has accepted it: its events have consecutive sequence numbers in a split."""
        if not len(self):
            return self
        if not self.is_run:
            raise ValueError("only a run of one source is accepted as it is")
        part = GraphPart(self.parts[0].source, split, first_sequence - int(self.rows[0]), is_accepted=True)
        return replace(self, parts=(part,))

    def __len__(self) -> int:
        return len(self.times)

    @overload
    def __getitem__(self, index: int) -> Event: ...

    @overload
    def __getitem__(self, index: slice) -> GraphBlock: ...

    def __getitem__(self, index: int | slice) -> Event | GraphBlock:
        if isinstance(index, slice):
            return self._picked(index)
        part = self.parts[int(self.parts_of[index])]
        return part.events([int(self.rows[index])])[0]

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events())

    def events(self) -> list[Event]:
        """Return the events one by one."""
        if len(self.parts) == 1:
            return self.parts[0].events(self.rows.tolist())
        found: list[Event | None] = [None] * len(self)
        for number, part in enumerate(self.parts):
            places = np.flatnonzero(self.parts_of == number)
            for place, event in zip(places.tolist(), part.events(self.rows[places].tolist()), strict=True):
                found[place] = event
        return [event for event in found if event is not None]

    def without(self, places: Iterable[int]) -> GraphBlock:
        """Return the block without the events at these places."""
        mask = np.ones(len(self), np.bool_)
        mask[list(places)] = False
        return self._picked(np.flatnonzero(mask))

    def sorted_by(self, order: npt.NDArray[np.intp]) -> GraphBlock:
        """Return the events in another order."""
        return self._picked(order)

    def _picked(self, which: slice | Places) -> GraphBlock:
        return GraphBlock(self.times[which], self.parts, self.parts_of[which], self.rows[which])

    def _used(self) -> Iterator[tuple[GraphPart, bool]]:
        """Yield the parts, and whether an event is of them: slices share the parts of their block."""
        counts = np.bincount(self.parts_of, minlength=len(self.parts)).tolist()
        return ((part, count > 0) for part, count in zip(self.parts, counts, strict=True))

    @property
    def is_run(self) -> bool:
        """Whether the events are neighbours in one source, in its order."""
        return len(self.parts) == 1 and not (np.diff(self.rows) != 1).any()

    @property
    def is_ordered(self) -> bool:
        """Whether no event is earlier than the one before it."""
        return bool((self.times[1:] >= self.times[:-1]).all())


@lru_cache(8)
def _whole_run(count: int) -> tuple[npt.NDArray[np.int32], Places]:
    """Return the parts and the rows of all events of one source; blocks of the same length share them."""
    return np.zeros(count, np.int32), np.arange(count)


def with_ids(event: Event, split: str, sequence: int) -> Event:
    """Give each relationship without an id an id that is the same in a rerun."""
    for one in event.relationships:
        if one.id is None:
            break
    else:
        return event
    named = [
        one
        if one.id is not None
        else Relationship(made_id(split, sequence, index), one.type, one.source, one.target, one.properties)
        for index, one in enumerate(event.relationships)
    ]
    return replace(event, relationships=tuple(named))


def made_id(split: str, sequence: int, index: int) -> str:
    """Return the id of a relationship that came without one: its place in the event, and the event's in its split."""
    return f"~{split}:{sequence}.{index}" if split else f"~{sequence}.{index}"


EventBlock: TypeAlias = TripleBlock | GraphBlock
"""Events as columns, of either model."""


def joined(blocks: Sequence[EventBlock]) -> EventBlock | None:
    """Concatenate blocks of one kind; None for none, or for blocks of two kinds."""
    triples = [block for block in blocks if isinstance(block, TripleBlock)]
    graphs = [block for block in blocks if isinstance(block, GraphBlock)]
    if triples:
        return None if graphs else TripleBlock.joined(triples)
    return GraphBlock.joined(graphs) if graphs else None


def without(events: Sequence[Event], places: Iterable[int]) -> Sequence[Event]:
    """Return events without those at some places: of a block, a block."""
    if isinstance(events, EventBlock):
        return events.without(places)
    gone = set(places)
    return [event for place, event in enumerate(events) if place not in gone]


def times_of(events: Sequence[Event]) -> Times:
    """Return the times of events."""
    if isinstance(events, EventBlock):
        return events.times
    return np.fromiter((event.event_time for event in events), np.int64, len(events))
