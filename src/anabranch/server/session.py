"""A session: a named workspace of streams, graphs and queries with one run, changed while it runs.

A change is first checked against all contents of the session; then it is stored in the catalogue; then the carrier
restarts the run. So a refused change changes nothing, and a server that is killed at any point restarts with the
session as the last response to a client described it.

Invariant: the running job is that of the catalogue, with a delay of a tenth of a second and a batch.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

from anabranch.engine.evaluation_options import OnError
from anabranch.engine.session import as_lateness
from anabranch.errors import AnabranchError, QueryError, StreamError
from anabranch.insight.operators import operator_graph
from anabranch.insight.recording import Recording
from anabranch.insight.shapes import OperatorGraph, OperatorLoad
from anabranch.model.instants import format_instant
from anabranch.model.union import ConflictPolicy
from anabranch.model.windows import WindowPolicy
from anabranch.runner.folder import RunFolder
from anabranch.runner.job import Job, forms_of
from anabranch.runner.outlet import Observers, RunProgress
from anabranch.server import checking, uploads
from anabranch.server.carrying import Carrier, Load
from anabranch.server.catalogue import StoredGraph, StoredQuery, StoredStream, StoredTiming, Wish
from anabranch.server.figures import Figures
from anabranch.server.gate import PushReceipt, read_events
from anabranch.server.graphs import SessionGraphs
from anabranch.server.host import SessionHost
from anabranch.server.problems import (
    EXISTS,
    NOT_FOUND,
    REFUSED,
    TOO_EARLY,
    TOO_MANY,
    TOO_MANY_CLIENTS,
    ServerError,
    error_dict,
    unknown,
)
from anabranch.server.queries import QueryStanding, QueryStatus, query_status
from anabranch.server.recording import Marks, recorded
from anabranch.server.renewal import Renewal
from anabranch.server.results import ResultLog
from anabranch.server.streams import (
    Feeds,
    ReadRecords,
    SessionLetters,
    StreamInfo,
    as_records,
    timing_of,
)
from anabranch.server.subscriptions import Subscription, Wakers
from anabranch.server.workspace import Workspace, check_name, options_of, scripts_of
from anabranch.sources.address import parse_address
from anabranch.sources.base import AsEvent
from anabranch.sources.stream_specs import resolved_names, streams_read

SessionState: TypeAlias = Literal["running", "paused", "stopped", "failed"]
LetterKind: TypeAlias = Literal["late", "ahead", "malformed"]
T = TypeVar("T")
_WARNINGS = 20
_MARKING = 2.0  # seconds from the results of a batch to its end
_log = logging.getLogger("anabranch.server")


class LiveSession:
    """A session, created by the hub. Every method may be called from any thread; methods that check texts take a
    while."""

    def __init__(self, name: str, folder: Path, host: SessionHost, wish: Wish = "running") -> None:
        self.name = name
        self._catalogue = catalogue = host.catalogue
        self._limits = limits = host.limits
        self._workers = host.workers
        self._timing = host.timing
        self._clients = host.clients
        self._folder = RunFolder(str(folder))
        self._folder.open()
        try:
            self._log = ResultLog(folder / "results.sqlite", limits, on_gap=self._missed)
        except BaseException:
            self._folder.close()
            raise
        self._wakers = Wakers(self._log)
        self._feeds = Feeds(self._folder, host.reach)
        self._lock = threading.RLock()  # guards changes
        self._changes = 0
        self._is_over = False
        self._figures = Figures(folder / "letters", self._feeds, host.timing)
        self._graphs = SessionGraphs(name, folder / "given", catalogue, self._feeds)
        self._holds = Workspace(name, catalogue, self._graphs, self._feeds, limits)
        self._marks = Marks()
        self._warnings: dict[str, deque[str]] = {}
        self._notes: deque[str] = deque(maxlen=100)
        self._job: Job | None = None
        self._feeds.receiving = wish != "stopped"
        self._carrier = Carrier(name, self._folder, self._prepare, wish, host.spark)
        self._renewal = Renewal(name, self._folder, catalogue, self._carrier, self._feeds, self._forget_run)
        self._subscriptions: set[Subscription] = set()

    # --- life -----------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Start the carrier."""
        self._renewal.finish()
        self._look_for_damage()
        self._carrier.start()

    def _look_for_damage(self) -> None:
        """Report stored data that is missing although the session had promised to keep it."""
        streams = self._catalogue.streams(self.name)
        for one in streams:
            if one.address is None and self._folder.spool(one.name).exists():
                self._feeds.spool(one.name)
        known = {self._folder.spool(name).name for one in streams for name in (one.name, one.meant) if name}
        for folder in (self._folder.path / "spool").glob("*"):
            if folder.name not in known:
                self._notes.append(f"{folder} belongs to no stream of the catalogue, which may have lost one")
        for said in (*self._feeds.shortages, *self._notes):
            _log.error("session %s: %s", self.name, said.partition("\n")[0])

    @property
    def state(self) -> SessionState:
        return "failed" if self.error is not None else self._carrier.wish

    @property
    def error(self) -> dict[str, Any] | None:
        lost = self._feeds.shortages if self._carrier.error is None else []
        return error_dict(StreamError(lost[0])) if lost else self._carrier.error

    @property
    def ended(self) -> bool:
        """Whether all streams have ended and everything was answered."""
        return self._carrier.ended

    @property
    def is_starting(self) -> bool:
        """Whether the session's run waits for Spark to start."""
        return self._carrier.is_starting

    @property
    def notes(self) -> list[str]:
        """The messages of the run, the newest last."""
        return list(self._notes)

    def start(self) -> None:
        """Run, also if stored data was lost."""
        self._feeds.accept_shortages()
        self._wish("running")

    def pause(self) -> None:
        """Stop between two batches; events that are pushed meanwhile wait."""
        self._wish("paused")

    def stop(self) -> None:
        """Stop between two batches, and stop the receivers."""
        self._wish("stopped")

    def _wish(self, wish: Wish) -> None:
        with self._changing():
            self._catalogue.put_session(self.name, wish)
            self._carrier.set_wish(wish)
            self._feeds.receive(wish != "stopped")

    def settle(self, seconds: float = 10.0) -> bool:
        """Wait until the run has the last change, or has stopped as requested."""
        return self._carrier.settle(seconds)

    def close(self) -> None:
        """Stop the run and release everything; the session is restored when the server restarts."""
        with self._lock:
            self._is_over = True
        self.end_live("the session has ended")
        self._carrier.close()
        self._feeds.close()
        self._log.shut()
        self._folder.close()

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Allow one change at a time, and none of an ended session, because nothing would remove its traces."""
        with self._lock:
            if self._is_over:
                raise self._ended()
            yield
            self._changes += 1

    def _ended(self) -> ServerError:
        return ServerError(NOT_FOUND, f"the session `{self.name}` has ended")

    # --- streams --------------------------------------------------------------------------------------------------

    def streams(self) -> list[StreamInfo]:
        return self._figures.streams(self._catalogue.streams(self.name))

    def stream(self, name: str) -> StreamInfo:
        streams = self.streams()
        for one in streams:
            if name in (one.name, one.meant):
                return one
        raise unknown("stream", name, [one.name for one in streams])

    def add_stream(
        self,
        name: str,
        address: str | None = None,
        *,
        lateness: str | None = None,
        timing: StoredTiming = StoredTiming(),  # noqa: B008 - frozen
        follow: bool = False,
        replace: bool = False,
    ) -> StreamInfo:
        """Add a stream from an address, or (without one) a stream that `push` fills. With `replace` it replaces the
        stream of that name, and starts from scratch."""
        check_name("stream", name)
        if lateness is not None:
            as_lateness(lateness)
        timing_of(timing, self._timing)
        if address is not None:
            self._feeds.check(name, address, follow)  # this may take a while
        with self._changing():
            stored = self._catalogue.streams(self.name)
            there = next((one for one in stored if name in (one.name, one.meant)), None)
            if there is not None and not replace:
                raise ServerError(EXISTS, f"there is a stream `{name}` already", "remove it first, or replace it")
            if there is None and len(stored) >= self._limits.streams:
                raise ServerError(TOO_MANY, f"a session has at most {self._limits.streams} streams")
            names = [*(one.meant or one.name for one in stored), name]
            known = resolved_names(names, streams_read(self._holds.scripts()))[name] if there is None else there.meant
            new = StoredStream(name if there is None else there.name, address, lateness, known, follow, timing=timing)
            others = [one for one in stored if one is not there]
            self._refuse_doubt([*others, new])
            if there is None and known not in self._renewal.begun():
                self._feeds.forget(new)  # removes remains of an earlier stream of that name
                self._catalogue.put_stream(self.name, new)
                self._carrier.changed()
            else:
                self._renewal.add(new, there, bool(others))
            return self.stream(name)

    def _refuse_doubt(self, streams: Sequence[StoredStream]) -> None:
        """Refuse a set of streams with which an active query would no longer run."""
        try:
            self._holds.check(self._holds.active(), streams)
        except QueryError as error:
            said = error.diagnostics[0]
            name = error.file_name.rpartition(".")[0]
            raise ServerError(REFUSED, f"query `{name}` would not run any more: {said.message}", said.hint) from None

    def _forget_run(self) -> None:
        self._log.begin_anew()
        self._marks.clear()
        self._figures.progress = RunProgress()

    def push(
        self, name: str, records: bytes | Sequence[Any], content_type: str | None = None, at: int | None = None
    ) -> PushReceipt:
        """Add events: JSON objects, or a body in a format that its content type names. They are on disk when it
        returns."""
        stored = self._holds.stream(name)
        if stored.address is not None:
            raise ServerError(
                REFUSED, f"stream `{name}` comes from {parse_address(stored.address).shown}; nothing is pushed into it"
            )
        if stored.stopped:
            raise ServerError(REFUSED, f"stream `{name}` was stopped")
        found = uploads.records(records, content_type, at, name) if isinstance(records, bytes) else as_records(records)
        if (stored.meant or stored.name) in self._holds.loaded():
            read = ReadRecords(found, None)
        else:
            read = ReadRecords(found, *read_events(found, AsEvent(name)))
        ahead = timing_of(stored.timing, self._timing).ahead
        return self._feeds.push(stored, ahead, read, self._figures.marks(stored))

    def stop_stream(self, name: str) -> None:
        """End the stream at its present position: its last instants are answered."""
        with self._changing():
            stored = self._holds.stream(name)
            if not stored.stopped:
                if stored.address is None:
                    self._feeds.spool(stored.name).finish()
                self._catalogue.put_stream(self.name, replace(stored, stopped=stored.address is not None))
                self._carrier.changed()

    def set_clock(self, name: str, at: int) -> StreamInfo:
        """Set a stream's clock: forward, events before the instant are late; back, the stream restarts there without
        events, and so do the queries that read it."""
        with self._changing():
            stored = self._holds.stream(name)
            number = (stored.timing.clock or (0, 0))[0] + 1
            timing = replace(stored.timing, clock=(number, at))
            with self._carrier.held():  # events that are pushed after the response come after the new clock
                self._catalogue.put_stream(self.name, replace(stored, timing=timing))
                self._catalogue.forget_failures(self.name)
                if stored.address is None:
                    self._feeds.set_clock(stored.name, at)
        return self.stream(name)

    def remove_stream(self, name: str) -> None:
        """Remove the stream. Queries that read it must be deleted before."""
        with self._changing():
            stored = self._holds.stream(name)
            left = [one for one in self._catalogue.streams(self.name) if one.name != stored.name]
            self._holds.check(self._holds.active(), left)
            self._catalogue.remove_stream(self.name, stored.name)
            with self._carrier.held():
                self._feeds.forget(stored)
                for kind in ("late", "ahead", "malformed"):
                    self._figures.letters(stored.meant or stored.name, kind).unlink(missing_ok=True)

    def letters(self, name: str, kind: LetterKind) -> Path:
        """Return the file of records that were set aside; it may not exist yet."""
        return self._figures.letters(self._holds.stream(name).meant or name, kind)

    # --- static graphs --------------------------------------------------------------------------------------------

    def graphs(self) -> list[StoredGraph]:
        return self._graphs.stored()

    def graph(self, name: str) -> tuple[StoredGraph, bytes]:
        """Return a static graph as it was uploaded."""
        return self._graphs.one(name), self._graphs.data(name)

    def add_graph(self, name: str, data: bytes, format: str = "application/json") -> StoredGraph:
        """Add or replace a static graph; `format` is its media type. The empty name is the graph that SPARQL sees by
        default."""
        if name:
            check_name("graph", name)
        graph = uploads.graph(data, format, name or "the default graph")
        with self._changing():
            known = {one.name for one in self.graphs()}
            if name not in known and len(known) >= self._limits.graphs:
                raise ServerError(TOO_MANY, f"a session has at most {self._limits.graphs} graphs")
            stored = self._graphs.put(name, data, format, graph)
            self._carrier.changed()
        return stored

    def remove_graph(self, name: str) -> None:
        """Remove a static graph. Queries that read it must be deleted before."""
        with self._changing():
            self._graphs.one(name)
            active = self._holds.active()
            self._holds.check(active, graphs=self._graphs.seen_by(scripts_of(active), without=name))
            self._graphs.remove(name)
            self._carrier.changed()

    # --- queries --------------------------------------------------------------------------------------------------

    def check(self, text: str, language: str | None = None) -> list[dict[str, Any]]:
        """Return the diagnostics of a text, for an editor; none when the text could be registered as it is."""
        try:
            self._within(lambda: self._holds.readable(text, language, {}, "trailing", "latest", replacing=True))
        except AnabranchError as error:
            return checking.diagnostics_of(error, text)
        return []

    def explain(self, text: str, language: str | None = None) -> dict[str, Any]:
        """Explain a text: {"text", "json", "drawings": {"before", "after", "dgraph"}}."""
        checking.refuse_long(text, self._limits.query_text)
        name = f"query.{checking.language_of(text, language)}"

        def work() -> dict[str, Any]:
            return checking.explained(text, name, self._graphs.seen_by(scripts_of(self._holds.active())))

        return self._within(work)

    def register(
        self,
        text: str,
        *,
        parameters: Mapping[str, Any] | None = None,
        replace: bool = False,
        language: str | None = None,
        windows: WindowPolicy = "trailing",
        conflicts: ConflictPolicy = "latest",
        on_error: OnError = "skip",
    ) -> list[QueryStatus]:
        """Add the queries of a text; with `replace` a query replaces the one of the same name. `on_error`: a row on
        which an expression fails is skipped, or ends its query."""
        changes = self._changes
        new = [
            dataclasses.replace(one, on_error=on_error)
            for one in self._within(
                lambda: self._holds.readable(text, language, parameters or {}, windows, conflicts, replace)
            )
        ]
        with self._changing():
            stored = {one.name: one for one in self._catalogue.queries(self.name)}
            self._holds.refuse_taken([one.name for one in new], stored, replace)
            added = {one.name for one in new}
            if self._changes != changes:  # the session has changed since the text was checked
                others = [one for name, one in stored.items() if name not in added and not one.paused]
                self._holds.check([*others, *new])
            new = [self._tried(one, stored.get(one.name)) for one in new]
            self._holds.resolve_streams(
                scripts_of([*(one for name, one in stored.items() if name not in added), *new]), self._renewal.begun()
            )
            for one in new:
                self._catalogue.put_query(self.name, one)
                self._warnings.pop(one.name, None)
            self._carrier.changed()
        return [self._live(one) for one in new]

    def _tried(self, new: StoredQuery, old: StoredQuery | None) -> StoredQuery:
        """Bump the attempt counter, so that the engine does not mistake this query for a failed or just deleted one of
        the same name."""
        tries = time.time_ns() // 1_000 if old is None else old.tries + (old.error is not None)
        return replace(new, tries=tries)

    def query(self, name: str) -> QueryStatus:
        return self._live(self._holds.query(name))

    def _live(self, stored: StoredQuery) -> QueryStatus:
        # This order keeps results as new as the status, so that a query that has just answered is not `waiting`.
        standing = QueryStanding(
            *self._figures.standing(stored.name), *self._figures.skipped(stored.name), self._log.last(stored.name)
        )
        runs = self.state == "running" and (self._carrier.is_carrying or self._carrier.ended)
        found, warnings = self._holds.registration(stored), self._warnings.get(stored.name, ())
        return query_status(stored, found, standing, warnings, runs)

    def queries(self) -> list[QueryStatus]:
        return [self._live(one) for one in self._catalogue.queries(self.name)]

    def query_names(self) -> list[str]:
        return [one.name for one in self._catalogue.queries(self.name)]

    def require(self, queries: Sequence[str]) -> None:
        """Refuse names that no query has."""
        for one in queries:
            self._holds.query(one)

    def pause_query(self, name: str) -> QueryStatus:
        return self._set_paused(name, True)

    def resume_query(self, name: str) -> QueryStatus:
        """Resume a paused or failed query: it begins with the present content of its windows."""
        return self._set_paused(name, False)

    def _set_paused(self, name: str, paused: bool) -> QueryStatus:
        with self._changing():
            stored = self._holds.query(name)
            if stored.paused != paused or stored.error is not None:
                others = [one for one in self._catalogue.queries(self.name) if one.name != name and not one.paused]
                self._holds.check(others if paused else [*others, stored])
                self._note_missed(stored)
                self._catalogue.put_query(self.name, replace(self._tried(stored, stored), paused=paused, error=None))
                self._carrier.changed()
            return self.query(name)

    def _note_missed(self, stored: StoredQuery) -> None:
        """Report the instants that a failed query has not answered."""
        failed_at = None if stored.error is None else self._figures.failed_at(stored.name)
        if failed_at is not None:
            self._notes.append(
                f"query {stored.name} failed at {format_instant(failed_at)}: its instants from then on were not "
                "answered, and it goes on with what the windows hold"
            )

    def delete_query(self, name: str) -> None:
        with self._changing():
            self._holds.query(name)
            left = [one for one in self._catalogue.queries(self.name) if one.name != name]
            self._holds.check([one for one in left if not one.paused])
            self._catalogue.remove_query(self.name, name)
            self._warnings.pop(name, None)
            with self._carrier.held():  # a batch in progress may still bring results of it
                self._log.forget(name)

    # --- results --------------------------------------------------------------------------------------------------

    @property
    def log(self) -> ResultLog:
        return self._log

    def results(self, query: str, after: int = -1, limit: int = 100) -> list[dict[str, Any]]:
        """Return the results after a number, the oldest first; -1 begins with the oldest that is kept."""
        self._holds.query(query)
        return [one.to_dict() for one in self._log.read(query, after, limit)]

    def listen(
        self, queries: Sequence[str] | None = None, after: int | Mapping[str, int] | None = None
    ) -> Subscription:
        """Subscribe to results on the calling event loop, without blocking it; the caller checks query names with
        `require` before. See `Subscription`."""
        if self._is_over:
            raise self._ended()
        if not self._clients(1):
            raise ServerError(TOO_MANY_CLIENTS, f"{self._limits.clients} clients are listening already")

        def closed() -> None:
            self._clients(-1)
            self._subscriptions.discard(subscription)

        subscription = Subscription(self._log, self._wakers, self._limits, queries, after, closed)
        self._subscriptions.add(subscription)
        if self._is_over:  # and may not have seen this one
            subscription.close("the session has ended")
        return subscription

    def end_live(self, reason: str) -> None:
        """End all live subscriptions."""
        for subscription in list(self._subscriptions):
            subscription.end(reason)

    # --- insight --------------------------------------------------------------------------------------------------

    def load(self, query: str) -> list[OperatorLoad]:
        """Return the work of each operator of a query so far, as of the run's last progress report."""
        self._holds.query(query)
        said = self._figures.progress.status.get("operators", {}).get(query, [])
        return [OperatorLoad(*figures) for figures in said]

    def operators(self, query: str) -> OperatorGraph:
        """Return the graph of a query's running operators; its ids are those of `load`."""
        stored = self._holds.query(query)
        names = [one.name for one in self._holds.streams_of([stored])]
        graphs = self._graphs.seen_by(scripts_of([stored]))
        recording = Recording.of(options_of(stored), dict.fromkeys(names, ()), graphs=graphs)
        return operator_graph(recording)

    def recording(self, query: str, events: int | None = None) -> Recording:
        """Return the last events of the query's streams, at most `events`, with all that is needed to replay them."""
        job, stored = self._job, self._holds.query(query)
        if job is None or not any(one.options.source_name == query for one in job.queries):
            raise ServerError(TOO_EARLY, f"query `{query}` has not run since the server began", "start the session")
        self._marks.reach(self._log.batch, _MARKING)  # the caller may have seen results of this batch
        most = min(events or self._limits.insight_events, self._limits.insight_events)
        return recorded(job, self._holds.registration(stored), options_of(stored), self._marks, most)

    # --- figures --------------------------------------------------------------------------------------------------

    @property
    def progress(self) -> RunProgress:
        return self._figures.progress

    def metrics(self) -> dict[str, Any]:
        """Return totals of the session since it was made, and figures of the last batch."""
        clients, failed = len(self._subscriptions), len(self.failing_queries())
        own = {"clients": clients, "failed_queries": failed, "state": self.state, "ended": self.ended}
        return {**self._figures.totals(), **own}

    def failing_queries(self) -> list[str]:
        """Return the queries that have failed and are not evaluated any more."""
        return [one.name for one in self._catalogue.queries(self.name) if one.error is not None and not one.paused]

    def skipping_queries(self) -> list[str]:
        """Return the queries that have skipped rows on which an expression failed."""
        return [name for name in self.query_names() if self._figures.skipped(name)[0]]

    # --- the run --------------------------------------------------------------------------------------------------

    def _within(self, work: Callable[[], T]) -> T:
        return self._workers.within(self._limits.check_seconds, work, "reading the text")

    def _prepare(self) -> Load | None:
        """Return the load to run now; the carrier calls this, so it must not wait for a change in progress."""
        job = self._holds.job(self._timing, forms_of([self._log]))
        if job is None:
            return None
        self._job = job
        self._figures.sources = {one.name: one.source for one in job.streams}
        observers = Observers(self._warned, self._failed, self._notes.append, self._moved)
        return Load(job, [self._log], SessionLetters(self._folder.path / "letters"), observers, self._feeds.raise_error)

    def _missed(self, query: str, first: int, last: int) -> None:
        said = f"the results {first} to {last} of `{query}` are missing: results.sqlite is older than the checkpoint"
        self._notes.append(said)
        _log.error("session %s: %s", self.name, said)

    def _warned(self, query: str, at: int, text: str) -> None:
        self._warnings.setdefault(query, deque(maxlen=_WARNINGS)).append(text)

    def _failed(self, failure: QueryError) -> None:
        name = failure.file_name.rpartition(".")[0]
        self._catalogue.note_failure(self.name, name, error_dict(failure))

    def _moved(self, progress: RunProgress) -> None:
        events = self._figures.moved(progress)
        if progress.offset:
            self._marks.note(progress.batch, progress.offset, events, self._figures.watermarks())
