"""Hash tables over rows of ids: find a row, find all rows of a key, add changes, sum a batch.

Tables are open addressing with linear probing. A slot is one int64: 0 is empty, else (hash << 32) | (number + 1), where
the number is that of a row or of a group of rows with one key. So most misses touch no row, and a table grows or closes
a gap without hashing anything again. A removal shifts the run behind it back: there are no tombstones.

A row's ids, its weight and its links lie in one line of `cells`, an int64 matrix; `links` is the same memory seen as
int32. Rows of one key are in a doubly linked chain of their GROUP, which counts them and sums their weights. So reading
a row is one access to memory.

Invariant: between batches every row in the row table has a weight above 0 and is in the chain of exactly one group (if
the trace has groups), every group in the key table has a row, and free rows and groups are in the two free lists.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from anabranch.delta.batch import Ids, Weights
from anabranch.delta.kernels.compiling import (
    Int,
    Records,
    Small,
    allocating,
    allocating_kernel,
    compiled,
    fields,
    inlined,
)

Numbers: TypeAlias = Small
"""Numbers of rows or groups, -1 where there is none."""
Slots = npt.NDArray[np.int64]

# Behind the ids of a row in `cells`: its weight, then two places for four links.
EXTRA = 3
# Columns of `links`, from the end. MARK is the row's place in the list of touched rows, from 1; 0 between batches.
NEXT, PREV, OWN, MARK = -4, -3, -2, -1
GROUP = np.dtype([*fields("total"), *fields("head count", np.int32)])  # the sum of weights, a row, how many rows
STATE = np.dtype(fields("live used free_row used_groups free_group sum touched"))

_SEED = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xFF51AFD7ED558CCD)
_SECOND = np.uint64(0xC4CEB9FE1A85EC53)
_HALF = np.uint64(32)
_TOP = np.uint64(33)
NUMBER = np.int64(0xFFFFFFFF)


class TraceTables(NamedTuple):
    """The rows of a trace, their tables and groups, and the one state. Where there are no groups, `keys` is empty."""

    cells: Ids
    links: Numbers
    table: Slots
    columns: Ids
    """The key columns."""
    keys: Slots
    """The table of groups."""
    groups: Records
    states: Records


@inlined
def ids_hash(rows: Ids, index: Int, columns: Ids) -> Int:
    """31 bits for the ids of a row in some columns."""
    mixed = _SEED
    for column in columns:
        mixed = (mixed ^ np.uint64(rows[index, column])) * _FIRST
        mixed ^= mixed >> _HALF
    return np.int64((mixed * _SECOND) >> _TOP)


@compiled
def vacate(table: Slots, hashed: Int, number: Int) -> None:
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


@allocating_kernel
def replant(old: Slots, new: Slots) -> None:
    """Move all entries of a table into an empty larger one."""
    mask = np.int64(len(new) - 1)
    for entry in old:
        if entry != 0:
            slot = (entry >> 32) & mask
            while new[slot] != 0:
                slot = (slot + 1) & mask
            new[slot] = entry


@allocating_kernel
def find(asked: Ids, table: Slots, cells: Ids, columns: Ids, groups: Records) -> Numbers:
    """Return for each key the number that the table has for it. `groups` is empty where the numbers are those of rows.
    O(keys)."""
    mask = np.int64(len(table) - 1)
    width = len(columns)
    places = np.arange(width)
    found = np.full(len(asked), -1, np.int32)
    for index in range(len(asked)):
        hashed = ids_hash(asked, index, places)
        slot = hashed & mask
        while table[slot] != 0:
            if (table[slot] >> 32) == hashed:
                number = (table[slot] & NUMBER) - 1
                row = np.int64(groups[number].head) if len(groups) else number
                place = 0
                while place < width and cells[row, columns[place]] == asked[index, place]:
                    place += 1
                if place == width:
                    found[index] = number
                    break
            slot = (slot + 1) & mask
    return found


@allocating_kernel
def spread(found: Numbers, cells: Ids, links: Numbers, groups: Records) -> tuple[Ids, Ids, Weights]:
    """Return all rows of the found groups: the position of their key, the rows, their weights. O(keys + rows)."""
    size = np.int64(0)
    for group in found:
        if group >= 0:
            size += groups[group].count
    width = cells.shape[1] - EXTRA
    asked = np.empty(size, np.int64)
    rows = np.empty((size, width), np.int64)
    weights = np.empty(size, np.int64)
    end = 0
    for index in range(len(found)):
        if found[index] < 0:
            continue
        row = groups[found[index]].head
        while row >= 0:
            asked[end] = index
            for column in range(width):
                rows[end, column] = cells[row, column]
            weights[end] = cells[row, width]
            end += 1
            row = links[row, NEXT]
    return asked, rows, weights


@compiled
def _group_of(held: TraceTables, row: Int) -> Int:
    """The group of a row's key, made where there is none."""
    cells, keys, groups, state = held.cells, held.keys, held.groups, held.states[0]
    mask = np.int64(len(keys) - 1)
    hashed = ids_hash(cells, row, held.columns)
    slot = hashed & mask
    while keys[slot] != 0:
        if (keys[slot] >> 32) == hashed:
            group = (keys[slot] & NUMBER) - 1
            head = np.int64(groups[group].head)
            same = True
            for column in held.columns:
                if cells[head, column] != cells[row, column]:
                    same = False
                    break
            if same:
                return group
        slot = (slot + 1) & mask
    group = state.free_group
    if group >= 0:
        state.free_group = np.int64(groups[group].head)
    else:
        group = state.used_groups
        state.used_groups += 1
    keys[slot] = (hashed << 32) | (group + 1)
    groups[group].total = 0
    groups[group].count = 0
    groups[group].head = -1
    return group


