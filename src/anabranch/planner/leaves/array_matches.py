"""Matches of property-graph patterns, with the union of the window, conditions and facts on arrays.

Law: as `ElementMatch`, whose rows hold whole elements; here they hold versions of elements, with the properties that
the query reads.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from anabranch.algebra.operators import Window
from anabranch.delta.batch import Batch, Ids
from anabranch.delta.graph_window import MOST_KINDS
from anabranch.delta.log_matcher import LogMatcher
from anabranch.delta.operators.base import Size
from anabranch.delta.patterns import KIND, BudgetExceeded, Changes
from anabranch.planner.flow.feeds import GraphSlides, Tick, WindowSlides
from anabranch.planner.flow.runtime import Runtime
from anabranch.planner.flow.vectors import ranks
from anabranch.planner.leaves.budgets import Budgets
from anabranch.planner.leaves.matches import MatchLeaf
from anabranch.planner.leaves.window_elements import ElementKind, WindowElements, has_room
from anabranch.planner.patterns.kinds import GraphMatch, NodeKind, PatternComponent
from anabranch.planner.reads import properties_of

_CONTENT, _RANK = 2, 3  # columns of a node's facts


def reason_for_objects(match: GraphMatch, component: PatternComponent) -> str | None:
    """Return why a component is matched with objects for its elements; None: it is matched on arrays."""
    kinds = match.kinds_of(component)
    elements = [kind for kind in kinds if isinstance(kind, ElementKind)]
    if len(elements) < len(kinds):
        return "it walks paths"
    return None if has_room(elements) else f"more than {MOST_KINDS} kinds of elements"


class ArrayMatch(MatchLeaf):
    """Matches of one component of a property-graph pattern. A change of what is read of an element lets its matches
    leave and enter again.

    Work: O(elements of arriving and leaving events), on arrays, plus the work for their matches."""

    def __init__(
        self, window: Window, match: GraphMatch, component: PatternComponent, budgets: Budgets, runtime: Runtime
    ) -> None:
        self._dictionary = runtime.dictionary
        self._width = len(component.picks)
        self._budgets = budgets
        kinds = [kind for kind in match.kinds_of(component) if isinstance(kind, ElementKind)]
        self._elements = WindowElements.of(window, kinds, runtime)
        self._own = self._elements.add(kinds)
        conditions = [properties_of(one, kind.variable) or () for kind in kinds for one in kind.conditions]
        if all(len(keys) == 1 for keys in conditions) and not runtime.strict:
            self.slides_of = "elements"
        self._ranked = [(kind.number, kind.ranked) for kind in kinds if isinstance(kind, NodeKind) and kind.ranked]
        most_matches, most_bytes, telling = budgets.max_matches, budgets.max_bytes, component.telling
        self.matcher = LogMatcher(
            component.conjunction, max_matches=most_matches, max_bytes=most_bytes, telling=telling
        )

    def pieces(self, tick: Tick) -> Iterator[Batch]:
        removed, added = self._elements.facts(tick)
        try:
            if len(removed) or len(added):
                own = self._with_ranks(self._own.of(removed)), self._with_ranks(self._own.of(added))
                yield from self.matcher.change_in_pieces(*own)
            else:
                yield Batch.empty(self._width)
        except BudgetExceeded as error:
            raise self._budgets.refusal(error) from None
        self._budgets.check(self.size)

    def slides(self, slides: WindowSlides) -> Changes:
        assert isinstance(slides, GraphSlides)
        facts = self._elements.slides(slides)
        removed, added = self._with_ranks(facts.removed), self._with_ranks(facts.added)
        try:
            changes = self.matcher.change_slides(removed, added, facts.removed_ends, facts.added_ends)
        except BudgetExceeded as error:
            raise self._budgets.refusal(error) from None
        self._budgets.check(self.size)
        return changes

    def _with_ranks(self, facts: Ids) -> Ids:
        """Write the ranks of nodes that are compared into their facts; those of other patterns are in other facts."""
        for number, key in self._ranked:
            own = np.flatnonzero(facts[:, KIND] == number)
            values = self._dictionary.parts(facts[own, _CONTENT], key)
            if values is not None:
                facts[own, _RANK] = ranks(values, self._dictionary)
        return facts

    def size(self) -> Size:
        kept = self.matcher.size()
        return Size(kept.rows, kept.bytes + (self._elements.nbytes if self._own.is_first else 0))
