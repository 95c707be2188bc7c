"""Numbers for ids that come and go, and windows that are asked by id."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.delta.connectivity.naive import NaiveWindows
from tests.unit.delta.connectivity.streams import STREAMS, Stream, moved, moving_ids, vanish_and_return

from anabranch.delta.batch import Ids, Mask
from anabranch.delta.connectivity import vertices as module
from anabranch.delta.connectivity.base import ConnectivityIndex
from anabranch.delta.connectivity.recency import RecencyTree
from anabranch.delta.connectivity.vertices import Vertices, WindowedIndex
from anabranch.delta.operators.base import Size
from anabranch.errors import InternalError
from anabranch.model.scrambled import scrambled

seeds = st.integers(0, 10**9)


def ids_of(*ids: int) -> Ids:
    return np.array(ids, np.int64)


# --- numbers ---


def test_ids_are_numbered_as_they_come_and_keep_their_numbers() -> None:
    vertices = Vertices()
    assert vertices.numbers_of(ids_of(70, -5, 70, 0)).tolist() == [0, 1, 0, 2]
    assert vertices.numbers_of(ids_of(0, 9, -5)).tolist() == [2, 3, 1]
    assert vertices.ids.tolist() == [70, -5, 0, 9]
    assert len(vertices) == vertices.count == 4


def test_what_is_not_known_gets_no_number_by_being_asked_for() -> None:
    vertices = Vertices()
    vertices.numbers_of(ids_of(7))
    assert vertices.known(ids_of(8, 7, 0)).tolist() == [-1, 0, -1]
    assert len(vertices) == 1


def test_every_int64_can_be_an_id() -> None:
    extremes = ids_of(0, -1, 1, 2**63 - 1, -(2**63), 2**32, -(2**32))
    vertices = Vertices()
    assert vertices.known(extremes).tolist() == [-1] * 7
    assert vertices.numbers_of(extremes).tolist() == list(range(7))
    assert vertices.known(extremes).tolist() == list(range(7))


def test_priorities_are_distinct_and_what_the_model_says() -> None:
    vertices = Vertices()
    ids = np.concatenate([np.arange(-500, 500), np.arange(0, 2**62, 2**53), ids_of(2**63 - 1, -(2**63))])
    ids = np.unique(ids)
    vertices.numbers_of(ids)
    assert vertices.priorities.tolist() == [scrambled(identifier) for identifier in ids.tolist()]
    assert len(np.unique(vertices.priorities)) == len(ids)


def test_priorities_may_be_given_and_are_asked_for_new_ids_alone() -> None:
    asked: list[int] = []

    def prioritise(ids: Ids) -> Ids:
        asked.extend(ids.tolist())
        return -ids

    vertices = Vertices(prioritise)
    vertices.numbers_of(ids_of(5, 6, 5))
    vertices.numbers_of(ids_of(6, 7))
    assert vertices.priorities.tolist() == [-5, -6, -7]
    vertices.sweep(np.array([False, True, False]))
    vertices.numbers_of(ids_of(8, 6, 9, 10))
    assert asked == [5, 6, 7, 8, 9, 10]
    assert vertices.priorities[vertices.known(ids_of(6, 8, 9, 10))].tolist() == [-6, -8, -9, -10]


def test_numbers_that_were_taken_back_are_handed_out_again_the_lowest_first() -> None:
    vertices = Vertices()
    vertices.numbers_of(np.arange(100, 110))
    vertices.sweep(np.isin(np.arange(10), [1, 4, 6]))
    assert vertices.living().tolist() == [1, 4, 6]
    assert vertices.count == 7
    assert vertices.numbers_of(np.arange(200, 206)).tolist() == [0, 2, 3, 5, 7, 8]
    assert vertices.known(ids_of(100, 101, 104, 106, 109)).tolist() == [-1, 1, 4, 6, -1]


def test_a_sweep_needs_to_know_of_all_numbers() -> None:
    vertices = Vertices()
    vertices.numbers_of(ids_of(1, 2, 3))
    with pytest.raises(InternalError, match="3 vertices"):
        vertices.sweep(np.ones(2, np.bool_))


@settings(max_examples=60, deadline=None)
@given(seeds)
def test_numbers_are_those_of_a_dictionary(seed: int) -> None:
    generator = np.random.default_rng(seed)
    pool = generator.integers(-(2**63), 2**63 - 1, 400)
    vertices, model = Vertices(), dict[int, int]()
    for _ in range(12):
        share = pool[generator.integers(0, len(pool), generator.integers(0, 300))]
        if generator.random() < 0.3:
            expected = [model.get(identifier, -1) for identifier in share.tolist()]
            assert vertices.known(share).tolist() == expected
        for identifier, number in zip(share.tolist(), vertices.numbers_of(share).tolist(), strict=True):
            assert model.setdefault(identifier, number) == number
        assert len(set(model.values())) == len(model)
        if generator.random() < 0.5:
            in_use = generator.random(vertices.count) < generator.random()
            vertices.sweep(in_use)
            model = {identifier: number for identifier, number in model.items() if in_use[number]}
        assert len(vertices) == len(model)
        assert vertices.living().tolist() == sorted(model.values())
        assert {vertices.ids[number]: number for number in vertices.living().tolist()} == model
        assert all(vertices.priorities[number] == scrambled(identifier) for identifier, number in model.items())


def test_a_hundred_thousand_ids_in_one_call() -> None:
    vertices = Vertices()
    ids = np.random.default_rng(1).permutation(np.arange(0, 10**9, 10**4))
    numbers = vertices.numbers_of(np.concatenate([ids, ids[::-1]]))
    np.testing.assert_array_equal(numbers, np.concatenate([np.arange(10**5), np.arange(10**5)[::-1]]))
    np.testing.assert_array_equal(vertices.ids, ids)
    assert vertices.size().bytes < 100 * 10**5


def test_memory_is_given_back_when_most_vertices_are() -> None:
    vertices = Vertices()
    vertices.numbers_of(np.arange(50_000))
    vertices.sweep(np.arange(50_000) < 10)
    assert vertices.size().bytes < 4096
    assert vertices.known(ids_of(9, 10)).tolist() == [9, -1]
    vertices.sweep(np.zeros(10, np.bool_))
    assert vertices.size().rows == vertices.count == 0


def test_memory_stays_flat_while_ids_come_and_go() -> None:
    vertices = Vertices()
    sizes = []
    for start in range(0, 10**6, 2000):
        vertices.numbers_of(np.arange(start, start + 4000))
        vertices.sweep(vertices.ids >= start)
        sizes.append(vertices.size())
    assert {size.rows for size in sizes} == {4000}
    assert max(size.bytes for size in sizes) < 600_000


# --- windows by id ---


class PlainIndex(ConnectivityIndex):
    """An index that searches anew: `WindowedIndex` must not depend on what its index is."""

    def __init__(self) -> None:
        self._naive = NaiveWindows(np.empty(0, np.int64))
        self._forgotten = -(10**18)

    def insert(self, edges: Ids, ticks: Ids, priorities: Ids) -> None:
        self._naive.priorities = priorities.copy()
        self._naive.insert(edges, ticks)

    def forget(self, tick: int) -> None:
        living = self._naive.ticks >= tick
        self._naive.edges, self._naive.ticks = self._naive.edges[living], self._naive.ticks[living]
        self._forgotten = tick

    def connected(self, left: Ids, right: Ids, opens: int) -> Mask:
        return self.roots(left, opens) == self.roots(right, opens)

    def roots(self, vertices: Ids, opens: int) -> Ids:
        return self._naive.roots(opens)[vertices]

    def in_use(self, count: int) -> Mask:
        return self._naive.linked(self._forgotten)[:count]

    def size(self) -> Size:
        return Size(len(self._naive.edges), 0)

    @property
    def nbytes(self) -> int:
        return 0


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweep from 8 vertices on, and not from a thousand."""
    monkeypatch.setattr(module, "_SWEPT_FROM", 8)


