"""A run without Spark: the answers of an undisturbed engine, whatever stops it, whatever changes in between."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.support.jobs import changed, job_for, queries_of
from tests.support.spark_runs import Lines

from anabranch.api import run
from anabranch.engine.evaluation_options import EvaluationOptions
from anabranch.engine.session import Session
from anabranch.errors import EngineError
from anabranch.formats.ndjson import write_ndjson
from anabranch.model.event import Event
from anabranch.model.values import Node, Relationship
from anabranch.runner import inprocess, local_state
from anabranch.runner.folder import RunFolder
from anabranch.runner.inprocess import InProcessRun
from anabranch.runner.job import Job
from anabranch.runner.letters import LetterFiles
from anabranch.runner.outlet import Observers
from anabranch.sinks.base import RenderedAnswer, Sink
from anabranch.sinks.files import LinesFile
from anabranch.sinks.memory import MemoryTable
from anabranch.sources import files
from anabranch.sources.base import Decoding, OpenedStream, Source
from anabranch.sources.files import FileSource
from anabranch.sources.spool import Spool, SpoolSource
from anabranch.syntax.languages import QueryText

SECOND = 1_000_000
QUERY = """
REGISTER QUERY links STARTING AT 1970-01-01T00:01:00Z
{ MATCH (a)-[r]->(b) WITHIN PT3M EMIT a.name, count(r) AS links ON ENTERING EVERY PT1M }
"""
COUNT = """
REGISTER QUERY {name} STARTING AT 1970-01-01T00:01:00Z
{{ MATCH (a) WITHIN PT3M ON STREAM {stream} EMIT count(a) AS n SNAPSHOT EVERY PT1M }}
"""


def events(count: int = 600, seed: int = 5) -> list[Event]:
    random = Random(seed)
    made = []
    for index in range(count):
        one, two = random.sample(range(20), 2)
        nodes = (Node(one, ("V",), {"name": f"v{one}"}), Node(two, ("V",), {"name": f"v{two}"}))
        made.append(Event(index * SECOND, nodes, (Relationship(None, "R", one, two),)))
    return made


def expected() -> bytes:
    session = Session.local(streams=["s"])
    query = session.register(QUERY)
    session.push("s", events())
    session.finish()
    answers = query.poll()
    return b"".join(line for answer in answers for line in [answer_lines(answer)])


def answer_lines(answer: Any) -> bytes:
    from anabranch.formats.answers import json_lines

    return json_lines(answer.parts())


class House:
    """A folder in which runs come and go."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notes: list[str] = []

    def source(self, name: str, made: Sequence[Event], extra: bytes = b"") -> Source:
        file = self.path / f"{name}.ndjson"
        with file.open("wb") as out:
            write_ndjson(made, out)
            out.write(extra)
        return FileSource(name, str(file))

    def run(
        self, job: Job, should_stop: Callable[[], bool] = lambda: False, sinks: Sequence[Sink] = ()
    ) -> tuple[Lines, InProcessRun]:
        lines = Lines()
        folder = RunFolder(str(self.path / "checkpoint"))
        folder.open()
        try:
            folder.check(job)
            letters = LetterFiles(str(self.path / "dead.ndjson"))
            observers = Observers(on_note=self.notes.append)
            run = InProcessRun(job, folder, [lines, *sinks], letters, observers, pace=0.001)
            if not folder.finished(job.fingerprint):
                run.run(should_stop)
        finally:
            folder.close()
        return lines, run


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


@pytest.fixture
def job(house: House) -> Job:
    return job_for(QUERY, {"s": house.source("s", events())}, batch_events=50)


class Stop:
    """Stops a run after so many batches."""

    def __init__(self, after: int) -> None:
        self._left = after

    def __call__(self) -> bool:
        self._left -= 1
        return self._left < 0


