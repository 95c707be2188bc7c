"""Pairs of connected vertices, kept up to date while edges and vertices come and go.

Law: after each change the pairs given out so far are those of a vertex that may begin and another one of its component
that may end. A vertex is paired with itself where it may do both, and lies on a cycle or `standing` is set. Edges have
no direction and come and go in any order.

State: two ends for each edge; for each vertex that may begin or end, its component. The components are recomputed at
each change, in one pass over the edges. The pairs are not: where components split or merge, only the pairs between
their parts are given.
Work per change: O(edges + vertices, with a logarithm) + O(pairs that come or go).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence

import numpy as np

from anabranch.delta.batch import Ids, Mask
from anabranch.delta.kernels.cycles import search_components
from anabranch.delta.operators.base import Size
from anabranch.delta.patterns import BudgetExceeded

_LEAST = 64
_GONE = -1
_NO_PAIRS: Ids = np.empty((0, 2), np.int64)
_NOBODY: Ids = np.empty(0, np.int64)


class ComponentPairs:
    """The pairs of connected vertices. `standing`: every vertex is joined to itself. `circle`: only pairs of a vertex
    with itself are given. Vertices are numbers from 0 on; edges have names."""

    def __init__(self, standing: bool, circle: bool = False, most: int | None = None) -> None:
        self._standing = standing
        self._circle = circle
        self._most = most
        self._places: dict[Hashable, int] = {}
        self._free: list[int] = []
        self._ends: Ids = np.full((_LEAST, 2), _GONE, np.int64)
        self._begin = _Side()
        self._end = _Side()
        self._selves = _NOBODY
        self._living = 0

    def change(
        self,
        lifted: Iterable[Hashable],
        laid: Sequence[tuple[Hashable, int, int]],
        begin: Ids,
        end: Ids,
    ) -> tuple[Ids, Ids]:
        """Remove edges by name and add others by name and ends; `begin` and `end` are all vertices that may now begin
        or end, rising. Returns the pairs that are no longer joined, and the newly joined pairs."""
        for name in lifted:
            place = self._places.pop(name)
            self._ends[place] = _GONE
            self._free.append(place)
        for name, one, other in laid:
            place = self._place(name)  # may replace the array by a larger one
            self._ends[place] = one, other
        vertices, roots, circles = self._components()
        before = (self._begin, self._end)
        after = self._begin, self._end = _Side.of(begin, vertices, roots), _Side.of(end, vertices, roots)
        gone, new = self._settle_selves(vertices, circles)
        if self._circle:
            self._living = len(self._selves)
            return gone, new
        self._living = _count(*after) + len(self._selves)
        if self._most is not None and self._living > self._most:
            raise BudgetExceeded("matches", self._most)
        removed, added = _pairs(before, after), _pairs(after, before)
        return np.concatenate((gone, removed)), np.concatenate((new, added))

    def _place(self, name: Hashable) -> int:
        if not self._free:
            used = len(self._places)
            if used == len(self._ends):
                self._ends = np.concatenate((self._ends, np.full_like(self._ends, _GONE)))
            self._free.append(used)
        place = self._places[name] = self._free.pop()
        return place

    def _components(self) -> tuple[Ids, Ids, Mask]:
        """Return the vertices that have edges, rising; of each, the root of its component, and whether it lies on a
        cycle."""
        ends = self._ends[self._ends[:, 0] != _GONE]
        vertices, numbers = np.unique(ends, return_inverse=True)
        roots, circles = np.zeros(len(vertices), np.int64), np.zeros(len(vertices), np.int64)
        search_components(np.ascontiguousarray(numbers.reshape(-1)), roots, circles)
        return vertices, vertices[roots], circles != 0

    def _settle_selves(self, vertices: Ids, circles: Mask) -> tuple[Ids, Ids]:
        selves = np.intersect1d(self._begin.who, self._end.who)
        if not self._standing:
            selves = np.intersect1d(selves, vertices[circles])
        gone, new = np.setdiff1d(self._selves, selves), np.setdiff1d(selves, self._selves)
        self._selves = selves
        return np.column_stack((gone, gone)), np.column_stack((new, new))

    def size(self) -> Size:
        """Return how many pairs are joined, and about how many bytes are kept."""
        vertices = len(self._begin.who) + len(self._end.who) + len(self._selves)
        return Size(self._living, self._ends.nbytes + 200 * len(self._places) + 16 * vertices)


class _Side:
    """The vertices that may begin, or end, rising, with their components: each named by a vertex of it. A vertex
    without edges is a component of its own."""

    __slots__ = ("components", "who")

    def __init__(self, who: Ids = _NOBODY, components: Ids = _NOBODY) -> None:
        self.who = who
        self.components = components

    @classmethod
    def of(cls, who: Ids, vertices: Ids, roots: Ids) -> _Side:
        return cls(who, _looked_up(who, vertices, roots, who))

    def components_of(self, who: Ids) -> Ids:
        """Return the components of other vertices; _GONE for a vertex that is not on this side."""
        return _looked_up(who, self.who, self.components, np.full(len(who), _GONE, np.int64))


def _looked_up(who: Ids, keys: Ids, values: Ids, otherwise: Ids) -> Ids:
    if not len(keys):
        return otherwise
    places = np.minimum(np.searchsorted(keys, who), len(keys) - 1)
    return np.where(keys[places] == who, values[places], otherwise)


def _count(begin: _Side, end: _Side) -> int:
    """Return how many pairs there are, those of a vertex with itself included."""
    names, counts = np.unique(begin.components, return_counts=True)
    others, more = np.unique(end.components, return_counts=True)
    _, places, other_places = np.intersect1d(names, others, assume_unique=True, return_indices=True)
    return int((counts[places] * more[other_places]).sum())


def _pairs(now: tuple[_Side, _Side], other: tuple[_Side, _Side]) -> Ids:
    """Return the pairs of different vertices that are joined in `now` and not in `other`."""
    sides = [_Parts(side, then.components_of(side.who)) for side, then in zip(now, other, strict=True)]
    begin, end = sides
    _, places, partners = np.intersect1d(begin.names, end.names, assume_unique=True, return_indices=True)
    # A component is unchanged if all of its vertices, on both sides, were of one component.
    whole = (begin.least[places] == begin.most[places]) & (end.least[partners] == end.most[partners])
    whole &= (begin.least[places] == end.least[partners]) & (begin.least[places] != _GONE)
    found = [_NO_PAIRS]
    for place, partner in zip(places[~whole].tolist(), partners[~whole].tolist(), strict=True):
        beginners, before = begin.part(place)
        enders, after = end.part(partner)
        for group, members in _groups(before, beginners):
            some = enders if group == _GONE else enders[after != group]
            pairs = np.column_stack((np.repeat(members, len(some)), np.tile(some, len(members))))
            found.append(pairs[pairs[:, 0] != pairs[:, 1]])
    return np.concatenate(found)


class _Parts:
    """The vertices of one side, component by component, with their components at another time."""

    def __init__(self, side: _Side, then: Ids) -> None:
        order = np.argsort(side.components, kind="stable")
        self._who, self._then = side.who[order], then[order]
        self.names, self._starts = np.unique(side.components[order], return_index=True)
        self.least = np.minimum.reduceat(self._then, self._starts) if len(order) else _NOBODY
        self.most = np.maximum.reduceat(self._then, self._starts) if len(order) else _NOBODY

    def part(self, place: int) -> tuple[Ids, Ids]:
        stop = self._starts[place + 1] if place + 1 < len(self._starts) else len(self._who)
        part = slice(self._starts[place], stop)
        return self._who[part], self._then[part]


def _groups(names: Ids, members: Ids) -> Iterator[tuple[int, Ids]]:
    order = np.argsort(names, kind="stable")
    starts = np.flatnonzero(np.diff(names[order], prepend=_GONE - 1))
    for some in np.split(order, starts[1:]):
        yield int(names[some[0]]), members[some]
