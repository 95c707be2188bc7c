"""The folder of a run: one run at a time, of one job, and nothing left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.jobs import changed, job_for

from anabranch.errors import EngineError
from anabranch.model.temporal import parse_duration
from anabranch.runner.folder import RunFolder
from anabranch.runner.job import Job
from anabranch.sources.generators import GeneratorSource

QUERY = "REGISTER QUERY q STARTING AT 2024-01-01T00:00 { MATCH (a) WITHIN PT1M EMIT count(a) AS n SNAPSHOT EVERY PT1M }"


def job(text: str = QUERY) -> Job:
    return job_for(text, {"s": GeneratorSource("s", "graph", {"count": "1"})})


def opened(path: Path) -> RunFolder:
    folder = RunFolder(str(path))
    folder.open()
    return folder


def test_a_folder_without_a_path_is_temporary_and_goes_with_the_run() -> None:
    folder = RunFolder()
    folder.open()
    assert folder.scratch.is_dir()
    folder.close()
    assert not folder.path.exists()


def test_scratch_space_of_a_killed_run_is_emptied_when_the_next_begins(tmp_path: Path) -> None:
    folder = opened(tmp_path / "run")
    (folder.scratch / "spark-1234").mkdir()
    (folder.scratch / "spark-1234" / "shuffle.bin").write_bytes(b"x")
    folder._lock.close()  # type: ignore[union-attr]  # as a kill would
    again = opened(tmp_path / "run")
    assert list(again.scratch.iterdir()) == []
    again.close()
    assert not again.scratch.exists()


def test_a_second_run_on_the_same_folder_is_refused(tmp_path: Path) -> None:
    folder = opened(tmp_path)
    with pytest.raises(EngineError, match=f"in use by another run \\(process {os.getpid()}\\)"):
        RunFolder(str(tmp_path)).open()
    folder.close()
    opened(tmp_path).close()


def test_the_java_process_of_a_killed_run_is_waited_for(tmp_path: Path) -> None:
    (tmp_path / "java").symlink_to(sys.executable)
    code = "import time; time.sleep(0.5)"
    java = subprocess.Popen([str(tmp_path / "java"), "-c", code])
    (tmp_path / "lock").write_text(json.dumps({"pid": 1, "jvm": java.pid}))
    # The parent must see its child's end, or it stays a zombie whose command line is empty: the same to the folder.
    folder = opened(tmp_path)
    assert java.poll() is not None or not Path(f"/proc/{java.pid}/cmdline").read_bytes()
    folder.close()
    java.wait()


def test_the_same_job_is_welcome_again_and_other_queries_too(tmp_path: Path) -> None:
    folder = opened(tmp_path)
    folder.check(job())
    folder.check(job())
    folder.check(job(QUERY.replace("count(a)", "sum(a.x)")))
    folder.close()


def test_a_folder_of_other_options_is_refused_with_the_difference(tmp_path: Path) -> None:
    folder = opened(tmp_path)
    folder.check(job())
    with pytest.raises(EngineError, match="lateness was not given and is PT5S"):
        folder.check(changed(job(), lateness=parse_duration("PT5S")))
    folder.close()


def spark_batch(path: Path, number: int, streams: list[str], committed: bool = True) -> None:
    """What Spark leaves of a batch that read these streams."""
    for name in ("offsets", "commits"):
        (path / "spark" / name).mkdir(parents=True, exist_ok=True)
    offset = json.dumps({"streams": {key: {} for key in streams}})
    (path / "spark" / "offsets" / str(number)).write_text(f"v1\n{{}}\n{offset}")
    if committed:
        (path / "spark" / "commits" / str(number)).write_text("v1\n{}")


def of_streams(**addresses: str) -> Job:
    made = job_for(QUERY, {name: GeneratorSource(name, "graph", {"count": "1"}) for name in addresses})
    return replace(made, streams=tuple(replace(one, address=addresses[one.name]) for one in made.streams))


def test_streams_may_be_added_and_left_out(tmp_path: Path) -> None:
    folder = opened(tmp_path)
    folder.check(of_streams(a="gen:graph"))
    spark_batch(tmp_path, 0, ["a"])
    folder.check(of_streams(a="gen:graph", b="gen:bikes"))
    folder.check(of_streams(b="gen:bikes"))
    folder.close()


def test_a_stream_that_was_read_keeps_its_address(tmp_path: Path) -> None:
    folder = opened(tmp_path)
    folder.check(of_streams(a="gen:graph"))
    folder.check(of_streams(a="gen:bikes"))  # nothing was read yet
    spark_batch(tmp_path, 0, ["a"])
    with pytest.raises(EngineError, match="streams: a was gen:bikes and is gen:graph"):
        folder.check(of_streams(a="gen:graph"))
    folder.close()


def test_a_stream_that_was_left_out_keeps_its_address_until_a_batch_has_forgotten_it(tmp_path: Path) -> None:
    folder = opened(tmp_path)
    folder.check(of_streams(a="gen:graph", b="gen:graph"))
    spark_batch(tmp_path, 0, ["a", "b"])
    folder.check(of_streams(b="gen:graph"))
    with pytest.raises(EngineError, match="streams: a was gen:graph and is gen:bikes"):
        folder.check(of_streams(a="gen:bikes", b="gen:graph"))
    spark_batch(tmp_path, 1, ["b"], committed=False)
    with pytest.raises(EngineError, match="streams: a was gen:graph and is gen:bikes"):
        folder.check(of_streams(a="gen:bikes", b="gen:graph"))
    spark_batch(tmp_path, 1, ["b"])
    folder.check(of_streams(a="gen:bikes", b="gen:graph"))
    folder.close()


@pytest.mark.parametrize(("engine", "other"), [("local", "spark"), ("spark", "local.sqlite")])
def test_a_checkpoint_of_one_engine_is_refused_by_the_other(tmp_path: Path, engine: str, other: str) -> None:
    folder = RunFolder(str(tmp_path))
    folder.refuse_other_engine(engine)  # type: ignore[arg-type]
    (tmp_path / other).mkdir()
    with pytest.raises(EngineError, match="belongs to a run"):
        folder.refuse_other_engine(engine)  # type: ignore[arg-type]


def test_a_folder_of_another_format_is_refused(tmp_path: Path) -> None:
    folder = opened(tmp_path)
    folder.check(job())
    file = tmp_path / "anabranch.json"
    file.write_text(file.read_text().replace('"format": 2', '"format": 0'))
    with pytest.raises(EngineError, match="has format 0; this version of Anabranch reads format 2"):
        folder.check(job())
    folder.close()


def test_a_checkpoint_that_is_not_ours_is_refused(tmp_path: Path) -> None:
    (tmp_path / "spark").mkdir()
    folder = opened(tmp_path)
    with pytest.raises(EngineError, match="not Anabranch's"):
        folder.check(job())
    folder.close()


def test_a_file_and_a_remote_address_are_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(EngineError, match="is a file"):
        RunFolder(str(tmp_path / "file"))
    with pytest.raises(EngineError, match="shared file system"):
        RunFolder("s3://bucket/run")


def test_a_run_is_finished_when_its_last_batch_is_committed_and_ended_the_same_queries(tmp_path: Path) -> None:
    folder = RunFolder(str(tmp_path))
    assert not folder.finished("q")
    for name in ("offsets", "commits"):
        (tmp_path / "spark" / name).mkdir(parents=True)
    offset = {"streams": {}, "end": True, "queries": "q"}
    (tmp_path / "spark" / "offsets" / "3").write_text("v1\n{}\n" + json.dumps(offset))
    assert not folder.finished("q"), "the batch was planned and not committed"
    (tmp_path / "spark" / "commits" / "3").write_text("v1\n{}")
    assert folder.finished("q")
    assert not folder.finished("other queries")


def test_a_run_stands_at_its_last_committed_batch_and_has_ended_only_if_none_was_planned_since(tmp_path: Path) -> None:
    folder = opened(tmp_path)
    for name in ("offsets", "commits"):
        (folder.spark / name).mkdir(parents=True)

    def plan(batch: int, end: bool) -> dict[str, object]:
        offset: dict[str, object] = {"streams": {"s": batch}, "queries": "these", "end": end}
        (folder.spark / "offsets" / str(batch)).write_text(f"v1\n{{}}\n{json.dumps(offset)}")
        return offset

    first = plan(0, end=True)
    assert folder.offsets() == (None, first)
    (folder.spark / "commits" / "0").write_text("v1\n{}")
    assert folder.offsets() == (first, first)
    assert folder.finished("these")
    assert not folder.finished("others")
    second = plan(1, end=True)
    assert folder.offsets() == (first, second)
    assert not folder.finished("these")
    (folder.spark / "commits" / "7").touch()  # of which nothing is planned
    assert folder.offsets() == (first, second)
    folder.close()


@pytest.mark.parametrize("left", [0, 3, 9])
def test_a_checkpoint_whose_query_has_lost_its_id_is_refused(tmp_path: Path, left: int) -> None:
    folder = opened(tmp_path)
    folder.check(job())
    spark_batch(tmp_path, 0, ["s"])
    note = folder.spark / "metadata"
    note.write_text('{"id":"93f9e4e7-1f46-4c01-8759-7850c02631bc"}')
    folder.check(job())
    note.write_bytes(note.read_bytes()[:left])
    with pytest.raises(EngineError, match=f"is damaged: {note} is not what Spark has written\nhint: "):
        folder.check(job())
    folder.close()


@pytest.mark.parametrize("kind", ["offsets", "commits"])
@pytest.mark.parametrize("left", [0, 3, 5, 9])
def test_a_checkpoint_whose_newest_note_was_cut_off_is_refused(tmp_path: Path, kind: str, left: int) -> None:
    folder = opened(tmp_path)
    folder.check(job())
    spark_batch(tmp_path, 0, ["s"])
    spark_batch(tmp_path, 1, ["s"])
    (folder.spark / "commits" / "1").write_text('v1\n{"nextBatchWatermarkMs":0}')
    note = folder.spark / kind / "1"
    assert folder.offsets()[0] == {"streams": {"s": {}}}
    note.write_bytes(note.read_bytes()[:left])
    with pytest.raises(EngineError, match=f"is damaged: {note} is not what Spark has written\nhint: "):
        folder.check(job())
    folder.close()
