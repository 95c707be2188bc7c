"""Graphs of triples: lookups by any terms, order, times, and several graphs seen as one."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from anabranch.model.terms import Blank, Iri, Literal, Term, Triple
from anabranch.model.triples import MergedGraph, TripleGraph, Triples

A, B, P, Q = Iri("a"), Iri("b"), Iri("p"), Iri("q")
ONE = Literal("1")
TERMS: tuple[Term, ...] = (A, B, ONE)
_TRIPLES = st.builds(Triple, st.sampled_from([A, B]), st.sampled_from([P, Q]), st.sampled_from([A, B, ONE]))
_CHANGES = st.lists(st.tuples(st.booleans(), _TRIPLES, st.none() | st.integers(0, 9)), max_size=30)


def lookups(graph: Triples) -> dict[object, list[Triple]]:
    """Everything that can be asked: each combination of known terms."""
    asked = list(product((A, B, None), (P, Q, None), (A, B, ONE, None)))
    return {terms: list(graph.match(*terms)) for terms in asked}


def naively(triples: list[Triple]) -> dict[object, list[Triple]]:
    return {
        terms: [t for t in triples if all(one is None or one == other for one, other in zip(terms, t, strict=True))]
        for terms in product((A, B, None), (P, Q, None), (A, B, ONE, None))
    }


def test_a_triple_that_comes_again_moves_to_the_end_and_gets_the_later_time() -> None:
    graph = TripleGraph([Triple(A, P, B), Triple(A, P, ONE)], [5, 6])
    assert graph.estimate(A, P, None) == 2
    graph.add(Triple(A, P, B), 7)
    assert list(graph) == [Triple(A, P, ONE), Triple(A, P, B)]
    assert list(graph.match(A, P, None)) == [Triple(A, P, ONE), Triple(A, P, B)]
    assert graph.time_of(Triple(A, P, B)) == 7
    graph.add(Triple(A, P, B), 3)
    graph.add(Triple(A, P, B))
    assert graph.time_of(Triple(A, P, B)) == 7


def test_what_was_removed_is_found_no_more() -> None:
    graph = TripleGraph([Triple(A, P, B), Triple(B, Q, ONE)])
    lookups(graph)
    graph.remove(Triple(A, P, B))
    graph.remove(Triple(A, P, A))
    assert list(graph) == [Triple(B, Q, ONE)]
    assert not graph.has_predicate(P)
    assert list(graph.nodes()) == [B, ONE]
    assert list(graph.match(None, None, B)) == []


def test_blank_nodes_of_two_documents_are_two_nodes() -> None:
    graph = TripleGraph([Triple(Blank("x", "one"), P, A), Triple(Blank("x", "two"), P, A)])
    assert len(graph) == 2
    assert list(graph.match(Blank("x", "two"), None, None)) == [Triple(Blank("x", "two"), P, A)]


@given(_CHANGES, st.booleans())
def test_after_any_changes_a_graph_answers_as_one_built_from_what_it_holds(
    changes: list[tuple[bool, Triple, int | None]], asked_before: bool
) -> None:
    graph = TripleGraph()
    if asked_before:
        lookups(graph)
    latest: dict[Triple, int | None] = {}
    for removes, triple, time in changes:
        if removes:
            graph.remove(triple)
            latest.pop(triple, None)
        else:
            graph.add(triple, time)
            times = [one for one in (latest.pop(triple, None), time) if one is not None]
            latest[triple] = max(times, default=None)
    assert dict(graph.timed()) == latest
    assert list(graph) == list(latest)
    assert lookups(graph) == naively(list(latest))
    for terms, found in lookups(graph).items():
        assert graph.estimate(*terms) == len(found)  # type: ignore[misc]
    assert len(graph) == len(latest)
    assert set(graph.nodes()) == {term for triple in latest for term in (triple.subject, triple.object)}


@given(st.lists(st.lists(_TRIPLES, max_size=8), max_size=3))
def test_several_graphs_as_one_are_their_union_each_triple_where_it_is_first(contents: list[list[Triple]]) -> None:
    merged = MergedGraph([TripleGraph(content) for content in contents])
    held = list(dict.fromkeys(one for graph in merged.graphs for one in graph))
    assert list(merged) == held
    assert len(merged) == len(held)
    assert lookups(merged) == naively(held)
    assert set(merged.nodes()) == {term for triple in held for term in (triple.subject, triple.object)}
    for terms, found in lookups(merged).items():
        assert merged.estimate(*terms) >= len(found)  # type: ignore[misc]
    assert {one for one in (P, Q) if merged.has_predicate(one)} == {triple.predicate for triple in held}


def test_the_time_of_a_shared_triple_is_the_latest_of_all_windows() -> None:
    shared = Triple(A, P, B)
    merged = MergedGraph([TripleGraph([shared], [4]), TripleGraph([shared]), TripleGraph([shared], [3])])
    assert merged.time_of(shared) == 4
    assert merged.time_of(Triple(B, P, A)) is None
    assert shared in merged
