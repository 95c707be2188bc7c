"""Receivers over HTTP: polling that brings no record twice, and server-sent events that go on where they were."""

from __future__ import annotations

import gzip
import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from tests.support.push import Script, free_port, records_in, serving, wait_until

from anabranch.errors import StreamError
from anabranch.sources.receivers import Receiver, asking
from anabranch.sources.receivers import bodies as bodies_module
from anabranch.sources.receivers import sse as sse_module
from anabranch.sources.receivers.bodies import body_records
from anabranch.sources.receivers.polling import HttpPollReceiver, RecentRecords
from anabranch.sources.receivers.sse import EventReader, SseReceiver
from anabranch.sources.spool import Spool

OFTEN = 0.01


def ok(body: Any, **headers: str) -> tuple[int, dict[str, str], bytes]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return 200, {name.replace("_", "-"): value for name, value in headers.items()}, data


def run(receiver: Receiver, spool: Spool, until: Callable[[], object]) -> list[Any]:
    """Receive until something is so; gives what the spool has then."""
    receiver.start(spool)
    try:
        wait_until(lambda: until() or not receiver.running)
    finally:
        receiver.stop()
    assert receiver.error is None, receiver.error
    return records_in(spool.directory)


def refusal(receiver: Receiver, spool: Spool) -> str:
    receiver.start(spool)
    assert receiver.join(10)
    return str(receiver.error)


# polling


def test_only_what_is_new_becomes_a_record(spool: Spool) -> None:
    with serving(ok([{"n": 1}, {"n": 2}]), ok([{"n": 3}, {"n": 2}, {"n": 3}]), ok([])) as script:
        receiver = HttpPollReceiver(script.url, every=OFTEN)
        read = run(receiver, spool, lambda: len(script.requests) > 3)
    assert read == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert receiver.received == 3


def test_a_restart_brings_no_record_twice(tmp_path: Path) -> None:
    with serving(ok([{"n": 1}, {"n": 2}])) as script:
        for _ in range(3):
            with Spool(tmp_path) as spool:
                asked = len(script.requests)
                run(HttpPollReceiver(script.url, every=OFTEN), spool, lambda: len(script.requests) > asked + 1)  # noqa: B023
    assert records_in(tmp_path) == [{"n": 1}, {"n": 2}]


def test_a_crash_between_records_and_cursor_brings_no_record_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(ok([{"n": 1}, {"n": 2}])) as script:
        with Spool(tmp_path) as spool, monkeypatch.context() as patched:
            write = spool._write_cursor

            def crash(cursor: Any, position: Any) -> None:
                if cursor is not None:
                    raise KeyError("killed")
                write(cursor, position)

            patched.setattr(spool, "_write_cursor", crash)
            assert "killed" in refusal(HttpPollReceiver(script.url), spool)
        assert (tmp_path / "00000000.ndjson").read_bytes() == b'{"n":1}\n{"n":2}\n'
        with Spool(tmp_path) as spool:
            assert run(HttpPollReceiver(script.url, every=OFTEN), spool, lambda: len(script.requests) > 2)
    assert records_in(tmp_path) == [{"n": 1}, {"n": 2}]


def test_records_with_a_key_are_told_apart_by_it(spool: Spool) -> None:
    first = [{"meta": {"id": 1}, "v": 1}, {"meta": {"id": "1"}}, {"v": 2}]
    second = [{"meta": {"id": 1}, "v": 9}, {"v": 2}, {"v": 3}]
    with serving(ok(first), ok(second)) as script:
        receiver = HttpPollReceiver(script.url, every=OFTEN, key="meta.id")
        read = run(receiver, spool, lambda: len(script.requests) > 2)
    assert read == [*first, {"v": 3}]


def test_validators_are_sent_back_also_after_a_restart_and_304_brings_nothing(tmp_path: Path) -> None:
    unchanged = (304, {}, b"")
    with serving(ok([1], ETag='"é1"', Last_Modified="Mon, 01 Jan 2024 00:00:00 GMT"), unchanged) as script:
        with Spool(tmp_path) as spool:
            run(HttpPollReceiver(script.url, every=OFTEN), spool, lambda: len(script.requests) > 1)
        with Spool(tmp_path) as spool:
            asked = len(script.requests)
            run(HttpPollReceiver(script.url, every=OFTEN), spool, lambda: len(script.requests) > asked)
        with Spool(tmp_path) as spool:  # another question: the old validators would hide its answer
            other = len(script.requests)
            run(HttpPollReceiver(f"{script.url}/?page=2", every=OFTEN), spool, lambda: len(script.requests) > other)
    assert "if-none-match" not in script.requests[0][1]
    for number in (1, asked):
        assert script.requests[number][1]["if-modified-since"] == "Mon, 01 Jan 2024 00:00:00 GMT"
        assert script.requests[number][1]["if-none-match"].startswith('"')
    assert "if-none-match" not in script.requests[other][1]
    assert records_in(tmp_path) == [1]


