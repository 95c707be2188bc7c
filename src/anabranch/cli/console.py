"""The two consoles of a command, and colour as the user wants it.

Invariant: answers go to stdout and everything else to stderr, so that a pipe carries answers only. What a stream holds
does not steer the terminal.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TextIO

from rich.console import Console
from rich.text import Text

_STEERING = (*(code for code in range(32) if chr(code) not in "\t\n\r"), *range(127, 160))
_PICTURES = {code: 0x2400 + code if code < 32 else 0xFFFD for code in _STEERING}
PLAIN_WIDTH = 100  # of text that is not wrapped by a terminal


def printable(text: str) -> str:
    """A text that others wrote, without characters that steer a terminal: a picture of each stands in its place."""
    return text if text.isprintable() else text.translate(_PICTURES)


class PipedConsole(Console):
    """A console that lets a closed pipe be told to its caller."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


@dataclass(frozen=True, slots=True)
class Terminal:
    out: Console
    err: Console

    def note(self, text: str | Text, style: str = "") -> None:
        """A line for the person at the terminal."""
        self.err.print(text, style=style, soft_wrap=True, markup=False, emoji=False, highlight=False)


def open_terminal(color: bool | None = None) -> Terminal:
    """Consoles on stdout and stderr. `color` None means: when it is a terminal, and NO_COLOR is not set."""
    return Terminal(_console(sys.stdout, color), _console(sys.stderr, color))


def _console(file: TextIO, color: bool | None) -> Console:
    if color is None:
        return PipedConsole(file=file, emoji=False, highlight=False)
    if color:
        return PipedConsole(file=file, emoji=False, highlight=False, force_terminal=True, color_system="256")
    return PipedConsole(file=file, emoji=False, highlight=False, no_color=True, color_system=None)
