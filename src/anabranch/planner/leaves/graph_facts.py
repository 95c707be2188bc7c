"""Makes facts of the elements of a property graph, as a matched pattern needs them, and paths of matches.

Law: the facts given out so far, added and removed, are exactly those of the graph that the element changes so far make.

State: the facts of each element that has some, and a number for each node and relationship in a fact; the state of
trails is that of `trails`.
Work per change: O(kinds that the element's labels or type allow), each condition once, plus the work for trails.
Numbers are never reused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import TypeAlias

import numpy as np

from anabranch.delta.batch import NULL, Ids, Mask
from anabranch.delta.dictionary import Dictionary
from anabranch.delta.operators.base import Size
from anabranch.errors import EvaluationError
from anabranch.model.compare import identity_key
from anabranch.model.union import ElementChanges
from anabranch.model.values import ElementId, Node, Path, Relationship
from anabranch.planner.flow.feeds import RelationshipSlide
from anabranch.planner.leaves.asked_pairs import AskedPairs, EndColumns
from anabranch.planner.leaves.shortest_paths import ShortestMaker
from anabranch.planner.leaves.trail_ends import JoinedEnds, ReachedEnds
from anabranch.planner.leaves.trails import TrailKey, TrailMaker
from anabranch.planner.leaves.walks import WalkFact
from anabranch.planner.patterns.kinds import (
    WIDTH,
    GraphMatch,
    NamedPath,
    NodeKind,
    PatternComponent,
    RelationshipKind,
    ShortestKind,
    TrailKind,
)
from anabranch.snapshot.compiled import ExpressionEvaluator, truth
from anabranch.snapshot.context import Context
from anabranch.snapshot.expressions import compile_expression
from anabranch.snapshot.index import has_labels

Facts: TypeAlias = tuple[WalkFact, ...]
GraphElement: TypeAlias = Node | Relationship

NOBODY: Mapping[EndColumns, AskedPairs] = {}
_NO_FACTS: Facts = ()
_MOST_REMEMBERED = 1 << 18  # paths of one name; past it they are made again


@dataclass(frozen=True, slots=True)
class _Test:
    """A kind with its compiled conditions."""

    number: int
    shown: bool
    both_ways: bool
    conditions: tuple[ExpressionEvaluator, ...]

    @classmethod
    def of(cls, kind: NodeKind | RelationshipKind) -> _Test:
        conditions = tuple(compile_expression(one, (kind.variable,)) for one in kind.conditions)
        return cls(kind.number, kind.shown, isinstance(kind, RelationshipKind) and kind.both_ways, conditions)

    def passes(self, element: GraphElement, context: Context) -> bool:
        return _may_pass(self.conditions, element, context)


def _may_pass(conditions: Iterable[ExpressionEvaluator], element: GraphElement, context: Context) -> bool:
    """Return whether an element may be part of a match; where a condition fails, the test of the match decides."""
    for condition in conditions:
        try:
            value = condition((element,), context)
        except EvaluationError:
            continue
        if value is False or value is None:
            return False
    return True


def _passes(conditions: Iterable[ExpressionEvaluator], element: GraphElement, context: Context) -> bool:
    """Return whether all conditions are true of an element; where one fails, the element is skipped."""
    try:
        return all(truth(condition((element,), context)) is True for condition in conditions)
    except EvaluationError as error:
        context.skip(error)
        return False


class FactMaker:
    """Makes the facts of one pattern, or of one component of it, over one window or static graph. `asked` are the
    counters of the pairs that limit the search for shortest paths; `most_bytes` is how much the distances of these
    paths may take."""

    def __init__(
        self,
        match: GraphMatch,
        dictionary: Dictionary,
        context: Context,
        component: PatternComponent | None = None,
        asked: Mapping[EndColumns, AskedPairs] = NOBODY,
        most_bytes: int | None = None,
    ) -> None:
        kinds = [kind for kind in match.kinds if component is None or kind.number in component.kinds]
        self._dictionary = dictionary
        self._context = context
        self._node_kinds = [(kind, _Test.of(kind)) for kind in kinds if isinstance(kind, NodeKind)]
        self._relationship_kinds = [(kind, _Test.of(kind)) for kind in kinds if isinstance(kind, RelationshipKind)]
        self._tests_of_labels: dict[tuple[str, ...], tuple[_Test, ...]] = {}
        self._tests_of_type: dict[str, tuple[_Test, ...]] = {}
        self._numbers = count(1)
        self._node_numbers: dict[ElementId, int] = {}
        self._relationship_numbers: dict[ElementId | None, int] = {}
        self._node_facts: dict[ElementId, Facts] = {}
        self._relationship_facts: dict[ElementId | None, Facts] = {}
        self._trails: list[TrailMaker | ShortestMaker] = [
            self._trail_maker(kind) for kind in kinds if isinstance(kind, TrailKind) and not kind.once
        ]
        self._trails += [
            self._shortest_maker(kind, asked.get(kind.asked), most_bytes)
            for kind in kinds
            if isinstance(kind, ShortestKind)
        ]
        self._ends = [self._end_maker(kind) for kind in kinds if isinstance(kind, TrailKind) and kind.once]

    def _end_maker(self, kind: TrailKind) -> JoinedEnds | ReachedEnds:
        if kind.direction == "both":
            return JoinedEnds(kind, self._node_number, self._is_of)
        return ReachedEnds(kind, self._dictionary, self._node_number, self._is_of)

    @property
    def follows(self) -> bool:
        """Whether the relationships of arrived events are needed, besides the element changes."""
        return any(isinstance(one, ReachedEnds) for one in self._ends)

    def _allows(self, kind: TrailKind | ShortestKind) -> Callable[[Relationship], bool]:
        conditions = [compile_expression(condition, (name,)) for name, condition in kind.each]
        if self._context.skipped is None:
            return lambda relationship: _may_pass(conditions, relationship, self._context)
        return lambda relationship: _passes(conditions, relationship, self._context)

    def _shortest_maker(self, kind: ShortestKind, asked: AskedPairs | None, most_bytes: int | None) -> ShortestMaker:
        number, is_of, allows = self._node_number, self._is_of, self._allows(kind)
        return ShortestMaker(kind, self._dictionary, number, is_of, allows, asked, most_bytes=most_bytes)

    def _trail_maker(self, kind: TrailKind) -> TrailMaker:
        values = [compile_expression(value, (name,)) for name, value in kind.same]

        def key_of(relationship: Relationship) -> TrailKey | None:
            found = [value((relationship,), self._context) for value in values]
            return None if None in found else tuple(map(identity_key, found))

        return TrailMaker(kind, self._dictionary, self._node_number, self._is_of, self._allows(kind), key_of)

    def _is_of(self, node_id: ElementId, kind: int) -> bool:
        return any(fact[1] == kind for fact in self._node_facts.get(node_id, _NO_FACTS))

    def __len__(self) -> int:
        """Return how many elements and trails are kept."""
        elements = len(self._node_numbers) + len(self._relationship_numbers)
        return elements + sum(map(len, self._trails)) + sum(map(len, self._ends))

    def size(self) -> Size:
        """Return the number of kept trails, and about how many bytes they take."""
        ends = [one.size() for one in self._ends]
        rows = sum(one.living for one in self._trails) + sum(one.rows for one in ends)
        return Size(rows, sum(one.nbytes for one in self._trails) + sum(one.bytes for one in ends))

    def facts(self, changes: ElementChanges, carried: RelationshipSlide | None = None) -> tuple[Ids, Ids]:
        """Return the facts that the changes remove and the facts that they add; none is in both. `carried` are the
        relationships of arrived events, given where these determine which relationships exist."""
        removed: list[WalkFact] = []
        added: list[WalkFact] = []
        gone: list[ElementId] = []
        for before, after in changes.nodes:
            if after is not None:
                _replace(self._node_facts, after.id, self._of_node(after), removed, added)
            elif before is not None:
                _replace(self._node_facts, before.id, _NO_FACTS, removed, added)
                gone.append(before.id)
        for was, now in changes.relationships:
            if now is not None:
                _replace(self._relationship_facts, now.id, self._of_relationship(now), removed, added)
            elif was is not None:
                _replace(self._relationship_facts, was.id, _NO_FACTS, removed, added)
                self._relationship_numbers.pop(was.id, None)
        for trails in self._trails:
            gone_trails, new_trails = trails.facts(changes)
            removed += gone_trails
            added += new_trails
        joined = [ends.facts(changes, carried) for ends in self._ends]
        # A node leaves only after all its relationships have left: its number is not needed any more.
        for node_id in gone:
            self._node_numbers.pop(node_id, None)
        if not joined:
            return _matrix(removed), _matrix(added)
        gone_ends, new_ends = zip(*joined, strict=True)
        return np.concatenate((_matrix(removed), *gone_ends)), np.concatenate((_matrix(added), *new_ends))

    def _of_node(self, node: Node) -> Facts:
        tests = self._tests_of_labels.get(node.labels)
        if tests is None:
            tests = tuple(test for kind, test in self._node_kinds if has_labels(node, kind.labels))
            self._tests_of_labels[node.labels] = tests
        found: list[WalkFact] = []
        content = NULL
        for test in tests:
            if test.conditions and not test.passes(node, self._context):
                continue
            if test.shown and not content:
                content = self._dictionary.encode(node)
            number = self._node_number(node.id)
            found.append((number, test.number, content if test.shown else NULL, NULL, NULL))
        return tuple(found)

    def _of_relationship(self, relationship: Relationship) -> Facts:
        tests = self._tests_of_type.get(relationship.type)
        if tests is None:
            allowed = self._relationship_kinds
            tests = tuple(test for kind, test in allowed if not kind.types or relationship.type in kind.types)
            self._tests_of_type[relationship.type] = tests
        found: list[WalkFact] = []
        content = NULL
        for test in tests:
            if test.conditions and not test.passes(relationship, self._context):
                continue
            if test.shown and not content:
                content = self._dictionary.encode(relationship)
            number = self._relationship_numbers.get(relationship.id)
            if number is None:
                number = self._relationship_numbers[relationship.id] = next(self._numbers)
            source, target = self._node_number(relationship.source), self._node_number(relationship.target)
            shows = content if test.shown else NULL
            found.append((source, test.number, target, number, shows))
            if test.both_ways and source != target:
                found.append((target, test.number, source, number, shows))
        return tuple(found)

    def _node_number(self, node_id: ElementId) -> int:
        number = self._node_numbers.get(node_id)
        if number is None:
            number = self._node_numbers[node_id] = next(self._numbers)
        return number


def _replace(
    held: dict[ElementId, Facts] | dict[ElementId | None, Facts],
    element_id: ElementId | None,
    facts: Facts,
    removed: list[WalkFact],
    added: list[WalkFact],
) -> None:
    known: dict[ElementId | None, Facts] = held  # type: ignore[assignment]
    old = known.get(element_id, _NO_FACTS)
    if old == facts:
        return
    removed += [fact for fact in old if fact not in facts]
    added += [fact for fact in facts if fact not in old]
    if facts:
        known[element_id] = facts
    else:
        del known[element_id]


def _matrix(facts: Sequence[WalkFact]) -> Ids:
    return np.array(facts, np.int64).reshape(len(facts), WIDTH)


def path_values(path: NamedPath, columns: Sequence[str], dictionary: Dictionary) -> Callable[[Ids], Ids]:
    """Return a function from rows with these columns to the path that each row's elements make."""
    given = [one for one in path.between if one is not None]
    picks = [list(columns).index(name) for name in (*path.nodes, *path.relationships, *given)]
    known: dict[tuple[int, ...], int] = {}  # a leaving row needs the path of the entering one

    def value(ids: tuple[int, ...]) -> int:
        values = iter([dictionary.decode(one) for one in ids])
        ends = list(islice(values, len(path.nodes)))
        walked = list(islice(values, len(path.relationships)))
        nodes, relationships = ends[:1], []
        for end, one, between in zip(ends[1:], walked, path.between, strict=True):
            if between is None:
                relationships.append(one)
                nodes.append(end)
                continue
            on_the_way = next(values)
            if one:  # a trail of length 0 adds no element
                relationships += one  # type: ignore[arg-type]
                nodes += (*on_the_way, end)  # type: ignore[misc]
        return dictionary.encode(Path(tuple(nodes), tuple(relationships)))  # type: ignore[arg-type]

    def compute(rows: Ids) -> Ids:
        if len(known) > _MOST_REMEMBERED:
            known.clear()
        keys = list(zip(*(rows[:, pick].tolist() for pick in picks), strict=True))
        for key in keys:
            if key not in known:
                known[key] = value(key)
        return np.array([known[key] for key in keys], np.int64)

    return compute


def nothing_shared(left: int, right: int, dictionary: Dictionary) -> Callable[[Ids], Mask]:
    """Return a test whether the relationships and trails in two columns have no relationship in common."""
    passed: dict[int, frozenset[ElementId | None]] = {}

    def ids_of(value: int) -> frozenset[ElementId | None]:
        found = passed.get(value)
        if found is None:
            held = dictionary.decode(value)
            elements = held if isinstance(held, list) else [held]
            found = passed[value] = frozenset(one.id for one in elements if isinstance(one, Relationship))
        return found

    def test(rows: Ids) -> Mask:
        passed.clear()
        pairs = zip(rows[:, left].tolist(), rows[:, right].tolist(), strict=True)
        return np.array([ids_of(one).isdisjoint(ids_of(other)) for one, other in pairs], np.bool_)

    return test
