"""Limits on the size of one value: the length of a text, the items of a list including nested ones, the depth of
nesting.

A value is refused before it is made, or, for lists of lists, before it is traversed: lists that contain one list twice,
and so on, take almost no memory and would take for ever to traverse.

Invariant: whether a value is refused depends on the value only.
"""

from __future__ import annotations

from collections.abc import Collection

from anabranch.errors import EvaluationError
from anabranch.model.values import Value

MAX_TEXT = 1 << 24  # characters
MAX_ITEMS = 10_000_000
MAX_NESTED = 4_000_000
MAX_DEPTH = 100
NESTED = frozenset((list, dict))


def check_text(length: int) -> None:
    """Refuse a text of so many characters."""
    if length > MAX_TEXT:
        raise _too_large(f"a text of {length:,} characters; it may have {MAX_TEXT:,}")


def check_items(length: int) -> None:
    """Refuse a list of so many items."""
    if length > MAX_ITEMS:
        raise _too_large(f"a list of {length:,} items; it may have {MAX_ITEMS:,}")


def check_nested(value: Value) -> None:
    """Refuse a list or map that has too many items, those of lists and maps in it counted, or is nested too deeply."""
    level: list[Value] = [value]
    items = depth = 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise _too_large(f"a value nested more than {MAX_DEPTH} deep")
        following: list[Value] = []
        for one in level:
            inner: Collection[Value] = one.values() if isinstance(one, dict) else one  # type: ignore[assignment]
            items += len(inner)
            following += [part for part in inner if part.__class__ in NESTED]
            if items + len(following) > MAX_NESTED:
                raise _too_large(f"a value with more than {MAX_NESTED:,} items, in lists of lists")
        level = following


def _too_large(what: str) -> EvaluationError:
    return EvaluationError("SER-313", f"the expression makes {what}", "make less of it, or stop earlier")
