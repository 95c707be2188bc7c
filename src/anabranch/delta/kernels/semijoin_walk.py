"""The second half of semi-join evaluation: what the patterns left of each other is laid out and walked.

4. order      depth-first from the smallest pattern; what closes a cycle at once, then the smallest fan-out
5. lay out    what is left, side by side at the end from which it will be reached, each fact once, or hashed where both
              ends will be known
6. walk       and write down what is bound when the last pattern has been passed

Invariant: every end that is left has a fact of each pattern at its variable, so the walk fails only where it closes a
cycle, or where two values must differ. What the arrays of a plan hold is said in `anabranch.delta.evaluation`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt
from numba import njit

from anabranch.delta.batch import Ids

Small = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Int: TypeAlias = Any  # an int, of whatever make
Float: TypeAlias = Any
Kernel = TypeVar("Kernel", bound=Callable[..., Any])

# columns of `patterns`; of FIXED to LEAF, where the pattern's part of another array begins: it ends at the next one's
GROUP, FIXED, EQUAL, RANGE, JOIN, LEAF, KEPT = range(7)
SCAN, REACH, CLOSE = range(3)
DONE, TOO_MANY = range(2)

_FEW = 16  # of so many facts side by side copies are found by comparing all of them
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
    bits = 2
    while (np.int64(1) << bits) < 2 * count:
        bits += 1
    return bits


@allocating
def order(patterns: Ids, joins: Ids, starts: Ids, ends: Ids, numbered: Ids, steps: Ids, steps_join: Ids) -> Int:
    """The order of the kept patterns and how each is come by: `steps` (pattern, access) and the join it is reached by.

    Gives the number of steps."""
    bound = np.zeros(len(numbered), np.bool_)
    done = np.zeros(patterns.shape[0] - 1, np.bool_)
    depth = 0
    while True:
        best, best_cost, best_access, best_join = -1, np.inf, SCAN, -1
        for pattern in range(patterns.shape[0] - 1):
            if done[pattern] or not patterns[pattern, KEPT]:
                continue
            size: Float = np.float64(ends[pattern] - starts[pattern])
            first, last = patterns[pattern, JOIN], patterns[pattern + 1, JOIN]
            leaves = patterns[pattern + 1, LEAF] - patterns[pattern, LEAF]
            access, cost, by = SCAN, size + (_OUT_OF_REACH if depth else 0.0), -1
            known = 0
            for join in range(first, last):
                if bound[joins[join, 1]]:
                    known += 1
                    if access != REACH or size / numbered[joins[join, 1]] < cost:
                        access, cost, by = REACH, size / numbered[joins[join, 1]], join - first
            if known and known == last - first and not leaves:
                cost = -1.0
                if known == 1:  # every value that is left has a fact of this pattern
                    done[pattern] = True
                    continue
                if known == 2:
                    access = CLOSE
            if cost < best_cost:
                best, best_cost, best_access, best_join = pattern, cost, access, by
        if best < 0:
            return depth
        done[best] = True
        steps[depth, 0], steps[depth, 1] = best, best_access
        steps_join[depth] = best_join
        for join in range(patterns[best, JOIN], patterns[best + 1, JOIN]):
            bound[joins[join, 1]] = True
        depth += 1


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


@allocating
def _lay_out(
    facts: Ids,
    kept_facts: Small,
    kept_ends: Small,
    first: Int,
    last: Int,
    by: Int,
    joins: Ids,
    leaves: Ids,
    begins: Ids,
    stops: Ids,
    cells: Ids,
) -> None:
    """The kept facts of a pattern, side by side by the number of one of their ends (`by`; -1: all together), each once.

    A fact's cells: the numbers of its ends, their values, the values of its leaves."""
    count, width = joins.shape[0], 2 * joins.shape[0] + leaves.shape[0]
    for one in range(first, last):
        begins[kept_ends[one, by] if by >= 0 else 0] += 1
    total, most = np.int64(0), np.int64(0)
    for number in range(len(begins)):
        size = begins[number]
        begins[number], stops[number] = total, total
        total += size
        most = max(most, size)
    for one in range(first, last):
        number = kept_ends[one, by] if by >= 0 else 0
        at = stops[number] * width
        stops[number] += 1
        fact = kept_facts[one]
        for join in range(count):
            cells[at + join] = kept_ends[one, join]
            cells[at + count + join] = facts[fact, joins[join, 0]]
        for leaf in range(leaves.shape[0]):
            cells[at + 2 * count + leaf] = facts[fact, leaves[leaf, 0]]
    entries = np.empty(np.int64(1) << bits_for(most) if most > _FEW else 0, np.int64)
    for number in range(len(begins)):
        if stops[number] - begins[number] > 1:
            stops[number] = _without_copies(cells, begins[number], stops[number], width, entries)


