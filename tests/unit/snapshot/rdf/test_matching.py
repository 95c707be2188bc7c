"""Basic graph patterns: which triples match, what the rows hold, and when each triple came."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from tests.unit.snapshot.rdf.judge import (
    DATA,
    Group,
    basic_patterns,
    bgp,
    context_over,
    graphs,
    iri,
    rows_over,
    same_rows,
    shown,
    triples,
)

from anabranch.algebra import expressions as ex
from anabranch.algebra import operators as op
from anabranch.algebra import triples as tr
from anabranch.model.graph import EMPTY_GRAPH
from anabranch.model.terms import Literal, Triple
from anabranch.model.triples import TripleGraph
from anabranch.snapshot import Context, compile_plan, evaluate_plan

LEFT, RIGHT = op.Window(op.Stream("left")), op.Window(op.Stream("right"))
BOTH = op.MergedSource((LEFT, RIGHT, DATA))


def windows(left: dict[str, int], right: dict[str, int], static: str = "") -> Context:
    """Two windows whose triples have times, and static knowledge."""
    held = {
        LEFT: _timed(left),
        RIGHT: _timed(right),
        DATA: TripleGraph(triples(static)),
    }
    return Context(graph=lambda source: EMPTY_GRAPH, triple_graph=lambda source: held[source])


def _timed(given_: dict[str, int]) -> TripleGraph:
    return TripleGraph([one for text in given_ for one in triples(text)], list(given_.values()))


def test_a_pattern_without_triples_is_one_row() -> None:
    assert rows_over("a p b", tr.GraphPattern(DATA, ())) == [()]


def test_a_pattern_without_variables_asks_whether_the_triple_is_there() -> None:
    assert rows_over("a p b", bgp("a p b")) == [()]
    assert rows_over("a p b", bgp("b p a")) == []


def test_the_columns_stand_in_the_order_of_the_text() -> None:
    plan = bgp("?a p ?b; ?c q ?a")
    assert plan.columns == ("a", "b", "c")
    assert shown(rows_over("x p y; z q x", plan)) == [("x", "y", "z")]


def test_a_variable_that_stands_twice_is_one_term() -> None:
    assert shown(rows_over("a p a; a p b; p p p", bgp("?x p ?x"))) == [("a",), ("p",)]
    assert shown(rows_over("a p a; a p b; p p p", bgp("?x ?x ?x"))) == [("p",)]


def test_literals_match_by_term_and_not_by_value() -> None:
    one, other = (
        Literal("1", "http://www.w3.org/2001/XMLSchema#integer"),
        Literal("01", "http://www.w3.org/2001/XMLSchema#integer"),
    )
    graph = [Triple(iri("a"), iri("p"), one), Triple(iri("b"), iri("p"), other)]
    assert shown(rows_over(graph, tr.GraphPattern(DATA, (tr.TriplePattern(tr.Var("x"), iri("p"), one),)))) == [("a",)]


def test_a_literal_is_the_subject_of_nothing() -> None:
    assert rows_over(["a p 1", " 1 q b"][0], bgp("?x p ?y; ?y q ?z")) == []


def test_two_parts_of_one_default_graph_give_a_shared_triple_once() -> None:
    context = windows({"a p b": 10, "b p c": 20}, {"a p b": 30}, "a p b; c p d")
    assert shown(evaluate_plan(bgp("?x p ?y", BOTH), context)[1]) == [("a", "b"), ("b", "c"), ("c", "d")]


def test_the_time_of_a_triple_is_its_latest_in_any_window_or_in_the_one_named() -> None:
    timed = tr.TriplePattern(tr.Var("x"), iri("p"), tr.Var("y"), ((" any", None), (" left", LEFT), (" right", RIGHT)))
    plan = tr.GraphPattern(BOTH, (timed,))
    assert plan.columns == ("x", "y", " any", " left", " right")
    context = windows({"a p b": 10, "b p c": 20}, {"a p b": 30}, "c p d")
    assert shown(evaluate_plan(plan, context)[1]) == [
        ("a", "b", 30, 10, 30),
        ("b", "c", 20, 20, None),
        ("c", "d", None, None, None),
    ]


def test_a_condition_over_times_is_tested_when_they_are_known() -> None:
    one = tr.TriplePattern(tr.Var("x"), iri("p"), tr.Var("y"), ((" first", None),))
    two = tr.TriplePattern(tr.Var("y"), iri("p"), tr.Var("z"), ((" second", None),))
    later = ex.Compare("<", ex.Variable(" first"), ex.Variable(" second"))
    plan = op.Filter(tr.GraphPattern(LEFT, (one, two)), later)
    context = windows({"a p b": 10, "b p c": 20, "c p a": 15}, {})
    assert shown(evaluate_plan(plan, context)[1]) == [("a", "b", "c", 10, 20)]


def test_the_time_of_a_triple_put_together_from_a_row() -> None:
    time = ex.TripleTime(BOTH, ex.Variable("x"), ex.Constant(iri("p")), ex.Variable("y"))
    context = windows({"a p b": 10}, {"a p b": 30, "a q c": 40}, "d p e")
    plan = op.Project(bgp("?x ?v ?y", BOTH), (("x", ex.Variable("x")), ("time", time)))
    assert shown(evaluate_plan(plan, context)[1]) == [("a", 30), ("a", None), ("d", None)]


def test_a_selective_filter_is_tested_before_the_rest_is_matched() -> None:
    many = ";".join(f"a{at} p {at}; a{at} q b" for at in range(200)) + ";" + ";".join(f"b r c{at}" for at in range(100))
    small = ex.Call(
        "sparql:less", (ex.Variable("y"), ex.Constant(Literal("3", "http://www.w3.org/2001/XMLSchema#integer")))
    )
    context = context_over(many)
    assert len(compile_plan(op.Filter(bgp("?x p ?y; ?x q ?z; ?z r ?w"), small)).run(context)) == 300
    assert context.steps < 1_000


def test_a_compiled_plan_answers_for_each_graph_anew() -> None:
    compiled = compile_plan(bgp("?x p ?y; ?y q ?z"))
    few_p = "a p b; " + ";".join(f"b q c{at}" for at in range(5))
    few_q = "b q c; " + ";".join(f"a{at} p b" for at in range(5))
    for graph in (few_p, few_q, few_p):
        assert Counter(compiled.run(context_over(graph))) == Counter(rows_over(graph, compiled.plan))
        assert len(compiled.run(context_over(graph))) == 5


@settings(max_examples=300, deadline=None)
@given(graphs(), basic_patterns(4))
def test_a_basic_graph_pattern_has_the_rows_that_pyoxigraph_finds(graph: list[Triple], group: Group) -> None:
    same_rows(graph, group)
