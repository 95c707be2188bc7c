"""Equality, order and sameness of values."""

from __future__ import annotations

import math
from itertools import pairwise, permutations

import pytest

from anabranch.model.compare import (
    Descending,
    canonical_key,
    compare,
    content_key,
    equals,
    first_of,
    identity_key,
    looks_same,
    order_key,
    row_order,
    row_order_key,
)
from anabranch.model.points import Point
from anabranch.model.temporal import Date, DateTime, Duration, LocalDateTime, LocalTime, Time
from anabranch.model.terms import XSD_INTEGER, Blank, Iri, Literal
from anabranch.model.values import Node, Path, Relationship, Value

ANN, BOB = Node(1, ("Person",), {"name": "Ann"}), Node(2)
KNOWS = Relationship(7, "KNOWS", 1, 2)
DAY, TIME = Date(2022, 10, 14), LocalTime(14, 45)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (1, 1.0, True),
        (2**53 + 1, float(2**53), False),
        (4611686018427387905, 4611686018427387900, False),
        (math.nan, math.nan, False),
        (1, "1", False),
        (1, True, False),
        (None, None, None),
        (None, 1, None),
        ([1, 2], [1], False),
        ([1, None], [1, 2], None),
        ([1, None], [2, 2], False),
        ([[1], [2]], [[1], [None]], None),
        ({"k": None}, {}, False),
        ({"k": None}, {"k": 1}, None),
        ({"k": 1, "l": 2}, {"l": 2, "k": 1.0}, True),
        (ANN, Node(1), True),
        (ANN, BOB, False),
        (ANN, Relationship(1, "T", 1, 1), False),
        (Path((ANN, BOB), (KNOWS,)), Path((Node(1), Node(2)), (Relationship(7, "X", 1, 2),)), True),
        (DAY, Date(2022, 10, 14), True),
        (DAY, LocalDateTime(DAY), False),
    ],
)
def test_equality_is_three_valued(left: Value, right: Value, expected: bool | None) -> None:
    assert equals(left, right) is expected
    assert equals(right, left) is expected


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (1, 1.5, -1),
        (2**53 + 1, float(2**53), 1),
        (math.nan, 1, None),
        ("a", "b", -1),
        (False, True, -1),
        (1, "a", None),
        (1, True, None),
        (None, 1, None),
        ([1, 0], [1], 1),
        ([1, None], [1], 1),
        ([1, 2], [1, None], None),
        ([1, 2], [3, None], -1),
        ([ANN, 1], [ANN, 2], -1),
        (ANN, BOB, None),
        (DAY, Date(2022, 10, 15), -1),
        (DAY, LocalDateTime(DAY), None),
        (Duration(days=1), Duration(days=2), None),
        ({}, {}, None),
    ],
)
def test_comparison_knows_what_it_cannot_compare(left: Value, right: Value, expected: int | None) -> None:
    assert compare(left, right) == expected
    assert compare(right, left) == (None if expected is None else -expected)


def test_values_of_all_kinds_have_one_order() -> None:
    ascending: list[Value] = [
        {"a": 1},
        {"a": 2},
        {"a": 1, "b": 0},
        ANN,
        BOB,
        Node("a"),
        KNOWS,
        [],
        ["a"],
        ["a", 1],
        [1],
        [1, None],
        [None],
        Path((ANN,)),
        Path((ANN, BOB), (KNOWS,)),
        Point("cartesian", (0.0, 1.0)),
        DateTime(DAY),
        LocalDateTime(DAY, TIME),
        DAY,
        Time(TIME),
        TIME,
        Duration(days=1),
        Duration(months=1),
        "",
        "B",
        "a",
        False,
        True,
        -math.inf,
        1,
        1.5,
        2**63,
        math.inf,
        math.nan,
        None,
    ]
    for earlier, later in pairwise(map(order_key, ascending)):
        assert earlier < later


def test_equal_numbers_stand_at_the_same_place() -> None:
    assert order_key(1) == order_key(1.0)


SAME: list[tuple[Value, Value]] = [
    (None, None),
    (math.nan, -math.nan),
    (1, 1.0),
    (0.0, -0.0),
    ([None, 1], [None, 1.0]),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    (ANN, Node(1)),
    (Path((ANN, BOB), (KNOWS,)), Path((Node(1), BOB), (KNOWS,))),
    (DAY, Date(2022, 10, 14)),
]
DIFFERENT: list[tuple[Value, Value]] = [
    (1, True),
    (0, False),
    (1, "1"),
    (None, False),
    (2**53 + 1, float(2**53)),
    ([1, 2], [2, 1]),
    ([1], [True]),
    ([], {}),
    ({"a": None}, {}),
    (ANN, Relationship(1, "T", 1, 1)),
    (Node(1), Node("1")),
    (Path((ANN,)), [ANN]),
    (DAY, "2022-10-14"),
    (DAY, LocalDateTime(DAY)),
]


