"""The app of all commands.

Invariant: building the app loads no engine and no grammar; a command loads what it needs when it runs.
"""

from __future__ import annotations

from typing import Annotated

import typer

from anabranch import __version__
from anabranch.cli.arguments import Command, CommandGroup
from anabranch.cli.check import check
from anabranch.cli.connectivity.command import WithBareChanges, connectivity
from anabranch.cli.convert import convert
from anabranch.cli.demo import demo
from anabranch.cli.eval import evaluate
from anabranch.cli.explain import explain
from anabranch.cli.run import run
from anabranch.cli.serve import serve
from anabranch.cli.why import why, why_not

app = typer.Typer(
    name="anabranch",
    cls=CommandGroup,
    help="Continuous graph queries over streams: at every instant, what the plain query would say about the window.",
    epilog="Begin with: anabranch demo",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo", cls=Command)(demo)
app.command("run", cls=Command)(run)
app.command("serve", cls=Command)(serve)
app.command("check", cls=Command)(check)
app.command("explain", cls=Command)(explain)
app.command("why", cls=Command)(why)
app.command("why-not", cls=Command)(why_not)
app.command("eval", cls=Command)(evaluate)
app.command("convert", cls=Command)(convert)
app.command("connectivity", cls=WithBareChanges)(connectivity)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"anabranch {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass
