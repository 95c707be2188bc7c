"""The MQTT receiver against a real broker: every message at least once, also those that come while we are away."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.push import BrokenSpool, Broker, free_port, needs_mosquitto, publish, records_in, wait_until

from anabranch.errors import StreamError
from anabranch.sources.receivers.mqtt import MqttReceiver
from anabranch.sources.spool import Spool


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    started = Broker(tmp_path / "broker")
    yield started
    started.stop()


def subscribed(
    broker: Broker, spool: Spool, topic: str = "city/#", states: list[str] | None = None, **options: Any
) -> MqttReceiver:
    receiver = MqttReceiver("127.0.0.1", broker.port, topic, **options)
    if states is not None:
        receiver.on_state = states.append
    receiver.start(spool)
    wait_until(lambda: "subscribed" in receiver.state or receiver.error)
    assert receiver.error is None, receiver.error
    return receiver


def received(broker: Broker, directory: Path, until: Callable[[], object], meanwhile: Callable[[], object]) -> None:
    with Spool(directory) as spool:
        receiver = subscribed(broker, spool)
        try:
            meanwhile()
            wait_until(until)
        finally:
            receiver.stop()
        assert not receiver.running
        assert receiver.error is None


@needs_mosquitto
def test_messages_are_records_or_lines_of_records(broker: Broker, tmp_path: Path) -> None:
    with Spool(tmp_path / "spool") as spool:
        receiver = subscribed(broker, spool)
        payloads = ['{"t": "é"}'.encode(), b"1\n[2]\n", b"", b"oops"]
        publish(broker.port, "city/bikes/ü", *payloads)
        publish(broker.port, "elsewhere", b"9")
        publish(broker.port, "city", b"[\n3]")
        wait_until(lambda: receiver.received == 5)
        receiver.stop()
        assert not receiver.running
    assert records_in(tmp_path / "spool") == [{"t": "é"}, 1, [2], "not JSON: Expecting value (column 1)", [3]]


@needs_mosquitto
def test_the_broker_keeps_what_comes_while_we_are_away(broker: Broker, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    received(broker, spool, lambda: records_in(spool) == [1], lambda: publish(broker.port, "city/a", b"1"))
    publish(broker.port, "city/a", b"2", b"3")
    received(broker, spool, lambda: records_in(spool) == [1, 2, 3], lambda: None)


@needs_mosquitto
def test_a_message_that_was_not_spooled_is_delivered_again(broker: Broker, tmp_path: Path) -> None:
    with BrokenSpool(tmp_path / "spool", after=False) as spool:
        receiver = subscribed(broker, spool)
        publish(broker.port, "city/a", b"1")
        assert receiver.join(10)
        assert "killed" in str(receiver.error)
    assert records_in(tmp_path / "spool") == []
    received(broker, tmp_path / "spool", lambda: records_in(tmp_path / "spool") == [1], lambda: None)


@needs_mosquitto
def test_a_message_that_was_spooled_but_not_acknowledged_stands_there_twice(broker: Broker, tmp_path: Path) -> None:
    with BrokenSpool(tmp_path / "spool", after=True) as spool:
        receiver = subscribed(broker, spool)
        publish(broker.port, "city/a", b"1")
        assert receiver.join(10)
    assert records_in(tmp_path / "spool") == [1]
    received(broker, tmp_path / "spool", lambda: records_in(tmp_path / "spool") == [1, 1], lambda: None)


@needs_mosquitto
def test_a_retained_message_comes_once_however_often_we_connect(broker: Broker, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    publish(broker.port, "city/a", b"1", retain=True)
    received(broker, spool, lambda: records_in(spool) == [1], lambda: None)
    received(broker, spool, lambda: records_in(spool)[-1] == 2, lambda: publish(broker.port, "city/a", b"2"))
    assert records_in(spool) == [1, 2]


@needs_mosquitto
def test_a_broker_that_restarts_is_found_again(broker: Broker, tmp_path: Path) -> None:
    states: list[str] = []
    with Spool(tmp_path / "spool") as spool:
        receiver = subscribed(broker, spool, states=states)
        publish(broker.port, "city/a", b"1")
        wait_until(lambda: receiver.received == 1)
        broker.stop()
        wait_until(lambda: any("trying again in" in state for state in states))
        broker.start()
        wait_until(lambda: sum("subscribed" in state for state in states) == 2)
        publish(broker.port, "city/a", b"2")
        wait_until(lambda: receiver.received == 2)
        receiver.stop()
    assert records_in(tmp_path / "spool") == [1, 2]


@needs_mosquitto
def test_many_messages_share_their_syncs_and_keep_their_order(broker: Broker, tmp_path: Path) -> None:
    appends: list[int] = []

    class Counting(Spool):
        def append(self, records: Any, cursor: Any = None) -> int:
            appends.append(super().append(records, cursor))
            return appends[-1]

    spool = tmp_path / "spool"
    received(broker, spool, lambda: True, lambda: None)
    publish(broker.port, "city/a", *(str(n).encode() for n in range(300)))
    with Counting(spool) as counting:
        receiver = subscribed(broker, counting)
        wait_until(lambda: receiver.received == 300)
        receiver.stop()
    assert records_in(spool) == list(range(300))
    assert len(appends) < 200


@needs_mosquitto
def test_a_broker_that_refuses_us_ends_it(tmp_path: Path) -> None:
    broker = Broker(tmp_path / "broker", "allow_anonymous false\n")
    try:
        with Spool(tmp_path / "spool") as spool:
            receiver = MqttReceiver("127.0.0.1", broker.port, "a", user="me", password="secret")
            receiver.start(spool)
            assert receiver.join(10)
    finally:
        broker.stop()
    assert "the broker refuses us: " in str(receiver.error)
    assert "hint: mqtt://user:password@host/topic" in str(receiver.error)
    assert "secret" not in str(receiver.error)


def test_a_broker_that_is_not_there_is_asked_again_and_stopping_is_quick(tmp_path: Path) -> None:
    with Spool(tmp_path) as spool:
        receiver = MqttReceiver("127.0.0.1", free_port(), "a")
        receiver.start(spool)
        wait_until(lambda: "Connection refused; trying again" in receiver.state)
        began = time.monotonic()
        receiver.stop()
        assert time.monotonic() - began < 2
        assert not receiver.running
        assert receiver.error is None


def test_the_session_belongs_to_the_spool_and_the_subscription(tmp_path: Path) -> None:
    def session(directory: Path, topic: str, **options: Any) -> str:
        receiver = MqttReceiver("localhost", 1883, topic, **options)
        with Spool(directory) as spool:
            receiver._spool = spool
            return receiver.client_id

    first = session(tmp_path / "a", "x")
    assert first == session(tmp_path / "b" / ".." / "a", "x")
    assert (
        len({first, session(tmp_path / "b", "x"), session(tmp_path / "a", "y"), session(tmp_path / "a", "x", qos=0)})
        == 4
    )
    assert len(first) <= 23
    assert session(tmp_path / "a", "x", client_id="mine") == "mine"


@pytest.mark.parametrize(
    ("topic", "options", "message"),
    [("a", {"qos": 2}, "qos=2\nhint: qos=1 brings every message at least once"), ("", {}, "names no topic\nhint: ")],
)
def test_what_cannot_be_promised_is_refused(topic: str, options: dict[str, int], message: str) -> None:
    with pytest.raises(StreamError) as caught:
        MqttReceiver("localhost", 1883, topic, **options)  # type: ignore[arg-type]
    assert message in str(caught.value)


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "paho.mqtt.client", None)
    with pytest.raises(StreamError) as caught:
        MqttReceiver("localhost", 1883, "a")
    assert str(caught.value) == "reading mqtt:// needs paho-mqtt: pip install 'anabranch[mqtt]'"
