"""The arcs at each node, side by side in one array, in the order of their edges' keys.

Invariant: `places[node]` is (where the node's arcs begin in `pool`, how many they are); `pool` has a row (edge, other
node) for each.

State: the arcs twice, as sorted lists that changes go into and as the array that kernels read. Work per change:
O(arcs of the nodes that changed); the array is written again, at twice its size, when it is full.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np

from anabranch.delta.batch import Ids

Arc: TypeAlias = tuple[Any, int, int]
"""The key of an edge, which orders it among others, the edge, the other node."""

_LEAST = 64


class Arcs:
    """Arcs by the node at one of their ends. Nodes and edges are small numbers."""

    def __init__(self) -> None:
        self.places: Ids = np.zeros((_LEAST, 2), np.int64)
        self.pool: Ids = np.zeros((_LEAST, 2), np.int64)
        self._lists: dict[int, list[Arc]] = {}
        self._room: dict[int, int] = {}
        self._end = 0
        self._touched: set[int] = set()

    def __len__(self) -> int:
        """How many nodes have arcs."""
        return len(self._lists)

    def at(self, node: int) -> list[Arc]:
        return self._lists.get(node, _NONE)

    def add(self, node: int, arc: Arc) -> None:
        insort(self._lists.setdefault(node, []), arc)
        self._touched.add(node)

    def remove(self, node: int, arc: Arc) -> None:
        arcs = self._lists[node]
        del arcs[bisect_left(arcs, arc)]
        if not arcs:
            del self._lists[node]
        self._touched.add(node)

    def settle(self, nodes: int) -> None:
        """Bring the array up to date, for nodes of numbers below `nodes`."""
        if nodes > len(self.places):
            places = np.zeros((2 * nodes, 2), np.int64)
            places[: len(self.places)] = self.places
            self.places = places
        touched, self._touched = self._touched, set()
        if self._end + sum(2 * len(self.at(node)) for node in touched) > len(self.pool):
            self._rewrite()
        else:
            self._write(touched)

    def _write(self, nodes: Iterable[int]) -> None:
        for node in nodes:
            arcs = self._lists.get(node, _NONE)
            count = len(arcs)
            self.places[node, 1] = count
            if not count:
                self._room.pop(node, None)
                continue
            if count > self._room.get(node, 0):
                self.places[node, 0] = self._end
                self._room[node] = 2 * count
                self._end += 2 * count
            first = self.places[node, 0]
            self.pool[first : first + count] = [arc[1:] for arc in arcs]

    def _rewrite(self) -> None:
        """All of it, with room for as much again."""
        self._end = 0
        self._room.clear()
        self.places[:, 1] = 0
        self.pool = np.zeros((max(_LEAST, 4 * sum(map(len, self._lists.values()))), 2), np.int64)
        self._write(self._lists)

    @property
    def nbytes(self) -> int:
        return self.places.nbytes + self.pool.nbytes


_NONE: list[Arc] = []
