"""Answers as HTTP requests: one POST an answer, one after the other, until the receiver has acknowledged it.

The receiver can recognise an answer that it has already by the header `Idempotency-Key: query/number`. The acknowledged
answers of a batch are noted in the ledger, so that a batch that comes again begins behind them; only an answer whose
acknowledgement was lost on the way comes twice, with the same key.

Invariant: an answer is posted only after the one before it was acknowledged; none is left out.
"""

from __future__ import annotations

import http.client
import os
import ssl
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import partial
from hashlib import sha256
from typing import Any
from urllib.parse import SplitResult, quote, urlsplit

from anabranch.errors import EngineError, InternalError, StreamError
from anabranch.formats.answers import TypedAnswers, head, json_text
from anabranch.formats.rendered_rows import AnswerRow, RenderedRows
from anabranch.formats.values import to_json
from anabranch.model.masking import REFERENCE
from anabranch.sinks.base import Ledger, RenderedAnswer, Sink
from anabranch.sources.secrets import revealed

DEFAULT_TIMEOUT = 60.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 15.0
_MOST_READ = 64 << 10  # of a response, before its connection is given up
_SHOWN = 200


class AnswerBodies:
    """The bodies of one query's answers: each is one JSON object with its head, its number and its rows by column
    name. A row that the answer before had is not rendered again."""

    def __init__(self) -> None:
        self._answers = TypedAnswers()
        self._columns: tuple[str, ...] = ()
        self._rows: RenderedRows[bytes] = RenderedRows(self._row_texts)

    def of(self, told: RenderedAnswer) -> bytes:
        answer = self._answers.read(told.typed)
        if answer.columns != self._columns:
            self._columns = answer.columns
            self._rows = RenderedRows(self._row_texts)
        first = head(answer.query, answer.at, answer.op, answer.correction, answer.win_start, answer.win_end)
        begin = json_text({"query": first.pop("query"), "number": told.number, **first})
        return b'%s, "rows": [%s]}' % (begin[:-1], b", ".join(self._rows.of(answer.rows)))

    def _row_texts(self, rows: Iterable[AnswerRow]) -> list[bytes]:
        names = self._columns
        return [json_text({name: to_json(value) for name, value in zip(names, row, strict=True)}) for row in rows]


@dataclass(frozen=True, slots=True)
class _Reply:
    status: int
    reason: str
    text: bytes
    location: str
    retry_after: str


