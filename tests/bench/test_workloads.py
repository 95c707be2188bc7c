"""The benchmarks' streams and queries: the same every time, and the same thing asked in both forms."""

from __future__ import annotations

import re

import numpy as np
import pytest
from peers import feed, polars_joins
from workloads import lubm, random_graphs, seas
from workloads.base import Query, Stream

from anabranch.delta.patterns import Fixed
from anabranch.engine.session import Session
from anabranch.model.event import Event
from anabranch.model.terms import Iri, Literal, Term, Triple

S = "http://example.org/stream"
LUBM = lubm.generate(9_000)
SEAS = seas.generate(3_000)
GRAPH = random_graphs.generate(300, 60)
HUBS = random_graphs.generate(300, 60, hubs=True)
ASKED = [(made.stream, query) for made in (LUBM, SEAS, GRAPH, HUBS) for query in made.queries]


def term_of(spelled: str) -> Term:
    if spelled.startswith("<"):
        return Iri(spelled[1:-1])
    found = re.fullmatch(r'"(.*)"(?:\^\^<(.*)>)?', spelled)
    assert found is not None
    return Literal(found[1], found[2]) if found[2] else Literal(found[1])


def rows_of_text(stream: Stream, query: Query) -> list[tuple[object, ...]]:
    """What the C-SPARQL text answers over the whole stream as one window."""
    size = len(stream.facts)
    session = Session.local([S])
    handle = session.register(query.csparql(S, size, size))
    triples = [Triple(*map(term_of, spelled)) for spelled in stream.triples(0, size)]  # type: ignore[arg-type]
    session.push(S, [Event(number + 1, triples=(triple,)) for number, triple in enumerate(triples)])
    session.finish()
    return sorted((tuple(row) for answer in handle.poll() for row in answer.rows), key=repr)


def rows_of_conjunction(stream: Stream, query: Query) -> list[tuple[object, ...]]:
    plan = feed.plan_of(query.conjunction)
    window = feed.window_of(query.conjunction, stream.facts, stream.numbers)
    ids = polars_joins.rows(plan, polars_joins.evaluate(plan, polars_joins.prepare(plan, window)))
    return sorted((tuple(map(term_of, stream.terms.spell(row))) for row in ids), key=repr)


@pytest.mark.parametrize(("stream", "query"), ASKED, ids=[query.name for _, query in ASKED])
def test_the_text_of_a_query_asks_what_its_conjunction_asks(stream: Stream, query: Query) -> None:
    rows = rows_of_text(stream, query)
    assert rows == rows_of_conjunction(stream, query)
    assert bool(rows) == (query.name != "Q3")  # no undergraduate has a degree


@pytest.mark.parametrize("made", [LUBM, SEAS, GRAPH], ids=["lubm", "seas", "random"])
def test_no_two_ids_are_spelled_alike(made: lubm.Lubm | seas.Seas | random_graphs.RandomGraph) -> None:
    spelled = made.stream.terms.spell(np.arange(1, len(made.stream.terms)))
    assert len(set(spelled)) == len(spelled)


def test_a_stream_is_the_same_whenever_it_is_made() -> None:
    assert np.array_equal(lubm.generate(9_000).stream.facts, LUBM.stream.facts)
    assert np.array_equal(seas.generate(3_000).stream.facts, SEAS.stream.facts)
    assert not np.array_equal(lubm.generate(9_000, seed=8).stream.facts, LUBM.stream.facts)


def test_a_longer_lubm_stream_begins_with_the_shorter_one() -> None:
    assert np.array_equal(lubm.generate(20_000).stream.facts[:9_000], LUBM.stream.facts)


def test_the_lubm_stream_has_18_predicates_and_triples_that_come_again() -> None:
    facts = LUBM.stream.facts
    assert len(np.unique(facts[:, 1])) == 18
    assert len(np.unique(facts, axis=0)) < len(facts)


def test_the_constants_of_q4_and_q6_are_from_the_middle_of_the_stream() -> None:
    made = lubm.generate(40_000)
    for name, place in (("Q4", 0), ("Q6", 0)):
        pattern = next(query for query in made.queries if query.name == name).conjunction.patterns[place]
        constant = pattern.places[2]
        assert isinstance(constant, Fixed)
        places = np.flatnonzero((made.stream.facts == constant.id).any(axis=1))
        assert places.min() <= 20_000 <= places.max()
