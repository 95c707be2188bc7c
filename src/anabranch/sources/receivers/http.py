"""Asking an HTTP server, with the standard library alone: redirects, TLS, user and password of the address.

Invariant: what the address says in confidence (user, password) goes to its own server only, and into no message.
"""

from __future__ import annotations

import base64
import http.client
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit

from anabranch.sources.receivers.base import Refused
from anabranch.sources.receivers.dialing import Dialer

ANSWER_WITHIN = 30.0  # seconds between two signs of life while a server answers
MAX_REDIRECTS = 5
_REDIRECTS = (301, 302, 303, 307, 308)
_PASSING = (408, 425, 429)  # refusals that only mean "later"
_SAFE = "/%:@!$&'()*+,;=~?"


def shown(url: str) -> str:
    """The address without user, password and query."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


@contextmanager
def ask(
    dialer: Dialer,
    url: str,
    headers: Mapping[str, str],
    silence: float | None = ANSWER_WITHIN,
    *,
    confidential: Mapping[str, str] | None = None,
    within: float = ANSWER_WITHIN,
) -> Iterator[http.client.HTTPResponse]:
    """The answer to GET, after redirects; it begins `within` so many seconds, and its body may then fall silent for so
    many, or for ever. `confidential` headers go to the server of the address only.

    Raises OSError when there is no answer, Refused when there never will be one.
    """
    home = urlsplit(url)
    for _ in range(MAX_REDIRECTS + 1):
        parts = urlsplit(url)
        said = {**headers, **(confidential or {})} if _same_server(parts, home) else headers
        connection, response = _exchange(dialer, parts, _with_login(parts, home, said), silence, within)
        try:
            if response.status not in _REDIRECTS or "Location" not in response.headers:
                yield response
                return
            target = urljoin(url, response.headers["Location"])
        finally:
            response.close()
            connection.close()
        if urlsplit(target).scheme not in ("http", "https"):
            raise Refused(f"{shown(url)} sends us to {shown(target)}, which is not HTTP")
        if parts.scheme == "https" and urlsplit(target).scheme == "http":
            raise Refused(f"{shown(url)} sends us to {shown(target)}, which is not encrypted any more")
        url = target
    raise Refused(f"{shown(home.geturl())} sends us from one address to the next, more than {MAX_REDIRECTS} times")


def check_status(response: http.client.HTTPResponse, url: str) -> None:
    """Refuse everything but success: for good when the fault is ours, for now when it is theirs."""
    if 200 <= response.status < 300:
        return
    text = f"{response.status} {response.reason}".strip()
    if 400 <= response.status < 500 and response.status not in _PASSING:
        raise Refused(f"{shown(url)}: {text}\nhint: check the address, and what it asks of its users")
    raise ConnectionError(f"answered {text}")


def _exchange(
    dialer: Dialer, parts: SplitResult, headers: Mapping[str, str], silence: float | None, within: float
) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    secure = parts.scheme == "https"
    host = parts.hostname or "localhost"
    try:
        port = parts.port or (443 if secure else 80)
        dialled = dialer.dial(host, port, host if secure else None)
    except ssl.SSLCertVerificationError as error:
        raise Refused(f"{shown(parts.geturl())}: the certificate is not trusted: {error.verify_message}") from None
    except (ValueError, UnicodeError) as error:
        raise Refused(f"{shown(parts.geturl())}: {error}") from None
    dialled.settimeout(within)
    connection = http.client.HTTPConnection(host, port)
    connection.sock = dialled
    path = quote(parts.path or "/", _SAFE) + (f"?{quote(parts.query, _SAFE)}" if parts.query else "")
    try:
        connection.putrequest("GET", path, skip_host=True, skip_accept_encoding=True)
        connection.putheader("Host", _authority(parts))
        connection.putheader("Connection", "close")
        for name, value in headers.items():
            connection.putheader(name, value.encode())
        connection.endheaders()
        response = connection.getresponse()
        dialled.settimeout(silence)
        return connection, response
    except http.client.HTTPException as error:
        connection.close()
        raise ConnectionError(f"no HTTP answer: {error or type(error).__name__}") from None
    except BaseException:
        connection.close()
        raise


def _authority(parts: SplitResult) -> str:
    authority = parts.netloc.rpartition("@")[2]
    if authority.isascii():
        return authority
    name = (parts.hostname or "").encode("idna").decode()
    return name if parts.port is None else f"{name}:{parts.port}"


def _same_server(parts: SplitResult, home: SplitResult) -> bool:
    return (parts.scheme, parts.hostname, parts.port) == (home.scheme, home.hostname, home.port)


def _with_login(parts: SplitResult, home: SplitResult, headers: Mapping[str, str]) -> Mapping[str, str]:
    login = parts if parts.username else home
    if not login.username or not (_same_server(parts, home) or login is parts):
        return headers
    pair = f"{unquote(login.username)}:{unquote(login.password or '')}"
    return {**headers, "Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
