"""Every case on Spark: byte for byte what the engine in this process tells."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.cells import job_of
from tests.support.spark_runs import Runner

from anabranch.formats.answers import json_lines
from anabranch.sources.base import Decoding, OpenedStream
from anabranch.sources.generators import GeneratorSource
from anabranch.testing.case_file import CaseFile
from anabranch.testing.cases import load, new_session

HERE = Path(__file__).parent.parent / "cases"
CASES = [path for path in sorted(HERE.rglob("*.case")) if load(path).error is None]


def told_here(case: CaseFile) -> bytes:
    """What the engine in this process tells, in the order of time."""
    session = new_session(case)
    queries = session.register_all(case.query, parameters=case.parameters, now=case.now, file_name=case.path.name)
    for name, events in case.streams.items():
        session.push(name, events)
    session.finish(case.until, case.drain)
    answers = [answer for query in queries for answer in query.poll()]
    answers.sort(key=lambda answer: answer.at)
    return b"".join(json_lines(answer.parts()) for answer in answers)


@pytest.mark.parametrize("path", CASES, ids=lambda path: str(path.relative_to(HERE)))
def test_case_is_told_alike_on_spark(path: Path, runner: Runner) -> None:
    case = load(path)
    job = job_of(case)
    sources = runner.write(case.streams)
    streams = tuple(
        OpenedStream(
            sources.get(one.name, GeneratorSource(one.name, "graph", {"count": "0"})), Decoding(one.name), one.name
        )
        for one in job.streams
    )
    lines, _ = runner.run(replace(job, streams=streams, forms=("json", "typed")))
    assert lines.text.decode() == told_here(case).decode()
