"""Late events that are taken in: which answers are retracted, what is told instead, what it costs and what is kept."""

from __future__ import annotations

from typing import Any

import pytest

from anabranch.engine.answers import Answer
from anabranch.engine.evaluation_options import EvaluationOptions
from anabranch.engine.progress import LatePolicy
from anabranch.engine.session import Session
from anabranch.errors import EngineError, EvaluationError
from anabranch.model.event import Event
from anabranch.model.instants import parse_instant
from anabranch.model.temporal import parse_duration
from anabranch.model.values import Node

DAY = "2024-05-01T"
MINUTE = 60_000_000


def event(clock: str, name: Any) -> Event:
    event_time = parse_instant(f"{DAY}{clock}Z")
    return Event(event_time, (Node(str(name), ("N",), {"name": name}),))


def text(body: str, name: str = "q", start: str = f"{DAY}10:00Z") -> str:
    return f"REGISTER QUERY {name} STARTING AT {start} {{ {body} }}"


def names(output: str, within: str = "PT10M", every: str = "PT5M") -> str:
    return f"MATCH (n:N) WITHIN {within} EMIT n.name AS name {output} EVERY {every}"


def told(answers: list[Answer]) -> list[tuple[str, str, list[Any]]]:
    return [(str(one.at)[11:16], one.correction, sorted(row[0] for row in one.rows)) for one in answers]


def corrected(body: str, *late: Event, late_policy: LatePolicy | None = None) -> list[tuple[str, str, list[Any]]]:
    """What comes of late events after `a` at 10:00, `b` at 10:06 and an advance to 10:22."""
    session = Session.local(late=late_policy or "correct")
    query = session.register(text(body))
    session.push("s", [event("10:00", "a"), event("10:06", "b")])
    session.advance(f"{DAY}10:22Z")
    query.poll()
    assert session.push("s", late).corrected == len(late)
    return told(query.poll())


def test_a_snapshot_is_told_again_at_every_instant_whose_window_holds_the_event() -> None:
    assert corrected(names("SNAPSHOT"), event("10:03", "late")) == [
        ("10:05", "retracted", ["a"]),
        ("10:05", "corrected", ["a", "late"]),
        ("10:10", "retracted", ["b"]),
        ("10:10", "corrected", ["b", "late"]),
    ]


def test_entering_is_corrected_where_the_event_would_have_entered() -> None:
    assert corrected(names("ON ENTERING"), event("10:03", "late")) == [("10:05", "corrected", ["late"])]
    assert corrected(names("ON ENTERING"), event("10:07", "late")) == [
        ("10:10", "retracted", ["b"]),
        ("10:10", "corrected", ["b", "late"]),
    ]


def test_exiting_is_corrected_one_instant_after_the_last_window() -> None:
    assert corrected(names("ON EXIT"), event("10:03", "late")) == [("10:15", "corrected", ["late"])]
    assert corrected(names("ON EXIT"), event("10:07", "late")) == [
        ("10:20", "retracted", ["b"]),
        ("10:20", "corrected", ["b", "late"]),
    ]


def test_an_event_that_empties_an_answer_leaves_only_the_retraction() -> None:
    body = "MATCH (n:N) WITHIN PT10M WITH count(n) AS c WHERE c = 1 EMIT c SNAPSHOT EVERY PT5M"
    assert corrected(body, event("10:03", "late")) == [("10:05", "retracted", [1]), ("10:10", "retracted", [1])]


def test_one_answer_is_corrected_with_and_without_rows() -> None:
    body = "MATCH (n:N) WITHIN PT10M WHERE n.name = 'late' RETURN n.name AS name"
    assert corrected(body, event("09:55", "late")) == [("10:00", "retracted", []), ("10:00", "corrected", ["late"])]
    assert corrected(body, event("10:03", "late")) == []


def test_all_late_events_of_a_push_are_corrected_together() -> None:
    found = corrected(names("SNAPSHOT"), event("10:02", "x"), event("10:01", "y"))
    assert found[:2] == [("10:05", "retracted", ["a"]), ("10:05", "corrected", ["a", "x", "y"])]
    assert len(found) == 4


def test_an_event_that_changes_no_answer_says_nothing() -> None:
    assert corrected("MATCH (n:M) WITHIN PT10M EMIT n.name AS name SNAPSHOT EVERY PT5M", event("10:03", "x")) == []
    assert corrected(names("SNAPSHOT"), event("08:00", "too old for every window")) == []


