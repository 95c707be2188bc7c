"""Events that are read out of the columns of a source, value by value."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from itertools import islice
from typing import Any

from anabranch.delta.batch import ABSENT
from anabranch.delta.dictionary import Dictionary
from anabranch.formats.events import value_from_json
from anabranch.model.event import Event
from anabranch.model.graph_block import PROPERTIES, GraphColumns, GraphSource, ValueColumn, ValueKind
from anabranch.model.values import Node, Relationship, Value


def value_of(columns: GraphColumns, column: ValueColumn, row: int) -> Any:
    kind, first, stop = (int(one[row]) for one in column)
    match ValueKind(kind):
        case ValueKind.ABSENT:
            return None
        case ValueKind.TEXT:
            return columns.data[first:stop].tobytes().decode()
        case ValueKind.INTEGER:
            return first
        case ValueKind.FLOAT:
            return struct.unpack("<d", struct.pack("<q", first))[0]
        case ValueKind.BOOLEAN:
            return bool(first)
        case ValueKind.JSON:
            return json.loads(columns.data[first:stop].tobytes())
        case ValueKind.OBJECT:
            return columns.objects[first]


def properties_of(columns: GraphColumns, values: tuple[ValueColumn, ...], row: int) -> dict[str, Any]:
    found = {key: value_of(columns, column, row) for key, column in zip(columns.keys, values, strict=True)}
    return {key: value for key, value in found.items() if value is not None}


def events_of(source: GraphSource, keys: tuple[str, ...]) -> list[Event]:
    """The events that stand in the columns."""
    columns = source.columns(keys)
    assert columns.keys == keys
    nodes, relationships = columns.nodes, columns.relationships
    assert len(columns.data) >= 8
    all_nodes = [
        Node(
            value_of(columns, nodes.ids, row),
            tuple(value_of(columns, nodes.labels, row) or ()),
            properties_of(columns, nodes.properties, row),
        )
        for row in range(len(nodes.ids.kinds))
    ]
    all_relationships = [
        Relationship(
            *(
                value_of(columns, column, row)
                for column in (relationships.ids, relationships.types, relationships.sources, relationships.targets)
            ),
            properties_of(columns, relationships.properties, row),
        )
        for row in range(len(relationships.ids.kinds))
    ]
    assert int(nodes.per_event.sum()) == len(all_nodes)
    assert int(relationships.per_event.sum()) == len(all_relationships)
    next_nodes, next_relationships = iter(all_nodes), iter(all_relationships)
    return [
        Event(time, tuple(islice(next_nodes, node_count)), tuple(islice(next_relationships, relationship_count)))
        for time, node_count, relationship_count in zip(
            source.times.tolist(), nodes.per_event.tolist(), relationships.per_event.tolist(), strict=True
        )
    ]


def narrowed(event: Event, keys: tuple[str, ...]) -> Event:
    """The event with these properties alone, in the order of the keys."""

    def picked(properties: Any) -> dict[str, Any]:
        return {key: properties[key] for key in keys if key in properties}

    return Event(
        event.event_time,
        tuple(Node(one.id, one.labels, picked(one.properties)) for one in event.nodes),
        tuple(
            Relationship(one.id, one.type, one.source, one.target, picked(one.properties))
            for one in event.relationships
        ),
        event.triples,
    )


def whole_maps_of(source: GraphSource) -> list[Value]:
    """The maps of all properties of nodes, then those of relationships, as the dictionary reads them from columns."""
    dictionary = Dictionary(value_of_json=value_from_json)
    columns = source.columns(("name", PROPERTIES))
    found: list[Value] = []
    for elements in (columns.nodes, columns.relationships):
        ids = dictionary.encode_column(elements.properties[1], columns.data, columns.objects)
        found += [{} if one == ABSENT else dictionary.decode(one) for one in ids.tolist()]
    return found


def whole_maps_in(events: Sequence[Event]) -> list[Value]:
    """The same of events."""
    nodes = [dict(node.properties) for event in events for node in event.nodes]
    return [*nodes, *(dict(one.properties) for event in events for one in event.relationships)]
