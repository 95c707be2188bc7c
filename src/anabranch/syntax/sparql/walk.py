"""Walks over the syntax tree: the variables that a part mentions, and the calls that it makes.

Invariant: the walk follows the fields of the frozen parts in the order of the text, so a new part is walked without a
change here.
"""

from __future__ import annotations

from collections.abc import Iterator

from anabranch.syntax.common import walk_tree
from anabranch.syntax.sparql import tree as t


def parts(root: object) -> Iterator[t.TreePart]:
    """The part, then everything below it, each before its own parts."""
    return (part for part in walk_tree(root) if isinstance(part, t.TreePart))


def variables(root: object) -> dict[str, t.VarTree]:
    """The variables that a part mentions anywhere, in the order of the text, each with its first place."""
    found: dict[str, t.VarTree] = {}
    for part in parts(root):
        if isinstance(part, t.VarTree):
            found.setdefault(part.name, part)
    return found


def aggregates(root: object) -> Iterator[t.AggregateTree]:
    """The aggregates of an expression, those of queries inside of it left out."""
    inside = walk_tree(root, lambda part: not isinstance(part, t.GroupTree))
    return (part for part in inside if isinstance(part, t.AggregateTree))
