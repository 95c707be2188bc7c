"""Streams of edges on which contestants in connectivity are timed, and the form of what is told about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import connectivity_baselines as baselines
import numpy as np
from connectivity_baselines import Contestant
from connectivity_dtree import DTree
from workloads import edges as workloads

from anabranch.delta.batch import Ids

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Entry:
    """How a contestant is made, and how many slides of a repetition and pairs of a slide it is timed on at most."""

    make: Callable[[int, int, int], Contestant]
    slides: int | None = None
    pairs: int | None = None


@dataclass(frozen=True, slots=True)
class Setting:
    """A stream of windows, in slides of the same size."""

    graph: str
    vertices: int
    window: int
    slides: int
    queries: int
    edges: Ids
    left: Ids
    right: Ids

    @classmethod
    def of(cls, graph: str, vertices: int, window: int, slides: int, queries: int, windows: int) -> Setting:
        edges = workloads.GRAPHS[graph](window * windows, vertices, 7)
        return cls(graph, vertices, window, slides, queries, edges, *workloads.pairs(queries, vertices))

    @property
    def slide_size(self) -> int:
        return self.window // self.slides

    def slide(self, number: int) -> Ids:
        return self.edges[number * self.slide_size : (number + 1) * self.slide_size]

    def begun(self, entry: Entry) -> Contestant:
        """A contestant with the first window in it."""
        contestant = entry.make(self.vertices, self.window, self.slides)
        match contestant:
            case baselines.LinkCut() | DTree():
                contestant.fill(self.edges[: self.window])
            case _:
                for number in range(self.slides):
                    contestant.slide(self.slide(number))
                    if number == self.slides // 2:
                        contestant.ask(self.left[:1], self.right[:1])
        return contestant

    def told(self) -> Record:
        return {
            "graph": self.graph, "vertices": self.vertices, "window": self.window, "slides": self.slides,
            "queries": self.queries,
        }  # fmt: skip


@dataclass(slots=True)
class Times:
    """Of each slide that was timed: seconds for all, by the clock and of the processor, and for the answers. Rates by
    repetition."""

    whole: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    answers: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)

    def rate_by_processor(self, slide: int) -> float:
        return three(len(self.whole) * slide / sum(self.processor) / 1e6)


def percentiles(seconds: Sequence[float]) -> Record:
    found = np.percentile(np.array(seconds) * 1e3, [50, 95, 99])
    return dict(zip(("p50", "p95", "p99"), map(three, found.tolist()), strict=True))


def three(value: float) -> float:
    return float(f"{value:.3g}")


def shown(record: Record) -> str:
    head = "{graph}, window {window:,} in {slides} slides, {queries:,} queries".format(**record)
    lines = []
    for name, rate in record["million_edges_per_second"].items():
        slide = " / ".join(f"{value:g}" for value in record["slide_processor_ms"][name].values())
        by_processor = record["million_edges_per_processor_second"][name]
        lines.append(
            f"  {name:30} {rate:8g} M edges/s, {by_processor:g} by the processor: slide P50 / P95 / P99 {slide} ms   "
            f"{record['bytes'][name] / 1e6:.1f} MB   {record['timed_slides'][name]} slides"
        )
    return "\n".join([head, *lines])
