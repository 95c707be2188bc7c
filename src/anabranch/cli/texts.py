"""Query texts: what kind they are, and picking queries out of a file.

Invariant: a picked text has the same line and column for everything that is left in it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import typer

from anabranch.algebra.ingestion import Ingestion
from anabranch.algebra.operators import Operator, Registration
from anabranch.errors import closest

_BLANK_OR_COMMENT = re.compile(r"(\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_SCRIPT = re.compile(r"(REGISTER|LOAD\s+STREAM)\b", re.IGNORECASE)


def is_script(text: str) -> bool:
    """Whether the text registers queries or loads streams; else it is a plain query."""
    match = _BLANK_OR_COMMENT.match(text)
    return _SCRIPT.match(text, match.end() if match else 0) is not None


def statements_of(text: str, file_name: str) -> tuple[Registration | Ingestion, ...] | tuple[Operator]:
    """The checked statements of a text, or its one plain query."""
    from anabranch.syntax import seraph

    return seraph.statements(text, file_name) if is_script(text) else (seraph.plan(text, file_name),)


def queries_of(text: str, file_name: str) -> list[Registration | Operator]:
    """The checked queries of a text: its registrations, or its one plain query."""
    return [one for one in statements_of(text, file_name) if not isinstance(one, Ingestion)]


def chosen(text: str, file_name: str, names: Sequence[str]) -> str:
    """The text with all registrations blanked out but those named; all of it when none is named."""
    if not names:
        return text
    from anabranch.syntax.seraph import parse_script
    from anabranch.syntax.seraph.tree import RegisterTree

    registered = [one for one in parse_script(text, file_name).statements if isinstance(one, RegisterTree)]
    known = [one.name.text for one in registered]
    for name in names:
        if name not in known:
            near = closest(name, known, limit=1)
            guess = f"did you mean {near[0]}?  " if near else ""
            message = f"{file_name} has no query `{name}`; {guess}It has {', '.join(known) or 'none'}."
            raise typer.BadParameter(message, param_hint="--query")
    for one in registered:
        if one.name.text not in names:
            blanked = re.sub(r"[^\n]", " ", text[one.span.start : one.span.end])
            text = text[: one.span.start] + blanked + text[one.span.end :]
    return text
