"""A query's rows, maintained by operators on changes.

Law: after `advance` the rows are those of the plain query over the present windows; the rows that entered and left are
the differences, as bags, to the instant before. Rows are compared by what an answer shows of them.

State: that of the operators, and the bag of rows by their ids; decoded rows are kept only where all rows are listed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from anabranch.delta.batch import Batch, Ids
from anabranch.delta.operators.base import Size
from anabranch.delta.operators.ordering import OrderedIdRow, OrderedSlice
from anabranch.delta.trace import Trace
from anabranch.engine.answers import AnswerRow
from anabranch.planner.flow.feeds import Tick, TripleSlides
from anabranch.planner.flow.flow import ClockReader, Flow
from anabranch.planner.flow.runtime import Runtime
from anabranch.planner.flow.spec import Spec
from anabranch.planner.queries import QueryPlan
from anabranch.planner.specs.values import canonical_order


@dataclass(frozen=True, slots=True)
class SlideDifferences:
    """The changes of a query's rows at several slides."""

    answer: IncrementalAnswer
    batch: Batch
    slide_of: Ids

    @property
    def rows(self) -> int:
        return len(self.batch)

    def differences(self, sign: int) -> Iterator[tuple[int, list[AnswerRow]]]:
        """Yield the slides at which rows entered, or with sign -1 left, with these rows."""
        starts = np.flatnonzero(np.diff(self.slide_of, prepend=-1))
        stops = np.append(starts[1:], len(self.batch))
        wanted = self.batch.weights * sign > 0
        some = np.add.reduceat(wanted, starts) > 0 if len(starts) else starts
        for start, stop in zip(starts[some].tolist(), stops[some].tolist(), strict=True):
            rows = self.answer.difference(self.batch.part(start, stop), sign)
            if rows:
                yield int(self.slide_of[start]), rows


_FEW = 64


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
        self._ordered: OrderedSlice | None = None  # the listed rows, kept in order
        if plan.listing is not None:
            ordered = self.flow.part(plan.listing.ordered)
            assert isinstance(ordered, OrderedSlice)
            self._ordered = ordered
        elif listed:
            self._ordered = self._canonical = OrderedSlice(width, self._order, 0, None)
        self._shown: dict[OrderedIdRow, AnswerRow] = {}  # decoded rows of the answer, and of rows that left
        self._rows: list[AnswerRow] = []  # all of them, in order, at the revision of `_ordered`
        self._revision = 0

    def advance(self, tick: Tick) -> None:
        batch = self.flow.advance(tick).consolidated()
        self._bag.add(batch)
        self._count += int(batch.weights.sum())
        self._changed = batch
        if self._canonical is not None:
            self._canonical.take(batch)

    def advance_slides(self, slides: TripleSlides) -> SlideDifferences:
        """Advance by several slides; return the rows that entered and left at each."""
        batch, slide_of = self.flow.advance_slides(slides)
        self._bag.add(batch)
        self._count += int(batch.weights.sum())
        last = len(slides.ends) - 1
        self._changed = batch.part(int(np.searchsorted(slide_of, last)), len(batch))
        if self._canonical is not None:
            self._canonical.apply(batch)
        return SlideDifferences(self, batch, slide_of)

    # --- what the last advance changed ---

    def entered(self) -> list[AnswerRow]:
        return self._difference(1)

    def left(self) -> list[AnswerRow]:
        return self._difference(-1)

    def _difference(self, sign: int) -> list[AnswerRow]:
        return self.difference(self._changed, sign)

    def difference(self, changed: Batch, sign: int) -> list[AnswerRow]:
        """Return the rows of a change that entered, or with sign -1 left, in the order of their values."""
        batch = changed if self._terms else self._by_looks(changed)
        wanted = batch.weights * sign > 0
        return self._sorted(np.repeat(batch.rows[wanted], np.abs(batch.weights[wanted]), axis=0))

    def _sorted(self, ids: Ids) -> list[AnswerRow]:
        """Decode rows, in the order of their values."""
        rows = self._dictionary.rows(ids)
        if len(rows) < 2:
            return rows
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
        """Return all rows, in the order that the query asks for, else in the order of their values.

        A row that stays is the same tuple from instant to instant where rows are listed, and the list is the same
        where nothing changed.
        """
        ordered = self._ordered
        if ordered is None:
            batch = self._bag.rows()
            return self._sorted(np.repeat(batch.rows, batch.weights, axis=0))
        if ordered.revision != self._revision:
            self._rows = self._decoded(self._keys(ordered))
            self._revision = ordered.revision
        return self._rows

    def _keys(self, ordered: OrderedSlice) -> Iterable[OrderedIdRow]:
        """Return the listed rows as ids, in their order."""
        listing = self.plan.listing
        if listing is None:
            return ordered.ordered()
        picks = listing.picks
        keys = (tuple([row[pick] for pick in picks]) for row in ordered.ordered())
        return dict.fromkeys(keys) if listing.distinct else keys

    def _decoded(self, keys: Iterable[OrderedIdRow]) -> list[AnswerRow]:
        keys, shown = list(keys), self._shown
        missing = list(dict.fromkeys([key for key in keys if key not in shown]))
        if missing:
            made = self._dictionary.rows(np.array(missing, np.int64).reshape(len(missing), -1))
            shown.update(zip(missing, made, strict=True))
        if len(shown) > 2 * len(keys) + _FEW:  # most of them have left
            self._shown = shown = {key: shown[key] for key in keys}
        return [shown[key] for key in keys]

    def sizes(self) -> list[tuple[Spec, Size]]:
        return list(self.flow.sizes())
