"""Blocks of property-graph events that are made of events: the plainest source of columns there is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from io import BytesIO
from random import Random

import numpy as np

from anabranch.errors import StreamError
from anabranch.formats import chunks
from anabranch.formats.graph_batches import GraphBatch
from anabranch.formats.parquet import event_batches, opened_parquet, write_parquet
from anabranch.model.event import Event
from anabranch.model.graph_block import (
    PROPERTIES,
    GraphBlock,
    GraphColumns,
    GraphSource,
    NodeColumns,
    Places,
    PropertyKeys,
    RelationshipColumns,
    ValueColumn,
    ValueKind,
)
from anabranch.model.values import Node, Relationship


class ListedEvents(GraphSource):
    """A source that holds its events as a list; every value of its columns is an object."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.listed = list(events)
        self.times = np.array([event.event_time for event in self.listed], np.int64)
        self.read = 0  # how many events were made of columns

    def events(self, rows: Sequence[int]) -> list[Event]:
        self.read += len(rows)
        return [self.listed[row] for row in rows]

    def packed(self, rows: Places) -> bytes:
        return chunks.pack([self.listed[row] for row in rows.tolist()])

    def columns(self, keys: PropertyKeys) -> GraphColumns:
        objects: list[object] = []

        def column(values: Iterable[object]) -> ValueColumn:
            kinds, places = [], []
            for value in values:
                kinds.append(ValueKind.ABSENT if value is None else ValueKind.OBJECT)
                places.append(len(objects))
                objects.append(value)
            firsts = np.array(places, np.int64)
            return ValueColumn(np.array(kinds, np.uint8), firsts, np.zeros_like(firsts))

        def said(element: Node | Relationship, key: str) -> object:
            return dict(element.properties) if key == PROPERTIES else element.properties.get(key)

        nodes = [node for event in self.listed for node in event.nodes]
        links = [one for event in self.listed for one in event.relationships]
        return GraphColumns(
            keys,
            np.zeros(8, np.uint8),
            objects,  # type: ignore[arg-type]
            NodeColumns(
                np.array([len(event.nodes) for event in self.listed], np.int64),
                column(node.id for node in nodes),
                column(node.labels for node in nodes),
                tuple(column(said(node, key) for node in nodes) for key in keys),
            ),
            RelationshipColumns(
                np.array([len(event.relationships) for event in self.listed], np.int64),
                column(one.id for one in links),
                column(one.type for one in links),
                column(one.source for one in links),
                column(one.target for one in links),
                tuple(column(said(one, key) for one in links) for key in keys),
            ),
        )


def graph_block(events: Iterable[Event]) -> GraphBlock:
    return GraphBlock.of(ListedEvents(events))


def batch_block(events: Iterable[Event]) -> GraphBlock | None:
    """A block of the Arrow batch that a Parquet file of the events holds; None where ids are of two kinds."""
    file = BytesIO()
    try:
        write_parquet(events, file)
    except StreamError:
        return None
    with opened_parquet(file) as parquet:
        found = [GraphBatch.of(batch) for batch in event_batches(parquet)]
    blocks = [GraphBlock.of(source) for source in found if source is not None]
    return GraphBlock.joined(blocks) if blocks and len(blocks) == len(found) else None


def graph_event(random: Random, time: int) -> Event:
    """An event of a few nodes, with relationships of which some have no id."""
    ends = random.sample(range(9), 2)
    nodes = tuple(Node(end, ("N",), {"x": random.randrange(5)}) for end in ends)
    links = tuple(
        Relationship(random.choice((None, f"r{random.randrange(99)}.{number}")), "R", *ends, {"y": random.random()})
        for number in range(random.randrange(3))
    )
    return Event(time, nodes, links)
