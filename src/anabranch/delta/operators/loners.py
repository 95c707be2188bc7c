"""Changes of the left rows without a partner on the right: the common half of left join and anti join.

Law: the sum of the given changes is {l in L : no r in R meets l}, with the weights of L. State beyond the two traces:
where rows with one key need not meet, the number of partners of each left row that has some.
Work per batch: O(changes + pairs that agree on the key); where all rows with one key meet, O(changes) plus the left
rows of those keys that got their first or lost their last right row.
"""

from __future__ import annotations

import numpy as np

from anabranch.delta.batch import Batch, Ids, Weights, concatenated
from anabranch.delta.operators.base import Size
from anabranch.delta.operators.pairs import Pairs
from anabranch.delta.trace import Trace, distinct_rows, halves


class Loners:
    """Finds left rows without partners. `change` gives joined rows and lone left rows as they came, and updates both
    traces of `pairs`."""

    def __init__(self, pairs: Pairs, wants_joined: bool) -> None:
        self._pairs = pairs
        self._wants_joined = wants_joined
        width = pairs.left.width
        self._partners = None if pairs.by_key_alone else Trace(width, tuple(range(width)))

    def change(self, left: Batch, right: Batch) -> tuple[Batch, Batch]:
        pairs = self._pairs
        taken, never = pairs.taken_left(left)
        leaving, entering = halves(taken)
        joined: list[Batch] = []
        lone: list[Batch] = []
        # Leaving rows go first and entering rows come last, so that a left row that comes or goes together with its
        # partner is never seen alone.
        if len(leaving):
            self._left(leaving, joined, lone)
        stored = pairs.taken_right(right)
        if len(stored):
            self._right(stored, joined, lone)
        if len(entering):
            self._left(entering, joined, lone)
        alone = concatenated(lone, pairs.left.width)
        alone = Batch(np.ascontiguousarray(pairs.exact_left(alone.rows)), alone.weights)
        return concatenated(joined, pairs.width), concatenated((alone, never), pairs.left_width)

    def _left(self, batch: Batch, joined: list[Batch], lone: list[Batch]) -> None:
        """Process left rows that all leave or all enter, each named once."""
        pairs = self._pairs
        if self._partners is None and not self._wants_joined:
            partners = pairs.right.totals(batch.rows.take(pairs.left_side.keys, axis=1))
        else:
            met = pairs.with_right(batch)
            partners = np.zeros(len(batch), np.int64)
            np.add.at(partners, met.given, met.weights)
            joined.append(met.change(batch))
        touched = pairs.add_left(batch)  # in the order of the batch, which names each row once
        if self._partners is not None:
            fresh, gone = touched.before == 0, touched.after == 0
            counted = (fresh | gone) & (partners != 0)
            change: Weights = np.where(gone, -partners, partners)
            self._partners.add(Batch(batch.rows[counted], change[counted]))
        lone.append(batch.kept(partners == 0))

    def _right(self, batch: Batch, joined: list[Batch], lone: list[Batch]) -> None:
        pairs = self._pairs
        if self._partners is None:
            keys = distinct_rows(batch.rows.take(pairs.right_side.keys, axis=1))
            before = pairs.right.totals(keys)
            if self._wants_joined:
                joined.append(pairs.with_left(batch).change(batch))
            pairs.add_right(batch)
            turn = _turns(before, pairs.right.totals(keys))
            turned = np.flatnonzero(turn)
            if len(turned):
                found = pairs.left.probe(keys.take(turned, axis=0))
                lone.append(Batch(found.rows, turn[turned].take(found.asked) * found.weights))
            return
        pairs.add_right(batch)
        met = pairs.with_left(batch)
        joined.append(met.change(batch))
        touched = self._partners.add(Batch(met.others, batch.weights.take(met.given)))
        turn = _turns(touched.before, touched.after)
        turned = np.flatnonzero(turn)
        if len(turned):
            rows: Ids = touched.rows.take(turned, axis=0)
            lone.append(Batch(rows, turn[turned] * pairs.left.weights_of(rows)))

    def size(self) -> Size:
        kept = self._pairs.size()
        if self._partners is None:
            return kept
        rows, held = self._partners.size()
        return Size(kept.rows + rows, kept.bytes + held)


def _turns(before: Weights, after: Weights) -> Weights:
    """Return +1 where the last partner left, -1 where the first came."""
    turns: Weights = (after == 0).astype(np.int64) - (before == 0).astype(np.int64)
    return turns
