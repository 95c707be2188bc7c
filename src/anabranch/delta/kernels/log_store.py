"""The store of the log matcher: a log of entries, chains through it, a table of nodes, and a hash of facts if needed.

A fact that fits a pattern is an entry at the next position of the log. A variable that several patterns share has a
row per value, found by hashing when an entry is written and never again; the row holds, per incidence (pattern,
place), the position of the newest entry, and each entry the distance to the next older one. Chains fall in position,
hence expiry is moving the tail: a walk ends at the first position before it and nothing is unlinked. A fact that comes
again gets a new entry; the old one learns the distance to it, and the next walk that meets it takes it out.

Invariant: a row is freed only when all its chains have ended. Work: O(1) per row and entry; finding one fact walks the
shortest of its chains, and patterns for which that is too far are hashed.
"""

from __future__ import annotations

import numpy as np

from anabranch.delta.batch import Ids
from anabranch.delta.kernels import log_records as rec
from anabranch.delta.kernels.compiling import Int, Record, compiled, inlined, kernel, prefetch, unsigned
from anabranch.delta.kernels.log_records import LogStore, LogTables

_SHORT = 16  # steps after which a search for one fact tries another chain
_DEBT = 4096  # steps that such searches may waste before their pattern is hashed
_GIVEN_UP = -2
_ONE = np.uint64(1)


# --- places ---


@inlined
def entry_at(plan: Record, position: Int) -> Int:
    """Return where the entry of a position begins in the ring."""
    return unsigned(position & plan.last) * plan.entry_size


@inlined
def row_at(plan: Record, row: Int) -> Int:
    """Return where a row begins in the table of rows."""
    return unsigned(row) * plan.row_size


@inlined
def pattern_of(ring: Ids, at: Int) -> Int:
    """The pattern of an entry."""
    return unsigned(ring[at] & 0xFF)


@inlined
def older_by(ring: Ids, at: Int, side: Int) -> Int:
    """The distance to the next older entry of a side's chain."""
    return np.int64(np.int32(ring[at + rec.SIDES + side]))


# --- rows ---


@inlined
def row_hash(variable: Int, value: Int) -> Int:
    """32 bits. Ids that follow each other stand side by side: values that come together were mostly numbered so."""
    block = unsigned(value >> 3) + variable * np.uint64(0x9E3779B97F4A7C15)
    mixed = block * np.uint64(0xBF58476D1CE4E5B9)
    return (np.int64((mixed ^ (mixed >> np.uint64(29))) >> np.uint64(32)) & ~7) | (value & 7)


@inlined
def row_slot(store: LogStore, variable: Int, value: Int) -> Int:
    """The slot of a variable's value in the hash table, or the empty slot where it would be."""
    plan, rows, slots = store.plan, store.rows, store.slots
    hashed = row_hash(variable, value)
    mask = unsigned(slots.size - 1)
    slot = unsigned(hashed) & mask
    while slots[slot] != 0:
        if (slots[slot] >> 32) & rec.LOW == hashed:
            at = row_at(plan, (slots[slot] & rec.LOW) - 1)
            if rows[at + rec.VALUE] == value and unsigned(rows[at + rec.VARIABLE]) == variable:
                break
        slot = (slot + _ONE) & mask
    return slot


@inlined
def row_of(store: LogStore, variable: Int, value: Int) -> Int:
    """Twice the row of a variable's value, plus 1 when it was not there."""
    state, plan, rows, slots = store.state, store.plan, store.rows, store.slots
    slot = row_slot(store, variable, value)
    if slots[slot] != 0:
        return 2 * ((slots[slot] & rec.LOW) - 1)
    row = state.rows_free
    if row >= 0:
        state.rows_free = -2 - rows[row_at(plan, row) + rec.VARIABLE]
    else:
        row = state.rows_end
        state.rows_end += 1
    state.rows_used += 1
    state.created += 1
    slots[slot] = (row_hash(variable, value) << 32) | (row + 1)
    at = row_at(plan, row)
    rows[at + rec.VALUE] = value
    rows[at + rec.VARIABLE] = np.int64(variable)
    for head in range(at + rec.HEADS, at + plan.row_size):
        rows[head] = -1
    return 2 * row + 1


