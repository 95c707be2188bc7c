"""Lists in the order of ORDER BY and of unwound lists, and rows against an aggregate of all, on changes."""

from __future__ import annotations

from random import Random

import pytest
from tests.support.on_changes import PieceByPiece, planned

from anabranch.engine.evaluation_options import EvaluationOptions, Force
from anabranch.engine.session import Query, Session
from anabranch.errors import EvaluationError
from anabranch.model.event import Event
from anabranch.model.instants import parse_instant
from anabranch.model.values import Node, Relationship, Value
from anabranch.planner.flow.flow import placed
from anabranch.planner.queries import QueryPlan
from anabranch.syntax import languages

_MINUTE = 60_000_000
_START = parse_instant("2024-05-01T10:00Z")
_WITHIN = "WITHIN PT10M"
IN_ORDER = {
    "the first three as a list": f"MATCH ()-[r]->() {_WITHIN} WITH r.x AS x ORDER BY x DESC LIMIT 3 "
    "EMIT collect(x) AS xs",
    "the first and the last of each group": f"MATCH (a)-[r]->(b) {_WITHIN} WITH a, r ORDER BY r.x, id(r) "
    "EMIT id(a) AS a, head(collect(r.x)) AS first, last(collect(id(r))) AS last, count(*) AS n",
    "rows that tie": f"MATCH (a) {_WITHIN} WITH a.x AS x, a.y AS y ORDER BY y EMIT y, collect(x) AS xs",
    "a filter above": f"MATCH (a) {_WITHIN} WITH a ORDER BY a.x DESC SKIP 1 LIMIT 3 WITH a.y AS y WHERE y > 0 "
    "EMIT collect(y) AS ys, sum(y) AS s",
    "an order of an order": f"MATCH (a) {_WITHIN} WITH a.x AS x, a.y AS y ORDER BY x WITH x, y ORDER BY y DESC "
    "EMIT collect(x) AS xs",
    "items of lists": f"MATCH (a) {_WITHIN} UNWIND a.l AS i EMIT id(a) AS a, collect(i) AS l",
    "items of all lists": f"MATCH (a) {_WITHIN} UNWIND a.l AS i EMIT collect(i) AS l",
    "items of equal rows": f"MATCH (a) {_WITHIN} WITH a.y AS y, a.l AS l ORDER BY y UNWIND [y, 0, y] AS u "
    "EMIT collect(u) AS us",
    "some items of equal rows": f"MATCH (a) {_WITHIN} WITH a.y AS y ORDER BY y UNWIND [y, 7, 8] AS u WITH u SKIP 1 "
    "LIMIT 4 EMIT collect(u) AS us",
    "lists of lists": f"MATCH (a) {_WITHIN} UNWIND [a.l, [a.x]] AS l UNWIND l AS i EMIT collect(i) AS is",
    "a LIMIT above a projection of ordered rows": f"MATCH (a) {_WITHIN} WITH a ORDER BY a.x, id(a) "
    "WITH [a.x] AS x, id(a) AS a WITH x, a LIMIT 2 EMIT x, a",
    "the largest of unwound items": f"MATCH (a) {_WITHIN} UNWIND a.l AS i WITH i ORDER BY i DESC LIMIT 3 EMIT i",
}
AGAINST_ALL = {
    "above the average": f"MATCH (a) {_WITHIN} WITH avg(a.y) AS m MATCH (b) {_WITHIN} WHERE b.y > m EMIT id(b) AS b",
    "below, the other way round": f"MATCH (a) {_WITHIN} WITH max(a.y) AS m MATCH (b) WITHIN PT3M WHERE m - 1 >= b.y "
    "EMIT id(b) AS b, b.y AS y, m",
    "values of any kind": f"MATCH (a) {_WITHIN} WITH min(a.x) AS m MATCH (b) {_WITHIN} WHERE b.x >= m "
    "EMIT id(b) AS b, b.x AS x",
    "with more conditions": f"MATCH (a)-[r]->() {_WITHIN} WITH count(r) AS m MATCH (b)-[q]->(c) {_WITHIN} "
    "WHERE q.x < m AND b.y <> c.y EMIT id(b) AS b, q.x AS x",
}


def text(body: str, output: str = "SNAPSHOT") -> str:
    return f"REGISTER QUERY q STARTING AT 2024-05-01T09:59 {{ {body} {output} EVERY PT1M }}"


