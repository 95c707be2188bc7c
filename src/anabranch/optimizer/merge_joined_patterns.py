"""Merges joined graph patterns over one source (MergeJoinedGPOs; C-SPARQL, Figure 5).

    Join(GraphPattern(s, a), GraphPattern(s, b))  =  GraphPattern(s, a + b)

Law: a match of both is a match of each, with the same values in the shared variables. Filters on one of the patterns
are moved above both; they read the same values there.

Joins without a condition are associative and commutative, so a whole tree of joins is searched for partners. Two
patterns that share no variable are merged only if they are neighbours: an operator between them may connect them. No
patterns are merged across LeftJoin or Minus.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from anabranch.algebra.expressions import Expression
from anabranch.algebra.operators import Filter, Join, Operator
from anabranch.algebra.triples import GraphPattern
from anabranch.algebra.walk import conjuncts
from anabranch.optimizer.support.columns import is_lenient, is_movable
from anabranch.optimizer.support.knowledge import Knowledge, Rewrite
from anabranch.optimizer.support.rebuild import filtered, with_inputs


def merge_joined_patterns(plan: Operator, knowledge: Knowledge) -> Rewrite | None:
    notes: list[str] = []
    merged = _merged(plan, knowledge, notes)
    return Rewrite(merged, tuple(notes)) if notes else None


@dataclass(slots=True)
class _Leaf:
    """One side of the joins. `conditions` are the filters on a graph pattern that can be moved above it."""

    operator: Operator
    conditions: list[Expression] = field(default_factory=list)


def _merged(plan: Operator, knowledge: Knowledge, notes: list[str]) -> Operator:
    if not is_plain_join(plan):
        return with_inputs(plan, lambda below: _merged(below, knowledge, notes))
    leaves = _leaves(plan)
    kept: list[_Leaf] = []
    count = 0
    for index, leaf in enumerate(leaves):
        partner = next((one for one in kept if _fit(one, leaf, kept[-1] is one and index > 0)), None)
        if partner is None:
            kept.append(leaf)
            continue
        first, second = partner.operator, leaf.operator
        assert isinstance(first, GraphPattern)
        assert isinstance(second, GraphPattern)
        partner.operator = GraphPattern(first.source, first.patterns + second.patterns, span=first.span)
        partner.conditions += leaf.conditions
        count += 1
    if not count:
        return with_inputs(plan, lambda below: _merged(below, knowledge, notes))
    patterns = [leaf.operator for leaf in kept if isinstance(leaf.operator, GraphPattern)]
    sizes = " and ".join(str(len(pattern.patterns)) for pattern in patterns)
    notes.append(f"{len(patterns) + count} graph patterns become {len(patterns)}, of {sizes} triple patterns")
    sides = [filtered(_merged(leaf.operator, knowledge, notes), leaf.conditions) for leaf in kept]
    result = sides[0]
    for right in sides[1:]:
        result = Join(result, right, lenient=is_lenient(result, right), span=plan.span)
    return result


def is_plain_join(plan: Operator) -> bool:
    """Return whether a join may be reordered: it has no condition, and unbound is compatible with every value."""
    if not isinstance(plan, Join) or plan.condition is not None:
        return False
    return plan.lenient or not is_lenient(plan.left, plan.right)


def _leaves(plan: Operator) -> list[_Leaf]:
    if is_plain_join(plan):
        return [leaf for side in plan.inputs for leaf in _leaves(side)]
    conditions: list[Expression] = []
    below = plan
    while isinstance(below, Filter):
        conditions[:0] = conjuncts(below.condition)
        below = below.input
    if isinstance(below, GraphPattern) and all(is_movable(one) for one in conditions):
        return [_Leaf(below, conditions)]
    return [_Leaf(plan)]


def _fit(one: _Leaf, other: _Leaf, neighbours: bool) -> bool:
    match one.operator, other.operator:
        case GraphPattern(source=source) as first, GraphPattern(source=same) as second if source == same:
            shared = set(first.columns) & set(second.columns)
            return not shared & (_times(first) | _times(second)) and (bool(shared) or neighbours)
        case _:
            return False


def _times(pattern: GraphPattern) -> set[str]:
    return {name for one in pattern.patterns for name, _ in one.times}
