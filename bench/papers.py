"""The experiments of SPECTRA through the product: texts of triples in, rows of the continuous query out.

    python bench/run.py papers                     all of it, written to bench/results/papers.json
    python bench/papers.py [EXPERIMENT ...] [--smoke]      some of it, told only

Where bench/matching.py gives ids to the matcher alone, this pushes Arrow tables of texts into a `Session` and polls the
rows: parsing of terms, windows, matching, state and answers are in the figures, which are thousand triples per
processor second, medians, after the window has filled. ISTREAM, as in the paper: what is new is told.

    table_1    LUBM Q1 to Q7 in windows that are replaced as a whole, and in windows that slide with every triple,
               pushed in pieces of a thousand triples and one by one
    seas       SEAS S1 and S2 the same way, and in events of one triple and of twenty (Figures 7 and 8)
    memory     peak memory of the whole command, by window

SPECTRA's windows are in seconds of a stream whose rate it does not tell, and its machine is of 2016: its figures stand
beside ours and make no ratio. The rows are compared with the plain evaluator's on the first slides of a small window.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from commands import Taken, measured_command
from workloads import lubm, seas
from workloads.base import Query, Stream

from anabranch.engine.evaluation_options import EvaluationOptions
from anabranch.engine.session import Session

# SPECTRA (2016), Table 1: thousand triples per second on Q1 to Q7, tumbling windows of 10 s, events of one triple.
SPECTRA_TABLE_1 = {"S-Inc": [81, 848, 54, 425, 980, 925, 73], "CQELS": [34, 113, 21, 95, 220, 125, 38]}
STREAM = "http://streams.org/papers"
Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PaperSizes:
    """How much is measured."""

    windows: tuple[int, ...] = (10_000, 100_000)
    tumbling: int = 5  # windows
    triples: int = 20_000
    single: int = 2_000
    repetitions: int = 3
    memory: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000)
    checked: tuple[int, int] = (2_000, 40)  # the window and the slides that are compared with the plain evaluator
    queries: tuple[str, ...] = ("Q1", "Q2", "Q3", "Q4", "Q5", "Q6", "Q7")


SMOKE = PaperSizes((1_000,), 2, 200, 20, 1, (1_000,), (500, 3), ("Q7",))


@dataclass(frozen=True, slots=True)
class Pace:
    """How a window moves and how triples come: slide and width in triples, triples per event and per push."""

    window: int
    slide: int
    event: int = 1
    piece: int = 1_000

    def text(self, query: Query) -> str:
        """One event comes per millisecond."""
        width, step = (f"PT{count / self.event / 1000:g}S" for count in (self.window, self.slide))
        return (
            "".join(f"PREFIX {name}: <{iri}>\n" for name, iri in query.prefixes)
            + f"REGISTER ISTREAM <urn:{query.name}> AS SELECT {' '.join(query.variables)}\n"
            f"FROM NAMED WINDOW <urn:w> ON <{STREAM}> [RANGE {width} STEP {step}]\n"
            f"WHERE {{ WINDOW <urn:w> {{\n{query.body}\n}} }}"
        )


def texts(stream: Stream, first: int, last: int, event: int) -> pa.Table:
    """A part of the stream as texts; event number k comes k milliseconds after the first."""
    spelled = stream.triples(first, last)
    columns = {name: [triple[place] for triple in spelled] for place, name in enumerate("spo")}
    times = pa.array([1 + number // event for number in range(first, last)], pa.timestamp("ms"))
    return pa.table({**columns, "at": times})


def rate(stream: Stream, query: Query, pace: Pace, triples: int, repetitions: int) -> Record:
    """Thousand triples per processor second, after a full window."""
    filling = texts(stream, 0, pace.window, pace.event)
    table = texts(stream, pace.window, pace.window + triples, pace.event)
    pieces = [table.slice(first, pace.piece) for first in range(0, triples, pace.piece)]
    seconds, rows = [], 0
    for _ in range(repetitions):
        session = Session.local()
        handle = session.register(pace.text(query), file_name="query.rspql")
        session.push_table(STREAM, filling)
        handle.poll()
        began, rows = time.process_time(), 0
        for piece in pieces:
            session.push_table(STREAM, piece)
            rows += sum(len(answer.rows) for answer in handle.poll())
        seconds.append(time.process_time() - began)
    found = triples / statistics.median(seconds) / 1000
    record = {
        "query": query.name, "window": pace.window, "slide": pace.slide, "triples_per_event": pace.event,
        "triples_per_push": pace.piece, "thousand_triples_per_cpu_second": float(f"{found:.3g}"), "rows": rows,
    }  # fmt: skip
    print(
        f"{query.name} window {pace.window:,} slide {pace.slide:,}, events of {pace.event}, pushes of {pace.piece:,}: "
        f"{found:,.3g} thousand triples per CPU s, {rows:,} rows",
        flush=True,
    )
    return record


def check(stream: Stream, query: Query, window: int, slides: int) -> None:
    """The first slides of a window that moves with every triple have the plain evaluator's rows."""
    table = texts(stream, 0, window + slides, 1)
    pace = Pace(window, 1)
    told = []
    for options in (EvaluationOptions(), EvaluationOptions(force="recompute")):
        session = Session.local(evaluation=options)
        # Only the full windows are asked: the plain evaluator takes long.
        first = f"STARTING AT 1970-01-01T00:00:{window / 1000:06.3f}Z"
        text = pace.text(query).replace("> AS SELECT", f"> {first} AS SELECT")
        handle = session.register(text, file_name="query.rspql")
        session.push_table(STREAM, table)
        told.append([(answer.at, Counter(map(str, answer.rows))) for answer in handle.poll() if answer.rows])
    if told[0] != told[1]:
        raise AssertionError(f"{query.name}: the rows are not the plain evaluator's")


