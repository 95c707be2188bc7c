"""The join of the log matcher: from seeds, depth first along chains, each match exactly once.

A binding is viable when all heads of its row are alive: that one test finds dangling facts, checks the arms of a star
and all patterns with one variable (bits), which therefore are no steps. Patterns are ranked by their number of seeds;
the seeds of one may use only facts that are no seeds for those ranked before it. The same join finds what enters (seeds
are new facts, the rest old), what leaves (seeds are leaving facts, the rest stays) and all there is (one pattern).

Where what comes lies anywhere in large tables, the rows and chains of the next seeds are asked for together before the
first of them is joined: waiting for one after the other would be most of the time.

Invariant: everything a join knows is in the desk, so it can be left at any match and gone on with. Work: O(candidates
on the chains that it walks); where several chains lead on, the shortest.
"""

from __future__ import annotations

import numpy as np

from anabranch.delta.batch import Ids
from anabranch.delta.kernels import log_layout as lay
from anabranch.delta.kernels.log_store import (
    AHEAD,
    LOW,
    SUPERSEDED,
    compiled,
    find_fact,
    inlined,
    kernel,
    prefetch,
    take_out,
)

_WASTE = 64  # searches on chains that were too long before the plan's advice is no longer heeded
_LOOKS = 6  # entries of a chain beyond the first that are asked for
_GLANCE = 4  # entries at the head of a chain that the test of a binding looks at


# --- steps ---


@inlined
def _bind(desk: Ids, ring: Ids, rows: Ids, step: int, at: int) -> bool:
    """Give the step's new variables the values of an entry; False when a value cannot be part of any match."""
    record = lay.L_RECORDS + desk[step + lay.T_PATTERN] * lay.PATTERN_SIZE
    size = desk[lay.L_ENTRY]
    last = desk[lay.L_LAST]
    table = desk[lay.L_VARIABLE_TABLE]
    old = desk[lay.S_OLD_END]
    for i in range(desk[step + lay.T_NEW]):
        side = desk[step + lay.T_NEW_SIDES + i]
        variable = desk[record + lay.P_VARIABLE + side]
        row = ring[at + lay.E_SIDES + side] >> 32
        base = row * desk[lay.L_ROW]
        for incidence in range(desk[table + 2 * variable], desk[table + 2 * variable + 1], lay.INCIDENCE_SIZE):
            head = rows[base + desk[incidence]]
            pattern = desk[incidence + 1]
            floor, ceiling = desk[lay.W_FLOOR + pattern], desk[lay.W_CEILING + pattern]
            if ceiling != lay.NEVER:  # look for one that is not hidden; after a few, leave it to the steps
                side_word = lay.E_SIDES + desk[incidence + 2]
                for _ in range(_GLANCE):
                    if head < old or ring[(head & last) * size] < ceiling:
                        break
                    head -= np.int64(np.int32(ring[(head & last) * size + side_word]))
            if head < floor:
                return False
        desk[lay.W_ROW + variable] = row
        desk[lay.W_VALUE + variable] = rows[base + lay.R_VALUE]
    first_leaf = at + lay.E_SIDES + desk[record + lay.P_SIDES]
    for leaf in range(desk[record + lay.P_LEAVES]):
        desk[lay.W_VALUE + desk[record + lay.P_LEAF_VARIABLE + leaf]] = ring[first_leaf + leaf]
    for pair in range(desk[step + lay.T_DIFFERENT], desk[step + lay.T_DIFFERENT_END], 2):
        if desk[lay.W_VALUE + desk[pair]] == desk[lay.W_VALUE + desk[pair + 1]]:
            return False
    return True


