"""One registered query: where it stands, what it last saw, and one step to its next evaluation instant.

Law: the rows at an instant are those of the plain query over the windows' contents at that instant (Seraph Def. 5.8).
Operators on changes find them where the plan has some, the plain evaluator elsewhere. Two short cuts keep the law.
Where no event entered or left a window since the last evaluation, the rows are those of then, unless the plan reads the
clock or a random number. And where such instants would tell nothing (a difference, or an empty snapshot), the query
goes straight on to the next instant at which an event enters or leaves.

Invariant: the state is the first and the next instant's index and the previous rows; all else can be computed again.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field
from random import Random
from typing import TypeAlias

from anabranch.algebra.operators import Order, Registration, Source, Static, Window
from anabranch.algebra.walk import (
    is_empty_without_events,
    is_volatile,
    reads_chance,
    root_order,
    static_graphs,
    walk,
    windows,
)
from anabranch.engine.answers import Answer, Row, bag_difference, row_key
from anabranch.engine.arrivals import ArrivalInstants
from anabranch.engine.contents import ContentKey, Model
from anabranch.engine.flows import QueryFlow, WindowViews, whole
from anabranch.engine.kept import Disagreement, KeptRows
from anabranch.engine.plans import Evaluator, Plans
from anabranch.engine.progress import BEGINNING, END
from anabranch.engine.running import OnError
from anabranch.engine.stream import StreamBuffer
from anabranch.engine.surroundings import StaticGraphs, Surroundings, static_graph
from anabranch.engine.turned import turned_around
from anabranch.engine.views import Frame, View, needed_from, widest_bounds
from anabranch.engine.works import OperatorWork, operator_works
from anabranch.errors import Cancelled, EvaluationError, InternalError, QueryError
from anabranch.model.compare import row_order_key
from anabranch.model.graph import EMPTY_GRAPH, PropertyGraph
from anabranch.model.instants import add_duration, format_instant
from anabranch.model.triples import TripleGraph, Triples
from anabranch.model.union import Conflict, ConflictPolicy
from anabranch.model.values import Value
from anabranch.model.windows import Bounds, EvaluationInstants, WindowPolicy
from anabranch.planner.leaves.walks import TooManyTrails
from anabranch.planner.queries import QueryPlan
from anabranch.snapshot import Context
from anabranch.snapshot.context import OUTSIDE, SkippedRows, out_of_memory
from anabranch.snapshot.rdf.static import PartTooLarge

MAX_WARNINGS = 1000  # that nobody has asked for; older ones are let go
MOST_ALIKE = 5_000_000  # instants in a row at which nothing comes or leaves, and each of which has something to tell


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """How a query was registered. `text` and `source_name` (its name in the text) let a checkpoint find it again."""

    windows: WindowPolicy = "trailing"
    conflicts: ConflictPolicy = "latest"
    parameters: Mapping[str, Value] = field(default_factory=dict)
    now: int | None = None
    text: str = ""
    file_name: str = "<query>"
    source_name: str = ""
    evaluator: Evaluator = "own"
    on_error: OnError | None = None  # None: as the engine has it


@dataclass(frozen=True, slots=True)
class QueryWarning:
    """Something that a person should know about the answer at an instant."""

    query: str
    at: int
    about: Conflict | Disagreement

    def __str__(self) -> str:
        return str(self.about)


Instants: TypeAlias = EvaluationInstants | ArrivalInstants

_NO_TRIPLES = TripleGraph()


class ContinuousQuery:
    def __init__(self, registration: Registration, options: QueryOptions, order: int) -> None:
        self.registration = registration
        self.options = options
        self.order = order
        # What a window keeps does not say when events enter and leave it; rules may change it at any time.
        self.windows: tuple[Window, ...] = tuple(dict.fromkeys(whole(one) for one in windows(registration.plan)))
        self.static_names: tuple[str, ...] = tuple(dict.fromkeys(one.name for one in static_graphs(registration.plan)))
        self.is_volatile = is_volatile(registration.plan)
        self._is_verified = options.evaluator == "own" and not reads_chance(registration.plan)
        self._empty_without_events = is_empty_without_events(registration.plan)
        self._is_listed_in_order = registration.output == "snapshot" and root_order(registration.plan) is not None
        self._plans = Plans(registration, self.static_names, options.evaluator)
        self.bound_stream: str | None = None  # what the unnamed stream is
        self.instants: Instants | None = None
        self.is_alone = False  # whether its one instant waits for no stream
        self.first_index = 0  # of the first instant that was or will be evaluated
        self.next_index = 0
        self.passed: int | None = None  # the last instant that was evaluated or passed over since it is here
        self.done = False
        self.failure: QueryError | None = None
        self.failure_told = False
        self.pending: deque[Answer] = deque()
        self.warnings: deque[QueryWarning] = deque(maxlen=MAX_WARNINGS)
        self.instants_passed = 0
        self.evaluations = 0
        self.rows_told = 0
        self.skipped = SkippedRows()
        self.past_graphs: list[tuple[int, StaticGraphs]] = []  # static graphs as instants before an index saw them
        self.verified = 0  # evaluations that the plain evaluator answered too
        self.differing = 0  # those of them at which it answered otherwise
        self._kept = KeptRows()
        self._flow: QueryFlow | None = None
        self._on_changes = True  # whether operators on changes may answer; a copy that looks back evaluates anew
        self._signature: Hashable = None
        self._last_conflict: Conflict | None = None
        self._frame: Frame | None = None
        self._needs: tuple[int, list[Bounds]] | None = None
        self._keys: list[ContentKey] = []

    @property
    def name(self) -> str:
        return self.registration.name

    @property
    def once(self) -> bool:
        """Whether there is one answer and no more (RETURN)."""
        return self.registration.every is None and self.registration.arrivals is None

    @property
    def waits_for_no_stream(self) -> bool:
        """Whether its one answer is still to come, and depends on no stream and no instant."""
        names_instant = self.registration.starting_at is not None or self.options.now is not None
        return self.once and not self.windows and not self.done and not names_instant

    @property
    def counts_all(self) -> bool:
        """Whether it reads no stream and is evaluated as triples come on any."""
        return self.registration.arrivals is not None and not self.windows

    @property
    def can_be_corrected(self) -> bool:
        """Whether an answer can be emitted again over the windows of then: time alone moves them, and no stream is made
        of the answers."""
        asked = self.registration
        return asked.arrivals is None and asked.into is None and all(one.count is None for one in self.windows)

    @property
    def is_ordered(self) -> bool:
        """Whether the order of its rows is part of what it tells; a difference has none."""
        plan = self.registration.plan
        return self.registration.output == "snapshot" and any(isinstance(node, Order) for node in walk(plan))

    # --- streams and instants ---------------------------------------------------------------------------------------

    def stream_name(self, window: Window) -> str | None:
        return window.stream.name if window.stream.name is not None else self.bound_stream

    @property
    def is_bound(self) -> bool:
        return all(self.stream_name(window) is not None for window in self.windows)

    def stream_names(self) -> tuple[str, ...]:
        names = {name for window in self.windows if (name := self.stream_name(window)) is not None}
        return tuple(sorted(names))

    def start(self, starting_at: int, complete_from: int = BEGINNING) -> None:
        """Fix the first instant; instants from before the buffers' memory begins are not evaluated."""
        arrivals = self.registration.arrivals
        if arrivals is not None:
            self.instants = ArrivalInstants.beginning(starting_at, arrivals, complete_from, self.registration.final)
            self.first_index = self.next_index = 0
        else:
            self.instants = EvaluationInstants(starting_at, self.registration.every)
            self.first_index = self.next_index = self.instants.index_at_or_after(complete_from)
        self._begin_frame()

    def start_alone(self, at: int) -> None:
        """Fix the one instant of a query that no stream moves."""
        self.is_alone = True
        self.instants = EvaluationInstants(at, None)
        self.first_index = self.next_index = 0
        self._begin_frame()

    def resume_arrivals(self, instants: ArrivalInstants) -> None:
        """Go on with instants that were found out before."""
        self.instants = instants
        self._begin_frame()

    def _begin_frame(self) -> None:
        instants = self._instants()
        self._frame = Frame(
            self.options.windows,
            self.registration.starting_at or 0,
            instants.starting_at,
            instants.every,
            isinstance(instants, ArrivalInstants),
        )

    @property
    def next_instant(self) -> int:
        """The instant that is evaluated next; END when there is none, or none that is known."""
        if self.done or self.instants is None:
            return END
        return self.instants.instant(self.next_index)

    def bounds_at(self, window: Window, index: int) -> Bounds:
        return self._bounds(window, self._instants().instant(index))

    def _bounds(self, window: Window, at: int) -> Bounds:
        if self._frame is None:
            raise InternalError(f"query `{self.name}` has no first instant yet")
        return self._frame.bounds(window, at)

    def natural_end(self, clock: int | None) -> int:
        """The first index at which all that came by an instant has been seen: where a query stops when its input has
        ended."""
        if clock is None:
            return 0
        instants = self._instants()
        if instants.once:
            return 0
        index = instants.index_at_or_after(clock)
        for window in self.windows:
            index = self.enters(window, clock, index)
        return index

    def drained_end(self, clock: int | None, last_event_times: Mapping[str, int]) -> int:
        """The first index, at or after the natural end, at which all windows are empty. Times are by stream. A window
        that time does not empty is left out."""
        index = self.natural_end(clock)
        if not self._instants().once:
            for window in self.windows:
                last_event_time = last_event_times.get(self.stream_name(window) or "")
                if last_event_time is not None and window.width is not None:
                    index = self.leaves(window, last_event_time, index)
        return index

    def enters(self, window: Window, event_time: int, low: int) -> int:
        """The first index from `low` on whose window does not end before the event."""
        instants = self._instants()
        guess = instants.index_at_or_after(event_time)
        return instants.search(lambda index: self.bounds_at(window, index).stop > event_time, low, guess)

    def leaves(self, window: Window, event_time: int, low: int) -> int:
        """The first index from `low` on whose window begins after the event; END when time alone does not move it."""
        if window.width is None:
            return END
        instants = self._instants()
        guess = instants.index_at_or_after(add_duration(event_time, window.width))
        return instants.search(lambda index: self.bounds_at(window, index).first > event_time, low, guess)

    def needs_from(self, stream: StreamBuffer, index: int) -> int:
        """The smallest event time of a stream that this query looks at from an index on."""
        instants = self.instants
        if instants is None:
            return BEGINNING
        if isinstance(instants, ArrivalInstants):
            at = instants.not_before(index)
            needs = instants.seen_until
            ends = [self._bounds(window, at) for window in self.windows] if at < END else []
        else:
            needs = END
            if self._needs is None or self._needs[0] != index:
                self._needs = (index, [self.bounds_at(window, index) for window in self.windows])
            ends = self._needs[1]
        for window, bounds in zip(self.windows, ends, strict=False):
            if self.stream_name(window) == stream.name:
                needs = min(needs, needed_from(window, bounds, stream))
        return needs

    def _instants(self) -> Instants:
        if self.instants is None:
            raise InternalError(f"query `{self.name}` has no first instant yet")
        return self.instants

    # --- one step ---------------------------------------------------------------------------------------------------

    def step(self, around: Surroundings, last_index: int) -> Answer | None:
        """Evaluate the next instant, and pass over those up to `last_index` that cannot tell anything new. What it
        tells is pending, and given back."""
        instants = self._instants()
        index = self.next_index
        at = instants.instant(index)
        views = self.views_at(at, around)
        quiet = all(view.is_empty for view in views.values())
        stable = not self.is_volatile or (quiet and self._empty_without_events)
        signature: Hashable = (
            tuple(view.signature for view in views.values()),
            tuple(around.static(name).version for name in self.static_names),
        )
        unchanged = stable and signature == self._signature
        try:
            if unchanged:
                self._kept.stay()
            else:
                self._evaluate(at, index, views, around)
            is_telling = not stable or (self.registration.output == "snapshot" and len(self._kept) > 0)
            if is_telling and last_index - index > MOST_ALIKE and not instants.once:
                self._refuse_silence(at, min([last_index, *(self.next_change(*item, index) for item in views.items())]))
            answer = self._tell(at, views)
        except Cancelled:
            raise
        except QueryError as error:
            self._fail(error)
            return None
        except Exception as error:
            # What it shares with other queries may stand in the middle of a change: it is made again.
            for name in self.stream_names():
                around.contents.drop_stream(name)
            self._fail(out_of_memory(OUTSIDE) if isinstance(error, MemoryError) else _broken(error))
            return None
        self._signature = signature
        self.next_index = index + 1
        if instants.once:
            self.done = True
        elif not is_telling and index < last_index:
            self.next_index = min([last_index + 1, *(self.next_change(*item, index) for item in views.items())])
        self.passed = instants.instant(self.next_index - 1)
        self.instants_passed += self.next_index - index
        return answer

    def _fail(self, error: QueryError) -> None:
        """Stop here; what was kept for the next instant is let go."""
        self.failure = _placed(error, self.options)
        self.done = True
        self._flow = None

    def _refuse_silence(self, at: int, until: int) -> None:
        """One event whose time is far ahead would have the same answer told until the end of memory."""
        alike = until - self.next_index
        if alike > MOST_ALIKE:
            raise EvaluationError(
                "SER-310",
                f"after {format_instant(at)} nothing comes for {alike:,} instants, each of which has an answer",
                "is the time of an event wrong? Else tell what changes (ON ENTERING), or evaluate less often",
            )

    def content_keys(self) -> list[ContentKey]:
        """The shared contents that this query reads."""
        if not self._keys:
            self._keys = [self._content_key(window, model) for window, model in self._plans.models]
        return self._keys

    def _content_key(self, window: Window, model: Model) -> ContentKey:
        instants = self._instants()
        formal = self.options.windows == "formal"
        return ContentKey(
            model,
            self.stream_name(window) or "",
            self.stream_names(),
            window.width,
            window.count,
            None if window.step is None else (window.step, self.registration.starting_at or 0),
            self.options.windows,
            self.options.conflicts if model == "graph" else "latest",
            window.keep,
            (instants.starting_at, instants.every) if formal else None,
        )

    def views_at(self, at: int, around: Surroundings) -> dict[Window, View]:
        """What each of its windows holds at an instant."""
        return {
            window: View.of(window, self._bounds(window, at), around.streams[self.stream_name(window) or ""])
            for window in self.windows
        }

    def planned(self, around: Surroundings) -> QueryPlan:
        """How it runs: which parts on changes, and which anew."""
        return self._plans.planned(around, self.options.parameters)

    def next_change(self, window: Window, view: View, index: int) -> int:
        """The first later index at which an event may enter or leave the window; far away when there is none."""
        first, stop = view.positions
        entering = view.stream.time_at(stop)
        found = END if entering is None else self.enters(window, entering, index + 1)
        leaving = None if view.is_empty else view.stream.time_at(first)
        return found if leaving is None else min(found, self.leaves(window, leaving, index + 1))

    def _evaluate(self, at: int, index: int, views: Mapping[Window, View], around: Surroundings) -> None:
        """Find the rows of this instant: by operators on changes where the plan has some, else anew."""
        self._keys = []
        self.evaluations += 1
        while True:
            try:
                self._find_rows(at, index, views, around)
                return
            except PartTooLarge:
                self._flow = None
                self._plans.without_parts(around)

    def _find_rows(self, at: int, index: int, views: Mapping[Window, View], around: Surroundings) -> None:
        planned = self.planned(around) if self._on_changes else None
        if planned is None or planned.root is None:
            self._flow = None
            self._kept.replace(self._anew(at, index, views, around))
            self._verify(at, index, views, around)
            return
        encoded = around.contents.encoded
        if self._flow is None or not self._flow.fits(planned, encoded):
            listed = self.registration.output == "snapshot"
            self._flow = QueryFlow(planned, self.options, encoded, listed, around.clock, self._skipped(around))
        flow = self._flow
        try:
            conflict = flow.advance(self.context(at, index, views, around), self._window_views(views, around))
        except TooManyTrails:
            self._plans.without_trails()
            self._flow = None
            self._kept.replace(self._anew(at, index, views, around))
            return
        self._warn(at, conflict)
        self._kept.follow(flow.maintained, began=flow.ticks == 1)
        self._verify(at, index, views, around)

    def _anew(self, at: int, index: int, views: Mapping[Window, View], around: Surroundings) -> list[Row]:
        return self._listed(self._plans.compiled(around).run(self.context(at, index, views, around)))

    def _listed(self, rows: Iterable[Row]) -> list[Row]:
        return list(rows) if self._is_listed_in_order else sorted(rows, key=row_order_key)

    def context(self, at: int, index: int, views: Mapping[Window, View], around: Surroundings) -> Context:
        """What the plain evaluator is given at an instant."""

        def graph(source: Source) -> PropertyGraph:
            if isinstance(source, Static):
                return around.static(source.name).as_graph()
            view = views[whole(source)]
            if view.is_empty:
                return EMPTY_GRAPH
            content = around.contents.graph(self._content_key(source, "graph")).slide(view, around.mapping)
            result = content.graph()
            self._warn(at, content.conflict())
            return result

        def triples(source: Source) -> Triples:
            if isinstance(source, Static):
                return around.static(source.name).as_triples()
            view = views[whole(source)]
            if view.is_empty:
                return _NO_TRIPLES
            return around.contents.triples(self._content_key(source, "triples")).slide(view, around.mapping)

        def ends(window: Window | None) -> tuple[int, int]:
            return widest_bounds(views.values(), at) if window is None else views[whole(window)].reported

        return Context(
            graph=graph,
            triple_graph=triples,
            bounds=ends,
            static_version=lambda name: around.static(name).version,
            plugin=around.plugin,
            parameters=self.options.parameters,
            clock=at,
            max_steps=around.running.max_steps,
            skipped=self._skipped(around),
            check=around.check,
            # Chance is a function of query and instant, so that a rerun draws the same numbers.
            random=Random(f"{self.name}/{index}"),
        )

    @property
    def last_skip(self) -> QueryError | None:
        """The error of the row that was skipped last."""
        return None if self.skipped.last is None else _placed(self.skipped.last, self.options)

    @property
    def first_skip(self) -> QueryError | None:
        """The error of the row that was skipped first."""
        return None if self.skipped.first is None else _placed(self.skipped.first, self.options)

    def _skipped(self, around: Surroundings) -> SkippedRows | None:
        """Where failing rows are counted; None where they end the query."""
        return self.skipped if (self.options.on_error or around.running.on_error) == "skip" else None

    def _window_views(self, views: Mapping[Window, View], around: Surroundings) -> WindowViews:
        return WindowViews(views, around.contents.encoded, around.mapping, lambda name: around.static(name).version)

    def _warn(self, at: int, conflict: Conflict | None) -> None:
        if conflict is not None and conflict != self._last_conflict:
            self.warnings.append(QueryWarning(self.name, at, conflict))
        self._last_conflict = conflict

    def _verify(self, at: int, index: int, views: Mapping[Window, View], around: Surroundings) -> None:
        """Compare what is kept with what the plain evaluator says of the plan as the text has it, over the same
        elements found in another order: no answer depends on that order, and none on how it was computed."""
        every = around.running.verify
        if not every or self.evaluations % every or not self._on_changes or not self._is_verified:
            return
        context = self.context(at, index, views, around)
        turned = turned_around(context, views, self.options.conflicts, around.mapping)
        rows = self._listed(self._plans.plain().run(turned))
        self.verified += 1
        kept = self._kept.rows()
        expected, found = [row_key(row) for row in rows], [row_key(row) for row in kept]
        if expected == found or (not self._is_listed_in_order and Counter(expected) == Counter(found)):
            return
        missing = bag_difference(rows, expected, found)
        surplus = bag_difference(kept, found, expected)
        self.differing += 1
        self.warnings.append(QueryWarning(self.name, at, Disagreement(missing, surplus)))

    def _tell(self, at: int, views: Mapping[Window, View]) -> Answer | None:
        output = self.registration.output
        told = {"snapshot": self._kept.rows, "entering": self._kept.entered, "exiting": self._kept.left}[output]()
        if not told and not self.once:
            return None
        widest = widest_bounds(views.values(), at)
        self.rows_told += len(told)
        answer = Answer.told(self.name, at, output, widest, self.registration.columns, told)
        self.pending.append(answer)
        return answer

    def operators(self) -> list[OperatorWork]:
        """What its windows, graphs and operators have done since they began, in the order of their ids."""
        return operator_works(self.windows, self.static_names, self._flow, self.evaluations, len(self._kept))

    @property
    def row_count(self) -> int:
        """How many rows it has at the last instant that was evaluated."""
        return len(self._kept)

    @property
    def previous(self) -> list[Row]:
        """The rows of the last instant that was evaluated."""
        return self._kept.rows()

    # --- going back -------------------------------------------------------------------------------------------------

    def resume(self, next_index: int, previous: list[Row]) -> None:
        """Stand before an instant, with the rows of the one before; whatever was seen is looked at again."""
        self.next_index = next_index
        self._kept = KeptRows(previous)
        self._flow = None
        self._signature = None
        self._needs = None
        self._keys = []

    def begun_again(self) -> ContinuousQuery:
        """The same query as it is registered; what it has emitted, and counted, stays."""
        other = ContinuousQuery(self.registration, self.options, self.order)
        other.bound_stream = self.bound_stream
        other.pending, other.warnings = self.pending, self.warnings
        for name in ("instants_passed", "evaluations", "rows_told", "verified", "differing"):
            setattr(other, name, getattr(self, name))
        return other

    def rewound(self, index: int) -> ContinuousQuery:
        """A copy that stands before an instant which this query has passed, and has told nothing yet."""
        other = copy(self)
        other.done = False
        other.pending = deque()
        other.warnings = deque(maxlen=MAX_WARNINGS)
        other.evaluations = 0
        other.skipped = SkippedRows()
        other._last_conflict = None
        other._on_changes = False
        other.resume(index, [])
        return other

    def remember_graphs(self, graphs: StaticGraphs) -> None:
        """The static graphs are about to change: the instants that have passed saw these."""
        seen_until = self.past_graphs[-1][0] if self.past_graphs else self.first_index
        if self.next_index > seen_until and self.failure is None:
            seen = {name: static_graph(graphs, name) for name in self.static_names}
            self.past_graphs.append((self.next_index, seen))

    def graphs_over_time(self, present: StaticGraphs) -> Iterator[tuple[int, StaticGraphs]]:
        """The static graphs as instants saw them, each with the index before which it did."""
        yield from self.past_graphs
        yield END, present


def _broken(error: Exception) -> EvaluationError:
    """A defect of Anabranch that ends one query, and no other."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    where = (
        "" if at is None else f", in {at.tb_frame.f_globals.get('__name__', '').rpartition('.')[2]} line {at.tb_lineno}"
    )
    return EvaluationError(
        "SER-312",
        f"something is broken inside Anabranch: {type(error).__name__}: {error}{where}",
        "please report it with the query and its input; --force recompute may get past it",
    )


def _placed(error: QueryError, options: QueryOptions) -> QueryError:
    if isinstance(error, EvaluationError) and not error.text:
        return error.in_text(options.text, options.file_name)
    return error
