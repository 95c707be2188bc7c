"""Pairs of trail ends, each pair once, kept up to date: for trails of which the query reads nothing but the ends.

Law: the facts are the pairs (start, end) for which `snapshot.paths.ends_of_trails` of the graph that the changes so far
make finds the end. Nodes that may not begin or end trails may be among the starts and ends, where leaving them out
would cost more than it saves: the pattern tests the nodes in any case.

Relationships without direction: connected components, and the nodes that lie on a cycle (`delta.paths.components`).

Relationships with a direction: the trees of an automaton (`delta.paths.matcher`), which follow the arrivals of the
window in their order. A tree grows from each node that may begin trails, or, where trails are walked backwards, that
may end them. Such a node gets a loop, which is the first step of every walk from it. The loop stays when the node is no
longer allowed; when enough loops are of no use, the trees are rebuilt. Where the order of arrivals does not determine
what leaves (a strict union, a relationship that changed its ends or type), the trees are rebuilt at every change.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from anabranch.delta.batch import NULL, Batch, Ids, concatenated
from anabranch.delta.dictionary import Dictionary
from anabranch.delta.operators.base import Size
from anabranch.delta.paths import automaton as au
from anabranch.delta.paths.components import ComponentPairs
from anabranch.delta.patterns import BudgetExceeded
from anabranch.model.union import ElementChanges, was_moved
from anabranch.model.values import ElementId, Relationship
from anabranch.planner.flow.feeds import RelationshipSlide
from anabranch.planner.flow.held import WindowArrivals
from anabranch.planner.leaves.walks import IsOf, NumberOf, TooManyTrails
from anabranch.planner.patterns.kinds import WIDTH, TrailKind

if TYPE_CHECKING:
    from anabranch.delta.paths.matcher import PathMatcher

MOST_PAIRS = 1 << 22
"""Default limit of pairs of ends, or of tree nodes; past it trails are recomputed by search."""

_ROOT = NULL  # the kind of the loops at which walks begin; no relationship's type has this id
_SPARE_LOOPS = 1024
_BYTES_PER_ELEMENT = 200
_NOTHING: Ids = np.empty((0, 2), np.int64)


class JoinedEnds:
    """Pairs of ends of trails along relationships without direction."""

    def __init__(self, kind: TrailKind, number_of: NumberOf, is_of: IsOf, most: int | None = None) -> None:
        self._kind = kind
        self._number_of = number_of
        self._is_of = is_of
        self._laid: dict[ElementId | None, tuple[ElementId, ElementId]] = {}
        self._begin: dict[ElementId, int] = {}
        self._end = self._begin if kind.starts == kind.ends else {}
        self._pairs = ComponentPairs(kind.minimum == 0, kind.circle, MOST_PAIRS if most is None else most)

    def facts(self, changes: ElementChanges, slide: RelationshipSlide | None) -> tuple[Ids, Ids]:
        """Return the facts that the changes remove and the facts that they add; none is in both."""
        moved = self._settle_nodes(self._begin, self._kind.starts, changes)
        if self._end is not self._begin:
            moved |= self._settle_nodes(self._end, self._kind.ends, changes)
        lifted, laid = self._settle_relationships(changes)
        if not (moved or lifted or laid):
            return _facts(self._kind, _NOTHING), _facts(self._kind, _NOTHING)
        begin, end = (np.sort(np.fromiter(one.values(), np.int64, len(one))) for one in (self._begin, self._end))
        try:
            removed, added = self._pairs.change(lifted, laid, begin, end)
        except BudgetExceeded as error:
            raise TooManyTrails(error.limit) from None
        return _facts(self._kind, removed), _facts(self._kind, added)

    def _settle_nodes(self, who: dict[ElementId, int], kind: int | None, changes: ElementChanges) -> bool:
        moved = False
        for before, after in changes.nodes:
            if after is not None and (kind is None or self._is_of(after.id, kind)):
                if after.id not in who:
                    who[after.id] = self._number_of(after.id)
                    moved = True
            else:
                gone = before if after is None else after
                moved |= gone is not None and who.pop(gone.id, None) is not None
        return moved

    def _settle_relationships(
        self, changes: ElementChanges
    ) -> tuple[list[ElementId | None], list[tuple[ElementId | None, int, int]]]:
        lifted: list[ElementId | None] = []
        laid = []
        for was, now in changes.relationships:
            one = was if now is None else now
            if one is None:
                continue
            known = self._laid.get(one.id)
            ends = None if now is None or not _is_of_type(now, self._kind) else (now.source, now.target)
            if ends == known:
                continue
            if known is not None:
                lifted.append(one.id)
                del self._laid[one.id]
            if ends is not None:
                self._laid[one.id] = ends
                laid.append((one.id, self._number_of(ends[0]), self._number_of(ends[1])))
        return lifted, laid

    def __len__(self) -> int:
        return len(self._laid) + len(self._begin) + len(self._end) + self._pairs.size().rows

    def size(self) -> Size:
        return self._pairs.size()


class ReachedEnds:
    """Pairs of ends of trails along relationships that are walked in their direction, or against it."""

    def __init__(
        self, kind: TrailKind, dictionary: Dictionary, number_of: NumberOf, is_of: IsOf, most: int | None = None
    ) -> None:
        self._kind = kind
        self._dictionary = dictionary
        self._number_of = number_of
        self._is_of = is_of
        self._most = MOST_PAIRS if most is None else most
        self._turned = kind.starts is None and kind.ends is not None
        self._roots = kind.ends if self._turned else kind.starts
        self._loops: dict[ElementId, bool] = {}  # whether a walk may still begin at the node
        self._idle = 0  # loops of no use
        self._nodes: dict[ElementId, int] = {}  # nodes that a trail of no relationship joins to themselves
        self._living: dict[ElementId | None, tuple[int, int, int]] = {}  # relationships by id, for rebuilding
        self._counted = False
        self._held = WindowArrivals(3)
        self._begun = 0  # how many arrivals had left when the matcher was new
        self._automaton = self._new_automaton()
        self._matcher = self._new_matcher()

    def _new_automaton(self) -> au.Automaton:
        kind = self._kind
        kinds = frozenset(map(self._dictionary.encode, kind.types))
        backward = (kind.direction == "in") != self._turned
        step = (
            au.PathStep(kinds, backward=backward)
            if kinds
            else au.PathStep(frozenset({_ROOT}), others=True, backward=backward)
        )
        walk: au.PathExpression = au.PathRepetition(step, 1, kind.maximum)
        return au.automaton(walk if self._roots is None else au.Chain((au.PathStep(frozenset({_ROOT})), walk)))

    def _new_matcher(self) -> PathMatcher:
        from anabranch.delta.paths.matcher import PathMatcher  # few queries need its kernels

        return PathMatcher(self._automaton, loops=self._kind.circle, max_nodes=self._most)

    # --- changes ---

    def facts(self, changes: ElementChanges, slide: RelationshipSlide | None) -> tuple[Ids, Ids]:
        """Return the facts that the changes remove and the facts that they add; none is in both."""
        try:
            pairs = self._changed(changes, slide).consolidated()
        except BudgetExceeded as error:
            raise TooManyTrails(error.limit) from None
        removed, added = (self._numbered(pairs.rows[pairs.weights * sign > 0]) for sign in (-1, 1))
        gone, new = self._settle_standing(changes)
        return (
            np.concatenate((_facts(self._kind, removed), _facts(self._kind, gone))),
            np.concatenate((_facts(self._kind, added), _facts(self._kind, new))),
        )

    def _changed(self, changes: ElementChanges, slide: RelationshipSlide | None) -> Batch:
        touched = self._note(changes)
        fresh = self._settle_roots(changes)
        if slide is None or slide.moved or any(map(was_moved, changes.relationships)):
            self._counted = True
        if self._counted or slide is None:
            if not (touched or fresh):
                return Batch.empty(2)
            return self._anew(np.array(list(self._living.values()), np.int64).reshape(-1, 3), 0)
        self._held.slide(slide.arrived, slide.left)
        if self._idle and self._idle >= min(len(self._loops), _SPARE_LOOPS + len(self._loops) // 2):
            return self._anew(self._held.facts(), slide.left)
        loops = self._matcher.lay(self._loops_at(fresh)) if fresh else Batch.empty(2)
        return concatenated([loops, self._matcher.slide(slide.arrived, slide.left - self._begun)], 2)

    def _anew(self, relationships: Ids, left: int) -> Batch:
        """Rebuild the trees over these relationships, none of which has left; return the difference of the pairs."""
        before = -Batch.entering(self._matcher.pairs())
        self._loops = {node_id: True for node_id, in_use in self._loops.items() if in_use}
        self._idle = 0
        self._begun = left
        self._matcher = self._new_matcher()
        if self._loops:
            self._matcher.lay(self._loops_at(self._loops))
        self._matcher.slide(relationships, 0)
        return concatenated([before, Batch.entering(self._matcher.pairs())], 2)

    def _note(self, changes: ElementChanges) -> bool:
        """Update the kept relationships; return whether any changed."""
        encode = self._dictionary.encode
        changed = False
        for was, now in changes.relationships:
            one = was if now is None else now
            if one is None:
                continue
            known = self._living.get(one.id)
            link = None
            if now is not None and _is_of_type(now, self._kind):
                link = self._living[one.id] = encode(now.source), encode(now.type), encode(now.target)
            elif known is not None:
                del self._living[one.id]
            changed |= known != link
        return changed

    def _settle_roots(self, changes: ElementChanges) -> list[ElementId]:
        """Update the loops; return the nodes that need a new one."""
        if self._roots is None:
            return []
        fresh = []
        for before, after in changes.nodes:
            one = before if after is None else after
            if one is None:
                continue
            known = self._loops.get(one.id)
            in_use = after is not None and self._is_of(one.id, self._roots)
            if in_use and known is None:
                fresh.append(one.id)
            if in_use or known is not None:
                self._loops[one.id] = in_use
                self._idle += int(known is True and not in_use) - int(known is False and in_use)
        return fresh

    def _loops_at(self, nodes: Iterable[ElementId]) -> Ids:
        ids = np.array([self._dictionary.encode(one) for one in nodes], np.int64)
        return np.column_stack((ids, np.full(len(ids), _ROOT, np.int64), ids))

    def _numbered(self, pairs: Ids) -> Ids:
        """Turn pairs of encoded node ids into pairs of node numbers, from the left to the right."""
        if self._turned:
            pairs = pairs[:, ::-1]
        if self._kind.minimum == 0:
            pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        ids, places = np.unique(pairs, return_inverse=True)
        numbers = [self._number_of(self._dictionary.decode(one)) for one in ids.tolist()]  # type: ignore[arg-type]
        return np.array(numbers, np.int64)[places.reshape(-1)].reshape(-1, 2)

    def _settle_standing(self, changes: ElementChanges) -> tuple[Ids, Ids]:
        """Update the trails of no relationship, which join each node to itself; return the removed and the added
        pairs."""
        gone: list[int] = []
        new: list[int] = []
        if self._kind.minimum == 0:
            for before, after in changes.nodes:
                if after is not None and after.id not in self._nodes:
                    number = self._nodes[after.id] = self._number_of(after.id)
                    new.append(number)
                elif after is None and before is not None and before.id in self._nodes:
                    gone.append(self._nodes.pop(before.id))
        return np.array([gone, gone], np.int64).T, np.array([new, new], np.int64).T

    # --- what it holds ---

    def __len__(self) -> int:
        in_use = len(self._loops) - self._idle
        return in_use + len(self._nodes) + len(self._living) + self._matcher.size().rows

    def size(self) -> Size:
        kept = self._matcher.size()
        bytes_ = kept.bytes + self._held.nbytes + _BYTES_PER_ELEMENT * (len(self._living) + len(self._loops))
        return Size(kept.rows + len(self._nodes), bytes_)


def _is_of_type(relationship: Relationship, kind: TrailKind) -> bool:
    return not kind.types or relationship.type in kind.types


def _facts(kind: TrailKind, pairs: Ids) -> Ids:
    facts = np.zeros((len(pairs), WIDTH), np.int64)
    facts[:, 0], facts[:, 1], facts[:, 2] = pairs[:, 0], kind.number, pairs[:, 1]
    return facts
