"""Connected components of a window, kept up to date: the index behind connected(), component() and componentSize().

Links arrive with the arrivals of their windows. An index without deletions (`delta/connectivity`) decides by the number
of the oldest living arrival which links still count. The index is rebuilt at every change where a source is more than
one sliding window (several windows, a static graph with links of its own, a relationship that changed its ends, a
strict union).

Law: the answers are those of `snapshot.connections` over the present content of the source.
Work per tick: O(links that came x depth of the tree), or O(links) where the index is rebuilt; sizes are O(vertices),
and only where a query reads them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np

from anabranch.algebra import expressions as ex
from anabranch.algebra.operators import Source, Static, Window
from anabranch.algebra.walk import parts_of
from anabranch.delta.batch import NULL, Batch, Ids, Mask
from anabranch.delta.dictionary import Dictionary
from anabranch.delta.operators.base import Size
from anabranch.model.mapping import STATEMENT_ROLES
from anabranch.model.scrambled import scrambled
from anabranch.model.temporal import Duration
from anabranch.model.terms import Iri
from anabranch.model.union import ElementChanges, was_moved
from anabranch.model.values import ElementId, Relationship, Value
from anabranch.planner.choices import IndexName
from anabranch.planner.flow.feeds import Tick
from anabranch.planner.flow.held import WindowArrivals
from anabranch.planner.flow.runtime import Runtime
from anabranch.planner.flow.spec import Leaf, Spec
from anabranch.planner.leaves.budgets import Budgets
from anabranch.snapshot.rdf.values import integer

if TYPE_CHECKING:
    from anabranch.delta.connectivity.vertices import WindowedIndex

ConnectivityQuestion: TypeAlias = Literal["connected", "name", "size"]

_NO_LINKS: Ids = np.empty((0, 3), np.int64)


class LinksLeaf(Leaf):
    """The links of a source. Its only row is a version number that changes whenever the links do."""

    def __init__(self, links: ex.Links, slides: LinkSlides | None, budgets: Budgets, runtime: Runtime) -> None:
        self._links = links
        self._budgets = budgets
        self._slides = slides
        self._ends: deque[tuple[int, int]] = deque()  # per slide: its tick, and the number of the next arrival
        self._dictionary = runtime.dictionary
        parts = parts_of(links.source)
        self._windows = tuple(part for part in parts if isinstance(part, Window))
        self._static = tuple(part for part in parts if isinstance(part, Static))
        self._fits = _Fits(links, runtime.dictionary)
        self._version = 0
        self._sizes: tuple[int, Ids, Ids] | None = None  # version, sorted roots, their components' sizes
        self._counted = len(self._windows) != 1  # rebuilt at each change
        self._names_matter = False
        self._index = self._new_index()
        self._opens = 0
        self._arrived = 0
        self._gone = 0
        self._held = {window: WindowArrivals(3) for window in self._windows}
        self._fixed: dict[Source, tuple[Hashable, Ids]] = {}
        self._relationships: dict[Source, dict[ElementId | None, tuple[int, int, int]]] = {}

    def _new_index(self) -> WindowedIndex:
        from anabranch.delta.connectivity.bic import BicIndex  # few queries need these kernels
        from anabranch.delta.connectivity.recency import RecencyTree
        from anabranch.delta.connectivity.vertices import Vertices, WindowedIndex

        slides = None if self._counted else self._slides
        index = RecencyTree() if slides is None else BicIndex(slides.number)
        # The name of a component depends on a priority per node; the costly priority is needed for names only.
        return WindowedIndex(index, Vertices(self._priorities if self._names_matter else None))

    def _priorities(self, ids: Ids) -> Ids:
        decode = self._dictionary.decode
        return np.fromiter((scrambled(decode(one)) for one in ids.tolist()), np.int64, len(ids))

    # --- keeping up ---

    def advance(self, tick: Tick) -> Batch:
        changed = self._look_at_graphs(tick)
        if self._links.of_triples:
            changed = self._slide_triples(tick, changed)
        else:
            changed = self._slide_relationships(tick, changed)
        if not changed:
            return Batch.empty(1)
        self._budgets.check(self.size)
        self._version += 1
        now = Batch.entering(np.array([[self._version]], np.int64))
        if self._version == 1:
            return now
        return Batch(np.array([[self._version - 1], [self._version]], np.int64), np.array([-1, 1], np.int64))

    def _look_at_graphs(self, tick: Tick) -> bool:
        changed = False
        for part in self._static:
            signature = tick.signature((part,))
            known = self._fixed.get(part)
            if known is None or known[0] != signature:
                facts = self._fits(self._static_links(part, tick))
                changed |= known is not None or bool(len(facts))
                self._fixed[part] = (signature, facts)
        if changed and not self._counted:
            self._count_from_now_on(tick)
        return changed

    def _static_links(self, part: Static, tick: Tick) -> Ids:
        encode = self._dictionary.encode
        if self._links.of_triples:
            flat = [encode(term) for triple in tick.context.triples(part) for term in triple]
        else:
            graph = tick.context.graph(part)
            flat = [number for one in graph.relationships.values() for number in self._encoded(one)]
        return np.array(flat, np.int64).reshape(-1, 3)

    def _encoded(self, one: Relationship) -> tuple[int, int, int]:
        encode = self._dictionary.encode
        return encode(one.source), encode(one.type), encode(one.target)

    def _slide_triples(self, tick: Tick, changed: bool) -> bool:
        for window in self._windows:
            arrived, left = tick.triples(window)
            if self._counted or self._static or self._slides:  # these may have to be rebuilt at any time
                gone = self._held[window].slide(arrived, left)
                changed |= bool(len(arrived) or len(gone))
            if not self._counted:
                changed = self._slide(tick, arrived, left)
        if self._counted and changed:
            self._count_anew([held.facts() for held in self._held.values()])
        return changed

    def _slide_relationships(self, tick: Tick, changed: bool) -> bool:
        for window in self._windows:
            changes = tick.elements(window)
            arrived, left, moved = tick.relationships(window)  # read at every tick, because the slides add up
            if self._counted:
                changed |= self._note(window, changes)
            elif tick.strict or moved or any(map(was_moved, changes.relationships)):
                self._count_from_now_on(tick)
                changed = True
            else:
                changed = self._slide(tick, arrived, left)
        if self._counted and changed:
            self._count_anew(
                [np.array(list(living.values()), np.int64).reshape(-1, 3) for living in self._relationships.values()]
            )
        return changed

    def _slide(self, tick: Tick, arrived: Ids, left: int) -> bool:
        """Advance the only window; return whether the links changed."""
        fits = self._fits.which(arrived)
        numbers = np.flatnonzero(fits) + self._arrived
        self._arrived += len(arrived)
        if self._slides is None:
            ticks, opens = numbers, left  # ticks are the numbers of arrivals
        else:
            slide = tick.context.clock // self._slides.length
            ticks, opens = np.full(len(numbers), slide, np.int64), slide - self._slides.number + 1
            if not self._fits_slides(slide, opens, left):
                self._count_from_now_on(tick)
                return True
        changed = bool(len(numbers)) or opens > self._opens
        self._index.insert(arrived[fits, 0], arrived[fits, 2], ticks)
        self._index.forget(opens)
        self._opens = opens
        return changed

    def _fits_slides(self, slide: int, opens: int, left: int) -> bool:
        """Return whether exactly the arrivals before the slide at which the window opens have left."""
        self._ends.append((slide, self._arrived))
        gone = -1
        while self._ends and self._ends[0][0] < opens:
            gone = self._ends.popleft()[1]
        if gone >= 0:
            self._gone = gone
        return self._gone == left

    def _note(self, window: Window, changes: ElementChanges) -> bool:
        living = self._relationships.setdefault(window, {})
        for was, now in changes.relationships:
            if now is not None:
                living[now.id] = self._encoded(now)
            elif was is not None:
                living.pop(was.id, None)
        return bool(changes.relationships)

    def _count_from_now_on(self, tick: Tick) -> None:
        self._counted = True
        if not self._links.of_triples:
            for window in self._windows:
                graph = tick.context.graph(window)
                self._relationships[window] = {one.id: self._encoded(one) for one in graph.relationships.values()}

    def _count_anew(self, living: list[Ids]) -> None:
        facts = np.concatenate([_NO_LINKS, *map(self._fits, living), *(facts for _, facts in self._fixed.values())])
        self._index = self._new_index()
        self._opens = 0
        self._index.insert(
            np.ascontiguousarray(facts[:, 0]), np.ascontiguousarray(facts[:, 2]), np.zeros(len(facts), np.int64)
        )

    # --- being asked ---

    def answer(self, asked: ConnectivityQuestion) -> Callable[[Ids], Ids]:
        """Return the function from vertices (a column, or two) to the answers about them; the answer about null is
        null."""
        encode = self._dictionary.encode
        yes, no = encode(True), encode(False)
        if asked == "name" and not self._names_matter:
            assert not self._version, "who asks for names asks before there are links"
            self._names_matter = True
            self._index = self._new_index()

        def connected(rows: Ids) -> Ids:
            left, right = np.ascontiguousarray(rows[:, 0]), np.ascontiguousarray(rows[:, 1])
            found = np.where(self._index.connected(left, right, self._opens), yes, no)
            return np.where((left == NULL) | (right == NULL), NULL, found)

        def name(rows: Ids) -> Ids:
            vertices = np.ascontiguousarray(rows[:, 0])
            return np.where(vertices == NULL, NULL, self._index.roots(vertices, self._opens))

        def size(rows: Ids) -> Ids:
            vertices = np.ascontiguousarray(rows[:, 0])
            counts = self._sizes_of(self._index.roots(vertices, self._opens))
            different, places = np.unique(counts, return_inverse=True)
            values: list[Value] = [integer(one) if self._links.of_triples else one for one in different.tolist()]
            return np.where(vertices == NULL, NULL, self._dictionary.encode_all(values)[places])

        return {"connected": connected, "name": name, "size": size}[asked]

    def _sizes_of(self, roots: Ids) -> Ids:
        if self._sizes is None or self._sizes[0] != self._version:
            names, counts = self._index.components(self._opens)
            order = np.argsort(names)
            self._sizes = (self._version, names[order], counts[order])
        _, names, counts = self._sizes
        if not len(names):
            return np.ones(len(roots), np.int64)
        places = np.minimum(np.searchsorted(names, roots), len(names) - 1)
        return np.where(names[places] == roots, counts[places], 1)

    def size(self) -> Size:
        index = self._index.size()
        return Size(index.rows, index.bytes + sum(held.nbytes for held in self._held.values()))


class LinkSlides(NamedTuple):
    """A window that is made of whole slides: their number, and the length of one in microseconds."""

    number: int
    length: int


def _slides_of(links: ex.Links, slide: Duration | None) -> LinkSlides | None:
    windows = [part for part in parts_of(links.source) if isinstance(part, Window)]
    if len(windows) != 1 or slide is None or windows[0].width is None or windows[0].step not in (None, slide):
        return None
    width, length = windows[0].width.fixed_micros, slide.fixed_micros
    if width is None or length is None or width % length:
        return None
    return LinkSlides(width // length, length)


def linked_spec(links: ex.Links, index: IndexName, slide: Duration | None, max_bytes: int | None = None) -> Spec:
    """Return the spec of the index of these links, shared by all operators that read it; BIC needs windows of whole
    slides."""
    slides = _slides_of(links, slide) if index == "bic" else None
    along = "" if links.kinds is None else f" along {', '.join(links.kinds)}"
    budgets = Budgets(None, max_bytes, f"connected(){along}", None, what="the index of")

    def make(runtime: Runtime) -> LinksLeaf:
        runtime.shared[links] = found = LinksLeaf(links, slides, budgets, runtime)
        return found

    return Spec("RecencyTree" if slides is None else "Bic", make, (" links",), reads=parts_of(links.source))


def linked_of(links: ex.Links, runtime: Runtime) -> LinksLeaf:
    found = runtime.shared[links]
    assert isinstance(found, LinksLeaf)
    return found


class _Fits:
    """Selects the links of a source that a question is about."""

    def __init__(self, links: ex.Links, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        kinds = links.kinds
        self._kinds: Ids | None = None
        self._all = kinds is None and not links.of_triples
        if kinds is not None:
            terms: list[Value] = [Iri(one) if links.of_triples else one for one in kinds]
            self._kinds = dictionary.encode_all(terms)
        self._roles = dictionary.encode_all(list(STATEMENT_ROLES))
        self._resources = np.zeros(0, np.bool_)  # by id

    def __call__(self, facts: Ids) -> Ids:
        return facts[self.which(facts)]

    def which(self, facts: Ids) -> Mask:
        if self._all:
            return np.ones(len(facts), np.bool_)
        if self._kinds is not None:
            return np.isin(facts[:, 1], self._kinds)
        mask: Mask = self._is_resource(facts[:, 2]) & ~np.isin(facts[:, 1], self._roles)
        return mask

    def _is_resource(self, ids: Ids) -> Mask:
        known = len(self._resources)
        if len(ids) and ids.max() >= known:
            new = self._dictionary.are_resources(np.arange(known, len(self._dictionary)))
            self._resources = np.concatenate((self._resources, new))
        found: Mask = self._resources[ids]
        return found
