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

A pattern's facts are `width` cells each, join variables first, one run of them per chunk of the window. Rows are
numbered over all variables.

Work: O(facts + matches x patterns) for stars and trees; cycles may walk more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anabranch.delta.batch import Ids
from anabranch.delta.kernels.compiling import (
    Floats,
    Int,
    Record,
    Records,
    Small,
    allocating,
    allocating_kernel,
    compiled,
)
from anabranch.delta.kernels.semijoin_plan import Flags, KindHash, SemijoinPlan
from anabranch.delta.kernels.semijoin_walk import (
    CURSOR,
    DONE,
    MOST_EXPECTED,
    NODE,
    PROGRESS,
    RUN,
    SOURCE,
    STEP,
    TOO_MANY,
    FactLayout,
    JoinRows,
    MatchBinding,
    PatternFacts,
    StepBindings,
    advance,
    bind,
    bits_for,
    hashed,
    lay_out,
    moved,
    order,
    place,
)

_NEAR = 4  # bits of an id that stay as they are in a table: so many places of four bytes are a line of a cache
_NEAR_MASK = (1 << _NEAR) - 1
_FURTHER = (1 << _NEAR) + 1  # from one place to the next: out of this line, which ids that follow each other may fill


class ChunkFacts(NamedTuple):
    """The runs of a chunk by pattern, and how many facts each pattern has so far."""

    runs: Records
    sizes: Ids


class Reduction(NamedTuple):
    """How patterns reduce each other: the turns they take, how many facts are left of each, the rank of each part among
    those at its variable, where rows hold a pattern's leaves, and which patterns are walked afterwards."""

    turns: Ids
    sizes: Ids
    ranks: Ids
    held_from: Ids
    walked: Flags


@compiled
def _split(facts: Ids, first: Int, last: Int, kinds: KindHash, buckets: Small, counts: Ids) -> None:
    """Write for each group of kinds the facts of that group, in their order.

    First the facts of any group are selected: this takes no branch that depends on the data, and most facts go no
    further. Unsigned indices save the test whether they count from the end."""
    multiplier, shift = kinds.multiplier, kinds.shift
    counts[:] = 0
    known, one = np.uint64(0), np.uint64(1)
    for fact in range(first, last):
        kind = facts[fact, 1]
        buckets[0, known] = fact
        known += np.uint64(kinds.kinds[(np.uint64(kind) * multiplier) >> shift] == kind)
    for number in range(known):
        place = np.uint64(buckets[0, number])
        group = np.uint64(kinds.groups[(np.uint64(facts[place, one]) * multiplier) >> shift])
        buckets[group, np.uint64(counts[group])] = place
        counts[group] += 1


@compiled
def _take(facts: Ids, numbers: Floats, candidates: Small, plan: SemijoinPlan, pattern: Int, arena: Ids, at: Int) -> Int:
    """The cells of those candidates that fit a pattern's other constants, into `arena` from `at` on; how many fit."""
    own, after = plan.patterns[pattern], plan.patterns[pattern + 1]
    parts, fixed = plan.parts[own.part : after.part], plan.fixed[own.fixed : after.fixed]
    equal = plan.equal[own.equal : after.equal]
    ranges, bounds = plan.ranges[own.range : after.range], plan.bounds[own.range : after.range]
    width = len(parts)
    tests = fixed.shape[0] + equal.shape[0] + ranges.shape[0]
    if tests == 0 and width == 2:  # the two most common without the loops over tests and parts: `?a :kind ?b`,
        left, right = np.uint64(parts[0].column), np.uint64(parts[1].column)
        for candidate in candidates:
            fact = np.uint64(candidate)
            arena[at], arena[at + 1] = facts[fact, left], facts[fact, right]
            at += 2
        return np.int64(len(candidates))
    kept = np.int64(0)
    if tests == 1 and fixed.shape[0] == 1 and width == 1:  # and `?a a :Class`
        own, column, wanted = np.uint64(parts[0].column), np.uint64(fixed[0, 0]), fixed[0, 1]
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
            arena[at + part] = facts[fact, parts[part].column]
        at += width * fits
        kept += fits
    return kept


@compiled
def _take_all(
    facts: Ids,
    numbers: Floats,
    buckets: Small,
    in_group: Ids,
    plan: SemijoinPlan,
    arena: Ids,
    used: Int,
    taken: ChunkFacts,
) -> Int:
    """Each pattern's facts in a chunk that was split, as runs in `arena` from `used` on; where they end."""
    for pattern in range(len(taken.sizes)):
        own = plan.patterns[pattern]
        candidates = buckets[own.group, : in_group[own.group]]
        count = _take(facts, numbers, candidates, plan, pattern, arena, used)
        run = taken.runs[pattern]
        run.first, run.count = used, count
        used += count * (plan.patterns[pattern + 1].part - own.part)
        taken.sizes[pattern] += count
    return used


