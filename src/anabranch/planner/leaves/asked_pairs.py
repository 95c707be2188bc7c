"""Node pairs that rows of the query join with shortest paths: limits the search to these pairs.

Rows that a shortest path is joined with bind one of its ends, or both. `AskedPairs` counts the nodes of these rows, and
the shortest-path operator reads the counts before it searches.

Law: a pair is asked about while at least one row of the other side has its nodes in these columns.
State: per pair the number of rows. Work per batch: O(changes).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from anabranch.delta.batch import Batch
from anabranch.delta.dictionary import Dictionary
from anabranch.delta.operators.base import DeltaOperator, Size
from anabranch.model.values import ElementId, Node

EndPair: TypeAlias = tuple[ElementId | None, ElementId | None]
"""The nodes at which a path begins and ends; None: any node."""
EndColumns: TypeAlias = tuple[str | None, str | None]

_BYTES_PER_PAIR = 300


class AskedPairs(DeltaOperator):
    """Counts the pairs of nodes in rows. `columns` name the start and the end of paths, `places` are their positions in
    the rows; None: any node. Produces no output rows; the shortest-path operator reads the pairs through `take()`."""

    width = 0

    def __init__(self, columns: EndColumns, places: Sequence[int | None], dictionary: Dictionary) -> None:
        self.columns = columns
        self._places = tuple(places)
        self._dictionary = dictionary
        self._counts: Counter[EndPair] = Counter()
        self._each: tuple[Counter[ElementId | None], ...] = (Counter(), Counter())
        self._before: dict[EndPair, bool] = {}  # of pairs touched since `take`: whether they were asked about then

    def apply(self, *inputs: Batch) -> Batch:
        (batch,) = inputs
        for row, weight in zip(batch.rows.tolist(), batch.weights.tolist(), strict=True):
            nodes = [None if place is None else self._node(row[place]) for place in self._places]
            if any(place is not None and node is None for place, node in zip(self._places, nodes, strict=True)):
                continue
            pair = (nodes[0], nodes[1])
            before = self._counts[pair]
            self._before.setdefault(pair, before > 0)
            self._counts[pair] = before + weight
        return Batch.empty(0)

    def _node(self, value: int) -> ElementId | None:
        node = self._dictionary.decode(value)
        return node.id if isinstance(node, Node) else None

    def take(self) -> list[EndPair]:
        """Return the pairs that became asked about, or no longer are, since the last call."""
        turned = []
        for pair, before in self._before.items():
            now = self._counts[pair] > 0
            if not now:
                del self._counts[pair]
            if now != before:
                turned.append(pair)
                for at, node_id in enumerate(pair):
                    self._each[at][node_id] += 1 if now else -1
                    if not self._each[at][node_id]:
                        del self._each[at][node_id]
        self._before = {}
        return turned

    def is_asked(self, node_id: ElementId, at: int) -> bool:
        """Return whether a node is asked about at the beginning (0) or the end (1) of paths."""
        return node_id in self._each[at]

    def has(self, left: ElementId, right: ElementId) -> bool:
        return (left, right) in self._counts

    def pairs(self) -> Iterator[tuple[ElementId, ElementId]]:
        """Iterate over the asked pairs in which both nodes are given."""
        return ((left, right) for left, right in self._counts if left is not None and right is not None)

    def size(self) -> Size:
        return Size(len(self._counts), _BYTES_PER_PAIR * len(self._counts))
