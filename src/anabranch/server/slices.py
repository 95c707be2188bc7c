"""How much of a stream is recorded: little, where that is enough to see something, and more where it is not.

Invariant: a recording never holds more than the server's limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from anabranch.insight.recording import Recording
from anabranch.insight.replay import Replay

if TYPE_CHECKING:
    from anabranch.server.session import LiveSession

_SIZES = (500, 3_000, None)  # events; None is the limit
STEPS = 8
"""Instants that a recording to step through should have, if the stream has brought as many."""
SCENES = 30
"""Instants that a recording to look at the window should have."""


def with_instants(session: LiveSession, query: str, instants: int) -> Recording:
    """The shortest recording that has so many instants, else the longest that has more than a shorter one."""
    found: Recording | None = None
    count = -1
    for size in _SIZES:
        longer = session.recording(query, size)
        if found is not None and longer.events == found.events:
            break
        reached = len(Replay(longer).moments)
        if found is None or reached > count:
            found, count = longer, reached
        if reached >= instants:
            break
    assert found is not None
    return found


def reaching(session: LiveSession, query: str, at: int | None) -> Recording:
    """A recording that has the instant, if the streams still have it; without one, the last instant."""
    if at is None:
        return with_instants(session, query, 1)
    for size in _SIZES:
        recording = session.recording(query, size)
        if recording.begins_at is None or recording.begins_at <= at:
            break
    return recording
