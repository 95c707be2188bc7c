"""All matches of a conjunction over one window's facts, by semi-joins: compiled once, the plan is data.

1. split      each fact into the group of its kind (one pass over the window), then by each pattern's other constants;
              while it is near, the values that the pattern asks of it are copied out: facts are not read again
2. reduce     patterns by rising size: the first at a variable makes a row for each of its values, later ones pass only
              facts whose ends passed all earlier ones; a row counts how many it has passed
3. complete   facts all of whose ends passed every pattern
4.-6.         order, lay out, walk: `semijoin_walk`

A join variable stands in several patterns, a leaf in one. A pattern with one join variable is a table from its rows to
its leaves, and mostly each row has one fact of it: the row then holds the leaves, and nothing else is done for the
pattern. A star whose measures come once each is reduced, and its rows are the matches.

A pattern's facts are `width` cells each, join variables first, one run of them per chunk of the window: `runs[chunk,
pattern]` says where in `arena` they begin and how many they are. Rows are numbered over all variables. `stages` says
how many patterns each has passed; `held` has all rows' values, then, pattern by pattern, the leaves that rows hold.
What the arrays of a plan hold is said in `anabranch.delta.evaluation`.

Work: O(facts + matches x patterns) for stars and trees; cycles may walk more.
"""

from __future__ import annotations

import numpy as np

from anabranch.delta.batch import Ids
from anabranch.delta.kernels.cache import cached
from anabranch.delta.kernels.semijoin_walk import (
    DEGREE,
    DONE,
    END,
    EQUAL,
    FIXED,
    FULL,
    GROUP,
    JOINS,
    MOST_EXPECTED,
    ORIGIN,
    PART,
    RANGE,
    ROOM,
    SHIFT,
    TABLE,
    TOO_MANY,
    Flags,
    Floats,
    Int,
    Kernel,
    Small,
    advance,
    allocating,
    bind,
    bits_for,
    hashed,
    inner,
    lay_out,
    moved,
    order,
    place,
)

_NEAR = 4  # bits of an id that stay as they are in a table: so many places of four bytes are a line of a cache
_NEAR_MASK = (1 << _NEAR) - 1
_FURTHER = (1 << _NEAR) + 1  # from one place to the next: out of this line, which ids that follow each other may fill


def kernel(function: Kernel) -> Kernel:
    """What Python calls."""
    return cached(function, error_model="numpy")


@inner
def _split(
    facts: Ids,
    first: Int,
    last: Int,
    kinds: Ids,
    groups: Small,
    multiplier: np.uint64,
    shift: np.uint64,
    buckets: Small,
    counts: Ids,
) -> None:
    """Those of some facts that are of each group of kinds, in their order.

    First those of any group: this takes no branch that depends on the data, and most facts go no further. Indexes
    without a sign are not asked whether they count from the end."""
    counts[:] = 0
    known, one = np.uint64(0), np.uint64(1)
    for fact in range(first, last):
        kind = facts[fact, 1]
        buckets[0, known] = fact
        known += np.uint64(kinds[(np.uint64(kind) * multiplier) >> shift] == kind)
    for number in range(known):
        place = np.uint64(buckets[0, number])
        group = np.uint64(groups[(np.uint64(facts[place, one]) * multiplier) >> shift])
        buckets[group, np.uint64(counts[group])] = place
        counts[group] += 1


