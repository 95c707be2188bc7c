"""NDJSON, gzip, Parquet and dead letters: bytes to events and back, and what happens to what is no event."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anabranch.errors import StreamError
from anabranch.formats.deadletter import MalformedRecord, letter
from anabranch.formats.events import event_from_dict, event_to_dict
from anabranch.formats.ndjson import read_line, read_ndjson, write_ndjson
from anabranch.formats.parquet import read_parquet, unfolds_beyond, write_parquet
from anabranch.model.event import Event
from anabranch.model.temporal import parse_date
from anabranch.model.values import Node, Relationship

BIKES = Path(__file__).parents[3] / "examples" / "bikes" / "events.ndjson"


class Pipe(io.RawIOBase):
    """A file that cannot be rewound and gives little at a time."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return self._data.read(min(size, 7) if size >= 0 else -1)


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("wrap", [io.BytesIO, Pipe])
def test_the_running_example_is_read(pack: Any, wrap: Any) -> None:
    read = list(read_ndjson(wrap(pack(BIKES.read_bytes()))))
    assert [number for number, _ in read] == [1, 2, 3, 4, 5]
    events = [event for _, event in read if isinstance(event, Event)]
    assert sum(len(event.relationships) for event in events) == 8
    out = io.BytesIO()
    assert write_ndjson(events, out) == 5
    assert [event_to_dict(e) for _, e in read_ndjson(io.BytesIO(out.getvalue())) if isinstance(e, Event)] == [
        event_to_dict(event) for event in events
    ]


def test_malformed_lines_come_out_in_their_place_and_reading_goes_on() -> None:
    lines = [
        b'\xef\xbb\xbf{"at": 1}',
        b"",
        b'{"at": 2',
        b'{"at": 3, "nodes": [{}]}',
        b'{"at": NaN}',
        b'"\xff"',
        b'{"at": ' + b"[" * 100_000,
        b'{"at": ' + b"9" * 5000 + b"}",
        b"   ",
        b'{"at": 4}\r',
    ]
    read = list(read_ndjson(io.BytesIO(b"\n".join(lines))))
    assert [number for number, one in read if isinstance(one, Event)] == [1, 10]
    reasons = {number: one.reason for number, one in read if isinstance(one, MalformedRecord)}
    assert list(reasons) == [3, 4, 5, 6, 7, 8]
    assert reasons[3].startswith("not JSON: ")
    assert reasons[4] == "nodes[0].id: missing"
    assert reasons[5] == "NaN is no number that JSON knows"
    assert reasons[6].startswith("not UTF-8")


def test_a_dead_letter_keeps_line_reason_and_text() -> None:
    _, (_, malformed) = read_ndjson(io.BytesIO('{"at": 1}\n{"bé"}\n'.encode()))
    assert isinstance(malformed, MalformedRecord)
    record = json.loads(letter(malformed))
    assert record["line"] == 2
    assert record["raw"] == '{"bé"}'
    assert record["reason"].startswith("not JSON")


def test_parquet_keeps_events_whole(tmp_path: Path) -> None:
    events = [
        Event(
            1_665_758_700_000_001,
            (Node(1, ("A", "B"), {"d": parse_date("2015-07-21"), "n": 1, "f": 0.5, "l": [1, 2]}),),
            (Relationship("r", "T", 1, 2, {"x": "y"}), Relationship(None, "T", 1, 2)),
        ),
        Event(1_665_758_700_000_002),
    ]
    path = str(tmp_path / "events.parquet")
    assert write_parquet(events, path) == 2
    read = [event for _, event in read_parquet(path)]
    assert [event_to_dict(event) for event in read if isinstance(event, Event)] == [event_to_dict(e) for e in events]


