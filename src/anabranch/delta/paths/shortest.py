"""Incremental shortest paths from roots to the wanted nodes of each root, while edges come and go.

Law: `paths(root, node)` are the shortest paths that the edges so far make, within the maximum: all of them, or the
first by its edges' keys, read from the left. The pairs that `change` returns are exactly those whose paths have
changed. A node has no path to itself here.

For each root the distances of all nodes are kept, up to the level on which the last wanted node was found. A new edge
concerns a root if it leads from a node on an earlier level to one that is unknown or further away; a removed edge, if
it is on a shortest way to some node (where one path is wanted: on the kept way). Roots that no edge concerns are not
searched.

State: edges by both ends (`arcs`), a row of distances per root, and of steps where one path is wanted: 4 or 8 bytes per
root and node. Past `most` such cells TooManyCells is raised, and the object must not be used again.
Work per batch: O(arcs of the nodes that changed + roots x changed edges) and, for each root concerned, O(nodes + edges
within its last level), all of it but the first in kernels.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from anabranch.delta.batch import Ids
from anabranch.delta.kernels import shortest as kernel
from anabranch.delta.paths.arcs import Arcs

VertexName: TypeAlias = Hashable
"""The caller's name of a node."""
Pair: TypeAlias = tuple[VertexName, VertexName]
"""A root and a node."""

MOST_CELLS = 1 << 24
_GROWTH = 1.5
_LEAST = 16
_NO_TARGETS: Ids = np.empty(0, np.int64)


class TooManyCells(Exception):
    """Raised when there are more roots times nodes than may be kept."""

    def __init__(self, most: int) -> None:
        super().__init__(f"more than {most:,} distances")
        self.most = most


class PathEdge(NamedTuple):
    """An edge from left to right. `key` identifies it and orders it among all edges."""

    key: Any
    left: VertexName
    right: VertexName


