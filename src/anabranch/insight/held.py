"""The content of a query's windows at an instant, element by element, with the arrivals of each.

Invariant: an element is listed once per stream, however often it arrived; it is inside as long as one of its arrivals
is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from anabranch.algebra.operators import Window
from anabranch.insight.elements import ElementUnit, Thing
from anabranch.insight.replay import Replay, ReplayInstant
from anabranch.insight.shapes import Element
from anabranch.model.values import ElementId, Relationship


@dataclass(slots=True)
class _Arrivals:
    thing: Thing
    first: int
    last: int


class Holding:
    """The elements in all windows of a query."""

    def __init__(self, replay: Replay, moment: ReplayInstant) -> None:
        self._things = replay.things
        self._arrivals: dict[ElementUnit, _Arrivals] = {}
        self.windows: dict[Window, frozenset[ElementUnit]] = {}
        self._ends: dict[ElementUnit, tuple[ElementUnit, ElementUnit]] = {}
        for window, view in replay.views(moment).items():
            stream = view.stream.name
            units: dict[ElementUnit, None] = {}
            for event in replay.inside(view):
                for thing in self._things.all_of(event):
                    unit = self._things.unit(stream, thing)
                    units[unit] = None
                    self._meet(unit, thing, event.event_time)
            self.windows[window] = frozenset(units)

    def _meet(self, unit: ElementUnit, thing: Thing, at: int) -> None:
        known = self._arrivals.get(unit)
        if known is None:
            self._arrivals[unit] = _Arrivals(thing, at, at)
        else:
            known.first, known.last = min(known.first, at), max(known.last, at)
            if at >= known.last:
                known.thing = thing
        if isinstance(thing, Relationship):
            self._ends[unit] = (self._node(unit, thing.source), self._node(unit, thing.target))

    @staticmethod
    def _node(unit: ElementUnit, node_id: ElementId) -> ElementUnit:
        return ElementUnit(unit.stream, "node", node_id)

    def __len__(self) -> int:
        return len(self._arrivals)

    def __contains__(self, unit: object) -> bool:
        return unit in self._arrivals

    @property
    def units(self) -> list[ElementUnit]:
        """Return all elements, relationships before nodes, the latest arrivals first."""
        return self.ordered(self._arrivals)

    def ordered(self, units: Iterable[ElementUnit]) -> list[ElementUnit]:
        known = [unit for unit in dict.fromkeys(units) if unit in self._arrivals]
        known.sort(key=lambda unit: (unit.kind == "node", -self._arrivals[unit].last, str(unit.key)))
        return known

    def closed(self, units: Iterable[ElementUnit]) -> list[ElementUnit]:
        """Return the elements together with the ends of their relationships, as far as events brought them."""
        found = dict.fromkeys(units)
        for unit in list(found):
            for end in self._ends.get(unit, ()):
                if end in self._arrivals:
                    found[end] = None
        return list(found)

    def without(self, units: Collection[ElementUnit], gone: ElementUnit) -> list[ElementUnit]:
        """Return the elements without one of them, and without the relationships that end at it."""
        return [one for one in units if one != gone and gone not in self._ends.get(one, ())]

    def element(self, unit: ElementUnit) -> Element:
        """Return an element as of its latest arrival."""
        known = self._arrivals[unit]
        return self._things.element(unit.stream, known.thing, known.last)

    def first_came(self, unit: ElementUnit) -> int:
        return self._arrivals[unit].first
