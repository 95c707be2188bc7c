"""All matches of a conjunction over one window's facts, by semi-joins: compiled once, the plan is data.

1. split      each fact into the group of its kind (one pass over the window), then by each pattern's other constants
2. reduce     patterns by rising size: the first at a variable makes a row for each of its values, later ones pass only
              facts whose ends passed all earlier ones; a row counts how many it has passed
3. complete   facts all of whose ends passed every pattern; each end gets a small number
4.-6.         order, lay out, walk: `semijoin_walk`

A join variable stands in several patterns, a leaf in one. What the arrays of a plan hold is said in
`anabranch.delta.evaluation`. Work: O(facts + matches x patterns) for stars and trees; cycles may walk more.
"""

from __future__ import annotations

import numpy as np

from anabranch.delta.batch import Ids
from anabranch.delta.kernels.cache import cached
from anabranch.delta.kernels.semijoin_walk import (
    DONE,
    EQUAL,
    FIXED,
    GROUP,
    JOIN,
    KEPT,
    RANGE,
    Floats,
    Int,
    Kernel,
    Small,
    allocating,
    bits_for,
    hashed,
    inner,
    order,
    walk,
)


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
    """Those of some facts that are of each group of kinds, in their order."""
    counts[:] = 0
    for fact in range(first, last):
        kind = facts[fact, 1]
        slot = (np.uint64(kind) * multiplier) >> shift
        if kinds[slot] == kind:
            group = groups[slot]
            buckets[group, counts[group]] = fact
            counts[group] += 1


@inner
def _filter(
    facts: Ids,
    numbers: Floats,
    candidates: Small,
    found: Small,
    at: Int,
    fixed: Ids,
    equal: Ids,
    ranges: Ids,
    bounds: Floats,
) -> Int:
    """Those of the candidates that fit a pattern's other constants, into `found` from `at` on; where they end."""
    tests = fixed.shape[0] + equal.shape[0] + ranges.shape[0]
    if tests == 0:
        for fact in candidates:
            found[at] = fact
            at += 1
        return at
    if tests == 1 and fixed.shape[0] == 1:  # the most common, `a :Class`, without the loops over tests
        column, wanted = fixed[0, 0], fixed[0, 1]
        for fact in candidates:
            found[at] = fact
            at += facts[fact, column] == wanted
        return at
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
        found[at] = fact
        at += fits
    return at


@inner
def _find(table: Small, base: Int, shift: Int, row_values: Ids, value: Int) -> Int:
    """The row of a value; if there is none, -1 less the place in the table where it would stand."""
    mask = (np.int64(1) << (64 - shift)) - 1
    at = hashed(value, shift)
    while True:
        row = np.int64(table[base + at])
        if row < 0:
            return -1 - at
        if row_values[row] == value:
            return row
        at = (at + 1) & mask


@inner
def _new_row(
    table: Small,
    tables: Ids,
    shifts: Ids,
    row_starts: Ids,
    row_ends: Ids,
    row_values: Ids,
    row_stages: Small,
    variable: Int,
    value: Int,
    at: Int,
) -> Int:
    """A row for a value that has none, at the place that `_find` gave. The table grows from small as it fills."""
    base, row = tables[variable], row_ends[variable]
    row_values[row], row_stages[row] = value, 0
    table[base + at] = row
    row_ends[variable] += 1
    bits, most = 64 - shifts[variable], tables[variable + 1] - base
    if 2 * (row + 1 - row_starts[variable]) > (np.int64(1) << bits) and (np.int64(1) << bits) < most:
        size = min(np.int64(1) << (bits + 2), most)
        while (np.int64(1) << bits) < size:
            bits += 1
        shifts[variable] = 64 - bits
        table[base : base + size] = -1
        for one in range(row_starts[variable], row + 1):
            place = -1 - _find(table, base, 64 - bits, row_values, row_values[one])
            table[base + place] = one
    return row


