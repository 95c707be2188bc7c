"""`anabranch run` on Spark: the job, its folder, its sinks, and what a person sees while it runs.

Invariant: whatever ends the run, the folder is left so that the same command goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import typer

from anabranch.cli.asked import Asked
from anabranch.cli.console import Terminal
from anabranch.cli.failures import OK, draw_error
from anabranch.cli.signals import INTERRUPTED, stopping
from anabranch.cli.status import StatusLine
from anabranch.cli.summary import Summary, first_words
from anabranch.cli.values import clock
from anabranch.cli.writers import TableWriter, answer_of
from anabranch.formats import answers as answer_formats
from anabranch.runner.folder import RunFolder
from anabranch.runner.job import Job, make_job, may_correct
from anabranch.runner.letters import LetterFiles
from anabranch.runner.metrics import MetricsServer
from anabranch.runner.receiving import Receivers
from anabranch.runner.telling import Observers, skip_errors
from anabranch.sinks.base import Ledger, Sink, Told
from anabranch.sinks.console import Console
from anabranch.sinks.open import open_sink
from anabranch.sources.base import OpenedStream
from anabranch.sources.wanted import open_stream
from anabranch.spark.run import SparkRun
from anabranch.spark.session import SparkSettings


class TableSink(Sink):
    """Answers as tables for a person. A batch that was drawn to its end is not drawn again."""

    forms = ("typed",)

    def __init__(
        self, terminal: Terminal, windows: str, aside: Callable[[], None], prefixes: Mapping[str, str]
    ) -> None:
        self._writer = TableWriter(terminal.out, windows, prefixes)
        self._aside = aside
        self._ledger: Ledger | None = None

    def open(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def write(self, batch: int, answers: Sequence[Told]) -> None:
        assert self._ledger is not None
        if not answers or self._ledger.get("table") == batch:
            return
        self._aside()
        for told in answers:
            self._writer.write(answer_of(told))
        self._ledger.put("table", batch)


def run_spark(asked: Asked, terminal: Terminal) -> tuple[int, Summary, bool]:
    """The exit code so far, what was done, and whether a query failed."""
    begun = time.perf_counter()
    settings = SparkSettings(asked.master, conf=asked.conf)
    if asked.checkpoint is None and not settings.is_local:
        message = "a run on a cluster keeps its state in a folder that all workers can reach; name one"
        raise typer.BadParameter(message, param_hint="--checkpoint")
    folder = RunFolder(asked.checkpoint)
    folder.open()
    status = StatusLine(terminal.err, shown=not asked.quiet)
    receivers = Receivers(folder, asked.follow)
    letters = LetterFiles(asked.dead_letter)
    failed = True
    code = OK
    try:
        streams = [open_stream(wanted, receivers.open) for wanted in asked.wanted]
        corrects = may_correct(asked.late, streams, {one.name: asked.timing for one in streams})
        sinks = _sinks(asked, terminal, status, corrects)
        job = _job(asked, streams, sinks)
        folder.check(job)
        if folder.finished(job.fingerprint):
            terminal.note(f"nothing to do: the run in {folder.path} has answered its whole input", style="dim")
            failed = False
            return OK, Summary(), False

        def warn(query: str, at: int, text: str) -> None:
            status.aside()
            terminal.note(f"warning: {query} at {clock(at)}: {text}", style="yellow")

        def note(text: str) -> None:
            status.aside()
            terminal.note(f"note: {text}", style="dim")

        run = SparkRun(
            job,
            folder,
            sinks,
            letters,
            settings,
            Observers(on_warning=warn, on_note=note, on_progress=status.progress),
        )
        status.begin(job.streams)

        def clear_up() -> None:
            status.close()
            folder.close()

        with _metrics(asked.metrics_port, run, note), stopping(clear_up) as stopped:
            receivers.start()

            def should_stop() -> bool:
                receivers.raise_error()
                for trouble in receivers.troubles():
                    status.aside()
                    terminal.note(f"warning: {trouble}", style="yellow")
                status.tick()
                return stopped()

            run.run(should_stop)
            code = INTERRUPTED if stopped() else OK
        failed = False
    finally:
        status.close()
        receivers.stop()
        folder.close(keep=failed and folder.log.exists() and folder.log.stat().st_size > 0)
    for failure in run.failures:
        draw_error(failure, terminal)
    said = run.progress.status
    done = Summary(
        said.get("events", 0) + said.get("late", 0) + said.get("ahead", 0),
        said.get("instants", 0),
        said.get("evaluations", 0),
        said.get("rows", 0),
        said.get("malformed", 0),
        said.get("late", 0),
        said.get("ahead", 0),
        time.perf_counter() - begun,
        letters.paths,
        said.get("verified", 0),
        said.get("differing", 0),
        said.get("skipped", 0),
        first_words(skip_errors(run.progress)),
    )
    for one in streams:
        figures = said.get("streams", {}).get(one.name, {})
        done.note_jumps(one.name, figures.get("jumps", 0), figures.get("last_jump"))
    return code, done, bool(run.failures)


def _job(asked: Asked, streams: Sequence[OpenedStream], sinks: Sequence[Sink]) -> Job:
    return make_job(
        streams,
        asked.queries(),
        sinks,
        graphs=dict(asked.graphs),
        lateness=asked.lateness,
        late=asked.late,
        until=asked.until,
        drain=asked.drain,
        records_per_batch=asked.events_per_batch,
        timing=asked.timing,
        mapping=asked.mapping,
        rules=asked.rules,
        running=asked.running,
        graph_files=tuple(asked.graph_files),
        refresh=asked.refresh,
    )


def _sinks(asked: Asked, terminal: Terminal, status: StatusLine, corrects: bool) -> list[Sink]:
    columns = asked.columns()
    prefixes = asked.prefixes()
    sinks = [open_sink(text, columns, corrects, prefixes) for text in asked.sinks]
    match asked.output:
        case "json":
            sinks.append(Console("json"))
        case "csv":
            every = list(dict.fromkeys(name for names in columns.values() for name in names))
            sinks.append(Console("csv", answer_formats.csv_header(every, len(columns) > 1, corrects)))
        case "table":
            sinks.append(TableSink(terminal, asked.windows, status.aside, prefixes))
        case "none":
            pass
        case form:
            sinks.append(open_sink(f"{form}:-", columns, corrects, prefixes))
    return sinks


@contextmanager
def _metrics(port: int | None, run: SparkRun, note: Callable[[str], None]) -> Iterator[None]:
    if port is None:
        yield
        return
    server = MetricsServer(port, lambda: run.progress)
    note(f"metrics on http://127.0.0.1:{server.port}/metrics")
    try:
        yield
    finally:
        server.close()
