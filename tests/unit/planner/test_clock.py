"""What reads the clock or a window's bounds: computed at each instant over rows that are kept up to date."""

from __future__ import annotations

from random import Random

import pytest
from tests.support.on_changes import planned

from anabranch.engine.engine import Engine
from anabranch.engine.evaluation_options import EvaluationOptions, Force
from anabranch.engine.session import Query, Session
from anabranch.model.event import Event
from anabranch.model.instants import parse_instant
from anabranch.model.values import Node, Relationship
from anabranch.syntax import seraph

_MINUTE = 60_000_000
_START = parse_instant("2024-05-01T10:00Z")
FORCES: tuple[Force, ...] = ("auto", "recompute")
WITHIN = "WITHIN PT10M"
ON_CHANGES = {
    "in EMIT": f"MATCH (a:A) {WITHIN} EMIT a.x AS x, win_end.minute AS m, win_start AS s",
    "in WHERE": f"MATCH (a)-[r]->(b) {WITHIN} WHERE r.x < win_end.minute AND a.x <> 3 EMIT a.x AS x, b.x AS y",
    "in WITH": f"MATCH (a:A) {WITHIN} WITH a, win_end.minute - a.x AS age WHERE age > 2 EMIT age, count(*) AS n",
    "in the WHERE of a second MATCH": f"MATCH (a) {WITHIN} MATCH (b:A) WITHIN PT4M WHERE b.x + 3 < win_end.minute "
    "EMIT a.x AS x, b.x AS y",
    "in the WHERE of an OPTIONAL MATCH": f"MATCH (a) {WITHIN} OPTIONAL MATCH (a)-[r]->(b) {WITHIN} "
    "WHERE r.x + 2 < win_end.minute EMIT a.x AS x, b.x AS y",
    "in a property map": f"MATCH (a {{x: win_end.minute}}) {WITHIN} EMIT a.x AS x",
    "as a key and in an aggregate": f"MATCH (a) {WITHIN} EMIT a.x < win_end.minute AS k, sum(win_end.minute) AS s",
    "in UNWIND": f"MATCH (a:A) {WITHIN} UNWIND [1, win_end.minute] AS u EMIT a.x AS x, u",
    "in ORDER BY": f"MATCH (a) {WITHIN} EMIT a.x AS x ORDER BY (win_end.minute + a.x) % 3, x LIMIT 3",
    "in ORDER BY without LIMIT": f"MATCH (a) {WITHIN} EMIT a.x AS x ORDER BY (win_end.minute + a.x) % 3, x",
    "in EXISTS": f"MATCH (a) {WITHIN} WHERE EXISTS {{ MATCH (a)-[r]->() WHERE r.x < win_end.minute }} EMIT a.x AS x",
    "in CASE and DISTINCT": f"MATCH (a) {WITHIN} EMIT DISTINCT CASE WHEN a.x > win_end.minute THEN 'early' END AS c",
    "with the clock": f"MATCH (a) {WITHIN} WHERE timestamp() > 0 AND a.x < datetime().minute "
    "EMIT a.x AS x, date() AS d, datetime({timezone: 'Europe/Rome'}).hour AS h",
}
ANEW = {
    "chance": f"MATCH (a) {WITHIN} EMIT a.x AS x, rand() < 2 AS r",
    "a zone of the row": f"MATCH (a) {WITHIN} EMIT datetime({{timezone: coalesce(a.zone, 'Z')}}).hour AS h",
    "a clock that fails": f"MATCH (a:Nothing) {WITHIN} EMIT datetime({{timezone: 'Nowhere'}}) AS h",
}


def events(random: Random) -> list[Event]:
    found = []
    for minute in (0, 1, 1, 2, 5, 6, 17, 18, 19):
        nodes = tuple(Node(one, ("A",) if one % 2 else (), {"x": random.randrange(12)}) for one in range(3))
        link = Relationship(f"r{minute % 3}", "R", random.randrange(3), random.randrange(3), {"x": random.randrange(9)})
        found.append(Event(_START + minute * _MINUTE, nodes, (link,)))
    return found


def run(body: str, output: str, force: Force, seed: int) -> tuple[Query, list[object]]:
    session = Session.local(["s"], evaluation=EvaluationOptions(force=force))
    query = session.register(f"REGISTER QUERY q STARTING AT 2024-05-01T09:59 {{ {body} {output} EVERY PT1M }}")
    session.push("s", events(Random(seed)))
    session.finish(drain=True)
    return query, [(answer.at, answer.rows) for answer in query.poll()]


def is_incremental(body: str) -> bool:
    (registration,) = seraph.registrations(f"REGISTER QUERY q STARTING AT NOW {{ {body} SNAPSHOT EVERY PT1M }}")
    return planned(registration.plan, {}).is_incremental


@pytest.mark.parametrize("output", ["SNAPSHOT", "ON ENTERING", "ON EXIT"])
@pytest.mark.parametrize("name", ON_CHANGES)
def test_rows_are_those_of_the_plain_evaluator_at_every_instant(name: str, output: str) -> None:
    for seed in range(3):
        query, told = run(ON_CHANGES[name], output, "auto", seed)
        _, expected = run(ON_CHANGES[name], output, "recompute", seed)
        assert told == expected
    assert query.evaluations > 9
    assert is_incremental(ON_CHANGES[name])


@pytest.mark.parametrize("name", ANEW)
def test_what_more_than_the_instant_decides_is_recomputed(name: str) -> None:
    _, told = run(ANEW[name], "SNAPSHOT", "auto", 0)
    _, expected = run(ANEW[name], "SNAPSHOT", "recompute", 0)
    assert told == expected
    assert not is_incremental(ANEW[name])


def test_instants_between_events_are_evaluated_while_a_window_holds_something_and_passed_over_else() -> None:
    session = Session.local(["s"])
    query = session.register(
        "REGISTER QUERY q STARTING AT 2000-01-01 { MATCH (a) WITHIN PT5M EMIT win_end AS at SNAPSHOT EVERY PT1M }"
    )
    session.push("s", [Event(_START, (Node(1),)), Event(_START + 60 * _MINUTE)])
    told = [str(answer.rows[0][0]) for answer in query.poll()]
    assert told == [f"2024-05-01T10:0{minute}Z" for minute in range(5)]
    assert query.evaluations < 20


@pytest.mark.parametrize("output", ["SNAPSHOT", "ON ENTERING"])
def test_what_the_clock_makes_of_rows_is_let_go_though_no_event_comes(output: str) -> None:
    text = (
        "REGISTER QUERY q STARTING AT 2024-05-01T10:00 { MATCH (a) WITHIN PT2H "
        f"EMIT a.x AS x, timestamp() + a.x AS t {output} EVERY PT1M }}"
    )
    (registration,) = seraph.registrations(text)
    told = []
    for force in FORCES:
        engine = Engine(evaluation=EvaluationOptions(force=force))
        encoded = engine._around.contents.encoded
        encoded.most = 100
        engine.register(registration)
        engine.push("s", [Event(_START, tuple(Node(one, (), {"x": one}) for one in range(20)))])
        engine.push("s", [Event(_START + 110 * _MINUTE)])
        told.append([(answer.at, answer.rows) for answer in engine.take()])
        assert len(encoded.dictionary) < 400
        assert (encoded.generation > 5) == (force == "auto")
    assert told[0] == told[1]
    assert len(told[0]) == 110
