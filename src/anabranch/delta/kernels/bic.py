"""BIC over arrays: a forward and a backward union-find, and the bridges between their roots.

One entry per vertex in each of these; -1 says that there is nothing:

    parents   forward: the parent, or of a root minus the size of its tree
    members   forward: the vertices in it, in the order of their arrival
    links     backward: (snapshot of the link to the parent) << 32 | parent, or of a root minus the size of its tree
    seen      backward: the snapshot in which the vertex appears, walking back in time
    near      between: of a backward root the forward root that it is bridged to; -1 outside of what is bridged
    merged    between: union-find over forward roots; a root of it has -1

A snapshot is the number of an instant in the chunk, from the oldest on. Links made while walking back have falling
snapshots, so on a path to the root they fall as well. A link lives in the windows that open at its snapshot or before.

A BRIDGE says that a backward and a forward tree share a vertex:

    lowest    the backward root of that vertex in the snapshot in which it appears
    forward   the forward root of it, as of the last merge
    until     the snapshot in which it appears: a window that opens later does not have it in its backward part
    root      the backward root in the current window, as of the last merge

Invariant: a bridge whose window opens at or before `until` leads, by climbing from `lowest`, to the backward root of
every vertex that it stands for: while the vertex is there, so is its path to `lowest`.
"""

from __future__ import annotations

import numpy as np

from anabranch.delta.batch import Ids, Mask
from anabranch.delta.kernels.compiling import Int, Records, Small, fields, inlined, kernel, prefetch, unsigned

BRIDGE = np.dtype(fields("lowest forward until root", np.int32))

_LOW = 0xFFFFFFFF
_AHEAD = 12  # edges or vertices to look ahead


# --- forward ---


@inlined
def _find(parents: Small, vertex: Int) -> Int:
    """Return the root; every other vertex on the way is linked to its grandparent."""
    parent = np.int64(parents[unsigned(vertex)])
    while parent >= 0:
        above = np.int64(parents[unsigned(parent)])
        if above < 0:
            return parent
        parents[unsigned(vertex)] = above
        vertex = above
        parent = np.int64(parents[unsigned(vertex)])
    return vertex


@kernel
def go_forward(pairs: Small, first: Int, last: Int, parents: Small, members: Small, count: Int) -> Int:
    """Insert the edges from `first` to `last` into the forward buffer of `count` members; return the new count."""
    for edge in range(first, last):
        if edge + _AHEAD < last:
            prefetch(parents, pairs[unsigned(edge + _AHEAD), 0])
            prefetch(parents, pairs[unsigned(edge + _AHEAD), 1])
        left, right = np.int64(pairs[unsigned(edge), 0]), np.int64(pairs[unsigned(edge), 1])
        if left == right:
            continue
        if parents[unsigned(left)] == -1:
            members[unsigned(count)] = left
            count += 1
        if parents[unsigned(right)] == -1:
            members[unsigned(count)] = right
            count += 1
        left, right = _find(parents, left), _find(parents, right)
        if left == right:
            continue
        if parents[unsigned(left)] > parents[unsigned(right)]:
            left, right = right, left
        parents[unsigned(left)] += parents[unsigned(right)]
        parents[unsigned(right)] = left
    return count


@kernel
def clear_forward(parents: Small, members: Small, count: Int) -> None:
    for number in range(count):
        parents[unsigned(members[number])] = -1


# --- backward ---


@inlined
def _climb(links: Ids, vertex: Int, opens: Int) -> Int:
    """Return the root in the snapshot `opens`."""
    bound = opens << 32
    word = links[unsigned(vertex)]
    while word >= bound:
        vertex = word & _LOW
        word = links[unsigned(vertex)]
    return vertex


@inlined
def _find_back(links: Ids, vertex: Int) -> Int:
    """Return the root so far. A vertex is linked to its grandparent where its link and its parent's have the same
    snapshot: both live in the same windows."""
    word = links[unsigned(vertex)]
    while word >= 0:
        parent = word & _LOW
        above = links[unsigned(parent)]
        if above >= 0 and above >> 32 == word >> 32:
            links[unsigned(vertex)] = above
            parent = above & _LOW
            above = links[unsigned(parent)]
        vertex = parent
        word = above
    return vertex


