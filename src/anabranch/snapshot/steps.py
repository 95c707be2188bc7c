"""The steps of a match: each binds one or more slots in all possible ways and hands over to the next.

A step is a generator that yields once per way to complete the match; the slots then hold it. `used` are the
relationships that the match has taken so far.

Invariant: when a step is asked for more, `used` is as the step left it; slots that it binds may hold anything
before it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from anabranch.algebra.operators import Direction, RelationshipPattern
from anabranch.model.compare import identity_key
from anabranch.model.graph import PropertyGraph
from anabranch.model.union import overlay
from anabranch.model.values import ElementId, Node, Path, Relationship, Value
from anabranch.snapshot.context import Context
from anabranch.snapshot.index import Adjacency, has_labels
from anabranch.snapshot.paths import (
    RelationshipTest,
    ShortestPathSearch,
    Trail,
    by_ids,
    ends_of_trails,
    shortest_from,
    trails,
)

MatchSlots = list[Value]
UsedRelationships = set[ElementId | None]
MatchStep = Callable[[MatchSlots, UsedRelationships, Context], Iterator[None]]
Accept = Callable[[MatchSlots, Context], bool]
Candidates = Callable[[MatchSlots, Context], Sequence[Node]]
Where = Callable[[MatchSlots, Context], RelationshipTest]


@dataclass(frozen=True, slots=True)
class Then:
    """The continuation after a binding: the conditions that it completes, then the rest of the match (None: it is
    complete)."""

    accept: Accept | None
    rest: MatchStep | None

    def __call__(self, slots: MatchSlots, used: UsedRelationships, context: Context) -> Iterator[None]:
        if self.accept is None or self.accept(slots, context):
            if self.rest is None:
                yield
            else:
                yield from self.rest(slots, used, context)


@dataclass(frozen=True, slots=True)
class End:
    """A node at an end of a relationship: its slot, whether something bound it before, and the labels it must have."""

    slot: int
    bound: bool
    labels: tuple[str, ...]

    def bind(self, slots: MatchSlots, node: Node) -> bool:
        """Put the node here if it fits."""
        if self.bound:
            return bool(slots[self.slot].id == node.id)  # type: ignore[attr-defined]
        if self.labels and not has_labels(node, self.labels):
            return False
        slots[self.slot] = node
        return True


@dataclass(frozen=True, slots=True)
class HopWalk:
    """A walk from a bound node along the relationships of one hop. `length` is None for one relationship; `backwards`:
    the walk begins at the hop's right end."""

    origin: int
    slot: int
    target: End
    adjacency: Adjacency
    length: tuple[int, int | None] | None
    backwards: bool
    graph: PropertyGraph
    where: Where | None

    @property
    def lengths(self) -> tuple[int, int | None]:
        return (1, 1) if self.length is None else self.length

    def start(self, slots: MatchSlots) -> Node:
        return self.graph.nodes[slots[self.origin].id]  # type: ignore[attr-defined]

    def allowed(self, slots: MatchSlots, context: Context) -> RelationshipTest | None:
        return None if self.where is None else self.where(slots, context)


# --- nodes ----------------------------------------------------------------------------------------------------------


def scan(slot: int, candidates: Candidates, then: Then) -> MatchStep:
    """Bind a node to each candidate."""
    accept, rest = then.accept, then.rest

    def step(slots: MatchSlots, used: UsedRelationships, context: Context) -> Iterator[None]:
        nodes = candidates(slots, context)
        context.spend(len(nodes))
        for node in nodes:
            slots[slot] = node
            if accept is None or accept(slots, context):
                if rest is None:
                    yield
                else:
                    yield from rest(slots, used, context)

    return step


def meet_node(slot: int, labels: tuple[str, ...], graph: PropertyGraph, then: Then) -> MatchStep:
    """A node that was bound before the match must be in this graph; the pattern asks this graph about it."""

    def step(slots: MatchSlots, used: UsedRelationships, context: Context) -> Iterator[None]:
        value = slots[slot]
        node = graph.nodes.get(value.id) if isinstance(value, Node) else None
        if node is not None and has_labels(node, labels):
            slots[slot] = node
            yield from then(slots, used, context)

    return step


