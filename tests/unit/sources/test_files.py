"""Files as a stream: what is read, in which order and pieces; what comes again after a restart; what is refused."""

from __future__ import annotations

import gzip
import json
import os
import pickle
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anabranch.errors import MalformedEventError, StreamError
from anabranch.formats.deadletter import MalformedRecord
from anabranch.formats.events import event_from_dict
from anabranch.formats.parquet import write_parquet
from anabranch.model.event import Event
from anabranch.model.graph_block import GraphBlock
from anabranch.sources import lines, rowgroups
from anabranch.sources.base import AsEvent, Backlog, Limit, Offset, as_event
from anabranch.sources.files import FileSource


def line(at: int) -> bytes:
    return json.dumps({"at": at}).encode() + b"\n"


def write(path: Path, instants: Iterable[int]) -> Path:
    path.write_bytes(b"".join(line(at) for at in instants))
    return path


def sequences(source: FileSource, limit: Limit | None = None, start: Offset | None = None) -> list[str]:
    """The sequences of all records, as a decoder sees them, checking that every batch can be read again."""
    seen: list[str] = []

    def decode(record: Any, sequence: str) -> Event | None:
        seen.append(sequence)
        return None

    for begun, end in batches(source, limit, start):
        for piece in source.pieces(begun, end):
            assert list(source.read(piece, decode)) == []
    return seen


def batches(source: FileSource, limit: Limit | None = None, start: Offset | None = None) -> list[tuple[Offset, Offset]]:
    found = []
    offset = start or source.begin()
    while True:
        end = source.ahead(offset, limit or Limit())
        assert end == source.ahead(offset, limit or Limit())
        if end == offset:
            assert source.ended(offset)
            return found
        found.append((offset, json.loads(json.dumps(end))))
        offset = found[-1][1]


def instants(source: FileSource, limit: Limit | None = None, start: Offset | None = None) -> list[int]:
    return [at for begun, end in batches(source, limit, start) for at in read(source, begun, end)]


