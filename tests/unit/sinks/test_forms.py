"""Answers in the formats of SPARQL and RDF as sinks write them: which form a text names, and what the files hold."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest
from tests.unit.sinks.telling import contents, told

from anabranch.errors import EngineError
from anabranch.formats.rdf.results import FORMS
from anabranch.model.terms import XSD_INTEGER, Iri, Literal
from anabranch.sinks.base import RenderedAnswer, Sink
from anabranch.sinks.console import Console
from anabranch.sinks.files import LinesFile, LinesFolder
from anabranch.sinks.forms import SUFFIXES, LineTexts, RdfForm, check_form, needed, suffix_of
from anabranch.sinks.ledger import MemoryLedger
from anabranch.sinks.open import open_sink

EX = "http://ex/"
GRAPH = ("subject", "predicate", "object")
GATES = {"gates": ("gate", "cars")}
CARS = {"cars": GRAPH}


def rows(number: int) -> RenderedAnswer:
    """An answer of bindings: one gate with a number, one without."""
    values: list[tuple[Any, ...]] = [
        (Iri(f"{EX}gate{number}"), Literal(str(number), XSD_INTEGER)),
        (Iri(f"{EX}gate"), None),
    ]
    return told(number, values, "gates", GATES["gates"])


def graph(number: int) -> RenderedAnswer:
    return told(number, [(Iri(f"{EX}car{number}"), Iri(f"{EX}at"), Iri(f"{EX}gate"))], "cars", GRAPH)


def write(sink: Sink, *batches: Sequence[RenderedAnswer]) -> None:
    sink.open(MemoryLedger())
    for number, answers in enumerate(batches):
        sink.write(number, answers)
    sink.close()


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


# --- which form -------------------------------------------------------------------------------------------------------


def test_every_form_has_a_suffix_and_is_made_from_the_typed_answer() -> None:
    for form in FORMS:
        assert suffix_of(RdfForm(form)) == next((s for s, name in SUFFIXES.items() if name == form), ".csv")
        assert needed(RdfForm(form)) == "typed"
    assert (suffix_of("json"), suffix_of("csv")) == (".ndjson", ".csv")
    assert (needed("json"), needed("csv")) == ("json", "csv")


@pytest.mark.parametrize(("suffix", "form"), SUFFIXES.items())
@pytest.mark.parametrize("end", ["", ".gz"])
def test_the_suffix_of_a_file_says_its_form(suffix: str, form: str, end: str) -> None:
    queries = CARS if form in ("ntriples", "nquads", "turtle", "rdfxml", "jsonld") else GATES
    sink = open_sink(f"OUT{suffix.upper()}{end}", queries)
    assert isinstance(sink, LinesFile)
    assert sink.forms == ("typed",)


@pytest.mark.parametrize("form", FORMS)
def test_a_scheme_names_the_form_of_a_file_a_folder_or_stdout(form: str) -> None:
    for place, kind in (("out.txt", LinesFile), ("out/", LinesFolder), ("-", Console)):
        sink = open_sink(f"{form}:{place}", CARS)
        assert type(sink) is kind
        assert sink.forms == ("typed",)


def test_a_folder_has_files_with_the_suffix_of_the_form(tmp_path: Path) -> None:
    write(open_sink("turtle:out/", CARS), [graph(0)])
    write(open_sink("sparql-csv:out2/?gz=1", GATES), [rows(0)])
    assert list(contents(tmp_path)) == ["out/part-00000000.ttl", "out2/part-00000000.csv.gz"]


@pytest.mark.parametrize("text", ["out.ttl", "ntriples:-", "nquads:out/", "out.rdf", "jsonld:out.txt"])
def test_rows_of_bindings_are_refused_where_triples_go(text: str, tmp_path: Path) -> None:
    with pytest.raises(EngineError) as caught:
        open_sink(text, {**CARS, **GATES})
    first, hint = str(caught.value).splitlines()
    assert first.endswith("holds triples, and the query's columns are gate, cars")
    assert hint == "hint: CONSTRUCT and DESCRIBE give triples; rows fit into sparql-json, sparql-xml, tsv, sparql-csv"
    assert list(tmp_path.iterdir()) == []


def test_triples_are_rows_where_rows_go() -> None:
    for form in ("sparql-json", "sparql-xml", "tsv", "sparql-csv"):
        check_form(RdfForm(form), [GRAPH, ("x",), ()])
    check_form("json", [("x",)])


def test_options_are_those_of_any_file() -> None:
    assert isinstance(open_sink("out.ttl?append=1", CARS), LinesFile)
    with pytest.raises(EngineError, match=r"no option `prefixes`\nhint: Options: append, overwrite."):
        open_sink("out.ttl?prefixes=ex", CARS)
    with pytest.raises(EngineError, match="files are written to this computer only"):
        open_sink("turtle:s3://bucket/out", CARS)


# --- what is written --------------------------------------------------------------------------------------------------


def test_answers_of_all_batches_follow_each_other_in_one_file(tmp_path: Path) -> None:
    write(open_sink("out.srj", GATES), [rows(0), rows(1)], [], [rows(2)])
    documents = [json.loads(line) for line in (tmp_path / "out.srj").read_text().splitlines()]
    assert [one["results"]["bindings"][0]["cars"]["value"] for one in documents] == ["0", "1", "2"]
    assert documents[0]["head"] == {"vars": ["gate", "cars"], "link": ["urn:anabranch:gates:2022-10-14T14:00:00Z"]}
    assert documents[0]["results"]["bindings"][1] == {"gate": {"type": "uri", "value": f"{EX}gate"}}


def test_tables_have_their_header_for_each_answer(tmp_path: Path) -> None:
    write(open_sink("out.tsv", GATES), [rows(0)], [rows(1)])
    assert (tmp_path / "out.tsv").read_text() == (
        "?gate\t?cars\n<http://ex/gate0>\t0\n<http://ex/gate>\t\n?gate\t?cars\n<http://ex/gate1>\t1\n<http://ex/gate>\t\n"
    )


@pytest.mark.parametrize(
    ("name", "form"),
    [("out.ttl", ox.RdfFormat.TURTLE), ("out.nt", ox.RdfFormat.N_TRIPLES), ("out.nq", ox.RdfFormat.N_QUADS)],
)
def test_graphs_of_several_answers_are_one_document(name: str, form: ox.RdfFormat, tmp_path: Path) -> None:
    write(open_sink(name, CARS, prefixes={"ex": EX}), [graph(0)], [graph(1), graph(2)])
    text = (tmp_path / name).read_text()
    subjects = [quad.subject.value for quad in ox.parse(text, form) if quad.predicate.value == f"{EX}at"]
    assert subjects == [f"{EX}car0", f"{EX}car1", f"{EX}car2"]
    assert ("ex:car1 ex:at ex:gate" in text) == (name == "out.ttl"), "prefixes are used where the form has them"


def test_each_answer_is_a_document_of_rdf_xml_and_a_line_of_json_ld(tmp_path: Path) -> None:
    write(open_sink("jsonld:out", CARS), [graph(0), graph(1)])
    write(open_sink("rdfxml:one/", CARS), [graph(0)])
    assert [json.loads(line)[0]["@id"] for line in (tmp_path / "out").read_text().splitlines()] == [
        f"{EX}car0",
        f"{EX}car1",
    ]
    [file] = (tmp_path / "one").glob("*.rdf")
    [quad] = ox.parse(file.read_bytes(), ox.RdfFormat.RDF_XML)
    assert quad.subject.value == f"{EX}car0"


def test_a_zipped_file_holds_the_same(tmp_path: Path) -> None:
    write(open_sink("out.nt", CARS), [graph(0)], [graph(1)])
    write(open_sink("out.nt.gz", CARS), [graph(0)], [graph(1)])
    assert gzip.decompress((tmp_path / "out.nt.gz").read_bytes()) == (tmp_path / "out.nt").read_bytes()


def test_values_of_property_graphs_are_written_as_the_literals_that_stand_for_them() -> None:
    [text] = LineTexts(RdfForm("tsv")).of([told(0, [(1234, "ä")], columns=("user", "hops"))])
    assert text.decode().splitlines() == ["?user\t?hops", '1234\t"ä"']


def test_an_answer_without_rows_says_so_in_tables_and_nothing_in_triples() -> None:
    nothing = told(0, [], "cars", GRAPH)
    assert LineTexts(RdfForm("ntriples")).of([nothing]) == []
    [table] = LineTexts(RdfForm("sparql-csv")).of([nothing])
    assert table == b"subject,predicate,object\r\n"
    assert LineTexts("json").of([nothing]) == []
