"""The session: a program's handle to run continuous queries over its streams.

    session = Session.local()
    query = session.register(text)
    session.push("rides", events)
    session.finish()
    for answer in query.poll(): ...

Invariant: a session adds texts, names and conveniences to the engine, and no semantics of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, cast

from anabranch.algebra.operators import Output, Registration
from anabranch.engine import checkpoint
from anabranch.engine.answers import Answer
from anabranch.engine.compiled import compile_queries, recompile
from anabranch.engine.engine import Engine, PushResult
from anabranch.engine.evaluation_options import EvaluationOptions
from anabranch.engine.outbox import QueryWarning
from anabranch.engine.plans import Evaluator, rule_names
from anabranch.engine.progress import ONLY_SPLIT, LatePolicy, LatePolicyName
from anabranch.engine.query_options import CompiledQuery, QueryOptions
from anabranch.engine.timing import AheadBound
from anabranch.errors import Diagnostic, EngineError, EvaluationError, MalformedEventError, QueryError
from anabranch.formats.events import EventLike, GraphLike, any_graph_from, events_from, micros_of, value_from_json
from anabranch.model.block import TripleBlock
from anabranch.model.event import Event
from anabranch.model.graph_block import EventBlock, PropertyKeys
from anabranch.model.instants import parse_instant
from anabranch.model.mapping import Mapping as ModelMapping
from anabranch.model.temporal import Duration, parse_duration
from anabranch.model.triples import TripleGraph
from anabranch.model.union import ConflictPolicy
from anabranch.model.values import Value
from anabranch.model.windows import WindowPolicy
from anabranch.plugins.oxigraph import Oxigraph
from anabranch.syntax import languages
from anabranch.syntax.languages import QueryText

if TYPE_CHECKING:
    import pyarrow

InstantLike = int | str | datetime
DurationLike = Duration | str | timedelta

_MANY = 64  # JSON objects: more are pushed as a block, if they are plain


class Query:
    """A handle on a registered query."""

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine = engine
        self.name = name

    @property
    def text(self) -> str:
        return self._engine.query(self.name).options.text

    @property
    def registration(self) -> Registration:
        return self._engine.query(self.name).registration

    @property
    def columns(self) -> tuple[str, ...]:
        return self.registration.columns

    @property
    def op(self) -> Output:
        return self.registration.output

    @property
    def done(self) -> bool:
        """Whether no answer will come any more: RETURN has answered and cannot be corrected, or the query failed."""
        query = self._engine.query(self.name)
        return query.outbox.failure is not None or (query.cursor.done and not self._engine.late.corrects)

    @property
    def instants(self) -> int:
        """How many evaluation instants have passed."""
        return self._engine.query(self.name).outbox.instants_passed

    @property
    def evaluations(self) -> int:
        """How many evaluation instants had to be computed; at the others nothing could have changed."""
        return self._engine.query(self.name).outbox.evaluations

    @property
    def verified(self) -> int:
        """How many evaluations the plain evaluator has repeated (`Running.verify`)."""
        return self._engine.query(self.name).outbox.verified

    @property
    def differing(self) -> int:
        """How many verified evaluations had a different answer."""
        return self._engine.query(self.name).outbox.differing

    @property
    def skipped(self) -> int:
        """How many rows were skipped because an expression failed on them (`Running.on_error`)."""
        return self._engine.query(self.name).outbox.skipped.count

    @property
    def first_skipped(self) -> QueryError | None:
        """The error of the first row that was skipped."""
        return self._engine.query(self.name).first_skip

    @property
    def last_error(self) -> QueryError | None:
        """The error that ended the query, or that of the last row which was skipped."""
        query = self._engine.query(self.name)
        return query.outbox.failure or query.last_skip

    def poll(self) -> list[Answer]:
        """Take the answers since the last poll. For a failed query, return its earlier answers first, then raise its
        error.
        """
        return self._engine.poll(self.name)

    def to_arrow(self) -> pyarrow.Table:
        """Return the answers that were not polled as an Arrow table. They stay: a program that never polls gets all
        answers.

        Columns are `at`, `win_start`, `win_end` (timestamps in UTC), with late events that correct also `correction`,
        and then the query's own.
        """
        from anabranch.formats.answers import answers_table

        pending = self._engine.query(self.name).outbox.pending
        return answers_table(self.columns, (answer.parts() for answer in pending), self._engine.late.corrects)

    def to_pandas(self) -> Any:
        """Return the same as a pandas DataFrame."""
        return self.to_arrow().to_pandas()

    def to_spark(self, spark: Any) -> Any:
        """Return the same as a DataFrame of a Spark session."""
        return spark.createDataFrame(self.to_arrow())

    def warnings(self) -> list[QueryWarning]:
        """Take the warnings of the strict conflict policy since the last call."""
        return self._engine.warnings(self.name)

    def unregister(self) -> None:
        self._engine.unregister(self.name)

    def __repr__(self) -> str:
        return f"Query({self.name!r})"


class SessionSettings(TypedDict, total=False):
    """The settings of a session.

    `mapping` says how RDF and property graphs are read as each other; `rules` which rewrites plans undergo: all, none,
    or names; `evaluator` whether our own algebra or the plug-in (pyoxigraph) answers SPARQL over the windows' content;
    `evaluation` how queries run: on changes or from scratch, within which limits. With `ahead`, events whose clock is
    too far ahead are set aside.
    """

    mapping: ModelMapping | None
    rules: str | Iterable[str]
    evaluator: Evaluator
    evaluation: EvaluationOptions | None
    ahead: AheadBound | None


class Session:
    """The queries, streams and static graphs of one program. Instants are UTC microseconds, ISO text or datetimes."""

    def __init__(
        self,
        engine: Engine,
        windows: WindowPolicy = "trailing",
        conflicts: ConflictPolicy = "latest",
        evaluator: Evaluator = "own",
    ) -> None:
        self._engine = engine
        self._windows = windows
        self._conflicts = conflicts
        self._evaluator = evaluator

    @classmethod
    def local(
        cls,
        streams: Iterable[str] | Mapping[str, DurationLike | None] | None = None,
        lateness: DurationLike | None = None,
        windows: WindowPolicy = "trailing",
        conflicts: ConflictPolicy = "latest",
        late: LatePolicyName | LatePolicy = "drop",
        **settings: Unpack[SessionSettings],
    ) -> Session:
        """Return a session in this process.

        With `streams` (names, or names with their lateness) only these exist; without, a stream is created when a query
        or a push first names it. `late` says what happens to events that come after their instant: they are handed
        back, or taken in, and the answers that they change are corrected. `settings`: see `SessionSettings`.
        """
        policy = late if isinstance(late, LatePolicy) else LatePolicy(late)
        engine = Engine(
            as_lateness(lateness),
            fixed_streams=streams is not None,
            late=policy,
            mapping=settings.get("mapping") or ModelMapping(),
            plugin=Oxigraph(),
            rules=rule_names(settings.get("rules", "all")),
            evaluation=settings.get("evaluation") or EvaluationOptions(),
        )
        if streams is not None:
            latenesses = streams if isinstance(streams, Mapping) else dict.fromkeys(_names(streams))
            for name, own in latenesses.items():
                engine.declare_stream(name, as_lateness(own), None, settings.get("ahead"))
        return cls(engine, windows, conflicts, settings.get("evaluator", "own"))

    # --- queries ------------------------------------------------------------------------------------------------------

    def register(
        self,
        text: str,
        *,
        parameters: Mapping[str, Value] | None = None,
        windows: WindowPolicy | None = None,
        name: str | None = None,
        now: InstantLike | None = None,
        file_name: str = "<query>",
    ) -> Query:
        """Register the one query of a text. `name` replaces its own; `now` is what STARTING AT NOW means."""
        script = languages.script(text, file_name)
        found = compile_queries([script], self._options(parameters, windows, now))
        if len(found) != 1:
            message = f"expected one REGISTER QUERY and found {len(found)}"
            hint = "register_all() takes texts with several" if found else "begin with REGISTER QUERY"
            raise QueryError([Diagnostic("SER-216", message, hint=hint)], text, file_name)
        registration, options = found[0]
        return self._registered([CompiledQuery(replace(registration, name=name or registration.name), options)])[0]

    def register_all(
        self,
        text: str,
        *,
        parameters: Mapping[str, Value] | None = None,
        windows: WindowPolicy | None = None,
        now: InstantLike | None = None,
        file_name: str = "<query>",
    ) -> list[Query]:
        """Register every query of a text; when one is refused, none is registered."""
        return self.register_texts([QueryText(text, file_name)], parameters=parameters, windows=windows, now=now)

    def register_texts(
        self,
        texts: Iterable[QueryText],
        *,
        parameters: Mapping[str, Value] | None = None,
        windows: WindowPolicy | None = None,
        now: InstantLike | None = None,
    ) -> list[Query]:
        """Register every query of several texts, whatever their languages; when one is refused, none is registered.

        They are registered together: a query may read a stream that a later one makes.
        """
        scripts = [languages.script(*text) for text in texts]
        return self._registered(compile_queries(scripts, self._options(parameters, windows, now)))

    def _registered(self, queries: Sequence[CompiledQuery]) -> list[Query]:
        self._engine.register_all(queries)
        return [Query(self._engine, one.registration.name) for one in queries]

    def _options(
        self, parameters: Mapping[str, Value] | None, windows: WindowPolicy | None, now: InstantLike | None
    ) -> QueryOptions:
        return QueryOptions(
            windows=windows or self._windows,
            conflicts=self._conflicts,
            parameters=parameter_values(parameters or {}),
            now=None if now is None else micros(now),
            evaluator=self._evaluator,
            on_error=self._engine.evaluation.on_error,
        )

    def query(self, name: str) -> Query:
        self._engine.query(name)
        return Query(self._engine, name)

    @property
    def queries(self) -> list[Query]:
        return [Query(self._engine, name) for name in self._engine.queries]

    # --- streams and graphs -------------------------------------------------------------------------------------------

    @property
    def streams(self) -> tuple[str, ...]:
        return self._engine.streams

    @property
    def late(self) -> dict[str, int]:
        """How many events came too late, by stream."""
        return {name: self._engine.stream(name).late for name in self._engine.streams}

    @property
    def corrected(self) -> dict[str, int]:
        """How many late events have been taken in as corrections, by stream."""
        return {name: self._engine.stream(name).corrected for name in self._engine.streams}

    def graph(self, name: str, graph: GraphLike | TripleGraph) -> None:
        """Set a static graph, or replace it; the next evaluation sees it.

        It is a PropertyGraph, nodes and relationships as JSON, events, or a TripleGraph. Seraph reads it by ON GRAPH
        name; SPARQL by FROM <name> and GRAPH <name>, and the one named `default` without naming it.
        """
        self._engine.add_static_graph(name, any_graph_from(graph))

    def push(self, stream: str, events: EventLike | Iterable[EventLike], split: str = ONLY_SPLIT) -> PushResult:
        """Push events to a stream: Event objects or their JSON objects, many or one. Late events are handed back.

        A malformed event raises MalformedEventError before any event of the call is taken in.
        """
        if isinstance(events, dict | Event | str | Mapping):  # the most frequent kind first
            return self._engine.push(stream, events_from(events), split)
        return self._engine.push(stream, _many_events(events, self._engine.asked_keys(stream)), split)

    def push_table(
        self,
        stream: str,
        table: object,
        subject: str = "s",
        predicate: str = "p",
        object: str = "o",
        at: str = "at",
        split: str = ONLY_SPLIT,
        document: str | None = None,
    ) -> PushResult:
        """Push the rows of a table to a stream, each an event of one triple.

        The table is a table or batch of pyarrow, or a data frame of polars or pandas. This is the fast way in for
        many triples: only distinct terms are processed one by one. A single triple costs less as an event of `push`.

        The arguments name the columns. Cells are read as those of Parquet files: terms are N-Triples texts or bare
        IRIs, objects also plain texts, numbers and dates; times are timestamps, epoch milliseconds or ISO 8601 texts.
        Blank nodes belong to this call, unless tables share a `document`. A malformed row raises MalformedEventError
        before any row is taken in.
        """
        from anabranch.formats.rdf.tables import TableHeader, TripleColumns, as_table, events_of_table
        from anabranch.formats.rdf.terms import document_of

        if document is None:
            known = self._engine.stream(stream).sequences if stream in self._engine.streams else {}
            document = document_of(stream, f"t{split}.{known.get(split, 0)}")
        found = events_of_table(as_table(table), TableHeader(subject, predicate, object, at), document)
        parts = [part for part in found if isinstance(part, TripleColumns)]
        if not parts:
            return self._engine.push(stream, cast(list[Event], found), split)
        if self._engine.late.corrects:  # corrections are emitted once for the whole table
            return self._engine.push(stream, TripleBlock.joined([part.block() for part in parts]), split)
        # Evaluated events are forgotten before the next part becomes terms.
        pushed = [self._engine.push(stream, part.block(), split) for part in parts]
        starts = accumulate((len(part.times) for part in parts), initial=0)
        return PushResult(
            sum(one.accepted for one in pushed),
            tuple(event for one in pushed for event in one.late),
            late_places=tuple(
                start + place for start, one in zip(starts, pushed, strict=False) for place in one.late_places
            ),
        )

    def settle_doubts(self, stream: str, is_over: bool = False) -> list[PushResult]:
        """Decide about events whose clock is in doubt when no event follows, for the time being or at all."""
        return list(self._engine.settle_doubts(stream, is_over).values())

    def reached(self) -> int | None:
        """The time of the newest accepted event of all streams, but not later than an event whose clock is in doubt."""
        streams = [self._engine.stream(name) for name in self._engine.streams]
        newest = max((one.last_event_time for one in streams if one.last_event_time is not None), default=None)
        doubts = (one.earliest_doubt for one in streams)
        return None if newest is None else min([newest, *(time for time in doubts if time is not None)])

    def jumps(self) -> dict[str, tuple[int, tuple[int, int] | None]]:
        """How often each stream's time has jumped past its widest window, and the last jump: from when, to when.

        Derived streams are not included.
        """
        streams = [self._engine.stream(name) for name in self._engine.streams]
        return {one.name: one.jumps for one in streams if one.origin != "query"}

    def set_splits(self, stream: str, names: Iterable[str]) -> None:
        """Set the splits of a stream, such as a topic's partitions; `push` names the split of its events."""
        self._engine.set_splits(stream, _names(names))

    def advance(self, instant: InstantLike, stream: str | None = None) -> None:
        """Declare that no event at or before the instant will come any more, on all streams or on one."""
        self._engine.advance(micros(instant), stream)

    def close_stream(self, name: str) -> None:
        self._engine.close_stream(name)

    def plan_end(self, until: InstantLike | None = None, drain: bool = False) -> None:
        """Set the arguments of `finish` in advance, where streams are closed one after the other."""
        self._engine.plan_end(None if until is None else micros(until), drain)

    def finish(self, until: InstantLike | None = None, drain: bool = False, now: InstantLike = 0) -> None:
        """End the input: evaluate until every event was seen, until an instant, or until windows are empty.

        `now` is the instant of queries that read no stream, where no event gives them one.
        """
        self._engine.finish(None if until is None else micros(until), drain, micros(now))

    # --- answers of all queries ---------------------------------------------------------------------------------------

    @property
    def frontier(self) -> int:
        """The instant before which every living query has been evaluated."""
        return self._engine.frontier

    def take(self, before: InstantLike | None = None) -> list[Answer]:
        """Take the pending answers of all queries before an instant, in the order of time."""
        return self._engine.take(None if before is None else micros(before))

    def failures(self) -> list[tuple[str, QueryError]]:
        """Return the queries that have failed since the last call, with their errors."""
        return self._engine.failures()

    # --- checkpoint ---------------------------------------------------------------------------------------------------

    def checkpoint(self) -> bytes:
        """Return, as bytes, everything that the next answers depend on, queries and unpolled answers included."""
        state = {
            "windows": self._windows,
            "conflicts": self._conflicts,
            "evaluator": self._evaluator,
            "rules": list(self._engine.rules),
            "engine": self._engine.state(),
        }
        return checkpoint.pack(state)

    @classmethod
    def restore(cls, data: bytes) -> Session:
        """Return the session of a checkpoint; `session.query(name)` finds its queries."""
        state = checkpoint.unpack(data)
        if "engine" not in state:
            raise EngineError("this is the checkpoint of an engine, not of a session")
        engine = Engine.from_state(state["engine"], recompile, Oxigraph(), rule_names(state["rules"]))
        return cls(engine, state["windows"], state["conflicts"], state["evaluator"])


