"""The spool: nothing that was appended is lost, nothing half-written is read, and readers only ever go forward."""

from __future__ import annotations

import errno
import json
import os
import pickle
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.support.machine import Disk, Machine, Stopped
from tests.support.push import everything, records_in

from anabranch.errors import StreamError
from anabranch.formats.deadletter import MalformedRecord
from anabranch.sources.base import Backlog, Limit, Offset, as_event
from anabranch.sources.segments import Position, durable_position, mark_path
from anabranch.sources.spool import Spool, SpoolSource, one_line


def numbers(first: int, count: int) -> list[bytes]:
    return [json.dumps({"n": n}).encode() for n in range(first, first + count)]


def test_what_was_appended_is_ahead_at_once_and_numbered_through(tmp_path: Path) -> None:
    source = SpoolSource("s", tmp_path)
    start = source.begin()
    assert source.ahead(start, Limit()) == start
    with Spool(tmp_path) as spool:
        assert spool.append(numbers(0, 2)) == 2
        middle = source.ahead(start, Limit())
        assert middle == {"segment": 0, "at": 18, "line": 2}
        assert spool.append(numbers(2, 1)) == 1
        assert everything(source, middle) == [("3", {"n": 2})]
        assert everything(source) == [(str(n + 1), {"n": n}) for n in range(3)]
        assert source.ahead(middle, Limit()) == {"segment": 0, "at": 27, "line": 3}


def test_records_of_any_shape_stand_on_one_line_each(tmp_path: Path) -> None:
    records = [
        b'\xef\xbb\xbf{\n  "a": 1,\r\n  "b": "x y"\n}\n',
        '{"é": "日本 \u2028"}\r\n'.encode(),
        b"not\njson",
        b"",
        b" \r\n ",
        b"\x1f\x8b\x08 looks like gzip",
        b'"\xff"',
    ]
    with Spool(tmp_path) as spool:
        assert spool.append(records) == 5
    read = everything(SpoolSource("s", tmp_path))
    assert read[:2] == [("1", {"a": 1, "b": "x y"}), ("2", {"é": "日本 \u2028"})]
    assert read[2].startswith("not JSON")
    assert read[3].startswith("not UTF-8")
    assert read[4].startswith("not UTF-8")
    assert len(read) == 5


def test_a_json_text_over_lines_keeps_its_numbers_to_the_digit() -> None:
    assert one_line(b"[1.10,\n 123456789012345678901234567890]") == b"[1.10,  123456789012345678901234567890]"


def test_a_bad_record_comes_out_in_its_place_with_its_line(tmp_path: Path) -> None:
    with Spool(tmp_path, segment_size=20) as spool:
        spool.append([b'{"at": 1}', b"oops", b'{"at": 2}'])
    source = SpoolSource("s", tmp_path)
    pieces = source.pieces(source.begin(), source.ahead(source.begin(), Limit()))
    read = [one for piece in pieces for one in source.read(piece, as_event)]
    assert [type(one).__name__ for one in read] == ["Event", "MalformedRecord", "Event"]
    assert str(read[1]).startswith("line 2: not JSON")


def test_segments_are_bounded_and_read_in_order(tmp_path: Path) -> None:
    with Spool(tmp_path, segment_size=100) as spool:
        for first in range(0, 60, 6):
            spool.append(numbers(first, 6))
        huge = json.dumps({"n": "x" * 500}).encode()
        spool.append([huge, *numbers(60, 1)])
    sizes = {path.name: path.stat().st_size for path in tmp_path.glob("*.ndjson")}
    assert sum(size > 100 for size in sizes.values()) == 1
    source = SpoolSource("s", tmp_path)
    end = source.ahead(source.begin(), Limit())
    pieces = source.pieces(source.begin(), end)
    assert [piece.order for piece in pieces] == list(range(len(sizes)))
    read = [one for piece in pieces for one in source.read(piece, lambda data, sequence: (sequence, data["n"]))]
    assert read == [(str(n + 1), n) for n in range(60)] + [("61", "x" * 500), ("62", 60)]


