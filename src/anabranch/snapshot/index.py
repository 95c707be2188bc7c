"""Indexes of one graph for matching, each built on first use.

Invariant: every index is derived from the graph only and keeps the graph's order, so that the order of matches does not
depend on the index that served them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from anabranch.algebra.operators import Direction
from anabranch.model.compare import identity_key
from anabranch.model.graph import PropertyGraph
from anabranch.model.values import ElementId, Node, Relationship

NeighbourStep = tuple[Relationship, Node]


def has_labels(node: Node, labels: Sequence[str]) -> bool:
    own = node.labels
    return all(label in own for label in labels)


class Adjacency(dict[ElementId, Sequence[NeighbourStep]]):
    """Per node, the relationships of these types that leave (`out`), enter (`in`) or touch it (`both`), each with the
    node it leads to, which has the labels. A self-loop touches its node once. Filled for the nodes that are asked for.
    """

    def __init__(
        self, graph: PropertyGraph, types: tuple[str, ...], direction: Direction, labels: tuple[str, ...]
    ) -> None:
        super().__init__()
        self._graph = graph
        self._types = frozenset(types)
        self._direction = direction
        self._labels = labels

    def __missing__(self, node_id: ElementId) -> Sequence[NeighbourStep]:
        graph, types, labels, nodes = self._graph, self._types, self._labels, self._graph.nodes
        steps: list[NeighbourStep] = []
        if self._direction != "in":
            steps += [(one, nodes[one.target]) for one in graph.leaving(node_id) if not types or one.type in types]
        if self._direction != "out":
            loops = self._direction == "in"
            steps += [
                (one, nodes[one.source])
                for one in graph.entering(node_id)
                if (not types or one.type in types) and (loops or one.source != node_id)
            ]
        if labels:
            steps = [step for step in steps if has_labels(step[1], labels)]
        self[node_id] = steps
        return steps


NO_NODES: tuple[Node, ...] = ()


class GraphIndex:
    """A graph with its adjacency by types and target labels, its nodes by labels and by property values."""

    def __init__(self, graph: PropertyGraph) -> None:
        self.graph = graph
        self.plans: dict[Any, Any] = {}  # per matcher, the steps that it takes over this graph
        self._adjacencies: dict[tuple[tuple[str, ...], Direction, tuple[str, ...]], Adjacency] = {}
        self._labelled: dict[tuple[str, ...], Sequence[Node]] = {}
        self._by_property: dict[tuple[tuple[str, ...], str], Mapping[Hashable, Sequence[Node]]] = {}

    def adjacency(self, types: tuple[str, ...], direction: Direction, labels: tuple[str, ...] = ()) -> Adjacency:
        key = (types, direction, labels)
        found = self._adjacencies.get(key)
        if found is None:
            found = self._adjacencies[key] = Adjacency(self.graph, types, direction, labels)
        return found

    def ends(self, types: tuple[str, ...], direction: Direction) -> Sequence[Node]:
        """The nodes from which a relationship of these types can be walked in this direction."""
        ids: dict[ElementId, None] = {}
        for relationship in self.relationships(types):
            if direction != "in":
                ids[relationship.source] = None
            if direction != "out":
                ids[relationship.target] = None
        return [self.graph.nodes[node_id] for node_id in ids]

    def relationships(self, types: tuple[str, ...]) -> Iterable[Relationship]:
        """The relationships of any of the types; of no types, all."""
        if not types:
            return self.graph.relationships.values()
        if len(types) == 1:
            return self.graph.by_type.get(types[0], ())
        wanted = frozenset(types)
        return [one for one in self.graph.relationships.values() if one.type in wanted]

    def nodes(self, labels: tuple[str, ...]) -> Sequence[Node]:
        """The nodes that have all the labels."""
        found = self._labelled.get(labels)
        if found is None:
            if not labels:
                found = list(self.graph.nodes.values())
            else:
                rarest = min((self.graph.by_label.get(label, NO_NODES) for label in labels), key=len)
                found = rarest if len(labels) == 1 else [node for node in rarest if has_labels(node, labels)]
            self._labelled[labels] = found
        return found

    def nodes_by_property(self, labels: tuple[str, ...], key: str) -> Mapping[Hashable, Sequence[Node]]:
        """The nodes that have the labels and the property, by its value's `identity_key`."""
        found = self._by_property.get((labels, key))
        if found is None:
            groups: dict[Hashable, list[Node]] = {}
            for node in self.nodes(labels):
                value = node.properties.get(key)
                if value is not None:
                    groups.setdefault(identity_key(value), []).append(node)
            found = self._by_property[(labels, key)] = groups
        return found
