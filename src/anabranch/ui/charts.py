"""Charts of numeric columns over time: columns are ticked in the table's head, and stay ticked after a reload.

State: the ticked columns and the way they are drawn, stored by the browser per query.

Invariant: the lines show the results that the server keeps; nothing is drawn twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nicegui.element import Element

from anabranch.ui.components import ChoiceList, HistoryChart
from anabranch.ui.desk import Desk
from anabranch.ui.pieces import argument, button, card, say, shown, tag, words
from anabranch.ui.presets import preset_of
from anabranch.ui.series import FOLDS, MOST_LINES, Lines, SeriesChoice

_ALL = "all rows"


class Charts:
    def __init__(self, desk: Desk, on_redraw: Callable[[], None]) -> None:
        self._desk = desk
        self._on_redraw = on_redraw
        self._lines = Lines(SeriesChoice())
        self._columns: tuple[str, ...] = ()

    def build(self) -> Element:
        with card("Over time") as (outer, head):
            with head:
                self._what = words("span", "", "ab-quiet")
                tag("div", "ab-grow")
                self._tools = tag("div", "ab-row ab-hidden")
                with self._tools:
                    self._by = ChoiceList("line for", {"": _ALL})
                    self._by.classes("small").on("pick", lambda event: self._set(name=argument(event)))
                    self._fold = ChoiceList("as", {name: name for name in FOLDS}, "mean")
                    self._fold.classes("small").on("pick", lambda event: self._set(fold=argument(event)))
                    button(
                        "",
                        lambda: self._chart.run_method("png"),
                        icon="image",
                        classes="small",
                        label="Save the chart as PNG",
                    )
                    button(
                        "",
                        lambda: self._chart.run_method("csv"),
                        icon="sheet",
                        classes="small",
                        label="Save the series as CSV",
                    )
            with tag("div", "ab-chart-box ab-hidden") as self._box:
                self._chart = HistoryChart("series over time")
            self._empty = tag("div", "ab-empty")
            with self._empty:
                words(
                    "p", "Tick a numeric column in the head of the table to draw it over time. Several can be ticked."
                )
        return outer

    # --- what is drawn ------------------------------------------------------------------------------------------

    @property
    def _key(self) -> str:
        return f"chart:{self._desk.session_name}/{self._desk.query_name}"

    @property
    def ticked(self) -> tuple[str, ...]:
        return self._lines.drawn.columns

    def reset(self) -> None:
        """Switch to another query: restore its ticked columns, or else those that its example draws."""
        held = self._desk.recall(self._key) or self._offered()
        columns = tuple(one for one in held.get("columns", ()) if isinstance(one, str))
        fold = held.get("fold", "mean")
        self._lines = Lines(SeriesChoice(columns, str(held.get("name", "")), fold if fold in FOLDS else "mean"))
        self._columns = ()
        self._chart.named(self._desk.query_name or "series")
        self._chart.reset((), {})
        self._show_tools()

    def _offered(self) -> Mapping[str, Any]:
        preset = preset_of(self._desk.session_name, self._desk.query_text())
        return {} if preset is None else {"columns": preset.draw, "name": preset.each}

    def tick(self, column: str) -> None:
        ticked = self.ticked
        self._set(columns=tuple(one for one in ticked if one != column) if column in ticked else (*ticked, column))

    def _set(self, **changes: Any) -> None:
        old = self._lines.drawn
        drawn = SeriesChoice(
            changes.get("columns", old.columns), changes.get("name", old.name), changes.get("fold", old.fold)
        )
        self._desk.remember(self._key, {"columns": list(drawn.columns), "name": drawn.name, "fold": drawn.fold})
        self._lines = Lines(drawn)
        self._chart.reset((), {})
        self._show_tools()
        self._on_redraw()

    def _show_tools(self) -> None:
        drawn = self._lines.drawn
        any_ = bool(drawn.columns)
        shown(self._tools, any_)
        shown(self._box, any_)
        shown(self._empty, not any_)
        names = {one: f"each {one}" for one in self._columns if one not in drawn.columns}
        self._by.offer({"": _ALL} | names | ({drawn.name: f"each {drawn.name}"} if drawn.name else {}), drawn.name)
        self._fold.offer({name: name for name in FOLDS}, drawn.fold)
        shown(self._fold, not drawn.name)
        left = self._lines.left_out
        say(self._what, f"{MOST_LINES} lines at most; {left:,} rows of the newest answer are left out" if left else "")

    # --- results ------------------------------------------------------------------------------------------------

    def add(self, results: Sequence[Mapping[str, Any]], *, whole: bool = False) -> None:
        """Draw further results, or redraw all of them."""
        if results and tuple(results[-1]["columns"]) != self._columns:
            self._columns = tuple(results[-1]["columns"])
            self._show_tools()
        if not self._lines.drawn.columns:
            return
        before = self._lines.left_out
        added = self._lines.add(results, self._desk.prefixes())
        if whole or self._lines.drawn_anew:
            self._chart.reset(self._lines.names, added)
        elif added:
            self._chart.append(added)
        if self._lines.left_out != before:
            self._show_tools()
