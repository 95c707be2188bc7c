"""Events as JSON objects: the one event format of NDJSON, Parquet and `session.push`.

    {"at": "2022-10-14T14:45:00Z",
     "nodes": [{"id": 5, "labels": ["Bike"], "properties": {"id": 5}}],
     "relationships": [{"id": "r1", "type": "rentedAt", "from": 5, "to": 1, "properties": {"user_id": 1234}}]}

or of RDF: {"at": ..., "triples": [["<http://ex/a>", "<http://ex/p>", "\\"x\\""]]}; see `formats.rdf.records`.

Also read: `edges` for `relationships`; `at` as epoch milliseconds; `label` for one label; `start`/`end` or
`source`/`target` for `from`/`to`; typed values such as {"$date": "2015-07-21"} and {"$point": {"x": 1, "y": 2}}. A
property that is null is absent.

Invariant: what is read is a valid event or a MalformedEventError whose reason names the place
(`relationships[0].to: missing`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from types import ModuleType
from typing import Any, TypeAlias

from anabranch.errors import EvaluationError, MalformedEventError
from anabranch.formats.values import (
    INTEGER_MAX,
    INTEGER_MIN,
    ValueFormatError,
    node_to_json,
    relationship_to_json,
    tagged_value,
    to_typed_json,
)
from anabranch.model.compare import content_key
from anabranch.model.event import Event
from anabranch.model.graph import PropertyGraph
from anabranch.model.instants import format_instant, parse_instant
from anabranch.model.points import Point
from anabranch.model.temporal import Date, DateTime, Duration, LocalDateTime, LocalTime, Time
from anabranch.model.triples import TripleGraph
from anabranch.model.union import unite
from anabranch.model.values import ElementId, Node, Relationship, Value

Json = Any
EventLike: TypeAlias = Event | Mapping[str, Any] | str
GraphLike: TypeAlias = PropertyGraph | Mapping[str, Any] | Iterable[EventLike]

_FIELDS = frozenset(("at", "nodes", "relationships", "edges"))
_RDF_FIELDS = frozenset(("triples", "turtle", "graph", "@context", "@graph", "@id", "@type"))
_START_NAMES = ("from", "start", "source")
_END_NAMES = ("to", "end", "target")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FARTHEST_MILLIS = 2**63 // 1000 - 1


def event_from_dict(data: Json, place: str = "", stream: str = "") -> Event:
    """The event of a JSON object, or a MalformedEventError with the place and the reason.

    `place` is where the record stands in its stream; it tells the blank nodes of RDF records apart.
    """
    if not isinstance(data, dict | Mapping):
        if isinstance(data, str):
            return _timed_triple(data, place, stream)
        raise _malformed("", f"an event is an object, not {_kind(data)}")
    if len(data) > 1 and not data.keys() <= _FIELDS:
        if not _RDF_FIELDS.isdisjoint(data) and (event := _rdf_event(data, place, stream)) is not None:
            return event
        _refuse_typo(data)
    if "at" not in data:
        if (event := _rdf_event(data, place, stream)) is not None:
            return event
        raise _malformed("at", "missing")
    return Event(instant_from_json(data["at"]), *_elements(data))


def _rdf_event(data: Mapping[str, Any], place: str, stream: str) -> Event | None:
    """Return the event of an object that holds RDF; None when it does not."""
    records = _records()
    return records.rdf_event(data, place, stream) if records.holds_rdf(data) else None


@cache
def _records() -> ModuleType:
    """The reader of RDF, loaded when it is needed: streams of nodes and relationships need no RDF parser."""
    from anabranch.formats.rdf import records

    return records


def _timed_triple(line: str, place: str, stream: str) -> Event:
    from anabranch.formats.rdf.lines import timed_triple
    from anabranch.formats.rdf.terms import document_of

    event = timed_triple(line, document_of(stream, place))
    if event is None:
        raise _malformed("", "an event is an object, not a text")
    return event


def events_from(events: EventLike | Iterable[EventLike]) -> list[Event]:
    """Return events from user input: events or their JSON objects, many or one."""
    if isinstance(events, Event):
        return [events]
    if isinstance(events, dict | str | Mapping):
        return [event_from_dict(events)]
    return [event if isinstance(event, Event) else event_from_dict(event) for event in events]


def event_to_dict(event: Event) -> dict[str, Json]:
    """The JSON object of an event; reading it again gives the same event (blank nodes under the record's name)."""
    if event.triples and not event.nodes and not event.relationships:
        return {"at": format_instant(event.event_time), "triples": _records().triples_to_json(event.triples)}
    return {
        "at": format_instant(event.event_time),
        "nodes": [node_to_json(node, to_typed_json) for node in event.nodes],
        "relationships": [_relationship_to_dict(relationship) for relationship in event.relationships],
    }


def micros_of(moment: datetime) -> int:
    """UTC microseconds of a Python datetime; without a zone it is UTC."""
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)


