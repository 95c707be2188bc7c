"""Trees of (vertex, state) over a window's edges, as kernels: edges come, values spread, what is due leaves.

`paths_store` says what is kept. A slide: edges are laid; all nodes at their beginnings are led along them; per source
what became better spreads, the best first (Dijkstra's order for widest paths), so that every node is settled once; then
the log's tail moves, and the nodes that hang on positions that leave go, or hang on where they are due now.

Every kernel can be left where it needs room or was given no more fuel, and is called again: to relax a node twice
changes nothing.

Invariants between slides: of every edge (u, symbol, v, t) and node (s, u, q) with a move from q to r by the symbol,
node (s, v, r) is there and its tick is at least min(t, that of (s, u, q)); no node's tick is before the tail. So ticks
are exact, and what is due has no other way to live.
"""

from __future__ import annotations

from anabranch.delta.batch import Ids
from anabranch.delta.kernels import paths_store as st
from anabranch.delta.kernels.log_store import compiled, inlined, kernel
from anabranch.delta.kernels.paths_store import (
    give_back,
    hang,
    has_room,
    improved,
    lacks,
    link,
    resize_table,
    room_for_node,
    slot_of,
    take,
    tell,
    unlink,
    vacate,
    worth_of,
)

_LAY, _GATHER, _DRAIN, _LEAVE = range(4)  # of a slide


# --- edges come ---


@compiled
def _lay(
    desk: Ids, plan: Ids, nodes: Ids, pool: Ids, trees: Ids, edges: Ids, edge_slots: Ids, log: Ids, rows: Ids, at: Ids,
    out: Ids, arrivals: Ids,
) -> int:  # fmt: skip
    """Take in arrivals (row, vertex, number); of each is left its edge and tick, (-1, ...) where nothing is new."""
    states, symbols, lasts = plan[st.STATES], plan[st.SYMBOLS], desk[st.LASTS] != 0
    last = log.size // st.LOG_SIZE - 1
    while desk[st.NEXT] * 3 < arrivals.size:
        here = desk[st.NEXT] * 3
        if lacks(desk, edges, st.EDGE_FREE, st.EDGE_END):
            return st.EDGES_FULL
        if not lasts and desk[st.END] - desk[st.TAIL] > last:
            return st.LOG_FULL
        source = arrivals[here] // symbols
        begins = plan[plan[st.FIRSTS] + arrivals[here] % symbols] and (plan[st.ONLY] < 0 or plan[st.ONLY] == source)
        if begins:
            code = room_for_node(desk, nodes, pool, trees, out, source)
            if code:
                return code
        row, vertex, tick = arrivals[here], arrivals[here + 1], st.LASTING if lasts else desk[st.END]
        key = (row << 32) | vertex
        slot = slot_of(edge_slots, 0, desk[st.EDGE_BITS], key)
        desk[st.NEXT] += 1
        if edge_slots[slot + 1] != 0:
            edge = edge_slots[slot + 1] - 1
            before = edges[edge * st.EDGE_SIZE + st.TICK]
            if before == st.LASTING:
                arrivals[here] = -1
                continue
            log[(before & last) * st.LOG_SIZE + st.EDGE] = -1
        else:
            edge = take(desk, edges, st.EDGE_FREE, st.EDGE_END)
            desk[st.EDGES] += 1
            edge_slots[slot], edge_slots[slot + 1] = key, edge + 1
            edges[edge * st.EDGE_SIZE + st.KEY] = key
            link(edges, rows, edge, row)
        edges[edge * st.EDGE_SIZE + st.TICK] = tick
        if not lasts:
            entry = (tick & last) * st.LOG_SIZE
            log[entry + st.NUMBER], log[entry + st.EDGE], log[entry + st.DUE] = arrivals[here + 2], edge, 0
            desk[st.END] += 1
        arrivals[here], arrivals[here + 1] = edge, tick
        if begins:
            improved(desk, plan, nodes, pool, trees, log, at, out, source, source * states, 0, tick)
    return st.DONE


