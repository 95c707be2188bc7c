"""Tables of timed triples: which columns they have, what a cell means, and that packing is reading."""

from __future__ import annotations

import csv
import io
from datetime import UTC, date, datetime
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.errors import MalformedEventError, StreamError
from anabranch.formats import chunks
from anabranch.formats.deadletter import MalformedRecord
from anabranch.formats.rdf import tables
from anabranch.formats.rdf.tables import (
    TableHeader,
    TripleColumns,
    as_table,
    csv_header,
    events_of_table,
    header_of,
    pack_batch,
    pack_csv,
    pack_rows,
    read_csv,
    read_rows,
    triple_batches,
    write_csv,
    write_parquet_triples,
)
from anabranch.model.event import Event
from anabranch.model.terms import (
    XSD_BOOLEAN,
    XSD_DATE,
    XSD_DATE_TIME,
    XSD_DECIMAL,
    XSD_DOUBLE,
    XSD_INTEGER,
    Blank,
    Iri,
    Literal,
    Term,
    Triple,
)

from .drawing import EVENTS, one_by_one, renamed

HEADER = TableHeader("s", "p", "o", "at")


def csv_events(text: str) -> list[Event | MalformedRecord]:
    return list(read_csv(io.StringIO(text, newline=""), "d"))


def batch(**columns: Any) -> Any:
    given = {"s": ["http://ex/a"], "p": ["http://ex/p"], "o": ["x"], "at": [5], **columns}
    length = max(map(len, given.values()))
    return pa.RecordBatch.from_pydict(
        {name: pa.array(values * length if len(values) < length else values) for name, values in given.items()}
    )


def agree(rows: Any) -> list[Event]:
    packed = pack_rows(rows, HEADER, "d")
    assert packed is not None
    events = chunks.unpack(packed)
    assert events == list(read_rows(rows, HEADER, 0, "d"))
    return events


@settings(max_examples=100)
@given(st.lists(EVENTS, max_size=4))
def test_what_is_written_as_csv_is_read_again_row_by_row(events: list[Event]) -> None:
    file = io.BytesIO()
    assert write_csv(events, file) == len(events)
    found = csv_events(file.getvalue().decode())
    assert renamed(record for record in found if isinstance(record, Event)) == renamed(one_by_one(events))


@settings(max_examples=60)
@given(st.lists(EVENTS, max_size=4))
def test_what_is_written_as_parquet_is_read_again_and_packed_alike(events: list[Event]) -> None:
    file = io.BytesIO()
    write_parquet_triples(events, file)
    with pq.ParquetFile(io.BytesIO(file.getvalue())) as parquet:
        header = header_of(parquet.schema_arrow.names)
        assert header is not None
        found = [event for rows in triple_batches(parquet, header) for event in agree(rows)]
    assert renamed(found) == renamed(one_by_one(events))


@pytest.mark.parametrize(
    ("names", "header"),
    [
        (["s", "p", "o", "at"], TableHeader("s", "p", "o", "at")),
        (["Time", " Subject", "Object", "PREDICATE", "more"], TableHeader(" Subject", "PREDICATE", "Object", "Time")),
        (["s", "predicate", "o", "timestamp"], TableHeader("s", "predicate", "o", "timestamp")),
        (["s", "p", "o"], None),
        (["at", "nodes"], None),
    ],
)
def test_the_columns_are_known_by_their_names(names: list[str], header: TableHeader | None) -> None:
    assert header_of(names) == header


def test_cells_of_csv_are_terms_or_bare() -> None:
    found = csv_events(
        "at,s,p,o\n"
        "1,http://ex/a,<http://ex/p>,hello\n"
        '2,_:b,http://ex/p,"""5""^^<http://www.w3.org/2001/XMLSchema#integer>"\n'
        "2022-10-14T14:45:00Z,http://ex/a,http://ex/p,http://ex/b\n"
        "3,http://ex/a,http://ex/p,\n"
    )
    objects = [record.triples[0].object for record in found if isinstance(record, Event)]
    assert objects == [Literal("hello"), Literal("5", XSD_INTEGER), Iri("http://ex/b"), Literal("")]


