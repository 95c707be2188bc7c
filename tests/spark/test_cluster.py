"""On a cluster of several processes: an executor and a worker die in the middle, and the answers are the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from tests.support.cluster import QUICK, SparkCluster, holds_state, spark_cluster

pytestmark = [pytest.mark.xdist_group("cluster"), pytest.mark.spark]

EVENTS, FILES, BATCH = 15_000, 5, 1000
PATIENCE = 180.0
BEGIN = 1_704_067_200_000  # 2024-01-01, in milliseconds
QUERY = """
    REGISTER QUERY traffic STARTING AT 2024-01-01T00:01:00Z
    {
      MATCH (a:Stop)-[r:RIDE]->(b:Stop) WITHIN PT2M
      WITH b.name AS stop, count(r) AS rides
      EMIT stop, rides ORDER BY stop SNAPSHOT EVERY PT1M
    }
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with spark_cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The query, its events, and in `expected` what the engine without Spark tells."""
    folder = tmp_path_factory.mktemp("given")
    (folder / "query.seraph").write_text(QUERY)
    events = folder / "events"
    events.mkdir()
    for number in range(FILES):
        lines = [event(index) for index in range(number * EVENTS // FILES, (number + 1) * EVENTS // FILES)]
        (events / f"{number}.ndjson").write_text("\n".join(lines) + "\n")
    command = [*run_command(folder), "--engine", "local", "-o", "json", "--quiet"]
    (folder / "expected").write_bytes(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return folder


def event(index: int) -> str:
    a, b = index % 7, index * 5 % 11 + 7
    nodes = [{"id": one, "labels": ["Stop"], "properties": {"name": f"Straße {one}"}} for one in (a, b)]
    ride = {"type": "RIDE", "from": a, "to": b}
    return json.dumps({"at": BEGIN + index * 200, "nodes": nodes, "relationships": [ride]})


def run_command(given: Path) -> list[str]:
    return [
        *(sys.executable, "-m", "anabranch", "run", str(given / "query.seraph")),
        *("--stream", f"rides={given / 'events'}"),
    ]


class ClusterRun:
    """`anabranch run` on a cluster, in a process of its own."""

    def __init__(self, cluster: SparkCluster, given: Path, folder: Path) -> None:
        self.folder = folder
        self.sink = folder / "out.ndjson"
        self.checkpoint = folder / "checkpoint"
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        command = [
            *run_command(given),
            *("--engine", "spark", "--master", cluster.url, "--checkpoint", str(self.checkpoint)),
            *("--sink", str(self.sink), "--batch-events", str(BATCH), "--summary", "json"),
            # Spark would take the machine's own address, which other machines can reach.
            *("--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.driver.bindAddress=127.0.0.1"),
            *("--conf", f"spark.executor.extraJavaOptions={QUICK}"),
        ]
        with (folder / "stderr").open("wb") as talk:
            self.process = subprocess.Popen(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=talk,
                stderr=talk,
                env={**os.environ, "TMPDIR": str(self.temporary)},
            )

    def wait_for(self, condition: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert self.process.poll() is None, f"the run ended before {what}: {self.said}"
            assert time.monotonic() < deadline, f"no {what}: {self.said}"
            time.sleep(0.05)

    def finish(self) -> None:
        assert self.process.wait(PATIENCE) == 0, self.said

    @property
    def told(self) -> bytes:
        return self.sink.read_bytes() if self.sink.exists() else b""

    @property
    def said(self) -> str:
        log = self.checkpoint / "spark.log"
        text = (self.folder / "stderr").read_text()
        return text + (log.read_text()[-4000:] if log.exists() else "")

    @property
    def summary(self) -> dict[str, object]:
        found: dict[str, object] = json.loads((self.folder / "stderr").read_text().splitlines()[-1])
        return found

    def end(self) -> None:
        """End the process and what it has started, whatever state the test left them in."""
        family = [] if self.process.poll() is not None else psutil.Process(self.process.pid).children(recursive=True)
        self.process.kill()
        self.process.wait()
        for child in family:
            if child.is_running():
                child.kill()
        psutil.wait_procs(family, 20)


@pytest.fixture
def run(cluster: SparkCluster, given: Path, tmp_path: Path) -> Iterator[ClusterRun]:
    cluster.bring_to(2)
    started = ClusterRun(cluster, given, tmp_path)
    yield started
    started.end()


def state_holder(run: ClusterRun, cluster: SparkCluster) -> psutil.Process:
    """The executor whose loss hurts most, the one with the windows, when the first answers are there."""
    run.wait_for(lambda: run.told, "answer")
    run.wait_for(lambda: any(map(holds_state, cluster.executors)), "executor with a state")
    return next(filter(holds_state, cluster.executors))


def gone(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def assert_undisturbed(run: ClusterRun, given: Path) -> None:
    run.finish()
    expected = (given / "expected").read_bytes()
    assert run.told.decode() == expected.decode()
    assert expected.count(b"\n") > 200
    assert run.summary["events"] == EVENTS
    assert (run.checkpoint / "spark.log").read_text().count("Lost executor") >= 2
    assert not (run.checkpoint / "scratch").exists()
    assert list(run.temporary.iterdir()) == []


def test_answers_survive_the_death_of_an_executor_and_then_of_a_worker(
    run: ClusterRun, cluster: SparkCluster, given: Path
) -> None:
    state_holder(run, cluster).kill()
    told = len(run.told)
    run.wait_for(lambda: len(run.told) > told, "answer after the death of an executor")
    victim = state_holder(run, cluster)
    worker = next(pid for pid in cluster.worker_pids if victim in cluster.executors_of(pid))
    psutil.Process(worker).kill()
    assert run.told != (given / "expected").read_bytes(), "the run was over before the worker died"
    run.wait_for(lambda: gone(victim), "end of the executor")
    assert_undisturbed(run, given)
    assert len(cluster.worker_pids) == 1


def test_a_run_on_a_cluster_without_a_checkpoint_is_refused_before_anything_starts(given: Path, tmp_path: Path) -> None:
    command = [*run_command(given), "--engine", "spark", "--master", "spark://127.0.0.1:1"]
    refused = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "--checkpoint" in refused.stderr
    assert list(tmp_path.iterdir()) == []
