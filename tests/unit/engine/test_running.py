"""How queries are run: on changes or anew, verified, within limits; whatever is chosen, the answers are the same."""

from __future__ import annotations

import pytest

from anabranch.engine.plans import planned
from anabranch.engine.running import MATCHERS, Running
from anabranch.engine.session import Session
from anabranch.errors import QueryError
from anabranch.model.event import Event
from anabranch.model.terms import Iri, Triple
from anabranch.model.values import Node, Relationship
from anabranch.optimizer import Knowledge, optimize
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
    anew = told(Session.local(running=Running(force="recompute")), FRIENDS, events)
    assert incremental == anew
    assert incremental


@pytest.mark.parametrize("matcher", MATCHERS)
def test_every_matcher_says_the_same(matcher: str) -> None:
    events = [step(at, at % 4, (at * 3 + 1) % 5) for at in range(40)]
    session = Session.local(running=Running(matcher=matcher))  # type: ignore[arg-type]
    expected = told(Session.local(running=Running(force="recompute")), TWO_STEPS, events, "http://s")
    assert told(session, TWO_STEPS, events, "http://s") == expected


@pytest.mark.parametrize(
    ("window", "algorithm"), [("RANGE 5s STEP 1s", "LogMatcher"), ("RANGE 5s TUMBLING", "SemiJoins")]
)
def test_a_tumbling_window_is_matched_as_a_whole_and_a_sliding_one_by_what_changed(window: str, algorithm: str) -> None:
    (registration,) = languages.registrations(TWO_STEPS.replace("RANGE 5s STEP 1s", window))
    plan = optimize(registration.plan, Knowledge({"default": frozenset()})).plan
    modes = planned(plan, registration, Running(), {}).modes
    assert algorithm in {mode.detail for mode in modes.values()}


def test_verified_evaluations_are_counted_and_agree() -> None:
    session = Session.local(running=Running(verify=2))
    query = session.register(FRIENDS)
    for at in range(20):
        session.push("s", [meeting(at, at % 3, at % 4)])
    session.finish()
    assert query.verified == query.evaluations // 2 > 5
    assert query.differing == 0
    assert query.warnings() == []


def test_a_difference_is_told_loudly(monkeypatch: pytest.MonkeyPatch) -> None:
    from anabranch.engine.query import ContinuousQuery

    session = Session.local(running=Running(verify=1))
    query = session.register(FRIENDS)
    monkeypatch.setattr(ContinuousQuery, "_anew", lambda self, *arguments: [("p9", "p9")])
    session.push("s", [meeting(1, 1, 2), meeting(3, 2, 3)])
    session.finish()
    assert query.differing > 0
    said = str(query.warnings()[0])
    assert said.startswith("VERIFY FAILED")
    assert "missing: ('p9', 'p9')" in said


def test_a_pattern_with_too_many_matches_is_refused_by_name_and_the_stream_goes_on() -> None:
    session = Session.local(running=Running(max_matches=50))
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


def test_a_dictionary_full_of_what_has_left_is_begun_anew_and_nobody_notices() -> None:
    session = Session.local(running=Running(verify=1))
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
