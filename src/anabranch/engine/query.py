"""One registered query: where it stands, what it last saw, and one step to its next evaluation instant.

Law: the rows at an instant are those of the plain query over the windows' contents at that instant (Seraph Def. 5.8).
Two short cuts keep it. Where no event entered or left a window since the last evaluation, the rows are those of then,
unless the plan reads the clock or a random number. And where such instants would tell nothing (a difference, or an
empty snapshot), the query goes straight on to the next instant at which an event enters or leaves.

Invariant: the state is the first and the next instant's index and the previous rows; all else can be computed again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field
from random import Random

from anabranch.algebra.operators import Order, Registration, Source, Static, Window
from anabranch.algebra.walk import is_empty_without_events, is_volatile, static_graphs, walk, windows
from anabranch.engine.answers import Answer, Row, bag_difference, row_key
from anabranch.engine.contents import ContentKey, Contents
from anabranch.engine.progress import BEGINNING, END
from anabranch.engine.stream import StreamBuffer
from anabranch.errors import EvaluationError, InternalError, QueryError
from anabranch.model.graph import EMPTY_GRAPH, PropertyGraph
from anabranch.model.instants import add_duration
from anabranch.model.temporal import Duration
from anabranch.model.union import Conflict, ConflictPolicy
from anabranch.model.values import Value
from anabranch.model.windows import Bounds, EvaluationInstants, WindowPolicy, bounds
from anabranch.snapshot import CompiledPlan, Context, compile_plan

MAX_WARNINGS = 1000  # that nobody has asked for; older ones are let go


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


@dataclass(frozen=True, slots=True)
class QueryWarning:
    """Something that a person should know about the answer at an instant."""

    query: str
    at: int
    conflict: Conflict

    def __str__(self) -> str:
        return str(self.conflict)


StaticGraphs = dict[str, tuple[int, PropertyGraph]]
"""By name, with a version that differs when the graph does."""


@dataclass(slots=True)
class Surroundings:
    """What queries of one engine have in common."""

    streams: dict[str, StreamBuffer] = field(default_factory=dict)
    static_graphs: StaticGraphs = field(default_factory=dict)
    contents: Contents = field(default_factory=Contents)


@dataclass(slots=True)
class _View:
    """One window of the query at one instant."""

    bounds: Bounds
    stream: StreamBuffer
    positions: tuple[int, int]

    @property
    def is_empty(self) -> bool:
        return self.positions[0] >= self.positions[1]


class ContinuousQuery:
    def __init__(self, registration: Registration, options: QueryOptions, order: int) -> None:
        self.registration = registration
        self.options = options
        self.order = order
        self.windows: tuple[Window, ...] = windows(registration.plan)
        self.static_names: tuple[str, ...] = tuple(dict.fromkeys(one.name for one in static_graphs(registration.plan)))
        self.is_volatile = is_volatile(registration.plan)
        self._empty_without_events = is_empty_without_events(registration.plan)
        self._compiled: CompiledPlan = compile_plan(registration.plan)
        self.bound_stream: str | None = None  # what the unnamed stream is
        self.instants: EvaluationInstants | None = None
        self.first_index = 0  # of the first instant that was or will be evaluated
        self.next_index = 0
        self.done = False
        self.failure: QueryError | None = None
        self.failure_told = False
        self.pending: deque[Answer] = deque()
        self.warnings: deque[QueryWarning] = deque(maxlen=MAX_WARNINGS)
        self.instants_passed = 0
        self.evaluations = 0
        self.rows_told = 0
        self.past_graphs: list[tuple[int, StaticGraphs]] = []  # static graphs as instants before an index saw them
        self.previous: list[Row] = []
        self._previous_keys: list[Hashable] | None = None
        self._signature: Hashable = None
        self._last_conflict: Conflict | None = None
        self._needs: tuple[int, dict[str | None, int]] | None = None
        self._keys: list[ContentKey] = []

    @property
    def name(self) -> str:
        return self.registration.name

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
        self.instants = EvaluationInstants(starting_at, self.registration.every)
        self.first_index = self.next_index = self.instants.index_at_or_after(complete_from)

    @property
    def next_instant(self) -> int:
        """The instant that is evaluated next; END when there is none."""
        if self.done or self.instants is None:
            return END
        return self.instants.instant(self.next_index)

    def bounds_at(self, window: Window, index: int) -> Bounds:
        instants = self._instants()
        if window.width is None:
            raise InternalError("a registered query has a window without a width")
        at = instants.instant(index)
        return bounds(self.options.windows, at, window.width, instants.starting_at, instants.every)

    def natural_end(self, last_event_time: int | None) -> int:
        """The first index at which every event has been seen: where a query stops when its input has ended."""
        if last_event_time is None:
            return 0
        instants = self._instants()
        if instants.every is None:
            return 0
        index = instants.index_at_or_after(last_event_time)
        for window in self.windows:
            index = self.enters(window, last_event_time, index)
        return index

    def drained_end(self, last_event_times: Mapping[str, int]) -> int:
        """The first index, at or after the natural end, at which all windows are empty. Times are by stream."""
        index = self.natural_end(max(last_event_times.values(), default=None))
        if self._instants().every is not None:
            for window in self.windows:
                last_event_time = last_event_times.get(self.stream_name(window) or "")
                if last_event_time is not None:
                    index = self.leaves(window, last_event_time, index)
        return index

    def enters(self, window: Window, event_time: int, low: int) -> int:
        """The first index from `low` on whose window does not end before the event."""
        instants = self._instants()
        guess = instants.index_at_or_after(event_time)
        return instants.search(lambda index: self.bounds_at(window, index).stop > event_time, low, guess)

    def leaves(self, window: Window, event_time: int, low: int) -> int:
        """The first index from `low` on whose window begins after the event."""
        instants = self._instants()
        guess = instants.index_at_or_after(add_duration(event_time, window.width or Duration()))
        return instants.search(lambda index: self.bounds_at(window, index).first > event_time, low, guess)

    def needs_from(self, stream_name: str, index: int) -> int:
        """The smallest event time of a stream that this query looks at from an index on."""
        if self.instants is None:
            return BEGINNING
        if self._needs is None or self._needs[0] != index:
            needs: dict[str | None, int] = {}
            for window in self.windows:
                name = self.stream_name(window)
                needs[name] = min(needs.get(name, END), self.bounds_at(window, index).first)
            self._needs = (index, needs)
        return self._needs[1].get(stream_name, END)

    def _instants(self) -> EvaluationInstants:
        if self.instants is None:
            raise InternalError(f"query `{self.name}` has no first instant yet")
        return self.instants

    # --- one step ---------------------------------------------------------------------------------------------------

    def step(self, around: Surroundings, last_index: int) -> None:
        """Evaluate the next instant, and pass over those up to `last_index` that cannot tell anything new."""
        instants = self._instants()
        index = self.next_index
        at = instants.instant(index)
        views = {window: self._view(window, index, around) for window in self.windows}
        quiet = all(view.is_empty for view in views.values())
        stable = not self.is_volatile or (quiet and self._empty_without_events)
        signature: Hashable = (
            tuple(None if view.is_empty else view.positions for view in views.values()),
            tuple(around.static_graphs[name][0] for name in self.static_names),
        )
        unchanged = stable and signature == self._signature
        try:
            rows = self.previous if unchanged else self._evaluate(at, index, views, around)
            self._tell(at, rows, unchanged, views)
        except QueryError as error:
            self.failure = _placed(error, self.options)
            self.done = True
            return
        self._signature = signature
        self.next_index = index + 1
        if instants.every is None:
            self.done = True
        elif stable and (self.registration.output != "snapshot" or not rows) and index < last_index:
            self.next_index = min([last_index + 1, *(self._next_change(*item, index) for item in views.items())])
        self.instants_passed += self.next_index - index

    def content_keys(self) -> list[ContentKey]:
        """The shared unions that this query reads."""
        if not self._keys:
            self._keys = [self._content_key(window) for window in self.windows]
        return self._keys

    def _content_key(self, window: Window) -> ContentKey:
        instants = self._instants()
        return ContentKey(
            self.stream_name(window) or "",
            self.stream_names(),
            window.width,
            self.options.windows,
            self.options.conflicts,
            (instants.starting_at, instants.every) if self.options.windows == "formal" else None,
        )

    def _view(self, window: Window, index: int, around: Surroundings) -> _View:
        name = self.stream_name(window)
        stream = around.streams[name or ""]
        window_bounds = self.bounds_at(window, index)
        return _View(window_bounds, stream, stream.positions(window_bounds))

    def _next_change(self, window: Window, view: _View, index: int) -> int:
        """The first later index at which an event may enter or leave the window; far away when there is none."""
        first, stop = view.positions
        entering = view.stream.time_at(stop)
        found = END if entering is None else self.enters(window, entering, index + 1)
        leaving = None if view.is_empty else view.stream.time_at(first)
        return found if leaving is None else min(found, self.leaves(window, leaving, index + 1))

    def _evaluate(self, at: int, index: int, views: Mapping[Window, _View], around: Surroundings) -> list[Row]:
        def graph(source: Source) -> PropertyGraph:
            if isinstance(source, Static):
                return around.static_graphs[source.name][1]
            view = views[source]
            if view.is_empty:
                return EMPTY_GRAPH
            sliding = around.contents.get(self._content_key(source))
            content = sliding.slide(view.stream, view.positions)
            result = content.graph()
            conflict = content.conflict()
            if conflict is not None and conflict != self._last_conflict:
                self.warnings.append(QueryWarning(self.name, at, conflict))
            self._last_conflict = conflict
            return result

        self.evaluations += 1
        # Chance is a function of query and instant, so that a rerun draws the same numbers.
        random = Random(f"{self.name}/{index}")
        context = Context(graph=graph, parameters=self.options.parameters, clock=at, random=random)
        return list(self._compiled.run(context))

    def _tell(self, at: int, rows: list[Row], unchanged: bool, views: Mapping[Window, _View]) -> None:
        output = self.registration.output
        if output == "snapshot":
            told = list(rows)
        elif unchanged:
            told = []
        else:
            keys = [row_key(row) for row in rows]
            if self._previous_keys is None:
                self._previous_keys = [row_key(row) for row in self.previous]
            if output == "entering":
                told = bag_difference(rows, keys, self._previous_keys)
            else:
                told = bag_difference(self.previous, self._previous_keys, keys)
            self._previous_keys = keys
        self.previous = rows
        if told or self.registration.every is None:
            widest = min(
                (view.bounds for view in views.values()), key=lambda b: (b.win_start, -b.win_end), default=None
            )
            win_start, win_end = (at, at) if widest is None else (widest.win_start, widest.win_end)
            self.rows_told += len(told)
            columns = self.registration.columns
            self.pending.append(Answer.told(self.name, at, output, (win_start, win_end), columns, told))

    # --- going back -------------------------------------------------------------------------------------------------

    def resume(self, next_index: int, previous: list[Row]) -> None:
        """Stand before an instant, with the rows of the one before; whatever was seen is looked at again."""
        self.next_index = next_index
        self.previous = previous
        self._previous_keys = None
        self._signature = None
        self._needs = None
        self._keys = []

    def rewound(self, index: int) -> ContinuousQuery:
        """A copy that stands before an instant which this query has passed, and has told nothing yet."""
        other = copy(self)
        other.done = False
        other.pending = deque()
        other.warnings = deque(maxlen=MAX_WARNINGS)
        other.evaluations = 0
        other._last_conflict = None
        other.resume(index, [])
        return other

    def remember_graphs(self, graphs: StaticGraphs) -> None:
        """The static graphs are about to change: the instants that have passed saw these."""
        seen_until = self.past_graphs[-1][0] if self.past_graphs else self.first_index
        if self.next_index > seen_until and self.failure is None:
            self.past_graphs.append((self.next_index, {name: graphs[name] for name in self.static_names}))

    def graphs_over_time(self, present: StaticGraphs) -> Iterator[tuple[int, StaticGraphs]]:
        """The static graphs as instants saw them, each with the index before which it did."""
        yield from self.past_graphs
        yield END, present


def _placed(error: QueryError, options: QueryOptions) -> QueryError:
    if isinstance(error, EvaluationError) and not error.text:
        return error.in_text(options.text, options.file_name)
    return error
