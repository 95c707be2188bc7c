"""Mounting of the page into an application.

Invariant: a closed page is released within seconds: its timers end, its elements and recordings are dropped.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

# NiceGUI creates a folder in the working directory unless this is set; the page stores nothing on the server.
os.environ.setdefault("NICEGUI_STORAGE_PATH", os.devnull + ".nicegui")

from nicegui import app as pages
from nicegui import ui

from anabranch.ui.desk import STORE
from anabranch.ui.page import Monitor
from anabranch.ui.pieces import LOGO, raw, tag, words

if TYPE_CHECKING:
    from fastapi import FastAPI

    from anabranch.server.hub import Hub

ASSETS = Path(__file__).parent / "assets"
_PATH = "/_anabranch"
_ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 28 28"><rect width="28" height="28" rx="7" fill="#0b7a75"/>'
    '<g fill="none" stroke="#fff" stroke-width="2.1" stroke-linecap="round"><path d="M5 9c5 0 5 5 9 5s5-5 9-5"/>'
    '<path d="M5 14h18"/><path d="M5 19c5 0 5-5 9-5s5 5 9 5"/></g></svg>'
)
# Sent on load and at every change of the theme, by the button or by the system.
_WATCH_THEME = """
let told = null;  // the class is set again and again to what it is
const tell = () => {
  const dark = document.body.classList.contains('body--dark');
  if (dark !== told) emitEvent('ab-dark', (told = dark));
};
new MutationObserver(tell).observe(document.body, {attributes: true, attributeFilter: ['class']});
tell();
"""


def mount_page(app: FastAPI, hub: Hub) -> None:
    style = ASSETS / "monitor.css"
    version = hashlib.sha256(style.read_bytes()).hexdigest()[:12]
    pages.add_static_files(_PATH, ASSETS)

    @ui.page("/", title="Anabranch", response_timeout=30)
    async def monitor(session: str = "", query: str = "", tab: str = "") -> None:
        ui.add_head_html(f'<link rel="stylesheet" href="{_PATH}/monitor.css?{version}">')
        with tag("div", "ab-skeleton", role="status") as skeleton, tag("div", "ab-brand"):
            raw(LOGO)
            words("span", "Anabranch", "ab-quiet")
        await ui.context.client.connected()
        memory = await _remembered()
        if ui.context.client.is_deleted:
            return  # the page was fetched but never opened
        skeleton.delete()
        page = Monitor(hub, memory, session, query, tab)
        page.build()
        ui.on("ab-dark", lambda event: page.dark(bool(event.args)))
        ui.run_javascript(_WATCH_THEME)

    ui.run_with(
        app,
        title="Anabranch",
        favicon=_ICON,
        dark=None,
        language="en-US",
        tailwind=False,
        binding_refresh_interval=None,
        reconnect_timeout=30.0,
        show_welcome_message=False,
    )


async def _remembered() -> dict[str, Any]:
    """Return the settings that the browser has stored; empty if it does not answer."""
    if ui.context.client.is_deleted:
        return {}
    try:
        found = await ui.run_javascript(
            f"try {{ return JSON.parse(localStorage.getItem({STORE!r}) || '{{}}') }} catch {{ return {{}} }}",
            timeout=10,
        )
    except TimeoutError:
        return {}
    return dict(found) if isinstance(found, dict) else {}
