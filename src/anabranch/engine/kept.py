"""The rows of a query's current instant, and the rows that entered and left at it, however they were computed.

Invariant: rows that entered and left are bag differences to the rows of the instant before, compared by what an answer
shows; rows are built only on demand.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from anabranch.engine.answers import AnswerRow, bag_difference, row_key
from anabranch.engine.maintained import IncrementalAnswer
from anabranch.formats.values import to_json

_SHOWN = 3  # rows of a disagreement


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A difference between the incremental answer and the plain evaluator's."""

    missing: Sequence[AnswerRow]  # rows that the plain evaluator has and the operators lack
    surplus: Sequence[AnswerRow]

    def __str__(self) -> str:
        parts = [
            f"{what}: {_few(rows)}" for what, rows in (("missing", self.missing), ("surplus", self.surplus)) if rows
        ]
        return f"VERIFY FAILED: the incremental answer is not what the plain query says; {'; '.join(parts) or 'order'}"


def _few(rows: Sequence[AnswerRow]) -> str:
    shown = ", ".join(str(tuple(map(to_json, row))) for row in rows[:_SHOWN])
    return shown if len(rows) <= _SHOWN else f"{shown} and {len(rows) - _SHOWN:,} more"


class _Rows:
    """Rows, with their comparison keys computed on first use."""

    __slots__ = ("_keys", "rows")

    def __init__(self, rows: list[AnswerRow]) -> None:
        self.rows = rows
        self._keys: list[Hashable] | None = None

    def keys(self) -> list[Hashable]:
        if self._keys is None:
            self._keys = [row_key(row) for row in self.rows]
        return self._keys


class AnswerRows:
    """The rows of an instant: either the rows themselves, or the operators that maintain them."""

    __slots__ = ("_before", "_maintained", "_moved", "_now")

    def __init__(self, rows: list[AnswerRow] | None = None) -> None:
        self._now: _Rows | None = _Rows(rows or [])
        self._before: _Rows | None = None  # set where the difference is found by comparison
        self._maintained: IncrementalAnswer | None = None
        self._moved = False

    def stay(self) -> None:
        """Note that nothing changed."""
        self._moved = False
        self._before = None

    def replace(self, rows: list[AnswerRow]) -> None:
        """Set the rows."""
        self._before = self._present()
        self._now = _Rows(rows)
        self._maintained = None
        self._moved = True

    def follow(self, maintained: IncrementalAnswer, began: bool) -> None:
        """Switch to incremental maintenance. If the operators were just started (`began`), keep the previous rows to
        compare.
        """
        self._before = self._present() if began else None
        self._now = None
        self._maintained = maintained
        self._moved = True

    def __len__(self) -> int:
        return len(self._maintained) if self._maintained is not None else len(self._present().rows)

    def rows(self) -> list[AnswerRow]:
        return list(self._present().rows)

    def entered(self) -> list[AnswerRow]:
        if not self._moved:
            return []
        if self._before is None and self._maintained is not None:
            return self._maintained.entered()
        now, before = self._present(), self._before or _Rows([])
        return bag_difference(now.rows, now.keys(), before.keys())

    def left(self) -> list[AnswerRow]:
        if not self._moved:
            return []
        if self._before is None and self._maintained is not None:
            return self._maintained.left()
        now, before = self._present(), self._before or _Rows([])
        return bag_difference(before.rows, before.keys(), now.keys())

    def _present(self) -> _Rows:
        if self._now is None:
            assert self._maintained is not None
            self._now = _Rows(self._maintained.rows())
        return self._now
