"""Incremental pairs of vertices that a path of any length joins, over a sliding window: gives the changes of the pairs.

Persistent regular path queries (Pacaci, Bonifati, Özsu: "Regular Path Query Evaluation on Streaming Graphs", SIGMOD
2020, sections 3 and 4): per source a tree of (vertex, state), each with the best tick of all walks that lead to it,
where the tick of a walk is that of its oldest edge. The paper's expiry searches the graph again for nodes that depended
on an edge that left. Here ticks are exact maxima at every moment, so that a node lives exactly as long as its tick, and
expiry reads only the nodes that are due. `kernels/paths` has the algorithm; this file makes room for it and checks its
input.

Law: after each slide, the sum of all changes is the set of pairs that a path of the window's facts joins; a fact that
comes again is refreshed. Facts that were given to `lay` never leave.
State: an edge per living fact and direction in which a path can walk it, a node per source and (vertex, state) that it
reaches, an entry per arrival in the window that fits; arrays grow and shrink with them.
Work: per slide O(arrivals + nodes at their beginnings + edges of the nodes that became better, times a logarithm where
their ticks differ + nodes that are due). No search runs when facts leave.
"""

from __future__ import annotations

from collections.abc import Container

import numpy as np

from anabranch.delta.batch import Batch, Ids, Mask, concatenated
from anabranch.delta.connectivity.vertices import Vertices
from anabranch.delta.kernels import paths
from anabranch.delta.kernels import paths_store as st
from anabranch.delta.kernels.compiling import Records, cells
from anabranch.delta.operators.base import Size
from anabranch.delta.paths.automaton import Automaton
from anabranch.delta.patterns import BudgetExceeded
from anabranch.errors import InternalError

_FUEL = 1 << 22  # steps after which a kernel returns, so that an interrupt is handled
_LEAST = 64  # capacity to begin with
_ENOUGH = 1 << 12  # capacity up to which an array stays as it is, however little is used
_SPARE = 8  # an array of which less than the eighth part is used shrinks
_SWEPT_FROM = 1 << 10  # vertices
_MOST_SEEDS = 1 << 18  # nodes that became better and wait; when they are more, they are spread before others are found
_MOST_ROWS = 1 << 31
_UNLIMITED = 1 << 62
_REBASED_FROM = 1 << 30  # ticks from the origin; a slide brings fewer than that


