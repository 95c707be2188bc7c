"""Chunks: events packed into columns, the form in which they travel through Spark and lie in its state.

A chunk is a header, arrays of codes, and dictionaries. Ids, label sets, types and property maps are written once each
and named by their code everywhere else, so what repeats in a stream costs four bytes, and a reader that wants arrays
of codes has them without looking at one element.

    header    "ANBC", format, events, nodes, relationships, triples, first and last event time, size of the body
    body      zstd of: event times (int64); nodes, relationships and triples per event (uint32); node id, labels and
              properties; relationship id, type, source, target and properties; subject, predicate and object (uint32
              codes); the dictionaries (JSON)

In the dictionary of terms an IRI is its text, a literal ["text"], ["text", datatype] or ["text", "", language], and a
blank node [0, label, document].

Invariant: `unpack(pack(events))` are the same events in the same order, with every value and its type.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from anabranch.errors import StreamError
from anabranch.formats.values import from_typed_json, to_typed_json
from anabranch.model.event import Event
from anabranch.model.terms import LANG_STRING, XSD_STRING, Blank, Iri, Literal, Term, Triple
from anabranch.model.values import ElementId, Node, Relationship, Value

Array: TypeAlias = np.ndarray[Any, Any]

FORMAT = 2
EVENTS_PER_CHUNK = 16_384
ELEMENTS_PER_CHUNK = 65_536

_MAGIC = b"ANBC"
_HEADER = struct.Struct("<4sB3xIIIIqqI")
_CODEC = "zstd"
_CODE = np.dtype("<u4")
_TIME = np.dtype("<i8")
_PLAIN = frozenset((str, int, bool, float))


@dataclass(frozen=True, slots=True)
class Head:
    """What a chunk says about itself before it is opened."""

    events: int
    nodes: int
    relationships: int
    triples: int
    first: int
    last: int
    body: int

    @property
    def elements(self) -> int:
        return self.nodes + self.relationships + self.triples


class Dictionary:
    """Texts of JSON in the order in which they first came, and their codes."""

    __slots__ = ("codes",)

    def __init__(self) -> None:
        self.codes: dict[str, int] = {}

    def code(self, text: str) -> int:
        return self.codes.setdefault(text, len(self.codes))

    def text(self) -> str:
        return f"[{','.join(self.codes)}]"


class Ids:
    """Ids in the order in which they first came, and their codes."""

    __slots__ = ("codes",)

    def __init__(self) -> None:
        self.codes: dict[ElementId | None, int] = {}

    def code(self, element_id: ElementId | None) -> int:
        return self.codes.setdefault(element_id, len(self.codes))

    def text(self) -> str:
        return json.dumps(list(self.codes), ensure_ascii=False, separators=(",", ":"))


class Terms:
    """RDF terms in the order in which they first came, and their codes."""

    __slots__ = ("codes",)

    def __init__(self) -> None:
        self.codes: dict[Term, int] = {}

    def code(self, term: Term) -> int:
        return self.codes.setdefault(term, len(self.codes))

    def text(self) -> str:
        return json.dumps([_term_to_json(term) for term in self.codes], ensure_ascii=False, separators=(",", ":"))


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
        self._ids = Ids()
        self._labels = Dictionary()
        self._types = Dictionary()
        self._properties = Dictionary()
        self._terms = Terms()

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
        if event.triples:
            term_code = self._terms.code
            for triple in event.triples:
                self._triples += map(term_code, triple)
        id_code = self._ids.code
        for node in event.nodes:
            labels = self._labels.code(json.dumps(node.labels, ensure_ascii=False))
            self._nodes += (id_code(node.id), labels, self._properties.code(properties_text(node.properties)))
        for one in event.relationships:
            self._relationships += (
                id_code(one.id),
                self._types.code(json.dumps(one.type, ensure_ascii=False)),
                id_code(one.source),
                id_code(one.target),
                self._properties.code(properties_text(one.properties)),
            )

    def pack(self) -> bytes:
        return assemble(
            np.array(self._times, dtype=_TIME),
            np.array(self._nodes_per_event, dtype=_CODE),
            np.array(self._relationships_per_event, dtype=_CODE),
            np.array(self._nodes, dtype=_CODE).reshape(-1, 3).T,
            np.array(self._relationships, dtype=_CODE).reshape(-1, 5).T,
            [one.text() for one in (self._ids, self._labels, self._types, self._properties)],
            np.array(self._triples_per_event, dtype=_CODE),
            np.array(self._triples, dtype=_CODE).reshape(-1, 3).T,
            self._terms.text(),
        )


def assemble(
    times: Array,
    nodes_per_event: Array,
    relationships_per_event: Array,
    nodes: Array,
    relationships: Array,
    dictionaries: Sequence[str],
    triples_per_event: Array | None = None,
    triples: Array | None = None,
    terms: str = "[]",
) -> bytes:
    """A chunk of its arrays (see `Columns`) and the JSON lists of ids, label sets, types and property maps, of terms.

    Without triples none of its events has any.
    """
    if triples_per_event is None or triples is None:
        triples_per_event, triples = np.zeros(len(times), _CODE), np.zeros((3, 0), _CODE)
    body = b"".join(
        (
            times.astype(_TIME, copy=False).tobytes(),
            nodes_per_event.astype(_CODE, copy=False).tobytes(),
            relationships_per_event.astype(_CODE, copy=False).tobytes(),
            triples_per_event.astype(_CODE, copy=False).tobytes(),
            nodes.astype(_CODE, copy=False).tobytes(),
            relationships.astype(_CODE, copy=False).tobytes(),
            triples.astype(_CODE, copy=False).tobytes(),
            f"[{','.join((*dictionaries, terms))}]".encode("utf-8", "surrogatepass"),
        )
    )
    first, last = (int(times.min()), int(times.max())) if len(times) else (0, 0)
    counts = len(times), nodes.shape[1], relationships.shape[1], triples.shape[1]
    header = _HEADER.pack(_MAGIC, FORMAT, *counts, first, last, len(body))
    return header + bytes(pa.compress(body, codec=_CODEC, asbytes=True))


def pack(events: Iterable[Event]) -> bytes:
    """The events as one chunk."""
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
    _, version, *counts = _HEADER.unpack_from(data)
    if version != FORMAT:
        raise StreamError(f"the chunk has format {version}; this version of Anabranch reads format {FORMAT}")
    return Head(*counts)


@dataclass(frozen=True, slots=True)
class Columns:
    """A chunk's arrays and dictionaries. `nodes` has the rows id, labels, properties; `relationships` id, type, source,
    target, properties; `triples` subject, predicate, object."""

    event_times: Array
    nodes_per_event: Array
    relationships_per_event: Array
    nodes: Array
    relationships: Array
    ids: list[ElementId | None]
    labels: list[tuple[str, ...]]
    types: list[str]
    properties: list[dict[str, Value]]
    triples_per_event: Array
    triples: Array
    terms: list[Term]


def columns(data: bytes) -> Columns:
    """The chunk without one event made."""
    found = head(data)
    try:
        body = pa.decompress(data[_HEADER.size :], found.body, codec=_CODEC, asbytes=True)
    except (pa.ArrowException, OSError) as error:
        raise StreamError(f"the chunk is damaged: {error}") from None
    place = 0

    def take(count: int, dtype: np.dtype[Any]) -> Array:
        nonlocal place
        array = np.frombuffer(body, dtype, count, place)
        place += array.nbytes
        return array

    event_times = take(found.events, _TIME)
    nodes_per_event = take(found.events, _CODE)
    relationships_per_event = take(found.events, _CODE)
    triples_per_event = take(found.events, _CODE)
    nodes = take(3 * found.nodes, _CODE).reshape(3, -1)
    relationships = take(5 * found.relationships, _CODE).reshape(5, -1)
    triples = take(3 * found.triples, _CODE).reshape(3, -1)
    ids, labels, types, properties, terms = json.loads(body[place:].decode("utf-8", "surrogatepass"))
    return Columns(
        event_times,
        nodes_per_event,
        relationships_per_event,
        nodes,
        relationships,
        ids,
        [tuple(names) for names in labels],
        types,
        [_properties_of(one) for one in properties],
        triples_per_event,
        triples,
        [_term_of(one) for one in terms],
    )


def unpack(data: bytes) -> list[Event]:
    """The events of a chunk."""
    chunk = columns(data)
    ids, labels, types, properties = chunk.ids, chunk.labels, chunk.types, chunk.properties
    nodes = [
        Node(ids[one], labels[two], properties[three]) for one, two, three in zip(*chunk.nodes.tolist(), strict=True)
    ]
    relationships = [
        Relationship(ids[one], types[two], ids[three], ids[four], properties[five])
        for one, two, three, four, five in zip(*chunk.relationships.tolist(), strict=True)
    ]
    events = []
    node = relationship = triple = 0
    triples = _triples_of(chunk)
    for event_time, node_count, relationship_count, triple_count in zip(
        chunk.event_times.tolist(),
        chunk.nodes_per_event.tolist(),
        chunk.relationships_per_event.tolist(),
        chunk.triples_per_event.tolist(),
        strict=True,
    ):
        own_nodes = tuple(nodes[node : node + node_count])
        own_relationships = tuple(relationships[relationship : relationship + relationship_count])
        own_triples = tuple(triples[triple : triple + triple_count])
        events.append(Event(event_time, own_nodes, own_relationships, own_triples))
        node += node_count
        relationship += relationship_count
        triple += triple_count
    return events


def _triples_of(chunk: Columns) -> list[Triple]:
    terms = chunk.terms
    subjects, predicates, objects = chunk.triples.tolist()
    return [
        Triple(terms[one], terms[two], terms[three])
        for one, two, three in zip(subjects, predicates, objects, strict=True)
    ]


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
    """A property map as a chunk's dictionary holds it."""
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
