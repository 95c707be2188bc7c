"""How fast Spark carries events to the engine: packed into chunks, and beside it row by row, in the same run.

Both read the same Parquet files, push the same events into the same engine in one stateful operator, and must tell the
same answers. The windows are narrow and rare, so that carrying is what is measured. The row by row way is the plain use
of transformWithState: Spark's own reader, one row per element. It is let off the hard parts: it keeps no element in its
state (with a list state, half a million rows took 45 s), its engine sees one batch at a time, and it tells the instants
that lie wholly inside one.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import functions as f
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from sparkling import queries_of, run_job, spark, write_events

QUERY = """
REGISTER QUERY busy STARTING AT 2024-01-01T00:01:00Z
{
  MATCH (a)-[r:R]->(b) WITHIN PT1S ON STREAM events
  EMIT count(r) AS links, count(DISTINCT a) AS sources SNAPSHOT EVERY PT5M
}
"""
PER_EVENT = 4
_ELEMENTS = """
concat(
  transform(nodes, n -> struct(0 AS kind, '' AS type, n.id AS source, 0L AS target, n.labels AS labels,
                               n.properties AS properties)),
  transform(relationships, r -> struct(1 AS kind, r.type AS type, r.`from` AS source, r.`to` AS target,
                                       array() AS labels, r.properties AS properties)))
"""


class RowByRow(StatefulProcessor):
    """Elements one by one: from rows to events, to the engine."""

    def __init__(self, text: str) -> None:
        self._text = text

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._batches = handle.getValueState("batches", "count long")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        from anabranch.engine.engine import Engine
        from anabranch.model.event import Event
        from anabranch.model.values import Node, Relationship

        engine = Engine()
        engine.declare_stream("events")
        engine.register_all(queries_of(self._text))
        by_instant: dict[int, tuple[list[Any], list[Any]]] = {}
        for frame in rows:
            for at, kind, type_, source, target, labels, properties in frame.drop(columns=["cell"]).itertuples(
                index=False, name=None
            ):
                nodes, links = by_instant.setdefault(at, ([], []))
                said = json.loads(properties)
                if kind == 0:
                    nodes.append(Node(source, tuple(labels), said))
                else:
                    links.append(Relationship(None, type_, source, target, said))
        self._batches.update((1 + (self._batches.get() or (0,))[0],))
        events = [Event(at, tuple(nodes), tuple(links)) for at, (nodes, links) in sorted(by_instant.items())]
        engine.push("events", events)
        inside = range(events[0].event_time + 1_000_000, events[-1].event_time)
        lines = [json.dumps(row) for answer in engine.take() if answer.at in inside for row in answer.row_dicts()]
        if lines:
            yield pd.DataFrame({"line": pd.Series(lines, dtype=object)})

    def close(self) -> None:
        pass


def row_by_row(events: Path, files_per_batch: int) -> tuple[float, list[str]]:
    session = spark().session
    told: list[str] = []
    checkpoint = tempfile.mkdtemp(prefix="anabranch-bench-")
    schema = session.read.parquet(str(events)).schema
    rows = (
        session.readStream.schema(schema)
        .option("maxFilesPerTrigger", files_per_batch)
        .parquet(str(events))
        .select(f.expr("unix_micros(at)").alias("at"), f.explode(f.expr(_ELEMENTS)).alias("e"))
        .select(f.lit("0").alias("cell"), "at", "e.*")
    )
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "10000")
    began = time.perf_counter()
    query = (
        rows.groupBy("cell")
        .transformWithStateInPandas(RowByRow(QUERY), "line string", "Update", "None")
        .writeStream.outputMode("update")
        .option("checkpointLocation", checkpoint)
        .foreachBatch(lambda frame, _: told.extend(row.line for row in frame.collect()))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    seconds = time.perf_counter() - began
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "64")
    shutil.rmtree(checkpoint, ignore_errors=True)
    return seconds, told


def run(smoke: bool = False) -> dict[str, Any]:
    sizes = [2_000] if smoke else [500_000, 2_000_000]
    measured = []
    with tempfile.TemporaryDirectory(prefix="anabranch-bench-") as folder:
        warm = Path(folder) / "warm"
        write_events(warm, 500, PER_EVENT, 10_000, 2)
        run_job(QUERY, warm)
        row_by_row(warm, 1)
        for elements in sizes:
            events = Path(folder) / str(elements)
            files = 2 if smoke else 10
            count = write_events(events, elements // (2 * PER_EVENT), PER_EVENT, 10_000, files)
            began = time.perf_counter()
            done = run_job(QUERY, events)
            packed = time.perf_counter() - began
            rows, told = row_by_row(events, 1)
            ours = done.text.decode().splitlines()
            if not set(told) <= set(ours) or len(ours) - len(told) > files:
                raise AssertionError("the two ways tell different answers")
            measured.append(
                {
                    "elements": count,
                    "answers": len(ours),
                    "packed_seconds": round(packed, 2),
                    "row_by_row_seconds": round(rows, 2),
                    "ratio": round(rows / packed, 2),
                }
            )
            print(
                f"{count:>9,} elements: packed {packed:6.1f} s ({count / packed:>9,.0f}/s), "
                f"row by row {rows:6.1f} s ({count / rows:>9,.0f}/s): {rows / packed:.1f} times"
            )
    return {"measured": measured}