@pytest.mark.parametrize("limit", [Limit(records=1), Limit(records=7), Limit(size=1), Limit(size=50), Limit(size=333)])
def test_any_limit_gives_the_same_records(tmp_path: Path, limit: Limit) -> None:
    with Spool(tmp_path, segment_size=200) as spool:
        spool.append(numbers(0, 100))
        source = SpoolSource("s", tmp_path)
        assert everything(source, limit=limit) == everything(source)
        first = source.ahead(source.begin(), limit)
        assert first["line"] <= (limit.records or 100)
        assert first["line"] == 1 or first["segment"] * 200 + first["at"] <= limit.size


def test_a_line_over_the_limit_is_taken_alone(tmp_path: Path) -> None:
    with Spool(tmp_path) as spool:
        spool.append([b"1", b'"' + b"x" * 3_000_000 + b'"', b"2"])
        source = SpoolSource("s", tmp_path)
        first = source.ahead(source.begin(), Limit(size=1000))
        second = source.ahead(first, Limit(size=1000))
        assert (first["line"], second["line"]) == (1, 2)
        assert source.ahead(second, Limit(size=1000))["line"] == 3


def test_a_segment_that_was_cut_anywhere_is_reopened_with_its_whole_lines(tmp_path: Path) -> None:
    records = [b'{"n":0}', '{"n":"é日"}'.encode(), b'{"n":2}']
    with Spool(tmp_path / "whole") as spool:
        spool.append(records)
    data = (tmp_path / "whole" / "00000000.ndjson").read_bytes()
    for cut in range(len(data) + 1):
        directory = tmp_path / f"cut{cut}"
        directory.mkdir()
        (directory / "00000000.ndjson").write_bytes(data[:cut])
        whole = data[:cut].count(b"\n")
        with Spool(directory) as spool:
            assert spool.append([b'{"n":"after"}']) == 1
        assert [one["n"] for one in records_in(directory)] == [*[0, "é日", 2][:whole], "after"]


def test_a_torn_line_longer_than_a_block_is_cut_off(tmp_path: Path) -> None:
    (tmp_path / "00000003.ndjson").write_bytes(b"1\n" + b"x" * (3 << 20))
    with Spool(tmp_path) as spool:
        assert spool.position == Position(3, 2)


def test_a_torn_line_leaves_nothing_behind_in_a_segment_that_others_follow(tmp_path: Path) -> None:
    (tmp_path / "00000000.ndjson").write_bytes(b'{"n": 0}\n' + b"x" * 100)
    with Spool(tmp_path, segment_size=20) as spool:
        spool.append(numbers(1, 4))
    assert len(list(tmp_path.glob("*.ndjson"))) > 2
    assert [one["n"] for one in records_in(tmp_path)] == list(range(5))


def test_lines_that_came_without_their_cursor_are_taken_back_and_no_reader_saw_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = SpoolSource("s", tmp_path)
    with Spool(tmp_path, segment_size=20) as spool:
        spool.append(numbers(0, 3), {"since": 3})

        def crash(*_: Any) -> None:
            raise OSError(errno.EIO, "killed")

        with monkeypatch.context() as patched:
            patched.setattr(spool, "_write_cursor", crash)
            with pytest.raises(StreamError, match="killed"):
                spool.append(numbers(3, 9), {"since": 12})
        assert [data["n"] for _, data in everything(source)] == [0, 1, 2]
    assert len(list(tmp_path.glob("*.ndjson"))) > 2
    with Spool(tmp_path, segment_size=20) as spool:
        assert spool.cursor == {"since": 3}
        spool.append(numbers(3, 1))
        assert [data["n"] for _, data in everything(source)] == [0, 1, 2, 3]
    with Spool(tmp_path) as spool:  # what came without a cursor of its own is pinned too
        assert spool.cursor == {"since": 3}
    assert [one["n"] for one in records_in(tmp_path)] == [0, 1, 2, 3]


