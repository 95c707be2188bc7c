"""Lines of time, tab and triple: what is read of them, what is refused, and that packing is reading."""

from __future__ import annotations

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.errors import MalformedEventError
from anabranch.formats import chunks
from anabranch.formats.deadletter import MalformedRecord
from anabranch.formats.rdf import lines
from anabranch.formats.rdf.lines import looks_timed, pack_lines, read_lines, timed_triple, write_lines
from anabranch.model.event import Event
from anabranch.model.instants import parse_instant
from anabranch.model.terms import Blank, Iri, Literal, Triple

from .drawing import EVENTS, one_by_one, renamed

A, P = Iri("http://ex/a"), Iri("http://ex/p")


def read(data: bytes) -> list[Event | MalformedRecord]:
    return list(read_lines(data, "d"))


def only(line: str) -> Event:
    event = timed_triple(line, "d")
    assert event is not None
    return event


@settings(max_examples=200)
@given(st.lists(EVENTS, max_size=5))
def test_what_is_written_is_read_again_triple_by_triple(events: list[Event]) -> None:
    file = io.BytesIO()
    write_lines(events, file)
    found = [record for record in read(file.getvalue()) if isinstance(record, Event)]
    assert renamed(found) == renamed(one_by_one(events))


GOOD = st.sampled_from(
    [
        b"1000\t<http://ex/a> <http://ex/p> _:b .",
        b'2022-10-14T14:45:00Z\t_:b <http://ex/p> "x\\ty"@en .',
        b'5\t<http://ex/a> <http://ex/p> "1"^^<http://ex/t> <http://ex/g> .',
        b"5\t<http://ex/a> <http://ex/p> <http://ex/a> . <http://ex/b> <http://ex/p> <http://ex/a> .",
    ]
)
BAD = st.sampled_from([b"no", b"5\t<a> <b> <c> .", b"x\t<http://ex/a> <http://ex/p> 1 .", b"\xff", b"5\t", b'5\t"x" .'])
LINES = st.lists(st.one_of(GOOD, BAD, st.sampled_from([b"", b"# note", b"  \r"]), st.binary(max_size=9)), max_size=8)


@settings(max_examples=300)
@given(LINES, st.integers(1, 5))
def test_packed_lines_are_the_events_that_are_read_one_by_one(given_lines: list[bytes], at_once: int) -> None:
    data = b"\n".join(given_lines)
    before, lines._FEW = lines._FEW, at_once
    try:
        packed = list(pack_lines(data, "d", 7))
    finally:
        lines._FEW = before
    expected = list(read_lines(data, "d", 7))
    events = [event for one in packed if isinstance(one, bytes) for event in chunks.unpack(one)]
    assert events == [record for record in expected if isinstance(record, Event)]
    assert letters(packed) == letters(expected)


def letters(records: list[bytes | MalformedRecord] | list[Event | MalformedRecord]) -> list[tuple[object, ...]]:
    return [(one.reason, one.line, one.raw) for one in records if isinstance(one, MalformedRecord)]


@pytest.mark.parametrize(
    "line",
    [
        "1665758700000\t<http://ex/a> <http://ex/p> <http://ex/a> .",
        "2022-10-14T14:45:00Z\t<http://ex/a> <http://ex/p> <http://ex/a> .",
        "2022-10-14 14:45:00\t<http://ex/a> <http://ex/p> <http://ex/a> .\r",
        "2022-10-14T16:45:00+02:00\t<http://ex/a>\t<http://ex/p>\t<http://ex/a>",
        "1665758700000 <http://ex/a> <http://ex/p> <http://ex/a> .",
        "1665758700000\t  <http://ex/a><http://ex/p><http://ex/a>.",
        "1665758700000\t<http://ex/a> <http://ex/p> <http://ex/a> <http://ex/graph> .",
        "1665758700000\t<http://ex/a> <http://ex/p> <http://ex/a> . # note",
    ],
)
def test_times_and_spaces_may_be_written_in_several_ways(line: str) -> None:
    assert only(line) == Event(parse_instant("2022-10-14T14:45:00Z"), triples=(Triple(A, P, A),))


def test_blank_nodes_belong_to_the_document() -> None:
    assert only('0\t_:b1 <http://ex/p> "x" .').triples == (Triple(Blank("b1", "d"), P, Literal("x")),)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"<http://ex/a> <http://ex/p> <http://ex/a> .", "no time before the triple"),
        (b"hello", "not a timed triple"),
        (b"5\t", "no triple behind the time"),
        (b"noon\t<http://ex/a> <http://ex/p> <http://ex/a> .", "time: `noon` is not an instant"),
        (b"5\t<http://ex/a> <http://ex/p> b .", "column 31: the object of a triple must be"),
        (b'5\t<http://ex/a> <http://ex/p> "b .', "column 31: unexpected end of file"),
        (b"5\t<a> <http://ex/p> <http://ex/a> .", "`<a>` is no RDF term: no scheme found"),
        (b"5\t\xff", "not UTF-8 (byte 3)"),
    ],
)
def test_a_malformed_line_says_where_and_why_and_reading_goes_on(line: bytes, reason: str) -> None:
    good = b"1\t<http://ex/a> <http://ex/p> <http://ex/a> ."
    first, refused, last = read(b"\n".join((good, line, good)))
    assert isinstance(first, Event)
    assert isinstance(last, Event)
    assert isinstance(refused, MalformedRecord)
    assert refused.reason.startswith(reason)
    assert refused.line == 2


def test_a_literal_is_no_subject() -> None:
    with pytest.raises(MalformedEventError, match="subject"):
        timed_triple('5\t"x" <http://ex/p> "y" .', "d")


@pytest.mark.parametrize(
    ("text", "timed"),
    [
        ("5\t<http://a>", True),
        ("2022-10-14 14:45:00\t_:b", True),
        ('{"a":\t<', False),
        ("5\thello", False),
        ("5", False),
    ],
)
def test_what_is_meant_as_a_timed_triple_is_told_from_broken_json(text: str, timed: bool) -> None:
    assert looks_timed(text) is timed
