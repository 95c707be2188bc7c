"""The join of the log matcher: from seeds, depth first along chains, each match exactly once.

A binding is viable when all heads of its row are alive: that one test finds dangling facts, and checks the arms of a
star and all patterns with one variable (bits), which therefore are no steps. Patterns are ranked by their number of
seeds; the seeds of one pattern may use only facts that are no seeds of patterns ranked before it. The same join finds
entering matches (seeds are new facts, the rest old), leaving matches (seeds are leaving facts, the rest stays) and all
matches (seeds of one pattern).

Where arrivals are scattered over large tables, the rows and chains of the next seeds are prefetched together before the
first of them is joined: waiting for one after the other would be most of the time.

Invariant: the whole state of a join is in the state record, so it can be interrupted at any match and continued.
Work: O(candidates on the chains that it walks); where several chains are possible, the shortest.
"""

from __future__ import annotations

import numpy as np

from anabranch.delta.batch import Ids
from anabranch.delta.kernels import log_records as rec
from anabranch.delta.kernels.compiling import Int, Record, Records, compiled, inlined, kernel, prefetch, unsigned
from anabranch.delta.kernels.log_records import JoinPlan, LogStore, LogTables, MatchArrays
from anabranch.delta.kernels.log_store import entry_at, find_fact, older_by, pattern_of, row_at, take_out

_WASTE = 64  # searches on chains that were too long before the plan's advice is no longer heeded
_LOOKS = 6  # entries of a chain beyond the first that are asked for
_GLANCE = 4  # entries at the head of a chain that the test of a binding looks at
_ONE = np.uint64(1)


# --- steps ---


@inlined
def _head_of(store: LogStore, pattern: Record, side: Int) -> Int:
    """Return where the row that is bound at a side has its newest entry of the pattern."""
    row = store.state.variables[pattern.variable[side]].row
    return row_at(store.plan, row) + pattern.head[side]


@inlined
def _is_viable(store: LogStore, walk: JoinPlan, variable: Int, base: Int) -> bool:
    """Whether each chain of a row has an entry that is not hidden; after a few entries the steps find out."""
    state, plan, ring = store.state, store.plan, store.ring
    shown = walk.shown[variable]
    for number in range(shown.first, shown.end):
        incidence = walk.incidences[number]
        head = store.rows[base + incidence.head]
        figures = state.figures[incidence.pattern]
        ceiling = figures.ceiling
        if ceiling != rec.NEVER:
            for _ in range(_GLANCE):
                if head < state.old_end:
                    break
                at = entry_at(plan, head)
                if ring[at] < ceiling:
                    break
                head -= older_by(ring, at, incidence.side)
        if head < figures.floor:
            return False
    return True


@inlined
def _bind(store: LogStore, walk: JoinPlan, step: Record, at: Int) -> bool:
    """Give the step's new variables the values of an entry; False when a value cannot be part of any match."""
    state, plan, ring = store.state, store.plan, store.ring
    own = plan.pattern[step.pattern]
    for i in range(step.new):
        side = step.new_sides[i]
        variable = own.variable[side]
        row = ring[at + rec.SIDES + side] >> 32
        base = row_at(plan, row)
        if not _is_viable(store, walk, variable, base):
            return False
        state.variables[variable].row = row
        state.variables[variable].value = store.rows[base + rec.VALUE]
    first_leaf = at + rec.SIDES + own.sides
    for leaf in range(own.leaves):
        state.variables[own.leaf_variable[leaf]].value = ring[first_leaf + leaf]
    for pair in range(step.pairs, step.pairs_end, np.uint64(2)):
        if state.variables[walk.pairs[pair]].value == state.variables[walk.pairs[pair + _ONE]].value:
            return False
    for number in range(step.ranks, step.ranks_end):
        test = walk.ranks[number]
        low, high = state.variables[test.low].value, state.variables[test.high].value
        if low == rec.UNRANKED or high == rec.UNRANKED:
            continue
        if low == rec.NO_RANK or high == rec.NO_RANK or low > high or (low == high and not test.or_equal):
            return False
    return True


