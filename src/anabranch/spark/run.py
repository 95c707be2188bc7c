"""One run of a job on Spark: starts the query and passes its batches to the sinks, until its input ends.

    source of all streams -> chunks -> groupBy(cell).transformWithState -> rows of a batch -> sinks

Spark itself retries the task of a worker that dies. A batch that fails for other reasons, such as a planner that was
killed, is started again from the checkpoint a few times, with pauses.

Invariant: a batch is committed after every sink has it; Anabranch's own errors are raised unchanged, Spark's errors
with the path of its log.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from anabranch.errors import AnabranchError, EngineError, InternalError, StreamError
from anabranch.runner.folder import RunFolder
from anabranch.runner.job import Job, save_job
from anabranch.runner.letters import LetterFiles
from anabranch.runner.outlet import Observers
from anabranch.runner.rows import TOLD_SCHEMA, told_rows
from anabranch.runner.run import Run
from anabranch.runner.source_settings import OPTION
from anabranch.sinks.base import Sink
from anabranch.spark import session as spark_session
from anabranch.spark.processor import CellProcessor
from anabranch.spark.session import RunningSpark, SparkSettings
from anabranch.spark.source import FORMAT, AnabranchSource

_POLL = 0.05  # seconds between two looks at a running query
_STARTS = 5  # in a row that bring no batch, for reasons that are not ours
_PAUSE = 0.5


_RAISED = re.compile(
    r"^anabranch\.\S+\.(EngineError|StreamError|FileSystemError|FileGoneError|InternalError): (.*)(\nhint: .*)?",
    re.MULTILINE,
)
_CAUSE = re.compile(r"^(?:Caused by)?: [\w.$]+: (.*\S)", re.MULTILINE)
_STATE = "[CANNOT_LOAD_STATE_STORE"
_PYTHON_ERROR = re.compile(r"[A-Za-z_.]+(Error|Exception): .")


@dataclass(frozen=True, slots=True)
class Failed:
    """A failure that Spark reports, and whether it is one of our own that no second try would mend."""

    error: AnabranchError
    is_ours: bool


class SparkRun(Run):
    """A run on Spark: in a session of its own with these `settings`, or in one that is `running` already."""

    engine = "spark"

    def __init__(
        self,
        job: Job,
        folder: RunFolder,
        sinks: Sequence[Sink],
        letters: LetterFiles,
        observers: Observers | None = None,
        settings: SparkSettings | None = None,
        running: RunningSpark | None = None,
    ) -> None:
        super().__init__(job, folder, sinks, letters, observers)
        self._settings = settings or SparkSettings()
        self._running = running
        self._error: BaseException | None = None

    def _carry(self, should_stop: Callable[[], bool]) -> None:
        # The sinks are open by now: their refusals are reported before Spark takes its seconds to start.
        if self._running is not None:
            self._supervise(self._running, should_stop)
            return
        running = spark_session.start(self._settings, self._folder.scratch, self._folder.log)
        try:
            self._folder.note_jvm(running.jvm_pid)
            self._supervise(running, should_stop)
        finally:
            spark_session.stop(running)

    @contextmanager
    def _mourning(self, running: RunningSpark, should_stop: Callable[[], bool]) -> Iterator[None]:
        """Replace the errors of calls to a dead Java process by one report of its death.

        There is no report when the process was ended because the run is to stop.
        """
        try:
            yield
        except (Py4JError, PySparkException, OSError, EOFError) as error:
            if self._error is not None:
                raise
            if not running.is_dead:
                if isinstance(error, Py4JJavaError):
                    raise self._spark_failed(_spoken(error)).error from None
                raise
            if not should_stop():
                raise running.death() from None

    def _supervise(self, running: RunningSpark, should_stop: Callable[[], bool]) -> None:
        with self._mourning(running, should_stop):
            self._retry(running, should_stop)

    def _retry(self, running: RunningSpark, should_stop: Callable[[], bool]) -> None:
        job_file = self._send_job(running)
        running.session.dataSource.register(AnabranchSource)
        vain = 0  # starts that brought no batch
        while True:
            batch = self.progress.batch
            query: StreamingQuery | None = None
            try:
                query = self._start(running.session, job_file)
                self._watch(query, should_stop)
                return
            except PySparkException as error:
                if self._error is not None:
                    raise self._error from None
                failed = self._spark_failed(str(error))
                vain = 0 if self.progress.batch > batch else vain + 1
                if running.has_ended:
                    raise
                if vain == _STARTS or not isinstance(error, StreamingQueryException) or failed.is_ours:
                    raise failed.error from None
            finally:
                if query is not None:
                    query.stop()
            self.progress.restarts += 1
            self._outlet.observers.on_note("a batch failed for reasons of Spark's; going on from the checkpoint")
            time.sleep(_PAUSE * 2**vain)

    # --- the query ------------------------------------------------------------------------------------------------

    def _send_job(self, running: RunningSpark) -> tuple[str, str]:
        """Send the job's file to the workers; return its name and its digest."""
        # Executors that come later ask for every file that the session was given: it outlives this run.
        path = running.scratch / f"job-{time.time_ns()}.bin"
        digest = save_job(self._job, path)
        running.session.sparkContext.addFile(str(path))
        return path.name, digest

    def _start(self, session: SparkSession, job_file: tuple[str, str]) -> StreamingQuery:
        settings = self._source_settings(2 * session.sparkContext.defaultParallelism, links=True)
        packed = session.readStream.format(FORMAT).option(OPTION, settings.to_option()).load()
        told = packed.groupBy("cell").transformWithState(
            CellProcessor(*job_file, f"{self._folder.path}#{job_file[0]}"), TOLD_SCHEMA, "Update", "None"
        )
        return (
            told.writeStream.outputMode("update")
            .option("checkpointLocation", str(self._folder.spark))
            .foreachBatch(self._batch)
            .start()
        )

    def _watch(self, query: StreamingQuery, should_stop: Callable[[], bool]) -> None:
        while not query.awaitTermination(_POLL):  # type: ignore[arg-type]  # seconds, also parts of one
            self._look_at(query)
            if self._outlet.is_over or should_stop():
                query.stop()
                return

    def _look_at(self, query: StreamingQuery) -> None:
        said = query.lastProgress
        if said is None or said["batchId"] <= self.progress.batch:
            return
        self.progress.batch = said["batchId"]
        self.progress.batch_seconds = said["durationMs"].get("triggerExecution", 0) / 1000
        offset = said["sources"][0]["endOffset"]
        self.progress.offset = json.loads(offset) if isinstance(offset, str) else offset or {}
        self.progress.state_bytes = sum(one["memoryUsedBytes"] for one in said["stateOperators"])
        self._outlet.observers.on_progress(self.progress)

    # --- one batch ------------------------------------------------------------------------------------------------

    def _batch(self, frame: DataFrame, batch: int) -> None:
        try:
            self._outlet.take(told_rows(frame.toArrow()), batch)
        except BaseException as error:
            if isinstance(error, AnabranchError | OSError):
                self._error = error
            raise

    # --- failures -------------------------------------------------------------------------------------------------

    def _spark_failed(self, text: str) -> Failed:
        with self._folder.log.open("a") as log:
            log.write(f"{text}\n")
        return failure(text, self._folder.path, self._folder.log)


