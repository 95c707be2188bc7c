"""A spanning forest of a batch of edges by union-find."""

from __future__ import annotations

from anabranch.delta.batch import Ids
from anabranch.delta.kernels.log_store import inlined, kernel


@inlined
def _found(parents: Ids, vertex: int) -> int:
    while parents[vertex] != vertex:
        parents[vertex] = parents[parents[vertex]]
        vertex = parents[vertex]
    return vertex


@kernel
def forest(edges: Ids, order: Ids, parents: Ids, chosen: Ids) -> int:
    """Into `chosen` the edges (vertices two by two), taken in this order, that join what was not joined before; gives
    their number. `parents` is every vertex itself before."""
    count = 0
    for edge in order:
        left, right = _found(parents, edges[2 * edge]), _found(parents, edges[2 * edge + 1])
        if left != right:
            parents[max(left, right)] = min(left, right)
            chosen[count] = edge
            count += 1
    return count
