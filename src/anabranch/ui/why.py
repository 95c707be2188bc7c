"""Dialogs: why a row is there, why a row left, and why no such row is there.

Invariant: they show the results and notes of insight; the page adds no reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from nicegui import ui
from nicegui.element import Element as Piece

from anabranch.insight.shapes import Departure, Element, PatternPart, Why, WhyNot
from anabranch.server.slices import reaching
from anabranch.ui.components import WindowGraph
from anabranch.ui.desk import Desk
from anabranch.ui.meaning import has_row, iris, meant, read
from anabranch.ui.pieces import button, returning, tag, words
from anabranch.ui.scene import vertices_and_links
from anabranch.ui.values import COMMON_PREFIXES, clock, micros, plain, short_text

_MOST_ELEMENTS = 60
_MOST_CHOICES = 200
_MOST_MEANT = 8
Reason = TypeVar("Reason")


class Dialogs:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def build(self) -> None:
        with ui.dialog() as self._dialog, ui.card().classes("ab-dialog").props("flat").style("padding: 0; gap: 0"):
            returning(self._dialog)
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
        """Show why a row is there at an instant."""
        session, query = self._desk.session, self._desk.query_name
        if session is None:
            return
        with self._open("Why is this row there?"):
            found = await self._looked_up(row, lambda: _why(session, query, row, micros(at)), at)
            if found is not None:
                with found[0]:
                    self._tell_why(found[1])

    async def why_left(self, row: Mapping[str, Any], at: str) -> None:
        """Show why a row that was there at an instant has left."""
        session, query = self._desk.session, self._desk.query_name
        if session is None:
            return
        with self._open("Why did this row leave?"):
            found = await self._looked_up(row, lambda: _why_left(session, query, row, micros(at)), at)
            if found is not None:
                with found[0]:
                    self._tell_why_left(found[1])
                    button("Why was it there?", lambda: self.why(row, at), icon="ask")

    async def _looked_up(
        self, row: Mapping[str, Any], look: Callable[[], Reason], at: str
    ) -> tuple[Piece, Reason] | None:
        """Return the reason and the element to show it in; None after a failure, which is shown, or if the dialog was
        closed."""
        prefixes = self._desk.prefixes()
        _facts({name: plain(value, prefixes) for name, value in row.items()})
        answer = tag("div")
        with answer:
            words("div", "Looking for the events that make it …", "ab-busy")
        found = await self._desk.attempt(look)
        if answer.is_deleted:
            return None
        answer.clear()
        if isinstance(found, Exception):
            with answer:
                words("p", f"The events of {clock(at)} are no longer within reach: {found}", "ab-story")
            return None
        return answer, found

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
            self._graph(found.elements, _last(found))
            _elements(found.elements, found.completed_by, self._desk.prefixes())

    def _graph(self, elements: Sequence[Element], lit: tuple[str, ...]) -> None:
        nodes, links = vertices_and_links(elements[:_MOST_ELEMENTS], (), (), lit, self._desk.prefixes(), [])
        if links:
            with tag("div", "ab-small"):
                graph = WindowGraph("the elements that make the row", "")
            ui.timer(0.1, lambda: graph.scene(nodes, links), once=True)

    def _tell_why_left(self, found: Departure) -> None:
        prefixes = self._desk.prefixes()
        if found.left_at is None:
            words("p", f"It was still there at {clock(found.at)}, the last instant that was recorded.", "ab-story")
            return
        words("p", f"It was there at {clock(found.at)} and no longer at {clock(found.left_at)}.", "ab-story")
        if found.gone:
            words("p", f"Left the window by then, of what made it ({len(found.gone):,}):", "ab-story")
            _elements(found.gone, None, prefixes)
        if found.changed:
            words("p", "Was told otherwise:", "ab-story")
            with tag("ul", "ab-elements"):
                for was, now in found.changed[:_MOST_ELEMENTS]:
                    with tag("li"):
                        words("code", f"{short_text(was.text, prefixes)} → {short_text(now.text, prefixes)}")
                        words("span", f"{now.stream}, {clock(now.at)}")
        if found.came:
            words("p", "Came, and keeps it out:", "ab-story")
            _elements(found.came, None, prefixes)
        if found.note:
            words("p", found.note, "ab-story ab-quiet")
        if found.instead is not None:
            words("p", "In its place:", "ab-story")
            _facts({name: plain(value, prefixes) for name, value in zip(found.columns, found.instead, strict=True)})

    # --- why not ------------------------------------------------------------------------------------------------

    def ask(self, columns: Sequence[str], seen: Mapping[str, Sequence[Any]], last: Mapping[str, Any] | None) -> None:
        """Open the form for a missing row; `seen` are values of each column to choose from, `last` is the newest
        result."""
        with self._open("Why is a row not there?"):
            if not columns:
                words("p", "There is no answer yet whose columns could be asked for. Start a query first.", "ab-story")
                return
            words(
                "p",
                "Say what the row should hold, as the table shows it or in full. What is left empty may be anything.",
                "ab-story",
            )
            fields: dict[str, ui.input] = {}
            with tag("form", "ab-form") as form:
                for name in columns:
                    words("label", name)
                    fields[name] = self._field(name, seen.get(name, ()))
                tag("span")
                button("Ask", None, icon="ask", classes="primary").style("justify-self: start")
            answer = tag("div")
            form.on("submit.prevent", lambda _: self._submit(fields, seen, last, answer))

    def _field(self, name: str, seen: Sequence[Any]) -> ui.input:
        """Create a field that offers the previous values of the column."""
        field = ui.input(placeholder="anything").props(f'dense outlined aria-label="{name.replace(chr(34), "")}"')
        prefixes = self._desk.prefixes()
        shown = list(dict.fromkeys(plain(value, prefixes) for value in seen if value is not None))[:_MOST_CHOICES]
        with tag("datalist", id=f"{field.html_id}-datalist"):  # the id that NiceGUI's input expects for its choices
            for one in shown:
                tag("option", value=one)
        return field

    async def _submit(
        self,
        fields: Mapping[str, ui.input],
        seen: Mapping[str, Sequence[Any]],
        last: Mapping[str, Any] | None,
        answer: Piece,
    ) -> None:
        session, query = self._desk.session, self._desk.query_name
        if session is None:
            return
        answer.clear()
        with answer:
            words("div", "Looking for the nearest match …", "ab-busy")
        prefixes = self._desk.prefixes()
        at = None if last is None else micros(str(last["at"]))
        values: dict[str, Any] = {}
        for name, field in fields.items():
            text = str(field.value or "").strip()
            if not text:
                continue
            found = meant(text, seen.get(name, ()), prefixes)
            if not found:
                found = await self._desk.ask(lambda: _iris(session, query, at, text), quiet=True) or []  # noqa: B023
            if len(found) > 1:
                self._did_you_mean(field, name, found, answer)
                return
            values[name] = found[0] if found else read(text, prefixes)
        there = None if last is None else has_row(last["columns"], last["rows"], values)
        if there is not None and last is not None:
            answer.clear()
            with answer:
                words("p", f"There is such a row at {clock(str(last['at']))}:", "ab-story")
                _facts({name: plain(value, prefixes) for name, value in there.items()})
                row, when = there, str(last["at"])
                button("Why is it there?", lambda: self.why(row, when), icon="ask")
            return
        told = await self._desk.attempt(lambda: _why_not(session, query, values, at))
        if answer.is_deleted:
            return  # something else was asked for meanwhile
        answer.clear()
        with answer:
            if isinstance(told, Exception):
                words("p", f"No reason could be found: {told}", "ab-story")
            else:
                self._tell_why_not(told)

    def _did_you_mean(self, field: ui.input, name: str, found: Sequence[Any], answer: Piece) -> None:
        """Let the visitor choose among several values that are shown as the same text."""
        answer.clear()
        with answer:
            words("p", f"Several values of {name} look like this. Did you mean", "ab-story")
            with tag("div", "ab-row"):
                for one in found[:_MOST_MEANT]:
                    button(str(one), partial(_fill, field, str(one)), classes="small")

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


def _fill(field: ui.input, text: str) -> None:
    field.value = text


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


def _why_left(session: Any, query: str, row: Mapping[str, Any], at: int) -> Departure:
    from anabranch.insight.why import why_left

    return why_left(reaching(session, query, at), row, at)


def _iris(session: Any, query: str, at: int | None, text: str) -> list[str]:
    return iris(reaching(session, query, at), text, {**COMMON_PREFIXES, **session.query(query).prefixes})


def _why_not(session: Any, query: str, values: Mapping[str, Any], at: int | None) -> WhyNot:
    from anabranch.insight.why_not import why_not

    return why_not(reaching(session, query, at), values, at)
