"""The recency tree over records: inserting edges, climbing, and passes over all vertices.

A VERTEX has two words side by side, so that both come with one access to memory:

    link       (tick of the link to the parent) << 32 | parent; 0 << 32 | v: a vertex without a link;
               BLANK | v: one without a priority
    priority   taken over from `priorities` when a blank vertex gets an edge

Ticks here are relative to a base; those of links lie in [FIRST, LAST]. Links older than `floor` are dead: they are
never climbed, and may point to any vertex, but never outside of the tree, since looking ahead reads before it asks. A
bound is a tick << 32: a link is at least as large exactly when it is at least as young.

Invariants, over living links: a parent has a higher priority than its child (on a tie, a higher number), so there are
no cycles; for every tick s >= floor, cutting all links older than s leaves exactly the components of the edges at least
as young as s. Hence a climb that stops at the first link older than s ends at the vertex of the highest priority in
the component. Links along a path may get older or younger.
"""

from __future__ import annotations

import numpy as np

from anabranch.delta.batch import Ids, Mask
from anabranch.delta.kernels.compiling import Int, Records, fields, inlined, kernel, prefetch, unsigned

VERTEX = np.dtype(fields("link priority"))
BLANK = -(1 << 62)
FIRST = 1
LAST = (1 << 31) - 2
DONE, BAD_VERTEX, OUT_OF_SPAN = range(3)

_LOW = 0xFFFFFFFF
_AHEAD = 7  # edges per step of looking ahead: link, then the parent's, then the grandparent's


@inlined
def _shortening(tree: Records, vertex: Int, bound: Int) -> Int:
    """Return the end of the path over links of the bound and younger.

    On the way, a vertex is linked to its grandparent and keeps its tick if its parent has a link at least as young: a
    cut that leaves its link leaves the parent's too, and all three stay together."""
    word = tree[unsigned(vertex)].link
    while word >= bound:
        parent = word & _LOW
        above = tree[unsigned(parent)].link
        if above >> 32 >= word >> 32:
            parent = above & _LOW
            tree[unsigned(vertex)].link = (word & ~_LOW) | parent
            above = tree[unsigned(parent)].link
        vertex, word = parent, above
    return vertex


@inlined
def _climbed(tree: Records, vertex: Int, bound: Int) -> Int:
    """Return the same end without writing; a vertex that never had an edge is its own end."""
    if np.uint64(vertex) >= np.uint64(tree.size):
        return vertex
    word = tree[unsigned(vertex)].link
    while word >= bound:
        vertex = word & _LOW
        word = tree[unsigned(vertex)].link
    return vertex


@inlined
def _touch(tree: Records, vertex: Int, priorities: Ids) -> None:
    if tree[unsigned(vertex)].link < 0:
        tree[unsigned(vertex)].link = vertex
        tree[unsigned(vertex)].priority = priorities[unsigned(vertex)]


@inlined
def _link(tree: Records, left: Int, right: Int, tick: Int, floor: Int) -> None:
    """Insert one edge. The new link displaces an older one, which goes on as an edge of its own, until both ends are
    found together or what was displaced is dead."""
    while True:
        bound = tick << 32
        left = _shortening(tree, left, bound)
        right = _shortening(tree, right, bound)
        if left == right:
            return
        mine, other = tree[unsigned(left)].priority, tree[unsigned(right)].priority
        if mine > other or (mine == other and left > right):
            left, right = right, left
        displaced = tree[unsigned(left)].link
        tree[unsigned(left)].link = bound | right
        tick = displaced >> 32
        if tick < floor:
            return
        left = displaced & _LOW


@inlined
def _look_ahead(tree: Records, edges: Ids, at: Int) -> None:
    """Prefetch the links that the edge at this place and those behind it will climb."""
    for end in range(at, at + 2):
        prefetch(tree, edges[unsigned(end + 6 * _AHEAD)])
        prefetch(tree, tree[unsigned(edges[unsigned(end + 4 * _AHEAD)])].link & _LOW)
        parent = tree[unsigned(edges[unsigned(end + 2 * _AHEAD)])].link & _LOW
        prefetch(tree, tree[unsigned(parent)].link & _LOW)


