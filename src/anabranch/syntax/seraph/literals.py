"""Literals of Seraph: numbers, strings, names, instants and durations, from their text.

Invariant: a literal that cannot be read raises `LiteralProblem` with what is wrong in the user's words; nothing
is guessed.
"""

from __future__ import annotations

import math
import re

from anabranch.errors import EvaluationError
from anabranch.model.instants import parse_instant
from anabranch.model.temporal import Duration, parse_duration
from anabranch.syntax.common import LiteralProblem

INTEGER_MAX = 2**63 - 1
INTEGER_MIN = -(2**63)

_ESCAPES = {"\\": "\\", "'": "'", '"': '"', "`": "`", "/": "/"}
_ESCAPES |= {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_HALF = re.compile("[\ud800-\udfff]")


def read_integer(text: str) -> int:
    """The value of a decimal, 0x or 0o literal; the range is checked once its sign is known."""
    lowered = text.lower()
    if lowered.startswith("0x"):
        return int(lowered[2:], 16)
    if lowered.startswith("0o"):
        return int(lowered[2:], 8)
    return int(lowered)


def check_integer(value: int) -> None:
    if not INTEGER_MIN <= value <= INTEGER_MAX:
        raise LiteralProblem(
            "SER-003",
            "this integer does not fit in 64 bits",
            f"integers go from {INTEGER_MIN} to {INTEGER_MAX}; write a float (1.0e20) for larger ones",
        )


def read_float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise LiteralProblem("SER-003", "this number is too large for a float", "floats go up to about 1.797e308")
    return value


def read_string(text: str) -> str:
    def unescape(match: re.Match[str]) -> str:
        escape = match.group(1)
        if escape[0] in "uU" and len(escape) > 1:
            code_point = int(escape[1:], 16)
            if code_point > 0x10FFFF:
                raise LiteralProblem("SER-004", f"`\\{escape}` is no Unicode character")
            return chr(code_point)
        if escape in _ESCAPES:
            return _ESCAPES[escape]
        raise LiteralProblem(
            "SER-004",
            f"`\\{escape}` is no escape in a string",
            "write \\\\ for a backslash; known escapes are \\\\ \\' \\\" \\b \\f \\n \\r \\t \\uXXXX",
        )

    return _whole(_ESCAPE.sub(unescape, text[1:-1]))


def _whole(text: str) -> str:
    """Join the two halves of a surrogate pair into one character, as in Java; a single half is refused."""
    if _HALF.search(text) is None:
        return text
    try:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        hint = "characters beyond \\uFFFF are written \\UXXXXXXXX, or as a pair of surrogates"
        raise LiteralProblem("SER-004", "half of a surrogate pair is no Unicode character", hint) from None


def read_name(text: str) -> str:
    if text.startswith("`"):
        return text[1:-1].replace("``", "`")
    if text.startswith("<"):
        return text[1:-1].strip()
    return text


def read_instant(text: str) -> int:
    try:
        return parse_instant(text)
    except (EvaluationError, ValueError) as error:
        raise LiteralProblem(
            "SER-005", f"`{text}` is no instant", "write an ISO 8601 datetime such as 2022-10-14T14:45Z"
        ) from error


def read_duration(text: str) -> Duration:
    try:
        duration = parse_duration(text.upper())
    except (EvaluationError, ValueError) as error:
        raise LiteralProblem(
            "SER-005", f"`{text}` is no duration", "write an ISO 8601 duration: PT30S, PT5M, PT1H, P1D, P1M"
        ) from error
    return duration
