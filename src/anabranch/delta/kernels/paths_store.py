"""Store of trees of (vertex, state): a log, nodes, edges, tables, and how each is written.

An edge (row = vertex * symbols + symbol, vertex) has the tick of its newest arrival: its position in the log of all
arrivals that fit. A node (source, place = vertex * states + state) has the best tick of all walks that lead from
(source, state 0) to it, where the tick of a walk is that of its oldest edge. A source is the root of its own tree; its
tick is that of its newest edge with which a path can begin.

Numbers of nodes and edges are kept as number + 1 where 0 means none. The table of a tree is in the pool, so that the
memory of one tree stays close together. Beside a node's number + 1 stands its tick, counted from an origin in 31 bits
(<< 32): most walks lead to nodes that are already as good, of which nothing else is read. Tables that no tree uses any
more are in lists by their size.

Invariants: a node is in the list of its place, in the table of its tree, and in the due list of its tick or of an
earlier position; a better tick is written without changing the due list. LASTING ticks are in no due list. The edge of
a log's position has the position as its tick.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anabranch.delta.batch import Ids
from anabranch.delta.kernels.compiling import Int, Record, Records, compiled, fields, inlined, kernel, unsigned

# what a kernel comes back with
DONE, PAUSED, EDGES_FULL, LOG_FULL, NODES_FULL, SEEDS_FULL, HEAP_FULL, STACK_FULL, OUT_FULL, TOO_MANY, POOL_FULL = (
    range(11)
)
LAY, GATHER, DRAIN, LEAVE = range(4)  # phases of a slide

_MOST_BITS = 32  # of a table
_SUPPLY = np.dtype(fields("end free used"))  # of records: the first one never used, a free one + 1, those in use

STATE = np.dtype([
    *fields("tail end opens"),  # positions of the log: the first, the next, and where the window of this slide opens
    *fields("phase next move cursor"),  # where a slide has come to: the arrival, the move and the node to lead along it
    *fields("level source"),  # the tick that spreads, and the tree in which it does; -1: none
    *fields("lasts left fuel limit origin"),  # whether arrivals never leave; those with a number below `left` do
    *fields("seeds touched most_seeds heap stack told"),
    *fields("edge_bits pool_end pool_used"),
    ("nodes", _SUPPLY),
    ("edges", _SUPPLY),
    ("pool_free", np.int64, _MOST_BITS),  # a table of each size in bits, by where it begins + 1
])  # fmt: skip

# Of `only` and `target` -1 means any vertex.
PLAN = np.dtype([*fields("states symbols only target loops")])
MOVES = np.dtype(fields("first end is_marked"))  # of a state: whether it accepts; of a symbol: whether a path begins so
MOVE = np.dtype(fields("by to"))  # the symbol of a state's move, or the state of a symbol's; and the state it leads to

ITEM = np.dtype([
    *fields("key"),  # of a node source << 32 | place, of an edge row << 32 | vertex; -1: not in use
    *fields("tick"),
    *fields("links"),  # in the list of the same place or row: the one before << 32 | the one behind
    *fields("hangs"),  # the next node in the due list of a position; not in use: the next free one
])  # fmt: skip
SLOT = np.dtype(fields("key held"))  # of a hash table; held: number + 1, of nodes with the tick << 32; 0: empty
TREE = np.dtype(fields("base bits used waiting"))  # of a source: its table, its nodes, its first seed + 1
ENTRY = np.dtype(fields("number edge due"))  # the arrival, its edge (-1: it came again), the first node that is due
SEED = np.dtype(fields("node next source"))  # the next seed of the same source; and the n-th source that has seeds
ARRIVAL = np.dtype(fields("row vertex number edge tick"))  # as it came; then the edge, -1: nothing is new, and its tick
TOLD = np.dtype(fields("source vertex weight"))

LOW = 0xFFFFFFFF
LASTING = 1 << 62
_FARTHEST = (1 << 31) - 1  # from the origin: what lasts
WAITS = 1 << 32  # in `hangs`: the node is a seed
LEAST_BITS = 2  # of a table
_ONE = np.uint64(1)


class PathPlan(NamedTuple):
    """The automaton; of the header there is one record."""

    headers: Records
    states: Records
    state_moves: Records
    symbols: Records
    symbol_moves: Records
    accepting: Ids


class PathForest(NamedTuple):
    """The trees and the output; the state is one record. `heads` are the lists of nodes by place."""

    states: Records
    nodes: Records
    trees: Records
    pool: Records
    log: Records
    heads: Ids
    told: Records


class PathEdges(NamedTuple):
    """The edges, their hash table, and the lists of them by row."""

    items: Records
    slots: Records
    heads: Ids


class PathWork(NamedTuple):
    """Nodes that became better and wait to be spread."""

    seeds: Records
    heap: Ids
    stack: Ids


# --- hash tables ---


@inlined
def _home(bits: Int, key: Int) -> Int:
    """Return the first slot to probe for a key: the first bits of a product, which are its best."""
    return (unsigned(key) * np.uint64(0x9E3779B97F4A7C15)) >> unsigned(64 - bits)


@inlined
def slot_of(table: Records, base: Int, bits: Int, key: Int) -> Int:
    """Return the slot of a key, or the empty slot where it would be, in a table of 1 << bits slots that begins at
    `base`."""
    first, last = unsigned(base), (_ONE << unsigned(bits)) - _ONE
    slot = _home(bits, key)
    while table[first + slot].held != 0 and table[first + slot].key != key:
        slot = (slot + _ONE) & last
    return first + slot


@inlined
def vacate(table: Records, base: Int, bits: Int, place: Int) -> None:
    """Empty a slot, and move up the keys behind it that would rather be here."""
    first, last = unsigned(base), (_ONE << unsigned(bits)) - _ONE
    hole = place - first
    other = (hole + _ONE) & last
    while table[first + other].held != 0:
        if ((other - _home(bits, table[first + other].key)) & last) >= ((other - hole) & last):
            table[first + hole].key, table[first + hole].held = table[first + other].key, table[first + other].held
            hole = other
        other = (other + _ONE) & last
    table[first + hole].held = 0


# --- tables of trees ---


@inlined
def has_room(state: Record, pool: Records, bits: Int) -> bool:
    """Return whether the pool has room for a table of this many bits."""
    return bool(state.pool_free[bits] > 0 or state.pool_end + (1 << bits) <= pool.size)


@compiled
def resize_table(state: Record, pool: Records, tree: Record, bits: Int) -> None:
    """Another table for a tree, of so many bits; of 0 bits: none. There is room in the pool."""
    before, old_bits = tree.base, tree.bits
    if bits > 0:
        base = state.pool_free[bits] - 1
        if base >= 0:
            state.pool_free[bits] = pool[base].key
        else:
            base = state.pool_end
            state.pool_end += 1 << bits
        state.pool_used += 1 << bits
        for slot in range(base, base + (1 << bits)):
            pool[slot].held = 0
        tree.base = base
        if old_bits > 0:
            for slot in range(before, before + (1 << old_bits)):
                if pool[slot].held != 0:
                    to = slot_of(pool, base, bits, pool[slot].key)
                    pool[to].key, pool[to].held = pool[slot].key, pool[slot].held
    tree.bits = bits
    if old_bits > 0:
        pool[before].key = state.pool_free[old_bits]
        state.pool_free[old_bits] = before + 1
        state.pool_used -= 1 << old_bits


# --- nodes and edges ---


@inlined
def link(items: Records, heads: Ids, item: Int, head: Int) -> None:
    """Put an item at the beginning of a list."""
    behind = heads[unsigned(head)]
    items[unsigned(item)].links = behind
    if behind > 0:
        after = items[unsigned(behind - 1)]
        after.links = ((item + 1) << 32) | (after.links & LOW)
    heads[unsigned(head)] = item + 1


@inlined
def unlink(items: Records, heads: Ids, item: Int, head: Int) -> None:
    """Take an item out of its list."""
    links = items[unsigned(item)].links
    before, behind = links >> 32, links & LOW
    if before > 0:
        other = items[unsigned(before - 1)]
        other.links = ((other.links >> 32) << 32) | behind
    else:
        heads[unsigned(head)] = behind
    if behind > 0:
        other = items[unsigned(behind - 1)]
        other.links = (before << 32) | (other.links & LOW)


@inlined
def take(supply: Record, items: Records) -> Int:
    """An item that is not in use. There is one."""
    item = supply.free - 1
    if item >= 0:
        supply.free = items[unsigned(item)].hangs
    else:
        item = supply.end
        supply.end += 1
    supply.used += 1
    return item


@inlined
def give_back(supply: Record, items: Records, item: Int) -> None:
    """An item is no longer in use."""
    items[unsigned(item)].key = -1
    items[unsigned(item)].hangs = supply.free
    supply.free = item + 1
    supply.used -= 1


@inlined
def lacks(supply: Record, items: Records) -> bool:
    """Return whether all items are in use."""
    return bool(supply.free == 0 and supply.end >= items.size)


# --- nodes ---


@inlined
def entry_of(log: Records, tick: Int) -> Int:
    """The place of a position in the log."""
    return unsigned(tick & (log.size - 1))


@inlined
def worth_of(state: Record, tick: Int) -> Int:
    """A tick in 31 bits: counted from the origin."""
    return min(tick - state.origin, _FARTHEST)


@inlined
def hang(nodes: Records, log: Records, node: Int, tick: Int) -> None:
    """Add a node to the due list of its tick. LASTING ticks have no due list."""
    if tick != LASTING:
        entry = log[entry_of(log, tick)]
        nodes[unsigned(node)].hangs = entry.due
        entry.due = node + 1
    else:
        nodes[unsigned(node)].hangs = 0


@inlined
def _is_asked(header: Record, source: Int, vertex: Int) -> bool:
    """Return whether the plan asks for a pair."""
    return bool((not header.loops or source == vertex) and (header.target < 0 or header.target == vertex))


@compiled
def tell(forest: PathForest, plan: PathPlan, key: Int, weight: Int) -> None:
    """Give out a pair that comes or goes with an accepting node, unless another state accepts it too. The node itself
    is not in the table at this moment, and there is room."""
    header, state = plan.headers[0], forest.states[0]
    source, vertex = key >> 32, (key & LOW) // header.states
    if not _is_asked(header, source, vertex):
        return
    tree = forest.trees[source]
    if tree.bits > 0:
        for accepted in plan.accepting:
            if forest.pool[slot_of(forest.pool, tree.base, tree.bits, vertex * header.states + accepted)].held != 0:
                return
    told = forest.told[state.told]
    told.source, told.vertex, told.weight = source, vertex, weight
    state.told += 1


@inlined
def improved(forest: PathForest, plan: PathPlan, source: Int, place: Int, reached: Int, tick: Int) -> Int:
    """The node, made where there is none, if the tick is better than its own; else -1. There is room. `reached` is the
    state of the place."""
    state, tree = forest.states[0], forest.trees[unsigned(source)]
    nodes = forest.nodes
    slot = forest.pool[slot_of(forest.pool, tree.base, tree.bits, place)]
    worth = worth_of(state, tick)
    if slot.held != 0:
        if slot.held >> 32 >= worth:
            return -1
        node = (slot.held & LOW) - 1
        slot.held = (worth << 32) | (node + 1)
        nodes[unsigned(node)].tick = tick
        return node
    key = (source << 32) | place
    if plan.states[unsigned(reached)].is_marked:
        tell(forest, plan, key, 1)
    node = take(state.nodes, nodes)
    tree.used += 1
    slot.key, slot.held = place, (worth << 32) | (node + 1)
    nodes[unsigned(node)].key = key
    nodes[unsigned(node)].tick = tick
    link(nodes, forest.heads, node, place)
    hang(nodes, forest.log, node, tick)
    return node


@inlined
def room_for_node(forest: PathForest, source: Int) -> Int:
    """Return DONE if a node and its output fit, else why not; a tree with a full table gets a larger one."""
    state, tree = forest.states[0], forest.trees[unsigned(source)]
    if lacks(state.nodes, forest.nodes):
        return NODES_FULL
    if state.told >= forest.told.size:
        return OUT_FULL
    if state.nodes.used > state.limit:
        return TOO_MANY
    bits = tree.bits
    if bits == 0 or (tree.used + 1) * 4 > 3 << bits:
        larger = max(bits + 1, LEAST_BITS)
        if not has_room(state, forest.pool, larger):
            return POOL_FULL
        resize_table(state, forest.pool, tree, larger)
    return DONE


# --- shrinking and rebuilding ---


@kernel
def move_tables(forest: PathForest, packed: Records) -> None:
    """All tables side by side in another pool, which has room for them."""
    state = forest.states[0]
    end = 0
    for number in range(forest.trees.size):
        tree = forest.trees[number]
        if tree.bits > 0:
            base = tree.base
            tree.base = end
            for slot in range(base, base + (1 << tree.bits)):
                packed[end].key, packed[end].held = forest.pool[slot].key, forest.pool[slot].held
                end += 1
    state.pool_end = end
    for bits in range(_MOST_BITS):
        state.pool_free[bits] = 0


@kernel
def rate_nodes(forest: PathForest) -> None:
    """Write the numbers and the ticks of nodes into the tables: they have changed, or are counted from another
    origin. Between slides."""
    state = forest.states[0]
    for node in range(state.nodes.end):
        own = forest.nodes[node]
        if own.key >= 0:
            tree = forest.trees[own.key >> 32]
            slot = slot_of(forest.pool, tree.base, tree.bits, own.key & LOW)
            forest.pool[slot].held = (worth_of(state, own.tick) << 32) | (node + 1)


@kernel
def plant_edges(states: Records, edges: PathEdges) -> None:
    """Put all edges into an empty table."""
    state = states[0]
    for edge in range(state.edges.end):
        key = edges.items[edge].key
        if key >= 0:
            slot = slot_of(edges.slots, 0, state.edge_bits, key)
            edges.slots[slot].key, edges.slots[slot].held = key, edge + 1


@kernel
def pack_nodes(forest: PathForest, packed: Records) -> None:
    """All nodes side by side in another array; lists and hangings are made again. Between slides."""
    state, nodes, log = forest.states[0], forest.nodes, forest.log
    for tick in range(state.tail, state.end):
        log[entry_of(log, tick)].due = 0
    for node in range(state.nodes.end):
        if nodes[node].key >= 0:
            forest.heads[nodes[node].key & LOW] = 0
    count = 0
    for node in range(state.nodes.end):
        key, tick = nodes[node].key, nodes[node].tick
        if key >= 0:
            packed[count].key, packed[count].tick = key, tick
            link(packed, forest.heads, count, key & LOW)
            hang(packed, log, count, tick)
            count += 1
    state.nodes.end = count
    state.nodes.free = 0


@kernel
def pack_edges(states: Records, edges: PathEdges, packed: Records, log: Records) -> None:
    """All edges side by side in another array, in lists made again. Between slides."""
    state, items = states[0], edges.items
    for edge in range(state.edges.end):
        if items[edge].key >= 0:
            edges.heads[items[edge].key >> 32] = 0
    count = 0
    for edge in range(state.edges.end):
        key, tick = items[edge].key, items[edge].tick
        if key >= 0:
            packed[count].key, packed[count].tick = key, tick
            link(packed, edges.heads, count, key >> 32)
            if tick != LASTING:
                log[entry_of(log, tick)].edge = count
            count += 1
    state.edges.end = count
    state.edges.free = 0


@kernel
def list_pairs(forest: PathForest, plan: PathPlan, out: Ids) -> Int:
    """All pairs, each by the first of its states that accept; how many. `out` has room for as many as there are
    nodes."""
    header, count = plan.headers[0], 0
    for node in range(forest.states[0].nodes.end):
        key = forest.nodes[node].key
        if key < 0 or not plan.states[(key & LOW) % header.states].is_marked:
            continue
        source, vertex = key >> 32, (key & LOW) // header.states
        if not _is_asked(header, source, vertex):
            continue
        is_first = True
        tree = forest.trees[source]
        for accepted in plan.accepting:
            other = vertex * header.states + accepted
            if other == key & LOW:
                break
            if forest.pool[slot_of(forest.pool, tree.base, tree.bits, other)].held != 0:
                is_first = False
                break
        if is_first:
            out[2 * count], out[2 * count + 1] = source, vertex
            count += 1
    return count
