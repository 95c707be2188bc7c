"""D-Tree, the best of the baselines that the BIC paper compares with: spanning trees that stay shallow on average.

After its published description (Chen, Lachish, Helmer, Böhlen 2022, "Dynamic Spanning Trees for Connectivity Queries on
Fully-dynamic Undirected Graphs", PVLDB 15(11)), in the language of the other baselines: numba over arrays.

    state       a parent and the size of its subtree per vertex; the tree edges and the other edges of each vertex, in
                lists from which an edge is taken in constant time
    query       two climbs to the roots; a child of the root with more than half of the tree becomes the root
    insertion   between two trees: the smaller is re-rooted at its end of the edge and hung below the other end. Within
                a tree: where one end is at least two levels deeper, the path above it is cut where this shortens it
                most, and hung below the other end. Whenever a subtree has become more than half of its tree, its vertex
                becomes the root
    deletion    of a tree edge: the smaller of the two trees is searched, level by level, for an edge into the larger
                one; of those of the first level that has any, the one that ends highest up replaces it

Copies of an edge are edges of their own, as in the other baselines; a loop is none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from connectivity_baselines import Small, inner, kernel

from anabranch.delta.batch import Ids, Mask

TREE, REST = 0, 1
_DEEPER = 2  # levels from which on an edge within a tree moves a part of it


class Forest(NamedTuple):
    """By vertex: `parents` and the place `via` of the edge to it (-1: none), `sizes`, and the heads of two lists of
    half-edges. By place of an edge: its `ends`, and `kinds`, which is the list that it is in (-1: none). The half-edges
    of place p are 2p, at the first end, and 2p + 1; `after` and `before` link them."""

    parents: Small
    via: Small
    sizes: Small
    heads: Small
    ends: Small
    kinds: Small
    after: Small
    before: Small
    queue: Small


@inner
def _hook(forest: Forest, place: int, kind: int) -> None:
    """Put an edge into the lists of both ends."""
    forest.kinds[place] = kind
    for side in range(2):
        half, vertex = 2 * place + side, forest.ends[place, side]
        head = forest.heads[kind, vertex]
        forest.after[half], forest.before[half] = head, -1
        if head >= 0:
            forest.before[head] = half
        forest.heads[kind, vertex] = half


@inner
def _unhook(forest: Forest, place: int) -> None:
    kind = forest.kinds[place]
    for side in range(2):
        half = 2 * place + side
        after, before = forest.after[half], forest.before[half]
        if after >= 0:
            forest.before[after] = before
        if before >= 0:
            forest.after[before] = after
        else:
            forest.heads[kind, forest.ends[place, side]] = after
    forest.kinds[place] = -1


@inner
def _climbed(forest: Forest, vertex: int) -> tuple[int, int]:
    """The root and the depth of a vertex."""
    depth = 0
    while forest.parents[vertex] >= 0:
        vertex = forest.parents[vertex]
        depth += 1
    return vertex, depth


@inner
def _re_root(forest: Forest, vertex: int) -> None:
    """Turn the path from a vertex to its root around."""
    child, child_via, child_size = -1, -1, 0
    at = vertex
    while at >= 0:
        up, via, size = forest.parents[at], forest.via[at], forest.sizes[at]
        forest.parents[at], forest.via[at] = child, child_via
        # For now without what was below it on the path: that of the old root is known only at the end.
        forest.sizes[at] = size - child_size
        child, child_via, child_size = at, via, size
        at = up
    at, total = child, 0
    while at >= 0:
        forest.sizes[at] += total
        total = forest.sizes[at]
        at = forest.parents[at]


@inner
def _unlink(forest: Forest, vertex: int) -> int:
    """Cut a vertex from its parent; returns the root of the rest. The edge stays where it is."""
    size, at = forest.sizes[vertex], forest.parents[vertex]
    forest.parents[vertex] = forest.via[vertex] = -1
    root = at
    while at >= 0:
        forest.sizes[at] -= size
        root, at = at, forest.parents[at]
    return root


@inner
def _link(forest: Forest, root: int, vertex: int, place: int, top: int) -> None:
    """Hang a tree, by its root, below a vertex of the tree of `top`. The lowest vertex with more than half becomes
    the root."""
    forest.parents[root], forest.via[root] = vertex, place
    size, half = forest.sizes[root], (forest.sizes[top] + forest.sizes[root]) // 2
    heavy, at = -1, vertex
    while at >= 0:
        forest.sizes[at] += size
        if heavy < 0 and forest.sizes[at] > half:
            heavy = at
        at = forest.parents[at]
    if heavy != top and heavy >= 0:
        _re_root(forest, heavy)


@inner
def _insert(forest: Forest, place: int) -> None:
    low, high = forest.ends[place, 0], forest.ends[place, 1]
    low_root, low_depth = _climbed(forest, low)
    high_root, high_depth = _climbed(forest, high)
    if low_root != high_root:
        if forest.sizes[low_root] > forest.sizes[high_root]:
            low, high, high_root = high, low, low_root
        _re_root(forest, low)
        _hook(forest, place, TREE)
        _link(forest, low, high, place, high_root)
        return
    if low_depth < high_depth:
        low, high, low_depth, high_depth = high, low, high_depth, low_depth
    if low_depth - high_depth < _DEEPER:
        _hook(forest, place, REST)
        return
    cut = low
    for _ in range(low_depth - high_depth - _DEEPER):
        cut = forest.parents[cut]
    spare = forest.via[cut]
    top = _unlink(forest, cut)
    _unhook(forest, spare)
    _hook(forest, spare, REST)
    _re_root(forest, low)
    _hook(forest, place, TREE)
    _link(forest, low, high, place, top)


@inner
def _replacement(forest: Forest, root: int) -> tuple[int, int]:
    """Search a tree for an edge that leaves it; returns the half-edge within it and the other tree's root, or -1 and
    the lowest vertex that has more than half of the tree."""
    queue, heavy = forest.queue, root
    queue[0] = root
    first, last = 0, 1
    while first < last:
        level = last
        found, found_depth, found_root = -1, 1 << 30, -1
        while first < level:
            vertex = queue[first]
            first += 1
            if 2 * forest.sizes[vertex] > forest.sizes[root]:
                heavy = vertex
            half = forest.heads[REST, vertex]
            while half >= 0:
                other, depth = _climbed(forest, forest.ends[half >> 1, 1 - (half & 1)])
                if other != root and depth < found_depth:
                    found, found_depth, found_root = half, depth, other
                half = forest.after[half]
            half = forest.heads[TREE, vertex]
            while half >= 0:
                below = forest.ends[half >> 1, 1 - (half & 1)]
                if forest.via[below] == half >> 1:
                    queue[last] = below
                    last += 1
                half = forest.after[half]
        if found >= 0:
            return found, found_root
    return -1, heavy


@inner
def _delete(forest: Forest, place: int) -> None:
    if forest.kinds[place] < 0:
        return
    was_tree = forest.kinds[place] == TREE
    _unhook(forest, place)
    if not was_tree:
        return
    small = forest.ends[place, 0]
    if forest.via[small] != place:
        small = forest.ends[place, 1]
    large = _unlink(forest, small)
    if forest.sizes[small] > forest.sizes[large]:
        small, large = large, small
    half, at = _replacement(forest, small)
    if half < 0:
        if at != small:
            _re_root(forest, at)
        return
    edge, side = half >> 1, half & 1
    _unhook(forest, edge)
    _re_root(forest, forest.ends[edge, side])
    _hook(forest, edge, TREE)
    _link(forest, forest.ends[edge, side], forest.ends[edge, 1 - side], edge, at)


@kernel
def _slide(edges: Ids, count: int, forest: Forest) -> None:
    """Edges in the places of the oldest ones, which leave."""
    for number in range(len(edges)):
        place = (count + number) % len(forest.ends)
        _delete(forest, place)
        forest.ends[place, 0], forest.ends[place, 1] = edges[number, 0], edges[number, 1]
        if edges[number, 0] != edges[number, 1]:
            _insert(forest, place)


@kernel
def _construct(edges: Ids, forest: Forest) -> None:
    """Breadth-first trees over the edges of an empty forest, with the vertex that halves a tree best as its root."""
    for place in range(len(edges)):
        forest.ends[place, 0], forest.ends[place, 1] = edges[place, 0], edges[place, 1]
        if edges[place, 0] != edges[place, 1]:
            _hook(forest, place, REST)
    queue, seen = forest.queue, np.zeros(len(forest.parents), np.bool_)
    for root in range(len(seen)):
        if seen[root] or forest.heads[REST, root] < 0:
            continue
        seen[root] = True
        queue[0] = root
        first, last = 0, 1
        while first < last:
            vertex = queue[first]
            first += 1
            half = forest.heads[REST, vertex]
            while half >= 0:
                place, after = half >> 1, forest.after[half]
                other = forest.ends[place, 1 - (half & 1)]
                if not seen[other]:
                    seen[other] = True
                    queue[last] = other
                    last += 1
                    _unhook(forest, place)
                    _hook(forest, place, TREE)
                    forest.parents[other], forest.via[other] = vertex, place
                half = after
        for number in range(last - 1, 0, -1):
            forest.sizes[forest.parents[queue[number]]] += forest.sizes[queue[number]]
        heavy = root
        for number in range(last):
            if 2 * forest.sizes[queue[number]] > last:
                heavy = queue[number]
        if heavy != root:
            _re_root(forest, heavy)


@inner
def _balance(forest: Forest, vertex: int) -> None:
    """Let the child of the root above a vertex be the root if it has more than half of the tree."""
    below = -1
    while forest.parents[vertex] >= 0:
        below, vertex = vertex, forest.parents[vertex]
    if below >= 0 and 2 * forest.sizes[below] > forest.sizes[vertex]:
        _re_root(forest, below)


@kernel
def _same_tree(lefts: Ids, rights: Ids, forest: Forest, answers: Mask) -> None:
    for number in range(len(lefts)):
        # Both roots before either tree changes its root: the trees may be one.
        left, _ = _climbed(forest, lefts[number])
        right, _ = _climbed(forest, rights[number])
        answers[number] = left == right
        _balance(forest, lefts[number])
        _balance(forest, rights[number])


class DTree:
    def __init__(self, vertices: int, window: int, slides: int) -> None:
        halves = 2 * window
        self.forest = Forest(
            parents=np.full(vertices, -1, np.int32),
            via=np.full(vertices, -1, np.int32),
            sizes=np.ones(vertices, np.int32),
            heads=np.full((2, vertices), -1, np.int32),
            ends=np.zeros((window, 2), np.int32),
            kinds=np.full(window, -1, np.int32),
            after=np.empty(halves, np.int32),
            before=np.empty(halves, np.int32),
            queue=np.empty(vertices, np.int32),
        )
        self.count = 0

    def slide(self, edges: Ids) -> None:
        _slide(edges, self.count, self.forest)
        self.count += len(edges)

    def fill(self, edges: Ids) -> None:
        """Begin with a whole window in the trees that a construction of its graph makes: shallower ones than those
        that its edges make one after the other."""
        _construct(edges, self.forest)
        self.count += len(edges)

    def ask(self, left: Ids, right: Ids) -> Mask:
        answers = np.empty(len(left), np.bool_)
        _same_tree(left, right, self.forest, answers)
        return answers

    def bytes(self) -> int:
        return sum(array.nbytes for array in self.forest)