@inner
def _insert_pairs(kept_ends: Small, first: Int, last: Int, pairs: Ids, shift: Int) -> None:
    """A hash of the pairs of numbers that the facts' ends are."""
    mask = len(pairs) - 1
    for one in range(first, last):
        pair = (np.int64(kept_ends[one, 0]) << 32) | np.int64(kept_ends[one, 1])
        slot = hashed(pair, shift)
        while pairs[slot] >= 0 and pairs[slot] != pair:
            slot = (slot + 1) & mask
        pairs[slot] = pair


@allocating
def _grown(matches: Ids) -> Ids:
    """The same with as much room again; by hand, since assigning a part of an array takes seconds to compile."""
    grown = np.empty((2 * matches.shape[0], matches.shape[1]), np.int64)
    for row in range(matches.shape[0]):
        for column in range(matches.shape[1]):
            grown[row, column] = matches[row, column]
    return grown


@allocating
def walk(
    facts: Ids,
    patterns: Ids,
    joins: Ids,
    leaves: Ids,
    join_variables: Ids,
    different: Ids,
    variables: Int,
    starts: Ids,
    ends: Ids,
    kept_facts: Small,
    kept_ends: Small,
    numbered: Ids,
    steps: Ids,
    steps_join: Ids,
    depths: Int,
    max_matches: Int,
) -> tuple[Int, Ids]:
    # --- lay out the patterns of all steps, one after the other
    offsets = np.zeros(depths + 1, np.int64)  # in `begins` and `stops`, or in `pairs`
    bases, widths = np.zeros(depths + 1, np.int64), np.zeros(depths, np.int64)  # in `cells`
    shifts = np.zeros(depths, np.int64)
    for depth in range(depths):
        pattern = steps[depth, 0]
        first, last = patterns[pattern, JOIN], patterns[pattern + 1, JOIN]
        count = ends[pattern] - starts[pattern]
        if steps[depth, 1] == CLOSE:
            bits = bits_for(count)
            shifts[depth], size = 64 - bits, np.int64(1) << bits
        else:
            if steps[depth, 1] == SCAN and last > first:
                steps_join[depth] = 0
            size = numbered[joins[first + steps_join[depth], 1]] if steps_join[depth] >= 0 else np.int64(1)
            widths[depth] = 2 * (last - first) + patterns[pattern + 1, LEAF] - patterns[pattern, LEAF]
        offsets[depth + 1] = offsets[depth] + size
        bases[depth + 1] = bases[depth] + count * widths[depth]
    begins, stops = np.zeros(offsets[depths], np.int64), np.zeros(offsets[depths], np.int64)
    cells = np.empty(bases[depths], np.int64)
    for depth in range(depths):
        pattern = steps[depth, 0]
        own = begins[offsets[depth] : offsets[depth + 1]]
        if steps[depth, 1] == CLOSE:
            own[:] = -1
            _insert_pairs(kept_ends, starts[pattern], ends[pattern], own, shifts[depth])
        else:
            _lay_out(
                facts,
                kept_facts,
                kept_ends,
                starts[pattern],
                ends[pattern],
                steps_join[depth],
                joins[patterns[pattern, JOIN] : patterns[pattern + 1, JOIN]],
                leaves[patterns[pattern, LEAF] : patterns[pattern + 1, LEAF]],
                own,
                stops[offsets[depth] : offsets[depth + 1]],
                cells[bases[depth] : bases[depth + 1]],
            )

    # --- what each step binds, and which pairs can be compared then
    bound_at = np.full(len(numbered), -1, np.int64)
    variable_at = np.zeros(variables, np.int64)
    for depth in range(depths):
        pattern = steps[depth, 0]
        for join in range(patterns[pattern, JOIN], patterns[pattern + 1, JOIN]):
            if bound_at[joins[join, 1]] < 0:
                bound_at[joins[join, 1]] = depth
                variable_at[join_variables[joins[join, 1]]] = depth
        for leaf in range(patterns[pattern, LEAF], patterns[pattern + 1, LEAF]):
            variable_at[leaves[leaf, 1]] = depth
    pair_at = np.empty(different.shape[0], np.int64)
    for pair in range(different.shape[0]):
        pair_at[pair] = max(variable_at[different[pair, 0]], variable_at[different[pair, 1]])

    # --- walk
    matches = np.empty((256, variables), np.int64)
    found = 0
    values = np.zeros(variables, np.int64)
    numbers = np.zeros(max(len(numbered), 1), np.int64)  # of the ends that are bound
    groups = np.zeros(depths, np.int64)  # of a scan: the group of facts side by side that it has come to
    cursors, lasts = np.zeros(depths, np.int64), np.zeros(depths, np.int64)
    cursors[0], lasts[0] = begins[0], stops[0]
    depth = 0
    while depth >= 0:
        pattern, access, is_last = steps[depth, 0], steps[depth, 1], depth + 1 == depths
        first, base, width = patterns[pattern, JOIN], bases[depth], widths[depth]
        count = patterns[pattern + 1, JOIN] - first if access != CLOSE else 0
        first_leaf = patterns[pattern, LEAF]
        leaf_count = patterns[pattern + 1, LEAF] - first_leaf if access != CLOSE else 0
        cursor, stop, goes_on = cursors[depth], lasts[depth], False
        while cursor < stop:
            at = base + cursor * width
            cursor += 1
            fits = True
            for join in range(count):
                variable = joins[first + join, 1]
                if bound_at[variable] == depth:
                    numbers[variable] = cells[at + join]
                    values[join_variables[variable]] = cells[at + count + join]
                elif numbers[variable] != cells[at + join]:
                    fits = False
                    break
            if not fits:
                continue
            for leaf in range(leaf_count):
                values[leaves[first_leaf + leaf, 1]] = cells[at + 2 * count + leaf]
            for pair in range(len(pair_at)):
                if pair_at[pair] == depth and values[different[pair, 0]] == values[different[pair, 1]]:
                    fits = False
            if not fits:
                continue
            if not is_last:
                goes_on = True
                break
            if found == max_matches:
                return TOO_MANY, matches[:0]
            if found == len(matches):
                matches = _grown(matches)
            for variable in range(variables):
                matches[found, variable] = values[variable]
            found += 1
        cursors[depth] = cursor
        if not goes_on:
            if access == SCAN and offsets[depth] + groups[depth] + 1 < offsets[depth + 1]:
                groups[depth] += 1
                cursors[depth] = begins[offsets[depth] + groups[depth]]
                lasts[depth] = stops[offsets[depth] + groups[depth]]
            else:
                depth -= 1
            continue
        depth += 1
        pattern, access = steps[depth, 0], steps[depth, 1]
        first = patterns[pattern, JOIN]
        if access == REACH:
            number = offsets[depth] + numbers[joins[first + steps_join[depth], 1]]
            cursors[depth], lasts[depth] = begins[number], stops[number]
        elif access == SCAN:
            groups[depth] = 0
            cursors[depth], lasts[depth] = begins[offsets[depth]], stops[offsets[depth]]
        else:
            mask = offsets[depth + 1] - offsets[depth] - 1
            wanted = (numbers[joins[first, 1]] << 32) | numbers[joins[first + 1, 1]]
            slot = hashed(wanted, shifts[depth])
            while begins[offsets[depth] + slot] >= 0 and begins[offsets[depth] + slot] != wanted:
                slot = (slot + 1) & mask
            cursors[depth], lasts[depth] = 0, begins[offsets[depth] + slot] == wanted
    return DONE, matches[:found]
