"""Spanning forests per slide against a naive search: the same components for every range that no slide is cut by."""

from __future__ import annotations

from itertools import combinations
from random import Random

import numpy as np
import pytest

from anabranch.delta.connectivity.slides import spanning_forests


def components(vertices: int, edges: list[tuple[int, int]]) -> list[int]:
    names = list(range(vertices))
    for left, right in edges:
        one, other = names[left], names[right]
        names = [one if name == other else name for name in names]
    return [names.index(name) for name in names]


@pytest.mark.parametrize("seed", range(40))
def test_ranges_between_slides_and_those_that_begin_within_one_keep_their_components(seed: int) -> None:
    random = Random(seed)
    vertices, count, length = random.randint(1, 8), random.randint(1, 60), random.randint(1, 9)
    times = [random.randrange(40) for _ in range(count)]
    if random.random() < 0.5:
        times.sort()
    edges = [(random.randrange(vertices), random.randrange(vertices)) for _ in range(count)]
    slides = [time // length for time in times]
    columns = [np.array(one, np.int64) for one in ([e[0] for e in edges], [e[1] for e in edges], times, slides)]
    wanted = np.array([random.random() < 0.8 for _ in range(count)])
    chosen = spanning_forests(*columns, vertices, wanted)
    assert not (chosen & ~wanted).any()
    for slide in set(slides):
        assert sum(chosen[place] for place in range(count) if slides[place] == slide) < vertices
    stops = range(0, 41 + length, length)
    for first, stop in [*combinations(stops, 2), *((first, 50) for first in range(41))]:
        inside = [place for place in range(count) if first <= times[place] < stop and wanted[place]]
        everything = components(vertices, [edges[place] for place in inside])
        assert components(vertices, [edges[place] for place in inside if chosen[place]]) == everything
