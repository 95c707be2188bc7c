"""Rows in order, on arrays: rows come and go one after the other, and the slice of an order changes with them.

A row has a number, its ids, and words: rows are compared by their words, and by their ids where these are equal. The
entries of the order are numbers of rows, one for each copy, in chunks; the directory has the numbers of the chunks in
order and, behind these, of the chunks that are free.

Invariant: no chunk of the order is empty; two numbers in it are equal only for copies of one row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anabranch.delta.batch import Ids, Weights
from anabranch.delta.kernels.compiling import Floats, Int, Records, compiled, fields, inlined, kernel
from anabranch.delta.kernels.sums import FLOAT, INTEGER, Kinds

CHUNK = 256
"""Entries of a chunk at most."""
STATE = np.dtype(fields("chunks entries touched"))

_EXACT = 1 << 53  # up to here, floats have all integers
_LARGEST = 9223372036854774784  # the largest integer of 64 bits that is a float
_SIGN = np.int64(-1) << np.int64(63)


class OrderTable(NamedTuple):
    """Rows with their words and the number of their copies; the order; and, within a slide, how many copies of a row
    came into the slice."""

    rows: Ids
    words: Ids
    copies: Ids
    chunks: Ids
    sizes: Ids
    directory: Ids
    nets: Ids
    states: Records


class OrderChanges(NamedTuple):
    """Changed rows of several slides: the number of the first, their weights, and the end of each slide; the places
    from `skip` to before `stop` are the slice. A negative `stop`: it has no end."""

    first: int
    weights: Weights
    ends: Ids
    skip: int
    stop: int


class SliceChanges(NamedTuple):
    """What the slice becomes: the rows that change and how many copies came, with the end of each slide; and, after
    each slide for which there is room, the rows of the slice."""

    rows: Ids
    weights: Weights
    ends: Ids
    listed: Ids
    stops: Ids


@inlined
def _order(table: OrderTable, one: Int, other: Int) -> Int:
    """Negative where a row comes before another, 0 where they are equal."""
    for column in range(table.words.shape[1]):
        left, right = table.words[one, column], table.words[other, column]
        if left != right:
            return -1 if left < right else 1
    for column in range(table.rows.shape[1]):
        left, right = table.rows[one, column], table.rows[other, column]
        if left != right:
            return -1 if left < right else 1
    return 0


@compiled
def _chunk_of(table: OrderTable, row: Int) -> Int:
    """The place in the directory of the first chunk that has an entry not before a row; behind all: the last."""
    low, high = np.int64(0), np.int64(table.states[0].chunks - 1)
    while low < high:
        middle = (low + high) >> 1
        chunk = table.directory[middle]
        if _order(table, table.chunks[chunk, table.sizes[chunk] - 1], row) < 0:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _place_in(table: OrderTable, chunk: Int, row: Int) -> Int:
    """The place in a chunk of the first entry that is not before a row."""
    low: Int = np.int64(0)
    high: Int = table.sizes[chunk]
    while low < high:
        middle = (low + high) >> 1
        if _order(table, table.chunks[chunk, middle], row) < 0:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _open_chunk(table: OrderTable, at: Int) -> Int:
    """Take a free chunk into the directory at a place; return its number."""
    state, directory = table.states[0], table.directory
    chunk = directory[state.chunks]
    for place in range(state.chunks, at, -1):
        directory[place] = directory[place - 1]
    directory[at] = chunk
    table.sizes[chunk] = 0
    state.chunks += 1
    return chunk


@compiled
def _close_chunk(table: OrderTable, at: Int) -> None:
    state, directory = table.states[0], table.directory
    chunk = directory[at]
    state.chunks -= 1
    for place in range(at, state.chunks):
        directory[place] = directory[place + 1]
    directory[state.chunks] = chunk


@compiled
def _add(table: OrderTable, row: Int) -> Int:
    """Add a copy of a row to the order; return its number there: that of an equal row, if there is one."""
    chunks, sizes, state = table.chunks, table.sizes, table.states[0]
    if state.chunks == 0:
        _open_chunk(table, 0)
    at = _chunk_of(table, row)
    chunk = table.directory[at]
    if sizes[chunk] == CHUNK:
        half = CHUNK >> 1
        other = _open_chunk(table, at + 1)
        for place in range(half):
            chunks[other, place] = chunks[chunk, half + place]
        sizes[chunk] = sizes[other] = half
        if _order(table, chunks[chunk, half - 1], row) < 0:
            chunk = other
    place = _place_in(table, chunk, row)
    if place < sizes[chunk] and _order(table, chunks[chunk, place], row) == 0:
        row = chunks[chunk, place]
    for one in range(sizes[chunk], place, -1):
        chunks[chunk, one] = chunks[chunk, one - 1]
    chunks[chunk, place] = row
    sizes[chunk] += 1
    state.entries += 1
    table.copies[row] += 1
    return row


@compiled
def _remove(table: OrderTable, row: Int) -> Int:
    """Remove a copy of a row, which is in the order; return its number there. Two chunks with few entries become
    one."""
    chunks, sizes, state, directory = table.chunks, table.sizes, table.states[0], table.directory
    at = _chunk_of(table, row)
    chunk = directory[at]
    place = _place_in(table, chunk, row)
    row = chunks[chunk, place]
    sizes[chunk] -= 1
    for one in range(place, sizes[chunk]):
        chunks[chunk, one] = chunks[chunk, one + 1]
    state.entries -= 1
    table.copies[row] -= 1
    if sizes[chunk] == 0:
        _close_chunk(table, at)
    elif sizes[chunk] <= CHUNK >> 2 and state.chunks > 1:
        left = at if at + 1 < state.chunks else at - 1
        first, second = directory[left], directory[left + 1]
        if sizes[first] + sizes[second] <= CHUNK >> 1:
            for place in range(sizes[second]):
                chunks[first, sizes[first] + place] = chunks[second, place]
            sizes[first] += sizes[second]
            _close_chunk(table, left + 1)
    return row


@compiled
def _at(table: OrderTable, place: Int) -> Int:
    """The row at a place of the order; -1: there is none."""
    if place < 0 or place >= table.states[0].entries:
        return np.int64(-1)
    at = 0
    while place >= table.sizes[table.directory[at]]:
        place -= table.sizes[table.directory[at]]
        at += 1
    return table.chunks[table.directory[at], place]


@compiled
def _count(table: OrderTable, told: SliceChanges, row: Int, change: Int) -> None:
    """Note that a copy of a row came into the slice, or left it."""
    if table.nets[row] == 0:
        state = table.states[0]
        told.rows[state.touched] = row  # a second time where its number was 0 again
        state.touched += 1
    table.nets[row] += change


@compiled
def _enter(table: OrderTable, row: Int, changes: OrderChanges, told: SliceChanges) -> None:
    """Add a copy of a row: one that comes before the end of the slice pushes one out there and, where it comes before
    the beginning, one in."""
    row = _add(table, row)
    pushed_out = _at(table, changes.stop)
    if changes.skip == changes.stop or (pushed_out >= 0 and _order(table, row, pushed_out) >= 0):
        return
    first = _at(table, changes.skip)
    if pushed_out >= 0:
        _count(table, told, pushed_out, -1)
    if first >= 0:
        _count(table, told, first if _order(table, row, first) < 0 else row, 1)


@compiled
def _leave(table: OrderTable, row: Int, changes: OrderChanges, told: SliceChanges) -> None:
    """Remove a copy of a row, with the reverse effect."""
    pulled_in, first = _at(table, changes.stop), _at(table, changes.skip)
    row = _remove(table, row)
    if changes.skip == changes.stop or (pulled_in >= 0 and _order(table, row, pulled_in) >= 0):
        return
    if pulled_in >= 0:
        _count(table, told, pulled_in, 1)
    if first >= 0:
        _count(table, told, first if _order(table, row, first) < 0 else row, -1)


@kernel
def place_rows(table: OrderTable, changes: OrderChanges, told: SliceChanges) -> None:
    """Place changed rows, slide by slide; write what changes in the slice, and its rows. Rows enter before others
    leave, so that a row that does both keeps its number. O(log n) comparisons for each copy, and O(chunks) where the
    slice has bounds."""
    state = table.states[0]
    is_bounded = changes.skip > 0 or changes.stop >= 0
    start, count = np.int64(0), np.int64(0)
    for slide in range(len(changes.ends)):
        end = changes.ends[slide]
        state.touched = count
        for is_entering in (True, False):
            for index in range(start, end):
                weight = changes.weights[index]
                if weight == 0 or (weight > 0) != is_entering:
                    continue
                row = changes.first + index
                for _ in range(abs(weight)):
                    if not is_bounded:
                        if is_entering:
                            _add(table, row)
                        else:
                            _remove(table, row)
                    elif is_entering:
                        _enter(table, row, changes, told)
                    else:
                        _leave(table, row, changes, told)
        for index in range(count, state.touched):
            row = told.rows[index]
            if table.nets[row] != 0:
                told.rows[count] = row
                told.weights[count] = table.nets[row]
                table.nets[row] = 0
                count += 1
        told.ends[slide] = count
        if len(told.listed) > 0:
            at = told.stops[slide - 1] if slide > 0 else np.int64(0)
            if told.stops[slide] > at:
                _list(table, changes.skip, told.listed, at, told.stops[slide])
        start = end


@compiled
def _list(table: OrderTable, skip: Int, listed: Ids, start: Int, stop: Int) -> None:
    """Write the rows of the order from the place `skip` on to the places from `start` to before `stop`."""
    at = 0
    while skip >= table.sizes[table.directory[at]]:
        skip -= table.sizes[table.directory[at]]
        at += 1
    while start < stop:
        chunk = table.directory[at]
        for place in range(skip, min(table.sizes[chunk], skip + stop - start)):
            listed[start] = table.chunks[chunk, place]
            start += 1
        skip = 0
        at += 1


@kernel
def list_rows(table: OrderTable, skip: int, listed: Ids) -> None:
    """Write the rows of the order from a place on. O(rows + chunks)."""
    if len(listed) > 0:
        _list(table, skip, listed, np.int64(0), np.int64(len(listed)))


@inlined
def _ordered_bits(bits: Int) -> Int:
    """A word that is ordered as the float with these bits is; both zeros have one."""
    return bits if bits >= 0 else -(bits & ~_SIGN)


@kernel
def number_order(kinds: Kinds, words: Ids, looks: bool, found: Ids, bits: Ids, floats: Floats) -> None:
    """Write the two sort words of each number: the largest float that is not above it, and what is left, with its look
    where looks count: integers come before floats, and these before -0.0. `floats` are the `bits` seen as floats: room
    for one of each. O(rows)."""
    for index in range(len(kinds)):
        word = words[index]
        if kinds[index] == FLOAT:
            found[index, 0] = _ordered_bits(word)
            found[index, 1] = (2 if word == _SIGN else 1) if looks else 0
        elif kinds[index] == INTEGER:
            rest = np.int64(0)
            if word > _LARGEST:
                floats[0] = np.float64(_LARGEST)
                rest = word - _LARGEST
            else:
                floats[0] = np.float64(word)
                if word > _EXACT or word < -_EXACT:
                    if np.int64(floats[0]) > word:
                        bits[0] += -1 if word > 0 else 1
                    rest = word - np.int64(floats[0])
            found[index, 0] = _ordered_bits(bits[0])
            found[index, 1] = rest << 2
