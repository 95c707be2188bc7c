"""The header: the chosen session, its state, its rate and its progress.

Invariant: it shows the state of the session as the server reports it, not as it was requested.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from nicegui import ui
from nicegui.element import Element

from anabranch.ui.components import ChoiceList
from anabranch.ui.desk import Desk
from anabranch.ui.pieces import LOGO, argument, button, raw, returning, say, shown, tag, words
from anabranch.ui.values import clock, duration

if TYPE_CHECKING:
    from anabranch.server.streams import StreamInfo

_NEW = "\u0001new"
_THEMES = {"auto": None, "light": False, "dark": True}
_LATE = 5.0  # seconds that a run may be behind before the page says so
_NEXT = {"auto": "light", "light": "dark", "dark": "auto"}


class PageHeader:
    def __init__(self, desk: Desk, on_session: Callable[[str], Awaitable[None] | None]) -> None:
        self._desk = desk
        self._on_session = on_session
        self._theme = str(desk.recall("theme", "auto"))
        self._state_class = ""

    def build(self) -> Element:
        with tag("header", "ab-header") as header:
            with tag("h1", "ab-name"), tag("a", "ab-brand", href="/", aria_label="Anabranch"):
                raw(LOGO)
                words("span", "Anabranch")
            tag("div", "ab-divider")
            self._sessions = ChoiceList("session", {}, hidden_label=True)
            self._sessions.on("pick", lambda event: self._picked(argument(event)))
            self._state = words("span", "", "ab-pill", role="status")
            self._behind = words(
                "span",
                "",
                "ab-pill behind ab-hidden",
                role="status",
                title="Events come faster than they are answered: this is how long ago the first came that is waiting",
            )
            words("span", self._engine(), "ab-pill plain", title="What carries the queries")
            tag("div", "ab-grow")
            with tag("div", "ab-figures"):
                self._rate = _figure("events/s")
                self._events = _figure("events")
                self._watermark = _figure("watermark (UTC)")
            self._dark = ui.dark_mode(_THEMES.get(self._theme))
            self._theme_button = button(
                "", self._turn, icon="theme", classes="ghost ab-theme", label=self._theme_words()
            )
        self._build_dialog()
        return header

    def _engine(self) -> str:
        return {"spark": "Spark", "local": "local engine"}.get(self._desk.hub.engine, str(self._desk.hub.engine))

    def _build_dialog(self) -> None:
        with (
            ui.dialog() as self._dialog,
            ui.card()
            .classes("ab-dialog")
            .props("flat")
            .style("padding: 0; gap: 0; width: min(420px, calc(100vw - 24px))"),
        ):
            returning(self._dialog)
            with tag("div", "head"):
                words("h2", "New session")
                button("", self._dialog.close, icon="close", classes="small ghost", label="Close")
            with tag("div", "scroll"):
                words("p", "A session has streams, graphs and queries of its own.", "ab-story")
                with tag("form", "ab-form") as form:
                    words("label", "Name")
                    self._name = ui.input(placeholder="my-session").props(
                        'dense outlined autofocus aria-label="name of the session"'
                    )
                    tag("span")
                    button("Create", None, classes="primary").style("justify-self: start")
                form.on("submit.prevent", lambda _: self._create())

    async def _create(self) -> None:
        name = str(self._name.value or "").strip()
        if name and await self._desk.ask(lambda: self._desk.hub.create(name)) is not None:
            self._dialog.close()
            self._name.value = ""
            self._desk.choose(session=name)

    async def _picked(self, name: str) -> None:
        if name == _NEW:
            self._sessions.update()
            self._dialog.open()
            return
        found = self._on_session(name)
        if found is not None:
            await found

    # --- theme --------------------------------------------------------------------------------------------------

    def _theme_words(self) -> str:
        return {"auto": "Theme: as the system", "light": "Theme: light", "dark": "Theme: dark"}[self._theme]

    def _turn(self) -> None:
        self._theme = _NEXT.get(self._theme, "auto")
        self._dark.value = _THEMES[self._theme]
        self._desk.remember("theme", self._theme)
        self._theme_button.props["aria-label"] = self._theme_button.props["title"] = self._theme_words()
        self._theme_button.update()

    # --- figures ------------------------------------------------------------------------------------------------

    def show(self, streams: list[StreamInfo]) -> None:
        session = self._desk.session
        names = {one.name: one.name for one in self._desk.hub.sessions()}
        self._sessions.offer({**names, _NEW: "new session …"}, self._desk.session_name)
        state = "no session" if session is None else session.state
        ended = session is not None and state == "running" and session.ended
        self._state_text("ended" if ended else state)
        own = [one for one in streams if one.kind != "query"]
        late = max(own, key=lambda one: one.behind, default=None)
        is_late = late is not None and late.behind >= _LATE and state == "running"
        shown(self._behind, is_late)
        if late is not None and is_late:
            say(self._behind, f"behind by {duration(late.behind)}{', growing' if late.growing else ''}")
        say(self._rate, f"{sum(one.rate for one in own):,.0f}")
        say(self._events, f"{sum(one.events for one in own):,}")
        marks = [one.watermark for one in own if one.watermark is not None]
        say(self._watermark, clock(min(marks)) if marks else "–")

    def _state_text(self, state: str) -> None:
        style = state.replace(" ", "-")
        if style != self._state_class:
            self._state.classes(remove=self._state_class or None, add=style)
            self._state_class = style
        say(self._state, state)


def _figure(name: str) -> Element:
    with tag("div", "ab-figure"):
        value = words("b", "–")
        words("span", name)
    return value
