"""A hash table from texts to ids, many at a time: texts are compared byte by byte, never by their hash alone.

`data` holds texts of one form in UTF-8, from `starts` to `stops`. A text that is new is copied behind the others in
`store`. Open addressing with linear probing; a slot of `table` is four int64: the hash, where the text begins in the
store, its length and form, and its id plus 1; 0 is an empty slot. `spots` has, two by two for each id, where the text
begins and its length and form, or -1.

`state` says how many bytes of the store and how many slots are taken, and the next new id.

Invariant: a text of a form is in the table once. Which id it has depends on the order of what came, not on its hash.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from anabranch.delta.batch import Ids
from anabranch.delta.kernels.log_store import inlined, kernel, prefetch

Bytes = npt.NDArray[np.uint8]

FILLED, TAKEN, NEXT = range(3)
STATE_SIZE = 3
SLOT = 4  # words
LENGTH_BITS = 40
PADDING = 8  # bytes behind `data` that may be read

_FAR, _NEAR = 24, 8  # texts to look ahead: for the slot, and for the bytes that it names


def _word(typing_context: Any, array: Any, index: Any) -> Any:
    """Eight bytes of an array from any place on, as a number."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        place = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(64).as_pointer())
        return builder.load(place, align=1)

    return types.uint64(array, index), code


_prefetch_byte = cast(Callable[[Bytes, int], None], prefetch)
_word_at = cast(Callable[[Bytes, int], Any], intrinsic(_word))


@inlined
def _hash(data: Bytes, first: int, stop: int, seed: int) -> int:
    mixed = np.uint64(seed) ^ np.uint64(stop - first)
    place = first
    while place + 8 <= stop:
        mixed = (mixed ^ _word_at(data, place)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
        place += 8
    if place < stop:
        rest = _word_at(data, place) << np.uint64(8 * (8 - (stop - place)))
        mixed = (mixed ^ rest) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(32)
    mixed = mixed * np.uint64(0x94D049BB133111EB)
    return int(np.int64(mixed ^ (mixed >> np.uint64(31))))


@kernel
def hashes(data: Bytes, starts: Ids, stops: Ids, seed: int, found: Ids) -> None:
    """Of each text the hash. `data` has PADDING bytes more than texts."""
    for at in range(found.size):
        found[at] = _hash(data, starts[at], stops[at], seed)


@inlined
def _same(data: Bytes, first: int, store: Bytes, place: int, length: int) -> bool:
    done = 0
    while done + 8 <= length:
        if _word_at(data, first + done) != _word_at(store, place + done):
            return False
        done += 8
    while done < length:
        if data[first + done] != store[place + done]:
            return False
        done += 1
    return True


@inlined
def _slot(data: Bytes, first: int, length: int, form: int, hashed: int, table: Ids, store: Bytes) -> int:
    """Where in the table a text is, or the empty slot where it would be."""
    mask = table.size - 1
    place = (hashed * SLOT) & mask
    said = (form << LENGTH_BITS) | length
    while table[place + 3] != 0:
        if table[place] == hashed and table[place + 2] == said and _same(data, first, store, table[place + 1], length):
            break
        place = (place + SLOT) & mask
    return place


@kernel
def find(data: Bytes, starts: Ids, stops: Ids, hashed: Ids, form: int, table: Ids, store: Bytes, ids: Ids) -> None:
    """The ids of texts, -1 for those that have none."""
    for at in range(ids.size):
        first = starts[at]
        ids[at] = table[_slot(data, first, stops[at] - first, form, hashed[at], table, store) + 3] - 1


@kernel
def add(
    data: Bytes,
    starts: Ids,
    stops: Ids,
    hashed: Ids,
    form: int,
    given: int,
    table: Ids,
    store: Bytes,
    spots: Ids,
    state: Ids,
    ids: Ids,
) -> None:
    """The ids of texts, new ones where they have none: those in `ids`, if they are `given`, else the next. There is
    room for all of them, in the table, the store and the spots."""
    mask = table.size - 1
    for at in range(ids.size):
        if at + _FAR < ids.size:
            prefetch(table, (hashed[at + _FAR] * SLOT) & mask)
        if at + _NEAR < ids.size:
            home = (hashed[at + _NEAR] * SLOT) & mask
            if table[home] == hashed[at + _NEAR]:
                _prefetch_byte(store, table[home + 1])
        first = starts[at]
        length = stops[at] - first
        place = _slot(data, first, length, form, hashed[at], table, store)
        if table[place + 3] == 0:
            if given == 0:
                ids[at] = state[NEXT]
                state[NEXT] += 1
            filled = state[FILLED]
            for byte in range(length):
                store[filled + byte] = data[first + byte]
            state[FILLED] = filled + length
            state[TAKEN] += 1
            said = (form << LENGTH_BITS) | length
            table[place], table[place + 1], table[place + 2], table[place + 3] = hashed[at], filled, said, ids[at] + 1
            spots[2 * ids[at]], spots[2 * ids[at] + 1] = filled, said
        else:
            ids[at] = table[place + 3] - 1


@kernel
def plant(old: Ids, table: Ids) -> None:
    """Put all that is in one table into an empty one."""
    mask = table.size - 1
    for slot in range(0, old.size, SLOT):
        ahead = slot + _FAR * SLOT
        if ahead < old.size and old[ahead + 3] != 0:
            prefetch(table, (old[ahead] * SLOT) & mask)
        if old[slot + 3] != 0:
            place = (old[slot] * SLOT) & mask
            while table[place + 3] != 0:
                place = (place + SLOT) & mask
            for word in range(SLOT):
                table[place + word] = old[slot + word]


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
    while place < stop and classes[data[place]] & kind:
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
