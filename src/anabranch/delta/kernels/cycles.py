"""Components and cycles of edges without direction, in one depth-first pass.

A vertex lies on a cycle, a loop and two edges between the same vertices included, exactly if one of its edges is no
bridge. Bridges are found by the lowest number that a subtree reaches (Tarjan: "A note on finding the bridges of a
graph", IPL 1974).
"""

from __future__ import annotations

import numpy as np

from anabranch.delta.batch import Ids
from anabranch.delta.kernels.compiling import allocating_kernel


@allocating_kernel
def search_components(ends: Ids, roots: Ids, circles: Ids) -> None:
    """Search components and cycles. `ends` are the vertices of edges, two by two, all smaller than the length of
    `roots` and `circles`. Writes for each vertex the first met vertex of its component, and whether it lies on a cycle.
    Work: O(vertices + edges)."""
    count, edges = roots.size, ends.size // 2
    starts = np.zeros(count + 1, np.int64)
    for edge in range(edges):
        one, other = ends[2 * edge], ends[2 * edge + 1]
        if one == other:
            circles[one] = 1
        else:
            starts[one + 1] += 1
            starts[other + 1] += 1
    for vertex in range(count):
        starts[vertex + 1] += starts[vertex]
    filled = starts[:-1].copy()
    beside = np.empty(starts[count], np.int64)  # edges, by vertex
    for edge in range(edges):
        one, other = ends[2 * edge], ends[2 * edge + 1]
        if one != other:
            beside[filled[one]] = edge
            filled[one] += 1
            beside[filled[other]] = edge
            filled[other] += 1
    at = starts[:-1].copy()
    met = np.zeros(count, np.int64)  # from 1 on, in the order of the search
    low = np.zeros(count, np.int64)
    by = np.full(count, -1, np.int64)  # the edge by which a vertex was met
    stack = np.empty(count, np.int64)
    turn = 0
    for root in range(count):
        if met[root]:
            continue
        turn += 1
        met[root] = low[root] = turn
        roots[root] = root
        stack[0] = root
        depth = 1
        while depth:
            vertex = stack[depth - 1]
            if at[vertex] < starts[vertex + 1]:
                edge = beside[at[vertex]]
                at[vertex] += 1
                if edge == by[vertex]:
                    continue
                other = ends[2 * edge] + ends[2 * edge + 1] - vertex
                if met[other]:
                    low[vertex] = min(low[vertex], met[other])
                    circles[vertex] = circles[other] = 1
                else:
                    turn += 1
                    met[other] = low[other] = turn
                    by[other] = edge
                    roots[other] = root
                    stack[depth] = other
                    depth += 1
            else:
                depth -= 1
                if depth:
                    above = stack[depth - 1]
                    low[above] = min(low[above], low[vertex])
                    if low[vertex] <= met[above]:
                        circles[vertex] = circles[above] = 1
