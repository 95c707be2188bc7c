"""The monitor's page: write a query, see the stream, the answers, and why. One page, live, over the server's hub.

Invariant: nothing is fetched from other sites; all files that the browser loads come with the installed packages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastapi import FastAPI

    from anabranch.server.hub import Hub

__all__ = ["mount"]


def mount(app: FastAPI, hub: Hub) -> None:
    """Serve the page at / of the application; the application's own routes are unchanged."""
    from anabranch.ui.mounting import mount_page

    mount_page(app, hub)
