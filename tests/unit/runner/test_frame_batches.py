"""The rows of a batch of frames: in the order of time, whatever partitions and chunks they come in."""

from __future__ import annotations

from random import Random

import pytest
from tests.support.graph_events import graph_block

from anabranch.formats import chunks
from anabranch.formats.events import event_to_dict
from anabranch.model.block import TripleBlock
from anabranch.model.event import Event
from anabranch.model.terms import Iri, Triple
from anabranch.model.values import Node
from anabranch.runner.frame_batches import in_order
from anabranch.runner.job import Job
from anabranch.runner.rows import CELL, PackedRow
from anabranch.sources.base import Decoding, OpenedStream
from anabranch.sources.frames import FrameRows, FrameSource

JOB = Job((OpenedStream(FrameSource("s", FrameRows("texts", ("value",))), Decoding("s"), ""),), ())


def packed(draw: Random, kind: str, events: list[Event]) -> bytes:
    if kind == "triples":
        block = TripleBlock.of(events)
        assert block is not None
        return chunks.pack(block)
    return chunks.pack(graph_block(events) if kind == "blocks" or draw.random() < 0.5 else events)


def drawn(draw: Random, kind: str, partition: int, number: int) -> list[Event]:
    begin = draw.randrange(1000)
    times = [begin + draw.randrange(300) for _ in range(draw.randint(1, 30))]
    if draw.random() < 0.5:
        times.sort()
    name = f"{partition}.{number}"
    if kind == "triples":
        return [Event(at, triples=(Triple(Iri(f"urn:{name}"), Iri("urn:p"), Iri(f"urn:{at}")),)) for at in times]
    return [Event(at, nodes=(Node(f"{name}/{place}", ("A",), {"x": at}),)) for place, at in enumerate(times)]


@pytest.mark.parametrize("kind", ["triples", "blocks", "mixed"])
@pytest.mark.parametrize("seed", range(20))
def test_the_events_of_all_partitions_come_in_the_order_of_time(kind: str, seed: int) -> None:
    draw = Random(f"{kind}{seed}")
    by_place = {
        (partition, number): drawn(draw, kind, partition, number)
        for partition in range(draw.randint(1, 4))
        for number in range(draw.randint(1, 3))
    }
    rows = [
        PackedRow(CELL, "chunk", packed(draw, kind, events), "s", "", partition, number)
        for (partition, number), events in by_place.items()
    ]
    everything = [event for place in sorted(by_place) for event in by_place[place]]
    draw.shuffle(rows)
    control, *ordered = in_order([*rows, PackedRow(CELL, "malformed", b"", "s", count=1)], JOB, is_over=False)
    assert control.kind == "control"
    assert [row.kind for row in ordered].count("malformed") == 1
    found = [row for row in ordered if row.kind == "chunk"]
    assert [(row.place, row.number) for row in found] == sorted((row.place, row.number) for row in found)
    events = [event for row in found for event in row.events or ()]
    assert [event.event_time for event in events] == sorted(event.event_time for event in everything)
    said = sorted(map(repr, map(event_to_dict, everything)))
    assert sorted(map(repr, map(event_to_dict, events))) == said
    assert sorted(repr(event_to_dict(event)) for row in found for event in chunks.unpack(row.data)) == said


def test_a_batch_that_ends_the_streams_says_so() -> None:
    (control,) = in_order([], JOB, is_over=True)
    assert control.data == b'{"splits": {"s": [""]}, "idle": {}, "closed": ["s"], "end": true}'