@kernel
def insert(tree: Records, edges: Ids, ticks: Ids, priorities: Ids, base: Int, forgotten: Int, floor: Int) -> Int:
    """Insert all edges (vertices two by two) that are not older than `forgotten`; or say why not, and change nothing.

    `ticks` and `forgotten` are absolute, `floor` is `forgotten` relative to the base."""
    count = np.uint64(priorities.size)
    inside, fits = True, True
    for end in range(edges.size):
        if np.uint64(edges[end]) >= count:
            inside = False
    for number in range(ticks.size):
        tick = ticks[number]
        if tick >= forgotten and (tick < base + FIRST or tick > base + LAST):
            fits = False
    if not inside:
        return BAD_VERTEX
    if not fits:
        return OUT_OF_SPAN
    for number in range(ticks.size):
        if number + 3 * _AHEAD < ticks.size:
            _look_ahead(tree, edges, 2 * number)
        if ticks[number] >= forgotten:
            left, right = edges[unsigned(2 * number)], edges[unsigned(2 * number + 1)]
            _touch(tree, left, priorities)
            _touch(tree, right, priorities)
            _link(tree, left, right, ticks[number] - base, floor)
    return DONE


@kernel
def connected(tree: Records, left: Ids, right: Ids, bound: Int, found: Mask) -> None:
    for pair in range(left.size):
        if pair + _AHEAD < left.size:
            prefetch(tree, left[unsigned(pair + _AHEAD)])
            prefetch(tree, right[unsigned(pair + _AHEAD)])
        found[pair] = _climbed(tree, left[pair], bound) == _climbed(tree, right[pair], bound)


@kernel
def roots(tree: Records, vertices: Ids, bound: Int, found: Ids) -> None:
    for number in range(vertices.size):
        if number + _AHEAD < vertices.size:
            prefetch(tree, vertices[unsigned(number + _AHEAD)])
        found[number] = _climbed(tree, vertices[number], bound)


@kernel
def all_roots(tree: Records, bound: Int, found: Ids) -> None:
    """Write the root of all vertices; `found` has a place for each. First the parent; then each vertex on the way up
    gets its root, so that no path is climbed twice: O(vertices)."""
    for vertex in range(found.size):
        found[vertex] = tree[unsigned(vertex)].link & _LOW if tree[unsigned(vertex)].link >= bound else vertex
    for vertex in range(found.size):
        if vertex + 2 * _AHEAD < found.size:
            prefetch(found, found[unsigned(vertex + 2 * _AHEAD)])
            prefetch(found, found[unsigned(found[unsigned(vertex + _AHEAD)])])
        root = found[vertex]
        while found[unsigned(root)] != root:
            root = found[unsigned(root)]
        below = np.int64(vertex)
        while found[unsigned(below)] != root:
            above = found[unsigned(below)]
            found[unsigned(below)] = root
            below = above


@kernel
def mark(tree: Records, bound: Int, marks: Mask) -> Int:
    """Mark the ends of all links of the bound and younger: exactly the vertices that have such an edge to another one.
    Return the number of links."""
    links = 0
    for vertex in range(marks.size):
        if tree[unsigned(vertex)].link >= bound:
            marks[vertex] = True
            marks[unsigned(tree[unsigned(vertex)].link & _LOW)] = True
            links += 1
    return links


@kernel
def clean(tree: Records, bound: Int, marks: Mask) -> None:
    """Blank the vertices that are not marked, and remove the dead links of the others."""
    for vertex in range(marks.size):
        if not marks[vertex]:
            tree[unsigned(vertex)].link = BLANK | vertex
        elif tree[unsigned(vertex)].link < bound:
            tree[unsigned(vertex)].link = vertex


@kernel
def blank(tree: Records, first: Int) -> None:
    """Blank all vertices from `first` on."""
    for vertex in range(first, tree.size):
        tree[unsigned(vertex)].link = BLANK | vertex
        tree[unsigned(vertex)].priority = 0


@kernel
def reach(tree: Records, bound: Int, ends: Ids) -> None:
    """Write into `ends` the oldest and the youngest tick of the links at least as young as the bound."""
    ends[0], ends[1] = LAST + 1, 0
    for vertex in range(tree.size):
        if tree[unsigned(vertex)].link >= bound:
            ends[0] = min(ends[0], tree[unsigned(vertex)].link >> 32)
            ends[1] = max(ends[1], tree[unsigned(vertex)].link >> 32)


@kernel
def renumber(tree: Records, bound: Int, later: Int) -> None:
    """Add `later` to the ticks of all living links, and remove the dead ones."""
    for vertex in range(tree.size):
        if tree[unsigned(vertex)].link >= bound:
            tree[unsigned(vertex)].link += later << 32
        elif tree[unsigned(vertex)].link >= 0:
            tree[unsigned(vertex)].link = vertex
