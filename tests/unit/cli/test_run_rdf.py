"""`run`, `eval` and `explain` with RDF: languages side by side, static graphs, forms of output, and mistakes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest

from anabranch.engine.plans import ALL_RULES

from .conftest import ROOT, Invoke

Write = Callable[[str, str], Path]

TOLLS = ROOT / "examples" / "tolls"
STREAM = ("--stream", f"tolls={TOLLS / 'passages.nt.tsv'}")
CITY = TOLLS / "city.ttl"
C = "http://linkedurbandata.org/city#"
PREFIXES = f"PREFIX c: <{C}>\nPREFIX t: <http://linkedurbandata.org/traffic#>\n"
COUNTS = [
    ("10:05", "North", 3),
    ("10:10", "North", 3),
    ("10:10", "South", 1),
    ("10:15", "North", 1),
    ("10:15", "South", 2),
]
PASSAGES = (
    PREFIXES
    + """REGISTER STREAM passages AS CONSTRUCT { ?car c:at ?gate }
FROM STREAM <http://streams.org/tolls> [RANGE 10m STEP 5m] WHERE { ?gate t:registers ?car }"""
)


def districts(dataset: str = "", where: str = "?gate c:placedIn ?street . ?district c:contains ?street .") -> str:
    return f"""{PREFIXES}REGISTER QUERY districts AS SELECT ?district (COUNT(DISTINCT ?car) AS ?cars)
FROM STREAM <http://streams.org/tolls> [RANGE 10m STEP 5m] {dataset}
WHERE {{ ?gate t:registers ?car . {where} }} GROUP BY ?district"""


def rows(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def counts(out: str, query: str = "districts") -> list[tuple[str, str, int]]:
    """Time of day, district and cars, in this order."""
    found = [row for row in rows(out) if row["query"] == query]
    said = [(row["at"][11:16], str(row["row"]["district"]).removeprefix(C), row["row"]["cars"]) for row in found]
    return sorted(said)


# --- languages side by side -------------------------------------------------------------------------------------------


def test_csparql_and_seraph_answer_the_same_question_over_one_rdf_stream(invoke: Invoke) -> None:
    files = (TOLLS / "districts.csparql", TOLLS / "districts.seraph")
    ran = invoke("run", *files, *STREAM, "--graph", CITY, "--graph", f"city={CITY}", "-o", "json")
    assert ran.code == 0, ran.err
    assert counts(ran.out, "districts") == counts(ran.out, "by_district") == COUNTS
    instants = [row["at"] for row in rows(ran.out)]
    assert instants == sorted(instants)


def test_every_file_of_the_example_runs(invoke: Invoke) -> None:
    for name in ("districts.csparql", "districts.rspql", "gates.lupos", "districts.seraph"):
        ran = invoke("run", TOLLS / name, *STREAM, "--graph", CITY, "--graph", f"city={CITY}", "-o", "json")
        assert (ran.code, bool(ran.out)) == (0, True), f"{name}: {ran.err}"


def test_a_query_reads_what_another_makes_whatever_their_order_and_files(invoke: Invoke, write: Write) -> None:
    reader = write(
        "reader.csparql",
        PREFIXES + "REGISTER QUERY reader AS SELECT ?car FROM STREAM <passages> [RANGE 5m STEP 5m] "
        "WHERE { ?car c:at c:gate3 }",
    )
    maker = write("maker.csparql", PASSAGES)
    for files in ((maker, reader), (reader, maker)):
        ran = invoke("run", *files, *STREAM, "-o", "json", "--query", "reader", "--query", "passages")
        told = [(row["at"][11:16], row["row"]["car"][-2:]) for row in rows(ran.out) if row["query"] == "reader"]
        assert sorted(told) == [("10:10", "DD"), ("10:15", "DD"), ("10:15", "EE")], ran.err


def test_a_table_shows_names_with_the_prefixes_of_the_query(invoke: Invoke) -> None:
    out = invoke("run", TOLLS / "districts.csparql", *STREAM, "--graph", CITY).out
    assert "districts  snapshot  10:05  window (09:55, 10:05]\n  district   cars" in out
    assert "  c:North       3" in out


def test_the_names_of_seraph_come_from_the_vocabulary_where_one_is_given(invoke: Invoke, write: Write) -> None:
    query = write(
        "n.seraph",
        "REGISTER QUERY n STARTING AT 2009-12-23T10:05 { MATCH (a)-[r]->(b) WITHIN PT10M "
        "EMIT DISTINCT type(r) AS name SNAPSHOT EVERY PT5M }",
    )

    def names(*options: str) -> set[str]:
        return {row["row"]["name"] for row in rows(invoke("run", query, *STREAM, "-o", "json", *options).out)}

    assert names() == {"registers"}
    assert names("--vocabulary", "http://linkedurbandata.org/") == {"traffic#registers"}
    assert names("--vocabulary", "http://elsewhere.org/") == {"http://linkedurbandata.org/traffic#registers"}


# --- streams ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tolls", "http://streams.org/tolls", "<http://streams.org/tolls>", "anything", None])
def test_a_stream_goes_by_its_iri_by_its_last_part_or_by_being_the_only_one(invoke: Invoke, name: str | None) -> None:
    path = TOLLS / "passages.nt.tsv"
    given = str(path) if name is None else f"{name}={path}"
    ran = invoke("run", TOLLS / "districts.csparql", "-s", given, "-g", CITY, "-o", "json")
    assert counts(ran.out) == COUNTS, ran.err


def test_malformed_lines_are_set_aside_with_their_place(invoke: Invoke, write: Write) -> None:
    lines = (TOLLS / "passages.nt.tsv").read_text().splitlines(keepends=True)
    path = write("tolls.nt.tsv", "".join([*lines[:2], "10:99\t<a> <b> <c> .\n", *lines[2:]]))
    ran = invoke("run", TOLLS / "districts.csparql", "-s", path, "-g", CITY, "-o", "json")
    assert counts(ran.out) == COUNTS
    [letter] = rows(Path("tolls.dead.ndjson").read_text())
    assert letter["line"] == 3
    assert "set aside in tolls.dead.ndjson" in ran.err


# --- static graphs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dataset", "graph"),
    [
        ("", "{city}"),
        ("", "default={city}"),
        ("FROM <http://city.org/map>", "http://city.org/map={city}"),
        ("FROM <http://city.org/map>", "<http://city.org/map>={city}"),
        ("FROM <http://city.org/map>", "map={city}"),
        ("FROM <http://city.org/map>", "knowledge={city}"),
        ("FROM <http://city.org/map>", "{city}"),
        ("FROM <http://city.org/map?a=b>", "<http://city.org/map?a=b>={city}"),
    ],
)
def test_static_knowledge_is_given_by_name_by_iri_or_without_a_name(
    invoke: Invoke, write: Write, dataset: str, graph: str
) -> None:
    query = write("q.csparql", districts(dataset))
    ran = invoke("run", query, *STREAM, "--graph", graph.format(city=CITY), "-o", "json")
    assert counts(ran.out) == COUNTS, ran.err


