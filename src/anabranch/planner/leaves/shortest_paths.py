"""Shortest paths as facts, kept up to date with the relationships that they pass.

Law: the paths are exactly those of the graph that the changes so far make (`snapshot.paths.ShortestPaths` from every
node): of the kind's types, direction and lengths, along relationships that pass its conditions, between nodes that may
begin and end them. Where other rows limit the search (`asked_pairs`), only pairs of these rows have paths. Of several
paths of the same length, the one with the first relationship ids counts, or all do. A node has no path to itself except
the empty one, where that is allowed.

The search starts from one side, the roots: the side on which fewer nodes are allowed. When the other side becomes far
smaller, everything is searched again from there. `delta.paths.shortest` decides which roots a change concerns.

State: that of `delta.paths.shortest`, the paths by their ends, and by the elements on them where these are shown.
Work per batch: O(elements that changed + paths that came, went or look different now, times their length) and the
searches. Past a budget of living paths, or of distances, TooManyTrails is raised (BudgetExceeded, where a limit of
bytes was given), and the maker must not be used again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from anabranch.delta.dictionary import Dictionary
from anabranch.delta.paths.shortest import MOST_CELLS, Pair, PathEdge, ShortestPaths, TooManyCells, VertexName
from anabranch.delta.patterns import BudgetExceeded
from anabranch.model.union import ElementChanges
from anabranch.model.values import ElementId, Relationship, Value
from anabranch.planner.leaves.asked_pairs import AskedPairs
from anabranch.planner.leaves.walks import Allows, IsOf, NumberOf, RelationshipId, TooManyTrails, WalkFact, WalkMaker
from anabranch.planner.patterns.kinds import ShortestKind

_FEWER = 4  # the search turns when the other side has this many times fewer nodes

PathEnds: TypeAlias = tuple[ElementId, ElementId]
"""The nodes at which a path begins and ends."""
PathSteps: TypeAlias = tuple[tuple[RelationshipId, ...], tuple[ElementId, ...]]
"""The relationships and nodes of a path, from the left."""


class _Side:
    """The nodes that are allowed at one end of paths. Open: all nodes with relationships are allowed."""

    def __init__(self, kind: int | None, asked: AskedPairs | None, at: int) -> None:
        self.kind = kind
        self.asked = asked
        self.at = at
        self.is_open = kind is None and self.asked is None
        self.members: set[ElementId] = set()

    def admits(self, node_id: ElementId, is_of: Callable[[ElementId, int], bool]) -> bool:
        """Return whether a node of the graph is allowed at this end."""
        if self.kind is not None and not is_of(node_id, self.kind):
            return False
        return self.asked is None or self.asked.is_asked(node_id, self.at)

    def has(self, node_id: ElementId) -> bool:
        return self.is_open or node_id in self.members


class ShortestMaker(WalkMaker[ShortestKind]):
    """Makes the facts of the shortest paths of one kind. `asked` limits the search to pairs of nodes, or to nodes at
    one end; None: no limit. `most_bytes` is how much the distances may take."""

    def __init__(
        self,
        kind: ShortestKind,
        dictionary: Dictionary,
        number_of: NumberOf,
        is_of: IsOf = lambda node_id, kind: True,
        allows: Allows = lambda relationship: True,
        asked: AskedPairs | None = None,
        most: int | None = None,
        most_bytes: int | None = None,
    ) -> None:
        super().__init__(kind, dictionary, number_of, is_of, allows, most)
        self._asked = asked
        self._most_bytes = most_bytes
        self._most_cells = MOST_CELLS if most_bytes is None else most_bytes // (4 if kind.every else 8)
        self._in_pairs = asked is not None and None not in asked.columns
        # The rows that ask about a pair have already tested the kinds of its nodes.
        kinds = (None, None) if self._in_pairs else (kind.starts, kind.ends)
        asks = [asked if asked is not None and column is not None else None for column in kind.asked]
        self._sides = (_Side(kinds[0], asks[0], 0), _Side(kinds[1], asks[1], 1))
        self._from_right = self._sides[0].is_open and not self._sides[1].is_open
        self._search = self._new_search()
        self._degrees: Counter[ElementId] = Counter()  # of nodes with allowed relationships
        self._paths: dict[PathEnds, dict[PathSteps, WalkFact]] = {}
        self._by_node: tuple[dict[ElementId, dict[ElementId, None]], ...] = ({}, {})  # the other ends, by each end
        self._passing: dict[RelationshipId, dict[PathEnds, int]] = {}  # where relationships are shown
        self._through: dict[ElementId, dict[PathEnds, int]] = {}  # where the nodes between are shown

    def _new_search(self) -> ShortestPaths:
        kind, (_, targets) = self._kind, self._ordered(*self._sides)
        return ShortestPaths(
            backwards=self._from_right,
            both_ways=kind.direction == "both",
            every=kind.every,
            is_open=targets.is_open,
            maximum=kind.maximum,
            most=self._most_cells,
        )

    def _ordered(self, left: _Side, right: _Side) -> tuple[_Side, _Side]:
        """Return the two sides, the side of the roots first."""
        return (right, left) if self._from_right else (left, right)

    def _ends(self, root: VertexName, target: VertexName) -> PathEnds:
        return (target, root) if self._from_right else (root, target)  # type: ignore[return-value]

    def __len__(self) -> int:
        """Return how many elements and paths are kept."""
        members = sum(len(side.members) for side in self._sides)
        return members + len(self._relationships) + len(self._nodes) + len(self._search) + self.living

    @property
    def searches(self) -> int:
        """How many searches from a root have been made."""
        return self._search.searches

    @property
    def nbytes(self) -> int:
        """About how many bytes are kept."""
        return super().nbytes + self._search.nbytes

    def facts(self, changes: ElementChanges) -> tuple[list[WalkFact], list[WalkFact]]:
        """Return the facts that the changes remove and the facts that they add; none is in both."""
        self._removed, self._added = [], []
        stale = self._look_again(changes)
        lifted, laid, new_roots, gone_roots = self._settle_relationships(changes, stale)
        touched = self._settle_members(changes, new_roots, gone_roots)
        if self._kind.is_walked:
            try:
                self._walk(lifted, laid, new_roots, gone_roots)
            except TooManyCells as error:
                if self._most_bytes is not None:
                    raise BudgetExceeded("bytes", self._most_bytes) from None
                raise TooManyTrails(error.most) from None
        self._show_again(stale)
        self._settle_empty({node_id: node_id in self._nodes for node_id in touched})
        return self._removed, self._added

    # --- what the graph is ---

    def _look_again(self, changes: ElementChanges) -> dict[PathEnds, None]:
        """Update the nodes; return the ends of the paths through changed nodes."""
        stale: dict[PathEnds, None] = {}
        for before, after in changes.nodes:
            if after is not None:
                self._nodes[after.id] = after
                stale.update(dict.fromkeys(self._through.get(after.id, ())))
            elif before is not None:
                self._nodes.pop(before.id, None)
        return stale

    def _settle_relationships(
        self, changes: ElementChanges, stale: dict[PathEnds, None]
    ) -> tuple[list[Relationship], list[Relationship], set[ElementId], set[ElementId]]:
        """Update the relationships. Returns the removed and the added ones, and the nodes that got their first or lost
        their last."""
        lifted: list[Relationship] = []
        laid: list[Relationship] = []
        touched: dict[ElementId, int] = {}
        for was, now in changes.relationships:
            one = was if now is None else now
            known = None if one is None else self._relationships.get(one.id)
            if now is not None and self._is_allowed(now):
                self._relationships[now.id] = now
                stale.update(dict.fromkeys(self._passing.get(now.id, ())))
                if known is not None and (known.source, known.target) == (now.source, now.target):
                    continue
                laid.append(now)
            elif known is not None:
                del self._relationships[known.id]
            if known is not None:
                lifted.append(known)
        for relationships, weight in ((lifted, -1), (laid, 1)):
            for relationship in relationships:
                for end in (relationship.source, relationship.target):
                    touched.setdefault(end, self._degrees[end])
                    self._degrees[end] += weight
        new = {end for end, before in touched.items() if not before and self._degrees[end]}
        gone = {end for end, before in touched.items() if before and not self._degrees[end]}
        for end in touched:
            if not self._degrees[end]:
                del self._degrees[end]
        return lifted, laid, new, gone

    def _settle_members(
        self, changes: ElementChanges, new_roots: set[ElementId], gone_roots: set[ElementId]
    ) -> dict[ElementId, None]:
        """Update the nodes allowed at each end, and with them the roots and targets of the search; return the nodes for
        which one of these may have changed."""
        touched: dict[ElementId, None] = {}
        for before, after in changes.nodes:
            one = before if after is None else after
            if one is not None:
                touched[one.id] = None
        pairs = self._asked.take() if self._asked is not None else ()
        for pair in pairs:
            touched.update(dict.fromkeys(one for one in pair if one is not None))
        roots, _ = self._ordered(*self._sides)
        if not roots.is_open:
            new_roots.clear()
            gone_roots.clear()
        for side in self._sides:
            if side.is_open:
                continue
            for node_id in touched:
                is_member = node_id in self._nodes and side.admits(node_id, self._is_of)
                if is_member == (node_id in side.members):
                    continue
                (side.members.add if is_member else side.members.discard)(node_id)
                if side is roots:
                    (new_roots if is_member else gone_roots).add(node_id)
                elif is_member and not self._in_pairs:
                    self._search.want(None, node_id)
                elif not self._in_pairs:
                    self._search.unwant(None, node_id)
                if not is_member:
                    self._drop_all(node_id, self._sides.index(side))
        if self._in_pairs:
            self._settle_pairs(pairs)
        for root in gone_roots if roots.is_open else ():
            self._drop_all(root, int(self._from_right))
        return touched

    def _settle_pairs(self, pairs: Iterable[tuple[ElementId | None, ElementId | None]]) -> None:
        """Start or stop the search for pairs that became asked about or no longer are."""
        assert self._asked is not None
        for left, right in pairs:
            if left is None or right is None:
                continue
            root, target = (right, left) if self._from_right else (left, right)
            if self._asked.has(left, right):
                self._search.want(root, target)
            else:
                self._search.unwant(root, target)
                self._drop((left, right))

    # --- searching ---

    def _walk(
        self,
        lifted: list[Relationship],
        laid: list[Relationship],
        new_roots: set[ElementId],
        gone_roots: set[ElementId],
    ) -> None:
        if self._is_to_turn():
            found = {self._ends(*pair): None for pair in self._turned()}
            for ends in [ends for ends in self._paths if ends not in found]:
                self._drop(ends)
        else:
            removed, added = [_key(one) for one in lifted], [self._edge(one) for one in laid]
            found = {self._ends(*pair): None for pair in self._search.change(removed, added, gone_roots, new_roots)}
        for ends in found:
            self._find(ends)

    def _is_to_turn(self) -> bool:
        """Return whether far fewer nodes are allowed on the other side."""
        here, there = (len(side.members) for side in self._ordered(*self._sides))
        return not any(side.is_open for side in self._sides) and _FEWER * (there + 1) < here

    def _edge(self, relationship: Relationship) -> PathEdge:
        source, target = relationship.source, relationship.target
        return PathEdge(_key(relationship), *((target, source) if self._kind.direction == "in" else (source, target)))

    def _turned(self) -> list[Pair]:
        """Search from the other side from now on; return all pairs that have paths."""
        searches = self._search.searches
        self._from_right = not self._from_right
        self._search = self._new_search()
        self._search.searches = searches
        roots, targets = self._ordered(*self._sides)
        if self._in_pairs and self._asked is not None:
            for left, right in self._asked.pairs():
                self._search.want(*((right, left) if self._from_right else (left, right)))
        else:
            for target in targets.members:
                self._search.want(None, target)
        return self._search.change((), map(self._edge, self._relationships.values()), (), roots.members)

    def _find(self, ends: PathEnds) -> None:
        """Update the paths between two ends."""
        root, target = ends[::-1] if self._from_right else ends
        before = self._paths.get(ends, _NO_PATHS)
        now: dict[PathSteps, WalkFact] = {}
        for passed in self._found(root, target):
            fact = before.get(passed)
            if fact is None:
                if self._living >= self._most:
                    raise TooManyTrails(self._most)
                fact = self._new_fact(*passed)
                self._index(ends, passed, 1)
            now[passed] = fact
        for passed, fact in before.items():
            if passed not in now:
                self._removed.append(fact)
                self._index(ends, passed, -1)
        self._hold(ends, now)

    def _found(self, root: ElementId, target: ElementId) -> Iterator[PathSteps]:
        if self._sides[0].has(self._ends(root, target)[0]) and self._sides[1].has(self._ends(root, target)[1]):
            for keys, nodes in self._search.paths(root, target):
                yield tuple(key[1] for key in keys), tuple(nodes)  # type: ignore[arg-type]

    def _hold(self, ends: PathEnds, now: dict[PathSteps, WalkFact]) -> None:
        if now:
            self._paths[ends] = now
        elif ends in self._paths:
            del self._paths[ends]
        for at, index in enumerate(self._by_node):
            one, other = ends[at], ends[1 - at]
            if now:
                index.setdefault(one, {})[other] = None
            elif one in index:
                index[one].pop(other, None)
                if not index[one]:
                    del index[one]

    def _drop_all(self, node_id: ElementId, at: int) -> None:
        """Remove all paths that begin (0) or end (1) at a node."""
        for other in list(self._by_node[at].get(node_id, ())):
            self._drop((other, node_id) if at else (node_id, other))

    def _drop(self, ends: PathEnds) -> None:
        for passed, fact in self._paths.get(ends, _NO_PATHS).items():
            self._removed.append(fact)
            self._index(ends, passed, -1)
        self._hold(ends, {})

    def _index(self, ends: PathEnds, passed: PathSteps, weight: int) -> None:
        relationships, nodes = passed
        self._living += weight
        self._passed += weight * len(relationships)
        if self._kind.shown:
            _count(self._passing, relationships, ends, weight)
        if self._kind.between:
            _count(self._through, nodes[1:-1], ends, weight)

    # --- facts ---

    def _shown(self, relationships: list[Relationship]) -> Value:
        return relationships[0] if self._kind.single else super()._shown(relationships)

    def _show_again(self, stale: Iterable[PathEnds]) -> None:
        """Update the facts of paths through elements that look different now."""
        for ends in stale:
            paths = self._paths.get(ends, _NO_PATHS)
            for passed, fact in paths.items():
                paths[passed] = self._shown_again(fact, *passed)

    def _may_stay(self, node_id: ElementId) -> bool:
        if not all(side.has(node_id) for side in self._sides):
            return False
        return not self._in_pairs or self._asked is None or self._asked.has(node_id, node_id)


def _key(relationship: Relationship) -> tuple[bool, RelationshipId]:
    """Return the sort key of a relationship, as in `snapshot.paths`."""
    return isinstance(relationship.id, str), relationship.id


def _count(
    index: dict[RelationshipId, dict[PathEnds, int]] | dict[ElementId, dict[PathEnds, int]],
    keys: Iterable[RelationshipId],
    ends: PathEnds,
    weight: int,
) -> None:
    held: dict[RelationshipId, dict[PathEnds, int]] = index  # type: ignore[assignment]
    for key in keys:
        counts = held.get(key)
        if counts is None:
            counts = held[key] = {}
        number = counts.get(ends, 0) + weight
        if number:
            counts[ends] = number
            continue
        del counts[ends]
        if not counts:
            del held[key]


_NO_PATHS: dict[PathSteps, WalkFact] = {}
