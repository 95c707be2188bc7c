"""The contents of a session, parsed and checked: its streams, its queries, and whether they fit together.

Invariant: only `resolve_streams` changes a session, and nothing here runs; the engine accepts every set of queries that
passes `check`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from anabranch.algebra.operators import Registration
from anabranch.algebra.walk import windows as windows_of
from anabranch.engine.engine import Engine
from anabranch.engine.evaluation_options import EvaluationOptions
from anabranch.engine.query_options import CompiledQuery, QueryOptions
from anabranch.engine.session import as_lateness, parameter_values
from anabranch.engine.timing import StreamTiming
from anabranch.errors import QueryError
from anabranch.model.union import ConflictPolicy
from anabranch.model.windows import WindowPolicy
from anabranch.plugins.oxigraph import Oxigraph
from anabranch.runner.job import Job
from anabranch.runner.options import RunOptions, StreamOptions
from anabranch.server import checking
from anabranch.server.catalogue import Catalogue, StoredQuery, StoredStream
from anabranch.server.graphs import SessionGraphs
from anabranch.server.limits import Limits
from anabranch.server.problems import BAD_REQUEST, EXISTS, REFUSED, TOO_MANY, ServerError, unknown
from anabranch.server.streams import PUSH, Feeds, timing_of
from anabranch.sinks.base import AnswerForm
from anabranch.sources.static import AnyGraph
from anabranch.sources.stream_specs import StreamSpec, open_stream, resolved_names, stream_specs, streams_read
from anabranch.syntax.languages import Script

_LONGEST_NAME = 200


class Workspace:
    def __init__(self, session: str, catalogue: Catalogue, graphs: SessionGraphs, feeds: Feeds, limits: Limits) -> None:
        self._session = session
        self._catalogue = catalogue
        self._graphs = graphs
        self._feeds = feeds
        self._limits = limits

    def stream(self, name: str) -> StoredStream:
        stored = self._catalogue.streams(self._session)
        for one in stored:
            if name in (one.name, one.meant):
                return one
        raise unknown("stream", name, [one.name for one in stored])

    def query(self, name: str) -> StoredQuery:
        stored = self._catalogue.queries(self._session)
        for one in stored:
            if one.name == name:
                return one
        raise unknown("query", name, [one.name for one in stored])

    def active(self) -> list[StoredQuery]:
        return [one for one in self._catalogue.queries(self._session) if not one.paused]

    def scripts(self) -> list[Script]:
        return scripts_of(self._catalogue.queries(self._session))

    def loaded(self) -> set[str]:
        """Return the streams whose records a LOAD STREAM reads."""
        return {
            one.name for one in self.streams_of(self._catalogue.queries(self._session)) if not one.records_are_events
        }

    def streams_of(
        self, queries: Iterable[StoredQuery], streams: Sequence[StoredStream] | None = None
    ) -> list[StreamSpec]:
        """Return the streams of the session, and those that queries load, as a run opens them."""
        stored = self._catalogue.streams(self._session) if streams is None else streams
        pairs = [(one.meant or one.name, one.address or f"{PUSH}{one.name}") for one in stored]
        return stream_specs(pairs, scripts_of(queries))

    def resolve_streams(self, scripts: Sequence[Script], begun: Collection[str]) -> None:
        """Store the IRI that a query uses for a stream as the name of that stream."""
        stored = [one for one in self._catalogue.streams(self._session) if (one.meant or one.name) not in begun]
        names = resolved_names([one.meant or one.name for one in stored], streams_read(scripts))
        for one in stored:
            known = names[one.meant or one.name]
            if known != one.meant:
                self._catalogue.put_stream(self._session, replace(one, meant=known))

    def refuse_taken(self, names: Sequence[str], stored: Mapping[str, StoredQuery], replacing: bool) -> None:
        taken = [name for name in names if name in stored]
        if taken and not replacing:
            raise ServerError(EXISTS, f"there is a query `{taken[0]}` already", "delete it first, or replace it")
        if len(stored.keys() | set(names)) > self._limits.queries:
            raise ServerError(TOO_MANY, f"a session has at most {self._limits.queries} queries")

    def readable(
        self,
        text: str,
        language: str | None,
        parameters: Mapping[str, Any],
        windows: WindowPolicy,
        conflicts: ConflictPolicy,
        replacing: bool,
    ) -> list[StoredQuery]:
        """Parse the queries of a text, and check them together with the existing ones."""
        checking.refuse_long(text, self._limits.query_text)
        spoken = checking.language_of(text, language)
        found = checking.registrations(text, f"query.{spoken}")
        if not found:
            raise ServerError(BAD_REQUEST, "the text registers no query", "it begins with REGISTER QUERY")
        checking.refuse_halves(json.dumps(dict(parameters), ensure_ascii=False, default=str))
        values = parameter_values(parameters)
        new = [StoredQuery(one.name, text, spoken, values, windows, conflicts) for one in found]
        for one in new:
            check_name("query", one.name)
        stored = {one.name: one for one in self._catalogue.queries(self._session)}
        if not replacing:
            self.refuse_taken([one.name for one in new], stored, replacing)
        others = [one for name, one in stored.items() if name not in {query.name for query in new} and not one.paused]
        try:
            self.check([*others, *new])
        except QueryError as error:
            if error.text != text and any(one.text == error.text for one in others):
                raise ServerError(
                    REFUSED, f"another query would not run any more: {error.diagnostics[0].message}"
                ) from None
            raise
        checking.plan_all(found, {})
        self._check_loaded(new)
        return new

    def _check_loaded(self, new: Sequence[StoredQuery]) -> None:
        """Refuse a LOAD STREAM that cannot be opened: it would end the run of all queries."""
        given = {one.address for one in self._catalogue.streams(self._session)}
        for stream in self.streams_of(new):
            for address in stream.addresses:
                if not address.startswith(PUSH) and address not in given:
                    self._feeds.check(stream.name, address, records_are_events=stream.records_are_events)

    def check(
        self,
        active: Sequence[StoredQuery],
        streams: Sequence[StoredStream] | None = None,
        graphs: Mapping[str, AnyGraph] | None = None,
    ) -> None:
        """Refuse a set of queries that the engine would refuse."""
        read = self.streams_of(active, streams)
        engine = Engine(fixed_streams=True, plugin=Oxigraph())
        for one in read:
            engine.declare_stream(one.name)
        for name, graph in (self._graphs.seen_by(scripts_of(active)) if graphs is None else graphs).items():
            engine.add_static_graph(name, graph)
        found = [self.compiled(one) for one in active]
        reading = next((one.registration for one in found if windows_of(one.registration.plan)), None)
        if not read and reading is not None:
            raise ServerError(
                REFUSED, f"query `{reading.name}` reads a stream, and the session has none", "add a stream first"
            )
        engine.check(found)

    def job(self, timing: StreamTiming, forms: tuple[AnswerForm, ...]) -> Job | None:
        """Return the job of the queries that are not paused, if there are any; its streams are opened."""
        queries = self._catalogue.queries(self._session)
        streams = self._catalogue.streams(self._session)
        active = [one for one in queries if not one.paused]
        if not active:
            return None
        opener = self._feeds.opener(streams)
        own = {
            one.meant or one.name: StreamOptions(
                as_lateness(one.lateness), timing_of(one.timing, timing), one.timing.clock
            )
            for one in streams
        }
        return Job(
            tuple(open_stream(one, opener) for one in self.streams_of(queries, streams)),
            tuple(map(self.compiled, active)),
            RunOptions(
                evaluation=EvaluationOptions(max_steps=self._limits.steps),
                timing=timing,
                batch_events=self._limits.batch_events,
            ),
            own,
            self._graphs.seen_by(scripts_of(active)),
            forms=forms,
        )

    def compiled(self, stored: StoredQuery) -> CompiledQuery:
        return CompiledQuery(self.registration(stored), options_of(stored))

    def registration(self, stored: StoredQuery) -> Registration:
        found = checking.registrations(stored.text, f"query.{stored.language}")
        return next(one for one in found if one.name == stored.name)


def options_of(stored: StoredQuery) -> QueryOptions:
    # A new attempt is a different query for the engine: a parameter that no text can name distinguishes them.
    parameters = {**stored.parameters, " try": stored.tries} if stored.tries else stored.parameters
    return QueryOptions(
        stored.windows,
        stored.conflicts,
        parameters,
        None,
        stored.text,
        stored.file_name,
        stored.name,
        on_error=stored.on_error,
    )


def scripts_of(queries: Iterable[StoredQuery]) -> list[Script]:
    """Return the texts of queries, each once."""
    found = {one.text: f"query.{one.language}" for one in queries}
    return [checking.script(text, name) for text, name in found.items()]


_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def check_name(kind: str, name: str) -> None:
    checking.refuse_halves(name)
    if not name or _CONTROL.search(name) or name != name.strip() or name in (".", ".."):
        raise ServerError(BAD_REQUEST, f"{json.dumps(name[:40])} is no name of a {kind}")
    if len(quote(name, safe="")) > _LONGEST_NAME:
        raise ServerError(BAD_REQUEST, f"the name of a {kind} has at most {_LONGEST_NAME} characters, percent-encoded")
