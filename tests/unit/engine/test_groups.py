"""Groups: queries of one meaning are evaluated once, and no answer shows it."""

from __future__ import annotations

import pytest

from anabranch.engine.compiled import recompile
from anabranch.engine.engine import Engine
from anabranch.engine.evaluation_options import EvaluationOptions
from anabranch.engine.groups import FEWEST_RULES
from anabranch.engine.session import Session
from anabranch.errors import QueryError
from anabranch.model.event import Event
from anabranch.model.values import Node

SECOND = 1_000_000


def text(name: str, emit: str = "a.v AS v", mode: str = "ON ENTERING") -> str:
    return (
        f"REGISTER QUERY {name} STARTING AT 1970-01-01T00:00:00Z "
        f"{{ MATCH (a:P) WITHIN PT4S EMIT {emit} {mode} EVERY PT1S }}"
    )


def event(second: int, v: int | None = None) -> Event:
    return Event(second * SECOND, (Node(second, ("P",), {"v": second if v is None else v}),))


def groups(session: Session) -> list[list[str]]:
    """Return the names of the queries of each group."""
    return [list(group.members) for group in session._engine._schedule.groups.by_key.values()]


def session_of(*texts: str, **settings: object) -> Session:
    session = Session.local(**settings)  # type: ignore[arg-type]
    for one in texts:
        session.register(one)
    return session


