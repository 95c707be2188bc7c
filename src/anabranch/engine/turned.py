"""Window contents built again from their events in reverse: the last element comes first.

Invariant: the elements are those of the windows; only the order in which they are found differs. An answer that is not
the same over both depends on that order, or on how the windows were followed.
"""

from __future__ import annotations

from collections.abc import Mapping as Views

from anabranch.algebra.operators import Source, Static, Window
from anabranch.engine.contents import SlidingGraph, SlidingTriples
from anabranch.engine.flows import whole
from anabranch.engine.views import WindowEvents
from anabranch.model.graph import PropertyGraph
from anabranch.model.mapping import Mapping
from anabranch.model.terms import Triple
from anabranch.model.triples import TripleGraph
from anabranch.model.union import ConflictPolicy
from anabranch.snapshot import Context
from anabranch.snapshot.context import SkippedRows


def turned_around(
    context: Context, views: Views[Window, WindowEvents], conflicts: ConflictPolicy, mapping: Mapping
) -> Context:
    """Return the context of the same evaluation over the same elements in another order."""

    def graph(source: Source) -> PropertyGraph:
        if isinstance(source, Static):
            found = context.graph(source)
        else:
            found = SlidingGraph(conflicts).slide(views[whole(source)], mapping).graph()
        return PropertyGraph(reversed(found.nodes.values()), reversed(found.relationships.values()))

    def triples(source: Source) -> TripleGraph:
        held: list[tuple[Triple, int | None]]
        if isinstance(source, Static):
            held = [(triple, None) for triple in context.triple_graph(source)]
        else:
            held = list(SlidingTriples(source.keep).slide(views[whole(source)], mapping).timed())
        held.reverse()
        return TripleGraph((triple for triple, _ in held), (time for _, time in held))

    return Context(
        graph,
        context.parameters,
        context.clock,
        context.seed,
        context.max_steps,
        skipped=None if context.skipped is None else SkippedRows(),
        check=context.check,
        triple_graph=triples,
        bounds=context.bounds,
    )
