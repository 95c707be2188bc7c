"""Derived streams (INTO), computed again from a recording by the queries of its text and its `makers`.

Invariant: the events are those that a session over the recording makes; a stream that the recording contains is never
computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from anabranch.algebra.operators import Registration
from anabranch.algebra.walk import windows
from anabranch.engine.chains import event_of
from anabranch.engine.compiled import recompile
from anabranch.engine.engine import Engine
from anabranch.engine.query_options import CompiledQuery, QueryOptions
from anabranch.insight.recording import Recording
from anabranch.model.event import Event
from anabranch.plugins.oxigraph import Oxigraph
from anabranch.syntax import languages


def streams_named(registration: Registration) -> set[str]:
    """Return the streams that a query reads by their names."""
    return {one.stream.name for one in windows(registration.plan) if one.stream.name is not None}


def recording_of(maker: CompiledQuery, recording: Recording) -> Recording:
    """Return a recording of the same streams for a query that makes one of them, from its beginning on."""
    own = maker.options
    return replace(
        recording,
        query_text=own.text,
        query_name=maker.registration.name,
        parameters=own.parameters,
        windows=own.windows,
        conflicts=own.conflicts,
        now=own.now,
        file_name=own.file_name,
        on_error=own.on_error,
        begins_at=None,
        starting_at=None,
    )


def makers_of(registration: Registration, others: Sequence[CompiledQuery]) -> list[CompiledQuery]:
    """Return the queries, of `others`, that make the streams that a query reads, and recursively those that these read;
    the nearest first."""
    by_stream = {one.registration.into: one for one in others if one.registration.into is not None}
    found: list[CompiledQuery] = []
    waiting = [registration]
    while waiting:
        for name in sorted(streams_named(waiting.pop(0))):
            maker = by_stream.pop(name, None)
            if maker is not None:
                found.append(maker)
                waiting.append(maker.registration)
    return found


def makers(recording: Recording) -> dict[str, CompiledQuery]:
    """Return, by stream, the query that makes it; streams that the recording contains are left out."""
    own = QueryOptions(
        recording.windows,
        recording.conflicts,
        recording.parameters,
        recording.now,
        recording.query_text,
        recording.file_name,
        on_error=recording.on_error,
    )
    texts = languages.registrations(recording.query_text, file_name=recording.file_name)
    found = [CompiledQuery(one, replace(own, source_name=one.name)) for one in texts]
    found += [CompiledQuery(recompile(one), one) for one in recording.makers if one.text != recording.query_text]
    return {
        one.registration.into: one
        for one in found
        if one.registration.into is not None and one.registration.into not in recording.events
    }


def made_events(
    recording: Recording, stream: str, made: Mapping[str, CompiledQuery], events: Mapping[str, Sequence[Event]]
) -> list[Event]:
    """Return the events that a stream's maker derives from events in the order of time."""
    maker = made[stream]
    others = makers_of(maker.registration, list(made.values()))
    engine = Engine(
        fixed_streams=bool(events),
        mapping=recording.mapping,
        plugin=Oxigraph(),
        rules=recording.rules,
        evaluation=recording.evaluation,
    )
    for name in events:
        engine.declare_stream(name)
    for name, graph in recording.graphs.items():
        engine.add_static_graph(name, graph)
    engine.register_all([maker, *others])
    for name, some in events.items():
        engine.push(name, some)
    engine.finish(recording.ends_at)
    name = maker.registration.name
    query = engine.query(name)
    found = (event_of(answer, query) for answer in engine.poll(name))
    return [event for event in found if event is not None]
