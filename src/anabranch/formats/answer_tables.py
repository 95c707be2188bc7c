"""Answers as Arrow columns: every row says which answer it belongs to before the query's own columns.

A column of a query has no declared type and may hold a number today and a list tomorrow: it is JSON text (`5`, `"x"`,
`[1, 2]`) unless the user has said its type.

Invariant: the types of the columns depend on the types asked for, never on the values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from anabranch.errors import EngineError, EvaluationError, InternalError, closest
from anabranch.formats.answers import AnswerParts, TypedAnswers, json_text
from anabranch.formats.rendered_rows import AnswerRow, RenderedRows
from anabranch.formats.values import INTEGER_MAX, INTEGER_MIN, cypher_text, to_json
from anabranch.model.instants import parse_instant
from anabranch.model.literals import value_of
from anabranch.model.temporal import Date, DateTime, LocalDateTime
from anabranch.model.terms import Blank, Iri, Literal
from anabranch.model.values import Value

_INSTANT = pa.timestamp("us", tz="UTC")
HEAD = (
    pa.field("number", pa.int64(), nullable=False),
    pa.field("at", _INSTANT, nullable=False),
    pa.field("op", pa.string(), nullable=False),
    pa.field("correction", pa.string()),
    pa.field("win_start", _INSTANT, nullable=False),
    pa.field("win_end", _INSTANT, nullable=False),
)
_LONGEST_SHOWN = 80


class _Unfit(Exception):
    """A value that a column's type cannot hold."""


def _int64(value: Value) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and INTEGER_MIN <= value <= INTEGER_MAX:
        return value
    raise _Unfit


def _float64(value: Value) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    raise _Unfit


def _bool(value: Value) -> bool:
    if isinstance(value, bool):
        return value
    raise _Unfit


def _string(value: Value) -> str:
    """Texts, and the temporal values as their ISO text."""
    plain = to_json(value)
    if isinstance(value, float) or not isinstance(plain, str):
        raise _Unfit
    try:
        plain.encode()
    except UnicodeEncodeError:
        raise _Unfit from None
    return plain


def _timestamp(value: Value) -> int:
    """Dates, times with a date, and their ISO texts; without a zone they are UTC."""
    if isinstance(value, DateTime):
        return value.to_epoch_micros()
    if isinstance(value, LocalDateTime | Date | str):
        try:
            return parse_instant(str(value))
        except EvaluationError:
            pass
    raise _Unfit


def _json(value: Value) -> str:
    return json_text(to_json(value)).decode()


TYPES: Mapping[str, tuple[Any, Callable[[Value], Any]]] = {
    "int64": (pa.int64(), _int64),
    "float64": (pa.float64(), _float64),
    "string": (pa.string(), _string),
    "bool": (pa.bool_(), _bool),
    "timestamp": (_INSTANT, _timestamp),
    "json": (pa.string(), _json),
}


def parse_types(text: str) -> dict[str, str]:
    """`user:int64,hops:json` as column to type."""
    types: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, colon, kind = part.rpartition(":")
        if not colon or not name:
            raise EngineError(f"`{part}` does not say a type\nhint: write columns=user:int64,hops:json")
        types[name] = kind
    return types


class AnswerTables:
    """Makes Arrow columns of typed answers. `types` gives columns, in any query, a type.

    State: the converted rows of each query's last answer, which are not converted again."""

    def __init__(self, queries: Mapping[str, Sequence[str]], types: Mapping[str, str] | None = None) -> None:
        self.types = dict(types or {})
        self._readers: dict[str, TypedAnswers] = {}  # by query
        self._cells: dict[tuple[str, tuple[str, ...]], RenderedRows[list[Any]]] = {}  # by query and columns
        _check_types(self.types, queries)

    def arrays(self, query: str, answers: Iterable[tuple[int, bytes]]) -> tuple[list[Any], dict[str, Any]]:
        """Return the arrays of HEAD, and those of the query's columns by name, for numbered typed answers."""
        reader = self._readers.setdefault(query, TypedAnswers())
        parts = [(number, reader.read(typed)) for number, typed in answers]
        columns = parts[0][1].columns
        if any(answer.columns != columns for _, answer in parts):
            raise InternalError(f"the answers of `{query}` in one batch have different columns")
        cells = self._cells.setdefault((query, columns), RenderedRows(partial(self._converted_rows, query, columns)))
        rows = [row for _, answer in parts for row in cells.of(answer.rows)]
        own = {name: pa.array([row[place] for row in rows], self.type_of(name)) for place, name in enumerate(columns)}
        return _head_arrays(parts), own

    def type_of(self, column: str) -> Any:
        return self._type(column)[0]

    def _type(self, column: str) -> Any:
        return TYPES[self.types.get(column, "json")]

    def _converted_rows(self, query: str, columns: Sequence[str], rows: Iterable[AnswerRow]) -> list[list[Any]]:
        """Return the values of Arrow for each row. A row that its query's answer before had is not converted again."""
        converts = [(name, self._type(name)[1]) for name in columns]
        return [
            [self._converted(query, name, value, convert) for (name, convert), value in zip(converts, row, strict=True)]
            for row in rows
        ]

    def _converted(self, query: str, column: str, value: Value, convert: Callable[[Value], Any]) -> Any:
        if convert is not _json and isinstance(value, Iri | Blank | Literal):
            value = value_of(value) if isinstance(value, Literal) else to_json(value)
        if value is None:
            return None
        try:
            return convert(value)
        except (_Unfit, OverflowError):
            shown = cypher_text(value)
            shown = shown if len(shown) <= _LONGEST_SHOWN else f"{shown[:_LONGEST_SHOWN]}…"
            raise EngineError(
                f"query `{query}`, column `{column}`: {shown} is no {self.types[column]}\n"
                f"hint: leave the column's type out, or write columns={column}:json; JSON text holds any value"
            ) from None


def _head_arrays(parts: Sequence[tuple[int, AnswerParts]]) -> list[Any]:
    """The columns that say which answer a row belongs to, each value as often as its answer has rows."""
    heads = [
        (number, answer.at, answer.op, answer.correction or None, answer.win_start, answer.win_end)
        for number, answer in parts
        for _ in answer.rows
    ]
    return [pa.array(list(values), field.type) for field, values in zip(HEAD, zip(*heads, strict=True), strict=True)]


def _check_types(types: Mapping[str, str], queries: Mapping[str, Sequence[str]]) -> None:
    columns = list(dict.fromkeys(name for names in queries.values() for name in names))
    for name, kind in types.items():
        if name not in columns:
            near = closest(name, columns)
            hint = f"did you mean `{near[0]}`?  " if near else ""
            raise EngineError(f"no query has a column `{name}`\nhint: {hint}Columns: {', '.join(columns)}.")
        if kind not in TYPES:
            near = closest(kind, TYPES)
            hint = f"did you mean `{near[0]}`?  " if near else ""
            raise EngineError(f"column `{name}`: no type `{kind}`\nhint: {hint}Types: {', '.join(TYPES)}.")
