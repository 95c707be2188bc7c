"""`anabranch explain`: what a query will do, before it does it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from anabranch.cli import options
from anabranch.cli.console import PLAIN_WIDTH, open_terminal
from anabranch.cli.failures import guarded
from anabranch.cli.options import Color, ExplainForm, Windows, WindowsOption

if TYPE_CHECKING:
    from rich.text import Text

    from anabranch.algebra.explain import Explanation


@guarded
def explain(
    file: Annotated[
        str | None, typer.Argument(metavar="FILE", help="Query file, continuous or plain; - is stdin.")
    ] = None,
    text: Annotated[str | None, typer.Option("--text", "-t", help="The query itself, instead of a file.")] = None,
    form: Annotated[ExplainForm, typer.Option("--format", "-f", help="The form of the plan.")] = ExplainForm.text,
    windows: WindowsOption = Windows.trailing,
    color: Color = None,
) -> None:
    """Show the plan of a query: its operators, windows, instants, and how it is executed.

    Examples:

      anabranch explain trick.seraph

      anabranch explain trick.seraph --windows formal --format json

      anabranch explain --text "MATCH (a)-->(b) RETURN count(*)"
    """
    from anabranch.algebra.explain import explain as explain_query
    from anabranch.cli.texts import statements_of

    if (file is None) == (text is None):
        raise typer.BadParameter("give a query file, or the query itself with --text", param_hint="FILE")
    terminal = open_terminal(color)
    query_text = text if text is not None else options.read_text(file or "")
    found = [explain_query(query, windows.value) for query in statements_of(query_text, file or "<text>")]
    if form is ExplainForm.json:
        plans = [explanation.to_dict() for explanation in found]
        print(json.dumps(plans[0] if len(plans) == 1 else plans, indent=2, ensure_ascii=False))
        return
    width = terminal.out.width if terminal.out.is_terminal else PLAIN_WIDTH
    for index, explanation in enumerate(found):
        if index:
            terminal.out.print()
        terminal.out.print(drawn(explanation, width), soft_wrap=True)


def drawn(explanation: Explanation, width: int) -> Text:
    """The explanation in colour; its letters are those of `Explanation.text`."""
    from rich.text import Text

    text = Text()
    kind, _, name = explanation.title.partition(" ")
    text.append(f"{kind} ", style="dim").append(name, style="bold")
    for label, fact in explanation.fact_lines(width):
        text.append(f"\n  {label:<10}  ", style="cyan").append(fact)
    text.append("\n")
    for line in explanation.tree(width - 2):
        text.append("\n  ").append(line.branch, style="dim").append(line.operator, style="bold green")
        text.append(("  " if line.operator and line.detail else "") + line.detail)
    return text
