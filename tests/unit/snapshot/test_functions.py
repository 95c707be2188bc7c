"""The functions that queries can call."""

from __future__ import annotations

import math
from typing import Any

import pytest

from anabranch.algebra.functions import CONNECTIVITY, OPERATORS
from anabranch.algebra.functions import FUNCTIONS as SIGNATURES
from anabranch.errors import EvaluationError
from anabranch.model.graph import EMPTY_GRAPH
from anabranch.model.points import Point
from anabranch.model.temporal import Date, Duration
from anabranch.model.values import Node, Path, Relationship, Value
from anabranch.snapshot import Context
from anabranch.snapshot.functions import CONTEXT_FUNCTIONS, FUNCTIONS

ANN = Node(1, ("Person",), {"name": "Ann", "age": None})
KNOWS = Relationship(7, "KNOWS", 1, 2, {"since": 1999})
WALK = Path((ANN, Node(2)), (KNOWS,))
LARGEST = 2**63 - 1


def call(name: str, *arguments: Value) -> Any:
    return FUNCTIONS[name](*arguments)


def code_of(name: str, *arguments: Value) -> str:
    with pytest.raises(EvaluationError) as caught:
        call(name, *arguments)
    return caught.value.diagnostic.code


def test_exactly_the_functions_of_the_algebra_are_implemented() -> None:
    promised = {name for name, signature in SIGNATURES.items() if not signature.aggregate} - CONNECTIVITY | OPERATORS
    assert set(FUNCTIONS) | set(CONTEXT_FUNCTIONS) == promised
    assert not set(FUNCTIONS) & set(CONTEXT_FUNCTIONS)


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("add", (1, 2), 3),
        ("add", (1, 0.5), 1.5),
        ("add", ("a", "b"), "ab"),
        ("add", ("a", 1), "a1"),
        ("add", (1.0, "a"), "1.0a"),
        ("add", ([1], [2]), [1, 2]),
        ("add", ([1], 2), [1, 2]),
        ("add", (1, [2]), [1, 2]),
        ("add", (None, 1), None),
        ("add", ([1], None), None),
        ("add", (Date(2022, 1, 31), Duration(months=1)), Date(2022, 2, 28)),
        ("subtract", (1, 2), -1),
        ("subtract", (Date(2022, 1, 2), Duration(days=1)), Date(2022, 1, 1)),
        ("multiply", (3, 0.5), 1.5),
        ("multiply", (Duration(days=1), 2), Duration(days=2)),
        ("divide", (7, 2), 3),
        ("divide", (-7, 2), -3),
        ("divide", (7, -2), -3),
        ("divide", (7, 2.0), 3.5),
        ("divide", (1.0, 0), math.inf),
        ("divide", (-1, 0.0), -math.inf),
        ("divide", (Duration(days=3), 3), Duration(days=1)),
        ("modulo", (7, 3), 1),
        ("modulo", (-7, 3), -1),
        ("modulo", (7, -3), 1),
        ("modulo", (7.5, 2), 1.5),
        ("power", (2, 10), 1024.0),
        ("power", (10, 400), math.inf),
        ("power", (0, -1), math.inf),
        ("negate", (3,), -3),
        ("negate", (None,), None),
        ("plus", (3,), 3),
    ],
)
def test_arithmetic(name: str, arguments: tuple[Value, ...], expected: Value) -> None:
    found = call(name, *arguments)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("name", "arguments"), [("divide", (0.0, 0)), ("modulo", (1.0, 0)), ("power", (-8, 1 / 3)), ("sqrt", (-1,))]
)
def test_what_floats_cannot_say_is_nan(name: str, arguments: tuple[Value, ...]) -> None:
    assert math.isnan(call(name, *arguments))


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("add", (LARGEST, 1), "SER-303"),
        ("subtract", (-LARGEST, 2), "SER-303"),
        ("multiply", (2**62, 2), "SER-303"),
        ("divide", (-LARGEST - 1, -1), "SER-303"),
        ("negate", (-LARGEST - 1,), "SER-303"),
        ("abs", (-LARGEST - 1,), "SER-303"),
        ("divide", (1, 0), "SER-304"),
        ("modulo", (1, 0), "SER-304"),
        ("add", (True, 1), "SER-302"),
        ("subtract", ("a", 1), "SER-302"),
        ("multiply", ([1], 2), "SER-302"),
        ("power", ("a", 1), "SER-302"),
        ("negate", ("a",), "SER-302"),
        ("range", (1, 5, 0), "SER-301"),
        ("range", (1.0, 5), "SER-302"),
        ("range", (1, 10**12), "SER-306"),
        ("labels", (KNOWS,), "SER-302"),
        ("labels", (WALK,), "SER-302"),
        ("type", (ANN,), "SER-302"),
        ("length", ("abc",), "SER-302"),
        ("size", (WALK,), "SER-302"),
        ("keys", (1,), "SER-302"),
        ("substring", ("abc", -1), "SER-301"),
        ("left", ("abc", -1), "SER-301"),
        ("toupper", (1,), "SER-302"),
        ("matches", ("a", "("), "SER-301"),
        ("round", (1.5, 1, "SIDEWAYS"), "SER-301"),
        ("merge_maps", ({}, 1), "SER-302"),
    ],
)
def test_refusals(name: str, arguments: tuple[Value, ...], code: str) -> None:
    assert code_of(name, *arguments) == code


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("tostring", (1.0,), "1.0"),
        ("tostring", (1e7,), "1.0E7"),
        ("tostring", (1.5e-7,), "1.5E-7"),
        ("tostring", (123456789.5,), "1.234567895E8"),
        ("tostring", (math.inf,), "Infinity"),
        ("tostring", (True,), "true"),
        ("tostring", (Date(2022, 10, 14),), "2022-10-14"),
        ("tointeger", ("2.9",), 2),
        ("tointeger", (" -7 ",), -7),
        ("tointeger", ("seven",), None),
        ("tointeger", (str(2**63),), None),
        ("tointeger", (-2.9,), -2),
        ("tointeger", (True,), 1),
        ("tofloat", ("1e3",), 1000.0),
        ("tofloat", ("",), None),
        ("tofloat", (3,), 3.0),
        ("toboolean", (" TRUE ",), True),
        ("toboolean", ("yes",), None),
        ("toboolean", (0,), False),
    ],
)
def test_conversions(name: str, arguments: tuple[Value, ...], expected: Value) -> None:
    assert call(name, *arguments) == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, value) for name in ("tostring", "tointeger", "tofloat", "toboolean") for value in ([], {}, ANN, WALK)),
        ("toboolean", 1.0),
        ("tofloat", True),
    ],
)
def test_conversions_of_what_has_no_such_form(name: str, value: Value) -> None:
    assert code_of(name, value) == "SER-302"


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("starts_with", ("abc", "ab"), True),
        ("starts_with", ("abc", 1), None),
        ("ends_with", ("abc", "bc"), True),
        ("contains", ("abc", "d"), False),
        ("contains", ([1], 1), None),
        ("matches", ("abc", "a.c"), True),
        ("matches", ("abcd", "a.c"), False),
        ("substring", ("hello", 1), "ello"),
        ("substring", ("hello", 1, 3), "ell"),
        ("left", ("hello", 2), "he"),
        ("right", ("hello", 2), "lo"),
        ("right", ("hello", 9), "hello"),
        ("right", ("hello", 0), ""),
        ("ltrim", ("  a ",), "a "),
        ("rtrim", ("  a ",), "  a"),
        ("replace", ("banana", "an", "o"), "booa"),
        ("split", ("a,b;c", [",", ";"]), ["a", "b", "c"]),
        ("split", ("abc", ""), ["a", "b", "c"]),
        ("split", (None, ","), None),
        ("reverse", ("abc",), "cba"),
        ("reverse", ([1, 2],), [2, 1]),
        ("size", ("abc",), 3),
        ("isempty", ({},), True),
        ("head", ([],), None),
        ("last", ([1, 2],), 2),
        ("tail", ([1, 2, 3],), [2, 3]),
        ("range", (0, 10, 3), [0, 3, 6, 9]),
        ("range", (3, 1, -1), [3, 2, 1]),
        ("range", (3, 1), []),
        ("keys", ({"a": None},), ["a"]),
        ("keys", (ANN,), ["name"]),
        ("properties", (KNOWS,), {"since": 1999}),
        ("merge_maps", ({"a": 1}, {"a": 2, "b": 3}), {"a": 2, "b": 3}),
        ("merge_maps", ({"a": 1}, None), None),
        ("nodes", (WALK,), [ANN, Node(2)]),
        ("rels", (WALK,), [KNOWS]),
        ("length", (WALK,), 1),
        ("id", (ANN,), 1),
        ("elementid", (ANN,), "1"),
        ("exists", (None,), False),
    ],
)
def test_strings_lists_and_elements(name: str, arguments: tuple[Value, ...], expected: Value) -> None:
    assert call(name, *arguments) == expected


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("round", (2.5,), 3.0),
        ("round", (-2.5,), -2.0),
        ("round", (0.49999999999999994,), 0.0),
        ("round", (-1.55, 1), -1.6),
        ("round", (1.25, 1, "HALF_EVEN"), 1.2),
        ("ceil", (1,), 1.0),
        ("floor", (-1.5,), -2.0),
        ("floor", (math.inf,), math.inf),
        ("sign", (-0.5,), -1),
        ("log", (0,), -math.inf),
        ("exp", (1000,), math.inf),
        ("haversin", (math.pi,), 1.0),
        ("cot", (0,), math.inf),
        ("isnan", (math.nan,), True),
        ("abs", (None,), None),
    ],
)
def test_numbers(name: str, arguments: tuple[Value, ...], expected: Value) -> None:
    assert call(name, *arguments) == expected


def test_points_from_maps_and_elements() -> None:
    place = call("point", {"lat": 52.0, "lon": 13.0})
    assert place == Point("wgs-84", (13.0, 52.0))
    assert call("point", Node(1, (), {"latitude": 52, "longitude": 13, "name": "Berlin"})) == place
    assert call("point", Node(1, (), {"name": "nowhere"})) is None
    assert call("distance", Point("cartesian", (0.0, 0.0)), Point("cartesian", (3.0, 4.0))) == 5.0
    assert call("point.distance", place, None) is None


def test_clock_and_chance_come_from_the_context() -> None:
    context = Context(graph=lambda source: EMPTY_GRAPH, clock=1_665_758_700_000_000)
    assert CONTEXT_FUNCTIONS["timestamp"](context) == 1_665_758_700_000
    assert str(CONTEXT_FUNCTIONS["date"](context)) == "2022-10-14"
    again = Context(graph=lambda source: EMPTY_GRAPH)
    assert CONTEXT_FUNCTIONS["rand"](context) == CONTEXT_FUNCTIONS["rand"](again)
