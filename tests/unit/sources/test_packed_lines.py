"""Lines that come as blocks are the lines that are read one by one: events, malformed records and their places."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.support.graph_events import graph_event

from anabranch.formats.deadletter import MalformedRecord
from anabranch.formats.events import event_to_dict
from anabranch.model.event import Event
from anabranch.model.graph_block import GraphBlock
from anabranch.sources import lines
from anabranch.sources.base import AsEvent, Limit, PackedRecord, Source
from anabranch.sources.files import FileSource
from anabranch.sources.following import FollowedFiles
from anabranch.sources.lines import pack_gzip, pack_range, read_range, read_whole
from anabranch.sources.spool import Spool, SpoolSource

DECODE = AsEvent("s")
ODD = (
    b"",
    b"   ",
    b"# a comment",
    b"{",
    b'{"nodes": []}',
    b'{"at": "2022-10-14T12:00Z", "nodes": [{"id": 1, "label": "A"}]}',
    b'{"at": 1, "nodes": [{"id": 1, "properties": {"x": {"$date": "2015-07-21"}}}]}',
    b'{"at": 2, "triples": [["a:a", "a:p", "_:b"]]}',
    b"3\t<a:a> <a:p> _:b .",
    b'{"at": 4, "edges": [{"type": "R", "start": 1, "end": "\xc3\xa9"}]}',
    b'{"at": 5, "nodes": [{"id": 1}, {"id": 1, "labels": ["B"]}]}',
    b"\xff",
)


def text(random: Random, count: int, odd: float) -> bytes:
    """Lines of which some are odd."""
    found = [
        random.choice(ODD)
        if random.random() < odd
        else json.dumps(event_to_dict(graph_event(random, number * 1000))).encode()
        for number in range(count)
    ]
    return b"\n".join(found) + random.choice((b"", b"\n"))


def one_by_one(records: Iterable[PackedRecord]) -> list[Any]:
    """The events, and what is said about malformed records."""
    found: list[Any] = []
    for record in records:
        if isinstance(record, GraphBlock):
            found += record.events()
        elif isinstance(record, MalformedRecord):
            found.append((record.reason, record.line, record.raw))
        else:
            assert isinstance(record, Event)
            found.append(record)
    return found


def blocks_among(records: Iterable[PackedRecord]) -> int:
    return sum(isinstance(record, GraphBlock) for record in records)


@pytest.fixture
def always_scanned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_WORTH_A_SCAN", 0)


@pytest.mark.usefixtures("always_scanned")
@pytest.mark.parametrize("odd", [0.0, 0.02, 0.3])
@pytest.mark.parametrize("number", range(8))
def test_a_range_of_lines_has_the_same_records_packed_or_not(number: int, odd: float) -> None:
    random = Random(f"{number}/{odd}")
    before, data = text(random, random.randrange(9), odd), text(random, 120, odd)
    start = len(before) + 1
    file = io.BytesIO(before + b"\n" + data)
    bounds = (start, start + len(data), 17, DECODE)
    packed = list(pack_range(file, *bounds, lambda line: f"2-{line}"))  # type: ignore[misc]
    assert one_by_one(packed) == one_by_one(read_range(file, *bounds, lambda line: f"2-{line}"))  # type: ignore[misc]
    if odd < 0.1:
        assert blocks_among(packed) > 0


@pytest.mark.usefixtures("always_scanned")
def test_a_mark_of_the_byte_order_is_no_part_of_the_first_line() -> None:
    data = b"\xef\xbb\xbf" + b"\n".join([b'{"at": 1, "nodes": []}'] * 40)
    packed = list(pack_range(io.BytesIO(data), 0, len(data), 1, DECODE))
    assert blocks_among(packed) == 1
    assert one_by_one(packed) == one_by_one(read_range(io.BytesIO(data), 0, len(data), 1, DECODE))


@pytest.mark.usefixtures("always_scanned")
@pytest.mark.parametrize("piece", [64, 1000, 1 << 20])
def test_a_packed_file_has_the_same_records_wherever_it_is_cut(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "PIECE", piece)
    data = b"\xef\xbb\xbf" + text(Random(piece), 150, 0.05)
    file = io.BytesIO(gzip.compress(data))
    assert one_by_one(pack_gzip(file, DECODE)) == one_by_one(read_whole(file, "gzip", DECODE))


def test_a_few_lines_are_read_one_by_one() -> None:
    data = b'{"at": 1}\n{"at": 2}'
    assert blocks_among(pack_range(io.BytesIO(data), 0, len(data), 1, DECODE)) == 0


def all_of(source: Source, packed: bool) -> list[Any]:
    found: list[Any] = []
    offset = source.begin()
    while (end := source.ahead(offset, Limit(size=20_000))) != offset:
        for piece in source.pieces(offset, end):
            found += source.read_packed(piece, DECODE) if packed else source.read(piece, DECODE)
        offset = end
    return found


def test_files_directories_followed_files_and_spools_give_blocks_of_the_same_events(tmp_path: Path) -> None:
    random = Random(7)
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a.ndjson").write_bytes(text(random, 300, 0.05))
    (folder / "b.ndjson.gz").write_bytes(gzip.compress(text(random, 200, 0.05)))
    (folder / "c.ndjson").write_bytes(text(random, 100, 0.05) + b"\n")
    with Spool(tmp_path / "spool") as spool:
        spool.append(line for line in text(random, 300, 0.05).split(b"\n") if line.strip())
        spool.finish()
    sources = [
        FileSource("s", str(folder)),
        FollowedFiles("s", str(folder)),
        SpoolSource("s", tmp_path / "spool", finite=True),
    ]
    for source in sources:
        packed = all_of(source, packed=True)
        assert blocks_among(packed) > 1, source
        singly = all_of(source, packed=False)
        assert one_by_one(packed) == one_by_one(singly)
        assert any(isinstance(record, MalformedRecord) for record in singly)


def test_records_of_another_shape_are_not_taken_for_events(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    path.write_bytes(b'{"at": 1, "nodes": []}\n' * 500)
    source = FileSource("s", str(path), records_are_events=False)
    (piece,) = source.pieces(source.begin(), source.ahead(source.begin(), Limit()))
    found = list(source.read_packed(piece, lambda record, sequence: Event(int(sequence))))
    assert found == [Event(number) for number in range(1, 501)]
