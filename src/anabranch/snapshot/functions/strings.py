"""Functions and operators of strings.

Invariant: positions count characters (code points); the comparing operators give null for anything that is no string.
"""

from __future__ import annotations

import re
from functools import lru_cache

from anabranch.model.temporal.refusals import wrong_value
from anabranch.model.values import Value
from anabranch.snapshot.bounded_regex import fits
from anabranch.snapshot.functions.support import integer, items, strict, text
from anabranch.snapshot.limits import check_items, check_text


def starts_with(whole: Value, part: Value) -> Value:
    return whole.startswith(part) if isinstance(whole, str) and isinstance(part, str) else None


def ends_with(whole: Value, part: Value) -> Value:
    return whole.endswith(part) if isinstance(whole, str) and isinstance(part, str) else None


def contains(whole: Value, part: Value) -> Value:
    return part in whole if isinstance(whole, str) and isinstance(part, str) else None


def matches(whole: Value, pattern: Value) -> Value:
    """`whole =~ pattern`: the regular expression fits the whole string."""
    if not isinstance(whole, str) or not isinstance(pattern, str):
        return None
    return fits(_regular_expression(pattern), whole, whole=True)


@lru_cache(maxsize=256)
def _regular_expression(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except (re.error, OverflowError) as error:
        raise wrong_value(f"`{pattern}` is no regular expression: {error}") from None
    except RecursionError:
        raise wrong_value("the regular expression is nested too deeply") from None


@strict
def lower(value: Value) -> Value:
    return text(value, "toLower()").lower()


@strict
def upper(value: Value) -> Value:
    return text(value, "toUpper()").upper()


@strict
def trim(value: Value) -> Value:
    return text(value, "trim()").strip()


@strict
def left_trim(value: Value) -> Value:
    return text(value, "lTrim()").lstrip()


@strict
def right_trim(value: Value) -> Value:
    return text(value, "rTrim()").rstrip()


@strict
def left(value: Value, length: Value) -> Value:
    return text(value, "left()")[: _count(length, "left()")]


@strict
def right(value: Value, length: Value) -> Value:
    whole, count = text(value, "right()"), _count(length, "right()")
    return whole[max(len(whole) - count, 0) :]


@strict
def substring(value: Value, start: Value, *length: Value) -> Value:
    whole, first = text(value, "substring()"), _count(start, "substring()")
    return whole[first : first + _count(length[0], "substring()")] if length else whole[first:]


@strict
def replace(value: Value, search: Value, replacement: Value) -> Value:
    whole, old, new = text(value, "replace()"), text(search, "replace()"), text(replacement, "replace()")
    if len(new) > len(old):
        check_text(len(whole) + whole.count(old) * (len(new) - len(old)))
    return whole.replace(old, new)


@strict
def split(value: Value, delimiter: Value) -> Value:
    """The parts between delimiters, of which there may be several kinds; an empty one splits into characters."""
    whole = text(value, "split()")
    delimiters = [delimiter] if isinstance(delimiter, str) else items(delimiter, "split()")
    wanted = [text(one, "split()") for one in delimiters]
    if not wanted:
        return [whole]
    if "" in wanted:
        check_items(len(whole))
        return list(whole)
    return [*re.split("|".join(re.escape(one) for one in wanted), whole)]


def _count(value: Value, what: str) -> int:
    count = integer(value, what)
    if count < 0:
        raise wrong_value(f"{what} cannot count {count} characters", "positions and lengths begin at 0")
    return count
