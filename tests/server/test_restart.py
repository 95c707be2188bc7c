"""A server that comes back, or was killed, goes on where it was."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.server.conftest import BUSY, COUNTED, Served, minutes, until

from anabranch.errors import EngineError
from anabranch.server.hub import Hub
from anabranch.server.result_changes import restored, unpacked


def test_sessions_streams_graphs_queries_and_numbers_survive(serve: Callable[..., Served]) -> None:
    first = serve()
    first.make(COUNTED, None)
    first.http.post("/sessions/s/queries", json={"text": BUSY, "windows": "formal"})
    first.http.post("/sessions/s/queries/busy/pause")
    first.http.put("/sessions/s/graphs/g", content="<a:a> <a:b> <a:c> .", headers={"content-type": "text/turtle"})
    first.http.post("/sessions", json={"name": "resting", "state": "paused"})
    first.push(minutes(5))
    told = first.wait_for("counted", 4)
    before = first.http.get("/sessions/s/queries").json()
    first.close()
    second = serve()
    assert [(one["name"], one["state"]) for one in second.http.get("/sessions").json()] == [
        ("s", "running"),
        ("resting", "paused"),
    ]
    after = second.http.get("/sessions/s/queries").json()
    of_the_run = {"state": "", "evaluated_at": None, "rows_now": None}
    assert [one | of_the_run for one in after] == [one | of_the_run for one in before]
    assert after[1]["state"] == "paused"
    assert second.results("counted") == told
    assert second.http.get("/sessions/s/graphs").json() == [{"name": "g", "media_type": "text/turtle"}]
    second.push(minutes(3, start=5))
    assert [(one["seq"], one["rows"]) for one in second.wait_for("counted", 7)] == [(n, [[n + 1]]) for n in range(7)]


def test_what_has_ended_is_ended_after_a_change_that_changes_nothing_and_after_a_restart(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    file = tmp_path / "rides.ndjson"
    file.write_text("\n".join(json.dumps(one) for one in minutes(5)))
    first = serve()
    first.make(COUNTED, str(file))
    assert until(lambda: first.http.get("/sessions/s").json()["ended"])
    told = first.results("counted")
    for wish in ("pause", "start"):
        assert first.http.post(f"/sessions/s/{wish}").status_code == 200
    assert until(lambda: first.http.get("/sessions/s").json()["ended"])
    first.close()
    second = serve()
    assert until(lambda: second.http.get("/sessions/s").json()["ended"])
    assert second.http.get("/sessions/s/queries/counted").json()["state"] == "running"
    assert second.results("counted") == told
    counted = COUNTED.replace("counted", "again")
    assert second.http.post("/sessions/s/queries", json={"text": counted}).status_code == 201
    assert until(lambda: second.http.get("/sessions/s").json()["ended"])


SERVER = """
import sys, time
from anabranch.server.hub import Hub
hub = Hub(sys.argv[1], "local")
hub.start()
session = hub.session("s") if hub.sessions() else hub.create("s")
if not session.streams():
    session.add_stream("rides", "gen:bikes?rate=100")
    session.register(sys.argv[2])
