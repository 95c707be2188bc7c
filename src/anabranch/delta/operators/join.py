"""Natural join of two changing bags.

Law: d(L ⋈ R) = dL⁻ ⋈ R + (L + dL⁻) ⋈ dR + dL⁺ ⋈ (R + dR), where dL⁻ leaves and dL⁺ enters. The sum is that of dL ⋈ R +
(L + dL) ⋈ dR; in this order no pair enters and leaves again when its two rows come and go at one instant.
Work per batch: O(changes + pairs that agree on the key). State: both inputs, indexed by the key; rows with a null that
joins nothing are not kept.

The symmetric hash join (Wilschut and Apers 1991, Dataflow query execution in a parallel main-memory environment), with
deletions; the rule is the one for bilinear operators in DBSP (Budiu et al. 2023, section 3).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from anabranch.delta.batch import PIECE, Batch, concatenated
from anabranch.delta.operators.base import DeltaOperator, RowTest, SameAs, Size
from anabranch.delta.operators.pairs import Combine, Pairs
from anabranch.delta.trace import halves

_BEGIN = 16  # rows to begin with, before the number of pairs per row is known


class SymmetricHashJoin(DeltaOperator):
    """The natural join; gives all left columns, then the right ones that are not shared. `shared`: (left column, right
    column, certain).

    Strict: ids are equal by `same`, and a shared column shows the result of `combine` for two ids that differ (the left
    id without `combine`). Lenient: null is unbound; a shared column shows the value of the side that has one.
    `condition` tests joined rows."""

    def __init__(
        self,
        left_width: int,
        right_width: int,
        shared: Sequence[tuple[int, int, bool]],
        lenient: bool = False,
        same: SameAs | None = None,
        combine: Combine | None = None,
        condition: RowTest | None = None,
    ) -> None:
        self._pairs = Pairs(
            left_width, right_width, shared, lenient=lenient, same=same, combine=combine, condition=condition
        )
        self.width = self._pairs.width

    def apply(self, *inputs: Batch) -> Batch:
        pairs = self._pairs
        leaving, entering = halves(pairs.taken_left(inputs[0])[0])
        right = pairs.taken_right(inputs[1])
        changes: list[Batch] = []
        if len(leaving):
            changes.append(pairs.with_right(leaving).change(leaving))
            pairs.add_left(leaving)
        if len(right):
            changes.append(pairs.with_left(right).change(right))
            pairs.add_right(right)
        if len(entering):
            changes.append(pairs.with_right(entering).change(entering))
            pairs.add_left(entering)
        return concatenated(changes, self.width)

    def given_in_pieces(self, *inputs: Batch) -> Iterator[Batch]:
        """Yield the joined rows in pieces. Where rows only enter, every pair found on the way is in the final result:
        so the rows may be processed a few at a time, as many as have about one piece of pairs."""
        left, right = inputs
        if len(left) * len(right) <= PIECE or (left.weights < 0).any() or (right.weights < 0).any():
            yield self.apply(left, right)
            return
        nothing = Batch.empty(left.rows.shape[1]), Batch.empty(right.rows.shape[1])
        at, count = 0, _BEGIN
        while at < len(right):
            pairs = self.apply(nothing[0], right.part(at, at + count))
            at, count = at + count, _next(count, len(pairs))
            yield pairs
        at, count = 0, _BEGIN
        while at < len(left):
            pairs = self.apply(left.part(at, at + count), nothing[1])
            at, count = at + count, _next(count, len(pairs))
            yield pairs

    def size(self) -> Size:
        return self._pairs.size()


def _next(count: int, pairs: int) -> int:
    """Return how many rows to process next, after `count` rows that had `pairs` pairs."""
    if pairs > PIECE:
        return max(1, count * PIECE // pairs)
    return 2 * count if 4 * pairs < PIECE else count
