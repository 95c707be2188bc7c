"""A session, step by step: when instants are evaluated, what is told, what is refused, and what a restart keeps."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.graph_events import graph_block

from anabranch.engine.answers import Answer
from anabranch.engine.engine import PushResult
from anabranch.engine.evaluation_options import EvaluationOptions
from anabranch.engine.session import Query, Session
from anabranch.errors import EngineError, EvaluationError, MalformedEventError, QueryError, QueryNameError
from anabranch.formats.ndjson import read_ndjson
from anabranch.model.event import Event
from anabranch.model.graph import PropertyGraph
from anabranch.model.instants import parse_instant
from anabranch.model.values import Node, Relationship

DAY = "2024-05-01T"
MINUTE = 60_000_000


def at(clock: str) -> int:
    return parse_instant(f"{DAY}{clock}:00Z")


def event(clock: str, name: str) -> dict[str, Any]:
    return {"at": f"{DAY}{clock}:00Z", "nodes": [{"id": name, "labels": ["N"], "properties": {"name": name}}]}


def query(
    output: str = "ON ENTERING",
    name: str = "q",
    start: str = f"{DAY}10:00Z",
    within: str = "PT10M",
    every: str = "PT5M",
) -> str:
    emit = f"EMIT n.name AS name {output} EVERY {every}" if output != "RETURN" else "RETURN n.name AS name"
    return f"REGISTER QUERY {name} STARTING AT {start} {{ MATCH (n:N) WITHIN {within} {emit} }}"


def registered(body: str, name: str = "q") -> str:
    return f"REGISTER QUERY {name} STARTING AT {DAY}10:00Z {{ {body} }}"


def told(answers: list[Answer]) -> list[tuple[str, list[Any]]]:
    return [(str(answer.at)[11:16], [row[0] for row in answer.rows]) for answer in answers]


def test_an_instant_is_evaluated_when_the_stream_has_passed_it() -> None:
    session = Session.local()
    q = session.register(query())
    session.push("s", event("10:00", "a"))
    assert q.poll() == []  # another event at 10:00 may come
    session.push("s", event("10:00", "b"))
    assert q.poll() == []
    session.push("s", event("10:01", "c"))
    assert told(q.poll()) == [("10:00", ["a", "b"])]
    assert q.poll() == []


def test_an_advance_evaluates_up_to_its_instant_and_makes_what_comes_later_late() -> None:
    session = Session.local()
    q = session.register(query())
    session.push("s", event("10:00", "a"))
    session.advance(f"{DAY}10:05:00Z")
    assert told(q.poll()) == [("10:00", ["a"])]
    pushed = session.push("s", [event("10:05", "late"), event("10:06", "b")])
    assert (pushed.accepted, [one.nodes[0].id for one in pushed.late]) == (1, ["late"])
    assert session.late == {"s": 1}
    session.finish()
    assert told(q.poll()) == [("10:10", ["b"])]


@pytest.mark.parametrize(
    "instant", [at("10:05"), f"{DAY}10:05Z", datetime(2024, 5, 1, 10, 5), datetime(2024, 5, 1, 10, 5, tzinfo=UTC)]
)
def test_instants_come_as_microseconds_text_or_datetimes(instant: Any) -> None:
    session = Session.local()
    q = session.register(query("SNAPSHOT"))
    session.push("s", event("10:00", "a"))
    session.advance(instant)
    assert told(q.poll()) == [("10:00", ["a"]), ("10:05", ["a"])]


def test_what_is_no_instant_is_refused() -> None:
    session = Session.local()
    for wrong in ("tomorrow", 1.5, True):
        with pytest.raises(EngineError):
            session.advance(wrong)  # type: ignore[arg-type]


def test_an_answer_tells_its_query_instants_and_rows() -> None:
    session = Session.local()
    q = session.register(query("SNAPSHOT"))
    session.push("s", event("10:00", "a"))
    session.finish()
    (answer,) = q.poll()
    assert (answer.query, answer.op, answer.at, answer.columns) == ("q", "snapshot", at("10:00"), ("name",))
    assert (answer.win_start, answer.win_end) == (at("09:50"), at("10:00"))
    assert answer.dicts() == [{"name": "a"}]
    head = {"query": "q", "at": f"{DAY}10:00:00Z", "op": "snapshot"}
    ends = {"win_start": f"{DAY}09:50:00Z", "win_end": f"{DAY}10:00:00Z"}
    assert answer.to_dict() == {**head, **ends, "rows": [{"name": "a"}]}
    assert list(answer.row_dicts()) == [{**head, **ends, "row": {"name": "a"}}]


def test_finish_goes_to_the_first_instant_that_has_seen_every_event() -> None:
    session = Session.local()
    q = session.register(query("SNAPSHOT"))
    session.push("s", [event("10:00", "a"), event("10:06", "b")])
    session.finish()
    assert told(q.poll()) == [("10:00", ["a"]), ("10:05", ["a"]), ("10:10", ["b"])]
    with pytest.raises(EngineError, match="closed"):
        session.push("s", event("10:20", "c"))


def test_finish_until_evaluates_exactly_the_instants_up_to_then() -> None:
    session = Session.local()
    q = session.register(query("ON EXIT"))
    session.push("s", event("10:00", "a"))
    session.finish(until=f"{DAY}10:30Z")
    assert (told(q.poll()), q.instants) == ([("10:10", ["a"])], 7)


def test_finish_without_events_evaluates_the_first_instant() -> None:
    session = Session.local()
    q = session.register(registered("MATCH (n) WITHIN PT1M EMIT count(n) AS c SNAPSHOT EVERY PT1M", "c"))
    session.finish()
    assert told(q.poll()) == [("10:00", [0])]


def test_a_query_without_any_window_follows_the_clock_of_the_session() -> None:
    session = Session.local()
    q = session.register(registered("UNWIND [1, 2] AS x EMIT x SNAPSHOT EVERY PT5M", "t"))
    session.advance(f"{DAY}10:05Z")
    assert [(a.at, a.win_start, a.win_end, a.rows) for a in q.poll()] == [
        (at("10:00"), at("10:00"), at("10:00"), [(1,), (2,)]),
        (at("10:05"), at("10:05"), at("10:05"), [(1,), (2,)]),
    ]


def test_a_query_over_two_streams_waits_for_the_slower_and_a_closed_one_holds_nothing_back() -> None:
    session = Session.local()
    q = session.register(
        "REGISTER QUERY both STARTING AT 2024-05-01T10:00Z { MATCH (n:N) WITHIN PT1H ON STREAM a "
        "MATCH (m:N) WITHIN PT1H ON STREAM b EMIT n.name AS n, m.name AS m ON ENTERING EVERY PT5M }"
    )
    session.push("a", [event("10:00", "x"), event("10:20", "y")])
    assert q.instants == 0
    session.push("b", event("10:04", "z"))
    assert q.instants == 1
    session.close_stream("b")
    assert q.instants == 4
    assert [(str(answer.at)[11:16], answer.rows) for answer in q.poll()] == [("10:05", [("x", "z")])]


def test_entering_and_exiting_are_told_by_queries_that_share_a_window() -> None:
    session = Session.local()
    first, second = session.register_all(query("ON ENTERING", "comes") + "\n" + query("ON EXIT", "goes"))
    session.push("s", [event("10:00", "a"), event("10:05", "b")])
    session.finish(drain=True)
    assert told(first.poll()) == [("10:00", ["a"]), ("10:05", ["b"])]
    assert told(second.poll()) == [("10:10", ["a"]), ("10:15", ["b"])]
    assert first.evaluations == second.evaluations == 4


def test_buffers_keep_no_more_than_the_widest_window_needs() -> None:
    session = Session.local(evaluation=EvaluationOptions(force="recompute"))
    session.register(query("ON EXIT", "narrow", within="PT10M"))
    session.register(query("ON EXIT", "wide", within="PT30M"))
    engine = session._engine
    for minute in range(600):
        session.push("s", Event(at("10:00") + minute * MINUTE, (Node(minute, ("N",), {"name": minute}),)))
        assert len(engine.stream("s")) <= 36
    assert len(engine._around.contents) == 2
    session.query("wide").unregister()
    assert len(engine.stream("s")) <= 16
    session.query("narrow").unregister()
    assert (len(engine.stream("s")), len(engine._around.contents)) == (0, 0)


def test_events_before_a_far_start_are_not_hoarded() -> None:
    session = Session.local()
    session.register(query(start="2030-01-01T00:00Z"))
    for minute in range(100):
        session.push("s", Event(at("10:00") + minute * MINUTE))
    assert len(session._engine.stream("s")) == 0


# --- joining late -----------------------------------------------------------------------------------------------------


def test_a_query_registered_after_the_events_finds_them() -> None:
    session = Session.local()
    session.push("s", [event("10:00", "a"), event("10:05", "b")])
    q = session.register(query())
    session.finish()
    assert told(q.poll()) == [("10:00", ["a"]), ("10:05", ["b"])]


def test_on_a_running_session_a_query_starts_from_what_the_buffers_hold() -> None:
    session = Session.local()
    session.register(query("SNAPSHOT", "first", within="PT5M"))
    session.push("s", [event(f"10:{minute:02}", f"e{minute:02}") for minute in range(21)])
    # 10:15 was evaluated last; 10:20 needs (10:15, 10:20]: what came up to 10:15 is forgotten.
    q = session.register(query("SNAPSHOT", "second", within="PT1H"))
    session.finish()
    assert told(q.poll()) == [("10:20", ["e16", "e17", "e18", "e19", "e20"])]


def test_a_late_query_that_shares_a_window_looks_back_without_disturbing_the_other() -> None:
    session = Session.local()
    first = session.register(query("SNAPSHOT", "first", within="PT1H"))
    events = [event(f"10:{minute:02}", f"e{minute:02}") for minute in range(31)]
    session.push("s", events[:21])
    second = session.register(query("SNAPSHOT", "second", within="PT1H"))
    session.push("s", events[21:])
    session.finish()
    answers = told(first.poll())
    assert (len(answers), answers[-1][1][-1]) == (7, "e30")
    assert told(second.poll()) == answers


def test_now_on_a_running_session_is_the_streams_clock() -> None:
    session = Session.local()
    session.push("s", [event("10:00", "a"), event("10:03", "b")])
    q = session.register(query("SNAPSHOT", start="NOW"))
    session.push("s", event("10:09", "c"))
    assert told(q.poll()) == [("10:03", ["a", "b"]), ("10:08", ["a", "b"])]


def test_now_can_be_given() -> None:
    session = Session.local()
    q = session.register(query("SNAPSHOT", start="NOW"), now=f"{DAY}10:01Z")
    session.push("s", [event("10:00", "a"), event("10:03", "b")])
    session.finish()
    assert told(q.poll()) == [("10:01", ["a"]), ("10:06", ["a", "b"])]


def test_one_answer_at_a_forgotten_instant_is_refused() -> None:
    session = Session.local()
    session.register(query("SNAPSHOT", "first"))
    session.push("s", [event("10:00", "a"), event("11:00", "b")])
    with pytest.raises(QueryError) as caught:
        session.register(query("RETURN", "once", start=f"{DAY}09:00Z"))
    assert caught.value.diagnostics[0].code == "SER-217"


# --- fast-forward -----------------------------------------------------------------------------------------------------


def test_a_second_over_years_costs_what_its_events_cost() -> None:
    session = Session.local()
    q = session.register(query("ON ENTERING", start="1990-01-01T00:00Z", every="PT1S"))
    session.push("s", [event("10:00", "a"), event("11:00", "b")])
    began = time.process_time()
    session.finish(until="2124-05-01T00:00Z")
    assert time.process_time() - began < 1
    assert told(q.poll()) == [("10:00", ["a"]), ("11:00", ["b"])]
    assert q.instants > 4_000_000_000
    assert q.evaluations <= 6


def test_an_unchanged_snapshot_is_told_again_but_not_computed_again() -> None:
    session = Session.local()
    q = session.register(query("SNAPSHOT", within="PT1H", every="PT1M"))
    session.push("s", event("10:00", "a"))
    session.finish(until=f"{DAY}10:50Z")
    assert (len(q.poll()), q.evaluations) == (51, 1)


def test_a_row_that_stays_is_the_same_tuple_at_every_instant() -> None:
    session = Session.local()
    q = session.register(query("SNAPSHOT", within="PT30M", every="PT5M"))
    session.push("s", [event("10:00", "b"), event("10:02", "d"), event("10:07", "a"), event("10:12", "b")])
    session.push("s", {"at": f"{DAY}10:18:00Z", "nodes": [{"id": "other", "labels": ["M"], "properties": {}}]})
    session.finish()
    first, *_, last = answers = q.poll()
    assert [name for _, name in told(answers)] == [["b"], ["b", "d"], ["a", "b", "d"], ["a", "b", "d"], ["a", "b", "d"]]
    assert len({id(row) for answer in answers for row in answer.rows}) == 3
    assert first.rows[0] is last.rows[1]
    last.rows.clear()
    assert told(answers[-2:-1]) == [("10:15", ["a", "b", "d"])]


def test_rows_that_change_their_order_alone_are_listed_in_the_new_order() -> None:
    def ranked(clock: str, **ranks: int) -> dict[str, Any]:
        nodes = [{"id": key, "labels": ["N"], "properties": {"name": key, "rank": rank}} for key, rank in ranks.items()]
        return {"at": f"{DAY}{clock}:00Z", "nodes": nodes}

    session = Session.local()
    q = session.register(registered("MATCH (n:N) WITHIN PT1H EMIT n.name AS name ORDER BY n.rank SNAPSHOT EVERY PT5M"))
    session.push("s", [ranked("10:00", a=1, b=2, c=3), ranked("10:04", a=9), ranked("10:09", b=10)])
    session.finish()
    assert told(q.poll()) == [("10:00", ["a", "b", "c"]), ("10:05", ["b", "c", "a"]), ("10:10", ["c", "a", "b"])]


def test_a_query_that_reads_the_clock_is_computed_at_every_instant_with_events() -> None:
    text = """REGISTER QUERY q STARTING AT 1990-01-01T00:00Z {
      MATCH (n:N) WITHIN PT10M EMIT datetime() AS now ON ENTERING EVERY PT5M }"""
    session = Session.local()
    q = session.register(text)
    session.push("s", event("10:00", "a"))
    session.finish(drain=True)
    assert [str(answer.rows[0][0]) for answer in q.poll()] == ["2024-05-01T10:00Z", "2024-05-01T10:05Z"]
    assert q.evaluations < 6


def test_chance_is_the_same_in_every_run() -> None:
    text = registered("MATCH (n:N) WITHIN PT1H EMIT rand() AS x SNAPSHOT EVERY PT5M")

    def run(restart: bool) -> list[Any]:
        session = Session.local()
        session.register(text)
        session.push("s", event("10:00", "a"))
        session.push("s", event("10:14", "b"))
        if restart:
            session = Session.restore(session.checkpoint())
        session.finish()
        return [answer.to_dict() for answer in session.query("q").poll()]

    assert run(False) == run(True)
    assert len({row["x"] for answer in run(False) for row in answer["rows"]}) == 5


# --- static graphs, parameters, conflicts -----------------------------------------------------------------------------


def test_a_static_graph_that_is_replaced_is_seen_at_the_next_instant() -> None:
    session = Session.local()
    session.graph("g", {"nodes": [{"id": 1, "properties": {"x": "old"}}]})
    q = session.register(registered("MATCH (m) ON GRAPH g EMIT m.x AS x ON ENTERING EVERY PT5M"))
    session.advance(at("10:05"))
    assert told(q.poll()) == [("10:00", ["old"])]
    session.graph("g", PropertyGraph([Node(1, (), {"x": "new"})]))
    session.advance(at("10:15"))
    assert told(q.poll()) == [("10:10", ["new"])]


def test_parameters_are_values() -> None:
    session = Session.local()
    text = registered("MATCH (n:N) WITHIN PT1H WHERE n.name = $name EMIT $day AS d SNAPSHOT EVERY PT5M")
    q = session.register(text, parameters={"name": "a", "day": {"$date": "2015-07-21"}})
    session.push("s", [event("10:00", "a"), event("10:00", "b")])
    session = Session.restore(session.checkpoint())
    session.finish()
    q = session.query("q")
    assert [str(row[0]) for answer in q.poll() for row in answer.rows] == ["2015-07-21"]
    with pytest.raises(EngineError, match=r"parameter \$x: a property cannot hold object"):
        session.register(text, name="other", parameters={"x": object()})


def test_strict_sessions_warn_once_per_disagreement() -> None:
    session = Session.local(conflicts="strict")
    q = session.register(query("SNAPSHOT", within="PT1H"))
    for clock, value in (("10:00", 1), ("10:01", 2), ("10:06", 2)):
        session.push("s", {"at": f"{DAY}{clock}:00Z", "nodes": [{"id": 7, "properties": {"x": value}}]})
    session.finish()
    (warning,) = q.warnings()
    assert "node 7" in str(warning)
    assert "`x`" in str(warning)
    assert warning.at == at("10:05")


# --- refusals ---------------------------------------------------------------------------------------------------------


def codes(error: QueryError) -> list[str]:
    return [diagnostic.code for diagnostic in error.diagnostics]


def test_a_name_is_registered_once_unless_another_is_given() -> None:
    session = Session.local()
    session.register(query())
    with pytest.raises(QueryNameError) as caught:
        session.register(query())
    assert codes(caught.value) == ["SER-215"]
    assert session.register(query(), name="q2").name == "q2"
    assert [one.name for one in session.queries] == ["q", "q2"]


def test_register_takes_exactly_one_query_and_register_all_all_or_none() -> None:
    session = Session.local()
    with pytest.raises(QueryError) as caught:
        session.register(query(name="a") + query(name="b"))
    assert codes(caught.value) == ["SER-216"]
    with pytest.raises(QueryError):
        session.register_all(
            query(name="a") + "REGISTER QUERY b STARTING AT NOW { MATCH (m) ON GRAPH no EMIT m SNAPSHOT EVERY PT1M }"
        )
    assert session.queries == []


def test_the_unnamed_stream_is_the_only_one() -> None:
    session = Session.local()
    q = session.register(query())
    session.push("first", event("10:00", "a"))
    session.finish()
    assert told(q.poll()) == [("10:00", ["a"])]


def test_a_second_stream_is_refused_where_a_query_names_none() -> None:
    for first, second in (("pay", "login"), ("login", "pay")):
        session = Session.local()
        session.register(query())
        session.push(first, event("10:00", "a"))
        with pytest.raises(EngineError, match=rf"query `q` names no stream and reads `{first}`.* with `{second}`"):
            session.push(second, event("10:00", "b"))
        assert session.streams == (first,)


def test_a_query_that_names_no_stream_is_refused_where_there_are_two() -> None:
    session = Session.local()
    session.push("first", event("10:00", "a"))
    session.push("second", event("10:00", "b"))
    with pytest.raises(QueryNameError) as caught:
        session.register(query(name="other"))
    assert codes(caught.value) == ["SER-210"]
    assert "first, second" in caught.value.render()


@pytest.mark.parametrize(
    "text",
    [
        "REGISTER QUERY q STARTING AT NOW { MATCH (n) ON GRAPH g EMIT n.name AS name SNAPSHOT EVERY PT1M }",
        "REGISTER QUERY q STARTING AT NOW { MATCH (n) ON GRAPH g RETURN n.name AS name }",
    ],
)
def test_a_query_without_a_stream_is_evaluated_once(text: str) -> None:
    session = Session.local()
    session.graph("g", {"nodes": [{"id": 1, "properties": {"name": "a"}}]})
    q = session.register(text)
    session.finish(now="2024-05-01T10:00Z")
    assert told(q.poll()) == [("10:00", ["a"])]
    assert q.done


def test_a_query_without_a_stream_waits_for_the_first_event_where_there_is_one() -> None:
    session = Session.local()
    session.graph("g", {"nodes": [{"id": 1, "properties": {"name": "b"}}]})
    q = session.register("REGISTER QUERY q STARTING AT NOW { MATCH (n) ON GRAPH g RETURN n.name AS name }")
    session.push("s", event("10:30", "a"))
    session.finish(now="2024-05-01T10:00Z")
    assert told(q.poll()) == [("10:30", ["b"])]


def test_declared_streams_are_all_there_is() -> None:
    session = Session.local(streams=["rides"])
    with pytest.raises(EngineError, match=r"no stream `rdes`; did you mean `rides`\?"):
        session.push("rdes", event("10:00", "a"))
    assert session.push("rides", event("10:00", "a")) == PushResult(1)


def test_each_stream_may_have_its_own_lateness() -> None:
    session = Session.local(streams={"exact": None, "lax": "PT5M", "laxer": timedelta(minutes=10)}, lateness=None)
    for name in session.streams:
        session.push(name, event("10:10", "a"))
        session.push(name, event("10:03", "b"))
    assert session.late == {"exact": 1, "lax": 1, "laxer": 0}


def test_a_malformed_event_takes_nothing_in() -> None:
    session = Session.local()
    with pytest.raises(MalformedEventError):
        session.push("s", [event("10:00", "a"), {"at": "x"}])
    assert session.streams == ()


def test_unknown_names_are_refused_with_what_there_is() -> None:
    session = Session.local()
    session.register(query())
    with pytest.raises(EngineError, match="no query `p`; queries: q"):
        session.query("p")


def test_unknown_policies_are_refused() -> None:
    with pytest.raises(EngineError, match="no window policy `sliding`; there are trailing, right-open, formal"):
        Session.local(windows="sliding").register(query())  # type: ignore[arg-type]
    with pytest.raises(EngineError, match="no conflict policy `first`"):
        Session.local(conflicts="first").register(query())  # type: ignore[arg-type]


# --- failure ----------------------------------------------------------------------------------------------------------

RATIO = registered("MATCH (n) WITHIN PT5M EMIT 10 / n.x AS share SNAPSHOT EVERY PT5M")


@pytest.mark.parametrize("restart", [False, True])
def test_a_failing_query_tells_what_it_knew_then_its_error_and_disturbs_no_other(restart: bool) -> None:
    session = Session.local(evaluation=EvaluationOptions(on_error="fail"))
    session.register(RATIO)
    session.register(registered("MATCH (n) WITHIN PT5M EMIT count(n) AS c SNAPSHOT EVERY PT5M", "count"))
    for clock, x in (("10:00", 5), ("10:05", 0), ("10:10", 2)):
        session.push("s", {"at": f"{DAY}{clock}:00Z", "nodes": [{"id": clock, "properties": {"x": x}}]})
        if restart:
            session = Session.restore(session.checkpoint())
    session.finish()
    q = session.query("q")
    assert told(q.poll()) == [("10:00", [2])]
    for _ in range(2):
        with pytest.raises(QueryError) as caught:
            q.poll()
    assert "division by zero" in caught.value.render()
    assert "10 / n.x" in caught.value.render()
    assert isinstance(caught.value, EvaluationError) or restart
    assert q.done
    assert told(session.query("count").poll()) == [("10:00", [1]), ("10:05", [1]), ("10:10", [1])]


# --- checkpoint -------------------------------------------------------------------------------------------------------


def test_a_checkpoint_brings_back_queries_graphs_streams_and_unpolled_answers() -> None:
    session = Session.local(streams={"s": "PT1M"}, windows="right-open")
    session.graph("g", {"nodes": [{"id": 1, "labels": ["N"]}], "edges": [{"type": "T", "from": 1, "to": 2}]})
    session.register(query("SNAPSHOT"), name="renamed")
    session.push("s", [event("10:00", "a"), event("10:09", "b"), event("10:01", "late")])
    again = Session.restore(session.checkpoint())
    assert again.checkpoint() == session.checkpoint()
    assert (again.streams, again.late) == (("s",), {"s": 1})
    assert [one.name for one in again.queries] == ["renamed"]
    assert told(again.query("renamed").poll()) == [("10:05", ["a"])]
    with pytest.raises(EngineError, match="no stream"):
        again.push("other", [])


def test_what_is_no_checkpoint_is_refused() -> None:
    good = Session.local().checkpoint()
    for data, reason in (
        (b"PK\x03\x04", "not a checkpoint of Anabranch"),
        (good.replace(b"checkpoint 4", b"checkpoint 3"), "has format 3; this version of Anabranch reads format 4"),
        (good[:-4], "damaged"),
        (Session.local()._engine.checkpoint(), "of an engine, not of a session"),
    ):
        with pytest.raises(EngineError, match=reason):
            Session.restore(data)


def test_a_restart_keeps_elements_and_values_of_every_kind() -> None:
    text = registered(
        "MATCH p = (a)-[r]->(b) WITHIN PT5M EMIT p, a, r, a.day AS day, {x: [1.5, null]} AS m ON EXIT EVERY PT5M"
    )
    events = [
        {
            "at": f"{DAY}10:00:00Z",
            "nodes": [{"id": 1, "labels": ["A"], "properties": {"day": {"$date": "2024-05-01"}, "f": 1.0}}],
            "edges": [{"type": "T", "from": 1, "to": 2, "properties": {"d": {"$duration": "P1M"}}}],
        },
        {"at": f"{DAY}10:20:00Z"},
    ]

    def run(restart: bool) -> list[Any]:
        session = Session.local()
        session.register(text)
        for one in events:
            session.push("s", one)
            session.advance(one["at"])  # type: ignore[arg-type]
            if restart:
                session = Session.restore(session.checkpoint())
        session.finish()
        return [answer.to_dict() for answer in session.query("q").poll()]

    assert run(True) == run(False)
    assert len(run(True)) == 1


def test_the_example_gives_tables_5_and_6_of_the_paper() -> None:
    bikes = Path(__file__).parents[3] / "examples" / "bikes"
    session = Session.local()
    q = session.register((bikes / "student_trick.seraph").read_text())
    with (bikes / "events.ndjson").open("rb") as file:
        for _, one in read_ndjson(file):
            assert isinstance(one, Event)
            session.push("rides", one)
    session.finish()
    assert [(str(a.at)[11:16], str(a.win_start)[11:16], str(a.win_end)[11:16], a.rows) for a in q.poll()] == [
        ("15:15", "14:15", "15:15", [(1234, 1, "14:40", [2, 3])]),
        ("15:40", "14:40", "15:40", [(5678, 2, "14:58", [3, 4])]),
    ]


def test_a_query_handle_shows_what_it_runs() -> None:
    session = Session.local()
    q = session.register(query())
    assert (q.text, q.columns, q.op, q.done) == (query(), ("name",), "entering", False)
    assert repr(q) == "Query('q')"
    assert isinstance(session.query("q"), Query)


def test_relationships_without_ids_are_told_apart() -> None:
    session = Session.local()
    q = session.register(registered("MATCH ()-[r]->() WITHIN PT1H EMIT count(r) AS c SNAPSHOT EVERY PT5M"))
    call = Relationship(None, "CALLS", 1, 2)
    session.push("s", [Event(at("10:00"), (), (call, call)), Event(at("10:00"), (), (call,))])
    session.finish()
    assert told(q.poll()) == [("10:00", [3])]


def plain_event(number: int) -> dict[str, Any]:
    nodes = [{"id": number % 7, "labels": ["N"], "properties": {"x": number % 3}}]
    return {"at": number, "nodes": nodes, "relationships": [{"type": "R", "from": 1, "to": 2}]}


@pytest.mark.parametrize(
    "odd",
    [
        {"at": 50, "nodes": [{"id": 1}]},
        {"at": "1970-01-01T00:00:00.050Z", "nodes": []},
        {"at": 50, "edges": []},
        {"at": 50, "nodes": ({"id": 1, "properties": {"when": datetime(2024, 5, 1, tzinfo=UTC).isoformat()}},)},
        {"at": 50, "nodes": [{"id": 1, "properties": {"when": {"$date": "2024-05-01"}}}]},
        {"at": datetime(1970, 1, 1, 0, 0, 0, 50_000, tzinfo=UTC)},
    ],
)
def test_many_json_objects_have_the_effect_of_each_pushed_alone(odd: dict[str, Any]) -> None:
    given = [plain_event(number) for number in range(100)]
    given[50] = odd
    one, many = Session.local(), Session.local()
    for session in (one, many):
        session.register("REGISTER QUERY q { MATCH (n) WITHIN PT1M EMIT count(n) SNAPSHOT EVERY PT1S }")
    accepted = sum(one.push("stream", event).accepted for event in given)
    assert many.push("stream", given).accepted == accepted
    assert many.checkpoint() == one.checkpoint()


@pytest.mark.parametrize("bad", [{"at": True}, {"at": 1, "nodes": [{}]}, {"at": 1, "nodes": [{"id": 1.5}]}, 7])
def test_one_malformed_object_among_many_raises_before_any_is_taken_in(bad: Any) -> None:
    given: list[Any] = [plain_event(number) for number in range(100)]
    session = Session.local()
    with pytest.raises(MalformedEventError) as alone:
        session.push("stream", [bad])
    given[60] = bad
    with pytest.raises(MalformedEventError) as found:
        session.push("stream", given)
    assert found.value.reason == alone.value.reason
    session.push("stream", given[:60])
    assert session.push("stream", given[61:]).accepted == 39


def test_a_block_of_events_is_pushed_as_it_is() -> None:
    session = Session.local()
    assert session.push("stream", graph_block(Event(number) for number in range(5))).accepted == 5
