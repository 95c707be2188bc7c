"""A run without its terminal: records in, answers out, in batches that live input keeps at one record.

Invariant: streams are fed in the order of time and told how far the others are, so none holds the others back; an event
is late only by its own stream's watermark; a stream that has ended moves no query on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from anabranch.cli.deadletters import SetAside
from anabranch.cli.inputs import Inputs, Record
from anabranch.engine.answers import Answer
from anabranch.engine.engine import Pushed
from anabranch.engine.query import QueryWarning
from anabranch.engine.session import Query, Session
from anabranch.errors import QueryError
from anabranch.model.event import Event
from anabranch.model.instants import subtract_duration
from anabranch.model.temporal import Duration

_BATCH = 256


class Replay:
    """Feeds a session from inputs and tells its answers. A query that fails stops alone; the others go on. `between` is
    called before each batch."""

    def __init__(
        self,
        session: Session,
        queries: Sequence[Query],
        inputs: Inputs,
        set_aside: SetAside,
        lateness: Duration | None = None,
        between: Callable[[], None] | None = None,
    ) -> None:
        self._session = session
        self._queries = list(queries)
        self._inputs = inputs
        self._set_aside = set_aside
        self._lateness = lateness
        self._between = between
        self.events = 0
        self.rows = 0
        self.failures: list[QueryError] = []

    @property
    def instants(self) -> int:
        return sum(query.instants for query in self._queries)

    @property
    def evaluations(self) -> int:
        return sum(query.evaluations for query in self._queries)

    @property
    def verified(self) -> int:
        return sum(query.verified for query in self._queries)

    @property
    def differing(self) -> int:
        return sum(query.differing for query in self._queries)

    def run(
        self,
        on_answer: Callable[[Answer], None],
        on_warning: Callable[[QueryWarning], None] = lambda warning: None,
        on_progress: Callable[[int], None] = lambda events: None,
        until: int | None = None,
        drain: bool = False,
    ) -> None:
        self._session.plan_end(until, drain)
        for batch in self._batches():
            if self._between is not None:
                self._between()
            self._push(batch)
            self._tell(on_answer, on_warning)
            on_progress(self.events)
            if all(query.done for query in self._queries):
                return
        self._session.finish(until=until, drain=drain, now=time.time_ns() // 1000)
        self._tell(on_answer, on_warning)

    def _batches(self) -> Iterator[list[Record]]:
        records = self._inputs.merged()
        size = 1 if self._inputs.live else _BATCH
        while batch := list(islice(records, size)):
            yield batch

    def _push(self, batch: list[Record]) -> None:
        by_stream: dict[str, list[Event]] = {}
        ended: list[str] = []
        for stream, record in batch:
            if record is None:
                ended.append(stream)
            elif isinstance(record, Event):
                by_stream.setdefault(stream, []).append(record)
                self.events += 1
            else:
                self._set_aside.add_malformed(stream, record)
        for stream, events in by_stream.items():
            self._note(stream, self._session.push(stream, events))
        for stream in ended:
            for settled in self._session.settle_doubts(stream, is_over=True):
                self._note(stream, settled)
            self._session.close_stream(stream)
        reached = self._session.reached()
        if by_stream and reached is not None and len(self._inputs.streams) > 1:
            reached = reached if self._lateness is None else subtract_duration(reached, self._lateness)
            self._session.advance(reached - 1)

    def _note(self, stream: str, pushed: Pushed) -> None:
        for event in pushed.late:
            self._set_aside.add_late(stream, event)
        for event in pushed.ahead:
            self._set_aside.add_ahead(stream, event)

    def _tell(self, on_answer: Callable[[Answer], None], on_warning: Callable[[QueryWarning], None]) -> None:
        for query in self._queries:
            for warning in query.warnings():
                on_warning(warning)
        self.failures += [failure for _, failure in self._session.failures()]
        for answer in self._session.take():
            self.rows += len(answer.rows)
            on_answer(answer)
