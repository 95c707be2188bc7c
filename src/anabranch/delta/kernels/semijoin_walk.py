"""The second half of semi-join evaluation: what the patterns left of each other is laid out and walked.

4. order      depth-first from the smallest pattern; what closes a cycle at once, then the smallest fan-out
5. lay out    what is left of them, side by side at the end from which it will be reached, each fact once, or hashed
              where both ends will be known
6. walk       and write down what is bound when the last pattern has been passed

Patterns whose rows hold their only fact's leaves are no steps: what they say is read off the rows that a match binds.

Invariant: a row that is bound has passed every pattern at its variable. So the walk fails only where it closes a cycle,
where two values must differ, or where all of a row's facts lead to rows that have not passed. What makes no arrays is
compiled without counting references (`inner`): all arrays are made in `semijoin.all_matches`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt
from numba import njit

from anabranch.delta.batch import Ids

Small = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Int: TypeAlias = Any  # an int, of whatever make
Float: TypeAlias = Any
Kernel = TypeVar("Kernel", bound=Callable[..., Any])

# columns of `patterns`; of FIXED to PART, where the pattern's part of another array begins: it ends at the next one's
GROUP, FIXED, EQUAL, RANGE, PART, JOINS = range(6)
# columns of `nodes`, one for each join variable: where its table is, its room and shift, where its rows begin and end,
# how many patterns are at it, how many rows have passed the last of them
TABLE, ROOM, SHIFT, ORIGIN, END, DEGREE, FULL = range(7)
# columns of `steps`: the pattern, how and by which of its ends it is come by (EACH: of which node), its parts, join
# variables and cells per fact, where its cells (CLOSE: the shift of its hash) and its lists are, the row of the first
# list (EACH: the first row), how many lists there are (EACH: where the rows end)
PATTERN, ACCESS, BY, FIRST, ENDS, WIDTH, CELLS, LISTS, START, SIZE = range(10)
NEXT, LAST, LIST = range(3)  # columns of `cursors`
SCAN, REACH, CLOSE, EACH = range(4)
DONE, TOO_MANY = range(2)

_FEW = 16  # of so many facts side by side copies are found by comparing all of them
MOST_EXPECTED = float(1 << 22)  # cells of matches that room is made for before they are found
_OUT_OF_REACH = 1e18  # the cost of beginning anew in the middle: it multiplies all that was found so far


_QUICK: dict[str, Any] = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""No code for calls from Python, which takes as long to compile as the functions themselves."""
_UNCOUNTED: dict[str, Any] = {"_nrt": False}


def allocating(function: Kernel) -> Kernel:
    """For what kernels call a few times, and what makes arrays."""
    return cast(Kernel, njit(**_QUICK)(function))


def inner(function: Kernel) -> Kernel:
    """For what makes no arrays: counting references to those that it is given costs more than most of it does."""
    return cast(Kernel, njit(**_QUICK, **_UNCOUNTED)(function))


