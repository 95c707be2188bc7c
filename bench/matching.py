"""Matching patterns over windows: our two matchers against engines that evaluate anew and engines that follow changes.

    python bench/run.py matching                    all of it, written to bench/results/matching.json
    python bench/matching.py [EXPERIMENT ...] [--smoke]     some of it, told only

Input is ids: parsing and encoding are not in these figures. Ours prune inside their time, on one thread; peers are
given windows that are pruned and free of duplicates, in their own format, and take the threads that they like.
Contestants:

    L              the log matcher: what enters and leaves at each slide, many slides per call
    T              evaluation of the whole window by semi-joins
    polars, polars lazy, pyoxigraph, DuckDB, DataFusion      evaluate the whole window at each slide
    pyoxigraph kept     one store that follows the window, asked again at each slide
    Pathway        an incremental dataflow; the time to read its input is taken off, and told beside it; by the
                   processor's time, all others by the clock's

Where a window slides in small steps, T and the peers that evaluate anew are timed on a sample of the slides. Every
contestant's answers are compared before it is timed. A rate is million triples of the stream per second.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import ours
from contest import BUDGET, OURS, Contest, check_ours, contest, shown
from ours import Slid
from workloads import lubm, random_graphs, seas
from workloads.base import Query, Stream

Record = dict[str, Any]
Experiment = Callable[["Setting"], Any]

# SPECTRA (2016), Table 1: thousand triples per second on Q1 to Q7, tumbling windows, events of one triple, on a Xeon E3
# 1246v3, in Java. Its windows are in seconds of a stream whose rate is not told.
SPECTRA_TABLE_1 = {
    "10 s": {"S-Inc": [81, 848, 54, 425, 980, 925, 73], "S-Rev": [60, 750, 46, 356, 846, 796, 64],
             "CQELS": [34, 113, 21, 95, 220, 125, 38]},
    "50 s": {"S-Inc": [52, 567, 26, 180, 876, 853, 50], "S-Rev": [36, 322, 15, 88, 637, 748, 28],
             "CQELS": [22, 86, 13, 46, 143, 89, 21]},
    "100 s": {"S-Inc": [30, 241, 18, 146, 540, 415, 27], "S-Rev": [11, 80, 7, 56, 161, 179, 10],
              "CQELS": [8, 30, 5, 28, 39, 31, 6]},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured; counts of windows and slides are those that are timed."""

    triples: int = 4_000_000
    repetitions: int = 5
    budget: float = BUDGET
    tumbling: tuple[tuple[int, int], ...] = ((10_000, 20), (100_000, 6), (1_000_000, 3))
    window: int = 100_000
    slide: int = 1_000
    slides: int = 3_000
    small_window: int = 10_000
    single_slides: int = 100_000
    sample: int = 5
    graph_slides: int = 100
    growth: tuple[int, ...] = (10_000, 30_000, 100_000, 300_000, 1_000_000)
    growth_slides: int = 100
    break_even: tuple[int, ...] = (100, 1_000, 10_000, 100_000)
    most_triples: int = 500_000
    changes: int = 60_000  # what peers that follow changes are given at most
    graph_changes: int = 60_000
    queries: tuple[str, ...] = ("Q1", "Q2", "Q3", "Q4", "Q5", "Q6", "Q7", "S1", "S2")


SMOKE = Sizes(
    triples=9_000, repetitions=1, budget=1.0, tumbling=((1_000, 2),), window=2_000, slide=100, slides=20,
    small_window=1_000, single_slides=50, sample=2, graph_slides=5, growth=(1_000,), growth_slides=5,
    break_even=(100,), most_triples=2_000, changes=500, queries=("Q7", "S2"),
)  # fmt: skip


class Setting:
    """The sizes, the streams, and the contest that all experiments of one run share."""

    def __init__(self, sizes: Sizes, running: Contest) -> None:
        self.sizes = sizes
        self.contest = running
        self.lubm = lubm.generate(sizes.triples)
        self.seas = seas.generate(sizes.triples)

    def queries(self) -> list[tuple[Stream, Query]]:
        """The queries over the two streams that stand for applications."""
        return [self.query(name) for name in self.sizes.queries]

    def query(self, name: str) -> tuple[Stream, Query]:
        for stream, queries in ((self.lubm.stream, self.lubm.queries), (self.seas.stream, self.seas.queries)):
            for query in queries:
                if query.name == name:
                    return stream, query
        raise KeyError(name)

    def sampled(
        self, stream: Stream, query: Query, slid: Slid, repetitions: int | None = None, changes: int | None = None
    ) -> Record:
        """L and followers on all slides; T and re-evaluating peers on a sample of them."""
        numbers = slid.spread(self.sizes.sample)
        advance = slid.timed // (len(slid.ends) - 1)
        following, why = self.contest.slides(stream, query, slid, changes or self.sizes.changes)
        again, why_not = self.contest.windows(stream, query, [slid.window(one) for one in numbers], advance)
        return self.contest.measured({**following, **again}, {**why, **why_not}, repetitions)