@compiled
def _shortest(desk: Ids, ring: Ids, rows: Ids, step: int, group: int) -> int:
    """Walk several chains side by side; the number of the one that ends first. They are the bound sides of one step, or
    the first bound sides of each order of a group."""
    size, row_size = desk[lay.L_ENTRY], desk[lay.L_ROW]
    last = desk[lay.L_LAST]
    racers = group if group > 1 else desk[step + lay.T_BOUND]
    turn = 0
    while True:
        for i in range(racers):
            at_step = step + i * group * lay.STEP_SIZE if group > 1 else step
            side = desk[at_step + lay.T_BOUND_SIDES + (0 if group > 1 else i)]
            pattern = desk[at_step + lay.T_PATTERN]
            record = lay.L_RECORDS + pattern * lay.PATTERN_SIZE
            if turn == 0:
                row = desk[lay.W_ROW + desk[record + lay.P_VARIABLE + side]]
                position = rows[row * row_size + desk[record + lay.P_HEAD + side]]
            else:
                position = desk[lay.W_RACE + i]
                position -= np.int64(np.int32(ring[(position & last) * size + lay.E_SIDES + side]))
            if position < desk[lay.W_FLOOR + pattern]:
                return i
            desk[lay.W_RACE + i] = position
        turn += 1


@inlined
def _enter(desk: Ids, ring: Ids, rows: Ids, hashes: Ids, depth: int) -> None:
    """Set the cursor of a step at the first candidate, on the shortest chain there is."""
    row_size = desk[lay.L_ROW]
    step = desk[desk[lay.L_RECORDS + desk[lay.S_SEED] * lay.PATTERN_SIZE + lay.P_STEPS] + depth]
    if step == 0:
        step = desk[lay.W_ACTIVE + depth]
    else:
        group = desk[step + lay.T_GROUP]
        if group > 1:
            step += _shortest(desk, ring, rows, step, group) * group * lay.STEP_SIZE
            for i in range(1, group):
                desk[lay.W_ACTIVE + depth + i] = step + i * lay.STEP_SIZE
        desk[lay.W_ACTIVE + depth] = step
    pattern = desk[step + lay.T_PATTERN]
    record = lay.L_RECORDS + pattern * lay.PATTERN_SIZE
    desk[lay.W_BEFORE + depth] = -1
    if desk[step + lay.T_UNIQUE]:
        for side in range(desk[record + lay.P_SIDES]):
            desk[lay.W_KEY + side] = desk[lay.W_ROW + desk[record + lay.P_VARIABLE + side]]
        desk[lay.W_SIDE + depth] = 0
        floor = desk[lay.W_FLOOR + pattern]
        side = desk[step + lay.T_BOUND_SIDES]
        if desk[lay.W_WASTED + pattern] > _WASTE:
            side = desk[lay.W_PREFERRED + pattern]
        desk[lay.W_CURSOR + depth] = find_fact(desk, ring, rows, hashes, pattern, floor, side)
        return
    side = desk[step + lay.T_BOUND_SIDES]
    if desk[step + lay.T_BOUND] > 1:
        side = desk[step + lay.T_BOUND_SIDES + _shortest(desk, ring, rows, step, 1)]
    desk[lay.W_SIDE + depth] = side
    row = desk[lay.W_ROW + desk[record + lay.P_VARIABLE + side]]
    desk[lay.W_CURSOR + depth] = rows[row * row_size + desk[record + lay.P_HEAD + side]]


@inlined
def _advance(desk: Ids, ring: Ids, rows: Ids, depth: int) -> bool:
    """Bind the next candidate of a step, if there is one."""
    step = desk[lay.W_ACTIVE + depth]
    pattern = desk[step + lay.T_PATTERN]
    record = lay.L_RECORDS + pattern * lay.PATTERN_SIZE
    size = desk[lay.L_ENTRY]
    last = desk[lay.L_LAST]
    side = desk[lay.W_SIDE + depth]
    position = desk[lay.W_CURSOR + depth]
    before = desk[lay.W_BEFORE + depth]
    floor, ceiling = desk[lay.W_FLOOR + pattern], desk[lay.W_CEILING + pattern]
    bound, unique = desk[step + lay.T_BOUND], desk[step + lay.T_UNIQUE]
    while position >= floor:
        at = (position & last) * size
        older = position - np.int64(np.int32(ring[at + lay.E_SIDES + side])) if not unique else -1
        if ring[at + lay.E_HANGS] >= SUPERSEDED:
            row = desk[lay.W_ROW + desk[record + lay.P_VARIABLE + side]]
            head = row * desk[lay.L_ROW] + desk[record + lay.P_HEAD + side]
            take_out(ring, rows, size, last, head, side, before, older)
        else:
            before = position
            fits = ring[at] < ceiling
            if fits and bound > 1 and not unique:
                for i in range(bound):
                    other = desk[step + lay.T_BOUND_SIDES + i]
                    row = desk[lay.W_ROW + desk[record + lay.P_VARIABLE + other]]
                    if ring[at + lay.E_SIDES + other] >> 32 != row:
                        fits = False
                        break
            if fits and _bind(desk, ring, rows, step, at):
                desk[lay.W_CURSOR + depth] = older
                desk[lay.W_BEFORE + depth] = before
                desk[lay.W_AT + pattern] = position
                return True
        position = older
    return False


