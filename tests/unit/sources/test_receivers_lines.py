"""Receivers of lines: stdin and sockets, what they share with the others, and how an address becomes one."""

from __future__ import annotations

import gzip
import io
import os
import socket
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.support.push import BrokenSpool, free_port, records_in, wait_until

from anabranch.errors import StreamError
from anabranch.sources.address import Address, parse_address
from anabranch.sources.receivers import Receiver, open_receiver
from anabranch.sources.receivers.base import Backoff
from anabranch.sources.receivers.framing import LineBuffer, Unpacker, message_records
from anabranch.sources.receivers.mqtt import MqttReceiver
from anabranch.sources.receivers.polling import HttpPollReceiver
from anabranch.sources.receivers.sockets import ListeningReceiver, SocketReceiver
from anabranch.sources.receivers.sse import SseReceiver
from anabranch.sources.receivers.stdin import StdinReceiver
from anabranch.sources.receivers.websocket import WebSocketReceiver
from anabranch.sources.spool import Spool


def finished(receiver: Receiver, spool: Spool) -> list[Any]:
    """Run a receiver to its end."""
    receiver.start(spool)
    assert receiver.join(10)
    assert receiver.error is None, receiver.error
    return records_in(spool.directory)


# stdin


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_stdin_is_read_to_its_end_plain_or_gzip(spool: Spool, pack: Any) -> None:
    data = b"\n".join(b'{"n": %d, "t": "\xc3\xa9"}' % n for n in range(20_000))
    receiver = StdinReceiver(io.BytesIO(pack(data)))
    assert finished(receiver, spool) == [{"n": n, "t": "é"} for n in range(20_000)]
    assert spool.finished
    assert receiver.received == 20_000
    assert receiver.state == "the input has ended"


@pytest.mark.parametrize("data", [b"", b"\n\n", gzip.compress(b"")], ids=["nothing", "blank", "gzip"])
def test_an_empty_stdin_ends_at_once(spool: Spool, data: bytes) -> None:
    assert finished(StdinReceiver(io.BytesIO(data)), spool) == []
    assert spool.finished


def test_a_line_that_is_typed_is_in_the_spool_before_the_next_one(spool: Spool) -> None:
    reading, writing = os.pipe()
    with open(reading, "rb") as file, open(writing, "wb", buffering=0) as keyboard:
        receiver = StdinReceiver(file)
        receiver.start(spool)
        for n in range(3):
            keyboard.write(b"%d\n" % n)
            wait_until(lambda: len(records_in(spool.directory)) == n + 1)  # noqa: B023
        keyboard.write(b"half")
        receiver.stop()
        assert not receiver.running
    assert records_in(spool.directory) == [0, 1, 2]
    assert not spool.finished


def test_gzip_that_comes_byte_by_byte_in_several_members_is_unpacked() -> None:
    data = gzip.compress(b"1\n") + b"\0" * 5 + gzip.compress(b"2\n3")
    unpacker = Unpacker("stdin")
    read = b"".join(part for at in range(len(data)) for part in unpacker.feed(data[at : at + 1]))
    assert read + unpacker.end() == b"1\n2\n3"


def test_a_first_byte_that_only_looks_like_gzip_is_kept(spool: Spool) -> None:
    assert finished(StdinReceiver(io.BytesIO(b"\x1f")), spool) == ["not JSON: Expecting value (column 1)"]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (gzip.compress(b"1\n2\n", mtime=0)[:-4], "stdin: the gzip data ends too early\nhint: "),
        (gzip.compress(b"1\n2\n", mtime=0)[:12] + b"xxxxxxxxxxxx", "stdin: not gzip after all"),
        (gzip.compress(b"1\n") + b"junk", "stdin: not gzip after all"),
    ],
    ids=["cut", "damaged", "followed by something else"],
)
def test_gzip_that_is_broken_ends_in_an_error_and_not_in_an_end(spool: Spool, data: bytes, reason: str) -> None:
    states: list[str] = []
    receiver = StdinReceiver(io.BytesIO(data))
    receiver.on_state = states.append
    receiver.start(spool)
    assert receiver.join(10)
    assert str(receiver.error).startswith(reason)
    assert states[-1] == str(receiver.error)
    assert not spool.finished


