"""Server-sent events: the `data` of every event is a record.

The id of the last event is kept as the spool's cursor, in one step with the records, and sent as Last-Event-ID when we
connect again, also after a restart: a server that keeps its events sends each exactly once.

Invariant: an event that the connection cut short is left out, as the standard has it; the server sends it again.
"""

from __future__ import annotations

import http.client
import re
from collections.abc import Iterator
from dataclasses import dataclass

from anabranch.errors import StreamError
from anabranch.sources.receivers.base import OnState, Receiver, Refused
from anabranch.sources.receivers.framing import MAX_RECORD, message_records
from anabranch.sources.receivers.http import ask, check_status, shown

_BOM = b"\xef\xbb\xbf"
_READ = 1 << 16
_LINE_END = re.compile(rb"\r\n|\n|\r")
_MOST_PAUSE = 600.0


@dataclass(frozen=True, slots=True)
class SentEvent:
    """An event as it came: its data, and the id that the stream stands at."""

    data: bytes
    last_id: str


class EventParser:
    """The standard's event stream, fed in parts of any size."""

    def __init__(self, last_id: str = "") -> None:
        self.last_id = last_id
        self.retry: float | None = None  # seconds that the server wants between two connections
        self._rest = bytearray()
        self._begun = False
        self._data: list[bytes] = []
        self._size = 0
        self._id = last_id

    def feed(self, block: bytes) -> Iterator[SentEvent]:
        """The events that these bytes complete."""
        scanned = max(0, len(self._rest) - 1)  # a \r that stood last may be half of a line end
        self._rest += block
        if not self._begun:
            if len(self._rest) < len(_BOM) and _BOM.startswith(self._rest):
                return
            scanned, self._begun = 0, True
            if self._rest.startswith(_BOM):
                del self._rest[: len(_BOM)]
        ends = [match.span() for match in _LINE_END.finditer(self._rest, scanned)]
        if ends and ends[-1][1] == len(self._rest) and self._rest.endswith(b"\r"):
            ends.pop()
        start = 0
        for stop, following in ends:
            yield from self._line(bytes(self._rest[start:stop]))
            start = following
        del self._rest[:start]
        if self._size + len(self._rest) > MAX_RECORD:
            raise StreamError(f"an event over {MAX_RECORD >> 20} MiB")

    def _line(self, line: bytes) -> Iterator[SentEvent]:
        if not line:
            self.last_id = self._id
            if self._data:
                yield SentEvent(b"\n".join(self._data), self.last_id)
            self._data, self._size = [], 0
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"data":
                self._data.append(value)
                self._size += len(value)
            case b"id" if b"\0" not in value:
                self._id = value.decode(errors="replace")
            case b"retry" if value.isdigit():
                self.retry = int(value[:12]) / 1000


class SseReceiver(Receiver):
    """Reads an event stream at an http:// or https:// address."""

    def __init__(self, url: str, on_state: OnState | None = None, seed: int = 0) -> None:
        super().__init__(shown(url), on_state, seed)
        self._url = url
        self._retry = 0.0

    def _receive(self) -> None:
        self._keep_connected(self._once, lambda: self._retry)

    def _once(self) -> bool:
        cursor = self.spool.cursor or {}
        last_id = cursor["last_event_id"] if cursor.get("address") == self.name else ""
        headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
        if last_id:
            headers["Last-Event-ID"] = last_id
        # An event may be hours away; the connection's keepalive notices a peer that is gone.
        with ask(self._dialer, self._url, headers, silence=None) as response:
            if response.status == 204:  # the standard's way to say: do not come back
                self.spool.finish()
                return True
            check_status(response, self._url)
            kind = response.headers.get_content_type()
            if kind != "text/event-stream":
                raise Refused(
                    f"{self.name} is no event stream but {kind}\nhint: http+poll:// asks an address again and again"
                )
            self._accepted(f"{self.name}: connected")
            self._events(response, EventParser(last_id))
        return False

    def _events(self, response: http.client.HTTPResponse, parser: EventParser) -> None:
        try:
            while block := response.read1(_READ):
                before = parser.last_id
                records: list[bytes] = []
                for event in parser.feed(block):
                    records += message_records(event.data)
                if records or parser.last_id != before:
                    self._take(records, {"address": self.name, "last_event_id": parser.last_id})
                self._retry = min(parser.retry or 0.0, _MOST_PAUSE)
        except http.client.HTTPException as error:
            raise ConnectionError(f"the connection broke: {type(error).__name__}") from None
