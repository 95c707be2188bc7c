"""Polling a service that finds items, such as eBay's Finding API: the loader of the LUPOS paper.

    https+items://host/path?keywords=camera,road bike&every=PT1M

At each interval every question is asked, page by page: keywords, and item numbers, which may be given by the address of
an item's page. Items become RDF by a JSON-LD context (`listings`). An unchanged item is not emitted again; a changed
one is emitted again as a whole (Groppe et al., Using a Streaming SPARQL Evaluator for Monitoring eBay Auctions, 2011,
sections 4.1 and 4.2).

A question that fails goes behind the others, and is asked again while its round lasts, from the failed page on. The
others are not asked more often because of it.

Memory and records of an answer enter the spool in one step, so that a restart emits nothing twice. An answer that is no
JSON is a record too: its reader sets it aside and counts it.

Invariant: the application's id comes from the environment and goes to the service alone: into no message, no cursor.
"""

from __future__ import annotations

import base64
import json
import math
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any
from urllib.parse import urlencode, urlsplit

from anabranch.errors import StreamError
from anabranch.model.instants import format_instant
from anabranch.sources.receivers.base import PeerRefusal
from anabranch.sources.receivers.bodies import read_body
from anabranch.sources.receivers.http import ANSWER_WITHIN, check_status
from anabranch.sources.receivers.listings import DEFAULT_CONTEXT, JsonLdContext, ListedItems, page_of
from anabranch.sources.receivers.polling import HttpPollReceiver, retry_after

EVERY = 30.0  # seconds
MOST_PAGES = 100
MOST_ENTRIES = 10_000
QUERY = "OPERATION-NAME=findItemsByKeywords&SERVICE-VERSION=1.0.0&RESPONSE-DATA-FORMAT=JSON&REST-PAYLOAD="
APP_ID_HEADER = "X-EBAY-SOA-SECURITY-APPNAME"

_HEADERS = {"Accept": "application/json", "Accept-Encoding": "gzip"}
_NUMBER = re.compile(r"[0-9]{3,}")


@dataclass(frozen=True, slots=True)
class AppId:
    """The application's id at the service: a secret, sent as a header or as a parameter."""

    value: str = field(repr=False)
    header: str | None = APP_ID_HEADER
    parameter: str | None = None

    @classmethod
    def from_environment(cls, variable: str, header: str | None = None, parameter: str | None = None) -> AppId:
        value = os.environ.get(variable, "").strip()
        if not value:
            raise StreamError(
                f"app-id={variable}: there is no such variable in the environment\nhint: export {variable}=..."
            )
        if not (value.isascii() and value.isprintable() and " " not in value):
            raise StreamError(f"app-id={variable}: what the variable holds is no application's id")
        return cls(value, None if parameter else header or APP_ID_HEADER, parameter)

    def headers(self) -> dict[str, str]:
        return {self.header: self.value} if self.header else {}

    def parameters(self) -> dict[str, str]:
        return {self.parameter: self.value} if self.parameter else {}


@dataclass(frozen=True, slots=True)
class Questions:
    """The questions of each round: several keywords, several items; with neither, the address alone."""

    keywords: tuple[str, ...] = ()
    items: tuple[str, ...] = ()
    pages: int = 1
    limit: int = 100

    def parameters(self) -> list[dict[str, str]]:
        asked = [{"keywords": one} for one in self.keywords] + [{"itemId": one} for one in self.items]
        return asked or [{}]


@dataclass(slots=True)
class _Asking:
    """A question of a round, and the page that it has come to."""

    parameters: dict[str, str]
    page: int = 1


@dataclass(slots=True)
class _Round:
    """The questions that are still to be asked before the next round begins, and the results of the others."""

    ends: float
    left: list[_Asking]
    seen: int = 0
    news: int = 0
    is_answered: bool = False
    refusal: PeerRefusal | None = None

    def rest(self) -> float:
        return max(0.0, self.ends - time.monotonic())


def item_number(address: str) -> str:
    """The number of an item in the address of its page: the last number in the path."""
    numbers = _NUMBER.findall(urlsplit(address).path)
    if not numbers:
        raise StreamError(
            f"url={address}: the address holds no item number\nhint: write it like https://www.ebay.com/itm/110089"
        )
    return str(numbers[-1])


