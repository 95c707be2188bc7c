"""Draws what was measured as SVG: bars and lines over logarithmic axes.

    python bench/plots.py       draws docs/pictures/matching-*.svg anew from bench/results/matching.json

Pictures follow the reader's light or dark colours, and carry their numbers as titles of their marks.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

BENCH = Path(__file__).parent
PICTURES = BENCH.parent / "docs" / "pictures"
ORDER = (
    "L", "T", "Pathway", "Pathway with reading", "pyoxigraph kept", "pyoxigraph", "polars", "polars lazy",
    "DataFusion", "DuckDB",
)  # fmt: skip
_LIGHT = ("#0b6e4f", "#5aa9e6", "#c2410c", "#fdba74", "#7c3aed", "#b794f4", "#475569", "#94a3b8", "#be185d", "#d4a017")
_DARK = ("#34d399", "#7cc4ff", "#fb923c", "#9a5b2c", "#a78bfa", "#d6bcfa", "#cbd5e1", "#94a3b8", "#f472b6", "#fde047")
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 960, 250, 64, 34, 46
_LEGEND = 26


@dataclass(frozen=True, slots=True)
class Bars:
    """Groups of bars: `values[group][series]`, None where there is none."""

    title: str
    axis: str
    groups: Sequence[str]
    series: Sequence[str]
    values: Sequence[Sequence[float | None]]

    def drawn(self, top: float) -> str:
        known = [value for group in self.values for value in group if value]
        scale = _Scale.around(known, top + _HEIGHT - _BOTTOM, top + _TOP)
        parts = [_frame(self.title, self.axis, scale, top)]
        wide = (_WIDTH - _LEFT - 16) / max(1, len(self.groups))
        bar = wide * 0.84 / max(1, len(self.series))
        for number, (group, values) in enumerate(zip(self.groups, self.values, strict=True)):
            left = _LEFT + number * wide
            parts.append(_text(left + wide / 2, top + _HEIGHT - _BOTTOM + 16, group, "middle"))
            for place, (name, value) in enumerate(zip(self.series, values, strict=True)):
                if value:
                    at = scale.at(value)
                    parts.append(
                        f'<rect class="s{_class(name)}" x="{left + wide * 0.08 + place * bar:.1f}" y="{at:.1f}" '
                        f'width="{bar * 0.92:.1f}" height="{max(0.5, scale.foot - at):.1f}">'
                        f"<title>{escape(f'{group}: {name} {value:g}')}</title></rect>"
                    )
        return "\n".join(parts)


@dataclass(frozen=True, slots=True)
class Lines:
    """One line per series: `points[series]` as (x, y)."""

    title: str
    axis: str
    series: Sequence[str]
    points: Sequence[Sequence[tuple[float, float]]]
    below: str = "triples in the window"

    def drawn(self, top: float) -> str:
        foot = top + _HEIGHT - _BOTTOM
        scale = _Scale.around([y for line in self.points for _, y in line], foot, top + _TOP)
        places = sorted({x for line in self.points for x, _ in line})
        across = _Scale(math.log10(places[0]), math.log10(places[-1]) + 1e-9, _LEFT + 30, _WIDTH - 60)
        parts = [_frame(self.title, self.axis, scale, top)]
        parts += [_text(across.at(x), foot + 16, f"{x:,.0f}", "middle") for x in places]
        parts.append(_text(_WIDTH - 16, foot + 34, self.below, "end", "faint"))
        for name, line in zip(self.series, self.points, strict=True):
            spots = [(across.at(x), scale.at(y), x, y) for x, y in line]
            path = " ".join(f"{left:.1f},{at:.1f}" for left, at, _, _ in spots)
            parts.append(f'<polyline class="{_line(name)}" points="{path}"/>')
            for left, at, x, y in spots:
                parts.append(
                    f'<circle class="s{_class(name)}" cx="{left:.1f}" cy="{at:.1f}" r="3">'
                    f"<title>{escape(f'{name} at {x:,.0f}: {y:g}')}</title></circle>"
                )
        return "\n".join(parts)


@dataclass(frozen=True, slots=True)
class _Scale:
    """Whole powers of ten from `foot` to `head`."""

    low: float
    high: float
    foot: float
    head: float

    @classmethod
    def around(cls, values: Sequence[float], foot: float, head: float) -> _Scale:
        low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
        # A bar of the smallest value should be seen as well.
        low -= math.log10(min(values)) - low < 0.1
        return cls(low, max(high, low + 1), foot, head)

    def at(self, value: float) -> float:
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return self.foot + share * (self.head - self.foot)

    def powers(self) -> list[float]:
        return [10.0**power for power in range(int(self.low), int(self.high) + 1)]


def picture(title: str, panels: Sequence[Bars | Lines]) -> str:
    """A whole SVG: panels below each other, and one legend."""
    height = _LEGEND + len(panels) * _HEIGHT + 8
    names = [name for name in ORDER if any(name in panel.series for panel in panels)]
    names += list(dict.fromkeys(one for panel in panels for one in panel.series if one not in ORDER))
    legend, left = [], float(_LEFT)
    for name in names:
        if _line(name).endswith("dashed"):
            legend.append(f'<polyline class="{_line(name)}" points="{left - 8:.0f},16 {left + 12:.0f},16"/>')
        else:
            legend.append(f'<rect class="s{_class(name)}" x="{left:.0f}" y="10" width="11" height="11"/>')
        legend.append(_text(left + 16, 20, name))
        left += 38 + 6.8 * len(name)
    drawn = [panel.drawn(_LEGEND + number * _HEIGHT) for number, panel in enumerate(panels)]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" '
            f'height="{height}" role="img" aria-label="{escape(title)}">',
            f"<title>{escape(title)}</title>",
            _style(),
            f'<rect class="paper" width="{_WIDTH}" height="{height}"/>',
            *legend,
            *drawn,
            "</svg>\n",
        ]
    )


def _style() -> str:
    def colours(ink: str, faint: str, line: str, paper: str, series: Sequence[str]) -> str:
        named = "".join(f" --c{number}: {colour};" for number, colour in enumerate(series))
        return f"svg {{ --ink: {ink}; --faint: {faint}; --line: {line}; --paper: {paper};{named} }}"

    series = "\n".join(
        f".s{number} {{ fill: var(--c{number}); }} "
        f".l{number} {{ fill: none; stroke: var(--c{number}); stroke-width: 2; }}"
        for number in range(len(ORDER))
    )
    light = colours("#0f172a", "#64748b", "#e2e8f0", "#ffffff", _LIGHT)
    dark = colours("#e2e8f0", "#94a3b8", "#27364d", "#0f172a", _DARK)
    return (
        f"<style>\n{light}\n@media (prefers-color-scheme: dark) {{ {dark} }}\n.paper {{ fill: var(--paper); }}\n"
        "text { fill: var(--ink); font: 12px system-ui, 'Segoe UI', Helvetica, Arial, sans-serif; }\n"
        ".title { font-weight: 600; } .faint { fill: var(--faint); } .grid { stroke: var(--line); }\n"
        ".dashed { stroke-dasharray: 6 4; }\n"
        f"{series}\n</style>"
    )


def _frame(title: str, axis: str, scale: _Scale, top: float) -> str:
    parts = [_text(_LEFT, top + 18, title, "start", "title"), _text(_WIDTH - 16, top + 18, axis, "end", "faint")]
    for power in scale.powers():
        at = scale.at(power)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - 16}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(
            _text(
                _LEFT - 8,
                at + 4,
                f"{power:,.0f}" if power >= 1 else f"{power:.{round(-math.log10(power))}f}",
                "end",
                "faint",
            )
        )
    return "\n".join(parts)


def _text(x: float, y: float, text: str, anchor: str = "start", kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _class(name: str) -> int:
    """The colour of a series; `L, tumbling` has that of L."""
    return ORDER.index(name.split(",")[0])


def _line(name: str) -> str:
    return f"l{_class(name)} dashed" if "slide" in name else f"l{_class(name)}"


def matching(result: dict[str, Any]) -> dict[str, str]:
    """The pictures of the matching benchmark, by file name."""
    experiments = result["experiments"]
    found: dict[str, str] = {}
    rate = "million triples of the stream per second"
    if "sliding" in experiments:
        records = experiments["sliding"]
        title = f"Window of {records[0]['window']:,} triples, slide of {records[0]['slide']:,}"
        panels = [_rates(title, rate, records)]
        if "single" in experiments:
            single = experiments["single"]
            panels.append(_rates(f"Window of {single[0]['window']:,} triples, slide of one", rate, single))
        if "random" in experiments:
            panels.append(_rates("Random graphs, every triple relevant", rate, experiments["random"]))
        found["matching-sliding.svg"] = picture("Matching in sliding windows", panels)
    if "tumbling" in experiments:
        windows = sorted({record["window"] for record in experiments["tumbling"]})
        panels = [
            _rates(
                f"Tumbling windows of {window:,}", rate, [r for r in experiments["tumbling"] if r["window"] == window]
            )
            for window in windows
        ]
        found["matching-tumbling.svg"] = picture("Matching in tumbling windows", panels)
    if "growth" in experiments:
        found["matching-growth.svg"] = picture(
            "Work per slide as the window grows",
            [_growth(name, experiments["growth"]) for name in _queries(experiments["growth"])],
        )
    if "break_even" in experiments:
        found["matching-break-even.svg"] = picture(
            "Following changes against evaluating anew",
            [_break_even(name, experiments["break_even"], rate) for name in _queries(experiments["break_even"])],
        )
    return found


def _queries(records: Sequence[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(record["query"] for record in records))


def _rates(title: str, axis: str, records: Sequence[dict[str, Any]]) -> Bars:
    rates = [record["million_triples_per_second"] for record in records]
    series = [name for name in ORDER if any(name in found for found in rates)]
    return Bars(title, axis, _queries(records), series, [[found.get(name) for name in series] for found in rates])


def _growth(query: str, records: Sequence[dict[str, Any]]) -> Lines:
    mine = [record for record in records if record["query"] == query]
    series = [name for name in ORDER if any(name in record["microseconds_per_slide"] for record in mine)]
    points = [
        [(r["window"], r["microseconds_per_slide"][name]) for r in mine if name in r["microseconds_per_slide"]]
        for name in series
    ]
    return Lines(f"{query}, slide of {mine[0]['slide']:,}", "microseconds per slide", series, points)


def _break_even(query: str, records: Sequence[dict[str, Any]], axis: str) -> Lines:
    """A solid line for tumbling windows, dashes for slides of a hundredth."""
    mine = [record for record in records if record["query"] == query]
    series, points = [], []
    for name in ("L", "T"):
        for part, how in ((1, "tumbling"), (100, "slide a hundredth")):
            chosen = [record for record in mine if record["window"] == part * record["slide"]]
            series.append(f"{name}, {how}")
            points.append([(record["window"], record["million_triples_per_second"][name]) for record in chosen])
    return Lines(query, axis, series, points)


def draw(result: dict[str, Any], folder: Path = PICTURES) -> list[Path]:
    return written(matching(result), folder)


def written(pictures: dict[str, str], folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, text in pictures.items():
        paths.append(folder / name)
        paths[-1].write_text(text, encoding="utf-8")
    return paths


def main() -> None:
    for path in draw(json.loads((BENCH / "results" / "matching.json").read_text(encoding="utf-8"))):
        print(path.relative_to(BENCH.parent))


if __name__ == "__main__":
    main()
