"""What a job on Spark does, stage by stage: its own functions, called in one process with a stopwatch around them.

Spark's workers are processes of their own, so what they do is measured here on the same files: a source's pieces become
chunks (`scan`), chunks become blocks (`open`), terms become ids (`encode`), patterns are matched (`match`), answers
become JSON (`output`), the window's chunks are put away (`state`), and the `rest` is windows, order and rows. What the
run on Spark takes beyond that is Spark's: planning, the shuffle, its state store, and processes that talk.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from sparkling import job_over

from anabranch.engine.feeds import EncodedStream
from anabranch.engine.flows import QueryFlow
from anabranch.formats import chunks
from anabranch.runner import cell as cells
from anabranch.runner.batch_planner import BatchPlanner
from anabranch.runner.cell import Cell
from anabranch.runner.memory_state import MemoryState
from anabranch.runner.packing import pack_piece
from anabranch.runner.rows import CELL, PackedRow
from anabranch.runner.source_settings import SourceSettings
from anabranch.sources.base import Limit

STAGES = ("scan", "open", "encode", "match", "output", "state", "rest")


def measured(text: str, events: Path, stream: str) -> dict[str, float]:
    """Seconds of each stage, on one core."""
    job = job_over(text, events, stream)
    watch = Stopwatch()
    settings = SourceSettings(job.streams, job.fingerprint, Limit(), None, links=job.link_streams())
    planner = BatchPlanner(settings.streams, settings.queries, settings.limit)
    state = MemoryState()
    start = planner.initial()
    cells.forget_everything()
    patched: list[tuple[Any, str, str]] = [
        (chunks, "opened", "open"), (EncodedStream, "between", "encode"), (QueryFlow, "advance", "match"),
        (Cell, "_tell", "output"), (Cell, "_store", "state"), (Cell, "_save", "state"),
    ]  # fmt: skip
    with watch.around(patched):
        while True:
            end = planner.ahead(start)
            if end == start:
                break
            with watch.at("scan"):
                rows = [row for piece in planner.pieces(start, end) for row in pack_piece(settings, piece)]
            control = PackedRow(CELL, "control", cells.json.dumps(BatchPlanner.control(end)).encode())
            with watch.at("rest"):
                list(Cell(job, "bench", state).process([control, *rows]))
            start = end
    cells.forget_everything()
    return {stage: round(watch.seconds.get(stage, 0.0), 3) for stage in STAGES}


class Stopwatch:
    """Seconds by stage; what runs within another stage counts for the inner one alone."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._stack: list[str] = []
        self._since = 0.0

    @contextmanager
    def at(self, stage: str) -> Iterator[None]:
        self._turn()
        self._stack.append(stage)
        try:
            yield
        finally:
            self._turn()
            self._stack.pop()

    def _turn(self) -> None:
        now = time.perf_counter()
        if self._stack:
            self.seconds[self._stack[-1]] = self.seconds.get(self._stack[-1], 0.0) + now - self._since
        self._since = now

    @contextmanager
    def around(self, functions: list[tuple[Any, str, str]]) -> Iterator[None]:
        """Count what these functions (owner, name, stage) take."""
        patches = [
            patch.object(owner, name, self._timed(getattr(owner, name), stage)) for owner, name, stage in functions
        ]
        for one in patches:
            one.start()
        try:
            yield
        finally:
            for one in patches:
                one.stop()

    def _timed(self, function: Callable[..., Any], stage: str) -> Callable[..., Any]:
        def timed(*arguments: Any, **named: Any) -> Any:
            with self.at(stage):
                found = function(*arguments, **named)
                return list(found) if isinstance(found, Iterator) else found

        return timed
