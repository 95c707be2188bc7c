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

A bridge says that a backward and a forward tree share a vertex. Its row:

    LOWEST    the backward root of that vertex in the snapshot in which it appears
    FORWARD   the forward root of it, as of the last merge
    UNTIL     the snapshot in which it appears: a window that opens later does not have it in its backward part
    ROOT      the backward root in the current window, as of the last merge

Invariant: a bridge whose window opens at or before UNTIL leads, by climbing from LOWEST, to the backward root of every
vertex that it stands for: while the vertex is there, so is its path to LOWEST.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from anabranch.delta.batch import Ids, Mask
from anabranch.delta.kernels.log_store import inlined, kernel, prefetch

Small = npt.NDArray[np.int32]
Int: TypeAlias = Any  # an int, of whatever make
LOWEST, FORWARD, UNTIL, ROOT = range(4)

_LOW = 0xFFFFFFFF
_soon: Any = prefetch
_AHEAD = 12  # edges or vertices to look ahead


# --- forward ---


@inlined
def _find(parents: Small, vertex: Int) -> Int:
    """The root; every other vertex on the way is hung under its grandparent."""
    parent = np.int64(parents[vertex])
    while parent >= 0:
        above = np.int64(parents[parent])
        if above < 0:
            return parent
        parents[vertex] = above
        vertex = above
        parent = np.int64(parents[vertex])
    return vertex


@kernel
def go_forward(pairs: Small, first: Int, last: Int, parents: Small, members: Small, count: Int) -> Int:
    """Put the edges from `first` to `last` into the forward buffer of `count` members; how many they are then."""
    for edge in range(first, last):
        if edge + _AHEAD < last:
            _soon(parents, pairs[edge + _AHEAD, 0])
            _soon(parents, pairs[edge + _AHEAD, 1])
        left, right = np.int64(pairs[edge, 0]), np.int64(pairs[edge, 1])
        if left == right:
            continue
        if parents[left] == -1:
            members[count] = left
            count += 1
        if parents[right] == -1:
            members[count] = right
            count += 1
        left, right = _find(parents, left), _find(parents, right)
        if left == right:
            continue
        if parents[left] > parents[right]:
            left, right = right, left
        parents[left] += parents[right]
        parents[right] = left
    return count


@kernel
def clear_forward(parents: Small, members: Small, count: Int) -> None:
    for number in range(count):
        parents[members[number]] = -1


# --- backward ---


@inlined
def _climb(links: Ids, vertex: Int, opens: Int) -> Int:
    """The root in the snapshot `opens`."""
    bound = opens << 32
    word = links[vertex]
    while word >= bound:
        vertex = word & _LOW
        word = links[vertex]
    return vertex


@inlined
def _find_back(links: Ids, vertex: Int) -> Int:
    """The root so far. A vertex whose parent has a link of the same snapshot is hung under its grandparent: both links
    live in the same windows."""
    word = links[vertex]
    while word >= 0:
        parent = word & _LOW
        above = links[parent]
        if above >= 0 and above >> 32 == word >> 32:
            links[vertex] = above
            parent = above & _LOW
            above = links[parent]
        vertex = parent
        word = above
    return vertex


@kernel
def go_back(pairs: Small, ticks: Ids, first: Int, last: Int, instants: Int, links: Ids, seen: Small) -> Int:
    """Put the edges from `last` back to `first` into the backward buffer. Their ticks rise, with `instants` different
    ones. Edges that connect what was apart are moved to the end: they are all that windows need; where they begin."""
    kept = last
    snapshot = instants
    tick = np.int64(0)
    for edge in range(last - 1, first - 1, -1):
        if edge - _AHEAD >= first:
            _soon(links, pairs[edge - _AHEAD, 0])
            _soon(links, pairs[edge - _AHEAD, 1])
        if edge == last - 1 or ticks[edge] != tick:
            tick = ticks[edge]
            snapshot -= 1
        low, high = pairs[edge, 0], pairs[edge, 1]
        if low == high:
            continue
        left, right = np.int64(low), np.int64(high)
        if links[left] == -1:
            seen[left] = snapshot
        if links[right] == -1:
            seen[right] = snapshot
        left, right = _find_back(links, left), _find_back(links, right)
        if left == right:
            continue
        if links[left] > links[right]:
            left, right = right, left
        links[left] += links[right]
        links[right] = snapshot << 32 | left
        kept -= 1
        pairs[kept, 0], pairs[kept, 1], ticks[kept] = low, high, tick
    return kept


@kernel
def clear_back(pairs: Small, first: Int, last: Int, links: Ids, seen: Small) -> None:
    """Of all ends of these edges."""
    for edge in range(first, last):
        for end in range(2):
            links[pairs[edge, end]] = -1
            seen[pairs[edge, end]] = -1


