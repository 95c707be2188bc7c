"""`anabranch run` on Spark, as a user types it: its own process, its own Java, its own clean-up."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from anabranch.runner.folder import FORMAT

ROOT = Path(__file__).parents[2]
BIKES = ("examples/bikes/student_trick.seraph", "--stream", "rides=examples/bikes/events.ndjson")

pytestmark = pytest.mark.xdist_group("spark-commands")


def anabranch(*arguments: str, tmp: Path, **more: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "TMPDIR": str(tmp), "NO_COLOR": "1", "ANABRANCH_ENGINE": "spark", **more}
    return subprocess.Popen(
        [sys.executable, "-m", "anabranch", *arguments],
        cwd=ROOT,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_the_running_example_is_told_byte_for_byte_as_without_spark_and_leaves_nothing_behind(tmp_path: Path) -> None:
    tmp = tmp_path / "tmp"
    tmp.mkdir()
    on_spark = anabranch("run", *BIKES, "--output", "json", tmp=tmp)
    out, err = on_spark.communicate()
    here = anabranch("run", *BIKES, "--output", "json", "--engine", "local", tmp=tmp)
    assert (out, on_spark.returncode) == (here.communicate()[0], 0), err
    assert out.count("\n") == 2
    assert err.startswith("5 events · 12 instants (5 computed) · 2 rows · 0 malformed · 0 late ·")
    assert err.count("\n") == 1, "Spark is quiet"
    assert list(tmp.iterdir()) == []


def test_a_query_without_a_stream_is_answered_once_and_the_run_ends(tmp_path: Path) -> None:
    (tmp_path / "city.ttl").write_text("<urn:s1> a <urn:Sensor> . <urn:s2> a <urn:Sensor> .")
    (tmp_path / "sensors.csparql").write_text("REGISTER QUERY sensors AS SELECT ?s WHERE { ?s a <urn:Sensor> }")
    asked = anabranch(
        *("run", str(tmp_path / "sensors.csparql"), "-g", str(tmp_path / "city.ttl"), "--output", "json"), tmp=tmp_path
    )
    out, err = asked.communicate()
    assert asked.returncode == 0, err
    told = [json.loads(line) for line in out.splitlines()]
    assert len(told) == 2
    assert len({one["at"] for one in told}) == 1


def test_a_jump_of_time_is_said_as_without_spark(tmp_path: Path) -> None:
    events = tmp_path / "events.ndjson"
    later = '{"at": "2022-10-15T01:40:00Z", "nodes": [{"id": 1}]}\n'
    events.write_text((ROOT / "examples/bikes/events.ndjson").read_text() + later)
    command = ("run", BIKES[0], "--stream", f"rides={events}", "--output", "none", "--summary", "json")
    said = []
    for engine in ("spark", "local"):
        summary = json.loads(anabranch(*command, "--engine", engine, tmp=tmp_path).communicate()[1])
        said.append((summary["jumps"], summary["last_jumps"]))
    assert said == [(1, {"rides": ["2022-10-14T15:40:00Z", "2022-10-15T01:40:00Z"]})] * 2


def test_ctrl_c_stops_cleanly_and_the_same_command_goes_on(tmp_path: Path) -> None:
    tmp = tmp_path / "tmp"
    tmp.mkdir()
    out = tmp_path / "out.ndjson"
    command = (
        *("run", "examples/bikes/student_trick.seraph", "--query", "student_trick"),
        *("--stream", "rides=gen:bikes?rate=50&step=PT5M&seed=3", "--summary", "json"),
        *("--checkpoint", str(tmp_path / "run"), "--sink", str(out), "--metrics-port", "0"),
    )
    seen = []
    for _ in range(2):
        process = anabranch(*command, tmp=tmp)
        deadline = time.monotonic() + 150
        offsets = tmp_path / "run" / "spark" / "commits"
        before = len(list(offsets.iterdir())) if offsets.is_dir() else 0
        while time.monotonic() < deadline and process.poll() is None:
            if offsets.is_dir() and len(list(offsets.iterdir())) > before + 3:
                break
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 130, err
        assert "Traceback" not in err
        seen.append(json.loads(err.splitlines()[-1])["events"])
    assert 0 < seen[0] < seen[1]
    assert not (tmp_path / "run" / "scratch").exists()
    assert list(tmp.iterdir()) == []


def java_of(process: subprocess.Popen[str]) -> psutil.Process:
    """The Java process of a run, once it is there."""
    while process.poll() is None:
        for child in psutil.Process(process.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                if "java" in child.name():
                    return child
        time.sleep(0.02)
    raise AssertionError("it has ended without Java")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_spark_starts_ends_the_run_and_its_java_process(tmp_path: Path, number: signal.Signals) -> None:
    tmp = tmp_path / "tmp"
    tmp.mkdir()
    process = anabranch("run", *BIKES, "--output", "json", tmp=tmp)
    java = java_of(process)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "")
    java.wait(60)
    assert list(tmp.iterdir()) == []


def test_a_java_process_that_dies_is_told_in_one_sentence(tmp_path: Path) -> None:
    tmp = tmp_path / "tmp"
    tmp.mkdir()
    command = ("run", *BIKES[:-1], "rides=gen:bikes?rate=50&step=PT5M&seed=3", "--checkpoint", str(tmp_path / "run"))
    process = anabranch(*command, "--output", "none", tmp=tmp)
    commits = tmp_path / "run" / "spark" / "commits"
    while process.poll() is None and not (commits.is_dir() and any(commits.iterdir())):
        time.sleep(0.05)
    java_of(process).kill()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1, err
    assert err.startswith("error: Spark's Java process was killed by signal 9; what was committed stays\nhint: "), err
    assert err.count("\n") == 2
    assert list(tmp.iterdir()) == []


PROGRAM = """
from pathlib import Path
from anabranch import MemoryTable, run

