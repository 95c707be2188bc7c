"""What was interrupted goes on: stopped runs, killed workers, a killed planner, a sink that failed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from random import Random

import psutil
import pytest
from tests.support.jobs import job_for
from tests.support.spark_runs import Runner

from anabranch.errors import EngineError
from anabranch.model.event import Event
from anabranch.model.values import Node, Relationship
from anabranch.runner.job import Job
from anabranch.sinks.base import RenderedAnswer, Sink

QUERY = """
REGISTER QUERY links STARTING AT 1970-01-01T00:01:00Z
{ MATCH (a)-[r]->(b) WITHIN PT3M EMIT a.name, count(r) AS links ON ENTERING EVERY PT1M }
"""
SECOND = 1_000_000


def events(count: int = 1200) -> list[Event]:
    random = Random(5)
    made = []
    for index in range(count):
        one, two = random.sample(range(20), 2)
        nodes = (Node(one, ("V",), {"name": f"v{one}"}), Node(two, ("V",), {"name": f"v{two}"}))
        made.append(Event(index * SECOND, nodes, (Relationship(None, "R", one, two),)))
    return made


@pytest.fixture
def job(runner: Runner) -> Job:
    return job_for(QUERY, runner.write({"s": events()}, files=3), batch_events=100)


@pytest.fixture(scope="module")
def expected(running: object, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    undisturbed = Runner(running, tmp_path_factory.mktemp("undisturbed"))  # type: ignore[arg-type]
    lines, _ = undisturbed.run(job_for(QUERY, undisturbed.write({"s": events()}, files=3), batch_events=100))
    assert lines.text.count(b"\n") > 100
    return lines.text


class Once(Sink):
    """Calls what it is given when a batch is told, once."""

    def __init__(self, batch: int, then: Callable[[], None]) -> None:
        self._batch = batch
        self._then = then
        self.called = False

    def write(self, batch: int, answers: Sequence[RenderedAnswer]) -> None:
        if batch >= self._batch and not self.called:
            self.called = True
            self._then()


def test_a_run_that_was_stopped_goes_on_where_it_was(runner: Runner, job: Job, expected: bytes) -> None:
    stopped = Once(3, lambda: None)
    first, run = runner.run(job, should_stop=lambda: stopped.called, sinks=[stopped])
    assert 0 < len(first.text) < len(expected)
    second, _ = runner.run(job)
    batches = {**first.batches, **second.batches}
    assert b"".join(told.json for _, answers in sorted(batches.items()) for told in answers) == expected
    assert run.progress.status["events"] < 1200
    third, again = runner.run(job)
    assert (third.text, again.progress.status) == (b"", {}), "a run that has ended has nothing more to do"


def _kill_workers(runner: Runner, module: str) -> None:
    """Kill the Python processes of Spark that run a module."""
    for process in psutil.Process(runner.running.jvm_pid).children(recursive=True):
        if any(module in part for part in process.cmdline()):
            process.kill()


def test_killed_workers_are_replaced_and_nothing_is_lost(runner: Runner, job: Job, expected: bytes) -> None:
    killer = Once(2, lambda: _kill_workers(runner, "pyspark.worker"))
    lines, run = runner.run(job, sinks=[killer])
    assert killer.called
    assert lines.text == expected
    # Mostly Spark itself tries the task again; a worker that dies between two tasks may cost the query one restart.
    assert run.progress.restarts <= 1


def test_a_killed_planner_restarts_the_query_from_its_checkpoint(runner: Runner, job: Job, expected: bytes) -> None:
    killer = Once(2, lambda: _kill_workers(runner, "python_streaming_source_runner"))
    lines, run = runner.run(job, sinks=[killer])
    assert lines.text == expected
    assert run.progress.restarts == 1
    assert "going on from the checkpoint" in runner.notes[-1]


def test_a_sink_that_fails_ends_the_run_with_its_own_error_and_a_restart_goes_on(
    runner: Runner, job: Job, expected: bytes
) -> None:
    def fail() -> None:
        raise EngineError("the disk is full\nhint: make room")

    with pytest.raises(EngineError, match="the disk is full\nhint: make room"):
        runner.run(job, sinks=[Once(2, fail)])
    # The sinks of the first run are gone; what they were told comes again from the batch that failed.
    lines, _ = runner.run(job)
    assert expected.endswith(lines.text)
    assert len(lines.text) > len(expected) / 2


def test_the_time_to_stop_is_the_end_of_a_batch_not_of_the_input(runner: Runner, job: Job) -> None:
    began = time.monotonic()
    runner.run(job, should_stop=lambda: time.monotonic() > began + 0.5)
    assert not runner.path.joinpath("checkpoint", "scratch").exists()
