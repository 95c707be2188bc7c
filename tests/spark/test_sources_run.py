"""Sources through the whole pipeline: whatever the records come in, the answers are those of the engine alone."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import socket
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.support.jobs import changed, job_for, queries_of
from tests.support.push import Broker, free_port, needs_mosquitto, publish, wait_until
from tests.support.spark_runs import Lines, Runner
from tests.support.watched import Watched

from anabranch.engine.answers import Answer
from anabranch.engine.progress import LatePolicy
from anabranch.errors import StreamError
from anabranch.formats import deadletter
from anabranch.formats.answers import json_lines
from anabranch.formats.deadletter import MalformedRecord
from anabranch.formats.ndjson import write_ndjson
from anabranch.formats.parquet import write_parquet
from anabranch.model.event import Event
from anabranch.model.values import Node, Relationship
from anabranch.runner.folder import RunFolder
from anabranch.runner.job import Job
from anabranch.runner.receiving import Receivers
from anabranch.sinks.files import LinesFile
from anabranch.sources.base import Limit
from anabranch.sources.files import FileSource
from anabranch.sources.following import FollowedFiles
from anabranch.sources.open import open_source
from anabranch.sources.stream_specs import open_stream, stream_specs
from anabranch.syntax.languages import script

SECOND = 1_000_000
MINUTE = 60 * SECOND
QUERY = """
    REGISTER QUERY stops STARTING AT 1970-01-01T00:01:00Z
    {
      MATCH (b:Bike)-[r:RIDE]->(s:Stop) WITHIN PT2M
      WITH s.name AS stop, count(r) AS rides, max(b.weight) AS heaviest
      EMIT stop, rides, heaviest ORDER BY stop SNAPSHOT EVERY PT1M
    }
"""


def ride(index: int) -> Event:
    """A ride for every two seconds."""
    bike, stop = index % 17, index * 7 % 5 + 100
    nodes = (Node(bike, ("Bike",), {"weight": 15 + bike / 4}), Node(stop, ("Stop",), {"name": f"Königstraße {stop}"}))
    return Event(2 * SECOND * index, nodes, (Relationship(None, "RIDE", bike, stop),))


def rides(minutes: int) -> list[Event]:
    """Minutes of rides, from the first instant to the one that ends the last window."""
    return [ride(index) for index in range(minutes * 30 + 1)]


def lines_of(events: Sequence[Event]) -> list[bytes]:
    file = io.BytesIO()
    write_ndjson(events, file)
    return file.getvalue().splitlines(keepends=True)


def told_here(job: Job) -> tuple[list[Answer], list[bytes]]:
    """What the engine in this process makes of a job's input: the answers, and the records that it sets aside."""
    engine = job.engine()
    engine.reconcile(job.queries)
    letters: list[bytes] = []
    for stream in job.streams:
        decode, source = stream.decoding.decoder(), stream.source
        at = source.begin()
        while not source.ended(at):
            to = source.ahead(at, Limit())
            for piece in source.pieces(at, to):
                for record in source.read(piece, decode):
                    aside = (
                        [record]
                        if isinstance(record, MalformedRecord)
                        else map(deadletter.late, engine.push(stream.name, [record]).late)
                    )
                    letters += map(deadletter.letter, aside)
            at = to
    engine.finish(job.options.until, job.options.drain)
    return engine.take(), letters


def text_of(answers: Sequence[Answer]) -> str:
    return b"".join(json_lines(answer.parts()) for answer in answers).decode()