def read(source: FileSource, start: Offset, end: Offset) -> list[int]:
    """The instants (milliseconds) between two offsets, read as a worker does."""
    worker = pickle.loads(pickle.dumps(source))
    pieces = source.pieces(start, end)
    assert [(piece.stream, piece.split, piece.order) for piece in pieces] == [("s", "", n) for n in range(len(pieces))]
    found = [record for piece in pieces for record in worker.read(piece, as_event)]
    return [record.event_time // 1000 for record in found if isinstance(record, Event)]


def refused(source: FileSource) -> list[tuple[str, int | None]]:
    return [
        (record.reason, record.line)
        for start, end in batches(source)
        for piece in source.pieces(start, end)
        for record in source.read(piece, as_event)
        if isinstance(record, MalformedRecord)
    ]


# --- one file ---------------------------------------------------------------------------------------------------------


def test_a_file_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "ä b.ndjson"
    path.write_bytes(b"\xef\xbb\xbf" + line(1) + b"\r\n" + line(2).replace(b"\n", b"\r\n") + line(3)[:-1])
    source = FileSource("s", str(path))
    assert source.finite
    assert instants(source) == [1, 2, 3]
    assert sequences(source) == ["1", "3", "4"]
    ((_, end),) = batches(source)
    assert source.backlog(source.begin()) == Backlog(0, path.stat().st_size)
    assert source.backlog(end) == Backlog(path.stat().st_size, path.stat().st_size)


def test_an_empty_file_ends_at_once(tmp_path: Path) -> None:
    source = FileSource("s", str(write(tmp_path / "a.ndjson", [])))
    assert not source.ended(source.begin())
    ((start, end),) = batches(source)
    assert source.pieces(start, end) == []
    assert source.ended(end)


@pytest.mark.parametrize("limit", [Limit(), Limit(size=100), Limit(records=7), Limit(records=1, size=1)])
def test_the_records_are_the_same_however_they_are_cut(
    tmp_path: Path, limit: Limit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "PIECE", 64)
    source = FileSource("s", str(write(tmp_path / "a.ndjson", range(200))))
    assert instants(source, limit) == list(range(200))
    assert sequences(source, limit) == [str(number) for number in range(1, 201)]
    for start, end in batches(source, limit):
        for piece in source.pieces(start, end):
            assert piece.where["to"][0] - piece.where["from"][0] <= 64
        assert limit.records is None or end["line"] - start["line"] <= limit.records


@pytest.mark.parametrize("room", range(100_000, 100_015, 2))
def test_the_rest_of_a_file_comes_before_the_next_file_wherever_a_batch_ends(tmp_path: Path, room: int) -> None:
    for number in range(4):
        write(tmp_path / f"{number}.ndjson", range(5_000 * number, 5_000 * (number + 1)))
    source = FileSource("s", str(tmp_path))
    assert instants(source, Limit(size=room)) == list(range(20_000))
    for _, end in batches(source, Limit(size=room)):
        whole = [tmp_path.joinpath(file["name"]).stat().st_size for file in end["files"][:-1]]
        assert [file["cuts"][-1][0] for file in end["files"][:-1]] == whole


def test_the_first_batch_is_small_and_the_others_are_as_large_as_allowed(tmp_path: Path) -> None:
    padded = json.dumps({"at": 1, "note": "x" * 1000}).encode() + b"\n"
    (tmp_path / "a.ndjson").write_bytes(padded * 40_000)
    sizes = [end["bytes"] - start["bytes"] for start, end in batches(FileSource("s", str(tmp_path / "a.ndjson")))]
    assert [size // len(padded) for size in sizes] == [(1 << 20) // len(padded), 40_000 - (1 << 20) // len(padded)]


def test_a_line_beyond_the_limit_is_taken_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    long = json.dumps({"at": 2, "note": "x" * 5000}).encode() + b"\n"
    path.write_bytes(line(1) + long + line(3))
    assert [
        read(FileSource("s", str(path)), *pair) for pair in batches(FileSource("s", str(path)), Limit(size=50))
    ] == [
        [1],
        [2],
        [3],
    ]


def test_the_path_is_the_planners_and_not_the_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "a.ndjson", [1])
    monkeypatch.chdir(tmp_path)
    source = FileSource("s", "a.ndjson")
    ((start, end),) = batches(source)
    (piece,) = source.pieces(start, end)
    monkeypatch.chdir("/")
    assert [one.event_time for one in source.read(piece, as_event) if isinstance(one, Event)] == [1000]


# --- directories and patterns -----------------------------------------------------------------------------------------


def test_a_directory_gives_its_files_by_name_and_leaves_out_what_is_hidden_or_no_event(tmp_path: Path) -> None:
    write(tmp_path / "b.jsonl", [3])
    write(tmp_path / "a.ndjson", [1, 2])
    (tmp_path / "c.json").write_text('[{"at": 4}, {"at": 5}]')
    (tmp_path / "d.ndjson.gz").write_bytes(gzip.compress(line(6)))
    write_parquet([event_from_dict({"at": 7})], str(tmp_path / "e.parquet"))
    for other in (".f.ndjson", "_g.ndjson", "h.txt", "i.csv"):
        write(tmp_path / other, [99])
    (tmp_path / "j.ndjson").mkdir()
    write(tmp_path / "j.ndjson" / "k.ndjson", [99])
    source = FileSource("s", str(tmp_path))
    assert instants(source) == [1, 2, 3, 4, 5, 6, 7]
    assert instants(source, Limit(records=1)) == [1, 2, 3, 4, 5, 6, 7]
    total = sum(
        (tmp_path / name).stat().st_size for name in ("a.ndjson", "b.jsonl", "c.json", "d.ndjson.gz", "e.parquet")
    )
    assert source.backlog(batches(source)[-1][1]) == Backlog(total, total)


def test_records_are_numbered_by_file_and_line(tmp_path: Path) -> None:
    write(tmp_path / "a.ndjson", [1, 2])
    (tmp_path / "b.csv").write_text("x,y\n1,2\n3,4\n")
    (tmp_path / "c.ndjson.gz").write_bytes(gzip.compress(b"\n" + line(1)))
    (tmp_path / "d.json").write_text("[1, 2]")
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "e.parquet")
    source = FileSource("s", str(tmp_path), records_are_events=False)
    expected = ["1", "2", "1-1", "1-2", "2-2", "3-1", "3-2", "4-1", "4-2"]
    assert sequences(source) == expected
    assert sequences(source, Limit(records=1)) == expected
    assert sequences(source, Limit(size=1)) == expected


