"""The optimizer as a whole: the order of the rules, what it says, and what it leaves alone."""

from __future__ import annotations

from anabranch.algebra import operators as op
from anabranch.algebra import triples as tr
from anabranch.algebra.expressions import And, Call, Constant
from anabranch.model.terms import Literal
from anabranch.optimizer import DEEPEST, RULES, Knowledge, optimize
from anabranch.syntax.seraph import plan as seraph_plan

from .plans import BOTH, KNOWN, MARKET, bgp, call, knowing, project, term, triples, var

SWISS = Call("sparql:equal", (var("country"), Constant(Literal("CH"))))
LARGE = Call("sparql:less_or_equal", (Constant(term("10")), var("amount")))
BROKERS = op.Distinct(
    project(
        op.Annotate(
            op.Filter(bgp("?broker is_from ?country; ?broker does ?tx; ?tx with ?amount", BOTH), And((SWISS, LARGE))),
            ("broker",),
            (("total", call("sum", "amount")),),
        ),
        "broker",
        "total",
    )
)
KNOWING = knowing({"known": triples("b is_from x")})


def test_the_paper_s_broker_query_becomes_its_figure_6() -> None:
    plan = optimize(BROKERS, KNOWING, RULES[:-1]).plan
    whole = op.Filter(bgp("?broker is_from ?country", BOTH), SWISS)
    static = op.Filter(bgp("?broker is_from ?country", KNOWN), SWISS)
    predicate = bgp("?broker is_from ?country").patterns[0].predicate
    part = tr.StaticPart(project(static, "broker"), project(whole, "broker"), (predicate,), (MARKET,))  # type: ignore[arg-type]
    stream = op.Filter(bgp("?broker does ?tx; ?tx with ?amount"), LARGE)
    joined = project(op.Join(part, stream), "broker", "amount")
    total = op.Annotate(joined, ("broker",), (("total", call("sum", "amount")),))
    assert plan == op.Distinct(project(total, "broker", "total"))


def test_the_rules_that_fired_are_told_in_their_order() -> None:
    fired = [one.rule for one in optimize(BROKERS, KNOWING).fired]
    assert fired == [
        *("narrow_sources", "push_filter", "push_projection", "evaluate_static_parts", "summarise_windows"),
    ]


def test_a_rule_has_the_name_of_its_file() -> None:
    for rule in RULES:
        assert rule.__module__ == f"anabranch.optimizer.{rule.__name__}"  # type: ignore[attr-defined]


def test_no_rules_leave_the_plan_alone() -> None:
    optimized = optimize(BROKERS, KNOWING, ())
    assert optimized.plan is BROKERS
    assert not any(one.changed for one in optimized.fired)


def test_plans_over_property_graphs_are_left_alone() -> None:
    plan = seraph_plan("MATCH (a)-->(b) WITH a, b, 1 AS one WHERE a.x > 1 / a.y RETURN a")
    optimized = optimize(plan)
    assert optimized.plan is plan
    assert optimized.fired == ()


def test_the_columns_keep_their_order() -> None:
    plan = op.Join(bgp("?a p ?b; ?b q ?c", BOTH), bgp("?d p ?a", BOTH), lenient=True)
    assert optimize(plan, KNOWING).plan.columns == plan.columns


def test_no_rule_makes_a_plan_deeper_than_can_be_walked() -> None:
    plan: op.Operator = bgp("?a p ?b0; ?a q ?x0")
    for number in range(1, DEEPEST):
        plan = op.LeftJoin(plan, bgp(f"?a p ?b{number}; ?a q ?x{number}"), lenient=True)
    after = optimize(project(plan, "a"), Knowledge()).plan
    depth, level = 0, [after]
    while level:
        depth, level = depth + 1, [below for one in level for below in one.inputs]
    assert depth <= DEEPEST + 2
