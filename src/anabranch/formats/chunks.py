"""Chunks: events packed into columns, the form in which they travel through Spark and lie in its state.

A chunk is a header, arrays of codes, and dictionaries. Ids, label sets, types, property maps and terms are written once
each and named by their code everywhere else, so what repeats in a stream costs few bytes, and a reader that wants
arrays of codes has them without looking at one element. All numbers are little-endian.

    header    "ANBC", format, layout, codec, events, nodes, relationships, triples, first and last event time, size of
              the body
    body      as it is, or compressed where that is shorter: with lz4 if the layout is `lines`, else with zstd

The body of the layout `events`, which holds whatever events there are:

    event times (int64); nodes, relationships and triples per event (uint32); node id, labels and properties;
    relationship id, type, source, target and properties; subject, predicate and object (uint32 codes); the dictionaries
    (JSON), where an IRI is its text, a literal ["text"], ["text", datatype] or ["text", "", language], and a blank node
    [0, label, document]

The body of the layout `block`, for events of one triple each:

    bytes per time and per code; times behind the first (uint32 or uint64); subject, predicate and object (uint16 or
    uint32 codes); the terms (see `term_columns`)

Packing and opening a block costs Python's time for distinct terms alone.

The body of the layout `lines`, for property-graph events that came as lines of NDJSON:

    distances of event times, the first from 0 (int64); bytes per line (uint32); the lines, each with a line end behind
    it

The body of the layout `arrow`, for property-graph events that came as Arrow batches:

    the batch as a stream of Arrow's format for interprocess communication

Opening these two decodes no event (see `graph_lines`, `graph_batches`). Relationships without an id stay so, until a
stream accepts them.

Invariant: `unpack(pack(events))` are the same events in the same order, with every value and its type.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from anabranch.errors import StreamError
from anabranch.formats.term_columns import TermColumns
from anabranch.formats.values import from_typed_json, to_typed_json
from anabranch.model.block import TripleBlock
from anabranch.model.event import Event
from anabranch.model.graph_block import GraphBlock
from anabranch.model.terms import LANG_STRING, XSD_STRING, Blank, Iri, Literal, Term, Triple
from anabranch.model.values import ElementId, Node, Relationship, Value

if TYPE_CHECKING:
    from anabranch.formats.graph_batches import GraphBatch
    from anabranch.formats.graph_lines import GraphLines

Array: TypeAlias = np.ndarray[Any, Any]
K = TypeVar("K")

FORMAT = 3
EVENTS_PER_CHUNK = 16_384
ELEMENTS_PER_CHUNK = 65_536

_MAGIC = b"ANBC"
_HEADER = struct.Struct("<4sBBBxIIIIqqI")
_WIDTHS = struct.Struct("<BB2x")
_CODE = np.dtype("<u4")
_TIME = np.dtype("<i8")
_PLACES: dict[int, np.dtype[Any]] = {2: np.dtype("<u2"), 4: np.dtype("<u4")}
_OFFSETS: dict[int, np.dtype[Any]] = {4: np.dtype("<u4"), 8: np.dtype("<u8")}
_DAMAGE = (pa.ArrowException, OSError, ValueError, IndexError, TypeError, struct.error)
_PLAIN = frozenset((str, int, bool, float))


class ChunkLayout(IntEnum):
    EVENTS = 0
    BLOCK = 1
    LINES = 2
    ARROW = 3


class Codec(IntEnum):
    NONE = 0
    ZSTD = 1
    LZ4 = 2


@dataclass(frozen=True, slots=True)
class Head:
    """The header of a chunk, readable before the chunk is opened."""

    layout: ChunkLayout
    codec: Codec
    events: int
    nodes: int
    relationships: int
    triples: int
    first: int
    last: int
    body: int


@dataclass(frozen=True, slots=True)
class ReducedChunk:
    """A chunk of some rows, and the number of rows that it stands for."""

    data: bytes
    rows: int


class CodeBook(dict[K, int]):
    """Codes by what they stand for, in the order in which it first came."""

    __slots__ = ()

    def __missing__(self, key: K) -> int:
        code = self[key] = len(self)
        return code


class ChunkWriter:
    """Collects events and packs them."""

    def __init__(self) -> None:
        self._times: list[int] = []
        self._nodes_per_event: list[int] = []
        self._relationships_per_event: list[int] = []
        self._triples_per_event: list[int] = []
        self._nodes: list[int] = []
        self._relationships: list[int] = []
        self._triples: list[int] = []
        self._ids: CodeBook[ElementId | None] = CodeBook()
        self._labels: CodeBook[str] = CodeBook()
        self._types: CodeBook[str] = CodeBook()
        self._properties: CodeBook[str] = CodeBook()
        self._terms: CodeBook[Term] = CodeBook()

    def __len__(self) -> int:
        return len(self._times)

    @property
    def is_full(self) -> bool:
        elements = len(self._nodes) // 3 + len(self._relationships) // 5 + len(self._triples) // 3
        return len(self._times) >= EVENTS_PER_CHUNK or elements >= ELEMENTS_PER_CHUNK

    def add(self, event: Event) -> None:
        self._times.append(event.event_time)
        self._nodes_per_event.append(len(event.nodes))
        self._relationships_per_event.append(len(event.relationships))
        self._triples_per_event.append(len(event.triples))
        for triple in event.triples:
            self._triples += map(self._terms.__getitem__, triple)
        ids = self._ids
        for node in event.nodes:
            labels = self._labels[json.dumps(node.labels, ensure_ascii=False)]
            self._nodes += (ids[node.id], labels, self._properties[properties_text(node.properties)])
        for one in event.relationships:
            self._relationships += (
                ids[one.id],
                self._types[json.dumps(one.type, ensure_ascii=False)],
                ids[one.source],
                ids[one.target],
                self._properties[properties_text(one.properties)],
            )

    def pack(self) -> bytes:
        times = np.array(self._times, dtype=_TIME)
        if times.size and not self._nodes and not self._relationships and set(self._triples_per_event) == {1}:
            columns = np.array(self._triples, np.int32).reshape(-1, 3).T
            return pack_block(TripleBlock(times, list(self._terms), *columns))
        return assemble(
            times,
            np.array(self._nodes_per_event, dtype=_CODE),
            np.array(self._relationships_per_event, dtype=_CODE),
            np.array(self._nodes, dtype=_CODE).reshape(-1, 3).T,
            np.array(self._relationships, dtype=_CODE).reshape(-1, 5).T,
            [
                json.dumps(list(self._ids), ensure_ascii=False, separators=(",", ":")),
                *(f"[{','.join(texts)}]" for texts in (self._labels, self._types, self._properties)),
                terms_text(self._terms),
            ],
            np.array(self._triples_per_event, dtype=_CODE),
            np.array(self._triples, dtype=_CODE).reshape(-1, 3).T,
        )


def assemble(
    times: Array,
    nodes_per_event: Array,
    relationships_per_event: Array,
    nodes: Array,
    relationships: Array,
    dictionaries: Sequence[str],
    triples_per_event: Array,
    triples: Array,
) -> bytes:
    """A chunk of its arrays (`nodes` has the rows id, labels, properties; `relationships` id, type, source, target,
    properties; `triples` subject, predicate, object) and the JSON lists of ids, label sets, types, property maps and
    terms."""
    body = b"".join(
        (
            times.astype(_TIME, copy=False).tobytes(),
            nodes_per_event.astype(_CODE, copy=False).tobytes(),
            relationships_per_event.astype(_CODE, copy=False).tobytes(),
            triples_per_event.astype(_CODE, copy=False).tobytes(),
            nodes.astype(_CODE, copy=False).tobytes(),
            relationships.astype(_CODE, copy=False).tobytes(),
            triples.astype(_CODE, copy=False).tobytes(),
            f"[{','.join(dictionaries)}]".encode("utf-8", "surrogatepass"),
        )
    )
    return _closed(ChunkLayout.EVENTS, (nodes.shape[1], relationships.shape[1], triples.shape[1]), times, body)


def pack_block(block: TripleBlock) -> bytes:
    """The events of a block as one chunk."""
    narrow = block.narrowed()
    terms, places = TermColumns.of(narrow.terms)
    return pack_columns(narrow.times, places[narrow.subjects], places[narrow.predicates], places[narrow.objects], terms)


def pack_columns(times: Array, subjects: Array, predicates: Array, objects: Array, terms: TermColumns) -> bytes:
    """Events of one triple each as one chunk: their times, and their terms as places in the columns of terms."""
    first = int(times.min()) if len(times) else 0
    offsets = times.astype(np.uint64) - np.uint64(first & 0xFFFF_FFFF_FFFF_FFFF)  # wraps, and so does the way back
    time_width = 4 if not len(times) or int(offsets.max()) < 1 << 32 else 8
    code_width = 2 if len(terms) <= 1 << 16 else 4
    body = b"".join(
        (
            _WIDTHS.pack(time_width, code_width),
            offsets.astype(_OFFSETS[time_width], copy=False).tobytes(),
            *(codes.astype(_PLACES[code_width], copy=False).tobytes() for codes in (subjects, predicates, objects)),
            terms.to_bytes(),
        )
    )
    return _closed(ChunkLayout.BLOCK, (0, 0, len(times)), times, body)


def pack_lines(times: Array, counts: tuple[int, int], lengths: Array, lines: bytes) -> bytes:
    """Events as one chunk of the lines in which they came: their times, how many nodes and relationships they have, and
    the bytes of each line without its end."""
    distances = np.diff(times, prepend=0)
    body = b"".join((distances.astype(_TIME, copy=False).tobytes(), lengths.astype(_CODE, copy=False).tobytes(), lines))
    return _closed(ChunkLayout.LINES, (*counts, 0), times, body)


def pack_arrow(times: Array, counts: tuple[int, int], batch: pa.RecordBatch) -> bytes:
    """Events as one chunk of the batch in which they came: also their times, and how many nodes and relationships they
    have."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return _closed(ChunkLayout.ARROW, (*counts, 0), times, sink.getvalue())


