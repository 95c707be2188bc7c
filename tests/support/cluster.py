"""A Spark cluster for tests: a standalone master and workers on this machine, from the pyspark that is installed.

Everything binds to 127.0.0.1 on free ports, and everything that Spark writes lies in the folder that the cluster was
given. Executors are children of their worker: they come and go with the applications.

Invariant: when the `with` block ends, no process that the cluster started, nor a child of one, is left.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pyspark

_HOME = Path(pyspark.__path__[0])
_PATIENCE = 180.0  # seconds for a daemon to come up on a busy machine
QUICK = "-XX:-UsePerfData -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
_MASTER = re.compile(r"Starting Spark master at (spark://\S+?:\d+)")
_REGISTERED = re.compile(r"Successfully registered with master")
_EXECUTOR = "CoarseGrainedExecutorBackend"
_STATE = "StateStoreId"  # a part of the names of the folders in which an executor keeps its state stores


@dataclass(slots=True)
class SparkCluster:
    """A running cluster. `url` is what `--master` takes."""

    folder: Path
    url: str = ""
    _master: subprocess.Popen[bytes] | None = None
    _workers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _started: int = 0

    @property
    def worker_pids(self) -> list[int]:
        """The workers that are alive."""
        return [worker.pid for worker in self._workers if worker.poll() is None]

    def executors_of(self, worker_pid: int) -> list[psutil.Process]:
        """The executors that a worker has started and that are alive."""
        with suppress(psutil.NoSuchProcess):
            return [child for child in psutil.Process(worker_pid).children(recursive=True) if _is_executor(child)]
        return []

    @property
    def executors(self) -> list[psutil.Process]:
        return [executor for worker in self.worker_pids for executor in self.executors_of(worker)]

    def bring_to(self, workers: int) -> None:
        """Start workers until there are so many: those that a test has killed are replaced."""
        new = [self._start_worker() for _ in range(workers - len(self.worker_pids))]
        for worker, log in new:
            _said(log, _REGISTERED, worker)

    @contextmanager
    def running(self) -> Iterator[SparkCluster]:
        try:
            self._master, log = self._spawn("master", "org.apache.spark.deploy.master.Master", "--port", "0")
            self.url = _said(log, _MASTER, self._master)[1]
            yield self
        finally:
            self._end()

    def _start_worker(self) -> tuple[subprocess.Popen[bytes], Path]:
        self._started += 1
        name = f"worker-{self._started}"
        worker, log = self._spawn(
            name,
            "org.apache.spark.deploy.worker.Worker",
            *("--cores", "1", "--memory", "1g", "--work-dir", str(self.folder / name / "work"), self.url),
        )
        self._workers.append(worker)
        return worker, log

    def _spawn(self, name: str, what: str, *more: str) -> tuple[subprocess.Popen[bytes], Path]:
        """A daemon with its own temporary folder; `spark-class` turns into the Java process, so the pid is Java's."""
        scratch = self.folder / name / "tmp"
        scratch.mkdir(parents=True)
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))},
            "SPARK_HOME": str(_HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(scratch),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",  # its port would be a fixed one
            "TMPDIR": str(scratch),
            # Executors inherit it, and so their unpacked libraries do not stay in /tmp when they are killed.
            "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={scratch} {QUICK}",
        }
        log = self.folder / f"{name}.log"
        command = [str(_HOME / "bin" / "spark-class"), what, "--host", "127.0.0.1", "--webui-port", "0", *more]
        with log.open("wb") as talk:
            started = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=talk, stderr=talk, env=environment, cwd=self.folder
            )
        return started, log

    def _end(self) -> None:
        started = [*self._workers, *([self._master] if self._master is not None else [])]
        family: list[psutil.Process] = []
        for process in started:
            with suppress(psutil.NoSuchProcess):
                family += psutil.Process(process.pid).children(recursive=True)
            process.terminate()
        for process in started:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        _, alive = psutil.wait_procs(family, 20)
        for child in alive:
            with suppress(psutil.NoSuchProcess):
                child.kill()
        psutil.wait_procs(alive, 20)


def holds_state(executor: psutil.Process) -> bool:
    """Whether an executor keeps a state store."""
    try:
        return any(_STATE in file.path for file in executor.open_files())
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False


@contextmanager
def spark_cluster(folder: Path, workers: int = 2) -> Iterator[SparkCluster]:
    """A master with workers of one core and one gigabyte each, for as long as the block runs."""
    folder.mkdir(parents=True, exist_ok=True)
    with SparkCluster(folder).running() as cluster:
        cluster.bring_to(workers)
        yield cluster


def _is_executor(process: psutil.Process) -> bool:
    try:
        return any(_EXECUTOR in part for part in process.cmdline())
    except psutil.NoSuchProcess:
        return False


def _said(log: Path, pattern: re.Pattern[str], daemon: subprocess.Popen[bytes]) -> re.Match[str]:
    """What a daemon says in its log, once it says it."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        text = log.read_text(errors="replace")
        found = pattern.search(text)
        if found is not None:
            return found
        assert daemon.poll() is None, f"{log.stem} ended:\n{text[-2000:]}"
        assert time.monotonic() < deadline, f"{log.stem} did not come up:\n{text[-2000:]}"
        time.sleep(0.05)
