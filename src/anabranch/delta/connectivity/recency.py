"""Recency tree: a connectivity index with one link per vertex that answers every window and needs no work for
deletions.

Law: that of `base`, by one about cuts: for every tick s, the links at least as young as s have the components of the
edges at least as young as s. So the root in a window is found by a climb that stops at the first link too old, and two
vertices are connected when they climb to the same end. A new edge is inserted by climbing from both ends over links at
least as young as the edge; where the ends differ, the one of lower priority is linked under the other. The link that
this displaces is older: it is inserted again as an edge of its own, until two ends meet or the displaced link is
outside of every window. Parents have the higher priority: where priorities are scrambled, paths stay short whatever the
order of the edges. A late edge is inserted like any other.

It is known that incremental minimum spanning forests can be kept as such a tree: the anti-monotonic trees of Ding, Gu
and Sun, arXiv 2504.04619.

State: two int64 per vertex, no edges.
Work: that of climbing, per pair and per displaced link, which is O(log n) in practice (at most 34 steps were measured
in a path of a million vertices); O(1) to forget; O(n) for all roots, `in_use`, and for renumbering.

Inside, ticks have 31 bits relative to a base. The base moves when a tick does not fit, to where as much room is left
before the oldest living link as behind the newest: with a living window much shorter than 2**31 ticks, once in about
2**30 ticks. The ticks of living links may be up to 2**31 - 3 apart.
"""

from __future__ import annotations

import numpy as np

from anabranch.delta.batch import Ids, Mask
from anabranch.delta.connectivity.base import ConnectivityIndex
from anabranch.delta.kernels import forest as forest_kernels
from anabranch.delta.kernels import recency as kernels
from anabranch.delta.kernels.compiling import Records
from anabranch.delta.operators.base import Size
from anabranch.delta.trace import usable
from anabranch.errors import InternalError

_SMALLEST = 16
_FEW = 1024  # up to this many vertices, a pass over all is not considered
_MOST = 1 << 31
_NEVER = 1 - (1 << 63)
_FARTHEST = 1 << 61  # from 0: differences of ticks stay within 64 bits


