"""Cache for functions of literals: drops the least recently used results, and never holds a long literal.

Invariant: the number of literals and the length of each are limited: a bound in bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

from anabranch.model.terms import Literal

Result = TypeVar("Result")

LONGEST = 256  # characters; a literal that is longer is seldom seen again


def remembered(count: int) -> Callable[[Callable[[Literal], Result]], Callable[[Literal], Result]]:
    """Let a function cache its results for the last `count` literals that are not long."""

    def decorate(function: Callable[[Literal], Result]) -> Callable[[Literal], Result]:
        known = lru_cache(maxsize=count)(function)

        @wraps(function)
        def look(literal: Literal) -> Result:
            return known(literal) if len(literal.lexical) <= LONGEST else function(literal)

        return look

    return decorate
