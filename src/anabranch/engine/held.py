"""The events that a buffer holds: single events, or blocks that are split up only when needed.

A block stands in the list once for each of its events and knows the position of its first event. So any event is found
by its index, events are forgotten by cutting the list, and no object is made per event.

Of many events the older blocks are folded up (`engine/folded.py`).

Invariant: a block's events stand side by side from its first position on, up to where the block was cut. Before an
event is inserted, all events behind that place must be made single events (`loosen`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from anabranch.engine.folded import folded
from anabranch.model.event import Event
from anabranch.model.graph_block import EventBlock

Run = EventBlock | list[Event]

RECENT = 1 << 16
"""Events in blocks that are not folded up."""


class _Block:
    """A block and the positions of its events."""

    __slots__ = ("block", "first", "stop")

    def __init__(self, block: EventBlock, first: int) -> None:
        self.block = block
        self.first = first
        self.stop = first + len(block)


class HeldEvents:
    """A list of events. Positions count from the first event that was ever added; `base` is the position of index 0."""

    __slots__ = ("_items", "_recent", "base")

    def __init__(self, events: Sequence[Event] = ()) -> None:
        self._items: list[Event | _Block] = list(events)
        self._recent: deque[_Block] = deque()  # the blocks that are not folded up
        self.base = 0

    def __len__(self) -> int:
        return len(self._items)

    def append(self, event: Event) -> None:
        self._items.append(event)

    def append_block(self, block: EventBlock) -> None:
        added = _Block(block, self.base + len(self._items))
        self._items += [added] * len(block)
        self._recent.append(added)
        while added.stop - self._recent[0].stop > RECENT:
            self._recent[0].block = folded(self._recent[0].block)
            self._recent.popleft()

    def insert(self, index: int, event: Event) -> None:
        """Insert an event between single events."""
        self._items.insert(index, event)

    def runs(self, first: int, stop: int) -> Iterator[Run]:
        """Yield the events between two indices as they are held: blocks, and lists of events."""
        items, base = self._items, self.base
        index, stop = max(first, 0), min(stop, len(items))
        while index < stop:
            item = items[index]
            begin = index
            if isinstance(item, _Block):
                index = min(stop, item.stop - base)
                yield item.block[base + begin - item.first : base + index - item.first]
            else:
                found: list[Event] = []
                while isinstance(item, Event):
                    found.append(item)
                    index += 1
                    if index == stop:
                        break
                    item = items[index]
                yield found

    def listed(self, first: int, stop: int) -> list[Event]:
        """Return the events between two indices as single events."""
        runs = list(self.runs(first, stop))
        if len(runs) == 1:
            (run,) = runs
            return run.events() if isinstance(run, EventBlock) else run
        return [event for run in runs for event in run]

    def loosen(self, index: int) -> None:
        """Turn all events from an index on into single events."""
        self.cut_off(index, self.listed(index, len(self._items)))

    def cut_off(self, index: int, instead: Run) -> None:
        """Replace all events from an index on by others."""
        if index < len(self._items):
            item = self._items[index]
            if isinstance(item, _Block):
                item.stop = self.base + index
            del self._items[index:]
            while self._recent and self._recent[-1].first >= self.base + index:
                self._recent.pop()
        if isinstance(instead, EventBlock):
            self.append_block(instead)
        else:
            self._items += instead

    def forget(self, count: int) -> None:
        """Drop the first events."""
        del self._items[:count]
        self.base += count
        while self._recent and self._recent[0].stop <= self.base:
            self._recent.popleft()