@compiled
def free_row(store: LogStore, row: Int) -> None:
    """Take a row out of the hash table, and keep it for another value."""
    state, rows, slots = store.state, store.rows, store.slots
    at = row_at(store.plan, row)
    mask = unsigned(slots.size - 1)
    slot = unsigned(row_hash(unsigned(rows[at + rec.VARIABLE]), rows[at + rec.VALUE])) & mask
    while (slots[slot] & rec.LOW) != row + 1:
        slot = (slot + _ONE) & mask
    hole = slot
    while True:
        slot = (slot + _ONE) & mask
        word = slots[slot]
        if word == 0:
            break
        if ((slot - unsigned(word >> 32)) & mask) >= ((slot - hole) & mask):
            slots[hole] = word
            hole = slot
    slots[hole] = 0
    rows[at + rec.VARIABLE] = -2 - state.rows_free
    state.rows_free = row
    state.rows_used -= 1


@kernel
def place_slots(tables: LogTables) -> None:
    """Fill an empty hash table with all rows in use."""
    store = LogStore(tables.states[0], tables.plans[0], tables.ring, tables.rows, tables.slots, tables.hashes)
    state, plan, rows, slots = store.state, store.plan, store.rows, store.slots
    mask = unsigned(slots.size - 1)
    for row in range(state.rows_end):
        at = row_at(plan, row)
        if rows[at + rec.VARIABLE] >= 0:
            hashed = row_hash(unsigned(rows[at + rec.VARIABLE]), rows[at + rec.VALUE])
            slot = unsigned(hashed) & mask
            while slots[slot] != 0:
                slot = (slot + _ONE) & mask
            slots[slot] = (hashed << 32) | (row + 1)


@inlined
def _is_dead(store: LogStore, row: Int, tail: Int) -> bool:
    """Return whether a row is in use and none of its entries lives."""
    plan, rows = store.plan, store.rows
    at = row_at(plan, row)
    if rows[at + rec.VARIABLE] < 0:
        return False
    living = False
    for head in range(at + rec.HEADS, at + plan.row_size):
        living = living or rows[head] >= tail
    return not living


@compiled
def sweep(store: LogStore, budget: Int) -> None:
    """Look at a few rows, round and round, and free those without a living entry; at all when nothing lives."""
    state, rows, slots = store.state, store.rows, store.slots
    tail, end, hand = state.tail, state.rows_end, state.hand
    bare = state.end == tail
    if bare or budget > end:
        budget = end
    far = state.is_scattered != 0
    for _ in range(budget):
        if hand >= end:
            hand = 0
        if far and hand + rec.AHEAD < end and _is_dead(store, hand + rec.AHEAD, tail):
            at = row_at(store.plan, hand + rec.AHEAD)
            hashed = row_hash(unsigned(rows[at + rec.VARIABLE]), rows[at + rec.VALUE])
            prefetch(slots, unsigned(hashed) & unsigned(slots.size - 1))
        if _is_dead(store, hand, tail):
            free_row(store, hand)
        hand += 1
    state.hand = hand
    if bare:
        state.rows_end = 0
        state.rows_free = -1
        state.hand = 0


# --- finding one fact ---


@inlined
def key_of_entry(store: LogStore, at: Int) -> None:
    """Make the fact of an entry the key."""
    state, ring = store.state, store.ring
    pattern = store.plan.pattern[pattern_of(ring, at)]
    for side in range(pattern.sides):
        state.key[side] = ring[at + rec.SIDES + side] >> 32
    for word in range(pattern.sides, pattern.sides + pattern.leaves):
        state.key[word] = ring[at + rec.SIDES + word]


@inlined
def _key_hash(store: LogStore, pattern: Int) -> Int:
    own = store.plan.pattern[pattern]
    mixed = (pattern + _ONE) * np.uint64(0x9E3779B97F4A7C15)
    for word in range(own.sides + own.leaves):
        mixed = (mixed ^ unsigned(store.state.key[word])) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(31)
    return np.int64(mixed >> np.uint64(16))


