"""Parsing of values that a visitor types as the page shows them: shortened, grouped, or with a prefix.

Invariant: a text that is the shown form of exactly one value means that value; if there are several, the visitor
chooses.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from anabranch.insight.recording import Recording
from anabranch.model.terms import Iri
from anabranch.ui.values import cell, short_iri


def meant(text: str, seen: Iterable[Any], prefixes: Mapping[str, str]) -> list[Any]:
    """Return the values, of those seen, that are shown as this text, or equal it."""
    text = text.strip()
    found: dict[str, Any] = {}
    for value in seen:
        if text in _forms(value, prefixes):
            found.setdefault(repr(value), value)
    return list(found.values())


def _forms(value: Any, prefixes: Mapping[str, str]) -> set[str]:
    forms = set() if value is None else {str(value)}
    for shown in (cell(value, prefixes), cell(value, prefixes, fractional=True)):
        forms |= set() if shown is None else {shown} if isinstance(shown, str) else set(shown)
    return forms


def read(text: str, prefixes: Mapping[str, str]) -> Any:
    """Parse a value that is written in full: an IRI by a prefix or in brackets; numbers, true, false and quoted texts
    as in JSON; anything else is text."""
    text = text.strip()
    if text.startswith("<") and text.endswith(">"):
        return text[1:-1]
    name, colon, rest = text.partition(":")
    if colon and name in prefixes and not rest.startswith("//"):
        return prefixes[name] + rest
    try:
        return json.loads(text)
    except ValueError:
        return text


def iris(recording: Recording, text: str, prefixes: Mapping[str, str]) -> list[str]:
    """Return the IRIs of a recording that are shown as this text."""
    found: dict[str, None] = {}
    for events in recording.events.values():
        for event in events:
            for triple in event.triples:
                for term in triple[:3]:
                    if isinstance(term, Iri) and text in term.value and short_iri(term.value, prefixes) == text:
                        found[term.value] = None
    return list(found)


def has_row(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], values: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """Return the first row that has these values."""
    for row in rows:
        held = dict(zip(columns, row, strict=True))
        if all(held[name] == value for name, value in values.items()):
            return held
    return None
