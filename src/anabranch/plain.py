"""A plain query over one graph, answered once; and graphs from files.

Invariant: what is answered is what the snapshot evaluator says; nothing is cached between calls. A file is read whole
or refused: a plain query over half a graph would be wrong in silence.
"""

from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import BinaryIO, cast

from anabranch.engine.session import InstantLike, micros, parameter_values
from anabranch.errors import EvaluationError, MalformedEventError, StreamError
from anabranch.formats.events import GraphLike, graph_from
from anabranch.formats.ndjson import read_ndjson
from anabranch.formats.tables import Table
from anabranch.model.event import Event
from anabranch.model.graph import EMPTY_GRAPH, PropertyGraph
from anabranch.snapshot import Context, compile_plan
from anabranch.syntax import seraph


def evaluate(
    text: str,
    graph: GraphLike | str | os.PathLike[str] | None = None,
    parameters: Mapping[str, object] | None = None,
    *,
    now: InstantLike | None = None,
    seed: int | None = None,
    file_name: str = "<query>",
) -> Table:
    """Answer a plain Cypher query over a property graph.

    `graph` is a PropertyGraph, a mapping with `nodes` and `relationships` (or `edges`), events, which are united, or
    the path of a file with any of these. `now` is what datetime() and its kin say, by default the wall clock; `seed`
    makes rand() repeat itself.
    """
    compiled = compile_plan(seraph.plan(text, file_name))
    whole = _graph(graph)
    context = Context(
        lambda _source: whole,
        parameter_values(parameters or {}),
        clock=time.time_ns() // 1000 if now is None else micros(now),
        random=Random(seed if seed is not None else os.urandom(8)),
    )
    try:
        return Table(compiled.columns, compiled.run(context))
    except EvaluationError as error:
        raise error.in_text(text, file_name) from None


def _graph(graph: GraphLike | str | os.PathLike[str] | None) -> PropertyGraph:
    if graph is None:
        return EMPTY_GRAPH
    return read_graph(graph) if isinstance(graph, str | os.PathLike) else graph_from(graph)


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