# --- experiments ---


def table_1(sizes: PaperSizes) -> Record:
    found = []
    for window in sizes.windows:
        made = lubm.generate(window + max(sizes.triples, window * sizes.tumbling))
        for query in (one for one in made.queries if one.name in sizes.queries):
            check(made.stream, query, *sizes.checked)
            count, often = window * sizes.tumbling, sizes.repetitions
            found.append(rate(made.stream, query, Pace(window, window), count, often))
            found.append(rate(made.stream, query, Pace(window, 1), sizes.triples, often))
            found.append(rate(made.stream, query, Pace(window, 1, piece=1), sizes.single, often))
    return {"measured": found, "spectra_thousand_triples_per_second": SPECTRA_TABLE_1}


def seas_events(sizes: PaperSizes) -> Record:
    found = []
    for window in sizes.windows:
        made = seas.generate(window + max(sizes.triples, 20 * sizes.single))
        for query in made.queries:
            check(made.stream, query, *sizes.checked)
            for event in (1, 20):
                pace = Pace(window, event, event)
                found.append(rate(made.stream, query, pace, sizes.triples, sizes.repetitions))
                singly = Pace(window, event, event, event)
                found.append(rate(made.stream, query, singly, event * sizes.single, sizes.repetitions))
    return {"measured": found}


def memory(sizes: PaperSizes) -> Record:
    """Peak memory of `anabranch run` over a Parquet file of two windows, sliding by a hundredth."""
    found = []
    with tempfile.TemporaryDirectory(prefix="anabranch-bench-") as name:
        folder = Path(name)
        for window in sizes.memory:
            for stream, query in _longest(2 * window):
                file = folder / "triples.parquet"
                pq.write_table(texts(stream, 0, 2 * window, 1), file)
                taken = _command(folder, Pace(window, max(1, window // 100)).text(query), file)
                record = {"query": query.name, "window": window, "peak_mb": round(taken.peak_mb),
                          "cpu_seconds": round(taken.cpu_seconds, 2)}  # fmt: skip
                print(f"memory {query.name} window {window:,}: {taken.peak_mb:.0f} MB", flush=True)
                found.append(record)
    return {"measured": found}


def _longest(triples: int) -> list[tuple[Stream, Query]]:
    """A query of each stream that keeps many matches."""
    university, meters = lubm.generate(triples), seas.generate(triples)
    return [(university.stream, university.queries[6]), (meters.stream, meters.queries[0])]


def _command(folder: Path, text: str, file: Path) -> Taken:
    (folder / "query.rspql").write_text(text, encoding="utf-8")
    stream = f"{STREAM}={file}"
    command = [
        sys.executable, "-m", "anabranch", "run", str(folder / "query.rspql"), "-s", stream, "--engine", "local",
        "--output", "none", "--quiet",
    ]  # fmt: skip
    return measured_command(command, folder, folder / "said")


EXPERIMENTS: dict[str, Callable[[PaperSizes], Record]] = {"table_1": table_1, "seas": seas_events, "memory": memory}


def run(smoke: bool = False, names: tuple[str, ...] = ()) -> dict[str, Any]:
    sizes = SMOKE if smoke else PaperSizes()
    found = {name: EXPERIMENTS[name](sizes) for name in names or tuple(EXPERIMENTS)}
    return {"unit": "thousand triples per processor second", "repetitions": sizes.repetitions, "experiments": found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[[], *EXPERIMENTS])
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    run(options.smoke, tuple(options.names))


if __name__ == "__main__":
    main()
