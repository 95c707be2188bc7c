"""Names in parts of a syntax tree: the names that a part mentions, and those that must be bound outside of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from anabranch.syntax.common import parts_of, walk_tree
from anabranch.syntax.seraph import tree as t


def outside_of_subqueries(part: t.Expr) -> Iterator[Any]:
    """The part and everything below it that is evaluated on its own row; a subquery has rows of its own."""
    return walk_tree(part, lambda node: not isinstance(node, t.ExistsSubquery))


def names_in(*parts: t.Expr | t.Clause) -> set[str]:
    """Return every variable that expressions or clauses mention, bound inside or outside."""
    return {name for part in parts for node in walk_tree(part) if (name := _mentioned(node)) is not None}


def free_variable(part: t.Expr, visible: Collection[str]) -> t.Name | None:
    """The first variable of an expression that nothing inside of it binds. A pattern binds what is not visible."""
    pending: list[tuple[Any, frozenset[str]]] = [(part, frozenset())]
    while pending:
        node, bound = pending.pop()
        match node:
            case t.VariableRef(name):
                if name not in bound:
                    return t.Name(name, span=node.span)
            case t.NodeTree(t.Name(name)) | t.RelationshipTree(_, t.Name(name)) if name not in bound:
                return t.Name(name, span=node.span)
            case t.ListComprehension(variable, source) | t.QuantifierExpr(_, variable, source):
                pending += [(one, bound | {variable.text}) for one in reversed(parts_of(node)) if one is not source]
                pending.append((source, bound))
                continue
            case t.ReduceExpr(accumulator, initial, variable, source, step):
                pending += [(step, bound | {accumulator.text, variable.text}), (source, bound), (initial, bound)]
                continue
            case t.PatternComprehension() | t.ExistsSubquery():
                bound |= names_in(node).difference(visible)
        pending += [(one, bound) for one in reversed(parts_of(node))]
    return None


def _mentioned(node: Any) -> str | None:
    match node:
        case t.VariableRef(name):
            return name
        case t.NodeTree(variable=t.Name(name)) | t.RelationshipTree(variable=t.Name(name)):
            return name
        case t.ProjectionEntry("variable", t.Name(name)):
            return name
    return None
