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
    encoded: EncodedStreams
    mapping: ModelMapping
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
        self._conflicts = options.conflicts
        self._mapping = mapping
        self._feeds: dict[Window, WindowFeed] = {}
        self._graphs: dict[Window, SlidingGraph] = {}
        self._relationships: dict[Window, RelationshipFeed] = {}
        self._graph_feeds: dict[Window, GraphFeed] = {}
        self._disagreements: dict[Window, Disagreements] = {}
        self._runtime = Runtime(encoded.dictionary, options.parameters, skipped)
        self._runtime.strict = options.conflicts == "strict"
        self._runtime.whole = whole
        self.maintained = IncrementalAnswer(planned, self._runtime, listed, clock)
        self.passed: dict[Window, ShownEvents] = {}
        self.ticks = 0

    def fits(self, planned: QueryPlan, encoded: EncodedStreams) -> bool:
        """Return whether these operators belong to a plan, and their ids still have the same meaning."""
        return self._planned is planned and self._generation == encoded.generation

    def shown(self, window: Window) -> tuple[int, int]:
        """Return the positions of the events that a window has shown last."""
        passed = self.passed[window]
        return passed.first, passed.stop

    def slides(
        self, window: Window, stream: StreamBuffer, firsts: Ids, stops: Ids, encoded: EncodedStreams
    ) -> WindowSlides:
        """Return several slides of the operators' only window, given by the positions of its events, at least one. They
        must be handed to `maintained`."""
        self.ticks += len(firsts)
        self.passed[window].follow_slides(firsts, stops)
        if self.maintained.flow.slides_of == "triples":
            return self._feeds[window].slides(stream, firsts, stops, encoded.stream(stream.name, self._mapping))
        graph = encoded.graph(stream.name, self._mapping)
        graph.ask(tuple(self._runtime.properties.get(window, ())))
        return self._graph_feeds[window].slides(stream, firsts, stops, graph)

    def advance(self, context: Context, views: WindowViews, settled: bool = True) -> Conflict | None:
        """Advance the operators to an instant or, where windows are not `settled`, towards it.

        Returns the conflict between events that made a union empty, if there is one.
        """
        slides: dict[Window, TripleSlide] = {}
        changes: dict[Window, ElementChanges] = {}
        carried: dict[Window, RelationshipSlide] = {}
        arrived: dict[Window, GraphSlide] = {}
        conflicts: list[Conflict] = []
        strict = self._runtime.strict

        def triples(window: Window) -> TripleSlide:
            key = whole(window)
            found = slides.get(key)
            if found is None:
                view = views.views[key]
                stream = views.encoded.stream(view.stream.name, views.mapping)
                found = slides[key] = self._feeds.setdefault(key, WindowFeed()).slide(view, stream)
            return found

        def times(window: Window) -> Ids:
            triples(window)
            return self._feeds[whole(window)].times(views.views[whole(window)])

        def elements(window: Window) -> ElementChanges:
            key = whole(window)
            found = changes.get(key)
            if found is None:
                graph = self._graphs.get(key)
                if graph is None:
                    graph = self._graphs[key] = SlidingGraph(self._conflicts, track=True)
                content = graph.slide(views.views[key], views.mapping)
                found = changes[key] = content.changes()
                conflict = content.conflict()
                if conflict is not None:
                    conflicts.append(conflict)
            return found

        def relationships(window: Window) -> RelationshipSlide:
            key = whole(window)
            found = carried.get(key)
            if found is None:
                feed = self._relationships.setdefault(key, RelationshipFeed(views.encoded.dictionary))
                found = carried[key] = feed.slide(views.views[key], views.mapping)
            return found

        def graph(window: Window) -> GraphSlide:
            key = whole(window)
            found = arrived.get(key)
            if found is None:
                view = views.views[key]
                encoded = views.encoded.graph(view.stream.name, views.mapping)
                encoded.ask((*self._runtime.properties.get(key, ()), *((PROPERTIES,) if strict else ())))
                found = self._graph_feeds.setdefault(key, GraphFeed()).slide(view, encoded)
                if strict:
                    known = self._disagreements.setdefault(key, Disagreements(encoded.dictionary))
                    if known.slide(found):
                        conflicts.append(known.conflict(view, views.mapping))
                        found = found._replace(is_void=True)
                arrived[key] = found
            return found

        self.ticks += 1
        for window, view in views.views.items():
            self.passed.setdefault(window, ShownEvents()).follow(*view.positions)
        self.maintained.advance(
            Tick(context, triples, elements, relationships, views.signature, strict, settled, times, graph)
        )
        return conflicts[0] if conflicts else None
