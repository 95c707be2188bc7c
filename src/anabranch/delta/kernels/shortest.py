"""Breadth-first searches as kernels: which roots a change of edges concerns, and what a new search finds.

Arcs are edges read in the direction of the search, from the node nearer to the root to the one further away. Arcs of a
node stand side by side in a pool as (edge, other node), in the order of their edges' keys: `onward` the arcs that leave
it, `back` those that come to it.

`distances[row, node]` is how far a node is from the row's root, -1: not found. `steps[row, node]` is the edge by which
its one path comes, where one is wanted. That one is the first by keys, read from the left:

    root on the left    the queue is filled in the order of paths: a node's first arc to reach another is on its path
    root on the right   of the arcs that lead nearer to the root, the first

Invariant: levels are found whole or not at all, so whatever is said of a node found holds for all ways to it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from anabranch.delta.batch import Ids
from anabranch.delta.kernels.compiling import Int, Records, Small, allocating_kernel, compiled, fields, unsigned

ByteFlags = npt.NDArray[np.uint8]

FAR = 1 << 30
"""A limit that no path reaches."""
RESULT = np.dtype(fields("reached is_cut limit found"))
"""How many nodes were reached, whether the search was cut short, how deep it went, how many are in `found`."""

FIRST, COUNT = range(2)  # columns of the places of arcs
EDGE, NODE = range(2)  # columns of their pool
NEAR, FAR_END, BY = range(3)  # columns of arcs that went or came: node, node, edge


class ArcGraph(NamedTuple):
    """The arcs that leave each node and those that come to it, and the ends of edges."""

    onward: Ids
    onward_pool: Ids
    back: Ids
    back_pool: Ids
    ends: Ids


class SearchSpec(NamedTuple):
    """Parameters of a search: how far, all nodes or some targets, all shortest paths or one, from which side."""

    nodes: int
    maximum: int
    is_open: bool
    every: bool
    backwards: bool


class ArcChanges(NamedTuple):
    """The change since the search before: flags of the edges that came, and the arcs that went."""

    fresh: ByteFlags
    gone: Ids


class SearchScratch(NamedTuple):
    """Scratch memory of a search: distances and steps of the search before, and `found`, the nodes with changed
    paths."""

    was: Small
    stepped: Small
    marks: ByteFlags
    changed: ByteFlags
    queue: Ids
    found: Ids
    results: Records


@allocating_kernel
def affected(
    rows: Ids, distances: Small, steps: Small, limits: Ids, gone: Ids, came: Ids, every: bool, flags: ByteFlags
) -> None:
    """Flag the rows for which arcs (node, node, edge) that went or came may make a difference."""
    for at in range(rows.size):
        row = rows[at]
        known = distances[row]
        for arc in range(len(gone)):
            near, far, edge = gone[arc, NEAR], gone[arc, FAR_END], gone[arc, BY]
            distance = known[near]
            if distance >= 0 and known[far] == distance + 1 and (every or steps[row, far] == edge):
                flags[at] = 1
                break
        if flags[at]:
            continue
        for arc in range(len(came)):
            distance = known[came[arc, NEAR]]
            if 0 <= distance < limits[row]:
                further = known[came[arc, FAR_END]]
                if further < 0 or distance + 1 <= further:
                    flags[at] = 1
                    break


@compiled
def _levels(
    root: Int, known: Small, step: Small, graph: ArcGraph, search: SearchSpec, wanted: Int, scratch: SearchScratch
) -> None:
    """Fill in distances, and with them the first edges by which nodes are reached, level by level, until all wanted
    nodes (fewer than 0: all there are) are found, or the maximum is."""
    onward, pool = graph.onward, graph.onward_pool
    queue, marks, result = scratch.queue, scratch.marks, scratch.results[0]
    stepless = search.every or search.backwards
    known[root] = 0
    queue[0] = root
    head, tail, depth = 0, 1, 0
    result.is_cut, result.limit = 0, search.maximum
    while head < tail and depth < search.maximum:
        if wanted == 0:
            result.is_cut, result.limit = 1, depth
            break
        end = tail
        while head < end:
            node = unsigned(queue[head])
            head += 1
            first = unsigned(onward[node, FIRST])
            for at in range(first, first + unsigned(onward[node, COUNT])):
                other = unsigned(pool[at, NODE])
                if known[other] < 0:
                    known[other] = depth + 1
                    if not stepless:
                        step[other] = pool[at, EDGE]
                    queue[tail] = np.int64(other)
                    tail += 1
                    if wanted > 0 and marks[other]:
                        wanted -= 1
        depth += 1
    result.reached = tail


@compiled
def _first_back(known: Small, step: Small, graph: ArcGraph, scratch: SearchScratch) -> None:
    """Write for each node the first of its arcs that lead nearer to the root."""
    for position in range(1, scratch.results[0].reached):
        node = scratch.queue[position]
        first = graph.back[node, FIRST]
        for at in range(first, first + graph.back[node, COUNT]):
            nearer = known[graph.back_pool[at, NODE]]
            if nearer >= 0 and nearer + 1 == known[node]:
                step[node] = graph.back_pool[at, EDGE]
                break


@compiled
def _other_ways(node: Int, known: Small, graph: ArcGraph, fresh: ByteFlags, scratch: SearchScratch) -> bool:
    """Return whether the shortest ways to a node at an unchanged distance have changed."""
    was = scratch.was
    first = graph.back[node, FIRST]
    for at in range(first, first + graph.back[node, COUNT]):
        edge, nearer = graph.back_pool[at, EDGE], graph.back_pool[at, NODE]
        is_way = known[nearer] >= 0 and known[nearer] + 1 == known[node]
        was_way = fresh[edge] == 0 and was[nearer] >= 0 and was[nearer] + 1 == was[node]
        if is_way != was_way or (is_way and scratch.changed[nearer]):
            return True
    return False


@compiled
def _remember(known: Small, step: Small, search: SearchSpec, scratch: SearchScratch) -> None:
    """Copy the results of the search before to the scratch memory, and reset the distances."""
    for node in range(search.nodes):
        scratch.was[node] = known[node]
        known[node] = -1
        scratch.changed[node] = 0
        if not search.every:
            scratch.stepped[node] = step[node]


@compiled
def _flag_changed(
    known: Small, step: Small, graph: ArcGraph, search: SearchSpec, fresh: ByteFlags, scratch: SearchScratch
) -> None:
    """Flag the nodes that were reached and have changed paths, the nearest first."""
    changed, ends = scratch.changed, graph.ends
    for position in range(1, scratch.results[0].reached):
        node = scratch.queue[position]
        if changed[node]:
            continue
        if scratch.was[node] != known[node]:
            changed[node] = 1
        elif search.every:
            changed[node] = _other_ways(node, known, graph, fresh, scratch)
        else:
            edge = step[node]
            before = ends[edge, 0] if ends[edge, 1] == node else ends[edge, 1]
            changed[node] = edge != scratch.stepped[node] or changed[before] != 0


@allocating_kernel
def searched(
    root: int,
    known: Small,
    step: Small,
    graph: ArcGraph,
    search: SearchSpec,
    change: ArcChanges,
    targets: Ids,
    scratch: SearchScratch,
) -> None:
    """Search from a root again; its distances and steps are `known` and `step`."""
    fresh, gone = change.fresh, change.gone
    was, changed, marks = scratch.was, scratch.changed, scratch.marks
    _remember(known, step, search, scratch)
    wanted = -1
    if not search.is_open:
        wanted = 0
        for at in range(targets.size):
            if targets[at] != root:
                marks[targets[at]] = 1
                wanted += 1
    _levels(root, known, step, graph, search, wanted, scratch)
    for at in range(targets.size):
        marks[targets[at]] = 0
    if search.backwards and not search.every:
        _first_back(known, step, graph, scratch)
    if search.every:
        for arc in range(len(gone)):
            near, far = gone[arc, NEAR], gone[arc, FAR_END]
            if was[near] >= 0 and was[near] + 1 == was[far]:
                changed[far] = 1
    _flag_changed(known, step, graph, search, fresh, scratch)
    count = 0
    for at in range(search.nodes if search.is_open else targets.size):
        node = at if search.is_open else targets[at]
        if node != root and (changed[node] if known[node] >= 0 else was[node] >= 0):
            scratch.found[count] = node
            count += 1
    scratch.results[0].found = count
