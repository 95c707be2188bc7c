"""BIC: connectivity in sliding windows of one width, by union-finds along and against time, without deletions.

After Zhang, Bonifati and Özsu, "Incremental Sliding Window Connectivity over Streaming Graphs" (PVLDB 17, 2024). Ticks
are grouped into chunks. A window begins inside some chunk: the backward buffer of that chunk answers for the chunk's
end, the forward buffer for all edges after it (section 4).

- Forward: a union-find into which edges are inserted as they come; only its latest snapshot is ever read (5.2).
- Backward: a union-find over the edges of the chunk, walked from the youngest to the oldest once the window leaves the
  chunk's beginning. Links carry the snapshot that made them, and vertices the one they appear in: any end of the chunk
  is the same forest without its older links (5.3, 6.3).
- Between: vertices in both buffers bridge their trees (6.2). The paper keeps an edge for every backward root that such
  a vertex will ever have, with intervals. Here there is one edge, at the root of the snapshot in which the vertex
  appears, with the snapshot until which it counts; the roots of wider windows are found by climbing. The components
  across the bridges are computed once for a slide, by union-find, not searched by each query.

The paper's chunk is as long as the window. A shorter one is allowed: the forward buffer then begins after the chunk in
which the window begins and spans several, and is filled again from scratch when the window moves to the next chunk. In
a longer chunk a window could be neither its end nor its beginning: such a chunk is processed in pieces as long as the
window.

Law: as in `base`, for the current window only: it opens `width` - 1 ticks before the newest tick seen, or at the tick
given to `forget` if that is later. Another window is refused.

State: the edges of chunks after the first, and the forest of the first; a few words per vertex. Work per edge: O(log n)
amortized with the paper's chunk; per slide with questions: O(bridges) more. A late edge costs no more than one in time,
except in the chunk where the window begins: its backward buffer is rebuilt from its forest, O(n log n).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from anabranch.delta.batch import Ids, Mask
from anabranch.delta.connectivity.base import ConnectivityIndex
from anabranch.delta.connectivity.recency import last_set
from anabranch.delta.kernels import bic as kernels
from anabranch.delta.kernels.compiling import Records, Small
from anabranch.delta.operators.base import Size
from anabranch.delta.trace import usable
from anabranch.errors import InternalError

Kind = TypeVar("Kind", bound=np.generic)

_MOST_VERTICES = 2**31 - 1
_FEW = 64  # room for this many vertices is never released


@dataclass(slots=True)
class _Chunk:
    """Edges with their ticks, of which the first `taken` are in the forward buffer."""

    pairs: Small
    ticks: Ids
    count: int = 0
    taken: int = 0
    in_order: bool = True

    @classmethod
    def with_room(cls, room: int) -> _Chunk:
        return cls(np.empty((room, 2), np.int32), np.empty(room, np.int64))

    def append(self, edges: Ids, ticks: Ids, in_order: bool) -> None:
        count = self.count + len(ticks)
        if count > len(self.ticks):
            room = max(count, len(self.ticks) + len(self.ticks) // 2)
            self.pairs = _with_length(self.pairs, room)
            self.ticks = _with_length(self.ticks, room)
        self.pairs[self.count : count] = edges
        self.ticks[self.count : count] = ticks
        self.in_order &= in_order and (self.count == 0 or bool(self.ticks[self.count - 1] <= ticks[0]))
        self.count = count

    def cut(self, first: int) -> None:
        """Keep the edges from `first` on, and no room for more."""
        self.pairs, self.ticks = self.pairs[first : self.count].copy(), self.ticks[first : self.count].copy()
        self.count = len(self.ticks)

    def sort(self) -> None:
        if not self.in_order:
            order = np.argsort(self.ticks[: self.count], kind="stable")
            self.pairs, self.ticks = self.pairs[order], self.ticks[order]
            self.in_order = True


class BicIndex(ConnectivityIndex):
    """The BIC index for windows of `width` ticks, in chunks of `chunk` ticks."""

    def __init__(self, width: int, chunk: int | None = None) -> None:
        if width < 1 or (chunk is not None and chunk < 1):
            raise InternalError(f"no window of {width} ticks in chunks of {chunk}")
        self._width = width
        self._chunk = min(width, chunk or width)
        self._opens: int | None = None
        self._chunks: dict[int, _Chunk] = {}
        self._usual = 0  # edges of the last chunk: the initial room of a new one
        self._behind: int | None = None  # the chunk before the forward buffer: that of the backward one
        self._priorities: Ids = np.empty(0, np.int64)

        self._parents: Small = np.empty(0, np.int32)
        self._members: Small = np.empty(0, np.int32)
        self._count = 0  # of members
        self._links: Ids = np.empty(0, np.int64)
        self._seen: Small = np.empty(0, np.int32)
        self._instants: Ids = np.empty(0, np.int64)  # the ticks of the snapshots
        self._has_back = True
        self._back = _Chunk.with_room(0)  # the edges of the backward buffer

        self._near: Small = np.empty(0, np.int32)
        self._merged: Small = np.empty(0, np.int32)
        self._best: Small = np.empty(0, np.int32)
        self._bridges: Records = np.empty(0, kernels.BRIDGE)
        self._bridged = 0  # how many bridges there are
        self._tidied = 0  # how many were left after copies were last removed
        self._joined = 0  # how many members have been searched for bridges
        self._is_merged = False
        self._is_named = False

    # --- edges ---

    def insert(self, edges: Ids, ticks: Ids, priorities: Ids) -> None:
        self._priorities = usable(priorities)
        self._make_room(len(priorities))
        if not len(ticks):
            return
        oldest, newest = int(ticks.min()), int(ticks.max())
        if int(edges.min()) < 0 or int(edges.max()) >= len(priorities):
            raise InternalError("an edge of a vertex that was never handed out")
        self._open(newest - self._width + 1)
        if self._opens is not None and oldest < self._opens:
            in_time = ticks >= self._opens
            edges, ticks = edges[in_time], ticks[in_time]
            if not len(ticks):
                return
            oldest = int(ticks.min())
        in_order = oldest == newest or bool((ticks[1:] >= ticks[:-1]).all())
        if oldest // self._chunk == newest // self._chunk:
            self._append(oldest // self._chunk, edges, ticks, in_order)
        else:
            if not in_order:
                order = np.argsort(ticks, kind="stable")
                edges, ticks = edges[order], ticks[order]
            numbers = ticks // self._chunk
            bounds = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(ticks)]
            for first, last in pairwise(bounds):
                self._append(int(numbers[first]), edges[first:last], ticks[first:last], in_order=True)
        self._go_on()

    def forget(self, tick: int) -> None:
        self._open(tick)
        self._go_on()

    def _append(self, number: int, edges: Ids, ticks: Ids, in_order: bool) -> None:
        chunk = self._chunks.get(number)
        if chunk is None:
            chunk = self._chunks[number] = _Chunk.with_room(max(len(ticks), self._usual))
        chunk.append(edges, ticks, in_order)
        if number == self._behind:
            self._has_back = False

    def _open(self, opens: int) -> None:
        """Open the window at this tick, unless it already opens later."""
        if self._opens is not None and opens <= self._opens:
            return
        self._opens = opens
        self._is_merged = False
        # A chunk that the window holds whole needs no backward buffer.
        behind = (opens - 1) // self._chunk
        if behind == self._behind:
            return
        if any(number <= behind and chunk.taken for number, chunk in self._chunks.items()):
            self._clear_forward()
        self._chunks = {number: chunk for number, chunk in self._chunks.items() if number >= behind}
        self._behind = behind
        self._has_back = False
        if behind in self._chunks:
            self._usual = self._chunks[behind].count

    def _go_on(self) -> None:
        """Advance both buffers to the current window."""
        if not self._has_back:
            self._build_back()
        for number, chunk in self._chunks.items():
            if number != self._behind and chunk.taken < chunk.count:
                self._count = kernels.go_forward(
                    chunk.pairs, chunk.taken, chunk.count, self._parents, self._members, self._count
                )
                chunk.taken = chunk.count
                self._is_merged = False

    def _clear_forward(self) -> None:
        self._clear_bridges()
        kernels.clear_forward(self._parents, self._members, self._count)
        self._count = 0
        for chunk in self._chunks.values():
            chunk.taken = 0

    def _build_back(self) -> None:
        """Build the backward buffer from the edges of the chunk behind that are in the window."""
        assert self._opens is not None
        assert self._behind is not None
        self._clear_bridges()
        kernels.clear_back(self._back.pairs, 0, self._back.count, self._links, self._seen)
        chunk = self._chunks.get(self._behind)
        if chunk is None:
            chunk = _Chunk.with_room(0)
        chunk.sort()
        first, last = int(np.searchsorted(chunk.ticks[: chunk.count], self._opens)), chunk.count
        ticks = chunk.ticks[first:last]
        self._instants = ticks[np.flatnonzero(np.diff(ticks, prepend=self._opens - 1))]
        chunk.cut(kernels.go_back(chunk.pairs, chunk.ticks, first, last, len(self._instants), self._links, self._seen))
        self._back = chunk
        self._has_back = True

    def _make_room(self, vertices: int) -> None:
        room = len(self._parents)
        if vertices > _MOST_VERTICES:
            raise InternalError(f"{vertices} vertices are too many")
        if vertices > room:
            self._resize(max(vertices, min(room + room // 2, _MOST_VERTICES)))

    def _give_back(self, room: int) -> None:
        """Keep room for this many vertices. Edges that have left the window may have other vertices, so the backward
        buffer is rebuilt without these edges."""
        self._clear_bridges()
        kernels.clear_back(self._back.pairs, 0, self._back.count, self._links, self._seen)
        self._back = _Chunk.with_room(0)
        self._bridges = self._bridges[:0].copy()
        self._resize(room)
        if self._behind is not None:
            self._build_back()

    def _resize(self, room: int) -> None:
        self._parents, self._members = _with_length(self._parents, room), _with_length(self._members, room)
        self._links, self._seen = _with_length(self._links, room), _with_length(self._seen, room)
        self._near, self._merged = _with_length(self._near, room), _with_length(self._merged, room)
        self._best = _with_length(self._best, room)
        self._is_named = False

    # --- bridges ---

    def _clear_bridges(self) -> None:
        kernels.clear_between(self._bridges, self._bridged, self._near, self._merged)
        self._bridged = self._tidied = self._joined = 0
        self._is_merged = False

    def _snapshot(self) -> int:
        """Return the number of the first snapshot of the backward buffer that is in the window."""
        return 0 if self._opens is None else int(np.searchsorted(self._instants, self._opens))

    def _merge(self) -> int:
        """Update the components across the bridges of the current window; return its snapshot."""
        snapshot = self._snapshot()
        if self._is_merged:
            return snapshot
        kernels.clear_between(self._bridges, self._bridged, self._near, self._merged)
        most = self._bridged + self._count - self._joined
        if most > len(self._bridges):
            self._bridges = _with_length(self._bridges, most)
        count = kernels.bridge(
            self._bridges, self._bridged, snapshot, self._members, self._joined, self._count, self._links, self._seen
        )
        if count > 2 * self._tidied:
            count = self._tidied = kernels.tidy(self._bridges, count, self._parents, self._near)
        self._bridged = kernels.merge(
            self._bridges, count, snapshot, self._parents, self._links, self._near, self._merged
        )
        self._joined = self._count
        self._is_merged, self._is_named = True, False
        return snapshot

    # --- answers ---

    def connected(self, left: Ids, right: Ids, opens: int) -> Mask:
        snapshot = self._asked(opens, left, right)
        answers = np.empty(len(left), np.bool_)
        kernels.connected(
            usable(left), usable(right), snapshot,
            self._parents, self._links, self._near, self._merged, answers,
        )  # fmt: skip
        return answers

    def roots(self, vertices: Ids, opens: int) -> Ids:
        snapshot = self._asked(opens, vertices)
        roots = np.empty(len(vertices), np.int64)
        if not self._is_named:
            self._best.fill(-1)
            earlier = np.flatnonzero(self._seen >= snapshot).astype(np.int32)
            for some in (earlier, self._members[: self._count]):
                kernels.name_components(
                    some, snapshot, self._parents, self._links, self._near, self._merged, self._priorities, self._best
                )
            self._is_named = True
        kernels.named(
            usable(vertices), snapshot,
            self._parents, self._links, self._near, self._merged, self._best, roots,
        )  # fmt: skip
        return roots

    def _asked(self, opens: int, *vertices: Ids) -> int:
        if self._opens is not None and opens != self._opens:
            raise InternalError(f"the window opens at {self._opens}, and {opens} was asked for")
        for some in vertices:
            if len(some) and (int(some.min()) < 0 or int(some.max()) >= len(self._parents)):
                raise InternalError("asked for a vertex that was never handed out")
        return self._merge()

    # --- what is kept ---

    def in_use(self, count: int) -> Mask:
        """Return the vertices in use, and release room that is mostly empty."""
        mask = np.zeros(max(count, len(self._seen)), np.bool_)
        mask[: len(self._seen)] = self._seen >= self._snapshot()
        mask[self._members[: self._count]] = True
        end = last_set(mask) + 1
        if max(4 * end, _FEW) < len(self._seen):
            self._give_back(2 * end)
        return mask[:count]

    def size(self) -> Size:
        in_use = self._seen >= self._snapshot()
        in_use[self._members[: self._count]] = True
        return Size(int(in_use.sum()), self.nbytes)

    @property
    def nbytes(self) -> int:
        arrays: list[npt.NDArray[Any]] = [
            self._parents, self._members, self._links, self._seen, self._near, self._merged, self._best,
            self._bridges, self._instants,
        ]  # fmt: skip
        for chunk in self._chunks.values():
            arrays += [chunk.pairs, chunk.ticks]
        return sum(array.nbytes for array in arrays)


def _with_length(array: npt.NDArray[Kind], length: int) -> npt.NDArray[Kind]:
    """Return the array with this many places; new ones have -1."""
    changed = np.full((length, *array.shape[1:]), -1, array.dtype)
    kept = min(length, len(array))
    changed[:kept] = array[:kept]
    return changed
