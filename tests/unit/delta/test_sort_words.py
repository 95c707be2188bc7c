"""Sort words compare as the keys of values do."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest

from anabranch.delta import sort_words
from anabranch.delta.dictionary import Dictionary
from anabranch.delta.sort_words import ColumnOrder, JoinedOrder, OrderLabels, SortWords
from anabranch.model.compare import canonical_key, order_key
from anabranch.model.values import Value

NUMBERS: list[Value] = [
    *range(-3, 4),
    *map(float, range(-3, 4)),
    -0.0,
    0.1,
    -0.1,
    5e-324,
    -5e-324,
    1.7976931348623157e308,
    math.inf,
    -math.inf,
    math.nan,
    *[sign * (2**power + by) for sign in (1, -1) for power in (53, 54, 62, 63, 64, 70, 1024) for by in (-1, 0, 1)],
    *[sign * 2.0**power for sign in (1, -1) for power in (53, 54, 62, 63, 64, 70)],
    10**400,
    10**400 + 1,
    -(10**400),
]
OTHERS: list[Value] = [None, True, False, "", "a", "ab", "b", "\U0001f600", "\uffff", [1, 2], [1, 2.0], [], {"a": 1}]


@pytest.mark.parametrize("key_of", [order_key, canonical_key])
@pytest.mark.parametrize("seed", range(5))
def test_words_compare_as_keys_do(key_of: Callable[[Value], Any], seed: int) -> None:
    values = NUMBERS + OTHERS
    Random(seed).shuffle(values)
    dictionary = Dictionary()
    words = SortWords(dictionary, key_of, looks=key_of is canonical_key)
    ids = np.array([dictionary.encode(value) for value in values])
    words.words(ids)  # labels may be given anew meanwhile; from here on they stay
    together = list(map(tuple, words.words(ids).tolist()))
    alone = [tuple(words.words(ids[at : at + 1])[0].tolist()) for at in range(len(ids))]
    assert together == alone
    for one, its in zip(values, together, strict=True):
        for other, those in zip(values, together, strict=True):
            assert (its < those) == (key_of(one) < key_of(other)), (one, other)
            assert (its == those) == (key_of(one) == key_of(other)), (one, other)


def test_descending_words_compare_the_other_way_round() -> None:
    dictionary = Dictionary()
    rows = dictionary.encode_all([1, 2.5, "a", None]).reshape(-1, 1)
    words = SortWords(dictionary, order_key)
    up, down = (ColumnOrder([0], words, descending).words(rows).tolist() for descending in (False, True))
    assert sorted(range(4), key=up.__getitem__) == sorted(range(4), key=down.__getitem__, reverse=True) == [2, 0, 1, 3]


@pytest.mark.parametrize("keys", ["rising", "falling", "inward", "random"])
def test_labels_are_in_order_however_keys_come(keys: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sort_words, "_ROOM", 1 << 12)
    count = 300
    drawn = list(range(count))
    if keys == "falling":
        drawn.reverse()
    elif keys == "inward":  # each between the last two
        drawn = [one // 2 if one % 2 else count - one // 2 for one in range(count)]
    elif keys == "random":
        Random(1).shuffle(drawn)
    labels = OrderLabels()
    for key in drawn:
        labels.of(key)
    found = [labels.of(key) for key in sorted(drawn)]
    assert all(one < other for one, other in pairwise(found))
    assert found == [labels.of(key) for key in sorted(drawn)]


def test_labels_are_forgotten_and_words_given_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sort_words, "_MOST_KNOWN", 8)
    dictionary = Dictionary()
    words = SortWords(dictionary, canonical_key, looks=True)
    order = JoinedOrder([ColumnOrder([0], words), ColumnOrder([1], words)])
    texts = [f"t{number:03}" for number in range(200)]
    rows = np.column_stack([dictionary.encode_all(texts), dictionary.encode_all(reversed(texts))])
    before = order.revision
    for start in range(0, 200, 5):
        order.words(rows[start : start + 5])
    assert order.revision > before
    found = order.words(rows).tolist()
    assert found == sorted(found)
    assert len({tuple(one) for one in found}) == 200


def test_words_from_before_are_not_used_when_labels_were_given_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sort_words, "_ROOM", 1 << 12)
    dictionary = Dictionary()
    words = SortWords(dictionary, order_key)
    texts = [f"t{number:03}" for number in range(200)]
    ids = dictionary.encode_all(texts)
    for place in (0, 199, *(one // 2 if one % 2 else 200 - one // 2 for one in range(2, 200))):
        words.words(ids[place : place + 1])
    assert words.revision > 0
    found = words.words(ids)[:, 0].tolist()
    assert found == sorted(set(found))
