"""`anabranch eval`: a plain query over graphs from files."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from anabranch.cli import options
from anabranch.cli.console import open_terminal
from anabranch.cli.failures import guarded
from anabranch.cli.options import Color, OutputOption, Params

_NAMES_A_FILE = re.compile(r"[^\s(){}]+\.(cypher|cql|seraph|rq|sparql|csparql|rspql|lupos)", re.IGNORECASE)


@guarded
def evaluate(
    query: Annotated[str | None, typer.Argument(metavar="QUERY", help="The query, or - for stdin.")] = None,
    file: Annotated[str | None, typer.Option("--file", "-f", help="A file with the query, or - for stdin.")] = None,
    graph: Annotated[
        list[str] | None,
        typer.Option(
            "--graph",
            "-g",
            metavar="[NAME=]FILE",
            help="The graph: JSON, events to unite, or RDF; with a name, one for FROM and GRAPH. Repeatable.",
        ),
    ] = None,
    param: Params = None,
    now: Annotated[
        str | None, typer.Option(metavar="INSTANT", help="What datetime() says; by default the clock.")
    ] = None,
    output: Annotated[OutputOption, typer.Option("--output", "-o", help="The form of the rows.")] = "table",
    color: Color = None,
) -> None:
    """Answer a plain query, openCypher or SPARQL, over graphs from files.

    A graph is {"nodes": [...], "relationships": [...]} in JSON, a file of events whose union is taken, or RDF (.ttl,
    .nt, .rdf, .jsonld, ...). Either language reads either kind.

    Examples:

      anabranch eval "MATCH (a)-->(b) RETURN count(*)" --graph city.json

      anabranch eval "SELECT ?s { ?s a <http://ex.org/Bike> }" --graph city.ttl -o sparql-json

      anabranch eval -f reach.cypher -g events.ndjson -p depth=3 -o csv

      anabranch eval "RETURN duration.between(date('2024-02-01'), date('2024-03-01'))"
    """
    from anabranch.cli.writers import write_table
    from anabranch.plain import evaluate as evaluate_query
    from anabranch.syntax.languages import language_of

    if (query is None) == (file is None):
        raise typer.BadParameter("give the query, or its file with --file", param_hint="QUERY")
    if query is not None and _NAMES_A_FILE.fullmatch(query):
        raise typer.BadParameter(f"{query} is the name of a file; give it with --file {query}", param_hint="QUERY")
    terminal = open_terminal(color)
    text = query if query is not None and query != options.STDIN else options.read_text(file or options.STDIN)
    options.refuse_parameters(param, [language_of(text, file or "<query>")])
    given = options.graph_paths(graph)
    unnamed = [path for name, path in given if name is None]
    if len(unnamed) > 1:
        raise typer.BadParameter("one graph has no name, others are given as NAME=FILE", param_hint="--graph")
    table = evaluate_query(
        text,
        unnamed[0] if unnamed else None,
        options.parameters(param),
        named={name: path for name, path in given if name is not None},
        now=options.instant(now, "--now"),
        file_name=file or "<query>",
    )
    write_table(terminal.out, table, output)
