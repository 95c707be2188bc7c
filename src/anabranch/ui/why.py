"""Why a row is there, and why one is not: two dialogs.

Invariant: both tell what insight found, with its own reservations; the page adds no reason.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from nicegui import ui
from nicegui.element import Element as Piece

from anabranch.insight.shapes import Element, PatternPart, Why, WhyNot
from anabranch.ui.components import WindowGraph
from anabranch.ui.desk import Desk
from anabranch.ui.pieces import button, tag, words
from anabranch.ui.recordings import reaching
from anabranch.ui.scene import vertices_and_links
from anabranch.ui.values import clock, micros, plain, short_text

_MOST_ELEMENTS = 60


class Dialogs:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def build(self) -> None:
        with ui.dialog() as self._dialog, ui.card().classes("ab-dialog").props("flat").style("padding: 0; gap: 0"):
            with tag("div", "head"):
                self._title = words("h2", "")
                button("", self._dialog.close, icon="close", classes="small ghost", label="Close")
            self._inside = tag("div", "scroll", role="region", aria_label="reason", tabindex="0")

    def _open(self, title: str) -> Piece:
        self._title._text = title
        self._title.update()
        self._inside.clear()
        self._dialog.open()
        return self._inside

    # --- why ----------------------------------------------------------------------------------------------------

    async def why(self, row: Mapping[str, Any], at: str) -> None:
        session, query = self._desk.session, self._desk.query_name
        if session is None:
            return
        prefixes = self._desk.prefixes()
        with self._open("Why is this row there?"):
            _facts({name: plain(value, prefixes) for name, value in row.items()})
            answer = tag("div")
            with answer:
                words("div", "Looking for the events that make it …", "ab-busy")
        found: Why | None = await self._desk.ask(lambda: _why(session, query, row, micros(at)))
        if answer.is_deleted:
            return  # another row was asked for meanwhile
        answer.clear()
        with answer:
            if found is None:
                words(
                    "p",
                    "The reason could not be found: the events of that instant may no longer be within reach.",
                    "ab-story",
                )
            else:
                self._tell_why(found)

    def _tell_why(self, found: Why) -> None:
        count = len(found.elements)
        if count:
            need = "It needs exactly" if found.minimal else "It comes from these"
            words(
                "p",
                f"{need} {count} element{'' if count == 1 else 's'} of the window. "
                + ("Without any one of them the row would not be there." if found.minimal else ""),
                "ab-story",
            )
        _facts(
            {
                "entered": clock(found.entered_at) if found.entered_at is not None else "before the recording",
                "completed by": _when(found.completed_by),
                "leaves, if nothing more comes": clock(found.leaves_at) if found.leaves_at is not None else "it stays",
            }
        )
        if found.note:
            words("p", found.note, "ab-story ab-quiet")
        if count:
            nodes, links = vertices_and_links(
                found.elements[:_MOST_ELEMENTS], (), (), _last(found), self._desk.prefixes(), []
            )
            if links:
                with tag("div", "ab-small"):
                    graph = WindowGraph("the elements that make the row", "")
                ui.timer(0.1, lambda: graph.scene(nodes, links), once=True)
            _elements(found.elements, found.completed_by, self._desk.prefixes())

    # --- why not ------------------------------------------------------------------------------------------------

    def ask(self, columns: Sequence[str], at: str | None) -> None:
        with self._open("Why is a row not there?"):
            if not columns:
                words("p", "There is no answer yet whose columns could be asked for. Start a query first.", "ab-story")
                return
            words("p", "Say what the row should hold. What is left empty may be anything.", "ab-story")
            fields: dict[str, ui.input] = {}
            with tag("form", "ab-form") as form:
                for name in columns:
                    words("label", name)
                    fields[name] = _field(name)
            answer = tag("div")

            async def submit() -> None:
                values = {
                    name: _value(str(field.value or ""))
                    for name, field in fields.items()
                    if str(field.value or "").strip()
                }
                await self._why_not(values, at, answer)

            form.on("submit.prevent", lambda _: submit())
            with form:
                tag("span")
                button("Ask", submit, icon="ask", classes="primary").style("justify-self: start")

    async def _why_not(self, values: Mapping[str, Any], at: str | None, answer: Piece) -> None:
        session, query = self._desk.session, self._desk.query_name
        if session is None:
            return
        answer.clear()
        with answer:
            words("div", "Looking for the nearest match …", "ab-busy")
        instant = micros(at) if at is not None else None
        found: WhyNot | None = await self._desk.ask(lambda: _why_not(session, query, values, instant))
        if answer.is_deleted:
            return  # something else was asked for meanwhile
        answer.clear()
        with answer:
            if found is None:
                words("p", "No reason could be found.", "ab-story")
            else:
                self._tell_why_not(found)

    def _tell_why_not(self, found: WhyNot) -> None:
        if found.note:
            words("p", found.note, "ab-story")
        prefixes = self._desk.prefixes()
        if found.missing:
            words("p", f"At {clock(found.at)} nothing in the window fits:", "ab-story")
            _parts(found.missing, "bad", prefixes)
        if found.matched:
            words(
                "p",
                "This much is there:" if found.missing else f"At {clock(found.at)} every part of the pattern is there:",
                "ab-story",
            )
            _parts(found.matched, "good", prefixes)
        if found.bindings:
            _facts({name: plain(value, prefixes) for name, value in found.bindings.items()})
        if found.filters:
            words("p", "Conditions on the nearest match:", "ab-story")
            with tag("ul", "ab-elements"):
                for one in found.filters:
                    with tag("li", "good" if one.passed else "bad"):
                        words("code", one.text)
                        words(
                            "span",
                            ("holds" if one.passed else "does not hold") + f" (it is {plain(one.value, prefixes)})",
                        )


# --- pieces -----------------------------------------------------------------------------------------------------------


def _field(name: str) -> ui.input:
    return ui.input(placeholder="anything").props(f'dense outlined aria-label="{name.replace(chr(34), "")}"')


def _value(text: str) -> Any:
    """Numbers, true, false and quoted texts as JSON says; all else is text."""
    try:
        return json.loads(text)
    except ValueError:
        return text.strip()


def _facts(facts: Mapping[str, str]) -> None:
    with tag("div", "ab-facts"):
        for name, value in facts.items():
            with tag("div", "ab-fact"):
                words("span", name)
                words("b", value)


def _when(element: Element | None) -> str:
    return "–" if element is None else f"the event of {clock(element.at)}"


def _last(found: Why) -> tuple[str, ...]:
    return () if found.completed_by is None else (found.completed_by.id,)


def _elements(elements: Sequence[Element], last: Element | None, prefixes: Mapping[str, str]) -> None:
    with tag("ul", "ab-elements"):
        for one in elements[:_MOST_ELEMENTS]:
            with tag("li", "last" if last is not None and one.id == last.id else ""):
                words("code", short_text(one.text, prefixes))
                completes = " · it completed the row" if last is not None and one.id == last.id else ""
                words("span", f"{one.stream}, {clock(one.at)}{completes}")
    if len(elements) > _MOST_ELEMENTS:
        words("p", f"and {len(elements) - _MOST_ELEMENTS} more", "ab-quiet")


def _parts(parts: Sequence[PatternPart], style: str, prefixes: Mapping[str, str]) -> None:
    with tag("ul", "ab-elements"):
        for one in parts:
            with tag("li", style):
                words("code", one.text)
                for element in one.elements[:3]:
                    words("span", f"{short_text(element.text, prefixes)} · {clock(element.at)}")


def _why(session: Any, query: str, row: Mapping[str, Any], at: int) -> Why:
    from anabranch.insight.why import why

    return why(reaching(session, query, at), row, at)


def _why_not(session: Any, query: str, values: Mapping[str, Any], at: int | None) -> WhyNot:
    from anabranch.insight.why_not import why_not

    return why_not(reaching(session, query, at), values, at)
