"""Plans a conjunction as the records that the log matcher's kernels read (`kernels/log_records`): tests, chains, steps.

A variable of one pattern is a leaf: kept in the entry, never indexed. A variable of several is a side of each: it has a
row per value with one chain per incidence. A pattern with one side and no leaf is a bit of it and never a step. Parts
that share no variable are connected by one more variable, which no match shows and whose only value is 0, so that every
pattern has a side and every conjunction is connected.

Steps are ordered by how little they can multiply matches: patterns with all variables bound first, then those that bind
variables of other patterns, and those that only multiply (leaves) last. Where several patterns bind the same variable
next, they are a group: one is walked and the others close, and the kernel picks the one with the shortest chain.

Invariant: a plan is never written to once it is made (except for the log's capacity).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from anabranch.delta.kernels import log_records as rec
from anabranch.delta.kernels.compiling import Record, Records
from anabranch.delta.kernels.log_records import IntakePlan, JoinPlan
from anabranch.delta.patterns import KIND, Conjunction, FactPattern, Fixed, Free, MatchTelling, RankTest
from anabranch.errors import InternalError

_HEADS, _SIDES = int(rec.HEADS), int(rec.SIDES)


@dataclass(frozen=True, slots=True)
class LogPlan:
    plans: Records
    """One record, rec.PLAN."""
    intake: IntakePlan
    walk: JoinPlan
    entry_size: int
    row_size: int
    hashed: tuple[int, ...]
    """Patterns whose facts no chain tells apart: hashed from the beginning."""


@dataclass(frozen=True, slots=True)
class _Shape:
    """One pattern: its sides and leaves as (variable, column)."""

    sides: tuple[tuple[int, int], ...]
    leaves: tuple[tuple[int, int], ...]
    tests: int
    is_single: bool

    @property
    def side_variables(self) -> frozenset[int]:
        return frozenset(variable for variable, _ in self.sides)

    @property
    def is_bit(self) -> bool:
        return len(self.sides) == 1 and not self.leaves


@dataclass(slots=True)
class _Draft:
    """The tables of a plan while they are written."""

    shapes: Sequence[_Shape]
    incidences: Sequence[Sequence[int]]
    """Per variable the patterns that have it as a side."""
    different: Sequence[tuple[int, int]]
    compared: Sequence[RankTest]
    tests: list[tuple[int, int, int]] = field(default_factory=list)
    bounds: list[float] = field(default_factory=list)
    steps: list[Record] = field(default_factory=list)
    orders: list[int] = field(default_factory=list)
    pairs: list[int] = field(default_factory=list)
    ranks: list[RankTest] = field(default_factory=list)
    looks: list[tuple[int, ...]] = field(default_factory=list)

    def head(self, variable: int, number: int) -> int:
        """The word of a variable's rows that has the newest entry of a pattern."""
        return _HEADS + self.incidences[variable].index(number)


