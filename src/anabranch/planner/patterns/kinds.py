"""Kinds of facts that a property-graph pattern needs, and the match that is made of them.

A fact has five columns: an end, its kind, the other end, the relationship, the content.

    of a node            (node, kind, content, rank, 0)
    of a relationship    (source, kind, target, relationship, content)      and turned around, where it has no direction
    of a trail           (start, kind, end, trail, nodes between)           one for each way to walk it
    of a shortest path   (start, kind, end, path, nodes between)

A kind is a number for the demands of a place of the pattern: exactly the elements with these labels, or of one of these
types, for which these conditions hold have a fact of the kind. So each element is tested once, when it comes, and not
once per match. Node and relationship are numbers of the element's identity. Content is the id of the element as a
value, or 0 where the query does not read it: then a change of a property changes no fact. A trail, which stands for a
relationship of variable length, is the id of the list of its relationships where the query reads it, else a number of
its own. The nodes between are the id of their list where a path shows them, else 0. The rank orders nodes by a number
that a condition compares, where it is known, else 0.

Invariant: kinds hold decisions only; `leaves/graph_facts.py` makes the facts of a graph.
"""

from __future__ import annotations

from dataclasses import dataclass

from anabranch.algebra import expressions as ex
from anabranch.algebra.operators import Direction
from anabranch.delta.patterns import KIND, Conjunction, Fixed, MatchTelling, RankTest

WIDTH = 5


@dataclass(frozen=True, slots=True)
class NodeKind:
    """The nodes with these labels for which the conditions hold; the conditions refer to the node by `variable`. `keys`
    are the parts that are read of a shown node. `ranked` is the property by which its facts have ranks."""

    number: int
    labels: tuple[str, ...]
    shown: bool
    conditions: tuple[ex.Expression, ...] = ()
    variable: str = ""
    keys: tuple[str, ...] = ()
    ranked: str | None = None


@dataclass(frozen=True, slots=True)
class RelationshipKind:
    """The relationships of one of these types (none given: all) for which the conditions hold."""

    number: int
    types: tuple[str, ...]
    both_ways: bool
    shown: bool
    conditions: tuple[ex.Expression, ...] = ()
    variable: str = ""
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TrailKind:
    """The trails of these lengths along relationships of one of these types (none given: all). Each relationship passes
    the conditions `each`, which come with the variable that stands for it. Trails are read from the left: `direction`
    is how their relationships are walked. `same` are values that all relationships of a trail have in common, none of
    them null. `starts` and `ends` are the kinds of nodes at which trails may begin and end; None: any. `between`: the
    nodes on the way are shown. `once`: there is one fact for each pair of ends, without a trail in it; `circle`: then
    only trails that end where they began are needed."""

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
    """The shortest paths of these lengths: one for each pair of ends, or all (`every`); the other fields are as with
    trails. `single`: a path is shown as its only relationship. `asked` are the columns of the joined rows that bind the
    first and the last node of a path; None: not bound."""

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
        """Whether a path of at least one relationship can have an allowed length."""
        return self.maximum is None or self.maximum >= max(self.minimum, 1)


Kind = NodeKind | RelationshipKind | TrailKind | ShortestKind


@dataclass(frozen=True, slots=True)
class PatternComponent:
    """A part of a pattern that shares no node with the rest. `columns`: per variable of the conjunction, the column of
    the pattern that it gives, or None. `tests` compare ranks of nodes; `spared` are the variables that only they
    read."""

    conjunction: Conjunction
    columns: tuple[str | None, ...]
    tests: tuple[RankTest, ...] = ()
    spared: frozenset[int] = frozenset()

    @property
    def telling(self) -> MatchTelling:
        """What the matcher tells of a match."""
        return MatchTelling(self.picks, self.tests, self.spared)

    @property
    def picks(self) -> tuple[int, ...]:
        """The variables that give columns."""
        return tuple(number for number, name in enumerate(self.columns) if name is not None)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that the variables give."""
        return tuple(name for name in self.columns if name is not None)

    @property
    def kinds(self) -> frozenset[int]:
        """The numbers of the kinds of facts that the component matches."""
        places = (pattern.places[KIND] for pattern in self.conjunction.patterns)
        return frozenset(place.id for place in places if isinstance(place, Fixed))


@dataclass(frozen=True, slots=True)
class NamedPath:
    """A path to be built from the columns of its nodes and relationships, in the order in which it passes them. Of a
    trail, `between` is the column of the nodes on its way; of a single relationship, None."""

    name: str
    nodes: tuple[str, ...]
    relationships: tuple[str, ...]
    between: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class GraphMatch:
    """How a pattern is matched. `different` are pairs of columns, of different components, that must not be the same
    relationship. `disjoint` are pairs of columns, at least one of them a trail, that must have no relationship in
    common. `alike` are pairs of values of two columns that are equal in every row that passes. `kept` are the
    conditions to test on the rows, paths included; those in `settled` hold for rows with null in this column."""

    kinds: tuple[Kind, ...]
    components: tuple[PatternComponent, ...]
    different: tuple[tuple[str, str], ...]
    disjoint: tuple[tuple[str, str], ...]
    paths: tuple[NamedPath, ...]
    kept: tuple[ex.Expression, ...]
    alike: tuple[tuple[ex.Expression, ex.Expression], ...] = ()
    settled: tuple[tuple[ex.Expression, str], ...] = ()

    def kinds_of(self, component: PatternComponent) -> list[Kind]:
        """Return the kinds of facts that a component matches."""
        return [kind for kind in self.kinds if kind.number in component.kinds]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the components, joined in their order."""
        return tuple(name for component in self.components for name in component.names)
