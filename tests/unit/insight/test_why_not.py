"""Why a row is not there: the part that lacks, or the condition that fails, in cases that a person can check."""

from __future__ import annotations

import pytest

from anabranch.errors import EngineError
from anabranch.insight.recording import Recording
from anabranch.insight.replay import Replay
from anabranch.insight.why_not import why_not
from anabranch.model.event import Event
from anabranch.model.terms import Iri, Literal, Triple
from anabranch.model.triples import TripleGraph
from anabranch.model.values import Node, Relationship

from .recordings import case_recordings

XSD_INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
SECOND = 1_000_000
RECORDINGS = {name: recording for name, recording, _ in case_recordings()}

AUCTIONS = """REGISTER QUERY q AS PREFIX : <http://x/>
SELECT ?item ?title ?bid FROM STREAM <http://x/s> [RANGE 100s STEP 1s] FROM <http://x/static>
WHERE {
  ?item :title ?title ;
        :price ?bid .
  ?item :in ?category .
  FILTER(?bid > 10)
  FILTER NOT EXISTS { ?item :closed ?when }
}"""


def auctions(*facts: tuple[str, str, object]) -> Recording:
    events = [Event(place * SECOND, triples=(_triple(*fact),)) for place, fact in enumerate(facts)]
    static = TripleGraph([_triple("i1", "in", "books"), _triple("i2", "in", "bikes")])
    return Recording(AUCTIONS, events={"http://x/s": events}, graphs={"http://x/static": static})


def _triple(subject: str, predicate: str, value: object) -> Triple:
    object_: Iri | Literal
    if isinstance(value, int):
        object_ = Literal(str(value), XSD_INTEGER)
    elif predicate == "in":
        object_ = Iri(f"http://x/{value}")
    else:
        object_ = Literal(str(value))
    return Triple(Iri(f"http://x/{subject}"), Iri(f"http://x/{predicate}"), object_)


def said(recording: Recording, part: tuple[int, int] | None) -> str:
    assert part is not None
    return recording.query_text[slice(*part)]


def test_the_triple_that_has_not_come_is_missing() -> None:
    recording = auctions(("i1", "title", "Atlas"), ("i2", "title", "Bike"), ("i2", "price", 20))
    found = why_not(recording, {"title": "Atlas"})
    assert [part.text for part in found.missing] == ["?item :price ?bid"]
    assert ":price ?bid" in said(recording, found.missing[0].span)
    assert found.bindings["item"] == "http://x/i1"
    assert [element.text for element in found.matched[0].elements] == [':i1 :title "Atlas"']


def test_static_knowledge_can_be_what_is_missing() -> None:
    recording = auctions(("i3", "title", "Clock"), ("i3", "price", 20))
    found = why_not(recording, {"title": "Clock"})
    assert [part.text for part in found.missing] == ["?item :in ?category"]
    assert len(found.matched) == 2


def test_a_condition_that_fails_is_shown_with_its_value() -> None:
    recording = auctions(("i1", "title", "Atlas"), ("i1", "price", 5))
    found = why_not(recording, {"title": "Atlas"})
    assert not found.missing
    assert [(one.text, one.passed) for one in found.filters if not one.passed] == [("?bid > 10", False)]
    assert found.bindings["bid"] == 5


def test_the_match_that_passes_most_conditions_is_the_nearest() -> None:
    recording = auctions(("i1", "title", "Atlas"), ("i1", "price", 5), ("i1", "price", 50), ("i1", "closed", "now"))
    found = why_not(recording, {"title": "Atlas"})
    assert found.bindings["bid"] == 50
    [failing] = [one for one in found.filters if not one.passed]
    assert "closed" in failing.text


def test_values_that_do_not_go_together_leave_out_as_few_parts_as_possible() -> None:
    recording = auctions(("i1", "title", "Atlas"), ("i2", "title", "Bike"), ("i2", "price", 20))
    found = why_not(recording, {"title": "Atlas", "bid": 20})
    assert len(found.missing) == 1
    assert len(found.matched) == 2


