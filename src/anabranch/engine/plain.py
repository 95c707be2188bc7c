"""A plain query over one graph: the door for people who have no stream.

Invariant: the answer is that of the snapshot evaluator over the whole graph. With `now` given, it depends on the arguments
alone; without, `datetime()` reads the machine's clock here, at the door, as a file is read here when a path is given.
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
from anabranch.model.graph import PropertyGraph
from anabranch.model.values import Value
from anabranch.snapshot import Context, compile_plan
from anabranch.syntax import seraph


def evaluate(
    text: str,
    graph: GraphLike | str | os.PathLike[str] | None = None,
    parameters: Mapping[str, Value] | None = None,
    *,
    now: InstantLike | None = None,
    file_name: str = "<query>",
) -> Table:
    """The rows of a plain query. `graph` is a PropertyGraph, {"nodes", "relationships"}, events, or a file of these."""
    compiled = compile_plan(seraph.plan(text, file_name))
    if graph is None:
        content = PropertyGraph()
    elif isinstance(graph, str | os.PathLike):
        content = read_graph(graph)
    else:
        content = graph_from(graph)
    clock = time.time_ns() // 1000 if now is None else micros(now)
    random = Random() if now is None else Random(clock)
    context = Context(
        graph=lambda source: content, parameters=parameter_values(parameters or {}), clock=clock, random=random
    )
    try:
        rows = compiled.run(context)
    except EvaluationError as error:
        raise (error if error.text else error.in_text(text, file_name)) from None
    return Table(compiled.columns, rows)


def read_graph(path: str | os.PathLike[str]) -> PropertyGraph:
    """The graph of a file: JSON with nodes and relationships, NDJSON or Parquet events to unite; gzip too."""
    name = os.fspath(path)
    if name.removesuffix(".gz").endswith(".parquet"):
        from anabranch.formats.parquet import read_parquet

        return graph_from(_events(name, list(read_parquet(name))))
    with Path(name).open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        opened = cast(BinaryIO, gzip.GzipFile(fileobj=file)) if zipped else file
        if name.removesuffix(".gz").endswith(".json"):
            try:
                data = json.load(opened)
            except ValueError:
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
    """The events of a file that has to be right as a whole: a plain query over half a graph would be wrong in silence."""
    events = []
    for line, record in records:
        if isinstance(record, MalformedEventError):
            raise StreamError(f"{name}:{line}: {record.reason}")
        events.append(record)
    return events
