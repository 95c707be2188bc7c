"""A server in the foreground: its address, its browser, and its end.

Invariant: however it ends, when `serve` returns the port is free, the runs are stopped between two batches, their sinks
are closed and Spark has stopped.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import typer

from anabranch.cli.console import Terminal
from anabranch.cli.signals import interruptible
from anabranch.errors import EngineError
from anabranch.sources.private import private_umask

if TYPE_CHECKING:
    from anabranch.server.hub import Hub


@dataclass(frozen=True, slots=True)
class ServerPlace:
    """The address and the access rules of the server."""

    host: str = "127.0.0.1"
    port: int = 8017
    token: str | None = None
    origins: tuple[str, ...] = ()
    with_ui: bool = True
    opens: bool = False
    is_bounded: bool = True
    """Whether clients read files of some folders only, or somebody has said that they may read all."""

    @property
    def is_loopback(self) -> bool:
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def check(self) -> None:
        """Refuse to open a server to a network without a token, or without bounds on the files that clients may
        read."""
        if not self.is_loopback and self.token is None:
            raise EngineError(
                f"--host {self.host} can be reached from other machines, and there is no token\n"
                "hint: give one (--token-file FILE), or stay on 127.0.0.1 and forward the port (ssh -L)"
            )
        if not self.is_loopback and not self.is_bounded:
            raise EngineError(
                f"--host {self.host} can be reached from other machines, and its clients could read every file that "
                "this user can read\n"
                "hint: say which folder they may read (--root FOLDER), or that it may be any (--any-file)"
            )


def read_token(token: str | None, file: str | None) -> str | None:
    """Read the token that clients must send; the first line of a file is hidden from other users."""
    if token is not None and file is not None:
        raise typer.BadParameter("give one of --token and --token-file", param_hint="--token-file")
    if file is not None:
        lines = Path(file).read_text("utf-8").splitlines()
        token = lines[0].strip() if lines else ""
    if token is not None and not token.strip():
        raise typer.BadParameter("the token is empty", param_hint="--token-file" if file else "--token")
    return token


def bind(host: str, port: int) -> socket.socket:
    """Bind the server's socket; a port in use is reported before anything else starts."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except socket.gaierror as error:
        raise EngineError(f"--host {host}: {error.strerror}\nhint: give an address of this machine") from None
    bound = socket.socket(family, kind, protocol)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(address)
        bound.listen(128)  # from here on no other process can take the port
    except OSError as error:
        bound.close()
        if error.errno == errno.EADDRINUSE:
            raise EngineError(
                f"port {port} of {host} is in use\n"
                f"hint: a server may be running already; else take another port: --port {port + 1}, or --port 0 for any"
            ) from None
        raise EngineError(f"cannot listen on {host} port {port}: {error.strerror}") from None
    return bound


def serve(
    make_hub: Callable[[], Hub],
    place: ServerPlace,
    terminal: Terminal,
    prepare: Callable[[Hub], str] = lambda hub: "/",
    remark: str = "",
) -> None:
    """Serve until Ctrl-C or SIGTERM. `prepare` fills the hub once it runs, and returns the address for the browser."""
    place.check()
    bound = bind(place.host, place.port)
    try:
        with interruptible(), private_umask():
            hub, runs = make_hub(), False
            try:
                hub.start()
                runs = True
                hub.warm_up()
                _listen(hub, place, bound, terminal, prepare(hub), remark)
            except KeyboardInterrupt:
                terminal.note("")
            finally:
                if runs:
                    terminal.note("stopping: the runs end with their batches", style="dim")
                hub.close()
    finally:
        bound.close()


def _listen(hub: Hub, place: ServerPlace, bound: socket.socket, terminal: Terminal, begins: str, remark: str) -> None:
    import uvicorn

    from anabranch.server.app import create_app, uvicorn_config

    app = create_app(hub, token=place.token, origins=place.origins, host=place.host)
    if place.with_ui:
        from anabranch.ui import mount

        mount(app, hub)
    port = bound.getsockname()[1]
    host = f"[{place.host}]" if ":" in place.host else place.host
    address = f"http://{host}:{port}"
    server = uvicorn.Server(uvicorn_config(app, place.host, port))
    page = f"{address}{begins}" if place.with_ui else f"{address}/api/v1"

    def announce() -> None:
        while not server.started and not server.should_exit:
            time.sleep(0.02)
        if not server.started:
            return
        terminal.note(f"anabranch is at {page}", style="bold green")
        if place.token is not None:
            terminal.note("clients show the token (Authorization: Bearer ...); the page takes ?token=...", style="dim")
        if remark:
            terminal.note(remark, style="dim")
        terminal.note("Ctrl-C ends it", style="dim")
        if place.opens and place.with_ui:
            open_browser(page, place.token)

    threading.Thread(target=announce, name="announce", daemon=True).start()
    server.run(sockets=[bound])


def has_browser() -> bool:
    """Return whether a graphical browser can be opened; a text browser would take over the terminal."""
    if sys.platform.startswith(("darwin", "win")):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def open_browser(address: str, token: str | None = None) -> None:
    import webbrowser

    if has_browser():
        shown = "" if token is None else f"{'&' if '?' in address else '?'}{urlencode({'token': token})}"
        webbrowser.open(address + shown)
