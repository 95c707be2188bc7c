"""`anabranch eval`: a plain query over one graph."""

from __future__ import annotations

from typing import Annotated

import typer

from anabranch.cli import options
from anabranch.cli.console import open_terminal
from anabranch.cli.failures import guarded
from anabranch.cli.options import Color, Params, RowForm


@guarded
def evaluate(
    query: Annotated[str | None, typer.Argument(metavar="QUERY", help="The query.")] = None,
    file: Annotated[str | None, typer.Option("--file", "-f", help="A file with the query, or - for stdin.")] = None,
    graph: Annotated[
        str | None, typer.Option("--graph", "-g", help="JSON with nodes and relationships, or events to unite.")
    ] = None,
    param: Params = None,
    now: Annotated[
        str | None, typer.Option(metavar="INSTANT", help="What datetime() says; by default the clock.")
    ] = None,
    output: Annotated[RowForm, typer.Option("--output", "-o", help="The form of the rows.")] = RowForm.table,
    color: Color = None,
) -> None:
    """Answer a plain openCypher query over a graph from a file.

    A graph is {"nodes": [...], "relationships": [...]} in JSON, or a file of events whose union is taken.

    Examples:

      anabranch eval "MATCH (a)-->(b) RETURN count(*)" --graph city.json

      anabranch eval -f reach.cypher -g events.ndjson -p depth=3 -o csv

      anabranch eval "RETURN duration.between(date('2024-02-01'), date('2024-03-01'))"
    """
    from anabranch.cli.writers import write_table
    from anabranch.plain import evaluate as evaluate_query

    if (query is None) == (file is None):
        raise typer.BadParameter("give the query, or its file with --file", param_hint="QUERY")
    terminal = open_terminal(color)
    text = query if query is not None else options.read_text(file or "")
    path = None if graph is None else options.existing(graph)
    table = evaluate_query(
        text, path, options.parameters(param), now=options.instant(now, "--now"), file_name=file or "<query>"
    )
    write_table(terminal.out, table, output.value)