def any_graph_from(graph: GraphLike | TripleGraph) -> PropertyGraph | TripleGraph:
    """Return a graph from user input, in its own model: events and objects that hold triples give triples."""
    if isinstance(graph, PropertyGraph | TripleGraph):
        return graph
    if isinstance(graph, Mapping):
        if not _holds_triples(graph):
            return graph_from(graph)
        timed: dict[str, Json] = {"at": 0, **graph}
        events = events_from(timed)
    else:
        events = events_from(graph)
    if not any(event.triples for event in events):
        return graph_from(events)
    if any(event.nodes or event.relationships for event in events):
        raise MalformedEventError("a graph is of triples, or of nodes and relationships; these events hold both")
    return TripleGraph(triple for event in events for triple in event.triples)


def _holds_triples(data: Mapping[str, Json]) -> bool:
    return bool(_records().holds_rdf(data))


def graph_from(graph: GraphLike) -> PropertyGraph:
    """Return a graph from user input: a graph, an object with `nodes` and `relationships`, or events to unite."""
    if isinstance(graph, PropertyGraph):
        return graph
    if isinstance(graph, Mapping):
        nodes, relationships = _elements(graph)
        named = [
            relationship if relationship.id is not None else _with_id(relationship, f"~{index}")
            for index, relationship in enumerate(relationships)
        ]
        return PropertyGraph(nodes, named)
    events = []
    for sequence, event in enumerate(events_from(graph)):
        relationships = tuple(
            relationship if relationship.id is not None else _with_id(relationship, f"~{sequence}.{index}")
            for index, relationship in enumerate(event.relationships)
        )
        events.append(Event(event.event_time, event.nodes, relationships, event.triples))
    return unite(sorted(events, key=lambda event: event.event_time))


def _with_id(relationship: Relationship, element_id: str) -> Relationship:
    one = relationship
    return Relationship(element_id, one.type, one.source, one.target, one.properties)


def _relationship_to_dict(relationship: Relationship) -> dict[str, Json]:
    data = relationship_to_json(relationship, to_typed_json)
    if relationship.id is None:
        del data["id"]
    return data


# --- the parts of an event --------------------------------------------------------------------------------------------


def _elements(data: Mapping[str, Json]) -> tuple[tuple[Node, ...], tuple[Relationship, ...]]:
    if "edges" in data and "relationships" in data:
        raise _malformed("edges", "given besides `relationships`; use one of the two")
    name = "edges" if "edges" in data else "relationships"
    nodes = tuple(_node(item, index) for index, item in enumerate(_list(data.get("nodes"), "nodes")))
    _refuse_disagreement(nodes, "nodes")
    relationships = tuple(
        _relationship(item, f"{name}[{index}]") for index, item in enumerate(_list(data.get(name), name))
    )
    _refuse_disagreement(relationships, name)
    return nodes, relationships


def instant_from_json(at: Json, place: str = "at") -> int:
    """UTC microseconds of an ISO 8601 text or of epoch milliseconds."""
    if isinstance(at, str):
        try:
            return parse_instant(at)
        except EvaluationError as error:
            raise _malformed(place, error.diagnostic.message) from None
    if isinstance(at, datetime):
        return micros_of(at)
    if isinstance(at, bool) or not isinstance(at, int | float):
        raise _malformed(place, f"expected an ISO 8601 text or epoch milliseconds, got {_kind(at)}")
    if not (math.isfinite(at) and abs(at) <= FARTHEST_MILLIS):
        raise _malformed(place, f"{at} milliseconds is no instant")
    return at * 1000 if isinstance(at, int) else round(at * 1000)


def _node(data: Json, index: int) -> Node:
    if not isinstance(data, Mapping):
        raise _malformed(f"nodes[{index}]", f"a node is an object, not {_kind(data)}")
    if "id" not in data:
        raise _malformed(f"nodes[{index}].id", "missing")
    node_id = data["id"]
    if node_id.__class__ is not str:
        node_id = _id(node_id, f"nodes[{index}].id")
    labels = data.get("labels")
    if labels is None and "label" in data:
        labels = [data["label"]]
    names = () if labels is None or labels == [] else _labels(labels, f"nodes[{index}].labels")
    properties = data.get("properties")
    if properties is None or properties == {}:
        return Node(node_id, names, {})
    return Node(node_id, names, properties_from_json(properties, f"nodes[{index}].properties"))


def _relationship(data: Json, place: str) -> Relationship:
    if not isinstance(data, Mapping):
        raise _malformed(place, f"a relationship is an object, not {_kind(data)}")
    element_id = data.get("id")
    if element_id is not None and element_id.__class__ is not str:
        element_id = _id(element_id, f"{place}.id")
    kind = data.get("type")
    if not isinstance(kind, str) or not kind:
        raise _malformed(f"{place}.type", "missing" if kind is None else f"expected a text, got {_kind(kind)}")
    source = _end(data, _START_NAMES, place)
    target = _end(data, _END_NAMES, place)
    properties = data.get("properties")
    if properties is None or properties == {}:
        return Relationship(element_id, kind, source, target, {})
    return Relationship(element_id, kind, source, target, properties_from_json(properties, f"{place}.properties"))


