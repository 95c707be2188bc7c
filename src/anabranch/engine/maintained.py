"""A query's rows, maintained by operators on changes.

Law: after `advance` the rows are those of the plain query over the present windows; the rows that entered and left are
the differences, as bags, to the instant before. Rows are compared by what an answer shows of them.

State: that of the operators, and the bag of rows by their ids; decoded rows are kept only where all rows are listed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from anabranch.delta.batch import Batch, Ids
from anabranch.delta.operators.base import Size
from anabranch.delta.operators.ordering import OrderedSlice
from anabranch.delta.trace import Trace
from anabranch.engine.answers import AnswerRow
from anabranch.planner.flow.feeds import Tick
from anabranch.planner.flow.flow import ClockReader, Flow
from anabranch.planner.flow.runtime import Runtime
from anabranch.planner.flow.spec import Spec
from anabranch.planner.queries import QueryPlan
from anabranch.planner.specs.values import canonical_order


class IncrementalAnswer:
    """One query's running operators. `listed`: its answers are all rows, so these are kept in order."""

    def __init__(self, plan: QueryPlan, runtime: Runtime, listed: bool, clock: ClockReader | None = None) -> None:
        assert plan.root is not None, "a plan without operators is evaluated anew"
        self.plan = plan
        self._dictionary = runtime.dictionary
        self._terms = plan.terms
        self.flow = Flow(plan.root, runtime, clock)
        width = plan.root.width
        self._bag = Trace(width, tuple(range(width)))
        self._count = 0
        self._changed = Batch.empty(width)
        self._order = canonical_order(runtime)
        self._canonical: OrderedSlice | None = None
        if listed and plan.listing is None:
            self._canonical = OrderedSlice(width, self._order, 0, None)
        self._shown: dict[tuple[int, ...], AnswerRow] = {}  # decoded rows, as long as they are part of the answer
        self._list: list[AnswerRow] | None = None  # all rows, until something changes

    def advance(self, tick: Tick) -> None:
        batch = self.flow.advance(tick).consolidated()
        self._changed = batch
        if not len(batch):
            # Rows that stay may still change places.
            self._list = self._list if self.plan.listing is None else None
            return
        touched = self._bag.add(batch)
        self._count += int(batch.weights.sum())
        self._list = None
        if self._canonical is not None:
            self._canonical.take(batch)
        if self._shown:
            for row in map(tuple, touched.rows[touched.after == 0].tolist()):
                self._shown.pop(row, None)

    # --- what the last advance changed ---

    def entered(self) -> list[AnswerRow]:
        return self._difference(1)

    def left(self) -> list[AnswerRow]:
        return self._difference(-1)

    def _difference(self, sign: int) -> list[AnswerRow]:
        batch = self._changed if self._terms else self._by_looks(self._changed)
        wanted = batch.weights * sign > 0
        return self._sorted(np.repeat(batch.rows[wanted], np.abs(batch.weights[wanted]), axis=0))

    def _sorted(self, ids: Ids) -> list[AnswerRow]:
        """Decode rows, in the order of their values."""
        rows = self._dictionary.rows(ids)
        keys = self._order(list(map(tuple, ids.tolist())))
        return [rows[place] for place in sorted(range(len(rows)), key=keys.__getitem__)]

    def _by_looks(self, batch: Batch) -> Batch:
        """Cancel rows that an answer shows alike though their ids differ, such as 1 and 1.0."""
        if not len(batch):
            return batch
        looks = self._dictionary.looks(batch.rows)
        if (looks == batch.rows).all():
            return batch
        sums: Counter[tuple[int, ...]] = Counter()
        shown: dict[tuple[tuple[int, ...], bool], list[tuple[int, ...]]] = {}
        for look, row, weight in zip(
            map(tuple, looks.tolist()), map(tuple, batch.rows.tolist()), batch.weights.tolist(), strict=True
        ):
            sums[look] += weight
            shown.setdefault((look, weight > 0), []).extend([row] * abs(weight))
        left = [
            (row, 1 if weight > 0 else -1)
            for look, weight in sums.items()
            if weight
            for row in shown[look, weight > 0][-abs(weight) :]
        ]
        return Batch.of([row for row, _ in left], [weight for _, weight in left], batch.rows.shape[1])

    # --- all rows ---

    def __len__(self) -> int:
        return self._count

    def rows(self) -> list[AnswerRow]:
        """Return all rows, in the order that the query asks for, else in the order of their values."""
        if self._list is None:
            self._list = self._listed()
        return self._list.copy()

    def _listed(self) -> list[AnswerRow]:
        listing = self.plan.listing
        if listing is not None:
            ordered = self.flow.part(listing.ordered)
            assert isinstance(ordered, OrderedSlice)
            picks = listing.picks
            keys: Iterable[tuple[int, ...]] = (tuple([row[pick] for pick in picks]) for row in ordered.ordered())
            if listing.distinct:
                keys = dict.fromkeys(keys)
            return self._decoded(list(keys))
        if self._canonical is not None:
            return self._decoded(list(self._canonical.ordered()))
        batch = self._bag.rows()
        return self._sorted(np.repeat(batch.rows, batch.weights, axis=0))

    def _decoded(self, keys: list[tuple[int, ...]]) -> list[AnswerRow]:
        """Return the rows of ids as values; a row that stays is the same object."""
        shown = self._shown
        missing = [key for key in keys if key not in shown]
        if missing:
            missing = list(dict.fromkeys(missing))
            made = self._dictionary.rows(np.array(missing, np.int64).reshape(len(missing), -1))
            shown.update(zip(missing, made, strict=True))
        return [shown[key] for key in keys]

    def sizes(self) -> list[tuple[Spec, Size]]:
        return list(self.flow.sizes())