def test_rows_in_another_order_are_told_again_where_an_order_was_asked_for() -> None:
    older = Event(parse_instant(f"{DAY}10:01Z"), (Node("a", ("N",), {"name": "a", "x": 2}),))
    newer = Event(parse_instant(f"{DAY}10:02Z"), (Node("b", ("N",), {"name": "b", "x": 1}),))
    late = Event(parse_instant(f"{DAY}10:03Z"), (Node("b", ("N",), {"name": "b", "x": 3}),))
    for order, count in (("", 0), (" ORDER BY n.x", 2)):
        session = Session.local(late="correct")
        query = session.register(text(f"MATCH (n:N) WITHIN PT5M EMIT n.name AS name{order} SNAPSHOT EVERY PT5M"))
        session.push("s", [older, newer, event("10:09", "c")])
        query.poll()
        session.push("s", late)
        assert len(query.poll()) == count


def test_several_windows_and_widths_are_corrected_each() -> None:
    body = (
        "MATCH (n:N) WITHIN PT5M OPTIONAL MATCH (m:N) WITHIN PT20M WHERE m.name <> n.name "
        "EMIT n.name + '/' + coalesce(m.name, '-') AS pair SNAPSHOT EVERY PT5M"
    )
    assert corrected(body, event("10:03", "c")) == [
        ("10:05", "corrected", ["c/a"]),
        ("10:10", "retracted", ["b/a"]),
        ("10:10", "corrected", ["b/a", "b/c"]),
    ]


@pytest.mark.parametrize(
    ("windows", "instants"),
    [("trailing", ["10:05", "10:10"]), ("right-open", ["10:10", "10:15"]), ("formal", ["10:05", "10:10"])],
)
def test_every_window_policy_is_corrected_at_its_own_instants(windows: Any, instants: list[str]) -> None:
    session = Session.local(late="correct", windows=windows)
    query = session.register(text(names("SNAPSHOT")))
    session.push("s", event("10:30", "x"))
    query.poll()
    session.push("s", event("10:05", "late"))
    assert told(query.poll()) == [(instant, "corrected", ["late"]) for instant in instants]


def test_a_correction_can_be_corrected() -> None:
    session = Session.local(late="correct")
    query = session.register(text(names("SNAPSHOT", within="PT5M")))
    session.push("s", [event("10:02", "a"), event("10:30", "z")])
    session.push("s", event("10:03", "b"))
    session.push("s", event("10:01", "c"))
    answers = [one for one in told(query.poll()) if one[0] == "10:05"]
    assert answers == [
        ("10:05", "", ["a"]),
        ("10:05", "retracted", ["a"]),
        ("10:05", "corrected", ["a", "b"]),
        ("10:05", "retracted", ["a", "b"]),
        ("10:05", "corrected", ["a", "b", "c"]),
    ]


def test_after_a_correction_the_next_difference_looks_at_the_corrected_rows() -> None:
    session = Session.local(late="correct")
    query = session.register(text(names("ON ENTERING", within="PT1H")))
    session.push("s", event("10:06", "a"))
    session.push("s", event("10:02", "late"))
    session.push("s", event("10:12", "b"))
    session.finish()
    assert told(query.poll()) == [("10:05", "corrected", ["late"]), ("10:10", "", ["a"]), ("10:15", "", ["b"])]


def test_an_instant_that_has_not_passed_is_told_right_the_first_time() -> None:
    session = Session.local(late="correct")
    query = session.register(text(names("SNAPSHOT")))
    pushed = session.push("s", [event("10:04", "a"), event("10:02", "late"), event("10:06", "b")])
    assert (pushed.accepted, pushed.corrected, pushed.late) == (3, 1, ())
    assert (session.corrected, session.late) == ({"s": 1}, {"s": 0})
    assert told(query.poll()) == [("10:05", "", ["a", "late"])]


def test_instants_that_were_passed_over_are_corrected_and_cost_what_changes() -> None:
    session = Session.local(late="correct")
    query = session.register(text(names("ON ENTERING", every="PT1S"), start="1990-01-01T00:00Z"))
    session.push("s", [event("10:00", "a"), event("11:00", "b")])
    query.poll()
    before = query.evaluations
    session.push("s", [event("10:30", "late"), Event(parse_instant("1999-01-01T00:00Z"), (Node("old", ("N",)),))])
    assert [(str(one.at), one.correction) for one in query.poll()] == [
        ("1999-01-01T00:00:00Z", "corrected"),
        (f"{DAY}10:30:00Z", "corrected"),
    ]
    assert query.evaluations - before < 20


def test_a_query_that_starts_now_keeps_its_start() -> None:
    session = Session.local(late="correct")
    query = session.register(text(names("SNAPSHOT"), start="NOW"))
    session.push("s", [event("10:01", "a"), event("10:12", "b")])
    session.push("s", event("09:58", "late"))
    assert told(query.poll()) == [
        ("10:01", "", ["a"]),
        ("10:06", "", ["a"]),
        ("10:01", "retracted", ["a"]),
        ("10:01", "corrected", ["a", "late"]),
        ("10:06", "retracted", ["a"]),
        ("10:06", "corrected", ["a", "late"]),
    ]


