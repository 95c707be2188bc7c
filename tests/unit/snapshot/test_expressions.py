"""Expressions over a row: logic, access, binding constructs, and where their errors point."""

from __future__ import annotations

import math
from typing import Any

import pytest

from anabranch.algebra import expressions as ex
from anabranch.errors import EvaluationError, Span
from anabranch.model.graph import EMPTY_GRAPH
from anabranch.model.temporal import Date
from anabranch.model.values import Node, Relationship, Value
from anabranch.snapshot import Context, compile_expression

ANN = Node(1, ("Person", "Admin"), {"name": "Ann"})
KNOWS = Relationship(7, "KNOWS", 1, 2, {"since": 1999})


def c(value: Value) -> ex.Constant:
    return ex.Constant(value)


def lists(*items: Value) -> ex.ListOf:
    return ex.ListOf(tuple(map(c, items)))


X = ex.Variable("x")


def value_of(expression: ex.Expression, parameters: dict[str, Value] | None = None, **row: Value) -> Any:
    context = Context(graph=lambda source: EMPTY_GRAPH, parameters=parameters or {})
    return compile_expression(expression, tuple(row))(tuple(row.values()), context)


def code_of(expression: ex.Expression, **row: Value) -> str:
    with pytest.raises(EvaluationError) as caught:
        value_of(expression, **row)
    return caught.value.diagnostic.code


T, F, N = c(True), c(False), c(None)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (ex.And((T, N)), None),
        (ex.And((N, F)), False),
        (ex.And((T, T)), True),
        (ex.Or((F, N)), None),
        (ex.Or((N, T)), True),
        (ex.Or((F, F)), False),
        (ex.Xor(T, F), True),
        (ex.Xor(T, N), None),
        (ex.Not(N), None),
        (ex.Not(F), True),
        (ex.IsNull(N), True),
        (ex.IsNull(F), False),
    ],
)
def test_logic_is_kleenes(expression: ex.Expression, expected: bool | None) -> None:
    assert value_of(expression) is expected


def test_a_decided_conjunction_does_not_look_further() -> None:
    division = ex.Compare("=", ex.Call("divide", (c(1), c(0))), c(1))
    assert value_of(ex.And((F, division))) is False
    assert value_of(ex.Or((T, division))) is True
    assert code_of(ex.And((division, F))) == "SER-304"


def test_only_truth_values_are_conditions() -> None:
    assert code_of(ex.And((T, c(1)))) == "SER-302"
    assert code_of(ex.Not(c("true"))) == "SER-302"
    assert code_of(ex.Quantifier("any", "v", lists(1), ex.Variable("v"))) == "SER-302"


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">="])
def test_nan_is_neither_less_nor_greater_than_a_number(operator: Any) -> None:
    assert value_of(ex.Compare(operator, c(math.nan), c(1))) is False
    assert value_of(ex.Compare(operator, c(math.nan), c("a"))) is None


def test_comparison_operators() -> None:
    assert value_of(ex.Compare("<>", c(1), c(1.0))) is False
    assert value_of(ex.Compare("<>", c(1), N)) is None
    assert value_of(ex.Compare("<=", c("a"), c("a"))) is True
    assert value_of(ex.Compare(">", c([1, 2]), c([1]))) is True


def test_properties_of_what_has_them() -> None:
    assert value_of(ex.Property(X, "name"), x=ANN) == "Ann"
    assert value_of(ex.Property(X, "age"), x=ANN) is None
    assert value_of(ex.Property(X, "since"), x=KNOWS) == 1999
    assert value_of(ex.Property(X, "k"), x={"k": 1}) == 1
    assert value_of(ex.Property(X, "year"), x=Date(2022, 10, 14)) == 2022
    assert value_of(ex.Property(X, "k"), x=None) is None
    assert code_of(ex.Property(X, "k"), x=1) == "SER-302"
    assert code_of(ex.Property(X, "k"), x=[1]) == "SER-302"


def test_items_by_index_and_name() -> None:
    assert value_of(ex.Subscript(X, c(1)), x=[10, 20]) == 20
    assert value_of(ex.Subscript(X, c(-1)), x=[10, 20]) == 20
    assert value_of(ex.Subscript(X, c(2)), x=[10, 20]) is None
    assert value_of(ex.Subscript(X, c(-3)), x=[10, 20]) is None
    assert value_of(ex.Subscript(X, N), x=[10]) is None
    assert value_of(ex.Subscript(X, c("name")), x=ANN) == "Ann"
    assert value_of(ex.Subscript(X, c("k")), x={"k": 1}) == 1
    assert value_of(ex.Subscript(X, c(0)), x=None) is None


@pytest.mark.parametrize(
    ("subject", "index"), [([1], 1.0), ([1], True), ([1], "0"), ({"a": 1}, 0), (5, 0), ("text", 0), (True, 0)]
)
def test_items_that_cannot_be_asked_for(subject: Value, index: Value) -> None:
    assert code_of(ex.Subscript(X, c(index)), x=subject) == "SER-302"


