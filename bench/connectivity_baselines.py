"""Other ways to answer connectivity in a sliding window, in the same language as ours: numba over arrays.

    recompute    a union-find over all edges of the window, whenever it is asked (RWC in the BIC paper)
    scipy        connected_components over the window, whenever it is asked
    link-cut     a spanning forest with deletions. Of all spanning forests it keeps that of the youngest edges: a new
                 edge that closes a circle takes the place of the oldest edge on it. So no edge that leaves the window
                 could be replaced by another, and none is searched for, which is what others (HDT, D-Tree) spend
                 most of their time on. Paths are splay trees (Sleator and Tarjan 1983); an edge is a node of its own
    D-Tree       see `connectivity_dtree`
    search       adjacency lists and a depth-first search for every pair that is asked (DFS in the paper)

All are given slides of the same number of edges, `slides` of which are a window.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar, cast

import numpy as np
import numpy.typing as npt
from numba import njit
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from anabranch.delta.batch import Ids, Mask
from anabranch.delta.connectivity.bic import BicIndex
from anabranch.delta.connectivity.recency import RecencyTree, spanning_forest
from anabranch.delta.connectivity.vertices import WindowedIndex

Small = npt.NDArray[np.int32]
Kernel = TypeVar("Kernel", bound=Callable[..., Any])
_SCRAMBLE = 0x9E3779B97F4A7C15 - (1 << 64)  # odd, so that no two ids become the same


def kernel(function: Kernel) -> Kernel:
    """What Python calls."""
    return cast(Kernel, njit(cache=True, error_model="numpy")(function))


def inner(function: Kernel) -> Kernel:
    """What only kernels call: without code for calls from Python, which takes long to compile."""
    options: dict[str, Any] = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return cast(Kernel, njit(**options)(function))


class Contestant(Protocol):
    def slide(self, edges: Ids) -> None:
        """The edges of the next slide; those of the oldest one leave."""

    def ask(self, left: Ids, right: Ids) -> Mask: ...

    def bytes(self) -> int: ...


# --- ours ---


class Recency:
    def __init__(self, vertices: int, window: int, slides: int) -> None:
        self.index, self.slides, self.tick = RecencyTree(), slides, -1
        self.priorities = np.random.default_rng(5).permutation(vertices)

    def slide(self, edges: Ids) -> None:
        self.tick += 1
        self.index.forget(self.tick - self.slides + 1)
        self.index.insert(edges, np.full(len(edges), self.tick), self.priorities)

    def ask(self, left: Ids, right: Ids) -> Mask:
        return self.index.connected(left, right, self.tick - self.slides + 1)

    def bytes(self) -> int:
        return self.index.size().bytes


class RecencyWithIds:
    """Vertices come as any 64-bit numbers, which a hash table makes dense: what the paper's code does as well."""

    def __init__(self, vertices: int, window: int, slides: int) -> None:
        self.windows, self.slides, self.tick = WindowedIndex(RecencyTree()), slides, -1

    def slide(self, edges: Ids) -> None:
        self.tick += 1
        ids = edges * _SCRAMBLE
        self.windows.forget(self.tick - self.slides + 1)
        self.windows.insert(ids[:, 0], ids[:, 1], np.full(len(edges), self.tick))

    def ask(self, left: Ids, right: Ids) -> Mask:
        return self.windows.connected(left * _SCRAMBLE, right * _SCRAMBLE, self.tick - self.slides + 1)

    def bytes(self) -> int:
        return self.windows.size().bytes


class Bic:
    def __init__(self, vertices: int, window: int, slides: int, chunk: int | None = None) -> None:
        self.index, self.slides, self.tick = BicIndex(slides, chunk), slides, -1
        self.priorities = np.random.default_rng(5).permutation(vertices)

    def slide(self, edges: Ids) -> None:
        self.tick += 1
        self.index.insert(edges, np.full(len(edges), self.tick), self.priorities)

    def ask(self, left: Ids, right: Ids) -> Mask:
        return self.index.connected(left, right, self.tick - self.slides + 1)

    def bytes(self) -> int:
        return self.index.size().bytes


