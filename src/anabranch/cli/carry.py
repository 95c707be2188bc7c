"""A run of the command line: its answers on stdout or in sinks, and its progress on the terminal.

Invariant: however the run ends, its folder allows the same command to continue.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import typer

from anabranch.api import carrier
from anabranch.cli.console import Terminal
from anabranch.cli.failures import OK, draw_error
from anabranch.cli.signals import INTERRUPTED, stopping
from anabranch.cli.status import StatusLine
from anabranch.cli.summary import Summary, first_words
from anabranch.cli.values import clock
from anabranch.cli.writers import TableSink
from anabranch.engine.compiled import prefixes_of
from anabranch.runner.opening import OpenedRun, open_run
from anabranch.runner.outlet import Observers, skip_errors
from anabranch.runner.run import Run
from anabranch.runner.spec import RunSpec
from anabranch.sinks.base import Sink

if TYPE_CHECKING:
    from anabranch.cli.run import RunArguments


@dataclass(frozen=True, slots=True)
class CarriedRun:
    """The state of a run: its exit code so far, its summary, and whether a query failed."""

    code: int = OK
    summary: Summary = field(default_factory=Summary)
    failed: bool = False


def carry(spec: RunSpec, arguments: RunArguments, terminal: Terminal) -> CarriedRun:
    begun = time.perf_counter()
    options = spec.options
    on_spark = options.engine == "spark"
    if on_spark and options.checkpoint is None and not options.master.startswith("local"):
        message = "a run on a cluster keeps its state in a folder that all workers can reach; name one"
        raise typer.BadParameter(message, param_hint="--checkpoint")
    status = StatusLine(terminal.err, not arguments.quiet, "starting Spark" if on_spark else "starting")

    def say(text: str, style: str = "yellow") -> None:
        status.aside()
        terminal.note(text, style=style)

    def note(text: str) -> None:
        say(f"note: {text}", "dim")

    observers = Observers(
        on_warning=lambda query, at, text: say(f"warning: {query} at {clock(at)}: {text}"),
        on_note=note,
        on_progress=status.progress,
    )
    sinks = [*(arguments.sink or ()), *_on_stdout(spec, arguments, terminal, status)]
    try:
        with open_run(spec, sinks, carrier(options), observers) as opened:
            if opened.is_finished:
                say(f"nothing to do: the run in {opened.folder.path} has answered its whole input", "dim")
                return CarriedRun()
            status.begin(opened.job.streams)

            def clear_up() -> None:
                status.close()
                opened.folder.close()

            with _metrics(arguments.metrics_port, opened.run, note), stopping(clear_up) as stopped:

                def should_stop() -> bool:
                    status.tick()
                    return stopped()

                opened.carry(should_stop, lambda trouble: say(f"warning: {trouble}"))
                code = INTERRUPTED if stopped() else OK
    finally:
        status.close()
    for failure in opened.run.failures:
        draw_error(failure, terminal)
    return CarriedRun(code, _summary(opened, time.perf_counter() - begun), bool(opened.run.failures))


def _on_stdout(spec: RunSpec, arguments: RunArguments, terminal: Terminal, status: StatusLine) -> list[Sink | str]:
    form = arguments.output or ("none" if arguments.sink else "table")
    match form:
        case "none":
            return []
        case "table":
            return [TableSink(terminal.out, spec.options.windows, status.aside, prefixes_of(spec.queries))]
        case "json":
            return ["ndjson:-"]
        case _:
            return [f"{form}:-"]


def _summary(opened: OpenedRun, seconds: float) -> Summary:
    said = opened.run.progress.status
    done = Summary(
        said.get("events", 0) + said.get("late", 0) + said.get("ahead", 0),
        said.get("instants", 0),
        said.get("evaluations", 0),
        said.get("rows", 0),
        said.get("malformed", 0),
        said.get("late", 0),
        said.get("ahead", 0),
        seconds,
        opened.letters.paths,
        said.get("verified", 0),
        said.get("differing", 0),
        said.get("skipped", 0),
        first_words(skip_errors(opened.run.progress)),
    )
    for one in opened.job.streams:
        figures = said.get("streams", {}).get(one.name, {})
        done.note_jumps(one.name, figures.get("jumps", 0), figures.get("last_jump"))
    return done


@contextmanager
def _metrics(port: int | None, run: Run, note: Callable[[str], None]) -> Iterator[None]:
    if port is None:
        yield
        return
    from anabranch.runner.metrics import MetricsServer  # loads a web server, which few runs need

    server = MetricsServer(port, lambda: run.progress)
    note(f"metrics on http://127.0.0.1:{server.port}/metrics")
    try:
        yield
    finally:
        server.close()