def plan_of(conjunction: Conjunction, telling: MatchTelling, *, linked: bool) -> LogPlan:
    """The plan of a conjunction. `linked`: entries leave in any order, so that chains are linked in both directions."""
    _check(conjunction)
    patterns = conjunction.patterns
    shapes = _shapes(conjunction)
    incidences = _incidences(shapes, conjunction.variables + 1)
    draft = _Draft(shapes, incidences, conjunction.different, telling.tests, ranks=list(telling.tests))
    plans: Records = np.zeros(1, rec.PLAN)
    plan: Any = plans[0]
    for number, (pattern, shape) in enumerate(zip(patterns, shapes, strict=True)):
        record = plan["pattern"][number]
        record["tests"] = len(draft.tests)
        draft.tests.extend(_tests(pattern, draft.bounds))
        record["tests_end"] = len(draft.tests)
        record["sides"], record["leaves"], record["is_bit"] = len(shape.sides), len(shape.leaves), shape.is_bit
        for side, (variable, column) in enumerate(shape.sides):
            record["column"][side], record["variable"][side] = column, variable
            record["head"][side] = draft.head(variable, number)
        for leaf, (variable, column) in enumerate(shape.leaves):
            record["leaf_column"][leaf], record["leaf_variable"][leaf] = column, variable
        _add_steps(draft, record, number)
    bits = [(n, shape.sides[0][0], draft.head(shape.sides[0][0], n)) for n, shape in enumerate(shapes) if shape.is_bit]
    plan["bit"][: len(bits)], plan["bits"] = bits, len(bits)
    content = max(len(shape.sides) + len(shape.leaves) for shape in shapes)
    most_sides = max(len(shape.sides) for shape in shapes)
    plan["width"], plan["kind"] = conjunction.width, min(KIND, conjunction.width - 1)
    plan["patterns"], plan["told"] = len(patterns), len(telling.told)
    plan["compared"] = len(telling.tests)
    plan["is_merged"] = bool(telling.spared) or len(telling.told) < conjunction.variables
    plan["entry_size"] = entry_size = _SIDES + content + (most_sides if linked else 0)
    plan["row_size"] = row_size = _HEADS + max(map(len, draft.incidences))
    plan["newer"] = _SIDES + content if linked else 0
    dispatch, listed = _dispatch(plan, patterns, shapes)
    hidden = conjunction.variables
    return LogPlan(
        plans,
        IntakePlan(dispatch, listed, np.array(draft.tests, rec.TEST), np.array(draft.bounds, np.float64)),
        _walk(draft, conjunction.variables, telling),
        entry_size,
        row_size,
        tuple(n for n, shape in enumerate(shapes) if shape.leaves and shape.side_variables == {hidden}),
    )


def _walk(draft: _Draft, variables: int, telling: MatchTelling) -> JoinPlan:
    """The tables of a draft that joins read."""
    incidences: list[tuple[int, int, int]] = []
    shown = np.zeros(variables + 1, rec.SHOWN)
    for variable, patterns in enumerate(draft.incidences):
        shown["first"][variable] = len(incidences)
        for index, number in enumerate(patterns):
            side = [one for one, _ in draft.shapes[number].sides].index(variable)
            incidences.append((_HEADS + index, number, side))
        shown["end"][variable] = len(incidences)
    for number, shape in enumerate(draft.shapes):
        for word, (variable, _) in enumerate(shape.sides + shape.leaves):
            home = shown[variable]
            home["pattern"], home["word"], home["is_row"] = number, _SIDES + word, word < len(shape.sides)
    return JoinPlan(
        np.array(draft.steps, rec.STEP),
        np.array(draft.orders, np.int64),
        np.array(draft.pairs, np.uint64),
        np.array(incidences, rec.INCIDENCE),
        shown,
        np.array(draft.looks, rec.LOOK),
        np.array([(variable, variable in telling.spared) for variable in telling.told], rec.TOLD),
        np.array(draft.ranks, rec.RANKS),
    )


def _check(conjunction: Conjunction) -> None:
    if not 1 <= len(conjunction.patterns) <= rec.MOST_PATTERNS:
        raise InternalError(f"a matcher takes 1 to {rec.MOST_PATTERNS} patterns, not {len(conjunction.patterns)}")
    if not 1 <= conjunction.width <= rec.MOST_COLUMNS:
        raise InternalError(f"a fact has 1 to {rec.MOST_COLUMNS} columns, not {conjunction.width}")
    if any(len(pattern.places) != conjunction.width for pattern in conjunction.patterns):
        raise InternalError(f"a pattern must have {conjunction.width} places, one per column")
    met = {variable for pattern in conjunction.patterns for variable in pattern.variables}
    if met != set(range(conjunction.variables)):
        raise InternalError(f"variables must be 0 to {conjunction.variables - 1}, each in a pattern; got {sorted(met)}")


# --- patterns ---


def _shapes(conjunction: Conjunction) -> list[_Shape]:
    patterns = conjunction.patterns
    shared = {
        variable
        for variable in range(conjunction.variables)
        if sum(variable in pattern.variables for pattern in patterns) > 1
    }
    tied = _one_per_part(patterns, shared)
    shapes = []
    for number, pattern in enumerate(patterns):
        first: dict[int, int] = {}
        for column, place in enumerate(pattern.places):
            if isinstance(place, Free):
                first.setdefault(place.variable, column)
        sides = tuple(item for item in first.items() if item[0] in shared)
        if number in tied:
            sides += ((conjunction.variables, -1),)
        leaves = tuple(item for item in first.items() if item[0] not in shared)
        tests = sum(isinstance(place, Fixed) for place in pattern.places) + len(pattern.ranges)
        shapes.append(_Shape(sides, leaves, tests, pattern.is_single))
    return shapes


