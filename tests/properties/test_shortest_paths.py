"""Shortest paths on changes tell at every instant what the plain evaluator tells, over drawn streams.

Elements come again with other properties, labels and ends; relationships run side by side; the window slides over all
of it until it is empty.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from anabranch.engine.engine import Engine
from anabranch.engine.evaluation_options import EvaluationOptions
from anabranch.engine.query import ContinuousQuery
from anabranch.model.event import Event
from anabranch.model.values import Node, Relationship
from anabranch.syntax import seraph

SECOND = 1_000_000
W = "WITHIN PT6S"
ON_CHANGES = [
    # one end open, both, none; bounds; directions
    f"p = shortestPath((a:A)-[:T*]->(b)) {W} EMIT id(a) AS a, id(b) AS b, length(p) AS n, p",
    f"p = shortestPath((a)-[:T*]->(b:B)) {W} EMIT id(a) AS a, id(b) AS b, relationships(p) AS r",
    f"p = shortestPath((a:A)<-[:T|U*..3]-(b:B)) {W} EMIT p, nodes(p) AS n",
    f"p = shortestPath((a:A)-[*0..2]-(b)) {W} EMIT id(a) AS a, id(b) AS b, p",
    f"p = shortestPath((a)-[:T*..2]-(b)) {W} EMIT id(a) AS a, id(b) AS b, [n IN nodes(p) | id(n)] AS n",
    f"p = allShortestPaths((a:A)-[*]->(b:B)) {W} EMIT p",
    f"p = allShortestPaths((a:A)-[*]-(b:B {{x: 1}})) {W} EMIT id(a) AS a, id(b) AS b, length(p) AS n",
    f"p = allShortestPaths((a)<-[:T*..3]-(b:A)) {W} EMIT p, length(p) AS n",
    f"allShortestPaths((a:A)-[r:T*0..]->(b)) {W} EMIT id(a) AS a, id(b) AS b, [e IN r | e.x] AS x",
    f"shortestPath((a:A)-[*]->(b:B)) {W} EMIT count(*) AS n",
    f"shortestPath((a)-[*0..]->(a)) {W} EMIT id(a) AS a",
    f"shortestPath((a)-[*..0]->(b)) {W} EMIT id(a) AS a",
    # one relationship
    f"p = shortestPath((a:A)-[r]->(b)) {W} WHERE r.x > 0 EMIT r, p",
    f"allShortestPaths((a)-[r:T]-(b:B)) {W} EMIT id(a) AS a, id(b) AS b, r.x AS x",
    # conditions on each relationship, and on the path found
    f"p = shortestPath((a:A)-[:T* {{x: 1}}]->(b)) {W} EMIT p",
    f"p = shortestPath((a:A)-[*]->(b)) {W} WHERE all(r IN relationships(p) WHERE r.x > 0) EMIT p",
    f"p = shortestPath((a:A)-[*]->(b)) {W} WITH a, b, p WHERE length(p) > 1 AND a.x <> b.x EMIT id(a) AS a, p",
    f"p = shortestPath((a:A)-[*]->(b)) {W} WHERE none(r IN relationships(p) WHERE r.x = 1) AND length(p) < 3 EMIT p",
    # beside other patterns, in one match and in several
    f"(a:A)-[e:U]->(c), p = shortestPath((a)-[*]->(c)) {W} EMIT id(e) AS e, [r IN relationships(p) | id(r)] AS r",
    f"q = (a)-[e:U]->(c:B), (d:A), p = shortestPath((a:A)-[:T*0..]-(c)), allShortestPaths((a)-[s:T*..2]->(d)) {W} "
    "WHERE e.x > 0 AND d.x <> a.x AND length(p) <= d.x + 3 EMIT id(e) AS e, p, q, size(s) AS n, id(d) AS d",
    f"(a)-[:U]->(c), shortestPath((a)-[r:T*]-(b:B)) {W} WHERE a.x = 1 EMIT id(a) AS a, id(c) AS c, size(r) AS n",
    f"(a)-[:T*2..2]->(c), shortestPath((a)-[r*]-(c)) {W} EMIT id(a) AS a, id(c) AS c, size(r) AS n",
    f"(b:B) {W} MATCH (a)-[:U]->(b), shortestPath((b)-[r:T*]-(a)) {W} EMIT id(a) AS a, size(r) AS n",
    f"(b:B) {W} OPTIONAL MATCH (a)-[:U]->(b), shortestPath((b)-[r:T*]-(a)) {W} EMIT id(a) AS a, size(r) AS n",
    f"(a:A), (b:B), p = shortestPath((a)-[:T*]-(b)), q = allShortestPaths((b)-[:U*]-(a)) {W} EMIT length(p) AS p, q",
    f"(a:A) {W} MATCH (b:B) {W} MATCH p = shortestPath((a)-[*..4]->(b)) {W} EMIT id(a) AS a, id(b) AS b, p",
    f"(a:A)-[:U]-(b) {W} MATCH p = allShortestPaths((b)-[:T*]->(a)) {W} EMIT id(a) AS a, id(b) AS b, p",
    f"(a:A) {W} OPTIONAL MATCH p = shortestPath((a)-[:T*]->(b:B)) {W} EMIT id(a) AS a, id(b) AS b, p",
    f"(a:A), (b:B) {W} OPTIONAL MATCH p = shortestPath((a)-[:T*0..3]-(b)) {W} WHERE length(p) < 3 "
    "EMIT id(a) AS a, id(b) AS b, length(p) AS n",
    "(a:A)-[:U]->(c) WITHIN PT3S MATCH shortestPath((a)-[r:T*]->(b:B)) WITHIN PT6S EMIT id(a) AS a, size(r) AS n",
    "(a:A)-[:U]->(b) WITHIN PT9S MATCH shortestPath((a)-[r*0..]-(b)) WITHIN PT4S EMIT id(a) AS a, size(r) AS n",
    f"(a:A)-[:U]->(b) {W} EMIT id(a) AS a, id(b) AS b, length(shortestPath((a)-[:T*]-(b))) AS n",
    f"(a:A) {W} WHERE length(shortestPath((a)-[:T*]->(a))) IS NULL EMIT id(a) AS a",
]
ANEW = [
    (f"p = shortestPath((a:A)-[*2..4]->(b:B)) {W} EMIT p", "of 2 relationships and more"),
    (f"p = shortestPath((a:A)-[:T* {{x: a.x}}]->(b)) {W} EMIT p", "read the rest of the row"),
    (f"(a:A)-[e:U]->(c) {W} MATCH p = shortestPath((a)-[:T* {{x: e.x}}]->(b)) {W} EMIT p", "read the rest of the row"),
    (
        f"(a:A)-[e:U]->(c) {W} OPTIONAL MATCH p = allShortestPaths((c)-[:T*0.. {{x: e.x}}]-(b)) {W} EMIT p",
        "read the rest",
    ),
    (
        "(a:A) WITHIN PT9S MATCH shortestPath((a)-[r:T* {x: a.x}]->(b)) WITHIN PT2S EMIT id(a) AS a, size(r) AS n",
        "read the rest of the row",
    ),
    (f"(a)-[r:T]->(b) {W} MATCH shortestPath((a)-[r]->(b)) {W} EMIT id(r) AS r", "were met before"),
    (f"p = shortestPath((a:A)-[*..4]->(b)) {W} WHERE length(p) > 1 AND a.x <> b.x EMIT id(a) AS a, p", "of 2 relat"),
    (f"p = allShortestPaths((a:A)-[:T*..4]-(b)) {W} WHERE any(n IN nodes(p) WHERE n:B) EMIT p", "as a whole"),
    (
        f"(a:A), (d:A), p = shortestPath((a)-[:T*0..4]-(b)) {W} WHERE d.x <> a.x AND (d.x = 0 OR length(p) > 1) EMIT p",
        "as a whole",
    ),
    (
        f"(a:A)-[e:U]->(b) {W} OPTIONAL MATCH p = shortestPath((a)-[:T*..4]-(b)) {W} WHERE length(p) > e.x "
        "EMIT id(e) AS e, p",
        "read the rest",
    ),
    (f"(a:A) {W} MATCH p = shortestPath((a)-[:T*..4]-(b)) {W} WHERE nodes(p)[1].x = 1 EMIT p", "searched for again"),
]


def events(random: Random, count: int = 25, nodes: int = 9) -> list[Event]:
    """A few elements each second, some of which were there before, and a pause now and then."""
    found = []
    second = 0
    for _ in range(count):
        second += random.choice((0, 1, 1, 1, 2, 8))
        labels = [tuple(one for one in "AB" if random.random() < 0.35) for _ in range(2)]
        described = {random.randrange(nodes): one for one in labels}
        carried = {}
        for _ in range(random.choice((0, 1, 2, 4))):
            number = random.randrange(40)
            name: int | str = number if number % 5 else f"r{number}"
            ends = (random.randrange(nodes), random.randrange(nodes))
            if random.random() < 0.8:  # most come again as they were
                ends = (number % nodes, (number // 3 + 1) % nodes)
            kind = "U" if number % 4 == 0 else "T"
            carried[name] = Relationship(name, kind, *ends, {"x": random.randrange(3)})
        found.append(
            Event(
                second * SECOND,
                tuple(Node(number, one, {"x": random.randrange(3)}) for number, one in described.items()),
                tuple(carried.values()),
            )
        )
    return found


def run(body: str, evaluation: EvaluationOptions, feed: list[Event], output: str) -> tuple[ContinuousQuery, list[Any]]:
    text = f"REGISTER QUERY q STARTING AT 1970-01-01T00:00Z {{ MATCH {body} {output} EVERY PT1S }}"
    (registration,) = seraph.registrations(text)
    engine = Engine(evaluation=evaluation)
    engine.register(registration)
    engine.push("s", feed)
    engine.finish()
    return engine.query("q"), [(answer.at, answer.rows) for answer in engine.take()]


def reasons(query: ContinuousQuery) -> set[str]:
    planned = query.run.plans._planned
    assert planned is not None
    return {mode.detail for mode in planned.modes.values() if mode.execution == "recompute"}


@pytest.mark.parametrize("body", ON_CHANGES)
def test_answers_are_those_of_the_plain_evaluator(body: str) -> None:
    some = 0
    for seed in range(8):
        random = Random(seed)
        feed = events(random)
        output = random.choice(("SNAPSHOT", "ON ENTERING", "ON EXIT"))
        _, expected = run(body, EvaluationOptions(force="recompute"), feed, output)
        query, told = run(body, EvaluationOptions(), feed, output)
        assert told == expected
        assert not reasons(query)
        some += sum(len(rows) for _, rows in told)
    assert some or "*..0" in body, "a test that sees no row proves nothing"


@pytest.mark.parametrize(("body", "reason"), ANEW)
def test_what_has_no_form_on_changes_says_why(body: str, reason: str) -> None:
    feed = events(Random(3))
    _, expected = run(body, EvaluationOptions(force="recompute"), feed, "SNAPSHOT")
    query, told = run(body, EvaluationOptions(), feed, "SNAPSHOT")
    assert told == expected
    assert any(reason in one for one in reasons(query))
