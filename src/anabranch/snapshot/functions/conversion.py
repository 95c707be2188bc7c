"""toString, toInteger, toFloat, toBoolean, and how numbers look as text.

Invariant: text that does not spell a value of the wanted kind gives null; a value that has no such form is refused.
"""

from __future__ import annotations

import math
import re

from anabranch.model.points import Point
from anabranch.model.temporal import Date, DateTime, Duration, LocalDateTime, LocalTime, Time
from anabranch.model.temporal.refusals import kind_of, wrong_kind
from anabranch.model.values import Value
from anabranch.snapshot.functions.support import INTEGER_MAX, INTEGER_MIN, in_range, strict

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_FLOAT = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_NAMED_FLOATS = {"NaN": math.nan, "Infinity": math.inf, "+Infinity": math.inf, "-Infinity": -math.inf}


def float_text(value: float) -> str:
    """A float as Cypher writes it: always with a fraction, in scientific notation when very large or small."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        shown = repr(value)
        return shown if "e" not in shown else f"{value:f}"
    digits, _, exponent = f"{value!r}".partition("e")
    if not exponent:
        return _scientific(digits)
    return f"{digits if '.' in digits else digits + '.0'}E{int(exponent)}"


def _scientific(digits: str) -> str:
    """Plain digits, moved behind the first one that counts."""
    sign, digits = ("-", digits[1:]) if digits.startswith("-") else ("", digits)
    whole, _, fraction = digits.partition(".")
    if whole.strip("0"):
        exponent = len(whole) - 1
        significant = (whole + fraction).rstrip("0")
    else:
        significant = fraction.lstrip("0")
        exponent = -(len(fraction) - len(significant)) - 1
        significant = significant.rstrip("0")
    return f"{sign}{significant[0]}.{significant[1:] or '0'}E{exponent}"


@strict
def to_string(value: Value) -> Value:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return float_text(value)
        case Date() | DateTime() | LocalDateTime() | LocalTime() | Time() | Duration() | Point():
            return str(value)
    raise wrong_kind(f"{kind_of(value)} has no text", "toString() takes numbers, booleans and temporal values")


@strict
def to_integer(value: Value) -> Value:
    match value:
        case bool():
            return int(value)
        case int():
            return value
        case float():
            return in_range(int(value)) if math.isfinite(value) else None
        case str():
            return _parsed_integer(value.strip())
    raise wrong_kind(f"{kind_of(value)} cannot become an integer", "toInteger() takes numbers, booleans and strings")


def _parsed_integer(digits: str) -> int | None:
    if _INTEGER.fullmatch(digits):
        whole = int(digits)
    elif _FLOAT.fullmatch(digits) and math.isfinite(float(digits)):
        whole = int(float(digits))
    else:
        return None
    return whole if INTEGER_MIN <= whole <= INTEGER_MAX else None


@strict
def to_float(value: Value) -> Value:
    match value:
        case int() | float() if not isinstance(value, bool):
            return float(value)
        case str():
            digits = value.strip()
            return float(digits) if _FLOAT.fullmatch(digits) else _NAMED_FLOATS.get(digits)
    raise wrong_kind(f"{kind_of(value)} cannot become a float", "toFloat() takes numbers and strings")


@strict
def to_boolean(value: Value) -> Value:
    match value:
        case bool():
            return value
        case int():
            return value != 0
        case str():
            return {"true": True, "false": False}.get(value.strip().lower())
    raise wrong_kind(f"{kind_of(value)} cannot become a boolean", "toBoolean() takes booleans, integers and strings")
