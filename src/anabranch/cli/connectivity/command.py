"""`anabranch connectivity`: connected components of the graph that the edges of a sliding window form.

Invariant: memory is proportional to the window, not to the file; the summary is printed however the run ends.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Literal, TypeAlias, cast, get_args

import typer
from rich.text import Text

from anabranch.cli import options
from anabranch.cli.arguments import Command, takes
from anabranch.cli.connectivity.report import ConnectivityForm, ReportOptions, WhichChanges, WriteLine, make_report
from anabranch.cli.console import Terminal, open_terminal
from anabranch.cli.failures import OK, SET_ASIDE, InputError, guarded
from anabranch.cli.options import STDIN, Color, IndexOption, existing
from anabranch.cli.signals import INTERRUPTED, interruptible
from anabranch.errors import EngineError, StreamError

if TYPE_CHECKING:
    from anabranch.cli.connectivity.plot import Plot
    from anabranch.cli.deadletters import DeadLetterFile
    from anabranch.cli.summary import Bar, Meter
    from anabranch.engine.connectivity.workload import ConnectivityAnswer, ConnectivityWorkload
    from anabranch.formats.edges.reader import EdgeChunk


TimeUnitOption: TypeAlias = Literal["s", "ms", "us", "ns"]


class WithBareChanges(Command):
    """A command in which `--changes` without a value means `--changes=main`."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        values = get_args(WhichChanges)
        full = [
            f"{one}=main" if one == "--changes" and after not in values else one
            for one, after in zip(args, [*args[1:], ""], strict=True)
        ]
        return super().parse_args(ctx, full)


@dataclass(frozen=True, slots=True)
class ConnectivityArguments:
    edges: Annotated[str, typer.Argument(metavar="EDGES", help="Edges: CSV, NDJSON or Parquet; - is CSV from stdin.")]
    window: Annotated[
        str, typer.Option(metavar="WIDTH", help="How much a window holds: PT1H, or a number of edges: 1000e.")
    ]
    slide: Annotated[
        str, typer.Option(metavar="STEP", help="How far it moves from one answer to the next: PT3M, or 50e.")
    ]
    pairs: Annotated[
        str | None, typer.Option(metavar="FILE", help="Pairs of vertices: tell when they are connected.")
    ] = None
    all_: Annotated[bool, typer.Option("--all", help="Of all pairs at every instant, not only what changed.")] = False
    components: Annotated[
        bool, typer.Option("--components", help="At every instant how many components there are, and how large.")
    ] = False
    changes: Annotated[
        WhichChanges | None,
        typer.Option(
            "--changes",
            help="Components that merge, split, appear and vanish; with =all those that grow and shrink too.",
            show_default=False,
        ),
    ] = None
    plot: Annotated[
        str | None, typer.Option(metavar="FILE.svg", help="Draw components, merges and splits over time.")
    ] = None
    index: Annotated[
        IndexOption,
        typer.Option(help="The index: a recency tree, or BIC as its paper has it; the answers are the same."),
    ] = "recency"
    chunk: Annotated[
        int | None, typer.Option(metavar="SLIDES", min=1, help="The chunk of BIC. \\[as long as the window]")
    ] = None
    columns: Annotated[
        str | None,
        typer.Option(metavar="SOURCE,TARGET,TIME", help="Which columns they are: names, or numbers from 1."),
    ] = None
    time_unit: Annotated[
        TimeUnitOption | None, typer.Option(help="What times as numbers are. \\[by their size]", show_default=False)
    ] = None
    starting_at: Annotated[
        str | None,
        typer.Option(metavar="INSTANT", help="The first instant. \\[the first multiple of the slide with an edge]"),
    ] = None
    form: Annotated[ConnectivityForm, typer.Option("--format", help="The answers on stdout.")] = "table"
    dead_letter: Annotated[
        str | None,
        typer.Option(
            "--dead-letter",
            "--dead-letters",
            metavar="FILE",
            help="Where malformed and late edges go. [NAME.dead.ndjson]",
        ),
    ] = None
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 5 when malformed or late edges were set aside.")
    ] = False
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No summary, no progress.")] = False
    color: Color = None


