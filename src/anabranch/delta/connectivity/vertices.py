"""Dense numbers for vertices that come and go, and a connectivity index whose vertices are ids.

Law: an id has one number from when the number is given out until it is taken back, and no two ids have the same number
at a time.

State: a hash table with two words per slot, an id and a priority per number. Free numbers are reused, the lowest first,
and all arrays shrink when most of their places are empty: memory follows the vertices in use, however many ids the
stream has.
Work: O(1) per id; O(numbers) for a sweep.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from anabranch.delta.batch import Ids, Mask
from anabranch.delta.connectivity.base import ConnectivityIndex
from anabranch.delta.connectivity.recency import RecencyTree, last_set
from anabranch.delta.kernels import vertices as kernels
from anabranch.delta.kernels.compiling import Records
from anabranch.delta.operators.base import Size
from anabranch.delta.trace import usable
from anabranch.errors import InternalError

Prioritise: TypeAlias = Callable[[Ids], Ids]
"""From distinct ids to distinct priorities; the same ids always have the same priorities."""

_SMALLEST = 16
_MOST = 1 << 31  # numbers: a link of the recency tree has 32 bits for each
_SWEPT_FROM = 1024
_EDGES_PER_SWEEP = 8
_NEVER = -(1 << 63)


class Vertices:
    """Numbers of ids. `prioritise` gives the priorities of new ids; without it they are scrambled ids, distinct and in
    no order. There is `room` for this many ids before anything grows."""

    __slots__ = ("_end", "_free", "_ids", "_priorities", "_prioritise", "_states", "_table", "_waiting")

    def __init__(self, prioritise: Prioritise | None = None, room: int = 0) -> None:
        self._prioritise = prioritise
        self._ids: Ids = np.zeros(max(room, _SMALLEST), np.int64)
        self._priorities: Ids = np.zeros(max(room, _SMALLEST), np.int64)
        self._table: Records = np.zeros(_slots(room // 2), kernels.SLOT)
        self._free: Ids = np.empty(0, np.int64)
        self._states: Records = np.zeros(1, kernels.STATE)
        self._end, self._waiting = self._states["end"], self._states["free"]

    def __len__(self) -> int:
        """Return how many vertices have a number."""
        return int(self._end[0] - self._waiting[0])

    @property
    def count(self) -> int:
        """An upper bound: all numbers are smaller."""
        return int(self._end[0])

    @property
    def ids(self) -> Ids:
        """The id of each number below `count`; arbitrary for a number that was taken back."""
        return self._ids[: self.count]

    @property
    def priorities(self) -> Ids:
        """The priority of each number below `count`; arbitrary for a number that was taken back."""
        return self._priorities[: self.count]

    def numbers_of(self, ids: Ids) -> Ids:
        """Return the numbers of ids; ids without a number get one."""
        ids = usable(ids)
        numbers = np.empty(len(ids), np.int64)
        first, free = self.count, int(self._waiting[0])
        done = 0
        while True:
            done = kernels.number(
                ids, done, numbers, self._table, self._ids, self._priorities, self._free, self._states
            )
            if done == len(ids):
                break
            self._grow()
        if self._prioritise is not None:
            self._set_priorities(np.concatenate([self._free[self._waiting[0] : free], np.arange(first, self.count)]))
        return numbers

    def _set_priorities(self, numbers: Ids) -> None:
        assert self._prioritise is not None
        if len(numbers):
            self._priorities[numbers] = self._prioritise(self._ids[numbers])

    def known(self, ids: Ids) -> Ids:
        """Return the numbers of ids, -1 for ids without a number."""
        numbers = np.empty(len(ids), np.int64)
        kernels.find(usable(ids), numbers, self._table)
        return numbers

    def living(self) -> Ids:
        """Return the numbers that are given out, rising."""
        return np.flatnonzero(self._is_living())

    def _is_living(self) -> Mask:
        living = np.ones(self.count, np.bool_)
        living[self._free[: self._waiting[0]]] = False
        return living

    def sweep(self, in_use: Mask) -> None:
        """Take back all numbers that are not in use."""
        if len(in_use) != self.count:
            raise InternalError(f"{self.count} vertices are swept by a mask of {len(in_use)}")
        living = self._is_living() & in_use
        kept = int(np.count_nonzero(living))
        if kept == len(self):
            return
        end = last_set(living) + 1
        living = living[:end]
        self._free = np.flatnonzero(~living)[::-1].copy()
        self._end[0], self._waiting[0] = end, len(self._free)
        if max(4 * end, _SMALLEST) < len(self._ids):
            self._resize(max(2 * end, _SMALLEST))
        self._plant(living)

    def _grow(self) -> None:
        """Make room for a new id: a number, and a slot."""
        if self.count == len(self._ids) and not self._waiting[0]:
            if len(self._ids) >= _MOST:
                raise InternalError(f"more than {_MOST:,} vertices at a time")
            self._resize(2 * len(self._ids))
        if 4 * len(self) >= 3 * len(self._table):
            self._plant(self._is_living())

    def _resize(self, numbers: int) -> None:
        self._ids = _with_length(self._ids, numbers)
        self._priorities = _with_length(self._priorities, numbers)

    def _plant(self, living: Mask) -> None:
        """Build a table in which these numbers take at most 3 of 8 slots, so that twice as many have room."""
        self._table = np.zeros(_slots(len(self)), kernels.SLOT)
        kernels.plant(self._table, self._ids, living)

    def size(self) -> Size:
        arrays = (self._ids, self._priorities, self._table, self._free)
        return Size(len(self), sum(array.nbytes for array in arrays))


def _slots(numbers: int) -> int:
    """Return the slots of a table in which twice as many numbers have room."""
    slots = 2 * _SMALLEST
    while 3 * slots < 8 * numbers:
        slots *= 2
    return slots


def _with_length(array: Ids, length: int) -> Ids:
    changed = np.zeros(length, np.int64)
    kept = min(length, len(array))
    changed[:kept] = array[:kept]
    return changed


class WindowedIndex:
    """A connectivity index over ids. An unknown id is connected to nothing but itself.

    Numbers are swept when twice as many are given out as were left by the last sweep, when many edges have come since
    then, and when everything is forgotten: O(1) per edge. Loops connect nothing, and no index keeps them; yet they are
    edges, and a vertex with nothing but a loop lives: the newest ticks of loops are kept apart, from the first loop
    on."""

    __slots__ = ("_edges", "_forgotten", "_left", "_loops", "_newest", "index", "vertices")

    def __init__(self, index: ConnectivityIndex, vertices: Vertices | None = None) -> None:
        self.index = index
        self.vertices = Vertices() if vertices is None else vertices
        self._forgotten = _NEVER
        self._newest = _NEVER
        self._loops: Ids = np.empty(0, np.int64)
        self._left = 0  # numbers that the last sweep left
        self._edges = 0  # since then

    # --- changes ---

    def insert(self, left: Ids, right: Ids, ticks: Ids) -> None:
        """Insert edges between ids. Edges older than the last forgotten tick are left out."""
        if not len(left) == len(right) == len(ticks):
            raise InternalError(f"edges of {len(left)} and {len(right)} ends with {len(ticks)} ticks")
        if not len(ticks):
            return
        if ticks.min() < self._forgotten:
            kept = ticks >= self._forgotten
            self.insert(left[kept], right[kept], ticks[kept])
            return
        ends = np.empty((len(ticks), 2), np.int64)
        ends[:, 0], ends[:, 1] = left, right
        edges = self.vertices.numbers_of(ends.reshape(-1)).reshape(-1, 2)
        self.index.insert(edges, ticks, self.vertices.priorities)
        self._note_loops(edges, ticks)
        self._newest = max(self._newest, int(ticks.max()))
        self._edges += len(ticks)
        handed_out = len(self.vertices)
        has_doubled = handed_out >= max(2 * self._left, _SWEPT_FROM)
        if has_doubled or self._edges >= max(_EDGES_PER_SWEEP * handed_out, _SWEPT_FROM):
            self.sweep()

    def _note_loops(self, edges: Ids, ticks: Ids) -> None:
        is_loop = edges[:, 0] == edges[:, 1]
        if is_loop.any():
            if len(self._loops) < self.vertices.count:
                longer = np.full(2 * self.vertices.count, _NEVER, np.int64)
                longer[: len(self._loops)] = self._loops
                self._loops = longer
            np.maximum.at(self._loops, edges[is_loop, 0], ticks[is_loop])

    def forget(self, tick: int) -> None:
        """Declare that no window opens before this tick from now on."""
        self._forgotten = max(self._forgotten, int(tick))
        self.index.forget(tick)
        if self._forgotten > self._newest and len(self.vertices):
            self.sweep()

    def sweep(self) -> None:
        """Take back the numbers of all vertices that no window reaches."""
        count = self.vertices.count
        in_use = self.index.in_use(count)
        self.vertices.sweep(in_use | self._has_loop(count, self._forgotten))
        self._loops = self._loops[: self.vertices.count].copy()
        self._left = len(self.vertices)
        self._edges = 0

    def _has_loop(self, count: int, opens: int) -> Mask:
        found = np.zeros(count, np.bool_)
        found[: len(self._loops)] = self._loops[:count] >= max(opens, _NEVER + 1)
        return found

    # --- answers ---

    def connected(self, left: Ids, right: Ids, opens: int) -> Mask:
        """Return whether the pairs are connected in the window that opens at this tick."""
        from_numbers, to_numbers = self.vertices.known(left), self.vertices.known(right)
        found: Mask = left == right
        both = np.flatnonzero((from_numbers >= 0) & (to_numbers >= 0))
        found[both] = self.index.connected(from_numbers[both], to_numbers[both], opens)
        return found

    def roots(self, ids: Ids, opens: int) -> Ids:
        """Return the id of the root of each vertex's component."""
        numbers = self.vertices.known(ids)
        known = np.flatnonzero(numbers >= 0)
        found = ids.copy()
        found[known] = self.vertices.ids[self.index.roots(numbers[known], opens)]
        return found

    def living(self, opens: int) -> Ids:
        """Return the ids of the vertices that have an edge in the window."""
        return self.vertices.ids[self._living(opens)]

    def components(self, opens: int) -> tuple[Ids, Ids]:
        """Return the components of the vertices that have an edge in the window: the ids of the roots, and the number
        of vertices of each."""
        roots, sizes = self.index.components(self._living(opens), opens)
        return self.vertices.ids[roots], sizes

    def _living(self, opens: int) -> Ids:
        """Return the numbers of the vertices that have an edge in the window, rising."""
        count = self.vertices.count
        return np.flatnonzero(self._linked(count, opens) | self._has_loop(count, opens))

    def _linked(self, count: int, opens: int) -> Mask:
        """Return which vertices have an edge to another vertex: those in a component of several."""
        match self.index:
            case RecencyTree() as tree:
                return tree.linked(count, opens)
            case index:
                numbers = self.vertices.living()
                roots = index.roots(numbers, opens)
                linked = np.zeros(count, np.bool_)
                linked[numbers] = np.bincount(roots, minlength=1)[roots] > 1
                return linked

    def size(self) -> Size:
        """Return how many vertices have a number, and the bytes of all arrays."""
        kept = self.vertices.size()
        return Size(kept.rows, kept.bytes + self.index.nbytes + self._loops.nbytes)
