"""Answers as bytes: JSON lines, CSV lines, and typed JSON from which the whole answer comes back; and as Arrow tables.

An answer is taken as its plain parts (`AnswerParts`).

Invariant: `from_typed(to_typed(parts))` are the parts again; the lines are to the byte those that
`anabranch run --output json|csv` prints. A column of a table has one type; without one in common its values are text.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Sequence
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, NamedTuple

from anabranch.formats.rendered_rows import AnswerRow, RenderedRows
from anabranch.formats.values import Json, cypher_text, from_typed_json, to_json, to_typed_json
from anabranch.model.instants import format_instant
from anabranch.model.values import Value

if TYPE_CHECKING:
    import pyarrow

# The parts of an answer that stand beside its rows; a column of a query that has one of these names must give way.
RESERVED = ("query", "number", "at", "op", "correction", "win_start", "win_end")

_INSTANTS = ("at", "win_start", "win_end")

# `json.dumps` would build this again for every row, which costs more than most rows.
_encode = json.JSONEncoder(ensure_ascii=False).encode


class AnswerParts(NamedTuple):
    """An answer without the engine: instants are UTC microseconds, values are those of the model."""

    query: str
    at: int
    op: str
    correction: str
    win_start: int
    win_end: int
    columns: tuple[str, ...]
    rows: list[AnswerRow]


def head(query: str, at: int, op: str, correction: str, win_start: int, win_end: int) -> dict[str, Json]:
    """Return the head of an answer, ready for JSON. A correction is named only where there is one."""
    return {
        "query": query,
        "at": format_instant(at),
        "op": op,
        **({"correction": correction} if correction else {}),
        "win_start": format_instant(win_start),
        "win_end": format_instant(win_end),
    }


def json_text(plain: Json) -> bytes:
    """Return readable JSON in UTF-8. Half a surrogate pair, which UTF-8 cannot hold, stays a JSON escape."""
    return _encode(plain).encode("utf-8", "backslashreplace")


class AnswerTexts:
    """The bytes of one query's answers, answer by answer. A row that the snapshot before had is not rendered again."""

    def __init__(self) -> None:
        self._columns: tuple[str, ...] = ()
        self._places: list[int | None] = []
        self._json: RenderedRows[str] = RenderedRows(self._json_rows)
        self._csv: RenderedRows[bytes] = RenderedRows(self._csv_rows)
        self._typed: RenderedRows[bytes] = RenderedRows(_typed_rows)

    def json_lines(self, answer: AnswerParts) -> bytes:
        """Return one line of JSON a row: the head of the answer and its `row`."""
        if answer.columns != self._columns:
            self._columns = answer.columns
            self._json = RenderedRows(self._json_rows)
        start = _encode(head(*answer[:6]))[:-1] + ', "row": '
        lines = start.join(["", *self._json.of(answer.rows, _may_stay(answer))])
        return lines.encode("utf-8", "backslashreplace")

    def _json_rows(self, rows: Iterable[AnswerRow]) -> list[str]:
        rows = list(rows)
        if not self._columns:
            return ["{}}\n"] * len(rows)
        cells = [_json_cells(column) for column in zip(*rows, strict=True)]
        names = (f"{_encode(name)}: ".replace("%", "%%") for name in self._columns)
        line = "{" + ", ".join(f"{name}%s" for name in names) + "}}\n"
        return list(map(line.__mod__, zip(*cells, strict=True)))

    def csv_lines(
        self,
        answer: AnswerParts,
        columns_of_all: Sequence[str] | None = None,
        several: bool = False,
        corrections: bool = False,
    ) -> bytes:
        """One line a row under `csv_header` of the same settings; a column that the query does not have stays empty."""
        start = [answer.query] if several else []
        start += [format_instant(answer.at), answer.op, *([answer.correction] if corrections else [])]
        start += [format_instant(answer.win_start), format_instant(answer.win_end)]
        place = {name: index for index, name in enumerate(answer.columns)}
        places = [place.get(name) for name in (answer.columns if columns_of_all is None else columns_of_all)]
        if places != self._places:
            self._places = places
            self._csv = RenderedRows(self._csv_rows)
        return _csv([start])[:-1].join([b"", *self._csv.of(answer.rows, _may_stay(answer))])

    def _csv_rows(self, rows: Iterable[AnswerRow]) -> list[bytes]:
        # Behind empty cells, of which the comma of the last stays: a cell that is empty and alone would be quoted.
        places = self._places
        cells = (["", "", *("" if index is None else csv_cell(row[index]) for index in places)] for row in rows)
        return [line[1:].encode("utf-8", "backslashreplace") for line in _csv_texts(cells)]

    def typed(self, answer: AnswerParts) -> bytes:
        """Return the whole answer without loss: a line of JSON for its head, and one for each row."""
        first = {
            "query": answer.query,
            "at": int(answer.at),
            "op": answer.op,
            "correction": answer.correction,
            "win_start": int(answer.win_start),
            "win_end": int(answer.win_end),
            "columns": list(answer.columns),
        }
        return b"\n".join([_encode_typed(first).encode(), *self._typed.of(answer.rows, _may_stay(answer))])


def _json_cells(values: Sequence[Value]) -> Iterable[str]:
    """Return the JSON of values, many of which have one kind."""
    kinds = set(map(type, values))
    if kinds == {str}:
        return map(encode_basestring, values)  # type: ignore[arg-type]
    if kinds == {int} or (kinds == {float} and all(map(math.isfinite, values))):  # type: ignore[arg-type]
        return map(repr, values)
    return [_encode(to_json(value)) for value in values]