def test_a_row_that_is_there_is_said_to_be_there() -> None:
    recording = auctions(("i1", "title", "Atlas"), ("i1", "price", 50))
    found = why_not(recording, {"title": "Atlas"})
    assert "there is such a row" in found.note
    assert not found.missing


def test_a_prefixed_name_is_as_good_as_the_whole_iri() -> None:
    recording = auctions(("i1", "title", "Atlas"))
    assert why_not(recording, {"item": ":i1"}).bindings["item"] == "http://x/i1"


def test_nothing_of_the_pattern_matches_when_nothing_came() -> None:
    found = why_not(auctions(("i9", "other", "x")), {"title": "Atlas"})
    assert {part.text for part in found.missing} >= {"?item :title ?title", "?item :price ?bid"}


def test_an_unknown_column_is_refused() -> None:
    with pytest.raises(EngineError, match="no column `price`"):
        why_not(auctions(("i1", "title", "Atlas")), {"price": 5})


GRAPH = """REGISTER QUERY q STARTING AT 1970-01-01T00:00:01Z {
  MATCH (p:Person)-[b:BIDS]->(i:Item)<-[:SELLS]-(seller:Person {city: 'Oslo'}) WITHIN PT1M
  WHERE b.price > 2 * i.price
  EMIT p.name AS who, i.title AS title ON ENTERING EVERY PT1S
}"""


def graph(*relationships: Relationship) -> Recording:
    nodes = (
        Node(1, ("Person",), {"name": "Ada", "city": "Rome"}),
        Node(2, ("Person",), {"name": "Bo", "city": "Oslo"}),
        Node(3, ("Item",), {"title": "Lamp", "price": 10}),
    )
    events = [
        Event(SECOND, nodes),
        *(Event((place + 2) * SECOND, (), (one,)) for place, one in enumerate(relationships)),
    ]
    return Recording(GRAPH, events={"s": events})


def test_a_relationship_that_has_not_come_is_missing() -> None:
    recording = graph(Relationship("b1", "BIDS", 1, 3, {"price": 30}))
    found = why_not(recording, {"who": "Ada"})
    assert [part.text for part in found.missing] == ["(i:Item)<-[:SELLS]-(seller:Person {city: 'Oslo'})"]
    assert [part.text for part in found.matched] == ["(p:Person)-[b:BIDS]->(i:Item)"]
    assert said(recording, found.missing[0].span) == found.missing[0].text
    assert "rb1" in {element.id for element in found.matched[0].elements}


def test_a_property_in_the_pattern_belongs_to_its_part() -> None:
    recording = graph(
        Relationship("b1", "BIDS", 2, 3, {"price": 30}), Relationship("s1", "SELLS", 1, 3)
    )  # Ada sells, and she is not from Oslo
    found = why_not(recording, {"who": "Bo"})
    assert [part.text for part in found.missing] == ["(i:Item)<-[:SELLS]-(seller:Person {city: 'Oslo'})"]


def test_a_condition_over_several_elements_is_decided_on_the_match() -> None:
    recording = graph(Relationship("b1", "BIDS", 1, 3, {"price": 15}), Relationship("s1", "SELLS", 2, 3))
    found = why_not(recording, {"who": "Ada", "title": "Lamp"})
    assert not found.missing
    assert [(one.text, one.value, one.passed) for one in found.filters] == [("b.price > 2 * i.price", False, False)]


def test_one_relationship_does_not_match_two_of_a_pattern() -> None:
    text = """REGISTER QUERY q STARTING AT 1970-01-01T00:00:01Z {
      MATCH (a)-[r:R]-(b)-[s:R]-(c) WITHIN PT1M EMIT a.id AS a, c.id AS c SNAPSHOT EVERY PT1S }"""
    events = [Event(SECOND, (Node(1, (), {"id": 1}), Node(2, (), {"id": 2})), (Relationship("r", "R", 1, 2),))]
    found = why_not(Recording(text, events={"s": events}), {})
    assert len(found.missing) == 1


