"""A buffer that is given blocks is, whatever happens to it, the buffer that is given their events one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

import pytest
from tests.support.graph_events import ListedEvents, graph_block, graph_event

from anabranch.engine.engine import Engine
from anabranch.engine.progress import LatePolicy
from anabranch.engine.stream import StreamBuffer
from anabranch.errors import EngineError
from anabranch.model.block import TripleBlock
from anabranch.model.event import Event
from anabranch.model.graph_block import EventBlock, GraphBlock
from anabranch.model.temporal import parse_duration
from anabranch.model.terms import Iri, Literal, Triple
from anabranch.model.windows import bounds

LATENESSES = (None, "PT0.000003S", "PT0.00001S", "P1M")
SPLITS = ("", "2", "10", "b")


def event(random: Random, time: int) -> Event:
    """An event of one triple."""
    return Event(time, triples=(Triple(Iri(f"n:{random.randrange(9)}"), Iri("n:p"), Literal(str(random.random()))),))


Make = Callable[[Random, int], Event]
MAKERS: dict[str, Make] = {"triples": event, "graphs": graph_event}


def block_of(events: Sequence[Event]) -> EventBlock | None:
    """The events as a block; None when they are of both models."""
    if any(one.triples for one in events):
        return TripleBlock.of(events)
    return graph_block(events)


@dataclass
class Twins:
    """Two buffers of one history."""

    kinds: tuple[str, ...]

    random: Random
    late: LatePolicy
    by_events: StreamBuffer = field(init=False)
    by_blocks: StreamBuffer = field(init=False)
    clock: int = 0
    blocks_taken: int = 0

    def __post_init__(self) -> None:
        lateness = self.random.choice(LATENESSES)
        duration = None if lateness is None else parse_duration(lateness)
        self.by_events = StreamBuffer("s", duration, self.late)
        self.by_blocks = StreamBuffer("s", duration, self.late)
        names = self.random.sample(SPLITS, self.random.randint(1, 3))
        self.each(lambda stream: stream.set_splits(names))
        self.names = names

    def each(self, act: Callable[[StreamBuffer], object]) -> None:
        act(self.by_events)
        act(self.by_blocks)

    def push(self) -> None:
        random = self.random
        split = random.choice(self.names)
        count = random.choice([1, 2, 5, 40])
        times = [self.clock + random.randrange(count + 1) for _ in range(count)]
        if random.random() < 0.7:
            times.sort()
        if random.random() < 0.2:
            times[0] -= random.randrange(30)
        self.clock = max(self.clock, *times) - random.choice([0, 0, 2])
        make = MAKERS[random.choice(self.kinds)]
        events = [make(random, time) for time in times]
        if random.random() < 0.15:  # not all that comes is of one model
            other = graph_event if make is event else event
            events[-1] = other(random, times[-1])
        accepted = [self.by_events.push(one, split) for one in events]
        block = block_of(events)
        if block is not None and self.by_blocks.push_block(block, split):
            self.blocks_taken += 1
            assert all(accepted)
        else:
            assert [self.by_blocks.push(one, split) for one in events] == accepted

    def step(self) -> None:
        random = self.random
        match random.randrange(12):
            case 0:
                self.each(lambda stream: stream.forget_before(min(stream.open_from, self.clock) - 5))
            case 1:
                self.each(lambda stream: stream.advance(self.clock - 6))
            case 2:
                self.reload()
            case 3:
                self.ask()
            case _:
                self.push()

    def reload(self) -> None:
        """Both come back from a state: with all events, or without them and with what a third buffer holds."""
        state = self.by_events.state()
        assert self.by_blocks.state() == state
        if self.random.random() < 0.5:
            self.by_blocks = StreamBuffer.from_state(state, self.late)
            self.by_events = StreamBuffer.from_state(state, self.late)
            return
        bare = self.by_blocks.state(events=False)
        again = StreamBuffer.from_state(bare, self.late)
        assert state.events is not None
        by_split: dict[str, list[Event]] = {}
        for one, split in zip(state.events, state.event_splits, strict=True):
            by_split.setdefault(split, []).append(one)
        for split, events in by_split.items():
            block = block_of(events)
            cut = self.random.randint(0, len(events))
            for part in (events[:cut], events[cut:]) if block is None else (block[:cut], block[cut:]):
                again.refill(split, 0, part)
        self.by_blocks = again

    def ask(self) -> None:
        """What queries see is the same: positions, events, times and counts of triples."""
        random, one, other = self.random, self.by_events, self.by_blocks
        window = bounds("trailing", self.clock - random.randrange(9), parse_duration("PT0.000012S"), 0)
        places = one.positions(window)
        # Positions count what was ever accepted; after a reload the counts begin anew, for both alike or for one alone.
        apart = other.positions(window)[0] - places[0]
        assert other.positions(window) == (places[0] + apart, places[1] + apart)
        assert other.first_position - one.first_position == apart
        first, stop = places
        assert other.between(first + apart, stop + apart) == one.between(first, stop)
        assert [event for run in other.runs(first + apart, stop + apart) for event in run] == one.between(first, stop)
        assert other.time_at(first + apart) == one.time_at(first)
        assert other.triples_before(stop + apart) == one.triples_before(stop)
        count = random.randint(1, 9)
        begin, skip = one.back(stop, count)
        assert other.back(stop + apart, count) == (begin + apart, skip)
        times, sizes = other.arrivals(first + apart, stop + apart)
        assert times.tolist() == [event.event_time for event in one.between(first, stop)]
        assert sizes.tolist() == [one.size_of(event) for event in one.between(first, stop)]

    def agree(self) -> None:
        assert len(self.by_blocks) == len(self.by_events)
        assert self.by_blocks.state() == self.by_events.state()
        assert self.by_blocks.open_from == self.by_events.open_from


@pytest.mark.parametrize("kinds", [("triples",), ("graphs",), ("triples", "graphs")], ids="-".join)
@pytest.mark.parametrize("policy", ["drop", "correct"])
def test_blocks_are_taken_in_as_their_events_would_be_one_by_one(policy: str, kinds: tuple[str, ...]) -> None:
    taken = 0
    for number in range(200):
        random = Random(f"twins/{policy}/{number}")
        twins = Twins(kinds, random, LatePolicy(policy))  # type: ignore[arg-type]
        for _ in range(random.randint(1, 25)):
            twins.step()
            if random.random() < 0.3:
                twins.ask()
        twins.agree()
        twins.each(lambda stream: stream.forget_before(10**6))
        assert len(twins.by_blocks) == 0
        taken += twins.blocks_taken
    assert taken > 500


def test_a_block_in_order_stays_a_block() -> None:
    stream = StreamBuffer("s")
    block = TripleBlock.of([event(Random(1), time) for time in range(100)])
    assert block is not None
    assert stream.push_block(block[:50])
    assert stream.push_block(block[50:])
    runs = list(stream.runs(10, 90))
    assert [type(run) for run in runs] == [TripleBlock, TripleBlock]
    assert [event for run in runs for event in run] == block.events()[10:90]


def test_blocks_of_two_splits_are_merged_into_one_block() -> None:
    stream = StreamBuffer("s")
    stream.set_splits(["0", "1"])
    events = [event(Random(2), time // 3) for time in range(300)]
    for split in ("1", "0"):
        block = TripleBlock.of(events[int(split) :: 2])
        assert block is not None
        assert stream.push_block(block, split)
    (run,) = stream.runs(0, 300)
    assert isinstance(run, TripleBlock)
    assert run.events() == sorted(events, key=lambda one: (one.event_time, events.index(one) % 2)), (
        "of one instant, those of split 0 come first"
    )


def test_a_block_with_a_late_event_is_not_taken_in() -> None:
    stream = StreamBuffer("s")
    stream.advance(10)
    block = TripleBlock.of([event(Random(3), time) for time in (10, 11, 12)])
    assert block is not None
    assert not stream.push_block(block)
    assert (len(stream), stream.sequences[""], stream.open_from) == (0, 0, 11)
    assert stream.push_block(block[1:])


def test_blocks_of_graph_events_of_two_splits_are_merged_without_reading_an_event() -> None:
    stream = StreamBuffer("s")
    stream.set_splits(["0", "1"])
    sources = [ListedEvents(graph_event(Random(time), time) for time in range(first, 90, 2)) for first in (0, 1)]
    for _ in range(3):
        for split, source in enumerate(sources):
            block = GraphBlock.of(source)
            done = stream.sequences.get(str(split), 0)
            assert stream.push_block(block[done : done + 15], str(split))
        assert stream.positions(bounds("trailing", 90, parse_duration("PT1S"), 0))[0] == 0  # settles what waits
    runs = list(stream.runs(0, 90))
    assert all(isinstance(run, GraphBlock) for run in runs)
    assert [source.read for source in sources] == [0, 0]
    events = [event for run in runs for event in run]
    assert [event.event_time for event in events] == list(range(90))
    made = [one.id for event in events for one in event.relationships if str(one.id).startswith("~")]
    assert made
    assert {str(name)[:3] for name in made} == {"~0:", "~1:"}


def test_a_block_that_is_no_run_of_its_source_is_not_taken_in_as_it_is() -> None:
    stream = StreamBuffer("s")
    block = graph_block(graph_event(Random(time), time) for time in range(5)).without([2])
    assert not stream.push_block(block)
    assert stream.sequences[""] == 0


def test_a_closed_stream_takes_no_block() -> None:
    stream = StreamBuffer("s")
    stream.close()
    block = TripleBlock.of([event(Random(4), 1)])
    assert block is not None
    with pytest.raises(EngineError, match="closed"):
        stream.push_block(block)


@pytest.mark.parametrize(("policy", "late"), [("drop", 2), ("correct", 0)])
def test_a_late_event_among_many_is_the_only_one_that_is_read(policy: str, late: int) -> None:
    times = [*range(100, 140), 3, *range(140, 180), 120, *range(180, 200)]
    source = ListedEvents(graph_event(Random(place), time) for place, time in enumerate(times))
    engine = Engine(late=LatePolicy(policy))  # type: ignore[arg-type]
    pushed = engine.push("s", GraphBlock.of(source))
    assert (pushed.accepted, len(pushed.late), pushed.corrected) == (102 - late, late, 2 - late)
    assert pushed.late_places == ((40, 81) if late else ())
    assert source.read == 2
    singly = Engine(late=LatePolicy(policy))  # type: ignore[arg-type]
    assert singly.push("s", source.listed) == pushed
    assert engine.state() == singly.state()


def test_a_block_with_many_late_events_is_pushed_one_by_one() -> None:
    times = [100, 99, 101, 98, 102, 97] * 5
    engine, singly = Engine(), Engine()
    events = [graph_event(Random(place), time) for place, time in enumerate(times)]
    assert engine.push("s", graph_block(events)) == singly.push("s", events)
    assert engine.state() == singly.state()
