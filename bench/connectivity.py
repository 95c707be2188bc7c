"""Connectivity in sliding windows: the recency tree and BIC, against other ways and against what the paper's code does.

    python bench/connectivity.py [EXPERIMENT ...] [--smoke] [--part N]

    recency tree            our default; vertices are dense numbers
    recency tree with ids   vertices are any 64-bit numbers, made dense by a hash table
    BIC                     the paper's index, in our words; vertices are dense numbers
    recompute, scipy, link-cut, search      see `connectivity_baselines`

A stream begins with a window that is not timed. A repetition is a window more: each contestant has its turn in it,
slide by slide, before the next repetition begins. A slide is timed from its first edge to its last answer. Slow
contestants take few slides per repetition, and search answers a few of the pairs: its time is told for all of them.
Answers are compared before anything is timed, on a small stream, and again slide by slide beside the clock. Rates are
the median of the repetitions, in million edges of the stream per second; percentiles are over all slides that were
timed.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import connectivity_baselines as baselines
import numpy as np
from connectivity_baselines import Contestant
from workloads import edges as workloads

from anabranch.delta.batch import Ids, Mask

Record = dict[str, Any]
RECENCY, WITH_IDS, BIC = "recency tree", "recency tree with ids", "BIC"
RECOMPUTE, SCIPY, LINK_CUT, SEARCH = "recompute", "scipy", "link-cut", "search"
OURS = (RECENCY, WITH_IDS, BIC)

# The code of the BIC paper (Java, github.com/chaozhang-cs/bic), run on a machine with two shared cores like ours, on
# streams like these: a million vertices, 20 slides per window, vertices as ints that it hashes. In million edges per
# second (of the processor's time where p99_ms is told for windows of 3 million), and milliseconds of a whole slide at
# the 99th percentile. HDT is a spanning forest with deletions, RWC is `recompute`.
PAPERS_CODE: list[Record] = [
    {"graph": "rmat", "window": 1_000_000, "queries": 100, "p99_ms": [72, 84], "megabytes": [65, 109],
     "rates": {"BIC": 2.1, "RWC": 0.78, "HDT": 0.02, "DFS": 0.008}},
    {"graph": "rmat", "window": 3_000_000, "queries": 100, "p99_ms": [272, 287], "rates": {"BIC": 1.9, "RWC": 0.75}},
    {"graph": "uniform", "window": 1_000_000, "queries": 100,
     "rates": {"BIC": 0.09, "RWC": 0.15, "HDT": 0.005, "DFS": 0.007}},
    {"graph": "uniform", "window": 1_000_000, "queries": 1_000, "rates": {"BIC": 0.013, "RWC": 0.16}},
    {"graph": "uniform", "window": 3_000_000, "queries": 100, "p99_ms": [806, 806], "rates": {"BIC": 0.57}},
    {"graph": "uniform", "window": 3_000_000, "queries": 1_000, "rates": {"BIC": 0.38, "RWC": 0.17}},
]  # fmt: skip
SAME_AS_PAPERS = {"BIC": BIC, "RWC": RECOMPUTE, "HDT": LINK_CUT, "DFS": SEARCH}
# The paper's text, section 7.2: windows of 3 million edges, 20 slides, 100 queries; how many times BIC is better at
# most, over ten graphs.
PAPERS_TEXT = {
    "throughput": {"D-Tree": 14, "ET-Tree": 500, "HDT": 1_000, "RWC": 7},
    "P99 latency": {"D-Tree": 28, "ET-Tree": 1_500, "HDT": 4_500, "RWC": 2.3},
    "P95 latency": {"D-Tree": 3_900, "ET-Tree": 100_000, "HDT": 400_000, "RWC": 4_700},
}


@dataclass(frozen=True, slots=True)
class Entry:
    """How a contestant is made, and how many slides of a repetition and pairs of a slide it is timed on at most."""

    make: Callable[[int, int, int], Contestant]
    slides: int | None = None
    pairs: int | None = None


ENTRIES: dict[str, Entry] = {
    RECENCY: Entry(baselines.Recency),
    WITH_IDS: Entry(baselines.RecencyWithIds),
    BIC: Entry(baselines.Bic),
    RECOMPUTE: Entry(baselines.Recompute),
    SCIPY: Entry(baselines.Scipy, slides=3),
    LINK_CUT: Entry(baselines.LinkCut, slides=1),
    SEARCH: Entry(baselines.Search, slides=1, pairs=5),
}
QUICK = (RECENCY, WITH_IDS, BIC, RECOMPUTE)


@dataclass(frozen=True, slots=True)
class Sizes:
    vertices: int = 1_000_000
    windows: tuple[int, ...] = (1_000_000, 3_000_000)
    slides: int = 20
    queries: tuple[int, ...] = (100, 1_000)
    repetitions: int = 3
    growth: tuple[int, ...] = (1_000_000, 2_000_000, 4_000_000, 8_000_000)
    slides_per_window: tuple[int, ...] = (1, 10, 100, 1_000)
    chunks: tuple[int, ...] = (1, 2, 4)  # parts of a window

    def part(self, divisor: int) -> Sizes:
        """The same with so many times less of everything that grows."""
        return replace(
            self,
            vertices=self.vertices // divisor,
            windows=tuple(window // divisor for window in self.windows),
            growth=tuple(window // divisor for window in self.growth),
        )


SMOKE = replace(
    Sizes().part(500), windows=(2_000,), queries=(100,), repetitions=1, growth=(2_000, 4_000),
    slides_per_window=(1, 10), chunks=(2,),
)  # fmt: skip


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

    def slide(self, number: int) -> Ids:
        size = self.window // self.slides
        return self.edges[number * size : (number + 1) * size]

    def begun(self, entry: Entry) -> Contestant:
        """A contestant with the first window in it."""
        contestant = entry.make(self.vertices, self.window, self.slides)
        match contestant:
            case baselines.LinkCut():
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


def measured(setting: Setting, entries: dict[str, Entry], repetitions: int) -> Record:
    """All contestants on the same slides."""
    truth = _truth(setting, setting.slides * (1 + repetitions))
    states = {name: setting.begun(entry) for name, entry in entries.items()}
    numbers = dict.fromkeys(entries, setting.slides)
    times = {name: Times() for name in entries}
    for _ in range(repetitions):
        for name, entry in entries.items():
            count = min(entry.slides or setting.slides, setting.slides)
            before = len(times[name].whole)
            for _ in range(count):
                _one_slide(setting, name, entry, states[name], numbers[name], truth, times[name])
                numbers[name] += 1
            seconds = sum(times[name].whole[before:])
            times[name].rates.append(count * (setting.window // setting.slides) / seconds / 1e6)
    return {
        **setting.told(),
        "repetitions": repetitions,
        "million_edges_per_second": {name: _three(statistics.median(one.rates)) for name, one in times.items()},
        "million_edges_per_processor_second": {
            name: _three(len(one.whole) * (setting.window // setting.slides) / sum(one.processor) / 1e6)
            for name, one in times.items()
        },
        "lowest_and_highest": {name: [_three(min(o.rates)), _three(max(o.rates))] for name, o in times.items()},
        "slide_ms": {name: _percentiles(one.whole) for name, one in times.items()},
        "answers_ms": {name: _percentiles(one.answers) for name, one in times.items()},
        "timed_slides": {name: len(one.whole) for name, one in times.items()},
        "bytes": {name: state.bytes() for name, state in states.items()},
    }


def _one_slide(
    setting: Setting, name: str, entry: Entry, state: Contestant, number: int, truth: Sequence[Mask], times: Times
) -> None:
    edges = setting.slide(number)
    asked = min(entry.pairs or setting.queries, setting.queries)
    left, right = setting.left[:asked], setting.right[:asked]
    processor, begun = time.process_time(), time.perf_counter()
    state.slide(edges)
    inserted = time.perf_counter()
    answers = state.ask(left, right)
    took = time.perf_counter() - inserted
    processor = time.process_time() - processor
    seconds = took * setting.queries / asked
    times.whole.append(inserted - begun + seconds)
    # What is told for all pairs from a few is told of the processor's time in the same proportion.
    times.processor.append(processor * (inserted - begun + seconds) / (inserted - begun + took))
    times.answers.append(seconds)
    _same(name, setting, number, answers, truth[number][:asked])


def _truth(setting: Setting, slides: int) -> list[Mask]:
    """The answers after each slide."""
    state = ENTRIES[RECENCY].make(setting.vertices, setting.window, setting.slides)
    found = []
    for number in range(slides):
        state.slide(setting.slide(number))
        found.append(state.ask(setting.left, setting.right))
    return found


def check(graph: str, slides: int) -> None:
    """Every contestant gives the same answers in every window of a small stream, from the first slide on."""
    setting = Setting.of(graph, 2_000, 2_000 // slides * slides, slides, 500, 4)
    states = {name: entry.make(setting.vertices, setting.window, slides) for name, entry in ENTRIES.items()}
    for number in range(4 * slides):
        expected = None
        for name, state in states.items():
            state.slide(setting.slide(number))
            answers = state.ask(setting.left, setting.right)
            expected = answers if expected is None else expected
            _same(name, setting, number, answers, expected)


def _same(name: str, setting: Setting, number: int, answers: Mask, expected: Mask) -> None:
    if not np.array_equal(answers, expected):
        raise AssertionError(f"{name} answers slide {number} of {setting.told()} in its own way")


# --- experiments ---


def sliding(sizes: Sizes) -> list[Record]:
    """Two kinds of graphs, two windows, few and many queries."""
    found = []
    for graph in workloads.GRAPHS:
        for window in sizes.windows:
            for queries in sizes.queries:
                setting = Setting.of(graph, sizes.vertices, window, sizes.slides, queries, 1 + sizes.repetitions)
                entries = ENTRIES if queries == sizes.queries[0] else {name: ENTRIES[name] for name in QUICK}
                record = measured(setting, entries, sizes.repetitions)
                record["papers_code"] = beside_papers_code(record)
                found.append(record)
                print(shown(record))
    return found


def growth(sizes: Sizes) -> list[Record]:
    """Larger and larger windows over the same vertices."""
    found = []
    for window in sizes.growth:
        setting = Setting.of("rmat", sizes.vertices, window, sizes.slides, sizes.queries[0], 2)
        entries = {name: ENTRIES[name] for name in QUICK}
        found.append(measured(setting, entries, 1))
        print(shown(found[-1]))
    return found


def slides_per_window(sizes: Sizes) -> list[Record]:
    """The same window in smaller and smaller slides: recomputing costs a window per slide."""
    found = []
    for slides in sizes.slides_per_window:
        setting = Setting.of("rmat", sizes.vertices, sizes.windows[0], slides, sizes.queries[0], 2)
        entries = {name: ENTRIES[name] for name in QUICK}
        entries[RECOMPUTE] = replace(ENTRIES[RECOMPUTE], slides=20)
        found.append(measured(setting, entries, 1))
        print(shown(found[-1]))
    return found


def chunks(sizes: Sizes) -> list[Record]:
    """BIC in chunks that are shorter than the window: less to do at once, more in all."""
    setting = Setting.of(
        "rmat", sizes.vertices, sizes.windows[0], sizes.slides, sizes.queries[0], 1 + sizes.repetitions
    )
    names = {f"BIC, chunk of a window / {parts}": sizes.slides // parts for parts in sizes.chunks}
    entries = {name: Entry(partial(baselines.Bic, chunk=chunk)) for name, chunk in names.items()}
    found = [measured(setting, entries, sizes.repetitions)]
    print(shown(found[0]))
    return found


EXPERIMENTS: dict[str, Callable[[Sizes], list[Record]]] = {
    "sliding": sliding,
    "growth": growth,
    "slides_per_window": slides_per_window,
    "chunks": chunks,
}


# --- what is told ---


def beside_papers_code(record: Record) -> Record | None:
    """What the paper's code does in the same setting, and how many times as fast we are: the same idea in both, and our
    default with ids hashed against its BIC."""
    for theirs in PAPERS_CODE:
        if all(theirs[key] == record[key] for key in ("graph", "window", "queries")):
            rates = record["million_edges_per_second"]
            same = {
                f"our {SAME_AS_PAPERS[who]} / their {who}": _three(rates[SAME_AS_PAPERS[who]] / rate)
                for who, rate in theirs["rates"].items()
                if SAME_AS_PAPERS[who] in rates
            }
            best = {
                f"our {who} / their BIC": _three(rates[who] / theirs["rates"]["BIC"]) for who in (RECENCY, WITH_IDS)
            }
            return {"theirs": theirs, "times_as_fast": {**same, **best}}
    return None


def losses(experiments: dict[str, list[Record]]) -> list[str]:
    """Where another way was faster than the best of ours, or BIC than the recency tree."""
    found = []
    for name, records in experiments.items():
        for record in records:
            rates = record["million_edges_per_second"]
            mine = rates.get(RECENCY)
            better = {who: rate for who, rate in rates.items() if mine is not None and rate > mine}
            where = ", ".join(f"{key} {record[key]}" for key in ("graph", "window", "slides", "queries"))
            found += [f"{name}, {where}: {who} {rate:g}, recency tree {mine:g} M/s" for who, rate in better.items()]
    return found


def shown(record: Record) -> str:
    head = "{graph}, window {window:,} in {slides} slides, {queries:,} queries".format(**record)
    lines = []
    for name, rate in record["million_edges_per_second"].items():
        slide, answers = record["slide_ms"][name], record["answers_ms"][name]
        lines.append(
            f"  {name:28} {rate:8g} M edges/s   slide {slide['p50']:g} / {slide['p99']:g} ms   "
            f"answers {answers['p50']:g} / {answers['p99']:g} ms   {record['bytes'][name] / 1e6:.1f} MB"
        )
    return "\n".join([head, *lines])


def _percentiles(seconds: Sequence[float]) -> Record:
    p50, p99 = np.percentile(np.array(seconds) * 1e3, [50, 99])
    return {"p50": _three(float(p50)), "p99": _three(float(p99))}


def _three(value: float) -> float:
    return float(f"{value:.3g}")


def run(smoke: bool = False, names: tuple[str, ...] = (), part: int = 1) -> dict[str, Any]:
    sizes = SMOKE if smoke else Sizes().part(part)
    for graph in workloads.GRAPHS:
        for slides in (1, 20):
            check(graph, slides)
    found = {name: EXPERIMENTS[name](sizes) for name in names or tuple(EXPERIMENTS)}
    lost = losses(found)
    for line in lost:
        print(f"lost: {line}")
    return {
        "unit": "million edges of the stream per second",
        "experiments": found,
        "papers_text": PAPERS_TEXT,
        "losses": lost,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="EXPERIMENT", help=", ".join(EXPERIMENTS))
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--part", type=int, default=1, help="so many times less of everything")
    options = parser.parse_args()
    if unknown := set(options.names) - set(EXPERIMENTS):
        parser.error(f"no experiment {', '.join(sorted(unknown))}; there are {', '.join(EXPERIMENTS)}")
    run(options.smoke, tuple(options.names), options.part)


if __name__ == "__main__":
    main()
