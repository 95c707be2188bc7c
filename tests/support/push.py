"""Peers for receivers: a web server that plays a script, a broker, and waiting for what another thread does.

Invariant: everything binds to 127.0.0.1 on a free port and ends with its test.
"""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from anabranch.formats.deadletter import MalformedRecord
from anabranch.sources.base import Limit, Offset
from anabranch.sources.spool import Spool, SpoolSource

MOSQUITTO = shutil.which("mosquitto") or ("/usr/sbin/mosquitto" if os.path.exists("/usr/sbin/mosquitto") else None)
needs_mosquitto = pytest.mark.skipif(MOSQUITTO is None, reason="the broker mosquitto is not installed")


def wait_until(condition: Callable[[], object], within: float = 45.0) -> None:
    """Poll until something is so; fail when it never is. The patience is for a busy machine."""
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)


def raw(data: Any, sequence: str) -> Any:
    """A decoder that shows the record and its sequence."""
    return (sequence, data)


def everything(source: SpoolSource, start: Offset | None = None, limit: Limit | None = None) -> list[Any]:
    """What a source holds, read batch by batch; bad records as their reasons."""
    at = source.begin() if start is None else start
    read: list[Any] = []
    while (end := source.ahead(at, limit or Limit())) != at:
        for piece in source.pieces(at, end):
            read += [one.reason if isinstance(one, MalformedRecord) else one for one in source.read(piece, raw)]
        at = end
    return read


def records_in(directory: Path) -> list[Any]:
    """The records of a spool, without their sequences."""
    return [one if isinstance(one, str) else one[1] for one in everything(SpoolSource("s", directory))]


class BrokenSpool(Spool):
    """A spool whose process dies at a chosen moment of an append: before anything is written, or after all is."""

    def __init__(self, directory: Path, after: bool) -> None:
        self._after = after
        super().__init__(directory)

    def append(self, records: Any, cursor: Any = None) -> int:
        if self._after:
            super().append(records, cursor)
        raise KeyError("killed")  # nothing that a receiver expects


class Script:
    """A web server that gives one answer after the other; the last one again and again.

    An answer is (status, headers, body), or a function that writes to the handler itself.
    """

    def __init__(self, *answers: Any, tls: ssl.SSLContext | None = None) -> None:
        self.answers = list(answers)
        self.requests: list[tuple[str, dict[str, str]]] = []
        script = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                script.requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
                answer = script.answers.pop(0) if len(script.answers) > 1 else script.answers[0]
                if callable(answer):
                    self.close_connection = True
                    answer(self)
                    return
                status, headers, body = answer
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                if "Content-Length" not in headers and "Transfer-Encoding" not in headers:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass  # clients that hang up are what is tested

        self._server = Server(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
            self.url = f"https://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextmanager
def serving(*answers: Any, tls: ssl.SSLContext | None = None) -> Iterator[Script]:
    script = Script(*answers, tls=tls)
    try:
        yield script
    finally:
        script.close()


def certificate(directory: Path) -> tuple[ssl.SSLContext, Path]:
    """A server's side of TLS, for 127.0.0.1, and the certificate that a client would have to trust."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl, which makes certificates, is not installed")
    paths = directory / "key.pem", directory / "certificate.pem"
    command = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-keyout", str(paths[0]), "-out", str(paths[1]), "-days", "2", "-subj", "/CN=test"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(paths[1], paths[0])
    return context, paths[1]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Broker:
    """mosquitto with its sessions on disk, so that it can be restarted."""

    def __init__(self, directory: Path, settings: str = "allow_anonymous true\n", plain: bool = False) -> None:
        assert MOSQUITTO is not None
        self.port = free_port()
        self.plain_port = free_port()  # a second door, without what the settings ask for
        directory.mkdir()
        self._config = directory / "mosquitto.conf"
        self._config.write_text(
            f"listener {self.port} 127.0.0.1\npersistence true\npersistence_location {directory}/\n"
            f"log_dest none\nuser root\n{settings}" + (f"listener {self.plain_port} 127.0.0.1\n" if plain else "")
        )
        self._ports = (self.port, self.plain_port) if plain else (self.port,)
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        assert MOSQUITTO is not None
        self._process = subprocess.Popen(
            [MOSQUITTO, "-c", str(self._config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        wait_until(self._answers)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(10)
            self._process = None

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, "mosquitto ended by itself"
        return all(_listens(port) for port in self._ports)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def publish(port: int, topic: str, *payloads: bytes, retain: bool = False) -> None:
    """Publish with QoS 1 and wait until the broker has it."""
    import paho.mqtt.client as mqtt

    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
    client.connect("127.0.0.1", port)
    client.loop_start()
    try:
        for payload in payloads:
            client.publish(topic, payload, qos=1, retain=retain).wait_for_publish(10)
    finally:
        client.disconnect()
        client.loop_stop()
