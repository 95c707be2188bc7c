"""`anabranch run`: continuous queries over files of events.

Invariant: the exit code says what happened; the answers up to there were written.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from anabranch.cli import options
from anabranch.cli.console import open_terminal
from anabranch.cli.failures import FAILED, INTERRUPTED, SET_ASIDE, draw_error, guarded
from anabranch.cli.options import Color, Conflicts, Engine, Output, Params, SummaryForm, Windows, WindowsOption

if TYPE_CHECKING:
    from anabranch.engine.answers import Answer
    from anabranch.engine.query import QueryWarning


@guarded
def run(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Query file: REGISTER QUERY, one or more; - is stdin.")],
    stream: Annotated[
        list[str] | None,
        typer.Option("--stream", "-s", metavar="NAME=PATH", help="A stream: file, directory or -. Repeatable."),
    ] = None,
    graph: Annotated[
        list[str] | None,
        typer.Option("--graph", "-g", metavar="NAME=FILE", help="A static graph for ON GRAPH NAME. Repeatable."),
    ] = None,
    engine: Annotated[Engine, typer.Option(help="Where it runs.")] = Engine.local,
    output: Annotated[Output, typer.Option("--output", "-o", help="The form of the answers.")] = Output.table,
    windows: WindowsOption = Windows.trailing,
    conflicts: Annotated[
        Conflicts, typer.Option(help="Events that disagree about an element: the newest value, or an empty window.")
    ] = Conflicts.latest,
    lateness: Annotated[
        str | None, typer.Option(metavar="DURATION", help="How far out of order events may come, such as PT5S.")
    ] = None,
    param: Params = None,
    until: Annotated[
        str | None,
        typer.Option(metavar="INSTANT", help="Evaluate up to an instant after the input's end, or until 'drained'."),
    ] = None,
    dead_letter: Annotated[
        str | None, typer.Option(metavar="FILE", help="Where malformed and late events go. [NAME.dead.ndjson]")
    ] = None,
    query: Annotated[
        list[str] | None, typer.Option("--query", metavar="NAME", help="Only this query. Repeatable.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 5 when malformed or late events were set aside.")
    ] = False,
    summary: Annotated[SummaryForm, typer.Option(help="The summary on stderr.")] = SummaryForm.text,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No summary, no progress bar.")] = False,
    color: Color = None,
) -> None:
    """Run continuous queries over streams of events and print their answers.

    Files hold one JSON event a line (.ndjson, .jsonl, .json, also .gz) or Parquet; a directory is all of its files.

    Examples:

      anabranch run trick.seraph --stream rides=events.ndjson

      anabranch run trick.seraph -s rides=events/ -o json --until drained | jq .row

      tail -f log.ndjson | anabranch run trick.seraph -s rides=- -o csv
    """
    from anabranch.algebra.walk import windows as windows_of
    from anabranch.cli.deadletters import SetAside
    from anabranch.cli.inputs import open_inputs
    from anabranch.cli.replay import Replay
    from anabranch.cli.summary import Bar, Summary
    from anabranch.cli.texts import chosen
    from anabranch.cli.values import clock
    from anabranch.cli.writers import make_writer
    from anabranch.engine.session import Session
    from anabranch.plain import read_graph

    terminal = open_terminal(color)
    bounds = options.until(until)
    held_back = options.duration(lateness, "--lateness")
    text = chosen(options.read_text(file), file, query or ())
    inputs = open_inputs(options.named_paths(stream, "--stream"), text, file)
    session = Session.local(inputs.names or None, held_back, windows.value, conflicts.value)
    for name, path in options.named_paths(graph, "--graph"):
        session.graph(name, read_graph(options.existing(path)))
    queries = session.register_all(text, parameters=options.parameters(param), file_name=file)
    if not inputs.streams and any(windows_of(one.registration.plan) for one in queries):
        message = "the query reads a stream; name its file, for example --stream rides=events.ndjson"
        raise typer.BadParameter(message, param_hint="--stream")
    writer = make_writer(output.value, terminal.out, windows.value, [one.columns for one in queries])
    set_aside = SetAside(dead_letter)
    replay = Replay(session, queries, inputs, set_aside, held_back)
    bar = Bar(terminal.err, inputs.meter, shown=not quiet)
    begun = time.perf_counter()
    code = 0

    def tell(answer: Answer) -> None:
        with bar.aside():
            writer.write(answer)

    def warn(warning: QueryWarning) -> None:
        with bar.aside():
            terminal.note(f"warning: {warning.query} at {clock(warning.at)}: {warning}", style="yellow")

    try:
        replay.run(tell, warn, bar.update, *bounds)
    except KeyboardInterrupt:
        code = INTERRUPTED
    finally:
        bar.close()
        set_aside.close()
    for failure in replay.failures:
        draw_error(failure, terminal)
    done = Summary(
        replay.events,
        replay.instants,
        replay.evaluations,
        replay.rows,
        set_aside.malformed,
        set_aside.late,
        time.perf_counter() - begun,
        set_aside.paths,
    )
    if summary is SummaryForm.json:
        terminal.note(done.to_json())
    elif summary is SummaryForm.text and not quiet:
        if terminal.out.is_terminal and replay.rows:
            terminal.note("")
        terminal.note(done.text())
    if not code and replay.failures:
        code = FAILED
    if not code and strict and (set_aside.malformed or set_aside.late):
        code = SET_ASIDE
    raise typer.Exit(code)
