"""Trails of variable length, kept up to date with the relationships that they pass.

Law: the trails are exactly those of the graph that the changes so far make (`snapshot.paths.trails` from every node),
of the kind's types, direction and lengths, along relationships that pass its conditions, between nodes that may begin
and end them. A trail is identified by its first node and the list of its relationships.

New relationships are added one after the other. For each, the trails through it are found by walking on from both of
its ends: so each trail is found once, with the last of its relationships. A node that may now begin or end trails is
handled in the same way. When an element goes, the trails through it go.

State: the allowed relationships by both ends; every trail, indexed by its relationships, and by its nodes where these
matter.
Work per batch: O(relationships and nodes that changed + trails that came, went or look different now, times their
length + steps of walks that find no trail). There may be exponentially many trails: past a budget of living trails, or
of steps in one batch, TooManyTrails is raised, and the maker must not be used again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeAlias, TypeVar

from anabranch.delta.dictionary import Dictionary
from anabranch.model.union import ElementChanges
from anabranch.model.values import ElementId, Node, Relationship
from anabranch.planner.leaves.walks import Allows, IsOf, NumberOf, RelationshipId, TooManyTrails, WalkFact, WalkMaker
from anabranch.planner.patterns.kinds import TrailKind

_STEPS_PER_TRAIL = 10  # how many steps a batch may take for each trail that may live

Element = TypeVar("Element", Node, Relationship)
TrailKey: TypeAlias = tuple[Hashable, ...]
"""Values that all relationships of a trail have in common."""
TrailEnd: TypeAlias = tuple[TrailKey, ElementId]
TrailSteps: TypeAlias = dict[TrailEnd, dict[RelationshipId, ElementId]]
"""Per key and node, the relationships of the key by which the node can be left, and where they lead."""


class _Trail:
    """The ids of the relationships and nodes of a trail, and its fact. Trails are compared by identity (`is`)."""

    __slots__ = ("fact", "nodes", "relationships")

    def __init__(self, relationships: tuple[RelationshipId, ...], nodes: tuple[ElementId, ...], fact: WalkFact) -> None:
        self.relationships = relationships
        self.nodes = nodes
        self.fact = fact


class _Index:
    """Trails by the elements that they pass. The dictionaries serve as ordered sets."""

    __slots__ = ("_trails",)

    def __init__(self) -> None:
        self._trails: dict[ElementId | None, dict[_Trail, None]] = {}

    def __len__(self) -> int:
        return len(self._trails)

    def add(self, keys: Iterable[ElementId | None], trail: _Trail) -> None:
        for key in keys:
            self._trails.setdefault(key, {})[trail] = None

    def discard(self, keys: Iterable[ElementId | None], trail: _Trail) -> None:
        for key in keys:
            trails = self._trails.get(key)
            if trails is not None:
                trails.pop(trail, None)
                if not trails:
                    del self._trails[key]

    def at(self, key: ElementId | None) -> list[_Trail]:
        return list(self._trails.get(key, ()))


class TrailMaker(WalkMaker[TrailKind]):
    """Makes the facts of the trails of one kind. `key_of` returns the values that a relationship must share with all
    others of its trails; None: no trail can pass it."""

    _ways_per_relationship = 2

    def __init__(
        self,
        kind: TrailKind,
        dictionary: Dictionary,
        number_of: NumberOf,
        is_of: IsOf = lambda node_id, kind: True,
        allows: Allows = lambda relationship: True,
        key_of: Callable[[Relationship], TrailKey | None] = lambda relationship: (),
        most: int | None = None,
    ) -> None:
        super().__init__(kind, dictionary, number_of, is_of, allows, most)
        self._key_of = key_of
        self._steps_left = 0
        self._keys: dict[RelationshipId, TrailKey] = {}
        self._keys_at: dict[ElementId, Counter[TrailKey]] = {}
        self._onward: TrailSteps = {}
        self._back: TrailSteps = self._onward if kind.direction == "both" else {}
        self._starts: set[ElementId] = set()  # nodes that may begin a trail, where not all may
        self._ends: set[ElementId] = set()
        self._by_relationship = _Index()
        self._by_start = _Index()
        self._by_end = _Index()
        self._by_node_between = _Index()

    def __len__(self) -> int:
        """Return how many elements and trails are kept."""
        nodes = len(self._starts) + len(self._ends) + len(self._nodes) + len(self._empty)
        return nodes + len(self._relationships) + len(self._onward) + len(self._back) + self._living

    def facts(self, changes: ElementChanges) -> tuple[list[WalkFact], list[WalkFact]]:
        """Return the facts that the changes remove and the facts that they add; none is in both."""
        self._removed, self._added = [], []
        self._steps_left = _STEPS_PER_TRAIL * self._most
        touched: list[RelationshipId] = []
        fresh = self._settle_relationships(changes, touched)
        starts, ends = self._settle_nodes(changes)
        self._show_again(touched, changes)
        for start in starts:
            self._begin(start)
        for end in ends:
            self._end(end)
        self._settle_empty({one.id: after is not None for before, after in changes.nodes if (one := after or before)})
        for relationship in fresh:
            self._lay(relationship)
        return self._removed, self._added

    # --- what goes ---

    def _settle_relationships(self, changes: ElementChanges, touched: list[RelationshipId]) -> list[Relationship]:
        """Remove relationships that are gone or have other ends or another key; return the ones to be added."""
        fresh = []
        for was, now in changes.relationships:
            one = was if now is None else now
            if one is None:
                continue
            known = self._relationships.get(one.id)
            if now is None or not self._is_allowed(now):
                if known is not None:
                    self._lift(known)
            elif known is None:
                fresh.append(now)
            elif (known.source, known.target) != (now.source, now.target) or self._key_of(now) != self._keys[now.id]:
                self._lift(known)
                fresh.append(now)
            elif self._kind.shown:
                self._relationships[now.id] = shown = self._held(now)
                if shown is not known:
                    touched.append(now.id)
        return fresh

    def _is_allowed(self, relationship: Relationship) -> bool:
        return super()._is_allowed(relationship) and self._key_of(relationship) is not None

    def _lift(self, relationship: Relationship) -> None:
        for trail in self._by_relationship.at(relationship.id):
            self._forget(trail)
        del self._relationships[relationship.id]
        key = self._keys.pop(relationship.id)
        for steps, one, _ in self._ways(relationship):
            place = (key, one)
            del steps[place][relationship.id]
            if not steps[place]:
                del steps[place]
        for end in (relationship.source, relationship.target):
            keys = self._keys_at[end]
            keys[key] -= 1
            if not keys[key]:
                del keys[key]
            if not keys:
                del self._keys_at[end]

    def _ways(self, relationship: Relationship) -> Iterator[tuple[TrailSteps, ElementId, ElementId]]:
        """Yield the entries of a relationship in the step tables: the table, the node, and the node it leads to."""
        source, target = relationship.source, relationship.target
        if self._kind.direction == "in":
            source, target = target, source
        yield self._onward, source, target
        if self._kind.direction != "both" or source != target:
            yield self._back, target, source

    def _forget(self, trail: _Trail) -> None:
        self._living -= 1
        self._passed -= len(trail.relationships)
        self._removed.append(trail.fact)
        self._by_relationship.discard(trail.relationships, trail)
        if self._kind.starts is not None:
            self._by_start.discard(trail.nodes[:1], trail)
        if self._kind.ends is not None:
            self._by_end.discard(trail.nodes[-1:], trail)
        if self._kind.between:
            self._by_node_between.discard(trail.nodes[1:-1], trail)

    def _settle_nodes(self, changes: ElementChanges) -> tuple[list[ElementId], list[ElementId]]:
        """Remove the trails from and to nodes that may no longer begin or end them; return the nodes that may now."""
        kind = self._kind
        starts: list[ElementId] = []
        ends: list[ElementId] = []
        for wanted, known, index, new in (
            (kind.starts, self._starts, self._by_start, starts),
            (kind.ends, self._ends, self._by_end, ends),
        ):
            if wanted is None:
                continue
            for before, after in changes.nodes:
                if after is not None and self._is_of(after.id, wanted):
                    if after.id not in known:
                        new.append(after.id)
                    continue
                gone = after if after is not None else before
                if gone is not None and gone.id in known:
                    known.discard(gone.id)
                    for trail in index.at(gone.id):
                        self._forget(trail)
        return starts, ends

    # --- what stays ---

    def _show_again(self, touched: Iterable[RelationshipId], changes: ElementChanges) -> None:
        """Update the facts of trails through elements that look different now."""
        stale: dict[_Trail, None] = {}
        for relationship_id in touched:
            stale |= dict.fromkeys(self._by_relationship.at(relationship_id))
        if self._kind.between:
            for before, after in changes.nodes:
                if after is not None:
                    known, shown = self._nodes.get(after.id), self._held(after)
                    self._nodes[after.id] = shown
                    if shown is not known:
                        stale |= dict.fromkeys(self._by_node_between.at(after.id))
                elif before is not None:
                    self._nodes.pop(before.id, None)
        for trail in stale:
            trail.fact = self._shown_again(trail.fact, trail.relationships, trail.nodes)

    def _held(self, element: Element) -> Element:
        """Return the element as the dictionary holds it: the same object as long as it looks the same."""
        held = self._dictionary.decode(self._dictionary.encode(element))
        assert isinstance(held, type(element))
        return held

    # --- what comes ---

    def _may_stay(self, node_id: ElementId) -> bool:
        return self._may_begin(node_id) and self._may_end(node_id)

    def _may_begin(self, node_id: ElementId) -> bool:
        return self._kind.starts is None or node_id in self._starts

    def _may_end(self, node_id: ElementId) -> bool:
        return self._kind.ends is None or node_id in self._ends

    def _none_can_be(self) -> bool:
        """Return whether no node may begin a trail, or none may end one."""
        kind = self._kind
        return (kind.starts is not None and not self._starts) or (kind.ends is not None and not self._ends)

    def _begin(self, start: ElementId) -> None:
        """Allow trails to begin at a node, and find them."""
        self._starts.add(start)
        relationships: list[RelationshipId] = []
        nodes: list[ElementId] = []
        for key in tuple(self._keys_at.get(start, ())):
            for end in self._walks(start, key, self._onward, self._kind.maximum, set(), relationships, nodes):
                if len(relationships) >= max(self._kind.minimum, 1) and self._may_end(end):
                    self._found(tuple(relationships), (start, *nodes))

    def _end(self, end: ElementId) -> None:
        """Allow trails to end at a node, and find them."""
        self._ends.add(end)
        relationships: list[RelationshipId] = []
        nodes: list[ElementId] = []
        for key in tuple(self._keys_at.get(end, ())):
            for start in self._walks(end, key, self._back, self._kind.maximum, set(), relationships, nodes):
                if len(relationships) >= max(self._kind.minimum, 1) and self._may_begin(start):
                    self._found(tuple(relationships[::-1]), (*nodes[::-1], end))

    def _lay(self, relationship: Relationship) -> None:
        """Add a relationship, and find the trails through it."""
        self._relationships[relationship.id] = self._held(relationship) if self._kind.shown else relationship
        key = self._key_of(relationship)
        assert key is not None, "a relationship without what trails have in common is not allowed"
        self._keys[relationship.id] = key
        for end in (relationship.source, relationship.target):
            self._keys_at.setdefault(end, Counter())[key] += 1
        for steps, one, other in self._ways(relationship):
            steps.setdefault((key, one), {})[relationship.id] = other
        if self._kind.maximum == 0 or self._none_can_be():
            return
        for steps, one, other in self._ways(relationship):
            if steps is self._onward:
                self._through(relationship.id, one, other)

    def _through(self, laid: RelationshipId, here: ElementId, there: ElementId) -> None:
        """Find the trails through a relationship from `here` to `there`: each walk back from `here` with each walk on
        from `there`. The side with fewer allowed far ends is walked first."""
        minimum, maximum = self._kind.minimum, self._kind.maximum
        room = None if maximum is None else maximum - 1
        used, key = {laid}, self._keys[laid]
        on_first = self._kind.starts is None and self._kind.ends is not None
        fits, fits_too = (self._may_end, self._may_begin) if on_first else (self._may_begin, self._may_end)
        first: tuple[ElementId, TrailSteps] = (there, self._onward) if on_first else (here, self._back)
        second: tuple[ElementId, TrailSteps] = (here, self._back) if on_first else (there, self._onward)
        passed: list[RelationshipId] = []
        nodes: list[ElementId] = []
        more: list[RelationshipId] = []
        more_nodes: list[ElementId] = []
        for one in self._walks(first[0], key, first[1], room, used, passed, nodes):
            if not fits(one):
                continue
            left = None if room is None else room - len(passed)
            for other in self._walks(second[0], key, second[1], left, used, more, more_nodes):
                if len(passed) + 1 + len(more) < minimum or not fits_too(other):
                    continue
                if on_first:
                    self._found((*more[::-1], laid, *passed), (*more_nodes[::-1], here, there, *nodes))
                else:
                    self._found((*passed[::-1], laid, *more), (*nodes[::-1], here, there, *more_nodes))

    def _walks(
        self,
        start: ElementId,
        key: TrailKey,
        steps: TrailSteps,
        room: int | None,
        used: set[RelationshipId],
        passed: list[RelationshipId],
        nodes: list[ElementId],
    ) -> Iterator[ElementId]:
        """Yield the last node of every walk of a key from a node, depth first, the empty walk first. At each yield
        `passed` and `nodes` hold the walk, and `used` contains its relationships."""
        yield start
        if room == 0:
            return
        pending = [iter(steps.get((key, start), _NOWHERE).items())]
        while pending:
            for relationship_id, node_id in pending[-1]:
                self._steps_left -= 1
                if relationship_id in used:
                    continue
                if self._steps_left < 0:
                    raise TooManyTrails(self._most)
                used.add(relationship_id)
                passed.append(relationship_id)
                nodes.append(node_id)
                yield node_id
                if room is None or len(passed) < room:
                    pending.append(iter(steps.get((key, node_id), _NOWHERE).items()))
                    break
                used.discard(passed.pop())
                nodes.pop()
            else:
                pending.pop()
                if passed:
                    used.discard(passed.pop())
                    nodes.pop()

    def _found(self, relationships: tuple[RelationshipId, ...], nodes: tuple[ElementId, ...]) -> None:
        if self._living >= self._most:
            raise TooManyTrails(self._most)
        trail = _Trail(relationships, nodes, self._new_fact(relationships, nodes))
        self._living += 1
        self._passed += len(relationships)
        self._by_relationship.add(relationships, trail)
        if self._kind.starts is not None:
            self._by_start.add(nodes[:1], trail)
        if self._kind.ends is not None:
            self._by_end.add(nodes[-1:], trail)
        if self._kind.between:
            self._by_node_between.add(nodes[1:-1], trail)


_NOWHERE: dict[RelationshipId, ElementId] = {}