class Failing(Sink):
    """Takes so many batches, and then fails, before or after the others have theirs."""

    def __init__(self, after: int) -> None:
        self._left = after

    def write(self, batch: int, answers: Sequence[RenderedAnswer]) -> None:
        self._left -= 1
        if self._left < 0:
            raise EngineError("the disk is full")


def test_the_answers_are_those_of_a_session(house: House, job: Job) -> None:
    lines, run = house.run(job)
    assert lines.text == expected()
    assert (run.progress.status["events"], run.progress.batch) == (600, 11)
    assert run.progress.status["ended"]


def test_a_run_that_has_ended_has_nothing_more_to_do(house: House, job: Job) -> None:
    house.run(job)
    lines, run = house.run(job)
    assert (lines.batches, run.progress.status) == ({}, {})


@pytest.mark.parametrize("batches", [0, 1, 5, 11])
def test_a_run_that_was_stopped_goes_on_where_it_was(house: House, job: Job, batches: int) -> None:
    first, _ = house.run(job, Stop(batches))
    assert len(first.batches) <= batches  # a batch that takes long asks in between whether it shall stop
    second, _ = house.run(job)
    assert first.batches.keys().isdisjoint(second.batches)
    assert first.text + second.text == expected()


@pytest.mark.parametrize("batches", range(0, 12, 3))
def test_a_sink_that_failed_is_told_the_same_batch_again(house: House, job: Job, batches: int) -> None:
    out = house.path / "out.ndjson"
    with pytest.raises(EngineError, match="the disk is full"):
        house.run(job, sinks=[LinesFile(out), Failing(batches)])
    house.run(job, sinks=[LinesFile(out)])
    assert out.read_bytes() == expected()


class Killed(BaseException):
    pass


@pytest.mark.parametrize("seed", range(12))
def test_a_run_that_is_killed_anywhere_tells_everything_once(
    house: House, job: Job, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every statement that reaches SQLite may be the last one of the process."""
    random = Random(seed)
    out = house.path / "out.ndjson"
    left = [0]
    do = local_state.LocalState._do

    def maybe(self: Any, statement: str, *values: Any) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise Killed
        do(self, statement, *values)

    monkeypatch.setattr(local_state.LocalState, "_do", maybe)
    kills = 0
    while True:
        left[0] = random.randint(1, 60)
        try:
            house.run(job, sinks=[LinesFile(out)])
            break
        except Killed:
            kills += 1
    assert kills > 0
    assert out.read_bytes() == expected()


@pytest.mark.parametrize("seed", range(6))
def test_a_batch_that_takes_long_can_be_interrupted_anywhere_and_is_run_again(
    house: House, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inprocess, "PATIENCE", 0.0)
    random = Random(seed)
    job = job_for(QUERY, {"s": house.source("s", events())}, batch_events=400)
    texts: list[bytes] = []
    stops = [Stop(random.randint(1, 9)) for _ in range(8)]
    for stop in stops:
        texts.append(house.run(job, stop)[0].text)
    assert texts.count(b"") > 0, "some were interrupted before their first batch was through"
    texts.append(house.run(job)[0].text)
    assert b"".join(texts) == expected()


def test_a_process_that_is_killed_leaves_what_another_goes_on_with(house: House, job: Job) -> None:
    out = house.path / "out.ndjson"
    program = f"""
        import os, signal
        from pathlib import Path
        from tests.unit.runner.test_inprocess import House, QUERY, events
        from tests.support.jobs import job_for
        from anabranch.sinks.base import Sink
        from anabranch.sinks.files import LinesFile

        class Last(Sink):
            def write(self, batch, answers):
                if batch == 6:
                    os.kill(os.getpid(), signal.SIGKILL)

        house = House(Path({str(house.path)!r}))
        job = job_for(QUERY, {{"s": house.source("s", events())}}, batch_events=50)
        house.run(job, sinks=[LinesFile({str(out)!r}), Last()])
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], cwd=os.getcwd(), check=False)
    assert done.returncode == -signal.SIGKILL
    assert 0 < len(out.read_bytes()) < len(expected())
    house.run(job, sinks=[LinesFile(out)])
    assert out.read_bytes() == expected()


