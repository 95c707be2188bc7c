"""Literals and the values they stand for.

| datatype | value |
|---|---|
| xsd:integer and what is derived from it | int, within the datatype's range |
| xsd:decimal, xsd:float, xsd:double | Decimal, Single, float |
| xsd:string, xsd:boolean | str, bool |
| dateTime, date, time, gYear ...; durations | Moment; Period |
| language-tagged; a form its datatype does not have; any other datatype | TAGGED; ILL; UNKNOWN |

Invariant: `value_of(literal_of(value)) == value`, and equal values of one datatype are written the same way.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping
from decimal import Decimal
from enum import Enum
from functools import partial
from typing import Final, TypeAlias

from anabranch.model.remembered import remembered
from anabranch.model.terms import (
    FALSE,
    LANG_STRING,
    TRUE,
    XSD,
    XSD_BOOLEAN,
    XSD_DECIMAL,
    XSD_DOUBLE,
    XSD_FLOAT,
    XSD_INTEGER,
    XSD_STRING,
    Literal,
)
from anabranch.snapshot.rdf.timeline import (
    MOMENT_KINDS,
    PERIOD_KINDS,
    Period,
    XsdMoment,
    decimal_text,
    moment_text,
    parse_moment,
    parse_period,
    period_text,
)


class Opaque(Enum):
    """The kinds of literals without a value."""

    TAGGED = "language-tagged string"
    ILL = "no lexical form of its datatype"
    UNKNOWN = "unknown datatype"


TAGGED: Final = Opaque.TAGGED
ILL: Final = Opaque.ILL
UNKNOWN: Final = Opaque.UNKNOWN


class Single(float):
    """A value of xsd:float: a float that single precision can hold."""

    __slots__ = ()


Number: TypeAlias = int | Decimal | float  # Single is a float
LiteralValue: TypeAlias = Number | str | bool | XsdMoment | Period | Opaque

RANKS: Mapping[type, int] = {int: 0, Decimal: 1, Single: 2, float: 3}
"""Numeric types in the order in which they are promoted; look up with `type(value)`, so that a bool is no number."""

INTEGER_RANGES: Mapping[str, tuple[int | None, int | None]] = {
    f"{XSD}{name}": bounds
    for name, bounds in {
        "integer": (None, None),
        "long": (-(2**63), 2**63 - 1),
        "int": (-(2**31), 2**31 - 1),
        "short": (-(2**15), 2**15 - 1),
        "byte": (-(2**7), 2**7 - 1),
        "nonNegativeInteger": (0, None),
        "positiveInteger": (1, None),
        "nonPositiveInteger": (None, 0),
        "negativeInteger": (None, -1),
        "unsignedLong": (0, 2**64 - 1),
        "unsignedInt": (0, 2**32 - 1),
        "unsignedShort": (0, 2**16 - 1),
        "unsignedByte": (0, 2**8 - 1),
    }.items()
}

NUMERIC_DATATYPES = frozenset((*INTEGER_RANGES, XSD_DECIMAL, XSD_FLOAT, XSD_DOUBLE))
_LONGEST = 4000  # digits; beyond it Python refuses to write integers


# --- text to value ----------------------------------------------------------------------------------------------------

_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_DOUBLE = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SPECIAL = {"INF": math.inf, "+INF": math.inf, "-INF": -math.inf, "NaN": math.nan}
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


def in_range(value: int, datatype: str) -> bool:
    low, high = INTEGER_RANGES[datatype]
    return (low is None or value >= low) and (high is None or value <= high)


def _parse_integer(datatype: str, text: str) -> LiteralValue:
    if _INTEGER.fullmatch(text) is None or len(text) > _LONGEST:
        return ILL
    value = int(text)
    return value if in_range(value, datatype) else ILL


def _parse_decimal(text: str) -> LiteralValue:
    return ILL if _DECIMAL.fullmatch(text) is None or len(text) > _LONGEST else Decimal(text)


def parse_double(text: str) -> float | Opaque:
    if text in _SPECIAL:
        return _SPECIAL[text]
    return ILL if _DOUBLE.fullmatch(text) is None else float(text)


def _parse_float(text: str) -> LiteralValue:
    value = parse_double(text)
    return ILL if isinstance(value, Opaque) else single(value)


def _parse_moment(kind: str, text: str) -> LiteralValue:
    return parse_moment(kind, text) or ILL


def _parse_period(kind: str, text: str) -> LiteralValue:
    return parse_period(kind, text) or ILL


_PARSERS: Mapping[str, Callable[[str], LiteralValue]] = {
    XSD_STRING: lambda text: text,
    XSD_BOOLEAN: lambda text: _BOOLEANS.get(text, ILL),
    XSD_DECIMAL: _parse_decimal,
    XSD_DOUBLE: parse_double,
    XSD_FLOAT: _parse_float,
    LANG_STRING: lambda text: TAGGED,
    **{datatype: partial(_parse_integer, datatype) for datatype in INTEGER_RANGES},
    **{kind: partial(_parse_moment, kind) for kind in MOMENT_KINDS},
    **{kind: partial(_parse_period, kind) for kind in PERIOD_KINDS},
}


def parse(datatype: str, text: str) -> LiteralValue:
    """The value of a lexical form of a datatype; ILL when it is none, UNKNOWN when nothing is known of the datatype."""
    parser = _PARSERS.get(datatype)
    if parser is None:
        return UNKNOWN
    try:
        return parser(text)
    except ValueError:  # more digits in a year or a duration than Python is willing to read
        return ILL


@remembered(1 << 16)
def value_of(literal: Literal) -> LiteralValue:
    """The value that a literal stands for. Streams repeat themselves, so values are kept."""
    return TAGGED if literal.language else parse(literal.datatype, literal.lexical)


def number_of(term: object) -> Number | None:
    """The number that a term stands for, or nothing."""
    if term.__class__ is not Literal:
        return None
    value = value_of(term)
    return value if type(value) in RANKS else None  # type: ignore[return-value]


# --- numbers ----------------------------------------------------------------------------------------------------------


def single(value: float) -> Single:
    """Rounded to single precision; past its range, infinite."""
    try:
        return Single(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return Single(math.copysign(math.inf, value))


def to_float(value: Number) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def raise_to(rank: int, value: Number) -> Number:
    """The number as the type of a higher rank."""
    if RANKS[type(value)] == rank:
        return value
    if rank == 1:
        return Decimal(value)
    return single(to_float(value)) if rank == 2 else to_float(value)


# --- value to text ----------------------------------------------------------------------------------------------------


def _float_text(value: float, digits: str, plain: range = range(-7, 21)) -> str:
    """Plain digits as long as they can be read (exponents in `plain`), otherwise a mantissa and an exponent."""
    if not math.isfinite(value):
        return "NaN" if value != value else "INF" if value > 0 else "-INF"
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    exact = Decimal(digits)
    exponent = exact.adjusted()
    if exponent in plain:
        return decimal_text(exact)
    mantissa = "".join(map(str, exact.as_tuple().digits)).rstrip("0")
    return f"{'-' if value < 0 else ''}{mantissa[0]}.{mantissa[1:] or '0'}E{exponent}"


def _single_digits(value: float) -> str:
    for precision in range(1, 9):
        digits = f"{value:.{precision}g}"
        if single(float(digits)) == value:
            return digits
    return f"{value:.9g}"


def text_of(value: LiteralValue) -> str:
    """The canonical lexical form of a value that is not opaque."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case int():
            return str(value)
        case Decimal():
            return decimal_text(value)
        case Single():
            return _float_text(value, _single_digits(value))
        case float():
            return _float_text(value, repr(value))
        case XsdMoment():
            return moment_text(value)
        case Period():
            return period_text(value)
    raise TypeError(f"a literal that is a {value.value} has no canonical form")