@inlined
def _fits_key(store: LogStore, at: Int, pattern: Int) -> bool:
    own, key, ring = store.plan.pattern[pattern], store.state.key, store.ring
    for side in range(own.sides):
        if ring[at + rec.SIDES + side] >> 32 != key[side]:
            return False
    word, end = own.sides, own.sides + own.leaves
    while word < end and ring[at + rec.SIDES + word] == key[word]:
        word += _ONE
    return bool(word == end)


@compiled
def hash_slot(store: LogStore, pattern: Int, floor: Int) -> Int:
    """The slot of the key in the hash of facts; -1: it is not there."""
    plan, ring, hashes = store.plan, store.ring, store.hashes
    hashed = _key_hash(store, pattern)
    mask = unsigned(hashes.size - 1)
    slot = unsigned(hashed >> 16) & mask
    while hashes[slot] != 0:
        word = hashes[slot]
        if (word ^ hashed) & 0xFFFF == 0:
            position = (word >> 16) - 1
            if position >= floor:
                at = entry_at(plan, position)
                if pattern_of(ring, at) == pattern and _fits_key(store, at, pattern):
                    return np.int64(slot)
        slot = (slot + _ONE) & mask
    return np.int64(-1)


@compiled
def hash_key(store: LogStore, pattern: Int, position: Int, floor: Int) -> None:
    """Enter the key, which is not there; entries before `floor` are dead and may be overwritten."""
    hashes = store.hashes
    hashed = _key_hash(store, pattern)
    mask = unsigned(hashes.size - 1)
    slot = unsigned(hashed >> 16) & mask
    while hashes[slot] != 0 and (hashes[slot] >> 16) - 1 >= floor:
        slot = (slot + _ONE) & mask
    if hashes[slot] == 0:
        store.state.hash_used += 1
    hashes[slot] = ((position + 1) << 16) | (hashed & 0xFFFF)


@kernel
def place_hashes(tables: LogTables) -> None:
    """Fill an empty hash table with the facts of all patterns that want to be hashed."""
    store = LogStore(tables.states[0], tables.plans[0], tables.ring, tables.rows, tables.slots, tables.hashes)
    state, plan, ring = store.state, store.plan, store.ring
    state.hash_used = 0
    state.hash_wanted = 0
    for pattern in range(plan.patterns):
        if state.figures[pattern].hashed == rec.TO_BE_HASHED:
            state.figures[pattern].hashed = rec.HASHED
            state.hashing = 1
    for position in range(state.tail, state.end):
        at = entry_at(plan, position)
        pattern = pattern_of(ring, at)
        if 0 <= ring[at + rec.HANGS] < rec.SUPERSEDED and state.figures[pattern].hashed == rec.HASHED:
            key_of_entry(store, at)
            hash_key(store, pattern, position, state.tail)


@inlined
def take_out(store: LogStore, head: Int, side: Int, before: Int, older: Int) -> None:
    """A chain goes on with `older` after `before` (-1: after its head)."""
    if before < 0:
        store.rows[head] = older
    else:
        at = entry_at(store.plan, before) + rec.SIDES + side
        store.ring[at] = (store.ring[at] >> 32 << 32) | min(before - older, rec.FARTHEST)


@inlined
def _walk_for(store: LogStore, pattern: Int, side: Int, floor: Int, limit: Int) -> Int:
    """The position of the key along the chain of one side; -1: there is none; or _GIVEN_UP."""
    state, plan, ring, rows = store.state, store.plan, store.ring, store.rows
    head = row_at(plan, state.key[side]) + plan.pattern[pattern].head[side]
    position = rows[head]
    before = np.int64(-1)
    steps = 0
    while position >= floor:
        if steps >= limit:
            return _GIVEN_UP
        steps += 1
        at = entry_at(plan, position)
        older = position - older_by(ring, at, side)
        if ring[at + rec.HANGS] >= rec.SUPERSEDED:
            take_out(store, head, side, before, older)
        elif _fits_key(store, at, pattern):
            state.figures[pattern].debt += steps >> 4
            return position
        else:
            before = position
        position = older
    state.figures[pattern].debt += steps >> 4
    return -1


