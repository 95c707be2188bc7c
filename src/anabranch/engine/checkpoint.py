"""A checkpoint: the content of the windows and the position of each query, as bytes.

Invariant: a restored engine answers as the undisturbed one would have, byte for byte. Unions, indexes and plans are not
kept: they are computed from the content of the windows.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import astuple, replace
from typing import Any

from anabranch.algebra.operators import Registration
from anabranch.engine.answers import Answer, AnswerRow
from anabranch.engine.arrivals import ArrivalInstants
from anabranch.engine.progress import LatePolicy, SplitProgress
from anabranch.engine.query import ContinuousQuery
from anabranch.engine.query_options import QueryOptions
from anabranch.engine.stream import StreamState
from anabranch.engine.surroundings import StaticGraph, StaticGraphs
from anabranch.errors import Diagnostic, EngineError, QueryError, Span
from anabranch.formats.values import from_typed_json, to_typed_json
from anabranch.model.event import Event
from anabranch.model.graph import PropertyGraph
from anabranch.model.mapping import Mapping as ModelMapping
from anabranch.model.temporal import Duration, parse_duration
from anabranch.model.terms import Term, Triple
from anabranch.model.triples import TripleGraph
from anabranch.model.values import Node, Relationship, Value
from anabranch.snapshot.context import SkippedRows

Json = Any
Recompile = Callable[[QueryOptions], Registration]

FORMAT = 4
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


def pack_duration(duration: Duration | None) -> Json:
    return None if duration is None else str(duration)


def unpack_duration(data: Json) -> Duration | None:
    return None if data is None else parse_duration(data)


def pack_late(late: LatePolicy) -> Json:
    return [late.policy, pack_duration(late.horizon)]


def unpack_late(data: Json) -> LatePolicy:
    policy, horizon = data
    return LatePolicy(policy, unpack_duration(horizon))


def pack_stream(state: StreamState) -> Json:
    packed = {
        "name": state.name,
        "lateness": pack_duration(state.lateness),
        "splits": [list(astuple(split)) for split in state.splits],
        "marks": list(state.marks),
        "complete_from": state.complete_from,
        "closed": state.closed,
        "late": state.late,
        "corrected": state.corrected,
        "first_event_time": state.first_event_time,
        "last_event_time": state.last_event_time,
        "origin": state.origin,
        "ended": state.ended,
        "made_until": state.made_until,
        "ahead": state.ahead,
        "jumps": state.jumps,
        "doubts": [
            [name, [_pack_event(event, name) for event in held], *counts] for name, held, *counts in state.doubts
        ],
    }
    if state.events is not None:
        packed["events"] = [
            _pack_event(event, split) for event, split in zip(state.events, state.event_splits, strict=True)
        ]
    return packed


def unpack_stream(data: Json) -> StreamState:
    packed = data.get("events")
    return StreamState(
        data["name"],
        unpack_duration(data["lateness"]),
        tuple(SplitProgress(*split) for split in data["splits"]),
        tuple(data["marks"]),
        data["complete_from"],
        data["closed"],
        data["late"],
        data["corrected"],
        data["first_event_time"],
        data["last_event_time"],
        None if packed is None else tuple(_unpack_event(event) for event in packed),
        () if packed is None else tuple(event[0] for event in packed),
        data["origin"],
        data["ended"],
        data["made_until"],
        data["ahead"],
        tuple((name, tuple(map(_unpack_event, held)), *counts) for name, held, *counts in data["doubts"]),
        (data["jumps"][0], None if data["jumps"][1] is None else tuple(data["jumps"][1])),
    )


def pack_query(query: ContinuousQuery) -> Json:
    options = query.options
    if not options.text:
        raise EngineError(f"query `{query.name}` was registered without its text and cannot be checkpointed")
    return {
        "name": query.name,
        "windows": options.windows,
        "conflicts": options.conflicts,
        "parameters": pack_values(options.parameters),
        "now": options.now,
        "text": options.text,
        "file_name": options.file_name,
        "source_name": options.source_name,
        "evaluator": options.evaluator,
        "on_error": options.on_error,
        "order": query.order,
        "bound_stream": query.cursor.bound_stream,
        "starting_at": None if query.cursor.instants is None else query.cursor.instants.starting_at,
        "arrivals": _pack_arrivals(query.cursor.instants, query.cursor.next_index)
        if isinstance(query.cursor.instants, ArrivalInstants)
        else None,
        "first_index": query.cursor.first_index,
        "next_index": query.cursor.next_index,
        "done": query.cursor.done,
        "failure": None if query.outbox.failure is None else pack_error(query.outbox.failure),
        "failure_told": query.outbox.failure_told,
        "pending": [pack_answer(answer) for answer in query.outbox.pending],
        "instants_passed": query.outbox.instants_passed,
        "rows_told": query.outbox.rows_told,
        "skipped": _pack_skipped(query.outbox.skipped),
        "past_graphs": [[until, pack_graphs(graphs)] for until, graphs in query.past_graphs],
        "previous": pack_rows(
            query.previous if not query.cursor.done and query.registration.output != "snapshot" else []
        ),
    }


def unpack_query(
    state: Json, recompile: Recompile, mapping: ModelMapping, known: ContinuousQuery | None = None
) -> ContinuousQuery:
    """Return the query of a state, at the position of the state: `known` when it is the same query, else a new one."""
    options = QueryOptions(
        state["windows"],
        state["conflicts"],
        unpack_values(state["parameters"]),
        state["now"],
        state["text"],
        state["file_name"],
        state["source_name"],
        state["evaluator"],
        state.get("on_error"),
    )
    if known is not None and identity(known.name, known.options) == identity(state["name"], options):
        query = known
        query.options = options
    else:
        query = ContinuousQuery(replace(recompile(options), name=state["name"]), options, state["order"])
    _load_query(query, state, mapping)
    return query


def _load_query(query: ContinuousQuery, state: Json, mapping: ModelMapping) -> None:
    options, columns = query.options, query.registration.columns
    query.order = state["order"]
    query.cursor.bound_stream = state["bound_stream"]
    query.cursor.instants, query.cursor.is_alone = None, False
    if state["starting_at"] is not None:
        query.cursor.start(state["starting_at"])
    if state["arrivals"] is not None:
        query.cursor.resume_arrivals(_unpack_arrivals(state["arrivals"], query.registration))
    query.cursor.first_index = state["first_index"]
    query.resume(state["next_index"], unpack_rows(state["previous"]))
    query.cursor.passed = None  # the stream's state says what the query has made until then
    query.cursor.done = state["done"]
    failure = state["failure"]
    query.outbox.failure = None if failure is None else unpack_error(failure, options.text, options.file_name)
    query.outbox.failure_told = state["failure_told"]
    query.outbox.pending.clear()
    query.outbox.pending.extend(unpack_answer(answer, query.name, columns) for answer in state["pending"])
    query.outbox.instants_passed = state["instants_passed"]
    query.outbox.rows_told = state["rows_told"]
    query.outbox.skipped = _unpack_skipped(state.get("skipped"), options)
    # Versions need only differ from each other and from those of the present graphs, which count from one.
    query.past_graphs = [
        (until, {name: StaticGraph(-1 - place, unpack_graph(graph), mapping) for name, graph in graphs.items()})
        for place, (until, graphs) in enumerate(state["past_graphs"])
    ]


def _pack_skipped(skipped: SkippedRows) -> Json:
    if not skipped.count:
        return None
    return [skipped.count, *(None if one is None else pack_error(one) for one in (skipped.first, skipped.last))]


def _unpack_skipped(data: Json, options: QueryOptions) -> SkippedRows:
    if data is None:
        return SkippedRows()
    count, *errors = data
    first, last = (None if one is None else unpack_error(one, options.text, options.file_name) for one in errors)
    return SkippedRows(count, first, last)


def identity(name: str, options: QueryOptions) -> Hashable:
    """Return a key that is equal for two queries when the position of the one is valid for the other."""
    parameters = json.dumps(pack_values(options.parameters), sort_keys=True)
    return (name, options.text, options.source_name, options.windows, options.conflicts, options.evaluator, parameters)


def _pack_arrivals(instants: ArrivalInstants, next_index: int) -> Json:
    """Pack the count of triples and the known instants that lie ahead."""
    ahead = instants.held[next_index - instants.base :]
    return [
        instants.starting_at,
        instants.counted,
        instants.seen_until,
        instants.last_time,
        instants.latest,
        instants.end - len(ahead),
        ahead,
        instants.complete,
    ]


def _unpack_arrivals(data: Json, asked: Registration) -> ArrivalInstants:
    starting_at, counted, seen_until, last_time, latest, base, ahead, complete = data
    return ArrivalInstants(
        starting_at,
        asked.arrivals or 0,
        counted,
        seen_until,
        last_time,
        latest,
        base,
        list(ahead),
        complete,
        asked.final,
    )


def pack_graph(graph: PropertyGraph | TripleGraph) -> Json:
    if isinstance(graph, TripleGraph):
        return {"triples": pack_triples(graph)}
    return [_pack_nodes(graph.nodes.values()), _pack_relationships(graph.relationships.values())]


def pack_graphs(graphs: StaticGraphs) -> Json:
    return {name: pack_graph(graph.given) for name, graph in graphs.items()}


def unpack_graph(data: Json) -> PropertyGraph | TripleGraph:
    if isinstance(data, dict):
        return TripleGraph(unpack_triples(data["triples"]))
    nodes, relationships = data
    return PropertyGraph(_unpack_nodes(nodes), _unpack_relationships(relationships))


def pack_triples(triples: Iterable[Triple]) -> Json:
    """Pack each term once, and the triples as indices of their terms."""
    places: dict[Term, int] = {}
    packed = [[places.setdefault(term, len(places)) for term in triple] for triple in triples]
    return [[to_typed_json(term) for term in places], packed]


def unpack_triples(data: Json) -> tuple[Triple, ...]:
    packed_terms, packed = data
    terms: list[Any] = [from_typed_json(term) for term in packed_terms]
    return tuple(Triple(terms[subject], terms[predicate], terms[object_]) for subject, predicate, object_ in packed)


def pack_rows(rows: list[AnswerRow]) -> Json:
    return [[to_typed_json(value) for value in row] for row in rows]


def unpack_rows(data: Json) -> list[AnswerRow]:
    return [tuple(from_typed_json(value) for value in row) for row in data]


def pack_answer(answer: Answer) -> Json:
    return [answer.at, answer.op, answer.win_start, answer.win_end, pack_rows(answer.rows), answer.correction]


def unpack_answer(data: Json, query: str, columns: tuple[str, ...]) -> Answer:
    at, op, win_start, win_end, rows, correction = data
    return Answer.told(query, at, op, (win_start, win_end), columns, unpack_rows(rows), correction)


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


def _pack_event(event: Event, split: str) -> Json:
    packed = [split, event.event_time, _pack_nodes(event.nodes), _pack_relationships(event.relationships)]
    return [*packed, pack_triples(event.triples)] if event.triples else packed


def _unpack_event(data: Json) -> Event:
    _split, event_time, nodes, relationships, *triples = data
    return Event(
        event_time,
        tuple(_unpack_nodes(nodes)),
        tuple(_unpack_relationships(relationships)),
        unpack_triples(triples[0]) if triples else (),
    )


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