def test_the_file_of_a_malformed_record_is_named_where_there_are_several(tmp_path: Path) -> None:
    write(tmp_path / "a.ndjson", [1])
    (tmp_path / "a.ndjson").write_bytes(line(1) + b"oops\n")
    reason = "not JSON: Expecting value (column 1)"
    assert refused(FileSource("s", str(tmp_path))) == [(reason, 2)]
    (tmp_path / "b.json").write_text('[{"at": 1}, {}]')
    write_parquet([event_from_dict({"at": 1})], str(tmp_path / "c.parquet"))
    assert refused(FileSource("s", str(tmp_path))) == [(f"a.ndjson: {reason}", 2), ("b.json: at: missing", 2)]
    assert refused(FileSource("s", str(tmp_path / "a.ndjson"))) == [(reason, 2)]


def test_a_pattern_gives_the_files_that_match(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, name in enumerate(
        ("x/a.ndjson", "x/b.txt", "y/a.ndjson", "y/.a.ndjson", "z[1].ndjson", "x/c/a.ndjson")
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        write(tmp_path / name, [number])
    assert instants(FileSource("s", f"{tmp_path}/x/*")) == [0, 1]
    assert instants(FileSource("s", f"{tmp_path}/*/a.ndjson")) == [0, 2]
    assert instants(FileSource("s", f"{tmp_path}/?/[ab].*")) == [0, 1, 2]
    assert instants(FileSource("s", f"{tmp_path}/y/.*")) == [3]
    assert instants(FileSource("s", f"{tmp_path}/z[1].ndjson")) == [4]
    monkeypatch.chdir(tmp_path)
    assert instants(FileSource("s", "*/a.ndjson")) == [0, 2]
    (tmp_path / "y" / "a.ndjson").write_bytes(b"oops")
    assert refused(FileSource("s", "*/a.ndjson"))[0][0].startswith("y/a.ndjson: not JSON")


def test_many_small_files_are_spread_over_batches(tmp_path: Path) -> None:
    for number in range(200):
        write(tmp_path / f"{number:03}.ndjson", [number])
    source = FileSource("s", str(tmp_path))
    assert len(batches(source)[0][1]["files"]) == 64
    assert instants(source) == list(range(200))


def test_addresses_of_file_systems_are_read_like_paths(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    write(tmp_path / "d" / "a.ndjson", [1, 2])
    write(tmp_path / "d" / "b.ndjson", [3])
    assert instants(FileSource("s", f"file://{tmp_path}/d")) == [1, 2, 3]
    assert instants(FileSource("s", f"file://{tmp_path}/*/b.ndjson")) == [3]
    assert instants(FileSource("s", f"file://{tmp_path}/d/a.ndjson")) == [1, 2]
    with pytest.raises(StreamError, match=r"did you mean file://.*/d/a.ndjson\?"):
        FileSource("s", f"file://{tmp_path}/d/aa.ndjson").begin()


# --- restarts ---------------------------------------------------------------------------------------------------------


def test_a_batch_reads_the_same_bytes_again_whatever_came_meanwhile(tmp_path: Path) -> None:
    write(tmp_path / "b.ndjson", range(10))
    write(tmp_path / "d.ndjson", range(10, 20))
    source = FileSource("s", str(tmp_path))
    limit = Limit(size=20_000)
    (batch,) = batches(source, limit)
    planned = batches(source, Limit(records=15))
    before = [read(source, *pair) for pair in planned]
    write(tmp_path / "a.ndjson", [99])
    write(tmp_path / "c.ndjson", [99])
    with (tmp_path / "b.ndjson").open("ab") as file:
        file.write(line(99))
    assert [read(source, *pair) for pair in planned] == before
    assert before == [list(range(15)), list(range(15, 20))]
    assert read(source, *batch) == list(range(20))
    assert source.ended(planned[-1][1])
    # What comes behind the last name is read; what comes before it was never promised.
    write(tmp_path / "e.ndjson", [20])
    assert not source.ended(planned[-1][1])
    assert instants(source, start=planned[-1][1]) == [20]


def test_a_run_goes_on_in_the_middle_of_a_file(tmp_path: Path) -> None:
    write(tmp_path / "a.ndjson", range(10))
    source = FileSource("s", str(tmp_path))
    (_, offset), *_ = batches(source, Limit(records=4))
    assert instants(source, start=offset) == [4, 5, 6, 7, 8, 9]
    assert sequences(source, start=offset) == ["5", "6", "7", "8", "9", "10"]
    (tmp_path / "a.ndjson").unlink()
    write(tmp_path / "b.ndjson", [1])
    with pytest.raises(StreamError, match=r"a.ndjson was being read and has gone"):
        source.ahead(offset, Limit())


def test_a_file_that_vanished_or_shrank_before_it_was_read_is_refused(tmp_path: Path) -> None:
    source = FileSource("s", str(write(tmp_path / "a.ndjson", range(10))))
    ((start, end),) = batches(source)
    (piece,) = source.pieces(start, end)
    write(tmp_path / "a.ndjson", range(5))
    with pytest.raises(StreamError, match=r"a.ndjson: the file has become shorter"):
        list(source.read(piece, as_event))
    (tmp_path / "a.ndjson").unlink()
    with pytest.raises(StreamError, match=r"a.ndjson was there and has gone"):
        list(source.read(piece, as_event))


# --- Parquet ----------------------------------------------------------------------------------------------------------


def test_parquet_is_read_by_row_groups_with_rows_numbered_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rowgroups, "PIECE", 1)
    monkeypatch.setattr("anabranch.formats.parquet._ROWS_PER_BATCH", 3)
    table = pa.table(
        {"at": [*range(9), None, 10], "nodes": [[{"id": n, "labels": ["A"]}] for n in range(11)], "own": 11 * [1]}
    )
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=4)
    source = FileSource("s", str(tmp_path))
    for limit in (Limit(), Limit(records=1), Limit(records=5), Limit(size=1)):
        assert instants(source, limit) == [*range(9), 10]
    assert [len(source.pieces(*pair)) for pair in batches(source)] == [3]
    assert [len(source.pieces(*pair)) for pair in batches(source, Limit(records=5))] == [2, 1]
    assert [number for _, number in refused(source)] == [10]
    assert sequences(FileSource("s", str(tmp_path), records_are_events=False)) == [str(n) for n in range(1, 12)]
    assert [end["bytes"] for _, end in batches(source, Limit(records=5))][-1] == (tmp_path / "a.parquet").stat().st_size


def test_parquet_comes_in_blocks_of_the_events_that_are_read_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rowgroups, "PIECE", 1)
    nodes = [[{"id": n, "properties": {"x": n % 7 or None, "y": "é"}}] for n in range(5000)]
    nodes[1234] += nodes[1234]
    links = [[{"type": "R", "from": n, "to": n + 1}] for n in range(5000)]
    table = pa.table({"at": [*range(4000), None, *range(4001, 5000)], "nodes": nodes, "edges": links})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=1500)
    source = FileSource("s", str(tmp_path))
    decode = AsEvent("s", keys=("x",))
    blocks = events = 0
    for start, end in batches(source, Limit(records=2000)):
        for piece in source.pieces(start, end):
            found: list[Event | MalformedRecord] = []
            for record in source.read_packed(piece, decode):
                if isinstance(record, GraphBlock):
                    blocks, events = blocks + 1, events + len(record)
                    found += record.events()
                else:
                    assert isinstance(record, Event | MalformedRecord)
                    found.append(record)
            assert list(map(repr, found)) == list(map(repr, source.read(piece, decode)))
    assert blocks > 4
    assert 4000 < events < 5000


