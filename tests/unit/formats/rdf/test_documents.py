"""Documents of timed graphs: which graph is an event, when it was, and what is refused."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.errors import StreamError
from anabranch.formats.deadletter import MalformedRecord
from anabranch.formats.rdf.documents import DocumentForm, read_document, write_document
from anabranch.model.event import Event
from anabranch.model.instants import parse_instant
from anabranch.model.terms import Blank, Iri, Literal, Triple

from .drawing import EVENTS, renamed

AT = "2022-10-14T14:45:00Z"
WHEN = parse_instant(AT)
HEAD = """@prefix : <http://ex/> . @prefix prov: <http://www.w3.org/ns/prov#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""


def trig(text: str) -> list[Event | MalformedRecord]:
    return list(read_document((HEAD + text).encode(), "trig", "d", "file:///data/x.trig"))


def times(records: list[Event | MalformedRecord]) -> list[int | str]:
    return [record.event_time if isinstance(record, Event) else record.reason for record in records]


@settings(max_examples=60)
@pytest.mark.parametrize("form", ["nquads", "trig", "jsonld"])
@given(events=st.lists(EVENTS, max_size=4))
def test_what_is_written_is_read_again_event_by_event(form: DocumentForm, events: list[Event]) -> None:
    file = io.BytesIO()
    assert write_document(events, file, form) == len(events)
    found = [record for record in read_document(file.getvalue(), form, "d") if isinstance(record, Event)]
    # A syntax with nested nodes may say the triples of a graph in another order.
    assert [at for at, _ in renamed(found)] == [at for at, _ in renamed(events)]
    assert [shape(event) for event in found] == [shape(event) for event in events]


def shape(event: Event) -> list[tuple[object, ...]]:
    triples = [tuple("_" if isinstance(term, Blank) else term for term in triple) for triple in event.triples]
    return sorted(triples, key=repr)


def test_each_named_graph_is_an_event_in_the_order_of_the_document() -> None:
    found = trig(f""":g2 {{ :b :p :c }} :g1 {{ :a :p <there> . :a :p [] }}
        :g1 prov:generatedAtTime "{AT}"^^xsd:dateTime . :g2 prov:generatedAtTime "7"^^xsd:long .""")
    p = Iri("http://ex/p")
    assert found == [
        Event(7000, triples=(Triple(Iri("http://ex/b"), p, Iri("http://ex/c")),)),
        Event(
            WHEN,
            triples=(
                Triple(Iri("http://ex/a"), p, Iri("file:///data/there")),
                Triple(Iri("http://ex/a"), p, Blank("b0", "d")),
            ),
        ),
    ]


def test_another_property_is_the_time_when_no_other_could_be() -> None:
    assert times(trig(f':g :when "{AT}"^^xsd:dateTime ; :by :me ; :size 5 . :g {{ :a :p 1 }}')) == [WHEN]


def test_a_graph_may_say_its_own_time() -> None:
    (event,) = trig(f':g {{ :a :p 1 . :g prov:generatedAtTime "{AT}"^^xsd:dateTime }}')
    assert isinstance(event, Event)
    assert event.event_time == WHEN
    assert len(event.triples) == 2


def test_graphs_without_a_time_are_set_aside_by_name() -> None:
    found = trig(f''':g1 {{ :a :p 1 }} :g2 {{ :a :p 2 }} :g3 {{ :a :p 3 }} :g4 {{ :a :p 4 }}
        :g2 :from "{AT}"^^xsd:dateTime ; :to "{AT}"^^xsd:dateTime .
        :g3 prov:generatedAtTime :noon . :g4 prov:generatedAtTime "{AT}" .''')
    assert times(found) == [
        "graph <http://ex/g1> has no time: say <http://ex/g1> prov:generatedAtTime ... in the default graph",
        "graph <http://ex/g2>: which of <http://ex/from>, <http://ex/to> is its time? give prov:generatedAtTime",
        "<http://ex/noon> is no time",
        WHEN,
    ]
    assert isinstance(found[0], MalformedRecord)
    assert found[0].raw.startswith("<http://ex/a> <http://ex/p>")


def test_a_document_without_named_graphs_is_refused() -> None:
    with pytest.raises(StreamError, match=r"no named graph.*\nhint: a graph without time is given with --graph"):
        trig(":a :p 1 .")


@pytest.mark.parametrize(
    ("form", "data", "said"),
    [
        ("trig", b":g { :a :p 1 }", "line 1, column 1: not TriG: the prefix : has not been declared"),
        ("jsonld", b'{"@id": 5', "line 1, column 10: not JSON-LD: object values must be followed"),
        ("jsonld", b'{"@context": "http://ex/c", "@id": "http://a"}', "not JSON-LD: its @context is elsewhere"),
    ],
)
def test_a_document_that_does_not_parse_is_refused_with_its_place(form: DocumentForm, data: bytes, said: str) -> None:
    with pytest.raises(StreamError) as found:
        list(read_document(data, form, "d"))
    assert str(found.value).startswith(said)


def test_a_bad_line_of_n_quads_is_set_aside_and_reading_goes_on() -> None:
    data = b"""<http://ex/a> <http://ex/p> "x" <http://ex/g> .
<http://ex/a> <http://ex/p> oops <http://ex/g> .
_:b <http://ex/p> "y" <http://ex/g> .
<http://ex/g> <http://www.w3.org/ns/prov#generatedAtTime> "5"^^<http://www.w3.org/2001/XMLSchema#long> .
"""
    refused, event = read_document(data, "nquads", "d")
    assert isinstance(refused, MalformedRecord)
    assert (refused.line, refused.reason[:9]) == (2, "column 29")
    assert isinstance(event, Event)
    assert event.triples[1].subject == Blank("b", "d")


def test_a_json_ld_list_of_records_may_have_its_times_outside() -> None:
    records = [{"at": number, "@id": "http://ex/a", "http://ex/p": number} for number in (1, 2)]
    found = list(read_document(json.dumps(records).encode(), "jsonld", "d"))
    assert times(found) == [1000, 2000]


def test_an_empty_document_has_no_events() -> None:
    assert trig("") == []


def test_a_graph_is_written_with_its_time_in_the_default_graph() -> None:
    file = io.BytesIO()
    triple = Triple(Iri("http://ex/a"), Iri("http://ex/p"), Literal("x"))
    write_document([Event(WHEN, triples=(triple,))], file, "nquads")
    assert file.getvalue().decode() == (
        "<urn:anabranch:event:1> <http://www.w3.org/ns/prov#generatedAtTime> "
        '"2022-10-14T14:45:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .\n'
        '<http://ex/a> <http://ex/p> "x" <urn:anabranch:event:1> .\n'
    )
