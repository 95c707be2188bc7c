"""Window contents as a property graph or as triples, shared by the queries that read the same windows.

Queries are evaluated in the order of their instants, so a window that several of them read slides once for all. The
pool holds no events of its own: contents point into the streams' buffers. Events of the other model are mapped.

Invariant: the content for a view is the union of exactly its events, also after a step back (a query that is registered
late may read older windows than the others; the content is then built again). A caller that inserts an event between
events that were seen must call `drop_stream`, because the positions of events change.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Literal, NamedTuple

from anabranch.algebra.operators import TripleFilter
from anabranch.engine.feeds import EncodedStreams
from anabranch.engine.progress import END
from anabranch.engine.views import WindowEvents
from anabranch.errors import InternalError
from anabranch.model.event import Event
from anabranch.model.mapping import Mapping
from anabranch.model.temporal import Duration
from anabranch.model.triple_window import TripleWindow
from anabranch.model.triples import TripleGraph
from anabranch.model.union import ConflictPolicy, WindowContent
from anabranch.model.windows import WindowPolicy

Model = Literal["graph", "triples"]


class ContentKey(NamedTuple):
    """The key of a shared window: two windows with equal keys hold the same events at every instant.

    Queries over the same set of streams reach the same instant together, so their windows never step back; hence
    `fellows`. Formal windows depend on the query's instants, which are `alignment`; steps depend on where they begin.
    """

    model: Model
    stream: str
    fellows: tuple[str, ...]
    width: Duration | None
    last_triples: int | None
    step: tuple[Duration, int] | None
    windows: WindowPolicy
    conflicts: ConflictPolicy
    keep: tuple[TripleFilter, ...] | None
    alignment: tuple[int, Duration | None] | None


class SlidingGraph:
    """One window's union as a property graph, and the range of positions that it holds.

    With `track` it records changes; then its window must not step back.
    """

    def __init__(self, conflicts: ConflictPolicy, track: bool = False) -> None:
        self._conflicts = conflicts
        self._track = track
        self._content = WindowContent(conflicts, track)
        self._first = 0
        self._stop = 0

    def slide(self, view: WindowEvents, mapping: Mapping) -> WindowContent:
        first, stop = view.positions
        if self._track and self._stop <= first:
            self._content.evict(END)
            self._stop = first
        elif first < self._first or stop < self._stop or self._stop <= first:
            self._content = WindowContent(self._conflicts)
            self._stop = first
        elif first > self._first:
            opening = view.stream.time_at(first)
            assert opening is not None, "positions inside the old range are still in the buffer"
            self._content.evict(opening)
        for event in view.stream.between(self._stop, stop):
            self._content.add(Event(event.event_time, *mapping.elements_of(event)) if event.triples else event)
        self._first, self._stop = first, stop
        return self._content


class SlidingTriples:
    """One window's triples, and the range of positions that they come from.

    Triples leave one by one, so an event may be inside in part: a count window may begin inside of an event.
    """

    def __init__(self, keep: tuple[TripleFilter, ...] | None) -> None:
        self._keep = keep
        self._window = TripleWindow(keep)
        self._sizes: deque[int] = deque()
        self._first = 0
        self._skip = 0  # how many triples of the first event are outside
        self._stop = 0

    def slide(self, view: WindowEvents, mapping: Mapping) -> TripleGraph:
        (first, stop), skip = view.positions, view.skip
        cut = 0
        if (first, skip) < (self._first, self._skip) or stop < self._stop or self._stop <= first:
            self._window = TripleWindow(self._keep)
            self._sizes.clear()
            self._stop = first
            cut = skip
        else:
            leaving = skip - self._skip + sum(self._sizes.popleft() for _ in range(first - self._first))
            if leaving:
                self._window.drop(leaving)
        for event in view.stream.between(self._stop, stop):
            triples = mapping.triples_of(event)
            self._sizes.append(len(triples))
            self._window.add(triples[cut:] if cut else triples, event.event_time)
            cut = 0
        self._first, self._skip, self._stop = first, skip, stop
        return self._window.graph()


class Contents:
    """The pool of shared window contents, by key."""

    def __init__(self) -> None:
        self.encoded = EncodedStreams()
        self._by_key: dict[ContentKey, SlidingGraph | SlidingTriples] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def graph(self, key: ContentKey) -> SlidingGraph:
        found = self._by_key.get(key)
        if found is None:
            found = self._by_key[key] = SlidingGraph(key.conflicts)
        if not isinstance(found, SlidingGraph):
            raise InternalError("a window of triples was asked for as a property graph")
        return found

    def triples(self, key: ContentKey) -> SlidingTriples:
        found = self._by_key.get(key)
        if found is None:
            found = self._by_key[key] = SlidingTriples(key.keep)
        if not isinstance(found, SlidingTriples):
            raise InternalError("a window of a property graph was asked for as triples")
        return found

    def keep_only(self, keys: Iterable[ContentKey]) -> None:
        """Drop the windows that no query reads any more."""
        wanted = set(keys)
        for key in [key for key in self._by_key if key not in wanted]:
            del self._by_key[key]

    def drop_stream(self, name: str) -> None:
        """Drop the windows over a stream whose events have moved."""
        self.encoded.drop_stream(name)
        for key in [key for key in self._by_key if key.stream == name]:
            del self._by_key[key]
