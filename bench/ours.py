"""Our two matchers at the work of the matching benchmark: L, the log matcher, slides; T evaluates whole windows.

Both take the stream as it is: pruning is in their time, while peers are given windows that are pruned already.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from workloads.base import Query, Stream

from anabranch.delta.batch import Ids
from anabranch.delta.evaluation import evaluate
from anabranch.delta.log_matcher import LogMatcher


@dataclass(frozen=True, slots=True)
class Slid:
    """A window that slides over a part of the stream: slide i has the arrivals `tails[i] <= number < ends[i]` of
    `facts`. Slide 0 fills the window and is not timed."""

    facts: Ids
    ends: Ids
    tails: Ids

    @property
    def timed(self) -> int:
        """How many triples come in the slides that are timed."""
        return int(self.ends[-1] - self.ends[0])

    def window(self, number: int) -> Ids:
        return self.facts[self.tails[number] : self.ends[number]]

    def cut(self, count: int) -> Slid:
        """The first slides alone."""
        ends = self.ends[:count]
        return Slid(self.facts[: ends[-1]], ends, self.tails[:count])

    def spread(self, count: int) -> list[int]:
        """So many slide numbers, from the first to the last."""
        return [int(one) for one in np.unique(np.linspace(0, len(self.ends) - 1, count).astype(np.int64))]


def sliding(stream: Stream, window: int, slide: int, slides: int) -> Slid:
    """So many slides, such that the stream's middle lies in theirs."""
    needed = window + slide * slides
    if needed > len(stream.facts):
        raise ValueError(f"{needed} triples are needed, and {len(stream.facts)} are there")
    first = min(max(0, len(stream.facts) // 2 - window - slide * slides // 2), len(stream.facts) - needed)
    ends = np.arange(window, needed + 1, slide, dtype=np.int64)
    return Slid(stream.facts[first : first + needed], ends, ends - window)


def events_in_tumbling(slid: Slid, window: int) -> Slid:
    """The same stream in events of one triple, each a slide; the window empties whenever it is full."""
    ends = np.arange(window, len(slid.facts) + 1, dtype=np.int64)
    return Slid(slid.facts, ends, (ends - 1) // window * window)


def filled(stream: Stream, query: Query, slid: Slid) -> LogMatcher:
    matcher = LogMatcher(query.conjunction, stream.numbers)
    matcher.slide(slid.facts[: slid.ends[0]], slid.ends[:1], slid.tails[:1])
    return matcher


def slide_all(stream: Stream, query: Query, slid: Slid, per_call: int = 20_000) -> float:
    """Seconds for all slides after the first, many slides per call: what enters and what leaves."""
    matcher = filled(stream, query, slid)
    parts = [
        (slid.facts[slid.ends[at - 1] : slid.ends[min(at + per_call, len(slid.ends)) - 1]], slice(at, at + per_call))
        for at in range(1, len(slid.ends), per_call)
    ]
    began = time.perf_counter()
    for facts, which in parts:
        matcher.slide(facts, slid.ends[which], slid.tails[which])
    return time.perf_counter() - began


def slide_singly(stream: Stream, query: Query, slid: Slid, all_answers: bool = False) -> list[float]:
    """Seconds of each slide in a call of its own, and of asking for all matches after it."""
    matcher = filled(stream, query, slid)
    seconds = []
    for number in range(1, len(slid.ends)):
        facts = slid.facts[slid.ends[number - 1] : slid.ends[number]]
        ends, tails = slid.ends[number : number + 1], slid.tails[number : number + 1]
        began = time.perf_counter()
        matcher.slide(facts, ends, tails)
        if all_answers:
            matcher.matches()
        seconds.append(time.perf_counter() - began)
    return seconds


def evaluate_windows(stream: Stream, query: Query, windows: Sequence[Ids]) -> float:
    """Seconds to evaluate each window from nothing."""
    began = time.perf_counter()
    for facts in windows:
        evaluate(query.conjunction, facts, stream.numbers)
    return time.perf_counter() - began


def kept_bytes(stream: Stream, query: Query, slid: Slid) -> tuple[int, int]:
    """Bytes that L keeps after all slides, and the entries alive in it."""
    matcher = filled(stream, query, slid)
    matcher.slide(slid.facts[slid.ends[0] :], slid.ends[1:], slid.tails[1:])
    size = matcher.size()
    return int(size.bytes), int(size.rows)


def matches_after(stream: Stream, query: Query, slid: Slid) -> tuple[Ids, Ids]:
    """The matches after the last slide: as L says them, and as the changes that it told add up to."""
    matcher = LogMatcher(query.conjunction, stream.numbers)
    changes = matcher.slide(slid.facts, slid.ends, slid.tails)
    total = changes.batch.consolidated()
    if (total.weights != 1).any():
        raise AssertionError(f"{query.name}: a match is there {total.weights.max()} times")
    return matcher.matches(), total.rows
