"""Walking further than one relationship: trails of variable length, and shortest paths by breadth-first levels.

A trail passes no relationship twice; nodes may repeat. A shortest path leads from one node to another, so a node has
none to itself but the empty one, if zero length is allowed. Among shortest paths of one length, "the" shortest is the
one whose relationship ids, read from left to right, come first: it depends on the graph alone, not on the search.

Where only the ends of trails matter, a breadth-first search finds each of them once.

Invariant: everything found is within the length bounds, and every relationship walked is paid for from the budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

from anabranch.model.values import ElementId, Node, Relationship
from anabranch.snapshot.context import Context
from anabranch.snapshot.index import Adjacency, NeighbourStep

RelationshipTest = Callable[[Relationship], bool]
Trail = list[Relationship]

_PRICE = 10  # of a step along trails: there may be exponentially many, and others wait for the end of the search


def trails(
    adjacency: Adjacency,
    start: Node,
    minimum: int,
    maximum: int | None,
    used: set[ElementId | None],
    allowed: RelationshipTest | None,
    context: Context,
) -> Iterator[tuple[Trail, Node]]:
    """All trails from a node with their end, depth first. The list is reused: copy it to keep it.

    `used` holds the relationships of the trail too while it is looked at, so that the rest of a pattern avoids them.
    """
    if minimum == 0:
        yield [], start
    if maximum is not None and maximum < max(minimum, 1):
        return
    trail: Trail = []
    first = adjacency[start.id]
    context.spend(_PRICE * len(first))
    pending: list[Iterator[NeighbourStep]] = [iter(first)]
    while pending:
        for relationship, node in pending[-1]:
            if relationship.id in used or (allowed is not None and not allowed(relationship)):
                continue
            used.add(relationship.id)
            trail.append(relationship)
            if len(trail) >= minimum:
                yield trail, node
            if maximum is None or len(trail) < maximum:
                further = adjacency[node.id]
                context.spend(_PRICE * len(further))
                pending.append(iter(further))
                break
            used.discard(trail.pop().id)
        else:
            pending.pop()
            if trail:
                used.discard(trail.pop().id)


def ends_of_trails(
    adjacency: Adjacency,
    start: Node,
    minimum: int,
    maximum: int | None,
    both_ways: bool,
    allowed: RelationshipTest | None,
    context: Context,
) -> Iterator[Node]:
    """Yield every node at which a trail from a node ends, once, for a minimum of 0 or 1. Where a walk exists there is a
    trail: a shortest walk passes nothing twice. The exception is the way back to the start over undirected
    relationships, which may reuse the relationship that it came by; there `_Branches` decides whether another way leads
    back."""
    branches = _Branches(start.id) if both_ways else None
    known: dict[ElementId, None] = {start.id: None}
    if minimum == 0:
        yield start
    closed = minimum == 0
    level, depth = [start], 0
    while level and depth != maximum:
        following: list[Node] = []
        for node in level:
            steps = adjacency[node.id]
            context.spend(len(steps))
            for relationship, neighbour in steps:
                if allowed is not None and not allowed(relationship):
                    continue
                if not closed and (neighbour.id == start.id if branches is None else branches.meet(node, neighbour)):
                    closed = True
                    yield start
                if neighbour.id not in known:
                    known[neighbour.id] = None
                    following.append(neighbour)
                    yield neighbour
        level, depth = following, depth + 1


class _Branches:
    """For each node that a breadth-first search over undirected relationships reaches, the neighbour of the start
    through which it was reached. A cycle passes the start exactly if a relationship joins two branches, or if one joins
    the start to a neighbour a second time, or to itself."""

    def __init__(self, start: ElementId) -> None:
        self._start = start
        self._branch: dict[ElementId, ElementId] = {}

    def meet(self, node: Node, neighbour: Node) -> bool:
        """Return whether a step closes a cycle through the start; steps must come in the order of the search."""
        if node.id == self._start:
            if neighbour.id == self._start or neighbour.id in self._branch:
                return True
            self._branch[neighbour.id] = neighbour.id
            return False
        if neighbour.id == self._start:
            return False  # already counted from the start's side
        branch = self._branch[node.id]
        return self._branch.setdefault(neighbour.id, branch) != branch


class ShortestPathSearch:
    """The shortest paths from one node, found level by level, only as far as the caller needs them.

    `_steps_back[n]` are the last steps of all shortest paths to n, each as (relationship, node before n).
    """

    def __init__(
        self, adjacency: Adjacency, start: Node, maximum: int | None, allowed: RelationshipTest | None, context: Context
    ) -> None:
        self.start = start
        self._adjacency = adjacency
        self._maximum = maximum
        self._allowed = allowed
        self._context = context
        self._level: list[Node] = [start]
        self._depth = 0
        self._steps_back: dict[ElementId, list[NeighbourStep]] = {start.id: []}

    def reaches(self, target_id: ElementId) -> bool:
        while target_id not in self._steps_back:
            if not self._next_level():
                return False
        return True

    def reachable(self) -> Iterator[Node]:
        """Every node but the start, nearest first."""
        while self._next_level():
            yield from self._level

    def _next_level(self) -> list[Node]:
        if not self._level or self._depth == self._maximum:
            return []
        allowed, known = self._allowed, self._steps_back
        found: dict[ElementId, list[NeighbourStep]] = {}
        following: list[Node] = []
        for node in self._level:
            steps = self._adjacency[node.id]
            self._context.spend(len(steps))
            for relationship, neighbour in steps:
                if neighbour.id in known or (allowed is not None and not allowed(relationship)):
                    continue
                back = found.get(neighbour.id)
                if back is None:
                    found[neighbour.id] = [(relationship, node)]
                    following.append(neighbour)
                else:
                    back.append((relationship, node))
        known.update(found)
        self._level = following
        self._depth += 1
        return following

    def paths_to(self, target: Node) -> Iterator[Trail]:
        """All shortest paths from the start to a reached node, in the direction of the search."""
        for trail in self.paths_back(target):
            trail.reverse()
            yield trail

    def paths_back(self, target: Node) -> Iterator[Trail]:
        """All shortest paths from a reached node back to the start."""
        start_id = self.start.id
        trail: Trail = []
        pending = [iter(self._steps_back[target.id])]
        while pending:
            for relationship, node in pending[-1]:
                trail.append(relationship)
                if node.id != start_id:
                    pending.append(iter(self._steps_back[node.id]))
                    break
                yield list(trail)
                trail.pop()
            else:
                pending.pop()
                if trail:
                    trail.pop()

    def path_back(self, target: Node) -> Trail:
        """The first of `paths_back` by ids."""
        trail: Trail = []
        node = target
        while node.id != self.start.id:
            relationship, node = min(self._steps_back[node.id], key=_by_id)
            trail.append(relationship)
        return trail

    def path_to(self, target: Node) -> Trail:
        """The first of `paths_to` by ids: turn the steps round that lead to the target, then take the first at each."""
        onward: dict[ElementId, list[NeighbourStep]] = {}
        pending = [target]
        while pending:
            node = pending.pop()
            for relationship, before in self._steps_back[node.id]:
                if before.id not in onward:
                    onward[before.id] = []
                    pending.append(before)
                onward[before.id].append((relationship, node))
        trail: Trail = []
        node = self.start
        while node.id != target.id:
            relationship, node = min(onward[node.id], key=_by_id)
            trail.append(relationship)
        return trail


def shortest_from(
    minimum: int,
    adjacency: Adjacency,
    start: Node,
    target_id: ElementId | None,
    maximum: int | None,
    allowed: RelationshipTest | None,
    context: Context,
) -> Iterator[tuple[Trail, Node]]:
    """All shortest trails to one node, or to every other, that are at least `minimum` long (2 or more).

    Breadth-first levels cannot answer this, since what they call shortest may be too short to count: each length is
    tried in turn.
    """
    known = {start.id}
    for length in count(minimum):
        if maximum is not None and length > maximum:
            return
        exhausted = True
        ends: set[ElementId] = set()
        for trail, end in trails(adjacency, start, length, length, set(), allowed, context):
            exhausted = False
            if end.id not in known and (target_id is None or end.id == target_id):
                ends.add(end.id)
                yield list(trail), end
        if exhausted or target_id in ends:
            return
        known |= ends


def by_ids(trail: Trail) -> list[tuple[bool, ElementId | None]]:
    """The order among trails of one length."""
    return [(isinstance(relationship.id, str), relationship.id) for relationship in trail]


def _by_id(step: NeighbourStep) -> tuple[bool, ElementId | None]:
    relationship_id = step[0].id
    return isinstance(relationship_id, str), relationship_id
