"""The graph of a query's running operators, preceded by its windows and static graphs.

Ids are those of `engine.works`: windows, static graphs, operators (flow order), result. A step that only chooses
columns has no box: its reader is linked to its input.

Invariant: names and words are those of EXPLAIN; every box comes after its inputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from anabranch.algebra import operators as op
from anabranch.algebra import triples as tr
from anabranch.algebra.spell import Speller
from anabranch.algebra.steps import PlanSteps, stream_words, window_words
from anabranch.algebra.walk import reads_triples, sources
from anabranch.engine.flows import whole
from anabranch.engine.query import ContinuousQuery
from anabranch.engine.surroundings import SharedState
from anabranch.insight.recording import Recording
from anabranch.insight.replay import Replay
from anabranch.insight.shapes import BoxKind, OperatorBox, OperatorGraph
from anabranch.planner.flow.flow import placed
from anabranch.planner.flow.spec import Spec
from anabranch.planner.queries import QueryPlan

_OUTPUTS = {"snapshot": "all rows", "entering": "rows that entered", "exiting": "rows that left"}

_RECOMPUTED = ("Recomputed", "RecomputedOverRows")  # specs that the plain evaluator executes


def operator_graph(recording: Recording) -> OperatorGraph:
    """Return the graph of a recorded query; the recording needs no events."""
    replay = Replay(recording)
    return graph_of(replay.query, replay.around)


def graph_of(query: ContinuousQuery, around: SharedState) -> OperatorGraph:
    """Return the graph of a query with its streams and static graphs."""
    return _Drawing(query, query.run.planned(around)).graph()


def shown_columns(spec: Spec) -> tuple[int, ...]:
    """Return the columns of an operator that are shown to users."""
    return tuple(place for place, name in enumerate(spec.columns) if not name.startswith(" "))


class _Drawing:
    def __init__(self, query: ContinuousQuery, planned: QueryPlan) -> None:
        registration = query.registration
        self._query = query
        self._planned = planned
        self._steps = PlanSteps(
            query.options.windows, registration.every, registration.prefixes, reads_triples(registration.plan)
        )
        self._speller = Speller(registration.prefixes, reads_triples(registration.plan))
        self._sources: dict[op.Source, int] = {}
        for window in query.windows:
            self._sources[window] = len(self._sources)
        for name in query.static_names:
            self._sources[op.Static(name)] = len(self._sources)
        self._first = len(self._sources)
        self._placed = [] if planned.root is None else placed(planned.root)

    def graph(self) -> OperatorGraph:
        boxes = [*self._source_boxes(), *self._operators()]
        registration = self._query.registration
        columns = tuple(name for name in registration.columns if not name.startswith(" "))
        said = _OUTPUTS[registration.output]
        if registration.into is not None:
            said += f", into stream {registration.into}"
        places = len(self._placed) or 1
        feeds = self._shown(places - 1)
        result = OperatorBox(self._first + places, "Result", said, (feeds,), "result", columns)
        return OperatorGraph(self._query.name, (*boxes, result))

    def _source_boxes(self) -> Iterator[OperatorBox]:
        options, registration = self._query.options, self._query.registration
        for source, number in self._sources.items():
            if isinstance(source, op.Static):
                yield OperatorBox(number, "Static", f"graph {source.name}", (), "static", ("element",))
            else:
                words = f"{stream_words(source)}; {window_words(source, options.windows, registration.every)}"
                yield OperatorBox(number, "Window", words, (), "window", ("element",))

    def _operators(self) -> Iterator[OperatorBox]:
        if not self._placed:
            plan = self._planned.plan
            yield OperatorBox(
                self._first,
                "Recomputed",
                f"snapshot evaluator: {self._reason(plan)}",
                self._read(sources(plan)),
                "recomputed",
                tuple(name for name in plan.columns if not name.startswith(" ")),
            )
            return
        for place, (spec, inputs) in enumerate(self._placed):
            if spec.picks:
                continue
            shown = tuple(dict.fromkeys(self._shown(one) for one in inputs))
            yield OperatorBox(
                self._first + place,
                spec.name,
                self._detail(spec),
                shown or self._read(spec.asks()),
                self._kind(spec),
                tuple(spec.columns[one] for one in shown_columns(spec)),
            )

    def _shown(self, place: int) -> int:
        """Return the box that represents the operator at a place."""
        while self._placed and self._placed[place][0].picks:
            (place,) = self._placed[place][1]
        return self._first + place

    def _read(self, read: tuple[op.Source, ...]) -> tuple[int, ...]:
        found = (self._sources.get(whole(one) if isinstance(one, op.Window) else one) for one in read)
        return tuple(dict.fromkeys(one for one in found if one is not None))

    def _kind(self, spec: Spec) -> BoxKind:
        if spec.name in _RECOMPUTED:
            once = spec.about is not None and self._once(spec.about)
            return "static" if once else "recomputed"
        read = spec.asks()
        return "static" if read and all(isinstance(one, op.Static) for one in read) else "streaming"

    def _once(self, operator: op.Operator) -> bool:
        mode = self._planned.mode(operator)
        return mode is not None and mode.execution == "once"

    def _reason(self, operator: op.Operator) -> str:
        mode = self._planned.mode(operator)
        return mode.detail if mode is not None and mode.detail else "computed anew"

    def _detail(self, spec: Spec) -> str:
        if spec.says:
            speller = self._speller
            return ", ".join(speller.item(name, one) if name else speller.spell(one) for name, one in spec.says)
        if len(spec.inputs) == 2 and isinstance(spec.about, op.Pattern | tr.GraphPattern):
            shared = [self._speller.name(name) for name in spec.inputs[0].columns if name in spec.inputs[1].columns]
            return f"on {', '.join(shared)}" if shared else "every row with every row"
        about = spec.about
        if about is None:
            return ", ".join(self._speller.name(name) for name in spec.columns)
        said = "; ".join(self._steps.of(self._own(about, spec)).lines)
        if spec.name not in _RECOMPUTED:
            return said
        reason = self._reason(about)
        kind = type(about).__name__
        return f"{kind} {said}: {reason}" if said else f"{kind}: {reason}"

    @staticmethod
    def _own(about: op.Operator, spec: Spec) -> op.Operator:
        """Return the parts of a shared pattern that one of its matchers matches."""
        columns = frozenset(spec.columns)
        match about:
            case tr.GraphPattern(patterns=patterns) if not spec.inputs and spec.name != "Recomputed":
                own = tuple(one for one in patterns if columns & frozenset(one.variables))
                return replace(about, patterns=own or patterns)
            case op.Pattern(paths=paths) if not spec.inputs and spec.name != "Recomputed":
                found = tuple(one for one in paths if columns & frozenset(op.Pattern(about.source, (one,)).columns))
                return replace(about, paths=found or paths)
        return about
