"""The contest of the matching benchmark: what peers are given, what they say, and how it is compared."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from random import Random
from xml.etree import ElementTree

import contest
import numpy as np
import pytest
from matching import losses
from peers import feed, oxigraph_store, polars_joins, polars_lazy, remote
from peers.jobs import Slides, Window
from peers.remote import KNOWN, Known, Peer, PeerFailed
from plots import matching as pictures
from workloads.base import Query

from anabranch.delta.batch import Ids
from anabranch.delta.patterns import Conjunction, FactPattern, Fixed, Free, Place, Range

NUMBERS = np.array([np.nan, 1.0, 2.0, 3.0, 4.0, np.nan])
PEERS = [polars_joins, polars_lazy, oxigraph_store]


def pattern(*places: int | str, ranges: tuple[Range, ...] = ()) -> FactPattern:
    """A letter is a variable."""
    made: list[Place] = [Free(ord(one) - ord("a")) if isinstance(one, str) else Fixed(one) for one in places]
    return FactPattern(tuple(made), ranges)


CONJUNCTIONS = {
    "path": Conjunction(3, (pattern("a", 1, "b"), pattern("b", 2, "c")), 3),
    "triangle": Conjunction(3, (pattern("a", 1, "b"), pattern("b", 1, "c"), pattern("c", 1, "a")), 3),
    "star with a constant": Conjunction(3, (pattern("a", 1, 3), pattern("a", 2, "b"), pattern("a", 3, "c")), 3),
    "loop": Conjunction(3, (pattern("a", 1, "a"), pattern("a", 2, "b")), 2),
    "range": Conjunction(3, (pattern("a", 1, "b"), pattern("a", 2, "c", ranges=(Range(2, 1.5, 3.0),))), 3),
}


def naive(conjunction: Conjunction, facts: Ids) -> set[tuple[int, ...]]:
    """Every choice of one fact per pattern, tried."""
    found = set()
    for chosen in product(np.unique(facts, axis=0).tolist(), repeat=len(conjunction.patterns)):
        bound: dict[int, int] = {}
        if all(_fits(one, fact, bound) for one, fact in zip(conjunction.patterns, chosen, strict=True)):
            found.add(tuple(bound[variable] for variable in range(conjunction.variables)))
    return found


def _fits(wanted: FactPattern, fact: list[int], bound: dict[int, int]) -> bool:
    for place, value in zip(wanted.places, fact, strict=True):
        match place:
            case Fixed(id) if id != value:
                return False
            case Free(variable) if bound.setdefault(variable, value) != value:
                return False
    return all(one.low <= NUMBERS[fact[one.column]] <= one.high for one in wanted.ranges)


def facts_of(random: Random, count: int) -> Ids:
    rows = [(random.randint(1, 5), random.randint(1, 3), random.randint(1, 5)) for _ in range(count)]
    return np.array(rows, np.int64).reshape(count, 3)


@pytest.mark.parametrize("name", CONJUNCTIONS)
@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.__name__)
def test_a_peer_finds_what_trying_every_choice_finds(peer: object, name: str) -> None:
    conjunction = CONJUNCTIONS[name]
    plan = feed.plan_of(conjunction)
    random = Random(name)
    for _ in range(20):
        facts = facts_of(random, random.randint(0, 20))
        window = feed.window_of(conjunction, facts, NUMBERS)
        rows = peer.rows(plan, peer.evaluate(plan, peer.prepare(plan, window)))  # type: ignore[attr-defined]
        assert sorted(map(tuple, rows.tolist())) == sorted(naive(conjunction, facts))


@pytest.mark.parametrize("name", CONJUNCTIONS)
def test_changes_up_to_a_slide_add_up_to_the_window_of_that_slide(name: str, tmp_path: Path) -> None:
    conjunction = CONJUNCTIONS[name]
    random = Random(name)
    for _ in range(30):
        facts = facts_of(random, random.randint(1, 60))
        ends = np.array(sorted(random.choices(range(len(facts) + 1), k=random.randint(1, 8))), np.int64)
        # Windows of any width: some smaller than their slide, some empty.
        tails = np.maximum.accumulate(np.array([end - random.randint(-1, 12) for end in ends.tolist()]).clip(0))
        feed.slides_of(conjunction, facts, NUMBERS, ends, tails).write(tmp_path / "slides.npz")
        slides = Slides.read(tmp_path / "slides.npz")
        for number, (end, tail) in enumerate(zip(ends.tolist(), tails.tolist(), strict=True)):
            expected = feed.window_of(conjunction, facts[tail:end], NUMBERS)
            until = slides.cut(number + 1)
            for table, changes in zip(expected.tables, until.rows, strict=True):
                assert _summed(*changes) == sorted(map(tuple, table.tolist()))
            assert _summed(*until.triples) == sorted(map(tuple, expected.triples.tolist()))


def _summed(rows: Ids, weights: Ids, numbers: Ids) -> list[tuple[int, ...]]:
    alive: set[tuple[int, ...]] = set()
    assert (np.diff(numbers) >= 0).all()
    for row, weight in zip(map(tuple, rows.tolist()), weights.tolist(), strict=True):
        assert (row in alive) == (weight < 0)
        alive ^= {row}
    return sorted(alive)


def test_a_kept_store_follows_its_window() -> None:
    conjunction = CONJUNCTIONS["path"]
    plan = feed.plan_of(conjunction)
    facts = facts_of(Random(3), 60)
    ends = np.arange(10, 61, 5)
    kept = oxigraph_store.Kept(plan, feed.slides_of(conjunction, facts, None, ends, ends - 10))
    for number in range(1, len(ends)):
        rows = oxigraph_store.rows(plan, kept.slide(number))
        expected = naive(conjunction, facts[ends[number] - 10 : ends[number]])
        assert sorted(map(tuple, rows.tolist())) == sorted(expected)


def test_a_range_on_a_predicate_that_stands_twice_is_refused() -> None:
    ranged = pattern("a", 1, "b", ranges=(Range(2, 0.0, 1.0),))
    with pytest.raises(ValueError, match="one pattern only"):
        feed.plan_of(Conjunction(3, (ranged, pattern("b", 1, "c")), 3))


def test_a_peer_that_is_not_installed_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "PEERS_PYTHON", tmp_path / "nothing")
    peer = Peer(next(known for known in KNOWN if known.apart), tmp_path)
    peer.greet()
    assert peer.absent == "not installed: `make bench-peers` installs it"
    with pytest.raises(PeerFailed, match="make bench-peers"):
        peer.evaluate(1.0)


def test_a_peer_whose_library_is_missing_says_which(tmp_path: Path) -> None:
    peer = Peer(Known("Pathway", "pathway_flow", apart=False), tmp_path)
    peer.greet()
    assert peer.absent is not None
    assert "No module named" in peer.absent


def test_a_peer_in_its_own_process_answers_and_survives_a_failure(tmp_path: Path) -> None:
    conjunction = CONJUNCTIONS["triangle"]
    plan = feed.plan_of(conjunction)
    facts = facts_of(Random(5), 40)
    (path,) = remote.write_windows(tmp_path, [feed.window_of(conjunction, facts, None)])
    peer = Peer(KNOWN[0], tmp_path)
    peer.greet()
    try:
        with pytest.raises(PeerFailed, match="nowhere"):
            peer.load(plan, [tmp_path / "nowhere.npz"])
        peer.load(plan, [path])
        assert {tuple(row) for row in peer.answers(0).tolist()} == naive(conjunction, facts)
        assert len(peer.evaluate(1.0)) == 1
    finally:
        peer.stop()


def test_windows_pass_through_a_file(tmp_path: Path) -> None:
    window = feed.window_of(CONJUNCTIONS["path"], facts_of(Random(1), 30), None)
    window.write(tmp_path / "window.npz")
    found = Window.read(tmp_path / "window.npz")
    assert all(np.array_equal(mine, read) for mine, read in zip(window.tables, found.tables, strict=True))
    assert np.array_equal(window.triples, found.triples)


def test_other_answers_than_ours_stop_the_contest() -> None:
    query = Query("Q", ("?a",), CONJUNCTIONS["loop"], (), "")
    contest.same(query, "polars", np.array([[1, 2], [3, 4]]), np.array([[3, 4], [1, 2]]))
    with pytest.raises(AssertionError, match="polars finds 1 matches, T 2"):
        contest.same(query, "polars", np.array([[1, 2], [3, 4]]), np.array([[1, 2]]))


def test_ours_are_compared_with_the_best_peer_that_asks_again_and_with_pathway() -> None:
    rates = {"L": 10.0, "T": 2.0, "polars": 4.0, "pyoxigraph kept": 5.0, "Pathway": 20.0}
    assert contest.compared(rates) == {
        "best_peer": "pyoxigraph kept",
        "times_best_peer": {"L": 2.0, "T": 0.4},
        "times_pathway": {"L": 0.5, "T": 0.1},
    }


def test_pathway_is_compared_with_its_reading_where_its_joins_cannot_be_told() -> None:
    assert contest.compared({"L": 10.0, "Pathway with reading": 4.0}) == {"times_pathway": {"L": 2.5}}


@pytest.fixture
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> contest.Contest:
    """A contest without peers, of three repetitions."""
    monkeypatch.setattr(contest, "KNOWN", ())
    return contest.Contest(tmp_path, repetitions=3)


@pytest.fixture(autouse=True)
def every_turn_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contest, "LEAST", 0.0)


def test_contestants_take_turns_and_the_median_counts(nobody: contest.Contest) -> None:
    order: list[str] = []
    costs = {"L": iter([1e-6, 9e-6, 2e-6]), "T": iter([4e-6, 4e-6, 4e-6])}

    def turn(name: str) -> float:
        order.append(name)
        return next(costs[name])

    record = nobody.measured({"L": lambda: turn("L"), "T": lambda: turn("T")}, {})
    assert order == ["L", "T"] * 3
    assert record["million_triples_per_second"] == {"L": 0.5, "T": 0.25}
    assert record["least_and_most"]["L"] == [0.111, 1.0]


def test_a_peer_that_fails_or_cannot_be_told_is_named_with_its_reason(nobody: contest.Contest) -> None:
    def fails() -> float:
        raise PeerFailed("out of memory")

    noise = iter([1e-6, -1e-6, 1e-6])
    turns = {"L": lambda: 1e-6, "DuckDB": fails, "Pathway": lambda: next(noise)}
    record = nobody.measured(turns, {"DataFusion": "absent: not installed"})
    assert list(record["million_triples_per_second"]) == ["L"]
    assert record["without"] == {
        "DataFusion": "absent: not installed",
        "DuckDB": "out of memory",
        "Pathway": contest.TOO_LITTLE,
    }


def test_where_a_peer_was_faster_is_told() -> None:
    won = {"query": "Q1", "window": 10, "million_triples_per_second": {"L": 3.0, "T": 1.0, "polars": 2.0}}
    lost = {"query": "Q2", "window": 10, "million_triples_per_second": {"L": 3.0, "T": 1.0, "polars": 4.0}}
    assert losses({"tumbling": [won, lost]}) == ["tumbling, query Q2, window 10: polars 4, ours 3 M/s"]


def test_every_rate_that_was_measured_is_a_mark_in_a_picture() -> None:
    rates = {"L": 30.0, "T": 2.5, "polars": 0.004}
    slid = {"query": "Q1", "window": 100, "slide": 1, "million_triples_per_second": rates}
    grown = {**slid, "microseconds_per_slide": {"L": 5.0, "polars": 900.0}}
    result = {
        "experiments": {
            "sliding": [slid, {**slid, "query": "Q2", "million_triples_per_second": {"L": 30.0}}],
            "tumbling": [{**slid, "slide": 100}],
            "growth": [grown, {**grown, "window": 1000}],
            "break_even": [slid, {**slid, "slide": 100}],
        }
    }
    found = pictures(result)
    marks = {name: _titles(text) for name, text in found.items()}
    assert marks["matching-sliding.svg"] == ["Q1: L 30", "Q1: T 2.5", "Q1: polars 0.004", "Q2: L 30"]
    assert marks["matching-tumbling.svg"] == ["Q1: L 30", "Q1: T 2.5", "Q1: polars 0.004"]
    assert marks["matching-growth.svg"][:2] == ["L at 100: 5", "L at 1,000: 5"]
    assert marks["matching-break-even.svg"][0] == "L, tumbling at 100: 30"


def _titles(text: str) -> list[str]:
    root = ElementTree.fromstring(text)
    return [found.text or "" for mark in root for found in mark if found.tag.endswith("title")]
