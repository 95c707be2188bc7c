"""startNode() and endNode() of a relationship whose two ends are in the row."""

from __future__ import annotations

from random import Random

import pytest

from anabranch.algebra import expressions as ex
from anabranch.algebra.walk import walk
from anabranch.engine.evaluation_options import EvaluationOptions
from anabranch.engine.session import Session
from anabranch.model.event import Event
from anabranch.model.values import Node, Relationship
from anabranch.optimizer import Knowledge, optimize
from anabranch.optimizer.read_ends_from_rows import read_ends_from_rows
from anabranch.syntax import languages

SECOND = 1_000_000
READ = [
    "MATCH (a)-[r]->(b) WITHIN PT8S EMIT startNode(r).x AS s, endNode(r).x AS e",
    "MATCH (a)<-[r]-(b) WITHIN PT8S EMIT id(startNode(r)) AS s, id(endNode(r)) AS e, id(a) AS a",
    "MATCH (a)-[r]-(b) WITHIN PT8S EMIT startNode(r) AS s, id(a) AS a",
    "MATCH (a)-[r]-() WITHIN PT8S WHERE endNode(r) <> a EMIT id(a) AS a, endNode(r).x AS e",
    "MATCH (a)-[r]->(b)-[q]-(c) WITHIN PT8S WHERE startNode(q) = b EMIT startNode(r).x AS s, endNode(q).x AS e",
    "MATCH (a) WITHIN PT8S OPTIONAL MATCH (a)-[r]-(b) WITHIN PT8S EMIT id(a) AS a, startNode(r).x AS s",
    "MATCH (a)-[r]-(b) WITHIN PT8S WITH b AS a, r AS t, a AS c ORDER BY id(t) LIMIT 3 EMIT startNode(t) AS s",
    "MATCH (a)-[r]-(b) WITHIN PT8S WITH DISTINCT r, a, b EMIT startNode(r).x AS s, count(*) AS n",
    "MATCH (a)-[r]-(b) WITHIN PT8S WITH r, a, b, count(*) AS n EMIT endNode(r).x AS e, n",
    "MATCH (a)-[r]-(b) WITHIN PT8S WHERE EXISTS { MATCH (b)-[q]->(c) WHERE endNode(q) = c } EMIT id(a) AS a",
    "MATCH (a)-[r]-(b) WITHIN PT8S MATCH (b)-[q]-(c) WITHIN PT8S WHERE startNode(q) = b EMIT id(a) AS a, q.x AS x",
]
LEFT_ALONE = [
    "MATCH (a)-[r]->(b) WITHIN PT8S EMIT a.x AS s, b.x AS e",
    "MATCH (a)-[r]->(b) WITHIN PT8S WITH r EMIT startNode(r).x AS s",
    "MATCH (a)-[r]->(b) WITHIN PT8S WITH r, a EMIT endNode(r).x AS s",
    "MATCH (a)-[r]->(b) WITHIN PT8S MATCH (c) WITHIN PT4S EMIT startNode(r).x AS s, c.x AS x",
    "MATCH (a)-[r*1..2]->(b) WITHIN PT8S EMIT startNode(r[0]).x AS s",
    "MATCH (a)-[r]->(b) WITHIN PT8S EMIT [r IN [r] | startNode(r).x] AS s",
    "MATCH (a)-[r]->(b) WITHIN PT8S WITH a, b, collect(r) AS rs UNWIND rs AS r EMIT startNode(r).x AS s",
]


def query(body: str) -> str:
    return f"REGISTER QUERY q STARTING AT '1970-01-01T00:00:00Z' {{ {body} SNAPSHOT EVERY PT2S }}"


def look_ups(body: str, *, rewritten: bool) -> int:
    plan = languages.registrations(query(body))[0].plan
    plan = optimize(plan, rules=(read_ends_from_rows,)).plan if rewritten else plan
    return sum(isinstance(node, ex.Call) and node.function.lower() in ("startnode", "endnode") for node in walk(plan))


@pytest.mark.parametrize("body", READ)
def test_the_ends_are_read_from_the_row(body: str) -> None:
    assert look_ups(body, rewritten=False) > 0
    assert look_ups(body, rewritten=True) == 0


@pytest.mark.parametrize("body", LEFT_ALONE)
def test_ends_that_the_row_does_not_have_are_looked_up(body: str) -> None:
    assert read_ends_from_rows(languages.registrations(query(body))[0].plan, Knowledge()) is None


def test_a_note_names_the_two_ends() -> None:
    rewrite = read_ends_from_rows(languages.registrations(query(READ[0]))[0].plan, Knowledge())
    assert rewrite is not None
    assert rewrite.notes == ("startnode(r) is one of a, b", "endnode(r) is one of a, b")


def drawn(seed: int) -> list[Event]:
    random, events = Random(seed), []
    for at in range(12):
        nodes = tuple(Node(one, (), {"x": random.randrange(9)}) for one in range(4) if random.random() < 0.5)
        ends = random.randrange(4), random.randrange(4)
        link = Relationship(f"{ends[0]}/{ends[1]}", "R", *ends, {"x": at})
        events.append(Event(at * 2 * SECOND, nodes, (link,)))
    return events


@pytest.mark.parametrize("body", READ + LEFT_ALONE)
def test_the_answers_stay_what_they_were(body: str) -> None:
    def told(seed: int, rules: str | list[str], evaluation: EvaluationOptions) -> list[object]:
        session = Session.local(["s"], rules=rules, evaluation=evaluation)
        asked = session.register(query(body))
        session.push("s", drawn(seed))
        session.finish(drain=True)
        assert not asked.differing
        return [(answer.at, answer.rows) for answer in asked.poll()]

    for seed in range(3):
        plain = told(seed, "none", EvaluationOptions(force="recompute"))
        assert told(seed, ["read_ends_from_rows"], EvaluationOptions(force="recompute")) == plain
        assert told(seed, "all", EvaluationOptions(verify=1)) == plain
        assert len(plain) > 5
