"""A subscription: the results of some queries, in the order of their numbers, for one client on an event loop.

A subscription stores no results, only the last delivered number of each query. It is woken once per batch and reads the
results after those numbers from the log, as shared bytes. So a client that does not read needs no memory, delays no
other client, and is disconnected when it has been behind for too long.

Invariant: the results of a query are delivered without gaps; if the log no longer has the next one, the subscription
ends.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from anabranch.server.limits import Limits
from anabranch.server.problems import TOO_SLOW, ServerError
from anabranch.server.results import Result, ResultLog

MOST_RESULTS = 500  # at a time
MOST_BYTES = 1 << 20


class Wakers:
    """Wakes the subscriptions of each event loop with one cross-thread call per batch, however many wait there."""

    def __init__(self, log: ResultLog) -> None:
        self._loops: dict[asyncio.AbstractEventLoop, set[asyncio.Event]] = {}
        log.listen(self._wake)

    def add(self, loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> None:
        self._loops = {**self._loops, loop: self._loops.get(loop, set()) | {event}}

    def remove(self, loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> None:
        left = self._loops.get(loop, set()) - {event}
        others = {one: events for one, events in self._loops.items() if one is not loop}
        self._loops = {**others, **({loop: left} if left else {})}

    def _wake(self) -> None:
        for loop, events in self._loops.items():
            try:
                loop.call_soon_threadsafe(_set_all, events)
            except RuntimeError:  # the loop has been closed, with its clients
                self._loops = {one: found for one, found in self._loops.items() if one is not loop}


def _set_all(events: set[asyncio.Event]) -> None:
    for event in events:
        event.set()


class Subscription:
    """A subscription, created and used on one event loop. `after` is one number for all queries or one for each;
    without it a query begins with its next result. Without `queries` it covers all queries, later ones too."""

    def __init__(
        self,
        log: ResultLog,
        wakers: Wakers,
        limits: Limits,
        queries: Sequence[str] | None = None,
        after: int | Mapping[str, int] | None = None,
        on_close: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log = log
        self._wakers = wakers
        self._limits = limits
        self._clock = clock
        self._on_close = on_close
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()
        self._all = queries is None
        self._after = after
        self._positions: dict[str, int] = {}
        self._behind_since: float | None = None
        self._waiting: list[Result] = []
        self.closed = False
        self.reason: str | None = None
        self._begin(log.queries() if queries is None else list(queries))
        wakers.add(self._loop, self._event)

    def _begin(self, queries: Sequence[str]) -> None:
        for query in queries:
            match self._after:
                case None:
                    self._positions[query] = self._log.last(query)
                case int():
                    self._positions[query] = self._after
                case _:
                    self._positions[query] = self._after.get(query, self._log.last(query))

    def add(
        self, queries: Sequence[str], after: int | Mapping[str, int] | None = None, *, follow: bool = False
    ) -> None:
        """Subscribe to more queries, or continue from another number; with `follow`, also to all future queries."""
        self._after = after
        self._all = self._all or follow
        self._begin(queries)
        self._event.set()

    def drop(self, queries: Sequence[str]) -> None:
        for query in queries:
            self._positions.pop(query, None)

    @property
    def position(self) -> dict[str, int]:
        """The last delivered number of each query."""
        return dict(self._positions)

    def close(self, reason: str | None = None) -> None:
        if not self.closed:
            self.closed = True
            self.reason = reason
            self._wakers.remove(self._loop, self._event)
            self._event.set()
            self._on_close()

    def end(self, reason: str) -> None:
        """Close the subscription from another thread."""
        with suppress(RuntimeError):  # the loop may have been closed before
            self._loop.call_soon_threadsafe(self.close, reason)

    # --- reading --------------------------------------------------------------------------------------------------

    def wake(self) -> None:
        """Wake the waiting `batch` call."""
        self._event.set()

    async def batch(self, is_enough: Callable[[], bool] = lambda: False) -> list[Result]:
        """Return new results, at most some hundred; waits for the first. Empty when the subscription has ended, or when
        it was woken and `is_enough` returns True.

        Raises ServerError when the client is too slow, or needs results that are no longer kept.
        """
        while not self.closed:
            self._event.clear()
            found = await self._take()
            if found or is_enough():
                return found
            await self._event.wait()
        return []

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> dict[str, Any]:
        if not self._waiting:
            self._waiting = list(reversed(await self.batch()))
        if not self._waiting:
            raise StopAsyncIteration
        return self._waiting.pop().to_dict()

    async def _take(self) -> list[Result]:
        if self._all:
            for query in self._log.queries():
                self._positions.setdefault(query, -1)  # its first result has just come
        for query, last in self._log.forgotten(self._positions).items():
            self._positions[query] = max(self._positions[query], last)  # the rest was deleted with the query
        lasts = self._log.lasts()
        pending = {query: at for query, at in self._positions.items() if lasts.get(query, -1) > at}
        self._check_pace(sum(lasts[query] - at for query, at in pending.items()))
        found: list[Result] = []
        for query, at in pending.items():
            fresh = self._log.fresh(query, at, MOST_RESULTS)
            if fresh is None:
                fresh = await asyncio.to_thread(self._log.read, query, at, MOST_RESULTS)
            found += fresh
        if len(pending) > 1:
            found.sort(key=lambda one: one.order)
        found = _within(found)
        for one in found:
            self._positions[one.query] = one.seq
        return found

    def _check_pace(self, pending: int) -> None:
        if pending <= self._limits.client_queue:
            self._behind_since = None
            return
        now = self._clock()
        if self._behind_since is None:
            self._behind_since = now
        elif now - self._behind_since > self._limits.client_patience:
            raise too_slow(f"{pending} results are waiting")


def _within(found: list[Result]) -> list[Result]:
    """Return the first results that fit into one message; at least one."""
    size = 0
    for place, one in enumerate(found[:MOST_RESULTS]):
        size += len(one.body)
        if size > MOST_BYTES and place:
            return found[:place]
    return found[:MOST_RESULTS]


def too_slow(why: str) -> ServerError:
    hint = "read faster, ask for fewer queries, and go on from the last number by `after`"
    return ServerError(TOO_SLOW, f"too slow: {why}", hint)
