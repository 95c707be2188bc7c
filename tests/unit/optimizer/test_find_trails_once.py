"""Trails of which nobody sees more than that they exist are found once, and no others are."""

from __future__ import annotations

from random import Random

import pytest

from anabranch.algebra.operators import Pattern
from anabranch.algebra.walk import walk
from anabranch.engine.evaluation_options import EvaluationOptions
from anabranch.engine.session import Session
from anabranch.model.event import Event
from anabranch.model.union import ConflictPolicy
from anabranch.model.values import Node, Relationship
from anabranch.optimizer import Knowledge, optimize
from anabranch.optimizer.find_trails_once import find_trails_once
from anabranch.syntax import languages

SECOND = 1_000_000


def query(body: str) -> str:
    return f"REGISTER QUERY q STARTING AT '1970-01-01T00:00:00Z' {{ {body} SNAPSHOT EVERY PT2S }}"


FOUND_ONCE = [
    "MATCH (a:P)-[:X*]->(b) WITHIN PT8S EMIT DISTINCT id(a) AS a, id(b) AS b",
    "MATCH (a:P)-[:X*]-(b:Q) WITHIN PT8S EMIT DISTINCT id(a) AS a, id(b) AS b",
    "MATCH (a)-[*]-(b:Q) WITHIN PT8S EMIT DISTINCT id(a) AS a, id(b) AS b",
    "MATCH (a)<-[:X|Y*]-(b:Q) WITHIN PT8S EMIT DISTINCT id(a) AS a, id(b) AS b",
    "MATCH (a)-[*]->(b) WITHIN PT8S EMIT DISTINCT id(a) AS a, id(b) AS b",
    "MATCH (a:P)-[*0..]->(b:Q) WITHIN PT8S EMIT DISTINCT id(a) AS a, id(b) AS b",
    "MATCH (a)-[:X*0..]-(b) WITHIN PT8S EMIT DISTINCT id(a) AS a, id(b) AS b",
    "MATCH (a:P)-[:X*..3]->(b:Q) WITHIN PT8S EMIT DISTINCT id(a) AS a, id(b) AS b",
    "MATCH (a)-[*]-(a) WITHIN PT8S EMIT DISTINCT id(a) AS a",
    "MATCH (a)-[*]->(a) WITHIN PT8S EMIT DISTINCT id(a) AS a",
    "MATCH p = (a:P)-[:X*]->(b) WITHIN PT8S WHERE b.v = 1 EMIT DISTINCT a, b.v AS v",
    "MATCH (a:P)-[:X*]->(b)-[:Y]->(c) WITHIN PT8S EMIT DISTINCT id(a) AS a, id(c) AS c",
    "MATCH (a:P)-[:X*]-(b) WITHIN PT8S EMIT id(a) AS a, count(DISTINCT b.v) AS n, max(b.v) AS most",
    "MATCH (a:P)-[:X*]-(b) WITHIN PT8S WITH DISTINCT a, b EMIT id(a) AS a, count(*) AS n",
    "MATCH (a:P) WITHIN PT8S OPTIONAL MATCH (a)-[:X*]->(b:Q) WITHIN PT8S EMIT DISTINCT id(a) AS a, id(b) AS b",
    "MATCH (a), (b) WITHIN PT8S WHERE EXISTS { (a)-[:X*]->(b) } EMIT id(a) AS a, id(b) AS b",
    "MATCH (a) WITHIN PT8S WHERE NOT (a)-[:X*]-(:Q) EMIT id(a) AS a",
    "MATCH (a:P)-[:X*]->(b) WITHIN PT8S MATCH (b)-[:Y*]-(c) WITHIN PT4S EMIT DISTINCT id(a) AS a, c.v AS v",
]
LEFT_ALONE = [
    "MATCH (a:P)-[:X*]->(b) WITHIN PT8S EMIT id(a) AS a, id(b) AS b",
    "MATCH (a:P)-[r:X*]->(b) WITHIN PT8S EMIT DISTINCT id(a) AS a, size(r) AS n",
    "MATCH p = (a:P)-[:X*]->(b) WITHIN PT8S EMIT DISTINCT id(a) AS a, length(p) AS n",
    "MATCH (a:P)-[:X*2..]->(b) WITHIN PT8S EMIT DISTINCT id(a) AS a, id(b) AS b",
    "MATCH (a:P)-[:X*..3]-(b) WITHIN PT8S EMIT DISTINCT id(a) AS a, id(b) AS b",
    "MATCH (a:P)-[:X* {v: 1}]->(b) WITHIN PT8S EMIT DISTINCT id(a) AS a, id(b) AS b",
    "MATCH (a:P)-[:X*]->(b)-[:X]->(c) WITHIN PT8S EMIT DISTINCT id(a) AS a, id(c) AS c",
    "MATCH (a:P)-[:X*]->(b), (c)-[]->(d) WITHIN PT8S EMIT DISTINCT id(a) AS a, id(c) AS c",
    "MATCH (a:P)-[:X*]->(b) WITHIN PT8S EMIT id(a) AS a, count(b.v) AS n, max(b.v) AS most",
    "MATCH (a:P)-[:X*]->(b) WITHIN PT8S WITH a, b ORDER BY id(a), id(b) LIMIT 3 EMIT DISTINCT id(a) AS a, id(b) AS b",
    "MATCH (a:P)-[:X*]->(b) WITHIN PT8S WITH a, rand() AS x EMIT DISTINCT id(a) AS a, x < 2 AS x",
    "MATCH (a:P) WITHIN PT8S EMIT id(a) AS a, size([(a)-[:X*]->(b) | b.v]) AS n",
]


