"""The operators + - * / % ^ and the signs.

Invariant: integers are 64 bits wide and refuse to wrap; floats follow IEEE 754 and never fail; null in, null out.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from anabranch.errors import EvaluationError
from anabranch.model.temporal import Duration, arithmetic
from anabranch.model.temporal.refusals import kind_of, wrong_kind
from anabranch.model.values import Value
from anabranch.snapshot import limits
from anabranch.snapshot.functions.conversion import to_string
from anabranch.snapshot.functions.support import in_range, number, strict


def add(left: Value, right: Value) -> Value:
    """Numbers, strings with strings and scalars, lists with lists and items, temporal values with durations."""
    if left.__class__ is int and right.__class__ is int:
        return in_range(left + right)
    if left is None or right is None:
        return None
    if isinstance(left, list):
        limits.check_items(len(left) + (len(right) if isinstance(right, list) else 1))
        return left + right if isinstance(right, list) else [*left, right]
    if isinstance(right, list):
        limits.check_items(1 + len(right))
        return [left, *right]
    if isinstance(left, str) or isinstance(right, str):
        text: str = to_string(left) + to_string(right)  # type: ignore[operator]
        if len(text) > limits.MAX_TEXT:
            limits.check_text(len(text))
        return text
    if _both_numbers(left, right):
        return left + right  # type: ignore[operator]
    return _temporal(arithmetic.add, "+", left, right)


def subtract(left: Value, right: Value) -> Value:
    if left is None or right is None:
        return None
    if left.__class__ is int and right.__class__ is int:
        return in_range(left - right)
    if _both_numbers(left, right):
        return left - right  # type: ignore[operator]
    return _temporal(arithmetic.subtract, "-", left, right)


def multiply(left: Value, right: Value) -> Value:
    if left is None or right is None:
        return None
    if left.__class__ is int and right.__class__ is int:
        return in_range(left * right)
    if _both_numbers(left, right):
        return left * right  # type: ignore[operator]
    return _temporal(arithmetic.multiply, "*", left, right)


def divide(left: Value, right: Value) -> Value:
    """Integers give the quotient cut toward zero; a float divided by zero is an infinity or NaN."""
    if left is None or right is None:
        return None
    if left.__class__ is int and right.__class__ is int:
        return in_range(_quotient(left, right))
    if _both_numbers(left, right):
        return float_quotient(float(left), float(right))  # type: ignore[arg-type]
    return _temporal(arithmetic.divide, "/", left, right)


def modulo(left: Value, right: Value) -> Value:
    """The remainder of `divide`, with the sign of the dividend."""
    if left is None or right is None:
        return None
    if left.__class__ is int and right.__class__ is int:
        return left - _quotient(left, right) * right
    dividend, divisor = float(number(left, "%")), float(number(right, "%"))
    if divisor == 0 or math.isinf(dividend) or math.isnan(divisor):
        return math.nan
    return math.fmod(dividend, divisor)


def _quotient(left: int, right: int) -> int:
    if right == 0:
        raise EvaluationError("SER-304", "division by zero", "guard it: CASE WHEN x <> 0 THEN y / x END")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def float_quotient(left: float, right: float) -> float:
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


@strict
def power(base: Value, exponent: Value) -> Value:
    """Always a float."""
    left, right = float(number(base, "^")), float(number(exponent, "^"))
    try:
        return math.pow(left, right)
    except OverflowError:
        return -math.inf if left < 0 and right % 2 == 1 else math.inf
    except ValueError:
        if left == 0:
            return math.copysign(math.inf, left) if right % 2 == 1 else math.inf
        return math.nan


@strict
def negate(value: Value) -> Value:
    if isinstance(value, Duration):
        return value.negated()
    operand = number(value, "-")
    return in_range(-operand) if isinstance(operand, int) else -operand


@strict
def plus(value: Value) -> Value:
    return value if isinstance(value, Duration) else number(value, "+")


def _both_numbers(left: Value, right: Value) -> bool:
    return (left.__class__ is int or left.__class__ is float) and (right.__class__ is int or right.__class__ is float)


def _temporal(compute: Callable[[object, object], Value], sign: str, left: Value, right: Value) -> Value:
    try:
        return compute(left, right)
    except TypeError:
        raise wrong_kind(f"{kind_of(left)} {sign} {kind_of(right)} has no meaning") from None
