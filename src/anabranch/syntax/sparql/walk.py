"""Walking over the syntax tree: which variables a part mentions, and which calls it makes.

Invariant: the walk follows the fields of the frozen parts in the order of the text, so a new part is walked without a
change here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from anabranch.syntax.sparql import tree as t


def parts(root: object) -> Iterator[t.Part]:
    """The part, then everything below it, each before its own parts."""
    pending: list[object] = [root]
    while pending:
        item = pending.pop()
        if isinstance(item, t.Part):
            yield item
            pending.extend(reversed([getattr(item, field.name) for field in fields(item) if field.name != "span"]))
        elif isinstance(item, tuple):
            pending.extend(reversed(item))


def variables(root: object) -> dict[str, t.VarTree]:
    """The variables that a part mentions anywhere, in the order of the text, each with its first place."""
    found: dict[str, t.VarTree] = {}
    for part in parts(root):
        if isinstance(part, t.VarTree):
            found.setdefault(part.name, part)
    return found


def aggregates(root: object) -> Iterator[t.AggregateTree]:
    """The aggregates of an expression, those of queries inside of it left out."""
    pending: list[object] = [root]
    while pending:
        item = pending.pop()
        if isinstance(item, t.AggregateTree):
            yield item
        if isinstance(item, tuple):
            pending.extend(item)
        elif isinstance(item, t.Part) and not isinstance(item, t.GroupTree):
            pending.extend(getattr(item, field.name) for field in fields(item) if field.name != "span")