@inner
def hashed(value: Int, shift: Int) -> Int:
    return np.int64((np.uint64(value) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(shift))


@inner
def bits_for(count: Int) -> Int:
    """Of a table that `count` entries fill at most half."""
    bits = 4
    while (np.int64(1) << bits) < 2 * count:
        bits += 1
    return bits


@inner
def order(
    patterns: Ids, parts: Ids, sizes: Ids, walked: Flags, nodes: Ids, steps: Ids, bound: Flags, done: Flags
) -> tuple[Int, Float]:
    """The order of the walked patterns and how each is come by; then the rows of variables that none of them binds.

    `bound` and `done` are room for a flag per join variable and per pattern. Gives the number of steps, and about how
    many matches there will be."""
    depth, expected = 0, 1.0
    while True:
        best, best_cost, best_access, best_by = -1, np.inf, SCAN, -1
        for pattern in range(len(sizes)):
            if done[pattern] or not walked[pattern]:
                continue
            size: Float = np.float64(sizes[pattern])
            first, joins = patterns[pattern, PART], patterns[pattern, JOINS]
            access, cost, by = SCAN, size + (_OUT_OF_REACH if depth else 0.0), 0 if joins else -1
            known = 0
            for join in range(joins):
                node = parts[first + join, 1]
                if bound[node]:
                    known += 1
                    if access != REACH or size / nodes[node, FULL] < cost:
                        access, cost, by = REACH, size / nodes[node, FULL], join
            if known > 1 and first + known == patterns[pattern + 1, PART]:
                cost = -1.0
                if known == 2:
                    access = CLOSE
            if cost < best_cost:
                best, best_cost, best_access, best_by = pattern, cost, access, by
        if best < 0:
            break
        done[best] = True
        steps[depth, PATTERN], steps[depth, ACCESS], steps[depth, BY] = best, best_access, best_by
        depth += 1
        expected *= best_cost % _OUT_OF_REACH if best_cost > 0.0 else 1.0
        for part in range(patterns[best, PART], patterns[best, PART] + patterns[best, JOINS]):
            bound[parts[part, 1]] = True
    for node in range(len(nodes)):
        if not bound[node]:
            steps[depth, PATTERN], steps[depth, ACCESS], steps[depth, BY] = -1, EACH, node
            depth += 1
            expected *= nodes[node, FULL]
    return depth, expected


@inner
def place(patterns: Ids, parts: Ids, sizes: Ids, nodes: Ids, steps: Ids) -> tuple[Int, Int, Int, Int]:
    """Where each step's facts will be; the lists, the cells and the places for pairs of all of them, and how many facts
    the largest has."""
    lists, cells, pairs, most = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    for depth in range(len(steps)):
        step = steps[depth]
        pattern, by = step[PATTERN], step[BY]
        if step[ACCESS] == EACH:
            step[START], step[SIZE] = nodes[by, ORIGIN], nodes[by, END]
            continue
        step[FIRST], step[ENDS] = patterns[pattern, PART], patterns[pattern, JOINS]
        step[WIDTH] = patterns[pattern + 1, PART] - step[FIRST]
        if step[ACCESS] == CLOSE:
            bits = bits_for(sizes[pattern])
            step[LISTS], step[SIZE], step[CELLS] = pairs, np.int64(1) << bits, 64 - bits
            pairs += step[SIZE]
        else:
            step[START], step[SIZE] = 0, 1
            if by >= 0:
                node = parts[step[FIRST] + by, 1]
                step[START], step[SIZE] = nodes[node, ORIGIN], nodes[node, END] - nodes[node, ORIGIN]
            step[LISTS], step[CELLS] = lists, cells
            lists += step[SIZE]
            cells += sizes[pattern] * step[WIDTH]
            most = max(most, sizes[pattern])
    return lists, cells, pairs, most


@inner
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


@inner
def _lay_out(arena: Ids, runs: Ids, step: Ids, begins: Small, stops: Small, cells: Ids, entries: Ids) -> None:
    """The facts of a step's pattern, side by side by the row of the end that it is come by, or all together; each
    once."""
    pattern, width, by, origin = step[PATTERN], step[WIDTH], step[BY], step[START]
    for chunk in range(runs.shape[0]):
        at = runs[chunk, pattern, 0]
        for _ in range(runs[chunk, pattern, 1]):
            begins[arena[at + by] - origin if by >= 0 else 0] += 1
            at += width
    total = np.int64(0)
    for row in range(len(begins)):
        size = np.int64(begins[row])
        begins[row], stops[row] = total, total
        total += size
    for chunk in range(runs.shape[0]):
        at = runs[chunk, pattern, 0]
        for _ in range(runs[chunk, pattern, 1]):
            row = arena[at + by] - origin if by >= 0 else 0
            for cell in range(width):
                cells[stops[row] * width + cell] = arena[at + cell]
            stops[row] += 1
            at += width
    for row in range(len(begins)):
        if stops[row] - begins[row] > 1:
            stops[row] = _without_copies(cells, np.int64(begins[row]), np.int64(stops[row]), width, entries)


@inner
def _insert_pairs(arena: Ids, runs: Ids, pattern: Int, pairs: Ids, shift: Int) -> None:
    """A hash of the pairs of rows that the facts' ends are."""
    mask = len(pairs) - 1
    pairs[:] = -1
    for chunk in range(runs.shape[0]):
        at = runs[chunk, pattern, 0]
        for _ in range(runs[chunk, pattern, 1]):
            pair = (arena[at] << 32) | arena[at + 1]
            at += 2
            slot = hashed(pair, shift)
            while pairs[slot] >= 0 and pairs[slot] != pair:
                slot = (slot + 1) & mask
            pairs[slot] = pair


@inner
def lay_out(
    arena: Ids, runs: Ids, steps: Ids, begins: Small, stops: Small, cells: Ids, pairs: Ids, entries: Ids
) -> None:
    """The facts of all steps, where `place` said; `entries` is room for a hash of the most that one has."""
    for depth in range(len(steps)):
        step = steps[depth]
        at, after = step[LISTS], step[LISTS] + step[SIZE]
        if step[ACCESS] == CLOSE:
            _insert_pairs(arena, runs, step[PATTERN], pairs[at:after], step[CELLS])
        elif step[ACCESS] != EACH:
            own = cells[step[CELLS] :]
            _lay_out(arena, runs, step, begins[at:after], stops[at:after], own, entries)


@allocating
def moved(matches: Ids, found: Int, room: Int) -> Ids:
    """What was found, with room for more; by hand, since assigning a part of an array takes seconds to compile."""
    larger = np.empty((room, matches.shape[1]), np.int64)
    for row in range(found):
        for column in range(matches.shape[1]):
            larger[row, column] = matches[row, column]
    return larger


@inner
def bind(
    patterns: Ids,
    parts: Ids,
    different: Ids,
    walked: Flags,
    held_from: Ids,
    steps: Ids,
    sources: Ids,
    binds: Flags,
    tests: Ids,
    tests_from: Ids,
    bound_at: Ids,
    variable_at: Ids,
) -> None:
    """What each step binds, and what can be compared then.

    `binds` are the parts that bind a join variable first. `sources` say where a variable's value is: a node, and where
    its rows hold it (from where on, cells per row); where the node is -1, the walk puts it down. `tests` are the pairs
    that must differ, by the step that binds the second of them; those of a step are from `tests_from` on. `bound_at`
    and `variable_at` are room for a depth per join variable and per variable."""
    bound_at[:] = -1
    for depth in range(len(steps)):
        pattern = steps[depth, PATTERN]
        if pattern < 0:
            bound_at[steps[depth, BY]] = depth
            continue
        for part in range(patterns[pattern, PART], patterns[pattern + 1, PART]):
            node = parts[part, 1]
            if node < 0:
                variable_at[parts[part, 2]] = depth
                sources[parts[part, 2], 0] = -1
            elif bound_at[node] < 0:
                bound_at[node], binds[part] = depth, True
    for pattern in range(len(walked)):
        first, joins = patterns[pattern, PART], patterns[pattern, JOINS]
        for part in range(first, first + joins):
            source = sources[parts[part, 2]]
            source[0], source[1], source[2] = parts[part, 1], 0, 1
            variable_at[parts[part, 2]] = bound_at[parts[part, 1]]
        if joins == 1 and not walked[pattern]:
            for part in range(first + 1, patterns[pattern + 1, PART]):
                source = sources[parts[part, 2]]
                source[0], source[1] = parts[first, 1], held_from[pattern] + part - first - 1
                source[2] = patterns[pattern + 1, PART] - first - 1
                variable_at[parts[part, 2]] = bound_at[parts[first, 1]]
    count = 0
    for depth in range(len(steps)):
        tests_from[depth] = count
        for pair in range(len(different)):
            if max(variable_at[different[pair, 0]], variable_at[different[pair, 1]]) == depth:
                tests[count, 0], tests[count, 1] = different[pair, 0], different[pair, 1]
                count += 1
    tests_from[len(steps)] = count


@inner
def _value(variable: Int, sources: Ids, values: Ids, held: Ids, bound: Ids) -> Int:
    node = sources[variable, 0]
    return values[variable] if node < 0 else held[sources[variable, 1] + bound[node] * sources[variable, 2]]


@inner
def advance(
    parts: Ids,
    nodes: Ids,
    stages: Small,
    held: Ids,
    steps: Ids,
    begins: Small,
    stops: Small,
    cells: Ids,
    pairs: Ids,
    sources: Ids,
    binds: Flags,
    tests: Ids,
    tests_from: Ids,
    values: Ids,
    bound: Ids,
    cursors: Ids,
    state: Ids,
    matches: Ids,
    max_matches: Int,
) -> Int:
    """Walk on until all is found, there is no room for the next match, or it is one too many; how many were found.

    Where it has come to is kept: `state` is the depth (-1: done) and the matches, `cursors` have for each step the next
    fact, where its list ends and, for a scan, the list; `values` and `bound` are leaves and rows bound so far."""
    depth, found, enters = state[0], state[1], state[1] == 0
    while depth >= 0:
        step = steps[depth]
        access, by, first, ends = step[ACCESS], step[BY], step[FIRST], step[ENDS]
        width, base, offset = step[WIDTH], step[CELLS], step[LISTS]
        if enters:
            if access == REACH:
                number = offset + bound[parts[first + by, 1]] - step[START]
                cursors[depth, NEXT], cursors[depth, LAST] = begins[number], stops[number]
            elif access == SCAN:
                cursors[depth, LIST] = 0
                cursors[depth, NEXT], cursors[depth, LAST] = begins[offset], stops[offset]
            elif access == EACH:
                cursors[depth, NEXT], cursors[depth, LAST] = step[START], step[SIZE]
            else:
                wanted = (bound[parts[first, 1]] << 32) | bound[parts[first + 1, 1]]
                slot = hashed(wanted, base)
                while pairs[offset + slot] >= 0 and pairs[offset + slot] != wanted:
                    slot = (slot + 1) & (step[SIZE] - 1)
                cursors[depth, NEXT], cursors[depth, LAST] = 0, pairs[offset + slot] == wanted
        cursor, stop, enters = cursors[depth, NEXT], cursors[depth, LAST], False
        while cursor < stop:
            here = cursor
            cursor += 1
            if access == EACH:
                if stages[here] < nodes[by, DEGREE]:
                    continue
                bound[by] = here
            elif access != CLOSE:
                at, fits = base + here * width, True
                for end in range(ends):
                    node, row = parts[first + end, 1], cells[at + end]
                    if binds[first + end]:
                        bound[node] = row
                    elif bound[node] != row:
                        fits = False
                        break
                if not fits:
                    continue
                for leaf in range(ends, width):
                    values[parts[first + leaf, 2]] = cells[at + leaf]
            differ = True
            for test in range(tests_from[depth], tests_from[depth + 1]):
                left = _value(tests[test, 0], sources, values, held, bound)
                differ = differ and left != _value(tests[test, 1], sources, values, held, bound)
            if not differ:
                continue
            if depth + 1 < len(steps):
                enters = True
                break
            if found == len(matches) or found == max_matches:
                cursors[depth, NEXT], state[0], state[1] = here, depth, found
                return found + (found == max_matches)
            for variable in range(matches.shape[1]):
                matches[found, variable] = _value(variable, sources, values, held, bound)
            found += 1
        cursors[depth, NEXT] = cursor
        if enters:
            depth += 1
        elif access == SCAN and cursors[depth, LIST] + 1 < step[SIZE]:
            cursors[depth, LIST] += 1
            number = offset + cursors[depth, LIST]
            cursors[depth, NEXT], cursors[depth, LAST] = begins[number], stops[number]
        else:
            depth -= 1
    state[0] = depth
    return found
