"""The Spark session: settings that make it quiet, quick to start, and clean at its end.

Invariant: everything that Spark writes besides checkpoints lies in the run's scratch folder, its output in a log.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from anabranch.errors import EngineError
from anabranch.runner.processes import children_of, end_processes
from anabranch.sources.private import private_umask
from anabranch.spark.java import require_java

_PATIENCE = 20.0  # seconds for a JVM to end by itself
_DYING = 2.0  # seconds from a broken connection to the end of the process behind it
# Of a task whose worker died, which Spark's local mode would not try again. A killed daemon leaves idle workers behind,
# each of which costs a try.
_RETRIES = 8

_LOG4J = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss.SSS} %p %c{1}: %m%n%ex
"""


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """The settings of a Spark session. `conf` are the user's own Spark properties; they win over ours."""

    master: str = "local[*]"
    cells: int = 1
    conf: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_local(self) -> bool:
        return self.master.startswith("local")


def properties(settings: SparkSettings, scratch: Path) -> dict[str, str]:
    """Return the Spark properties of a run with this scratch folder."""
    java = [
        f"-Djava.io.tmpdir={scratch}",
        f"-Dlog4j2.configurationFile={(scratch / 'log4j2.properties').as_uri()}",
        "-XX:-UsePerfData",
    ]
    if settings.is_local:
        # One short-lived JVM: the quick compiler and the collector without threads start sooner.
        java += ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
    found = {
        "spark.master": _with_retries(settings.master),
        "spark.app.name": "anabranch",
        "spark.local.dir": str(scratch),
        "spark.driver.extraJavaOptions": " ".join(java),
        "spark.driver.host": "127.0.0.1" if settings.is_local else "",
        "spark.driver.bindAddress": "127.0.0.1" if settings.is_local else "",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.python.daemon.module": "anabranch.spark.daemon",
        "spark.sql.shuffle.partitions": str(settings.cells),
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.streaming.minBatchesToRetain": "4",
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "64",
        # Spark tells it to the workers that read sources and not to the stateful ones. That keeps the two apart: a cell
        # comes back to the worker that holds its engine, and is not dealt out among the readers.
        "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "true",
        "spark.task.maxFailures": str(_RETRIES),
        # A worker uses the memory of one chunk for the next. Left to itself, glibc would give large arrays back and
        # have them come in again page by page: a tenth of the time of reading.
        "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": str(32 << 20),
        "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": str(256 << 20),
    }
    found.update(settings.conf)
    return {key: value for key, value in found.items() if value}


def _with_retries(master: str) -> str:
    """Return `local[2]` as `local[2,8]`: a task whose worker was killed is tried again."""
    if master == "local":
        master = "local[1]"
    if master.startswith("local[") and "," not in master:
        return f"{master[:-1]},{_RETRIES}]"
    return master


