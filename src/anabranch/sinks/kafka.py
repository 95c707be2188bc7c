"""Kafka as a sink: one message per row of an answer, to `kafka://host:port/topic`.

The key is `query/instant/number/row`, the value the row as JSON, the headers are query, at and batch. All answers of a
query go to one partition, so they are read in their order.

Before a batch is sent, the ends of the topic's partitions go into the ledger. When the batch comes again, the messages
behind those ends are read first, and only the rows that are missing are sent.

Invariant: when `write` returns, every row of the batch is in the topic, acknowledged by all in-sync replicas; a batch
that comes again adds no row twice.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from anabranch.errors import EngineError, StreamError
from anabranch.model.instants import format_instant
from anabranch.sinks.base import Ledger, RenderedAnswer, Sink
from anabranch.sources import kafka_client as client
from anabranch.sources.address import Address

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, Producer

_DEFAULTS: Mapping[str, str] = {"linger.ms": "5"}
_SECONDS_PER_POLL = 0.1
_SECONDS_TO_MAKE = 5.0  # that a topic which is just being made may be unknown


class KafkaSink(Sink):
    """One topic that takes the answers of all queries."""

    def __init__(self, bootstrap: str, topic: str, options: Mapping[str, str] | None = None) -> None:
        try:
            self.topic = client.topic_of(bootstrap, topic, options or {}, {})
        except StreamError as error:
            raise EngineError(str(error)) from None
        # No open transaction may hide what an earlier attempt has written.
        self._seen_by_all = replace(
            self.topic, settings=(*self.topic.settings, ("isolation.level", "read_uncommitted")), group="anabranch-sink"
        )
        self._ledger: Ledger | None = None
        self._producer: Producer | None = None
        self._partitions: list[int] = []
        self._failures: list[str] = []

    @classmethod
    def from_address(cls, address: Address) -> KafkaSink:
        """The sink of `kafka://host:port/topic?options`."""
        return cls(client.bootstrap_of(address), address.path, address.options)

    def open(self, ledger: Ledger) -> None:
        """Reaches the brokers, so that a wrong address or a missing topic ends the run before its first answer."""
        self._ledger = ledger
        try:
            self._open()
        except StreamError as error:
            raise EngineError(str(error)) from None

    def write(self, batch: int, answers: Sequence[RenderedAnswer]) -> None:
        if not any(answer.rows for answer in answers):
            return
        try:
            self._write(batch, answers)
        except BaseException as error:
            # Rows that wait in the producer would go out besides those of the next attempt.
            self._drop()
            if isinstance(error, StreamError):
                raise EngineError(f"the answers of batch {batch} could not be written: {error}") from None
            raise

    def _write(self, batch: int, answers: Sequence[RenderedAnswer]) -> None:
        producer = self._open()
        sent = self._sent(batch)
        for answer in answers:
            headers: Any = [("query", answer.query), ("at", format_instant(answer.at)), ("batch", str(batch))]
            partition = self._partitions[zlib.crc32(answer.query.encode()) % len(self._partitions)]
            for key, line in _rows(answer):
                if key not in sent:
                    self._send(producer, partition, key, line, headers)
        self._settle(producer)

    def close(self) -> None:
        self._drop()
        client.forget(self._seen_by_all)

    def _open(self) -> Producer:
        if self._producer is not None:
            return self._producer
        kafka = client.library("writing")
        settings = {
            **_DEFAULTS,
            **self.topic.client_settings(),
            "enable.idempotence": "true",
            "delivery.timeout.ms": str(max(1000, int(self.topic.timeout * 1000))),
            "on_delivery": self._delivered,
        }
        producer: Producer = client.opened(self.topic, kafka.Producer, settings)
        self._failures = []

        def ask(seconds: float) -> list[int]:
            # A producer's question makes the topic, where the brokers allow it.
            told = producer.list_topics(self.topic.name, timeout=seconds).topics[self.topic.name]
            if told.error is None:
                return sorted(told.partitions)
            if told.error.name() == "UNKNOWN_TOPIC_OR_PART" and time.monotonic() > made_until:
                raise client.missing(self.topic, producer.list_topics(timeout=seconds).topics)
            raise kafka.KafkaException(told.error)

        made_until = time.monotonic() + _SECONDS_TO_MAKE
        self._partitions = client.patiently(self.topic, ask)
        self._producer = producer
        return producer

    def _sent(self, batch: int) -> set[bytes]:
        """Return the keys that an earlier attempt at this batch has written; a first attempt notes where it begins."""
        if self._ledger is None:
            return set()
        name = f"kafka {self.topic}"
        ends = client.offsets(self._seen_by_all, self._partitions, "latest")
        match self._ledger.get(name):
            case {"batch": known, "ends": dict(begins)} if known == batch:
                lows = client.offsets(self._seen_by_all, self._partitions, "earliest")
                return {
                    key
                    for number in self._partitions
                    for messages in client.records(
                        self._seen_by_all, number, max(lows[number], begins.get(str(number), 0)), ends[number]
                    )
                    for message in messages
                    if (key := message.key()) is not None
                }
            case _:
                self._ledger.put(name, {"batch": batch, "ends": {str(number): end for number, end in ends.items()}})
                return set()

    def _send(self, producer: Producer, partition: int, key: bytes, line: bytes, headers: Any) -> None:
        kafka = client.library("writing")
        while not self._failures:
            try:
                return producer.produce(self.topic.name, line, key, partition=partition, headers=headers)
            except BufferError:
                producer.poll(_SECONDS_PER_POLL)
            except kafka.KafkaException as error:
                hint = ""
                if error.args[0].name() == "MSG_SIZE_TOO_LARGE":
                    hint = "\nhint: rdkafka.message.max.bytes here and max.message.bytes of the topic allow larger ones"
                why = f"{error.args[0].str()}{hint}"
                raise StreamError(f"{self.topic}: row {key.decode()} of {len(line)} bytes: {why}") from None
        raise self._failed()

    def _settle(self, producer: Producer) -> None:
        left = producer.flush(self.topic.timeout + 10)
        if self._failures:
            raise self._failed()
        if left:
            raise client.unanswered(self.topic, f"{left} rows were not acknowledged", False)

    def _failed(self) -> StreamError:
        more = f" (and {len(self._failures) - 1} more)" if len(self._failures) > 1 else ""
        return StreamError(f"{self.topic}: {self._failures[0]}{more}")

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failures.append(f"row {(message.key() or b'').decode()} was not taken: {error.str()}")

    def _drop(self) -> None:
        """Drop the producer with all messages that it still holds: the batch will come again."""
        if self._producer is not None:
            self._producer.purge()
            self._producer = None


def _rows(answer: RenderedAnswer) -> Iterator[tuple[bytes, bytes]]:
    name = f"{answer.query}/{format_instant(answer.at)}/{answer.number}"
    if not answer.rows:
        return
    for index, line in enumerate(answer.json.removesuffix(b"\n").split(b"\n")):
        yield f"{name}/{index}".encode(), line