print("ready", flush=True)
time.sleep(60)
"""


def test_killed_anywhere_it_tells_every_result_once(tmp_path: Path) -> None:
    """What a client saw before the kill is what the log has after it; numbers have no gap and no result changes."""
    query = BUSY.replace("PT10S", "PT1S")
    told: dict[int, str] = {}
    for _ in range(4):
        server = subprocess.Popen(
            [sys.executable, "-c", SERVER, str(tmp_path / "hub"), query], stdout=subprocess.PIPE, text=True
        )
        assert server.stdout is not None
        assert server.stdout.readline() == "ready\n"
        try:
            seen = len(told)
            until(lambda: _more(tmp_path / "hub", told, seen))  # noqa: B023  asked before the next turn
        finally:
            os.kill(server.pid, signal.SIGKILL)
            server.wait()
            server.stdout.close()
    assert sorted(told) == list(range(min(told), max(told) + 1))
    assert min(told) == 0
    instants = [json.loads(told[number])["at"] for number in sorted(told)]
    assert instants == sorted(set(instants))


def _more(folder: Path, told: dict[int, str], seen: int) -> bool:
    """Read the log of a running server; each result that was there before is the same."""
    import sqlite3

    opened = sqlite3.connect(f"file:{folder}/sessions/s/results.sqlite?mode=ro", uri=True)
    try:
        opened.execute("BEGIN")
        wholes = {number: unpacked(body) for number, body in opened.execute("SELECT id, body FROM wholes")}
        for seq, stored, whole in opened.execute("SELECT seq, body, whole FROM results"):
            body = (stored if whole is None else restored(stored, wholes[whole])).decode()
            assert told.setdefault(seq, body) == body
    finally:
        opened.close()
    return len(told) > seen + 40


def test_a_session_that_cannot_be_opened_keeps_no_other_from_it(serve: Callable[..., Served], tmp_path: Path) -> None:
    first = serve()
    first.make(COUNTED, None)
    first.make(COUNTED, None, session="broken")
    first.close()
    for file in (tmp_path / "hub" / "sessions" / "broken").glob("results.sqlite*"):
        file.write_bytes(b"this was a database once" * 100)
    second = serve()
    assert [one["name"] for one in second.http.get("/sessions").json()] == ["s"]
    second.push(minutes(3))
    second.wait_for("counted", 2)
    error = second.http.get("/sessions/broken").json()["error"]
    assert (error["code"], "could not be opened" in error["message"]) == ("SRV-013", True)
    assert second.http.post("/sessions", json={"name": "broken"}).json()["error"]["code"] == "SRV-002"
    assert second.http.delete("/sessions/broken").status_code == 204
    second.make(COUNTED, None, session="broken")
    assert second.http.get("/sessions/broken").json()["error"] is None


@pytest.mark.parametrize("file", ["spool/rides/cursor.json", "anew.json"])
def test_a_session_that_cannot_begin_keeps_no_other_from_it(
    serve: Callable[..., Served], tmp_path: Path, file: str
) -> None:
    first = serve()
    first.make(COUNTED, None)
    first.make(COUNTED, None, session="broken")
    first.close()
    broken = tmp_path / "hub" / "sessions" / "broken"
    assert (broken / file).parent.is_dir()
    (broken / file).write_bytes(b'{"posi')
    second = serve()
    assert [one["name"] for one in second.http.get("/sessions").json()] == ["s"]
    second.push(minutes(3))
    second.wait_for("counted", 2)
    error = second.http.get("/sessions/broken").json()["error"]
    assert (error["code"], f"{Path(file).name} is damaged" in error["message"]) == ("SRV-013", True)
    assert second.http.delete("/sessions/broken").status_code == 204
    second.make(COUNTED, None, session="broken")
    assert second.http.get("/sessions/broken").json()["error"] is None


def test_a_second_server_on_the_same_folder_is_refused(tmp_path: Path) -> None:
    with Hub(tmp_path, "local"), pytest.raises(EngineError, match="in use by another server"):
        Hub(tmp_path, "local").start()
    with Hub(tmp_path, "local") as hub:
        assert hub.sessions() == []


def test_several_changes_close_together_cause_one_restart(tmp_path: Path) -> None:
    with Hub(tmp_path, "local") as hub:
        session = hub.create("s")
        session.add_stream("rides", "gen:bikes?rate=200")
        starts: list[int] = []
        prepare = session._carrier._prepare
        session._carrier._prepare = lambda: (starts.append(1), prepare())[1]
        for number in range(6):
            session.register(COUNTED.replace("counted", f"q{number}"))
        until(lambda: session.query("q5").last_seq >= 0)
        assert len(starts) <= 3


class Killed(BaseException):
    """Stands for a server that ends at some line."""


STEPS = [
    "log.begin_anew",
    "_renewal._forget_folder",
    "_feeds.forget",
    "_catalogue.put_stream",
    "_catalogue.forget_failures",
]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("step", STEPS)
def test_killed_while_a_stream_is_replaced_it_is_replaced_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, after: bool
) -> None:
    with Hub(tmp_path, "local") as hub:
        session = hub.create("s")
        session.add_stream("rides")
        session.register(COUNTED)
        session.push("rides", minutes(4))
        until(lambda: session.query("counted").last_seq == 2)
        *way, name = step.split(".")
        holder = getattr(session, way[0]) if way else session
        does = getattr(holder, name)

        def dies(*given: object) -> None:
            if after:
                does(*given)
            raise Killed

        monkeypatch.setattr(holder, name, dies)
        monkeypatch.setattr(session._carrier, "_prepare", lambda: None)  # a server that is gone runs nothing
        with pytest.raises(Killed):
            session.add_stream("rides", lateness="PT0S", replace=True)
        monkeypatch.undo()
    with Hub(tmp_path, "local") as hub:
        session = hub.session("s")
        assert session.stream("rides").lateness == "PT0S"
        session.push("rides", minutes(4))
        until(lambda: session.query("counted").last_seq == 5)
        found = [(one["seq"], one["rows"]) for one in session.results("counted")]
        assert found == [(number, [[number % 3 + 1]]) for number in range(6)]


def test_killed_while_a_session_is_removed_it_is_there_or_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Hub(tmp_path, "local") as hub:
        for name in ("stays", "goes"):
            session = hub.create(name)
            session.add_stream("rides")
            session.push("rides", minutes(4))
            session.register(COUNTED)
            until(lambda: session.query("counted").last_seq == 2)  # noqa: B023  asked before the next turn
        monkeypatch.setattr(Path, "rename", _killed)
        with pytest.raises(Killed):
            hub.delete("stays")
        monkeypatch.undo()
        assert hub._catalogue is not None
        monkeypatch.setattr(hub._catalogue, "remove_session", _killed)
        with pytest.raises(Killed):
            hub.delete("goes")
        monkeypatch.undo()
    with Hub(tmp_path, "local") as hub:
        assert [one.name for one in hub.sessions()] == ["stays"]
        assert hub.session("stays").query("counted").last_seq == 2
        assert [one.name for one in (tmp_path / "sessions").iterdir()] == ["stays"]
        assert hub.create("goes").streams() == []


def _killed(*given: object) -> None:
    raise Killed


def test_a_spool_that_lost_acknowledged_events_is_an_error_until_the_session_is_started(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    first = serve()
    first.make(COUNTED, None)
    first.push(minutes(5))
    first.wait_for("counted", 4)
    first.close()
    (segment,) = (tmp_path / "hub" / "sessions" / "s" / "spool").rglob("*.ndjson")
    size = segment.stat().st_size
    os.truncate(segment, size // 2)
    for _ in range(2):
        second = serve()
        assert until(lambda: second.http.get("/sessions/s").json()["state"] == "failed")  # noqa: B023
        said = second.http.get("/sessions/s").json()["error"]
        assert f"is shorter than promised: {size // 2:,} of {size:,} bytes; " in said["message"]
        assert "acknowledged events are missing" in said["message"]
        second.push(minutes(1, start=5))
        second.close()
    third = serve()
    assert third.http.post("/sessions/s/start").status_code == 200
    third.push(minutes(2, start=6))
    assert [one["rows"] for one in third.wait_for("counted", 7)] == [[[n]] for n in range(1, 8)]
    assert third.http.get("/sessions/s").json()["error"] is None


def test_a_session_that_the_catalogue_has_lost_is_mentioned_and_can_be_deleted(
    serve: Callable[..., Served], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = serve()
    first.make(COUNTED, None)
    first.push(minutes(5))
    first.wait_for("counted", 4)
    first.close()
    for file in (tmp_path / "hub").glob("catalogue.sqlite*"):
        file.unlink()
    second = serve()
    assert "sessions/s is in no catalogue" in caplog.text
    assert "the catalogue does not know it" in second.http.get("/sessions/s").text
    assert second.http.post("/sessions", json={"name": "s"}).status_code == 409
    assert second.http.delete("/sessions/s").status_code == 204
    assert second.http.post("/sessions", json={"name": "s"}).status_code == 201


def test_results_that_are_lost_are_mentioned(serve: Callable[..., Served], tmp_path: Path) -> None:
    first = serve()
    first.make(COUNTED, None)
    first.push(minutes(5))
    first.wait_for("counted", 4)
    first.close()
    for file in (tmp_path / "hub" / "sessions" / "s").glob("results.sqlite*"):
        file.unlink()
    second = serve()
    second.push(minutes(2, start=5))
    assert until(lambda: second.http.get("/sessions/s").json()["notes"])
    assert second.http.get("/sessions/s").json()["notes"] == [
        "the results 0 to 3 of `counted` are missing: results.sqlite is older than the checkpoint"
    ]
