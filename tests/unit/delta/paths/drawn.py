"""Random expressions over steps and random facts, and what a path joins as its definition says it."""

from __future__ import annotations

from collections.abc import Iterable, Set
from random import Random
from typing import TypeAlias

import numpy as np

from anabranch.delta.batch import Ids
from anabranch.delta.paths.automaton import Chain, Choice, PathExpression, PathRepetition, PathStep

Fact: TypeAlias = tuple[int, int, int]
Pair: TypeAlias = tuple[int, int]

KINDS = (101, 102, 103, 104)
NAMED = KINDS[:3]  # the last one is met by negated steps alone
_TIMES = ((0, None), (0, None), (1, None), (1, None), (0, 1), (2, None), (2, 3), (0, 0))


def drawn_expression(random: Random, depth: int = 3) -> PathExpression:
    kind = random.random()
    if depth == 0 or kind < 0.3:
        named = frozenset(random.sample(NAMED, random.choice((0, 1, 1, 1, 2))))
        return PathStep(named, others=random.random() < 0.25 or not named, backward=random.random() < 0.3)
    parts = tuple(drawn_expression(random, depth - 1) for _ in range(random.randint(1, 3)))
    if kind < 0.5:
        return Chain(parts)
    return Choice(parts) if kind < 0.65 else PathRepetition(parts[0], *random.choice(_TIMES))


def drawn_facts(random: Random, vertices: int, count: int) -> list[Fact]:
    return [(random.randrange(vertices), random.choice(KINDS), random.randrange(vertices)) for _ in range(count)]


def as_ids(facts: Iterable[Fact]) -> Ids:
    return np.array(list(facts), np.int64).reshape(-1, 3)


def ends(expression: PathExpression, facts: Set[Fact], vertex: int) -> set[int]:
    """Where a path that begins at a vertex can lead."""
    match expression:
        case PathStep(kinds, others, backward):
            steps = ((end, kind, begin) for begin, kind, end in facts) if backward else iter(facts)
            return {end for begin, kind, end in steps if begin == vertex and (kind in kinds) != others}
        case Chain(parts):
            reached = {vertex}
            for part in parts:
                reached = onward(part, facts, reached)
            return reached
        case Choice(parts):
            return {end for part in parts for end in ends(part, facts, vertex)}
        case PathRepetition(part, least, most):
            reached = {vertex}
            for _ in range(least):
                reached = onward(part, facts, reached)
            found = set(reached)
            steps_left = -1 if most is None else most - least
            while reached and steps_left:
                reached = onward(part, facts, reached) - found
                found |= reached
                steps_left -= 1
            return found


def onward(part: PathExpression, facts: Set[Fact], reached: set[int]) -> set[int]:
    return {end for vertex in reached for end in ends(part, facts, vertex)}


def joined(
    expression: PathExpression, facts: Set[Fact], source: int | None, target: int | None, loops: bool
) -> set[Pair]:
    """All pairs. An end that is given may stand outside of the facts."""
    vertices = {end for begin, _, end in facts} | {begin for begin, _, _ in facts}
    given = {end for end in (source, target) if end is not None}
    starts = vertices | given if source is None else {source}
    pairs = {(start, end) for start in starts for end in ends(expression, facts, start)}
    return {(a, b) for a, b in pairs if (target is None or b == target) and (not loops or a == b)}
