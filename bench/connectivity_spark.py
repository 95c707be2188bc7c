"""A query with connected() on Spark, from edges as texts in Parquet files to answers.

RMAT edges between vertices that are IRIs, a millisecond apart; a window of a tenth of them, twenty slides a window, a
hundred pairs asked at each slide. Timed as in `end_to_end`: one session for all runs, begun and warmed before; a run is
from the start of its query to its last answer, with planning, reading, the shuffle, state and answers. Beside it: the
same with streams that travel whole, and the naive way on the same session: each window collected by Spark as a pandas
frame and handed to scipy's connected components, over the first windows alone.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from workloads import edges as graphs

STREAM = "http://streams.org/edges"
VERTEX = "http://example.org/vertex/"
LINKED = "http://example.org/linked"
SLIDES = 20
FILES = 40
NAIVE_WINDOWS = 4


def run(smoke: bool = False) -> dict[str, Any]:
    edges, vertices, pairs, repetitions = (20_000, 4_000, 10, 1) if smoke else (10_000_000, 1_000_000, 100, 3)
    window = edges // 10
    slide = window // SLIDES
    drawn = graphs.rmat(edges, vertices)
    lefts, rights = graphs.pairs(pairs, vertices)
    text = query(list(zip(lefts.tolist(), rights.tolist(), strict=True)), window, slide)
    measured: dict[str, Any] = {"edges": edges, "vertices": vertices, "window": window, "slide": slide, "pairs": pairs}
    with tempfile.TemporaryDirectory(prefix="anabranch-bench-") as folder:
        whole, little = Path(folder) / "whole", Path(folder) / "little"
        write(drawn, vertices, whole, 2 if smoke else FILES)
        write(drawn[:1000], vertices, little, 1)
        answered(text, little, True)  # starts Spark and its workers
        answered(text, whole, True)
        floor = statistics.median(answered(text, little, True)[0] for _ in range(repetitions))
        # In turns, so that a noisy machine is noisy for both.
        turns = [(answered(text, whole, True), answered(text, whole, False)) for _ in range(repetitions)]
        told = {rows for turn in turns for _, rows in turn}
        if len(told) != 1:
            raise AssertionError("the two ways tell different answers")
        links, triples = (statistics.median(turn[way][0] for turn in turns) for way in (0, 1))
        naive, counted = naively(whole, lefts, rights, window, slide)
    if counted != expected_of(next(iter(told)), window, slide, len(counted)):
        raise AssertionError("the naive way tells different answers")
    naive_rate = slide * len(counted) / naive
    measured |= {
        "answers_md5_equal": True,
        "seconds_of_a_small_run": round(floor, 2),
        "as_links": {"seconds": round(links, 2), "edges_per_second": round(edges / links)},
        "as_triples": {"seconds": round(triples, 2), "edges_per_second": round(edges / triples)},
        "naive_windows": {"windows": len(counted), "seconds": round(naive, 2), "edges_per_second": round(naive_rate)},
        "ratio_to_triples": round(triples / links, 2),
        "ratio_to_naive": round(edges / links / naive_rate, 1),
    }
    print(
        f"as links {edges / links:,.0f} edges/s ({links:.1f} s), as triples {edges / triples:,.0f}, "
        f"naive {naive_rate:,.0f}; a run over a thousand edges takes {floor:.1f} s"
    )
    return measured


def query(pairs: list[tuple[int, int]], window: int, slide: int) -> str:
    asked = " ".join(f"(<{VERTEX}{left}> <{VERTEX}{right}>)" for left, right in pairs)
    return (
        f"REGISTER QUERY linked AS SELECT ?a ?b FROM STREAM <{STREAM}> [RANGE {window}ms STEP {slide}ms] "
        f"WHERE {{ VALUES (?a ?b) {{ {asked} }} FILTER(anb:connected(?a, ?b, <{LINKED}>)) }}"
    )


def write(edges: Any, vertices: int, folder: Path, files: int) -> None:
    """Edges as texts, one a millisecond."""
    folder.mkdir()
    names = pa.array([f"{VERTEX}{number}" for number in range(vertices)])
    for number, places in enumerate(np.array_split(np.arange(len(edges)), files)):
        part = edges[places]
        columns = {
            "s": names.take(pa.array(part[:, 0])),
            "p": pa.array([LINKED] * len(part)),
            "o": names.take(pa.array(part[:, 1])),
            "at": pa.array(places, pa.timestamp("ms", tz="UTC")),
        }
        pq.write_table(pa.table(columns), folder / f"{number:04}.parquet")


def answered(text: str, events: Path, as_links: bool) -> tuple[float, bytes]:
    """Seconds of a run, and what it tells."""
    from sparkling import run_job

    began = time.perf_counter()
    done = run_job(text, events, stream=STREAM, as_links=as_links)
    return time.perf_counter() - began, done.text


def naively(events: Path, lefts: Any, rights: Any, window: int, slide: int) -> tuple[float, list[int]]:
    """Seconds for the last slides of the stream, window by window, and how many pairs each has."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components
    from sparkling import spark

    session = spark().session
    asked = [f"{VERTEX}{number}" for number in (*lefts.tolist(), *rights.tolist())]
    session.read.parquet(str(events)).createOrReplaceTempView("edges")
    counted = []
    began = time.perf_counter()
    for number in range(NAIVE_WINDOWS):
        closes = window + number * slide
        rows = session.sql(
            f"SELECT s, o FROM edges WHERE unix_millis(at) > {closes - window} AND unix_millis(at) <= {closes}"
        ).toPandas()
        places, names = _numbered(rows["s"].to_numpy(), rows["o"].to_numpy(), asked)
        count, half = len(names), len(rows)
        matrix = coo_matrix((np.ones(half, np.int8), (places[:half], places[half : 2 * half])), (count, count))
        _, labels = connected_components(matrix, directed=False)
        ends = labels[places[2 * half :]]
        counted.append(int((ends[: len(lefts)] == ends[len(lefts) :]).sum()))
    return time.perf_counter() - began, counted


def _numbered(sources: Any, targets: Any, asked: list[str]) -> tuple[Any, Any]:
    import pandas as pd

    return pd.factorize(np.concatenate([sources, targets, np.array(asked, object)]))


def expected_of(text: bytes, window: int, slide: int, count: int) -> list[int]:
    """How many pairs the answers have at the instants that the naive way looks at."""
    wanted = {window + number * slide: 0 for number in range(count)}
    for line in text.splitlines():
        said = json.loads(line)
        at = round(_millis(said["at"]))
        if at in wanted:
            wanted[at] += 1
    return list(wanted.values())


def _millis(at: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(at).timestamp() * 1000
