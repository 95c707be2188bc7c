"""Reads the ends of a relationship from the row that binds both, instead of looking them up in the graph.

    startNode(r) over Pattern((a)-[r]->(b))  =  whichever of a and b is the start of r

Law: the pattern `(a)-[r]-(b)` binds r and the two nodes at its ends, so the start and the end of r are a and b in one
order or the other. The rule applies to plans that read one source only: with several, a node of a row is the union of
what the sources know of it, and startNode() shows it as one of them does. It applies where the row that an expression
reads still has the relationship and both nodes as the pattern bound them. Null and values that are no relationship are
treated as before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TypeAlias

from anabranch.algebra import expressions as ex
from anabranch.algebra.operators import (
    Aggregate,
    Argument,
    Distinct,
    Extend,
    Filter,
    Join,
    LeftJoin,
    Operator,
    Order,
    Pattern,
    Project,
    Slice,
    Union,
    Unwind,
)
from anabranch.algebra.walk import sources, walk
from anabranch.optimizer.support.knowledge import Knowledge, Rewrite
from anabranch.optimizer.support.rebuild import everywhere, own_expressions, with_inputs

Ends: TypeAlias = Mapping[str, tuple[str, str]]
"""The columns of relationships, each with the columns of the two nodes at its ends."""

_OPERATORS = {"startnode": "start_among", "endnode": "end_among"}
_NO_ENDS: Ends = {}


def read_ends_from_rows(plan: Operator, knowledge: Knowledge) -> Rewrite | None:
    if len(sources(plan)) != 1 or not any(_is_look_up(node) for node in walk(plan)):
        return None
    reader = _Reader()
    new = reader.rewritten(plan, _NO_ENDS)
    return Rewrite(new, tuple(dict.fromkeys(reader.notes))) if reader.notes else None


def _is_look_up(node: object) -> bool:
    return isinstance(node, ex.Call) and node.function.lower() in _OPERATORS


@dataclass(frozen=True, slots=True)
class _Reader:
    notes: list[str] = field(default_factory=list)

    def rewritten(self, plan: Operator, outer: Ends) -> Operator:
        """Return the plan with ends read from rows; `outer` are the ends in the enclosing row of a subquery."""
        plan = with_inputs(plan, lambda below: self.rewritten(below, outer))
        if not any(_is_look_up(node) for one in own_expressions(plan) for node in walk(one)):
            return plan
        ends = _seen_by(plan, outer)
        held = {one.name: getattr(plan, one.name) for one in fields(plan) if one.name != "span"}
        new = {
            name: everywhere(value, lambda item: self._replaced(item, ends))
            for name, value in held.items()
            if not isinstance(value, Operator)
        }
        new = {name: value for name, value in new.items() if value is not held[name]}
        return replace(plan, **new) if new else plan

    def _replaced(self, item: object, ends: Ends) -> object:
        match item:
            case ex.Exists(inner) | ex.CollectRows(inner):
                new = self.rewritten(inner, ends)
                return item if new is inner else replace(item, plan=new)
            case ex.Call(function, (ex.Variable(name),)) if _is_look_up(item) and name in ends:
                one, other = ends[name]
                self.notes.append(f"{function}({name}) is one of {one.strip()}, {other.strip()}")
                arguments = (ex.Variable(name), ex.Variable(one), ex.Variable(other))
                return ex.Call(_OPERATORS[function.lower()], arguments, span=item.span)
        return item


def _seen_by(plan: Operator, outer: Ends) -> Ends:
    """Return the ends that the expressions of an operator see, without those whose names an expression binds itself."""
    found: dict[str, tuple[str, str]] = {}
    for below in plan.inputs:
        found |= _ends(below, outer)
    bound: set[str] = set()
    for one in own_expressions(plan):
        for node in walk(one):
            match node:
                case ex.Comprehension(variable) | ex.Quantifier(_, variable):
                    bound.add(variable)
                case ex.Reduce(accumulator, _, variable):
                    bound |= {accumulator, variable}
    return {name: pair for name, pair in found.items() if bound.isdisjoint((name, *pair))}


def _ends(plan: Operator, outer: Ends) -> Ends:
    """Return the relationships in the rows of an operator whose two ends are in the rows too."""
    match plan:
        case Pattern(paths=paths):
            return {
                step.variable: (path.nodes[at].variable, path.nodes[at + 1].variable)
                for path in paths
                if path.kind == "trail"
                for at, step in enumerate(path.relationships)
                if step.length is None
            }
        case Argument(names):
            return {name: pair for name, pair in outer.items() if {name, *pair} <= set(names)}
        case Filter(below) | Order(below) | Slice(below) | Distinct(below):
            return _ends(below, outer)
        case Extend(below, column) | Unwind(below, column):
            return {name: pair for name, pair in _ends(below, outer).items() if column not in (name, *pair)}
        case Project(below, items):
            return _picked(_ends(below, outer), items)
        case Aggregate(below, keys):
            return _picked(_ends(below, outer), keys)
        case Join(left, right) | LeftJoin(left, right):
            return {**_ends(left, outer), **_ends(right, outer)}
        case Union(left, right):
            others = _ends(right, outer)
            return {name: pair for name, pair in _ends(left, outer).items() if others.get(name) == pair}
    return _NO_ENDS


def _picked(ends: Ends, items: tuple[tuple[str, ex.Expression], ...]) -> Ends:
    """Return the ends under the names that a projection gives them."""
    names: dict[str, str] = {}
    for name, one in items:
        if isinstance(one, ex.Variable):
            names.setdefault(one.name, name)
    return {
        name: (names[ends[one.name][0]], names[ends[one.name][1]])
        for name, one in items
        if isinstance(one, ex.Variable) and one.name in ends and set(ends[one.name]) <= names.keys()
    }