def _end(data: Mapping[str, Json], names: Sequence[str], place: str) -> ElementId:
    for name in names:
        if name in data:
            end = data[name]
            return end if end.__class__ is str else _id(end, f"{place}.{name}")
    raise _malformed(f"{place}.{names[0]}", "missing")


def _id(value: Json, place: str) -> ElementId:
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        raise _malformed(place, f"an id is a whole number or a text, not {_kind(value)}")
    return _integer(value, place)


def _labels(labels: Json, place: str) -> tuple[str, ...]:
    if not isinstance(labels, list | tuple) or not all(isinstance(label, str) and label for label in labels):
        raise _malformed(place, "labels are a list of texts")
    return tuple(dict.fromkeys(labels))


def properties_from_json(properties: Json, place: str) -> dict[str, Value]:
    """The properties of an element; a null one is absent."""
    if not isinstance(properties, Mapping):
        raise _malformed(place, f"properties are an object, not {_kind(properties)}")
    read: dict[str, Value] = {}
    for key, data in properties.items():
        kind = data.__class__
        if kind is str or kind is bool:
            read[key] = data
        elif data is not None:
            read[key] = value_from_json(data, f"{place}.{key}")
    return read


def value_from_json(data: Json, place: str = "") -> Value:
    """A property's value: scalars, lists, maps, and typed values behind `$` tags."""
    match data:
        case None | bool() | str():
            return data
        case int():
            return _integer(data, place)
        case float():
            if not math.isfinite(data):
                raise _malformed(place, f"{data} is no number that JSON knows")
            return data
        case list() | tuple():
            return [value_from_json(item, f"{place}[{index}]") for index, item in enumerate(data)]
        case Mapping():
            tags = [key for key in data if isinstance(key, str) and key.startswith("$")]
            if not tags:
                return {str(key): value_from_json(item, f"{place}.{key}") for key, item in data.items()}
            if len(data) > 1:
                raise _malformed(place, f"`{tags[0]}` marks a typed value and stands alone")
            if tags[0] == "$map" and isinstance(data["$map"], Mapping):
                return {str(key): value_from_json(item, f"{place}.{key}") for key, item in data["$map"].items()}
            try:
                return tagged_value(tags[0], data[tags[0]])
            except ValueFormatError as error:
                raise _malformed(place, str(error)) from None
        case Point() | Date() | Time() | LocalTime() | DateTime() | LocalDateTime() | Duration():
            return data
    raise _malformed(place, f"a property cannot hold {_kind(data)}")


# --- refusals ---------------------------------------------------------------------------------------------------------


def _list(data: Json, name: str) -> Sequence[Json]:
    if data is None:
        return ()
    if not isinstance(data, list | tuple):
        raise _malformed(name, f"expected a list, got {_kind(data)}")
    return data


def _integer(value: int, place: str) -> int:
    if not INTEGER_MIN <= value <= INTEGER_MAX:
        raise _malformed(place, f"{value} does not fit into 64 bits")
    return value


def _refuse_disagreement(elements: Sequence[Node | Relationship], name: str) -> None:
    """Refuse an event that names an element twice with different content."""
    if len({element.id for element in elements}) == len(elements):
        return
    seen: dict[object, tuple[int, object]] = {}
    for index, element in enumerate(elements):
        if element.id is None:
            continue
        known = seen.setdefault(element.id, (index, content_key(element)))
        if known[1] != content_key(element):
            raise _malformed(f"{name}[{index}]", f"id {element.id!r} is also {name}[{known[0]}], with other content")


_MISTAKEN = {
    **dict.fromkeys(("node", "vertices", "vertexes"), "nodes"),
    **dict.fromkeys(("relationship", "relations", "rels", "edge", "links"), "relationships"),
}


def _refuse_typo(data: Mapping[str, Json]) -> None:
    """Refuse a field that looks like a typo of a missing field of ours, which would lose data silently.

    Other fields of the user's own are ignored.
    """
    for key in data:
        meant = _MISTAKEN.get(str(key).lower())
        if meant is not None and meant not in data and not (meant == "relationships" and "edges" in data):
            raise _malformed(str(key), f"unknown field; did you mean `{meant}`?")


def _malformed(place: str, reason: str) -> MalformedEventError:
    return MalformedEventError(f"{place}: {reason}" if place else reason)


_KINDS: Mapping[type, str] = {
    type(None): "null",
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "a text",
    list: "a list",
    tuple: "a list",
    dict: "an object",
}


def _kind(data: object) -> str:
    return _KINDS.get(type(data), type(data).__name__)
