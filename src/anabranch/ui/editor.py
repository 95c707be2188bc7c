"""The editor of the query: its text is checked a moment after the last key; errors are underlined and explained below.

Invariant: the editor never changes the text by itself; only a preset and the choice of another query do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal

from nicegui import ui
from nicegui.element import Element

from anabranch.ui import languages
from anabranch.ui.desk import Desk
from anabranch.ui.pieces import arrows, card, focused_menu, picture, raw, say, shown, tag, words
from anabranch.ui.presets import Preset, available

PAUSE = 0.35  # seconds without a key before a text is checked
_MOST_SHOWN = 10


class Editor:
    def __init__(
        self, desk: Desk, on_preset: Callable[[Preset], Awaitable[None]], on_run: Callable[[], Awaitable[None]]
    ) -> None:
        self._desk = desk
        self._on_preset = on_preset
        self._on_run = on_run
        self._checking: asyncio.Task[None] | None = None
        self._shown_for: tuple[str, str] | None = None
        self.wrong = False

    def build(self) -> Element:
        with card("Query", "ab-query") as (outer, head):
            with head:
                self._language = words("span", "", "ab-quiet")
                tag("div", "ab-grow")
                self._presets()
            with tag("div", "ab-editor"):
                self._code = (
                    ui.codemirror("", on_change=self._changed, line_wrapping=False, indent="  ", theme="vscodeLight")
                    .classes("ab-code")
                    .props('aria-label="query text"')
                )
                self._code.map_key("Mod-Enter", lambda _: self._on_run())
            words("div", "Ctrl+Enter starts it; Esc, then Tab leaves the editor", "ab-keys")
            self._list = tag(
                "div", "ab-diagnostics ab-hidden", role="status", aria_live="polite", aria_label="errors of the query"
            )
        self.dark(bool(self._desk.recall("dark")))
        return outer

    def _presets(self) -> None:
        opener = tag("button", "ab-button small", type="button", aria_haspopup="menu")
        with opener:
            raw(picture("book"))
            words("span", "Examples")
            with (
                ui.menu().props('anchor="bottom right" self="top right"') as menu,
                tag("div", "ab-presets", role="menu", aria_label="examples") as entries,
            ):
                focused_menu(menu)
                arrows(entries, "menuitem")
                before = None
                for preset in available():
                    if preset.case is not before:
                        before = preset.case
                        words("h3", preset.case.title)
                    entry = tag("button", "", type="button", role="menuitem")
                    with entry:
                        words("b", preset.title).style("font-weight: 500")
                        words("em", preset.language)
                        words("span", preset.note)
                    entry.on("click", lambda _, chosen=preset: self._take(chosen, menu))

    async def _take(self, preset: Preset, menu: ui.menu) -> None:
        menu.close()
        await self._on_preset(preset)

    # --- the text -----------------------------------------------------------------------------------------------

    @property
    def text(self) -> str:
        return str(self._code.value or "")

    def show(self, text: str) -> None:
        if text != self.text:
            self._code.set_value(text)
            self.tell(())  # removes the errors of the previous text
        self._language_of(text)
        self._check_soon(0.0)

    def restore(self) -> None:
        """Restore the last draft for the chosen query, or its running text."""
        here = (self._desk.session_name, self._desk.query_name)
        if here == self._shown_for:
            return
        self._shown_for = here
        draft = self._desk.recall(self._key)
        self.show(draft if isinstance(draft, str) and draft.strip() else self._desk.query_text())

    def settled(self) -> None:
        """Mark the text as the draft of the query that it has become, not of the query chosen before."""
        self._shown_for = (self._desk.session_name, self._desk.query_name)
        self._desk.remember(self._key, self.text)

    @property
    def _key(self) -> str:
        return f"text:{self._desk.session_name}/{self._desk.query_name}"

    def dark(self, yes: bool) -> None:
        theme: Literal["vscodeDark", "vscodeLight"] = "vscodeDark" if yes else "vscodeLight"
        if self._code.theme != theme:
            self._code.theme = theme

    def _changed(self) -> None:
        self._desk.remember(self._key, self.text)
        last = self.text.count("\n") + 1
        if any(line > last for line in self._code.line_tooltips):
            self._code.line_tooltips = {line: told for line, told in self._code.line_tooltips.items() if line <= last}
        self._language_of(self.text)
        self._check_soon(PAUSE)

    def _language_of(self, text: str) -> None:
        found = languages.language(text) if text.strip() else "seraph"
        say(self._language, languages.NAMES.get(found, found) if text.strip() else "")
        mode = languages.MODES.get(found, "SPARQL")
        if self._code.language != mode:
            self._code.set_language(mode)  # type: ignore[arg-type]

    # --- its errors ---------------------------------------------------------------------------------------------

    def _check_soon(self, pause: float) -> None:
        if self._checking is not None:
            self._checking.cancel()
        self._checking = asyncio.create_task(self._check(pause))

    async def _check(self, pause: float) -> None:
        await asyncio.sleep(pause)
        text, session = self.text, self._desk.session
        found: Sequence[dict[str, Any]] = ()
        if text.strip() and session is not None:
            found = await self._desk.ask(lambda: session.check(text), quiet=True) or ()
        if text == self.text:
            with self._list:
                self.tell(found)

    def tell(self, diagnostics: Sequence[dict[str, Any]]) -> None:
        """Underline and list these diagnostics."""
        text = self.text
        marks: list[dict[str, Any]] = [
            {"kind": "mark", "from": start, "to": stop, "class": "ab-own"}
            for start, stop in languages.own_words(text, languages.language(text) if text.strip() else "seraph")
        ]
        tooltips: dict[int, str] = {}
        for one in diagnostics:
            span = _span(one, len(text))
            if span is not None:
                marks.append({"kind": "mark", "from": span[0], "to": span[1], "class": "ab-wrong"})
            if one.get("line"):
                tooltips[one["line"]] = one["message"]
        if list(self._code.decorations) != marks:
            self._code.decorations = marks
        if self._code.line_tooltips != tooltips:
            self._code.line_tooltips = tooltips
        self.wrong = bool(diagnostics)
        self._list.clear()
        shown(self._list, self.wrong)
        with self._list, tag("ul"):
            for one in diagnostics[:_MOST_SHOWN]:
                self._entry(one)

    def _entry(self, one: dict[str, Any]) -> None:
        with tag("li"):
            where = f"{one['code']} {one['line']}:{one['column']}" if one.get("line") else str(one.get("code", ""))
            go = tag("button", "where ab-link", type="button", title="Go to the place")
            say(go, where)
            span = _span(one, len(self.text))
            if span is not None:
                go.on("click", lambda _: self._go(span[0]))
            label = f": {one['label']}" if one.get("label") else ""
            words("span", f"{one['message']}{label}")
            if one.get("hint"):
                words("span", one["hint"], "hint")

    def _go(self, place: int) -> None:
        """Put the cursor at a place, and scroll it into view."""
        units = len(self.text[:place].encode("utf-16-le", "surrogatepass")) // 2
        ui.run_javascript(
            f"const {{editor}} = getElement({self._code.id}), at = Math.min({units}, editor.state.doc.length);"
            "editor.dispatch({selection: {anchor: at}, scrollIntoView: true});"
            "editor.focus();"
        )


def _span(one: dict[str, Any], length: int) -> tuple[int, int] | None:
    """Return the range to underline: at least one letter, and never past the end."""
    start, stop = one.get("start"), one.get("stop")
    if start is None or stop is None or length == 0:
        return None
    start = min(max(0, start), length - 1)
    return start, min(max(stop, start + 1), length)
