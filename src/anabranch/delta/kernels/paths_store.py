"""What trees of (vertex, state) are kept in: a log, nodes, edges, tables, and how each is written.

An edge (row = vertex * symbols + symbol, vertex) has the tick of its newest arrival: its position in the log of all
arrivals that fit. A node (source, place = vertex * states + state) has the best tick of all walks that lead from
(source, state 0) to it, where a walk is worth as much as its oldest edge. A source is the root of its own tree, worth
as much as its newest edge that a path can begin with.

    log         per position: the arrival's number, its edge (-1 once that has come again), the nodes that hang here
    nodes       key (source << 32 | place), tick, neighbours in the list of the nodes at the same place, next that hangs
    edges       key (row << 32 | vertex), tick, neighbours in the list of the same row, next free
    edge_slots  the hash table of all edges: a key, and the edge's number + 1; 0: empty
    trees       per source: where its table begins in the pool, of how many bits it is (0: none), how many nodes it
                has, the first of its nodes that wait to be spread
    pool        the hash tables of all trees, by place, so that a tree that is worked on stays in near memory. With a
                node's number + 1 stands its tick, counted from an origin in 31 bits (<< 32): most walks lead to nodes
                that are as good already, of which nothing else is read

Lists begin in `at` (by place) and `rows` (by row), as number + 1; 0: none. Tables that nobody uses any more are in
lists by their size.

Invariants: a node is in the list of its place, in the table of its tree, and hangs on its tick or before it; a better
tick is written without touching the hanging. LASTING ticks hang nowhere. The edge of a log's position has the position
as its tick.
"""

from __future__ import annotations

import numpy as np

from anabranch.delta.batch import Ids
from anabranch.delta.kernels.log_store import compiled, inlined, kernel

# what a kernel comes back with
DONE, PAUSED, EDGES_FULL, LOG_FULL, NODES_FULL, SEEDS_FULL, HEAP_FULL, STACK_FULL, OUT_FULL, TOO_MANY, POOL_FULL = (
    range(11)
)

# words of `desk`
(
    TAIL, END, OPENS, PHASE, NEXT, MOVE, CURSOR, LEVEL, SOURCE, LASTS, FUEL, LIMIT,
    NODE_END, NODE_FREE, NODES, EDGE_END, EDGE_FREE, EDGES, SEEDS, TOUCHED, HEAP, STACK, OUT, LEFT, ORIGIN, MOST_SEEDS,
    EDGE_BITS, POOL_END, POOL_USED, POOL_FREE,
) = range(30)  # fmt: skip
DESK_SIZE = 30 + 32  # free tables of each size, by bits

# words of `plan`; the rest are lists, of which these say where they begin
STATES, SYMBOLS, ONLY, TARGET, LOOPS, ACCEPTING, ACCEPTED, FIRSTS, BY_STATE, BY_SYMBOL = range(10)
PLAN_SIZE = 10

NODE_SIZE = EDGE_SIZE = 4
KEY, TICK, LINKS, HANGS = range(4)
TREE_SIZE = 4
BASE, BITS, USED, WAITING = range(4)
LOG_SIZE = 3
NUMBER, EDGE, DUE = range(3)
SEED_SIZE = 3  # a node, the next seed of its source + 1; in the place of the n-th seed, the n-th source
OUT_SIZE = 3

LOW = 0xFFFFFFFF
LASTING = 1 << 62
_FARTHEST = (1 << 31) - 1  # from the origin: what lasts
WAITS = 1 << 32  # in HANGS: the node is a seed
LEAST_BITS = 2  # of a table


# --- hash tables ---


@inlined
def slot_of(table: Ids, base: int, bits: int, key: int) -> int:
    """Where a key is, or the empty slot where it would be, in a table of 1 << bits slots that begins at `base`. By the
    first bits of a product, which are its best."""
    last = (2 << bits) - 1
    slot = np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - bits)) << 1
    while table[base + slot + 1] != 0 and table[base + slot] != key:
        slot = (slot + 2) & last
    return int(base + slot)


