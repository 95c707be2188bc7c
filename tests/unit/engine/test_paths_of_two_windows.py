"""A named path over elements that an earlier MATCH met in another window shows what both windows say of them."""

from __future__ import annotations

import pytest

from anabranch.engine.engine import Engine
from anabranch.engine.evaluation_options import EvaluationOptions
from anabranch.model.event import Event
from anabranch.model.values import Node, Relationship
from anabranch.syntax import seraph

SECOND = 1_000_000
HERE_AND_BACK = (Relationship(1, "T", 1, 2), Relationship(2, "T", 2, 1))
EVENTS = [
    Event(0, (Node(1, ("A",), {"old": 1}), Node(2, (), {"old": 2})), HERE_AND_BACK[:1]),
    Event(3 * SECOND, (Node(1, ("A",), {"new": 3}),), HERE_AND_BACK),
    Event(20 * SECOND, (Node(9),)),
]


@pytest.mark.parametrize("widths", [("PT9S", "PT4S"), ("PT4S", "PT9S"), ("PT9S", "PT9S")])
@pytest.mark.parametrize(
    "path",
    [
        "MATCH p = (a)-[:T]->(b) WITHIN {0} EMIT [n IN nodes(p) | properties(n)] AS n",
        "MATCH p = (a)-[:T*]->(b) WITHIN {0} EMIT [n IN nodes(p) | properties(n)] AS n",
        "OPTIONAL MATCH p = (b)<-[:T*0..2]-(a) WITHIN {0} EMIT [n IN nodes(p) | properties(n)] AS n",
    ],
)
def test_a_path_shows_what_both_windows_say(path: str, widths: tuple[str, str]) -> None:
    body = f"MATCH (a:A) WITHIN {widths[0]} {path.format(widths[1])} SNAPSHOT EVERY PT1S"
    (registration,) = seraph.registrations(f"REGISTER QUERY q STARTING AT 1970-01-01T00:00Z {{ {body} }}")
    engine = Engine(evaluation=EvaluationOptions(verify=1))
    query = engine.register(registration)
    engine.push("s", EVENTS)
    engine.finish()
    assert len(engine.take()) > 3
    assert query.outbox.differing == 0
    if widths[0] == widths[1]:
        assert query.outbox.verified, "one window: nothing stands in the way of operators on changes"
