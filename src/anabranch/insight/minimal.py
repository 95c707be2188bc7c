"""Minimal subsets by tests: finds items that together satisfy a condition and of which none can be left out.

QuickXplain (Junker, AAAI 2004) halves the items and tests whether one half suffices together with the other: about 2k +
2k log(n/k) tests for k of n items, if more items never make the condition false. If they may, `thinned` then tries to
remove the remaining items one by one.

Invariant: the returned items satisfy the condition, and `minimal` is set only when leaving out each single item was
tried.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Item = TypeVar("Item")


class OutOfBudget(Exception):
    """The budget of evaluations is used up."""


@dataclass(slots=True)
class Budget:
    """The number of evaluations that are left."""

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
    """Return a subset of the items, in their order, that satisfies `holds`; all items together must satisfy it. `holds`
    may raise OutOfBudget."""
    if not items or holds([]):
        return []
    places = sorted(_explain([], [], list(range(len(items))), lambda some: holds([items[one] for one in sorted(some)])))
    return [items[one] for one in places]


def _explain(
    ground: list[int], added: list[int], items: list[int], holds: Callable[[Sequence[int]], bool]
) -> list[int]:
    """Return the items that are needed in addition to the ground. `added` are the items that the ground got last."""
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
    """Leave out one item after the other while the condition holds; `without` removes an item and its dependents."""
    kept = list(items)
    try:
        for item in list(kept):
            if item in kept:
                rest = without(kept, item)
                if holds(rest):
                    kept = list(rest)
        # Where fewer items can make the condition true, an item that was needed before may be removable now.
        minimal = all(not holds(without(kept, item)) for item in kept) if len(kept) < len(items) else True
    except OutOfBudget:
        return Smallest(kept, False)
    return Smallest(kept, minimal)
