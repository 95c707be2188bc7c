"""Elements, lists of elements and paths as numbers: the same number exactly where nothing tells them apart."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from anabranch.delta.dictionary import Dictionary, exact_key
from anabranch.model.values import Node, Path, Relationship, Value


def nodes() -> list[Node]:
    return [Node(1), Node(1, (), {"x": 1}), Node(1, (), {"x": 1.0}), Node("1"), Node(2, ("A",))]


def relationships() -> list[Relationship]:
    return [Relationship(1, "T", 1, 2), Relationship(1, "T", 2, 1), Relationship(2, "T", 1, 2, {"x": 1})]


def values() -> list[Value]:
    elements: list[Value] = [*nodes(), *relationships()]
    pairs: list[Value] = [list(pair) for pair in product(elements, repeat=2)]
    paths: list[Value] = [Path((one, two), (by,)) for one, two, by in product(nodes(), nodes(), relationships())]
    return [
        *elements,
        *([one] for one in elements),
        *pairs,
        *paths,
        [],
        [1],
        [1, 2],
        [None],
        [Node(1), None],
        [[Node(1)]],
    ]


@pytest.mark.parametrize("order", [list, lambda found: found[::-1]])
def test_values_share_a_number_exactly_where_nothing_tells_them_apart(
    order: Callable[[list[Value]], list[Value]],
) -> None:
    dictionary = Dictionary()
    found = order(values())
    numbers = [dictionary.encode(one) for one in found]
    assert numbers == [dictionary.encode(one) for one in order(values())], "made anew, the same"
    assert numbers == [dictionary.find(one) for one in found]
    assert [exact_key(dictionary.decode(one)) for one in numbers] == [exact_key(one) for one in found]
    assert len(set(numbers)) == len({exact_key(one) for one in found})
