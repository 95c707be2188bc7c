"""NDJSON: one event a line, UTF-8, plain or gzip.

Invariant: a malformed line never ends the reading; it comes out as a MalformedRecord with its line number, in its
place.
"""

from __future__ import annotations

import gzip
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, NoReturn, TypeVar, cast

from anabranch.errors import MalformedEventError
from anabranch.formats.deadletter import MalformedRecord
from anabranch.formats.events import event_from_dict, event_to_dict
from anabranch.model.event import Event

_GZIP_MAGIC = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_MAYBE_HALF = re.compile(r"\\u[dD][89a-fA-F]")
Read = TypeVar("Read")


def read_ndjson(file: BinaryIO) -> Iterator[tuple[int, Event | MalformedRecord]]:
    """Yield line numbers (from one) with their events; blank lines and comments are skipped. Gzip is recognised."""
    return read_ndjson_as(file, lambda data, number: event_from_dict(data, str(number)))


def read_ndjson_as(
    file: BinaryIO, decode: Callable[[Any, int], Read | None]
) -> Iterator[tuple[int, Read | MalformedRecord]]:
    """Yield the same for records of any shape: `decode` converts the JSON and its line number, None to skip it."""
    for number, line in enumerate(_uncompressed(file), 1):
        if number == 1 and line.startswith(_BOM):
            line = line[len(_BOM) :]
        if line.isspace() or not line:
            continue
        record = read_line_as(line.removesuffix(b"\n"), number, decode)
        if record is not None:
            yield number, record


def read_line(line: bytes | str, number: int = 1) -> Event | MalformedRecord:
    """Return the event of one line, or a malformed record with the reason."""
    record = read_line_as(line, number, lambda data, _number: event_from_dict(data))
    return MalformedRecord("a comment, and no event", number) if record is None else record


def read_line_as(
    line: bytes | str, number: int, decode: Callable[[Any, int], Read | None]
) -> Read | MalformedRecord | None:
    """Return the same for a record of any shape: `decode` converts the JSON and the number; None is skipped."""
    try:
        text = line.decode() if isinstance(line, bytes) else line
        try:
            data = _DECODER.decode(text)
        except json.JSONDecodeError:
            if text.lstrip().startswith("#"):
                return None
            # A record may also be a time, a tab and a triple, which decoders take as a text.
            if not _is_timed(text):
                raise
            data = text
        if _MAYBE_HALF.search(text) is not None:
            refuse_halves(data)
        return decode(data, number)
    except MalformedEventError as error:
        reason = error.reason
    except UnicodeDecodeError as error:
        reason = f"not UTF-8 (byte {error.start + 1})"
    except json.JSONDecodeError as error:
        reason = f"not JSON: {error.msg} (column {error.colno})"
    except RecursionError:
        reason = "nested too deeply"
    except ValueError:
        reason = "not JSON: a number with too many digits"
    raw = line.decode(errors="replace") if isinstance(line, bytes) else line
    return MalformedRecord(reason, number, raw.rstrip("\r\n"))


def refuse_halves(data: Any) -> None:
    """Refuse JSON in which half of a surrogate pair stands alone: no text that could be written anywhere."""
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = error.object[error.start]
        raise MalformedEventError(f"\\u{ord(half):04x} alone is half of a surrogate pair, and no character") from None


def _is_timed(text: str) -> bool:
    """Whether a text that is no JSON is meant as a triple with its time."""
    from anabranch.formats.rdf.lines import looks_timed

    return looks_timed(text)


def write_ndjson(events: Iterable[Event], file: BinaryIO) -> int:
    """Write events, one a line; gives their number."""
    count = 0
    for event in events:
        file.write(json.dumps(event_to_dict(event), ensure_ascii=False, separators=(", ", ": ")).encode() + b"\n")
        count += 1
    return count


def _refuse_constant(name: str) -> NoReturn:
    raise MalformedEventError(f"{name} is no number that JSON knows")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def _uncompressed(file: BinaryIO) -> Iterable[bytes]:
    head = file.read(len(_GZIP_MAGIC))
    joined = io.BufferedReader(cast(io.RawIOBase, PrefixedFile(head, file)))
    if head == _GZIP_MAGIC:
        return gzip.GzipFile(fileobj=joined)
    return joined


class PrefixedFile(io.RawIOBase):
    """A file whose first bytes were read already; works on pipes, which cannot be rewound."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head = head
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._head or self._rest.read(len(buffer))
        self._head = data[len(buffer) :] if self._head else b""
        data = data[: len(buffer)]
        buffer[: len(data)] = data
        return len(data)
