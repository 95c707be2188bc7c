"""Result of the optimizer: the plan, and the rules that fired.

It is part of the algebra, not of the optimizer, because EXPLAIN shows it and depends on no rule.

Invariant: every rule in the result was applied to the plan; `changed` is true if it also rewrote the plan.
"""

from __future__ import annotations

from dataclasses import dataclass

from anabranch.algebra.operators import Operator


@dataclass(frozen=True, slots=True)
class FiredRule:
    """A rule that fired, with its notes, one line each."""

    rule: str
    details: tuple[str, ...] = ()
    changed: bool = True


@dataclass(frozen=True, slots=True)
class OptimizedPlan:
    """A plan before and after the rules, in the order in which they fired."""

    before: Operator
    plan: Operator
    fired: tuple[FiredRule, ...] = ()
