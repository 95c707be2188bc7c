"""How queries are run: on changes or anew, verified, within limits; whatever is chosen, the answers are the same."""

from __future__ import annotations

import gc
import weakref
from datetime import timedelta

import pytest

from anabranch.delta.dictionary import Dictionary
from anabranch.engine.evaluation_options import MATCHERS, EvaluationOptions, Force
from anabranch.engine.plans import planned
from anabranch.engine.session import Session
from anabranch.errors import EngineError, QueryError
from anabranch.model.event import Event
from anabranch.model.terms import Iri, Triple
from anabranch.model.values import Node, Relationship
from anabranch.optimizer import Knowledge, optimize
from anabranch.snapshot import compile_plan
from anabranch.syntax import languages

SECOND = 1_000_000
FRIENDS = """
REGISTER QUERY friends STARTING AT '1970-01-01T00:00:00Z'
{ MATCH (a:Person)-[:KNOWS]->(b:Person) WITHIN PT5S EMIT a.name AS a, b.name AS b ON ENTERING EVERY PT1S }
"""
TWO_STEPS = """
REGISTER QUERY steps AS PREFIX : <http://e/>
SELECT ?a ?c FROM STREAM <http://s> [RANGE 5s STEP 1s] WHERE { ?a :p ?b . ?b :p ?c }
"""


def person(number: int) -> Node:
    return Node(number, ("Person",), {"name": f"p{number}"})


def meeting(at: int, one: int, other: int) -> Event:
    relationship = Relationship(f"r{one}-{other}", "KNOWS", one, other)
    return Event(at * SECOND, (person(one), person(other)), (relationship,))


def step(at: int, one: int, other: int) -> Event:
    return Event(at * SECOND, triples=(Triple(Iri(f"http://e/{one}"), Iri("http://e/p"), Iri(f"http://e/{other}")),))


def told(session: Session, text: str, events: list[Event], stream: str = "s") -> list[object]:
    query = session.register(text)
    for event in events:
        session.push(stream, [event])
    session.finish(drain=True)
    return [answer.to_dict() for answer in query.poll()]


def test_forced_to_compute_anew_a_query_says_the_same() -> None:
    events = [meeting(at, at % 3, (at * 2 + 1) % 4) for at in range(30)]
    incremental = told(Session.local(), FRIENDS, events)
    anew = told(Session.local(evaluation=EvaluationOptions(force="recompute")), FRIENDS, events)
    assert incremental == anew
    assert incremental


@pytest.mark.parametrize("matcher", MATCHERS)
def test_every_matcher_says_the_same(matcher: str) -> None:
    events = [step(at, at % 4, (at * 3 + 1) % 5) for at in range(40)]
    session = Session.local(evaluation=EvaluationOptions(matcher=matcher))  # type: ignore[arg-type]
    expected = told(Session.local(evaluation=EvaluationOptions(force="recompute")), TWO_STEPS, events, "http://s")
    assert told(session, TWO_STEPS, events, "http://s") == expected


@pytest.mark.parametrize(
    ("window", "algorithm"), [("RANGE 5s STEP 1s", "LogMatcher"), ("RANGE 5s TUMBLING", "SemiJoins")]
)
def test_a_tumbling_window_is_matched_as_a_whole_and_a_sliding_one_by_what_changed(window: str, algorithm: str) -> None:
    (registration,) = languages.registrations(TWO_STEPS.replace("RANGE 5s STEP 1s", window))
    plan = optimize(registration.plan, Knowledge({"default": frozenset()})).plan
    modes = planned(plan, registration, EvaluationOptions(), {}).modes
    assert algorithm in {mode.detail for mode in modes.values()}


def test_verified_evaluations_are_counted_and_agree() -> None:
    session = Session.local(evaluation=EvaluationOptions(verify=2))
    query = session.register(FRIENDS)
    for at in range(20):
        session.push("s", [meeting(at, at % 3, at % 4)])
    session.finish()
    assert query.verified == query.evaluations // 2 > 5
    assert query.differing == 0
    assert query.warnings() == []


