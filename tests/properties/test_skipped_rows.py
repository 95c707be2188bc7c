"""Rows that fail are skipped alike by operators on changes and by the plain evaluator, whatever the values are."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch import EvaluationOptions, Session
from anabranch.engine.answers import Answer
from anabranch.formats.events import event_from_dict
from anabranch.model.compare import content_key
from anabranch.model.event import Event
from anabranch.syntax import languages
from anabranch.testing.oracle import Oracle, accepted

BODIES = [
    "EMIT sum(a.x) AS s, avg(a.x) AS m, count(*) AS n, stDev(a.x) AS d",
    "EMIT a.x AS x, count(a.x / b.x) AS n, sum(a.x / b.x) AS s, collect(a.x + 0 * b.x) AS c, max(a.x - b.x) AS g",
    "EMIT sum(DISTINCT a.x) AS s, percentileCont(a.x, 0.5) AS p, percentileDisc(DISTINCT a.x, b.x) AS q",
    "WHERE a.x / b.x >= 1 EMIT a.x AS x, b.x AS y",
    "WHERE a.x % 2 = 0 AND r.w > 0 EMIT a.x AS x",
    "WHERE a.x EMIT a.x AS x",
    "EMIT a.x - b.x AS z",
    "EMIT DISTINCT a.x * 2 AS z",
    "WITH a.x / b.x AS share, r.w AS w EMIT share, sum(w) AS s",
    "WITH a, sum(b.x * 2) AS s WHERE 10 / s > 0 EMIT a.x AS x, s",
    "EMIT a.x AS x, b.x AS y ORDER BY a.x / b.x DESC, b.x LIMIT 2",
    "UNWIND range(1, a.x) AS i EMIT a.x AS x, i",
    "UNWIND a.x + [1] AS i EMIT i ORDER BY -i",
    "OPTIONAL MATCH (b)-[q:R]->(c) WITHIN PT4M WHERE q.w / r.w >= 1 AND b.x - c.x < 2 EMIT a.x AS x, c.x AS y",
    "EMIT a.x AS x, EXISTS { MATCH (b)-[q:R]->(c) WHERE q.w / r.w > 0 } AS e, [(a)-[q:R]->(c) | c.x / q.w] AS l",
    "MATCH p = (b)-[:R*1..2]->(c) WITHIN PT4M WHERE all(e IN relationships(p) WHERE 4 / e.w > 1) "
    "EMIT b.x AS y, c.x AS z",
    "MATCH p = shortestPath((b)-[:R*1..3]->(c)) WITHIN PT4M WHERE all(e IN relationships(p) WHERE 4 / e.w > 1) "
    "EMIT b.x AS y, length(p) AS n",
    "MATCH p = shortestPath((b)-[:R*1..3]->(c)) WITHIN PT4M WHERE 4 / (length(p) - 1) > c.x "
    "EMIT c.x AS y, length(p) AS n",
    "EMIT a.x.y AS z",
    "WITH a.x AS x, collect(b.x - 1) AS l, collect(10 / b.x) AS k EMIT x, l, k, reduce(s = 0, i IN l | s + i) AS s",
]
VALUES = st.sampled_from([0, 1, 2, 3, 2.5, "12", None, True, [1], {"y": 2}, 2**62])
NODE = st.builds(lambda id, x: {"id": id, "properties": {} if x is None else {"x": x}}, st.integers(0, 4), VALUES)
LINK = st.tuples(st.integers(0, 4), st.integers(0, 4), VALUES)


def _event(at: int, nodes: list[Any], links: list[Any]) -> dict[str, Any]:
    known = {one["id"]: one for one in nodes}
    for source, target, _ in links:
        for end in (source, target):
            known.setdefault(end, {"id": end, "properties": {"x": end}})
    relationships = {
        (source, target): {
            "id": f"{source}-{target}",
            "type": "R",
            "from": source,
            "to": target,
            "properties": {"w": w},
        }
        for source, target, w in links
        if w is not None
    }
    return {"at": at * 1000, "nodes": list(known.values()), "relationships": list(relationships.values())}


EVENTS = st.lists(
    st.tuples(st.integers(0, 90), st.lists(NODE, max_size=3), st.lists(LINK, max_size=3)), min_size=1, max_size=9
).map(lambda drawn: [_event(at * 10, *rest) for at, *rest in sorted(drawn, key=lambda one: one[0])])


def _told(answers: list[Answer]) -> list[Any]:
    """Answers to be compared; which of two rows that look alike has entered, 0 or 0.0, is not said."""
    return [
        (each.at, each.op, sorted(map(repr, keys)) if each.op == "snapshot" else keys)
        for each in answers
        for keys in [[content_key(row) for row in each.rows]]
    ]


@pytest.mark.parametrize("output", ["SNAPSHOT", "ON ENTERING"])
@pytest.mark.parametrize("body", BODIES)
@given(drawn=EVENTS)
@settings(max_examples=12, deadline=None)
def test_rows_that_fail_are_skipped_as_the_law_skips_them(body: str, output: str, drawn: list[dict[str, Any]]) -> None:
    text = (
        f"REGISTER QUERY q STARTING AT 1970-01-01T00:00Z {{ MATCH (a)-[r:R]->(b) WITHIN PT4M {body} "
        f"{output} EVERY PT1M }}"
    )
    events: list[Event] = [event_from_dict(one) for one in drawn]
    (registration,) = languages.registrations(text)
    law = Oracle(registration, {"s": accepted(events)}).answers()
    assert law is not None
    for force in ("auto", "recompute"):
        session = Session.local(["s"], evaluation=EvaluationOptions(force=force))
        query = session.register(text)
        told: list[Answer] = []
        for event in events:
            session.push("s", event)
            told += query.poll()
        session.finish()
        assert _told([*told, *query.poll()]) == _told(law), force
