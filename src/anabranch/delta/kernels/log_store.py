"""What the log matcher keeps: a log of entries, chains through it, a table of nodes, and a hash of facts where needed.

A fact that fits a pattern is an entry at the next position of the log. A variable that several patterns share has a
row per value, found by hashing when an entry is written and never again; the row holds, per incidence (pattern,
place), the position of the newest entry, and each entry the distance to the next older one. Chains fall in position,
hence expiry is moving the tail: a walk ends at the first position before it and nothing is unlinked. A fact that comes
again gets a new entry; the old one learns the distance to it, and whoever meets it in a chain next takes it out.

Invariant: a row is freed only when all its chains have ended. Work: O(1) per row and entry; finding one fact walks the
shortest of its chains, and patterns for which that is too far are hashed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic

from anabranch.delta.batch import Ids
from anabranch.delta.kernels import log_layout as lay
from anabranch.delta.kernels.cache import cached
from anabranch.delta.kernels.log_indices import PlainIndices

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

LOW = 0xFFFFFFFF
SUPERSEDED = 1 << 32  # from here on, E_HANGS knows a newer copy
FARTHEST = (1 << 31) - 1
AHEAD = 16  # arrivals, rows or entries to look ahead
_SHORT = 16  # steps after which a search for one fact tries another chain
_DEBT = 4096  # steps that such searches may waste before their pattern is hashed


_jit: Any = njit
# Nothing is allocated in a kernel, so arrays need no counting of references: without it they take half the time.
_BARE: dict[str, Any] = {"_nrt": False, "error_model": "numpy", "pipeline_class": PlainIndices}
# What only kernels call needs no wrappers, which take as long to compile as the code itself, and no cache of its own.
_WITHIN = _BARE | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def kernel(function: Kernel) -> Kernel:
    """What Python calls."""
    return cached(function, **_BARE)


def compiled(function: Kernel) -> Kernel:
    """What only kernels call."""
    return cast(Kernel, _jit(**_WITHIN)(function))


def inlined(function: Kernel) -> Kernel:
    """What inner loops call: handing over arrays would cost more than most of it does."""
    return cast(Kernel, _jit(forceinline=True, **_WITHIN)(function))


def _prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Ask for a word of an array without waiting for it. Windows that matter do not fit into a processor's near memory,
    and what an arrival or a leaving entry needs lies anywhere: waiting for one after the other is most of the time."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        place = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        builder.call(function, [place, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, index), code


prefetch = cast(Callable[[Ids, int], None], intrinsic(_prefetch))


# --- rows ---


@inlined
def row_hash(variable: int, value: int) -> int:
    """32 bits. Ids that follow each other stand side by side: what comes together was mostly numbered together."""
    block = np.uint64(value >> 3) + np.uint64(variable) * np.uint64(0x9E3779B97F4A7C15)
    mixed = block * np.uint64(0xBF58476D1CE4E5B9)
    return int((np.int64((mixed ^ (mixed >> np.uint64(29))) >> np.uint64(32)) & ~7) | (value & 7))


@inlined
def row_slot(rows: Ids, slots: Ids, size: int, variable: int, value: int) -> int:
    """Where the hash table has the row of a variable's value, or the empty slot where it would be."""
    hashed = row_hash(variable, value)
    mask = slots.size - 1
    slot = hashed & mask
    while slots[slot] != 0:
        if (slots[slot] >> 32) & LOW == hashed:
            at = ((slots[slot] & LOW) - 1) * size
            if rows[at + lay.R_VALUE] == value and rows[at + lay.R_VARIABLE] == variable:
                break
        slot = (slot + 1) & mask
    return slot


@inlined
def row_of(desk: Ids, rows: Ids, slots: Ids, size: int, variable: int, value: int) -> int:
    """Twice the row of a variable's value, plus 1 when it was not there."""
    slot = row_slot(rows, slots, size, variable, value)
    if slots[slot] != 0:
        return int(2 * ((slots[slot] & LOW) - 1))
    row = desk[lay.S_ROWS_FREE]
    if row >= 0:
        desk[lay.S_ROWS_FREE] = -2 - rows[row * size + lay.R_VARIABLE]
    else:
        row = desk[lay.S_ROWS_END]
        desk[lay.S_ROWS_END] += 1
    desk[lay.S_ROWS_USED] += 1
    desk[lay.S_CREATED] += 1
    slots[slot] = (row_hash(variable, value) << 32) | (row + 1)
    at = row * size
    rows[at + lay.R_VALUE] = value
    rows[at + lay.R_VARIABLE] = variable
    for head in range(at + lay.R_HEADS, at + size):
        rows[head] = -1
    return int(2 * row + 1)


