"""Joined graph patterns over one source become one."""

from __future__ import annotations

import pytest

from anabranch.algebra import operators as op
from anabranch.algebra import triples as tr
from anabranch.algebra.expressions import Call
from anabranch.optimizer import Knowledge
from anabranch.optimizer.merge_joined_patterns import merge_joined_patterns

from .plans import KNOWN, MARKET, OTHER, bgp, equal

NOTHING = Knowledge()
PATH = tr.Path(MARKET, tr.Var("b"), tr.Repeat(tr.PathLink(bgp("?a p ?b").patterns[0].predicate), 1), tr.Var("c"))  # type: ignore[arg-type]


def merged(plan: op.Operator) -> op.Operator | None:
    rewrite = merge_joined_patterns(plan, NOTHING)
    return None if rewrite is None else rewrite.plan


def test_two_patterns_become_one() -> None:
    assert merged(op.Join(bgp("?a p ?b"), bgp("?b q ?c"))) == bgp("?a p ?b; ?b q ?c")


def test_a_whole_tree_of_joins_becomes_one_and_the_note_counts_them() -> None:
    tree = op.Join(op.Join(bgp("?a p ?b"), bgp("?b q ?c")), op.Join(bgp("?c r ?d"), bgp("?a r ?d")))
    rewrite = merge_joined_patterns(tree, NOTHING)
    assert rewrite is not None
    assert rewrite.plan == bgp("?a p ?b; ?b q ?c; ?c r ?d; ?a r ?d")
    assert rewrite.notes == ("4 graph patterns become 1, of 4 triple patterns",)


def test_filters_on_both_sides_end_above_the_merged_pattern() -> None:
    left, right = op.Filter(bgp("?a p ?b"), equal("a", "x")), op.Filter(bgp("?b q ?c"), equal("c", "1"))
    found = merged(op.Join(left, right))
    assert isinstance(found, op.Filter)
    assert found.input == bgp("?a p ?b; ?b q ?c")


def test_patterns_find_each_other_across_another_pattern() -> None:
    tree = op.Join(op.Join(bgp("?a p ?b"), bgp("?b q ?c", OTHER)), bgp("?a r ?d"))
    assert merged(tree) == op.Join(bgp("?a p ?b; ?a r ?d"), bgp("?b q ?c", OTHER))


@pytest.mark.parametrize(
    "plan",
    [
        op.Join(bgp("?a p ?b"), bgp("?b q ?c", KNOWN)),
        op.LeftJoin(bgp("?a p ?b"), bgp("?b q ?c"), lenient=True),
        tr.Minus(bgp("?a p ?b"), bgp("?b q ?c")),
        op.Union(bgp("?a p ?b"), bgp("?a q ?b")),
        op.Join(bgp("?a p ?b"), bgp("?b q ?c"), equal("a", "?c")),
        op.Join(op.Join(bgp("?a p ?b"), PATH), bgp("?c q ?d")),
        op.Join(op.Filter(bgp("?a p ?b"), Call("sparql:less", (Call("sparql:rand", ()),) * 2)), bgp("?b q ?c")),
    ],
    ids=["other source", "optional", "minus", "union", "condition", "connected by a path only", "chance"],
)
def test_other_pairs_stay_apart(plan: op.Operator) -> None:
    assert merged(plan) is None


def test_patterns_inside_of_an_optional_part_are_merged_among_themselves() -> None:
    plan = op.LeftJoin(bgp("?a p ?b"), op.Join(bgp("?b q ?c"), bgp("?c r ?d")), lenient=True)
    assert merged(plan) == op.LeftJoin(bgp("?a p ?b"), bgp("?b q ?c; ?c r ?d"), lenient=True)
