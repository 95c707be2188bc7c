"""Answers as series over time: one line for a ticked column, or one for each row that has a name.

Invariant: the points of a series depend on the results alone, so that they are the same after a reload.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from anabranch.ui.values import is_number, micros, plain

MOST_LINES = 12
_MOST_COUNTED = 10_000

FOLDS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "mean": fmean,
    "min": min,
    "max": max,
    "sum": sum,
    "rows": lambda values: float(len(values)),
}


@dataclass(frozen=True, slots=True)
class Drawn:
    """What is drawn: these columns, by the column `name`, or all rows folded by `fold` if it is empty."""

    columns: tuple[str, ...] = ()
    name: str = ""
    fold: str = "mean"


def points(result: Mapping[str, Any], drawn: Drawn, prefixes: Mapping[str, str]) -> dict[str, tuple[float, float]]:
    """The point that a result adds to each line: milliseconds and value."""
    columns: list[str] = list(result["columns"])
    at = micros(result["at"]) / 1000
    found: dict[str, tuple[float, float]] = {}
    for column in drawn.columns:
        if column not in columns:
            continue
        place = columns.index(column)
        if drawn.name in columns and drawn.name != column:
            by = columns.index(drawn.name)
            for row in result["rows"]:
                if is_number(row[place]):
                    label = plain(row[by], prefixes)
                    found[label if len(drawn.columns) == 1 else f"{label} · {column}"] = (at, row[place])
        else:
            values = [row[place] for row in result["rows"] if is_number(row[place])]
            if values:
                found[column if drawn.fold == "mean" else f"{drawn.fold} of {column}"] = (at, FOLDS[drawn.fold](values))
    return found


class Lines:
    """Which lines there are: the first dozen by name; more would not be told apart."""

    def __init__(self, drawn: Drawn) -> None:
        self.drawn = drawn
        self.names: list[str] = []
        self.left_out = 0
        self.begun_anew = False
        self._refused: set[str] = set()
        self._at = 0

    def add(
        self, results: Sequence[Mapping[str, Any]], prefixes: Mapping[str, str]
    ) -> dict[str, list[tuple[float, float]]]:
        """The points of these results by line. Where time goes back the stream has begun anew, and so do the lines:
        `begun_anew` says that what was drawn before is no longer part of them."""
        added: dict[str, list[tuple[float, float]]] = {}
        self.begun_anew = False
        for result in results:
            at = micros(result["at"])
            if self._at > at:
                self.begun_anew, self.names, self.left_out, added = True, [], 0, {}
                self._refused.clear()
            self._at = at
            for name, point in points(result, self.drawn, prefixes).items():
                if name not in self.names:
                    if len(self.names) >= MOST_LINES:
                        if self.left_out < _MOST_COUNTED:
                            self._refused.add(name)
                            self.left_out = len(self._refused)
                        continue
                    self.names.append(name)
                added.setdefault(name, []).append(point)
        return added