# --- the window anew ---


class _Ring:
    """The edges of the window, in no order."""

    def __init__(self, vertices: int, window: int, slides: int) -> None:
        self.vertices = vertices
        self.edges: Small = np.empty((window, 2), np.int32)
        self.count = 0

    def slide(self, edges: Ids) -> None:
        at = self.count % len(self.edges)
        self.edges[at : at + len(edges)] = edges
        self.count += len(edges)

    def window(self) -> Small:
        return self.edges[: min(self.count, len(self.edges))]


@inner
def _find(parents: Small, vertex: int) -> int:
    while parents[vertex] >= 0:
        above = parents[parents[vertex]]
        if above < 0:
            return int(parents[vertex])
        parents[vertex] = above
        vertex = above
    return vertex


@kernel
def _unite_all(edges: Small, parents: Small) -> None:
    parents[:] = -1
    for edge in range(len(edges)):
        left, right = _find(parents, edges[edge, 0]), _find(parents, edges[edge, 1])
        if left != right:
            if parents[left] > parents[right]:
                left, right = right, left
            parents[left] += parents[right]
            parents[right] = left


@kernel
def _same(parents: Small, lefts: Ids, rights: Ids, answers: Mask) -> None:
    for number in range(len(lefts)):
        answers[number] = _find(parents, lefts[number]) == _find(parents, rights[number])


class Recompute(_Ring):
    def __init__(self, vertices: int, window: int, slides: int) -> None:
        super().__init__(vertices, window, slides)
        self.parents: Small = np.empty(vertices, np.int32)

    def ask(self, left: Ids, right: Ids) -> Mask:
        _unite_all(self.window(), self.parents)
        answers = np.empty(len(left), np.bool_)
        _same(self.parents, left, right, answers)
        return answers

    def bytes(self) -> int:
        return self.edges.nbytes + self.parents.nbytes


class Scipy(_Ring):
    def ask(self, left: Ids, right: Ids) -> Mask:
        edges = self.window()
        shape = (self.vertices, self.vertices)
        graph = coo_array((np.ones(len(edges), np.int8), (edges[:, 0], edges[:, 1])), shape=shape)
        labels = connected_components(graph, directed=False)[1]
        answers: Mask = labels[left] == labels[right]
        return answers

    def bytes(self) -> int:
        """Between questions."""
        return self.edges.nbytes


# --- search ---


@kernel
def _attach(edges: Ids, count: int, heads: Ids, after: Ids, ends: Small) -> None:
    """Ends of edges are numbered as they come. Each points to the one before it at the same vertex."""
    for edge in range(len(edges)):
        for side in range(2):
            place = count % len(ends)
            vertex = edges[edge, side]
            after[place], heads[vertex] = heads[vertex], count
            ends[place] = edges[edge, 1 - side]
            count += 1


@kernel
def _search(
    lefts: Ids, rights: Ids, oldest: int, heads: Ids, after: Ids, ends: Small, marks: Ids, mark: int, stack: Small,
    answers: Mask,
) -> None:  # fmt: skip
    """What hangs at a vertex gets older along the way, and stops where it has left the window."""
    for number in range(len(lefts)):
        mark += 1
        stack[0], depth = lefts[number], 1
        marks[lefts[number]] = mark
        answers[number] = lefts[number] == rights[number]
        while depth and not answers[number]:
            depth -= 1
            at = heads[stack[depth]]
            while at >= oldest:
                other = ends[at % len(ends)]
                if marks[other] != mark:
                    marks[other] = mark
                    stack[depth] = other
                    depth += 1
                    if other == rights[number]:
                        answers[number] = True
                at = after[at % len(ends)]


class Search:
    def __init__(self, vertices: int, window: int, slides: int) -> None:
        self.heads: Ids = np.full(vertices, -1, np.int64)
        self.after: Ids = np.empty(2 * window, np.int64)
        self.ends: Small = np.empty(2 * window, np.int32)
        self.marks: Ids = np.zeros(vertices, np.int64)
        self.stack: Small = np.empty(vertices, np.int32)
        self.count = self.asked = 0

    def slide(self, edges: Ids) -> None:
        _attach(edges, self.count, self.heads, self.after, self.ends)
        self.count += 2 * len(edges)

    def ask(self, left: Ids, right: Ids) -> Mask:
        answers = np.empty(len(left), np.bool_)
        oldest = max(0, self.count - len(self.ends))
        _search(
            left, right, oldest, self.heads, self.after, self.ends, self.marks, self.asked, self.stack, answers
        )  # fmt: skip
        self.asked += len(left)
        return answers

    def bytes(self) -> int:
        return sum(array.nbytes for array in (self.heads, self.after, self.ends, self.marks, self.stack))


# --- link-cut tree ---

# rows of `nodes`, one column per vertex and then one per edge of the window; -1: none
UP, LEFT, RIGHT, OLDEST, TURNED = range(5)
_YOUNGEST = 1 << 62


@inner
def _renew(nodes: Small, ages: Ids, node: int) -> None:
    """OLDEST: the edge of the smallest age in the splay subtree."""
    oldest = node
    for side in (LEFT, RIGHT):
        child = nodes[side, node]
        if child >= 0 and ages[nodes[OLDEST, child]] < ages[oldest]:
            oldest = nodes[OLDEST, child]
    nodes[OLDEST, node] = oldest


@inner
def _is_top(nodes: Small, node: int) -> bool:
    """Of its splay tree: its parent does not know it."""
    up = nodes[UP, node]
    return up < 0 or (nodes[LEFT, up] != node and nodes[RIGHT, up] != node)


@inner
def _turn(nodes: Small, node: int) -> None:
    """Hand the reversal of a path down to the children."""
    if nodes[TURNED, node] == 1:
        left, right = nodes[LEFT, node], nodes[RIGHT, node]
        nodes[LEFT, node], nodes[RIGHT, node] = right, left
        if left >= 0:
            nodes[TURNED, left] ^= 1
        if right >= 0:
            nodes[TURNED, right] ^= 1
        nodes[TURNED, node] = 0


@inner
def _rotate(nodes: Small, ages: Ids, node: int) -> None:
    up = nodes[UP, node]
    above = nodes[UP, up]
    side = LEFT if nodes[LEFT, up] == node else RIGHT
    other = LEFT + RIGHT - side
    if not _is_top(nodes, up):
        nodes[LEFT if nodes[LEFT, above] == up else RIGHT, above] = node
    inner = nodes[other, node]
    nodes[side, up] = inner
    if inner >= 0:
        nodes[UP, inner] = up
    nodes[other, node], nodes[UP, up], nodes[UP, node] = up, node, above
    _renew(nodes, ages, up)
    _renew(nodes, ages, node)


@inner
def _splay(nodes: Small, ages: Ids, node: int, stack: Small) -> None:
    depth, at = 0, node
    stack[0] = at
    while not _is_top(nodes, at):
        at = nodes[UP, at]
        depth += 1
        stack[depth] = at
    while depth >= 0:
        _turn(nodes, stack[depth])
        depth -= 1
    while not _is_top(nodes, node):
        up = nodes[UP, node]
        if not _is_top(nodes, up):
            above = nodes[UP, up]
            straight = (nodes[LEFT, up] == node) == (nodes[LEFT, above] == up)
            _rotate(nodes, ages, up if straight else node)
        _rotate(nodes, ages, node)


@inner
def _access(nodes: Small, ages: Ids, node: int, stack: Small) -> None:
    """Let the path from the root to the node be one splay tree, with the node on top."""
    last, at = -1, node
    while at >= 0:
        _splay(nodes, ages, at, stack)
        nodes[RIGHT, at] = last
        _renew(nodes, ages, at)
        last, at = at, nodes[UP, at]
    _splay(nodes, ages, node, stack)