@allocating
def _reduce(
    facts: Ids,
    candidates: Small,
    joins: Ids,
    ranks: Ids,
    table: Small,
    tables: Ids,
    shifts: Ids,
    row_starts: Ids,
    row_ends: Ids,
    row_values: Ids,
    row_stages: Small,
    kept_facts: Small,
    kept_ends: Small,
    at: Int,
) -> tuple[Int, Int]:
    """One pattern's turn: pass the facts whose ends have passed every earlier pattern, and remember that they did.

    Where `at` is negative nothing is kept of the facts. Gives where the kept ones end and how many passed."""
    count = joins.shape[0]
    passed = 0
    if count == 1:  # the most common: one probe decides
        column, variable, rank = joins[0, 0], joins[0, 1], ranks[0]
        base, shift = tables[variable], shifts[variable]
        for fact in candidates:
            value = facts[fact, column]
            row = _find(table, base, shift, row_values, value)
            if row < 0:
                if rank > 0:
                    continue
                row = _new_row(
                    table, tables, shifts, row_starts, row_ends, row_values, row_stages, variable, value, -1 - row
                )
                shift = shifts[variable]
            if row_stages[row] < rank:
                continue
            if row_stages[row] == rank:
                row_stages[row] = rank + 1
            passed += 1
            if at >= 0:
                kept_facts[at] = fact
                kept_ends[at, 0] = row
                at += 1
        return at, passed
    rows = np.empty(max(count, 1), np.int64)
    for fact in candidates:
        fits = True
        for one in range(count):
            if ranks[one] > 0:
                variable = joins[one, 1]
                row = _find(table, tables[variable], shifts[variable], row_values, facts[fact, joins[one, 0]])
                if row < 0 or row_stages[row] < ranks[one]:
                    fits = False
                    break
                rows[one] = row
        if not fits:
            continue
        passed += 1
        for one in range(count):
            if ranks[one] == 0:
                variable, value = joins[one, 1], facts[fact, joins[one, 0]]
                row = _find(table, tables[variable], shifts[variable], row_values, value)
                if row < 0:
                    row = _new_row(
                        table, tables, shifts, row_starts, row_ends, row_values, row_stages, variable, value, -1 - row
                    )
                rows[one] = row
            if row_stages[rows[one]] == ranks[one]:
                row_stages[rows[one]] = ranks[one] + 1
        if at >= 0:
            kept_facts[at] = fact
            for one in range(count):
                kept_ends[at, one] = rows[one]
            at += 1
    return at, passed


@inner
def _complete(
    row_stages: Small,
    joins: Ids,
    degrees: Ids,
    numbered: Ids,
    kept_facts: Small,
    kept_ends: Small,
    first: Int,
    last: Int,
) -> Int:
    """Keep the facts all of whose ends have passed all patterns; rows become numbers. Gives where they end."""
    count = joins.shape[0]
    at = first
    for one in range(first, last):
        fits = True
        for join in range(count):
            fits = fits and row_stages[kept_ends[one, join]] >= degrees[joins[join, 1]]
        if not fits:
            continue
        kept_facts[at] = kept_facts[one]
        for join in range(count):
            row, variable = kept_ends[one, join], joins[join, 1]
            if row_stages[row] == degrees[variable]:
                numbered[variable] += 1
                row_stages[row] = degrees[variable] + numbered[variable]
            kept_ends[at, join] = row_stages[row] - degrees[variable] - 1
        at += 1
    return at


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


