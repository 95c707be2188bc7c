"""From the body of an HTTP answer to records: a JSON list, an object that holds one, lines, or one object.

Invariant: a body is read up to 64 MiB, unpacked; a larger one is refused before it fills the memory.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from anabranch.errors import StreamError
from anabranch.sources.receivers.base import PeerRefusal
from anabranch.sources.receivers.framing import Unpacker, message_records

if TYPE_CHECKING:
    import httpx

MAX_BODY = 64 << 20
_BOM = b"\xef\xbb\xbf"


def read_body(response: httpx.Response, name: str, most: int = MAX_BODY) -> bytes:
    """The whole body, unpacked, as UTF-8."""
    encoding = (response.headers.get("Content-Encoding") or "identity").strip().lower()
    if encoding not in ("identity", "gzip", "x-gzip"):
        raise PeerRefusal(f"{name} answers in the encoding {encoding}, which we did not ask for")
    body = bytearray()
    unpacker = Unpacker(name)  # httpx's own unpacks a whole part at once, a thousand times its size
    try:
        for block in response.iter_raw():
            for part in unpacker.feed(block):
                body += part
                if len(body) > most:
                    raise PeerRefusal(
                        f"{name} answers with more than {most >> 20} MiB\nhint: ask for less, such as the newest page"
                    )
        body += unpacker.end()
    except PeerRefusal:
        raise
    except StreamError as error:  # gzip that is none: perhaps the next answer is better
        raise ConnectionError(str(error).splitlines()[0]) from None
    return _as_utf8(bytes(body), response.charset_encoding)


def _as_utf8(body: bytes, charset: str | None) -> bytes:
    body = body.removeprefix(_BOM)
    if charset is None or charset.lower() in ("utf-8", "us-ascii"):
        return body
    try:
        return body.decode(charset).encode()
    except (LookupError, UnicodeError):
        return body  # unreadable text is refused record by record


def body_records(body: bytes, items: str | None, name: str) -> list[bytes]:
    """Return the records of a body. `items` is the path of fields to its list."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        # Lines, or no JSON at all: then the text is a bad record, which its reader reports.
        return [] if not body.strip() else message_records(body)
    if items is not None:
        data = _listed(data, items, name)
    if not isinstance(data, list):
        return [body]
    return [_encoded(item) for item in data]


def _listed(data: Any, items: str, name: str) -> list[Any]:
    try:
        found = at_path(data, items)
    except LookupError:
        has = f"it has {', '.join(data) or 'no fields'}" if isinstance(data, dict) else "it is no object"
        raise PeerRefusal(f"{name}: the answer has no `{items}`\nhint: {has}") from None
    if not isinstance(found, list):
        raise PeerRefusal(
            f"{name}: `{items}` of the answer is no list\nhint: give the path of the list: items=path.to.list"
        )
    return found


def at_path(data: Any, path: str) -> Any:
    """Return the value at a path of fields such as `data.items`; a field whose name holds dots is found too."""
    if isinstance(data, dict):
        if path in data:
            return data[path]
        head, dot, rest = path.partition(".")
        if dot and head in data:
            return at_path(data[head], rest)
    raise LookupError(path)


def _encoded(item: Any) -> bytes:
    text = json.dumps(item, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair: JSON can say it, UTF-8 cannot
        return json.dumps(item, separators=(",", ":")).encode()
