"""Functions of ids that need the values behind them: the union of two versions of an element, and the order of rows.

Invariant: results are cached, and depend on the values only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from anabranch.delta.batch import NULL, Ids
from anabranch.delta.sort_words import ColumnOrder, KeyOf, RowWords, SortWords
from anabranch.model.compare import canonical_key
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


def shared_words(runtime: Runtime, key_of: KeyOf, looks: bool = False, has_numbers: bool = True) -> SortWords:
    """Return the sort words that all operators of a query share."""
    found = runtime.shared.get(key_of)
    if found is None:
        found = runtime.shared[key_of] = SortWords(runtime.dictionary, key_of, looks, has_numbers)
    assert isinstance(found, SortWords)
    return found


def canonical_order(columns: Sequence[int], runtime: Runtime) -> RowWords:
    """Return the order of rows by the values in these columns, one after the other."""
    return ColumnOrder(columns, shared_words(runtime, canonical_key, looks=True))
