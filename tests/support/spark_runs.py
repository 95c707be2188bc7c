"""Jobs on the tests' Spark session: streams as files, answers as lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from anabranch.formats.ndjson import write_ndjson
from anabranch.model.event import Event
from anabranch.runner.folder import RunFolder
from anabranch.runner.job import Job
from anabranch.runner.letters import LetterFiles
from anabranch.runner.outlet import Observers
from anabranch.sinks.base import Ledger, RenderedAnswer, Sink
from anabranch.sources.base import Source
from anabranch.sources.files import FileSource
from anabranch.spark.run import SparkRun
from anabranch.spark.session import RunningSpark


class Lines(Sink):
    """Keeps what it is told, by batch."""

    forms = ("json", "typed")

    def __init__(self) -> None:
        self.batches: dict[int, list[RenderedAnswer]] = {}

    def open(self, ledger: Ledger) -> None:
        pass

    def write(self, batch: int, answers: Sequence[RenderedAnswer]) -> None:
        self.batches[batch] = list(answers)

    @property
    def told(self) -> list[RenderedAnswer]:
        return [told for _, answers in sorted(self.batches.items()) for told in answers]

    @property
    def text(self) -> bytes:
        return b"".join(told.json for told in self.told)


@dataclass
class Runner:
    running: RunningSpark
    path: Path
    notes: list[str] = field(default_factory=list)

    def write(self, streams: Mapping[str, Sequence[Event]], files: int = 1) -> dict[str, Source]:
        """The streams as files, each cut into so many."""
        sources: dict[str, Source] = {}
        for name, events in streams.items():
            folder = self.path / quote(name, safe="")
            folder.mkdir(exist_ok=True)
            size = max(1, -(-len(events) // files))
            for number in range(files):
                with (folder / f"{number:04}.ndjson").open("wb") as file:
                    write_ndjson(events[number * size : (number + 1) * size], file)
            sources[name] = FileSource(name, str(folder))
        return sources

    def run(
        self,
        job: Job,
        checkpoint: str | None = None,
        should_stop: Callable[[], bool] = lambda: False,
        sinks: Sequence[Sink] = (),
    ) -> tuple[Lines, SparkRun]:
        """Run a job to its end in a folder of its own; gives what it told."""
        lines = Lines()
        folder = RunFolder(str(self.path / (checkpoint or "checkpoint")))
        folder.open()
        try:
            folder.check(job)
            letters = LetterFiles(str(self.path / "dead.ndjson"))
            observers = Observers(on_note=self.notes.append)
            run = SparkRun(job, folder, [lines, *sinks], letters, observers, running=self.running)
            if not folder.finished(job.fingerprint):
                run.run(should_stop)
        finally:
            folder.close()
        return lines, run