@guarded
@takes(ConnectivityArguments)
def connectivity(arguments: ConnectivityArguments) -> None:
    """Follow connectivity in a sliding window over a stream of edges.

    An edge is a line: two vertices, texts or integers, and a time, ISO 8601 or a number. Columns are found by their
    names (source, from, src, u; target, to, dst, v; time, at, ts, timestamp); without a header they are the first
    three. Edges have no direction. At instant w a window of width a holds the edges of (w - a, w].

    Examples:

      anabranch connectivity edges.csv --window PT1H --slide PT3M --pairs pairs.csv

      anabranch connectivity edges.csv --window P7D --slide P1D --components --plot week.svg

      tail -f calls.csv | anabranch connectivity - --window 1000e --slide 50e --changes --format json
    """
    from anabranch.cli.deadletters import DeadLetterFile
    from anabranch.engine.connectivity.workload import ConnectivityWorkload
    from anabranch.formats.edges.reader import EdgeReader, edge_format

    terminal = open_terminal(arguments.color)
    asked = ReportOptions(_read_pairs(arguments.pairs), arguments.all_, arguments.components, arguments.changes)
    if not (arguments.pairs or arguments.components or arguments.changes or arguments.plot):
        asked.components = True
    _refuse_together(arguments.form, asked)
    _refuse_place(arguments.plot)
    first = options.instant(arguments.starting_at, "--starting-at")
    try:
        workload = ConnectivityWorkload(
            arguments.window,
            arguments.slide,
            pairs=asked.pairs,
            index=arguments.index,
            chunk=arguments.chunk,
            starting_at=first,
        )
    except EngineError as error:
        raise typer.BadParameter(str(error).replace("\nhint: ", "; ")) from None
    if workload.has_gaps and not arguments.quiet:
        terminal.note(
            f"warning: windows of {arguments.window} every {arguments.slide} have gaps: edges in between are in none",
            "yellow",
        )
    names = tuple(one.strip() for one in arguments.columns.split(",")) if arguments.columns else ()
    reader = EdgeReader(names, arguments.time_unit, needs_time=not workload.counts_edges)
    letters = DeadLetterFile(
        arguments.dead_letter
        or f"{'edges' if arguments.edges == STDIN else Path(arguments.edges).name.split('.')[0]}.dead.ndjson"
    )
    run = _Run(workload, asked, make_report(arguments.form, terminal.out, asked), _new_plot(arguments.plot), letters)
    begun = time.perf_counter()
    code = OK
    with _opened(arguments.edges) as (file, meter), interruptible() as interrupted:
        try:
            chunks = reader.read(file, edge_format(arguments.edges), live=not file.seekable())
            run.all(_until(interrupted, chunks), terminal, meter, file, arguments.quiet)
        except KeyboardInterrupt:
            code = INTERRUPTED
        finally:
            sys.stdout.flush()
            letters.close()
    if arguments.plot is not None and run.plot is not None:
        Path(arguments.plot).write_text(
            run.plot.svg(f"Components in windows of {arguments.window}, every {arguments.slide}"), encoding="utf-8"
        )
    if not arguments.quiet:
        _summarize(terminal, run, time.perf_counter() - begun)
    if not code and arguments.strict and (run.malformed or workload.late):
        code = SET_ASIDE
    raise typer.Exit(code)


def _until(interrupted: Callable[[], bool], chunks: Iterable[EdgeChunk]) -> Iterator[EdgeChunk]:
    """Yield the chunks until an interrupt, including one whose exception was lost."""
    for chunk in chunks:
        if interrupted():
            raise KeyboardInterrupt
        yield chunk
    if interrupted():
        raise KeyboardInterrupt


