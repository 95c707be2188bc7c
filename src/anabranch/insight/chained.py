"""Streams that other queries make (INTO), made again: queries of the recording's text, and those that it brings.

Invariant: the events are those that a session over the recording makes; a stream that the recording brings is never
made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from anabranch.algebra.operators import Registration
from anabranch.algebra.walk import windows
from anabranch.engine.chains import event_of
from anabranch.engine.engine import Engine
from anabranch.engine.query import QueryOptions
from anabranch.engine.session import recompile
from anabranch.insight.recording import Recording
from anabranch.model.event import Event
from anabranch.plugins.oxigraph import Oxigraph
from anabranch.syntax import languages


@dataclass(frozen=True, slots=True)
class Maker:
    """A query that makes a stream, as it was registered."""

    registration: Registration
    options: QueryOptions

    def recording(self, of: Recording) -> Recording:
        """The same streams, seen by this query from its beginning on."""
        own = self.options
        return replace(
            of,
            query_text=own.text,
            query_name=self.registration.name,
            parameters=own.parameters,
            windows=own.windows,
            conflicts=own.conflicts,
            now=own.now,
            file_name=own.file_name,
            on_error=own.on_error,
            begins_at=None,
            starting_at=None,
        )


def streams_named(registration: Registration) -> set[str]:
    """The streams that a query reads by their names."""
    return {one.stream.name for one in windows(registration.plan) if one.stream.name is not None}


def makers_of(registration: Registration, others: Sequence[tuple[Registration, QueryOptions]]) -> list[Maker]:
    """Those of some queries that make what a query reads, and what these read, the nearest first."""
    by_stream = {one.into: Maker(one, options) for one, options in others if one.into is not None}
    found: list[Maker] = []
    waiting = [registration]
    while waiting:
        for name in sorted(streams_named(waiting.pop(0))):
            maker = by_stream.pop(name, None)
            if maker is not None:
                found.append(maker)
                waiting.append(maker.registration)
    return found


def makers(recording: Recording) -> dict[str, Maker]:
    """By stream, the query that makes it, of those that the recording does not bring."""
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
    found = [Maker(one, replace(own, source_name=one.name)) for one in texts]
    found += [Maker(recompile(one), one) for one in recording.makers if one.text != recording.query_text]
    return {
        one.registration.into: one
        for one in found
        if one.registration.into is not None and one.registration.into not in recording.events
    }


def made_events(
    recording: Recording, stream: str, made: Mapping[str, Maker], events: Mapping[str, Sequence[Event]]
) -> list[Event]:
    """What a stream's maker makes of events in the order of time."""
    maker = made[stream]
    others = makers_of(maker.registration, [(one.registration, one.options) for one in made.values()])
    engine = Engine(
        fixed_streams=bool(events),
        mapping=recording.mapping,
        plugin=Oxigraph(),
        rules=recording.rules,
        running=recording.running,
    )
    for name in events:
        engine.declare_stream(name)
    for name, graph in recording.graphs.items():
        engine.add_static_graph(name, graph)
    engine.register_all([(one.registration, one.options) for one in (maker, *others)])
    for name, some in events.items():
        engine.push(name, some)
    engine.finish(recording.ends_at)
    name = maker.registration.name
    query = engine.query(name)
    found = (event_of(answer, query) for answer in engine.poll(name))
    return [event for event in found if event is not None]
