"""The execution of a query: its operators with their current counts, and the plan before and after the rules.

Invariant: counts are sent only when they changed, and only while they are visible.
"""

from __future__ import annotations

import re
from typing import Any

from nicegui import ui
from nicegui.element import Element

from anabranch.insight.shapes import OperatorGraph, OperatorLoad
from anabranch.ui.components import DrawingView, PlanGraph
from anabranch.ui.desk import Desk
from anabranch.ui.drawing import PARTS, drawing
from anabranch.ui.pieces import arrows, card, shown, tag, words

_DRAWINGS = {
    "before": ("Before the rules", "as the text says it"),
    "after": ("After the rules", "as it runs"),
    "dgraph": ("Who knows what", "patterns and the sources that answer them"),
}
_TITLE = 48  # pixels that the title takes, which the page says by itself
_NOTHING = "No query is running yet. Start one, and its operators appear here with what they do."


def legend(kinds: dict[str, str]) -> None:
    with tag("div", "ab-legend"):
        for kind, name in kinds.items():
            with tag("span"):
                tag("i", kind)
                words("span", name)


class PlanPanel:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._sent: dict[int, tuple[float, ...]] = {}
        self._drawn_for: tuple[str, str, str] | None = None
        self._explained: str | None = None
        self._view = "operators"

    def build(self) -> Element:
        with card("Plan") as (outer, head):
            with head:
                tag("div", "ab-grow")
                self._tabs = {}
                with tag("div", "ab-tabs", role="tablist", aria_label="views of the plan") as tabs:
                    arrows(tabs, "tab")
                    for name, title in (
                        ("operators", "Operators, live"),
                        ("rules", "Before and after the rules"),
                        ("text", "As text"),
                    ):
                        one = words("button", title, "ab-tab", role="tab", type="button")
                        one.on("click", lambda _, to=name: self._look(to))
                        self._tabs[name] = one
            self._graph = PlanGraph("operators of the query", _NOTHING)
            self._drawing = tag("div", "ab-drawings", tabindex="0")
            self._text = tag("pre", "ab-explained", tabindex="0")
            self._empty = tag("div", "ab-empty ab-hidden")
            with self._empty:
                words("p", "Write a query and start it to see how it is planned.")
            with tag("div", "ab-card-foot"):
                legend(PARTS)
        self._mark()
        return outer

    def _mark(self) -> None:
        for name, one in self._tabs.items():
            one.props["aria-selected"] = "true" if name == self._view else "false"
            one.update()
        shown(self._graph, self._view == "operators")
        shown(self._drawing, self._view == "rules")
        shown(self._text, self._view == "text")

    async def _look(self, view: str) -> None:
        self._view = view
        self._mark()
        await self.tick()

    def reset(self) -> None:
        self._drawn_for = self._explained = None
        self._sent = {}

    async def tick(self) -> None:
        session, query = self._desk.session, self._desk.query_name
        if session is None or not query:
            self._graph.draw({}, _NOTHING)
            self._drawing.clear()
            self._text.clear()
            shown(self._empty, self._view != "operators")
            return
        shown(self._empty, False)
        if self._view != "operators":
            await self._explain()
            return
        text = self._desk.query_text()
        if self._drawn_for != (session.name, query, text):
            graph: OperatorGraph | None = await self._desk.ask(lambda: session.operators(query), quiet=True)
            if graph is None:
                self._graph.draw({}, "The operators of this query cannot be shown yet.")
                return
            self._drawn_for = (session.name, query, text)
            self._sent = {}
            self._graph.draw(drawing(graph, counted=True))
        loads = await self._desk.ask(lambda: session.load(query), quiet=True)
        changed = {}
        for one in loads or ():
            now = _counts(one)
            if self._sent.get(one.id) != now:
                self._sent[one.id] = changed[one.id] = now
        if changed:
            self._graph.load(changed)

    async def _explain(self) -> None:
        session, text = self._desk.session, self._desk.query_text()
        if session is None or not text or self._explained == text:
            return
        self._explained = text
        found: dict[str, Any] | None = await self._desk.ask(lambda: session.explain(text))
        self._drawing.clear()
        self._text.clear()
        if found is None:
            return
        with self._drawing:
            for name, (title, meaning) in _DRAWINGS.items():
                svg = found["drawings"].get(name)
                if svg:
                    self._figure(title, meaning, _themed(svg))
        with self._text:
            ui.label(str(found.get("text", ""))).style("white-space: pre")

    def _figure(self, title: str, meaning: str, svg: str) -> None:
        with tag("figure"):
            with tag("figcaption"):
                words("b", title).style("font-weight: 500")
                words("span", f" {meaning}", "ab-quiet")
            DrawingView(f"{title} {meaning}", svg)


def _themed(svg: str) -> str:
    """Return the drawing without its own colours: the page defines colours of the same names."""
    svg = re.sub(r"@media \(prefers-color-scheme: dark\) \{\s*svg \{[^}]*\}\s*\}", "", svg)
    svg = re.sub(r"svg \{[^}]*\}", "", svg, count=1)
    svg = re.sub(r'<text [^>]*class="title"[^>]*>[^<]*</text>', "", svg)
    size = re.search(r'viewBox="0 0 (\d+) (\d+)" width="\d+" height="\d+"', svg)
    if size is None:
        return svg
    width, height = int(size[1]), int(size[2]) - _TITLE
    return svg.replace(size[0], f'viewBox="0 {_TITLE} {width} {height}" width="{width}" height="{height}"', 1)


def _counts(one: OperatorLoad) -> tuple[float, ...]:
    """Return rows in, rows out, rows held, milliseconds per call."""
    return one.rows_in, one.rows_out, one.held_rows, round(1000 * one.seconds / one.calls, 3) if one.calls else 0.0
