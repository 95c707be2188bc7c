"""Access control: checks the token, the page's cookie, the Origin, the Host and the size of each request.

A token comes as `Authorization: Bearer ...`. Browsers cannot set headers on an EventSource or a WebSocket: there, and
nowhere else in the interface, `?token=...` is accepted. The page is opened with `?token=...` once, or shows a form for
the token: the response sets a cookie, which no script can read and no other site can send, and redirects to the address
without the token.

A page of another site may send requests to a server on the same machine. Its Origin header reveals it. If it points a
host name of its own to 127.0.0.1 (DNS rebinding), the Host header reveals it: a server on the loopback interface does
not answer to that name. Browsers let pages of known origins read the responses, because CORS headers allow it.

Invariant: a refused request has not been read and has changed nothing; secrets are compared in constant time; a token
is never logged.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus, urlencode, urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from anabranch.server.problems import (
    BODY_TOO_LARGE,
    NO_TOKEN,
    OTHER_HOST,
    OTHER_ORIGIN,
    ServerError,
    error_dict,
    status_of,
)
from anabranch.server.reference import token_page

LOOPBACK = ("localhost", "127.0.0.1", "::1")
API = "/api/"
OPEN = ("/api/v1/health",)
COOKIE = "anabranch"
_LIVE = ("/live",)
_LONGEST_FORM = 4096  # bytes


class Guard:
    """The outermost layer of the application. `host` is the address that the server listens on."""

    def __init__(self, app: ASGIApp, token: str | None, origins: Iterable[str], host: str, body_bytes: int) -> None:
        self._app = app
        self._token = None if token is None else token.encode()
        self._cookie = (
            None if token is None else hmac.new(token.encode(), b"cookie", hashlib.sha256).hexdigest().encode()
        )
        self._origins = frozenset(origin.rstrip("/").lower() for origin in origins)
        self._is_local = host in LOOPBACK or host.startswith("127.")
        self._body_bytes = body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        given = _take_token(scope)
        try:
            self._check_host(headers)
            self._check_origin(headers, scope)
            if scope["type"] == "http" and headers.get(b"origin", "").lower() in self._origins:
                send = _shared(send, headers[b"origin"])
                if scope["method"] == "OPTIONS" and b"access-control-request-method" in headers:
                    await _allow(send)  # a browser sends its preflight request without the token
                    return
            if self._token is not None and not self._has_token(headers, scope, given):
                if self._is_page(scope) and self._matches(given):
                    await _lead_on(scope, send, self._cookie or b"")
                    return
                if self._is_page(scope) and "text/html" in headers.get(b"accept", ""):
                    await _ask_for_token(send)
                    return
                if self._is_form(scope, headers):
                    given = dict(parse_qsl((await _body(receive)).decode("latin-1"))).get("token", "")
                    if self._matches(given):
                        await _lead_on(scope, send, self._cookie or b"")
                    else:
                        await _ask_for_token(send, wrong=True)
                    return
                hint = "send it as Authorization: Bearer TOKEN; the page takes ?token=TOKEN"
                raise ServerError(NO_TOKEN, "this server asks for its token", hint)
            self._check_size(headers)
        except ServerError as error:
            await refuse(scope, receive, send, error)
            return
        await self._app(scope, self._counted(receive) if scope["type"] == "http" else receive, send)

    # --- origin and host --------------------------------------------------------------------------------------------

    def _check_host(self, headers: dict[bytes, str]) -> None:
        if self._is_local and _name_of(headers.get(b"host", "")) not in LOOPBACK:
            shown = headers.get(b"host", "")[:80]
            raise ServerError(OTHER_HOST, f"this server is not `{shown}`", "ask for localhost or 127.0.0.1")

    def _check_origin(self, headers: dict[bytes, str], scope: Scope) -> None:
        origin = headers.get(b"origin")
        if origin is None or origin.lower() in self._origins:
            return
        scheme = {"ws": "http", "wss": "https"}.get(scope["scheme"], scope["scheme"])
        if origin.lower() != f"{scheme}://{headers.get(b'host', '')}".lower():
            hint = f"start the server with --origin {origin[:80]}"
            raise ServerError(OTHER_ORIGIN, f"pages of {origin[:80]} may not ask", hint)

    # --- token and cookie -------------------------------------------------------------------------------------------

    def _has_token(self, headers: dict[bytes, str], scope: Scope, in_address: str) -> bool:
        if scope["path"] in OPEN:
            return True
        scheme, _, given = headers.get(b"authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._matches(given.strip()):
            return True
        if scope["path"].startswith(API) and scope["path"].endswith(_LIVE) and self._matches(in_address):
            return True
        return _same(_cookie(headers.get(b"cookie", "")), self._cookie or b"")

    def _matches(self, given: str) -> bool:
        return self._token is not None and _same(given.encode("utf-8", "replace"), self._token)

    def _is_page(self, scope: Scope) -> bool:
        return scope["type"] == "http" and scope["method"] == "GET" and not scope["path"].startswith((API, "/metrics"))

    def _is_form(self, scope: Scope, headers: dict[bytes, str]) -> bool:
        """Return whether a request submits the form for the token."""
        return (
            scope["type"] == "http"
            and scope["method"] == "POST"
            and not scope["path"].startswith((API, "/metrics"))
            and headers.get(b"content-type", "").startswith("application/x-www-form-urlencoded")
        )

    # --- size -------------------------------------------------------------------------------------------------------

    def _check_size(self, headers: dict[bytes, str]) -> None:
        length = headers.get(b"content-length", "0")
        if length.isdigit() and int(length) > self._body_bytes:
            raise self._too_large()

    def _too_large(self) -> ServerError:
        return ServerError(BODY_TOO_LARGE, f"a body has at most {self._body_bytes:,} bytes", "send it in parts")

    def _counted(self, receive: Receive) -> Receive:
        """Wrap `receive` to count the bytes of a body while they arrive; needed for a body without a length."""
        size = 0

        async def counted() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > self._body_bytes:
                raise self._too_large()
            return message

        return counted


async def _ask_for_token(send: Send, wrong: bool = False) -> None:
    body = token_page(wrong).encode()
    headers = [
        (b"content-type", b"text/html; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
    ]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _body(receive: Receive) -> bytes:
    """Read a form's body, up to `_LONGEST_FORM` bytes."""
    found = b""
    while len(found) <= _LONGEST_FORM:
        message = await receive()
        found += message.get("body", b"")
        if not message.get("more_body"):
            break
    return found


