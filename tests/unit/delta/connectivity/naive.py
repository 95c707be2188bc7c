"""Connectivity by searching each window anew with scipy: what every index is held against."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from anabranch.delta.batch import Ids, Mask
from anabranch.delta.connectivity.base import ConnectivityIndex


class NaiveWindows:
    """All edges ever, and the answers by the law. `priorities` has one number per vertex."""

    def __init__(self, priorities: Ids) -> None:
        self.priorities = priorities
        self.edges: Ids = np.empty((0, 2), np.int64)
        self.ticks: Ids = np.empty(0, np.int64)

    def insert(self, edges: Ids, ticks: Ids) -> None:
        self.edges = np.concatenate([self.edges, edges])
        self.ticks = np.concatenate([self.ticks, ticks])

    def window(self, opens: int) -> Ids:
        """The edges of the window that opens at this tick."""
        return self.edges[self.ticks >= opens]

    def roots(self, opens: int) -> Ids:
        """Of every vertex the member of its component with the highest priority."""
        labels = labels_of(len(self.priorities), self.window(opens))
        best = np.full(len(self.priorities), -1, np.int64)
        rising = np.argsort(self.priorities, kind="stable")
        best[labels[rising]] = rising
        return best[labels]

    def living(self, opens: int) -> Ids:
        """The vertices with an edge in the window, rising."""
        return np.unique(self.window(opens))

    def linked(self, opens: int) -> Mask:
        """Which vertices have an edge to another one in the window."""
        edges = self.window(opens)
        mask = np.zeros(len(self.priorities), np.bool_)
        mask[edges[edges[:, 0] != edges[:, 1]].ravel()] = True
        return mask


def labels_of(count: int, edges: Ids) -> Ids:
    """Of every vertex a number that its component has alone."""
    matrix = coo_array((np.ones(len(edges), np.int8), (edges[:, 0], edges[:, 1])), shape=(count, count))
    return connected_components(matrix, directed=False)[1].astype(np.int64)


def assert_agrees(index: ConnectivityIndex, naive: NaiveWindows, opens: int, pairs: int = 200, seed: int = 0) -> None:
    """The index says about the window that opens at this tick what the law says: of all vertices the roots, of random
    pairs and of all pairs (vertex, root) whether they are connected, and of the living ones the components."""
    count = len(naive.priorities)
    vertices = np.arange(count)
    expected = naive.roots(opens)
    np.testing.assert_array_equal(index.roots(vertices, opens), expected)
    left, right = np.random.default_rng(seed).integers(0, count, (2, pairs))
    np.testing.assert_array_equal(index.connected(left, right, opens), expected[left] == expected[right])
    assert index.connected(vertices, expected, opens).all()
    living = naive.living(opens)
    roots, sizes = np.unique(expected[living], return_counts=True)
    found_roots, found_sizes = index.components(living, opens)
    np.testing.assert_array_equal(found_roots, roots)
    np.testing.assert_array_equal(found_sizes, sizes)
