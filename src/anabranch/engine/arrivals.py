"""Evaluation instants that hang on what comes: the instant of every n-th triple and, where wanted, of the last one.

They are found out as the streams' watermarks pass. An instant is known when nothing at or before it can come any more,
so the count depends on what came and in which order of time, never on how the input was cut into pushes.

Invariant: the known instants grow at their end only, and their indices stay. `seen_until` is where counting goes on:
every event before it has been counted, none after it has.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from anabranch.engine.progress import END
from anabranch.engine.stream import StreamBuffer
from anabranch.model.block import Times
from anabranch.model.windows import Bounds

_MANY = 4096  # instants that have passed; then they are let go


@dataclass(slots=True)
class ArrivalInstants:
    """As `EvaluationInstants`, with instants that are not known from the beginning. 0 triples means the last alone."""

    starting_at: int
    triples: int
    counted: int = 0
    seen_until: int = field(default=-1)
    last_time: int | None = None  # of a triple that was counted
    latest: int | None = None  # of the known instants
    base: int = 0  # the index of the first that is still held
    held: list[int] = field(default_factory=list)
    complete: bool = False  # the input has ended and the last instant is known
    final: bool = True  # the last triple's instant is one of them, whatever the count

    every: None = None
    once: bool = False

    @classmethod
    def beginning(cls, starting_at: int, triples: int, complete_from: int, final: bool = True) -> ArrivalInstants:
        return cls(starting_at, triples, seen_until=max(starting_at, complete_from), final=final)

    @property
    def end(self) -> int:
        """The index of the first instant that is not known."""
        return self.base + len(self.held)

    def instant(self, index: int) -> int:
        """The instant of an index; END when it is not known."""
        return self.held[index - self.base] if index < self.end else END

    def not_before(self, index: int) -> int:
        """The earliest that the instant of an index can be. Should nothing more come, the last triple's is next."""
        if index < self.end or self.complete:
            return self.instant(index)
        waits = self.final and self.last_time is not None and self.last_time != self.latest
        return self.last_time if waits and self.last_time is not None else self.seen_until

    def index_at_or_after(self, micros: int) -> int:
        return self.base + bisect_left(self.held, micros)

    def search(self, holds: Callable[[int], bool], low: int, guess: int) -> int:
        """The smallest known index >= low for which a monotone condition holds, else the first unknown one."""
        low = max(low, self.base)
        high = max(low, self.end)
        while low < high:
            middle = (low + high) // 2
            if holds(middle):
                high = middle
            else:
                low = middle + 1
        return low

    def discover(self, streams: Iterable[StreamBuffer], open_from: int, ended: bool) -> None:
        """Count what has become final, and append the instants that this makes."""
        if self.complete:
            return
        if open_from > self.seen_until:
            window = Bounds(self.seen_until, open_from, True, False, 0, 0)
            self._count([stream.arrivals(*stream.positions(window)) for stream in streams])
            self.seen_until = open_from
        if ended:
            self.complete = True
            if self.final and self.last_time is not None and self.last_time != self.latest:
                self._append(self.last_time)

    def _count(self, came: Sequence[tuple[Times, Times]]) -> None:
        """Take in event times, with how many triples came with each, and append the instants that they make."""
        sizes = np.concatenate([np.empty(0, np.int64), *(counts for _, counts in came)])
        some = sizes > 0
        if not some.any():
            return
        times, places = np.unique(np.concatenate([times for times, _ in came])[some], return_inverse=True)
        counted = self.counted + np.cumsum(np.bincount(places, sizes[some]).astype(np.int64))
        if self.triples:
            passed = np.diff(counted // self.triples, prepend=self.counted // self.triples) > 0
            for time in times[passed].tolist():
                self._append(time)
        self.last_time, self.counted = int(times[-1]), int(counted[-1])

    def _append(self, instant: int) -> None:
        self.held.append(instant)
        self.latest = instant

    def let_go(self, index: int) -> None:
        """Forget instants before an index; nobody will ask for them again."""
        passed = index - self.base
        if passed > _MANY:
            del self.held[:passed]
            self.base += passed