@allocating
def _enlarged(arena: Ids, used: Int, wanted: Int) -> Ids:
    """The same with more room; by hand, since assigning a part of an array takes seconds to compile."""
    larger = np.empty(wanted, np.int64)
    for cell in range(used):
        larger[cell] = arena[cell]
    return larger


@compiled
def _find(rows: JoinRows, base: Int, shift: Int, value: Int) -> Int:
    """The row of a value; if there is none, -1 less the place in the table where it would stand."""
    table, held = rows.table, rows.held
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


@compiled
def _new_row(rows: JoinRows, node: Record, value: Int, at: Int) -> Int:
    """A row for a value that has none, at the place that `_find` gave. The table grows from small as it fills."""
    base, row = node.table, node.end
    rows.held[row], rows.stages[row] = value, 0
    rows.table[base + at] = row
    node.end += 1
    bits = 64 - node.shift
    if 2 * (row + 1 - node.origin) > (np.int64(1) << bits) and (np.int64(1) << bits) < node.room:
        size = min(np.int64(1) << (bits + 2), node.room)
        while (np.int64(1) << bits) < size:
            bits += 1
        node.shift = 64 - bits
        rows.table[base : base + size] = -1
        for one in range(node.origin, row + 1):
            free = -1 - _find(rows, base, 64 - bits, rows.held[one])
            rows.table[base + free] = one
    return row


@compiled
def _reduce_table(
    kept: PatternFacts, rows: JoinRows, node: Record, pattern: Int, width: Int, held_from: Int, rank: Int
) -> tuple[Int, bool]:
    """Run the turn of a pattern with one join variable: pass the facts with a row that has passed every earlier
    pattern.

    A row holds the leaves of its first fact; copies are dropped. Returns how many passed, and whether some row has
    several."""
    arena, runs, stages, held = kept.arena, kept.runs, rows.stages, rows.held
    base, shift = node.table, node.shift
    passed, several = np.int64(0), False
    full = np.int64(0)
    for chunk in range(runs.shape[0]):
        run, left = runs[chunk, pattern], np.int64(0)
        at = run.first
        out = at
        for _ in range(run.count):
            here = at
            at += width
            row = _find(rows, base, shift, arena[here])
            if row < 0:
                if rank > 0:
                    continue
                row = _new_row(rows, node, arena[here], -1 - row)
                shift = node.shift
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
            left += 1
        run.count = left
        passed += left
    node.full = full
    return passed, several


@compiled
def _reduce(
    kept: PatternFacts, rows: JoinRows, pattern: Int, width: Int, parts: Records, ranks: Ids, found: Ids
) -> Int:
    """Run the turn of a pattern with several join variables, or none: pass the facts with ends that have passed every
    earlier pattern, and count this pattern as passed; their cells hold rows then. Returns how many passed.

    `found` is room for a row per join variable."""
    arena, runs, nodes, stages = kept.arena, kept.runs, rows.nodes, rows.stages
    count = len(ranks)
    passed = np.int64(0)
    for one in range(count):
        nodes[parts[one].join].full = 0
    for chunk in range(runs.shape[0]):
        run, left = runs[chunk, pattern], np.int64(0)
        at = run.first
        out = at
        for _ in range(run.count):
            here = at
            at += width
            fits = True
            for one in range(count):
                if ranks[one] > 0:
                    node = nodes[parts[one].join]
                    row = _find(rows, node.table, node.shift, arena[here + one])
                    if row < 0 or stages[row] < ranks[one]:
                        fits = False
                        break
                    found[one] = row
            if not fits:
                continue
            for one in range(count):
                node = nodes[parts[one].join]
                if ranks[one] == 0:
                    value = arena[here + one]
                    row = _find(rows, node.table, node.shift, value)
                    found[one] = row if row >= 0 else _new_row(rows, node, value, -1 - row)
                if stages[found[one]] == ranks[one]:
                    stages[found[one]] = ranks[one] + 1
                    node.full += 1
            for one in range(count):
                arena[out + one] = found[one]
            for one in range(count, width):
                arena[out + one] = arena[here + one]
            out += width
            left += 1
        run.count = left
        passed += left
    return passed


