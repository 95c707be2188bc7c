"""Paths of any length whose existence alone is asked become questions about connectivity, and nothing else does."""

from __future__ import annotations

from random import Random

import pytest

from anabranch.algebra import expressions as ex
from anabranch.algebra.walk import walk
from anabranch.engine.session import Session
from anabranch.model.event import Event
from anabranch.model.terms import Iri, Triple
from anabranch.model.values import Node, Relationship
from anabranch.optimizer import Knowledge
from anabranch.optimizer.recognise_connectivity import recognise_connectivity
from anabranch.syntax import languages

SECOND = 1_000_000
SERAPH = """
REGISTER QUERY q STARTING AT '1970-01-01T00:00:00Z'
{ MATCH (a:P), (b:P) WITHIN PT8S WHERE %s EMIT id(a) AS a, id(b) AS b SNAPSHOT EVERY PT2S }
"""
CSPARQL = """
REGISTER QUERY q AS PREFIX : <http://e/>
SELECT ?a ?b FROM STREAM <http://s> [RANGE 8s STEP 2s] WHERE { %s }
"""
RECOGNISED = [
    SERAPH % "(a)-[*0..]-(b)",
    SERAPH % "a <> b AND (a)-[*]-(b)",
    SERAPH % "id(a) < id(b) AND EXISTS { (a)-[:X*]-(b) } AND a.v > 0",
    SERAPH % "(a)-[*]-(b)",
    SERAPH % "(a)-[:X*]-(b) OR a.v > 0",
    SERAPH % "NOT (a)-[:Y*]-(b)",
    SERAPH % "NOT exists((a)-[:X|Y*0..]-(b))",
    SERAPH % "id(a) < id(b) AND NOT (a)-[:X*0..]-(b)",
    CSPARQL % "?a :p ?x . ?b :q ?y . ?a (:p|^:p)* ?b",
    CSPARQL % "?a (:p|^:q|:q|^:p)* ?b . ?a :p ?x . ?y :q ?b",
    CSPARQL % "?a :p ?b . ?b (^:q|:q)* <http://e/3>",
]
LEFT_ALONE = [
    SERAPH % "(a)-[*]-(a)",
    SERAPH % "a <> b AND (a)-[*]->(b)",
    SERAPH % "a <> b AND (a)-[*2..]-(b)",
    SERAPH % "a <> b AND (a)-[*1..3]-(b)",
    SERAPH % "a <> b AND (a)-[*]-(b:P)",
    SERAPH % "a <> b AND (a)-[*]-()",
    SERAPH % "a <> b AND (a)-[* {v: 1}]-(b)",
    CSPARQL % "?a :p ?x . ?a (:p|^:p)* ?b",
    CSPARQL % "?a :p ?x . ?b :q ?y . ?a (:p|^:p)+ ?b",
    CSPARQL % "?a :p ?x . ?b :q ?y . ?a (:p|^:q)* ?b",
    CSPARQL % "?a :p ?x . ?b :q ?y . ?a :p* ?b",
    CSPARQL % "?x ?a ?y . ?b :q ?y . ?a (:p|^:p)* ?b",
]


def questions(text: str) -> list[ex.Connected]:
    plan = languages.registrations(text)[0].plan
    rewrite = recognise_connectivity(plan, Knowledge())
    return [] if rewrite is None else [one for one in walk(rewrite.plan) if isinstance(one, ex.Connected)]


@pytest.mark.parametrize("text", RECOGNISED)
def test_a_path_that_only_asks_for_existence_is_recognised(text: str) -> None:
    assert len(questions(text)) == 1


def test_only_ends_that_may_be_the_same_node_keep_a_trail() -> None:
    def trails(text: str) -> int:
        rewrite = recognise_connectivity(languages.registrations(text)[0].plan, Knowledge())
        assert rewrite is not None
        return sum(isinstance(one, ex.Exists) for one in walk(rewrite.plan))

    assert [trails(SERAPH % where) for where in ("(a)-[*]-(b)", "a <> b AND (a)-[*]-(b)", "(a)-[*0..]-(b)")] == [
        1,
        0,
        0,
    ]


@pytest.mark.parametrize("text", LEFT_ALONE)
def test_every_other_path_is_left_alone(text: str) -> None:
    assert questions(text) == []


def test_two_windows_are_left_alone_since_a_node_may_be_in_one_of_them_only() -> None:
    text = """REGISTER QUERY q STARTING AT '1970-01-01T00:00:00Z'
    { MATCH (a:P) WITHIN PT8S MATCH (b:P) WITHIN PT2S WHERE (a)-[*0..]-(b) EMIT id(a) AS a SNAPSHOT EVERY PT2S }"""
    assert questions(text) == []


def events(text: str, seed: int) -> list[Event]:
    random = Random(seed)
    found = []
    for at in range(40):
        one, other = random.randrange(7), random.randrange(7)
        if text.startswith("\nREGISTER QUERY q AS"):
            triple = Triple(Iri(f"http://e/{one}"), Iri(f"http://e/{random.choice('pq')}"), Iri(f"http://e/{other}"))
            found.append(Event(at * SECOND, triples=(triple,)))
            continue
        nodes = tuple(Node(number, ("P",), {"v": number % 2}) for number in dict.fromkeys((one, other)))
        kind = random.choice("XYZ")
        found.append(Event(at * SECOND, nodes, (Relationship(f"{one}{kind}{other}", kind, one, other),)))
    return found


@pytest.mark.parametrize("text", RECOGNISED)
@pytest.mark.parametrize("seed", range(3))
def test_the_answers_stay_what_they_were(text: str, seed: int) -> None:
    told = []
    for rules in ("all", "none"):
        session = Session.local(rules=rules)
        query = session.register(text)
        for event in events(text, seed):
            session.push("http://s" if event.triples else "s", [event])
        session.finish(drain=True)
        told.append([answer.to_dict() for answer in query.poll()])
    assert told[0] == told[1]
    assert any(answer["rows"] for answer in told[0])
