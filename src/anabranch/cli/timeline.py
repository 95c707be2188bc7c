"""A window as a little bar on a timeline.

    ·····(━━━━━━●━━━━━━━━━━●━━━━━━━━━●]··········

Invariant: one cell stands for the same span of time everywhere; events inside the window are drawn inside its brackets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from anabranch.model.windows import Bounds


@dataclass(frozen=True, slots=True)
class Timeline:
    """A scale from `first` to `last`, drawn in a number of cells, with two more for brackets."""

    first: int
    last: int
    cells: int

    def position(self, instant: int) -> int:
        """Return the cell of an instant; cell 0 and the last one belong to brackets."""
        share = (instant - self.first) / max(1, self.last - self.first)
        return 1 + round(share * (self.cells - 1))

    def draw(self, bounds: Bounds, event_times: Sequence[int]) -> Text:
        """Draw the window and the events so far; events outside of it are hollow."""
        marks: list[tuple[str, str]] = [("·", "dim")] * (self.cells + 2)
        # A bracket is outside of the cell of an included end, and on the cell of an excluded one.
        low = self.position(bounds.opens_at) - bounds.includes_opening
        high = self.position(bounds.closes_at) + bounds.includes_closing
        for cell in range(low + 1, high):
            marks[cell] = ("━", "green")
        for event_time in event_times:
            cell = self.position(event_time)
            if bounds.contains(event_time):
                marks[min(max(cell, low + 1), high - 1)] = ("●", "bold yellow")
            else:
                before = event_time <= bounds.opens_at
                marks[min(cell, low - 1) if before else max(cell, high + 1)] = ("○", "dim yellow")
        marks[low] = ("[" if bounds.includes_opening else "(", "bold green")
        marks[high] = ("]" if bounds.includes_closing else ")", "bold green")
        return Text.assemble(*marks)
