"""Results as changes: a result that shares rows with an earlier one is stored as how it differs from it.

Every result of a group is a change of the group's first one, the whole, and not of the result before it: one lookup
gives any result back. A new group begins where the change would not be small, or after `MOST` results.

Invariant: `restored(change, whole)` is the body from which the change was made, to the byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

MOST = 100  # results of a group: when all of them have gone, their whole goes
_SHARE = 4  # a change is stored if it has at most the fourth part of the body's length
_FEWEST = 16  # rows: shorter results are stored as they are


class ResultParts(NamedTuple):
    """A rendered result: the text before its rows, its rows, and the text behind them."""

    begin: bytes
    rows: Sequence[bytes]
    end: bytes

    @property
    def body(self) -> bytes:
        return self.begin + b", ".join(self.rows) + self.end


class ResultGroup:
    """The results that are stored as changes of one `whole`, which has a `number` in the store."""

    def __init__(self, number: int, whole: ResultParts) -> None:
        self.number = number
        self.count = 1
        self._places = {row: place for place, row in enumerate(whole.rows)}

    def change(self, parts: ResultParts) -> bytes | None:
        """Return how a result differs from the whole; None if it is to begin a group of its own."""
        if self.count >= MOST:
            return None
        lines = [parts.begin, parts.end]
        room = sum(map(len, parts.rows)) // _SHARE
        first = stop = -1  # the run of rows of the whole that is being copied
        for row in parts.rows:
            place = self._places.get(row, -1)
            if place >= 0 and place == stop:
                stop += 1
                continue
            if first >= 0:
                lines.append(b"c%d %d" % (first, stop))
            first, stop = (place, place + 1) if place >= 0 else (-1, -1)
            if place < 0:
                lines.append(b"r" + row)
                room -= len(row)
            room -= 8
            if room < 0:
                return None
        if first >= 0:
            lines.append(b"c%d %d" % (first, stop))
        self.count += 1
        return b"\n".join(lines)


def may_begin(parts: ResultParts) -> bool:
    """Return whether later results may be stored as changes of this one."""
    return len(parts.rows) >= _FEWEST


def packed(parts: ResultParts) -> bytes:
    """Return a whole as it is stored: one row a line. JSON has no line breaks of its own."""
    return b"\n".join([parts.begin, parts.end, *parts.rows])


def unpacked(stored: bytes) -> ResultParts:
    begin, end, *rows = stored.split(b"\n")
    return ResultParts(begin, rows, end)


def restored(change: bytes, whole: ResultParts) -> bytes:
    """Return the body of a result that was stored as a change."""
    begin, end, *lines = change.split(b"\n")
    rows: list[bytes] = []
    for line in lines:
        if line.startswith(b"r"):
            rows.append(line[1:])
        else:
            first, stop = map(int, line[1:].split())
            rows += whole.rows[first:stop]
    return ResultParts(begin, rows, end).body