@compiled
def _complete(kept: PatternFacts, rows: JoinRows, pattern: Int, width: Int, parts: Records) -> Int:
    """Keep the facts with ends that have all passed all patterns; return how many there are."""
    arena, runs = kept.arena, kept.runs
    total = np.int64(0)
    for chunk in range(runs.shape[0]):
        run, left = runs[chunk, pattern], np.int64(0)
        at = run.first
        out = at
        for _ in range(run.count):
            fits = True
            for one in range(len(parts)):
                fits = fits and rows.stages[arena[at + one]] == rows.nodes[parts[one].join].degree
            for cell in range(width):
                arena[out + cell] = arena[at + cell]
            at += width
            out += width * fits
            left += fits
        run.count = left
        total += left
    return total


@compiled
def _reduce_all(plan: SemijoinPlan, kept: PatternFacts, rows: JoinRows, reduction: Reduction, found: Ids) -> bool:
    """Reduce and complete; return whether facts are left of each pattern. Patterns that are not `walked` are finished
    then.

    `found` is room for a row per join variable."""
    patterns, parts, nodes = plan.patterns, plan.parts, rows.nodes
    sizes, walked = reduction.sizes, reduction.walked
    for join in range(len(nodes)):
        node = nodes[join]
        rows.table[node.table : node.table + (np.int64(1) << (64 - node.shift))] = -1
    for pattern in reduction.turns:
        part, ends = patterns[pattern].part, patterns[pattern].joins
        width = patterns[pattern + 1].part - part
        if ends == 1:
            held_from, rank = reduction.held_from[pattern], reduction.ranks[part]
            sizes[pattern], walked[pattern] = _reduce_table(
                kept, rows, nodes[parts[part].join], pattern, width, held_from, rank
            )
        else:
            own, ranks = parts[part : part + ends], reduction.ranks[part : part + ends]
            sizes[pattern] = _reduce(kept, rows, pattern, width, own, ranks, found)
            walked[pattern] = width > 0
        if sizes[pattern] == 0:
            return False
    for pattern in reduction.turns:
        if walked[pattern]:
            part, ends = patterns[pattern].part, patterns[pattern].joins
            width = patterns[pattern + 1].part - part
            sizes[pattern] = _complete(kept, rows, pattern, width, parts[part : part + ends])
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


@compiled
def _lay_nodes(plan: SemijoinPlan, nodes: Records, reduction: Reduction) -> tuple[Int, Int, Int]:
    """Room for each join variable's table and rows, when it is each pattern's turn at it, and where rows hold leaves.

    Gives the places in tables, the rows, and the cells that rows hold."""
    patterns, parts = plan.patterns, plan.parts
    for pattern in reduction.turns:
        for part in range(patterns[pattern].part, patterns[pattern].part + patterns[pattern].joins):
            node = nodes[parts[part].join]
            if node.degree == 0:
                node.end = reduction.sizes[pattern]
            reduction.ranks[part] = node.degree
            node.degree += 1
    places, rows = np.int64(0), np.int64(0)
    for join in range(len(nodes)):
        node = nodes[join]
        bits = bits_for(node.end)
        node.table, node.room, node.shift = places, np.int64(1) << bits, 64 - min(bits, 10)
        places += node.room
        node.origin = rows
        rows += node.end
    cells = rows
    for pattern in reduction.turns:
        if patterns[pattern].joins == 1:
            first = patterns[pattern].part
            node, leaves = nodes[parts[first].join], patterns[pattern + 1].part - first - 1
            reduction.held_from[pattern] = cells - node.origin * leaves
            cells += node.end * leaves
    for join in range(len(nodes)):
        nodes[join].end = nodes[join].origin
    return places, rows, cells


@compiled
def _split_all(facts: Ids, first: Int, last: Int, kinds: KindHash, buckets: Small, in_group: Ids) -> None:
    """Split a chunk; where some pattern asks for facts of any kind, group 0 are all of them."""
    _split(facts, first, last, kinds, buckets, in_group)
    if kinds.has_any:
        for fact in range(first, last):
            buckets[0, fact - first] = fact
        in_group[0] = last - first


@allocating
def _walk_all(
    plan: SemijoinPlan,
    kept: PatternFacts,
    rows: JoinRows,
    reduction: Reduction,
    steps: Records,
    expected: Int,
    max_matches: Int,
) -> tuple[Int, Ids]:
    """Lay out and walk: whether there were too many matches, and the matches."""
    joins, variables, depths = plan.joins, plan.variables, len(steps)
    lists, cells, pair_places, most = place(plan, reduction.sizes, rows.nodes, steps)
    layout = FactLayout(
        np.zeros(lists, np.int32), np.zeros(lists, np.int32), np.empty(cells, np.int64), np.empty(pair_places, np.int64)
    )
    lay_out(kept, steps, layout, np.empty(np.int64(1) << bits_for(most), np.int64))
    bindings = StepBindings(
        np.zeros(variables, SOURCE),
        np.zeros(len(plan.parts), np.bool_),
        np.empty((len(plan.different), 2), np.int64),
        np.zeros(depths + 1, np.int64),
    )
    bound = MatchBinding(
        np.zeros(variables, np.int64), np.zeros(joins, np.int64), np.zeros(depths, CURSOR), np.zeros(1, PROGRESS)
    )
    bind(plan, reduction.walked, reduction.held_from, steps, bindings, bound)
    room = np.int64(max(min(1.05 * expected, MOST_EXPECTED / variables), 64.0))
    matches = np.empty((room, variables), np.int64)
    while True:
        total = advance(plan.parts, rows, steps, layout, bindings, bound, matches, max_matches)
        if total > max_matches:
            return TOO_MANY, matches[:0]
        if bound.progress[0].depth < 0:
            break
        matches = moved(matches, total, 2 * total)
    return DONE, matches[:total] if 4 * total > len(matches) else moved(matches, total, total)