def test_malformed_and_late_records_are_put_aside_once(house: House) -> None:
    extra = b'{"nodes": []}\nno json\n'
    late = [*events(200), replace(events(1)[0], event_time=0)]
    job = job_for(QUERY, {"s": house.source("s", late, extra)}, batch_events=30)
    with pytest.raises(EngineError):
        house.run(job, sinks=[Failing(6)])
    _, run = house.run(job)
    letters = (house.path / "dead.ndjson").read_text().splitlines()
    assert len(letters) == 3
    assert (run.progress.status["late"], run.progress.status["malformed"]) == (1, 2)


def told(lines: Lines) -> list[tuple[str, int]]:
    return [(one.query, one.at // SECOND // 60) for one in lines.told]


def test_a_new_query_starts_from_what_the_windows_hold_and_a_kept_one_goes_on(house: House) -> None:
    sources = {"s": house.source("s", events())}
    kept, gone, new = (COUNT.format(name=name, stream="s") for name in ("kept", "gone", "new"))
    first, _ = house.run(job_for(kept + gone, sources, batch_events=50), Stop(6))
    second, _ = house.run(job_for(new + kept, sources, batch_events=50))
    assert house.notes == ["query gone is gone", "query new is new: it starts from what the windows hold"]
    numbers = [(one.query, one.number) for one in [*first.told, *second.told] if one.query == "kept"]
    assert numbers == [("kept", number) for number in range(10)]
    assert [at for name, at in told(second) if name == "new"] == [3, 4, 5, 6, 7, 8, 9, 10]


def test_streams_come_and_go_with_the_queries_that_read_them(house: House) -> None:
    a, b = house.source("a", events()), house.source("b", events(seed=6))
    on_a, on_b = COUNT.format(name="on_a", stream="a"), COUNT.format(name="on_b", stream="b")
    first, _ = house.run(job_for(on_a, {"a": a}, batch_events=50), Stop(6))
    second, _ = house.run(job_for(on_a + on_b, {"a": a, "b": b}, batch_events=50), Stop(3))
    third, run = house.run(job_for(on_b, {"b": b}, batch_events=50))
    assert {name for name, _ in told(first)} == {"on_a"}
    assert {name for name, _ in told(third)} == {"on_b"}
    assert [at for name, at in told(second) + told(third) if name == "on_b"] == list(range(1, 11))
    assert set(run.progress.status["streams"]) == {"b"}
    assert run.progress.status["bytes"] > 0, "what the windows of b hold"


def test_a_stream_that_comes_back_begins_anew(house: House) -> None:
    a, b = house.source("a", events()), house.source("b", events(seed=6))
    on_a, on_b = COUNT.format(name="on_a", stream="a"), COUNT.format(name="on_b", stream="b")
    house.run(job_for(on_a + on_b, {"a": a, "b": b}, batch_events=50), Stop(6))
    house.run(job_for(on_b, {"b": b}, batch_events=50), Stop(1))
    lines, _ = house.run(job_for(on_a + on_b, {"a": a, "b": b}, batch_events=50))
    assert [at for name, at in told(lines) if name == "on_a"] == list(range(1, 11))


def test_a_query_without_a_stream_s_name_finds_another_when_its_own_is_gone(house: House) -> None:
    a, b = house.source("a", events()), house.source("b", events(seed=6))
    house.run(job_for(QUERY, {"a": a}, batch_events=50), Stop(4))
    lines, _ = house.run(job_for(QUERY, {"b": b}, batch_events=50))
    assert told(lines)[-1] == ("links", 10)


def test_what_is_pushed_while_it_runs_is_answered(house: House) -> None:
    spool = Spool(house.path / "spool")
    stream = OpenedStream(SpoolSource("s", spool.directory), Decoding("s"), "")
    job = Job((stream,), queries_of(COUNT.format(name="q", stream="s")), forms=("json", "typed"))
    seen: list[int] = []

    class Watch(Sink):
        def write(self, batch: int, answers: Sequence[RenderedAnswer]) -> None:
            seen.extend(one.at // SECOND // 60 for one in answers)

    pushed = [0]

    def push_and_stop() -> bool:
        """Pushes a minute's events whenever everything so far was answered."""
        if pushed[0] == 5:
            return seen == [1, 2, 3, 4]
        if len(seen) >= pushed[0] - 1:
            pushed[0] += 1
            at = pushed[0] * 60 - 30
            record = f'{{"at": "1970-01-01T00:{at // 60:02}:{at % 60:02}Z", "nodes": [{{"id": {pushed[0]}}}]}}'
            spool.append([record.encode()])
        return False

    house.run(job, push_and_stop, [Watch()])
    spool.close()
    assert seen == [1, 2, 3, 4]


def test_that_a_query_failed_is_told_after_what_it_had_answered(house: House) -> None:
    failing = COUNT.format(name="q", stream="s").replace("count(a)", "10 / (count(a) - 2)")
    record = '{{"at": "1970-01-01T00:0{0}:30Z", "nodes": [{{"id": {0}}}]}}'
    (house.path / "s.ndjson").write_text("\n".join(record.format(minute) for minute in range(3)))
    job, lines, order = job_for(failing, {"s": FileSource("s", str(house.path / "s.ndjson"))}), Lines(), []
    job = changed(job, evaluation=EvaluationOptions(on_error="fail"))
    folder = RunFolder(str(house.path / "checkpoint"))
    folder.open()
    observers = Observers(on_failure=lambda failure: order.append([one.at // SECOND // 60 for one in lines.told]))
    InProcessRun(job, folder, [lines], LetterFiles(str(house.path / "dead.ndjson")), observers).run()
    folder.close()
    assert order == [[1]]


def test_a_checkpoint_of_spark_s_is_refused(house: House, job: Job) -> None:
    (house.path / "checkpoint").mkdir()
    folder = RunFolder(str(house.path / "checkpoint"))
    folder.check(job)
    folder.spark.mkdir()
    with pytest.raises(EngineError, match="belongs to a run on Spark"):
        house.run(job)


def test_nothing_of_spark_is_loaded() -> None:
    program = (
        "import sys; import anabranch.runner.inprocess, anabranch.runner.receiving; "
        "sys.exit(any(name.split('.')[0] in ('pyspark', 'py4j') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_query_without_a_stream_is_answered_once_and_the_run_ends(tmp_path: Path) -> None:
    (tmp_path / "g.ttl").write_text("<urn:a> <urn:p> <urn:b> . <urn:c> <urn:p> <urn:b> .")
    table = MemoryTable()
    text = "REGISTER QUERY q AS SELECT ?b (COUNT(?a) AS ?n) WHERE { ?a <urn:p> ?b } GROUP BY ?b"
    run([QueryText(text, "q.csparql")], {}, graphs={"default": str(tmp_path / "g.ttl")}, sinks=[table], engine="local")
    (kept,) = table.answers("q")
    assert [[str(getattr(one, "lexical", one)) for one in row][1:] for row in kept.answer.rows] == [["2"]]


@pytest.mark.parametrize(("short", "long", "fewest", "most"), [(1e9, 1e9, 3, 12), (-1, -1, 20, 200)])
def test_batches_of_files_grow_while_they_are_short(
    house: House, monkeypatch: pytest.MonkeyPatch, short: float, long: float, fewest: int, most: int
) -> None:
    monkeypatch.setattr(inprocess, "_SHORT", short)
    monkeypatch.setattr(inprocess, "_LONG", long)
    monkeypatch.setattr(InProcessRun, "batch_size", 2000)
    monkeypatch.setattr(files, "FIRST_BATCH", 2000)
    lines, run = house.run(job_for(QUERY, {"s": house.source("s", events())}))
    assert lines.text == expected()
    assert fewest < run.progress.batch < most