@pytest.mark.parametrize(
    ("body", "items", "records"),
    [
        (b'[{"a": 1}, "\\ud800", 1e400]', None, ['{"a":1}', '"\\ud800"', "Infinity"]),
        (b'{"data": {"list": [1, 2]}}', "data.list", ["1", "2"]),
        (b'{"a.b": [3]}', "a.b", ["3"]),
        (b'{"one": "object"}', None, ['{"one": "object"}']),
        (b'{"n": 1}\n{"n": 2}\n', None, ['{"n": 1}', '{"n": 2}']),
        (b"<html>\n</html>", None, ["<html>\n</html>"]),
        (b"  ", None, []),
        (b"[]", None, []),
    ],
)
def test_a_body_is_a_list_an_object_with_a_list_lines_or_one_object(
    body: bytes, items: str | None, records: list[str]
) -> None:
    assert [record.decode() for record in body_records(body, items, "x")] == records


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ("dat", "/: the answer has no `dat`\nhint: it has data, more"),
        ("data.list", "/: the answer has no `data.list`"),
        ("data", "/: `data` of the answer is no list\nhint: "),
    ],
)
def test_a_list_that_is_not_where_it_should_be_is_told(spool: Spool, items: str, message: str) -> None:
    with serving(ok({"data": {}, "more": 1})) as script:
        assert message in refusal(HttpPollReceiver(f"{script.url}/", items=items), spool)


def test_gzip_bodies_other_charsets_and_chunks_are_read(spool: Spool) -> None:
    packed = ok(gzip.compress('["é"]'.encode()), Content_Encoding="gzip")
    latin = ok('["ü"]'.encode("latin-1"), Content_Type="application/json; charset=latin-1")
    chunked = ok(b'3\r\n["a\r\n2\r\n"]\r\n0\r\n\r\n', Transfer_Encoding="chunked")
    bom = ok(b'\xef\xbb\xbf["b"]')
    with serving(packed, latin, chunked, bom) as script:
        read = run(HttpPollReceiver(script.url, every=OFTEN), spool, lambda: len(script.requests) > 4)
    assert read == ["é", "ü", "a", "b"]
    assert script.requests[0][1]["accept-encoding"] == "gzip"


def test_a_body_without_bound_is_refused(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies_module.read_body, "__defaults__", (1 << 20,))
    with serving(ok(gzip.compress(bytes(8 << 20)), Content_Encoding="gzip")) as script:
        assert "answers with more than 1 MiB\nhint: ask for less" in refusal(HttpPollReceiver(script.url), spool)


@pytest.mark.parametrize("broken", [b"[1, 2", b'["' + b"x" * 100], ids=["no JSON", "cut short"])
def test_an_answer_that_is_cut_short_brings_nothing_and_is_asked_for_again(spool: Spool, broken: bytes) -> None:
    short = (200, {"Content-Length": "5000"}, broken)
    with serving(short, ok([1])) as script:
        script.answers[0] = _hang_up_after(short)
        assert run(
            HttpPollReceiver(script.url, every=OFTEN), spool, lambda: len(script.requests) > 1 and spool.cursor
        ) == [1]


