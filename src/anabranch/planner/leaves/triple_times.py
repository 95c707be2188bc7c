"""Times of triples: the instant at which each triple of some windows last came, for C-SPARQL's timestamp().

Law: {(variables of the pattern, latest arrival time of the triple) : a triple in one of the windows that fits the
pattern}.

State: the arrivals inside that fit the pattern, and the latest of each triple, for each window.
Work per slide: O(arrivals and departures).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from anabranch.algebra.operators import Window
from anabranch.algebra.triples import TermPlace, Var
from anabranch.delta.batch import Batch, Ids, Mask, concatenated
from anabranch.delta.operators.base import Size
from anabranch.delta.trace import Trace, distinct_rows
from anabranch.planner.flow.feeds import Tick
from anabranch.planner.flow.runtime import Runtime
from anabranch.planner.flow.spec import Leaf

_NUMBER, _TIME = 3, 4  # columns of an arrival, after the triple
_NEVER = np.iinfo(np.int64).min


class _LatestArrivals:
    """The arrivals of one window that fit a pattern: (subject, predicate, object, number, time)."""

    def __init__(self) -> None:
        self._blocks: deque[Ids] = deque()
        self._arrived = 0
        self.latest = Trace(5, (0, 1, 2))

    def taken(self, facts: Ids, times: Ids, fits: Mask) -> Ids:
        """Number all arrivals of a slide; return those that fit."""
        numbers = np.arange(self._arrived, self._arrived + len(facts))
        self._arrived += len(facts)
        return np.column_stack((facts, numbers, times))[fits]

    def dropped(self, left: int) -> Ids:
        """Remove and return the arrivals that have left, of all that ever came the first `left`."""
        gone = [np.empty((0, 5), np.int64)]
        while self._blocks:
            block = self._blocks.popleft()
            count = int(np.searchsorted(block[:, _NUMBER], left))
            gone.append(block[:count])
            if count < len(block):
                self._blocks.appendleft(block[count:])
                break
        return np.concatenate(gone)

    def add(self, came: Ids) -> None:
        """Add arrivals, in their order: the last of each triple is its latest."""
        if not len(came):
            return
        self._blocks.append(came)
        order = np.lexsort(came[:, _NUMBER::-1].T)
        ordered = came[order]
        is_last = np.ones(len(came), np.bool_)
        is_last[:-1] = (ordered[1:, :3] != ordered[:-1, :3]).any(axis=1)
        new = np.ascontiguousarray(ordered[is_last])
        old = self.latest.probe(np.ascontiguousarray(new[:, :3])).rows
        self.latest.add(concatenated([-Batch.entering(old), Batch.entering(new)], 5))

    def remove(self, gone: Ids) -> None:
        """Remove arrivals that have left; a triple whose latest arrival has left is no longer there."""
        if len(gone):
            is_latest = self.latest.weights_of(gone) > 0
            self.latest.add(-Batch.entering(np.ascontiguousarray(gone[is_latest])))

    def size(self) -> Size:
        held = self.latest.size()
        return Size(held.rows, held.bytes + sum(block.nbytes for block in self._blocks))


class TripleTimes(Leaf):
    """The variables of a triple pattern with the time of the triple, in several windows the latest of its times."""

    def __init__(self, windows: Sequence[Window], places: Sequence[TermPlace], runtime: Runtime) -> None:
        self._runtime = runtime
        self._windows = {window: _LatestArrivals() for window in windows}
        firsts: dict[str, int] = {}
        self._constants: list[tuple[int, int]] = []
        self._equal: list[tuple[int, int]] = []
        for at, place in enumerate(places):
            if not isinstance(place, Var):
                self._constants.append((at, runtime.dictionary.encode(place)))
            elif place.name in firsts:
                self._equal.append((firsts[place.name], at))
            else:
                firsts[place.name] = at
        self._picks = list(firsts.values())

    def advance(self, tick: Tick) -> Batch:
        moved: list[tuple[_LatestArrivals, Ids, int]] = []
        for window, arrivals in self._windows.items():
            facts, left = tick.triples(window)
            moved.append((arrivals, arrivals.taken(facts, tick.times(window), self._fits(facts)), left))
        gone = [arrivals.dropped(left) for arrivals, _, left in moved]
        touched = distinct_rows(np.concatenate([*(came[:, :3] for _, came, _ in moved), *(one[:, :3] for one in gone)]))
        before = self._times(touched)
        for (arrivals, came, left), leaving in zip(moved, gone, strict=True):
            arrivals.add(came)
            arrivals.remove(np.concatenate((leaving, arrivals.dropped(left))))
        after = self._times(touched)
        changed = np.flatnonzero(before != after)
        old, new = (changed[times[changed] != _NEVER] for times in (before, after))
        return concatenated(
            [-self._rows(touched[old], before[old]), self._rows(touched[new], after[new])], len(self._picks) + 1
        )

    def _fits(self, facts: Ids) -> Mask:
        fits = np.ones(len(facts), np.bool_)
        for at, constant in self._constants:
            fits &= facts[:, at] == constant
        for one, other in self._equal:
            fits &= facts[:, one] == facts[:, other]
        return fits

    def _times(self, facts: Ids) -> Ids:
        """Return the latest time of each triple; `_NEVER` for one that is in no window."""
        times = np.full(len(facts), _NEVER)
        for arrivals in self._windows.values():
            found = arrivals.latest.probe(facts)
            np.maximum.at(times, found.asked, found.rows[:, _TIME])
        return times

    def _rows(self, facts: Ids, times: Ids) -> Batch:
        different, places = np.unique(times, return_inverse=True)
        ids = self._runtime.dictionary.encode_all(different.tolist())
        return Batch.entering(np.ascontiguousarray(np.column_stack((facts[:, self._picks], ids[places]))))

    def size(self) -> Size:
        sizes = [arrivals.size() for arrivals in self._windows.values()]
        return Size(sum(one.rows for one in sizes), sum(one.bytes for one in sizes))
