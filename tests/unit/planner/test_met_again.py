"""What a pattern compares an element with that was met in another window: the operators see it as the law does."""

from __future__ import annotations

import pytest

from anabranch.engine.evaluation_options import EvaluationOptions, Force
from anabranch.engine.session import Session
from anabranch.model.event import Event
from anabranch.model.instants import parse_instant
from anabranch.model.values import Node, Relationship

_MINUTE = 60_000_000
_START = parse_instant("2022-10-14T12:00Z")
_EVENTS = [
    Event(_START, (Node(1, (), {"x": 1}), Node(2, (), {"x": 1}))),
    # The short window knows nothing of node 1 but that it is there.
    Event(_START + 5 * _MINUTE, (Node(2, (), {"x": 1}),), (Relationship("r", "R", 1, 2, {"x": 1}),)),
    Event(_START + 6 * _MINUTE),
]
BODIES = {
    "a relationship": "MATCH (a) WITHIN PT10M MATCH (a)-[{x: a.x}]->(b) WITHIN PT2M",
    "a node": "MATCH (a) WITHIN PT10M MATCH (a)-->(b {x: a.x}) WITHIN PT2M",
    "the element itself": "MATCH (a) WITHIN PT10M MATCH (a {x: b.x})-->(b) WITHIN PT2M",
    "both were met": "MATCH (a), (b) WITHIN PT10M MATCH (a)-->(b {x: a.x}) WITHIN PT2M",
    "alone": "MATCH (a) WITHIN PT10M MATCH (a {x: 1})-->(b) WITHIN PT2M",
    "optional": "MATCH (a) WITHIN PT10M OPTIONAL MATCH (a)-[{x: a.x}]->(b) WITHIN PT2M",
    "in a subquery": "MATCH (a) WITHIN PT10M WHERE EXISTS { MATCH (a)-[{x: a.x}]->(b) WITHIN PT2M }",
    "one window": "MATCH (a) WITHIN PT10M MATCH (a)-[{x: a.x}]->(b) WITHIN PT10M",
}


def told(body: str, force: Force) -> list[object]:
    session = Session.local(["s"], evaluation=EvaluationOptions(force=force))
    text = f"REGISTER QUERY q STARTING AT 2022-10-14T12:00 {{ {body} EMIT id(a) AS a, a.x AS x SNAPSHOT EVERY PT1M }}"
    query = session.register(text)
    session.push("s", _EVENTS)
    session.finish(drain=True)
    return [(answer.at, answer.rows) for answer in query.poll()]


@pytest.mark.parametrize("name", BODIES)
def test_operators_see_what_the_plain_evaluator_sees(name: str) -> None:
    assert told(BODIES[name], "auto") == told(BODIES[name], "recompute")
