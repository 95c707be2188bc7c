"""An operator of the plan on the plain evaluator, over rows that operators on changes keep up to date.

`HeldRows` keeps the bag of its input's rows; `RecomputedOverRows` evaluates over these rows at each settled instant at
which they, the clock or a source that the operator itself reads may have changed, and gives out the difference.

Law: after any number of ticks, the sum of the batches is the plain meaning of the operator over the bag of held rows.

State: the held rows, and the rows that the last evaluation gave.
Work per tick: O(changes) to hold rows; when there is something to evaluate, O(held rows) and the plain evaluation.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

import numpy as np

from anabranch.algebra.operators import Operator, Source
from anabranch.algebra.walk import is_volatile, sources
from anabranch.delta.batch import Batch, concatenated
from anabranch.delta.operators.base import DeltaOperator, Size
from anabranch.delta.trace import Trace
from anabranch.planner.flow.feeds import Tick
from anabranch.planner.flow.runtime import Runtime
from anabranch.planner.flow.spec import Leaf, Spec
from anabranch.snapshot import compile_plan

_NEVER: Hashable = object()


class HeldRows(DeltaOperator):
    """Keeps the rows of its input and gives out none; another operator reads them here. `moves` counts the batches that
    have changed them."""

    width = 0

    def __init__(self, width: int) -> None:
        self._rows = Trace(width, tuple(range(width)))
        self.moves = 0

    def apply(self, *inputs: Batch) -> Batch:
        (batch,) = inputs
        touched = self._rows.add(batch)
        if (touched.before != touched.after).any():
            self.moves += 1
        return Batch.empty(0)

    def apply_pieces(self, pieces: Iterator[Batch]) -> Batch:
        for piece in pieces:
            self.apply(piece)
        return Batch.empty(0)

    def batch(self) -> Batch:
        return self._rows.rows()

    def size(self) -> Size:
        return self._rows.size()


class RecomputedOverRows(Leaf):
    """Evaluates a part of the plan over the rows that another operator holds: in the plan, these are a `RowBag`. In the
    graphs of `used` the part looks up nodes."""

    def __init__(self, plan: Operator, used: tuple[Source, ...], held: HeldRows, runtime: Runtime) -> None:
        self._held = held
        self._runtime = runtime
        self._plan = compile_plan(plan)
        self._used = used
        self._sources = tuple(dict.fromkeys((*sources(plan), *used)))
        self._volatile = is_volatile(plan)
        self._width = len(plan.columns)
        self._seen: Hashable = _NEVER
        self._rows = Batch.empty(self._width)

    def advance(self, tick: Tick) -> Batch:
        if not tick.settled and self._seen is not _NEVER:
            return Batch.empty(self._width)
        seen = (self._held.moves, tick.signature(self._sources))
        if seen == self._seen and not self._volatile:
            return Batch.empty(self._width)
        self._seen = seen
        encode = self._runtime.dictionary.encode
        for source in self._used:
            tick.context.index(source)
        held = self._held.batch()
        tick.context.given = self._runtime.dictionary.rows(np.repeat(held.rows, held.weights, axis=0))
        found = [[encode(value) for value in row] for row in self._plan.run(tick.context)]
        before, self._rows = self._rows, Batch.entering(np.array(found, np.int64).reshape(len(found), self._width))
        return concatenated([-before, self._rows], self._width).consolidated()

    def size(self) -> Size:
        return Size(len(self._rows), self._rows.rows.nbytes)


def over_rows_spec(plan: Operator, used: tuple[Source, ...], source: Spec, about: Operator) -> Spec:
    """Return the spec that evaluates a part of the plan, which is `about`, over the rows of another spec."""

    def hold(runtime: Runtime) -> HeldRows:
        found = runtime.shared[held] = HeldRows(source.width)
        return found

    held = Spec("HeldRows", hold, (), (source,))
    return Spec(
        "RecomputedOverRows",
        lambda runtime: RecomputedOverRows(plan, used, runtime.shared[held], runtime),
        about.columns,
        (held,),
        about,
    )
