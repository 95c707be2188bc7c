"""Sums of weighted numbers by run, exact: integers as an integer, floats as an integer and a power of two.

Law: the sum of a run is that of its integers and finite floats, each times its weight; it is never rounded.
Work: O(numbers) by a kernel, and O(1) in Python for each run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from anabranch.delta.batch import Ids, Weights
from anabranch.delta.kernels import sums as kernels
from anabranch.delta.kernels.sums import FLOAT, INTEGER, Kinds

__all__ = ["FLOAT", "INTEGER", "MOST_WEIGHT", "Kinds", "NumberSum", "number_sum", "number_sums"]

MOST_WEIGHT = 1 << 30
"""The sum of absolute weights of a batch must be below it."""


class NumberSum(NamedTuple):
    """The number of numbers and that of the floats among them, the sum of the integers, and that of the floats:
    `units` times two to the power of `exponent`."""

    numbers: int
    floats: int
    integers: int
    units: int
    exponent: int


def number_sums(kinds: Kinds, words: Ids, weights: Weights, starts: Ids) -> Iterator[NumberSum]:
    """Yield the sum of each run of numbers; runs begin at `starts`. The word of a float is its bits."""
    if int(np.abs(weights).sum()) >= MOST_WEIGHT:
        raise OverflowError("a batch has too many rows to be added up")
    numbers = kernels.WeightedNumbers(kinds, words, weights, np.append(starts, len(words)))
    firsts, sizes = np.empty(len(starts), np.int64), np.empty(len(starts), np.int64)
    kernels.limb_ranges(numbers, firsts, sizes)
    ends = np.cumsum(sizes)
    limbs = np.zeros(int(ends[-1]) if len(ends) else 0, np.int64)
    totals = np.empty((len(starts), 4), np.int64)
    kernels.add_up(numbers, firsts, ends - sizes, limbs, totals)
    held, end = limbs.tolist(), 0
    for total, first, size in zip(totals.tolist(), firsts.tolist(), sizes.tolist(), strict=True):
        yield number_sum(total, first, held[end : end + size])
        end += size


def number_sum(totals: Sequence[int], first: int, limbs: Sequence[int]) -> NumberSum:
    """Return the sum that has these totals and these limbs, from the lowest, number `first`, on."""
    units = 0
    for limb in reversed(limbs):
        units = (units << kernels.LIMB_BITS) + limb
    integers = (totals[kernels.HIGH] << kernels.LIMB_BITS) + totals[kernels.LOW]
    exponent = kernels.LIMB_BITS * first + kernels.LOWEST
    return NumberSum(totals[kernels.COUNT], totals[kernels.FLOATS], integers, units, exponent)
