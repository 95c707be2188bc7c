"""Anti join of two changing bags: left rows that no right row removes (SPARQL's MINUS).

Law: L - R = {l in L : no r in R has a bound column in common with l and agrees with l on all that both have}.
Work per batch: O(changes) plus the left rows of keys that got their first or lost their last right row; where shared
columns may be unbound, O(changes + pairs that agree on the certain columns, or else on those bound in both).
State: the left rows, and the shared columns of the right rows; nothing where no column is shared. A left row in which
no shared column is bound is never removed and is not kept.
"""

from __future__ import annotations

from collections.abc import Sequence

from anabranch.delta.batch import Batch
from anabranch.delta.operators.base import NOTHING_KEPT, DeltaOperator, Size
from anabranch.delta.operators.loners import Loners
from anabranch.delta.operators.pairs import Pairs
from anabranch.errors import InternalError


class AntiJoin(DeltaOperator):
    """The anti join; gives left rows as they came. `shared` are (left column, right column, certain)."""

    def __init__(self, left_width: int, right_width: int, shared: Sequence[tuple[int, int, bool]]) -> None:
        if not all(left < left_width and right < right_width for left, right, _ in shared):
            raise InternalError(f"rows of {left_width} and {right_width} columns cannot share {list(shared)}")
        self.width = left_width
        self._picks = [right for _, right, _ in shared]
        inner = [(left, place, certain) for place, (left, _, certain) in enumerate(shared)]
        pairs = Pairs(left_width, len(inner), inner, lenient=True, minus=True)
        self._loners = Loners(pairs, wants_joined=False)

    def apply(self, *inputs: Batch) -> Batch:
        left, right = inputs
        if not self._picks:
            return left
        return self._loners.change(left, right.picked(self._picks))[1]

    def size(self) -> Size:
        return self._loners.size() if self._picks else NOTHING_KEPT
