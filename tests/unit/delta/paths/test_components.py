"""Pairs that hang together are those of a naive search, whatever edges and vertices come and go."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from anabranch.delta.batch import Ids
from anabranch.delta.paths.components import ComponentPairs
from anabranch.delta.patterns import BudgetExceeded

Edges = dict[int, tuple[int, int]]


def closed_trail(edges: Edges, vertex: int) -> bool:
    """By walking every trail, as the definition says."""

    def walk(at: int, used: frozenset[int]) -> bool:
        for name, ends in edges.items():
            if name in used or at not in ends:
                continue
            onward = ends[0] + ends[1] - at
            if onward == vertex or walk(onward, used | {name}):
                return True
        return False

    return walk(vertex, frozenset())


def component(edges: Edges, vertex: int) -> set[int]:
    found, pending = {vertex}, [vertex]
    while pending:
        at = pending.pop()
        for ends in edges.values():
            if at in ends and (onward := ends[0] + ends[1] - at) not in found:
                found.add(onward)
                pending.append(onward)
    return found


def naive(edges: Edges, begin: set[int], end: set[int], standing: bool, circle: bool) -> set[tuple[int, int]]:
    pairs = set()
    for one in begin:
        if one in end and (standing or closed_trail(edges, one)):
            pairs.add((one, one))
        if not circle:
            pairs |= {(one, other) for other in component(edges, one) & end if other != one}
    return pairs


def as_ids(vertices: set[int]) -> Ids:
    return np.array(sorted(vertices), np.int64)


@pytest.mark.parametrize("seed", range(60))
def test_the_changes_add_up_to_what_a_naive_search_finds(seed: int) -> None:
    random = Random(seed)
    standing, circle = random.random() < 0.4, random.random() < 0.2
    pairs = ComponentPairs(standing, circle)
    edges: Edges = {}
    told: set[tuple[int, int]] = set()
    vertices = random.choice((3, 5, 8))
    names = 0
    for step in range(30):
        lifted = [name for name in edges if random.random() < (0.3 if step < 25 else 1)]
        for name in lifted:
            del edges[name]
        laid = []
        if step < 25:
            for _ in range(random.choice((0, 1, 1, 3))):
                names += 1
                edges[names] = random.randrange(vertices), random.randrange(vertices)
                laid.append((names, *edges[names]))
        begin, end = ({one for one in range(vertices) if random.random() < 0.7} for _ in range(2))
        removed, added = pairs.change(lifted, laid, as_ids(begin), as_ids(end))
        gone, new = (list(map(tuple, some.tolist())) for some in (removed, added))
        assert len(set(gone)) == len(gone)
        assert len(set(new)) == len(new)
        assert told.issuperset(gone)
        assert told.isdisjoint(new)
        told = told - set(gone) | set(new)
        assert told == naive(edges, begin, end, standing, circle)


def test_a_vertex_between_two_cycles_lies_on_none() -> None:
    pairs = ComponentPairs(standing=False, circle=True)
    everyone = as_ids(set(range(7)))
    laid = [(0, 0, 1), (1, 1, 2), (2, 2, 0), (3, 2, 3), (4, 3, 4), (5, 4, 5), (6, 5, 6), (7, 6, 4)]
    _, added = pairs.change([], laid, everyone, everyone)
    assert added[:, 0].tolist() == [0, 1, 2, 4, 5, 6]


def test_parting_a_component_tells_the_pairs_between_its_parts_alone() -> None:
    pairs = ComponentPairs(standing=True)
    everyone = as_ids({0, 1, 2, 3})
    pairs.change([], [(0, 0, 1), (1, 1, 2), (2, 2, 3)], everyone, everyone)
    removed, added = pairs.change([1], [], everyone, everyone)
    assert sorted(map(tuple, removed.tolist())) == [(0, 2), (0, 3), (1, 2), (1, 3), (2, 0), (2, 1), (3, 0), (3, 1)]
    assert not len(added)


def test_more_pairs_than_allowed_are_refused_before_they_are_made() -> None:
    pairs = ComponentPairs(standing=True, most=8)
    everyone = as_ids({0, 1, 2})
    with pytest.raises(BudgetExceeded):
        pairs.change([], [(0, 0, 1), (1, 1, 2)], everyone, everyone)


def test_a_long_chain_is_one_component_however_its_edges_come() -> None:
    pairs = ComponentPairs(standing=False)
    begin, end = as_ids({0}), as_ids({200})
    names = list(range(200))
    Random(5).shuffle(names)
    for at in range(0, 200, 40):
        _, added = pairs.change([], [(name, name, name + 1) for name in names[at : at + 40]], begin, end)
    assert added.tolist() == [[0, 200]]


def test_an_empty_house_keeps_no_edge_and_no_pair() -> None:
    pairs = ComponentPairs(standing=False)
    pairs.change([], [(0, 0, 1), (1, 0, 1)], as_ids({0, 1}), as_ids({0, 1}))
    assert pairs.size().rows > 0
    pairs.change([0, 1], [], as_ids(set()), as_ids(set()))
    assert pairs.size().rows == 0
