"""Streams of edges between dense vertices, from a seed.

RMAT (Chakrabarti, Zhan, Faloutsos 2004, "R-MAT: A Recursive Model for Graph Mining") with the shares of Graph500: few
vertices have most edges, one component has most vertices. Uniform: both ends anywhere, so that a window of as many
edges as vertices has components of all sizes. The numbers of RMAT's vertices are scrambled: which bits are set in a
number says nothing about its degree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from anabranch.delta.batch import Ids

A, B, C = 0.57, 0.19, 0.19  # the rest has both ends in the upper half
_AT_ONCE = 1 << 16  # edges whose random numbers stay near


def rmat(edges: int, vertices: int, seed: int = 7) -> Ids:
    """So many edges between so many vertices."""
    random = np.random.default_rng(seed)
    levels = max(1, (vertices - 1).bit_length())
    # Which end gets a bit, and of which half, by one byte of chance: 256 shares are fine enough.
    chance = np.arange(256)
    quadrant = (chance >= A * 256).astype(np.int64) + (chance >= (A + B) * 256) + (chance >= (A + B + C) * 256)
    left_bits, right_bits = (quadrant >> 1).astype(np.int32), (quadrant & 1).astype(np.int32)
    found = np.empty((edges, 2), np.int64)
    for first in range(0, edges, _AT_ONCE):
        size = min(_AT_ONCE, edges - first)
        lefts, rights = np.zeros(size, np.int32), np.zeros(size, np.int32)
        for _ in range(levels):
            drawn = random.integers(0, 256, size, np.uint8)
            lefts = lefts << 1 | left_bits[drawn]
            rights = rights << 1 | right_bits[drawn]
        found[first : first + size, 0], found[first : first + size, 1] = lefts, rights
    scrambled = random.permutation(1 << levels)
    return scrambled[found] % vertices


def uniform(edges: int, vertices: int, seed: int = 7) -> Ids:
    return np.random.default_rng(seed).integers(0, vertices, (edges, 2))


GRAPHS: Mapping[str, Callable[[int, int, int], Ids]] = {"rmat": rmat, "uniform": uniform}


def pairs(count: int, vertices: int, seed: int = 11) -> tuple[Ids, Ids]:
    """Pairs to ask about."""
    drawn = np.random.default_rng(seed).integers(0, vertices, (2, count))
    return np.ascontiguousarray(drawn[0]), np.ascontiguousarray(drawn[1])
