"""What a matcher is asked for, as plain numbers: facts that must exist together.

A fact is a row of ids. Of RDF triples it has three columns (subject, predicate, object); of property graphs five (an
end, the number of the pattern, the other end, the relationship, its content). Column 1 is the one that tells most
about where a fact belongs, and matchers dispatch on it.

Invariant: variables are numbered from 0 without gaps and each stands in at least one pattern. A match has one column
per variable, in the order of the numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from anabranch.delta.batch import Batch, Ids

KIND = 1
"""The column on which matchers dispatch."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """An id that must stand here."""

    id: int


@dataclass(frozen=True, slots=True)
class Free:
    """A variable: the same number, the same id, within one match."""

    variable: int


Place: TypeAlias = Fixed | Free | None
"""None: whatever stands here."""


@dataclass(frozen=True, slots=True)
class Range:
    """What the number of the id in a column must lie in, bounds included. Numbers are rounded to floats, which keeps
    their order but may make two of them one: who asks for a range tests the rows that come out once more. An id that
    is no number (NaN) lies in no range."""

    column: int
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class FactPattern:
    places: tuple[Place, ...]
    ranges: tuple[Range, ...] = ()

    @property
    def variables(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(place.variable for place in self.places if isinstance(place, Free)))


@dataclass(frozen=True, slots=True)
class Conjunction:
    """Facts of `width` columns that must exist together. `different` are pairs of variables with different values:
    the relationships of one match. It is connected: whoever has parts that share no variable joins their matches."""

    width: int
    patterns: tuple[FactPattern, ...]
    variables: int
    different: tuple[tuple[int, int], ...] = ()


class Changes(NamedTuple):
    """What several slides changed, one after the other: those of slide i are `batch[ends[i - 1] : ends[i]]`.

    Within one slide each match is there at most once.
    """

    batch: Batch
    ends: Ids


class BudgetExceeded(Exception):
    """A matcher would have to keep more than it was allowed: `what` is "matches" or "bytes"."""

    def __init__(self, what: str, limit: int) -> None:
        super().__init__(f"more than {limit:,} {what.removesuffix('es') if limit == 1 else what}")
        self.what = what
        self.limit = limit
