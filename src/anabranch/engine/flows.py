"""A query's operators, fed with the changes of its windows at each instant.

Invariant: feeds and operators begin together and see every instant that changes something; when events have moved in
their stream, or ids have got new meanings, all of it is dropped and built again from the content of the windows.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from anabranch.algebra.operators import Source, Static, Window
from anabranch.delta.batch import Ids
from anabranch.engine.contents import SlidingGraph
from anabranch.engine.disagreements import Disagreements
from anabranch.engine.encoded_graphs import GraphFeed
from anabranch.engine.feeds import EncodedStreams, RelationshipFeed, WindowFeed
from anabranch.engine.maintained import IncrementalAnswer
from anabranch.engine.stream import StreamBuffer
from anabranch.engine.views import WindowEvents
from anabranch.model.graph_block import PROPERTIES
from anabranch.model.mapping import Mapping as ModelMapping
from anabranch.model.union import Conflict, ElementChanges
from anabranch.planner.flow.feeds import GraphSlide, RelationshipSlide, Tick, TripleSlide, WindowSlides
from anabranch.planner.flow.flow import ClockReader
from anabranch.planner.flow.runtime import Runtime
from anabranch.planner.queries import QueryPlan
from anabranch.snapshot import Context
from anabranch.snapshot.context import SkippedRows

if TYPE_CHECKING:
    from anabranch.engine.query_options import QueryOptions


def whole(window: Window) -> Window:
    """Return the window without its filter `keep`, which does not change when events enter and leave it."""
    return window if window.keep is None else replace(window, keep=None)


@dataclass(frozen=True, slots=True)
class WindowViews:
    """The views of a query's windows at an instant."""

    views: Mapping[Window, WindowEvents]
    static_version: Callable[[str], int]

    def signature(self, sources: Sequence[Source]) -> Hashable:
        return tuple(
            self.static_version(one.name) if isinstance(one, Static) else self.views[whole(one)].signature
            for one in sources
        )


@dataclass(slots=True)
class ShownEvents:
    """The events that a window has shown to operators: how many entered and left, and the positions of the rest."""

    first: int = 0
    stop: int = 0
    came: int = 0
    left: int = 0

    def follow(self, first: int, stop: int) -> None:
        held = self.stop - self.first
        self.came += stop - first if first >= self.stop else stop - self.stop
        self.left += held if first >= self.stop else first - self.first
        self.first, self.stop = first, max(first, stop)

    def follow_slides(self, firsts: Ids, stops: Ids) -> None:
        stops = np.maximum.accumulate(np.maximum(firsts, stops))
        before = np.concatenate(([self.stop], stops[:-1]))
        self.came += int((stops - np.maximum(before, firsts)).sum())
        self.left = self.came - int(stops[-1] - firsts[-1])
        self.first, self.stop = int(firsts[-1]), int(stops[-1])


class _FedWindow:
    """One window of a query's operators: its present view, the events that it has shown, a feed for each form in which
    leaves read it, and the changes of the present instant, as far as they were read."""

    __slots__ = (
        "changes",
        "disagreements",
        "feed",
        "graph",
        "graph_feed",
        "relationship_feed",
        "relationships",
        "shown",
        "triples",
        "union",
        "view",
    )

    def __init__(self) -> None:
        self.shown = ShownEvents()
        self.feed = WindowFeed()
        self.graph_feed = GraphFeed()
        self.relationship_feed: RelationshipFeed | None = None
        self.union: SlidingGraph | None = None
        self.disagreements: Disagreements | None = None

    def move(self, view: WindowEvents) -> None:
        self.view = view
        self.triples: TripleSlide | None = None
        self.changes: ElementChanges | None = None
        self.relationships: RelationshipSlide | None = None
        self.graph: GraphSlide | None = None
        self.shown.follow(*view.positions)


