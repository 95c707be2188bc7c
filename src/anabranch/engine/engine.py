"""The engine: a set of continuous queries over streams, alive in one process.

Streams come in by `push`, `advance` and `close_stream`; answers go out by `poll` of one query, or by `take` of all of
them in one order. When an instant is evaluated, `schedule` says; how late events change what was told, `corrections`.

Invariant: no clock, no file, no thread, no query language. What was pushed, in which order, determines every
answer; how it was cut into pushes does not, but for which answers had been told before a correction.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from anabranch.algebra.operators import Registration
from anabranch.engine import checkpoint, corrections, reconcile
from anabranch.engine.answers import Answer
from anabranch.engine.checkpoint import Json, Recompile
from anabranch.engine.checks import check_registration, unknown_name
from anabranch.engine.progress import BEGINNING, ONLY_SPLIT, LatePolicy
from anabranch.engine.query import ContinuousQuery, QueryOptions, QueryWarning, Surroundings
from anabranch.engine.reconcile import Reconciled, Wanted
from anabranch.engine.schedule import Ending, Schedule
from anabranch.engine.stream import StreamBuffer
from anabranch.errors import EngineError, QueryError
from anabranch.model.event import Event
from anabranch.model.graph import PropertyGraph
from anabranch.model.temporal import Duration

__all__ = ["Engine", "LatePolicy", "Pushed", "Reconciled"]

ONLY_STREAM = "stream"


@dataclass(frozen=True, slots=True)
class Pushed:
    """What became of pushed events: how many were accepted, those that came too late, and how many of the accepted
    were late and have been taken in as corrections."""

    accepted: int
    late: tuple[Event, ...] = ()
    corrected: int = 0


@dataclass(slots=True)
class Engine:
    """Streams, static graphs and queries. `lateness` is that of streams that are not declared with their own."""

    lateness: Duration | None = None
    fixed_streams: bool = False  # only declared streams exist; else a stream begins to exist when it is first named
    late: LatePolicy = field(default_factory=LatePolicy)
    _schedule: Schedule = field(default_factory=Schedule)
    _registered: int = 0

    @property
    def _around(self) -> Surroundings:
        return self._schedule.around

    @property
    def _queries(self) -> dict[str, ContinuousQuery]:
        return self._schedule.queries

    def _run(self) -> None:
        self._schedule.run(self.late)

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
        stream = StreamBuffer(name, self.lateness if lateness is None else lateness, self.late)
        if self._schedule.advanced_to > BEGINNING:
            stream.advance(self._schedule.advanced_to)
        self._around.streams[name] = stream
        for query in self._queries.values():
            if not query.is_bound:
                query.bound_stream = name
                self._schedule.once_read.add(name)

    def _named_stream(self, name: str) -> StreamBuffer:
        """A stream that somebody names: where streams are not fixed, it exists from now on."""
        if name not in self._around.streams and not self.fixed_streams:
            self.declare_stream(name)
        return self.stream(name)

    def add_static_graph(self, name: str, graph: PropertyGraph) -> None:
        """Name a graph that does not move, or put another in its place: seen from the next evaluation on."""
        version, _ = self._around.static_graphs.get(name, (0, graph))
        if version and self.late.corrects:
            for query in self._queries.values():
                if name in query.static_names:
                    query.remember_graphs(self._around.static_graphs)
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
        query = self._add(registration, options)
        self._run()
        return query

    def unregister(self, name: str) -> None:
        self.query(name)
        del self._queries[name]
        self._schedule.let_go(self.late)

    def reconcile(self, registrations: Wanted) -> Reconciled:
        """Make the registered queries those of the list, in its order. One that is there with the same name, meaning,
        policies and parameters stays where it is; others are dropped; new and changed ones start from what the
        buffers hold. When one is refused, nothing changes."""
        change = reconcile.compare(self._queries, registrations, self, self.fixed_streams)
        kept = {name: self._queries[name] for name in change.kept}
        self._queries.clear()
        self._registered = 0
        for registration, options in registrations:
            query = kept.get(registration.name)
            if query is None:
                self._add(registration, options)
            else:
                query.order = self._registered
                self._registered += 1
                self._queries[query.name] = query
        self._run()
        return change

    def _add(self, registration: Registration, options: QueryOptions) -> ContinuousQuery:
        query = ContinuousQuery(registration, options, self._registered)
        self._bind(query)
        self._fix_start(query)
        self._registered += 1
        self._queries[registration.name] = query
        self._schedule.once_read.update(query.stream_names())
        return query

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
        streams = self._schedule.streams_of(query)
        if starting_at is None:
            seen = [stream.last_event_time for stream in streams if stream.last_event_time is not None]
            starting_at = max(seen, default=None)
        if starting_at is not None:
            query.start(starting_at, max((stream.complete_from for stream in streams), default=BEGINNING))

    # --- input --------------------------------------------------------------------------------------------------------

    def push(self, stream: str, events: Iterable[Event], split: str = ONLY_SPLIT) -> Pushed:
        """Take in events of a split of a stream, in their order of arrival, and evaluate the instants that they
        complete. Late events are handed back or, under the policy `correct`, corrected all together."""
        buffer = self._named_stream(stream)
        accepted = 0
        late: list[Event] = []
        corrects: list[Event] = []
        for event in list(events):
            admission, held = buffer.admit(event, split)
            if admission == "late":
                late.append(event)
                continue
            accepted += 1
            if admission == "corrects":
                corrects.append(held)
        if corrects:
            corrections.correct(self._queries.values(), self._around, buffer, split, corrects)
        self._run()
        return Pushed(accepted, tuple(late), len(corrects))

    def set_splits(self, stream: str, names: Iterable[str]) -> None:
        """Say which splits a stream has. One without events holds the stream back until it has one, is advanced or is
        removed; what a removed one has brought stays."""
        self._named_stream(stream).set_splits(names)
        self._run()

    def advance(self, instant: int, stream: str | None = None) -> None:
        """Say that no event at or before the instant will come any more, on any stream or on one."""
        if stream is not None:
            self._named_stream(stream).advance(instant)
        else:
            self._schedule.advanced_to = max(self._schedule.advanced_to, instant)
            for buffer in self._around.streams.values():
                buffer.advance(instant)
        self._run()

    def close_stream(self, name: str) -> None:
        self.stream(name).close()
        self._run()

    def finish(self, until: int | None = None, drain: bool = False) -> None:
        """The input has ended: evaluate up to the first instant that has seen every event of a query's streams.

        With `until`, evaluate exactly the instants up to then; with `drain`, go on until the windows are empty.
        """
        self._schedule.ending = Ending(until, drain)
        if not self._around.streams:
            self.declare_stream(ONLY_STREAM)
        for stream in self._around.streams.values():
            stream.close()
        self._run()

    # --- output -------------------------------------------------------------------------------------------------------

    @property
    def frontier(self) -> int:
        """Every living query has been evaluated at all of its instants before this one; END when none goes on.

        Answers from before it can still come of corrections, and of a query that is registered after its start.
        """
        return self._schedule.frontier

    def take(self, before: int | None = None) -> list[Answer]:
        """The pending answers of all queries, up to an instant, in the order of instants, then of registration.

        Corrections stand behind the answers of their instant. What is taken is no longer pending.
        """
        taken: list[tuple[int, bool, int, Answer]] = []
        for query in self._queries.values():
            kept: deque[Answer] = deque()
            for answer in query.pending:
                if before is None or answer.at < before:
                    taken.append((answer.at, answer.correction != "", query.order, answer))
                else:
                    kept.append(answer)
            query.pending = kept
        taken.sort(key=lambda item: item[:3])
        return [answer for *_, answer in taken]

    def failures(self) -> list[tuple[str, QueryError]]:
        """The queries that have failed since the last call and why, in the order of registration."""
        found = []
        for query in self._queries.values():
            if query.failure is not None and not query.failure_told:
                query.failure_told = True
                found.append((query.name, query.failure))
        return found

    @property
    def finished(self) -> bool:
        """Whether there are queries and none of them will answer any more: RETURN has answered and is not to be
        corrected, or the query failed."""
        return bool(self._queries) and all(
            query.failure is not None or (query.done and not self.late.corrects) for query in self._queries.values()
        )

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

    # --- checkpoint ---------------------------------------------------------------------------------------------------

    def checkpoint(self) -> bytes:
        """Everything that the next answers depend on. Queries need their text to come back."""
        return checkpoint.pack(self.state())

    def state(self, events: bool = True) -> Json:
        """What a checkpoint holds, as JSON. Without events, who asks keeps those and the static graphs himself, and
        puts them back by `refill` and `add_static_graph`."""
        schedule = self._schedule
        return {
            "lateness": checkpoint.pack_duration(self.lateness),
            "fixed_streams": self.fixed_streams,
            "late": checkpoint.pack_late(self.late),
            "advanced_to": schedule.advanced_to,
            "ending": [schedule.ending.until, schedule.ending.drain],
            "once_read": sorted(schedule.once_read),
            "streams": [checkpoint.pack_stream(stream.state(events)) for stream in self._around.streams.values()],
            "graphs": checkpoint.pack_graphs(self._around.static_graphs if events else {}),
            "registered": self._registered,
            "queries": [checkpoint.pack_query(query) for query in self._queries.values()],
        }

    @classmethod
    def restore(cls, data: bytes, recompile: Recompile) -> Engine:
        """The engine of a checkpoint; `recompile` finds the registration of a query's text again."""
        return cls.from_state(checkpoint.unpack(data), recompile)

    @classmethod
    def from_state(cls, state: Json, recompile: Recompile) -> Engine:
        engine = cls()
        engine.load(state, recompile)
        return engine

    def load(self, state: Json, recompile: Recompile) -> None:
        """Stand where a state stands. Streams without events in the state keep those that their buffers hold; a query
        that is the same keeps its plan. An engine that has gone further than the state is refused."""
        schedule = self._schedule
        known = dict(self._around.streams)
        packed_streams = [checkpoint.unpack_stream(packed) for packed in state["streams"]]
        for packed in packed_streams:
            if packed.events is not None:
                self._around.contents.drop_stream(packed.name)
            elif packed.name in known:
                known[packed.name].require_behind(packed)
        self.lateness = checkpoint.unpack_duration(state["lateness"])
        self.fixed_streams = state["fixed_streams"]
        self.late = checkpoint.unpack_late(state["late"])
        schedule.advanced_to = state["advanced_to"]
        schedule.ending = Ending(*state["ending"])
        schedule.once_read = set(state["once_read"])
        self._around.streams.clear()
        for packed in packed_streams:
            stream = known.pop(packed.name, None) or StreamBuffer(packed.name)
            stream.load(packed, self.late)
            self._around.streams[packed.name] = stream
        self._around.streams.update(known)
        for name, graph in state["graphs"].items():
            version, _ = self._around.static_graphs.get(name, (0, None))
            self._around.static_graphs[name] = (version + 1, checkpoint.unpack_graph(graph))
        self._registered = state["registered"]
        queries = [checkpoint.unpack_query(one, recompile, self._queries.get(one["name"])) for one in state["queries"]]
        self._queries.clear()
        self._queries.update({query.name: query for query in queries})

    def refill(self, stream: str, split: str, first_sequence: int, events: Sequence[Event]) -> None:
        """Put events back that were accepted before, in the order of their pushes: no test, no evaluation. They go
        into a state's engine, or into one that is about to catch up with a newer state by `load`."""
        buffer = self._named_stream(stream)
        if any(event.event_time < buffer.open_from for event in events):
            self._around.contents.drop_stream(stream)
        buffer.refill(split, first_sequence, events)
