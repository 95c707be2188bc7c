"""`anabranch serve` and `demo auctions`: what is refused before anything starts, and an end in order."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from anabranch.cli.demo_auctions import AuctionDemo, query_text
from anabranch.cli.serving import ServerPlace, bind, has_browser, read_token
from anabranch.errors import EngineError
from anabranch.server.hub import Hub

from .conftest import ROOT, Invoke


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_the_loopback_interface_needs_no_token(host: str) -> None:
    ServerPlace(host).check()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.1", "example.org"])
def test_an_address_that_others_can_reach_needs_one(host: str, invoke: Invoke) -> None:
    ran = invoke("serve", "--host", host, "--engine", "local")
    assert ran.code == 1
    assert f"error: --host {host} can be reached from other machines, and there is no token" in ran.err
    ServerPlace(host, token="t").check()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.1", "example.org"])
def test_an_address_that_others_can_reach_says_which_files_they_may_read(host: str, invoke: Invoke) -> None:
    ran = invoke("serve", "--host", host, "--engine", "local", "--token", "t")
    assert ran.code == 1
    assert "its clients could read every file that this user can read" in ran.err
    assert "hint: say which folder they may read (--root FOLDER), or that it may be any (--any-file)" in ran.err
    ran = invoke("serve", "--host", host, "--token", "t", "--any-file", "--root", ".")
    assert "give one of --root and --any-file" in " ".join(ran.err.split())
    ServerPlace(host, token="t", is_bounded=True).check()
    ServerPlace("127.0.0.1", is_bounded=False).check()


def test_a_token_comes_from_the_first_line_of_a_file(tmp_path: Path, invoke: Invoke) -> None:
    (tmp_path / "token").write_text("s3cret\nand more\n")
    (tmp_path / "empty").write_text("\n")
    assert read_token(None, str(tmp_path / "token")) == "s3cret"
    assert read_token("given", None) == "given"
    assert "the token is empty" in invoke("serve", "--token-file", tmp_path / "empty").err
    assert "give one of --token and --token-file" in " ".join(
        invoke("serve", "--token", "t", "--token-file", tmp_path / "token").err.split()
    )
    assert invoke("serve", "--token-file", tmp_path / "missing").code == 4


def test_a_port_that_is_taken_is_said_before_anything_starts(invoke: Invoke) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ran = invoke("serve", "--engine", "local", "--port", port)
        assert ran.code == 1
        assert f"error: port {port} of 127.0.0.1 is in use\nhint: " in ran.err
    with bind("127.0.0.1", 0) as bound, pytest.raises(EngineError, match="is in use"):
        bind("127.0.0.1", bound.getsockname()[1])


def test_a_folder_that_is_in_use_or_none_is_said_and_nothing_else(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ran = invoke("serve", "--engine", "local", "--port", 0, "--data", tmp_path / "file")
    assert (ran.code, ran.err) == (4, f"error: {tmp_path / 'file'}: Not a directory\n")
    with Hub(tmp_path / "data", "local"):
        ran = invoke("serve", "--engine", "local", "--port", 0, "--data", tmp_path / "data")
    assert ran.code == 1
    assert ran.err.startswith(f"error: the folder {tmp_path / 'data'} is in use by another server\nhint: ")


def test_without_java_it_says_what_to_install_and_offers_to_do_without(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    for command in (["serve"], ["demo", "auctions"], ["demo", "auctions", "--no-ui"]):
        ran = invoke(*command, "--engine", "spark")
        assert ran.code == 1
        assert "Spark needs Java 17 or later" in ran.err
        assert "--engine local" in ran.err


def test_a_browser_is_opened_only_where_there_is_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    assert not has_browser()
    monkeypatch.setenv("DISPLAY", ":0")
    assert has_browser()


def test_the_auctions_are_a_stream_of_a_rate_and_perhaps_an_end() -> None:
    assert AuctionDemo().address == "gen:auctions?rate=10&early=600&jumps=100"
    assert AuctionDemo(rate=None, count=7).address == "gen:auctions?count=7&jumps=100"
    assert AuctionDemo(rate=None).address == "gen:auctions?jumps=100"
    assert query_text() == (ROOT / "examples" / "auctions" / "figure6.lupos").read_text()


def test_the_wheel_carries_the_examples() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["force-include"] == {"examples": "anabranch/demos/examples"}


def process(*arguments: object, folder: Path, **more: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "anabranch", *map(str, arguments)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder), "COLUMNS": "200"},
        **more,
    )


def test_the_auctions_come_as_lines_into_a_pipe_and_end_with_their_count(tmp_path: Path) -> None:
    running = process(
        *["demo", "auctions", "--no-ui", "--engine", "local", "--count", "300", "--speed", "0"], folder=tmp_path
    )
    out, err = running.communicate(timeout=300)
    assert running.returncode == 0, err
    rows = [json.loads(line) for line in out.splitlines()]
    assert {"id", "title", "bid", "avg", "min", "max", "sum"} == set(rows[-1]["row"])
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def test_ctrl_c_ends_the_auctions_in_the_terminal_in_order(tmp_path: Path) -> None:
    running = process(*["demo", "auctions", "--no-ui", "--engine", "local", "--rate", "200"], folder=tmp_path)
    assert running.stdout is not None
    assert running.stdout.readline().startswith("{")
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=300)
    assert running.returncode == 0, err
    assert out.endswith("}\n")
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


@contextmanager
def served(*arguments: object, folder: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A server of its own process, and its address."""
    running = process(*arguments, "--engine", "local", "--port", 0, folder=folder)
    try:
        assert running.stderr is not None
        found = re.match(r"anabranch is at (http://[^/]+)/", running.stderr.readline())
        assert found is not None, running.stderr.read()
        yield found[1], running
    finally:
        running.kill()
        running.communicate()


