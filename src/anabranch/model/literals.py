"""RDF literals as values of a property graph, and values as literals.

Law: `value_of` of the one literal that `literals_of` gives is the value again, but for what XML Schema cannot say: a
region's name beside an offset, a duration with parts of both signs, a map or a point (they are text then).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping

from anabranch.errors import EvaluationError
from anabranch.model.points import Point
from anabranch.model.remembered import remembered
from anabranch.model.temporal import (
    Date,
    DateTime,
    Duration,
    LocalDateTime,
    LocalTime,
    Time,
    parse_date,
    parse_date_time,
    parse_duration,
    parse_local_date_time,
    parse_local_time,
    parse_time,
)
from anabranch.model.temporal.format import format_date, format_fraction, format_offset
from anabranch.model.terms import (
    FALSE,
    TRUE,
    XSD,
    XSD_BOOLEAN,
    XSD_DATE,
    XSD_DATE_TIME,
    XSD_DAY_TIME_DURATION,
    XSD_DECIMAL,
    XSD_DOUBLE,
    XSD_DURATION,
    XSD_FLOAT,
    XSD_INTEGER,
    XSD_STRING,
    XSD_TIME,
    Literal,
)
from anabranch.model.values import Value

INTEGER_TYPES = frozenset(
    f"{XSD}{name}"
    for name in (
        *("integer", "long", "int", "short", "byte", "nonNegativeInteger", "positiveInteger", "nonPositiveInteger"),
        *("negativeInteger", "unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte"),
    )
)
FLOAT_TYPES = frozenset((XSD_DECIMAL, XSD_DOUBLE, XSD_FLOAT))
_DURATIONS = frozenset((XSD_DURATION, XSD_DAY_TIME_DURATION, f"{XSD}yearMonthDuration"))
_DATE_TIMES = frozenset((XSD_DATE_TIME, f"{XSD}dateTimeStamp"))

_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_DOUBLE = re.compile(rf"{_DECIMAL.pattern}(?:[eE][+-]?[0-9]+)?")
_SPECIAL = {"INF": math.inf, "+INF": math.inf, "-INF": -math.inf, "NaN": math.nan}
_LONG_YEAR = re.compile(r"^(?=[0-9]{5,}-)")  # the model writes a plus before such a year, XML Schema does not
_ZONE = re.compile(r"(?:Z|[+-][0-9]{2}:[0-9]{2})$")


# --- literals as values -----------------------------------------------------------------------------------------------


@remembered(1 << 16)
def value_of(literal: Literal) -> Value:
    """The value of a literal; its text when the model has no such value or the text is none of its datatype."""
    lexical, datatype = literal.lexical.strip(), literal.datatype
    found: Value = None
    if datatype in INTEGER_TYPES or datatype in FLOAT_TYPES:
        found = number_of(lexical, datatype)
    elif datatype == XSD_BOOLEAN:
        found = {"true": True, "1": True, "false": False, "0": False}.get(lexical)
    elif datatype in _DATE_TIMES:
        found = _parsed(parse_date_time if _ZONE.search(lexical) else parse_local_date_time, lexical)
    elif datatype == XSD_TIME:
        found = _parsed(parse_time if _ZONE.search(lexical) else parse_local_time, lexical)
    elif datatype == XSD_DATE:
        found = _parsed(parse_date, _ZONE.sub("", lexical))
    elif datatype in _DURATIONS:
        found = _parsed(parse_duration, lexical)
    return literal.lexical if found is None else found


def number_of(lexical: str, datatype: str) -> int | float | None:
    """The number that a numeric literal is; integers beyond 64 bits are floats. None when it is none."""
    if datatype in INTEGER_TYPES:
        if not _INTEGER.fullmatch(lexical):
            return None
        if len(lexical) > 20:
            return float(lexical)
        number = int(lexical)
        return number if -(2**63) <= number < 2**63 else float(number)
    if datatype == XSD_DECIMAL:
        return float(lexical) if _DECIMAL.fullmatch(lexical) else None
    if lexical in _SPECIAL:
        return _SPECIAL[lexical]
    return float(lexical) if _DOUBLE.fullmatch(lexical) else None


def _parsed(parse: Callable[[str], Value], lexical: str) -> Value:
    try:
        return parse(_LONG_YEAR.sub("+", lexical))
    except EvaluationError:
        return None


# --- values as literals -----------------------------------------------------------------------------------------------


def literals_of(value: Value) -> Iterator[Literal]:
    """The literals of a property: one for each item of a list, none for null."""
    for item in value if isinstance(value, list | tuple) else (value,):
        if item is not None:
            yield literal_of(item)


def literal_of(value: Value) -> Literal:
    """The literal of a value; what XML Schema has no type for is JSON text."""
    match value:
        case bool():
            return TRUE if value else FALSE
        case int():
            return Literal(str(value), XSD_INTEGER)
        case float():
            return Literal(_double(value), XSD_DOUBLE)
        case str():
            return Literal(value)
        case Date():
            return Literal(_day(value), XSD_DATE)
        case LocalTime():
            return Literal(_clock(value), XSD_TIME)
        case Time():
            return Literal(f"{_clock(value.local)}{_offset(value.offset_seconds)}", XSD_TIME)
        case LocalDateTime():
            return Literal(f"{_day(value.date)}T{_clock(value.time)}", XSD_DATE_TIME)
        case DateTime():
            return Literal(f"{_day(value.date)}T{_clock(value.time)}{_offset(value.offset_seconds)}", XSD_DATE_TIME)
        case Duration():
            return _duration(value)
    return Literal(json.dumps(_plain(value), ensure_ascii=False, allow_nan=False), XSD_STRING)


def _double(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return "NaN" if math.isnan(value) else "INF" if value > 0 else "-INF"


def _day(date: Date) -> str:
    return format_date(date.year, date.month, date.day).removeprefix("+")


def _clock(time: LocalTime) -> str:
    return f"{time.hour:02d}:{time.minute:02d}:{time.second:02d}{format_fraction(time.nanosecond)}"


def _offset(seconds: int) -> str:
    """XML Schema knows hours and minutes; the seconds of old local times are cut."""
    return format_offset(seconds)[:6]


def _duration(value: Duration) -> Literal:
    parts = (value.months, value.days, value.time_nanos)
    if all(part >= 0 for part in parts):
        return Literal(str(value), XSD_DURATION)
    if all(part <= 0 for part in parts):
        return Literal(f"-{value.negated()}", XSD_DURATION)
    return Literal(str(value), XSD_STRING)


def _plain(value: Value) -> object:
    """A map, a nested list or a point for JSON."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else _double(value)
        case list() | tuple():
            return [_plain(item) for item in value]
        case Point():
            return {**dict(zip(value.system.axes, value.coordinates, strict=True)), "crs": value.crs}
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
    return str(value)
