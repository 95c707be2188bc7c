"""Values and instants as a person or a spreadsheet reads them.

Invariant: a cell is one text without line breaks of its own making; the JSON output never passes through here.
"""

from __future__ import annotations

from rich.text import Text

from anabranch.formats.answers import csv_cell as csv_cell
from anabranch.formats.values import cypher_text
from anabranch.model.instants import format_instant
from anabranch.model.temporal import TEMPORAL_TYPES
from anabranch.model.values import Value

_BRACKETS = {"trailing": ("(", "]"), "right-open": ("[", ")"), "formal": ("[", ")")}


def cell(value: Value) -> Text:
    """A value in a table for people: strings bare, null faint."""
    if value is None:
        return Text("null", style="dim")
    if isinstance(value, str):
        return Text(value)
    if isinstance(value, bool):
        return Text("true" if value else "false", style="magenta")
    if isinstance(value, int | float):
        return Text(cypher_text(value), style="cyan")
    if isinstance(value, TEMPORAL_TYPES):
        return Text(str(value))
    return Text(cypher_text(value))


def day(micros: int) -> str:
    return format_instant(micros)[:-1].partition("T")[0]


def clock(micros: int, today: str = "") -> str:
    """The time of day without needless seconds; with its date when that is not today's."""
    date, _, time = format_instant(micros)[:-1].partition("T")
    short = time[:-3] if len(time) == 8 and time.endswith(":00") else time
    return short if date == today else f"{date} {short}"


def window(policy: str, win_start: int, win_end: int, today: str = "") -> str:
    """The bounds of a window, with the brackets of its policy: `(14:15, 15:15]`."""
    opening, closing = _BRACKETS[policy]
    return f"{opening}{clock(win_start, today)}, {clock(win_end, today)}{closing}"
