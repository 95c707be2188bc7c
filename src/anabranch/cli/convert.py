"""`anabranch convert`: a stream from one format into another.

Invariant: the output is written completely or not at all; a malformed record is counted and set aside.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, cast

import typer
from rich.text import Text

from anabranch.cli.arguments import takes
from anabranch.cli.console import Terminal, open_terminal
from anabranch.cli.failures import SET_ASIDE, InputError, guarded
from anabranch.cli.options import STDIN, Color, existing
from anabranch.errors import EngineError, MalformedEventError

if TYPE_CHECKING:
    from anabranch.cli.deadletters import DeadLetterFile
    from anabranch.cli.summary import Meter
    from anabranch.formats.deadletter import MalformedRecord
    from anabranch.model.event import Event

_TOLD_EVERY = 256  # events


@dataclass(frozen=True, slots=True)
class ConvertArguments:
    source: Annotated[str, typer.Argument(metavar="IN", help="A stream: files, a directory, gen:..., or - for stdin.")]
    target: Annotated[str, typer.Argument(metavar="OUT", help="The file to write, or - for stdout.")]
    from_: Annotated[
        str | None, typer.Option("--from", metavar="FORMAT", help="The format of IN, where its name does not tell.")
    ] = None
    to: Annotated[
        str | None, typer.Option("--to", metavar="FORMAT", help="The format of OUT, where its name does not tell.")
    ] = None
    vocabulary: Annotated[
        str | None,
        typer.Option(metavar="IRI", help="What names of labels, types and properties begin with as IRIs."),
    ] = None
    dead_letter: Annotated[
        str | None, typer.Option(metavar="FILE", help="Where malformed records go. [OUT.dead.ndjson]")
    ] = None
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUT if it exists.")] = False
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 5 when malformed records were set aside.")] = False
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No summary, no progress.")] = False
    color: Color = None


@guarded
@takes(ConvertArguments)
def convert(arguments: ConvertArguments) -> None:
    """Convert a stream of events from one format into another.

    Formats: tsv (time, tab, triple), csv and parquet-triples (columns s, p, o, at), nquads, trig and jsonld (a named
    graph per event), ndjson-triples, ndjson-elements and parquet-elements (nodes and relationships); ndjson and parquet
    keep what the events are. Triples become nodes and relationships, and back, where the formats ask for it.

    Examples:

      anabranch convert sensors.nt.tsv sensors.parquet

      anabranch convert rides.ndjson rides.trig

      zcat log.tsv.gz | anabranch convert - - --from tsv --to ndjson-elements
    """
    from anabranch.cli.deadletters import DeadLetterFile
    from anabranch.cli.summary import Bar, Meter
    from anabranch.formats.streams import checked, format_of, write_events
    from anabranch.model.mapping import Mapping

    terminal = open_terminal(arguments.color)
    _refuse_target(arguments.source, arguments.target, arguments.overwrite)
    form = (
        checked(arguments.to)
        if arguments.to
        else format_of(arguments.target) or ("ndjson" if arguments.target == STDIN else None)
    )
    if form is None:
        raise EngineError(
            f"{arguments.target} does not say its format\nhint: end it with .tsv, .nq, .parquet, ..., or give --to"
        )
    given = None if arguments.from_ is None else checked(arguments.from_)
    meter = Meter()
    letters = DeadLetterFile(
        arguments.dead_letter or f"{'convert' if arguments.target == STDIN else arguments.target}.dead.ndjson"
    )
    bar = Bar(terminal.err, meter, shown=not arguments.quiet)
    begun = time.perf_counter()
    try:
        with _written(arguments.target) as file:
            events = _good(_records(arguments.source, given, meter), letters, bar.update)
            count = write_events(events, file, form, Mapping(arguments.vocabulary))
    finally:
        bar.close()
        letters.close()
    if not arguments.quiet:
        _summarize(terminal, count, letters, time.perf_counter() - begun)
    if arguments.strict and letters.count:
        raise typer.Exit(SET_ASIDE)


def _records(source: str, given: str | None, meter: Meter) -> Iterator[Event | MalformedEventError]:
    """Read the records of the input; `given` is its format if the user named one."""
    from anabranch.formats.streams import read_events
    from anabranch.sources.lines import explained, unpacked

    if source == STDIN:
        meter.total = None
        stdin = cast(BinaryIO, sys.stdin.buffer)
        if given in (None, "ndjson"):
            return read_events(stdin, "ndjson")  # line by line, and gzip too
        packed = cast(BinaryIO, io.BytesIO(stdin.read()))
        return read_events(unpacked(packed), given or "ndjson", "f0")
    if given is None:
        return _of_source(source, meter)

    def records() -> Iterator[Event | MalformedRecord]:
        path = existing(source)
        if path.is_dir():
            raise InputError(f"{source} is a directory; --from is for one file")
        meter.total = path.stat().st_size
        with path.open("rb") as file, explained():
            yield from read_events(unpacked(file), given, "f0")
        meter.done = meter.total

    return records()


def _of_source(address: str, meter: Meter) -> Iterator[Event | MalformedRecord]:
    """Read the records of an address as a run reads them."""
    from anabranch.sources.base import Backlog, as_event
    from anabranch.sources.open import open_source

    source = open_source("", address)
    if not source.finite:
        raise EngineError(f"{address} never ends\nhint: give it an end, such as gen:bikes?count=1000 or until=end")
    meter.total = source.backlog(source.begin()).total

    def note(backlog: Backlog) -> None:
        meter.done = backlog.done

    return source.read_all(as_event, note)


def _good(
    records: Iterable[Event | MalformedEventError], letters: DeadLetterFile, tell: Callable[[int], None]
) -> Iterator[Event]:
    """Yield the events; malformed records are set aside."""
    count = 0
    for record in records:
        if isinstance(record, MalformedEventError):
            letters.add(record)
            continue
        count += 1
        if count % _TOLD_EVERY == 0:
            tell(count)
        yield record


def _refuse_target(source: str, target: str, overwrite: bool) -> None:
    if target == STDIN:
        return
    path = Path(target)
    if path.is_dir():
        raise EngineError(f"{target} is a directory\nhint: name the file to write")
    if not path.parent.is_dir():
        raise EngineError(f"cannot write {target}: there is no folder {path.parent}\nhint: mkdir -p {path.parent}")
    if path.exists():
        if os.path.exists(source) and os.path.samefile(source, target):
            raise EngineError(f"{target} is read, and cannot be written at the same time\nhint: name another file")
        if not overwrite:
            raise EngineError(f"{target} exists already\nhint: name a new file, or add --overwrite to replace it")


@contextlib.contextmanager
def _written(target: str) -> Iterator[BinaryIO]:
    """Open the output: a temporary file that is renamed when it is complete, or stdout directly."""
    if target == STDIN:
        yield cast(BinaryIO, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    part = Path(f"{target}.part")
    try:
        with part.open("wb") as raw:
            if target.endswith(".gz"):
                with gzip.GzipFile(fileobj=raw, mode="wb", mtime=0) as packed:
                    yield cast(BinaryIO, packed)
            else:
                yield raw
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _summarize(terminal: Terminal, count: int, letters: DeadLetterFile, seconds: float) -> None:
    text = Text(f"{count:,} event{'' if count == 1 else 's'}", style="dim")
    text.append(" · ")
    text.append(f"{letters.count:,} malformed", style="not dim bold yellow" if letters.count else "")
    text.append(f" · {seconds:.2f} s")
    if seconds > 0:
        text.append(f" · {round(count / seconds):,} events/s")
    if letters.count:
        text.append(f"\nset aside in {letters.path}")
    terminal.note(text)
