"""Connectivity in sliding windows, as in the BIC paper: the recency tree and BIC, against other ways and its own code.

    python bench/connectivity.py [EXPERIMENT ...] [--smoke] [--part N]

    recency tree            our default; vertices are dense numbers
    recency tree with ids   vertices are any 64-bit numbers, made dense by a hash table
    BIC                     the paper's index, in our words; vertices are dense numbers
    D-Tree, recompute, scipy, link-cut, search      see `connectivity_baselines`
    the class, the command                          see `connectivity_product`

A stream begins with a window that is not timed. A repetition is a window more: each contestant has its turn in it,
slide by slide, before the next repetition begins. A slide is timed from its first edge to its last answer. Slow
contestants take few slides per repetition, and search answers a few of the pairs: its time is told for all of them.
Answers are compared before anything is timed, on a small stream, and again slide by slide beside the clock. Rates are
the median of the repetitions, in million edges of the stream per second; percentiles are over all slides that were
timed. Latency is that of a whole slide, as in the paper: its edges come, the oldest leave, its queries are answered. It
is told by the clock and of the processor, which other work on the machine disturbs less. D-Tree and link-cut begin with
trees that were constructed over the first window.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import connectivity_baselines as baselines
import connectivity_product as product
import numpy as np
from connectivity_baselines import Contestant
from connectivity_dtree import DTree
from connectivity_records import Entry, Record, Setting, Times, percentiles, shown, three
from workloads import edges as workloads

from anabranch.delta.batch import Mask

RECENCY, WITH_IDS, BIC = "recency tree", "recency tree with ids", "BIC"
D_TREE, RECOMPUTE, SCIPY, LINK_CUT, SEARCH = "D-Tree", "recompute", "scipy", "link-cut", "search"

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


ENTRIES: dict[str, Entry] = {
    RECENCY: Entry(baselines.Recency),
    WITH_IDS: Entry(baselines.RecencyWithIds),
    BIC: Entry(baselines.Bic),
    D_TREE: Entry(DTree, slides=2),
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
    fixed_slide: int = 50_000
    fixed_slide_windows: tuple[int, ...] = (1_000_000, 2_000_000, 4_000_000, 8_000_000, 16_000_000)
    queries_per_slide: tuple[int, ...] = (1, 10, 100, 1_000, 10_000)
    product_windows: tuple[int, ...] = (200_000, 3_000_000)
    command_edges: int = 4_000_000
    slides_per_window: tuple[int, ...] = (1, 10, 100, 1_000)
    chunks: tuple[int, ...] = (1, 2, 4)  # parts of a window

    def part(self, divisor: int) -> Sizes:
        """The same with so many times less of everything that grows."""
        return replace(
            self,
            vertices=self.vertices // divisor,
            windows=tuple(window // divisor for window in self.windows),
            fixed_slide=self.fixed_slide // divisor,
            fixed_slide_windows=tuple(window // divisor for window in self.fixed_slide_windows),
            product_windows=tuple(window // divisor for window in self.product_windows),
            command_edges=self.command_edges // divisor,
        )


SMOKE = replace(
    Sizes().part(500), windows=(2_000,), queries=(100,), repetitions=1,
    slides_per_window=(1, 10), chunks=(2,), fixed_slide_windows=(2_000, 4_000), queries_per_slide=(1, 10),
    product_windows=(6_000,),
)  # fmt: skip


def measured(setting: Setting, entries: dict[str, Entry], repetitions: int) -> Record:
    """All contestants on the same slides."""
    truth = true_answers(setting, setting.slides * (1 + repetitions))
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
            times[name].rates.append(count * setting.slide_size / seconds / 1e6)
    return {
        **setting.told(),
        "repetitions": repetitions,
        "million_edges_per_second": {name: three(statistics.median(one.rates)) for name, one in times.items()},
        "million_edges_per_processor_second": {
            name: one.rate_by_processor(setting.slide_size) for name, one in times.items()
        },
        "lowest_and_highest": {name: [three(min(o.rates)), three(max(o.rates))] for name, o in times.items()},
        "slide_ms": {name: percentiles(one.whole) for name, one in times.items()},
        "slide_processor_ms": {name: percentiles(one.processor) for name, one in times.items()},
        "answers_ms": {name: percentiles(one.answers) for name, one in times.items()},
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


def true_answers(setting: Setting, slides: int) -> list[Mask]:
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


def fixed_slide(sizes: Sizes) -> list[Record]:
    """The paper's first scenario: larger windows, and slides that stay as they are."""
    found = []
    for window in sizes.fixed_slide_windows:
        setting = Setting.of("rmat", sizes.vertices, window, window // sizes.fixed_slide, sizes.queries[0], 2)
        entries = {name: ENTRIES[name] for name in (*QUICK, D_TREE)}
        entries[RECOMPUTE] = replace(ENTRIES[RECOMPUTE], slides=3)
        entries[D_TREE] = replace(ENTRIES[D_TREE], slides=20)
        found.append(measured(setting, entries, 1))
        print(shown(found[-1]))
    return found


def queries_per_slide(sizes: Sizes) -> list[Record]:
    """More and more queries per slide."""
    found = []
    for graph in workloads.GRAPHS:
        for queries in sizes.queries_per_slide:
            setting = Setting.of(graph, sizes.vertices, sizes.windows[0], sizes.slides, queries, 2)
            entries = {name: ENTRIES[name] for name in (*QUICK, D_TREE)}
            found.append(measured(setting, entries, 1))
            print(shown(found[-1]))
    return found


def through_the_class(sizes: Sizes) -> list[Record]:
    """The public class, with numbers and with texts as ids."""
    found = []
    for window, windows in zip(sizes.product_windows, (1 + sizes.repetitions, 2), strict=False):
        setting = Setting.of("rmat", sizes.vertices, window, sizes.slides, sizes.queries[0], windows)
        found.append(product.through_the_class(setting, true_answers))
        print(shown(found[-1]))
    return found


def through_the_command(sizes: Sizes) -> list[Record]:
    """`anabranch connectivity` over files."""
    window = sizes.product_windows[0]
    windows = max(1, sizes.command_edges // window)
    setting = Setting.of("rmat", sizes.vertices, window, sizes.slides, sizes.queries[0], windows)
    found = [product.through_the_command(setting)]
    print(product.shown_commands(found[0]))
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
    "fixed_slide": fixed_slide,
    "queries_per_slide": queries_per_slide,
    "class": through_the_class,
    "command": through_the_command,
    "slides_per_window": slides_per_window,
    "chunks": chunks,
}


# --- what is told ---


def beside_papers_code(record: Record) -> Record | None:
    """What the paper's code does in the same setting, and how many times as fast we are: the same idea in both, and our
    default with ids hashed against its BIC."""
    for theirs in PAPERS_CODE:
        if all(theirs[key] == record[key] for key in ("graph", "window", "queries")):
            rates = record["million_edges_per_processor_second"]
            same = {
                f"our {SAME_AS_PAPERS[who]} / their {who}": three(rates[SAME_AS_PAPERS[who]] / rate)
                for who, rate in theirs["rates"].items()
                if SAME_AS_PAPERS[who] in rates
            }
            best = {f"our {who} / their BIC": three(rates[who] / theirs["rates"]["BIC"]) for who in (RECENCY, WITH_IDS)}
            return {"theirs": theirs, "times_as_fast": {**same, **best}}
    return None


def losses(experiments: dict[str, list[Record]]) -> list[str]:
    """Where another way was faster than the best of ours, or BIC than the recency tree."""
    found = []
    for name, records in experiments.items():
        for record in records:
            rates = record["million_edges_per_processor_second"]
            mine = rates.get(RECENCY)
            better = {who: rate for who, rate in rates.items() if mine is not None and rate > mine}
            where = ", ".join(f"{key} {record[key]}" for key in ("graph", "window", "slides", "queries"))
            found += [f"{name}, {where}: {who} {rate:g}, recency tree {mine:g} M/s" for who, rate in better.items()]
    return found


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
        "unit": "million edges of the stream per second of the processor; milliseconds of a whole slide; bytes",
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
