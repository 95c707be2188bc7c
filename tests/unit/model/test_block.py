"""Blocks are their events: whole, cut, joined, thinned out and in another order."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from anabranch.model.block import TripleBlock
from anabranch.model.event import Event
from anabranch.model.terms import Blank, Iri, Literal, Term, Triple
from anabranch.model.values import Node

TERMS: list[Term] = [Iri("n:a"), Iri("n:b"), Literal("a"), Literal("a", "n:b"), Blank("a", "d"), Blank("a", "e")]


def drawn(random: Random, count: int) -> list[Event]:
    times = sorted(random.randrange(-5, 20) for _ in range(count))
    return [Event(time, triples=(Triple(*(random.choice(TERMS) for _ in range(3))),)) for time in times]


def block_of(events: list[Event]) -> TripleBlock:
    found = TripleBlock.of(events)
    assert found is not None
    return found


@pytest.mark.parametrize("number", range(30))
def test_a_block_holds_its_events_and_so_does_every_part_of_it(number: int) -> None:
    random = Random(f"block/{number}")
    events = drawn(random, random.choice([0, 1, 2, 30]))
    block = block_of(events)
    assert (len(block), list(block), block.events()) == (len(events), events, events)
    assert [block[index] for index in range(len(events))] == events
    first, stop = sorted(random.randint(0, len(events)) for _ in range(2))
    assert block[first:stop].events() == events[first:stop]
    assert block[first:stop].narrowed().events() == events[first:stop]
    gone = random.sample(range(len(events)), len(events) // 3)
    assert block.without(gone).events() == [event for index, event in enumerate(events) if index not in gone]
    order = np.array(random.sample(range(len(events)), len(events)), np.intp)
    assert block.sorted_by(order).events() == [events[index] for index in order.tolist()]


@pytest.mark.parametrize("number", range(20))
def test_joined_blocks_are_one_behind_the_other_and_name_each_term_once(number: int) -> None:
    random = Random(f"joined/{number}")
    parts = [drawn(random, random.randrange(6)) for _ in range(random.randint(0, 4))]
    blocks = [block_of(events) for events in parts]
    if random.random() < 0.5:
        whole = block_of(drawn(random, 12))
        blocks.append(whole[4:7])
        parts.append(whole.events()[4:7])
    joined = TripleBlock.joined(blocks)
    assert joined.events() == [event for events in parts for event in events]
    assert len(set(joined.terms)) == len(joined.terms)


def test_a_narrowed_block_has_no_term_that_nothing_names() -> None:
    block = block_of([Event(1, triples=(Triple(TERMS[0], TERMS[1], term),)) for term in TERMS])
    assert block[2:3].narrowed().terms == [TERMS[0], TERMS[1], TERMS[2]]


@pytest.mark.parametrize(
    "event",
    [
        Event(1),
        Event(1, (Node(1),)),
        Event(1, (Node(1),), triples=(Triple(*TERMS[:3]),)),
        Event(1, triples=(Triple(*TERMS[:3]), Triple(*TERMS[1:4]))),
    ],
)
def test_an_event_that_is_not_one_triple_alone_makes_no_block(event: Event) -> None:
    assert TripleBlock.of([event]) is None


def test_a_block_knows_whether_it_is_in_the_order_of_time() -> None:
    triple = (Triple(*TERMS[:3]),)
    assert block_of([Event(time, triples=triple) for time in (1, 1, 2)]).is_ordered
    assert not block_of([Event(time, triples=triple) for time in (1, 3, 2)]).is_ordered
    assert block_of([]).is_ordered
