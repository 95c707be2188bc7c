"""Pairs of vertices that a path of any length joins, over a window that slides: only what comes and goes is told.

Persistent regular path queries (Pacaci, Bonifati, Özsu: "Regular Path Query Evaluation on Streaming Graphs", SIGMOD
2020, sections 3 and 4): per source a tree of (vertex, state), each with the best tick of all walks that lead to it,
where a walk is worth as much as its oldest edge. The paper's expiry searches the graph again for what hung on an edge
that left. Here ticks are exact maxima at every moment, so that a node lives exactly as long as its tick, and leaving is
a look at the nodes that are due. `kernels/paths` says how; this file makes room for it and checks what it is given.

Law: after each slide, the sum of all changes is the set of pairs that a path of the window's facts joins; a fact that
comes again is refreshed. Facts that `lay` was given never leave.
State: an edge per living fact and direction in which a path can walk it, a node per source and (vertex, state) that it
reaches, an entry per arrival in the window that fits; arrays grow and shrink with them.
Work: per slide O(arrivals + nodes at their beginnings + edges of the nodes that became better, times a logarithm where
their ticks differ + nodes that are due). Nothing is searched for again when facts leave.
"""

from __future__ import annotations

import numpy as np

from anabranch.delta.batch import Batch, Ids, Mask, concatenated
from anabranch.delta.connectivity.vertices import Vertices
from anabranch.delta.kernels import paths
from anabranch.delta.kernels import paths_store as st
from anabranch.delta.operators.base import Size
from anabranch.delta.paths.automaton import Automaton
from anabranch.delta.patterns import BudgetExceeded
from anabranch.errors import InternalError

_FUEL = 1 << 22  # steps after which a kernel comes back, so that an interrupt is heard
_LEAST = 64  # capacity to begin with
_ENOUGH = 1 << 12  # capacity up to which an array stays as it is, however little is used
_SPARE = 8  # an array of which less than the eighth part is used shrinks
_SWEPT_FROM = 1 << 10  # vertices
_MOST_SEEDS = 1 << 18  # nodes that became better and wait; when they are more, they are spread before others are found
_MOST_ROWS = 1 << 31
_UNLIMITED = 1 << 62
_REBASED_FROM = 1 << 30  # ticks from the origin; a slide brings fewer than that


