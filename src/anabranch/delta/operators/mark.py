"""Mark join: adds to each outer row whether a subquery has a row for it (EXISTS inside a condition).

`Arguments` gives the subquery the values for which it is evaluated, `MarkJoin` adds its answer to the outer rows.
Within one instant the flow runs `Arguments`, then the subquery, then `MarkJoin` with the same changes of the outer
rows.

Law: {(o, true if S has a row that begins with o's argument columns, else false) : o in O}, as a sum of changes.
Work per batch: O(changes) plus the outer rows of arguments that got their first or lost their last row.
State: the outer rows, indexed by the argument columns; per argument the number of the subquery's rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anabranch.delta.batch import Batch, Ids, Mask, concatenated
from anabranch.delta.operators.base import DeltaOperator, Size
from anabranch.delta.operators.distinct import DistinctRows
from anabranch.delta.trace import Trace, halves, net, total_size


class Arguments(DeltaOperator):
    """The distinct rows of some columns of the input, compared by exact ids."""

    def __init__(self, columns: Sequence[int]) -> None:
        self._columns = list(columns)
        self.width = len(self._columns)
        self._distinct = DistinctRows(self.width)

    def apply(self, *inputs: Batch) -> Batch:
        return self._distinct.apply(inputs[0].picked(self._columns))

    def size(self) -> Size:
        return self._distinct.size()


class MarkJoin(DeltaOperator):
    """The mark join. Input 0 are the outer rows, `width` columns; input 1 the subquery's rows, which begin with the
    argument columns. Gives the outer rows with `true_id` or `false_id` behind them. Arguments are compared by exact
    ids, null as well."""

    def __init__(self, width: int, argument: Sequence[int], true_id: int, false_id: int) -> None:
        self.width = width + 1
        self._argument = list(argument)
        self._outer = Trace(width, tuple(argument))
        size = len(self._argument)
        self._answers = Trace(size, tuple(range(size)))
        self._true = np.int64(true_id)
        self._false = np.int64(false_id)

    def apply(self, *inputs: Batch) -> Batch:
        outer, answers = inputs
        changes: list[Batch] = []
        # Rows that leave have the old mark and rows that enter get the new one: only rows that stay are marked
        # again.
        leaving, entering = halves(net(outer))
        if len(leaving):
            changes.append(self._marked(leaving))
            self._outer.add(leaving)
        if len(answers):
            self._turn(answers, changes)
        if len(entering):
            changes.append(self._marked(entering))
            self._outer.add(entering)
        return concatenated(changes, self.width)

    def _marked(self, batch: Batch) -> Batch:
        return batch.widened(self._marks(self._answers.totals(batch.rows.take(self._argument, axis=1)) > 0))

    def _marks(self, exists: Mask) -> Ids:
        return np.where(exists, self._true, self._false)

    def _turn(self, answers: Batch, changes: list[Batch]) -> None:
        touched = self._answers.add(answers.picked(range(len(self._argument))))
        turned = np.flatnonzero((touched.before == 0) != (touched.after == 0))
        if not len(turned):
            return
        found = self._outer.probe(touched.rows.take(turned, axis=0))
        rows = Batch(found.rows, found.weights)
        exists = (touched.after > 0)[turned].take(found.asked)
        changes.append((-rows).widened(self._marks(~exists)))
        changes.append(rows.widened(self._marks(exists)))

    def size(self) -> Size:
        return total_size((self._outer, self._answers))