def asked(address: str, token: str | None = None) -> Any:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=60) as answer:
        return json.loads(answer.read())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_server_ends_in_order_and_keeps_its_sessions(tmp_path: Path, number: signal.Signals) -> None:
    with served("serve", "--no-ui", "--data", "kept", folder=tmp_path) as (address, running):
        made = urllib.request.Request(
            f"{address}/api/v1/sessions", data=b'{"name": "mine"}', headers={"Content-Type": "application/json"}
        )
        urllib.request.urlopen(made, timeout=60).close()
        running.send_signal(number)
        _, err = running.communicate(timeout=60)
        assert running.returncode == 0, err
        assert "Traceback" not in err
    with served("serve", "--no-ui", "--data", "kept", folder=tmp_path) as (address, _):
        assert "mine" in json.dumps(asked(f"{address}/api/v1/sessions"))


def test_a_server_with_a_token_asks_for_it(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret")
    with served("serve", "--no-ui", "--token-file", "token", folder=tmp_path) as (address, _):
        with pytest.raises(urllib.error.HTTPError, match="401"):
            asked(f"{address}/api/v1/sessions")
        asked(f"{address}/api/v1/sessions", "s3cret")


def test_the_demo_s_page_has_the_session_with_the_busiest_items_and_leaves_nothing(tmp_path: Path) -> None:
    with served("demo", "auctions", "--no-open", "--rate", 500, folder=tmp_path) as (address, running):
        base = f"{address}/api/v1/sessions/auctions"
        assert [one["columns"][:3] for one in asked(f"{base}/queries")] == [["item", "title", "bids"]]
        name = asked(f"{base}/queries")[0]["name"]
        while not asked(f"{base}/queries/{name}/results?limit=1")["results"]:
            assert running.poll() is None
        with urllib.request.urlopen(f"{address}/?session=auctions", timeout=60) as page:
            assert b"Anabranch" in page.read()
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=60)
        assert running.returncode == 0, err
    assert list(tmp_path.iterdir()) == []
