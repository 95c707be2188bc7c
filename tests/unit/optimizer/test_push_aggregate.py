"""Aggregates over several streams: totally, partially and not distributable."""

from __future__ import annotations

import pytest

from anabranch.algebra import operators as op
from anabranch.algebra.expressions import AggregateCall, Constant
from anabranch.optimizer import Knowledge
from anabranch.optimizer.push_aggregate import push_aggregate
from anabranch.optimizer.support.knowledge import Rewrite

from .plans import MARKET, OTHER, PREFIXES, bgp, call, rows, term, triples, var


def branch(source: op.Window, name: str) -> op.Operator:
    return op.Extend(bgp("?t seller ?s; ?t with ?a", source), "m", Constant(term(name)))


FIRST, SECOND = branch(MARKET, "zurich"), branch(OTHER, "milan")
UNION = op.Union(FIRST, SECOND)
SUM = (("n", call("sum", "a")),)


def pushed(plan: op.Operator) -> Rewrite | None:
    return push_aggregate(plan, Knowledge(prefixes=PREFIXES))


def grouped(calls: tuple[tuple[str, AggregateCall], ...], *keys: str) -> op.Aggregate:
    return op.Aggregate(UNION, tuple((name, var(name)) for name in keys), calls)


def test_the_paper_s_second_query_sums_in_each_market() -> None:
    rewrite = pushed(op.Annotate(UNION, ("s", "m"), SUM))
    assert rewrite is not None
    assert rewrite.plan == op.Union(op.Annotate(FIRST, ("s", "m"), SUM), op.Annotate(SECOND, ("s", "m"), SUM))
    assert rewrite.notes == ("?n = sum(?a): totally distributable, ?m tells the 2 branches apart",)


def test_every_function_is_totally_distributable_where_branches_are_told_apart() -> None:
    for function, distinct in (("avg", False), ("count", True), ("sample", False)):
        rewrite = pushed(grouped((("n", call(function, "a", distinct)),), "m"))
        assert rewrite is not None
        assert isinstance(rewrite.plan, op.Union)


def test_several_annotations_are_all_moved() -> None:
    rewrite = pushed(op.Annotate(op.Annotate(UNION, ("m",), SUM), ("m",), (("k", call("count")),)))
    assert rewrite is not None
    assert isinstance(rewrite.plan, op.Union)
    assert len(rewrite.notes) == 2


def test_counts_are_summed_and_extremes_compared_where_sellers_are_in_all_markets() -> None:
    plan = grouped((("n", call("count", "a")), ("low", call("min", "a")), ("high", call("max", "a"))), "s")
    rewrite = pushed(plan)
    assert rewrite is not None
    assert isinstance(rewrite.plan, op.Aggregate)
    assert [one.function for _, one in rewrite.plan.aggregates] == ["sparql:sum", "sparql:min", "sparql:max"]
    assert "partially distributable, computed in 2 branches and combined" in rewrite.notes[0]
    data = {
        "market": triples("t seller x; t with 3; u seller x; u with 5; v seller y; v with 7"),
        "other": triples("t seller x; t with 1; w seller z; w with 2"),
    }
    assert rows(rewrite.plan, data) == rows(plan, data)


def test_a_count_without_groups_is_summed_even_where_a_market_is_silent() -> None:
    plan = grouped((("n", call("count")),))
    rewrite = pushed(plan)
    assert rewrite is not None
    data = {"market": triples("t seller x; t with 3")}
    assert rows(rewrite.plan, data) == rows(plan, data)
    assert sum(rows(plan, data).values()) == 1


@pytest.mark.parametrize(
    "plan",
    [
        grouped(SUM, "s"),
        grouped((("n", call("avg", "a")),), "s"),
        grouped((("n", call("count", "a", distinct=True)),), "s"),
        grouped((("n", call("min", "a")),)),
        grouped((("n", call("count", "a")), ("k", call("sum", "a"))), "s"),
        op.Annotate(UNION, ("s",), (("n", call("count")),)),
        op.Annotate(op.Union(FIRST, branch(OTHER, "zurich")), ("m",), SUM),
    ],
    ids=["sum", "avg", "distinct", "extreme of nothing", "one is not", "annotation", "one name for two"],
)
def test_what_is_not_distributable_stays_and_is_called_so(plan: op.Operator) -> None:
    rewrite = pushed(plan)
    assert rewrite is not None
    assert rewrite.plan == plan
    assert "not distributable" in rewrite.notes[0]


def test_an_aggregate_over_one_stream_is_none_of_its_business() -> None:
    assert pushed(op.Annotate(FIRST, ("s",), SUM)) is None
    assert pushed(op.Annotate(bgp("?a p ?b"), ("a",), (("n", call("count")),))) is None