@compiled
def free_row(desk: Ids, rows: Ids, slots: Ids, size: int, row: int) -> None:
    at = row * size
    mask = slots.size - 1
    slot = row_hash(rows[at + lay.R_VARIABLE], rows[at + lay.R_VALUE]) & mask
    while (slots[slot] & LOW) != row + 1:
        slot = (slot + 1) & mask
    hole = slot
    while True:
        slot = (slot + 1) & mask
        word = slots[slot]
        if word == 0:
            break
        if ((slot - (word >> 32)) & mask) >= ((slot - hole) & mask):
            slots[hole] = word
            hole = slot
    slots[hole] = 0
    rows[at + lay.R_VARIABLE] = -2 - desk[lay.S_ROWS_FREE]
    desk[lay.S_ROWS_FREE] = row
    desk[lay.S_ROWS_USED] -= 1


@kernel
def place_slots(desk: Ids, rows: Ids, slots: Ids) -> None:
    """Fill an empty hash table with all rows in use."""
    size = desk[lay.L_ROW]
    mask = slots.size - 1
    for row in range(desk[lay.S_ROWS_END]):
        variable = rows[row * size + lay.R_VARIABLE]
        if variable >= 0:
            hashed = row_hash(variable, rows[row * size + lay.R_VALUE])
            slot = hashed & mask
            while slots[slot] != 0:
                slot = (slot + 1) & mask
            slots[slot] = (hashed << 32) | (row + 1)


@inlined
def _is_dead(rows: Ids, size: int, row: int, tail: int) -> bool:
    """Whether a row is in use and none of its entries lives."""
    at = row * size
    if rows[at + lay.R_VARIABLE] < 0:
        return False
    living = False
    for head in range(at + lay.R_HEADS, at + size):
        living = living or rows[head] >= tail
    return not living


@compiled
def sweep(desk: Ids, rows: Ids, slots: Ids, budget: int) -> None:
    """Look at a few rows, round and round, and free those without a living entry; at all when nothing lives."""
    size = desk[lay.L_ROW]
    tail = desk[lay.S_TAIL]
    end = desk[lay.S_ROWS_END]
    bare = desk[lay.S_END] == tail
    hand = desk[lay.S_HAND]
    if bare or budget > end:
        budget = end
    far = desk[lay.S_SCATTERED] != 0
    for _ in range(budget):
        if hand >= end:
            hand = 0
        if far and hand + AHEAD < end and _is_dead(rows, size, hand + AHEAD, tail):
            at = (hand + AHEAD) * size
            prefetch(slots, row_hash(rows[at + lay.R_VARIABLE], rows[at + lay.R_VALUE]) & (slots.size - 1))
        if _is_dead(rows, size, hand, tail):
            free_row(desk, rows, slots, size, hand)
        hand += 1
    desk[lay.S_HAND] = hand
    if bare:
        desk[lay.S_ROWS_END] = 0
        desk[lay.S_ROWS_FREE] = -1
        desk[lay.S_HAND] = 0


# --- finding one fact ---


@inlined
def _fact_hash(desk: Ids, pattern: int, words: int) -> int:
    mixed = np.uint64(pattern + 1) * np.uint64(0x9E3779B97F4A7C15)
    for i in range(words):
        mixed = (mixed ^ np.uint64(desk[lay.W_KEY + i])) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(31)
    return int(np.int64(mixed >> np.uint64(16)))


@inlined
def _fits_key(desk: Ids, ring: Ids, at: int, pattern: int) -> bool:
    record = lay.L_RECORDS + pattern * lay.PATTERN_SIZE
    sides = desk[record + lay.P_SIDES]
    for side in range(sides):
        if ring[at + lay.E_SIDES + side] >> 32 != desk[lay.W_KEY + side]:
            return False
    for word in range(sides, sides + desk[record + lay.P_LEAVES]):
        if ring[at + lay.E_SIDES + word] != desk[lay.W_KEY + word]:
            return False
    return True


