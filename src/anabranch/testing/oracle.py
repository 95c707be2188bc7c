"""The oracle: the expected answer of each instant, computed from all events, from scratch, every time.

The oracle shares only the plain evaluator and the calendar with the engine: windows, unions and differences are
implemented again in the most direct way, so that a mistake would have to be made twice.

Work: every instant reads every event. This is intended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from anabranch.algebra.operators import DEFAULT_GRAPH, Order, Registration, Source, Static, Window
from anabranch.algebra.walk import root_order, walk, windows
from anabranch.engine.answers import Answer
from anabranch.model.compare import content_key, row_order_key
from anabranch.model.event import Event
from anabranch.model.graph import PropertyGraph
from anabranch.model.instants import add_duration, subtract_duration
from anabranch.model.mapping import Mapping as ModelMapping
from anabranch.model.temporal import Duration
from anabranch.model.terms import Triple
from anabranch.model.triples import TripleGraph
from anabranch.model.values import Node, Path, Relationship, Value
from anabranch.model.windows import EvaluationInstants
from anabranch.snapshot import CompiledPlan, Context, compile_plan
from anabranch.snapshot.context import SkippedRows


def accepted(events: Sequence[Event], lateness: Duration | None = None) -> list[Event]:
    """Return the events that are not late, in the order of time, with ids for relationships that have none."""
    kept: list[Event] = []
    newest: int | None = None
    for event in events:
        if newest is not None:
            watermark = newest if lateness is None else subtract_duration(newest, lateness)
            if event.event_time < watermark:
                continue
        named = tuple(
            one if one.id is not None else replace(one, id=f"~{len(kept)}.{index}")
            for index, one in enumerate(event.relationships)
        )
        kept.append(replace(event, relationships=named))
        newest = event.event_time if newest is None else max(newest, event.event_time)
    return sorted(kept, key=lambda event: event.event_time)


@dataclass(frozen=True)
class Oracle:
    """The law of one query over finished streams."""

    registration: Registration
    streams: Mapping[str, Sequence[Event]]  # as returned by `accepted`
    policy: str = "trailing"
    conflicts: str = "latest"
    parameters: Mapping[str, Value] = field(default_factory=dict)
    graphs: Mapping[str, PropertyGraph | TripleGraph] = field(default_factory=dict)
    now: int | None = None
    mapping: ModelMapping = field(default_factory=ModelMapping)
    clocks: Mapping[str, int] = field(default_factory=dict)  # how far derived streams have come
    on_error: str = "skip"
    _held: dict[int, list[tuple[Value, ...]]] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def starting_at(self) -> int | None:
        """The value of STARTING AT, or the given now, or the first event; None when there is none of these."""
        if self.registration.arrivals is not None:
            return self._arrivals[0] if self._arrivals else None
        if self.registration.starting_at is not None:
            return self.registration.starting_at
        first = self.now if self.now is not None else min(self._times, default=None)
        if first is None or not self.registration.aligned:
            return first
        # Multiples of the duration since the epoch; events from before the epoch begin with the epoch itself.
        instants = EvaluationInstants(0, self.registration.every)
        index = instants.index_at_or_after(first)
        while not self._can_hold(instants.instant(index), first):
            index += 1
        return instants.instant(index)

    def _can_hold(self, at: int, event_time: int) -> bool:
        """Return whether an event is in a window at an instant, or will never be in one that ends later."""
        ends = [self._snapped(window, at) for window in self._windows] or [at]
        return any(event_time < end or (event_time == end and self.policy != "right-open") for end in ends)

    @cached_property
    def _arrivals(self) -> list[int]:
        """The instants of a query that is evaluated as triples arrive."""
        names = dict.fromkeys(self._name(window) for window in self._windows)
        times = sorted(
            event.event_time
            for name in names
            for event in self.streams.get(name or "", ())
            for _ in self.mapping.triples_of(event)
        )
        step = self.registration.arrivals
        counted = times[step - 1 :: step] if step else []
        return sorted({*counted, *(times[-1:] if self.registration.final else ())})

    @cached_property
    def _windows(self) -> tuple[Window, ...]:
        return windows(self.registration.plan)

    @cached_property
    def _plan(self) -> CompiledPlan:
        return compile_plan(self.registration.plan)

    @cached_property
    def _times(self) -> list[int]:
        """The event times that drive the query: those of its streams, or of all when it reads none."""
        if not self._windows:
            return [event.event_time for events in self.streams.values() for event in events]
        return [event.event_time for window in self._windows for event in self._events(window)]

    def _name(self, window: Window) -> str | None:
        return window.stream.name if window.stream.name is not None else next(iter(self.streams), None)

    def _events(self, window: Window) -> Sequence[Event]:
        return self.streams.get(self._name(window) or "", ())

    def instant(self, index: int) -> int:
        assert self.starting_at is not None
        if self.registration.arrivals is not None:
            return self._arrivals[index]
        return self.starting_at if not index else add_duration(self.starting_at, self._every, index)

    @property
    def _every(self) -> Duration:
        assert self.registration.every is not None
        return self.registration.every

    def _snapped(self, window: Window, at: int) -> int:
        """Return the instant whose content a window shows: with a step, the last multiple of the step."""
        if window.step is None:
            return at
        steps = EvaluationInstants(self.registration.starting_at or 0, window.step)
        return steps.instant(steps.index_at_or_after(at + 1) - 1)

    def bounds(self, window: Window, at: int) -> tuple[int, int]:
        """Return win_start and win_end of a window."""
        at = self._snapped(window, at)
        if window.width is None:
            inside = self.content(window, at)
            return (inside[0].event_time if inside else at), at
        if self.policy != "formal":
            return subtract_duration(at, window.width), at
        index = 0
        while True:
            opens_at = self.instant(index)
            closes_at = add_duration(opens_at, window.width)
            if opens_at <= at < closes_at:
                return opens_at, closes_at
            if opens_at > at or self.registration.every is None:
                return at, at
            index += 1

    def content(self, window: Window, at: int) -> list[Event]:
        at = self._snapped(window, at)
        if window.width is None:
            return self._recent(window, at)
        opens_at, closes_at = self.bounds(window, at)
        match self.policy:
            case "trailing":
                return [event for event in self._events(window) if opens_at < event.event_time <= closes_at]
            case "right-open":
                return [event for event in self._events(window) if opens_at <= event.event_time < closes_at]
            case _:
                events = [event for event in self._events(window) if opens_at <= event.event_time < closes_at]
                return [event for event in events if event.event_time <= at]

    def _recent(self, window: Window, at: int) -> list[Event]:
        """Return all events so far, or those of the last triples; the oldest event may be cut to its last triples."""
        came = [
            event
            for event in self._events(window)
            if event.event_time < at or (event.event_time == at and self.policy != "right-open")
        ]
        if window.count is None:
            return came
        single = [Event(event.event_time, triples=(one,)) for event in came for one in self.mapping.triples_of(event)]
        return single[-window.count :]

    def rows(self, index: int) -> list[tuple[Value, ...]]:
        """Evaluate the plain query over the windows' contents. The rows of the last instant are kept, for the
        difference with the next."""
        held = self._held.get(index)
        if held is None:
            self._held.clear()
            held = self._held[index] = self._evaluated(index)
        return held

    def _evaluated(self, index: int) -> list[tuple[Value, ...]]:
        at = self.instant(index)

        def graph(source: Source) -> PropertyGraph:
            if isinstance(source, Static):
                given = self._static(source.name)
                if isinstance(given, PropertyGraph):
                    return given
                return union([self._as_elements(Event(0, triples=tuple(given)))], self.conflicts)
            return union([self._as_elements(event) for event in self.content(source, at)], self.conflicts)

        def triples(source: Source) -> TripleGraph:
            if isinstance(source, Static):
                given = self._static(source.name)
                if isinstance(given, TripleGraph):
                    return given
                whole = Event(0, tuple(given.nodes.values()), tuple(given.relationships.values()))
                return set_of((one, None) for one in self.mapping.triples_of(whole))
            inside = self.content(source, at)
            return set_of((one, event.event_time) for event in inside for one in self.mapping.triples_of(event))

        context = Context(
            graph=graph,
            triple_graph=triples,
            bounds=lambda window: self._reported(at) if window is None else self.bounds(window, at),
            parameters=self.parameters,
            clock=at,
            seed=f"{self.registration.name}/{index}",
        )
        if self.on_error == "skip":
            context.skipped = SkippedRows()
        rows = list(self._plan.run(context))
        if root_order(self.registration.plan) is None:
            rows.sort(key=row_order_key)
        return rows

    def _static(self, name: str) -> PropertyGraph | TripleGraph:
        return self.graphs.get(name, TripleGraph()) if name == DEFAULT_GRAPH else self.graphs[name]

    def _as_elements(self, event: Event) -> Event:
        return Event(event.event_time, *self.mapping.elements_of(event)) if event.triples else event

    def answer(self, index: int) -> Answer | None:
        """Return the answer of the query at an instant; None when it emits nothing."""
        output = self.registration.output
        before = self.rows(index - 1) if index and output != "snapshot" else []
        rows = self.rows(index)
        if output == "entering":
            rows = sorted(minus(rows, before), key=row_order_key)
        elif output == "exiting":
            rows = sorted(minus(before, rows), key=row_order_key)
        if not rows and not self._is_once:
            return None
        at = self.instant(index)
        return Answer.told(self.registration.name, at, output, self._reported(at), self.registration.columns, rows)

    def _reported(self, at: int) -> tuple[int, int]:
        """Return the bounds of the widest window."""
        reported = sorted((self.bounds(window, at) for window in self._windows), key=lambda ends: (ends[0], -ends[1]))
        return reported[0] if reported else (at, at)

    def is_last(self, index: int, until: int | None = None, drain: bool = False) -> bool:
        """Return whether evaluation ends with this instant once the input has ended."""
        if self._is_once:
            return True
        if self.registration.arrivals is not None:
            return index + 1 == len(self._arrivals) or (until is not None and self.instant(index + 1) > until)
        if until is not None:
            return self.instant(index + 1) > until
        at = self.instant(index)
        seen_at_own_instant = self.policy != "right-open" or not self._windows
        ends = [self._snapped(window, at) for window in self._windows] or [at]
        awaited = [*self._times, *self._reached]
        if any(time > end or (time == end and not seen_at_own_instant) for time in awaited for end in ends):
            return False
        return not drain or not any(self.content(window, at) for window in self._windows if window.width is not None)

    @property
    def _reached(self) -> list[int]:
        names = [self._name(window) or "" for window in self._windows]
        return [self.clocks[name] for name in names if name in self.clocks]

    def clock(self, until: int | None = None, drain: bool = False) -> int | None:
        """Return the last instant; where instants depend on arrivals, the time of the last arrival."""
        if self.registration.arrivals is not None:
            return max([*self._times, *self._reached]) if self._times else None
        if self.starting_at is None or (until is not None and self.starting_at > until):
            return None
        return self.instant(next(index for index in range(3_000) if self.is_last(index, until, drain)))

    @property
    def _is_once(self) -> bool:
        return self.registration.every is None and self.registration.arrivals is None

    def events(self, until: int | None = None, drain: bool = False) -> list[Event]:
        """Return the stream that a query with INTO derives from its answers."""
        found = []
        for answer in self.answers(until, drain) or []:
            if self.registration.language == "seraph":
                united = union([_elements(answer.rows)], "latest")
                event = Event(int(answer.at), tuple(united.nodes.values()), tuple(united.relationships.values()))
            else:
                triples = dict.fromkeys(Triple(*row) for row in answer.rows)  # type: ignore[arg-type]
                ordered = any(isinstance(node, Order) for node in walk(self.registration.plan))
                event = Event(int(answer.at), triples=tuple(triples if ordered else sorted(triples)))
            if event.nodes or event.relationships or event.triples:
                found.append(event)
        return found

    def answers(self, until: int | None = None, drain: bool = False, limit: int = 3_000) -> list[Answer] | None:
        """Return all answers up to the end; None when there are more than `limit` instants."""
        if self.starting_at is None or (until is not None and self.starting_at > until):
            return []
        found = []
        for index in range(limit):
            answer = self.answer(index)
            if answer is not None:
                found.append(answer)
            if self.is_last(index, until, drain):
                return found
        return None


def _elements(value: object) -> Event:
    """Return the nodes and relationships of rows of a property graph, as one event."""
    match value:
        case Node():
            return Event(0, (value,))
        case Relationship():
            return Event(0, (), (value,))
        case Path():
            return Event(0, value.nodes, value.relationships)
        case list() | tuple():
            parts = [_elements(item) for item in value]
            nodes = tuple(node for part in parts for node in part.nodes)
            return Event(0, nodes, tuple(one for part in parts for one in part.relationships))
        case _:
            return Event(0)


def set_of(arrivals: Iterable[tuple[Triple, int | None]]) -> TripleGraph:
    """Return triples as a set; a repeated triple counts from its latest arrival."""
    latest: dict[Triple, int | None] = {}
    for triple, time in arrivals:
        latest.pop(triple, None)
        latest[triple] = time
    graph = TripleGraph()
    for triple, time in latest.items():
        graph.add(triple, time)
    return graph


def union(events: Sequence[Event], conflicts: str) -> PropertyGraph:
    """Compute the union by id, by a simple loop; elements are in the order of the latest event that contains them,
    and so are the labels and keys of each."""
    nodes: dict[object, Node] = {}
    relationships: dict[object, Relationship] = {}
    for event in events:
        for node in event.nodes:
            old_node = nodes.pop(node.id, None)
            if old_node is None:
                nodes[node.id] = node
                continue
            if conflicts == "strict" and content_key(old_node) != content_key(node):
                return PropertyGraph()
            labels = [*node.labels, *(label for label in old_node.labels if label not in node.labels)]
            nodes[node.id] = Node(node.id, tuple(labels), _over(old_node.properties, node.properties))
        for one in event.relationships:
            old = relationships.pop(one.id, None)
            if old is None:
                relationships[one.id] = one
                continue
            if conflicts == "strict" and content_key(old) != content_key(one):
                return PropertyGraph()
            properties = _over(old.properties, one.properties)
            relationships[one.id] = Relationship(one.id, one.type, one.source, one.target, properties)
    return PropertyGraph(nodes.values(), relationships.values())


def _over(older: Mapping[str, Value], newer: Mapping[str, Value]) -> dict[str, Value]:
    """Return the newer properties, and behind them the older ones of other keys."""
    return {**newer, **{key: value for key, value in older.items() if key not in newer}}


def minus(rows: Sequence[tuple[Value, ...]], others: Sequence[tuple[Value, ...]]) -> list[tuple[Value, ...]]:
    """Compute the bag difference: each of the others removes one equal row, the first."""
    left = Counter(tuple(content_key(value) for value in row) for row in others)
    result = []
    for row in rows:
        key = tuple(content_key(value) for value in row)
        left[key] -= 1
        if left[key] < 0:
            result.append(row)
    return result