def test_a_little_gzip_that_unpacks_to_much_is_handed_on_in_parts() -> None:
    unpacker = Unpacker("stdin")
    sizes = [len(part) for part in unpacker.feed(gzip.compress(bytes(20 << 20)))]
    assert sum(sizes) == 20 << 20
    assert max(sizes) <= 1 << 20


def test_a_finished_spool_is_not_filled_again(spool: Spool) -> None:
    finished(StdinReceiver(io.BytesIO(b"1")), spool)
    again = StdinReceiver(io.BytesIO(b"2"))
    assert finished(again, spool) == [1]
    assert again.state == "the input had ended before: its spool is finished"


def test_a_receiver_whose_spool_fails_says_so(tmp_path: Path) -> None:
    with BrokenSpool(tmp_path, after=False) as spool:
        receiver = StdinReceiver(io.BytesIO(b"1\n"))
        receiver.start(spool)
        assert receiver.join(10)
        assert str(receiver.error) == "stdin: KeyError: 'killed'"
    assert not spool.finished


def test_a_receiver_starts_once_and_may_be_stopped_at_any_time(spool: Spool) -> None:
    receiver = StdinReceiver(io.BytesIO(b"1"))
    receiver.stop()
    receiver.start(spool)
    receiver.stop()
    receiver.stop()
    assert not receiver.running
    with pytest.raises(StreamError, match="was started before"):
        receiver.start(spool)


# lines and messages


def test_lines_come_out_whole_whatever_the_parts() -> None:
    data = "1\r\n\né日本\nlast".encode()
    for size in range(1, len(data)):
        buffer = LineBuffer("x")
        lines = [line for at in range(0, len(data), size) for line in buffer.feed(data[at : at + size])]
        assert [*lines, *buffer.rest()] == [b"1\r", b"", "é日本".encode(), b"last"]
        assert buffer.rest() == []


def test_a_line_without_end_is_refused_before_it_fills_the_memory() -> None:
    buffer = LineBuffer("socket://x:1", max_record=1 << 20)
    for _ in range(10):
        assert buffer.feed(bytes(100_000)) == []
    with pytest.raises(StreamError, match="socket://x:1: a line over 1 MiB"):
        buffer.feed(bytes(100_000))


@pytest.mark.parametrize(
    ("payload", "records"),
    [
        (b'{"a": 1}', [b'{"a": 1}']),
        (b'{\n"a": 1\n}', [b'{\n"a": 1\n}']),
        (b'{"a": 1}\n{"a": 2}\n', [b'{"a": 1}', b'{"a": 2}']),
        (b'{"a": 1}\r\noops\n', [b'{"a": 1}', b"oops"]),
        (b'{\n"a": oops\n}', [b'{\n"a": oops\n}']),
        (b"1\t<a:a> <a:p> 1 .\n2\t_:b <a:p> 2 .\n", [b"1\t<a:a> <a:p> 1 .", b"2\t_:b <a:p> 2 ."]),
        (b"\n" + b"[" * 100_000 + b"\n", [b"\n" + b"[" * 100_000 + b"\n"]),
    ],
    ids=["one line", "over lines", "lines", "a bad line", "bad over lines", "timed triples", "nested too deeply"],
)
def test_a_message_is_one_text_or_several_lines(payload: bytes, records: list[bytes]) -> None:
    assert message_records(payload) == records


def test_pauses_double_from_a_fifth_of_a_second_to_half_a_minute_and_repeat_by_seed() -> None:
    backoff, same, other = Backoff(7), Backoff(7), Backoff(8)
    pauses = [backoff.pause() for _ in range(1100)]
    assert pauses == [same.pause() for _ in range(1100)]
    assert pauses[:12] != [other.pause() for _ in range(12)]
    assert all(0.2 <= pause <= 30 for pause in pauses)
    assert pauses[0] < pauses[3] < pauses[6] < pauses[9]
    assert min(pauses[20:]) > 20
    backoff.reset()
    assert backoff.pause() < 0.3


# sockets


class Server:
    """A server of lines: takes connections one after the other."""

    def __init__(self, port: int = 0) -> None:
        self._listening = socket.create_server(("127.0.0.1", port))
        self.port = self._listening.getsockname()[1]

    def accept(self) -> socket.socket:
        self._listening.settimeout(10)
        return self._listening.accept()[0]

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()


