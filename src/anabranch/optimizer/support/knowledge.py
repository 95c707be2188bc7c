"""Input and output of the rules: knowledge about static graphs, and the rewritten plan.

Invariant: knowledge is about one version of the static graphs. When the content of a graph changes, plans are made
again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from anabranch.algebra.operators import Operator, Static
from anabranch.algebra.spell import Speller
from anabranch.model.terms import Iri, Term
from anabranch.model.triples import MergedGraph, TripleGraph
from anabranch.optimizer.support.sizes import GraphSizes, Sizes


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Facts about static graphs. `static_predicates` are the predicates that each static graph holds, by its name; a
    graph that is missing there, or is None, may hold any. `prefixes` are used only in the notes of the rules. `sizes`
    has the sizes of the static graphs, where they are known."""

    static_predicates: Mapping[str, frozenset[Iri] | None] = field(default_factory=dict)
    prefixes: tuple[tuple[str, str], ...] = ()
    sizes: Sizes = field(default_factory=dict)

    @classmethod
    def of(cls, graphs: Mapping[str, object], prefixes: tuple[tuple[str, str], ...] = ()) -> Knowledge:
        """Collect the knowledge about static graphs, by their names; graphs that are not made of triples give none."""
        sizes = {name: GraphSizes(one) for name, one in graphs.items() if isinstance(one, TripleGraph | MergedGraph)}
        return cls({name: _predicates(graph) for name, graph in graphs.items()}, prefixes, sizes)

    def may_hold(self, graph: Static, predicate: Term) -> bool:
        known = self.static_predicates.get(graph.name)
        return known is None or predicate in known

    def holds(self, graph: Static, predicate: Term) -> bool:
        known = self.static_predicates.get(graph.name)
        return known is not None and predicate in known

    def speller(self) -> Speller:
        return Speller(self.prefixes, sparql=True)


def _predicates(graph: object) -> frozenset[Iri] | None:
    if not isinstance(graph, TripleGraph | MergedGraph):
        return None
    return frozenset(triple.predicate for triple in graph if isinstance(triple.predicate, Iri))


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A rewritten plan with one note per change, for EXPLAIN."""

    plan: Operator
    notes: tuple[str, ...] = ()


class Rule(Protocol):
    """A function from a plan and knowledge to a rewrite, or None when nothing changes. Its name is the rule's name."""

    __name__: str

    def __call__(self, plan: Operator, knowledge: Knowledge, /) -> Rewrite | None: ...