async def refuse(scope: Scope, receive: Receive, send: Send, error: ServerError) -> None:
    said = error_dict(error)
    if scope["type"] == "websocket":
        await receive()  # the handshake
        await send({"type": "websocket.close", "code": 1008, "reason": said["message"][:120]})
        return
    body = json.dumps({"error": said}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if said["code"] == NO_TOKEN:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status_of(said), "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _shared(send: Send, origin: str) -> Send:
    """Wrap `send` so that a page of that origin may read the responses."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            allowed = [(b"access-control-allow-origin", origin.encode("latin-1")), (b"vary", b"Origin")]
            message = {**message, "headers": [*message.get("headers", ()), *allowed]}
        await send(message)

    return sent


async def _allow(send: Send) -> None:
    headers = [
        (b"access-control-allow-methods", b"GET, POST, PUT, DELETE"),
        (b"access-control-allow-headers", b"Authorization, Content-Type, Last-Event-ID"),
        (b"access-control-max-age", b"600"),
    ]
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


async def _lead_on(scope: Scope, send: Send, cookie: bytes) -> None:
    """Redirect to the same page without the token in its address."""
    rest = scope["query_string"].decode("latin-1")
    place = quote("/" + scope["path"].lstrip("/")) + (f"?{rest}" if rest else "")
    secure = b"; Secure" if scope["scheme"] == "https" else b""
    headers: list[tuple[bytes, Any]] = [
        (b"location", place.encode()),
        (b"set-cookie", COOKIE.encode() + b"=" + cookie + b"; Path=/; HttpOnly; SameSite=Strict" + secure),
        (b"content-length", b"0"),
        (b"cache-control", b"no-store"),
        (b"referrer-policy", b"no-referrer"),
    ]
    await send({"type": "http.response.start", "status": 303, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def _take_token(scope: Scope) -> str:
    """Remove the token from a request's address and return it. Code behind the guard, such as logs and error pages of
    libraries, sees the address without the token."""
    pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    found = dict(pairs).get("token")
    if found is not None:
        scope["query_string"] = urlencode([pair for pair in pairs if pair[0] != "token"]).encode()
    return found or ""


class WithoutToken(logging.Filter):
    """A log filter that removes a token from log lines of any library."""

    def __init__(self, token: str) -> None:
        super().__init__()
        self._secrets = sorted({token, quote(token, safe=""), quote_plus(token), quote(token)}, key=len, reverse=True)

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if any(secret in message for secret in self._secrets):
            for secret in self._secrets:
                message = message.replace(secret, "***")
            record.msg, record.args = message, ()
        return True


def _name_of(host: str) -> str:
    """Return the name in a Host header, without port and brackets."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def _cookie(header: str) -> bytes:
    try:
        found = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return b""
    return b"" if found is None else found.value.encode("utf-8", "replace")


def _same(given: bytes, secret: bytes) -> bool:
    # Hashes have equal length, so timing does not reveal the length of the secret.
    same = hmac.compare_digest(hashlib.sha256(given).digest(), hashlib.sha256(secret).digest())
    return bool(secret) and same
