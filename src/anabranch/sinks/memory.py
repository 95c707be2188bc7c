"""Answers kept in memory, for notebooks and tests; they can be read while the run goes on.

Invariant: the kept answers of a query are its last `limit` ones, whatever batches they came in and however often.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, cast

from anabranch.errors import EngineError, closest
from anabranch.formats.answers import AnswerParts, TypedAnswers, beside
from anabranch.formats.tables import Table
from anabranch.model.compare import content_key
from anabranch.model.instants import Instant
from anabranch.model.values import Value
from anabranch.sinks.base import RenderedAnswer, Sink

if TYPE_CHECKING:
    import pandas

_INSTANTS = ("at", "win_start", "win_end")
_TOLD = ("at", "op", "correction", "win_start", "win_end")
_CURRENT = ("at", "op", "win_start", "win_end")


class NumberedAnswer(NamedTuple):
    """One answer: its number within the query, and its parts."""

    number: int
    answer: AnswerParts


class MemoryTable(Sink):
    """The answers of each query, all of them or the last `limit`. Safe to ask from any thread."""

    forms = ("typed",)

    def __init__(self, queries: Mapping[str, Sequence[str]] | None = None, limit: int | None = None) -> None:
        if limit is not None and limit < 1:
            raise EngineError(f"cannot keep {limit} answers\nhint: limit is at least 1; leave it out to keep all")
        self._limit = limit
        self._lock = Lock()
        self._columns = {name: tuple(columns) for name, columns in (queries or {}).items()}
        self._readers: dict[str, TypedAnswers] = {}
        self._kept: dict[str, list[tuple[int, NumberedAnswer]]] = {name: [] for name in self._columns}

    def write(self, batch: int, answers: Sequence[RenderedAnswer]) -> None:
        # Read before anything is touched: readers never wait for it.
        came = [(told.query, NumberedAnswer(told.number, self._read_typed(told))) for told in answers]
        with self._lock:
            for kept in self._kept.values():
                while kept and kept[-1][0] == batch:
                    kept.pop()
            for query, one in came:
                self._columns[query] = one.answer.columns
                self._kept.setdefault(query, []).append((batch, one))
            if self._limit is not None:
                for kept in self._kept.values():
                    del kept[: -self._limit]

    def _read_typed(self, told: RenderedAnswer) -> AnswerParts:
        return self._readers.setdefault(told.query, TypedAnswers()).read(told.typed)

    @property
    def queries(self) -> list[str]:
        """The queries that can be asked for."""
        with self._lock:
            return list(self._kept)

    def answers(self, query: str) -> list[NumberedAnswer]:
        """Return the answers as they were emitted, in order, corrections included."""
        return self._read(query)[1]

    def table(self, query: str) -> Table:
        """Return every emitted row, with its instant, operator, correction and window before the query's columns."""
        columns, kept = self._read(query)
        rows = [
            (Instant(one.at), one.op, one.correction, Instant(one.win_start), Instant(one.win_end), *row)
            for _, one in kept
            for row in one.rows
        ]
        return Table([*_TOLD, *beside(columns, _TOLD)], rows)

    def current(self, query: str) -> Table:
        """Return the rows that still hold, by instant: emitted rows less retracted ones plus corrected ones."""
        columns, kept = self._read(query)
        instants: dict[int, list[tuple[AnswerParts, tuple[Value, ...]]]] = {}
        for _, one in kept:
            rows = instants.setdefault(one.at, [])
            if one.correction == "retracted":
                instants[one.at] = _less(rows, one.rows)
            else:
                rows.extend((one, row) for row in one.rows)
        table = [
            (Instant(one.at), one.op, Instant(one.win_start), Instant(one.win_end), *row)
            for at in sorted(instants)
            for one, row in instants[at]
        ]
        return Table([*_CURRENT, *beside(columns, _CURRENT)], table)

    def to_pandas(self, query: str, *, current: bool = False) -> pandas.DataFrame:
        """`table` (or `current`) as a DataFrame whose instants are timestamps in UTC."""
        import pandas

        table = self.current(query) if current else self.table(query)
        frame = table.to_pandas()
        for place, name in enumerate(table.columns):
            if name in _INSTANTS:
                micros = pandas.Series([cast(Instant, row[place]) for row in table.rows], dtype="int64")
                frame[name] = micros.astype("datetime64[us]").dt.tz_localize("UTC")
        return frame

    def _read(self, query: str) -> tuple[tuple[str, ...], list[NumberedAnswer]]:
        with self._lock:
            if query in self._kept:
                return self._columns[query], [one for _, one in self._kept[query]]
            known = list(self._kept)
        near = closest(query, known)
        hint = f"did you mean `{near[0]}`?  " if near else ""
        raise EngineError(f"no answers of a query `{query}`\nhint: {hint}Queries: {', '.join(known) or 'none'}.")


def _less(
    rows: list[tuple[AnswerParts, tuple[Value, ...]]], retracted: Sequence[tuple[Value, ...]]
) -> list[tuple[AnswerParts, tuple[Value, ...]]]:
    """Return the rows less one for each retracted row; a retracted row that is no longer kept removes nothing."""
    taken: dict[Hashable, int] = {}
    for row in retracted:
        taken[_key(row)] = taken.get(_key(row), 0) + 1
    left = []
    for one, row in rows:
        key = _key(row)
        if taken.get(key, 0):
            taken[key] -= 1
        else:
            left.append((one, row))
    return left


def _key(row: Sequence[Value]) -> Hashable:
    return tuple(content_key(value) for value in row)
