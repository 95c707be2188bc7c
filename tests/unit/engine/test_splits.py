"""Splits of a stream: each its own order and watermark, one buffer; and what holds the stream back."""

from __future__ import annotations

import pytest

from anabranch.engine.engine import Engine, LatePolicy
from anabranch.engine.progress import rank
from anabranch.engine.session import Session
from anabranch.engine.stream import BEGINNING, END, StreamBuffer
from anabranch.errors import EngineError
from anabranch.model.event import Event
from anabranch.model.temporal import parse_duration
from anabranch.model.values import Relationship

SECOND = 1_000_000


def split_stream(*splits: str, lateness: str | None = None, late: LatePolicy | None = None) -> StreamBuffer:
    stream = StreamBuffer("s", None if lateness is None else parse_duration(lateness), late)
    stream.set_splits(splits)
    return stream


def named(event_time: int, name: str) -> Event:
    return Event(event_time, (), (Relationship(name, "T", 1, 2),))


def ids(stream: StreamBuffer) -> list[object]:
    return [one.id for event in stream.state().events or () for one in event.relationships]


def test_the_slowest_split_holds_the_watermark() -> None:
    stream = split_stream("0", "1")
    stream.push(Event(10), "0")
    assert stream.open_from == BEGINNING
    stream.push(Event(7), "1")
    assert stream.open_from == 7
    stream.push(Event(12), "1")
    assert stream.open_from == 10


def test_an_event_is_late_by_its_own_split_only() -> None:
    stream = split_stream("0", "1")
    assert stream.push(Event(100), "0")
    assert stream.push(Event(5), "1")
    assert stream.push(Event(6), "1")
    assert not stream.push(Event(5), "1")
    assert not stream.push(Event(99), "0")
    assert (stream.late, stream.open_from) == (2, 6)


def test_a_removed_split_holds_nothing_back_and_comes_back_with_the_watermark_of_its_stream() -> None:
    stream = split_stream("0", "1", "2")
    stream.push(Event(10), "0")
    stream.push(Event(20), "1")
    stream.set_splits(["0", "1"])
    assert (stream.open_from, stream.splits) == (10, ("0", "1"))
    stream.set_splits(["0", "1", "2"])
    assert not stream.push(Event(9), "2")
    assert stream.push(Event(10), "2")


def test_a_new_split_on_a_running_stream_never_takes_the_watermark_back() -> None:
    stream = split_stream("0")
    stream.push(Event(50), "0")
    stream.set_splits(["0", "1"])
    assert stream.open_from == 50
    stream.push(Event(80), "0")
    assert stream.open_from == 50
    assert not stream.push(Event(49), "1")


def test_an_advance_moves_silent_splits_too() -> None:
    stream = split_stream("0", "1")
    stream.push(Event(10), "0")
    stream.advance(6)
    assert stream.open_from == 7
    assert not stream.push(Event(6), "1")
    assert stream.push(Event(7), "1")


def test_without_any_split_only_an_advance_moves_the_stream() -> None:
    stream = split_stream()
    assert stream.open_from == BEGINNING
    stream.advance(3)
    assert stream.open_from == 4
    stream.set_splits(["0"])
    assert not stream.push(Event(3), "0")


def test_a_split_that_nobody_declared_is_refused() -> None:
    stream = split_stream("0", "1")
    with pytest.raises(EngineError, match=r"stream `s` has no split '7'; declare it with set_splits\(\).*'0', '1'"):
        stream.push(Event(1), "7")
    stream.set_splits([])
    with pytest.raises(EngineError, match="splits: none"):
        stream.push(Event(1), "0")


def test_numbers_rank_as_numbers_and_before_names() -> None:
    names = ["b", "10", "2", "", "ü", "½", "007", "7"]
    assert sorted(names, key=rank) == ["2", "007", "7", "10", "", "b", "½", "ü"]


def test_events_of_one_instant_stand_in_the_order_of_splits_then_of_arrival() -> None:
    for order in (["10", "2", "10", "2"], ["2", "2", "10", "10"], ["10", "10", "2", "2"]):
        stream = split_stream("2", "10")
        counts = {"2": 0, "10": 0}
        for split in order:
            counts[split] += 1
            stream.push(named(5, f"{split}/{counts[split]}"), split)
        assert ids(stream) == ["2/1", "2/2", "10/1", "10/2"]


