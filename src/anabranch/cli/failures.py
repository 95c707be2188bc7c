"""The display of failures and their exit codes.

Invariant: a mistake of the user never shows a traceback; a defect of Anabranch is named as such, with a request to
report it.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Callable
from typing import NoReturn, ParamSpec

import typer
from rich.text import Text

from anabranch.cli.console import Terminal, open_terminal, printable
from anabranch.cli.signals import INTERRUPTED, terminable
from anabranch.errors import (
    AnabranchError,
    EngineError,
    EvaluationError,
    InternalError,
    QueryError,
    StreamError,
)
from anabranch.sinks.durable import MAKE_ROOM, NO_ROOM

OK = 0
FAILED = 1
USAGE = 2
REFUSED = 3
NO_INPUT = 4
SET_ASIDE = 5

P = ParamSpec("P")

"""Errors that only writing gives."""

_HEAD = re.compile(r"^(error|warning)(\[[^\]]+\])?:", re.MULTILINE)


class InputError(AnabranchError):
    """An input that does not exist or cannot be read."""


def guarded(command: Callable[P, None]) -> Callable[P, None]:
    """Wrap a command: its failures are drawn on stderr and turned into exit codes."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        color = kwargs.get("color")
        terminal = open_terminal(color if isinstance(color, bool) else None)
        try:
            with terminable():
                command(*args, **kwargs)
        except BrokenPipeError:
            _leave_quietly()
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except AnabranchError as error:
            draw_error(error, terminal)
            raise typer.Exit(exit_code(error)) from None
        except OSError as error:
            failure = _from_system(error)
            draw_error(failure, terminal)
            raise typer.Exit(exit_code(failure)) from None
        except (typer.Exit, typer.Abort, typer.BadParameter, SystemExit):
            raise
        except Exception as error:
            if os.environ.get("ANABRANCH_TRACEBACK") or _is_usage(error):
                raise
            draw_error(InternalError(_place(error)), terminal)
            raise typer.Exit(FAILED) from None

    return run


def _from_system(error: OSError) -> AnabranchError:
    """Translate an error of the operating system: a full disk for output, else an input that does not exist."""
    reason = error.strerror or str(error)
    if error.errno in NO_ROOM:
        place = f" {error.filename}" if error.filename else ""
        return EngineError(f"cannot write{place}: {reason[:1].lower()}{reason[1:]}\nhint: {MAKE_ROOM}")
    return InputError(f"{error.filename}: {reason}" if error.filename else reason)


def exit_code(error: AnabranchError) -> int:
    match error:
        case EvaluationError():
            return FAILED
        case QueryError():
            return REFUSED
        case InputError() | StreamError():
            return NO_INPUT
        case _:
            return FAILED


def draw_error(error: AnabranchError, terminal: Terminal) -> None:
    match error:
        case QueryError():
            terminal.note(colored(error.render()))
        case InternalError():
            terminal.note(
                colored(
                    f"error: a defect in Anabranch, not in your query: {error}\n"
                    "hint: please report it with query and command; ANABRANCH_TRACEBACK=1 shows where it happened"
                )
            )
        case _:
            message, _, hint = str(error).partition("\nhint: ")
            terminal.note(colored(f"error: {message}" + (f"\nhint: {hint}" if hint else "")))


def colored(drawn: str) -> Text:
    """Return a drawn diagnostic with colours; its characters are unchanged."""
    drawn = printable(drawn)
    text = Text(drawn)
    for match in _HEAD.finditer(drawn):
        text.stylize("bold red" if match[1] == "error" else "bold yellow", match.start(), match.end())
        text.stylize("bold", match.end(), _line_end(drawn, match.end()))
    for match in re.finditer(r"^  \S.*:\d+:\d+$", drawn, re.MULTILINE):
        text.stylize("cyan", match.start(), match.end())
    for match in re.finditer(r"^ +\d* *\|", drawn, re.MULTILINE):
        text.stylize("dim", match.start(), match.end())
    for match in re.finditer(r"^ +\|\s*(\^+.*)$", drawn, re.MULTILINE):
        text.stylize("yellow" if drawn.startswith("warning") else "red", match.start(1), match.end(1))
    for match in re.finditer(r"^hint:", drawn, re.MULTILINE):
        text.stylize("bold green", match.start(), match.end())
    return text


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end


def _is_usage(error: Exception) -> bool:
    """Return whether an exception is one of the command line parser, which draws it itself."""
    return hasattr(error, "exit_code")


def _place(error: Exception) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = "" if trace is None else f" ({os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno})"
    return f"{type(error).__name__}: {error}{where}"


def _leave_quietly() -> NoReturn:
    """End without an error because the reader of the output has gone, as `head` does."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  stays open until the process ends
    raise typer.Exit(OK)
