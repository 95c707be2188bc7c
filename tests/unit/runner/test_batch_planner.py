"""The planner: offsets that pin a batch, ends of input, and silence."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from anabranch.engine.timing import IdlePolicy, StreamTiming
from anabranch.formats.deadletter import MalformedRecord
from anabranch.model.event import Event
from anabranch.runner.batch_planner import BatchPlanner
from anabranch.sources.base import Decode, Decoding, Limit, Offset, OpenedStream, Piece, Source


@dataclass
class Listed(Source):
    """A source that gives as many records as the test has let in, over its splits."""

    stream: str
    names: list[str] = field(default_factory=lambda: [""])
    there: dict[str, int] = field(default_factory=dict)
    end: bool = False
    began: int = 0
    committed: list[Offset] = field(default_factory=list)

    @property
    def finite(self) -> bool:
        return self.end

    def begin(self) -> Offset:
        self.began += 1
        return {"begun": self.began, **dict.fromkeys(self.names, 0)}

    def ahead(self, start: Offset, limit: Limit) -> Offset:
        most = limit.records or 1_000_000
        return {**start, **{name: min(self.there.get(name, 0), start.get(name, 0) + most) for name in self.names}}

    def pieces(self, start: Offset, end: Offset) -> list[Piece]:
        return [
            Piece(self.stream, name, 0, {"from": start.get(name, 0), "to": end[name]})
            for name in self.names
            if start.get(name, 0) != end[name]
        ]

    def read(self, piece: Piece, decode: Decode) -> Iterator[Event | MalformedRecord]:
        yield from ()

    def ended(self, offset: Offset) -> bool:
        return self.end and all(offset.get(name, 0) == self.there.get(name, 0) for name in self.names)

    def splits(self, offset: Offset) -> list[str]:
        return self.names

    def commit(self, offset: Offset) -> None:
        self.committed.append(offset)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def planner(
    *sources: Source, clock: Clock | None = None, idle: int | None = None, policy: str = "correct", **limit: Any
) -> BatchPlanner:
    streams = [OpenedStream(source, Decoding(source.stream), source.stream) for source in sources]
    timings = {source.stream: StreamTiming(idle, IdlePolicy.parse(policy)) for source in sources}
    return BatchPlanner(streams, "queries", Limit(**limit), timings, clock or Clock(), wall_clock=lambda: 7.0)


def test_nothing_new_gives_back_the_offset_it_was_given() -> None:
    plan = planner(Listed("a", there={"": 3}))
    first = plan.ahead(plan.initial())
    assert first["streams"]["a"][""] == 3
    assert plan.ahead(json.loads(json.dumps(first))) == first


def test_an_offset_pins_where_the_first_batch_begins() -> None:
    source = Listed("a", there={"": 3})
    plan = planner(source)
    first = plan.ahead(plan.initial())
    source.began = 41
    pieces = planner(source).pieces(plan.initial(), first)
    assert [piece.where for piece in pieces] == [{"from": 0, "to": 3}]
    assert first["begun"]["a"]["begun"] == 1
    assert source.began == 41, "a batch that is run again does not begin the source again"


def test_a_limit_cuts_the_input_into_batches_that_join() -> None:
    source = Listed("a", there={"": 7})
    plan = planner(source, records=3)
    offset = plan.initial()
    seen = []
    while (to := plan.ahead(offset)) != offset:
        seen += [(piece.where["from"], piece.where["to"]) for piece in plan.pieces(offset, to)]
        offset = to
    assert seen == [(0, 3), (3, 6), (6, 7)]


def test_the_batch_that_brings_the_last_record_says_that_the_input_has_ended() -> None:
    one, two = Listed("a", there={"": 2}, end=True), Listed("b", there={"": 5}, end=True)
    plan = planner(one, two, records=2)
    first = plan.ahead(plan.initial())
    assert (first["closed"], first["end"]) == (["a"], False)
    second = plan.ahead(first)
    assert not second["end"]
    third = plan.ahead(second)
    assert (third["closed"], third["end"]) == (["a", "b"], True)
    assert plan.ahead(third) == third
    said = {
        "splits": {},
        "silent": {},
        "idle": {},
        "closed": ["a", "b"],
        "end": True,
        "graphs": {},
        "now": 7_000_000,
        "clocks": {},
    }
    assert BatchPlanner.control(third) == said


def test_a_stream_that_closes_makes_a_batch_though_nothing_else_moves() -> None:
    one, two = Listed("a", there={"": 2}), Listed("b", there={"": 2})
    plan = planner(one, two)
    first = plan.ahead(plan.initial())
    assert plan.ahead(first) == first
    one.end = True
    second = plan.ahead(first)
    assert (second["closed"], second["end"]) == (["a"], False)
    assert plan.pieces(first, second) == []
    assert plan.ahead(second) == second


def test_an_empty_input_has_one_batch_that_ends_it() -> None:
    plan = planner(Listed("a", end=True))
    first = plan.ahead(plan.initial())
    assert first["end"]
    assert plan.pieces(plan.initial(), first) == []


def test_other_queries_make_a_batch_without_events() -> None:
    source = Listed("a", there={"": 2}, end=True)
    done = planner(source).ahead(BatchPlanner.initial())
    streams = [OpenedStream(source, Decoding("a"), "a")]
    again = BatchPlanner(streams, "other queries", Limit())
    more = again.ahead(done)
    assert more != done
    assert again.pieces(done, more) == []
    assert again.ahead(more) == more


@pytest.mark.parametrize("policy", ["correct", "wait", "advance"])
def test_a_silent_split_comes_back_with_its_next_record(policy: str) -> None:
    clock = Clock()
    source = Listed("a", names=["0", "1"], there={"0": 1, "1": 1})
    plan = planner(source, clock=clock, idle=10_000_000, policy=policy)
    offset = plan.ahead(plan.initial())
    assert offset["splits"] == {"a": ["0", "1"]}
    clock.now += 6
    source.there["0"] = 2
    offset = plan.ahead(offset)
    clock.now += 6
    offset = plan.ahead(offset)
    splits, silent = {
        "correct": (["0", "1"], {"a": ["1"]}),
        "wait": (["0", "1"], {}),
        "advance": (["0"], {}),
    }[policy]
    assert (offset["splits"], offset["silent"], offset["idle"]) == ({"a": splits}, silent, {})
    source.there["1"] = 2
    offset = plan.ahead(offset)
    assert (offset["splits"], offset["silent"]) == ({"a": ["0", "1"]}, {})


def test_a_stream_that_waits_is_said_to_be_idle_once() -> None:
    clock = Clock()
    plan = planner(Listed("a", there={"": 1}), clock=clock, idle=10_000_000, policy="wait")
    offset = plan.ahead(plan.initial())
    clock.now += 11
    offset = plan.ahead(offset)
    assert offset["idle"] == {"a": 1_000_000}
    clock.now += 60
    assert plan.ahead(offset) == offset


def test_a_silent_stream_moves_on_second_by_second() -> None:
    clock = Clock()
    source = Listed("a", there={"": 1})
    plan = planner(source, clock=clock, idle=10_000_000)
    offset = plan.ahead(plan.initial())
    clock.now += 9
    assert plan.ahead(offset) == offset
    clock.now += 2
    offset = plan.ahead(offset)
    assert offset["idle"] == {"a": 1_000_000}
    assert offset["splits"] == {"a": [""]}
    clock.now += 0.4
    assert plan.ahead(offset) == offset
    clock.now += 0.7
    assert plan.ahead(offset)["idle"] == {"a": 2_100_000}


def test_without_a_timeout_silence_is_never_noticed() -> None:
    clock = Clock()
    plan = planner(Listed("a", there={"": 1}), clock=clock)
    offset = plan.ahead(plan.initial())
    clock.now += 1e6
    assert plan.ahead(offset) == offset


def test_what_was_answered_is_told_to_the_sources() -> None:
    source = Listed("a", there={"": 3})
    plan = planner(source)
    plan.commit(plan.ahead(plan.initial()))
    assert source.committed == [{"begun": 1, "": 3}]
