"""The second half of semi-join evaluation: what the patterns left of each other is laid out and walked.

4. order      depth-first from the smallest pattern; what closes a cycle at once, then the smallest fan-out
5. lay out    what is left of them, side by side at the end from which it will be reached, each fact once, or hashed
              where both ends will be known
6. walk       and write down what is bound when the last pattern has been passed

Patterns whose rows hold their only fact's leaves are no steps: what they say is read off the rows that a match binds.

Invariant: a row that is bound has passed every pattern at its variable. So the walk fails only where it closes a cycle,
where two values must differ, or where all of a row's facts lead to rows that have not passed.
Code that makes no arrays is compiled without counting references (`inner`): `semijoin.window_matches` makes all arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anabranch.delta.batch import Ids
from anabranch.delta.kernels.compiling import Int, Record, Records, Small, allocating, compiled, fields, inlined
from anabranch.delta.kernels.semijoin_plan import Flags, SemijoinPlan

NODE = np.dtype([
    *fields("table room shift"),  # of a join variable: where its table is, its room, and the shift of its hash
    *fields("origin end"),  # where its rows begin and end
    *fields("degree full"),  # how many patterns are at it; how many rows have passed the last of them
])  # fmt: skip
STEP = np.dtype([
    *fields("pattern access by"),  # the pattern, how and by which of its ends it is come by (EACH: of which node)
    *fields("first ends width"),  # its parts, join variables and cells per fact
    *fields("cells lists"),  # where its cells (CLOSE: the shift of its hash) and its lists are
    *fields("start size"),  # the row of the first list, how many lists (EACH: the first row, where the rows end)
])  # fmt: skip
CURSOR = np.dtype(fields("next last list"))  # the next fact, where its list ends and, for a scan, the list
# Where a variable's value is: a node, from where on its rows hold it, cells per row; node -1: the walk puts it down.
SOURCE = np.dtype(fields("node start width"))
RUN = np.dtype(fields("first count"))  # of a pattern's facts in the arena
PROGRESS = np.dtype(fields("depth found"))  # of a walk; depth -1: done

SCAN, REACH, CLOSE, EACH = range(4)
DONE, TOO_MANY = range(2)

_FEW = 16  # of so many facts side by side copies are found by comparing all of them
MOST_EXPECTED = float(1 << 22)  # cells of matches that room is made for before they are found
_OUT_OF_REACH = 1e18  # the cost of beginning again in the middle: it multiplies all that was found so far


class PatternFacts(NamedTuple):
    """The facts that are left of each pattern: the arena, and by chunk and pattern the run of its facts there."""

    arena: Ids
    runs: Records


class JoinRows(NamedTuple):
    """The rows of all join variables: by variable a node; the tables; how many patterns each row has passed; and the
    values of all rows, then, pattern by pattern, the leaves that rows hold."""

    nodes: Records
    table: Small
    stages: Small
    held: Ids


class FactLayout(NamedTuple):
    """Facts side by side: where each list begins and stops, the cells of all facts, and the hashes of pairs."""

    begins: Small
    stops: Small
    cells: Ids
    pairs: Ids


class StepBindings(NamedTuple):
    """Bindings of steps: the sources of variables, the parts that bind a join variable first, and the pairs that must
    differ by the step that binds the second of them, those of a step from `tests_from` on."""

    sources: Records
    binds: Flags
    tests: Ids
    tests_from: Ids


class MatchBinding(NamedTuple):
    """State of a walk: leaves and rows bound so far, a cursor for each step, and the one progress."""

    values: Ids
    rows: Ids
    cursors: Records
    progress: Records


@compiled
def hashed(value: Int, shift: Int) -> Int:
    return np.int64((np.uint64(value) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(shift))


@compiled
def bits_for(count: Int) -> Int:
    """Return the bits of a table that `count` entries fill at most half."""
    bits = 4
    while (np.int64(1) << bits) < 2 * count:
        bits += 1
    return bits


@compiled
def order(
    plan: SemijoinPlan, sizes: Ids, walked: Flags, nodes: Records, steps: Records, bound: Flags, done: Flags
) -> tuple[Int, Int]:
    """The order of the walked patterns and how each is come by; then the rows of variables that none of them binds.

    `bound` and `done` are room for a flag per join variable and per pattern. Gives the number of steps, and about how
    many matches there will be."""
    patterns, parts = plan.patterns, plan.parts
    depth, expected = 0, 1.0
    while True:
        best, best_cost, best_access, best_by = -1, np.inf, SCAN, -1
        for pattern in range(len(sizes)):
            if done[pattern] or not walked[pattern]:
                continue
            size: Int = np.float64(sizes[pattern])
            first, joins = patterns[pattern].part, patterns[pattern].joins
            access, cost, by = SCAN, size + (_OUT_OF_REACH if depth else 0.0), 0 if joins else -1
            known = 0
            for join in range(joins):
                node = parts[first + join].join
                if bound[node]:
                    known += 1
                    if access != REACH or size / nodes[node].full < cost:
                        access, cost, by = REACH, size / nodes[node].full, join
            if known > 1 and first + known == patterns[pattern + 1].part:
                cost = -1.0
                if known == 2:
                    access = CLOSE
            if cost < best_cost:
                best, best_cost, best_access, best_by = pattern, cost, access, by
        if best < 0:
            break
        done[best] = True
        step = steps[depth]
        step.pattern, step.access, step.by = best, best_access, best_by
        depth += 1
        expected *= best_cost % _OUT_OF_REACH if best_cost > 0.0 else 1.0
        for part in range(patterns[best].part, patterns[best].part + patterns[best].joins):
            bound[parts[part].join] = True
    for node in range(len(nodes)):
        if not bound[node]:
            step = steps[depth]
            step.pattern, step.access, step.by = -1, EACH, node
            depth += 1
            expected *= nodes[node].full
    return depth, expected


@compiled
def place(plan: SemijoinPlan, sizes: Ids, nodes: Records, steps: Records) -> tuple[Int, Int, Int, Int]:
    """Where each step's facts will be; the lists, the cells and the places for pairs of all of them, and how many facts
    the largest has."""
    lists, cells, pairs, most = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    for depth in range(len(steps)):
        step = steps[depth]
        pattern, by = step.pattern, step.by
        if step.access == EACH:
            step.start, step.size = nodes[by].origin, nodes[by].end
            continue
        step.first, step.ends = plan.patterns[pattern].part, plan.patterns[pattern].joins
        step.width = plan.patterns[pattern + 1].part - step.first
        if step.access == CLOSE:
            bits = bits_for(sizes[pattern])
            step.lists, step.size, step.cells = pairs, np.int64(1) << bits, 64 - bits
            pairs += step.size
        else:
            step.start, step.size = 0, 1
            if by >= 0:
                node = nodes[plan.parts[step.first + by].join]
                step.start, step.size = node.origin, node.end - node.origin
            step.lists, step.cells = lists, cells
            lists += step.size
            cells += sizes[pattern] * step.width
            most = max(most, sizes[pattern])
    return lists, cells, pairs, most


@compiled
def _without_copies(cells: Ids, first: Int, last: Int, width: Int, entries: Ids) -> Int:
    """Move the cells of each fact that is not a copy of one before it to the front; where they end.

    Facts are `width` cells from `first` on. `entries` is room for a hash of them, where they are many."""
    unique = first
    many = last - first > _FEW
    bits = bits_for(last - first)
    mask, shift = (np.int64(1) << bits) - 1, np.uint64(64 - bits)
    if many:
        entries[: mask + 1] = -1
    for one in range(first, last):
        copied = False
        slot = np.int64(0)
        if many:
            mixed = np.uint64(0)
            for cell in range(one * width, (one + 1) * width):
                mixed = (mixed ^ (mixed >> np.uint64(29)) ^ np.uint64(cells[cell])) * np.uint64(0x9E3779B97F4A7C15)
            slot = np.int64(mixed >> shift)
        other = first
        while True:
            if many:
                other = entries[slot]
                if other < 0:
                    break
            elif other >= unique:
                break
            copied = True
            for cell in range(width):
                copied = copied and cells[other * width + cell] == cells[one * width + cell]
            if copied:
                break
            slot = (slot + 1) & mask
            other += 1
        if copied:
            continue
        if many:
            entries[slot] = unique
        if unique != one:
            for cell in range(width):
                cells[unique * width + cell] = cells[one * width + cell]
        unique += 1
    return unique


@compiled
def _lay_out(kept: PatternFacts, step: Record, begins: Small, stops: Small, cells: Ids, entries: Ids) -> None:
    """The facts of a step's pattern, side by side by the row of the end that it is come by, or all together; each
    once."""
    arena, runs = kept.arena, kept.runs
    pattern, width, by, origin = step.pattern, step.width, step.by, step.start
    for chunk in range(runs.shape[0]):
        at = runs[chunk, pattern].first
        for _ in range(runs[chunk, pattern].count):
            begins[arena[at + by] - origin if by >= 0 else 0] += 1
            at += width
    total = np.int64(0)
    for row in range(len(begins)):
        size = np.int64(begins[row])
        begins[row], stops[row] = total, total
        total += size
    for chunk in range(runs.shape[0]):
        at = runs[chunk, pattern].first
        for _ in range(runs[chunk, pattern].count):
            row = arena[at + by] - origin if by >= 0 else 0
            for cell in range(width):
                cells[stops[row] * width + cell] = arena[at + cell]
            stops[row] += 1
            at += width
    for row in range(len(begins)):
        if stops[row] - begins[row] > 1:
            stops[row] = _without_copies(cells, np.int64(begins[row]), np.int64(stops[row]), width, entries)


@compiled
def _insert_pairs(kept: PatternFacts, pattern: Int, pairs: Ids, shift: Int) -> None:
    """A hash of the pairs of rows that the facts' ends are."""
    arena, runs = kept.arena, kept.runs
    mask = len(pairs) - 1
    pairs[:] = -1
    for chunk in range(runs.shape[0]):
        at = runs[chunk, pattern].first
        for _ in range(runs[chunk, pattern].count):
            pair = (arena[at] << 32) | arena[at + 1]
            at += 2
            slot = hashed(pair, shift)
            while pairs[slot] >= 0 and pairs[slot] != pair:
                slot = (slot + 1) & mask
            pairs[slot] = pair


