"""A picture of a connectivity workload: components and the largest of them over time, and what merged and split.

Lines are steps: a value holds until the next instant that was answered. Where there are more instants than there is
room, neighbours share a place: a band shows the lowest and the highest of them, a bar the sum. So memory and file stay
small however long the run is.

Invariant: every instant is in the picture once; the picture follows the reader's light or dark colours, and its marks
carry their numbers as titles.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anabranch.engine.connectivity.workload import ConnectivityAnswer

_MOST = 480  # places
_WIDTH, _LEFT, _RIGHT, _PANEL, _TOP, _GAP = 960, 64, 16, 190, 34, 30
_MICROS = 1_000_000
_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200)
_DAY = 86_400
_DAYS = (1, 2, 7, 14, 28, 91, 182, 365, 730, 1826, 3652, 18_262)

_STYLE = """<style>
svg { --ink: #0f172a; --faint: #64748b; --line: #e2e8f0; --paper: #ffffff; --count: #0b6e4f; --largest: #5aa9e6;
  --merge: #0b6e4f; --split: #c2410c; }
@media (prefers-color-scheme: dark) { svg { --ink: #e2e8f0; --faint: #94a3b8; --line: #27364d; --paper: #0f172a;
  --count: #34d399; --largest: #7cc4ff; --merge: #34d399; --split: #fb923c; } }
.paper { fill: var(--paper); }
text { fill: var(--ink); font: 12px system-ui, 'Segoe UI', Helvetica, Arial, sans-serif; }
.title { font-weight: 600; } .faint { fill: var(--faint); } .grid { stroke: var(--line); }
.line { fill: none; stroke-width: 1.6; } .band { opacity: 0.25; } .spot { opacity: 0; }
.count.line { stroke: var(--count); } .count.band { fill: var(--count); }
.largest.line { stroke: var(--largest); } .largest.band { fill: var(--largest); }
.merge { fill: var(--merge); } .split { fill: var(--split); }
</style>"""


@dataclass(slots=True)
class _Place:
    """One or more neighbouring instants."""

    first: int
    last: int
    instants: int
    low: tuple[int, int]  # of components, and of the largest
    high: tuple[int, int]
    end: tuple[int, int]
    merges: int
    splits: int

    def with_next(self, other: _Place) -> _Place:
        return _Place(
            self.first,
            other.last,
            self.instants + other.instants,
            (min(self.low[0], other.low[0]), min(self.low[1], other.low[1])),
            (max(self.high[0], other.high[0]), max(self.high[1], other.high[1])),
            other.end,
            self.merges + other.merges,
            self.splits + other.splits,
        )


class Plot:
    """Collects answers, and draws them."""

    def __init__(self) -> None:
        self._places: list[_Place] = []
        self._per_place = 1
        self._is_time = True

    def add(self, answer: ConnectivityAnswer) -> None:
        from anabranch.model.instants import Instant

        self._is_time = isinstance(answer.at, Instant)
        counts, components = answer.changes().counts, answer.components()
        both = (len(components), components.largest)
        place = _Place(answer.at, answer.at, 1, both, both, both, counts["merge"], counts["split"])
        if self._places and self._places[-1].instants < self._per_place:
            self._places[-1] = self._places[-1].with_next(place)
            return
        if len(self._places) == _MOST:
            halves = zip(self._places[::2], self._places[1::2], strict=True)
            self._places = [one.with_next(other) for one, other in halves]
            self._per_place *= 2
        self._places.append(place)

    def svg(self, title: str) -> str:
        height = 3 * (_PANEL + _GAP) + _TOP + 10
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" '
            f'height="{height}" role="img" aria-label="{escape(title)}">',
            f"<title>{escape(title)}</title>",
            _STYLE,
            f'<rect class="paper" width="{_WIDTH}" height="{height}"/>',
            _text(_LEFT, 20, title, kind="title"),
        ]
        if not self._places:
            parts.append(_text(_WIDTH / 2, height / 2, "no instant was answered", "middle", "faint"))
        else:
            across = _Across(self._places[0].first, self._places[-1].last, self._is_time)
            for number, (what, kind) in enumerate((("components", "count"), ("the largest, in vertices", "largest"))):
                parts += self._steps(number, what, kind, across, _TOP + number * (_PANEL + _GAP))
            parts += self._bars(across, _TOP + 2 * (_PANEL + _GAP))
        return "\n".join([*parts, "</svg>\n"])

    def _steps(self, number: int, what: str, kind: str, across: _Across, top: float) -> list[str]:
        scale = _Scale(0, max(1, *(place.high[number] for place in self._places)), top + _PANEL, top + 22)
        parts = [*_frame(what, scale, top), *across.drawn(top + _PANEL)]
        if self._per_place > 1:
            parts.append(f'<path class="{kind} band" d="{self._band(number, across, scale)}"/>')
        steps = [f"M{across.at(self._places[0].first):.1f},{scale.at(self._places[0].end[number]):.1f}"]
        for place in self._places[1:]:
            steps.append(f"H{across.at(place.first):.1f}V{scale.at(place.end[number]):.1f}")
        steps.append(f"H{across.at(self._places[-1].last):.1f}")
        parts.append(f'<path class="{kind} line" d="{"".join(steps)}"/>')
        for place in self._places:
            said = _range(place.low[number], place.high[number])
            parts.append(
                f'<circle class="spot" cx="{across.at(place.first):.1f}" cy="{scale.at(place.end[number]):.1f}" r="4">'
                f"<title>{escape(f'{across.said(place)}: {said} {_noun(number)}')}</title></circle>"
            )
        return parts

    def _band(self, number: int, across: _Across, scale: _Scale) -> str:
        ends = [*(across.at(place.first) for place in self._places[1:]), across.at(self._places[-1].last)]
        there, back = [], []
        for place, right in zip(self._places, ends, strict=True):
            left = across.at(place.first)
            there.append(
                f"{left:.1f},{scale.at(place.high[number]):.1f} {right:.1f},{scale.at(place.high[number]):.1f}"
            )
            back.append(f"{right:.1f},{scale.at(place.low[number]):.1f} {left:.1f},{scale.at(place.low[number]):.1f}")
        return "M" + " L".join([*there, *reversed(back)]) + "Z"

    def _bars(self, across: _Across, top: float) -> list[str]:
        most = max(1, *(max(place.merges, place.splits) for place in self._places))
        scale = _Scale(-most, most, top + _PANEL, top + 22)
        middle, wide = scale.at(0), max(1.2, min(8.0, across.room() / len(self._places) * 0.8))
        parts = [*_frame("merges (up) and splits (down)", scale, top, abs), *across.drawn(top + _PANEL)]
        for place in self._places:
            left = across.at(place.first) - wide / 2
            for kind, count in (("merge", place.merges), ("split", place.splits)):
                if count:
                    end = scale.at(count if kind == "merge" else -count)
                    said = f"{across.said(place)}: {count:,} {kind}{'' if count == 1 else 's'}"
                    parts.append(
                        f'<rect class="{kind}" x="{left:.1f}" y="{min(middle, end):.1f}" width="{wide:.1f}" '
                        f'height="{abs(end - middle):.1f}"><title>{escape(said)}</title></rect>'
                    )
        return parts


def _noun(number: int) -> str:
    return "vertices in the largest" if number else "components"


@dataclass(frozen=True, slots=True)
class _Scale:
    """A vertical scale from `low` at `foot` to `high` at `head`."""

    low: float
    high: float
    foot: float
    head: float

    def at(self, value: float) -> float:
        return self.foot + (value - self.low) / (self.high - self.low) * (self.head - self.foot)

    def marks(self) -> list[float]:
        """Return about five round values."""
        rough = (self.high - self.low) / 5
        power = 10 ** math.floor(math.log10(rough))
        step = max(1, next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough))
        return [value * step for value in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]


@dataclass(frozen=True, slots=True)
class _Across:
    """The horizontal scale of instants, or of numbers of edges."""

    first: int
    last: int
    is_time: bool

    def at(self, instant: int) -> float:
        return _LEFT + (instant - self.first) / max(1, self.last - self.first) * self.room()

    def room(self) -> float:
        return _WIDTH - _LEFT - _RIGHT

    def said(self, place: _Place) -> str:
        first, last = self._exact(place.first), self._exact(place.last)
        return first if first == last else f"{first} to {last}"

    def drawn(self, foot: float) -> list[str]:
        """Draw the marks below a panel, with their labels."""
        parts = []
        for instant in self._marks():
            left = self.at(instant)
            parts.append(f'<line class="grid" x1="{left:.1f}" x2="{left:.1f}" y1="{foot:.1f}" y2="{foot + 4:.1f}"/>')
            parts.append(_text(left, foot + 16, self._short(instant), "middle", "faint"))
        return parts

    def _marks(self) -> Sequence[int]:
        span = max(1, self.last - self.first)
        if not self.is_time:
            step = max(1, int(_Scale(0, span, 0, 1).marks()[1]))
        else:
            steps = [*(one * _MICROS for one in _STEPS), *(one * _DAY * _MICROS for one in _DAYS)]
            step = next((one for one in steps if span / one <= 9), steps[-1])
        begin = -(-self.first // step) * step
        return range(begin, self.last + 1, step)

    def _short(self, at: int) -> str:
        if not self.is_time:
            return f"{at:,}"
        text = self._exact(at)
        short = self.last - self.first < 3 * _DAY * _MICROS
        return text[11:] if short and not text.endswith(" 00:00") else text[:10]

    def _exact(self, at: int) -> str:
        from anabranch.cli.values import clock

        return clock(at) if self.is_time else f"{at:,} edges"


def _frame(title: str, scale: _Scale, top: float, shown: Callable[[float], float] = float) -> list[str]:
    parts = [_text(_LEFT, top + 12, title, kind="title")]
    for value in scale.marks():
        at = scale.at(value)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(_text(_LEFT - 8, at + 4, f"{shown(value):,.0f}", "end", "faint"))
    return parts


def _range(low: int, high: int) -> str:
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _text(x: float, y: float, text: str, anchor: str = "start", kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
