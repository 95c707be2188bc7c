"""Files of RDF as a stream: what each kind holds, how it is cut and packed, and whose its blank nodes are."""

from __future__ import annotations

import gzip
import io
import pickle
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anabranch.errors import StreamError
from anabranch.formats import chunks
from anabranch.formats.deadletter import MalformedRecord
from anabranch.formats.streams import write_events
from anabranch.model.event import Event
from anabranch.model.terms import Blank, Iri, Literal, Term, Triple
from anabranch.sources import lines
from anabranch.sources.base import Decoding, Limit, Source, as_event
from anabranch.sources.chain import ChainSource
from anabranch.sources.files import FileSource
from anabranch.sources.following import FollowedFiles

P = Iri("http://ex/p")
FILES = {
    "a.nt.tsv": "tsv",
    "a.nt": "tsv",
    "a.tsv.gz": "tsv",
    "a.csv": "csv",
    "a.csv.gz": "csv",
    "a.nq": "nquads",
    "a.nq.gz": "nquads",
    "a.trig": "trig",
    "a.jsonld": "jsonld",
    "a.ndjson": "ndjson-triples",
    "a.ndjson.gz": "ndjson-triples",
    "a.parquet": "parquet-triples",
}


def event(at: int, *objects: Term) -> Event:
    return Event(at * 1000, triples=tuple(Triple(Iri(f"http://ex/{at}"), P, one) for one in objects or [Literal("x")]))


def write(path: Path, events: list[Event], form: str = "tsv") -> Path:
    file = io.BytesIO()
    write_events(events, file, form)
    path.write_bytes(gzip.compress(file.getvalue()) if path.name.endswith(".gz") else file.getvalue())
    return path


def records(source: Source, limit: Limit | None = None) -> Iterator[Event | MalformedRecord]:
    """All records, read by a worker; those that it packs are the same."""
    worker = pickle.loads(pickle.dumps(source))
    decode = Decoding(source.stream).decoder()
    offset = source.begin()
    while not source.ended(offset):
        end = source.ahead(offset, limit or Limit())
        for piece in source.pieces(offset, end):
            found = list(worker.read(piece, decode))
            packed: list[Event | MalformedRecord] = []
            for one in worker.read_packed(piece, decode):
                packed += chunks.unpack(one) if isinstance(one, bytes) else [one]
            assert [one for one in packed if isinstance(one, Event)] == [one for one in found if isinstance(one, Event)]
            assert len(packed) == len(found)
            yield from found
        offset = end


def events(source: Source, limit: Limit | None = None) -> list[Event]:
    return [record for record in records(source, limit) if isinstance(record, Event)]


def refused(source: Source) -> list[tuple[int | None, str]]:
    return [(record.line, record.reason) for record in records(source) if isinstance(record, MalformedRecord)]


def blanks(found: list[Event]) -> list[Blank]:
    return [term for one in found for triple in one.triples for term in triple if isinstance(term, Blank)]


@pytest.mark.parametrize(("name", "form"), FILES.items())
def test_a_file_is_read_by_what_its_name_says(tmp_path: Path, name: str, form: str) -> None:
    given = [event(1), event(2, Iri("http://ex/b")), event(3, Literal("5", "http://ex/t"))]
    assert events(FileSource("s", str(write(tmp_path / name, given, form)))) == given


@pytest.mark.parametrize("limit", [Limit(), Limit(size=100), Limit(records=7), Limit(records=1, size=1)])
def test_timed_lines_are_the_same_however_they_are_cut(
    tmp_path: Path, limit: Limit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "PIECE", 200)
    path = write(tmp_path / "a.nt.tsv", [event(at, Blank("b")) for at in range(50)])
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\nbad\n", 1))
    source = FileSource("s", str(path))
    assert [one.event_time for one in events(source, limit)] == [at * 1000 for at in range(50)]
    assert set(blanks(events(source, limit))) == {Blank("b", "s.f0")}
    assert [line for line, _ in refused(source)] == [2]


