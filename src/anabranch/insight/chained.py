"""Streams that other queries of a recording's text make (INTO), made again.

Invariant: the events are those that a session over the recording makes; a stream that the recording brings is never
made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anabranch.algebra.operators import Registration
from anabranch.engine.chains import event_of
from anabranch.engine.query import ContinuousQuery, QueryOptions
from anabranch.engine.session import Session
from anabranch.insight.recording import Recording
from anabranch.model.event import Event
from anabranch.syntax import languages


def makers(recording: Recording) -> dict[str, Registration]:
    """By stream, the query that makes it, of those that the recording does not bring."""
    found = languages.registrations(recording.query_text, file_name=recording.file_name)
    return {one.into: one for one in found if one.into is not None and one.into not in recording.events}


def made_events(recording: Recording, maker: Registration, events: Mapping[str, Sequence[Event]]) -> list[Event]:
    """What a query makes of events in the order of time."""
    session = Session.local(
        list(events) or None,
        windows=recording.windows,
        conflicts=recording.conflicts,
        mapping=recording.mapping,
        rules=recording.rules,
        running=recording.running,
    )
    for name, graph in recording.graphs.items():
        session.graph(name, graph)
    session.register_all(
        recording.query_text, parameters=recording.parameters, now=recording.now, file_name=recording.file_name
    )
    for name, some in events.items():
        session.push(name, some)
    session.finish(recording.ends_at)
    query = ContinuousQuery(maker, QueryOptions(), 0)
    found = (event_of(answer, query) for answer in session.query(maker.name).poll())
    return [event for event in found if event is not None]