def meet_relationships(slot: int, graph: PropertyGraph, then: Then) -> MatchStep:
    """The same for a relationship, or a list of them, that was bound before the match."""

    def step(slots: MatchSlots, used: UsedRelationships, context: Context) -> Iterator[None]:
        value = slots[slot]
        found: Value
        if isinstance(value, Relationship):
            found = graph.relationships.get(value.id)
        else:
            found = _known_trail(value, graph)
        if found is not None:
            slots[slot] = found
            yield from then(slots, used, context)

    return step


def unite_faces(faces: Sequence[tuple[int, int]], then: Then) -> MatchStep:
    """Merge an element that was bound before with its version in this graph: from here on it has the properties of
    both.

    `faces` pairs the slot of an element with the slot that keeps its earlier value.
    """

    def step(slots: MatchSlots, used: UsedRelationships, context: Context) -> Iterator[None]:
        for slot, before in faces:
            slots[slot] = _united(slots[before], slots[slot])
        yield from then(slots, used, context)

    return step


def _united(older: Value, newer: Value) -> Value:
    if older is newer:
        return newer
    if isinstance(older, list) and isinstance(newer, list):
        return [_united(one, other) for one, other in zip(older, newer, strict=True)]
    if isinstance(older, Node) and isinstance(newer, Node):
        return overlay(older, newer)
    if isinstance(older, Relationship) and isinstance(newer, Relationship):
        return overlay(older, newer)
    return newer


# --- one relationship -----------------------------------------------------------------------------------------------


def expand(
    origin: int, slot: int, target: int, adjacency: Adjacency, where: Where | None, last: bool, then: Then
) -> MatchStep:
    """From a bound node along each relationship to a new node. The adjacency already keeps to types and labels."""
    accept, rest = then.accept, then.rest

    def step(slots: MatchSlots, used: UsedRelationships, context: Context) -> Iterator[None]:
        steps = adjacency[slots[origin].id]  # type: ignore[attr-defined]
        context.spend(len(steps))
        allowed = where(slots, context) if where is not None else None
        for relationship, node in steps:
            if relationship.id in used or (allowed is not None and not allowed(relationship)):
                continue
            slots[slot] = relationship
            slots[target] = node
            if accept is not None and not accept(slots, context):
                continue
            if rest is None:
                yield
            elif last:
                yield from rest(slots, used, context)
            else:
                used.add(relationship.id)
                yield from rest(slots, used, context)
                used.discard(relationship.id)

    return step


def expand_into(
    left: int,
    slot: int,
    right: int,
    forward: Adjacency,
    backward: Adjacency,
    where: Where | None,
    then: Then,
) -> MatchStep:
    """The relationships between two bound nodes, looked up at the one that has fewer."""

    def step(slots: MatchSlots, used: UsedRelationships, context: Context) -> Iterator[None]:
        left_id, right_id = slots[left].id, slots[right].id  # type: ignore[attr-defined]
        steps, wanted = forward[left_id], right_id
        others = backward[right_id]
        if len(others) < len(steps):
            steps, wanted = others, left_id
        context.spend(len(steps))
        allowed = where(slots, context) if where is not None else None
        for relationship, node in steps:
            if node.id != wanted or relationship.id in used or (allowed is not None and not allowed(relationship)):
                continue
            slots[slot] = relationship
            used.add(relationship.id)
            yield from then(slots, used, context)
            used.discard(relationship.id)

    return step


def given_relationship(
    left: End,
    slot: int,
    right: End,
    pattern: RelationshipPattern,
    graph: PropertyGraph,
    where: Where | None,
    then: Then,
) -> MatchStep:
    """A relationship that was bound before the match, laid between its ends."""
    types, direction = pattern.types, pattern.direction

    def step(slots: MatchSlots, used: UsedRelationships, context: Context) -> Iterator[None]:
        found = slots[slot]
        if not isinstance(found, Relationship) or found.id in used or (types and found.type not in types):
            return
        if where is not None and not where(slots, context)(found):
            return
        used.add(found.id)
        for start_id in _starts(found, direction):
            if left.bind(slots, graph.nodes[start_id]) and right.bind(slots, graph.nodes[found.other_end(start_id)]):
                yield from then(slots, used, context)
        used.discard(found.id)

    return step