def test_what_is_left_over_behind_the_pattern_is_told_in_words() -> None:
    text = """REGISTER QUERY q AS PREFIX : <http://x/>
    SELECT ?item (COUNT(*) AS ?n) FROM STREAM <http://x/s> [RANGE 100s STEP 1s]
    WHERE { ?item :price ?p } GROUP BY ?item HAVING (COUNT(*) > 1)"""
    events = [Event(0, triples=(_triple("i1", "price", 5),))]
    found = why_not(Recording(text, events={"http://x/s": events}), {"item": "http://x/i1", "n": 1})
    assert "HAVING" in found.note
    assert "`n` is computed from many rows" in found.note
    assert not found.missing


def test_of_a_union_the_nearer_side_is_told() -> None:
    text = """REGISTER QUERY q AS PREFIX : <http://x/>
    SELECT ?x FROM STREAM <http://x/s> [RANGE 100s STEP 1s]
    WHERE { { ?x :a ?y . ?x :b ?z } UNION { ?x :c ?y . ?x :d ?z . ?x :e ?w } }"""
    events = [Event(0, triples=(_triple("i1", "c", 1), _triple("i1", "d", 1)))]
    found = why_not(Recording(text, events={"http://x/s": events}), {"x": "http://x/i1"})
    assert [part.text for part in found.missing] == ["?x :e ?w"]


def test_minus_that_takes_the_match_away_is_told() -> None:
    text = """REGISTER QUERY q AS PREFIX : <http://x/>
    SELECT ?x FROM STREAM <http://x/s> [RANGE 100s STEP 1s] WHERE { ?x :a ?y MINUS { ?x :b ?z } }"""
    events = [Event(0, triples=(_triple("i1", "a", 1), _triple("i1", "b", 1)))]
    found = why_not(Recording(text, events={"http://x/s": events}), {"x": "http://x/i1"})
    [verdict] = found.filters
    assert verdict.text.startswith("MINUS")
    assert not verdict.passed


@pytest.mark.parametrize("name", RECORDINGS)
def test_every_query_says_something_about_values_that_nobody_has(name: str) -> None:
    recording = RECORDINGS[name]
    columns = Replay(recording).registration.columns
    found = why_not(recording, {columns[0]: "nowhere to be found"})
    assert found.missing or found.note or any(not one.passed for one in found.filters)


def test_a_constant_column_leaves_the_pattern_alone() -> None:
    text = """REGISTER QUERY q STARTING AT 1970-01-01T00:00:01Z {
      MATCH (p:Person) WITHIN PT1M EMIT p.name AS who, 0 AS zero SNAPSHOT EVERY PT1S }"""
    recording = Recording(text, events=graph().events)
    found = why_not(recording, {"who": "Ada", "zero": 1})
    assert not found.missing
    assert found.note == "no match can give `zero` this value"


def test_true_is_not_one() -> None:
    recording = auctions(("i1", "title", "Atlas"), ("i1", "price", 50))
    assert "there is such a row" in why_not(recording, {"bid": 50}).note
    recording = auctions(("i1", "title", "Atlas"), ("i1", "price", 1))
    assert [part.text for part in why_not(recording, {"bid": True}).missing] == ["?item :price ?bid"]


def test_a_side_of_a_union_that_cannot_have_the_value_is_not_the_nearer_one() -> None:
    text = """REGISTER QUERY q AS PREFIX : <http://x/>
    SELECT ?x ?z FROM STREAM <http://x/s> [RANGE 100s STEP 1s] WHERE { { ?x :a ?y } UNION { ?x :b ?z . ?x :c ?w } }"""
    events = [Event(0, triples=(_triple("i1", "a", 1),))]
    found = why_not(Recording(text, events={"http://x/s": events}), {"z": 5})
    assert [part.text for part in found.missing] == ["?x :b ?z", "?x :c ?w"]


