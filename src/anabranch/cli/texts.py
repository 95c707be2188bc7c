"""Query texts: their kind, and the selection of queries from a file.

Invariant: in a selected text everything that remains keeps its line and column.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import typer

from anabranch.algebra.ingestion import Ingestion
from anabranch.algebra.operators import Operator, Registration
from anabranch.errors import Span, closest
from anabranch.syntax.languages import QueryText

_BLANK_OR_COMMENT = re.compile(r"(\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_SCRIPT = re.compile(r"(REGISTER|LOAD\s+STREAM)\b", re.IGNORECASE)


def is_script(text: str, file_name: str) -> bool:
    """Return whether the text registers queries or loads streams; else it is a plain query."""
    from anabranch.syntax.languages import language_of

    match language_of(text, file_name):
        case "seraph":
            start = _BLANK_OR_COMMENT.match(text)
            return _SCRIPT.match(text, start.end() if start else 0) is not None
        case "sparql":
            return False
    return True


def statements_of(text: str, file_name: str) -> tuple[Registration | Ingestion, ...] | tuple[Operator]:
    """Return the checked statements of a text, or its one plain query."""
    from anabranch.syntax import languages

    if is_script(text, file_name):
        return languages.statements(text, file_name)
    return (languages.plan(text, file_name).plan,)


def queries_of(text: str, file_name: str) -> list[Registration | Operator]:
    """Return the checked queries of a text: its registrations, or its one plain query."""
    return [one for one in statements_of(text, file_name) if not isinstance(one, Ingestion)]


def chosen(texts: Sequence[QueryText], names: Sequence[str]) -> list[QueryText]:
    """Return the texts with all registrations blanked out except the named ones; unchanged when `names` is empty."""
    if not names:
        return list(texts)
    registered = [_registered(text) for text in texts]
    known = [name for found in registered for name, _ in found]
    for name in names:
        if name not in known:
            near = closest(name, known, limit=1)
            guess = f"did you mean {near[0]}?  " if near else ""
            files = ", ".join(text.file_name for text in texts)
            message = f"{files} has no query `{name}`; {guess}It has {', '.join(known) or 'none'}."
            raise typer.BadParameter(message, param_hint="--query")
    picked = []
    for (text, file_name), found in zip(texts, registered, strict=True):
        for name, span in found:
            if name not in names:
                text = text[: span.start] + re.sub(r"[^\n]", " ", text[span.start : span.end]) + text[span.end :]
        # A file with all queries blanked out would be refused as empty.
        if not found or any(name in names for name, _ in found):
            picked.append(QueryText(text, file_name))
    return picked


def _registered(text: QueryText) -> list[tuple[str, Span]]:
    """Return the names of a text's queries, and the span of each."""
    from anabranch.syntax.languages import language_of

    language = language_of(*text)
    if language == "seraph":
        from anabranch.syntax import seraph
        from anabranch.syntax.seraph.tree import RegisterTree

        statements = seraph.parse_script(*text).statements
        return [(one.name.text, one.span) for one in statements if isinstance(one, RegisterTree)]
    from anabranch.syntax.sparql.parser import parse_script

    found = parse_script(text.text, language, text.file_name).statements
    return [
        (one.name.text, Span(_register_at(text.text, one.name.span), one.span.end))
        for one in found
        if one.name is not None and one.span is not None and one.name.span is not None
    ]


def _register_at(text: str, name: Span) -> int:
    """Return the offset of a statement's REGISTER; a prologue before it also applies to later statements."""
    return max(found.start() for found in re.finditer(r"\bREGISTER\b", text[: name.start], re.IGNORECASE))
