"""`anabranch demo`: the running example of the Seraph paper, event by event."""

from __future__ import annotations

import sys
import time
from enum import StrEnum
from typing import Annotated

import typer

from anabranch.cli.console import open_terminal
from anabranch.cli.failures import guarded
from anabranch.cli.options import Color

_BEAT = 0.9  # seconds


class Demo(StrEnum):
    bikes = "bikes"


@guarded
def demo(
    name: Annotated[Demo, typer.Argument(help="Which one.")] = Demo.bikes,
    speed: Annotated[float, typer.Option(min=0, help="Pace on a terminal: 2 is twice as fast, 0 does not wait.")] = 1.0,
    color: Color = None,
) -> None:
    """Show the running example of the Seraph paper, event by event, with the reason for every row.

    Example:

      anabranch demo bikes --speed 2
    """
    from anabranch.cli.demo_show import Show

    waits = speed > 0 and sys.stdout.isatty()
    Show(open_terminal(color).out, lambda beats: time.sleep(beats * _BEAT / speed) if waits else None).play()
