"""Cypher values as JSON, as JSON that can be read back, as the TCK's text, and in tables."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from anabranch.formats.tables import Table
from anabranch.formats.values import cypher_text, from_typed_json, to_json, to_typed_json
from anabranch.model.compare import content_key
from anabranch.model.points import Point
from anabranch.model.temporal import (
    parse_date,
    parse_date_time,
    parse_duration,
    parse_local_date_time,
    parse_local_time,
    parse_time,
)
from anabranch.model.values import Node, Path, Relationship

A = Node(1, ("A",), {"name": "x"})
B = Node(2, ("A", "B"))
BARE = Node(3, (), {"k": 1})
KNOWS = Relationship("r", "KNOWS", 1, 2, {"since": 2020})
BACK = Relationship("s", "KNOWS", 3, 2)
DAY = parse_date("2015-07-21")

VALUES: list[Any] = [
    None,
    True,
    0,
    -(2**63),
    1.0,
    -0.0,
    1e300,
    math.inf,
    -math.inf,
    math.nan,
    "",
    "it's",
    [],
    [1, [2.0, None]],
    {"a": 1, "$date": "no"},
    {"$map": {"$point": 1}},
    A,
    KNOWS,
    Path((A, B, BARE), (KNOWS, BACK)),
    Path((A,)),
    DAY,
    parse_time("21:40:32.142+01:00"),
    parse_local_time("21:40:32"),
    parse_date_time("2015-07-21T21:40:32.142+02:00[Europe/Stockholm]"),
    parse_local_date_time("2015-07-21T21:40"),
    parse_duration("P12Y5M14DT16H13M10.5S"),
    parse_duration("P1M-3DT-0.25S"),
    Point("wgs-84-3d", (1.0, 2.0, 3.0)),
    Point("cartesian", (1.0, 2.0)),
]


@pytest.mark.parametrize("value", VALUES, ids=cypher_text)
def test_typed_json_gives_the_value_again(value: Any) -> None:
    again = from_typed_json(json.loads(json.dumps(to_typed_json(value), allow_nan=False)))
    assert content_key(again) == content_key(value)
    assert type(again) is type(value)
    assert cypher_text(again) == cypher_text(value)


@pytest.mark.parametrize("value", VALUES, ids=cypher_text)
def test_json_is_json(value: Any) -> None:
    json.dumps(to_json(value), allow_nan=False)


def test_json_is_plain() -> None:
    assert to_json([DAY, math.nan]) == ["2015-07-21", "NaN"]
    assert to_json(A) == {"id": 1, "labels": ["A"], "properties": {"name": "x"}}
    assert to_json(KNOWS) == {"id": "r", "type": "KNOWS", "from": 1, "to": 2, "properties": {"since": 2020}}
    assert to_json(Point("cartesian", (1.0, 2.0))) == {"x": 1.0, "y": 2.0, "crs": "cartesian"}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (1, "1"),
        (1.0, "1.0"),
        (1e21, "1e+21"),
        (math.nan, "NaN"),
        ("it's", "'it\\'s'"),
        ([1, "a"], "[1, 'a']"),
        ({"a": 1, "b": None}, "{a: 1, b: null}"),
        (Node(1), "()"),
        (A, "(:A {name: 'x'})"),
        (BARE, "({k: 1})"),
        (KNOWS, "[:KNOWS {since: 2020}]"),
        (Path((A, B), (KNOWS,)), "<(:A {name: 'x'})-[:KNOWS {since: 2020}]->(:A:B)>"),
        (Path((B, BARE), (BACK,)), "<(:A:B)<-[:KNOWS]-({k: 1})>"),
        (DAY, "'2015-07-21'"),
        (parse_duration("PT1H"), "'PT1H'"),
    ],
)
def test_text_is_that_of_the_tck(value: Any, text: str) -> None:
    assert cypher_text(value) == text


def test_a_table_shows_itself_in_every_form() -> None:
    table = Table(["n", "x"], [(A, 1), (None, 22)])
    assert table.dicts()[1] == {"n": None, "x": 22}
    assert table.to_dicts()[0] == {"n": {"id": 1, "labels": ["A"], "properties": {"name": "x"}}, "x": 1}
    assert table.text() == "| n                | x  |\n| (:A {name: 'x'}) | 1  |\n| null             | 22 |"
    assert list(table.to_pandas()["x"]) == [1, 22]
    assert table.to_arrow().column("x").to_pylist() == [1, 22]
    assert (len(table), list(table)[1]) == (2, (None, 22))


def test_a_column_of_mixed_kinds_becomes_text_in_arrow() -> None:
    assert Table(["x"], [(1,), ("a",), (None,)]).to_arrow().column("x").to_pylist() == ["1", "'a'", None]


def test_a_row_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(ValueError, match="a row of 1 values in a table of 2 columns"):
        Table(["a", "b"], [(1,)])
