"""Lines in a growing file and in a folder: the same bytes once, whatever happens on the way."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.sinks.telling import HEADER, batches, contents, run, stopped_everywhere, told

from anabranch.errors import EngineError
from anabranch.sinks.base import Sink
from anabranch.sinks.files import LinesFile, LinesFolder
from anabranch.sinks.ledger import FileLedger, MemoryLedger

WORK = list(enumerate(batches()))
JSON = b"".join(one.json for _, answers in WORK for one in answers)
CSV = HEADER + b"".join(one.csv for _, answers in WORK for one in answers)


def read(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.name.endswith(".gz") else path.read_bytes()


FILES: dict[str, Callable[[Path], Sink]] = {
    "out.ndjson": lambda folder: LinesFile(folder / "out.ndjson"),
    "out.ndjson.gz": lambda folder: LinesFile(folder / "out.ndjson.gz"),
    "out.csv": lambda folder: LinesFile(folder / "out.csv", "csv", HEADER),
    "out.csv.gz": lambda folder: LinesFile(folder / "out.csv.gz", "csv", HEADER),
}


def behind_precious(folder: Path) -> Sink:
    if not (folder / "out.ndjson").exists():
        (folder / "out.ndjson").write_bytes(b"precious")
    return LinesFile(folder / "out.ndjson", append=True)


def over_old(folder: Path) -> Sink:
    if not (folder / "out.csv").exists():
        (folder / "out.csv").write_bytes(b"old\n" * 100)
    return LinesFile(folder / "out.csv", "csv", HEADER, overwrite=True)


STOPPED = {
    **{name: FILES[name] for name in ("out.csv", "out.csv.gz")},
    "append": behind_precious,
    "overwrite": over_old,
}
FOLDERS: dict[str, Callable[[Path], Sink]] = {
    "ndjson": lambda folder: LinesFolder(folder),
    "csv.gz": lambda folder: LinesFolder(folder, "csv", HEADER, zipped=True),
}


# --- one growing file -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_a_file_holds_the_lines_of_all_batches(name: str, tmp_path: Path) -> None:
    run(lambda: FILES[name](tmp_path), tmp_path / "ledger", WORK)
    assert read(tmp_path / name) == (CSV if "csv" in name else JSON)


@pytest.mark.parametrize("name", FILES)
def test_a_file_goes_on_after_a_restart_and_a_batch_that_comes_again_stands_once(name: str, tmp_path: Path) -> None:
    for batch in range(len(WORK)):
        run(lambda: FILES[name](tmp_path), tmp_path / "ledger", [WORK[batch], WORK[batch]])
        run(lambda: FILES[name](tmp_path), tmp_path / "ledger", [WORK[batch]])
    assert read(tmp_path / name) == (CSV if "csv" in name else JSON)


@pytest.mark.parametrize("loses", [False, True], ids=["keeps", "loses"])
@pytest.mark.parametrize("name", STOPPED)
def test_a_machine_that_stops_anywhere_changes_no_byte_of_a_file(name: str, loses: bool, tmp_path: Path) -> None:
    calls = 0
    for call, expected, left in stopped_everywhere(STOPPED[name], tmp_path, loses):
        assert left == expected, f"stopped at call {call}"
        calls += 1
    assert calls > 20


@pytest.mark.parametrize("length", range(0, 400, 19))
def test_a_batch_that_is_torn_at_any_byte_is_written_again_whole(length: int, tmp_path: Path) -> None:
    path = tmp_path / "out.ndjson"
    run(lambda: LinesFile(path), tmp_path / "ledger", WORK[:2])
    whole = path.read_bytes()
    first = len(WORK[0][1][0].json)
    path.write_bytes(whole[: first + length].ljust(first + length, b"\0"))
    run(lambda: LinesFile(path), tmp_path / "ledger", WORK[1:])
    assert path.read_bytes() == JSON


def test_a_write_that_fails_is_refused_and_the_same_sink_can_write_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out.ndjson"
    sink = LinesFile(path)
    sink.open(MemoryLedger())
    sink.write(*WORK[0])

    def full(number: int, data: bytes) -> int:
        real(number, bytes(data)[:10])
        raise OSError(28, "No space left on device")

    real = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(EngineError, match=r"cannot write .*out\.ndjson: no space left on device"):
            sink.write(*WORK[1])
    sink.write(*WORK[1])
    sink.close()
    assert path.read_bytes() == b"".join(one.json for _, answers in WORK[:2] for one in answers)


def test_batches_without_lines_touch_nothing(tmp_path: Path) -> None:
    path = tmp_path / "out.ndjson"
    sink = LinesFile(path)
    sink.open(FileLedger(tmp_path / "ledger"))
    before = contents(tmp_path)
    sink.write(0, [])
    sink.write(1, [told(0, [])])
    assert contents(tmp_path) == before
    sink.close()


def test_a_run_without_answers_leaves_an_empty_file_or_a_header(tmp_path: Path) -> None:
    for name in ("out.ndjson", "out.csv"):
        run(lambda name=name: FILES[name](tmp_path), tmp_path / "ledger", [])  # type: ignore[misc]
        run(lambda name=name: FILES[name](tmp_path), tmp_path / "ledger", [])  # type: ignore[misc]
    assert (tmp_path / "out.ndjson").read_bytes() == b""
    assert (tmp_path / "out.csv").read_bytes() == HEADER


def test_each_batch_of_a_gzip_file_is_a_member_of_its_own(tmp_path: Path) -> None:
    run(lambda: LinesFile(tmp_path / "out.ndjson.gz"), tmp_path / "ledger", WORK)
    members = gzip.compress(WORK[0][1][0].json, compresslevel=6, mtime=0)
    assert (tmp_path / "out.ndjson.gz").read_bytes().startswith(members)
    assert (tmp_path / "out.ndjson.gz").read_bytes().count(b"\x1f\x8b\x08") == 4


# --- what was there before --------------------------------------------------------------------------------------------


def test_a_file_of_somebody_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "out.ndjson"
    path.write_bytes(b"precious\n")
    with pytest.raises(EngineError) as refusal:
        LinesFile(path).open(FileLedger(tmp_path / "ledger"))
    assert str(refusal.value) == (
        f"{path} exists already\n"
        "hint: name a new file, or add ?append=1 to go on behind its content or ?overwrite=1 to replace it"
    )
    assert path.read_bytes() == b"precious\n"


def test_an_empty_file_that_exists_is_taken(tmp_path: Path) -> None:
    (tmp_path / "out.ndjson").touch()
    run(lambda: LinesFile(tmp_path / "out.ndjson"), tmp_path / "ledger", WORK)
    assert (tmp_path / "out.ndjson").read_bytes() == JSON


@pytest.mark.parametrize(("before", "between"), [(b"precious\n", b""), (b"no end", b"\n")])
def test_append_goes_on_behind_what_is_there_also_after_a_restart(
    tmp_path: Path, before: bytes, between: bytes
) -> None:
    path = tmp_path / "out.ndjson"
    path.write_bytes(before)
    for _ in range(2):
        run(lambda: LinesFile(path, append=True), tmp_path / "ledger", WORK[:1])
    run(lambda: LinesFile(path, append=True), tmp_path / "ledger", WORK[1:])
    assert path.read_bytes() == before + between + JSON


@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz"])
def test_appending_to_csv_writes_no_second_header_and_refuses_other_columns(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    for ledger in ("one", "two"):
        run(lambda: LinesFile(path, "csv", HEADER, append=True), tmp_path / ledger, WORK)
    assert read(path) == CSV + CSV.removeprefix(HEADER)
    with pytest.raises(EngineError, match=r"cannot append to .*: it has other columns than at,op\nhint: name a new"):
        LinesFile(path, "csv", b"at,op\n", append=True).open(MemoryLedger())


def test_appending_csv_to_what_is_not_gzip_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "out.csv.gz"
    path.write_bytes(b"plain")
    with pytest.raises(EngineError, match="it is not gzip"):
        LinesFile(path, "csv", HEADER, append=True).open(MemoryLedger())


def test_overwrite_replaces_what_is_there_once_and_not_at_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_bytes(b"old\n" * 100)
    for batch in WORK:
        run(lambda: LinesFile(path, "csv", HEADER, overwrite=True), tmp_path / "ledger", [batch])
    assert path.read_bytes() == CSV


def test_a_run_that_wrote_nothing_does_not_own_what_somebody_wrote_later(tmp_path: Path) -> None:
    path = tmp_path / "out.ndjson"
    run(lambda: LinesFile(path), tmp_path / "ledger", [])
    path.write_bytes(b"precious\n")
    with pytest.raises(EngineError, match="exists already"):
        LinesFile(path).open(FileLedger(tmp_path / "ledger"))
    assert path.read_bytes() == b"precious\n"


# --- what happened meanwhile ------------------------------------------------------------------------------------------


def test_a_file_that_was_removed_since_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "out.ndjson"
    run(lambda: LinesFile(path), tmp_path / "ledger", WORK[:2])
    path.unlink()
    with pytest.raises(EngineError, match=r"out\.ndjson was removed since the last run\nhint: put it back, or begin"):
        LinesFile(path).open(FileLedger(tmp_path / "ledger"))
    assert not path.exists()


def test_a_file_that_was_shortened_since_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "out.ndjson"
    run(lambda: LinesFile(path), tmp_path / "ledger", WORK[:2])
    size = path.stat().st_size
    os.truncate(path, size - 1)
    with pytest.raises(EngineError, match=rf"was shortened: it has {size - 1} bytes, and {size} were written\nhint"):
        run(lambda: LinesFile(path), tmp_path / "ledger", WORK[4:])
    os.truncate(path, 3)
    with pytest.raises(EngineError, match="was shortened: it has 3 bytes"):
        LinesFile(path).open(FileLedger(tmp_path / "ledger"))


def test_a_file_that_somebody_else_has_written_to_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "out.ndjson"
    run(lambda: LinesFile(path), tmp_path / "ledger", WORK[:2])
    with path.open("ab") as file:
        file.write(b"more\n")
    with pytest.raises(EngineError, match="something else has written to"):
        run(lambda: LinesFile(path), tmp_path / "ledger", WORK[4:])


def test_a_file_that_is_removed_or_replaced_during_the_run_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "out.ndjson"
    sink = LinesFile(path)
    sink.open(MemoryLedger())
    path.unlink()
    with pytest.raises(EngineError, match="was removed or replaced while the run wrote to it"):
        sink.write(*WORK[0])
    path.write_bytes(b"")
    with pytest.raises(EngineError, match="was removed or replaced while the run wrote to it"):
        sink.write(*WORK[0])
    sink.close()


def test_a_checkpoint_that_is_older_than_its_output_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "out.ndjson"
    run(lambda: LinesFile(path), tmp_path / "ledger", WORK)
    with pytest.raises(EngineError, match="already holds batch 5, and batch 1 comes: the checkpoint is older"):
        run(lambda: LinesFile(path), tmp_path / "ledger", WORK[1:2])


def test_places_where_no_file_can_be_are_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"there is no folder .*missing\nhint: mkdir -p .*missing"):
        LinesFile(tmp_path / "missing" / "out.ndjson").open(MemoryLedger())
    with pytest.raises(EngineError, match="it is not a file that can be cut back"):
        LinesFile("/dev/null").open(MemoryLedger())
    with pytest.raises(EngineError, match="it is not a file that can be cut back"):
        LinesFile(tmp_path).open(MemoryLedger())


def test_several_files_share_a_ledger(tmp_path: Path) -> None:
    for batch in WORK:
        run(lambda: LinesFile(tmp_path / "a.ndjson"), tmp_path / "ledger", [batch])
        run(lambda: LinesFile(tmp_path / "b.csv", "csv", HEADER), tmp_path / "ledger", [batch])
    assert (tmp_path / "a.ndjson").read_bytes() == JSON
    assert (tmp_path / "b.csv").read_bytes() == CSV


# --- a folder ---------------------------------------------------------------------------------------------------------


def test_a_folder_has_a_file_for_each_batch_with_lines_and_their_order_is_the_output(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "out"
    run(lambda: LinesFolder(folder), tmp_path / "ledger", WORK)
    names = sorted(path.name for path in folder.iterdir())
    assert names == [f"part-0000000{batch}.ndjson" for batch in (0, 1, 4, 5)]
    assert b"".join((folder / name).read_bytes() for name in names) == JSON


def test_every_csv_file_of_a_folder_can_be_read_alone(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    run(lambda: LinesFolder(folder, "csv", HEADER, zipped=True), tmp_path / "ledger", WORK)
    assert read(folder / "part-00000000.csv.gz") == HEADER + WORK[0][1][0].csv


@pytest.mark.parametrize("loses", [False, True], ids=["keeps", "loses"])
@pytest.mark.parametrize("name", FOLDERS)
def test_a_machine_that_stops_anywhere_leaves_the_same_folder(name: str, loses: bool, tmp_path: Path) -> None:
    calls = 0
    for call, expected, left in stopped_everywhere(FOLDERS[name], tmp_path, loses):
        assert left == expected, f"stopped at call {call}"
        calls += 1
    assert calls > 10


def test_a_batch_that_comes_again_replaces_its_file(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    run(lambda: LinesFolder(folder), tmp_path / "ledger", WORK[:2])
    (folder / "part-00000001.ndjson").write_bytes(b"garbage")
    (folder / ".part-00000009.ndjson.tmp").write_bytes(b"half")
    run(lambda: LinesFolder(folder), tmp_path / "ledger", WORK[1:])
    assert b"".join(contents(folder).values()) == JSON


def test_a_folder_of_another_run_is_refused_or_appended_to_or_overwritten(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    run(lambda: LinesFolder(folder), tmp_path / "first", WORK)
    (folder / "_SUCCESS").touch()
    with pytest.raises(EngineError) as refusal:
        LinesFolder(folder).open(MemoryLedger())
    assert str(refusal.value) == (
        f"the folder {folder} holds files already, such as part-00000000.ndjson\n"
        "hint: name a new folder, or add ?append=1 to keep them or ?overwrite=1 to replace them"
    )
    for batch in WORK:
        run(lambda: LinesFolder(folder, append=True), tmp_path / "second", [batch])
    assert b"".join(contents(folder).values()) == JSON + JSON
    for batch in WORK[:2]:
        run(lambda: LinesFolder(folder, overwrite=True), tmp_path / "third", [batch])
    assert list(contents(folder)) == ["_SUCCESS", "part-00000000.ndjson", "part-00000001.ndjson"]


def test_overwriting_a_folder_never_removes_what_is_no_output(tmp_path: Path) -> None:
    run(lambda: LinesFolder(tmp_path / "out"), tmp_path / "first", WORK)
    (tmp_path / "out" / "thesis.tex").write_text("precious")
    before = contents(tmp_path / "out")
    with pytest.raises(EngineError, match=r"is not overwritten: thesis\.tex is not the output of a query\nhint"):
        LinesFolder(tmp_path / "out", overwrite=True).open(MemoryLedger())
    assert contents(tmp_path / "out") == before


def test_a_folder_that_was_removed_is_noticed_at_the_start_and_during_the_run(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    ledger = FileLedger(tmp_path / "ledger")
    sink = LinesFolder(folder)
    sink.open(ledger)
    folder.rmdir()
    with pytest.raises(EngineError, match="was removed while the run wrote to it"):
        sink.write(*WORK[0])
    with pytest.raises(EngineError, match="was removed since the last run"):
        LinesFolder(folder).open(ledger)


def test_files_that_a_reader_has_taken_away_are_not_missed(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    run(lambda: LinesFolder(folder), tmp_path / "ledger", WORK[:2])
    (folder / "part-00000000.ndjson").unlink()
    run(lambda: LinesFolder(folder), tmp_path / "ledger", WORK[4:])
    assert list(contents(folder)) == [f"part-0000000{batch}.ndjson" for batch in (1, 4, 5)]


def test_a_file_where_the_folder_should_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(EngineError, match=r"cannot write to the folder .*out: file exists"):
        LinesFolder(tmp_path / "out").open(MemoryLedger())


def test_one_byte_of_another_writer_is_noticed(tmp_path: Path) -> None:
    sink = LinesFile(tmp_path / "out.ndjson")
    sink.open(MemoryLedger())
    sink.write(*WORK[0])
    with (tmp_path / "out.ndjson").open("ab") as file:
        file.write(b"\n")
    with pytest.raises(EngineError, match="something else has written"):
        sink.write(*WORK[1])
    sink.close()
