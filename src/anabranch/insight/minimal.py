"""A smallest set, by asking: of some items those without which something no longer holds.

QuickXplain (Junker, AAAI 2004) halves the items and asks whether one half is enough on the ground of the other: about
2k + 2k log(n/k) questions for k of n items where more items never make it false. Where they may, what is left is taken
away one by one until nothing can go.

Invariant: what is given back holds, and `minimal` is said only when it was tried to leave out each item.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Item = TypeVar("Item")


class OutOfBudget(Exception):
    """No more questions may be asked."""


@dataclass(slots=True)
class Budget:
    """How many evaluations are left."""

    left: int

    def spend(self) -> None:
        if self.left <= 0:
            raise OutOfBudget
        self.left -= 1


@dataclass(frozen=True, slots=True)
class Smallest(Generic[Item]):
    items: list[Item]
    minimal: bool


def smallest(items: Sequence[Item], holds: Callable[[Sequence[Item]], bool]) -> list[Item]:
    """Some of the items, in their order, that are enough; all of them are. `holds` may raise OutOfBudget."""
    if not items or holds([]):
        return []
    places = sorted(_explain([], [], list(range(len(items))), lambda some: holds([items[one] for one in sorted(some)])))
    return [items[one] for one in places]


def _explain(
    ground: list[int], added: list[int], items: list[int], holds: Callable[[Sequence[int]], bool]
) -> list[int]:
    """Those of the items that are needed beside the ground. `added` is what the ground got last."""
    if added and holds(ground):
        return []
    if len(items) == 1:
        return items
    half = len(items) // 2
    first, second = items[:half], items[half:]
    from_second = _explain([*ground, *first], first, second, holds)
    from_first = _explain([*ground, *from_second], from_second, first, holds)
    return [*from_first, *from_second]


def thinned(
    items: Sequence[Item],
    holds: Callable[[Sequence[Item]], bool],
    without: Callable[[Sequence[Item], Item], Sequence[Item]],
) -> Smallest[Item]:
    """Leave out one item after the other as long as it holds; `without` says what goes with an item."""
    kept = list(items)
    try:
        for item in list(kept):
            if item in kept:
                rest = without(kept, item)
                if holds(rest):
                    kept = list(rest)
        # What could not go at first may go now, where fewer items can make it true.
        minimal = all(not holds(without(kept, item)) for item in kept) if len(kept) < len(items) else True
    except OutOfBudget:
        return Smallest(kept, False)
    return Smallest(kept, minimal)
