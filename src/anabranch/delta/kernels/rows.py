"""Hash tables over rows of ids: finding a row, finding all rows of a key, taking changes in, summing a batch.

Tables are open addressing with linear probing. A slot is one int64: 0 is empty, else (hash << 32) | (number + 1), where
the number is that of a row or of a group of rows with one key. So most misses touch no row, and a table grows or closes
a gap without hashing anything again. A removal shifts the run behind it back: there are no tombstones.

A row's ids, its weight and its links lie in one line of `cells`, an int64 matrix; `links` is the same memory seen as
int32. Rows of one key hang in a doubly linked chain under their group, which counts them and sums their weights: one
line of `groups`, with `heads` the same memory as int32. Everything about a row is then one access to memory.

Invariant: between batches every row in the row table has a weight above 0 and hangs in exactly one group (if the trace
has groups), every group in the key table has a row, and rows and groups that are free hang in the two free lists.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from anabranch.delta.batch import Ids, Weights
from anabranch.delta.kernels.cache import cached

Numbers = npt.NDArray[np.int32]
"""Numbers of rows or groups, -1 where there is none."""
Slots = npt.NDArray[np.int64]

# Behind the ids of a row in `cells`: its weight, then two places for four links.
EXTRA = 3
# Columns of `links`, from the end. MARK is the row's place in the list of touched rows, from 1; 0 between batches.
NEXT, PREV, GROUP, MARK = -4, -3, -2, -1
# Columns of `groups`, and of `heads`.
TOTAL, HEAD, COUNT = 0, 2, 3
GROUP_WIDTH = 2
# Places of `state`.
LIVE, USED, FREE_ROW, USED_GROUPS, FREE_GROUP, SUM, TOUCHED = 0, 1, 2, 3, 4, 5, 6
STATE_SIZE = 7

_SEED = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xFF51AFD7ED558CCD)
_SECOND = np.uint64(0xC4CEB9FE1A85EC53)
_HALF = np.uint64(32)
_TOP = np.uint64(33)
_NUMBER = np.int64(0xFFFFFFFF)

_Kernel = TypeVar("_Kernel", bound=Callable[..., Any])


def _compiled(kernel: _Kernel) -> _Kernel:
    """Compiled when first called, and kept on disk."""
    return cached(kernel)


@_compiled
def _hash(rows: Ids, index: Any, columns: Ids) -> Any:
    """31 bits for the ids of a row in some columns."""
    mixed = _SEED
    for column in columns:
        mixed = (mixed ^ np.uint64(rows[index, column])) * _FIRST
        mixed ^= mixed >> _HALF
    return np.int64((mixed * _SECOND) >> _TOP)


@_compiled
def _vacate(table: Slots, hashed: Any, number: Any) -> None:
    """Take a number out of a table, and close the gap."""
    mask = np.int64(len(table) - 1)
    gap = hashed & mask
    wanted = (hashed << 32) | (number + 1)
    while table[gap] != wanted:
        gap = (gap + 1) & mask
    slot = gap
    while True:
        slot = (slot + 1) & mask
        entry = table[slot]
        if entry == 0:
            break
        # It may move into the gap unless its own run begins behind the gap.
        if ((slot - (entry >> 32)) & mask) >= ((slot - gap) & mask):
            table[gap] = entry
            gap = slot
    table[gap] = 0


@_compiled
def replant(old: Slots, new: Slots) -> None:
    """Move all entries of a table into an empty larger one."""
    mask = np.int64(len(new) - 1)
    for entry in old:
        if entry != 0:
            slot = (entry >> 32) & mask
            while new[slot] != 0:
                slot = (slot + 1) & mask
            new[slot] = entry


@_compiled
def find(asked: Ids, table: Slots, cells: Ids, columns: Ids, heads: Numbers) -> Numbers:
    """Per asked key the number that the table has for it. `heads` gives a row of each group; it is empty where the
    numbers are those of rows. O(asked)."""
    mask = np.int64(len(table) - 1)
    width = len(columns)
    places = np.arange(width)
    found = np.full(len(asked), -1, np.int32)
    for index in range(len(asked)):
        hashed = _hash(asked, index, places)
        slot = hashed & mask
        while table[slot] != 0:
            if (table[slot] >> 32) == hashed:
                number = (table[slot] & _NUMBER) - 1
                row = np.int64(heads[number, HEAD]) if len(heads) else number
                place = 0
                while place < width and cells[row, columns[place]] == asked[index, place]:
                    place += 1
                if place == width:
                    found[index] = number
                    break
            slot = (slot + 1) & mask
    return found


@_compiled
def spread(found: Numbers, cells: Ids, links: Numbers, heads: Numbers) -> tuple[Ids, Ids, Weights]:
    """All rows of the groups found: which asked key they are for, the rows, their weights. O(asked + rows given)."""
    size = np.int64(0)
    for group in found:
        if group >= 0:
            size += heads[group, COUNT]
    width = cells.shape[1] - EXTRA
    asked = np.empty(size, np.int64)
    rows = np.empty((size, width), np.int64)
    weights = np.empty(size, np.int64)
    end = 0
    for index in range(len(found)):
        if found[index] < 0:
            continue
        row = heads[found[index], HEAD]
        while row >= 0:
            asked[end] = index
            for column in range(width):
                rows[end, column] = cells[row, column]
            weights[end] = cells[row, width]
            end += 1
            row = links[row, NEXT]
    return asked, rows, weights


@_compiled
def _join_group(
    row: Any, cells: Ids, links: Numbers, columns: Ids, key_table: Slots, groups: Ids, heads: Numbers, state: Ids
) -> None:
    """Hang a new row under the group of its key, which may be new."""
    mask = np.int64(len(key_table) - 1)
    hashed = _hash(cells, row, columns)
    slot = hashed & mask
    group = np.int64(-1)
    head = np.int64(-1)
    while key_table[slot] != 0:
        if (key_table[slot] >> 32) == hashed:
            number = (key_table[slot] & _NUMBER) - 1
            head = np.int64(heads[number, HEAD])
            same = True
            for column in columns:
                if cells[head, column] != cells[row, column]:
                    same = False
                    break
            if same:
                group = number
                break
        slot = (slot + 1) & mask
    if group < 0:
        if state[FREE_GROUP] >= 0:
            group = state[FREE_GROUP]
            state[FREE_GROUP] = heads[group, HEAD]
        else:
            group = state[USED_GROUPS]
            state[USED_GROUPS] += 1
        key_table[slot] = (hashed << 32) | (group + 1)
        groups[group, TOTAL] = 0
        heads[group, COUNT] = 0
        head = np.int64(-1)
    else:
        links[head, PREV] = row
    links[row, NEXT] = head
    links[row, PREV] = -1
    links[row, GROUP] = group
    heads[group, HEAD] = row
    heads[group, COUNT] += 1


@_compiled
def _leave_group(
    row: Any, cells: Ids, links: Numbers, columns: Ids, key_table: Slots, heads: Numbers, state: Ids
) -> None:
    """Unhang a row; a group without rows is free again."""
    group = np.int64(links[row, GROUP])
    following, previous = links[row, NEXT], links[row, PREV]
    if following >= 0:
        links[following, PREV] = previous
    if previous >= 0:
        links[previous, NEXT] = following
    else:
        heads[group, HEAD] = following
    heads[group, COUNT] -= 1
    if heads[group, COUNT] == 0:
        _vacate(key_table, _hash(cells, row, columns), group)
        heads[group, HEAD] = state[FREE_GROUP]
        state[FREE_GROUP] = group


@_compiled
def _settle(
    touched: Numbers,
    cells: Ids,
    links: Numbers,
    row_table: Slots,
    columns: Ids,
    key_table: Slots,
    heads: Numbers,
    state: Ids,
) -> tuple[Ids, Weights]:
    """The rows that were touched and what they have now; those that have nothing are let go."""
    size, width = state[TOUCHED], cells.shape[1] - EXTRA
    state[TOUCHED] = 0
    places = np.arange(width)
    rows = np.empty((size, width), np.int64)
    after = np.empty(size, np.int64)
    for index in range(size):
        row = np.int64(touched[index])
        for column in range(width):
            rows[index, column] = cells[row, column]
        after[index] = cells[row, width]
        links[row, MARK] = 0
        if cells[row, width] == 0:
            _vacate(row_table, _hash(cells, row, places), row)
            if len(key_table):
                _leave_group(row, cells, links, columns, key_table, heads, state)
            links[row, NEXT] = state[FREE_ROW]
            state[FREE_ROW] = row
            state[LIVE] -= 1
    return rows, after


@_compiled
def take_in(
    start: int,
    batch: Ids,
    weights: Weights,
    touched: Numbers,
    before: Weights,
    cells: Ids,
    links: Numbers,
    row_table: Slots,
    columns: Ids,
    key_table: Slots,
    groups: Ids,
    heads: Numbers,
    state: Ids,
) -> tuple[int, Ids, Weights]:
    """Add weights from batch row `start` on, and list the rows that are touched with what they had.

    Gives the end of the batch, the touched rows and what they have now; or the first batch row for which there is no
    room, and nothing else: grow and call again. An empty key table means no groups. O(batch)."""
    mask = np.int64(len(row_table) - 1)
    width = cells.shape[1] - EXTRA
    places = np.arange(width)
    grouped = len(key_table) > 0
    for index in range(start, len(batch)):
        hashed = _hash(batch, index, places)
        slot = hashed & mask
        row = np.int64(-1)
        while row_table[slot] != 0:
            if (row_table[slot] >> 32) == hashed:
                number = (row_table[slot] & _NUMBER) - 1
                column = 0
                while column < width and cells[number, column] == batch[index, column]:
                    column += 1
                if column == width:
                    row = number
                    break
            slot = (slot + 1) & mask
        if row < 0:
            if state[FREE_ROW] >= 0:
                row = state[FREE_ROW]
                state[FREE_ROW] = links[row, NEXT]
            elif state[USED] < len(cells):
                row = state[USED]
                state[USED] += 1
            else:
                return index, np.empty((0, width), np.int64), np.empty(0, np.int64)
            row_table[slot] = (hashed << 32) | (row + 1)
            for column in range(width):
                cells[row, column] = batch[index, column]
            cells[row, width] = 0
            links[row, MARK] = 0
            state[LIVE] += 1
            if grouped:
                _join_group(row, cells, links, columns, key_table, groups, heads, state)
        if links[row, MARK] == 0:
            end = state[TOUCHED]
            touched[end] = row
            before[end] = cells[row, width]
            state[TOUCHED] = end + 1
            links[row, MARK] = end + 1
        cells[row, width] += weights[index]
        state[SUM] += weights[index]
        if grouped:
            groups[links[row, GROUP], TOTAL] += weights[index]
    given, after = _settle(touched, cells, links, row_table, columns, key_table, heads, state)
    return len(batch), given, after


@_compiled
def sums(rows: Ids, weights: Weights) -> tuple[Ids, Weights]:
    """Of each distinct row whose weights do not cancel, where it stands first, and the sum of its weights; sums below 0
    come first. Otherwise in the order of first appearance. O(rows)."""
    size, width = len(rows), rows.shape[1]
    places = np.arange(width)
    slots = 16
    while slots < 2 * size:
        slots *= 2
    mask = np.int64(slots - 1)
    table = np.zeros(slots, np.int64)
    firsts = np.empty(size, np.int64)
    summed = np.empty(size, np.int64)
    end = np.int64(0)
    for index in range(size):
        hashed = _hash(rows, index, places)
        slot = hashed & mask
        while True:
            entry = table[slot]
            if entry == 0:
                firsts[end] = index
                summed[end] = weights[index]
                end += 1
                table[slot] = (hashed << 32) | end
                break
            if (entry >> 32) == hashed:
                number = (entry & _NUMBER) - 1
                first = firsts[number]
                column = 0
                while column < width and rows[first, column] == rows[index, column]:
                    column += 1
                if column == width:
                    summed[number] += weights[index]
                    break
            slot = (slot + 1) & mask
    below = np.int64(0)
    above = np.int64(0)
    for number in range(end):
        below += summed[number] < 0
        above += summed[number] > 0
    order = np.empty(below + above, np.int64)
    totals = np.empty(below + above, np.int64)
    to_below, to_above = np.int64(0), below
    for number in range(end):
        if summed[number] < 0:
            order[to_below], totals[to_below] = firsts[number], summed[number]
            to_below += 1
        elif summed[number] > 0:
            order[to_above], totals[to_above] = firsts[number], summed[number]
            to_above += 1
    return order, totals