class ShortestPaths:
    """The shortest paths from a set of roots. `backwards`: roots are at the right ends of paths. `both_ways`: edges may
    be walked against their direction. `every`: all shortest paths are wanted. `is_open`: all nodes are wanted of all
    roots; else see `want`."""

    def __init__(
        self,
        *,
        backwards: bool,
        both_ways: bool,
        every: bool,
        is_open: bool,
        maximum: int | None,
        most: int = MOST_CELLS,
    ) -> None:
        self._backwards = backwards
        self._both_ways = both_ways
        self._every = every
        self._is_open = is_open
        self._maximum = kernel.FAR if maximum is None else min(maximum, kernel.FAR)
        self._most = most
        self._onward = Arcs()
        self._back = self._onward if both_ways else Arcs()
        self._edges: dict[Any, int] = {}
        self._keys: list[Any] = []
        self._ends: Ids = np.zeros((_LEAST, 2), np.int64)
        self._free_edges: list[int] = []
        self._nodes: dict[VertexName, int] = {}
        self._names: list[VertexName] = []
        self._free_nodes: list[int] = []
        self._rows: dict[VertexName, int] = {}
        self._free_rows: list[int] = []
        self._distances = np.full((_LEAST, _LEAST), -1, np.int32)
        self._steps = np.zeros((1 if every else _LEAST, _LEAST), np.int32)
        self._limits: Ids = np.zeros(_LEAST, np.int64)
        self._cut: set[VertexName] = set()  # roots whose search ended when all wanted nodes had been found
        self._wanted: dict[VertexName, dict[VertexName, None]] = {}  # by root
        self._wanted_of: dict[VertexName, dict[VertexName, None]] = {}  # the same by node
        self._wanted_of_all: dict[VertexName, None] = {}
        self._common: Ids | None = None  # the numbers of these, as far as they have edges
        self._new_nodes: list[VertexName] = []  # of the last change
        self._pending: list[Pair] = []  # wanted since the last change
        self.searches = 0
        self._make_scratch()

    def __len__(self) -> int:
        """Return how many roots, edges and nodes are kept."""
        return len(self._rows) + len(self._edges) + len(self._nodes) + len(self._wanted) + len(self._wanted_of_all)

    @property
    def nbytes(self) -> int:
        arcs = self._onward.nbytes + (0 if self._both_ways else self._back.nbytes)
        return arcs + self._distances.nbytes + self._steps.nbytes + 200 * len(self._edges)

    def edges(self) -> Iterator[PathEdge]:
        for key, edge in self._edges.items():
            near, far = self._ends[edge].tolist()
            left, right = (far, near) if self._backwards else (near, far)
            yield PathEdge(key, self._names[left], self._names[right])

    # --- what is wanted ---

    def want(self, root: VertexName | None, node: VertexName) -> None:
        """Request a node from the next change on: for one root, or for all (None)."""
        if root is None:
            self._wanted_of_all[node] = None
            self._pending += [(one, node) for one in self._rows]
        else:
            self._wanted.setdefault(root, {})[node] = None
            self._wanted_of.setdefault(node, {})[root] = None
            if root in self._rows:
                self._pending.append((root, node))

    def unwant(self, root: VertexName | None, node: VertexName) -> None:
        if root is None:
            del self._wanted_of_all[node]
            return
        for index, one, other in ((self._wanted, root, node), (self._wanted_of, node, root)):
            del index[one][other]
            if not index[one]:
                del index[one]

    def _is_wanted(self, root: VertexName, node: VertexName) -> bool:
        return node in self._wanted_of_all or node in self._wanted.get(root, ())

    # --- changes ---

    def change(
        self,
        removed: Iterable[Any] = (),
        added: Iterable[PathEdge] = (),
        gone_roots: Iterable[VertexName] = (),
        new_roots: Iterable[VertexName] = (),
    ) -> list[Pair]:
        """Remove edges (by their keys) and roots, and add others; return the pairs of a living root and a node whose
        paths have changed. The pairs of a removed root are not returned."""
        left = list(gone_roots)
        for root in left:
            self._free_rows.append(self._rows.pop(root))
            self._cut.discard(root)
        self._common, self._new_nodes = None, []
        lifted = [self._lift(key) for key in removed]
        laid = [self._lay(edge) for edge in added]
        due = {self._take_root(root): None for root in new_roots}
        count = len(self._names)
        self._onward.settle(count)
        if not self._both_ways:
            self._back.settle(count)
        gone, came = self._arcs_of(lifted), self._arcs_of(laid)
        self._fresh[laid] = 1
        due.update(dict.fromkeys(self._concerned(gone, came)))
        due.update(dict.fromkeys(self._short_of()))
        asked = [pair for pair in self._pending if pair[0] in self._rows and self._is_wanted(*pair)]
        self._pending = []
        due.update({root: None for root, node in asked if root in self._cut and self.distance(root, node) < 0})
        found: dict[Pair, None] = {}
        onward, back = self._onward, self._back
        graph = kernel.ArcGraph(onward.places, onward.pool, back.places, back.pool, self._ends)
        change = kernel.ArcChanges(self._fresh, gone)
        for root in due:
            found.update(dict.fromkeys((root, self._names[node]) for node in self._search(root, graph, change)))
        found.update({pair: None for pair in asked if self.distance(*pair) > 0})
        self._fresh[laid] = 0
        self._sweep(lifted, left)
        return list(found)

    def _concerned(self, gone: Ids, came: Ids) -> list[VertexName]:
        if not self._rows or not (len(gone) or len(came)):
            return []
        rows = np.fromiter(self._rows.values(), np.int64, len(self._rows))
        flags = np.zeros(len(rows), np.uint8)
        kernel.affected(rows, self._distances, self._steps, self._limits, gone, came, self._every, flags)
        roots = list(self._rows)
        return [roots[at] for at in np.flatnonzero(flags).tolist()]

    def _short_of(self) -> Iterator[VertexName]:
        """Yield the roots whose search ended before a wanted node had any edge, if the node has one now."""
        for name in self._new_nodes if self._cut else ():
            if name in self._wanted_of_all:
                yield from self._cut
            yield from (root for root in self._wanted_of.get(name, ()) if root in self._cut)

    def _search(self, root: VertexName, graph: kernel.ArcGraph, change: kernel.ArcChanges) -> list[int]:
        """Search from a root again; return the nodes whose paths have changed."""
        self.searches += 1
        row, scratch = self._rows[root], self._scratch
        known, step = self._distances[row], self._steps[0 if self._every else row]
        search = kernel.SearchSpec(len(self._names), self._maximum, self._is_open, self._every, self._backwards)
        kernel.searched(self._nodes[root], known, step, graph, search, change, self._targets(root), scratch)
        _, is_cut, self._limits[row], count = scratch.results[0].item()
        if is_cut:
            self._cut.add(root)
        else:
            self._cut.discard(root)
        found: list[int] = scratch.found[:count].tolist()
        return found

    def _targets(self, root: VertexName) -> Ids:
        if self._is_open:
            return _NO_TARGETS
        if self._common is None:
            self._common = self._numbers(self._wanted_of_all)
        own = self._wanted.get(root)
        return self._common if own is None else self._numbers({**self._wanted_of_all, **own})

    def _numbers(self, names: Iterable[VertexName]) -> Ids:
        found = [self._nodes[name] for name in names if name in self._nodes]
        return np.array(found, np.int64)

    # --- edges, nodes and roots get numbers ---

    def _lift(self, key: Any) -> int:
        edge = self._edges.pop(key)
        near, far = self._ends[edge].tolist()
        self._onward.remove(near, (key, edge, far))
        if near != far or not self._both_ways:
            self._back.remove(far, (key, edge, near))
        return edge

    def _lay(self, given: PathEdge) -> int:
        edge = self._free_edges.pop() if self._free_edges else len(self._keys)
        if edge == len(self._keys):
            self._keys.append(None)
            if edge >= len(self._ends):
                self._ends = np.concatenate((self._ends, np.zeros_like(self._ends)))
                self._fresh = np.zeros(len(self._ends), np.uint8)
        self._edges[given.key], self._keys[edge] = edge, given.key
        left, right = self._number(given.left), self._number(given.right)
        near, far = (right, left) if self._backwards else (left, right)
        self._ends[edge] = near, far
        self._onward.add(near, (given.key, edge, far))
        if near != far or not self._both_ways:
            self._back.add(far, (given.key, edge, near))
        return edge

    def _number(self, name: VertexName) -> int:
        node = self._nodes.get(name)
        if node is None:
            node = self._free_nodes.pop() if self._free_nodes else len(self._names)
            if node == len(self._names):
                self._names.append(name)
                if node >= self._distances.shape[1]:
                    self._grow(len(self._distances), int(_GROWTH * node))
            self._names[node] = name
            self._nodes[name] = node
            self._new_nodes.append(name)
        return node

    def _take_root(self, root: VertexName) -> VertexName:
        self._number(root)
        row = self._free_rows.pop() if self._free_rows else len(self._rows)
        if row >= len(self._distances):
            self._grow(int(_GROWTH * row), self._distances.shape[1])
        self._distances[row] = -1
        self._rows[root] = row
        return root

    def _grow(self, rows: int, nodes: int) -> None:
        # Only cells in use count, not the room that is made beforehand.
        if (len(self._rows) + 1) * len(self._names) > self._most:
            raise TooManyCells(self._most)
        distances = np.full((rows, nodes), -1, np.int32)
        distances[: len(self._distances), : self._distances.shape[1]] = self._distances
        steps = np.zeros((1 if self._every else rows, nodes), np.int32)
        steps[: len(self._steps), : self._steps.shape[1]] = self._steps
        limits = np.zeros(rows, np.int64)
        limits[: len(self._limits)] = self._limits
        self._distances, self._steps, self._limits = distances, steps, limits
        self._make_scratch()

    def _make_scratch(self) -> None:
        nodes = self._distances.shape[1]
        self._scratch = kernel.SearchScratch(
            was=np.zeros(nodes, np.int32),
            stepped=np.zeros(nodes, np.int32),
            marks=np.zeros(nodes, np.uint8),
            changed=np.zeros(nodes, np.uint8),
            queue=np.zeros(nodes, np.int64),
            found=np.zeros(nodes, np.int64),
            results=np.zeros(1, kernel.RESULT),
        )
        self._fresh = np.zeros(len(self._ends), np.uint8)

    def _arcs_of(self, edges: Sequence[int]) -> Ids:
        """Return edges as arcs (nearer node, further node, edge), each way that they can be walked."""
        ends = self._ends[edges]
        arcs = np.column_stack((ends, np.array(edges, np.int64)))
        if self._both_ways:
            arcs = np.concatenate((arcs, arcs[:, [1, 0, 2]]))
        return np.ascontiguousarray(arcs)

    def _sweep(self, lifted: Sequence[int], gone_roots: Iterable[VertexName]) -> None:
        """Free the numbers of edges and nodes that are gone; they are reused from the next change on."""
        self._free_edges += lifted
        left = {self._names[node] for node in self._ends[list(lifted)].ravel().tolist()} | set(gone_roots)
        for name in left:  # neither has a distance from any root by now
            node = self._nodes.get(name)
            if node is not None and name not in self._rows and not self._onward.at(node) and not self._back.at(node):
                del self._nodes[name]
                self._free_nodes.append(node)

    # --- paths ---

    def distance(self, root: VertexName, node: VertexName) -> int:
        """Return the length of the shortest paths; -1: there is none, or it was not wanted."""
        number = self._nodes.get(node)
        return -1 if number is None else int(self._distances[self._rows[root], number])

    def paths(self, root: VertexName, node: VertexName) -> Iterator[tuple[list[Any], list[VertexName]]]:
        """Yield the paths between a root and a wanted node, as the keys of edges and the names of nodes, from the
        left."""
        if self.distance(root, node) <= 0:
            return
        if self._every:
            ways = self._ways(root, self._nodes[node])
        else:
            ways = iter([self._way(root, self._nodes[node])])
        for edges, nodes in ways:
            keys, names = [self._keys[edge] for edge in edges], [self._names[one] for one in nodes]
            yield (keys, names) if self._backwards else (keys[::-1], names[::-1])

    def _way(self, root: VertexName, node: int) -> tuple[list[int], list[int]]:
        """Return the edges and nodes from a node to the root."""
        steps, end = self._steps[self._rows[root]], self._nodes[root]
        edges: list[int] = []
        nodes = [node]
        while node != end:
            edge = int(steps[node])
            near, far = self._ends[edge].tolist()
            node = near if far == node else far
            edges.append(edge)
            nodes.append(node)
        return edges, nodes

    def _ways(self, root: VertexName, node: int) -> Iterator[tuple[list[int], list[int]]]:
        distances, end = self._distances[self._rows[root]], self._nodes[root]

        def nearer(here: int) -> Iterator[tuple[int, int]]:
            level = distances[here] - 1
            return ((edge, other) for _, edge, other in self._back.at(here) if distances[other] == level)

        edges: list[int] = []
        nodes = [node]
        pending = [nearer(node)]
        while pending:
            for edge, other in pending[-1]:
                edges.append(edge)
                nodes.append(other)
                if other == end:
                    yield list(edges), list(nodes)
                    edges.pop()
                    nodes.pop()
                    continue
                pending.append(nearer(other))
                break
            else:
                pending.pop()
                if edges:
                    edges.pop()
                    nodes.pop()
