"""Strings in, rows out: a LUBM-like stream of triples as texts, through the whole engine, in one process and on Spark.

What is timed holds everything: reading texts, encoding terms, windows, matching, state, and answers as rows. Window
100,000 triples by time, slide 1,000, all answers told at each instant. The same queries on the plain
evaluator, over a part of the stream, are the naive way beside it.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from workloads import lubm
from workloads.base import Query

from anabranch.engine.evaluation_options import EvaluationOptions
from anabranch.engine.session import Session

STREAM = "http://streams.org/lubm"
PUSHED = 100_000  # triples per push
SPARK_TRIPLES = 4_000_000


def run(smoke: bool = False) -> dict[str, Any]:
    triples, window, slide = (20_000, 5_000, 1_000) if smoke else (1_000_000, 100_000, 1_000)
    repetitions = 1 if smoke else 3
    workload = lubm.generate(triples)
    table = spelled_table(workload, triples)
    queries = workload.queries[:2] if smoke else workload.queries
    measured: dict[str, Any] = {"triples": triples, "window": window, "slide": slide}
    measured["in_process"] = [in_process(query, table, window, slide, repetitions) for query in queries]
    rates = [one["triples_per_second"] for one in measured["in_process"]]
    measured["in_process_median"] = round(statistics.median(rates))
    print(f"in one process: median {statistics.median(rates):,.0f} triples/s, least {min(rates):,.0f}")
    asked = queries[:1] if smoke else [query for query in queries if query.name in ("Q4", "Q7")]
    more = table if smoke else spelled_table(lubm.generate(SPARK_TRIPLES), SPARK_TRIPLES)
    measured["on_spark"] = [on_spark(one, more, window, slide, 1 if smoke else 16, repetitions) for one in asked]
    return measured


def spelled_table(workload: lubm.Lubm, triples: int) -> pa.Table:
    """The stream as texts, a triple per millisecond."""
    spelled = workload.stream.triples(0, triples)
    columns = {name: [triple[place] for triple in spelled] for place, name in enumerate("spo")}
    return pa.table({**columns, "at": pa.array(range(triples), pa.timestamp("ms"))})


def text_of(query: Query, window: int, slide: int) -> str:
    by_count = query.csparql(STREAM, window, slide)
    return by_count.replace(f"[RANGE TRIPLES {window} STEP {slide}]", f"[RANGE {window}ms STEP {slide}ms]")


def in_process(query: Query, table: pa.Table, window: int, slide: int, repetitions: int) -> dict[str, Any]:
    text = text_of(query, window, slide)
    ways = []
    for _ in range(repetitions):
        seconds, rows = answered(text, table, EvaluationOptions())
        ways.append(seconds)
    seconds = statistics.median(ways)
    part = table.slice(0, min(len(table), window + 5 * slide))
    ours, same_rows = answered(text, part, EvaluationOptions())
    naive, naive_rows = answered(text, part, EvaluationOptions(force="recompute"))
    if same_rows != naive_rows:
        raise AssertionError("the two ways tell different answers")
    rate = len(table) / seconds
    print(
        f"{query.name}: {rate:>9,.0f} triples/s, {rows:,} rows; on {len(part):,} triples "
        f"{naive / ours:.1f} times faster than the naive way"
    )
    return {
        "query": query.name,
        "triples_per_second": round(rate),
        "rows": rows,
        "naive_ratio": round(naive / ours, 1),
    }


def answered(text: str, table: pa.Table, evaluation: EvaluationOptions) -> tuple[float, int]:
    session = Session.local(evaluation=evaluation)
    query = session.register(text)
    rows = 0
    began = time.perf_counter()
    for first in range(0, len(table), PUSHED):
        session.push_table(STREAM, table.slice(first, PUSHED))
        rows += sum(len(answer.rows) for answer in query.poll())
    session.finish()
    rows += sum(len(answer.rows) for answer in query.poll())
    return time.perf_counter() - began, rows


def on_spark(query: Query, table: pa.Table, window: int, slide: int, files: int, repetitions: int) -> dict[str, Any]:
    """From Parquet files, state and answers included; what a run over the first thousand triples takes is told beside
    it, and what the stages take in one process."""
    from sparkling import run_job
    from stages import measured

    text = text_of(query, window, slide)
    with tempfile.TemporaryDirectory(prefix="anabranch-bench-") as folder:
        whole, little = Path(folder) / "whole", Path(folder) / "little"
        write(table, whole, files)
        write(table.slice(0, 1000), little, 1)
        run_job(text, little, stream=STREAM)  # starts Spark and its workers
        floor = statistics.median(_seconds(text, little)[0] for _ in range(repetitions))
        runs = [_seconds(text, whole) for _ in range(repetitions)]
        seconds, lines = statistics.median(run[0] for run in runs), runs[0][1]
        stages = measured(text, whole, STREAM)
    busy = stages["scan"] / 2 + sum(taken for stage, taken in stages.items() if stage != "scan")
    rate = len(table) / seconds
    told = ", ".join(f"{stage} {taken:.2f}" for stage, taken in stages.items())
    print(
        f"on Spark ({query.name}): {rate:,.0f} triples/s, {lines:,} rows, {seconds:.1f} s; a run over a thousand "
        f"triples takes {floor:.1f} s. In one process: {told} s; Spark, with the shuffle: {seconds - busy:.1f} s"
    )
    return {
        "query": query.name,
        "triples": len(table),
        "seconds": round(seconds, 2),
        "seconds_of_a_small_run": round(floor, 2),
        "triples_per_second": round(rate),
        "rows": lines,
        "seconds_by_stage": {**stages, "spark_and_shuffle": round(seconds - busy, 2)},
    }


def _seconds(text: str, events: Path) -> tuple[float, int]:
    from sparkling import run_job

    began = time.perf_counter()
    done = run_job(text, events, stream=STREAM)
    return time.perf_counter() - began, len(done.text.splitlines())


def write(table: pa.Table, folder: Path, files: int) -> None:
    folder.mkdir()
    size = -(-len(table) // files)
    for number in range(files):
        pq.write_table(table.slice(number * size, size), folder / f"{number:04}.parquet")
