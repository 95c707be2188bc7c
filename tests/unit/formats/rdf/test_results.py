"""Answers in SPARQL's formats: a standard parser reads them back, and what does not fit is refused."""

from __future__ import annotations

import csv
import io
import json
from typing import Any
from xml.etree import ElementTree

import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.errors import EngineError
from anabranch.formats.answers import AnswerParts
from anabranch.formats.rdf.documents import read_document
from anabranch.formats.rdf.results import FORMS, TABLE_FORMS, render
from anabranch.formats.rdf.terms import to_oxigraph
from anabranch.model.event import Event
from anabranch.model.instants import parse_instant
from anabranch.model.temporal import parse_date
from anabranch.model.terms import FALSE, TRUE, XSD_INTEGER, Blank, Iri, Literal, Term, Triple, tagged
from anabranch.model.values import Node

from .drawing import OBJECTS, TRIPLES

AT = parse_instant("2022-10-14T14:45:00Z")
A, P = Iri("http://ex/a"), Iri("http://ex/p")
GRAPH = ("subject", "predicate", "object")
PARSERS = {
    "sparql-json": ox.QueryResultsFormat.JSON,
    "sparql-xml": ox.QueryResultsFormat.XML,
    "tsv": ox.QueryResultsFormat.TSV,
}
GRAPH_PARSERS = {
    "ntriples": ox.RdfFormat.N_TRIPLES,
    "turtle": ox.RdfFormat.TURTLE,
    "rdfxml": ox.RdfFormat.RDF_XML,
    "jsonld": ox.RdfFormat.JSON_LD,
}


def answer(columns: tuple[str, ...], *rows: tuple[Any, ...], query: str = "q") -> AnswerParts:
    return AnswerParts(query, AT, "snapshot", "", AT - 1, AT, columns, list(rows))


def parsed(form: str, data: bytes) -> list[list[Any]]:
    return [list(solution) for solution in ox.parse_query_results(data, PARSERS[form])]  # type: ignore[union-attr]


def as_xml(term: Term | None) -> Term | None:
    """XML has no control characters, and its parsers read line ends as \\n."""
    if not isinstance(term, Literal):
        return term
    return None if any(ord(one) < 32 or 0xFFFE <= ord(one) <= 0xFFFF for one in term.lexical) else term


@pytest.mark.parametrize("form", PARSERS)
@settings(max_examples=100)
@given(rows=st.lists(st.tuples(OBJECTS, st.one_of(st.none(), OBJECTS)), max_size=4))
def test_rows_are_read_back_by_a_standard_parser(form: str, rows: list[tuple[Term, Term | None]]) -> None:
    if form == "sparql-xml":
        rows = [(as_xml(one) or A, as_xml(two)) for one, two in rows]
    data = render(form, answer(("x", "y"), *rows))
    expected = [[None if term is None else to_oxigraph(term) for term in row] for row in rows]
    assert parsed(form, data) == expected


@settings(max_examples=60)
@given(st.lists(st.tuples(OBJECTS, OBJECTS), max_size=4))
def test_csv_holds_the_bare_texts(rows: list[tuple[Term, Term]]) -> None:
    header, *lines = csv.reader(io.StringIO(render("sparql-csv", answer(("x", "y"), *rows)).decode(), newline=""))
    assert header == ["x", "y"]
    for cells, row in zip(lines, rows, strict=True):
        for cell, term in zip(cells, row, strict=True):
            assert cell.startswith("_:") if isinstance(term, Blank) else cell == term[0]


@pytest.mark.parametrize("form", GRAPH_PARSERS)
@settings(max_examples=100)
@given(triples=st.lists(TRIPLES, max_size=4))
def test_graphs_are_read_back_by_a_standard_parser(form: str, triples: list[Triple]) -> None:
    if form == "rdfxml":
        triples = [one._replace(predicate=P, object=as_xml(one.object) or A) for one in triples]
    data = render(form, answer(GRAPH, *triples), {"ex": "http://ex/", "not a prefix": "http://ex/", "bad": "no iri"})
    found = {shape(quad.triple) for quad in ox.parse(data, GRAPH_PARSERS[form])}
    assert found == {shape(ox.Triple(*map(to_oxigraph, one))) for one in triples}