def test_what_a_subquery_leaves_unbound_goes_with_any_value() -> None:
    text = """REGISTER QUERY q AS PREFIX : <http://x/>
    SELECT ?x ?n FROM STREAM <http://x/s> [RANGE 100s STEP 1s]
    WHERE { ?x :a ?y { SELECT ?y (COUNT(*) AS ?n) WHERE { ?z :b ?w } GROUP BY ?y } }"""
    events = [Event(0, triples=(_triple("i1", "a", 1), _triple("i2", "b", 1)))]
    found = why_not(Recording(text, events={"http://x/s": events}), {"x": "http://x/i1", "n": 1})
    assert "there is such a row" in found.note
    assert not found.missing


def test_a_described_row_that_is_there_is_said_to_be_there() -> None:
    text = """REGISTER QUERY q AS PREFIX : <http://x/>
    DESCRIBE ?x FROM STREAM <http://x/s> [RANGE 100s STEP 1s] WHERE { ?x :a ?y }"""
    events = [Event(0, triples=(_triple("i1", "a", 1),))]
    found = why_not(Recording(text, events={"http://x/s": events}), {"subject": "http://x/i1"})
    assert "there is such a row" in found.note


@pytest.mark.parametrize(
    "text",
    [
        """REGISTER QUERY q STARTING AT 1970-01-01T00:00:01Z {
          MATCH (p:Person)-[:BIDS]->(i) WITHIN PT1M WITH p MATCH (p)-[:SELLS]->(i) WITHIN PT1M
          EMIT p.name AS who SNAPSHOT EVERY PT1S }""",
        """REGISTER QUERY q STARTING AT 1970-01-01T00:00:01Z {
          MATCH (p:Person)-[:BIDS]->(i) WITHIN PT1M WITH p, i AS other MATCH (p)-[:SELLS]->(i) WITHIN PT1M
          EMIT p.name AS who SNAPSHOT EVERY PT1S }""",
    ],
)
def test_a_name_that_is_used_again_is_another_variable(text: str) -> None:
    nodes = (Node(1, ("Person",), {"name": "Ada"}), Node(2, ("Item",)), Node(3, ("Item",)))
    links = (Relationship("b", "BIDS", 1, 2), Relationship("s", "SELLS", 1, 3))
    found = why_not(Recording(text, events={"s": [Event(SECOND, nodes, links)]}), {"who": "Ada"})
    assert "there is such a row" in found.note
    assert not found.missing


def test_a_variable_of_a_subquery_is_its_own() -> None:
    text = """REGISTER QUERY q AS PREFIX : <http://x/>
    SELECT ?x ?y FROM STREAM <http://x/s> [RANGE 100s STEP 1s]
    WHERE { { SELECT ?x WHERE { ?x :a ?y } } ?y :b ?z }"""
    events = [Event(0, triples=(_triple("i1", "a", 1), _triple("i2", "b", 1)))]
    found = why_not(Recording(text, events={"http://x/s": events}), {"x": "http://x/i1", "y": "http://x/i2"})
    assert "there is such a row" in found.note
    assert not found.missing


def test_an_optional_part_that_a_later_one_builds_on_can_be_what_is_missing() -> None:
    text = """REGISTER QUERY q STARTING AT 1970-01-01T00:00:01Z {
      MATCH (p:Person) WITHIN PT1M OPTIONAL MATCH (p)-[:SELLS]->(i) WITHIN PT1M
      WITH p, i MATCH (i)<-[:BIDS]-(other) WITHIN PT1M EMIT p.name AS who SNAPSHOT EVERY PT1S }"""
    recording = Recording(text, events=graph(Relationship("b1", "BIDS", 1, 3)).events)
    found = why_not(recording, {"who": "Ada"})
    assert [part.text for part in found.missing] == ["(p)-[:SELLS]->(i)"]