@compiled
def find_fact(store: LogStore, pattern: Int, floor: Int, side: Int) -> Int:
    """The position of the key; -1: there is none. Short chains are walked, that of `side` first; hubs make the pattern
    hashed."""
    figures = store.state.figures[pattern]
    if figures.hashed == rec.HASHED:
        slot = hash_slot(store, pattern, floor)
        return -1 if slot < 0 else (store.hashes[slot] >> 16) - 1
    sides = store.plan.pattern[pattern].sides
    for _ in range(sides):
        found = _walk_for(store, pattern, side, floor, _SHORT)
        if found != _GIVEN_UP:
            figures.preferred = side
            return found
        figures.wasted += 1
        side = side + _ONE if side + _ONE < sides else np.uint64(0)
    found = _walk_for(store, pattern, side, floor, rec.NEVER)
    if figures.debt > _DEBT >> 4 and figures.hashed == rec.NOT_HASHED:
        figures.hashed = rec.TO_BE_HASHED
        store.state.hash_wanted = 1
    return found


# --- making it smaller ---


@kernel
def renumber_rows(tables: LogTables, packed: Ids, mapping: Ids) -> None:
    """Move all rows in use to the beginning of `packed`; `mapping` is scratch with a word per row."""
    store = LogStore(tables.states[0], tables.plans[0], tables.ring, tables.rows, tables.slots, tables.hashes)
    state, plan, ring, rows = store.state, store.plan, store.ring, store.rows
    count = 0
    for row in range(state.rows_end):
        at = row_at(plan, row)
        if rows[at + rec.VARIABLE] >= 0:
            for word in range(plan.row_size):
                packed[row_at(plan, count) + word] = rows[at + word]
            mapping[row] = count
            count += 1
    for position in range(state.tail, state.end):
        at = entry_at(plan, position)
        if ring[at + rec.HANGS] >= 0:
            for word in range(at + rec.SIDES, at + rec.SIDES + plan.pattern[pattern_of(ring, at)].sides):
                ring[word] = (mapping[ring[word] >> 32] << 32) | (ring[word] & rec.LOW)
    state.rows_end = count
    state.rows_free = -1
    state.hand = 0


@kernel
def renumber_entries(tables: LogTables, packed: Ids, mapping: Ids) -> None:
    """Move all linked entries in use to the beginning of `packed`; `mapping` is scratch with a word per entry."""
    store = LogStore(tables.states[0], tables.plans[0], tables.ring, tables.rows, tables.slots, tables.hashes)
    state, plan, ring, rows = store.state, store.plan, store.ring, store.rows
    count = 0
    for position in range(state.end):
        if ring[entry_at(plan, position) + rec.HANGS] >= 0:
            mapping[position] = count
            count += 1
    for position in range(state.end):
        at = entry_at(plan, position)
        if ring[at + rec.HANGS] < 0:
            continue
        new = mapping[position]
        to = unsigned(new) * plan.entry_size
        for word in range(plan.entry_size):
            packed[to + word] = ring[at + word]
        for side in range(plan.pattern[pattern_of(ring, at)].sides):
            older = position - older_by(ring, at, side)
            older = mapping[older] if older >= 0 else older
            packed[to + rec.SIDES + side] = (ring[at + rec.SIDES + side] >> 32 << 32) | ((new - older) & rec.LOW)
            before = ring[at + plan.newer + side]
            packed[to + plan.newer + side] = mapping[before] if before >= 0 else before
    for row in range(state.rows_end):
        at = row_at(plan, row)
        if rows[at + rec.VARIABLE] >= 0:
            for head in range(at + rec.HEADS, at + plan.row_size):
                if rows[head] >= 0:
                    rows[head] = mapping[rows[head]]
    state.end = count
    state.free_entry = -1
