"""Intake of arrivals: finds the patterns that they fit, and writes entries into the log.

The kind (column 1) selects the candidate patterns by one multiplication; their constants, equal places and ranges do
the rest, so that a fact that fits no pattern costs a few nanoseconds and no memory. A fact that is already alive is
refreshed: it gets a newer copy with the birth of the first one. A fact that fits several patterns is looked up in the
first of them: if it lives there, its other entries follow, and if not, it lives nowhere (unless ranges decide, since
numbers may come later).

Invariant: of the entries of one fact exactly one, the newest, is not superseded.
Work: O(patterns of the kind) per arrival; room for all entries is ensured before the first is written.
"""

from __future__ import annotations

import numpy as np

from anabranch.delta.batch import Ids
from anabranch.delta.kernels import log_records as rec
from anabranch.delta.kernels.compiling import Int, Record, compiled, inlined, prefetch, unsigned
from anabranch.delta.kernels.log_join import enlist
from anabranch.delta.kernels.log_records import Arrivals, IntakePlan, LogStore
from anabranch.delta.kernels.log_store import (
    entry_at,
    find_fact,
    hash_key,
    hash_slot,
    older_by,
    row_at,
    row_hash,
    row_of,
)

_LONG = 1 << 13  # entries after which what was touched is no longer near
_PEEKS = 3  # entries of a chain beyond the first that are asked for
_NOWHERE, _UNKNOWN = -1, -2  # where a fact lives already
_SLOTS, _ROWS, _CHAINS = range(3)  # stages of looking ahead


@inlined
def passes(intake: IntakePlan, arrivals: Arrivals, fact: Int, pattern: Record) -> bool:
    """Return whether a fact passes all tests of a pattern."""
    facts, numbers, bounds = arrivals.facts, arrivals.numbers, intake.bounds
    for number in range(pattern.tests, pattern.tests_end):
        test = intake.tests[number]
        identifier, argument = facts[fact + test.column], test.argument
        if test.what == rec.TEST_ID:
            if identifier != argument:
                return False
        elif test.what == rec.TEST_SAME:
            if identifier != facts[fact + unsigned(argument)]:
                return False
        elif not (0 <= identifier < numbers.size and bounds[argument] <= numbers[identifier] <= bounds[argument + 1]):
            return False
    return True


@inlined
def slot_of(plan: Record, intake: IntakePlan, kind: Int) -> Int:
    """Return the slot of the dispatch with the patterns that facts of a kind may fit."""
    slot = (unsigned(kind) * plan.multiplier) >> plan.shift
    return slot if intake.dispatch[slot].kind == kind else unsigned(intake.dispatch.size - 1)


@inlined
def fact_at(store: LogStore, number: Int) -> Int:
    """Return where the arrival of a number begins among the facts of this call."""
    return unsigned(number - store.state.base) * store.plan.width


@inlined
def first_fitting(store: LogStore, intake: IntakePlan, arrivals: Arrivals, start: Int, end: Int) -> Int:
    """Return the number of the first arrival from `start` on that fits a pattern; `end` if none before it does."""
    plan = store.plan
    for number in range(start, end):
        fact = fact_at(store, number)
        fitting = intake.dispatch[slot_of(plan, intake, arrivals.facts[fact + plan.kind])]
        for one in range(fitting.first, fitting.first + fitting.count):
            if passes(intake, arrivals, fact, plan.pattern[intake.patterns[one]]):
                return number
    return end


@inlined
def _copied(store: LogStore, pattern: Int, slot: Int, copied: Int) -> Int:
    """Return the position where the key already lives, or _NOWHERE. `slot` is its place in the hash of facts."""
    state, plan = store.state, store.plan
    own = plan.pattern[pattern]
    if own.is_bit:
        newest = store.rows[row_at(plan, state.key[0]) + own.head[0]]
        return newest if newest >= state.tail else _NOWHERE
    if state.figures[pattern].hashed == rec.HASHED:
        return (store.hashes[unsigned(slot)] >> 16) - 1 if slot >= 0 else _NOWHERE
    if copied == _UNKNOWN:
        return find_fact(store, pattern, state.tail, state.figures[pattern].preferred)
    return copied


@inlined
def _new_position(store: LogStore) -> Int:
    """Return the position of the next entry: a free one, or the log's end."""
    state = store.state
    position = state.free_entry
    if position >= 0:
        state.free_entry = store.ring[entry_at(store.plan, position)]
    else:
        position = state.end
        state.end = position + 1
    return position


@inlined
def _enlist_fresh(store: LogStore, lists: Ids, pattern: Int, position: Int, is_new: bool) -> None:
    """Make an entry a seed of this slide, and count its fact where it did not live before."""
    state = store.state
    enlist(state, state.fresh, lists, pattern, position)
    if is_new:
        state.fresh.sizes[pattern] += 1
        if state.figures[pattern].living == 0:
            state.empty -= 1
        state.figures[pattern].living += 1
        state.living += 1


@inlined
def _chain(store: LogStore, at: Int, position: Int, copied: Int, pattern: Int) -> None:
    """Make an entry the newest of its chains."""
    state, plan, ring, rows = store.state, store.plan, store.ring, store.rows
    own, newer = plan.pattern[pattern], plan.newer
    for side in range(own.sides):
        row = state.key[side]
        head = row_at(plan, row) + own.head[side]
        older = rows[head]
        rows[head] = position
        if newer:
            ring[at + newer + side] = -1
            if older >= 0:
                ring[entry_at(plan, older) + newer + side] = position
            ring[at + rec.SIDES + side] = (row << 32) | ((position - older) & rec.LOW)
        else:
            state.cold += older >= state.tail and position - older > _LONG
            if older == copied and older >= 0:  # a superseded head leaves the chain at once
                older = copied - older_by(ring, entry_at(plan, copied), side)
            ring[at + rec.SIDES + side] = (row << 32) | min(position - older, rec.FARTHEST)


@inlined
def _write(store: LogStore, lists: Ids, pattern: Int, number: Int, copied: Int) -> Int:
    """Make the key the newest entry of its chains. `copied` is where the same fact lives already, _NOWHERE or _UNKNOWN;
    where that was is the result."""
    state, plan, ring = store.state, store.plan, store.ring
    own = plan.pattern[pattern]
    hashed = state.figures[pattern].hashed == rec.HASHED
    slot = np.int64(-1)
    if copied != _NOWHERE:
        if hashed:
            slot = hash_slot(store, pattern, state.tail)
        copied = _copied(store, pattern, slot, copied)
    if plan.newer and copied >= 0:
        return copied
    position = _new_position(store)
    at = entry_at(plan, position)
    ring[at + rec.HANGS] = 0
    born = number << 8
    if copied >= 0:
        old = entry_at(plan, copied)
        born = ring[old] & ~0xFF
        ring[old + rec.HANGS] |= (position - copied) << 32
    if copied < 0 or born >= state.bound:
        _enlist_fresh(store, lists, pattern, position, copied < 0)
    ring[at] = born | np.int64(pattern)
    state.chained += np.int64(own.sides)
    _chain(store, at, position, copied, pattern)
    for word in range(own.sides, own.sides + own.leaves):
        ring[at + rec.SIDES + word] = state.key[word]
    if not plan.newer:
        ring[at + rec.ARRIVED] = number
    if slot >= 0:
        store.hashes[unsigned(slot)] = ((position + 1) << 16) | (store.hashes[unsigned(slot)] & 0xFFFF)
    elif hashed:
        hash_key(store, pattern, position, state.tail)
    return copied


@inlined
def _room(store: LogStore, lists: Ids, fitting: Record) -> Int:
    """Whether one more arrival can be written as an entry of every pattern that it may fit; else what is full."""
    state, plan = store.state, store.plan
    count = np.int64(fitting.count)
    used = state.living if plan.newer else state.end - state.tail
    if used + count > plan.last + 1:
        return rec.LOG_FULL
    if (state.rows_used + fitting.sides) * np.int64(plan.row_size) > store.rows.size:
        return rec.ROWS_FULL
    if state.lists + count > lists.size:
        return rec.LISTS_FULL
    if state.hashing and (state.hash_used + count) * 8 > store.hashes.size * 5:
        return rec.HASH_WANTED
    return rec.HASH_WANTED if state.hash_wanted else rec.DONE


