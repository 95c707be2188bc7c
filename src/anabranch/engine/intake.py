"""The events of one push on their way into a stream: decided one by one, or by runs of a block.

Invariant: a block has the effect of its events, judged one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from anabranch.engine.ahead import Judgement
from anabranch.engine.stream import StreamBuffer
from anabranch.errors import InternalError
from anabranch.model.event import Event
from anabranch.model.graph_block import EventBlock

_EVENTS_PER_RUN = 16  # of a block between late events, on average: shorter runs cost more than their events


@dataclass(frozen=True, slots=True)
class PushResult:
    """The result of a push.

    `accepted` counts the events that were taken in, `corrected` those of them that came after their instants had been
    answered. `late` are the events that came too late, `late_places` their places among the pushed events. `ahead` are
    events whose clock is not believed; where there are some, or some wait to be confirmed, `taken` are the events that
    were taken in, in this order.
    """

    accepted: int
    late: tuple[Event, ...] = ()
    corrected: int = 0
    late_places: tuple[int, ...] = field(default=(), compare=False, repr=False)
    ahead: tuple[Event, ...] = ()
    taken: tuple[Event, ...] | None = field(default=None, compare=False, repr=False)


@dataclass(slots=True)
class Intake:
    """The events of one push on their way into a split's buffer, with the decision about each."""

    buffer: StreamBuffer
    split: str
    taken: list[Event] = field(default_factory=list)
    late: list[tuple[int, Event]] = field(default_factory=list)
    corrects: list[Event] = field(default_factory=list)
    ahead: list[Event] = field(default_factory=list)
    is_as_given: bool = True  # no event was in doubt: all given events were taken in, except late ones
    in_blocks: int = 0  # events that were taken in, besides `taken`

    def take_runs(self, block: EventBlock) -> bool:
        """Take in a block as runs between late events; if those are many, change nothing and return False."""
        late = self.buffer.late_places(block, self.split)
        if late is None or len(late) * _EVENTS_PER_RUN > len(block):
            return False
        first = 0
        for place in [*late.tolist(), len(block)]:
            if not self.buffer.push_block(block[first:place], self.split):
                raise InternalError("a block between late events was not taken in")
            self.in_blocks += place - first
            if place < len(block):
                self._admit(block[place], place)
            first = place + 1
        return True

    def judge(self, event: Event, place: int) -> None:
        if self.buffer.ahead is None:
            self._admit(event, place)
            return
        judgement = self.buffer.judge(event, self.split)
        if len(judgement.taken) == 1 and judgement.taken[0] is event and not judgement.ahead:
            self._admit(event, place)
        else:
            self.follow(judgement)

    def follow(self, judgement: Judgement) -> None:
        self.is_as_given = False
        for event in judgement.taken:
            self._admit(event, -1)
        self.ahead += judgement.ahead
        self.buffer.set_aside += len(judgement.ahead)

    def _admit(self, event: Event, place: int) -> None:
        admission, held = self.buffer.admit(event, self.split)
        if admission == "late":
            self.late.append((place, event))
            return
        self.taken.append(event)
        if admission == "corrects":
            self.corrects.append(held)

    def pushed(self) -> PushResult:
        late = tuple(event for _, event in self.late)
        if self.is_as_given:
            accepted = len(self.taken) + self.in_blocks
            return PushResult(accepted, late, len(self.corrects), tuple(place for place, _ in self.late))
        return PushResult(len(self.taken), late, len(self.corrects), (), tuple(self.ahead), tuple(self.taken))