@inlined
def _shortest(store: LogStore, steps: Records, step: Int, group: Int) -> Int:
    """Walk several chains side by side; the number of the one that ends first. They are the bound sides of one step, or
    the first bound sides of each order of a group."""
    state, plan = store.state, store.plan
    racers = group if group > 1 else np.int64(steps[step].bound)
    turn = 0
    while True:
        for i in range(racers):
            racing = steps[step + unsigned(i * group) if group > 1 else step]
            side = racing.bound_sides[unsigned(0 if group > 1 else i)]
            if turn == 0:
                position = store.rows[_head_of(store, plan.pattern[racing.pattern], side)]
            else:
                position = state.race[unsigned(i)]
                position -= older_by(store.ring, entry_at(plan, position), side)
            if position < state.figures[racing.pattern].floor:
                return i
            state.race[unsigned(i)] = position
        turn += 1


@inlined
def _active_step(store: LogStore, walk: JoinPlan, depth: Int) -> Int:
    """Return the step of a depth; for a group, the order of steps with the shortest first chain."""
    state = store.state
    first = walk.orders[store.plan.pattern[state.seed].steps + depth]
    if first < 0:
        return state.depths[depth].step
    step = unsigned(first)
    group = walk.steps[step].group
    if group > 1:
        step += unsigned(_shortest(store, walk.steps, step, group) * group)
        for i in range(_ONE, unsigned(group)):
            state.depths[depth + i].step = step + i
    state.depths[depth].step = step
    return step


@inlined
def _enter(store: LogStore, walk: JoinPlan, depth: Int) -> None:
    """Set the cursor of a step at the first candidate, on the shortest chain there is."""
    state, plan = store.state, store.plan
    number = _active_step(store, walk, unsigned(depth))
    step, cursor = walk.steps[number], state.depths[unsigned(depth)]
    own, figures = plan.pattern[step.pattern], state.figures[step.pattern]
    cursor.before = -1
    side = step.bound_sides[0]
    if step.is_unique:
        for one in range(own.sides):
            state.key[one] = state.variables[own.variable[one]].row
        cursor.side = 0
        if figures.wasted > _WASTE:
            side = figures.preferred
        cursor.cursor = find_fact(store, step.pattern, figures.floor, side)
        return
    if step.bound > 1:
        side = step.bound_sides[unsigned(_shortest(store, walk.steps, number, 1))]
    cursor.side = side
    cursor.cursor = store.rows[_head_of(store, own, side)]


@inlined
def _fits_bound(store: LogStore, step: Record, at: Int) -> bool:
    """Return whether the bound sides of an entry have the rows that are bound."""
    variables, own = store.state.variables, store.plan.pattern[step.pattern]
    for i in range(step.bound):
        side = step.bound_sides[i]
        if store.ring[at + rec.SIDES + side] >> 32 != variables[own.variable[side]].row:
            return False
    return True


@inlined
def _advance(store: LogStore, walk: JoinPlan, depth: Int) -> bool:
    """Bind the next candidate of a step, if there is one."""
    state, plan, ring = store.state, store.plan, store.ring
    cursor = state.depths[unsigned(depth)]
    step = walk.steps[cursor.step]
    figures, side = state.figures[step.pattern], cursor.side
    position, before = cursor.cursor, cursor.before
    floor, ceiling = figures.floor, figures.ceiling
    is_unique, is_tested = step.is_unique != 0, step.bound > 1 and step.is_unique == 0
    while position >= floor:
        at = entry_at(plan, position)
        older = np.int64(-1) if is_unique else position - older_by(ring, at, side)
        if ring[at + rec.HANGS] >= rec.SUPERSEDED:
            take_out(store, _head_of(store, plan.pattern[step.pattern], side), side, before, older)
        else:
            before = position
            fits = ring[at] < ceiling
            if fits and is_tested:
                fits = _fits_bound(store, step, at)
            if fits and _bind(store, walk, step, at):
                cursor.cursor = older
                cursor.before = before
                figures.bound_at = position
                return True
        position = older
    return False


@inlined
def _before(store: LogStore, walk: JoinPlan, depth: Int) -> Int:
    """Return the last depth before the given one that may have a further candidate; -1: none."""
    depth -= 1
    while depth >= 0 and walk.steps[store.state.depths[unsigned(depth)].step].is_single:
        depth -= 1
    return depth


# --- telling and keeping ---


@inlined
def drop_kept(state: Record) -> None:
    """Switch to deletion by join; the entries' matches are stale and no longer read."""
    state.is_kept = 0
    state.pool_end = 0
    state.pool_free = -1
    state.pool_used = 0
    state.since_switch = 0


@inlined
def match_at(plan: Record, match: Int) -> Int:
    """Return where a kept match begins in the pool: the next one of its list, then the position of each pattern's
    entry."""
    return unsigned(match) * (plan.patterns + _ONE)


