"""The recency tree over arrays: inserting edges, climbing, and passes over all vertices.

`words` has two int64 per vertex, side by side so that both come with one access to memory:

    words[2v]      (tick of the link to the parent) << 32 | parent; 0 << 32 | v: a vertex without a link;
                   BLANK | v: one without a priority
    words[2v + 1]  the priority, taken over from `priorities` when a blank vertex gets an edge

Ticks here are relative to a base; those of links lie in [FIRST, LAST]. Links older than `floor` are dead: nobody climbs
them, and they may point to any vertex, but never outside of `words`, since looking ahead reads before it asks. What is
called a bound is a tick << 32: a word is at least as large exactly when its link is at least as young.

Invariants, over living links: a parent has a higher priority than its child (on a tie, a higher number), so there are
no cycles; for every tick s >= floor, cutting all links older than s leaves exactly the components of the edges at least
as young as s. Hence a climb that stops at the first link older than s ends at the vertex of the highest priority in
the component. Links along a path may get older or younger.
"""

from __future__ import annotations

import numpy as np

from anabranch.delta.batch import Ids, Mask
from anabranch.delta.kernels.log_store import inlined, kernel, prefetch

BLANK = -(1 << 62)
FIRST = 1
LAST = (1 << 31) - 2
DONE, BAD_VERTEX, OUT_OF_SPAN = range(3)

_LOW = 0xFFFFFFFF
_AHEAD = 7  # edges per step of looking ahead: word, then the parent's, then the grandparent's


@inlined
def _shortening(words: Ids, vertex: int, bound: int) -> int:
    """The end of the path over links of the bound and younger.

    On the way, a vertex whose parent has a link as young as its own, or younger, is hung under its grandparent and
    keeps its tick: a cut that leaves its link leaves the parent's too, and all three stay together."""
    word = words[2 * vertex]
    while word >= bound:
        parent = word & _LOW
        above = words[2 * parent]
        if above >> 32 >= word >> 32:
            parent = above & _LOW
            words[2 * vertex] = (word & ~_LOW) | parent
            above = words[2 * parent]
        vertex, word = parent, above
    return vertex


@inlined
def _climbed(words: Ids, vertex: int, bound: int) -> int:
    """The same, writing nothing; a vertex that never had an edge is its own end."""
    if np.uint64(vertex) >= np.uint64(words.size >> 1):
        return vertex
    word = words[2 * vertex]
    while word >= bound:
        vertex = word & _LOW
        word = words[2 * vertex]
    return vertex


@inlined
def _touch(words: Ids, vertex: int, priorities: Ids) -> None:
    if words[2 * vertex] < 0:
        words[2 * vertex] = vertex
        words[2 * vertex + 1] = priorities[vertex]


@inlined
def _link(words: Ids, left: int, right: int, tick: int, floor: int) -> None:
    """Insert one edge. The new link displaces an older one, which goes on as an edge of its own, until both ends are
    found together or what was displaced is dead."""
    while True:
        bound = tick << 32
        left = _shortening(words, left, bound)
        right = _shortening(words, right, bound)
        if left == right:
            return
        mine, other = words[2 * left + 1], words[2 * right + 1]
        if mine > other or (mine == other and left > right):
            left, right = right, left
        displaced = words[2 * left]
        words[2 * left] = bound | right
        tick = displaced >> 32
        if tick < floor:
            return
        left = displaced & _LOW


@inlined
def _look_ahead(words: Ids, edges: Ids, at: int) -> None:
    """Ask for what the edge at this place and those behind it will climb."""
    for end in range(at, at + 2):
        prefetch(words, 2 * edges[end + 6 * _AHEAD])
        prefetch(words, 2 * (words[2 * edges[end + 4 * _AHEAD]] & _LOW))
        parent = words[2 * edges[end + 2 * _AHEAD]] & _LOW
        prefetch(words, 2 * (words[2 * parent] & _LOW))


@kernel
def insert(words: Ids, edges: Ids, ticks: Ids, priorities: Ids, base: int, forgotten: int, floor: int) -> int:
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
            _look_ahead(words, edges, 2 * number)
        if ticks[number] >= forgotten:
            left, right = edges[2 * number], edges[2 * number + 1]
            _touch(words, left, priorities)
            _touch(words, right, priorities)
            _link(words, left, right, ticks[number] - base, floor)
    return DONE


@kernel
def connected(words: Ids, left: Ids, right: Ids, bound: int, found: Mask) -> None:
    for pair in range(left.size):
        if pair + _AHEAD < left.size:
            prefetch(words, 2 * left[pair + _AHEAD])
            prefetch(words, 2 * right[pair + _AHEAD])
        found[pair] = _climbed(words, left[pair], bound) == _climbed(words, right[pair], bound)


@kernel
def roots(words: Ids, vertices: Ids, bound: int, found: Ids) -> None:
    for number in range(vertices.size):
        if number + _AHEAD < vertices.size:
            prefetch(words, 2 * vertices[number + _AHEAD])
        found[number] = _climbed(words, vertices[number], bound)


@kernel
def all_roots(words: Ids, bound: int, found: Ids) -> None:
    """Of all vertices the root; `found` has a place for each. First the parent; then each vertex on the way up is given
    its root, so that nobody climbs where one has been before: O(vertices)."""
    for vertex in range(found.size):
        found[vertex] = words[2 * vertex] & _LOW if words[2 * vertex] >= bound else vertex
    for vertex in range(found.size):
        if vertex + 2 * _AHEAD < found.size:
            prefetch(found, found[vertex + 2 * _AHEAD])
            prefetch(found, found[found[vertex + _AHEAD]])
        root = found[vertex]
        while found[root] != root:
            root = found[root]
        below = np.int64(vertex)
        while found[below] != root:
            above = found[below]
            found[below] = root
            below = above


@kernel
def mark(words: Ids, bound: int, marks: Mask) -> int:
    """Mark the ends of all links of the bound and younger: exactly the vertices that have such an edge to another one.
    Gives the number of links."""
    links = 0
    for vertex in range(marks.size):
        if words[2 * vertex] >= bound:
            marks[vertex] = True
            marks[words[2 * vertex] & _LOW] = True
            links += 1
    return links


@kernel
def clean(words: Ids, bound: int, marks: Mask) -> None:
    """Blank what is not marked, and take the dead links of what is."""
    for vertex in range(marks.size):
        if not marks[vertex]:
            words[2 * vertex] = BLANK | vertex
        elif words[2 * vertex] < bound:
            words[2 * vertex] = vertex


@kernel
def blank(words: Ids, first: int) -> None:
    """All vertices from `first` on."""
    for vertex in range(first, words.size >> 1):
        words[2 * vertex] = BLANK | vertex
        words[2 * vertex + 1] = 0


@kernel
def reach(words: Ids, bound: int, ends: Ids) -> None:
    """Into `ends` the oldest and the youngest tick of a link that is at least as young as the bound."""
    ends[0], ends[1] = LAST + 1, 0
    for vertex in range(words.size >> 1):
        if words[2 * vertex] >= bound:
            ends[0] = min(ends[0], words[2 * vertex] >> 32)
            ends[1] = max(ends[1], words[2 * vertex] >> 32)


@kernel
def renumber(words: Ids, bound: int, later: int) -> None:
    """Add `later` to the ticks of all living links, and take the dead ones."""
    for vertex in range(words.size >> 1):
        if words[2 * vertex] >= bound:
            words[2 * vertex] += later << 32
        elif words[2 * vertex] >= 0:
            words[2 * vertex] = vertex
