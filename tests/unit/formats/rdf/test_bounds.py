"""Small documents that ask for much are refused, and those that people have are not."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from anabranch.errors import StreamError
from anabranch.formats.deadletter import MalformedRecord
from anabranch.formats.ndjson import read_line
from anabranch.formats.rdf.bounds import DEEPEST_XML, LONGEST_CHAIN
from anabranch.formats.rdf.graphs import read_triples
from anabranch.model.terms import Iri, Literal, Triple

XML = "application/rdf+xml"
JSON_LD = "application/ld+json"


def xml(doctype: str, value: str, head: str = "") -> bytes:
    return (
        f'<?xml version="1.0"?>{head}<!DOCTYPE rdf:RDF [{doctype}]>'
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://ex/">'
        f'<rdf:Description rdf:about="http://ex/a"><e:p>{value}</e:p></rdf:Description></rdf:RDF>'
    ).encode()


def bomb(depth: int) -> str:
    names = "abcdefghijklmn"[: depth + 1]
    return '<!ENTITY a "aaaaaaaaaa">' + "".join(
        f'<!ENTITY {outer} "{f"&{inner};" * 10}">' for inner, outer in pairwise(names)
    )


@pytest.mark.parametrize(
    "data",
    [
        xml(bomb(2), "&c;"),
        xml(bomb(8), "&i;"),
        xml(bomb(2), "&c;", head=f"<!-- {'x' * 70_000} -->"),
        xml(bomb(2), "&c;").replace(b"DOCTYPE", b"doctype"),
        xml('<!ENTITY % p "x">', "y"),
        xml('<!ENTITY f SYSTEM "file:///etc/passwd">', "&f;"),
        xml('<!ENTITY f PUBLIC "-//a//b" "http://ex/b">', "&f;"),
        xml('<!ENTITY a "x"><!ENTITY b"c "&a;&a;">', "&b;"),
        xml('<!ENTITY a "x"><!-- <!ENTITY b "&a;&a;"> -->', "&b;"),
    ],
)
def test_an_entity_that_is_no_plain_text_is_refused_before_it_is_parsed(data: bytes) -> None:
    with pytest.raises(StreamError, match="an entity is a name and a plain text"):
        read_triples(data, "g", content_type=XML)


@pytest.mark.parametrize("coding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-7"])
def test_another_coding_hides_no_entities(coding: str) -> None:
    data = xml(bomb(8), "&i;").decode().replace("?>", f' encoding="{coding}"?>', 1).encode(coding)
    with pytest.raises(StreamError):
        read_triples(data, "g", content_type=XML)


def test_a_long_text_that_is_named_often_is_refused() -> None:
    data = xml(f'<!ENTITY a "{"a" * 200_000}">', "&a;" * 100_000)
    with pytest.raises(StreamError, match="100,000 references to entities of up to 200,000 characters"):
        read_triples(data, "g", content_type=XML)


def test_a_predefined_name_with_a_long_text_is_counted_too() -> None:
    data = xml(f'<!ENTITY amp "{"a" * 200_000}">', "&amp;" * 100_000)
    with pytest.raises(StreamError, match="references to entities"):
        read_triples(data, "g", content_type=XML)


def test_the_entities_of_an_ontology_are_namespaces() -> None:
    doctype = '<!ENTITY owl "http://www.w3.org/2002/07/owl#" >\n<!ENTITY amper "a &amp; b &#38; c" >'
    data = xml(doctype, "&amper; &lt;").replace(b'xmlns:e="http://ex/"', b'xmlns:e="&owl;"')
    assert read_triples(data, "g", content_type=XML) == [
        Triple(Iri("http://ex/a"), Iri("http://www.w3.org/2002/07/owl#p"), Literal("a & b & c <"))
    ]


def test_an_ontology_with_many_references_is_read() -> None:
    many = "".join(f'<e:p rdf:resource="&owl;c{n}"/>' for n in range(5_000))
    data = xml('<!ENTITY owl "http://www.w3.org/2002/07/owl#">', "x").replace(b"<e:p>x</e:p>", many.encode())
    assert len(read_triples(data, "g", content_type=XML)) == 5_000


@pytest.mark.parametrize("between", ["", "<!-- > -->", "<![CDATA[</e:p>]]>", "<?x </e:p> ?>"])
def test_elements_do_not_stand_inside_each_other_without_end(between: str) -> None:
    depth = DEEPEST_XML
    inner = "<rdf:Description><e:p>" * depth + between + "</e:p></rdf:Description>" * depth
    with pytest.raises(StreamError, match="stand inside each other"):
        read_triples(xml("", inner), "g", content_type=XML)


def test_many_elements_beside_each_other_are_no_depth() -> None:
    many = "<e:p>a</e:p><e:q e:r='>'/>" * DEEPEST_XML
    assert (
        len(read_triples(xml("", "x").replace(b"<e:p>x</e:p>", many.encode()), "g", content_type=XML))
        == 1 + 2 * DEEPEST_XML
    )


@pytest.mark.parametrize("line", ["a:b{} a:c a:d .", "<b:b> <b:c> '{}'^^a:d ."])
def test_a_long_prefix_is_not_repeated_without_end(line: str) -> None:
    lines = [f"@prefix a: <http://{'x' * 100_000}/> ."] + [line.format(n) for n in range(9_000)]
    with pytest.raises(StreamError, match="a prefix or a name is too long"):
        read_triples("\n".join(lines).encode(), "a.ttl")


def test_long_lists_of_short_values_are_read() -> None:
    data = f"<a:a> <a:b> ({'1 ' * 20_000}) ."
    assert len(read_triples(data.encode(), "a.ttl")) == 40_001


@pytest.mark.parametrize("vocabulary", [{"@vocab": "http://ex/"}, {"a": "b:x", "b": "c:x", "c": "http://ex/"}])
def test_a_context_with_long_names_is_not_used_without_end(vocabulary: dict[str, str]) -> None:
    names = {name: value + "x" * 50_000 for name, value in vocabulary.items()}
    data = {"@context": names, "@graph": [{"a": str(n)} for n in range(9_000)]}
    with pytest.raises(StreamError, match="its @context makes names of up to"):
        read_triples(json.dumps(data).encode(), "g", content_type=JSON_LD)


def context(length: int, padding: str = "") -> dict[str, object]:
    chain = {f"t{n}": {"@id": f"t{n + 1}:x{padding}"} for n in range(length)}
    return {"@context": {**chain, f"t{length}": "http://ex/"}, "@id": "http://ex/a", "t0": "x"}


@pytest.mark.parametrize("length", [LONGEST_CHAIN + 1, 20_000])
@pytest.mark.parametrize("named", ["@context", "\\u0040context"])
def test_the_terms_of_a_context_are_not_defined_by_each_other_without_end(length: int, named: str) -> None:
    data = json.dumps(context(length, "y" * 50)).replace("@context", named).encode()
    with pytest.raises(StreamError, match="its @context defines more than 100 terms by each other"):
        read_triples(data, "g", content_type=JSON_LD)


def test_the_chain_may_stand_in_any_order_and_in_a_list() -> None:
    data = context(500)
    terms = data["@context"]
    assert isinstance(terms, dict)
    data["@context"] = [{}, dict(reversed(terms.items()))]
    with pytest.raises(StreamError, match="terms by each other"):
        read_triples(json.dumps(data).encode(), "g", content_type=JSON_LD)


def test_an_event_with_such_a_context_is_malformed() -> None:
    found = read_line(json.dumps({"at": "2022-10-14T14:45:00Z", **context(20_000)}).encode(), 1)
    assert isinstance(found, MalformedRecord)
    assert "terms by each other" in found.reason


def test_a_large_context_is_read() -> None:
    terms = {f"name{n}": f"ex:name{n}" for n in range(3_000)}
    data = {"@context": {"ex": "http://ex/", **terms}, "@id": "http://ex/a", "name7": "x"}
    assert read_triples(json.dumps(data).encode(), "g", content_type=JSON_LD) == [
        Triple(Iri("http://ex/a"), Iri("http://ex/name7"), Literal("x"))
    ]
