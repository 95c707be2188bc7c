"""Answers: the rows that a query emits at an instant, and bag differences between two instants.

Invariant: `win_start` and `win_end` describe an answer and are no part of its rows; two rows with the same content are
the same row, whenever and in whatever window they were found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from anabranch.algebra.operators import Output
from anabranch.formats.answers import AnswerParts
from anabranch.formats.rendered_rows import AnswerRow as AnswerRow
from anabranch.formats.values import to_json
from anabranch.model.compare import content_key
from anabranch.model.instants import Instant
from anabranch.model.values import Value

Correction = Literal["", "retracted", "corrected"]


@dataclass(frozen=True, slots=True)
class Answer:
    """The rows of one query at one evaluation instant. Instants are UTC microseconds that show as ISO 8601.

    A late event that changes an emitted answer makes two answers of the same instant: `retracted` holds the rows that
    were emitted, `corrected` the rows that should have been. Both carry the operator and the window of the original
    answer.
    """

    query: str
    at: Instant
    op: Output
    win_start: Instant
    win_end: Instant
    columns: tuple[str, ...]
    rows: list[AnswerRow]
    correction: Correction = ""

    @classmethod
    def told(
        cls,
        query: str,
        at: int,
        op: Output,
        window: tuple[int, int],
        columns: tuple[str, ...],
        rows: list[AnswerRow],
        correction: Correction = "",
    ) -> Answer:
        """Build an answer from plain microseconds."""
        return cls(query, Instant(at), op, Instant(window[0]), Instant(window[1]), columns, rows, correction)

    def dicts(self) -> list[dict[str, Value]]:
        """Return the rows as dictionaries by column name, with Cypher values."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def to_dict(self) -> dict[str, object]:
        """Return the whole answer, ready for JSON: instants as ISO 8601 text, values as plain JSON."""
        return {
            **self._head(),
            "rows": [{name: to_json(value) for name, value in row.items()} for row in self.dicts()],
        }

    def row_dicts(self) -> Iterator[dict[str, object]]:
        """Yield one JSON-ready object per row, as `anabranch run --output json` prints them."""
        for row in self.dicts():
            yield {**self._head(), "row": {name: to_json(value) for name, value in row.items()}}

    def parts(self) -> AnswerParts:
        """Return the answer in plain parts, as formatters take it."""
        return AnswerParts(
            self.query,
            int(self.at),
            self.op,
            self.correction,
            int(self.win_start),
            int(self.win_end),
            self.columns,
            self.rows,
        )

    def text(self, form: str, prefixes: Mapping[str, str] | None = None) -> str:
        """Render the answer in a format of SPARQL results or of RDF graphs, such as `sparql-json` or `turtle`."""
        from anabranch.formats.rdf.results import render

        return render(form, self.parts(), prefixes).decode()

    def _head(self) -> dict[str, object]:
        return {
            "query": self.query,
            "at": str(self.at),
            "op": self.op,
            **({"correction": self.correction} if self.correction else {}),
            "win_start": str(self.win_start),
            "win_end": str(self.win_end),
        }


def row_key(row: AnswerRow) -> Hashable:
    return tuple(content_key(value) for value in row)


def bag_difference(rows: Sequence[AnswerRow], keys: Sequence[Hashable], others: Sequence[Hashable]) -> list[AnswerRow]:
    """Return the rows, in their order, that remain after each key of `others` has cancelled one row with that key."""
    taken = Counter(others)
    left = []
    for row, key in zip(rows, keys, strict=True):
        if taken.get(key, 0):
            taken[key] -= 1
        else:
            left.append(row)
    return left