@inner
def _take(
    facts: Ids,
    numbers: Floats,
    candidates: Small,
    parts: Ids,
    fixed: Ids,
    equal: Ids,
    ranges: Ids,
    bounds: Floats,
    arena: Ids,
    at: Int,
) -> Int:
    """The cells of those candidates that fit a pattern's other constants, into `arena` from `at` on; how many fit."""
    width = parts.shape[0]
    tests = fixed.shape[0] + equal.shape[0] + ranges.shape[0]
    if tests == 0 and width == 2:  # the two most common without the loops over tests and parts: `?a :kind ?b`,
        left, right = np.uint64(parts[0, 0]), np.uint64(parts[1, 0])
        for candidate in candidates:
            fact = np.uint64(candidate)
            arena[at], arena[at + 1] = facts[fact, left], facts[fact, right]
            at += 2
        return np.int64(len(candidates))
    kept = np.int64(0)
    if tests == 1 and fixed.shape[0] == 1 and width == 1:  # and `?a a :Class`
        own, column, wanted = np.uint64(parts[0, 0]), np.uint64(fixed[0, 0]), fixed[0, 1]
        for candidate in candidates:
            fact = np.uint64(candidate)
            arena[at + kept] = facts[fact, own]
            kept += facts[fact, column] == wanted
        return kept
    for fact in candidates:
        fits = True
        for one in range(fixed.shape[0]):
            fits = fits and facts[fact, fixed[one, 0]] == fixed[one, 1]
        for one in range(equal.shape[0]):
            fits = fits and facts[fact, equal[one, 0]] == facts[fact, equal[one, 1]]
        for one in range(ranges.shape[0]):
            if fits:
                value = facts[fact, ranges[one]]
                fits = value < len(numbers) and bounds[one, 0] <= numbers[value] <= bounds[one, 1]
        for part in range(width):
            arena[at + part] = facts[fact, parts[part, 0]]
        at += width * fits
        kept += fits
    return kept


@inner
def _take_all(
    facts: Ids,
    numbers: Floats,
    buckets: Small,
    in_group: Ids,
    patterns: Ids,
    fixed: Ids,
    equal: Ids,
    ranges: Ids,
    bounds: Floats,
    parts: Ids,
    arena: Ids,
    used: Int,
    chunk_runs: Ids,
    sizes: Ids,
) -> Int:
    """Each pattern's facts in a chunk that was split, as runs in `arena` from `used` on; where they end."""
    for pattern in range(len(sizes)):
        group, part, next_part = patterns[pattern, GROUP], patterns[pattern, PART], patterns[pattern + 1, PART]
        kept = _take(
            facts,
            numbers,
            buckets[group, : in_group[group]],
            parts[part:next_part],
            fixed[patterns[pattern, FIXED] : patterns[pattern + 1, FIXED]],
            equal[patterns[pattern, EQUAL] : patterns[pattern + 1, EQUAL]],
            ranges[patterns[pattern, RANGE] : patterns[pattern + 1, RANGE]],
            bounds[patterns[pattern, RANGE] : patterns[pattern + 1, RANGE]],
            arena,
            used,
        )
        chunk_runs[pattern, 0], chunk_runs[pattern, 1] = used, kept
        used += kept * (next_part - part)
        sizes[pattern] += kept
    return used


@allocating
def _enlarged(arena: Ids, used: Int, wanted: Int) -> Ids:
    """The same with more room; by hand, since assigning a part of an array takes seconds to compile."""
    larger = np.empty(wanted, np.int64)
    for cell in range(used):
        larger[cell] = arena[cell]
    return larger


@inner
def _find(table: Small, base: Int, shift: Int, held: Ids, value: Int) -> Int:
    """The row of a value; if there is none, -1 less the place in the table where it would stand."""
    mask = (np.int64(1) << (64 - shift)) - 1
    # Ids that follow each other stand side by side: what comes together was mostly numbered together.
    at = (hashed(value >> _NEAR, shift) & ~_NEAR_MASK) | (value & _NEAR_MASK)
    while True:
        row = np.int64(table[base + at])
        if row < 0:
            return -1 - at
        if held[row] == value:
            return row
        at = (at + _FURTHER) & mask


@inner
def _new_row(table: Small, stages: Small, held: Ids, node: Ids, value: Int, at: Int) -> Int:
    """A row for a value that has none, at the place that `_find` gave. The table grows from small as it fills."""
    base, row = node[TABLE], node[END]
    held[row], stages[row] = value, 0
    table[base + at] = row
    node[END] += 1
    bits = 64 - node[SHIFT]
    if 2 * (row + 1 - node[ORIGIN]) > (np.int64(1) << bits) and (np.int64(1) << bits) < node[ROOM]:
        size = min(np.int64(1) << (bits + 2), node[ROOM])
        while (np.int64(1) << bits) < size:
            bits += 1
        node[SHIFT] = 64 - bits
        table[base : base + size] = -1
        for one in range(node[ORIGIN], row + 1):
            place = -1 - _find(table, base, 64 - bits, held, held[one])
            table[base + place] = one
    return row


