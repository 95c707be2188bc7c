"""What the benchmarks on Spark share: a session, events in Parquet files, and a job run to its end.

Invariant: all benchmarks of one run share one session, so that what is compared is compared warm.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from anabranch.engine.compiled import compile_queries
from anabranch.engine.query_options import CompiledQuery, QueryOptions
from anabranch.runner.folder import RunFolder
from anabranch.runner.job import Job
from anabranch.runner.letters import LetterFiles
from anabranch.runner.options import RunOptions
from anabranch.runner.outlet import Observers, RunProgress
from anabranch.sinks.base import RenderedAnswer, Sink
from anabranch.sources.base import Decoding, OpenedStream
from anabranch.sources.files import FileSource
from anabranch.spark import session as spark_session
from anabranch.spark.run import SparkRun
from anabranch.spark.session import RunningSpark, SparkSettings
from anabranch.syntax import languages

NODE = pa.struct([("id", pa.int64()), ("labels", pa.list_(pa.string())), ("properties", pa.string())])
LINK = pa.struct([("type", pa.string()), ("from", pa.int64()), ("to", pa.int64()), ("properties", pa.string())])
START = 1_704_067_200_000_000  # 2024-01-01, in microseconds


@cache
def spark() -> RunningSpark:
    folder = Path(tempfile.mkdtemp(prefix="anabranch-bench-"))
    (folder / "scratch").mkdir()
    # Workers must find the operators of the benchmarks.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(Path(__file__).parent), os.environ.get("PYTHONPATH"))))
    settings = SparkSettings("local[2]", conf={"spark.driver.memory": "6g"})
    running = spark_session.start(settings, folder / "scratch", folder / "spark.log")

    def end() -> None:
        spark_session.stop(running)
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    return running


def write_events(folder: Path, events: int, per_event: int, step: int, files: int, seed: int = 7) -> int:
    """Events with `per_event` nodes and as many relationships each, `step` microseconds apart; gives the elements."""
    random = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    vertices = 5_000
    texts = pa.array([f'{{"weight": {number}}}' for number in range(100)])
    for number, part in enumerate(np.array_split(np.arange(events), files)):
        count = len(part) * per_event
        offsets = pa.array(np.arange(0, count + 1, per_event, dtype=np.int32))
        ids = random.integers(0, vertices, (len(part), per_event)) * per_event + np.arange(per_event)
        nodes = pa.StructArray.from_arrays(
            [
                pa.array(ids.ravel()),
                pa.ListArray.from_arrays(pa.array(np.arange(count + 1, dtype=np.int32)), pa.array(["V"] * count)),
                texts.take(pa.array(random.integers(0, 100, count))),
            ],
            fields=list(NODE),
        )
        links = pa.StructArray.from_arrays(
            [
                pa.array(["R", "S"]).take(pa.array(random.integers(0, 2, count))),
                pa.array(ids.ravel()),
                pa.array(np.roll(ids, 1, axis=1).ravel()),
                texts.take(pa.array(random.integers(0, 100, count))),
            ],
            fields=list(LINK),
        )
        table = pa.table(
            {
                "at": pa.array(START + part * step, pa.timestamp("us", tz="UTC")),
                "nodes": pa.ListArray.from_arrays(offsets, nodes),
                "relationships": pa.ListArray.from_arrays(offsets, links),
            }
        )
        pq.write_table(table, folder / f"{number:05}.parquet", row_group_size=20_000)
    return 2 * events * per_event


class Kept(Sink):
    """Answers as JSON lines, kept in memory."""

    forms = ("json",)

    def __init__(self) -> None:
        self.text = b""

    def write(self, batch: int, answers: Sequence[RenderedAnswer]) -> None:
        self.text += b"".join(told.json for told in answers)


@dataclass
class Done:
    text: bytes
    batch_seconds: dict[int, float]
    status: dict[str, Any]


def queries_of(text: str) -> tuple[CompiledQuery, ...]:
    return compile_queries([languages.script(text)], QueryOptions())


def job_over(text: str, events: Path, stream: str = "events") -> Job:
    """The job of queries over a folder of events."""
    source = FileSource(stream, str(events))
    return Job((OpenedStream(source, Decoding(stream), str(events)),), queries_of(text), ordered=True)


def run_job(
    text: str, events: Path, batch_events: int | None = None, stream: str = "events", as_links: bool = True
) -> Done:
    """Run queries over a folder of events, on the shared session; `as_links` lets streams travel as links."""
    job = replace(job_over(text, events, stream), options=RunOptions(batch_events=batch_events), reduces_links=as_links)
    kept = Kept()
    seconds: dict[int, float] = {}

    def note(progress: RunProgress) -> None:
        if progress.batch >= 0:
            seconds[progress.batch] = progress.batch_seconds

    folder = RunFolder()
    folder.open()
    try:
        run = SparkRun(job, folder, [kept], LetterFiles(), Observers(on_progress=note), running=spark())
        run.run()
    finally:
        folder.close()
    return Done(kept.text, seconds, run.progress.status)
