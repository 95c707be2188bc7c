"""Static graphs of a run: which file each comes from, what is loaded, and how a change is noticed."""

from __future__ import annotations

import gzip
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from anabranch.errors import StreamError
from anabranch.model.graph import PropertyGraph
from anabranch.model.terms import Iri, Triple
from anabranch.model.triples import TripleGraph
from anabranch.sources.static import GraphFile, graph_files
from anabranch.syntax.languages import Script, script

A, P = Iri("http://ex/a"), Iri("http://ex/p")
CITY = "http://city.org/districts.rdf"


def turtle(path: Path, *objects: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"<http://ex/a> <http://ex/p> <http://ex/{one}> .\n" for one in objects))
    return path


def triples(*objects: str) -> set[Triple]:
    return {Triple(A, P, Iri(f"http://ex/{one}")) for one in objects}


def query(clauses: str = "", where: str = "?s ?p ?o", file_name: str = "q.csparql") -> Script:
    text = f"REGISTER QUERY q AS SELECT ?s FROM STREAM <http://ex/s> [RANGE 5m STEP 1m] {clauses} WHERE {{ {where} }}"
    return script(text, file_name)


def named(files: list[GraphFile]) -> dict[str, tuple[str, ...]]:
    return {file.name: file.places for file in files}


# --- which graph comes from where -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "asks", "found"),
    [
        ([(None, "city.ttl")], "", {"default": ("city.ttl",)}),
        ([(None, "city.json")], "", {"city": ("city.json",)}),
        ([(None, "a.ttl"), (None, "b.nt")], "", {"default": ("a.ttl", "b.nt")}),
        ([("city", "a.ttl"), ("city", "b.ttl")], "", {"city": ("a.ttl", "b.ttl")}),
        ([(CITY, "a.ttl")], f"FROM <{CITY}>", {CITY: ("a.ttl",)}),
        ([("districts", "a.ttl")], f"FROM <{CITY}>", {CITY: ("a.ttl",)}),
        ([("knowledge", "a.ttl")], f"FROM <{CITY}>", {CITY: ("a.ttl",)}),
        ([(None, "a.ttl")], f"FROM <{CITY}>", {CITY: ("a.ttl",)}),
        ([], f"FROM <{CITY}>", {CITY: (CITY,)}),
        ([], "FROM <city.ttl>", {"city.ttl": ("city.ttl",)}),
        ([], "FROM <urn:city>", {}),
        ([], "", {}),
    ],
    ids=[
        *("RDF without a name is the default graph", "JSON is named after its file", "two files without a name"),
        *("two files of one name", "the IRI", "its last part", "the only name for the only IRI"),
        *("a file without a name where only one graph is asked", "from the web", "from a file", "from nowhere", "none"),
    ],
)
def test_a_graph_is_given_by_name_or_is_where_its_name_leads(
    given: list[tuple[str | None, str]], asks: str, found: dict[str, tuple[str, ...]]
) -> None:
    assert named(graph_files(given, [query(asks)])) == found


def test_a_file_without_a_name_stays_the_default_graph_for_a_query_that_reads_it() -> None:
    text = query(where=f"?s ?p ?o GRAPH <{CITY}> {{ ?s ?q ?r }}")
    assert named(graph_files([(None, "a.ttl"), (CITY, "b.ttl")], [text])) == {"default": ("a.ttl",), CITY: ("b.ttl",)}
    assert named(graph_files([(None, "a.ttl")], [text]))["default"] == ("a.ttl",)


def test_a_seraph_query_names_graphs_and_no_files() -> None:
    text = (
        "REGISTER QUERY q STARTING AT NOW { MATCH (a) WITHIN PT5M MATCH (b) ON GRAPH `city.ttl` EMIT a, b "
        "SNAPSHOT EVERY PT1M }"
    )
    assert graph_files([], [script(text, "q.seraph")]) == []


def test_a_path_of_a_query_begins_at_the_folder_of_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    turtle(tmp_path / "queries" / "city.ttl", "there")
    turtle(tmp_path / "city.ttl", "here")
    text = query("FROM <city.ttl>", file_name="queries/q.csparql")
    Path("queries/q.csparql").write_text(text.text)
    [from_file] = graph_files([], [text])
    assert set(from_file.load()) == triples("there")  # type: ignore[arg-type]
    [from_stdin] = graph_files([], [replace(text, file_name="-")])
    assert set(from_stdin.load()) == triples("here")  # type: ignore[arg-type]
    [given] = graph_files([("city.ttl", "city.ttl")], [text])
    assert set(given.load()) == triples("here"), "what is given begins where the command does"  # type: ignore[arg-type]


# --- loading ----------------------------------------------------------------------------------------------------------


def test_several_files_are_one_graph(tmp_path: Path) -> None:
    turtle(tmp_path / "a.ttl", "x", "y")
    (tmp_path / "b.nt.gz").write_bytes(gzip.compress(b"<http://ex/a> <http://ex/p> <http://ex/z> .\n"))
    found = GraphFile("g", ("a.ttl", "b.nt.gz"), str(tmp_path)).load()
    assert isinstance(found, TripleGraph)
    assert set(found) == triples("x", "y", "z")


def test_json_is_a_property_graph(tmp_path: Path) -> None:
    (tmp_path / "city.json").write_text(json.dumps({"nodes": [{"id": 1, "labels": ["Place"]}]}))
    found = GraphFile("city", ("city.json",), str(tmp_path)).load()
    assert isinstance(found, PropertyGraph)
    assert [node.labels for node in found.nodes.values()] == [("Place",)]


def test_a_property_graph_does_not_mix_with_other_files(tmp_path: Path) -> None:
    turtle(tmp_path / "a.ttl", "x")
    (tmp_path / "city.json").write_text("{}")
    with pytest.raises(StreamError) as caught:
        GraphFile("city", ("a.ttl", "city.json"), str(tmp_path)).load()
    assert str(caught.value) == (
        "the graph city has several files, and city.json is not RDF\n"
        "hint: one graph is of RDF files, or of one file with nodes and relationships"
    )


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.ttl", "oops", "a.ttl: line 1, column 1: not Turtle"),
        ("a.json", "[[]]", "a.json: "),
        ("a.json", "1", "a.json: a graph is an object such as"),
        ("b.ttl", None, "there is no file .*b.ttl"),
    ],
)
def test_what_is_no_graph_is_refused_by_name(tmp_path: Path, name: str, content: str | None, said: str) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(StreamError, match=said):
        GraphFile("g", (name,), str(tmp_path)).load()


# --- changes ----------------------------------------------------------------------------------------------------------


def touch(path: Path, at: int) -> None:
    os.utime(path, ns=(at, at))
