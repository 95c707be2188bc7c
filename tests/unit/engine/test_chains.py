"""Streams that queries make, and the queries that read them."""

from __future__ import annotations

import json

import pytest
from tests.unit.engine.rdf import asked, at, event, last, lasting, objects, options, passed_on, told

from anabranch.algebra.operators import NodePattern, PathPattern, Pattern, Registration, RelationshipPattern
from anabranch.engine.engine import Engine
from anabranch.engine.progress import LatePolicy
from anabranch.engine.query_options import QueryOptions
from anabranch.engine.session import Session
from anabranch.errors import EngineError, QueryError
from anabranch.model.event import Event
from anabranch.model.values import Node, Relationship

MAKER = asked(passed_on(lasting("PT1M")), "maker", starting_at=at("10:00"), into="made", form="graph")
READER = asked(objects(lasting("PT2M", "made")), "reader", starting_at=at("10:00"))


def register(engine: Engine, *registrations: Registration) -> None:
    for one in registrations:
        engine.register(one, options(one))


def test_each_answer_is_an_event_at_its_instant() -> None:
    engine = Engine()
    register(engine, MAKER, READER)
    engine.push("s", [event("10:00", "a"), event("10:00:30", "b"), event("10:02", "c"), event("10:03")])
    assert told(engine, "maker") == ["10:00 a", "10:01 b", "10:02 c"]
    assert told(engine, "reader") == ["10:00 a", "10:01 a b", "10:02 b c"]


def test_a_reader_may_come_before_the_query_that_makes_its_stream() -> None:
    engine = Engine()
    register(engine, READER, MAKER)
    engine.push("s", [event("10:00", "a"), event("10:01", "b"), event("10:02")])
    engine.finish()
    assert told(engine, "reader") == ["10:00 a", "10:01 a b", "10:02 b"]


def test_everything_before_the_next_instant_of_the_maker_is_final() -> None:
    engine = Engine()
    maker = asked(passed_on(lasting("PT1H")), "maker", every="PT1H", starting_at=at("10:00"), into="made")
    register(engine, maker, asked(objects(lasting("PT1H", "made")), "reader", "PT20M", starting_at=at("10:00")))
    engine.push("s", [event("10:00", "a"), event("10:05", "b")])
    assert told(engine, "reader") == ["10:00 a", "10:20 a", "10:40 a"]


def test_answers_go_through_several_levels_to_the_end_of_the_input() -> None:
    engine = Engine()
    second = asked(passed_on(last(2, "made")), "second", None, arrivals=1, into="again")
    third = asked(objects(last(3, "again")), "third", None, arrivals=0)
    register(engine, third, second, MAKER)
    engine.push("s", [event("10:00", "a"), event("10:01", "b"), event("10:02", "c")])
    engine.finish()
    assert told(engine, "second") == ["10:00 a", "10:01 a b", "10:02 b c"]
    assert told(engine, "third") == ["10:02 b c"]


def test_a_reader_goes_on_as_far_as_the_maker_did_though_nothing_more_came() -> None:
    engine = Engine()
    register(engine, MAKER, asked(objects(lasting("PT10M", "made")), "reader", starting_at=at("10:00")))
    engine.push("s", [event("10:00", "a"), event("10:03")])
    engine.finish()
    assert told(engine, "reader") == ["10:00 a", "10:01 a", "10:02 a", "10:03 a"]


def test_rows_of_a_seraph_query_become_nodes_and_relationships() -> None:
    path = PathPattern((NodePattern("a"), NodePattern("b")), (RelationshipPattern("r", ("T",), "out"),))
    maker = asked(Pattern(lasting("PT1M"), (path,)), "maker", language="seraph", into="made")
    reader = asked(Pattern(lasting("PT1M", "made"), (path,)), "reader", language="seraph")
    engine = Engine()
    register(engine, maker, reader)
    engine.push("s", [Event(at("10:00"), (Node(1, ("A",), {"x": 1}),), (Relationship(5, "T", 1, 2, {"w": 3}),))])
    engine.finish()
    ((answer),) = engine.poll("reader")
    (row,) = answer.dicts()
    assert (row["a"].labels, row["a"].properties, row["r"].id, row["r"].properties) == (("A",), {"x": 1}, 5, {"w": 3})  # type: ignore[attr-defined]


