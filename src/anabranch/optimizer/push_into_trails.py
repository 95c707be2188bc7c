"""Tests a condition on all relationships of a trail on each relationship while the trail is walked.

    Filter(Project*(Pattern(trail)), ALL(e IN trail WHERE c(e)))  =  the same over Pattern(trail, each c(e))

So the walk turns back at the first relationship that does not fit, instead of finding all trails first: it finds the
rides of one user, not those of all users (Seraph, Listing 5).

Law: a trail that is not walked to its end would have failed the filter, which stays in its place. A row that is missing
cannot raise an error either. So a condition is pushed only if all filters and projections above the pattern succeed for
every row: plain access to elements, comparisons, and quantifiers over these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from anabranch.algebra import expressions as ex
from anabranch.algebra.operators import Filter, Operator, Pattern, Project
from anabranch.algebra.spell import Speller
from anabranch.algebra.walk import conjuncts, walk
from anabranch.optimizer.support.columns import reads
from anabranch.optimizer.support.knowledge import Knowledge, Rewrite
from anabranch.optimizer.support.rebuild import bottom_up, everywhere

ValueShape = Literal["node", "relationship", "nodes", "relationships", "path", "value"]
_ITEMS: dict[str, ValueShape] = {"nodes": "node", "relationships": "relationship"}


def push_into_trails(plan: Operator, knowledge: Knowledge) -> Rewrite | None:
    notes: list[str] = []

    def change(operator: Operator) -> Operator:
        return _pushed(operator, notes) if isinstance(operator, Filter) else operator

    new = bottom_up(plan, change)
    return Rewrite(new, tuple(dict.fromkeys(notes))) if notes else None


def _pushed(top: Filter, notes: list[str]) -> Operator:
    """Return the filter over a pattern that tests the filter's conditions on trails while it walks."""
    above: list[Filter | Project] = []
    below: Operator = top
    while isinstance(below, Filter | Project):
        above.append(below)
        below = below.input
    if not isinstance(below, Pattern) or not _succeeds(below, above):
        return top
    asked: dict[str, list[ex.Expression]] = {}
    for condition in conjuncts(top.condition):
        if isinstance(condition, ex.Quantifier) and condition.kind == "all":
            _ask(condition, above[1:], below, asked)
    pattern = _with_conditions(below, asked, notes)
    if pattern is below:
        return top
    result: Operator = pattern
    for operator in reversed(above):
        result = replace(operator, input=result)
    return result


def _ask(
    condition: ex.Quantifier, above: list[Filter | Project], pattern: Pattern, asked: dict[str, list[ex.Expression]]
) -> None:
    """Collect the conditions of a quantifier over a trail's relationships, in terms of the pattern's own columns."""
    source: ex.Expression = condition.source
    where: ex.Expression = condition.where
    for operator in above:
        if isinstance(operator, Project):
            items = dict(operator.items)
            source, where = _in_terms_of(source, items, ""), _in_terms_of(where, items, condition.variable)
    shapes = _shapes(pattern)
    match source:
        case ex.Variable(name) if shapes.get(name) == "relationships":
            trails = [name]
        case ex.Call("relationships", (ex.Variable(name),)) if shapes.get(name) == "path":
            walked = [one for path in pattern.paths if path.variable == name for one in path.relationships]
            trails = [one.variable for one in walked if one.length is not None]
        case _:
            return
    inner = {**shapes, condition.variable: "relationship"}
    for part in conjuncts(where):
        names = reads(part) - {condition.variable}
        if condition.variable not in reads(part) or not _is_truth(part, inner) or any(map(_binds, walk(part))):
            continue
        if any(shapes.get(one) not in ("node", "relationship") for one in names):
            continue
        for trail in trails:
            if trail not in names:
                asked.setdefault(trail, []).append(_in_terms_of(part, {condition.variable: ex.Variable(trail)}, ""))


def _with_conditions(pattern: Pattern, asked: Mapping[str, list[ex.Expression]], notes: list[str]) -> Pattern:
    speller = Speller()
    paths = []
    for path in pattern.paths:
        relationships = []
        for one in path.relationships:
            known = conjuncts(one.where)
            new = [part for part in dict.fromkeys(asked.get(one.variable, ())) if part not in known]
            if path.kind == "trail" and new:
                one = replace(one, where=_all_of((*known, *new)))
                notes.append(f"each relationship of {speller.path(path)}: {speller.spell(_all_of(tuple(new)))}")
            relationships.append(one)
        paths.append(replace(path, relationships=tuple(relationships)))
    return pattern if tuple(paths) == pattern.paths else replace(pattern, paths=tuple(paths))


