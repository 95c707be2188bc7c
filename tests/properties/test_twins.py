"""A query in Seraph and its twin in C-SPARQL give the same answers over one stream, whichever model its events have.

Values are functional (a person has one age for ever) and no two relationships of a pattern have one type, so that what
the models do not share (the newest of several values, relationships that must differ) cannot matter.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from anabranch import Session
from anabranch.model.event import Event
from anabranch.model.mapping import Mapping
from anabranch.model.terms import RDF_TYPE, XSD_INTEGER, Iri, Literal, Triple
from anabranch.model.values import Node, Relationship

VOCABULARY = "http://ex.org/v#"
RESOURCES = "http://ex.org/"
MAPPING = Mapping(vocabulary=VOCABULARY, resources=RESOURCES)
STREAM = "http://ex.org/stream"
SECOND = 1_000_000
DRAWS = 120


@dataclass(frozen=True)
class Twin:
    """What is asked, in both languages; columns have the same names."""

    match: str
    emit: str
    select: str
    where: str
    group: str = ""


TWINS = {
    "one relationship": Twin(
        "MATCH (a:Person)-[:knows]->(b) WITHIN {w} ON STREAM `{s}`",
        "id(a) AS a, id(b) AS b",
        "?a ?b",
        "?a a v:Person . ?a v:knows ?b .",
    ),
    "two relationships": Twin(
        "MATCH (a)-[:knows]->(b:Person)-[:likes]->(c) WITHIN {w} ON STREAM `{s}`",
        "id(a) AS a, id(b) AS b, id(c) AS c",
        "?a ?b ?c",
        "?a v:knows ?b . ?b a v:Person . ?b v:likes ?c .",
    ),
    "a property in a filter": Twin(
        "MATCH (a)-[:likes]->(b) WITHIN {w} ON STREAM `{s}` WHERE a.age > 2",
        "id(a) AS a, id(b) AS b, a.age AS age",
        "?a ?b ?age",
        "?a v:likes ?b . ?a v:age ?age . FILTER (?age > 2)",
    ),
    "groups": Twin(
        "MATCH (a)-[:knows]->(b) WITHIN {w} ON STREAM `{s}`",
        "id(a) AS a, count(b) AS friends",
        "?a (COUNT(?b) AS ?friends)",
        "?a v:knows ?b .",
        "GROUP BY ?a",
    ),
    "optional": Twin(
        "MATCH (a:Person) WITHIN {w} ON STREAM `{s}` OPTIONAL MATCH (a)-[:likes]->(b) WITHIN {w} ON STREAM `{s}`",
        "id(a) AS a, id(b) AS b",
        "?a ?b",
        "?a a v:Person . OPTIONAL { ?a v:likes ?b }",
    ),
    "negation": Twin(
        "MATCH (a:Person) WITHIN {w} ON STREAM `{s}` WHERE NOT EXISTS { (a)-[:knows]->() }",
        "id(a) AS a",
        "?a",
        "?a a v:Person . FILTER NOT EXISTS { ?a v:knows ?x }",
    ),
    "each once": Twin(
        "MATCH (a)-[:knows]->(b) WITHIN {w} ON STREAM `{s}`",
        "DISTINCT id(b) AS b",
        "DISTINCT ?b",
        "?a v:knows ?b .",
    ),
    "sums": Twin(
        "MATCH (a:Person)-[:likes]->(b) WITHIN {w} ON STREAM `{s}` WHERE a.age IS NOT NULL",
        "sum(a.age) AS years, min(a.age) AS youngest",
        "(SUM(?age) AS ?years) (MIN(?age) AS ?youngest)",
        "?a a v:Person . ?a v:likes ?b . ?a v:age ?age .",
    ),
}


def seraph(twin: Twin, width: int, step: int) -> str:
    match = twin.match.replace("{w}", f"PT{width}S").replace("{s}", STREAM)
    emit = f"EMIT {twin.emit} SNAPSHOT EVERY PT{step}S"
    return f"REGISTER QUERY one STARTING AT 1970-01-01T00:00:10Z {{ {match} {emit} }}"


def csparql(twin: Twin, width: int, step: int) -> str:
    return f"""
        REGISTER QUERY other STARTING AT 1970-01-01T00:00:10Z AS
        PREFIX v: <{VOCABULARY}>
        SELECT {twin.select} FROM STREAM <{STREAM}> [RANGE {width}s STEP {step}s] WHERE {{ {twin.where} }} {twin.group}
    """


def drawn_triples(random: Random) -> list[Triple]:
    people = [Iri(f"{RESOURCES}{name}") for name in "abcd"]
    found = []
    for _ in range(random.randint(1, 4)):
        one = random.choice(people)
        match random.choice(("type", "age", "knows", "knows", "likes", "likes")):
            case "type":
                found.append(Triple(one, RDF_TYPE, Iri(f"{VOCABULARY}Person")))
            case "age":
                found.append(Triple(one, Iri(f"{VOCABULARY}age"), Literal(str(ord(one.value[-1]) - 96), XSD_INTEGER)))
            case verb:
                found.append(Triple(one, Iri(f"{VOCABULARY}{verb}"), random.choice(people)))
    return list(dict.fromkeys(found))


def drawn_elements(random: Random) -> tuple[tuple[Node, ...], tuple[Relationship, ...]]:
    """Nodes with or without their label and age, and relationships whose id is what they say."""
    names = random.sample("abcd", random.randint(1, 4))
    nodes = []
    for name in names:
        labels = ("Person",) if random.random() < 0.5 else ()
        nodes.append(Node(name, labels, {"age": ord(name) - 96} if random.random() < 0.5 else {}))
    relationships = {}
    for _ in range(random.randint(0, 3)):
        source, target = random.choice(names), random.choice(names)
        kind = random.choice(("knows", "likes"))
        key = f"{source} {kind} {target}"
        relationships[key] = Relationship(key, kind, source, target)
    return tuple(nodes), tuple(relationships.values())


def drawn_events(random: Random, as_rdf: bool) -> list[Event]:
    at = 8 * SECOND
    events = []
    for _ in range(random.randint(3, 12)):
        at += random.choice((0, 300_000, SECOND, 2 * SECOND))
        if as_rdf:
            events.append(Event(at, triples=tuple(drawn_triples(random))))
        else:
            events.append(Event(at, *drawn_elements(random)))
    return events


def plain(value: Any) -> Any:
    """A value that both models write down in the same way: names without their namespace."""
    match value:
        case Iri():
            return value.value.removeprefix(RESOURCES)
        case str():
            return value.removeprefix(RESOURCES)
        case Literal(lexical):
            return int(lexical)
        case _:
            return value


@pytest.mark.parametrize("as_rdf", [True, False], ids=["rdf events", "property graph events"])
@pytest.mark.parametrize("name", TWINS)
def test_twins_agree(name: str, as_rdf: bool) -> None:
    rows = 0
    for number in range(DRAWS // len(TWINS)):
        random = Random(f"{name}/{as_rdf}/{number}")
        step = random.choice((1, 2, 3))
        width = step * random.choice((1, 2, 3))
        session = Session.local([STREAM], mapping=MAPPING, windows=random.choice(("trailing", "right-open")))
        one = session.register(seraph(TWINS[name], width, step))
        other = session.register(csparql(TWINS[name], width, step))
        assert one.columns == other.columns
        session.push(STREAM, drawn_events(random, as_rdf))
        session.finish(drain=True)
        answers = [
            {int(answer.at): Counter(tuple(map(plain, row)) for row in answer.rows) for answer in query.poll()}
            for query in (one, other)
        ]
        assert answers[0] == answers[1], number
        rows += sum(bag.total() for bag in answers[0].values())
    assert rows > 10
