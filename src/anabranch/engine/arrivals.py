"""Evaluation instants that depend on arrivals: the instant of every n-th triple and, where wanted, of the last one.

Instants are discovered as the streams' watermarks pass. An instant is known when no event at or before it can come any
more, so the count depends on the triples and their order of time, never on how the input was cut into pushes.

Invariant: the known instants grow at their end only, and their indices stay. Counting resumes at `seen_until`: every
event before it has been counted, none after it has.
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

_MANY = 4096  # passed instants that are kept at most


@dataclass(slots=True)
class ArrivalInstants:
    """Like `EvaluationInstants`, but with instants that become known as triples come.

    With 0 `triples` the instant of the last triple is the only one.
    """

    starting_at: int
    triples: int
    counted: int = 0
    seen_until: int = field(default=-1)
    last_time: int | None = None  # the time of the last counted triple
    latest: int | None = None  # the last known instant
    base: int = 0  # the index of the first instant that is still held
    held: list[int] = field(default_factory=list)
    complete: bool = False  # the input has ended and the last instant is known
    final: bool = True  # the last triple's instant counts, whatever its number is

    every: None = None
    once: bool = False

    @classmethod
    def beginning(cls, starting_at: int, triples: int, complete_from: int, final: bool = True) -> ArrivalInstants:
        return cls(starting_at, triples, seen_until=max(starting_at, complete_from), final=final)

    @property
    def end(self) -> int:
        """The index of the first instant that is not known yet."""
        return self.base + len(self.held)

    def instant(self, index: int) -> int:
        """Return the instant of an index; END when it is not known."""
        return self.held[index - self.base] if index < self.end else END

    def not_before(self, index: int) -> int:
        """Return a lower bound of an index's instant.

        If no more triples come, the next instant is the last triple's.
        """
        if index < self.end or self.complete:
            return self.instant(index)
        waits = self.final and self.last_time is not None and self.last_time != self.latest
        return self.last_time if waits and self.last_time is not None else self.seen_until

    def index_at_or_after(self, micros: int) -> int:
        return self.base + bisect_left(self.held, micros)

    def search(self, holds: Callable[[int], bool], low: int, guess: int) -> int:
        """Return the smallest known index >= low for which a monotone condition holds, else the first unknown index."""
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
        """Count the triples before `open_from`, which are final, and append the instants that they make."""
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
        """Count triples by event time, and append their instants. `came` has times and numbers of triples."""
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
        """Forget the instants before an index; no caller asks for them again."""
        passed = index - self.base
        if passed > _MANY:
            del self.held[:passed]
            self.base += passed
