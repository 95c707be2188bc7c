"""A query's rows, maintained by operators on changes.

Law: after `advance` the rows are those of the plain query over the present windows; the rows that entered and left are
the differences, as bags, to the instant before. Rows are compared by what an answer shows of them.

State: that of the operators, and the bag of rows by their ids; decoded rows are kept only where all rows are listed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from anabranch.delta.batch import Batch, Ids
from anabranch.delta.operators.base import Size
from anabranch.delta.operators.ordering import OrderedSlice
from anabranch.delta.patterns import Changes
from anabranch.delta.trace import Trace
from anabranch.engine.answers import AnswerRow
from anabranch.planner.flow.feeds import Tick, WindowSlides
from anabranch.planner.flow.flow import ClockReader, Flow
from anabranch.planner.flow.runtime import Runtime
from anabranch.planner.flow.spec import Spec
from anabranch.planner.queries import QueryPlan
from anabranch.planner.specs.values import canonical_order

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
        self._bag = Trace(width, tuple(range(width)))  # the rows, where they are not listed
        self._count = 0
        self._changed = Batch.empty(width)
        self._order = canonical_order(range(width), runtime)
        self._canonical: OrderedSlice | None = None
        self._ordered: OrderedSlice | None = None  # the listed rows, kept in order
        if plan.listing is not None:
            ordered = self.flow.part(plan.listing.ordered)
            assert isinstance(ordered, OrderedSlice)
            self._ordered = ordered
        elif listed:
            self._ordered = self._canonical = OrderedSlice(width, self._order)
        if self._ordered is not None:
            self._ordered.lists = True
        self._different: dict[bytes, AnswerRow] = {}  # listed rows by their ids, where each is listed once
        self._rows: list[AnswerRow] = []  # all of them, in order, at the revision of `_ordered`
        self._revision = 0

    def advance(self, tick: Tick) -> None:
        self._changed = batch = self.flow.advance(tick)
        if not len(batch):
            return
        self._count += int(batch.weights.sum())
        if self._canonical is not None:
            self._canonical.apply(batch)
        elif self._ordered is None:
            self._bag.add(batch.consolidated())

    def advance_slides(self, slides: WindowSlides) -> Changes:
        """Advance by several slides; return the changes of the rows at each."""
        changes = self.flow.advance_slides(slides)
        batch, ends = changes
        self._count += int(batch.weights.sum())
        self._changed = batch.part(int(ends[-2]) if len(ends) > 1 else 0, len(batch))
        if self._canonical is not None:
            self._canonical.apply_slides(changes)
        elif self._ordered is None:
            self._bag.add(batch.consolidated())
        return changes

    def snapshots(self, slides: WindowSlides) -> Iterator[tuple[int, list[AnswerRow]]]:
        """Advance by several slides; yield those at which rows may have changed, with all rows."""
        self.advance_slides(slides)
        ordered = self._ordered
        assert ordered is not None, "rows are listed"
        if ordered.listings is None:
            return
        found = ordered.listings
        self._show(ordered, found.rows)
        kept = ordered.kept
        shown = list(map(kept.__getitem__, found.rows.tolist()))
        for slide, start, stop in zip(found.slides.tolist(), found.starts.tolist(), found.stops.tolist(), strict=True):
            self._rows = self._listed(shown[start:stop])
            yield slide, self._rows
        self._revision = ordered.revision

    def differences(self, changes: Changes, sign: int) -> Iterator[tuple[int, list[AnswerRow]]]:
        """Yield the slides at which rows entered, or with sign -1 left, with these rows."""
        batch, slide_of = changes.batch, changes.slide_of()
        whole = Batch(np.column_stack((slide_of, batch.rows)), batch.weights).consolidated()
        if not self._terms and (self._dictionary.looks(whole.rows[:, 1:]) != whole.rows[:, 1:]).any():
            starts = np.flatnonzero(np.diff(whole.rows[:, 0], prepend=-1)).tolist()
            for start, stop in zip(starts, [*starts[1:], len(whole)], strict=True):
                part = Batch(np.ascontiguousarray(whole.rows[start:stop, 1:]), whole.weights[start:stop])
                yield int(whole.rows[start, 0]), self.difference(part, sign)
            return
        wanted = whole.weights * sign > 0
        ids = np.repeat(whole.rows[wanted], np.abs(whole.weights[wanted]), axis=0)
        slide_of, rows = ids[:, 0], self._sorted(np.ascontiguousarray(ids[:, 1:]), ids[:, 0])
        starts = np.flatnonzero(np.diff(slide_of, prepend=-1)).tolist()
        for start, stop in zip(starts, [*starts[1:], len(rows)], strict=False):
            yield int(slide_of[start]), rows[start:stop]

    # --- what the last advance changed ---

    def entered(self) -> list[AnswerRow]:
        return self._difference(1)

    def left(self) -> list[AnswerRow]:
        return self._difference(-1)

    def _difference(self, sign: int) -> list[AnswerRow]:
        return self.difference(self._changed, sign)

    def difference(self, changed: Batch, sign: int) -> list[AnswerRow]:
        """Return the rows of a change that entered, or with sign -1 left, in the order of their values."""
        if not len(changed):
            return []
        batch = changed.consolidated()
        batch = batch if self._terms else self._by_looks(batch)
        wanted = batch.weights * sign > 0
        return self._sorted(np.repeat(batch.rows[wanted], np.abs(batch.weights[wanted]), axis=0))

    def _sorted(self, ids: Ids, parts: Ids | None = None) -> list[AnswerRow]:
        """Decode rows, in the order of their values; rows of several parts, which stand in order, part by part."""
        if len(ids) < 2:
            return self._dictionary.rows(ids)
        if parts is None:
            parts = np.zeros(len(ids), np.int64)
        begins = np.diff(parts, prepend=parts[0] - 1, append=parts[-1] + 1) != 0
        among = np.flatnonzero(~(begins[:-1] & begins[1:]))  # a row that is alone in its part stands where it must
        if len(among):
            several = ids[among]
            keys = (parts[among], *self._order.words(several).T, *several.T)
            ids[among] = several[np.lexsort(keys[::-1])]
        return self._dictionary.rows(ids)

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
            listed = ordered.listed()
            self._show(ordered, listed)
            self._rows = self._listed(list(map(ordered.kept.__getitem__, listed.tolist())))
            self._revision = ordered.revision
        return self._rows

    def _show(self, ordered: OrderedSlice, rows: Ids) -> None:
        """Decode the rows with these numbers that were not shown before."""
        asked = np.zeros(len(ordered.kept), np.bool_)
        asked[rows] = True
        kept = ordered.kept
        missing = [row for row in np.flatnonzero(asked).tolist() if kept[row] is None]
        if not missing:
            return
        ids, listing = ordered.ids(np.array(missing)), self.plan.listing
        if listing is not None:
            ids = np.ascontiguousarray(ids[:, listing.picks])
        made = self._dictionary.rows(ids)
        if listing is not None and listing.distinct:
            if len(self._different) > 2 * len(ordered.kept) + _FEW:  # most of them have left
                self._different = {}
            made = [self._different.setdefault(one.tobytes(), row) for one, row in zip(ids, made, strict=True)]
        for row, shown in zip(missing, made, strict=True):
            kept[row] = shown

    def _listed(self, rows: list[AnswerRow]) -> list[AnswerRow]:
        if self.plan.listing is None or not self.plan.listing.distinct:
            return rows
        return list({id(row): row for row in rows}.values())

    def sizes(self) -> list[tuple[Spec, Size]]:
        return list(self.flow.sizes())
