"""Plans a property-graph pattern as facts and conjunctions of facts, the input of matchers.

The facts are those of `kinds.py`.

Law: the matches of the components are joined without condition; rows in which two relationships of `different` are the
same, or two columns of `disjoint` have a relationship in common, are removed; the rest is filtered by `kept`. The
result is the matches that the plain evaluator finds for the pattern and its conditions (bag equality), with the needed
columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from anabranch.algebra import expressions as ex
from anabranch.algebra.operators import Pattern, RelationshipPattern
from anabranch.algebra.walk import conjuncts, is_volatile
from anabranch.delta.element_versions import PARTS
from anabranch.delta.patterns import Conjunction, FactPattern, Fixed, Free, Place, RankTest
from anabranch.model.values import Value
from anabranch.planner.patterns.element_conditions import ElementConditions, PatternHop, hops_of
from anabranch.planner.patterns.kinds import (
    WIDTH,
    GraphMatch,
    Kind,
    NamedPath,
    NodeKind,
    PatternComponent,
    RelationshipKind,
    ShortestKind,
    TrailKind,
)
from anabranch.planner.patterns.safety import is_about_the_row_alone, never_fails
from anabranch.planner.reads import PropertyRead, Reads, ids_of, keys_of, names_of, property_read, reads_of
from anabranch.snapshot.variables import free_variables

NO_PARAMETERS: Mapping[str, Value] = {}


def plan_pattern(
    pattern: Pattern,
    conditions: Sequence[ex.Expression] = (),
    needed: Reads | None = None,
    parameters: Mapping[str, Value] = NO_PARAMETERS,
    trails: bool = True,
    asked: frozenset[str] = frozenset(),
    beyond: Reads | None = None,
) -> GraphMatch | str:
    """Plan how to match the pattern and the conditions on its matches (all must be true), or return why it is not
    possible.

    `needed` is what is read of the rows that pass; what the kept conditions read is added. None: all of it.
    `parameters` are those of the query, as far as they are known. `trails`: whether trails may be kept. `asked` are the
    node variables that the joined rows bind. `beyond` is what is read of the rows except by the conditions, where that
    is known."""
    reason = _reason_against(pattern, trails, parameters)
    return reason or _Planning(pattern, conditions, (needed, beyond), parameters, asked).match()


def _reason_against(pattern: Pattern, trails: bool, parameters: Mapping[str, Value]) -> str | None:
    nodes = {node.variable for path in pattern.paths for node in path.nodes}
    relationships: set[str] = set()
    for path in pattern.paths:
        for one in path.relationships:
            if one.where is not None and is_volatile(one.where):
                return "conditions inside of a relationship pattern read the clock or chance"
            if path.where is not None:
                return "a condition on a shortest path as a whole is asked while it is searched for"
            if path.kind != "trail":
                reason = _reason_against_shortest(one, trails, parameters)
                if reason is not None:
                    return reason
            if one.length is not None and not trails:
                return "relationships of variable length are searched for anew: too many of them to be kept"
            if one.where is not None and one.length is None and path.kind == "trail":
                return "conditions inside of a relationship pattern are tested anew"
            if one.variable in relationships or one.variable in nodes:
                return f"`{one.variable}` stands for two elements of one pattern"
            relationships.add(one.variable)
    return None


def _reason_against_shortest(one: RelationshipPattern, trails: bool, parameters: Mapping[str, Value]) -> str | None:
    if not trails:
        return "shortest paths are searched for anew: too many of them to be kept"
    if one.length is not None and one.length[0] > 1:
        return f"shortest paths of {one.length[0]} relationships and more are searched for anew"
    for part in conjuncts(one.where):
        if free_variables(part) != {one.variable} or not is_about_the_row_alone(part):
            return "conditions on each relationship of a shortest path read the rest of the row"
        if not never_fails(part, frozenset({one.variable}), parameters):
            return "conditions on each relationship of a shortest path may fail"
    return None


class _Planning:
    """Plans one pattern: first the conditions of each element, then the components."""

    def __init__(
        self,
        pattern: Pattern,
        conditions: Sequence[ex.Expression],
        reads: tuple[Reads | None, Reads | None],
        parameters: Mapping[str, Value],
        asked: frozenset[str],
    ) -> None:
        needed, beyond = reads
        self._pattern = pattern
        self._asked = asked
        self._hops = hops_of(pattern)
        self._own = ElementConditions(pattern, self._hops, parameters)
        self._own.take((pattern.where, *conditions))
        self._walked = frozenset(hop.variable for hop in self._hops if hop.is_trail or hop.is_shortest)
        self._kinds: dict[tuple[object, ...], Kind] = {}
        self._groups = self._connected()
        # Shortest paths may pass relationships of other hops: they depend on the graph alone.
        others = [hop for hop in self._hops if not hop.is_shortest]
        pairs = [pair for pair in combinations(others, 2) if _may_be_the_same(*pair)]
        self._disjoint = [pair for pair in pairs if any(hop.is_trail for hop in pair)]
        self._pairs = [pair for pair in pairs if pair not in self._disjoint]
        self._apart = [pair for pair in self._pairs if self._groups[pair[0].source] != self._groups[pair[1].source]]
        self._compared = _compared(self._own) if len(set(self._groups.values())) == 1 and not self._walked else []
        self._ranked = dict(one for each in self._compared for one in (each.low, each.high))
        self._reads = self._all_read(frozenset(pattern.columns) if needed is None else needed)
        self._spared = frozenset[str]() if beyond is None else self._only_compared(beyond)
        self._shown = names_of(self._reads) & (self._own.elements | self._walked)

    def match(self) -> GraphMatch:
        groups = dict.fromkeys(self._groups.values())
        components = tuple(self._component(group) for group in groups)
        different, disjoint = (
            tuple((one.variable, other.variable) for one, other in pairs) for pairs in (self._apart, self._disjoint)
        )
        kinds, kept, alike = tuple(self._kinds.values()), tuple(self._own.kept), tuple(self._own.alike)
        settled = tuple((one.condition, min(self._spared)) for one in self._compared if self._spared)
        return GraphMatch(kinds, components, different, disjoint, self._paths(), kept, alike, settled)

    # --- what is asked of each element ---

    def _all_read(self, needed: Reads) -> Reads:
        """Return what is read of the elements: by the rows' reader, a condition, or a path."""
        reads = needed | reads_of(self._own.kept)
        read = names_of(reads)
        self._named = [path for path in self._pattern.paths if path.variable is not None and path.variable in read]
        wholes = {node.variable for path in self._named for node in path.nodes}
        wholes |= {one.variable for path in self._named for one in path.relationships}
        self._between = frozenset(
            one.variable
            for path in self._named
            for one in path.relationships
            if one.length is not None and one.variable in self._walked
        )
        compared = (hop.variable for pair in (*self._apart, *self._disjoint) for hop in pair)
        return reads | wholes | ids_of(compared)

    def _only_compared(self, beyond: Reads) -> frozenset[str]:
        """Return the nodes of which nothing is read but what is compared by rank."""
        conditions = [one.condition for one in self._compared]
        others = [one for one in self._own.kept if not any(one is other for other in conditions)]
        passed = {node.variable for path in self._named for node in path.nodes}
        return frozenset(self._ranked) - passed - names_of(beyond | reads_of(others))

    def _paths(self) -> tuple[NamedPath, ...]:
        return tuple(
            NamedPath(
                path.variable or "",
                tuple(node.variable for node in path.nodes),
                tuple(one.variable for one in path.relationships),
                tuple(_between(one.variable) if one.variable in self._between else None for one in path.relationships),
            )
            for path in self._named
        )

    def _node_kind(self, name: str) -> int:
        labels, conditions = tuple(sorted(self._own.labels[name])), tuple(self._own.early[name])
        shown, called = name in self._shown, name if conditions else ""
        keys = keys_of(self._reads, name) if shown else ()
        ranked = self._ranked.get(name)
        key = ("node", labels, shown, conditions, called, keys, ranked)
        kind = NodeKind(len(self._kinds) + 1, labels, shown, conditions, called, keys, ranked)
        return self._kinds.setdefault(key, kind).number

    def _end_kind(self, name: str) -> int | None:
        """Return the kind of the nodes at which a walk may begin or end; None: any."""
        return self._node_kind(name) if self._own.labels[name] or self._own.early[name] else None

    def _relationship_kind(self, hop: PatternHop) -> int:
        name, conditions = hop.variable, self._own.early[hop.variable]
        types, both = tuple(sorted(hop.pattern.types)), hop.pattern.direction == "both"
        shown, called = name in self._shown, name if conditions else ""
        keys = keys_of(self._reads, name) if shown else ()
        key = ("relationship", types, both, shown, tuple(conditions), called, keys)
        kind = RelationshipKind(len(self._kinds) + 1, types, both, shown, tuple(conditions), called, keys)
        return self._kinds.setdefault(key, kind).number

    def _trail_kind(self, hop: PatternHop) -> int:
        assert hop.pattern.length is not None
        name = hop.variable
        starts, ends = self._end_kind(hop.source), self._end_kind(hop.target)
        types, direction = tuple(sorted(hop.pattern.types)), hop.pattern.direction
        each, same = tuple(self._own.each[name]), tuple(self._own.same[name])
        shown, between = name in self._shown, name in self._between
        once, circle = hop.pattern.once, hop.pattern.once and hop.source == hop.target
        asked = (types, direction, *hop.pattern.length, shown, between, each, same, starts, ends, once, circle)
        return self._kinds.setdefault(("trail", *asked), TrailKind(len(self._kinds) + 1, *asked)).number

    def _shortest_kind(self, hop: PatternHop) -> int:
        name, length = hop.variable, hop.pattern.length
        starts, ends = self._end_kind(hop.source), self._end_kind(hop.target)
        types, direction = tuple(sorted(hop.pattern.types)), hop.pattern.direction
        every, single = hop.kind == "all-shortest", length is None
        minimum, maximum = (1, 1) if length is None else length
        each = tuple((name, part) for part in conjuncts(hop.pattern.where))
        shown, between = name in self._shown, name in self._between
        columns = tuple(end if end in self._asked else None for end in (hop.source, hop.target))
        asked = (types, direction, minimum, maximum, every, single, shown, between, each, starts, ends, columns)
        kind = ShortestKind(len(self._kinds) + 1, *asked)  # type: ignore[arg-type]
        return self._kinds.setdefault(("shortest", *asked), kind).number

    def _kind_of(self, hop: PatternHop) -> int:
        if hop.is_shortest:
            return self._shortest_kind(hop)
        return self._trail_kind(hop) if hop.is_trail else self._relationship_kind(hop)

    # --- components ---

    def _connected(self) -> dict[str, str]:
        """Return, for each node variable, one variable that names its connected component."""
        groups = {name: name for name in self._own.labels}
        for hop in self._hops:
            one, other = groups[hop.source], groups[hop.target]
            if one != other:
                groups = {name: one if group == other else group for name, group in groups.items()}
        return groups

    def _component(self, group: str) -> PatternComponent:
        numbers: dict[tuple[str, str], int] = {}

        def free(what: str, name: str) -> Free:
            return Free(numbers.setdefault((what, name), len(numbers)))

        hops = [hop for hop in self._hops if self._groups[hop.source] == group]
        pairs = [pair for pair in self._pairs if self._groups[pair[0].source] == group and pair not in self._apart]
        compared = {hop.variable for pair in pairs for hop in pair}
        patterns = []
        for hop in hops:
            name, shown = hop.variable, hop.variable in self._shown
            # The content identifies the relationship, unless it is compared with others that are not shown.
            identity: Place = free("identity", name) if not shown or name in compared else None
            content: Place = free("content", name) if shown else None
            if hop.is_trail or hop.is_shortest:
                identity = content or identity
                content = free("between", name) if name in self._between else None
            kind = Fixed(self._kind_of(hop))
            ends = (free("identity", hop.source), free("identity", hop.target))
            patterns.append(FactPattern((ends[0], kind, ends[1], identity, content)))
        for name in (name for name, its_group in self._groups.items() if its_group == group):
            shown = name in self._shown
            if shown or self._own.labels[name] or self._own.early[name] or not hops:
                shows: Place = free("content", name) if shown else None
                rank: Place = free("rank", name) if name in self._ranked else None
                kind = Fixed(self._node_kind(name))
                places = (free("identity", name), kind, shows, rank, None)
                patterns.append(FactPattern(places, is_single=True))
        different = tuple((numbers["identity", a.variable], numbers["identity", b.variable]) for a, b in pairs)
        columns = tuple(_column(what, name) for what, name in numbers)
        tests = tuple(
            RankTest(numbers["rank", one.low.name], numbers["rank", one.high.name], one.or_equal)
            for one in self._compared
        )
        spared = frozenset(numbers["content", name] for name in self._spared)
        conjunction = Conjunction(WIDTH, tuple(patterns), len(numbers), different)
        return PatternComponent(conjunction, columns, tests, spared)