def _all_of(parts: tuple[ex.Expression, ...]) -> ex.Expression:
    return parts[0] if len(parts) == 1 else ex.And(parts)


def _in_terms_of(expression: ex.Expression, items: Mapping[str, ex.Expression], bound: str) -> ex.Expression:
    """Replace the variables of an expression by their expressions, except the variable that it binds itself."""

    def change(item: object) -> object:
        if isinstance(item, ex.Variable) and item.name != bound:
            return items.get(item.name, item)
        return item

    return everywhere(expression, change)


def _binds(node: Operator | ex.Expression) -> bool:
    """Return whether a node binds a variable, whose name could clash with another."""
    return isinstance(node, ex.Quantifier | ex.Comprehension | ex.Reduce)


# --- what cannot fail -------------------------------------------------------------------------------------------------


def _shapes(pattern: Pattern) -> dict[str, ValueShape]:
    found: dict[str, ValueShape] = {}
    for path in pattern.paths:
        found |= {node.variable: "node" for node in path.nodes}
        for one in path.relationships:
            found[one.variable] = "relationship" if one.length is None else "relationships"
        if path.variable is not None:
            found[path.variable] = "path"
    return found


def _succeeds(pattern: Pattern, above: list[Filter | Project]) -> bool:
    """Return whether all expressions between the pattern and the filter, the filter included, have a value for every
    row."""
    shapes: Mapping[str, ValueShape] = _shapes(pattern)
    if pattern.where is not None and not _is_truth(pattern.where, shapes):
        return False
    for operator in reversed(above):
        if isinstance(operator, Filter):
            if not _is_truth(operator.condition, shapes):
                return False
        elif not all(_has_value(expression, shapes) for _, expression in operator.items):
            return False
        else:
            shapes = {name: _shape(expression, shapes) for name, expression in operator.items}
    return True


def _shape(expression: ex.Expression, shapes: Mapping[str, ValueShape]) -> ValueShape:
    match expression:
        case ex.Variable(name):
            return shapes.get(name, "value")
        case ex.Call("nodes" | "relationships" as function, _):
            return "nodes" if function == "nodes" else "relationships"
    return "value"


def _is_truth(expression: ex.Expression, shapes: Mapping[str, ValueShape]) -> bool:
    """Return whether the value of an expression is true, false or null for every row."""
    match expression:
        case ex.And(operands) | ex.Or(operands):
            return all(_is_truth(one, shapes) for one in operands)
        case ex.Not(operand):
            return _is_truth(operand, shapes)
        case ex.Compare(_, left, right):
            return _has_value(left, shapes) and _has_value(right, shapes)
        case ex.IsNull(operand):
            return _has_value(operand, shapes)
        case ex.HasLabels(ex.Variable(name)):
            return shapes.get(name) in ("node", "relationship")
        case ex.Call("in", (item, ex.Call("labels", _) | ex.ListOf() as listed)):
            return _has_value(item, shapes) and _has_value(listed, shapes)
        case ex.Quantifier(_, variable, source, where):
            inner = _inside(variable, source, shapes)
            return inner is not None and _is_truth(where, inner)
    return False


def _has_value(expression: ex.Expression, shapes: Mapping[str, ValueShape]) -> bool:
    """Return whether an expression has a value, perhaps null, for every row."""
    match expression:
        case ex.Constant():
            return True
        case ex.Variable(name):
            return name in shapes
        case ex.Property(ex.Variable(name)):
            return shapes.get(name) in ("node", "relationship")
        case ex.ListOf(items):
            return all(_has_value(one, shapes) for one in items)
        case ex.Call("id", (ex.Variable(name),)):
            return shapes.get(name) in ("node", "relationship")
        case ex.Call("labels", (ex.Variable(name),)):
            return shapes.get(name) == "node"
        case ex.Call("type", (ex.Variable(name),)):
            return shapes.get(name) == "relationship"
        case ex.Call("nodes" | "relationships" | "length", (ex.Variable(name),)):
            return shapes.get(name) == "path"
        case ex.Comprehension(variable, source, where, result):
            inner = _inside(variable, source, shapes)
            if inner is None or (where is not None and not _is_truth(where, inner)):
                return False
            return result is None or _has_value(result, inner)
    return _is_truth(expression, shapes)


def _inside(variable: str, source: ex.Expression, shapes: Mapping[str, ValueShape]) -> dict[str, ValueShape] | None:
    """Return the shapes where a variable stands for the items of a list of elements; None for any other list."""
    shape = _shape(source, shapes)
    if shape not in _ITEMS or not _has_value(source, shapes):
        return None
    return {**shapes, variable: _ITEMS[shape]}