@compiled
def _gather(
    desk: Ids, plan: Ids, nodes: Ids, pool: Ids, trees: Ids, edges: Ids, log: Ids, at: Ids, seeds: Ids, out: Ids,
    arrivals: Ids,
) -> int:  # fmt: skip
    """Lead the nodes at the beginnings of new edges along them; those that become better are seeds."""
    states, symbols, opens = plan[st.STATES], plan[st.SYMBOLS], desk[st.OPENS]
    while desk[st.NEXT] * 3 < arrivals.size:
        edge, tick = arrivals[desk[st.NEXT] * 3], arrivals[desk[st.NEXT] * 3 + 1]
        if edge >= 0 and edges[edge * st.EDGE_SIZE + st.TICK] == tick:
            row, vertex = edges[edge * st.EDGE_SIZE + st.KEY] >> 32, edges[edge * st.EDGE_SIZE + st.KEY] & st.LOW
            begin, symbol = row // symbols, row % symbols
            moves = plan[st.BY_SYMBOL] + symbols + 1
            first, stop = plan[plan[st.BY_SYMBOL] + symbol], plan[plan[st.BY_SYMBOL] + symbol + 1]
            while first + desk[st.MOVE] < stop:
                move = moves + 2 * (first + desk[st.MOVE])
                state, to = plan[move], plan[move + 1]
                if desk[st.CURSOR] == 0:
                    desk[st.CURSOR] = at[begin * states + state]
                while desk[st.CURSOR] > 0:
                    node = (desk[st.CURSOR] - 1) * st.NODE_SIZE
                    best = min(nodes[node + st.TICK], tick)
                    if best >= opens:
                        if (desk[st.SEEDS] + 1) * st.SEED_SIZE > seeds.size:
                            return st.SEEDS_FULL
                        source = nodes[node + st.KEY] >> 32
                        code = room_for_node(desk, nodes, pool, trees, out, source)
                        if code:
                            return code
                        place = vertex * states + to
                        found = improved(desk, plan, nodes, pool, trees, log, at, out, source, place, to, best)
                        if found >= 0 and nodes[found * st.NODE_SIZE + st.HANGS] < st.WAITS:
                            nodes[found * st.NODE_SIZE + st.HANGS] |= st.WAITS
                            seed = desk[st.SEEDS]
                            seeds[seed * st.SEED_SIZE] = found
                            seeds[seed * st.SEED_SIZE + 1] = trees[source * st.TREE_SIZE + st.WAITING]
                            if trees[source * st.TREE_SIZE + st.WAITING] == 0:
                                seeds[desk[st.TOUCHED] * st.SEED_SIZE + 2] = source
                                desk[st.TOUCHED] += 1
                            trees[source * st.TREE_SIZE + st.WAITING] = seed + 1
                            desk[st.SEEDS] += 1
                    desk[st.FUEL] -= 1
                    desk[st.CURSOR] = nodes[node + st.LINKS] & st.LOW
                desk[st.MOVE] += 1
        desk[st.MOVE] = 0
        desk[st.NEXT] += 1
        if desk[st.FUEL] < 0:
            return st.PAUSED
    return st.DONE


# --- values spread ---


@inlined
def _push(heap: Ids, used: int, packed: int) -> None:
    place = used
    while place > 0 and heap[(place - 1) >> 1] < packed:
        heap[place] = heap[(place - 1) >> 1]
        place = (place - 1) >> 1
    heap[place] = packed


@inlined
def _pop(heap: Ids, used: int) -> int:
    """The greatest of `used` items; the others are left."""
    found, item = heap[0], heap[used - 1]
    place, child = 0, 1
    while child < used - 1:
        if child + 1 < used - 1 and heap[child + 1] > heap[child]:
            child += 1
        if heap[child] <= item:
            break
        heap[place] = heap[child]
        place, child = child, 2 * child + 1
    heap[place] = item
    return int(found)


