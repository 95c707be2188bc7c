"""Content of windows, as blocks of arrivals.

Invariant: blocks stand in the order of arrival, and contain no arrival that has left.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from anabranch.delta.batch import Ids
from anabranch.planner.flow.feeds import TripleSlide


class WindowArrivals:
    """The arrivals that a window holds, oldest first, as blocks."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._blocks: deque[Ids] = deque()
        self._first = 0  # the number of the first arrival in the blocks
        self._arrived = 0

    def slide(self, arrived: Ids, left: int) -> Ids:
        """Add the arrivals and return the ones that left."""
        if len(arrived):
            self._blocks.append(arrived)
            self._arrived += len(arrived)
        gone = []
        while self._blocks and self._first < left:
            block = self._blocks[0]
            leaving = min(len(block), left - self._first)
            gone.append(block[:leaving])
            self._first += leaving
            if leaving == len(block):
                self._blocks.popleft()
            else:
                self._blocks[0] = block[leaving:]
        return np.concatenate(gone) if gone else np.empty((0, self._width), np.int64)

    def facts(self) -> Ids:
        if not self._blocks:
            return np.empty((0, self._width), np.int64)
        if len(self._blocks) > 1:
            whole = np.concatenate(self._blocks)
            self._blocks.clear()
            self._blocks.append(whole)
        return self._blocks[0]

    @property
    def nbytes(self) -> int:
        return sum(block.nbytes for block in self._blocks)


class _Block(NamedTuple):
    """Arrivals of one window, and the number of the first of them among all arrivals of this window."""

    window: int
    first: int
    facts: Ids


class HeldTogether:
    """The arrivals of several windows in one order of arrival, as if they were those of one window.

    An arrival that is in two windows is there twice. The arrivals leave in their order as long as none leaves before an
    older one of any window (windows of one width that consist of whole slides)."""

    def __init__(self, windows: int) -> None:
        self._blocks: deque[_Block] = deque()
        self._counts = [0] * windows
        self.left = 0
        """How many of all that came have left, or were taken out of the order."""

    def slide(self, slides: Sequence[TripleSlide]) -> TripleSlide | None:
        """Add the arrivals of each window and return the joint slide. None: an arrival has left before an older one. It
        is removed here; the caller must start from scratch with `facts`."""
        for window, (arrived, _) in enumerate(slides):
            if len(arrived):
                self._blocks.append(_Block(window, self._counts[window], arrived))
                self._counts[window] += len(arrived)
        lefts = [slide.left for slide in slides]
        while self._blocks and (gone := _gone(self._blocks[0], lefts)):
            block = self._blocks.popleft()
            self.left += gone
            if gone < len(block.facts):
                self._blocks.appendleft(_without(block, gone))
                break
        if any(_gone(block, lefts) for block in self._blocks):
            self._blocks = deque(
                _without(block, gone) for block in self._blocks if (gone := _gone(block, lefts)) < len(block.facts)
            )
            self.left = sum(self._counts) - sum(len(block.facts) for block in self._blocks)
            return None
        return TripleSlide(np.concatenate([slide.arrived for slide in slides]), self.left)

    def facts(self) -> Ids:
        return np.concatenate([np.empty((0, 3), np.int64), *(block.facts for block in self._blocks)])

    @property
    def nbytes(self) -> int:
        return sum(block.facts.nbytes for block in self._blocks)


def _gone(block: _Block, lefts: Sequence[int]) -> int:
    """Return how many arrivals of a block have left."""
    return min(max(lefts[block.window] - block.first, 0), len(block.facts))


def _without(block: _Block, gone: int) -> _Block:
    return _Block(block.window, block.first + gone, block.facts[gone:])
