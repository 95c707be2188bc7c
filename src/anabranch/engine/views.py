"""The view of a query's windows at an instant: their ends, and the positions of their events in the streams' buffers.

A window with a step shows, between two multiples of the step, the same as at the last one. The multiples count from the
registration's STARTING AT, else from the epoch.

Invariant: neither end of a window ever moves back as the instant moves on, whatever kind of window it is; two views
with the same signature hold the same events.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from anabranch.algebra.operators import Window
from anabranch.engine.stream import StreamBuffer
from anabranch.errors import InternalError
from anabranch.model.temporal import Duration
from anabranch.model.windows import Bounds, WindowPolicy, bounds, bounds_without_width, last_multiple


@dataclass(frozen=True, slots=True)
class WindowFrame:
    """The parameters that place the windows of one query in time.

    `starting_at` and `every` are those of its instants.
    """

    policy: WindowPolicy
    origin: int
    starting_at: int
    every: Duration | None
    arrivals: bool

    def bounds(self, window: Window, at: int) -> Bounds:
        """Return the ends of a window at an instant."""
        if window.step is not None:
            at = last_multiple(window.step, at, self.origin)
        if window.width is not None:
            # With a slide of nothing, the earliest of the windows that contain w is the trailing one.
            policy: WindowPolicy = "trailing" if self.arrivals and self.policy == "formal" else self.policy
            return bounds(policy, at, window.width, self.starting_at, self.every)
        if window.count is None and not window.unbounded:
            raise InternalError("a registered query has a window that does not say how far back it reaches")
        return bounds_without_width(self.policy, at)


@dataclass(slots=True)
class WindowEvents:
    """One window of a query at one instant: its events at `positions`, without the first `skip` triples."""

    bounds: Bounds
    stream: StreamBuffer
    positions: tuple[int, int]
    skip: int
    win_start: int

    @classmethod
    def of(cls, window: Window, ends: Bounds, stream: StreamBuffer) -> WindowEvents:
        first, stop = stream.positions(ends)
        skip = 0
        if window.count is not None:
            first, skip = stream.back(stop, window.count)
        win_start = ends.win_start
        if window.width is None and first < stop:
            oldest = stream.time_at(first)
            assert oldest is not None, "positions before the end of the buffer have events"
            win_start = oldest
        return cls(ends, stream, (first, stop), skip, win_start)

    @property
    def is_empty(self) -> bool:
        return self.positions[0] >= self.positions[1]

    @property
    def reported(self) -> tuple[int, int]:
        """The window's win_start and win_end."""
        return self.win_start, self.bounds.win_end

    @property
    def signature(self) -> Hashable:
        return None if self.is_empty else (*self.positions, self.skip)


def widest_bounds(views: Iterable[WindowEvents], at: int) -> tuple[int, int]:
    """Return the bounds that an answer reports: those of its widest window; without any, the instant twice."""
    return min((view.reported for view in views), key=lambda ends: (ends[0], -ends[1]), default=(at, at))


def needed_from(window: Window, ends: Bounds, stream: StreamBuffer) -> int:
    """Return the smallest event time that the window can hold now or at any later instant.

    Events before the last triples of a count window can be forgotten: new triples push them further out. But while the
    window is not full, an event that comes before them still counts.
    """
    if window.count is None:
        return ends.first
    _, stop = stream.positions(ends)
    if stream.triples_before(stop) < window.count:
        return ends.first
    oldest = stream.time_at(stream.back(stop, window.count)[0])
    return ends.first if oldest is None else oldest