@compiled
def _relax(
    desk: Ids, plan: Ids, nodes: Ids, pool: Ids, trees: Ids, edges: Ids, log: Ids, rows: Ids, at: Ids, heap: Ids,
    stack: Ids, out: Ids, node: int,
) -> int:  # fmt: skip
    """Lead a node on along all edges: what becomes as good as it is goes on the stack, what becomes less into the
    heap."""
    states, symbols, opens, level = plan[st.STATES], plan[st.SYMBOLS], desk[st.OPENS], desk[st.LEVEL]
    key = nodes[node * st.NODE_SIZE + st.KEY]
    source = key >> 32
    vertex, state = (key & st.LOW) // states, (key & st.LOW) % states
    moves = plan[st.BY_STATE] + states + 1
    for move in range(plan[plan[st.BY_STATE] + state], plan[plan[st.BY_STATE] + state + 1]):
        symbol, to = plan[moves + 2 * move], plan[moves + 2 * move + 1]
        edge = rows[vertex * symbols + symbol]
        while edge > 0:
            here = (edge - 1) * st.EDGE_SIZE
            edge = edges[here + st.LINKS] & st.LOW
            desk[st.FUEL] -= 1
            tick = min(level, edges[here + st.TICK])
            if tick < opens:
                continue
            code = room_for_node(desk, nodes, pool, trees, out, source)
            if code:
                return code
            if desk[st.HEAP] == heap.size:
                return st.HEAP_FULL
            if desk[st.STACK] + 2 > stack.size:
                return st.STACK_FULL
            place = (edges[here + st.KEY] & st.LOW) * states + to
            found = improved(desk, plan, nodes, pool, trees, log, at, out, source, place, to, tick)
            if found < 0:
                continue
            if tick == level:
                stack[desk[st.STACK]] = found
                desk[st.STACK] += 1
            else:
                _push(heap, desk[st.HEAP], (worth_of(desk, tick) << 32) | found)
                desk[st.HEAP] += 1
    return st.DONE


@compiled
def _drain(
    desk: Ids, plan: Ids, nodes: Ids, pool: Ids, trees: Ids, edges: Ids, log: Ids, rows: Ids, at: Ids, seeds: Ids,
    heap: Ids, stack: Ids, out: Ids,
) -> int:  # fmt: skip
    """Spread what became better, source by source, until no seed is left."""
    while True:
        while desk[st.SOURCE] >= 0 and trees[desk[st.SOURCE] * st.TREE_SIZE + st.WAITING] > 0:
            if desk[st.HEAP] == heap.size:
                return st.HEAP_FULL
            seed = (trees[desk[st.SOURCE] * st.TREE_SIZE + st.WAITING] - 1) * st.SEED_SIZE
            node = seeds[seed]
            nodes[node * st.NODE_SIZE + st.HANGS] &= st.LOW
            _push(heap, desk[st.HEAP], (worth_of(desk, nodes[node * st.NODE_SIZE + st.TICK]) << 32) | node)
            desk[st.HEAP] += 1
            trees[desk[st.SOURCE] * st.TREE_SIZE + st.WAITING] = seeds[seed + 1]
        while desk[st.STACK] > 0 or desk[st.HEAP] > 0:
            if desk[st.FUEL] < 0:
                return st.PAUSED
            if desk[st.STACK] > 0:
                desk[st.STACK] -= 1
                node = stack[desk[st.STACK]]
            else:
                packed = _pop(heap, desk[st.HEAP])
                desk[st.HEAP] -= 1
                node = packed & st.LOW
                tick = nodes[node * st.NODE_SIZE + st.TICK]
                if worth_of(desk, tick) != packed >> 32:
                    continue  # it became better in the meantime, and was relaxed
                desk[st.LEVEL] = tick
            code = _relax(desk, plan, nodes, pool, trees, edges, log, rows, at, heap, stack, out, node)
            if code:
                stack[desk[st.STACK]] = node
                desk[st.STACK] += 1
                return code
        if desk[st.TOUCHED] == 0:
            desk[st.SEEDS] = 0
            desk[st.SOURCE] = -1
            return st.DONE
        desk[st.TOUCHED] -= 1
        desk[st.SOURCE] = seeds[desk[st.TOUCHED] * st.SEED_SIZE + 2]


# --- what is due leaves ---


@inlined
def _leave_tree(desk: Ids, pool: Ids, trees: Ids, key: int) -> None:
    """A tree whose table has become too large gets a smaller one; one without nodes has none."""
    source = key >> 32
    tree = source * st.TREE_SIZE
    base, bits = trees[tree + st.BASE], trees[tree + st.BITS]
    vacate(pool, base, bits, slot_of(pool, base, bits, key & st.LOW))
    trees[tree + st.USED] -= 1
    used = trees[tree + st.USED]
    if used == 0:
        resize_table(desk, pool, trees, source, 0)
    elif bits > st.LEAST_BITS + 1 and used * 8 < 1 << bits and has_room(desk, pool, bits - 2):
        resize_table(desk, pool, trees, source, bits - 2)


