"""What the tests of the sinks share: answers as the engine's worker renders them, and runs that a machine stops."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import pytest
from tests.support.machine import Disk, Machine, Stopped

from anabranch.formats.answers import AnswerParts, csv_header, csv_lines, json_lines, to_typed
from anabranch.model.instants import parse_instant
from anabranch.sinks.base import RenderedAnswer, Sink
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
) -> RenderedAnswer:
    """Answer `number` of a query, a minute after the one before unless `at` says otherwise."""
    at = START + number * MINUTE if at is None else at
    parts = AnswerParts(query, at, "entering", correction, at - 60 * MINUTE, at, tuple(columns), list(rows))
    return RenderedAnswer(query, number, at, len(rows), json_lines(parts), csv_lines(parts), to_typed(parts))


def batches() -> list[list[RenderedAnswer]]:
    """A few batches: one answer, several, none, one without rows, one that is large."""
    return [
        [told(0)],
        [told(1, [(1, ["ä", None]), (2, [])]), told(2, [('🚲\n,"', {"a": 1.5})])],
        [],
        [told(3, [])],
        [told(4, [(user, "x" * 20) for user in range(300)])],
        [told(5)],
    ]


def contents(folder: pathlib.Path) -> dict[str, bytes]:
    """Every file below a folder with its bytes, hidden ones included."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def run(
    make: Callable[[], Sink], ledger_folder: pathlib.Path, work: Sequence[tuple[int, list[RenderedAnswer]]]
) -> None:
    """One run: open, write, close."""
    sink = make()
    try:
        sink.open(FileLedger(ledger_folder))
        for batch, answers in work:
            sink.write(batch, answers)
    finally:
        sink.close()


def stopped_everywhere(
    make: Callable[[pathlib.Path], Sink], tmp_path: pathlib.Path, loses: bool = False
) -> Iterator[tuple[int, dict[str, bytes], dict[str, bytes]]]:
    """Stop the machine at each of its calls in turn, start again with the batch that was under way, and go on.

    Gives for each the call, what an undisturbed run leaves, and what this one has left. A machine that `loses` starts
    again without all that was not synced, and is stopped once more after its last call.
    """
    work = list(enumerate(batches()))
    whole = tmp_path / "whole"
    whole.mkdir()
    machine = Machine()
    with machine.running():
        run(lambda: make(whole), tmp_path / "whole.ledger", work)
    expected = contents(whole)
    for call in range(1, machine.calls + (2 if loses else 1)):
        root = tmp_path / f"run{call}"
        folder, ledger = root / "out", root / "ledger"
        folder.mkdir(parents=True)
        sink = make(folder)
        disk = Disk(root) if loses else None
        begun, stops = 0, pytest.raises(Stopped) if call <= machine.calls else nullcontext()
        with Machine(call, disk).running(), stops:
            sink.open(FileLedger(ledger))
            for begun, answers in work:
                sink.write(begun, answers)
            begun = len(work)
        sink.close()
        if disk is not None:
            disk.lose_power()
        run(lambda folder=folder: make(folder), ledger, work[begun:])  # type: ignore[misc]
        yield call, expected, contents(folder)
        assert not [path for path in ledger.iterdir() if path.name.endswith(".tmp")]
