"""The two consoles of a command, with or without colour.

Invariant: answers go to stdout and everything else to stderr, so that a pipe carries answers only. The content of a
stream cannot send control sequences to the terminal.
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
    """Return an untrusted text in which every control character is replaced by a visible symbol."""
    return text if text.isprintable() else text.translate(_PICTURES)


class PipedConsole(Console):
    """A console that raises BrokenPipeError to its caller when the pipe is closed."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


@dataclass(frozen=True, slots=True)
class Terminal:
    out: Console
    err: Console

    def note(self, text: str | Text, style: str = "") -> None:
        """Print a line on stderr."""
        self.err.print(text, style=style, soft_wrap=True, markup=False, emoji=False, highlight=False)


def open_terminal(color: bool | None = None) -> Terminal:
    """Open consoles on stdout and stderr. `color` None means colour if the output is a terminal and NO_COLOR is not
    set."""
    return Terminal(_console(sys.stdout, color), _console(sys.stderr, color))


def _console(file: TextIO, color: bool | None) -> Console:
    if color is None:
        return PipedConsole(file=file, emoji=False, highlight=False)
    if color:
        return PipedConsole(file=file, emoji=False, highlight=False, force_terminal=True, color_system="256")
    return PipedConsole(file=file, emoji=False, highlight=False, no_color=True, color_system=None)