def _pack_graph(block: GraphBlock) -> bytes:
    from anabranch.formats.graph_batches import GraphBatch, packed_batches
    from anabranch.formats.graph_lines import GraphLines, packed_lines

    # Runs of rows of one part each, in the order of the block.
    bounds = np.flatnonzero(np.diff(block.parts_of, prepend=-1, append=-1))
    runs = [
        (block.parts[int(block.parts_of[first])].source, block.rows[first:stop])
        for first, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    ]
    if len(runs) == 1:
        ((source, rows),) = runs
        return source.packed(rows)
    lines = [(source, rows) for source, rows in runs if isinstance(source, GraphLines)]
    if runs and len(lines) == len(runs):
        return packed_lines(lines)
    batches = [(source, rows) for source, rows in runs if isinstance(source, GraphBatch)]
    if runs and len(batches) == len(runs) and len({one.batch.schema for one, _ in batches}) == 1:
        return packed_batches(batches)
    return pack(event for source, rows in runs for event in source.events(rows.tolist()))


def _closed(layout: ChunkLayout, counts: tuple[int, int, int], times: Array, body: bytes | pa.Buffer) -> bytes:
    first, last = (int(times.min()), int(times.max())) if len(times) else (0, 0)
    # Lines take less of a processor's time with lz4, for twice the bytes; codes and terms gain nothing by it.
    codec = Codec.LZ4 if layout is ChunkLayout.LINES else Codec.ZSTD
    packed: bytes = pa.compress(body, codec=codec.name.lower(), asbytes=True)
    if len(packed) >= len(body):
        codec, packed = Codec.NONE, bytes(body)
    return _HEADER.pack(_MAGIC, FORMAT, layout, codec, len(times), *counts, first, last, len(body)) + packed