class RecencyTree(ConnectivityIndex):
    """The recency tree. A vertex's priority is read at its first edge, and again after `in_use` has reported it as
    free."""

    __slots__ = ("_base", "_forgotten", "_tree")

    def __init__(self) -> None:
        self._tree: Records = np.empty(0, kernels.VERTEX)
        self._base = 0
        self._forgotten = _NEVER
        self._resize(_SMALLEST)

    # --- changes ---

    def insert(self, edges: Ids, ticks: Ids, priorities: Ids) -> None:
        if edges.size != 2 * ticks.size:
            raise InternalError(f"{ticks.size} ticks for edges of shape {edges.shape}")
        if not ticks.size:
            return
        if len(priorities) > len(self._tree):
            self._resize(max(len(priorities), len(self._tree) * 3 // 2))
        flat, ticks, priorities = usable(edges).reshape(-1), usable(ticks), usable(priorities)
        state = self._insert(flat, ticks, priorities)
        if state == kernels.OUT_OF_SPAN:
            self._move_base(ticks)
            state = self._insert(flat, ticks, priorities)
        if state == kernels.BAD_VERTEX:
            raise InternalError(f"edges with vertices {flat.min()} to {flat.max()}, of {len(priorities)}")

    def _insert(self, edges: Ids, ticks: Ids, priorities: Ids) -> int:
        return int(kernels.insert(self._tree, edges, ticks, priorities, self._base, self._forgotten, self._floor()))

    def forget(self, tick: int) -> None:
        self._forgotten = max(self._forgotten, min(int(tick), _FARTHEST))

    def _floor(self) -> int:
        """Return the first relative tick that lives: never 0, which means no link, and behind all ticks where none
        lives."""
        return min(max(self._forgotten - self._base, kernels.FIRST), kernels.LAST + 1)

    def _bound(self, opens: int) -> int:
        if opens < self._forgotten:
            raise InternalError(f"no window opens at {opens}: all before {self._forgotten} is forgotten")
        return min(max(int(opens) - self._base, kernels.FIRST), kernels.LAST + 1) << 32

    def _move_base(self, ticks: Ids) -> None:
        """Move the base so that these ticks and the living links fit."""
        living = ticks[ticks >= self._forgotten]
        oldest, newest = int(living.min()), int(living.max())
        bound = self._floor() << 32
        ends = np.empty(2, np.int64)
        kernels.reach(self._tree, bound, ends)
        if ends[0] <= ends[1]:
            oldest, newest = min(oldest, int(ends[0]) + self._base), max(newest, int(ends[1]) + self._base)
        room = kernels.LAST - kernels.FIRST - (newest - oldest)
        if room < 0 or max(-oldest, newest) > _FARTHEST:
            raise InternalError(f"living edges have ticks from {oldest} to {newest}: more than can be told apart")
        base = oldest - kernels.FIRST - room // 2
        kernels.renumber(self._tree, bound, self._base - base)
        self._base = base

    def _resize(self, count: int) -> None:
        """Make room for this many vertices; new ones are blank, those beyond are dropped."""
        if count > _MOST:
            raise InternalError(f"a recency tree holds at most {_MOST:,} vertices")
        tree = np.empty(count, kernels.VERTEX)
        kept = min(count, len(self._tree))
        tree[:kept] = self._tree[:kept]
        kernels.blank(tree, kept)
        self._tree = tree

    # --- answers ---

    def connected(self, left: Ids, right: Ids, opens: int) -> Mask:
        if len(left) != len(right):
            raise InternalError(f"pairs of {len(left)} and {len(right)} vertices")
        found = np.empty(len(left), np.bool_)
        kernels.connected(self._tree, usable(left), usable(right), self._bound(opens), found)
        return found

    def roots(self, vertices: Ids, opens: int) -> Ids:
        if len(vertices) > max(len(self._tree) // 2, _FEW) and vertices.min() >= 0:
            return self.all_roots(int(vertices.max()) + 1, opens)[vertices]
        found = np.empty(len(vertices), np.int64)
        kernels.roots(self._tree, usable(vertices), self._bound(opens), found)
        return found

    def all_roots(self, count: int, opens: int) -> Ids:
        """Return the root of the component of each vertex before `count`, in one pass."""
        found = np.empty(len(self._tree), np.int64)
        kernels.all_roots(self._tree, self._bound(opens), found)
        return found[:count] if count <= len(found) else np.concatenate([found, np.arange(len(found), count)])

    def linked(self, count: int, opens: int) -> Mask:
        """Return which of the vertices before `count` have an edge to another vertex in the window: they have a link of
        the window or are the parent of one."""
        marks = np.zeros(max(count, len(self._tree)), np.bool_)
        kernels.mark(self._tree, self._bound(opens), marks[: len(self._tree)])
        return marks[:count]

    # --- what is kept ---

    def in_use(self, count: int) -> Mask:
        """Return the vertices in use; blank the others, and release room at the end that is mostly empty."""
        vertices = len(self._tree)
        bound = self._floor() << 32
        marks = np.zeros(max(count, vertices), np.bool_)
        kernels.mark(self._tree, bound, marks[:vertices])
        kernels.clean(self._tree, bound, marks[:vertices])
        end = last_set(marks) + 1
        if max(4 * end, _SMALLEST) < vertices:
            self._resize(max(2 * end, _SMALLEST))
        return marks[:count]

    def size(self) -> Size:
        marks = np.zeros(len(self._tree), np.bool_)
        links = kernels.mark(self._tree, self._floor() << 32, marks)
        return Size(links, self.nbytes)

    @property
    def nbytes(self) -> int:
        return int(self._tree.nbytes)


def last_set(marks: Mask) -> int:
    """Return the last place that is true, or -1."""
    backwards = marks[::-1]
    return len(marks) - 1 - int(backwards.argmax()) if marks.any() else -1


def spanning_forest(edges: Ids, ticks: Ids) -> Ids:
    """Return the numbers, rising, of a minimal set of these edges that keeps the components of every window.

    The set is a spanning forest of the youngest edges: at most one per vertex. Vertices are small numbers: the work is
    O(highest vertex + edges), and that of sorting where ticks differ."""
    if edges.size != 2 * ticks.size:
        raise InternalError(f"{ticks.size} ticks for edges of shape {edges.shape}")
    if not ticks.size:
        return np.empty(0, np.int64)
    if edges.min() < 0:
        raise InternalError(f"an edge with the vertex {edges.min()}")
    order = np.arange(len(ticks))
    if (ticks != ticks[0]).any():
        order = usable(np.argsort(ticks, kind="stable")[::-1])
    chosen = np.empty(len(ticks), np.int64)
    count = forest_kernels.forest(usable(edges).reshape(-1), order, np.arange(edges.max() + 1), chosen)
    return np.sort(chosen[:count])
