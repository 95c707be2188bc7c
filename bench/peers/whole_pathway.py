"""Pathway, incremental: events come in and leave with the instants as its times, and the changes of the answer are
added up to the rows of each instant.

Arrow reads the file. Joins and groups are Pathway's; the first ten of all sums are picked from its groups in Python,
and it has no components. Prices are summed as whole quarters: sums of floats in its version 0.33 were seen to stay as
they were when one event left a group and another came at the same time.
"""

from __future__ import annotations

import json
import logging
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

from peers.whole import BRANCH, EX, LEAST_PRICE, START, WholeJob, be_one_thread, read_job

be_one_thread()
import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
import pathway as pw  # noqa: E402
import pyarrow as pa  # noqa: E402
import pyarrow.compute as pc  # noqa: E402
import pyarrow.csv  # noqa: E402
import pyarrow.json  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

VERSION = pw.__version__
ENTERING = ("entering", "triangle")
_TYPES = {
    "n": int,
    "user": int,
    "item": int,
    "category": str,
    "price": float,
    "source": int,
    "branch": int,
    "target": int,
}
_COLUMNS = {"purchases": ["n", "user", "item", "category", "price"], "payments": ["n", "source", "branch", "target"]}
logging.disable(logging.CRITICAL)


# --- reading ---


def load(job: WholeJob) -> pd.DataFrame:
    """One row per event, in the order of time; `n` counts the seconds."""
    match job.format:
        case "ndjson":
            block = pa.json.ReadOptions(use_threads=False, block_size=16 << 20)
            return _nested(pa.json.read_json(job.file, read_options=block), job.stream)
        case "parquet":
            return _nested(pq.read_table(job.file, use_threads=False), job.stream)
        case "csv":
            read = pa.csv.read_csv(job.file, read_options=pa.csv.ReadOptions(use_threads=False)).to_pandas()
            return read.assign(n=_seconds(read["at"])).rename(columns={"source_branch": "branch"})[_COLUMNS[job.stream]]
    return _triples(job)


def _nested(table: Any, stream: str) -> pd.DataFrame:
    def of(column: str, place: int, name: str) -> Any:
        return pc.struct_field(pc.list_element(table[column], place), ["properties", name])

    if stream == "purchases":
        columns = {
            "user": of("nodes", 0, "id"), "item": of("nodes", 1, "id"), "category": of("nodes", 1, "category"),
            "price": of("relationships", 0, "price"),
        }  # fmt: skip
    else:
        columns = {"source": of("nodes", 0, "id"), "branch": of("nodes", 0, "branch"), "target": of("nodes", 1, "id")}
    found = pa.table(columns).to_pandas()
    return found.assign(n=_seconds(table["at"].to_pandas()))[_COLUMNS[stream]]


