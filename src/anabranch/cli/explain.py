"""`anabranch explain`: the plan of a query, without running it."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anabranch.cli import options
from anabranch.cli.arguments import takes
from anabranch.cli.console import PLAIN_WIDTH, open_terminal
from anabranch.cli.failures import guarded
from anabranch.cli.options import Color, ExplainForm, ExplainStage, ExplainView, WindowPolicyOption, WindowsOption

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.text import Text

    from anabranch.algebra.explain import Explanation
    from anabranch.algebra.operators import Operator, Registration, Window
    from anabranch.algebra.steps import Ways
    from anabranch.planner.forecast import OperatorForecast
    from anabranch.planner.link_streams import LinkStream
    from anabranch.planner.queries import QueryPlan


@dataclass(frozen=True, slots=True)
class ExplainArguments:
    file: Annotated[str | None, typer.Argument(metavar="FILE", help="Query file, continuous or plain; - is stdin.")] = (
        None
    )
    text: Annotated[str | None, typer.Option("--text", "-t", help="The query itself, instead of a file.")] = None
    form: Annotated[ExplainForm, typer.Option("--format", "-f", help="The form of the plan.")] = "text"
    view: Annotated[
        ExplainView, typer.Option(help="What is drawn: the operators, or what is asked and which source knows it.")
    ] = "ograph"
    stage: Annotated[
        ExplainStage | None,
        typer.Option(help="The plan before the rules, after, or both.", show_default="after; drawings: both"),
    ] = None
    graph: Annotated[
        list[str] | None,
        typer.Option("--graph", "-g", metavar="NAME=FILE", help="A static graph, for rules that use what it holds."),
    ] = None
    state: Annotated[
        bool, typer.Option("--state", help="Forecast what the operators will keep, from widths and --rate.")
    ] = False
    rate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[STREAM=]N", help="Events per second, of one stream or of each. [1000]", show_default=False
        ),
    ] = None
    windows: WindowsOption = "trailing"
    color: Color = None


@guarded
@takes(ExplainArguments)
def explain(arguments: ExplainArguments) -> None:
    """Show the plan of a query: its operators, windows, instants, and how it is executed.

    Examples:

      anabranch explain trick.seraph

      anabranch explain trick.seraph --windows formal --format json

      anabranch explain brokers.csparql --graph brokers.ttl --format svg > plan.svg

      anabranch explain trick.seraph --state --rate rides=200

      anabranch explain --text "MATCH (a)-->(b) RETURN count(*)"
    """
    if (arguments.file is None) == (arguments.text is None):
        raise typer.BadParameter("give a query file, or the query itself with --text", param_hint="FILE")
    terminal = open_terminal(arguments.color)
    query_text = arguments.text if arguments.text is not None else options.read_text(arguments.file or "")
    rates = options.rates(arguments.rate) if arguments.state or arguments.rate else None
    found = explained(query_text, arguments.file or "<text>", arguments.windows, arguments.graph, rates)
    if arguments.form == "json":
        plans = [explanation.to_dict() for explanation in found]
        print(json.dumps(plans[0] if len(plans) == 1 else plans, indent=2, ensure_ascii=False))
        return
    if arguments.form != "text":
        from anabranch.drawings import draw

        print(
            draw(
                found,
                arguments.form,
                arguments.view,
                arguments.stage or "both",
            )
        )
        return
    if arguments.view != "ograph":
        raise typer.BadParameter("the D-Graph is drawn: add --format svg, mermaid or dot", param_hint="--view")
    width = terminal.out.width if terminal.out.is_terminal else PLAIN_WIDTH
    for index, explanation in enumerate(found):
        if index:
            terminal.out.print()
        terminal.out.print(drawn(explanation, width, arguments.stage or "after"), soft_wrap=True)


def explained(
    text: str,
    file_name: str,
    windows: WindowPolicyOption,
    graph: list[str] | None,
    rates: dict[str | None, float] | None = None,
) -> list[Explanation]:
    """Explain each statement of a text, with the rules that fire on it; with rates, also the expected state."""
    from anabranch.algebra.explain import explain as explain_query
    from anabranch.algebra.ingestion import Ingestion
    from anabranch.algebra.operators import Registration
    from anabranch.cli.texts import is_script, statements_of
    from anabranch.engine.evaluation_options import EvaluationOptions
    from anabranch.engine.groups import shared_runs
    from anabranch.engine.plans import planned
    from anabranch.engine.query_options import CompiledQuery, QueryOptions
    from anabranch.optimizer import Knowledge, optimize
    from anabranch.sources.static import graph_files
    from anabranch.syntax.languages import language_of, script

    graphs: dict[str, object] = {}
    given = options.graph_paths(graph)
    if given or is_script(text, file_name):
        places = {place for _, place in given}
        for file in graph_files(given, [script(text, file_name)] if is_script(text, file_name) else []):
            # A plan must neither fetch from the web nor fail because of a missing file.
            if places & set(file.places) or all((Path(file.folder) / one).is_file() for one in file.places):
                graphs[file.name] = file.load()
    plain_prefixes: tuple[tuple[str, str], ...] = ()
    if not is_script(text, file_name) and language_of(text, file_name) != "seraph":
        from anabranch.syntax import sparql

        plain_prefixes = sparql.plan(text, file_name).prefixes
    found = []
    statements = list(statements_of(text, file_name))
    registered = [one for one in statements if isinstance(one, Registration)]
    as_links = _link_streams(registered, windows)
    shared = shared_runs(CompiledQuery(one, QueryOptions(windows)) for one in registered)
    for query in statements:
        match query:
            case Ingestion():
                found.append(explain_query(query))
            case Registration():
                optimized = optimize(query.plan, Knowledge.of(graphs, query.prefixes))
                plan = planned(optimized.plan, query, EvaluationOptions(), {})
                explanation = explain_query(query, windows, optimized, ways=_ways(plan, rates))
                explanation = _with_links(explanation, query, as_links)
                if query.name in shared:
                    run = shared[query.name]
                    explanation = explanation.with_fact("shared", str(run), shared_with=list(run.others))
                found.append(explanation if rates is None else _with_forecast(explanation, plan, rates))
            case _:
                optimized = optimize(query, Knowledge.of(graphs, plain_prefixes))
                found.append(explain_query(query, windows, optimized, plain_prefixes))
    return found


def _link_streams(queries: Sequence[Registration], windows: WindowPolicyOption) -> dict[str, LinkStream]:
    """Return the streams that travel as links when these queries run on Spark together."""
    from anabranch.planner.link_streams import link_streams

    return link_streams([(one, windows) for one in queries], lambda _: None)


def _with_links(explanation: Explanation, query: Registration, as_links: dict[str, LinkStream]) -> Explanation:
    from anabranch.algebra.walk import windows

    read = dict.fromkeys(window.stream.name for window in windows(query.plan) if window.stream.name in as_links)
    said = [("on Spark", f"{name} travels as links: a spanning forest of each slide") for name in read]
    if not said:
        return explanation
    data = {**explanation.data, "links": list(read)}
    return replace(explanation, facts=(*explanation.facts, *said), data=data)


def _ways(plan: QueryPlan, rates: dict[str | None, float] | None) -> Ways:
    """Return how each operator is executed and, with rates, its expected state."""
    if rates is None:
        return plan.way
    kept = forecast_of(plan, rates)

    def way(operator: Operator) -> tuple[str, str] | None:
        found = plan.way(operator)
        return found if found is None or id(operator) not in kept else (found[0], f"{found[1]}, {kept[id(operator)]}")

    return way


def forecast_of(plan: QueryPlan, rates: dict[str | None, float]) -> dict[int, OperatorForecast]:
    from anabranch.planner.forecast import forecast

    named = [rate for name, rate in rates.items() if name is not None]
    only = named[0] if len(named) == 1 else rates[None]  # of the stream that the query does not name

    def rate(window: Window) -> float:
        return only if window.stream.name is None else rates.get(window.stream.name, rates[None])

    return forecast(plan, rate)


def _with_forecast(explanation: Explanation, plan: QueryPlan, rates: dict[str | None, float]) -> Explanation:
    from anabranch.planner.forecast import size_words

    kept = forecast_of(plan, rates).values()
    named = ", ".join(f"{'each stream' if name is None else name} {rate:,g}/s" for name, rate in rates.items())
    total = f"about {sum(one.rows for one in kept):,.0f} rows, {size_words(sum(one.bytes for one in kept))}"
    said = (("state", f"{total}; events: {named}"), ("", "each event one fact, each join one to one: a calculation"))
    data = {"rows": round(sum(one.rows for one in kept)), "bytes": round(sum(one.bytes for one in kept))}
    return replace(explanation, facts=(*explanation.facts, *said), data={**explanation.data, "state": data})


def drawn(explanation: Explanation, width: int, stage: ExplainStage = "after") -> Text:
    """Return the explanation in colour; its characters are those of `Explanation.text`."""
    from rich.text import Text

    text = Text()
    kind, _, name = explanation.title.partition(" ")
    text.append(f"{kind} ", style="dim").append(name, style="bold")
    for label, fact in explanation.fact_lines(width):
        text.append(f"\n  {label:<10}  ", style="cyan").append(fact)
    text.append("\n")
    for line in explanation.tree(width - 2, stage):
        if not str(line):
            text.append("\n")
            continue
        text.append("\n  ").append(line.branch, style="dim").append(line.operator, style="bold green")
        text.append(("  " if line.operator and line.detail else "") + line.detail)
    return text
