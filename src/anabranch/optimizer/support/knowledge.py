"""What the rules are told, and what they give.

Invariant: knowledge is about one version of the static graphs. Where a graph gets new content, plans are made anew.
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
    """`static_predicates` are the predicates that each static graph holds, by its name; a graph that is missing there,
    or is None, may hold any. `prefixes` are only for what the rules say about themselves; `sizes` say how much the
    static graphs hold, where that is known."""

    static_predicates: Mapping[str, frozenset[Iri] | None] = field(default_factory=dict)
    prefixes: tuple[tuple[str, str], ...] = ()
    sizes: Sizes = field(default_factory=dict)

    @classmethod
    def of(cls, graphs: Mapping[str, object], prefixes: tuple[tuple[str, str], ...] = ()) -> Knowledge:
        """What can be seen in static graphs, by their names; nothing is known of those that are not made of triples."""
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
    """A plan with what was done to it, one line per change, for EXPLAIN."""

    plan: Operator
    notes: tuple[str, ...] = ()


class Rule(Protocol):
    """A function of a plan and what is known; None when there is nothing to do. Its name is the rule's name."""

    __name__: str

    def __call__(self, plan: Operator, knowledge: Knowledge, /) -> Rewrite | None: ...
