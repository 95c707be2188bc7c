"""Webhooks: every answer is posted until it is acknowledged, in order, and what cannot succeed is said at once."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator, Sequence
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from tests.unit.sinks.telling import Stopped, told

from anabranch.errors import EngineError
from anabranch.sinks.base import RenderedAnswer
from anabranch.sinks.ledger import FileLedger, MemoryLedger
from anabranch.sinks.webhook import Webhook

Script = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """Keeps what was posted and answers as the test's script says, then with 204."""

    protocol_version = "HTTP/1.1"
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.posts.append((self.path, dict(self.headers.items()), body))
        self.server.peers.add(self.client_address)
        script = self.server.script.pop(0) if self.server.script else status(204)
        script(self)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Receiver(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.posts: list[tuple[str, dict[str, str], bytes]] = []
        self.peers: set[Any] = set()
        self.script: list[Script] = []
        self.url = f"http://127.0.0.1:{self.server_port}/hook"

    @property
    def keys(self) -> list[str]:
        return [headers["Idempotency-Key"] for _, headers, _ in self.posts]


def status(code: int, text: bytes = b"", **headers: str) -> Script:
    def reply(handler: Handler) -> None:
        handler.send_response(code)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        if code != 204:
            handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text)

    return reply


def hang_up(handler: Handler) -> None:
    handler.close_connection = True


def raw(data: bytes) -> Script:
    def reply(handler: Handler) -> None:
        handler.wfile.write(data)
        handler.close_connection = True

    return reply


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