def test_a_parquet_row_keeps_its_types(tmp_path: Path) -> None:
    event = event_from_dict(
        {
            "at": "2022-10-14T14:45:00.123456Z",
            "nodes": [
                {"id": "ä", "labels": ["A", "B"], "properties": {"d": {"$date": "2015-07-21"}, "n": 1, "f": 1.5}}
            ],
            "relationships": [{"id": "r", "type": "t", "from": "ä", "to": "ä", "properties": {"l": [1, "x"]}}],
        }
    )
    write_parquet([event], str(tmp_path / "a.parquet"))
    source = FileSource("s", str(tmp_path / "a.parquet"))
    ((start, end),) = batches(source)
    (found,) = [record for piece in source.pieces(start, end) for record in source.read(piece, as_event)]
    assert isinstance(found, Event)
    assert (found.event_time, found.nodes[0].properties, found.relationships[0].properties) == (
        event.event_time,
        event.nodes[0].properties,
        event.relationships[0].properties,
    )


# --- refusals ---------------------------------------------------------------------------------------------------------


def message(path: Path | str, **options: Any) -> str:
    source = FileSource("s", str(path), **options)
    with pytest.raises(StreamError) as raised:
        instants(source)
    assert not isinstance(raised.value, MalformedEventError)
    return str(raised.value)


