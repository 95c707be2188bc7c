"""Columns that nobody reads are dropped early."""

from __future__ import annotations

from anabranch.algebra import operators as op
from anabranch.algebra import triples as tr
from anabranch.algebra.expressions import Call, Constant
from anabranch.optimizer import Knowledge
from anabranch.optimizer.push_projection import push_projection

from .plans import BOTH, KNOWN, MARKET, OTHER, PREFIXES, bgp, call, equal, project, term, var


def narrowed(plan: op.Operator) -> op.Operator | None:
    rewrite = push_projection(plan, Knowledge(prefixes=PREFIXES))
    return None if rewrite is None else rewrite.plan


def test_an_aggregate_gets_only_what_it_reads() -> None:
    plan = op.Annotate(bgp("?a p ?b; ?b q ?c"), ("a",), (("n", call("sum", "c")),))
    assert narrowed(project(plan, "a", "n")) == project(
        op.Annotate(project(bgp("?a p ?b; ?b q ?c"), "a", "c"), ("a",), plan.aggregates), "a", "n"
    )


def test_a_static_side_of_a_join_loses_what_only_its_filter_read() -> None:
    static = op.Filter(bgp("?a p ?c", KNOWN), equal("c", "x"))
    plan = project(op.Join(static, bgp("?a q ?b")), "a", "b")
    assert narrowed(plan) == project(op.Join(project(static, "a"), bgp("?a q ?b")), "a", "b")


def test_streaming_patterns_that_are_joined_stay_whole() -> None:
    assert narrowed(project(op.Join(bgp("?a p ?c"), bgp("?a q ?b", OTHER)), "a", "b")) is None
    assert narrowed(project(op.Join(bgp("?a p ?c", BOTH), bgp("?a q ?b")), "a", "b")) is None


def test_both_sides_of_a_union_end_with_the_same_columns() -> None:
    found = narrowed(project(op.Union(bgp("?a p ?b; ?b q ?c"), bgp("?a q ?c; ?b p ?c")), "a", "c"))
    assert found == project(
        op.Union(project(bgp("?a p ?b; ?b q ?c"), "a", "c"), project(bgp("?a q ?c; ?b p ?c"), "a", "c")), "a", "c"
    )


def test_what_nobody_reads_is_not_computed() -> None:
    extended = op.Extend(bgp("?a p ?b"), "e", Constant(term("1")))
    assert narrowed(project(extended, "a")) == project(bgp("?a p ?b"), "a")
    annotated = op.Annotate(bgp("?a p ?b"), ("a",), (("n", call("count")),))
    assert narrowed(project(annotated, "a")) == project(bgp("?a p ?b"), "a")


def test_a_column_of_chance_is_still_computed() -> None:
    assert narrowed(project(op.Extend(bgp("?a p ?b"), "e", Call("sparql:rand", ())), "a")) is None


def test_below_distinct_every_column_counts() -> None:
    assert narrowed(project(op.Distinct(bgp("?a p ?b")), "a")) is None


def test_minus_keeps_what_both_sides_share() -> None:
    plan = project(tr.Minus(bgp("?a p ?b"), bgp("?b q ?c")), "a")
    assert narrowed(plan) == project(tr.Minus(bgp("?a p ?b"), project(bgp("?b q ?c"), "b")), "a")


def test_blank_nodes_of_a_template_are_named_by_the_whole_row() -> None:
    below = project(bgp("?a p ?b"), "a", "b")
    template = bgp("?a q ?a").patterns[0]
    assert narrowed(tr.Construct(below, (template,))) == tr.Construct(project(bgp("?a p ?b"), "a"), (template,))
    fresh = tr.TriplePattern(tr.Var(" _:new"), template.predicate, tr.Var("a"))
    assert narrowed(tr.Construct(below, (fresh,))) is None


def test_rows_of_which_nothing_is_read_are_still_rows() -> None:
    counted = op.Aggregate(op.Union(bgp("?a p ?b"), bgp("?a q ?b", MARKET)), (), (("n", call("count")),))
    assert narrowed(counted) is None
    assert narrowed(tr.Ask(project(bgp("?a p ?b"), "a", "b"))) == tr.Ask(project(bgp("?a p ?b"), "a"))


def test_the_note_names_what_is_dropped_and_where() -> None:
    plan = project(op.Annotate(bgp("?a p ?b; ?b q ?c"), ("a",), (("n", call("sum", "c")),)), "a", "n")
    rewrite = push_projection(plan, Knowledge())
    assert rewrite is not None
    assert rewrite.notes == ("drops ?b before Annotate",)
    assert var("b") not in [expression for _, expression in rewrite.plan.items]  # type: ignore[attr-defined]


def test_what_comes_first_in_no_order_is_a_matter_of_all_columns() -> None:
    rows = op.Extend(bgp("?a p ?b"), "c", var("b"))
    assert narrowed(project(op.Slice(rows, None, Constant(3)), "a")) is None
    assert narrowed(project(op.Order(rows, (op.OrderKey(var("a")),)), "a")) is None
    ordered = op.Order(bgp("?a p ?b"), (op.OrderKey(var("a")),))
    cut = narrowed(project(op.Slice(op.Extend(ordered, "c", var("b")), None, Constant(3)), "a"))
    assert cut == project(op.Slice(ordered, None, Constant(3)), "a")


def test_aggregates_that_are_sorted_together_stay_together() -> None:
    both = (("one", call("group_concat", "b")), ("two", call("group_concat", "a")), ("three", call("count", "a")))
    plan = op.Aggregate(bgp("?a p ?b"), (), both)
    assert narrowed(project(plan, "two")) == project(op.Aggregate(bgp("?a p ?b"), (), both[:2]), "two")
    assert narrowed(project(plan, "three")) == project(
        op.Aggregate(project(bgp("?a p ?b"), "a"), (), both[2:]), "three"
    )
