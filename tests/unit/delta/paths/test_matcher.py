"""After every slide, the pairs that were told are those that the window's facts join."""

from __future__ import annotations

from random import Random

import pytest

from anabranch.delta.batch import Batch
from anabranch.delta.paths import matcher as module
from anabranch.delta.paths.automaton import Automaton, Chain, PathExpression, PathRepetition, PathStep, automaton
from anabranch.delta.paths.matcher import PathMatcher
from anabranch.delta.patterns import BudgetExceeded
from anabranch.errors import InternalError

from .drawn import Fact, Pair, as_ids, drawn_expression, drawn_facts, joined

P = PathStep(frozenset({101}))
NOTHING = as_ids(())


class Followed:
    """A matcher, the facts that it should know, and the pairs that it told."""

    def __init__(
        self,
        expression: PathExpression,
        source: int | None = None,
        target: int | None = None,
        loops: bool = False,
        lasting: list[Fact] | None = None,
    ) -> None:
        self.question = (source, target, loops)
        self.expression = expression
        machine = automaton(expression, standing=source is None and target is None)
        self.matcher = PathMatcher(machine, source, target, loops)
        self.pairs: set[Pair] = set()
        self.lasting = set(lasting or ())
        self.arrived: list[Fact] = []
        self.left = 0
        if lasting is not None:
            self._take(self.matcher.lay(as_ids(lasting)))
            self._check()

    def slide(self, came: list[Fact], width: int) -> Batch:
        self.arrived += came
        self.left = max(self.left, len(self.arrived) - width)
        batch = self.matcher.slide(as_ids(came), self.left)
        self._take(batch)
        self._check()
        return batch

    def _take(self, batch: Batch) -> None:
        for (begin, end), weight in zip(batch.rows.tolist(), batch.weights.tolist(), strict=True):
            assert weight == (-1 if (begin, end) in self.pairs else 1)
            self.pairs ^= {(begin, end)}

    def _check(self) -> None:
        living = self.lasting | set(self.arrived[self.left :])
        assert self.pairs == joined(self.expression, living, *self.question)
        assert sorted(map(tuple, self.matcher.pairs().tolist())) == sorted(self.pairs)


def drawn(random: Random, lasting: bool = False) -> Followed:
    source, target = random.choice((None, None, 1, 7)), random.choice((None, None, 1, 2))
    loops = source is target is None and random.random() < 0.3
    some = drawn_facts(random, 5, random.randint(0, 4)) if lasting else None
    return Followed(drawn_expression(random), source, target, loops, some)


@pytest.mark.parametrize("seed", range(200))
def test_random_paths_over_random_slides(seed: int) -> None:
    """Empty slides, slides that replace more than the window, facts that come again."""
    random = Random(seed)
    followed = drawn(random, lasting=seed % 4 == 0)
    vertices = random.choice((3, 5, 9))
    for _ in range(random.randint(5, 25)):
        came = drawn_facts(random, vertices, random.choice((0, 1, 1, 2, 3, 8)))
        followed.slide(came, random.choice((0, 2, 5, 8, 8, 8, 12, 20)))


@pytest.mark.parametrize("seed", range(60))
def test_what_is_told_does_not_depend_on_how_the_stream_is_cut(seed: int) -> None:
    random = Random(seed)
    machine = automaton(drawn_expression(random), standing=True)
    facts = drawn_facts(random, 6, 60)
    told = []
    for size in (1, 3, 20, 60):
        matcher = PathMatcher(machine)
        sum_of_all: dict[Pair, int] = {}
        for first in range(0, 60, size):
            batch = matcher.slide(as_ids(facts[first : first + size]), max(0, first + size - 10))
            for (begin, end), weight in zip(batch.rows.tolist(), batch.weights.tolist(), strict=True):
                sum_of_all[begin, end] = sum_of_all.get((begin, end), 0) + weight
        told.append({pair for pair, weight in sum_of_all.items() if weight})
    assert told[0] == told[1] == told[2] == told[3]


@pytest.mark.parametrize("seed", range(40))
def test_nothing_is_kept_when_everything_has_left(seed: int) -> None:
    random = Random(seed)
    followed = drawn(random)
    for _ in range(5):
        followed.slide(drawn_facts(random, 12, 15), 20)
    followed.slide([], 0)
    given = {end for end in followed.question[:2] if end is not None}
    assert followed.matcher.size().rows == followed.matcher.edges == 0
    assert followed.matcher.vertices == len(given)
    assert all(begin == end and begin in given for begin, end in followed.pairs)
    followed.slide(drawn_facts(random, 12, 15), 20)