# --- telling and keeping ---


@kernel
def drop_pool(desk: Ids) -> None:
    """From now on deletion is by join; what the entries say about matches is stale and nobody reads it."""
    desk[lay.S_KEPT] = 0
    desk[lay.S_POOL_END] = 0
    desk[lay.S_POOL_FREE] = -1
    desk[lay.S_POOL_USED] = 0
    desk[lay.S_SINCE_SWITCH] = 0


@inlined
def hang(desk: Ids, ring: Ids, pool: Ids, match: int) -> None:
    """Put a kept match on the list of its oldest entry."""
    patterns = desk[lay.L_PATTERNS]
    at = match * (patterns + 1)
    oldest = pool[at + 1]
    for i in range(2, patterns + 1):
        oldest = min(oldest, pool[at + i])
    size = desk[lay.L_ENTRY]
    entry = (oldest & (desk[lay.L_LAST])) * size + lay.E_HANGS
    pool[at] = ring[entry] & LOW
    ring[entry] = (ring[entry] >> 32 << 32) | (match + 1)


@inlined
def tell_kept(desk: Ids, ring: Ids, rows: Ids, pool: Ids, out: Ids, match: int, to: int) -> None:
    """Write the values of a kept match."""
    size, last = desk[lay.L_ENTRY], desk[lay.L_LAST]
    record = match * (desk[lay.L_PATTERNS] + 1) + 1
    home = desk[lay.L_HOMES]
    for variable in range(desk[lay.L_VARIABLES]):
        word = ring[(pool[record + desk[home]] & last) * size + desk[home + 1]]
        if desk[home + 2]:
            word = rows[(word >> 32) * desk[lay.L_ROW] + lay.R_VALUE]
        out[to + variable] = word
        home += 3


@compiled
def _keep(desk: Ids, ring: Ids, rows: Ids, pool: Ids) -> int:
    """Keep the match that is bound, when matches are kept."""
    if desk[lay.S_AUTO] and desk[lay.S_POOL_USED] >= max(1 << 16, 4 * desk[lay.S_LIVING]):
        drop_pool(desk)
        return lay.DONE
    if desk[lay.S_POOL_USED] >= desk[lay.S_LIMIT]:
        if not desk[lay.S_AUTO]:
            return lay.TOO_MANY
        drop_pool(desk)
        return lay.DONE
    patterns = desk[lay.L_PATTERNS]
    match = desk[lay.S_POOL_FREE]
    if match >= 0:
        desk[lay.S_POOL_FREE] = pool[match * (patterns + 1)]
    else:
        match = desk[lay.S_POOL_END]
        if (match + 1) * (patterns + 1) > pool.size:
            return lay.POOL_FULL
        desk[lay.S_POOL_END] = match + 1
    desk[lay.S_POOL_USED] += 1
    for bit in range(desk[lay.L_BITS], desk[lay.L_BITS_END], 3):
        row = desk[lay.W_ROW + desk[bit + 1]]
        desk[lay.W_AT + desk[bit]] = rows[row * desk[lay.L_ROW] + desk[bit + 2]]
    for pattern in range(patterns):
        pool[match * (patterns + 1) + 1 + pattern] = desk[lay.W_AT + pattern]
    hang(desk, ring, pool, match)
    return lay.DONE


