"""The union of events by id, kept up to date while a window slides over them.

Two policies for events that disagree about an element:

    latest   the newest value of each property key, all labels, the newest type and ends (the default)
    strict   Seraph Def. 5.4: one disagreement about labels, properties, type or ends, and the union is empty

Law: after any adds and evictions the graph is the union of exactly the events inside, whatever happened before; the
elements stand in the order of the latest event that carried them, so equal contents give equal iteration orders. An end
that no event describes is a bare node, and cannot cause a disagreement. The labels and the keys of an element stand in
the order of the newest event that gave them.

State: per element its carriers (its versions in the events), oldest first, and their merge. An add or an eviction
touches only the elements of that event: O(its elements). A hub is merged again only when the leaving carrier had keys
or labels that the next one lacks; then the merge from each carrier on is kept, so that each carrier is read once more
in total, not at each eviction.

Where changes are tracked: the last reported graph, and the elements touched since. Reporting changes is O(elements
touched), except when a strict union becomes empty or whole again, which changes everything.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, Literal, TypeAlias, TypeVar, get_args

from anabranch.errors import InternalError
from anabranch.model.compare import content_key
from anabranch.model.event import Event
from anabranch.model.graph import EMPTY_GRAPH, PropertyGraph
from anabranch.model.values import ElementId, Node, Relationship, Value

ConflictPolicy = Literal["latest", "strict"]
CONFLICT_POLICIES: tuple[str, ...] = get_args(ConflictPolicy)

Element = TypeVar("Element", Node, Relationship)

NodeChange: TypeAlias = tuple[Node | None, Node | None]
RelationshipChange: TypeAlias = tuple[Relationship | None, Relationship | None]
"""An element before and after; None where it was not, or is not, in the graph."""


def was_moved(change: RelationshipChange) -> bool:
    """Return whether a relationship has other ends, or another type, than before."""
    was, now = change
    if was is None or now is None:
        return False
    return (was.source, was.target, was.type) != (now.source, now.target, now.type)


@dataclass(frozen=True, slots=True)
class ElementChanges:
    """Changes of the elements of a graph, each element at most once; before and after may be equal.

    A node without a description (an end of a relationship) comes and goes like any other."""

    nodes: tuple[NodeChange, ...] = ()
    relationships: tuple[RelationshipChange, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.nodes or self.relationships)

    @classmethod
    def entering(cls, graph: PropertyGraph) -> ElementChanges:
        """Return the change from the empty graph to this one."""
        nodes: tuple[NodeChange, ...] = tuple((None, node) for node in graph.nodes.values())
        return cls(nodes, tuple((None, relationship) for relationship in graph.relationships.values()))


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two events that disagree about an element: the content of the strict policy's warning."""

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
    """The versions of one element in the events of the window, oldest first.

    `_merged` is their merge; None: to be computed at the next request. Then `_from_here` holds, for each carrier of
    that moment, the merge of it and the later ones, that of the oldest carrier last; `_since` is the merge of the
    carriers after that moment. While `_from_here` is empty, only `_merged` is known."""

    __slots__ = ("_from_here", "_merged", "_said", "_since", "disagreements")

    def __init__(self) -> None:
        self._said: deque[Element] = deque()
        self._merged: Element | None = None
        self._from_here: list[Element] = []
        self._since: Element | None = None
        self.disagreements = 0

    def __bool__(self) -> bool:
        return bool(self._said)

    def append(self, element: Element, strict: bool) -> int:
        """Add the newest carrier; return the number of disagreements that come with it."""
        said = self._said
        came = int(strict and bool(said) and _differ(said[-1], element))
        if not said:
            self._merged = element
        elif self._merged is not None:
            self._merged = overlay(self._merged, element)
        if self._from_here:
            self._since = element if self._since is None else overlay(self._since, element)
        said.append(element)
        self.disagreements += came
        return came

    def popleft(self, strict: bool) -> int:
        """Remove the oldest carrier; return the number of disagreements that go with it."""
        said = self._said
        gone = said.popleft()
        if not said:
            return 0
        went = int(strict and _differ(gone, said[0]))
        self.disagreements -= went
        if not _same_shape(gone, said[0]):
            self._merged = None
        if self._from_here:
            self._from_here.pop()
            if not self._from_here:
                self._merged, self._since = self._since, None
        return went

    def merged(self) -> Element:
        if self._merged is None:
            if not self._from_here:
                self._fold()
            older = self._from_here[-1]
            self._merged = older if self._since is None else overlay(older, self._since)
        return self._merged

    def _fold(self) -> None:
        newest_first = reversed(self._said)
        result = next(newest_first)
        self._from_here = [result]
        for element in newest_first:
            result = overlay(element, result)
            self._from_here.append(result)

    def conflict(self) -> Conflict | None:
        for older, newer in pairwise(self._said):
            found = difference(older, newer)
            if found is not None:
                return found
        return None