def rows_of(text: str | bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


# --- forms of records -------------------------------------------------------------------------------------------------

LOAD = """
    LOAD STREAM FROM '{file}' AS record AT datetime({{epochSeconds: toInteger(record.second)}}) INTO rides
    WITH record WHERE record.kind <> 'test'
    MERGE (b:Bike {{id: toInteger(record.bike)}})
    MERGE (s:Stop {{name: record.stop}})
    CREATE (b)-[:RIDE]->(s)
    SET b.weight = toFloat(record.weight)
"""
RECORDS = [
    {
        "second": index * 2,
        "bike": index % 17,
        "stop": f'Platz "{index % 3}",\nSüd',
        "weight": 15.5 + index % 4,
        "kind": "test" if index % 10 == 9 else "ride",
    }
    for index in range(151)
]


def as_csv(records: Sequence[dict[str, Any]]) -> bytes:
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, list(records[0]))
    writer.writeheader()
    writer.writerows(records)
    return file.getvalue().encode()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("rentals.ndjson", "".join(json.dumps(record) + "\n" for record in RECORDS).encode()),
        ("rentals.csv", as_csv(RECORDS)),
        ("rentals.csv.gz", gzip.compress(as_csv(RECORDS))),
    ],
)
def test_records_of_any_shape_are_told_as_without_spark(
    runner: Runner, tmp_path: Path, name: str, content: bytes
) -> None:
    (tmp_path / name).write_bytes(content)
    text = LOAD.format(file=name) + QUERY
    streams = tuple(
        open_stream(spec, lambda name, address, events: open_source(name, address, records_are_events=events))
        for spec in stream_specs([], [script(text, str(tmp_path / "query.seraph"))])
    )
    job = changed(Job(streams, queries_of(text), ordered=True, forms=("json", "typed")), batch_events=40)
    lines, run = runner.run(job)
    assert lines.text.decode() == text_of(told_here(job)[0])
    assert run.progress.status["events"] == sum(record["kind"] == "ride" for record in RECORDS)
    assert [row["row"]["rides"] for row in rows_of(lines.text)][-3:] == [18, 18, 18]


def write_mixed(events: Sequence[Event], folder: Path) -> None:
    """One part of each kind, in the order of their names."""
    cuts = [len(events) * part // 4 for part in range(5)]
    plain, zipped, table, listed = (events[start:stop] for start, stop in pairwise(cuts))
    (folder / "a.ndjson").write_bytes(b"".join(lines_of(plain)))
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(b"".join(lines_of(zipped))))
    write_parquet(table, str(folder / "c.parquet"))
    (folder / "d.json").write_bytes(b"[" + b",".join(lines_of(listed)) + b"]")


@pytest.mark.parametrize(
    "write",
    [
        lambda events, folder: (folder / "e.ndjson.gz").write_bytes(gzip.compress(b"".join(lines_of(events)))),
        lambda events, folder: write_parquet(events, str(folder / "e.parquet")),
        write_mixed,
    ],
    ids=["gzip", "parquet", "mixed"],
)
def test_gzip_and_parquet_are_told_byte_for_byte_as_plain_lines(
    runner: Runner, tmp_path: Path, write: Callable[[Sequence[Event], Path], object]
) -> None:
    events = rides(5)
    plain = job_for(QUERY, runner.write({"plain": events}))
    (tmp_path / "input").mkdir()
    write(events, tmp_path / "input")
    lines, run = runner.run(job_for(QUERY, {"input": FileSource("input", str(tmp_path / "input"))}))
    assert lines.text.decode() == text_of(told_here(plain)[0])
    assert lines.text.count(b"\n") == 25
    assert run.progress.status["events"] == len(events)


@pytest.mark.parametrize("cut", [-20, 40], ids=["cut off", "overwritten"])
def test_a_broken_gzip_file_ends_the_run_with_its_name_and_a_hint(runner: Runner, tmp_path: Path, cut: int) -> None:
    packed = gzip.compress(b"".join(lines_of(rides(5))))
    folder = tmp_path / "input"
    folder.mkdir()
    (folder / "a.ndjson").write_bytes(b"".join(lines_of(rides(1))))
    (folder / "b.ndjson.gz").write_bytes(packed[:cut] if cut < 0 else packed[:cut] + b"\xff" * 30 + packed[cut + 30 :])
    with pytest.raises(StreamError) as raised:
        runner.run(job_for(QUERY, {"input": FileSource("input", str(folder))}, batch_events=31))
    assert str(raised.value).startswith(f"{folder}/b.ndjson.gz: not a whole gzip file: ")
    assert str(raised.value).splitlines()[-1].startswith("hint: it was cut off")


def test_a_run_that_fails_before_its_first_task_does_not_spoil_the_session(runner: Runner, tmp_path: Path) -> None:
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    job = job_for(QUERY, runner.write({"input": rides(2)}))
    before, _ = runner.run(job, "before")
    with pytest.raises(StreamError, match="holds no events\nhint: files of events end with"):
        runner.run(job_for(QUERY, {"input": FileSource("input", str(nothing))}))
    after, _ = runner.run(job, "after")
    assert after.text == before.text
    assert before.text.count(b"\n") == 10


