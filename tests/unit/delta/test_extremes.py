"""The smallest numbers of groups against a sorted list, while numbers come and go until none is left."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest

from anabranch.delta.batch import NULL
from anabranch.delta.extremes import GroupExtremes, NumberChanges

Entry = tuple[float, int]


def id_of(entry: Entry) -> int:
    return 1 + int(entry[0] * 2 + 1000) * 2 + entry[1]


@pytest.mark.parametrize("growing", [False, True], ids=["any order", "oldest first"])
@pytest.mark.parametrize("seed", range(10))
def test_the_first_is_that_of_the_numbers_that_are_left(seed: int, growing: bool) -> None:
    random = Random(seed)
    extremes, groups = GroupExtremes(), [Counter[Entry]() for _ in range(4)]
    clock = 0

    def drawn() -> Entry:
        nonlocal clock
        clock += 1
        return (float(clock % 400), 0) if growing else (random.randrange(-20, 20) / 2, random.randrange(2))

    def change(changes: list[tuple[int, Entry, int]]) -> None:
        random.shuffle(changes)
        columns = [(group, number, rank, id_of((number, rank)), weight) for group, (number, rank), weight in changes]
        arrays = [np.array(column, np.int64) for column in zip(*columns, strict=True)] or [np.empty(0, np.int64)] * 5
        arrays[1] = np.array([number for _, number, *_ in columns], np.float64)
        for group, entry, weight in changes:
            groups[group][entry] += weight
        touched = np.unique(arrays[0])
        extremes.change(NumberChanges(*arrays), touched)
        wanted = [min((+held).elements(), default=None) for held in groups]
        found = extremes.firsts(touched).tolist()
        assert found == [NULL if wanted[one] is None else id_of(wanted[one]) for one in touched.tolist()]  # type: ignore[arg-type]

    for _ in range(60):
        changes = [(random.randrange(4), drawn(), random.choice((1, 1, 2))) for _ in range(random.choice((0, 3, 40)))]
        for group, held in enumerate(groups):
            present = sorted((+held).elements())
            leaving = present[: random.randrange(15)] if growing else random.sample(present, len(present) // 3)
            changes += [(group, entry, -1) for entry in leaving]
        changes += [(1, entry, weight) for entry in [drawn()] for weight in (1, -1)]  # comes and goes
        change(changes)
        assert len(extremes) <= 4 * sum((+held).total() for held in groups) + 200
    change([(group, entry, -count) for group, held in enumerate(groups) for entry, count in (+held).items()])
    assert len(extremes) == 0
