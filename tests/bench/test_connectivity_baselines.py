"""The best of the baselines in connectivity answers as a search does, and keeps its trees in order."""

from __future__ import annotations

import numpy as np
import pytest
from connectivity_dtree import REST, TREE, DTree
from tests.unit.delta.connectivity.naive import labels_of


def assert_in_order(tree: DTree) -> None:
    """Each tree edge leads to a parent, sizes are those of the subtrees, and lists hold every edge at both ends."""
    forest = tree.forest
    sizes = np.ones(len(forest.parents), np.int64)
    for vertex in range(len(sizes)):
        at = vertex
        while forest.parents[at] >= 0:
            at = forest.parents[at]
            sizes[at] += 1
    assert forest.sizes.tolist() == sizes.tolist()
    below = np.flatnonzero(forest.parents >= 0)
    assert sorted(forest.via[below].tolist()) == np.flatnonzero(forest.kinds == TREE).tolist()
    for vertex in below.tolist():
        assert set(forest.ends[forest.via[vertex]].tolist()) == {vertex, int(forest.parents[vertex])}
    for kind in (TREE, REST):
        found = []
        for vertex, head in enumerate(forest.heads[kind].tolist()):
            half = head
            while half >= 0:
                assert forest.ends[half >> 1, half & 1] == vertex
                found.append(half)
                half = int(forest.after[half])
        assert sorted(found) == [2 * place + side for place in np.flatnonzero(forest.kinds == kind) for side in (0, 1)]


@pytest.mark.parametrize("is_constructed", [False, True])
@pytest.mark.parametrize("seed", range(15))
def test_a_d_tree_answers_as_a_search_over_the_window(seed: int, is_constructed: bool) -> None:
    random = np.random.default_rng(seed)
    vertices, slides, size = (int(random.integers(*bounds)) for bounds in ((2, 40), (1, 6), (1, 15)))
    tree = DTree(vertices, slides * size, slides)
    edges = random.integers(0, vertices, ((slides + 30) * size, 2))
    if is_constructed:
        tree.fill(edges[: slides * size])
    for number in range(slides if is_constructed else 0, slides + 30):
        end = (number + 1) * size
        tree.slide(edges[number * size : end])
        window = edges[max(0, end - slides * size) : end]
        labels = labels_of(vertices, window)
        left, right = random.integers(0, vertices, (2, 50))
        np.testing.assert_array_equal(tree.ask(left, right), labels[left] == labels[right])
        assert_in_order(tree)
