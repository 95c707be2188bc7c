"""Evaluates a conjunction over the whole content of a window at once: for windows of which a slide replaces most.

The kernel reads each fact once, lets patterns shrink each other and walks the rest (SPECTRA section 5 prunes dangling
facts in the same spirit; acyclic joins by semi-joins are Yannakakis's, VLDB 1981).

Law: the answer is the set of assignments to the variables for which every pattern has a fact, and no pair in
`different` has equal values; each once, in no particular order. Facts may repeat; copies have no effect.

State: none but scratch memory for the next window. Work: O(facts + matches x patterns) where no cycle is closed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random

import numpy as np
import numpy.typing as npt

from anabranch.delta.batch import PIECE, Ids, Mask
from anabranch.delta.kernels.semijoin import window_matches
from anabranch.delta.kernels.semijoin_plan import PART, PATTERN, KindHash, SemijoinPlan
from anabranch.delta.kernels.semijoin_walk import TOO_MANY
from anabranch.delta.patterns import KIND, BudgetExceeded, Conjunction, FactPattern, Fixed, Free
from anabranch.errors import InternalError

FactNumbers = npt.NDArray[np.float64]

_NO_NUMBERS: FactNumbers = np.empty(0, np.float64)
_UNLIMITED = 1 << 62
_KEPT_CELLS = 1 << 23  # of scratch memory; a larger one is allocated again for each window
_BITS = 3  # of a hash: this many more each time that a part is split
_MOST_BITS = 18  # then a part has about one value
_CHUNK = 8192  # facts per chunk of the split: they fit into a core's own cache


def evaluate(
    conjunction: Conjunction,
    facts: Ids,
    numbers: FactNumbers | None = None,
    *,
    max_matches: int | None = None,
) -> Ids:
    """Return all matches over the set of facts, one column per variable."""
    return _remembered(conjunction).evaluate(facts, numbers, max_matches=max_matches)


@dataclass(frozen=True, slots=True)
class _Parting:
    """Splits facts by the hash of a variable's value. `fitting` has for each pattern a mask of the facts that fit its
    constants, and the column of the variable; None: each part needs all facts of the pattern."""

    variable: int
    whole: Ids
    fitting: tuple[tuple[Mask, int | None], ...]

    @classmethod
    def of(cls, conjunction: Conjunction, facts: Ids) -> _Parting:
        masks = []
        values = [0] * conjunction.variables
        for pattern in conjunction.patterns:
            mask = np.ones(len(facts), np.bool_)
            for column, place in enumerate(pattern.places):
                if isinstance(place, Fixed):
                    mask &= facts[:, column] == place.id
            masks.append(mask)
            for column, place in enumerate(pattern.places):
                if isinstance(place, Free):
                    values[place.variable] = max(values[place.variable], len(np.unique(facts[mask, column])))
        variable = values.index(max(values))
        columns = [_column_of(pattern, variable) for pattern in conjunction.patterns]
        return cls(variable, facts, tuple(zip(masks, columns, strict=True)))

    def facts(self, bits: int, number: int) -> Ids:
        wanted = np.zeros(len(self.whole), np.bool_)
        for mask, column in self.fitting:
            wanted |= mask if column is None else mask & (_hashed(self.whole[:, column], bits) == number)
        return np.ascontiguousarray(self.whole[wanted])


def _column_of(pattern: FactPattern, variable: int) -> int | None:
    return next((at for at, place in enumerate(pattern.places) if place == Free(variable)), None)


def _hashed(ids: Ids, bits: int) -> npt.NDArray[np.uint64]:
    """Return this many bits of a hash of each id."""
    mixed = ids.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return mixed >> np.uint64(64 - bits) if bits else np.zeros(len(ids), np.uint64)


class WindowEvaluation:
    """A conjunction prepared for evaluation over one window after the other."""

    def __init__(self, conjunction: Conjunction) -> None:
        self._conjunction = conjunction
        kinds = list(dict.fromkeys(kind for pattern in conjunction.patterns if (kind := _kind(pattern)) is not None))
        self._kinds = _kinds_of(kinds, None in map(_kind, conjunction.patterns))
        self._plan = _plan_of(conjunction, kinds)
        self._buckets = np.empty((len(kinds) + 1, _CHUNK), np.int32)
        self._arena = np.empty(0, np.int64)

    def evaluate(self, facts: Ids, numbers: FactNumbers | None = None, *, max_matches: int | None = None) -> Ids:
        return self.windows(facts, _whole(facts), numbers, max_matches=max_matches)[0]

    def windows(
        self, facts: Ids, spans: Ids, numbers: FactNumbers | None = None, *, max_matches: int | None = None
    ) -> tuple[Ids, Ids]:
        """Return the matches of several windows, one window after the other, and where those of each end. Window i has
        the facts from place `spans[i, 0]` to `spans[i, 1]`; `max_matches` holds for each."""
        numbers = _NO_NUMBERS if numbers is None else numbers
        limit = _UNLIMITED if max_matches is None else max_matches
        if len(spans) and not (spans[:, 0].min() >= 0 and spans[:, 1].max() <= len(facts)):
            raise InternalError("a window has facts that are not there")
        status, matches, ends, arena = window_matches(
            _plain(facts), spans, numbers, self._kinds, self._plan, self._buckets, self._arena, limit
        )
        if len(arena) <= _KEPT_CELLS:
            self._arena = arena
        if status == TOO_MANY:
            raise BudgetExceeded("matches", limit)
        return matches, ends

    def pieces(
        self, facts: Ids, numbers: FactNumbers | None = None, *, max_matches: int | None = None
    ) -> Iterator[Ids]:
        """Yield the same matches in one or more pieces of at most PIECE rows, unless one value of a variable has more.

        Where there are more matches, facts are split by a hash of the variable with the most values: a match belongs to
        the part of its value.
        Work: O(facts) more for each part."""
        left = _UNLIMITED if max_matches is None else max_matches
        parting: _Parting | None = None
        waiting: list[tuple[int, int]] = [(0, 0)]
        while waiting:
            bits, number = waiting.pop()
            some = facts if parting is None else parting.facts(bits, number)
            limit = left if bits >= _MOST_BITS else min(left, PIECE)
            try:
                found = self.evaluate(some, numbers, max_matches=limit)
            except BudgetExceeded:
                if limit == left:
                    raise BudgetExceeded("matches", left if max_matches is None else max_matches) from None
                parting = parting or _Parting.of(self._conjunction, facts)
                waiting += [(bits + _BITS, (number << _BITS) + more) for more in range(1 << _BITS)]
                continue
            if parting is not None:
                found = found[_hashed(found[:, parting.variable], bits) == number]
            left -= len(found)
            yield found


def _whole(facts: Ids) -> Ids:
    return np.array([[0, len(facts)]], np.int64)


def _plain(facts: Ids) -> Ids:
    """Return the facts in the layout of the compiled kernel: a read-only array would cause a second compilation."""
    return facts if facts.flags.carray and facts.dtype == np.int64 else np.require(facts, np.int64, ["C", "W", "A"])


@lru_cache(maxsize=64)
def _remembered(conjunction: Conjunction) -> WindowEvaluation:
    return WindowEvaluation(conjunction)


# --- the plan of the kernel -----------------------------------------------------------------------------------------


def _plan_of(conjunction: Conjunction, kinds: Sequence[int]) -> SemijoinPlan:
    """Return the conjunction as arrays, with groups numbered in the order of these kinds."""
    uses = [0] * conjunction.variables
    for pattern in conjunction.patterns:
        for variable in pattern.variables:
            uses[variable] += 1
    join_variables = [variable for variable, count in enumerate(uses) if count > 1]
    rows: list[tuple[int, ...]] = []
    fixed: list[tuple[int, int]] = []
    equal: list[tuple[int, int]] = []
    ranges: list[int] = []
    bounds: list[tuple[float, float]] = []
    parts: list[tuple[int, int, int]] = []
    for pattern in conjunction.patterns:
        kind = _kind(pattern)
        group = 0 if kind is None else kinds.index(kind) + 1
        begins = (group, len(fixed), len(equal), len(ranges), len(parts))
        first: dict[int, int] = {}
        for column, place in enumerate(pattern.places):
            match place:
                case Fixed(wanted) if column != KIND:
                    fixed.append((column, wanted))
                case Free(variable) if variable in first:
                    equal.append((first[variable], column))
                case Free(variable):
                    first[variable] = column
        joins = [join_variables.index(variable) for variable in first if uses[variable] > 1]
        parts.extend((first[join_variables[join]], join, join_variables[join]) for join in joins)
        parts.extend((column, -1, variable) for variable, column in first.items() if uses[variable] == 1)
        rows.append((*begins, len(joins)))
        for one in pattern.ranges:
            ranges.append(one.column)
            bounds.append((one.low, one.high))
    rows.append((0, len(fixed), len(equal), len(ranges), len(parts), 0))
    return SemijoinPlan(
        patterns=np.array(rows, PATTERN),
        fixed=_matrix(fixed, 2),
        equal=_matrix(equal, 2),
        ranges=np.array(ranges, np.int64),
        bounds=np.array(bounds, np.float64).reshape(len(bounds), 2),
        parts=np.array(parts, PART),
        different=_matrix(conjunction.different, 2),
        joins=len(join_variables),
        variables=conjunction.variables,
    )


def _kind(pattern: FactPattern) -> int | None:
    place = pattern.places[KIND]
    return place.id if isinstance(place, Fixed) else None


def _kinds_of(kinds: Sequence[int], has_any: bool) -> KindHash:
    """Return a perfect hash from kinds to groups: the multiplier and the shift that give a kind its place."""
    bits = max(3, (4 * len(kinds)).bit_length())
    random = Random(0)
    while True:
        for _ in range(64):
            multiplier = random.getrandbits(64) | 1
            places = [(kind * multiplier & 0xFFFF_FFFF_FFFF_FFFF) >> (64 - bits) for kind in kinds]
            if len(set(places)) == len(kinds):
                table, groups = np.full(1 << bits, -1, np.int64), np.zeros(1 << bits, np.int32)
                for group, (place, kind) in enumerate(zip(places, kinds, strict=True), 1):
                    table[place], groups[place] = kind, group
                return KindHash(table, groups, np.uint64(multiplier), np.uint64(64 - bits), has_any)
        bits += 1


def _matrix(rows: Sequence[Sequence[int]], width: int) -> Ids:
    return np.array(rows, np.int64).reshape(len(rows), width)
