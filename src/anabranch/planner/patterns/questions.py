"""Questions about plans that the planner asks.

Invariant: the answers depend on the plan only.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from anabranch.algebra import expressions as ex
from anabranch.algebra import operators as op
from anabranch.algebra import triples as tr
from anabranch.algebra.walk import is_volatile, read_by, sources, static_graphs, walk
from anabranch.model.temporal import Duration
from anabranch.optimizer.support.rebuild import everywhere, source_of
from anabranch.planner.reads import Reads, expressions_of, names_of, reads_of


def has_argument(operator: op.Operator) -> bool:
    """Return whether a part of a subquery depends on the outer row."""
    return isinstance(operator, op.Argument) or any(map(has_argument, operator.inputs))


def is_volatile_itself(operator: op.Operator) -> bool:
    """Return whether the operator's own expressions read the clock or chance."""
    return any(is_volatile(one) for one in expressions_of(operator))


def reads_windows_itself(operator: op.Operator) -> bool:
    """Return whether the operator, or a subquery in its expressions, reads a window."""
    nodes = chain((operator,), *map(walk, expressions_of(operator)))
    return any(isinstance(source, op.Window) for node in nodes for source in read_by(node))


def links_of(operator: op.Operator) -> tuple[ex.Links, ...]:
    """Return the links whose connectivity an operator's own expressions read."""
    nodes = chain.from_iterable(map(walk, expressions_of(operator)))
    return tuple(dict.fromkeys(node.links for node in nodes if isinstance(node, ex.Connected | ex.Component)))


def reads_static(operator: op.Operator) -> bool:
    return bool(static_graphs(operator))


def says_the_same(part: tr.StaticPart) -> bool:
    """Return whether the other plan of a static part is the same plan over static graphs and windows together: then it
    is right at all times, and the static plan is only a short cut."""

    def static_alone(item: object) -> object:
        if not isinstance(item, op.MergedSource):
            return item
        return source_of(tuple(one for one in item.parts if isinstance(one, op.Static)))

    return part.otherwise is not None and everywhere(part.otherwise, static_alone) == part.plan


def bare(plan: op.Operator) -> op.Operator:
    """Return a subquery without the projections, DISTINCT and ORDER BY above it, which do not change whether rows
    exist."""
    while isinstance(plan, op.Project | op.Distinct | op.Order):
        plan = plan.input
    return plan


def has_one_row(plan: op.Operator) -> bool:
    """Return whether a plan has one row at most: it aggregates all rows."""
    match plan:
        case op.Aggregate(keys=()):
            return True
        case op.Project(below) | op.Extend(below) | op.Filter(below) | op.Distinct(below) | op.Slice(below):
            return has_one_row(below)
    return False


def path_meets_others(left: op.Operator, right: op.Operator, needed: Mapping[int, Reads], several: bool) -> bool:
    """Return whether a named path on the right passes elements of the left that may look different there: the path then
    shows the union of both sources. `several`: the outer rows, which the left may be, come from several sources."""
    while isinstance(right, op.Filter):
        right = right.input
    if not isinstance(right, op.Pattern):
        return False
    wanted = names_of(needed.get(id(right), frozenset(right.columns)))
    named = [path for path in right.paths if path.variable in wanted]
    passed = {node.variable for path in named for node in path.nodes}
    passed |= {one.variable for path in named for one in path.relationships}
    return not passed.isdisjoint(left.columns) and meets_others(left, right, several)


def meets_others(left: op.Operator, right: op.Pattern, several: bool) -> bool:
    """Return whether elements of the left may look different to the pattern on the right, because their source is
    another."""
    return bool(set(sources(left)) - {right.source}) or (several and has_argument(left))


def binds_shortest(left: op.Operator, right: op.Operator) -> bool:
    """Return whether the left has columns for the relationships of a shortest path on the right."""
    named = {one.variable for path in _shortest(right) for one in path.relationships}
    return not named.isdisjoint(left.columns)


def shortest_reads_others(left: op.Operator, right: op.Operator) -> bool:
    """Return whether the conditions along a shortest path on the right, or on the whole path, read columns of the
    left."""
    read: Reads = frozenset()
    for path in _shortest(right):
        read |= reads_of(one for one in (path.where, *(step.where for step in path.relationships)) if one is not None)
    return not names_of(read).isdisjoint(left.columns)


def searches_again(pattern: op.Operator) -> bool:
    """Return whether the plain evaluator has to search for shortest paths of a pattern at each instant."""
    return any(
        path.where is not None or any(one.length is not None and one.length[0] > 1 for one in path.relationships)
        for path in _shortest(pattern)
    )


def asks_for_shortest(left: op.Operator, right: op.Operator) -> bool:
    """Return whether the left binds a node at which a shortest path on the right begins or ends."""
    ends = {node.variable for path in _shortest(right) for node in path.nodes}
    return not ends.isdisjoint(left.columns)


def _shortest(pattern: op.Operator) -> list[op.PathPattern]:
    while isinstance(pattern, op.Filter):
        pattern = pattern.input
    return [path for path in pattern.paths if path.kind != "trail"] if isinstance(pattern, op.Pattern) else []


def seconds(duration: Duration) -> float:
    """Return the approximate length of a duration in seconds."""
    return (duration.months * 30.44 + duration.days) * 86_400 + duration.seconds + duration.nanoseconds / 1e9
