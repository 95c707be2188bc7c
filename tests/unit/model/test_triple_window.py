"""A window of triples that slides: arrivals come and go, a triple lives as long as one of its arrivals is inside."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.errors import InternalError
from anabranch.model.terms import Iri, Literal, Triple
from anabranch.model.triple_window import KeptTriples, TripleWindow
from anabranch.model.triples import TripleGraph

A, B, P, Q = Iri("a"), Iri("b"), Iri("p"), Iri("q")
APB, APA, BQA = Triple(A, P, B), Triple(A, P, A), Triple(B, Q, A)


def held(window: TripleWindow) -> list[tuple[Triple, int | None]]:
    return list(window.graph().timed())


def test_a_refreshed_triple_outlives_its_first_arrival() -> None:
    window = TripleWindow()
    window.add([APB, BQA], 10)
    window.add([APB], 20)
    assert held(window) == [(BQA, 10), (APB, 20)]
    window.drop(2)
    assert held(window) == [(APB, 20)]
    window.drop(1)
    assert held(window) == []


def test_a_triple_twice_in_one_event_is_two_arrivals() -> None:
    window = TripleWindow()
    window.add([APB, APB], 10)
    window.drop(1)
    assert held(window) == [(APB, 10)]
    assert len(window) == 1


def test_an_event_may_leave_in_parts() -> None:
    window = TripleWindow()
    window.add([APB, APA, BQA], 10)
    window.add([APB], 20)
    window.drop(2)
    assert held(window) == [(BQA, 10), (APB, 20)]
    window.drop(1)
    assert held(window) == [(APB, 20)]


def test_the_graph_is_one_object_that_changes() -> None:
    window = TripleWindow()
    graph = window.graph()
    window.add([APB], 10)
    assert list(graph.match(A, None, None)) == [APB]
    window.drop(1)
    assert list(graph.match(A, None, None)) == []


def test_what_nobody_asks_for_is_counted_and_not_kept() -> None:
    window = TripleWindow(keep=((None, Q, None), (A, P, A)))
    window.add([APB, APA, BQA], 10)
    assert held(window) == [(APA, 10), (BQA, 10)]
    assert len(window) == 3
    window.drop(2)
    assert held(window) == [(BQA, 10)]


def test_a_kept_pattern_may_know_anything() -> None:
    for keep, kept in (((), []), (((None, None, None),), [APB, APA, BQA]), (((None, None, A),), [APA, BQA])):
        window = TripleWindow(keep)
        window.add([APB, APA, BQA], 10)
        assert list(window.graph()) == kept


def test_arrivals_out_of_order_and_too_many_drops_are_refused() -> None:
    window = TripleWindow()
    window.add([APB], 10)
    with pytest.raises(InternalError, match="order of time"):
        window.add([APB], 9)
    with pytest.raises(InternalError, match="2 arrivals cannot leave a window that holds 1"):
        window.drop(2)


_TERMS = st.sampled_from([A, B, Literal("1")])
_EVENTS = st.lists(st.builds(Triple, st.sampled_from([A, B]), st.sampled_from([P, Q]), _TERMS), max_size=4)
_KEEPS = st.none() | st.lists(
    st.tuples(st.none() | st.just(A), st.none() | st.sampled_from([P, Q]), st.none() | _TERMS), max_size=2
)


@given(st.lists(st.tuples(_EVENTS, st.integers(0, 2), st.integers(0, 5), st.booleans()), max_size=12), _KEEPS)
def test_after_any_adds_and_drops_a_window_is_as_built_from_scratch(
    slides: list[tuple[list[Triple], int, int, bool]], keep: list[KeptTriples] | None
) -> None:
    window, inside, now = TripleWindow(keep), [], 0
    for event, wait, drops, asks in slides:
        now += wait
        window.add(event, now)
        inside += [(triple, now) for triple in event]
        if asks:  # indexes that exist early must be kept right
            list(window.graph().match(None, P, None))
            list(window.graph().match(A, P, None))
        window.drop(min(drops, len(inside)))
        inside = inside[min(drops, len(inside)) :]
        scratch = TripleGraph()
        for triple, time in inside:
            if keep is None or any(_fits(triple, pattern) for pattern in keep):
                scratch.add(triple, time)
        assert list(window.graph().timed()) == list(scratch.timed())
        assert len(window) == len(inside)
        for terms in ((None, P, None), (A, P, None), (None, Q, A), (B, None, None), (None, None, A), (A, None, B)):
            assert list(window.graph().match(*terms)) == list(scratch.match(*terms))


def _fits(triple: Triple, pattern: KeptTriples) -> bool:
    return all(one is None or one == other for one, other in zip(pattern, triple, strict=True))
