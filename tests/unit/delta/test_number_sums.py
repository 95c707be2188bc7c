"""Sums by run against fractions: no digit is lost, whatever the sizes, signs and weights."""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from random import Random

import numpy as np
import pytest

from anabranch.delta.number_sums import FLOAT, INTEGER, number_sums

EDGES = [0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, -1.7976931348623157e308, 1.0, 0.1]
LARGE = [0, 1, -1, 2**63 - 1, -(2**63), 2**32, -(2**32), 2**32 - 1]


def drawn(random: Random) -> tuple[int, int, Fraction]:
    """A number's kind, its word and its value; others than numbers count as nothing."""
    match random.randrange(3):
        case 0:
            whole = random.choice(LARGE) if random.random() < 0.5 else random.randrange(-1000, 1000)
            return INTEGER, whole, Fraction(whole)
        case 1:
            number = random.choice(EDGES)
            if random.random() < 0.6:
                number = math.ldexp(random.uniform(-1, 1), random.randrange(-1080, 1020))
            return FLOAT, struct.unpack("=q", struct.pack("=d", number))[0], Fraction(number)
    return 0, random.randrange(-5, 5), Fraction(0)


@pytest.mark.parametrize("seed", range(20))
def test_sums_are_exact(seed: int) -> None:
    random = Random(seed)
    rows: list[tuple[int, int, Fraction]] = []
    weights: list[int] = []
    starts: list[int] = []
    for _ in range(random.randrange(1, 20)):
        starts.append(len(rows))
        size = random.choice((1, 2, 40))
        rows += [drawn(random) for _ in range(size)]
        weights += [random.choice((1, 1, -1, 3, -100_000)) for _ in range(size)]
    found = list(
        number_sums(
            np.array([kind for kind, _, _ in rows], np.uint8),
            np.array([word for _, word, _ in rows], np.int64),
            np.array(weights, np.int64),
            np.array(starts, np.int64),
        )
    )
    assert len(found) == len(starts)
    for sums, start, stop in zip(found, starts, [*starts[1:], len(rows)], strict=True):
        run = list(zip(rows[start:stop], weights[start:stop], strict=True))
        assert sums.numbers == sum(weight for (kind, _, _), weight in run if kind)
        assert sums.floats == sum(weight for (kind, _, _), weight in run if kind == FLOAT)
        assert sums.integers == sum(weight * value for (kind, _, value), weight in run if kind == INTEGER)
        assert sums.units * Fraction(2) ** sums.exponent == sum(
            weight * value for (kind, _, value), weight in run if kind == FLOAT
        )


def test_more_rows_than_limbs_can_hold_are_refused() -> None:
    one = np.ones(1, np.int64)
    with pytest.raises(OverflowError):
        list(number_sums(one.astype(np.uint8), one, one << 30, one - 1))
