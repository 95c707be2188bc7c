"""The unions of windows, shared by the queries that look at the same windows.

Queries are evaluated in the order of their instants, so a window that several of them read slides once for all. The
pool holds no events of its own: contents point into the streams' buffers.

Invariant: a content asked for positions [first, stop) is the union of exactly these events, also after a step back
(a query that joins late may look at older windows than its neighbours; the content is then built again). Who puts an
event in between events that were seen calls `drop_stream`, for their positions are others then.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from anabranch.engine.stream import StreamBuffer
from anabranch.model.temporal import Duration
from anabranch.model.union import ConflictPolicy, WindowContent
from anabranch.model.windows import WindowPolicy


class ContentKey(NamedTuple):
    """What makes two windows the same window at every instant.

    Queries over the same set of streams come to the same instant together, so their windows never step back; hence
    `fellows`. Formal windows hang on the query's instants, which are `alignment`.
    """

    stream: str
    fellows: tuple[str, ...]
    width: Duration | None
    windows: WindowPolicy
    conflicts: ConflictPolicy
    alignment: tuple[int, Duration | None] | None


class SlidingContent:
    """One window's union and the range of positions that it holds."""

    def __init__(self, conflicts: ConflictPolicy) -> None:
        self._conflicts = conflicts
        self._content = WindowContent(conflicts)
        self._first = 0
        self._stop = 0

    def slide(self, stream: StreamBuffer, positions: tuple[int, int]) -> WindowContent:
        first, stop = positions
        if first < self._first or stop < self._stop or self._stop <= first:
            self._content = WindowContent(self._conflicts)
            self._stop = first
        elif first > self._first:
            opening = stream.time_at(first)
            assert opening is not None, "positions inside the old range are still in the buffer"
            self._content.evict(opening)
        for event in stream.between(self._stop, stop):
            self._content.add(event)
        self._first, self._stop = first, stop
        return self._content


class Contents:
    """The pool, by key."""

    def __init__(self) -> None:
        self._by_key: dict[ContentKey, SlidingContent] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def get(self, key: ContentKey) -> SlidingContent:
        found = self._by_key.get(key)
        if found is None:
            found = self._by_key[key] = SlidingContent(key.conflicts)
        return found

    def keep_only(self, keys: Iterable[ContentKey]) -> None:
        """Let go of the windows that no query reads any more."""
        wanted = set(keys)
        for key in [key for key in self._by_key if key not in wanted]:
            del self._by_key[key]

    def drop_stream(self, name: str) -> None:
        """Let go of the windows over a stream whose events have moved."""
        for key in [key for key in self._by_key if key.stream == name]:
            del self._by_key[key]
