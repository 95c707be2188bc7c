"""Constructor functions: `xsd:integer(?x)` and its like (SPARQL 17.5, XPath's casting rules).

Invariant: the result is a canonical literal of the datatype that was asked for, or null; a string is read as the
datatype's lexical form, after the white space around it is dropped, as XPath does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial

from anabranch.model.terms import (
    XSD_BOOLEAN,
    XSD_DATE,
    XSD_DATE_TIME,
    XSD_DAY_TIME_DURATION,
    XSD_DECIMAL,
    XSD_DOUBLE,
    XSD_DURATION,
    XSD_FLOAT,
    XSD_STRING,
    XSD_TIME,
    Blank,
    Iri,
    Literal,
)
from anabranch.model.values import Value
from anabranch.snapshot.rdf.timeline import (
    XSD_YEAR_MONTH_DURATION,
    MomentFields,
    Period,
    XsdMoment,
    fields_of,
    moment,
)
from anabranch.snapshot.rdf.values import (
    INTEGER_RANGES,
    RANKS,
    LiteralValue,
    Number,
    Opaque,
    in_range,
    literal_of,
    parse,
    single,
    string_of,
    to_float,
    value_of,
)

_SPACE = " \t\r\n"


def cast(term: Value, datatype: Value) -> Literal | None:
    """The term as a literal of a datatype."""
    if not isinstance(datatype, Iri):
        return None
    target = datatype.value
    if target == XSD_STRING:
        return _to_string(term)
    if not isinstance(term, Literal):
        return None
    value = value_of(term)
    if isinstance(value, Opaque):
        return None
    convert = _CONVERSIONS.get(target)
    if convert is None:
        return None
    result = parse(target, value.strip(_SPACE)) if isinstance(value, str) else convert(value)
    if result is None or isinstance(result, Opaque):
        return None
    if target in INTEGER_RANGES:
        assert isinstance(result, int)
        written = literal_of(result) if in_range(result, target) else None
        return None if written is None else Literal(written.lexical, target)
    return literal_of(result)


def _to_string(term: Value) -> Literal | None:
    match term:
        case Iri(text):
            return Literal(text)
        case Blank():
            return None
        case Literal(lexical):
            value = value_of(term)
            return Literal(lexical if isinstance(value, Opaque) else string_of(value))
    return None


def _to_boolean(value: LiteralValue) -> bool | None:
    if isinstance(value, bool):
        return value
    return bool(value == value and value != 0) if type(value) in RANKS else None


def _number(value: LiteralValue) -> Number | None:
    if isinstance(value, bool):
        return int(value)
    return value if type(value) in RANKS else None  # type: ignore[return-value]


def _finite(value: LiteralValue) -> Number | None:
    number = _number(value)
    return None if isinstance(number, float) and not math.isfinite(number) else number


def _to_integer(value: LiteralValue) -> int | None:
    number = _finite(value)
    return None if number is None else int(number)


def _to_decimal(value: LiteralValue) -> Decimal | None:
    number = _finite(value)
    return None if number is None else Decimal(number)


def _to_double(value: LiteralValue) -> float | None:
    number = _number(value)
    return None if number is None else to_float(number)


def _to_float(value: LiteralValue) -> float | None:
    number = _to_double(value)
    return None if number is None else single(number)


_MOMENT_SOURCES: Mapping[str, frozenset[str]] = {
    XSD_DATE_TIME: frozenset((XSD_DATE_TIME, XSD_DATE)),
    XSD_DATE: frozenset((XSD_DATE, XSD_DATE_TIME)),
    XSD_TIME: frozenset((XSD_TIME, XSD_DATE_TIME)),
}


def _to_moment(kind: str, value: LiteralValue) -> XsdMoment | None:
    """Between dateTime and its halves: the date at midnight, the date alone, the time alone."""
    if not isinstance(value, XsdMoment) or value.kind not in _MOMENT_SOURCES[kind]:
        return None
    if value.kind == kind:
        return value
    fields = fields_of(value)
    if kind == XSD_TIME:
        return moment(kind, MomentFields(1972, 12, 31, fields.hour, fields.minute, fields.second), value.offset)
    return moment(kind, MomentFields(fields.year, fields.month, fields.day, 0, 0, Decimal(0)), value.offset)


def _to_period(kind: str, value: LiteralValue) -> Period | None:
    """A duration as another kind keeps the part that the other kind has."""
    if not isinstance(value, Period):
        return None
    months = 0 if kind == XSD_DAY_TIME_DURATION else value.months
    seconds = Decimal(0) if kind == XSD_YEAR_MONTH_DURATION else value.seconds
    return Period(kind, months, seconds)


_CONVERSIONS: Mapping[str, Callable[[LiteralValue], LiteralValue | None]] = {
    XSD_BOOLEAN: _to_boolean,
    XSD_DECIMAL: _to_decimal,
    XSD_FLOAT: _to_float,
    XSD_DOUBLE: _to_double,
    **dict.fromkeys(INTEGER_RANGES, _to_integer),
    **{kind: partial(_to_moment, kind) for kind in _MOMENT_SOURCES},
    **{kind: partial(_to_period, kind) for kind in (XSD_DURATION, XSD_DAY_TIME_DURATION, XSD_YEAR_MONTH_DURATION)},
}