def test_a_query_without_any_stream_is_evaluated_once(invoke: Invoke, write: Write) -> None:
    query = write(
        "q.csparql",
        f"{PREFIXES}REGISTER QUERY s AS SELECT DISTINCT ?street ?total-sensor WHERE {{ ?x c:placedIn ?street }} "
        "AGGREGATE { (?total-sensor, COUNT, {?street}) }",
    )
    ran = invoke("run", query, "-g", CITY, "-o", "json")
    assert ran.code == 0, ran.err
    assert rows(ran.out)
    assert "1 instant (1 computed)" in ran.err


def test_a_graph_of_several_files_and_one_by_name_beside_it(invoke: Invoke, write: Write) -> None:
    lines = CITY.read_text().splitlines(keepends=True)
    head = lines[0]
    write("gates.ttl", head + "".join(line for line in lines if "placedIn" in line))
    write("streets.ttl", head + "".join(line for line in lines if "contains" in line))
    query = write(
        "q.csparql", districts(where="?gate c:placedIn ?street GRAPH <urn:map> { ?district c:contains ?street }")
    )
    ran = invoke("run", query, *STREAM, "-g", "gates.ttl", "-g", "urn:map=streets.ttl", "-o", "json")
    assert counts(ran.out) == COUNTS, ran.err
    together = write("r.csparql", districts())
    ran = invoke("run", together, *STREAM, "-g", "gates.ttl", "-g", "streets.ttl", "-o", "json")
    assert counts(ran.out) == COUNTS, ran.err


def test_from_a_file_begins_at_the_folder_of_the_query(invoke: Invoke, write: Write) -> None:
    write("queries/city.ttl", CITY.read_text())
    query = write("queries/q.csparql", districts("FROM <city.ttl>"))
    ran = invoke("run", query, *STREAM, "-o", "json")
    assert counts(ran.out) == COUNTS, ran.err