def run(smoke: bool = False, names: tuple[str, ...] = ()) -> dict[str, Any]:
    sizes = SMOKE if smoke else Sizes()
    found: dict[str, Any] = {}
    with contest(sizes.repetitions, sizes.budget) as running:
        versions = running.versions()
        for name, version in versions.items():
            print(f"{name}: {version}")
        setting = Setting(sizes, running)
        for name in names or tuple(EXPERIMENTS):
            found[name] = EXPERIMENTS[name](setting)
    lost = losses(found)
    for line in lost:
        print(f"lost: {line}")
    return {
        "unit": "million triples of the stream per second",
        "repetitions": sizes.repetitions,
        "peers": versions,
        "experiments": found,
        "losses": lost,
    }


def tumbling(setting: Setting) -> list[Record]:
    """Windows that are replaced as a whole."""
    found = []
    for window, count in setting.sizes.tumbling:
        for stream, query in setting.queries():
            slid = ours.sliding(stream, window, window, count)
            turns, why = setting.contest.windows(stream, query, [slid.window(one) for one in range(1, count + 1)])
            check_ours(stream, query, slid.cut(2))
            turns = {"L": _slide_turn(stream, query, slid), **turns}
            record: Record = {"window": window, "query": query.name, **setting.contest.measured(turns, why)}
            print(shown(f"tumbling {window:,} {query.name}", record))
            found.append(record)
    return found


def sliding(setting: Setting) -> list[Record]:
    """A large window in steps of a hundredth; how long a single slide takes; all answers instead of changes."""
    sizes = setting.sizes
    found = []
    for stream, query in setting.queries():
        slid = ours.sliding(stream, sizes.window, sizes.slide, sizes.slides)
        record: Record = {"window": sizes.window, "slide": sizes.slide, "query": query.name}
        record |= setting.sampled(stream, query, slid)
        record["microseconds_per_slide"] = _latency(stream, query, slid)
        seconds = [sum(ours.slide_singly(stream, query, slid, all_answers=True)) for _ in range(sizes.repetitions)]
        record["all_answers_million_triples_per_second"] = _three(slid.timed / statistics.median(seconds) / 1e6)
        print(shown(f"window {sizes.window:,} slide {sizes.slide:,} {query.name}", record))
        found.append(record)
    return found


def single(setting: Setting) -> list[Record]:
    """A slide per triple."""
    sizes = setting.sizes
    found = []
    for stream, query in setting.queries():
        slid = ours.sliding(stream, sizes.small_window, 1, sizes.single_slides)
        record: Record = {"window": sizes.small_window, "slide": 1, "query": query.name}
        record |= setting.sampled(stream, query, slid)
        print(shown(f"window {sizes.small_window:,} slide 1 {query.name}", record))
        found.append(record)
    return found


