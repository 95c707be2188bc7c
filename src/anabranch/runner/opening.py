"""An open run: its folder, its receivers, its streams and its sinks.

Invariant: whatever ends the block, receivers are stopped and the folder is closed, so that the same call goes on from
the checkpoint. The log of a run that failed in a temporary folder is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from anabranch.engine.compiled import columns_of, prefixes_of
from anabranch.errors import EngineError
from anabranch.runner.folder import RunFolder
from anabranch.runner.job import Job, forms_of, keep_order, may_correct
from anabranch.runner.letters import LetterFiles
from anabranch.runner.outlet import Observers
from anabranch.runner.receiving import Receivers
from anabranch.runner.run import MakeRun, Run
from anabranch.runner.spec import RunSpec
from anabranch.sinks.base import Sink
from anabranch.sinks.open import open_sink
from anabranch.sources.stream_specs import open_stream


@dataclass(frozen=True, slots=True)
class OpenedRun:
    job: Job
    folder: RunFolder
    letters: LetterFiles
    run: Run
    _receivers: Receivers

    @property
    def is_finished(self) -> bool:
        """Whether an earlier run from this folder has answered the whole input."""
        return self.folder.finished(self.job.fingerprint)

    def carry(
        self, should_stop: Callable[[], bool] = lambda: False, on_trouble: Callable[[str], None] = lambda text: None
    ) -> None:
        """Run to the end of the input, or until told to stop; `on_trouble` receives problems that keep a peer from
        answering.
        """
        if self.is_finished:
            return
        self._receivers.start()

        def is_over() -> bool:
            self._receivers.raise_error()
            for trouble in self._receivers.troubles():
                on_trouble(trouble)
            return should_stop()

        self.run.run(is_over)


@contextmanager
def open_run(
    spec: RunSpec, sinks: Sequence[Sink | str], make_run: MakeRun, observers: Observers | None = None
) -> Iterator[OpenedRun]:
    """Check and open the run of a spec. `sinks` are sinks or their addresses."""
    spec.check()
    options = spec.options
    if options.engine == "spark" and options.checkpoint is None and not options.master.startswith("local"):
        raise EngineError("a run on a cluster needs a checkpoint: a folder that all workers can reach")
    folder = RunFolder(options.checkpoint)
    folder.open()
    receivers = Receivers(folder, options.follow)
    failed = True
    try:
        streams = tuple(open_stream(one, receivers.open) for one in spec.streams)
        corrects = may_correct(options.late, streams, {one.name: options.timing for one in streams})
        columns, prefixes = columns_of(spec.queries), prefixes_of(spec.queries)
        opened = [open_sink(one, columns, corrects, prefixes) if isinstance(one, str) else one for one in sinks]
        job = Job(
            streams,
            spec.queries,
            options,
            graphs=spec.graphs,
            graph_files=spec.graph_files,
            forms=forms_of(opened),
            ordered=keep_order(streams),
        )
        folder.check(job)
        letters = LetterFiles(options.dead_letter)
        yield OpenedRun(job, folder, letters, make_run(job, folder, opened, letters, observers), receivers)
        failed = False
    finally:
        receivers.stop()
        folder.close(keep=failed and folder.log.exists() and folder.log.stat().st_size > 0)
