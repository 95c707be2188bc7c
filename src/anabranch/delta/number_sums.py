"""Sums of weighted numbers by run, exact: integers as an integer, floats as an integer and a power of two.

Law: the sum of a run is that of its integers and finite floats, each times its weight; it is never rounded.
Work: O(numbers) by a kernel, and O(1) in Python for each run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from anabranch.delta.batch import Ids, Weights
from anabranch.delta.kernels import sums as kernels
from anabranch.delta.kernels.sums import FLOAT, INTEGER, Kinds

__all__ = ["FLOAT", "INTEGER", "Kinds", "NumberSum", "number_sums"]

_MOST = 1 << 30  # weights


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
    if int(np.abs(weights).sum()) >= _MOST:
        raise OverflowError("a batch has too many rows to be added up")
    numbers = kernels.WeightedNumbers(kinds, words, weights, np.append(starts, len(words)))
    firsts, sizes = np.empty(len(starts), np.int64), np.empty(len(starts), np.int64)
    kernels.limb_ranges(numbers, firsts, sizes)
    ends = np.cumsum(sizes)
    limbs = np.zeros(int(ends[-1]) if len(ends) else 0, np.int64)
    totals = np.empty((len(starts), 4), np.int64)
    kernels.add_up(numbers, firsts, ends - sizes, limbs, totals)
    held, end = limbs.tolist(), 0
    for (count, low, high, floats), first, size in zip(totals.tolist(), firsts.tolist(), sizes.tolist(), strict=True):
        units, end = 0, end + size
        for place in range(end - 1, end - size - 1, -1):
            units = (units << kernels.LIMB_BITS) + held[place]
        exponent = kernels.LIMB_BITS * first + kernels.LOWEST
        yield NumberSum(count, floats, (high << kernels.LIMB_BITS) + low, units, exponent)
