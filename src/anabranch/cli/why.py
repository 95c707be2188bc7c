"""`anabranch why` and `anabranch why-not`: the reasons for a row of an answer, or for its absence, over recorded input.

Invariant: the explained answers are those of `anabranch run --engine local` over the same input.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anabranch.cli import options
from anabranch.cli.arguments import takes
from anabranch.cli.console import Terminal, open_terminal
from anabranch.cli.failures import guarded
from anabranch.cli.options import Color, ConflictPolicyOption, Params, WindowsOption

if TYPE_CHECKING:
    from anabranch.insight.recording import Recording
    from anabranch.insight.shapes import Element, Why, WhyNot
    from anabranch.sources.base import Source

File = Annotated[str, typer.Argument(metavar="FILE", help="A file with a continuous query; - is stdin.")]
StreamsOption = Annotated[
    list[str] | None,
    typer.Option("--stream", "-s", metavar="NAME=ADDRESS", help="A stream that ends: a path or a URI. Repeatable."),
]
GraphsOption = Annotated[
    list[str] | None,
    typer.Option("--graph", "-g", metavar="NAME=FILE", help="A static graph, JSON or RDF. Repeatable."),
]
RowOption = Annotated[
    list[str] | None,
    typer.Option("--row", "-r", metavar="COLUMN=VALUE", help="A value of the row: JSON, or else a text. Repeatable."),
]
At = Annotated[
    str | None, typer.Option(metavar="INSTANT", help="At the last evaluation at or before then. \\[the last of all]")
]
QueryOption = Annotated[str | None, typer.Option("--query", metavar="NAME", help="Which query of the file.")]
Lateness = Annotated[
    str | None, typer.Option(metavar="DURATION", help="How far out of order events may come, such as PT5S.")
]
AsJson = Annotated[bool, typer.Option("--json", help="The reason as JSON.")]
ConflictsOption = Annotated[
    ConflictPolicyOption, typer.Option(help="Events that disagree: the newest value, or an empty window.")
]


@dataclass(frozen=True, slots=True)
class WhyArguments:
    file: File
    stream: StreamsOption = None
    row: RowOption = None
    at: At = None
    graph: GraphsOption = None
    query: QueryOption = None
    lateness: Lateness = None
    param: Params = None
    windows: WindowsOption = "trailing"
    conflicts: ConflictsOption = "latest"
    as_json: AsJson = False
    color: Color = None


@guarded
@takes(WhyArguments)
def why(arguments: WhyArguments) -> None:
    """Say why a row is in an answer: the elements that it is made of, what completed it, and when it will leave.

    Examples:

      anabranch why trick.seraph -s rides=events.ndjson --row r.user_id=5678

      anabranch why tolls.csparql -s http://streams.org/tolls=tolls.nt.tsv -r cars=3 --at 2022-10-14T12:00Z --json
    """
    from anabranch.insight.why import why as reason

    terminal = open_terminal(arguments.color)
    found = reason(_recording(terminal, arguments), _values(arguments.row), options.instant(arguments.at, "--at"))
    _say(terminal, found if arguments.as_json else _why_lines(found))


@guarded
@takes(WhyArguments)
def why_not(arguments: WhyArguments) -> None:
    """Say why no row has some values: the parts of the pattern that lack, or the conditions that fail.

    Example:

      anabranch why-not trick.seraph -s rides=events.ndjson --row r.user_id=5678 --at 2022-10-14T15:15Z
    """
    from anabranch.insight.why_not import why_not as reason

    terminal = open_terminal(arguments.color)
    found = reason(_recording(terminal, arguments), _values(arguments.row), options.instant(arguments.at, "--at"))
    _say(terminal, found if arguments.as_json else _why_not_lines(found))


def _say(terminal: Terminal, said: Why | WhyNot | list[str]) -> None:
    """Print a reason as JSON, or as lines of text."""
    from anabranch.insight.shapes import to_json

    if isinstance(said, list):
        terminal.out.print("\n".join(said), soft_wrap=True, markup=False, emoji=False)
    else:
        print(json.dumps(to_json(said), indent=2, ensure_ascii=False))


def _recording(terminal: Terminal, arguments: WhyArguments) -> Recording:
    from anabranch.engine.session import parameter_values
    from anabranch.engine.stream import StreamBuffer
    from anabranch.formats.events import any_graph_from
    from anabranch.insight.recording import Recording
    from anabranch.model.event import Event
    from anabranch.sources.address import parse_address
    from anabranch.sources.open import open_source
    from anabranch.sources.static import graph_files
    from anabranch.sources.stream_specs import open_stream, stream_specs
    from anabranch.syntax import languages

    script = languages.script(options.read_text(arguments.file), arguments.file)

    def finite_source(name: str, address: str, records_are_events: bool) -> Source:
        if not parse_address(address).is_pushed:
            source = open_source(name, address, records_are_events=records_are_events)
            if source.finite:
                return source
        raise typer.BadParameter("only a stream that ends can be looked back on", param_hint="--stream")

    length = options.lateness(arguments.lateness)
    events: dict[str, list[Event]] = {}
    refused = 0
    for spec in stream_specs(options.named_paths(arguments.stream, "--stream"), [script]):
        opened = open_stream(spec, finite_source)
        accepts = StreamBuffer(spec.name, length)
        kept = events[spec.name] = []
        for record in opened.source.read_all(opened.decoding.decoder()):
            if isinstance(record, Event) and accepts.push(record):
                kept.append(record)
            else:
                refused += 1
    if refused:
        terminal.note(f"{refused:,} malformed or late records were left out", style="yellow")
    files = graph_files(options.graph_paths(arguments.graph), [script])
    return Recording(
        script.text,
        arguments.query or "",
        parameter_values(options.parameters(arguments.param)),
        events,
        {one.name: any_graph_from(one.load()) for one in files},
        windows=arguments.windows,
        conflicts=arguments.conflicts,
        file_name=arguments.file,
    )


def _values(row: Sequence[str] | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for one in row or ():
        name, equals, value = one.partition("=")
        if not equals:
            raise typer.BadParameter(f"`{one}` is not COLUMN=VALUE", param_hint="--row")
        try:
            found[name] = json.loads(value)
        except json.JSONDecodeError:
            found[name] = value
    return found


def _shown(values: Iterable[tuple[str, Any]]) -> str:
    return ", ".join(f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in values) or "any row"


def _instant(at: int | None, otherwise: str) -> str:
    from anabranch.model.instants import format_instant

    return otherwise if at is None else format_instant(at)


def _element(element: Element) -> str:
    return f"  {_instant(element.at, '')}  {element.text}"


def _why_lines(found: Why) -> list[str]:
    lines = [_shown(zip(found.columns, found.row, strict=True)), f"at {_instant(found.at, '')}, because of"]
    lines += map(_element, found.elements)
    if found.completed_by is not None:
        lines.append(f"completed by  {found.completed_by.text}")
    lines.append(f"entered at    {_instant(found.entered_at, 'before the recording')}")
    lines.append(f"leaves at     {_instant(found.leaves_at, 'stays, if nothing more comes')}")
    if found.minimal:
        lines.append("none of these elements can be spared")
    return [*lines, *([f"note: {found.note}"] if found.note else [])]


def _why_not_lines(found: WhyNot) -> list[str]:
    lines = [_shown(found.values.items()), f"at {_instant(found.at, '')}"]
    for part in found.matched:
        lines.append(f"  matches  {part.text}")
        lines += (f"           {element.text}" for element in part.elements if element.kind != "node")
    lines += (f"  missing  {part.text}" for part in found.missing)
    for one in found.filters:
        lines.append(f"  {'passes ' if one.passed else 'fails  '}  {one.text}  ({json.dumps(one.value)})")
    return [*lines, *([f"note: {found.note}"] if found.note else [])]