@pytest.mark.parametrize(
    ("start", "stop", "expected"),
    [
        (c(1), c(3), [2, 3]),
        (c(1), None, [2, 3, 4]),
        (None, c(2), [1, 2]),
        (c(-2), None, [3, 4]),
        (c(3), c(1), []),
        (c(-9), c(9), [1, 2, 3, 4]),
        (N, c(1), None),
        (None, N, None),
    ],
)
def test_slices(start: ex.Expression | None, stop: ex.Expression | None, expected: Value) -> None:
    assert value_of(ex.Sublist(X, start, stop), x=[1, 2, 3, 4]) == expected


def test_labels_and_types() -> None:
    assert value_of(ex.HasLabels(X, ("Person", "Admin")), x=ANN) is True
    assert value_of(ex.HasLabels(X, ("Person", "Robot")), x=ANN) is False
    assert value_of(ex.HasLabels(X, ("KNOWS",)), x=KNOWS) is True
    assert value_of(ex.HasLabels(X, ("LIKES",)), x=KNOWS) is False
    assert value_of(ex.HasLabels(X, ("Person",)), x=None) is None
    assert code_of(ex.HasLabels(X, ("Person",)), x=1) == "SER-302"


def test_case_takes_the_first_true_branch() -> None:
    case = ex.Case(((ex.Compare(">", X, c(9)), c("big")), (ex.Compare(">", X, c(0)), c("some"))), c("none"))
    assert [value_of(case, x=value) for value in (10, 1, 0, None)] == ["big", "some", "none", "none"]


def test_comprehensions_see_the_row_and_their_own_variable() -> None:
    doubled = ex.Comprehension(
        "v", lists(1, 2, 3), ex.Compare(">", ex.Variable("v"), X), ex.Call("multiply", (ex.Variable("v"), X))
    )
    assert value_of(doubled, x=1) == [2, 3]
    assert value_of(ex.Comprehension("v", X, None, None), x=None) is None
    assert code_of(ex.Comprehension("v", X, None, None), x="abc") == "SER-302"


def test_the_inner_of_two_variables_of_one_name_wins() -> None:
    inner = ex.Comprehension("x", lists(1, 2), None, ex.Call("add", (X, c(10))))
    assert value_of(inner, x=5) == [11, 12]


@pytest.mark.parametrize(
    ("kind", "items", "expected"),
    [
        ("all", [2, 2], True),
        ("all", [], True),
        ("all", [2, None], None),
        ("all", [1, None], False),
        ("any", [], False),
        ("any", [1, None], None),
        ("any", [2, None], True),
        ("none", [1, 3], True),
        ("none", [1, None], None),
        ("none", [2, None], False),
        ("single", [1, 2], True),
        ("single", [2, 2, None], False),
        ("single", [2, None], None),
        ("single", [1], False),
    ],
)
def test_quantifiers_reckon_with_null(kind: Any, items: list[Value], expected: bool | None) -> None:
    condition = ex.Compare("=", ex.Variable("v"), c(2))
    assert value_of(ex.Quantifier(kind, "v", X, condition), x=items) is expected


def test_reduce_carries_its_accumulator() -> None:
    step = ex.Call("add", (ex.Variable("total"), ex.Variable("v")))
    assert value_of(ex.Reduce("total", X, "v", lists(1, 2, 3), step), x=10) == 16
    assert value_of(ex.Reduce("total", X, "v", N, step), x=10) is None


def test_in_is_unknown_where_a_null_could_be_it() -> None:
    def is_in(value: Value, items: Value) -> bool | None:
        return value_of(ex.Call("in", (c(value), c(items))))  # type: ignore[no-any-return]

    assert is_in(1, [1, None]) is True
    assert is_in(2, [1, None]) is None
    assert is_in(None, []) is False
    assert is_in(None, [1]) is None
    assert is_in(1, None) is None
    assert is_in([1], [[1, None]]) is False
    assert code_of(ex.Call("in", (c(1), c(1)))) == "SER-302"


def test_a_long_list_answers_in_as_a_short_one_does() -> None:
    many = list(range(100))
    member = ex.Call("in", (X, ex.Parameter("many")))
    for value in (5, 5.0, True, None, "5", 1000):
        expected = value_of(ex.Or(tuple(ex.Compare("=", X, c(one)) for one in many)), x=value)
        assert value_of(member, {"many": many}, x=value) is expected
    assert value_of(member, {"many": [*many, None]}, x=1000) is None
    assert value_of(member, {"many": [*many, True]}, x=1) is True


def test_coalesce_stops_at_the_first_value() -> None:
    failing = ex.Call("divide", (c(1), c(0)))
    assert value_of(ex.Call("coalesce", (N, c(3), failing))) == 3


def test_a_missing_parameter_is_named() -> None:
    with pytest.raises(EvaluationError) as caught:
        value_of(ex.Parameter("who", span=Span(3, 7)), {"what": 1})
    assert caught.value.diagnostic.code == "SER-305"
    assert caught.value.diagnostic.span == Span(3, 7)
    assert "$what" in caught.value.diagnostic.hint


def test_an_error_points_at_the_innermost_expression() -> None:
    division = ex.Call("divide", (c(1), c(0)), span=Span(10, 15))
    outer = ex.Call("add", (division, c(1)), span=Span(10, 20))
    for expression in (outer, ex.Not(outer, span=Span(0, 30)), ex.Comprehension("v", lists(1), outer, None)):
        with pytest.raises(EvaluationError) as caught:
            value_of(expression)
        assert caught.value.diagnostic.span == Span(10, 15)
