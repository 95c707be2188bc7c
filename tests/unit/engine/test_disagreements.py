"""Disagreements on arrays are those of the union of the window's events, told in the same words."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest

from anabranch.delta.dictionary import Dictionary
from anabranch.engine.disagreements import Disagreements
from anabranch.engine.encoded_graphs import EncodedGraph
from anabranch.model.event import Event
from anabranch.model.graph_block import PROPERTIES
from anabranch.model.mapping import Mapping
from anabranch.model.union import WindowContent
from anabranch.model.values import Node, Relationship
from anabranch.planner.flow.feeds import GraphSlide


def _events(draw: random.Random) -> list[Event]:
    """Draw events that mostly agree, and differ in each of the ways that there are."""

    def properties() -> dict[str, Any]:
        found: dict[str, Any] = {"x": 1, "y": [1, "a"]}
        if draw.random() < 0.15:
            found["x"] = draw.choice((1.0, 2, True, None, "1"))
        if draw.random() < 0.05:
            del found["y"]
        if draw.random() < 0.2:
            found["z"] = None  # as if it were not there
        return dict(draw.sample(list(found.items()), len(found)))

    events = []
    for at in range(draw.randint(5, 60)):
        ids = draw.sample((1, 2, "1", "n"), draw.randint(0, 2))
        labels = [draw.sample(("A", "B"), 2 if draw.random() < 0.9 else 1) for _ in ids]
        nodes = [Node(node_id, tuple(own), properties()) for node_id, own in zip(ids, labels, strict=True)]
        links = [
            Relationship(link, "R" if draw.random() < 0.9 else "S", 1, 2 if draw.random() < 0.9 else 3, properties())
            for link in draw.choices(("r", "s", 7), k=draw.randint(0, 2))
        ]
        events.append(Event(at, tuple(nodes), tuple(links)))
    return events


@pytest.mark.parametrize("seed", range(150))
def test_disagreements_are_those_of_the_union(seed: int) -> None:
    draw = random.Random(seed)
    dictionary = Dictionary()
    encoded = EncodedGraph(dictionary, Mapping())
    encoded.ask(("x", PROPERTIES))
    disagreements, content = Disagreements(dictionary), WindowContent("strict")
    events = _events(draw)
    view: Any = SimpleNamespace(stream=SimpleNamespace(between=lambda first, stop: events[first:stop]))
    first = stop = 0
    while first < len(events):
        before, stop = stop, min(len(events), stop + draw.randint(0, 4))
        first = draw.randint(first, stop) if stop < len(events) else draw.choice((first, len(events)))
        begin = max(before, first)
        content.evict(first)
        for event in events[begin:stop]:
            content.add(event)
        rows = encoded._of_events(events[begin:stop], begin)
        differ = disagreements.slide(GraphSlide(*rows, first, encoded.label_sets, encoded.types, encoded.columns))
        expected = content.conflict()
        assert differ == (expected is not None)
        if expected is not None:
            assert disagreements.conflict(view, Mapping()) == expected
