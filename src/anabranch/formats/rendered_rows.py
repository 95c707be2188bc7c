"""Renderings of rows that are kept from one answer to the next: a row that stays is not rendered again.

A row is recognised by its identity: whoever lists the rows of a snapshot (`engine.maintained`, `formats.answers`) gives
the same tuple as long as the row is part of the answer.

State: the rows of the last snapshot and their renderings, and at most about as many that have left. Work per answer: a
lookup a row, and none where all rows stay.

Invariant: the renderings are those that `render` gives for each row alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import is_
from typing import Generic, TypeVar

from anabranch.model.values import Value

AnswerRow = tuple[Value, ...]
Rendering = TypeVar("Rendering")

_FEW = 64


class RenderedRows(Generic[Rendering]):
    """The rows of one query's last snapshot with their renderings. `render` gives one for each row."""

    def __init__(self, render: Callable[[Iterable[AnswerRow]], list[Rendering]]) -> None:
        self._render = render
        self._rows: Sequence[AnswerRow] = ()
        self._renderings: list[Rendering] = []
        self._by_id: dict[int, Rendering] = {}
        self._held: list[AnswerRow] = []  # those whose ids are keys: no other row can get the id of one

    def __len__(self) -> int:
        """Return how many rows are kept."""
        return len(self._by_id)

    def of(self, rows: Sequence[AnswerRow], is_kept: bool = True) -> list[Rendering]:
        """Return the renderings of an answer's rows. Rows that are not going to come again need not be kept."""
        if not is_kept:
            return self._render(rows)
        if len(rows) == len(self._rows) and all(map(is_, rows, self._rows)):
            return self._renderings
        ids = list(map(id, rows))
        by_id = self._by_id
        new = {key: row for key, row in zip(ids, rows, strict=True) if key not in by_id}
        if new:
            made = dict(zip(new, self._render(new.values()), strict=True))
            self._by_id |= made
            self._held += new.values()
        found = list(map(self._by_id.__getitem__, ids))
        if len(self._held) > 2 * len(rows) + _FEW:  # most of them have left
            self._by_id, self._held = dict(zip(ids, found, strict=True)), list(rows)
        self._renderings, self._rows = found, list(rows)
        return self._renderings