@inlined
def _emit(desk: Ids, ring: Ids, rows: Ids, pool: Ids, out: Ids, role: int) -> int:
    """Tell and keep the match that is bound, as its role asks."""
    told = desk[lay.S_OUT]
    if role != lay.ROLE_HANG:
        if (told + 1) * (desk[lay.L_VARIABLES] + 1) > out.size:
            return lay.OUT_FULL
        if told - desk[lay.S_OUT_START] >= desk[lay.S_LIMIT]:
            return lay.TOO_MANY
    if desk[lay.S_KEPT] and (role == lay.ROLE_ENTER or role == lay.ROLE_HANG):
        code = _keep(desk, ring, rows, pool)
        if code:
            return code
    if role == lay.ROLE_HANG:
        return lay.DONE
    variables = desk[lay.L_VARIABLES]
    for variable in range(variables):
        out[told * (variables + 1) + variable] = desk[lay.W_VALUE + variable]
    out[told * (variables + 1) + variables] = -1 if role == lay.ROLE_LEAVE else 1
    desk[lay.S_OUT] = told + 1
    if role == lay.ROLE_ENTER:
        desk[lay.S_MATCHES] += 1
        desk[lay.S_FOUND] += 1
    elif role == lay.ROLE_LEAVE:
        desk[lay.S_MATCHES] -= 1
    return lay.DONE


# --- each match once ---


@inlined
def enlist(desk: Ids, lists: Ids, heads: int, pattern: int, position: int) -> None:
    """One more seed of a pattern."""
    item = desk[lay.S_LISTS]
    desk[lay.S_LISTS] = item + 1
    lists[item] = ((position - desk[lay.S_LIST_BASE]) << 32) | desk[heads + pattern]
    desk[heads + pattern] = item + 1


@compiled
def start_join(desk: Ids, floor: int, order: int, count: int, sizes: int) -> None:
    """Rank the patterns by their number of seeds; to begin with all of them see everything from `floor` on."""
    for pattern in range(desk[lay.L_PATTERNS]):
        desk[lay.W_FLOOR + pattern] = floor
        desk[lay.W_CEILING + pattern] = lay.NEVER
    for i in range(1, count):
        pattern = desk[order + i]
        j = i - 1
        while j >= 0 and desk[sizes + desk[order + j]] > desk[sizes + pattern]:
            desk[order + j + 1] = desk[order + j]
            j -= 1
        desk[order + j + 1] = pattern
    desk[lay.S_RANK] = -1
    desk[lay.S_ITEM] = 0
    desk[lay.S_DEPTH] = -1


@compiled
def _look_ahead(desk: Ids, ring: Ids, rows: Ids, lists: Ids, item: int) -> None:
    """Ask for what the next seeds will need: their rows, then all chains that begin there, entry after entry, and the
    rows that these lead to."""
    size, row_size, last = desk[lay.L_ENTRY], desk[lay.L_ROW], desk[lay.L_LAST]
    record = lay.L_RECORDS + desk[lay.S_SEED] * lay.PATTERN_SIZE
    seeds = 0
    while item != 0 and seeds < AHEAD:
        at = ((desk[lay.S_LIST_BASE] + (lists[item - 1] >> 32)) & last) * size
        item = lists[item - 1] & LOW
        desk[lay.W_LOOK + seeds] = at
        seeds += 1
        for side in range(desk[record + lay.P_SIDES]):
            prefetch(rows, (ring[at + lay.E_SIDES + side] >> 32) * row_size)
    chains = 0
    for i in range(seeds):
        at = desk[lay.W_LOOK + i]
        for look in range(desk[record + lay.P_LOOK], desk[record + lay.P_LOOK_END], lay.LOOK_SIZE):
            row = ring[at + lay.E_SIDES + desk[look + lay.K_ROW]] >> 32
            position = rows[row * row_size + desk[look + lay.K_HEAD]]
            if position >= desk[lay.W_FLOOR + desk[look + lay.K_PATTERN]] and chains < lay.MOST_CHAINS:
                prefetch(ring, (position & last) * size)
                desk[lay.W_CHAINS + chains] = (position << 16) | (look - desk[record + lay.P_LOOK])
                chains += 1
    for _ in range(_LOOKS):
        count = chains
        chains = 0
        for i in range(count):
            word = desk[lay.W_CHAINS + i]
            look = desk[record + lay.P_LOOK] + (word & 0xFFFF)
            position = word >> 16
            at = (position & last) * size + lay.E_SIDES
            if desk[look + lay.K_OTHER] >= 0:
                prefetch(rows, (ring[at + desk[look + lay.K_OTHER]] >> 32) * row_size)
            position -= np.int64(np.int32(ring[at + desk[look + lay.K_SIDE]]))
            if position >= desk[lay.W_FLOOR + desk[look + lay.K_PATTERN]]:
                prefetch(ring, (position & last) * size)
                desk[lay.W_CHAINS + chains] = (position << 16) | (word & 0xFFFF)
                chains += 1


