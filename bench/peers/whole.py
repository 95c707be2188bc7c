"""A whole command of a peer: file in, rows out, window by window.

    python -m peers.whole_duckdb JOB.json

Rows are NDJSON: the columns of the answer and `instant`, the number of events up to it. Event number k comes k seconds
after the start of the stream, from 1; an instant closes the window of the `window` events before it.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

START = "2024-01-01 00:00:00"  # of workloads/shop.py, which is not in the peers' environment
LEAST_PRICE, BRANCH = 990, 7
EX = "http://ex.org/"


@dataclass(frozen=True, slots=True)
class WholeJob:
    """What a peer reads, is asked, and where its rows go."""

    query: str
    stream: str
    format: str
    file: str
    out: str
    window: int
    slide: int
    events: int

    @property
    def instants(self) -> range:
        return range(self.window, self.events + 1, self.slide)

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")


def read_job(path: str) -> WholeJob:
    return WholeJob(**json.loads(Path(path).read_text(encoding="utf-8")))


def be_one_thread() -> None:
    """Keeps libraries that have not been loaded yet from taking more."""
    for name in ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "RAYON_NUM_THREADS", "ARROW_NUM_THREADS", "PATHWAY_THREADS"):
        os.environ[name] = "1"
