"""Patterns of a matcher as plain numbers: facts that must exist together.

A fact is a row of ids. A fact of RDF triples has three columns (subject, predicate, object); one of property graphs has
five (an end, the number of the pattern, the other end, the relationship, its content). Matchers dispatch on column 1,
which separates facts best.

Invariant: variables are numbered from 0 without gaps and each stands in at least one pattern. A match has one column
per variable, in the order of the numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from anabranch.delta.batch import Batch, Ids

KIND = 1
"""The column on which matchers dispatch."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """An id that must stand at this place."""

    id: int


@dataclass(frozen=True, slots=True)
class Free:
    """A variable: within one match, the same number stands for the same id."""

    variable: int


Place: TypeAlias = Fixed | Free | None
"""None: any id."""


@dataclass(frozen=True, slots=True)
class Range:
    """The range of the number of the id in a column, bounds included. Numbers are rounded to floats, which keeps their
    order but may make two numbers equal: the caller must test the resulting rows again. An id that is no number (NaN)
    lies in no range."""

    column: int
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class FactPattern:
    """A fact of a match. `is_single`: at a time, at most one fact fits it for given values of the variables that it
    shares with other patterns."""

    places: tuple[Place, ...]
    ranges: tuple[Range, ...] = ()
    is_single: bool = False

    @property
    def variables(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(place.variable for place in self.places if isinstance(place, Free)))


@dataclass(frozen=True, slots=True)
class Conjunction:
    """Facts of `width` columns that must exist together. `different` are pairs of variables with different values: the
    relationships of one match. The patterns are connected by shared variables; matches of unconnected parts are joined
    by the caller."""

    width: int
    patterns: tuple[FactPattern, ...]
    variables: int
    different: tuple[tuple[int, int], ...] = ()


class RankTest(NamedTuple):
    """A comparison of two variables whose values are ranks of numbers: the one of `low` is below that of `high`, or, if
    `or_equal`, the same. A match with null fails; one with a value that is unranked is left to the caller."""

    low: int
    high: int
    or_equal: bool


class MatchTelling(NamedTuple):
    """What a matcher tells of a match: the variables `told`, in this order. Matches that look the same and are found
    one after the other are told once, with their number as the weight. Where all `tests` of ranks decide, a match that
    fails is not told, and 0 stands in place of the variables `spared`, since only the tests read them."""

    told: tuple[int, ...]
    tests: tuple[RankTest, ...] = ()
    spared: frozenset[int] = frozenset()


class Changes(NamedTuple):
    """The changes of several slides, one after the other: those of slide i are `batch[ends[i - 1] : ends[i]]`."""

    batch: Batch
    ends: Ids

    def slides(self) -> Iterator[Batch]:
        """Yield the changes of each slide."""
        start = 0
        for end in self.ends.tolist():
            yield self.batch.part(start, end)
            start = end

    def slide_of(self) -> Ids:
        """Return the slide of each change."""
        return np.repeat(np.arange(len(self.ends)), np.diff(self.ends, prepend=0))


class BudgetExceeded(Exception):
    """Raised when a matcher would have to keep more than allowed: `what` is "matches" or "bytes"."""

    def __init__(self, what: str, limit: int) -> None:
        super().__init__(f"more than {limit:,} {what.removesuffix('es') if limit == 1 else what}")
        self.what = what
        self.limit = limit
