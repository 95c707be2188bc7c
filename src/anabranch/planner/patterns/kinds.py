"""Kinds of facts that a pattern of a property graph asks for, and the match that is made of them.

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

Invariant: these are decisions alone; what they mean of a graph, `leaves/graph_facts.py` says.
"""

from __future__ import annotations

from dataclasses import dataclass

from anabranch.algebra import expressions as ex
from anabranch.algebra.operators import Direction
from anabranch.delta.patterns import KIND, Conjunction, Fixed

WIDTH = 5


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
class PatternComponent:
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
    components: tuple[PatternComponent, ...]
    different: tuple[tuple[str, str], ...]
    disjoint: tuple[tuple[str, str], ...]
    paths: tuple[NamedPath, ...]
    kept: tuple[ex.Expression, ...]
    alike: tuple[tuple[ex.Expression, ex.Expression], ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the components, joined in their order."""
        return tuple(name for component in self.components for name in component.names)
