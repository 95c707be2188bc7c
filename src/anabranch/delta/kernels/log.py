"""Slides and changes of the log matcher, as kernels: take in, leave, enter, tidy up.

Within a slide: arrivals are added against the old tail, so that a fact that leaves and comes in the same slide is
refreshed; then the tail moves, and leaving matches are given out, then entering ones. Leaving matches are known, since
each is stored with its oldest entry, or are found by a join that begins at the leaving entries.

Every kernel can return where it needs room, and is called again once `log_matcher` has made it.

Invariant: the log holds all positions from the tail before the slide to the end; rows are freed only after the matches
of the slide have been given out.
Work: per arrival O(patterns it fits), per slide O(entries that come and go + candidates met by the join), independent
of the size of the window.
"""

from __future__ import annotations

import numpy as np

from anabranch.delta.batch import Ids
from anabranch.delta.kernels import log_records as rec
from anabranch.delta.kernels.compiling import Int, Record, compiled, inlined, kernel, prefetch, unsigned
from anabranch.delta.kernels.log_intake import first_fitting, passes, slot_of, take_in
from anabranch.delta.kernels.log_join import (
    clear_lists,
    drop_kept,
    enlist,
    hang,
    join,
    match_at,
    out_at,
    room_to_tell,
    start_join,
    tell_kept,
)
from anabranch.delta.kernels.log_records import (
    Arrivals,
    ChangeBounds,
    IntakePlan,
    JoinPlan,
    LogStore,
    LogTables,
    MatchArrays,
    SlideBounds,
)
from anabranch.delta.kernels.log_store import (
    entry_at,
    find_fact,
    free_row,
    hash_slot,
    key_of_entry,
    older_by,
    pattern_of,
    row_at,
    row_slot,
    sweep,
)

_LARGE = 1 << 16  # words of entries and rows from which they do not fit into near memory
_PEEKS = 4  # matches of one entry that are asked for
_SOME = 32  # rows that are swept at once
_MANY = 3  # matches per new fact from which deletion by join is cheaper than keeping matches
_ONE = np.uint64(1)


# --- leaving ---


@inlined
def _count_leaving(state: Record, pattern: Int) -> None:
    """Subtract one fact of a pattern."""
    state.figures[pattern].living -= 1
    state.living -= 1
    if state.figures[pattern].living == 0:
        state.empty += 1


@inlined
def _is_moved(store: LogStore, pool: Ids, match: Int, number: Int) -> bool:
    """Move a kept match to the newest copies of its facts; return whether all of these arrived at `number` or later."""
    plan, ring = store.plan, store.ring
    at = match_at(plan, match) + _ONE
    lives = True
    for word in range(at, at + plan.patterns):
        first = pool[word]
        position = first
        while ring[entry_at(plan, position) + rec.HANGS] >= rec.SUPERSEDED:
            position += ring[entry_at(plan, position) + rec.HANGS] >> 32
        if position != first:
            hangs = entry_at(plan, first) + rec.HANGS
            ring[hangs] = ((position - first) << 32) | (ring[hangs] & rec.LOW)
            pool[word] = position
        if ring[entry_at(plan, position) + rec.ARRIVED] < number:
            lives = False
    return lives


@inlined
def _lose(store: LogStore, walk: JoinPlan, found: MatchArrays, match: Int, number: Int) -> None:
    """Handle a kept match after its oldest entry left: store it with the oldest of the newest copies, or give it out
    and free it."""
    state, plan, pool = store.state, store.plan, found.pool
    if _is_moved(store, pool, match, number):
        hang(store, pool, match)
        return
    to = out_at(plan, state.out)
    tell_kept(store, walk, found, match, to)
    found.out[to + plan.told] = -1
    state.out += 1
    state.matches -= 1
    at = match_at(plan, match)
    pool[at] = state.pool_free
    pool[at + _ONE] = -1
    state.pool_free = match
    state.pool_used -= 1


