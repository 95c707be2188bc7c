"""A run from Python, on Spark or in this process: `anabranch run` for programs and notebooks.

    from anabranch import MemoryTable, run

    table = MemoryTable()
    done = run(text, {"rides": "events/"}, sinks=[table])
    table.to_pandas("student_trick")

Invariant: it adds no semantics to the runner; it is the only place that chooses the carrier.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Unpack

from anabranch.errors import QueryError
from anabranch.formats.events import GraphLike, any_graph_from
from anabranch.model.triples import TripleGraph
from anabranch.runner.inprocess import InProcessRun
from anabranch.runner.opening import open_run
from anabranch.runner.options import RunOptions, RunSettings
from anabranch.runner.outlet import Observers
from anabranch.runner.run import MakeRun
from anabranch.runner.spec import RunSpec
from anabranch.sinks.base import Sink
from anabranch.syntax import languages
from anabranch.syntax.languages import QueryText

if TYPE_CHECKING:  # a run in this process needs nothing of Spark
    from anabranch.spark.session import RunningSpark


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of a run, over all starts from its checkpoint, with the queries that failed."""

    events: int = 0
    rows: int = 0
    malformed: int = 0
    late: int = 0
    ahead: int = 0
    corrected: int = 0
    failures: tuple[QueryError, ...] = field(default=())


def carrier(options: RunOptions, running: RunningSpark | None = None) -> MakeRun:
    """Return the maker of runs under these options: in this process, or on Spark, in a running session if given."""
    if options.engine == "local":
        return InProcessRun
    from anabranch.spark.run import SparkRun
    from anabranch.spark.session import SparkSettings

    return partial(SparkRun, settings=SparkSettings(options.master, conf=options.conf), running=running)


def run(
    text: str | Sequence[QueryText],
    streams: Mapping[str, str | Sequence[str]],
    *,
    sinks: Sequence[Sink | str] = (),
    graphs: Mapping[str, GraphLike | TripleGraph | str] | None = None,
    spark: RunningSpark | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    observers: Observers | None = None,
    **settings: Unpack[RunSettings],
) -> RunResult:
    """Run the queries of one or several texts over streams until the input ends or `should_stop` returns True.

    Streams are names with addresses. `sinks` are sinks or their addresses. `graphs` are static graphs, or the paths and
    addresses of their files; graphs that queries name by FROM are loaded from that name. A query that is refused raises
    QueryError before anything starts. `settings` are the options of a run: see `RunSettings`. With the engine `local`
    the run stays in this process; `spark` is a session that the caller has started and will stop.
    """
    options = RunOptions.of(**settings)
    texts = [QueryText(text)] if isinstance(text, str) else text
    given = graphs or {}
    spec = RunSpec.of(
        [languages.script(*one) for one in texts],
        [(name, one) for name, said in streams.items() for one in ([said] if isinstance(said, str) else said)],
        options,
        [(name, one) for name, one in given.items() if isinstance(one, str)],
        {name: any_graph_from(one) for name, one in given.items() if not isinstance(one, str)},
    )
    with open_run(spec, sinks, carrier(options, spark), observers) as opened:
        opened.carry(should_stop)
    status = opened.run.progress.status
    counts = {name: status.get(name, 0) for name in ("events", "rows", "malformed", "late", "ahead", "corrected")}
    return RunResult(**counts, failures=tuple(opened.run.failures))
