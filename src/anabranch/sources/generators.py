"""Generated streams: for trying a query, for demonstrations, for measuring.

    gen:bikes?seed=7&rate=1000     a thousand events a second, for ever
    gen:graph?count=1000000        a million events, as fast as they are read
    gen:auctions?model=property    people who sell and bid

Invariant: the settings and an event's number determine the event; the wall clock only says how many there are by now.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from math import inf

from anabranch.demos.chance import EventClock, Generator, number, whole
from anabranch.demos.synthetic import GENERATORS
from anabranch.errors import EvaluationError, StreamError, closest
from anabranch.formats.deadletter import MalformedRecord
from anabranch.formats.events import event_to_dict
from anabranch.model.event import Event
from anabranch.model.instants import MICROS_PER_DAY, parse_instant
from anabranch.model.temporal import parse_duration
from anabranch.sources.address import refuse_unknown
from anabranch.sources.base import ONLY_SPLIT, AsEvent, Backlog, Decode, Limit, Offset, Piece, Source
from anabranch.sources.lines import decoded

EVENTS_PER_PIECE = 20_000
COMMON_OPTIONS: Mapping[str, str] = {
    "seed": "another number makes another stream (0)",
    "count": "how many events there are; without it they never end",
    "rate": "events per second of the wall clock; without it they come as fast as they are read",
    "early": "with a rate: so many events are there when the stream begins (0)",
    "start": "the instant of the first event (2022-10-14T14:45:00Z)",
    "step": "the time between two events",
}

_FIRST_BATCH = 4096
_BYTES_PER_EVENT = 256
_LATEST = 2**63 - 1
_LONGEST_STEP = 36_525 * MICROS_PER_DAY


class GeneratorSource(Source):
    """The events of a generator. The offset is the number of the next one, and when a stream with a rate began."""

    has_own_clock = True

    def __init__(
        self, stream: str, name: str, options: Mapping[str, str] | None = None, now: Callable[[], float] = time.time
    ) -> None:
        self.stream = stream
        self.name = name
        self._options = dict(options or {})
        self._now = now
        kind = GENERATORS.get(name)
        if kind is None:
            near = closest(name, GENERATORS, limit=1)
            meant = f"did you mean gen:{near[0]}?  " if near else ""
            raise StreamError(f"gen:{name}: there is no such generator\nhint: {meant}There are {', '.join(GENERATORS)}")
        common = {**COMMON_OPTIONS, "step": f"{COMMON_OPTIONS['step']} ({kind.step})"}
        refuse_unknown(f"gen:{name}", self._options, {**common, **kind.options})
        try:
            self._count = None if "count" not in self._options else whole(self._options, "count", 0, 0, 2**53)
            self._rate = None if "rate" not in self._options else number(self._options, "rate", 0, 1e-6, 1e9)
            self._early = whole(self._options, "early", 0, 0, 2**53)
            if self._early and self._rate is None:
                raise StreamError(
                    "early: without a rate all events are there at once\nhint: give a rate, or leave it out"
                )
            clock = EventClock(_instant(self._options), _step(self._options.get("step", kind.step)))
            if self._count is not None and clock.start + self._count * clock.step > _LATEST:
                raise StreamError("the last event would come after the end of time\nhint: take a smaller step")
            seed = whole(self._options, "seed", 0, -(2**63), 2**63 - 1)
            self._generator: Generator = kind(seed, clock, self._options)
        except StreamError as error:
            raise StreamError(f"gen:{name}: {error}") from None

    @property
    def finite(self) -> bool:
        return self._count is not None

    def begin(self) -> Offset:
        return {"next": 0} if self._rate is None else {"next": 0, "begun": self._now()}

    def ahead(self, start: Offset, limit: Limit) -> Offset:
        first: int = start["next"]
        room = max(1, limit.size // _BYTES_PER_EVENT) if first else min(_FIRST_BATCH, limit.size // _BYTES_PER_EVENT)
        there = inf if self._count is None else self._count
        if self._rate is not None:
            there = min(there, self._due(start))
        stop = int(min(there, first + max(1, room), first + (limit.records or _LATEST)))
        return {**start, "next": max(first, stop)}

    def _due(self, offset: Offset) -> int:
        """How many events there are by now of a stream with a rate."""
        assert self._rate is not None
        return self._early + int(max(0.0, self._now() - offset["begun"]) * self._rate)

    def pieces(self, start: Offset, end: Offset) -> list[Piece]:
        firsts = range(start["next"], end["next"], EVENTS_PER_PIECE)
        return [
            Piece(self.stream, ONLY_SPLIT, order, {"first": first, "stop": min(first + EVENTS_PER_PIECE, end["next"])})
            for order, first in enumerate(firsts)
        ]

    def read(self, piece: Piece, decode: Decode) -> Iterator[Event | MalformedRecord]:
        first: int = piece.where["first"]
        events = self._generator.events(first, piece.where["stop"])
        if isinstance(decode, AsEvent):
            return events
        return decoded(((index, event_to_dict(event)) for index, event in enumerate(events, first + 1)), decode)

    def ended(self, offset: Offset) -> bool:
        return self._count is not None and offset["next"] >= self._count

    def backlog(self, offset: Offset) -> Backlog:
        return Backlog(offset["next"], self._count)

    def waiting(self, offset: Offset) -> Backlog | None:
        if self._rate is None:
            return None
        due = self._due(offset)
        return Backlog(offset["next"], due if self._count is None else min(due, self._count))


def _instant(options: Mapping[str, str]) -> int:
    try:
        return parse_instant(options.get("start", "2022-10-14T14:45:00Z"))
    except EvaluationError as error:
        raise StreamError(f"start: {error.diagnostic.message}\nhint: write it like 2022-10-14T14:45:00Z") from None


def _step(text: str) -> int:
    """The step in microseconds."""
    try:
        duration = parse_duration(text)
    except EvaluationError as error:
        raise StreamError(f"step: {error.diagnostic.message}\nhint: write it like PT1S or PT0.01S") from None
    if duration.months:
        raise StreamError(f"step={text}: months have no fixed length\nhint: write days, as in P30D")
    micros = duration.micros
    if not 0 < micros <= _LONGEST_STEP:
        raise StreamError(f"step={text}: it goes from a microsecond to a century\nhint: write it like PT1S or PT0.01S")
    return micros
