"""The gate of a stream that is pushed: what the run will do with events is known when they are pushed.

A pushed stream has one split, so which event is late or ahead depends on the order of the pushes alone. The gate keeps
how far the stream is, in the spool's cursor, which is written with the records.

Invariant: the gate says what the engine will say, and decides nothing; a push that fails leaves it where it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from anabranch.engine.ahead import Doubts
from anabranch.engine.progress import BEGINNING, ONLY_SPLIT, LatePolicy, Watermarks
from anabranch.engine.timing import AheadBound
from anabranch.formats.deadletter import MalformedRecord
from anabranch.formats.ndjson import read_line_as
from anabranch.model.event import Event
from anabranch.model.temporal import Duration
from anabranch.sources.base import Decode


@dataclass(frozen=True, slots=True)
class PushReceipt:
    """What becomes of pushed records: events that are taken in (those of earlier pushes too that these confirm), that
    come too late, whose clock is too far ahead, that wait for others to confirm their clock; and records that are no
    events. `received` are records that only the run can read, so that it is not known yet."""

    accepted: int
    late: int = 0
    ahead: int = 0
    in_doubt: int = 0
    malformed: int = 0
    received: int = 0


class Gate:
    def __init__(self, lateness: Duration | None, ahead: AheadBound | None, cursor: Any = None) -> None:
        self._progress = Watermarks("", lateness, LatePolicy())
        self._split = self._progress.split(ONLY_SPLIT)
        self._ahead = ahead
        self._doubts = Doubts()
        if cursor is not None:
            newest, watermark, held, in_a_row, against = cursor["gate"]
            self._split.newest, self._split.watermark = newest, watermark
            self._doubts = Doubts([Event(time) for time in held], in_a_row, against)

    def set_clock(self, instant: int) -> None:
        """Forward the stream advances; back it begins again at the instant."""
        if instant < self._split.watermark:
            self._split.newest, self._doubts = None, Doubts()
        self._split.watermark = instant

    def cursor(self) -> Any:
        """How far the stream is, as JSON; another gate goes on from it."""
        held = [event.event_time for event in self._doubts.held]
        return {"gate": [self._split.newest, self._split.watermark, held, self._doubts.in_a_row, self._doubts.against]}

    def follow(self, newest: int | None, watermark: int | None) -> None:
        """The run is so far at least: it may have advanced, and believed a clock, while nothing was pushed."""
        self._split.watermark = max(self._split.watermark, BEGINNING if watermark is None else watermark)
        if newest is not None and (self._split.newest is None or newest > self._split.newest):
            self._split.newest = newest
            self._doubts.held = [event for event in self._doubts.held if event.event_time > newest]

    def passing(self, events: Iterable[Event], now: int) -> PushReceipt:
        """What becomes of events; `now` is the wall clock."""
        accepted = late = ahead = 0
        before = {id(event) for event in self._doubts.held}
        for event in events:
            taken: Sequence[Event] = [event]
            if self._ahead is not None:
                judgement = self._doubts.judge(event, self._split.newest, self._ahead, now)
                taken = judgement.taken
                ahead += len(judgement.ahead)
            for one in taken:
                is_late = self._progress.admit(self._split, one.event_time) == "late"
                late += is_late
                accepted += not is_late
        return PushReceipt(accepted, late, ahead, sum(id(event) not in before for event in self._doubts.held))


def read_events(records: Sequence[bytes], decode: Decode) -> tuple[list[Event], int]:
    """The events of records, and how many cannot be read; these are counted and set aside again when the run comes to
    them."""
    events: list[Event] = []
    malformed = 0
    for number, line in enumerate(records, 1):
        if line.strip():
            found = read_line_as(line.replace(b"\n", b" "), number, lambda data, place: decode(data, str(place)))
            if isinstance(found, MalformedRecord):
                malformed += 1
            elif found is not None:
                events.append(found)
    return events, malformed