def test_malformed_rows_of_csv_are_set_aside_with_their_number() -> None:
    found = csv_events(
        "at,s,p,o\n,http://ex/a,http://ex/p,x\n1,a,http://ex/p,x\n1,http://ex/a\nnoon,http://ex/a,http://ex/p,x\n"
    )
    assert [(one.line, one.reason) for one in found if isinstance(one, MalformedRecord)] == [
        (1, "at: missing"),
        (2, "`a` is no IRI; write it like <http://example.org/a>"),
        (3, "the row is shorter than the header"),
        (4, "time: `noon` is not an instant: cannot read `noon` as a date and time"),
    ]


def opened(packed: Any) -> list[Event | tuple[int | None, str, str]]:
    """Events, and malformed records as what they say."""
    found: list[Event | tuple[int | None, str, str]] = []
    for record in packed:
        if isinstance(record, bytes):
            found += chunks.unpack(record)
        else:
            found.append(record if isinstance(record, Event) else (record.line, record.reason, record.raw))
    return found


CSV_CELLS = st.sampled_from(["http://ex/a", "<http://ex/b>", "_:b", '"x"@en', "plain, or not", 'a ""b""', "", "x\ny"])
CSV_TIMES = st.sampled_from(["5", "7", "2022-10-14T14:45:00Z", "2022-10-14T14:45:00.25Z", "2022-10-14", "noon", ""])
CSV_ROWS = st.lists(
    st.tuples(CSV_TIMES, CSV_CELLS, CSV_CELLS, CSV_CELLS).flatmap(
        lambda row: st.sampled_from([row, row, row, row[:3], ()])
    )
)


@settings(max_examples=200)
@given(CSV_ROWS, st.sampled_from(["at,s,p,o", "o,at,s,p", "at,s,p,o,more", "at,s,p,o,s", "o,p,s,at"]))
def test_csv_packed_by_columns_is_csv_read_row_by_row(rows: list[tuple[str, ...]], header: str) -> None:
    text = io.StringIO(newline="")
    text.write(f"{header}\r\n")
    csv.writer(text).writerows(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "_ROWS_PER_BATCH", 3)
        patch.setattr(tables, "_FEW_ROWS", 1)
        packed = opened(pack_csv(io.StringIO(text.getvalue(), newline=""), "d"))
    assert packed == opened(read_csv(io.StringIO(text.getvalue(), newline=""), "d"))


def test_only_rows_near_a_malformed_one_are_read_one_by_one() -> None:
    rows = batch(s=[f"http://ex/{number}" if number != 700 else "a" for number in range(1000)], at=list(range(1000)))
    packed = list(pack_batch(rows, HEADER, 40, "d"))
    assert opened(packed) == opened(read_rows(rows, HEADER, 40, "d"))
    assert [record.line for record in packed if isinstance(record, MalformedRecord)] == [741]
    assert sum(isinstance(record, Event) for record in packed) < 256


def test_rows_whose_chunk_would_be_too_long_become_several() -> None:
    rows = batch(o=[str(Random(number).randbytes(300_000).hex()) for number in range(24)], at=list(range(24)))
    packed = list(pack_batch(rows, HEADER, 0, "d"))
    assert opened(packed) == opened(read_rows(rows, HEADER, 0, "d"))
    assert all(isinstance(chunk, bytes) and len(chunk) <= 4 << 20 for chunk in packed)
    assert len(packed) > 1


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())], ids=str
)
def test_texts_of_whatever_arrow_type_and_in_whatever_chunks_are_read_alike(kind: Any) -> None:
    texts = pa.table({"s": ["http://ex/a", "_:b"] * 50, "p": ["http://ex/p"] * 100, "o": ["x", "http://ex/a"] * 50})
    table = pa.table({name: texts[name].cast(kind) for name in "sp"} | {"o": texts["o"], "at": list(range(100))})
    table = pa.concat_tables([table.slice(0, 30), table.slice(30)])
    expected = [
        Event(1000 * number, triples=(Triple(subject, Iri("http://ex/p"), object_),))
        for number, (subject, object_) in enumerate(
            [(Iri("http://ex/a"), Literal("x")), (Blank("b", "d"), Iri("http://ex/a"))] * 50
        )
    ]
    (columns,) = events_of_table(table, HEADER, "d")
    assert isinstance(columns, TripleColumns)
    assert columns.block().events() == expected
    assert events_of_table(table.slice(0, 0), HEADER, "d") == []
    assert events_of_table(table.slice(29, 3), HEADER, "d") == expected[29:32]  # few rows become events at once