def _hang_up_after(answer: tuple[int, dict[str, str], bytes]) -> Callable[[BaseHTTPRequestHandler], None]:
    def play(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(answer[0])
        for name, value in answer[1].items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(answer[2])

    return play


@pytest.mark.parametrize(("status", "after"), [(429, "1"), (503, "date")])
def test_a_server_that_asks_for_patience_gets_it(spool: Spool, status: int, after: str) -> None:
    states: list[str] = []
    value = formatdate(time.time() + 2, usegmt=True) if after == "date" else after
    with serving((status, {"Retry-After": value}, b""), ok([1])) as script:
        receiver = HttpPollReceiver(script.url, every=OFTEN)
        receiver.on_state = states.append
        began = time.monotonic()
        assert run(receiver, spool, lambda: spool.cursor) == [1]
        assert time.monotonic() - began > 0.95
    assert any(f"answered {status}" in state for state in states)


def test_a_server_that_fails_is_asked_again(spool: Spool) -> None:
    states: list[str] = []
    answers = [(500, {}, b""), lambda handler: handler.connection.close(), (404, {}, b"")]
    with serving(ok([1]), *answers, ok([1, 2])) as script:
        receiver = HttpPollReceiver(script.url, every=OFTEN)
        receiver.on_state = states.append
        assert run(receiver, spool, lambda: receiver.received == 2) == [1, 2]
    assert sum("trying again" in state for state in states) == 3


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_server_that_refuses_from_the_beginning_ends_it(spool: Spool, status: int) -> None:
    with serving((status, {}, b"")) as script:
        url = f"http://user:secret@127.0.0.1:{script.port}/x"
        text = refusal(HttpPollReceiver(url), spool)
    assert f"/x: {status} " in text
    assert "hint: " in text
    assert "secret" not in text


def test_redirects_are_followed_and_passwords_stay_at_home(spool: Spool) -> None:
    with (
        serving(ok([1])) as other,
        serving((302, {"Location": "/b"}, b""), (307, {"Location": other.url}, b"")) as script,
    ):
        url = f"http://us%65r:p%40ss@127.0.0.1:{script.port}/a"
        assert run(HttpPollReceiver(url, every=60), spool, lambda: spool.cursor) == [1]
        assert [path for path, _ in script.requests] == ["/a", "/b"]
        assert {headers["authorization"] for _, headers in script.requests} == {"Basic dXNlcjpwQHNz"}
        assert "authorization" not in other.requests[0][1]


def test_what_is_secret_in_an_address_is_in_no_log(spool: Spool, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with serving((302, {"Location": "/b"}, b""), ok([1])) as script:
        url = f"http://user:pass-word@127.0.0.1:{script.port}/a?token=to-ken"
        run(HttpPollReceiver(url, every=60), spool, lambda: spool.cursor)
    assert script.requests[0][0] == "/a?token=to-ken"
    assert "pass-word" not in caplog.text
    assert "to-ken" not in caplog.text
    assert "dXNlcjpwYXNzLXdvcmQ=" not in caplog.text


def test_an_address_is_sent_as_it_must_be_written(spool: Spool) -> None:
    with serving(ok([1])) as script:
        url = f"http://127.0.0.1:{script.port}/a b%2Fc/ü?q=x y&r=%26"
        run(HttpPollReceiver(url, every=60), spool, lambda: spool.cursor)
    path, headers = script.requests[0]
    assert path == "/a%20b%2Fc/%C3%BC?q=x%20y&r=%26"
    assert headers["host"] == f"127.0.0.1:{script.port}"


def test_redirects_that_lead_nowhere_are_refused(spool: Spool, tmp_path: Path) -> None:
    with serving((301, {"Location": "/again"}, b"")) as script:
        assert "from one address to the next" in refusal(HttpPollReceiver(script.url), spool)
        script.answers = [(301, {"Location": "file:///etc/passwd"}, b"")]
        assert "which is not HTTP" in refusal(HttpPollReceiver(script.url), spool)
        script.answers = [(301, {"Location": "http://127.0.0.1:99999/x"}, b"")]
        assert "http://127.0.0.1:99999/x: Port out of range" in refusal(HttpPollReceiver(script.url), spool)
        script.answers = [(301, {"Location": "http://[::1/"}, b"")]
        assert f"{script.url}/: Invalid" in refusal(HttpPollReceiver(f"{script.url}/"), spool)


def test_a_peer_that_does_not_speak_http_is_asked_again(spool: Spool) -> None:
    states: list[str] = []
    with serving(lambda handler: handler.wfile.write(b"SSH-2.0-OpenSSH\r\n"), ok([1])) as script:
        receiver = HttpPollReceiver(script.url, every=OFTEN)
        receiver.on_state = states.append
        assert run(receiver, spool, lambda: spool.cursor) == [1]
    assert any("no HTTP answer" in state for state in states)


def test_what_was_seen_is_bounded_but_holds_one_whole_answer() -> None:
    seen = RecentRecords(most=3)
    old = [b"1", b"2", b"3"]
    assert seen.unseen(old, None) == old
    assert seen.unseen([b"4", b"1"], None) == [b"4"]
    assert seen.unseen([b"1", b"3", b"4"], None) == []  # 1 was there again, so 2 was forgotten first
    assert seen.unseen([b"2"], None) == [b"2"]
    many = [str(n).encode() for n in range(100)]
    seen.unseen(many, None)
    assert seen.unseen(many, None) == []
    assert RecentRecords.unpacked(seen.packed()).unseen(many, None) == []


def test_a_hundred_thousand_hashes_fit_into_a_small_cursor() -> None:
    seen = RecentRecords()
    seen.unseen((str(n).encode() for n in range(150_000)), None)
    seen.unseen([b"x"], None)
    assert len(seen.packed()) < 1_100_000


@pytest.mark.parametrize("kind", [HttpPollReceiver, SseReceiver])
def test_stopping_does_not_wait_for_a_silent_server(spool: Spool, kind: Any) -> None:
    hanging = threading.Event()
    with serving(lambda handler: hanging.wait(30)) as script:
        receiver = kind(script.url)
        receiver.start(spool)
        wait_until(lambda: script.requests)
        began = time.monotonic()
        receiver.stop()
        assert time.monotonic() - began < 2
        assert not receiver.running
        hanging.set()
    assert receiver.error is None


def test_stopping_does_not_wait_for_a_connection(spool: Spool) -> None:
    with ExitStack() as opened:
        full = opened.enter_context(socket.socket())
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(3):  # nobody accepts them, so that the next one waits
            waiting = opened.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        receiver = HttpPollReceiver(f"http://127.0.0.1:{full.getsockname()[1]}/")
        receiver.start(spool)
        time.sleep(0.2)
        began = time.monotonic()
        receiver.stop()
        assert time.monotonic() - began < 2
        assert not receiver.running
    assert receiver.error is None


def test_a_server_that_is_not_there_yet_is_asked_again(spool: Spool) -> None:
    receiver = HttpPollReceiver(f"http://127.0.0.1:{free_port()}/", every=OFTEN)
    assert run(receiver, spool, lambda: "Connection refused; trying again" in receiver.state) == []


# server-sent events


def parsed(text: bytes, size: int) -> list[tuple[bytes, str]]:
    """The events of a stream that comes in parts, each with the id that the stream stands at when its part ends."""
    taken: list[tuple[bytes, str]] = []
    reader = EventReader(lambda data, last_id: taken.extend((one, last_id) for one in data))
    reader.read(text[at : at + size] for at in range(0, len(text), size))
    return taken


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_events_are_read_whatever_the_parts_and_the_line_ends(end: bytes) -> None:
    lines = [
        b'\xef\xbb\xbfdata: {"a":',
        b"data:1}",
        b"",
        b": comment",
        "id: é7".encode(),
        b"event: other",
        b"data:  x",
        b"",
        b"id: a\0b",
        b"data",
        b"unknown: y",
        b"",
        b"id",
        b"",
        b"data: z",
        b"",
        b"data: cut short",
    ]
    text = end.join(lines)
    expected = [(b'{"a":\n1}', ""), (b" x", "é7"), (b"z", "")]
    for size in (1, 2, 3, 7):
        assert parsed(text, size) == expected
    assert parsed(text, len(text)) == [(data, "") for data, _ in expected]


def test_an_event_without_end_is_refused_and_long_ones_take_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[bytes] = []
    reader = EventReader(lambda data, _: taken.extend(data))
    long = [b"data: ", *[b"x" * (1 << 16)] * 300, b"\n\n"]
    reader.read(long * 2)
    assert [len(one) for one in taken] == [300 << 16] * 2
    monkeypatch.setattr(sse_module, "MAX_RECORD", 20 << 20)
    reader.read(long * 2)
    for endless in (b"x" * (1 << 16), b"data: x\n" * (1 << 13), b"data:\n" * (1 << 13)):
        with pytest.raises(StreamError, match="an event over 20 MiB"):
            reader.read([endless] * 500)


def stream(*events: bytes, hold: threading.Event | None = None, chunked: bool = False) -> Callable[[Any], None]:
    """An event stream that ends, or that goes on in silence."""

    def play(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream; charset=utf-8")
        if chunked:
            handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for event in events:
            handler.wfile.write(b"%x\r\n%b\r\n" % (len(event), event) if chunked else event)
        handler.wfile.flush()
        if hold is not None:
            hold.wait(30)

    return play


@pytest.fixture
def hold() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


@pytest.mark.parametrize("chunked", [False, True])
def test_an_event_is_in_the_spool_while_the_stream_goes_on(spool: Spool, hold: threading.Event, chunked: bool) -> None:
    answer = stream(b'data: {"n": 1}\n\ndata: {\ndata: "n": 2}\n\ndata: oops\n\n', hold=hold, chunked=chunked)
    with serving(answer) as script:
        receiver = SseReceiver(script.url)
        read = run(receiver, spool, lambda: receiver.received == 3)
        hold.set()
    assert read == [{"n": 1}, {"n": 2}, "not JSON: Expecting value (column 1)"]
    assert script.requests[0][1]["accept"] == "text/event-stream"


def test_it_goes_on_behind_the_last_event_also_after_a_restart(tmp_path: Path, hold: threading.Event) -> None:
    first, second = (
        stream(b"id: 1\ndata: 1\n\nid: 2\n\nid: 3\ndata: cut"),
        stream("data: 2\nid: ü4\n\n".encode(), hold=hold),
    )
    with serving(first, second, stream(b"data: 3\n\n", hold=hold)) as script:
        with Spool(tmp_path) as spool:
            run(SseReceiver(script.url), spool, lambda: len(records_in(tmp_path)) == 2)
        with Spool(tmp_path) as spool:
            assert run(SseReceiver(script.url), spool, lambda: len(records_in(tmp_path)) == 3) == [1, 2, 3]
        with Spool(tmp_path) as spool:  # another stream: an id of the first means nothing there
            run(SseReceiver(f"{script.url}/other"), spool, lambda: len(records_in(tmp_path)) == 4)
        hold.set()
    ids = [headers.get("last-event-id") for _, headers in script.requests]
    assert [None if one is None else one.encode("latin-1").decode() for one in ids] == [None, "2", "ü4", None]


def test_the_server_says_how_long_to_wait(spool: Spool, hold: threading.Event) -> None:
    states: list[str] = []
    with serving(stream(b"retry: 700\ndata: 1\n\n"), stream(b"retry: x\ndata: 2\n\n", hold=hold)) as script:
        receiver = SseReceiver(script.url)
        receiver.on_state = states.append
        run(receiver, spool, lambda: receiver.received == 2)
        hold.set()
    assert any("the connection was closed; trying again in 0.7 s" in state for state in states)


def test_bytes_that_are_not_utf8_are_replaced_as_the_standard_has_it() -> None:
    assert parsed(b'data: "\xff\xc3\xa9"\n\n', 1) == [('"\ufffdé"'.encode(), "")]


def test_an_id_holds_over_connections_until_another_comes() -> None:
    taken: list[tuple[list[bytes], str]] = []

    def read(*parts: bytes, last_id: str) -> list[tuple[list[bytes], str]]:
        taken.clear()
        EventReader(lambda data, now: taken.append((data, now)), last_id).read(parts)
        return taken

    assert read(b"data: 1\n\n", b"id: 8\n\n", b": alive\n", last_id="7") == [([b"1"], "7"), ([], "8")]
    assert read(b"id: 8\ndata: 1\n\ndata: 2\n\n", b"id\ndata: 3\n\n", last_id="7") == [
        ([b"1", b"2"], "8"),
        ([b"3"], ""),
    ]


def test_a_stream_may_fall_silent_for_longer_than_a_server_may_take_to_answer(
    spool: Spool, hold: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    def play(handler: BaseHTTPRequestHandler) -> None:
        stream()(handler)
        time.sleep(0.6)
        handler.wfile.write(b"data: 1\n\n")
        handler.wfile.flush()
        hold.wait(30)

    monkeypatch.setitem(asking.ask.__wrapped__.__kwdefaults__, "within", 0.3)  # type: ignore[attr-defined]
    with serving(play) as script:
        receiver = SseReceiver(script.url)
        assert run(receiver, spool, lambda: receiver.received == 1) == [1]
        hold.set()
    assert len(script.requests) == 1


def test_no_content_ends_the_stream(spool: Spool) -> None:
    with serving(stream(b"data: 1\n\n"), (204, {}, b"")) as script:
        receiver = SseReceiver(script.url)
        receiver.start(spool)
        assert receiver.join(10)
    assert receiver.error is None
    assert spool.finished
    assert records_in(spool.directory) == [1]


def test_what_is_no_event_stream_is_refused(spool: Spool) -> None:
    with serving(ok([1], Content_Type="application/json")) as script:
        text = refusal(SseReceiver(script.url), spool)
    assert "is no event stream but application/json\nhint: http+poll://" in text


def test_a_script_ends_with_its_test() -> None:
    script = Script(ok([]))
    script.close()
    assert not script._thread.is_alive()
