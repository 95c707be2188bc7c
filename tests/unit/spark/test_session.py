"""The properties that a session is started with, and a Java process that ends meanwhile."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkRuntimeError

from anabranch.errors import EngineError
from anabranch.spark import session
from anabranch.spark.session import SparkSettings, properties


@pytest.mark.parametrize(
    ("master", "meant"),
    [
        ("local[*]", "local[*,8]"),
        ("local[2]", "local[2,8]"),
        ("local", "local[1,8]"),
        ("local[2,1]", "local[2,1]"),
        ("spark://host:7077", "spark://host:7077"),
    ],
)
def test_a_local_master_tries_a_task_again_whose_worker_was_killed(master: str, meant: str) -> None:
    assert properties(SparkSettings(master), Path("/x"))["spark.master"] == meant


def test_a_property_of_the_user_wins() -> None:
    found = properties(SparkSettings(conf={"spark.ui.enabled": "true"}), Path("/x"))
    assert found["spark.ui.enabled"] == "true"


def test_all_temporary_files_go_to_the_run_s_own_scratch_space() -> None:
    found = properties(SparkSettings(), Path("/run/scratch"))
    assert found["spark.local.dir"] == "/run/scratch"
    assert "-Djava.io.tmpdir=/run/scratch" in found["spark.driver.extraJavaOptions"]


def test_a_cluster_is_not_told_to_talk_to_the_loopback_interface() -> None:
    assert "spark.driver.host" not in properties(SparkSettings("spark://host:7077"), Path("/x"))


def start_with(monkeypatch: pytest.MonkeyPatch, folder: Path, launch: Any, context: Any) -> None:
    monkeypatch.setattr(session, "require_java", lambda: None)
    monkeypatch.setattr(session, "launch_gateway", launch)
    monkeypatch.setattr(session, "SparkContext", context)
    session.start(SparkSettings("local[1]"), folder, folder / "spark.log")


class RefusingContext:
    """A context that cannot be made, as when nothing listens on the other side."""

    _active_spark_context = None

    def __init__(self, **options: Any) -> None:
        raise ConnectionRefusedError(111, "Connection refused")


class BrokenContext:
    """A context whose other side has gone as soon as it was made."""

    _active_spark_context = None

    def __init__(self, **options: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        raise ConnectionRefusedError(111, "Connection refused")


@pytest.mark.parametrize("context", [RefusingContext, BrokenContext])
def test_a_java_process_that_is_killed_while_spark_starts_is_told_as_such(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, context: Any
) -> None:
    def launch(*arguments: Any) -> SimpleNamespace:
        process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        process.kill()
        return SimpleNamespace(proc=process)

    with pytest.raises(EngineError, match="Java process was killed by signal 9; what was committed stays\nhint: "):
        start_with(monkeypatch, tmp_path, launch, context)


def test_a_java_process_that_ends_before_it_answers_is_told_as_such(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def launch(*arguments: Any) -> SimpleNamespace:
        raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})

    with pytest.raises(EngineError, match=f"Java process has ended; .*\nhint: .*its log is {tmp_path}/spark.log"):
        start_with(monkeypatch, tmp_path, launch, RefusingContext)


def test_what_fails_while_java_is_alive_stays_what_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(session, "_DYING", 0.01)
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        with pytest.raises(ConnectionRefusedError):
            start_with(monkeypatch, tmp_path, lambda *arguments: SimpleNamespace(proc=process), RefusingContext)
        process.kill()