class Clock:
    """A clock that moves when somebody waits."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.waits: list[float] = []

    def now(self) -> float:
        return self.seconds

    def pause(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.seconds += seconds


def posted(url: str, answers: Sequence[RenderedAnswer], clock: Clock | None = None, **options: Any) -> None:
    clock = clock or Clock()
    hook = Webhook(url, now=clock.now, pause=clock.pause, **options)
    try:
        hook.open(MemoryLedger())
        hook.write(0, answers)
    finally:
        hook.close()


def test_each_answer_is_one_post_with_its_key_over_one_connection(receiver: Receiver) -> None:
    answers = [
        told(0, [(1, ["ä"]), (2, None)]),
        told(1, [], correction="corrected"),
        told(0, [(5, 6)], query="ünï q"),
    ]
    posted(receiver.url + "?channel=7", answers)
    assert [path for path, _, _ in receiver.posts] == ["/hook?channel=7"] * 3
    assert receiver.keys == ["trick/0", "trick/1", "%C3%BCn%C3%AF%20q/0"]
    assert {headers["Content-Type"] for _, headers, _ in receiver.posts} == {"application/json; charset=utf-8"}
    bodies = [json.loads(body) for _, _, body in receiver.posts]
    assert bodies[0] == {
        "query": "trick",
        "number": 0,
        "at": "2022-10-14T14:00:00Z",
        "op": "entering",
        "win_start": "2022-10-14T13:00:00Z",
        "win_end": "2022-10-14T14:00:00Z",
        "rows": [{"user": 1, "hops": ["ä"]}, {"user": 2, "hops": None}],
    }
    assert list(bodies[1])[2:5] == ["at", "op", "correction"]
    assert bodies[1]["rows"] == []
    assert len(receiver.peers) == 1


def test_failures_that_may_pass_are_tried_again_with_longer_pauses(receiver: Receiver) -> None:
    receiver.script = [status(500), status(503, b"busy"), hang_up, raw(b"SSH-2.0 hello\r\n"), status(200, b"thanks")]
    clock = Clock()
    posted(receiver.url, [told(0), told(1)], clock)
    assert receiver.keys == ["trick/0"] * 5 + ["trick/1"]
    assert clock.waits == sorted(clock.waits)
    assert len(clock.waits) >= 3


def test_a_connection_that_the_receiver_closed_is_opened_again_without_a_pause(receiver: Receiver) -> None:
    receiver.script = [status(204), hang_up]
    clock = Clock()
    posted(receiver.url, [told(0), told(1)], clock)
    assert receiver.keys == ["trick/0", "trick/1", "trick/1"]
    assert clock.waits == []


@pytest.mark.parametrize("code", [429, 503])
def test_retry_after_is_waited_for_in_seconds(receiver: Receiver, code: int) -> None:
    receiver.script = [status(code, Retry_After="7"), status(code, Retry_After="nonsense")]
    clock = Clock()
    posted(receiver.url, [told(0)], clock)
    assert clock.waits == [7.0, 0.4]


def test_retry_after_may_be_a_date(receiver: Receiver) -> None:
    import time

    receiver.script = [status(429, Retry_After=formatdate(time.time() + 30, usegmt=True))]
    clock = Clock()
    posted(receiver.url, [told(0)], clock)
    (wait,) = clock.waits
    assert 20 < wait <= 30


def test_a_receiver_that_stays_away_is_given_up_at_the_deadline_with_the_reason(receiver: Receiver) -> None:
    receiver.script = [status(503, b"down for\n maintenance")] * 100
    clock = Clock()
    with pytest.raises(EngineError) as refusal:
        posted(receiver.url, [told(0), told(1)], clock, timeout=10)
    assert str(refusal.value) == (
        f"{receiver.url} did not take answer 0 of `trick` within 10 seconds: "
        "503 Service Unavailable: down for maintenance\n"
        "hint: the answer is sent again at the next start; timeout=SECONDS gives it more time"
    )
    assert clock.seconds < 10
    assert set(receiver.keys) == {"trick/0"}


def test_a_wait_beyond_the_deadline_is_not_begun(receiver: Receiver) -> None:
    receiver.script = [status(429, Retry_After="3600")]
    clock = Clock()
    with pytest.raises(EngineError, match=r"429 Too Many Requests\nhint: it asks to wait 3600 s; the answer is sent"):
        posted(receiver.url, [told(0)], clock)
    assert clock.waits == []


def test_nothing_that_listens_is_said_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(EngineError, match=r"within 1 seconds: nothing listens there"):
        posted(f"http://127.0.0.1:{port}/", [told(0)], timeout=1)


def test_a_receiver_that_never_answers_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        hook = Webhook(f"http://127.0.0.1:{server.getsockname()[1]}/", timeout=0.3)
        hook.open(MemoryLedger())
        with pytest.raises(EngineError, match=r"within 0\.3 seconds: no response"):
            hook.write(0, [told(0)])


@pytest.mark.parametrize(
    "reply",
    [
        raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\ntorn"),
        raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
        status(200, b"x" * 1_000_000),
    ],
    ids=["torn", "not chunked", "long"],
)
def test_the_status_is_the_acknowledgement_whatever_comes_behind_it(receiver: Receiver, reply: Script) -> None:
    receiver.script = [reply]
    clock = Clock()
    posted(receiver.url, [told(0), told(1)], clock)
    assert receiver.keys == ["trick/0", "trick/1"]
    assert clock.waits == []


def test_a_refusal_shows_the_status_and_the_beginning_of_its_text(receiver: Receiver) -> None:
    receiver.script = [status(422, b"no such field: r\xc3\xb6w\n" + b"x" * 500)]
    with pytest.raises(EngineError) as refusal:
        posted(receiver.url, [told(0)])
    start = f"{receiver.url} refuses the answer: 422 Unprocessable Entity: no such field: röw x"
    assert str(refusal.value).startswith(start)
    assert len(str(refusal.value)) < len(start) + 200
    assert len(receiver.posts) == 1


def test_a_refusal_without_a_token_says_how_to_send_one(receiver: Receiver) -> None:
    receiver.script = [status(401)]
    with pytest.raises(EngineError, match=r"401 Unauthorized\nhint: token=NAME sends a bearer token"):
        posted(receiver.url, [told(0)])


def test_redirects_are_refused_with_where_they_lead(receiver: Receiver) -> None:
    receiver.script = [status(308, Location="https://example.org/new")]
    with pytest.raises(EngineError, match=r"308 Permanent Redirect: it points to https://example\.org/new\nhint:"):
        posted(receiver.url, [told(0)])


def test_the_token_comes_from_the_environment_and_is_never_shown(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOOK_TOKEN", " s3cret\n")
    receiver.script = [status(204), status(403)]
    hook = Webhook(receiver.url + "?key=alsosecret", token="HOOK_TOKEN")
    hook.open(FileLedger(tmp_path))
    hook.write(0, [told(0)])
    assert receiver.posts[0][1]["Authorization"] == "Bearer s3cret"
    with pytest.raises(EngineError) as refusal:
        hook.write(1, [told(1)])
    hook.close()
    noted = "".join(path.name + path.read_text() for path in tmp_path.iterdir())
    assert "s3cret" not in str(refusal.value) + noted
    assert "alsosecret" not in str(refusal.value) + noted


def test_a_token_that_is_missing_or_no_token_is_refused_before_anything_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("HOOK_TOKEN", raising=False)
    hook = Webhook("http://127.0.0.1:1/", token="HOOK_TOKEN")
    with pytest.raises(EngineError, match=r"`HOOK_TOKEN` is not set.*\nhint: export HOOK_TOKEN=\.\.\."):
        hook.open(MemoryLedger())
    monkeypatch.setenv("HOOK_TOKEN", "a\nb")
    with pytest.raises(EngineError, match="it has characters that no header may have"):
        hook.open(MemoryLedger())


def test_a_batch_that_comes_again_begins_behind_what_was_acknowledged(receiver: Receiver, tmp_path: Path) -> None:
    answers = [told(number) for number in range(4)]
    receiver.script = [status(204), status(204), status(400)]
    for expected in (["trick/0", "trick/1", "trick/2"], ["trick/2", "trick/3"], []):
        receiver.posts.clear()
        hook = Webhook(receiver.url)
        hook.open(FileLedger(tmp_path))
        if expected[:1] == ["trick/0"]:
            with pytest.raises(EngineError, match="400"):
                hook.write(7, answers)
        else:
            hook.write(7, answers)
        hook.close()
        assert receiver.keys == expected


def test_an_acknowledgement_that_was_lost_sends_the_same_key_and_body_again(receiver: Receiver) -> None:
    class Torn(MemoryLedger):
        def put(self, key: str, value: object) -> None:
            raise Stopped

    for _ in range(2):
        hook = Webhook(receiver.url)
        hook.open(Torn())
        with pytest.raises(Stopped):
            hook.write(0, [told(0)])
        hook.close()
    (_, first, body), (_, second, again) = receiver.posts
    assert first["Idempotency-Key"] == second["Idempotency-Key"]
    assert body == again


def test_the_next_batch_begins_with_its_first_answer(receiver: Receiver) -> None:
    hook = Webhook(receiver.url)
    hook.open(MemoryLedger())
    hook.write(0, [told(0), told(1)])
    hook.write(1, [])
    hook.write(2, [told(2), told(3)])
    hook.close()
    assert receiver.keys == [f"trick/{number}" for number in range(4)]


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("ftp://example.org/", "is no address of a webhook\nhint: write it like https://"),
        ("http:///path", "is no address of a webhook"),
        ("http://example.org:99999/", "is no address: "),
        ("http://me:secret@example.org/", "holds a user's name or password\nhint: put the secret into an environment"),
        ("http://example.org/a b", "must be percent-encoded"),
        ("http://example.org/ä", "must be percent-encoded"),
    ],
)
def test_addresses_that_cannot_work_are_refused(url: str, reason: str) -> None:
    with pytest.raises(EngineError, match=reason):
        Webhook(url)


def test_a_deadline_that_is_none_is_refused() -> None:
    for seconds in (0.0, -1.0, float("nan")):
        with pytest.raises(EngineError, match="a webhook cannot be given"):
            Webhook("http://example.org/", timeout=seconds)


def test_a_certificate_that_nobody_trusts_is_refused_at_once(tmp_path: Path) -> None:
    import shutil
    import ssl
    import subprocess

    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificate, and is not here")
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    how = ("-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost")
    subprocess.run(
        ["openssl", "req", *how, "-keyout", key, "-out", certificate],
        check=True,
        capture_output=True,
        timeout=60,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with Receiver() as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            clock = Clock()
            with pytest.raises(EngineError, match="its certificate is not trusted: self"):
                posted(f"https://127.0.0.1:{server.server_port}/", [told(0)], clock)
            assert clock.waits == []
        finally:
            server.shutdown()
            thread.join()