def test_a_table_with_a_malformed_row_is_refused_with_its_number() -> None:
    with pytest.raises(MalformedEventError, match="row 2: `a` is no IRI"):
        events_of_table(batch(s=["http://ex/a", "a"]), HEADER, "d")


def test_a_table_without_a_column_is_refused_with_those_that_it_has() -> None:
    with pytest.raises(StreamError, match="no column `s`; it has at, subject"):
        events_of_table(pa.table({"at": [1], "subject": ["a:a"]}), HEADER, "d")
    with pytest.raises(StreamError, match="int is no table"):
        as_table(5)


@pytest.mark.parametrize(
    "at",
    [
        ["2022-10-14T14:45:00Z", "2022-02-30T00:00:00Z"],
        ["5", "9223372036854775807"],
        [5, 2**63 - 1],
        [5, -(2**63)],
    ],
)
def test_times_that_no_instant_is_make_a_row_malformed(at: list[Any]) -> None:
    rows = batch(at=at)
    assert pack_rows(rows, HEADER, "d") is None
    assert [isinstance(record, MalformedRecord) for record in read_rows(rows, HEADER, 0, "d")] == [False, True]


def test_another_table_is_no_table_of_triples() -> None:
    assert csv_header(io.StringIO("a,b\n1,2\n")) is None
    assert csv_header(io.StringIO("")) is None


@pytest.mark.parametrize(
    ("value", "term"),
    [
        (5, Literal("5", XSD_INTEGER)),
        (0.5, Literal("0.5", XSD_DOUBLE)),
        (True, Literal("true", XSD_BOOLEAN)),
        (Decimal("1.50"), Literal("1.50", XSD_DECIMAL)),
        (date(2022, 10, 14), Literal("2022-10-14", XSD_DATE)),
        (datetime(2022, 10, 14, 14, 45, tzinfo=UTC), Literal("2022-10-14T14:45:00+00:00", XSD_DATE_TIME)),
        ("_:b", Blank("b", "d")),
        ("", Literal("")),
    ],
)
def test_numbers_and_times_of_parquet_are_typed_literals(value: Any, term: Term) -> None:
    (event,) = agree(batch(o=[value]))
    assert event.triples[0].object == term


@pytest.mark.parametrize(
    ("at", "micros"),
    [
        ([5], 5000),
        (["2022-10-14T14:45:00Z"], 1665758700000000),
        (["1665758700000"], 1665758700000000),
        ([datetime(2022, 10, 14, 14, 45, tzinfo=UTC)], 1665758700000000),
    ],
)
def test_times_of_parquet_are_milliseconds_texts_or_timestamps(at: list[Any], micros: int) -> None:
    assert [event.event_time for event in agree(batch(at=at))] == [micros]


def test_many_rows_are_packed_by_columns() -> None:
    rows = batch(s=[f"http://ex/{number % 7}" for number in range(100)], o=list(range(100)), at=list(range(100)))
    assert len(agree(rows)) == 100


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"s": ["a", "http://ex/a"]}, "`a` is no IRI"),
        ({"s": [None, "http://ex/a"]}, "subject: missing"),
        ({"s": ['"x"', "http://ex/a"]}, 'the subject "x" is a literal'),
        ({"p": ["_:b", "http://ex/p"]}, "the predicate _:d.b is no IRI"),
        ({"s": [1, 2]}, "subject: 1 is no term"),
        ({"at": [None, 5]}, "at: missing"),
        ({"at": ["noon", "1"]}, "time: `noon`"),
        ({"at": [None, datetime(2022, 1, 1, tzinfo=UTC)]}, "at: missing"),
    ],
)
def test_a_batch_with_a_malformed_row_is_read_row_by_row(columns: dict[str, Any], said: str) -> None:
    rows = batch(**columns)
    assert pack_rows(rows, HEADER, "d") is None
    first, _ = read_rows(rows, HEADER, 40, "d")
    assert isinstance(first, MalformedRecord)
    assert (first.line, first.reason[: len(said)]) == (41, said)
