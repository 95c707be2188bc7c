"""Terms as text: what is written is read again, and what the quick way reads is what a parser would."""

from __future__ import annotations

import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.errors import MalformedEventError
from anabranch.formats.rdf import terms
from anabranch.formats.rdf.terms import (
    document_of,
    from_oxigraph,
    legal_label,
    parse_cell,
    parse_term,
    term_text,
    to_oxigraph,
)
from anabranch.model.terms import XSD_INTEGER, Blank, Iri, Literal, Term, blank_label, tagged

from .drawing import OBJECTS, TEXTS


@settings(max_examples=400)
@given(OBJECTS)
def test_what_is_written_is_read_again(term: Term) -> None:
    expected = Blank(blank_label(term), "d") if isinstance(term, Blank) else term
    assert parse_term(term_text(term), "d") == expected


@settings(max_examples=400)
@given(OBJECTS)
def test_pyoxigraph_reads_the_text_as_the_same_term(term: Term) -> None:
    (quad,) = ox.parse(f"<a:a> <a:a> {term_text(term)} .", ox.RdfFormat.N_TRIPLES)
    assert quad.object == to_oxigraph(term)


@settings(max_examples=600)
@given(
    st.one_of(
        st.text('<>:/#%@"^_\\ab1. \u00e9\x00é-', max_size=12),
        st.text("ab:/?#[]@%é1 ", max_size=10).map(lambda text: f"<http://{text}>"),
        TEXTS.map(lambda text: f'"{text}"'),
        st.text("abAB19-", max_size=10).map(lambda text: f'"x"@{text}'),
    )
)
def test_the_quick_way_agrees_with_the_parser(text: str) -> None:
    try:
        quads = list(ox.parse(f"<a:a> <a:a> {text} .", ox.RdfFormat.N_TRIPLES))
        expected = from_oxigraph(quads[0].object, "d") if len(quads) == 1 else None
    except (SyntaxError, MalformedEventError):
        expected = None
    try:
        found = parse_term(text, "d")
    except MalformedEventError:
        found = None
    # The parser forgives spaces and comments around a term.
    assert found == expected or text != text.strip() or "#" in text or "." in text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<a>", "no scheme found"),
        ("<http://a b>", "invalid IRI code point"),
        ('"open', "is no RDF term"),
        ("<<( <a:a> <a:a> <a:a> )>>", "a triple inside a triple"),
        ('"x"@en--ltr', "direction"),
        ("", "is no RDF term"),
    ],
)
def test_what_is_no_term_says_why(text: str, said: str) -> None:
    with pytest.raises(MalformedEventError, match=said):
        parse_term(text, "d")


def test_languages_are_told_apart_without_regard_to_case() -> None:
    assert parse_term('"x"@EN-us', "") == parse_term('"x"@en-US', "") == tagged("x", "en-us")


def test_a_plain_text_and_an_xsd_string_are_one_term() -> None:
    assert parse_term('"x"^^<http://www.w3.org/2001/XMLSchema#string>', "") == parse_term('"x"', "") == Literal("x")


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("http://ex.org/a", Iri("http://ex.org/a")),
        ("<http://ex.org/a>", Iri("http://ex.org/a")),
        ("_:b", Blank("b", "d")),
        ("hello: world", Literal("hello: world")),
        ("12:30", Literal("12:30")),
        ("", Literal("")),
        ('"5"^^<http://www.w3.org/2001/XMLSchema#integer>', Literal("5", XSD_INTEGER)),
        ("http://ex.org/%zz", Literal("http://ex.org/%zz")),
    ],
)
def test_the_cell_of_an_object_may_be_bare(text: str, term: Term) -> None:
    assert parse_cell(text, "d", is_object=True) == term


@pytest.mark.parametrize("text", ["abc", "", "http://ex.org/%zz"])
def test_the_cell_of_a_subject_is_an_iri_or_a_blank_node(text: str) -> None:
    with pytest.raises(MalformedEventError):
        parse_cell(text, "d", is_object=False)


@given(st.text(max_size=5), st.text(max_size=5))
def test_every_label_that_is_written_is_legal(label: str, document: str) -> None:
    blank = Blank(label, document)
    (quad,) = ox.parse(f"_:{legal_label(blank)} <a:a> <a:a> .", ox.RdfFormat.TURTLE)
    assert quad.subject == ox.BlankNode(legal_label(blank))


def test_documents_of_different_streams_and_places_have_different_names() -> None:
    names = [document_of(stream, place) for stream in ("", "s", "http://a/s", "http://a/t") for place in ("1", "2-1")]
    assert len(set(names)) == len(names)
    assert document_of("http://a/s", "1/2-1") == document_of("http://a/s", "1/2-1")


def test_short_terms_are_remembered_and_long_ones_are_not() -> None:
    short, long = '"remembered"', f'"{"x" * 1000}"'
    assert terms.parse_term(short, "d") is terms.parse_term(short, "d")
    assert terms.parse_term(long, "d") == Literal("x" * 1000)
    assert short in terms._known
    assert long not in terms._known
