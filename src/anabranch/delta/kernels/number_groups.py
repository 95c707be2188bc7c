"""Groups of rows and their exact sums of numbers, on arrays: find groups, add changes, round sums, end groups.

A group has a dense number, which is used again when the group has ended. A hash table over the classes of keys (as in
`rows`) leads to it. A line of `cells` has the number of rows, the place in the list of touched groups, and counts.

A sum has a line of totals (as in `sums`) and limbs. All groups have limbs of the same range; the highest limb has the
sign.

Invariant: between batches each limb but the highest, and the low half of each integer, is at least 0 and below 2 ** 32,
so that each value is represented in one way, and that of nothing is all zeros. A group that ends has nothing but zeros.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anabranch.delta.batch import NULL, REFUSED, Ids, Mask, Weights
from anabranch.delta.kernels.compiling import Floats, Int, Records, compiled, fields, inlined, kernel
from anabranch.delta.kernels.rows import NUMBER, Slots, ids_hash, vacate
from anabranch.delta.kernels.sums import (
    COUNT,
    FLOAT,
    FLOATS,
    HIGH,
    INTEGER,
    LIMB_BITS,
    LIMB_MASK,
    LOW,
    LOWEST,
    Kinds,
    add_digits,
    add_float,
)

ROWS, MARK, COUNTS = 0, 1, 2  # columns of cells; a free group has the next free one in place of its rows
NOTHING, BY_VALUE = 0, 3  # kinds of results besides numbers: null, and one that is computed without arrays
STATE = np.dtype(fields("live used free touched differs"))
MOST_LIMBS = 76  # those of the range of floats, with some for carries

_EXACT = 1 << 53  # up to here, floats have all integers
_HALF = 1 << 31
_LARGEST_SHIFT = 2046  # of 53 bits, from which on the result is an infinity
_INFINITY = 0x7FF << 52
_INTEGER_LIMB = -LOWEST // LIMB_BITS  # the lowest that an integer touches


class GroupTable(NamedTuple):
    """All groups: the table, the classes of their keys, their keys, cells, and the numbers of touched groups."""

    table: Slots
    columns: Ids
    classes: Ids
    looks: Ids
    cells: Ids
    touched: Ids
    states: Records


class SumTable(NamedTuple):
    """The sums of all groups for one argument: totals; limbs, `size` for each group, of which `first` is the lowest."""

    totals: Ids
    limbs: Ids
    first: int
    size: int


class NumberChange(NamedTuple):
    """Changed rows: the group of each, the kind and the word of its number, and its weight."""

    groups: Ids
    kinds: Kinds
    words: Ids
    weights: Weights


class SlideGroups(NamedTuple):
    """The groups that change at each of several slides: those of slide i are `groups[ends[i - 1] : ends[i]]`; the
    number of rows of each after its slide; and the end of each slide among the changed rows. `lasts` has, for each
    group, the last slide at which it changed."""

    groups: Ids
    rows: Ids
    ends: Ids
    row_ends: Ids
    lasts: Ids


class SlideResults(NamedTuple):
    """The rows of groups, one for each group of each slide, and whether there is one; room for those that change, with
    their weights and the end of each slide."""

    rows: Ids
    are_there: Mask
    told: Ids
    weights: Weights
    ends: Ids


@compiled
def _new_group(held: GroupTable) -> Int:
    """The number of a group that is not in use; -1: there is none."""
    state = held.states[0]
    number = state.free
    if number >= 0:
        state.free = held.cells[number, ROWS]
    elif state.used < len(held.cells):
        number = state.used
        state.used += 1
    else:
        return np.int64(-1)
    held.cells[number, ROWS] = 0
    held.cells[number, MARK] = 0
    state.live += 1
    return number


@kernel
def find_groups(held: GroupTable, start: int, classes: Ids, looks: Ids, groups: Ids) -> int:
    """Write the group of each row from `start` on, made where there is none, and whether a key differs from that of its
    group. Return the number of rows, or the first row for which there is no room: grow and call again. O(rows)."""
    table, state = held.table, held.states[0]
    mask = np.int64(len(table) - 1)
    width = classes.shape[1]
    for index in range(start, len(classes)):
        hashed = ids_hash(classes, index, held.columns)
        slot = hashed & mask
        number = np.int64(-1)
        while table[slot] != 0:
            if (table[slot] >> 32) == hashed:
                found = (table[slot] & NUMBER) - 1
                column = 0
                while column < width and held.classes[found, column] == classes[index, column]:
                    column += 1
                if column == width:
                    number = found
                    break
            slot = (slot + 1) & mask
        if number < 0:
            number = _new_group(held)
            if number < 0:
                return index
            table[slot] = (hashed << 32) | (number + 1)
            for column in range(width):
                held.classes[number, column] = classes[index, column]
                held.looks[number, column] = looks[index, column]
        for column in range(width):
            if held.looks[number, column] != looks[index, column]:
                state.differs = 1
        groups[index] = number
    return len(classes)


@kernel
def add_rows(held: GroupTable, groups: Ids, weights: Weights) -> None:
    """Add rows to their groups, and list the groups. O(rows)."""
    cells, state = held.cells, held.states[0]
    for index in range(len(groups)):
        number = groups[index]
        cells[number, ROWS] += weights[index]
        if cells[number, MARK] == 0:
            held.touched[state.touched] = number
            state.touched += 1
            cells[number, MARK] = state.touched


@kernel
def add_count(held: GroupTable, column: int, groups: Ids, values: Ids, weights: Weights) -> None:
    """Add to a count the rows that have a value. O(rows)."""
    for index in range(len(groups)):
        if values[index] != NULL and values[index] != REFUSED:
            held.cells[groups[index], column] += weights[index]


@kernel
def touch_slides(held: GroupTable, groups: Ids, weights: Weights, slides: SlideGroups) -> int:
    """Add the rows of several slides to their groups, and list the groups, both those of all slides and those of each.
    Return how many the latter are. O(rows)."""
    cells, state = held.cells, held.states[0]
    start = np.int64(0)
    count: Int = np.int64(0)
    for slide in range(len(slides.row_ends)):
        first = count
        for index in range(start, slides.row_ends[slide]):
            number = groups[index]
            cells[number, ROWS] += weights[index]
            if slides.lasts[number] != slide:
                slides.lasts[number] = slide
                slides.groups[count] = number
                count += 1
                if cells[number, MARK] == 0:
                    held.touched[state.touched] = number
                    state.touched += 1
                    cells[number, MARK] = state.touched
        for at in range(first, count):
            slides.rows[at] = cells[slides.groups[at], ROWS]
        slides.ends[slide] = count
        start = slides.row_ends[slide]
    return count  # type: ignore[no-any-return]


@kernel
def count_slides(
    held: GroupTable, column: int, change: tuple[Ids, Ids, Weights], slides: SlideGroups, counts: Ids
) -> None:
    """Add to a count the rows of several slides that have a value, given as their groups, values and weights; write the
    counts of the groups of each slide. O(rows)."""
    groups, values, weights = change
    start, first = np.int64(0), np.int64(0)
    for slide in range(len(slides.row_ends)):
        for index in range(start, slides.row_ends[slide]):
            if values[index] != NULL and values[index] != REFUSED:
                held.cells[groups[index], column] += weights[index]
        for at in range(first, slides.ends[slide]):
            counts[at] = held.cells[slides.groups[at], column]
        start, first = slides.row_ends[slide], slides.ends[slide]


@inlined
def _carry(limbs: Ids, start: Int, size: Int) -> None:
    for place in range(start, start + size - 1):
        limbs[place + 1] += limbs[place] >> LIMB_BITS
        limbs[place] &= LIMB_MASK


@kernel
def add_numbers(sums: SumTable, change: NumberChange, touched: Ids) -> None:
    """Add numbers to the sums of their groups, which are all touched. Their floats are within the range of the limbs.
    O(rows + limbs of touched groups)."""
    _add_numbers(sums, change, np.int64(0), np.int64(len(change.groups)))
    _normalise(sums, touched, np.int64(0), np.int64(len(touched)))


@compiled
def _add_numbers(sums: SumTable, change: NumberChange, start: Int, stop: Int) -> None:
    totals, limbs = sums.totals, sums.limbs
    for index in range(start, stop):
        number, kind, word = change.groups[index], change.kinds[index], change.words[index]
        weight = change.weights[index]
        if kind == INTEGER:
            totals[number, COUNT] += weight
            totals[number, LOW] += weight * (word & LIMB_MASK)
            totals[number, HIGH] += weight * (word >> LIMB_BITS)
        elif kind == FLOAT:
            totals[number, COUNT] += weight
            totals[number, FLOATS] += weight
            add_float(limbs, number * sums.size - sums.first, word, weight)


@compiled
def _normalise(sums: SumTable, groups: Ids, start: Int, stop: Int) -> None:
    totals = sums.totals
    for at in range(start, stop):
        number = groups[at]
        totals[number, HIGH] += totals[number, LOW] >> LIMB_BITS
        totals[number, LOW] &= LIMB_MASK
        _carry(sums.limbs, number * sums.size, sums.size)


@compiled
def _rounded(limbs: Ids, size: Int, first: Int) -> Int:
    """The bits of the float nearest to a sum whose lowest limb is `first`; ties to even. The limbs are lost."""
    _carry(limbs, 0, size)
    sign = np.int64(0)
    if limbs[size - 1] < 0:
        sign = np.int64(-1) << 63
        for place in range(size):
            limbs[place] = -limbs[place]
        _carry(limbs, 0, size)
    top = size - 1
    while top >= 0 and limbs[top] == 0:
        top -= 1
    if top < 0:
        return np.int64(0)
    own = np.int64(0)  # bits of the highest limb that has any
    while own < LIMB_BITS and (limbs[top] >> own) != 0:
        own += 1
    second = np.uint64(limbs[top - 1]) if top >= 1 else np.uint64(0)
    third = np.uint64(limbs[top - 2]) if top >= 2 else np.uint64(0)
    leading = (np.uint64(limbs[top]) << np.uint64(LIMB_BITS)) | second
    leading = (leading << np.uint64(LIMB_BITS - own)) | (third >> np.uint64(own))  # the 64 highest bits
    length = LIMB_BITS * (first + top) + own
    shift = length - 53
    if shift <= 0:
        return sign | np.int64(leading >> np.uint64(64 - length))
    if shift >= _LARGEST_SHIFT:
        return sign | np.int64(_INFINITY)
    digits = np.int64(leading >> np.uint64(11))
    rest = np.int64(leading & np.uint64(0x7FF))
    is_more = (third & ((np.uint64(1) << np.uint64(own)) - np.uint64(1))) != np.uint64(0)
    for place in range(top - 2):
        is_more |= limbs[place] != 0
    if rest > 1024 or (rest == 1024 and (is_more or digits & 1)):
        digits += 1
    return sign | ((shift << 52) + digits)


class SumResults(NamedTuple):
    """The kind and the word of the sum, or of the average, of each of some groups. `floats` are the words seen as
    floats. `work` is room for MOST_LIMBS limbs."""

    kinds: Kinds
    words: Ids
    floats: Floats
    work: Ids


@kernel
def results(sums: SumTable, groups: Ids, averages: bool, found: SumResults) -> None:
    """Write the sums, or the averages, of groups. O(limbs of groups)."""
    _results(sums, groups, averages, found, np.int64(0), np.int64(len(groups)))


@kernel
def sum_slides(sums: SumTable, change: NumberChange, slides: SlideGroups, averages: bool, found: SumResults) -> None:
    """Add the numbers of several slides to the sums of their groups; write the results of the groups of each slide.
    Floats are within the range of the limbs. O(rows + limbs of groups of slides)."""
    start, first = np.int64(0), np.int64(0)
    for slide in range(len(slides.row_ends)):
        _add_numbers(sums, change, start, slides.row_ends[slide])
        _normalise(sums, slides.groups, first, slides.ends[slide])
        _results(sums, slides.groups, averages, found, first, slides.ends[slide])
        start, first = slides.row_ends[slide], slides.ends[slide]


@compiled
def _results(sums: SumTable, groups: Ids, averages: bool, found: SumResults, start: Int, stop: Int) -> None:
    kinds, words, floats, work = found.kinds, found.words, found.floats, found.work
    for at in range(start, stop):
        number = groups[at]
        count, high, low = sums.totals[number, COUNT], sums.totals[number, HIGH], sums.totals[number, LOW]
        if averages and count == 0:
            kinds[at] = NOTHING
            continue
        is_word = -_HALF <= high < _HALF
        whole = (high << LIMB_BITS) + low if is_word else np.int64(0)
        is_exact = is_word and -_EXACT <= whole <= _EXACT
        if sums.totals[number, FLOATS] == 0 and not averages:
            kinds[at] = INTEGER if is_word else BY_VALUE
            words[at] = whole
        elif not is_exact:
            kinds[at] = BY_VALUE
        elif sums.totals[number, FLOATS] == 0:
            kinds[at] = FLOAT
            floats[at] = np.float64(whole) / np.float64(count)
        else:
            kinds[at] = FLOAT
            first, stop = sums.first, sums.first + sums.size
            if whole != 0:
                first, stop = min(first, _INTEGER_LIMB), max(stop, _INTEGER_LIMB + 3)
            size = stop - first + 1
            for place in range(size):
                work[place] = 0
            for place in range(sums.size):
                work[place + sums.first - first] = sums.limbs[number * sums.size + place]
            if whole != 0:
                add_digits(work, -first, abs(whole), -LOWEST, 1 if whole > 0 else -1)
            words[at] = _rounded(work, size, first)
            if averages:
                floats[at] = floats[at] / np.float64(count)


@kernel
def tell_slides(slides: SlideGroups, found: SlideResults, emitted: Ids, has_emitted: Mask) -> None:
    """Compare the rows of groups with those that were emitted before; write those that leave and those that enter at
    each slide. O(groups of slides)."""
    first, count, width = np.int64(0), np.int64(0), emitted.shape[1]
    for slide in range(len(slides.ends)):
        for is_entering in (False, True):
            for at in range(first, slides.ends[slide]):
                number = slides.groups[at]
                if not is_entering:
                    differs = has_emitted[number] != found.are_there[at]
                    for column in range(width):
                        differs |= emitted[number, column] != found.rows[at, column]
                    if has_emitted[number] and differs:
                        for column in range(width):
                            found.told[count, column] = emitted[number, column]
                        found.weights[count] = -1
                        count += 1
                    if has_emitted[number] and not differs:
                        found.are_there[at] = False  # nothing enters
                        continue
                    has_emitted[number] = found.are_there[at]
                    for column in range(width):
                        emitted[number, column] = found.rows[at, column]
                elif found.are_there[at]:
                    for column in range(width):
                        found.told[count, column] = found.rows[at, column]
                    found.weights[count] = 1
                    count += 1
        found.ends[slide] = count
        first = slides.ends[slide]


@kernel
def end_groups(held: GroupTable, keeps_empty: bool) -> None:
    """End the touched groups that have no rows, unless they are kept, and empty the list of touched groups. O(touched
    groups)."""
    cells, state = held.cells, held.states[0]
    for at in range(state.touched):
        number = held.touched[at]
        cells[number, MARK] = 0
        if cells[number, ROWS] == 0 and not keeps_empty:
            vacate(held.table, ids_hash(held.classes, number, held.columns), number)
            cells[number, ROWS] = state.free
            state.free = number
            state.live -= 1
    state.touched = 0
