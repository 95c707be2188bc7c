"""Parquet with the same fields as the JSON event: `at`, `nodes`, `relationships` (or `edges`).

`at` is a timestamp (without a zone it is UTC), an int64 of epoch milliseconds, or ISO 8601 text. `nodes` and
`relationships` are lists of structs. Properties are a struct, a map, or JSON text, which keeps every type.

Invariant: a row is read as the same event as its JSON object would be; a malformed row comes out in its place.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from anabranch.errors import MalformedEventError, StreamError
from anabranch.formats.deadletter import MalformedRecord
from anabranch.formats.events import event_from_dict
from anabranch.formats.values import to_typed_json
from anabranch.model.event import Event

_ROWS_PER_BATCH = 8192
_FIELDS = ("at", "nodes", "relationships", "edges")


def read_parquet(file: BinaryIO | str) -> Iterator[tuple[int, Event | MalformedRecord]]:
    """Row numbers (from one) with their events."""
    number = 0
    with opened_parquet(file) as parquet:
        for batch in event_batches(parquet):
            for record in read_batch(batch, number):
                number += 1
                yield number, record


@contextmanager
def opened_parquet(file: BinaryIO | str, by_codes: Sequence[str] = (), metadata: Any = None) -> Iterator[Any]:
    """The file, to be read; columns that are wanted `by_codes` keep their dictionaries."""
    try:
        parquet = pq.ParquetFile(file, metadata=metadata, read_dictionary=list(by_codes) or None)
    except pa.ArrowInvalid as error:
        raise StreamError(f"not a Parquet file: {error}") from None
    with parquet:
        yield parquet


def unfolds_beyond(file: BinaryIO, most: int) -> bool:
    """Return whether the values of a file take more than so many bytes when they are expanded.

    A file holds a repeated value once, so that a few bytes can stand for gigabytes; they are counted without expanding.
    """
    with opened_parquet(file) as parquet:
        metadata = parquet.metadata
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        columns = [[group.column(number) for group in groups] for number in range(metadata.num_columns)]
    left: int = most - sum(8 * chunk.num_values for chunks in columns for chunk in chunks)
    for chunks in columns:
        if left < 0:
            return True
        values = sum(chunk.num_values for chunk in chunks)
        size = sum(chunk.total_uncompressed_size for chunk in chunks)
        if values * size > left and chunks[0].physical_type == "BYTE_ARRAY":
            left -= _unfolded(file, chunks[0].path_in_schema, len(chunks))
    return left < 0


def _unfolded(file: BinaryIO, path: str, groups: int) -> int:
    """The bytes of all values of a column."""
    size = 0
    with opened_parquet(file, by_codes=[path]) as parquet:
        for group in range(groups):
            for array in parquet.read_row_group(group, columns=[path]).column(0).chunks:
                while not (pa.types.is_dictionary(array.type) or pa.types.is_primitive(array.type)):
                    if pa.types.is_struct(array.type) or pa.types.is_list(array.type):
                        inner = array.flatten()
                        array = inner[0] if isinstance(inner, list) else inner
                    elif pa.types.is_map(array.type):
                        array = array.items if path.endswith("value") else array.keys
                    else:
                        break
                if pa.types.is_dictionary(array.type):
                    lengths = pc.take(pc.binary_length(array.dictionary), array.indices)
                else:
                    lengths = pc.binary_length(array)
                size += pc.sum(lengths).as_py() or 0
    return size


def event_batches(parquet: Any, row_groups: Iterable[int] | None = None) -> Iterator[Any]:
    """The columns of events, in batches."""
    columns = [name for name in parquet.schema_arrow.names if name in _FIELDS]
    if "at" not in columns:
        raise StreamError(f"no column `at`; the file has {', '.join(parquet.schema_arrow.names)}")
    groups = None if row_groups is None else list(row_groups)
    yield from map(_fitted, parquet.iter_batches(_ROWS_PER_BATCH, row_groups=groups, columns=columns))


def _fitted(batch: Any) -> Any:
    """Return the batch in memory of its own size: a reader leaves up to half of its buffers empty, and windows keep
    batches for long."""
    if any(map(_has_codes, batch.schema.types)):
        return batch
    return pa.ipc.read_record_batch(batch.serialize(), batch.schema)


def _has_codes(kind: pa.DataType) -> bool:
    """Return whether a type has dictionaries, which are no part of a serialized batch."""
    return pa.types.is_dictionary(kind) or any(_has_codes(kind.field(place).type) for place in range(kind.num_fields))


def read_batch(batch: Any, rows_before: int) -> Iterator[Event | MalformedRecord]:
    """The events of a batch, one by one."""
    micros = _micros(batch.column("at"))
    for index, row in enumerate(batch.drop_columns(["at"]).to_pylist() or [{} for _ in range(len(batch))]):
        yield _read_row(row, batch.column("at"), micros, index, rows_before + index + 1)


def _micros(column: Any) -> list[int | None] | None:
    """The instants of a timestamp column; None when the column has another type."""
    if not pa.types.is_timestamp(column.type):
        return None
    micros = column.cast(pa.timestamp("us", tz=column.type.tz), safe=False).cast(pa.int64())
    return list(micros.to_pylist())


def _read_row(
    row: dict[str, Any], at: Any, micros: list[int | None] | None, index: int, number: int
) -> Event | MalformedRecord:
    try:
        data = {name: _elements(items) for name, items in row.items()}
        if micros is None:
            return event_from_dict({"at": at[index].as_py(), **data})
        event_time = micros[index]
        if event_time is None:
            raise MalformedEventError("at: missing")
        event = event_from_dict({"at": 0, **data})
        return Event(event_time, event.nodes, event.relationships)
    except MalformedEventError as error:
        raw = json.dumps({"at": str(at[index].as_py()), **row}, default=str, ensure_ascii=False)
        return MalformedRecord(error.reason, number, raw)


def _elements(items: Any) -> Any:
    return [_element(item) for item in items] if isinstance(items, list) else items or []


def _element(item: Any) -> Any:
    """A struct as the JSON object it stands for: absent fields are null in a struct, a map is a list of pairs."""
    if not isinstance(item, dict):
        return item
    element = {key: value for key, value in item.items() if value is not None}
    properties = element.get("properties")
    if isinstance(properties, str):
        try:
            element["properties"] = json.loads(properties)
        except json.JSONDecodeError as error:
            raise MalformedEventError(f"properties: not JSON: {error.msg}") from None
    elif isinstance(properties, list) and all(isinstance(pair, tuple) for pair in properties):
        element["properties"] = dict(properties)
    return element


def write_parquet(events: Iterable[Event], file: BinaryIO | str) -> int:
    """Write events; properties become JSON text. Node ids are all numbers or all texts, and so are relationship ids."""
    rows = [_row(event) for event in events]
    nodes = [node["id"] for row in rows for node in row["nodes"]]
    ends = [end for row in rows for one in row["relationships"] for end in (one["from"], one["to"])]
    node_id = _id_type([*nodes, *ends], "node")
    relationship_id = _id_type([one["id"] for row in rows for one in row["relationships"]], "relationship")
    node = pa.struct([("id", node_id), ("labels", pa.list_(pa.string())), ("properties", pa.string())])
    relationship = pa.struct(
        [
            ("id", relationship_id),
            ("type", pa.string()),
            ("from", node_id),
            ("to", node_id),
            ("properties", pa.string()),
        ]
    )
    schema = pa.schema(
        [("at", pa.timestamp("us", tz="UTC")), ("nodes", pa.list_(node)), ("relationships", pa.list_(relationship))]
    )
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), file)
    return len(rows)


def _row(event: Event) -> dict[str, Any]:
    return {
        "at": event.event_time,
        "nodes": [
            {"id": node.id, "labels": list(node.labels), "properties": _text(node.properties)} for node in event.nodes
        ],
        "relationships": [
            {"id": one.id, "type": one.type, "from": one.source, "to": one.target, "properties": _text(one.properties)}
            for one in event.relationships
        ],
    }


def _text(properties: Any) -> str:
    return json.dumps({key: to_typed_json(value) for key, value in properties.items()}, ensure_ascii=False)


def _id_type(ids: list[Any], what: str) -> pa.DataType:
    kinds = {type(one) for one in ids if one is not None}
    if kinds == {int}:
        return pa.int64()
    if kinds <= {str}:
        return pa.string()
    raise StreamError(f"{what} ids are numbers and texts; a Parquet column holds one kind")