def plan_of(body: str) -> QueryPlan:
    return planned(languages.registrations(text(body))[0].plan, {})


def events(random: Random) -> list[Event]:
    found = []
    for minute in sorted(random.randrange(25) for _ in range(14)):
        kinds: tuple[Value, ...] = (0, 1, 2, 1.0, 2.5, None, "s", True)
        nodes = tuple(
            Node(
                one,
                (),
                {
                    "x": random.choice(kinds),
                    "y": random.randrange(3),
                    "l": [random.randrange(3) for _ in range(random.randrange(4))],
                },
            )
            for one in range(4)
            if random.random() < 0.6
        )
        source, target = random.randrange(4), random.randrange(4)
        link = Relationship(f"{source}/{target}", "R", source, target, {"x": random.randrange(4)})
        found.append(Event(_START + minute * _MINUTE, nodes, (link,)))
    return found


def run(body: str, output: str, force: Force, seed: int) -> tuple[Query, list[object]]:
    session = Session.local(["s"], evaluation=EvaluationOptions(force=force, verify=int(force == "auto")))
    query = session.register(text(body, output))
    session.push("s", events(Random(seed)))
    session.finish(drain=True)
    return query, [(answer.at, answer.rows) for answer in query.poll()]


@pytest.mark.parametrize("output", ["SNAPSHOT", "ON ENTERING"])
@pytest.mark.parametrize("body", [*IN_ORDER.values(), *AGAINST_ALL.values()], ids=[*IN_ORDER, *AGAINST_ALL])
def test_rows_are_those_of_the_plain_evaluator_at_every_instant(body: str, output: str) -> None:
    answers = 0
    for seed in range(5):
        query, told = run(body, output, "auto", seed)
        assert told == run(body, output, "recompute", seed)[1]
        assert (query.verified > 5, query.differing) == (True, 0)
        answers += len(told)
    assert answers > 15
    assert plan_of(body).is_incremental


@pytest.mark.parametrize("body", [*IN_ORDER.values(), *AGAINST_ALL.values()], ids=[*IN_ORDER, *AGAINST_ALL])
def test_nothing_is_kept_when_everything_has_left(body: str) -> None:
    query = plan_of(body)
    tried, fresh = PieceByPiece(query, {}, _START), PieceByPiece(query, {}, _START)
    nothing = fresh.tick([])
    for at, event in enumerate(events(Random(3))):
        tried.tick([Event(at, event.nodes, event.relationships)])
    assert tried.kept() > fresh.kept()
    assert tried.tick([Event(100)], forget_before=100) == nothing
    assert tried.kept() == fresh.kept()


@pytest.mark.parametrize("name", AGAINST_ALL)
def test_rows_are_compared_with_an_aggregate_by_a_range(name: str) -> None:
    root = plan_of(AGAINST_ALL[name]).root
    assert root is not None
    assert "ThresholdJoin" in {spec.name for spec, _ in placed(root)}


def test_rows_are_compared_with_groups_one_by_one() -> None:
    body = f"MATCH (a) {_WITHIN} WITH a.y AS y, avg(a.x) AS m MATCH (b) {_WITHIN} WHERE b.x > m EMIT id(b) AS b, y"
    root = plan_of(body).root
    assert root is not None
    assert "ThresholdJoin" not in {spec.name for spec, _ in placed(root)}


def outcome(query: Query) -> tuple[list[object], str]:
    """The answers, and the error that ended the query."""
    answers: list[object] = []
    try:
        while found := query.poll():
            answers += [(answer.at, answer.rows) for answer in found]
    except EvaluationError as error:
        return answers, str(error)
    return answers, ""


def test_an_error_of_a_comparison_is_raised_where_the_plain_evaluator_raises_it() -> None:
    body = f"MATCH (a) {_WITHIN} WITH min(a.x) AS m MATCH (b) {_WITHIN} WHERE b.y > m * 2 EMIT id(b) AS b"
    answers = 0
    for seed in range(6):
        told = []
        for force in ("auto", "recompute"):
            session = Session.local(["s"], evaluation=EvaluationOptions(force=force, on_error="fail"))
            query = session.register(text(body))
            session.push("s", events(Random(seed)))
            session.finish(drain=True)
            told.append(outcome(query))
        assert told[0] == told[1]
        assert "SER-302" in told[0][1]
        answers += len(told[0][0])
    assert answers > 1