@compiled
def lay_out(kept: PatternFacts, steps: Records, layout: FactLayout, entries: Ids) -> None:
    """The facts of all steps, where `place` said; `entries` is room for a hash of the most that one has."""
    for depth in range(len(steps)):
        step = steps[depth]
        at, after = step.lists, step.lists + step.size
        if step.access == CLOSE:
            _insert_pairs(kept, step.pattern, layout.pairs[at:after], step.cells)
        elif step.access != EACH:
            own = layout.cells[step.cells :]
            _lay_out(kept, step, layout.begins[at:after], layout.stops[at:after], own, entries)


@allocating
def moved(matches: Ids, found: Int, room: Int) -> Ids:
    """Return the matches with more room; copied by a loop, since assigning a part of an array takes seconds to
    compile."""
    larger = np.empty((room, matches.shape[1]), np.int64)
    for row in range(found):
        for column in range(matches.shape[1]):
            larger[row, column] = matches[row, column]
    return larger


@compiled
def bind(
    plan: SemijoinPlan, walked: Flags, held_from: Ids, steps: Records, bindings: StepBindings, bound: MatchBinding
) -> None:
    """Find out what each step binds, and which variables can be compared then.

    The rows and values of `bound` are room for a depth per join variable and per variable."""
    patterns, parts, sources = plan.patterns, plan.parts, bindings.sources
    bound_at, variable_at = bound.rows, bound.values
    bound_at[:] = -1
    for depth in range(len(steps)):
        pattern = steps[depth].pattern
        if pattern < 0:
            bound_at[steps[depth].by] = depth
            continue
        for number in range(patterns[pattern].part, patterns[pattern + 1].part):
            part = parts[number]
            if part.join < 0:
                variable_at[part.variable] = depth
                sources[part.variable].node = -1
            elif bound_at[part.join] < 0:
                bound_at[part.join], bindings.binds[number] = depth, True
    for pattern in range(len(walked)):
        first, joins, end = patterns[pattern].part, patterns[pattern].joins, patterns[pattern + 1].part
        for number in range(first, first + joins):
            source = sources[parts[number].variable]
            source.node, source.start, source.width = parts[number].join, 0, 1
            variable_at[parts[number].variable] = bound_at[parts[number].join]
        if joins == 1 and not walked[pattern]:
            node = parts[first].join
            for number in range(first + 1, end):
                source = sources[parts[number].variable]
                source.node, source.start = node, held_from[pattern] + number - first - 1
                source.width = end - first - 1
                variable_at[parts[number].variable] = bound_at[node]
    _order_tests(plan.different, variable_at, bindings, len(steps))


