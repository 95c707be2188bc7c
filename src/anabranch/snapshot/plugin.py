"""The interface for an external SPARQL engine: whole plain queries, and the patterns of static parts.

Invariant: a plug-in returns the same answers as the plain evaluator; it may only be faster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from anabranch.algebra.triples import TriplePattern
from anabranch.model.terms import Iri, Term
from anabranch.model.triples import Triples

Solutions = list[tuple[Term | None, ...]]


class Plugin(Protocol):
    def evaluate(self, text: str, default: Triples, named: Mapping[Iri, Triples]) -> tuple[tuple[str, ...], Solutions]:
        """The columns and rows of a plain SPARQL query over a default graph and named ones."""
        ...

    def match(self, patterns: Sequence[TriplePattern], graph: Triples) -> Solutions:
        """The matches of a basic graph pattern: the values of its variables in the order of their first appearance."""
        ...
