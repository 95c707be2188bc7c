"""One registered query: where it stands, what it last saw, and one step to its next evaluation instant.

Law: the rows at an instant are those of the plain query over the windows' contents at that instant (Seraph Def. 5.8).
Two short cuts keep it. Where no event entered or left a window since the last evaluation, the rows are those of then,
unless the plan reads the clock or a random number. And where such instants would tell nothing (a difference, or an
empty snapshot), the query goes straight on to the next instant at which an event enters or leaves.

Invariant: the state is the next instant's index and the previous rows; all else can be computed again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from random import Random

from anabranch.algebra.operators import Registration, Source, Static, Window
from anabranch.algebra.walk import is_empty_without_events, is_volatile, static_graphs, windows
from anabranch.engine import checkpoint
from anabranch.engine.answers import Answer, Row, bag_difference, row_key
from anabranch.engine.contents import Contents
from anabranch.engine.stream import BEGINNING, END, StreamBuffer
from anabranch.errors import EngineError, EvaluationError, InternalError, QueryError
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


@dataclass(slots=True)
class Surroundings:
    """What queries of one engine have in common."""

    streams: dict[str, StreamBuffer] = field(default_factory=dict)
    static_graphs: dict[str, tuple[int, PropertyGraph]] = field(default_factory=dict)
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
        self.next_index = 0
        self.done = False
        self.failure: QueryError | None = None
        self.pending: deque[Answer] = deque()
        self.warnings: deque[QueryWarning] = deque(maxlen=MAX_WARNINGS)
        self.instants_passed = 0
        self.evaluations = 0
        self.rows_told = 0
        self.previous: list[Row] = []
        self._previous_keys: list[Hashable] | None = None
        self._signature: Hashable = None
        self._last_conflict: Conflict | None = None
        self._needs: tuple[int, dict[str | None, int]] | None = None
        self._keys: list[Hashable] = []

    @property
    def name(self) -> str:
        return self.registration.name

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
        self.next_index = self.instants.index_at_or_after(complete_from)

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
            index = self._enters(window, last_event_time, index)
        return index

    def drained_end(self, last_event_times: Mapping[str, int]) -> int:
        """The first index, at or after the natural end, at which all windows are empty. Times are by stream."""
        index = self.natural_end(max(last_event_times.values(), default=None))
        if self._instants().every is not None:
            for window in self.windows:
                last_event_time = last_event_times.get(self.stream_name(window) or "")
                if last_event_time is not None:
                    index = self._leaves(window, last_event_time, index)
        return index

    def _enters(self, window: Window, event_time: int, low: int) -> int:
        """The first index from `low` on whose window does not end before the event."""
        instants = self._instants()
        guess = instants.index_at_or_after(event_time)
        return instants.search(lambda index: self.bounds_at(window, index).stop > event_time, low, guess)

    def _leaves(self, window: Window, event_time: int, low: int) -> int:
        """The first index from `low` on whose window begins after the event."""
        instants = self._instants()
        guess = instants.index_at_or_after(add_duration(event_time, window.width or Duration()))
        return instants.search(lambda index: self.bounds_at(window, index).first > event_time, low, guess)

    def needs_from(self, stream_name: str) -> int:
        """The smallest event time of a stream that this query may still look at."""
        if self.done:
            return END
        if self.instants is None:
            return BEGINNING
        if self._needs is None or self._needs[0] != self.next_index:
            needs: dict[str | None, int] = {}
            for window in self.windows:
                name = self.stream_name(window)
                needs[name] = min(needs.get(name, END), self.bounds_at(window, self.next_index).first)
            self._needs = (self.next_index, needs)
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

    def content_keys(self) -> list[Hashable]:
        """The shared unions that this query reads."""
        if not self._keys:
            self._keys = [self._content_key(window) for window in self.windows]
        return self._keys

    def _content_key(self, window: Window) -> Hashable:
        # Queries over the same set of streams come to the same instant together, so their windows never step back.
        alignment = (
            (self._instants().starting_at, self.registration.every) if self.options.windows == "formal" else None
        )
        return (
            self.stream_names(),
            self.stream_name(window),
            window.width,
            self.options.windows,
            self.options.conflicts,
            alignment,
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
        found = END if entering is None else self._enters(window, entering, index + 1)
        leaving = None if view.is_empty else view.stream.time_at(first)
        return found if leaving is None else min(found, self._leaves(window, leaving, index + 1))

    def _evaluate(self, at: int, index: int, views: Mapping[Window, _View], around: Surroundings) -> list[Row]:
        def graph(source: Source) -> PropertyGraph:
            if isinstance(source, Static):
                return around.static_graphs[source.name][1]
            view = views[source]
            if view.is_empty:
                return EMPTY_GRAPH
            sliding = around.contents.get(self._content_key(source), self.options.conflicts)
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

    # --- checkpoint -------------------------------------------------------------------------------------------------

    def state(self) -> checkpoint.Json:
        if not self.options.text:
            raise EngineError(f"query `{self.name}` was registered without its text and cannot be checkpointed")
        return {
            "name": self.name,
            "windows": self.options.windows,
            "conflicts": self.options.conflicts,
            "parameters": checkpoint.pack_values(self.options.parameters),
            "now": self.options.now,
            "text": self.options.text,
            "file_name": self.options.file_name,
            "source_name": self.options.source_name,
            "order": self.order,
            "bound_stream": self.bound_stream,
            "starting_at": None if self.instants is None else self.instants.starting_at,
            "next_index": self.next_index,
            "done": self.done,
            "failure": None if self.failure is None else checkpoint.pack_error(self.failure),
            "pending": [checkpoint.pack_answer(answer) for answer in self.pending],
            "instants_passed": self.instants_passed,
            "rows_told": self.rows_told,
            "previous": checkpoint.pack_rows(self.previous if self._tells_differences() else []),
        }

    def _tells_differences(self) -> bool:
        return not self.done and self.registration.output != "snapshot"

    @classmethod
    def from_state(cls, state: checkpoint.Json, recompile: Callable[[QueryOptions], Registration]) -> ContinuousQuery:
        options = QueryOptions(
            state["windows"],
            state["conflicts"],
            checkpoint.unpack_values(state["parameters"]),
            state["now"],
            state["text"],
            state["file_name"],
            state["source_name"],
        )
        query = cls(replace(recompile(options), name=state["name"]), options, state["order"])
        query.bound_stream = state["bound_stream"]
        if state["starting_at"] is not None:
            query.start(state["starting_at"])
        query.next_index = state["next_index"]
        query.done = state["done"]
        if state["failure"] is not None:
            query.failure = checkpoint.unpack_error(state["failure"], options.text, options.file_name)
        columns = query.registration.columns
        query.pending.extend(checkpoint.unpack_answer(answer, query.name, columns) for answer in state["pending"])
        query.instants_passed = state["instants_passed"]
        query.rows_told = state["rows_told"]
        query.previous = checkpoint.unpack_rows(state["previous"])
        return query


def _placed(error: QueryError, options: QueryOptions) -> QueryError:
    if isinstance(error, EvaluationError) and not error.text:
        return error.in_text(options.text, options.file_name)
    return error