@pytest.mark.parametrize("apart", [False, True])
def test_a_restart_finds_the_events_of_made_streams_in_the_state(apart: bool) -> None:
    by_name = {"maker": MAKER, "reader": READER}

    def recompile(asked_for: QueryOptions) -> Registration:
        return by_name[asked_for.source_name]

    engine = Engine()
    register(engine, MAKER, READER)
    events = [event("10:00", "a"), event("10:01", "b"), event("10:02", "c")]
    for place, one in enumerate(events):
        engine.push("s", [one])
        state = json.loads(json.dumps(engine.state(events=not apart)))
        engine = Engine.from_state(state, recompile)
        if apart:
            engine.refill("s", "", 0, events[: place + 1])
    engine.finish()
    assert told(engine, "reader") == ["10:00 a", "10:01 a b", "10:02 b c"]


def test_a_made_stream_stays_closed_after_a_restart_behind_the_end_of_the_input() -> None:
    by_name = {"maker": MAKER, "reader": READER}
    engine = Engine()
    register(engine, MAKER, READER)
    engine.push("s", [event("10:00", "a"), event("10:03", "b")])
    engine.finish()
    frontier = engine.frontier
    engine = Engine.from_state(json.loads(json.dumps(engine.state())), lambda options: by_name[options.source_name])
    engine.advance(at("11:00"))
    assert engine.stream("made").closed
    assert engine.frontier == frontier


def test_a_reader_waits_for_a_maker_that_may_still_be_drained() -> None:
    engine = Engine()
    maker = asked(passed_on(lasting("PT6M")), "maker", "PT3M", starting_at=at("10:00"), into="made", form="graph")
    register(engine, maker, asked(objects(lasting("PT2M", "made")), "reader", "PT7M", starting_at=at("10:00")))
    engine.push("s", [event("10:02", "a")])
    engine.close_stream("s")
    engine.finish(drain=True)
    assert "10:07 a" in told(engine, "reader"), "the maker told it once more at 10:06"


def test_what_nobody_reads_is_not_kept() -> None:
    engine = Engine()
    register(engine, MAKER)
    engine.push("s", [event(f"10:{minute:02d}", "a") for minute in range(20)])
    assert len(engine.stream("made")) == 0


def test_a_made_stream_goes_with_its_maker_unless_somebody_reads_it() -> None:
    engine = Engine()
    register(engine, MAKER)
    engine.unregister("maker")
    assert engine.streams == ("s",)
    register(engine, MAKER, READER)
    engine.unregister("maker")
    assert engine.streams == ("s", "made")
    engine.push("made", [event("10:00", "z"), event("10:01")])
    assert told(engine, "reader") == ["10:00 z"]


def test_a_changed_maker_takes_over_its_stream() -> None:
    engine = Engine()
    engine.reconcile([(MAKER, options(MAKER)), (READER, options(READER))])
    engine.push("s", [event("10:00", "a"), event("10:01", "b")])
    changed = asked(passed_on(last(1)), "maker", starting_at=at("10:00"), into="made")
    found = engine.reconcile([(changed, options(changed)), (READER, options(READER))])
    engine.push("s", [event("10:02", "c"), event("10:03")])
    assert (found.kept, found.new) == (("reader",), ("maker",))
    assert told(engine, "reader") == ["10:00 a", "10:01 a b", "10:02 b c"]


# --- refusals ---------------------------------------------------------------------------------------------------------


def refusal(engine: Engine, *registrations: Registration) -> str:
    with pytest.raises(QueryError) as caught:
        engine.register_all([(one, options(one)) for one in registrations])
    (diagnostic,) = caught.value.diagnostics
    return f"{diagnostic.code}: {diagnostic.message}"


