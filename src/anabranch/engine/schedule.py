"""What may be evaluated now, in which order, and what may be forgotten then.

An instant w of a query is evaluated as soon as no event at or before w can come any more on any stream that the query
reads. Queries are evaluated in the order of their instants, then of their registration.

Invariant: an event is forgotten only when no query will look at it again, neither ahead nor for a correction.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

from anabranch.engine import corrections
from anabranch.engine.progress import BEGINNING, END, LatePolicy
from anabranch.engine.query import ContinuousQuery, Surroundings
from anabranch.engine.stream import StreamBuffer


@dataclass(slots=True)
class Ending:
    """How far queries go on after their input has ended."""

    until: int | None = None
    drain: bool = False


@dataclass(slots=True)
class Schedule:
    """The queries of an engine and the streams that move them."""

    around: Surroundings = field(default_factory=Surroundings)
    queries: dict[str, ContinuousQuery] = field(default_factory=dict)
    advanced_to: int = BEGINNING
    ending: Ending = field(default_factory=Ending)
    once_read: set[str] = field(default_factory=set)

    def streams_of(self, query: ContinuousQuery) -> list[StreamBuffer]:
        """The streams whose progress moves the query: those it reads, or all when it reads none."""
        names = query.stream_names() if query.windows else self.around.streams
        return [self.around.streams[name] for name in names]

    def open_from(self, query: ContinuousQuery) -> int:
        """The instants of the query before this one are final."""
        return min((stream.open_from for stream in self.streams_of(query)), default=self.advanced_to + 1)

    @property
    def frontier(self) -> int:
        """Every living query has been evaluated at all of its instants before this one."""
        return min((self.open_from(query) for query in self.queries.values() if not query.done), default=END)

    # --- evaluation ---------------------------------------------------------------------------------------------------

    def run(self, late: LatePolicy) -> None:
        """Evaluate what can be evaluated, over all queries in the order of time."""
        waiting: list[tuple[int, int, int, ContinuousQuery]] = []
        for query in self.queries.values():
            last = self._last_index(query)
            if last is not None and query.next_index <= last:
                heapq.heappush(waiting, (query.next_instant, query.order, last, query))
        while waiting:
            _, order, last, query = heapq.heappop(waiting)
            query.step(self.around, last)
            if not query.done and query.next_index <= last:
                heapq.heappush(waiting, (query.next_instant, order, last, query))
        self.let_go(late)

    def _last_index(self, query: ContinuousQuery) -> int | None:
        """The last index that may be evaluated now."""
        if query.done or not query.is_bound:
            return None
        streams = self.streams_of(query)
        open_from = self.open_from(query)
        if query.instants is None:
            first = min((s.first_event_time for s in streams if s.first_event_time is not None), default=None)
            if first is None or first >= open_from:
                return None
            query.start(first)
        assert query.instants is not None
        if streams and all(stream.closed for stream in streams):
            return self._ending_index(query, streams)
        if query.next_instant >= open_from:
            return None
        return query.instants.index_at_or_after(open_from) - 1

    def _ending_index(self, query: ContinuousQuery, streams: list[StreamBuffer]) -> int:
        assert query.instants is not None
        if self.ending.until is not None:
            return query.instants.index_at_or_after(self.ending.until + 1) - 1
        last_event_times = {s.name: s.last_event_time for s in streams if s.last_event_time is not None}
        if self.ending.drain:
            return query.drained_end(last_event_times)
        return query.natural_end(max(last_event_times.values(), default=None))

    # --- forgetting ---------------------------------------------------------------------------------------------------

    def let_go(self, late: LatePolicy) -> None:
        """Forget the events and the unions that no query needs any more.

        A stream that no query has read yet keeps everything: whoever registers after pushing finds the events. And
        where corrections may come from any time, nothing is forgotten.
        """
        if not late.corrects:
            self._forget({query.name: query.next_index for query in self.queries.values() if not query.done})
        elif late.horizon is not None:
            self._forget(corrections.reachable(self.queries.values(), self.around.streams))
        if len(self.around.contents) > 0:
            living = [query for query in self.queries.values() if not query.done and query.instants is not None]
            self.around.contents.keep_only(key for query in living for key in query.content_keys())

    def _forget(self, looking_back_to: dict[str, int]) -> None:
        """Forget what lies before the windows of every query at the first index that it may still look at."""
        for name, stream in self.around.streams.items():
            if name in self.once_read:
                readers = (query for query in self.queries.values() if name in query.stream_names())
                needs = (
                    query.needs_from(name, looking_back_to[query.name])
                    for query in readers
                    if query.name in looking_back_to
                )
                stream.forget_before(min(needs, default=END))
