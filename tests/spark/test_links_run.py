"""A stream that travels as links through Spark, with a restart half-way."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
from tests.support.jobs import job_for
from tests.support.spark_runs import Runner
from tests.support.watched import Watched

from anabranch.sinks.files import LinesFile
from anabranch.sources.files import FileSource

STREAM = "http://s"
PAIRS = " ".join(f"(<http://v/{number}> <http://v/{number + 1}>)" for number in range(20))
QUERY = f"""REGISTER QUERY linked AS SELECT ?a ?b FROM STREAM <{STREAM}> [RANGE 10s STEP 2s]
    WHERE {{ VALUES (?a ?b) {{ {PAIRS} }} FILTER(anb:connected(?a, ?b, <http://p>)) }}"""


def test_links_tell_what_whole_streams_do_over_a_restart(runner: Runner, tmp_path: Path) -> None:
    random = Random(5)
    (tmp_path / "in").mkdir()
    for number in range(3):
        rows = range(number * 6000, number * 6000 + 6000)
        columns = {
            "s": [f"http://v/{random.randrange(400)}" for _ in rows],
            "p": [random.choice(("http://p", "http://q", "http://q", "http://q")) for _ in rows],
            "o": [f"<http://v/{random.randrange(400)}>" for _ in rows],
            "at": list(rows),
        }
        pq.write_table(pa.table(columns), tmp_path / "in" / f"{number}.parquet")
    source = {STREAM: FileSource(STREAM, str(tmp_path / "in"))}
    told = []
    for reduces in (True, False):
        job = job_for(QUERY, source, batch_events=6000, reduces_links=reduces)
        assert bool(job.link_streams()) is reduces
        out = tmp_path / f"{reduces}.ndjson"
        (tmp_path / f"run-{reduces}").mkdir()
        separate = Runner(runner.running, tmp_path / f"run-{reduces}")
        for batches in (1, 1000):
            watched = Watched()
            _, run = separate.run(job, should_stop=watched.reached(batches), sinks=[LinesFile(out), watched])
        told.append((out.read_text(), run.progress.status["events"]))
    assert told[0] == told[1]
    assert len(told[0][0].splitlines()) > 20
