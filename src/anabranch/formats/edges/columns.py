"""The columns of a table that hold the ends of edges and their times: found by their names, or given by the user.

Invariant: a table whose columns are not found is refused with a list of its columns.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass

from anabranch.errors import StreamError
from anabranch.formats.edges.times import TimeReader

SOURCES = ("source", "from", "src", "u")
TARGETS = ("target", "to", "dst", "v")
TIMES = ("time", "at", "ts", "timestamp")
_LEFT, _RIGHT = (*SOURCES, "left", "a"), (*TARGETS, "right", "b")
_DELIMITERS = (",", "\t", ";", "|", " ")


@dataclass(frozen=True, slots=True)
class EdgeColumns:
    """The places of the columns, from 0."""

    source: int
    target: int
    time: int | None


@dataclass(frozen=True, slots=True)
class EdgeLayout:
    """The layout of a CSV file's lines, found from its first line, which is the header or an edge."""

    delimiter: str
    width: int
    has_header: bool
    columns: EdgeColumns


def layout_of(line: str, asked: Sequence[str], times: TimeReader, needs_time: bool) -> EdgeLayout:
    delimiter = delimiter_of(line)
    cells = [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter), [])]
    if asked and not all(one.isdecimal() for one in asked):
        return EdgeLayout(delimiter, len(cells), True, named_columns(cells, asked, needs_time))
    if not asked and _is_header(cells):
        return EdgeLayout(delimiter, len(cells), True, named_columns(cells, (), needs_time))
    columns = _numbered(cells, asked, needs_time)
    if columns.time is None or times.is_time(cells[columns.time]):
        return EdgeLayout(delimiter, len(cells), False, columns)
    if asked:
        return EdgeLayout(delimiter, len(cells), True, columns)
    raise _not_found(cells)


def delimiter_of(line: str) -> str:
    return next((one for one in _DELIMITERS if one in line), ",")


def named_columns(names: Sequence[str], asked: Sequence[str], needs_time: bool) -> EdgeColumns:
    """The columns among those that a table has."""
    if asked:
        missing = [one for one in asked if one not in names]
        if missing or len(asked) < 2 + needs_time:
            raise _not_found(names, missing)
        places = [names.index(one) for one in asked]
        return EdgeColumns(places[0], places[1], places[2] if len(places) > 2 else None)
    source, target, time = (_known(names, some) for some in (SOURCES, TARGETS, TIMES))
    if source is None or target is None or (needs_time and time is None):
        raise _not_found(names)
    return EdgeColumns(source, target, time)


def is_pair_header(cells: Sequence[str]) -> bool:
    return len(cells) == 2 and _known(cells[:1], _LEFT) == 0 and _known(cells[1:], _RIGHT) == 0


def _is_header(cells: Sequence[str]) -> bool:
    return _known(cells, SOURCES) is not None and _known(cells, TARGETS) is not None


def _known(names: Sequence[str], some: Sequence[str]) -> int | None:
    lower = [name.lower() for name in names]
    return next((lower.index(one) for one in some if one in lower), None)


def _numbered(cells: Sequence[str], asked: Sequence[str], needs_time: bool) -> EdgeColumns:
    places = [int(one) - 1 for one in asked] or list(range(min(3, len(cells))))
    wrong = [str(place + 1) for place in places if not 0 <= place < len(cells)]
    if wrong or len(places) < 2 + needs_time:
        raise _not_found(cells, [f"number {one}" for one in wrong])
    return EdgeColumns(places[0], places[1], places[2] if len(places) > 2 and needs_time else None)


def _not_found(names: Sequence[str], missing: Sequence[str] = ()) -> StreamError:
    what = f"no column {', '.join(missing)}" if missing else "no columns for source, target and time"
    there = ", ".join(names) or "none"
    example = ",".join(names[:3]) if len(names) >= 3 else "source,target,time"
    return StreamError(f"{what}; there are {there}\nhint: say which they are: --columns {example}, or --columns 1,2,3")
