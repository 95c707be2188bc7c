"""Operators over rows: joins, grouping, order, and what they do with nulls and nothing."""

from __future__ import annotations

import math
from typing import Any

import pytest

from anabranch.algebra import expressions as ex
from anabranch.algebra import operators as op
from anabranch.errors import EvaluationError, Span
from anabranch.model.graph import EMPTY_GRAPH
from anabranch.model.temporal import Duration
from anabranch.model.values import Value
from anabranch.snapshot import Context, compile_plan, evaluate_plan


def c(value: Value) -> ex.Constant:
    return ex.Constant(value)


def v(name: str) -> ex.Variable:
    return ex.Variable(name)


def column(name: str, *values: Value, source: op.Operator | None = None) -> op.Operator:
    """One row per value."""
    return op.Unwind(source or op.Unit(), name, c(list(values)))


def table(names: str, *rows: tuple[Value, ...]) -> op.Operator:
    """Rows with columns named by letters."""
    unwound = op.Unwind(op.Unit(), " row", c([list(row) for row in rows]))
    return op.Project(unwound, tuple((name, ex.Subscript(v(" row"), c(i))) for i, name in enumerate(names)))


def rows_of(plan: op.Operator, **parameters: Value) -> list[tuple[Any, ...]]:
    return evaluate_plan(plan, Context(graph=lambda source: EMPTY_GRAPH, parameters=parameters))[1]


def code_of(plan: op.Operator, **parameters: Value) -> str:
    with pytest.raises(EvaluationError) as caught:
        rows_of(plan, **parameters)
    return caught.value.diagnostic.code


def test_unit_is_one_empty_row() -> None:
    assert rows_of(op.Unit()) == [()]


def test_unwind_of_lists_null_and_single_values() -> None:
    assert rows_of(column("x", 1, None, 2)) == [(1,), (None,), (2,)]
    assert rows_of(op.Unwind(op.Unit(), "x", c(None))) == []
    assert rows_of(op.Unwind(op.Unit(), "x", c([]))) == []
    assert rows_of(op.Unwind(op.Unit(), "x", c(7))) == [(7,)]


def test_filter_keeps_only_what_is_true() -> None:
    kept = op.Filter(column("x", 1, 5, None), ex.Compare(">", v("x"), c(3)))
    assert rows_of(kept) == [(5,)]
    assert code_of(op.Filter(column("x", 1), v("x"))) == "SER-302"


def test_join_on_shared_columns_leaves_nulls_out() -> None:
    left = table("ab", (1, "x"), (2, "y"), (None, "z"))
    right = table("ca", ("p", 1.0), ("q", 1), ("r", None))
    joined = op.Join(left, right)
    assert joined.columns == ("a", "b", "c")
    assert rows_of(joined) == [(1, "x", "p"), (1, "x", "q")]


def test_join_without_shared_columns_is_every_pair_that_meets_the_condition() -> None:
    pairs = op.Join(column("a", 1, 2), column("b", 1, 2), ex.Compare("<", v("a"), v("b")))
    assert rows_of(pairs) == [(1, 2)]


def test_left_join_keeps_lonely_rows() -> None:
    left, right = table("ab", (1, "x"), (2, "y"), (None, "z")), table("ac", (1, 10), (2, 20))
    plan = op.LeftJoin(left, right, ex.Compare("<", v("c"), c(15)))
    assert rows_of(plan) == [(1, "x", 10), (2, "y", None), (None, "z", None)]


def test_union_reads_columns_by_name() -> None:
    assert rows_of(op.Union(table("ab", (1, 2)), table("ba", (4, 3)))) == [(1, 2), (3, 4)]


def test_distinct_by_equivalence() -> None:
    values = column("x", 1, 1.0, True, None, None, math.nan, math.nan, [1], [1.0])
    found = [row[0] for row in rows_of(op.Distinct(values))]
    assert found[:3] == [1, True, None]
    assert math.isnan(found[3])
    assert found[4:] == [[1]]


