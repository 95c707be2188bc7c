"""Draws what was measured of connectivity, of the processor's time: rates and latencies by setting, and lines as
windows grow, slides get smaller and queries more.

    python bench/connectivity_plots.py      draws docs/pictures/connectivity-*.svg anew from bench/results

The pictures are made by `plots`, with contestants of their own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import plots
from plots import Bars, Lines

Record = dict[str, Any]
ORDER = (
    "recency tree", "recompute", "BIC", "recency tree with ids", "link-cut", "search", "scipy", "the paper's BIC",
    "D-Tree",
)  # fmt: skip
THEIRS = "the paper's BIC"
RATE = "million edges of the stream per second of the processor"


def connectivity(result: Record) -> dict[str, str]:
    """The pictures by file name."""
    experiments = result["experiments"]
    found: dict[str, str] = {}
    with _own_contestants():
        if records := experiments.get("sliding"):
            fewest = min(record["queries"] for record in records)
            asked = [record for record in records if record["queries"] == fewest]
            panels: list[Bars | Lines] = [
                _rates(asked),
                _times("The whole slide, its edges and its answers: median", asked, "p50"),
                _times("The whole slide: 99th percentile", asked, "p99"),
            ]
            found["connectivity-sliding.svg"] = plots.picture("Connectivity in sliding windows", panels)
        lines = [
            _lines("Larger windows", experiments.get("fixed_slide", []), "window", "edges in the window"),
            _lines("Smaller slides", experiments.get("slides_per_window", []), "slides", "slides per window"),
            _lines("More queries", _rmat(experiments.get("queries_per_slide", [])), "queries", "queries per slide"),
        ]
        if drawn := [line for line in lines if line.points]:
            found["connectivity-growth.svg"] = plots.picture("Windows, slides and queries", drawn)
    return found


@contextmanager
def _own_contestants() -> Iterator[None]:
    """`plots` takes colours by the place in its ORDER."""
    before = plots.ORDER
    plots.ORDER = ORDER  # type: ignore[assignment]
    try:
        yield
    finally:
        plots.ORDER = before


def _rates(records: Sequence[Record]) -> Bars:
    rates = []
    for record in records:
        theirs = record.get("papers_code")
        told = {THEIRS: theirs["theirs"]["rates"].get("BIC")} if theirs else {}
        rates.append({**record["million_edges_per_processor_second"], **told})
    series = [name for name in ORDER if any(found.get(name) for found in rates)]
    values = [[found.get(name) for name in series] for found in rates]
    return Bars("Throughput", RATE, [_setting(record) for record in records], series, values)


def _times(title: str, records: Sequence[Record], percentile: str) -> Bars:
    slides = [record["slide_processor_ms"] for record in records]
    series = [name for name in ORDER if any(name in slide for slide in slides)]
    values = [[slide[name][percentile] if name in slide else None for name in series] for slide in slides]
    return Bars(title, "milliseconds of the processor", [_setting(record) for record in records], series, values)


def _rmat(records: Sequence[Record]) -> list[Record]:
    return [record for record in records if record["graph"] == "rmat"]


def _lines(title: str, records: Sequence[Record], by: str, below: str) -> Lines:
    rates = [(record[by], record["million_edges_per_processor_second"]) for record in records]
    series = [name for name in ORDER if any(name in found for _, found in rates)]
    points = [[(place, found[name]) for place, found in rates if name in found] for name in series]
    return Lines(title, RATE, series, points, below)


def _setting(record: Record) -> str:
    return f"{record['graph']}, {record['window']:,} edges"


def draw(result: Record, folder: Path = plots.PICTURES) -> list[Path]:
    return plots.written(connectivity(result), folder)


def main() -> None:
    for path in draw(json.loads((plots.BENCH / "results" / "connectivity.json").read_text(encoding="utf-8"))):
        print(path.relative_to(plots.BENCH.parent))


if __name__ == "__main__":
    main()