def test_a_fact_that_comes_again_prolongs_the_pairs_that_pass_it() -> None:
    followed = Followed(PathRepetition(P, 1))
    followed.slide([(1, 101, 2), (2, 101, 3)], 2)
    assert len(followed.slide([(1, 101, 2), (2, 101, 3)], 2)) == 0
    assert len(followed.slide([(2, 101, 3)], 2)) == 0 + 2  # 1 to 2, and with it 1 to 3, are gone
    assert followed.pairs == {(2, 3)}


def test_a_shorter_path_that_lasts_longer_takes_over_without_a_word() -> None:
    followed = Followed(PathRepetition(P, 1))
    followed.slide([(1, 101, 2), (2, 101, 3)], 3)
    assert len(followed.slide([(1, 101, 3)], 3)) == 0
    assert followed.slide([(5, 102, 5)], 3).rows.tolist() == [[1, 2]]
    assert (1, 3) in followed.pairs


def test_vertices_far_apart_are_joined_and_parted_by_one_fact() -> None:
    line = [(at, 101, at + 1) for at in range(40)]
    followed = Followed(PathRepetition(P, 1), source=0)
    followed.slide([*line[20:], *line[1:20]], 40)
    assert not followed.pairs
    assert len(followed.slide(line[:1], 40)) == 40
    assert len(followed.slide([(50, 101, 51)], 40)) == 20, "the fact that was first, from 20 to 21, has left"


def test_facts_that_last_carry_what_the_window_cannot() -> None:
    followed = Followed(PathRepetition(P, 1), lasting=[(2, 101, 3)])
    followed.slide([(1, 101, 2), (2, 101, 3)], 2)
    assert followed.pairs == {(1, 2), (1, 3), (2, 3)}
    followed.slide([], 0)
    assert followed.pairs == {(2, 3)}


def test_arrays_grow_with_the_window_and_shrink_when_it_empties(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ENOUGH", 64)
    monkeypatch.setattr(module, "_SWEPT_FROM", 16)
    random = Random(7)
    followed = Followed(Chain((PathRepetition(P, 1), PathStep(frozenset({102})))))
    empty = followed.matcher.size().bytes
    for width in (300, 300, 300, 20, 20, 20, 300, 5):
        came = [(random.randrange(60), random.choice((101, 102)), random.randrange(60)) for _ in range(150)]
        followed.slide(came, width)
    followed.slide([], 0)
    assert followed.matcher.size().bytes < 3 * empty


def test_few_steps_of_fuel_lead_to_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FUEL", 3)
    test_random_paths_over_random_slides(11)
    test_random_paths_over_random_slides(12)
    random = Random(3)
    followed = Followed(PathRepetition(P, 0))
    for _ in range(4):
        followed.slide([(random.randrange(30), 101, random.randrange(30)) for _ in range(60)], 90)


def test_few_seeds_at_a_time_lead_to_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where more become better than may wait, they are spread before others are looked for."""
    monkeypatch.setattr(module, "_MOST_SEEDS", 2)
    random = Random(5)
    followed = Followed(PathRepetition(P, 0))
    for _ in range(4):
        followed.slide([(random.randrange(20), 101, random.randrange(20)) for _ in range(40)], 60)


def test_ticks_are_counted_from_a_base_that_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_REBASED_FROM", 50)
    random = Random(9)
    followed = Followed(PathRepetition(P, 0), lasting=[(1, 101, 2)])
    for _ in range(40):
        followed.slide([(random.randrange(9), 101, random.randrange(9)) for _ in range(5)], 12)


def path_machine() -> Automaton:
    return automaton(PathRepetition(P, 1))


def test_too_many_nodes_are_refused_and_exactly_as_many_as_allowed_are_not() -> None:
    line = as_ids([(at, 101, at + 1) for at in range(3)])
    PathMatcher(path_machine(), max_nodes=9).slide(line, 0)  # 3 roots, and 3 + 2 + 1 nodes
    matcher = PathMatcher(path_machine(), max_nodes=8)
    with pytest.raises(BudgetExceeded, match="more than 8 matches"):
        matcher.slide(line, 0)
    with pytest.raises(InternalError, match="cannot go on"):
        matcher.slide(NOTHING, 0)


def test_too_many_bytes_are_refused() -> None:
    matcher = PathMatcher(path_machine(), max_bytes=100_000)
    with pytest.raises(BudgetExceeded, match="more than 100,000 bytes"):
        matcher.slide(as_ids([(at, 101, at + 1) for at in range(300)]), 0)


def test_what_leaves_must_have_come_and_stays_away() -> None:
    matcher = PathMatcher(path_machine())
    matcher.slide(as_ids([(1, 101, 2), (2, 101, 3)]), 1)
    with pytest.raises(InternalError, match="3 of 2 arrivals cannot have left"):
        matcher.slide(NOTHING, 3)
    with pytest.raises(InternalError, match="0 of 2 arrivals cannot have left"):
        matcher.slide(NOTHING, 0)
