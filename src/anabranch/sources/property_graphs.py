"""Graphs from files that are not RDF documents: JSON with nodes and relationships, or events that are united.

Invariant: a file is read whole or refused: a query over half a graph would be wrong in silence.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable
from typing import BinaryIO, cast

from anabranch.errors import MalformedEventError, StreamError
from anabranch.formats.events import any_graph_from
from anabranch.formats.streams import format_of, read_events
from anabranch.model.event import Event
from anabranch.model.graph import PropertyGraph
from anabranch.model.triples import TripleGraph
from anabranch.sources.reach import ANYWHERE, Reach


def read_graph(path: str | os.PathLike[str], reach: Reach = ANYWHERE) -> PropertyGraph | TripleGraph:
    """The graph of a file: JSON with nodes and relationships, or a file of events to unite; gzip too."""
    name = os.fspath(path)
    bare = name.removesuffix(".gz")
    form = format_of(bare)
    with reach.open(name) as file:
        zipped = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        opened = cast(BinaryIO, gzip.GzipFile(fileobj=file)) if zipped else file
        if bare.endswith(".json"):
            try:
                data = json.load(opened)
            except ValueError:  # perhaps NDJSON under this name
                opened.seek(0)
            else:
                return _graph_of_json(name, data)
        return any_graph_from(_events(name, read_events(opened, form or "ndjson", "static")))


def _graph_of_json(name: str, data: object) -> PropertyGraph | TripleGraph:
    """The graph of a whole JSON text: an object with elements (of a graph or one event), or a list of events."""
    try:
        if isinstance(data, dict | list):
            return any_graph_from(data)
    except MalformedEventError as error:
        raise StreamError(f"{name}: {error.reason}") from None
    raise StreamError(f'{name}: a graph is an object such as {{"nodes": [...], "relationships": [...]}}')


def _events(name: str, records: Iterable[Event | MalformedEventError]) -> list[Event]:
    events = []
    for record in records:
        if isinstance(record, MalformedEventError):
            place = "" if record.line is None else f":{record.line}"
            raise StreamError(f"{name}{place}: {record.reason}")
        events.append(record)
    return events
