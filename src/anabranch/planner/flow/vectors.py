"""Comparisons of numbers for many rows at once.

Law: where a comparison is decided here, the plain evaluator decides the same. Numbers are compared as floats, so only
numbers that are exact as floats are decided; the rest is left to the plain evaluator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from anabranch.algebra import expressions as ex
from anabranch.delta.batch import NULL, Ids, Mask
from anabranch.delta.dictionary import Dictionary
from anabranch.delta.kernels.log_records import NO_RANK, UNRANKED
from anabranch.delta.number_sums import FLOAT

_EXACT = float(1 << 53)
_COMPARISONS: dict[str, Callable[..., Mask]] = {
    "=": np.equal,
    "<>": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
_Numbers = npt.NDArray[np.float64]


class VectorTest(NamedTuple):
    """A comparison of two columns, or of a column with a number."""

    compare: Callable[..., Mask]
    left: int | float
    right: int | float
    has_column: tuple[bool, bool]

    def __call__(self, rows: Ids, dictionary: Dictionary) -> tuple[Mask, Mask]:
        """Return for which rows the comparison is true, and for which this is decided."""
        decided = np.ones(len(rows), np.bool_)
        null = np.zeros(len(rows), np.bool_)
        sides: list[_Numbers | float] = []
        for side, is_column in zip((self.left, self.right), self.has_column, strict=True):
            if not is_column:
                sides.append(side)
                continue
            ids = rows[:, int(side)]
            found, are_exact = _numbers(ids, dictionary)
            null |= ids == NULL
            decided &= are_exact
            sides.append(found)
        true = self.compare(*sides) & decided & ~null
        return true, decided | null


def _numbers(ids: Ids, dictionary: Dictionary) -> tuple[_Numbers, Mask]:
    """Return values as floats, and which of them are numbers that are exact as floats."""
    kinds, words = dictionary.number_words(ids)
    found = np.where(kinds == FLOAT, words.view(np.float64), words)
    return found, (kinds != 0) & (np.abs(found) <= _EXACT)


def ranks(ids: Ids, dictionary: Dictionary) -> Ids:
    """Return integers in the order of the numbers that values are: UNRANKED where numbers are not exact, and for other
    values; NO_RANK for null."""
    found, are_exact = _numbers(ids, dictionary)
    bits = (found + 0.0).view(np.int64)  # 0.0 for -0.0
    ordered = np.where(bits >= 0, bits + 1, bits ^ np.iinfo(np.int64).max)
    return np.where(ids == NULL, NO_RANK, np.where(are_exact, ordered, UNRANKED))


def vector_test(condition: ex.Expression, columns: Sequence[str]) -> VectorTest | None:
    """Return the comparison that a condition is; None where it is no comparison of columns and numbers."""
    if not isinstance(condition, ex.Compare):
        return None
    sides: list[int | float] = []
    has_column: list[bool] = []
    for side in (condition.left, condition.right):
        match side:
            case ex.Variable(name) if name in columns:
                sides.append(list(columns).index(name))
                has_column.append(True)
            case ex.Constant(value) if isinstance(value, int | float) and not isinstance(value, bool):
                if not abs(value) <= _EXACT:
                    return None
                sides.append(float(value))
                has_column.append(False)
            case _:
                return None
    if not any(has_column):
        return None
    return VectorTest(_COMPARISONS[condition.operator], sides[0], sides[1], (has_column[0], has_column[1]))
