"""Matching a `Pattern`: from a row that may bind some of its variables to all rows that complete it.

The condition is checked in parts, each as soon as the variables that it reads are bound. A part that fails to evaluate
on a partial match does not decide: the match is completed first and the whole condition evaluated then, so that an
error is only raised where the plain reading (match everything, then filter) would raise it too.

Invariant: the matches are those of the plain reading, whatever the order of expansion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from anabranch.algebra import expressions as ex
from anabranch.algebra.operators import Direction, PathPattern, Pattern
from anabranch.algebra.walk import conjuncts
from anabranch.errors import EvaluationError, LimitExceeded
from anabranch.model.compare import identity_key
from anabranch.model.values import Node, Relationship, Value
from anabranch.snapshot.compiled import ExpressionEvaluator, truth
from anabranch.snapshot.conditioned_paths import ConditionedSearch, PathCondition
from anabranch.snapshot.context import Context
from anabranch.snapshot.expressions import compile_expression
from anabranch.snapshot.index import NO_NODES, GraphIndex, has_labels
from anabranch.snapshot.ordering import Follow, JoinHop, Lookup, Move, Ordering, Scan, hops_of, lookups_of
from anabranch.snapshot.paths import RelationshipTest
from anabranch.snapshot.steps import (
    Accept,
    Candidates,
    End,
    HopWalk,
    MatchSlots,
    MatchStep,
    Then,
    Where,
    assemble,
    expand,
    expand_ends,
    expand_into,
    expand_trails,
    given_relationship,
    given_trail,
    meet_node,
    meet_relationships,
    scan,
    shortest,
    unite_faces,
)
from anabranch.snapshot.variables import free_variables

_DOUBT = " doubt"  # the slot after the row's own: true once a part of the condition failed to evaluate
_BEFORE = " before "  # prefix of the slots after that: the value of an element before it was found again in this graph
Make = Callable[[Then], MatchStep]
_REVERSED: dict[Direction, Direction] = {"out": "in", "in": "out", "both": "both"}


class PatternMatcher:
    """A pattern compiled for rows of certain columns; the order of expansion is chosen per graph.

    `given` are the columns of the rows that are extended. The result's columns are these and then the pattern's own.
    """

    def __init__(self, pattern: Pattern, given: tuple[str, ...], condition: ex.Expression | None) -> None:
        self.columns = given + tuple(name for name in pattern.columns if name not in given)
        self._pattern = pattern
        self._given = frozenset(given)
        self._bound = frozenset(pattern.columns) & self._given
        self._slot = {name: position for position, name in enumerate(self.columns)}
        met = sorted(self._bound)
        self._names = (*self.columns, _DOUBT, *(_BEFORE + name for name in met))
        self._faces = [(self._slot[name], len(self.columns) + 1 + place) for place, name in enumerate(met)]
        self._hops = hops_of(pattern)
        self._labels, parts = self._split(condition)
        own = list(conjuncts(pattern.where))
        self._own = frozenset(range(len(own)))
        self._parts = own + parts
        paths = {path.variable for path in pattern.paths} - self._given  # paths are known only after their nodes
        lookups = lookups_of(self._parts, frozenset(self._labels) - self._bound)
        self._lookups = tuple(lookup for lookup in lookups if lookup.needs.isdisjoint(paths))
        self._compiled = [compile_expression(part, self._names) for part in self._parts]
        self._needs = [free_variables(part) for part in self._parts]

    def matches(self, context: Context, row: tuple[Value, ...]) -> Iterator[tuple[Value, ...]]:
        """All ways to complete the row."""
        slots: MatchSlots = [*row, *[None] * (len(self._names) - len(row))]
        for slot, before in self._faces:
            if slots[slot] is None:
                return
            slots[before] = slots[slot]
        index = context.index(self._pattern.source)
        step = index.plans.get(self)
        if step is None:
            step = index.plans[self] = self._build(index)
        width = len(self.columns)
        for _ in step(slots, set(), context):
            if slots[width] and not self._holds(slots, context):
                continue
            yield tuple(slots[:width])

    def _holds(self, slots: MatchSlots, context: Context) -> bool:
        try:
            return all(truth(part(slots, context)) is True for part in self._compiled)
        except EvaluationError as error:
            context.skip(error)
            return False

    # --- what is known before any graph is ---

    def _split(self, condition: ex.Expression | None) -> tuple[dict[str, tuple[str, ...]], list[ex.Expression]]:
        """The labels each node must have, from the pattern and the condition, and what is left of the condition."""
        labels: dict[str, dict[str, None]] = {}
        for path in self._pattern.paths:
            for node in path.nodes:
                labels.setdefault(node.variable, {}).update(dict.fromkeys(node.labels))
        parts = []
        for part in conjuncts(condition):
            match part:
                case ex.HasLabels(ex.Variable(name), wanted) if name in labels and name not in self._given:
                    labels[name].update(dict.fromkeys(wanted))
                case _:
                    parts.append(part)
        return {name: tuple(wanted) for name, wanted in labels.items()}, parts

    # --- steps over one graph ---

    def _build(self, index: GraphIndex) -> MatchStep:
        """Decide the order, then fold it into one step, from the last to the first."""
        moves = Ordering(index, self._hops, self._labels, self._lookups, self._bound).moves()
        bound, unchecked = set(self._given), set(range(len(self._parts)))
        stages: list[tuple[Make, Accept | None]] = [(make, None) for make in self._meet(index)]
        first: Accept | None = None
        if stages:
            stages[-1] = (stages[-1][0], self._accept(bound, unchecked, self._own))
            stages.append((partial(unite_faces, self._faces), self._accept(bound, unchecked)))
        else:
            first = self._accept(bound, unchecked)
        unnamed = [path for path in self._pattern.paths if path.variable is not None]
        for position in range(len(moves) + 1):
            complete = [path for path in unnamed if _variables(path) <= bound]
            for path in complete:
                unnamed.remove(path)
                bound.add(path.variable or "")
                stages.append((self._assemble(path, index), self._accept(bound, unchecked)))
            if position == len(moves):
                break
            move = moves[position]
            last = not any(isinstance(later, Follow) for later in moves[position + 1 :])
            make = self._scan(move, index) if isinstance(move, Scan) else self._follow(move, last, bound, index)
            bound.update(_bound_by(move))
            stages.append((make, self._accept(bound, unchecked)))
        rest: MatchStep | None = None
        for make, accept in reversed(stages):
            rest = make(Then(accept, rest))
        return rest if rest is not None and first is None else Then(first, rest)

    def _accept(self, bound: set[str], unchecked: set[int], among: frozenset[int] | None = None) -> Accept | None:
        """The check of those parts of the condition that can be evaluated now and could not before."""
        candidates = sorted(unchecked if among is None else unchecked & among)
        ready = [position for position in candidates if self._needs[position] <= bound]
        unchecked.difference_update(ready)
        return _early_check([self._compiled[position] for position in ready], len(self.columns)) if ready else None

    def _meet(self, index: GraphIndex) -> list[Make]:
        """Return steps that look up elements bound before the match in this graph, before other steps read them."""
        makes: list[Make] = []
        for name in (name for name in self._labels if name in self._bound):
            makes.append(partial(meet_node, self._slot[name], self._labels[name], index.graph))
        for hop in self._hops:
            if hop.relationship.variable in self._bound:
                makes.append(partial(meet_relationships, self._slot[hop.relationship.variable], index.graph))
        return makes

    def _assemble(self, path: PathPattern, index: GraphIndex) -> Make:
        name = path.variable or ""
        nodes = [self._slot[node.variable] for node in path.nodes]
        relationships = [self._slot[one.variable] for one in path.relationships]
        given = name in self._given
        return lambda then: assemble(self._slot[name], nodes, relationships, given, index.graph, then)

    def _scan(self, move: Scan, index: GraphIndex) -> Make:
        labels = self._labels[move.variable]
        candidates: Candidates
        if move.lookup is not None:
            value = compile_expression(move.lookup.value, self._names)
            candidates = looked_up(move.lookup, value, labels, index)
        elif move.beside is not None:
            hop = move.beside
            direction = hop.relationship.direction
            towards = direction if hop.left == move.variable else _REVERSED[direction]
            beside = [node for node in index.ends(hop.relationship.types, towards) if has_labels(node, labels)]
            candidates = lambda slots, context: beside  # noqa: E731
        else:
            labelled = index.nodes(labels)
            candidates = lambda slots, context: labelled  # noqa: E731
        return lambda then: scan(self._slot[move.variable], candidates, then)

    def _follow(self, move: Follow, last: bool, bound: set[str], index: GraphIndex) -> Make:
        hop, graph = move.hop, index.graph
        relationship, slot = hop.relationship, self._slot[hop.relationship.variable]
        types, direction, length = relationship.types, relationship.direction, relationship.length
        where = self._where(hop)
        left = End(self._slot[hop.left], hop.left in bound, self._labels[hop.left])
        right = End(self._slot[hop.right], hop.right in bound or hop.right == hop.left, self._labels[hop.right])
        if move.given and length is None:
            return lambda then: given_relationship(left, slot, right, relationship, graph, where, then)
        if move.given and length is not None and hop.kind == "trail":
            return lambda then: given_trail(left, slot, right, relationship, graph, where, then)
        origin, target = (left, right) if move.from_left else (right, left)
        towards = direction if move.from_left else _REVERSED[direction]
        if length is not None or hop.kind != "trail":
            adjacency = index.adjacency(types, towards)
            walk = HopWalk(origin.slot, slot, target, adjacency, length, not move.from_left, graph, where)
            every = hop.kind == "all-shortest"
            if hop.fulfils is not None:
                path_slot = None if hop.path is None else self._slot[hop.path]
                condition = PathCondition.of(hop.fulfils, hop.path, self._names)
                back = index.adjacency(types, _REVERSED[towards])
                return ConditionedSearch(walk, back, left.slot, path_slot, every, condition).step
            if hop.kind != "trail":
                return partial(shortest, walk, every, not hop.needs)
            if relationship.once:
                return partial(expand_ends, walk, direction == "both")
            return partial(expand_trails, walk)
        if move.into:
            forward, backward = index.adjacency(types, direction), index.adjacency(types, _REVERSED[direction])
            return lambda then: expand_into(left.slot, slot, right.slot, forward, backward, where, then)
        steps = index.adjacency(types, towards, target.labels)
        return lambda then: expand(origin.slot, slot, target.slot, steps, where, last, then)

    def _where(self, hop: JoinHop) -> Where | None:
        """The condition on each single relationship of a hop, as a test that already knows the rest of the row."""
        if hop.relationship.where is None:
            return None
        condition = compile_expression(hop.relationship.where, (*self._names, hop.relationship.variable))

        def where(slots: MatchSlots, context: Context) -> RelationshipTest:
            known = tuple(slots)

            def allowed(relationship: Relationship) -> bool:
                try:
                    return truth(condition((*known, relationship), context)) is True
                except EvaluationError as error:
                    context.skip(error)
                    return False

            return allowed

        return where


def _variables(path: PathPattern) -> set[str]:
    return {node.variable for node in path.nodes} | {one.variable for one in path.relationships}


def _bound_by(move: Move) -> set[str]:
    if isinstance(move, Scan):
        return {move.variable}
    return {move.hop.left, move.hop.relationship.variable, move.hop.right}


def _early_check(parts: Sequence[ExpressionEvaluator], doubt: int) -> Accept:
    """Return a check whether parts of the condition are true; a part that fails to evaluate is decided when all is
    bound."""

    def accept(slots: MatchSlots, context: Context) -> bool:
        for part in parts:
            try:
                value = part(slots, context)
            except LimitExceeded:
                raise
            except EvaluationError:
                slots[doubt] = True
                continue
            if value is not True:
                if value is False or value is None:
                    return False
                slots[doubt] = True
        return True

    return accept


def looked_up(lookup: Lookup, value: ExpressionEvaluator, labels: tuple[str, ...], index: GraphIndex) -> Candidates:
    """Return the candidate nodes of a lookup: at least all those for which its condition is true."""

    def having(wanted: Value) -> Sequence[Node]:
        match lookup.key:
            case None:
                node = index.graph.nodes.get(wanted.id) if isinstance(wanted, Node) else None
            case "id()":
                node = index.graph.nodes.get(wanted) if isinstance(wanted, int | float | str) else None  # type: ignore[arg-type]
            case key:
                return index.nodes_by_property(labels, key).get(identity_key(wanted), NO_NODES)
        return (node,) if node is not None and has_labels(node, labels) else NO_NODES

    def candidates(slots: MatchSlots, context: Context) -> Sequence[Node]:
        try:
            wanted = value(slots, context)
        except LimitExceeded:
            raise
        except EvaluationError:
            return index.nodes(labels)
        if wanted is None:
            return NO_NODES
        if not lookup.many:
            return having(wanted)
        if not isinstance(wanted, list):
            return index.nodes(labels)
        distinct = {identity_key(item): item for item in wanted if item is not None}
        return [node for item in distinct.values() for node in having(item)]

    return candidates
