"""Streams as ids: blocks and events are encoded alike, whatever was asked before and whatever the buffer forgot."""

from __future__ import annotations

from random import Random

import pytest

from anabranch.delta.dictionary import Dictionary
from anabranch.engine.feeds import EncodedStream
from anabranch.engine.stream import StreamBuffer
from anabranch.model.block import TripleBlock
from anabranch.model.event import Event
from anabranch.model.mapping import Mapping
from anabranch.model.terms import Blank, Iri, Literal, Term, Triple
from anabranch.model.values import Node, Relationship


def triple(random: Random) -> Triple:
    some: list[Term] = [Iri(f"n:{random.randrange(30)}"), Literal(str(random.randrange(30))), Blank("b", "d")]
    return Triple(Iri(f"n:{random.randrange(30)}"), Iri("n:p"), random.choice(some))


def event(random: Random, time: int) -> Event:
    match random.randrange(4):
        case 0:
            return Event(time, triples=tuple(triple(random) for _ in range(random.randrange(4))))
        case 1:
            return Event(time, (Node(1, ("A",)), Node(2)), (Relationship("r", "R", 1, 2, {"a": 1}),))
    return Event(time, triples=(triple(random),))


@pytest.mark.parametrize("number", range(40))
def test_triples_between_positions_are_those_of_the_events_there(number: int) -> None:
    random = Random(f"encoded/{number}")
    stream, dictionary, mapping = StreamBuffer("s"), Dictionary(), Mapping()
    encoded = EncodedStream(dictionary, mapping)
    events: list[Event] = []
    for _ in range(30):
        start = len(events)
        more = [event(random, start + place) for place in range(random.choice([1, 3, 20]))]
        if random.random() < 0.6:
            more = [Event(one.event_time, triples=(triple(random),)) for one in more]
            block = TripleBlock.of(more)
            assert block is not None
            assert stream.push_block(block)
        else:
            assert all(stream.push(one) for one in more)
        events += more
        if random.random() < 0.3:
            stream.forget_before(random.randrange(stream.first_position, len(events)))
        first, stop = sorted(random.randint(stream.first_position, len(events)) for _ in range(2))
        facts, sizes = encoded.between(stream, first, stop)
        expected = [mapping.triples_of(one) for one in events[first:stop]]
        assert dictionary.rows(facts) == [tuple(one) for some in expected for one in some]
        assert sizes.tolist() == [len(some) for some in expected]


def test_terms_encoded_together_have_the_ids_that_they_have_one_by_one() -> None:
    dictionary = Dictionary()
    first = dictionary.encode(Iri("n:a"))
    terms: list[Term] = [Literal("a"), Iri("n:a"), Blank("a"), Literal("a"), Literal("a", "n:a"), Blank("a")]
    ids = dictionary.encode_terms(terms).tolist()
    assert ids == [dictionary.encode(term) for term in terms]
    assert [dictionary.decode(one) for one in ids] == terms
    assert (ids[1], len(dictionary)) == (first, 5)
    assert dictionary.encode_terms([]).tolist() == []
    assert dictionary.encode_terms(terms).tolist() == ids
