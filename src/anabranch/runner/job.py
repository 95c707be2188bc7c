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
from typing import Any

from anabranch.algebra.operators import Registration
from anabranch.engine.engine import Engine, LatePolicy
from anabranch.engine.plans import ALL_RULES
from anabranch.engine.query import QueryOptions
from anabranch.engine.running import Running
from anabranch.engine.session import recompile
from anabranch.engine.timing import StreamTiming
from anabranch.errors import EngineError
from anabranch.formats.values import to_typed_json
from anabranch.model.mapping import Mapping as ModelMapping
from anabranch.model.temporal import Duration
from anabranch.planner.link_streams import LinkStream, link_streams
from anabranch.plugins.oxigraph import Oxigraph
from anabranch.sinks.base import Form, Sink
from anabranch.sources.base import OpenedStream
from anabranch.sources.generators import GeneratorSource
from anabranch.sources.spool import SpoolSource
from anabranch.sources.static import AnyGraph, GraphFile


@dataclass(frozen=True, slots=True)
class Job:
    streams: tuple[OpenedStream, ...]
    queries: tuple[QueryOptions, ...]
    graphs: Mapping[str, AnyGraph] = field(default_factory=dict)
    lateness: Duration | None = None
    own_lateness: Mapping[str, Duration] = field(default_factory=dict)  # of streams that have one of their own
    late: LatePolicy = field(default_factory=LatePolicy)
    until: int | None = None
    drain: bool = False
    ordered: bool = False  # answers of all queries come in the order of time: where no input keeps others waiting
    forms: tuple[Form, ...] = ("json",)
    records_per_batch: int | None = None
    clocks: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Where somebody has said that streams stand: the number of the word, and the instant."""
    timing: StreamTiming = field(default_factory=StreamTiming)
    own_timing: Mapping[str, StreamTiming] = field(default_factory=dict)  # of streams that have one of their own
    csv_columns: tuple[tuple[str, ...], ...] = ()
    mapping: ModelMapping = field(default_factory=ModelMapping)
    rules: tuple[str, ...] = ALL_RULES
    running: Running = field(default_factory=Running)
    graph_files: tuple[GraphFile, ...] = ()
    refresh: int | None = None  # microseconds between two looks at the static graphs' files
    reduces_links: bool = True  # else all of a stream travels, though queries ask for links alone

    @property
    def fingerprint(self) -> str:
        """What the queries are: it changes when a query is added, dropped or changed."""
        said: list[object] = [self.until, self.drain]
        for one in self.queries:
            parameters = {key: to_typed_json(value) for key, value in one.parameters.items()}
            said.append([repr(recompile(one)), one.windows, one.conflicts, one.evaluator, parameters])
        return _digest(json.dumps(said, sort_keys=True))

    def link_streams(self) -> dict[str, LinkStream]:
        """The streams of which queries ask for links alone, which therefore travel as links."""
        if not self.reduces_links or any(one.evaluator != "own" for one in self.queries):
            return {}
        asked = [(recompile(one), one.windows) for one in self.queries]
        return link_streams(asked, lambda name: self.own_lateness.get(name) or self.lateness)

    def options(self) -> dict[str, object]:
        """What a checkpoint belongs to besides queries: a restart must say the same."""
        return {
            "streams": {stream.name: stream.address for stream in self.streams},
            "ingestion": {one.name: _digest(one.decoding.meaning()) for one in self.streams if one.decoding.text},
            "lateness": None if self.lateness is None else str(self.lateness),
            "late": str(self.late),
            "mapping": [self.mapping.vocabulary, self.mapping.resources],
        }

    def timing_of(self, stream: str) -> StreamTiming:
        return self.own_timing.get(stream, self.timing)

    def timings(self) -> dict[str, StreamTiming]:
        return {stream.name: self.timing_of(stream.name) for stream in self.streams}

    def csv_form(self) -> tuple[list[str], bool, bool]:
        """What CSV lines must know: the columns of all queries, whether these are several, whether corrections come."""
        columns = list(dict.fromkeys(name for names in self.csv_columns for name in names))
        return columns, len(self.csv_columns) > 1, may_correct(self.late, self.streams, self.timings())

    def registrations(self) -> list[tuple[Registration, QueryOptions]]:
        return [(recompile(one), one) for one in self.queries]

    def engine(self) -> Engine:
        """A new engine for the job, with its streams and graphs and no query yet."""
        engine = Engine(
            self.lateness,
            fixed_streams=True,
            late=self.late,
            mapping=self.mapping,
            plugin=Oxigraph(),
            rules=self.rules,
            running=self.running,
            clock=time.perf_counter_ns,
        )
        for stream in self.streams:
            timing = self.timing_of(stream.name)
            idle = timing.idle if is_live(stream) and timing.idle_timeout is not None else None
            engine.declare_stream(stream.name, self.own_lateness.get(stream.name), idle, timing.ahead)
        engine.plan_end(self.until, self.drain)
        self.set_graphs(engine)
        return engine

    def set_graphs(self, engine: Engine) -> None:
        for name, graph in self.graphs.items():
            engine.add_static_graph(name, graph)


def make_job(
    streams: Sequence[OpenedStream], queries: Sequence[QueryOptions], sinks: Sequence[Sink], **settings: Any
) -> Job:
    """The job of queries over streams, with what its sinks need of the answers; `settings` are other fields of Job."""
    return Job(
        tuple(streams),
        tuple(queries),
        ordered=keep_order(streams),
        forms=tuple(dict.fromkeys(form for sink in sinks for form in sink.forms)),
        csv_columns=tuple(recompile(one).columns for one in queries),
        **settings,
    )


def may_correct(late: LatePolicy, streams: Sequence[OpenedStream], timings: Mapping[str, StreamTiming]) -> bool:
    """Whether answers may be corrected: by late events, or after a live stream's silence."""
    live = [timings[stream.name] for stream in streams if is_live(stream)]
    return late.corrects or any(one.idle.corrects and one.idle_timeout is not None for one in live)


def keep_order(streams: Sequence[OpenedStream]) -> bool:
    """Whether answers of all queries can come in the order of time without one stream's making others wait."""
    return not any(map(is_live, streams))


def has_wall_clock(stream: OpenedStream) -> bool:
    """Whether a stream's events can be held against the wall clock: those of a generator have times of their own."""
    return is_live(stream) and not isinstance(stream.source, GeneratorSource)


def is_live(stream: OpenedStream) -> bool:
    """Whether a stream may be silent for a while before more comes."""
    return not stream.source.finite or isinstance(stream.source, SpoolSource)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def save_job(job: Job, path: Path) -> str:
    """Write a job for the workers; gives the digest of the file, which travels in Spark's own closure."""
    data = pickle.dumps(job)
    path.touch(0o600)
    path.write_bytes(data)
    return hashlib.sha256(data).hexdigest()


@lru_cache(maxsize=4)
def load_job(path: str, digest: str) -> Job:
    """The job of a file that was sent to the workers. A file that is another one by now is not looked into."""
    data = Path(path).read_bytes()
    if not hmac.compare_digest(hashlib.sha256(data).hexdigest(), digest):
        raise EngineError(f"{path} is not the job that this run was begun with: somebody has changed it")
    job = pickle.loads(data)
    assert isinstance(job, Job)
    return job
