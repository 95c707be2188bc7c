"""Whole graphs as bytes: the form in which a run keeps static graphs in its folder.

    "ANBG", format, model (0: nodes and relationships, 1: triples), then chunks of events, each behind its size (uint32)

Reading builds values and runs no code, whatever the file holds.

Invariant: `unpacked_graph` of `packed_graph` gives the same graph, in the same order.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TypeVar

from anabranch.errors import StreamError
from anabranch.formats.chunks import ELEMENTS_PER_CHUNK, pack, unpack
from anabranch.model.event import Event
from anabranch.model.graph import PropertyGraph
from anabranch.model.triples import TripleGraph

FORMAT = 1
_MAGIC = b"ANBG"
_HEAD = struct.Struct("<4sBB2x")
_SIZE = struct.Struct("<I")
_PROPERTIES, _TRIPLES = 0, 1

Part = TypeVar("Part")


def packed_graph(graph: PropertyGraph | TripleGraph) -> Iterator[bytes]:
    """The graph in pieces, to be written one after the other."""
    if isinstance(graph, TripleGraph):
        yield _HEAD.pack(_MAGIC, FORMAT, _TRIPLES)
        events = [Event(0, triples=part) for part in _parts(list(graph))]
    else:
        yield _HEAD.pack(_MAGIC, FORMAT, _PROPERTIES)
        events = [Event(0, nodes=part) for part in _parts(list(graph.nodes.values()))]
        events += [Event(0, relationships=part) for part in _parts(list(graph.relationships.values()))]
    for event in events:
        chunk = pack([event])
        yield _SIZE.pack(len(chunk))
        yield chunk


def unpacked_graph(data: bytes) -> PropertyGraph | TripleGraph:
    """Return the graph of packed bytes; StreamError when they are none."""
    if len(data) < _HEAD.size or data[:4] != _MAGIC:
        raise StreamError("this is no copy of a graph, or one of an earlier version of Anabranch")
    _, version, model = _HEAD.unpack_from(data)
    if version != FORMAT or model not in (_PROPERTIES, _TRIPLES):
        raise StreamError(f"the copy of a graph has format {version}; this version of Anabranch reads {FORMAT}")
    events = [event for chunk in _chunks(data) for event in unpack(chunk)]
    if model == _TRIPLES:
        return TripleGraph(triple for event in events for triple in event.triples)
    return PropertyGraph(
        (node for event in events for node in event.nodes),
        (one for event in events for one in event.relationships),
    )


def _parts(elements: Sequence[Part]) -> Iterator[tuple[Part, ...]]:
    rest = iter(elements)
    while part := tuple(islice(rest, ELEMENTS_PER_CHUNK)):
        yield part


def _chunks(data: bytes) -> Iterator[bytes]:
    at = _HEAD.size
    while at < len(data):
        size = _SIZE.unpack_from(data, at)[0] if at + _SIZE.size <= len(data) else len(data)
        at += _SIZE.size
        if at + size > len(data):
            raise StreamError("the copy of a graph is cut off")
        yield data[at : at + size]
        at += size
