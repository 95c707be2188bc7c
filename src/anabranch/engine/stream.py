"""One stream's buffer: the single copy of its events that all queries of an engine look at.

The buffer is sorted by event time; events of one instant keep the order of their arrival. `open_from` is the
watermark: the smallest event time that may still come. What lies before it never changes again, so a query may look
there; an event that arrives below it is late: counted, handed back, never lost in silence. A lateness holds the
watermark back behind the newest event, and the buffer then is the reorder buffer too.

Invariant: positions (counted from the first event that was ever accepted) of events before `open_from` are final.
Everything at or after `complete_from` that was accepted is still here.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace

from anabranch.errors import EngineError
from anabranch.model.event import Event
from anabranch.model.instants import subtract_duration
from anabranch.model.temporal import Duration
from anabranch.model.windows import Bounds

BEGINNING = -(2**63)
END = 2**63 - 1


@dataclass(frozen=True, slots=True)
class StreamState:
    """All that a checkpoint keeps of a stream."""

    name: str
    lateness: Duration | None
    sequence: int
    open_from: int
    complete_from: int
    closed: bool
    late: int
    first_event_time: int | None
    last_event_time: int | None
    events: tuple[Event, ...]


class StreamBuffer:
    def __init__(self, name: str, lateness: Duration | None = None) -> None:
        self.name = name
        self.lateness = lateness
        self.sequence = 0
        self.open_from = BEGINNING
        self.complete_from = BEGINNING
        self.closed = False
        self.late = 0
        self.first_event_time: int | None = None
        self.last_event_time: int | None = None
        self._events: list[Event] = []
        self._times: list[int] = []
        self._start = 0  # events before this index are forgotten; the lists are cut now and then
        self._base = 0  # the position of index 0

    def __len__(self) -> int:
        return len(self._times) - self._start

    # --- input ------------------------------------------------------------------------------------------------------

    def push(self, event: Event) -> bool:
        """Take an event in; False when it is late."""
        if self.closed:
            raise EngineError(f"stream `{self.name}` is closed: its input has ended")
        event_time = event.event_time
        if event_time < self.open_from:
            self.late += 1
            return False
        event = self._with_ids(event)
        self.sequence += 1
        if not self._times or event_time >= self._times[-1]:
            self._times.append(event_time)
            self._events.append(event)
        else:
            place = bisect_right(self._times, event_time, self._start)
            self._times.insert(place, event_time)
            self._events.insert(place, event)
        if self.first_event_time is None or event_time < self.first_event_time:
            self.first_event_time = event_time
        if self.last_event_time is None or event_time > self.last_event_time:
            self.last_event_time = event_time
            watermark = event_time if self.lateness is None else subtract_duration(event_time, self.lateness)
            self.open_from = max(self.open_from, watermark)
        return True

    def _with_ids(self, event: Event) -> Event:
        """Each relationship without an id is one of its own: give it an id that a rerun gives again."""
        if all(relationship.id is not None for relationship in event.relationships):
            return event
        named = tuple(
            replace(relationship, id=f"~{self.sequence}.{index}") if relationship.id is None else relationship
            for index, relationship in enumerate(event.relationships)
        )
        return replace(event, relationships=named)

    def advance(self, instant: int) -> None:
        """No event at or before the instant will come any more."""
        self.open_from = max(self.open_from, instant + 1)

    def close(self) -> None:
        self.closed = True
        self.open_from = END

    # --- what queries look at ---------------------------------------------------------------------------------------

    def positions(self, bounds: Bounds) -> tuple[int, int]:
        """Where the events of a window stand, as a half-open range of positions."""
        first = bisect_left(self._times, bounds.first, self._start)
        stop = bisect_left(self._times, bounds.stop, first)
        return self._base + first, self._base + stop

    def between(self, first: int, stop: int) -> list[Event]:
        return self._events[max(self._start, first - self._base) : max(self._start, stop - self._base)]

    def time_at(self, position: int) -> int | None:
        """The event time at a position, None after the last event."""
        index = position - self._base
        return self._times[index] if index < len(self._times) else None

    def forget_before(self, instant: int) -> None:
        """Let go of all events before an instant that no query will ask for again."""
        keep = bisect_left(self._times, instant, self._start)
        if keep == self._start:
            return
        self.complete_from = max(self.complete_from, self._times[keep - 1] + 1)
        self._start = keep
        if keep * 2 > len(self._times):
            del self._times[:keep]
            del self._events[:keep]
            self._base += keep
            self._start = 0

    # --- checkpoint -------------------------------------------------------------------------------------------------

    def state(self) -> StreamState:
        return StreamState(
            self.name,
            self.lateness,
            self.sequence,
            self.open_from,
            self.complete_from,
            self.closed,
            self.late,
            self.first_event_time,
            self.last_event_time,
            tuple(self._events[self._start :]),
        )

    @classmethod
    def from_state(cls, state: StreamState) -> StreamBuffer:
        stream = cls(state.name, state.lateness)
        stream.sequence = state.sequence
        stream.open_from = state.open_from
        stream.complete_from = state.complete_from
        stream.closed = state.closed
        stream.late = state.late
        stream.first_event_time = state.first_event_time
        stream.last_event_time = state.last_event_time
        stream._events = list(state.events)
        stream._times = [event.event_time for event in state.events]
        return stream
