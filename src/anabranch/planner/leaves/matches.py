"""Matches of patterns as leaves: each leaf follows one or several windows by a matcher.

Law: after any number of ticks, the sum of a leaf's batches is the rows that its part of the plan has over the present
content of the windows and graphs.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from anabranch.algebra.operators import Source, Static, Window
from anabranch.delta.batch import PIECE, Batch, Ids, concatenated
from anabranch.delta.evaluation import FactNumbers, WindowEvaluation
from anabranch.delta.log_matcher import LogMatcher
from anabranch.delta.operators.base import Size
from anabranch.delta.patterns import BudgetExceeded, Changes, Conjunction, Fixed
from anabranch.delta.trace import Trace
from anabranch.planner.flow.feeds import Tick, TripleSlides, WindowSlides
from anabranch.planner.flow.held import WindowArrivals
from anabranch.planner.flow.runtime import Runtime
from anabranch.planner.flow.spec import Leaf
from anabranch.planner.leaves.asked_pairs import AskedPairs, EndColumns
from anabranch.planner.leaves.budgets import Budgets
from anabranch.planner.leaves.graph_facts import NOBODY, FactMaker
from anabranch.planner.patterns.kinds import GraphMatch, PatternComponent


class MatchLeaf(Leaf):
    """A source of matches, which may be far more than the window has facts at one instant. `_width` is the number of
    their columns."""

    _width: int

    def advance(self, tick: Tick) -> Batch:
        pieces = list(self.pieces(tick))
        return pieces[0] if len(pieces) == 1 else concatenated(pieces, self._width)

    @abstractmethod
    def pieces(self, tick: Tick) -> Iterator[Batch]: ...


class SlidingMatch(MatchLeaf):
    """Matches of a conjunction in a sliding window, found with the log (SPECTRA). Work follows the arrivals and
    departures."""

    def __init__(self, window: Window, conjunction: Conjunction, budgets: Budgets, runtime: Runtime) -> None:
        self._window = window
        self._budgets = budgets
        self._runtime = runtime
        self._ranged = any(pattern.ranges for pattern in conjunction.patterns)
        self.matcher = LogMatcher(conjunction, max_matches=budgets.max_matches, max_bytes=budgets.max_bytes)
        self._width = conjunction.variables

    def pieces(self, tick: Tick) -> Iterator[Batch]:
        arrived, left = tick.triples(self._window)
        numbers = self._runtime.dictionary.numbers() if self._ranged else None
        try:
            yield from self.matcher.slide_once(arrived, left, numbers)
        except BudgetExceeded as error:
            raise self._budgets.refusal(error) from None

    slides_of = "triples"

    def slides(self, slides: WindowSlides) -> Changes:
        assert isinstance(slides, TripleSlides)
        numbers = self._runtime.dictionary.numbers() if self._ranged else None
        try:
            return self.matcher.slide(slides.arrived, slides.ends, slides.lefts, numbers)
        except BudgetExceeded as error:
            raise self._budgets.refusal(error) from None

    def size(self) -> Size:
        return self.matcher.size()


class WindowMatch(MatchLeaf):
    """Matches of a conjunction in a window of which most is replaced at each instant: re-evaluates the whole window.

    Work: O(window) per slide, with a small constant: SPECTRA's re-evaluation.
    State: the matches, or the window's facts where the matches exceed one piece; then the matches are computed a second
    time when they leave."""

    def __init__(self, window: Window, conjunction: Conjunction, budgets: Budgets, runtime: Runtime) -> None:
        self._window = window
        self._evaluation = WindowEvaluation(conjunction)
        self._budgets = budgets
        self._runtime = runtime
        self._ranged = any(pattern.ranges for pattern in conjunction.patterns)
        self._held = WindowArrivals(3)
        self._width = conjunction.variables
        self._rows: Ids | None = np.empty((0, self._width), np.int64)  # None: too many, the facts are kept instead
        self._facts = np.empty((0, 3), np.int64)
        if budgets.max_bytes is None:  # else the state is measured at each slide
            self.slides_of = "triples"

    def pieces(self, tick: Tick) -> Iterator[Batch]:
        for rows in self._matches():
            yield -Batch.entering(rows)
        self._held.slide(*tick.triples(self._window))
        for rows in self._found(self._held.facts()):
            yield Batch.entering(rows)
        self._budgets.check(self.size)

    def slides(self, slides: WindowSlides) -> Changes:
        assert isinstance(slides, TripleSlides)
        base = int(slides.lefts[0])
        self._held.slide(slides.arrived, base)
        held, spans = self._held.facts(), np.column_stack((slides.lefts, slides.ends)) - base
        parts = [np.concatenate(list(self._matches()))]
        try:
            parts += self._at_once(held, spans)
        except BudgetExceeded:  # a window has more matches than one piece
            parts += [np.concatenate(list(self._found(held[first:stop]))) for first, stop in spans.tolist()]
        self._held.slide(slides.arrived[:0], int(slides.lefts[-1]))
        changed = [part for slide in pairwise(parts) for part in slide]
        sizes = np.array([len(part) for part in changed], np.int64)
        weights = np.repeat(np.tile(np.array([-1, 1], np.int64), len(spans)), sizes)
        return Changes(Batch(np.concatenate(changed), weights), np.cumsum(sizes)[1::2])

    def _at_once(self, held: Ids, spans: Ids) -> list[Ids]:
        """Return the matches of several windows of facts; those of the last become the present ones."""
        limit = min(self._budgets.max_matches or PIECE, PIECE)
        rows, ends = self._evaluation.windows(held, spans, self._numbers(), max_matches=limit)
        found = np.split(rows, ends[:-1])
        self._rows, self._facts = found[-1].copy(), held[:0]
        return found

    def _matches(self) -> Iterator[Ids]:
        """Yield the present matches, in one or more pieces."""
        if self._rows is not None:
            yield self._rows
            return
        try:
            yield from self._evaluation.pieces(self._facts, self._numbers(), max_matches=self._budgets.max_matches)
        except BudgetExceeded as error:
            raise self._budgets.refusal(error) from None

    def _numbers(self) -> FactNumbers | None:
        return self._runtime.dictionary.numbers() if self._ranged else None

    def _found(self, facts: Ids) -> Iterator[Ids]:
        """Yield the matches among facts, which become the present ones."""
        self._rows, self._facts = None, facts
        found = self._matches()
        first = next(found)
        yield first
        several = False
        for rows in found:
            several = True
            yield rows
        if not several:
            self._rows, self._facts = first, facts[:0]

    def size(self) -> Size:
        rows, cells = (0, 0) if self._rows is None else (len(self._rows), self._rows.nbytes)
        return Size(rows, cells + self._facts.nbytes + self._held.nbytes)


class MergedMatch(MatchLeaf):
    """Matches of a conjunction in several windows and static graphs, seen as one set of triples.

    State: how often each triple is present, over all its arrivals in all parts; the matcher sees it once.
    Work: O(arrivals and departures), and O(graph) when a static graph changes."""

    def __init__(self, parts: Sequence[Source], conjunction: Conjunction, budgets: Budgets, runtime: Runtime) -> None:
        self._parts = tuple(dict.fromkeys(parts))
        self._budgets = budgets
        self._runtime = runtime
        self._ranged = any(pattern.ranges for pattern in conjunction.patterns)
        self._fits = fitting(conjunction)
        self._asked: list[list[Any]] = [
            [runtime.dictionary.decode(place.id) if isinstance(place, Fixed) else None for place in pattern.places]
            for pattern in conjunction.patterns
        ]
        self._counts = Trace(3, (0, 1, 2))
        self._held = {part: WindowArrivals(3) for part in self._parts if isinstance(part, Window)}
        self._static: dict[Source, tuple[Hashable, Ids]] = {}
        self._width = conjunction.variables
        self.matcher = LogMatcher(conjunction, max_matches=budgets.max_matches, max_bytes=budgets.max_bytes)

    def pieces(self, tick: Tick) -> Iterator[Batch]:
        came: list[Ids] = []
        went: list[Ids] = []
        for part in self._parts:
            if isinstance(part, Static):
                self._refresh(part, tick, came, went)
            else:
                arrived, left = tick.triples(part)
                went.append(self._fits(self._held[part].slide(arrived, left)))
                came.append(self._fits(arrived))
        batches = [Batch.entering(one) for one in came] + [-Batch.entering(one) for one in went]
        touched = self._counts.add(concatenated(batches, 3))
        removed = touched.rows[(touched.before > 0) & (touched.after == 0)]
        added = touched.rows[(touched.before == 0) & (touched.after > 0)]
        numbers = self._runtime.dictionary.numbers() if self._ranged else None
        try:
            yield from self.matcher.change_in_pieces(removed, added, numbers)
        except BudgetExceeded as error:
            raise self._budgets.refusal(error) from None
        self._budgets.check(self.size)

    def _refresh(self, part: Static, tick: Tick, came: list[Ids], went: list[Ids]) -> None:
        signature = tick.signature((part,))
        known = self._static.get(part)
        if known is not None and known[0] == signature:
            return
        if known is not None:
            went.append(known[1])
        encode, graph = self._runtime.dictionary.encode, tick.context.triples(part)
        wanted = dict.fromkeys(triple for terms in self._asked for triple in graph.match(*terms))
        facts = np.array([[encode(term) for term in triple] for triple in wanted], np.int64).reshape(len(wanted), 3)
        self._static[part] = (signature, facts)
        came.append(facts)

    def size(self) -> Size:
        kept, counts = self.matcher.size(), self._counts.size()
        held = sum(one.nbytes for one in self._held.values())
        return Size(kept.rows, kept.bytes + counts.bytes + held)


class ElementMatch(MatchLeaf):
    """Matches of one component of a property-graph pattern. A changed element leaves and enters again.

    Work: O(elements that changed) to make facts of them, plus the work for their matches."""

    def __init__(
        self,
        window: Window,
        match: GraphMatch,
        component: PatternComponent,
        budgets: Budgets,
        runtime: Runtime,
        asked: Mapping[EndColumns, AskedPairs] = NOBODY,
    ) -> None:
        self._window = window
        self._width = len(component.picks)
        self._budgets = budgets
        dictionary, context = runtime.dictionary, runtime.context
        self._facts = FactMaker(match, dictionary, context, component, asked, budgets.max_bytes)
        most_matches, most_bytes, telling = budgets.max_matches, budgets.max_bytes, component.telling
        self.matcher = LogMatcher(
            component.conjunction, max_matches=most_matches, max_bytes=most_bytes, telling=telling
        )

    def pieces(self, tick: Tick) -> Iterator[Batch]:
        carried = tick.relationships(self._window) if self._facts.follows and not tick.strict else None
        try:
            removed, added = self._facts.facts(tick.elements(self._window), carried)
            yield from self.matcher.change_in_pieces(removed, added)
        except BudgetExceeded as error:
            raise self._budgets.refusal(error) from None
        self._budgets.check(self.size)

    def size(self) -> Size:
        kept, trails = self.matcher.size(), self._facts.size()
        return Size(kept.rows + trails.rows, kept.bytes + trails.bytes)


def fitting(conjunction: Conjunction) -> Callable[[Ids], Ids]:
    """Return a filter that keeps the facts which fit the constants of one of the patterns."""
    wanted = [
        [(at, place.id) for at, place in enumerate(pattern.places) if isinstance(place, Fixed)]
        for pattern in conjunction.patterns
    ]
    if not all(wanted):
        return lambda facts: facts

    def fits(facts: Ids) -> Ids:
        mask = np.zeros(len(facts), np.bool_)
        for constants in wanted:
            own = np.ones(len(facts), np.bool_)
            for at, constant in constants:
                own &= facts[:, at] == constant
            mask |= own
        return facts if mask.all() else np.ascontiguousarray(facts[mask])

    return fits