def micros(instant: InstantLike) -> int:
    """Return UTC microseconds of an instant: microseconds, ISO 8601 text or a datetime (without a zone it is UTC)."""
    if isinstance(instant, str):
        try:
            return parse_instant(instant)
        except EvaluationError as error:
            raise EngineError(error.diagnostic.message) from None
    if isinstance(instant, datetime):
        return micros_of(instant)
    if isinstance(instant, bool) or not isinstance(instant, int):
        raise EngineError(f"{instant!r} is no instant; give microseconds, ISO 8601 text or a datetime")
    return instant


def parameter_values(parameters: Mapping[str, object]) -> dict[str, Value]:
    """Return parameters as Cypher values: plain Python, model values, typed JSON such as {"$date": "2015-07-21"}."""
    try:
        return {name: value_from_json(value, f"${name}") for name, value in parameters.items()}
    except MalformedEventError as error:
        raise EngineError(f"parameter {error.reason}") from None


def as_lateness(duration: DurationLike | None) -> Duration | None:
    """Return a lateness from ISO 8601 text or a timedelta."""
    if isinstance(duration, timedelta):
        duration = Duration(0, 0, 0, (duration // timedelta(microseconds=1)) * 1000)
    elif duration is not None and not isinstance(duration, Duration):
        try:
            duration = parse_duration(duration)
        except EvaluationError as error:
            raise EngineError(error.diagnostic.message) from None
    if duration is not None and duration.is_negative:
        raise EngineError(
            f"events cannot be late by {duration}\nhint: a lateness such as PT5S holds answers back so long"
        )
    return duration


def _many_events(events: Iterable[EventLike], keys: PropertyKeys) -> Sequence[Event]:
    """Return events from user input; many plain JSON objects become a block, without an object for each event."""
    if isinstance(events, EventBlock):
        return events
    listed = list(events)
    if len(listed) >= _MANY and all(type(event) is dict for event in listed):
        # Few events need no kernels.
        from anabranch.formats.graph_lines import GraphLines

        block = GraphLines.of_dicts(cast(list[dict[str, Any]], listed), keys)
        if block is not None:
            return block
    return events_from(listed)


def _names(streams: Iterable[str]) -> Iterable[str]:
    return [streams] if isinstance(streams, str) else streams