@pytest.mark.parametrize("loses", [False, True], ids=["keeps", "loses"])
def test_a_machine_that_stops_anywhere_brings_each_record_once_and_loses_none_that_was_acknowledged(
    loses: bool, tmp_path: Path
) -> None:
    def receive(directory: Path, acknowledged: list[int]) -> None:
        """Three at a time, from where the cursor says; the first time from the beginning."""
        with Spool(directory, segment_size=40) as spool:
            for first in range(spool.cursor or 0, 12, 3):
                spool.append(numbers(first, 3), first + 3)
                acknowledged.append(first + 3)

    counted = Machine()
    with counted.running():
        receive(tmp_path / "whole", [])
    assert counted.calls > 30
    for call in range(1, counted.calls + (2 if loses else 1)):
        root, acknowledged = tmp_path / str(call), [0]
        root.mkdir()
        (root / "spool").mkdir()
        disk = Disk(root)
        with Machine(call, disk).running(), suppress(Stopped):
            receive(root / "spool", acknowledged)
        if loses:
            disk.lose_power()
        with Spool(root / "spool", segment_size=40) as spool:
            assert (spool.cursor or 0) >= acknowledged[-1], f"stopped at call {call}"
            there = [one["n"] for one in records_in(root / "spool")]
            assert there == list(range(spool.cursor or 0)), f"stopped at call {call}"
        receive(root / "spool", acknowledged)
        assert [one["n"] for one in records_in(root / "spool")] == list(range(12)), f"stopped at call {call}"


def test_what_was_appended_without_a_cursor_outlives_a_loss_of_power(tmp_path: Path) -> None:
    (tmp_path / "spool").mkdir()
    disk = Disk(tmp_path)
    with Machine(disk=disk).running(), Spool(tmp_path / "spool", segment_size=20) as spool:
        for first in range(6):
            spool.append(numbers(first, 1))
    disk.lose_power()
    Spool(tmp_path / "spool").close()
    assert [one["n"] for one in records_in(tmp_path / "spool")] == list(range(6))


def test_a_cursor_that_is_only_kept_takes_nothing_back(tmp_path: Path) -> None:
    with Spool(tmp_path) as spool:
        spool.cursor = {"session": "ü"}
        spool.append(numbers(0, 2))
    with Spool(tmp_path) as spool:
        assert spool.cursor == {"session": "ü"}
    assert len(records_in(tmp_path)) == 2


def test_a_damaged_cursor_is_refused_and_leaves_the_spool_free(tmp_path: Path) -> None:
    (tmp_path / "cursor.json").write_text("{")
    with pytest.raises(StreamError, match=r"cursor\.json is damaged\nhint: "):
        Spool(tmp_path)
    (tmp_path / "cursor.json").unlink()
    Spool(tmp_path).close()


def test_what_is_not_synced_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = SpoolSource("s", tmp_path)
    with Spool(tmp_path) as spool:
        spool.append(numbers(0, 1))

        def fail(_file: int) -> None:
            assert [data["n"] for _, data in everything(source)] == [0]
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", fail)
            with pytest.raises(StreamError, match="No space left on device\nhint: "):
                spool.append(numbers(1, 1))
        assert [data["n"] for _, data in everything(source)] == [0]


