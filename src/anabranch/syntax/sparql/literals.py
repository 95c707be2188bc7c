"""Strings, numbers, names, durations and instants of the SPARQL family, from their text.

Invariant: a literal that cannot be parsed raises `LiteralProblem` in the user's words; nothing is guessed.
"""

from __future__ import annotations

import re
from fractions import Fraction

from anabranch.errors import EvaluationError, closest
from anabranch.model.instants import parse_instant
from anabranch.model.temporal import Duration, parse_duration
from anabranch.model.terms import XSD_DECIMAL, XSD_DOUBLE, XSD_INTEGER, Literal
from anabranch.syntax.common import LiteralProblem

_ESCAPES = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", "\\": "\\", '"': '"', "'": "'"}
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", re.DOTALL)
_CODE_POINT = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8})")
_NO_IRI_CHARACTER = re.compile(r'[<>"{}|^`\\\x00-\x20]')
_LENGTH = re.compile(r"(?P<amount>[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>[^\W\d_]+)")
_UNITS: dict[str, Duration] = {}
for _unit, _names in (
    (Duration(nanoseconds=1_000_000), ("ms", "msec", "msecs", "millis", "millisecond", "milliseconds")),
    (Duration(seconds=1), ("s", "sec", "secs", "second", "seconds")),
    (Duration(seconds=60), ("m", "min", "mins", "minute", "minutes")),
    (Duration(seconds=3600), ("h", "hour", "hours")),
    (Duration(days=1), ("d", "day", "days")),
):
    _UNITS |= dict.fromkeys(_names, _unit)
_UNITS_HINT = "units are ms, s, m, h and d (10s, 5m, 24 hours); ISO 8601 goes too: PT10S, P1D"


def _problem(message: str, hint: str = "") -> LiteralProblem:
    return LiteralProblem("SPQ-004", message, hint)


def _character(escape: str) -> str:
    code_point = int(escape[1:], 16)
    if code_point > 0x10FFFF or 0xD800 <= code_point <= 0xDFFF:
        raise _problem(
            f"`\\{escape}` is no Unicode character",
            "characters beyond U+FFFF are one \\UXXXXXXXX, not a pair of surrogates",
        )
    return chr(code_point)


def read_string(text: str) -> str:
    """The value of a string with its quotes, one or three on each side."""

    def unescape(match: re.Match[str]) -> str:
        escape = match.group(1)
        if escape in _ESCAPES:
            return _ESCAPES[escape]
        if escape[0] in "uU" and len(escape) > 1:
            return _character(escape)
        raise _problem(
            f"`\\{escape}` is no escape in a string",
            "a backslash is written \\\\; escapes are \\t \\b \\n \\r \\f \\\\ \\\" \\' \\uXXXX \\UXXXXXXXX",
        )

    quotes = 3 if text[:3] in ('"""', "'''") and len(text) >= 6 else 1
    body = text[quotes:-quotes]
    return _ESCAPE.sub(unescape, body) if "\\" in body else body


def read_iri_reference(text: str) -> str:
    """Return the text between `<` and `>`."""
    body = text[1:-1]
    if "\\" not in body:
        return body
    value = _CODE_POINT.sub(lambda match: _character(match.group(1)), body)
    wrong = _NO_IRI_CHARACTER.search(value)
    if wrong is not None:
        raise _problem(f"an IRI cannot hold the character U+{ord(wrong.group()):04X}", "percent-encode it: %20")
    return value


def read_local_name(text: str) -> str:
    """The local part of a prefixed name: backslashes go, percent escapes stay."""
    return re.sub(r"\\(.)", r"\1", text) if "\\" in text else text


def read_whole(text: str) -> int:
    """A whole number that fits in 64 bits."""
    number = int(text) if len(text.lstrip("0")) <= 19 else 2**63
    if number >= 2**63:
        raise _problem("this number is too large", f"whole numbers go up to {2**63 - 1}")
    return number


def read_number(text: str) -> Literal:
    if "e" in text or "E" in text:
        return Literal(text, XSD_DOUBLE)
    return Literal(text, XSD_DECIMAL if "." in text else XSD_INTEGER)


def read_duration(text: str) -> Duration:
    """`10m`, `24 hours` or an ISO 8601 duration; above zero."""
    match = _LENGTH.fullmatch(text)
    if match is None:
        try:
            duration = parse_duration(text.upper())
        except (EvaluationError, ValueError) as error:
            raise _problem(f"`{text}` is no length of time", _UNITS_HINT) from error
    else:
        unit = _UNITS.get(match["unit"].lower())
        if unit is None:
            near = closest(match["unit"], _UNITS)
            hint = f"did you mean `{near[0]}`?  " if near else ""
            raise _problem(f"there is no unit of time `{match['unit']}`", hint + _UNITS_HINT)
        try:
            amount = Fraction(match["amount"])
            duration = Duration.approximate(
                days=unit.days * amount, seconds=unit.seconds * amount, nanoseconds=unit.nanoseconds * amount
            )
        except (EvaluationError, ValueError) as error:
            raise _problem("this time is too long", _UNITS_HINT) from error
    if (duration.months, duration.days, duration.time_nanos) <= (0, 0, 0):
        raise _problem("a length of time is more than nothing", _UNITS_HINT)
    return duration


def read_instant(text: str) -> int:
    try:
        return parse_instant(text)
    except (EvaluationError, ValueError) as error:
        raise _problem(f"`{text}` is no instant", "write an ISO 8601 date and time: 2026-01-31T12:00:00Z") from error
