"""A conjunction as the numbers that the log matcher's kernels read (`kernels/log_layout`): tests, chains and steps.

A variable of one pattern is a leaf: kept in the entry, never indexed. A variable of several is a side of each: it has a
row per value with one chain per incidence. A pattern with one side and no leaf is a bit of it and never a step. Parts
that share no variable are tied together by one more that no match shows and whose only value is 0, so that every
pattern has a side and every conjunction is connected.

Steps are ordered by what they cannot make worse: patterns with all bound first, then those that bind variables of
other patterns, and those that only multiply (leaves) last. Where several patterns bind the same variable next, they
are a group: one is walked and the others close, and the kernel picks the one with the shortest chain.

Invariant: a plan is read, never written, once it is made (but for L_LAST); all addresses in it count from the desk's
beginning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from anabranch.delta.batch import Ids
from anabranch.delta.kernels import log_layout as lay
from anabranch.delta.patterns import KIND, Conjunction, FactPattern, Fixed, Free
from anabranch.errors import InternalError


@dataclass(frozen=True, slots=True)
class LogPlan:
    desk: Ids
    """Scalars and scratch, all 0, then the plan."""
    bounds: npt.NDArray[np.float64]
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

    @property
    def side_variables(self) -> frozenset[int]:
        return frozenset(variable for variable, _ in self.sides)

    @property
    def is_bit(self) -> bool:
        return len(self.sides) == 1 and not self.leaves


@dataclass(slots=True)
class _Words:
    """The plan while it is written."""

    words: list[int] = field(default_factory=list)

    def add(self, words: Iterable[int]) -> int:
        """Append, and say where."""
        start = len(self.words)
        self.words.extend(words)
        return start


def plan_of(conjunction: Conjunction, *, linked: bool) -> LogPlan:
    """`linked`: entries leave in any order, so that chains are linked in both directions."""
    _check(conjunction)
    patterns = conjunction.patterns
    shapes = _shapes(conjunction)
    incidences = _incidences(shapes, conjunction.variables + 1)
    words = _Words([0] * (lay.L_RECORDS + lay.PATTERN_SIZE * len(patterns)))
    bounds: list[float] = []
    for number, (pattern, shape) in enumerate(zip(patterns, shapes, strict=True)):
        tests = [word for test in _tests(pattern, bounds) for word in test]
        record = lay.L_RECORDS + number * lay.PATTERN_SIZE
        put = words.words
        put[record + lay.P_TESTS] = words.add(tests)
        put[record + lay.P_TESTS_END] = len(put)
        put[record + lay.P_SIDES] = len(shape.sides)
        put[record + lay.P_LEAVES] = len(shape.leaves)
        put[record + lay.P_BIT] = int(shape.is_bit)
        for side, (variable, column) in enumerate(shape.sides):
            put[record + lay.P_COLUMN + side] = column
            put[record + lay.P_VARIABLE + side] = variable
            put[record + lay.P_HEAD + side] = lay.R_HEADS + incidences[variable].index(number)
        for leaf, (variable, column) in enumerate(shape.leaves):
            put[record + lay.P_LEAF_COLUMN + leaf] = column
            put[record + lay.P_LEAF_VARIABLE + leaf] = variable
        _add_steps(words, record, number, shapes, incidences, conjunction.different)
    _add_tables(words, conjunction, shapes, incidences)
    _add_dispatch(words, patterns, shapes, min(KIND, conjunction.width - 1))
    content = max(len(shape.sides) + len(shape.leaves) for shape in shapes)
    most_sides = max(len(shape.sides) for shape in shapes)
    entry_size = lay.E_SIDES + content + (most_sides if linked else 0)
    row_size = lay.R_HEADS + max(map(len, incidences))
    put = words.words
    put[lay.L_WIDTH] = conjunction.width
    put[lay.L_KIND] = min(KIND, conjunction.width - 1)
    put[lay.L_PATTERNS] = len(patterns)
    put[lay.L_VARIABLES] = conjunction.variables
    put[lay.L_ENTRY] = entry_size
    put[lay.L_ROW] = row_size
    put[lay.L_NEWER] = lay.E_SIDES + content if linked else 0
    hidden = conjunction.variables
    return LogPlan(
        np.array(put, np.int64),
        np.array(bounds, np.float64),
        entry_size,
        row_size,
        tuple(n for n, shape in enumerate(shapes) if shape.leaves and shape.side_variables == {hidden}),
    )


def _check(conjunction: Conjunction) -> None:
    if not 1 <= len(conjunction.patterns) <= lay.MOST_PATTERNS:
        raise InternalError(f"a matcher takes 1 to {lay.MOST_PATTERNS} patterns, not {len(conjunction.patterns)}")
    if not 1 <= conjunction.width <= lay.MOST_COLUMNS:
        raise InternalError(f"a fact has 1 to {lay.MOST_COLUMNS} columns, not {conjunction.width}")
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
        shapes.append(_Shape(sides, leaves, tests))
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
                yield lay.TEST_ID, column, identifier
            case Free(variable) if variable in first:
                yield lay.TEST_SAME, column, first[variable]
            case Free(variable):
                first[variable] = column
    for limits in pattern.ranges:
        bounds.extend((limits.low, limits.high))
        yield lay.TEST_RANGE, limits.column, len(bounds) - 2


def _incidences(shapes: Sequence[_Shape], variables: int) -> list[list[int]]:
    """Per variable the patterns that have it as a side."""
    return [[n for n, shape in enumerate(shapes) if variable in shape.side_variables] for variable in range(variables)]


def _add_tables(
    words: _Words, conjunction: Conjunction, shapes: Sequence[_Shape], incidences: Sequence[Sequence[int]]
) -> None:
    put = words.words
    spans = []
    for variable, patterns in enumerate(incidences):
        start = len(put)
        for index, number in enumerate(patterns):
            side = [one for one, _ in shapes[number].sides].index(variable)
            words.add((lay.R_HEADS + index, number, side))
        spans += [start, len(put)]
    put[lay.L_VARIABLE_TABLE] = words.add(spans)
    homes = [(0, 0, 0)] * conjunction.variables
    for number, shape in enumerate(shapes):
        for side, (variable, _) in enumerate(shape.sides):
            if variable < conjunction.variables:
                homes[variable] = (number, lay.E_SIDES + side, 1)
        for leaf, (variable, _) in enumerate(shape.leaves):
            homes[variable] = (number, lay.E_SIDES + len(shape.sides) + leaf, 0)
    put[lay.L_HOMES] = words.add(word for home in homes for word in home)
    put[lay.L_BITS] = len(put)
    for number, shape in enumerate(shapes):
        if shape.is_bit:
            variable = shape.sides[0][0]
            words.add((number, variable, lay.R_HEADS + incidences[variable].index(number)))
    put[lay.L_BITS_END] = len(put)


# --- dispatch ---


def _add_dispatch(words: _Words, patterns: Sequence[FactPattern], shapes: Sequence[_Shape], column: int) -> None:
    """Lists of patterns by kind, reached by one multiplication: the multiplier is one under which no two kinds meet."""
    kinds: dict[int, list[int]] = {}
    for pattern in patterns:
        place = pattern.places[column]
        if isinstance(place, Fixed):
            kinds[place.id] = []
    for number, pattern in enumerate(patterns):
        match pattern.places[column]:
            case Fixed(identifier):
                kinds[identifier].append(number)
            case _:
                for numbers in kinds.values():
                    numbers.append(number)
    others = [n for n, pattern in enumerate(patterns) if not isinstance(pattern.places[column], Fixed)]

    def listed(numbers: Sequence[int]) -> int:
        sides = sum(len(shapes[number].sides) for number in numbers)
        exact = not any(patterns[number].ranges for number in numbers)  # numbers of ids may come later
        return words.add((len(numbers), sides, int(exact), *numbers))

    words.words[lay.L_DEFAULT] = default = listed(others)
    multiplier, bits = _multiplier(list(kinds))
    words.words[lay.L_MULTIPLIER] = multiplier
    words.words[lay.L_SHIFT] = 64 - bits
    lists = {_slot(kind, multiplier, bits): (kind, listed(numbers)) for kind, numbers in kinds.items()}
    slots = (lists.get(slot, (0, default)) for slot in range(1 << bits))
    words.words[lay.L_DISPATCH] = words.add(word for pair in slots for word in pair)


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


def _add_steps(
    words: _Words,
    record: int,
    seed: int,
    shapes: Sequence[_Shape],
    incidences: Sequence[Sequence[int]],
    different: Sequence[tuple[int, int]],
) -> None:
    """The seed's own step, and after it one order of all other patterns that are no bits."""
    put = words.words
    bound: dict[int, int] = {}
    put[record + lay.P_SEED] = words.add(_step(words, seed, shapes, bound, different))
    bound = dict.fromkeys(_bound_by(shapes[seed]), 0)
    chains: dict[tuple[int, ...], None] = {}
    left = [number for number, shape in enumerate(shapes) if number != seed and not shape.is_bit]
    addresses: list[int] = []
    while left:
        group = _next(left, shapes, set(bound))
        steps: list[list[int]] = []
        for first in group:
            met = dict(bound)
            for number in (first, *(other for other in group if other != first)):
                steps.append(_step(words, number, shapes, met, different, len(group)))
                met |= dict.fromkeys(_bound_by(shapes[number]) - met.keys(), len(addresses) + 1)
            chains |= dict.fromkeys(_chains(first, shapes, incidences, seed))
        addresses += [words.add(word for step in steps for word in step)] + [0] * (len(group) - 1)
        for number in group:
            bound |= dict.fromkeys(_bound_by(shapes[number]) - bound.keys(), len(addresses))
        left = [number for number in left if number not in group]
    put[record + lay.P_STEPS] = words.add(addresses)
    put[record + lay.P_DEPTHS] = len(addresses)
    put[record + lay.P_LOOK] = words.add(word for chain in chains for word in chain)
    put[record + lay.P_LOOK_END] = len(put)


