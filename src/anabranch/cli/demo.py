"""`anabranch demo`: auctions on a page or in the terminal, live; or the running example of the Seraph paper."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

import typer

from anabranch.cli.arguments import takes
from anabranch.cli.console import open_terminal
from anabranch.cli.failures import guarded
from anabranch.cli.options import Color, EngineOption

_BEAT = 0.9  # seconds


Demo: TypeAlias = Literal["bikes", "auctions"]


@dataclass(frozen=True, slots=True)
class DemoArguments:
    name: Annotated[Demo, typer.Argument(help="Which one.")] = "bikes"
    speed: Annotated[float, typer.Option(min=0, help="Pace on a terminal: 2 is twice as fast, 0 does not wait.")] = 1.0
    engine: Annotated[
        EngineOption, typer.Option(envvar="ANABRANCH_ENGINE", help="Auctions: on Spark, or in this process.")
    ] = "spark"
    rate: Annotated[float, typer.Option(metavar="N", min=0.1, help="Auctions: events per second.")] = 10.0
    count: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Auctions: end after so many events. \\[never]")
    ] = None
    ui: Annotated[bool, typer.Option("--ui/--no-ui", help="Auctions: on a page, or in the terminal.")] = True
    open_: Annotated[
        bool, typer.Option("--open/--no-open", help="Auctions: open the page in a browser, where there is one.")
    ] = True
    port: Annotated[int, typer.Option(metavar="PORT", min=0, max=65535, help="Auctions: of the page.")] = 8017
    data: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Auctions: go on from this folder. \\[a temporary one]")
    ] = None
    color: Color = None


@guarded
@takes(DemoArguments)
def demo(arguments: DemoArguments) -> None:
    """Show what Anabranch does.

    bikes: the running example of the Seraph paper, event by event, with the reason for every row.

    auctions: an auction house that never sleeps, its busiest items on a page, or Figure 6 of the LUPOS paper in the
    terminal.

    Examples:

      anabranch demo bikes --speed 2

      anabranch demo auctions

      anabranch demo auctions --no-ui --engine local --count 500
    """
    if arguments.name == "auctions":
        from anabranch.cli.demo_auctions import AuctionDemo, in_terminal, on_page

        asked = AuctionDemo(
            arguments.engine,
            arguments.rate * arguments.speed if arguments.speed else None,
            arguments.count,
            arguments.data,
        )
        terminal = open_terminal(arguments.color)
        if arguments.ui:
            on_page(asked, terminal, arguments.port, arguments.open_)
        else:
            in_terminal(asked, terminal)
        return
    from anabranch.cli.demo_show import Show

    waits = arguments.speed > 0 and sys.stdout.isatty()
    Show(
        open_terminal(arguments.color).out, lambda beats: time.sleep(beats * _BEAT / arguments.speed) if waits else None
    ).play()
