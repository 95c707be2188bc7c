"""A hash table from ids to numbers, many at a time.

Open addressing with linear probing. `table` has two int64 per slot, side by side: the id, and its number plus 1; 0 is
an empty slot. Nothing is ever taken out of a table: when numbers are taken back it is planted anew.

`state` says how many numbers were ever handed out (END: they lie below it), and how many of those wait in `free`, from
its beginning, to be handed out again, the last one first.

Invariant: each number below END is either in `free` or in the table once, under the id that `ids` has for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from anabranch.delta.batch import Ids, Mask
from anabranch.delta.kernels.log_store import inlined, kernel, prefetch

END, FREE = range(2)
STATE_SIZE = 2

_AHEAD = 16  # ids to look ahead


@inlined
def _mixed(value: int) -> Any:
    """64 bits that look random, other ones for each id: every step can be undone. As a signed number, what
    `anabranch.model.scrambled` says of an integer."""
    mixed = np.uint64(value)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


@inlined
def _home(value: int, table: Ids) -> int:
    """Where in the table an id would like to be."""
    return int(np.int64(_mixed(value) & np.uint64(table.size - 2)))


@inlined
def _place(value: int, table: Ids) -> int:
    """Where in the table an id is, or the empty slot where it would be."""
    place = _home(value, table)
    while table[place + 1] != 0 and table[place] != value:
        place = (place + 2) & (table.size - 1)
    return place


@kernel
def number(asked: Ids, done: int, numbers: Ids, table: Ids, ids: Ids, priorities: Ids, free: Ids, state: Ids) -> int:
    """The numbers of the ids from `done` on, new ones where they have none. Gives up when there is no room for a new
    one (3 of 4 slots are taken, or no number is left): how far it came."""
    most = (table.size >> 1) * 3 >> 2
    while done < asked.size:
        if done + _AHEAD < asked.size:
            prefetch(table, _home(asked[done + _AHEAD], table))
        value = asked[done]
        place = _place(value, table)
        if table[place + 1] == 0:
            if state[END] - state[FREE] >= most:
                break
            if state[FREE] > 0:
                state[FREE] -= 1
                new = free[state[FREE]]
            elif state[END] < ids.size:
                new = state[END]
                state[END] += 1
            else:
                break
            table[place], table[place + 1] = value, new + 1
            ids[new], priorities[new] = value, np.int64(_mixed(value))
        numbers[done] = table[place + 1] - 1
        done += 1
    return done


@kernel
def find(asked: Ids, numbers: Ids, table: Ids) -> None:
    """The numbers of ids, -1 for those that have none."""
    for at in range(asked.size):
        if at + _AHEAD < asked.size:
            prefetch(table, _home(asked[at + _AHEAD], table))
        numbers[at] = table[_place(asked[at], table) + 1] - 1


@kernel
def plant(table: Ids, ids: Ids, living: Mask) -> None:
    """Put the living numbers into an empty table."""
    for new in range(living.size):
        if new + _AHEAD < living.size:
            prefetch(table, _home(ids[new + _AHEAD], table))
        if living[new]:
            place = _place(ids[new], table)
            table[place], table[place + 1] = ids[new], new + 1