class Webhook(Sink):
    """A sink that posts to `url`.

    `timeout` is how many seconds one answer may take, retries included; `token` names the environment variable that
    holds a bearer token. `now` and `pause` are the clock of the retries, in seconds.
    """

    forms = ("typed",)

    def __init__(
        self,
        url: str,
        *,
        timeout: float = DEFAULT_TIMEOUT,
        token: str | None = None,
        now: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._url = _checked(url)
        if not timeout > 0:
            raise EngineError(f"a webhook cannot be given {timeout:g} seconds\nhint: for example timeout=60")
        self._timeout = timeout
        self._token = token
        self._now = now
        self._pause = pause
        # The address may hold secrets of the user's own in its query part: they do not belong into file names.
        self._key = f"webhook {self._place} {sha256(url.encode()).hexdigest()[:16]}"
        self._headers: dict[str, str] = {}
        self._query = ""
        self._connection: http.client.HTTPConnection | None = None
        self._ledger: Ledger | None = None
        self._bodies: dict[str, AnswerBodies] = {}  # by query

    def open(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._headers = {"Content-Type": "application/json; charset=utf-8", "User-Agent": "anabranch"}
        self._query = _revealed(self._url.query, partial(quote, safe=""))
        if self._token is not None:
            self._headers["Authorization"] = f"Bearer {_secret(self._token)}"

    def write(self, batch: int, answers: Sequence[RenderedAnswer]) -> None:
        if self._ledger is None:
            raise InternalError("a sink was written to before it was opened")
        noted: Any = self._ledger.get(self._key)
        done = noted["done"] if noted is not None and noted["batch"] == batch else 0
        for place, told in enumerate(answers[done:], done + 1):
            self._send(told)
            self._ledger.put(self._key, {"batch": batch, "done": place})

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # --- one answer ---------------------------------------------------------------------------------------------------

    def _send(self, told: RenderedAnswer) -> None:
        """Post until it is acknowledged, refused, or the time is over."""
        body = self._bodies.setdefault(told.query, AnswerBodies()).of(told)
        headers = {**self._headers, "Idempotency-Key": f"{quote(told.query, safe='')}/{told.number}"}
        deadline = self._now() + self._timeout
        pause = _FIRST_PAUSE
        while True:
            kept_alive = self._connection is not None
            asked_for = 0.0
            try:
                reply = self._post(body, headers, deadline)
            except (OSError, http.client.HTTPException) as error:
                self.close()
                if isinstance(error, ssl.SSLCertVerificationError):
                    raise EngineError(
                        f"{self._place}: its certificate is not trusted: {error.verify_message}"
                    ) from None
                if kept_alive and self._now() < deadline:
                    continue  # servers close connections that were idle: that says nothing about a new one
                problem = _told(error)
            else:
                if 200 <= reply.status < 300:
                    return
                self._refuse(reply)
                problem = f"{reply.status} {reply.reason}{_shown(reply.text)}"
                asked_for = _seconds(reply.retry_after)
            wait = max(asked_for, pause)
            if self._now() + wait >= deadline:
                hint = f"it asks to wait {asked_for:g} s; " if asked_for else ""
                raise EngineError(
                    f"{self._place} did not take answer {told.number} of `{told.query}` within "
                    f"{self._timeout:g} seconds: {problem}\n"
                    f"hint: {hint}the answer is sent again at the next start; timeout=SECONDS gives it more time"
                )
            self._pause(wait)
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _refuse(self, reply: _Reply) -> None:
        """Raise for a response that waiting cannot improve."""
        if 300 <= reply.status < 400:
            where = f": it points to {reply.location}" if reply.location else ""
            raise EngineError(
                f"{self._place} answers {reply.status} {reply.reason}{where}\n"
                "hint: redirects are not followed, they may lead a token astray; name the address that it points to"
            )
        if reply.status < 500 and reply.status != http.client.TOO_MANY_REQUESTS:
            hint = "\nhint: token=NAME sends a bearer token from the environment variable NAME"
            raise EngineError(
                f"{self._place} refuses the answer: {reply.status} {reply.reason}{_shown(reply.text)}"
                f"{hint if reply.status in (401, 403) and self._token is None else ''}"
            )

    def _post(self, body: bytes, headers: dict[str, str], deadline: float) -> _Reply:
        left = max(deadline - self._now(), 0.001)
        if self._connection is None:
            self._connection = self._connect()
        connection = self._connection
        connection.timeout = left
        if connection.sock is not None:
            connection.sock.settimeout(left)
        target = (self._url.path or "/") + (f"?{self._query}" if self._query else "")
        connection.request("POST", target, body, headers)
        with connection.getresponse() as response:
            location, retry_after = response.getheader("Location", ""), response.getheader("Retry-After", "")
            text = self._text(response, deadline)
            return _Reply(response.status, response.reason, text, location, retry_after)

    def _text(self, response: http.client.HTTPResponse, deadline: float) -> bytes:
        """Return the text behind the status.

        Only the status counts: long, slow or torn text only costs the connection.
        """
        text = b""
        try:
            while len(text) < _MOST_READ and self._now() < deadline:
                more = response.read1(_MOST_READ)
                if not more:
                    return text
                text += more
        except (OSError, http.client.HTTPException):
            pass
        self.close()
        return text

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self._url.hostname or "", self._url.port
        if self._url.scheme == "https":
            return http.client.HTTPSConnection(host, port, context=ssl.create_default_context())
        return http.client.HTTPConnection(host, port)

    @property
    def _place(self) -> str:
        """The address without its query part, which may hold secrets of the user's own."""
        return f"{self._url.scheme}://{self._url.netloc}{self._url.path}"


def _checked(url: str) -> SplitResult:
    example = "write it like https://example.org/answers"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise EngineError(f"`{url}` is no address: {error}\nhint: {example}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise EngineError(f"`{url}` is no address of a webhook\nhint: {example}")
    if parts.username is not None:
        raise EngineError(
            f"the address of {parts.hostname} holds a user's name or password\n"
            "hint: put the secret into an environment variable and name it: token=NAME"
        )
    if any(ord(letter) <= 32 or ord(letter) > 126 for letter in parts.path + parts.query):
        raise EngineError(f"`{url}` holds a character that must be percent-encoded\nhint: a space is %20")
    return parts


def _revealed(text: str, encode: Callable[[str], str] = str) -> str:
    try:
        return revealed(text, encode=encode)
    except StreamError as error:
        raise EngineError(str(error)) from None


def _secret(name: str) -> str:
    """The token behind `token=`: a reference, or the name of a variable."""
    value = _revealed(name).strip() if REFERENCE.search(name) else os.environ.get(name, "").strip()
    if not value:
        raise EngineError(
            f"the environment variable `{name}` is not set, and the webhook's token should be in it\n"
            f"hint: export {name}=...; token= takes the variable's name, never the token itself"
        )
    if not value.isascii() or not value.isprintable():
        raise EngineError(
            f"the environment variable `{name}` holds no token: it has characters that no header may have"
        )
    return value


def _seconds(retry_after: str) -> float:
    """Return the seconds of Retry-After, given as seconds or a date; a malformed value is ignored."""
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError):
        return 0.0


def _shown(text: bytes) -> str:
    """The beginning of a response, on one line."""
    shown = " ".join(text[:_SHOWN].decode(errors="replace").split())
    return f": {shown}" if shown else ""


def _told(error: Exception) -> str:
    match error:
        case TimeoutError():
            return "no response"
        case ConnectionRefusedError():
            return "nothing listens there"
        case http.client.RemoteDisconnected():
            return "it closed the connection without a response"
        case OSError():
            return error.strerror or str(error)
    return f"it does not speak HTTP: {error!r}"
