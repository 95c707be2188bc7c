"""One run of a job in this process: the same batches, cell and sinks as on Spark, and no Java.

    BatchPlanner.ahead -> read_piece -> Cell.process -> sinks -> commit

The planner, the packing and the cell are those that Spark carries; here one thread carries them, a batch after the
other, with the state in SQLite (`local_state`).

Invariant: a batch is planned before it is read and committed after every sink has it, so that a run that was killed
anywhere leaves, once it has gone on, the output of an undisturbed one.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress

from anabranch.errors import Cancelled
from anabranch.model.graph_block import PropertyKeys
from anabranch.runner.batch_planner import BatchPlanner
from anabranch.runner.cell import Cache, Cell
from anabranch.runner.folder import RunFolder
from anabranch.runner.garbage import quiet_collector, settle
from anabranch.runner.job import Job
from anabranch.runner.letters import LetterFiles
from anabranch.runner.local_state import LocalState
from anabranch.runner.outlet import Observers
from anabranch.runner.packing import read_piece
from anabranch.runner.rows import CELL, PackedRow
from anabranch.runner.run import Run
from anabranch.runner.source_settings import SourceSettings
from anabranch.sinks.base import Sink
from anabranch.sources.base import Offset

PATIENCE = 0.5  # seconds that a batch may take before it checks whether to stop
LARGEST_BATCH = 16 << 20  # bytes
_SHORT, _LONG = 0.1, 0.4  # seconds of a batch after which the next one is larger, or smaller


class InProcessRun(Run):
    """A run whose batches are processed in this process, one after the other.

    `pace`, in seconds, is the pause after a look for new input that found none, and the least time between two batches
    of live input.
    """

    engine = "local"
    batch_size = 1 << 20  # small enough for a first answer, and a bar that moves, within a second

    def __init__(
        self,
        job: Job,
        folder: RunFolder,
        sinks: Sequence[Sink],
        letters: LetterFiles,
        observers: Observers | None = None,
        pace: float = 0.02,
    ) -> None:
        super().__init__(job, folder, sinks, letters, observers)
        self._pace = pace
        self._cache: Cache = {}
        self._keys: dict[str, PropertyKeys] = {}

    def _carry(self, should_stop: Callable[[], bool]) -> None:
        """Process batches until told to stop: between two batches, or in a long one, which is then undone."""
        with closing(LocalState(self._folder.local, durable=not self._folder.temporary)) as state:
            settings = self._source_settings()
            with closing(BatchPlanner.of(settings)) as planner, quiet_collector(), suppress(_Interrupted):
                self._go_on(state, planner, settings, should_stop)

    def _go_on(
        self, state: LocalState, planner: BatchPlanner, settings: SourceSettings, should_stop: Callable[[], bool]
    ) -> None:
        standing = state.standing()
        number, start, planned = standing.number, standing.answered or planner.initial(), standing.planned
        self.progress.batch = number - 1
        while not self._outlet.is_over and not should_stop():
            begun = time.monotonic()
            end = planned or planner.ahead(start)
            if end == start:
                time.sleep(self._pace)
                continue
            if planned is None:
                state.plan(number, end)
            self._batch(state, planner, settings, number, (start, end), _Patience(should_stop))
            planner.commit(end)
            self.progress.batch = number
            self.progress.batch_seconds = time.monotonic() - begun
            self.progress.offset = end
            self.progress.state_bytes = state.size
            self._outlet.observers.on_progress(self.progress)
            number, start, planned = number + 1, end, None
            settle()
            if self._job.ordered:
                planner.batch_size = self._next_size(planner.batch_size, self.progress.batch_seconds)
            else:
                time.sleep(max(0.0, begun + self._pace - time.monotonic()))

    def _next_size(self, size: int, seconds: float) -> int:
        """Return the size of the next batch of files: large enough that what a batch costs by itself is lost in it, and
        not so large that the first answers and the bar are late. Live input comes as it comes.
        """
        if seconds < _SHORT:
            return min(2 * size, LARGEST_BATCH)
        return max(size // 2, self.batch_size) if seconds > _LONG else size

    def _batch(
        self,
        state: LocalState,
        planner: BatchPlanner,
        settings: SourceSettings,
        number: int,
        bounds: tuple[Offset, Offset],
        patience: _Patience,
    ) -> None:
        rows = [PackedRow(CELL, "control", json.dumps(BatchPlanner.control(bounds[1])).encode())]
        for piece in planner.pieces(*bounds):
            for row in read_piece(settings, piece, self._keys.get(piece.stream, ())):
                rows.append(row)
                patience.check()
        with state.batch(number):
            cell = Cell(self._job, CELL, state, self._cache, patience.check)
            self._outlet.take(list(cell.process(rows)), number)
        self._keys = cell.keys


class _Interrupted(Cancelled):
    """Raised inside a long batch when the run is to stop."""


class _Patience:
    """Checks, once a batch has run for a while, now and then whether the run is to stop."""

    def __init__(self, should_stop: Callable[[], bool]) -> None:
        self._should_stop = should_stop
        self._next = time.monotonic() + PATIENCE

    def check(self) -> None:
        now = time.monotonic()
        if now >= self._next:
            if self._should_stop():
                raise _Interrupted
            self._next = now + PATIENCE / 10
