"""What the tests of the sinks share: answers as the engine's worker renders them, and a machine that can stop."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from anabranch.formats.answers import csv_header, csv_lines, json_lines, to_typed
from anabranch.model.instants import parse_instant
from anabranch.sinks.base import Sink, Told
from anabranch.sinks.ledger import FileLedger

MINUTE = 60_000_000
START = parse_instant("2022-10-14T14:00:00Z")
COLUMNS = ("user", "hops")
HEADER = csv_header(COLUMNS)


def told(
    number: int,
    rows: Sequence[tuple[Any, ...]] = ((1234, [2, 3]),),
    query: str = "trick",
    columns: Sequence[str] = COLUMNS,
    correction: str = "",
    at: int | None = None,
) -> Told:
    """Answer `number` of a query, a minute after the one before unless `at` says otherwise."""
    at = START + number * MINUTE if at is None else at
    parts = (query, at, "entering", correction, at - 60 * MINUTE, at, tuple(columns), list(rows))
    return Told(query, number, at, len(rows), json_lines(*parts), csv_lines(*parts), to_typed(*parts))


def batches() -> list[list[Told]]:
    """A few batches: one answer, several, none, one without rows, one that is large."""
    return [
        [told(0)],
        [told(1, [(1, ["ä", None]), (2, [])]), told(2, [('🚲\n,"', {"a": 1.5})])],
        [],
        [told(3, [])],
        [told(4, [(user, "x" * 20) for user in range(300)])],
        [told(5)],
    ]


class Stopped(BaseException):
    """The machine has lost its power."""


class Machine:
    """Counts the calls that change a disk and stops at one of them, half-way; then nothing works any more."""

    def __init__(self, stops_at: int | None = None) -> None:
        self.calls = 0
        self.stops_at = stops_at

    @contextmanager
    def running(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            for owner, name in (
                (os, "fsync"),
                (os, "ftruncate"),
                (pathlib.Path, "replace"),
                (pathlib.Path, "unlink"),
                (pathlib.Path, "mkdir"),
            ):
                patch.setattr(owner, name, self._counted(getattr(owner, name)))
            patch.setattr(os, "write", self._write(os.write))
            yield

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **options: Any) -> Any:
            self._tick()
            return call(*args, **options)

        return counted

    def _write(self, call: Callable[[int, bytes], int]) -> Callable[[int, bytes], int]:
        def write(number: int, data: bytes) -> int:
            try:
                self._tick()
            except Stopped:
                if self.calls == self.stops_at:
                    call(number, data[: len(data) // 2])
                raise
            return call(number, data)

        return write

    def _tick(self) -> None:
        self.calls += 1
        if self.stops_at is not None and self.calls >= self.stops_at:
            raise Stopped


def contents(folder: pathlib.Path) -> dict[str, bytes]:
    """Every file below a folder with its bytes, hidden ones included."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def run(make: Callable[[], Sink], ledger_folder: pathlib.Path, work: Sequence[tuple[int, list[Told]]]) -> None:
    """One run: open, write, close."""
    sink = make()
    try:
        sink.open(FileLedger(ledger_folder))
        for batch, answers in work:
            sink.write(batch, answers)
    finally:
        sink.close()


def stopped_everywhere(
    make: Callable[[pathlib.Path], Sink], tmp_path: pathlib.Path
) -> Iterator[tuple[int, dict[str, bytes], dict[str, bytes]]]:
    """Stop the machine at each of its calls in turn, start again with the batch that was under way, and go on.

    Gives for each the call, what an undisturbed run leaves, and what this one has left.
    """
    work = list(enumerate(batches()))
    whole = tmp_path / "whole"
    whole.mkdir()
    machine = Machine()
    with machine.running():
        run(lambda: make(whole), tmp_path / "whole.ledger", work)
    expected = contents(whole)
    for call in range(1, machine.calls + 1):
        folder, ledger = tmp_path / f"out{call}", tmp_path / f"ledger{call}"
        folder.mkdir()
        sink = make(folder)
        begun = 0
        with Machine(call).running(), pytest.raises(Stopped):  # noqa: PT012  the call may be in any of them
            sink.open(FileLedger(ledger))
            for begun, answers in work:
                sink.write(begun, answers)
        sink.close()
        run(lambda folder=folder: make(folder), ledger, work[begun:])  # type: ignore[misc]
        yield call, expected, contents(folder)
        assert not [path for path in ledger.iterdir() if path.name.endswith(".tmp")]
