"""The union of events by id, kept up to date while a window slides over them.

Two policies for events that disagree about an element:

    latest   the newest value of each property key, all labels, the newest type and ends (the default)
    strict   Seraph Def. 5.4: one disagreement about labels, properties, type or ends, and the union is empty

Law: after any adds and evictions the graph is the union of exactly the events inside, whatever the way there; the
elements stand in the order of the latest event that carried them, so equal contents give equal iteration orders.
An end that no event describes is a bare node, and says nothing that could disagree.

State: per element its carriers, oldest first, and their merge. An add or an eviction touches only the elements of that
event: O(its elements); a hub is merged again only when the leaving carrier had keys or labels that the next one lacks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, Literal, TypeVar, get_args

from anabranch.model.compare import content_key
from anabranch.model.event import Event
from anabranch.model.graph import EMPTY_GRAPH, PropertyGraph
from anabranch.model.values import ElementId, Node, Relationship, Value

ConflictPolicy = Literal["latest", "strict"]
CONFLICT_POLICIES: tuple[str, ...] = get_args(ConflictPolicy)

Element = TypeVar("Element", Node, Relationship)


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two events that disagree about an element: what the strict policy warns of."""

    kind: Literal["node", "relationship"]
    element_id: ElementId | None
    aspect: str  # a property key, or "labels", "type", "ends"
    is_property: bool
    older: Value
    newer: Value

    def __str__(self) -> str:
        what = f"property `{self.aspect}`" if self.is_property else self.aspect
        return (
            f"{self.kind} {self.element_id!r}: events in the window disagree about its {what} "
            f"({self.older!r}, then {self.newer!r}); the union is empty"
        )


class _Carriers(Generic[Element]):
    """What the events in the window say about one element, oldest first."""

    __slots__ = ("_merged", "_said", "disagreements")

    def __init__(self) -> None:
        self._said: deque[Element] = deque()
        self._merged: Element | None = None
        self.disagreements = 0

    def append(self, element: Element, strict: bool) -> None:
        said = self._said
        if strict and said:
            self.disagreements += _differ(said[-1], element)
        if not said:
            self._merged = element
        elif self._merged is not None:
            self._merged = overlay(self._merged, element)
        said.append(element)

    def popleft(self, strict: bool) -> bool:
        """Forget the oldest carrier; False when none is left."""
        said = self._said
        gone = said.popleft()
        if not said:
            return False
        if strict:
            self.disagreements -= _differ(gone, said[0])
        if not _same_shape(gone, said[0]):
            self._merged = None
        return True

    def merged(self) -> Element:
        if self._merged is None:
            result = self._said[0]
            for element in self._said:
                result = overlay(result, element)
            self._merged = result
        return self._merged

    def conflict(self) -> Conflict | None:
        for older, newer in pairwise(self._said):
            found = _difference(older, newer)
            if found is not None:
                return found
        return None


class WindowContent:
    """The events of one window and their union. Events come in time order and leave from the old end."""

    def __init__(self, conflicts: ConflictPolicy = "latest") -> None:
        self._strict = conflicts == "strict"
        self._events: deque[Event] = deque()
        self._nodes: dict[ElementId, _Carriers[Node]] = {}
        self._relationships: dict[ElementId | None, _Carriers[Relationship]] = {}
        self._graph: PropertyGraph | None = EMPTY_GRAPH

    def __len__(self) -> int:
        return len(self._events)

    def add(self, event: Event) -> None:
        self._events.append(event)
        self._graph = None
        for node in event.nodes:
            nodes = self._nodes.pop(node.id, None) or _Carriers[Node]()
            nodes.append(node, self._strict)
            self._nodes[node.id] = nodes
        for relationship in event.relationships:
            relationships = self._relationships.pop(relationship.id, None) or _Carriers[Relationship]()
            relationships.append(relationship, self._strict)
            self._relationships[relationship.id] = relationships

    def evict(self, first: int) -> None:
        """Forget all events before the instant `first`."""
        events = self._events
        while events and events[0].event_time < first:
            event = events.popleft()
            self._graph = None
            for node in event.nodes:
                if not self._nodes[node.id].popleft(self._strict):
                    del self._nodes[node.id]
            for relationship in event.relationships:
                if not self._relationships[relationship.id].popleft(self._strict):
                    del self._relationships[relationship.id]

    def graph(self) -> PropertyGraph:
        if self._graph is None:
            if self._strict and self._disagrees():
                self._graph = EMPTY_GRAPH
            else:
                self._graph = PropertyGraph(
                    (carriers.merged() for carriers in self._nodes.values()),
                    (carriers.merged() for carriers in self._relationships.values()),
                )
        return self._graph

    def conflict(self) -> Conflict | None:
        """Under the strict policy, the first disagreement that makes the union empty."""
        if not self._strict:
            return None
        for nodes in self._nodes.values():
            if nodes.disagreements:
                return nodes.conflict()
        for relationships in self._relationships.values():
            if relationships.disagreements:
                return relationships.conflict()
        return None

    def _disagrees(self) -> bool:
        return any(carriers.disagreements for carriers in self._nodes.values()) or any(
            carriers.disagreements for carriers in self._relationships.values()
        )


def unite(events: Iterable[Event], conflicts: ConflictPolicy = "latest") -> PropertyGraph:
    """The union of events that are at hand, in their order."""
    content = WindowContent(conflicts)
    for event in events:
        content.add(event)
    return content.graph()


def overlay(older: Element, newer: Element) -> Element:
    """The newer element over the older one: labels unite, properties of the newer win, key by key."""
    if newer is older or _same_shape(older, newer):
        return newer
    properties = {**older.properties, **newer.properties}
    if isinstance(newer, Node):
        assert isinstance(older, Node)
        return Node(newer.id, tuple(dict.fromkeys((*older.labels, *newer.labels))), properties)
    return Relationship(newer.id, newer.type, newer.source, newer.target, properties)


def _same_shape(one: Element, other: Element) -> bool:
    """Same labels and same property keys, in the same order: then the newer hides all that the older said."""
    if isinstance(one, Node) and isinstance(other, Node) and one.labels != other.labels:
        return False
    return len(one.properties) == len(other.properties) and list(one.properties) == list(other.properties)


def _differ(older: Element, newer: Element) -> bool:
    return older is not newer and _difference(older, newer) is not None


def _difference(older: Node | Relationship, newer: Node | Relationship) -> Conflict | None:
    kind: Literal["node", "relationship"] = "node" if isinstance(newer, Node) else "relationship"

    def conflict(aspect: str, one: Value, other: Value, is_property: bool = False) -> Conflict:
        return Conflict(kind, newer.id, aspect, is_property, one, other)

    if isinstance(older, Node) and isinstance(newer, Node):
        if set(older.labels) != set(newer.labels):
            return conflict("labels", list(older.labels), list(newer.labels))
    elif isinstance(older, Relationship) and isinstance(newer, Relationship):
        if older.type != newer.type:
            return conflict("type", older.type, newer.type)
        if (older.source, older.target) != (newer.source, newer.target):
            return conflict("ends", [older.source, older.target], [newer.source, newer.target])
    for key in (*older.properties, *newer.properties):
        one, other = older.properties.get(key), newer.properties.get(key)
        if one is not other and content_key(one) != content_key(other):
            return conflict(key, one, other, is_property=True)
    return None
