"""Leaves other than patterns: rows of the query itself, parts on the plain evaluator, readings of the clock.

Invariant: the sum of a leaf's changes is its rows at the instant.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from anabranch.algebra import expressions as ex
from anabranch.algebra.operators import Operator, RuleRows, Static
from anabranch.algebra.walk import is_volatile, sources
from anabranch.delta.batch import Batch, concatenated
from anabranch.delta.operators.base import Size
from anabranch.model.values import Value
from anabranch.planner.flow.feeds import Tick
from anabranch.planner.flow.runtime import Runtime
from anabranch.planner.flow.spec import Leaf
from anabranch.snapshot import compile_plan
from anabranch.snapshot.expressions import compile_expression
from anabranch.snapshot.rdf.static import no_more_than

_NEVER: Hashable = object()


class ConstantRows(Leaf):
    """Rows that the query text contains; they enter at the first tick."""

    def __init__(self, rows: Sequence[Sequence[Value]], width: int, runtime: Runtime) -> None:
        ids = [[runtime.dictionary.encode(value) for value in row] for row in rows]
        self._batch: Batch | None = Batch.entering(np.array(ids, np.int64).reshape(len(rows), width))
        self._width = width

    def advance(self, tick: Tick) -> Batch:
        batch, self._batch = self._batch, None
        return Batch.empty(self._width) if batch is None else batch


class TableLeaf(Leaf):
    """The rows of a table that changes between ticks.

    Work: O(rows of the table) at a tick after a change, else none."""

    def __init__(self, table: RuleRows, width: int, runtime: Runtime) -> None:
        self._table = table
        self._runtime = runtime
        self._revision = -1
        self._rows = Batch.empty(width)

    def advance(self, tick: Tick) -> Batch:
        width = self._rows.rows.shape[1]
        if self._revision == self._table.revision:
            return Batch.empty(width)
        self._revision = self._table.revision
        found = [self._runtime.dictionary.encode_all(row) for row in self._table.held.values()]
        before, self._rows = self._rows, Batch.entering(np.array(found, np.int64).reshape(len(found), width))
        return concatenated([-before, self._rows], width).consolidated()

    def size(self) -> Size:
        return Size(len(self._rows), self._rows.rows.nbytes)


class RecomputedRows(Leaf):
    """A part of the plan on the plain evaluator: recomputes its rows whenever its sources may have changed, and returns
    the difference. `most`: how many rows it may have as a part over static graphs.

    Work: that of the plain evaluation, plus O(rows)."""

    def __init__(self, plan: Operator, most: int | None, runtime: Runtime) -> None:
        self._plan = compile_plan(plan)
        self._most = most
        self._width = len(plan.columns)
        self._sources = sources(plan)
        self._volatile = is_volatile(plan)
        self._runtime = runtime
        self._signature: Hashable = _NEVER
        self._rows = Batch.empty(self._width)

    def advance(self, tick: Tick) -> Batch:
        if not tick.settled and self._signature is not _NEVER:
            return Batch.empty(self._width)
        signature = tick.signature(self._sources)
        if signature == self._signature and not self._volatile:
            return Batch.empty(self._width)
        self._signature = signature
        encode = self._runtime.dictionary.encode
        rows: Iterable[tuple[Value, ...]] = self._plan.run(tick.context)
        if self._most is not None:
            graphs = [len(tick.context.triples(one)) for one in self._sources if isinstance(one, Static)]
            rows = no_more_than(max([self._most, *graphs]), rows)
        found = [[encode(value) for value in row] for row in rows]
        before, self._rows = self._rows, Batch.entering(np.array(found, np.int64).reshape(len(found), self._width))
        return concatenated([-before, self._rows], self._width).consolidated()

    def size(self) -> Size:
        return Size(len(self._rows), self._rows.rows.nbytes)


class ClockReadings(Leaf):
    """One row of values that depend on the instant only: the current time, and when windows begin and end.

    Rows joined with it are retracted and given again at each instant. Work: O(values)."""

    def __init__(self, readings: Sequence[ex.Expression], runtime: Runtime) -> None:
        self._readings = [compile_expression(one, ()) for one in readings]
        self._runtime = runtime
        self._row: Batch | None = None

    def advance(self, tick: Tick) -> Batch:
        width = len(self._readings)
        found = self._runtime.dictionary.encode_all([read((), tick.context) for read in self._readings])
        before, self._row = self._row, Batch.entering(np.array(found, np.int64).reshape(1, width))
        return self._row if before is None else concatenated([-before, self._row], width).consolidated()
