"""Rows with a looked-up value that may change while the row does not.

Input 0 are rows; input 1 has a change whenever the index in which values are looked up may have changed.

Law: {(r, answer(arguments of r)) : r in R}, by the present answers, as a sum of changes.
Work per batch: O(changes); when the second input has a change, O(distinct arguments), looked up all at once, plus the
rows whose answer changed.
State: the rows, indexed by their argument columns; the distinct arguments with their answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from anabranch.delta.batch import Batch, Ids, concatenated
from anabranch.delta.operators.base import DeltaOperator, Size
from anabranch.delta.trace import Trace, halves, net, total_size


class WatchedRows(DeltaOperator):
    """Rows with their answers; `answer` gives one id per row of arguments, which are the columns `arguments` of the
    rows."""

    def __init__(self, width: int, arguments: Sequence[int], answer: Callable[[Ids], Ids]) -> None:
        self.width = width + 1
        self._arguments = list(arguments)
        self._answer = answer
        self._rows = Trace(width, tuple(arguments))
        count = len(self._arguments)
        self._asked = Trace(count, tuple(range(count)))
        self._answers = Trace(count + 1, tuple(range(count)))

    def apply(self, *inputs: Batch) -> Batch:
        rows, moved = inputs
        changes: list[Batch] = []
        # Rows that leave have the old answer, and rows that enter get the new one.
        leaving, entering = halves(net(rows))
        if len(leaving):
            changes.append(leaving.widened(self._known(leaving)))
            self._count(leaving)
        if len(moved):
            self._ask_again(changes)
        if len(entering):
            self._count(entering)
            changes.append(entering.widened(self._known(entering)))
        return concatenated(changes, self.width)

    def _count(self, batch: Batch) -> None:
        """Update the rows; look up the answers of new arguments, and drop those of arguments that no row has any
        more."""
        self._rows.add(batch)
        touched = self._asked.add(batch.picked(self._arguments))
        new = touched.rows[(touched.before == 0) & (touched.after > 0)]
        old = touched.rows[(touched.before > 0) & (touched.after == 0)]
        if len(new):
            self._answers.add(Batch.entering(np.column_stack((new, self._answer(new)))))
        if len(old):
            self._answers.add(-Batch.entering(self._answers.probe(old).rows))

    def _known(self, batch: Batch) -> Ids:
        """Return the kept answers of rows; each row has exactly one."""
        found = self._answers.probe(np.ascontiguousarray(batch.rows.take(self._arguments, axis=1)))
        answers = np.empty(len(batch), np.int64)
        answers[found.asked] = found.rows[:, -1]
        return answers

    def _ask_again(self, changes: list[Batch]) -> None:
        before = self._answers.rows().rows
        if not len(before):
            return
        answers = self._answer(np.ascontiguousarray(before[:, :-1]))
        differ = np.flatnonzero(answers != before[:, -1])
        if not len(differ):
            return
        after = before[differ]
        after[:, -1] = answers[differ]
        self._answers.add(concatenated([-Batch.entering(before[differ]), Batch.entering(after)], before.shape[1]))
        found = self._rows.probe(np.ascontiguousarray(after[:, :-1]))
        rows = Batch(found.rows, found.weights)
        changes.append((-rows).widened(before[differ, -1].take(found.asked)))
        changes.append(rows.widened(after[:, -1].take(found.asked)))

    def size(self) -> Size:
        return total_size((self._rows, self._asked, self._answers))
