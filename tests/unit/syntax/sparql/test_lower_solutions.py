"""SELECT, groups, order, slices, and the other forms of answers."""

from __future__ import annotations

import pytest
from tests.unit.syntax.sparql.texts import HERE, PREFIXES, basic, iri, number, plan, registered

from anabranch.algebra.expressions import AggregateCall, Call, Constant, Variable
from anabranch.algebra.operators import (
    Aggregate,
    Annotate,
    Distinct,
    Extend,
    Filter,
    Join,
    Order,
    OrderKey,
    Project,
    Slice,
)
from anabranch.algebra.triples import Ask, Construct, Describe, TriplePattern, Values, Var
from anabranch.model.terms import Literal
from anabranch.syntax import sparql
from anabranch.syntax.common import PlainQuery

COUNT_ALL = AggregateCall("sparql:count", ())


def test_the_columns_are_those_of_select_in_its_order() -> None:
    assert plan("SELECT ?y ?x { ?x :p ?y }").columns == ("y", "x")


def test_a_star_lists_variables_as_the_text_first_names_them() -> None:
    found = plan("SELECT * { ?z :p [] FILTER(?a < 1) { SELECT ?b ?a { ?a :q ?b ; :r ?hidden } } VALUES ?c { 1 } }")
    assert found.columns == ("z", "a", "b", "c")


def test_a_projected_variable_that_nothing_binds_is_a_column_of_nulls() -> None:
    assert plan("SELECT ?x ?n { ?x :p 1 }").items[1] == ("n", Constant(None))  # type: ignore[attr-defined]


def test_select_expressions_see_those_before_them() -> None:
    found = plan("SELECT (?y + 1 AS ?a) (?a + 1 AS ?b) { ?x :p ?y }").input  # type: ignore[attr-defined]
    one = Constant(number(1))
    inner = Extend(basic("?x p ?y"), "a", Call("sparql:add", (Variable("y"), one)))
    assert found == Extend(inner, "b", Call("sparql:add", (Variable("a"), one)))


def test_order_comes_before_the_projection_and_the_slice_last() -> None:
    found = plan("SELECT DISTINCT ?x { ?x :p ?y } ORDER BY DESC(?y) LIMIT 2 OFFSET 1")
    order = Order(basic("?x p ?y"), (OrderKey(Variable("y"), descending=True, of_terms=True),))
    rows = Distinct(Project(order, (("x", Variable("x")),)))
    assert found == Slice(rows, Constant(1), Constant(2))


def test_groups_compute_each_aggregate_once() -> None:
    found = plan("SELECT ?x (COUNT(*) AS ?n) { ?x :p ?y } GROUP BY ?x HAVING (COUNT(*) > 1) ORDER BY COUNT(*)")
    name = " aggregate1"
    groups = Aggregate(basic("?x p ?y"), (("x", Variable("x")),), ((name, COUNT_ALL),))
    kept = Filter(groups, Call("sparql:less", (Constant(number(1)), Variable(name))))
    rows = Order(Extend(kept, "n", Variable(name)), (OrderKey(Variable(name), of_terms=True),))
    assert found == Project(rows, (("x", Variable("x")), ("n", Variable("n"))))


def test_an_aggregate_without_group_by_makes_one_group() -> None:
    found = plan("SELECT (SUM(DISTINCT ?y) AS ?s) { ?x :p ?y }").input.input  # type: ignore[attr-defined]
    call = AggregateCall("sparql:sum", (Variable("y"),), distinct=True)
    assert found == Aggregate(basic("?x p ?y"), (), ((" aggregate1", call),))


def test_count_distinct_of_all_counts_rows_by_their_visible_columns() -> None:
    found = plan("SELECT (COUNT(DISTINCT *) AS ?n) { ?x :p [] }").input.input  # type: ignore[attr-defined]
    assert found.aggregates[0][1] == AggregateCall("sparql:count", (Variable("x"),), distinct=True)


def test_group_concat_carries_its_separator() -> None:
    found = plan("SELECT (GROUP_CONCAT(?y; SEPARATOR='|') AS ?s) { ?x :p ?y }").input.input  # type: ignore[attr-defined]
    assert found.aggregates[0][1].arguments == (Variable("y"), Constant(Literal("|")))


def test_a_group_by_expression_with_a_name_is_a_key_that_select_can_show() -> None:
    found = plan("SELECT ?k { ?x :p ?y } GROUP BY (STR(?y) AS ?k)")
    assert found == Aggregate(basic("?x p ?y"), (("k", Call("sparql:str", (Variable("y"),))),), ())


def test_having_may_use_the_name_of_a_select_expression() -> None:
    found = plan("SELECT ?x (COUNT(?y) AS ?n) { ?x :p ?y } GROUP BY ?x HAVING (?n > 1)")
    condition = found.input.input.condition  # type: ignore[attr-defined]
    assert condition == Call("sparql:less", (Constant(number(1)), Variable(" aggregate1")))