class QueryFlow:
    """One query's operators and their feeds. With `whole`, rows between operators hold whole elements."""

    def __init__(
        self,
        planned: QueryPlan,
        options: QueryOptions,
        encoded: EncodedStreams,
        mapping: ModelMapping,
        listed: bool,
        clock: ClockReader | None = None,
        skipped: SkippedRows | None = None,
        whole: bool = False,
    ) -> None:
        self._planned = planned
        self._generation = encoded.generation
        self._encoded = encoded
        self._conflicts = options.conflicts
        self._mapping = mapping
        self._windows: dict[Window, _FedWindow] = {}
        self._of_leaves: dict[int, tuple[Window, _FedWindow]] = {}  # by `id`: hashing a window takes longer
        self._runtime = Runtime(encoded.dictionary, options.parameters, skipped)
        self._runtime.strict = options.conflicts == "strict"
        self._runtime.whole = whole
        self._conflict: Conflict | None = None  # of the present instant
        self.maintained = IncrementalAnswer(planned, self._runtime, listed, clock)
        self.ticks = 0

    def release(self) -> None:
        """Let go of the operators, which know this object and each other. Reference cycles that hold large arrays would
        wait for a collection of all garbage, and hardly any objects are in them."""
        del self.maintained
        self._runtime.shared.clear()

    def fits(self, planned: QueryPlan, encoded: EncodedStreams) -> bool:
        """Return whether these operators belong to a plan, and their ids still have the same meaning."""
        return self._planned is planned and self._generation == encoded.generation

    def passed(self, window: Window) -> ShownEvents | None:
        """Return which events a window has shown; None before the first instant."""
        found = self._windows.get(window)
        return None if found is None else found.shown

    def shown(self, window: Window) -> tuple[int, int]:
        """Return the positions of the events that a window has shown last."""
        shown = self._windows[window].shown
        return shown.first, shown.stop

    def slides(
        self, window: Window, stream: StreamBuffer, firsts: Ids, stops: Ids, encoded: EncodedStreams
    ) -> WindowSlides:
        """Return several slides of the operators' only window, given by the positions of its events, at least one. They
        must be handed to `maintained`."""
        self.ticks += len(firsts)
        fed = self._windows[window]
        fed.shown.follow_slides(firsts, stops)
        if self.maintained.flow.slides_of == "triples":
            return fed.feed.slides(stream, firsts, stops, encoded.stream(stream.name, self._mapping))
        graph = encoded.graph(stream.name, self._mapping)
        graph.ask(tuple(self._runtime.properties.get(window, ())))
        return fed.graph_feed.slides(stream, firsts, stops, graph)

    def advance(self, context: Context, views: WindowViews, settled: bool = True) -> Conflict | None:
        """Advance the operators to an instant or, where windows are not `settled`, towards it.

        Returns the conflict between events that made a union empty, if there is one.
        """
        self.ticks += 1
        self._conflict = None
        for window, view in views.views.items():
            fed = self._windows.get(window)
            if fed is None:
                fed = self._windows[window] = _FedWindow()
            fed.move(view)
        self.maintained.advance(
            Tick(
                context,
                self._triples,
                self._elements,
                self._relationships,
                views.signature,
                self._runtime.strict,
                settled,
                self._times,
                self._graph,
            )
        )
        return self._conflict

    # --- what leaves read of a window -------------------------------------------------------------------------------

    def _fed(self, window: Window) -> _FedWindow:
        known = self._of_leaves.get(id(window))
        if known is None:
            known = self._of_leaves[id(window)] = (window, self._windows[whole(window)])
        return known[1]

    def _triples(self, window: Window) -> TripleSlide:
        fed = self._fed(window)
        if fed.triples is None:
            fed.triples = fed.feed.slide(fed.view, self._encoded.stream(fed.view.stream.name, self._mapping))
        return fed.triples

    def _times(self, window: Window) -> Ids:
        self._triples(window)
        fed = self._fed(window)
        return fed.feed.times(fed.view)

    def _elements(self, window: Window) -> ElementChanges:
        fed = self._fed(window)
        if fed.changes is None:
            fed.union = fed.union or SlidingGraph(self._conflicts, track=True)
            content = fed.union.slide(fed.view, self._mapping)
            fed.changes = content.changes()
            self._conflict = self._conflict or content.conflict()
        return fed.changes

    def _relationships(self, window: Window) -> RelationshipSlide:
        fed = self._fed(window)
        if fed.relationships is None:
            fed.relationship_feed = fed.relationship_feed or RelationshipFeed(self._encoded.dictionary)
            fed.relationships = fed.relationship_feed.slide(fed.view, self._mapping)
        return fed.relationships

    def _graph(self, window: Window) -> GraphSlide:
        fed = self._fed(window)
        if fed.graph is None:
            encoded = self._encoded.graph(fed.view.stream.name, self._mapping)
            strict = self._runtime.strict
            encoded.ask((*self._runtime.properties.get(whole(window), ()), *((PROPERTIES,) if strict else ())))
            fed.graph = fed.graph_feed.slide(fed.view, encoded)
            if strict:
                fed.disagreements = fed.disagreements or Disagreements(encoded.dictionary)
                if fed.disagreements.slide(fed.graph):
                    self._conflict = self._conflict or fed.disagreements.conflict(fed.view, self._mapping)
                    fed.graph = fed.graph._replace(is_void=True)
        return fed.graph
