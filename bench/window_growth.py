"""How a micro-batch's time grows with the window that it falls into: it should follow the batch, not the window.

The window is filled first, in one stream; then batches of the same size follow, at which no instant is evaluated, so
that carrying and keeping are measured. Beside it the naive way, in the same run: an operator that builds its engine
from the state at every batch, as one without a cache must.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any

from sparkling import queries_of, run_job, write_events

from anabranch.formats import chunks
from anabranch.formats.parquet import read_parquet
from anabranch.model.event import Event
from anabranch.runner import cell as cells
from anabranch.runner.cell import Cell
from anabranch.runner.job import Job
from anabranch.runner.memory_state import MemoryState
from anabranch.runner.rows import PackedRow
from anabranch.sources.base import Decoding, OpenedStream
from anabranch.sources.generators import GeneratorSource

QUERY = """
REGISTER QUERY all STARTING AT 2023-12-31T23:59:59Z
{
  MATCH ()-[r]->() WITHIN P30D ON STREAM events
  EMIT count(r) AS links SNAPSHOT EVERY P20D
}
"""
PER_EVENT = 2
BATCH_EVENTS = 2_500  # 10,000 elements


def run(smoke: bool = False) -> dict[str, Any]:
    windows = [1_000, 2_000] if smoke else [10_000, 100_000, 1_000_000]
    batches = 4 if smoke else 12
    batch = 50 if smoke else BATCH_EVENTS
    measured = []
    with tempfile.TemporaryDirectory(prefix="anabranch-bench-") as folder:
        for elements in windows:
            filled = elements // (2 * PER_EVENT)
            events = Path(folder) / str(elements)
            # Row groups cannot be cut: small files are the batches, one big one before them the window.
            write_events(events / "window", filled, PER_EVENT, 1000, 1)
            after = events / "batches"
            write_events(after, batches * batch, PER_EVENT, 1000, batches)
            stream = _joined(events)
            done = run_job(QUERY, stream, batch_events=batch)
            seconds = [done.batch_seconds[number] for number in sorted(done.batch_seconds)][-(batches - 2) : -1]
            naive = _naive(stream, filled, batch)
            measured.append(
                {
                    "window_elements": elements,
                    "batch_elements": batch * 2 * PER_EVENT,
                    "batch_seconds": round(statistics.median(seconds), 3),
                    "rebuild_seconds": round(naive, 3),
                }
            )
            print(
                f"window {elements:>9,} elements: a batch of {batch * 2 * PER_EVENT:,} takes "
                f"{statistics.median(seconds):.2f} s; building the engine again alone would take {naive:.2f} s"
            )
    return {"measured": measured}


def _joined(events: Path) -> Path:
    """The window's file and the batches' files in one folder, in the order of time."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    folder = events / "stream"
    folder.mkdir()
    window = pq.read_table(events / "window" / "00000.parquet")
    pq.write_table(window, folder / "a.parquet")
    last = window.column("at")[-1].as_py()
    first = None
    for number, file in enumerate(sorted((events / "batches").iterdir())):
        table = pq.read_table(file)
        first = first or table.column("at")[0].as_py()
        shift = pa.scalar(last - first, pa.duration("us"))
        moved = pc.add(table.column("at"), shift)
        pq.write_table(table.set_column(0, "at", moved), folder / f"b{number:05}.parquet")
    return folder


def _naive(stream: Path, filled: int, batch: int) -> float:
    """How long a batch takes when the engine is built from the state first."""
    events = [event for _, event in read_parquet(str(stream / "a.parquet")) if isinstance(event, Event)]
    after = [event for _, event in read_parquet(str(stream / "b00000.parquet")) if isinstance(event, Event)]
    source = OpenedStream(GeneratorSource("events", "graph", {"count": "0"}), Decoding("events"), "")
    job = Job((source,), queries_of(QUERY))
    state = MemoryState()
    control = PackedRow("0", "control", b'{"splits": {}, "idle": {}, "closed": [], "end": false}')
    name = f"naive {Random().random()}"
    rows = [PackedRow("0", "chunk", data, "events", number=place) for place, data in enumerate(chunks.pack_all(events))]
    list(Cell(job, name, state).process([*rows, control]))
    cells.forget_everything()
    more = [PackedRow("0", "chunk", data, "events") for data in chunks.pack_all(after[:batch])]
    began = time.perf_counter()
    list(Cell(job, name, state).process([*more, control]))
    return time.perf_counter() - began
