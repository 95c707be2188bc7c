"""Queries over data frames answer as a session that was pushed the same rows, in batches and as a stream, restarted."""

from __future__ import annotations

import json
import runpy
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from anabranch import Session
from anabranch.errors import EngineError, QueryError, StreamError
from anabranch.spark import query
from anabranch.spark.session import RunningSpark
from anabranch.syntax.languages import QueryText

ROOT = Path(__file__).parents[2]
START = datetime(2024, 5, 1, tzinfo=UTC)
PAIRS = """REGISTER QUERY pairs STARTING AT 2024-05-01T00:00:10Z {
  MATCH (a:A)-[r:R]->(b)<-[s:R]-(c:A) WITHIN PT20S WHERE a.x < c.x
  EMIT a.x AS x, c.x AS y, r.w AS `at` %s EVERY PT5S }"""
LOADED = """LOAD STREAM FROM 'pay' AS row AT row.at
MERGE (a:A {x: row.x}) MERGE (b {n: row.n}) CREATE (a)-[:R {w: row.w}]->(b)
"""
TRIPLES = """REGISTER RSTREAM <urn:q> STARTING AT 2024-05-01T00:00:10Z AS SELECT ?a (COUNT(*) AS ?n)
FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT20S STEP PT5S]
WHERE { WINDOW <urn:w> { ?a <urn:p> ?b . ?b <urn:p> ?c } } GROUP BY ?a"""
Row = dict[str, Any]


def times(count: int, seed: int = 1) -> list[datetime]:
    """Times a quarter of a second apart, some a few seconds out of order."""
    draw = Random(seed)
    return [START + timedelta(seconds=0.25 * number - draw.choice((0, 0, 0, 2, 4))) for number in range(count)]


def records(count: int, seed: int = 1) -> list[Row]:
    draw = Random(seed)
    return [
        {"at": at, "x": draw.randrange(5), "n": draw.randrange(3), "w": draw.randrange(100)}
        for at in times(count, seed)
    ]


def event(record: Row, number: int) -> Row:
    nodes = [
        {"id": f"a{record['x']}", "labels": ["A"], "properties": {"x": record["x"]}},
        {"id": f"b{record['n']}", "labels": [], "properties": {}},
    ]
    link = {"id": number, "type": "R", "from": nodes[0]["id"], "to": nodes[1]["id"], "properties": {"w": record["w"]}}
    return {"at": record["at"].isoformat(), "nodes": nodes, "relationships": [link]}


def triples(count: int) -> list[Row]:
    draw = Random(3)
    return [
        {"at": at, "s": f"urn:{draw.randrange(6)}", "p": "urn:p", "o": f"urn:{draw.randrange(6)}"}
        for at in times(count)
    ]


def told(session: Session) -> Counter[str]:
    return Counter(
        json.dumps([answer.query, str(answer.at), answer.op, row], sort_keys=True)
        for answer in session.take()
        for row in answer.to_dict()["rows"]
    )


def shown(frame: DataFrame, names: Mapping[str, str]) -> Counter[str]:
    """The rows of a frame as those of a session; `names` are columns with what they are called in the frame."""
    found: Counter[str] = Counter()
    for row in frame.collect():
        at = row["at"].astimezone(UTC).isoformat().replace("+00:00", "Z")
        values = {name: json.loads(row[called]) for name, called in names.items()}
        found[json.dumps([row["query"], at, row["op"], values], sort_keys=True)] += 1
    return found


def answered(text: str, pieces: Iterable[list[Row]], *, stream: str = "pay", finish: bool = True) -> Counter[str]:
    """The answers of a session that is pushed pieces, each in the order of time."""
    session = Session.local(lateness="PT5S")
    session.register(text, file_name="q.rspql" if "RSTREAM" in text else "q.seraph")
    for piece in pieces:
        session.push(stream, sorted(piece, key=lambda one: datetime.fromisoformat(one["at"])))
    if finish:
        session.finish()
    return told(session)


PAIR_COLUMNS = {"x": "x", "y": "y", "at": "at_"}


@pytest.fixture
def spark(running: RunningSpark) -> SparkSession:
    return running.session


@pytest.mark.parametrize("form", ["texts", "events", "records"])
def test_a_batch_frame_has_the_answers_of_a_stream_that_has_ended(spark: SparkSession, form: str) -> None:
    rows = records(120)
    events = [event(row, number) for number, row in enumerate(rows)]
    text = PAIRS % "SNAPSHOT"
    if form == "records":
        frame = spark.createDataFrame(rows, "at timestamp, x long, n long, w long")  # type: ignore[type-var]
        text = LOADED + text
    else:
        frame = spark.createDataFrame([(json.dumps(one),) for one in events], "value string")
        if form == "events":
            frame = spark.read.json(frame.rdd.map(lambda row: row[0]))
    found = query(text, {"pay": frame.repartition(3)}, lateness="PT5S")
    expected = answered(PAIRS % "SNAPSHOT", [events])
    assert sum(expected.values()) > 100
    assert shown(found, PAIR_COLUMNS) == expected


