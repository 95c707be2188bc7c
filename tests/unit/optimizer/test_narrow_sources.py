"""Each triple pattern is looked for only where it can be found."""

from __future__ import annotations

from anabranch.algebra import operators as op
from anabranch.algebra import triples as tr
from anabranch.model.terms import Iri
from anabranch.optimizer import Knowledge
from anabranch.optimizer.narrow_sources import narrow_sources

from .plans import BOTH, EX, KNOWN, MARKET, OTHER, bgp, knowing, triples

KNOWING_P = knowing({"known": triples("x p y")})


def narrowed(plan: op.Operator, knowledge: Knowledge = KNOWING_P) -> op.Operator | None:
    rewrite = narrow_sources(plan, knowledge)
    return None if rewrite is None else rewrite.plan


def test_a_pattern_loses_a_graph_that_does_not_hold_its_predicate() -> None:
    assert narrowed(bgp("?a q ?b; ?b r ?c", BOTH)) == bgp("?a q ?b; ?b r ?c", MARKET)


def test_a_pattern_falls_apart_by_what_its_parts_can_meet() -> None:
    rewrite = narrow_sources(bgp("?a p ?b; ?b q ?c; ?c r ?d", BOTH), KNOWING_P)
    assert rewrite is not None
    assert rewrite.plan == op.Join(bgp("?a p ?b", BOTH), bgp("?b q ?c; ?c r ?d", MARKET))
    assert rewrite.notes == (":p: set apart, static knowledge holds it", ":q, :r: not in graph known")


def test_parts_that_nothing_connects_are_joined_through_what_does() -> None:
    assert narrowed(bgp("?a q ?b; ?b p ?c; ?c r ?d", BOTH)) == op.Join(
        op.Join(bgp("?a q ?b", MARKET), bgp("?b p ?c", BOTH)), bgp("?c r ?d", MARKET)
    )


def test_windows_are_never_lost() -> None:
    three = op.MergedSource((KNOWN, MARKET, OTHER))
    assert narrowed(bgp("?a q ?b", three)) == bgp("?a q ?b", op.MergedSource((MARKET, OTHER)))


def test_a_graph_of_which_nothing_is_known_stays() -> None:
    assert narrowed(bgp("?a q ?b", BOTH), Knowledge()) is None
    assert narrowed(bgp("?a q ?b", BOTH), Knowledge({"known": None})) is None


def test_a_pattern_with_any_predicate_keeps_all_its_sources() -> None:
    assert narrowed(bgp("?a ?p ?b", BOTH)) is None


def test_a_path_loses_a_graph_unless_it_may_have_no_steps() -> None:
    step = tr.PathLink(Iri(EX + "q"))
    for least, source in ((1, MARKET), (0, None)):
        path = tr.Path(BOTH, tr.Var("a"), tr.Repeat(step, least), tr.Var("b"))
        expected = None if source is None else tr.Path(source, path.subject, path.path, path.object)
        assert narrowed(path) == expected


def test_static_patterns_that_have_too_many_matches_alone_stay_with_what_narrows_them() -> None:
    crowd = knowing({"known": triples("; ".join(f"n{at} p t" for at in range(200)))})
    whole = bgp("?a p ?t; ?a q ?x; ?b p ?t; ?b q ?y; ?c p ?t; ?c q ?z", BOTH)
    assert narrowed(whole, crowd) is None
    assert narrowed(whole, knowing({"known": triples("n1 p t; n2 p t")})) is not None
    beside = bgp("?a p ?t; ?a q ?x; ?b p ?t; ?b q ?y; ?c p ?t; ?c q ?z; ?e q ?f", BOTH)
    assert narrowed(beside, crowd) == op.Join(whole, bgp("?e q ?f"))


GROUPS = ("abx", "cdy")


def test_groups_that_nothing_connects_are_multiplied_last() -> None:
    plan = narrowed(bgp("?a p ?b; ?c p ?d; ?a q ?x; ?c q ?y", BOTH))
    sides = [
        op.Join(bgp(f"?{one} p ?{other}", BOTH), bgp(f"?{one} q ?{value}")) for one, other, value in ("abx", "cdy")
    ]
    assert plan == op.Join(sides[0], sides[1])
