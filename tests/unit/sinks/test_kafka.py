"""Kafka as a sink, against librdkafka's mock brokers over the real protocol."""

from __future__ import annotations

import itertools
import json
import socket
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.kafka_mock import KafkaMock, kafka_mock

from anabranch.errors import EngineError
from anabranch.sinks import kafka
from anabranch.sinks.base import RenderedAnswer
from anabranch.sinks.kafka import KafkaSink
from anabranch.sources import kafka_client
from anabranch.sources.address import parse_address

confluent_kafka = pytest.importorskip("confluent_kafka")

AT = 1_665_758_700_000_000
INSTANT = "2022-10-14T14:45:00Z"
_names = (f"topic-{number}" for number in itertools.count())


class MemoryLedger(dict[str, object]):
    """Keeps what a disk would: JSON."""

    def put(self, key: str, value: object) -> None:
        self[key] = json.loads(json.dumps(value))


class Cut(Exception):
    """The process ends here."""


@pytest.fixture(scope="module")
def brokers() -> Iterator[KafkaMock]:
    with kafka_mock() as mock:
        yield mock


@pytest.fixture
def topic(brokers: KafkaMock) -> str:
    return brokers.create(next(_names), 3)


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    for _, reached in [*kafka_client._readers, *kafka_client._admins]:
        kafka_client.forget(reached)


def sink(mock: KafkaMock, topic: str, ledger: MemoryLedger | None = None, **options: Any) -> KafkaSink:
    one = KafkaSink(mock.bootstrap, topic, {"timeout": "20", **options})
    one.open(MemoryLedger() if ledger is None else ledger)
    return one


def answer(query: str, number: int, *rows: Any) -> RenderedAnswer:
    lines = b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)
    return RenderedAnswer(query, number, AT + number * 1_000_000, len(rows), lines)


def messages(mock: KafkaMock, topic: str) -> list[Any]:
    reached = kafka_client.Topic(mock.bootstrap, topic, timeout=20)
    numbers = kafka_client.partitions(reached)
    ends = kafka_client.offsets(reached, numbers, "latest")
    return [
        message
        for number in numbers
        for some in kafka_client.records(reached, number, 0, ends[number])
        for message in some
    ]


def values(mock: KafkaMock, topic: str) -> list[Any]:
    return [json.loads(message.value()) for message in messages(mock, topic)]


def test_each_row_is_a_message_with_its_key_and_headers(brokers: KafkaMock, topic: str) -> None:
    sink(brokers, topic).write(7, [answer("tricks", 0, {"user": "Zoë"}, {"user": 2})])
    first, second = messages(brokers, topic)
    assert first.value().decode() == '{"user": "Zoë"}'
    assert (first.key().decode(), second.key().decode()) == (f"tricks/{INSTANT}/0/0", f"tricks/{INSTANT}/0/1")
    assert first.headers() == [("query", b"tricks"), ("at", INSTANT.encode()), ("batch", b"7")]


def test_answers_of_a_query_stay_in_their_order_and_queries_spread(brokers: KafkaMock, topic: str) -> None:
    one = sink(brokers, topic)
    queries = ["café", "b", "c", "d", "e", "f"]
    for batch in range(3):
        one.write(batch, [answer(query, batch, [query, batch, 0], [query, batch, 1]) for query in queries])
    found = messages(brokers, topic)
    for query in queries:
        rows = [json.loads(message.value()) for message in found if dict(message.headers())["query"] == query.encode()]
        assert rows == [[query, batch, row] for batch in range(3) for row in range(2)]
    assert len({message.partition() for message in found}) > 1


def test_a_batch_without_rows_sends_nothing(brokers: KafkaMock, topic: str) -> None:
    ledger = MemoryLedger()
    sink(brokers, topic, ledger).write(0, [answer("tricks", 0)])
    sink(brokers, topic, ledger).write(1, [])
    assert values(brokers, topic) == []
    assert ledger == {}


def test_more_rows_than_the_producer_holds_are_all_sent(brokers: KafkaMock, topic: str) -> None:
    one = sink(brokers, topic, None, **{"rdkafka.queue.buffering.max.messages": "100"})
    one.write(0, [answer("tricks", 0, *range(5000))])
    assert values(brokers, topic) == list(range(5000))


@pytest.mark.parametrize("cut_after", [0, 1, 4, 5], ids=lambda rows: f"after {rows} rows")
def test_a_batch_that_was_cut_off_and_comes_again_is_there_once(
    brokers: KafkaMock, topic: str, monkeypatch: pytest.MonkeyPatch, cut_after: int
) -> None:
    ledger = MemoryLedger()
    batches = [
        [answer("tricks", 0, 0, 1)],
        [answer("tricks", 1, 2, 3), answer("other", 0, 4, 5), answer("tricks", 2, 6)],
        [answer("tricks", 3, 7)],
    ]
    before = sink(brokers, topic, ledger)
    before.write(0, batches[0])
    send, sent = KafkaSink._send, itertools.count()

    def cut(self: KafkaSink, producer: Any, *row: Any) -> None:
        if next(sent) == cut_after:
            producer.flush(20)
            raise Cut
        send(self, producer, *row)

    with monkeypatch.context() as patch:
        patch.setattr(KafkaSink, "_send", cut)
        if cut_after < 5:
            with pytest.raises(Cut):
                before.write(1, batches[1])
        else:
            before.write(1, batches[1])
    before.close()

    after = sink(brokers, topic, ledger)
    for batch in (1, 1, 2, 2):
        after.write(batch, batches[batch])
    assert sorted(values(brokers, topic)) == list(range(8))
    of_tricks = [value for value in values(brokers, topic) if value not in (4, 5)]
    assert of_tricks == [0, 1, 2, 3, 6, 7]


