"""Packing of Arrow columns into chunks without one event in between: the quick way for Parquet.

A batch whose columns are as the event format has them (`at` a timestamp or epoch milliseconds, `nodes` and
`relationships` lists of structs with the usual names and nothing missing) is packed by arrays; each distinct value is
processed once. Any other batch gives None, and is read event by event, which also finds what is wrong with it.

Law: `unpack(pack_arrow(batch))` are the events that `formats.parquet` reads from the batch.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.errors import MalformedEventError
from anabranch.formats.arrow_arrays import numbers
from anabranch.formats.chunks import Array, IdCodes, JsonCodes, assemble, properties_text
from anabranch.formats.events import properties_from_json

_NODE_FIELDS = frozenset(("id", "labels", "properties"))
_RELATIONSHIP_FIELDS = frozenset(("id", "type", "from", "to", "properties"))
_SEPARATOR = "\x00"


class _Irregular(Exception):
    """The batch is not of the shape that can be packed by arrays."""


def pack_arrow(batch: pa.RecordBatch) -> bytes | None:
    """Return the chunk of a batch of events, or None when it must be read event by event."""
    try:
        return _pack(batch)
    except (_Irregular, MalformedEventError):
        return None


def _pack(batch: pa.RecordBatch) -> bytes:
    names = set(batch.schema.names)
    if "at" not in names or {"edges", "relationships"} <= names:
        raise _Irregular
    ids, labels, types, properties = IdCodes(), JsonCodes(), JsonCodes(), JsonCodes()
    nodes_per_event, node_values = _lists(batch, "nodes")
    name = "edges" if "edges" in names else "relationships"
    relationships_per_event, relationship_values = _lists(batch, name)
    nodes = _nodes(node_values, ids, labels, properties)
    relationships = _relationships(relationship_values, ids, types, properties)
    _refuse_twice(nodes_per_event, nodes[0])
    with_id = relationships[0] != ids.codes.get(None, -1)
    _refuse_twice(relationships_per_event, relationships[0], with_id)
    dictionaries = [one.text() for one in (ids, labels, types, properties)]
    return assemble(
        _times(batch.column("at")), nodes_per_event, relationships_per_event, nodes, relationships, dictionaries
    )


def _times(column: pa.Array) -> Array:
    if column.null_count:
        raise _Irregular
    if pa.types.is_timestamp(column.type):
        # As the reader of single events does: finer instants are cut to the microsecond.
        micros = column.cast(pa.timestamp("us", tz=column.type.tz), safe=False).cast(pa.int64())
        return numbers(micros)
    if pa.types.is_int64(column.type):
        millis = numbers(column)
        if len(millis) and (np.abs(millis) > 2**63 // 1000 - 1).any():
            raise _Irregular
        return millis * 1000
    raise _Irregular


def _lists(batch: pa.RecordBatch, name: str) -> tuple[Array, pa.Array]:
    """Return the number of elements of each event, and all elements in a row."""
    if name not in batch.schema.names:
        return np.zeros(len(batch), dtype=np.uint32), pa.nulls(0)
    column = batch.column(name)
    if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
        raise _Irregular
    values = column.flatten()
    if values.null_count or not (pa.types.is_struct(values.type) or len(values) == 0):
        raise _Irregular
    return numbers(pc.fill_null(pc.list_value_length(column), 0)).astype(np.uint32), values


def _fields(values: pa.Array, known: frozenset[str], needed: tuple[str, ...]) -> dict[str, pa.Array]:
    if len(values) == 0:
        return {}
    names = [values.type.field(index).name for index in range(values.type.num_fields)]
    if not set(names) <= known or not set(needed) <= set(names):
        raise _Irregular
    fields = dict(zip(names, values.flatten(), strict=True))
    if any(fields[name].null_count for name in needed):
        raise _Irregular
    return fields


def _nodes(values: pa.Array, ids: IdCodes, labels: JsonCodes, properties: JsonCodes) -> Array:
    fields = _fields(values, _NODE_FIELDS, ("id",))
    if not fields:
        return np.zeros((3, 0), dtype=np.uint32)
    return np.stack(
        (
            _id_codes(fields["id"], ids),
            _label_codes(fields.get("labels"), labels, len(values)),
            _property_codes(fields.get("properties"), properties, len(values)),
        )
    )


def _relationships(values: pa.Array, ids: IdCodes, types: JsonCodes, properties: JsonCodes) -> Array:
    fields = _fields(values, _RELATIONSHIP_FIELDS, ("type", "from", "to"))
    if not fields:
        return np.zeros((5, 0), dtype=np.uint32)
    own = fields.get("id")
    return np.stack(
        (
            np.full(len(values), ids.code(None), np.uint32) if own is None else _id_codes(own, ids),
            _type_codes(fields["type"], types),
            _id_codes(fields["from"], ids),
            _id_codes(fields["to"], ids),
            _property_codes(fields.get("properties"), properties, len(values)),
        )
    )


def _encoded(values: pa.Array) -> tuple[Array, list[Any]]:
    """Codes into the distinct values, in the order in which they first come; null is one of them."""
    encoded = values.dictionary_encode(null_encoding="encode")
    return numbers(encoded.indices), encoded.dictionary.to_pylist()


def _translated(values: pa.Array, code_of: Any) -> Array:
    codes, distinct = _encoded(values)
    table = np.fromiter((code_of(value) for value in distinct), dtype=np.uint32, count=len(distinct))
    return table[codes]


def _id_codes(values: pa.Array, ids: IdCodes) -> Array:
    if not (pa.types.is_integer(values.type) or _is_text(values.type) or pa.types.is_null(values.type)):
        raise _Irregular
    if pa.types.is_uint64(values.type):
        raise _Irregular
    return _translated(values, ids.code)


def _type_codes(values: pa.Array, types: JsonCodes) -> Array:
    if not _is_text(values.type):
        raise _Irregular

    def code(name: str) -> int:
        if not name:
            raise _Irregular
        return types.code(json.dumps(name, ensure_ascii=False))

    return _translated(values, code)


def _label_codes(values: pa.Array | None, labels: JsonCodes, count: int) -> Array:
    if values is None:
        return np.full(count, labels.code("[]"), np.uint32)
    if not (pa.types.is_list(values.type) and _is_text(values.type.value_type)):
        raise _Irregular
    flat = values.flatten()
    if flat.null_count or any(not name or _SEPARATOR in name for name in flat.unique().to_pylist()):
        raise _Irregular

    def code(joined: str | None) -> int:
        names = dict.fromkeys(joined.split(_SEPARATOR)) if joined else ()
        return labels.code(json.dumps(list(names), ensure_ascii=False))

    return _translated(pc.binary_join(values, _SEPARATOR), code)


def _property_codes(values: pa.Array | None, properties: JsonCodes, count: int) -> Array:
    if values is None:
        return np.full(count, properties.code("{}"), np.uint32)
    if _is_text(values.type):
        return _translated(values, lambda text: _property_code(None if text is None else _loaded(text), properties))
    if pa.types.is_struct(values.type) or pa.types.is_map(values.type):
        found = values.to_pylist()
        codes = (_property_code(dict(one) if one else None, properties) for one in found)
        return np.fromiter(codes, dtype=np.uint32, count=len(found))
    raise _Irregular


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise _Irregular from None


def _property_code(said: Any, properties: JsonCodes) -> int:
    return properties.code(properties_text(properties_from_json(said, "properties") if said else {}))


def _refuse_twice(per_event: Array, ids: Array, counted: Array | None = None) -> None:
    """Leave a batch in which an event names an element twice to the reader of single events."""
    events = np.repeat(np.arange(len(per_event), dtype=np.int64), per_event)
    keys = (events << 32) | ids.astype(np.int64)
    if counted is not None:
        keys = keys[counted]
    if len(np.unique(keys)) != len(keys):
        raise _Irregular


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