@compiled
def _peek_matches(store: LogStore, pool: Ids, position: Int, number: Int) -> None:
    """Prefetch the matches of the next leaving entries, one after the other, and the entries of each."""
    state, plan, ring = store.state, store.plan, store.ring
    count = 0
    for leaving in range(position, min(position + rec.AHEAD, state.end)):
        at = entry_at(plan, leaving)
        match = ring[at + rec.HANGS] & rec.LOW
        if match > 0 and ring[at + rec.ARRIVED] < number:
            prefetch(pool, match_at(plan, match - 1))
            state.chains[count] = match - 1
            count += 1
            for word in range(at + rec.SIDES, at + rec.SIDES + plan.pattern[pattern_of(ring, at)].sides):
                prefetch(store.rows, row_at(plan, ring[word] >> 32))
    for _ in range(_PEEKS):
        chains = count
        count = 0
        for i in range(chains):
            at = match_at(plan, state.chains[i])
            for word in range(at + _ONE, at + _ONE + plan.patterns):
                prefetch(ring, entry_at(plan, pool[word]))
            match = pool[at]
            if match > 0:
                prefetch(pool, match_at(plan, match - 1))
                state.chains[count] = match - 1
                count += 1


@inlined
def _leave(store: LogStore, walk: JoinPlan, found: MatchArrays, number: Int) -> Int:
    """Let entries that arrived before `number` leave: give out their matches (kept), or collect them as seeds
    (joined)."""
    state, plan, ring, pool = store.state, store.plan, store.ring, found.pool
    position, end = state.new_tail, state.end
    kept = state.is_kept != 0
    collect = not kept and state.matches > 0
    far = state.is_scattered != 0
    looked = position
    while position < end:
        at = entry_at(plan, position)
        if ring[at + rec.ARRIVED] >= number:
            break
        state.new_tail = position
        superseded = ring[at + rec.HANGS] >= rec.SUPERSEDED
        if kept:
            if far and position >= looked:
                looked = position + rec.AHEAD
                _peek_matches(store, pool, position, number)
            while ring[at + rec.HANGS] & rec.LOW:
                code = room_to_tell(store, found.out)
                if code:
                    return code
                match = (ring[at + rec.HANGS] & rec.LOW) - 1
                ring[at + rec.HANGS] = (ring[at + rec.HANGS] >> 32 << 32) | pool[match_at(plan, match)]
                _lose(store, walk, found, match, number)
        if not superseded:
            pattern = pattern_of(ring, at)
            if collect:
                if state.lists == found.lists.size:
                    return rec.LISTS_FULL
                enlist(state, state.leaving, found.lists, pattern, position)
                state.leaving.sizes[pattern] += 1
            _count_leaving(state, pattern)
        position += 1
    state.new_tail = position
    return rec.DONE


@compiled
def _unlink(store: LogStore, position: Int) -> None:
    """Remove an entry from all chains, the hash of facts and the log, and free rows that no chain uses any more."""
    state, plan, ring, rows = store.state, store.plan, store.ring, store.rows
    newer = plan.newer
    at = entry_at(plan, position)
    pattern = pattern_of(ring, at)
    own = plan.pattern[pattern]
    key_of_entry(store, at)
    if state.figures[pattern].hashed == rec.HASHED:
        store.hashes[hash_slot(store, pattern, 0)] = -1
    for side in range(own.sides):
        row = state.key[side]
        older = position - older_by(ring, at, side)
        before = ring[at + newer + side]
        if before < 0:
            rows[row_at(plan, row) + own.head[side]] = older
        else:
            word = entry_at(plan, before) + rec.SIDES + side
            ring[word] = (ring[word] >> 32 << 32) | ((before - older) & rec.LOW)
        if older >= 0:
            ring[entry_at(plan, older) + newer + side] = before
        bare = True
        for head in range(row_at(plan, row) + rec.HEADS, row_at(plan, row + 1)):
            bare = bare and rows[head] < 0
        if bare:
            free_row(store, row)
    ring[at] = state.free_entry
    ring[at + rec.HANGS] = -1
    state.free_entry = position


# --- what is called from outside ---