class ItemsReceiver(HttpPollReceiver):
    """Asks for items every so many seconds. `now` is the wall clock, in seconds: an item's instant is its answer's."""

    def __init__(
        self,
        url: str,
        questions: Questions,
        every: float = EVERY,
        items: str | None = None,
        only_changes: bool = True,
        context: str | None = None,
        app_id: AppId | None = None,
        timeout: float = ANSWER_WITHIN,
    ) -> None:
        super().__init__(url, every, items, None)
        if not (0 < timeout < math.inf):
            raise StreamError(f"{self.name}: timeout={timeout:g} is no time to wait\nhint: give seconds, or PT30S")
        self._questions = questions
        self._order = questions.parameters()  # those that failed last
        self._round = _Round(0.0, [])
        self._largest = 0  # items of a round
        self._only_changes = only_changes
        self._context = JsonLdContext(context or DEFAULT_CONTEXT)
        self._app_id = app_id
        self._timeout = timeout
        self.now: Callable[[], float] = time.time
        self._told = ListedItems()
        self._last_at = 0

    def _receive(self) -> None:
        cursor = self.spool.cursor or {}
        # Another context tells other triples of the same items.
        if cursor.get("address") == self.name and cursor.get("context") == self._context_digest():
            self._told = ListedItems(base64.b64decode(cursor["told"]))
        self._keep_connected(self._poll_while_it_works, self._least_pause)

    def _poll_while_it_works(self) -> bool:
        going_on = True
        while going_on:
            if self._round.rest() == 0:
                self._largest = max(self._largest, self._round.seen)
                self._told.forget_oldest(self._largest)
                self._round = _Round(time.monotonic() + self._every, [_Asking(one) for one in self._order])
            going_on = self._pause(self._ask_round())
        return False

    def _ask_round(self) -> float:
        """Ask the remaining questions of the round; return how long there is nothing to ask.

        Raises the error that kept the service from answering any question at all.
        """
        now = self._round
        while now.left and not self._stopping.is_set():
            asking = now.left.pop(0)
            try:
                self._ask_pages(asking)
            except PeerRefusal as error:
                now.refusal = now.refusal or error
            except OSError as error:
                if self._stopping.is_set():  # we broke the connection ourselves
                    break
                now.left.append(asking)
                self._order.remove(asking.parameters)
                self._order.append(asking.parameters)
                if self._retry_after is not None or not now.is_answered:
                    raise
                return self._patience(error.strerror or str(error), min(self._backoff.pause(), now.rest()))
        if self._stopping.is_set():
            return 0.0
        if now.refusal is not None:  # it will hardly be another answer sooner
            if now.is_answered:
                return self._patience(str(now.refusal), now.rest())
            self._retry_after = self._every
            raise now.refusal
        self._backoff.reset()
        self._accepted(f"{self.name}: {now.news} new or changed of {now.seen}")
        return now.rest()

    def _patience(self, reason: str, pause: float) -> float:
        self._tell_failure(reason, pause)
        return pause

    def _ask_pages(self, asking: _Asking) -> None:
        """Ask the remaining pages of a question, and emit their items."""
        now, pages = self._round, asking.page
        while asking.page <= min(pages, self._questions.pages) and not self._stopping.is_set():
            body = self._answer({**asking.parameters, **self._page(asking.page)})
            try:
                page = page_of(json.loads(body), self._items, self.name)
            except (ValueError, RecursionError):
                now.news += self._take_news([(None, body, body)] if body.strip() else [])
                now.is_answered = True
                break
            told = [self._told_of(item) for item in page.items]
            now.seen += len(told)
            now.news += self._take_news(told)
            now.is_answered = self._welcome = True
            asking.page, pages = asking.page + 1, page.pages

    def _page(self, number: int) -> dict[str, str]:
        entries = str(self._questions.limit)
        return {"paginationInput.entriesPerPage": entries, "paginationInput.pageNumber": str(number)}

    def _answer(self, parameters: Mapping[str, str]) -> bytes:
        from anabranch.sources.receivers.asking import ask  # here: a start-up cost of HTTP alone

        app_id = self._app_id
        asked = urlencode({**parameters, **(app_id.parameters() if app_id else {})})
        url = f"{self._url}{'&' if urlsplit(self._url).query else '?'}{asked}"
        secret = app_id.headers() if app_id else {}
        with (
            self._within_time(),
            ask(self._dialer, url, _HEADERS, self._timeout, confidential=secret, within=self._timeout) as response,
        ):
            if response.status_code in (429, 503):
                self._retry_after = retry_after(response)
            check_status(response, url)
            return read_body(response, self.name)

    @contextmanager
    def _within_time(self) -> Iterator[None]:
        """Break the connection when the answer is not whole in time: a drop now and then is a sign of life, no more."""
        late = threading.Event()

        def give_up() -> None:
            late.set()
            self._dialer.cut()

        timer = threading.Timer(self._timeout, give_up)
        timer.daemon = True
        timer.start()
        try:
            yield
        except OSError:
            if not late.is_set():
                raise
        finally:
            timer.cancel()
            timer.join()
        if late.is_set():
            raise TimeoutError(f"timed out: no whole answer within {self._timeout:g} s")

    def _told_of(self, item: Any) -> tuple[Any, bytes, bytes]:
        """Return an item's key, its content, and its record; anything that is no item becomes a malformed record."""
        if not isinstance(item, Mapping):
            text = json.dumps(item).encode()
            return None, text, text
        kept = self._context.item(item)
        content = json.dumps(kept, sort_keys=True).encode()
        return self._context.key(kept), content, self._context.record(self._at(), kept)

    def _at(self) -> str:
        # A clock that is set back makes no event late.
        self._last_at = max(self._last_at, int(self.now() * 1000) * 1000)
        return format_instant(self._last_at)

    def _take_news(self, told: list[tuple[Any, bytes, bytes]]) -> int:
        if not self._only_changes:
            self._take([record for _, _, record in told])
            return len(told)
        records = [record for key, content, record in told if self._told.changes(key, content)]
        if records:
            self._take(records, self._new_cursor())
        return len(records)

    def _new_cursor(self) -> dict[str, Any]:
        told = base64.b64encode(self._told.packed()).decode()
        return {"address": self.name, "context": self._context_digest(), "told": told}

    def _context_digest(self) -> str:
        text = json.dumps(self._context.data, sort_keys=True)
        return blake2b(text.encode(), digest_size=8).hexdigest()