def _seconds(times: Any) -> Any:
    found = pd.to_datetime(times, utc=True) - pd.Timestamp(START, tz="UTC")
    return (found // pd.Timedelta(seconds=1)).astype("int64")


def _triples(job: WholeJob) -> pd.DataFrame:
    options = pa.csv.ParseOptions(delimiter="\t", quote_char=False)
    reading = pa.csv.ReadOptions(use_threads=False, column_names=["at", "triple"])
    read = pa.csv.read_csv(job.file, read_options=reading, parse_options=options)
    pattern = r"^(?P<s>\S+) (?P<p>\S+) (?P<o>.*) \.$"
    parts = pc.extract_regex(read["triple"], pattern).combine_chunks()
    spo = pd.DataFrame({name: parts.field(name).to_pandas() for name in "spo"})
    spo["n"] = _seconds(read["at"].to_pandas()).to_numpy()

    def of(predicate: str, name: str) -> pd.DataFrame:
        return spo[spo["p"] == f"<{EX}{predicate}>"][["n", "s", "o"]].rename(columns={"o": name})

    def values(predicate: str, name: str, kind: str) -> pd.DataFrame:
        found = of(predicate, name)[["s", name]].drop_duplicates()
        return found.assign(**{name: found[name].str.split('"').str[1].astype(kind)})

    ids = values("id", "id", "int64")
    if job.stream == "payments":
        sources = ids.rename(columns={"id": "source"}).merge(values("branch", "branch", "int64"), on="s")
        found = of("paid", "o").merge(sources, on="s").merge(ids.rename(columns={"s": "o", "id": "target"}), on="o")
    else:
        items = ids.rename(columns={"id": "item"}).merge(values("category", "category", "str"), on="s")
        found = of("buyer", "u").merge(of("item", "i").drop(columns="n"), on="s")
        found = found.merge(values("price", "price", "float64"), on="s")
        found = found.merge(ids.rename(columns={"s": "u", "id": "user"}), on="u")
        found = found.merge(items.rename(columns={"s": "i"}), on="i")
    return found[_COLUMNS[job.stream]].sort_values("n")


def changes(given: pd.DataFrame, job: WholeJob) -> Any:
    """The events as a table of Pathway: each comes at the first instant whose window has it, and leaves at the first
    whose window has it no more."""
    numbers = given["n"].to_numpy()
    comes = np.maximum(0, -(-(numbers - job.window) // job.slide))
    leaves = -(-numbers // job.slide)
    stays = leaves >= len(job.instants)
    frame = pd.concat([
        given.assign(__time__=2 * comes + 2, __diff__=1),
        given.assign(__time__=2 * leaves + 2, __diff__=-1)[~stays],
    ]).sort_values("__time__", kind="stable")  # fmt: skip
    kinds = {name: pw.column_definition(primary_key=name == "n", dtype=_TYPES.get(name, int)) for name in given.columns}
    return pw.debug.table_from_pandas(frame, schema=pw.schema_builder(kinds))


# --- questions ---


def _filter(part: Any) -> Any:
    return part.filter(part.price > LEAST_PRICE).select(pw.this.user, pw.this.item, pw.this.price)


def _group(part: Any) -> Any:
    found = _with_quarters(part)
    found = found.groupby(found.category).reduce(
        pw.this.category, n=pw.reducers.count(), total=pw.reducers.sum(pw.this.quarters)
    )
    return found.select(pw.this.category, pw.this.n, total=pw.this.total / 4)


def _pairs(part: Any) -> Any:
    other = part.copy()
    joined = part.join(other, part.item == other.item).select(part.category, one=part.user, two=other.user)
    return (
        joined.filter(joined.one < joined.two).groupby(pw.this.category).reduce(pw.this.category, n=pw.reducers.count())
    )


def _totals(part: Any) -> Any:
    found = _with_quarters(part)
    found = found.groupby(found.item).reduce(pw.this.item, total=pw.reducers.sum(pw.this.quarters))
    return found.select(pw.this.item, total=pw.this.total / 4)


def _with_quarters(part: Any) -> Any:
    return part.select(pw.this.item, pw.this.category, quarters=pw.cast(int, pw.this.price * 4))


def _two_hop(part: Any) -> Any:
    other = part.copy()
    joined = part.join(other, part.target == other.source).select(branch=other.branch)
    return joined.groupby(joined.branch).reduce(pw.this.branch, n=pw.reducers.count())


def _triangle(part: Any) -> Any:
    second, third = part.copy(), part.copy()
    two = part.join(second, part.target == second.source).select(x=part.source, y=part.target, z=second.target)
    two = two.filter((two.x < two.y) & (two.x < two.z))
    return two.join(third, two.z == third.source, two.x == third.target).select(two.x, two.y, two.z)


def _path(part: Any) -> Any:
    first = part.filter(part.branch == BRANCH).select(pw.this.n, pw.this.target)
    second = part.copy()
    two = first.join(second, first.target == second.source).select(first.n, end=second.target)
    third = part.copy()
    three = two.join(third, two.end == third.source).select(two.n, last=third.n)
    three = three.filter(three.n != three.last)
    counted = [
        table.select(hops=hops).groupby(pw.this.hops).reduce(pw.this.hops, trails=pw.reducers.count())
        for hops, table in ((1, first), (2, two), (3, three))
    ]
    return counted[0].concat_reindex(*counted[1:])


QUERIES: dict[str, Callable[[Any], Any]] = {
    "filter": _filter,
    "entering": _filter,
    "group": _group,
    "pairs": _pairs,
    "topk": _totals,
    "two_hop": _two_hop,
    "triangle": _triangle,
    "path": _path,
}


def run(job: WholeJob) -> None:
    if job.query not in QUERIES:
        sys.exit(f"Pathway has no {job.query}")
    by_time: dict[int, list[tuple[tuple[Any, ...], int]]] = {}
    answer = QUERIES[job.query](changes(load(job), job))
    columns = answer.column_names()

    def on_change(key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
        values = tuple(row[name] for name in columns)
        by_time.setdefault(time, []).append((values, 1 if is_addition else -1))

    pw.io.subscribe(answer, on_change=on_change)
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    alive: Counter[tuple[Any, ...]] = Counter()
    with open(job.out, "w", encoding="utf-8") as out:
        for number, instant in enumerate(job.instants):
            changed: Counter[tuple[Any, ...]] = Counter()
            for row, weight in by_time.get(2 * number + 2, ()):
                changed[row] += weight
            for row, weight in changed.items():
                alive[row] += weight
                if not alive[row]:
                    del alive[row]
            told = +changed if job.query in ENTERING else alive
            rows: Any = told.elements()
            if job.query == "topk":
                rows = sorted(rows, key=lambda row: (-row[1], row[0]))[:10]
            for row in rows:
                out.write(json.dumps({"instant": instant, **dict(zip(columns, row, strict=True))}) + "\n")


if __name__ == "__main__":
    run(read_job(sys.argv[1]))
