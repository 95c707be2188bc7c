"""Events whose clock is far ahead: those that others confirm are taken in, those that are alone are set aside."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.engine import checkpoint
from anabranch.engine.compiled import recompile
from anabranch.engine.engine import Engine
from anabranch.engine.session import Session
from anabranch.engine.timing import AheadBound, spelled
from anabranch.errors import EngineError
from anabranch.model.block import TripleBlock
from anabranch.model.event import Event
from anabranch.model.terms import Iri, Triple
from anabranch.model.values import Node

HOUR = 3_600_000_000
DAY = 24 * HOUR


def event(hour: float) -> Event:
    return Event(int(hour * HOUR), (Node(1),))


def engine(ahead: AheadBound | None = None, now: float | None = None) -> Engine:
    made = Engine(fixed_streams=True)
    made.declare_stream("s", None, None, ahead or AheadBound())
    made.stream("s").now = None if now is None else int(now * HOUR)
    return made


def fate(hours: Sequence[float], now: float | None = None, ahead: AheadBound | None = None) -> tuple[list[float], ...]:
    """The hours of the events that are taken in, in their order, that are late, and that are set aside."""
    made = engine(ahead, now)
    pushed = [made.push("s", [event(hour)]) for hour in hours]
    pushed += made.settle_doubts("s", is_over=True).values()
    buffer = made.stream("s")
    taken = [one.event_time / HOUR for one in buffer.between(0, len(buffer))]
    found = [[one.event_time / HOUR for push in pushed for one in getattr(push, kind)] for kind in ("late", "ahead")]
    assert buffer.set_aside == len(found[1])
    assert len(taken) + len(found[0]) + len(found[1]) == len(hours), "none is lost"
    return taken, *found


def test_one_event_of_far_ahead_is_set_aside_and_those_behind_it_count() -> None:
    hours = [*range(10), 70_000.0, *range(10, 40)]
    assert fate(hours) == (list(range(40)), [], [70_000.0])


def test_after_a_quiet_weekend_nothing_is_lost() -> None:
    hours = [1, 2, 65, 66, 67, 68]
    assert fate(hours) == (hours, [], [])


def test_the_last_event_after_a_gap_is_taken_in_and_one_of_another_decade_is_not() -> None:
    assert fate([1, 2, 65]) == ([1, 2, 65], [], [])
    assert fate([1, 2, 65, 70_000]) == ([1, 2, 65], [], [70_000])


def test_a_wrong_clock_among_events_after_a_gap_is_found_out() -> None:
    assert fate([1, 70_000, 65, 66, 67, 68, 69]) == ([1, 65, 66, 67, 68, 69], [], [70_000])


def test_wrong_clocks_here_and_there_never_confirm_each_other() -> None:
    hours = [value for hour in range(12) for value in (hour, 70_000 + hour)]
    taken, late, ahead = fate(hours)
    assert (taken, late, len(ahead)) == (list(range(12)), [], 12)


def test_events_that_are_far_apart_confirm_each_other() -> None:
    hours = [0, 100, 200, 300, 400]
    assert fate(hours) == (hours, [], [])


def test_by_the_wall_clock_one_that_is_ahead_is_set_aside_at_once() -> None:
    made = engine(now=100)
    assert made.push("s", [event(99), event(101.5)]).ahead == (event(101.5),)
    assert made.push("s", [event(100.5)]).accepted == 1


def test_by_the_wall_clock_an_event_of_now_is_believed_after_any_gap() -> None:
    made = engine(now=5000)
    assert made.push("s", [event(1)]).accepted == 1
    assert made.push("s", [event(4999.5)]).accepted == 1


def test_a_bound_that_was_given_holds_for_the_last_event_too() -> None:
    bound = AheadBound.parse("PT1H")
    assert fate([1, 2, 3.5], ahead=bound) == ([1, 2], [], [3.5])
    assert fate([1, 2, 3.5, 3.6, 3.7], ahead=bound) == ([1, 2, 3.5, 3.6, 3.7], [], [])


@pytest.mark.parametrize("text", ["soon", "P1M", "-PT1H", "PT0S"])
def test_a_bound_must_be_a_length_of_time(text: str) -> None:
    with pytest.raises(EngineError):
        AheadBound.parse(text)


def test_the_text_none_bounds_nothing() -> None:
    assert AheadBound.parse("none") is None
    assert str(AheadBound()) == spelled(DAY)


HOURS = st.lists(st.sampled_from([0, 1, 2, 3, 50, 51, 100, 9000, 70_000, 70_001]), max_size=20)


@given(HOURS, st.lists(st.integers(0, 19), max_size=5), st.sampled_from([None, 60, 69_999.5]))
def test_how_events_are_cut_and_when_one_restarts_changes_nothing(
    hours: list[int], cuts: list[int], now: float | None
) -> None:
    expected = fate(hours, now)
    made = engine(now=now)
    late, ahead = [], []
    bounds = sorted({0, len(hours), *(cut for cut in cuts if cut < len(hours))})
    for first, stop in itertools.pairwise(bounds):
        pushed = made.push("s", [event(hour) for hour in hours[first:stop]])
        late += pushed.late
        ahead += pushed.ahead
        data, made = made.checkpoint(), engine(now=now)
        made.load(checkpoint.unpack(data), recompile)
    for settled in made.settle_doubts("s", is_over=True).values():
        late += settled.late
        ahead += settled.ahead
    buffer = made.stream("s")
    taken = [one.event_time / HOUR for one in buffer.between(0, len(buffer))]
    assert (taken, *([one.event_time / HOUR for one in some] for some in (late, ahead))) == expected


@given(HOURS, st.sampled_from([None, 60]))
def test_a_block_of_triples_is_judged_as_its_events_are(hours: list[int], now: float | None) -> None:
    events = [Event(hour * HOUR, triples=(Triple(Iri("a"), Iri("b"), Iri(str(n))),)) for n, hour in enumerate(hours)]
    block = TripleBlock.of(events) if events else None
    one, other = engine(now=now), engine(now=now)
    pushed = [one.push("s", [single]) for single in events]
    at_once = other.push("s", block if block is not None else [])
    assert [e for push in pushed for e in push.ahead] == list(at_once.ahead)
    assert [e for push in pushed for e in push.late] == list(at_once.late)
    assert one.stream("s").sequences == other.stream("s").sequences
    assert one.stream("s").open_from == other.stream("s").open_from


@given(HOURS)
def test_jumps_past_the_widest_window_are_counted_alike_for_events_and_blocks(hours: list[int]) -> None:
    query = "REGISTER QUERY q AS SELECT * FROM STREAM <s> [RANGE 2h STEP 1h] WHERE { ?a ?b ?c }"
    events = [Event(hour * HOUR, triples=(Triple(Iri("a"), Iri("b"), Iri(str(n))),)) for n, hour in enumerate(hours)]
    found = []
    for pushes in ([[one] for one in events], [TripleBlock.of(events)] if events else []):
        session = Session.local(["s"])
        session.register(query)
        for push in pushes:
            session._engine.push("s", push)
        found.append(session._engine.stream("s").jumps)
    reached = list(accumulate(hours, max))
    jumps = [(a * HOUR, b * HOUR) for a, b in pairwise(reached) if b - a > 2]
    assert found == [(len(jumps), jumps[-1] if jumps else None)] * 2
