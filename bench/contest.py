"""Contestants under one roof: the same windows for all, answers compared before anything is timed, repetitions in turn.

In every repetition each contestant has its turn before the next repetition begins, so that a machine that slows down
slows all; what is told is the median. A rate counts the triples of the stream, pruned ones too.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import ours
from ours import Slid
from peers import feed
from peers.jobs import Plan
from peers.remote import KNOWN, PATHWAY, PATHWAY_READING, Peer, PeerFailed, write_slides, write_windows
from workloads.base import Query, Stream

from anabranch.delta.batch import Ids
from anabranch.delta.evaluation import evaluate

Turn = Callable[[], float]
"""One repetition: seconds per triple of the stream."""
BUDGET = 5.0  # seconds that a peer may take for one turn; then it is judged by the windows that it managed
LEAST = 0.05  # seconds that a repetition takes at least
OURS = ("L", "T")
TOO_LITTLE = "its joins take too little to be told from the reading of its input"


class Contest:
    def __init__(self, folder: Path, repetitions: int, budget: float = BUDGET) -> None:
        self.folder = folder
        self.repetitions = repetitions
        self.budget = budget
        self.peers = [Peer(known, folder) for known in KNOWN]
        for peer in self.peers:  # all are under way by now
            peer.greet()

    def versions(self) -> dict[str, str]:
        return {peer.name: f"absent: {peer.absent}" if peer.absent else peer.version for peer in self.peers}

    def stop(self) -> None:
        for peer in self.peers:
            peer.stop()

    # --- contestants ---

    def windows(
        self, stream: Stream, query: Query, windows: Sequence[Ids], advance: int | None = None
    ) -> tuple[dict[str, Turn], dict[str, str]]:
        """T and every re-evaluating peer, on these windows. Each window answers for `advance` triples of the stream; if
        that is None, for all that are in it. Also, why a peer has no turn."""
        sizes = [len(facts) if advance is None else advance for facts in windows]
        turns: dict[str, Turn] = {"T": lambda: ours.evaluate_windows(stream, query, windows) / sum(sizes)}
        plan = feed.plan_of(query.conjunction)
        given = [feed.window_of(query.conjunction, facts, stream.numbers) for facts in windows]
        paths = write_windows(self.folder, given)
        reasons: dict[str, str] = {}
        checked = [0, len(windows) // 2]
        expected = [evaluate(query.conjunction, windows[place], stream.numbers) for place in checked]
        for peer in self._peers(follows=False, reasons=reasons):
            try:
                peer.load(plan, paths)
                for place, rows in zip(checked, expected, strict=True):
                    same(query, peer.name, rows, peer.answers(place))
            except PeerFailed as failed:
                reasons[peer.name] = str(failed)
                continue
            turns[peer.name] = self._windows_turn(peer, sizes)
        return turns, reasons

    def _windows_turn(self, peer: Peer, sizes: list[int]) -> Turn:
        def turn() -> float:
            seconds = peer.evaluate(self.budget)
            return sum(seconds) / sum(sizes[: len(seconds)])

        return turn

    def slides(self, stream: Stream, query: Query, slid: Slid, changes: int) -> tuple[dict[str, Turn], dict[str, str]]:
        """L and every incremental peer. Peers get as many of the slides as bring about so many changes."""
        advance = slid.timed / (len(slid.ends) - 1)
        turns: dict[str, Turn] = {"L": lambda: ours.slide_all(stream, query, slid) / slid.timed}
        plan = feed.plan_of(query.conjunction)
        given = slid.cut(_slides_within(stream, query, slid, changes))
        told = feed.slides_of(query.conjunction, given.facts, stream.numbers, given.ends, given.tails)
        few = min(told.count, 10)
        expected = check_ours(stream, query, slid.cut(few))
        short_path = write_slides(self.folder, told.cut(few)).rename(self.folder / "few.npz")
        path = write_slides(self.folder, told)
        reasons: dict[str, str] = {}
        for peer in self._peers(follows=True, reasons=reasons):
            try:
                same(query, peer.name, expected, peer.slide_answers(plan, short_path))
            except PeerFailed as failed:
                reasons[peer.name] = str(failed)
                continue
            turns |= self._slides_turns(peer, plan, path, advance)
        return turns, reasons

    def _slides_turns(self, peer: Peer, plan: Plan, path: Path, advance: float) -> dict[str, Turn]:
        with_reading: list[float] = []

        def turn() -> float:
            seconds, read = peer.slides(plan, path, self.budget)
            with_reading.append(read)
            return seconds / advance

        def turn_with_reading() -> float:
            if not with_reading:
                raise PeerFailed("not measured")
            return with_reading[-1] / advance

        if peer.name != PATHWAY:
            return {peer.name: turn}
        return {PATHWAY: turn, PATHWAY_READING: turn_with_reading}

    def _peers(self, follows: bool, reasons: dict[str, str]) -> Iterator[Peer]:
        for peer in self.peers:
            if peer.known.follows == follows:
                if peer.absent:
                    reasons[peer.name] = f"absent: {peer.absent}"
                else:
                    yield peer

    # --- turns ---

    def measured(
        self, turns: dict[str, Turn], reasons: dict[str, str], repetitions: int | None = None
    ) -> dict[str, Any]:
        """The median rate of each contestant in million triples per second, how far repetitions lay apart, who was
        best, and how many times ours are faster."""
        costs: dict[str, list[float]] = {name: [] for name in turns}
        for _ in range(repetitions or self.repetitions):
            for name, turn in turns.items():
                if name not in reasons:
                    try:
                        costs[name].append(_repeated(turn) * 1e6)
                    except PeerFailed as failed:
                        reasons[name] = str(failed)
        # What Pathway reads is taken off its time, so where there is little else, less than nothing may remain.
        reasons |= {name: TOO_LITTLE for name, seen in costs.items() if name not in reasons and min(seen) <= 0}
        for peer in self.peers:
            if not (peer.absent or peer.known.follows):
                peer.drop()
        costs = {name: seen for name, seen in costs.items() if name not in reasons}
        found = {name: 1 / statistics.median(seen) for name, seen in costs.items()}
        return {
            "million_triples_per_second": {name: _rounded(rate) for name, rate in found.items()},
            "least_and_most": {
                name: [_rounded(1 / max(seen)), _rounded(1 / min(seen))] for name, seen in costs.items()
            },
            **({"without": reasons} if reasons else {}),
            **compared(found),
        }


def compared(rates: dict[str, float]) -> dict[str, Any]:
    """How many times faster ours are than the best peer that asks again, and than Pathway: its joins alone, unless
    they take too little to be told. Below 1 is a loss."""
    again = [known.name for known in KNOWN if known.asks_again and known.name in rates]
    best = max(again, key=rates.__getitem__, default=None)
    found: dict[str, Any] = {}
    mine = {name: rate for name, rate in rates.items() if name in OURS}
    if best is not None:
        found["best_peer"] = best
        found["times_best_peer"] = {name: _rounded(rate / rates[best]) for name, rate in mine.items()}
    pathway = rates.get(PATHWAY, rates.get(PATHWAY_READING))
    if pathway is not None:
        found["times_pathway"] = {name: _rounded(rate / pathway) for name, rate in mine.items()}
    return found


def check_ours(stream: Stream, query: Query, slid: Slid) -> Ids:
    """The matches after the last slide; L has them, and they are what its changes add up to."""
    expected = evaluate(query.conjunction, slid.window(len(slid.ends) - 1), stream.numbers)
    for name, rows in zip(("L", "L's changes"), ours.matches_after(stream, query, slid), strict=True):
        same(query, name, expected, rows)
    return expected


def same(query: Query, name: str, expected: Ids, rows: Ids) -> None:
    """Both have the same matches."""
    if not np.array_equal(_sorted(expected), _sorted(rows)):
        raise AssertionError(f"{query.name}: {name} finds {len(rows)} matches, T {len(expected)}, and not the same")


def shown(title: str, record: dict[str, Any]) -> str:
    rates = ", ".join(f"{name} {rate:g}" for name, rate in record["million_triples_per_second"].items())
    ratios = [
        f"{'/'.join(f'{times:g}' for times in record[key].values())} times {other}"
        for key, other in (("times_best_peer", record.get("best_peer")), ("times_pathway", "Pathway"))
        if key in record
    ]
    times = f"; {'/'.join(OURS)} {', '.join(ratios)}" if ratios else ""
    left = "".join(f"; {name} {reason}" for name, reason in record.get("without", {}).items())
    return f"{title}: {rates} M/s{times}{left}"


def _slides_within(stream: Stream, query: Query, slid: Slid, changes: int) -> int:
    """How many slides bring about so many changes: what enters leaves later."""
    after = slid.facts[slid.ends[0] :]
    fitting = np.logical_or.reduce([feed.fits(one, after, stream.numbers) for one in query.conjunction.patterns])
    places = np.flatnonzero(fitting)
    if len(places) <= changes // 2:
        return len(slid.ends)
    return max(2, int(np.searchsorted(slid.ends, slid.ends[0] + places[changes // 2], side="right")))


@contextmanager
def contest(repetitions: int, budget: float = BUDGET) -> Iterator[Contest]:
    with tempfile.TemporaryDirectory(prefix="anabranch-bench-") as folder:
        found = Contest(Path(folder), repetitions, budget)
        try:
            yield found
        finally:
            found.stop()


def _sorted(rows: Ids) -> Ids:
    return rows[np.lexsort(rows.T[::-1])] if rows.shape[1] else rows


def _repeated(turn: Turn) -> float:
    """One repetition; where that takes next to no time, the median of several, so that a turn begins warm and nothing
    that happens beside it counts for much."""
    began, seen = time.perf_counter(), [turn()]
    while time.perf_counter() - began < LEAST:
        seen.append(turn())
    return statistics.median(seen)


def _rounded(value: float) -> float:
    """Three digits that count."""
    return float(f"{value:.3g}")
