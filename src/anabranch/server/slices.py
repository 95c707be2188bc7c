"""The size of recordings: small if that shows enough instants, larger if not.

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
    """Return the shortest recording with at least `instants` instants, else the shortest of those with the most. If it
    has more than twice as many, only the last `2 * instants` are shown; the events before them fill the windows."""
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
    """Return a recording that includes the instant, if the streams still have it; without `at`, one with the last
    instant."""
    if at is None:
        return with_instants(session, query, 1)
    for size in _SIZES:
        recording = session.recording(query, size)
        if recording.begins_at is None or recording.begins_at <= at:
            break
    return recording
