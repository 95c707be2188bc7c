"""Kafka through the whole pipeline: runs that are stopped and go on count every record once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.support.jobs import job_for
from tests.support.kafka_mock import KafkaMock, kafka_mock
from tests.support.spark_runs import Runner
from tests.support.watched import Watched

from anabranch.errors import StreamError
from anabranch.runner.job import Job
from anabranch.sinks.files import LinesFile
from anabranch.sources.kafka import KafkaSource

confluent_kafka = pytest.importorskip("confluent_kafka")

PARTITIONS = 4
BEGIN = 1_704_067_200_000  # 2024-01-01, in milliseconds
STEP = 30  # milliseconds from one record to the next: two thousand a minute
PER_MINUTE = 60_000 // STEP
QUERY = """
    REGISTER QUERY rides STARTING AT 2024-01-01T00:01:00Z
    {
      MATCH (a)-[r:RIDE]->(b) WITHIN PT1M
      EMIT count(r) AS rides SNAPSHOT EVERY PT1M
    }
"""


@pytest.fixture(scope="module")
def brokers() -> Iterator[KafkaMock]:
    with kafka_mock() as mock:
        yield mock


def record(number: int) -> bytes:
    """Records count from one, so that the last one of a minute falls on the instant that ends its window."""
    nodes = [{"id": f"bike {number % 50}"}, {"id": f"Haltestelle Süd {number % 7}"}]
    ride = {"type": "RIDE", "from": nodes[0]["id"], "to": nodes[1]["id"]}
    return json.dumps({"at": BEGIN + number * STEP, "nodes": nodes, "relationships": [ride]}).encode()


def produce(brokers: KafkaMock, topic: str, numbers: Sequence[int], extra: Sequence[bytes | None] = ()) -> None:
    """Records dealt out to the partitions in turn, and what else there is into the first one."""
    producer = confluent_kafka.Producer({"bootstrap.servers": brokers.bootstrap, "log_level": 0, "linger.ms": 50})
    for number in numbers:
        producer.produce(topic, record(number), partition=number % PARTITIONS)
        producer.poll(0)
    for value in extra:
        producer.produce(topic, value, partition=0)
    assert producer.flush(60) == 0


def job(brokers: KafkaMock, topic: str, batch: int | None = None, **options: str) -> Job:
    source = KafkaSource("rides", brokers.bootstrap, topic, {"timeout": "60", **options})
    return job_for(QUERY, {"rides": source}, batch_events=batch)


def counted(path: Path) -> dict[str, Any]:
    """The answers of a file, by instant; one that came twice is a failure."""
    answers = [json.loads(line) for line in path.read_text().splitlines()]
    times = Counter(answer["at"] for answer in answers)
    assert [at for at, count in times.items() if count > 1] == []
    return {answer["at"]: answer["row"]["rides"] for answer in answers}


def test_a_run_that_is_stopped_twice_counts_every_record_once(
    runner: Runner, brokers: KafkaMock, tmp_path: Path
) -> None:
    records = 20_000
    topic = brokers.create("stopped", PARTITIONS)
    produce(brokers, topic, range(1, records + 1), [b"no event", "größer".encode("latin-1"), None])
    counting = job(brokers, topic, 2000, until="end")
    out = tmp_path / "out.ndjson"
    events = []
    for batches in (3, 3, 1000):
        watched = Watched()
        _, run = runner.run(counting, should_stop=watched.reached(batches), sinks=[LinesFile(out), watched])
        events.append(run.progress.status["events"])
    assert 0 < events[0] < events[1] < events[2] == records
    assert list(counted(out).values()) == [PER_MINUTE] * (records // PER_MINUTE)
    assert run.progress.status["malformed"] == 2
    assert len((tmp_path / "dead.ndjson").read_text().splitlines()) == 2


def test_records_that_come_while_it_runs_or_rests_are_counted_once(
    runner: Runner, brokers: KafkaMock, tmp_path: Path
) -> None:
    topic = brokers.create("growing", PARTITIONS)
    out = tmp_path / "out.ndjson"
    minutes = [range(first, first + PER_MINUTE) for first in range(1, 5 * PER_MINUTE, PER_MINUTE)]
    produce(brokers, topic, minutes[0])
    # A minute is answered when all partitions are beyond it.
    watched = Watched(*(partial(produce, brokers, topic, minute) for minute in minutes[1:3]))
    runner.run(job(brokers, topic), should_stop=watched.reached(answers=2), sinks=[LinesFile(out), watched])
    assert list(counted(out).values()) == [PER_MINUTE] * 2
    for minute in minutes[3:]:
        produce(brokers, topic, minute)
    watched = Watched(before=watched)
    runner.run(job(brokers, topic), should_stop=watched.reached(answers=4), sinks=[LinesFile(out), watched])
    assert list(counted(out).values()) == [PER_MINUTE] * 4


def test_records_that_retention_took_before_they_were_read_end_the_run_with_a_hint(
    runner: Runner, brokers: KafkaMock
) -> None:
    topic = brokers.create("expired", PARTITIONS)
    produce(brokers, topic, range(1, 401))
    watched = Watched()
    runner.run(job(brokers, topic, 100), should_stop=watched.reached(batches=2), sinks=[watched])
    brokers.expire(topic, 3, 90)
    with pytest.raises(StreamError, match=r"offsets \d\d to \d+ of partition 3 are gone .*\nhint: begin a new run"):
        runner.run(job(brokers, topic, 100), should_stop=Watched().reached(batches=100))
