"""Spanning forests of batches of edges, by union-find."""

from __future__ import annotations

from anabranch.delta.batch import Ids, Mask
from anabranch.delta.kernels.compiling import Int, inlined, kernel, unsigned


@inlined
def _root(parents: Ids, vertex: Int) -> Int:
    """Return the root of a vertex's tree; every vertex on the way is linked to its grandparent."""
    while parents[unsigned(vertex)] != vertex:
        parents[unsigned(vertex)] = parents[unsigned(parents[unsigned(vertex)])]
        vertex = parents[unsigned(vertex)]
    return vertex


@kernel
def forest(edges: Ids, order: Ids, parents: Ids, chosen: Ids) -> Int:
    """Write into `chosen` the edges (vertices two by two), taken in this order, that join two separate trees; return
    their number. Before the call, `parents` is every vertex itself."""
    count = 0
    for edge in order:
        left, right = _root(parents, edges[unsigned(2 * edge)]), _root(parents, edges[unsigned(2 * edge + 1)])
        if left != right:
            parents[unsigned(max(left, right))] = min(left, right)
            chosen[count] = edge
            count += 1
    return count


@kernel
def forests(
    lefts: Ids, rights: Ids, order: Ids, slides: Ids, wanted: Mask, parents: Ids, met: Ids, chosen: Mask
) -> None:
    """Mark, slide by slide, the wanted edges that join two separate trees of their slide. Edges are taken in this
    order, which has those of one slide side by side; `met` is the slide in which a vertex was last met, before that any
    value that is no slide."""
    for edge in order:
        at = unsigned(edge)
        if not wanted[at]:
            continue
        slide = slides[at]
        left, right = lefts[at], rights[at]
        if met[unsigned(left)] != slide:
            met[unsigned(left)], parents[unsigned(left)] = slide, left
        if met[unsigned(right)] != slide:
            met[unsigned(right)], parents[unsigned(right)] = slide, right
        left, right = _root(parents, left), _root(parents, right)
        if left != right:
            parents[unsigned(max(left, right))] = min(left, right)
            chosen[at] = True