@dataclass(slots=True)
class RunningSpark:
    """A running session. `scratch` exists as long as the session does; `log` has the output of the Java process."""

    session: SparkSession
    jvm_pid: int | None
    scratch: Path
    log: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def is_dead(self) -> bool:
        """Whether the Java process has ended, or is about to: its connections break first."""
        if self.process is not None:
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(_DYING)
        return self.has_ended

    @property
    def has_ended(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    def death(self) -> EngineError:
        """Return the error for a Java process that has ended."""
        return _death(None if self.process is None else self.process.poll(), self.log)


def _death(code: int | None, log: Path) -> EngineError:
    how = "has ended" if code is None else f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
    return EngineError(
        f"Spark's Java process {how}; what was committed stays\n"
        "hint: a session that is started again goes on, as does the same command with --checkpoint; memory may have "
        f"run out; its log is {log}"
    )


def start(settings: SparkSettings, scratch: Path, log: Path) -> RunningSpark:
    """Start a session with its own JVM, whose output goes to the log."""
    require_java()
    (scratch / "log4j2.properties").write_text(_LOG4J)
    conf = SparkConf(loadDefaults=False).setAll(list(properties(settings, scratch).items()))
    if SparkContext._active_spark_context is not None:
        raise EngineError("a Spark session is running in this process already; stop it first")
    # Spark reads the Python of its workers from the environment, not from its properties.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    environment = {"TMPDIR": str(scratch), "SPARK_LOCAL_DIRS": str(scratch)}
    if settings.is_local and "SPARK_HOME" not in os.environ:
        environment["SPARK_HOME"] = str(_home(scratch))
    _hush_py4j()
    before = set(children_of(os.getpid()))
    gateway: Any = None
    try:
        with private_umask(), log.open("ab") as talk, _environment(**environment):
            gateway = launch_gateway(conf, {"stdout": talk, "stderr": talk})  # type: ignore[no-untyped-call]
        with _own_interrupts():
            context = SparkContext(gateway=gateway, conf=conf)
        _say_nothing(context)
        _beside(lambda: context.parallelize([0], 1).count())  # starts the cell's workers
        session = SparkSession(context)
    except BaseException as error:  # also an interrupt leaves no process behind
        death = _death_at_start(error, getattr(gateway, "proc", None), log)
        end_processes(set(children_of(os.getpid())) - before)
        _forget_gateway()
        if death is not None:
            raise death from None
        raise
    _beside(lambda: session.range(1, numPartitions=1).mapInArrow(_same, "id long").toArrow())  # and the readers'
    _know_no_other_sources(context)
    process = getattr(gateway, "proc", None)
    return RunningSpark(session, None if process is None else process.pid, scratch, log, process)


def _death_at_start(error: BaseException, process: subprocess.Popen[bytes] | None, log: Path) -> EngineError | None:
    """Return the error for a Java process that ended while Spark was starting; None when it has not ended."""
    if isinstance(error, PySparkRuntimeError) and error.getCondition() == "JAVA_GATEWAY_EXITED":
        return _death(None, log)
    if process is None or not isinstance(error, Exception):
        return None
    with suppress(subprocess.TimeoutExpired):
        return _death(process.wait(_DYING), log)
    return None


def _hush_py4j() -> None:
    """Silence py4j's logging: callers report their own errors, and py4j would log them a second time."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
    logging.getLogger().addFilter(_is_not_of_py4j)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return record.module not in ("java_gateway", "clientserver")


def _say_nothing(context: SparkContext) -> None:
    """Silence the unused accumulator server, which would print a traceback when its connection ends."""
    with suppress(AttributeError):
        server: Any = context._accumulatorServer
        server.handle_error = lambda request, client: None


def _forget_gateway() -> None:
    """Forget the Java gateway, so that the next session starts its own Java process."""
    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkContext._active_spark_context = None
    # Spark would give the session of a dead Java process to every batch of the next one.
    SparkSession._instantiatedSession = None
    SparkSession._activeSession = None


def _beside(job: Callable[[], object]) -> None:
    """Run a job as a warm-up, while the first query is being planned."""

    def run() -> None:
        with suppress(Exception):  # the session may be stopped meanwhile
            job()

    threading.Thread(target=run, name="warm-up", daemon=True).start()


def _know_no_other_sources(context: SparkContext) -> None:
    """Tell Spark that no other Python sources are installed.

    Before the first Python source is registered, Spark searches all installed packages for others in a Python process,
    which takes seconds. Where Spark does not let us skip it, it searches.
    """
    with suppress(Exception):
        jvm: Any = context._jvm
        manager = getattr(getattr(jvm.org.apache.spark.sql.execution.datasources, "DataSourceManager$"), "MODULE$")
        getattr(manager, "dataSourceBuilders_$eq")(jvm.scala.Some(jvm.PythonUtils.toScalaMap({})))


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def _home(scratch: Path) -> Path:
    """Make a Spark home of links, without Spark's archives of Python code.

    Workers then load the same code, compiled, from where it is installed, which takes half the time.
    """
    home = scratch / "home"
    shutil.rmtree(home, ignore_errors=True)  # of a start that failed
    home.mkdir()
    for entry in Path(pyspark.__path__[0]).iterdir():
        if entry.name in ("bin", "jars", "sbin"):
            (home / entry.name).symlink_to(entry)
    return home


def stop(running: RunningSpark) -> None:
    """End the session and its JVM, and wait until the JVM has gone."""
    gateway = running.session.sparkContext._gateway
    process = running.process
    try:
        if not running.has_ended:
            with warnings.catch_warnings():  # it may be ended while it stops
                warnings.simplefilter("ignore", RuntimeWarning)
                running.session.stop()
    except (Py4JError, OSError):
        if not running.is_dead:
            raise
    finally:
        _forget_gateway()
        if gateway is not None:
            gateway.shutdown()
        if process is not None:
            with suppress(OSError):
                process.stdin.close()  # type: ignore[union-attr]  # it is a pipe
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Restore our handler of Ctrl-C at the end: Spark sets its own, which would drop the running batch."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _environment(**values: str) -> Iterator[None]:
    """Set environment variables for the processes that are started inside the block."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
