"""The address of a stream, as one text: a path, `-`, or an address such as `kafka://host:9092/bikes?from=latest`.

    events.ndjson  data/*.parquet  C:\\data  file:///data  s3://bucket/data    files
    gen:bikes?seed=7&rate=1000                                                 a generator
    kafka://host[:port][,host2[:port]]/topic?from=latest  kafka:///topic       a Kafka topic
    http+poll://host/path  https+poll://  http+sse://  https+sse://            a web service, asked or listened to
    http+items://host/path?keywords=camera  https+items://                     a service that finds items for sale
    ws://host/path  wss://host/path                                            a WebSocket
    mqtt://[user:password@]host[:port]/topic/with/slashes?qos=1  mqtts://      an MQTT broker
    socket://host:port  -                                                      lines of a TCP connection, of stdin

Each source interprets its own options and refuses unknown ones, with the common function `refuse_unknown`.

Invariant: parsing touches no file and no network, and `text` is the user's text, with the default broker where none is
named.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

from anabranch.errors import StreamError, closest
from anabranch.model.masking import without_password
from anabranch.sources.filesystems import REMOTE_SCHEMES, refuse_outside
from anabranch.sources.reach import Reach
from anabranch.sources.secrets import quoted_references, refuse_secrets, refuse_variable

STDIN = "-"
FILE = "file"
GENERATOR = "gen"
KAFKA = "kafka"
WEB_SCHEMES = ("http+poll", "https+poll", "http+items", "https+items", "http+sse", "https+sse", "ws", "wss")
TOPIC_SCHEMES = (KAFKA, "mqtt", "mqtts")
PUSH_SCHEMES = (*WEB_SCHEMES, "mqtt", "mqtts", "socket")

BROKER = "ANABRANCH_KAFKA"
"""The environment variable that names the broker of `kafka:///topic`."""

_EXAMPLES: Mapping[str, str] = {
    FILE: "file:///data/events.ndjson",
    GENERATOR: "gen:bikes?seed=7",
    KAFKA: "kafka://localhost:9092/bikes",
    **{scheme: f"{scheme}://localhost/bikes" for scheme in WEB_SCHEMES},
    "mqtt": "mqtt://localhost/city/bikes",
    "mqtts": "mqtts://localhost/city/bikes",
    "socket": "socket://localhost:9999",
    **{scheme: f"{scheme}://bucket/data" for scheme in REMOTE_SCHEMES},
}
_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):(?P<rest>.*)", re.DOTALL)
_HOST = re.compile(r"(?P<host>\[[0-9A-Fa-f:.%]+\]|[^:\[\]]*)(?::(?P<port>.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Address:
    """A parsed address. A path has the scheme `file`, stdin the scheme `-`; `path` of a topic has no leading slash.

    Several brokers stand in `host` as they were written, with their ports, and `port` is None. A user's name and
    password are the options `user` and `password`.
    """

    scheme: str
    host: str = ""
    port: int | None = None
    path: str = ""
    options: dict[str, str] = field(default_factory=dict)
    text: str = ""

    @property
    def shown(self) -> str:
        """Return the address without its password, for messages."""
        return without_password(self.text)

    @property
    def is_pushed(self) -> bool:
        """Whether records are sent to us, so that they must lie in a spool before they are read."""
        return not self.is_files and self.scheme not in (GENERATOR, KAFKA)

    @property
    def is_files(self) -> bool:
        return self.scheme == FILE or self.scheme in REMOTE_SCHEMES


def parse_address(text: str) -> Address:
    """Parse an address; an unknown scheme is refused with a list of the known ones."""
    if not text:
        raise StreamError("an address is empty\nhint: give a file, a directory, or an address such as gen:bikes")
    if "\0" in text:
        raise StreamError(f"{text!r} is no address: it holds a null character")
    if text == STDIN:
        return Address(STDIN, text=text)
    match = _SCHEME.fullmatch(text)
    if match is None:
        return Address(FILE, path=text, text=text)
    scheme, rest = match["scheme"].lower(), match["rest"]
    if scheme == GENERATOR:
        name, _, query = rest.removeprefix("//").partition("?")
        return Address(GENERATOR, path=unquote(name), options=_options(query, text), text=text)
    if not rest.startswith("//"):
        if scheme not in _EXAMPLES:
            return Address(FILE, path=text, text=text)  # a colon may stand in a file's name
        raise _refusal(text, f"after {scheme}: come two slashes", f"write it like {_EXAMPLES[scheme]}")
    if scheme == FILE:
        return _file(text, rest[2:])
    if scheme in REMOTE_SCHEMES:
        return Address(scheme, path=text, text=text)
    if scheme == KAFKA or scheme in PUSH_SCHEMES:
        return _server(scheme, text, rest[2:])
    near = closest(scheme, _EXAMPLES, limit=1)
    meant = f"did you mean {_EXAMPLES[near[0]]}?  " if near else ""
    known = ", ".join(f"{name}:" if name == GENERATOR else f"{name}://" for name in _EXAMPLES)
    raise _refusal(text, f"nothing is read from {scheme}://", f"{meant}There are paths, -, {known}")


def refuse_unknown(shown: str, options: Mapping[str, str], known: Mapping[str, str]) -> None:
    """Refuse an option that is not known; `known` maps the known ones to their meaning."""
    for name in options:
        if name not in known:
            near = closest(name, known, limit=1)
            meant = f"did you mean {near[0]}?  " if near else ""
            listed = "".join(f"\n  {one}: {meaning}" for one, meaning in known.items())
            raise _refusal(shown, f"there is no option {name}", f"{meant}There are{listed}")


def refuse_beyond(address: Address, reach: Reach) -> None:
    """Refuse an address outside of what may be reached, whether or not something exists there."""
    for value in address.options.values():
        refuse_secrets(value, reach)
    if "app-id" in address.options:
        refuse_variable(address.options["app-id"], reach)
    if not reach.is_bounded or address.scheme == GENERATOR:
        return
    if address.scheme != FILE:
        reach.refuse_network(address.shown)
    refuse_outside(address.path, reach)


def _file(text: str, rest: str) -> Address:
    host, slash, path = rest.partition("/")
    if host not in ("", "localhost") or not slash:
        hint = f"write file:///{rest.lstrip('/')} for an absolute path; a relative one stands alone: {rest}"
        raise _refusal(text, f"`{host}` would be another machine" if host else "it names no file", hint)
    path = unquote(path)
    # file:///C:/data is C:/data
    return Address(FILE, path=path if re.match(r"[A-Za-z]:[/\\]", path) else f"/{path}", text=text)


def _server(scheme: str, text: str, rest: str) -> Address:
    # `#` is no fragment here: an MQTT topic may hold one.
    place, _, query = quoted_references(rest).partition("?")
    servers, slash, path = place.partition("/")
    user, at, servers = servers.rpartition("@")
    options = _options(query, text)
    if at:
        name, colon, password = user.partition(":")
        given = {"user": unquote(name)} | ({"password": unquote(password)} if colon else {})
        if given.keys() & options.keys():
            raise _refusal(text, "the user is named twice, before @ and as an option", "leave one of the two")
        options = {**given, **options}
    if not servers and scheme == KAFKA and (broker := os.environ.get(BROKER, "").strip()):
        return _server(scheme, f"{scheme}://{broker}/{path}{'?' if query else ''}{query}", f"{broker}{rest}")
    if not servers:
        default = f", or name a broker with --kafka-broker or {BROKER}" if scheme == KAFKA else ""
        raise _refusal(text, "it names no host", f"write it like {_EXAMPLES[scheme]}{default}")
    hosts = [_host(server, text) for server in servers.split(",")]
    if len(hosts) > 1 and scheme != KAFKA:
        raise _refusal(text, "it names several hosts", f"write it like {_EXAMPLES[scheme]}")
    host, port = hosts[0] if len(hosts) == 1 else (servers, None)
    if scheme == "socket" and (port is None or path):
        raise _refusal(
            text, "it needs a port" if port is None else "a socket has no path", f"write {_EXAMPLES[scheme]}"
        )
    if scheme in TOPIC_SCHEMES:
        if not path:
            raise _refusal(text, "it names no topic", f"write it like {_EXAMPLES[scheme]}")
        return Address(scheme, host, port, unquote(path), options, text)
    return Address(scheme, host, port, slash + path, options, text)


def _host(server: str, text: str) -> tuple[str, int | None]:
    match = _HOST.fullmatch(server)
    if match is None or not match["host"]:
        raise _refusal(text, f"`{server}` is no host", "write host, host:port or [IPv6]:port")
    port = match["port"]
    if port is None:
        return match["host"].strip("[]"), None
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65_536):
        raise _refusal(text, f"`{port}` is no port", "a port is a number from 1 to 65535")
    return match["host"].strip("[]"), int(port)


def _options(query: str, text: str) -> dict[str, str]:
    """Options as they are written: a + stays one, for it stands in instants (+02:00)."""
    options: dict[str, str] = {}
    for part in query.split("&") if query else ():
        name, equals, value = part.partition("=")
        name = unquote(name)
        if not (name and equals):
            raise _refusal(text, f"`{part}` is no option", "write options as ?name=value&other=value")
        if name in options:
            raise _refusal(text, f"the option {name} is given twice", "leave one of the two")
        options[name] = unquote(value)
    return options


def _refusal(text: str, reason: str, hint: str) -> StreamError:
    return StreamError(f"{without_password(text)}: {reason}\nhint: {hint}")