def shape(triple: ox.Triple) -> tuple[Any, ...]:
    return tuple("_" if isinstance(term, ox.BlankNode) else term for term in triple)


def test_blank_nodes_keep_their_identity_within_an_answer() -> None:
    rows = [(Blank("b", "17"), P, Blank("c", "17")), (Blank("c", "17"), P, Blank("b", "18"))]
    for form, parser in GRAPH_PARSERS.items():
        one, two = ox.parse(render(form, answer(GRAPH, *rows)), parser)
        assert one.object == two.subject
        assert len({one.subject, one.object, two.object}) == 3


def test_the_documents_of_several_answers_follow_each_other() -> None:
    parts = answer(("x",), (A,), (Literal("5", XSD_INTEGER),), query="my query")
    line = render("sparql-json", parts)
    assert line.count(b"\n") == 1
    assert json.loads(line)["head"] == {"vars": ["x"], "link": ["urn:anabranch:my%20query:2022-10-14T14:45:00Z"]}
    assert render("tsv", parts) == b"?x\n<http://ex/a>\n5\n"
    assert render("sparql-csv", parts) == b"x\r\nhttp://ex/a\r\n5\r\n"
    assert ElementTree.fromstring(render("sparql-xml", parts)).tag.endswith("sparql")


@pytest.mark.parametrize("value", [True, TRUE])
def test_an_ask_is_a_boolean(value: Any) -> None:
    parts = answer(("ask",), (value,))
    for form in ("sparql-json", "sparql-xml"):
        found = ox.parse_query_results(render(form, parts), PARSERS[form])
        assert isinstance(found, ox.QueryBoolean)
        assert bool(found)
    assert render("tsv", parts) == b"true\n"
    assert render("sparql-csv", answer(("ask",), (FALSE,))) == b"false\r\n"


def test_values_of_property_graphs_become_literals_and_elements_their_iris() -> None:
    row = (1, "x", parse_date("2022-10-14"), Node(5), [1, "a"], None)
    (found,) = json.loads(render("sparql-json", answer(tuple("abcdef"), row)))["results"]["bindings"]
    assert found == {
        "a": {"type": "literal", "value": "1", "datatype": XSD_INTEGER},
        "b": {"type": "literal", "value": "x"},
        "c": {"type": "literal", "value": "2022-10-14", "datatype": "http://www.w3.org/2001/XMLSchema#date"},
        "d": {"type": "uri", "value": "urn:anabranch:node:5"},
        "e": {"type": "literal", "value": '[1,"a"]'},
    }


def test_an_answer_in_n_quads_is_again_a_stream() -> None:
    data = render("nquads", answer(GRAPH, (A, P, tagged("x", "en"))))
    assert list(read_document(data, "nquads", "d")) == [Event(AT, triples=(Triple(A, P, tagged("x", "en")),))]


def test_turtle_uses_the_prefixes_of_the_query() -> None:
    found = render("turtle", answer(GRAPH, (A, P, A)), {"ex": "http://ex/"}).decode()
    assert found == "# urn:anabranch:q:2022-10-14T14:45:00Z\n@prefix ex: <http://ex/> .\nex:a ex:p ex:a .\n"


def test_rows_do_not_fit_into_a_graph() -> None:
    with pytest.raises(EngineError) as found:
        render("turtle", answer(("x", "y"), (A, P)))
    assert str(found.value) == (
        "turtle holds triples, and the query's columns are x, y\n"
        "hint: CONSTRUCT and DESCRIBE give triples; rows fit into sparql-json, sparql-xml, tsv, sparql-csv"
    )


def test_a_graph_fits_into_every_form() -> None:
    for form in FORMS:
        assert render(form, answer(GRAPH, (A, P, A)))


def test_an_unknown_form_is_refused_with_those_that_exist() -> None:
    with pytest.raises(EngineError, match="there is no form `turtel`\nhint: did you mean turtle"):
        render("turtel", answer(GRAPH))


def test_a_predicate_that_rdf_xml_cannot_hold_is_refused() -> None:
    with pytest.raises(EngineError, match="RDF/XML cannot hold the predicate <http://ex/>"):
        render("rdfxml", answer(GRAPH, (A, Iri("http://ex/"), A)))


def test_no_rows_are_still_a_document() -> None:
    for form in TABLE_FORMS:
        assert render(form, answer(("x",)))
