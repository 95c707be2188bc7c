"""SPARQL's arithmetic: + - * / and the numeric functions.

Operands are promoted to the wider of their types (integer, decimal, float, double); types derived from integer count as
integer. Dates and durations add and subtract as in XPath.

Invariant: integers and decimals are exact and never infinite (what has no answer is null); floats and doubles follow
IEEE 754 and always have an answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, Decimal

from anabranch.model.terms import XSD_DATE, XSD_DATE_TIME, XSD_TIME, Literal
from anabranch.model.values import Value
from anabranch.snapshot.rdf.timeline import (
    EXACT,
    XSD_YEAR_MONTH_DURATION,
    Period,
    XsdMoment,
    added,
    between,
    negated,
    shifted,
)
from anabranch.snapshot.rdf.values import (
    RANKS,
    LiteralValue,
    Number,
    Single,
    literal_of,
    number_of,
    raise_to,
    single,
    value_of,
)

_HALF = Decimal("0.5")
_FRACTION_DIGITS = 18
_MOVABLE = frozenset((XSD_DATE_TIME, XSD_DATE, XSD_TIME))

# --- operators --------------------------------------------------------------------------------------------------------


def add(left: Value, right: Value) -> Literal | None:
    one, other = _value(left), _value(right)
    if type(one) in RANKS and type(other) in RANKS:
        return _written(_applied(_PLUS, one, other))  # type: ignore[arg-type]
    match one, other:
        case XsdMoment(), Period():
            return _moved(one, other)
        case Period(), XsdMoment():
            return _moved(other, one)
        case Period(), Period():
            return _written(added(one, other))
    return None


def subtract(left: Value, right: Value) -> Literal | None:
    one, other = _value(left), _value(right)
    if type(one) in RANKS and type(other) in RANKS:
        return _written(_applied(_MINUS, one, other))  # type: ignore[arg-type]
    match one, other:
        case XsdMoment(), Period():
            return _moved(one, negated(other))
        case XsdMoment(), XsdMoment() if one.kind == other.kind and one.kind in _MOVABLE:
            return None if (one.offset is None) != (other.offset is None) else _written(between(one, other))
        case Period(), Period():
            return _written(added(one, other, -1))
    return None


def multiply(left: Value, right: Value) -> Literal | None:
    one, other = _value(left), _value(right)
    if type(one) in RANKS and type(other) in RANKS:
        return _written(_applied(_TIMES, one, other))  # type: ignore[arg-type]
    return None


def divide(left: Value, right: Value) -> Literal | None:
    one, other = _value(left), _value(right)
    if type(one) in RANKS and type(other) in RANKS:
        return _written(quotient(one, other))  # type: ignore[arg-type]
    return None


def negate(term: Value) -> Literal | None:
    value = _value(term)
    match value:
        case Period():
            return _written(negated(value))
        case Decimal():
            return _written(EXACT.minus(value))
        case Single():
            return _written(Single(-value))
    return _written(-value) if type(value) in RANKS else None  # type: ignore[operator]


def plus(term: Value) -> Literal | None:
    value = _value(term)
    return _written(value) if isinstance(value, Period) or type(value) in RANKS else None


# --- functions --------------------------------------------------------------------------------------------------------


def absolute(term: Value) -> Literal | None:
    value = number_of(term)
    match value:
        case None:
            return None
        case Decimal():
            return _written(EXACT.abs(value))
        case Single():
            return _written(Single(abs(value)))
    return _written(abs(value))


def ceiling(term: Value) -> Literal | None:
    return _whole(term, lambda exact: exact.to_integral_value(ROUND_CEILING))


def floor(term: Value) -> Literal | None:
    return _whole(term, lambda exact: exact.to_integral_value(ROUND_FLOOR))


def round_half_up(term: Value) -> Literal | None:
    """The nearest whole number; of two that are as near, the greater."""
    return _whole(term, rounded)


def rounded(exact: Decimal) -> Decimal:
    low = exact.to_integral_value(ROUND_FLOOR)
    return EXACT.add(low, Decimal(1)) if EXACT.subtract(exact, low) >= _HALF else low


def _whole(term: Value, rounding: Callable[[Decimal], Decimal]) -> Literal | None:
    value = number_of(term)
    match value:
        case None | int():
            return _written(value)
        case Decimal():
            return _written(rounding(value))
    if not math.isfinite(value):
        return _written(value)
    whole = math.copysign(float(rounding(Decimal(value))), value)  # a zero keeps its sign
    return _written(Single(whole) if isinstance(value, Single) else whole)


# --- numbers ----------------------------------------------------------------------------------------------------------


def _float_quotient(one: float, other: float) -> float:
    if other:
        return one / other
    if one == 0 or one != one:
        return math.nan
    return math.copysign(math.inf, one) * math.copysign(1, other)


_Operation = tuple[Callable[[int, int], int], Callable[[Decimal, Decimal], Decimal], Callable[[float, float], float]]
_PLUS: _Operation = (int.__add__, EXACT.add, float.__add__)
_MINUS: _Operation = (int.__sub__, EXACT.subtract, float.__sub__)
_TIMES: _Operation = (int.__mul__, EXACT.multiply, float.__mul__)


def _applied(operation: _Operation, one: Number, other: Number) -> Number:
    rank = max(RANKS[type(one)], RANKS[type(other)])
    if rank == 0:
        return operation[0](one, other)  # type: ignore[arg-type]
    one, other = raise_to(rank, one), raise_to(rank, other)
    if rank == 1:
        return operation[1](one, other)  # type: ignore[arg-type]
    result = operation[2](one, other)  # type: ignore[arg-type]
    return single(result) if rank == 2 else result


def total(one: Number, other: Number) -> Number:
    """The sum, as the wider type of the two."""
    return _applied(_PLUS, one, other)


def quotient(one: Number, other: Number) -> Number | None:
    """Integers divide to a decimal. A decimal is exact, or cut off after 18 digits of fraction."""
    rank = max(1, RANKS[type(one)], RANKS[type(other)])
    one, other = raise_to(rank, one), raise_to(rank, other)
    match one, other:
        case Decimal(), Decimal():
            return _decimal_quotient(one, other)
        case float(), float():
            result = _float_quotient(one, other)
            return single(result) if rank == 2 else result
    return None


def _decimal_quotient(one: Decimal, other: Decimal) -> Decimal | None:
    if not other:
        return None
    result = EXACT.divide(one, other)
    if len(result.as_tuple().digits) <= 40:  # the division is exact
        return result
    digits = max(_FRACTION_DIGITS, _FRACTION_DIGITS - 1 - result.adjusted() if result.adjusted() < -6 else 0)
    cut = result.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_DOWN, context=EXACT)
    return cut if cut.is_finite() else result


# --- terms ------------------------------------------------------------------------------------------------------------


def _value(term: Value) -> LiteralValue | None:
    return value_of(term) if term.__class__ is Literal else None


def _written(value: LiteralValue | None) -> Literal | None:
    return None if value is None else literal_of(value)


def _moved(start: XsdMoment, period: Period) -> Literal | None:
    if start.kind not in _MOVABLE or (start.kind == XSD_TIME and period.kind == XSD_YEAR_MONTH_DURATION):
        return None
    return _written(shifted(start, period))
