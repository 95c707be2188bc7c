"""The WHERE of a MATCH with shortest paths: separates the conditions that restrict the search for a path.

A condition on one shortest path, by its variable or that of its relationships, is part of the search: the shortest path
is searched among those that fulfil it. If it can be expressed for each relationship, or as bounds of the length, it
becomes that. An upper bound of the length needs no search: if the shortest path is too long, all are. A condition on
two shortest paths is tested on the paths that were found.

Invariant: the matches are those of the definition, whatever form a condition takes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from anabranch.algebra import expressions as x
from anabranch.algebra.operators import PathPattern
from anabranch.algebra.types import RELATIONSHIP
from anabranch.syntax.seraph import tree as t
from anabranch.syntax.seraph.lower_expressions import ExpressionLowering
from anabranch.syntax.seraph.lower_patterns import conjunction
from anabranch.syntax.seraph.scope import Binding, Scope
from anabranch.syntax.seraph.walk import names_in

_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
_Range = tuple[int, int | None]


class ShortestConditions:
    """The patterns of one clause, their shapes, and the scope that its WHERE sees."""

    def __init__(
        self,
        expressions: ExpressionLowering,
        patterns: tuple[t.PatternTree, ...],
        paths: tuple[PathPattern, ...],
        scope: Scope,
    ) -> None:
        self._expressions = expressions
        self._scope = scope
        self._paths = list(paths)
        self._names: dict[int, tuple[str | None, str | None]] = {}
        for at, (pattern, path) in enumerate(zip(patterns, paths, strict=True)):
            if path.kind != "trail":
                (relationship,) = pattern.path.relationships
                names = (pattern.variable, relationship.variable)
                self._names[at] = tuple(None if one is None else one.text for one in names)  # type: ignore[assignment]

    def split(self, where: t.Expr, condition: x.Expression) -> tuple[tuple[PathPattern, ...], list[x.Expression]]:
        """The paths with the conditions that are theirs, and those that are left; `condition` is what WHERE means."""
        if not self._names:
            return tuple(self._paths), [condition]
        trees = _conjuncts(where)
        lowered = condition.operands if len(trees) > 1 and isinstance(condition, x.And) else (condition,)
        left: list[x.Expression] = []
        for tree, part in zip(trees, lowered, strict=True):
            mentioned = names_in(tree)
            about = [at for at, names in self._names.items() if not mentioned.isdisjoint(names)]
            if len(about) != 1 or not self._taken(about[0], tree, part):
                left.append(part)
        return tuple(self._paths), left

    def _taken(self, at: int, tree: t.Expr, part: x.Expression) -> bool:
        """Make a condition the path's; False where it is asked as well of the path that was found."""
        path = self._paths[at]
        (relationship,) = path.relationships
        bounds = self._bounds(tree, at)
        if bounds is not None and relationship.length is not None:
            (low, high), (least, most) = relationship.length, bounds
            highest = most if high is None else high if most is None else min(high, most)
            narrowed = replace(relationship, length=(max(low, least), highest))
            self._paths[at] = replace(path, relationships=(narrowed,))
            return True
        each = part if relationship.length is None and self._names[at][0] not in names_in(tree) else None
        each = each or self._each(tree, at)
        if each is not None:
            known = [] if relationship.where is None else [relationship.where]
            asking = replace(relationship, where=conjunction([*known, each], tree.span))
            self._paths[at] = replace(path, relationships=(asking,))
            return True
        if self._is_upper_bound(tree, at):
            return False
        known = [] if path.where is None else [path.where]
        self._paths[at] = replace(path, where=conjunction([*known, part], tree.span))
        return True

    def _each(self, tree: t.Expr, at: int) -> x.Expression | None:
        """Return the condition that a quantifier over the path's relationships imposes on each of them."""
        match tree:
            case t.QuantifierExpr(("all" | "none") as kind, variable, source, t.Expr() as where):
                pass
            case _:
                return None
        names = {one for one in self._names[at] if one is not None}
        if not self._is_relationships(source, at) or not (names_in(where) - {variable.text}).isdisjoint(names):
            return None
        (relationship,) = self._paths[at].relationships
        inner = self._scope.bind_inside(variable.text, Binding(relationship.variable, RELATIONSHIP, True))
        test, _ = self._expressions.lower(where, inner, predicate=True)
        return test if kind == "all" else x.Not(test, span=where.span)

    def _is_relationships(self, tree: t.Expr, at: int) -> bool:
        path, relationship = self._names[at]
        match tree:
            case t.VariableRef(name):
                return name == relationship
            case t.FunctionCall(function, (t.VariableRef(name),)):
                return function.lower() == "relationships" and name == path
        return False

    def _is_length(self, tree: t.Expr, at: int) -> bool:
        match tree:
            case t.FunctionCall(function, (t.VariableRef(name),)) if function.lower() == "length":
                return name == self._names[at][0]
            case t.FunctionCall(function, (listed,)) if function.lower() == "size":
                return self._is_relationships(listed, at)
        return False

    def _comparisons(self, tree: t.Expr, at: int) -> list[tuple[str, t.Expr]] | None:
        """Return the comparisons of the path's length; None for any other condition."""
        if not isinstance(tree, t.Comparison):
            return None
        found: list[tuple[str, t.Expr]] = []
        left = tree.first
        for operator, right in tree.rest:
            if operator not in _TURNED:
                return None
            if self._is_length(left, at):
                found.append((operator, right))
            elif self._is_length(right, at):
                found.append((_TURNED[operator], left))
            else:
                return None
            left = right
        return found

    def _bounds(self, tree: t.Expr, at: int) -> _Range | None:
        least, most = 0, None
        for operator, operand in self._comparisons(tree, at) or [("", tree)]:
            if not isinstance(operand, t.LiteralExpr) or type(operand.value) is not int or operator == "":
                return None
            low, high = _RANGES[operator](operand.value)
            least = max(least, low)
            most = high if most is None else most if high is None else min(most, high)
        return None if most is not None and most < 0 else (least, most)

    def _is_upper_bound(self, tree: t.Expr, at: int) -> bool:
        names = {one for one in self._names[at] if one is not None}
        compared = self._comparisons(tree, at)
        return compared is not None and all(
            operator in ("<", "<=") and names_in(operand).isdisjoint(names) for operator, operand in compared
        )


_RANGES: dict[str, Callable[[int], _Range]] = {
    "<": lambda value: (0, value - 1),
    "<=": lambda value: (0, value),
    ">": lambda value: (value + 1, None),
    ">=": lambda value: (value, None),
    "=": lambda value: (value, value),
}


def _conjuncts(where: t.Expr) -> list[t.Expr]:
    """The parts that a WHERE's AND joins, as they are lowered: from left to right."""
    parts: list[t.Expr] = []
    while isinstance(where, t.Binary) and where.operator == "and":
        parts.append(where.right)
        where = where.left
    return [where, *reversed(parts)]
