"""Three-valued logic: and, or, xor, not, comparisons and the four quantifiers.

Invariant: Kleene's tables. A truth value that already decides the answer stops the evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from anabranch.model.compare import compare, equals
from anabranch.model.values import Value
from anabranch.snapshot.compiled import ExpressionEvaluator, Row, truth
from anabranch.snapshot.context import Context

_NUMBERS = frozenset((int, float))


def conjunction(operands: tuple[ExpressionEvaluator, ...]) -> ExpressionEvaluator:
    def evaluate(row: Row, context: Context) -> Value:
        answer: bool | None = True
        for operand in operands:
            value = operand(row, context)
            if value is False:
                return False
            if value is not True:
                answer = truth(value)
        return answer

    return evaluate


def disjunction(operands: tuple[ExpressionEvaluator, ...]) -> ExpressionEvaluator:
    def evaluate(row: Row, context: Context) -> Value:
        answer: bool | None = False
        for operand in operands:
            value = operand(row, context)
            if value is True:
                return True
            if value is not False:
                answer = truth(value)
        return answer

    return evaluate


def exclusive(left: Value, right: Value) -> bool | None:
    one, other = truth(left), truth(right)
    return None if one is None or other is None else one is not other


def negation(value: Value) -> bool | None:
    known = truth(value)
    return None if known is None else not known


# --- comparisons ----------------------------------------------------------------------------------------------------


def _differs(left: Value, right: Value) -> bool | None:
    same = equals(left, right)
    return None if same is None else not same


def _ordering(decide: Callable[[int], bool], on_numbers: Callable[[float, float], bool]) -> Callable[..., bool | None]:
    """An order comparison. Two numbers always compare: NaN is neither less nor greater, which is false, not null."""

    def evaluate(left: Value, right: Value) -> bool | None:
        if left.__class__ in _NUMBERS and right.__class__ in _NUMBERS:
            return on_numbers(left, right)  # type: ignore[arg-type]
        sign = compare(left, right)
        return None if sign is None else decide(sign)

    return evaluate


COMPARISONS: Mapping[str, Callable[[Value, Value], bool | None]] = {
    "=": equals,
    "<>": _differs,
    "<": _ordering(lambda sign: sign < 0, lambda left, right: left < right),
    "<=": _ordering(lambda sign: sign <= 0, lambda left, right: left <= right),
    ">": _ordering(lambda sign: sign > 0, lambda left, right: left > right),
    ">=": _ordering(lambda sign: sign >= 0, lambda left, right: left >= right),
}


# --- quantifiers: each is given the truth values of its condition over the list -------------------------------------


def every(truths: Iterable[bool | None]) -> bool | None:
    answer: bool | None = True
    for value in truths:
        if value is False:
            return False
        if value is None:
            answer = None
    return answer


def some(truths: Iterable[bool | None]) -> bool | None:
    answer: bool | None = False
    for value in truths:
        if value is True:
            return True
        if value is None:
            answer = None
    return answer


def no(truths: Iterable[bool | None]) -> bool | None:
    found = some(truths)
    return None if found is None else not found


def exactly_one(truths: Iterable[bool | None]) -> bool | None:
    count, unknown = 0, False
    for value in truths:
        if value is True:
            count += 1
            if count > 1:
                return False
        elif value is None:
            unknown = True
    return None if unknown else count == 1


QUANTIFIERS: Mapping[str, Callable[[Iterable[bool | None]], bool | None]] = {
    "all": every,
    "any": some,
    "none": no,
    "single": exactly_one,
}