def _one_per_part(patterns: Sequence[FactPattern], shared: set[int]) -> set[int]:
    """The first pattern of each part that shares no variable with the rest; none when there is one part with sides."""
    left = set(range(len(patterns)))
    firsts: set[int] = set()
    while left:
        first = min(left)
        firsts.add(first)
        part, frontier = {first}, {first}
        while frontier:
            reached = {variable for number in frontier for variable in patterns[number].variables} & shared
            frontier = {number for number in left - part if reached & set(patterns[number].variables)}
            part |= frontier
        left -= part
    alone = len(firsts) == 1 and bool(shared)
    return set() if alone else firsts


def _tests(pattern: FactPattern, bounds: list[float]) -> Iterable[tuple[int, int, int]]:
    first: dict[int, int] = {}
    for column, place in enumerate(pattern.places):
        match place:
            case Fixed(identifier):
                yield rec.TEST_ID, column, identifier
            case Free(variable) if variable in first:
                yield rec.TEST_SAME, column, first[variable]
            case Free(variable):
                first[variable] = column
    for limits in pattern.ranges:
        bounds.extend((limits.low, limits.high))
        yield rec.TEST_RANGE, limits.column, len(bounds) - 2


def _incidences(shapes: Sequence[_Shape], variables: int) -> list[list[int]]:
    """Per variable the patterns that have it as a side."""
    return [[n for n, shape in enumerate(shapes) if variable in shape.side_variables] for variable in range(variables)]


# --- dispatch ---


def _dispatch(
    plan: Record, patterns: Sequence[FactPattern], shapes: Sequence[_Shape]
) -> tuple[Records, npt.NDArray[np.uint64]]:
    """Patterns by kind, reached by one multiplication: the multiplier is one under which no two kinds meet."""
    places = [pattern.places[int(plan["kind"])] for pattern in patterns]
    kinds = list(dict.fromkeys(place.id for place in places if isinstance(place, Fixed)))
    listed: list[int] = []

    def fitting(kind: int | None) -> tuple[int, ...]:
        numbers = [n for n, place in enumerate(places) if not isinstance(place, Fixed) or place.id == kind]
        sides = sum(len(shapes[number].sides) for number in numbers)
        exact = not any(patterns[number].ranges for number in numbers)  # numbers of ids may come later
        listed.extend(numbers)
        return kind or 0, int(exact), sides, len(listed) - len(numbers), len(numbers)

    others = fitting(None)
    multiplier, bits = _multiplier(kinds)
    slots = [others] * ((1 << bits) + 1)
    for kind in kinds:
        slots[_slot(kind, multiplier, bits)] = fitting(kind)
    plan["multiplier"], plan["shift"] = multiplier, 64 - bits
    return np.array(slots, rec.FITTING), np.array(listed, np.uint64)


def _slot(kind: int, multiplier: int, bits: int) -> int:
    return ((kind * multiplier) & ((1 << 64) - 1)) >> (64 - bits)


def _multiplier(kinds: Sequence[int]) -> tuple[int, int]:
    bits = 1
    multiplier = 0x1E3779B97F4A7C15
    while True:
        for _ in range(64):
            if len({_slot(kind, multiplier, bits) for kind in kinds}) == len(kinds):
                return multiplier, bits
            multiplier = (multiplier * 0x5851F42D4C957F2D + 0x14057B7EF767814F) & ((1 << 62) - 1) | 1
        bits += 1


# --- steps ---