@inner
def _make_root(nodes: Small, ages: Ids, node: int, stack: Small) -> None:
    _access(nodes, ages, node, stack)
    nodes[TURNED, node] ^= 1
    _turn(nodes, node)


@inner
def _root(nodes: Small, ages: Ids, node: int, stack: Small) -> int:
    _access(nodes, ages, node, stack)
    while True:
        _turn(nodes, node)
        if nodes[LEFT, node] < 0:
            break
        node = nodes[LEFT, node]
    _splay(nodes, ages, node, stack)
    return node


@inner
def _cut(nodes: Small, ages: Ids, edge: int, ends: Small, vertices: int, stack: Small) -> None:
    """Take an edge out of the forest, which splits its tree."""
    for side in range(2):
        vertex = ends[edge - vertices, side]
        _make_root(nodes, ages, edge, stack)
        _access(nodes, ages, vertex, stack)
        nodes[LEFT, vertex] = -1
        nodes[UP, edge] = -1
        _renew(nodes, ages, vertex)
    ends[edge - vertices, 0] = -1


@kernel
def _put(edges: Ids, chosen: Mask, count: int, nodes: Small, ages: Ids, ends: Small, stack: Small) -> None:
    """Edges in the places of the oldest ones, which leave. Only the chosen ones are looked at."""
    vertices = nodes.shape[1] - len(ends)
    for number in range(len(edges)):
        place = (count + number) % len(ends)
        edge = vertices + place
        if ends[place, 0] >= 0:
            _cut(nodes, ages, edge, ends, vertices, stack)
        ages[edge] = count + number
        left, right = edges[number, 0], edges[number, 1]
        if left == right or not chosen[number]:
            continue
        _make_root(nodes, ages, left, stack)
        if _root(nodes, ages, right, stack) == left:
            _access(nodes, ages, right, stack)
            _cut(nodes, ages, nodes[OLDEST, right], ends, vertices, stack)
            _make_root(nodes, ages, left, stack)
        _make_root(nodes, ages, edge, stack)
        nodes[UP, left] = edge
        nodes[UP, edge] = right
        ends[place, 0], ends[place, 1] = left, right


@kernel
def _same_tree(nodes: Small, ages: Ids, lefts: Ids, rights: Ids, stack: Small, answers: Mask) -> None:
    for number in range(len(lefts)):
        left = _root(nodes, ages, lefts[number], stack)
        answers[number] = left == _root(nodes, ages, rights[number], stack)


class LinkCut:
    def __init__(self, vertices: int, window: int, slides: int) -> None:
        self.nodes: Small = np.full((5, vertices + window), -1, np.int32)
        self.nodes[OLDEST] = np.arange(vertices + window)
        self.nodes[TURNED] = 0
        self.ages: Ids = np.full(vertices + window, _YOUNGEST, np.int64)
        self.ends: Small = np.full((window, 2), -1, np.int32)
        self.stack: Small = np.empty(vertices + window, np.int32)
        self.count = 0

    def slide(self, edges: Ids) -> None:
        self._put(edges, np.ones(len(edges), np.bool_))

    def fill(self, edges: Ids) -> None:
        """Begin with a whole window; edges that would be displaced are not put in."""
        chosen = np.zeros(len(edges), np.bool_)
        chosen[spanning_forest(edges, np.arange(len(edges)))] = True
        self._put(edges, chosen)

    def _put(self, edges: Ids, chosen: Mask) -> None:
        _put(edges, chosen, self.count, self.nodes, self.ages, self.ends, self.stack)
        self.count += len(edges)

    def ask(self, left: Ids, right: Ids) -> Mask:
        answers = np.empty(len(left), np.bool_)
        _same_tree(self.nodes, self.ages, left, right, self.stack, answers)
        return answers

    def bytes(self) -> int:
        return sum(array.nbytes for array in (self.nodes, self.ages, self.ends, self.stack))
