"""How much of a stream is recorded: little, where that is enough to see something, and more where it is not.

Invariant: a recording never holds more than the server's limit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from anabranch.insight.recording import Recording
from anabranch.insight.replay import Replay, ReplayInstant

if TYPE_CHECKING:
    from anabranch.server.session import LiveSession

_SIZES = (500, 1_000, 3_000, None)  # events; None is the limit
STEPS = 8
"""Instants that a recording to step through should have, if the stream has brought as many."""
SCENES = 30
"""Instants that a recording to look at the window should have."""


def with_instants(session: LiveSession, query: str, instants: int) -> Recording:
    """The shortest recording that has so many instants, else the longest that has more than a shorter one. Of what is
    longer than need be the last instants are shown, twice as many: the events before them fill the windows."""
    found: Recording | None = None
    moments: tuple[ReplayInstant, ...] = ()
    for size in _SIZES:
        longer = session.recording(query, size)
        if found is not None and longer.events == found.events:
            break
        reached = Replay(longer).moments
        if found is None or len(reached) > len(moments):
            found, moments = longer, reached
        if len(reached) >= instants:
            break
    assert found is not None
    return found if len(moments) <= 2 * instants else replace(found, begins_at=moments[-2 * instants].at)


def reaching(session: LiveSession, query: str, at: int | None) -> Recording:
    """A recording that has the instant, if the streams still have it; without one, the last instant."""
    if at is None:
        return with_instants(session, query, 1)
    for size in _SIZES:
        recording = session.recording(query, size)
        if recording.begins_at is None or recording.begins_at <= at:
            break
    return recording