@pytest.mark.parametrize(
    "at",
    [
        pa.array([1_000], pa.timestamp("s")),
        pa.array([1_000_000], pa.timestamp("ms", tz="Europe/Rome")),
        pa.array([1_000_000_000_999], pa.timestamp("ns")),
        pa.array([1_000_000], pa.int64()),
        pa.array(["1970-01-01T00:16:40Z"]),
    ],
    ids=lambda array: str(array.type),
)
def test_parquet_reads_every_kind_of_instant(at: pa.Array, tmp_path: Path) -> None:
    path = str(tmp_path / "events.parquet")
    pq.write_table(pa.table({"at": at}), path)
    assert [event for _, event in read_parquet(path)] == [Event(1_000_000_000)]


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        (5, "nodes: expected a list, got a number"),
        ("x", "nodes: expected a list, got a text"),
        ([1], "nodes[0]: a node is an object, not a number"),
        ([{"id": 1, "properties": [1, 2]}], "nodes[0].properties: properties are an object, not a list"),
    ],
)
def test_parquet_rows_of_other_types_are_set_aside(nodes: Any, reason: str, tmp_path: Path) -> None:
    path = str(tmp_path / "events.parquet")
    pq.write_table(pa.table({"at": [1], "nodes": [nodes]}), path)
    ((_, record),) = read_parquet(path)
    assert isinstance(record, MalformedRecord)
    assert record.reason == reason


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.map_(pa.string(), pa.string()), [("name", "x")]),
        (pa.struct([("name", pa.string()), ("absent", pa.int64())]), {"name": "x", "absent": None}),
        (pa.string(), '{"name": "x"}'),
    ],
    ids=["map", "struct", "JSON"],
)
def test_parquet_reads_properties_of_every_kind(kind: pa.DataType, value: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "events.parquet")
    node = pa.struct([("id", pa.string()), ("labels", pa.list_(pa.string())), ("properties", kind)])
    nodes = pa.array([[{"id": "a", "labels": None, "properties": value}]], pa.list_(node))
    pq.write_table(pa.table({"at": pa.array([0], pa.int64()), "nodes": nodes}), path)
    ((_, event),) = read_parquet(path)
    assert isinstance(event, Event)
    assert event.nodes[0].properties == {"name": "x"}


def test_a_malformed_parquet_row_comes_out_in_its_place(tmp_path: Path) -> None:
    path = str(tmp_path / "events.parquet")
    pq.write_table(pa.table({"at": pa.array([0, None, 2], pa.timestamp("us"))}), path)
    read = dict(read_parquet(path))
    assert isinstance(read[1], Event)
    assert isinstance(read[2], MalformedRecord)
    assert read[2].reason == "at: missing"
    assert isinstance(read[3], Event)


def test_what_is_no_parquet_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    path.write_bytes(b"no")
    with pytest.raises(StreamError, match="not a Parquet file"):
        list(read_parquet(str(path)))
    pq.write_table(pa.table({"time": [1]}), str(path))
    with pytest.raises(StreamError, match="no column `at`; the file has time"):
        list(read_parquet(str(path)))
    with pytest.raises(StreamError, match="node ids are numbers and texts"):
        write_parquet([Event(0, (Node(1), Node("a")))], str(path))


@pytest.mark.parametrize(
    ("half", "whole"),
    [
        ('"x": "\\ud83d"', '"x": "\\ud83d\\ude00"'),
        ('"\\udc00": 1', '"a": 1'),
        ('"x": ["\\uD800!"]', '"x": ["\\uD7FF!"]'),
    ],
)
def test_half_of_a_surrogate_pair_is_malformed_wherever_it_stands(half: str, whole: str) -> None:
    line = '{"at": "2024-05-01T09:00:00Z", "nodes": [{"id": 1, "properties": {?}}]}'
    found = read_line(line.replace("?", half), 7)
    assert isinstance(found, MalformedRecord)
    assert (found.line, found.raw) == (7, line.replace("?", half))
    assert "alone is half of a surrogate pair" in found.reason
    assert isinstance(read_line(line.replace("?", whole)), Event)


def test_values_that_a_file_repeats_are_counted_without_being_made() -> None:
    node = {"id": 1, "labels": ["Bike", "EBike"], "properties": {"a": "x" * 50_000}}
    packed = io.BytesIO()
    write_parquet([event_from_dict({"at": 1, "nodes": [node]})] * 2_000, packed)
    assert len(packed.getvalue()) < 100_000
    assert unfolds_beyond(packed, 90_000_000)
    assert not unfolds_beyond(packed, 110_000_000)
    pairs = io.BytesIO()
    of_maps = pa.array([[("k" * 5_000, "v" * 50_000)]] * 2_000, pa.map_(pa.string(), pa.string()))
    pq.write_table(pa.table({"at": [1] * 2_000, "m": of_maps, "n": pa.array([b"x" * 50] * 2_000)}), pairs)
    assert unfolds_beyond(pairs, 100_000_000)
    assert not unfolds_beyond(pairs, 120_000_000)