@allocating_kernel
def window_matches(
    facts: Ids,
    spans: Ids,
    numbers: Floats,
    kinds: KindHash,
    plan: SemijoinPlan,
    buckets: Small,
    arena: Ids,
    max_matches: Int,
) -> tuple[Int, Ids, Ids, Ids]:
    """Return whether a window had too many matches, the matches of all windows one after the other, where those of each
    end, and the arena, which may have grown. A window has the facts from the first number of its span to the second."""
    ends, total = np.zeros(len(spans), np.int64), np.int64(0)
    matches = np.empty((0, plan.variables), np.int64)
    for window in range(len(spans)):
        inside = facts[spans[window, 0] : spans[window, 1]]
        status, found, arena = _all_matches(inside, numbers, kinds, plan, buckets, arena, max_matches)
        if status == TOO_MANY:
            return status, found, ends, arena
        if window == 0:
            matches = found
        elif total + len(found) > len(matches):
            matches = moved(matches, total, 2 * (total + len(found)))
        for row in range(len(found) if window else 0):
            for column in range(plan.variables):
                matches[total + row, column] = found[row, column]
        total += len(found)
        ends[window] = total
    return DONE, matches[:total], ends, arena


@allocating
def _all_matches(
    facts: Ids, numbers: Floats, kinds: KindHash, plan: SemijoinPlan, buckets: Small, arena: Ids, max_matches: Int
) -> tuple[Int, Ids, Ids]:
    """Return whether there were too many matches, the matches, and the arena, which may have grown."""
    count, joins, width = plan.patterns.shape[0] - 1, plan.joins, len(plan.parts)
    none = np.empty((0, plan.variables), np.int64)

    # --- split, chunk by chunk, so that the facts are still near when their other columns are looked at
    chunk = buckets.shape[1]
    in_group = np.zeros(buckets.shape[0], np.int64)
    sizes = np.zeros(count, np.int64)
    runs = np.zeros(((facts.shape[0] + chunk - 1) // chunk, count), RUN)
    used = np.int64(0)
    for number in range(runs.shape[0]):
        first, last = number * chunk, min((number + 1) * chunk, facts.shape[0])
        enough = used + (last - first) * width
        if enough > len(arena):
            likely = np.int64(1.125 * (np.float64(used) / max(first, 1)) * facts.shape[0])
            arena = _enlarged(arena, used, max(enough, likely))
        _split_all(facts, first, last, kinds, buckets, in_group)
        used = _take_all(facts, numbers, buckets, in_group, plan, arena, used, ChunkFacts(runs[number], sizes))
    for pattern in range(count):
        if sizes[pattern] == 0:
            return DONE, none, arena

    # --- reduce, complete
    kept, nodes = PatternFacts(arena, runs), np.zeros(joins, NODE)
    reduction = Reduction(
        _rising(sizes), sizes, np.zeros(width, np.int64), np.zeros(count, np.int64), np.zeros(count, np.bool_)
    )
    places, row_count, cells = _lay_nodes(plan, nodes, reduction)
    rows = JoinRows(nodes, np.empty(places, np.int32), np.empty(row_count, np.int32), np.empty(cells, np.int64))
    if not _reduce_all(plan, kept, rows, reduction, np.empty(joins, np.int64)):
        return DONE, none, arena

    # --- order, lay out, walk
    steps = np.zeros(count + joins, STEP)
    is_bound, is_done = np.zeros(joins, np.bool_), np.zeros(count, np.bool_)
    depths, expected = order(plan, sizes, reduction.walked, nodes, steps, is_bound, is_done)
    if depths == 0:
        return DONE, np.empty((1, plan.variables), np.int64), arena  # facts without variables: all of them are there
    status, matches = _walk_all(plan, kept, rows, reduction, steps[:depths], expected, max_matches)
    return status, matches, arena
