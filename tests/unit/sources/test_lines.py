"""Cutting files at line ends, and reading what lies between two cuts."""

from __future__ import annotations

import gzip
import io
import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.errors import MalformedEventError, StreamError
from anabranch.formats.deadletter import MalformedRecord
from anabranch.model.event import Event
from anabranch.sources import lines
from anabranch.sources.base import as_event
from anabranch.sources.lines import Cut, cut_lines, read_range, read_whole, whole_kind

LINES = st.lists(st.binary(max_size=12).map(lambda line: line.replace(b"\n", b" ")), max_size=30)


def cut(data: bytes, size: int = 1 << 20, records: int | None = None, **how: Any) -> list[Cut]:
    return cut_lines(io.BytesIO(data), Cut(), len(data), size, records, **how)


def counting(record: Any, sequence: str) -> Event:
    return Event(record, (), ()) if isinstance(record, int) else as_event(record, sequence)


@pytest.fixture
def tiny_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "PIECE", 8)


def test_nothing_is_cut_from_nothing() -> None:
    assert cut(b"") == [Cut()]


def test_a_last_line_without_a_newline_is_complete_unless_the_file_grows() -> None:
    assert cut(b"1\n2") == [Cut(), Cut(3, 2)]
    assert cut(b"1\n2", growing=True) == [Cut(), Cut(2, 1)]
    assert cut(b"12", growing=True) == [Cut()]


def test_a_batch_holds_no_more_than_its_bytes_and_lines() -> None:
    data = b"11\n22\n33\n44\n"
    assert cut(data, size=7) == [Cut(), Cut(6, 2)]
    assert cut(data, size=6) == [Cut(), Cut(6, 2)]
    assert cut(data, records=3) == [Cut(), Cut(9, 3)]
    assert cut(data, records=9) == [Cut(), Cut(12, 4)]
    assert cut(data, records=0) == [Cut()]
    assert cut(b"11\n22", records=2) == [Cut(), Cut(5, 2)]


def test_a_first_line_beyond_the_limit_is_taken_whole_or_not_at_all() -> None:
    data = b"1" * 100 + b"\n2\n"
    assert cut(data, size=10) == [Cut(), Cut(101, 1)]
    assert cut(data, size=0) == [Cut(), Cut(101, 1)]
    assert cut(data, size=10, at_least_one=False) == [Cut()]
    assert cut(b"1" * 100, size=10) == [Cut(), Cut(100, 1)]
    assert cut(b"1" * 100, size=10, growing=True) == [Cut()]


@pytest.mark.usefixtures("tiny_pieces")
def test_pieces_are_small_except_for_lines_that_are_not() -> None:
    assert cut(b"1\n2\n3\n4\n5\n6\n") == [Cut(), Cut(8, 4), Cut(12, 6)]
    assert cut(b"1\n" + b"2" * 30 + b"\n3\n") == [Cut(), Cut(2, 1), Cut(33, 2), Cut(35, 3)]
    # The second line does not fit into what is left, and a first one was taken.
    assert cut(b"1\n" + b"2" * 30 + b"\n3\n", size=20) == [Cut(), Cut(2, 1)]


@given(LINES, st.booleans(), st.integers(1, 20), st.integers(1, 40), st.none() | st.integers(1, 5))
def test_however_it_is_cut_every_line_comes_once_with_its_number(
    content: list[bytes], ends: bool, piece: int, size: int, records: int | None
) -> None:
    data = b"\n".join(content) + (b"\n" if ends and content else b"")
    whole = [(error.line, error.raw) for error in _refused(data, Cut(), Cut(len(data)))]
    read, at = [], Cut()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "PIECE", piece)
        while at.at < len(data):
            cuts = cut_lines(io.BytesIO(data), at, len(data), size, records)
            assert cuts == cut_lines(io.BytesIO(data), at, len(data), size, records)
            assert len(cuts) > 1
            for start, stop in pairwise(cuts):
                assert start.line == data.count(b"\n", 0, start.at)
                read += [(error.line, error.raw) for error in _refused(data, start, stop)]
            at = cuts[-1]
    assert read == whole


def _refused(data: bytes, start: Cut, stop: Cut) -> list[MalformedRecord]:
    """All lines of a range, each refused with its number."""

    def refuse(record: Any, sequence: str) -> Event:
        raise MalformedEventError("no")

    records = list(read_range(io.BytesIO(data), start.at, stop.at, start.line + 1, refuse))
    assert all(isinstance(record, MalformedRecord) for record in records)
    return [record for record in records if isinstance(record, MalformedRecord)]