def test_a_batch_of_another_run_is_not_taken_for_one_that_comes_again(brokers: KafkaMock, topic: str) -> None:
    sink(brokers, topic).write(0, [answer("tricks", 0, 1)])
    sink(brokers, topic).write(0, [answer("tricks", 0, 1)])
    assert values(brokers, topic) == [1, 1]


def test_a_batch_that_comes_again_after_retention_took_it_is_sent_again(brokers: KafkaMock, topic: str) -> None:
    ledger = MemoryLedger()
    one = sink(brokers, topic, ledger)
    one.write(0, [answer("tricks", 0, 1)])
    partition = messages(brokers, topic)[0].partition()
    brokers.expire(topic, partition, 1)
    one.write(0, [answer("tricks", 0, 1)])
    ends = kafka_client.offsets(kafka_client.Topic(brokers.bootstrap, topic), [partition], "latest")
    assert ends == {partition: 2}


def test_a_write_that_failed_can_be_tried_again_by_the_same_sink() -> None:
    with kafka_mock() as mock:
        mock.create("answers")
        one = sink(mock, "answers", timeout="2")
        mock.down()
        with pytest.raises(EngineError) as error:
            one.write(3, [answer("tricks", 0, 1, 2)])
        assert str(error.value).startswith(
            f"the answers of batch 3 could not be written: kafka://{mock.bootstrap}/answers: "
        )
        mock.up()
        one.write(3, [answer("tricks", 0, 1, 2)])
        assert values(mock, "answers") == [1, 2]


def test_rows_that_brokers_refuse_are_named() -> None:
    produce, not_authorized = 0, 29
    with kafka_mock() as mock:
        mock.create("answers")
        one = sink(mock, "answers")
        mock.fail(produce, not_authorized)
        with pytest.raises(EngineError) as error:
            one.write(0, [answer("tricks", 0, 1, 2, 3)])
        assert f"row tricks/{INSTANT}/0/0 was not taken: Broker: Topic authorization failed" in str(error.value)
        assert "(and 2 more)" in str(error.value)
        one.write(0, [answer("tricks", 0, 1, 2, 3)])
        assert values(mock, "answers") == [1, 2, 3]


def test_passing_troubles_of_brokers_double_nothing() -> None:
    produce = 0
    with kafka_mock() as mock:
        mock.create("answers")
        one = sink(mock, "answers")
        mock.fail(produce, 6, 7, -195)
        one.write(0, [answer("tricks", 0, *range(10))])
        assert values(mock, "answers") == list(range(10))


def test_a_row_that_is_too_large_says_what_allows_it(brokers: KafkaMock, topic: str) -> None:
    with pytest.raises(EngineError) as error:
        sink(brokers, topic).write(0, [answer("tricks", 0, "x" * 1_200_000)])
    assert f"row tricks/{INSTANT}/0/0 of 1200002 bytes" in str(error.value)
    assert "hint: rdkafka.message.max.bytes here and max.message.bytes of the topic" in str(error.value)


def test_a_topic_that_does_not_exist_is_made_where_the_brokers_allow_it(brokers: KafkaMock) -> None:
    topic = next(_names)
    sink(brokers, topic).write(0, [answer("tricks", 0, 1)])
    assert values(brokers, topic) == [1]


def test_a_topic_that_the_brokers_do_not_make_is_named_with_those_that_exist(
    brokers: KafkaMock, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka, "_SECONDS_TO_MAKE", 0.0)
    brokers.hide(topic)
    with pytest.raises(EngineError, match=f"there is no topic `{topic}`\nhint: did you mean"):
        sink(brokers, topic)


def test_a_write_that_was_interrupted_leaves_no_rows_behind_in_the_producer(
    brokers: KafkaMock, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = sink(brokers, topic, None, **{"rdkafka.linger.ms": "1000"})

    def interrupt(self: KafkaSink, producer: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(KafkaSink, "_settle", interrupt)
        with pytest.raises(KeyboardInterrupt):
            one.write(0, [answer("tricks", 0, 1, 2)])
    one.write(0, [answer("tricks", 0, 1, 2)])
    assert values(brokers, topic) == [1, 2]


def test_a_broker_that_is_not_there_is_named_before_the_first_answer() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
    one = KafkaSink(address, "answers", {"timeout": "1"})
    with pytest.raises(EngineError, match=f"no answer from {address} within 1 s"):
        one.open(MemoryLedger())
    one.close()


def test_wrong_options_are_refused_before_anything_is_opened() -> None:
    with pytest.raises(EngineError, match="there is no option timout\nhint: did you mean timeout"):
        KafkaSink("localhost:9092", "answers", {"timout": "1"})
    with pytest.raises(EngineError, match=r"rdkafka\.enable\.idempotence cannot be set"):
        KafkaSink("localhost:9092", "answers", {"rdkafka.enable.idempotence": "false"})
    with pytest.raises(EngineError, match="there is no option from"):
        KafkaSink.from_address(parse_address("kafka://localhost/answers?from=latest"))


def test_an_address_names_brokers_and_topic() -> None:
    one = KafkaSink.from_address(parse_address("kafka://one,two:9093/answers?timeout=5"))
    assert str(one.topic) == "kafka://one:9092,two:9093/answers"
    assert one.topic.timeout == 5


def test_without_confluent_kafka_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(EngineError) as error:
        KafkaSink("localhost:9092", "answers").open(MemoryLedger())
    assert str(error.value) == "writing kafka:// needs confluent-kafka: pip install 'anabranch[kafka]'"
