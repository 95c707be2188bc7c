"""UNION: the rows of two bags, one behind the other.

Law: A + B, with B's columns in the order of A's. Work per batch: O(changes). State: none.
"""

from __future__ import annotations

from collections.abc import Sequence

from anabranch.delta.batch import Batch, concatenated
from anabranch.delta.operators.base import DeltaOperator


class BagUnion(DeltaOperator):
    """The union; `picks` are the columns of the right rows, in the order of the left ones."""

    def __init__(self, picks: Sequence[int]) -> None:
        self._picks = list(picks)
        self.width = len(self._picks)

    def apply(self, *inputs: Batch) -> Batch:
        left, right = inputs
        return concatenated((left, right.picked(self._picks)), self.width)