class _Told:
    """The last reported graph, with the number of relationships at each node, and the elements touched since."""

    __slots__ = ("degrees", "nodes", "relationships", "touched_nodes", "touched_relationships")

    def __init__(self) -> None:
        self.nodes: dict[ElementId, Node] = {}
        self.relationships: dict[ElementId | None, Relationship] = {}
        self.degrees: Counter[ElementId] = Counter()
        self.touched_nodes: dict[ElementId, None] = {}
        self.touched_relationships: dict[ElementId | None, None] = {}

    def touch(self, event: Event) -> None:
        for node in event.nodes:
            self.touched_nodes[node.id] = None
        for relationship in event.relationships:
            self.touched_relationships[relationship.id] = None

    def touch_all(self) -> None:
        self.touched_nodes.update(dict.fromkeys(self.nodes))
        self.touched_relationships.update(dict.fromkeys(self.relationships))

    def changes(
        self,
        nodes: Mapping[ElementId, _Carriers[Node]],
        relationships: Mapping[ElementId | None, _Carriers[Relationship]],
    ) -> ElementChanges:
        """Return the changes from the last reported graph to the union of these carriers, which becomes the reported
        one."""
        relationship_changes: list[RelationshipChange] = []
        for relationship_id in self.touched_relationships:
            was = self.relationships.get(relationship_id)
            said = relationships.get(relationship_id)
            now = None if said is None else said.merged()
            if was is now or (was is not None and now is not None and _plainly_same(was, now)):
                continue
            relationship_changes.append((was, now))
            self._count(was, -1)
            self._count(now, 1)
            if now is None:
                del self.relationships[relationship_id]
            else:
                self.relationships[relationship_id] = now
        node_changes: list[NodeChange] = []
        for node_id in self.touched_nodes:
            before, after = self.nodes.get(node_id), self._node(node_id, nodes)
            if before is after or (before is not None and after is not None and _plainly_same(before, after)):
                continue
            node_changes.append((before, after))
            if after is None:
                del self.nodes[node_id]
            else:
                self.nodes[node_id] = after
        self.touched_nodes, self.touched_relationships = {}, {}
        return ElementChanges(tuple(node_changes), tuple(relationship_changes))

    def _count(self, relationship: Relationship | None, weight: int) -> None:
        if relationship is None:
            return
        for end in (relationship.source, relationship.target):
            self.degrees[end] += weight
            self.touched_nodes[end] = None

    def _node(self, node_id: ElementId, nodes: Mapping[ElementId, _Carriers[Node]]) -> Node | None:
        described, degree = nodes.get(node_id), self.degrees[node_id]
        if not degree:
            del self.degrees[node_id]
        if described is not None:
            return described.merged()
        if not degree:
            return None
        told = self.nodes.get(node_id)
        return told if told is not None and not told.labels and not told.properties else Node(node_id)


