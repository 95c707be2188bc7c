"""Static graphs: their syntaxes, told by name or type, and what is wrong with a document."""

from __future__ import annotations

import pytest

from anabranch.errors import StreamError
from anabranch.formats.rdf.graphs import read_triples
from anabranch.model.terms import Blank, Iri, Literal, Triple

ONE = [Triple(Iri("http://ex/a"), Iri("http://ex/p"), Literal("x"))]
XML = b"""<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://ex/">
<rdf:Description rdf:about="http://ex/a"><e:p>x</e:p></rdf:Description></rdf:RDF>"""
TURTLE = b'@prefix : <http://ex/> . :a :p "x" .'
LINE = b'<http://ex/a> <http://ex/p> "x" .'


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.ttl", TURTLE),
        ("A.TTL", b"\xef\xbb\xbf" + TURTLE),
        ("a.n3", TURTLE),
        ("a.nt", LINE),
        ("a.nq", LINE + b'\n<http://ex/a> <http://ex/p> "y" <http://ex/g> .'),
        ("a.trig", TURTLE + b" :g { :a :p 2 }"),
        ("a.rdf", XML),
        ("http://ex/onto.owl?v=1", XML),
        ("a.jsonld", b'{"@id": "http://ex/a", "http://ex/p": "x"}'),
        ("a.ttl.gz", TURTLE),
    ],
)
def test_a_document_is_read_by_its_name(name: str, data: bytes) -> None:
    assert read_triples(data, name) == ONE


@pytest.mark.parametrize(
    ("content_type", "data"),
    [
        ("text/turtle; charset=utf-8", TURTLE),
        ("application/rdf+xml", XML),
        ("application/ld+json", b'{"@id": "http://ex/a", "http://ex/p": "x"}'),
        ("text/n3", TURTLE),
    ],
)
def test_what_the_server_says_comes_before_the_name(content_type: str, data: bytes) -> None:
    assert read_triples(data, "http://ex/a.nt", content_type=content_type) == ONE


def test_a_vague_type_leaves_it_to_the_name() -> None:
    assert read_triples(TURTLE, "http://ex/a.ttl", content_type="text/plain") == ONE


def test_relative_iris_begin_at_the_base_and_blank_nodes_in_the_document() -> None:
    (triple,) = read_triples(b"[] <p> <#x> .", "a.ttl", base="http://ex/doc", document="g")
    assert triple == Triple(Blank("b0", "g"), Iri("http://ex/p"), Iri("http://ex/doc#x"))


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.ttl", b"@prefix : <http://ex/> .\n:a :p oops .", "a.ttl: line 2, column 7: not Turtle: "),
        ("a.ttl", XML, "hint: it looks like RDF/XML; name it .rdf"),
        ("a.nt", TURTLE, "hint: it looks like Turtle; name it .ttl"),
        ("a.ttl", b"<html></html>", "hint: it is a web page, and no RDF"),
        ("a.ttl", b'{"@id": "http://ex/a"}', "hint: it looks like JSON-LD; name it .jsonld"),
        ("a.txt", TURTLE, "a.txt does not say its syntax\nhint: RDF files end with .ttl"),
        ("a.trig", b"<http://g> { <http://a> <http://p> 1 }", "its default graph is empty, and it has 1 named graphs"),
        ("a.nt", b"<http://ex/a> <http://ex/p> <<( <a:a> <a:a> <a:a> )>> .", "a triple inside a triple"),
    ],
)
def test_what_is_wrong_is_said_with_its_place_and_what_it_may_be(name: str, data: bytes, said: str) -> None:
    with pytest.raises(StreamError) as found:
        read_triples(data, name)
    assert said in str(found.value)
