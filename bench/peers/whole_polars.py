"""polars, window by window: the file becomes a data frame, a slice of it is asked at each instant, all rows are written
at the end. Components are found by scipy, since polars has none."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import datetime

from peers.whole import BRANCH, EX, LEAST_PRICE, START, WholeJob, be_one_thread, read_job

be_one_thread()
import numpy as np  # noqa: E402
import polars as pl  # noqa: E402

VERSION = pl.__version__
ENTERING = ("entering", "triangle")
_BEGAN = datetime.fromisoformat(START)


# --- reading ---


def load(job: WholeJob) -> pl.DataFrame:
    """One row per event, in the order of time; `n` counts the seconds."""
    match job.format:
        case "ndjson":
            return _nested(pl.scan_ndjson(job.file, schema=_schema(job.stream)), job.stream).collect()
        case "parquet":
            return _nested(pl.scan_parquet(job.file), job.stream).collect()
        case "csv":
            branch = [] if job.stream == "purchases" else [pl.col("source_branch").alias("branch")]
            return pl.scan_csv(job.file).with_columns(_seconds("at"), *branch).select(_COLUMNS[job.stream]).collect()
    return _triples(job)


_COLUMNS = {"purchases": ["n", "user", "item", "category", "price"], "payments": ["n", "source", "branch", "target"]}


def _schema(stream: str) -> pl.Schema:
    other = pl.Field("category", pl.String) if stream == "purchases" else pl.Field("branch", pl.Int64)
    node = pl.Struct({"properties": pl.Struct([pl.Field("id", pl.Int64), other])})
    relationship = pl.Struct({"properties": pl.Struct({"price": pl.Float64})})
    return pl.Schema({"at": pl.String(), "nodes": pl.List(node), "relationships": pl.List(relationship)})


def _nested(frame: pl.LazyFrame, stream: str) -> pl.LazyFrame:
    def of(column: str, place: int, name: str) -> pl.Expr:
        return pl.col(column).list.get(place).struct.field("properties").struct.field(name)

    if stream == "purchases":
        columns = {
            "user": of("nodes", 0, "id"), "item": of("nodes", 1, "id"), "category": of("nodes", 1, "category"),
            "price": of("relationships", 0, "price"),
        }  # fmt: skip
    else:
        columns = {"source": of("nodes", 0, "id"), "branch": of("nodes", 0, "branch"), "target": of("nodes", 1, "id")}
    return frame.select(_seconds("at"), **columns)


def _seconds(column: str) -> pl.Expr:
    """Times as texts or as timestamps."""
    text = pl.col(column).cast(pl.String).str.slice(0, 19).str.replace("T", " ", literal=True)
    return (text.str.to_datetime("%Y-%m-%d %H:%M:%S") - _BEGAN).dt.total_seconds().alias("n")


def _triples(job: WholeJob) -> pl.DataFrame:
    read = pl.scan_csv(job.file, separator="\t", has_header=False, quote_char=None, new_columns=["at", "triple"])
    parts = pl.col("triple").str.splitn(" ", 3).struct.rename_fields(["s", "p", "o"])
    lines = read.select(_seconds("at"), parts.alias("spo")).unnest("spo")
    spo = lines.with_columns(pl.col("o").str.strip_suffix(" .")).collect()
    value = pl.col("o").str.split_exact('"', 2).struct.field("field_1")

    def of(predicate: str, name: str) -> pl.DataFrame:
        return spo.filter(pl.col("p") == f"<{EX}{predicate}>").select("n", "s", pl.col("o").alias(name))

    def values(predicate: str, name: str) -> pl.DataFrame:
        found = spo.filter(pl.col("p") == f"<{EX}{predicate}>")
        return found.select("s", value.alias(name)).unique()

    ids = values("id", "id").with_columns(pl.col("id").cast(pl.Int64))
    if job.stream == "payments":
        branches = values("branch", "branch").with_columns(pl.col("branch").cast(pl.Int64))
        sources = ids.join(branches, on="s").rename({"id": "source"})
        found = of("paid", "o").join(sources, on="s").join(ids.rename({"s": "o", "id": "target"}), on="o")
    else:
        prices = values("price", "price").with_columns(pl.col("price").cast(pl.Float64))
        items = ids.join(values("category", "category"), on="s").rename({"s": "i", "id": "item"})
        found = of("buyer", "u").join(of("item", "i").drop("n"), on="s").join(prices, on="s")
        found = found.join(ids.rename({"s": "u", "id": "user"}), on="u").join(items, on="i")
    return found.select(_COLUMNS[job.stream]).sort("n")


# --- questions ---


def _filter(part: pl.DataFrame) -> pl.DataFrame:
    return part.filter(pl.col("price") > LEAST_PRICE).select("user", "item", "price")


def _group(part: pl.DataFrame) -> pl.DataFrame:
    return part.group_by("category").agg(n=pl.len(), total=pl.col("price").sum())


def _pairs(part: pl.DataFrame) -> pl.DataFrame:
    joined = part.select("item", "category", "user").join(part.select("item", other="user"), on="item")
    return joined.filter(pl.col("user") < pl.col("other")).group_by("category").agg(n=pl.len())


def _topk(part: pl.DataFrame) -> pl.DataFrame:
    totals = part.group_by("item").agg(total=pl.col("price").sum())
    return totals.sort("total", "item", descending=[True, False]).head(10)


def _two_hop(part: pl.DataFrame) -> pl.DataFrame:
    joined = part.select("target").join(part.select("source", "branch"), left_on="target", right_on="source")
    return joined.group_by("branch").agg(n=pl.len())


def _triangle(part: pl.DataFrame) -> pl.DataFrame:
    first = part.select(x="source", y="target").filter(pl.col("x") < pl.col("y"))
    second = part.select(y="source", z="target")
    two = first.join(second, on="y").filter(pl.col("x") < pl.col("z"))
    return two.join(part.select(z="source", x="target"), on=["z", "x"]).select("x", "y", "z")


def _path(part: pl.DataFrame) -> pl.DataFrame:
    first = part.filter(pl.col("branch") == BRANCH).select("n", "target")
    second = first.join(part.select("source", end="target"), left_on="target", right_on="source")
    third = second.join(part.select("source", last="n"), left_on="end", right_on="source")
    counts = [first.height, second.height, third.filter(pl.col("n") != pl.col("last")).height]
    found = [(hops, count) for hops, count in enumerate(counts, 1) if count]
    return pl.DataFrame(found, schema={"hops": pl.Int64, "trails": pl.Int64}, orient="row")


def _connectivity(part: pl.DataFrame) -> pl.DataFrame:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ends = np.concatenate([part["source"].to_numpy(), part["target"].to_numpy()])
    accounts, places = np.unique(ends, return_inverse=True)
    half = len(places) // 2
    links = coo_array((np.ones(half, np.int8), (places[:half], places[half:])), shape=(len(accounts),) * 2)
    sizes, counts = np.unique(np.bincount(connected_components(links, directed=False)[1]), return_counts=True)
    return pl.DataFrame({"size": sizes, "accounts": sizes * counts})


QUERIES: dict[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
    "filter": _filter,
    "entering": _filter,
    "group": _group,
    "pairs": _pairs,
    "topk": _topk,
    "two_hop": _two_hop,
    "triangle": _triangle,
    "path": _path,
    "connectivity": _connectivity,
}


def entered(now: pl.DataFrame, before: pl.DataFrame) -> pl.DataFrame:
    """The difference of two bags."""
    both = pl.concat([now.with_columns(weight=1), before.with_columns(weight=-1)])
    left = both.group_by(now.columns).agg(pl.col("weight").sum()).filter(pl.col("weight") > 0)
    return left.select(pl.exclude("weight").repeat_by("weight").explode())


def run(job: WholeJob) -> None:
    given, ask = load(job), QUERIES[job.query]
    told: list[pl.DataFrame] = []
    before: pl.DataFrame | None = None
    for instant in job.instants:  # one event a second: its number is its place
        rows = ask(given.slice(instant - job.window, job.window))
        new = rows if before is None or job.query not in ENTERING else entered(rows, before)
        told.append(new.with_columns(instant=pl.lit(instant)))
        before = rows
    pl.concat(told).write_ndjson(job.out)


if __name__ == "__main__":
    run(read_job(sys.argv[1]))
