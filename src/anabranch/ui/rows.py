"""The identity of rows between two answers.

Work per answer: O(rows of both). Invariant: keys are never reused, and no two rows have the same key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anabranch.ui.values import is_number

MOST_ROWS = 200
_MOST_GONE = 1_000
ShownRow = tuple[Any, ...]


class ShownRows:
    """The shown rows, and the key of each.

    A row that equals a previous one keeps its key. Of the others, a row that differs from a previous one only in its
    numbers takes that key: its cells have changed. All other rows entered or left. Rows that left are kept for a while,
    with the last instant at which they were there, because the browser still shows them.
    """

    def __init__(self) -> None:
        self._next = 0
        self.rows: dict[int, tuple[ShownRow, str]] = {}
        self.gone: dict[int, tuple[ShownRow, str]] = {}

    def show(self, rows: Sequence[ShownRow], at: str) -> tuple[list[int], list[int]]:
        """Replace all rows by these; returns their keys in order, and the keys that must be sent."""
        free: dict[str, list[int]] = {}
        for key, (row, _) in self.rows.items():
            free.setdefault(repr(row), []).append(key)
        keys: list[int | None] = [_taken(free, repr(row)) for row in rows]
        alike: dict[str, list[int]] = {}
        for key in sorted(key for left in free.values() for key in left):
            alike.setdefault(_without_numbers(self.rows[key][0]), []).append(key)
        order: list[int] = []
        fresh: list[int] = []
        for row, known in zip(rows, keys, strict=True):
            if known is not None:
                order.append(known)
                continue
            changed = _taken(alike, _without_numbers(row))
            key = self._next if changed is None else changed
            self._next += changed is None
            fresh.append(key)
            order.append(key)
        self._keep({key: (row, at) for key, row in zip(order, rows, strict=True)})
        return order, fresh

    def put_first(self, rows: Sequence[ShownRow], at: str) -> tuple[list[int], list[int]]:
        """Insert these rows before the existing ones."""
        fresh = list(range(self._next, self._next + len(rows)))
        self._next += len(rows)
        held = dict(zip(fresh, ((row, at) for row in rows), strict=True)) | self.rows
        self._keep(dict(list(held.items())[:MOST_ROWS]))
        return list(self.rows), [key for key in fresh if key in self.rows]

    def _keep(self, rows: dict[int, tuple[ShownRow, str]]) -> None:
        left = {key: one for key, one in self.rows.items() if key not in rows}
        self.rows = rows
        if left:
            self.gone = dict(list((self.gone | left).items())[-_MOST_GONE:])


def _taken(free: dict[str, list[int]], name: str) -> int | None:
    left = free.get(name)
    return left.pop(0) if left else None


def _without_numbers(row: ShownRow) -> str:
    return repr(tuple(None if is_number(value) else value for value in row))
