"""The window as a live graph: elements that enter, leave or take part in a match; and a timeline to go back.

While it follows the stream it records again every few seconds, or less often if recording takes long.

Invariant: a scene is shown once; the recording is released when another query is chosen.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from nicegui.element import Element

from anabranch.insight.shapes import Scene
from anabranch.server.slices import SCENES, with_instants
from anabranch.ui.components import Scrubber, WindowGraph
from anabranch.ui.desk import Desk
from anabranch.ui.pieces import argument, button, card, enabled, say, tag, words
from anabranch.ui.plan import legend
from anabranch.ui.scene import vertices_and_links
from anabranch.ui.values import clock

if TYPE_CHECKING:
    from anabranch.insight.scenes import Scenes

_PACE = 2.0  # seconds between two recordings, at least
_LEGEND = {"dot entered": "entered", "dot left": "leaves", "dot matched": "takes part in a match"}
_NOTHING = "The window is empty. Start a query, and what its windows hold appears here as a graph."


class WindowView:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._scenes: Scenes | None = None
        self._place = 0
        self._following = True
        self._due = 0.0
        self._shown: tuple[int, int] | None = None
        self._asked = 0
        self._looking = asyncio.Lock()  # one thread at a time uses a recording
        self._kinds: list[str] = []

    def build(self) -> Element:
        with card("Window") as (outer, head):
            with head:
                self._what = words("span", "", "ab-quiet")
                tag("div", "ab-grow")
                self._follow = button(
                    "Follow", self._toggle, classes="small", hint="Show the newest window as the stream flows"
                )
                self._follow.props["aria-pressed"] = "true"
            self._graph = WindowGraph("the window as a graph", _NOTHING)
            with tag("div", "ab-transport"):
                self._back = button(
                    "", lambda: self._go(self._place - 1), icon="previous", classes="small", label="Instant before"
                )
                self._on = button(
                    "", lambda: self._go(self._place + 1), icon="next", classes="small", label="Instant after"
                )
                self._line = Scrubber("instant")
                self._line.on("move", lambda event: self._go(argument(event)), throttle=0.1)
            with tag("div", "ab-card-foot"):
                legend(_LEGEND)
        return outer

    def reset(self) -> None:
        self._scenes, self._shown, self._place, self._due = None, None, 0, 0.0
        self._asked += 1
        self._kinds = []
        self._follow_it(True)
        self._graph.clear_scene()
        self._graph.empty(_NOTHING)
        self._line.show(0, 0, "")
        say(self._what, "")

    def _follow_it(self, yes: bool) -> None:
        if self._following != yes:
            self._following = yes
            self._follow.props["aria-pressed"] = "true" if yes else "false"
            self._follow.update()

    def _toggle(self) -> None:
        self._follow_it(not self._following)
        self._due = 0.0

    async def tick(self) -> None:
        """Record again when the interval has passed."""
        loop = asyncio.get_running_loop()
        session, query = self._desk.session, self._desk.query_name
        if session is None or not query or loop.time() < self._due:
            return
        if self._scenes is not None and (not self._following or session.state != "running"):
            return
        began, asked = loop.time(), self._asked
        self._due = began + 60
        if self._scenes is None:
            self._graph.empty("Reading the window …")
        found = await self._desk.ask(lambda: _scenes(session, query), quiet=True)
        if asked != self._asked or (self._scenes is not None and not self._following):
            return  # another query, or the visitor has gone back in time meanwhile
        self._due = loop.time() + max(_PACE, 3 * (loop.time() - began))
        if found is None or not found.instants:
            self._scenes = self._shown = None
            self._graph.clear_scene()
            self._graph.empty(self._why_none())
            say(self._what, "")
            return
        self._scenes = found
        await self._show(len(found.instants) - 1)

    def _why_none(self) -> str:
        query = self._desk.query
        if query is None or query.evaluated_at is None:
            return "Nothing can be shown yet: no answer was due so far."
        most = self._desk.hub.limits.insight_events
        return (
            f"The window of {clock(query.evaluated_at)}, the last instant that was evaluated, is out of reach: it "
            f"begins before the last {most:,} events, and no more can be read again."
        )

    async def _go(self, place: int) -> None:
        self._follow_it(False)
        if self._scenes is not None:
            await self._show(place)

    async def _show(self, place: int) -> None:
        scenes = self._scenes
        if scenes is None:
            return
        self._place = place = max(0, min(place, len(scenes.instants) - 1))
        at = scenes.instants[place]
        self._line.show(self._place, len(scenes.instants) - 1, clock(at, day=False))
        enabled(self._back, self._place > 0)
        enabled(self._on, self._place < len(scenes.instants) - 1)
        async with self._looking:
            if (scenes, place) != (self._scenes, self._place) or self._shown == (id(scenes), at):
                return
            scene: Scene | None = await self._desk.ask(lambda: scenes.scene(at))
            if scene is not None and scenes is self._scenes:
                self._shown = (id(scenes), at)
                self._draw(scene)

    def _draw(self, scene: Scene) -> None:
        at = scene.at
        nodes, links = vertices_and_links(
            scene.elements, scene.entered, scene.left, scene.matched, self._desk.prefixes(), self._kinds
        )
        self._graph.scene(nodes, links)
        if not nodes:
            self._graph.empty(f"The window holds nothing at {clock(at)}.")
        cut = f", of which {len(scene.elements)} are drawn" if scene.truncated else ""
        moved = f"{len(scene.entered)} came, {len(scene.left)} left, {len(scene.matched)} matched"
        say(self._what, f"at {clock(at)} · {scene.total:,} elements{cut} · {moved}")


def _scenes(session: Any, query: str) -> Scenes:
    from anabranch.insight.scenes import Scenes

    return Scenes(with_instants(session, query, SCENES))
