"""A pattern of a property graph as facts and conjunctions of facts, which is what matchers take.

A fact has five columns: an end, its kind, the other end, the relationship, the content.

    of a node            (node, kind, content, 0, 0)
    of a relationship    (source, kind, target, relationship, content)      and turned around, where it has no direction
    of a trail           (start, kind, end, trail, nodes between)           one for each way to walk it
    of a shortest path   (start, kind, end, path, nodes between)

A kind is a number for what a place of the pattern asks: there is a fact of it for exactly the elements with these
labels, or of one of these types, for which these conditions hold. So each element is tested once, when it comes, and
not once per match. Node and relationship are numbers of the element's identity; content is the id of the element as a
value, or 0 where nobody wants to see it: then a property that changes changes no fact. A trail, which a relationship
of variable length stands for, is the id of the list of its relationships where somebody wants to see it, else a number
of its own; the nodes between are the id of their list where a path shows them, else 0.

Law: the matches of the components, joined without condition, without those in which two of the relationships named in
`different` are the same or two of the columns named in `disjoint` have one in common, and then filtered by `kept`, are
the matches of the plain reading of the pattern and its conditions (bag equality), given as the columns that are needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from anabranch.algebra import expressions as ex
from anabranch.algebra.operators import Direction, Pattern, RelationshipPattern
from anabranch.algebra.walk import is_volatile
from anabranch.delta.patterns import KIND, Conjunction, FactPattern, Fixed, Free, Place
from anabranch.model.values import Value
from anabranch.optimizer.rebuild import everywhere
from anabranch.planner.patterns.safety import is_about_the_row_alone, never_fails
from anabranch.snapshot.variables import conjuncts, free_variables

WIDTH = 5
NO_PARAMETERS: Mapping[str, Value] = {}


@dataclass(frozen=True, slots=True)
class NodeKind:
    """The nodes with these labels for which the conditions hold, calling them by `variable`."""

    number: int
    labels: tuple[str, ...]
    shown: bool
    conditions: tuple[ex.Expression, ...] = ()
    variable: str = ""


@dataclass(frozen=True, slots=True)
class RelationshipKind:
    """The relationships of one of these types (of none: all) for which the conditions hold."""

    number: int
    types: tuple[str, ...]
    both_ways: bool
    shown: bool
    conditions: tuple[ex.Expression, ...] = ()
    variable: str = ""


@dataclass(frozen=True, slots=True)
class TrailKind:
    """The trails of these lengths, along relationships of one of these types (of none: all) that pass the conditions
    `each`, which call a relationship by the variable they come with. They are read from the left: `direction` is how
    relationships are walked on the way. `same` are values that all relationships of a trail have in common, none of
    them null. `starts` and `ends` are the kinds of nodes at which they may begin and end, None: any; `between`: the
    nodes on the way are shown. `once`: there is one fact for each pair of ends, with no trail in it; `circle`: trails
    that end where they began are all that is asked for then."""

    number: int
    types: tuple[str, ...]
    direction: Direction
    minimum: int
    maximum: int | None
    shown: bool
    between: bool
    each: tuple[tuple[str, ex.Expression], ...] = ()
    same: tuple[tuple[str, ex.Expression], ...] = ()
    starts: int | None = None
    ends: int | None = None
    once: bool = False
    circle: bool = False


@dataclass(frozen=True, slots=True)
class ShortestKind:
    """The shortest paths of these lengths, or one for each two ends (unless `every`); the rest is as with trails.
    `single`: they are shown as their only relationship. `asked` are the columns, of rows that the pattern is joined
    with, that say where they begin and end; None: nobody says."""

    number: int
    types: tuple[str, ...]
    direction: Direction
    minimum: int
    maximum: int | None
    every: bool
    single: bool
    shown: bool
    between: bool
    each: tuple[tuple[str, ex.Expression], ...] = ()
    starts: int | None = None
    ends: int | None = None
    asked: tuple[str | None, str | None] = (None, None)

    @property
    def is_walked(self) -> bool:
        """Whether any but the empty path is long enough and not too long."""
        return self.maximum is None or self.maximum >= max(self.minimum, 1)


Kind = NodeKind | RelationshipKind | TrailKind | ShortestKind


@dataclass(frozen=True, slots=True)
class Component:
    """A part of a pattern that shares no node with the rest. `columns`: per variable of the conjunction, the column of
    the pattern that it gives, or None."""

    conjunction: Conjunction
    columns: tuple[str | None, ...]

    @property
    def picks(self) -> tuple[int, ...]:
        """The variables that give columns."""
        return tuple(number for number, name in enumerate(self.columns) if name is not None)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that they give."""
        return tuple(name for name in self.columns if name is not None)

    @property
    def kinds(self) -> frozenset[int]:
        """The numbers of the kinds of facts that it asks for."""
        places = (pattern.places[KIND] for pattern in self.conjunction.patterns)
        return frozenset(place.id for place in places if isinstance(place, Fixed))


