"""JSON objects that hold RDF: triples, Turtle and JSON-LD, their times, and their blank nodes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from anabranch.errors import MalformedEventError
from anabranch.formats.events import event_from_dict, event_to_dict, events_from
from anabranch.formats.ndjson import read_line, read_line_as
from anabranch.model.event import Event
from anabranch.model.instants import parse_instant
from anabranch.model.terms import XSD, XSD_INTEGER, Blank, Iri, Literal, Triple
from anabranch.model.values import Node
from anabranch.sources.base import AsEvent

AT = "2022-10-14T14:45:00Z"
WHEN = parse_instant(AT)
A, P = Iri("http://ex/a"), Iri("http://ex/p")
PROV = {"prov": "http://www.w3.org/ns/prov#", "p": "http://ex/p"}
PROV_TIME = Iri("http://www.w3.org/ns/prov#generatedAtTime")


def event(**data: Any) -> Event:
    return event_from_dict({key.replace("at_", "@"): value for key, value in data.items()}, "7", "s")


def reason(data: Any) -> str:
    with pytest.raises(MalformedEventError) as found:
        event_from_dict(data, "7", "s")
    return found.value.reason


def test_triples_are_lists_of_three_terms() -> None:
    found = event(at=AT, triples=[["<http://ex/a>", "http://ex/p", '"x"'], ["_:b", "<http://ex/p>", 5]])
    blank = Blank("b", "s.7")
    assert found == Event(WHEN, triples=(Triple(A, P, Literal("x")), Triple(blank, P, Literal("5", XSD_INTEGER))))


def test_turtle_may_stand_in_a_record() -> None:
    found = event(time=AT, turtle="@prefix : <http://ex/> . :a :p [ :p 1 ], _:x . _:x :p 2 .")
    assert {term for triple in found.triples for term in triple if isinstance(term, Blank)} == {
        Blank("b0", "s.7"),
        Blank("b1", "s.7"),
    }


def test_json_ld_may_stand_beside_its_time() -> None:
    assert event(at=AT, graph={"@id": "http://ex/a", "http://ex/p": "x"}).triples == (Triple(A, P, Literal("x")),)


@pytest.mark.parametrize("key", ["at", "time", "timestamp"])
def test_the_time_of_json_ld_may_be_a_key_outside_of_it(key: str) -> None:
    found = event_from_dict({"@context": {"p": "http://ex/p"}, "@id": "http://ex/a", "p": "x", key: AT})
    assert found == Event(WHEN, triples=(Triple(A, P, Literal("x")),))


def test_a_key_that_the_context_knows_is_data_and_may_be_the_time_too() -> None:
    found = event(at_context={"p": "http://ex/p", "time": "http://ex/time"}, at_id="http://ex/a", p="x", time=AT)
    assert found.event_time == WHEN
    assert Triple(A, Iri("http://ex/time"), Literal(AT)) in found.triples


def test_the_time_may_be_that_of_the_graph_in_json_ld() -> None:
    found = event(
        at_context=PROV,
        at_id="http://ex/g",
        at_graph=[{"@id": "http://ex/a", "p": "x"}],
        **{"prov:generatedAtTime": {"@value": AT, "@type": f"{XSD}dateTime"}},
    )
    assert found == Event(WHEN, triples=(Triple(A, P, Literal("x")),))


def test_the_time_may_be_that_of_the_node_in_json_ld() -> None:
    found = event(at_context=PROV, at_id="http://ex/a", p="x", **{"prov:generatedAtTime": AT})
    assert found.event_time == WHEN
    assert found.triples == (Triple(A, P, Literal("x")), Triple(A, PROV_TIME, Literal(AT)))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"triples": []}, "at: missing"),
        ({"at": AT, "triples": {}}, "triples: expected a list"),
        ({"at": AT, "triples": [["a", "b"]]}, "triples[0]: a triple is a list"),
        ({"at": AT, "triples": [["x", "http://p", "y"]]}, "triples[0]: `x` is no IRI"),
        ({"at": AT, "triples": [['"x"', "http://p", "y"]]}, 'triples[0]: the subject "x" is a literal'),
        ({"at": AT, "triples": [["_:x", "_:p", "y"]]}, "triples[0]: the predicate _:s.7.p is no IRI"),
        ({"at": AT, "triples": [["_:x", None, "y"]]}, "triples[0]: null is no term"),
        ({"at": "noon", "triples": []}, "at: `noon` is not an instant"),
        ({"at": AT, "turtle": ":a :p 1 ."}, "turtle: not Turtle: the prefix : has not been declared (line 1"),
        ({"at": AT, "turtle": "<a> <http://p> 1 ."}, "turtle: the IRI `a` is relative"),
        ({"at": AT, "turtle": "", "triples": []}, "triples: given besides `turtle`"),
        ({"at": AT, "@context": "https://schema.org/", "name": "x"}, "not JSON-LD: its @context is elsewhere"),
        ({"at": AT, "@id": "a", "http://ex/p": "x"}, "the IRI `a` is relative"),
        ({"at": AT, "@context": {}, "name": "x"}, "the JSON-LD says nothing"),
        ({"@id": "http://ex/a", "http://ex/p": "x"}, "no time: give `at`"),
    ],
)
def test_what_is_wrong_with_a_record_is_said_with_its_place(data: Any, said: str) -> None:
    assert reason(data).startswith(said)


def test_two_records_have_blank_nodes_of_their_own() -> None:
    record = {"at": AT, "turtle": "[] <http://ex/p> 1 ."}
    of_stream, of_other = AsEvent("s"), AsEvent("http://ex/t")
    found = {of_stream(record, "1").triples, of_stream(record, "2").triples, of_other(record, "1").triples}
    assert len(found) == 3
    assert of_stream(record, "1") == of_stream(record, "1")


def test_records_without_a_place_are_told_apart_by_what_they_say() -> None:
    one, two = events_from([{"at": AT, "turtle": f"[] <http://ex/p> {number} ."} for number in (1, 2)])
    assert one.triples[0].subject != two.triples[0].subject


def test_an_event_of_triples_is_written_as_it_is_read() -> None:
    found = event(at=AT, triples=[["http://ex/a", "http://ex/p", 'say "x"\n'], ["http://ex/a", "http://ex/p", "5"]])
    assert event_from_dict(json.loads(json.dumps(event_to_dict(found)))) == found


def test_nodes_and_relationships_stay_what_they_are_whatever_else_the_record_says() -> None:
    assert event(at=AT, nodes=[{"id": 1}], graph={"city": "Lyon"}) == Event(WHEN, (Node(1),))
    assert event(at=AT, graph="city") == Event(WHEN)


def test_a_record_may_be_a_time_a_tab_and_a_triple() -> None:
    line = f'{AT}\t<http://ex/a> <http://ex/p> "x" .'
    assert read_line(line.encode()) == Event(WHEN, triples=(Triple(A, P, Literal("x")),))
    refused = read_line(f"{AT}\t<http://ex/a> <http://ex/p> x .")
    assert str(refused) == "line 1: column 50: the object of a triple must be an IRI, a blank node or a literal"


def test_comments_between_records_are_passed_over() -> None:
    assert read_line_as(b"# a note", 1, lambda data, number: data) is None
