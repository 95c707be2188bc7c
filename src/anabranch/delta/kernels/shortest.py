"""Breadth-first searches as kernels: which roots a change of edges concerns, and what a new search finds.

Arcs are edges read in the direction of the search, from the node nearer to the root to the one further away. Those of a
node stand side by side in a pool as (edge, other node), in the order of their edges' keys: `onward` the arcs that leave
it, `back` those that come to it.

`distances[row, node]` is how far a node is from the row's root, -1: not found. `steps[row, node]` is the edge by which
its one path comes, where one is wanted. That one is the first by keys, read from the left:

    root on the left    the queue is filled in the order of paths: a node's first arc to reach another is on its path
    root on the right   of the arcs that lead nearer to the root, the first

Invariant: levels are found whole or not at all, so whatever is said of a node found holds for all ways to it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from anabranch.delta.batch import Ids
from anabranch.delta.kernels.cache import cached
from anabranch.delta.kernels.semijoin_walk import inner

Small = npt.NDArray[np.int32]
Flags = npt.NDArray[np.uint8]

FAR = 1 << 30
"""A limit that no path reaches."""
REACHED, CUT, LIMIT, FOUND = range(4)  # what a search says of itself


def _affected(
    rows: Ids, distances: Small, steps: Small, limits: Ids, gone: Ids, came: Ids, every: bool, flags: Flags
) -> None:
    """Flag the rows for which arcs (node, node, edge) that went or came may make a difference."""
    for at in range(rows.size):
        row = rows[at]
        known = distances[row]
        for arc in range(len(gone)):
            near, far, edge = gone[arc, 0], gone[arc, 1], gone[arc, 2]
            distance = known[near]
            if distance >= 0 and known[far] == distance + 1 and (every or steps[row, far] == edge):
                flags[at] = 1
                break
        if flags[at]:
            continue
        for arc in range(len(came)):
            distance = known[came[arc, 0]]
            if 0 <= distance < limits[row]:
                further = known[came[arc, 1]]
                if further < 0 or distance + 1 <= further:
                    flags[at] = 1
                    break


def _levels(
    root: int, known: Small, step: Small, onward: Ids, onward_pool: Ids, maximum: int, wanted: int, marks: Flags,
    queue: Ids, said: Ids, every: bool,
) -> None:  # fmt: skip
    """Fill in distances, and with them the first edges by which nodes are reached, level by level, until all wanted
    nodes (fewer than 0: all there are) are found, or the maximum is."""
    known[root] = 0
    queue[0] = root
    head, tail, depth = 0, 1, 0
    said[CUT], said[LIMIT] = 0, maximum
    while head < tail and depth < maximum:
        if wanted == 0:
            said[CUT], said[LIMIT] = 1, depth
            break
        end = tail
        while head < end:
            node = queue[head]
            head += 1
            first = onward[node, 0]
            for at in range(first, first + onward[node, 1]):
                other = onward_pool[at, 1]
                if known[other] < 0:
                    known[other] = depth + 1
                    if not every:
                        step[other] = onward_pool[at, 0]
                    queue[tail] = other
                    tail += 1
                    if wanted > 0 and marks[other]:
                        wanted -= 1
        depth += 1
    said[REACHED] = tail


levels = inner(_levels)


def _first_back(known: Small, step: Small, back: Ids, back_pool: Ids, queue: Ids, reached: int) -> None:
    """Of each node's arcs that lead nearer to the root, the first."""
    for position in range(1, reached):
        node = queue[position]
        first = back[node, 0]
        for at in range(first, first + back[node, 1]):
            nearer = known[back_pool[at, 1]]
            if nearer >= 0 and nearer + 1 == known[node]:
                step[node] = back_pool[at, 0]
                break


first_back = inner(_first_back)


def _other_ways(
    node: int, known: Small, was: Small, back: Ids, back_pool: Ids, fresh: Flags, changed: Flags
) -> bool:  # fmt: skip
    """Whether the shortest ways to a node that is as far as it was are others than before."""
    first = back[node, 0]
    for at in range(first, first + back[node, 1]):
        edge, nearer = back_pool[at, 0], back_pool[at, 1]
        is_way = known[nearer] >= 0 and known[nearer] + 1 == known[node]
        was_way = fresh[edge] == 0 and was[nearer] >= 0 and was[nearer] + 1 == was[node]
        if is_way != was_way or (is_way and changed[nearer]):
            return True
    return False


other_ways = inner(_other_ways)


def _searched(
    row: int, root: int, nodes: int, distances: Small, steps: Small, onward: Ids, onward_pool: Ids, back: Ids,
    back_pool: Ids, ends: Ids, fresh: Flags, gone: Ids, maximum: int, is_open: bool, targets: Ids, every: bool,
    backwards: bool, was: Small, stepped: Small, marks: Flags, changed: Flags, queue: Ids, found: Ids, said: Ids,
) -> None:  # fmt: skip
    """Search from a root again. `found` are then the nodes, of the targets or of all, whose paths are others now;
    `said` is how many nodes were reached, whether the search was cut short, how deep it went, how many are in `found`.
    `fresh` flags the edges, and `gone` are the arcs, that came and went since the search before."""
    known, step = distances[row], steps[0 if every else row]
    for node in range(nodes):
        was[node] = known[node]
        known[node] = -1
        changed[node] = 0
        if not every:
            stepped[node] = step[node]
    wanted = -1
    if not is_open:
        wanted = 0
        for at in range(targets.size):
            if targets[at] != root:
                marks[targets[at]] = 1
                wanted += 1
    levels(root, known, step, onward, onward_pool, maximum, wanted, marks, queue, said, every or backwards)
    reached = said[REACHED]
    for at in range(targets.size):
        marks[targets[at]] = 0
    if backwards and not every:
        first_back(known, step, back, back_pool, queue, reached)
    if every:
        for arc in range(len(gone)):
            near, far = gone[arc, 0], gone[arc, 1]
            if was[near] >= 0 and was[near] + 1 == was[far]:
                changed[far] = 1
    for position in range(1, reached):
        node = queue[position]
        if changed[node]:
            continue
        if was[node] != known[node]:
            changed[node] = 1
        elif every:
            changed[node] = other_ways(node, known, was, back, back_pool, fresh, changed)
        else:
            edge = step[node]
            before = ends[edge, 0] if ends[edge, 1] == node else ends[edge, 1]
            changed[node] = edge != stepped[node] or changed[before] != 0
    count = 0
    for at in range(nodes if is_open else targets.size):
        node = at if is_open else targets[at]
        if node != root and (changed[node] if known[node] >= 0 else was[node] >= 0):
            found[count] = node
            count += 1
    said[FOUND] = count


affected = cached(_affected, error_model="numpy")
searched = cached(_searched, error_model="numpy")
