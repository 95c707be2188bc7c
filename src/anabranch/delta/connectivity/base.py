"""Interface of a connectivity index.

An edge has two vertices and a tick: a number that never falls for edges in time, and may for late ones. The caller
decides the unit of ticks: the number of a slide, of an instant, or of an arrival. A window is named by the tick at
which it opens, and holds all edges from there on.

Law: two vertices are connected in a window exactly when a path of its edges leads from one to the other; a vertex is
always connected to itself. Edges have no direction; copies and loops have no effect.

Vertices are dense numbers from 0 on, given out by `vertices.Vertices`, which takes them back when no window reaches
their edges any more. A vertex has a priority that its owner chose: the root of a component is its vertex of the highest
priority, so that the name of a component depends on its members alone, not on the order of their edges.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from anabranch.delta.batch import Ids, Mask
from anabranch.delta.operators.base import Size


class ConnectivityIndex(ABC):
    @abstractmethod
    def insert(self, edges: Ids, ticks: Ids, priorities: Ids) -> None:
        """Insert edges (one row of two vertices each) with their ticks. `priorities` has one number per vertex given
        out so far, no two the same among living vertices; it grows, and a vertex's number changes only after the vertex
        was forgotten. Edges older than the last forgotten tick are left out."""

    @abstractmethod
    def forget(self, tick: int) -> None:
        """Declare that no window opens before this tick from now on."""

    @abstractmethod
    def connected(self, left: Ids, right: Ids, opens: int) -> Mask:
        """Return whether the pairs are connected in the window that opens at this tick."""

    @abstractmethod
    def roots(self, vertices: Ids, opens: int) -> Ids:
        """Return the root of each vertex's component. A vertex without an edge in the window is its own root."""

    def components(self, living: Ids, opens: int) -> tuple[Ids, Ids]:
        """Return the components of these vertices: the roots, rising, and the number of vertices in each."""
        roots, sizes = np.unique(self.roots(living, opens), return_counts=True)
        return roots, sizes

    @abstractmethod
    def in_use(self, count: int) -> Mask:
        """Return which of the vertices before `count` the index still needs: all that a window may reach, and the
        vertices on the way to them."""

    @abstractmethod
    def size(self) -> Size:
        """Return how many vertices have a living link, and the bytes of all arrays. Work: O(vertices)."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """The bytes of all arrays, in O(1)."""