def random(setting: Setting) -> list[Record]:
    """Graphs where every triple is relevant to every pattern."""
    sizes = setting.sizes
    needed = sizes.window + sizes.slide * sizes.graph_slides
    found = []
    for hubs in (False, True):
        graph = random_graphs.generate(needed, sizes.window // 2, hubs)
        for query in graph.queries:
            slid = ours.sliding(graph.stream, sizes.window, sizes.slide, sizes.graph_slides)
            record: Record = {"window": sizes.window, "slide": sizes.slide, "query": query.name}
            # Peers take seconds for a window here.
            record |= setting.sampled(graph.stream, query, slid, min(3, sizes.repetitions), sizes.graph_changes)
            print(shown(f"random graph {query.name}", record))
            found.append(record)
    return found


def spectra_table_1(setting: Setting) -> Record:
    """Tumbling windows in events of one triple, each of which is answered; what SPECTRA reports beside it."""
    found = []
    for window, count in setting.sizes.tumbling:
        for stream, query in (one for one in setting.queries() if one[0] is setting.lubm.stream):
            whole = ours.sliding(stream, window, window, max(1, min(count, setting.sizes.most_triples // window)))
            slid = ours.events_in_tumbling(whole, window)
            record: Record = {"window": window, "query": query.name}
            record |= setting.contest.measured({"L": _slide_turn(stream, query, slid)}, {})
            print(shown(f"Table 1, tumbling {window:,}, events of one triple, {query.name}", record))
            found.append(record)
    return {"measured": found, "spectra_thousand_triples_per_second": SPECTRA_TABLE_1}


def break_even(setting: Setting) -> list[Record]:
    """From which window on, and for which slides, does following changes pay?"""
    found = []
    for name in ("Q5", "Q7"):
        stream, query = setting.query(name)
        for window in setting.sizes.break_even:
            for slide in (window, window // 10, window // 100):
                slides = max(2, min(setting.sizes.most_triples // slide, setting.sizes.single_slides))
                slides = min(slides, (len(stream.facts) - window) // slide)
                slid = ours.sliding(stream, window, slide, slides)
                turns = {"L": _slide_turn(stream, query, slid), "T": _windows_turn(stream, query, slid, slide)}
                record: Record = {
                    "window": window,
                    "slide": slide,
                    "query": name,
                    **setting.contest.measured(turns, {}),
                }
                print(shown(f"break-even {name} window {window:,} slide {slide:,}", record))
                found.append(record)
    return found


def events(setting: Setting) -> list[Record]:
    """SPECTRA's Figures 7 and 8: the window slides with each event, of one triple and of twenty."""
    sizes = setting.sizes
    found = []
    for name in ("S1", "S2"):
        stream, query = setting.query(name)
        for window in (sizes.small_window, sizes.window):
            for size in (1, 20):
                slid = ours.sliding(stream, window, size, min(sizes.single_slides, sizes.most_triples // size))
                record: Record = {"window": window, "triples_per_event": size, "query": name}
                record |= setting.sampled(stream, query, slid)
                print(shown(f"events of {size} {name} window {window:,}", record))
                found.append(record)
    return found


def memory(setting: Setting) -> list[Record]:
    """What L keeps, by window."""
    found = []
    for stream, query in setting.queries():
        for window in setting.sizes.growth:
            slid = ours.sliding(stream, window, max(1, window // 100), 20)
            kept, entries = ours.kept_bytes(stream, query, slid)
            record = {
                "window": window, "query": query.name, "bytes": kept, "entries": entries,
                "bytes_per_window_triple": _three(kept / window),
                "bytes_per_entry": _three(kept / entries) if entries else None,
            }  # fmt: skip
            print(f"memory {query.name} window {window:,}: {kept / window:.1f} bytes per triple of the window")
            found.append(record)
    return found


def growth(setting: Setting) -> list[Record]:
    """The same slide in larger and larger windows: its work should stay."""
    sizes = setting.sizes
    found = []
    for name in ("Q7", "S1"):
        stream, query = setting.query(name)
        for window in sizes.growth:
            slid = ours.sliding(stream, window, sizes.slide, sizes.growth_slides)
            record: Record = {"window": window, "slide": sizes.slide, "query": name}
            record |= setting.sampled(stream, query, slid, repetitions=min(3, sizes.repetitions))
            rates = record["million_triples_per_second"]
            record["microseconds_per_slide"] = {who: _three(sizes.slide / rate) for who, rate in rates.items()}
            print(shown(f"growth {name} window {window:,} slide {sizes.slide:,}", record))
            found.append(record)
    return found


EXPERIMENTS: dict[str, Experiment] = {
    "tumbling": tumbling,
    "sliding": sliding,
    "single": single,
    "random": random,
    "spectra_table_1": spectra_table_1,
    "break_even": break_even,
    "events": events,
    "memory": memory,
    "growth": growth,
}


def losses(experiments: dict[str, Any]) -> list[str]:
    """Where a peer was faster than the better of ours."""
    found = []
    for name, records in experiments.items():
        for record in records if isinstance(records, list) else records["measured"]:
            rates = record.get("million_triples_per_second", {})
            peers = {who: rate for who, rate in rates.items() if who not in OURS}
            if peers and max(peers.values()) > (mine := max(rates[who] for who in OURS if who in rates)):
                best = max(peers, key=peers.__getitem__)
                where = ", ".join(f"{key} {record[key]}" for key in ("query", "window", "slide") if key in record)
                found.append(f"{name}, {where}: {best} {peers[best]:g}, ours {mine:g} M/s")
    return found


def _slide_turn(stream: Stream, query: Query, slid: Slid) -> Callable[[], float]:
    return lambda: ours.slide_all(stream, query, slid) / slid.timed


def _windows_turn(stream: Stream, query: Query, slid: Slid, slide: int) -> Callable[[], float]:
    windows = [slid.window(one) for one in slid.spread(50)]
    return lambda: ours.evaluate_windows(stream, query, windows) / (len(windows) * slide)


def _latency(stream: Stream, query: Query, slid: Slid) -> dict[str, float]:
    """How long L takes for a slide in a call of its own."""
    seconds = np.array(ours.slide_singly(stream, query, slid)) * 1e6
    p50, p99 = np.percentile(seconds, [50, 99])
    return {"p50": _three(float(p50)), "p99": _three(float(p99)), "most": _three(float(seconds.max()))}


def _three(value: float) -> float:
    return float(f"{value:.3g}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="EXPERIMENT", help=", ".join(EXPERIMENTS))
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    if unknown := set(options.names) - set(EXPERIMENTS):
        parser.error(f"no experiment {', '.join(sorted(unknown))}; there are {', '.join(EXPERIMENTS)}")
    run(options.smoke, tuple(options.names))


if __name__ == "__main__":
    main()