class _Comparison(NamedTuple):
    """A condition that compares properties of two nodes by their order."""

    condition: ex.Expression
    low: PropertyRead
    high: PropertyRead
    or_equal: bool


def _compared(own: ElementConditions) -> list[_Comparison]:
    """Return the conditions that compare two nodes by order. A node is compared by one property only: that of its first
    condition."""
    found: list[_Comparison] = []
    keys: dict[str, str] = {}
    for condition in own.kept:
        match condition:
            case ex.Compare("<" | "<=" as operator, low, high) | ex.Compare(">" | ">=" as operator, high, low):
                sides = property_read(low), property_read(high)
            case _:
                continue
        one, other = sides
        if one is None or other is None or one.name == other.name or not {one.name, other.name} <= own.labels.keys():
            continue
        if one.key in PARTS or other.key in PARTS:
            continue
        if any(keys.get(side.name, side.key) != side.key for side in (one, other)):
            continue
        keys |= {one.name: one.key, other.name: other.key}
        found.append(_Comparison(condition, one, other, operator.endswith("=")))
    return found


def _between(trail: str) -> str:
    """Return the name of the column with the nodes between the ends of a trail."""
    return f" between {trail}"


def _column(what: str, name: str) -> str | None:
    """Return the column that a variable of a conjunction gives, or None."""
    match what:
        case "content":
            return name
        case "between":
            return _between(name)
    return None


def _may_be_the_same(one: PatternHop, other: PatternHop) -> bool:
    """Return whether two hops may pass the same relationship: their types overlap, and neither is a trail found
    once."""
    if one.pattern.once or other.pattern.once:
        return False
    types, others = one.pattern.types, other.pattern.types
    return not types or not others or not frozenset(types).isdisjoint(others)