def test_sparql_reads_a_property_graph_and_seraph_reads_rdf(invoke: Invoke, write: Write) -> None:
    city = {
        "nodes": [
            {"id": C + "gate1", "properties": {"name": "first"}},
            {"id": C + "gate2", "properties": {"name": "second"}},
        ]
    }
    write("city.json", json.dumps(city))
    query = write(
        "q.csparql",
        districts("FROM <urn:gates>", "?gate v:name ?district").replace("PREFIX c:", "PREFIX v: <http://v/> PREFIX c:"),
    )
    ran = invoke("run", query, *STREAM, "-g", "urn:gates=city.json", "--vocabulary", "http://v/", "-o", "json")
    assert counts(ran.out)[:2] == [("10:05", "first", 2), ("10:05", "second", 1)], ran.err


# --- forms of output --------------------------------------------------------------------------------------------------


def test_rows_come_out_in_every_form_of_sparql(invoke: Invoke) -> None:
    command = ("run", TOLLS / "districts.csparql", *STREAM, "--graph", CITY, "--quiet", "-o")
    documents = [json.loads(line) for line in invoke(*command, "sparql-json").out.splitlines()]
    assert [len(one["results"]["bindings"]) for one in documents] == [1, 2, 2]
    xml = invoke(*command, "sparql-xml").out
    assert (xml.count("<?xml "), xml.count("<result>")) == (3, 5)
    assert invoke(*command, "tsv").out.splitlines()[:2] == ["?district\t?cars", f"<{C}North>\t3"]
    assert invoke(*command, "sparql-csv").out.splitlines()[:2] == ["district,cars", f"{C}North,3"]
    assert invoke(*command, "csv").out.splitlines()[1].endswith(f",{C}North,3")
    assert invoke(*command, "none").out == ""


@pytest.mark.parametrize(
    ("form", "parsed"),
    [("ntriples", ox.RdfFormat.N_TRIPLES), ("nquads", ox.RdfFormat.N_QUADS), ("turtle", ox.RdfFormat.TURTLE)],
)
def test_graphs_come_out_in_every_form_of_rdf(invoke: Invoke, write: Write, form: str, parsed: ox.RdfFormat) -> None:
    query = write("q.csparql", PASSAGES)
    out = invoke("run", query, *STREAM, "--quiet", "-o", form).out
    triples = [quad for quad in ox.parse(out, parsed) if quad.predicate.value == f"{C}at"]
    assert len(triples) == 3 + 4 + 3
    assert ("c:at c:gate1" in out) == (form == "turtle")


def test_each_answer_is_a_document_of_rdf_xml_and_of_json_ld(invoke: Invoke, write: Write) -> None:
    query = write("q.csparql", PASSAGES)
    documents = invoke("run", query, *STREAM, "--quiet", "-o", "rdfxml").out.split("<?xml ")[1:]
    assert [len(list(ox.parse("<?xml " + one, ox.RdfFormat.RDF_XML))) for one in documents] == [3, 4, 3]
    lines = invoke("run", query, *STREAM, "--quiet", "-o", "jsonld").out.splitlines()
    assert [len(list(ox.parse(one, ox.RdfFormat.JSON_LD))) for one in lines] == [3, 4, 3]


def test_what_one_run_writes_as_quads_the_next_reads_as_a_stream(invoke: Invoke, write: Write) -> None:
    write("made.nq", invoke("run", write("q.csparql", PASSAGES), *STREAM, "--quiet", "-o", "nquads").out)
    reader = write(
        "r.csparql",
        PREFIXES
        + "REGISTER QUERY r AS SELECT (COUNT(*) AS ?n) FROM STREAM <made> [RANGE 1m STEP 5m] WHERE { ?c c:at ?g }",
    )
    out = invoke("run", reader, "-s", "made.nq", "-o", "json").out
    assert [(row["at"][11:16], row["row"]["n"]) for row in rows(out)] == [("10:05", 3), ("10:10", 4), ("10:15", 3)]


def test_rows_do_not_fit_into_a_graph_s_form(invoke: Invoke) -> None:
    ran = invoke("run", TOLLS / "districts.csparql", *STREAM, "--graph", CITY, "-o", "turtle")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        "error: turtle holds triples, and the query's columns are district, cars\n"
        "hint: CONSTRUCT and DESCRIBE give triples; rows fit into sparql-json, sparql-xml, tsv, sparql-csv\n"
    )