def pack(events: Iterable[Event]) -> bytes:
    """The events as one chunk."""
    if isinstance(events, TripleBlock):
        return pack_block(events)
    if isinstance(events, GraphBlock):
        return _pack_graph(events)
    writer = ChunkWriter()
    for event in events:
        writer.add(event)
    return writer.pack()


def pack_all(events: Iterable[Event]) -> Iterator[bytes]:
    """The events as chunks of a handy size; none for no events."""
    writer = ChunkWriter()
    for event in events:
        writer.add(event)
        if writer.is_full:
            yield writer.pack()
            writer = ChunkWriter()
    if len(writer):
        yield writer.pack()


def head(data: bytes) -> Head:
    if len(data) < _HEADER.size or data[:4] != _MAGIC:
        raise StreamError("this is not a chunk of events")
    _, version, layout, codec, *counts = _HEADER.unpack_from(data)
    if version != FORMAT:
        raise StreamError(f"the chunk has format {version}; this version of Anabranch reads format {FORMAT}")
    try:
        return Head(ChunkLayout(layout), Codec(codec), *counts)
    except ValueError as error:
        raise StreamError(f"the chunk is damaged: {error}") from None


def opened(data: bytes) -> TripleBlock | GraphBlock | list[Event]:
    """The events of a chunk: as a block where each is one triple or where they came in columns, else one by one."""
    match head(data).layout:
        case ChunkLayout.BLOCK:
            return _block(data)
        case ChunkLayout.LINES:
            return GraphBlock.of(_lines(data))
        case ChunkLayout.ARROW:
            return GraphBlock.of(_batch(data))
        case ChunkLayout.EVENTS:
            return _events(data)