@inlined
def vacate(table: Ids, base: int, bits: int, place: int) -> None:
    """Empty a slot, and move up what stands behind it and would rather be here."""
    last = (2 << bits) - 1
    hole = place - base
    other = (hole + 2) & last
    while table[base + other + 1] != 0:
        key = table[base + other]
        home = np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - bits)) << 1
        if ((other - home) & last) >= ((other - hole) & last):
            table[base + hole], table[base + hole + 1] = key, table[base + other + 1]
            hole = other
        other = (other + 2) & last
    table[base + hole + 1] = 0


# --- tables of trees ---


@inlined
def has_room(desk: Ids, pool: Ids, bits: int) -> bool:
    return bool(desk[POOL_FREE + bits] > 0 or desk[POOL_END] + (2 << bits) <= pool.size)


@compiled
def resize_table(desk: Ids, pool: Ids, trees: Ids, source: int, bits: int) -> None:
    """Another table for a tree, of so many slots; of 0 bits: none. There is room in the pool."""
    tree = source * TREE_SIZE
    before, old_bits = trees[tree + BASE], trees[tree + BITS]
    if bits > 0:
        if desk[POOL_FREE + bits] > 0:
            base = desk[POOL_FREE + bits] - 1
            desk[POOL_FREE + bits] = pool[base]
        else:
            base = desk[POOL_END]
            desk[POOL_END] += 2 << bits
        desk[POOL_USED] += 2 << bits
        for word in range(base, base + (2 << bits)):
            pool[word] = 0
        trees[tree + BASE] = base
        if old_bits > 0:
            for slot in range(before, before + (2 << old_bits), 2):
                if pool[slot + 1] != 0:
                    to = slot_of(pool, base, bits, pool[slot])
                    pool[to], pool[to + 1] = pool[slot], pool[slot + 1]
    trees[tree + BITS] = bits
    if old_bits > 0:
        pool[before] = desk[POOL_FREE + old_bits]
        desk[POOL_FREE + old_bits] = before + 1
        desk[POOL_USED] -= 2 << old_bits


# --- records ---


@inlined
def link(records: Ids, heads: Ids, record: int, head: int) -> None:
    """Put a record at the beginning of a list. LINKS is the one before << 32 | the one behind, each + 1."""
    behind = heads[head]
    records[record * NODE_SIZE + LINKS] = behind
    if behind > 0:
        at = (behind - 1) * NODE_SIZE + LINKS
        records[at] = ((record + 1) << 32) | (records[at] & LOW)
    heads[head] = record + 1


@inlined
def unlink(records: Ids, heads: Ids, record: int, head: int) -> None:
    before, behind = records[record * NODE_SIZE + LINKS] >> 32, records[record * NODE_SIZE + LINKS] & LOW
    if before > 0:
        at = (before - 1) * NODE_SIZE + LINKS
        records[at] = ((records[at] >> 32) << 32) | behind
    else:
        heads[head] = behind
    if behind > 0:
        at = (behind - 1) * NODE_SIZE + LINKS
        records[at] = (before << 32) | (records[at] & LOW)


@inlined
def take(desk: Ids, records: Ids, free: int, end: int) -> int:
    """A record that nobody uses. There is one."""
    if desk[free] > 0:
        record = desk[free] - 1
        desk[free] = records[record * NODE_SIZE + HANGS]
    else:
        record = desk[end]
        desk[end] += 1
    return int(record)


@inlined
def give_back(desk: Ids, records: Ids, record: int, free: int) -> None:
    records[record * NODE_SIZE + KEY] = -1
    records[record * NODE_SIZE + HANGS] = desk[free]
    desk[free] = record + 1


@inlined
def lacks(desk: Ids, records: Ids, free: int, end: int) -> bool:
    return bool(desk[free] == 0 and (desk[end] + 1) * NODE_SIZE > records.size)


# --- nodes ---


@inlined
def worth_of(desk: Ids, tick: int) -> int:
    """A tick in 31 bits: counted from the origin."""
    return int(min(tick - desk[ORIGIN], _FARTHEST))


