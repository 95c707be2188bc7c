"""Blocks that are held for long are folded up, and their events stay the same."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from tests.properties.test_blocks import Make, arrow_block, lines_block
from tests.support.graph_events import graph_event

from anabranch.engine import held
from anabranch.engine.folded import FoldedEvents
from anabranch.engine.held import HeldEvents
from anabranch.model.event import Event
from anabranch.model.graph_block import GraphBlock, GraphSource


@pytest.fixture(autouse=True)
def _few_recent_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held, "RECENT", 10)


def drawn(first: int) -> list[Event]:
    random = Random(first)
    return [graph_event(random, first + place) for place in range(5)]


def sources(events: HeldEvents) -> list[GraphSource]:
    runs = events.runs(0, len(events))
    return [part.source for run in runs if isinstance(run, GraphBlock) for part in run.parts]


@pytest.mark.parametrize("make", [lines_block, arrow_block])
def test_older_blocks_are_folded_up(make: Make) -> None:
    events, expected = HeldEvents(), []
    for first in range(0, 40, 5):
        block = make(drawn(first))
        assert isinstance(block, GraphBlock)
        events.append_block(block.named("0", first))
        expected += list(block.named("0", first))
    assert [isinstance(source, FoldedEvents) for source in sources(events)] == [True] * 5 + [False] * 3
    assert events.listed(0, len(events)) == expected
    assert events.listed(3, 12) == expected[3:12]


@pytest.mark.parametrize("make", [lines_block, arrow_block])
def test_a_folded_source_has_the_columns_and_the_chunk_of_its_source(make: Make) -> None:
    block = make(drawn(0))
    assert isinstance(block, GraphBlock)
    source = block.parts[0].source
    folded = FoldedEvents(source)
    assert len(folded) == len(source)
    assert folded.packed(np.arange(1, 3)) == source.packed(np.arange(1, 3))
    for mine, theirs in zip(folded.columns(("x",)).nodes.ids, source.columns(("x",)).nodes.ids, strict=True):
        assert len(mine) == len(theirs)
    assert folded.events([0, 4]) == source.events([0, 4])


def test_a_part_of_a_source_is_not_folded_up() -> None:
    events = HeldEvents()
    for first in range(0, 40, 5):
        block = lines_block(drawn(first))
        assert isinstance(block, GraphBlock)
        events.append_block(block[1:])
    assert not any(isinstance(source, FoldedEvents) for source in sources(events))


def test_events_that_are_forgotten_or_cut_off_are_not_kept() -> None:
    events = HeldEvents()
    blocks = [lines_block(drawn(first)) for first in range(0, 20, 5)]
    for block in blocks[:2]:
        events.append_block(block)
    events.forget(5)
    events.cut_off(2, [])
    for block in blocks[2:]:
        events.append_block(block)
    assert events.listed(0, len(events)) == [*list(blocks[1])[:2], *blocks[2], *blocks[3]]
    assert not any(isinstance(source, FoldedEvents) for source in sources(events))
