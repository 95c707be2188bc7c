"""Rebuilds plans generically, without a case for every operator.

Invariant: parts that a change does not touch are the same objects as before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from anabranch.algebra.expressions import And, Expression, Variable
from anabranch.algebra.operators import Filter, MergedSource, Operator, Project, Source, TripleSource
from anabranch.errors import Span

Item = TypeVar("Item")


def with_inputs(operator: Operator, change: Callable[[Operator], Operator]) -> Operator:
    """Return the operator over changed inputs."""
    new: dict[str, Any] = {}
    for field in fields(operator):
        value = getattr(operator, field.name)
        if isinstance(value, Operator):
            changed = change(value)
            if changed is not value:
                new[field.name] = changed
    return replace(operator, **new) if new else operator


def bottom_up(operator: Operator, change: Callable[[Operator], Operator]) -> Operator:
    """Change every operator of the tree, inputs first. Plans inside of expressions are not changed."""
    return change(with_inputs(operator, lambda below: bottom_up(below, change)))


def everywhere(item: Item, change: Callable[[object], object]) -> Item:
    """Change every part of an item, sources and plans inside of expressions included, the smallest parts first."""
    changed: Any = change(_parts_changed(item, change))
    return changed  # type: ignore[no-any-return]


def _parts_changed(item: Any, change: Callable[[object], object]) -> object:
    if type(item) is tuple:  # a term is a tuple of its own kind and has no parts
        parts = tuple(everywhere(one, change) for one in item)
        return item if all(a is b for a, b in zip(parts, item, strict=True)) else parts
    if not is_dataclass(item) or isinstance(item, type):
        return item
    held = {field.name: getattr(item, field.name) for field in fields(item)}
    new = {name: everywhere(value, change) for name, value in held.items()}
    new = {name: value for name, value in new.items() if value is not held[name]}
    return replace(item, **new) if new else item


def found(item: object, kind: type[Item]) -> Iterator[Item]:
    """Yield all parts of a kind at any depth, the item itself included."""
    if isinstance(item, kind):
        yield item
    if type(item) is tuple:
        for one in item:
            yield from found(one, kind)
    elif is_dataclass(item):
        for field in fields(item):
            if field.name != "span":
                yield from found(getattr(item, field.name), kind)


def own_expressions(operator: Operator) -> Iterator[Expression]:
    """Yield the expressions of the operator itself, not of its inputs."""
    pending = [getattr(operator, field.name) for field in fields(operator) if field.name != "span"]
    while pending:
        item = pending.pop(0)
        if isinstance(item, Expression):
            yield item
        elif type(item) is tuple:
            pending.extend(item)
        elif is_dataclass(item) and not isinstance(item, Operator):
            pending.extend(getattr(item, field.name) for field in fields(item))


def filtered(operator: Operator, conditions: list[Expression], span: Span | None = None) -> Operator:
    """Filter the rows by all conditions."""
    if not conditions:
        return operator
    condition = conditions[0] if len(conditions) == 1 else And(tuple(conditions))
    return Filter(operator, condition, span=span)


def picked(operator: Operator, names: tuple[str, ...]) -> Operator:
    """Project to these columns."""
    return Project(operator, tuple((name, Variable(name)) for name in names), span=operator.span)


def source_of(parts: tuple[Source, ...]) -> TripleSource:
    """Return one source made of the parts; a single part is returned itself."""
    return parts[0] if len(parts) == 1 else MergedSource(parts)
