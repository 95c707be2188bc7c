"""Receivers over TLS: a certificate that is trusted lets records through, one that is not ends the receiver."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.push import Broker, certificate, needs_mosquitto, publish, records_in, serving, wait_until
from websockets.sync.server import ServerConnection, serve

from anabranch.sources.receivers import Receiver
from anabranch.sources.receivers.mqtt import MqttReceiver
from anabranch.sources.receivers.polling import HttpPollReceiver
from anabranch.sources.receivers.sse import SseReceiver
from anabranch.sources.receivers.websocket import WebSocketReceiver
from anabranch.sources.spool import Spool


@pytest.fixture
def hold() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture(params=[True, False], ids=["trusted", "not trusted"])
def trusted(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def tls(tmp_path: Path, trusted: bool, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    context, path = certificate(tmp_path)
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(path))
    return context


def check(receiver: Receiver, spool: Spool, trusted: bool) -> None:
    receiver.start(spool)
    wait_until(lambda: receiver.received or not receiver.running)
    began = time.monotonic()
    receiver.stop()
    assert not receiver.running
    assert time.monotonic() - began < 2
    if trusted:
        assert receiver.error is None
        assert records_in(spool.directory) == [1]
    else:
        assert "the certificate is not trusted: self-signed certificate" in str(receiver.error)


def test_polling(spool: Spool, tls: ssl.SSLContext, trusted: bool) -> None:
    with serving((200, {}, b"[1]"), tls=tls) as script:
        check(HttpPollReceiver(script.url), spool, trusted)


def test_server_sent_events_that_fall_silent(
    spool: Spool, tls: ssl.SSLContext, trusted: bool, hold: threading.Event
) -> None:
    def play(handler: Any) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n")
        hold.wait(30)

    with serving(play, tls=tls) as script:
        check(SseReceiver(script.url), spool, trusted)
        hold.set()


def test_websockets(spool: Spool, tls: ssl.SSLContext, trusted: bool) -> None:
    def talk(connection: ServerConnection) -> None:
        connection.send("1")
        for _ in connection:
            pass

    with serve(talk, "127.0.0.1", 0, ssl=tls) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            check(WebSocketReceiver(f"wss://127.0.0.1:{server.socket.getsockname()[1]}"), spool, trusted)
        finally:
            server.shutdown()
            thread.join()


@needs_mosquitto
def test_mqtt(spool: Spool, tls: ssl.SSLContext, trusted: bool, tmp_path: Path) -> None:
    settings = f"allow_anonymous true\ncertfile {tmp_path}/certificate.pem\nkeyfile {tmp_path}/key.pem\n"
    broker = Broker(tmp_path / "broker", settings, plain=True)
    try:
        publish(broker.plain_port, "a", b"1", retain=True)
        check(MqttReceiver("127.0.0.1", broker.port, "a", tls=True), spool, trusted)
    finally:
        broker.stop()