def test_instants_from_before_a_query_joined_are_none_of_its_own() -> None:
    session = Session.local(late=LatePolicy("correct", parse_duration("PT10M")))
    session.register(text(names("SNAPSHOT", within="PT5M"), "first"))
    session.push("s", [event(f"10:{minute:02}", minute) for minute in range(41)])
    second = session.register(text(names("SNAPSHOT", within="PT5M"), "second"))
    joined = told(second.poll())[0][0]
    assert joined > "10:15"
    session.push("s", event("10:31", 310))
    assert told(second.poll()) == [
        ("10:35", "retracted", [31, 32, 33, 34, 35]),
        ("10:35", "corrected", [31, 32, 33, 34, 35, 310]),
    ]


def test_a_replaced_static_graph_is_corrected_as_each_instant_saw_it() -> None:
    body = "MATCH (n:N) WITHIN PT5M MATCH (g) ON GRAPH g EMIT n.name + g.x AS name SNAPSHOT EVERY PT5M"

    def run(restart: bool) -> list[tuple[str, str, list[Any]]]:
        session = Session.local(late="correct")
        session.graph("g", {"nodes": [{"id": 1, "properties": {"x": "-old"}}]})
        session.register(text(body))
        session.push("s", [event("10:04", "a"), event("10:08", "b")])
        session.graph("g", {"nodes": [{"id": 1, "properties": {"x": "-unseen"}}]})
        session.graph("g", {"nodes": [{"id": 1, "properties": {"x": "-new"}}]})
        session.advance(f"{DAY}10:12Z")
        session.query("q").poll()
        if restart:
            session = Session.restore(session.checkpoint())
        session.push("s", [event("10:03", "x"), event("10:07", "y")])
        return told(session.query("q").poll())

    assert run(False) == run(True)
    assert run(False) == [
        ("10:05", "retracted", ["a-old"]),
        ("10:05", "corrected", ["a-old", "x-old"]),
        ("10:10", "retracted", ["b-new"]),
        ("10:10", "corrected", ["b-new", "y-new"]),
    ]


def test_a_query_that_fails_on_a_correction_tells_what_came_before_and_stays_failed() -> None:
    session = Session.local(late="correct", evaluation=EvaluationOptions(on_error="fail"))
    query = session.register(
        text("MATCH (n:N) WITHIN PT5M EMIT 10 / n.name AS share SNAPSHOT EVERY PT5M"),
    )
    other = session.register(text("MATCH (n:N) WITHIN PT5M EMIT count(n) AS c SNAPSHOT EVERY PT5M", "other"))
    session.push("s", [event("10:02", 1), event("10:07", 2), event("10:21", 5)])
    query.poll()
    other.poll()
    session.push("s", [event("10:03", 10), event("10:08", 0)])
    assert told(query.poll()) == [("10:05", "retracted", [10]), ("10:05", "corrected", [1, 10])]
    with pytest.raises(EvaluationError):
        query.poll()
    assert len(other.poll()) == 4
    session.push("s", event("10:02", 7))
    assert query.done
    assert [name for name, _ in session.failures()] == ["q"]
    assert session.failures() == []


def test_a_conflict_that_a_late_event_brings_is_warned_of_once() -> None:
    session = Session.local(late="correct", conflicts="strict")
    query = session.register(text(names("SNAPSHOT", within="PT5M")))
    session.push("s", [event("10:02", "a"), event("10:30", "z")])
    session.push("s", Event(parse_instant(f"{DAY}10:03Z"), (Node("a", ("N",), {"name": "other"}),)))
    assert [str(one.at)[11:16] + one.correction for one in query.poll() if one.correction] == ["10:05retracted"]
    assert len(query.warnings()) == 1


def test_beyond_the_horizon_events_are_handed_back_and_buffers_forget() -> None:
    session = Session.local(late=LatePolicy("correct", parse_duration("PT15M")))
    query = session.register(text(names("SNAPSHOT")))
    for minute in range(600):
        session.push("s", Event(parse_instant(f"{DAY}10:00Z") + minute * MINUTE, (Node(minute, ("N",)),)))
        assert len(session._engine.stream("s")) <= 45
    query.poll()
    pushed = session.push("s", [event("19:44", "in reach"), event("19:43", "too old")])
    assert (pushed.accepted, pushed.corrected) == (1, 1)
    assert [late.nodes[0].id for late in pushed.late] == ["too old"]
    assert len(query.poll()) == 4


