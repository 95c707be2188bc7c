"""Drops columns that no operator reads as early as possible (C-SPARQL, section 5.1).

    Annotate(Join(a, b), by x: sum(y))  =  Annotate(Project(Join(Project(a, x), b), x y), by x: sum(y))

Law: rows are bags, so a row that loses a column is still a row of its own. Below Distinct every column is needed; the
same holds below Order and Slice where the rows have no order of their own: then all columns decide which row comes
first. Aggregates that depend on the order of rows are kept together, because the rows are sorted by the arguments of
all of them.

Joined patterns keep all columns, unless they are a static part: they are matched together, each starting from the
matches of the others, and their columns are dropped above the join. An Extend or an aggregate whose column is not read
is removed.
"""

from __future__ import annotations

from dataclasses import replace

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
    Slice,
    Union,
)
from anabranch.algebra.triples import Ask, Construct, Describe, GraphPattern, Minus, Path, Var
from anabranch.algebra.walk import depends_on_order, is_volatile, keeps_order
from anabranch.optimizer.evaluate_static_parts import static_form
from anabranch.optimizer.support.columns import reads
from anabranch.optimizer.support.knowledge import Knowledge, Rewrite
from anabranch.optimizer.support.rebuild import picked, with_inputs

VariableNames = frozenset[str]


def push_projection(plan: Operator, knowledge: Knowledge) -> Rewrite | None:
    pusher = _Pusher(knowledge)
    narrowed = pusher.narrow(plan, frozenset(plan.columns))
    return Rewrite(narrowed, tuple(dict.fromkeys(pusher.notes))) if pusher.notes else None


class _Pusher:
    def __init__(self, knowledge: Knowledge) -> None:
        self._knowledge = knowledge
        self._speller = knowledge.speller()
        self.notes: list[str] = []

    def narrow(self, plan: Operator, needed: VariableNames) -> Operator:
        """Return the plan with at least the needed columns; it may have more."""
        match plan:
            case Project(below, items):
                kept = tuple(item for item in items if item[0] in needed) or items[:1]  # a row needs a column
                self._note([name for name, _ in items if name not in dict(kept)], " in Project")
                return replace(plan, input=self.narrow(below, reads(*(e for _, e in kept))), items=kept)
            case Extend(below, column, expression):
                if column not in needed and not is_volatile(expression):
                    self._note([column], ", which nobody reads")
                    return self.narrow(below, needed)
                return replace(plan, input=self.narrow(below, needed - {column} | reads(expression)))
            case Filter(below, condition):
                return replace(plan, input=self.narrow(below, needed | reads(condition)))
            case Join(left, right, condition) | LeftJoin(left, right, condition):
                wanted = needed | reads(condition) | (frozenset(left.columns) & frozenset(right.columns))
                name = type(plan).__name__
                return replace(plan, left=self._side(left, wanted, name), right=self._side(right, wanted, name))
            case Minus(left, right):
                shared = frozenset(left.columns) & frozenset(right.columns)
                return replace(plan, left=self.narrow(left, needed | shared), right=self._cut(right, shared, "Minus"))
            case Union():
                return self._union(plan, needed)
            case Annotate() | Aggregate():
                return self._aggregated(plan, needed)
            case Order(below, keys) if keeps_order(below):
                return replace(plan, input=self.narrow(below, needed | reads(*(key.expression for key in keys))))
            case Slice(below) if keeps_order(below):
                return replace(plan, input=self.narrow(below, needed))
            case Order(below) | Slice(below):
                return replace(plan, input=self.narrow(below, frozenset(below.columns)))
            case Distinct(below):
                return replace(plan, input=self.narrow(below, frozenset(below.columns)))
            case _:
                return self._root(plan)

    def _root(self, plan: Operator) -> Operator:
        match plan:
            case Construct(below, template):
                names = {place.name for one in template for place in one.places if isinstance(place, Var)}
                if any(name.startswith(" _:") for name in names):
                    names = set(below.columns)  # blank nodes are named by the whole row
                return replace(plan, input=self.narrow(below, frozenset(names)))
            case Describe(below, _, resources):
                return replace(plan, input=self.narrow(below, reads(*resources)))
            case Ask(below):
                return replace(plan, input=self.narrow(below, frozenset()))
            case _:
                return with_inputs(plan, lambda below: self.narrow(below, frozenset(below.columns)))

    def _union(self, plan: Union, needed: VariableNames) -> Operator:
        """Narrow both sides to the same columns."""
        names = tuple(name for name in plan.columns if name in needed) or plan.columns
        sides = [self._cut(side, frozenset(names), "Union") for side in plan.inputs]
        sides = [side if set(side.columns) == set(names) else picked(side, names) for side in sides]
        return replace(plan, left=sides[0], right=sides[1])

    def _aggregated(self, plan: Annotate | Aggregate, needed: VariableNames) -> Operator:
        ordered = any(name in needed and depends_on_order(call) for name, call in plan.aggregates)
        kept = tuple(
            (name, call)
            for name, call in plan.aggregates
            if name in needed or is_volatile(call) or (ordered and depends_on_order(call))
        )
        self._note([name for name, _ in plan.aggregates if name not in dict(kept)], ", which nobody reads")
        arguments = reads(*(call for _, call in kept))
        if isinstance(plan, Aggregate):
            wanted = arguments | reads(*(expression for _, expression in plan.keys))
            return replace(plan, input=self._cut(plan.input, wanted, "Aggregate"), aggregates=kept)
        if not kept:
            return self.narrow(plan.input, needed)
        wanted = (needed - {name for name, _ in kept}) | arguments | frozenset(plan.keys)
        return replace(plan, input=self._cut(plan.input, wanted, "Annotate"), aggregates=kept)

    def _side(self, plan: Operator, wanted: VariableNames, above: str) -> Operator:
        if _is_conjunction(plan) and static_form(plan, self._knowledge) is None:
            return plan
        return self._cut(plan, wanted, above)

    def _cut(self, plan: Operator, wanted: VariableNames, above: str) -> Operator:
        """Return the plan with exactly the wanted columns."""
        narrowed = self.narrow(plan, wanted)
        kept = tuple(name for name in narrowed.columns if name in wanted)
        if len(kept) == len(narrowed.columns) or not kept:
            return narrowed
        self._note([name for name in narrowed.columns if name not in wanted], f" before {above}")
        return picked(narrowed, kept)

    def _note(self, names: list[str], where: str) -> None:
        shown = [self._speller.name(name) for name in names if not name.startswith(" ")]
        hidden = len(names) - len(shown)
        if hidden:
            shown.append(f"{hidden} without a name")
        if shown:
            self.notes.append(f"drops {', '.join(shown)}{where}")


def _is_conjunction(plan: Operator) -> bool:
    """Return whether the plan consists only of patterns that are matched together."""
    match plan:
        case GraphPattern() | Path():
            return True
        case Filter(below):
            return _is_conjunction(below)
        case Join(left, right):
            return _is_conjunction(left) and _is_conjunction(right)
        case _:
            return False
