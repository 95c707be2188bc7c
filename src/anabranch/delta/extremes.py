"""Smallest numbers of groups: an index that takes changes of many groups at once.

Law: `first` is the id of the group's smallest number, by the number and then by the rank, of those that came more often
than they left; NULL when there is none.

State: a node for each number that came, and for each that left and is not yet matched with one that came: when these
are a third of all, all nodes are built again from the difference.
Work: O(log n) for each change, amortised, in a kernel.
"""

from __future__ import annotations

import numpy as np

from anabranch.delta.batch import NULL, Ids
from anabranch.delta.kernels import heaps as kernels
from anabranch.delta.kernels.compiling import Records
from anabranch.delta.kernels.heaps import NumberChanges

__all__ = ["GroupExtremes", "NumberChanges"]

_SMALLEST = 64


class GroupExtremes:
    """The smallest numbers of groups, which are numbered from 0. A number and a rank belong to one id."""

    __slots__ = ("_heaps",)

    def __init__(self) -> None:
        self._build(_SMALLEST, 1)

    def _build(self, nodes: int, groups: int) -> None:
        self._heaps = kernels.GroupHeaps(
            np.zeros(nodes, kernels.NODE),
            np.zeros((groups, 2), np.int64),
            np.full(groups, NULL, np.int64),
            np.zeros(1, kernels.STATE),
        )

    def __len__(self) -> int:
        return int(self._heaps.states["held"][0])

    @property
    def nbytes(self) -> int:
        return sum(int(array.nbytes) for array in self._heaps)

    def firsts(self, groups: Ids) -> Ids:
        """Return the ids of the smallest numbers of groups."""
        found: Ids = self._heaps.firsts[groups]
        return found

    def change(self, changes: NumberChanges, touched: Ids) -> None:
        """Take in changes of the touched groups; after it, no number may have left more often than it came."""
        self._make_room(len(changes.groups), int(touched.max()) + 1 if len(touched) else 0)
        kernels.change(self._heaps, changes, touched)
        held, leaving = len(self), int(self._heaps.states["leaving"][0])
        if 3 * leaving > held + _SMALLEST or (not held and len(self._heaps.nodes) > _SMALLEST):
            self._rebuild()

    def _make_room(self, more: int, groups: int) -> None:
        heaps = self._heaps
        wanted = int(heaps.states["used"][0]) + more + 1
        if wanted > len(heaps.nodes):
            heaps = heaps._replace(nodes=_grown(heaps.nodes, wanted))
        if groups > len(heaps.firsts):
            heaps = heaps._replace(roots=_grown(heaps.roots, groups), firsts=_grown(heaps.firsts, groups))
        self._heaps = heaps

    def _rebuild(self) -> None:
        """Build all heaps again from the numbers that are there."""
        nodes = self._heaps.nodes[self._heaps.nodes["weight"] > 0]
        groups = len(self._heaps.firsts)
        order = np.lexsort((nodes["id"], nodes["group"]))
        nodes = nodes[order]
        first = np.ones(len(nodes), np.bool_)
        first[1:] = (nodes["group"][1:] != nodes["group"][:-1]) | (nodes["id"][1:] != nodes["id"][:-1])
        starts = np.flatnonzero(first)
        signed = np.where(nodes["side"] == kernels.LEFT, -nodes["weight"], nodes["weight"])
        weights = np.add.reduceat(signed, starts) if len(starts) else signed
        kept = nodes[starts[weights != 0]]
        self._build(max(2 * len(kept), _SMALLEST), groups)
        group, number, rank, held = (np.ascontiguousarray(kept[name]) for name in ("group", "number", "rank", "id"))
        changes = NumberChanges(group, number, rank, held, weights[weights != 0])
        kernels.change(self._heaps, changes, np.unique(group))


def _grown(array: Records, size: int) -> Records:
    grown = np.zeros((max(2 * len(array), size), *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown
