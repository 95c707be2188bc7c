"""Slides and changes of the log matcher, as kernels: take in, leave, enter, tidy up.

Within a slide: arrivals are taken in against the old tail, so that a fact that leaves and comes in the same slide is
refreshed; then the tail moves and what leaves is told, then what enters. Matches that leave are known, since each
hangs on its oldest entry, or are found by a join that begins at the entries that leave.

Every kernel can be left where it needs room, and is called again once `log_matcher` has made it.

Invariant: the log holds all positions from the tail before the slide to the end; rows are freed only after the matches
of the slide have been told. Work: per arrival O(patterns it fits), per slide O(entries that come and go + candidates
met by the join); nothing depends on what the window holds.
"""

from __future__ import annotations

import numpy as np

from anabranch.delta.batch import Ids
from anabranch.delta.kernels import log_layout as lay
from anabranch.delta.kernels.log_intake import Floats, first_fitting, list_of, passes, take_in
from anabranch.delta.kernels.log_join import clear_lists, drop_pool, enlist, hang, join, start_join, tell_kept
from anabranch.delta.kernels.log_store import (
    AHEAD,
    LOW,
    SUPERSEDED,
    compiled,
    find_fact,
    free_row,
    hash_slot,
    inlined,
    kernel,
    prefetch,
    row_slot,
    sweep,
)

_LARGE = 1 << 16  # words of entries and rows from which they do not fit into near memory
_PEEKS = 4  # matches of one entry that are asked for
_SOME = 32  # rows that are swept at once
_MANY = 3  # matches per new fact from which deletion by join is cheaper than keeping matches


# --- leaving ---


@inlined
def _go(desk: Ids, pattern: int) -> None:
    """One fact of a pattern less."""
    desk[lay.W_LIVING + pattern] -= 1
    desk[lay.S_LIVING] -= 1
    if desk[lay.W_LIVING + pattern] == 0:
        desk[lay.S_EMPTY] += 1


@inlined
def _lose(desk: Ids, ring: Ids, rows: Ids, pool: Ids, out: Ids, match: int, number: int) -> None:
    """A kept match whose oldest entry left: it goes to the oldest of the newest copies, or is told and forgotten."""
    patterns, variables, size = desk[lay.L_PATTERNS], desk[lay.L_VARIABLES], desk[lay.L_ENTRY]
    last = desk[lay.L_LAST]
    record = match * (patterns + 1)
    lives = True
    for pattern in range(patterns):
        first = pool[record + 1 + pattern]
        position = first
        while ring[(position & last) * size + lay.E_HANGS] >= SUPERSEDED:
            position += ring[(position & last) * size + lay.E_HANGS] >> 32
        if position != first:
            at = (first & last) * size + lay.E_HANGS
            ring[at] = ((position - first) << 32) | (ring[at] & LOW)
            pool[record + 1 + pattern] = position
        if ring[(position & last) * size + lay.E_ARRIVED] < number:
            lives = False
    if lives:
        hang(desk, ring, pool, match)
        return
    told = desk[lay.S_OUT]
    tell_kept(desk, ring, rows, pool, out, match, told * (variables + 1))
    out[told * (variables + 1) + variables] = -1
    desk[lay.S_OUT] = told + 1
    desk[lay.S_MATCHES] -= 1
    pool[record] = desk[lay.S_POOL_FREE]
    pool[record + 1] = -1
    desk[lay.S_POOL_FREE] = match
    desk[lay.S_POOL_USED] -= 1


@compiled
def _peek_matches(desk: Ids, ring: Ids, rows: Ids, pool: Ids, position: int, number: int) -> None:
    """Ask for the matches of the next entries that leave, one after the other, and for the entries of each."""
    size, last = desk[lay.L_ENTRY], desk[lay.L_LAST]
    record = desk[lay.L_PATTERNS] + 1
    count = 0
    for leaving in range(position, min(position + AHEAD, desk[lay.S_END])):
        at = (leaving & last) * size
        match = ring[at + lay.E_HANGS] & LOW
        if match > 0 and ring[at + lay.E_ARRIVED] < number:
            prefetch(pool, (match - 1) * record)
            desk[lay.W_CHAINS + count] = match - 1
            count += 1
            sides = desk[lay.L_RECORDS + (ring[at] & 0xFF) * lay.PATTERN_SIZE + lay.P_SIDES]
            for word in range(at + lay.E_SIDES, at + lay.E_SIDES + sides):
                prefetch(rows, (ring[word] >> 32) * desk[lay.L_ROW])
    for _ in range(_PEEKS):
        chains = count
        count = 0
        for i in range(chains):
            match = desk[lay.W_CHAINS + i]
            for word in range(match * record + 1, (match + 1) * record):
                prefetch(ring, (pool[word] & last) * size)
            match = pool[match * record]
            if match > 0:
                prefetch(pool, (match - 1) * record)
                desk[lay.W_CHAINS + count] = match - 1
                count += 1


@compiled
def _leave(desk: Ids, ring: Ids, rows: Ids, pool: Ids, lists: Ids, out: Ids, number: int) -> int:
    """Entries that arrived before `number` leave: tell their matches (kept), or collect them as seeds (joined)."""
    size = desk[lay.L_ENTRY]
    last = desk[lay.L_LAST]
    end = desk[lay.S_END]
    position = desk[lay.S_NEW_TAIL]
    kept = desk[lay.S_KEPT] != 0
    collect = not kept and desk[lay.S_MATCHES] > 0
    far = desk[lay.S_SCATTERED] != 0
    looked = position
    while position < end and ring[(position & last) * size + lay.E_ARRIVED] < number:
        at = (position & last) * size
        superseded = ring[at + lay.E_HANGS] >= SUPERSEDED
        if kept:
            if far and position >= looked:
                looked = position + AHEAD
                _peek_matches(desk, ring, rows, pool, position, number)
            while ring[at + lay.E_HANGS] & LOW:
                desk[lay.S_NEW_TAIL] = position
                if (desk[lay.S_OUT] + 1) * (desk[lay.L_VARIABLES] + 1) > out.size:
                    return lay.OUT_FULL
                if desk[lay.S_OUT] - desk[lay.S_OUT_START] >= desk[lay.S_LIMIT]:
                    return lay.TOO_MANY
                match = (ring[at + lay.E_HANGS] & LOW) - 1
                ring[at + lay.E_HANGS] = (ring[at + lay.E_HANGS] >> 32 << 32) | pool[match * (desk[lay.L_PATTERNS] + 1)]
                _lose(desk, ring, rows, pool, out, match, number)
        if not superseded:
            pattern = ring[at] & 0xFF
            if collect:
                if desk[lay.S_LISTS] == lists.size:
                    desk[lay.S_NEW_TAIL] = position
                    return lay.LISTS_FULL
                if desk[lay.W_LEAVING_HEAD + pattern] == 0:
                    desk[lay.W_LEAVING_ORDER + desk[lay.S_LEAVING_PATTERNS]] = pattern
                    desk[lay.S_LEAVING_PATTERNS] += 1
                desk[lay.W_LEAVING + pattern] += 1
                enlist(desk, lists, lay.W_LEAVING_HEAD, pattern, position)
            _go(desk, pattern)
        position += 1
    desk[lay.S_NEW_TAIL] = position
    return lay.DONE


@compiled
def _unlink(desk: Ids, ring: Ids, rows: Ids, slots: Ids, hashes: Ids, position: int) -> None:
    """Take an entry out of all chains, the hash of facts and the log, and free rows that it leaves bare."""
    size, row_size, newer = desk[lay.L_ENTRY], desk[lay.L_ROW], desk[lay.L_NEWER]
    at = position * size
    pattern = ring[at] & 0xFF
    record = lay.L_RECORDS + pattern * lay.PATTERN_SIZE
    sides = desk[record + lay.P_SIDES]
    for side in range(sides):
        desk[lay.W_KEY + side] = ring[at + lay.E_SIDES + side] >> 32
    for word in range(sides, sides + desk[record + lay.P_LEAVES]):
        desk[lay.W_KEY + word] = ring[at + lay.E_SIDES + word]
    if desk[lay.W_HASHED + pattern] == 1:
        hashes[hash_slot(desk, ring, hashes, pattern, 0)] = -1
    for side in range(sides):
        row = desk[lay.W_KEY + side]
        older = position - np.int64(np.int32(ring[at + lay.E_SIDES + side]))
        before = ring[at + newer + side]
        if before < 0:
            rows[row * row_size + desk[record + lay.P_HEAD + side]] = older
        else:
            word = before * size + lay.E_SIDES + side
            ring[word] = (ring[word] >> 32 << 32) | ((before - older) & LOW)
        if older >= 0:
            ring[older * size + newer + side] = before
        bare = True
        for head in range(row * row_size + lay.R_HEADS, (row + 1) * row_size):
            bare = bare and rows[head] < 0
        if bare:
            free_row(desk, rows, slots, row_size, row)
    ring[at] = desk[lay.S_FREE_ENTRY]
    ring[at + lay.E_HANGS] = -1
    desk[lay.S_FREE_ENTRY] = position


# --- what is called from outside ---


@compiled
def _close(desk: Ids, ring: Ids, rows: Ids, slots: Ids) -> int:
    """The end of a slide: sweep some rows, forget the lists, now and then see how the stream behaves."""
    if not desk[lay.L_NEWER]:
        # Twice as fast as rows come or entries go: dead rows stay a small part, and go when nothing comes any more.
        desk[lay.S_SWEEP] += 2 * max(desk[lay.S_CREATED], desk[lay.S_TAIL] - desk[lay.S_LIST_BASE])
        if desk[lay.S_SWEEP] >= _SOME or desk[lay.S_TAIL] == desk[lay.S_END]:
            sweep(desk, rows, slots, desk[lay.S_SWEEP])
            desk[lay.S_SWEEP] = 0
    desk[lay.S_CREATED] = 0
    for i in range(desk[lay.S_FRESH_PATTERNS]):
        desk[lay.S_ENTERED] += desk[lay.W_FRESH + desk[lay.W_FRESH_ORDER + i]]
    clear_lists(desk)
    entered, found = desk[lay.S_ENTERED], desk[lay.S_FOUND]
    if entered < 1024:
        return lay.DONE
    desk[lay.S_ENTERED] = 0
    desk[lay.S_FOUND] = 0
    desk[lay.S_SINCE_SWITCH] += entered
    desk[lay.S_SCATTERED] = ring.size + rows.size > _LARGE and 2 * desk[lay.S_COLD] > desk[lay.S_CHAINED]
    desk[lay.S_COLD] = 0
    desk[lay.S_CHAINED] = 0
    if desk[lay.S_AUTO]:
        if desk[lay.S_KEPT]:
            if found > _MANY * entered:
                drop_pool(desk)
        elif found < entered and desk[lay.S_SINCE_SWITCH] > desk[lay.S_LIVING]:
            return lay.KEEP_AGAIN
    return lay.DONE


@kernel
def run_slides(
    desk: Ids,
    bounds: Floats,
    ring: Ids,
    rows: Ids,
    slots: Ids,
    hashes: Ids,
    pool: Ids,
    lists: Ids,
    out: Ids,
    marks: Ids,
    facts: Ids,
    ends: Ids,
    tails: Ids,
    numbers: Floats,
) -> int:
    """All slides of a call, from where the last call stopped."""
    size, last = desk[lay.L_ENTRY], desk[lay.L_LAST]
    while desk[lay.S_SLIDE] < ends.size:
        slide = desk[lay.S_SLIDE]
        end, number = ends[slide], tails[slide]
        phase = desk[lay.S_PHASE]
        if phase == 0:
            # Arrivals that this slide's window does not reach never come to life.
            start = max(desk[lay.S_NEXT], min(number, end))
            desk[lay.S_FUEL] -= 1 + end - start
            start = first_fitting(desk, bounds, facts, numbers, start, end)
            desk[lay.S_NEXT] = start
            tail = desk[lay.S_TAIL]
            if start == end and (tail == desk[lay.S_END] or ring[(tail & last) * size + lay.E_ARRIVED] >= number):
                marks[slide] = desk[lay.S_OUT]
                desk[lay.S_SLIDE] = slide + 1
                continue
            desk[lay.S_BOUND] = start << 8
            desk[lay.S_LIST_BASE] = tail
            desk[lay.S_OLD_END] = desk[lay.S_END]
            desk[lay.S_NEW_TAIL] = tail
            desk[lay.S_OUT_START] = desk[lay.S_OUT]
            phase = 1
        desk[lay.S_PHASE] = phase
        if phase == 1:
            code = take_in(desk, bounds, ring, rows, slots, hashes, lists, facts, numbers, end)
            if code:
                return code
            desk[lay.S_PHASE] = phase = 2
        if phase == 2:
            tail = desk[lay.S_NEW_TAIL]
            if tail < desk[lay.S_END] and ring[(tail & last) * size + lay.E_ARRIVED] < number:
                code = _leave(desk, ring, rows, pool, lists, out, number)
                if code:
                    return code
            count = desk[lay.S_LEAVING_PATTERNS]
            if count > 0:
                start_join(desk, desk[lay.S_TAIL], lay.W_LEAVING_ORDER, count, lay.W_LEAVING)
                for i in range(desk[lay.S_FRESH_PATTERNS]):
                    desk[lay.W_CEILING + desk[lay.W_FRESH_ORDER + i]] = desk[lay.S_BOUND]
            desk[lay.S_PHASE] = phase = 3
        # One call for both joins: it is large, and compiled for each place that calls it.
        while True:
            wanted = desk[lay.S_LEAVING_PATTERNS] > 0
            if phase == 4:
                wanted = desk[lay.S_EMPTY] == 0 and desk[lay.S_FRESH_PATTERNS] > 0
            if wanted:
                role = lay.ROLE_LEAVE if phase == 3 else lay.ROLE_ENTER
                code = join(desk, ring, rows, hashes, pool, lists, out, role)
                if code:
                    return code
            if phase == 4:
                break
            desk[lay.S_TAIL] = desk[lay.S_NEW_TAIL]
            count = desk[lay.S_FRESH_PATTERNS]
            if count > 0 and desk[lay.S_EMPTY] == 0:
                start_join(desk, desk[lay.S_TAIL], lay.W_FRESH_ORDER, count, lay.W_FRESH)
            desk[lay.S_PHASE] = phase = 4
        desk[lay.S_PHASE] = 0
        marks[slide] = desk[lay.S_OUT]
        desk[lay.S_SLIDE] = slide + 1
        code = _close(desk, ring, rows, slots)
        if code:
            return code
        if desk[lay.S_FUEL] < 0:
            return lay.PAUSED
    return lay.DONE


@compiled
def _mark(
    desk: Ids, bounds: Floats, ring: Ids, rows: Ids, slots: Ids, hashes: Ids, lists: Ids, removed: Ids, numbers: Floats
) -> int:
    """The entries of facts that are removed become seeds; those already marked count as new, that is as not staying."""
    width, size, row_size = desk[lay.L_WIDTH], desk[lay.L_ENTRY], desk[lay.L_ROW]
    while desk[lay.S_SLIDE] * width < removed.size:
        fact = desk[lay.S_SLIDE] * width
        fitting = list_of(desk, removed[fact + desk[lay.L_KIND]])
        if desk[lay.S_LISTS] + desk[fitting + lay.F_COUNT] > lists.size:
            return lay.LISTS_FULL
        if desk[lay.S_HASH_WANTED]:
            return lay.HASH_WANTED
        for i in range(desk[fitting + lay.F_COUNT]):
            pattern = desk[fitting + lay.F_PATTERNS + i]
            record = lay.L_RECORDS + pattern * lay.PATTERN_SIZE
            if not passes(desk, bounds, removed, numbers, fact, record):
                continue
            sides = desk[record + lay.P_SIDES]
            known = True
            for side in range(sides):
                column = desk[record + lay.P_COLUMN + side]
                value = removed[fact + column] if column >= 0 else 0
                slot = row_slot(rows, slots, row_size, desk[record + lay.P_VARIABLE + side], value)
                known = known and slots[slot] != 0
                desk[lay.W_KEY + side] = (slots[slot] & LOW) - 1
            for leaf in range(desk[record + lay.P_LEAVES]):
                desk[lay.W_KEY + sides + leaf] = removed[fact + desk[record + lay.P_LEAF_COLUMN + leaf]]
            if not known:
                continue
            position = find_fact(desk, ring, rows, hashes, pattern, 0, desk[lay.W_PREFERRED + pattern])
            if position < 0 or ring[position * size] >= desk[lay.S_BOUND]:
                continue
            ring[position * size] = desk[lay.S_BOUND] | pattern
            if desk[lay.W_LEAVING_HEAD + pattern] == 0:
                desk[lay.W_LEAVING_ORDER + desk[lay.S_LEAVING_PATTERNS]] = pattern
                desk[lay.S_LEAVING_PATTERNS] += 1
            desk[lay.W_LEAVING + pattern] += 1
            enlist(desk, lists, lay.W_LEAVING_HEAD, pattern, position)
            _go(desk, pattern)
        desk[lay.S_SLIDE] += 1
    return lay.DONE


@kernel
def run_change(
    desk: Ids,
    bounds: Floats,
    ring: Ids,
    rows: Ids,
    slots: Ids,
    hashes: Ids,
    pool: Ids,
    lists: Ids,
    out: Ids,
    removed: Ids,
    added: Ids,
    numbers: Floats,
) -> int:
    """Removed facts leave, then added ones enter; from where the last call stopped."""
    if desk[lay.S_PHASE] == 0:
        code = _mark(desk, bounds, ring, rows, slots, hashes, lists, removed, numbers)
        if code:
            return code
        count = desk[lay.S_LEAVING_PATTERNS]
        start_join(desk, 0, lay.W_LEAVING_ORDER, count, lay.W_LEAVING)
        desk[lay.S_PHASE] = 1
    if desk[lay.S_PHASE] == 1:
        if desk[lay.S_MATCHES] > 0 and desk[lay.S_LEAVING_PATTERNS] > 0:
            code = join(desk, ring, rows, hashes, pool, lists, out, lay.ROLE_LEAVE)
            if code:
                return code
        for item in range(desk[lay.S_LISTS]):
            _unlink(desk, ring, rows, slots, hashes, lists[item] >> 32)
        clear_lists(desk)
        desk[lay.S_PHASE] = 2
    if desk[lay.S_PHASE] == 2:
        end = desk[lay.S_BASE] + added.size // desk[lay.L_WIDTH]
        code = take_in(desk, bounds, ring, rows, slots, hashes, lists, added, numbers, end)
        if code:
            return code
        start_join(desk, 0, lay.W_FRESH_ORDER, desk[lay.S_FRESH_PATTERNS], lay.W_FRESH)
        desk[lay.S_PHASE] = 3
    if desk[lay.S_EMPTY] == 0 and desk[lay.S_FRESH_PATTERNS] > 0:
        code = join(desk, ring, rows, hashes, pool, lists, out, lay.ROLE_ENTER)
        if code:
            return code
    desk[lay.S_PHASE] = 0
    return _close(desk, ring, rows, slots)
