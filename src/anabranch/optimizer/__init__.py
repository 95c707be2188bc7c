"""Optimizer: rewrites a plan into a better plan with the same answer.

Invariant: the optimised plan gives the same bag of rows, under the same column names in the same order, as the plan it
was made from, as long as the knowledge about static graphs holds. Where SPARQL itself leaves the choice open (LIMIT
without an order that decides, SAMPLE, the order within GROUP_CONCAT), the optimised plan may choose otherwise. In plans
over property graphs no operator is moved: there, a filter that runs earlier may fail on a row that it would never have
seen.
"""

from __future__ import annotations

from collections.abc import Sequence

from anabranch.algebra.expressions import Variable
from anabranch.algebra.operators import Operator, Project
from anabranch.algebra.optimized import FiredRule, OptimizedPlan
from anabranch.algebra.walk import reads_triples
from anabranch.optimizer.rules import GRAPH_RULES, RULES
from anabranch.optimizer.support.knowledge import Knowledge, Rewrite, Rule

__all__ = ["RULES", "FiredRule", "Knowledge", "OptimizedPlan", "Rewrite", "Rule", "optimize"]

NOTHING_KNOWN = Knowledge()

DEEPEST = 160
"""The largest depth of a plan that a rule may produce: evaluators walk down a plan by recursion."""


def optimize(plan: Operator, knowledge: Knowledge = NOTHING_KNOWN, rules: Sequence[Rule] = RULES) -> OptimizedPlan:
    """Apply the rules to a plan, each once, in order. Any tuple of rules is valid, a single rule included."""
    after, fired = plan, []
    for rule in rules if reads_triples(plan) else [rule for rule in rules if rule in GRAPH_RULES]:
        rewrite = rule(after, knowledge)
        if rewrite is None or _depth(rewrite.plan) > max(DEEPEST, _depth(after)):
            continue
        fired.append(FiredRule(rule.__name__, rewrite.notes, rewrite.plan != after))
        after = rewrite.plan
    if after.columns != plan.columns:
        after = Project(after, tuple((name, Variable(name)) for name in plan.columns), span=plan.span)
    return OptimizedPlan(plan, after, tuple(fired))


def _depth(plan: Operator) -> int:
    depth, level = 0, [plan]
    while level:
        depth, level = depth + 1, [below for operator in level for below in operator.inputs]
    return depth
