"""The WebSocket receiver: messages become records, and a connection that ends is made again."""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from typing import Any

import pytest
from tests.support.push import free_port, records_in, wait_until
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve

from anabranch.errors import StreamError
from anabranch.sources.receivers.websocket import WebSocketReceiver
from anabranch.sources.spool import Spool


@contextmanager
def serving(talk: Callable[[ServerConnection], None], **options: Any) -> Iterator[str]:
    """A server that talks to everybody who connects; its address."""
    with serve(talk, "127.0.0.1", 0, **options) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
        finally:
            server.shutdown()
            thread.join()


def listen(connection: ServerConnection) -> None:
    """Hear what comes until the other side goes."""
    for _ in connection:
        pass


def test_messages_are_records_or_lines_of_records(spool: Spool) -> None:
    def talk(connection: ServerConnection) -> None:
        connection.send('{"n": 1, "t": "é"}')
        connection.send(b'{"n": 2}\n{"n": 3}\n')
        connection.send('{\n"n": 4}')
        connection.send("")
        connection.send("oops")
        listen(connection)

    with serving(talk) as url:
        receiver = WebSocketReceiver(url)
        receiver.start(spool)
        wait_until(lambda: receiver.received == 5)
        receiver.stop()
        assert not receiver.running
    assert receiver.error is None
    read = records_in(spool.directory)
    assert [one["n"] for one in read[:4]] == [1, 2, 3, 4]
    assert read[4].startswith("not JSON")


def test_a_large_message_passes(spool: Spool) -> None:
    def talk(connection: ServerConnection) -> None:
        connection.send('"' + "x" * (5 << 20) + '"')
        listen(connection)

    with serving(talk) as url:
        receiver = WebSocketReceiver(url)
        receiver.start(spool)
        wait_until(lambda: receiver.received)
        receiver.stop()
    assert [len(one) for one in records_in(spool.directory)] == [5 << 20]


def test_the_subscription_is_sent_with_every_connection_and_breaks_are_mended(spool: Spool) -> None:
    heard: list[Any] = []

    def talk(connection: ServerConnection) -> None:
        heard.append(connection.recv())
        connection.send(str(len(heard)))
        if len(heard) == 2:
            connection.socket.close()  # without a goodbye
        elif len(heard) == 3:
            listen(connection)

    states: list[str] = []
    with serving(talk) as url:
        receiver = WebSocketReceiver(url, subscribe='{"op": "subscribe"}')
        receiver.on_state = states.append
        receiver.start(spool)
        wait_until(lambda: receiver.received == 3)
        receiver.stop()
    assert heard == ['{"op": "subscribe"}'] * 3
    assert records_in(spool.directory) == [1, 2, 3]
    assert sum("trying again in" in state for state in states) == 2
    assert states[-1] == "stopped"


def test_many_messages_keep_their_order(spool: Spool) -> None:
    def talk(connection: ServerConnection) -> None:
        for n in range(3000):
            connection.send(str(n))

    with serving(talk) as url:
        receiver = WebSocketReceiver(url)
        receiver.start(spool)
        wait_until(lambda: receiver.received >= 3000)
        receiver.stop()
    assert records_in(spool.directory)[:3000] == list(range(3000))


def test_a_server_that_refuses_from_the_beginning_ends_it(spool: Spool) -> None:
    def refuse(connection: ServerConnection, _request: Any) -> Any:
        return connection.respond(HTTPStatus.FORBIDDEN, "no")

    with serving(listen, process_request=refuse) as url:
        receiver = WebSocketReceiver(url.replace("//", "//me:secret@") + "/x?token=secret")
        receiver.start(spool)
        assert receiver.join(10)
    assert "/x: refused with status 403\nhint: " in str(receiver.error)
    assert "secret" not in str(receiver.error)


def test_a_server_that_is_overloaded_or_gone_is_asked_again(spool: Spool) -> None:
    answers = [HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS]

    def refuse(connection: ServerConnection, _request: Any) -> Any:
        return connection.respond(answers.pop(), "later") if answers else None

    def talk(connection: ServerConnection) -> None:
        connection.send("1")
        listen(connection)

    states: list[str] = []
    with serving(talk, process_request=refuse) as url:
        receiver = WebSocketReceiver(url)
        receiver.on_state = states.append
        receiver.start(spool)
        wait_until(lambda: receiver.received == 1)
        receiver.stop()
    assert any("answered with status 429" in state for state in states)
    assert any("answered with status 503" in state for state in states)


def test_a_message_that_is_not_utf_8_breaks_the_connection_and_nothing_else(spool: Spool) -> None:
    talks: list[int] = []

    def talk(connection: ServerConnection) -> None:
        talks.append(len(talks))
        connection.send(b"\xff" if len(talks) == 1 else b"1", text=True)
        with suppress(ConnectionClosed):
            listen(connection)

    with serving(talk) as url:
        receiver = WebSocketReceiver(url)
        receiver.start(spool)
        wait_until(lambda: receiver.received == 1)
        receiver.stop()
    assert records_in(spool.directory) == [1]


def test_stopping_takes_no_longer_than_two_seconds(spool: Spool) -> None:
    receiver = WebSocketReceiver(f"ws://127.0.0.1:{free_port()}")
    receiver.start(spool)
    wait_until(lambda: "Connection refused; trying again" in receiver.state)
    began = time.monotonic()
    receiver.stop()
    assert not receiver.running
    assert time.monotonic() - began < 2


def test_stopping_does_not_wait_for_a_server_that_never_answers(spool: Spool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        receiver = WebSocketReceiver(f"ws://127.0.0.1:{silent.getsockname()[1]}")
        receiver.start(spool)
        with silent.accept()[0]:
            began = time.monotonic()
            receiver.stop()
            assert not receiver.running
            assert time.monotonic() - began < 2


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "websockets.sync.client", None)
    with pytest.raises(StreamError) as caught:
        WebSocketReceiver("ws://localhost")
    assert str(caught.value) == "reading ws:// needs websockets: pip install 'anabranch[websocket]'"
