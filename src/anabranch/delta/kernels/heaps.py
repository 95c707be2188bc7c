"""The smallest number of each of many groups, while numbers come and go.

A group has two pairing heaps: of the numbers that came and of those that left. As long as both have the same number on
top, it is taken from both; then the top of the first is the smallest number that is left. Numbers are ordered by a
float and, among equal ones, by a rank. Node 0 stands for no node; free nodes are chained by their siblings.

Invariant: a free node has the weight 0, others a larger one. A number that left has come before, or in the same call.

Fredman, Sedgewick, Sleator, Tarjan: The pairing heap (1986), the two-pass variant.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anabranch.delta.batch import Ids, Weights
from anabranch.delta.kernels.compiling import Floats, Int, Records, fields, inlined, kernel

NODE = np.dtype([("number", np.float64), *fields("rank id weight side group child sibling")])
STATE = np.dtype(fields("free used held leaving"))  # nodes: free ones, ever used, in heaps, in heaps of what left
CAME, LEFT = 0, 1


class GroupHeaps(NamedTuple):
    """The nodes, the two roots of each group, the id of its smallest number, and the one state."""

    nodes: Records
    roots: Ids
    firsts: Ids
    states: Records


class NumberChanges(NamedTuple):
    """Numbers that come (weight above 0) and leave, with their groups, ranks and ids."""

    groups: Ids
    numbers: Floats
    ranks: Ids
    ids: Ids
    weights: Weights


@inlined
def _precedes(nodes: Records, one: Int, other: Int) -> bool:
    if nodes[one].number != nodes[other].number:
        return bool(nodes[one].number < nodes[other].number)
    return bool(nodes[one].rank < nodes[other].rank)


@inlined
def _melded(nodes: Records, one: Int, other: Int) -> Int:
    if one == 0:
        return other
    if other == 0:
        return one
    if _precedes(nodes, other, one):
        one, other = other, one
    nodes[other].sibling = nodes[one].child
    nodes[one].child = other
    return one


@inlined
def _popped(heaps: GroupHeaps, root: Int) -> Int:
    """Free the root of a heap; return the new root."""
    nodes, state = heaps.nodes, heaps.states[0]
    pairs, child = np.int64(0), nodes[root].child
    while child != 0:
        one, other = child, nodes[child].sibling
        child = np.int64(0) if other == 0 else nodes[other].sibling
        pair = _melded(nodes, one, other)
        nodes[pair].sibling = pairs
        pairs = pair
    found = np.int64(0)
    while pairs != 0:
        pair, pairs = pairs, nodes[pairs].sibling
        found = _melded(nodes, found, pair)
    state.held -= 1
    state.leaving -= nodes[root].side
    nodes[root].weight, nodes[root].child, nodes[root].sibling = 0, 0, state.free
    state.free = root
    return found


@kernel
def change(heaps: GroupHeaps, changes: NumberChanges, touched: Ids) -> None:
    """Take in changes, for which there are nodes enough; write the ids of the smallest numbers of the touched groups,
    0 for none."""
    nodes, roots, state = heaps.nodes, heaps.roots, heaps.states[0]
    for at in range(changes.groups.size):
        weight = changes.weights[at]
        if weight == 0:
            continue
        place = state.free
        if place != 0:
            state.free = nodes[place].sibling
        else:
            state.used += 1
            place = state.used
        side = CAME if weight > 0 else LEFT
        group, node = changes.groups[at], nodes[place]
        node.number, node.rank, node.id = changes.numbers[at], changes.ranks[at], changes.ids[at]
        node.weight, node.side, node.group = abs(weight), side, group
        node.child = node.sibling = 0
        state.held += 1
        state.leaving += side
        roots[group, side] = _melded(nodes, roots[group, side], place)
    for at in range(touched.size):
        group = touched[at]
        came, left = roots[group, CAME], roots[group, LEFT]
        while left != 0 and nodes[came].id == nodes[left].id:
            common = min(nodes[came].weight, nodes[left].weight)
            nodes[came].weight -= common
            nodes[left].weight -= common
            if nodes[left].weight == 0:
                left = _popped(heaps, left)
            if nodes[came].weight == 0:
                came = _popped(heaps, came)
        roots[group, CAME], roots[group, LEFT] = came, left
        heaps.firsts[group] = nodes[came].id
