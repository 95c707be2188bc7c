"""Debian's Chromium and a server with the page, for tests and for pictures."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Playwright

ROOT = Path(__file__).parents[2]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
_ARGUMENTS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
    # A browser that calls home would be taken for a page that does.
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic"),
)


def launched(playwright: Playwright) -> Browser:
    return playwright.chromium.launch(executable_path=CHROMIUM, args=list(_ARGUMENTS))


def opened(
    browser: Browser, width: int, height: int, scheme: Literal["light", "dark"], patience: float = 120_000
) -> Page:
    """A page of its own; `patience` in milliseconds."""
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    context.set_default_timeout(patience)
    return context.new_page()


@contextmanager
def monitor(folder: Path, engine: str = "local", *, demo: bool = False) -> Iterator[str]:
    """A server with the page in a process of its own, on a free port, empty or with the demo; gives its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "log").open("w") as log:
        what = ["demo", "auctions", "--no-open"] if demo else ["serve"]
        command = [sys.executable, "-m", "anabranch", *what, "--engine", engine, "--port", str(port)]
        command += ["--data", str(folder / "data")]
        server = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT)
        try:
            _wait_for(port, server, folder / "log")
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait(60)


def _wait_for(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        if server.poll() is not None:
            raise RuntimeError(f"the server ended: {log.read_text()}")
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/health", timeout=5).close()
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError("the server does not answer")