def _starts(relationship: Relationship, direction: Direction) -> tuple[ElementId, ...]:
    """The ends at which a relationship can be entered when it is walked in a direction."""
    if direction == "out" or relationship.source == relationship.target:
        return (relationship.source,)
    if direction == "in":
        return (relationship.target,)
    return (relationship.source, relationship.target)


# --- many relationships ---------------------------------------------------------------------------------------------


def expand_trails(walk: HopWalk, then: Then) -> MatchStep:
    """From a bound node along each trail. The list reads from left to right, also when walked from the right."""
    slot, target, adjacency, backwards = walk.slot, walk.target, walk.adjacency, walk.backwards
    minimum, maximum = walk.lengths

    def step(slots: MatchSlots, used: UsedRelationships, context: Context) -> Iterator[None]:
        start, allowed = walk.start(slots), walk.allowed(slots, context)
        for trail, end in trails(adjacency, start, minimum, maximum, used, allowed, context):
            if target.bind(slots, end):
                slots[slot] = trail[::-1] if backwards else list(trail)
                yield from then(slots, used, context)

    return step


def expand_ends(walk: HopWalk, both_ways: bool, then: Then) -> MatchStep:
    """From a bound node to each node at which a trail ends, once."""
    minimum, maximum = walk.lengths

    def step(slots: MatchSlots, used: UsedRelationships, context: Context) -> Iterator[None]:
        start, allowed = walk.start(slots), walk.allowed(slots, context)
        for end in ends_of_trails(walk.adjacency, start, minimum, maximum, both_ways, allowed, context):
            if walk.target.bind(slots, end):
                slots[walk.slot] = None
                yield from then(slots, used, context)
                if walk.target.bound:
                    return

    return step


def given_trail(
    left: End,
    slot: int,
    right: End,
    pattern: RelationshipPattern,
    graph: PropertyGraph,
    where: Where | None,
    then: Then,
) -> MatchStep:
    """A list of relationships that was bound before the match, walked from left to right."""
    types, direction = pattern.types, pattern.direction
    minimum, maximum = pattern.length or (1, 1)

    def starts(slots: MatchSlots, trail: Trail) -> Sequence[ElementId]:
        if left.bound:
            return (slots[left.slot].id,)  # type: ignore[attr-defined]
        if trail:
            return _starts(trail[0], direction)
        if right.bound and right.slot != left.slot:
            return (slots[right.slot].id,)  # type: ignore[attr-defined]
        return tuple(graph.nodes)

    def step(slots: MatchSlots, used: UsedRelationships, context: Context) -> Iterator[None]:
        trail = slots[slot]
        if not isinstance(trail, list) or len(trail) < minimum or (maximum is not None and len(trail) > maximum):
            return
        ids = {relationship.id for relationship in trail}
        if len(ids) < len(trail) or ids & used or any(types and one.type not in types for one in trail):
            return
        if where is not None and not all(map(where(slots, context), trail)):
            return
        used |= ids
        for start_id in starts(slots, trail):
            end_id = _walk(trail, start_id, direction)
            if end_id is None or start_id not in graph.nodes:
                continue
            if left.bind(slots, graph.nodes[start_id]) and right.bind(slots, graph.nodes[end_id]):
                yield from then(slots, used, context)
        used -= ids

    return step


def _known_trail(value: Value, graph: PropertyGraph) -> Trail | None:
    if not isinstance(value, list):
        return None
    found = [graph.relationships.get(one.id) for one in value if isinstance(one, Relationship)]
    trail = [one for one in found if one is not None]
    return trail if len(trail) == len(value) else None


def _walk(trail: Trail, start_id: ElementId, direction: Direction) -> ElementId | None:
    """Return the end of a trail from a node; None when it cannot be walked in this direction."""
    here = start_id
    for relationship in trail:
        if here not in _starts(relationship, direction):
            return None
        here = relationship.other_end(here)
    return here


# --- shortest paths -------------------------------------------------------------------------------------------------