@pytest.mark.parametrize("count", [30, 3000])
def test_few_and_many_events_from_the_past_of_others_find_their_places(count: int) -> None:
    stream = split_stream("0", "1", "2")
    for split in ("1", "0", "2"):
        for place in range(count):
            stream.push(named(place // 3, f"{split}/{place}"), split)
    expected = sorted((place // 3, int(split), place) for place in range(count) for split in "012")
    assert ids(stream) == [f"{split}/{place}" for _, split, place in expected]


def test_ids_count_by_split() -> None:
    stream = split_stream("0", "1")
    for split in ("0", "1", "1"):
        stream.push(Event(1, (), (Relationship(None, "T", 1, 2),)), split)
    assert ids(stream) == ["~0:0.0", "~1:0.0", "~1:1.0"]
    assert {name: stream.sequences[name] for name in ("0", "1")} == {"0": 1, "1": 2}


def test_the_horizon_counts_from_the_splits_newest_event_or_from_the_advance() -> None:
    stream = split_stream("0", "1", late=LatePolicy("correct", parse_duration("PT10S")))
    stream.push(Event(100 * SECOND), "0")
    stream.push(Event(50 * SECOND), "1")
    assert [stream.push(Event(time * SECOND), "0") for time in (90, 89)] == [True, False]
    assert stream.push(Event(40 * SECOND), "1")
    assert (stream.reach, stream.late, stream.corrected) == (40 * SECOND, 1, 2)
    stream.advance(100 * SECOND)
    assert not stream.push(Event(89 * SECOND), "1")
    assert stream.push(Event(90 * SECOND), "1")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("forget",), "no policy `forget` for late events; there are drop, correct"),
        (("drop", parse_duration("PT1S")), "needs the policy `correct`"),
        (("correct", parse_duration("-PT1S")), "the horizon of corrections must be longer than nothing"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(arguments: tuple[object, ...], reason: str) -> None:
    with pytest.raises(EngineError, match=reason):
        LatePolicy(*arguments)  # type: ignore[arg-type]


def test_a_policy_shows_as_people_say_it() -> None:
    assert [str(LatePolicy()), str(LatePolicy("correct", parse_duration("PT1H")))] == ["drop", "correct within PT1H"]


def test_a_stream_with_splits_comes_back_from_its_state() -> None:
    stream = split_stream("2", "10", lateness="PT5S", late=LatePolicy("correct"))
    for split, time in (("10", 9), ("2", 9), ("10", 7), ("2", 1)):
        stream.push(Event(time * SECOND), split)
    stream.set_splits(["2"])
    assert StreamBuffer.from_state(stream.state(), LatePolicy("correct")).state() == stream.state()


def test_a_state_of_an_earlier_time_is_refused() -> None:
    stream = split_stream("0")
    stream.push(Event(1), "0")
    earlier = stream.state(events=False)
    stream.push(Event(2), "0")
    with pytest.raises(EngineError, match="is ahead of the state; load the state into a new engine"):
        stream.load(earlier, LatePolicy())


def test_refilled_events_stand_where_they_stood_and_move_nothing() -> None:
    stream = split_stream("a", "b")
    for time, split in ((3, "a"), (3, "b"), (4, "a"), (9, "b"), (9, "a")):
        stream.push(named(time, f"{split}{time}"), split)
    stream.forget_before(4)
    other = StreamBuffer("s")
    other.load(stream.state(events=False), LatePolicy())
    other.refill("b", 0, [named(3, "b3"), named(9, "b9")])
    other.refill("a", 0, [named(3, "a3"), named(4, "a4"), named(9, "a9")])
    assert ids(other) == ["a4", "a9", "b9"]
    assert other.state() == stream.state()


# --- through the engine -----------------------------------------------------------------------------------------------

QUERY = """REGISTER QUERY q STARTING AT 1970-01-01T00:00Z {
  MATCH ()-[r]->() WITHIN PT10S EMIT r.name AS name ON ENTERING EVERY PT5S }"""


def test_answers_wait_for_every_split_and_do_not_depend_on_their_interleaving() -> None:
    session = Session.local()
    query = session.register(QUERY)
    session.set_splits("s", ["0", "1"])
    session.push("s", Event(11 * SECOND, (), (Relationship(1, "T", 1, 2, {"name": "ahead"}),)), split="0")
    assert query.instants == 0
    session.push("s", Event(2 * SECOND, (), (Relationship(2, "T", 1, 2, {"name": "behind"}),)), split="1")
    assert query.instants == 1
    session.push("s", Event(12 * SECOND, (), (Relationship(3, "T", 1, 2, {"name": "last"}),)), split="1")
    session.finish()
    answers = [(answer.at // SECOND, [row[0] for row in answer.rows]) for answer in session.take()]
    assert answers == [(5, ["behind"]), (15, ["ahead", "last"])]


def test_removing_a_silent_split_evaluates_what_it_held_back() -> None:
    session = Session.local()
    query = session.register(QUERY)
    session.set_splits("s", ["0", "1"])
    session.push("s", Event(11 * SECOND), split="0")
    session.set_splits("s", "0")
    assert query.instants == 3


def test_an_advance_of_one_stream_leaves_the_others() -> None:
    engine = Engine()
    for name in ("a", "b"):
        engine.declare_stream(name)
    engine.advance(10, "a")
    assert (engine.stream("a").open_from, engine.stream("b").open_from) == (11, BEGINNING)
    engine.advance(20)
    assert (engine.stream("a").open_from, engine.stream("b").open_from) == (21, 21)
    engine.close_stream("a")
    engine.set_splits("a", ["0"])
    assert engine.stream("a").open_from == END


def test_a_stream_that_does_not_exist_cannot_be_split_or_advanced_where_streams_are_fixed() -> None:
    session = Session.local(streams=["rides"])
    with pytest.raises(EngineError, match="no stream `ride`; did you mean `rides`"):
        session.set_splits("ride", ["0"])
    with pytest.raises(EngineError, match="no stream `ride`"):
        session.advance(0, "ride")


def test_after_a_restart_events_of_one_instant_still_stand_in_the_order_of_their_splits() -> None:
    engine = Engine()
    engine.declare_stream("s")
    engine.set_splits("s", ["0", "1"])
    engine.push("s", [named(5, "zero")], "0")
    engine = Engine.restore(engine.checkpoint(), lambda _: pytest.fail("there is no query"))
    engine.push("s", [named(5, "one")], "1")
    assert ids(engine.stream("s")) == ["zero", "one"]


def test_after_a_restart_a_stream_that_is_new_stands_where_all_were_advanced_to() -> None:
    engine = Engine()
    engine.advance(100)
    engine = Engine.restore(engine.checkpoint(), lambda _: pytest.fail("there is no query"))
    assert engine.push("s", [Event(100)]).late
    assert not engine.push("s", [Event(101)]).late
