"""What one evaluation is given from outside: graphs, parameters, the clock, chance, and how much work it may do.

Invariant: an answer depends on nothing but the plan and this; graphs are asked for once and do not change meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random

from anabranch.algebra.operators import Source
from anabranch.errors import EvaluationError
from anabranch.model.graph import PropertyGraph
from anabranch.model.values import ElementId, Node, Relationship, Value
from anabranch.snapshot.index import GraphIndex

MAX_TRAIL_STEPS = 50_000_000


@dataclass(slots=True)
class Context:
    """One evaluation at one instant. `clock` is UTC microseconds; `steps` counts what has been spent of the budget."""

    graph: Callable[[Source], PropertyGraph]
    parameters: Mapping[str, Value] = field(default_factory=dict)
    clock: int = 0
    random: Random = field(default_factory=lambda: Random(0))
    max_trail_steps: int = MAX_TRAIL_STEPS
    steps: int = 0
    _indexes: dict[Source, GraphIndex] = field(default_factory=dict, repr=False)

    def index(self, source: Source) -> GraphIndex:
        """The graph of a source with its indexes, which live as long as this context."""
        found = self._indexes.get(source)
        if found is None:
            found = self._indexes[source] = GraphIndex(self.graph(source))
        return found

    def spend(self, steps: int) -> None:
        """Count work that a pattern or a join multiplies; past the budget, give up rather than hang."""
        self.steps += steps
        if self.steps > self.max_trail_steps:
            raise EvaluationError(
                "SER-306",
                f"the query needs more than {self.max_trail_steps:,} steps over this window",
                "bound the variable-length relationships, name labels and types, or connect the parts of the pattern",
            )

    def find_node(self, node_id: ElementId) -> Node | None:
        """A node of any graph that the plan has touched."""
        for index in self._indexes.values():
            node = index.graph.nodes.get(node_id)
            if node is not None:
                return node
        return None

    def end_of(self, relationship: Relationship, node_id: ElementId) -> Node:
        """The node at an end of a relationship, from the graph that the relationship came from."""
        for index in self._indexes.values():
            if index.graph.relationships.get(relationship.id) is relationship:
                return index.graph.nodes[node_id]
        return self.find_node(node_id) or Node(node_id)
