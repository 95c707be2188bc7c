"""The order of matching a pattern over one graph: the start node, and the relationships to follow.

Greedy: relationships of bound nodes are followed first, cheapest fan-out first; only when no such relationship is left
does a scan start at a new node, the one with the fewest candidates, through a hash index where a condition is `a.x =
...`.

Invariant: an order binds every variable of the pattern exactly once, and no order changes the bag of matches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from anabranch.algebra import expressions as ex
from anabranch.algebra.operators import Pattern, RelationshipPattern
from anabranch.errors import InternalError
from anabranch.snapshot.index import GraphIndex
from anabranch.snapshot.variables import free_variables

_SHARE_OF_LOOKUP = 0.05  # the estimated share of the candidates that a lookup by value leaves
_COST_OF_SHORTEST = 1e6
_COST_OF_TRAILS = 1e9


@dataclass(frozen=True, slots=True)
class Lookup:
    """A condition that names the few nodes a variable can be: `variable.key = value`, or `IN value`.

    A key of None means the node itself, "id()" its id; `value` reads only the variables in `needs`.
    """

    variable: str
    key: str | None
    value: ex.Expression
    many: bool
    needs: frozenset[str]


@dataclass(frozen=True, slots=True)
class JoinHop:
    """One relationship pattern with the variables at its two ends."""

    left: str
    relationship: RelationshipPattern
    right: str
    kind: Literal["trail", "shortest", "all-shortest"]
    needs: frozenset[str]  # variables that `where` reads besides the relationship, and `fulfils` besides the path
    path: str | None = None
    fulfils: ex.Expression | None = None  # the condition on a shortest path as a whole


@dataclass(frozen=True, slots=True)
class Scan:
    """Start at a node: through a lookup, from the ends of relationships of rare types, or by labels."""

    variable: str
    lookup: Lookup | None
    beside: JoinHop | None


@dataclass(frozen=True, slots=True)
class Follow:
    """Match a hop from one of its ends; `into` when the other end is bound too, `given` when the relationship is."""

    hop: JoinHop
    from_left: bool
    into: bool
    given: bool


Move = Scan | Follow


def hops_of(pattern: Pattern) -> tuple[JoinHop, ...]:
    found = []
    for path in pattern.paths:
        for position, relationship in enumerate(path.relationships):
            needs = free_variables(relationship.where) if relationship.where is not None else frozenset()
            left, right = path.nodes[position].variable, path.nodes[position + 1].variable
            if path.where is not None:
                needs |= _with_parts(free_variables(path.where), pattern) - {left, right, path.variable}
            needs -= {relationship.variable}
            found.append(JoinHop(left, relationship, right, path.kind, needs, path.variable, path.where))
    return tuple(found)


def _with_parts(names: frozenset[str], pattern: Pattern) -> frozenset[str]:
    """The names, with those that the named paths among them are put together from."""
    named = [path for path in pattern.paths if path.variable in names and path.kind == "trail"]
    parts = {node.variable for path in named for node in path.nodes}
    parts |= {one.variable for path in named for one in path.relationships}
    return (names - {path.variable for path in named}) | parts


def lookups_of(conditions: Iterable[ex.Expression], nodes: Iterable[str]) -> tuple[Lookup, ...]:
    """The conditions that a scan of one of the nodes can use."""
    wanted = frozenset(nodes)
    found = []
    for condition in conditions:
        match condition:
            case ex.Compare("=", left, right):
                found += [*_lookup(left, right, False, wanted), *_lookup(right, left, False, wanted)]
            case ex.Call("in", (left, right)):
                found += _lookup(left, right, True, wanted)
    return tuple(found)


def _lookup(side: ex.Expression, value: ex.Expression, many: bool, nodes: frozenset[str]) -> list[Lookup]:
    key: str | None
    match side:
        case ex.Property(ex.Variable(variable), name):
            key = name
        case ex.Call("id", (ex.Variable(variable),)):
            key = "id()"
        case ex.Variable(variable):
            key = None
        case _:
            return []
    needs = free_variables(value)
    return [Lookup(variable, key, value, many, needs)] if variable in nodes and variable not in needs else []


class Ordering:
    """The state of planning one pattern over one graph."""

    def __init__(
        self,
        index: GraphIndex,
        hops: tuple[JoinHop, ...],
        labels: Mapping[str, tuple[str, ...]],
        lookups: tuple[Lookup, ...],
        bound: frozenset[str],
    ) -> None:
        self._index = index
        self._labels = labels
        self._lookups = lookups
        self._bound = dict.fromkeys(bound, -1)  # variable -> when it was bound
        self._waiting = list(hops)
        self._size = max(len(index.graph.nodes), 1)
        self._pattern_variables = frozenset(labels) | {hop.relationship.variable for hop in hops} | bound

    def moves(self) -> list[Move]:
        found: list[Move] = []
        while True:
            move = self._next(len(found))
            if move is None:
                return found
            found.append(move)

    def _next(self, turn: int) -> Move | None:
        ready = [(self._cost(hop), position) for position, hop in enumerate(self._waiting) if self._is_ready(hop)]
        unbound = [variable for variable in self._labels if variable not in self._bound]
        if ready:
            cost, position = min(ready)
            scan = self._cheaper_scan(unbound, cost)
            return self._scanned(scan, turn) if scan else self._follow(self._waiting.pop(position), turn)
        if unbound:
            return self._scanned(min(unbound, key=self._scan_cost), turn)
        if self._waiting:
            raise InternalError("the conditions of a pattern's relationships wait for one another")
        return None

    def _cheaper_scan(self, unbound: list[str], cost: float) -> str | None:
        """A lookup of the far end is worth its while before a walk of unknown length."""
        if cost < _COST_OF_SHORTEST:
            return None
        near = {hop.left for hop in self._waiting} | {hop.right for hop in self._waiting}
        known = [variable for variable in unbound if variable in near and self._lookup(variable) is not None]
        return min(known, key=self._scan_cost, default=None)

    def _scanned(self, variable: str, turn: int) -> Scan:
        lookup, beside = self._lookup(variable), self._rare_hop(variable)
        self._bound[variable] = turn
        return Scan(variable, lookup, None if lookup is not None else beside)

    def _follow(self, hop: JoinHop, turn: int) -> Follow:
        left, right = self._bound.get(hop.left), self._bound.get(hop.right)
        given = hop.relationship.variable in self._bound
        from_left = right is None or (left is not None and left <= right)
        for variable in (hop.left, hop.relationship.variable, hop.right):
            self._bound.setdefault(variable, turn)
        return Follow(hop, from_left, left is not None and right is not None, given)

    def _is_ready(self, hop: JoinHop) -> bool:
        if not (hop.needs & self._pattern_variables <= self._bound.keys()):
            return False
        return hop.left in self._bound or hop.right in self._bound or hop.relationship.variable in self._bound

    def _cost(self, hop: JoinHop) -> float:
        """About how many ways there are to go on, per match so far."""
        if hop.relationship.variable in self._bound:
            return 0.0
        into = hop.left in self._bound and hop.right in self._bound
        target = hop.right if hop.left in self._bound else hop.left
        share = 1 / self._size if into else len(self._index.nodes(self._labels[target])) / self._size
        if not into and self._lookup(target) is not None:
            share *= _SHARE_OF_LOOKUP
        fan_out = self._relationship_count(hop) / self._size
        if hop.kind != "trail":
            return _COST_OF_SHORTEST + share
        if hop.relationship.length is not None:
            return _COST_OF_TRAILS + fan_out + share
        return fan_out * share

    def _relationship_count(self, hop: JoinHop) -> int:
        types, graph = hop.relationship.types, self._index.graph
        count = sum(len(graph.by_type.get(one, ())) for one in types) if types else len(graph.relationships)
        return 2 * count if hop.relationship.direction == "both" else count

    def _lookup(self, variable: str) -> Lookup | None:
        known = [
            lookup
            for lookup in self._lookups
            if lookup.variable == variable and (lookup.needs & self._pattern_variables) <= self._bound.keys()
        ]
        return min(known, key=lambda lookup: lookup.many, default=None)

    def _rare_hop(self, variable: str) -> JoinHop | None:
        """A relationship pattern at this node of which there are so few that its ends are the better candidates."""
        most = len(self._index.nodes(self._labels[variable])) / 2
        beside = [
            hop
            for hop in self._waiting
            if variable in (hop.left, hop.right)
            and hop.kind == "trail"
            and hop.relationship.length is None
            and self._relationship_count(hop) < most
        ]
        return min(beside, key=self._relationship_count, default=None)

    def _scan_cost(self, variable: str) -> float:
        candidates: float = len(self._index.nodes(self._labels[variable]))
        rare = self._rare_hop(variable)
        if rare is not None:
            candidates = min(candidates, self._relationship_count(rare))
        if self._lookup(variable) is not None:
            candidates = min(candidates, 1 + candidates * _SHARE_OF_LOOKUP)
        return candidates
