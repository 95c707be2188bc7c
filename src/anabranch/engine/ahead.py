"""Events whose clock is far ahead: they wait until other events of their split confirm them, or are set aside.

One event with a wrong clock would move the watermark past all events that follow it. An event is in doubt when it is
further ahead of the newest event of its split than the bound. While it waits, the split's time does not move:

    CONFIRMING events in a row, all further ahead than the bound, confirm each other: time has moved on, for example
    after a quiet weekend. The earliest of them is taken in, then the others that are near it.
    REFUTING events that are not ahead, since the first event in doubt, refute it: it is set aside, and time goes on.

An event of live input that is near the wall clock is not in doubt; one that is further ahead of the wall clock than the
bound is set aside at once. At the end of the input, and when a live stream falls silent, events in doubt are taken in
if they outnumber the events against them and lie within the `last` bound.

Invariant: the decision about an event depends on the events of its split in their order and on the wall clock that came
with them; never on how they were cut into pushes. Events that are set aside are handed back to the caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from anabranch.engine.timing import AheadBound
from anabranch.model.event import Event

CONFIRMING = 3
REFUTING = 3


@dataclass(frozen=True, slots=True)
class Judgement:
    """The decision about events: those that are taken in now, in this order, and those that are set aside."""

    taken: Sequence[Event] = ()
    ahead: Sequence[Event] = ()


@dataclass(slots=True)
class Doubts:
    """The events of one split that are in doubt, in their order of arrival."""

    held: list[Event] = field(default_factory=list)
    in_a_row: int = 0  # events in doubt since the last event that was not ahead
    against: int = 0  # events that were not ahead since the first event in doubt

    def judge(self, event: Event, newest: int | None, bound: AheadBound, now: int | None) -> Judgement:
        """Decide about an event and about the events in doubt. `newest` is the time of the newest event that was taken
        in.
        """
        time = event.event_time
        if now is not None and time > now + bound.clock and (newest is None or time > newest + bound.clock):
            return Judgement(ahead=[event])
        if newest is None or not _is_far(time, newest, bound, now):
            return self._passed(event, newest, bound, now)
        self.held.append(event)
        self.in_a_row += 1
        taken: list[Event] = []
        while self.in_a_row >= CONFIRMING and self.held:
            earliest = min(self.held, key=lambda one: one.event_time)
            self.held.remove(earliest)
            taken.append(earliest)
            newest = earliest.event_time
            taken += self._near(newest, bound, now)
            self.in_a_row = min(self.in_a_row, len(self.held))
            self.against = 0
        return Judgement(taken)

    def _passed(self, event: Event, newest: int | None, bound: AheadBound, now: int | None) -> Judgement:
        if not self.held:
            return Judgement([event])
        self.in_a_row = 0
        self.against += 1
        newest = event.event_time if newest is None else max(newest, event.event_time)
        taken = [event, *self._near(newest, bound, now)]
        ahead = self._drop() if self.against >= REFUTING else ()
        return Judgement(taken, ahead)

    def _near(self, newest: int, bound: AheadBound, now: int | None) -> list[Event]:
        """Remove and return the events that are no longer in doubt now that the split's time is `newest`."""
        found: list[Event] = []
        moved = True
        while moved:
            near = [one for one in self.held if not _is_far(one.event_time, newest, bound, now)]
            self.held = [one for one in self.held if one not in near]
            found += near
            reached = max((one.event_time for one in near), default=newest)
            moved, newest = reached > newest, max(newest, reached)
        return found

    def settle(self, newest: int | None, bound: AheadBound, is_over: bool) -> Judgement:
        """Decide about the events in doubt when no event follows for the time being, or at all (`is_over`)."""
        taken: list[Event] = []
        if len(self.held) > self.against:
            left = []
            for one in self.held:
                if newest is None or one.event_time <= newest + bound.last:
                    taken.append(one)
                    newest = one.event_time if newest is None else max(newest, one.event_time)
                else:
                    left.append(one)
            self.held = left
            self.in_a_row = min(self.in_a_row, len(left))
        return Judgement(taken, self._drop() if is_over else ())

    def _drop(self) -> list[Event]:
        dropped, self.held = self.held, []
        self.in_a_row = self.against = 0
        return dropped


def _is_far(time: int, newest: int, bound: AheadBound, now: int | None) -> bool:
    return time > newest + bound.jump and (now is None or abs(time - now) > bound.clock)
