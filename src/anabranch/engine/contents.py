"""The unions of windows, shared by the queries that look at the same windows.

Queries are evaluated in the order of their instants, so a window that several of them read slides once for all. The
pool holds no events of its own: contents point into the streams' buffers.

Invariant: a content asked for positions [first, stop) is the union of exactly these events, also after a step back
(a query that joins late may look at older windows than its neighbours; the content is then built again).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from anabranch.engine.stream import StreamBuffer
from anabranch.model.union import ConflictPolicy, WindowContent


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
    """The pool, by what makes two windows the same window at every instant."""

    def __init__(self) -> None:
        self._by_key: dict[Hashable, SlidingContent] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def get(self, key: Hashable, conflicts: ConflictPolicy) -> SlidingContent:
        found = self._by_key.get(key)
        if found is None:
            found = self._by_key[key] = SlidingContent(conflicts)
        return found

    def keep_only(self, keys: Iterable[Hashable]) -> None:
        """Let go of the windows that no query reads any more."""
        wanted = set(keys)
        for key in [key for key in self._by_key if key not in wanted]:
            del self._by_key[key]
