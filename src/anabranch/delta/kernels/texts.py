"""A hash table from texts to ids, many at a time: texts are compared byte by byte, never by their hash alone.

Texts of one form come in UTF-8. A new text is copied behind the others in the store. Open addressing with linear
probing; a SLOT has the hash, where the text begins in the store, its length and form, and its id plus 1; 0 is an empty
slot. A SPOT has, by id, where the text begins (-1: there is none) and its length and form.

Invariant: a text of a form is in the table once. Which id it has depends on the order of what came, not on its hash.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from anabranch.delta.batch import Ids
from anabranch.delta.kernels.compiling import Int, Records, fields, inlined, kernel, prefetch, unsigned
from anabranch.model.graph_block import Bytes

STATE = np.dtype(fields("filled taken next_id"))  # bytes of the store, slots, and the next new id
SLOT = np.dtype(fields("hash place extent held"))
SPOT = np.dtype(fields("place extent"))
LENGTH_BITS = 40
PADDING = 8  # bytes behind `data` that may be read

_ONE = np.uint64(1)
_FAR, _NEAR = 24, 8  # texts to look ahead: for the slot, and for the bytes that it names


def _word(typing_context: Any, array: Any, index: Any) -> Any:
    """Eight bytes of an array from any place on, as a number."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        place = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(64).as_pointer())
        return builder.load(place, align=1)

    return types.uint64(array, index), code


word_at = cast(Callable[[Bytes, int], Any], intrinsic(_word))


class TextSlices(NamedTuple):
    """Texts in `data`, which has PADDING bytes more: their starts, stops and hashes."""

    data: Bytes
    starts: Ids
    stops: Ids
    hashes: Ids


class TextStore(NamedTuple):
    """The slots, the bytes of all texts, the spots, and the one state."""

    slots: Records
    store: Bytes
    spots: Records
    states: Records