@kernel
def all_matches(
    facts: Ids,
    numbers: Floats,
    buckets: Small,
    rows: Small,
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
    joins: Ids,
    leaves: Ids,
    join_variables: Ids,
    different: Ids,
    variables: Int,
    max_matches: Int,
) -> tuple[Int, Ids]:
    """Whether there were too many matches, and the matches."""
    count = patterns.shape[0] - 1
    none = np.empty((0, variables), np.int64)

    # --- split, chunk by chunk, so that the facts are still near when their other columns are looked at
    chunk = buckets.shape[1]
    in_group = np.zeros(buckets.shape[0], np.int64)
    sizes = np.zeros(count, np.int64)
    for first in range(0, facts.shape[0], chunk):
        last = min(first + chunk, facts.shape[0])
        _split(facts, first, last, kinds, groups, multiplier, shift, buckets, in_group)
        if has_any_kind:
            for fact in range(first, last):
                buckets[0, fact - first] = fact
            in_group[0] = last - first
        for pattern in range(count):
            group = patterns[pattern, GROUP]
            sizes[pattern] = _filter(
                facts,
                numbers,
                buckets[group, : in_group[group]],
                rows[pattern],
                sizes[pattern],
                fixed[patterns[pattern, FIXED] : patterns[pattern + 1, FIXED]],
                equal[patterns[pattern, EQUAL] : patterns[pattern + 1, EQUAL]],
                ranges[patterns[pattern, RANGE] : patterns[pattern + 1, RANGE]],
                bounds[patterns[pattern, RANGE] : patterns[pattern + 1, RANGE]],
            )
    for pattern in range(count):
        if sizes[pattern] == 0:
            return DONE, none

    # --- reduce
    turns = _rising(sizes)
    degrees = np.zeros(len(join_variables), np.int64)
    # Per join variable: where its table begins (the next one's beginning is its end) and where its rows are.
    tables, shifts = np.zeros(len(join_variables) + 1, np.int64), np.zeros(len(join_variables), np.int64)
    row_starts = np.zeros(len(join_variables) + 1, np.int64)
    ranks = np.empty(len(joins), np.int64)
    for pattern in turns:
        for join in range(patterns[pattern, JOIN], patterns[pattern + 1, JOIN]):
            variable = joins[join, 1]
            if degrees[variable] == 0:
                row_starts[variable + 1] = sizes[pattern]
                tables[variable + 1] = np.int64(1) << bits_for(sizes[pattern])
            ranks[join] = degrees[variable]
            degrees[variable] += 1
    for variable in range(len(join_variables)):
        bits = min(bits_for(row_starts[variable + 1]), 10)
        shifts[variable] = 64 - bits
        tables[variable + 1] += tables[variable]
        row_starts[variable + 1] += row_starts[variable]
    table = np.empty(tables[-1], np.int32)
    for variable in range(len(join_variables)):
        table[tables[variable] : tables[variable] + (np.int64(1) << (64 - shifts[variable]))] = -1
    row_ends = row_starts[:-1].copy()
    row_values, row_stages = np.empty(row_starts[-1], np.int64), np.empty(row_starts[-1], np.int32)
    starts, ends = np.zeros(count, np.int64), np.zeros(count, np.int64)
    widest = 1
    room = 0
    for pattern in range(count):
        if patterns[pattern, KEPT]:
            room += sizes[pattern]
            widest = max(widest, patterns[pattern + 1, JOIN] - patterns[pattern, JOIN])
    kept_facts, kept_ends = np.empty(room, np.int32), np.empty((room, widest), np.int32)
    at = np.int64(0)
    for pattern in turns:
        first, last = patterns[pattern, JOIN], patterns[pattern + 1, JOIN]
        starts[pattern] = at
        ends[pattern], passed = _reduce(
            facts,
            rows[pattern, : sizes[pattern]],
            joins[first:last],
            ranks[first:last],
            table,
            tables,
            shifts,
            row_starts,
            row_ends,
            row_values,
            row_stages,
            kept_facts,
            kept_ends,
            at if patterns[pattern, KEPT] else np.int64(-1),
        )
        if passed == 0:
            return DONE, none
        at = max(at, ends[pattern])

    # --- complete
    numbered = np.zeros(len(join_variables), np.int64)
    for pattern in turns[::-1]:
        if patterns[pattern, KEPT]:
            ends[pattern] = _complete(
                row_stages,
                joins[patterns[pattern, JOIN] : patterns[pattern + 1, JOIN]],
                degrees,
                numbered,
                kept_facts,
                kept_ends,
                starts[pattern],
                ends[pattern],
            )
            if ends[pattern] == starts[pattern]:
                return DONE, none

    # --- order and walk
    steps, steps_join = np.zeros((count, 2), np.int64), np.zeros(count, np.int64)
    depths = order(patterns, joins, starts, ends, numbered, steps, steps_join)
    if depths == 0:
        return DONE, np.empty((1, variables), np.int64)  # facts without variables, and all of them are there
    return walk(
        facts,
        patterns,
        joins,
        leaves,
        join_variables,
        different,
        variables,
        starts,
        ends,
        kept_facts,
        kept_ends,
        numbered,
        steps,
        steps_join,
        depths,
        max_matches,
    )
