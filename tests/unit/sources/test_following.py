"""Files that are followed: growth, rotation, rewriting, moves, removal; files that cannot be read; the same batch read
again; nothing lost without a word."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anabranch.errors import StreamError
from anabranch.formats.deadletter import MalformedRecord
from anabranch.model.event import Event
from anabranch.sources import following
from anabranch.sources.base import Backlog, Limit, Offset, as_event
from anabranch.sources.files import FileSource
from anabranch.sources.filesystems import FileSystemError
from anabranch.sources.following import FollowedFiles

SECOND = 10**9
HOUR = 3600 * SECOND
NOTE = "x" * 80  # lines are longer than what a file is known by


def line(at: int) -> bytes:
    return json.dumps({"at": at, "note": NOTE}).encode() + b"\n"


def content(instants: Iterable[int]) -> bytes:
    return b"".join(map(line, instants))


def write(path: Path, instants: Iterable[int]) -> Path:
    path.write_bytes(content(instants))
    return path


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def settle(path: Path, since: int = 10 * SECOND) -> Path:
    """Date a file back: nobody has written to it for a while."""
    at = time.time_ns() - since
    os.utime(path, ns=(at, at))
    return path


def dated(path: Path, at: int, *instants: int) -> None:
    write(path, instants)
    os.utime(path, ns=(at, at))


class Follower:
    """What a run does with a source: it plans, reads each batch twice as workers do, and goes on."""

    def __init__(self, path: Path | str, limit: Limit | None = None, **options: Any) -> None:
        self.source = FollowedFiles("s", str(path), **options)
        self.limit = limit or Limit()
        self.offset = self.source.begin()
        self.notes: list[str] = []

    def planned(self) -> tuple[Offset, Offset]:
        """The next batch, which is committed to."""
        start, self.offset = self.offset, json.loads(json.dumps(self.source.ahead(self.offset, self.limit)))
        return start, self.offset

    def read(self, start: Offset, end: Offset) -> list[int]:
        worker = pickle.loads(pickle.dumps(self.source))
        pieces = self.source.pieces(start, end)
        assert [(piece.stream, piece.split, piece.order) for piece in pieces] == [
            ("s", "", number) for number in range(len(pieces))
        ]
        found = [record for piece in pieces for record in worker.read(piece, as_event)]
        self.notes += [one.reason for one in found if isinstance(one, MalformedRecord)]
        return [one.event_time // 1000 for one in found if isinstance(one, Event)]

    def new(self) -> list[int]:
        """The instants that have come."""
        found = []
        while True:
            start, end = self.planned()
            if start == end:
                return found
            noted = len(self.notes)
            instants = self.read(start, end)
            notes = self.notes[noted:]
            assert (self.read(start, end), self.notes[noted + len(notes) :]) == (instants, notes)
            del self.notes[noted + len(notes) :]
            found += instants

    def told(self) -> list[str]:
        notes, self.notes = self.notes, []
        return notes


# --- one file ---------------------------------------------------------------------------------------------------------


def test_a_followed_file_gives_complete_lines_as_it_grows(tmp_path: Path) -> None:
    path = write(tmp_path / "a.ndjson", [])
    run = Follower(path)
    assert not run.source.finite
    assert run.new() == []
    append(path, line(1) + b'{"at"')
    first = run.planned()
    assert run.read(*first) == [1]
    assert run.new() == []
    append(path, b": 2}\n")
    assert run.new() == [2]
    assert run.read(*first) == [1]
    assert run.told() == []
    assert not run.source.ended(run.offset)
    assert run.source.backlog(run.offset) == Backlog(path.stat().st_size, None)


@pytest.mark.parametrize("name", ["a.ndjson.gz", "a.parquet", "a.csv"])
def test_what_does_not_grow_by_lines_is_not_followed(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(gzip.compress(line(1)))
    run = Follower(tmp_path / name, records_are_events=False)
    with pytest.raises(StreamError, match="cannot be followed\nhint: plain NDJSON grows line by line"):
        run.new()


def test_a_path_that_leads_nowhere_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StreamError, match=f"there is no file {tmp_path}/no"):
        Follower(tmp_path / "no")


@pytest.mark.parametrize("more", [1, 5, 30])
def test_a_log_that_is_rotated_by_a_rename_is_finished_before_the_new_one(tmp_path: Path, more: int) -> None:
    path = write(tmp_path / "a.ndjson", range(10))
    run = Follower(path)
    assert run.new() == list(range(10))
    append(path, content([10, 11]))
    path.rename(tmp_path / "a.ndjson.1")
    write(path, range(100, 100 + more))
    assert run.new() == [10, 11, *range(100, 100 + more)]
    append(tmp_path / "a.ndjson.1", content([12]))  # by one who has not heard of the rotation
    append(path, content([200]))
    assert run.new() == [12, 200]
    assert run.told() == []


def test_a_log_is_rotated_again_and_again(tmp_path: Path) -> None:
    path = write(tmp_path / "a.ndjson", [0])
    run = Follower(path)
    assert run.new() == [0]
    for turn in range(1, 20):
        for old in range(turn - 1, 0, -1):
            (tmp_path / f"a.ndjson.{old}").rename(tmp_path / f"a.ndjson.{old + 1}")
        append(path, line(turn * 10))
        path.rename(tmp_path / "a.ndjson.1")
        write(path, [turn * 10 + 1])
        assert run.new() == [turn * 10, turn * 10 + 1]
    assert run.told() == []
    assert len(run.offset["known"]) <= 6


def test_a_log_that_is_rotated_several_times_between_two_looks_is_read_from_all_its_files(tmp_path: Path) -> None:
    path = write(tmp_path / "a.ndjson", [0])
    run = Follower(path)
    assert run.new() == [0]
    write(tmp_path / "b.ndjson.1", [99])
    append(path, line(1))
    settle(path).rename(tmp_path / "a.ndjson.3")
    settle(write(tmp_path / "a.ndjson.2", [2, 3]), 5 * SECOND)
    settle(write(tmp_path / "a.ndjson.1", [4]), 4 * SECOND)
    settle(write(tmp_path / "a.ndjson.0", [98]), 20 * SECOND)  # older than what was read
    write(path, [5])
    assert run.new() == [1, 2, 3, 4, 5]
    assert run.told() == []
    path.rename(tmp_path / "a.ndjson.9")
    (tmp_path / "a.ndjson.10.gz").write_bytes(gzip.compress(line(6)))
    write(path, [7])
    assert run.new() == [7]
    assert run.told() == ["a.ndjson.10.gz: was packed before it was read; it is newer than what was read of a.ndjson"]


def test_the_rest_of_a_rotated_log_is_read_in_several_batches(tmp_path: Path) -> None:
    path = write(tmp_path / "a.ndjson", [0])
    run = Follower(path, Limit(records=3))
    assert run.new() == [0]
    append(path, content(range(1, 10)))
    path.rename(tmp_path / "a.ndjson.1")
    write(path, range(20, 25))
    assert run.new() == [*range(1, 10), *range(20, 25)]


def test_the_last_line_of_a_rotated_log_needs_no_newline(tmp_path: Path) -> None:
    path = write(tmp_path / "a.ndjson", [0])
    run = Follower(path)
    assert run.new() == [0]
    append(path, line(1)[:-1])
    assert run.new() == []
    path.rename(tmp_path / "a.ndjson.1")
    write(path, [2])
    assert run.new() == [1, 2]


@pytest.mark.parametrize("more", [1, 10, 30])
def test_a_log_that_is_copied_and_emptied_is_finished_in_its_copy(tmp_path: Path, more: int) -> None:
    path = write(tmp_path / "a.ndjson", range(10))
    run = Follower(path)
    assert run.new() == list(range(10))
    append(path, content([10, 11]))
    (tmp_path / "a.ndjson.1").write_bytes(path.read_bytes())
    write(path, range(100, 100 + more))
    assert run.new() == [10, 11, *range(100, 100 + more)]
    assert run.told() == []


@pytest.mark.parametrize("more", [3, 10, 30])
@pytest.mark.parametrize("in_place", [True, False])
def test_a_file_that_is_rewritten_is_read_from_its_beginning_with_a_word(
    tmp_path: Path, more: int, in_place: bool
) -> None:
    path = write(tmp_path / "a.ndjson", range(100, 110))
    run = Follower(path)
    run.new()
    size = path.stat().st_size
    if in_place:
        write(path, range(200, 200 + more))
    else:
        write(tmp_path / ".new", range(200, 200 + more)).rename(path)
    assert run.new() == list(range(200, 200 + more))
    assert run.told() == [
        f"a.ndjson: was replaced or rewritten after {size} of its bytes were read; read from its beginning"
    ]


def test_a_file_that_is_copied_over_with_more_in_it_is_read_on(tmp_path: Path) -> None:
    path = write(tmp_path / "a.ndjson", range(10))
    run = Follower(path)
    run.new()
    write(tmp_path / ".new", range(13)).rename(path)
    assert run.new() == [10, 11, 12]
    assert run.told() == []


def test_a_file_that_lost_its_end_is_read_on_from_its_last_whole_line(tmp_path: Path) -> None:
    path = write(tmp_path / "a.ndjson", range(5))
    run = Follower(path)
    run.new()
    size = path.stat().st_size
    os.truncate(path, 2 * size // 5 + 20)
    assert run.new() == []
    assert run.told() == [
        f"a.ndjson: was cut off: {size} of its bytes were read, and now there are {2 * size // 5 + 20}; "
        "read on from there"
    ]
    os.truncate(path, 2 * size // 5)
    append(path, content([7, 8]))
    assert run.new() == [7, 8]
    assert run.told() == []


def test_a_file_that_is_emptied_is_read_from_its_beginning_with_a_word(tmp_path: Path) -> None:
    path = write(tmp_path / "a.ndjson", range(5))
    run = Follower(path)
    run.new()
    os.truncate(path, 0)
    assert run.new() == []
    append(path, content([7]))
    assert run.new() == [7]
    (note,) = run.told()
    assert "was replaced or rewritten" in note


def test_a_file_that_is_removed_is_noted_once_and_read_when_it_is_back(tmp_path: Path) -> None:
    path = write(tmp_path / "a.ndjson", range(5))
    run = Follower(path)
    run.new()
    data = path.read_bytes()
    path.unlink()
    assert run.new() == run.new() == []
    assert run.told() == [f"a.ndjson: has gone: {len(data)} of its bytes were read"]
    path.write_bytes(data + line(5))
    assert run.new() == [5]
    path.unlink()
    run.new()
    run.told()
    write(path, range(50, 60))
    assert run.new() == list(range(50, 60))
    assert run.told() == []


def test_a_link_that_is_turned_to_another_file_is_followed_there(tmp_path: Path) -> None:
    write(tmp_path / "one", [1])
    write(tmp_path / "two", [2])
    link = tmp_path / "now.ndjson"
    link.symlink_to("one")
    run = Follower(link)
    assert run.new() == [1]
    (tmp_path / ".new").symlink_to("two")
    (tmp_path / ".new").rename(link)
    append(tmp_path / "two", line(4))
    append(tmp_path / "one", line(3))
    assert run.new() == [3, 2, 4]
    assert run.told() == []


# --- directories ------------------------------------------------------------------------------------------------------


def test_a_followed_directory_gives_new_files_in_the_order_of_their_times(tmp_path: Path) -> None:
    now = time.time_ns() - 2 * HOUR
    run = Follower(tmp_path)
    assert run.new() == []
    dated(tmp_path / "z.ndjson", now, 1)
    dated(tmp_path / "b.ndjson", now + 5, 3)
    dated(tmp_path / "c.ndjson", now + 5, 4)
    write(tmp_path / "opened.ndjson", [])
    assert run.new() == [1, 3, 4]
    dated(tmp_path / "a.ndjson", now + 5, 5)
    dated(tmp_path / "y.ndjson", now - 1000 * HOUR, 2)  # moved in with the time that it had
    dated(tmp_path / "f.ndjson", now + 1000 * HOUR, 7)
    write(tmp_path / "opened.ndjson", [6])
    assert run.new() == [2, 5, 6, 7]
    assert run.told() == []


def test_a_followed_directory_goes_on_in_the_middle_of_a_file(tmp_path: Path) -> None:
    now = time.time_ns() - HOUR
    dated(tmp_path / "b.ndjson", now, 1, 2, 3)
    dated(tmp_path / "a.ndjson", now + 1, 4, 5)
    run = Follower(tmp_path, Limit(records=2))
    found = []
    sequences: list[str] = []

    def decode(record: Any, sequence: str) -> None:
        sequences.append(sequence)

    while (pair := run.planned())[0] != pair[1]:
        found.append(run.read(*pair))
        for piece in run.source.pieces(*pair):
            assert list(run.source.read(piece, decode)) == []
    assert found == [[1, 2], [3, 4], [5]]
    assert sequences == ["1", "2", "3", "1-1", "1-2"]


def test_files_of_a_directory_are_read_on_as_they_grow(tmp_path: Path) -> None:
    slow = write(tmp_path / "b.ndjson", [1, 2])
    run = Follower(tmp_path)
    assert run.new() == [1, 2]
    append(slow, line(3) + line(4)[:9])
    write(tmp_path / "c.ndjson", [5])
    assert run.new() == [3, 5]
    append(slow, line(4)[9:])
    append(tmp_path / "c.ndjson", line(6)[:-1])  # complete without its newline
    assert run.new() == [4, 6]
    append(slow, b'{"at": 7')
    settle(slow)  # by one who writes whole blocks
    assert run.new() == []
    assert run.told() == []
    settle(slow, 2 * HOUR)  # it stays half a line
    assert run.new() == []
    assert run.told() == ["b.ndjson: not JSON: Expecting ',' delimiter (column 9)"]


def test_the_last_of_timed_lines_needs_no_newline_once_nobody_writes_any_more(tmp_path: Path) -> None:
    triple = "2024-01-01T00:00:0{}Z\t<http://e/a> <http://e/b> <http://e/c{}"
    path = tmp_path / "a.nt"
    path.write_text(triple.format(1, "> .\n") + triple.format(2, ""))
    run = Follower(tmp_path)
    assert len(run.new()) == 1
    settle(path)
    assert run.new() == []
    append(path, b"> .")
    assert run.new() == []
    settle(path)
    assert len(run.new()) == 1
    assert run.told() == []


def test_files_that_are_renamed_in_their_directory_are_not_read_again(tmp_path: Path) -> None:
    write(tmp_path / "a.ndjson", [1, 2])
    write(tmp_path / "b.ndjson", [3])
    run = Follower(tmp_path)
    assert sorted(run.new()) == [1, 2, 3]
    (tmp_path / "b.ndjson").rename(tmp_path / "c.ndjson")
    (tmp_path / "a.ndjson").rename(tmp_path / "b.ndjson")
    append(tmp_path / "b.ndjson", line(4))
    write(tmp_path / "a.ndjson", [5])
    assert run.new() == [4, 5]
    assert run.told() == []


def test_logs_that_are_rotated_within_the_pattern_while_no_run_looks_are_read_once_each(tmp_path: Path) -> None:
    """A run dies between the plan of a batch and its end; its log is rotated twice, and the last part is new."""
    log = write(tmp_path / "log.ndjson", range(4))
    run = Follower(f"{tmp_path}/*.ndjson", limit=Limit(records=3))
    planned = run.planned()
    append(log, line(4) + line(5)[:20])
    log.rename(tmp_path / "log.1.ndjson")
    append(tmp_path / "log.1.ndjson", line(5)[20:])
    write(log, [6, 7])
    (tmp_path / "log.1.ndjson").rename(tmp_path / "log.2.ndjson")
    log.rename(tmp_path / "log.1.ndjson")
    settle(tmp_path / "log.2.ndjson")
    settle(tmp_path / "log.1.ndjson", 5 * SECOND)
    write(log, [8])
    assert run.read(*planned) == [0, 1, 2]
    assert run.new() == [3, 4, 5, 6, 7, 8]
    assert run.told() == []


def test_a_file_that_is_read_may_go_and_come_back(tmp_path: Path) -> None:
    write(tmp_path / "a.ndjson", [1])
    write(tmp_path / "b.ndjson", [2])
    run = Follower(tmp_path)
    assert sorted(run.new()) == [1, 2]
    away = tmp_path / "away"
    away.mkdir()
    (tmp_path / "a.ndjson").rename(away / "a.ndjson")
    assert run.new() == []
    (away / "a.ndjson").rename(tmp_path / "a.ndjson")
    assert run.new() == []
    assert run.told() == []


def test_a_file_that_has_gone_is_forgotten_after_an_hour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "a.ndjson", [1])
    run = Follower(tmp_path)
    run.new()
    (tmp_path / "a.ndjson").unlink()
    run.new()
    assert run.offset["known"].keys() == {"a.ndjson"}
    now = time.time()
    monkeypatch.setattr(following.time, "time", lambda: now + 3601)
    run.new()
    assert run.offset["known"] == {}


def test_a_file_that_goes_before_all_of_it_was_read_is_noted(tmp_path: Path) -> None:
    path = write(tmp_path / "a.ndjson", range(5))
    size = path.stat().st_size
    run = Follower(tmp_path, Limit(records=2))
    assert run.read(*run.planned()) == [0, 1]
    path.unlink()
    assert run.new() == []
    assert run.told() == [f"a.ndjson: has gone: {2 * size // 5} of its bytes were read"]


def test_a_table_that_changes_after_it_was_read_is_noted_once(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x,y\n" + "1,2\n" * 30)
    run = Follower(tmp_path, records_are_events=False)
    assert run.new() == []
    settle(path)
    assert run.planned()[1]["files"][0]["kind"] == "csv"
    append(path, b"3,4\n")
    run.new()
    run.new()
    assert run.told() == ["a.csv: has changed since all of its 124 bytes were read; the change is not read"]


# --- files that cannot be read ----------------------------------------------------------------------------------------


def poison(folder: Path, name: str) -> Path:
    path = folder / name
    match name:
        case "half.ndjson.gz":
            packed = gzip.compress(content(range(3000)))
            path.write_bytes(packed[: len(packed) // 2])
        case "half.json":
            path.write_text('[{"at": 1}, {"at"')
        case "timeless.parquet":
            pq.write_table(pa.table({"when": [1], "who": [2]}), path)
        case "half.parquet":
            pq.write_table(pa.table({"at": list(range(1000))}), path)
            path.write_bytes(path.read_bytes()[:-200])
        case "pipe.ndjson":
            os.mkfifo(path)
        case "half.trig":
            path.write_text("<http://e/g> { <http://e/a> <http://e/b> ")
    return settle(path)


REASONS = {
    "half.ndjson.gz": "not a whole gzip file: Compressed file ended before the end-of-stream marker was reached",
    "half.json": "not JSON: Expecting ':' delimiter: line 1 column 18 (char 17)",
    "timeless.parquet": "no column `at`; the file has when, who",
    "half.parquet": "not a Parquet file: Parquet magic bytes not found in footer. "
    "Either the file is corrupted or this is not a parquet file.",
    "pipe.ndjson": "is a pipe or a device, which cannot be read twice",
}


@pytest.mark.parametrize("name", REASONS)
def test_a_bad_file_is_set_aside_and_the_good_ones_are_read(tmp_path: Path, name: str) -> None:
    write(tmp_path / "a.ndjson", [1])
    run = Follower(tmp_path)
    assert run.new() == [1]
    bad = poison(tmp_path, name)
    write(tmp_path / "z.ndjson", [2])
    assert run.new() == [2]
    (reason,) = run.told()
    assert reason == f"{name}: {REASONS[name]}; the file is set aside"
    write(tmp_path / "b.ndjson", [3])
    assert run.new() == [3]
    bad.unlink()
    write(tmp_path / "c.ndjson", [4])
    assert run.new() == [4]
    assert run.told() == []


def test_the_letter_of_a_file_says_which_and_how_large_it_is(tmp_path: Path) -> None:
    bad = poison(tmp_path, "half.json")
    run = Follower(tmp_path)
    (piece,) = run.source.pieces(*run.planned())
    (record,) = run.source.read(piece, as_event)
    assert isinstance(record, MalformedRecord)
    assert json.loads(record.raw) == {"file": str(bad), "size": 17}


def test_a_bad_file_that_is_made_good_is_read(tmp_path: Path) -> None:
    bad = poison(tmp_path, "half.ndjson.gz")
    run = Follower(tmp_path)
    assert run.new() == []
    assert len(run.told()) == 1
    bad.write_bytes(gzip.compress(content([1, 2])))
    assert run.new() == [1, 2]
    assert run.told() == []


def test_a_packed_file_that_is_still_written_is_waited_for(tmp_path: Path) -> None:
    packed = gzip.compress(content(range(100)))
    path = tmp_path / "a.ndjson.gz"
    path.write_bytes(packed[:-50])
    run = Follower(tmp_path)
    write(tmp_path / "b.ndjson", [1000])
    assert run.new() == [1000]
    append(path, packed[-50:])
    assert run.new() == list(range(100))
    assert run.told() == []


def test_a_file_that_may_not_be_read_is_set_aside_until_it_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyarrow import fs

    secret, real = settle(write(tmp_path / "a.ndjson", [1])), fs.LocalFileSystem.open_input_file
    os.chmod(secret, 0)

    class Guarded:
        def __getattr__(self, name: str) -> Any:
            return getattr(fs.LocalFileSystem(), name)

        def open_input_file(self, path: str) -> Any:
            if not os.stat(path).st_mode & 0o400:  # also of one who is root
                raise PermissionError(13, "Permission denied", path)
            return real(fs.LocalFileSystem(), path)

    monkeypatch.setattr("anabranch.sources.filesystems._local_system", Guarded)
    write(tmp_path / "b.ndjson", [2])
    run = Follower(tmp_path)
    assert run.new() == [2]
    assert run.told() == ["a.ndjson: Permission denied; the file is set aside"]
    os.chmod(secret, 0o600)
    assert run.new() == [1]


def test_a_document_that_ends_too_early_is_set_aside_where_it_is_read(tmp_path: Path) -> None:
    poison(tmp_path, "half.trig")
    write(tmp_path / "a.ndjson", [1])
    run = Follower(tmp_path)
    assert run.new() == [1]
    (note,) = run.told()
    assert note.startswith("half.trig: ")


def test_a_file_system_that_fails_is_no_fault_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "a.ndjson", [1])
    run = Follower(tmp_path)

    def broken(*given: object) -> Any:
        raise FileSystemError("a.ndjson: Input/output error")

    monkeypatch.setattr(following, "opened", broken)
    with pytest.raises(FileSystemError):
        run.new()


# --- batches again ----------------------------------------------------------------------------------------------------


def test_a_batch_reads_the_same_bytes_again_whatever_came_meanwhile(tmp_path: Path) -> None:
    path = write(tmp_path / "b.ndjson", range(10))
    run = Follower(tmp_path)
    first = run.planned()
    append(path, line(99))
    write(tmp_path / "a.ndjson", [50])
    assert run.read(*first) == list(range(10))
    path.rename(tmp_path / "b.ndjson.1")
    write(path, range(20, 40))
    assert run.read(*first) == list(range(10))
    assert run.told() == []


def test_a_file_that_was_planned_and_is_gone_is_noted_and_the_others_are_read(tmp_path: Path) -> None:
    now = time.time_ns() - HOUR
    dated(tmp_path / "a.ndjson", now, 1)
    dated(tmp_path / "b.ndjson", now + 1, 2)
    dated(tmp_path / "c.ndjson", now + 2, 3)
    run = Follower(tmp_path)
    first = run.planned()
    size = (tmp_path / "a.ndjson").stat().st_size
    (tmp_path / "a.ndjson").unlink()
    write(tmp_path / "b.ndjson", [5, 6])
    assert run.read(*first) == [3]
    assert run.told() == [
        f"{name}: it has gone or changed before it was read; nothing of the bytes 0 to {size} is read"
        for name in ("a.ndjson", "b.ndjson")
    ]


def test_batches_that_lie_together_are_read_back_together(tmp_path: Path) -> None:
    path = write(tmp_path / "a.ndjson", [1])
    run = Follower(tmp_path)
    begun = run.offset
    run.new()
    one = run.offset
    append(path, line(2))
    run.new()
    write(tmp_path / "b.ndjson", [3])
    run.new()
    assert run.read(begun, run.offset) == [1, 2, 3]
    assert run.read(one, run.offset) == [2, 3]


def test_a_checkpoint_of_another_way_to_read_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "a.ndjson", [1])
    followed, once = FollowedFiles("s", str(tmp_path)), FileSource("s", str(tmp_path))
    with pytest.raises(StreamError, match="was followed by the runs before\nhint: follow it again"):
        once.ahead(followed.begin(), Limit())
    with pytest.raises(StreamError, match="was read in another way by the runs before"):
        followed.ahead(once.begin(), Limit())


def test_the_first_batch_is_small(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_bytes(line(1) * 40_000)
    run = Follower(tmp_path)
    run.planned()
    assert run.offset["bytes"] // len(line(1)) == (1 << 20) // len(line(1))