def test_order_is_stable_and_mixes_directions() -> None:
    rows = table("ab", (1, "x"), (2, "y"), (1, "z"), (None, "w"), (2, "a"))
    assert [b for _, b in rows_of(op.Order(rows, (op.OrderKey(v("a")),)))] == ["x", "z", "y", "a", "w"]
    assert [b for _, b in rows_of(op.Order(rows, (op.OrderKey(v("a"), True),)))] == ["w", "y", "a", "x", "z"]
    both = op.Order(rows, (op.OrderKey(v("a")), op.OrderKey(v("b"), True)))
    assert [b for _, b in rows_of(both)] == ["z", "x", "y", "a", "w"]


def test_slice() -> None:
    numbers = column("x", 1, 2, 3, 4)
    assert rows_of(op.Slice(numbers, c(1), c(2))) == [(2,), (3,)]
    assert rows_of(op.Slice(numbers, c(9), None)) == []
    assert rows_of(op.Slice(numbers, None, ex.Parameter("most")), most=0) == []


@pytest.mark.parametrize(("most", "code"), [(-1, "SER-301"), (1.5, "SER-302"), (None, "SER-302"), (True, "SER-302")])
def test_slice_wants_counts(most: Value, code: str) -> None:
    assert code_of(op.Slice(column("x", 1), None, ex.Parameter("most")), most=most) == code


def test_slice_is_lazy() -> None:
    failing = op.Project(column("x", 1, 0), (("y", ex.Call("divide", (c(1), v("x")))),))
    assert rows_of(op.Slice(failing, None, c(1))) == [(1,)]


# --- aggregates ---


def aggregate(function: str, *values: Value, extra: tuple[Value, ...] = (), distinct: bool = False) -> Any:
    call = ex.AggregateCall(function, (v("x"), *map(c, extra)), distinct)
    ((result,),) = rows_of(op.Aggregate(column("x", *values), (), (("r", call),)))
    return result


def test_groups_by_equivalence_in_order_of_appearance() -> None:
    rows = table("kx", (None, 1), (1, 2), (1.0, 3), (None, 4), (True, 5))
    plan = op.Aggregate(
        rows, (("k", v("k")),), (("n", ex.AggregateCall("count", ())), ("s", ex.AggregateCall("sum", (v("x"),))))
    )
    assert rows_of(plan) == [(None, 2, 5), (1, 2, 5), (True, 1, 5)]


def test_without_keys_nothing_is_one_group() -> None:
    nothing = column("x")
    calls = {name: ex.AggregateCall(name, (v("x"),)) for name in ("sum", "avg", "min", "collect", "stdev")}
    plan = op.Aggregate(nothing, (), (("n", ex.AggregateCall("count", ())), *calls.items()))
    assert rows_of(plan) == [(0, 0, None, None, [], 0.0)]
    assert rows_of(op.Aggregate(nothing, (("x", v("x")),), ())) == []


@pytest.mark.parametrize(
    ("function", "values", "expected"),
    [
        ("count", (1, None, 1), 2),
        ("collect", (1, None, "a"), [1, "a"]),
        ("sum", (1, 2), 3),
        ("sum", (1, 0.5), 1.5),
        ("sum", (0.1,) * 10, 1.0),
        ("sum", (1e16, 1.0, -1e16), 1.0),
        ("sum", (Duration(days=1), Duration(days=2)), Duration(days=3)),
        ("avg", (1, 2), 1.5),
        ("avg", (1, 3), 2.0),
        ("avg", (Duration(days=1), Duration(days=3)), Duration(days=2)),
        ("min", (1, "a", None, [1, 2], 0.2, "b"), [1, 2]),
        ("max", (1, "a", None, [1, 2], 0.2, "b"), 1),
        ("max", (2, 2.0), 2),
        ("stdevp", (1, 3), 1.0),
        ("stdev", (1, 3), math.sqrt(2)),
        ("stdev", (1,), 0.0),
    ],
)
def test_aggregates(function: str, values: tuple[Value, ...], expected: Value) -> None:
    found = aggregate(function, *values)
    assert found == expected
    assert type(found) is type(expected)


