"""A hash table from ids to numbers, many at a time.

Open addressing with linear probing. A SLOT of the table has the id, and its number plus 1; 0 is an empty slot. Nothing
is ever taken out of a table: when numbers are taken back it is planted again.

STATE says how many numbers were ever handed out (`end`: they lie below it), and how many of those wait in `free`, from
its beginning, to be handed out again, the last one first.

Invariant: each number below `end` is either in `free` or in the table once, under the id that `ids` has for it.
"""

from __future__ import annotations

import numpy as np

from anabranch.delta.batch import Ids, Mask
from anabranch.delta.kernels.compiling import Int, Records, fields, inlined, kernel, prefetch, unsigned

SLOT = np.dtype(fields("id held"))
STATE = np.dtype(fields("end free"))

_AHEAD = 16  # ids to look ahead
_ONE = np.uint64(1)


@inlined
def _mixed(value: Int) -> Int:
    """64 bits that look random, other ones for each id: every step can be undone. As a signed number, what
    `anabranch.model.scrambled` says of an integer."""
    mixed = np.uint64(value)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


@inlined
def _home(value: Int, table: Records) -> Int:
    """Return the first slot to probe for an id."""
    return _mixed(value) & unsigned(table.size - 1)


@inlined
def _place(value: Int, table: Records) -> Int:
    """Return the slot of an id, or the empty slot where it would be."""
    place = _home(value, table)
    while table[place].held != 0 and table[place].id != value:
        place = (place + _ONE) & unsigned(table.size - 1)
    return place


@kernel
def number(
    asked: Ids, done: Int, numbers: Ids, table: Records, ids: Ids, priorities: Ids, free: Ids, states: Records
) -> Int:
    """Write the numbers of the ids from `done` on, new ones for ids without a number. Stops when there is no room for a
    new one (3 of 4 slots are taken, or no number is left); returns how far it came."""
    state = states[0]
    most = table.size * 3 >> 2
    while done < asked.size:
        if done + _AHEAD < asked.size:
            prefetch(table, _home(asked[unsigned(done + _AHEAD)], table))
        value = asked[unsigned(done)]
        slot = table[_place(value, table)]
        if slot.held == 0:
            if state.end - state.free >= most:
                break
            if state.free > 0:
                state.free -= 1
                new = free[unsigned(state.free)]
            elif state.end < ids.size:
                new = state.end
                state.end += 1
            else:
                break
            slot.id, slot.held = value, new + 1
            ids[unsigned(new)], priorities[unsigned(new)] = value, np.int64(_mixed(value))
        numbers[unsigned(done)] = slot.held - 1
        done += 1
    return done


@kernel
def find(asked: Ids, numbers: Ids, table: Records) -> None:
    """Write the numbers of ids, -1 for ids without a number."""
    for at in range(asked.size):
        if at + _AHEAD < asked.size:
            prefetch(table, _home(asked[unsigned(at + _AHEAD)], table))
        numbers[at] = table[_place(asked[at], table)].held - 1


@kernel
def plant(table: Records, ids: Ids, living: Mask) -> None:
    """Put the living numbers into an empty table."""
    for new in range(living.size):
        if new + _AHEAD < living.size:
            prefetch(table, _home(ids[unsigned(new + _AHEAD)], table))
        if living[new]:
            slot = table[_place(ids[new], table)]
            slot.id, slot.held = ids[new], new + 1
