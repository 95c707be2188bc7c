"""A property graph held in memory, with the indexes that plain matching needs.

Invariant: every relationship's ends are nodes of the graph. Indexes are derived: they are built on first use and a
graph is not changed afterwards.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from anabranch.model.values import ElementId, Node, Relationship

_NONE: tuple[Relationship, ...] = ()


class PropertyGraph:
    """Nodes and relationships by id. Ends that no node describes become nodes without labels or properties."""

    def __init__(self, nodes: Iterable[Node] = (), relationships: Iterable[Relationship] = ()) -> None:
        self.nodes: dict[ElementId, Node] = {node.id: node for node in nodes}
        self.relationships: dict[ElementId | None, Relationship] = {}
        for relationship in relationships:
            self.relationships[relationship.id] = relationship
            for end in (relationship.source, relationship.target):
                if end not in self.nodes:
                    self.nodes[end] = Node(end)

    @cached_property
    def outgoing(self) -> Mapping[ElementId, Sequence[Relationship]]:
        index: dict[ElementId, list[Relationship]] = defaultdict(list)
        for relationship in self.relationships.values():
            index[relationship.source].append(relationship)
        return dict(index)

    @cached_property
    def incoming(self) -> Mapping[ElementId, Sequence[Relationship]]:
        index: dict[ElementId, list[Relationship]] = defaultdict(list)
        for relationship in self.relationships.values():
            index[relationship.target].append(relationship)
        return dict(index)

    @cached_property
    def by_label(self) -> Mapping[str, Sequence[Node]]:
        index: dict[str, list[Node]] = defaultdict(list)
        for node in self.nodes.values():
            for label in node.labels:
                index[label].append(node)
        return dict(index)

    @cached_property
    def by_type(self) -> Mapping[str, Sequence[Relationship]]:
        index: dict[str, list[Relationship]] = defaultdict(list)
        for relationship in self.relationships.values():
            index[relationship.type].append(relationship)
        return dict(index)

    def leaving(self, node_id: ElementId) -> Sequence[Relationship]:
        return self.outgoing.get(node_id, _NONE)

    def entering(self, node_id: ElementId) -> Sequence[Relationship]:
        return self.incoming.get(node_id, _NONE)

    def __repr__(self) -> str:
        return f"PropertyGraph({len(self.nodes)} nodes, {len(self.relationships)} relationships)"


EMPTY_GRAPH = PropertyGraph()
