"""The app of all commands.

Invariant: building the app loads no engine and no grammar; a command loads what it needs when it runs.
"""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand

from anabranch import __version__
from anabranch.cli.arguments import Command, CommandGroup


class CommandPlace(NamedTuple):
    """The module of a command, the function in it, and the name of the command's class there if it has its own."""

    module: str
    function: str
    own_class: str | None = None

    def load(self, name: str) -> TyperCommand:
        module = import_module(f"anabranch.cli.{self.module}")
        app = typer.Typer(add_completion=False, rich_markup_mode="rich")
        kind = Command if self.own_class is None else getattr(module, self.own_class)
        app.command(name, cls=kind)(getattr(module, self.function))
        made: Any = typer.main.get_command(app)
        assert isinstance(made, TyperCommand)
        return made


COMMANDS = {
    "demo": CommandPlace("demo", "demo"),
    "run": CommandPlace("run", "run"),
    "serve": CommandPlace("serve", "serve"),
    "check": CommandPlace("check", "check"),
    "explain": CommandPlace("explain", "explain"),
    "why": CommandPlace("why", "why"),
    "why-not": CommandPlace("why", "why_not"),
    "eval": CommandPlace("eval", "evaluate"),
    "convert": CommandPlace("convert", "convert"),
    "connectivity": CommandPlace("connectivity.command", "connectivity", "WithBareChanges"),
}


class AllCommands(CommandGroup):
    """The commands by their names. A command is loaded when it is called, or when the help lists all of them."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: dict[str, Any] = dict.fromkeys(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in COMMANDS and self.commands[cmd_name] is None:
            self.commands[cmd_name] = COMMANDS[cmd_name].load(cmd_name)
        return super().get_command(ctx, cmd_name)


app = typer.Typer(
    name="anabranch",
    cls=AllCommands,
    help="Continuous graph queries over streams: at every instant, what the plain query would say about the window.",
    epilog="Begin with: anabranch demo",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
