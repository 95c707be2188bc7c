"""The streams of the session: their rates, their progress in event time, and the records that were set aside.

Invariant: a figure is sent only when it changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nicegui import ui
from nicegui.element import Element

from anabranch.server.catalogue import StoredTiming
from anabranch.ui.desk import Desk
from anabranch.ui.pieces import button, card, enabled, returning, say, shown, tag, words
from anabranch.ui.values import clock

if TYPE_CHECKING:
    from anabranch.server.streams import StreamInfo

_IDLE = {
    "": "as the server says",
    "correct": "go on, and correct answers",
    "wait": "wait for it",
    "advance": "go on, late events are lost",
}
_KINDS = {"gen": "generated", "file": "from files", "push": "pushed by REST", "query": "written by a query"}


class _Entry:
    """One stream; built once, then only its figures change."""

    def __init__(self, desk: Desk, info: StreamInfo) -> None:
        self._desk = desk
        self._name = info.name
        with tag("article", "ab-stream", aria_label=f"stream {info.name}"):
            words("h3", info.name)
            self._state = words("span", "", "ab-pill plain")
            words("div", info.address or _KINDS.get(info.kind, info.kind), "address", title=info.address or "")
            with tag("div", "facts"):
                self._rate = _fact("events/s")
                self._events = _fact("events")
                self._watermark = _fact("watermark")
                self._aside = {kind: self._letters(kind) for kind in ("late", "ahead", "malformed")}

    def _letters(self, kind: str) -> tuple[Element, Element, Element]:
        with tag("span") as around:
            count = words("b", "0")
            words("span", f" {kind} ")
            link = words(
                "button",
                "download",
                "ab-link ab-hidden",
                type="button",
                aria_label=f"download {kind} records of {self._name}",
            )
            link.on("click", lambda _: self._download(kind))
        return around, count, link

    def _download(self, kind: str) -> None:
        session = self._desk.session
        if session is None:
            return
        path = session.letters(self._name, kind)  # type: ignore[arg-type]
        if path.exists():
            ui.download.content(path.read_bytes(), f"{self._name}-{kind}.ndjson", "application/x-ndjson")

    def show(self, info: StreamInfo) -> None:
        say(self._state, "ended" if info.closed else "idle" if info.is_idle else info.state or "open")
        say(self._rate, f"{info.rate:,.0f}" if info.rate >= 10 else f"{info.rate:.1f}")
        say(self._events, f"{info.events:,}")
        say(self._watermark, clock(info.watermark))
        for kind, count in (("late", info.late), ("ahead", info.ahead), ("malformed", info.malformed)):
            around, figure, link = self._aside[kind]
            say(figure, f"{count:,}")
            around.classes(add="bad") if count else around.classes(remove="bad")
            shown(link, bool(count))


def _fact(name: str) -> Element:
    with tag("span"):
        value = words("b", "–")
        words("span", f" {name}")
    return value


class StreamsPanel:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._entries: dict[tuple[str, str | None], _Entry] = {}

    def build(self) -> Element:
        with card("Streams") as (outer, head):
            with head:
                tag("div", "ab-grow")
                self._add = button("Add", self._ask, icon="plus", classes="small", hint="Add a stream by its address")
            self._list = tag("div", "ab-streams")
            self._empty = tag("div", "ab-empty")
            with self._empty:
                words("p", "No stream yet. An example brings its own; others are added by their address.")
        self._build_dialog()
        return outer

    def _build_dialog(self) -> None:
        with ui.dialog() as self._dialog, ui.card().classes("ab-dialog").props("flat").style("padding: 0; gap: 0"):
            returning(self._dialog)
            with tag("div", "head"):
                words("h2", "Add a stream")
                button("", self._dialog.close, icon="close", classes="small ghost", label="Close")
            with tag("div", "scroll"):
                words("p", "A stream comes from an address, or is pushed through REST if there is none.", "ab-story")
                with tag("form", "ab-form") as form:
                    words("label", "Name")
                    self._name = ui.input(placeholder="rides").props('dense outlined aria-label="name of the stream"')
                    words("label", "Address")
                    self._address = ui.input(placeholder="gen:bikes?rate=100, kafka://host/topic, …").props(
                        'dense outlined aria-label="address of the stream"'
                    )
                    words("label", "Idle after")
                    self._idle_timeout = ui.input(placeholder="PT30S").props(
                        'dense outlined aria-label="how long the stream may be silent"'
                    )
                    words("label", "When idle")
                    self._idle = ui.select(_IDLE, value="").props('dense outlined aria-label="what silence does"')
                    words("label", "Events ahead")
                    self._ahead = ui.input(placeholder="PT1H, or none").props(
                        'dense outlined aria-label="how far ahead an event may be"'
                    )
                    tag("span")
                    button("Add the stream", None, classes="primary").style("justify-self: start")
                form.on("submit.prevent", lambda _: self._submit())

    def _ask(self) -> None:
        self._dialog.open()

    async def _submit(self) -> None:
        session = self._desk.session
        name, address = str(self._name.value or "").strip(), str(self._address.value or "").strip()
        if session is None or not name:
            return
        timeout, ahead = (str(one.value or "").strip() or None for one in (self._idle_timeout, self._ahead))
        timing = StoredTiming(timeout, str(self._idle.value) or None, ahead)
        if await self._desk.ask(lambda: session.add_stream(name, address or None, timing=timing)) is not None:
            for one in (self._name, self._address, self._idle_timeout, self._idle, self._ahead):
                one.value = ""
            self._dialog.close()

    def show(self, found: list[StreamInfo]) -> None:
        enabled(self._add, self._desk.session is not None)
        wanted = [(one.name, one.address) for one in found]
        if list(self._entries) != wanted:
            self._list.clear()
            with self._list:
                self._entries = {(one.name, one.address): _Entry(self._desk, one) for one in found}
            shown(self._empty, not found)
        for one in found:
            self._entries[one.name, one.address].show(one)
