"""HTTP requests: httpx parses addresses and answers, httpcore below it uses connections of a dialer.

No client of httpx is used: it would log every address with the secrets in it. Failures of a connection stay OSErrors. A
start without HTTP does not load this module.

Invariant: the secrets of an address (user, password) go to its own server only, and into no message.
"""

from __future__ import annotations

import base64
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpcore
import httpx

from anabranch.sources.receivers.base import PeerRefusal
from anabranch.sources.receivers.dialing import CONNECT_WITHIN, Dialer
from anabranch.sources.receivers.http import ANSWER_WITHIN, shown

MAX_REDIRECTS = 5


@contextmanager
def ask(
    dialer: Dialer,
    url: str,
    headers: Mapping[str, str],
    silence: float | None = ANSWER_WITHIN,
    *,
    confidential: Mapping[str, str] | None = None,
    within: float = ANSWER_WITHIN,
) -> Iterator[httpx.Response]:
    """Open the answer to GET, after redirects.

    It begins `within` so many seconds, and its body may then be silent for `silence` seconds, or for ever.
    `confidential` headers go to the server of the address only.

    Raises OSError when there is no answer, or only a part of one, and Refused when there never will be one.
    """
    home = target = _parsed(url, shown(url))
    for _ in range(MAX_REDIRECTS + 1):
        at_home = _server(target) == _server(home)
        secret = confidential or {} if at_home else {}
        login = home if at_home and not target.username else target
        with _exchange(dialer, target, {**headers, **secret, **_login(login)}, silence, within) as response:
            if not response.has_redirect_location:
                yield response
                return
            target = _redirected(target, response.headers["Location"])
    raise PeerRefusal(f"{shown(url)} sends us from one address to the next, more than {MAX_REDIRECTS} times")


@contextmanager
def _exchange(
    dialer: Dialer, url: httpx.URL, headers: Mapping[str, str], silence: float | None, within: float
) -> Iterator[httpx.Response]:
    patience: dict[str, float | None] = {"connect": CONNECT_WITHIN, "read": within, "write": within}
    sent: dict[bytes | str, bytes | str] = {"Host": url.netloc, "Connection": "close"}
    sent |= {name: value.strip().encode() for name, value in headers.items()}
    trusted = ssl.create_default_context() if url.scheme == "https" else None
    problem = "no HTTP answer"
    try:
        address = httpcore.URL(str(url))
    except ValueError as error:  # a port that there cannot be
        raise PeerRefusal(f"{shown(str(url))}: {error}") from None
    try:
        with (
            httpcore.ConnectionPool(trusted, network_backend=_Dialled(dialer)) as pool,
            pool.stream("GET", address, headers=sent, extensions={"timeout": patience}) as answer,
        ):
            patience["read"] = silence  # how long the body may be silent
            problem = "the answer was cut short"
            parts = answer.iter_stream()
            yield httpx.Response(answer.status, headers=answer.headers, content=parts, extensions=answer.extensions)
    except ssl.SSLCertVerificationError as error:
        raise PeerRefusal(f"{shown(str(url))}: the certificate is not trusted: {error.verify_message}") from None
    except httpcore.RemoteProtocolError as error:
        raise ConnectionError(f"{problem}: {error}") from None
    except httpcore.LocalProtocolError as error:  # a name or a header that cannot be sent
        raise PeerRefusal(f"{shown(str(url))}: {error}") from None


def _parsed(url: str, at: str) -> httpx.URL:
    try:
        return httpx.URL(url)
    except httpx.InvalidURL as error:
        raise PeerRefusal(f"{at}: {error}") from None


def _redirected(url: httpx.URL, location: str) -> httpx.URL:
    at = shown(str(url))
    target = url.join(_parsed(location, at))
    if target.scheme not in ("http", "https"):
        raise PeerRefusal(f"{at} sends us to {shown(str(target))}, which is not HTTP")
    if url.scheme == "https" and target.scheme == "http":
        raise PeerRefusal(f"{at} sends us to {shown(str(target))}, which is not encrypted any more")
    return target


def _server(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def _login(url: httpx.URL) -> dict[str, str]:
    pair = f"{url.username}:{url.password}".encode()
    return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"} if url.username else {}


class _Dialled(httpcore.NetworkBackend):
    """The dialer's connections, which can be cut, for httpcore."""

    def __init__(self, dialer: Dialer) -> None:
        self._dialer = dialer

    def connect_tcp(self, host: str, port: int, *_: Any, **__: Any) -> httpcore.NetworkStream:
        try:
            return _Connection(self._dialer.dial(host, port))
        except UnicodeError as error:
            raise httpcore.LocalProtocolError(str(error)) from None


class _Connection(httpcore.NetworkStream):
    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        self._connection.settimeout(timeout)
        return self._connection.recv(max_bytes)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._connection.settimeout(timeout)
        self._connection.sendall(buffer)

    def close(self) -> None:
        self._connection.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        self._connection.settimeout(timeout)
        return _Connection(ssl_context.wrap_socket(self._connection, server_hostname=server_hostname))
