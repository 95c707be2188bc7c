"""Lines on stdout: once in a file, at least once in a pipe."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.machine import Machine, Stopped
from tests.unit.sinks.telling import HEADER, batches, told

from anabranch.sinks.base import Ledger, RenderedAnswer
from anabranch.sinks.console import Console
from anabranch.sinks.ledger import FileLedger, MemoryLedger

WORK = list(enumerate(batches()))
JSON = b"".join(one.json for _, answers in WORK for one in answers)
CSV = HEADER + b"".join(one.csv for _, answers in WORK for one in answers)
APPENDING = os.O_WRONLY | os.O_CREAT | os.O_APPEND
TRUNCATING = os.O_WRONLY | os.O_CREAT | os.O_TRUNC


@contextmanager
def opened(path: Path, flags: int = APPENDING) -> Iterator[int]:
    number = os.open(path, flags, 0o666)
    try:
        yield number
    finally:
        os.close(number)


def printed(descriptor: int, ledger: Ledger, work: list[tuple[int, list[RenderedAnswer]]], csv: bool = False) -> None:
    console = Console("csv", HEADER, descriptor) if csv else Console(descriptor=descriptor)
    console.open(ledger)
    for batch, answers in work:
        console.write(batch, answers)
    console.close()


class Pipe:
    """A pipe and what has come out of it."""

    def __init__(self) -> None:
        self._reads, self.writes = os.pipe()
        os.set_blocking(self._reads, False)

    def read(self) -> bytes:
        try:
            return os.read(self._reads, 1 << 20)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        os.close(self._reads)
        os.close(self.writes)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    one = Pipe()
    yield one
    one.close()


# --- a regular file ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("csv", [False, True], ids=["json", "csv"])
def test_a_file_that_is_appended_to_has_every_line_once_over_many_restarts(csv: bool, tmp_path: Path) -> None:
    for batch in WORK:
        for _ in range(2):
            with opened(tmp_path / "out") as number:
                printed(number, FileLedger(tmp_path / "ledger"), [batch, batch], csv)
    assert (tmp_path / "out").read_bytes() == (CSV if csv else JSON)


@pytest.mark.parametrize("csv", [False, True], ids=["json", "csv"])
def test_a_machine_that_stops_anywhere_changes_no_byte_of_the_file(csv: bool, tmp_path: Path) -> None:
    counted = Machine()
    with counted.running(), opened(tmp_path / "whole") as number:
        printed(number, FileLedger(tmp_path / "whole.ledger"), WORK, csv)
    assert (tmp_path / "whole").read_bytes() == (CSV if csv else JSON)
    for call in range(1, counted.calls + 1):
        path, ledger = tmp_path / f"out{call}", tmp_path / f"ledger{call}"
        path.write_bytes(b"before\n")
        begun = 0
        with opened(path) as number, Machine(call).running(), pytest.raises(Stopped):  # noqa: PT012
            console = Console("csv" if csv else "json", HEADER if csv else b"", number)
            console.open(FileLedger(ledger))
            for begun, answers in WORK:
                console.write(begun, answers)
        with opened(path) as number:
            printed(number, FileLedger(ledger), WORK[begun:], csv)
        assert path.read_bytes() == b"before\n" + (CSV if csv else JSON), f"stopped at call {call}"


def torn(path: Path, ledger: Ledger) -> None:
    """Batch 0 is printed, batch 1 stops half-way."""
    with opened(path) as number:
        console = Console(descriptor=number)
        console.open(ledger)
        console.write(*WORK[0])
        with Machine(1).running(), pytest.raises(Stopped):
            console.write(*WORK[1])


def test_what_somebody_else_has_written_behind_a_torn_batch_is_never_cut(tmp_path: Path) -> None:
    path, ledger = tmp_path / "out", MemoryLedger()
    torn(path, ledger)
    half = path.read_bytes()
    assert WORK[0][1][0].json < half < JSON
    path.write_bytes(half + b"restarting" * 1000)
    with opened(path) as number:
        printed(number, ledger, WORK[1:])
    assert path.read_bytes() == half + b"restarting" * 1000 + JSON.removeprefix(WORK[0][1][0].json)


def test_a_file_that_was_begun_anew_gets_what_is_left(tmp_path: Path) -> None:
    path, ledger = tmp_path / "out", MemoryLedger()
    torn(path, ledger)
    with opened(path, TRUNCATING) as number:
        printed(number, ledger, WORK[1:])
    assert path.read_bytes() == JSON.removeprefix(WORK[0][1][0].json)


def test_another_file_is_not_cut(tmp_path: Path) -> None:
    path, ledger = tmp_path / "out", MemoryLedger()
    torn(path, ledger)
    other = tmp_path / "other"
    other.write_bytes(path.read_bytes())
    with opened(other) as number:
        printed(number, ledger, WORK[1:])
    assert other.read_bytes() == path.read_bytes() + JSON.removeprefix(WORK[0][1][0].json)


def test_a_new_file_gets_a_header_of_its_own(tmp_path: Path) -> None:
    ledger = MemoryLedger()
    for name, work in (("a", WORK[:2]), ("b", WORK[2:])):
        with opened(tmp_path / name, TRUNCATING) as number:
            printed(number, ledger, work, csv=True)
    assert (tmp_path / "b").read_bytes().startswith(HEADER)
    assert (tmp_path / "a").read_bytes() + (tmp_path / "b").read_bytes().removeprefix(HEADER) == CSV


# --- a pipe -----------------------------------------------------------------------------------------------------------


def test_a_batch_that_was_done_is_not_printed_into_a_pipe_again(pipe: Pipe, tmp_path: Path) -> None:
    for batch in WORK:
        printed(pipe.writes, FileLedger(tmp_path / "ledger"), [batch, batch])
        printed(pipe.writes, FileLedger(tmp_path / "ledger"), [batch])
    assert pipe.read() == JSON


def test_a_batch_that_was_only_begun_is_printed_into_a_pipe_again(pipe: Pipe) -> None:
    class Torn(MemoryLedger):
        def put(self, key: str, value: object) -> None:
            assert isinstance(value, dict)
            if value["done"]:
                raise Stopped
            super().put(key, value)

    ledger = Torn()
    with pytest.raises(Stopped):
        printed(pipe.writes, ledger, WORK[:1])
    with pytest.raises(Stopped):
        printed(pipe.writes, ledger, WORK[:1])
    assert pipe.read() == 2 * WORK[0][1][0].json


def test_every_run_into_a_pipe_begins_with_the_header(pipe: Pipe) -> None:
    ledger = MemoryLedger()
    for _ in range(2):
        printed(pipe.writes, ledger, [], csv=True)
    assert pipe.read() == 2 * HEADER


def test_batches_without_lines_note_nothing(pipe: Pipe, tmp_path: Path) -> None:
    printed(pipe.writes, FileLedger(tmp_path), [(0, []), (1, [told(0, [])])])
    assert pipe.read() == b""
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_left_is_told_as_a_broken_pipe() -> None:
    reads, writes = os.pipe()
    os.close(reads)
    with pytest.raises(BrokenPipeError):
        printed(writes, MemoryLedger(), WORK)
    os.close(writes)


def test_more_than_a_pipe_holds_goes_through_one_that_does_not_block() -> None:
    program = (
        "import os, sys\n"
        "from anabranch.sinks.base import RenderedAnswer\n"
        "from anabranch.sinks.console import Console\n"
        "from anabranch.sinks.ledger import MemoryLedger\n"
        "os.set_blocking(1, False)\n"
        "print('first', flush=False)\n"
        "console = Console()\n"
        "console.open(MemoryLedger())\n"
        "console.write(0, [RenderedAnswer('q', 0, 0, 1, b'x' * 3_000_000 + b'\\n')])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60, check=True)
    assert done.stdout == b"first\n" + b"x" * 3_000_000 + b"\n"
