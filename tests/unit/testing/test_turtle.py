"""RDF in case files: Turtle in, terms out as a person would write them, and cases that hold or fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch.model.instants import parse_instant
from anabranch.model.terms import (
    LANG_STRING,
    RDF_TYPE,
    RDFS,
    XSD,
    XSD_BOOLEAN,
    XSD_DECIMAL,
    XSD_DOUBLE,
    XSD_INTEGER,
    Blank,
    Iri,
    Literal,
    Term,
    Triple,
)
from anabranch.model.triples import TripleGraph
from anabranch.testing.cases import CaseFailure, load, read_case, rewrite, run_case
from anabranch.testing.notation import NotationError
from anabranch.testing.turtle import read_triples, term_short

EX = "http://ex/"
PREFIXES = {"ex": EX, "": "http://empty/"}
A, P = Iri(f"{EX}a"), Iri(f"{EX}p")


# --- Turtle -----------------------------------------------------------------------------------------------------------


def test_turtle_has_the_prefixes_of_the_case_and_those_that_everybody_knows() -> None:
    found = read_triples('ex:a a ex:B ; ex:p 5, "x"@en, "1"^^xsd:byte ; :q rdfs:label .', PREFIXES, "d")
    assert found == (
        Triple(A, RDF_TYPE, Iri(f"{EX}B")),
        Triple(A, P, Literal("5", XSD_INTEGER)),
        Triple(A, P, Literal("x", LANG_STRING, "en")),
        Triple(A, P, Literal("1", f"{XSD}byte")),
        Triple(A, Iri("http://empty/q"), Iri(f"{RDFS}label")),
    )


def test_a_prefix_of_the_case_may_be_one_that_everybody_knows() -> None:
    [triple] = read_triples("xsd:a xsd:b xsd:c .", {"xsd": EX}, "d")
    assert triple == Triple(A, Iri(f"{EX}b"), Iri(f"{EX}c"))


def test_a_triple_that_is_written_twice_is_there_once_in_its_first_place() -> None:
    found = read_triples("ex:a ex:p 1 . ex:a ex:p 2 . ex:a ex:p 1 .", PREFIXES, "d")
    assert [triple.object for triple in found] == [Literal("1", XSD_INTEGER), Literal("2", XSD_INTEGER)]


def test_blank_nodes_belong_to_their_document() -> None:
    one, two = (read_triples("_:b ex:p ex:a .", PREFIXES, document) for document in ("one", "two"))
    assert one[0].subject != two[0].subject
    assert one == read_triples("_:b ex:p ex:a .", PREFIXES, "one")


@pytest.mark.parametrize("text", ["ex:a ex:p", "ex:a ex:p zz:q .", "ex:a ex:p 'x .", "nonsense"])
def test_what_is_no_turtle_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(NotationError) as caught:
        read_triples(text, PREFIXES, "d")
    assert str(caught.value).startswith("no Turtle: ")
    assert str(caught.value).endswith(f"in: {text}")


TERMS: dict[str, Term] = {
    "ex:a": A,
    ":b": Iri("http://empty/b"),
    "ex:": Iri(EX),
    "<http://ex/a/b>": Iri(f"{EX}a/b"),
    "<http://ex/a.>": Iri(f"{EX}a."),
    "<http://other/a>": Iri("http://other/a"),
    "rdf:type": RDF_TYPE,
    "5": Literal("5", XSD_INTEGER),
    "-5": Literal("-5", XSD_INTEGER),
    "1.50": Literal("1.50", XSD_DECIMAL),
    ".5": Literal(".5", XSD_DECIMAL),
    "1e6": Literal("1e6", XSD_DOUBLE),
    "1.e6": Literal("1.e6", XSD_DOUBLE),
    "true": Literal("true", XSD_BOOLEAN),
    '"1"^^xsd:boolean': Literal("1", XSD_BOOLEAN),
    '"five"^^xsd:integer': Literal("five", XSD_INTEGER),
    '"1."^^xsd:decimal': Literal("1.", XSD_DECIMAL),
    '"٣"^^xsd:integer': Literal("٣", XSD_INTEGER),
    '"x"': Literal("x"),
    '"say \\"hello\\"\\n\\\\ here"': Literal('say "hello"\n\\ here'),
    '"x"@en-GB': Literal("x", LANG_STRING, "en-gb"),
    '"x"^^ex:type': Literal("x", f"{EX}type"),
}


@pytest.mark.parametrize(("text", "term"), TERMS.items())
def test_a_term_is_written_shortly_and_read_back_as_itself(text: str, term: Term) -> None:
    written = term_short(term, PREFIXES)
    assert written.lower() == text.lower()
    [triple] = read_triples(f"ex:a ex:p {written} .", PREFIXES, "d")
    assert triple.object == term


def test_a_blank_node_is_written_without_its_document() -> None:
    assert term_short(Blank("b", "stream0"), PREFIXES) == "_:b"


# --- cases ------------------------------------------------------------------------------------------------------------

CASE = """# Cars and the districts of their gates.
--- options
date: 2024-05-01
prefix c: http://city.org/
--- query
PREFIX c: <http://city.org/>
REGISTER STREAM seen AS CONSTRUCT { ?d c:saw ?car } FROM STREAM <tolls> [RANGE 10m STEP 5m]
WHERE { ?gate c:registers ?car ; c:in ?d }
REGISTER QUERY total AS SELECT ?d (COUNT(?car) AS ?n) FROM STREAM <seen> [RANGE 5m STEP 5m]
WHERE { ?d c:saw ?car } GROUP BY ?d
--- graph default
c:gate1 c:in c:north .
c:gate2 c:in c:south .
--- events tolls
10:01 c:gate1 c:registers "AA" .
10:03 c:gate1 c:registers "BB" .
      c:gate2 c:registers "CC" .
{"at": "2024-05-01T10:06:00Z", "triples": [["<http://city.org/gate2>", "<http://city.org/registers>", "\\"DD\\""]]}
--- answers seen
columns: subject | predicate | object
10:05 snapshot 09:55-10:05  c:north | c:saw | "AA"
10:05 snapshot 09:55-10:05  c:north | c:saw | "BB"
10:05 snapshot 09:55-10:05  c:south | c:saw | "CC"
10:10 snapshot 10:00-10:10  c:north | c:saw | "AA"
10:10 snapshot 10:00-10:10  c:north | c:saw | "BB"
10:10 snapshot 10:00-10:10  c:south | c:saw | "CC"
10:10 snapshot 10:00-10:10  c:south | c:saw | "DD"
--- answers total
columns: d | n
10:05 snapshot 10:00-10:05  c:north | 2
10:05 snapshot 10:00-10:05  c:south | 1
10:10 snapshot 10:05-10:10  c:north | 2
10:10 snapshot 10:05-10:10  c:south | 2
"""


def test_a_case_of_turtle_is_read_as_its_triples() -> None:
    case = read_case(CASE)
    assert case.prefixes == {"c": "http://city.org/"}
    assert isinstance(case.graphs["default"], TripleGraph)
    assert len(case.graphs["default"]) == 2
    assert [len(event.triples) for event in case.streams["tolls"]] == [1, 2, 1]
    assert case.streams["tolls"][1].event_time == parse_instant("2024-05-01T10:03:00Z")


def test_a_case_of_turtle_holds() -> None:
    run_case(read_case(CASE))


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("10:10 snapshot 10:05-10:10  c:south | 2", "10:10 snapshot 10:05-10:10  c:south | 3"),
        ("  c:north | 2\n10:10", '  "north" | 2\n10:10'),
        ('10:01 c:gate1 c:registers "AA"', '10:01 c:gate2 c:registers "AA"'),
        ("c:gate2 c:in c:south", "c:gate2 c:in c:north"),
        ("columns: d | n", "columns: d | m"),
        ('c:south | c:saw | "DD"\n', 'c:south | c:saw | "DD"^^xsd:byte\n'),
    ],
)
def test_a_case_of_turtle_that_does_not_hold_fails(right: str, wrong: str) -> None:
    assert right in CASE
    with pytest.raises(CaseFailure):
        run_case(read_case(CASE.replace(right, wrong)))


def test_bad_turtle_names_its_section() -> None:
    with pytest.raises(NotationError, match="section `events`: no Turtle: "):
        read_case(CASE.replace('10:01 c:gate1 c:registers "AA" .', "10:01 c:gate1 c:registers ."))
    with pytest.raises(NotationError, match=r"section `events`: triples\[0\]: "):
        read_case(CASE.replace("<http://city.org/registers>", "registers"))
    with pytest.raises(NotationError, match="section `graph`: no Turtle: "):
        read_case(CASE.replace("c:gate2 c:in c:south .", "c:gate2 d:in c:south ."))


def test_rewriting_writes_terms_with_the_prefixes_of_the_case(tmp_path: Path) -> None:
    path = tmp_path / "one.case"
    path.write_text(CASE.partition("--- answers")[0])
    rewrite(path)
    assert '10:05 snapshot 09:55-10:05  c:north | c:saw | "AA"\n' in path.read_text()
    assert path.read_text().endswith("--- answers total\n" + CASE.rpartition("--- answers total\n")[2])
    run_case(load(path))
