"""Left outer join of two changing bags: OPTIONAL.

Law: L ⟕ R = (L ⋈ R) + {l, nulls : l in L, no r in R meets l and passes the condition}, as sums of changes.
Work per batch: as the join, plus the left rows that lose their last partner or get their first.
State: both inputs, indexed by the key; with a condition or columns that may be unbound, also the number of partners of
each left row that has some. A left row with a null that joins nothing never has a partner and is not kept.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anabranch.delta.batch import NULL, Batch, concatenated
from anabranch.delta.operators.base import DeltaOperator, RowTest, SameAs, Size
from anabranch.delta.operators.loners import Loners
from anabranch.delta.operators.pairs import Combine, Pairs


class SymmetricHashLeftJoin(DeltaOperator):
    """The left outer join; arguments and columns are those of `SymmetricHashJoin`. A left row without a partner has its
    own values, and nulls in the columns that the right side adds."""

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
        pairs = Pairs(left_width, right_width, shared, lenient=lenient, same=same, combine=combine, condition=condition)
        self._loners = Loners(pairs, wants_joined=True)
        self._added = pairs.width - left_width
        self.width = pairs.width

    def apply(self, *inputs: Batch) -> Batch:
        joined, lone = self._loners.change(inputs[0], inputs[1])
        nulls = np.full((len(lone), self._added), NULL, np.int64)
        padded = Batch(np.concatenate((lone.rows, nulls), axis=1), lone.weights)
        return concatenated((joined, padded), self.width)

    def size(self) -> Size:
        return self._loners.size()
