"""Parts that static knowledge answers are evaluated once."""

from __future__ import annotations

from anabranch.algebra import operators as op
from anabranch.algebra import triples as tr
from anabranch.algebra.expressions import Call, Exists, Not
from anabranch.model.terms import Iri
from anabranch.optimizer import Knowledge
from anabranch.optimizer.evaluate_static_parts import evaluate_static_parts

from .plans import BOTH, EX, KNOWN, MARKET, bgp, equal, knowing, project, rows, triples, var

KNOWING_P = knowing({"known": triples("x p y; y r y")})


def changed(plan: op.Operator, knowledge: Knowledge = KNOWING_P) -> op.Operator | None:
    rewrite = evaluate_static_parts(plan, knowledge)
    return None if rewrite is None else rewrite.plan


def test_a_pattern_over_static_graphs_is_a_part_with_its_filter_and_projection() -> None:
    static = project(op.Filter(bgp("?a p ?c", KNOWN), equal("c", "x")), "a")
    stream = bgp("?a q ?b")
    assert changed(op.Join(static, stream)) == op.Join(tr.StaticPart(static), stream)


def test_a_pattern_over_the_default_graph_is_a_part_while_no_window_has_its_predicate() -> None:
    whole = op.Filter(bgp("?a p ?c", BOTH), equal("c", "x"))
    rewrite = evaluate_static_parts(op.Join(whole, bgp("?a q ?b")), KNOWING_P)
    assert rewrite is not None
    static = op.Filter(bgp("?a p ?c", KNOWN), equal("c", "x"))
    assert rewrite.plan == op.Join(tr.StaticPart(static, whole, (Iri(EX + "p"),), (MARKET,)), bgp("?a q ?b"))
    assert rewrite.notes == ("once over known, unless a window holds :p",)


def test_a_triple_that_comes_on_a_stream_counts_all_the_same() -> None:
    plan = op.Join(bgp("?a p ?c", BOTH), bgp("?a q ?b"))
    part = changed(plan)
    assert part is not None
    for market in ("x q 1", "x q 1; x p 2", "z q 1; z p 2"):
        data = {"known": triples("x p y"), "market": triples(market)}
        assert rows(part, data) == rows(plan, data)


def test_connected_static_parts_are_one_part() -> None:
    static = op.Join(bgp("?a p ?b", KNOWN), op.Union(bgp("?b r ?c", KNOWN), bgp("?c r ?b", KNOWN)))
    assert changed(op.LeftJoin(static, bgp("?a q ?d"))) == op.LeftJoin(tr.StaticPart(static), bgp("?a q ?d"))


def test_a_query_over_static_graphs_alone_is_one_part() -> None:
    plan = op.Distinct(project(bgp("?a p ?b", KNOWN), "a"))
    assert changed(plan) == tr.StaticPart(plan)


def test_what_reads_a_window_the_clock_or_chance_is_no_static_part() -> None:
    pattern = bgp("?a p ?b", KNOWN)
    streaming = Not(Exists(op.Join(op.Argument(("a",)), bgp("?a q ?c"))))
    assert changed(op.Filter(pattern, streaming)) == op.Filter(tr.StaticPart(pattern), streaming)
    chance = Call("sparql:less", (Call("sparql:rand", ()), var("a")))
    assert changed(op.Filter(pattern, chance)) == op.Filter(tr.StaticPart(pattern), chance)
    static = Not(Exists(op.Join(op.Argument(("a",)), bgp("?a q ?c", KNOWN))))
    assert changed(op.Filter(pattern, static)) == tr.StaticPart(op.Filter(pattern, static))


def test_what_is_not_known_to_be_static_is_left_alone() -> None:
    assert changed(bgp("?a q ?b", BOTH)) is None
    assert changed(bgp("?a p ?b", BOTH), Knowledge()) is None
    assert changed(bgp("?a p ?b; ?b ?d ?c", BOTH)) is None
    pattern = bgp("?a p ?b", BOTH).patterns[0]
    timed = tr.TriplePattern(pattern.subject, pattern.predicate, pattern.object, ((" time1", None),))
    assert changed(tr.GraphPattern(BOTH, (timed,))) is None


def test_rows_of_the_query_itself_are_not_worth_a_part() -> None:
    values = tr.Values(("a",), ((Iri(EX + "x"),),))
    assert changed(op.Join(values, bgp("?a q ?b"))) is None


def test_a_part_hangs_together() -> None:
    left, right = bgp("?a p ?b", KNOWN), bgp("?c r ?d", KNOWN)
    stream = bgp("?a q ?c")
    parts = [tr.StaticPart(one) for one in (left, right)]
    expected = op.Join(op.Join(parts[0], stream), parts[1])
    for plan in (
        op.Join(op.Join(left, right), stream),
        op.Join(bgp("?a p ?b; ?c r ?d", KNOWN), stream),
    ):
        assert changed(plan) == expected
        data = {"known": triples("x p y; y r y; y r x"), "market": triples("x q y; y q x")}
        assert rows(expected, data) == rows(plan, data)


def test_a_condition_of_a_filter_holds_a_part_together() -> None:
    plan = op.Filter(op.Join(bgp("?a p ?b", KNOWN), bgp("?c r ?d", KNOWN)), equal("b", "?d"))
    assert changed(plan) == tr.StaticPart(plan)


def test_a_part_is_no_larger_than_its_triples_are_worth() -> None:
    crowd = knowing({"known": triples("; ".join(f"n{at} p t" for at in range(200)))})
    three = bgp("?a p ?t; ?b p ?t; ?c p ?t", KNOWN)
    assert changed(op.Join(three, bgp("?a q ?x")), crowd) is None
    assert changed(op.Join(three, bgp("?a q ?x"))) == op.Join(tr.StaticPart(three), bgp("?a q ?x"))