def unpack(data: bytes) -> list[Event]:
    """The events of a chunk, one by one."""
    found = opened(data)
    return found if isinstance(found, list) else found.events()


def _body(found: Head, data: bytes) -> bytes:
    body = data[_HEADER.size :]
    if found.codec is not Codec.NONE:
        body = pa.decompress(body, found.body, codec=found.codec.name.lower(), asbytes=True)
    if len(body) != found.body:
        raise ValueError("it is cut off")
    return body


def _block(data: bytes) -> TripleBlock:
    found = head(data)
    count = found.events
    try:
        body = _body(found, data)
        time_width, code_width = _WIDTHS.unpack_from(body)
        place = _WIDTHS.size
        offsets = np.frombuffer(body, _OFFSETS[time_width], count, place)
        place += offsets.nbytes
        codes = np.frombuffer(body, _PLACES[code_width], 3 * count, place)
        terms = TermColumns.from_bytes(body, place + codes.nbytes).lazy()
        if count and int(codes.max()) >= len(terms):
            raise ValueError("a code without a term")
    except (*_DAMAGE, KeyError) as error:
        raise StreamError(f"the chunk is damaged: {error}") from None
    times = (offsets.astype(np.uint64) + np.uint64(found.first & 0xFFFF_FFFF_FFFF_FFFF)).astype(np.int64)
    return TripleBlock(times, terms, *codes.astype(np.int32).reshape(3, count))


def _lines(data: bytes) -> GraphLines:
    from anabranch.formats.graph_lines import GraphLines

    found = head(data)
    try:
        body = _body(found, data)
        times = np.cumsum(np.frombuffer(body, _TIME, found.events))
        lengths = np.frombuffer(body, _CODE, found.events, times.nbytes).astype(np.int64)
        return GraphLines.of_regular(memoryview(body)[times.nbytes + 4 * found.events :], lengths, times)
    except _DAMAGE as error:
        raise StreamError(f"the chunk is damaged: {error}") from None


def _batch(data: bytes) -> GraphBatch:
    from anabranch.formats.graph_batches import GraphBatch

    found = head(data)
    try:
        with pa.ipc.open_stream(_body(found, data)) as stream:
            batch = stream.read_next_batch()
        batch.validate()
        if len(batch) != found.events:
            raise ValueError("it has another number of rows")
        return GraphBatch.of_regular(batch)
    except (*_DAMAGE, StopIteration) as error:
        raise StreamError(f"the chunk is damaged: {error}") from None


