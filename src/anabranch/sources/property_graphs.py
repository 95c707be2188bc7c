"""Property graphs from files: JSON with nodes and relationships, or events that are united.

Invariant: a file is read whole or refused: a query over half a graph would be wrong in silence.
"""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import BinaryIO, cast

from anabranch.errors import MalformedEventError, StreamError
from anabranch.formats.events import graph_from
from anabranch.formats.ndjson import read_ndjson
from anabranch.model.event import Event
from anabranch.model.graph import PropertyGraph


def read_graph(path: str | os.PathLike[str]) -> PropertyGraph:
    """The graph of a file: JSON with nodes and relationships, NDJSON or Parquet events to unite; gzip too."""
    name = os.fspath(path)
    bare = name.removesuffix(".gz")
    if bare.endswith(".parquet"):
        from anabranch.formats.parquet import read_parquet

        return graph_from(_events(name, list(read_parquet(name))))
    with Path(name).open("rb") as file:
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
        return graph_from(_events(name, list(read_ndjson(opened))))


def _graph_of_json(name: str, data: object) -> PropertyGraph:
    """The graph of a whole JSON text: an object with elements (of a graph or one event), or a list of events."""
    try:
        if isinstance(data, dict | list):
            return graph_from(data)
    except MalformedEventError as error:
        raise StreamError(f"{name}: {error.reason}") from None
    raise StreamError(f'{name}: a graph is an object such as {{"nodes": [...], "relationships": [...]}}')


def _events(name: str, records: list[tuple[int, Event | MalformedEventError]]) -> list[Event]:
    events = []
    for line, record in records:
        if isinstance(record, MalformedEventError):
            raise StreamError(f"{name}:{line}: {record.reason}")
        events.append(record)
    return events
