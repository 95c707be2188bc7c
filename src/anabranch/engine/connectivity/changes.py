"""Changes of components from one window to the next: which merged, split, appeared and vanished.

Two windows are compared by their labels: for every vertex with an edge, the root of its component. An old component (of
the earlier window) and a new one (of the later window) are linked when they share a vertex.

    merge      a new component that is linked to several old ones
    split      an old component that is linked to several new ones
    appear     a new component none of whose vertices had an edge before
    vanish     an old component none of whose vertices has an edge now
    grow, shrink, exchange      an old and a new component, linked to each other alone, of which the new one is larger,
                                smaller, or as large with other members

A component that splits while a part of it merges with another is reported twice, as a split and as part of a merge.

State: the labels of one window, three words per vertex. Work per comparison: O(n log n) for n vertices, by arrays,
which sort only one number per vertex; Python objects are made only for reported changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from anabranch.delta.batch import Ids
from anabranch.engine.connectivity.names import VertexId

ChangeKind = Literal["merge", "split", "appear", "vanish", "grow", "shrink", "exchange"]
CHANGE_KINDS: tuple[ChangeKind, ...] = get_args(ChangeKind)
NamesOf = Callable[[Ids], list[VertexId]]


@dataclass(frozen=True, slots=True)
class WindowComponent:
    """A component: the name of the vertex that represents it, and its number of vertices."""

    name: VertexId
    size: int

    def to_dict(self) -> dict[str, VertexId | int]:
        return {"name": self.name, "size": self.size}


@dataclass(frozen=True, slots=True)
class ComponentChange:
    """One change of components: the old ones, and the new ones in their place. Largest first."""

    kind: ChangeKind
    before: tuple[WindowComponent, ...]
    after: tuple[WindowComponent, ...]


class WindowComponents:
    """The components of the vertices that have an edge in a window."""

    __slots__ = ("_names_of", "_roots", "edges", "sizes")

    def __init__(self, roots: Ids, sizes: Ids, edges: int, names_of: NamesOf) -> None:
        order = np.lexsort((roots, -sizes))
        self._roots = roots[order]
        self.sizes: Ids = sizes[order]
        self.edges = edges
        self._names_of = names_of

    def __len__(self) -> int:
        return len(self.sizes)

    def __iter__(self) -> Iterator[WindowComponent]:
        """Yield the components with their names, largest first."""
        for name, size in zip(self._names_of(self._roots), self.sizes.tolist(), strict=True):
            yield WindowComponent(name, size)

    def __repr__(self) -> str:
        return f"Components({len(self)}; {self.vertices} vertices, {self.edges} edges)"

    @property
    def vertices(self) -> int:
        return int(self.sizes.sum())

    @property
    def largest(self) -> int:
        return int(self.sizes[0]) if len(self) else 0

    @property
    def smallest(self) -> int:
        return int(self.sizes[-1]) if len(self) else 0

    @property
    def median(self) -> int:
        return self.percentile(50)

    @property
    def p99(self) -> int:
        return self.percentile(99)

    def percentile(self, share: int) -> int:
        """Return the smallest size that at least `share` % of the components do not exceed; 0 without components."""
        return int(self.sizes[len(self) - max(1, -(-share * len(self) // 100))]) if len(self) else 0


@dataclass(frozen=True, slots=True)
class Labels:
    """Component labels of the vertices with an edge in a window.

    Per vertex: its id, the number that an index gave it (ascending), and the place of its component. Per component: the
    id of its root, and its size.
    """

    vertices: Ids
    numbers: Ids
    places: Ids
    roots: Ids
    sizes: Ids

    @classmethod
    def of(cls, vertices: Ids, numbers: Ids, roots: Ids, ids: Ids) -> Labels:
        """Build labels; `roots` are vertex numbers too, and `ids` maps every number to its id."""
        is_root = np.zeros(len(ids), np.bool_)
        is_root[roots] = True
        places = (np.cumsum(is_root) - 1)[roots]
        own = np.flatnonzero(is_root)
        return cls(vertices, numbers, places, ids[own], np.bincount(places, minlength=len(own)))

    @classmethod
    def none(cls) -> Labels:
        nothing = np.empty(0, np.int64)
        return cls(nothing, nothing, nothing, nothing, nothing)


class ComponentChanges:
    """All changes from one window to another."""

    __slots__ = ("_after", "_before", "_by_after", "_changed", "_from", "_into", "_names_of", "counts")

    def __init__(self, before: Labels, after: Labels, names_of: NamesOf) -> None:
        self._before, self._after, self._names_of = before, after, names_of
        # Links are sorted by the old component; the order `_by_after` sorts them by the new one.
        self._from, self._into, shared = _links(before, after)
        self._by_after = np.argsort(self._into, kind="stable")
        ways_on = np.bincount(self._from, minlength=len(before.roots))
        ways_in = np.bincount(self._into, minlength=len(after.roots))
        alone = (ways_on[self._from] == 1) & (ways_in[self._into] == 1)
        were, are = before.sizes[self._from], after.sizes[self._into]
        kept = alone & ((were != shared) | (are != shared))
        # Appear and merge: places of new components; vanish and split: of old components; else places of links.
        self._changed: dict[ChangeKind, Ids] = {
            "merge": np.flatnonzero(ways_in > 1),
            "split": np.flatnonzero(ways_on > 1),
            "appear": np.flatnonzero(ways_in == 0),
            "vanish": np.flatnonzero(ways_on == 0),
            "grow": np.flatnonzero(kept & (are > were)),
            "shrink": np.flatnonzero(kept & (are < were)),
            "exchange": np.flatnonzero(kept & (are == were)),
        }
        self.counts: dict[ChangeKind, int] = {kind: len(found) for kind, found in self._changed.items()}

    def __iter__(self) -> Iterator[ComponentChange]:
        return self.of(*CHANGE_KINDS)

    def of(self, *kinds: ChangeKind) -> Iterator[ComponentChange]:
        """Yield the changes of some kinds, kind by kind, the largest first in each."""
        for kind in kinds:
            found = self._changed[kind]
            match kind:
                case "merge" | "appear":
                    places = _largest_first(found, self._after.sizes, self._after.roots)
                    links = self._by_after
                    before = self._groups(self._before, self._from[links], self._into[links], places)
                    after = self._singles(self._after, places)
                case "split" | "vanish":
                    places = _largest_first(found, self._before.sizes, self._before.roots)
                    before = self._singles(self._before, places)
                    after = self._groups(self._after, self._into, self._from, places)
                case _:
                    links = _largest_first(found, self._after.sizes[self._into], self._after.roots[self._into])
                    before = self._singles(self._before, self._from[links])
                    after = self._singles(self._after, self._into[links])
            for were, are in zip(before, after, strict=True):
                yield ComponentChange(kind, were, are)

    def _singles(self, labels: Labels, places: Ids) -> list[tuple[WindowComponent, ...]]:
        return [(one,) for one in self._components(labels, places)]

    def _groups(self, labels: Labels, members: Ids, groups: Ids, wanted: Ids) -> list[tuple[WindowComponent, ...]]:
        """Return the members of each wanted group, largest first; `groups` of the members are ascending."""
        starts = np.searchsorted(groups, wanted)
        counts = np.searchsorted(groups, wanted, "right") - starts
        ends = np.cumsum(counts)
        chosen = members[np.repeat(starts - (ends - counts), counts) + np.arange(counts.sum())]
        order = np.lexsort((labels.roots[chosen], -labels.sizes[chosen], np.repeat(np.arange(len(wanted)), counts)))
        components = self._components(labels, chosen[order])
        return [tuple(components[end - count : end]) for end, count in zip(ends.tolist(), counts.tolist(), strict=True)]

    def _components(self, labels: Labels, places: Ids) -> list[WindowComponent]:
        return list(map(WindowComponent, self._names_of(labels.roots[places]), labels.sizes[places].tolist()))


def _links(before: Labels, after: Labels) -> tuple[Ids, Ids, Ids]:
    """Return the pairs of components that share vertices: the places of both, and how many vertices they share."""
    were, are = _common(before, after)
    width = max(len(after.roots), 1)
    links, shared = np.unique(before.places[were] * width + after.places[are], return_counts=True)
    old, new = np.divmod(links, width)
    return old, new, shared


def _common(before: Labels, after: Labels) -> tuple[Ids, Ids]:
    """Return the places, on both sides, of the vertices that both have."""
    if not len(before.numbers) or not len(after.numbers):
        return before.numbers[:0], after.numbers[:0]
    # Nearly all vertices have kept their number.
    place_of = np.full(max(before.numbers[-1], after.numbers[-1]) + 1, -1, np.int64)
    place_of[before.numbers] = np.arange(len(before.numbers))
    found = place_of[after.numbers]
    same = (found >= 0) & (before.vertices[found] == after.vertices)
    were, are = found[same], np.flatnonzero(same)
    left = np.ones(len(before.numbers), np.bool_)
    left[were] = False
    if same.all() or not left.any():
        return were, are
    old, new = np.flatnonzero(left), np.flatnonzero(~same)
    _, first, second = np.intersect1d(before.vertices[old], after.vertices[new], True, return_indices=True)
    return np.concatenate([were, old[first]]), np.concatenate([are, new[second]])


def _largest_first(places: Ids, sizes: Ids, roots: Ids) -> Ids:
    return places[np.lexsort((roots[places], -sizes[places]))]