def _events(data: bytes) -> list[Event]:
    found = head(data)
    try:
        body = _body(found, data)
    except _DAMAGE as error:
        raise StreamError(f"the chunk is damaged: {error}") from None
    place = 0

    def take(count: int, dtype: np.dtype[Any]) -> Array:
        nonlocal place
        array = np.frombuffer(body, dtype, count, place)
        place += array.nbytes
        return array

    event_times = take(found.events, _TIME)
    per_event = take(3 * found.events, _CODE).reshape(3, -1)
    node_codes = take(3 * found.nodes, _CODE).reshape(3, -1).tolist()
    relationship_codes = take(5 * found.relationships, _CODE).reshape(5, -1).tolist()
    triple_codes = take(3 * found.triples, _CODE).reshape(3, -1).tolist()
    ids, label_sets, types, maps, term_data = json.loads(body[place:].decode("utf-8", "surrogatepass"))
    labels = [tuple(names) for names in label_sets]
    properties = [_properties_of(one) for one in maps]
    terms = [_term_of(one) for one in term_data]
    nodes = [Node(ids[one], labels[two], properties[three]) for one, two, three in zip(*node_codes, strict=True)]
    relationships = [
        Relationship(ids[one], types[two], ids[three], ids[four], properties[five])
        for one, two, three, four, five in zip(*relationship_codes, strict=True)
    ]
    triples = [Triple(terms[one], terms[two], terms[three]) for one, two, three in zip(*triple_codes, strict=True)]
    events = []
    node = relationship = triple = 0
    for event_time, node_count, relationship_count, triple_count in zip(
        event_times.tolist(), *per_event.tolist(), strict=True
    ):
        own_nodes = tuple(nodes[node : node + node_count])
        own_relationships = tuple(relationships[relationship : relationship + relationship_count])
        own_triples = tuple(triples[triple : triple + triple_count])
        events.append(Event(event_time, own_nodes, own_relationships, own_triples))
        node += node_count
        relationship += relationship_count
        triple += triple_count
    return events


def terms_text(terms: Iterable[Term]) -> str:
    """Return terms as a chunk's dictionary holds them."""
    return json.dumps([_term_to_json(term) for term in terms], ensure_ascii=False, separators=(",", ":"))


def _term_to_json(term: Term) -> str | list[str | int]:
    match term:
        case Iri(value):
            return value
        case Blank(label, document):
            return [0, label, document]
        case Literal(lexical, datatype, language):
            if language:
                return [lexical, "", language]
            return [lexical] if datatype == XSD_STRING else [lexical, datatype]


def _term_of(data: Any) -> Term:
    if data.__class__ is str:
        return Iri(data)
    match data:
        case [0, label, document]:
            return Blank(label, document)
        case [lexical, datatype]:
            return Literal(lexical, datatype)
        case [lexical, _, language]:
            return Literal(lexical, LANG_STRING, language)
        case [lexical]:
            return Literal(lexical)
    raise StreamError("the chunk is damaged: a term that is none")


def properties_text(properties: Any) -> str:
    """Return a property map as a chunk's dictionary holds it."""
    if not properties:
        return "{}"
    for value in properties.values():
        if value.__class__ not in _PLAIN:
            # A map behind a `$typed` key holds values that JSON alone would not bring back.
            return json.dumps(
                {"$typed": {key: to_typed_json(one) for key, one in properties.items()}}, ensure_ascii=False
            )
    if "$typed" in properties:
        return json.dumps({"$typed": dict(properties)}, ensure_ascii=False)
    return json.dumps(properties if type(properties) is dict else dict(properties), ensure_ascii=False)


def _properties_of(data: dict[str, Any]) -> dict[str, Value]:
    typed = data.get("$typed")
    if typed is None:
        return data
    return {key: from_typed_json(value) for key, value in typed.items()}