@inner
def _reduce_table(
    arena: Ids,
    runs: Ids,
    pattern: Int,
    width: Int,
    held_from: Int,
    rank: Int,
    node: Ids,
    table: Small,
    stages: Small,
    held: Ids,
) -> tuple[Int, bool]:
    """The turn of a pattern with one join variable: pass the facts whose row has passed every earlier pattern.

    A row holds the leaves of its first fact; copies go. Gives how many passed, and whether some row has several."""
    base, shift = node[TABLE], node[SHIFT]
    passed, several = np.int64(0), False
    full = np.int64(0)
    for chunk in range(runs.shape[0]):
        at, kept = runs[chunk, pattern, 0], np.int64(0)
        out = at
        for _ in range(runs[chunk, pattern, 1]):
            here = at
            at += width
            row = _find(table, base, shift, held, arena[here])
            if row < 0:
                if rank > 0:
                    continue
                row = _new_row(table, stages, held, node, arena[here], -1 - row)
                shift = node[SHIFT]
            if stages[row] < rank:
                continue
            own = held_from + row * (width - 1) - 1
            if stages[row] == rank:
                stages[row] = rank + 1
                full += 1
                for leaf in range(1, width):
                    held[own + leaf] = arena[here + leaf]
            else:
                is_copy = True
                for leaf in range(1, width):
                    is_copy = is_copy and held[own + leaf] == arena[here + leaf]
                if is_copy:
                    continue
                several = True
            arena[out] = row
            for leaf in range(1, width):
                arena[out + leaf] = arena[here + leaf]
            out += width
            kept += 1
        runs[chunk, pattern, 1] = kept
        passed += kept
    node[FULL] = full
    return passed, several


@inner
def _reduce(
    arena: Ids,
    runs: Ids,
    pattern: Int,
    width: Int,
    parts: Ids,
    ranks: Ids,
    nodes: Ids,
    table: Small,
    stages: Small,
    held: Ids,
    found: Ids,
) -> Int:
    """The turn of a pattern with several join variables, or none: pass the facts whose ends have passed every earlier
    pattern, and remember that they did; their cells hold rows then. Gives how many passed.

    `found` is room for a row per join variable."""
    count = len(ranks)
    passed = np.int64(0)
    for one in range(count):
        nodes[parts[one, 1], FULL] = 0
    for chunk in range(runs.shape[0]):
        at, kept = runs[chunk, pattern, 0], np.int64(0)
        out = at
        for _ in range(runs[chunk, pattern, 1]):
            here = at
            at += width
            fits = True
            for one in range(count):
                if ranks[one] > 0:
                    node = nodes[parts[one, 1]]
                    row = _find(table, node[TABLE], node[SHIFT], held, arena[here + one])
                    if row < 0 or stages[row] < ranks[one]:
                        fits = False
                        break
                    found[one] = row
            if not fits:
                continue
            for one in range(count):
                node = nodes[parts[one, 1]]
                if ranks[one] == 0:
                    value = arena[here + one]
                    row = _find(table, node[TABLE], node[SHIFT], held, value)
                    found[one] = row if row >= 0 else _new_row(table, stages, held, node, value, -1 - row)
                if stages[found[one]] == ranks[one]:
                    stages[found[one]] = ranks[one] + 1
                    node[FULL] += 1
            for one in range(count):
                arena[out + one] = found[one]
            for one in range(count, width):
                arena[out + one] = arena[here + one]
            out += width
            kept += 1
        runs[chunk, pattern, 1] = kept
        passed += kept
    return passed


@inner
def _complete(arena: Ids, runs: Ids, pattern: Int, width: Int, parts: Ids, nodes: Ids, stages: Small) -> Int:
    """Keep the facts all of whose ends have passed all patterns; how many they are."""
    total = np.int64(0)
    for chunk in range(runs.shape[0]):
        at, kept = runs[chunk, pattern, 0], np.int64(0)
        out = at
        for _ in range(runs[chunk, pattern, 1]):
            fits = True
            for one in range(parts.shape[0]):
                fits = fits and stages[arena[at + one]] == nodes[parts[one, 1], DEGREE]
            for cell in range(width):
                arena[out + cell] = arena[at + cell]
            at += width
            out += width * fits
            kept += fits
        runs[chunk, pattern, 1] = kept
        total += kept
    return total


