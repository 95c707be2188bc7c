"""The meaning of a conjunction in plain Python, and random conjunctions and streams to hold matchers against it."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from anabranch.delta.batch import Batch, Ids
from anabranch.delta.patterns import Conjunction, FactPattern, Fixed, Free, Place, Range

Fact = tuple[int, ...]
Row = tuple[int, ...]
Numbers = npt.NDArray[np.float64]

KINDS = (7, 8, 9_000_000_000)
"""Ids of column 1 in random facts: two near each other and one far away."""


def naive_matches(conjunction: Conjunction, facts: Iterable[Fact], numbers: Numbers | None = None) -> set[Row]:
    """All assignments, pattern after pattern, over a set of facts."""
    content = set(facts)
    found: list[dict[int, int]] = [{}]
    for pattern in conjunction.patterns:
        found = [
            wider
            for narrower in found
            for fact in content
            if (wider := extended(narrower, pattern, fact, numbers)) is not None
        ]
    rows = {tuple(one[variable] for variable in range(conjunction.variables)) for one in found}
    return {row for row in rows if all(row[left] != row[right] for left, right in conjunction.different)}


def extended(
    binding: dict[int, int], pattern: FactPattern, fact: Fact, numbers: Numbers | None
) -> dict[int, int] | None:
    """The binding and what one fact adds to it as a match of one pattern; None when it does not fit."""
    for limits in pattern.ranges:
        identifier = fact[limits.column]
        if numbers is None or not 0 <= identifier < len(numbers):
            return None
        if not limits.low <= numbers[identifier] <= limits.high:
            return None
    wider = dict(binding)
    for place, identifier in zip(pattern.places, fact, strict=True):
        match place:
            case Fixed(wanted) if wanted != identifier:
                return None
            case Free(variable) if wider.setdefault(variable, identifier) != identifier:
                return None
    return wider


def summed(before: set[Row], batch: Batch) -> set[Row]:
    """A set of rows after a batch, which must take away only what is there and add only what is not."""
    after = set(before)
    rows = [tuple(row) for row in batch.rows.tolist()]
    for row, weight in zip(rows, batch.weights.tolist(), strict=True):
        if weight < 0:
            assert row in after, f"{row} leaves without having been there"
            after.remove(row)
    for row, weight in zip(rows, batch.weights.tolist(), strict=True):
        if weight > 0:
            assert row not in after, f"{row} enters twice"
            after.add(row)
    return after


def matrix(facts: Sequence[Fact], width: int) -> Ids:
    return np.array(facts, np.int64).reshape(len(facts), width)


# --- random conjunctions ---

_SHAPES: tuple[tuple[tuple[int, int], ...], ...] = (
    ((0, 1),),
    ((0, 0),),
    ((0, 1), (0, 2)),
    ((0, 1), (0, 2), (0, 3)),
    ((0, 1), (1, 2)),
    ((0, 1), (1, 2), (2, 3)),
    ((0, 1), (1, 2), (2, 0)),
    ((0, 1), (1, 2), (2, 3), (3, 0)),
    ((0, 1), (1, 2), (2, 0), (0, 3)),
    ((0, 1), (1, 2), (2, 0), (0, 3), (1, 3), (2, 3)),
    ((0, 1), (1, 0)),
    ((0, 1), (0, 1)),
    ((0, 1), (2, 3)),
)
"""Edges between variables: single, loop, stars, paths, cycles, cliques, two ways, twice the same, unconnected."""


def random_conjunction(chance: random.Random, *, width: int = 3) -> Conjunction:
    """Edges of some shape; some of their ends become ids, some kinds become variables, and more is added at random.

    Beyond three columns, the further ones are variables of their own, variables that others use too, ids, or ignored;
    the facts of `random_facts` have zeros wherever some pattern ignores a column.
    """
    edges = list(chance.choice(_SHAPES))
    fixed = {variable: chance.randrange(3) for variable in range(4) if chance.random() < 0.12}
    shared_kind = chance.random() < 0.3
    patterns: list[list[Place]] = []
    fresh = 4

    def end(variable: int) -> Place:
        return Fixed(fixed[variable]) if variable in fixed else Free(variable)

    for left, right in edges:
        kind: Place = Fixed(chance.choice(KINDS[: chance.randint(1, 3)]))
        if chance.random() < 0.2:
            kind = Free(90 if shared_kind else fresh)
            fresh += 1
        patterns.append([end(left), kind, end(right)])
    for _ in range(chance.choice((0, 0, 1, 2))):
        variable = chance.randrange(4)
        bit: list[Place] = [Free(variable), Fixed(chance.choice(KINDS)), Fixed(chance.randrange(3))]
        patterns.append(bit if chance.random() < 0.7 else [bit[2], bit[1], bit[0]])
    for places in patterns:
        for _ in range(width - 3):
            further: tuple[Place, ...] = (Free(fresh), Free(fresh), Free(91), Fixed(0), None)
            places.append(chance.choice(further))
            fresh += 1
    return _numbered(chance, patterns)


def _numbered(chance: random.Random, patterns: Sequence[Sequence[Place]]) -> Conjunction:
    names = list(dict.fromkeys(place.variable for places in patterns for place in places if isinstance(place, Free)))
    chance.shuffle(names)
    number = {name: index for index, name in enumerate(names)}

    def renamed(place: Place) -> Place:
        return Free(number[place.variable]) if isinstance(place, Free) else place

    different = [
        (left, right) for left in range(len(names)) for right in range(left) if chance.random() < 0.5 / len(names)
    ]
    return Conjunction(
        len(patterns[0]),
        tuple(FactPattern(tuple(map(renamed, places)), _random_ranges(chance, places)) for places in patterns),
        len(names),
        tuple(different),
    )


def _random_ranges(chance: random.Random, places: Sequence[Place]) -> tuple[Range, ...]:
    if chance.random() < 0.85:
        return ()
    low = chance.choice((float("-inf"), 0.0, 1.0))
    return (Range(chance.choice((0, 2)), low, chance.choice((low, low + 2.0, float("inf")))),)


def random_numbers(chance: random.Random, domain: int) -> Numbers:
    """Numbers of small ids; some ids have none, and the last ones lie beyond the array."""
    some = [float("nan") if chance.random() < 0.2 else float(chance.randrange(5)) for _ in range(max(1, domain - 1))]
    return np.array(some, np.float64)


def random_facts(chance: random.Random, conjunction: Conjunction, count: int, domain: int) -> list[Fact]:
    """Facts over few ids, so that they come again and meet; some are of a kind that nobody asks for."""
    ignored = {
        column for pattern in conjunction.patterns for column, place in enumerate(pattern.places) if place is None
    }
    facts = []
    for _ in range(count):
        fact = [chance.randrange(domain) for _ in range(conjunction.width)]
        fact[1] = chance.choice((*KINDS, KINDS[0], 10))
        facts.append(tuple(0 if column in ignored else value for column, value in enumerate(fact)))
    return facts
