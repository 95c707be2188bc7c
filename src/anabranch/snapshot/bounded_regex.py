"""Regular expressions with bounded matching time.

Python's matcher backtracks over every choice: `(a+)+b` over forty letters takes practically for ever. An upper bound on
the number of ways through a pattern is computed beforehand: a repetition may stop at any of its counts, any alternative
may be taken, and a repeated part chooses again each time. If there are too many ways for the length of the text, the
pattern is given to an engine whose time is linear in the text (`linear_regex`); features that this engine lacks
(references back, look-around) are refused.

Law: the answer is that of Python's `re`, or an error with a code. Work: at most about a million steps of Python's
matcher, or O(text) of the linear engine.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from re import _constants as kinds
from re import _parser
from typing import Any

from anabranch.errors import EvaluationError
from anabranch.snapshot.linear_regex import NotLinear, fits_linearly, refuse_unknown

_MOST = 6.0  # the logarithm of the number of ways that Python's matcher may try
_ENDLESS = 1e6
_REPEATS = (kinds.MAX_REPEAT, kinds.MIN_REPEAT, kinds.POSSESSIVE_REPEAT)


def fits(pattern: re.Pattern[str], text: str, *, whole: bool) -> bool:
    """Return whether the pattern matches the whole text, or some part of it."""
    if is_bounded(pattern, text):
        return (pattern.fullmatch(text) if whole else pattern.search(text)) is not None
    try:
        return fits_linearly(pattern, text, whole)
    except NotLinear:
        raise _too_costly(pattern, text) from None


def refuse_unbounded(pattern: re.Pattern[str], text: str) -> None:
    """Refuse a pattern that needs the linear engine, for replacing, which that engine does not do."""
    if not is_bounded(pattern, text):
        raise _too_costly(pattern, text)


def is_bounded(pattern: re.Pattern[str], text: str) -> bool:
    return _ways(pattern.pattern, pattern.flags, len(text).bit_length()) <= _MOST


@lru_cache(maxsize=256)
def is_always_answered(pattern: str) -> bool:
    """Return whether `fits` answers a legal pattern for every text, without refusing it."""
    try:
        refuse_unknown(re.compile(pattern))
    except NotLinear:
        return False
    return True


@lru_cache(maxsize=4096)
def _ways(pattern: str, flags: int, bits: int) -> float:
    """Return the logarithm of the number of ways from all beginnings through a text of fewer than 2 ** bits
    characters."""
    length = 2**bits
    return math.log10(length) + _choices(_parser.parse(pattern, flags), length)


def _choices(parts: Any, length: int) -> float:
    """Return the logarithm of the number of ways through a sequence."""
    return min(_ENDLESS, sum(_choice(kind, given, length) for kind, given in parts))


def _choice(kind: Any, given: Any, length: int) -> float:
    if kind in _REPEATS:
        low, high, body = given
        high = min(int(high), max(length, int(low)))
        return math.log10(high - low + 1) + high * _choices(body, length)
    if kind is kinds.BRANCH:
        return _either([_choices(one, length) for one in given[1]])
    if kind is kinds.SUBPATTERN:
        return _choices(given[3], length)
    if kind is kinds.ATOMIC_GROUP:
        return _choices(given, length)
    if kind in (kinds.ASSERT, kinds.ASSERT_NOT):
        return _choices(given[1], length)
    if kind is kinds.GROUPREF_EXISTS:
        return _either([_choices(one, length) for one in given[1:] if one is not None])
    return 0.0


def _either(ways: list[float]) -> float:
    most = max(ways, default=0.0)
    return most + math.log10(sum(10 ** (one - most) for one in ways) or 1.0)


def _too_costly(pattern: re.Pattern[str], text: str) -> EvaluationError:
    shown = pattern.pattern if len(pattern.pattern) <= 60 else f"{pattern.pattern[:57]}..."
    return EvaluationError(
        "SER-309",
        f"the regular expression `{shown}` could take for ever on a text of {len(text):,} characters",
        "do not repeat what repeats or chooses already; leave out references back and look-around",
    )
