"""The carrier: the thread that runs a session's job, and restarts it between two batches when the job changes.

Changes that follow each other closely cause one restart: the thread waits until a tenth of a second has passed without
a change. All sessions of a server share one Spark, which starts when the first session needs it.

Invariant: a restart begins at the checkpoint of the last complete batch, so a change of queries loses and repeats
nothing. An error ends the run; the session keeps the error until it is changed or started again.
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from anabranch.errors import AnabranchError, EngineError
from anabranch.runner.folder import RunFolder
from anabranch.runner.job import Job
from anabranch.runner.letters import LetterFiles
from anabranch.runner.outlet import Observers
from anabranch.server.catalogue import Wish
from anabranch.server.problems import error_dict
from anabranch.sinks.base import Sink
from anabranch.sources.private import private_folder

if TYPE_CHECKING:  # the local engine must not load pyspark
    from anabranch.spark.session import RunningSpark, SparkSettings

EngineKind: TypeAlias = Literal["spark", "local"]
DEBOUNCE = 0.1  # seconds without a change before a run is restarted

_log = logging.getLogger("anabranch.server")


@dataclass(frozen=True, slots=True)
class Load:
    """One run: a job with its sinks, letter files and observers."""

    job: Job
    sinks: Sequence[Sink]
    letters: LetterFiles
    observers: Observers
    raise_error: Callable[[], None] = lambda: None
    """Raises what ended a receiver, which ends the run."""


class SharedSpark:
    """The one Spark of a server, in a folder of its own."""

    def __init__(self, folder: Path, settings: SparkSettings | None = None) -> None:
        self._folder = folder
        self._settings = settings
        self._lock = threading.Lock()
        self._running: RunningSpark | None = None
        self._is_over = False

    def get(self) -> RunningSpark:
        from anabranch.spark import session

        with self._lock:
            if self._is_over:
                raise EngineError("the server is stopping")
            if self._running is not None and self._running.has_ended:  # restarted sessions get a new one
                session.stop(self._running)
                self._running = None
            if self._running is None:
                scratch = self._folder / "scratch"
                private_folder(scratch)
                settings = self._settings or session.SparkSettings()
                self._running = session.start(settings, scratch, self._folder / "spark.log")
            return self._running

    @property
    def is_up(self) -> bool:
        return self._running is not None

    def try_to_start(self) -> None:
        with suppress(Exception):
            self.get()

    def stop(self) -> None:
        from anabranch.spark import session

        with self._lock:
            self._is_over = True
            if self._running is not None:
                session.stop(self._running)
                self._running = None
            shutil.rmtree(self._folder / "scratch", ignore_errors=True)


class Carrier:
    """The thread that runs a session. It calls `prepare` for the load to run now; None means that there is nothing to
    run."""

    def __init__(
        self, name: str, folder: RunFolder, prepare: Callable[[], Load | None], wish: Wish, spark: SharedSpark | None
    ) -> None:
        self._folder = folder
        self._prepare = prepare
        self._spark = spark
        self._condition = threading.Condition()
        self._wish: Wish = wish
        self._version = 1
        self._answered = 0  # the last version whose run ended by itself or had nothing to do
        self._changed_at = 0.0
        self._running_version = 0
        self._closing = False
        self._is_held = False
        self._is_carrying = False
        self._error: dict[str, Any] | None = None
        self._ended = False
        self._thread = threading.Thread(target=self._carry, name=f"session {name}", daemon=True)

    # --- called by other threads ----------------------------------------------------------------------------------

    def start(self) -> None:
        self._thread.start()

    @property
    def wish(self) -> Wish:
        return self._wish

    @property
    def error(self) -> dict[str, Any] | None:
        return self._error

    @property
    def ended(self) -> bool:
        """Whether the run has reached the end of its input, and nothing has changed since."""
        return self._ended

    @property
    def is_carrying(self) -> bool:
        """Whether a run is in progress."""
        return self._is_carrying

    @property
    def is_starting(self) -> bool:
        """Whether the run waits for Spark to start."""
        return self._is_carrying and self._spark is not None and not self._spark.is_up

    def set_wish(self, wish: Wish) -> None:
        with self._condition:
            if wish == "running" and (self._wish != wish or self._error is not None):
                self._change()
            self._wish = wish
            self._condition.notify_all()

    def changed(self) -> None:
        """Request a restart: the job has changed."""
        with self._condition:
            self._change()
            self._condition.notify_all()

    def _change(self) -> None:
        self._version += 1
        self._changed_at = time.monotonic()
        self._error = None
        self._ended = False

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the run: no batch runs inside of the `with` block, and the run restarts after it."""
        with self._condition:
            self._is_held = True
            self._condition.wait_for(lambda: not self._is_carrying)
        try:
            yield
        finally:
            with self._condition:
                self._is_held = False
                self._change()
                self._condition.notify_all()

    def close(self) -> None:
        with self._condition:
            self._closing = True
            self._condition.notify_all()
        if self._thread.is_alive():
            self._thread.join()

    def settle(self, seconds: float = 10.0) -> bool:
        """Wait until the run has the last change, or has stopped; returns whether it did in time."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with self._condition:
                if self._wish != "running":
                    settled = not self._is_carrying
                else:
                    settled = self._version in (self._answered, self._running_version)
            if settled:
                return True
            time.sleep(0.01)
        return False

    # --- the thread -----------------------------------------------------------------------------------------------

    def _carry(self) -> None:
        while True:
            with self._condition:
                while not self._closing and (
                    self._is_held or self._wish != "running" or self._answered == self._version
                ):
                    self._condition.wait()
                if self._closing:
                    return
                pause = self._changed_at + DEBOUNCE - time.monotonic()
                if pause > 0:
                    self._condition.wait(pause)
                    continue
                version = self._version
                self._is_carrying = True
            self._run(version)

    def _run(self, version: int) -> None:
        def should_stop() -> bool:
            if self._closing or self._is_held or self._wish != "running":
                return True
            return self._version != version and time.monotonic() >= self._changed_at + DEBOUNCE

        error: dict[str, Any] | None = None
        ended = nothing = False
        try:
            load = self._prepare()
            nothing = load is None
            if load is not None:
                self._running_version = version
                self._through(load, should_stop)
                ended = not should_stop()
        except AnabranchError as found:
            error = error_dict(found)
        except Exception as found:
            _log.exception("the run of a session broke")
            error = error_dict(found)
        with self._condition:
            self._is_carrying = False
            self._running_version = 0
            self._condition.notify_all()
            if self._version == version and (error is not None or ended or nothing):
                self._answered, self._error, self._ended = version, error, ended

    def _through(self, load: Load, is_over: Callable[[], bool]) -> None:
        def should_stop() -> bool:
            load.raise_error()
            return is_over()

        if self._folder.finished(load.job.fingerprint):  # finished before a restart, or before a change without effect
            return
        if self._spark is None:
            from anabranch.runner.inprocess import InProcessRun

            InProcessRun(load.job, self._folder, load.sinks, load.letters, load.observers).run(should_stop)
            return
        from anabranch.spark.run import SparkRun

        running = self._spark.get()
        self._folder.note_jvm(running.jvm_pid)
        SparkRun(load.job, self._folder, load.sinks, load.letters, load.observers, running=running).run(should_stop)
