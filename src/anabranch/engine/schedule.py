"""The schedule: which instants may be evaluated now, in which order, and which events may be forgotten afterwards.

An instant w of a query is evaluated as soon as no event at or before w can come any more on any stream that the query
reads; where a stream is silent, a query that can be corrected does not wait for it. Queries are evaluated in the order
of their instants, then of their registration; a query's answers move the queries that read them, until nothing moves.

Invariant: an event is forgotten only when no query will read it again, neither ahead nor for a correction.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from anabranch.engine import chains, corrections
from anabranch.engine.arrivals import ArrivalInstants
from anabranch.engine.groups import QueryGroups
from anabranch.engine.progress import BEGINNING, END, LatePolicy
from anabranch.engine.query import ContinuousQuery
from anabranch.engine.stream import StreamBuffer
from anabranch.engine.surroundings import SharedState
from anabranch.model.instants import add_duration
from anabranch.model.windows import first_multiple


@dataclass(slots=True)
class Ending:
    """How far queries go on after their input has ended. `declared`: the caller has ended the input of all streams."""

    until: int | None = None
    drain: bool = False
    declared: bool = False


@dataclass(slots=True)
class StreamReaders:
    """The different widths of the windows over a stream, and whether all its readers can be corrected."""

    widths: set[int | None] = field(default_factory=set)
    can_be_corrected: bool = True


@dataclass(slots=True)
class Schedule:
    """The queries of an engine and the streams that move them."""

    around: SharedState = field(default_factory=SharedState)
    queries: dict[str, ContinuousQuery] = field(default_factory=dict)
    groups: QueryGroups = field(default_factory=QueryGroups)
    advanced_to: int = BEGINNING
    ending: Ending = field(default_factory=Ending)
    once_read: set[str] = field(default_factory=set)
    _readers: dict[str, StreamReaders] = field(default_factory=dict)

    @property
    def sources(self) -> list[StreamBuffer]:
        """The streams that no query makes."""
        return [stream for stream in self.around.streams.values() if stream.origin != "query"]

    @property
    def runs(self) -> list[ContinuousQuery]:
        """The queries that are stepped: those in no group, and the run of each group."""
        alone = [query for query in self.queries.values() if query.group is None]
        return [*alone, *(group.run for group in self.groups.by_key.values())]

    def streams_of(self, query: ContinuousQuery) -> list[StreamBuffer]:
        """Return the streams whose progress moves the query: those it reads, or all sources when it reads none."""
        if not query.windows:
            return self.sources
        return [self.around.streams[name] for name in query.cursor.stream_names()]

    def open_from(self, query: ContinuousQuery, streams: list[StreamBuffer]) -> int:
        """Return the instant before which the query's instants may be evaluated, given the streams that move it."""
        if query.can_be_corrected and True in [stream.is_early for stream in streams]:
            if all(stream.is_early or stream.closed for stream in streams):
                return min(stream.answers_alone for stream in streams)
            return min(stream.answers_until for stream in streams)
        return min([stream.open_from for stream in streams], default=self.advanced_to + 1)

    @property
    def frontier(self) -> int:
        """The instant before which every living query has been evaluated."""
        living = [query for query in self.runs if not query.cursor.done]
        return min([self.open_from(query, self.streams_of(query)) for query in living], default=END)

    # --- evaluation ---------------------------------------------------------------------------------------------------

    def run(self, late: LatePolicy, added: Sequence[ContinuousQuery] | None = None) -> None:
        """Evaluate all instants that can be evaluated, over all queries in the order of time.

        Where nothing has changed but that queries were `added`, only these, and the readers of their streams, can be.
        """
        self._evaluate(added)
        while self._move_made_streams():
            self._evaluate()
        if added is None or any(map(len, self.around.streams.values())):
            self.let_go(late)

    def _evaluate(self, queries: Sequence[ContinuousQuery] | None = None) -> None:
        due = self._due(self.runs if queries is None else queries)
        if queries is None and self.groups.gather([query for query, _ in due], self.around):
            due = self._due(self.runs)
        waiting = [(query.cursor.next_instant, query.order, last, query) for query, last in due]
        heapq.heapify(waiting)
        while waiting:
            if self.around.check is not None:
                self.around.check()
            *_, last, query = heapq.heappop(waiting)
            evaluations = query.outbox.evaluations
            # One instant alone is a step: preparing many takes longer.
            if query.cursor.next_index == last or not query.run_ahead(self.around, last):
                self._step(query, last)
            goes_on = [(query, last)] if query.cursor.next_index <= last and not query.cursor.done else []
            if query.cursor.done and (group := self.groups.of_run(query)) is not None:
                query.outbox.evaluations = evaluations  # members repeat the failed one: each fails alone, or does not
                goes_on = self._due(self.groups.dissolve(group, refused=True))
            for one, until in goes_on:
                heapq.heappush(waiting, (one.cursor.next_instant, one.order, until, one))
        self.groups.tell()

    def _step(self, query: ContinuousQuery, last: int) -> None:
        answer = query.step(self.around, last)
        if query.is_volatile:
            self._renew_ids(computed=True)
        into = query.registration.into
        if answer is not None and into is not None:
            event = chains.event_of(answer, query)
            if event is not None:
                self.around.streams[into].push(event)

    def _due(self, queries: Iterable[ContinuousQuery]) -> list[tuple[ContinuousQuery, int]]:
        """Return the queries that can be evaluated now, each with the last index up to which it can."""
        return [
            (query, last)
            for query in queries
            if (last := self._last_index(query)) is not None and query.cursor.next_index <= last
        ]

    def _move_made_streams(self) -> bool:
        """Let derived streams follow the queries that make them; return whether one moved."""
        moved = False
        for query in self.queries.values():
            into = query.registration.into
            if into is not None:
                made = self.around.streams[into]
                moved |= chains.follow(made, query, self.streams_of(query), self._has_ended(query))
        return moved

    def _has_ended(self, query: ContinuousQuery) -> bool:
        """Return whether the query will never be evaluated again, whatever the ending is set to."""
        if query.cursor.done:
            return True
        streams = self.streams_of(query)
        if not self._all_closed(streams):
            return False
        instants = query.cursor.instants
        if instants is None:
            return query.cursor.is_bound and all(stream.first_event_time is None for stream in streams)
        if isinstance(instants, ArrivalInstants):
            return instants.complete and query.cursor.next_index > self._ending_index(query, streams)
        return self.ending.declared and query.cursor.next_index > self._ending_index(query, streams)

    def _all_closed(self, streams: list[StreamBuffer]) -> bool:
        """Return whether nothing follows that could move a query; without streams, whether the end was declared."""
        return False not in [stream.closed for stream in streams] if streams else self.ending.declared

    def _last_index(self, query: ContinuousQuery) -> int | None:
        """Return the last index that may be evaluated now."""
        if query.cursor.done or not query.cursor.is_bound:
            return None
        if query.cursor.is_alone:
            return 0
        streams = self.streams_of(query)
        open_from = self.open_from(query, streams)
        if query.cursor.instants is None:
            first = min((s.first_event_time for s in streams if s.first_event_time is not None), default=None)
            if first is None or first >= open_from:
                return None  # the first instant depends on the first event, and is never corrected
            start(query, first)
        assert query.cursor.instants is not None
        ended = self._all_closed(streams)
        if isinstance(query.cursor.instants, ArrivalInstants):
            query.cursor.instants.discover(streams, open_from, ended)
            query.cursor.instants.let_go(query.cursor.next_index)
        if ended:
            return self._ending_index(query, streams)
        if query.cursor.next_instant >= open_from:
            return None
        return query.cursor.instants.index_at_or_after(open_from) - 1

    def _ending_index(self, query: ContinuousQuery, streams: list[StreamBuffer]) -> int:
        assert query.cursor.instants is not None
        if self.ending.until is not None:
            return query.cursor.instants.index_at_or_after(self.ending.until + 1) - 1
        if isinstance(query.cursor.instants, ArrivalInstants):
            return query.cursor.instants.end - 1
        clock = max((stream.clock for stream in streams if stream.clock is not None), default=None)
        if self.ending.drain:
            last_event_times = {s.name: s.last_event_time for s in streams if s.last_event_time is not None}
            return query.cursor.drained_end(clock, last_event_times)
        return query.cursor.natural_end(clock)

    def note_readers(self, added: Sequence[ContinuousQuery] | None = None) -> None:
        """Tell each stream its widest window, to notice when its time jumps past it, and whether all readers can be
        corrected. Where only queries with windows over known streams were `added`, the others are not looked at.
        """
        queries: Iterable[ContinuousQuery] = added or ()
        is_known = self._readers.keys() == self.around.streams.keys()
        if added is None or not is_known or not all(query.windows for query in added):
            self._readers = {name: StreamReaders() for name in self.around.streams}
            queries = self.queries.values()
        for query in queries:  # one that was restored may read a stream that is gone, and is dropped soon
            for name in set(query.cursor.stream_names()) & self._readers.keys() if query.windows else self._readers:
                self._readers[name].can_be_corrected &= query.can_be_corrected
            for window in query.windows:
                name = query.cursor.stream_name(window) or ""
                if name in self._readers:
                    width = None if window.width is None else add_duration(0, window.width)
                    self._readers[name].widths.add(width)
        for name, readers in self._readers.items():
            known = [width for width in readers.widths if width is not None]
            widest = max(known) if known and len(known) == len(readers.widths) else None
            self.around.streams[name].set_readers(widest, readers.can_be_corrected)

    def emptied_at(self, stream: StreamBuffer) -> int | None:
        """Return the instant from which on every window over the stream is empty, if no event comes.

        None before the stream's first event.
        """
        found = stream.last_event_time
        for query in self.runs:
            if found is None or query.cursor.done or query.cursor.instants is None or not query.can_be_corrected:
                continue
            if stream.name in query.cursor.stream_names():
                streams = self.streams_of(query)
                clock = max((one.clock for one in streams if one.clock is not None), default=None)
                last_event_times = {s.name: s.last_event_time for s in streams if s.last_event_time is not None}
                found = max(found, query.cursor.instants.instant(query.cursor.drained_end(clock, last_event_times)))
        return found

    # --- forgetting ---------------------------------------------------------------------------------------------------

    def let_go(self, late: LatePolicy) -> None:
        """Forget the events and the unions that no query needs any more.

        A stream that no query has read yet keeps everything, so that a query registered after a push finds the events.
        Where corrections may come from any time, nothing is forgotten.
        """
        if not late.corrects or late.horizon is not None:
            # Members of a group need the same events, but each remembers static graphs of its own.
            queries = self.queries.values() if any(one.past_graphs for one in self.queries.values()) else self.runs
            self._forget(corrections.reachable(queries, self.around.streams, late.corrects))
        self._renew_ids()
        if len(self.around.contents) > 0:
            living = [query for query in self.runs if not query.cursor.done and query.cursor.instants is not None]
            self.around.contents.keep_only(key for query in living for key in query.run.content_keys())

    def _renew_ids(self, computed: bool = False) -> None:
        """Drop the ids of values once most are unused; `computed`: queries compute new values at each instant."""
        if self.around.contents.encoded.renew_if_full(self.around.streams.values(), computed):
            for query in self.runs:  # all of them, also those that are rarely or never evaluated again
                query.resume(query.cursor.next_index, query.previous)

    def _forget(self, looking_back_to: dict[ContinuousQuery, int]) -> None:
        """Forget the events before the windows of every query at the first index that it may still evaluate."""
        for name, stream in self.around.streams.items():
            if name in self.once_read:
                needs = END
                for query, index in looking_back_to.items():
                    if name in query.cursor.stream_names() or query.counts_all:
                        needs = min(needs, query.cursor.needs_from(stream, index))
                stream.forget_before(needs)


def start(query: ContinuousQuery, first_event_time: int) -> None:
    """Start a query at its first event.

    It starts at the event's instant or, where instants are aligned to the epoch, at the first aligned instant whose
    windows do not end before the event.
    """
    every = query.registration.every
    if not query.registration.aligned or every is None:
        query.cursor.start(first_event_time)
        return
    query.cursor.start(first_multiple(every, first_event_time))
    assert query.cursor.instants is not None
    index = min((query.cursor.enters(window, first_event_time, 0) for window in query.windows), default=0)
    if index:
        query.cursor.start(query.cursor.instants.instant(index))
