"""Exact sums of numbers, many runs at a time.

A finite float is an integer of 53 bits times a power of two. It is added to limbs: limb i counts in units of
2 ** (32 * i - 1074), and a float touches three limbs. The limbs of a run are adjacent, from the lowest that its floats
touch on. Integers are added as two halves.

Invariant: as long as the absolute weights of a run are below 2 ** 30 in sum, no limb and no half overflows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from anabranch.delta.batch import Ids, Weights
from anabranch.delta.kernels.compiling import Int, inlined, kernel

Kinds = npt.NDArray[np.uint8]

INTEGER, FLOAT = 1, 2  # kinds; others are left out
COUNT, LOW, HIGH, FLOATS = range(4)  # columns of the totals
LIMB_BITS = 32
LOWEST = -1074  # the exponent of the unit of limb 0

LIMB_MASK = (1 << LIMB_BITS) - 1
_FRACTION = 52


class WeightedNumbers(NamedTuple):
    """Numbers in runs: their kinds, their words, their weights, and where each run begins, with the end."""

    kinds: Kinds
    words: Ids
    weights: Weights
    bounds: Ids


@inlined
def _shift(word: Int) -> Int:
    """Return how far the integer of a float is shifted, in units of the smallest float."""
    biased = (word >> _FRACTION) & 0x7FF
    return biased - 1 if biased > 0 else 0


@inlined
def add_digits(limbs: Ids, zero: Int, digits: Int, shift: Int, weight: Int) -> None:
    """Add a weighted integer of 53 bits, shifted, to limbs; `zero` is where limb 0 is, or would be."""
    place = zero + shift // LIMB_BITS
    lower = (digits & LIMB_MASK) << (shift % LIMB_BITS)
    upper = (digits >> LIMB_BITS) << (shift % LIMB_BITS)
    limbs[place] += weight * (lower & LIMB_MASK)
    limbs[place + 1] += weight * ((lower >> LIMB_BITS) + (upper & LIMB_MASK))
    limbs[place + 2] += weight * (upper >> LIMB_BITS)


@inlined
def add_float(limbs: Ids, zero: Int, word: Int, weight: Int) -> None:
    """Add a weighted float to limbs; `zero` is where limb 0 is, or would be."""
    digits = word & ((1 << _FRACTION) - 1)
    if (word >> _FRACTION) & 0x7FF:
        digits |= 1 << _FRACTION
    add_digits(limbs, zero, digits, _shift(word), -weight if word < 0 else weight)


@kernel
def limb_ranges(numbers: WeightedNumbers, firsts: Ids, sizes: Ids) -> None:
    """Write, for each run, the lowest limb that its floats touch, and how many limbs there are from there on."""
    for run in range(firsts.size):
        lowest, highest = 1 << 20, -1
        for at in range(numbers.bounds[run], numbers.bounds[run + 1]):
            if numbers.kinds[at] == FLOAT:
                limb = _shift(numbers.words[at]) // LIMB_BITS
                lowest = min(lowest, limb)
                highest = max(highest, limb)
        firsts[run] = lowest if highest >= 0 else 0
        sizes[run] = highest - lowest + 3 if highest >= 0 else 0


@kernel
def add_up(numbers: WeightedNumbers, firsts: Ids, starts: Ids, limbs: Ids, totals: Ids) -> None:
    """Add up the numbers of each run: `totals` has a row for each run. Limbs begin as zeros, those of a run at its
    start."""
    for run in range(firsts.size):
        count, low, high, floats = 0, 0, 0, 0
        for at in range(numbers.bounds[run], numbers.bounds[run + 1]):
            kind, word, weight = numbers.kinds[at], numbers.words[at], numbers.weights[at]
            if kind == INTEGER:
                count += weight
                low += weight * (word & LIMB_MASK)
                high += weight * (word >> LIMB_BITS)
            elif kind == FLOAT:
                count += weight
                floats += weight
                add_float(limbs, starts[run] - firsts[run], word, weight)
        totals[run, COUNT], totals[run, LOW], totals[run, HIGH], totals[run, FLOATS] = count, low, high, floats
