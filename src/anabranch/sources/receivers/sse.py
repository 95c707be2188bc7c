"""Server-sent events: the `data` of every event is a record.

The id of the last event is kept as the spool's cursor, in one step with the records, and sent as Last-Event-ID when we
connect again, also after a restart: a server that keeps its events sends each exactly once.

Invariant: an event that the connection cut short is left out, as the standard has it; the server sends it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from anabranch.errors import StreamError
from anabranch.sources.receivers.base import PeerRefusal, Receiver
from anabranch.sources.receivers.framing import MAX_RECORD, message_records
from anabranch.sources.receivers.http import check_status, shown

if TYPE_CHECKING:
    import httpx

_KIND = "text/event-stream"
_MOST_PAUSE = 600.0


class EventReader:
    """Reads an event stream that comes in parts. `take` is given the data of the events that a part has completed, and
    the id that the stream stands at, before the next part is waited for."""

    def __init__(self, take: Callable[[list[bytes], str], None], last_id: str = "") -> None:
        self.retry: float | None = None  # seconds that the server wants between two connections
        self._take = take
        self._last_id = self._taken_id = last_id
        self._data: list[bytes] = []
        self._size = 0  # bytes since the last event

    def read(self, parts: Iterable[bytes]) -> None:
        """Read to the end of the stream."""
        import httpx
        import httpx_sse

        stream = httpx.Response(
            200, headers={"Content-Type": _KIND}, content=self._bounded(parts), default_encoding="utf-8-sig"
        )
        has_ids = False
        for event in httpx_sse.EventSource(stream).iter_sse():
            self._size = 0
            has_ids = has_ids or bool(event.id)
            if has_ids:  # an id holds until another comes, also over connections
                self._last_id = event.id
            if event.data:
                self._data.append(event.data.encode())
            if event.retry is not None:
                self.retry = max(0, event.retry) / 1000
        self._hand_over()

    def _bounded(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        for part in parts:
            self._size += len(part)
            if self._size > MAX_RECORD:
                raise StreamError(f"an event over {MAX_RECORD >> 20} MiB")
            yield part
            self._hand_over()

    def _hand_over(self) -> None:
        if self._data or self._last_id != self._taken_id:
            self._take(self._data, self._last_id)
            self._data, self._taken_id = [], self._last_id


class SseReceiver(Receiver):
    """Reads an event stream at an http:// or https:// address."""

    def __init__(self, url: str) -> None:
        super().__init__(shown(url))
        self._url = url
        self._retry = 0.0

    def _receive(self) -> None:
        self._keep_connected(self._once, lambda: self._retry)

    def _once(self) -> bool:
        from anabranch.sources.receivers.asking import ask  # here: a start-up cost of HTTP alone

        cursor = self.spool.cursor or {}
        last_id = cursor["last_event_id"] if cursor.get("address") == self.name else ""
        headers = {"Accept": _KIND, "Cache-Control": "no-store"}
        if last_id:
            headers["Last-Event-ID"] = last_id
        # An event may be hours away; the connection's keepalive notices a peer that is gone.
        with ask(self._dialer, self._url, headers, silence=None) as response:
            if response.status_code == 204:  # the standard's way to say: do not come back
                self.spool.finish()
                return True
            check_status(response, self._url)
            self._refuse_others(response)
            self._accepted(f"{self.name}: connected")
            reader = EventReader(self._take_events, last_id)
            try:
                reader.read(response.iter_raw())
            finally:
                self._retry = min(reader.retry or 0.0, _MOST_PAUSE)
        return False

    def _refuse_others(self, response: httpx.Response) -> None:
        kind = response.headers.get("Content-Type", "text/plain").partition(";")[0].strip().lower()
        if kind != _KIND:
            raise PeerRefusal(
                f"{self.name} is no event stream but {kind}\nhint: http+poll:// asks an address again and again"
            )

    def _take_events(self, data: list[bytes], last_id: str) -> None:
        records = [record for one in data for record in message_records(one)]
        self._take(records, {"address": self.name, "last_event_id": last_id})
