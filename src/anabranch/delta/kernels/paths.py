"""Trees of (vertex, state) over a window's edges, as kernels: edges come, values spread, nodes that are due leave.

`paths_store` describes the state. A slide: edges are added; all nodes at their starts are led along them; per source
the nodes that became better spread, the best first (Dijkstra's order for widest paths), so that every node is settled
once. Then the log's tail moves: the nodes stored at leaving positions are removed, or stored at the position where they
are due now.

Every kernel can return where it needs room or has no more fuel, and is called again: relaxing a node twice changes
nothing.

Invariants between slides: for every edge (u, symbol, v, t) and node (s, u, q) with a move from q to r by the symbol,
node (s, v, r) exists and its tick is at least min(t, that of (s, u, q)); no node's tick is before the tail. So ticks
are exact, and a node that is due has no other walk that keeps it alive.
"""

from __future__ import annotations

from anabranch.delta.batch import Ids
from anabranch.delta.kernels import paths_store as st
from anabranch.delta.kernels.compiling import Int, Record, Records, inlined, kernel, unsigned
from anabranch.delta.kernels.paths_store import (
    PathEdges,
    PathForest,
    PathPlan,
    PathWork,
    entry_of,
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

# --- edges come ---


@inlined
def _lay_edge(state: Record, edges: PathEdges, log: Records, arrival: Record) -> Int:
    """The edge of an arrival, made where there is none; -1: it lasts already."""
    key = (arrival.row << 32) | arrival.vertex
    slot = edges.slots[slot_of(edges.slots, 0, state.edge_bits, key)]
    if slot.held != 0:
        edge = slot.held - 1
        before = edges.items[unsigned(edge)].tick
        if before == st.LASTING:
            return -1
        log[entry_of(log, before)].edge = -1
        return edge
    edge = take(state.edges, edges.items)
    slot.key, slot.held = key, edge + 1
    edges.items[unsigned(edge)].key = key
    link(edges.items, edges.heads, edge, arrival.row)
    return edge


@inlined
def _lay(forest: PathForest, edges: PathEdges, plan: PathPlan, arrivals: Records) -> Int:
    """Take in arrivals; of each is left its edge and tick."""
    state, header, log = forest.states[0], plan.headers[0], forest.log
    lasts = state.lasts != 0
    while state.next < arrivals.size:
        arrival = arrivals[unsigned(state.next)]
        if lacks(state.edges, edges.items):
            return st.EDGES_FULL
        if not lasts and state.end - state.tail >= log.size:
            return st.LOG_FULL
        source = arrival.row // header.symbols
        begins = plan.symbols[arrival.row % header.symbols].is_marked and (header.only < 0 or header.only == source)
        if begins:
            code = room_for_node(forest, source)
            if code:
                return code
        state.next += 1
        tick = st.LASTING if lasts else state.end
        edge = _lay_edge(state, edges, log, arrival)
        arrival.edge, arrival.tick = edge, tick
        if edge < 0:
            continue
        edges.items[unsigned(edge)].tick = tick
        if not lasts:
            entry = log[entry_of(log, tick)]
            entry.number, entry.edge, entry.due = arrival.number, edge, 0
            state.end += 1
        if begins:
            improved(forest, plan, source, source * header.states, 0, tick)
    return st.DONE


@inlined
def _seed(forest: PathForest, seeds: Records, node: Int, source: Int) -> None:
    """Add a node that became better to the waiting seeds, unless it is there."""
    state, own, tree = forest.states[0], forest.nodes[unsigned(node)], forest.trees[unsigned(source)]
    if own.hangs >= st.WAITS:
        return
    own.hangs |= st.WAITS
    seed = seeds[unsigned(state.seeds)]
    seed.node, seed.next = node, tree.waiting
    if tree.waiting == 0:
        seeds[unsigned(state.touched)].source = source
        state.touched += 1
    state.seeds += 1
    tree.waiting = state.seeds


@inlined
def _gather(forest: PathForest, edges: PathEdges, plan: PathPlan, seeds: Records, arrivals: Records) -> Int:
    """Lead the nodes at the beginnings of new edges along them; those that become better are seeds."""
    state, header, nodes = forest.states[0], plan.headers[0], forest.nodes
    states, symbols = header.states, header.symbols
    while state.next < arrivals.size:
        edge, tick = arrivals[unsigned(state.next)].edge, arrivals[unsigned(state.next)].tick
        if edge >= 0 and edges.items[unsigned(edge)].tick == tick:
            key = edges.items[unsigned(edge)].key
            begin, vertex = (key >> 32) // symbols, key & st.LOW
            moves = plan.symbols[(key >> 32) % symbols]
            while moves.first + state.move < moves.end:
                move = plan.symbol_moves[unsigned(moves.first + state.move)]
                if state.cursor == 0:
                    state.cursor = forest.heads[unsigned(begin * states + move.by)]
                while state.cursor > 0:
                    own = nodes[unsigned(state.cursor - 1)]
                    best = min(own.tick, tick)
                    if best >= state.opens:
                        if state.seeds >= seeds.size:
                            return st.SEEDS_FULL
                        source = own.key >> 32
                        code = room_for_node(forest, source)
                        if code:
                            return code
                        found = improved(forest, plan, source, vertex * states + move.to, move.to, best)
                        if found >= 0:
                            _seed(forest, seeds, found, source)
                    state.fuel -= 1
                    state.cursor = own.links & st.LOW
                state.move += 1
        state.move = 0
        state.next += 1
        if state.fuel < 0:
            return st.PAUSED
    return st.DONE


# --- values spread ---


@inlined
def _push(heap: Ids, used: Int, packed: Int) -> None:
    place = used
    while place > 0 and heap[unsigned((place - 1) >> 1)] < packed:
        heap[unsigned(place)] = heap[unsigned((place - 1) >> 1)]
        place = (place - 1) >> 1
    heap[unsigned(place)] = packed


@inlined
def _pop(heap: Ids, used: Int) -> Int:
    """The greatest of `used` items; the others are left."""
    found, item = heap[0], heap[unsigned(used - 1)]
    place, child = 0, 1
    while child < used - 1:
        if child + 1 < used - 1 and heap[unsigned(child + 1)] > heap[unsigned(child)]:
            child += 1
        if heap[unsigned(child)] <= item:
            break
        heap[unsigned(place)] = heap[unsigned(child)]
        place, child = child, 2 * child + 1
    heap[unsigned(place)] = item
    return found


@inlined
def _relax(forest: PathForest, edges: PathEdges, plan: PathPlan, work: PathWork, node: Int) -> Int:
    """Lead a node on along all edges: nodes that become as good as it is go on the stack, others into the heap."""
    state, header = forest.states[0], plan.headers[0]
    states, symbols, opens, level = header.states, header.symbols, state.opens, state.level
    key = forest.nodes[unsigned(node)].key
    source = key >> 32
    vertex, moves = (key & st.LOW) // states, plan.states[(key & st.LOW) % states]
    for number in range(moves.first, moves.end):
        move = plan.state_moves[unsigned(number)]
        edge = edges.heads[unsigned(vertex * symbols + move.by)]
        while edge > 0:
            own = edges.items[unsigned(edge - 1)]
            edge = own.links & st.LOW
            state.fuel -= 1
            tick = min(level, own.tick)
            if tick < opens:
                continue
            code = room_for_node(forest, source)
            if code:
                return code
            if state.heap == work.heap.size:
                return st.HEAP_FULL
            if state.stack + 2 > work.stack.size:
                return st.STACK_FULL
            found = improved(forest, plan, source, (own.key & st.LOW) * states + move.to, move.to, tick)
            if found < 0:
                continue
            if tick == level:
                work.stack[unsigned(state.stack)] = found
                state.stack += 1
            else:
                _push(work.heap, state.heap, (worth_of(state, tick) << 32) | found)
                state.heap += 1
    return st.DONE


@inlined
def _heap_up(forest: PathForest, work: PathWork) -> Int:
    """Put the seeds of the source that spreads into the heap."""
    state, tree = forest.states[0], forest.trees[unsigned(forest.states[0].source)]
    while tree.waiting > 0:
        if state.heap == work.heap.size:
            return st.HEAP_FULL
        seed = work.seeds[unsigned(tree.waiting - 1)]
        own = forest.nodes[unsigned(seed.node)]
        own.hangs &= st.LOW
        _push(work.heap, state.heap, (worth_of(state, own.tick) << 32) | seed.node)
        state.heap += 1
        tree.waiting = seed.next
    return st.DONE


@inlined
def _next_node(forest: PathForest, work: PathWork) -> Int:
    """The node to relax next; -1: one that became better in the meantime, and was relaxed."""
    state = forest.states[0]
    if state.stack > 0:
        state.stack -= 1
        return work.stack[unsigned(state.stack)]
    packed = _pop(work.heap, state.heap)
    state.heap -= 1
    node = packed & st.LOW
    tick = forest.nodes[unsigned(node)].tick
    if worth_of(state, tick) != packed >> 32:
        return -1
    state.level = tick
    return node


@inlined
def _drain(forest: PathForest, edges: PathEdges, plan: PathPlan, work: PathWork) -> Int:
    """Spread the nodes that became better, source by source, until no seed is left."""
    state = forest.states[0]
    while True:
        if state.source >= 0:
            code = _heap_up(forest, work)
            if code:
                return code
        while state.stack > 0 or state.heap > 0:
            if state.fuel < 0:
                return st.PAUSED
            node = _next_node(forest, work)
            if node < 0:
                continue
            code = _relax(forest, edges, plan, work, node)
            if code:
                work.stack[state.stack] = node
                state.stack += 1
                return code
        if state.touched == 0:
            state.seeds = 0
            state.source = -1
            return st.DONE
        state.touched -= 1
        state.source = work.seeds[state.touched].source


# --- nodes that are due leave ---


@inlined
def _leave_tree(forest: PathForest, key: Int) -> None:
    """Give a tree with a table that is too large a smaller one; a tree without nodes has none."""
    state, pool, tree = forest.states[0], forest.pool, forest.trees[unsigned(key >> 32)]
    base, bits = tree.base, tree.bits
    vacate(pool, base, bits, slot_of(pool, base, bits, key & st.LOW))
    tree.used -= 1
    if tree.used == 0:
        resize_table(state, pool, tree, 0)
    elif bits > st.LEAST_BITS + 1 and tree.used * 8 < 1 << bits and has_room(state, pool, bits - 2):
        resize_table(state, pool, tree, bits - 2)


@inlined
def _leave_node(forest: PathForest, plan: PathPlan, node: Int) -> None:
    """Remove a node if the window no longer reaches its tick; else store it at the position where it is due now."""
    state, nodes = forest.states[0], forest.nodes
    key, tick = nodes[unsigned(node)].key, nodes[unsigned(node)].tick
    if tick >= state.opens:
        hang(nodes, forest.log, node, tick)
        return
    unlink(nodes, forest.heads, node, key & st.LOW)
    give_back(state.nodes, nodes, node)
    _leave_tree(forest, key)
    if plan.states[(key & st.LOW) % plan.headers[0].states].is_marked:
        tell(forest, plan, key, -1)


@inlined
def _leave(forest: PathForest, edges: PathEdges, plan: PathPlan) -> Int:
    """Move the tail to where the window opens."""
    state = forest.states[0]
    while state.tail < state.opens:
        entry = forest.log[entry_of(forest.log, state.tail)]
        while entry.due > 0:
            if state.told >= forest.told.size:
                return st.OUT_FULL
            node = entry.due - 1
            entry.due = forest.nodes[unsigned(node)].hangs
            state.fuel -= 1
            _leave_node(forest, plan, node)
        if entry.edge >= 0:
            key, bits = edges.items[unsigned(entry.edge)].key, state.edge_bits
            unlink(edges.items, edges.heads, entry.edge, key >> 32)
            vacate(edges.slots, 0, bits, slot_of(edges.slots, 0, bits, key))
            give_back(state.edges, edges.items, entry.edge)
        state.tail += 1
        if state.fuel < 0:
            return st.PAUSED
    return st.DONE


# --- what is called from outside ---


@kernel
def run_slide(forest: PathForest, edges: PathEdges, plan: PathPlan, work: PathWork, arrivals: Records) -> Int:
    """Run one slide: add arrivals, and remove those with a number below `left`."""
    state, log = forest.states[0], forest.log
    if state.phase == st.LAY:
        while state.opens < state.end and log[entry_of(log, state.opens)].number < state.left:
            state.opens += 1
        code = _lay(forest, edges, plan, arrivals)
        if code:
            return code
        state.next = 0
        state.phase = st.GATHER
    while state.phase != st.LEAVE:
        if state.phase == st.GATHER:
            code = _gather(forest, edges, plan, work.seeds, arrivals)
            if code and (code != st.SEEDS_FULL or work.seeds.size < state.most_seeds):
                return code
            state.phase = st.DRAIN
        code = _drain(forest, edges, plan, work)
        if code:
            return code
        state.phase = st.LEAVE if state.next == arrivals.size else st.GATHER
    code = _leave(forest, edges, plan)
    if code:
        return code
    state.phase = st.LAY
    return st.DONE