# --- rules and evaluators ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        *(
            ("--rules", "none"),
            ("--rules", "push_filter,evaluate_static_parts"),
            *(("--rules", one) for one in ALL_RULES),
        ),
        *(("--evaluator", "plugin"), ("--evaluator", "own"), ("--refresh", "PT1S"), ("--engine", "local")),
    ],
    ids=" ".join,
)
def test_the_answers_are_the_same_by_whatever_rules_and_evaluator(invoke: Invoke, options: tuple[str, ...]) -> None:
    ran = invoke("run", TOLLS / "districts.csparql", *STREAM, "--graph", CITY, "-o", "json", *options)
    assert counts(ran.out) == COUNTS, ran.err


def test_the_plug_in_refuses_what_is_more_than_sparql_and_seraph_beside_it_is_ours(
    invoke: Invoke, write: Write
) -> None:
    files = (TOLLS / "districts.csparql", TOLLS / "districts.seraph")
    graphs = ("--graph", CITY, "--graph", f"city={CITY}")
    ran = invoke("run", *files, *STREAM, *graphs, "-o", "json", "--evaluator", "plugin")
    assert counts(ran.out, "districts") == counts(ran.out, "by_district") == COUNTS
    query = write("q.csparql", districts().partition("GROUP BY")[0].replace("(COUNT(DISTINCT ?car) AS ?cars)", "?cars"))
    query.write_text(query.read_text() + "AGGREGATE { (?cars, COUNT, {?district}) }")
    ran = invoke("run", query, *STREAM, *graphs, "--evaluator", "plugin")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.startswith("error[SPQ-302]: the SPARQL plug-in cannot answer the query `districts`")
    assert invoke("run", query, *STREAM, *graphs, "-o", "json").out


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--rules", "push_filtr"], 2, "there is no rule `push_filtr`; did you mean push_filter?"),
        (["--evaluator", "plug-in"], 2, "'plug-in' is not one of 'own', 'plugin'"),
        (["--refresh", "soon"], 2, "cannot read `soon` as a duration; write it like PT5S"),
        (["--refresh", "P1M"], 2, "P1M has no fixed length; write it like PT30S"),
        (["--refresh", "PT0S"], 2, "`PT0S` is no time to wait; write it like PT1M"),
        (["--refresh=-PT5S"], 2, "`-PT5S` is no time to wait; write it like PT1M"),
        (["--lateness=PT-5S"], 2, "PT-5S is less than no time; write it like PT5S"),
        (["--vocabulary", "city"], 2, "`city` is no IRI; write it like http://example.org/city#"),
        (["--graph", "http://city.org/="], 2, "write it as name=path, for example city=city.json"),
        (["--graph", "nothing.ttl"], 4, "error: there is no file nothing.ttl"),
        (["--graph", "urn:map=nothing.ttl"], 4, "error: there is no file nothing.ttl"),
        (["--graph", "bad.ttl"], 4, "error: bad.ttl: line 1, column 1: not Turtle"),
        (
            ["--graph", "city=bad.ttl", "--graph", "city=a.json"],
            4,
            "the graph city has several files, and a.json is not RDF",
        ),
        (["--output", "turtl"], 2, "'turtl' is not one of 'table', 'json', 'csv', 'sparql-json'"),
    ],
)
def test_mistakes_of_usage_say_what_to_write(
    invoke: Invoke, write: Write, options: list[str], code: int, message: str
) -> None:
    write("bad.ttl", "oops")
    write("a.json", "{}")
    ran = invoke("run", TOLLS / "districts.csparql", *STREAM, *options, columns=300)
    assert (ran.code, ran.out) == (code, "")
    assert message in ran.err


def test_a_graph_that_nobody_gave_is_refused_with_its_place(invoke: Invoke, write: Write) -> None:
    query = write("q.csparql", districts("FROM <urn:map>"))
    ran = invoke("run", query, *STREAM)
    assert ran.code == 3
    assert "urn:map" in ran.err
    assert "hint: " in ran.err
    write("citty.ttl", CITY.read_text())
    ran = invoke("run", write("r.csparql", districts("FROM <city.ttl>")), *STREAM)
    assert ran.code == 4
    assert ran.err.startswith("error: there is no file ")
    assert "did you mean" in ran.err


# --- eval and explain -------------------------------------------------------------------------------------------------