@inlined
def _close(store: LogStore) -> Int:
    """End a slide: sweep some rows and clear the lists; after enough entries, choose again how the matcher works."""
    state = store.state
    if not store.plan.newer:
        # Twice as fast as rows come or entries go: dead rows stay a small part, and go when nothing comes any more.
        state.to_sweep += 2 * max(state.created, state.tail - state.list_base)
        if state.to_sweep >= _SOME or state.tail == state.end:
            sweep(store, state.to_sweep)
            state.to_sweep = 0
    state.created = 0
    for i in range(state.fresh.patterns):
        state.entered += state.fresh.sizes[state.fresh.order[i]]
    clear_lists(store)
    entered, found = state.entered, state.found
    if entered < 1024:
        return rec.DONE
    state.entered = 0
    state.found = 0
    state.since_switch += entered
    state.is_scattered = store.ring.size + store.rows.size > _LARGE and 2 * state.cold > state.chained
    state.cold = 0
    state.chained = 0
    if state.is_auto:
        if state.is_kept:
            if found > _MANY * entered:
                drop_kept(state)
        elif found < entered and state.since_switch > state.living:
            return rec.KEEP_AGAIN
    return rec.DONE


@inlined
def _opens(store: LogStore, intake: IntakePlan, arrivals: Arrivals, end: Int, number: Int) -> bool:
    """Begin a slide; return False when nothing comes or leaves."""
    state = store.state
    # Arrivals that this slide's window does not reach never come to life.
    start = max(state.next, min(number, end))
    state.fuel -= 1 + end - start
    start = first_fitting(store, intake, arrivals, start, end)
    state.next = start
    if start == end and not _is_leaving(store, state.tail, number):
        return False
    state.bound = start << 8
    state.list_base = state.tail
    state.old_end = state.end
    state.new_tail = state.tail
    state.out_start = state.out
    return True


@inlined
def _is_leaving(store: LogStore, position: Int, number: Int) -> bool:
    """Return whether there is an entry at this position that arrived before `number`."""
    if position == store.state.end:
        return False
    return bool(store.ring[entry_at(store.plan, position) + rec.ARRIVED] < number)


@inlined
def _start_leaving(store: LogStore) -> None:
    """Prepare the join of the leaving entries: it sees no new fact."""
    state = store.state
    if state.leaving.patterns > 0:
        start_join(store, state.leaving, state.tail)
        for i in range(state.fresh.patterns):
            state.figures[state.fresh.order[i]].ceiling = state.bound


@inlined
def _join_slide(store: LogStore, walk: JoinPlan, found: MatchArrays) -> Int:
    """Run the joins of a slide: matches leave, the tail moves, matches enter. It is one call for both, since a join is
    large and compiled for each place that calls it."""
    state = store.state
    while True:
        entering = state.phase == rec.JOIN_FRESH
        if state.fresh.patterns > 0 and state.empty == 0 if entering else state.leaving.patterns > 0:
            code = join(store, walk, found, rec.ROLE_ENTER if entering else rec.ROLE_LEAVE)
            if code:
                return code
        if entering:
            return rec.DONE
        state.tail = state.new_tail
        if state.fresh.patterns > 0 and state.empty == 0:
            start_join(store, state.fresh, state.tail)
        state.phase = rec.JOIN_FRESH


@kernel
def run_slides(
    tables: LogTables, intake: IntakePlan, walk: JoinPlan, found: MatchArrays, arrivals: Arrivals, slides: SlideBounds
) -> Int:
    """Run all slides of a call, from where the last call stopped."""
    store = LogStore(tables.states[0], tables.plans[0], tables.ring, tables.rows, tables.slots, tables.hashes)
    state = store.state
    while state.slide < slides.ends.size:
        slide = state.slide
        end, number = slides.ends[slide], slides.tails[slide]
        if state.phase == rec.OPEN:
            if not _opens(store, intake, arrivals, end, number):
                slides.marks[slide] = state.out
                state.slide = slide + 1
                continue
            state.phase = rec.TAKE_IN
        if state.phase == rec.TAKE_IN:
            code = take_in(store, intake, found.lists, arrivals, end)
            if code:
                return code
            state.phase = rec.LEAVE
        if state.phase == rec.LEAVE:
            if _is_leaving(store, state.new_tail, number):
                code = _leave(store, walk, found, number)
                if code:
                    return code
            _start_leaving(store)
            state.phase = rec.JOIN_LEAVING
        code = _join_slide(store, walk, found)
        if code:
            return code
        state.phase = rec.OPEN
        slides.marks[slide] = state.out
        state.slide = slide + 1
        code = _close(store)
        if code:
            return code
        if state.fuel < 0:
            return rec.PAUSED
    return rec.DONE