def reset(connection: socket.socket) -> None:
    """Close without a goodbye."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    connection.close()


def test_a_server_that_closes_ends_the_input(spool: Spool) -> None:
    with Server() as server:
        receiver = SocketReceiver("127.0.0.1", server.port)
        assert receiver.finite
        receiver.start(spool)
        with server.accept() as connection:
            connection.sendall('1\n"é'.encode()[:-1])
            wait_until(lambda: records_in(spool.directory) == [1])
            connection.sendall('é"'.encode()[1:])
        assert receiver.join(10)
    assert receiver.error is None
    assert records_in(spool.directory) == [1, "é"]
    assert spool.finished


def test_a_connection_that_breaks_is_no_end(spool: Spool) -> None:
    with Server() as server:
        receiver = SocketReceiver("127.0.0.1", server.port)
        receiver.start(spool)
        connection = server.accept()
        connection.sendall(b"1\nhalf")
        wait_until(lambda: receiver.received)
        reset(connection)
        assert receiver.join(10)
    assert "the connection broke" in str(receiver.error)
    assert records_in(spool.directory) == [1]
    assert not spool.finished


def test_with_reconnect_the_next_connection_goes_on(spool: Spool) -> None:
    states: list[str] = []
    with Server() as server:
        receiver = SocketReceiver("127.0.0.1", server.port, reconnect=True)
        receiver.on_state = states.append
        assert not receiver.finite
        receiver.start(spool)
        with server.accept() as connection:
            connection.sendall(b"1\n2")
        connection = server.accept()
        connection.sendall(b"3\n4")
        wait_until(lambda: receiver.received == 3)
        reset(connection)
        with server.accept() as connection:
            connection.sendall(b"5\n")
            wait_until(lambda: receiver.received == 4)
            receiver.stop()
        assert not receiver.running
    assert records_in(spool.directory) == [1, 2, 3, 5]
    assert not spool.finished
    assert sum("trying again in" in state for state in states) == 2


def test_a_server_that_comes_later_is_found(spool: Spool) -> None:
    states: list[str] = []
    receiver = SocketReceiver("127.0.0.1", free_port())
    receiver.on_state = states.append
    receiver.start(spool)
    wait_until(lambda: any("Connection refused; trying again" in state for state in states))
    with Server(receiver._port) as server, server.accept() as connection:
        connection.sendall(b"1\n")
    assert receiver.join(10)
    assert records_in(spool.directory) == [1]


@pytest.mark.parametrize("silent", [True, False], ids=["no answer", "refused"])
def test_stopping_takes_no_longer_than_two_seconds(spool: Spool, silent: bool) -> None:
    with ExitStack() as stack:
        port = stack.enter_context(Server()).port if silent else free_port()
        receiver = SocketReceiver("127.0.0.1", port)
        receiver.start(spool)
        wait_until(lambda: "connected" in receiver.state or "trying" in receiver.state)
        began = time.monotonic()
        receiver.stop()
        assert time.monotonic() - began < 2
        assert not receiver.running
        assert receiver.error is None
    assert not spool.finished


def test_stopping_does_not_wait_for_a_connection_that_is_never_answered(spool: Spool) -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        with ExitStack() as stack:  # fill the queue of those who wait: the next one gets no answer
            for _ in range(4):
                waiting = stack.enter_context(socket.socket())
                waiting.setblocking(False)
                waiting.connect_ex(full.getsockname())
            receiver = SocketReceiver("127.0.0.1", full.getsockname()[1])
            receiver.start(spool)
            began = time.monotonic()
            receiver.stop()
            assert not receiver.running
            assert time.monotonic() - began < 2


def test_a_listening_socket_takes_lines_from_many_and_bears_with_one_who_breaks(spool: Spool) -> None:
    receiver = ListeningReceiver("127.0.0.1", 0)
    receiver.start(spool)
    with ExitStack() as stack:
        clients = [stack.enter_context(socket.create_connection(("127.0.0.1", receiver.port))) for _ in range(20)]
        broken = socket.create_connection(("127.0.0.1", receiver.port))
        broken.sendall(b'"kept"\n"half')
        wait_until(lambda: receiver.received == 1)
        reset(broken)
        for part in ('{"client": ', "%d}\n"):
            for n, client in enumerate(clients):
                client.sendall((part % n if "%" in part else part).encode())
    wait_until(lambda: receiver.received == 21)
    with socket.create_connection(("127.0.0.1", receiver.port)) as late:
        late.sendall(b'"no line end"')
    wait_until(lambda: receiver.received == 22)
    receiver.stop()
    assert not receiver.running
    assert receiver.error is None
    read = records_in(spool.directory)
    assert read[0] == "kept"
    assert sorted(one["client"] for one in read[1:21]) == list(range(20))
    assert read[21] == "no line end"


def test_a_client_that_never_ends_its_line_is_dropped_alone(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LineBuffer.__init__, "__defaults__", (1 << 20,))
    receiver = ListeningReceiver("127.0.0.1", 0)
    receiver.start(spool)
    with socket.create_connection(("127.0.0.1", receiver.port)) as good:
        with socket.create_connection(("127.0.0.1", receiver.port)) as bad, pytest.raises(ConnectionError):
            bad.sendall(bytes(100 << 20))
        wait_until(lambda: "a line over 1 MiB" in receiver.state)
        good.sendall(b"1\n")
        wait_until(lambda: records_in(spool.directory) == [1])
    receiver.stop()


def test_a_port_in_use_is_refused_at_once(spool: Spool) -> None:
    with (
        Server() as server,
        pytest.raises(StreamError, match=r"cannot listen on 127\.0\.0\.1:\d+: Address already in use"),
    ):
        ListeningReceiver("127.0.0.1", server.port).start(spool)


# addresses


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("-", StdinReceiver, "stdin"),
        ("socket://localhost:9999", SocketReceiver, "socket://localhost:9999"),
        ("socket://[::1]:9999?listen=1", ListeningReceiver, "socket://[::1]:9999"),
        ("ws://u:p@host:81/a/b?subscribe=hi&query=x%3D1", WebSocketReceiver, "ws://host:81/a/b"),
        ("https+sse://u:p@host/a", SseReceiver, "https://host/a"),
        ("http+poll://host/a?every=PT0.5S&items=d.i&key=id", HttpPollReceiver, "http://host/a"),
        ("mqtt://u:p@host/a/+/%23?qos=0", MqttReceiver, "mqtt://host:1883/a/+/#"),
        ("mqtt://host/a?tls=1", MqttReceiver, "mqtts://host:8883/a"),
    ],
)
def test_an_address_becomes_its_receiver(text: str, kind: type[Receiver], name: str) -> None:
    receiver = open_receiver(parse_address(text), stdin=io.BytesIO())
    assert type(receiver) is kind
    assert receiver.name == name
    assert receiver.finite is (kind in (StdinReceiver, SocketReceiver))


def test_what_belongs_to_the_server_reaches_it_and_our_options_do_not() -> None:
    receiver = open_receiver(parse_address("https+poll://a%40b:p%2Fq@host:81/x%20y?every=2&query=a%3D1%26b%3D%2525"))
    assert isinstance(receiver, HttpPollReceiver)
    assert receiver._url == "https://a%40b:p%2Fq@host:81/x%20y?a=1&b=%25"
    assert receiver._every == 2.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "http+poll://u:secret@h/a?evry=3",
            "http+poll://h/a: there is no option evry\nhint: did you mean every?  There are\n",
        ),
        ("http+poll://h/a?every=soon", "every=soon is no pause\nhint: give seconds, or a duration like PT5S"),
        ("http+poll://h/a?every=P1M", "every=P1M is no pause"),
        ("http+poll://h/a?every=0", "every=0.0 is no pause"),
        ("http+poll://h/a?every=nan", "every=nan is no pause"),
        ("mqtt://h/a?qos=2", "qos=2\nhint: qos is 1 (each message at least once) or 0"),
        ("socket://h:1?listen=maybe", "listen=maybe\nhint: listen is 1 or 0"),
        ("socket://h:1?listen=1&reconnect=1", "who listens does not reconnect"),
        ("ws://h/a?every=3", "there is no option every"),
    ],
)
def test_what_an_address_cannot_say_is_refused(text: str, message: str) -> None:
    with pytest.raises(StreamError) as caught:
        open_receiver(parse_address(text))
    assert message in str(caught.value)
    assert "secret" not in str(caught.value)


def test_an_address_that_is_no_push_source_is_refused() -> None:
    with pytest.raises(StreamError, match="kafka:// sends nothing by itself"):
        open_receiver(Address("kafka", "h", None, "t", {}, "kafka://h/t"))