@inner
def _reduce_all(
    arena: Ids,
    runs: Ids,
    turns: Ids,
    sizes: Ids,
    patterns: Ids,
    parts: Ids,
    ranks: Ids,
    nodes: Ids,
    table: Small,
    stages: Small,
    held: Ids,
    held_from: Ids,
    walked: Flags,
    found: Ids,
) -> bool:
    """Reduce and complete; whether something is left of each pattern. Those that are not `walked` are done then."""
    for join in range(len(nodes)):
        table[nodes[join, TABLE] : nodes[join, TABLE] + (np.int64(1) << (64 - nodes[join, SHIFT]))] = -1
    for pattern in turns:
        part, ends = patterns[pattern, PART], patterns[pattern, JOINS]
        width = patterns[pattern + 1, PART] - part
        if ends == 1:
            node = nodes[parts[part, 1]]
            sizes[pattern], walked[pattern] = _reduce_table(
                arena, runs, pattern, width, held_from[pattern], ranks[part], node, table, stages, held
            )
        else:
            own, own_ranks = parts[part : part + ends], ranks[part : part + ends]
            sizes[pattern] = _reduce(arena, runs, pattern, width, own, own_ranks, nodes, table, stages, held, found)
            walked[pattern] = width > 0
        if sizes[pattern] == 0:
            return False
    for pattern in turns:
        if walked[pattern]:
            part, ends = patterns[pattern, PART], patterns[pattern, JOINS]
            width = patterns[pattern + 1, PART] - part
            sizes[pattern] = _complete(arena, runs, pattern, width, parts[part : part + ends], nodes, stages)
            if sizes[pattern] == 0:
                return False
    return True


@allocating
def _rising(sizes: Ids) -> Ids:
    """The patterns by rising size. They are few; a sort of the library takes two seconds to compile."""
    turns = np.empty(len(sizes), np.int64)
    for one in range(len(sizes)):
        at = one
        while at > 0 and sizes[turns[at - 1]] > sizes[one]:
            turns[at] = turns[at - 1]
            at -= 1
        turns[at] = one
    return turns


@inner
def _lay_nodes(
    turns: Ids, sizes: Ids, patterns: Ids, parts: Ids, nodes: Ids, ranks: Ids, held_from: Ids
) -> tuple[Int, Int, Int]:
    """Room for each join variable's table and rows, when it is each pattern's turn at it, and where rows hold leaves.

    Gives the places in tables, the rows, and the cells that rows hold."""
    for pattern in turns:
        for part in range(patterns[pattern, PART], patterns[pattern, PART] + patterns[pattern, JOINS]):
            node = nodes[parts[part, 1]]
            if node[DEGREE] == 0:
                node[END] = sizes[pattern]
            ranks[part] = node[DEGREE]
            node[DEGREE] += 1
    places, rows = np.int64(0), np.int64(0)
    for join in range(len(nodes)):
        node = nodes[join]
        bits = bits_for(node[END])
        node[TABLE], node[ROOM], node[SHIFT] = places, np.int64(1) << bits, 64 - min(bits, 10)
        places += node[ROOM]
        node[ORIGIN], rows = rows, rows + node[END]
    cells = rows
    for pattern in turns:
        if patterns[pattern, JOINS] == 1:
            node, first = nodes[parts[patterns[pattern, PART], 1]], patterns[pattern, PART]
            leaves = patterns[pattern + 1, PART] - first - 1
            held_from[pattern] = cells - node[ORIGIN] * leaves
            cells += node[END] * leaves
    for join in range(len(nodes)):
        nodes[join, END] = nodes[join, ORIGIN]
    return places, rows, cells


