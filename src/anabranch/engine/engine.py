"""The engine: a set of continuous queries over streams, in one process.

Streams come in by `push`, `advance` and `close_stream`; answers go out by `poll` of one query, or by `take` of all of
them in one order. `schedule` decides when an instant is evaluated, `corrections` how late events change answers.

Invariant: no clock, no file, no thread, no query language. The events and the order in which they were pushed determine
every answer. The way they are cut into pushes determines only which answers were emitted before a correction.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from anabranch.algebra.operators import DEFAULT_GRAPH, Registration
from anabranch.engine import checkpoint, corrections, reconcile
from anabranch.engine.answers import Answer
from anabranch.engine.chains import ChainLink
from anabranch.engine.checkpoint import Json, Recompile
from anabranch.engine.checks import unknown_name
from anabranch.engine.evaluation_options import EvaluationOptions
from anabranch.engine.intake import Intake, PushResult
from anabranch.engine.outbox import QueryWarning
from anabranch.engine.plans import ALL_RULES
from anabranch.engine.progress import BEGINNING, ONLY_SPLIT, LatePolicy
from anabranch.engine.query import ContinuousQuery
from anabranch.engine.query_options import CompiledQuery, QueryOptions
from anabranch.engine.reconcile import QueryChanges
from anabranch.engine.schedule import Ending, Schedule, start
from anabranch.engine.stream import Origin, StreamBuffer
from anabranch.engine.surroundings import SharedState, StaticGraph
from anabranch.engine.timing import AheadBound, IdlePolicy
from anabranch.errors import EngineError, QueryError
from anabranch.model.event import Event
from anabranch.model.graph import PropertyGraph
from anabranch.model.graph_block import EventBlock, PropertyKeys, times_of
from anabranch.model.mapping import Mapping
from anabranch.model.temporal import Duration
from anabranch.model.triples import TripleGraph
from anabranch.model.windows import first_multiple
from anabranch.planner.flow.flow import ClockReader
from anabranch.snapshot.plugin import Plugin

__all__ = ["Engine", "LatePolicy", "PushResult", "QueryChanges"]

ONLY_STREAM = "stream"


@dataclass(slots=True)
class Engine:
    """Streams, static graphs and queries. `lateness` is the default for streams that are declared without their own.

    `mapping` says how events and graphs of one model are read by queries of the other; `plugin` may answer plain SPARQL
    over static graphs; `rules` are the names of the rewrites that plans undergo; `evaluation` says how queries are run.
    `clock` is optional: it times operators and changes nothing else.
    """

    lateness: Duration | None = None
    fixed_streams: bool = False  # only declared streams exist; else a stream begins to exist when it is first named
    late: LatePolicy = field(default_factory=LatePolicy)
    mapping: Mapping = field(default_factory=Mapping)
    plugin: Plugin | None = None
    rules: tuple[str, ...] = ALL_RULES
    evaluation: EvaluationOptions = field(default_factory=EvaluationOptions)
    clock: ClockReader | None = None
    _schedule: Schedule = field(default_factory=Schedule)
    _registered: int = 0

    def __post_init__(self) -> None:
        self._around.mapping = self.mapping
        self._around.plugin = self.plugin
        self._around.rules = self.rules
        self._around.evaluation = self.evaluation
        self._around.clock = self.clock

    @property
    def _around(self) -> SharedState:
        return self._schedule.around

    @property
    def _queries(self) -> dict[str, ContinuousQuery]:
        return self._schedule.queries

    def _run(self) -> None:
        self._schedule.run(self.late)

    def _changed(self, added: Sequence[ContinuousQuery] | None = None) -> None:
        """Note that the set of queries has changed, perhaps only by some that were `added`, and evaluate."""
        self._schedule.note_readers(added)
        self._schedule.run(self.late, added)

    def ask_before_each(self, ask: Callable[[], None] | None) -> None:
        """Set a function that is called before each evaluation, and now and then during one.

        If it raises Cancelled, the engine may be in the middle of a change and must be discarded.
        """
        self._around.check = ask

    # --- streams and graphs -------------------------------------------------------------------------------------------

    @property
    def streams(self) -> tuple[str, ...]:
        return tuple(self._around.streams)

    @property
    def static_graphs(self) -> tuple[str, ...]:
        return tuple(self._around.static_graphs)

    def stream(self, name: str) -> StreamBuffer:
        """Return a stream's buffer, for reading."""
        found = self._around.streams.get(name)
        if found is None:
            raise unknown_name("stream", name, self._around.streams)
        return found

    def declare_stream(
        self,
        name: str,
        lateness: Duration | None = None,
        idle: IdlePolicy | None = None,
        ahead: AheadBound | None = None,
    ) -> None:
        """Declare a stream whose events will be pushed.

        `idle` says what its silence does, `ahead` how far ahead of the others an event may be.
        """
        if name in self._around.streams:
            raise EngineError(f"stream `{name}` exists already")
        self._new_stream(name, "source", self.lateness if lateness is None else lateness, idle, ahead)

    def _new_stream(
        self,
        name: str,
        origin: Origin,
        lateness: Duration | None,
        idle: IdlePolicy | None = None,
        ahead: AheadBound | None = None,
    ) -> StreamBuffer:
        stream = StreamBuffer(name, lateness, self.late, idle, ahead)
        stream.origin = origin
        stream.size_of = self._around.size_of
        if self._schedule.advanced_to > BEGINNING:
            stream.advance(self._schedule.advanced_to)
        self._around.streams[name] = stream
        if origin != "query":
            for query in self._queries.values():
                if not query.cursor.is_bound:
                    query.cursor.bound_stream = name
                    self._schedule.once_read.add(name)
        return stream

    def _refuse_second_stream(self, name: str) -> None:
        """Refuse a second stream while a query without a stream name reads the only one.

        The order in which streams are declared must not decide which one such a query reads.
        """
        for query in self._queries.values():
            bound = query.cursor.bound_stream
            if bound is not None and any(window.stream.name is None for window in query.windows):
                raise EngineError(
                    f"query `{query.name}` names no stream and reads `{bound}`, the only one there was; "
                    f"with `{name}` there are two: write ON STREAM after its WITHIN, or declare the streams first"
                )

    def _named_stream(self, name: str) -> StreamBuffer:
        """Return the stream that a caller names; where streams are not fixed, it is created."""
        stream = self._around.streams.get(name)
        if stream is None:
            if not self.fixed_streams:
                self._refuse_second_stream(name)
                self.declare_stream(name)
            stream = self.stream(name)
        if stream.origin == "query":
            maker = next(query.name for query in self._queries.values() if query.registration.into == name)
            raise EngineError(f"stream `{name}` is made by query `{maker}`: nobody else can move it")
        stream.origin = "source"
        return stream

    def add_static_graph(self, name: str, graph: PropertyGraph | TripleGraph) -> None:
        """Set a static graph, or replace it; the next evaluation sees it."""
        known = self._around.static_graphs.get(name)
        if known is not None or name == DEFAULT_GRAPH:
            for query in self._queries.values():
                looks_back = self.late.corrects or corrections.may_be_early(query, self._around.streams)
                if name in query.static_names and looks_back:
                    query.remember_graphs(self._around.static_graphs)
        version = 0 if known is None else known.version
        self._around.static_graphs[name] = StaticGraph(version + 1, graph, self.mapping)

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
        return self.register_all([CompiledQuery(registration, options or QueryOptions())])[0]

    def check(self, queries: Sequence[CompiledQuery]) -> None:
        """Refuse, by a QueryError, queries that could not be added together to those that are there."""
        reconcile.check_additions(self._links(), queries, self, self.fixed_streams)

    def register_all(self, queries: Sequence[CompiledQuery]) -> list[ContinuousQuery]:
        """Add queries that may read each other's streams, in whatever order; when one is refused, none is added."""
        self.check(queries)
        added = [self._add(registration, options) for registration, options in queries]
        self._changed(added)
        return added

    def unregister(self, name: str) -> None:
        self._schedule.groups.leave(self.query(name))
        del self._queries[name]
        self._drop_orphans()
        self._schedule.note_readers()
        self._schedule.let_go(self.late)

    def reconcile(self, queries: Sequence[CompiledQuery]) -> QueryChanges:
        """Make the registered queries those of the list, in its order.

        A query that is registered with the same name, meaning, policies and parameters stays where it is; others are
        dropped; new and changed ones start from the events that the buffers hold. When one is refused, nothing changes.
        """
        change = reconcile.compare(self._queries, queries, self, self.fixed_streams)
        kept = {name: self._queries[name] for name in change.kept}
        for name in change.dropped:
            self._schedule.groups.leave(self._queries[name])
        self._queries.clear()
        self._registered = 0
        for registration, options in queries:
            query = kept.get(registration.name)
            if query is None:
                self._add(registration, options)
            else:
                query.order = self._registered
                self._registered += 1
                self._queries[query.name] = query
        for group in self._schedule.groups.by_key.values():
            group.note_first()
        self._drop_orphans()
        self._changed()
        return change

    def _links(self) -> tuple[ChainLink, ...]:
        return tuple(ChainLink.of(query) for query in self._queries.values())

    def _add(self, registration: Registration, options: QueryOptions) -> ContinuousQuery:
        query = ContinuousQuery(registration, options, self._registered)
        self._bind(query)
        self._fix_start(query)
        self._registered += 1
        self._queries[registration.name] = query
        self._schedule.once_read.update(query.cursor.stream_names())
        return query

    def _bind(self, query: ContinuousQuery) -> None:
        for window in query.windows:
            name = window.stream.name
            if name is not None and name not in self._around.streams:
                self._new_stream(name, "named", self.lateness)
        sources = self._schedule.sources
        if not query.cursor.is_bound and sources:
            query.cursor.bound_stream = sources[0].name
        into = query.registration.into
        if into is not None:
            stream = self._around.streams.get(into) or self._new_stream(into, "query", None)
            stream.origin = "query"
            self._schedule.once_read.add(into)  # events are not kept for a reader that may be registered later

    def _drop_orphans(self) -> None:
        """Drop derived streams that have neither a maker nor a reader; those with a reader become streams that accept
        events.
        """
        made = {query.registration.into for query in self._queries.values()}
        read = {name for query in self._queries.values() for name in query.cursor.stream_names()}
        for stream in list(self._around.streams.values()):
            if stream.origin == "query" and stream.name not in made:
                stream.origin, stream.ended = "named", False
                if stream.name not in read:
                    del self._around.streams[stream.name]
                    self._schedule.once_read.discard(stream.name)
                    self._around.contents.drop_stream(stream.name)

    def _fix_start(self, query: ContinuousQuery) -> None:
        """Fix the first instant of a query.

        It is STARTING AT, or the registration instant: the given one, or the running streams' clock; else the first
        event's. Aligned instants begin with the first one after the events that the running streams have brought.
        """
        registration, now = query.registration, query.options.now
        streams = self._schedule.streams_of(query)
        complete_from = max((stream.complete_from for stream in streams), default=BEGINNING)
        if registration.starting_at is not None:
            query.cursor.start(registration.starting_at, complete_from)
            return
        aligned = registration.aligned and registration.every is not None
        if now is not None and aligned:
            start(query, now)
            assert query.cursor.instants is not None
            query.cursor.start(query.cursor.instants.starting_at, complete_from)
        elif now is not None:
            query.cursor.start(now, complete_from)
        else:
            seen = max((one.last_event_time for one in streams if one.last_event_time is not None), default=None)
            if seen is not None:
                every = registration.every
                query.cursor.start(first_multiple(every, seen + 1) if aligned and every else seen, complete_from)

    # --- input --------------------------------------------------------------------------------------------------------

    def push(self, stream: str, events: Iterable[Event], split: str = ONLY_SPLIT) -> PushResult:
        """Take in events of a split of a stream, in their order of arrival, and evaluate the instants that they
        complete.

        Late events are handed back or, under the policy `correct`, corrected all together. A block has the same effect
        as its events, and costs less.
        """
        buffer = self._named_stream(stream)
        if not isinstance(events, list | EventBlock):
            events = list(events)
        if not isinstance(events, list) and buffer.push_block(events, split):
            self._run()
            return PushResult(len(events))
        intake = Intake(buffer, split)
        if isinstance(events, list) or not intake.take_runs(events):
            for place, event in enumerate(events):
                intake.judge(event, place)
        return self._taken_in(intake)

    def asked_keys(self, stream: str) -> PropertyKeys:
        """Return the properties that queries have asked for of a stream: a block that has them ready costs less."""
        return self._around.contents.encoded.keys_of(stream)

    def settle_doubts(self, stream: str, is_over: bool = False) -> dict[str, PushResult]:
        """Decide about events whose clock is in doubt when no event follows on a stream, for the time being or at all.

        Returns the results by split.
        """
        buffer = self._named_stream(stream)
        found = {}
        for split, judgement in buffer.settle_doubts(is_over).items():
            intake = Intake(buffer, split)
            intake.follow(judgement)
            found[split] = self._taken_in(intake)
        return found

    def _taken_in(self, intake: Intake) -> PushResult:
        if intake.corrects:
            self._schedule.groups.dissolve_readers(intake.buffer.name)
            queries = self._queries.values()
            corrections.correct(queries, self._around, intake.buffer, intake.split, intake.corrects)
        self._run()
        return intake.pushed()

    def set_splits(self, stream: str, names: Iterable[str], silent: Iterable[str] = ()) -> None:
        """Set the splits of a stream.

        A split without events holds the stream back until it has one, is advanced or is removed; events of a removed
        split stay. Answers do not wait for silent splits.
        """
        self._named_stream(stream).set_splits(names, silent)
        self._run()

    def advance(self, instant: int, stream: str | None = None) -> None:
        """Declare that no event at or before the instant will come any more, on one stream or on all."""
        if stream is not None:
            self._named_stream(stream).advance(instant)
        else:
            self._schedule.advanced_to = max(self._schedule.advanced_to, instant)
            for buffer in self._schedule.sources:
                buffer.advance(instant)
        self._run()

    def pass_silence(self, stream: str, fellows: int | None = None, clock: int | None = None) -> None:
        """Let queries go on though no event comes on a stream for the time being.

        Queries that also read other streams go on before `fellows`, an instant that these have reached. Queries that
        read only this stream go on up to `clock`, but no further than to where their windows are empty. Events that
        come in order afterwards are not late: they correct answers. Under the policy `advance` they are late; under
        `wait` nothing happens.
        """
        buffer = self._named_stream(stream)
        if buffer.idle.policy == "wait" or buffer.closed:
            return
        bound = self._schedule.emptied_at(buffer)
        reached = BEGINNING if fellows is None else fellows
        alone = BEGINNING if clock is None or bound is None else min(clock, bound) + 1
        if buffer.idle.corrects:
            buffer.pass_silence(reached, alone)
        elif max(reached, alone) > BEGINNING:
            buffer.advance(max(reached, alone) - 1)
        self._run()

    def set_clock(self, stream: str, instant: int) -> set[str]:
        """Set a stream's time: the events that follow are not before the instant. Returns the streams that begin again.

        Moving time forward is an `advance`. Moving it back, for example after an event with a wrong clock, makes the
        stream begin again without events, together with the queries that read it and the streams that these make.
        """
        buffer = self._named_stream(stream)
        if buffer.closed:
            raise EngineError(f"stream `{stream}` is closed: its input has ended")
        if instant >= buffer.answers_until:
            self.advance(instant - 1, stream)
            return set()
        again, readers = {stream}, {}
        waiting = [stream]
        while waiting:
            name = waiting.pop()
            self._around.streams[name].begin_again(instant)
            self._around.contents.drop_stream(name)
            for query in self._queries.values():
                into = query.registration.into
                if name in query.cursor.stream_names():
                    readers[query.name] = query
                    if into is not None and into not in again:
                        again.add(into)
                        waiting.append(into)
        for name, query in readers.items():
            self._schedule.groups.leave(query)
            self._queries[name] = query.begun_again()
            self._fix_start(self._queries[name])
        self._changed()
        return again

    def close_stream(self, name: str) -> None:
        self.stream(name)
        self.settle_doubts(name, is_over=True)
        self._named_stream(name).close()
        self._run()

    def plan_end(self, until: int | None = None, drain: bool = False) -> None:
        """Set in advance how far queries go when their input ends, with the arguments of `finish`.

        It is needed where streams are closed one after the other: closing the first may already end some queries.
        """
        self._schedule.ending = Ending(until, drain)

    def finish(self, until: int | None = None, drain: bool = False, now: int = 0) -> None:
        """End the input: evaluate up to the first instant that has seen every event of a query's streams.

        With `until`, evaluate exactly the instants up to then; with `drain`, go on until the windows are empty. A query
        that reads no stream, and that no event has given an instant, is evaluated once, at `now`.
        """
        self._schedule.ending = Ending(until, drain, declared=True)
        if not self._schedule.sources and not all(query.cursor.is_bound for query in self._queries.values()):
            self.declare_stream(ONLY_STREAM)
        for stream in self._schedule.sources:
            self.settle_doubts(stream.name, is_over=True)
            stream.close()
        if all(stream.first_event_time is None for stream in self._schedule.sources):
            for query in self._queries.values():
                if not query.windows and query.cursor.instants is None:
                    query.cursor.start_alone(now)
        self._run()

    def answer_alone(self, now: int) -> None:
        """Evaluate now the queries that read no stream, answer once and name no instant.

        They do not wait for the live streams of the engine, which may stay silent. Their instant is the one that events
        have given them, else `now`.
        """
        waiting = [query for query in self._queries.values() if query.waits_for_no_stream]
        if waiting:
            seen = (stream.first_event_time for stream in self._schedule.sources)
            first = min((at for at in seen if at is not None), default=now)
            for query in waiting:
                query.cursor.start_alone(first if query.cursor.instants is None else query.cursor.instants.starting_at)
            self._run()

    # --- output -------------------------------------------------------------------------------------------------------

    @property
    def frontier(self) -> int:
        """The instant before which every living query has been evaluated; END when no query goes on.

        Answers for earlier instants can still come from corrections, and from a query that is registered after its
        start.
        """
        return self._schedule.frontier

    def take(self, before: int | None = None) -> list[Answer]:
        """Take the pending answers of all queries before an instant, in the order of instants, then of registration.

        Corrections stand behind the answers of their instant. Answers that are taken are no longer pending.
        """
        taken: list[tuple[int, bool, int, Answer]] = []
        for query in self._queries.values():
            kept: deque[Answer] = deque()
            for answer in query.outbox.pending:
                if before is None or answer.at < before:
                    taken.append((answer.at, answer.correction != "", query.order, answer))
                else:
                    kept.append(answer)
            query.outbox.pending = kept
        taken.sort(key=lambda item: item[:3])
        return [answer for *_, answer in taken]

    def failures(self) -> list[tuple[str, QueryError]]:
        """Return the queries that have failed since the last call and their errors, in the order of registration."""
        found = []
        for query in self._queries.values():
            if query.outbox.failure is not None and not query.outbox.failure_told:
                query.outbox.failure_told = True
                found.append((query.name, query.outbox.failure))
        return found

    @property
    def finished(self) -> bool:
        """Whether there are queries and none of them will answer any more.

        A query is finished when RETURN has answered and cannot be corrected, or when the query failed.
        """
        return bool(self._queries) and all(
            query.outbox.failure is not None or (query.cursor.done and not self._may_correct(query))
            for query in self._queries.values()
        )

    def _may_correct(self, query: ContinuousQuery) -> bool:
        return self.late.corrects or corrections.is_early(query, self._around.streams)

    def poll(self, name: str) -> list[Answer]:
        """Take the answers since the last poll. For a failed query, return its earlier answers first, then raise its
        error.
        """
        query = self.query(name)
        answers = list(query.outbox.pending)
        query.outbox.pending.clear()
        if not answers and query.outbox.failure is not None:
            raise query.outbox.failure
        return answers

    def warnings(self, name: str) -> list[QueryWarning]:
        query = self.query(name)
        found = list(query.outbox.warnings)
        query.outbox.warnings.clear()
        return found

    # --- checkpoint ---------------------------------------------------------------------------------------------------

    def checkpoint(self) -> bytes:
        """Return, as bytes, everything that the next answers depend on.

        Only queries with their text can be restored.
        """
        return checkpoint.pack(self.state())

    def state(self, events: bool = True) -> Json:
        """Return the content of a checkpoint as JSON.

        Without events, the caller keeps them and the static graphs, and puts them back by `refill` and
        `add_static_graph`. Events of derived streams are always included.
        """
        schedule = self._schedule
        return {
            "lateness": checkpoint.pack_duration(self.lateness),
            "fixed_streams": self.fixed_streams,
            "late": checkpoint.pack_late(self.late),
            "advanced_to": schedule.advanced_to,
            "mapping": [self.mapping.vocabulary, self.mapping.resources],
            "ending": [schedule.ending.until, schedule.ending.drain, schedule.ending.declared],
            "once_read": sorted(schedule.once_read),
            "streams": [
                checkpoint.pack_stream(stream.state(events or stream.origin == "query"))
                for stream in self._around.streams.values()
            ],
            "graphs": checkpoint.pack_graphs(self._around.static_graphs if events else {}),
            "registered": self._registered,
            "queries": [checkpoint.pack_query(query) for query in self._queries.values()],
        }

    @classmethod
    def restore(cls, data: bytes, recompile: Recompile) -> Engine:
        """Return the engine of a checkpoint; `recompile` compiles a query's text again."""
        return cls.from_state(checkpoint.unpack(data), recompile)

    @classmethod
    def from_state(
        cls,
        state: Json,
        recompile: Recompile,
        plugin: Plugin | None = None,
        rules: tuple[str, ...] = ALL_RULES,
        evaluation: EvaluationOptions | None = None,
    ) -> Engine:
        engine = cls(plugin=plugin, rules=rules, evaluation=evaluation or EvaluationOptions())
        engine.load(state, recompile)
        return engine

    def load(self, state: Json, recompile: Recompile) -> None:
        """Move the engine to a state.

        Streams without events in the state keep the events of their buffers; a query that is the same keeps its plan.
        An engine that has gone further than the state is refused.
        """
        schedule = self._schedule
        schedule.groups.clear()
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
        self.mapping = self._around.mapping = Mapping(*state["mapping"])
        schedule.advanced_to = state["advanced_to"]
        schedule.ending = Ending(*state["ending"])
        schedule.once_read = set(state["once_read"])
        self._around.streams.clear()
        for packed in packed_streams:
            stream = known.pop(packed.name, None)
            if stream is None:
                stream = StreamBuffer(packed.name)
            stream.size_of = self._around.size_of
            stream.load(packed, self.late)
            self._around.streams[packed.name] = stream
        self._around.streams.update(known)
        for name, graph in state["graphs"].items():
            version = self._around.static_graphs[name].version if name in self._around.static_graphs else 0
            self._around.static_graphs[name] = StaticGraph(version + 1, checkpoint.unpack_graph(graph), self.mapping)
        self._registered = state["registered"]
        queries = [
            checkpoint.unpack_query(one, recompile, self.mapping, self._queries.get(one["name"]))
            for one in state["queries"]
        ]
        self._queries.clear()
        self._queries.update({query.name: query for query in queries})
        self._schedule.note_readers()

    def refill(self, stream: str, split: str, first_sequence: int, events: Sequence[Event]) -> None:
        """Put back events that were accepted before, in the order of their pushes, without checks and without
        evaluation.

        The engine is at a state, or is about to catch up with a newer state by `load`.
        """
        buffer = self._named_stream(stream)
        if (times_of(events) < buffer.answers_until).any():
            self._around.contents.drop_stream(stream)
        buffer.refill(split, first_sequence, events)
