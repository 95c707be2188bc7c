"""Arrow batches in columns: a regular batch has the events of the exact reader, and every other one goes to it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.support.draws import draw_case
from tests.support.graph_columns import events_of, narrowed, whole_maps_in, whole_maps_of

from anabranch.delta.batch import ABSENT
from anabranch.delta.dictionary import Dictionary
from anabranch.errors import StreamError
from anabranch.formats import chunks
from anabranch.formats.deadletter import MalformedRecord
from anabranch.formats.events import value_from_json
from anabranch.formats.graph_batches import GraphBatch, read_blocks
from anabranch.formats.parquet import event_batches, opened_parquet, read_batch, write_parquet
from anabranch.model.event import Event
from anabranch.model.graph_block import GraphBlock

KEYS = ("name", "age", "é", "missing", "w", "$date", "list")
TEXT, LABELS = pa.string(), pa.list_(pa.string())
AT = pa.timestamp("us", tz="UTC")
NODES = pa.list_(pa.struct([("id", pa.int64()), ("labels", LABELS), ("properties", TEXT)]))
LINKS = pa.list_(
    pa.struct(
        [
            ("id", TEXT),
            ("type", TEXT),
            ("from", pa.int64()),
            ("to", pa.int64()),
            ("properties", pa.struct([("w", pa.float64()), ("at", TEXT)])),
        ]
    )
)


def batch(rows: list[dict[str, Any]], at: pa.DataType = AT, nodes: pa.DataType = NODES) -> pa.RecordBatch:
    schema = pa.schema([("at", at), ("nodes", nodes), ("relationships", LINKS)])
    return pa.RecordBatch.from_pylist(rows, schema=schema)


def row(at: Any = 1, nodes: Any = None, relationships: Any = None) -> dict[str, Any]:
    return {"at": at, "nodes": nodes, "relationships": relationships}


def with_properties(kind: pa.DataType, *properties: Any) -> pa.RecordBatch:
    """Events of one node each."""
    nodes = pa.list_(pa.struct([("id", pa.int64()), ("properties", kind)]))
    rows = [{"at": 1, "nodes": [{"id": 1, "properties": one}]} for one in properties]
    return pa.RecordBatch.from_pylist(rows, schema=pa.schema([("at", AT), ("nodes", nodes)]))


def agree(columns: pa.RecordBatch, keys: tuple[str, ...] = KEYS) -> list[Event]:
    """Check a regular batch against the exact reader, as it is, as a slice and out of a chunk."""
    expected = list(read_batch(columns, 0))
    assert all(isinstance(event, Event) for event in expected), expected
    source = GraphBatch.of(columns)
    assert source is not None
    every = np.arange(len(source))
    for one in (source, GraphBatch.of(columns, keys), _source(chunks.opened(source.packed(every)))):
        assert one is not None
        assert one.times.tolist() == [event.event_time for event in expected]  # type: ignore[union-attr]
        assert repr(events_of(one, keys)) == repr([narrowed(event, keys) for event in expected])  # type: ignore[arg-type]
        assert repr(one.events(every.tolist())) == repr(expected)
        assert repr(whole_maps_of(one)) == repr(whole_maps_in(expected))  # type: ignore[arg-type]
    return source.events(every.tolist())


def _source(block: Any) -> GraphBatch:
    assert isinstance(block, GraphBlock)
    (part,) = block.parts
    assert isinstance(part.source, GraphBatch)
    return part.source


# --- drawn batches ----------------------------------------------------------------------------------------------------


def drawn_text(random: Random) -> str:
    return random.choice(("", "a", "b", "é", "😀", "a text of some length", 'with "quotes" and \\', "\x00", " "))


def drawn_value(random: Random) -> Any:
    return random.choice(
        (
            lambda: None,
            lambda: drawn_text(random),
            lambda: random.choice((0, -1, 2**63 - 1, -(2**63), random.randrange(100))),
            lambda: random.choice((0.0, -0.0, 1.0, 1e300, 5e-324, random.random())),
            lambda: random.random() < 0.5,
            lambda: [drawn_text(random), random.randrange(9)],
            lambda: {"a": drawn_text(random)},
            lambda: {"$date": "2015-07-21"},
        )
    )()


def json_maps(random: Random) -> tuple[pa.DataType, Callable[[], Any]]:
    def make() -> Any:
        if random.random() < 0.1:
            return random.choice((None, "null", "{}", " {} ", '{"age": 1, "age": 2}', '{"n\\u0061me": "x"}'))
        found = {key: drawn_value(random) for key in random.sample(KEYS, random.randrange(4))}
        text = json.dumps(found, ensure_ascii=random.random() < 0.5)
        return f" \n{text}\t" if random.random() < 0.1 else text

    return random.choice((pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string()))), make


_KINDS: dict[pa.DataType, Callable[[Random], Any]] = {
    pa.string(): drawn_text,
    pa.large_string(): drawn_text,
    pa.dictionary(pa.int8(), pa.string()): drawn_text,
    pa.int64(): lambda random: random.randrange(-(2**63), 2**63),
    pa.int8(): lambda random: random.randrange(-128, 128),
    pa.uint64(): lambda random: random.randrange(2**63),
    pa.float64(): lambda random: random.choice((-0.0, 1.0, random.random())),
    pa.float32(): lambda random: random.random(),
    pa.float16(): lambda random: random.random(),
    pa.bool_(): lambda random: random.random() < 0.5,
    pa.null(): lambda random: None,
    pa.list_(pa.int64()): lambda random: [random.randrange(9) for _ in range(random.randrange(3))],
    pa.map_(TEXT, TEXT): lambda random: [(drawn_text(random), drawn_text(random))],
    pa.struct([("x", pa.int64()), ("y", TEXT)]): lambda random: {"x": random.randrange(9), "y": None},
    pa.timestamp("us"): lambda random: None,
}


def structs(random: Random) -> tuple[pa.DataType, Callable[[], Any]]:
    kinds = {key: random.choice(list(_KINDS)) for key in random.sample(KEYS, random.randrange(1, 5))}

    def make() -> Any:
        if random.random() < 0.1:
            return None
        return {key: None if random.random() < 0.3 else _KINDS[kind](random) for key, kind in kinds.items()}

    return pa.struct(list(kinds.items())), make


def maps(random: Random) -> tuple[pa.DataType, Callable[[], Any]]:
    kind = random.choice([one for one in _KINDS if not pa.types.is_dictionary(one)])

    def make() -> Any:
        if random.random() < 0.1:
            return None
        keys = [random.choice(KEYS) for _ in range(random.randrange(4))]  # some come twice
        return [(key, None if random.random() < 0.3 else _KINDS[kind](random)) for key in keys]

    return pa.map_(random.choice((pa.string(), pa.large_string())), kind), make


def drawn_batch(random: Random) -> pa.RecordBatch:
    """A batch that is regular but for elements that are named twice."""
    draw_properties = random.choice((json_maps, structs, maps))
    node_kind, node_properties = draw_properties(random)
    link_kind, link_properties = draw_properties(random)
    ids = random.choice((pa.int64(), pa.int16(), pa.string(), pa.dictionary(pa.int16(), pa.string())))
    link_ids = random.choice((pa.string(), pa.int64(), pa.null(), None))
    at = random.choice((AT, pa.timestamp("ms"), pa.timestamp("ns", tz="Europe/Rome"), pa.int64(), pa.int32(), TEXT))
    labels = random.choice((LABELS, pa.large_list(pa.string()), pa.list_(pa.dictionary(pa.int8(), TEXT)), pa.null()))
    name = random.choice(("relationships", "edges"))
    start, end = random.choice((("from", "to"), ("start", "end"), ("source", "target")))
    node_fields = [("id", ids), ("labels", labels), ("properties", node_kind)]
    link_fields = [("id", link_ids), ("type", TEXT), (start, ids), (end, ids), ("properties", link_kind)]
    link_fields = [field for field in link_fields if field[1] is not None]
    most = random.choice((2, 3, 30))

    def drawn_id(kind: pa.DataType | None) -> Any:
        number = random.randrange(1000)
        return None if kind in (None, pa.null()) else number if pa.types.is_integer(kind) else f"é{number}"

    def node() -> dict[str, Any]:
        names = None if labels == pa.null() else random.choice((None, [], ["A"], ["A", "Bé"], ["B", "A", "B"]))
        return {"id": drawn_id(ids), "labels": names, "properties": node_properties()}

    def link() -> dict[str, Any]:
        own = None if random.random() < 0.3 else drawn_id(link_ids)
        ends = {start: drawn_id(ids), end: drawn_id(ids)}
        return {"id": own, "type": random.choice("RS"), **ends, "properties": link_properties()}

    def listed(make: Callable[[], Any]) -> Any:
        return None if random.random() < 0.1 else [make() for _ in range(random.randrange(most))]

    def time() -> Any:
        number = random.randrange(10**9)
        if at != TEXT:
            return number
        moment = datetime.fromtimestamp(number, UTC)
        return random.choice((moment.isoformat(), moment.strftime("%Y-%m-%dT%H:%M:%SZ"), moment.strftime("%Y%m%dT%H")))

    rows = [{"at": time(), "nodes": listed(node), name: listed(link)} for _ in range(random.randrange(1, 30))]
    nodes, links = pa.list_(pa.struct(node_fields)), random.choice((pa.list_, pa.large_list))(pa.struct(link_fields))
    found = pa.RecordBatch.from_pylist(rows, schema=pa.schema([("at", at), ("nodes", nodes), (name, links)]))
    return found.slice(random.randrange(len(rows))) if random.random() < 0.3 else found


@pytest.mark.parametrize("seed", range(15))
def test_drawn_batches_have_the_events_of_the_exact_reader(seed: int) -> None:
    random = Random(f"batches/{seed}")
    regular = 0
    for _ in range(10):
        columns = drawn_batch(random)
        if GraphBatch.of(columns) is not None:
            regular += len(agree(columns))
        else:
            assert any(_names_twice(event) for event in columns.to_pylist()), columns.schema
    assert regular > 0


def _names_twice(event: dict[str, Any]) -> bool:
    for name in ("nodes", "relationships", "edges"):
        ids = [one.get("id") for one in event.get(name) or () if one.get("id") is not None]
        if len(set(ids)) < len(ids):
            return True
    return False


@pytest.mark.parametrize("seed", range(10))
def test_values_of_columns_have_the_ids_that_the_values_have(seed: int) -> None:
    random = Random(f"encoded/{seed}")
    for _ in range(5):
        source = GraphBatch.of(drawn_batch(random))
        if source is None:
            continue
        dictionary = Dictionary(value_of_json=value_from_json)
        columns = source.columns(KEYS)
        events = source.events(range(len(source)))
        nodes = [node for event in events for node in event.nodes]
        for key, column in zip(KEYS, columns.nodes.properties, strict=True):
            ids = dictionary.encode_column(column, columns.data, columns.objects).tolist()
            expected = [dictionary.encode(node.properties[key]) if key in node.properties else ABSENT for node in nodes]
            assert ids == expected


def test_drawn_streams_are_blocks_as_they_are_read(tmp_path: Path) -> None:
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


# --- single batches ---------------------------------------------------------------------------------------------------


def test_missing_parts_and_nulls_are_what_they_are_to_a_reader_of_events() -> None:
    events = agree(
        batch(
            [
                row(1),
                row(2, [], []),
                row(3, [{"id": 1}, {"id": 2, "labels": [], "properties": '{"age": null, "name": [1, 2.5]}'}]),
                row(4, [{"id": 1, "labels": ["A", "B", "A"]}], [{"type": "R", "from": 1, "to": 2}]),
                row(5, None, [{"id": "r", "type": "R", "from": 1, "to": 2, "properties": {"w": 1.0, "at": None}}]),
                row(6, [{"id": 3, "properties": '{"name": {"$date": "2015-07-21"}}'}]),
            ]
        )
    )
    assert [len(event.nodes) for event in events] == [0, 0, 2, 1, 0, 1]


def test_properties_that_are_marked_as_json_are_json() -> None:
    texts = pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"age": 1}', None, '{"age": 2.5}']))
    nodes = pa.StructArray.from_arrays([pa.array([1, 2, 3]), texts], ["id", "properties"])
    column = pa.ListArray.from_arrays(pa.array([0, 2, 3], pa.int32()), nodes)
    events = agree(pa.RecordBatch.from_arrays([pa.array([1, 2]), column], names=["at", "nodes"]))
    assert [node.properties for event in events for node in event.nodes] == [{"age": 1}, {}, {"age": 2.5}]


def test_a_key_that_comes_twice_has_its_last_value() -> None:
    by_json = agree(with_properties(TEXT, '{"age": 1, "name": "x", "age": 2}'))
    by_map = agree(with_properties(pa.map_(TEXT, TEXT), [("age", "1"), ("age", "2")], [("age", "1"), ("age", None)]))
    assert [event.nodes[0].properties.get("age") for event in (*by_json, *by_map)] == [2, "2", None]


@pytest.mark.parametrize("at", [pa.int64(), pa.timestamp("ms"), pa.timestamp("ns", tz="Europe/Rome")])
def test_instants_of_all_kinds_are_read_alike(at: pa.DataType) -> None:
    agree(batch([row(1_665_758_700_123), row(7)], at))


def not_utf8() -> pa.RecordBatch:
    offsets = pa.py_buffer(np.array([0, 1], np.int32))
    ids = pa.Array.from_buffers(TEXT, 1, [None, offsets, pa.py_buffer(b"\xff")])
    nodes = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), pa.StructArray.from_arrays([ids], ["id"]))
    return pa.RecordBatch.from_arrays([pa.array([1]), nodes], names=["at", "nodes"])


def without_properties(nodes: list[Any], **fields: pa.DataType) -> pa.RecordBatch:
    return batch([row(1, nodes)], nodes=pa.list_(pa.struct(list(fields.items()))))


@pytest.mark.parametrize(
    "columns",
    [
        batch([row(None)]),
        batch([row("tomorrow")], pa.string()),
        batch([row(2**62)], pa.int64()),
        batch([row(-(2**63))], pa.int64()),
        batch([row(1.5)], pa.float64()),
        batch([row(1, [{"labels": ["A"]}])]),
        batch([row(1, [None])]),
        batch([row(1, [{"id": 1, "labels": [""]}])]),
        batch([row(1, [{"id": 1, "labels": [None]}])]),
        batch([row(1, [{"id": 1, "properties": "{not json"}])]),
        batch([row(1, [{"id": 1, "properties": '{"a": 1'}, {"id": 2, "properties": "}"}])]),
        batch([row(1, [{"id": 1, "properties": ""}])]),
        batch([row(1, [{"id": 1, "properties": '{"a": {"$date": "x"}}'}])]),
        batch([row(1, [{"id": 1, "properties": '{"a": NaN}'}])]),
        batch([row(1, [{"id": 1, "properties": "[1]"}])]),
        batch([row(1, [{"id": 1, "properties": "[]"}])]),
        batch([row(1, [{"id": 1, "labels": ["A"]}, {"id": 1}])]),
        batch([row(1, [{"id": number % 20} for number in range(21)])]),
        batch([row(1, None, [{"type": None, "from": 1, "to": 2}])]),
        batch([row(1, None, [{"type": "", "from": 1, "to": 2}])]),
        batch([row(1, None, [{"type": "R", "from": 1}])]),
        batch([row(1, None, [{"type": "R", "from": 1, "to": 2, "properties": {"w": math.inf}}])]),
        with_properties(pa.struct([("a", pa.uint64())]), {"a": 2**63}),
        with_properties(pa.struct([("a", pa.timestamp("us"))]), {"a": 1}),
        with_properties(pa.struct([("a", pa.decimal128(5, 2))]), {"a": Decimal("1.5")}),
        with_properties(pa.struct([("a", pa.binary())]), {"a": b"x"}),
        with_properties(pa.struct([("a", pa.list_(pa.float64()))]), {"a": [math.nan]}),
        with_properties(pa.map_(pa.int64(), TEXT), [(1, "x")]),
        with_properties(pa.map_(TEXT, pa.float64()), [("a", math.nan)]),
        with_properties(pa.int64(), 1),
        without_properties([{"id": 1.5}], id=pa.float64()),
        without_properties([{"id": True}], id=pa.bool_()),
        without_properties([{"id": 2**63}], id=pa.uint64()),
        without_properties([{"id": 1, "label": "A"}], id=pa.int64(), label=TEXT),
        without_properties([{"id": 1, "labels": "A"}], id=pa.int64(), labels=TEXT),
        not_utf8(),
        pa.RecordBatch.from_pylist([{"when": 1}]),
        pa.RecordBatch.from_pylist([{"at": 1, "triples": []}]),
        pa.RecordBatch.from_pylist([{"at": 1, "edges": [], "relationships": []}]),
    ],
)
def test_a_batch_with_anything_odd_is_left_to_the_exact_reader(columns: pa.RecordBatch) -> None:
    assert GraphBatch.of(columns) is None


def test_a_batch_without_events_is_an_empty_source() -> None:
    assert agree(batch([])) == []
    assert list(read_blocks(batch([]))) == []


# --- parts of batches -------------------------------------------------------------------------------------------------


def test_only_the_rows_around_an_irregular_one_are_read_one_by_one() -> None:
    rows = [row(number, [{"id": number}]) for number in range(5000)]
    rows[3000]["nodes"].append({"id": None})
    found = list(read_blocks(batch(rows)))
    exact = [one for one in found if not isinstance(one, GraphBlock)]
    assert len(exact) == 1
    assert len(exact[0]) <= 256
    events: list[Event | MalformedRecord] = []
    for one in found:
        events += one.events() if isinstance(one, GraphBlock) else read_batch(one, len(events))
    assert repr(events) == repr(list(read_batch(batch(rows), 0)))
    assert isinstance(events[3000], MalformedRecord)


def some_batch(first: int, count: int) -> pa.RecordBatch:
    return batch(
        [
            row(number, [{"id": number, "labels": ["A"], "properties": json.dumps({"age": number, "name": "é"})}])
            for number in range(first, first + count)
        ]
    )


def test_a_chunk_of_some_rows_of_several_batches_has_these_events() -> None:
    one, two = (GraphBatch.of(some_batch(first, 50)) for first in (0, 50))
    assert one is not None
    assert two is not None
    block = GraphBlock.joined([GraphBlock.of(one), GraphBlock.of(two)]).sorted_by(Random(3).sample(range(100), 70))  # type: ignore[arg-type]
    for part in (block, block[10:20], GraphBlock.of(one).without([3, 4]), GraphBlock.of(two)[7:9], block[:0]):
        packed = chunks.pack(part)
        head = chunks.head(packed)
        assert (head.events, head.nodes, head.relationships) == (len(part), len(part), 0)
        assert repr(chunks.unpack(packed)) == repr(part.events())
        if len(part):
            assert head.layout is chunks.ChunkLayout.ARROW
        opened = chunks.opened(packed)
        assert repr(list(opened)) == repr(part.events())


def test_batches_of_two_schemas_and_lines_are_packed_as_events() -> None:
    one = GraphBatch.of(some_batch(0, 5))
    two = GraphBatch.of(with_properties(pa.struct([("age", pa.int64())]), {"age": 1}))
    assert one is not None
    assert two is not None
    block = GraphBlock.joined([GraphBlock.of(one), GraphBlock.of(two)])
    assert repr(chunks.unpack(chunks.pack(block))) == repr(block.events())


def test_a_damaged_chunk_is_refused() -> None:
    source = GraphBatch.of(some_batch(0, 50))
    assert source is not None
    packed = source.packed(np.arange(50))
    for broken in (packed[:-10], packed[:60], packed[:8] + b"\x31" + packed[9:]):
        with pytest.raises(StreamError, match="damaged"):
            chunks.opened(broken)
    irregular = chunks.pack_arrow(source.times[:1], (1, 0), batch([row(1, [{"id": None}])]))
    with pytest.raises(StreamError, match="damaged"):
        chunks.opened(irregular)[0]
    with pytest.raises(StreamError, match="damaged"):
        _source(chunks.opened(irregular)).columns(())
    timeless = chunks.pack_arrow(source.times[:1], (0, 0), batch([row(None)]))
    with pytest.raises(StreamError, match="damaged"):
        chunks.opened(timeless)


def test_columns_of_other_keys_are_read_on_request_and_may_repeat() -> None:
    source = GraphBatch.of(some_batch(0, 5), ("age",))
    assert source is not None
    first, second = source.columns(("age",)), source.columns(("age",))
    assert first is not second
    assert first.nodes.properties[0].firsts.tolist() == second.nodes.properties[0].firsts.tolist()
    both = source.columns(("name", "age", "name"))
    assert both.keys == ("name", "age", "name")
    assert [len(one.kinds) for one in both.nodes.properties] == [5, 5, 5]
