"""The outlet: passes the rows of a batch to the sinks, the dead letters and the observers of the run.

It is the same whether Spark carries the batches or this process does.

Invariant: a batch that is run again reaches the sinks under the same number; a failure is reported once. The progress
reports a batch only when the sinks have it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from anabranch.engine import checkpoint
from anabranch.errors import QueryError
from anabranch.runner.letters import LetterFiles
from anabranch.runner.rows import CellRow
from anabranch.sinks.base import Ledger, RenderedAnswer, Sink


@dataclass(slots=True)
class RunProgress:
    """The progress of a run: the cell's last report, and the carrier's own figures of the last batch."""

    status: dict[str, Any] = field(default_factory=dict)
    batch: int = -1
    batch_seconds: float = 0.0
    state_bytes: int = 0
    offset: dict[str, Any] = field(default_factory=dict)
    restarts: int = 0


@dataclass(slots=True)
class Observers:
    """The callbacks of a run; each is called from the thread of the batch."""

    on_warning: Callable[[str, int, str], None] = lambda query, at, text: None
    on_failure: Callable[[QueryError], None] = lambda failure: None
    on_note: Callable[[str], None] = lambda text: None
    on_progress: Callable[[RunProgress], None] = lambda progress: None


def skip_errors(progress: RunProgress) -> list[QueryError]:
    """Return, for each query that has skipped rows, the error of the first one."""
    said = [one["first_skipped"] for one in progress.status.get("queries", {}).values() if one.get("skipped")]
    return [checkpoint.unpack_error(one["diagnostics"], one["text"], one["file_name"]) for one in said]


class Outlet:
    """The output side of one run."""

    def __init__(self, sinks: Sequence[Sink], letters: LetterFiles, observers: Observers | None) -> None:
        self._sinks = list(sinks)
        self._letters = letters
        self.observers = observers or Observers()
        self.progress = RunProgress()
        self.failures: list[QueryError] = []
        self.over_at: int | None = None  # the batch after which there is no more output

    @contextmanager
    def opened(self, ledger: Ledger) -> Iterator[None]:
        """Open the sinks; they are closed however the block ends."""
        try:
            for sink in self._sinks:
                sink.open(ledger)
            self._letters.open(ledger)
            yield
        finally:
            for sink in self._sinks:
                sink.close()
            self._letters.close()

    def take(self, rows: Sequence[CellRow], batch: int) -> None:
        """Pass on the rows of a batch, in their order; positions and failures of queries come after their answers."""
        told = [_told(row) for row in rows if row.kind == "answer"]
        said = [row.detail() for row in rows if row.kind == "status"]
        for row in rows:
            if row.kind == "warning":
                self.observers.on_warning(row.query, row.at, row.data.decode())
        for one in said:
            if "new" in one:
                self._changed(one["new"], one["dropped"])
        for sink in self._sinks:
            sink.write(batch, told)
        self._letters.write_rows(batch, [row for row in rows if row.kind in ("malformed", "late", "ahead")])
        for row in rows:
            if row.kind == "failure":
                self._failed(row)
        for one in said:
            if "new" not in one:
                self.progress.status = one
                if one["ended"] or one["done"]:
                    self.over_at = batch
        self.observers.on_progress(self.progress)

    def _failed(self, row: CellRow) -> None:
        said = row.detail()
        failure = checkpoint.unpack_error(said["diagnostics"], said["text"], said["file_name"])
        if failure not in self.failures:
            self.failures.append(failure)
            self.observers.on_failure(failure)

    def _changed(self, new: Sequence[str], dropped: Sequence[str]) -> None:
        for name in dropped:
            if name not in new:
                self.observers.on_note(f"query {name} is gone")
        for name in new:
            what = "has changed" if name in dropped else "is new"
            self.observers.on_note(f"query {name} {what}: it starts from what the windows hold")

    @property
    def is_over(self) -> bool:
        """Whether the last batch of the run has been committed."""
        return self.over_at is not None and self.progress.batch >= self.over_at


def _told(row: CellRow) -> RenderedAnswer:
    return RenderedAnswer(row.query, row.number, row.at, row.rows, row.json, row.csv, row.typed)
