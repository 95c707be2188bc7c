"""Parquet folders: one table a query for every reader, with types that do not depend on the values."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from tests.unit.sinks.telling import COLUMNS, batches, contents, run, stopped_everywhere, told

from anabranch.errors import EngineError
from anabranch.formats.answer_tables import parse_types
from anabranch.model.temporal import parse_date, parse_date_time, parse_duration, parse_local_date_time
from anabranch.model.values import Node
from anabranch.sinks.ledger import FileLedger, MemoryLedger
from anabranch.sinks.parquet import ParquetFolder

QUERIES = {"trick": COLUMNS}
HEAD = ["number", "at", "op", "correction", "win_start", "win_end"]


def rows_of(folder: Path, query: str = "trick") -> list[dict[str, Any]]:
    files = sorted((folder / f"query={query}").glob("part-*.parquet"))
    return [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]


def test_a_dataset_reads_the_folder_as_one_table_with_the_query_as_a_column(tmp_path: Path) -> None:
    both = {"trick": COLUMNS, "ünï/x=1": ("user", "hops")}
    work = [(0, [told(0), told(0, [("x", None)], query="ünï/x=1")]), (1, [told(1, [(5, [])], correction="corrected")])]
    run(lambda: ParquetFolder(tmp_path / "out", both), tmp_path / "ledger", work)
    table = (
        ds.dataset(tmp_path / "out", partitioning="hive")
        .to_table()
        .sort_by([("query", "ascending"), ("number", "ascending")])
    )
    assert table.column_names == [*HEAD, *COLUMNS, "query"]
    assert table.column("query").to_pylist() == ["trick", "trick", "ünï/x=1"]
    assert table.column("correction").to_pylist() == [None, "corrected", None]
    assert table.column("user").to_pylist() == ["1234", "5", '"x"']
    assert table.column("hops").to_pylist() == ["[2, 3]", "[]", None]
    assert table.column("at")[0].as_py() == datetime(2022, 10, 14, 14, 0, tzinfo=UTC)
    assert table.column("win_start")[0].as_py() == datetime(2022, 10, 14, 13, 0, tzinfo=UTC)


def test_the_schema_is_the_same_whatever_the_values_are(tmp_path: Path) -> None:
    values: list[Any] = [None, 1, 1.5, "x", [1], {"a": float("nan")}, Node(1, ("A",)), parse_date("2020-01-01"), True]
    work = [(batch, [told(batch, [(value, None)])]) for batch, value in enumerate(values)]
    run(lambda: ParquetFolder(tmp_path / "out", QUERIES), tmp_path / "ledger", work)
    files = sorted((tmp_path / "out").rglob("*.parquet"))
    assert len(files) == len(values)
    assert len({pq.read_schema(file) for file in files}) == 1
    texts = [row["user"] for row in rows_of(tmp_path / "out")]
    node = {"id": 1, "labels": ["A"], "properties": {}}
    plain = [None, 1, 1.5, "x", [1], {"a": "NaN"}, node, "2020-01-01", True]
    assert [None if text is None else json.loads(text) for text in texts] == plain


def test_columns_can_be_given_types(tmp_path: Path) -> None:
    types = parse_types("i:int64, f:float64,s:string,b:bool,t:timestamp,r.j:json")
    columns = ("i", "f", "s", "b", "t", "r.j")
    moment = parse_date_time("2020-01-01T01:00:00.5+01:00[Europe/Paris]")
    rows: list[tuple[Any, ...]] = [
        (2**63 - 1, 1, "ä", True, moment, 1),
        (None, None, None, None, None, None),
        (-1, float("inf"), parse_duration("PT1H"), False, parse_local_date_time("2020-01-01T00:00:00.5"), "x"),
        (0, 1.5, "", True, parse_date("2020-01-01"), []),
        (0, 1.5, "", True, "2020-01-01T00:00:00.5Z", []),
    ]
    work = [(0, [told(0, rows, "q", columns)])]
    run(lambda: ParquetFolder(tmp_path / "out", {"q": columns}, types), tmp_path / "ledger", work)
    table = pq.ParquetFile(tmp_path / "out" / "query=q" / "part-00000000.parquet").read()
    kinds = [pa.int64(), pa.float64(), pa.string(), pa.bool_(), pa.timestamp("us", tz="UTC"), pa.string()]
    assert [table.schema.field(name).type for name in columns] == kinds
    half = datetime(2020, 1, 1, 0, 0, 0, 500_000, tzinfo=UTC)
    assert table.column("i").to_pylist() == [2**63 - 1, None, -1, 0, 0]
    assert table.column("f").to_pylist() == [1.0, None, float("inf"), 1.5, 1.5]
    assert table.column("s").to_pylist() == ["ä", None, "PT1H", "", ""]
    assert table.column("t").to_pylist() == [half, None, half, datetime(2020, 1, 1, tzinfo=UTC), half]
    assert table.column("r.j").to_pylist() == ["1", None, '"x"', "[]", "[]"]


@pytest.mark.parametrize(
    ("kind", "value", "shown"),
    [
        ("int64", 1.0, "1.0"),
        ("int64", True, "true"),
        ("float64", "1", "'1'"),
        ("string", 5, "5"),
        ("string", float("nan"), "NaN"),
        ("bool", 0, "0"),
        ("timestamp", "yesterday", "'yesterday'"),
        ("timestamp", 0, "0"),
        ("int64", "x" * 500, "'" + "x" * 79 + "…"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_name_and_leaves_no_file(
    kind: str, value: Any, shown: str, tmp_path: Path
) -> None:
    sink = ParquetFolder(tmp_path / "out", {**QUERIES, "other": COLUMNS}, {"user": kind})
    sink.open(MemoryLedger())
    good = told(0, [(None, None)], query="other")
    with pytest.raises(EngineError) as refusal:
        sink.write(0, [good, told(0, [(value, None)])])
    assert str(refusal.value).splitlines() == [
        f"query `trick`, column `user`: {shown} is no {kind}",
        "hint: leave the column's type out, or write columns=user:json; JSON text holds any value",
    ]
    assert contents(tmp_path / "out") == {}


def test_text_that_utf8_cannot_hold_is_an_escape_in_json_and_refused_as_string(tmp_path: Path) -> None:
    run(lambda: ParquetFolder(tmp_path / "a", QUERIES), tmp_path / "ledger", [(0, [told(0, [("\ud800", 1)])])])
    assert json.loads(rows_of(tmp_path / "a")[0]["user"]) == "\ud800"
    sink = ParquetFolder(tmp_path / "b", QUERIES, {"user": "string"})
    sink.open(MemoryLedger())
    with pytest.raises(EngineError, match="is no string"):
        sink.write(0, [told(0, [("\ud800", 1)])])


def test_names_that_clash_with_ours_get_an_underscore(tmp_path: Path) -> None:
    columns = ("query", "at", "number", "x")
    work = [(0, [told(0, [(1, 2, 3, 4)], "q", columns)])]
    run(lambda: ParquetFolder(tmp_path / "out", {"q": columns}), tmp_path / "ledger", work)
    assert list(rows_of(tmp_path / "out", "q")[0]) == [*HEAD, "query_", "at_", "number_", "x"]


def test_answers_without_rows_or_columns(tmp_path: Path) -> None:
    work = [(0, [told(0, [], "q", ())]), (1, [told(1, [(), ()], "q", ())])]
    run(lambda: ParquetFolder(tmp_path / "out", {"q": ()}), tmp_path / "ledger", work)
    assert list(contents(tmp_path / "out")) == ["query=q/part-00000001.parquet"]
    assert [row["number"] for row in rows_of(tmp_path / "out", "q")] == [1, 1]


@pytest.mark.parametrize("loses", [False, True], ids=["keeps", "loses"])
def test_a_machine_that_stops_anywhere_leaves_the_same_folder(loses: bool, tmp_path: Path) -> None:
    calls = 0
    for call, expected, left in stopped_everywhere(lambda folder: ParquetFolder(folder, QUERIES), tmp_path, loses):
        assert left == expected, f"stopped at call {call}"
        calls += 1
    assert calls > 10


def test_a_batch_that_comes_again_replaces_its_files_and_leftovers_vanish(tmp_path: Path) -> None:
    work = list(enumerate(batches()))
    run(lambda: ParquetFolder(tmp_path / "out", QUERIES), tmp_path / "ledger", work)
    whole = contents(tmp_path / "out")
    (tmp_path / "out" / "query=trick" / "part-00000005.parquet").write_bytes(b"PAR1 torn")
    (tmp_path / "out" / "query=trick" / ".part-00000009.parquet.tmp").write_bytes(b"half")
    run(lambda: ParquetFolder(tmp_path / "out", QUERIES), tmp_path / "ledger", work[5:])
    assert contents(tmp_path / "out") == whole


def test_a_folder_of_another_run_is_refused_or_appended_to_or_overwritten(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    work = list(enumerate(batches()))
    run(lambda: ParquetFolder(folder, QUERIES), tmp_path / "first", work)
    with pytest.raises(EngineError, match=r"holds files already, such as query=trick/part-00000000\.parquet\nhint"):
        ParquetFolder(folder, QUERIES).open(MemoryLedger())
    count = len(rows_of(folder))
    run(lambda: ParquetFolder(folder, QUERIES, append=True), tmp_path / "second", work)
    assert len(rows_of(folder)) == 2 * count
    run(lambda: ParquetFolder(folder, QUERIES, overwrite=True), tmp_path / "third", [(0, [told(0, query="new")])])
    assert list(contents(folder)) == ["query=new/part-00000000.parquet"]
    assert not (folder / "query=trick").exists()


def test_types_that_do_not_exist_are_refused_with_what_does(tmp_path: Path) -> None:
    with pytest.raises(EngineError) as refusal:
        ParquetFolder(tmp_path, QUERIES, {"usr": "int64"})
    assert str(refusal.value) == "no query has a column `usr`\nhint: did you mean `user`?  Columns: user, hops."
    with pytest.raises(EngineError) as refusal:
        ParquetFolder(tmp_path, QUERIES, {"user": "int46"})
    assert str(refusal.value) == (
        "column `user`: no type `int46`\n"
        "hint: did you mean `int64`?  Types: int64, float64, string, bool, timestamp, json."
    )
    with pytest.raises(EngineError, match="`user` does not say a type"):
        parse_types("user")
    assert parse_types("") == {}


def test_a_query_that_is_new_since_the_start_is_written_too(tmp_path: Path) -> None:
    sink = ParquetFolder(tmp_path / "out", {})
    sink.open(FileLedger(tmp_path / "ledger"))
    sink.write(0, [told(0)])
    assert rows_of(tmp_path / "out")[0]["user"] == "1234"
