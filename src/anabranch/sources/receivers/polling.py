"""HTTP polling: an address is requested again and again, and each new item of an answer is a record.

Known items are remembered by a hash of 8 bytes, the last 100,000 of them, in the spool's cursor together with the
validators of the last answer (ETag, Last-Modified): a restart brings no record twice.

Invariant: memory, validators and records enter the spool in one step.
"""

from __future__ import annotations

import base64
import json
import math
import time
from collections.abc import Iterable
from email.utils import parsedate_to_datetime
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from anabranch.errors import StreamError
from anabranch.sources.receivers.base import Receiver
from anabranch.sources.receivers.bodies import at_path, body_records, read_body
from anabranch.sources.receivers.http import check_status, shown

if TYPE_CHECKING:
    import httpx

EVERY = 5.0  # seconds
REMEMBERED = 100_000
_HASH_SIZE = 8
_MOST_PAUSE = 3600.0


class RecentRecords:
    """The hashes of the last records, oldest first. At least one whole answer is remembered, however long it is."""

    def __init__(self, hashes: Iterable[bytes] = (), most: int = REMEMBERED) -> None:
        self._hashes = dict.fromkeys(hashes)
        self._most = most

    def unseen(self, records: Iterable[bytes], key: str | None) -> list[bytes]:
        """Return the records of an answer that are new, and remember them."""
        found: dict[bytes, bytes] = {}
        hashes = []
        for record in records:
            digest = _digest(record, key)
            hashes.append(digest)
            if digest not in self._hashes:
                found.setdefault(digest, record)
        for digest in hashes:  # records that are still there are forgotten last
            self._hashes.pop(digest, None)
            self._hashes[digest] = None
        excess = len(self._hashes) - max(self._most, len(set(hashes)))
        for digest in list(self._hashes)[: max(0, excess)]:
            del self._hashes[digest]
        return list(found.values())

    def packed(self) -> str:
        return base64.b64encode(b"".join(self._hashes)).decode()

    @classmethod
    def unpacked(cls, text: str) -> RecentRecords:
        data = base64.b64decode(text)
        return cls(data[at : at + _HASH_SIZE] for at in range(0, len(data), _HASH_SIZE))


def _digest(record: bytes, key: str | None) -> bytes:
    if key is not None:
        try:
            value = at_path(json.loads(record), key)
            record = b"key " + json.dumps(value, sort_keys=True).encode()
        except (ValueError, LookupError, RecursionError):
            pass  # a record without the key is known by its content
    return blake2b(record, digest_size=_HASH_SIZE).digest()


class HttpPollReceiver(Receiver):
    """Asks an http:// or https:// address every so many seconds. `items` says where in the answer its list is, `key`
    which field tells records apart; both may be paths such as `data.id`."""

    def __init__(
        self,
        url: str,
        every: float = EVERY,
        items: str | None = None,
        key: str | None = None,
    ) -> None:
        super().__init__(shown(url))
        if not (0 < every < math.inf):
            raise StreamError(f"{self.name}: every={every} is no pause\nhint: give seconds, or a duration like PT5S")
        self._url = url
        self._every = every
        self._items = items
        self._key = key
        self._retry_after: float | None = None
        self._seen = RecentRecords()
        self._validators: dict[str, str] = {}

    def _receive(self) -> None:
        cursor = self.spool.cursor or {}
        if cursor.get("address") == self.name:
            self._seen = RecentRecords.unpacked(cursor["seen"])
            # Another question needs another answer, even when the server says that nothing has changed.
            self._validators = cursor["validators"] if cursor["asked"] == self._asked() else {}
        self._keep_connected(self._poll_while_it_works, self._least_pause)

    def _asked(self) -> list[str | None]:
        return [blake2b(self._url.encode(), digest_size=_HASH_SIZE).hexdigest(), self._items]

    def _least_pause(self) -> float:
        pause, self._retry_after = self._retry_after or 0.0, None
        return pause

    def _poll_while_it_works(self) -> bool:
        going_on = True
        while going_on:
            began = time.monotonic()
            self._poll()
            self._backoff.reset()
            going_on = self._pause(max(0.0, began + self._every - time.monotonic()))
        return False

    def _poll(self) -> None:
        from anabranch.sources.receivers.asking import ask  # here: a start-up cost of HTTP alone

        headers = {"Accept": "application/json, application/x-ndjson, */*;q=0.5", "Accept-Encoding": "gzip"}
        with ask(self._dialer, self._url, {**headers, **self._validators}) as response:
            if response.status_code == 304:
                self._accepted(f"{self.name}: nothing new")
                return
            if response.status_code in (429, 503):
                self._retry_after = retry_after(response)
            check_status(response, self._url)
            body = read_body(response, self.name)
            validators = _validators(response)
        records = body_records(body, self._items, self.name)
        unseen = self._seen.unseen(records, self._key)
        self._validators = validators
        if unseen or validators != (self.spool.cursor or {}).get("validators"):
            self._take(unseen, self._new_cursor())
        self._accepted(f"{self.name}: {len(unseen)} new of {len(records)}")

    def _new_cursor(self) -> dict[str, Any]:
        return {
            "address": self.name,
            "asked": self._asked(),
            "validators": self._validators,
            "seen": self._seen.packed(),
        }


def _validators(response: httpx.Response) -> dict[str, str]:
    """Return the headers that ask whether this answer still holds."""
    pairs = (("If-None-Match", "ETag"), ("If-Modified-Since", "Last-Modified"))
    return {asked: response.headers[told] for asked, told in pairs if response.headers.get(told)}


def retry_after(response: httpx.Response) -> float | None:
    """Return how many seconds a server asks us to wait, an hour at most."""
    text = response.headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit():
        seconds = float(text[:9])
    else:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - time.time()
        except (ValueError, TypeError):
            return None
    return min(max(seconds, 0.0), _MOST_PAUSE)