@inlined
def hang(store: LogStore, pool: Ids, match: Int) -> None:
    """Add a kept match to the list of its oldest entry."""
    plan, ring = store.plan, store.ring
    at = match_at(plan, match)
    oldest = pool[at + _ONE]
    for word in range(at + np.uint64(2), at + plan.patterns + _ONE):
        oldest = min(oldest, pool[word])
    entry = entry_at(plan, oldest) + rec.HANGS
    pool[at] = ring[entry] & rec.LOW
    ring[entry] = (ring[entry] >> 32 << 32) | (match + 1)


@inlined
def tell_kept(store: LogStore, walk: JoinPlan, found: MatchArrays, match: Int, to: Int) -> None:
    """Write the values of a kept match to the output."""
    plan = store.plan
    at = match_at(plan, match) + _ONE
    for column in range(plan.told):
        shown = walk.shown[walk.told[column].variable]
        word = store.ring[entry_at(plan, found.pool[at + shown.pattern]) + shown.word]
        if shown.is_row:
            word = store.rows[row_at(plan, word >> 32) + rec.VALUE]
        found.out[to + column] = word


@compiled
def _keep(store: LogStore, pool: Ids) -> Int:
    """Keep the match that is bound, when matches are kept."""
    state, plan = store.state, store.plan
    if state.is_auto and state.pool_used >= max(1 << 16, 4 * state.living):
        drop_kept(state)
        return rec.DONE
    if state.pool_used >= state.limit:
        if not state.is_auto:
            return rec.TOO_MANY
        drop_kept(state)
        return rec.DONE
    match = state.pool_free
    if match >= 0:
        state.pool_free = pool[match_at(plan, match)]
    else:
        match = state.pool_end
        if match_at(plan, match + 1) > unsigned(pool.size):
            return rec.POOL_FULL
        state.pool_end = match + 1
    state.pool_used += 1
    for number in range(plan.bits):
        bit = plan.bit[number]
        row = state.variables[bit.variable].row
        state.figures[bit.pattern].bound_at = store.rows[row_at(plan, row) + bit.head]
    at = match_at(plan, match) + _ONE
    for pattern in range(plan.patterns):
        pool[at + pattern] = state.figures[pattern].bound_at
    hang(store, pool, match)
    return rec.DONE


@inlined
def out_at(plan: Record, told: Int) -> Int:
    """Return where a match begins in the output: its values, then its weight."""
    return unsigned(told) * (plan.told + _ONE)


@inlined
def room_to_tell(store: LogStore, out: Ids) -> Int:
    """Return DONE if one more match can be given out, else why not."""
    state = store.state
    if out_at(store.plan, state.out + 1) > unsigned(out.size):
        return rec.OUT_FULL
    return rec.TOO_MANY if state.out - state.out_start >= state.limit else rec.DONE


@inlined
def _is_decided(store: LogStore, walk: JoinPlan) -> bool:
    """Return whether the ranks of the bound match decide all comparisons."""
    variables = store.state.variables
    for number in range(store.plan.compared):
        test = walk.ranks[number]
        if variables[test.low].value == rec.UNRANKED or variables[test.high].value == rec.UNRANKED:
            return False
    return True


@inlined
def _tell(store: LogStore, walk: JoinPlan, out: Ids, weight: Int) -> None:
    """Write the bound match to the output, or add it to the one before, if that looks the same."""
    state, plan = store.state, store.plan
    at = out_at(plan, state.out)
    spares = _is_decided(store, walk)
    is_same = plan.is_merged != 0 and state.out > max(state.out_start, 0) and out[at - _ONE] * weight > 0
    before = at - plan.told - _ONE
    for column in range(plan.told):
        told = walk.told[column]
        value = 0 if spares and told.is_spared else state.variables[told.variable].value
        out[at + column] = value
        is_same = is_same and out[before + column] == value
    if is_same:
        out[at - _ONE] += weight
        return
    out[at + plan.told] = weight
    state.out += 1


