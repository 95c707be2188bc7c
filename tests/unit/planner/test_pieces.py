"""Changes that are handed on in pieces: the answers are those of whole batches, and what is large is never whole."""

from __future__ import annotations

import random
from typing import Any

import pytest

from anabranch.delta import evaluation
from anabranch.delta.batch import Batch
from anabranch.delta.log_matcher import LogMatcher
from anabranch.delta.operators import join
from anabranch.delta.operators.grouping import GroupedAggregates
from anabranch.engine.evaluation_options import EvaluationOptions
from anabranch.engine.session import Session
from anabranch.model.event import Event
from anabranch.model.terms import Iri, Literal, Triple
from anabranch.model.values import Node, Relationship

XSD = "http://www.w3.org/2001/XMLSchema#"
BEGIN = 1_700_000_000_000_000
HUB = "?y :q ?h . ?h :p ?x"
QUERIES = {
    "count": f"SELECT ?y (COUNT(?x) AS ?n) WHERE {{ {HUB} }} GROUP BY ?y",
    "sum of a filtered extension": f"SELECT ?y (SUM(?n) AS ?s) WHERE {{ {HUB} . ?x :v ?v "
    "BIND(?v * 2 AS ?n) FILTER(?n > 4) } GROUP BY ?y",
    "distinct": f"SELECT DISTINCT ?y WHERE {{ {HUB} }}",
    "rows": f"SELECT ?y ?x WHERE {{ {HUB} }}",
    "top": f"SELECT ?x ?y WHERE {{ {HUB} }} ORDER BY ?x ?y LIMIT 5",
    "optional": "SELECT ?h (COUNT(?y) AS ?n) WHERE { ?h :p ?x OPTIONAL { ?y :q ?h . ?x :v ?v } } GROUP BY ?h",
    "minus": f"SELECT (COUNT(*) AS ?n) WHERE {{ {HUB} MINUS {{ ?x :v 3 }} }}",
    "union": f"SELECT (COUNT(*) AS ?n) WHERE {{ {{ {HUB} }} UNION {{ ?x :v ?y }} }}",
    "join of an aggregate": "SELECT ?y ?n ?x WHERE { "
    f"{{ SELECT ?h (COUNT(?x) AS ?n) {{ ?h :p ?x }} GROUP BY ?h }} {HUB} }}",
    "group_concat": f"SELECT ?y (GROUP_CONCAT(STR(?x)) AS ?all) WHERE {{ {HUB} }} GROUP BY ?y",
}


def events(seed: int) -> list[Event]:
    """A few hubs with many ends on both sides; every tenth of a second one triple."""
    chance = random.Random(seed)
    found = []
    for number in range(300):
        hub, end = Iri(f"urn:h{chance.randrange(2)}"), Iri(f"urn:e{chance.randrange(40)}")
        said = chance.choice(
            (
                Triple(hub, Iri("urn:p"), end),
                Triple(end, Iri("urn:q"), hub),
                Triple(end, Iri("urn:v"), Literal(str(chance.randrange(6)), f"{XSD}integer")),
            )
        )
        found.append(Event(BEGIN + number * 100_000, triples=(said,)))
    return found


def answers(query: str, step: str, seed: int) -> list[Any]:
    head, body = query.split("WHERE", 1)
    inner, _, tail = body.rpartition("}")
    text = (
        f"PREFIX : <urn:> REGISTER RSTREAM <urn:query> AS {head} FROM NAMED WINDOW <urn:w> ON <urn:s> "
        f"[RANGE PT10S STEP {step}] WHERE {{ WINDOW <urn:w> {inner} }} }} {tail}"
    )
    session = Session.local(evaluation=EvaluationOptions(verify=True))
    asked = session.register(text, file_name="q.rspql")
    session.push("urn:s", events(seed))
    session.finish()
    found = [(answer.at, answer.rows) for answer in asked.poll()]
    assert asked.differing == 0
    return found


@pytest.mark.parametrize("step", ["PT1S", "PT10S"], ids=["sliding", "tumbling"])
@pytest.mark.parametrize("name", QUERIES)
def test_pieces_give_the_answers_of_whole_batches(name: str, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = answers(QUERIES[name], step, 1)
    monkeypatch.setattr(LogMatcher, "piece", 7)
    monkeypatch.setattr(evaluation, "PIECE", 7)
    monkeypatch.setattr(join, "PIECE", 7)
    assert answers(QUERIES[name], step, 1) == whole
    assert any(rows for _, rows in whole)


@pytest.mark.parametrize("step", ["PT1S", "PT10S"], ids=["sliding", "tumbling"])
def test_a_count_of_many_matches_sees_a_few_at_a_time(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    take = GroupedAggregates.apply_pieces

    def watched(operator: GroupedAggregates, pieces: Any) -> Batch:
        def seen() -> Any:
            for piece in pieces:
                sizes.append(len(piece))
                yield piece

        return take(operator, seen())

    monkeypatch.setattr(GroupedAggregates, "apply_pieces", watched)
    monkeypatch.setattr(LogMatcher, "piece", 100)
    monkeypatch.setattr(evaluation, "PIECE", 100)
    assert answers(QUERIES["count"], step, 1)
    assert sum(sizes) > 1000
    assert max(sizes) < 150


@pytest.mark.parametrize(
    "rest",
    [
        "EMIT id(y) AS y, count(x) AS n SNAPSHOT",
        "WHERE x.v > 2 EMIT DISTINCT id(y) AS y ON ENTERING",
        "WITH h, collect(x.v) AS all, sum(x.v) AS s EMIT id(h) AS h, size(all) AS n, s ON EXIT",
        "OPTIONAL MATCH (x)-[:Q]->(z) WITHIN PT10S EMIT id(h) AS h, count(z) AS n SNAPSHOT",
    ],
)
def test_pieces_give_the_answers_of_whole_batches_over_property_graphs(
    rest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told() -> list[Any]:
        chance = random.Random(3)
        session = Session.local(evaluation=EvaluationOptions(verify=True))
        asked = session.register(
            "REGISTER QUERY q STARTING AT 2023-11-14T22:13:20Z "
            f"{{ MATCH (y)-[:Q]->(h)-[:P]->(x) WITHIN PT10S {rest} EVERY PT1S }}"
        )
        for number in range(150):
            hub, end = chance.randrange(2), 10 + chance.randrange(30)
            ends = (hub, end) if number % 2 else (end, hub)
            link = Relationship(number, "P" if number % 2 else "Q", *ends)
            nodes = (Node(end, (), {"v": chance.randrange(6)}), Node(hub))
            session.push("s", [Event(BEGIN + number * 200_000, nodes, (link,))])
        session.finish()
        assert asked.differing == 0
        return [(answer.at, answer.rows) for answer in asked.poll()]

    whole = told()
    monkeypatch.setattr(LogMatcher, "piece", 7)
    monkeypatch.setattr(join, "PIECE", 7)
    assert told() == whole
    assert any(rows for _, rows in whole)
