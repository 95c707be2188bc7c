"""Answers as bytes: JSON lines, CSV lines, and typed JSON from which the whole answer comes back; and as Arrow tables.

An answer is taken as its plain parts (`AnswerParts`).

Invariant: `from_typed(to_typed(parts))` are the parts again; the lines are to the byte those that
`anabranch run --output json|csv` prints. A column of a table has one type; without one in common its values are text.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

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
    rows: list[tuple[Value, ...]]


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


def json_lines(answer: AnswerParts) -> bytes:
    """Return one line of JSON a row: the head of the answer and its `row`."""
    start = json_text(head(*answer[:6]))[:-1] + b', "row": '
    lines = []
    for row in answer.rows:
        plain = {name: to_json(value) for name, value in zip(answer.columns, row, strict=True)}
        lines.append(start + json_text(plain) + b"}\n")
    return b"".join(lines)


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
    """One line a row under `csv_header` of the same settings; a column that the query does not have stays empty."""
    start = [answer.query] if several else []
    start += [format_instant(answer.at), answer.op, *([answer.correction] if corrections else [])]
    start += [format_instant(answer.win_start), format_instant(answer.win_end)]
    place = {name: index for index, name in enumerate(answer.columns)}
    places = [place.get(name) for name in (answer.columns if columns_of_all is None else columns_of_all)]
    return _csv([*start, *("" if index is None else csv_cell(row[index]) for index in places)] for row in answer.rows)


def _csv(rows: Iterable[Sequence[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode("utf-8", "backslashreplace")


# --- typed ------------------------------------------------------------------------------------------------------------


def to_typed(answer: AnswerParts) -> bytes:
    """Return the whole answer as one line of JSON, without loss."""
    whole = {
        "query": answer.query,
        "at": int(answer.at),
        "op": answer.op,
        "correction": answer.correction,
        "win_start": int(answer.win_start),
        "win_end": int(answer.win_end),
        "columns": list(answer.columns),
        "rows": [[to_typed_json(value) for value in row] for row in answer.rows],
    }
    return json.dumps(whole, allow_nan=False, separators=(",", ":")).encode()


def from_typed(data: bytes) -> AnswerParts:
    """Return the answer that `to_typed` wrote."""
    whole = json.loads(data)
    return AnswerParts(
        whole["query"],
        whole["at"],
        whole["op"],
        whole["correction"],
        whole["win_start"],
        whole["win_end"],
        tuple(whole["columns"]),
        [tuple(from_typed_json(value) for value in row) for row in whole["rows"]],
    )


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
