"""A run from Python, on Spark or in this process: what `anabranch run` does, for programs and notebooks.

    from anabranch import MemoryTable, run

    table = MemoryTable()
    done = run(text, {"rides": "events/"}, sinks=[table])
    table.to_pandas("student_trick")

Invariant: it adds no meaning to `SparkRun` and `InProcessRun`; whatever ends the run, folder and receivers are closed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from anabranch.engine.plans import rule_names
from anabranch.engine.progress import LatePolicy
from anabranch.engine.query import QueryOptions
from anabranch.engine.running import Running
from anabranch.engine.session import DurationLike, InstantLike, as_lateness, micros, parameter_values
from anabranch.engine.timing import AheadBound, IdlePolicy, StreamTiming
from anabranch.errors import EngineError, QueryError
from anabranch.formats.events import GraphLike, any_graph_from
from anabranch.model.mapping import Mapping as ModelMapping
from anabranch.model.triples import TripleGraph
from anabranch.model.union import ConflictPolicy
from anabranch.model.windows import WindowPolicy
from anabranch.runner.folder import Engine, RunFolder
from anabranch.runner.inprocess import InProcessRun
from anabranch.runner.job import make_job, may_correct
from anabranch.runner.letters import LetterFiles
from anabranch.runner.receiving import Receivers
from anabranch.runner.telling import Observers
from anabranch.sinks.base import Sink
from anabranch.sinks.open import open_sink
from anabranch.sources.static import graph_files
from anabranch.sources.wanted import open_stream, wanted_streams
from anabranch.syntax import languages
from anabranch.syntax.languages import QueryText

if TYPE_CHECKING:  # a run in this process needs nothing of Spark
    from anabranch.spark.run import SparkRun
    from anabranch.spark.session import RunningSpark


@dataclass(frozen=True, slots=True)
class Finished:
    """What a run did, over all starts from its checkpoint, and the queries that failed."""

    events: int = 0
    rows: int = 0
    malformed: int = 0
    late: int = 0
    ahead: int = 0
    corrected: int = 0
    failures: tuple[QueryError, ...] = field(default=())


def run(
    text: str | Sequence[QueryText],
    streams: Mapping[str, str | Sequence[str]],
    *,
    sinks: Sequence[Sink | str] = (),
    graphs: Mapping[str, GraphLike | TripleGraph | str] | None = None,
    refresh: float | None = None,
    mapping: ModelMapping | None = None,
    rules: str | Sequence[str] = "all",
    running: Running | None = None,
    parameters: Mapping[str, object] | None = None,
    windows: WindowPolicy = "trailing",
    conflicts: ConflictPolicy = "latest",
    lateness: DurationLike | None = None,
    late: LatePolicy | None = None,
    until: InstantLike | None = None,
    drain: bool = False,
    follow: bool = False,
    idle_timeout: float | None = 30.0,
    idle: IdlePolicy | str = "correct",
    ahead: AheadBound | str | None = AheadBound(),  # noqa: B008 - frozen
    checkpoint: str | None = None,
    dead_letter: str | None = None,
    batch_events: int | None = None,
    engine: Engine = "spark",
    master: str = "local[*]",
    conf: Mapping[str, str] | None = None,
    spark: RunningSpark | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    observers: Observers | None = None,
    file_name: str = "<query>",
) -> Finished:
    """Run the queries of a text, or of several, over streams (names and addresses) until the input ends or
    `should_stop` says so.

    `sinks` are sinks or their addresses. `graphs` are static graphs, or the paths and addresses of their files, at
    which `refresh` looks every so many seconds; what queries name by FROM is loaded from where it leads. A query that
    is refused raises QueryError before Spark starts. A live stream that is silent for `idle_timeout` seconds is idle,
    and `idle` says what answers do then (see `IdlePolicy`). An event further ahead than `ahead` is set aside unless
    others confirm its clock (see `AheadBound`). With the engine `local` it stays in this process; `spark`
    is one that somebody has started and will stop.
    """
    texts = [QueryText(text, file_name)] if isinstance(text, str) else list(text)
    registrations = [(one, said) for said in texts for one in languages.registrations(*said)]
    late = late or LatePolicy()
    columns = {one.name: one.columns for one, _ in registrations}
    prefixes = {name: iri for one, _ in reversed(registrations) for name, iri in one.prefixes}
    given = graphs or {}
    files = graph_files([(name, one) for name, one in given.items() if isinstance(one, str)], texts)
    files = [file for file in files if isinstance(given.get(file.name, ""), str)]
    pairs = [(name, one) for name, said in streams.items() for one in ([said] if isinstance(said, str) else said)]
    if checkpoint is None and engine == "spark" and not master.startswith("local"):
        raise EngineError("a run on a cluster needs a checkpoint: a folder that all workers can reach")
    values = parameter_values(parameters or {})
    timing = StreamTiming(
        None if idle_timeout is None else int(idle_timeout * 1_000_000),
        IdlePolicy.parse(idle) if isinstance(idle, str) else idle,
        AheadBound.parse(ahead) if isinstance(ahead, str) else ahead,
    )
    options = [QueryOptions(windows, conflicts, values, None, *said, one.name) for one, said in registrations]
    folder = RunFolder(checkpoint)
    folder.open()
    receivers = Receivers(folder, follow)
    try:
        sources = [open_stream(wanted, receivers.open) for wanted in wanted_streams(pairs, texts)]
        corrects = may_correct(late, sources, {one.name: timing for one in sources})
        opened = [open_sink(one, columns, corrects, prefixes) if isinstance(one, str) else one for one in sinks]
        job = make_job(
            sources,
            options,
            opened,
            graphs={
                **{file.name: file.load() for file in files},
                **{name: any_graph_from(graph) for name, graph in given.items() if not isinstance(graph, str)},
            },
            lateness=as_lateness(lateness),
            late=late,
            until=None if until is None else micros(until),
            drain=drain,
            records_per_batch=batch_events,
            timing=timing,
            mapping=mapping or ModelMapping(),
            rules=rule_names(rules),
            running=running or Running(),
            graph_files=tuple(files),
            refresh=None if refresh is None else int(refresh * 1_000_000),
        )
        job.engine().reconcile(job.registrations())
        folder.check(job)
        letters = LetterFiles(dead_letter)
        carried: InProcessRun | SparkRun
        if engine == "local":
            carried = InProcessRun(job, folder, opened, letters, observers)
            carry = carried.run
        else:
            from anabranch.spark.run import SparkRun
            from anabranch.spark.session import SparkSettings

            carried = SparkRun(job, folder, opened, letters, SparkSettings(master, conf=conf or {}), observers)
            carry = partial(carried.run, running=spark)
        if not folder.finished(job.fingerprint):
            receivers.start()

            def stopping() -> bool:
                receivers.raise_error()
                return should_stop()

            carry(stopping)
    finally:
        receivers.stop()
        folder.close()
    status = carried.progress.status
    counts = {name: status.get(name, 0) for name in ("events", "rows", "malformed", "late", "ahead", "corrected")}
    return Finished(**counts, failures=tuple(carried.failures))
