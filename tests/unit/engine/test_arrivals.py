"""Instants that hang on what comes: every n-th triple, and the last."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.engine.rdf import P, asked, at, event, everything, last, lasting, objects, options, told

from anabranch.algebra.operators import MergedSource, Static
from anabranch.engine.engine import Engine
from anabranch.engine.query_options import QueryOptions
from anabranch.model.event import Event
from anabranch.model.temporal import parse_duration
from anabranch.model.terms import Iri, Literal, Triple
from anabranch.model.triples import TripleGraph


@pytest.mark.parametrize(
    ("arrivals", "expected"),
    [
        (0, ["10:04 f"]),
        (1, ["10:00 a", "10:01 b c", "10:03 d e", "10:04 f"]),
        (2, ["10:01 b c", "10:03 d e", "10:04 f"]),
        (4, ["10:03 d e", "10:04 f"]),
        (100, ["10:04 f"]),
    ],
)
def test_a_query_is_evaluated_when_each_nth_triple_has_come_and_at_the_end(arrivals: int, expected: list[str]) -> None:
    engine = Engine()
    registration = asked(objects(lasting("PT30S")), every=None, arrivals=arrivals)
    engine.register(registration, options(registration))
    engine.push("s", [event("10:00", "a"), event("10:01", "b", "c"), event("10:02"), event("10:03", "d", "e")])
    engine.push("s", [event("10:04", "f"), event("10:05")])
    engine.finish()
    assert told(engine) == expected


def test_an_instant_is_told_as_soon_as_nothing_more_can_come_at_it() -> None:
    engine = Engine()
    registration = asked(objects(last(2)), every=None, arrivals=1)
    engine.register(registration, options(registration))
    engine.push("s", [event("10:00", "a"), event("10:00", "b")])
    assert told(engine) == []
    engine.push("s", [event("10:01", "c")])
    assert told(engine) == ["10:00 a b"]


def test_triples_are_counted_over_all_streams_of_a_query_in_the_order_of_time() -> None:
    engine = Engine()
    registration = asked(objects(MergedSource((everything("s"), everything("t")))), every=None, arrivals=2)
    engine.register(registration, options(registration))
    engine.push("s", [event("10:00", "a"), event("10:02", "c"), event("10:03", "d")])
    engine.push("t", [event("10:01", "b"), event("10:04", "e")])
    engine.finish()
    assert told(engine) == ["10:01 a b", "10:03 a b c d", "10:04 a b c d e"]


def test_on_a_running_stream_counting_begins_with_what_is_newest() -> None:
    engine = Engine()
    first = asked(objects(everything()), "first", every="PT1H")
    engine.register(first, options(first))
    engine.push("s", [event("10:00", "a"), event("10:01", "b")])
    registration = asked(objects(everything()), every=None, arrivals=2)
    engine.register(registration, options(registration))
    engine.push("s", [event("10:02", "c"), event("10:03", "d"), event("10:04", "e"), event("10:05")])
    assert told(engine) == ["10:02 a b c", "10:04 a b c d e"]


def test_a_restart_goes_on_counting_and_tells_no_instant_twice() -> None:
    registration = asked(objects(lasting("PT5M")), every=None, arrivals=3)

    def recompile(_: QueryOptions) -> object:
        return registration

    events = [
        event(f"10:{minute:02d}", *names) for minute, names in enumerate(["a", "bc", "", "d", "efgh", "", "i", ""])
    ]
    whole, restarted = Engine(), Engine()
    for engine in (whole, restarted):
        engine.register(registration, options(registration))
    for one in events:
        whole.push("s", [one])
        restarted.push("s", [one])
        restarted = Engine.restore(restarted.checkpoint(), recompile)  # type: ignore[arg-type]
    whole.finish()
    restarted.finish()
    found = told(whole)
    assert [line.split()[0] for line in found] == ["10:01", "10:04", "10:06"]
    assert told(restarted) == found


def test_the_last_triple_is_waited_for_though_the_stream_is_far_beyond_it() -> None:
    engine = Engine(lateness=parse_duration("PT1M"))
    registration = asked(objects(lasting("PT1M")), every=None, arrivals=0)
    engine.register(registration, options(registration))
    engine.push("s", [event("10:00", "a"), Event(at("11:00"))])
    engine.finish()
    assert told(engine) == ["10:00 a"]


def test_a_query_that_reads_no_stream_counts_what_came_on_all_though_others_need_it_no_more() -> None:
    engine = Engine()
    engine.add_static_graph("g", TripleGraph([Triple(Iri("n:a"), P, Literal("a"))]))
    counting = asked(objects(Static("g")), every=None, arrivals=2)
    short = asked(objects(lasting("PT1M")), "short")
    for one in (counting, short):
        engine.register(one, options(one))
    engine.push("t", [event("10:00", "x")])
    for minute in range(10):
        engine.push("s", [event(f"10:{minute:02d}", "y")])
    assert told(engine) == []
    engine.push("t", [event("10:09", "z")])
    engine.finish()
    assert told(engine) == [f"10:{minute:02d} a" for minute in (0, 2, 4, 6, 8, 9)]


def test_a_triple_at_the_last_instant_before_the_watermark_is_counted_once() -> None:
    engine = Engine()
    registration = asked(objects(everything()), every=None, arrivals=3)
    engine.register(registration, options(registration))
    for place, name in enumerate("abcdefg"):
        engine.push("s", [replace(event("10:00", name), event_time=at("10:00") + place)])
    engine.finish()
    assert [answer.at - at("10:00") for answer in engine.poll("q")] == [2, 5, 6]


def test_windows_of_the_formal_policy_trail_where_instants_are_those_of_arrivals() -> None:
    engine = Engine()
    registration = asked(objects(lasting("PT2M")), every=None, arrivals=1)
    engine.register(registration, options(registration, windows="formal"))
    engine.push("s", [event("10:00", "a"), event("10:01", "b"), event("10:02", "c"), event("10:03", "d")])
    engine.finish()
    assert told(engine) == ["10:00 a", "10:01 a b", "10:02 b c", "10:03 c d"]
