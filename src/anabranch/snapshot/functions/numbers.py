"""Functions of numbers.

Invariant: outside of its domain a function is NaN, past the floats it is an infinity; it never fails on a number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import (
    ROUND_CEILING,
    ROUND_DOWN,
    ROUND_FLOOR,
    ROUND_HALF_DOWN,
    ROUND_HALF_EVEN,
    ROUND_HALF_UP,
    ROUND_UP,
    Decimal,
)
from decimal import Context as DecimalContext

from anabranch.model.temporal.refusals import unknown_name, wrong_value
from anabranch.model.values import Value
from anabranch.snapshot.functions.support import Function, in_range, integer, number, strict, text

_ROUNDING = {
    "UP": ROUND_UP,
    "DOWN": ROUND_DOWN,
    "CEILING": ROUND_CEILING,
    "FLOOR": ROUND_FLOOR,
    "HALF_UP": ROUND_HALF_UP,
    "HALF_DOWN": ROUND_HALF_DOWN,
    "HALF_EVEN": ROUND_HALF_EVEN,
}
_MAX_DECIMALS = 400


def of_float(name: str, compute: Callable[[float], float]) -> Function:
    """A function of one float, total: domain errors are NaN, overflow is an infinity."""

    @strict
    def call(value: Value) -> Value:
        operand = float(number(value, f"{name}()"))
        try:
            return compute(operand)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return call


def logarithm(compute: Callable[[float], float]) -> Callable[[float], float]:
    return lambda value: -math.inf if value == 0 else compute(value)


def cotangent(value: float) -> float:
    tangent = math.tan(value)
    return math.copysign(math.inf, value) if tangent == 0 else 1 / tangent


def haversine(value: float) -> float:
    return (1 - math.cos(value)) / 2


def rounded_to_whole(compute: Callable[[float], int]) -> Callable[[float], float]:
    """Floor or ceiling as a float; infinities and NaN stay what they are."""
    return lambda value: math.copysign(float(compute(value)), value) if math.isfinite(value) else value


@strict
def absolute(value: Value) -> Value:
    operand = number(value, "abs()")
    return in_range(abs(operand)) if isinstance(operand, int) else abs(operand)


@strict
def sign(value: Value) -> Value:
    operand = number(value, "sign()")
    return (operand > 0) - (operand < 0)


@strict
def is_nan(value: Value) -> Value:
    operand = number(value, "isNaN()")
    return operand != operand


@strict
def atan2(y: Value, x: Value) -> Value:
    return math.atan2(number(y, "atan2()"), number(x, "atan2()"))


@strict
def round_number(value: Value, decimals: Value = 0, mode: Value = "") -> Value:
    """To the nearest whole, halves up; with decimals, halves away from zero unless a mode says otherwise."""
    operand = float(number(value, "round()"))
    places = integer(decimals, "round()")
    name = text(mode, "round()").upper()
    if places < 0:
        raise wrong_value("round() takes 0 decimals or more")
    if name and name not in _ROUNDING:
        raise unknown_name("rounding mode", name, _ROUNDING)
    if not math.isfinite(operand) or places > _MAX_DECIMALS:
        return operand
    if places == 0 and not name:
        whole = math.floor(operand)
        return float(whole + 1 if operand - whole >= 0.5 else whole)
    exact = Decimal(repr(operand))
    wide = DecimalContext(prec=_MAX_DECIMALS * 2)
    return float(exact.quantize(Decimal(1).scaleb(-places), rounding=_ROUNDING[name or "HALF_UP"], context=wide))
