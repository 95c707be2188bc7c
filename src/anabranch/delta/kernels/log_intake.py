"""Taking arrivals in: which patterns they fit, and what that writes into the log.

Column 1 says which patterns to look at, by one multiplication; their constants, equal places and ranges do the rest, so
that what no pattern asks for costs a few nanoseconds and no memory. A fact that lives already is refreshed: it gets a
newer copy, born when the first one was. One that fits several patterns is looked for in the first of them: where it
lives there, its other entries follow, and where not, it lives nowhere (unless ranges decide, since numbers may come
later).

Invariant: of the entries of one fact exactly one, the newest, is not superseded. Work: O(patterns of the kind) per
arrival; room for all of them is made sure of before the first is written.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from anabranch.delta.batch import Ids
from anabranch.delta.kernels import log_layout as lay
from anabranch.delta.kernels.log_join import enlist
from anabranch.delta.kernels.log_store import (
    AHEAD,
    FARTHEST,
    LOW,
    compiled,
    find_fact,
    hash_fact,
    hash_slot,
    inlined,
    prefetch,
    row_hash,
    row_of,
)

Floats = npt.NDArray[np.float64]

_LONG = 1 << 13  # entries after which what was touched is no longer near
_PEEKS = 3  # entries of a chain beyond the first that are asked for


@inlined
def passes(desk: Ids, bounds: Floats, facts: Ids, numbers: Floats, fact: int, record: int) -> bool:
    for test in range(desk[record + lay.P_TESTS], desk[record + lay.P_TESTS_END], lay.TEST_SIZE):
        identifier = facts[fact + desk[test + 1]]
        argument = desk[test + 2]
        if desk[test] == lay.TEST_ID:
            if identifier != argument:
                return False
        elif desk[test] == lay.TEST_SAME:
            if identifier != facts[fact + argument]:
                return False
        elif not (0 <= identifier < numbers.size and bounds[argument] <= numbers[identifier] <= bounds[argument + 1]):
            return False
    return True


@inlined
def list_of(desk: Ids, kind: int) -> int:
    """The list of the patterns that facts of a kind may fit."""
    multiplier, shift = np.uint64(desk[lay.L_MULTIPLIER]), np.uint64(desk[lay.L_SHIFT])
    slot = desk[lay.L_DISPATCH] + (np.int64((np.uint64(kind) * multiplier) >> shift) << 1)
    return int(desk[slot + 1] if desk[slot] == kind else desk[lay.L_DEFAULT])


@inlined
def first_fitting(desk: Ids, bounds: Floats, facts: Ids, numbers: Floats, start: int, end: int) -> int:
    """The first arrival from number `start` on that fits a pattern; `end`: none before it does."""
    width, kind, base = desk[lay.L_WIDTH], desk[lay.L_KIND], desk[lay.S_BASE]
    for number in range(start, end):
        fact = (number - base) * width
        fitting = list_of(desk, facts[fact + kind])
        for i in range(desk[fitting + lay.F_COUNT]):
            record = lay.L_RECORDS + desk[fitting + lay.F_PATTERNS + i] * lay.PATTERN_SIZE
            if passes(desk, bounds, facts, numbers, fact, record):
                return number
    return end


@inlined
def _write(desk: Ids, ring: Ids, rows: Ids, hashes: Ids, lists: Ids, pattern: int, number: int, copied: int) -> int:
    """The fact in W_KEY becomes the newest entry of its chains. `copied` is where the same fact lives already; -1:
    nowhere; -2: find out. Where that was is the result."""
    record = lay.L_RECORDS + pattern * lay.PATTERN_SIZE
    size, row_size, newer = desk[lay.L_ENTRY], desk[lay.L_ROW], desk[lay.L_NEWER]
    last = desk[lay.L_LAST]
    tail = desk[lay.S_TAIL]
    sides = desk[record + lay.P_SIDES]
    hashed = desk[lay.W_HASHED + pattern] == 1
    slot = -1
    if copied != -1:
        if desk[record + lay.P_BIT]:
            copied = rows[desk[lay.W_KEY] * row_size + desk[record + lay.P_HEAD]]
            if copied < tail:
                copied = -1
        elif hashed:
            slot = hash_slot(desk, ring, hashes, pattern, tail)
            copied = (hashes[slot] >> 16) - 1 if slot >= 0 else -1
        elif copied == -2:
            copied = find_fact(desk, ring, rows, hashes, pattern, tail, desk[lay.W_PREFERRED + pattern])
    if newer and copied >= 0:
        return int(copied)
    position = desk[lay.S_FREE_ENTRY]
    if position >= 0:
        desk[lay.S_FREE_ENTRY] = ring[position * size]
    else:
        position = desk[lay.S_END]
        desk[lay.S_END] = position + 1
    at = (position & last) * size
    ring[at + lay.E_HANGS] = 0
    born = number << 8
    if copied >= 0:
        old = (copied & last) * size
        born = ring[old] & ~0xFF
        ring[old + lay.E_HANGS] |= (position - copied) << 32
    if copied < 0 or born >= desk[lay.S_BOUND]:
        if desk[lay.W_FRESH_HEAD + pattern] == 0:
            desk[lay.W_FRESH_ORDER + desk[lay.S_FRESH_PATTERNS]] = pattern
            desk[lay.S_FRESH_PATTERNS] += 1
        enlist(desk, lists, lay.W_FRESH_HEAD, pattern, position)
        if copied < 0:
            desk[lay.W_FRESH + pattern] += 1
            if desk[lay.W_LIVING + pattern] == 0:
                desk[lay.S_EMPTY] -= 1
            desk[lay.W_LIVING + pattern] += 1
            desk[lay.S_LIVING] += 1
    ring[at] = born | pattern
    desk[lay.S_CHAINED] += sides
    for side in range(sides):
        row = desk[lay.W_KEY + side]
        head = row * row_size + desk[record + lay.P_HEAD + side]
        older = rows[head]
        rows[head] = position
        if newer:
            ring[at + newer + side] = -1
            if older >= 0:
                ring[older * size + newer + side] = position
            ring[at + lay.E_SIDES + side] = (row << 32) | ((position - older) & LOW)
        else:
            desk[lay.S_COLD] += older >= tail and position - older > _LONG
            if older == copied and older >= 0:  # a superseded head leaves the chain at once
                older = copied - np.int64(np.int32(ring[(copied & last) * size + lay.E_SIDES + side]))
            ring[at + lay.E_SIDES + side] = (row << 32) | min(position - older, FARTHEST)
    for word in range(sides, sides + desk[record + lay.P_LEAVES]):
        ring[at + lay.E_SIDES + word] = desk[lay.W_KEY + word]
    if not newer:
        ring[at + lay.E_ARRIVED] = number
    if slot >= 0:
        hashes[slot] = ((position + 1) << 16) | (hashes[slot] & 0xFFFF)
    elif hashed:
        hash_fact(desk, hashes, pattern, position, tail)
    return int(copied)


@inlined
def _room(desk: Ids, rows: Ids, hashes: Ids, lists: Ids, fitting: int) -> int:
    """Whether one more arrival can be written as an entry of every pattern of a list; else what is full."""
    count = desk[fitting + lay.F_COUNT]
    used = desk[lay.S_LIVING] if desk[lay.L_NEWER] else desk[lay.S_END] - desk[lay.S_TAIL]
    if used + count > desk[lay.L_LAST] + 1:
        return lay.LOG_FULL
    if (desk[lay.S_ROWS_USED] + desk[fitting + lay.F_SIDES]) * desk[lay.L_ROW] > rows.size:
        return lay.ROWS_FULL
    if desk[lay.S_LISTS] + count > lists.size:
        return lay.LISTS_FULL
    if desk[lay.S_HASHING] and (desk[lay.S_HASH_USED] + count) * 8 > hashes.size * 5:
        return lay.HASH_WANTED
    return lay.HASH_WANTED if desk[lay.S_HASH_WANTED] else lay.DONE


@compiled
def _peek(
    desk: Ids, bounds: Floats, ring: Ids, rows: Ids, slots: Ids, facts: Ids, numbers: Floats, fact: int, stage: int
) -> None:
    """Ask for what some arrivals will need: first the slots of their rows, then the rows, then the chains on which the
    same fact is looked for."""
    width, row_size = desk[lay.L_WIDTH], desk[lay.L_ROW]
    mask, tail = slots.size - 1, desk[lay.S_TAIL]
    fact += (2 - stage) * AHEAD * width
    chains = 0
    for number in range(fact, min(fact + AHEAD * width, facts.size), width):
        fitting = list_of(desk, facts[number + desk[lay.L_KIND]])
        first = True
        for i in range(desk[fitting + lay.F_COUNT]):
            pattern = desk[fitting + lay.F_PATTERNS + i]
            record = lay.L_RECORDS + pattern * lay.PATTERN_SIZE
            if not passes(desk, bounds, facts, numbers, number, record):
                continue
            preferred = desk[lay.W_PREFERRED + pattern]
            for side in range(desk[record + lay.P_SIDES]):
                column = desk[record + lay.P_COLUMN + side]
                value = facts[number + column] if column >= 0 else 0
                slot = row_hash(desk[record + lay.P_VARIABLE + side], value) & mask
                if stage == 0:
                    prefetch(slots, slot)
                elif slots[slot] != 0:
                    row = ((slots[slot] & LOW) - 1) * row_size
                    if stage == 1:
                        prefetch(rows, row)
                    elif first and side == preferred and not desk[record + lay.P_BIT]:
                        position = rows[row + desk[record + lay.P_HEAD + side]]
                        if position >= tail and chains < lay.MOST_CHAINS:
                            prefetch(ring, (position & desk[lay.L_LAST]) * desk[lay.L_ENTRY])
                            desk[lay.W_CHAINS + chains] = (position << 8) | pattern
                            chains += 1
            first = first and desk[fitting + lay.F_EXACT] == 0
    for _ in range(_PEEKS):
        count = chains
        chains = 0
        for i in range(count):
            pattern = desk[lay.W_CHAINS + i] & 0xFF
            position = desk[lay.W_CHAINS + i] >> 8
            at = (position & desk[lay.L_LAST]) * desk[lay.L_ENTRY] + lay.E_SIDES + desk[lay.W_PREFERRED + pattern]
            position -= np.int64(np.int32(ring[at]))
            if position >= tail:
                prefetch(ring, (position & desk[lay.L_LAST]) * desk[lay.L_ENTRY])
                desk[lay.W_CHAINS + chains] = (position << 8) | pattern
                chains += 1


@compiled
def take_in(
    desk: Ids,
    bounds: Floats,
    ring: Ids,
    rows: Ids,
    slots: Ids,
    hashes: Ids,
    lists: Ids,
    facts: Ids,
    numbers: Floats,
    end: int,
) -> int:
    """Write the arrivals before number `end` into the log, those that fit."""
    width, row_size = desk[lay.L_WIDTH], desk[lay.L_ROW]
    multiplier, shift = np.uint64(desk[lay.L_MULTIPLIER]), np.uint64(desk[lay.L_SHIFT])
    table, default = desk[lay.L_DISPATCH], desk[lay.L_DEFAULT]
    nothing = desk[default] == 0
    number = desk[lay.S_NEXT]
    fact = (number - desk[lay.S_BASE]) * width
    kind = desk[lay.L_KIND]
    far = desk[lay.S_SCATTERED] != 0
    while number < end:
        if far and number >= desk[lay.S_PEEKED]:
            desk[lay.S_PEEKED] = number + AHEAD
            for stage in range(3):
                _peek(desk, bounds, ring, rows, slots, facts, numbers, fact, stage)
        found = facts[fact + kind]
        slot = table + (np.int64((np.uint64(found) * multiplier) >> shift) << 1)
        if desk[slot] == found:
            fitting = desk[slot + 1]
        elif nothing:
            number += 1
            fact += width
            continue
        else:
            fitting = default
        code = _room(desk, rows, hashes, lists, fitting)
        if code:
            desk[lay.S_NEXT] = number
            return code
        exact = desk[fitting + lay.F_EXACT] != 0
        copied = -2
        for i in range(desk[fitting + lay.F_COUNT]):
            pattern = desk[fitting + lay.F_PATTERNS + i]
            record = lay.L_RECORDS + pattern * lay.PATTERN_SIZE
            if not passes(desk, bounds, facts, numbers, fact, record):
                continue
            sides = desk[record + lay.P_SIDES]
            for side in range(sides):
                column = desk[record + lay.P_COLUMN + side]
                value = facts[fact + column] if column >= 0 else 0
                row = row_of(desk, rows, slots, row_size, desk[record + lay.P_VARIABLE + side], value)
                if row & 1:
                    copied = -1
                desk[lay.W_KEY + side] = row >> 1
            for leaf in range(desk[record + lay.P_LEAVES]):
                desk[lay.W_KEY + sides + leaf] = facts[fact + desk[record + lay.P_LEAF_COLUMN + leaf]]
            copied = _write(desk, ring, rows, hashes, lists, pattern, number, copied)
            if not exact:
                copied = -2
            elif copied >= 0:  # the entries of one arrival follow each other
                copied += 1
        number += 1
        fact += width
    desk[lay.S_NEXT] = number
    return lay.DONE