@compiled
def join(desk: Ids, ring: Ids, rows: Ids, hashes: Ids, pool: Ids, lists: Ids, out: Ids, role: int) -> int:
    """All matches through the seeds in the lists, each once."""
    size = desk[lay.L_ENTRY]
    last = desk[lay.L_LAST]
    leaving = role == lay.ROLE_LEAVE
    order = lay.W_LEAVING_ORDER if leaving else lay.W_FRESH_ORDER
    heads = lay.W_LEAVING_HEAD if leaving else lay.W_FRESH_HEAD
    count = desk[lay.S_LEAVING_PATTERNS] if leaving else desk[lay.S_FRESH_PATTERNS]
    depth = desk[lay.S_DEPTH]
    fuel = desk[lay.S_FUEL]
    depths = desk[lay.L_RECORDS + desk[lay.S_SEED] * lay.PATTERN_SIZE + lay.P_DEPTHS]
    far = desk[lay.S_SCATTERED] != 0
    looked = 0
    while True:
        if depth >= 0:
            if depth == depths:
                code = _emit(desk, ring, rows, pool, out, role)
                if code:
                    desk[lay.S_DEPTH] = depth
                    desk[lay.S_FUEL] = fuel
                    return code
                depth -= 1
            elif _advance(desk, ring, rows, depth):
                depth += 1
                if depth < depths:
                    _enter(desk, ring, rows, hashes, depth)
            else:
                depth -= 1
            fuel -= 1
            if fuel < 0 or desk[lay.S_HASH_WANTED]:
                desk[lay.S_DEPTH] = depth
                desk[lay.S_FUEL] = fuel
                return lay.PAUSED if fuel < 0 else lay.HASH_WANTED
            continue
        item = desk[lay.S_ITEM]
        while item == 0:
            rank = desk[lay.S_RANK]
            if rank >= 0:
                done = desk[order + rank]
                if leaving and not desk[lay.L_NEWER]:
                    desk[lay.W_FLOOR + done] = desk[lay.S_NEW_TAIL]
                else:
                    desk[lay.W_CEILING + done] = desk[lay.S_BOUND]
                if desk[lay.W_LIVING + done] == desk[lay.W_FRESH + done]:  # no old fact stays: no later seed can match
                    rank = count
            rank += 1
            desk[lay.S_RANK] = rank
            if rank >= count:
                desk[lay.S_DEPTH] = -1
                desk[lay.S_FUEL] = fuel
                return lay.DONE
            desk[lay.S_SEED] = desk[order + rank]
            depths = desk[lay.L_RECORDS + desk[lay.S_SEED] * lay.PATTERN_SIZE + lay.P_DEPTHS]
            item = desk[heads + desk[order + rank]]
            looked = 0
        if far:
            if looked == 0:
                looked = AHEAD
                _look_ahead(desk, ring, rows, lists, item)
            looked -= 1
        position = desk[lay.S_LIST_BASE] + (lists[item - 1] >> 32)
        desk[lay.S_ITEM] = lists[item - 1] & LOW
        at = (position & last) * size
        fuel -= 1
        if ring[at + lay.E_HANGS] >= SUPERSEDED:
            continue
        step = desk[lay.L_RECORDS + desk[lay.S_SEED] * lay.PATTERN_SIZE + lay.P_SEED]
        if _bind(desk, ring, rows, step, at):
            desk[lay.W_AT + desk[lay.S_SEED]] = position
            depth = 0
            if depths > 0:
                _enter(desk, ring, rows, hashes, 0)