@inlined
def _emit(store: LogStore, walk: JoinPlan, found: MatchArrays, role: Int) -> Int:
    """Give out and keep the bound match, depending on the role."""
    state = store.state
    if role != rec.ROLE_HANG:
        code = room_to_tell(store, found.out)
        if code:
            return code
    if state.is_kept and role in (rec.ROLE_ENTER, rec.ROLE_HANG):
        code = _keep(store, found.pool)
        if code:
            return code
    if role == rec.ROLE_HANG:
        return rec.DONE
    _tell(store, walk, found.out, -1 if role == rec.ROLE_LEAVE else 1)
    if role == rec.ROLE_ENTER:
        state.matches += 1
        state.found += 1
    elif role == rec.ROLE_LEAVE:
        state.matches -= 1
    return rec.DONE


# --- each match once ---


@inlined
def enlist(state: Record, seeds: Record, lists: Ids, pattern: Int, position: Int) -> None:
    """Add a seed of a pattern."""
    if seeds.heads[pattern] == 0:
        seeds.order[unsigned(seeds.patterns)] = pattern
        seeds.patterns += 1
    item = state.lists
    state.lists = item + 1
    lists[unsigned(item)] = ((position - state.list_base) << 32) | seeds.heads[pattern]
    seeds.heads[pattern] = item + 1


@compiled
def start_join(store: LogStore, seeds: Record, floor: Int) -> None:
    """Rank the patterns by their number of seeds; to begin with all of them see everything from `floor` on."""
    state, plan = store.state, store.plan
    for pattern in range(plan.patterns):
        state.figures[pattern].floor = floor
        state.figures[pattern].ceiling = rec.NEVER
    for i in range(1, seeds.patterns):
        pattern = seeds.order[i]
        j = i - 1
        while j >= 0 and seeds.sizes[seeds.order[j]] > seeds.sizes[pattern]:
            seeds.order[j + 1] = seeds.order[j]
            j -= 1
        seeds.order[j + 1] = pattern
    state.rank = -1
    state.item = 0
    state.depth = -1


@compiled
def _look_ahead(store: LogStore, walk: JoinPlan, lists: Ids, item: Int) -> None:
    """Prefetch the memory that the next seeds will need: their rows, then all chains that begin there, entry after
    entry, and the rows that these lead to."""
    state, plan, ring, rows = store.state, store.plan, store.ring, store.rows
    own = plan.pattern[state.seed]
    seeds = 0
    while item != 0 and seeds < rec.AHEAD:
        at = entry_at(plan, state.list_base + (lists[item - 1] >> 32))
        item = lists[item - 1] & rec.LOW
        state.ahead[seeds] = np.int64(at)
        seeds += 1
        for side in range(own.sides):
            prefetch(rows, row_at(plan, ring[at + rec.SIDES + side] >> 32))
    chains = 0
    for i in range(seeds):
        at = unsigned(state.ahead[i])
        for number in range(own.looks, own.looks_end):
            look = walk.looks[number]
            position = rows[row_at(plan, ring[at + rec.SIDES + look.row] >> 32) + look.head]
            if position >= state.figures[look.pattern].floor and chains < rec.MOST_CHAINS:
                prefetch(ring, entry_at(plan, position))
                state.chains[chains] = (position << 16) | np.int64(number - own.looks)
                chains += 1
    for _ in range(_LOOKS):
        count = chains
        chains = 0
        for i in range(count):
            word = state.chains[i]
            look = walk.looks[own.looks + unsigned(word & 0xFFFF)]
            position = word >> 16
            at = entry_at(plan, position)
            if look.other >= 0:
                prefetch(rows, row_at(plan, ring[at + rec.SIDES + unsigned(look.other)] >> 32))
            position -= older_by(ring, at, look.side)
            if position >= state.figures[look.pattern].floor:
                prefetch(ring, entry_at(plan, position))
                state.chains[chains] = (position << 16) | (word & 0xFFFF)
                chains += 1


@inlined
def _next_pattern(store: LogStore, seeds: Record, is_leaving: bool) -> Int:
    """Go on with the pattern ranked next; its first seed, 0: there is no further pattern with seeds that can match."""
    state = store.state
    while True:
        rank = state.rank
        if rank >= 0:
            done = seeds.order[rank]
            figures = state.figures[done]
            if is_leaving and not store.plan.newer:
                figures.floor = state.new_tail
            else:
                figures.ceiling = state.bound
            if figures.living == state.fresh.sizes[done]:  # no old fact stays: no later seed can match
                rank = seeds.patterns
        rank += 1
        state.rank = rank
        if rank >= seeds.patterns:
            return 0
        state.seed = seeds.order[rank]
        if seeds.heads[state.seed] != 0:
            return seeds.heads[state.seed]