@compiled
def hash_slot(desk: Ids, ring: Ids, hashes: Ids, pattern: int, floor: int) -> int:
    """Where the hash of facts has the one in W_KEY; -1: nowhere."""
    record = lay.L_RECORDS + pattern * lay.PATTERN_SIZE
    size = desk[lay.L_ENTRY]
    last = desk[lay.L_LAST]
    hashed = _fact_hash(desk, pattern, desk[record + lay.P_SIDES] + desk[record + lay.P_LEAVES])
    mask = hashes.size - 1
    slot = (hashed >> 16) & mask
    while hashes[slot] != 0:
        word = hashes[slot]
        if (word ^ hashed) & 0xFFFF == 0:
            position = (word >> 16) - 1
            if position >= floor:
                at = (position & last) * size
                if ring[at] & 0xFF == pattern and _fits_key(desk, ring, at, pattern):
                    return slot
        slot = (slot + 1) & mask
    return -1


@compiled
def hash_fact(desk: Ids, hashes: Ids, pattern: int, position: int, floor: int) -> None:
    """Enter the fact in W_KEY, which is not there; what is before `floor` is dead and may be overwritten."""
    record = lay.L_RECORDS + pattern * lay.PATTERN_SIZE
    hashed = _fact_hash(desk, pattern, desk[record + lay.P_SIDES] + desk[record + lay.P_LEAVES])
    mask = hashes.size - 1
    slot = (hashed >> 16) & mask
    while hashes[slot] != 0 and (hashes[slot] >> 16) - 1 >= floor:
        slot = (slot + 1) & mask
    if hashes[slot] == 0:
        desk[lay.S_HASH_USED] += 1
    hashes[slot] = ((position + 1) << 16) | (hashed & 0xFFFF)


@kernel
def place_hashes(desk: Ids, ring: Ids, hashes: Ids) -> None:
    """Fill an empty hash table with the facts of all patterns that want to be hashed."""
    size = desk[lay.L_ENTRY]
    last = desk[lay.L_LAST]
    desk[lay.S_HASH_USED] = 0
    desk[lay.S_HASH_WANTED] = 0
    for pattern in range(desk[lay.L_PATTERNS]):
        if desk[lay.W_HASHED + pattern] == 2:
            desk[lay.W_HASHED + pattern] = 1
            desk[lay.S_HASHING] = 1
    for position in range(desk[lay.S_TAIL], desk[lay.S_END]):
        at = (position & last) * size
        pattern = ring[at] & 0xFF
        if 0 <= ring[at + lay.E_HANGS] < SUPERSEDED and desk[lay.W_HASHED + pattern] == 1:
            record = lay.L_RECORDS + pattern * lay.PATTERN_SIZE
            sides = desk[record + lay.P_SIDES]
            for side in range(sides):
                desk[lay.W_KEY + side] = ring[at + lay.E_SIDES + side] >> 32
            for word in range(sides, sides + desk[record + lay.P_LEAVES]):
                desk[lay.W_KEY + word] = ring[at + lay.E_SIDES + word]
            hash_fact(desk, hashes, pattern, position, desk[lay.S_TAIL])


@inlined
def take_out(ring: Ids, rows: Ids, size: int, last: int, head: int, side: int, before: int, older: int) -> None:
    """A chain goes on with `older` after `before` (-1: after its head)."""
    if before < 0:
        rows[head] = older
    else:
        at = (before & last) * size + lay.E_SIDES + side
        ring[at] = (ring[at] >> 32 << 32) | min(before - older, FARTHEST)


@inlined
def _walk_for(desk: Ids, ring: Ids, rows: Ids, pattern: int, side: int, floor: int, limit: int) -> int:
    """The position of the fact in W_KEY along the chain of one side; -1: there is none; -2 - steps: given up."""
    record = lay.L_RECORDS + pattern * lay.PATTERN_SIZE
    size = desk[lay.L_ENTRY]
    last = desk[lay.L_LAST]
    head = desk[lay.W_KEY + side] * desk[lay.L_ROW] + desk[record + lay.P_HEAD + side]
    position = rows[head]
    before = -1
    steps = 0
    while position >= floor:
        if steps >= limit:
            return -2
        steps += 1
        at = (position & last) * size
        older = position - np.int64(np.int32(ring[at + lay.E_SIDES + side]))
        if ring[at + lay.E_HANGS] >= SUPERSEDED:
            take_out(ring, rows, size, last, head, side, before, older)
        elif _fits_key(desk, ring, at, pattern):
            desk[lay.W_DEBT + pattern] += steps >> 4
            return int(position)
        else:
            before = position
        position = older
    desk[lay.W_DEBT + pattern] += steps >> 4
    return -1


