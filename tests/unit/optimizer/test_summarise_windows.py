"""Windows keep only the triples that somebody can ask for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from anabranch.algebra import operators as op
from anabranch.algebra import triples as tr
from anabranch.algebra.expressions import Constant, Exists, TripleTime
from anabranch.algebra.walk import windows
from anabranch.model.terms import Iri
from anabranch.optimizer import Knowledge
from anabranch.optimizer.summarise_windows import summarise_windows

from .plans import BOTH, EX, KNOWN, MARKET, OTHER, PREFIXES, bgp, term, var

P, Q, R, ONE = Iri(EX + "p"), Iri(EX + "q"), Iri(EX + "r"), term("1")
EVERYTHING = None


def kept(plan: op.Operator) -> dict[str | None, tuple[op.TripleFilter, ...] | None]:
    """What each stream's window keeps in the end."""
    rewrite = summarise_windows(plan, Knowledge(prefixes=PREFIXES))
    return {one.stream.name: one.keep for one in windows(plan if rewrite is None else rewrite.plan)}


def path(least: int, subject: tr.TermPlace) -> tr.Path:
    return tr.Path(
        MARKET, subject, tr.Repeat(tr.Alternative((tr.PathLink(P), tr.Inverse(tr.PathLink(Q)))), least), tr.Var("b")
    )


@pytest.mark.parametrize(
    ("plan", "keeps"),
    [
        (bgp("?a p ?b; ?b q 1"), ((None, P, None), (None, Q, ONE))),
        (bgp("?a p 1; ?a p ?b"), ((None, P, None),)),
        (bgp("?a p ?b; ?a ?d ?c"), EVERYTHING),
        (bgp("?a ?d 1"), ((None, None, ONE),)),
        (path(1, tr.Var("a")), ((None, P, None), (None, Q, None))),
        (path(0, tr.Var("a")), EVERYTHING),
        (path(0, term("x")), ((None, P, None), (None, Q, None))),
        (tr.Describe(bgp("?a p ?b"), MARKET, (var("a"),)), EVERYTHING),
        (tr.PluginQuery("SELECT * { ?a ?p ?b }", ("a",), MARKET), EVERYTHING),
        (op.Filter(bgp("?a p ?b"), Exists(bgp("?a q 1"))), ((None, P, None), (None, Q, ONE))),
        (
            op.Extend(bgp("?a p ?b"), "t", TripleTime(MARKET, var("a"), Constant(Q), var("b"))),
            ((None, P, None), (None, Q, None)),
        ),
    ],
    ids=[
        *("constants", "the wider one", "any triple", "any predicate", "path of steps", "path of no steps"),
        *("path from a term", "describe", "plug-in", "exists", "time of a triple"),
    ],
)
def test_a_window_keeps_what_its_patterns_can_match(plan: op.Operator, keeps: object) -> None:
    assert kept(plan) == {"market": keeps}


def test_each_window_keeps_what_is_asked_of_it() -> None:
    assert kept(op.Join(bgp("?a p ?b"), bgp("?a q ?b", OTHER))) == {
        "market": ((None, P, None),),
        "other": ((None, Q, None),),
    }


def test_the_same_window_is_the_same_everywhere_in_the_plan() -> None:
    timed = replace(bgp("?a p ?b").patterns[0], times=((" time1", MARKET),))
    part = tr.StaticPart(bgp("?a r ?c", KNOWN), bgp("?a r ?c", BOTH), (R,), (MARKET,))
    rewrite = summarise_windows(op.Join(part, tr.GraphPattern(BOTH, (timed,))), Knowledge(prefixes=PREFIXES))
    assert rewrite is not None
    (window,) = windows(rewrite.plan)
    assert window.keep == ((None, P, None), (None, R, None))
    assert repr(rewrite.plan).count("Window(") == repr(rewrite.plan).count(repr(window))
    assert rewrite.notes == ("market keeps * :p *, * :r *",)


def test_windows_by_count_are_summarised_too() -> None:
    last = op.Window(op.Stream("market"), count=10)
    assert kept(bgp("?a p ?b", last)) == {"market": ((None, P, None),)}
