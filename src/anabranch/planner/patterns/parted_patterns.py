"""Splits a pattern with shortest paths beside other relationships in two: the others limit the search for the paths.

    Pattern(others + shortest)  =  Join(Pattern(others), Pattern(shortest))

Law: the parts share only nodes, by their variables, and read the same graph. Shortest paths may pass relationships that
the others pass, so no relationship has to differ between the parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from anabranch.algebra import expressions as ex
from anabranch.algebra.operators import PathPattern, Pattern
from anabranch.algebra.walk import conjuncts
from anabranch.planner.reads import Reads, ids_of, reads_of, within
from anabranch.snapshot.variables import free_variables


@dataclass(frozen=True, slots=True)
class PatternHalves:
    """The two parts of a pattern, the columns that are read of each, and the conditions on each; `conditions` are those
    that read both."""

    others: Pattern
    shortest: Pattern
    needed: tuple[Reads, Reads]
    own: tuple[tuple[ex.Expression, ...], tuple[ex.Expression, ...]]
    conditions: tuple[ex.Expression, ...]


def parted(pattern: Pattern, conditions: Sequence[ex.Expression], needed: Reads | None) -> PatternHalves | None:
    """Split the pattern where the others bind an end of a shortest path; None where they do not."""
    hops = [path for path in pattern.paths if path.relationships and path.kind == "trail"]
    shortest = [path for path in pattern.paths if path.kind != "trail"]
    met, ends = _nodes(hops), _nodes(shortest)
    if met.isdisjoint(ends):
        return None
    # Labels that the shortest paths require of shared nodes are required in the other part too.
    said = [PathPattern((node,)) for path in shortest for node in path.nodes if node.variable in met and node.labels]
    alone = [path for path in pattern.paths if not path.relationships]
    beside = [path for path in alone if path.variable is None and path.nodes[0].variable in ends - met]
    others = replace(
        pattern, paths=(*hops, *(path for path in alone if path not in beside), *dict.fromkeys(said)), where=None
    )
    rest = replace(pattern, paths=(*shortest, *beside), where=None)
    columns = frozenset(others.columns), frozenset(rest.columns)
    parts = [part for one in (pattern.where, *conditions) for part in conjuncts(one)]
    own = tuple(part for part in parts if free_variables(part) <= columns[0])
    its = tuple(part for part in parts if part not in own and free_variables(part) <= columns[1])
    both = tuple(part for part in parts if part not in own and part not in its)
    read: Reads = frozenset(pattern.columns) if needed is None else needed
    read = read | ids_of(columns[0] & columns[1]) | reads_of(both)
    return PatternHalves(others, rest, (within(read, columns[0]), within(read, columns[1])), (own, its), both)


def _nodes(paths: Iterable[PathPattern]) -> set[str]:
    return {node.variable for path in paths for node in path.nodes}