@pytest.mark.parametrize(("left", "right"), SAME)
def test_equivalent_values_share_their_key(left: Value, right: Value) -> None:
    assert identity_key(left) == identity_key(right)
    assert hash(identity_key(left)) == hash(identity_key(right))


@pytest.mark.parametrize(("left", "right"), DIFFERENT)
def test_other_values_do_not(left: Value, right: Value) -> None:
    assert identity_key(left) != identity_key(right)


def test_content_tells_elements_apart_that_identity_does_not() -> None:
    older, newer = Node(1, ("A",), {"x": 1}), Node(1, ("A",), {"x": 2})
    assert identity_key([older]) == identity_key([newer])
    assert content_key([older]) != content_key([newer])
    assert content_key(Path((older,))) != content_key(Path((newer,)))
    assert content_key(Node(1, ("A", "B"))) == content_key(Node(1, ("B", "A")))
    assert content_key(Relationship(1, "T", 1, 2)) != content_key(Relationship(1, "T", 2, 1))
    assert content_key(1) == content_key(1.0) != content_key(True)


def test_terms_are_the_same_only_when_they_are_one_term() -> None:
    terms: list[Value] = [Iri("x"), Blank("x"), Blank("x", "doc"), Literal("x"), Literal("x", XSD_INTEGER), "x", None]
    for key in (identity_key, content_key):
        assert len({key(term) for term in terms}) == len(terms)
        assert key(Literal("x")) == key(Literal("x"))
    assert equals(Iri("x"), Iri("x")) is True
    assert equals(Iri("x"), Literal("x")) is False
    assert equals(Iri("x"), None) is None


def test_no_term_is_taken_for_another_kind_of_value() -> None:
    assert identity_key(Iri("NaN")) != identity_key(math.nan)
    assert identity_key(Blank("node", "7")) != identity_key(Node("7"))
    assert content_key(Blank("node", "7")) != content_key(Node("7"))


def test_terms_have_an_order_among_all_other_values() -> None:
    values: list[Value] = [None, "text", 1, Literal("b"), Literal("a"), Iri("z"), Blank("q"), [Iri("a")]]
    expected = [Blank("q"), Iri("z"), Literal("a"), Literal("b"), [Iri("a")], "text", 1, None]
    assert sorted(values, key=order_key) == expected


LOOKS: list[list[Value]] = [
    [1, 1.0],
    [0, 0.0, -0.0],
    [[1, 2.0], [1.0, 2]],
    [{"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1.0, "b": 2}],
    [Node(1), Node(1, ("A",)), Node(1, ("A",), {"x": 1}), Node(1, ("A",), {"x": 1.0})],
    [Relationship(1, "T", 1, 2), Relationship(1, "T", 1, "b"), Relationship(1, "S", 1, 2, {"x": None})],
    [Path((Node(1),)), Path((Node(1, ("A",)),))],
    [Point("cartesian", (0.0, 1.0)), Point("cartesian", (-0.0, 1.0))],
]


@pytest.mark.parametrize("looks", LOOKS)
def test_the_canonical_order_tells_apart_what_looks_different(looks: list[Value]) -> None:
    assert len({order_key(value) for value in looks}) == 1
    assert len({canonical_key(value) for value in looks}) == len(looks)
    assert len({repr(sorted(order, key=canonical_key)) for order in permutations(looks)}) == 1
    for one in looks:
        for other in looks:
            assert looks_same(one, other) is (one is other)
            first = min(one, other, key=canonical_key)
            assert canonical_key(first_of((one, 7), (other, 7))[0]) == canonical_key(first)


def test_the_canonical_order_refines_the_order_of_values() -> None:
    values: list[Value] = [value for looks in LOOKS for value in looks]
    values += [None, math.nan, "a", "b", True, 2, -1.5, Iri("a"), Literal("a"), Date(2020), Duration(days=1), [], {}]
    for one, other in pairwise(sorted(values, key=canonical_key)):
        assert order_key(one) <= order_key(other)
    assert canonical_key(math.nan) == canonical_key(-math.nan)


def test_rows_are_ordered_by_the_names_of_their_columns() -> None:
    rows: list[tuple[Value, ...]] = [(2, "a"), (1, "b"), (1.0, "a"), (1, "a")]
    assert sorted(rows, key=row_order_key) == [(1, "a"), (1, "b"), (1.0, "a"), (2, "a")]
    assert sorted(rows, key=row_order(("z", "a"))) == [(1, "a"), (1.0, "a"), (2, "a"), (1, "b")]
    assert row_order(("a", "z")) is row_order_key


def test_a_key_can_be_turned_round() -> None:
    assert sorted([1, 3, 2], key=Descending) == [3, 2, 1]
    assert sorted([(1, "b"), (2, "a"), (2, "b")], key=lambda row: (Descending(row[0]), row[1])) == [
        (2, "a"),
        (2, "b"),
        (1, "b"),
    ]
    assert Descending(1) == Descending(1.0)
    assert hash(Descending(1)) == hash(Descending(1.0))
