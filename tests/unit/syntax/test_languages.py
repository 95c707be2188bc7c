"""Which language a text is in, by its file's name and by what it holds, and the one way from each to the algebra."""

from __future__ import annotations

import pytest

from anabranch.algebra.ingestion import Ingestion
from anabranch.algebra.operators import Registration
from anabranch.algebra.triples import Ask, Construct
from anabranch.algebra.walk import windows
from anabranch.errors import QueryError
from anabranch.syntax.languages import EXTENSIONS, SPOKEN, Language, language_of, plan, registrations, script
from anabranch.syntax.languages import statements as statements_of

SERAPH = "REGISTER QUERY q STARTING AT NOW { MATCH (n) WITHIN PT5M ON STREAM s EMIT n SNAPSHOT EVERY PT1M }"
CSPARQL = "REGISTER QUERY q AS SELECT ?s FROM STREAM <http://ex/s> [RANGE 5m STEP 1m] WHERE { ?s ?p ?o }"
LUPOS = "SELECT ?s STREAM INTERMEDIATERESULT DURATION 60000 WHERE { WINDOW TYPE SLIDINGDURATION 300000 { ?s ?p ?o } }"
RSPQL = (
    "REGISTER RSTREAM <http://ex/q> AS SELECT ?s FROM NAMED WINDOW <http://ex/w> ON <http://ex/s> "
    "[RANGE PT5M STEP PT1M] WHERE { WINDOW <http://ex/w> { ?s ?p ?o } }"
)
SPARQL = "SELECT ?s WHERE { ?s ?p ?o }"
CYPHER = "MATCH (n) RETURN n"
TEXTS: dict[Language, str] = {"seraph": SERAPH, "csparql": CSPARQL, "lupos": LUPOS, "rspql": RSPQL, "sparql": SPARQL}


@pytest.mark.parametrize(("language", "text"), [*TEXTS.items(), ("seraph", CYPHER)])
def test_a_text_without_a_name_says_its_language_itself(language: Language, text: str) -> None:
    assert language_of(text) == language
    assert language_of(text, "-") == language
    assert language_of(text, "queries/of.today/q") == language
    assert language_of(text, "q.txt") == language


@pytest.mark.parametrize(("extension", "language"), [pair for pair in EXTENSIONS.items() if pair[1] != "sparql"])
def test_an_extension_says_it_whatever_the_text_holds(extension: str, language: Language) -> None:
    assert {language_of(text, f"q{extension}") for text in ("", "nonsense {", *TEXTS.values())} == {language}
    assert language_of(SPARQL, f"A.B{extension.upper()}") == language


@pytest.mark.parametrize("extension", [".rq", ".sparql"])
def test_a_file_of_plain_sparql_may_turn_out_to_be_continuous_but_never_cypher(extension: str) -> None:
    found = {language: language_of(text, f"q{extension}") for language, text in TEXTS.items()}
    assert found == {**{language: language for language in TEXTS}, "seraph": "sparql"}
    assert language_of(CYPHER, f"q{extension}") == "sparql"


def test_every_language_has_a_name_that_people_say() -> None:
    assert set(SPOKEN) == set(TEXTS) == set(EXTENSIONS.values())


@pytest.mark.parametrize(
    ("language", "stream"), [("seraph", "s"), ("csparql", "http://ex/s"), ("rspql", "http://ex/s")]
)
def test_the_statement_of_any_language_is_a_registration_over_its_stream(language: Language, stream: str) -> None:
    [found] = registrations(TEXTS[language])
    assert found.language == language
    assert [window.stream.name for window in windows(found.plan)] == [stream]
    assert str(found.every) == "PT1M"


def test_a_lupos_query_has_no_name_and_reads_the_only_stream() -> None:
    [found] = registrations(LUPOS)
    assert (found.name, found.language) == ("query", "lupos")
    assert {window.stream.name for window in windows(found.plan)} == {None}


def test_load_stream_is_a_statement_of_its_own() -> None:
    load = "LOAD STREAM FROM 'a.ndjson' AS r AT datetime(r.at) INTO s\nCREATE (:A {x: r.x})\n"
    kinds = [type(one) for one in statements_of(load + SERAPH)]
    assert kinds == [Ingestion, Registration]
    assert [type(one) for one in script(load + SERAPH).ingestions] == [Ingestion]
    assert [one.name for one in registrations(load + SERAPH)] == ["q"]
    assert script(CSPARQL).ingestions == ()


def test_what_is_wrong_is_said_in_the_language_of_the_file() -> None:
    for name, code in (("q.seraph", "SER-"), ("q.csparql", "SPQ-"), ("q.rspql", "SPQ-")):
        with pytest.raises(QueryError) as caught:
            statements_of("REGISTER QUERY q AS {", name)
        assert caught.value.diagnostics[0].code.startswith(code)
        assert name in caught.value.render()


@pytest.mark.parametrize(
    ("text", "columns", "form"),
    [
        (CYPHER, ("n",), "bindings"),
        (SPARQL, ("s",), "bindings"),
        ("ASK { ?s ?p ?o }", ("ask",), "boolean"),
        ("CONSTRUCT { ?o ?p ?s } WHERE { ?s ?p ?o }", ("subject", "predicate", "object"), "graph"),
        ("DESCRIBE <http://ex/a>", ("subject", "predicate", "object"), "graph"),
    ],
)
def test_a_plain_query_says_its_columns_and_its_form(text: str, columns: tuple[str, ...], form: str) -> None:
    found = plan(text)
    assert (found.plan.columns, found.form) == (columns, form)


def test_a_plain_query_keeps_its_prefixes_and_its_kind_of_plan() -> None:
    assert plan(f"PREFIX ex: <http://ex/> {SPARQL}").prefixes == (("ex", "http://ex/"),)
    assert isinstance(plan("ASK { ?s ?p ?o }").plan, Ask)
    assert isinstance(plan("CONSTRUCT WHERE { ?s ?p ?o }").plan, Construct)


def test_the_extension_picks_the_parser_of_a_plain_query_too() -> None:
    with pytest.raises(QueryError) as caught:
        plan(SPARQL, "q.cypher")
    assert caught.value.diagnostics[0].code.startswith("SER-")
    with pytest.raises(QueryError) as caught:
        plan(CYPHER, "q.rq")
    assert caught.value.diagnostics[0].code.startswith("SPQ-")
