"""A job: everything that a run is made of, as data.

The Spark plan is the same for every job; queries, streams and options travel in it as values.

Invariant: a job can be pickled, and two jobs with the same `fingerprint` answer alike from the same checkpoint.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import pickle
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from anabranch.algebra.operators import Registration
from anabranch.engine.compiled import recompile
from anabranch.engine.engine import Engine, LatePolicy
from anabranch.engine.query_options import CompiledQuery, QueryOptions
from anabranch.engine.timing import StreamTiming
from anabranch.errors import EngineError
from anabranch.formats.values import to_typed_json
from anabranch.model.temporal import Duration
from anabranch.planner.link_streams import LinkStream, link_streams
from anabranch.plugins.oxigraph import Oxigraph
from anabranch.runner.options import RunOptions, StreamOptions
from anabranch.sinks.base import AnswerForm, Sink
from anabranch.sources.base import OpenedStream
from anabranch.sources.static import AnyGraph, GraphFile


@dataclass(frozen=True, slots=True)
class Job:
    streams: tuple[OpenedStream, ...]
    queries: tuple[CompiledQuery, ...]
    options: RunOptions = field(default_factory=RunOptions)
    stream_options: Mapping[str, StreamOptions] = field(default_factory=dict)  # of streams with options of their own
    graphs: Mapping[str, AnyGraph] = field(default_factory=dict)
    graph_files: tuple[GraphFile, ...] = ()
    forms: tuple[AnswerForm, ...] = ("json",)
    ordered: bool = False  # all queries' answers come in the order of time: where no input makes others wait
    reduces_links: bool = True  # False: all events of a stream travel, even if queries need only links
    fingerprint: str = field(init=False)
    """A digest of the queries: it changes when a query is added, dropped or changed."""

    def __post_init__(self) -> None:
        said: list[object] = [self.options.until, self.options.drain]
        for registration, one in self.queries:
            parameters = {key: to_typed_json(value) for key, value in one.parameters.items()}
            said.append([repr(registration), one.windows, one.conflicts, one.evaluator, parameters])
        object.__setattr__(self, "fingerprint", _digest(json.dumps(said, sort_keys=True)))

    def link_streams(self) -> dict[str, LinkStream]:
        """Return the streams of which queries need only links; these travel as links."""
        if not self.reduces_links or any(one.options.evaluator != "own" for one in self.queries):
            return {}
        return link_streams([(one.registration, one.options.windows) for one in self.queries], self.lateness_of)

    def settings(self) -> dict[str, object]:
        """Return the options, besides queries, that a restart from the checkpoint must repeat."""
        options = self.options
        mapped = {one.name: one.decoding.ingestion for one in self.streams if one.decoding.ingestion is not None}
        return {
            "streams": {stream.name: stream.address for stream in self.streams},
            "ingestion": {name: _digest(repr(ingestion)) for name, ingestion in mapped.items()},
            "lateness": None if options.lateness is None else str(options.lateness),
            "late": str(options.late),
            "mapping": [options.mapping.vocabulary, options.mapping.resources],
        }

    def options_of(self, stream: str) -> StreamOptions:
        return self.stream_options.get(stream, StreamOptions())

    def lateness_of(self, stream: str) -> Duration | None:
        return self.options_of(stream).lateness or self.options.lateness

    def timing_of(self, stream: str) -> StreamTiming:
        return self.options_of(stream).timing or self.options.timing

    def timings(self) -> dict[str, StreamTiming]:
        return {stream.name: self.timing_of(stream.name) for stream in self.streams}

    def clocks(self) -> dict[str, tuple[int, int]]:
        return {name: one.clock for name, one in self.stream_options.items() if one.clock is not None}

    def csv_form(self) -> tuple[list[str], bool, bool]:
        """The form of CSV lines: the columns of all queries, whether there are several, whether corrections come."""
        columns = list(dict.fromkeys(name for one in self.queries for name in one.registration.columns))
        return columns, len(self.queries) > 1, may_correct(self.options.late, self.streams, self.timings())

    def recompile(self, options: QueryOptions) -> Registration:
        """Return the registration of a query that a checkpoint holds as text: the job's own, if it has it."""
        for registration, known in self.queries:
            if (known.text, known.file_name, known.source_name) == (
                options.text,
                options.file_name,
                options.source_name,
            ):
                return registration
        return recompile(options)

    def engine(self) -> Engine:
        """Return a new engine for the job, with its streams and graphs and no query yet."""
        options = self.options
        engine = Engine(
            options.lateness,
            fixed_streams=True,
            late=options.late,
            mapping=options.mapping,
            plugin=Oxigraph(),
            rules=options.rules,
            evaluation=options.evaluation,
            clock=time.perf_counter_ns,
        )
        for stream in self.streams:
            timing = self.timing_of(stream.name)
            idle = timing.idle if is_live(stream) and timing.idle_timeout is not None else None
            engine.declare_stream(stream.name, self.options_of(stream.name).lateness, idle, timing.ahead)
        engine.plan_end(options.until, options.drain)
        self.set_graphs(engine)
        return engine

    def set_graphs(self, engine: Engine) -> None:
        for name, graph in self.graphs.items():
            engine.add_static_graph(name, graph)


def forms_of(sinks: Sequence[Sink]) -> tuple[AnswerForm, ...]:
    """Return the formats in which sinks want answers."""
    return tuple(dict.fromkeys(form for sink in sinks for form in sink.forms))


def may_correct(late: LatePolicy, streams: Sequence[OpenedStream], timings: Mapping[str, StreamTiming]) -> bool:
    """Return whether answers may be corrected: by late events, or after a live stream's silence."""
    live = [timings[stream.name] for stream in streams if is_live(stream)]
    return late.corrects or any(one.idle.corrects and one.idle_timeout is not None for one in live)


def keep_order(streams: Sequence[OpenedStream]) -> bool:
    """Return whether all queries' answers can come in the order of time without making a stream wait for another."""
    return not any(map(is_live, streams))


def has_wall_clock(stream: OpenedStream) -> bool:
    """Return whether a stream's events can be compared with the wall clock: a generator's events have times of their
    own.
    """
    return is_live(stream) and not stream.source.has_own_clock


def is_live(stream: OpenedStream) -> bool:
    """Return whether a stream may be silent for a while before more events come."""
    return not stream.source.finite or stream.source.is_received


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def save_job(job: Job, path: Path) -> str:
    """Write a job for the workers; return the digest of the file, which travels in Spark's own closure."""
    data = pickle.dumps(job)
    path.touch(0o600)
    path.write_bytes(data)
    return hashlib.sha256(data).hexdigest()


@lru_cache(maxsize=4)
def load_job(path: str, digest: str) -> Job:
    """Load the job of a file that was sent to the workers. A file whose digest differs is refused."""
    data = Path(path).read_bytes()
    if not hmac.compare_digest(hashlib.sha256(data).hexdigest(), digest):
        raise EngineError(f"{path} is not the job that this run was begun with: somebody has changed it")
    job = pickle.loads(data)
    assert isinstance(job, Job)
    return job
