"""Live push of results to clients: server-sent events for one query, a WebSocket for any number of queries.

    GET .../queries/Q/results/live     id: 17 / event: result / data: {...}; Last-Event-ID or ?after= goes on
    WS  .../live                       {"subscribe": "Q" | ["Q"] | "*", "after": 16 | {"Q": 16}}, {"unsubscribe": ..}
                                       {"type": "results", "results": [...]}, "subscribed", "ping", "error"

Results that arrive together are sent together, and the bytes of such a message are made once for all clients at the
same position.

Invariant: a client that does not read is disconnected, with the reason if it can still be sent; it delays no other
client.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from anabranch.errors import AnabranchError
from anabranch.server.limits import Limits
from anabranch.server.problems import BAD_REQUEST, NOT_KEPT, TOO_SLOW, ServerError, error_dict
from anabranch.server.results import Result
from anabranch.server.session import LiveSession
from anabranch.server.subscriptions import Subscription, too_slow

PING = 15.0  # seconds of silence
TRY_AGAIN = 1013  # the WebSocket close code for a client that may reconnect
REFUSED = 1008
_MOST_ASKED = 64 << 10  # bytes of a client's message
_REMEMBERED = 32
_PARTING = 10.0  # seconds in which a client may read why it was disconnected


class JoinedMessages:
    """A cache of messages that join several results, kept while other clients are likely to need the same message."""

    def __init__(self, join: Callable[[Sequence[Result]], Any]) -> None:
        self._join = join
        self._made: WeakKeyDictionary[LiveSession, OrderedDict[Any, Any]] = WeakKeyDictionary()

    def of(self, session: LiveSession, batch: Sequence[Result]) -> Any:
        made = self._made.setdefault(session, OrderedDict())
        key = _key(batch)
        found = made.get(key)
        if found is None:
            found = made[key] = self._join(batch)
            while len(made) > _REMEMBERED:
                made.popitem(last=False)
        return found


def _key(batch: Sequence[Result]) -> Any:
    """Return a cache key for a batch: the first and last number of each query, which suffice because numbers have no
    gaps."""
    first, last = batch[0], batch[-1]
    if first.query == last.query and last.seq - first.seq == len(batch) - 1:
        return first.query, first.seq, last.seq
    bounds: dict[str, tuple[int, int]] = {}
    for one in batch:
        bounds[one.query] = (bounds.get(one.query, (one.seq, 0))[0], one.seq)
    return tuple(bounds.items())


def event_frames(batch: Sequence[Result]) -> bytes:
    return b"".join(b"id: %d\nevent: result\ndata: %b\n\n" % (one.seq, one.body) for one in batch)


def results_message(batch: Sequence[Result]) -> str:
    return (b'{"type": "results", "results": [' + b", ".join(one.body for one in batch) + b"]}").decode()


_FRAMES = JoinedMessages(event_frames)
_MESSAGES = JoinedMessages(results_message)


# --- server-sent events -----------------------------------------------------------------------------------------------


class _Stuck(Exception):
    """The client does not read."""


class EventStream(Response):
    """The results of one query as server-sent events. The subscription is made before, so that a refusal has its proper
    HTTP status."""

    media_type = "text/event-stream"

    def __init__(self, session: LiveSession, subscription: Subscription, limits: Limits) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._session = session
        self._subscription = subscription
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        listening = asyncio.ensure_future(self._until_gone(receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await self._send(send, b"retry: 2000\n\n")
            await self._pass_on(send)
            await self._send(send, b"", more=False)
        except (OSError, _Stuck, asyncio.CancelledError):
            pass  # the client has left or does not read, or the server stops
        finally:
            self._subscription.close()
            listening.cancel()

    async def _pass_on(self, send: Send) -> None:
        subscription = self._subscription
        try:
            while not subscription.closed:
                try:
                    async with asyncio.timeout(PING):
                        batch = await subscription.batch()
                except TimeoutError:
                    await self._send(send, b": ping\n\n")
                    continue
                if batch:
                    await self._send(send, _FRAMES.of(self._session, batch))
        except ServerError as error:
            said = json.dumps({"error": error_dict(error)}).encode()
            await self._send(send, b"event: error\ndata: " + said + b"\n\n")

    async def _send(self, send: Send, data: bytes, more: bool = True) -> None:
        try:
            async with asyncio.timeout(self._limits.client_patience):
                await send({"type": "http.response.body", "body": data, "more_body": more})
        except TimeoutError:
            raise _Stuck from None

    async def _until_gone(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._subscription.close()


# --- WebSocket --------------------------------------------------------------------------------------------------------


async def serve_socket(websocket: WebSocket, session: LiveSession, limits: Limits) -> None:
    """Serve one client until it leaves, is disconnected, or the session ends."""
    try:
        subscription = session.listen([])
    except ServerError as error:
        await websocket.accept()
        await _close(websocket, TRY_AGAIN, error)
        return
    await websocket.accept()
    talk = _Talk(websocket, session, subscription, limits)
    listening = asyncio.ensure_future(talk.listen())
    try:
        await talk.tell()
    except ServerError as error:
        subscription.close()  # frees the client's place before the error is sent
        code = TRY_AGAIN if error.code in (TOO_SLOW, NOT_KEPT) else REFUSED
        await _close(websocket, code, error)
    except (WebSocketDisconnect, RuntimeError, OSError):
        pass  # the client has left
    else:
        if not talk.is_gone:
            with suppress(RuntimeError, OSError):
                await websocket.close(1001, (subscription.reason or "")[:120])
    finally:
        subscription.close()
        listening.cancel()


async def _close(websocket: WebSocket, code: int, error: ServerError) -> None:
    """Send the error and close the connection; after `_PARTING` seconds without success it is abandoned."""
    with suppress(TimeoutError, RuntimeError, OSError):
        async with asyncio.timeout(_PARTING):
            if error.code != TOO_SLOW:  # a client that does not read would not read this either
                await websocket.send_text(json.dumps({"type": "error", "error": error_dict(error)}))
            await websocket.close(code, error.message[:120])


class _Talk:
    """The two directions of one connection; only `tell` sends."""

    def __init__(self, websocket: WebSocket, session: LiveSession, subscription: Subscription, limits: Limits) -> None:
        self._websocket = websocket
        self._session = session
        self._subscription = subscription
        self._limits = limits
        self._answers: list[dict[str, Any]] = []
        self.is_gone = False

    async def tell(self) -> None:
        subscription = self._subscription
        while not subscription.closed:
            batch: list[Result] = []
            try:
                async with asyncio.timeout(PING):
                    batch = await subscription.batch(lambda: bool(self._answers))
            except TimeoutError:
                self._answers.append({"type": "ping"})
            while self._answers:
                await self._send(json.dumps(self._answers.pop(0)))
            if batch:
                await self._send(_MESSAGES.of(self._session, batch))

    async def _send(self, text: str) -> None:
        try:
            async with asyncio.timeout(self._limits.client_patience):
                await self._websocket.send_text(text)
        except TimeoutError:
            raise too_slow(f"nothing was read for {self._limits.client_patience:g} s") from None

    async def listen(self) -> None:
        try:
            while True:
                said = await self._websocket.receive_text()
                try:
                    self._answers.append(await self._heard(said))
                except AnabranchError as error:
                    self._answers.append({"type": "error", "error": error_dict(error)})
                self._subscription.wake()
        except (WebSocketDisconnect, RuntimeError, KeyError):
            self.is_gone = True
            self._subscription.close()

    async def _heard(self, said: str) -> dict[str, Any]:
        asked = _object(said)
        if "subscribe" in asked:
            after = _after(asked.get("after"))
            queries = await asyncio.to_thread(self._known, asked["subscribe"])
            self._subscription.add(queries, after, follow=asked["subscribe"] == "*")
        elif "unsubscribe" in asked:
            every = list(self._subscription.position)
            self._subscription.drop(every if asked["unsubscribe"] == "*" else _names(asked["unsubscribe"]))
        elif "ping" in asked:
            return {"type": "pong"}
        else:
            hint = 'send {"subscribe": "QUERY", "after": 16}'
            raise ServerError(BAD_REQUEST, "neither subscribe nor unsubscribe nor ping", hint)
        return {"type": "subscribed", "queries": self._subscription.position}

    def _known(self, asked: Any) -> list[str]:
        if asked == "*":
            return self._session.query_names()
        names = _names(asked)
        self._session.require(names)
        return names


def _names(asked: Any) -> list[str]:
    names = [asked] if isinstance(asked, str) else asked
    if not isinstance(names, list) or not all(isinstance(one, str) for one in names):
        raise ServerError(BAD_REQUEST, "subscribe takes the name of a query, a list of names, or *")
    return names


def _object(said: str) -> dict[str, Any]:
    if len(said) > _MOST_ASKED:
        raise ServerError(BAD_REQUEST, f"a message has at most {_MOST_ASKED:,} characters")
    try:
        asked = json.loads(said)
    except (ValueError, RecursionError):
        raise ServerError(BAD_REQUEST, "not JSON") from None
    if not isinstance(asked, dict):
        raise ServerError(BAD_REQUEST, "a message is a JSON object")
    return asked


def _after(given: Any) -> int | Mapping[str, int] | None:
    if isinstance(given, dict):
        numbers: list[Any] = list(given.values())
    else:
        numbers = [] if given is None else [given]
    if not all(isinstance(one, int) and not isinstance(one, bool) and -1 <= one <= 2**53 for one in numbers):
        raise ServerError(BAD_REQUEST, "`after` is the number of a result, or one for each query; -1 is before all")
    found: int | Mapping[str, int] | None = given
    return found
