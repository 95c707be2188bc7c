"""A run in this process and one on Spark: the same bytes."""

from __future__ import annotations

from tests.spark.test_recovery import QUERY, events
from tests.support.jobs import job_for
from tests.support.spark_runs import Lines, Runner

import anabranch
from anabranch.runner.folder import RunFolder
from anabranch.runner.inprocess import InProcessRun
from anabranch.runner.letters import LetterFiles


def test_answers_are_the_same_bytes_and_become_tables_of_spark(runner: Runner) -> None:
    job = job_for(QUERY, runner.write({"s": events(300)}), batch_events=100)
    on_spark, _ = runner.run(job)
    here = Lines()
    folder = RunFolder(str(runner.path / "local"))
    folder.open()
    folder.check(job)
    InProcessRun(job, folder, [here], LetterFiles(str(runner.path / "dead.ndjson"))).run()
    folder.close()
    assert here.text == on_spark.text
    assert here.text
    session = anabranch.Session.local(streams=["s"])
    query = session.register(QUERY)
    session.push("s", events(300))
    session.finish()
    frame = query.to_spark(runner.running.session)
    assert frame.columns[:3] == ["at", "win_start", "win_end"]
    assert frame.count() == here.text.count(b"\n")
