"""The engine: a set of continuous queries over streams, alive in one process.

Streams come in by `push`, `advance` and `close_stream`; answers go out by `poll`. An instant w of a query is
evaluated as soon as no event at or before w can come any more on any stream that the query reads. Queries are
evaluated in the order of their instants, then of their registration.

Invariant: no clock, no file, no thread, no query language. What was pushed, in which order, determines every
answer; how it was cut into pushes does not.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from anabranch.algebra.operators import Registration
from anabranch.engine import checkpoint
from anabranch.engine.answers import Answer
from anabranch.engine.checkpoint import Json
from anabranch.engine.checks import check_registration, unknown_name
from anabranch.engine.query import ContinuousQuery, QueryOptions, QueryWarning, Surroundings
from anabranch.engine.stream import BEGINNING, END, StreamBuffer
from anabranch.errors import EngineError
from anabranch.model.event import Event
from anabranch.model.graph import PropertyGraph
from anabranch.model.temporal import Duration, parse_duration

ONLY_STREAM = "stream"


@dataclass(frozen=True, slots=True)
class Pushed:
    """What became of pushed events: how many were accepted, and those that came too late."""

    accepted: int
    late: tuple[Event, ...] = ()


@dataclass(slots=True)
class _Ending:
    """How far queries go on after their input has ended."""

    until: int | None = None
    drain: bool = False


Recompile = Callable[[QueryOptions], Registration]


@dataclass(slots=True)
class Engine:
    """Streams, static graphs and queries. `lateness` is that of streams that are not declared with their own."""

    lateness: Duration | None = None
    fixed_streams: bool = False  # only declared streams exist; else a stream begins to exist when it is first named
    _around: Surroundings = field(default_factory=Surroundings)
    _queries: dict[str, ContinuousQuery] = field(default_factory=dict)
    _registered: int = 0
    _advanced_to: int = BEGINNING
    _ending: _Ending = field(default_factory=_Ending)
    _once_read: set[str] = field(default_factory=set)

    # --- streams and graphs -------------------------------------------------------------------------------------------

    @property
    def streams(self) -> tuple[str, ...]:
        return tuple(self._around.streams)

    @property
    def static_graphs(self) -> tuple[str, ...]:
        return tuple(self._around.static_graphs)

    def stream(self, name: str) -> StreamBuffer:
        """A stream's buffer, to look at."""
        found = self._around.streams.get(name)
        if found is None:
            raise unknown_name("stream", name, self._around.streams)
        return found

    def declare_stream(self, name: str, lateness: Duration | None = None) -> None:
        if name in self._around.streams:
            raise EngineError(f"stream `{name}` exists already")
        stream = StreamBuffer(name, self.lateness if lateness is None else lateness)
        if self._advanced_to > BEGINNING:
            stream.advance(self._advanced_to)
        self._around.streams[name] = stream
        for query in self._queries.values():
            if not query.is_bound:
                query.bound_stream = name
                self._once_read.add(name)

    def add_static_graph(self, name: str, graph: PropertyGraph) -> None:
        """Name a graph that does not move, or put another in its place: seen from the next evaluation on."""
        version, _ = self._around.static_graphs.get(name, (0, graph))
        self._around.static_graphs[name] = (version + 1, graph)

    # --- queries ------------------------------------------------------------------------------------------------------

    @property
    def queries(self) -> tuple[str, ...]:
        return tuple(self._queries)

    def query(self, name: str) -> ContinuousQuery:
        found = self._queries.get(name)
        if found is None:
            raise unknown_name("query", name, self._queries)
        return found

    def register(self, registration: Registration, options: QueryOptions | None = None) -> ContinuousQuery:
        """Add a query; on running streams it starts from what the buffers hold. Refusals are QueryErrors."""
        options = options or QueryOptions()
        check_registration(registration, options, self, self.fixed_streams)
        query = ContinuousQuery(registration, options, self._registered)
        self._bind(query)
        self._fix_start(query)
        self._registered += 1
        self._queries[registration.name] = query
        self._once_read.update(query.stream_names())
        self._run()
        return query

    def unregister(self, name: str) -> None:
        self.query(name)
        del self._queries[name]
        self._let_go()

    def _bind(self, query: ContinuousQuery) -> None:
        for window in query.windows:
            name = window.stream.name
            if name is not None and name not in self._around.streams:
                self.declare_stream(name)
        if not query.is_bound and self._around.streams:
            query.bound_stream = next(iter(self._around.streams))

    def _fix_start(self, query: ContinuousQuery) -> None:
        """STARTING AT, or the registration instant: given, or the running streams' clock; else the first event's."""
        starting_at = query.registration.starting_at
        if starting_at is None:
            starting_at = query.options.now
        streams = self._streams_of(query)
        if starting_at is None:
            seen = [stream.last_event_time for stream in streams if stream.last_event_time is not None]
            starting_at = max(seen, default=None)
        if starting_at is not None:
            query.start(starting_at, max((stream.complete_from for stream in streams), default=BEGINNING))

    # --- input --------------------------------------------------------------------------------------------------------

    def push(self, stream: str, events: Iterable[Event]) -> Pushed:
        """Take in events of a stream, in their order of arrival, and evaluate the instants that they complete."""
        if stream not in self._around.streams:
            if self.fixed_streams:
                raise unknown_name("stream", stream, self._around.streams)
            self.declare_stream(stream)
        buffer = self._around.streams[stream]
        accepted = 0
        late = []
        for event in events:
            if buffer.push(event):
                accepted += 1
            else:
                late.append(event)
        self._run()
        return Pushed(accepted, tuple(late))

    def advance(self, instant: int) -> None:
        """Say that no event at or before the instant will come any more, on any stream."""
        self._advanced_to = max(self._advanced_to, instant)
        for stream in self._around.streams.values():
            stream.advance(instant)
        self._run()

    def close_stream(self, name: str) -> None:
        self.stream(name).close()
        self._run()

    def finish(self, until: int | None = None, drain: bool = False) -> None:
        """The input has ended: evaluate up to the first instant that has seen every event of a query's streams.

        With `until`, evaluate exactly the instants up to then; with `drain`, go on until the windows are empty.
        """
        self._ending = _Ending(until, drain)
        if not self._around.streams:
            self.declare_stream(ONLY_STREAM)
        for stream in self._around.streams.values():
            stream.close()
        self._run()

    # --- output -------------------------------------------------------------------------------------------------------

    def poll(self, name: str) -> list[Answer]:
        """The answers since the last poll. A query that failed gives what it answered before, then raises its error."""
        query = self.query(name)
        answers = list(query.pending)
        query.pending.clear()
        if not answers and query.failure is not None:
            raise query.failure
        return answers

    def warnings(self, name: str) -> list[QueryWarning]:
        query = self.query(name)
        found = list(query.warnings)
        query.warnings.clear()
        return found

    # --- evaluation ---------------------------------------------------------------------------------------------------

    def _streams_of(self, query: ContinuousQuery) -> list[StreamBuffer]:
        """The streams whose progress moves the query: those it reads, or all when it reads none."""
        names = query.stream_names() if query.windows else self.streams
        return [self._around.streams[name] for name in names]

    def _run(self) -> None:
        """Evaluate what can be evaluated, over all queries in the order of time."""
        waiting: list[tuple[int, int, int, ContinuousQuery]] = []
        for query in self._queries.values():
            last = self._last_index(query)
            if last is not None and query.next_index <= last:
                heapq.heappush(waiting, (query.next_instant, query.order, last, query))
        while waiting:
            _, order, last, query = heapq.heappop(waiting)
            query.step(self._around, last)
            if not query.done and query.next_index <= last:
                heapq.heappush(waiting, (query.next_instant, order, last, query))
        self._let_go()

    def _last_index(self, query: ContinuousQuery) -> int | None:
        """The last index that may be evaluated now."""
        if query.done or not query.is_bound:
            return None
        streams = self._streams_of(query)
        open_from = min((stream.open_from for stream in streams), default=self._advanced_to + 1)
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
        if self._ending.until is not None:
            return query.instants.index_at_or_after(self._ending.until + 1) - 1
        last_event_times = {s.name: s.last_event_time for s in streams if s.last_event_time is not None}
        if self._ending.drain:
            return query.drained_end(last_event_times)
        return query.natural_end(max(last_event_times.values(), default=None))

    def _let_go(self) -> None:
        """Forget the events and the unions that no query needs any more.

        A stream that no query has read yet keeps everything: whoever registers after pushing finds the events.
        """
        for name, stream in self._around.streams.items():
            if name in self._once_read:
                readers = (query for query in self._queries.values() if name in query.stream_names())
                stream.forget_before(min((query.needs_from(name) for query in readers), default=END))
        living = [query for query in self._queries.values() if not query.done and query.instants is not None]
        if len(self._around.contents) > 0:
            self._around.contents.keep_only(key for query in living for key in query.content_keys())

    # --- checkpoint ---------------------------------------------------------------------------------------------------

    def checkpoint(self) -> bytes:
        """Everything that the next answers depend on. Queries need their text to come back."""
        return checkpoint.pack(self.state())

    def state(self) -> Json:
        return {
            "lateness": None if self.lateness is None else str(self.lateness),
            "fixed_streams": self.fixed_streams,
            "advanced_to": self._advanced_to,
            "ending": [self._ending.until, self._ending.drain],
            "once_read": sorted(self._once_read),
            "streams": [checkpoint.pack_stream(stream.state()) for stream in self._around.streams.values()],
            "graphs": {n: checkpoint.pack_graph(graph) for n, (_, graph) in self._around.static_graphs.items()},
            "registered": self._registered,
            "queries": [query.state() for query in self._queries.values()],
        }

    @classmethod
    def restore(cls, data: bytes, recompile: Recompile) -> Engine:
        """The engine of a checkpoint; `recompile` finds the registration of a query's text again."""
        return cls.from_state(checkpoint.unpack(data), recompile)

    @classmethod
    def from_state(cls, state: Json, recompile: Recompile) -> Engine:
        lateness = state["lateness"]
        engine = cls(None if lateness is None else parse_duration(lateness), state["fixed_streams"])
        engine._advanced_to = state["advanced_to"]
        engine._ending = _Ending(*state["ending"])
        engine._once_read = set(state["once_read"])
        engine._registered = state["registered"]
        for packed in state["streams"]:
            stream = StreamBuffer.from_state(checkpoint.unpack_stream(packed))
            engine._around.streams[stream.name] = stream
        for name, packed in state["graphs"].items():
            engine.add_static_graph(name, checkpoint.unpack_graph(packed))
        for packed in state["queries"]:
            query = ContinuousQuery.from_state(packed, recompile)
            engine._queries[query.name] = query
        return engine
