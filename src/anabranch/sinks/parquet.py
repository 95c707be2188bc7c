"""Answers as Parquet: `query=NAME/part-00000012.parquet`, which pyarrow, DuckDB and Spark read as one table a query.

Every row says which answer it belongs to (`number`, `at`, `op`, `correction`, `win_start`, `win_end`) before the
query's own columns. A column of a query has no declared type and may hold a number today and a list tomorrow: it is
JSON text (`5`, `"x"`, `[1, 2]`) unless the user has said its type.

Invariant: the schema of a query's files depends on its columns and the types asked for, never on the values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from anabranch.errors import EngineError, EvaluationError, InternalError, closest
from anabranch.formats.answers import AnswerParts, TypedAnswers, beside, json_text
from anabranch.formats.rendered_rows import AnswerRow, RenderedRows
from anabranch.formats.values import INTEGER_MAX, INTEGER_MIN, cypher_text, to_json
from anabranch.model.instants import parse_instant
from anabranch.model.literals import value_of
from anabranch.model.temporal import Date, DateTime, LocalDateTime
from anabranch.model.terms import Blank, Iri, Literal
from anabranch.model.values import Value
from anabranch.sinks.base import Ledger, RenderedAnswer, Sink
from anabranch.sinks.parts import PartFiles

_INSTANT = pa.timestamp("us", tz="UTC")
_HEAD = (
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


_TYPES: Mapping[str, tuple[Any, Callable[[Value], Any]]] = {
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


class ParquetFolder(Sink):
    """A folder of Parquet files, one folder a query below it. `types` gives columns, in any query, a type."""

    forms = ("typed",)

    def __init__(
        self,
        path: str | Path,
        queries: Mapping[str, Sequence[str]],
        types: Mapping[str, str] | None = None,
        *,
        append: bool = False,
        overwrite: bool = False,
    ) -> None:
        self._types = dict(types or {})
        self._readers: dict[str, TypedAnswers] = {}  # by query
        self._cells: dict[tuple[str, tuple[str, ...]], RenderedRows[list[Any]]] = {}  # by query and columns
        self._parts = PartFiles(path, ".parquet", append=append, overwrite=overwrite)
        _check_types(self._types, queries)

    @property
    def path(self) -> Path:
        return self._parts.path

    def open(self, ledger: Ledger) -> None:
        self._parts.open(ledger)

    def write(self, batch: int, answers: Sequence[RenderedAnswer]) -> None:
        by_query: dict[str, list[RenderedAnswer]] = {}
        for told in answers:
            if told.rows:
                by_query.setdefault(told.query, []).append(told)
        # Every table is made before any file is: a value that does not fit leaves nothing behind.
        tables = {query: self._table(query, some) for query, some in by_query.items()}
        for query, table in tables.items():
            with self._parts.part(batch, f"query={quote(query, safe='')}") as file:
                pq.write_table(table, file)

    def _table(self, query: str, answers: Iterable[RenderedAnswer]) -> Any:
        reader = self._readers.setdefault(query, TypedAnswers())
        parts = [(told.number, reader.read(told.typed)) for told in answers]
        columns = parts[0][1].columns
        if any(answer.columns != columns for _, answer in parts):
            raise InternalError(f"the answers of `{query}` in one batch have different columns")
        cells = self._cells.setdefault((query, columns), RenderedRows(partial(self._converted_rows, query, columns)))
        rows = [row for _, answer in parts for row in cells.of(answer.rows)]
        arrays = _head_arrays(parts)
        fields = list(_HEAD)
        for index, (name, shown) in enumerate(zip(columns, beside(columns), strict=True)):
            arrow_type, _ = self._type(name)
            arrays.append(pa.array([row[index] for row in rows], arrow_type))
            fields.append(pa.field(shown, arrow_type))
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields))

    def _type(self, column: str) -> Any:
        return _TYPES[self._types.get(column, "json")]

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
                f"query `{query}`, column `{column}`: {shown} is no {self._types[column]}\n"
                f"hint: leave the column's type out, or write columns={column}:json; JSON text holds any value"
            ) from None


def _head_arrays(parts: Sequence[tuple[int, AnswerParts]]) -> list[Any]:
    """The columns that say which answer a row belongs to, each value as often as its answer has rows."""
    heads = [
        (number, answer.at, answer.op, answer.correction or None, answer.win_start, answer.win_end)
        for number, answer in parts
        for _ in answer.rows
    ]
    return [pa.array(list(values), field.type) for field, values in zip(_HEAD, zip(*heads, strict=True), strict=True)]


def _check_types(types: Mapping[str, str], queries: Mapping[str, Sequence[str]]) -> None:
    columns = list(dict.fromkeys(name for names in queries.values() for name in names))
    for name, kind in types.items():
        if name not in columns:
            near = closest(name, columns)
            hint = f"did you mean `{near[0]}`?  " if near else ""
            raise EngineError(f"no query has a column `{name}`\nhint: {hint}Columns: {', '.join(columns)}.")
        if kind not in _TYPES:
            near = closest(kind, _TYPES)
            hint = f"did you mean `{near[0]}`?  " if near else ""
            raise EngineError(f"column `{name}`: no type `{kind}`\nhint: {hint}Types: {', '.join(_TYPES)}.")