def external(stream: Stream) -> Ids:
    """The ids of a stream's vertices: far apart, in no order, of either sign."""
    return np.array([scrambled(vertex * 7 + 1) for vertex in range(stream.vertices)], np.int64)


def assert_same(windowed: WindowedIndex, naive: NaiveWindows, ids: Ids, opens: int, seed: int) -> None:
    expected = ids[naive.roots(opens)]
    np.testing.assert_array_equal(windowed.roots(ids, opens), expected)
    left, right = np.random.default_rng(seed).integers(0, len(ids), (2, 100))
    np.testing.assert_array_equal(windowed.connected(ids[left], ids[right], opens), expected[left] == expected[right])
    living = naive.living(opens)
    assert sorted(windowed.living(opens).tolist()) == sorted(ids[living].tolist())
    roots, sizes = np.unique(expected[living], return_counts=True)
    found_roots, found_sizes = windowed.components(opens)
    assert dict(zip(found_roots.tolist(), found_sizes.tolist(), strict=True)) == dict(
        zip(roots.tolist(), sizes.tolist(), strict=True)
    )


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("make_index", [RecencyTree, PlainIndex])
@pytest.mark.parametrize("kind", STREAMS)
def test_every_window_is_what_a_search_finds_while_numbers_are_swept(
    kind: str, make_index: type[RecencyTree] | type[PlainIndex]
) -> None:
    stream = STREAMS[kind](3)
    ids = external(stream)
    windowed = WindowedIndex(make_index())
    naive = NaiveWindows(np.array([scrambled(identifier) for identifier in ids.tolist()], np.int64))
    for slide in stream.slides:
        windowed.forget(slide.now - 5)
        naive.insert(slide.edges, slide.ticks)
        windowed.insert(ids[slide.edges[:, 0]], ids[slide.edges[:, 1]], slide.ticks)
        for opens in (slide.now - 5, slide.now - 2, slide.now):
            assert_same(windowed, naive, ids, opens, slide.now & 0xFFFF)