def test_a_growing_file_of_timed_lines_is_followed(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", [event(1)])
    source = FollowedFiles("s", str(path))
    start = source.begin()
    end = source.ahead(start, Limit())
    with path.open("ab") as file:
        file.write(b"2\t<http://ex/2> <http://ex/p>")
    assert source.ahead(end, Limit()) == end
    with path.open("ab") as file:
        file.write(b' "x" .\n')
    (piece,) = source.pieces(end, source.ahead(end, Limit()))
    assert list(source.read(piece, as_event)) == [event(2)]


def test_a_directory_holds_files_of_all_kinds_and_each_has_its_own_blank_nodes(tmp_path: Path) -> None:
    for number, (name, form) in enumerate((("a.nq", "nquads"), ("b.trig", "trig"), ("c.nt", "tsv")), 1):
        write(tmp_path / name, [event(number, Blank("b0"))], form)
    found = events(FileSource("s", str(tmp_path)))
    assert [one.event_time for one in found] == [1000, 2000, 3000]
    assert blanks(found) == [Blank("b0", "s.f0"), Blank("b0", "s.f1"), Blank("b0", "s.f2")]


def test_the_same_blank_node_in_two_lines_of_a_file_is_one_node(tmp_path: Path) -> None:
    path = write(tmp_path / "a.nt", [event(1, Blank("b")), event(2, Blank("b"))])
    assert len(set(blanks(events(FileSource("s", str(path)))))) == 1


def test_two_streams_and_two_inputs_of_a_stream_share_no_blank_nodes(tmp_path: Path) -> None:
    one = str(write(tmp_path / "a.nt", [event(1, Blank("b"))]))
    two = str(write(tmp_path / "b.ndjson", [event(1, Blank("b"))], "ndjson-triples"))
    chain = ChainSource("s", tuple(FileSource("s", path) for path in (one, one, two, two)))
    found = [*blanks(events(chain)), *blanks(events(FileSource("http://ex/t", one)))]
    assert len(set(found)) == 5
    assert [*blanks(events(chain)), *blanks(events(FileSource("http://ex/t", one)))] == found


def test_malformed_records_name_their_file_when_there_are_several(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text("oops\n")
    (tmp_path / "b.trig").write_text("<http://ex/g> { <http://ex/a> <http://ex/p> 1 }")
    assert refused(FileSource("s", str(tmp_path))) == [
        (1, "a.nt: not a timed triple; write the time (epoch milliseconds or ISO 8601), a tab, and the triple"),
        (
            1,
            "b.trig: graph <http://ex/g> has no time: say <http://ex/g> prov:generatedAtTime ... in the default graph",
        ),
    ]


def test_parquet_of_triples_is_cut_by_row_groups_and_sets_bad_rows_aside(tmp_path: Path) -> None:
    table = pa.table(
        {
            "time": pa.array(range(10)),
            "subject": ["http://ex/a"] * 9 + ["a"],
            "predicate": ["http://ex/p"] * 10,
            "object": pa.array(range(10)),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=3)
    source = FileSource("s", str(tmp_path / "a.parquet"))
    for limit in (Limit(), Limit(records=1)):
        assert [one.event_time for one in events(source, limit)] == [at * 1000 for at in range(9)]
    assert refused(source) == [(10, "`a` is no IRI; write it like <http://example.org/a>")]


def test_a_document_that_does_not_parse_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "a.trig"
    path.write_text("@prefix : <http://ex/> .\n:g { :a :p }")
    with pytest.raises(StreamError) as found:
        events(FileSource("s", str(path)))
    assert str(found.value).startswith(f"{path}: line 2, column 12: not TriG: ")


@pytest.mark.parametrize("name", ["a.ttl", "a.rdf", "a.owl.gz"])
def test_a_graph_without_times_is_no_stream(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("")
    with pytest.raises(StreamError, match="a graph without times is no stream\nhint: give it with --graph"):
        events(FileSource("s", str(tmp_path / name)))


def test_files_of_triples_that_are_cut_off_are_refused(tmp_path: Path) -> None:
    for name, form in (("a.tsv.gz", "tsv"), ("a.csv.gz", "csv"), ("a.nq.gz", "nquads")):
        path = write(tmp_path / name, [event(at) for at in range(99)], form)
        path.write_bytes(path.read_bytes()[:-8])
        with pytest.raises(StreamError, match="not a whole gzip file"):
            events(FileSource("s", str(path)))
