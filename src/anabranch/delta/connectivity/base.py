"""What an index of connectivity does, whatever its insides.

An edge has two vertices and a tick: a number that never falls for edges in time, and may for late ones. Who drives the
index says what a tick is: the number of a slide, of an instant, or of an arrival. A window is asked for by the tick
at which it opens, and holds all edges from there on.

Law: two vertices are connected in a window exactly when a path of its edges leads from one to the other; a vertex is
always connected to itself. Edges have no direction, copies and loops mean nothing.

Vertices are dense numbers from 0 on, handed out by `vertices.Vertices`, which takes them back when no window reaches
their edges any more. A vertex has a priority that its owner chose: of every component the vertex of the highest
priority is the root, so that what a component is called depends on its members alone, not on how they came together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from anabranch.delta.batch import Ids, Mask
from anabranch.delta.operators.base import Size


class ConnectivityIndex(ABC):
    @abstractmethod
    def insert(self, edges: Ids, ticks: Ids, priorities: Ids) -> None:
        """Edges (one row of two vertices each) with their ticks. `priorities` has one number per vertex handed out so
        far, no two the same among living vertices; it grows, and a vertex's number changes only after it was
        forgotten. Edges older than what was forgotten are left out."""

    @abstractmethod
    def forget(self, tick: int) -> None:
        """From now on no window opens before this tick."""

    @abstractmethod
    def connected(self, left: Ids, right: Ids, opens: int) -> Mask:
        """Whether the pairs are connected in the window that opens at this tick."""

    @abstractmethod
    def roots(self, vertices: Ids, opens: int) -> Ids:
        """Of each vertex the root of its component. A vertex without an edge in the window is its own."""

    def components(self, living: Ids, opens: int) -> tuple[Ids, Ids]:
        """The components of these vertices: the roots, rising, and the number of vertices in each."""
        roots, sizes = np.unique(self.roots(living, opens), return_counts=True)
        return roots, sizes

    @abstractmethod
    def in_use(self, count: int) -> Mask:
        """Which of the vertices before `count` the index still needs: all that a window may reach, and those by which
        it reaches them."""

    @abstractmethod
    def size(self) -> Size:
        """How many vertices have a living link, and the bytes of all arrays. Work: O(vertices)."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """The bytes alone, which cost nothing to tell."""
