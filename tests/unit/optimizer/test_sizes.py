"""How many rows a part over static graphs can have at most."""

from __future__ import annotations

from math import inf

from anabranch.algebra import operators as op
from anabranch.algebra import triples as tr
from anabranch.algebra.expressions import Constant
from anabranch.model.terms import Iri
from anabranch.optimizer.support.sizes import is_small, most_rows

from .plans import EX, KNOWN, bgp, equal, knowing, project, rows, triples

DATA = {"known": triples("; ".join(f"n{at} type Thing; n{at} in r{at % 4}; n{at} key k{at}" for at in range(200)))}
SIZES = knowing(DATA).sizes


def test_a_pattern_has_as_many_rows_as_triples() -> None:
    assert most_rows(bgp("?a type ?t", KNOWN), SIZES) == 200
    assert most_rows(bgp("?a in r1", KNOWN), SIZES) == 50
    assert most_rows(bgp("?a nothing ?b", KNOWN), SIZES) == 0


def test_a_join_on_a_key_stays_small_and_one_on_what_many_share_does_not() -> None:
    assert most_rows(bgp("?a type ?t; ?a in ?r; ?a key ?k", KNOWN), SIZES) == 200
    assert most_rows(bgp("?a type ?t; ?b type ?t; ?c type ?t", KNOWN), SIZES) == 200**3
    assert most_rows(bgp("?a in ?r; ?b in ?r", KNOWN), SIZES) == 200 * 50
    assert most_rows(bgp("n1 ?p ?t; ?b ?p ?t", KNOWN), SIZES) == 3 * 200


def test_the_bound_is_never_below_the_rows() -> None:
    left, right = bgp("?a type ?t", KNOWN), bgp("?b type ?t", KNOWN)
    for plan in (
        op.Join(left, right),
        op.LeftJoin(left, bgp("?a in ?r", KNOWN)),
        op.Union(left, bgp("?a in ?t", KNOWN)),
        tr.Minus(left, right),
        op.Slice(left, None, Constant(7)),
        op.Filter(project(left, "a"), equal("a", "n1")),
        op.Join(tr.Values(("a",), ((Iri(EX + "n1"),),)), left),
    ):
        assert sum(rows(plan, DATA).values()) <= most_rows(plan, SIZES) < inf


def test_a_small_part_is_one_whose_rows_its_triples_are_worth() -> None:
    assert is_small(bgp("?a type ?t; ?b type ?t", KNOWN), knowing({"known": triples("a type b; c type b")}).sizes)
    assert not is_small(bgp("?a type ?t; ?b type ?t; ?c type ?t", KNOWN), SIZES)
    assert is_small(bgp("?a type ?t; ?b type ?t; ?c type ?t", KNOWN), {}), "of which nothing is known"