@compiled
def find_fact(desk: Ids, ring: Ids, rows: Ids, hashes: Ids, pattern: int, floor: int, side: int) -> int:
    """The position of the fact in W_KEY; -1: there is none. Short chains are walked, that of `side` first; hubs make
    the pattern hashed."""
    if desk[lay.W_HASHED + pattern] == 1:
        slot = hash_slot(desk, ring, hashes, pattern, floor)
        return -1 if slot < 0 else (hashes[slot] >> 16) - 1
    record = lay.L_RECORDS + pattern * lay.PATTERN_SIZE
    sides = desk[record + lay.P_SIDES]
    for _ in range(sides):
        found = _walk_for(desk, ring, rows, pattern, side, floor, _SHORT)
        if found != -2:
            desk[lay.W_PREFERRED + pattern] = side
            return found
        desk[lay.W_WASTED + pattern] += 1
        side = side + 1 if side + 1 < sides else 0
    found = _walk_for(desk, ring, rows, pattern, side, floor, lay.NEVER)
    if desk[lay.W_DEBT + pattern] > _DEBT >> 4 and desk[lay.W_HASHED + pattern] == 0:
        desk[lay.W_HASHED + pattern] = 2
        desk[lay.S_HASH_WANTED] = 1
    return found


# --- making it smaller ---


@kernel
def renumber_rows(desk: Ids, ring: Ids, rows: Ids, packed: Ids, mapping: Ids) -> None:
    """Move all rows in use to the beginning of `packed`; `mapping` is scratch with a word per row."""
    size, row_size, last = desk[lay.L_ENTRY], desk[lay.L_ROW], desk[lay.L_LAST]
    count = 0
    for row in range(desk[lay.S_ROWS_END]):
        if rows[row * row_size + lay.R_VARIABLE] >= 0:
            for word in range(row_size):
                packed[count * row_size + word] = rows[row * row_size + word]
            mapping[row] = count
            count += 1
    for position in range(desk[lay.S_TAIL], desk[lay.S_END]):
        at = (position & last) * size
        if ring[at + lay.E_HANGS] >= 0:
            record = lay.L_RECORDS + (ring[at] & 0xFF) * lay.PATTERN_SIZE
            for word in range(at + lay.E_SIDES, at + lay.E_SIDES + desk[record + lay.P_SIDES]):
                ring[word] = (mapping[ring[word] >> 32] << 32) | (ring[word] & LOW)
    desk[lay.S_ROWS_END] = count
    desk[lay.S_ROWS_FREE] = -1
    desk[lay.S_HAND] = 0


@kernel
def renumber_entries(desk: Ids, ring: Ids, rows: Ids, packed: Ids, mapping: Ids) -> None:
    """Move all linked entries in use to the beginning of `packed`; `mapping` is scratch with a word per entry."""
    size, row_size, newer = desk[lay.L_ENTRY], desk[lay.L_ROW], desk[lay.L_NEWER]
    count = 0
    for position in range(desk[lay.S_END]):
        if ring[position * size + lay.E_HANGS] >= 0:
            mapping[position] = count
            count += 1
    for position in range(desk[lay.S_END]):
        at = position * size
        if ring[at + lay.E_HANGS] < 0:
            continue
        new = mapping[position]
        for word in range(size):
            packed[new * size + word] = ring[at + word]
        record = lay.L_RECORDS + (ring[at] & 0xFF) * lay.PATTERN_SIZE
        for side in range(desk[record + lay.P_SIDES]):
            word = ring[at + lay.E_SIDES + side]
            older = position - np.int64(np.int32(word))
            older = mapping[older] if older >= 0 else older
            packed[new * size + lay.E_SIDES + side] = (word >> 32 << 32) | ((new - older) & LOW)
            before = ring[at + newer + side]
            packed[new * size + newer + side] = mapping[before] if before >= 0 else before
    for row in range(desk[lay.S_ROWS_END]):
        if rows[row * row_size + lay.R_VARIABLE] >= 0:
            for head in range(row * row_size + lay.R_HEADS, (row + 1) * row_size):
                if rows[head] >= 0:
                    rows[head] = mapping[rows[head]]
    desk[lay.S_END] = count
    desk[lay.S_FREE_ENTRY] = -1