@inlined
def _hash(data: Bytes, first: Int, stop: Int, seed: Int) -> Int:
    mixed = np.uint64(seed) ^ np.uint64(stop - first)
    place = first
    while place + 8 <= stop:
        mixed = (mixed ^ word_at(data, place)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
        place += 8
    if place < stop:
        rest = word_at(data, place) << np.uint64(8 * (8 - (stop - place)))
        mixed = (mixed ^ rest) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(32)
    mixed = mixed * np.uint64(0x94D049BB133111EB)
    return np.int64(mixed ^ (mixed >> np.uint64(31)))


@kernel
def fill_hashes(texts: TextSlices, seed: Int) -> None:
    """Write the hash of each text."""
    for at in range(texts.hashes.size):
        texts.hashes[at] = _hash(texts.data, texts.starts[at], texts.stops[at], seed)


@inlined
def _same(data: Bytes, first: Int, store: Bytes, place: Int, length: Int) -> bool:
    done = 0
    while done + 8 <= length:
        if word_at(data, first + done) != word_at(store, place + done):
            return False
        done += 8
    while done < length:
        if data[unsigned(first + done)] != store[unsigned(place + done)]:
            return False
        done += 1
    return True


@inlined
def _home(slots: Records, hashed: Int) -> Int:
    """Return the first slot to probe for this hash."""
    return unsigned(hashed) & unsigned(slots.size - 1)


@inlined
def _slot(texts: TextSlices, at: Int, form: Int, table: TextStore) -> Int:
    """Return the slot of a text, or the empty slot where it would be."""
    slots, hashed, first = table.slots, texts.hashes[at], texts.starts[at]
    length = texts.stops[at] - first
    extent = (form << LENGTH_BITS) | length
    place = _home(slots, hashed)
    while slots[place].held != 0:
        slot = slots[place]
        alike = slot.hash == hashed and slot.extent == extent
        if alike and _same(texts.data, first, table.store, slot.place, length):
            break
        place = (place + _ONE) & unsigned(slots.size - 1)
    return place


@kernel
def find(texts: TextSlices, form: Int, table: TextStore, ids: Ids) -> None:
    """Write the ids of texts, -1 for unknown texts."""
    for at in range(ids.size):
        ids[at] = table.slots[_slot(texts, at, form, table)].held - 1


@kernel
def add(texts: TextSlices, form: Int, given: Int, table: TextStore, ids: Ids) -> None:
    """The ids of texts, new ones where they have none: those in `ids`, if they are `given`, else the next. There is
    room for all of them, in the slots, the store and the spots."""
    slots, store, state, hashes = table.slots, table.store, table.states[0], texts.hashes
    for at in range(ids.size):
        if at + _FAR < ids.size:
            prefetch(slots, _home(slots, hashes[unsigned(at + _FAR)]))
        if at + _NEAR < ids.size:
            hashed = hashes[unsigned(at + _NEAR)]
            home = slots[_home(slots, hashed)]
            if home.hash == hashed:
                prefetch(store, home.place)
        slot = slots[_slot(texts, at, form, table)]
        if slot.held == 0:
            if given == 0:
                ids[at] = state.next_id
                state.next_id += 1
            first, filled = texts.starts[at], state.filled
            length = texts.stops[at] - first
            for byte in range(length):
                store[unsigned(filled + byte)] = texts.data[unsigned(first + byte)]
            state.filled = filled + length
            state.taken += 1
            extent = (form << LENGTH_BITS) | length
            slot.hash, slot.place, slot.extent, slot.held = hashes[at], filled, extent, ids[at] + 1
            spot = table.spots[unsigned(ids[at])]
            spot.place, spot.extent = filled, extent
        else:
            ids[at] = slot.held - 1


@kernel
def plant(old: Records, slots: Records) -> None:
    """Put all that is in one table into an empty one."""
    for number in range(old.size):
        ahead = number + _FAR
        if ahead < old.size and old[unsigned(ahead)].held != 0:
            prefetch(slots, _home(slots, old[unsigned(ahead)].hash))
        slot = old[number]
        if slot.held != 0:
            place = _home(slots, slot.hash)
            while slots[place].held != 0:
                place = (place + _ONE) & unsigned(slots.size - 1)
            new = slots[place]
            new.hash, new.place, new.extent, new.held = slot.hash, slot.place, slot.extent, slot.held


_DIGITS = 18  # of the largest integers


@inlined
def _is_integer(data: Bytes, first: Int, stop: Int) -> bool:
    """Whether a text is an integer of at most 18 digits, as it is usually written: no zeros before it, no plus."""
    if first < stop and data[unsigned(first)] == 45:  # -
        first += 1
        if first < stop and data[unsigned(first)] == 48:
            return False
    if first >= stop or stop - first > _DIGITS or (data[unsigned(first)] == 48 and stop - first > 1):
        return False
    while first < stop and 48 <= data[unsigned(first)] <= 57:
        first += 1
    return bool(first == stop)


@kernel
def integers(data: Bytes, starts: Ids, stops: Ids, values: Ids, others: Ids) -> Int:
    """Write the values of the texts that are integers, and the places of the others; returns how many those are."""
    count = 0
    for at in range(values.size):
        first, stop = starts[at], stops[at]
        if _is_integer(data, first, stop):
            is_negative = data[unsigned(first)] == 45
            value = np.int64(0)
            for place in range(first + is_negative, stop):
                value = value * 10 + (np.int64(data[unsigned(place)]) - 48)
            values[at] = -value if is_negative else value
        else:
            others[unsigned(count)] = at
            count += 1
    return count


SCHEME, HOST, REST = 1, 2, 4  # what a byte may be part of
_LETTER = 8


def byte_classes() -> Bytes:
    """By byte, where in a plain IRI it may stand."""
    found = np.zeros(256, np.uint8)
    for byte in range(128):
        letter = chr(byte)
        if letter.isalpha():
            found[byte] |= _LETTER
        if letter.isalnum() or letter in "+.-":
            found[byte] |= SCHEME
        if letter.isalnum() or letter in "!$&'()*+,-.;=_~":
            found[byte] |= HOST
        if letter.isalnum() or letter in "!$&'()*+,-./:;=?@_~":
            found[byte] |= REST
    return found


@inlined
def _ahead(data: Bytes, place: int, stop: int, classes: Bytes, kind: int) -> int:
    while place < stop and classes[data[unsigned(place)]] & kind:
        place += 1
    return place


@inlined
def _is_plain(data: Bytes, place: int, stop: int, classes: Bytes) -> bool:
    """scheme://host[/path or ?query][#fragment]"""
    if place >= stop or not classes[data[place]] & _LETTER:
        return False
    place = _ahead(data, place, stop, classes, SCHEME)
    if place + 3 > stop or data[place] != 58 or data[place + 1] != 47 or data[place + 2] != 47:
        return False
    place = _ahead(data, place + 3, stop, classes, HOST)
    if place < stop and (data[place] == 47 or data[place] == 63):
        place = _ahead(data, place, stop, classes, REST)
    if place < stop and data[place] == 35:
        place = _ahead(data, place + 1, stop, classes, REST)
    return place == stop


@kernel
def plain_iris(data: Bytes, ends: Ids, classes: Bytes, starts: Ids, stops: Ids) -> bool:
    """Whether all texts, from one end to the next, are plain IRIs, bare or in brackets; and where the IRIs stand."""
    for at in range(starts.size):
        first, last = ends[at], ends[at + 1]
        if last - first >= 2 and data[first] == 60 and data[last - 1] == 62:
            first, last = first + 1, last - 1
        if not _is_plain(data, first, last, classes):
            return False
        starts[at], stops[at] = first, last
    return True
