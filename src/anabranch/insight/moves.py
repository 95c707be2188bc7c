"""The moves of windows from one instant to the next, one event at a time.

First events leave, oldest first; then events arrive, in the order of time over all windows. Events of one instant leave
a property graph together, because its union expires by time.

Law: the moves of an instant, one after the other, lead to the content of the windows at that instant; the operators may
receive them one by one or together (their sums do not depend on how changes are split).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from anabranch.algebra.operators import Window
from anabranch.engine.views import WindowEvents
from anabranch.insight.elements import Thing, Things


@dataclass(frozen=True, slots=True)
class WindowMove:
    """The change of one window: its view after the move, and the elements that enter with their times, or leave."""

    window: Window
    view: WindowEvents
    comes: bool
    things: tuple[tuple[Thing, int], ...]


def emptied(view: WindowEvents) -> WindowEvents:
    """Return an empty view that begins where a window begins."""
    first = view.positions[0]
    return replace(view, positions=(first, first), skip=0)


class Moving:
    """The windows of a query, moved event by event."""

    def __init__(self, views: Mapping[Window, WindowEvents], things: Things) -> None:
        self.views = dict(views)
        self._things = things

    def towards(self, targets: Mapping[Window, WindowEvents]) -> Iterator[WindowMove]:
        for window, target in targets.items():
            yield from self._leaving(window, target)
        yield from self._coming(targets)

    def _settle(self, window: Window, target: WindowEvents, first: int, stop: int, skip: int) -> WindowEvents:
        view = replace(target, positions=(first, stop), skip=skip)
        self.views[window] = view
        return view

    def _leaving(self, window: Window, target: WindowEvents) -> Iterator[WindowMove]:
        view = self.views[window]
        (first, stop), skip = view.positions, view.skip
        goal, goal_skip = target.positions[0], target.skip
        while first < stop and first < goal:
            until = first + 1
            if not self._things.of_triples:
                time = view.stream.time_at(first)
                while until < min(stop, goal) and view.stream.time_at(until) == time:
                    until += 1
            gone = self._between(view, first, until, skip)
            first, skip = until, 0
            yield WindowMove(window, self._settle(window, target, first, stop, 0), False, gone)
        if first >= stop:
            # The next event may be further ahead in the stream; the window shows no position in between.
            self._settle(window, target, max(first, goal), max(first, goal), 0)
        elif goal_skip > skip:
            (event,) = view.stream.between(first, first + 1)
            triples = self._things.read(event).triples[skip:goal_skip]
            gone = tuple((one, event.event_time) for one in triples)
            yield WindowMove(window, self._settle(window, target, first, stop, goal_skip), False, gone)

    def _coming(self, targets: Mapping[Window, WindowEvents]) -> Iterator[WindowMove]:
        waiting: list[tuple[int, int, Window, int]] = []
        for order, (window, target) in enumerate(targets.items()):
            stream = target.stream
            for position in range(self.views[window].positions[1], target.positions[1]):
                time = stream.time_at(position)
                waiting.append((0 if time is None else time, order, window, position))
        waiting.sort(key=lambda one: (one[0], one[1], one[3]))
        for _, _, window, position in waiting:
            target = targets[window]
            first = self.views[window].positions[0]
            skip = target.skip if first == target.positions[0] else 0
            cut = skip if position == first else 0
            came = self._between(target, position, position + 1, cut)
            yield WindowMove(window, self._settle(window, target, first, position + 1, skip), True, came)
        for window, target in targets.items():
            self.views[window] = target

    def _between(self, view: WindowEvents, first: int, stop: int, skip: int) -> tuple[tuple[Thing, int], ...]:
        found: list[tuple[Thing, int]] = []
        for event in view.stream.between(first, stop):
            found += [(thing, event.event_time) for thing in self._things.all_of(self._things.read(event, skip))]
            skip = 0
        return tuple(found)
