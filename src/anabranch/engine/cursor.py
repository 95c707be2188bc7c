"""The cursor of a query: its position among its evaluation instants, and the view of its windows there.

Invariant: both ends of a window never move back as the index moves on; an index means the same instant for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from anabranch.algebra.operators import Registration, Window
from anabranch.algebra.walk import windows
from anabranch.engine.arrivals import ArrivalInstants
from anabranch.engine.flows import whole
from anabranch.engine.progress import BEGINNING, END
from anabranch.engine.stream import StreamBuffer
from anabranch.engine.surroundings import SharedState
from anabranch.engine.views import WindowEvents, WindowFrame, needed_from
from anabranch.errors import InternalError
from anabranch.model.instants import add_duration
from anabranch.model.windows import Bounds, EvaluationInstants, WindowPolicy

Instants: TypeAlias = EvaluationInstants | ArrivalInstants


class QueryCursor:
    """The position of a query among its instants. `policy` says what a window holds at an instant."""

    def __init__(self, registration: Registration, policy: WindowPolicy) -> None:
        self._registration = registration
        self._policy = policy
        # A window's filter does not change when events enter and leave it; rules may change the filter at any time.
        self.windows: tuple[Window, ...] = tuple(dict.fromkeys(whole(one) for one in windows(registration.plan)))
        self.instants: Instants | None = None
        self.is_alone = False  # whether its one instant depends on no stream
        self.first_index = 0  # of the first instant that was or will be evaluated
        self.next_index = 0
        self.passed: int | None = None  # the last instant that was evaluated or passed over since it is here
        self.done = False
        self._frame: WindowFrame | None = None
        self._ends: tuple[int, list[Bounds]] | None = None  # of the windows, at the instant that was asked for last
        self.bound_stream = None

    # --- streams ----------------------------------------------------------------------------------------------------

    @property
    def bound_stream(self) -> str | None:
        """The stream that stands for the unnamed one."""
        return self._bound_stream

    @bound_stream.setter
    def bound_stream(self, name: str | None) -> None:
        self._bound_stream = name
        names = {self.stream_name(window) for window in self.windows}
        self.is_bound = None not in names
        self._stream_names = tuple(sorted(one for one in names if one is not None))

    def stream_name(self, window: Window) -> str | None:
        return window.stream.name if window.stream.name is not None else self._bound_stream

    def stream_names(self) -> tuple[str, ...]:
        return self._stream_names

    # --- instants ---------------------------------------------------------------------------------------------------

    def start(self, starting_at: int, complete_from: int = BEGINNING) -> None:
        """Fix the first instant; instants from before the buffers' memory begins are not evaluated."""
        arrivals = self._registration.arrivals
        if arrivals is not None:
            self.instants = ArrivalInstants.beginning(starting_at, arrivals, complete_from, self._registration.final)
            self.first_index = self.next_index = 0
        else:
            self.instants = EvaluationInstants(starting_at, self._registration.every)
            self.first_index = self.next_index = self.instants.index_at_or_after(complete_from)
        self._begin_frame()

    def start_alone(self, at: int) -> None:
        """Fix the one instant of a query that depends on no stream."""
        self.is_alone = True
        self.instants = EvaluationInstants(at, None)
        self.first_index = self.next_index = 0
        self._begin_frame()

    def stand_at(self, other: QueryCursor) -> None:
        """Move to the position of the cursor of another query, which has the same windows and instants."""
        self.bound_stream = other.bound_stream
        self.start(other.started().starting_at)
        self.first_index, self.next_index, self.passed = other.first_index, other.next_index, other.passed

    def resume_arrivals(self, instants: ArrivalInstants) -> None:
        """Continue with instants that were discovered before."""
        self.instants = instants
        self._begin_frame()

    def _begin_frame(self) -> None:
        instants = self.started()
        self._ends = None
        self._frame = WindowFrame(
            self._policy,
            self._registration.starting_at or 0,
            instants.starting_at,
            instants.every,
            isinstance(instants, ArrivalInstants),
        )

    @property
    def next_instant(self) -> int:
        """Return the instant that is evaluated next; END when there is none, or it is not known yet."""
        if self.done or self.instants is None:
            return END
        return self.instants.instant(self.next_index)

    def bounds_at(self, window: Window, index: int) -> Bounds:
        return self._bounds(window, self.started().instant(index))

    def _bounds(self, window: Window, at: int) -> Bounds:
        if self._frame is None:
            raise InternalError(f"query `{self._registration.name}` has no first instant yet")
        return self._frame.bounds(window, at)

    def natural_end(self, clock: int | None) -> int:
        """Return the first index that has seen all events up to an instant: the query's end when its input ends."""
        if clock is None:
            return 0
        instants = self.started()
        if instants.once:
            return 0
        index = instants.index_at_or_after(clock)
        for window in self.windows:
            index = self.enters(window, clock, index)
        return index

    def drained_end(self, clock: int | None, last_event_times: Mapping[str, int]) -> int:
        """Return the first index, at or after the natural end, at which all windows are empty.

        Times are by stream. A window that time does not empty is left out.
        """
        index = self.natural_end(clock)
        if not self.started().once:
            for window in self.windows:
                last_event_time = last_event_times.get(self.stream_name(window) or "")
                if last_event_time is not None and window.width is not None:
                    index = self.leaves(window, last_event_time, index)
        return index

    def enters(self, window: Window, event_time: int, low: int) -> int:
        """Return the first index from `low` on whose window does not end before the event."""
        instants = self.started()
        guess = instants.index_at_or_after(event_time)
        return instants.search(lambda index: self.bounds_at(window, index).stop > event_time, low, guess)

    def leaves(self, window: Window, event_time: int, low: int) -> int:
        """Return the first index from `low` on whose window begins after the event; END when time alone does not move
        it.
        """
        if window.width is None:
            return END
        instants = self.started()
        guess = instants.index_at_or_after(add_duration(event_time, window.width))
        return instants.search(lambda index: self.bounds_at(window, index).first > event_time, low, guess)

    def needs_from(self, stream: StreamBuffer, index: int) -> int:
        """Return the smallest event time of a stream that this query needs from an index on."""
        instants = self.instants
        if instants is None:
            return BEGINNING
        if isinstance(instants, ArrivalInstants):
            at = instants.not_before(index)
            needs = instants.seen_until
        else:
            at, needs = instants.instant(index), END
        for window, bounds in zip(self.windows, self._ends_at(at) if at < END else (), strict=False):
            if self.stream_name(window) == stream.name:
                needs = min(needs, needed_from(window, bounds, stream))
        return needs

    def started(self) -> Instants:
        """Return the instants of a query whose first instant is fixed."""
        if self.instants is None:
            raise InternalError(f"query `{self._registration.name}` has no first instant yet")
        return self.instants

    def resume(self, next_index: int) -> None:
        """Move before an instant."""
        self.next_index = next_index

    # --- what the windows show ----------------------------------------------------------------------------------------

    def views_at(self, at: int, around: SharedState) -> dict[Window, WindowEvents]:
        """Return what each window holds at an instant."""
        return {
            window: WindowEvents.of(window, ends, around.streams[self.stream_name(window) or ""])
            for window, ends in zip(self.windows, self._ends_at(at), strict=True)
        }

    def _ends_at(self, at: int) -> list[Bounds]:
        """Return the ends of all windows at an instant: an instant's evaluation, and forgetting before it, need the
        same.
        """
        if self._ends is None or self._ends[0] != at:
            self._ends = (at, [self._bounds(window, at) for window in self.windows])
        return self._ends[1]

    def next_change(self, window: Window, view: WindowEvents, index: int) -> int:
        """Return the first later index at which an event may enter or leave the window; far away when there is none."""
        first, stop = view.positions
        entering = view.stream.time_at(stop)
        found = END if entering is None else self.enters(window, entering, index + 1)
        leaving = None if view.is_empty else view.stream.time_at(first)
        return found if leaving is None else min(found, self.leaves(window, leaving, index + 1))