@pytest.mark.parametrize("cursor", [None, {"at": 1}])
@pytest.mark.parametrize("fails", ["fsync", "pwrite", "replace"])
def test_what_was_refused_can_be_sent_again_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str, cursor: dict[str, int] | None
) -> None:
    source = SpoolSource("s", tmp_path)
    with Spool(tmp_path, segment_size=60) as spool:
        spool.append(numbers(0, 3), cursor)
        for failing in range(6):
            calls = iter(range(100))
            target, name = (Path, "replace") if fails == "replace" else (os, fails)
            real = getattr(target, name)

            def fail(*given: object, real: Any = real, calls: Any = calls, failing: int = failing) -> object:
                if next(calls) == failing:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                return real(*given)

            there, before = [data["n"] for _, data in everything(source)], spool.position
            batch = list(numbers(len(there), 20))
            with monkeypatch.context() as patched:
                patched.setattr(target, name, fail)
                with suppress(StreamError):
                    spool.append(batch, cursor and {"at": 2 + failing})
            if spool.position == before:  # it was refused
                assert [data["n"] for _, data in everything(source)] == there
                spool.append(batch, cursor and {"at": 2 + failing})
            assert [data["n"] for _, data in everything(source)] == list(range(len(there) + 20))
    with Spool(tmp_path) as spool:
        assert (spool.shortage, spool.cursor) == ("", cursor and {"at": 7})
    assert [data["n"] for _, data in everything(source)] == list(range(123))


def test_a_reader_sees_nothing_without_a_mark_or_with_a_torn_one(tmp_path: Path) -> None:
    with Spool(tmp_path) as spool:
        spool.append(numbers(0, 1))
    mark = mark_path(tmp_path).read_bytes()
    for torn in (b"", mark[:10], mark[:-1] + b"?", b"\0" * len(mark)):
        mark_path(tmp_path).write_bytes(torn)
        assert durable_position(tmp_path) == Position()
    Spool(tmp_path).close()
    assert len(records_in(tmp_path)) == 1


def test_only_one_writer_at_a_time(tmp_path: Path) -> None:
    with Spool(tmp_path), pytest.raises(StreamError, match="being written by another run\nhint: "):
        Spool(tmp_path)
    Spool(tmp_path).close()


