"""One run of a job: passes its batches to the sinks, until its input ends or it is told to stop.

A carrier is a subclass: `InProcessRun` processes the batches in this process, `SparkRun` on Spark. The sinks, the dead
letters and the observers receive the same from both.

Invariant: a batch is committed after every sink has it; whatever ends the run, its sinks are closed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, Protocol

from anabranch.errors import QueryError
from anabranch.runner.folder import RunFolder
from anabranch.runner.job import Job
from anabranch.runner.letters import LetterFiles
from anabranch.runner.options import EngineName
from anabranch.runner.outlet import Observers, Outlet, RunProgress
from anabranch.runner.refreshing import refresh_settings
from anabranch.runner.source_settings import SourceSettings
from anabranch.sinks.base import Sink
from anabranch.sources.base import Limit


class Run(ABC):
    engine: ClassVar[EngineName]
    batch_size: ClassVar[int] = Limit().size  # bytes that a batch reads of one stream, at most

    def __init__(
        self,
        job: Job,
        folder: RunFolder,
        sinks: Sequence[Sink],
        letters: LetterFiles,
        observers: Observers | None = None,
    ) -> None:
        self._job = job
        self._folder = folder
        self._outlet = Outlet(sinks, letters, observers)

    @property
    def progress(self) -> RunProgress:
        return self._outlet.progress

    @property
    def failures(self) -> list[QueryError]:
        return self._outlet.failures

    def run(self, should_stop: Callable[[], bool] = lambda: False) -> None:
        """Run to the end of the input, or until told to stop. The folder is open."""
        self._folder.refuse_other_engine(self.engine)
        with self._outlet.opened(self._folder.ledger()):
            self._carry(should_stop)

    @abstractmethod
    def _carry(self, should_stop: Callable[[], bool]) -> None:
        """Process batches until the outlet is over, or until told to stop. The sinks are open."""

    def _source_settings(self, tasks: int = 1, links: bool = False) -> SourceSettings:
        job, options = self._job, self._job.options
        return SourceSettings(
            job.streams,
            job.fingerprint,
            Limit(options.batch_events, self.batch_size),
            job.timings(),
            refresh_settings(job.graph_files, options.refresh, self._folder.path / "graphs"),
            tasks,
            job.link_streams() if links else {},
            job.clocks(),
        )


class MakeRun(Protocol):
    """Makes the run of a job: a carrier, with its own settings filled in."""

    def __call__(
        self, job: Job, folder: RunFolder, sinks: Sequence[Sink], letters: LetterFiles, observers: Observers | None
    ) -> Run: ...
