"""The recency tree against searching every window anew."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.delta.connectivity.naive import NaiveWindows, assert_agrees, labels_of
from tests.unit.delta.connectivity.streams import (
    STREAMS,
    Stream,
    path,
    power_law,
    random_priorities,
    small_components,
    stretched,
    uniform,
    with_gaps,
    with_late_edges,
    with_loops_and_copies,
)

from anabranch.delta.batch import Ids
from anabranch.delta.connectivity.recency import RecencyTree, spanning_forest
from anabranch.errors import InternalError

seeds = st.integers(0, 10**9)


def matrix(*edges: tuple[int, int]) -> Ids:
    return np.array(edges, np.int64).reshape(-1, 2)


def ticks_of(*ticks: int) -> Ids:
    return np.array(ticks, np.int64)


def filled(stream: Stream, priorities: Ids) -> RecencyTree:
    """A tree that has taken a whole stream in, and forgotten nothing."""
    tree = RecencyTree()
    for slide in stream.slides:
        tree.insert(slide.edges, slide.ticks, priorities)
    return tree


def assert_agrees_throughout(stream: Stream, widths: tuple[int, ...], seed: int = 0) -> RecencyTree:
    """After every slide, in the windows of all widths."""
    priorities = random_priorities(stream.vertices, seed)
    tree, naive = RecencyTree(), NaiveWindows(priorities)
    for slide in stream.slides:
        tree.forget(slide.now - max(widths) + 1)
        tree.insert(slide.edges, slide.ticks, priorities)
        naive.insert(slide.edges, slide.ticks)
        for width in widths:
            opens = slide.now - width + 1
            assert_agrees(tree, naive, opens, seed=seed)
            np.testing.assert_array_equal(tree.all_roots(stream.vertices, opens), naive.roots(opens))
            np.testing.assert_array_equal(tree.linked(stream.vertices, opens), naive.linked(opens))
    return tree


def links(tree: RecencyTree) -> tuple[Ids, Ids, Ids]:
    """Of all vertices with a living link: the vertex, its parent, and the tick."""
    words = tree._tree["link"]
    vertices = np.flatnonzero(words >= tree._floor() << 32)
    return vertices, words[vertices] & 0xFFFFFFFF, words[vertices] >> 32


def depth(tree: RecencyTree) -> int:
    """The length of the longest path over living links."""
    vertices, parents, _ = links(tree)
    above = np.arange(len(tree._tree))
    above[vertices] = parents
    reached, steps = np.arange(len(above)), 0
    while (above[reached] != reached).any():
        reached, steps = above[reached], steps + 1
    return steps


# --- the law ---


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", STREAMS)
def test_every_window_of_every_width_is_what_a_search_finds(kind: str, seed: int) -> None:
    assert_agrees_throughout(STREAMS[kind](seed), (1, 3, 12), seed)


@pytest.mark.parametrize("kind", STREAMS)
def test_a_window_of_one_slide(kind: str) -> None:
    assert_agrees_throughout(STREAMS[kind](7), (1,))


@pytest.mark.parametrize("kind", STREAMS)
def test_windows_longer_than_the_stream(kind: str) -> None:
    assert_agrees_throughout(STREAMS[kind](8), (2, 1000))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_few_edges_in_any_order_of_ticks(data: st.DataObject) -> None:
    vertex = st.integers(0, 6)
    edges = data.draw(st.lists(st.tuples(vertex, vertex, st.integers(-3, 6)), max_size=25))
    priorities = data.draw(st.permutations(range(7)))
    forgotten = data.draw(st.integers(-4, 4))
    tree, naive = RecencyTree(), NaiveWindows(ticks_of(*priorities))
    for number, (left, right, tick) in enumerate(edges):
        if number == len(edges) // 2:
            tree.forget(forgotten)
        tree.insert(matrix((left, right)), ticks_of(tick), naive.priorities)
        naive.insert(matrix((left, right)), ticks_of(tick))
    tree.forget(forgotten)
    for opens in range(forgotten, 8):
        assert_agrees(tree, naive, opens, pairs=20)


@settings(max_examples=25, deadline=None)
@given(seeds)
def test_the_order_of_edges_and_their_batching_make_no_difference(seed: int) -> None:
    stream = with_late_edges(power_law(seed), seed, lateness=30)
    priorities = random_priorities(stream.vertices, seed)
    edges, ticks = stream.edges(), stream.ticks()
    order = np.random.default_rng(seed).permutation(len(edges))
    at_once, anyhow = RecencyTree(), RecencyTree()
    at_once.insert(edges, ticks, priorities)
    anyhow.insert(edges[order], ticks[order], priorities)
    slide_by_slide = filled(stream, priorities)
    for opens in range(-30, 42, 3):
        expected = slide_by_slide.all_roots(stream.vertices, opens)
        np.testing.assert_array_equal(at_once.all_roots(stream.vertices, opens), expected)
        np.testing.assert_array_equal(anyhow.all_roots(stream.vertices, opens), expected)


@pytest.mark.parametrize("make", [uniform, power_law])
def test_batches_long_enough_to_look_ahead(make: object) -> None:
    assert callable(make)
    stream = make(3, vertices=4096, edges=40_000, per_slide=1000)
    assert_agrees_throughout(with_late_edges(stream, 3, lateness=12), (4, 10))


@settings(max_examples=25, deadline=None)
@given(seeds)
def test_priorities_grow_towards_the_root(seed: int) -> None:
    stream = with_late_edges(with_gaps(small_components(seed), seed), seed)
    priorities = random_priorities(stream.vertices, seed)
    tree = RecencyTree()
    for slide in stream.slides:
        tree.forget(slide.now - 9)
        tree.insert(slide.edges, slide.ticks, priorities)
        vertices, parents, _ = links(tree)
        assert (priorities[parents] > priorities[vertices]).all()


@pytest.mark.parametrize("shuffled", [False, True])
def test_paths_of_vertices_in_order_do_not_make_deep_trees(shuffled: bool) -> None:
    count = 20_000
    stream = path(1, vertices=count, per_slide=500, shuffled=shuffled)
    tree = filled(stream, random_priorities(count))
    assert len(links(tree)[0]) == count - 1
    assert depth(tree) < 60


def test_equal_priorities_still_connect_what_is_connected() -> None:
    stream = with_late_edges(uniform(5), 5)
    tree = RecencyTree()
    same = np.zeros(stream.vertices, np.int64)
    naive = NaiveWindows(same)
    for slide in stream.slides:
        tree.insert(slide.edges, slide.ticks, same)
        naive.insert(slide.edges, slide.ticks)
        for opens in range(slide.now - 9, slide.now + 1, 3):
            labels = labels_of(stream.vertices, naive.window(opens))
            left, right = np.indices((stream.vertices, stream.vertices)).reshape(2, -1)
            np.testing.assert_array_equal(tree.connected(left, right, opens), labels[left] == labels[right])


def test_loops_and_copies_change_nothing() -> None:
    stream = uniform(4)
    priorities = random_priorities(stream.vertices)
    plain, crowded = filled(stream, priorities), filled(with_loops_and_copies(stream, 4), priorities)
    for opens in range(40):
        np.testing.assert_array_equal(
            crowded.all_roots(stream.vertices, opens), plain.all_roots(stream.vertices, opens)
        )
    assert crowded.size() == plain.size()


# --- ticks ---


def test_a_stream_whose_ticks_outgrow_32_bits_many_times() -> None:
    stream = stretched(with_late_edges(uniform(6, edges=1000), 6, lateness=3), 1 << 28)
    priorities = random_priorities(stream.vertices)
    tree, naive = RecencyTree(), NaiveWindows(priorities)
    bases = set()
    for slide in stream.slides:
        tree.forget(slide.now - (4 << 28) + 1)
        tree.insert(slide.edges, slide.ticks, priorities)
        naive.insert(slide.edges, slide.ticks)
        bases.add(tree._base)
        for width in (1 << 28, 3 << 28, 4 << 28):
            assert_agrees(tree, naive, slide.now - width + 1)
    assert stream.slides[-1].now > 1 << 34
    assert 5 < len(bases) < len(stream.slides) // 2


@pytest.mark.parametrize("first", [-(10**15), -1, 0, 1, 2**31, 10**15, 2**61 - 1000])
def test_ticks_may_begin_anywhere(first: int) -> None:
    tree = RecencyTree()
    priorities = random_priorities(4)
    tree.insert(matrix((0, 1), (1, 2)), ticks_of(first, first + 1), priorities)
    assert tree.connected(ticks_of(0, 0, 0), ticks_of(1, 2, 3), first).tolist() == [True, True, False]
    assert tree.connected(ticks_of(0, 1), ticks_of(1, 2), first + 1).tolist() == [False, True]


def test_an_edge_from_before_the_first_one_is_taken_in() -> None:
    tree = RecencyTree()
    priorities = random_priorities(3)
    tree.insert(matrix((0, 1)), ticks_of(1000), priorities)
    tree.insert(matrix((1, 2)), ticks_of(-(10**9)), priorities)
    assert tree.connected(ticks_of(0), ticks_of(2), -(10**9)).all()
    assert not tree.connected(ticks_of(0), ticks_of(2), 1 - 10**9).any()
    assert tree.connected(ticks_of(0), ticks_of(1), 1000).all()


def test_a_jump_of_time_after_which_nothing_lives() -> None:
    tree = RecencyTree()
    priorities = random_priorities(3)
    for now in (-2 * 10**18, 0, 10**12, 2 * 10**18):
        tree.forget(now)
        tree.insert(matrix((0, 1), (1, 2)), ticks_of(now, now + 1), priorities)
        assert tree.connected(ticks_of(0), ticks_of(2), now).all()
        assert not tree.connected(ticks_of(0), ticks_of(2), now + 1).any()


def test_living_edges_too_far_apart_are_refused_and_nothing_changes() -> None:
    tree = RecencyTree()
    priorities = ticks_of(3, 2, 1)
    tree.insert(matrix((0, 1)), ticks_of(5), priorities)
    with pytest.raises(InternalError, match="ticks from 5 to 2147483651"):
        tree.insert(matrix((0, 2), (1, 2)), ticks_of(6, 5 + 2**31 - 2), priorities)
    assert tree.all_roots(3, 5).tolist() == [0, 0, 2]
    tree.forget(6)
    tree.insert(matrix((0, 2), (1, 2)), ticks_of(6, 5 + 2**31 - 2), priorities)
    assert tree.all_roots(3, 6).tolist() == [0, 0, 0]
    assert tree.all_roots(3, 7).tolist() == [0, 1, 1]


@pytest.mark.parametrize("tick", [2**63 - 1, 2**61 + 1, -(2**61) - 1, 2 - 2**63])
def test_ticks_near_the_ends_of_64_bits_are_refused(tick: int) -> None:
    with pytest.raises(InternalError, match="more than can be told apart"):
        RecencyTree().insert(matrix((0, 1)), ticks_of(tick), random_priorities(2))


# --- forgetting ---


def test_edges_older_than_what_was_forgotten_are_left_out() -> None:
    tree = RecencyTree()
    tree.forget(10)
    tree.insert(matrix((0, 1), (1, 2), (2, 3)), ticks_of(9, 10, -(10**18)), random_priorities(4))
    assert tree.connected(ticks_of(0, 1, 2), ticks_of(1, 2, 3), 10).tolist() == [False, True, False]
    assert tree.size().rows == 1


def test_forgetting_less_than_before_brings_nothing_back() -> None:
    tree = RecencyTree()
    tree.forget(10)
    tree.forget(3)
    tree.insert(matrix((0, 1)), ticks_of(5), random_priorities(2))
    assert tree.size().rows == 0
    with pytest.raises(InternalError, match="no window opens at 5"):
        tree.connected(ticks_of(0), ticks_of(1), 5)


def test_when_all_is_forgotten_nothing_is_left() -> None:
    stream = uniform(9)
    priorities = random_priorities(stream.vertices)
    tree = filled(stream, priorities)
    assert tree.size().rows > 0
    tree.forget(10**17)
    assert tree.size().rows == 0
    assert not tree.in_use(stream.vertices).any()
    assert tree.all_roots(stream.vertices, 10**17).tolist() == list(range(stream.vertices))


@pytest.mark.parametrize("kind", STREAMS)
def test_in_use_is_what_has_an_edge_to_another_in_the_widest_window(kind: str) -> None:
    stream = STREAMS[kind](2)
    priorities = random_priorities(stream.vertices)
    tree, naive = RecencyTree(), NaiveWindows(priorities)
    for slide in stream.slides:
        tree.forget(slide.now - 5)
        tree.insert(slide.edges, slide.ticks, priorities)
        naive.insert(slide.edges, slide.ticks)
        np.testing.assert_array_equal(tree.in_use(stream.vertices), naive.linked(slide.now - 5))
        assert_agrees(tree, naive, slide.now - 5)
        assert_agrees(tree, naive, slide.now - 2)


def test_a_vertex_that_was_free_gets_the_priority_it_has_now() -> None:
    tree = RecencyTree()
    tree.insert(matrix((0, 1)), ticks_of(1), ticks_of(30, 20, 10))
    assert tree.all_roots(3, 1).tolist() == [0, 0, 2]
    tree.forget(2)
    assert not tree.in_use(3).any()
    tree.insert(matrix((0, 1), (1, 2)), ticks_of(2, 2), ticks_of(5, 20, 10))
    assert tree.all_roots(3, 2).tolist() == [1, 1, 1]


def test_room_is_given_back_when_only_the_first_vertices_are_left() -> None:
    tree = RecencyTree()
    count = 5000
    priorities = random_priorities(count)
    starts = np.arange(count - 1)
    tree.insert(np.column_stack([starts, starts + 1]), np.ones(count - 1, np.int64), priorities)
    tree.insert(matrix((0, 1), (1, 2)), ticks_of(2, 2), priorities)
    before = tree.size()
    tree.forget(2)
    assert np.flatnonzero(tree.in_use(count)).tolist() == [0, 1, 2]
    assert before.bytes >= 16 * count
    assert tree.size().bytes <= 512
    assert tree.connected(ticks_of(0, 0, 4999), ticks_of(2, 3, 4999), 2).tolist() == [True, False, True]
    tree.insert(np.column_stack([starts, starts + 1]), np.full(count - 1, 3), priorities)
    assert tree.connected(ticks_of(0), ticks_of(4999), 3).all()


# --- edges of the interface ---


def test_a_vertex_that_never_had_an_edge_is_its_own_root() -> None:
    tree = RecencyTree()
    assert tree.roots(ticks_of(0, 7, 10**6), 0).tolist() == [0, 7, 10**6]
    assert tree.all_roots(40, 0).tolist() == list(range(40))
    assert tree.connected(ticks_of(10**6, 10**6), ticks_of(10**6, 3), 0).tolist() == [True, False]
    assert not tree.in_use(40).any()
    assert not tree.linked(40, 0).any()
    assert len(tree.in_use(40)) == len(tree.linked(40, 0)) == 40


def test_asking_for_most_vertices_and_for_few_gives_the_same() -> None:
    stream = uniform(11, vertices=3000, edges=3000, per_slide=300)
    tree = filled(stream, random_priorities(stream.vertices))
    asked = np.random.default_rng(1).integers(0, stream.vertices, 5000)
    few = [tree.roots(asked[start : start + 100], 4) for start in range(0, 5000, 100)]
    np.testing.assert_array_equal(tree.roots(asked, 4), np.concatenate(few))


def test_nothing_comes_of_no_edges() -> None:
    tree = RecencyTree()
    tree.insert(np.empty((0, 2), np.int64), np.empty(0, np.int64), np.empty(0, np.int64))
    assert tree.size().rows == 0
    assert tree.connected(np.empty(0, np.int64), np.empty(0, np.int64), 0).tolist() == []


@pytest.mark.parametrize("vertex", [-1, 3, 10**12, -(2**63)])
def test_vertices_that_were_not_handed_out_are_refused(vertex: int) -> None:
    tree = RecencyTree()
    with pytest.raises(InternalError, match="of 3"):
        tree.insert(matrix((0, 1), (1, vertex)), ticks_of(1, 1), random_priorities(3))
    assert tree.size().rows == 0


def test_a_tick_is_needed_for_every_edge() -> None:
    with pytest.raises(InternalError, match="3 ticks"):
        RecencyTree().insert(matrix((0, 1), (1, 2)), ticks_of(1, 1, 1), random_priorities(3))
    with pytest.raises(InternalError, match="2 and 1"):
        RecencyTree().connected(ticks_of(0, 1), ticks_of(0), 0)


def test_arrays_that_are_read_only_or_in_another_order_are_taken() -> None:
    tree = RecencyTree()
    edges = np.asfortranarray(matrix((0, 1), (2, 3), (1, 2)))
    ticks, priorities = ticks_of(0, 1, 0, 2, 0, 3)[1::2], random_priorities(8)[::2]
    for array in (edges, ticks, priorities):
        array.flags.writeable = False
    tree.insert(edges, ticks, priorities)
    assert tree.connected(ticks_of(0, 9, 1)[::2], ticks_of(3, 9, 2)[::2], 1).tolist() == [True, True]
    assert tree.connected(ticks_of(0), ticks_of(3), 2).tolist() == [False]


# --- spanning forests ---


@pytest.mark.parametrize("kind", STREAMS)
def test_a_spanning_forest_of_a_batch_leaves_every_window_as_it_was(kind: str) -> None:
    stream = STREAMS[kind](5)
    edges, ticks = stream.edges(), stream.ticks()
    chosen = spanning_forest(edges, ticks)
    assert (np.diff(chosen) > 0).all()
    assert len(chosen) == stream.vertices - labels_of(stream.vertices, edges).max() - 1
    priorities = random_priorities(stream.vertices)
    whole, part = NaiveWindows(priorities), NaiveWindows(priorities)
    whole.insert(edges, ticks)
    part.insert(edges[chosen], ticks[chosen])
    for opens in np.unique(ticks).tolist():
        np.testing.assert_array_equal(part.roots(opens), whole.roots(opens))


def test_a_spanning_forest_of_one_tick_takes_the_first_edges() -> None:
    edges = matrix((0, 1), (1, 0), (2, 2), (1, 2), (0, 2), (4, 3))
    assert spanning_forest(edges, np.full(6, 9)).tolist() == [0, 3, 5]


def test_a_spanning_forest_of_nothing_is_nothing() -> None:
    assert spanning_forest(np.empty((0, 2), np.int64), np.empty(0, np.int64)).tolist() == []
    with pytest.raises(InternalError):
        spanning_forest(matrix((0, -1)), ticks_of(1))
    with pytest.raises(InternalError):
        spanning_forest(matrix((0, 1)), ticks_of(1, 2))