# --- input that comes while the run goes on ---------------------------------------------------------------------------


def test_a_watched_directory_is_read_as_files_come_and_goes_on_after_a_restart(runner: Runner, tmp_path: Path) -> None:
    folder = tmp_path / "input"
    folder.mkdir()
    lines = lines_of(rides(6))
    parts = [b"".join(lines[first : first + 30]) for first in range(0, 180, 30)]

    def arrive(number: int) -> None:
        """As one should write into a watched directory: under another name first."""
        (folder / ".coming").write_bytes(parts[number] if number % 2 else gzip.compress(parts[number]))
        os.rename(folder / ".coming", folder / f"{9 - number}.ndjson{'' if number % 2 else '.gz'}")

    job = job_for(QUERY, {"input": FollowedFiles("input", str(folder))})
    out = tmp_path / "out.ndjson"
    arrive(0)
    watched = Watched(partial(arrive, 1), partial(arrive, 2))
    runner.run(job, should_stop=watched.reached(answers=2), sinks=[LinesFile(out), watched])
    arrive(3)
    watched = Watched(partial(arrive, 4), partial(arrive, 5), before=watched)
    runner.run(job, should_stop=watched.reached(answers=5), sinks=[LinesFile(out), watched])
    expected = text_of(told_here(job_for(QUERY, runner.write({"input here": rides(6)})))[0])
    assert out.read_text() == "".join(expected.splitlines(keepends=True)[:25])


Send = Callable[[Sequence[bytes]], None]


@contextmanager
def socket_peer(tmp_path: Path) -> Iterator[tuple[str, Send, bool]]:
    port = free_port()

    def send(lines: Sequence[bytes]) -> None:
        with closing(socket.create_connection(("127.0.0.1", port), 10)) as client:
            client.sendall(b"".join(lines))

    yield f"socket://127.0.0.1:{port}?listen=1", send, False


@contextmanager
def mqtt_peer(tmp_path: Path) -> Iterator[tuple[str, Send, bool]]:
    broker = Broker(tmp_path / "broker")
    try:
        yield (
            f"mqtt://127.0.0.1:{broker.port}/city/rides",
            lambda lines: publish(broker.port, "city/rides", *lines),
            True,
        )
    finally:
        broker.stop()


@pytest.mark.parametrize("peer", [socket_peer, pytest.param(mqtt_peer, marks=needs_mosquitto)], ids=["socket", "mqtt"])
def test_what_is_pushed_is_counted_once_over_a_restart(
    runner: Runner, tmp_path: Path, peer: Callable[[Path], Any]
) -> None:
    lines = lines_of(rides(6))
    out = tmp_path / "out.ndjson"
    before: Watched | None = None
    with peer(tmp_path) as (address, send, keeps):

        def run(answers: int, *sent: Sequence[bytes]) -> int:
            receivers = Receivers(RunFolder(str(tmp_path / "checkpoint")))
            job = job_for(QUERY, {"rides": receivers.open("rides", address, True)})
            nonlocal before
            before = watched = Watched(*(partial(send, part) for part in sent[1:]), before=before)
            try:
                receivers.start()
                [(_, receiver, _)] = receivers._receivers
                wait_until(lambda: "listening" in receiver.state or "subscribed" in receiver.state)
                send(sent[0])
                _, run = runner.run(job, should_stop=watched.reached(answers=answers), sinks=[LinesFile(out), watched])
            finally:
                receivers.stop()
            return int(run.progress.status["events"])

        assert run(2, lines[:40], lines[40:80]) >= 61
        waiting, rest = lines[80:120], lines[120:]
        if keeps:
            send(waiting)
        assert run(5, *([rest] if keeps else [waiting, rest])) >= 151
    expected = text_of(told_here(job_for(QUERY, runner.write({"here": rides(6)})))[0])
    assert out.read_text() == "".join(expected.splitlines(keepends=True)[:25])


# --- what is late or broken -------------------------------------------------------------------------------------------