def test_nobody_else_moves_a_made_stream() -> None:
    engine = Engine()
    register(engine, MAKER)
    for move in (
        lambda: engine.push("made", [event("10:00", "a")]),
        lambda: engine.advance(at("10:00"), "made"),
        lambda: engine.close_stream("made"),
        lambda: engine.set_splits("made", ["0"]),
    ):
        with pytest.raises(EngineError, match="stream `made` is made by query `maker`"):
            move()


def test_a_stream_with_a_source_or_with_a_maker_cannot_be_made() -> None:
    engine = Engine()
    engine.declare_stream("made")
    assert refusal(engine, MAKER) == (
        "SER-218: query `maker` cannot make the stream `made`: its events come from a source"
    )
    engine = Engine()
    register(engine, MAKER)
    again = asked(passed_on(last(1)), "again", into="made")
    assert refusal(engine, again) == "SER-219: query `maker` makes the stream `made` already"


def test_circles_are_refused_by_name_in_whatever_order_they_close() -> None:
    one = asked(passed_on(last(1, "x")), "one", into="y")
    two = asked(passed_on(last(1, "y")), "two", into="x")
    own = asked(passed_on(last(1, "x")), "own", into="x")
    assert refusal(Engine(), own) == (
        "SER-220: queries wait for each other's streams: `own` makes `x`, which it reads itself"
    )
    for first, second in ((one, two), (two, one)):
        engine = Engine()
        register(engine, first)
        assert refusal(engine, second) == (
            f"SER-220: queries wait for each other's streams: `{second.name}` makes `{second.into}`, which "
            f"`{first.name}` reads; `{first.name}` makes `{first.into}`, which `{second.name}` reads"
        )


def test_with_fixed_streams_queries_registered_together_know_each_other() -> None:
    engine = Engine(fixed_streams=True)
    engine.declare_stream("s")
    assert refusal(engine, READER) == "SER-211: no stream `made`"
    assert engine.queries == ()
    engine.register_all([(READER, options(READER)), (MAKER, options(MAKER))])
    engine.push("s", [event("10:00", "a"), event("10:01")])
    assert told(engine, "reader") == ["10:00 a"]


def test_answers_that_are_no_triples_make_no_stream() -> None:
    assert refusal(Engine(), asked(objects(last(1)), into="made")) == (
        "SPQ-202: the answers of `q` are no triples, and so no stream"
    )


def test_what_was_passed_on_cannot_be_corrected() -> None:
    message = refusal(Engine(late=LatePolicy("correct")), MAKER)
    assert message == "SPQ-201: late events cannot be corrected in query `maker`: it has a stream that it makes"


TABLES = "REGISTER STREAM d COMPUTED EVERY 1m AS SELECT ?a FROM STREAM <s> [RANGE 10m STEP 1m] WHERE { ?a ?p ?o }"
READS = "REGISTER QUERY r COMPUTED EVERY 1m AS SELECT ?a FROM STREAM <d> [RANGE 10m STEP 1m] WHERE { ?a ?p ?o }"


def test_a_stream_of_tables_is_refused_with_whoever_reads_it_whichever_comes_first() -> None:
    for first, second in ((TABLES, READS), (READS, TABLES)):
        session = Session.local()
        session.register(first, file_name="q.csparql")
        with pytest.raises(QueryError) as caught:
            session.register(second, file_name="q.csparql")
        assert [one.code for one in caught.value.diagnostics] == ["SPQ-203"]
    with pytest.raises(QueryError):
        Session.local().register_all(f"{TABLES}\n{READS}", file_name="q.csparql")


def test_tables_under_the_name_of_a_source_leave_its_readers_alone() -> None:
    session = Session.local(["s", "d"])
    assert len(session.register_all(f"{TABLES}\n{READS}", file_name="q.csparql")) == 2
