"""BIC answers every window as scipy does, whatever the chunk, and the paper's running example as the paper does."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.delta.connectivity.naive import NaiveWindows, assert_agrees
from tests.unit.delta.connectivity.streams import STREAMS, Stream, random_priorities, uniform, vanish_and_return

from anabranch.delta.batch import Ids
from anabranch.delta.connectivity.bic import BicIndex
from anabranch.delta.connectivity.recency import RecencyTree
from anabranch.delta.connectivity.vertices import WindowedIndex
from anabranch.delta.kernels import bic as kernels
from anabranch.errors import InternalError

# (width, chunk): from one slide to three times the window
SHAPES = [(1, None), (2, 6), (5, 1), (5, None), (7, 3), (12, 5), (12, None), (13, 39), (13, 20), (60, 16), (60, None)]


def each_window(index: BicIndex, stream: Stream, width: int) -> Iterator[tuple[NaiveWindows, int]]:
    """Slide by slide what there is by the law, and where the window opens."""
    priorities = random_priorities(stream.vertices)
    naive = NaiveWindows(priorities)
    for slide in stream.slides:
        index.insert(slide.edges, slide.ticks, priorities)
        naive.insert(slide.edges, slide.ticks)
        opens = slide.now - width + 1
        index.forget(opens)
        yield naive, opens


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", STREAMS)
def test_every_window_is_answered_as_by_scipy(kind: str, shape: tuple[int, int | None]) -> None:
    width, chunk = shape
    index = BicIndex(width, chunk)
    for naive, opens in each_window(index, STREAMS[kind](width), width):
        assert_agrees(index, naive, opens, pairs=50)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7), st.integers(-4, 3), st.booleans()), max_size=40),
    st.integers(1, 6),
    st.integers(1, 18),
)
def test_edges_one_by_one_with_any_ticks_and_questions_now_and_then(
    steps: list[tuple[int, int, int, bool]], width: int, chunk: int
) -> None:
    index, priorities = BicIndex(width, chunk), random_priorities(8)
    naive = NaiveWindows(priorities)
    now = 0
    for left, right, ahead, asks in steps:
        edges, ticks = np.array([[left, right]]), np.array([now + ahead])
        index.insert(edges, ticks, priorities)
        naive.insert(edges, ticks)
        # A window that has gone on does not come back for an edge that is too late.
        now = max(now, now + ahead)
        if asks:
            index.forget(now - width + 1)
            assert_agrees(index, naive, now - width + 1, pairs=20)


@pytest.mark.parametrize("chunk", [1, 4, None])
@pytest.mark.parametrize("kind", ["uniform", "everything", "below zero"])
def test_a_batch_of_many_slides_is_all_of_them_one_by_one(kind: str, chunk: int | None) -> None:
    stream, width = STREAMS[kind](3), 9
    priorities = random_priorities(stream.vertices)
    for first, last in ((0, 7), (0, 25), (20, 21), (3, len(stream.slides))):
        naive, index = NaiveWindows(priorities), BicIndex(width, chunk)
        for slides in (stream.slides[:first], stream.slides[first:last]):
            if slides:
                edges, ticks = np.concatenate([s.edges for s in slides]), np.concatenate([s.ticks for s in slides])
                index.insert(edges, ticks, priorities)
                naive.insert(edges, ticks)
        opens = stream.slides[last - 1].now - width + 1
        index.forget(opens)
        assert_agrees(index, naive, opens)


def test_an_edge_older_than_the_window_is_left_out() -> None:
    index, priorities = BicIndex(3), random_priorities(4)
    index.insert(np.array([[0, 1]]), np.array([10]), priorities)
    index.insert(np.array([[1, 2], [2, 3]]), np.array([7, 8]), priorities)
    assert index.connected(np.array([0, 1, 2]), np.array([1, 2, 3]), 8).tolist() == [True, False, True]


def test_a_late_edge_in_the_chunk_where_the_window_begins_connects_until_it_leaves() -> None:
    index, priorities = BicIndex(4), random_priorities(6)
    index.insert(np.array([[0, 1], [2, 3], [4, 5]]), np.array([2, 3, 5]), priorities)  # chunks 0-3 and 4-7
    assert not index.connected(np.array([1]), np.array([2]), 2)[0]
    index.insert(np.array([[1, 2]]), np.array([3]), priorities)
    assert index.connected(np.array([0]), np.array([3]), 2)[0]
    index.forget(3)
    assert index.connected(np.array([1, 0]), np.array([3, 3]), 3).tolist() == [True, False]
    index.forget(4)
    assert not index.connected(np.array([1]), np.array([2]), 4)[0]


def test_any_other_window_is_refused() -> None:
    index, priorities = BicIndex(5), random_priorities(2)
    index.insert(np.array([[0, 1]]), np.array([10]), priorities)
    for opens in (5, 7):
        with pytest.raises(InternalError, match="opens at 6"):
            index.connected(np.array([0]), np.array([1]), opens)
        with pytest.raises(InternalError, match="opens at 6"):
            index.roots(np.array([0]), opens)


def test_vertices_that_were_never_handed_out_are_refused() -> None:
    index, priorities = BicIndex(5), random_priorities(2)
    with pytest.raises(InternalError, match="never handed out"):
        index.insert(np.array([[0, 2]]), np.array([10]), priorities)
    with pytest.raises(InternalError, match="never handed out"):
        index.connected(np.array([0]), np.array([2]), 0)


def test_without_edges_every_vertex_is_alone() -> None:
    index = BicIndex(5)
    index.insert(np.empty((0, 2), np.int64), np.empty(0, np.int64), random_priorities(3))
    assert index.roots(np.arange(3), 0).tolist() == [0, 1, 2]
    index.forget(100)
    assert index.connected(np.array([0, 1]), np.array([0, 2]), 100).tolist() == [True, False]
    assert index.size().rows == 0


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", ["vanish and return", "loops and copies", "late edges and gaps"])
def test_vertices_in_use_are_those_with_an_edge_to_another_in_the_window(
    kind: str, shape: tuple[int, int | None]
) -> None:
    width, chunk = shape
    index = BicIndex(width, chunk)
    for naive, opens in each_window(index, STREAMS[kind](5), width):
        linked = naive.linked(opens)
        np.testing.assert_array_equal(index.in_use(len(linked)), linked)
        assert index.size().rows == linked.sum()


class Numbers:
    """Hands out vertex numbers for names, and takes them back when the index does not need them."""

    def __init__(self) -> None:
        self.of: dict[int, int] = {}
        self.free: list[int] = []
        self.priorities: Ids = np.empty(0, np.int64)

    def number(self, name: int, priorities_by_name: Ids) -> int:
        if name not in self.of:
            if not self.free:
                self.free.append(len(self.priorities))
                self.priorities = np.append(self.priorities, 0)
            self.of[name] = self.free.pop()
            self.priorities[self.of[name]] = priorities_by_name[name]
        return self.of[name]

    def take_back(self, index: BicIndex) -> None:
        used = index.in_use(len(self.priorities))
        for name, number in list(self.of.items()):
            if not used[number]:
                self.free.append(self.of.pop(name))


@pytest.mark.parametrize("chunk", [1, 3, None])
@pytest.mark.parametrize("kind", ["vanish and return", "moving ids", "late edges and gaps", "everything"])
def test_numbers_that_were_taken_back_may_mean_other_vertices(kind: str, chunk: int | None) -> None:
    stream, width = STREAMS[kind](8), 6
    names = random_priorities(stream.vertices)
    index, naive, numbers = BicIndex(width, chunk), NaiveWindows(names), Numbers()
    for slide in stream.slides:
        dense = [numbers.number(name, names) for name in slide.edges.ravel().tolist()]
        index.insert(np.array(dense, np.int64).reshape(-1, 2), slide.ticks, numbers.priorities)
        naive.insert(slide.edges, slide.ticks)
        opens = slide.now - width + 1
        index.forget(opens)
        expected = naive.roots(opens)
        living = np.array(sorted(numbers.of), np.int64)
        roots = index.roots(np.array([numbers.of[name] for name in living.tolist()], np.int64), opens)
        name_of = {number: name for name, number in numbers.of.items()}
        assert [name_of[root] for root in roots.tolist()] == expected[living].tolist()
        numbers.take_back(index)
    assert len(numbers.priorities) < stream.vertices or kind == "everything"


@pytest.mark.parametrize("kind", ["moving ids", "vanish and return", "everything"])
def test_behind_ids_it_names_and_counts_components_as_the_recency_tree_does(kind: str) -> None:
    width, stream = 6, STREAMS[kind](9)
    bic, recency = WindowedIndex(BicIndex(width)), WindowedIndex(RecencyTree())
    everyone = np.arange(stream.vertices) * 1_000_003 - 77
    for slide in stream.slides:
        ids, opens = everyone[slide.edges], slide.now - width + 1
        for windows in (bic, recency):
            windows.insert(ids[:, 0], ids[:, 1], slide.ticks)
            windows.forget(opens)
        np.testing.assert_array_equal(bic.roots(everyone, opens), recency.roots(everyone, opens))
        assert sorted(zip(*bic.components(opens), strict=True)) == sorted(zip(*recency.components(opens), strict=True))


@pytest.mark.parametrize("chunk", [2, None])
def test_what_is_kept_does_not_grow_with_the_stream(chunk: int | None) -> None:
    width, index, priorities = 8, BicIndex(8, chunk), random_priorities(50)
    generator = np.random.default_rng(1)
    kept = []
    for tick in range(600):
        index.insert(generator.integers(0, 50, (40, 2)), np.full(40, tick), priorities)
        index.connected(np.array([0]), np.array([1]), tick - width + 1)
        kept.append(index.size().bytes)
    assert max(kept[300:]) <= max(kept[:300])
    index.forget(10_000)
    assert index.size().rows == 0
    assert not index.in_use(50).any()


@pytest.mark.parametrize("chunk", [2, None])
def test_the_room_of_vertices_that_have_gone_is_given_back(chunk: int | None) -> None:
    width, index, priorities = 8, BicIndex(8, chunk), random_priorities(5000)
    generator = np.random.default_rng(3)
    naive = NaiveWindows(priorities[:30])
    edges = generator.integers(0, 5000, (3000, 2))
    index.insert(edges, np.repeat(np.arange(3), 1000), priorities)
    index.connected(np.array([0]), np.array([1]), 2 - width + 1)
    before = index.size().bytes
    for tick in range(3, 30):
        few, ticks = generator.integers(0, 30, (12, 2)), np.maximum(3, tick - generator.integers(0, 6, 12))
        index.insert(few, ticks, priorities[:30] if tick > 12 else priorities)
        naive.insert(few, ticks)
        index.forget(tick - width + 1)
        index.in_use(5000)
        if tick - width + 1 > 2:
            assert_agrees(index, naive, tick - width + 1)
    assert index.size().bytes < before / 20


def test_the_backward_buffer_keeps_only_a_forest_of_its_chunk() -> None:
    index, priorities = BicIndex(10), random_priorities(30)
    index.insert(np.random.default_rng(2).integers(0, 30, (20_000, 2)), np.arange(20_000) // 2000, priorities)
    before = index.size().bytes
    index.forget(1)
    assert index.size().bytes < before / 20


@pytest.mark.parametrize("stream", [uniform(4, vertices=40, edges=200, per_slide=1), vanish_and_return(4)])
def test_asking_often_changes_nothing(stream: Stream) -> None:
    width = 17
    once, often = BicIndex(width), BicIndex(width)
    priorities, everyone = random_priorities(stream.vertices), np.arange(stream.vertices)
    for slide in stream.slides:
        opens = slide.now - width + 1
        once.insert(slide.edges, slide.ticks, priorities)
        for edge in range(len(slide.ticks)):
            often.insert(slide.edges[edge : edge + 1], slide.ticks[edge : edge + 1], priorities)
            often.roots(everyone, opens)
        if slide.now % 5 == 0:
            np.testing.assert_array_equal(once.roots(everyone, opens), often.roots(everyone, opens))


# --- the running example of the paper: letters are vertices, windows of five ticks that slide by one ---

LETTERS = "ABCDEFGHIJKLM"
# Ticks 3, 4, 5, 8 and 9 and one edge of tick 7 are told by the text and by the forest of Figure 4; of the others only
# what they connect, or that they connect nothing new.
RUNNING_EXAMPLE = {
    1: ["AB"], 2: ["CE"], 3: ["BD", "FG"], 4: ["BC", "BE"], 5: ["AD", "AF"],
    6: ["AI", "DI"], 7: ["AI", "KB", "KC"], 8: ["LM", "KL"], 9: ["IL"],
}  # fmt: skip


def of(letters: str) -> Ids:
    return np.array([LETTERS.index(letter) for letter in letters], np.int64)


def example(first: int, last: int) -> tuple[Ids, Ids]:
    """Edges and ticks from one tick to another, the last one included."""
    told = [(edge, tick) for tick in range(first, last + 1) for edge in RUNNING_EXAMPLE.get(tick, [])]
    return np.array([of(edge) for edge, _ in told]), np.array([tick for _, tick in told], np.int64)


class Buffers:
    """b1 over ticks 1 to 5 as the kernels build it, and a forward buffer f2 to fill."""

    def __init__(self) -> None:
        edges, self.ticks = example(1, 5)
        self.pairs = edges.astype(np.int32)
        self.links, self.seen = np.full(13, -1, np.int64), np.full(13, -1, np.int32)
        self.kept = kernels.go_back(self.pairs, self.ticks, 0, len(self.ticks), 5, self.links, self.seen)
        self.parents, self.members, self.count = np.full(13, -1, np.int32), np.full(13, -1, np.int32), 0
        self.near, self.merged = np.full(13, -1, np.int32), np.full(13, -1, np.int32)

    def go_forward(self, tick: int) -> None:
        edges, _ = example(tick, tick)
        pairs = edges.astype(np.int32)
        self.count = kernels.go_forward(pairs, 0, len(pairs), self.parents, self.members, self.count)

    def back_root(self, letter: str, snapshot: int) -> str:
        found, alone = np.empty(1, np.int64), np.full(13, -1, np.int32)
        everyone = np.arange(13, dtype=np.int32)
        kernels.named(of(letter), snapshot, alone, self.links, self.near, self.merged, everyone, found)
        return LETTERS[int(found[0])]


def test_figure_1_c_and_g_are_connected_in_the_second_and_third_window_and_not_in_the_fourth() -> None:
    index, priorities = BicIndex(5), random_priorities(13)
    index.insert(*example(1, 5), priorities)
    answers, components = [], []
    for tick in (6, 7, 8):
        edges, ticks = example(tick, tick)
        index.insert(edges, ticks, priorities)
        window, _ = example(tick - 4, tick)
        answers.append(bool(index.connected(of("C"), of("G"), tick - 4)[0]))
        components.append(len(index.components(np.unique(window), tick - 4)[0]))
    assert answers == [True, True, False]
    assert components == [1, 1, 2]


def test_example_6_1_i_and_c_are_connected_through_both_buffers() -> None:
    index, priorities = BicIndex(5), random_priorities(13)
    for tick in range(1, 8):
        index.insert(*example(tick, tick), priorities)
    assert index.connected(of("I"), of("C"), 3)[0]


def test_figure_4_the_backward_buffer_is_six_links_each_with_its_snapshot() -> None:
    buffers = Buffers()
    links = {
        LETTERS[vertex]: (LETTERS[int(word) & 0xFFFFFFFF], int(word) >> 32)
        for vertex, word in enumerate(buffers.links)
        if word >= 0
    }
    assert links == {"D": ("A", 4), "F": ("A", 4), "C": ("B", 3), "E": ("B", 3), "B": ("A", 2), "G": ("A", 2)}
    assert len(buffers.ticks) - buffers.kept == 6
    assert buffers.ticks[buffers.kept :].tolist() == [3, 3, 4, 4, 5, 5]


def test_figure_6_vertices_carry_the_snapshot_in_which_they_appear_and_roots_change_with_it() -> None:
    buffers = Buffers()
    assert {LETTERS[v]: int(label) for v, label in enumerate(buffers.seen) if label >= 0} == {
        "A": 4, "D": 4, "F": 4, "B": 3, "C": 3, "E": 3, "G": 2,
    }  # fmt: skip
    assert [buffers.back_root("C", snapshot) for snapshot in (1, 2, 3, 4)] == ["A", "A", "B", "C"]
    assert [buffers.back_root("A", snapshot) for snapshot in (1, 2, 3, 4)] == ["A", "A", "A", "A"]


def test_figure_5_bridges_lead_from_a_to_a_and_from_b_to_k_and_b_becomes_a_root_in_the_third_snapshot() -> None:
    buffers = Buffers()
    bridges, count, joined = np.empty(13, kernels.BRIDGE), 0, 0
    found = {}
    for snapshot, tick in ((1, 6), (2, 7), (3, 8), (4, 9)):
        buffers.go_forward(tick)
        kernels.clear_between(bridges, count, buffers.near, buffers.merged)
        count = kernels.bridge(
            bridges, count, snapshot, buffers.members, joined, buffers.count, buffers.links, buffers.seen
        )
        joined = buffers.count
        count = kernels.tidy(bridges, count, buffers.parents, buffers.near)
        count = kernels.merge(bridges, count, snapshot, buffers.parents, buffers.links, buffers.near, buffers.merged)
        found[snapshot] = {
            (LETTERS[row["root"]], LETTERS[row["forward"]], int(row["until"])) for row in bridges[:count]
        }
    assert found == {
        1: {("A", "A", 4)},
        2: {("A", "A", 4), ("A", "K", 3)},
        3: {("A", "A", 4), ("B", "K", 3)},
        4: {("A", "K", 4)},
    }