def _may_stay(answer: AnswerParts) -> bool:
    """Return whether the next answer may have the same rows. A correction is no part of this order."""
    return answer.op == "snapshot" and not answer.correction


def json_lines(answer: AnswerParts) -> bytes:
    """Return the JSON lines of one answer."""
    return AnswerTexts().json_lines(answer)


# --- CSV --------------------------------------------------------------------------------------------------------------


def csv_cell(value: Value) -> str:
    """A value in CSV: null is empty, lists, maps and elements are JSON."""
    plain = to_json(value)
    if plain is None:
        return ""
    return plain if isinstance(plain, str) else _encode(plain)


def csv_columns(columns: Iterable[Sequence[str]]) -> list[str]:
    """Return the columns of a CSV that several queries share: those of all of them, in order, each once."""
    return list(dict.fromkeys(name for names in columns for name in names))


def csv_header(columns_of_all: Sequence[str], several: bool = False, corrections: bool = False) -> bytes:
    """Return the first line. `several` adds the query's name, `corrections` whether a row was retracted."""
    names = ["query"] if several else []
    names += ["at", "op", *(["correction"] if corrections else []), "win_start", "win_end", *columns_of_all]
    return _csv([names])


def csv_lines(
    answer: AnswerParts,
    columns_of_all: Sequence[str] | None = None,
    several: bool = False,
    corrections: bool = False,
) -> bytes:
    """Return the CSV lines of one answer."""
    return AnswerTexts().csv_lines(answer, columns_of_all, several, corrections)


def _csv(rows: Iterable[Sequence[str]]) -> bytes:
    return "".join(_csv_texts(rows)).encode("utf-8", "backslashreplace")


def _csv_texts(rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the text of each row, with the end of its line."""
    texts = _Texts()
    csv.writer(texts, lineterminator="\n").writerows(rows)
    return texts


class _Texts(list[str]):
    """A list to which a writer of the csv module writes, once for each row."""

    write = list.append


# --- typed ------------------------------------------------------------------------------------------------------------

_encode_typed = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


def _typed_rows(rows: Iterable[AnswerRow]) -> list[bytes]:
    return [_encode_typed([to_typed_json(value) for value in row]).encode() for row in rows]


def to_typed(answer: AnswerParts) -> bytes:
    """Return one answer without loss."""
    return AnswerTexts().typed(answer)


def from_typed(data: bytes) -> AnswerParts:
    """Return the answer that `to_typed` wrote."""
    return TypedAnswers().read(data)


class TypedAnswers:
    """Reads one query's typed answers, one after the other. A row that the answer before had is the same tuple again.

    State: the rows of the last answer, by their text.
    """

    def __init__(self) -> None:
        self._rows: dict[bytes, AnswerRow] = {}

    def read(self, data: bytes, most_rows: int | None = None) -> AnswerParts:
        """Return the answer, with all of its rows or the first ones."""
        first, *lines = data.split(b"\n")
        lines = lines[:most_rows]
        known = self._rows
        rows = {line: known.get(line) or _typed_row(line) for line in lines}
        whole = json.loads(first)
        self._rows = rows
        return AnswerParts(
            whole["query"],
            whole["at"],
            whole["op"],
            whole["correction"],
            whole["win_start"],
            whole["win_end"],
            tuple(whole["columns"]),
            [rows[line] for line in lines],
        )


def _typed_row(line: bytes) -> AnswerRow:
    return tuple([from_typed_json(value) for value in json.loads(line)])


def beside(columns: Sequence[str], reserved: Sequence[str] = RESERVED) -> list[str]:
    """Return the columns' names for a table that also has the reserved ones: a name that clashes gets an underscore.

    Case does not distinguish names: Spark and DuckDB would see one column twice.
    """
    taken = {name.casefold() for name in reserved}
    given = {name.casefold() for name in columns}
    names = []
    for name in columns:
        if name.casefold() in taken:
            name += "_"
            while name.casefold() in taken or name.casefold() in given:
                name += "_"
            taken.add(name.casefold())
        names.append(name)
    return names


def column(values: Sequence[Value]) -> pyarrow.Array:
    """Values as an Arrow array; those without a common Arrow type become Cypher text."""
    import pyarrow

    try:
        return pyarrow.array([to_json(value) for value in values])
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, OverflowError):
        return pyarrow.array([None if value is None else cypher_text(value) for value in values])


def answers_table(columns: Sequence[str], answers: Iterable[AnswerParts], corrections: bool = False) -> pyarrow.Table:
    """Return every row of the answers behind its instant and the ends of its window, which are timestamps in UTC.

    With `corrections`, each row is also marked as original (empty), retracted or corrected.
    """
    import pyarrow

    told = [(one, row) for one in answers for row in one.rows]
    instants = pyarrow.timestamp("us", "UTC")
    heads = {name: pyarrow.array([getattr(one, name) for one, _ in told], instants) for name in _INSTANTS}
    if corrections:
        heads["correction"] = pyarrow.array([one.correction for one, _ in told], pyarrow.string())
    arrays = [column([row[place] for _, row in told]) for place in range(len(columns))]
    return pyarrow.table([*heads.values(), *arrays], names=[*heads, *beside(columns, tuple(heads))])