def test_records_set_aside_are_in_the_dead_letters_once_also_after_a_restart(runner: Runner, tmp_path: Path) -> None:
    lines = lines_of(rides(10))
    for index in range(25, 300, 25):
        lines[index] = b'{"at": "gestern", "n\xc3\xb6des": []}\n' if index % 2 else lines[index - 20]
    folder = tmp_path / "input"
    folder.mkdir()
    for number, first in enumerate(range(0, len(lines), 100)):
        (folder / f"{number}.ndjson").write_bytes(b"".join(lines[first : first + 100]))
    job = job_for(QUERY, {"input": FileSource("input", str(folder))}, batch_events=40)
    out = tmp_path / "out.ndjson"
    for batches in (2, 3, 1000):
        watched = Watched()
        _, run = runner.run(job, should_stop=watched.reached(batches), sinks=[LinesFile(out), watched])
    answers, letters = told_here(job)
    assert out.read_text() == text_of(answers)
    assert sorted((tmp_path / "dead.ndjson").read_bytes().splitlines(keepends=True)) == sorted(letters)
    assert len(letters) == 11
    status = run.progress.status
    assert (status["malformed"], status["late"], status["events"]) == (6, 5, len(lines) - 11)


def net(rows: Sequence[dict[str, Any]]) -> Counter[str]:
    """What was told, less what was retracted, plus what was corrected."""
    found: Counter[str] = Counter()
    for row in rows:
        weight = -1 if row.pop("correction", "") == "retracted" else 1
        found[json.dumps(row, sort_keys=True)] += weight
    return Counter({row: count for row, count in found.items() if count})


def test_corrections_lead_to_the_answers_of_the_sorted_stream(runner: Runner, tmp_path: Path) -> None:
    text = (
        QUERY
        + """
        REGISTER QUERY busy STARTING AT 1970-01-01T00:01:00Z
        {
          MATCH (b:Bike)-[r:RIDE]->(s:Stop) WITHIN PT1M
          WITH s.name AS stop, count(r) AS rides WHERE rides > 5
          EMIT stop, rides ON ENTERING EVERY PT30S
        }
    """
    )
    events = rides(5)
    shuffled = events[:-1]
    Random(3).shuffle(shuffled)
    shuffled.append(events[-1])
    job = job_for(text, runner.write({"input": shuffled}, files=3), batch_events=30, late=LatePolicy("correct"))
    first, _ = runner.run(job, should_stop=(watched := Watched()).reached(2), sinks=[watched])
    second, run = runner.run(job)
    told = Lines()
    told.batches = {**first.batches, **second.batches}
    assert run.progress.status["corrected"] > 0
    assert run.progress.status["late"] == 0
    assert b'"correction": "retracted"' in told.text
    expected = text_of(told_here(job_for(text, runner.write({"sorted": events})))[0])
    assert net(rows_of(told.text)) == net(rows_of(expected))


def test_queries_may_change_over_a_restart_and_windows_are_kept(runner: Runner, tmp_path: Path) -> None:
    def query(name: str, width: str, what: str = "count(r) AS rides") -> str:
        return f"""
            REGISTER QUERY {name} STARTING AT 1970-01-01T00:01:00Z
            {{ MATCH ()-[r:RIDE]->() WITHIN {width} EMIT {what} SNAPSHOT EVERY PT1M }}
        """

    sources = runner.write({"input": rides(10)})
    before = query("kept", "PT4M") + query("gone", "PT1M") + query("other", "PT1M")
    after = query("kept", "PT4M") + query("new", "PT3M") + query("other", "PT2M")
    out = tmp_path / "out.ndjson"
    job = job_for(before, sources, batch_events=60)
    watched = Watched()
    runner.run(job, should_stop=watched.reached(3), sinks=[LinesFile(out), watched])
    kept = [row["at"] for row in rows_of(out.read_text()) if row["query"] == "kept"]
    assert runner.notes == []
    runner.run(replace(job, queries=queries_of(after)), sinks=[LinesFile(out)])
    assert sorted(runner.notes) == [
        "query gone is gone",
        "query new is new: it starts from what the windows hold",
        "query other has changed: it starts from what the windows hold",
    ]
    told = rows_of(out.read_text())
    whole = rows_of(text_of(told_here(job_for(after, sources))[0]))
    assert [row for row in told if row["query"] == "kept"] == [row for row in whole if row["query"] == "kept"]
    # What the new queries see reaches back four minutes, so from the last instant before the restart they are whole.
    for name in ("new", "other"):
        wanted = [row for row in whole if row["query"] == name and row["at"] > kept[-1]]
        assert wanted
        assert [row for row in told if row["query"] == name][-len(wanted) :] == wanted
    assert max(row["at"] for row in told if row["query"] == "gone") <= max(kept)
