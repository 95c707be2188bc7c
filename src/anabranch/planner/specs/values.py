"""Functions of ids that need the values behind them: the union of two versions of an element, and the order of rows.

Invariant: results are cached, and depend on the values only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import TypeAlias

import numpy as np

from anabranch.delta.batch import NULL, Ids
from anabranch.delta.dictionary import Dictionary
from anabranch.model.compare import Descending, canonical_key, order_key
from anabranch.model.union import overlay
from anabranch.model.values import Node, Relationship, Value
from anabranch.planner.flow.runtime import Runtime

_MOST_REMEMBERED = 1 << 18


def united(runtime: Runtime) -> Callable[[Ids, Ids], Ids]:
    """Return the function that unites an element met in two windows: the right version is laid over the left one."""
    dictionary = runtime.dictionary
    known: dict[tuple[int, int], int] = {}

    def combine(left: Ids, right: Ids) -> Ids:
        if len(known) > _MOST_REMEMBERED:
            known.clear()
        differ = np.flatnonzero((left != right) & (left != NULL) & (right != NULL))
        if not len(differ):
            return np.where(left == NULL, right, left)
        result = np.where(left == NULL, right, left)
        for at, pair in zip(
            differ.tolist(), zip(left[differ].tolist(), right[differ].tolist(), strict=True), strict=True
        ):
            found = known.get(pair)
            if found is None:
                found = known[pair] = dictionary.encode(_united(dictionary.decode(pair[0]), dictionary.decode(pair[1])))
            result[at] = found
        return result

    return combine


def _united(older: Value, newer: Value) -> Value:
    if isinstance(older, list) and isinstance(newer, list) and len(older) == len(newer):
        return [_united(one, other) for one, other in zip(older, newer, strict=True)]
    if isinstance(older, Node) and isinstance(newer, Node):
        return overlay(older, newer)
    if isinstance(older, Relationship) and isinstance(newer, Relationship):
        return overlay(older, newer)
    return older


SortParts: TypeAlias = tuple[object, ...]
RowOrder: TypeAlias = Callable[[Sequence[tuple[int, ...]]], list[SortParts]]
"""From rows of ids to their sort keys: parts that are compared one after the other."""


class SortKeys(dict[int, SortParts]):
    """Sort keys by id, made at the first request. Equal values have the same object, which compares fast."""

    def __init__(self, dictionary: Dictionary, key_of: Callable[[Value], SortParts]) -> None:
        super().__init__()
        self._dictionary = dictionary
        self._key_of = key_of

    def __missing__(self, one: int) -> SortParts:
        if len(self) >= _MOST_REMEMBERED:
            self.clear()
        made = self[one] = self._key_of(self._dictionary.decode(one))
        return made

    def all_of(self, ids: Sequence[int]) -> list[SortParts]:
        """Return the keys of values."""
        self._dictionary.decode_all([one for one in ids if one not in self])
        return [self[one] for one in ids]


def canonical_parts(value: Value) -> SortParts:
    """Return `canonical_key` in one tuple. Keys of one kind have one length, so they compare in the same way."""
    order, look = canonical_key(value)
    return (*order, look)  # type: ignore[misc]


def descending_parts(value: Value) -> SortParts:
    """Return the reverse of `order_key` in one tuple; that of numbers is a number, which compares fast."""
    rank, *rest = order_key(value)
    if rest and isinstance(value, int | float):
        return (-rank, -value)  # type: ignore[operator]
    return (-rank, Descending(tuple(rest)))  # type: ignore[operator]


def shared_keys(runtime: Runtime, key_of: Callable[[Value], SortParts]) -> SortKeys:
    """Return the sort keys that all operators of a query share."""
    found = runtime.shared.get(key_of)
    if found is None:
        found = runtime.shared[key_of] = SortKeys(runtime.dictionary, key_of)
    assert isinstance(found, SortKeys)
    return found


def canonical_order(runtime: Runtime) -> RowOrder:
    """Return the sort keys of rows of ids in the order of values."""
    keys = shared_keys(runtime, canonical_parts)

    def places(rows: Sequence[tuple[int, ...]]) -> list[SortParts]:
        return joined_parts([keys.all_of(column) for column in zip(*rows, strict=True)], len(rows))

    return places


def joined_parts(columns: Sequence[Sequence[SortParts]], rows: int) -> list[SortParts]:
    """Return the sort keys of rows that have these parts, column by column."""
    if len(columns) < 2:
        return list(columns[0]) if columns else [()] * rows
    return [tuple(chain.from_iterable(parts)) for parts in zip(*columns, strict=True)]