def test_eval_answers_plain_sparql_over_files(invoke: Invoke) -> None:
    where = f"PREFIX c: <{C}> SELECT ?d (COUNT(?s) AS ?n) {{ ?d c:contains ?s }} GROUP BY ?d ORDER BY ?d"
    assert rows(invoke("eval", where, "--graph", CITY, "-o", "json").out) == [
        {"d": f"{C}North", "n": 2},
        {"d": f"{C}South", "n": 1},
    ]
    assert invoke("eval", where, "--graph", CITY, "-o", "tsv").out == f"?d\t?n\n<{C}North>\t2\n<{C}South>\t1\n"
    assert "c:North" in invoke("eval", where, "--graph", CITY).out
    assert (
        json.loads(invoke("eval", f"ASK {{ <{C}gate1> ?p ?o }}", "-g", CITY, "-o", "sparql-json").out)["boolean"]
        is True
    )


def test_eval_gives_graphs_and_reads_graphs_by_name(invoke: Invoke, write: Write) -> None:
    construct = f"CONSTRUCT {{ ?s <{C}in> ?d }} WHERE {{ ?d <{C}contains> ?s }}"
    out = invoke("eval", construct, "--graph", CITY, "-o", "turtle").out
    assert len(list(ox.parse(out, ox.RdfFormat.TURTLE))) == 3
    named = f"SELECT ?g (COUNT(*) AS ?n) {{ GRAPH ?g {{ ?s <{C}contains> ?o }} }} GROUP BY ?g"
    assert rows(invoke("eval", named, "-g", f"urn:map={CITY}", "-o", "json").out) == [{"g": "urn:map", "n": 3}]
    write("city.ttl", CITY.read_text())
    query = write("q.rq", f"SELECT (COUNT(*) AS ?n) FROM <city.ttl> {{ ?s <{C}contains> ?o }}")
    assert rows(invoke("eval", "--file", query, "-o", "json").out) == [{"n": 3}]


def test_eval_reads_either_kind_of_graph_in_either_language(invoke: Invoke, write: Write) -> None:
    write("city.json", '{"nodes": [{"id": 1, "labels": ["Place"], "properties": {"name": "Park"}}]}')
    out = invoke("eval", "SELECT ?n { ?s ?p ?n FILTER isLiteral(?n) }", "-g", "city.json", "-o", "json").out
    assert rows(out) == [{"n": "Park"}]
    out = invoke(
        "eval", "MATCH (d)-[:contains]->() RETURN d.name AS name, count(*) AS n ORDER BY n", "-g", CITY, "-o", "json"
    ).out
    assert rows(out) == [{"name": "South", "n": 1}, {"name": "North", "n": 2}]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["SELECT ?s, ?o { ?s ?p ?o }"], 3, "error[SPQ-001]: unexpected `,`"),
        (["SELECT ?s FROM <city.ttl> { ?s ?p ?o }"], 4, "there is no file city.ttl"),
        (
            ["SELECT ?s FROM <urn:map> { ?s ?p ?o }", "-g", "urn:mapp={city}"],
            1,
            "no graph `urn:map`; did you mean `urn:mapp`?",
        ),
        (["SELECT ?s { ?s ?p ?o }", "-g", "{city}", "-o", "turtle"], 1, "turtle holds triples"),
        (["SELECT ?s { ?s ?p ?o }", "-g", "{city}", "-g", "{city}"], 2, "one graph has no name"),
    ],
)
def test_mistakes_of_eval_say_what_is_wrong(invoke: Invoke, arguments: list[str], code: int, message: str) -> None:
    ran = invoke("eval", *(one.replace("{city}", str(CITY)) for one in arguments), columns=200)
    assert (ran.code, ran.out) == (code, "")
    assert message in ran.err


def test_explain_shows_windows_instants_and_what_is_evaluated_once(invoke: Invoke) -> None:
    shown = invoke("explain", TOLLS / "districts.csparql", "--graph", CITY).out
    assert "stream http://streams.org/tolls within PT10M; trailing: (w - PT10M, w]" in shown
    assert "multiples of PT5M since 1970-01-01T00:00:00Z" in shown
    assert "evaluate_static_parts" in shown
    without = invoke("explain", TOLLS / "districts.csparql").out
    assert "evaluate_static_parts" not in without


def test_explain_does_not_fetch_what_a_query_names(invoke: Invoke) -> None:
    ran = invoke("explain", ROOT / "examples" / "brokers" / "brokers.csparql")
    assert ran.code == 0
    assert "graph http://brokerscentral.org/brokers.rdf, which does not move" in ran.out
