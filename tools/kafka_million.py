"""Reads a million records from Kafka in a run that is stopped and killed on the way: did each of them count once?

    python tools/kafka_million.py --records 1000000 --partitions 4 --restarts 2

The cluster is librdkafka's mock (see tests/support/kafka_mock.py), whose partitions hold some five megabytes and drop
the oldest records: so records are small, and are produced only so far ahead of what the checkpoint says was answered.
The restarts are spread over the run: first a SIGTERM, after which the run ends by itself, then a SIGKILL, and so on.
The query counts what every minute of event time brings; the sum over all minutes must be the number of records.

Invariant: it ends only processes that it started, and their children.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import confluent_kafka
import psutil

if TYPE_CHECKING:
    from tests.support.kafka_mock import KafkaMock

QUERY = """
REGISTER QUERY rides STARTING AT 2024-01-01T00:01:00Z
{
  MATCH (a)-[r:RIDE]->(b) WITHIN PT1M
  EMIT count(r) AS rides SNAPSHOT EVERY PT1M
}
"""
BEGIN = 1_704_067_200_000  # 2024-01-01, in milliseconds
MINUTE = 60_000
STEP = 6  # milliseconds from one record to the next
AHEAD = 12_000  # records of a partition that are produced and not answered yet, at most
PATIENCE = 300.0  # seconds without any progress
INTERRUPTED = 130


class Topic:
    """What is produced: records in the order of time, dealt out to the partitions in turn."""

    def __init__(self, mock: KafkaMock, records: int, partitions: int) -> None:
        self.address = f"kafka://{mock.bootstrap}/{mock.create('rides', partitions)}"
        self.records = records
        self.partitions = partitions
        self.minutes = -(-records * STEP // MINUTE)
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": mock.bootstrap,
                "log_level": 0,
                "linger.ms": 20,
                "queue.buffering.max.messages": 10**6,
            }
        )

    def produce(self, first: int, last: int) -> None:
        """The records with these numbers, which count from one; behind the last one of all comes a close."""
        for number in range(first, last + 1):
            self._put(number % self.partitions, self._record(number))
        if last == self.records:
            for partition in range(self.partitions):
                # No ride, only a later instant: a minute is answered when all partitions are beyond it.
                self._put(partition, json.dumps({"at": BEGIN + (self.minutes + 1) * MINUTE, "nodes": [{"id": 0}]}))
        if self._producer.flush(60):
            raise SystemExit("the mock cluster takes no records")

    def _put(self, partition: int, text: str) -> None:
        self._producer.produce("rides", text, partition=partition)
        self._producer.poll(0)

    @staticmethod
    def _record(number: int) -> str:
        a, b = number % 97, number % 13 + 100
        return (
            f'{{"at":{BEGIN + number * STEP},"nodes":[{{"id":{a}}},{{"id":{b}}}],'
            f'"relationships":[{{"type":"RIDE","from":{a},"to":{b}}}]}}'
        )

    def keep_ahead(self, run: Run, over: threading.Event) -> None:
        """Produce in step with what is answered, until all is produced."""
        produced = 0
        while produced < self.records and not over.is_set():
            goal = min(self.records, run.answered() + AHEAD * self.partitions)
            if goal - produced >= min(1000, self.records - produced):
                self.produce(produced + 1, goal)
                produced = goal
            over.wait(0.05)


class Run:
    """The command, its checkpoint and its output."""

    def __init__(self, root: Path, topic: Topic, batch: int) -> None:
        self._query = root / "query.seraph"
        self._query.write_text(QUERY)
        self._root = root
        self._out = root / "out.ndjson"
        self._spark = root / "checkpoint" / "spark"
        self._topic = topic
        self._batch = batch
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [
            *(sys.executable, "-m", "anabranch", "run", str(self._query), "--engine", "spark", "--master", "local[2]"),
            *("--stream", f"rides={self._topic.address}?timeout=120", "--checkpoint", str(self._root / "checkpoint")),
            *("--sink", str(self._out), "--batch-events", str(self._batch), "--summary", "json"),
            # The producer waits for the run: silence says nothing about the stream.
            *("--idle-timeout", "PT1H"),
        ]
        (self._root / "tmp").mkdir(exist_ok=True)
        with (self._root / "stderr").open("ab") as talk:
            self._process = subprocess.Popen(
                command, cwd=self._root, stdout=talk, stderr=talk, env={**os.environ, "TMPDIR": str(self._root / "tmp")}
            )

    def answered(self) -> int:
        """How many records of the topic lie before the last committed offset."""
        committed = _numbers(self._spark / "commits")
        with suppress(OSError, ValueError, KeyError):  # between two batches files come and go
            offset = json.loads((self._spark / "offsets" / str(max(committed))).read_text().splitlines()[-1])
            return sum(offset["streams"]["rides"]["partitions"].values())
        return 0

    def answers(self) -> list[tuple[str, int]]:
        """The instants that were answered, with their counts."""
        lines = self._out.read_bytes().splitlines(keepends=True) if self._out.exists() else []
        found = [json.loads(line) for line in lines if line.endswith(b"\n")]
        return [(answer["at"], answer["row"]["rides"]) for answer in found]

    def wait(self, records: int = 0, answers: int = 0) -> None:
        """Until so many records are answered and so many answers are there."""
        progress, since = (-1, -1), time.monotonic()
        while progress[0] < records or progress[1] < answers:
            assert self._process is not None
            now = (self.answered(), len(self.answers()))
            if now != progress:
                progress, since = now, time.monotonic()
            if self._process.poll() is not None:
                raise SystemExit(f"the run ended with {self._process.returncode}: {self.said()}")
            if time.monotonic() > since + PATIENCE:
                raise SystemExit(f"nothing moves after {progress[0]:,} records: {self.said()}")
            time.sleep(0.05)

    def end(self, number: signal.Signals) -> int:
        assert self._process is not None
        self._process.send_signal(number)
        return self._process.wait(PATIENCE)

    def said(self) -> str:
        return (self._root / "stderr").read_text()[-3000:]

    def events(self) -> int:
        """The total of the last summary."""
        return int(json.loads(self.said().splitlines()[-1])["events"])

    def close(self) -> None:
        if self._process is None or self._process.poll() is not None:
            return
        family = psutil.Process(self._process.pid).children(recursive=True)
        self._process.kill()
        self._process.wait()
        for child in family:
            with suppress(psutil.NoSuchProcess):
                child.kill()
        psutil.wait_procs(family, 20)


def _numbers(folder: Path) -> list[int]:
    return [int(file.name) for file in folder.iterdir() if file.name.isdigit()] if folder.is_dir() else []


def play(run: Run, topic: Topic, restarts: int) -> float:
    """The whole run with its interruptions; gives the seconds that it took."""
    begun = time.monotonic()
    for number in range(restarts):
        how = signal.SIGTERM if number % 2 == 0 else signal.SIGKILL
        run.start()
        run.wait(records=topic.records * (number + 1) // (restarts + 1))
        at = run.answered()
        code = run.end(how)
        print(f"{how.name} after {at:,} records, {time.monotonic() - begun:.0f} s: exit code {code}", flush=True)
        if how is signal.SIGTERM and code != INTERRUPTED:
            raise SystemExit(run.said())
    run.start()
    run.wait(answers=topic.minutes)
    seconds = time.monotonic() - begun
    run.end(signal.SIGTERM)
    return seconds


def judge(run: Run, topic: Topic, seconds: float) -> bool:
    answers = run.answers()
    counted = sum(count for _, count in answers)
    twice = [at for at, times in Counter(at for at, _ in answers).items() if times > 1]
    # Every record and the closing one of each partition.
    expected = topic.records + topic.partitions
    print(f"{len(answers):,} answers of {topic.minutes:,}, {len(twice)} of them twice")
    print(f"counted by the query: {counted:,} of {topic.records:,} records")
    print(f"counted by the run: {run.events():,} of {expected:,} events")
    print(f"{seconds:.0f} s, {topic.records / seconds:,.0f} records/s with all starts")
    return counted == topic.records and not twice and len(answers) == topic.minutes and run.events() == expected


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--restarts", type=int, default=2, help="interruptions: SIGTERM, SIGKILL, SIGTERM, ...")
    parser.add_argument("--batch", type=int, default=25_000, help="records per batch, at most")
    asked = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).parent.parent))
    from tests.support.kafka_mock import kafka_mock

    with kafka_mock() as mock, tempfile.TemporaryDirectory(prefix="kafka-million-") as folder:
        topic = Topic(mock, asked.records, asked.partitions)
        run = Run(Path(folder), topic, asked.batch)
        over = threading.Event()
        producing = threading.Thread(target=topic.keep_ahead, args=(run, over), name="producer")
        producing.start()
        try:
            holds = judge(run, topic, play(run, topic, asked.restarts))
        finally:
            over.set()
            producing.join()
            run.close()
    print("each record once" if holds else "NOT each record once")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