def _chains(
    number: int, shapes: Sequence[_Shape], incidences: Sequence[Sequence[int]], seed: int
) -> Iterable[tuple[int, ...]]:
    """The chains of a pattern that begin at the rows of a seed."""
    own = [variable for variable, _ in shapes[seed].sides]
    sides = [variable for variable, _ in shapes[number].sides]
    for side, variable in enumerate(sides):
        if variable in own:
            other = next((one for one, new in enumerate(sides) if new not in own), -1)
            yield own.index(variable), lay.R_HEADS + incidences[variable].index(number), number, side, other


def _bound_by(shape: _Shape) -> set[int]:
    return {variable for variable, _ in shape.sides + shape.leaves}


def _next(left: Sequence[int], shapes: Sequence[_Shape], bound: set[int]) -> list[int]:
    """The patterns to go on with: one, or a group that binds the same variable."""
    within = [number for number in left if shapes[number].side_variables <= bound]
    closing = [n for n in within if not shapes[n].leaves] or [n for n in within if len(shapes[n].sides) > 1]
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


def _step(
    words: _Words,
    number: int,
    shapes: Sequence[_Shape],
    bound: Mapping[int, int],
    different: Sequence[tuple[int, int]],
    group: int = 1,
) -> list[int]:
    """One step, not yet in the plan; the pairs that it tests are, since steps of a group stand next to each other."""
    shape = shapes[number]
    after = bound.keys() | _bound_by(shape)
    given = [side for side, (variable, _) in enumerate(shape.sides) if variable in bound]
    # What was bound first changes last: its chain is near already.
    given.sort(key=lambda side: bound[shape.sides[side][0]])
    new = [side for side, (variable, _) in enumerate(shape.sides) if variable not in bound]
    step = [0] * lay.STEP_SIZE
    step[lay.T_PATTERN] = number
    step[lay.T_GROUP] = group
    step[lay.T_UNIQUE] = int(not new and not shape.leaves)
    step[lay.T_BOUND] = len(given)
    step[lay.T_BOUND_SIDES : lay.T_BOUND_SIDES + len(given)] = given
    step[lay.T_NEW] = len(new)
    step[lay.T_NEW_SIDES : lay.T_NEW_SIDES + len(new)] = new
    pairs = [pair for pair in different if set(pair) <= after and not set(pair) <= bound.keys()]
    step[lay.T_DIFFERENT] = words.add(variable for pair in pairs for variable in pair)
    step[lay.T_DIFFERENT_END] = len(words.words)
    return step