def test_distinct_aggregates_take_each_value_once() -> None:
    assert aggregate("count", 1, 1.0, 2, None, distinct=True) == 2
    assert aggregate("sum", 3, 3, 4, distinct=True) == 7
    assert aggregate("collect", "a", "b", "a", distinct=True) == ["a", "b"]


@pytest.mark.parametrize(
    ("function", "share", "expected"),
    [
        ("percentiledisc", 0.0, 10),
        ("percentiledisc", 0.5, 20),
        ("percentiledisc", 1.0, 30),
        ("percentilecont", 0.25, 15.0),
        ("percentilecont", 0.5, 20.0),
        ("percentilecont", 1, 30.0),
    ],
)
def test_percentiles(function: str, share: float, expected: float) -> None:
    found = aggregate(function, 30, 10, 20, extra=(share,))
    assert found == expected
    assert type(found) is type(expected)


def test_aggregates_refuse() -> None:
    def failing(function: str, *values: Value, extra: tuple[Value, ...] = ()) -> str:
        with pytest.raises(EvaluationError) as caught:
            aggregate(function, *values, extra=extra)
        return caught.value.diagnostic.code

    assert failing("sum", "a") == "SER-302"
    assert failing("sum", 2**63 - 1, 1) == "SER-303"
    assert failing("avg", 1, Duration(days=1)) == "SER-302"
    assert failing("percentilecont", 1, extra=(1.1,)) == "SER-301"
    assert failing("percentiledisc", 1, extra=(-1,)) == "SER-301"


def test_an_aggregates_error_points_at_its_call() -> None:
    call = ex.AggregateCall("sum", (v("x"),), span=Span(7, 13))
    with pytest.raises(EvaluationError) as caught:
        rows_of(op.Aggregate(column("x", "a"), (), (("s", call),)))
    assert caught.value.diagnostic.span == Span(7, 13)


# --- plans inside of expressions ---


def test_exists_and_collected_rows_see_the_enclosing_row() -> None:
    inner = op.Filter(column("y", 1, 2, 3, source=op.Argument(("x",))), ex.Compare(">", v("y"), v("x")))
    plan = op.Project(
        column("x", 1, 3),
        (("any", ex.Exists(inner)), ("all", ex.CollectRows(inner, ex.Call("multiply", (v("x"), v("y")))))),
    )
    assert rows_of(plan) == [(True, [2, 3]), (False, [])]


def test_a_nested_plan_sees_the_variable_of_a_comprehension() -> None:
    inner = op.Filter(op.Argument(("item",)), ex.Compare(">", v("item"), c(1)))
    kept = ex.Comprehension("item", c([1, 2, 3]), ex.Exists(inner), None)
    assert rows_of(op.Project(op.Unit(), (("kept", kept),))) == [([2, 3],)]


def test_a_compiled_plan_runs_again_with_other_parameters() -> None:
    compiled = compile_plan(op.Project(op.Unit(), (("p", ex.Parameter("p")),)))
    assert compiled.columns == ("p",)
    for value in (1, 2):
        context = Context(graph=lambda source: EMPTY_GRAPH, parameters={"p": value})
        assert compiled.run(context) == [(value,)]


def test_multiplied_rows_are_paid_for() -> None:
    numbers = column("a", *range(100))
    pairs = op.Join(numbers, column("b", *range(100)))
    context = Context(graph=lambda source: EMPTY_GRAPH, max_steps=5_000)
    with pytest.raises(EvaluationError) as caught:
        evaluate_plan(pairs, context)
    assert caught.value.diagnostic.code == "SER-306"
    assert caught.value.diagnostic.hint
