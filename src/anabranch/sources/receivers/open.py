"""Opens the receiver of an address; each kind has its own options.

Invariant: an option that does nothing is refused, with a list of those that do something.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from typing import BinaryIO, Protocol
from urllib.parse import quote, urlsplit

from anabranch.demos.chance import whole
from anabranch.errors import EvaluationError, StreamError
from anabranch.model.temporal.parse import parse_duration
from anabranch.sources.address import refuse_unknown
from anabranch.sources.reach import ANYWHERE, Reach
from anabranch.sources.receivers.base import Receiver
from anabranch.sources.receivers.http import ANSWER_WITHIN, shown
from anabranch.sources.receivers.items import (
    APP_ID_HEADER,
    MOST_ENTRIES,
    MOST_PAGES,
    QUERY,
    AppId,
    ItemsReceiver,
    Questions,
    item_number,
)
from anabranch.sources.receivers.items import EVERY as ITEMS_EVERY
from anabranch.sources.receivers.mqtt import MqttReceiver
from anabranch.sources.receivers.polling import EVERY, HttpPollReceiver
from anabranch.sources.receivers.sockets import ListeningReceiver, SocketReceiver
from anabranch.sources.receivers.sse import SseReceiver
from anabranch.sources.receivers.stdin import StdinReceiver
from anabranch.sources.receivers.websocket import WebSocketReceiver
from anabranch.sources.secrets import revealed

_SECRETS = frozenset(("user", "password", "query", "subscribe"))
_LOGIN = {"user": "who asks", "password": "the password of user"}
_QUERY = {"query": "what is asked of the server, percent-encoded: query=limit%3D100%26sort%3Dnew"}
_SOCKET = {
    "listen": "1 to listen at this address instead of connecting to it",
    "reconnect": "1 to connect again when the server closes, instead of ending",
}
_WEBSOCKET = {"subscribe": "the text to send when connected", **_QUERY, **_LOGIN}
_SSE = {**_QUERY, **_LOGIN}
_POLL = {
    "every": "the time between two questions, such as PT5S or 5 (seconds)",
    "items": "where the list is in the answer, such as data.items",
    "key": "the field that tells records apart, such as id; without it the whole record does",
    **_QUERY,
    **_LOGIN,
}
_ITEMS = {
    "keywords": "what is looked for, such as camera; several with commas",
    "item": "the number of an item; several with commas",
    "url": "the address of an item's page; several with commas",
    "every": "the time between two rounds of questions (PT30S)",
    "only-changes": "0 to tell all items in each round, also those that are as they were (1)",
    "pages": "how many pages of an answer are asked for (1)",
    "limit": "items in a page (100)",
    "items": "where the list of items is in the answer (searchResult.item)",
    "context": "a file with the JSON-LD context that says what the names mean",
    "app-id": "the variable of the environment that holds the application's id",
    "app-id-header": f"the header that it is sent in ({APP_ID_HEADER})",
    "app-id-parameter": "the parameter that it is sent in, instead of the header, such as SECURITY-APPNAME",
    "timeout": "how long an answer may take (PT30S)",
    "query": "what else is asked of the server, percent-encoded, instead of OPERATION-NAME=findItemsByKeywords ...",
    **_LOGIN,
}
_MQTT = {
    "qos": "1 (each message at least once) or 0",
    "client_id": "the name of the session at the broker",
    "tls": "1 to encrypt",
    **_LOGIN,
}


class ReceiverAddress(Protocol):
    """The parts of an address that a receiver needs: `anabranch.sources.address.Address` has them."""

    @property
    def scheme(self) -> str: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int | None: ...
    @property
    def path(self) -> str: ...
    @property
    def options(self) -> Mapping[str, str]: ...
    @property
    def text(self) -> str: ...


class _Revealed:
    """An address whose options hold the secrets that they refer to; its text does not."""

    def __init__(self, address: ReceiverAddress, reach: Reach) -> None:
        self.scheme, self.host, self.port, self.path = address.scheme, address.host, address.port, address.path
        self.text = address.text
        options = dict(address.options)
        for name in _SECRETS & options.keys():
            # The request becomes part of an address again.
            encode = partial(quote, safe="") if name == "query" else str
            options[name] = revealed(options[name], reach, encode)
        self.options: Mapping[str, str] = options


def open_receiver(
    address: ReceiverAddress,
    stdin: BinaryIO | None = None,
    reach: Reach = ANYWHERE,
) -> Receiver:
    """Return the receiver for an address, not started yet, with its secrets resolved.

    `stdin` is the file that `-` reads, standard input unless given.
    """
    address = _Revealed(address, reach)
    match address.scheme:
        case "-":
            return StdinReceiver(sys.stdin.buffer if stdin is None else stdin)
        case "socket":
            return _socket(address)
        case "ws" | "wss" as scheme:
            options = _known(address, _WEBSOCKET)
            return WebSocketReceiver(_url(address, scheme), options.get("subscribe"))
        case "http+sse" | "https+sse" as scheme:
            _known(address, _SSE)
            return SseReceiver(_url(address, scheme.removesuffix("+sse")))
        case "http+poll" | "https+poll" as scheme:
            options = _known(address, _POLL)
            every = _seconds(address, "every", EVERY)
            url = _url(address, scheme.removesuffix("+poll"))
            return HttpPollReceiver(url, every, options.get("items"), options.get("key"))
        case "http+items" | "https+items":
            return _items(address)
        case "mqtt" | "mqtts":
            return _mqtt(address)
        case scheme:
            raise StreamError(f"{_shown(address)}: {scheme}:// sends nothing by itself")


def _socket(address: ReceiverAddress) -> Receiver:
    _known(address, _SOCKET)
    if address.port is None:
        raise StreamError(f"{_shown(address)} names no port\nhint: write it like socket://localhost:9999")
    if _flag(address, "listen"):
        if _flag(address, "reconnect"):
            raise StreamError(f"{_shown(address)}: who listens does not reconnect\nhint: leave one of the two")
        return ListeningReceiver(address.host, address.port)
    return SocketReceiver(address.host, address.port, _flag(address, "reconnect"))


def _items(address: ReceiverAddress) -> Receiver:
    options = _known(address, _ITEMS)
    url = _url(address, address.scheme.removesuffix("+items"), QUERY)
    try:
        numbers = (*_several(options, "item"), *(item_number(one) for one in _several(options, "url")))
        pages, limit = whole(options, "pages", 1, 1, MOST_PAGES), whole(options, "limit", 100, 1, MOST_ENTRIES)
        app_id = None
        if "app-id" in options:
            header, parameter = options.get("app-id-header"), options.get("app-id-parameter")
            app_id = AppId.from_environment(options["app-id"], header, parameter)
        return ItemsReceiver(
            url,
            Questions(_several(options, "keywords"), numbers, pages, limit),
            _seconds(address, "every", ITEMS_EVERY),
            options.get("items"),
            _flag(address, "only-changes", "1"),
            options.get("context"),
            app_id,
            _seconds(address, "timeout", ANSWER_WITHIN),
        )
    except StreamError as error:
        text = str(error).removeprefix(f"{shown(url)}: ")
        raise error if text.startswith(_shown(address)) else StreamError(f"{_shown(address)}: {text}") from None


def _several(options: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in options.get(name, "").split(",") if part.strip())


def _mqtt(address: ReceiverAddress) -> Receiver:
    options = _known(address, _MQTT)
    tls = address.scheme == "mqtts" or _flag(address, "tls")
    qos = options.get("qos", "1")
    if qos not in ("0", "1"):
        raise StreamError(f"{_shown(address)}: qos={qos}\nhint: qos is {_MQTT['qos']}")
    return MqttReceiver(
        address.host,
        address.port or (8883 if tls else 1883),
        address.path,
        int(qos),
        options.get("client_id"),
        options.get("user"),
        options.get("password"),
        tls,
    )


def _url(address: ReceiverAddress, scheme: str, query: str = "") -> str:
    """The address that the server knows: without our options, with its own query, else with the given one."""
    options = address.options
    host = f"[{address.host}]" if ":" in address.host else address.host
    login = quote(options.get("user", ""), "")
    if "password" in options:
        login += f":{quote(options['password'], '')}"
    port = "" if address.port is None else f":{address.port}"
    query = options.get("query", query)
    return f"{scheme}://{login}{'@' if login else ''}{host}{port}{address.path or '/'}{'?' if query else ''}{query}"


def _known(address: ReceiverAddress, known: Mapping[str, str]) -> Mapping[str, str]:
    refuse_unknown(_shown(address), address.options, known)
    return address.options


def _flag(address: ReceiverAddress, name: str, default: str = "0") -> bool:
    value = address.options.get(name, default).lower()
    if value not in ("0", "1", "false", "true"):
        raise StreamError(f"{_shown(address)}: {name}={value}\nhint: {name} is 1 or 0")
    return value in ("1", "true")


def _seconds(address: ReceiverAddress, name: str, default: float) -> float:
    text = address.options.get(name)
    if text is None:
        return default
    try:
        seconds = float(text)
    except ValueError:
        try:
            duration = parse_duration(text)
        except EvaluationError:
            duration = None
        if duration is None or duration.months:
            raise StreamError(
                f"{_shown(address)}: {name}={text} is no pause\nhint: give seconds, or a duration like PT5S or PT1M"
            ) from None
        seconds = duration.days * 86_400 + duration.seconds + duration.nanoseconds / 1e9
    return seconds


def _shown(address: ReceiverAddress) -> str:
    """The address without its options, where passwords may stand."""
    parts = urlsplit(address.text.partition("?")[0])
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
