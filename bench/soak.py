"""A long stream of edges whose vertices move on: what the indexes of connectivity keep must stay as it is.

Each edge joins two of the newest vertices, and vertices are never met again once they are old: 100 million edges meet
20 million of them, of which a window reaches a fraction. Told are the bytes of the index with its table of ids after
each hundredth part, and the memory of the process.
"""

from __future__ import annotations

import resource
import time
from typing import Any

import numpy as np

from anabranch.delta.connectivity.base import ConnectivityIndex
from anabranch.delta.connectivity.bic import BicIndex
from anabranch.delta.connectivity.recency import RecencyTree
from anabranch.delta.connectivity.vertices import WindowedIndex

SLIDES = 20
EDGES_PER_VERTEX = 5


def run(smoke: bool = False) -> dict[str, Any]:
    edges, window = (400_000, 20_000) if smoke else (100_000_000, 1_000_000)
    found: dict[str, Any] = {"edges": edges, "window": window, "slides_per_window": SLIDES}
    for name, index in (("recency tree", RecencyTree()), ("BIC", BicIndex(SLIDES))):
        found[name] = measured(name, index, edges if name == "recency tree" else edges // 5, window)
    return found


def measured(name: str, index: ConnectivityIndex, edges: int, window: int) -> dict[str, Any]:
    random = np.random.default_rng(7)
    windowed = WindowedIndex(index)
    slide = window // SLIDES
    reach = window // EDGES_PER_VERTEX
    kept: list[int] = []
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = 0.0
    for number in range(edges // slide):
        newest = number * slide // EDGES_PER_VERTEX
        ends = newest + random.integers(0, reach, (2, slide))
        asked = newest + random.integers(0, reach, (2, 100))
        began = time.perf_counter()
        windowed.insert(ends[0], ends[1], np.full(slide, number, np.int64))
        windowed.forget(number - SLIDES + 1)
        windowed.connected(asked[0], asked[1], number - SLIDES + 1)
        seconds += time.perf_counter() - began
        if (number + 1) % max(1, edges // slide // 100) == 0:
            kept.append(windowed.size().bytes)
    settled = kept[len(kept) // 10 :]
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(
        f"{name}: {edges:,} edges, {edges / seconds / 1e6:.1f} M edges/s; after a tenth it keeps "
        f"{min(settled) / 1e6:.1f} to {max(settled) / 1e6:.1f} MB, {settled[-1] / 1e6:.1f} at the end"
    )
    return {
        "edges": edges,
        "million_edges_per_second": round(edges / seconds / 1e6, 2),
        "megabytes": [round(one / 1e6, 1) for one in kept],
        "least_after_a_tenth": round(min(settled) / 1e6, 1),
        "most_after_a_tenth": round(max(settled) / 1e6, 1),
        "process_grew_by_megabytes": round(grown / 1024, 1),
    }
