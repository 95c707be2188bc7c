"""The gate of a pushed stream: predicts, at the time of a push, how the run will treat each event.

A pushed stream has one split, so whether an event is late or ahead depends only on the order of the pushes. The gate
keeps the progress of the stream in the spool's cursor, which is written with the records.

Invariant: the gate predicts the engine's decisions and makes none; a push that fails leaves the gate unchanged.
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
    """The outcome of a push, as counts: events that are `accepted` (including events of earlier pushes that these
    confirm), too `late`, too far `ahead`, or `in_doubt` until other events confirm their clock; and records that are
    `malformed`. `received` counts records that only the run can decode, so their outcome is not known yet."""

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
        """Set the stream's clock: forward, the watermark advances; back, the stream restarts at the instant."""
        if instant < self._split.watermark:
            self._split.newest, self._doubts = None, Doubts()
        self._split.watermark = instant

    def cursor(self) -> Any:
        """Return the state of the gate as JSON; another gate can continue from it."""
        held = [event.event_time for event in self._doubts.held]
        return {"gate": [self._split.newest, self._split.watermark, held, self._doubts.in_a_row, self._doubts.against]}

    def follow(self, newest: int | None, watermark: int | None) -> None:
        """Catch up with the run, which may have advanced, or accepted an event in doubt, while nothing was pushed."""
        self._split.watermark = max(self._split.watermark, BEGINNING if watermark is None else watermark)
        if newest is not None and (self._split.newest is None or newest > self._split.newest):
            self._split.newest = newest
            self._doubts.held = [event for event in self._doubts.held if event.event_time > newest]

    def passing(self, events: Iterable[Event], now: int) -> PushReceipt:
        """Count the outcomes of events; `now` is the wall clock."""
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
    """Decode records: returns the events, and how many records are malformed; the run sets the malformed ones aside
    when it reads them."""
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
