"""Blank node labels: each may occur in one basic graph pattern only (SPARQL 1.1, 4.1.4).

A basic graph pattern is the run of triples in one group; only filters may interrupt it.

Invariant: reads a finished tree and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from anabranch.errors import Diagnostic, Span
from anabranch.syntax.sparql import tree as t

_SKIPPED = {"span", "dataset", "values", "rows", "template", "triples", "path"}


def check_labels(query: t.QueryTree) -> list[Diagnostic]:
    """A problem for every label that is met again in another basic graph pattern."""
    first: dict[str, int] = {}
    told: set[str] = set()
    problems: list[Diagnostic] = []
    pattern = 0
    for group in _groups(query):
        pattern += 1
        for element in group.elements:
            match element:
                case t.TriplesTree(triples):
                    for label, span in _labels(triples):
                        if first.setdefault(label, pattern) != pattern and label not in told:
                            told.add(label)
                            problems.append(_crossing(label, span))
                case t.FilterTree():
                    pass
                case _:
                    pattern += 1
    return problems


def _crossing(label: str, span: Span | None) -> Diagnostic:
    return Diagnostic(
        "SPQ-005",
        f"the blank node `_:{label}` stands in two patterns",
        span,
        "here again, in another pattern",
        f"blank nodes do not reach over OPTIONAL, UNION, GRAPH or braces; use a variable: ?{label}",
    )


def _labels(triples: tuple[t.TripleTree, ...]) -> Iterator[tuple[str, Span | None]]:
    for triple in triples:
        for node in (triple.subject, triple.object):
            if isinstance(node, t.BlankTree) and not node.label.startswith(" "):
                yield node.label, node.span


def _groups(part: Any) -> Iterator[t.GroupTree]:
    """All groups of a query, outside in and in the order of the text."""
    pending = [part]
    while pending:
        current = pending.pop()
        if isinstance(current, tuple):
            pending.extend(reversed(current))
        elif is_dataclass(current) and not isinstance(current, type):
            if isinstance(current, t.GroupTree):
                yield current
            pending.extend(
                getattr(current, field.name) for field in reversed(fields(current)) if field.name not in _SKIPPED
            )