@inlined
def _find_key(store: LogStore, facts: Ids, fact: Int, pattern: Record) -> bool:
    """Make a fact the key; return False when one of its values has no row."""
    state, slots = store.state, store.slots
    known = True
    for side in range(pattern.sides):
        column = pattern.column[side]
        value = facts[fact + unsigned(column)] if column >= 0 else 0
        slot = row_slot(store, pattern.variable[side], value)
        known = known and slots[slot] != 0
        state.key[side] = (slots[slot] & rec.LOW) - 1
    for leaf in range(pattern.leaves):
        state.key[pattern.sides + leaf] = facts[fact + pattern.leaf_column[leaf]]
    return known


@compiled
def _mark(store: LogStore, intake: IntakePlan, lists: Ids, removed: Arrivals, end: Int) -> Int:
    """Make the entries of the removed facts up to `end` seeds. A marked entry counts as new, so that it does not count
    as staying."""
    state, plan, ring = store.state, store.plan, store.ring
    facts = removed.facts
    while state.marked < end:
        fact = unsigned(state.marked) * plan.width
        fitting = intake.dispatch[slot_of(plan, intake, facts[fact + plan.kind])]
        if state.lists + np.int64(fitting.count) > lists.size:
            return rec.LISTS_FULL
        if state.hash_wanted:
            return rec.HASH_WANTED
        for one in range(fitting.first, fitting.first + fitting.count):
            pattern = intake.patterns[one]
            own = plan.pattern[pattern]
            if not passes(intake, removed, fact, own) or not _find_key(store, facts, fact, own):
                continue
            position = find_fact(store, pattern, 0, state.figures[pattern].preferred)
            if position < 0 or ring[entry_at(plan, position)] >= state.bound:
                continue
            ring[entry_at(plan, position)] = state.bound | np.int64(pattern)
            enlist(state, state.leaving, lists, pattern, position)
            state.leaving.sizes[pattern] += 1
            _count_leaving(state, pattern)
        state.marked += 1
    return rec.DONE


@inlined
def _remove_marked(store: LogStore, lists: Ids) -> None:
    """Remove the marked entries from the log."""
    for item in range(store.state.lists):
        _unlink(store, lists[item] >> 32)
    clear_lists(store)


@inlined
def _change(
    store: LogStore,
    intake: IntakePlan,
    walk: JoinPlan,
    found: MatchArrays,
    removed: Arrivals,
    added: Arrivals,
    slides: ChangeBounds,
) -> Int:
    """Make the changes of one slide; continue where the last call stopped."""
    state = store.state
    if state.phase == rec.MARK:
        code = _mark(store, intake, found.lists, removed, slides.removed[state.slide])
        if code:
            return code
        start_join(store, state.leaving, 0)
        state.phase = rec.JOIN_REMOVED
    # One call for both joins: it is large, and compiled for each place that calls it.
    while True:
        if state.phase == rec.ADD:
            code = take_in(store, intake, found.lists, added, state.base + slides.added[state.slide])
            if code:
                return code
            start_join(store, state.fresh, 0)
            state.phase = rec.JOIN_ADDED
        entering = state.phase == rec.JOIN_ADDED
        seeded = state.fresh.patterns > 0 and state.empty == 0
        if seeded if entering else state.matches > 0 and state.leaving.patterns > 0:
            code = join(store, walk, found, rec.ROLE_ENTER if entering else rec.ROLE_LEAVE)
            if code:
                return code
        if entering:
            return rec.DONE
        _remove_marked(store, found.lists)
        state.phase = rec.ADD


@kernel
def run_changes(
    tables: LogTables,
    intake: IntakePlan,
    walk: JoinPlan,
    found: MatchArrays,
    removed: Arrivals,
    added: Arrivals,
    slides: ChangeBounds,
) -> Int:
    """Remove facts, then add others, slide by slide; continue where the last call stopped."""
    store = LogStore(tables.states[0], tables.plans[0], tables.ring, tables.rows, tables.slots, tables.hashes)
    state = store.state
    while state.slide < slides.marks.size:
        code = _change(store, intake, walk, found, removed, added, slides)
        if code:
            return code
        slides.marks[state.slide] = state.out
        state.slide += 1
        state.phase = rec.MARK
        state.bound = state.next << 8
        state.out_start = state.out
        code = _close(store)
        if code:
            return code
        if state.fuel < 0:
            return rec.PAUSED
    return rec.DONE