class _Run:
    """One run: reads edges and writes report lines."""

    def __init__(
        self,
        workload: ConnectivityWorkload,
        asked: ReportOptions,
        write: WriteLine,
        plot: Plot | None,
        letters: DeadLetterFile,
    ) -> None:
        self.workload, self.plot, self.letters = workload, plot, letters
        self._asked, self._write = asked, write
        self.instants = 0
        self.rows = 0
        self.malformed = 0

    def all(self, chunks: Iterable[EdgeChunk], terminal: Terminal, meter: Meter, file: BinaryIO, quiet: bool) -> None:
        from anabranch.cli.summary import Bar

        bar = Bar(terminal.err, meter, shown=not quiet)
        try:
            for chunk in chunks:
                self._tell(self.workload.push(chunk.sources, chunk.targets, chunk.times), bar)
                self._set_aside(chunk)
                if meter.total is not None:
                    meter.done = file.tell()
                bar.update(self.workload.edges)
            self._tell(self.workload.finish(), bar)
        finally:
            bar.close()

    def _tell(self, answers: Iterator[ConnectivityAnswer], bar: Bar) -> None:
        for answer in answers:
            self.instants += 1
            if self.plot is not None:
                self.plot.add(answer)
            for fact in self._asked.facts(answer):
                bar.close()
                self.rows += 1
                self._write(fact)
        sys.stdout.flush()

    def _set_aside(self, chunk: EdgeChunk) -> None:
        from anabranch.formats.deadletter import MalformedRecord
        from anabranch.model.instants import format_instant

        for record in chunk.malformed:
            self.letters.add(record)
        self.malformed += len(chunk.malformed)
        for place in self.workload.late_places.tolist():
            at = "" if chunk.times is None else format_instant(int(chunk.times[place]))
            raw = f"{chunk.sources[place]},{chunk.targets[place]},{at}"
            reason = f"late: all windows that hold {at} had been answered when the edge came"
            self.letters.add(MalformedRecord(reason, int(chunk.lines[place]), raw))


def _new_plot(path: str | None) -> Plot | None:
    from anabranch.cli.connectivity.plot import Plot

    return None if path is None else Plot()


def _read_pairs(path: str | None) -> list[tuple[str, str]]:
    from anabranch.formats.edges.reader import read_pairs

    if path is None:
        return []
    file = existing(path)
    if file.is_dir():
        raise InputError(f"{path} is a directory; give the file of the pairs")
    with file.open("rb") as opened:
        try:
            found = read_pairs(cast(BinaryIO, opened))
        except StreamError as error:
            raise StreamError(f"{path}: {error}") from None
    if not found:
        raise InputError(f"{path} holds no pairs\nhint: write one pair a line: a,b")
    return found


def _refuse_together(form: ConnectivityForm, asked: ReportOptions) -> None:
    several = bool(asked.pairs) + asked.components + (asked.changes is not None) > 1
    if form == "csv" and several:
        raise typer.BadParameter(
            "csv has one kind of rows: ask for one of --pairs, --components and --changes, or for json",
            param_hint="--format",
        )
    if asked.every and not asked.pairs:
        raise typer.BadParameter("tells about pairs: give --pairs", param_hint="--all")


def _refuse_place(plot: str | None) -> None:
    if plot is None:
        return
    if Path(plot).is_dir():
        raise InputError(f"{plot} is a directory\nhint: name the file to write, such as {Path(plot) / 'plot.svg'}")
    if not Path(plot).parent.is_dir():
        parent = Path(plot).parent
        raise InputError(f"cannot write {plot}: there is no folder {parent}\nhint: mkdir -p {parent}")


@contextmanager
def _opened(edges: str) -> Iterator[tuple[BinaryIO, Meter]]:
    """Open the file of the edges, decompressed if it is gzip, with a meter of its size."""
    from anabranch.cli.summary import Meter
    from anabranch.sources.lines import explained, unpacked, unpacked_pipe

    if edges == STDIN:
        with explained():
            yield unpacked_pipe(cast(BinaryIO, sys.stdin.buffer)), Meter(total=None)
        return
    path = existing(edges)
    if path.is_dir():
        raise InputError(f"{edges} is a directory; give the file of the edges")
    with path.open("rb") as opened, explained():
        file = cast(BinaryIO, opened)
        try:
            if not file.seekable():
                yield file, Meter(total=None)
            elif (plain := unpacked(file)) is file:
                yield file, Meter(total=path.stat().st_size)
            else:
                yield plain, Meter(total=None)
        except StreamError as error:
            raise StreamError(f"{edges}: {error}") from None


def _summarize(terminal: Terminal, run: _Run, seconds: float) -> None:
    from anabranch.cli.summary import counted

    edges, letters, late = run.workload.edges, run.letters, run.workload.late
    parts = counted(edges, "edge"), counted(run.instants, "instant"), counted(run.rows, "row")
    text = Text(" · ".join(parts), style="dim")
    for count, word in ((run.malformed, "malformed"), (late, "late")):
        text.append(" · ").append(f"{count:,} {word}", style="not dim bold yellow" if count else "")
    if run.workload.outside:
        text.append(f" · {run.workload.outside:,} in no window")
    text.append(f" · {seconds:.2f} s · {round(edges / seconds) if seconds else 0:,} edges/s")
    if letters.count:
        text.append(f"\nset aside in {letters.path}")
    terminal.note(text)
