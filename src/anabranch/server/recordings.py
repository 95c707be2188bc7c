"""Recordings that clients inspect: made once and kept for a while, so that a client can page through one.

Invariant: requests with the id of a recording are answered from the same events each time, until it is dropped.
"""

from __future__ import annotations

import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from anabranch.insight.recording import Recording
from anabranch.server.checking import Workers
from anabranch.server.limits import Limits
from anabranch.server.problems import NOT_FOUND, ServerError
from anabranch.server.session import LiveSession

if TYPE_CHECKING:
    from anabranch.insight.scenes import Scenes
    from anabranch.insight.steps import RecordedSteps

Found = TypeVar("Found")
_KEPT = 8


@dataclass(slots=True)
class StoredRecording:
    """A recording and the insight objects computed from it so far. One thread at a time uses it."""

    id: str
    session: str
    query: str
    recording: Recording
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _steps: RecordedSteps | None = None
    _scenes: Scenes | None = None

    def in_steps(self, look: Callable[[RecordedSteps], Found]) -> Found:
        with self._lock:
            if self._steps is None:
                from anabranch.insight.steps import RecordedSteps

                self._steps = RecordedSteps(self.recording)
            return look(self._steps)

    def in_scenes(self, look: Callable[[Scenes], Found]) -> Found:
        with self._lock:
            if self._scenes is None:
                from anabranch.insight.scenes import Scenes

                self._scenes = Scenes(self.recording)
            return look(self._scenes)


class Recordings:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._workers = Workers(threads=2, most=8)
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, StoredRecording] = OrderedDict()

    def find(
        self, session: LiveSession, query: str, wanted: str | None, make: Callable[[], Recording]
    ) -> StoredRecording:
        """Return the recording with an id, or make a new one of the latest events."""
        session.query(query)
        if wanted is not None:
            with self._lock:
                found = self._kept.get(wanted)
            if found is None or (found.session, found.query) != (session.name, query):
                raise ServerError(NOT_FOUND, "there is no such recording any more", "leave it out to make a new one")
            return found
        made = StoredRecording(uuid.uuid4().hex[:12], session.name, query, self.within(make))
        with self._lock:
            self._kept[made.id] = made
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return made

    def within(self, work: Callable[[], Found]) -> Found:
        """Run work in a thread, within the time limit."""
        return self._workers.within(self._limits.insight_seconds, work, "looking into the recording")
