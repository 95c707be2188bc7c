"""Joins, OPTIONAL, MINUS, UNION, VALUES, EXISTS and filters over terms: what null does, and what pyoxigraph says."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.snapshot.rdf.judge import (
    Group,
    bgp,
    context_over,
    graphs,
    groups,
    iri,
    number,
    rows_over,
    same_rows,
    shown,
    strict,
    term,
)

from anabranch.algebra import expressions as ex
from anabranch.algebra import operators as op
from anabranch.algebra import triples as tr
from anabranch.errors import EvaluationError, Span
from anabranch.model.terms import Term, Triple
from anabranch.snapshot import compile_plan

V = ex.Variable


def table(names: str, *rows: str) -> tr.Values:
    """`table("xy", "a 1", "b -")`: a dash is null."""
    return tr.Values(tuple(names), tuple(tuple(_cell(word) for word in row.split()) for row in rows))


def _cell(word: str) -> Term | None:
    return None if word == "-" else term(word)


def joined(left: op.Operator, right: op.Operator) -> list[tuple[object, ...]]:
    return shown(rows_over("", op.Join(left, right, lenient=True)))


# --- what null does ---------------------------------------------------------------------------------------------------


def test_null_agrees_with_every_value_and_takes_it() -> None:
    assert joined(table("xy", "a -", "b 1"), table("yz", "1 c", "2 -")) == [
        *[("a", "1", "c"), ("a", "2", None), ("b", "1", "c")]
    ]


def test_null_on_the_right_agrees_too() -> None:
    assert joined(table("xy", "a 1", "b 2"), table("xy", "a -", "- 2")) == [("a", "1"), ("b", "2")]


def test_nulls_on_both_sides_stay_null() -> None:
    assert joined(table("xy", "a -"), table("xy", "a -", "- -")) == [("a", None), ("a", None)]


def test_a_join_without_shared_columns_is_every_pair() -> None:
    assert joined(table("x", "a", "b"), table("y", "1", "1")) == [("a", "1"), ("a", "1"), ("b", "1"), ("b", "1")]


def test_where_null_joins_nothing_a_strict_join_drops_the_row() -> None:
    left, right = table("xy", "a -", "b 1"), table("yz", "1 c", "- d")
    assert shown(rows_over("", op.Join(left, right))) == [("b", "1", "c")]
    assert shown(rows_over("", op.LeftJoin(left, right))) == [("a", None, None), ("b", "1", "c")]


def test_a_pattern_binds_what_the_left_side_left_open() -> None:
    left = table("xy", "a -", "- 2", "- -")
    found = shown(rows_over("a p 1; b p 2", op.Join(left, bgp("?x p ?y"), lenient=True)))
    assert found == [("a", "1"), ("a", "1"), ("b", "2"), ("b", "2")]


def test_an_open_variable_that_stands_twice_gets_one_value() -> None:
    found = shown(rows_over("a p a; a p b; c p c", op.Join(table("x", "-"), bgp("?x p ?x"), lenient=True)))
    assert found == [("a",), ("c",)]


def test_optional_rows_keep_the_order_of_the_left_side() -> None:
    plan = op.LeftJoin(table("x", *"cabac"), bgp("?x p ?y"), lenient=True)
    rows = [
        tuple(map(str, (one.value.removeprefix("http://ex/"), y and y.lexical)))
        for one, y in rows_over("a p 1; a p 2; c p 3", plan)
    ]
    assert rows == [*[("c", "3"), ("a", "1"), ("a", "2"), ("b", "None"), ("a", "1"), ("a", "2"), ("c", "3")]]


def test_the_condition_of_an_optional_sees_both_sides() -> None:
    less = ex.Call("sparql:less", (V("y"), V("z")))
    plan = op.LeftJoin(bgp("?x p ?y"), bgp("?x q ?z"), less, lenient=True)
    assert shown(rows_over("a p 1; a q 2; a q 0; b p 5; b q 2", plan)) == [("a", "1", "2"), ("b", "5", None)]


def test_minus_needs_a_shared_column_with_a_value_on_both_sides() -> None:
    left = table("xy", "a 1", "b -", "- -")
    assert shown(rows_over("", tr.Minus(left, table("z", "a")))) == shown(left.rows)
    assert shown(rows_over("", tr.Minus(left, table("y", "1", "-")))) == [("b", None), (None, None)]
    assert shown(rows_over("", tr.Minus(left, table("xy", "- 1", "b 2")))) == [(None, None)]


def test_a_filter_in_the_middle_sees_only_what_its_group_binds() -> None:
    unbound = ex.IsNull(V("y"))
    inner = op.Filter(op.LeftJoin(bgp("?x p ?z"), bgp("?x q ?y"), lenient=True), unbound)
    plan = op.Join(inner, table("y", "7"), lenient=True)
    assert shown(rows_over("a p 1; b p 1; b q 2", plan)) == [("a", "1", "7")]


def test_exists_uses_the_values_of_its_row() -> None:
    knows = ex.Exists(op.Join(op.Argument(("x", "y")), bgp("?y q ?own"), lenient=True))
    assert shown(rows_over("a p b; a p c; c q d", op.Filter(bgp("?x p ?y"), knows))) == [("a", "c")]


def test_a_part_of_an_exists_that_ignores_the_row_is_found_once() -> None:
    rest = op.Union(bgp("?y q ?own"), bgp("?y r ?own"))
    knows = ex.Exists(op.Join(op.Argument(("x", "y")), rest, lenient=True))
    many = ";".join(f"a{at} p b{at % 3}" for at in range(300)) + ";" + ";".join(f"b{at} q c" for at in range(2, 300))
    context = context_over(many)
    assert len(compile_plan(op.Filter(bgp("?x p ?y"), knows)).run(context)) == 100
    assert context.steps < 2_000


def test_a_join_that_explodes_is_given_up_with_a_word_about_it() -> None:
    many = ";".join(f"a{at} p b{at}" for at in range(300))
    with pytest.raises(EvaluationError) as caught:
        rows_over(many, op.Join(bgp("?x p ?y"), bgp("?z p ?w")), max_steps=10_000)
    assert caught.value.diagnostic.code == "SER-306"


def test_where_a_pattern_explodes_the_error_says_where_it_stands() -> None:
    many = ";".join(f"a{at} p b{at}" for at in range(300))
    with pytest.raises(EvaluationError) as caught:
        rows_over(many, replace(bgp("?x p ?y; ?z p ?w"), span=Span(7, 20)), max_steps=10_000)
    assert caught.value.diagnostic.span == Span(7, 20)


def test_a_pattern_that_finds_nothing_spares_the_other_parts() -> None:
    many = ";".join(f"a{at} p b{at}" for at in range(300))
    subquery, nothing = op.Distinct(bgp("?x p ?y")), bgp("?x nowhere ?z")
    for plan in (
        op.Join(subquery, nothing),
        op.LeftJoin(nothing, subquery, lenient=True),
        tr.Minus(nothing, subquery),
    ):
        context = context_over(many)
        assert compile_plan(plan).run(context) == []
        assert context.steps == 0


def test_a_condition_that_is_no_truth_value_is_refused_with_its_place() -> None:
    with pytest.raises(EvaluationError) as caught:
        rows_over("a p b", op.Filter(bgp("?x p ?y"), V("x", span=Span(3, 5))))
    assert caught.value.diagnostic.span == Span(3, 5)


def test_the_rarer_pattern_is_matched_first_whichever_side_it_is_on() -> None:
    many = ";".join(f"a{at} p b{at}" for at in range(1_000)) + ";a5 q c"
    for plan in (op.Join(bgp("?x p ?y"), bgp("?x q ?z")), op.Join(bgp("?x q ?z"), bgp("?x p ?y"))):
        context = context_over(many)
        assert len(compile_plan(plan).run(context)) == 1
        assert context.steps < 10


def test_few_values_are_looked_up_in_the_graph_rather_than_the_graph_in_the_values() -> None:
    many = ";".join(f"a{at} p b{at}" for at in range(1_000))
    context = context_over(many)
    plan = op.Join(bgp("?x p ?y"), tr.Values(("x",), ((iri("a7"),), (iri("zz"),))), lenient=True)
    assert shown(compile_plan(plan).run(context)) == [("a7", "b7")]
    assert context.steps < 10


# --- against pyoxigraph -----------------------------------------------------------------------------------------------

_IS_A = ex.Call("sparql:equal", (V("x"), ex.Constant(iri("a"))))
_CONDITIONS = st.sampled_from(
    [
        ("bound(?x)", ex.Not(ex.IsNull(V("x")))),
        ("!bound(?w)", ex.IsNull(V("w"))),
        ("!sameTerm(?x, ?y)", ex.Not(ex.Call("sparql:sameterm", (V("x"), V("y"))))),
        ("?y = 1", ex.Call("sparql:equal", (V("y"), ex.Constant(number(1))))),
        ("?x = :a || bound(?z)", ex.Or((_IS_A, ex.Not(ex.IsNull(V("z")))))),
        ("isBlank(?z)", ex.Call("sparql:isblank", (V("z"),))),
    ]
)


@settings(max_examples=500, deadline=None)
@given(graphs(), groups(_CONDITIONS))
def test_a_group_has_the_rows_that_pyoxigraph_finds(graph: list[Triple], group: Group) -> None:
    same_rows(graph, group)


@settings(max_examples=200, deadline=None)
@given(graphs(), groups(_CONDITIONS))
def test_strict_joins_say_the_same_where_nothing_is_null(graph: list[Triple], group: Group) -> None:
    same_rows(graph, group, strict)