def test_a_stream_of_triples_goes_on_from_sparks_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    rows = triples(200)
    source = tmp_path / "in"
    reader = spark.readStream.schema("at timestamp, s string, p string, o string")
    pieces = [rows[:70], rows[70:130], rows[130:]]
    for number, piece in enumerate(pieces):
        frame = spark.createDataFrame(piece, "at timestamp, s string, p string, o string")  # type: ignore[type-var]
        frame.repartition(2).write.mode("append").parquet(str(source / f"{number}"))
        # Each start reads what is new: a query of its own, from the checkpoint of the one before.
        streamed = reader.parquet(str(source / "*")).withWatermark("at", "5 seconds")
        answers = query([QueryText(TRIPLES, "q.rspql")], {"s": streamed}, types={"n": "int64"})
        writing = answers.writeStream.format("parquet").option("path", str(tmp_path / "out"))
        run = writing.option("checkpointLocation", str(tmp_path / "cp")).trigger(availableNow=True).start()
        run.awaitTermination()
    found = spark.read.parquet(str(tmp_path / "out"))
    assert dict(found.dtypes)["n"] == "bigint"
    plain = [
        [{"at": row["at"].isoformat(), "triples": [[f"<{row[name]}>" for name in "spo"]]} for row in piece]
        for piece in pieces
    ]
    expected = answered(TRIPLES, plain, stream="urn:s", finish=False)
    assert sum(expected.values()) > 30
    assert shown(found.withColumn("n", found["n"].cast("string")), {"a": "a", "n": "n"}) == expected


def test_the_program_of_the_examples_joins_answers_with_a_table(spark: SparkSession, tmp_path: Path) -> None:
    program = runpy.run_path(str(ROOT / "examples" / "bikes" / "frames.py"))
    told = program["answers"](spark, str(ROOT / "examples" / "bikes" / "events*.ndjson"))
    writing = told.writeStream.format("parquet").option("path", str(tmp_path / "out"))
    writing.option("checkpointLocation", str(tmp_path / "cp")).trigger(availableNow=True).start().awaitTermination()
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    # The second trick is complete at 15:40, which no later event has made final.
    assert [(row["user"], row["station"], row["hops"]) for row in rows] == [(1234, "Main Square", "[2, 3]")]


def test_rows_that_are_set_aside_are_counted_and_come_as_letters(spark: SparkSession, tmp_path: Path) -> None:
    rows = [json.dumps(event(row, number)) for number, row in enumerate(records(60))]
    late = json.dumps(event({**records(1)[0], "at": START}, 99))
    source = tmp_path / "in"
    for number, lines in enumerate((["no event", *rows], [late])):
        spark.createDataFrame([(line,) for line in lines], "value string").coalesce(1).write.mode("append").text(
            str(source)
        )
        streamed = spark.readStream.text(str(source))
        answers = query(PAIRS % "ON ENTERING", {"pay": streamed}, letters=True, lateness="PT5S")
        writing = answers.writeStream.format("parquet").option("path", str(tmp_path / "out"))
        run = writing.option("checkpointLocation", str(tmp_path / "cp")).trigger(availableNow=True).start()
        run.awaitTermination()
        figures = run.recentProgress[-1]["observedMetrics"]["anabranch"]
        assert (figures["malformed"], figures["late"], figures["events"]) == [(1, 0, 60), (0, 1, 60)][number]
    letters = spark.read.parquet(str(tmp_path / "out")).where("letter is not null").collect()
    assert {(row["op"], row["query"]) for row in letters} == {("malformed", "pay"), ("late", "pay")}
    (malformed,) = (json.loads(row["letter"]) for row in letters if row["op"] == "malformed")
    assert (malformed["line"], malformed["raw"]) == (1, "no event")
    assert "not JSON" in malformed["reason"]


def test_frames_that_cannot_be_streams_are_refused_before_anything_runs(spark: SparkSession) -> None:
    text = PAIRS % "SNAPSHOT"
    batch = spark.createDataFrame([("{}",)], "value string")
    stream = spark.readStream.format("rate").load()
    with pytest.raises(StreamError, match=r"its columns are timestamp, value\nhint: give at, nodes"):
        query(text, {"pay": stream})
    with pytest.raises(StreamError, match="there is no frame for stream `pay`; there are: other"):
        query(LOADED + text, {"other": batch})
    with pytest.raises(StreamError, match="`pay`: list is no data frame of Spark"):
        query(text, {"pay": []})  # type: ignore[dict-item]
    with pytest.raises(StreamError, match="needs a frame"):
        query(text, {})
    with pytest.raises(EngineError, match="no option `checkpoint` of queries over frames"):
        query(text, {"pay": batch}, checkpoint="here")  # type: ignore[call-arg]
    with pytest.raises(EngineError, match="no query has a column `z`"):
        query(text, {"pay": batch}, types={"z": "int64"})
    with pytest.raises(QueryError):
        query("REGISTER QUERY q STARTING AT NOW { MATCH (a) EMIT b SNAPSHOT EVERY PT1S }", {"pay": batch})


def test_a_state_store_that_cannot_keep_the_state_is_named_with_the_setting(spark: SparkSession) -> None:
    name = "spark.sql.streaming.stateStore.providerClass"
    before = spark.conf.get(name)
    stream = spark.readStream.format("rate").load().selectExpr("cast(value as string) as value")
    spark.conf.set(name, "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider")
    try:
        with pytest.raises(EngineError, match=r"keep their state in RocksDB(.|\n)*spark.conf.set"):
            query(PAIRS % "SNAPSHOT", {"pay": stream})
    finally:
        spark.conf.set(name, before or "")
