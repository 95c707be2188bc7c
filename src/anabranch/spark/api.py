"""A run on Spark from Python: what `anabranch run` does, for programs and notebooks.

    from anabranch import MemoryTable, run

    table = MemoryTable()
    done = run(text, {"rides": "events/"}, sinks=[table])
    table.to_pandas("student_trick")

Invariant: it adds no meaning to `SparkRun`; whatever ends the run, folder and receivers are closed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from anabranch.engine.progress import LatePolicy
from anabranch.engine.query import QueryOptions
from anabranch.engine.session import DurationLike, InstantLike, as_duration, micros, parameter_values
from anabranch.errors import EngineError, QueryError
from anabranch.formats.events import GraphLike, graph_from
from anabranch.model.union import ConflictPolicy
from anabranch.model.windows import WindowPolicy
from anabranch.sinks.base import Sink
from anabranch.sinks.open import open_sink
from anabranch.sources.wanted import open_stream, wanted_streams
from anabranch.spark.folder import RunFolder
from anabranch.spark.job import Job, keep_order
from anabranch.spark.letters import LetterFiles
from anabranch.spark.receiving import Receivers
from anabranch.spark.run import Observers, SparkRun
from anabranch.spark.session import SparkSettings
from anabranch.syntax import seraph


@dataclass(frozen=True, slots=True)
class Finished:
    """What a run did, over all starts from its checkpoint, and the queries that failed."""

    events: int = 0
    rows: int = 0
    malformed: int = 0
    late: int = 0
    corrected: int = 0
    failures: tuple[QueryError, ...] = field(default=())


def run(
    text: str,
    streams: Mapping[str, str | Sequence[str]],
    *,
    sinks: Sequence[Sink | str] = (),
    graphs: Mapping[str, GraphLike] | None = None,
    parameters: Mapping[str, object] | None = None,
    windows: WindowPolicy = "trailing",
    conflicts: ConflictPolicy = "latest",
    lateness: DurationLike | None = None,
    late: LatePolicy | None = None,
    until: InstantLike | None = None,
    drain: bool = False,
    follow: bool = False,
    idle_timeout: float | None = 30.0,
    checkpoint: str | None = None,
    dead_letter: str | None = None,
    batch_events: int | None = None,
    master: str = "local[*]",
    conf: Mapping[str, str] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    file_name: str = "<query>",
) -> Finished:
    """Run the queries of a text over streams (names and addresses) until the input ends or `should_stop` says so.

    `sinks` are sinks or their addresses. A query that is refused raises QueryError before Spark starts.
    """
    registrations = seraph.registrations(text, file_name=file_name)
    late = late or LatePolicy()
    columns = {one.name: one.columns for one in registrations}
    opened = [open_sink(one, columns, late.corrects) if isinstance(one, str) else one for one in sinks]
    pairs = [(name, one) for name, said in streams.items() for one in ([said] if isinstance(said, str) else said)]
    settings = SparkSettings(master, conf=conf or {})
    if checkpoint is None and not settings.is_local:
        raise EngineError("a run on a cluster needs a checkpoint: a folder that all workers can reach")
    values = parameter_values(parameters or {})
    options = [QueryOptions(windows, conflicts, values, None, text, file_name, one.name) for one in registrations]
    folder = RunFolder(checkpoint)
    folder.open()
    receivers = Receivers(folder, follow)
    try:
        found = tuple(open_stream(wanted, receivers.open) for wanted in wanted_streams(pairs, text, file_name))
        job = Job(
            found,
            tuple(options),
            {name: graph_from(graph) for name, graph in (graphs or {}).items()},
            as_duration(lateness),
            late,
            None if until is None else micros(until),
            drain,
            ordered=keep_order(found),
            forms=tuple(dict.fromkeys(form for sink in opened for form in sink.forms)),
            records_per_batch=batch_events,
            idle_timeout=None if idle_timeout is None else int(idle_timeout * 1_000_000),
            csv_columns=tuple(columns.values()),
        )
        job.engine().reconcile(job.registrations())
        folder.check(job)
        carried = SparkRun(job, folder, opened, LetterFiles(dead_letter), settings, Observers())
        if not folder.finished(job.fingerprint):
            receivers.start()

            def stopping() -> bool:
                receivers.raise_error()
                return should_stop()

            carried.run(stopping)
    finally:
        receivers.stop()
        folder.close()
    status = carried.progress.status
    counts = {name: status.get(name, 0) for name in ("events", "rows", "malformed", "late", "corrected")}
    return Finished(**counts, failures=tuple(carried.failures))