def _spoken(error: Py4JJavaError) -> str:
    """What Java says of an error, for which it is asked."""
    try:
        return str(error)
    except Exception:
        return "its Java process does not say why"


def failure(text: str, checkpoint: Path, log: Path) -> Failed:
    """What Spark says of a failure, in a sentence."""
    found = _RAISED.search(text)
    if found is not None:
        kind, message, hint = found.groups()
        ours = {"InternalError": InternalError, "EngineError": EngineError}.get(kind, StreamError)
        return Failed(ours(message + (hint or "")), is_ours=True)
    causes = _CAUSE.findall(text)
    if _STATE in text and causes:
        said = (
            f"Spark cannot load the state of the checkpoint {checkpoint}: {causes[-1]}\n"
            "hint: if its files are damaged, take the folder from a copy, or begin again in another folder; "
            f"Spark's log is {log}"
        )
        return Failed(EngineError(said), is_ours=False)
    raised = [line for line in text.splitlines() if _PYTHON_ERROR.match(line)]
    first = (text.strip().splitlines() or ["it gives no reason"])[0]
    what = (raised or causes or [first.rpartition("terminated with exception: ")[2]])[-1]
    return Failed(EngineError(f"Spark gave up: {what}\nhint: its log is {log}"), is_ours=False)