@compiled
def clear_lists(desk: Ids) -> None:
    desk[lay.S_MOST_LISTED] = max(desk[lay.S_MOST_LISTED], desk[lay.S_LISTS])
    for i in range(desk[lay.S_FRESH_PATTERNS]):
        desk[lay.W_FRESH_HEAD + desk[lay.W_FRESH_ORDER + i]] = 0
        desk[lay.W_FRESH + desk[lay.W_FRESH_ORDER + i]] = 0
    for i in range(desk[lay.S_LEAVING_PATTERNS]):
        desk[lay.W_LEAVING_HEAD + desk[lay.W_LEAVING_ORDER + i]] = 0
        desk[lay.W_LEAVING + desk[lay.W_LEAVING_ORDER + i]] = 0
    desk[lay.S_FRESH_PATTERNS] = 0
    desk[lay.S_LEAVING_PATTERNS] = 0
    desk[lay.S_LISTS] = 0


@compiled
def _list_kept(desk: Ids, ring: Ids, rows: Ids, pool: Ids, out: Ids) -> None:
    """All kept matches, without weights."""
    patterns, variables = desk[lay.L_PATTERNS], desk[lay.L_VARIABLES]
    told = 0
    for match in range(desk[lay.S_POOL_END]):
        if pool[match * (patterns + 1) + 1] >= 0:
            tell_kept(desk, ring, rows, pool, out, match, told)
            told += variables


@kernel
def run_all(desk: Ids, ring: Ids, rows: Ids, hashes: Ids, pool: Ids, lists: Ids, out: Ids, role: int) -> int:
    """Every living match: told (ROLE_LIST) or kept (ROLE_HANG). Those that are kept already are told without weights,
    and `out` has room for them."""
    if desk[lay.S_EMPTY] > 0:
        return lay.DONE
    if role == lay.ROLE_LIST and desk[lay.S_KEPT]:
        _list_kept(desk, ring, rows, pool, out)
        return lay.DONE
    size, last, end = desk[lay.L_ENTRY], desk[lay.L_LAST], desk[lay.S_END]
    if desk[lay.S_PHASE] == 0:
        desk[lay.S_LISTED] = desk[lay.S_TAIL]
    while True:
        if desk[lay.S_PHASE] == 0:
            fewest = 0
            for pattern in range(1, desk[lay.L_PATTERNS]):
                if desk[lay.W_LIVING + pattern] < desk[lay.W_LIVING + fewest]:
                    fewest = pattern
            desk[lay.W_FRESH_ORDER] = fewest
            desk[lay.S_FRESH_PATTERNS] = 1
            position = desk[lay.S_LISTED]
            desk[lay.S_LIST_BASE] = position
            while position < end and desk[lay.S_LISTS] < lists.size:
                at = (position & last) * size
                if ring[at] & 0xFF == fewest and 0 <= ring[at + lay.E_HANGS] < SUPERSEDED:
                    enlist(desk, lists, lay.W_FRESH_HEAD, fewest, position)
                position += 1
            desk[lay.S_LISTED] = position
            start_join(desk, desk[lay.S_TAIL], lay.W_FRESH_ORDER, 1, lay.W_FRESH)
            desk[lay.S_PHASE] = 1
        code = join(desk, ring, rows, hashes, pool, lists, out, role)
        if code:
            return code
        clear_lists(desk)
        desk[lay.S_PHASE] = 0
        if desk[lay.S_LISTED] == end:
            return lay.DONE
