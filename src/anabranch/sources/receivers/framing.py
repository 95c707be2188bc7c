"""From bytes to records: lines that come in parts, messages that hold one record or several lines, gzip on the fly.

Invariant: memory is bounded by the largest record that is allowed, whatever the peer sends.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator

from anabranch.errors import StreamError
from anabranch.formats.rdf.lines import looks_timed

MAX_RECORD = 64 << 20
_GZIP_MAGIC = b"\x1f\x8b"
_CHUNK = 1 << 20


class LineBuffer:
    """Whole lines out of parts."""

    def __init__(self, name: str, max_record: int = MAX_RECORD) -> None:
        self._name = name
        self._max_record = max_record
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that these bytes complete."""
        head, newline, rest = data.rpartition(b"\n")
        lines = b"".join((*self._parts, head)).split(b"\n") if newline else []
        if newline:
            self._parts, self._size = [], 0
        self._parts.append(rest)
        self._size += len(rest)
        if self._size > self._max_record:
            raise StreamError(
                f"{self._name}: a line over {self._max_record >> 20} MiB\nhint: records are JSON texts, one a line"
            )
        return lines

    def rest(self) -> list[bytes]:
        """The last line, which no line end followed."""
        last, self._parts, self._size = b"".join(self._parts), [], 0
        return [last] if last else []


def message_records(payload: bytes) -> list[bytes]:
    """The records of one message: a JSON text, whatever its layout, or lines of JSON or of time, tab and triple."""
    if b"\n" not in payload.strip() or _is_json(payload):
        return [payload]
    lines = payload.splitlines()
    # Text that is broken and spans lines is one bad record, not as many as it has lines.
    return lines if any(_is_record(line) for line in lines) else [payload]


def _is_record(line: bytes) -> bool:
    if line.lstrip()[:1] in (b"{", b"["):
        return _is_json(line)
    return looks_timed(line[:200].decode(errors="replace"))


def _is_json(data: bytes) -> bool:
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True


class Unpacker:
    """Bytes as they are, or unpacked when they begin like gzip; several members follow each other."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._head = b""
        self._plain: bool | None = None
        self._member = zlib.decompressobj(wbits=31)
        self._inside = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the unpacked bytes, in parts of bounded size."""
        if self._plain is None:
            self._head += data
            if len(self._head) < len(_GZIP_MAGIC) and _GZIP_MAGIC.startswith(self._head):
                return
            self._plain = not self._head.startswith(_GZIP_MAGIC)
            data, self._head = self._head, b""
        if self._plain:
            yield data
        else:
            yield from self._unpacked(data)

    def end(self) -> bytes:
        """Return the bytes held back at the end of the input; refuse gzip that is cut short."""
        if self._inside:
            raise StreamError(f"{self._name}: the gzip data ends too early\nhint: was the file cut while copied?")
        return self._head

    def _unpacked(self, data: bytes) -> Iterator[bytes]:
        while data:
            if not self._inside:
                data = data.lstrip(b"\0")  # padding between members is legal
                if not data:
                    return
                self._member, self._inside = zlib.decompressobj(wbits=31), True
            try:
                yield self._member.decompress(data, _CHUNK)
            except zlib.error as error:
                raise StreamError(f"{self._name}: not gzip after all: {error}") from None
            if self._member.eof:
                data, self._inside = self._member.unused_data, False
            else:
                data = self._member.unconsumed_tail