@dataclass(frozen=True, slots=True)
class NamedPath:
    """A path to be put together from the columns of its nodes and relationships, in the order they are passed. Of a
    trail, `between` is the column of the nodes on its way; of a single relationship, None."""

    name: str
    nodes: tuple[str, ...]
    relationships: tuple[str, ...]
    between: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class GraphMatch:
    """How a pattern is matched. `different` are columns, of different components, that must not be the same
    relationship; `disjoint` are columns, one a trail at least, that must have no relationship in common; `alike` are
    values of two columns that are equal in every row that passes; `kept` are the conditions that must be tested of the
    rows, paths included."""

    kinds: tuple[Kind, ...]
    components: tuple[Component, ...]
    different: tuple[tuple[str, str], ...]
    disjoint: tuple[tuple[str, str], ...]
    paths: tuple[NamedPath, ...]
    kept: tuple[ex.Expression, ...]
    alike: tuple[tuple[ex.Expression, ex.Expression], ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the components, joined in their order."""
        return tuple(name for component in self.components for name in component.names)


def plan_pattern(
    pattern: Pattern,
    conditions: Sequence[ex.Expression] = (),
    needed: frozenset[str] | None = None,
    parameters: Mapping[str, Value] = NO_PARAMETERS,
    trails: bool = True,
    asked: frozenset[str] = frozenset(),
) -> GraphMatch | str:
    """How the pattern and the conditions on its matches (all must be true) are matched, or why it cannot be done.

    `needed` are the columns that somebody reads of the rows that pass; those that the kept conditions read come along.
    None: all. `parameters` are those of the query, as far as they are known. `trails`: whether these may be kept.
    `asked` are node variables that the rows say something about with which the matches will be joined.
    """
    reason = _reason_against(pattern, trails, parameters)
    return reason or _Planning(pattern, conditions, needed, parameters, asked).match()


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


@dataclass(frozen=True, slots=True)
class _Hop:
    """A relationship pattern read along its direction, or a trail read from the left."""

    pattern: RelationshipPattern
    source: str
    target: str
    kind: Literal["trail", "shortest", "all-shortest"] = "trail"

    @property
    def is_shortest(self) -> bool:
        return self.kind != "trail"

    @property
    def is_trail(self) -> bool:
        return self.pattern.length is not None and not self.is_shortest

    @property
    def variable(self) -> str:
        return self.pattern.variable


class _Planning:
    """The way from a pattern to its match: first what is asked of each element, then the components."""

    def __init__(
        self,
        pattern: Pattern,
        conditions: Sequence[ex.Expression],
        needed: frozenset[str] | None,
        parameters: Mapping[str, Value],
        asked: frozenset[str],
    ) -> None:
        self._pattern = pattern
        self._parameters = parameters
        self._asked = asked
        self._labels: dict[str, dict[str, None]] = {}
        self._hops: list[_Hop] = []
        for path in pattern.paths:
            for node in path.nodes:
                self._labels.setdefault(node.variable, {}).update(dict.fromkeys(node.labels))
            for at, one in enumerate(path.relationships):
                ends = (path.nodes[at].variable, path.nodes[at + 1].variable)
                turned = one.direction == "in" and one.length is None and path.kind == "trail"
                self._hops.append(_Hop(one, *(ends[::-1] if turned else ends), path.kind))
        self._trails = frozenset(hop.variable for hop in self._hops if hop.is_trail)
        self._shortest = frozenset(hop.variable for hop in self._hops if hop.is_shortest)
        walked = self._trails | self._shortest
        self._elements = frozenset(self._labels) | {hop.variable for hop in self._hops if hop.variable not in walked}
        self._early: dict[str, list[ex.Expression]] = {name: [] for name in self._elements}
        self._each: dict[str, list[tuple[str, ex.Expression]]] = {name: [] for name in self._trails}
        self._same: dict[str, list[tuple[str, ex.Expression]]] = {name: [] for name in self._trails}
        self._alike: list[tuple[ex.Expression, ex.Expression]] = []
        self._kept: list[ex.Expression] = []
        for hop in self._hops:
            if hop.is_trail and hop.pattern.where is not None:
                self._take_of_each(hop, hop.pattern.where)
        for part in conjuncts(pattern.where):
            self._take(part)
        for condition in conditions:
            for part in conjuncts(condition):
                self._take(part)
        self._kinds: dict[tuple[object, ...], Kind] = {}
        self._groups = self._connected()
        # Shortest paths may pass what others pass: they are what the graph says.
        others = [hop for hop in self._hops if not hop.is_shortest]
        pairs = [pair for pair in combinations(others, 2) if _may_be_the_same(*pair)]
        self._disjoint = [pair for pair in pairs if any(hop.is_trail for hop in pair)]
        self._pairs = [pair for pair in pairs if pair not in self._disjoint]
        self._apart = [pair for pair in self._pairs if self._groups[pair[0].source] != self._groups[pair[1].source]]
        self._shown = self._all_shown(pattern.columns if needed is None else needed)

    def match(self) -> GraphMatch:
        groups = dict.fromkeys(self._groups.values())
        components = tuple(self._component(group) for group in groups)
        different, disjoint = (
            tuple((one.variable, other.variable) for one, other in pairs) for pairs in (self._apart, self._disjoint)
        )
        kinds, kept = tuple(self._kinds.values()), tuple(self._kept)
        return GraphMatch(kinds, components, different, disjoint, self._paths(), kept, tuple(self._alike))

    # --- what is asked of each element ---

    def _take(self, part: ex.Expression) -> None:
        """Ask a condition early if it is about one element; ask it later if that does not settle it."""
        match part:
            case ex.HasLabels(ex.Variable(name), labels) if name in self._labels:
                self._labels[name].update(dict.fromkeys(labels))
                return
            case ex.Quantifier("all", each, source, condition) if self._is_settled_by_each(each, source, condition):
                return
        read = free_variables(part)
        if len(read) == 1 and read <= self._elements and is_about_the_row_alone(part):
            (name,) = read
            self._early[name].append(part)
            if never_fails(part, self._elements, self._parameters):
                return
        self._kept.append(part)

    def _is_settled_by_each(self, each: str, source: ex.Expression, condition: ex.Expression) -> bool:
        """Ask a condition on all relationships of a trail, or of a path, of each that a trail may pass; whether that
        settles it."""
        match source:
            case ex.Variable(name):
                walked = [name]
            case ex.Call("relationships", (ex.Variable(name),)):
                paths = [path for path in self._pattern.paths if path.variable == name]
                walked = [one.variable for path in paths for one in path.relationships]
            case _:
                return False
        if free_variables(condition) != {each} or not is_about_the_row_alone(condition):
            return False
        for trail in self._trails.intersection(walked):
            self._each[trail].append((each, condition))
        settled = bool(walked) and self._trails.issuperset(walked)
        return settled and never_fails(condition, frozenset({each}), self._parameters)

    def _take_of_each(self, hop: _Hop, where: ex.Expression) -> None:
        """What the pattern itself says of each relationship of a trail: asked early as far as that can be."""
        trail, settled = hop.variable, True
        for part in conjuncts(where):
            if free_variables(part) == {trail} and is_about_the_row_alone(part):
                self._each[trail].append((trail, part))
                settled = settled and never_fails(part, frozenset({trail}), self._parameters)
                continue
            settled = False
            found = self._common_value(trail, part)
            if found is not None:
                value, key = found
                self._same[trail].append((trail, ex.Property(ex.Variable(trail), key)))
                if hop.pattern.length is not None and hop.pattern.length[0] > 0:
                    first = ex.Subscript(ex.Variable(trail), ex.Constant(0))
                    self._alike.append((value, ex.Property(first, key)))
        if not settled:
            name = f" each {trail}"
            condition = everywhere(where, lambda item: ex.Variable(name) if item == ex.Variable(trail) else item)
            self._kept.append(ex.Quantifier("all", name, ex.Variable(trail), condition, span=where.span))

    def _common_value(self, trail: str, part: ex.Expression) -> tuple[ex.Expression, str] | None:
        """A value of another element that a property of each relationship of a trail is equal to, and the property."""
        if isinstance(part, ex.Compare) and part.operator == "=":
            for one, other in ((part.left, part.right), (part.right, part.left)):
                match one, other:
                    case ex.Property(ex.Variable(name), key), ex.Property(ex.Variable(element)):
                        if name == trail and element in self._elements:
                            return other, key
        return None

    def _all_shown(self, needed: Iterable[str]) -> frozenset[str]:
        """The elements whose content somebody wants to see: whoever reads the rows, a condition, a path."""
        wanted = set(needed)
        for part in self._kept:
            wanted |= free_variables(part)
        self._named = [path for path in self._pattern.paths if path.variable is not None and path.variable in wanted]
        for path in self._named:
            wanted.update(node.variable for node in path.nodes)
            wanted.update(one.variable for one in path.relationships)
        self._between = frozenset(
            one.variable
            for path in self._named
            for one in path.relationships
            if one.length is not None and one.variable in self._trails | self._shortest
        )
        for one, other in (*self._apart, *self._disjoint):
            wanted |= {one.variable, other.variable}
        return frozenset(wanted & (self._elements | self._trails | self._shortest))

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
        labels, conditions = tuple(sorted(self._labels[name])), tuple(self._early[name])
        shown, called = name in self._shown, name if conditions else ""
        key = ("node", labels, shown, conditions, called)
        return self._kinds.setdefault(key, NodeKind(len(self._kinds) + 1, labels, shown, conditions, called)).number

    def _relationship_kind(self, hop: _Hop) -> int:
        name = hop.variable
        types, both, conditions = tuple(sorted(hop.pattern.types)), hop.pattern.direction == "both", self._early[name]
        shown, called = name in self._shown, name if conditions else ""
        key = ("relationship", types, both, shown, tuple(conditions), called)
        kind = RelationshipKind(len(self._kinds) + 1, types, both, shown, tuple(conditions), called)
        return self._kinds.setdefault(key, kind).number

    def _trail_kind(self, hop: _Hop) -> int:
        assert hop.pattern.length is not None
        name = hop.variable
        starts, ends = (
            self._node_kind(end) if self._labels[end] or self._early[end] else None for end in (hop.source, hop.target)
        )
        types, direction = tuple(sorted(hop.pattern.types)), hop.pattern.direction
        each, same = tuple(self._each[name]), tuple(self._same[name])
        shown, between = name in self._shown, name in self._between
        once, circle = hop.pattern.once, hop.pattern.once and hop.source == hop.target
        asked = (types, direction, *hop.pattern.length, shown, between, each, same, starts, ends, once, circle)
        return self._kinds.setdefault(("trail", *asked), TrailKind(len(self._kinds) + 1, *asked)).number

    def _shortest_kind(self, hop: _Hop) -> int:
        name, length = hop.variable, hop.pattern.length
        starts, ends = (
            self._node_kind(end) if self._labels[end] or self._early[end] else None for end in (hop.source, hop.target)
        )
        types, direction = tuple(sorted(hop.pattern.types)), hop.pattern.direction
        every, single = hop.kind == "all-shortest", length is None
        minimum, maximum = (1, 1) if length is None else length
        each = tuple((name, part) for part in conjuncts(hop.pattern.where))
        shown, between = name in self._shown, name in self._between
        columns = tuple(end if end in self._asked else None for end in (hop.source, hop.target))
        asked = (types, direction, minimum, maximum, every, single, shown, between, each, starts, ends, columns)
        kind = ShortestKind(len(self._kinds) + 1, *asked)  # type: ignore[arg-type]
        return self._kinds.setdefault(("shortest", *asked), kind).number

    def _kind_of(self, hop: _Hop) -> int:
        if hop.is_shortest:
            return self._shortest_kind(hop)
        return self._trail_kind(hop) if hop.is_trail else self._relationship_kind(hop)

    # --- components ---

    def _connected(self) -> dict[str, str]:
        """For each node variable, the first one that it is connected with."""
        groups = {name: name for name in self._labels}
        for hop in self._hops:
            one, other = groups[hop.source], groups[hop.target]
            if one != other:
                groups = {name: one if group == other else group for name, group in groups.items()}
        return groups

    def _component(self, group: str) -> Component:
        numbers: dict[tuple[str, str], int] = {}

        def free(what: str, name: str) -> Free:
            return Free(numbers.setdefault((what, name), len(numbers)))

        hops = [hop for hop in self._hops if self._groups[hop.source] == group]
        pairs = [pair for pair in self._pairs if self._groups[pair[0].source] == group and pair not in self._apart]
        compared = {hop.variable for pair in pairs for hop in pair}
        patterns = []
        for hop in hops:
            name, shown = hop.variable, hop.variable in self._shown
            # The content says which relationship it is, unless others are compared with it that are not shown.
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
            if shown or self._labels[name] or self._early[name] or not hops:
                shows: Place = free("content", name) if shown else None
                kind = Fixed(self._node_kind(name))
                patterns.append(FactPattern((free("identity", name), kind, shows, None, None)))
        different = tuple((numbers["identity", a.variable], numbers["identity", b.variable]) for a, b in pairs)
        columns = tuple(_column(what, name) for what, name in numbers)
        return Component(Conjunction(WIDTH, tuple(patterns), len(numbers), different), columns)


def _between(trail: str) -> str:
    """The column of the nodes on a trail's way."""
    return f" between {trail}"


def _column(what: str, name: str) -> str | None:
    """The column that a variable of a conjunction gives."""
    match what:
        case "content":
            return name
        case "between":
            return _between(name)
    return None


def _may_be_the_same(one: _Hop, other: _Hop) -> bool:
    """A relationship has one type; a trail that is found once takes none from others."""
    if one.pattern.once or other.pattern.once:
        return False
    types, others = one.pattern.types, other.pattern.types
    return not types or not others or not frozenset(types).isdisjoint(others)