def test_within_the_horizon_a_difference_still_sees_the_window_before_it() -> None:
    def told_again(output: str, between: Any, late: Any) -> list[tuple[str, str, list[Any]]]:
        session = Session.local(late=LatePolicy("correct", parse_duration("PT5M")))
        query = session.register(text(names(output, within="PT5M")))
        session.push("s", [event("10:04", "x"), between, event("10:12", "z")])
        query.poll()
        assert session.push("s", [late]).corrected == 1
        return told(query.poll())

    other = Event(event("10:08", "x").event_time, (Node("other", ("N",), {"name": "x"}),))
    assert told_again("ON ENTERING", other, event("10:09", "late")) == [("10:10", "corrected", ["late"])]
    assert told_again("ON EXIT", event("10:08", "y"), event("10:09", "x")) == [("10:10", "retracted", ["x"])]


def test_within_the_horizon_the_window_before_is_seen_with_the_graph_of_its_time() -> None:
    body = "MATCH (n:N) WITHIN PT5M MATCH (g) ON GRAPH g EMIT n.name + g.x AS name ON ENTERING EVERY PT5M"
    session = Session.local(late=LatePolicy("correct", parse_duration("PT5M")))
    session.graph("g", {"nodes": [{"id": 1, "properties": {"x": "-old"}}]})
    query = session.register(text(body))
    session.push("s", [event("10:04", "x"), event("10:06", "y")])
    session.graph("g", {"nodes": [{"id": 1, "properties": {"x": "-new"}}]})
    session.push("s", [event("10:08", "x"), event("10:12", "z")])
    assert told(query.poll()) == [("10:05", "", ["x-old"]), ("10:10", "", ["x-new", "y-new"])]
    session.push("s", [event("10:09", "late")])
    assert told(query.poll()) == [
        ("10:10", "retracted", ["x-new", "y-new"]),
        ("10:10", "corrected", ["late-new", "x-new", "y-new"]),
    ]


def test_without_a_horizon_nothing_is_forgotten() -> None:
    session = Session.local(late="correct")
    session.register(text(names("SNAPSHOT")))
    session.push("s", [event(f"1{hour}:{minute:02}", minute) for hour in range(10) for minute in range(60)])
    assert len(session._engine.stream("s")) == 600


def test_one_answer_is_kept_correctable_within_the_horizon_and_not_beyond() -> None:
    session = Session.local(late=LatePolicy("correct", parse_duration("PT10M")))
    query = session.register(text("MATCH (n:N) WITHIN PT10M RETURN count(n) AS c"))
    session.push("s", [event("09:51", "a"), event("10:02", "b")])
    assert (told(query.poll()), query.done) == ([("10:00", "", [1])], False)
    session.push("s", event("09:55", "late"))
    assert told(query.poll()) == [("10:00", "retracted", [1]), ("10:00", "corrected", [2])]
    session.push("s", event("10:30", "c"))
    assert len(session._engine.stream("s")) == 0
    assert len(session.push("s", event("09:59", "too late")).late) == 1


def test_after_an_advance_in_a_quiet_time_the_horizon_counts_from_there() -> None:
    session = Session.local(late=LatePolicy("correct", parse_duration("PT10M")))
    query = session.register(text(names("SNAPSHOT")))
    session.push("s", event("10:01", "a"))
    session.advance(f"{DAY}12:00Z")
    query.poll()
    assert len(session.push("s", event("10:03", "lost")).late) == 1
    assert session.push("s", event("11:51", "late")).corrected == 1
    assert told(query.poll()) == [("11:55", "corrected", ["late"]), ("12:00", "corrected", ["late"])]


def test_pending_corrections_survive_a_restart() -> None:
    session = Session.local(late=LatePolicy("correct", parse_duration("PT1H")))
    session.register(text(names("SNAPSHOT")))
    session.push("s", [event("10:00", "a"), event("10:06", "b")])
    session.push("s", event("10:03", "late"))
    restored = Session.restore(session.checkpoint())
    assert [one.to_dict() for one in restored.take()] == [one.to_dict() for one in session.take()]
    assert restored._engine.late == LatePolicy("correct", parse_duration("PT1H"))
    assert restored.checkpoint() == session.checkpoint()


def test_a_correction_says_so_in_its_json_right_after_the_operator() -> None:
    session = Session.local(late="correct")
    query = session.register(text(names("ON ENTERING")))
    session.push("s", [event("10:06", "b"), event("10:06", "c")])
    session.push("s", event("10:03", "late"))
    (answer,) = query.poll()
    assert list(answer.to_dict()) == ["query", "at", "op", "correction", "win_start", "win_end", "rows"]
    assert [row["correction"] for row in answer.row_dicts()] == ["corrected"]


def test_a_closed_stream_takes_no_correction() -> None:
    session = Session.local(late="correct")
    session.push("s", event("10:00", "a"))
    session.finish()
    with pytest.raises(EngineError, match="closed"):
        session.push("s", event("09:00", "b"))