class WindowContent:
    """The events of one window and their union. Events come in time order and leave from the old end.

    With `track`, it reports its changes (`changes`), to one reader."""

    def __init__(self, conflicts: ConflictPolicy = "latest", track: bool = False) -> None:
        self._strict = conflicts == "strict"
        self._events: deque[Event] = deque()
        self._nodes: dict[ElementId, _Carriers[Node]] = {}
        self._relationships: dict[ElementId | None, _Carriers[Relationship]] = {}
        self._disagreements = 0
        self._graph: PropertyGraph | None = EMPTY_GRAPH
        self._told = _Told() if track else None
        self._told_nothing = False  # the empty graph was reported, because the union disagreed

    def __len__(self) -> int:
        return len(self._events)

    def add(self, event: Event) -> None:
        self._events.append(event)
        self._graph = None
        if self._told is not None:
            self._told.touch(event)
        for node in event.nodes:
            nodes = self._nodes.pop(node.id, None) or _Carriers[Node]()
            self._disagreements += nodes.append(node, self._strict)
            self._nodes[node.id] = nodes
        for relationship in event.relationships:
            relationships = self._relationships.pop(relationship.id, None) or _Carriers[Relationship]()
            self._disagreements += relationships.append(relationship, self._strict)
            self._relationships[relationship.id] = relationships

    def evict(self, first: int) -> None:
        """Remove all events before the instant `first`."""
        events = self._events
        while events and events[0].event_time < first:
            event = events.popleft()
            self._graph = None
            if self._told is not None:
                self._told.touch(event)
            for node in event.nodes:
                nodes = self._nodes[node.id]
                self._disagreements -= nodes.popleft(self._strict)
                if not nodes:
                    del self._nodes[node.id]
            for relationship in event.relationships:
                relationships = self._relationships[relationship.id]
                self._disagreements -= relationships.popleft(self._strict)
                if not relationships:
                    del self._relationships[relationship.id]

    def clear(self) -> None:
        """Remove all events."""
        self._events.clear()
        self._nodes.clear()
        self._relationships.clear()
        self._disagreements = 0
        self._graph = EMPTY_GRAPH
        if self._told is not None:
            self._told.touch_all()

    def graph(self) -> PropertyGraph:
        if self._graph is None:
            if self._disagreements:
                self._graph = EMPTY_GRAPH
            else:
                self._graph = PropertyGraph(
                    (carriers.merged() for carriers in self._nodes.values()),
                    (carriers.merged() for carriers in self._relationships.values()),
                )
        return self._graph

    def changes(self) -> ElementChanges:
        """Return the changes of the elements since the last call: applied to the graph of that call, they give
        `graph()`."""
        told = self._told
        if told is None:
            raise InternalError("this content does not track its changes")
        if self._disagreements:
            told.touch_all()  # nothing, from the second time on
            self._told_nothing = True
            return told.changes({}, {})
        if self._told_nothing:
            self._told_nothing = False
            told.touched_nodes = dict.fromkeys(self._nodes)
            told.touched_relationships = dict.fromkeys(self._relationships)
        return told.changes(self._nodes, self._relationships)

    def conflict(self) -> Conflict | None:
        """Return the first disagreement that makes the union empty under the strict policy; else None."""
        if not self._strict:
            return None
        for nodes in self._nodes.values():
            if nodes.disagreements:
                return nodes.conflict()
        for relationships in self._relationships.values():
            if relationships.disagreements:
                return relationships.conflict()
        return None


def unite(events: Iterable[Event], conflicts: ConflictPolicy = "latest") -> PropertyGraph:
    """Return the union of given events, in their order."""
    content = WindowContent(conflicts)
    for event in events:
        content.add(event)
    return content.graph()


def overlay(older: Element, newer: Element) -> Element:
    """Lay the newer element over the older one: labels unite, properties of the newer win, key by key. Those of the
    newer come first."""
    if newer is older or _same_shape(older, newer):
        return newer
    own = newer.properties
    properties = {**own, **{key: value for key, value in older.properties.items() if key not in own}}
    if isinstance(newer, Node):
        assert isinstance(older, Node)
        return Node(newer.id, tuple(dict.fromkeys((*newer.labels, *older.labels))), properties)
    return Relationship(newer.id, newer.type, newer.source, newer.target, properties)


_PLAIN = frozenset((str, int, bool))  # kinds of values that are the same when they are equal


def _plainly_same(one: Element, other: Element) -> bool:
    """Return whether a cheap comparison shows that two contents of one element are the same."""
    if isinstance(one, Relationship) and isinstance(other, Relationship):
        same = one.type == other.type and one.source == other.source and one.target == other.target
    else:
        same = isinstance(one, Node) and isinstance(other, Node) and one.labels == other.labels
    if not same or len(one.properties) != len(other.properties):
        return False
    for (key, value), (other_key, other_value) in zip(one.properties.items(), other.properties.items(), strict=True):
        if key != other_key:
            return False
        if value is not other_value:
            kind = value.__class__
            if kind not in _PLAIN or kind is not other_value.__class__ or value != other_value:
                return False
    return True


def _same_shape(one: Element, other: Element) -> bool:
    """Return whether labels and property keys are the same, in the same order: then the newer element hides the older
    one."""
    if isinstance(one, Node) and isinstance(other, Node) and one.labels != other.labels:
        return False
    return len(one.properties) == len(other.properties) and list(one.properties) == list(other.properties)


def _differ(older: Element, newer: Element) -> bool:
    return older is not newer and difference(older, newer) is not None


def difference(older: Node | Relationship, newer: Node | Relationship) -> Conflict | None:
    """Return what two versions of an element disagree about first; None: nothing."""
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