def test_lines_are_read_past_a_byte_order_mark_blank_lines_and_carriage_returns() -> None:
    data = b'\xef\xbb\xbf{"at": 1}\r\n\r\n   \n{"at": 2}\r\noops\r\n\xff\n{"at": 3}'
    read = list(read_range(io.BytesIO(data), 0, len(data), 1, as_event))
    assert [one.event_time for one in read if isinstance(one, Event)] == [1000, 2000, 3000]
    refused = [(one.line, one.reason, one.raw) for one in read if isinstance(one, MalformedRecord)]
    assert refused == [(5, "not JSON: Expecting value (column 1)", "oops"), (6, "not UTF-8 (byte 1)", "�")]


def test_a_decoder_gets_the_sequence_of_each_line_and_may_skip_it() -> None:
    seen = []

    def decode(record: Any, sequence: str) -> Event | None:
        seen.append((record, sequence))
        return None

    assert list(read_range(io.BytesIO(b"1\n\n2\n"), 2, 5, 7, decode, lambda number: f"3-{number}")) == []
    assert seen == [(2, "3-8")]


def test_a_file_that_became_shorter_is_refused() -> None:
    with pytest.raises(StreamError, match="has become shorter: it ends at byte 4, and was read to 9"):
        list(read_range(io.BytesIO(b"1\n2\n"), 2, 9, 2, as_event))


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("a.ndjson", b'{"at": 1}', None),
        ("a.ndjson", b"", None),
        ("a.ndjson", b"[1]", None),
        ("a.ndjson", gzip.compress(b"{}", mtime=0), "gzip"),
        ("a.json", b' \n [{"at": 1}]', "list"),
        ("a.json", b"\xef\xbb\xbf[]", "list"),
        ("a.json", b'{"at": 1}', None),
        ("a.json.gz", gzip.compress(b"[1]", mtime=0), "list"),
        ("a.json.gz", gzip.compress(b"{}", mtime=0), "gzip"),
        ("a.csv", b"a,b", "csv"),
        ("a.csv.gz", gzip.compress(b"a,b", mtime=0), "csv"),
    ],
)
def test_what_cannot_be_cut_is_told_by_name_and_content(name: str, data: bytes, kind: str | None) -> None:
    assert whole_kind(io.BytesIO(data), name) == kind


def test_whole_files_are_read_with_the_numbers_of_their_records() -> None:
    seen = []

    def decode(record: Any, sequence: str) -> Event | None:
        seen.append((record, sequence))
        if record == "bad":
            raise MalformedEventError("no")
        return None

    def read(data: bytes, kind: Any) -> list[Any]:
        seen.clear()
        return list(read_whole(io.BytesIO(data), kind, decode, lambda number: f"1-{number}"))

    assert read(gzip.compress(b'\n"a"\n"b"', mtime=0), "gzip") == []
    assert seen == [("a", "1-2"), ("b", "1-3")]
    (refused,) = read(gzip.compress(json.dumps(["a", "bad", "c"]).encode()), "list")
    assert (refused.line, refused.reason, refused.raw) == (2, "no", '"bad"')
    assert seen == [("a", "1-1"), ("bad", "1-2"), ("c", "1-3")]
    assert read("\ufeffname,n\r\nä,1\r\n,2\r\n".encode(), "csv") == []
    assert seen == [({"name": "ä", "n": "1"}, "1-1"), ({"name": None, "n": "2"}, "1-2")]


@pytest.mark.parametrize(
    ("data", "kind", "reason"),
    [
        (gzip.compress(b'{"at": 1}\n' * 999, mtime=0)[:-9], "gzip", "not a whole gzip file"),
        (b"\x1f\x8b\x08\x00junk", "gzip", "not a whole gzip file"),
        (gzip.compress(b"x", mtime=0)[:10] + b"\xff" * 9, "gzip", "not a whole gzip file"),
        (b"[1, 2", "list", "not JSON"),
        (b"a,b\n\xff,1", "csv", "not UTF-8 text"),
        (b"a\n" + b"x" * 200_000, "csv", "not CSV: field larger"),
    ],
)
def test_a_file_that_cannot_be_unpacked_says_why(data: bytes, kind: Any, reason: str) -> None:
    with pytest.raises(StreamError, match=reason):
        list(read_whole(io.BytesIO(data), kind, counting))
