"""Values as people read them."""

from __future__ import annotations

import pytest

from anabranch.ui.values import (
    cell,
    clock,
    fractional_columns,
    micros,
    numeric_columns,
    plain,
    sendable,
    short_iri,
    short_text,
)

ITEM = {"item": "http://auctions.example/item/"}


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, None),
        (True, "true"),
        (7, "7"),
        (1234567, ("1,234,567", "1234567")),
        (3.0, "3"),
        (2.5, ("2.50", "2.5")),
        (0.001234, ("0.00123", "0.001234")),
        ("a word", "a word"),
        ("http://auctions.example/item/7", ("item:7", "http://auctions.example/item/7")),
        ("2022-10-14T14:45:00Z", ("2022-10-14 14:45:00", "2022-10-14T14:45:00Z")),
        ([1, 2], ("1, 2", "[1, 2]")),
        ([[1, 2], [], 3], ("[1, 2], [], 3", "[[1, 2], [], 3]")),
        ({"a": [1, 2]}, ("{a: [1, 2]}", '{"a": [1, 2]}')),
        (1e300, "1e+300"),
        (-2.5e20, "-2.5e+20"),
    ],
)
def test_a_cell_is_short_and_has_the_full_value_with_it(value: object, shown: object) -> None:
    assert cell(value, ITEM) == shown


def test_a_node_is_its_labels_and_what_tells_it_apart() -> None:
    node = {"id": 1, "labels": ["Person"], "properties": {"id": 4, "name": "Ada"}}
    assert cell(node, {}) == ("Person Ada", '{"id": 1, "labels": ["Person"], "properties": {"id": 4, "name": "Ada"}}')


def test_a_node_without_labels_is_shown_too() -> None:
    assert plain({"id": 3, "labels": [], "properties": {}}, {}) == "node 3"
    assert plain({"id": 3, "labels": [], "properties": {"name": "Ada"}}, {}) == "Ada"


def test_a_long_list_is_cut_like_a_long_text() -> None:
    short, full = cell(list(range(1000)), {}) or ("", "")
    assert len(short) < 130
    assert full.endswith("999]")


def test_only_what_json_can_tell_is_sent() -> None:
    assert sendable({"half \ud800": ("\udc00", "😀", 2**70, 10**400, True, None, 1.5)}) == {
        "half \ufffd": ["\ufffd", "😀", 2.0**70, None, True, None, 1.5]
    }


def test_in_a_column_with_fractions_whole_numbers_have_decimals() -> None:
    rows = [("a", 3, 1), ("b", 2.5, 2)]
    assert fractional_columns(("x", "y", "z"), rows) == {"y"}
    assert cell(3, {}, fractional=True) == ("3.00", "3")
    assert cell(10**400, {}, fractional=True) == (f"{10**400:,}", str(10**400))


def test_an_iri_is_shortened_by_its_longest_prefix_else_by_its_end() -> None:
    prefixes = {"a": "http://x.org/", "b": "http://x.org/deep/"}
    assert short_iri("http://x.org/deep/one", prefixes) == "b:one"
    assert short_iri("http://y.org/city#gate1", prefixes) == "gate1"
    assert short_iri("http://y.org/item/12", prefixes) == "item/12"
    assert short_text("<http://x.org/one> says 1 < 2", prefixes) == "a:one says 1 < 2"


def test_a_column_is_numeric_if_it_holds_numbers_and_nothing_else() -> None:
    rows = [(1, "x", None, True), (2.5, 3, None, False)]
    assert numeric_columns(("a", "b", "c", "d"), rows) == {"a"}


def test_instants_are_read_and_told_in_utc() -> None:
    assert micros("2022-10-14T16:45:00.5+02:00") == micros("2022-10-14T14:45:00.500Z")
    assert clock("2022-10-14T16:45:00.5+02:00") == "2022-10-14 14:45:00.500"
    assert clock(micros("2022-10-14T14:45:00Z"), day=False) == "14:45:00"
    assert clock(None) == "–"
