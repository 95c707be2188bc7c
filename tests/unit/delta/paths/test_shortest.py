"""Shortest paths on changes: whatever edges, roots and wishes come and go, they are those of a plain search."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import pytest

from anabranch.delta.kernels import shortest as kernel
from anabranch.delta.paths.shortest import PathEdge, ShortestPaths, TooManyCells

Path = tuple[tuple[int, ...], tuple[int, ...]]
Answers = dict[tuple[int, int], list[Path]]


def plain(
    edges: dict[int, PathEdge], root: int, *, backwards: bool, both_ways: bool, every: bool, maximum: int | None
) -> dict[int, list[Path]]:
    """All shortest paths from or to a root, level by level, as keys and nodes from the left."""
    found: dict[int, list[Path]] = {}
    level: dict[int, list[Path]] = {root: [((), (root,))]}
    known, depth = {root}, 0
    while level and (maximum is None or depth < maximum):
        following: dict[int, list[Path]] = {}
        for node, paths in level.items():
            for edge in edges.values():
                ways = [(edge.left, edge.right)]
                ways += [(edge.right, edge.left)] if both_ways and edge.left != edge.right else []
                for left, right in ways:
                    near, far = (right, left) if backwards else (left, right)
                    if near != node or far in known:
                        continue
                    for keys, nodes in paths:
                        step = ((edge.key, *keys), (far, *nodes)) if backwards else ((*keys, edge.key), (*nodes, far))
                        following.setdefault(int(far), []).append(step)  # type: ignore[arg-type, call-overload]
        known |= set(following)
        found |= following
        level, depth = following, depth + 1
    return {node: sorted(paths) if every else [min(paths)] for node, paths in found.items()}


class Kept:
    """The paths under test, what they were told, and the answers as their changes make them."""

    def __init__(self, is_open: bool, **asked: bool | int | None) -> None:
        self.asked = asked
        self.is_open = is_open
        self.paths = ShortestPaths(is_open=is_open, **asked)  # type: ignore[arg-type]
        self.edges: dict[int, PathEdge] = {}
        self.roots: set[int] = set()
        self.common: set[int] = set()
        self.own: set[tuple[int, int]] = set()
        self.answers: Answers = {}

    def want(self, root: int | None, node: int) -> None:
        if root is None:
            self.common ^= {node}
            wanted = node in self.common
        else:
            self.own ^= {(root, node)}
            wanted = (root, node) in self.own
        (self.paths.want if wanted else self.paths.unwant)(root, node)

    def is_wanted(self, root: int, node: int) -> bool:
        return self.is_open or node in self.common or (root, node) in self.own

    def change(self, removed: list[int], added: list[PathEdge], gone: list[int], new: list[int]) -> None:
        for key in removed:
            del self.edges[key]
        self.edges |= {edge.key: edge for edge in added}
        self.roots = self.roots - set(gone) | set(new)
        pairs = self.paths.change(removed, added, gone, new)
        assert len(set(pairs)) == len(pairs)
        fresh = {pair for pair in self.answers if pair[0] in self.roots and self.is_wanted(*pair)}
        before = {pair: self.answers[pair] for pair in fresh}
        self.answers = dict(before)
        for pair in pairs:
            root, node = int(pair[0]), int(pair[1])  # type: ignore[call-overload]
            assert root in self.roots
            told: list[Any] = [(tuple(keys), tuple(nodes)) for keys, nodes in self.paths.paths(root, node)]
            self.answers.pop((root, node), None)
            if told:
                self.answers[root, node] = sorted(told)
            if (root, node) in before:
                assert self.answers.get((root, node)) != before[root, node], "what is said to have changed has"

    def expected(self) -> Answers:
        return {
            (root, node): paths
            for root in self.roots
            for node, paths in plain(self.edges, root, **self.asked).items()  # type: ignore[arg-type]
            if self.is_wanted(root, node)
        }


SHAPES = list(product((False, True), (False, True), (False, True), (None, 2), ("open", "common", "own")))


@pytest.mark.parametrize(("backwards", "both_ways", "every", "maximum", "wishes"), SHAPES)
def test_paths_are_those_of_a_plain_search_after_any_change(
    backwards: bool, both_ways: bool, every: bool, maximum: int | None, wishes: str
) -> None:
    for seed in range(3):
        random = Random(seed)
        kept = Kept(wishes == "open", backwards=backwards, both_ways=both_ways, every=every, maximum=maximum)
        nodes, keys = range(random.choice((4, 9, 40))), iter(range(10_000))
        for _ in range(30):
            removed = random.sample(sorted(kept.edges), min(len(kept.edges), random.choice((0, 1, 2, 5))))
            fresh = random.choice((0, 1, 1, 3, 20)) if len(kept.edges) < 3 * len(nodes) else 0
            added = [PathEdge(next(keys), random.choice(nodes), random.choice(nodes)) for _ in range(fresh)]
            gone = [root for root in kept.roots if random.random() < 0.1]
            new = [root for root in nodes if root not in kept.roots and random.random() < 0.1]
            for node in random.sample(nodes, random.choice((0, 0, 1, 3)) if wishes != "open" else 0):
                kept.want(random.choice(nodes) if wishes == "own" else None, node)
            kept.change(removed, added, gone, new)
            assert kept.answers == kept.expected()
        kept.change(sorted(kept.edges), [], sorted(kept.roots), [])
        assert not kept.answers
        for node in sorted(kept.common):
            kept.want(None, node)
        for root, node in sorted(kept.own):
            kept.want(root, node)
        kept.change([], [], [], [])
        assert not len(kept.paths), "nothing is left where nothing is"


def chain(length: int, first: int = 0) -> list[PathEdge]:
    return [PathEdge(first + at, first + at, first + at + 1) for at in range(length)]


def test_a_key_that_is_given_again_is_another_edge() -> None:
    kept = Kept(True, backwards=False, both_ways=False, every=False, maximum=None)
    kept.change([], chain(3), [], [0])
    kept.edges.pop(1)
    kept.edges[1] = PathEdge(1, 1, 3)
    pairs = kept.paths.change([1], [PathEdge(1, 1, 3)])
    assert set(pairs) == {(0, 2), (0, 3)}
    assert list(kept.paths.paths(0, 3)) == [([0, 1], [0, 1, 3])]


@pytest.mark.parametrize("every", [False, True])
def test_an_edge_far_from_all_roots_searches_nothing(every: bool) -> None:
    paths = ShortestPaths(backwards=False, both_ways=True, every=every, is_open=True, maximum=None)
    paths.change((), [*chain(10), *chain(10, 100)], (), range(8))
    before = paths.searches
    assert paths.change([105], [PathEdge(500, 102, 104)]) == []
    assert paths.searches == before
    paths.change([9])
    assert paths.searches == before + 8


def test_an_edge_behind_all_wanted_nodes_searches_nothing() -> None:
    paths = ShortestPaths(backwards=False, both_ways=False, every=True, is_open=False, maximum=None)
    paths.want(0, 3)
    assert paths.change((), chain(10), (), [0]) == [(0, 3)]
    before = paths.searches
    assert paths.change([7], [PathEdge(500, 3, 9), PathEdge(501, 5, 8)]) == []
    assert paths.searches == before
    paths.want(0, 6)
    assert paths.change() == [(0, 6)]
    assert paths.searches == before + 1


def test_an_edge_between_nodes_of_one_level_searches_nothing() -> None:
    paths = ShortestPaths(backwards=False, both_ways=False, every=True, is_open=True, maximum=None)
    paths.change((), [PathEdge(1, 0, 1), PathEdge(2, 0, 2)], (), [0])
    before = paths.searches
    assert paths.change((), [PathEdge(3, 1, 2)]) == []
    assert paths.searches == before


def test_kernels_have_one_signature() -> None:
    for every, both_ways, is_open in product((False, True), repeat=3):
        paths = ShortestPaths(backwards=every, both_ways=both_ways, every=every, is_open=is_open, maximum=3)
        paths.change((), chain(40), (), range(20))
        paths.change([3], chain(1, 100))
    compiled: list[Any] = [kernel.affected, kernel.searched]
    assert [len(one.signatures) for one in compiled] == [1, 1]


def test_too_many_roots_times_nodes_are_refused() -> None:
    paths = ShortestPaths(backwards=False, both_ways=False, every=False, is_open=True, maximum=None, most=5_000)
    paths.change((), chain(100), (), range(20))
    with pytest.raises(TooManyCells, match="more than 5,000 distances"):
        paths.change((), (), (), range(20, 100))
