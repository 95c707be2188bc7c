"""Elements of a property graph, as values that a query can hold.

Invariant: a node equals a node with the same id and a relationship a relationship with the same id, whatever their
properties: identity is the id (the unique-name assumption). `content_key` compares the contents of elements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

ElementId: TypeAlias = int | str
Value: TypeAlias = object  # None, bool, int, float, str, list, dict, Node, Relationship, Path, Point, temporal values


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    id: ElementId
    labels: tuple[str, ...] = ()
    properties: Mapping[str, Value] = field(default_factory=dict)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and self.id == other.id

    def __hash__(self) -> int:
        return hash(("node", self.id))


@dataclass(frozen=True, slots=True, eq=False)
class Relationship:
    """A directed, typed edge. An `id` of None is replaced by an id that the stream makes when the event enters it."""

    id: ElementId | None
    type: str
    source: ElementId
    target: ElementId
    properties: Mapping[str, Value] = field(default_factory=dict)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Relationship) and self.id == other.id

    def __hash__(self) -> int:
        return hash(("relationship", self.id))

    def other_end(self, node_id: ElementId) -> ElementId:
        return self.target if node_id == self.source else self.source


@dataclass(frozen=True, slots=True)
class Path:
    """An alternating walk: one node more than relationships, in the order they are passed."""

    nodes: tuple[Node, ...]
    relationships: tuple[Relationship, ...] = ()

    def __len__(self) -> int:
        return len(self.relationships)
