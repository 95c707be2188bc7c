"""Walk over a syntax tree, whatever its nodes are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from anabranch.syntax.seraph import tree as t


def walk_tree(part: Any, enter: Callable[[Any], bool] | None = None) -> Iterator[Any]:
    """The part and everything below it, outside in; below a node only where `enter`, if it is given, allows it."""
    pending = [part]
    while pending:
        current = pending.pop()
        if isinstance(current, tuple):
            pending.extend(reversed(current))
        elif is_dataclass(current) and not isinstance(current, type):
            yield current
            if enter is None or enter(current):
                pending.extend(getattr(current, one.name) for one in reversed(fields(current)) if one.name != "span")


def outside_of_subqueries(part: t.Expr) -> Iterator[Any]:
    """The part and everything below it that is evaluated on its own row; a subquery has rows of its own."""
    return walk_tree(part, lambda node: not isinstance(node, t.ExistsSubquery))


def names_in(*parts: t.Expr | t.Clause) -> set[str]:
    """Every variable that expressions or clauses mention, whoever binds it."""
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
                pending += [(one, bound | {variable.text}) for one in reversed(_parts(node)) if one is not source]
                pending.append((source, bound))
                continue
            case t.ReduceExpr(accumulator, initial, variable, source, step):
                pending += [(step, bound | {accumulator.text, variable.text}), (source, bound), (initial, bound)]
                continue
            case t.PatternComprehension() | t.ExistsSubquery():
                bound |= names_in(node).difference(visible)
        pending += [(one, bound) for one in reversed(_parts(node))]
    return None


def _parts(node: Any) -> list[Any]:
    if isinstance(node, tuple):
        return list(node)
    if not is_dataclass(node) or isinstance(node, type):
        return []
    return [getattr(node, one.name) for one in fields(node) if one.name != "span"]


def _mentioned(node: Any) -> str | None:
    match node:
        case t.VariableRef(name):
            return name
        case t.NodeTree(variable=t.Name(name)) | t.RelationshipTree(variable=t.Name(name)):
            return name
        case t.ProjectionEntry("variable", t.Name(name)):
            return name
    return None
