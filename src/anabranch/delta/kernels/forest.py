"""Spanning forests of batches of edges by union-find."""

from __future__ import annotations

from anabranch.delta.batch import Ids, Mask
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


@kernel
def forests(
    lefts: Ids, rights: Ids, order: Ids, slides: Ids, wanted: Mask, parents: Ids, met: Ids, chosen: Mask
) -> None:
    """Mark, slide by slide, the wanted edges that join what was not joined before in their slide. Edges are taken in
    this order, which has those of one slide side by side; `met` is the slide in which a vertex was last met, and
    anything that is no slide before."""
    for edge in order:
        if not wanted[edge]:
            continue
        slide = slides[edge]
        left, right = lefts[edge], rights[edge]
        if met[left] != slide:
            met[left], parents[left] = slide, left
        if met[right] != slide:
            met[right], parents[right] = slide, right
        left, right = _found(parents, left), _found(parents, right)
        if left != right:
            parents[max(left, right)] = min(left, right)
            chosen[edge] = True
