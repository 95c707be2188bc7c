"""Random bags that change, and what a plain bag says about them: the judge of the operators on changes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from anabranch.delta.batch import Batch
from anabranch.delta.operators.base import DeltaOperator

Row = tuple[int, ...]
Bag = Counter[Row]


class ChangingBag:
    """Keeps a bag and makes batches for it: rows repeat, cancel each other and come in any order; only their sums never
    fall below 0."""

    def __init__(self, seed: int, width: int, draw: Callable[[random.Random], Row]) -> None:
        self.random = random.Random(seed)
        self.width = width
        self.draw = draw
        self.bag: Bag = Counter()

    def change(self, most: int, leaving: float) -> Batch:
        changes: list[tuple[Row, int]] = []
        for _ in range(self.random.randrange(most + 1)):
            if self.bag and self.random.random() < leaving:
                row = self.random.choice(list(self.bag))
                weight = -self.random.randint(1, self.bag[row])
            else:
                row, weight = self.draw(self.random), self.random.choice((1, 1, 1, 2))
            self._take(row, weight)
            changes.append((row, weight))
            if self.random.random() < 0.1:  # a row that comes and goes within the batch
                passing = self.draw(self.random)
                changes += [(passing, -1), (passing, 1)]
        self.random.shuffle(changes)
        return self._batch(changes)

    def emptied(self) -> Batch:
        changes = [(row, -weight) for row, weight in self.bag.items()]
        self.bag.clear()
        return self._batch(changes)

    def _take(self, row: Row, weight: int) -> None:
        self.bag[row] += weight
        if not self.bag[row]:
            del self.bag[row]

    def _batch(self, changes: Sequence[tuple[Row, int]]) -> Batch:
        return Batch.of([row for row, _ in changes], [weight for _, weight in changes], self.width)


def summed(batches: Iterable[Batch]) -> Bag:
    """What a sequence of changes comes to."""
    total: Bag = Counter()
    for batch in batches:
        accumulate(total, batch)
    return total


def accumulate(total: Bag, batch: Batch) -> None:
    assert batch.rows.flags.c_contiguous
    assert batch.rows.dtype == batch.weights.dtype == "int64"
    for row, weight in zip(map(tuple, batch.rows.tolist()), batch.weights.tolist(), strict=True):
        total[row] += weight
        if not total[row]:
            del total[row]


def follows(
    operator: DeltaOperator,
    inputs: Sequence[ChangingBag],
    plain: Callable[..., Bag],
    steps: int = 6,
    most: int = 6,
    leaving: float = 0.4,
) -> None:
    """The law of an operator, at each of some steps; and when all has left, nothing is kept."""
    smallest = operator.size().bytes
    given: Bag = Counter()
    for _ in range(steps):
        accumulate(given, operator.apply(*(one.change(most, leaving) for one in inputs)))
        assert given == plain(*(one.bag for one in inputs))
    accumulate(given, operator.apply(*(one.emptied() for one in inputs)))
    assert given == plain(*(one.bag for one in inputs)) == Counter()
    assert operator.size() == (0, smallest)