@pytest.mark.usefixtures("eager")
def test_numbers_are_recycled_while_vertices_vanish_and_return() -> None:
    stream = vanish_and_return(1)
    windowed = WindowedIndex(RecencyTree())
    counts = []
    for slide in stream.slides:
        windowed.forget(slide.now - 2)
        windowed.insert(slide.edges[:, 0], slide.edges[:, 1], slide.ticks)
        counts.append(windowed.vertices.count)
    assert max(counts) < stream.vertices


def test_ids_that_are_not_known_are_connected_to_themselves_alone() -> None:
    windowed = WindowedIndex(RecencyTree())
    windowed.insert(ids_of(10), ids_of(20), ids_of(1))
    left, right = ids_of(10, 10, 99, 99, 98), ids_of(20, 99, 10, 99, 99)
    assert windowed.connected(left, right, 1).tolist() == [True, False, False, True, False]
    assert windowed.roots(ids_of(99, 98), 1).tolist() == [99, 98]
    assert len(windowed.vertices) == 2


def test_a_vertex_with_a_loop_alone_lives_as_long_as_the_loop() -> None:
    windowed = WindowedIndex(RecencyTree())
    windowed.insert(ids_of(1, 2, 4), ids_of(1, 3, 4), ids_of(5, 6, 3))
    assert sorted(windowed.living(5).tolist()) == [1, 2, 3]
    windowed.forget(5)
    windowed.sweep()
    assert len(windowed.vertices) == 3
    roots, sizes = windowed.components(5)
    assert dict(zip(roots.tolist(), sizes.tolist(), strict=True)).get(1) == 1
    assert sorted(windowed.living(6).tolist()) == [2, 3]
    windowed.forget(6)
    windowed.sweep()
    assert len(windowed.vertices) == 2


def test_edges_that_come_too_late_hand_out_no_numbers() -> None:
    windowed = WindowedIndex(RecencyTree())
    windowed.forget(10)
    windowed.insert(ids_of(1, 3, 5), ids_of(2, 4, 5), ids_of(9, 10, 2))
    assert sorted(windowed.living(10).tolist()) == [3, 4]
    assert len(windowed.vertices) == 2


def test_memory_stays_flat_however_many_ids_the_stream_has() -> None:
    windowed = WindowedIndex(RecencyTree())
    generator = np.random.default_rng(3)
    sizes = []
    for now in range(400):
        ends = generator.integers(now * 500, now * 500 + 1500, (2, 600)) * 1_000_003
        windowed.forget(now - 4)
        windowed.insert(ends[0], ends[1], np.full(600, now))
        sizes.append(windowed.size())
    assert max(size.rows for size in sizes) < 12_000
    assert max(size.bytes for size in sizes) < 600_000


def test_when_everything_is_forgotten_everything_is_given_back() -> None:
    windowed = WindowedIndex(RecencyTree())
    ids = np.arange(30_000)
    windowed.insert(ids, ids // 3, np.full(len(ids), 7))
    assert windowed.size().bytes > 10**6
    windowed.forget(8)
    assert windowed.size().rows == windowed.vertices.count == 0
    assert windowed.size().bytes < 4096
    assert windowed.living(8).tolist() == []


def test_after_a_burst_memory_follows_the_calm() -> None:
    windowed = WindowedIndex(RecencyTree())
    ids = np.arange(20_000)
    windowed.insert(ids, ids // 3, np.zeros(len(ids), np.int64))
    generator = np.random.default_rng(2)
    for now in range(1, 200):
        windowed.forget(now - 3)
        ends = generator.integers(0, 50, (2, 1000))
        windowed.insert(ends[0], ends[1], np.full(1000, now))
    assert len(windowed.vertices) == 50
    assert windowed.size().bytes < 8192


def test_priorities_of_the_caller_decide_who_is_the_root() -> None:
    windowed = WindowedIndex(RecencyTree(), Vertices(lambda ids: ids))
    stream = moved(moving_ids(4), 50)
    for slide in stream.slides:
        windowed.forget(slide.now - 3)
        windowed.insert(slide.edges[:, 0], slide.edges[:, 1], slide.ticks)
        naive = NaiveWindows(np.arange(stream.vertices))
        naive.insert(slide.edges, slide.ticks)
        everyone = np.arange(stream.vertices)
        np.testing.assert_array_equal(windowed.roots(everyone, slide.now), naive.roots(slide.now))


def test_edges_need_two_ends_and_a_tick() -> None:
    with pytest.raises(InternalError, match="2 and 1 ends"):
        WindowedIndex(RecencyTree()).insert(ids_of(1, 2), ids_of(1), ids_of(1))