@compiled
def _join_group(held: TraceTables, row: Int) -> None:
    """Add a new row to the group of its key, which may be new."""
    links = held.links
    number = _group_of(held, row)
    group = held.groups[number]
    if group.head >= 0:
        links[group.head, PREV] = row
    links[row, NEXT] = group.head
    links[row, PREV] = -1
    links[row, OWN] = number
    group.head = row
    group.count += 1


@compiled
def _leave_group(held: TraceTables, row: Int) -> None:
    """Remove a row from its group; a group without rows becomes free."""
    links, state = held.links, held.states[0]
    number = np.int64(links[row, OWN])
    group = held.groups[number]
    following, previous = links[row, NEXT], links[row, PREV]
    if following >= 0:
        links[following, PREV] = previous
    if previous >= 0:
        links[previous, NEXT] = following
    else:
        group.head = following
    group.count -= 1
    if group.count == 0:
        vacate(held.keys, ids_hash(held.cells, row, held.columns), number)
        group.head = state.free_group
        state.free_group = number


@allocating
def _settle(held: TraceTables, touched: Numbers, places: Ids) -> tuple[Ids, Weights]:
    """The rows that were touched and what they have now; those that have nothing are let go."""
    cells, links, state = held.cells, held.links, held.states[0]
    size, width = state.touched, len(places)
    state.touched = 0
    rows = np.empty((size, width), np.int64)
    after = np.empty(size, np.int64)
    for index in range(size):
        row = np.int64(touched[index])
        for column in range(width):
            rows[index, column] = cells[row, column]
        after[index] = cells[row, width]
        links[row, MARK] = 0
        if cells[row, width] == 0:
            vacate(held.table, ids_hash(cells, row, places), row)
            if len(held.keys):
                _leave_group(held, row)
            links[row, NEXT] = state.free_row
            state.free_row = row
            state.live -= 1
    return rows, after


@compiled
def _new_row(held: TraceTables) -> Int:
    """The number of a row that is not in use; -1: there is none."""
    state = held.states[0]
    row = state.free_row
    if row >= 0:
        state.free_row = np.int64(held.links[row, NEXT])
    elif state.used < len(held.cells):
        row = state.used
        state.used += 1
    else:
        return np.int64(-1)
    held.cells[row, held.cells.shape[1] - EXTRA] = 0
    held.links[row, MARK] = 0
    state.live += 1
    return row


@allocating_kernel
def take_in(
    held: TraceTables, start: int, batch: Ids, weights: Weights, touched: Numbers, before: Weights
) -> tuple[int, Ids, Weights]:
    """Add weights from batch row `start` on, and list the touched rows with their weights before.

    Returns the end of the batch, the touched rows and their weights now; or the first batch row for which there is no
    room, and nothing else: grow and call again. O(batch)."""
    cells, links, table, groups, state = held.cells, held.links, held.table, held.groups, held.states[0]
    mask = np.int64(len(table) - 1)
    width = cells.shape[1] - EXTRA
    places = np.arange(width)
    grouped = len(held.keys) > 0
    for index in range(start, len(batch)):
        hashed = ids_hash(batch, index, places)
        slot = hashed & mask
        row = np.int64(-1)
        while table[slot] != 0:
            if (table[slot] >> 32) == hashed:
                number = (table[slot] & NUMBER) - 1
                column = 0
                while column < width and cells[number, column] == batch[index, column]:
                    column += 1
                if column == width:
                    row = number
                    break
            slot = (slot + 1) & mask
        if row < 0:
            row = _new_row(held)
            if row < 0:
                return index, np.empty((0, width), np.int64), np.empty(0, np.int64)
            table[slot] = (hashed << 32) | (row + 1)
            for column in range(width):
                cells[row, column] = batch[index, column]
            if grouped:
                _join_group(held, row)
        if links[row, MARK] == 0:
            touched[state.touched] = row
            before[state.touched] = cells[row, width]
            state.touched += 1
            links[row, MARK] = state.touched
        cells[row, width] += weights[index]
        state.sum += weights[index]
        if grouped:
            groups[links[row, OWN]].total += weights[index]
    given, after = _settle(held, touched, places)
    return len(batch), given, after


@allocating_kernel
def sums(rows: Ids, weights: Weights) -> tuple[Ids, Weights]:
    """Return, for each distinct row with a sum of weights other than 0, its first place and the sum; sums below 0 come
    first. Otherwise in the order of first appearance. O(rows)."""
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
        hashed = ids_hash(rows, index, places)
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
                number = (entry & NUMBER) - 1
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
