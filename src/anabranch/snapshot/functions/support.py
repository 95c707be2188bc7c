"""Helpers of the function files: null propagation, and checks of an argument's type.

Invariant: a check returns its argument unchanged, narrowed to the promised type, or refuses it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from anabranch.errors import EvaluationError
from anabranch.model.temporal.refusals import kind_of, wrong_kind
from anabranch.model.values import Value

Function = Callable[..., Value]

INTEGER_MIN = -(2**63)
INTEGER_MAX = 2**63 - 1


def strict(function: Function) -> Function:
    """Wrap a function to return null as soon as one argument is null."""

    @wraps(function)
    def call(*arguments: Value) -> Value:
        for argument in arguments:
            if argument is None:
                return None
        return function(*arguments)

    return call


def in_range(number: int) -> int:
    """Return the integer if it fits into 64 bits, else refuse it."""
    if INTEGER_MIN <= number <= INTEGER_MAX:
        return number
    raise EvaluationError("SER-303", "the result does not fit into a 64-bit integer", "compute with floats: 1.0 * x")


def text(value: Value, what: str) -> str:
    if isinstance(value, str):
        return value
    raise wrong_kind(f"{what} takes a string, and this is {kind_of(value)}", "toString() makes one")


def integer(value: Value, what: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise wrong_kind(f"{what} takes an integer, and this is {kind_of(value)}", "toInteger() makes one")


def number(value: Value, what: str) -> int | float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    raise wrong_kind(f"{what} takes a number, and this is {kind_of(value)}")


def items(value: Value, what: str) -> list[Value]:
    if isinstance(value, list):
        return value
    raise wrong_kind(f"{what} takes a list, and this is {kind_of(value)}")
