"""Shortest paths under a condition on the path as a whole: of all trails between two nodes that fulfil it, the
shortest.

The condition is evaluated on each trail, short ones first. A trail of n relationships is only followed while its end
can still be reached within n, by the distances of a search from the end; conditions on all nodes or on no node are
tested on each node along the way. In general all trails have to be tried, and there may be exponentially many: they
count against the budget, at a higher price, because a condition is evaluated on each.

Invariant: a returned trail fulfils the condition, and no shorter trail to the same end does. Of several shortest ones,
the first by the ids of their relationships is returned, or all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count

from anabranch.algebra import expressions as ex
from anabranch.algebra.walk import conjuncts
from anabranch.errors import EvaluationError, LimitExceeded
from anabranch.model.values import ElementId, Node, Relationship
from anabranch.snapshot.compiled import ExpressionEvaluator, truth
from anabranch.snapshot.context import Context
from anabranch.snapshot.expressions import compile_expression
from anabranch.snapshot.index import Adjacency, NeighbourStep, has_labels
from anabranch.snapshot.paths import RelationshipTest, ShortestPathSearch, Trail, by_ids
from anabranch.snapshot.steps import HopWalk, MatchSlots, MatchStep, Then, UsedRelationships, path_of
from anabranch.snapshot.variables import free_variables

_PRICE = 10  # of a step of a search that may have to try all trails

NodeTest = Callable[[Node], bool]


@dataclass(frozen=True, slots=True)
class PathCondition:
    """The condition on a path as a whole, compiled for the slots of a match: `whole` must be true of the path, `nodes`
    are the conditions on each node, with the place of the node after the slots."""

    whole: tuple[ExpressionEvaluator, ...]
    nodes: tuple[tuple[ExpressionEvaluator, bool], ...]
    expression: ex.Expression

    @classmethod
    def of(cls, expression: ex.Expression, path: str | None, names: tuple[str, ...]) -> PathCondition:
        parts = conjuncts(expression)
        nodes = []
        for part in parts:
            match part:
                case ex.Quantifier(("all" | "none") as kind, one, ex.Call("nodes", (ex.Variable(name),)), where):
                    if name == path and path not in free_variables(where):
                        nodes.append((compile_expression(where, (*names, one)), kind == "all"))
        return cls(tuple(compile_expression(part, names) for part in parts), tuple(nodes), expression)

    def holds(self, slots: MatchSlots, context: Context) -> bool:
        try:
            return all(truth(part(slots, context)) is True for part in self.whole)
        except EvaluationError as error:
            context.skip(error)
            return False

    def passes(self, slots: MatchSlots, context: Context) -> NodeTest | None:
        """Return a test whether a path through a node may fulfil the condition. If the test fails to evaluate, the
        whole path decides."""
        if not self.nodes:
            return None
        known = tuple(slots)

        def test(node: Node) -> bool:
            for where, wanted in self.nodes:
                try:
                    if truth(where((*known, node), context)) is not wanted:
                        return False
                except LimitExceeded:
                    raise
                except EvaluationError:
                    continue
            return True

        return test


@dataclass(frozen=True, slots=True)
class ConditionedSearch:
    """The parameters of a search: its walk and the way back, and the slots for the path and its left end."""

    walk: HopWalk
    back: Adjacency
    left: int
    path_slot: int | None
    every: bool
    condition: PathCondition

    def step(self, then: Then) -> MatchStep:
        walk, target = self.walk, self.walk.target
        minimum, maximum = walk.lengths

        def step(slots: MatchSlots, used: UsedRelationships, context: Context) -> Iterator[None]:
            start = walk.start(slots)
            if minimum == 0 and target.bind(slots, start) and self._fulfils([], slots, context):
                yield from then(slots, used, context)
            if maximum is not None and maximum < max(minimum, 1):
                return
            allowed = walk.allowed(slots, context)
            if target.bound:
                end = walk.graph.nodes[slots[target.slot].id]  # type: ignore[attr-defined]
                ends: Iterator[Node] = iter([end] if end.id != start.id else [])
            else:
                ends = ShortestPathSearch(walk.adjacency, start, maximum, allowed, context).reachable()
            for end in ends:
                if not target.bound and not has_labels(end, target.labels):
                    continue
                for trail in self._paths(start, end, max(minimum, 1), maximum, allowed, slots, context):
                    self._lay(trail, end, slots)
                    yield from then(slots, used, context)

        return step

    def _lay(self, trail: Trail, end: Node, slots: MatchSlots) -> None:
        self.walk.target.bind(slots, end)
        slots[self.walk.slot] = trail[0] if self.walk.length is None else trail
        if self.path_slot is not None:
            start: Node = slots[self.left]  # type: ignore[assignment]
            slots[self.path_slot] = path_of(start, trail, self.walk.graph)

    def _fulfils(self, trail: Trail, slots: MatchSlots, context: Context) -> bool:
        self._lay(trail, slots[self.walk.target.slot], slots)  # type: ignore[arg-type]
        return self.condition.holds(slots, context)

    def _paths(
        self,
        start: Node,
        end: Node,
        minimum: int,
        maximum: int | None,
        allowed: RelationshipTest | None,
        slots: MatchSlots,
        context: Context,
    ) -> Iterator[Trail]:
        """Yield the shortest trails from left to right that fulfil the condition."""
        self.walk.target.bind(slots, end)
        passes = self.condition.passes(slots, context)
        if passes is not None and not (passes(start) and passes(end)):
            return
        distances = _distances(self.back, end, maximum, allowed, passes, context)
        if start.id not in distances:
            return
        for length in count(max(minimum, distances[start.id])):
            if maximum is not None and length > maximum:
                return
            trails = _TrailsTo(self.walk.adjacency, end.id, length, distances, allowed, context)
            found: list[Trail] = []
            try:
                for trail in trails.walk(start):
                    ordered = trail[::-1] if self.walk.backwards else list(trail)
                    if not self.every and found and by_ids(found[0]) < by_ids(ordered):
                        continue
                    if self._fulfils(ordered, slots, context):
                        found = [*found, ordered] if self.every else [ordered]
            except EvaluationError as error:
                raise self._located(error, context) from None
            yield from found
            if found or not trails.longer:
                return

    def _located(self, error: EvaluationError, context: Context) -> EvaluationError:
        if error.diagnostic.code != "SER-306":
            return error
        return LimitExceeded(
            "SER-306",
            "no short path fulfils the condition, and trying longer ones needs more than "
            f"{context.max_steps // _PRICE:,} steps over this window",
            "bound the path's length, shortestPath((a)-[*..8]-(b)), or say the condition of each relationship or node: "
            "ALL(r IN relationships(p) WHERE ...)",
            self.condition.expression.span,
        )


def _distances(
    back: Adjacency,
    end: Node,
    maximum: int | None,
    allowed: RelationshipTest | None,
    passes: NodeTest | None,
    context: Context,
) -> dict[ElementId, int]:
    """Return the number of relationships from each node to the end, through nodes that pass the test; other nodes are
    left out."""
    found = {end.id: 0}
    level, depth = [end], 0
    while level and depth != maximum:
        depth += 1
        following: list[Node] = []
        for node in level:
            steps = back[node.id]
            context.spend(len(steps))
            for relationship, neighbour in steps:
                if neighbour.id in found or (allowed is not None and not allowed(relationship)):
                    continue
                if passes is not None and not passes(neighbour):
                    continue
                found[neighbour.id] = depth
                following.append(neighbour)
        level = following
    return found


class _TrailsTo:
    """The trails of one length from a node to an end, depth first. `longer`: whether longer ones may exist."""

    def __init__(
        self,
        adjacency: Adjacency,
        end: ElementId,
        length: int,
        distances: dict[ElementId, int],
        allowed: RelationshipTest | None,
        context: Context,
    ) -> None:
        self.longer = False
        self._adjacency = adjacency
        self._end = end
        self._length = length
        self._distances = distances
        self._allowed = allowed
        self._context = context

    def walk(self, start: Node) -> Iterator[Trail]:
        """Yield each trail; the list is reused."""
        used: set[ElementId | None] = set()
        trail: list[Relationship] = []
        pending: list[Iterator[NeighbourStep]] = [iter(self._steps(start))]
        while pending:
            for relationship, node in pending[-1]:
                distance = self._distances.get(node.id)
                if distance is None or relationship.id in used:
                    continue
                if self._allowed is not None and not self._allowed(relationship):
                    continue
                if len(trail) + 1 + distance > self._length:
                    self.longer = True
                    continue
                used.add(relationship.id)
                trail.append(relationship)
                if len(trail) == self._length:
                    yield trail  # at distance 0: the end
                    self.longer = True
                    used.discard(trail.pop().id)
                    continue
                pending.append(iter(self._steps(node)))
                break
            else:
                pending.pop()
                if trail:
                    used.discard(trail.pop().id)

    def _steps(self, node: Node) -> list[NeighbourStep]:
        steps = self._adjacency[node.id]
        self._context.spend(_PRICE * len(steps))
        return steps  # type: ignore[return-value]
