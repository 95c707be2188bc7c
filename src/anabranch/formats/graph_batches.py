"""Arrow batches as a source of property-graph events: columns straight from Arrow's arrays, as Parquet files have them.

A batch is regular when its columns are as the event format has them (see `formats.parquet`): elements are structs of
the usual fields, with nothing missing and no element named twice in an event, and properties a struct, a map of texts
or JSON text. Any other batch is halved until its irregular rows are among few, and these are for the exact reader.

Law: a block of a batch has the events that `formats.parquet` reads from it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.errors import MalformedEventError, StreamError
from anabranch.formats.arrow_arrays import numbers, taken, truths
from anabranch.formats.arrow_values import (
    ArrowValues,
    IrregularBatch,
    absent,
    check_values,
    is_list,
    is_text,
    list_lengths,
    plain,
)
from anabranch.formats.chunks import pack_arrow
from anabranch.formats.events import FARTHEST_MILLIS, instant_from_json, properties_from_json
from anabranch.formats.parquet import read_batch
from anabranch.model.block import Times
from anabranch.model.event import Event
from anabranch.model.graph_block import (
    PROPERTIES,
    Bytes,
    Counts,
    GraphBlock,
    GraphColumns,
    GraphSource,
    NodeColumns,
    Places,
    PropertyKeys,
    RelationshipColumns,
    ValueColumn,
)
from anabranch.model.values import Value

Properties: TypeAlias = tuple[ValueColumn, ...]
Fields: TypeAlias = dict[str, pa.Array]

_COLUMNS = frozenset(("at", "nodes", "relationships", "edges"))
_NODE_FIELDS = frozenset(("id", "labels", "properties"))
_SOURCES, _TARGETS = ("from", "start", "source"), ("to", "end", "target")
_RELATIONSHIP_FIELDS = frozenset(("id", "type", "properties", *_SOURCES, *_TARGETS))
_FEWEST_ROWS = 256  # of a part of an irregular batch
_SHORT = 16  # elements: so many are compared in pairs


class GraphBatch(GraphSource):
    """Events that are the rows of a regular batch."""

    __slots__ = ("_columns", "batch", "times")

    def __init__(self, batch: pa.RecordBatch, times: Times, columns: GraphColumns | None = None) -> None:
        self.batch, self.times = batch, times
        self._columns = columns

    @classmethod
    def of(cls, batch: pa.RecordBatch, keys: PropertyKeys = ()) -> GraphBatch | None:
        """Return the source of a batch, None when it is not regular. `keys` are the properties that will be asked
        for."""
        try:
            return cls(batch, _times(batch), _BatchReader(_plain_keys(keys), is_checked=False).columns(batch))
        except (IrregularBatch, MalformedEventError, pa.ArrowException):
            return None

    @classmethod
    def of_regular(cls, batch: pa.RecordBatch) -> GraphBatch:
        """Return the source of a batch that was checked before."""
        try:
            return cls(batch, _times(batch))
        except (IrregularBatch, MalformedEventError):
            raise ValueError("a batch without times") from None

    def columns(self, keys: PropertyKeys) -> GraphColumns:
        found, self._columns = self._columns, None
        if found is None or not set(keys) <= set(found.keys):
            try:
                found = _BatchReader(_plain_keys(keys), is_checked=True).columns(self.batch)
            except (IrregularBatch, MalformedEventError):
                raise StreamError("the chunk is damaged: its rows are not those that were packed") from None
            if PROPERTIES in keys:
                found = found.with_properties(tuple(dict.fromkeys(keys)), self.events(range(len(self))))
        return found.with_keys(keys)

    def events(self, rows: Sequence[int]) -> list[Event]:
        found = []
        for event in read_batch(self.picked(np.array(rows, np.int64)), 0):
            if not isinstance(event, Event):
                raise StreamError(f"the chunk is damaged: {event.reason}")
            found.append(event)
        return found

    def packed(self, rows: Places) -> bytes:
        return packed_batches([(self, rows)])

    def picked(self, rows: Places) -> pa.RecordBatch:
        """Return the batch of these rows."""
        if not len(rows):
            return self.batch.slice(0, 0)
        first = int(rows[0])
        if (np.diff(rows) == 1).all():
            return self.batch.slice(first, len(rows))
        return pa.RecordBatch.from_arrays([taken(one, rows) for one in self.batch.columns], schema=self.batch.schema)


def _plain_keys(keys: PropertyKeys) -> PropertyKeys:
    return tuple(dict.fromkeys(key for key in keys if key != PROPERTIES))


def packed_batches(parts: Sequence[tuple[GraphBatch, Places]]) -> bytes:
    """Return one chunk with rows of one or several sources of one schema."""
    batches = [source.picked(rows) for source, rows in parts]
    batch = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
    names = batch.schema.names
    counts = [int(_lists(batch, name)[0].sum()) for name in ("nodes", _relationships_name(names))]
    times = np.concatenate([source.times[rows] for source, rows in parts])
    return pack_arrow(times, (counts[0], counts[1]), batch)


def read_blocks(batch: pa.RecordBatch, keys: PropertyKeys = ()) -> Iterator[GraphBlock | pa.RecordBatch]:
    """Yield the events of a batch as blocks, and between them, in their places, the batches for the exact reader."""
    if not len(batch):
        return
    source = GraphBatch.of(batch, keys)
    if source is not None:
        yield GraphBlock.of(source)
    elif len(batch) <= _FEWEST_ROWS:
        yield batch
    else:
        half = len(batch) // 2
        yield from read_blocks(batch.slice(0, half), keys)
        yield from read_blocks(batch.slice(half), keys)


# --- the parts of a batch ---------------------------------------------------------------------------------------------


def _times(batch: pa.RecordBatch) -> Times:
    names = batch.schema.names
    if "at" not in names or not _COLUMNS.issuperset(names) or len(set(names)) < len(names):
        raise IrregularBatch
    column = plain(batch.column("at"))
    if column.null_count:
        raise IrregularBatch
    if pa.types.is_timestamp(column.type):
        # As the reader of single events does: finer instants are cut to the microsecond.
        return numbers(column.cast(pa.timestamp("us", tz=column.type.tz), safe=False).cast(pa.int64())).copy()
    if pa.types.is_integer(column.type):
        millis = numbers(column.cast(pa.int64()))
        if ((millis > FARTHEST_MILLIS) | (millis < -FARTHEST_MILLIS)).any():
            raise IrregularBatch
        return millis * 1000
    if is_text(column.type):
        return _instants(column)
    raise IrregularBatch


def _instants(texts: pa.Array) -> Times:
    from anabranch.delta.json_lines import scan_instants

    check_values(texts)
    values = ArrowValues()
    starts, stops = values.spans(texts)
    rare, times = scan_instants(values.data(), starts, stops)
    for row in np.flatnonzero(rare).tolist():
        times[row] = instant_from_json(texts[row].as_py())
    return times


def _lists(batch: pa.RecordBatch, name: str) -> tuple[Counts, pa.Array]:
    """Return the number of elements of each event, and all elements in a row."""
    column = batch.column(name) if name in batch.schema.names else pa.nulls(len(batch))
    if pa.types.is_null(column.type):
        return np.zeros(len(batch), np.int64), pa.nulls(0)
    if not is_list(column.type):
        raise IrregularBatch
    values = column.flatten()
    if values.null_count or not (pa.types.is_struct(values.type) or len(values) == 0):
        raise IrregularBatch
    return list_lengths(column), values


def _relationships_name(names: Sequence[str]) -> str:
    if "edges" in names and "relationships" in names:
        raise IrregularBatch
    return "edges" if "edges" in names else "relationships"


def _fields(values: pa.Array, known: frozenset[str], needed: tuple[str, ...]) -> Fields:
    """Return the fields of elements; those of no elements are null."""
    if not len(values):
        return dict.fromkeys(needed, pa.nulls(0))
    names = [field.name for field in values.type]
    if not known.issuperset(names) or len(set(names)) < len(names):
        raise IrregularBatch
    fields = dict(zip(names, values.flatten(), strict=True))
    for group in (_SOURCES, _TARGETS):
        found = [name for name in group if name in fields]
        if len(found) > 1:
            raise IrregularBatch
        if found:
            fields[group[0]] = fields.pop(found[0])
    if any(name not in fields or fields[name].null_count for name in needed):
        raise IrregularBatch
    return {name: plain(array) for name, array in fields.items()}


class _BatchReader:
    """Reads the columns of batches, with some properties. Values of a batch that `is_checked` are not checked again."""

    def __init__(self, keys: PropertyKeys, *, is_checked: bool) -> None:
        self._keys = keys
        self._is_checked = is_checked
        self._values = ArrowValues()

    def columns(self, batch: pa.RecordBatch) -> GraphColumns:
        nodes_per_event, nodes = _lists(batch, "nodes")
        links_per_event, links = _lists(batch, _relationships_name(batch.schema.names))
        node = _fields(nodes, _NODE_FIELDS, ("id",))
        link = _fields(links, _RELATIONSHIP_FIELDS, ("type", "from", "to"))
        if not self._is_checked:
            _refuse_twice(nodes_per_event, node["id"])
            if "id" in link:
                _refuse_twice(links_per_event, link["id"])
        node_ids = self._ids(node["id"])
        labels = self._values.labels(node["labels"]) if "labels" in node else absent(len(nodes))
        link_ids = self._ids(link["id"]) if "id" in link else absent(len(links))
        types = self._types(link["type"])
        sources, targets = self._ids(link["from"]), self._ids(link["to"])
        # Texts of JSON are scanned when all bytes are in their places.
        node_properties = self._properties(node.get("properties"), len(nodes))
        link_properties = self._properties(link.get("properties"), len(links))
        data = self._values.data()
        return GraphColumns(
            self._keys,
            data,
            self._values.objects,
            NodeColumns(nodes_per_event, node_ids, labels, node_properties(data)),
            RelationshipColumns(links_per_event, link_ids, types, sources, targets, link_properties(data)),
        )

    def _ids(self, array: pa.Array) -> ValueColumn:
        if not (pa.types.is_integer(array.type) or is_text(array.type) or pa.types.is_null(array.type)):
            raise IrregularBatch
        self._check(array)
        return self._values.column(array)

    def _types(self, array: pa.Array) -> ValueColumn:
        if not (is_text(array.type) or pa.types.is_null(array.type)):
            raise IrregularBatch
        self._check(array)
        found = self._values.column(array)
        if (found.firsts == found.stops).any():
            raise IrregularBatch
        return found

    def _check(self, array: pa.Array) -> None:
        if not self._is_checked:
            check_values(array)

    def _properties(self, array: pa.Array | None, count: int) -> Callable[[Bytes], Properties]:
        """Return a function that gives the columns of properties, once there are the bytes of all texts."""
        if array is None or pa.types.is_null(array.type):
            return lambda data: (absent(count),) * len(self._keys)
        if is_text(array.type):
            self._check(array)
            starts, stops = self._values.spans(array)
            if array.null_count:
                starts = np.where(truths(array.is_valid()), starts, -1)
            return lambda data: self._scanned(data, starts, stops)
        if pa.types.is_struct(array.type):
            columns = self._of_struct(array)
        elif pa.types.is_map(array.type):
            columns = self._of_map(array)
        else:
            raise IrregularBatch
        return lambda data: columns

    def _of_struct(self, array: pa.Array) -> Properties:
        names = [field.name for field in array.type]
        if len(set(names)) < len(names):
            raise IrregularBatch
        fields = dict(zip(names, array.flatten(), strict=True))
        for field in fields.values():
            self._check(field)
        return tuple(self._values.column(fields[key]) if key in fields else absent(len(array)) for key in self._keys)

    def _of_map(self, array: pa.Array) -> Properties:
        kind = array.type
        if not is_text(kind.key_type):
            raise IrregularBatch
        pairs = array.cast(pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)])))
        names, items = pairs.flatten().flatten()
        self._check(names)
        self._check(items)
        if not self._keys:
            return ()
        rows = np.repeat(np.arange(len(array)), list_lengths(pairs))
        column = self._values.column(items)
        found = []
        for key in self._keys:
            places = np.flatnonzero(truths(pc.equal(names, key)))
            one = absent(len(array))
            # Of a key that comes twice, the last value stays.
            _put(one, rows[places], column.picked(places))
            found.append(one)
        return tuple(found)

    def _scanned(self, data: Bytes, starts: Places, stops: Places) -> Properties:
        """Return the columns of maps in JSON; maps with anything rare are read one by one."""
        # Other properties need no kernels.
        from anabranch.delta.json_lines import scan_maps

        is_rare, columns = scan_maps(data, starts, stops, self._keys)
        rare = np.flatnonzero(is_rare)
        if not len(rare):
            return columns
        maps = [_property_map(data[starts[row] : stops[row]].tobytes()) for row in rare.tolist()]
        for key, column in zip(self._keys, columns, strict=True):
            _put(column, rare, self._values.object_column([one.get(key) for one in maps]))
        return columns


def _put(column: ValueColumn, rows: Places, values: ValueColumn) -> None:
    column.kinds[rows], column.firsts[rows], column.stops[rows] = values


def _property_map(text: bytes) -> dict[str, Value]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise IrregularBatch from None
    return {} if found is None or found == {} else properties_from_json(found, "properties")


def _refuse_twice(per_event: Counts, ids: pa.Array) -> None:
    """Leave a batch in which an event names an element twice to the exact reader."""
    longest = int(per_event.max()) if len(per_event) else 0
    if longest < 2 or pa.types.is_null(ids.type):
        return
    events = np.repeat(np.arange(len(per_event)), per_event)
    if longest > _SHORT:
        codes = numbers(pc.fill_null(ids.dictionary_encode().indices, -1))
        order = np.lexsort((codes, events))
        ids, events, longest = taken(ids, order), events[order], 2
    for distance in range(1, longest):
        # Of elements without an id none is named twice.
        alike = pc.equal(ids[distance:], ids[:-distance])
        named = truths(pc.fill_null(alike, False) if alike.null_count else alike)
        if (named & (events[distance:] == events[:-distance])).any():
            raise IrregularBatch
