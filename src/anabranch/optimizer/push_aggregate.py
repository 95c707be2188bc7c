"""Pushes aggregates over several streams into each stream's branch if that keeps the answer (C-SPARQL, section 5.2).

    Annotate(Union(a, b), by g)   =  Union(Annotate(a, by g), Annotate(b, by g))              totally distributable
    Aggregate(Union(a, b), f)     =  Aggregate(Union(Aggregate(a, f), Aggregate(b, f)), f')    partially distributable
    everything else               stays as it is                                              not distributable

Totally: one of the grouping columns holds a different constant in each branch (GRAPH ?market gives one), so no group
has rows of two branches; then every aggregate function qualifies. Partially: COUNT, whose results are summed up, and
MIN and MAX with grouping columns (without them, a branch that has no rows would make the minimum unbound).

SUM and AVG are not split: the last digits of a sum of doubles depend on the order of its additions, and answers must
not depend on it. DISTINCT, SAMPLE and GROUP_CONCAT need all values in one place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from anabranch.algebra.expressions import AggregateCall, Variable
from anabranch.algebra.operators import Aggregate, Annotate, Operator, Union, Window
from anabranch.algebra.walk import is_volatile
from anabranch.optimizer.support.columns import constants
from anabranch.optimizer.support.knowledge import Knowledge, Rewrite
from anabranch.optimizer.support.rebuild import bottom_up, found

_COMBINED = {"sparql:count": "sparql:sum", "sparql:min": "sparql:min", "sparql:max": "sparql:max"}


def push_aggregate(plan: Operator, knowledge: Knowledge) -> Rewrite | None:
    notes: list[str] = []

    def change(operator: Operator) -> Operator:
        match operator:
            case Annotate(Union()) | Aggregate(Union()):
                return _distributed(operator, knowledge, notes)
            case _:
                return operator

    pushed = bottom_up(plan, change)
    return Rewrite(pushed, tuple(notes)) if notes else None


def _distributed(plan: Annotate | Aggregate, knowledge: Knowledge, notes: list[str]) -> Operator:
    branches = _branches(plan.input)
    streaming = [branch for branch in branches if any(True for _ in found(branch, Window))]
    if len(streaming) < 2:
        return plan
    speller = knowledge.speller()
    what = ", ".join(speller.item(*one) for one in plan.aggregates) or "groups"
    key = _telling(plan, branches)
    if key is not None:
        notes.append(f"{what}: totally distributable, {speller.name(key)} tells the {len(branches)} branches apart")
        return _united(branches, lambda branch: replace(plan, input=branch))
    if isinstance(plan, Aggregate) and _is_partial(plan):
        notes.append(f"{what}: partially distributable, computed in {len(branches)} branches and combined")
        return _combined(plan, branches)
    notes.append(f"{what}: not distributable{_because(plan)}")
    return plan


def _branches(plan: Operator) -> list[Operator]:
    if isinstance(plan, Union):
        return [*_branches(plan.left), *_branches(plan.right)]
    return [plan]


def _united(branches: list[Operator], change: Callable[[Operator], Operator]) -> Operator:
    result = change(branches[0])
    for branch in branches[1:]:
        result = Union(result, change(branch))
    return result


def _telling(plan: Annotate | Aggregate, branches: list[Operator]) -> str | None:
    """Return a grouping column that holds one constant in each branch, never the same in two; None where there is
    none."""
    if isinstance(plan, Annotate):
        grouped = list(plan.keys)
    else:
        grouped = [expression.name for _, expression in plan.keys if isinstance(expression, Variable)]
    held = [constants(branch) for branch in branches]
    for name in grouped:
        values = [one[name] for one in held if name in one]
        if len(values) == len(branches) == len(set(values)):
            return name
    return None


def _is_partial(plan: Aggregate) -> bool:
    if any(is_volatile(expression) for _, expression in (*plan.keys, *plan.aggregates)):
        return False
    calls = [call for _, call in plan.aggregates]
    known = all(call.function in _COMBINED and not call.distinct for call in calls)
    return bool(calls) and known and (bool(plan.keys) or all(call.function == "sparql:count" for call in calls))


def _combined(plan: Aggregate, branches: list[Operator]) -> Operator:
    united = _united(branches, lambda branch: replace(plan, input=branch))
    keys = tuple((name, Variable(name)) for name, _ in plan.keys)
    calls = tuple((name, AggregateCall(_COMBINED[call.function], (Variable(name),))) for name, call in plan.aggregates)
    return Aggregate(united, keys, calls, span=plan.span)


def _because(plan: Annotate | Aggregate) -> str:
    if any(call.distinct for _, call in plan.aggregates):
        return ", because DISTINCT compares values of all branches"
    if isinstance(plan, Annotate):
        return ", because no grouping column tells the branches apart and every row is kept"
    return ", because no grouping column tells the branches apart"
