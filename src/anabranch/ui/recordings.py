"""How much of a stream is recorded: little, where that is enough to see something, and more where it is not.

Invariant: a recording never holds more than the server's limit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from anabranch.insight.recording import Recording
    from anabranch.server.session import LiveSession

_SIZES = (500, 3_000, None)  # events; None is the limit


class _Shown(Protocol):
    @property
    def instants(self) -> Sequence[Any]: ...


Made = TypeVar("Made", bound=_Shown)


def of_enough_instants(session: LiveSession, query: str, make: Callable[[Recording], Made], instants: int) -> Made:
    """What is made of the shortest recording that has so many instants, else of the longest that there is."""
    made: Made | None = None
    before = -1
    for size in _SIZES:
        recording = _due(session, session.recording(query, size))
        count = sum(len(one) for one in recording.events.values())
        if made is None or count > before:
            made, before = make(recording), count
        if len(made.instants) >= instants:
            break
    assert made is not None
    return made


def reaching(session: LiveSession, query: str, at: int | None) -> Recording:
    """A recording that has the instant, if the streams still have it."""
    for size in _SIZES:
        recording = _due(session, session.recording(query, size))
        if at is not None and recording.begins_at is not None and recording.begins_at <= at:
            return recording
    return recording


def _due(session: LiveSession, recording: Recording) -> Recording:
    """Without instants that the streams' time has not come to yet: their windows are not full."""
    marks = [one.watermark for one in session.streams() if one.kind != "query" and not one.closed]
    if not marks or None in marks or recording.ends_at is not None:
        return recording
    return replace(recording, ends_at=min(mark for mark in marks if mark is not None))
