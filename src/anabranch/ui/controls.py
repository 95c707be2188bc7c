"""Start, pause and stop; the choice of the stream's source and rate.

Invariant: only queries that the server has accepted run; a refusal is underlined in the text, or shown as a message.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from nicegui import ui
from nicegui.element import Element

from anabranch.errors import QueryError
from anabranch.server.problems import EXISTS, ServerError
from anabranch.ui.components import ChoiceList
from anabranch.ui.desk import Desk
from anabranch.ui.editor import Editor
from anabranch.ui.pieces import argument, button, enabled, failed, shown, tag
from anabranch.ui.presets import RATES, Preset, at_rate, prepared, rate_of

if TYPE_CHECKING:
    from anabranch.server.session import LiveSession
    from anabranch.server.streams import StreamInfo


class Controls:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.editor: Editor | None = None
        self._lock = asyncio.Lock()

    def build(self) -> Element:
        with tag("div", "ab-card-foot", role="group", aria_label="run the query") as foot:
            self._start = button("Start", self.start, icon="play", classes="primary", hint="Run this text (Ctrl+Enter)")
            self._pause = button("Pause", self._pause_it, icon="pause", hint="Hold the session between two batches")
            self._stop = button("Stop", self._stop_it, icon="stop", hint="Stop the session")
            tag("div", "ab-grow")
            self._source = ChoiceList("stream", {})
            self._source.on("pick", lambda event: self._choose_source(argument(event)))
            self._rate = ChoiceList("speed", RATES)
            self._rate.on("pick", lambda event: self._at_rate(argument(event)))
        self._chosen = ""
        return foot

    # --- what is seen -------------------------------------------------------------------------------------------

    def show(self, streams: list[StreamInfo]) -> None:
        session = self._desk.session
        state = "" if session is None else session.state
        busy = self._lock.locked()
        enabled(self._start, not busy and session is not None)
        enabled(self._pause, not busy and state == "running")
        enabled(self._stop, not busy and state in ("running", "paused", "failed"))
        names = {one.name: one.name for one in streams if one.kind != "query"}
        if self._chosen not in names:
            self._chosen = next(iter(names), "")
        self._source.offer(names, self._chosen)
        shown(self._source, len(names) > 1)
        address = next((one.address or "" for one in streams if one.name == self._chosen), "")
        rate = rate_of(address)
        shown(self._rate, rate is not None)
        if rate is not None:
            self._rate.offer(RATES if rate in RATES else {rate: f"{rate} / s", **RATES}, rate)

    def _choose_source(self, name: str) -> None:
        self._chosen = name

    # --- running ------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Register the text as a query, or replace the query of its name; then start the session."""
        async with self._alone():
            session, editor = self._desk.session, self.editor
            if session is None or editor is None:
                return
            text = editor.text
            if text.strip() and text != self._desk.query_text():
                name = await self._register(session, text)
                if name is None:
                    return
                self._desk.choose(query=name)
                editor.settled()
            elif (held := self._desk.query) is not None and held.state in ("paused", "failed"):
                await self._desk.ask(lambda: session.resume_query(held.name))
            await self._desk.ask(session.start)

    async def _register(self, session: LiveSession, text: str, *, replace: bool = True) -> str | None:
        found = await self._desk.attempt(lambda: session.register(text, replace=replace))
        if isinstance(found, ServerError) and found.code == EXISTS and not replace:
            ui.notify(
                "A query of this name runs with another text. Press Start to let the example take its place.",
                type="info",
                position="top",
            )
            return None
        if isinstance(found, Exception):
            if isinstance(found, QueryError) and self.editor is not None:
                diagnostics = await self._desk.ask(lambda: session.check(text), quiet=True)
                if diagnostics:
                    self.editor.tell(diagnostics)
                    ui.notify("The query is not right yet: see what is underlined.", type="warning", position="top")
                    return None
            failed(found)
            return None
        return found[0].name if found else None

    async def _pause_it(self) -> None:
        session = self._desk.session
        if session is not None:
            await self._desk.ask(session.pause)

    async def _stop_it(self) -> None:
        session = self._desk.session
        if session is not None:
            await self._desk.ask(session.stop)

    # --- where from ---------------------------------------------------------------------------------------------

    async def _at_rate(self, rate: str) -> None:
        """Change the rate: this replaces the stream, so the stream and the queries that read it restart from
        scratch."""
        async with self._alone():
            session = self._desk.session
            found = session.streams() if session is not None else []
            address = next((one.address for one in found if one.name == self._chosen), None)
            if session is None or address is None:
                return
            stream, wanted = self._chosen, at_rate(address, rate)
            await self._desk.ask(lambda: _readdressed(session, stream, wanted))
            self._desk.choose()

    async def take(self, preset: Preset) -> None:
        """Open a preset's session, created if necessary with its streams and graphs, and run the preset there. A query
        of the same name with another text is not changed."""
        async with self._alone():
            made = await self._desk.ask(lambda: prepared(self._desk.hub, preset))
            if made is None or self.editor is None:
                return
            text = preset.text()
            known = next((one.name for one in made.queries() if one.text == text), None)
            self._desk.choose(session=made.name, query=known)
            self.editor.show(text)
            name = known or await self._register(made, text, replace=False)
            if name is None:
                return
            self._desk.choose(query=name)
            self.editor.settled()
            if made.query(name).state in ("paused", "failed"):
                await self._desk.ask(lambda: made.resume_query(name))
            await self._desk.ask(made.start)

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Run one action at a time; Start is disabled meanwhile."""
        async with self._lock:
            enabled(self._start, False)
            try:
                yield
            finally:
                enabled(self._start, self._desk.session is not None)


def _readdressed(session: LiveSession, stream: str, address: str) -> None:
    """Change a stream's address. Its readers are paused meanwhile."""
    reading = [one.name for one in session.queries() if one.state != "paused"]
    for name in reading:
        session.pause_query(name)
    try:
        session.remove_stream(stream)
        session.add_stream(stream, address)
    finally:
        for name in reading:
            session.resume_query(name)
