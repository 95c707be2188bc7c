"""A replay: a recording run again in an engine of its own, with its instants, window contents, and rows by either
evaluator.

Invariant: a replay computes no answers itself. Windows are the engine's; rows are those of the engine's operators or of
the plain evaluator, over the recorded events or over some of their elements.

Work: events are sorted once; a plain evaluation costs O(window) plus the cost of the query.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from anabranch.algebra.operators import Operator, Pattern, Registration, Source, Static, Window
from anabranch.algebra.triples import Path
from anabranch.algebra.walk import reads_triples, root_order, walk
from anabranch.engine.answers import AnswerRow
from anabranch.engine.arrivals import ArrivalInstants
from anabranch.engine.flows import QueryFlow, WindowViews, whole
from anabranch.engine.progress import END, LatePolicy
from anabranch.engine.query import ContinuousQuery
from anabranch.engine.query_options import CompiledQuery, QueryOptions
from anabranch.engine.schedule import start
from anabranch.engine.stream import StreamBuffer
from anabranch.engine.surroundings import SharedState, StaticGraph
from anabranch.engine.views import WindowEvents, widest_bounds
from anabranch.errors import EngineError
from anabranch.insight.chained import made_events, makers, recording_of
from anabranch.insight.elements import ElementUnit, Things
from anabranch.insight.recording import Recording
from anabranch.model.compare import row_order_key
from anabranch.model.event import Event
from anabranch.model.graph import PropertyGraph
from anabranch.model.triples import TripleGraph
from anabranch.model.union import WindowContent
from anabranch.planner.queries import QueryPlan
from anabranch.plugins.oxigraph import Oxigraph
from anabranch.snapshot import CompiledPlan, Context, compile_plan
from anabranch.snapshot.context import SkippedRows
from anabranch.syntax import languages

MOST_INSTANTS = 5_000

Views = Mapping[Window, WindowEvents]


@dataclass(frozen=True, slots=True)
class ReplayInstant:
    """An evaluation instant, and its number."""

    index: int
    at: int


class Replay:
    """One query over a recording. `until` leaves out the events after an instant."""

    def __init__(self, recording: Recording, until: int | None = None) -> None:
        self.recording = recording
        self.registration = _registration(recording)
        self.of_triples = reads_triples(self.registration.plan)
        options = QueryOptions(
            recording.windows,
            recording.conflicts,
            recording.parameters,
            recording.now,
            recording.query_text,
            recording.file_name,
            self.registration.name,
            on_error=recording.on_error,
        )
        self.query = ContinuousQuery(self.registration, options, 0)
        self.around = SharedState(
            mapping=recording.mapping, plugin=Oxigraph(), rules=recording.rules, evaluation=recording.evaluation
        )
        for name, graph in recording.graphs.items():
            self.around.static_graphs[name] = StaticGraph(1, graph, recording.mapping)
        self.query.cursor.bound_stream = recording.only_stream or next(iter(recording.events), "stream")
        made = makers(recording) if set(self.query.cursor.stream_names()) - set(recording.events) else {}
        for name in dict.fromkeys((*recording.events, *self.query.cursor.stream_names())):
            self.around.streams[name] = self._made(name, made, until) if name in made else self._stream(name, until)
        self.things = Things(self.of_triples, recording.mapping, self.registration.prefixes)
        self.is_cut = False  # whether some instants are not shown
        self._start()

    def _stream(self, name: str, until: int | None) -> StreamBuffer:
        return self._filled(name, self._taken_in(name), until)

    def _filled(self, name: str, events: Iterable[Event], until: int | None) -> StreamBuffer:
        stream = StreamBuffer(name)
        stream.size_of = self.around.size_of
        for event in events:
            if until is None or event.event_time <= until:
                stream.push(event)
        stream.close()
        return stream

    def _taken_in(self, name: str) -> list[Event]:
        """Return the events of a stream in the order of time. Relationships without ids get the ids that a running
        query gives them, by the order of arrival."""
        arriving = StreamBuffer(name, late_policy=LatePolicy("correct"))
        events = [arriving.admit(one)[1] for one in self.recording.events.get(name, ())]
        return sorted(events, key=lambda one: one.event_time)

    def _made(self, name: str, made: Mapping[str, CompiledQuery], until: int | None) -> StreamBuffer:
        """Return a stream that another query makes; it extends as far as that query's instants."""
        recording = self.recording
        events = made_events(recording, name, made, {one: self._taken_in(one) for one in recording.events})
        stream = self._filled(name, events, until)
        stream.made_until = Replay(recording_of(made[name], recording)).reaches
        return stream

    # --- instants ---

    def _start(self) -> None:
        query, recording = self.query, self.recording
        streams = self._read
        firsts = [one.first_event_time for one in streams if one.first_event_time is not None]
        if recording.starting_at is not None:
            query.cursor.start(recording.starting_at)
        elif self.registration.starting_at is not None:
            query.cursor.start(self.registration.starting_at)
        elif recording.now is not None and not self.registration.aligned:
            query.cursor.start(recording.now)
        elif recording.now is not None or firsts:
            start(query, recording.now if recording.now is not None else min(firsts))
        if isinstance(query.cursor.instants, ArrivalInstants):
            query.cursor.instants.discover(streams, END, ended=True)

    @property
    def _read(self) -> list[StreamBuffer]:
        """Return the streams that drive the query: those that it reads, or all when it reads none."""
        streams = self.around.streams
        return [streams[name] for name in self.query.cursor.stream_names()] or list(streams.values())

    @property
    def reaches(self) -> int | None:
        """The last instant that the query passes; where its streams determine the instants, the last one that they
        reach."""
        instants = self.query.cursor.instants
        if instants is None:
            return None
        if isinstance(instants, ArrivalInstants):
            return self._clock
        return instants.instant(self._last_index())

    @property
    def _clock(self) -> int | None:
        return max((one.clock for one in self._read if one.clock is not None), default=None)

    @cached_property
    def moments(self) -> tuple[ReplayInstant, ...]:
        """The instants of the recording; if there are very many, only instants at which something changes, up to a
        limit."""
        query, instants = self.query, self.query.cursor.instants
        if instants is None:
            return ()
        low = query.cursor.first_index
        if self.recording.begins_at is not None:
            low = max(low, instants.index_at_or_after(self.recording.begins_at))
        high = self._last_index()
        if high - low < MOST_INSTANTS:
            return tuple(ReplayInstant(index, instants.instant(index)) for index in range(low, high + 1))
        found: list[ReplayInstant] = []
        index = low
        while index <= high and len(found) < MOST_INSTANTS:
            moment = ReplayInstant(index, instants.instant(index))
            found.append(moment)
            views = self.views(moment)
            index = (
                min([high, *(query.cursor.next_change(*item, index) for item in views.items())])
                if index < high
                else END
            )
        self.is_cut = index <= high
        return tuple(found)

    def _last_index(self) -> int:
        query, instants = self.query, self.query.cursor.instants
        assert instants is not None
        if instants.once:
            return query.cursor.first_index
        ends_at = self.recording.ends_at
        if ends_at is not None:
            return instants.index_at_or_after(ends_at + 1) - 1
        if isinstance(instants, ArrivalInstants):
            return instants.end - 1
        return query.cursor.natural_end(self._clock) if self._clock is not None else query.cursor.first_index

    def moment(self, at: int | None) -> ReplayInstant:
        """Return the last instant at or before a time; without a time, the last of all."""
        moments = self.moments
        found = [one for one in moments if at is None or one.at <= at]
        if not found:
            raise EngineError("the recording has no evaluation instant at or before that time")
        return found[-1]

    def position(self, moment: ReplayInstant) -> int:
        """Return the index of an instant in the recording."""
        return self.moments.index(moment)

    def views(self, moment: ReplayInstant) -> dict[Window, WindowEvents]:
        return self.query.cursor.views_at(moment.at, self.around)

    @property
    def _skipped(self) -> SkippedRows | None:
        """Return the counter of failing rows; None if a failing row ends the query, as in the engine."""
        on_error = self.recording.on_error or self.recording.evaluation.on_error
        return self.query.outbox.skipped if on_error == "skip" else None

    # --- rows by operators on changes ---

    @cached_property
    def planned(self) -> QueryPlan:
        return self.query.run.planned(self.around)

    @cached_property
    def keeps_trails(self) -> bool:
        """Whether operators keep paths of variable length, which may exceed their budget."""
        lengths = (
            one
            for node in walk(self.planned.plan)
            if isinstance(node, Pattern)
            for path in node.paths
            for one in path.relationships
        )
        return any(one.length is not None for one in lengths) or any(
            isinstance(node, Path) for node in walk(self.planned.plan)
        )

    def flow(self) -> QueryFlow:
        """Create operators for the query, without any input yet."""
        encoded, mapping = self.around.contents.encoded, self.around.mapping
        options, skipped = self.query.options, self._skipped
        return QueryFlow(self.planned, options, encoded, mapping, listed=False, skipped=skipped, whole=True)

    def advance(self, flow: QueryFlow, moment: ReplayInstant, views: Views, settled: bool = True) -> None:
        """Feed operators up to the given views of the windows, at an instant or on the way to it."""
        around = self.around
        context = self.query.run.context(moment.at, moment.index, views, around)
        given = WindowViews(views, around.static_version)
        flow.advance(context, given, settled)

    # --- rows by the plain evaluator ---

    @cached_property
    def compiled(self) -> CompiledPlan:
        return compile_plan(self.registration.plan)

    def rows(self, moment: ReplayInstant, kept: Collection[ElementUnit] | None = None) -> list[AnswerRow]:
        """Evaluate the plain query at an instant, over all elements of the windows or over the kept ones."""
        rows = list(self.compiled.run(self.context(moment, kept)))
        if root_order(self.registration.plan) is None:
            rows.sort(key=row_order_key)
        return rows

    def rows_of(self, plan: Operator, context: Context) -> list[AnswerRow]:
        """Evaluate a part of the plan."""
        return list(compile_plan(plan).run(context))

    def context(self, moment: ReplayInstant, kept: Collection[ElementUnit] | None = None) -> Context:
        """Return the input of the plain evaluator at an instant, with all elements or with the kept ones."""
        views = self.views(moment)

        def graph(source: Source) -> PropertyGraph:
            if isinstance(source, Static):
                return self.around.static(source.name).as_graph()
            content = WindowContent(self.recording.conflicts)
            for event in self._events(views[whole(source)], kept):
                content.add(event)
            return content.graph()

        def triples(source: Source) -> TripleGraph:
            if isinstance(source, Static):
                return self.around.static(source.name).as_triples()
            found = TripleGraph()
            for event in self._events(views[whole(source)], kept):
                for triple in event.triples:
                    found.add(triple, event.event_time)
            return found

        def ends(window: Window | None) -> tuple[int, int]:
            return widest_bounds(views.values(), moment.at) if window is None else views[whole(window)].reported

        return Context(
            graph=graph,
            triple_graph=triples,
            bounds=ends,
            static_version=self.around.static_version,
            plugin=self.around.plugin,
            parameters=self.recording.parameters,
            clock=moment.at,
            skipped=self._skipped,
            seed=f"{self.query.name}/{moment.index}",
        )

    def _events(self, view: WindowEvents, kept: Collection[ElementUnit] | None) -> Iterator[Event]:
        for event in self.inside(view):
            yield event if kept is None else self.things.only(view.stream.name, event, kept)

    def inside(self, view: WindowEvents) -> Iterator[Event]:
        """Yield the events of a window, in the data model in which the query reads them."""
        if view.is_empty:
            return
        skip = view.skip
        for event in view.stream.between(*view.positions):
            yield self.things.read(event, skip)
            skip = 0


def _registration(recording: Recording) -> Registration:
    found = languages.registrations(recording.query_text, file_name=recording.file_name)
    for one in found:
        if one.name == recording.query_name or (len(found) == 1 and not recording.query_name):
            return one
    names = ", ".join(one.name for one in found) or "none"
    if not recording.query_name and found:
        raise EngineError(f"the text has several queries; say which is meant, of {names}")
    raise EngineError(f"the text has no query `{recording.query_name}`; it has {names}")