class PathMatcher:
    """Pairs of where a path begins and where it ends. `source` and `target` are ids that they must be; `loops`: both
    are the same. A path of no step joins an end that is given to itself, from the first slide on, whatever the facts
    are; between two free ends it is the automaton's `standing`, which joins each vertex of the window to itself.
    `max_nodes` limits the nodes of all trees together."""

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
        self._desk = np.zeros(st.DESK_SIZE, np.int64)
        self._desk[st.LIMIT] = _UNLIMITED if max_nodes is None else max_nodes
        self._desk[st.MOST_SEEDS] = _MOST_SEEDS
        self._desk[st.SOURCE] = -1
        self._nodes = np.zeros(_LEAST * st.NODE_SIZE, np.int64)
        self._edges = np.zeros(_LEAST * st.EDGE_SIZE, np.int64)
        self._pool = np.zeros(4 * _LEAST, np.int64)
        self._edge_slots = np.zeros(0, np.int64)
        self._plant_edges()
        self._log = np.zeros(_LEAST * st.LOG_SIZE, np.int64)
        self._rows = np.zeros(0, np.int64)
        self._at = np.zeros(0, np.int64)
        self._trees = np.zeros(0, np.int64)
        self._seeds = np.zeros(_LEAST * st.SEED_SIZE, np.int64)
        self._heap = np.zeros(_LEAST, np.int64)
        self._stack = np.zeros(_LEAST, np.int64)
        self._out = np.zeros(_LEAST * st.OUT_SIZE, np.int64)

    # --- changes ---

    def slide(self, arrived: Ids, left: int) -> Batch:
        """Facts come, as (where, kind, whither), and of all that ever came the first `left` are gone by now."""
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
        """Whether an arrival that fits has left."""
        tail, places = int(self._desk[st.TAIL]), len(self._log) // st.LOG_SIZE
        entry = (tail & (places - 1)) * st.LOG_SIZE
        return bool(tail < self._desk[st.END] and self._log[entry + st.NUMBER] < self._left)

    def lay(self, facts: Ids) -> Batch:
        """Facts come that never leave."""
        self._check_sound()
        return self._run(self._fits.edges(facts, np.zeros(len(facts), np.int64)), lasts=True)

    def pairs(self) -> Ids:
        """All pairs that are joined now, one row each."""
        self._check_sound()
        out = np.empty(2 * int(self._desk[st.NODES]), np.int64)
        count = st.list_pairs(self._desk, self._plan, self._nodes, self._pool, self._trees, out)
        found = self._vertices.ids[out[: 2 * count]].reshape(count, 2)
        return np.concatenate((found[self._moves(found)], self._at_rest())) if self._told_still else found

    def _run(self, edges: tuple[Ids, Ids, Ids, Ids], lasts: bool) -> Batch:
        begins, symbols, ends, numbers = edges
        arrivals = np.empty((len(begins), 3), np.int64)
        both = self._vertices.numbers_of(np.concatenate((begins, ends)))
        arrivals[:, 0] = both[: len(begins)] * self._automaton.symbol_count + symbols
        arrivals[:, 1], arrivals[:, 2] = both[len(begins) :], numbers
        self._reach_vertices()
        self._rebase()
        desk = self._desk
        desk[st.NEXT] = desk[st.OUT] = 0
        desk[st.LASTS], desk[st.LEFT] = int(lasts), self._left
        self._broken = True
        code = st.PAUSED
        while code != st.DONE:
            self._make_room(code)
            # Each array anew, since making room replaces them.
            code = paths.run_slide(
                desk, self._plan, self._nodes, self._pool, self._trees, self._edges, self._edge_slots, self._log,
                self._rows, self._at, self._seeds, self._heap, self._stack, self._out, arrivals.reshape(-1),
            )  # fmt: skip
        self._check_limits()
        batch = self._told()
        self._shrink()
        self._broken = False
        return batch

    def _told(self) -> Batch:
        told = int(self._desk[st.OUT])
        out = self._out[: told * st.OUT_SIZE].reshape(told, st.OUT_SIZE)
        batch = Batch(np.ascontiguousarray(self._vertices.ids[out[:, :2]]), out[:, 2].copy())
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
        """Which pairs are not the given end with itself, which was told once and for all."""
        mask: Mask = (pairs != self._still).any(axis=1)
        return mask

    # --- what it holds ---

    def size(self) -> Size:
        """How many nodes all trees have, and the bytes of all arrays."""
        return Size(int(self._desk[st.NODES]), self._bytes())

    @property
    def edges(self) -> int:
        return int(self._desk[st.EDGES])

    @property
    def vertices(self) -> int:
        return len(self._vertices)

    def _bytes(self) -> int:
        state = self._nodes.nbytes + self._edges.nbytes + self._pool.nbytes + self._edge_slots.nbytes
        state += self._log.nbytes + self._rows.nbytes + self._at.nbytes + self._trees.nbytes
        work = self._seeds.nbytes + self._heap.nbytes + self._stack.nbytes + self._out.nbytes
        return state + work + self._vertices.size().bytes

    def _check_sound(self) -> None:
        if self._broken:
            raise InternalError("a matcher that exceeded its budget, or was interrupted, cannot go on")

    def _check_limits(self) -> None:
        if self._desk[st.NODES] > self._desk[st.LIMIT]:
            raise BudgetExceeded("matches", int(self._desk[st.LIMIT]))
        if self._max_bytes is not None and self._bytes() > self._max_bytes:
            raise BudgetExceeded("bytes", self._max_bytes)

    # --- room ---

    def _make_room(self, code: int) -> None:
        """Do what a kernel asks for before it is called again."""
        match code:
            case st.TOO_MANY:
                raise BudgetExceeded("matches", int(self._desk[st.LIMIT]))
            case st.NODES_FULL:
                self._nodes = _grown(self._nodes)
            case st.POOL_FULL:
                self._pool = _grown(self._pool)
            case st.EDGES_FULL:
                self._edges = _grown(self._edges)
                self._plant_edges()
            case st.LOG_FULL:
                self._resize_log(2 * (len(self._log) // st.LOG_SIZE))
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
        self._desk[st.FUEL] = _FUEL

    def _reach_vertices(self) -> None:
        """Lists begin at every vertex that has a number."""
        automaton, count = self._automaton, self._vertices.count
        if count * max(automaton.states, automaton.symbol_count) >= _MOST_ROWS:
            raise InternalError(f"{count:,} vertices at a time are too many for {automaton.states} states")
        if count > self._room_for_vertices:
            self._resize_vertices(max(_LEAST, 2 * count))

    @property
    def _room_for_vertices(self) -> int:
        return len(self._trees) // st.TREE_SIZE

    def _resize_vertices(self, capacity: int) -> None:
        self._trees = _with_length(self._trees, capacity * st.TREE_SIZE)
        self._rows = _with_length(self._rows, capacity * self._automaton.symbol_count)
        self._at = _with_length(self._at, capacity * self._automaton.states)

    def _plant_edges(self) -> None:
        slots = _power_of_two(len(self._edges) // st.EDGE_SIZE * 3 // 2)
        self._edge_slots = np.zeros(2 * slots, np.int64)
        self._desk[st.EDGE_BITS] = slots.bit_length() - 1
        st.plant_edges(self._desk, self._edges, self._edge_slots)

    def _rebase(self) -> None:
        """Nodes are found with their ticks counted from an origin, in few bits: it must follow."""
        desk = self._desk
        if desk[st.END] - desk[st.ORIGIN] >= _REBASED_FROM:
            desk[st.ORIGIN] = desk[st.TAIL]
            st.rate_nodes(desk, self._nodes, self._pool, self._trees)
            if desk[st.END] - desk[st.ORIGIN] >= _REBASED_FROM:
                raise InternalError(f"more than {_REBASED_FROM:,} arrivals in one window")

    def _resize_log(self, capacity: int) -> None:
        """Positions stay, places change: the place of a position is its remainder."""
        before = len(self._log) // st.LOG_SIZE
        positions = np.arange(self._desk[st.TAIL], self._desk[st.END])
        log = np.zeros((capacity, st.LOG_SIZE), np.int64)
        log[positions & (capacity - 1)] = self._log.reshape(-1, st.LOG_SIZE)[positions & (before - 1)]
        self._log = log.reshape(-1)

    def _shrink(self) -> None:
        """Between slides: give back what less than an eighth part is used of."""
        desk = self._desk
        used, capacity = int(desk[st.NODES]), len(self._nodes) // st.NODE_SIZE
        if capacity > _ENOUGH and used * _SPARE < capacity:
            packed = np.zeros(max(_LEAST, 2 * used) * st.NODE_SIZE, np.int64)
            st.pack_nodes(desk, self._nodes, packed, self._at, self._log)
            self._nodes = packed
            st.rate_nodes(desk, packed, self._pool, self._trees)
        used = int(desk[st.POOL_USED])
        if len(self._pool) > 4 * _ENOUGH and used * _SPARE < len(self._pool):
            packed = np.zeros(max(_LEAST, 2 * used), np.int64)
            st.move_tables(desk, self._pool, packed, self._trees)
            self._pool = packed
        used, capacity = int(desk[st.EDGES]), len(self._edges) // st.EDGE_SIZE
        if capacity > _ENOUGH and used * _SPARE < capacity:
            packed = np.zeros(max(_LEAST, 2 * used) * st.EDGE_SIZE, np.int64)
            st.pack_edges(desk, self._edges, packed, self._rows, self._log)
            self._edges = packed
            self._plant_edges()
        used, capacity = int(desk[st.END] - desk[st.TAIL]), len(self._log) // st.LOG_SIZE
        if capacity > _ENOUGH and used * _SPARE < capacity:
            self._resize_log(_power_of_two(2 * used))
        used = int(desk[st.OUT]) * st.OUT_SIZE
        self._out = _shrunk(self._out, used)
        # Work in hand is about nodes: it never takes much more than they do.
        used = int(desk[st.NODES])
        self._seeds, self._heap, self._stack = (_shrunk(one, used) for one in (self._seeds, self._heap, self._stack))
        self._sweep()

    def _sweep(self) -> None:
        """Take back the numbers of vertices without edges, once they are most: nodes stand at ends of edges alone."""
        edges = int(self._desk[st.EDGES])
        if len(self._vertices) <= (max(_SWEPT_FROM, 4 * edges) if edges else len(set(self._ends))):
            return
        keys = self._edges.reshape(-1, st.EDGE_SIZE)[: self._desk[st.EDGE_END], st.KEY]
        keys = keys[keys >= 0]
        in_use = np.zeros(self._vertices.count, np.bool_)
        in_use[(keys >> 32) // self._automaton.symbol_count] = True
        in_use[keys & st.LOW] = True
        in_use[self._vertices.known(np.array(self._ends, np.int64))] = True
        self._vertices.sweep(in_use)
        if self._room_for_vertices > _ENOUGH and self._vertices.count * _SPARE < self._room_for_vertices:
            self._resize_vertices(max(_LEAST, 2 * self._vertices.count))


class _Fits:
    """Facts as edges: which symbols each is, in which direction."""

    def __init__(self, automaton: Automaton) -> None:
        self._kinds = np.array(sorted(automaton.symbols), np.int64)
        known = [automaton.symbols[kind] for kind in self._kinds.tolist()]
        # By place in `kinds`, and behind the last one for all other kinds: the symbol forward, and backward.
        self._symbols = np.array([*known, automaton.others], np.int64)
        self._standing = automaton.standing

    def edges(self, facts: Ids, numbers: Ids) -> tuple[Ids, Ids, Ids, Ids]:
        """Where they begin, their symbols, where they end, and the numbers of their facts, which rise."""
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


def _plan(automaton: Automaton, only: int, target: int, loops: bool) -> Ids:
    """The automaton as the kernels read it."""
    plan = [0] * st.PLAN_SIZE
    plan[st.STATES], plan[st.SYMBOLS] = automaton.states, automaton.symbol_count
    plan[st.ONLY], plan[st.TARGET], plan[st.LOOPS] = only, target, int(loops)
    firsts = {symbol for state, symbol, _ in automaton.moves if state == 0}
    lists = {
        st.ACCEPTING: [int(state in automaton.accepting) for state in range(automaton.states)],
        st.ACCEPTED: [len(automaton.accepting), *sorted(automaton.accepting)],
        st.FIRSTS: [int(symbol in firsts) for symbol in range(automaton.symbol_count)],
        st.BY_STATE: _grouped([(state, symbol, to) for state, symbol, to in automaton.moves], automaton.states),
        st.BY_SYMBOL: _grouped([(symbol, state, to) for state, symbol, to in automaton.moves], automaton.symbol_count),
    }
    for word, items in lists.items():
        plan[word] = len(plan)
        plan += items
    return np.array(plan, np.int64)


def _grouped(items: list[tuple[int, int, int]], groups: int) -> list[int]:
    """Where each group's pairs begin, one more for where the last ends, and the pairs of all groups."""
    items = sorted(items)
    starts = [sum(group < one for group, _, _ in items) for one in range(groups + 1)]
    return [*starts, *(part for _, one, other in items for part in (one, other))]


def _grown(array: Ids) -> Ids:
    """Half as much again, in whole records of any kind."""
    return _with_length(array, (len(array) // 8 + 1) * 12)


def _with_length(array: Ids, length: int) -> Ids:
    changed = np.zeros(length, np.int64)
    kept = min(length, len(array))
    changed[:kept] = array[:kept]
    return changed


def _shrunk(array: Ids, used: int) -> Ids:
    """Room for work, which is empty now: less of it when what is used is an eighth part."""
    if len(array) <= _ENOUGH * st.OUT_SIZE or used * _SPARE >= len(array):
        return array
    return np.zeros(_LEAST * st.OUT_SIZE, np.int64)


def _power_of_two(least: int) -> int:
    return 1 << max(6, (least - 1).bit_length())
