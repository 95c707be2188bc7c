"""Predicates that a property path can pass in a graph.

Invariant: where `predicates` is not None, the path leads from node to node by triples with these predicates alone.
"""

from __future__ import annotations

from anabranch.algebra.triples import (
    Alternative,
    Inverse,
    NegatedStep,
    Path,
    PathLink,
    PropertyPath,
    Repeat,
    Sequence,
    Var,
)
from anabranch.model.terms import Iri


def predicates(path: PropertyPath) -> frozenset[Iri] | None:
    """Return the predicates of the path's steps; None when a step can have any predicate."""
    match path:
        case PathLink(iri):
            return frozenset({iri})
        case Inverse(inner) | Repeat(inner):
            return predicates(inner)
        case Sequence(paths) | Alternative(paths):
            parts = [predicates(one) for one in paths]
            return None if None in parts else frozenset().union(*(part for part in parts if part is not None))
        case NegatedStep():
            return None


def is_nullable(path: PropertyPath) -> bool:
    """Return whether a path of no steps fits."""
    match path:
        case PathLink() | NegatedStep():
            return False
        case Inverse(inner):
            return is_nullable(inner)
        case Repeat(inner, least):
            return least == 0 or is_nullable(inner)
        case Sequence(paths):
            return all(is_nullable(one) for one in paths)
        case Alternative(paths):
            return any(is_nullable(one) for one in paths)


def steps_needed(path: Path) -> frozenset[Iri] | None:
    """Return the predicates of all triples that can matter to the operator; None when every triple may.

    Between two variables a path of no steps joins every node of the graph to itself, so that every triple matters."""
    if isinstance(path.subject, Var) and isinstance(path.object, Var) and is_nullable(path.path):
        return None
    return predicates(path.path)
