"""Functions and operators of lists, and those that strings share with them.

Invariant: lists are values; every function gives a new list.
"""

from __future__ import annotations

from anabranch.errors import EvaluationError
from anabranch.model.compare import equals
from anabranch.model.temporal.refusals import kind_of, wrong_kind, wrong_value
from anabranch.model.values import Value
from anabranch.snapshot.functions.support import integer, items, strict

MAX_RANGE = 20_000_000


def is_in(value: Value, container: Value) -> Value:
    """`value IN container`: true when an item equals it, null when one might."""
    if container is None:
        return None
    answer: bool | None = False
    for item in items(container, "IN"):
        same = equals(value, item)
        if same is True:
            return True
        if same is None:
            answer = None
    return answer


@strict
def size(value: Value) -> Value:
    if isinstance(value, list | str):
        return len(value)
    raise wrong_kind(f"size() of {kind_of(value)}", "size() takes a list or a string; length() takes a path")


@strict
def is_empty(value: Value) -> Value:
    if isinstance(value, list | str | dict):
        return not value
    raise wrong_kind(f"isEmpty() of {kind_of(value)}", "isEmpty() takes a list, a string or a map")


@strict
def head(value: Value) -> Value:
    found = items(value, "head()")
    return found[0] if found else None


@strict
def last(value: Value) -> Value:
    found = items(value, "last()")
    return found[-1] if found else None


@strict
def tail(value: Value) -> Value:
    return items(value, "tail()")[1:]


@strict
def reverse(value: Value) -> Value:
    if isinstance(value, list | str):
        return value[::-1]
    raise wrong_kind(f"reverse() of {kind_of(value)}", "reverse() takes a list or a string")


@strict
def number_range(start: Value, end: Value, step: Value = 1) -> Value:
    """The integers from start to end, both included, by steps."""
    first, final, stride = integer(start, "range()"), integer(end, "range()"), integer(step, "range()")
    if stride == 0:
        raise wrong_value("range() with a step of 0 never ends", "steps are positive or negative")
    numbers = range(first, final + (1 if stride > 0 else -1), stride)
    if (final - first) // stride >= MAX_RANGE:
        raise EvaluationError("SER-306", f"range() gives at most {MAX_RANGE:,} numbers", "count them: count(*)")
    return list(numbers)