@kernel
def all_matches(
    facts: Ids,
    numbers: Floats,
    buckets: Small,
    arena: Ids,
    kinds: Ids,
    groups: Small,
    multiplier: np.uint64,
    shift: np.uint64,
    has_any_kind: bool,
    patterns: Ids,
    fixed: Ids,
    equal: Ids,
    ranges: Ids,
    bounds: Floats,
    parts: Ids,
    joins: Int,
    different: Ids,
    variables: Int,
    max_matches: Int,
) -> tuple[Int, Ids, Ids]:
    """Whether there were too many matches, the matches, and the arena, which may have grown."""
    count = patterns.shape[0] - 1
    none = np.empty((0, variables), np.int64)

    # --- split, chunk by chunk, so that the facts are still near when their other columns are looked at
    chunk = buckets.shape[1]
    in_group = np.zeros(buckets.shape[0], np.int64)
    sizes = np.zeros(count, np.int64)
    runs = np.zeros(((facts.shape[0] + chunk - 1) // chunk, count, 2), np.int64)
    used = np.int64(0)
    for number in range(runs.shape[0]):
        first, last = number * chunk, min((number + 1) * chunk, facts.shape[0])
        enough = used + (last - first) * parts.shape[0]
        if enough > len(arena):
            likely = np.int64(1.125 * (np.float64(used) / max(first, 1)) * facts.shape[0])
            arena = _enlarged(arena, used, max(enough, likely))
        _split(facts, first, last, kinds, groups, multiplier, shift, buckets, in_group)
        if has_any_kind:
            for fact in range(first, last):
                buckets[0, fact - first] = fact
            in_group[0] = last - first
        used = _take_all(
            facts, numbers, buckets, in_group, patterns, fixed, equal, ranges, bounds, parts, arena, used,
            runs[number], sizes,
        )  # fmt: skip
    for pattern in range(count):
        if sizes[pattern] == 0:
            return DONE, none, arena

    # --- reduce, complete
    turns = _rising(sizes)
    nodes, ranks, held_from = np.zeros((joins, 7), np.int64), np.zeros(len(parts), np.int64), np.zeros(count, np.int64)
    places, rows, cells = _lay_nodes(turns, sizes, patterns, parts, nodes, ranks, held_from)
    table, stages, held = np.empty(places, np.int32), np.empty(rows, np.int32), np.empty(cells, np.int64)
    walked, found = np.zeros(count, np.bool_), np.empty(joins, np.int64)
    if not _reduce_all(
        arena, runs, turns, sizes, patterns, parts, ranks, nodes, table, stages, held, held_from, walked, found
    ):
        return DONE, none, arena

    # --- order
    steps = np.zeros((count + joins, 10), np.int64)
    is_bound, is_done = np.zeros(joins, np.bool_), np.zeros(count, np.bool_)
    depths, expected = order(patterns, parts, sizes, walked, nodes, steps, is_bound, is_done)
    if depths == 0:
        return DONE, np.empty((1, variables), np.int64), arena  # facts without variables, and all of them are there
    steps = steps[:depths]

    # --- lay out
    lists, cells, pair_places, most = place(patterns, parts, sizes, nodes, steps)
    begins, stops = np.zeros(lists, np.int32), np.zeros(lists, np.int32)
    listed, pairs = np.empty(cells, np.int64), np.empty(pair_places, np.int64)
    lay_out(arena, runs, steps, begins, stops, listed, pairs, np.empty(np.int64(1) << bits_for(most), np.int64))

    # --- walk
    sources, binds = np.zeros((variables, 3), np.int64), np.zeros(len(parts), np.bool_)
    tests, tests_from = np.empty((len(different), 2), np.int64), np.zeros(depths + 1, np.int64)
    values, bound = np.zeros(variables, np.int64), np.zeros(joins, np.int64)
    bind(patterns, parts, different, walked, held_from, steps, sources, binds, tests, tests_from, bound, values)
    room = np.int64(max(min(1.05 * expected, MOST_EXPECTED / variables), 64.0))
    matches = np.empty((room, variables), np.int64)
    cursors, state = np.zeros((depths, 3), np.int64), np.zeros(2, np.int64)
    while True:
        total = advance(
            parts, nodes, stages, held, steps, begins, stops, listed, pairs, sources, binds, tests, tests_from, values,
            bound, cursors, state, matches, max_matches,
        )  # fmt: skip
        if total > max_matches:
            return TOO_MANY, none, arena
        if state[0] < 0:
            break
        matches = moved(matches, total, 2 * total)
    return DONE, matches[:total] if 4 * total > len(matches) else moved(matches, total, total), arena
