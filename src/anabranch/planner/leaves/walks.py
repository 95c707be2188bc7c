"""Walks as facts: the common part of the makers of trails and of shortest paths.

Invariant: a fact is given once when it comes and once when it goes; `living` counts the facts that exist now.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from itertools import count
from typing import Generic, TypeAlias, TypeVar

from anabranch.delta.batch import NULL
from anabranch.delta.dictionary import Dictionary
from anabranch.model.values import ElementId, Node, Relationship, Value
from anabranch.planner.patterns.kinds import ShortestKind, TrailKind

MOST_WALKS = 100_000
"""Default limit of the living walks of one kind."""
_BYTES_PER_WALK = 700  # about, with its place in the dictionary
_BYTES_PER_STEP = 200

WalkFact: TypeAlias = tuple[int, int, int, int, int]
RelationshipId: TypeAlias = ElementId | None
NumberOf: TypeAlias = Callable[[ElementId], int]
IsOf: TypeAlias = Callable[[ElementId, int], bool]
Allows: TypeAlias = Callable[[Relationship], bool]
WalkKind = TypeVar("WalkKind", TrailKind, ShortestKind)


class TooManyTrails(Exception):
    """There are more trails than may be kept, or finding them takes too long."""

    def __init__(self, most: int) -> None:
        super().__init__(f"more than {most:,} trails, or too many steps to find them")
        self.most = most


class WalkMaker(ABC, Generic[WalkKind]):
    """Makes the facts of the walks of one kind. It gets each change after the node facts of that change were made.

    `number_of` gives the number that stands for a node in facts; `is_of` returns whether a node, as it is now, has a
    fact of a kind; `allows` tests a relationship's conditions. `most` is how many walks may live."""

    _ways_per_relationship = 1  # from how many ends a relationship is indexed

    def __init__(
        self,
        kind: WalkKind,
        dictionary: Dictionary,
        number_of: NumberOf,
        is_of: IsOf = lambda node_id, kind: True,
        allows: Allows = lambda relationship: True,
        most: int | None = None,
    ) -> None:
        self._kind: WalkKind = kind
        self._dictionary = dictionary
        self._number_of = number_of
        self._is_of = is_of
        self._allows = allows
        self._types = frozenset(kind.types)
        self._most = MOST_WALKS if most is None else most
        self._numbers = count(1)
        self._relationships: dict[RelationshipId, Relationship] = {}  # those that are allowed
        self._nodes: dict[ElementId, Node] = {}
        self._empty: dict[ElementId, WalkFact] = {}  # the walks of length 0, by their only node
        self._living = 0
        self._passed = 0  # relationships of all living walks together
        self._removed: list[WalkFact] = []
        self._added: list[WalkFact] = []

    @property
    def living(self) -> int:
        """How many walks exist now, empty ones included."""
        return self._living + len(self._empty)

    @property
    def nbytes(self) -> int:
        """About how many bytes are kept."""
        steps = self._passed + len(self._empty) + self._ways_per_relationship * len(self._relationships)
        return _BYTES_PER_WALK * self._living + _BYTES_PER_STEP * steps

    def _is_allowed(self, relationship: Relationship) -> bool:
        return (not self._types or relationship.type in self._types) and self._allows(relationship)

    @abstractmethod
    def _may_stay(self, node_id: ElementId) -> bool:
        """Return whether a walk may both begin and end at a node of the graph."""

    def _new_fact(self, relationships: tuple[RelationshipId, ...], nodes: tuple[ElementId, ...]) -> WalkFact:
        shown, between = self._contents(relationships, nodes, next(self._numbers))
        fact = (self._number_of(nodes[0]), self._kind.number, self._number_of(nodes[-1]), shown, between)
        self._added.append(fact)
        return fact

    def _shown_again(
        self, fact: WalkFact, relationships: tuple[RelationshipId, ...], nodes: tuple[ElementId, ...]
    ) -> WalkFact:
        """Update the fact of a walk through an element that looks different now."""
        now = (*fact[:3], *self._contents(relationships, nodes, fact[3]))
        if now != fact:
            self._removed.append(fact)
            self._added.append(now)
        return now

    def _contents(
        self, relationships: tuple[RelationshipId, ...], nodes: tuple[ElementId, ...], number: int
    ) -> tuple[int, int]:
        """Return the last two columns of a fact."""
        encode = self._dictionary.encode
        if self._kind.shown:
            number = encode(self._shown([self._relationships[one] for one in relationships]))
        return number, encode([self._nodes[one] for one in nodes[1:-1]]) if self._kind.between else NULL

    def _shown(self, relationships: list[Relationship]) -> Value:
        return relationships

    def _settle_empty(self, touched: Mapping[ElementId, bool]) -> None:
        """Update the walks of length 0. `touched` has for each node whether it is in the graph; a node at which a walk
        may both begin and end has one such walk."""
        if self._kind.minimum > 0:
            return
        for node_id, is_there in touched.items():
            known = self._empty.get(node_id)
            if is_there and self._may_stay(node_id):
                if known is None:
                    self._empty[node_id] = self._new_fact((), (node_id,))
            elif known is not None:
                self._removed.append(self._empty.pop(node_id))
