"""What an optimizer hands back: the better plan, and which rules made it so.

It stands here and not beside the rules, because EXPLAIN shows it and knows no rule.

Invariant: a rule that is named here has looked at the plan; `changed` says whether it also rewrote it.
"""

from __future__ import annotations

from dataclasses import dataclass

from anabranch.algebra.operators import Operator


@dataclass(frozen=True, slots=True)
class FiredRule:
    """A rule that had something to do or to say, and what, one line each."""

    rule: str
    details: tuple[str, ...] = ()
    changed: bool = True


@dataclass(frozen=True, slots=True)
class OptimizedPlan:
    """A plan before and after the rules, in the order in which they fired."""

    before: Operator
    plan: Operator
    fired: tuple[FiredRule, ...] = ()

    @property
    def changed(self) -> bool:
        return any(one.changed for one in self.fired)