@inlined
def hang(nodes: Ids, log: Ids, node: int, tick: int) -> None:
    """Where a node is due. What lasts hangs nowhere."""
    if tick != LASTING:
        at = (tick & (log.size // LOG_SIZE - 1)) * LOG_SIZE + DUE
        nodes[node * NODE_SIZE + HANGS] = log[at]
        log[at] = node + 1
    else:
        nodes[node * NODE_SIZE + HANGS] = 0


@compiled
def tell(desk: Ids, plan: Ids, pool: Ids, trees: Ids, out: Ids, key: int, weight: int) -> None:
    """A pair comes or goes with a node that accepts, unless another state accepts it too. The node itself is not in
    the table at this moment, and there is room."""
    states = plan[STATES]
    source, vertex = key >> 32, (key & LOW) // states
    if (plan[LOOPS] and source != vertex) or (plan[TARGET] >= 0 and plan[TARGET] != vertex):
        return
    base, bits = trees[source * TREE_SIZE + BASE], trees[source * TREE_SIZE + BITS]
    for at in range(plan[ACCEPTED] + 1, plan[ACCEPTED] + 1 + plan[plan[ACCEPTED]]):
        if bits > 0 and pool[slot_of(pool, base, bits, vertex * states + plan[at]) + 1] != 0:
            return
    told = desk[OUT] * OUT_SIZE
    out[told], out[told + 1], out[told + 2] = source, vertex, weight
    desk[OUT] += 1


@inlined
def improved(
    desk: Ids, plan: Ids, nodes: Ids, pool: Ids, trees: Ids, log: Ids, at: Ids, out: Ids, source: int, place: int,
    state: int, tick: int,
) -> int:  # fmt: skip
    """The node, made where there is none, if the tick is better than its own; else -1. There is room."""
    slot = slot_of(pool, trees[source * TREE_SIZE + BASE], trees[source * TREE_SIZE + BITS], place)
    worth = worth_of(desk, tick)
    if pool[slot + 1] != 0:
        if pool[slot + 1] >> 32 >= worth:
            return -1
        node = (pool[slot + 1] & LOW) - 1
        pool[slot + 1] = (worth << 32) | (node + 1)
        nodes[node * NODE_SIZE + TICK] = tick
        return int(node)
    key = (source << 32) | place
    if plan[plan[ACCEPTING] + state]:
        tell(desk, plan, pool, trees, out, key, 1)
    node = take(desk, nodes, NODE_FREE, NODE_END)
    desk[NODES] += 1
    trees[source * TREE_SIZE + USED] += 1
    pool[slot], pool[slot + 1] = place, (worth << 32) | (node + 1)
    nodes[node * NODE_SIZE + KEY] = key
    nodes[node * NODE_SIZE + TICK] = tick
    link(nodes, at, node, place)
    hang(nodes, log, node, tick)
    return int(node)


@inlined
def room_for_node(desk: Ids, nodes: Ids, pool: Ids, trees: Ids, out: Ids, source: int) -> int:
    """Whether a node can be made and told; a tree whose table is full gets a larger one."""
    if lacks(desk, nodes, NODE_FREE, NODE_END):
        return NODES_FULL
    if (desk[OUT] + 1) * OUT_SIZE > out.size:
        return OUT_FULL
    if desk[NODES] > desk[LIMIT]:
        return TOO_MANY
    bits = trees[source * TREE_SIZE + BITS]
    if bits == 0 or (trees[source * TREE_SIZE + USED] + 1) * 4 > 3 << bits:
        larger = max(bits + 1, LEAST_BITS)
        if not has_room(desk, pool, larger):
            return POOL_FULL
        resize_table(desk, pool, trees, source, larger)
    return DONE


# --- smaller and anew ---


@kernel
def move_tables(desk: Ids, pool: Ids, packed: Ids, trees: Ids) -> None:
    """All tables side by side in another pool, which has room for them."""
    end = 0
    for tree in range(0, trees.size, TREE_SIZE):
        if trees[tree + BITS] > 0:
            base = trees[tree + BASE]
            trees[tree + BASE] = end
            for word in range(base, base + (2 << trees[tree + BITS])):
                packed[end] = pool[word]
                end += 1
    desk[POOL_END] = end
    for bits in range(32):
        desk[POOL_FREE + bits] = 0


@kernel
def rate_nodes(desk: Ids, nodes: Ids, pool: Ids, trees: Ids) -> None:
    """Write the numbers and the ticks of nodes into the tables: they have changed, or are counted from another
    origin. Between slides."""
    for node in range(desk[NODE_END]):
        key = nodes[node * NODE_SIZE + KEY]
        if key >= 0:
            tree = (key >> 32) * TREE_SIZE
            slot = slot_of(pool, trees[tree + BASE], trees[tree + BITS], key & LOW)
            pool[slot + 1] = (worth_of(desk, nodes[node * NODE_SIZE + TICK]) << 32) | (node + 1)


@kernel
def plant_edges(desk: Ids, edges: Ids, slots: Ids) -> None:
    """Put all edges into an empty table."""
    for edge in range(desk[EDGE_END]):
        key = edges[edge * EDGE_SIZE + KEY]
        if key >= 0:
            slot = slot_of(slots, 0, desk[EDGE_BITS], key)
            slots[slot], slots[slot + 1] = key, edge + 1


@kernel
def pack_nodes(desk: Ids, nodes: Ids, packed: Ids, at: Ids, log: Ids) -> None:
    """All nodes side by side in another array; lists and hangings are made anew. Between slides."""
    last = log.size // LOG_SIZE - 1
    for tick in range(desk[TAIL], desk[END]):
        log[(tick & last) * LOG_SIZE + DUE] = 0
    count = 0
    for node in range(desk[NODE_END]):
        key = nodes[node * NODE_SIZE + KEY]
        if key >= 0:
            at[key & LOW] = 0
    for node in range(desk[NODE_END]):
        key = nodes[node * NODE_SIZE + KEY]
        if key >= 0:
            packed[count * NODE_SIZE + KEY] = key
            packed[count * NODE_SIZE + TICK] = nodes[node * NODE_SIZE + TICK]
            link(packed, at, count, key & LOW)
            hang(packed, log, count, nodes[node * NODE_SIZE + TICK])
            count += 1
    desk[NODE_END] = count
    desk[NODE_FREE] = 0


@kernel
def pack_edges(desk: Ids, edges: Ids, packed: Ids, rows: Ids, log: Ids) -> None:
    """All edges side by side in another array, in lists made anew. Between slides."""
    last = log.size // LOG_SIZE - 1
    count = 0
    for edge in range(desk[EDGE_END]):
        key = edges[edge * EDGE_SIZE + KEY]
        if key >= 0:
            rows[key >> 32] = 0
    for edge in range(desk[EDGE_END]):
        key, tick = edges[edge * EDGE_SIZE + KEY], edges[edge * EDGE_SIZE + TICK]
        if key >= 0:
            packed[count * EDGE_SIZE + KEY] = key
            packed[count * EDGE_SIZE + TICK] = tick
            link(packed, rows, count, key >> 32)
            if tick != LASTING:
                log[(tick & last) * LOG_SIZE + EDGE] = count
            count += 1
    desk[EDGE_END] = count
    desk[EDGE_FREE] = 0


@kernel
def list_pairs(desk: Ids, plan: Ids, nodes: Ids, pool: Ids, trees: Ids, out: Ids) -> int:
    """All pairs, each by the first of its states that accept; how many. `out` has room for as many as there are
    nodes."""
    states, count = plan[STATES], 0
    first = plan[ACCEPTED] + 1
    for node in range(desk[NODE_END]):
        key = nodes[node * NODE_SIZE + KEY]
        if key < 0 or not plan[plan[ACCEPTING] + (key & LOW) % states]:
            continue
        source, vertex = key >> 32, (key & LOW) // states
        if (plan[LOOPS] and source != vertex) or (plan[TARGET] >= 0 and plan[TARGET] != vertex):
            continue
        is_first = True
        base, bits = trees[source * TREE_SIZE + BASE], trees[source * TREE_SIZE + BITS]
        for at in range(first, first + plan[plan[ACCEPTED]]):
            other = vertex * states + plan[at]
            if other == key & LOW:
                break
            if pool[slot_of(pool, base, bits, other) + 1] != 0:
                is_first = False
                break
        if is_first:
            out[2 * count], out[2 * count + 1] = source, vertex
            count += 1
    return count