def test_order_by_a_variable_that_is_not_grouped_takes_a_sample_of_it() -> None:
    found = plan("SELECT ?x { ?x :p ?y } GROUP BY ?x ORDER BY ?y")
    order = found.input  # type: ignore[attr-defined]
    assert order.keys[0].expression == Variable(" aggregate1")
    assert order.input.aggregates == ((" aggregate1", AggregateCall("sparql:sample", (Variable("y"),))),)


def test_trailing_values_join_after_the_groups() -> None:
    found = plan("SELECT ?x (COUNT(*) AS ?n) { ?x :p ?y } GROUP BY ?x VALUES ?x { :a }")
    join = found.input.input  # type: ignore[attr-defined]
    assert isinstance(join, Join)
    assert isinstance(join.left, Aggregate)
    assert join.right == Values(("x",), ((iri("a"),),))


# --- forms ---


def test_construct_leaves_out_triples_that_can_never_be_made() -> None:
    found = plan("CONSTRUCT { ?x :q ?y . ?x :r ?nobody } WHERE { ?x :p ?y }")
    assert found == Construct(basic("?x p ?y"), (TriplePattern(Var("x"), iri("q"), Var("y")),))


def test_construct_with_new_blank_nodes_names_them_by_the_solution_alone() -> None:
    found = plan("CONSTRUCT { [] :q ?y } WHERE { _:b :p ?y }")
    assert isinstance(found, Construct)
    assert found.input == Project(basic("_:b p ?y"), (("y", Variable("y")),))


def test_construct_where_is_its_own_template() -> None:
    found = plan("CONSTRUCT WHERE { ?x :p ?y }")
    assert found == Construct(basic("?x p ?y"), (TriplePattern(Var("x"), iri("p"), Var("y")),))


def test_construct_over_groups_keeps_those_that_having_wants() -> None:
    found = registered(
        "REGISTER QUERY q AS CONSTRUCT { ?x a :Hot } WHERE { ?x :p ?y } GROUP BY ?x HAVING (AVG(?y) > 4)"
    )
    assert isinstance(found.plan.input, Filter)  # type: ignore[attr-defined]
    assert isinstance(found.plan.input.input, Aggregate)  # type: ignore[attr-defined]
    assert found.form == "graph"


def test_ask_is_whether_there_is_a_row() -> None:
    assert sparql.plan(PREFIXES + "ASK { ?x :p ?y }") == PlainQuery(
        Ask(basic("?x p ?y")), "boolean", (("", "http://e/"), ("xsd", "http://www.w3.org/2001/XMLSchema#"))
    )


def test_describe_names_constants_and_variables() -> None:
    found = plan("DESCRIBE :a ?x ?nobody WHERE { ?x :p ?y }")
    assert found == Describe(basic("?x p ?y"), HERE, (Constant(iri("a")), Variable("x")))


def test_describe_star_takes_every_variable() -> None:
    found = plan("DESCRIBE * WHERE { ?x :p ?y }")
    assert found == Describe(basic("?x p ?y"), HERE, (Variable("x"), Variable("y")))


# --- annotations ---


def test_aggregate_clauses_annotate_the_rows_and_then_filter_them() -> None:
    counting, summing = "AGGREGATE { (?n, COUNT, {?x}) FILTER(?s > 1) }", "AGGREGATE { (?s, SUM(?y), ?x) }"
    found = registered(f"SELECT ?x ?n ?s WHERE {{ ?x :p ?y }} {counting} {summing}").plan
    counted = Annotate(basic("?x p ?y"), ("x",), (("n", COUNT_ALL),))
    summed = Annotate(counted, ("x",), (("s", AggregateCall("sparql:sum", (Variable("y"),))),))
    assert found.input == Filter(summed, Call("sparql:less", (Constant(number(1)), Variable("s"))))  # type: ignore[attr-defined]


def test_the_name_of_an_annotation_may_differ_in_case_in_select() -> None:
    found = registered("SELECT ?Tot WHERE { ?x :p ?y } AGGREGATE { (?tot, SUM(?y), {?x}) }").plan
    assert found.columns == ("Tot",)
    assert found.input.expression == Variable("tot")  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["average", "avg"])
def test_lupos_functions_annotate_every_row_over_all_rows(name: str) -> None:
    text = f"PREFIX lupos: <http://www.luposdate.org/> SELECT ?x lupos:{name}(?y) AS ?a WHERE {{ ?x :p ?y }}"
    found = registered(text, "lupos").plan
    assert found.input.keys == ()  # type: ignore[attr-defined]
    assert found.input.aggregates == (("a", AggregateCall("sparql:avg", (Variable("y"),))),)  # type: ignore[attr-defined]
    assert found.columns == ("x", "a")
