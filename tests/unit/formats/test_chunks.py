"""Chunks: what goes in comes out, and what is no chunk is refused."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.draws import draw_case

from anabranch.errors import StreamError
from anabranch.formats import chunks
from anabranch.model.block import TripleBlock
from anabranch.model.event import Event
from anabranch.model.points import Point
from anabranch.model.temporal import parse_duration
from anabranch.model.terms import Blank, Iri, Literal, Triple, tagged
from anabranch.model.values import Node, Relationship

TEXTS = st.text(st.characters(exclude_categories=()), max_size=5)
IDS = st.one_of(st.integers(-(2**63), 2**63 - 1), TEXTS)
VALUES = st.recursive(
    st.one_of(st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=5,
)
PROPERTIES = st.dictionaries(TEXTS, VALUES, max_size=3)
NODES = st.builds(Node, IDS, st.lists(TEXTS, max_size=2).map(tuple), PROPERTIES)
RELATIONSHIPS = st.builds(Relationship, st.one_of(st.none(), IDS), TEXTS, IDS, IDS, PROPERTIES)
TERMS = st.one_of(
    TEXTS.map(Iri),
    st.tuples(TEXTS, TEXTS).map(lambda drawn: Blank(*drawn)),
    TEXTS.map(Literal),
    st.tuples(TEXTS, TEXTS).map(lambda drawn: Literal(*drawn)),
    st.tuples(TEXTS, st.sampled_from(["en", "de-at"])).map(lambda drawn: tagged(*drawn)),
)
TRIPLES = st.tuples(TERMS, TERMS, TERMS).map(lambda drawn: Triple(*drawn))
EVENTS = st.builds(
    Event,
    st.integers(-(2**62), 2**62),
    st.lists(NODES, max_size=3).map(tuple),
    st.lists(RELATIONSHIPS, max_size=3).map(tuple),
    st.lists(TRIPLES, max_size=3).map(tuple),
)


def same(one: list[Event], other: list[Event]) -> bool:
    """Equal to the last value and its type; nodes alone would compare by id."""
    return repr(one) == repr(other)


@settings(max_examples=300)
@given(st.lists(EVENTS, max_size=6))
def test_what_is_packed_comes_out_again_with_every_value_and_type(events: list[Event]) -> None:
    assert same(chunks.unpack(chunks.pack(events)), events)


SINGLES = st.builds(
    Event,
    st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(0, 9)),
    st.just(()),
    st.just(()),
    TRIPLES.map(lambda triple: (triple,)),
)


@settings(max_examples=300)
@given(st.lists(SINGLES, min_size=1, max_size=8))
def test_events_of_one_triple_each_travel_as_a_block(events: list[Event]) -> None:
    found = chunks.opened(chunks.pack(events))
    assert isinstance(found, TripleBlock)
    assert same(found.events(), events)
    assert len(set(found.terms)) == len(found.terms)


def test_a_block_is_packed_as_its_events_are_and_without_terms_that_it_does_not_name() -> None:
    block = TripleBlock.of(
        [Event(time, triples=(Triple(Iri("a:a"), Iri("a:p"), Iri(f"a:{time}")),)) for time in range(9)]
    )
    assert block is not None
    data = chunks.pack(block[3:5])
    assert data == chunks.pack(block[3:5].events())
    assert chunks.head(data).first == 3
    found = chunks.opened(data)
    assert isinstance(found, TripleBlock)
    assert list(found.terms) == [Iri("a:a"), Iri("a:p"), Iri("a:3"), Iri("a:4")]


def test_more_terms_than_two_bytes_can_name_and_times_far_apart_come_out_again() -> None:
    count = 70_000
    triples = [Triple(Iri(f"a:{number}"), Iri("a:p"), Blank("b", f"d{number % 3}")) for number in range(count)]
    events = [Event(number * 10**11, triples=(triple,)) for number, triple in enumerate(triples)]
    found = chunks.opened(chunks.pack(events))
    assert isinstance(found, TripleBlock)
    assert found.events() == events


def test_events_that_are_not_all_of_one_triple_come_out_one_by_one() -> None:
    triple = Triple(Iri("a:a"), Iri("a:p"), Literal("x"))
    events = [Event(1, triples=(triple,)), Event(2, triples=(triple, triple))]
    assert chunks.opened(chunks.pack(events)) == events


def test_what_does_not_get_shorter_is_left_as_it_is() -> None:
    assert chunks.head(chunks.pack([])).codec is chunks.Codec.NONE
    assert chunks.head(chunks.pack([Event(time) for time in range(100)])).codec is chunks.Codec.ZSTD


@pytest.mark.parametrize("count", [1, 500])
def test_a_block_that_was_cut_off_or_changed_is_refused(count: int) -> None:
    triples = [Triple(Iri(f"a:{number % 7}"), Iri("a:p"), Literal("x" * number)) for number in range(count)]
    whole = chunks.pack([Event(5, triples=(triple,)) for triple in triples])
    for data in (
        whole[:-1],
        whole[:-20],
        whole + b"x",
        whole[:5] + b"\x07" + whole[6:],
        whole[:6] + b"\x07" + whole[7:],
    ):
        with pytest.raises(StreamError, match="damaged"):
            chunks.unpack(data)


def test_a_code_without_a_term_is_damage() -> None:
    terms, _ = chunks.TermColumns.of([Iri("a:a")])
    codes = np.array([0], np.int32)
    data = chunks.pack_columns(np.array([5]), codes, codes, codes + 1, terms)
    with pytest.raises(StreamError, match="damaged: a code without a term"):
        chunks.unpack(data)


def test_typed_values_and_odd_numbers_come_out_again() -> None:
    properties = {
        "point": Point.from_map({"x": 1, "y": 2}),
        "width": parse_duration("PT5S"),
        "whole": 1,
        "float": 1.0,
        "true": True,
        "huge": 1e300,
        "inf": -math.inf,
        "$typed": "a key of the format's own",
    }
    events = [Event(0, (Node(1, ("A",), properties),)), Event(0, (Node("1", (), {"$typed": {"a": 1}}),))]
    assert same(chunks.unpack(chunks.pack(events)), events)


def test_the_head_tells_counts_and_times_without_opening_the_chunk() -> None:
    triple = Triple(Iri("a:a"), Iri("a:p"), Literal("x"))
    events = [
        Event(50, (Node(1),), triples=(triple, triple)),
        Event(20, (Node(1), Node(2)), (Relationship(None, "R", 1, 2),)),
    ]
    found = chunks.head(chunks.pack(events)[:64])
    assert (found.events, found.nodes, found.relationships, found.triples) == (2, 3, 1, 2)
    assert (found.first, found.last) == (20, 50)


def test_many_events_become_chunks_of_a_handy_size_in_their_order() -> None:
    random = Random(1)
    events = [Event(index, (Node(random.randrange(50)),)) for index in range(2 * chunks.EVENTS_PER_CHUNK + 5)]
    packed = list(chunks.pack_all(events))
    assert [chunks.head(one).events for one in packed] == [chunks.EVENTS_PER_CHUNK, chunks.EVENTS_PER_CHUNK, 5]
    assert same([event for one in packed for event in chunks.unpack(one)], events)


def test_an_event_of_many_triples_fills_a_chunk() -> None:
    many = tuple(Triple(Iri("a:a"), Iri("a:p"), Literal(str(number))) for number in range(chunks.ELEMENTS_PER_CHUNK))
    packed = list(chunks.pack_all([Event(0, triples=many), Event(1, triples=many[:1])]))
    assert [chunks.head(one).triples for one in packed] == [chunks.ELEMENTS_PER_CHUNK, 1]


def test_the_columns_of_triples_are_codes_into_one_list_of_distinct_terms() -> None:
    a, p = Iri("a:a"), Iri("a:p")
    found = chunks.opened(chunks.pack([Event(0, triples=(Triple(a, p, a),)), Event(0, triples=(Triple(p, p, a),))]))
    assert isinstance(found, TripleBlock)
    assert list(found.terms) == [a, p]
    assert [one.tolist() for one in (found.subjects, found.predicates, found.objects)] == [[0, 1], [1, 1], [0, 0]]


def test_no_events_give_no_chunk() -> None:
    assert list(chunks.pack_all([])) == []
    assert chunks.unpack(chunks.pack([])) == []


def test_what_repeats_is_written_once() -> None:
    once = Event(0, (Node("a long name of a station that comes again and again", ("Station",), {"name": "x" * 100}),))
    assert len(chunks.pack([once] * 1000)) < 2 * len(chunks.pack([once])) + 200


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "not a chunk"),
        (b"PAR1" + bytes(60), "not a chunk"),
        (chunks.pack([Event(0)])[:4] + b"\x09" + chunks.pack([Event(0)])[5:], "format 9"),
        (chunks.pack([Event(0)])[:4] + b"\x01" + chunks.pack([Event(0)])[5:], "has format 1; .* reads format 3"),
        (chunks.pack([Event(0, (Node(1),))])[:-3], "damaged"),
    ],
)
def test_what_is_no_chunk_is_refused(data: bytes, said: str) -> None:
    with pytest.raises(StreamError, match=said):
        chunks.unpack(data)


def test_drawn_streams_come_out_again() -> None:
    for number in range(50):
        case = draw_case(Random(f"chunks/{number}"), number)
        for events in case.streams.values():
            assert same(chunks.unpack(chunks.pack(events)), list(events))
