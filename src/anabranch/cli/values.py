"""Values and instants as text for people and spreadsheets.

Invariant: a cell is one text without added line breaks; the JSON output never passes through here.
"""

from __future__ import annotations

from rich.text import Text

from anabranch.cli.console import printable
from anabranch.formats.answers import csv_cell as csv_cell
from anabranch.formats.values import cypher_text
from anabranch.model.instants import format_instant
from anabranch.model.spelling import Terms
from anabranch.model.temporal import TEMPORAL_TYPES
from anabranch.model.terms import XSD_DECIMAL, XSD_DOUBLE, XSD_FLOAT, XSD_INTEGER, XSD_STRING, Blank, Iri, Literal
from anabranch.model.values import Value

_NUMBERS = (XSD_INTEGER, XSD_DECIMAL, XSD_DOUBLE, XSD_FLOAT)
_BRACKETS = {"trailing": ("(", "]"), "right-open": ("[", ")"), "formal": ("[", ")")}


_PLAIN_TERMS = Terms()


def cell(value: Value, terms: Terms = _PLAIN_TERMS) -> Text:
    """Format a value for a table: strings bare, IRIs with their prefixes, null faint."""
    if value is None:
        return Text("null", style="dim")
    if isinstance(value, Literal):
        if value.datatype == XSD_STRING:
            return Text(printable(value.lexical))
        return Text(printable(terms.term(value)), style="cyan" if number_text(value) else "")
    if isinstance(value, Iri | Blank):
        return Text(printable(terms.term(value)), style="blue" if isinstance(value, Iri) else "dim")
    if isinstance(value, str):
        return Text(printable(value))
    if isinstance(value, bool):
        return Text("true" if value else "false", style="magenta")
    if isinstance(value, int | float):
        return Text(cypher_text(value), style="cyan")
    if isinstance(value, TEMPORAL_TYPES):
        return Text(str(value))
    return Text(printable(cypher_text(value)))


def number_text(value: Value) -> bool:
    """Return whether a literal is a number, so that it is aligned to the right."""
    return isinstance(value, Literal) and value.datatype in _NUMBERS


def day(micros: int) -> str:
    return format_instant(micros)[:-1].partition("T")[0]


def clock(micros: int, today: str = "") -> str:
    """Format the time of day without needless seconds; with its date when that is not today's."""
    date, _, time = format_instant(micros)[:-1].partition("T")
    short = time[:-3] if len(time) == 8 and time.endswith(":00") else time
    return short if date == today else f"{date} {short}"


def window(policy: str, win_start: int, win_end: int, today: str = "") -> str:
    """Format the bounds of a window, with the brackets of its policy: `(14:15, 15:15]`."""
    opening, closing = _BRACKETS[policy]
    return f"{opening}{clock(win_start, today)}, {clock(win_end, today)}{closing}"