def test_a_path_that_leads_nowhere_names_what_it_may_have_meant(tmp_path: Path) -> None:
    write(tmp_path / "events.ndjson", [1])
    assert message(tmp_path / "event.ndjson") == (
        f"there is no file {tmp_path}/event.ndjson\nhint: did you mean {tmp_path}/events.ndjson?"
    )
    assert message(tmp_path / "no" / "such") == f"there is no file {tmp_path}/no/such"
    assert message(f"{tmp_path}/*.parquet").startswith(f"no file matches {tmp_path}/*.parquet")
    assert "`**` is not understood" in message(f"{tmp_path}/**/a.ndjson")


def test_a_directory_without_events_says_what_they_look_like(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", [])
    assert message(tmp_path) == (
        f"{tmp_path} holds no events\n"
        "hint: files of events end with .ndjson, .jsonl, .json, .parquet, .tsv, .nt, .nq, .trig, .jsonld, "
        "perhaps followed by .gz"
    )
    (tmp_path / "a.csv").unlink()
    assert ".parquet, .csv, perhaps" in message(tmp_path, records_are_events=False)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson.gz").write_bytes(gzip.compress(line(1) * 99)[:-8])
    assert message(tmp_path / "a.ndjson.gz").startswith(f"{tmp_path}/a.ndjson.gz: not a whole gzip file")
    (tmp_path / "a.parquet").write_bytes(b"PAR1 or not")
    assert message(tmp_path / "a.parquet").startswith(f"{tmp_path}/a.parquet: not a Parquet file: ")
    pq.write_table(pa.table({"when": [1], "who": [2]}), tmp_path / "b.parquet")
    assert message(tmp_path / "b.parquet") == f"{tmp_path}/b.parquet: no column `at`; the file has when, who"
    (tmp_path / "a.json").write_text("[1, 2")
    assert message(tmp_path / "a.json").startswith(f"{tmp_path}/a.json: not JSON: ")
    (tmp_path / "a.csv").write_text("a,b\n")
    assert message(tmp_path / "a.csv") == (
        f"{tmp_path}/a.csv holds records, not events\n"
        "hint: say what they mean with LOAD STREAM FROM ...; a table of triples has the columns s, p, o and at"
    )


def test_a_pipe_is_refused_with_the_way_to_read_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert message(tmp_path / "pipe").endswith("hint: send it through stdin: ... | anabranch run --stream name=-")


def test_a_name_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").touch()
    os.mkdir(os.fsencode(tmp_path) + b"/\xff")
    assert "a name that is not UTF-8" in message(tmp_path)


def test_the_offset_stays_small_however_many_files_were_read(tmp_path: Path) -> None:
    for number in range(100):
        write(tmp_path / f"{number:03}.ndjson", [number])
    source = FileSource("s", str(tmp_path))
    assert max(len(json.dumps(end)) for _, end in batches(source, Limit(records=5))) < 1000


def test_a_batch_that_has_all_its_records_takes_no_further_file(tmp_path: Path) -> None:
    write(tmp_path / "a.ndjson", range(3))
    (tmp_path / "b.json").write_text('[{"at": 4}, {"at": 5}]')
    planned = batches(FileSource("s", str(tmp_path)), Limit(records=3))
    taken = [[file["name"] for file in end["files"]] for _, end in planned]
    assert taken == [["a.ndjson"], ["b.json"]]