@pytest.mark.parametrize("force", ["auto", "recompute"])
def test_a_difference_is_told_loudly(monkeypatch: pytest.MonkeyPatch, force: Force) -> None:
    from anabranch.engine.plans import Plans
    from anabranch.syntax import seraph

    session = Session.local(evaluation=EvaluationOptions(verify=1, force=force))
    query = session.register(FRIENDS)
    other = compile_plan(seraph.plan("RETURN 'p9' AS a, 'p9' AS b"))
    monkeypatch.setattr(Plans, "plain", lambda self: other)
    session.push("s", [meeting(1, 1, 2), meeting(3, 2, 3)])
    session.finish()
    assert query.differing > 0
    said = str(query.warnings()[0])
    assert said.startswith("VERIFY FAILED")
    assert "missing: ('p9', 'p9')" in said


def test_a_pattern_with_too_many_matches_is_refused_by_name_and_the_stream_goes_on() -> None:
    session = Session.local(evaluation=EvaluationOptions(max_matches=50))
    exploding = session.register(TWO_STEPS)
    modest = session.register(TWO_STEPS.replace("steps", "ones").replace("?a :p ?b . ?b :p ?c", "?a :p ?c"))
    for at in range(20):
        session.push("http://s", [step(at, one, 0) for one in range(1, 9)] + [step(at, 0, one) for one in range(1, 9)])
    session.finish()
    with pytest.raises(QueryError, match="SER-308") as caught:
        exploding.poll()
    assert "?a :p ?b . ?b :p ?c" in str(caught.value)
    assert "--max-matches" in str(caught.value)
    assert modest.poll()


SERAPH = "REGISTER QUERY q STARTING AT '1970-01-01T00:00:00Z' { %s SNAPSHOT EVERY PT2S }"
KEEPING_STATE = [
    (
        SERAPH % "MATCH (a:Nobody)-[:NEVER*2]->() WITHIN PT60S EMIT id(a) AS a, componentSize(a) AS size",
        "the index of connected()",
    ),
    (SERAPH % "MATCH (a:Nobody) WITHIN PT60S EMIT id(a) AS a, componentSize(a) AS size", "the pattern (a:Nobody)"),
    (SERAPH % "MATCH (a)-[*]->(b) WITHIN PT60S EMIT DISTINCT id(a) AS a", "the pattern (a)-[_r1*1.. once]->(b)"),
    (SERAPH % "MATCH (a)-[*]-(b) WITHIN PT60S EMIT DISTINCT id(a) AS a", "the pattern (a)-[_r1*1.. once]-(b)"),
    (SERAPH % "MATCH (a)-[*]->(b) WITHIN PT60S EMIT id(a) AS a", "the pattern (a)-[_r1*1..]->(b)"),
    (TWO_STEPS.replace("?a :p ?b . ?b :p ?c", "?a :p+ ?c").replace("5s", "60s"), "the pattern ?a :p+ ?c"),
]