@compiled
def _order_tests(different: Ids, variable_at: Ids, bindings: StepBindings, depths: Int) -> None:
    """Put the pairs that must differ where the step comes that binds the second of them."""
    count = 0
    for depth in range(depths):
        bindings.tests_from[depth] = count
        for pair in range(len(different)):
            if max(variable_at[different[pair, 0]], variable_at[different[pair, 1]]) == depth:
                bindings.tests[count, 0], bindings.tests[count, 1] = different[pair, 0], different[pair, 1]
                count += 1
    bindings.tests_from[depths] = count


@inlined
def _value(variable: Int, sources: Records, held: Ids, bound: MatchBinding) -> Int:
    source = sources[variable]
    return bound.values[variable] if source.node < 0 else held[source.start + bound.rows[source.node] * source.width]


@inlined
def _enter(step: Record, parts: Records, layout: FactLayout, bound: MatchBinding, cursor: Record) -> None:
    """Set a step's cursor at its first fact."""
    first, offset = step.first, step.lists
    if step.access == REACH:
        number = offset + bound.rows[parts[first + step.by].join] - step.start
        cursor.next, cursor.last = layout.begins[number], layout.stops[number]
    elif step.access == SCAN:
        cursor.list = 0
        cursor.next, cursor.last = layout.begins[offset], layout.stops[offset]
    elif step.access == EACH:
        cursor.next, cursor.last = step.start, step.size
    else:
        wanted = (bound.rows[parts[first].join] << 32) | bound.rows[parts[first + 1].join]
        slot = hashed(wanted, step.cells)
        while layout.pairs[offset + slot] >= 0 and layout.pairs[offset + slot] != wanted:
            slot = (slot + 1) & (step.size - 1)
        cursor.next, cursor.last = 0, layout.pairs[offset + slot] == wanted