_PLAIN_IN_STRINGS = range(-6, 6)


def string_of(value: LiteralValue) -> str:
    """The text that xsd:string makes of a value: as `text_of`, but that XPath writes floats and doubles from a million
    on, and below a millionth, with an exponent (`1.0E6`)."""
    match value:
        case Single():
            return _float_text(value, _single_digits(value), _PLAIN_IN_STRINGS)
        case float():
            return _float_text(value, repr(value), _PLAIN_IN_STRINGS)
    return text_of(value)


def literal_of(value: LiteralValue) -> Literal | None:
    """A value as a literal; nothing for a number that is too long to be written."""
    match value:
        case bool():
            return TRUE if value else FALSE
        case int():
            return Literal(str(value), XSD_INTEGER) if value.bit_length() < 13_000 else None
        case Decimal():
            written = value.is_finite() and abs(value.adjusted()) < _LONGEST
            return Literal(decimal_text(value), XSD_DECIMAL) if written else None
        case Single():
            return Literal(text_of(value), XSD_FLOAT)
        case float():
            return Literal(text_of(value), XSD_DOUBLE)
        case str():
            return Literal(value)
        case XsdMoment() | Period():
            return Literal(text_of(value), value.kind)
    return None


def integer(value: int) -> Literal:
    """An xsd:integer that is known to be of sensible length."""
    return Literal(str(value), XSD_INTEGER)
