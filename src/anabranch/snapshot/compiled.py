"""The types of compiled expressions and operators, and the two helpers that every compiler file needs.

Invariant: the result of a compiled expression depends only on the row and the context; rows are read by position and
never written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from anabranch.errors import EvaluationError
from anabranch.model.temporal.refusals import kind_of, wrong_kind, wrong_value
from anabranch.model.values import Value
from anabranch.snapshot.context import Context

Row: TypeAlias = Sequence[Value]  # a tuple; during matching, the matcher's list of slots
ExpressionEvaluator: TypeAlias = Callable[[Row, Context], Value]
RowSource: TypeAlias = Callable[[Context, tuple[Value, ...]], Iterator[tuple[Value, ...]]]
"""A compiled operator: given the context and the row of its `Argument` leaf, its rows."""

__all__ = [
    "EvaluationError",
    "ExpressionEvaluator",
    "Row",
    "RowSource",
    "kind_of",
    "truth",
    "wrong_kind",
    "wrong_value",
]


def truth(value: Value) -> bool | None:
    """Return the value as a truth value, or refuse it."""
    if value is True or value is False or value is None:
        return value
    raise wrong_kind(f"a condition must be true, false or null, not {kind_of(value)}", "compare it with something")
