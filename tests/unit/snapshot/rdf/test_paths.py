"""Property paths: every form, cycles, ends that are known, unknown, or outside of the graph."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.snapshot.rdf.judge import (
    DATA,
    EX,
    Group,
    basic_patterns,
    bgp,
    graphs,
    groups,
    iri,
    number,
    place,
    rows_over,
    same_rows,
    shown,
    spelled,
    triples,
)

from anabranch.algebra import expressions as ex
from anabranch.algebra import operators as op
from anabranch.algebra import triples as tr
from anabranch.errors import EvaluationError, InternalError
from anabranch.model.terms import Triple
from anabranch.snapshot.rdf.paths import compile_path

P, Q = tr.PathLink(iri("p")), tr.PathLink(iri("q"))
STAR, PLUS, MAYBE = tr.Repeat(P, 0), tr.Repeat(P, 1), tr.Repeat(P, 0, 1)


def path(subject: str, way: tr.PropertyPath, object_: str) -> tr.Path:
    return tr.Path(DATA, place(subject), way, place(object_))


def test_one_or_more_steps_go_around_a_cycle_once() -> None:
    found = shown(rows_over("a p b; b p c; c p a", path("?x", PLUS, "?y")))
    assert found == [(one, other) for one in "abc" for other in "abc"]


def test_no_step_leads_from_every_node_to_itself_and_from_nothing_else() -> None:
    assert shown(rows_over("a q 1; b p c", path("?x", STAR, "?y"))) == [
        *[("1", "1"), ("a", "a"), ("b", "b"), ("b", "c"), ("c", "c")]
    ]


def test_a_term_outside_of_the_graph_is_at_both_ends_of_no_step() -> None:
    assert shown(rows_over("b p c", path("a", STAR, "?y"))) == [("a",)]
    assert shown(rows_over("b p c", path("?x", MAYBE, "a"))) == [("a",)]
    assert rows_over("b p c", path("a", STAR, "a")) == [()]
    assert rows_over("b p c", path("a", STAR, "b")) == []
    assert rows_over("b p c", path("a", PLUS, "?y")) == []


def test_a_value_that_another_part_has_bound_is_no_node_of_the_graph_by_that() -> None:
    outside = tr.Values(("x",), ((iri("a"),), (iri("b"),)))
    assert shown(rows_over("b p c", op.Join(outside, path("?x", STAR, "?y")))) == [("b", "b"), ("b", "c")]
    assert shown(rows_over("b p c", op.Join(outside, path("?x", STAR, "a")))) == [("a",)]


def test_one_variable_at_both_ends_finds_the_cycles() -> None:
    assert shown(rows_over("a p b; b p a; c p c; d p a", path("?x", PLUS, "?x"))) == [("a",), ("b",), ("c",)]
    assert shown(rows_over("a p b", path("?x", STAR, "?x"))) == [("a",), ("b",)]
    known = op.Join(tr.Values(("x",), ((iri("b"),), (iri("d"),))), path("?x", PLUS, "?x"))
    assert shown(rows_over("a p b; b p a; d p a", known)) == [("b",)]


def test_an_unbound_end_on_the_left_is_bound_by_the_path() -> None:
    left = tr.Values(("x", "y"), ((iri("a"), None), (None, iri("c")), (None, None)))
    found = shown(rows_over("a p b; b p c", op.Join(left, path("?x", PLUS, "?y"), lenient=True)))
    assert found == [(*"ab",), (*"ab",), (*"ac",), (*"ac",), (*"ac",), (*"bc",), (*"bc",)]


def test_each_pair_comes_once_however_many_ways_lead_there() -> None:
    assert shown(
        rows_over("a p b; a q b; b p d; a p c; c p d", path("a", tr.Repeat(tr.Alternative((P, Q)), 1), "?y"))
    ) == [
        ("b",),
        ("c",),
        ("d",),
    ]


def test_inside_of_an_exists_the_path_starts_from_the_row() -> None:
    reaches = ex.Exists(op.Join(op.Argument(("x",)), path("?x", PLUS, "c"), lenient=True))
    assert shown(rows_over("a p b; b p c; d p a; e p e", op.Filter(bgp("?x p ?z"), reaches))) == [
        *[("a", "b"), ("b", "c"), ("d", "a")]
    ]


def test_a_long_chain_needs_no_deep_recursion() -> None:
    chain = [Triple(number(at), iri("p"), number(at + 1)) for at in range(5_000)]
    assert len(rows_over(chain, path("0", PLUS, "?y"))) == 5_000
    assert rows_over(chain, path("?x", PLUS, "1")) == [(number(0),)]


def test_a_path_that_explodes_is_given_up() -> None:
    everything = [Triple(number(one), iri("p"), number(other)) for one in range(60) for other in range(60)]
    with pytest.raises(EvaluationError) as caught:
        rows_over(everything, path("?x", PLUS, "?y"), max_steps=10_000)
    assert caught.value.diagnostic.code == "SER-306"


def test_what_is_no_path_is_refused() -> None:
    with pytest.raises(InternalError):
        compile_path(tr.Var("x"))  # type: ignore[arg-type]


# --- against pyoxigraph -----------------------------------------------------------------------------------------------


def with_ends(graph: list[Triple]) -> list[Triple]:
    """A graph that holds every term of the queries: of others pyoxigraph does not find the path of no step."""
    return list(dict.fromkeys([*graph, *triples("a q b; a q 1")]))


_LINKS = st.sampled_from([P, Q])
_NEGATED = st.sampled_from(
    [
        tr.NegatedStep((iri("p"),), None),
        tr.NegatedStep((iri("p"), iri("q")), None),
        tr.NegatedStep(None, (iri("q"),)),
        tr.NegatedStep((iri("q"),), (iri("p"),)),
    ]
)


def _ways() -> st.SearchStrategy[tr.PropertyPath]:
    def larger(inner: st.SearchStrategy[tr.PropertyPath]) -> st.SearchStrategy[tr.PropertyPath]:
        several = st.lists(inner, min_size=2, max_size=3).map(tuple)
        return (
            st.builds(tr.Inverse, inner)
            | st.builds(tr.Sequence, several)
            | st.builds(tr.Alternative, several)
            | st.builds(lambda way, bounds: tr.Repeat(way, *bounds), inner, _BOUNDS)
        )

    return st.recursive(_LINKS | _NEGATED, larger, max_leaves=4)


_BOUNDS = st.sampled_from([(0, None), (1, None), (0, 1)])


def _text(way: tr.PropertyPath) -> str:
    match way:
        case tr.PathLink(one):
            return f":{one.value.removeprefix(EX)}"
        case tr.Inverse(inner):
            return f"^({_text(inner)})"
        case tr.Sequence(ways):
            return "(" + "/".join(map(_text, ways)) + ")"
        case tr.Alternative(ways):
            return "(" + "|".join(map(_text, ways)) + ")"
        case tr.Repeat(inner, least, most):
            return f"({_text(inner)})" + ("?" if most == 1 else "+" if least else "*")
        case tr.NegatedStep(forward, backward):
            steps = [f":{one.value.removeprefix(EX)}" for one in forward or ()]
            steps += [f"^:{one.value.removeprefix(EX)}" for one in backward or ()]
            return f"!({'|'.join(steps)})"
    raise TypeError(way)


def _paths() -> st.SearchStrategy[Group]:
    ends = st.sampled_from([*map(place, ("?x", "?y", "?z", "?x", "?y", "a", "b", "1"))])

    def built(
        subject: tr.TermPlace, way: tr.PropertyPath, bounds: tuple[int, int | None], object_: tr.TermPlace
    ) -> Group:
        repeated = tr.Repeat(way, *bounds)
        text = f"{spelled(subject)} {_text(repeated)} {spelled(object_)}"
        return Group(text, tr.Path(DATA, subject, repeated, object_))

    return st.builds(built, ends, _ways(), _BOUNDS, ends)


@settings(max_examples=300, deadline=None)
@given(graphs(), _paths())
def test_a_path_has_the_pairs_that_pyoxigraph_finds(graph: list[Triple], group: Group) -> None:
    same_rows(with_ends(graph), group)


@settings(max_examples=300, deadline=None)
@given(graphs(), groups(leaves=_paths() | basic_patterns()))
def test_paths_join_with_everything_else(graph: list[Triple], group: Group) -> None:
    same_rows(with_ends(graph), group)
