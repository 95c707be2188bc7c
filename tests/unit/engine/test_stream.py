"""One stream's buffer: order, lateness, ids, and what it forgets."""

from __future__ import annotations

import pytest

from anabranch.engine.stream import BEGINNING, StreamBuffer
from anabranch.errors import EngineError
from anabranch.model.event import Event
from anabranch.model.temporal import parse_duration
from anabranch.model.values import Relationship
from anabranch.model.windows import bounds

SECOND = 1_000_000


def times(stream: StreamBuffer) -> list[int]:
    return [event.event_time for event in stream.state().events]


def test_the_watermark_is_the_newest_event_and_equal_instants_are_in_time() -> None:
    stream = StreamBuffer("s")
    assert stream.open_from == BEGINNING
    assert [stream.push(Event(time)) for time in (5, 5, 7, 6)] == [True, True, True, False]
    assert (stream.open_from, stream.late, times(stream)) == (7, 1, [5, 5, 7])


def test_lateness_holds_the_watermark_back_and_puts_events_in_their_places() -> None:
    stream = StreamBuffer("s", parse_duration("PT5S"))
    pushed = [stream.push(Event(time * SECOND)) for time in (10, 6, 12, 7, 6)]
    assert pushed == [True, True, True, True, False]
    assert times(stream) == [6 * SECOND, 7 * SECOND, 10 * SECOND, 12 * SECOND]
    assert stream.open_from == 7 * SECOND


def test_events_of_one_instant_keep_their_order_of_arrival() -> None:
    stream = StreamBuffer("s", parse_duration("PT5S"))
    for kind, time in (("A", 5), ("B", 4), ("C", 5), ("D", 4)):
        stream.push(Event(time, (), (Relationship(kind, kind, 1, 2),)))
    assert [event.relationships[0].id for event in stream.state().events] == ["B", "D", "A", "C"]


def test_after_an_advance_events_up_to_then_are_late() -> None:
    stream = StreamBuffer("s")
    stream.advance(10)
    assert not stream.push(Event(10))
    assert stream.push(Event(11))


def test_relationships_without_ids_get_those_of_their_sequence_number() -> None:
    stream = StreamBuffer("s")
    stream.push(Event(1))
    stream.push(
        Event(2, (), (Relationship(None, "T", 1, 2), Relationship("r", "T", 1, 2), Relationship(None, "T", 1, 2)))
    )
    assert [one.id for one in stream.state().events[1].relationships] == ["~1.0", "r", "~1.2"]


def test_positions_stay_when_old_events_are_forgotten() -> None:
    stream = StreamBuffer("s")
    for time in range(10):
        stream.push(Event(time * SECOND))
    window = bounds("trailing", 8 * SECOND, parse_duration("PT3S"), 0)
    assert stream.positions(window) == (6, 9)
    for keep_from in (1, 4, 6):
        stream.forget_before(keep_from * SECOND)
        assert stream.positions(window) == (6, 9)
        assert [event.event_time for event in stream.between(6, 9)] == [6 * SECOND, 7 * SECOND, 8 * SECOND]
        assert stream.complete_from == (keep_from - 1) * SECOND + 1
    assert (len(stream), stream.time_at(9), stream.time_at(10)) == (4, 9 * SECOND, None)


def test_a_closed_stream_takes_nothing() -> None:
    stream = StreamBuffer("rides")
    stream.close()
    with pytest.raises(EngineError, match="stream `rides` is closed"):
        stream.push(Event(1))


def test_a_stream_comes_back_from_its_state() -> None:
    stream = StreamBuffer("s", parse_duration("PT5S"))
    for time in (1, 9, 7, 2):
        stream.push(Event(time * SECOND))
    stream.forget_before(5 * SECOND)
    assert StreamBuffer.from_state(stream.state()).state() == stream.state()