def found_once(body: str) -> int:
    rewrite = find_trails_once(languages.registrations(query(body))[0].plan, Knowledge())
    patterns = [] if rewrite is None else [one for one in walk(rewrite.plan) if isinstance(one, Pattern)]
    return sum(step.once for one in patterns for path in one.paths for step in path.relationships)


@pytest.mark.parametrize("body", FOUND_ONCE)
def test_a_trail_that_nobody_sees_or_counts_is_found_once(body: str) -> None:
    assert found_once(body) == body.count("*]") + body.count("*0..]") + body.count("*..3]")


@pytest.mark.parametrize("body", LEFT_ALONE)
def test_every_other_trail_is_left_alone(body: str) -> None:
    assert found_once(body) == 0


def test_the_rule_has_nothing_to_do_a_second_time() -> None:
    plan = languages.registrations(query(FOUND_ONCE[0]))[0].plan
    once = optimize(plan, rules=(find_trails_once,)).plan
    assert find_trails_once(once, Knowledge()) is None


def events(seed: int, moving: bool = False) -> list[Event]:
    """Few nodes whose labels and relationships change; `moving`: relationships change their ends, too."""
    random = Random(seed)
    found = []
    for at in range(30):
        one, other = random.randrange(6), random.randrange(6)
        labels = tuple(sorted(random.sample("PQ", random.randint(0, 2))))
        nodes = tuple(Node(number, labels, {"v": number % 3}) for number in dict.fromkeys((one, other)))
        kind = random.choice("XXY")
        name = random.choice("abc") if moving else f"{one}{kind}{other}{random.choice('st')}"
        found.append(Event(at * SECOND, nodes, (Relationship(name, kind, one, other, {"v": 1}),)))
    return found


def told(
    body: str, given: list[Event], rules: str = "all", anew: bool = False, conflicts: ConflictPolicy = "latest"
) -> list[dict[str, object]]:
    evaluation = EvaluationOptions(force="recompute") if anew else EvaluationOptions(verify=1)
    session = Session.local(rules=rules, conflicts=conflicts, evaluation=evaluation)
    registered = session.register(query(body))
    for event in given:
        session.push("s", [event])
    session.finish(drain=True)
    return [answer.to_dict() for answer in registered.poll()]


@pytest.mark.parametrize("body", FOUND_ONCE)
@pytest.mark.parametrize("seed", range(4))
def test_the_answers_stay_what_they_were(body: str, seed: int) -> None:
    given = events(seed, moving=seed == 3)
    plain = told(body, given, rules="none", anew=True)
    assert told(body, given) == plain
    assert told(body, given, anew=True) == plain


def test_some_of_these_answers_have_rows() -> None:
    assert all(any(answer["rows"] for answer in told(body, events(1))) for body in FOUND_ONCE)


@pytest.mark.parametrize("body", [FOUND_ONCE[0], FOUND_ONCE[2], FOUND_ONCE[5]])
def test_a_strict_union_gives_the_same_answers(body: str) -> None:
    given = events(2)
    plain = told(body, given, rules="none", anew=True, conflicts="strict")
    assert told(body, given, conflicts="strict") == plain