@kernel
def go_back(pairs: Small, ticks: Ids, first: Int, last: Int, instants: Int, links: Ids, seen: Small) -> Int:
    """Insert the edges from `last` back to `first` into the backward buffer. Their ticks rise, with `instants`
    different ones. Edges that connect separate trees are moved to the end, because windows need no others; return where
    they begin."""
    kept = last
    snapshot = instants
    tick = np.int64(0)
    for edge in range(last - 1, first - 1, -1):
        if edge - _AHEAD >= first:
            prefetch(links, pairs[unsigned(edge - _AHEAD), 0])
            prefetch(links, pairs[unsigned(edge - _AHEAD), 1])
        if edge == last - 1 or ticks[unsigned(edge)] != tick:
            tick = ticks[unsigned(edge)]
            snapshot -= 1
        low, high = pairs[unsigned(edge), 0], pairs[unsigned(edge), 1]
        if low == high:
            continue
        left, right = np.int64(low), np.int64(high)
        if links[unsigned(left)] == -1:
            seen[unsigned(left)] = snapshot
        if links[unsigned(right)] == -1:
            seen[unsigned(right)] = snapshot
        left, right = _find_back(links, left), _find_back(links, right)
        if left == right:
            continue
        if links[unsigned(left)] > links[unsigned(right)]:
            left, right = right, left
        links[unsigned(left)] += links[unsigned(right)]
        links[unsigned(right)] = snapshot << 32 | left
        kept -= 1
        pairs[unsigned(kept), 0], pairs[unsigned(kept), 1], ticks[unsigned(kept)] = low, high, tick
    return kept


@kernel
def clear_back(pairs: Small, first: Int, last: Int, links: Ids, seen: Small) -> None:
    """Clear the entries of all ends of these edges."""
    for edge in range(first, last):
        for end in range(2):
            links[unsigned(pairs[unsigned(edge), end])] = -1
            seen[unsigned(pairs[unsigned(edge), end])] = -1


# --- between ---


@inlined
def _find_merged(merged: Small, root: Int) -> Int:
    parent = np.int64(merged[unsigned(root)])
    while parent >= 0:
        above = np.int64(merged[unsigned(parent)])
        if above >= 0:
            merged[unsigned(root)] = above
        root = parent
        parent = above
    return root


@kernel
def clear_between(bridges: Records, count: Int, near: Small, merged: Small) -> None:
    """Undo the entries of `merge` in `near` and `merged`."""
    if count * 8 > near.size:  # going over all of them in their order is quicker
        near[:] = -1
        merged[:] = -1
        return
    for number in range(count):
        near[unsigned(bridges[number].root)] = -1
        merged[unsigned(bridges[number].forward)] = -1


@kernel
def bridge(
    bridges: Records, count: Int, opens: Int, members: Small, first: Int, last: Int, links: Ids, seen: Small
) -> Int:
    """Add bridges of the members from `first` to `last` to the `count` existing ones; return the new count."""
    for number in range(first, last):
        if number + _AHEAD < last:
            prefetch(seen, members[unsigned(number + _AHEAD)])
            prefetch(links, members[unsigned(number + _AHEAD)])
        vertex = members[number]
        if seen[unsigned(vertex)] >= opens:
            new = bridges[unsigned(count)]
            new.lowest = _climb(links, np.int64(vertex), np.int64(seen[unsigned(vertex)]))
            new.forward, new.until = vertex, seen[unsigned(vertex)]
            count += 1
    return count


