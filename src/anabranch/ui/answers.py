"""The rows of the latest answer, live. New rows are green, and removed rows are struck through for a moment.

A query that emits only rows that enter or leave gets a log: the newest rows first, each with its instant.

State: the rows that the browser has, by key. Work per answer: the rows of the answer.

Invariant: only rows that the browser does not have are sent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from nicegui.element import Element

from anabranch.ui.components import LiveTable
from anabranch.ui.desk import Desk
from anabranch.ui.pieces import argument, button, card, say, shown, tag, words
from anabranch.ui.rows import MOST_ROWS, ShownRows
from anabranch.ui.values import CellText, cell, clock, fractional_columns, micros, numeric_columns

AT = "at"


class Answers:
    def __init__(
        self,
        desk: Desk,
        on_tick: Callable[[str], None],
        on_row: Callable[[Mapping[str, Any], str, bool], Awaitable[None]],
        on_why_not: Callable[[], None],
    ) -> None:
        self._desk = desk
        self._on_tick = on_tick
        self._on_row = on_row
        self._on_why_not = on_why_not
        self.clear()

    def build(self) -> Element:
        with card("Answer") as (outer, head):
            with head:
                self._when = words("span", "", "ab-quiet")
                tag("div", "ab-grow")
                button(
                    "Why not?",
                    lambda: self._on_why_not(),
                    icon="ask",
                    classes="small",
                    hint="Ask why a row is not there",
                )
            self._table = LiveTable(
                "rows of the answer",
                "",
                clickable=True,
                steady=True,
                hint="Click for the reason why this row is there",
                left_hint="Click for the reason why this row left",
            )
            self._table.on("tick", lambda event: self._on_tick(argument(event)))
            self._table.on("choose", lambda event: self._chosen(argument(event)))
            self._warning = words("div", "", "ab-note ab-warning ab-hidden", role="status", aria_label="warnings")
            self._note = words("div", "", "ab-note ab-hidden")
        return outer

    def clear(self) -> None:
        self._rows = ShownRows()
        self._columns: tuple[str, ...] = ()
        self._numeric: frozenset[str] = frozenset()
        self._fractional: frozenset[str] = frozenset()
        self.last: Mapping[str, Any] | None = None

    def reset(self, empty: str) -> None:
        self.clear()
        self._table.columns(())
        self._table.empty(empty)
        self._table.patch((), {}, still=True)
        say(self._when, "")
        self._tell("")
        self.warn(())

    def explain_emptiness(self, words_: str) -> None:
        self._table.empty(words_)

    def warn(self, warnings: Sequence[str]) -> None:
        """Show the last warning of the query, with the number of earlier ones."""
        before = f" ({len(warnings) - 1} before)" if len(warnings) > 1 else ""
        _say_if(self._warning, f"Warning{before}: {warnings[-1]}" if warnings else "")

    @property
    def columns(self) -> tuple[str, ...]:
        return self._columns

    def seen(self) -> dict[str, list[Any]]:
        """Return the values of each column that the page shows, or has just shown."""
        rows = [row for row, _ in (*self._rows.rows.values(), *self._rows.gone.values())]
        return {name: [row[place] for row in rows] for place, name in enumerate(self._columns)}

    def ticked(self, names: Sequence[str]) -> None:
        self._table.ticked(names)

    def show(self, results: Sequence[Mapping[str, Any]], *, still: bool = False) -> None:
        """Take further results; the newest is shown."""
        log = results[-1]["op"] != "snapshot"
        for result in results if log else results[-1:]:
            self._take(result, log, still)

    def show_none(self, at: int | None) -> None:
        """Show that the answer has no rows at this instant, since no result says so; ignored if a later result
        exists."""
        if self.last is None or at is None or at <= micros(self.last["at"]):
            return
        if self._rows.rows:
            self._table.patch(self._rows.show((), "")[0], {})
            self._tell("")
        say(self._when, f"snapshot at {clock(at)} · no rows")

    def _take(self, result: Mapping[str, Any], log: bool, still: bool) -> None:
        columns = tuple(result["columns"])
        rows = [tuple(row) for row in result["rows"][:MOST_ROWS]]
        if columns != self._columns:
            self._rows = ShownRows()
            self._columns, self._numeric, self._fractional = columns, frozenset(), frozenset()
        self._numeric |= numeric_columns(columns, rows)
        self._fractional |= fractional_columns(columns, rows)
        order, fresh = self._rows.put_first(rows, result["at"]) if log else self._rows.show(rows, result["at"])
        self.last = result
        if log and not rows:
            return
        prefixes = self._desk.prefixes()
        self._table.columns(
            [
                *([_column(AT, False, False)] if log else []),
                *(_column(one, one in self._numeric, True) for one in columns),
            ]
        )
        cells: dict[int, Sequence[CellText]] = {}
        for key in fresh:
            row, at = self._rows.rows[key]
            said = (
                cell(value, prefixes, fractional=name in self._fractional)
                for name, value in zip(columns, row, strict=True)
            )
            cells[key] = [*([clock(at, day=False)] if log else []), *said]
        self._table.empty("No row at this instant. Rows appear here as soon as something matches.")
        self._table.patch(order, cells, still=still)
        self._head(result, log, len(order))

    def _head(self, result: Mapping[str, Any], log: bool, shown: int) -> None:
        window = (
            f", window {clock(result['win_start'], day=False)} – {clock(result['win_end'], day=False)}"
            if result.get("win_start")
            else ""
        )
        count = result["total"]
        rows = f"{count:,} row{'' if count == 1 else 's'}"
        correction = f", {result['correction']}" if result.get("correction") else ""
        say(self._when, f"{result['op']} at {clock(result['at'])}{window} · {rows}{correction}")
        if log:
            self._tell(f"The newest {shown} of all rows told, newest first." if shown >= MOST_ROWS else "")
        else:
            self._tell(f"The first {shown} of {count:,} rows." if count > shown else "")

    def _tell(self, text: str) -> None:
        _say_if(self._note, text)

    async def _chosen(self, key: int) -> None:
        """Handle a click on a row: a row of the answer, or one that has left since."""
        left = key not in self._rows.rows
        found = self._rows.gone.get(key) if left else self._rows.rows[key]
        if found is not None:
            await self._on_row(dict(zip(self._columns, found[0], strict=True)), found[1], left)


def _say_if(where: Element, text: str) -> None:
    """Show a text, or hide its element if the text is empty."""
    say(where, text)
    shown(where, bool(text))


def _column(name: str, numeric: bool, pickable: bool) -> dict[str, Any]:
    return {"name": name, "label": name, "numeric": numeric, "pickable": numeric and pickable}