@inlined
def _bind_fact(step: Record, parts: Records, cells: Ids, binds: Flags, bound: MatchBinding, at: Int) -> bool:
    """Bind the rows and leaves of a fact; False when it does not fit those that are bound."""
    first, ends = step.first, step.ends
    for end in range(ends):
        node, row = parts[first + end].join, cells[at + end]
        if binds[first + end]:
            bound.rows[node] = row
        elif bound.rows[node] != row:
            return False
    for leaf in range(ends, step.width):
        bound.values[parts[first + leaf].variable] = cells[at + leaf]
    return True


@inlined
def _differ(depth: Int, bindings: StepBindings, held: Ids, bound: MatchBinding) -> bool:
    """Return whether the pairs that can be compared at a depth differ."""
    tests, sources = bindings.tests, bindings.sources
    differ = True
    for test in range(bindings.tests_from[depth], bindings.tests_from[depth + 1]):
        left = _value(tests[test, 0], sources, held, bound)
        differ = differ and left != _value(tests[test, 1], sources, held, bound)
    return differ


@compiled
def advance(
    parts: Records,
    rows: JoinRows,
    steps: Records,
    layout: FactLayout,
    bindings: StepBindings,
    bound: MatchBinding,
    matches: Ids,
    max_matches: Int,
) -> Int:
    """Walk on until all is found, there is no room for the next match, or it is one too many; how many were found."""
    progress = bound.progress[0]
    depth, found, enters = progress.depth, progress.found, progress.found == 0
    while depth >= 0:
        step, own = steps[depth], bound.cursors[depth]
        access, width, base = step.access, step.width, step.cells
        if enters:
            _enter(step, parts, layout, bound, own)
        cursor, stop, enters = own.next, own.last, False
        while cursor < stop:
            here = cursor
            cursor += 1
            if access == EACH:
                if rows.stages[here] < rows.nodes[step.by].degree:
                    continue
                bound.rows[step.by] = here
            elif access != CLOSE and not _bind_fact(
                step, parts, layout.cells, bindings.binds, bound, base + here * width
            ):
                continue
            if not _differ(depth, bindings, rows.held, bound):
                continue
            if depth + 1 < len(steps):
                enters = True
                break
            if found == len(matches) or found == max_matches:
                own.next, progress.depth, progress.found = here, depth, found
                return found + (found == max_matches)
            for variable in range(matches.shape[1]):
                matches[found, variable] = _value(variable, bindings.sources, rows.held, bound)
            found += 1
        own.next = cursor
        if enters:
            depth += 1
        elif access == SCAN and own.list + 1 < step.size:
            own.list += 1
            number = step.lists + own.list
            own.next, own.last = layout.begins[number], layout.stops[number]
        else:
            depth -= 1
    progress.depth = depth
    return found