table = MemoryTable()
text = Path("examples/bikes/student_trick.seraph").read_text()
done = run(text, {"rides": "examples/bikes/events.ndjson"}, sinks=[table])
print(done.events, done.rows, table.to_pandas("student_trick")["r.user_id"].tolist())
"""


def test_a_program_runs_queries_on_spark_and_reads_its_answers_from_memory(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "5 2 [1234, 5678]\n", done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_old_java_is_one_sentence(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    java.chmod(0o755)
    process = anabranch("run", *BIKES, tmp=tmp_path, JAVA_HOME=str(tmp_path))
    out, err = process.communicate()
    assert (process.returncode, out) == (1, "")
    assert err.startswith(f"error: Spark needs Java 17 or later, and {java} is Java 11\nhint: install one")


def test_a_checkpoint_of_other_options_is_refused_before_spark_starts(tmp_path: Path) -> None:
    begun = tmp_path / "run" / "spark" / "offsets" / "0"
    begun.parent.mkdir(parents=True)
    begun.write_text("v1\n{}\n" + json.dumps({"streams": {"rides": {}}}))
    options = {"streams": {"rides": "elsewhere.ndjson"}, "ingestion": {}, "lateness": None, "late": "drop"}
    (tmp_path / "run" / "anabranch.json").write_text(json.dumps({"format": FORMAT, "options": options}))
    process = anabranch("run", *BIKES, "--checkpoint", str(tmp_path / "run"), tmp=tmp_path)
    _, err = process.communicate()
    assert process.returncode == 1
    assert "streams: rides was elsewhere.ndjson and is examples/bikes/events.ndjson" in err


def test_a_run_survives_kills_of_its_driver_its_java_and_its_workers(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "tools/kill_loop.py",
        *("--inputs", "files", "--events", "4000", "--batch", "400", "--kills", "3", "--longest", "22"),
    ]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "one file: equal" in done.stdout
