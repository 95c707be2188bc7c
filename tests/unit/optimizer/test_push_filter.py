"""Filters go down as far as they may."""

from __future__ import annotations

import pytest

from anabranch.algebra import operators as op
from anabranch.algebra import triples as tr
from anabranch.algebra.expressions import And, Call, Constant, Exists, Expression
from anabranch.optimizer import Knowledge
from anabranch.optimizer.push_filter import push_filter

from .plans import MARKET, OTHER, PREFIXES, bgp, bound, call, equal, project, term, var

LEFT, RIGHT = bgp("?a p ?b"), bgp("?b q ?c", OTHER)
JOIN = op.Join(LEFT, RIGHT)
OPTIONAL = op.LeftJoin(LEFT, RIGHT, lenient=True)
HAS = Exists(op.Join(op.Argument(("a", "b", "c")), bgp("?a r ?d")))
CHANCE = Call("sparql:less", (Call("sparql:rand", ()), var("a")))


def pushed(plan: op.Operator) -> op.Operator | None:
    rewrite = push_filter(plan, Knowledge(prefixes=PREFIXES))
    return None if rewrite is None else rewrite.plan


def test_a_conjunction_falls_apart_and_each_part_finds_its_side() -> None:
    rewrite = push_filter(op.Filter(JOIN, And((equal("a", "x"), equal("c", "1")))), Knowledge(prefixes=PREFIXES))
    assert rewrite is not None
    assert rewrite.plan == op.Join(op.Filter(LEFT, equal("a", "x")), op.Filter(RIGHT, equal("c", "1")))
    assert rewrite.notes == ("?a = :x below Join", "?c = 1 below Join")


def test_what_both_sides_bind_is_tested_on_both() -> None:
    same = equal("b", "x")
    assert pushed(op.Filter(JOIN, same)) == op.Join(op.Filter(LEFT, same), op.Filter(RIGHT, same))


def test_what_reads_both_sides_stays_above() -> None:
    assert pushed(op.Filter(JOIN, equal("a", "?c"))) is None


def test_an_optional_part_is_never_filtered_from_above() -> None:
    assert pushed(op.Filter(OPTIONAL, bound("c"))) is None
    assert pushed(op.Filter(OPTIONAL, equal("a", "x"))) == op.LeftJoin(
        op.Filter(LEFT, equal("a", "x")), RIGHT, lenient=True
    )


def test_an_unbound_variable_is_only_asked_for_where_nobody_else_can_bind_it() -> None:
    third = bgp("?c r ?d", OTHER)
    unsure = op.Join(OPTIONAL, third, lenient=True)
    kept = pushed(op.Filter(unsure, bound("c")))
    assert kept == op.Join(OPTIONAL, op.Filter(third, bound("c")), lenient=True)
    other = op.Join(op.LeftJoin(LEFT, bgp("?b q ?e"), lenient=True), third, lenient=True)
    assert pushed(op.Filter(other, bound("e"))) == op.Join(op.Filter(other.left, bound("e")), third, lenient=True)


def test_of_an_optional_s_own_condition_what_reads_the_optional_part_goes_there() -> None:
    plan = op.LeftJoin(LEFT, RIGHT, And((equal("c", "1"), equal("a", "?c"))), lenient=True)
    assert pushed(plan) == op.LeftJoin(LEFT, op.Filter(RIGHT, equal("c", "1")), equal("a", "?c"), lenient=True)


def test_filters_pass_unions_minus_renaming_distinct_and_order() -> None:
    a = equal("a", "x")
    other = bgp("?a r ?b")
    assert pushed(op.Filter(op.Union(LEFT, other), a)) == op.Union(op.Filter(LEFT, a), op.Filter(other, a))
    assert pushed(op.Filter(tr.Minus(LEFT, RIGHT), a)) == tr.Minus(op.Filter(LEFT, a), RIGHT)
    renamed = op.Project(LEFT, (("z", var("a")), ("b", var("b"))))
    assert pushed(op.Filter(renamed, equal("z", "x"))) == op.Project(op.Filter(LEFT, a), renamed.items)
    assert pushed(op.Filter(op.Distinct(LEFT), a)) == op.Distinct(op.Filter(LEFT, a))
    ordered = op.Order(LEFT, (op.OrderKey(var("b"), of_terms=True),))
    assert pushed(op.Filter(ordered, a)) == op.Order(op.Filter(LEFT, a), ordered.keys)


def test_filters_pass_what_computes_a_column_they_do_not_read() -> None:
    extended = op.Extend(LEFT, "e", Constant(term("1")))
    assert pushed(op.Filter(extended, equal("a", "x"))) == op.Extend(
        op.Filter(LEFT, equal("a", "x")), "e", extended.expression
    )
    annotated = op.Annotate(LEFT, ("a",), (("n", call("count", "b")),))
    assert pushed(op.Filter(annotated, equal("a", "x"))) == op.Annotate(
        op.Filter(LEFT, equal("a", "x")), ("a",), annotated.aggregates
    )
    grouped = op.Aggregate(LEFT, (("k", var("a")),), (("n", call("count", "b")),))
    assert pushed(op.Filter(grouped, equal("k", "x"))) == op.Aggregate(
        op.Filter(LEFT, equal("a", "x")), grouped.keys, grouped.aggregates
    )


@pytest.mark.parametrize(
    ("plan", "condition"),
    [
        (op.Slice(LEFT, None, Constant(1)), equal("a", "x")),
        (op.Annotate(LEFT, ("a",), (("n", call("count")),)), equal("b", "x")),
        (op.Annotate(LEFT, ("a",), (("n", call("count")),)), equal("n", "1")),
        (op.Aggregate(LEFT, (), (("n", call("count")),)), equal("n", "1")),
        (op.Extend(LEFT, "e", var("a")), equal("e", "x")),
        (op.Project(LEFT, (("e", Call("sparql:str", (var("a"),))),)), equal("e", "x")),
        (JOIN, HAS),
        (JOIN, CHANCE),
        (JOIN, Constant(False)),
    ],
    ids=[
        "slice",
        "not the key",
        "the aggregate",
        "one group",
        "its column",
        "computed",
        "exists",
        "chance",
        "constant",
    ],
)
def test_these_filters_stay_where_they_are(plan: op.Operator, condition: Expression) -> None:
    assert pushed(op.Filter(plan, condition)) is None


def test_filters_go_through_several_operators_at_once() -> None:
    plan = op.Filter(op.Distinct(project(op.Join(LEFT, bgp("?b r ?d", MARKET)), "a", "d")), equal("d", "1"))
    rewrite = push_filter(plan, Knowledge(prefixes=PREFIXES))
    assert rewrite is not None
    assert rewrite.notes == ("?d = 1 below Distinct, Project, Join",)