class PathMatcher:
    """Pairs of the first and the last vertex of paths. `source` and `target`, if given, are the ids that these must
    have; `loops`: both are the same. A path of no step joins a given end to itself, from the first slide on, whatever
    the facts are; between two free ends it is the automaton's `standing`, which joins each vertex of the window to
    itself. `max_nodes` limits the nodes of all trees together."""

    def __init__(
        self,
        automaton: Automaton,
        source: int | None = None,
        target: int | None = None,
        loops: bool = False,
        max_nodes: int | None = None,
        max_bytes: int | None = None,
    ) -> None:
        self._automaton = automaton
        self._fits = _Fits(automaton)
        self._max_bytes = max_bytes
        self._ends = [end for end in (source, target) if end is not None]
        ends = set(self._ends)
        self._still = self._ends[0] if automaton.nullable and len(ends) == 1 else None
        self._told_still = False
        self._vertices = Vertices()
        numbers = self._vertices.numbers_of(np.array(self._ends, np.int64)).tolist()
        only = numbers[0] if source is not None else -1
        self._plan = _plan(automaton, only, numbers[-1] if target is not None else -1, loops)
        self._arrived = 0
        self._left = 0
        self._broken = False
        self._states = np.zeros(1, st.STATE)
        self._state = cells(self._states)
        self._state.nodes_used, self._state.edges_used = self._state.nodes["used"], self._state.edges["used"]
        self._state.limit[0] = _UNLIMITED if max_nodes is None else max_nodes
        self._state.most_seeds[0] = _MOST_SEEDS
        self._state.source[0] = -1
        self._nodes = np.zeros(_LEAST, st.ITEM)
        self._edges = np.zeros(_LEAST, st.ITEM)
        self._rows = np.zeros(0, np.int64)
        self._pool = np.zeros(2 * _LEAST, st.SLOT)
        self._plant_edges()
        self._log = np.zeros(_LEAST, st.ENTRY)
        self._places = np.zeros(0, np.int64)
        self._trees = np.zeros(0, st.TREE)
        self._seeds = np.zeros(_LEAST, st.SEED)
        self._heap = np.zeros(_LEAST, np.int64)
        self._stack = np.zeros(_LEAST, np.int64)
        self._out = np.zeros(_LEAST, st.TOLD)

    # Made for each call of a kernel, since making room replaces arrays.

    def _forest(self) -> st.PathForest:
        return st.PathForest(self._states, self._nodes, self._trees, self._pool, self._log, self._places, self._out)

    def _edge_tables(self) -> st.PathEdges:
        return st.PathEdges(self._edges, self._edge_slots, self._rows)

    # --- changes ---

    def slide(self, arrived: Ids, left: int) -> Batch:
        """Add facts, as (start, kind, end); of all facts that ever came, the first `left` have left by now."""
        self._check_sound()
        if left < self._left or left > self._arrived + len(arrived):
            raise InternalError(f"{left} of {self._arrived + len(arrived)} arrivals cannot have left")
        gone = max(0, left - self._arrived)
        numbers = np.arange(self._arrived + gone, self._arrived + len(arrived))
        self._arrived += len(arrived)
        self._left = left
        edges = self._fits.edges(arrived[gone:], numbers)
        if not len(edges[0]) and not self._is_due() and (self._still is None or self._told_still):
            return Batch.empty(2)
        return self._run(edges, lasts=False)

    def _is_due(self) -> bool:
        """Return whether an arrival that fits has left."""
        tail = int(self._state.tail[0])
        return bool(tail < self._state.end[0] and self._log[tail & (len(self._log) - 1)]["number"] < self._left)

    def lay(self, facts: Ids) -> Batch:
        """Add facts that never leave."""
        self._check_sound()
        return self._run(self._fits.edges(facts, np.zeros(len(facts), np.int64)), lasts=True)

    def pairs(self) -> Ids:
        """Return all pairs that are joined now, one row each."""
        self._check_sound()
        out = np.empty(2 * self._nodes_used, np.int64)
        count = st.list_pairs(self._forest(), self._plan, out)
        found = self._vertices.ids[out[: 2 * count]].reshape(count, 2)
        return np.concatenate((found[self._moves(found)], self._at_rest())) if self._told_still else found

    def _run(self, edges: tuple[Ids, Ids, Ids, Ids], lasts: bool) -> Batch:
        begins, symbols, ends, numbers = edges
        arrivals = np.zeros((len(begins), st.ARRIVAL.itemsize // 8), np.int64)
        both = self._vertices.numbers_of(np.concatenate((begins, ends)))
        arrivals[:, 0] = both[: len(begins)] * self._automaton.symbol_count + symbols
        arrivals[:, 1], arrivals[:, 2] = both[len(begins) :], numbers
        records = arrivals.reshape(-1).view(st.ARRIVAL)
        self._reach_vertices()
        self._rebase()
        state = self._state
        state.next[0] = state.told[0] = 0
        state.lasts[0], state.left[0] = lasts, self._left
        self._broken = True
        code = st.PAUSED
        while code != st.DONE:
            self._make_room(code)
            work = st.PathWork(self._seeds, self._heap, self._stack)
            code = int(paths.run_slide(self._forest(), self._edge_tables(), self._plan, work, records))
        self._check_limits()
        batch = self._told()
        self._shrink()
        self._broken = False
        return batch

    def _told(self) -> Batch:
        told = self._out.view(np.int64).reshape(-1, st.TOLD.itemsize // 8)[: self._state.told[0]]
        batch = Batch(np.ascontiguousarray(self._vertices.ids[told[:, :2]]), told[:, 2].copy())
        if self._still is None:
            return batch
        batch = batch.kept(self._moves(batch.rows))
        if self._told_still:
            return batch
        self._told_still = True
        return concatenated([Batch.entering(self._at_rest()), batch], 2)

    def _at_rest(self) -> Ids:
        return np.full((1, 2), self._still, np.int64)

    def _moves(self, pairs: Ids) -> Mask:
        """Return which pairs are not the given end with itself; that pair was emitted once and for all."""
        mask: Mask = (pairs != self._still).any(axis=1)
        return mask

    # --- what it holds ---

    def size(self) -> Size:
        """Return how many nodes all trees have, and the bytes of all arrays."""
        return Size(self._nodes_used, self._bytes())

    @property
    def _nodes_used(self) -> int:
        return int(self._state.nodes_used[0])

    @property
    def edges(self) -> int:
        return int(self._state.edges_used[0])

    @property
    def vertices(self) -> int:
        return len(self._vertices)

    def _bytes(self) -> int:
        state = self._nodes.nbytes + self._edges.nbytes + self._pool.nbytes + self._edge_slots.nbytes
        state += self._log.nbytes + self._rows.nbytes + self._places.nbytes + self._trees.nbytes
        work = self._seeds.nbytes + self._heap.nbytes + self._stack.nbytes + self._out.nbytes
        return state + work + self._vertices.size().bytes

    def _check_sound(self) -> None:
        if self._broken:
            raise InternalError("a matcher that exceeded its budget, or was interrupted, cannot go on")

    def _check_limits(self) -> None:
        if self._nodes_used > self._state.limit[0]:
            raise BudgetExceeded("matches", int(self._state.limit[0]))
        if self._max_bytes is not None and self._bytes() > self._max_bytes:
            raise BudgetExceeded("bytes", self._max_bytes)

    # --- room ---

    def _make_room(self, code: int) -> None:
        """Do what a kernel needs before it is called again."""
        match code:
            case st.TOO_MANY:
                raise BudgetExceeded("matches", int(self._state.limit[0]))
            case st.NODES_FULL:
                self._nodes = _grown(self._nodes)
            case st.POOL_FULL:
                self._pool = _grown(self._pool)
            case st.EDGES_FULL:
                self._edges = _grown(self._edges)
                self._plant_edges()
            case st.LOG_FULL:
                self._resize_log(2 * len(self._log))
            case st.SEEDS_FULL:
                self._seeds = _grown(self._seeds)
            case st.HEAP_FULL:
                self._heap = _grown(self._heap)
            case st.STACK_FULL:
                self._stack = _grown(self._stack)
            case st.OUT_FULL:
                self._out = _grown(self._out)
        if self._max_bytes is not None:
            self._check_limits()
        self._state.fuel[0] = _FUEL

    def _reach_vertices(self) -> None:
        """Make room for the lists of every vertex that has a number."""
        automaton, count = self._automaton, self._vertices.count
        if count * max(automaton.states, automaton.symbol_count) >= _MOST_ROWS:
            raise InternalError(f"{count:,} vertices at a time are too many for {automaton.states} states")
        if count > self._room_for_vertices:
            self._resize_vertices(max(_LEAST, 2 * count))

    @property
    def _room_for_vertices(self) -> int:
        return len(self._trees)

    def _resize_vertices(self, capacity: int) -> None:
        self._trees = _with_length(self._trees, capacity)
        self._rows = _with_length(self._rows, capacity * self._automaton.symbol_count)
        self._places = _with_length(self._places, capacity * self._automaton.states)

    def _plant_edges(self) -> None:
        slots = _power_of_two(len(self._edges) * 3 // 2)
        self._edge_slots = np.zeros(slots, st.SLOT)
        self._state.edge_bits[0] = slots.bit_length() - 1
        st.plant_edges(self._states, self._edge_tables())

    def _rebase(self) -> None:
        """Move the origin of ticks: nodes store their ticks relative to it, in few bits."""
        state = self._state
        if state.end[0] - state.origin[0] >= _REBASED_FROM:
            state.origin[0] = state.tail[0]
            st.rate_nodes(self._forest())
            if state.end[0] - state.origin[0] >= _REBASED_FROM:
                raise InternalError(f"more than {_REBASED_FROM:,} arrivals in one window")

    def _resize_log(self, capacity: int) -> None:
        """Resize the log: positions stay, places change; the place of a position is its remainder."""
        positions = np.arange(self._state.tail[0], self._state.end[0])
        log = np.zeros(capacity, st.ENTRY)
        log[positions & (capacity - 1)] = self._log[positions & (len(self._log) - 1)]
        self._log = log

    def _shrink(self) -> None:
        """Shrink, between slides, arrays of which less than an eighth is used."""
        used = self._nodes_used
        if _is_spare(self._nodes, used):
            packed = np.zeros(max(_LEAST, 2 * used), st.ITEM)
            st.pack_nodes(self._forest(), packed)
            self._nodes = packed
            st.rate_nodes(self._forest())
        used = int(self._state.pool_used[0])
        if _is_spare(self._pool, used):
            packed = np.zeros(max(_LEAST, 2 * used), st.SLOT)
            st.move_tables(self._forest(), packed)
            self._pool = packed
        if _is_spare(self._edges, self.edges):
            packed = np.zeros(max(_LEAST, 2 * self.edges), st.ITEM)
            st.pack_edges(self._states, self._edge_tables(), packed, self._log)
            self._edges = packed
            self._plant_edges()
        used = int(self._state.end[0] - self._state.tail[0])
        if _is_spare(self._log, used):
            self._resize_log(_power_of_two(2 * used))
        self._out = _shrunk(self._out, int(self._state.told[0]))
        # Scratch memory holds nodes: it never needs much more room than they do.
        used = self._nodes_used
        self._seeds, self._heap, self._stack = (_shrunk(one, used) for one in (self._seeds, self._heap, self._stack))
        self._sweep()

    def _sweep(self) -> None:
        """Take back the numbers of vertices without edges, once they are most: nodes are only at ends of edges."""
        edges = self.edges
        if len(self._vertices) <= (max(_SWEPT_FROM, 4 * edges) if edges else len(set(self._ends))):
            return
        keys = self._edges["key"][: self._states["edges"]["end"][0]]
        keys = keys[keys >= 0]
        in_use = np.zeros(self._vertices.count, np.bool_)
        in_use[(keys >> 32) // self._automaton.symbol_count] = True
        in_use[keys & st.LOW] = True
        in_use[self._vertices.known(np.array(self._ends, np.int64))] = True
        self._vertices.sweep(in_use)
        if self._room_for_vertices > _ENOUGH and self._vertices.count * _SPARE < self._room_for_vertices:
            self._resize_vertices(max(_LEAST, 2 * self._vertices.count))


class _Fits:
    """Turns facts into edges: the symbols of each, by direction."""

    def __init__(self, automaton: Automaton) -> None:
        self._kinds = np.array(sorted(automaton.symbols), np.int64)
        known = [automaton.symbols[kind] for kind in self._kinds.tolist()]
        # By place in `kinds`, and behind the last one for all other kinds: the symbol forward, and backward.
        self._symbols = np.array([*known, automaton.others], np.int64)
        self._standing = automaton.standing

    def edges(self, facts: Ids, numbers: Ids) -> tuple[Ids, Ids, Ids, Ids]:
        """Return the starts, the symbols and the ends of the edges, and the numbers of their facts, which rise."""
        kinds = facts[:, 1]
        places = np.searchsorted(self._kinds, kinds)
        if len(self._kinds):
            is_known = self._kinds[np.minimum(places, len(self._kinds) - 1)] == kinds
            places = np.where(is_known, places, len(self._kinds))
        symbols = self._symbols[places]
        parts = []
        for symbol, begin, end in ((symbols[:, 0], 0, 2), (symbols[:, 1], 2, 0)):
            which = np.flatnonzero(symbol >= 0)
            if len(which):
                parts.append((facts[which, begin], symbol[which], facts[which, end], numbers[which]))
        if self._standing >= 0 and len(facts):
            for end in (0, 2):
                symbol = np.full(len(facts), self._standing, np.int64)
                parts.append((facts[:, end], symbol, facts[:, end], numbers))
        if not parts:
            nothing = np.empty(0, np.int64)
            return nothing, nothing, nothing, nothing
        if len(parts) == 1:
            return parts[0]
        begins, found, ends, of = (np.concatenate([part[at] for part in parts]) for at in range(4))
        order = np.argsort(of, kind="stable")
        return begins[order], found[order], ends[order], of[order]


def _plan(automaton: Automaton, only: int, target: int, loops: bool) -> st.PathPlan:
    """Return the automaton as the kernels read it."""
    headers = np.array([(automaton.states, automaton.symbol_count, only, target, loops)], st.PLAN)
    firsts = {symbol for state, symbol, _ in automaton.moves if state == 0}
    by_state = sorted((state, symbol, to) for state, symbol, to in automaton.moves)
    by_symbol = sorted((symbol, state, to) for state, symbol, to in automaton.moves)
    accepting = np.array(sorted(automaton.accepting), np.int64)
    return st.PathPlan(
        headers,
        *_grouped(by_state, automaton.states, automaton.accepting),
        *_grouped(by_symbol, automaton.symbol_count, firsts),
        accepting,
    )


def _grouped(moves: list[tuple[int, int, int]], groups: int, marked: Container[int]) -> tuple[Records, Records]:
    """Return the start and end of each group's moves, and the moves of all groups."""
    starts = [sum(group < one for group, _, _ in moves) for one in range(groups + 1)]
    spans = [(starts[one], starts[one + 1], one in marked) for one in range(groups)]
    return np.array(spans, st.MOVES), np.array([(by, to) for _, by, to in moves], st.MOVE)


def _grown(array: Records) -> Records:
    """Return the array with half as much room again."""
    return _with_length(array, len(array) * 3 // 2)


def _with_length(array: Records, length: int) -> Records:
    changed = np.zeros(length, array.dtype)
    kept = min(length, len(array))
    changed[:kept] = array[:kept]
    return changed


def _is_spare(array: Records, used: int) -> bool:
    return len(array) > _ENOUGH and used * _SPARE < len(array)


def _shrunk(array: Records, used: int) -> Records:
    """Return scratch memory, which is empty now: smaller where less than an eighth was used."""
    return np.zeros(_LEAST, array.dtype) if _is_spare(array, used) else array


def _power_of_two(least: int) -> int:
    return 1 << max(6, (least - 1).bit_length())
