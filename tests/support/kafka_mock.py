"""A Kafka cluster for tests: librdkafka's mock brokers in a process of their own, over the real protocol.

The child takes commands as JSON lines and ends when its standard input closes, so it never outlives the test. What the
mock cannot do: aborted transactions stay visible, an offset asked for by time is always the end, and a partition holds
some 5 MB or 100,000 records, the oldest of which go first.

Invariant: brokers listen on 127.0.0.1 only; nothing is left when the `with` block ends.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_PRODUCER = 0
_UNKNOWN_TOPIC = 3
_QUIET = (b"log_level", b"0")


class KafkaMock:
    """The running cluster: where it listens, and what one can do to it."""

    def __init__(self, child: subprocess.Popen[str]) -> None:
        self._child = child
        self.bootstrap: str = self._answer()

    def create(self, topic: str, partitions: int = 1) -> str:
        self._tell("create", topic, partitions)
        return topic

    def delete(self, topic: str) -> None:
        self._tell("delete", topic)

    def expire(self, topic: str, partition: int, before: int) -> None:
        """What retention does: records before an offset are gone."""
        self._tell("expire", topic, partition, before)

    def down(self) -> None:
        """Every broker closes its connections and refuses new ones."""
        self._tell("down")

    def up(self) -> None:
        self._tell("up")

    def fail(self, api_key: int, *codes: int) -> None:
        """The next requests of a kind are answered with these errors."""
        self._tell("fail", api_key, list(codes))

    def hide(self, topic: str) -> None:
        """Brokers say that they do not know the topic, and do not make it either."""
        self._tell("hide", topic)

    def _tell(self, *command: Any) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps(command) + "\n")
        self._child.stdin.flush()
        assert self._answer() == 0, f"the mock cluster refuses {command}"

    def _answer(self) -> Any:
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        assert line, "the mock cluster has ended"
        return json.loads(line)


@contextmanager
def kafka_mock(brokers: int = 1) -> Iterator[KafkaMock]:
    """A cluster without topics, for as long as the block runs."""
    child = subprocess.Popen(
        [sys.executable, __file__, str(brokers)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        yield KafkaMock(child)
    finally:
        child.stdin.close()
        try:
            child.wait(10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        child.stdout.close()


# --- the child --------------------------------------------------------------------------------------------------------


def _library() -> ctypes.CDLL:
    """The librdkafka that confluent-kafka brings along: its mock's functions are not part of the Python package."""
    package = importlib.util.find_spec("confluent_kafka")
    assert package is not None
    assert package.origin is not None
    folder = Path(package.origin).parent
    shipped = [
        *folder.parent.glob("confluent_kafka.libs/librdkafka*"),
        *folder.glob(".dylibs/librdkafka*"),
    ]
    return ctypes.CDLL(str(shipped[0]) if shipped else ctypes.util.find_library("rdkafka"))


def _serve(brokers: int) -> None:
    kafka = _library()
    for name in ("rd_kafka_conf_new", "rd_kafka_new", "rd_kafka_mock_cluster_new"):
        getattr(kafka, name).restype = ctypes.c_void_p
    kafka.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
    reason = ctypes.create_string_buffer(512)
    settings = ctypes.c_void_p(kafka.rd_kafka_conf_new())
    kafka.rd_kafka_conf_set(settings, *_QUIET, reason, len(reason))
    handle = ctypes.c_void_p(kafka.rd_kafka_new(_PRODUCER, settings, reason, len(reason)))
    assert handle, reason.value.decode()
    cluster = ctypes.c_void_p(kafka.rd_kafka_mock_cluster_new(handle, brokers))
    print(json.dumps(kafka.rd_kafka_mock_cluster_bootstraps(cluster).decode()), flush=True)
    for line in sys.stdin:
        match json.loads(line):
            case ["create", topic, partitions]:
                done = kafka.rd_kafka_mock_topic_create(cluster, topic.encode(), partitions, 1)
            case ["delete", topic]:
                done = kafka.rd_kafka_mock_topic_delete(cluster, topic.encode())
            case ["expire", topic, partition, before]:
                done = kafka.rd_kafka_mock_partition_delete_records(
                    cluster, topic.encode(), partition, ctypes.c_int64(before)
                )
            case ["hide", topic]:
                kafka.rd_kafka_mock_topic_set_error(cluster, topic.encode(), _UNKNOWN_TOPIC)
                done = 0
            case ["down"]:
                done = kafka.rd_kafka_mock_broker_set_down(cluster, -1)
            case ["up"]:
                done = kafka.rd_kafka_mock_broker_set_up(cluster, -1)
            case ["fail", api_key, codes]:
                array = (ctypes.c_int * len(codes))(*codes)
                kafka.rd_kafka_mock_push_request_errors_array(cluster, ctypes.c_int16(api_key), len(codes), array)
                done = 0
            case _:
                done = -1
        print(json.dumps(done), flush=True)


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
    # The cluster dies with its process; taking it down politely would wait for its clients.
