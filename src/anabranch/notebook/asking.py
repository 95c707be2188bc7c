"""The options in the first line of a cell.

Invariant: a line that cannot be parsed is refused in one sentence, before anything runs.
"""

from __future__ import annotations

import argparse
import re
import shlex
from dataclasses import dataclass, field
from typing import Literal, NoReturn, cast

from anabranch.errors import EngineError
from anabranch.model.instants import MICROS_PER_DAY, parse_instant
from anabranch.model.temporal import parse_duration

_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_SHORT = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|min|m|h|)")


@dataclass(frozen=True, slots=True)
class CellOptions:
    """The options of a cell. `seconds` is how long the cell runs by the wall clock, `until` the instant of the stream
    at which it ends."""

    streams: tuple[tuple[str, str], ...] = ()
    graphs: tuple[tuple[str, str], ...] = ()
    parameters: dict[str, str] = field(default_factory=dict)
    engine: Literal["local", "spark"] = "local"
    seconds: float | None = None
    until: int | None = None
    name: str | None = None
    into: str | None = None
    rows: int = 20
    keep: int | None = None


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise EngineError(f"{self.prog}: {message}\nhint: {self.format_usage().removeprefix('usage: ').strip()}")


def parse_line(line: str, magic: str = "%%seraph") -> CellOptions:
    parser = _Parser(prog=magic, add_help=False, allow_abbrev=False)
    parser.add_argument("--stream", "-s", action="append", default=[], metavar="NAME=ADDRESS")
    parser.add_argument("--graph", "-g", action="append", default=[], metavar="NAME=FILE")
    parser.add_argument("--param", "-p", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--engine", choices=("local", "spark"), default="local")
    parser.add_argument("--for", dest="seconds", type=_seconds, metavar="10s")
    parser.add_argument("--until", type=_instant, metavar="INSTANT")
    parser.add_argument("--name", metavar="QUERY")
    parser.add_argument("--into", metavar="VARIABLE")
    parser.add_argument("--rows", type=_count, default=20, metavar="N")
    parser.add_argument("--keep", type=_count, metavar="N")
    try:
        found = parser.parse_args(shlex.split(line))
    except ValueError as error:
        raise EngineError(f"{magic}: {error}: {line}") from None
    if found.into is not None and not found.into.isidentifier():
        raise EngineError(f"{magic}: --into {found.into}: a variable's name is wanted")
    return CellOptions(
        tuple(_pair(one, magic, "--stream") for one in found.stream),
        tuple(_pair(one, magic, "--graph") for one in found.graph),
        dict(_pair(one, magic, "--param") for one in found.param),
        cast(Literal["local", "spark"], found.engine),
        found.seconds,
        found.until,
        found.name,
        found.into,
        found.rows,
        found.keep,
    )


def _pair(text: str, magic: str, option: str) -> tuple[str, str]:
    """Parse `name=value`; a name may be an IRI, in <> if it contains a `=`."""
    found = re.fullmatch(r"<([^>]+)>=(.+)|([^=]+)=(.*)", text, re.DOTALL)
    if found is None or not (found[2] or found[4]):
        raise EngineError(f"{magic}: {option} {text}: write it as name=..., for example rides=events.ndjson")
    return (found[1], found[2]) if found[1] is not None else (found[3], found[4])


def _seconds(text: str) -> float:
    """Parse `10s`, `2m`, `PT10S`, or a number of seconds."""
    short = _SHORT.fullmatch(text)
    if short is not None:
        return float(short[1]) * _UNITS[short[2]]
    try:
        duration = parse_duration(text)
    except Exception:
        raise argparse.ArgumentTypeError(f"`{text}` is no time; write it like 10s, 2m or PT10S") from None
    return (duration.days * MICROS_PER_DAY + duration.time_nanos / 1000) / 1e6


def _instant(text: str) -> int:
    try:
        return parse_instant(text)
    except Exception:
        raise argparse.ArgumentTypeError(f"`{text}` is no instant; write it like 2022-10-14T15:00Z") from None


def _count(text: str) -> int:
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"`{text}` is no number of rows")
    return int(text)
