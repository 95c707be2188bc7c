"""Values as readable text: numbers with grouped digits, IRIs by their prefixes, times without their common part.

Invariant: the full form of a shortened value is available; a cell is its text, or its text with the full one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias

CellText: TypeAlias = "str | tuple[str, str] | None"

_IRI = re.compile(r"<?([A-Za-z][A-Za-z0-9+.-]*:(?://)?[^\s<>\"]+)>?")
_BRACKETED = re.compile(r"<([A-Za-z][A-Za-z0-9+.-]*:[^<>\s\"]+)>")
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)")
_HALF = re.compile("[\ud800-\udfff]")
_LONG = 120
_WHOLE = 10**15  # from here on a number has more digits than are read
COMMON_PREFIXES: Mapping[str, str] = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def numeric_columns(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> frozenset[str]:
    """Return the columns that hold numbers and nothing else, at least one."""
    found = set()
    for index, name in enumerate(columns):
        held = [row[index] for row in rows if row[index] is not None]
        if held and all(is_number(value) for value in held):
            found.add(name)
    return frozenset(found)


def fractional_columns(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> frozenset[str]:
    """Return the columns that hold a number which is not whole."""
    return frozenset(
        name
        for index, name in enumerate(columns)
        if any(isinstance(row[index], float) and not row[index].is_integer() for row in rows)
    )


def cell(value: Any, prefixes: Mapping[str, str], *, fractional: bool = False) -> CellText:
    """Format a value as a cell of a table; in a `fractional` column whole numbers have decimals too."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case int() | float():
            if isinstance(value, float) and value.is_integer() and abs(value) < _WHOLE and not fractional:
                value = int(value)
            text = number(float(value)) if fractional and abs(value) < _WHOLE else number(value)
            return text if text == str(value) else (text, str(value))
        case str():
            return _text(value, prefixes)
    full = json.dumps(value, ensure_ascii=False, default=str)
    short = _cut(_shape(value, prefixes))
    return short if short == full else (short, full)


def plain(value: Any, prefixes: Mapping[str, str]) -> str:
    """Return the short text of a value."""
    shown = cell(value, prefixes)
    return "–" if shown is None else shown if isinstance(shown, str) else shown[0]


def number(value: int | float) -> str:
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    if value != value or value in (float("inf"), float("-inf")):
        return str(value)
    if abs(value) >= _WHOLE:
        return f"{value:.6g}"
    return f"{value:,.2f}" if abs(value) >= 0.01 or value == 0 else f"{value:.3g}"


def short_iri(iri: str, prefixes: Mapping[str, str]) -> str:
    """Shorten an IRI by the longest prefix that fits, else to its last part."""
    fitting = [
        (len(base), name, base) for name, base in prefixes.items() if iri.startswith(base) and len(iri) > len(base)
    ]
    if fitting:
        _, name, base = max(fitting)
        return f"{name}:{iri[len(base) :]}"
    parts = re.split(r"[/#]", iri.rstrip("/#"))
    tail = "/".join(parts[-2:]) if parts[-1].isdigit() and len(parts) > 4 else parts[-1]
    return tail or iri


def short_text(text: str, prefixes: Mapping[str, str]) -> str:
    """Shorten the IRIs within a text."""
    return _BRACKETED.sub(lambda found: short_iri(found[1], prefixes), text) if "<" in text else text


def _text(value: str, prefixes: Mapping[str, str]) -> CellText:
    found = _IRI.fullmatch(value)
    if found is not None and ("://" in value or value.startswith("<")):
        return short_iri(found[1], prefixes), found[1]
    if _INSTANT.fullmatch(value):
        short = clock(value)
        return short if short == value else (short, value)
    short = _cut(short_text(value, prefixes))
    return value if short == value else (short, value)


def _cut(text: str) -> str:
    return text if len(text) <= _LONG else text[:_LONG] + "…"


def _shape(value: Any, prefixes: Mapping[str, str]) -> str:
    """Format lists and maps; nodes and relationships by their labels and identifying properties."""
    match value:
        case {"labels": list(labels), "properties": dict(held)}:
            named = _named(":".join(str(one) for one in labels), held, prefixes)
            return named or f"node {plain(value.get('id'), prefixes)}"
        case {"type": str(kind), "properties": dict(held)}:
            return _named(kind, held, prefixes)
        case {"nodes": list(nodes), "relationships": list()}:
            return " → ".join(plain(one, prefixes) for one in nodes)
        case dict():
            return "{" + ", ".join(f"{key}: {_within(one, prefixes)}" for key, one in value.items()) + "}"
        case list() | tuple():
            return ", ".join(_within(one, prefixes) for one in value) or "[]"
    return str(value)


def _within(value: Any, prefixes: Mapping[str, str]) -> str:
    """Format a part of a list or map; an inner list shows its brackets."""
    text = plain(value, prefixes)
    return f"[{text}]" if isinstance(value, list | tuple) and value else text


def _named(kind: str, held: Mapping[str, Any], prefixes: Mapping[str, str]) -> str:
    name = next((held[key] for key in ("name", "title", "id") if held.get(key) is not None), None)
    return kind if name is None else f"{kind} {plain(name, prefixes)}".strip()


# --- on the way to the browser ----------------------------------------------------------------------------------------


def sendable(value: Any) -> Any:
    """Return the value in a form that JSON can carry: lone surrogates are replaced, numbers beyond 64 bits become
    floats."""
    match value:
        case str():
            return _HALF.sub("\ufffd", value)
        case int() if value.bit_length() > 63:
            return float(value) if value.bit_length() < 1024 else None
        case Mapping():
            return {sendable(key): sendable(one) for key, one in value.items()}
        case list() | tuple():
            return [sendable(one) for one in value]
    return value


# --- times ------------------------------------------------------------------------------------------------------------


def micros(text: str) -> int:
    """Parse an instant of a result into UTC microseconds."""
    at = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return round((at - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1_000_000)


def duration(seconds: float) -> str:
    """Format a duration in seconds, minutes or hours, whichever is most readable."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def clock(at: str | int | None, *, day: bool = True) -> str:
    """Format an instant as `2022-10-14 14:45:00`, with fractions of a second only if there are any."""
    if at is None:
        return "–"
    try:
        moment = datetime.fromtimestamp((micros(at) if isinstance(at, str) else at) / 1_000_000, UTC)
    except (ValueError, OverflowError, OSError):
        return str(at)
    text = f"{moment:%Y-%m-%d %H:%M:%S}" if day else f"{moment:%H:%M:%S}"
    return text + f".{moment.microsecond // 1000:03}" if moment.microsecond >= 1000 else text
