"""One running query: its plans, the operators that keep its rows up to date, and the rows.

Law: the rows at an instant are those of the plain query over the windows' contents at that instant (Seraph Def. 5.8).
Operators on changes compute them where the plan has some, the plain evaluator elsewhere.

Invariant: everything except the rows of the last instant can be computed again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from copy import copy

from anabranch.algebra.operators import Registration, Source, Static, Window
from anabranch.algebra.walk import reads_chance, root_order, static_graphs
from anabranch.engine.answers import AnswerRow, bag_difference, row_key
from anabranch.engine.contents import ContentKey, Model
from anabranch.engine.cursor import QueryCursor
from anabranch.engine.flows import QueryFlow, WindowViews, whole
from anabranch.engine.kept import AnswerRows, Disagreement
from anabranch.engine.outbox import QueryOutbox, QueryWarning
from anabranch.engine.plans import Plans
from anabranch.engine.query_options import QueryOptions
from anabranch.engine.surroundings import SharedState
from anabranch.engine.turned import turned_around
from anabranch.engine.views import WindowEvents, widest_bounds
from anabranch.model.compare import row_order_key
from anabranch.model.graph import EMPTY_GRAPH, PropertyGraph
from anabranch.model.triples import TripleGraph, Triples
from anabranch.model.union import Conflict
from anabranch.planner.leaves.walks import TooManyTrails
from anabranch.planner.queries import QueryPlan
from anabranch.snapshot import Context
from anabranch.snapshot.context import SkippedRows
from anabranch.snapshot.rdf.static import PartTooLarge

_NO_TRIPLES = TripleGraph()


class QueryRun:
    """Evaluates a query at the position of its cursor; warnings go to the outbox."""

    def __init__(
        self, registration: Registration, options: QueryOptions, cursor: QueryCursor, outbox: QueryOutbox
    ) -> None:
        self._registration = registration
        self._options = options
        self._cursor = cursor
        self._outbox = outbox
        self.static_names: tuple[str, ...] = tuple(dict.fromkeys(one.name for one in static_graphs(registration.plan)))
        self.plans = Plans(registration, self.static_names, options.evaluator)
        self.kept = AnswerRows()
        self.flow: QueryFlow | None = None
        self.signature: Hashable = None  # of the windows and static graphs at the last evaluation
        self._is_verified = options.evaluator == "own" and not reads_chance(registration.plan)
        self._is_listed_in_order = registration.output == "snapshot" and root_order(registration.plan) is not None
        self._on_changes = True  # whether operators on changes may answer; a copy that looks back recomputes
        self.last_conflict: Conflict | None = None
        self._keys: list[ContentKey] = []

    def resume(self, previous: list[AnswerRow]) -> None:
        """Continue from the rows of the instant before; the windows are read again."""
        self.kept = AnswerRows(previous)
        if self.flow is not None:
            self.flow.release()
        self.flow = None
        self.signature = None
        self._keys = []

    def continue_from(self, other: QueryRun, rows: list[AnswerRow]) -> None:
        """Continue from the position of another run over the same windows, with these rows."""
        signature = other.signature
        self.resume(rows)
        self.signature = signature
        self.last_conflict = other.last_conflict

    def looking_back(self, cursor: QueryCursor, outbox: QueryOutbox) -> QueryRun:
        """Return a copy that recomputes at the position of another cursor."""
        other = copy(self)
        other._cursor, other._outbox = cursor, outbox
        other.last_conflict = None
        other._on_changes = False
        other.flow = None
        other.resume([])
        return other

    def content_keys(self) -> list[ContentKey]:
        """Return the keys of the shared contents that this query reads."""
        if not self._keys:
            self._keys = [self._content_key(window, model) for window, model in self.plans.models]
        return self._keys

    def _content_key(self, window: Window, model: Model) -> ContentKey:
        instants = self._cursor.started()
        formal = self._options.windows == "formal"
        return ContentKey(
            model,
            self._cursor.stream_name(window) or "",
            self._cursor.stream_names(),
            window.width,
            window.count,
            None if window.step is None else (window.step, self._registration.starting_at or 0),
            self._options.windows,
            self._options.conflicts if model == "graph" else "latest",
            window.keep,
            (instants.starting_at, instants.every) if formal else None,
        )

    def planned(self, around: SharedState) -> QueryPlan:
        """Return which parts of the plan run on changes, and which are recomputed."""
        return self.plans.planned(around, self._options.parameters)

    def is_planned(self, around: SharedState) -> bool:
        """Return whether the operators belong to the present plan."""
        return (
            self._on_changes and self.flow is not None and self.flow.fits(self.planned(around), around.contents.encoded)
        )

    def skips_failing_rows(self, around: SharedState) -> bool:
        """Return whether a row on which an expression fails is skipped, and does not end the query."""
        return self._skipped(around) is not None

    def settle(self, flow: QueryFlow, moved: bool) -> None:
        """Take the rows from operators that have advanced by several instants. `moved`: the last changed something."""
        self.kept.follow(flow.maintained, began=False)
        if not moved:
            self.kept.stay()

    def evaluate(self, at: int, index: int, views: Mapping[Window, WindowEvents], around: SharedState) -> None:
        """Compute the rows of this instant: by operators on changes where the plan has some, else from scratch."""
        self._keys = []
        self._outbox.evaluations += 1
        while True:
            try:
                self._find_rows(at, index, views, around)
                return
            except PartTooLarge:
                self.flow = None
                self.plans.without_parts(around)

    def _find_rows(self, at: int, index: int, views: Mapping[Window, WindowEvents], around: SharedState) -> None:
        planned = self.planned(around) if self._on_changes else None
        if planned is None or planned.root is None:
            self.flow = None
            self.kept.replace(self._anew(at, index, views, around))
            self._verify(at, index, views, around)
            return
        encoded = around.contents.encoded
        if self.flow is None or not self.flow.fits(planned, encoded):
            listed = self._registration.output == "snapshot"
            skipped = self._skipped(around)
            self.flow = QueryFlow(planned, self._options, encoded, around.mapping, listed, around.clock, skipped)
        flow = self.flow
        try:
            conflict = flow.advance(self.context(at, index, views, around), WindowViews(views, around.static_version))
        except TooManyTrails:
            self.plans.without_trails()
            self.flow = None
            self.kept.replace(self._anew(at, index, views, around))
            return
        self._warn(at, conflict)
        self.kept.follow(flow.maintained, began=flow.ticks == 1)
        self._verify(at, index, views, around)

    def _anew(self, at: int, index: int, views: Mapping[Window, WindowEvents], around: SharedState) -> list[AnswerRow]:
        return self._listed(self.plans.compiled(around).run(self.context(at, index, views, around)))

    def _listed(self, rows: Iterable[AnswerRow]) -> list[AnswerRow]:
        return list(rows) if self._is_listed_in_order else sorted(rows, key=row_order_key)

    def context(self, at: int, index: int, views: Mapping[Window, WindowEvents], around: SharedState) -> Context:
        """Return the plain evaluator's input at an instant."""

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
            static_version=around.static_version,
            plugin=around.plugin,
            parameters=self._options.parameters,
            clock=at,
            max_steps=around.evaluation.max_steps,
            skipped=self._skipped(around),
            check=around.check,
            # A rerun draws the same numbers.
            seed=f"{self._registration.name}/{index}",
        )

    def _skipped(self, around: SharedState) -> SkippedRows | None:
        """Return the counter of failing rows; None where they end the query."""
        return self._outbox.skipped if (self._options.on_error or around.evaluation.on_error) == "skip" else None

    def _warn(self, at: int, conflict: Conflict | None) -> None:
        if conflict is not None and conflict != self.last_conflict:
            self._outbox.warnings.append(QueryWarning(self._registration.name, at, conflict))
        self.last_conflict = conflict

    def _verify(self, at: int, index: int, views: Mapping[Window, WindowEvents], around: SharedState) -> None:
        """Compare the kept rows with the plain evaluator's rows for the plan as the text has it.

        The plain evaluator reads the same elements in another order: no answer may depend on that order, nor on how it
        was computed.
        """
        every = around.evaluation.verify
        if not every or self._outbox.evaluations % every or not self._on_changes or not self._is_verified:
            return
        context = self.context(at, index, views, around)
        turned = turned_around(context, views, self._options.conflicts, around.mapping)
        rows = self._listed(self.plans.plain().run(turned))
        self._outbox.verified += 1
        kept = self.kept.rows()
        expected, found = [row_key(row) for row in rows], [row_key(row) for row in kept]
        if expected == found or (not self._is_listed_in_order and Counter(expected) == Counter(found)):
            return
        missing = bag_difference(rows, expected, found)
        surplus = bag_difference(kept, found, expected)
        self._outbox.differing += 1
        self._outbox.warnings.append(QueryWarning(self._registration.name, at, Disagreement(missing, surplus)))