@compiled
def _peek(store: LogStore, intake: IntakePlan, arrivals: Arrivals, fact: Int, stage: Int) -> None:
    """Prefetch the memory that some arrivals will need: first the slots of their rows, then the rows, then the chains
    on which the same fact is looked for."""
    state, plan, facts = store.state, store.plan, arrivals.facts
    ring, rows, slots = store.ring, store.rows, store.slots
    mask = unsigned(slots.size - 1)
    fact += unsigned((_CHAINS - stage) * rec.AHEAD) * plan.width
    chains = 0
    for number in range(fact, min(fact + unsigned(rec.AHEAD) * plan.width, unsigned(facts.size)), plan.width):
        fitting = intake.dispatch[slot_of(plan, intake, facts[number + plan.kind])]
        first = True
        for one in range(fitting.first, fitting.first + fitting.count):
            pattern = intake.patterns[one]
            own = plan.pattern[pattern]
            if not passes(intake, arrivals, number, own):
                continue
            preferred = state.figures[pattern].preferred
            for side in range(own.sides):
                column = own.column[side]
                value = facts[number + unsigned(column)] if column >= 0 else 0
                slot = unsigned(row_hash(own.variable[side], value)) & mask
                if stage == _SLOTS:
                    prefetch(slots, slot)
                elif slots[slot] != 0:
                    row = row_at(plan, (slots[slot] & rec.LOW) - 1)
                    if stage == _ROWS:
                        prefetch(rows, row)
                    elif first and side == preferred and not own.is_bit:
                        position = rows[row + own.head[side]]
                        if position >= state.tail and chains < rec.MOST_CHAINS:
                            prefetch(ring, entry_at(plan, position))
                            state.chains[chains] = (position << 8) | np.int64(pattern)
                            chains += 1
            first = first and not fitting.is_exact
    for _ in range(_PEEKS):
        count = chains
        chains = 0
        for i in range(count):
            pattern = unsigned(state.chains[i] & 0xFF)
            position = state.chains[i] >> 8
            position -= older_by(ring, entry_at(plan, position), state.figures[pattern].preferred)
            if position >= state.tail:
                prefetch(ring, entry_at(plan, position))
                state.chains[chains] = (position << 8) | np.int64(pattern)
                chains += 1


@inlined
def _set_key(store: LogStore, facts: Ids, fact: Int, pattern: Record) -> bool:
    """Make a fact the key, with rows that are made where there are none; whether one was."""
    state = store.state
    is_new = False
    for side in range(pattern.sides):
        column = pattern.column[side]
        value = facts[fact + unsigned(column)] if column >= 0 else 0
        row = row_of(store, pattern.variable[side], value)
        is_new = is_new or row & 1
        state.key[side] = row >> 1
    for leaf in range(pattern.leaves):
        state.key[pattern.sides + leaf] = facts[fact + pattern.leaf_column[leaf]]
    return is_new


@inlined
def take_in(store: LogStore, intake: IntakePlan, lists: Ids, arrivals: Arrivals, end: Int) -> Int:
    """Write the arrivals before number `end` that fit into the log."""
    state, plan, facts, dispatch = store.state, store.plan, arrivals.facts, intake.dispatch
    multiplier, shift, kind, width = plan.multiplier, plan.shift, plan.kind, plan.width
    others = unsigned(dispatch.size - 1)
    nothing = dispatch[others].count == 0
    number = state.next
    fact = fact_at(store, number)
    far = state.is_scattered != 0
    while number < end:
        if far and number >= state.peeked:
            state.peeked = number + rec.AHEAD
            for stage in range(_CHAINS + 1):
                _peek(store, intake, arrivals, fact, stage)
        found = facts[fact + kind]
        slot = (unsigned(found) * multiplier) >> shift
        if dispatch[slot].kind != found:
            if nothing:
                number += 1
                fact += width
                continue
            slot = others
        fitting = dispatch[slot]
        code = _room(store, lists, fitting)
        if code:
            state.next = number
            return code
        copied = np.int64(_UNKNOWN)
        for one in range(fitting.first, fitting.first + fitting.count):
            pattern = intake.patterns[one]
            own = plan.pattern[pattern]
            if not passes(intake, arrivals, fact, own):
                continue
            if _set_key(store, facts, fact, own):
                copied = np.int64(_NOWHERE)
            copied = _write(store, lists, pattern, number, copied)
            if not fitting.is_exact:
                copied = np.int64(_UNKNOWN)
            elif copied >= 0:  # the entries of one arrival follow each other
                copied += 1
        number += 1
        fact += width
    state.next = number
    return rec.DONE