@pytest.mark.parametrize(("text", "said"), KEEPING_STATE)
def test_whatever_keeps_more_than_allowed_is_refused_by_name(text: str, said: str) -> None:
    session = Session.local(evaluation=EvaluationOptions(max_state=60_000))
    query = session.register(text)
    stream, event = ("s", meeting) if text.startswith("REGISTER QUERY q") else ("http://s", step)
    events = [event(at // 100, at, at + 1) for at in range(3000 if "Nobody" in text else 150)]
    session.push(stream, [*events, event(60, 0, 1)])
    session.finish()
    [(name, failure)] = session.failures()
    assert (name, failure.diagnostics[0].code) == (query.name, "SER-308")
    assert said in str(failure)
    assert "--max-state" in str(failure)


def test_a_window_that_is_matched_as_a_whole_counts_what_it_holds() -> None:
    session = Session.local(evaluation=EvaluationOptions(matcher="semijoin", max_state=2_000))
    query = session.register(TWO_STEPS)
    for at in range(200):
        session.push("http://s", [step(at // 50, at, at + 1)])
    session.finish()
    with pytest.raises(QueryError, match="SER-308"):
        query.poll()


def test_a_dictionary_full_of_what_has_left_is_begun_anew_and_nobody_notices() -> None:
    session = Session.local(evaluation=EvaluationOptions(verify=1))
    encoded = session._engine._around.contents.encoded
    encoded.most = 50
    query = session.register(TWO_STEPS)
    friends = session.register(FRIENDS.replace("friends", "others").replace("WITHIN PT5S", "WITHIN PT5S ON STREAM f"))
    for at in range(200):
        session.push("http://s", [step(at, at, at + 1)])
        session.push("f", [meeting(at, at, at + 1)])
    session.finish()
    assert encoded.generation > 1
    assert len(encoded.dictionary) < 500
    for one in (query, friends):
        assert one.verified > 150
        assert one.differing == 0


@pytest.mark.parametrize("text", [FRIENDS, TWO_STEPS])
def test_operators_over_a_dictionary_that_was_dropped_wait_for_no_collection_of_garbage(text: str) -> None:
    session = Session.local()
    encoded = session._engine._around.contents.encoded
    encoded.most = 50
    query = session.register(text)
    flows = []
    gc.disable()
    try:
        for at in range(200):
            session.push("http://s", [step(at, at, at + 1) if text is TWO_STEPS else meeting(at, at, at + 1)])
            flow = session._engine.query(query.name).run.flow
            if flow is not None and not any(flow is one() for one in flows):
                flows.append(weakref.ref(flow))
            del flow
        assert encoded.generation > 1
        assert sum(one() is not None for one in flows) <= 1 < len(flows)
    finally:
        gc.enable()


def test_large_values_that_have_left_all_windows_are_let_go_long_before_they_are_many() -> None:
    session = Session.local(evaluation=EvaluationOptions(verify=1))
    encoded = session._engine._around.contents.encoded
    encoded.most_bytes = 1 << 20
    query = session.register(FRIENDS)
    seldom = session.register(
        "REGISTER QUERY seldom STARTING AT 1970-01-01T00:00:00Z { MATCH (a) WITHIN PT5S EMIT a.text AS t ON ENTERING "
        "EVERY PT100S }"
    )
    most, long = 0, "x" * 20_000
    for at in range(250):
        nodes = (Node(at, ("Person",), {"text": f"{at}{long}"}), Node(at + 1, ("Person",)))
        session.push("s", [Event(at * SECOND, nodes, (Relationship(at, "KNOWS", at, at + 1),))])
        most = max(most, encoded.dictionary.weight())
        if at == 100 + 90:  # the query of every 100 s has not been asked for long
            gc.collect()
            known = [one for one in gc.get_objects() if isinstance(one, Dictionary)]
            assert not any(one.find(f"100{long}") for one in known)
    session.finish()
    assert encoded.generation > 2
    assert most < 3 << 20
    for one in (query, seldom):
        assert one.verified > 1
        assert one.differing == 0


def test_a_query_that_would_tell_the_same_for_thousands_of_years_is_refused_and_others_pass_over_it() -> None:
    session = Session.local()
    counted, listed, entering, clock = (
        session.register(f"REGISTER QUERY q{number} STARTING AT 1970-01-01T00:00 {{ MATCH (a) WITHIN PT60S {rest} }}")
        for number, rest in enumerate(
            (
                "EMIT count(a) AS n SNAPSHOT EVERY PT1S",
                "EMIT id(a) AS a SNAPSHOT EVERY PT20S",
                "EMIT count(a) AS n ON ENTERING EVERY PT1S",
                "WITH count(a) AS n EMIT n, datetime() AS now ON ENTERING EVERY PT1S",
            )
        )
    )
    session.push("s", [meeting(0, 1, 2), meeting(250_000_000_000, 1, 2)])
    session.finish()
    failures = dict(session.failures())
    assert list(failures) == [counted.name, clock.name]
    for failure in failures.values():
        assert failure.diagnostics[0].code == "SER-310"
        assert "instants, each of which has an answer" in str(failure)
    assert len(counted.poll()) == 60
    assert len(listed.poll()) == 4
    assert [answer.rows for answer in entering.poll()] == [[(2,)], [(0,)], [(2,)]]


@pytest.mark.parametrize("lateness", ["PT-5S", "P-1D", timedelta(seconds=-1), "-PT1S"])
def test_events_are_not_late_by_less_than_nothing(lateness: str | timedelta) -> None:
    with pytest.raises(EngineError, match="cannot be late by"):
        Session.local(lateness=lateness)


@pytest.mark.parametrize(
    "body", ["EMIT tag, count(*) AS n ORDER BY n DESC LIMIT 3", "EMIT tag LIMIT 3", "EMIT tag, p.id AS id ORDER BY tag"]
)
def test_the_first_of_what_lists_hold_is_kept_on_changes(body: str) -> None:
    text = (
        f"REGISTER QUERY q STARTING AT NOW {{ MATCH (p) WITHIN PT5M UNWIND p.tags AS tag {body} SNAPSHOT EVERY PT1M }}"
    )
    registration = languages.registrations(text)[0]
    assert planned(registration.plan, registration, EvaluationOptions(), {}).is_incremental