@inlined
def join(store: LogStore, walk: JoinPlan, found: MatchArrays, role: Int) -> Int:
    """Find all matches through the seeds in the lists, each once."""
    state, plan, ring, lists = store.state, store.plan, store.ring, found.lists
    is_leaving = role == rec.ROLE_LEAVE
    seeds = state.leaving if is_leaving else state.fresh
    depth, fuel = state.depth, state.fuel
    depths = plan.pattern[state.seed].depths
    far = state.is_scattered != 0
    looked = 0
    code = rec.DONE
    while True:
        if depth >= 0:
            if depth == depths:
                code = _emit(store, walk, found, role)
                if code:
                    break
                depth = _before(store, walk, depth)
            elif _advance(store, walk, depth):
                depth += 1
                if depth < depths:
                    _enter(store, walk, depth)
            else:
                depth -= 1
            fuel -= 1
            if fuel < 0 or state.hash_wanted:
                code = rec.PAUSED if fuel < 0 else rec.HASH_WANTED
                break
            continue
        item = state.item
        if item == 0:
            item = _next_pattern(store, seeds, is_leaving)
            if item == 0:
                break
            depths = plan.pattern[state.seed].depths
            looked = 0
        if far:
            if looked == 0:
                looked = rec.AHEAD
                _look_ahead(store, walk, lists, item)
            looked -= 1
        word = lists[unsigned(item - 1)]
        position = state.list_base + (word >> 32)
        state.item = word & rec.LOW
        at = entry_at(plan, position)
        fuel -= 1
        if ring[at + rec.HANGS] < rec.SUPERSEDED and _bind(
            store, walk, walk.steps[plan.pattern[state.seed].seed_step], at
        ):
            state.figures[state.seed].bound_at = position
            depth = 0
            if depths > 0:
                _enter(store, walk, 0)
    state.depth, state.fuel = depth, fuel
    return code


@compiled
def _clear(seeds: Record) -> None:
    for i in range(seeds.patterns):
        seeds.heads[seeds.order[i]] = 0
        seeds.sizes[seeds.order[i]] = 0
    seeds.patterns = 0


@compiled
def clear_lists(store: LogStore) -> None:
    """Clear all seeds."""
    state = store.state
    state.most_listed = max(state.most_listed, state.lists)
    _clear(state.fresh)
    _clear(state.leaving)
    state.lists = 0


@compiled
def _list_kept(store: LogStore, walk: JoinPlan, found: MatchArrays) -> None:
    """All kept matches, without weights."""
    state, plan = store.state, store.plan
    to = np.uint64(0)
    for match in range(state.pool_end):
        if found.pool[match_at(plan, match) + _ONE] >= 0:
            tell_kept(store, walk, found, match, to)
            to += plan.told


@compiled
def _collect(store: LogStore, lists: Ids) -> None:
    """Make entries of the pattern with the fewest facts seeds, as many as there is room for."""
    state, plan, ring = store.state, store.plan, store.ring
    fewest: Int = np.uint64(0)
    for pattern in range(plan.patterns):
        if state.figures[pattern].living < state.figures[fewest].living:
            fewest = pattern
    position = state.listed
    state.list_base = position
    while position < state.end and state.lists < lists.size:
        at = entry_at(plan, position)
        if pattern_of(ring, at) == fewest and 0 <= ring[at + rec.HANGS] < rec.SUPERSEDED:
            enlist(state, state.fresh, lists, fewest, position)
        position += 1
    state.listed = position
    start_join(store, state.fresh, state.tail)


@kernel
def run_all(tables: LogTables, walk: JoinPlan, found: MatchArrays, role: Int) -> Int:
    """Find every living match: give it out (ROLE_LIST) or keep it (ROLE_HANG). Matches that are already kept are given
    out without weights, and `out` has room for them."""
    store = LogStore(tables.states[0], tables.plans[0], tables.ring, tables.rows, tables.slots, tables.hashes)
    state = store.state
    if state.empty > 0:
        return rec.DONE
    if role == rec.ROLE_LIST and state.is_kept:
        _list_kept(store, walk, found)
        return rec.DONE
    if state.phase == rec.COLLECT:
        state.listed = state.tail
    while True:
        if state.phase == rec.COLLECT:
            _collect(store, found.lists)
            state.phase = rec.JOIN_ALL
        code = join(store, walk, found, role)
        if code:
            return code
        clear_lists(store)
        state.phase = rec.COLLECT
        if state.listed == state.end:
            return rec.DONE
