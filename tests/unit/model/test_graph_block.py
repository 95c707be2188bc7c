"""A block of graph events is the list of its events, however it is cut, joined and sorted."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from tests.support.graph_events import ListedEvents, graph_block, graph_event

from anabranch.model.block import TripleBlock
from anabranch.model.event import Event
from anabranch.model.graph_block import GraphBlock, joined, times_of, with_ids, without
from anabranch.model.terms import Iri, Triple


def events_of(random: Random, count: int) -> list[Event]:
    return [graph_event(random, random.randrange(50)) for _ in range(count)]


@pytest.mark.parametrize("number", range(30))
def test_blocks_are_cut_joined_and_sorted_as_lists_are(number: int) -> None:
    random = Random(number)
    listed: list[list[Event]] = []
    blocks: list[GraphBlock] = []
    for split in ("", "a"):
        events, first = events_of(random, 12), random.randrange(9)
        cut = random.randrange(12)
        named = graph_block(events)[cut:].named(split, first)
        listed.append([with_ids(event, split, first + place) for place, event in enumerate(events[cut:])])
        blocks.append(named)
    whole, block = [*listed[0], *listed[1]], GraphBlock.joined(blocks)
    assert block.events() == list(block) == whole
    assert [block[place] for place in range(len(block))] == whole
    order = np.array(random.sample(range(len(whole)), len(whole)), np.intp)
    assert block.sorted_by(order).events() == [whole[place] for place in order]
    gone = random.sample(range(len(whole)), 1)
    assert list(without(block, gone)) == without(whole, gone)
    assert times_of(block).tolist() == times_of(whole).tolist()


def test_a_joined_block_keeps_only_the_sources_that_it_has_events_of() -> None:
    blocks = [graph_block(events_of(Random(number), 4)) for number in range(3)]
    two = GraphBlock.joined(blocks[:2])
    again = GraphBlock.joined([two[4:], blocks[2]])
    assert [part.source for part in again.parts] == [blocks[1].parts[0].source, blocks[2].parts[0].source]
    assert again.events() == [*blocks[1], *blocks[2]]


def test_blocks_of_two_kinds_are_not_joined() -> None:
    triples = TripleBlock.of([Event(1, triples=(Triple(Iri("n:a"), Iri("n:p"), Iri("n:b")),))])
    assert triples is not None
    assert joined([triples, graph_block([Event(1)])]) is None
    assert joined([]) is None
    assert isinstance(joined([triples, triples]), TripleBlock)


def test_only_a_run_of_one_source_is_named() -> None:
    block = GraphBlock.of(ListedEvents(events_of(Random(1), 5)))
    assert block[1:4].is_run
    assert not block.without([1]).is_run
    with pytest.raises(ValueError, match="run of one source"):
        block.without([1]).named("", 0)
