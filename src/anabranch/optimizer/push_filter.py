"""Splits filters at their conjunctions, and pushes every part down as far as possible (C-SPARQL, section 5.1).

    Filter(Join(a, b), p and q)  =  Join(Filter(a, p), Filter(b, q))

Law: a part may be pushed below an operator when it reads the same values below as above, and when dropping a row below
has no effect but that the row is missing above. A column has the same value on one side of a join as above it when it
is certainly bound there, or when the other side does not have it at all; so tests for unbound variables are moved like
any other. Parts with EXISTS, chance or the clock stay, as do parts that read no column.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from anabranch.algebra.expressions import Constant, Expression, Variable
from anabranch.algebra.operators import (
    Aggregate,
    Annotate,
    Distinct,
    Extend,
    Filter,
    Join,
    LeftJoin,
    Operator,
    Order,
    Project,
    Union,
)
from anabranch.algebra.triples import Minus
from anabranch.algebra.walk import conjuncts
from anabranch.errors import Span
from anabranch.optimizer.support.columns import certain, is_movable, reads
from anabranch.optimizer.support.knowledge import Knowledge, Rewrite
from anabranch.optimizer.support.rebuild import everywhere, filtered, with_inputs


def push_filter(plan: Operator, knowledge: Knowledge) -> Rewrite | None:
    pusher = _Pusher(knowledge)
    pushed = pusher.push(plan, [])
    return Rewrite(pushed, tuple(dict.fromkeys(pusher.notes))) if pusher.notes else None


@dataclass(frozen=True, slots=True)
class _Part:
    """A condition that is being pushed down; `passed` names the operators that it has passed."""

    condition: Expression
    text: str
    span: Span | None
    passed: tuple[str, ...] = ()

    def below(self, operator: Operator, condition: Expression | None = None) -> _Part:
        name = type(operator).__name__
        passed = self.passed if name in self.passed else (*self.passed, name)
        return replace(self, passed=passed, condition=condition or self.condition)


class _Pusher:
    def __init__(self, knowledge: Knowledge) -> None:
        self._knowledge = knowledge
        self.notes: list[str] = []

    def push(self, plan: Operator, parts: list[_Part]) -> Operator:
        """Return the plan with the parts pushed into it, each as low as possible."""
        match plan:
            case Filter(below, condition):
                own = [self._part(one, plan.span) for one in conjuncts(condition)]
                fixed = [one.condition for one in own if not _moves(one.condition)]
                return filtered(
                    self.push(below, [one for one in own if _moves(one.condition)] + parts), fixed, plan.span
                )
            case Join(left, right):
                return self._join(plan, left, right, parts)
            case LeftJoin(left, right, condition):
                return self._left_join(plan, left, right, condition, parts)
            case Minus(left, right):
                lower = [part.below(plan) for part in parts]
                return self._rebuilt(plan, left=self.push(left, lower), right=self.push(right, []))
            case Union(left, right):
                lower = [part.below(plan) for part in parts]
                return self._rebuilt(plan, left=self.push(left, lower), right=self.push(right, lower))
            case Extend() | Annotate() | Aggregate() | Project() | Distinct() | Order():
                down = [(part, _through(plan, part.condition)) for part in parts]
                lower = [part.below(plan, condition) for part, condition in down if condition is not None]
                stay = [part for part, condition in down if condition is None]
                return self._stay(self._rebuilt(plan, input=self.push(plan.input, lower)), stay)
            case _:
                return self._stay(with_inputs(plan, lambda below: self.push(below, [])), parts)

    def _part(self, condition: Expression, span: Span | None) -> _Part:
        return _Part(condition, self._knowledge.speller().spell(condition), span)

    def _join(self, plan: Operator, left: Operator, right: Operator, parts: list[_Part]) -> Operator:
        to_left, to_right, stay = [], [], []
        for part in parts:
            sides = _reads_same(part.condition, left, right), _reads_same(part.condition, right, left)
            to_left += [part.below(plan)] if sides[0] else []
            to_right += [part.below(plan)] if sides[1] else []
            stay += [] if any(sides) else [part]
        return self._stay(self._rebuilt(plan, left=self.push(left, to_left), right=self.push(right, to_right)), stay)

    def _left_join(
        self, plan: LeftJoin, left: Operator, right: Operator, condition: Expression | None, parts: list[_Part]
    ) -> Operator:
        """Push filters to the left side only; push the parts of the join's own condition that read only the right side
        there."""
        to_left = [part.below(plan) for part in parts if _reads_same(part.condition, left, right)]
        stay = [part for part in parts if not _reads_same(part.condition, left, right)]
        own = [(one, _moves(one) and _reads_same(one, right, left)) for one in conjuncts(condition)]
        to_right = [self._part(one, plan.span).below(plan) for one, goes in own if goes]
        kept = [one for one, goes in own if not goes]
        rebuilt = self._rebuilt(plan, left=self.push(left, to_left), right=self.push(right, to_right))
        assert isinstance(rebuilt, LeftJoin)
        if to_right:
            held = filtered(plan, kept)
            rebuilt = replace(rebuilt, condition=held.condition if isinstance(held, Filter) else None)
        return self._stay(rebuilt, stay)

    def _stay(self, plan: Operator, parts: list[_Part]) -> Operator:
        self.notes += [f"{part.text} below {', '.join(part.passed)}" for part in parts if part.passed]
        return filtered(plan, [part.condition for part in parts], parts[0].span if parts else None)

    def _rebuilt(self, plan: Operator, **inputs: Operator) -> Operator:
        if all(getattr(plan, name) is value for name, value in inputs.items()):
            return plan
        return replace(plan, **inputs)  # type: ignore[arg-type]


def _moves(condition: Expression) -> bool:
    return is_movable(condition) and bool(reads(condition))


def _reads_same(condition: Expression, side: Operator, other: Operator) -> bool:
    """Return whether the condition reads the same values in a row of one side as in the joined row."""
    alone = frozenset(side.columns) - frozenset(other.columns)
    return reads(condition) <= alone | certain(side)


def _through(plan: Operator, condition: Expression) -> Expression | None:
    """Return the condition as it reads below an operator with one input; None when it has to stay above."""
    names = reads(condition)
    match plan:
        case Distinct() | Order():
            return condition
        case Extend(column=column):
            return None if column in names else condition
        case Annotate(keys=keys):
            return condition if names <= frozenset(keys) else None
        case Project(items=items):
            return _renamed(condition, names, dict(items))
        case Aggregate(keys=keys):
            return _renamed(condition, names, dict(keys))
        case _:
            return None


def _renamed(condition: Expression, names: frozenset[str], items: dict[str, Expression]) -> Expression | None:
    """Rewrite the condition over the input columns, when each column is an input column or a constant; else return
    None."""
    if not all(isinstance(items.get(name), Variable | Constant) for name in names):
        return None
    renamed = everywhere(condition, lambda part: items[part.name] if isinstance(part, Variable) else part)
    return renamed if reads(renamed) else None
