"""Columns packed at once are the events that would have been read one by one; what is odd is left to that reader."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from anabranch.formats import chunks
from anabranch.formats.arrow_chunks import pack_arrow
from anabranch.formats.parquet import event_batches, opened_parquet, read_batch, write_parquet
from anabranch.model.event import Event
from anabranch.testing.draws import draw_case

NODES = pa.list_(pa.struct([("id", pa.int64()), ("labels", pa.list_(pa.string())), ("properties", pa.string())]))
LINKS = pa.list_(
    pa.struct(
        [
            ("id", pa.string()),
            ("type", pa.string()),
            ("from", pa.int64()),
            ("to", pa.int64()),
            ("properties", pa.struct([("w", pa.float64()), ("at", pa.string())])),
        ]
    )
)
AT = pa.timestamp("us", tz="UTC")


def batch(rows: list[dict[str, Any]], at: pa.DataType = AT, nodes: pa.DataType = NODES) -> pa.RecordBatch:
    schema = pa.schema([("at", at), ("nodes", nodes), ("relationships", LINKS)])
    return pa.RecordBatch.from_pylist(rows, schema=schema)


def row(at: Any = 1, nodes: Any = None, relationships: Any = None) -> dict[str, Any]:
    return {"at": at, "nodes": nodes, "relationships": relationships}


def agree(columns: pa.RecordBatch) -> list[Event]:
    packed = pack_arrow(columns)
    assert packed is not None
    events = chunks.unpack(packed)
    assert repr(events) == repr(list(read_batch(columns, 0)))
    return events


def test_drawn_streams_are_packed_as_they_are_read(tmp_path: Path) -> None:
    packed = 0
    for number in range(60):
        case = draw_case(Random(f"arrow/{number}"), number)
        for events in case.streams.values():
            path = str(tmp_path / "events.parquet")
            write_parquet(events, path)
            with opened_parquet(path) as parquet:
                for columns in event_batches(parquet):
                    packed += len(agree(columns))
    assert packed > 100


def test_missing_parts_and_nulls_are_what_they_are_to_a_reader_of_events() -> None:
    events = agree(
        batch(
            [
                row(1),
                row(2, [], []),
                row(3, [{"id": 1}, {"id": 2, "labels": [], "properties": '{"a": null, "b": [1, 2.5]}'}]),
                row(4, [{"id": 1, "labels": ["A", "B", "A"]}], [{"type": "R", "from": 1, "to": 2}]),
                row(5, None, [{"id": "r", "type": "R", "from": 1, "to": 2, "properties": {"w": 1.0, "at": None}}]),
                row(6, [{"id": 3, "properties": '{"when": {"$date": "2015-07-21"}}'}]),
            ]
        )
    )
    assert [len(event.nodes) for event in events] == [0, 0, 2, 1, 0, 1]


@pytest.mark.parametrize("at", [pa.int64(), pa.timestamp("ms"), pa.timestamp("ns", tz="Europe/Rome")])
def test_instants_of_all_kinds_are_read_alike(at: pa.DataType) -> None:
    agree(batch([row(1_665_758_700_123), row(7)], at))


@pytest.mark.parametrize(
    "columns",
    [
        batch([row(None)]),
        batch([row("2022-10-14T14:45:00Z")], pa.string()),
        batch([row(2**62)], pa.int64()),
        batch([row(1, [{"labels": ["A"]}])]),
        batch([row(1, [None])]),
        batch([row(1, [{"id": 1, "labels": [""]}])]),
        batch([row(1, [{"id": 1, "labels": [None]}])]),
        batch([row(1, [{"id": 1, "properties": "{not json"}])]),
        batch([row(1, [{"id": 1, "properties": '{"a": {"$date": "x"}}'}])]),
        batch([row(1, [{"id": 1, "properties": "[1]"}])]),
        batch([row(1, [{"id": 1, "labels": ["A"]}, {"id": 1}])]),
        batch([row(1, None, [{"type": None, "from": 1, "to": 2}])]),
        batch([row(1, None, [{"type": "", "from": 1, "to": 2}])]),
        batch([row(1, None, [{"type": "R", "from": 1}])]),
        batch([row(1, [{"id": 1.5}])], nodes=pa.list_(pa.struct([("id", pa.float64())]))),
        batch(
            [row(1, [{"id": 1, "label": "A"}])], nodes=pa.list_(pa.struct([("id", pa.int64()), ("label", pa.string())]))
        ),
        pa.RecordBatch.from_pylist([{"when": 1}]),
    ],
)
def test_what_is_odd_is_left_to_the_reader_of_single_events(columns: pa.RecordBatch) -> None:
    assert pack_arrow(columns) is None


def test_a_batch_without_events_is_an_empty_chunk() -> None:
    assert agree(batch([])) == []