# --- between ---


@inlined
def _find_merged(merged: Small, root: Int) -> Int:
    parent = np.int64(merged[root])
    while parent >= 0:
        above = np.int64(merged[parent])
        if above >= 0:
            merged[root] = above
        root = parent
        parent = above
    return root


@kernel
def clear_between(bridges: Small, count: Int, near: Small, merged: Small) -> None:
    """Take back what `merge` left in `near` and `merged`."""
    if count * 8 > near.size:  # going over all of them in their order is quicker
        near[:] = -1
        merged[:] = -1
        return
    for number in range(count):
        near[bridges[number, ROOT]] = -1
        merged[bridges[number, FORWARD]] = -1


@kernel
def bridge(
    bridges: Small, count: Int, opens: Int, members: Small, first: Int, last: Int, links: Ids, seen: Small
) -> Int:
    """Add bridges of the members from `first` to `last` to the `count` that are there; how many they are then."""
    for number in range(first, last):
        if number + _AHEAD < last:
            _soon(seen, members[number + _AHEAD])
            _soon(links, members[number + _AHEAD])
        vertex = members[number]
        if seen[vertex] >= opens:
            bridges[count, LOWEST] = _climb(links, np.int64(vertex), np.int64(seen[vertex]))
            bridges[count, FORWARD] = vertex
            bridges[count, UNTIL] = seen[vertex]
            count += 1
    return count


@kernel
def tidy(bridges: Small, count: Int, parents: Small, near: Small) -> Int:
    """Of bridges with the same LOWEST and FORWARD keep the one of the latest UNTIL; how many are left.

    Only the largest forward tree met so far is remembered by LOWEST, so that copies among the others may stay."""
    left = 0
    for number in range(count):
        lowest, until = bridges[number, LOWEST], bridges[number, UNTIL]
        forward = _find(parents, np.int64(bridges[number, FORWARD]))
        other = near[lowest]
        if other >= 0 and bridges[other, FORWARD] == forward:
            bridges[other, UNTIL] = max(until, bridges[other, UNTIL])
            continue
        if other < 0 or parents[forward] < parents[bridges[other, FORWARD]]:
            near[lowest] = left
        bridges[left, LOWEST], bridges[left, FORWARD], bridges[left, UNTIL] = lowest, forward, until
        left += 1
    for number in range(left):
        near[bridges[number, LOWEST]] = -1
    return left


@kernel
def merge(bridges: Small, count: Int, opens: Int, parents: Small, links: Ids, near: Small, merged: Small) -> Int:
    """The components of what is bridged in the window that opens at snapshot `opens`; how many bridges are left."""
    left = 0
    for number in range(count):
        if number + _AHEAD < count:
            _soon(links, bridges[number + _AHEAD, LOWEST])
            _soon(near, bridges[number + _AHEAD, LOWEST])
            _soon(parents, bridges[number + _AHEAD, FORWARD])
            _soon(merged, bridges[number + _AHEAD, FORWARD])
        lowest, until = bridges[number, LOWEST], bridges[number, UNTIL]
        if until < opens:
            continue
        forward = _find(parents, np.int64(bridges[number, FORWARD]))
        root = _climb(links, np.int64(lowest), opens)
        bridges[left, LOWEST], bridges[left, FORWARD] = lowest, forward
        bridges[left, UNTIL], bridges[left, ROOT] = until, root
        left += 1
        if near[root] < 0:
            near[root] = forward
            continue
        other = _find_merged(merged, np.int64(near[root]))
        forward = _find_merged(merged, forward)
        if other != forward:
            merged[forward] = other
    return left


# --- answers ---


@inlined
def _representative(vertex: Int, opens: Int, parents: Small, links: Ids, near: Small, merged: Small) -> Int:
    """A vertex of the component that all of its vertices agree on: a forward root where there is one. A backward root
    that is the end here has no bridge, so it is in no forward tree."""
    if parents[vertex] == -1:
        vertex = _climb(links, vertex, opens)
        if near[vertex] < 0:
            return vertex
        vertex = np.int64(near[vertex])
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
    """Let `best` have, by representative, the vertex of the highest priority of these and those that it had."""
    for number in range(vertices.size):
        vertex = np.int64(vertices[number])
        one = _representative(vertex, opens, parents, links, near, merged)
        if best[one] < 0 or priorities[vertex] > priorities[best[one]]:
            best[one] = vertex


@kernel
def named(
    vertices: Ids, opens: Int, parents: Small, links: Ids, near: Small, merged: Small, best: Small, roots: Ids
) -> None:
    """Of each vertex the name of its component; where that has none, itself."""
    for number in range(vertices.size):
        name = best[_representative(vertices[number], opens, parents, links, near, merged)]
        roots[number] = name if name >= 0 else vertices[number]