def rows(session: Session, name: str) -> list[tuple[int, list[tuple[object, ...]]]]:
    return [(int(answer.at) // SECOND, answer.rows) for answer in session.query(name).poll()]


def test_copies_share_one_run_and_each_has_its_answers_and_counts() -> None:
    session = session_of(text("a"), text("b"), text("c", "a.v AS w"))
    session.push("s", [event(1), event(3)])
    assert groups(session) == [["a", "b"]], "another column is another meaning"
    assert rows(session, "a") == rows(session, "b") == [(1, [(1,)])]
    a, b = session.query("a"), session.query("b")
    assert (a.evaluations, a.instants) == (b.evaluations, b.instants)
    assert [answer.columns for answer in session.query("c").poll()] == [("w",)]
    assert session._engine.query("b").run.flow is None, "only the group has operators"


def test_without_sharing_there_are_no_groups() -> None:
    session = session_of(text("a"), text("b"), evaluation=EvaluationOptions(sharing=False))
    session.push("s", [event(1), event(3)])
    assert groups(session) == []


def test_a_member_that_is_dropped_leaves_the_others_where_they_are() -> None:
    session = session_of(text("a"), text("b"), text("c"))
    session.push("s", [event(1), event(3)])
    session.query("a").unregister()
    run = session._engine.query("b").group
    session.push("s", [event(5)])
    assert groups(session) == [["b", "c"]]
    assert session._engine.query("b").group is run
    assert rows(session, "c") == [(1, [(1,)]), (3, [(3,)])]
    session.query("b").unregister()
    session.query("c").unregister()
    assert groups(session) == []


def test_a_query_that_is_registered_later_catches_up_alone_and_then_joins() -> None:
    session = session_of(text("a"), text("b"))
    session.push("s", [event(1), event(3)])
    session.register(text("late"))
    assert groups(session) == [["a", "b"]], "it catches up alone"
    session.push("s", [event(4)])
    assert groups(session) == [["a", "b", "late"]]
    assert rows(session, "late") == rows(session, "a") == [(1, [(1,)]), (3, [(3,)])]


def test_a_correction_ends_the_group_and_the_members_meet_again() -> None:
    session = session_of(text("a"), text("b"), late="correct")
    session.push("s", [event(1), event(5)])
    session.push("s", [event(3)])
    assert groups(session) == []
    session.push("s", [event(7)])
    assert groups(session) == [["a", "b"]]
    assert rows(session, "a") == rows(session, "b")


@pytest.mark.parametrize("on_error", ["fail", "skip"])
def test_a_row_that_fails_ends_the_group_for_good_and_each_member_names_its_own_text(on_error: str) -> None:
    session = Session.local(evaluation=EvaluationOptions(on_error=on_error))  # type: ignore[arg-type]
    session.register(text("a", "1 / a.v AS x"))
    session.register("\n" + text("b", "1 / a.v AS x"))
    session.push("s", [event(1), event(2, 0), event(4)])
    session.push("s", [event(5)])
    assert groups(session) == []
    errors = [session.query(name).last_error for name in ("a", "b")]
    assert ["division by zero" in str(error) for error in errors] == [True, True]
    assert [":1:" in str(errors[0]), ":2:" in str(errors[1])] == [True, True]
    if on_error == "fail":
        assert rows(session, "a") == rows(session, "b") == [(1, [(1,)])]
        with pytest.raises(QueryError, match="division by zero"):
            session.query("b").poll()
    else:
        assert [session.query(name).skipped for name in ("a", "b")] == [1, 1]


def test_a_checkpoint_does_not_know_of_groups() -> None:
    states = []
    for sharing in (True, False):
        session = session_of(text("a"), text("b"), evaluation=EvaluationOptions(sharing=sharing))
        session.push("s", [event(1), event(3), event(4)])
        states.append(session._engine.state())
    assert states[0] == states[1]
    engine = Engine.from_state(states[0], recompile)
    engine.push("s", [event(6)])
    assert [len(group.members) for group in engine._schedule.groups.by_key.values()] == [2]
    assert [[answer.rows for answer in engine.poll(name)][-1] for name in "ab"] == [[(4,)], [(4,)]]


def test_queries_that_make_a_stream_or_draw_by_chance_run_alone() -> None:
    session = session_of(text("a", "rand() AS x"), text("b", "rand() AS x"))
    session.push("s", [event(1), event(3)])
    assert groups(session) == []


def test_constants_that_python_takes_as_equal_are_different_meanings() -> None:
    session = session_of(text("a", "1 AS x"), text("b", "1.0 AS x"), text("c", "true AS x"))
    session.push("s", [event(1), event(3)])
    assert groups(session) == []


def test_reconciled_queries_keep_their_group_and_their_order() -> None:
    from anabranch.engine.compiled import compile_queries
    from anabranch.engine.query_options import QueryOptions
    from anabranch.syntax import languages

    def wanted(*names: str) -> object:
        return compile_queries([languages.script(text(name), "<query>") for name in names], QueryOptions())

    engine = Engine()
    engine.reconcile(wanted("a", "b", "c"))  # type: ignore[arg-type]
    engine.push("s", [event(1), event(3)])
    (group,) = engine._schedule.groups.by_key.values()
    engine.reconcile(wanted("x", "c", "b"))  # type: ignore[arg-type]
    engine.push("s", [event(5)])
    engine.push("s", [event(7)])
    assert list(group.members) == ["b", "c", "x"]
    assert group.run.order == 0
    assert [answer.query for answer in engine.take()][-3:] == ["x", "c", "b"]


# --- queries that differ in constants ---


def rule(name: str, key: int, least: int = 0, mode: str = "ON ENTERING") -> str:
    return (
        f"REGISTER QUERY {name} STARTING AT 1970-01-01T00:00:00Z {{ MATCH (a:P {{k: {key}}}) WITHIN PT4S "
        f"WHERE a.v >= {least} EMIT a.v AS v {mode} EVERY PT1S }}"
    )


def keyed(second: int, key: int, v: int) -> Event:
    return Event(second * SECOND, (Node(100 * second + key, ("P",), {"k": key, "v": v}),))


RULES = [rule(f"r{key}", key, key % 2) for key in range(FEWEST_RULES)]


def test_rules_that_differ_in_constants_share_one_run() -> None:
    session = session_of(*RULES)
    session.push("s", [keyed(1, 3, 0), keyed(1, 4, 5), keyed(1, 5, 7), event(3)])
    assert [len(one) for one in groups(session)] == [FEWEST_RULES]
    assert [rows(session, f"r{key}") for key in (3, 4, 5)] == [[], [(1, [(5,)])], [(1, [(7,)])]]


def test_few_rules_run_each_alone() -> None:
    session = session_of(*RULES[1:])
    session.push("s", [keyed(1, 3, 1), event(3)])
    assert groups(session) == []


def test_a_rule_that_is_added_finds_what_the_windows_hold_and_operators_stay() -> None:
    session = session_of(*RULES)
    session.push("s", [keyed(1, 99, 1), keyed(2, 4, 5), event(4)])
    run = session._engine.query("r4").group
    assert run is not None
    flow = run.run.run.flow
    session.register(rule("new", 99).replace("STARTING AT 1970-01-01T00:00:00Z ", "STARTING AT 1970-01-01T00:00:04Z "))
    session.push("s", [keyed(5, 99, 2), event(6)])
    assert groups(session)[0][-1] == "new"
    assert run.run.run.flow is flow, "the operators take a row of the table in as any other change"
    assert rows(session, "new") == [(4, [(1,)]), (5, [(2,)])]


def test_a_rule_that_is_dropped_leaves_the_table() -> None:
    session = session_of(*RULES, rule("twin", 4))
    session.push("s", [keyed(1, 4, 1), event(3)])
    session.query("r4").unregister()
    session.push("s", [keyed(4, 4, 2), keyed(4, 5, 3), event(6)])
    assert rows(session, "twin") == [(1, [(1,)]), (4, [(2,)])]
    session.query("twin").unregister()
    session.push("s", [keyed(7, 4, 2), keyed(7, 5, 4), event(9)])
    assert rows(session, "r5") == [(4, [(3,)]), (7, [(4,)])]


def test_a_constant_that_differs_for_the_first_time_makes_a_new_table() -> None:
    session = session_of(*(rule(f"r{key}", key) for key in range(FEWEST_RULES)))
    session.push("s", [keyed(1, 4, 5), event(3)])
    session.register(rule("high", 4, 6))
    session.push("s", [keyed(4, 4, 7), keyed(4, 5, 3), event(6)])
    session.push("s", [keyed(7, 4, 5), event(9)])
    assert [len(one) for one in groups(session)] == [FEWEST_RULES + 1]
    assert rows(session, "high") == [(4, [(7,)])]
    assert rows(session, "r4") == [(1, [(5,)]), (4, [(7,)]), (7, [(5,)])]


def test_thresholds_alone_are_no_keys_of_a_table() -> None:
    session = session_of(*(text(f"r{least}").replace(" EMIT", f" WHERE a.v > {least} EMIT") for least in range(40)))
    session.push("s", [event(1), event(3)])
    assert groups(session) == []


def test_rules_over_triples_share_one_run() -> None:
    from anabranch.model.terms import Iri, Triple

    prefix = "http://ex.org/"
    session = Session.local()
    for number in range(FEWEST_RULES):
        session.register(
            f"REGISTER QUERY t{number} AS PREFIX : <{prefix}> SELECT ?u ?c "
            f"FROM STREAM <{prefix}s> [RANGE 4s STEP 1s] "
            f"WHERE {{ ?u :p :v{number} . ?u :q ?c . FILTER(?c = :w{number}) }}",
            file_name="q.csparql",
        )

    def triple(second: int, subject: str, predicate: str, object_: str) -> Event:
        terms = (Iri(prefix + one) for one in (subject, predicate, object_))
        return Event(second * SECOND, triples=(Triple(*terms),))

    events = [triple(1, "a", "p", "v3"), triple(1, "a", "q", "w3"), triple(2, "a", "q", "w4"), triple(4, "z", "p", "z")]
    session.push(f"{prefix}s", events)
    assert [len(one) for one in groups(session)] == [FEWEST_RULES]
    assert {len(row) for answer in session.query("t3").poll() for row in answer.rows} == {2}
    assert session.query("t4").poll() == []


def test_a_pattern_with_too_many_matches_without_its_constants_is_matched_for_each_rule(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("anabranch.engine.groups.MOST_MATCHES", 3)
    session = session_of(*RULES)
    session.push("s", [keyed(1, key, key) for key in range(3)] + [event(2)])
    assert [len(one) for one in groups(session)] == [FEWEST_RULES]
    session.push("s", [keyed(3, key, key) for key in range(8)] + [event(5)])
    assert groups(session) == []
    assert rows(session, "r5") == [(3, [(5,)])]
    assert rows(session, "r2") == [(1, [(2,)]), (3, [(2,)])]


def test_queries_know_before_they_run_whom_they_share_a_run_with() -> None:
    from anabranch.engine.compiled import compile_queries
    from anabranch.engine.groups import shared_runs
    from anabranch.engine.query_options import QueryOptions
    from anabranch.syntax import languages

    def runs(*texts: str) -> dict[str, tuple[int, bool]]:
        queries = compile_queries([languages.script(one, "<query>") for one in texts], QueryOptions())
        return {name: (len(run.others), run.is_table) for name, run in shared_runs(queries).items()}

    assert runs(text("a"), text("b"), text("c", "a.w AS w")) == {"a": (1, False), "b": (1, False)}
    assert runs(*RULES[1:]) == {}
    assert runs(*RULES) == {f"r{key}": (FEWEST_RULES - 1, True) for key in range(FEWEST_RULES)}


def test_operators_of_copies_are_counted_for_each_and_those_over_a_table_for_none() -> None:
    session = session_of(text("a"), text("b"), *RULES)
    session.push("s", [event(1), event(3)])
    first, second, rule_ = (session._engine.query(name).operators() for name in ("a", "b", "r1"))
    assert first == second
    assert len(first) > 2
    assert [one.id for one in rule_] == [0], "its window"