def _add_steps(draft: _Draft, record: Record, seed: int) -> None:
    """The seed's own step, and after it one order of all other patterns that are no bits."""
    shapes = draft.shapes
    record["seed_step"], record["steps"] = len(draft.steps), len(draft.orders)
    draft.steps.append(_step(draft, seed, {}))
    bound = dict.fromkeys(_bound_by(shapes[seed]), 0)
    chains: dict[tuple[int, ...], None] = {}
    left = [number for number, shape in enumerate(shapes) if number != seed and not shape.is_bit]
    depths = 0
    while left:
        group = _next(left, shapes, set(bound))
        draft.orders += [len(draft.steps)] + [-1] * (len(group) - 1)
        for first in group:
            met = dict(bound)
            for number in (first, *(other for other in group if other != first)):
                draft.steps.append(_step(draft, number, met, len(group)))
                met |= dict.fromkeys(_bound_by(shapes[number]) - met.keys(), depths + 1)
            chains |= dict.fromkeys(_chains(draft, first, seed))
        depths += len(group)
        for number in group:
            bound |= dict.fromkeys(_bound_by(shapes[number]) - bound.keys(), depths)
        left = [number for number in left if number not in group]
    record["depths"], record["looks"] = depths, len(draft.looks)
    draft.looks += chains
    record["looks_end"] = len(draft.looks)


def _chains(draft: _Draft, number: int, seed: int) -> Iterable[tuple[int, ...]]:
    """The chains of a pattern that begin at the rows of a seed."""
    own = [variable for variable, _ in draft.shapes[seed].sides]
    sides = [variable for variable, _ in draft.shapes[number].sides]
    for side, variable in enumerate(sides):
        if variable in own:
            other = next((one for one, new in enumerate(sides) if new not in own), -1)
            yield own.index(variable), draft.head(variable, number), number, side, other


def _bound_by(shape: _Shape) -> set[int]:
    return {variable for variable, _ in shape.sides + shape.leaves}


def _next(left: Sequence[int], shapes: Sequence[_Shape], bound: set[int]) -> list[int]:
    """The patterns to go on with: one, or a group that binds the same variable."""
    within = [number for number in left if shapes[number].side_variables <= bound]
    closing = [n for n in within if not shapes[n].leaves] or [n for n in within if shapes[n].is_single]
    closing = closing or [n for n in within if len(shapes[n].sides) > 1]
    if closing:
        return closing[:1]
    reachable = [n for n in left if shapes[n].side_variables & bound and n not in within]
    groups: dict[frozenset[int], list[int]] = {}
    for number in reachable:
        groups.setdefault(shapes[number].side_variables - bound, []).append(number)
    if not groups:
        return within[:1]

    def worth(item: tuple[frozenset[int], list[int]]) -> tuple[int, int, int, int]:
        new, numbers = item
        return len(numbers), -len(new), max(shapes[n].tests for n in numbers), -numbers[0]

    new, numbers = max(groups.items(), key=worth)
    if len(new) > 1:
        return [max(numbers, key=lambda number: shapes[number].tests)]
    # Those without leaves close by looking up one fact: they come before the ones that multiply.
    return sorted(numbers, key=lambda number: (len(shapes[number].leaves), number))


def _step(draft: _Draft, number: int, bound: Mapping[int, int], group: int = 1) -> Record:
    """The step that binds a pattern when some variables are bound; the pairs that it tests go into the draft."""
    shape = draft.shapes[number]
    after = bound.keys() | _bound_by(shape)
    given = [side for side, (variable, _) in enumerate(shape.sides) if variable in bound]
    # What was bound first changes last: its chain is near already.
    given.sort(key=lambda side: bound[shape.sides[side][0]])
    new = [side for side, (variable, _) in enumerate(shape.sides) if variable not in bound]
    pairs = [pair for pair in draft.different if set(pair) <= after and not set(pair) <= bound.keys()]
    step: Any = np.zeros(1, rec.STEP)[0]
    step["pattern"], step["group"], step["is_unique"] = number, group, not new and not shape.leaves
    step["is_single"] = shape.is_single and not new and len(shape.sides) == 1 and bool(shape.leaves)
    step["bound"], step["bound_sides"][: len(given)] = len(given), given
    step["new"], step["new_sides"][: len(new)] = len(new), new
    step["pairs"], step["pairs_end"] = len(draft.pairs), len(draft.pairs) + 2 * len(pairs)
    draft.pairs.extend(variable for pair in pairs for variable in pair)
    ranks = [one for one in draft.compared if {one.low, one.high} <= after and not {one.low, one.high} <= bound.keys()]
    step["ranks"], step["ranks_end"] = len(draft.ranks), len(draft.ranks) + len(ranks)
    draft.ranks.extend(ranks)
    return step
