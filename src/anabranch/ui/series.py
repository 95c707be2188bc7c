"""Answers as series over time: one line per ticked column, or one per row that has a name.

Invariant: the points of a series depend on the results only, so they are the same after a reload.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from anabranch.ui.values import is_number, micros, plain

MOST_LINES = 12
_MOST_VALUES = 200_000

FOLDS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "mean": fmean,
    "min": min,
    "max": max,
    "sum": sum,
    "rows": lambda values: float(len(values)),
}


@dataclass(frozen=True, slots=True)
class SeriesChoice:
    """The drawn series: these columns, by the column `name`, or all rows folded by `fold` if `name` is empty."""

    columns: tuple[str, ...] = ()
    name: str = ""
    fold: str = "mean"


SeriesValues = dict[str, dict[str, float]]
"""What a result says: the value of each drawn column by the name of a row, or by nothing for all rows together."""
Points = dict[str, list[tuple[float, float | None]]]
"""The points of each line, milliseconds and value; None is a break: the row was absent."""


def values(result: Mapping[str, Any], drawn: SeriesChoice, prefixes: Mapping[str, str]) -> SeriesValues:
    columns: list[str] = list(result["columns"])
    found: SeriesValues = {}
    for column in drawn.columns:
        if column not in columns:
            continue
        place = columns.index(column)
        if drawn.name in columns and drawn.name != column:
            by = columns.index(drawn.name)
            for row in result["rows"]:
                if is_number(row[place]):
                    found.setdefault(plain(row[by], prefixes), {})[column] = row[place]
        elif held := [row[place] for row in result["rows"] if is_number(row[place])]:
            found.setdefault("", {})[column] = FOLDS[drawn.fold](held)
    return found


class Lines:
    """The drawn lines: those of rows of the newest answer, a dozen at most. A drawn row stays while it is in the
    answer; a free place goes to the row whose first drawn value is the largest.

    State: the values of the last results, at most `_MOST_VALUES`.
    """

    def __init__(self, drawn: SeriesChoice) -> None:
        self.drawn = drawn
        self.left_out = 0
        self.drawn_anew = False
        self._chosen: list[str] = []
        self._past: deque[tuple[float, SeriesValues]] = deque()
        self._held = 0

    @property
    def names(self) -> list[str]:
        return [self._name(row, column) for row in self._chosen for column in self.drawn.columns]

    def _name(self, row: str, column: str) -> str:
        drawn = self.drawn
        if not row:
            return column if drawn.fold == "mean" else f"{drawn.fold} of {column}"
        return row if len(drawn.columns) == 1 else f"{row} · {column}"

    def add(self, results: Sequence[Mapping[str, Any]], prefixes: Mapping[str, str]) -> Points:
        """Return the points that these results add, by line. `drawn_anew` means that the set of lines has changed and
        these are all their points: another row is drawn, or time went back because the stream restarted."""
        before, self.drawn_anew = list(self._chosen), False
        new: list[tuple[float, SeriesValues]] = []
        for result in results:
            at, said = micros(result["at"]) / 1000, values(result, self.drawn, prefixes)
            if self._past and self._past[-1][0] > at:
                self._past.clear()
                self._chosen, self._held, self.drawn_anew, new = [], 0, True, []
            self._past.append((at, said))
            self._held += len(said) + 1
            while self._held > _MOST_VALUES and len(self._past) > 1:
                self._held -= len(self._past.popleft()[1]) + 1
            new.append((at, said))
            self._choose(said)
        self.drawn_anew |= before != self._chosen
        known = len(self._past) - len(new)
        before_new = {} if self.drawn_anew or known < 1 else self._past[known - 1][1]
        return self._points(self._past if self.drawn_anew else new, before_new)

    def _choose(self, said: SeriesValues) -> None:
        if not said:
            return  # drawn lines stay, with a gap
        most = max(1, MOST_LINES // max(1, len(self.drawn.columns)))
        kept = [row for row in self._chosen if row in said]
        others = sorted((row for row in said if row not in kept), key=lambda row: -next(iter(said[row].values())))
        self._chosen = [*kept, *others[: most - len(kept)]]
        self.left_out = len(said) - len(self._chosen)

    def _points(self, past: Iterable[tuple[float, SeriesValues]], before: SeriesValues) -> Points:
        found: Points = {}
        for row in self._chosen:
            for column in self.drawn.columns:
                line: list[tuple[float, float | None]] = []
                there = column in before.get(row, {})
                for at, said in past:
                    value = said.get(row, {}).get(column)
                    if value is not None or there:
                        line.append((at, value))
                    there = value is not None
                if line:
                    found[self._name(row, column)] = line
        return found
