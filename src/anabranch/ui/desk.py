"""The desk: the session, query and tab that one visitor has chosen, and the settings that the browser stores.

The session, the query and the tab are part of the address, so that it can be shared; texts, ticked columns and the
theme are stored by the browser.

Invariant: the server keeps nothing of a visitor once the page is closed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

from nicegui import run, ui

from anabranch.ui.pieces import failed
from anabranch.ui.values import COMMON_PREFIXES

if TYPE_CHECKING:
    from anabranch.server.hub import Hub
    from anabranch.server.queries import QueryStatus
    from anabranch.server.session import LiveSession

Found = TypeVar("Found")
STORE = "anabranch"


class Desk:
    def __init__(self, hub: Hub, memory: dict[str, Any], session: str, query: str, tab: str) -> None:
        self.hub = hub
        self._client = ui.context.client
        self._memory = memory
        self.session_name = session
        self.query_name = query
        self.tab = tab
        self._watchers: list[Callable[[], None]] = []
        self.queries: list[QueryStatus] = []

    # --- choice -------------------------------------------------------------------------------------------------

    @property
    def session(self) -> LiveSession | None:
        return next((one for one in self.hub.sessions() if one.name == self.session_name), None)

    def query_text(self) -> str:
        """The text of the chosen query as it runs."""
        found = self.query
        return "" if found is None else found.text

    def prefixes(self) -> dict[str, str]:
        """Return the prefixes that shorten IRIs: common ones and those of the query."""
        found = self.query
        return {} if found is None else {**COMMON_PREFIXES, **found.prefixes}

    @property
    def query(self) -> QueryStatus | None:
        return next((one for one in self.queries if one.name == self.query_name), None)

    def choose(self, *, session: str | None = None, query: str | None = None, tab: str | None = None) -> None:
        """Change the choice, update the address, and notify all watchers."""
        if session is not None and session != self.session_name:
            self.session_name, self.query_name = session, ""
        if query is not None:
            self.query_name = query
        if tab is not None:
            self.tab = tab
        self._settle()
        parts = {"session": self.session_name, "query": self.query_name, "tab": self.tab}
        address = "?" + "&".join(f"{key}={quote(value)}" for key, value in parts.items() if value)
        ui.run_javascript(f"history.replaceState(null, '', {json.dumps(address)})")
        for watcher in self._watchers:
            watcher()

    def _settle(self) -> None:
        """Replace a chosen session or query that no longer exists by an existing one."""
        session = self.session
        if session is None:
            names = [one.name for one in self.hub.sessions()]
            self.session_name = names[0] if names else ""
            session = self.session
        self.queries = session.queries() if session is not None else []
        names = [one.name for one in self.queries]
        if self.query_name not in names:
            self.query_name = names[0] if names else ""

    def watch(self, watcher: Callable[[], None]) -> None:
        """Register a callback for every change of the choice."""
        self._watchers.append(watcher)

    # --- memory -------------------------------------------------------------------------------------------------

    def recall(self, key: str, default: Any = None) -> Any:
        return self._memory.get(key, default)

    def remember(self, key: str, value: Any) -> None:
        if self._memory.get(key) == value:
            return
        self._memory[key] = value
        ui.run_javascript(
            f"const held = JSON.parse(localStorage.getItem({STORE!r}) || '{{}}');"
            f"held[{json.dumps(key)}] = {json.dumps(value)};"
            f"localStorage.setItem({STORE!r}, JSON.stringify(held));"
        )

    # --- calls of the server ------------------------------------------------------------------------------------

    async def ask(self, what: Callable[[], Found], *, quiet: bool = False) -> Found | None:
        """Call the server in a thread; a failure is shown, and returns None. Cancels the task if the page was closed
        meanwhile."""
        found = await self.attempt(what)
        if isinstance(found, Exception):
            if not quiet:
                failed(found)
            return None
        return found

    async def attempt(self, what: Callable[[], Found]) -> Found | Exception:
        """Call the server in a thread like `ask`, but return a failure to the caller."""
        found: Found | Exception | None
        try:
            found = await run.io_bound(what)
        except Exception as error:
            found = error
        if self._client.is_deleted:
            raise asyncio.CancelledError
        return found  # type: ignore[return-value]  # None only where `what` gives it