@compiled
def _leave(
    desk: Ids, plan: Ids, nodes: Ids, pool: Ids, trees: Ids, edges: Ids, edge_slots: Ids, log: Ids, rows: Ids, at: Ids,
    out: Ids,
) -> int:  # fmt: skip
    """Move the tail to where the window opens."""
    states, opens = plan[st.STATES], desk[st.OPENS]
    last = log.size // st.LOG_SIZE - 1
    while desk[st.TAIL] < opens:
        entry = (desk[st.TAIL] & last) * st.LOG_SIZE
        while log[entry + st.DUE] > 0:
            if (desk[st.OUT] + 1) * st.OUT_SIZE > out.size:
                return st.OUT_FULL
            node = log[entry + st.DUE] - 1
            log[entry + st.DUE] = nodes[node * st.NODE_SIZE + st.HANGS]
            desk[st.FUEL] -= 1
            tick = nodes[node * st.NODE_SIZE + st.TICK]
            if tick >= opens:
                hang(nodes, log, node, tick)
                continue
            key = nodes[node * st.NODE_SIZE + st.KEY]
            unlink(nodes, at, node, key & st.LOW)
            give_back(desk, nodes, node, st.NODE_FREE)
            desk[st.NODES] -= 1
            _leave_tree(desk, pool, trees, key)
            if plan[plan[st.ACCEPTING] + (key & st.LOW) % states]:
                tell(desk, plan, pool, trees, out, key, -1)
        edge = log[entry + st.EDGE]
        if edge >= 0:
            key = edges[edge * st.EDGE_SIZE + st.KEY]
            unlink(edges, rows, edge, key >> 32)
            vacate(edge_slots, 0, desk[st.EDGE_BITS], slot_of(edge_slots, 0, desk[st.EDGE_BITS], key))
            give_back(desk, edges, edge, st.EDGE_FREE)
            desk[st.EDGES] -= 1
        desk[st.TAIL] += 1
        if desk[st.FUEL] < 0:
            return st.PAUSED
    return st.DONE


# --- what is called from outside ---


@kernel
def run_slide(
    desk: Ids, plan: Ids, nodes: Ids, pool: Ids, trees: Ids, edges: Ids, edge_slots: Ids, log: Ids, rows: Ids, at: Ids,
    seeds: Ids, heap: Ids, stack: Ids, out: Ids, arrivals: Ids,
) -> int:  # fmt: skip
    """One slide: arrivals come, and those with a number below LEFT go."""
    last = log.size // st.LOG_SIZE - 1
    if desk[st.PHASE] == _LAY:
        while desk[st.OPENS] < desk[st.END] and log[(desk[st.OPENS] & last) * st.LOG_SIZE + st.NUMBER] < desk[st.LEFT]:
            desk[st.OPENS] += 1
        code = _lay(desk, plan, nodes, pool, trees, edges, edge_slots, log, rows, at, out, arrivals)
        if code:
            return code
        desk[st.NEXT] = 0
        desk[st.PHASE] = _GATHER
    while desk[st.PHASE] != _LEAVE:
        if desk[st.PHASE] == _GATHER:
            code = _gather(desk, plan, nodes, pool, trees, edges, log, at, seeds, out, arrivals)
            if code and (code != st.SEEDS_FULL or seeds.size < desk[st.MOST_SEEDS] * st.SEED_SIZE):
                return code
            desk[st.PHASE] = _DRAIN
        code = _drain(desk, plan, nodes, pool, trees, edges, log, rows, at, seeds, heap, stack, out)
        if code:
            return code
        desk[st.PHASE] = _LEAVE if desk[st.NEXT] * 3 == arrivals.size else _GATHER
    code = _leave(desk, plan, nodes, pool, trees, edges, edge_slots, log, rows, at, out)
    if code:
        return code
    desk[st.PHASE] = _LAY
    return st.DONE
