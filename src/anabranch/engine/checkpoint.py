"""A checkpoint: what the windows hold and where each query stands, as bytes.

Invariant: a restored engine answers as the undisturbed one would have, byte for byte. Unions, indexes and plans are not
kept: what the window holds determines them.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any

from anabranch.engine.answers import Answer, Row
from anabranch.engine.stream import StreamState
from anabranch.errors import Diagnostic, EngineError, QueryError, Span
from anabranch.formats.values import from_typed_json, to_typed_json
from anabranch.model.event import Event
from anabranch.model.graph import PropertyGraph
from anabranch.model.temporal import parse_duration
from anabranch.model.values import Node, Relationship, Value

Json = Any

FORMAT = 1
_MAGIC = b"anabranch checkpoint "


def pack(state: Json) -> bytes:
    text = json.dumps(state, ensure_ascii=True, separators=(",", ":"))
    return _MAGIC + f"{FORMAT}\n".encode() + zlib.compress(text.encode(), 6)


def unpack(data: bytes) -> Json:
    if not data.startswith(_MAGIC):
        raise EngineError("this is not a checkpoint of Anabranch")
    version, newline, body = data[len(_MAGIC) :].partition(b"\n")
    if not newline or version != str(FORMAT).encode():
        found = version[:20].decode(errors="replace")
        raise EngineError(f"the checkpoint has format {found}; this version of Anabranch reads format {FORMAT}")
    try:
        return json.loads(zlib.decompress(body))
    except (zlib.error, ValueError):
        raise EngineError("the checkpoint is damaged: its content cannot be read") from None


# --- parts ----------------------------------------------------------------------------------------------------------


def pack_stream(state: StreamState) -> Json:
    return {
        "name": state.name,
        "lateness": None if state.lateness is None else str(state.lateness),
        "sequence": state.sequence,
        "open_from": state.open_from,
        "complete_from": state.complete_from,
        "closed": state.closed,
        "late": state.late,
        "first_event_time": state.first_event_time,
        "last_event_time": state.last_event_time,
        "events": [_pack_event(event) for event in state.events],
    }


def unpack_stream(data: Json) -> StreamState:
    lateness = data["lateness"]
    return StreamState(
        data["name"],
        None if lateness is None else parse_duration(lateness),
        data["sequence"],
        data["open_from"],
        data["complete_from"],
        data["closed"],
        data["late"],
        data["first_event_time"],
        data["last_event_time"],
        tuple(_unpack_event(event) for event in data["events"]),
    )


def pack_graph(graph: PropertyGraph) -> Json:
    return [_pack_nodes(graph.nodes.values()), _pack_relationships(graph.relationships.values())]


def unpack_graph(data: Json) -> PropertyGraph:
    nodes, relationships = data
    return PropertyGraph(_unpack_nodes(nodes), _unpack_relationships(relationships))


def pack_rows(rows: list[Row]) -> Json:
    return [[to_typed_json(value) for value in row] for row in rows]


def unpack_rows(data: Json) -> list[Row]:
    return [tuple(from_typed_json(value) for value in row) for row in data]


def pack_answer(answer: Answer) -> Json:
    return [answer.at, answer.op, answer.win_start, answer.win_end, pack_rows(answer.rows)]


def unpack_answer(data: Json, query: str, columns: tuple[str, ...]) -> Answer:
    at, op, win_start, win_end, rows = data
    return Answer.told(query, at, op, (win_start, win_end), columns, unpack_rows(rows))


def pack_error(error: QueryError) -> Json:
    return [
        {
            "code": one.code,
            "message": one.message,
            "span": None if one.span is None else [one.span.start, one.span.end],
            "label": one.label,
            "hint": one.hint,
        }
        for one in error.diagnostics
    ]


def unpack_error(data: Json, text: str, file_name: str) -> QueryError:
    diagnostics = [
        Diagnostic(
            one["code"], one["message"], None if one["span"] is None else Span(*one["span"]), one["label"], one["hint"]
        )
        for one in data
    ]
    return QueryError(diagnostics, text, file_name)


def pack_values(values: Mapping[str, Value]) -> Json:
    return {name: to_typed_json(value) for name, value in values.items()}


def unpack_values(data: Json) -> dict[str, Value]:
    return {name: from_typed_json(value) for name, value in data.items()}


def _pack_event(event: Event) -> Json:
    return [event.event_time, _pack_nodes(event.nodes), _pack_relationships(event.relationships)]


def _unpack_event(data: Json) -> Event:
    event_time, nodes, relationships = data
    return Event(event_time, tuple(_unpack_nodes(nodes)), tuple(_unpack_relationships(relationships)))


def _pack_nodes(nodes: Any) -> Json:
    return [[node.id, list(node.labels), pack_values(node.properties)] for node in nodes]


def _unpack_nodes(data: Json) -> list[Node]:
    return [Node(node_id, tuple(labels), unpack_values(properties)) for node_id, labels, properties in data]


def _pack_relationships(relationships: Any) -> Json:
    return [[one.id, one.type, one.source, one.target, pack_values(one.properties)] for one in relationships]


def _unpack_relationships(data: Json) -> list[Relationship]:
    return [
        Relationship(element_id, kind, source, target, unpack_values(properties))
        for element_id, kind, source, target, properties in data
    ]
