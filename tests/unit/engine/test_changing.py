"""A running engine: answers of all queries in one order, another set of queries, and a state from elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

from anabranch.algebra.operators import Registration
from anabranch.engine.compiled import recompile
from anabranch.engine.engine import Engine, LatePolicy
from anabranch.engine.evaluation_options import EvaluationOptions
from anabranch.engine.query_options import QueryOptions
from anabranch.engine.session import Session
from anabranch.engine.stream import BEGINNING, END
from anabranch.errors import EngineError, QueryError
from anabranch.model.event import Event
from anabranch.model.values import Node, Relationship
from anabranch.syntax import seraph

SECOND = 1_000_000


def wanted(
    name: str, body: str = "EMIT n.x AS x SNAPSHOT EVERY PT5S", **given: Any
) -> tuple[Registration, QueryOptions]:
    text = f"REGISTER QUERY {name} STARTING AT 1970-01-01T00:00Z {{ MATCH (n) WITHIN PT10S {body} }}"
    (registration,) = seraph.registrations(text)
    return registration, QueryOptions(text=text, source_name=name, **given)


def event(second: int, x: Any = None) -> Event:
    return Event(second * SECOND, (Node(second, (), {"x": second if x is None else x}),))


def engine_of(*queries: tuple[Registration, QueryOptions]) -> Engine:
    engine = Engine()
    engine.reconcile(queries)
    return engine


def heads(engine: Engine, before: int | None = None) -> list[tuple[int, str]]:
    return [(answer.at // SECOND, answer.query) for answer in engine.take(before)]


# --- one order --------------------------------------------------------------------------------------------------------


def test_take_gives_the_answers_of_all_queries_in_the_order_of_instants_then_of_registration() -> None:
    engine = engine_of(wanted("b"), wanted("a"), wanted("c", "EMIT n.x AS x SNAPSHOT EVERY PT10S"))
    engine.push("s", [event(0), event(11)])
    assert heads(engine, before=5 * SECOND) == [(0, "b"), (0, "a"), (0, "c")]
    assert heads(engine) == [(5, "b"), (5, "a")]
    assert heads(engine) == []


def test_corrections_stand_behind_the_answers_of_their_instant() -> None:
    engine = Engine(late=LatePolicy("correct"))
    engine.reconcile([wanted("b"), wanted("a")])
    engine.push("s", [event(1), event(12)])
    engine.push("s", [event(2)])
    found = [(answer.at // SECOND, answer.query, answer.correction) for answer in engine.take()]
    assert [item for item in found if item[0] == 5] == [
        (5, "b", ""),
        (5, "a", ""),
        (5, "b", "retracted"),
        (5, "b", "corrected"),
        (5, "a", "retracted"),
        (5, "a", "corrected"),
    ]


def test_the_frontier_is_how_far_the_slowest_living_query_is() -> None:
    engine = Engine()
    assert engine.frontier == END
    text = "REGISTER QUERY two STARTING AT 1970-01-01T00:00Z { MATCH (n) WITHIN PT10S ON STREAM t RETURN n.x AS x }"
    (returned,) = seraph.registrations(text)
    engine.register(returned)
    assert engine.frontier == BEGINNING
    engine.push("t", [event(9)])
    assert engine.frontier == END
    text = text.replace("RETURN n.x AS x", "EMIT n.x AS x SNAPSHOT EVERY PT1S").replace("two", "on_t")
    engine.register(*seraph.registrations(text))
    engine.register(*seraph.registrations(text.replace("STREAM t", "STREAM s").replace("on_t", "on_s")))
    engine.push("s", [event(4)])
    assert engine.frontier == 4 * SECOND
    engine.close_stream("s")
    assert engine.frontier == 9 * SECOND
    engine.finish()
    assert engine.frontier == END


def test_an_unbound_query_is_nowhere_yet() -> None:
    assert engine_of(wanted("q")).frontier <= BEGINNING + 1


def test_failures_are_told_once_in_the_order_of_registration() -> None:
    body = "EMIT 1 / n.x AS x SNAPSHOT EVERY PT5S"
    engine = Engine(evaluation=EvaluationOptions(on_error="fail"))
    engine.reconcile((wanted("z", body), wanted("fine"), wanted("a", body)))
    engine.push("s", [event(1, 0), event(12)])
    found = engine.failures()
    assert ([name for name, _ in found], engine.failures()) == (["z", "a"], [])
    assert all(isinstance(failure, QueryError) for _, failure in found)
    assert Engine.from_state(engine.state(), recompile).failures() == []
    assert heads(engine) == [(5, "fine"), (10, "fine")]


# --- another set of queries -------------------------------------------------------------------------------------------


def test_queries_that_stay_go_on_and_the_others_come_and_go() -> None:
    engine = engine_of(wanted("stays"), wanted("goes"), wanted("changes"))
    engine.push("s", [event(1), event(7)])
    engine.take()
    change = engine.reconcile([wanted("comes"), wanted("changes", "EMIT 1 AS x SNAPSHOT EVERY PT5S"), wanted("stays")])
    assert (change.kept, change.new, change.dropped) == (("stays",), ("comes", "changes"), ("goes", "changes"))
    assert engine.queries == ("comes", "changes", "stays")
    assert heads(engine) == [(5, "comes"), (5, "changes")]
    engine.push("s", [event(12)])
    assert heads(engine) == [(10, "comes"), (10, "changes"), (10, "stays")]


@pytest.mark.parametrize(
    "changed",
    [{"windows": "formal"}, {"conflicts": "strict"}, {"parameters": {"p": True}}, {"parameters": {"p": 1.0}}],
)
def test_other_policies_or_parameters_make_another_query(changed: dict[str, Any]) -> None:
    engine = engine_of(wanted("q", parameters={"p": 1}))
    assert engine.reconcile([wanted("q", **{"parameters": {"p": 1}, **changed})]).new == ("q",)
    assert engine.reconcile([wanted("q", **{"parameters": {"p": 1}, **changed})]).kept == ("q",)


def test_another_file_name_or_now_makes_no_other_query() -> None:
    engine = engine_of(wanted("q"))
    assert engine.reconcile([wanted("q", file_name="other.seraph", now=5)]).kept == ("q",)


def test_a_query_without_its_text_is_the_same_when_its_plan_is() -> None:
    (one, _), (other, _) = wanted("q"), wanted("q", "EMIT 1 AS x SNAPSHOT EVERY PT5S")
    engine = engine_of((one, QueryOptions()))
    assert engine.reconcile([(one, QueryOptions())]).kept == ("q",)
    assert engine.reconcile([(other, QueryOptions())]).new == ("q",)


def test_a_refused_query_changes_nothing() -> None:
    engine = engine_of(wanted("a"), wanted("b"))
    bad = wanted("bad", "MATCH (m) ON GRAPH nowhere EMIT 1 AS x SNAPSHOT EVERY PT5S")
    for refused in ([wanted("c"), bad], [wanted("c"), wanted("c")], [wanted("a"), wanted("a")]):
        with pytest.raises(QueryError):
            engine.reconcile(refused)
        assert engine.queries == ("a", "b")


def test_no_query_at_all_is_a_set_of_queries() -> None:
    engine = engine_of(wanted("a"))
    engine.push("s", [event(0)])
    assert engine.reconcile([]).dropped == ("a",)
    assert (engine.queries, len(engine.stream("s"))) == ((), 0)


# --- a state from elsewhere -------------------------------------------------------------------------------------------


def test_a_state_without_events_holds_none() -> None:
    engine = engine_of(wanted("q"))
    engine.push("s", [event(0)])
    assert "events" not in engine.state(events=False)["streams"][0]
    assert len(engine.state()["streams"][0]["events"]) == 1


def test_a_loaded_engine_keeps_the_plan_of_the_same_query_and_rebuilds_another() -> None:
    engine = engine_of(wanted("same"), wanted("changed"), wanted("gone"))
    same = engine.query("same")
    other = engine_of(wanted("same"), wanted("changed", "EMIT 2 AS x SNAPSHOT EVERY PT5S"), wanted("new"))
    other.push("s", [event(0), event(7)])
    other.take()
    engine.refill("s", "", 0, [event(0), event(7)])
    compiled = []
    engine.load(other.state(events=False), lambda options: compiled.append(options.source_name) or recompile(options))
    assert (compiled, engine.queries) == (["changed", "new"], ("same", "changed", "new"))
    assert engine.query("same") is same
    assert engine.state() == other.state()
    for one in (engine, other):
        one.push("s", [event(12)])
    assert [answer.to_dict() for answer in engine.take()] == [answer.to_dict() for answer in other.take()]


def test_a_late_correction_that_was_missed_is_seen_after_catching_up() -> None:
    engine = Engine(late=LatePolicy("correct"))
    engine.reconcile([wanted("q", "EMIT n.x AS x ON ENTERING EVERY PT5S")])
    engine.push("s", [event(1), event(7)])
    other = Engine.from_state(engine.state(), recompile)
    engine.push("s", [event(3), event(11)])
    other.refill("s", "", 2, [event(3), event(11)])
    other.load(engine.state(events=False), recompile)
    for one in (engine, other):
        one.push("s", [event(21)])
    assert [answer.to_dict() for answer in other.take()] == [answer.to_dict() for answer in engine.take()]


def test_refilled_relationships_get_the_ids_that_they_had() -> None:
    events = [Event(second * SECOND, (), (Relationship(None, "T", 1, 2),)) for second in range(3)]
    engine = Engine()
    engine.push("s", events)
    other = Engine()
    other.load(engine.state(events=False), recompile)
    other.refill("s", "", 1, events[1:])
    held = other.state()["streams"][0]["events"]
    assert [packed[3][0][0] for packed in held] == ["~1.0", "~2.0"]


def test_an_engine_that_is_ahead_refuses_the_state_and_stays_as_it_is() -> None:
    engine = engine_of(wanted("q"))
    engine.push("s", [event(0)])
    earlier = engine.state(events=False)
    engine.push("s", [event(7)])
    now = engine.state()
    with pytest.raises(EngineError, match="stream `s` of this engine is ahead of the state"):
        engine.load(earlier, recompile)
    assert engine.state() == now


def test_streams_and_graphs_that_a_state_does_not_know_stay() -> None:
    engine = engine_of(wanted("q"))
    engine.push("s", [event(0)])
    other = Session.local(streams=["s", "extra"])._engine
    other.load(engine.state(), recompile)
    assert other.streams == ("s", "extra")
