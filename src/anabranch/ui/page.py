"""The page: header, query, streams on one side; answers, plan, steps and window on the other.

Invariant: a tick of the page requests only data for the visible tab and sends only changes; nothing outlives the page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nicegui import ui
from nicegui.element import Element

from anabranch.ui.answers import Answers
from anabranch.ui.charts import Charts
from anabranch.ui.controls import Controls
from anabranch.ui.desk import Desk
from anabranch.ui.editor import Editor
from anabranch.ui.header import PageHeader
from anabranch.ui.pieces import arrows, focused_menu, say, shown, tag, words
from anabranch.ui.plan import PlanPanel
from anabranch.ui.steps import StepByStep
from anabranch.ui.streams import StreamsPanel
from anabranch.ui.values import clock
from anabranch.ui.welcome import Welcome
from anabranch.ui.why import Dialogs
from anabranch.ui.window import WindowView

if TYPE_CHECKING:
    from anabranch.server.hub import Hub
    from anabranch.server.queries import QueryStatus
    from anabranch.server.session import LiveSession
    from anabranch.server.streams import StreamInfo

PACE = 0.2  # seconds: the page is updated five times a second at most
_SLOW = 5  # slowly changing figures are read every fifth tick
_AT_ONCE = 200  # results
TABS: Mapping[str, str] = {"answers": "Answers", "plan": "Plan", "steps": "Step by step", "window": "Window"}


class Monitor:
    """The page of one visitor."""

    def __init__(self, hub: Hub, memory: dict[str, Any], session: str, query: str, tab: str) -> None:
        self._desk = Desk(hub, memory, session, query, tab if tab in TABS else "answers")
        self._ticks = 0
        self._seen = -1
        self._looked: tuple[LiveSession | None, str] | None = None
        self._chips_of: list[tuple[str, str]] | None = None
        self._chip_chosen = ""
        self._failure = ""

    def build(self) -> None:
        desk = self._desk
        self._controls = Controls(desk)
        self._editor = Editor(desk, self._controls.take, self._controls.start)
        self._controls.editor = self._editor
        self._header = PageHeader(desk, self._choose_session)
        self._streams = StreamsPanel(desk)
        self._dialogs = Dialogs(desk)
        self._welcome = Welcome(desk)
        self._charts = Charts(desk, self._redraw)
        self._answers = Answers(desk, self._tick_column, self._why, self._why_not)
        self._plan, self._steps, self._window = PlanPanel(desk), StepByStep(desk), WindowView(desk)
        with tag("div", "ab-page"):
            words("a", "To the answers", "ab-skip", href="#answers")
            self._header.build()
            with tag("div", "ab-main"):
                with tag("div", "ab-side"):
                    with self._editor.build():
                        self._controls.build()
                    self._streams.build()
                with tag("div", "ab-body", id="answers", tabindex="-1"):  # the surrounding element is the page's <main>
                    self._build_body()
        self._dialogs.build()
        desk.watch(self._changed)
        desk.choose()
        ui.timer(PACE, self._tick)
        ui.timer(PACE, self._tick_view)

    def _build_body(self) -> None:
        with tag("div", "ab-bar"):
            self._tabs: dict[str, Element] = {}
            with tag("div", "ab-tabs", role="tablist", aria_label="views") as tabs:
                arrows(tabs, "tab")
                for name, title in TABS.items():
                    one = words(
                        "button",
                        title,
                        "ab-tab",
                        role="tab",
                        type="button",
                        id=f"tab-{name}",
                        aria_controls=f"panel-{name}",
                    )
                    one.on("click", lambda _, to=name: self._desk.choose(tab=to))
                    self._tabs[name] = one
            self._chips = tag("div", "ab-chips", role="group", aria_label="queries of the session")
        with tag("div", "ab-banner ab-hidden", role="alert") as self._banner:
            self._banner_text = words("div", "", "ab-grow")
        self._panels: dict[str, Element] = {}
        for name in TABS:
            with tag("div", "ab-panel", role="tabpanel", id=f"panel-{name}", aria_labelledby=f"tab-{name}") as panel:
                self._panels[name] = panel
                match name:
                    case "answers":
                        self._welcome.build()
                        self._answers.build()
                        self._charts.build()
                    case "plan":
                        self._plan.build()
                    case "steps":
                        self._steps.build()
                    case _:
                        self._window.build()

    # --- choices ------------------------------------------------------------------------------------------------

    def _changed(self) -> None:
        """Update the page after a change of the choice."""
        desk = self._desk
        for name, one in self._tabs.items():
            selected = "true" if name == desk.tab else "false"
            if one.props.get("aria-selected") != selected:
                one.props["aria-selected"] = selected
                one.update()
            shown(self._panels[name], name == desk.tab)
        here = (desk.session, desk.query_name)
        if here != self._looked:
            self._looked = here
            self._begin()
            self._editor.restore()
        self._ticks = 0

    def _begin(self) -> None:
        self._seen = -1
        self._answers.reset(self._why_empty())
        self._charts.reset()
        self._answers.ticked(self._charts.ticked)
        self._plan.reset()
        self._steps.reset()
        self._window.reset()

    def _why_empty(self) -> str:
        session = self._desk.session
        if session is None:
            return "There is no session yet. Choose an example, or make a session of your own."
        if not self._desk.query_name:
            return "No query yet. Choose an example or write one, then press Start."
        if session.state != "running":
            return f"The session is {session.state}. Press Start to let it run."
        if session.is_starting:
            return "Spark is starting, which takes some seconds. Then the query runs."
        looked = self._desk.query
        if looked is not None and looked.evaluated_at is not None:
            return f"No row so far. The last instant that was evaluated is {clock(looked.evaluated_at)}."
        return "The query runs. Its first answer comes with its first instant."

    def _choose_session(self, name: str) -> None:
        self._desk.choose(session=name)

    def _tick_column(self, column: str) -> None:
        self._charts.tick(column)
        self._answers.ticked(self._charts.ticked)

    def _redraw(self) -> None:
        """Redraw the kept results; the table is unchanged."""
        ui.timer(0, self._history, once=True)

    async def _why(self, row: Mapping[str, Any], at: str, left: bool) -> None:
        await (self._dialogs.why_left(row, at) if left else self._dialogs.why(row, at))

    def _why_not(self) -> None:
        self._dialogs.ask(self._answers.columns, self._answers.seen(), self._answers.last)

    # --- ticks --------------------------------------------------------------------------------------------------

    async def _tick(self) -> None:
        slow = self._ticks % _SLOW == 0
        self._ticks += 1
        if slow:
            await self._look_around()
        await self._take_results()
        if slow and self._desk.tab == "plan":
            await self._plan.tick()

    async def _tick_view(self) -> None:
        """Update the tabs that inspect a recording, which may take long; no other update waits for it."""
        match self._desk.tab:
            case "steps":
                await self._steps.tick()
            case "window":
                await self._window.tick()

    async def _look_around(self) -> None:
        session = self._desk.session
        streams = await self._desk.ask(session.streams, quiet=True) or [] if session is not None else []
        streams = _distinct(streams)
        self._header.show(streams)
        self._welcome.show(streams)
        self._streams.show(streams)
        self._controls.show(streams)
        queries = await self._desk.ask(session.queries, quiet=True) if session is not None else []
        if queries is None:
            return  # the session is about to go
        if session is self._desk.session:
            self._desk.queries = queries
        self._stay_with(session, [one.name for one in queries])
        self._show_chips(self._desk.queries)
        self._show_failure(self._desk.queries)
        looked = self._desk.query
        self._answers.warn(() if looked is None else looked.warnings)
        if looked is not None and looked.output == "snapshot" and looked.rows_now == 0:
            self._answers.show_none(looked.evaluated_at)
        if self._seen < 0:
            self._answers.explain_emptiness(self._why_empty())

    def _stay_with(self, session: LiveSession | None, queries: list[str]) -> None:
        """Choose an existing session and query, if the chosen ones were deleted or created again by other clients."""
        looked, query = self._looked or (None, "")
        if session is looked and query in (queries or [""]):
            return
        if looked is not None and looked.name not in [one.name for one in self._desk.hub.sessions()]:
            ui.notify(f"The session {looked.name} is gone.", type="warning", position="top")
        self._desk.choose()

    async def _take_results(self) -> None:
        session, query = self._desk.session, self._desk.query_name
        if session is None or not query:
            return
        if self._seen < 0:
            await self._history()
            return
        after = self._seen
        found = await self._desk.ask(lambda: session.results(query, after, _AT_ONCE), quiet=True)
        if (session, query) != self._looked or after != self._seen:
            return
        if found is None:  # so far behind that the results are no longer kept
            self._seen = -1
        elif found:
            self._seen = found[-1]["seq"]
            self._answers.show(found)
            self._charts.add(found)

    async def _history(self) -> None:
        """Load all results that are kept: the chart needs them all, the table the last ones."""
        session, query = self._desk.session, self._desk.query_name
        if session is None or not query:
            return
        found = await self._desk.ask(lambda: _kept(session, query), quiet=True)
        if not found or (session, query) != self._looked:
            return
        if self._seen > found[-1]["seq"]:  # newer ones came meanwhile, and would be lost
            self._redraw()
            return
        if self._seen < 0:
            self._answers.show(found[-40:], still=True)
        self._seen = max(self._seen, found[-1]["seq"])
        self._charts.add(found, whole=True)

    # --- queries ------------------------------------------------------------------------------------------------

    def _show_chips(self, queries: list[QueryStatus]) -> None:
        wanted: list[tuple[str, str]] = [(one.name, one.state) for one in queries]
        if wanted == self._chips_of and self._chip_chosen == self._desk.query_name:
            return
        self._chips_of, self._chip_chosen = wanted, self._desk.query_name
        self._chips.clear()
        with self._chips:
            for one in queries:
                self._chip(one)

    def _chip(self, one: QueryStatus) -> None:
        on = " on" if one.name == self._desk.query_name else ""
        with tag("div", f"ab-chip {one.state}{on}"):
            name = words(
                "button",
                one.name,
                "name",
                type="button",
                aria_pressed="true" if on else "false",
                title=f"{one.name}: {one.state}",
            )
            name.on("click", lambda _: self._desk.choose(query=one.name))
            more = words(
                "button", "⋯", "more", type="button", aria_label=f"more about {one.name}", aria_haspopup="menu"
            )
            with more, ui.menu() as menu, tag("div", "ab-presets", role="menu").style("min-width: 170px") as entries:
                focused_menu(menu)
                arrows(entries, "menuitem")
                if one.state in ("paused", "failed"):
                    self._entry("Resume", lambda: self._do("resume_query", one.name))
                if one.state != "paused":
                    self._entry("Pause", lambda: self._do("pause_query", one.name))
                self._entry("Delete", lambda: self._do("delete_query", one.name))

    def _entry(self, title: str, on_click: Any) -> None:
        words("button", title, "", type="button", role="menuitem").on("click", lambda _: on_click())

    async def _do(self, what: str, name: str) -> None:
        session = self._desk.session
        if session is not None:
            await self._desk.ask(lambda: getattr(session, what)(name))
            self._chips_of = None
            self._desk.choose()

    def _show_failure(self, queries: list[QueryStatus]) -> None:
        session = self._desk.session
        said = []
        if session is not None and session.error:
            said.append(_words_of(session.error))
        said += [f"{one.name}: {_words_of(one.error)}" for one in queries if one.error]
        said += [
            f"{one.name}: {one.skipped:,} row{'' if one.skipped == 1 else 's'} skipped: {_words_of(one.last_skipped)}"
            for one in queries
            if one.last_skipped
        ]
        text = "\n".join(said)
        if text != self._failure:
            self._failure = text
            say(self._banner_text, text)
            shown(self._banner, bool(text))

    def dark(self, yes: bool) -> None:
        """Store a change of the theme, by the button or by the system."""
        self._desk.remember("dark", yes)
        self._editor.dark(yes)


def _distinct(streams: list[StreamInfo]) -> list[StreamInfo]:
    """Drop derived-stream entries that the run still reports under the name of an added stream."""
    given = {one.name for one in streams if one.kind != "query"}
    return [one for one in streams if one.kind != "query" or one.name not in given]


def _words_of(error: Mapping[str, Any]) -> str:
    inside = error.get("error", error)
    hint = f"\nhint: {inside['hint']}" if inside.get("hint") else ""
    return f"{inside.get('code', '')} {inside.get('message', '')}{hint}".strip()


def _kept(session: Any, query: str) -> list[dict[str, Any]]:
    """Return the results of a query that the server keeps."""
    found: list[dict[str, Any]] = session.results(query, -1, 1000)
    while found and (more := session.results(query, found[-1]["seq"], 1000)):
        found = [*found, *more][-2000:]
        if len(more) < 1000:
            break
    return found