@kernel
def tidy(bridges: Records, count: Int, parents: Small, near: Small) -> Int:
    """Keep, of bridges with the same `lowest` and `forward`, the one with the latest `until`; return how many are left.

    Only the largest forward tree met so far is remembered by `lowest`, so that copies among the others may stay."""
    left = 0
    for number in range(count):
        lowest, until = bridges[number].lowest, bridges[number].until
        forward = _find(parents, np.int64(bridges[number].forward))
        other = near[unsigned(lowest)]
        if other >= 0 and bridges[unsigned(other)].forward == forward:
            bridges[unsigned(other)].until = max(until, bridges[unsigned(other)].until)
            continue
        if other < 0 or parents[unsigned(forward)] < parents[unsigned(bridges[unsigned(other)].forward)]:
            near[unsigned(lowest)] = left
        kept = bridges[left]
        kept.lowest, kept.forward, kept.until = lowest, forward, until
        left += 1
    for number in range(left):
        near[unsigned(bridges[number].lowest)] = -1
    return left


@kernel
def merge(bridges: Records, count: Int, opens: Int, parents: Small, links: Ids, near: Small, merged: Small) -> Int:
    """Compute the components across the bridges of the window that opens at snapshot `opens`; return how many bridges
    are left."""
    left = 0
    for number in range(count):
        if number + _AHEAD < count:
            prefetch(links, bridges[unsigned(number + _AHEAD)].lowest)
            prefetch(near, bridges[unsigned(number + _AHEAD)].lowest)
            prefetch(parents, bridges[unsigned(number + _AHEAD)].forward)
            prefetch(merged, bridges[unsigned(number + _AHEAD)].forward)
        lowest, until = bridges[number].lowest, bridges[number].until
        if until < opens:
            continue
        forward = _find(parents, np.int64(bridges[number].forward))
        root = _climb(links, np.int64(lowest), opens)
        kept = bridges[left]
        kept.lowest, kept.forward, kept.until, kept.root = lowest, forward, until, root
        left += 1
        if near[unsigned(root)] < 0:
            near[unsigned(root)] = forward
            continue
        other = _find_merged(merged, np.int64(near[unsigned(root)]))
        forward = _find_merged(merged, forward)
        if other != forward:
            merged[unsigned(forward)] = other
    return left


# --- answers ---


@inlined
def _representative(vertex: Int, opens: Int, parents: Small, links: Ids, near: Small, merged: Small) -> Int:
    """Return the vertex that represents a component: a forward root where there is one. A backward root that is the end
    here has no bridge, so it is in no forward tree."""
    if parents[unsigned(vertex)] == -1:
        vertex = _climb(links, vertex, opens)
        if near[unsigned(vertex)] < 0:
            return vertex
        vertex = np.int64(near[unsigned(vertex)])
    else:
        vertex = _find(parents, vertex)
    return _find_merged(merged, vertex)


@kernel
def connected(
    lefts: Ids, rights: Ids, opens: Int, parents: Small, links: Ids, near: Small, merged: Small, answers: Mask
) -> None:
    for number in range(lefts.size):
        left = _representative(lefts[number], opens, parents, links, near, merged)
        answers[number] = left == _representative(rights[number], opens, parents, links, near, merged)


@kernel
def name_components(
    vertices: Small, opens: Int, parents: Small, links: Ids, near: Small, merged: Small, priorities: Ids, best: Small
) -> None:
    """Update `best`: by representative, the vertex of the highest priority among these vertices and the present
    entry."""
    for number in range(vertices.size):
        vertex = np.int64(vertices[number])
        one = _representative(vertex, opens, parents, links, near, merged)
        if best[unsigned(one)] < 0 or priorities[unsigned(vertex)] > priorities[unsigned(best[unsigned(one)])]:
            best[unsigned(one)] = vertex


@kernel
def named(
    vertices: Ids, opens: Int, parents: Small, links: Ids, near: Small, merged: Small, best: Small, roots: Ids
) -> None:
    """Write the name of each vertex's component; where it has none, the vertex itself."""
    for number in range(vertices.size):
        name = best[unsigned(_representative(vertices[number], opens, parents, links, near, merged))]
        roots[number] = name if name >= 0 else vertices[number]