def shortest(walk: HopWalk, every: bool, cached: bool, then: Then) -> MatchStep:
    """From a bound node along the shortest path, or all of them, to a bound node or to every node that can be reached.

    Shortest paths are exempt from the rule that relationships of one match differ: they are what the graph says.
    """
    target, adjacency, backwards = walk.target, walk.adjacency, walk.backwards
    minimum, maximum = walk.lengths
    last_search: ShortestPathSearch | None = None

    def search_from(start: Node, slots: MatchSlots, context: Context) -> ShortestPathSearch:
        nonlocal last_search
        if cached and last_search is not None and last_search.start.id == start.id:
            return last_search
        last_search = ShortestPathSearch(adjacency, start, maximum, walk.allowed(slots, context), context)
        return last_search

    def found(search: ShortestPathSearch, end: Node) -> Iterator[Trail]:
        """Paths from left to right."""
        if every:
            yield from search.paths_back(end) if backwards else search.paths_to(end)
        else:
            yield search.path_back(end) if backwards else search.path_to(end)

    def level_by_level(start: Node, slots: MatchSlots, context: Context) -> Iterator[tuple[Trail, Node]]:
        if target.bound:
            end = walk.graph.nodes[slots[target.slot].id]  # type: ignore[attr-defined]
            if end.id == start.id:
                return
            search = search_from(start, slots, context)
            ends = [end] if search.reaches(end.id) else []
        else:
            search = ShortestPathSearch(adjacency, start, maximum, walk.allowed(slots, context), context)
            ends = (one for one in search.reachable() if has_labels(one, target.labels))  # type: ignore[assignment]
        for end in ends:
            for trail in found(search, end):
                yield trail, end

    def by_length(start: Node, slots: MatchSlots, context: Context) -> Iterator[tuple[Trail, Node]]:
        best: dict[ElementId, tuple[Trail, Node]] = {}
        allowed = walk.allowed(slots, context)
        wanted = slots[target.slot].id if target.bound else None  # type: ignore[attr-defined]
        for trail, end in shortest_from(minimum, adjacency, start, wanted, maximum, allowed, context):
            ordered = trail[::-1] if backwards else trail
            if every:
                yield ordered, end
            elif end.id not in best or by_ids(ordered) < by_ids(best[end.id][0]):
                best[end.id] = (ordered, end)
        yield from best.values()

    def step(slots: MatchSlots, used: UsedRelationships, context: Context) -> Iterator[None]:
        start = walk.start(slots)
        if minimum == 0 and target.bind(slots, start):
            slots[walk.slot] = []
            yield from then(slots, used, context)
        if maximum is not None and maximum < max(minimum, 1):
            return
        ways = by_length if minimum > 1 else level_by_level
        for trail, end in ways(start, slots, context):
            if target.bind(slots, end):
                slots[walk.slot] = trail[0] if walk.length is None else trail
                yield from then(slots, used, context)

    return step


# --- paths ----------------------------------------------------------------------------------------------------------


def path_of(start: Node, trail: Trail, graph: PropertyGraph) -> Path:
    """The path along a trail."""
    passed = [start]
    for relationship in trail:
        passed.append(graph.nodes[relationship.other_end(passed[-1].id)])
    return Path(tuple(passed), tuple(trail))


def assemble(
    slot: int, nodes: Sequence[int], relationships: Sequence[int], bound: bool, graph: PropertyGraph, then: Then
) -> MatchStep:
    """Put a named path together from the slots of its nodes and relationships."""

    def step(slots: MatchSlots, used: UsedRelationships, context: Context) -> Iterator[None]:
        start: Node = slots[nodes[0]]  # type: ignore[assignment]
        passed: list[Node] = [start]
        walked: list[Relationship] = []
        for position, one in enumerate(relationships):
            value = slots[one]
            if isinstance(value, Relationship):
                walked.append(value)
                passed.append(slots[nodes[position + 1]])  # type: ignore[arg-type]
                continue
            for relationship in value:  # type: ignore[attr-defined]
                walked.append(relationship)
                passed.append(graph.nodes[relationship.other_end(passed[-1].id)])
        path = Path(tuple(passed), tuple(walked))
        if bound:
            if identity_key(slots[slot]) != identity_key(path):
                return
        else:
            slots[slot] = path
        yield from then(slots, used, context)

    return step
