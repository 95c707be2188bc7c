"""`anabranch convert`: every format into every other, what is set aside, and what is refused."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from anabranch.formats.deadletter import MalformedRecord
from anabranch.formats.streams import FORMATS, read_events, write_events
from anabranch.model.event import Event
from anabranch.model.terms import RDF_TYPE, XSD_INTEGER, Iri, Literal, Triple
from anabranch.model.values import Node, Relationship

from .conftest import Invoke

Write = Callable[[str, str], Path]
V = "http://ex/v#"
A, B, P = Iri("http://ex/a"), Iri("http://ex/b"), Iri(f"{V}p")
TRIPLES = [
    Event(1_000_000, triples=(Triple(A, P, B), Triple(A, Iri(f"{V}name"), Literal('say "x"\n')))),
    Event(
        2_000_500, triples=(Triple(B, RDF_TYPE, Iri(f"{V}Thing")), Triple(B, Iri(f"{V}n"), Literal("5", XSD_INTEGER)))
    ),
]
SPLIT = ("tsv", "csv", "parquet-triples", "parquet")


def said(events: list[Event]) -> list[tuple[int, Triple]]:
    return [(event.event_time, triple) for event in events for triple in event.triples]


def read(path: Path, form: str) -> list[Event]:
    with path.open("rb") as file:
        found = list(read_events(file, form))
    assert not any(isinstance(one, MalformedRecord) for one in found)
    return [one for one in found if isinstance(one, Event)]


def put(path: Path, form: str) -> Path:
    with path.open("wb") as file:
        write_events(TRIPLES, file, form)
    return path


@pytest.mark.parametrize("before", [form for form in FORMATS if "elements" not in form])
@pytest.mark.parametrize("after", [form for form in FORMATS if "elements" not in form])
def test_triples_survive_every_pair_of_formats(invoke: Invoke, tmp_path: Path, before: str, after: str) -> None:
    ran = invoke("convert", put(tmp_path / "in", before), "out", "--from", before, "--to", after)
    assert ran.code == 0, ran.err
    found = read(tmp_path / "out", after)
    assert said(found) == said(TRIPLES)
    assert len(found) == (4 if {before, after} & set(SPLIT) else 2)


@pytest.mark.parametrize("form", [form for form in FORMATS if form not in ("ndjson-elements", "parquet-elements")])
@pytest.mark.parametrize("elements", ["ndjson-elements", "parquet-elements"])
def test_triples_survive_being_nodes_and_relationships(
    invoke: Invoke, tmp_path: Path, form: str, elements: str
) -> None:
    options = ("--vocabulary", V)
    put(tmp_path / "in", form)
    there = invoke("convert", "in", "middle", "--from", form, "--to", elements, *options)
    assert there.code == 0, there.err
    assert all(not event.triples for event in read(tmp_path / "middle", elements))
    form_back = form if form not in ("ndjson", "parquet") else f"{form}-triples"
    back = invoke("convert", "middle", "out", "--from", elements, "--to", form_back, *options)
    assert back.code == 0, back.err
    assert sorted(said(read(tmp_path / "out", form_back))) == sorted(said(TRIPLES))


def test_nodes_and_relationships_stay_what_they_are_between_their_formats(
    invoke: Invoke, tmp_path: Path, events: Path
) -> None:
    assert invoke("convert", events, "a.parquet").code == 0
    assert invoke("convert", "a.parquet", "b.ndjson.gz").code == 0
    assert invoke("convert", "b.ndjson.gz", "c.ndjson").code == 0
    assert read(tmp_path / "c.ndjson", "ndjson") == read(events, "ndjson")


def test_nodes_and_relationships_become_triples_and_come_back(invoke: Invoke, tmp_path: Path) -> None:
    given = Event(0, (Node(1, ("A",), {"x": 1}), Node(2, ("B",))), (Relationship("r", "T", 1, 2, {"w": 0.5}),))
    with (tmp_path / "a.ndjson").open("wb") as file:
        write_events([given], file, "ndjson")
    assert invoke("convert", "a.ndjson", "a.trig").code == 0
    assert invoke("convert", "a.trig", "b.ndjson", "--to", "ndjson-elements").code == 0
    (found,) = read(tmp_path / "b.ndjson", "ndjson")
    assert {node.id: (node.labels, node.properties) for node in found.nodes} == {1: (("A",), {"x": 1}), 2: (("B",), {})}
    assert [(one.id, one.type, one.source, one.target, one.properties) for one in found.relationships] == [
        ("r", "T", 1, 2, {"w": 0.5})
    ]


def test_stdin_goes_to_stdout_and_the_summary_to_stderr(invoke: Invoke) -> None:
    line = '5\t<http://ex/a> <http://ex/p> "x" .\n'
    ran = invoke("convert", "-", "-", stdin=f"# note\n{line}")
    assert json.loads(ran.out) == {
        "at": "1970-01-01T00:00:00.005Z",
        "triples": [["<http://ex/a>", "<http://ex/p>", '"x"']],
    }
    assert ran.err.startswith("1 event · 0 malformed · ")
    packed = invoke("convert", "-", "-", "--from", "tsv", "--to", "tsv", "-q", stdin=gzip.compress(line.encode()))
    assert (packed.out, packed.err) == ('1970-01-01T00:00:00.005Z\t<http://ex/a> <http://ex/p> "x" .\n', "")


def test_a_directory_is_one_stream(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    put(tmp_path / "in" / "a.nt", "tsv")
    put(tmp_path / "in" / "b.trig", "trig")
    assert invoke("convert", "in", "out.nq.gz").code == 0
    found = list(read_events(io.BytesIO(gzip.decompress((tmp_path / "out.nq.gz").read_bytes())), "nquads"))
    assert said([one for one in found if isinstance(one, Event)]) == said(TRIPLES) * 2


def test_malformed_records_are_counted_and_set_aside(invoke: Invoke, tmp_path: Path, write: Write) -> None:
    write("in.tsv", '5\t<http://ex/a> <http://ex/p> "x" .\noops\n')
    ran = invoke("convert", "in.tsv", "out.trig")
    assert ran.code == 0
    assert "1 event · 1 malformed" in ran.err
    assert "set aside in out.trig.dead.ndjson" in ran.err
    (letter,) = (tmp_path / "out.trig.dead.ndjson").read_text().splitlines()
    assert (json.loads(letter)["line"], json.loads(letter)["raw"]) == (2, "oops")
    strict = invoke("convert", "in.tsv", "out2.trig", "--strict", "--dead-letter", "dead.ndjson")
    assert strict.code == 5
    assert (tmp_path / "dead.ndjson").exists()


def test_a_clean_conversion_leaves_only_its_output(invoke: Invoke, tmp_path: Path) -> None:
    put(tmp_path / "in.tsv", "tsv")
    invoke("convert", "in.tsv", "out.nq")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.tsv", "out.nq"]


def test_a_conversion_that_fails_leaves_nothing(invoke: Invoke, tmp_path: Path, write: Write) -> None:
    write("in.trig", "<http://ex/g> {")
    ran = invoke("convert", "in.trig", "out.nq")
    assert ran.code == 4
    assert ran.err.startswith("error: in.trig: line 1, column 15: not TriG")
    assert [path.name for path in tmp_path.iterdir()] == ["in.trig"]


def test_a_file_that_exists_is_replaced_only_when_asked_for(invoke: Invoke, tmp_path: Path, write: Write) -> None:
    put(tmp_path / "in.tsv", "tsv")
    out = write("out.nq", "precious")
    ran = invoke("convert", "in.tsv", "out.nq")
    assert ran.code == 1
    assert ran.err == ("error: out.nq exists already\nhint: name a new file, or add --overwrite to replace it\n")
    assert out.read_text() == "precious"
    assert invoke("convert", "in.tsv", "out.nq", "--overwrite").code == 0
    assert "precious" not in out.read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("in.tsv", "out.foo"), 1, "out.foo does not say its format\nhint: end it with .tsv"),
        (("in.tsv", "out", "--to", "trigg"), 1, "there is no format `trigg`\nhint: did you mean trig?"),
        (("no.tsv", "out.nq"), 4, "there is no file no.tsv"),
        (("no", "out.nq", "--from", "tsv"), 4, "there is no file no"),
        (("in.tsv", "no/out.nq"), 1, "there is no folder no"),
        (("in.tsv", "in.tsv", "--overwrite"), 1, "in.tsv is read, and cannot be written at the same time"),
        (("in.tsv", "."), 1, ". is a directory"),
        (("in.csv", "out.nq"), 4, "in.csv holds records, not events"),
        (("in.csv", "out.nq", "--from", "csv"), 4, "a table of triples has the columns s, p, o and at"),
        (("gen:bikes", "out.nq"), 1, "gen:bikes never ends"),
    ],
)
def test_what_cannot_be_converted_says_why(
    invoke: Invoke, tmp_path: Path, write: Write, arguments: tuple[str, ...], code: int, said: str
) -> None:
    put(tmp_path / "in.tsv", "tsv")
    write("in.csv", "a,b\n1,2\n")
    ran = invoke("convert", *arguments)
    assert ran.code == code
    assert said in ran.err
