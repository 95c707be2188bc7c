"""The text that names a sink: which one it is, its options, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.unit.sinks.telling import COLUMNS, contents, told

from anabranch.errors import EngineError
from anabranch.sinks.base import Sink
from anabranch.sinks.console import Console
from anabranch.sinks.files import LinesFile, LinesFolder
from anabranch.sinks.kafka import KafkaSink
from anabranch.sinks.ledger import MemoryLedger
from anabranch.sinks.memory import MemoryTable
from anabranch.sinks.open import open_sink
from anabranch.sinks.parquet import ParquetFolder
from anabranch.sinks.webhook import Webhook

QUERIES = {"trick": COLUMNS}


def written(text: str, queries: Mapping[str, Any] = QUERIES, corrections: bool = False) -> None:
    sink = open_sink(text, queries, corrections)
    sink.open(MemoryLedger())
    sink.write(0, [told(0)])
    sink.close()


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("text", "kind", "forms"),
    [
        ("out.ndjson", LinesFile, ("json",)),
        ("out.ndjson.gz", LinesFile, ("json",)),
        ("OUT.JSONL", LinesFile, ("json",)),
        ("out.json", LinesFile, ("json",)),
        ("out.csv", LinesFile, ("csv",)),
        ("a:b.csv.gz", LinesFile, ("csv",)),
        ("C:out.csv", LinesFile, ("csv",)),
        ("ndjson:out", LinesFile, ("json",)),
        ("csv:out.txt?append=1", LinesFile, ("csv",)),
        ("out/", LinesFolder, ("json",)),
        ("there", LinesFolder, ("json",)),
        ("out.csv/", LinesFolder, ("json",)),
        ("csv:out/?gz=1&overwrite=yes", LinesFolder, ("csv",)),
        ("ndjson:there", LinesFolder, ("json",)),
        ("parquet:out", ParquetFolder, ("typed",)),
        ("parquet:out/?columns=user:int64,hops:json&append=1", ParquetFolder, ("typed",)),
        ("out.parquet", ParquetFolder, ("typed",)),
        ("out.parquet/", ParquetFolder, ("typed",)),
        ("-", Console, ("json",)),
        ("csv:-", Console, ("csv",)),
        ("memory:", MemoryTable, ("typed",)),
        ("memory:?limit=10", MemoryTable, ("typed",)),
        ("http://localhost/x", Webhook, ("typed",)),
        ("https://localhost/x?timeout=5&token=T", Webhook, ("typed",)),
        ("webhook:https://localhost/x", Webhook, ("typed",)),
    ],
)
def test_a_text_names_a_sink_and_nothing_is_made_yet(
    text: str, kind: type[Sink], forms: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "there").mkdir()
    sink = open_sink(text, QUERIES)
    assert type(sink) is kind
    assert sink.forms == forms
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("out.ndjson", "out.ndjson"),
        ("ndjson:a b/ü?append=1", "a b/ü"),
        ("out/", "out/part-00000000.ndjson"),
        ("csv:out/?gz=1", "out/part-00000000.csv.gz"),
        ("out.parquet", "out.parquet/query=trick/part-00000000.parquet"),
    ],
)
def test_answers_go_where_the_text_says(text: str, made: str, tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()
    written(text)
    assert list(contents(tmp_path)) == [made]


def test_file_addresses_are_paths(tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()
    written(f"file://{tmp_path}/a%20b/out.csv")
    written("file:plain.ndjson")
    assert list(contents(tmp_path)) == ["a b/out.csv", "plain.ndjson"]
    with pytest.raises(EngineError, match="names the computer `host`"):
        open_sink("file://host/out.csv", QUERIES)


def test_csv_of_several_queries_has_their_names_and_the_columns_of_all(tmp_path: Path) -> None:
    written("one.csv")
    written("two.csv", {"trick": COLUMNS, "other": ("x", "user")})
    written("three.csv", corrections=True)
    heads = [(tmp_path / f"{name}.csv").read_bytes().splitlines()[0] for name in ("one", "two", "three")]
    assert heads == [
        b"at,op,win_start,win_end,user,hops",
        b"query,at,op,win_start,win_end,user,hops,x",
        b"at,op,correction,win_start,win_end,user,hops",
    ]


def test_kafka_is_given_its_brokers_topic_and_options() -> None:
    sink = open_sink("kafka://me:secret@a:1234,b/the.topic?rdkafka.acks=all", QUERIES)
    assert isinstance(sink, KafkaSink)
    assert (sink.topic.bootstrap, sink.topic.name) == ("a:1234,b:9092", "the.topic")
    settings = sink.topic.client_settings()
    assert (settings["acks"], settings["sasl.username"], settings["sasl.password"]) == ("all", "me", "secret")


@pytest.mark.parametrize("text", ["kafka://host", "kafka:topic", "kafka:///topic"])
def test_kafka_without_brokers_or_topic_is_refused(text: str) -> None:
    with pytest.raises(EngineError, match=r"kafka.*\nhint: "):
        open_sink(text, QUERIES)


def test_a_webhook_keeps_what_is_not_ours_in_its_address() -> None:
    sink = open_sink("https://localhost/x?b=%20&timeout=5&a=1&token=NAME&%74oken=theirs", QUERIES)
    assert isinstance(sink, Webhook)
    assert sink._url.geturl() == "https://localhost/x?b=%20&a=1&%74oken=theirs"
    assert (sink._timeout, sink._token) == (5.0, "NAME")


@pytest.mark.parametrize(
    ("text", "first", "hint"),
    [
        ("parqet:out/", "no sink for `parqet:`", "did you mean `parquet`?  Answers can go to"),
        ("s3://bucket/out/", "no sink for `s3:`", "Answers can go to"),
        ("out.csw", "no sink writes files that end with `.csw`", "did you mean `.csv`?  Answers can go to"),
        ("out", "`out` does not say the form of a file", "Answers can go to"),
        ("", "`` names no place for the answers", "Answers can go to"),
        ("csv:", "`csv:` names no file or folder", "Answers can go to"),
    ],
)
def test_what_is_not_understood_is_refused_with_what_exists(text: str, first: str, hint: str) -> None:
    with pytest.raises(EngineError) as refusal:
        open_sink(text, QUERIES)
    lines = str(refusal.value).splitlines()
    assert lines[0] == first
    assert lines[1] == f"hint: {hint}"
    assert lines[2] == "  out.ndjson               JSON lines, also .jsonl, .json and .gz"
    assert len(lines) == 13


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("out.csv?apend=1", "no option `apend`\nhint: did you mean `append`?  Options: append, overwrite."),
        ("csv:-?append=1", "no option `append`\nhint: It has no options."),
        ("out.csv?append=1&overwrite=1", "append and overwrite exclude each other\nhint: choose one of the two"),
        ("out.csv?append=maybe", "`append` is yes or no, and not `maybe`\nhint: write append=1"),
        ("out/?columns=user:int64", "no option `columns`\nhint: Options: append, overwrite, gz."),
        ("memory:?limit=many", "limit is a number, and not `many`"),
        ("memory:out", "a table in memory has no place\nhint: write memory:"),
        ("http://localhost/?timeout=soon", "timeout is a number, and not `soon`"),
        ("ndjson:s3://bucket/out", "files are written to this computer only\nhint: name a path"),
    ],
)
def test_options_that_make_no_sense_are_refused(text: str, message: str) -> None:
    with pytest.raises(EngineError) as refusal:
        open_sink(text, QUERIES)
    assert str(refusal.value) == f"`{text}`: {message}"


def test_parquet_cannot_be_printed() -> None:
    with pytest.raises(EngineError, match=r"Parquet cannot be printed\nhint: name a folder: parquet:out/"):
        open_sink("parquet:-", QUERIES)
