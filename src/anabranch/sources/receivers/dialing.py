"""Connections that can be given up: connecting, and waiting for a silent peer, end when the receiver shall stop.

Invariant: after `cut` no thread stays blocked in a connection that this dialer made.
"""

from __future__ import annotations

import os
import selectors
import socket
import ssl
import threading
import time
from contextlib import suppress

CONNECT_WITHIN = 10.0  # seconds
_LOOK_EVERY = 0.1
_KEEPALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))


class Dialer:
    """Makes one connection at a time."""

    def __init__(self, stopping: threading.Event) -> None:
        self._stopping = stopping
        self._guard = threading.Lock()
        # A second handle of the connection's socket: shutting it down wakes a blocked reader, also inside TLS.
        self._handle: socket.socket | None = None

    def dial(self, host: str, port: int, tls_name: str | None = None) -> socket.socket:
        """A connected, blocking socket; with TLS when the peer's certificate must bear a name. Raises OSError."""
        raw = self._connected(host, port)
        try:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for option, value in _KEEPALIVE:
                if hasattr(socket, option):  # a peer that vanished without a word is noticed after a minute
                    raw.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
            self._hold(raw)
            raw.settimeout(CONNECT_WITHIN)
            if tls_name is None:
                connection = raw
            else:
                connection = ssl.create_default_context().wrap_socket(raw, server_hostname=tls_name)
        except BaseException:
            raw.close()
            raise
        connection.settimeout(None)
        return connection

    def cut(self) -> None:
        """Break the connection, from any thread."""
        with self._guard:
            if self._handle is not None:
                with suppress(OSError):
                    self._handle.shutdown(socket.SHUT_RDWR)

    def release(self) -> None:
        """Forget the connection, which its user has closed."""
        with self._guard:
            if self._handle is not None:
                self._handle.close()
                self._handle = None

    def _hold(self, connection: socket.socket) -> None:
        self.release()
        with self._guard:
            self._handle = connection.dup()
        if self._stopping.is_set():  # a cut that came before the handle was there
            self.cut()

    def _connected(self, host: str, port: int) -> socket.socket:
        failure: OSError = OSError(f"{host} has no address")
        for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            attempt = socket.socket(family, kind, protocol)
            try:
                self._connect(attempt, address)
                return attempt
            except OSError as error:
                attempt.close()
                failure = error
            if self._stopping.is_set():
                break
        raise failure

    def _connect(self, attempt: socket.socket, address: object) -> None:
        attempt.setblocking(False)
        deadline = time.monotonic() + CONNECT_WITHIN
        code = attempt.connect_ex(address)  # type: ignore[arg-type]
        with selectors.DefaultSelector() as selector:
            selector.register(attempt, selectors.EVENT_WRITE)
            while not selector.select(_LOOK_EVERY):
                if self._stopping.is_set():
                    raise ConnectionAbortedError("stopped while connecting")
                if time.monotonic() > deadline:
                    raise TimeoutError(f"no answer within {CONNECT_WITHIN:.0f} s")
        code = attempt.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise OSError(code, os.strerror(code))