def test_a_process_that_is_killed_keeps_what_it_appended_and_lets_go_of_the_lock(tmp_path: Path) -> None:
    program = (
        "import sys; from anabranch.sources.spool import Spool; spool = Spool(sys.argv[1])\n"
        "spool.append([b'1', b'2']); print('ready', flush=True)\n"
        "while True: spool.append([b'{\"n\": 3}'] * 100)"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        with pytest.raises(StreamError, match="another run"):
            Spool(tmp_path)
        process.kill()
    before = records_in(tmp_path)
    with Spool(tmp_path) as spool:
        spool.append([b"4"])
    after = records_in(tmp_path)
    assert before[:2] == [1, 2]
    assert after[: len(before)] == before
    assert after[-1] == 4
    assert all(one == {"n": 3} for one in after[2:-1])


def test_threads_append_whole_groups(tmp_path: Path) -> None:
    with Spool(tmp_path, segment_size=500) as spool:
        groups = [[f'"{thread}-{n}"'.encode() for n in range(5)] for thread in range(8)]
        threads = [threading.Thread(target=spool.append, args=(group,)) for group in groups]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    read = records_in(tmp_path)
    chunks = [[record.encode() for record in read[at : at + 5]] for at in range(0, 40, 5)]
    assert sorted(chunks) == [[record.strip(b'"') for record in group] for group in groups]


def test_many_records_cost_one_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Spool(tmp_path) as spool:
        spool.append([b"0"])
        synced: list[int] = []
        monkeypatch.setattr(os, "fsync", synced.append)
        spool.append(numbers(1, 10_000))
        assert len(synced) == 1


def test_it_has_ended_when_it_is_finished_and_read(tmp_path: Path) -> None:
    source = SpoolSource("s", tmp_path, finite=True)
    assert source.finite
    assert not SpoolSource("s", tmp_path).finite
    start = source.begin()
    with Spool(tmp_path) as spool:
        assert not source.ended(start)
        spool.append([b"1"])
        end = source.ahead(start, Limit())
        assert not source.ended(end)
        spool.finish()
        spool.finish()
        assert not source.ended(start)
        assert source.ended(end)
        with pytest.raises(StreamError, match="is finished: nothing can be added"):
            spool.append([b"2"])
    with Spool(tmp_path) as spool:
        assert spool.finished


def test_an_input_without_records_has_ended_too(tmp_path: Path) -> None:
    source = SpoolSource("s", tmp_path)
    with Spool(tmp_path) as spool:
        spool.finish()
    assert source.ended(source.begin())
    assert everything(source) == []


def test_it_ends_behind_a_segment_that_a_crash_left_empty(tmp_path: Path) -> None:
    with Spool(tmp_path) as spool:
        spool.append([b"1"])
    (tmp_path / "00000001.ndjson").touch()
    source = SpoolSource("s", tmp_path)
    with Spool(tmp_path) as spool:
        end = source.ahead(source.begin(), Limit())
        assert source.ahead(end, Limit()) == end
        spool.finish()
    assert source.ended(end)


def test_committing_removes_what_lies_wholly_behind(tmp_path: Path) -> None:
    source = SpoolSource("s", tmp_path)
    with Spool(tmp_path, segment_size=20) as spool:
        spool.append(numbers(0, 6))
        middle = source.ahead(source.begin(), Limit(records=3))
        assert source.backlog(middle) == Backlog(27, 54)
        source.commit(middle)
        assert sorted(path.name for path in tmp_path.glob("*.ndjson")) == ["00000001.ndjson", "00000002.ndjson"]
        assert source.backlog(middle) == Backlog(9, 36)
        assert [data["n"] for _, data in everything(source, middle)] == [3, 4, 5]
        end = source.ahead(middle, Limit())
        source.commit(end)
        source.commit(end)
        spool.append(numbers(6, 1))
        assert everything(source, end) == [("7", {"n": 6})]
    with Spool(tmp_path) as spool:  # numbering goes on, though the first segments are gone
        spool.append(numbers(7, 1))
    assert [data["n"] for _, data in everything(source, end)] == [6, 7]


def test_pieces_read_the_same_after_more_has_come(tmp_path: Path) -> None:
    source = SpoolSource("s", tmp_path)
    with Spool(tmp_path, segment_size=30) as spool:
        spool.append(numbers(0, 5))
        start, end = source.begin(), source.ahead(source.begin(), Limit())
        before = [list(source.read(piece, lambda data, _: data["n"])) for piece in source.pieces(start, end)]
        spool.append(numbers(5, 5))
        carried: SpoolSource = pickle.loads(pickle.dumps(source))
        assert [list(carried.read(piece, lambda data, _: data["n"])) for piece in carried.pieces(start, end)] == before
        assert source.pieces(end, end) == []


def test_a_segment_that_is_gone_is_told(tmp_path: Path) -> None:
    source = SpoolSource("s", tmp_path)
    with Spool(tmp_path) as spool:
        spool.append([b"1"])
        (tmp_path / "00000000.ndjson").unlink()
        with pytest.raises(StreamError, match=r"00000000\.ndjson is gone, but not all of it was answered\nhint: "):
            source.ahead(source.begin(), Limit())


def cut(path: Path, size: int) -> None:
    with path.open("r+b") as file:
        file.truncate(size)


def instants(source: SpoolSource, start: Offset) -> tuple[list[Any], Offset]:
    """What has come since an offset: numbers, and the reasons of what is lost."""
    end = source.ahead(start, Limit())
    found: list[Any] = []
    for piece in source.pieces(start, end):
        for one in source.read(piece, lambda data, sequence: found.append(data["n"])):
            assert isinstance(one, MalformedRecord)
            found.append(one.reason)
    return found, end


def test_a_spool_that_is_shorter_than_it_promised_says_so_until_it_is_accepted(tmp_path: Path) -> None:
    source = SpoolSource("s", tmp_path)
    with Spool(tmp_path) as spool:
        spool.append(numbers(0, 10))
        assert spool.shortage == ""
    found, offset = instants(source, source.begin())
    assert found == list(range(10))
    size = (tmp_path / "00000000.ndjson").stat().st_size
    cut(tmp_path / "00000000.ndjson", size // 2)
    for _ in range(2):
        with Spool(tmp_path) as spool:
            assert spool.shortage.splitlines()[0] == (
                f"the spool {tmp_path} is shorter than promised: {size // 2} of {size} bytes; "
                "5 acknowledged events are missing"
            )
    with Spool(tmp_path) as spool:
        spool.accept_shortage()
        spool.append(numbers(10, 2))
        assert instants(source, offset)[0] == [10, 11]
    with Spool(tmp_path) as spool:
        assert spool.shortage == ""
        assert instants(source, offset)[0] == [10, 11]


def test_a_segment_that_was_removed_is_missed(tmp_path: Path) -> None:
    source = SpoolSource("s", tmp_path)
    with Spool(tmp_path) as spool:
        spool.append(numbers(0, 10))
    _, offset = instants(source, source.begin())
    size = (tmp_path / "00000000.ndjson").stat().st_size
    (tmp_path / "00000000.ndjson").unlink()
    with Spool(tmp_path) as spool:
        assert f"0 of {size} bytes; 10 acknowledged events are missing" in spool.shortage
        spool.append(numbers(10, 2))
        assert instants(source, offset)[0] == [10, 11]


def test_a_segment_before_the_last_that_was_cut_off_is_missed(tmp_path: Path) -> None:
    with Spool(tmp_path, segment_size=40) as spool:
        spool.append(numbers(0, 20))
    Spool(tmp_path, segment_size=40).close()
    first = tmp_path / "00000000.ndjson"
    size = first.stat().st_size
    cut(first, size - 8)
    with Spool(tmp_path, segment_size=40) as spool:
        assert f"{size - 8} of {size} bytes; acknowledged events are missing" in spool.shortage


def test_a_receiver_whose_cursor_is_ahead_of_its_records_says_so(tmp_path: Path) -> None:
    with Spool(tmp_path) as spool:
        spool.append(numbers(0, 3), {"since": 3})
    (tmp_path / "durable").unlink()
    cut(tmp_path / "00000000.ndjson", 0)
    with Spool(tmp_path) as spool:
        assert "acknowledged events are missing" in spool.shortage
        assert spool.cursor == {"since": 3}
        spool.append(numbers(3, 1), {"since": 4})
    with Spool(tmp_path) as spool:
        assert spool.cursor == {"since": 4}
        assert spool.position.at > 0


def test_a_batch_that_was_planned_over_what_is_lost_gives_the_rest_and_says_so(tmp_path: Path) -> None:
    source = SpoolSource("s", tmp_path)
    with Spool(tmp_path) as spool:
        spool.append(numbers(0, 4))
    (piece,) = source.pieces(source.begin(), source.ahead(source.begin(), Limit()))
    size = (tmp_path / "00000000.ndjson").stat().st_size
    cut(tmp_path / "00000000.ndjson", size // 2)
    (lost,) = source.read(piece, lambda data, sequence: None)
    assert isinstance(lost, MalformedRecord)
    assert lost.reason == f"the spool has lost {size // 2} bytes of what was acknowledged"


def test_a_spool_without_the_records_that_were_read_of_it_is_refused(tmp_path: Path) -> None:
    source = SpoolSource("s", tmp_path)
    with Spool(tmp_path) as spool:
        spool.append(numbers(0, 10))
    _, offset = instants(source, source.begin())
    for file in tmp_path.iterdir():
        file.unlink()
    with Spool(tmp_path) as spool:
        spool.append(numbers(0, 1))
        with pytest.raises(StreamError, match="ends before what was read of it\nhint: "):
            source.ahead(offset, Limit())


def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StreamError, match=r"cannot write the spool .*Not a directory"):
        Spool(tmp_path / "file" / "spool")


def test_a_closed_spool_takes_nothing(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.close()
    spool.close()
    with pytest.raises(StreamError, match="is closed"):
        spool.append([b"1"])
